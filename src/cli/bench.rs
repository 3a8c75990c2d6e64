//! `weir bench`: the load generator, ended by Ctrl-C with its report.

use super::Failure;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use weir_bench::cli::BenchArgs;
use weir_bench::demo::Stop;
use weir_bench::worker::Control;

/// Runs until the load has ended.
pub fn run(args: &BenchArgs) -> ExitCode {
    let control = Arc::new(Control::default());
    let told = Arc::clone(&control);
    if let Err(failure) = on_interrupt(true, move || told.stop()) {
        eprintln!("weir: {failure}");
        return ExitCode::FAILURE;
    }
    super::doctor::before_bench(args).iter().for_each(|line| eprintln!("doctor: {line}"));
    ExitCode::from(weir_bench::cli::run(args, &control))
}

/// Does what starts processes of its own, Weir among them, until it is done or Ctrl-C.
pub fn with_stop(work: impl FnOnce(PathBuf, &Stop) -> u8) -> ExitCode {
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
    ExitCode::from(work(executable, &stop))
}

/// Calls `stop` at the first SIGINT or SIGTERM, on a thread of its own. A second one ends the process if
/// `hard`; what has children to stop and files to remove must not end so.
///
/// # Errors
/// The process has no descriptors or threads left for the signals.
pub fn on_interrupt(hard: bool, stop: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Runtime(error.into()))?;
    let (mut interrupt, mut terminate) = runtime
        .block_on(async { Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)) })
        .map_err(|error: std::io::Error| Failure::Runtime(error.into()))?;
    let mut stop = Some(stop);
    let wait = move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                match stop.take() {
                    Some(stop) => stop(),
                    None if hard => std::process::exit(130),
                    None => {}
                }
            }
        });
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)
        .map(drop)
        .map_err(|error| Failure::Runtime(error.into()))
}
