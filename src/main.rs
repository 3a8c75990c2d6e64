//! The door: arguments, output, exit codes. No logic of the proxy lives here.
#![forbid(unsafe_code)]

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
