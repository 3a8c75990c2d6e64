//! `weir demo`: databases, Weir and load from one command.

use super::bench::with_stop;
use std::process::ExitCode;
use weir_bench::demo::{self, DemoArgs};

/// Runs until its time is over or Ctrl-C.
pub fn run(args: &DemoArgs) -> ExitCode {
    with_stop(|executable, stop| demo::run(args, executable, stop))
}
