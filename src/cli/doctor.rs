//! `weir doctor`: arguments, output and exit codes. The logic is in the crate `weir-doctor`.

use super::{Failure, print};
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use weir_bench::cli::{BenchArgs, BenchCommand};
use weir_bench::lab::LabArgs;
use weir_config::{ListenAt, Snapshot, Sources, load};
use weir_doctor::database::Place;
use weir_doctor::text::{self, Style};
use weir_doctor::{Program, QUICK_FROM_CLIENTS, Question, Report, Root, State, cure, explain, quick_at};
use weir_net::Target;

/// The configuration asks for something that this machine cannot do.
const EXIT_BLOCKER: u8 = 3;

/// Find the limits that will stop N connections, and how to raise them.
///
/// Reads the limits of this machine (open files, ports, backlogs, memory, threads, control groups, firewall)
/// and, with --url, of databases. For each limit it prints the value, the number of connections at which it
/// breaks, the message that then appears, and the cure as text for sysctl.d, limits.d, systemd, Docker and
/// Kubernetes. It changes nothing.
///
/// --explain prints what a message means: weir doctor --explain "Can't create TCP/IP socket (24)".
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Number of clients; with --program bench, number of connections to open. Default: max_client_conn of
    /// --config, or else 10000.
    #[arg(long, short = 'n', value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=weir_doctor::question::CONNECTIONS_MAX))]
    connections: Option<u64>,
    /// Total number of connections to the databases. Default: 20 for each --url, or the pools of --config.
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u64).range(1..=weir_doctor::question::CONNECTIONS_MAX))]
    servers: Option<u64>,
    /// A database to check as well: postgres://user:password@host:5432/database or mysql://... . May be given
    /// several times. `${NAME}` in place of the password is that environment variable.
    #[arg(long = "url", value_name = "URL")]
    urls: Vec<String>,
    /// Take the numbers, ports and backlog from this weir.toml or pgbouncer.ini.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Program whose limits to check: serve, bench, or other (one descriptor table, one thread per
    /// connection).
    #[arg(long, value_name = "PROGRAM", default_value = "serve", value_parser = ["serve", "bench", "other"])]
    program: String,
    /// Check the limits of this running process instead of those of a process started here.
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// A systemd unit to check as well.
    #[arg(long, value_name = "NAME", default_value = "weir.service")]
    unit: String,
    /// Number of threads that carry traffic. Default: one for each core.
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Show the values and the breaking points of good findings, too.
    #[arg(long)]
    all: bool,
    /// Print the report as JSON.
    #[arg(long, conflicts_with = "cure")]
    json: bool,
    /// Print only the cures of one place: sysctl.d, limits.d, systemd, docker, kubernetes, weir.toml,
    /// postgresql.conf, my.cnf, advice.
    #[arg(long, value_name = "PLACE")]
    cure: Option<String>,
    /// Explain a message or an error code; - reads a log from standard input. May be given several times.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    explain: Vec<String>,
}

const AFTER_HELP: &str = "\
Exit codes: 0 no blocker; 1 a failure, or an unknown message; 2 wrong arguments; 3 a blocker.

Examples:
  weir doctor --connections 100000
  weir doctor --config /etc/weir/weir.toml
  weir doctor --connections 20000 --servers 200 --url 'postgres://app:${PASSWORD}@db/app'
  weir doctor --connections 100000 --cure sysctl.d > /etc/sysctl.d/90-weir.conf
  weir doctor --explain 'errno 11'
  journalctl -u mysql -n 500 | weir doctor --explain -";

/// Looks, prints; the exit code says how bad it is.
///
/// # Errors
/// [`Failure::Usage`]: an option or a URL is wrong. [`Failure::Runtime`]: the output cannot be written.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    if !args.explain.is_empty() {
        return explain(args);
    }
    let place = args.cure.as_deref().map(named).transpose()?;
    let places = args
        .urls
        .iter()
        .map(|url| Place::parse(url))
        .collect::<Result<Vec<_>, _>>()
        .map_err(Failure::Usage)?;
    let report = Report::make(&Root::real(), question(args, places.len())?, &places);
    let output = match place {
        Some(place) => {
            let sheet = report.sheets().into_iter().find(|sheet| sheet.place == place);
            sheet.map_or_else(String::new, |sheet| format!("{}\n", sheet.text))
        }
        None if args.json => report.to_json(),
        None => text::report(&report, style(args.all)),
    };
    print(output.as_bytes())?;
    Ok(if report.worst() == State::Blocker { ExitCode::from(EXIT_BLOCKER) } else { ExitCode::SUCCESS })
}

fn style(all: bool) -> Style {
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    Style { colour, all }
}

fn named(place: &str) -> Result<cure::Place, Failure> {
    cure::Place::named(place).ok_or_else(|| {
        let names: Vec<_> = cure::Place::ALL.iter().map(|place| place.name()).collect();
        Failure::Usage(format!("--cure {place}: there are {}", names.join(", ")))
    })
}

/// Weir's default pool size, for each database that is named.
const SERVERS_EACH: u64 = 20;
/// Asked about where nobody says how many clients come.
const CLIENTS: u64 = 10_000;

