//! The entry point: arguments, output, exit codes. No logic of the proxy is here.
#![forbid(unsafe_code)]

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
