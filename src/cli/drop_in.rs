//! The binary called by the name `pgbouncer`: PgBouncer's own arguments, for existing scripts and units.

use super::logging::Output;
use super::process::{self, Ready};
use super::{Failure, serve};
use std::path::PathBuf;
use weir_config::{Sources, load};

/// Weir as a replacement for PgBouncer: same options, same file.
#[derive(Debug, clap::Parser)]
#[command(
    name = "pgbouncer",
    version = concat!(env!("CARGO_PKG_VERSION"), " (Weir in the place of PgBouncer)"),
    disable_version_flag = true,
    max_term_width = 100
)]
pub struct Args {
    /// Run in the background. Requires logfile and pidfile in the file.
    #[arg(short, long)]
    daemon: bool,
    /// Do not log to standard error.
    #[arg(short, long)]
    quiet: bool,
    /// Take over from the running process. Not supported yet: Weir refuses to start.
    #[arg(short = 'R', long)]
    reboot: bool,
    /// User to run as. Weir cannot change its user: it starts only if it already runs as this user.
    #[arg(short, long, value_name = "USERNAME")]
    user: Option<String>,
    /// Log more. May be given several times.
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Show the version.
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: (),
    /// Path of the pgbouncer.ini.
    #[arg(value_name = "CONFIG_FILE")]
    file: PathBuf,
}

/// Runs until a signal ends it, or with `-d` until the process in the background runs.
///
/// # Errors
/// [`Failure::Usage`]: an option that is not supported, another user, or a configuration with errors.
/// [`Failure::Runtime`]: Weir cannot start or go on.
pub fn run(args: Args) -> Result<(), Failure> {
    if args.reboot {
        return Err(Failure::Usage(
            "-R is not supported yet: stop the old process (SIGTERM lets its transactions end), then start this one".into(),
        ));
    }
    if let Some(user) = &args.user {
        process::be_user(user)?;
    }
    let sources = Sources::file(&args.file);
    let loaded = load(&sources)?;
    if process::is_background() {
        let output = Output { stderr: false, more: args.verbose };
        return serve::run_loaded(sources, loaded, output, Ready::Parent);
    }
    if args.daemon {
        if loaded.snapshot.pidfile.is_none() || loaded.snapshot.log.file.is_none() {
            return Err(Failure::Usage("-d needs logfile and pidfile in the configuration file".into()));
        }
        for warning in &loaded.warnings {
            eprintln!("pgbouncer: warning: {warning}");
        }
        return process::start_background();
    }
    serve::run_loaded(sources, loaded, Output { stderr: !args.quiet, more: args.verbose }, Ready::Systemd)
}
