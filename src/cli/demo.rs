//! `weir demo`: databases, Weir and load from one command.

use super::bench::on_interrupt;
use std::process::ExitCode;
use std::sync::Arc;
use weir_bench::demo::{self, DemoArgs, Stop};

/// Runs until its time is over or Ctrl-C.
pub fn run(args: &DemoArgs) -> ExitCode {
    let executable = match std::env::current_exe() {
        Ok(path) => path,
        Err(error) => {
            eprintln!("weir: cannot find its own executable: {error}");
            return ExitCode::FAILURE;
        }
    };
    let stop = Arc::new(Stop::default());
    let told = Arc::clone(&stop);
    if let Err(failure) = on_interrupt(false, move || told.stop()) {
        eprintln!("weir: {failure}");
        return ExitCode::FAILURE;
    }
    ExitCode::from(demo::run(args, executable, &stop))
}
