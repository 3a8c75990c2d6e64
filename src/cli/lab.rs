//! `weir lab`: published experiments, repeated.

use super::bench::with_stop;
use std::process::ExitCode;
use weir_bench::lab::{self, LabArgs};

/// Runs until the experiments are done or Ctrl-C.
pub fn run(args: &LabArgs) -> ExitCode {
    super::doctor::before_lab(args).iter().for_each(|line| eprintln!("doctor: {line}"));
    with_stop(|executable, stop| lab::run(args, executable, stop))
}