fn question(args: &Args, databases: usize) -> Result<Question, Failure> {
    let mut ask = match (args.program.as_str(), &args.config) {
        ("bench", _) => Question::bench(CLIENTS, Vec::new()),
        (_, Some(file)) => of_snapshot(&load(&Sources::file(file))?.snapshot),
        _ => Question::serve(CLIENTS, SERVERS_EACH * databases.max(1) as u64),
    };
    if args.program == "other" {
        // Another program's ports and backlog are not known.
        ask.program = Program::Other;
        ask.listen_ports.clear();
    }
    ask.clients = args.connections.unwrap_or(ask.clients);
    ask.servers = args.servers.unwrap_or(ask.servers);
    ask.workers = args.workers.filter(|n| *n > 0).unwrap_or(ask.workers);
    ask.pid = args.pid;
    ask.unit = args.unit.clone();
    Ok(ask)
}

fn explain(args: &Args) -> Result<ExitCode, Failure> {
    let mut out = String::new();
    let mut unknown = Vec::new();
    for asked in &args.explain {
        let found: Vec<(&explain::Entry, Option<String>)> = if asked == "-" {
            let mut log = String::new();
            std::io::stdin().read_to_string(&mut log).map_err(|error| Failure::Runtime(error.into()))?;
            let found = explain::find_in_log(log.lines());
            found
                .into_iter()
                .map(|(entry, times, line)| (entry, Some(format!("{times} times: {line}"))))
                .collect()
        } else {
            explain::find(asked).into_iter().map(|entry| (entry, None)).collect()
        };
        if found.is_empty() {
            unknown.push(asked.as_str());
        }
        for (entry, seen) in found {
            if args.json {
                let entry = serde_json::to_string(entry).map_err(|error| Failure::Runtime(error.into()))?;
                out.push_str(&format!("{entry}\n"));
            } else {
                out.push_str(&text::explanation(entry, seen.as_deref()));
                out.push('\n');
            }
        }
    }
    print(out.as_bytes())?;
    if unknown.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let unknown = unknown.join("`, `");
    Err(Failure::Runtime(anyhow::anyhow!(
        "no explanation for `{unknown}`: give the whole message, or its code with the word error before it"
    )))
}

/// What a configuration asks of this machine.
fn of_snapshot(snapshot: &Snapshot) -> Question {
    let databases =
        [&snapshot.postgres, &snapshot.mysql].into_iter().flat_map(|realm| realm.databases.values());
    let pinned = snapshot.values.size(weir_config::Key::PinnedPoolSize);
    let servers: u64 = databases
        .map(|database| {
            let pinned = database.pinned_pool_size.unwrap_or(pinned) as u64;
            database.pool_size.map_or(SERVERS_EACH, |n| n as u64) + pinned
        })
        .sum();
    let ports = snapshot.listeners.iter().filter_map(|listener| match &listener.at {
        ListenAt::Tcp(address) => Some(address.port()),
        ListenAt::Unix { .. } => None,
    });
    Question {
        workers: snapshot.workers,
        listen_ports: ports.collect(),
        backlog: u64::from(snapshot.tcp.listen_backlog),
        ..Question::serve(snapshot.limits.max_client_conn.map_or(CLIENTS, |n| n as u64), servers)
    }
}

/// The memory that this process may have.
pub fn memory() -> Option<u64> {
    weir_doctor::probe::memory::of_this_process(&Root::real())
}

/// Blockers and warnings about what a configuration asks of this machine, for the log of `weir serve`.
pub fn before_serve(snapshot: &Snapshot) -> Vec<String> {
    lines(&of_snapshot(snapshot))
}

/// The same for a load, for the screen of `weir bench`.
pub fn before_bench(args: &BenchArgs) -> Vec<String> {
    match &args.command {
        // Agents have limits of their own.
        BenchCommand::Run(run) if run.agents.is_empty() => {
            before_load(run.connections, &run.table.urls().unwrap_or_default())
        }
        BenchCommand::Ramp(ramp) => {
            before_load(ramp.connections_max(), &ramp.run.table.urls().unwrap_or_default())
        }
        _ => Vec::new(),
    }
}

/// The same for an experiment of `weir lab`.
pub fn before_lab(args: &LabArgs) -> Vec<String> {
    before_load(args.clients_max(), &args.urls)
}

fn before_load(connections: u32, urls: &[String]) -> Vec<String> {
    if u64::from(connections) < QUICK_FROM_CLIENTS {
        return Vec::new();
    }
    // A URL that cannot be read is the load generator's to complain about.
    let places = urls.iter().filter_map(|url| Place::parse(url).ok());
    let mut targets: Vec<Target> = places.map(|place| place.target).collect();
    if urls.is_empty() {
        // What the laboratory starts is on this machine.
        targets.push(Target::Tcp(([127, 0, 0, 1], 5432).into()));
    }
    lines(&Question::bench(u64::from(connections), targets))
}

fn lines(ask: &Question) -> Vec<String> {
    let more = format!("(weir doctor --program {} --connections {})", ask.program.name(), ask.clients);
    quick_at(&Root::real(), ask).iter().map(|finding| format!("{} {more}", finding.line())).collect()
}
