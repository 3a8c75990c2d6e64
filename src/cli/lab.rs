//! `weir lab`: published experiments, done again.

use super::bench::on_interrupt;
use std::process::ExitCode;
use std::sync::Arc;
use weir_bench::demo::Stop;
use weir_bench::lab::{self, LabArgs};

/// Runs until the experiments are done or Ctrl-C.
pub fn run(args: &LabArgs) -> ExitCode {
    let executable = match std::env::current_exe() {
        Ok(path) => path,
        Err(error) => {
            eprintln!("weir: cannot find its own executable: {error}");
            return ExitCode::FAILURE;
        }
    };
    let stop = Arc::new(Stop::default());
    let told = Arc::clone(&stop);
    // Not hard: servers must be stopped and directories removed.
    if let Err(failure) = on_interrupt(false, move || told.stop()) {
        eprintln!("weir: {failure}");
        return ExitCode::FAILURE;
    }
    ExitCode::from(lab::run(args, executable, &stop))
}
