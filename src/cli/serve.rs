//! `weir serve`: from arguments to a running proxy.

use super::control::{self, Plan};
use super::logging::{Logging, Output};
use super::process::Ready;
use super::{Failure, VERSION};
use std::path::PathBuf;
use weir_config::{Loaded, SetArgument, Sources, load};

/// Run the proxy.
///
/// Give database URLs, or a file with --config. With a URL, Weir listens on 127.0.0.1:6432 for PostgreSQL and
/// on 127.0.0.1:6033 for MySQL and MariaDB, and the user of the URL may log in with its password. If the URL
/// has no password, that user may log in without one, from this machine only.
///
/// On SIGTERM or Ctrl-C, Weir waits at most drain_timeout for transactions to end, and stops; a second signal
/// stops it at once. On SIGHUP, Weir reopens the log file and reloads the configuration: clients stay
/// connected, and changes that need a restart are logged. SIGUSR1 pauses all databases, like PAUSE in the
/// console; SIGUSR2 resumes them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address of a database: postgres://user:password@host:5432/database or mysql://... .
    #[arg(value_name = "URL", conflicts_with = "config", required_unless_present = "config")]
    urls: Vec<String>,
    /// Configuration file: a weir.toml or pgbouncer.ini.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on: HOST:PORT, *:PORT, or a Unix socket. May be given several times.
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,
    /// Maximum number of server connections for one database and user, or auto.
    #[arg(long, value_name = "N")]
    pool_size: Option<String>,
    /// When a server connection returns to its pool: after the client's session, transaction or statement.
    #[arg(long, value_name = "MODE")]
    pool_mode: Option<String>,
    /// Worker threads. 0: one for each core.
    #[arg(long, value_name = "N")]
    workers: Option<String>,
    /// Maximum number of clients of the whole process. Further clients are refused. Default: as many as the
    /// machine's memory and open files allow.
    #[arg(long, value_name = "N")]
    max_client_conn: Option<String>,
    /// Any setting: section.key=value, as in weir.toml. Overrides the file. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Args {
    /// The sources of the configuration. Flags override the file; `--set` overrides other flags.
    fn sources(&self) -> Result<Sources, Failure> {
        let flags = [
            ("--pool-size", "pool.default_pool_size", &self.pool_size),
            ("--pool-mode", "pool.pool_mode", &self.pool_mode),
            ("--workers", "workers", &self.workers),
            ("--max-client-conn", "limits.max_client_conn", &self.max_client_conn),
        ];
        let mut settings: Vec<SetArgument> = flags
            .into_iter()
            .filter_map(|(flag, name, value)| Some(SetArgument::new(flag, name, value.as_deref()?)))
            .collect();
        for pair in &self.set {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(Failure::Usage(format!("--set {pair}: must be section.key=value")));
            };
            settings.push(SetArgument::new("--set", name.trim(), value.trim()));
        }
        Ok(Sources {
            file: self.config.clone(),
            urls: self.urls.clone(),
            listen: self.listen.clone(),
            settings,
        })
    }
}

/// Runs until a signal ends it.
///
/// # Errors
/// The arguments or the configuration have errors, or Weir cannot start or go on.
pub fn run(args: &Args) -> Result<(), Failure> {
    let sources = args.sources()?;
    let loaded = load(&sources)?;
    run_loaded(sources, loaded, Output { stderr: true, more: 0 }, Ready::Systemd)
}

/// Runs what was loaded until a signal ends it.
///
/// # Errors
/// The log cannot be started, or the proxy cannot start or go on.
pub fn run_loaded(sources: Sources, loaded: Loaded, output: Output, ready: Ready) -> Result<(), Failure> {
    let logging = Logging::start(&loaded.snapshot.log, output)?;
    tracing::info!("weir {VERSION} starts, process {}", std::process::id());
    loaded.snapshot.description().iter().for_each(|line| tracing::info!("{line}"));
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let warnings = super::doctor::before_serve(&loaded.snapshot);
    warnings.iter().for_each(|line| tracing::warn!("doctor: {line}"));
    let outcome =
        control::run(Plan { sources, snapshot: loaded.snapshot, ready, logging: &logging, warnings });
    if let Err(failure) = &outcome {
        tracing::error!("{failure}");
    }
    logging.finish();
    outcome
}
