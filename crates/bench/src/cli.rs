//! `weir bench`: arguments, the live report, the exit code.

use crate::agents::{self, Agent, Job, Secret};
use crate::compare::{self, CompareArgs};
use crate::plan::{Ignored, Mode, Pace, Plan, Think};
use crate::prepare;
use crate::ramp::{self, Ramp};
use crate::record::{Interval, RunResult};
use crate::report::{self, live_line};
use crate::run::{Progress, RunError, run as run_plan};
use crate::sysbench::{IN_PLACE_OF_URL, Sysbench};
use crate::url::Url;
use crate::worker::Control;
use crate::workloads::options::Options;
use crate::workloads::{self, NAMES, Params, Workload};
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// All went well.
const EXIT_OK: u8 = 0;
/// The server or the system refused.
const EXIT_RUNTIME: u8 = 1;
/// The arguments make no sense.
const EXIT_USAGE: u8 = 2;
/// The run ended, and there were errors or clients that could not connect.
const EXIT_MISSED: u8 = 4;

/// The highest level of a ramp when nobody says another.
const RAMP_CONNECTIONS: u32 = 1024;

/// The time of a run that ends by its events.
const UNLIMITED: Duration = Duration::from_secs(365 * 24 * 3600);

/// The warm-up of a level of a ramp when nobody says another.
const RAMP_WARM_UP_S: f64 = 1.0;

/// Load a PostgreSQL, MySQL or MariaDB server with any number of connections.
#[derive(Debug, clap::Args)]
#[command(after_help = workloads_help())]
pub struct BenchArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: BenchCommand,
}

/// The commands of `weir bench`.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Create and fill the tables of a workload.
    Prepare(Box<PrepareArgs>),
    /// Run a workload.
    Run(Box<RunArgs>),
    /// Drop the tables of a workload.
    Cleanup(Box<TableArgs>),
    /// Double the connections until throughput stops rising: find the knee and the pool size.
    Ramp(Box<RampArgs>),
    /// Wait for `weir bench run --agents` and generate a part of its load.
    Agent(AgentArgs),
    /// Compare two runs by their JSON files.
    Compare(CompareArgs),
}

/// What all commands take.
#[derive(Debug, Clone, clap::Args)]
pub struct TableArgs {
    /// Name of the workload.
    pub workload: String,
    /// File for the workload `script`.
    pub script: Option<PathBuf>,
    /// Server: postgres://user:password@host:port/database or mysql://... May be given several times.
    /// `${NAME}` in place of the password is that environment variable, which other users do not see.
    /// Alternatively use sysbench's --mysql-* or --pgsql-*.
    #[arg(long = "url", required_unless_present_any = IN_PLACE_OF_URL, conflicts_with_all = IN_PLACE_OF_URL)]
    pub urls: Vec<String>,
    /// The same in sysbench's words.
    #[command(flatten)]
    pub sysbench: Sysbench,
    /// Options of workloads.
    #[command(flatten)]
    pub options: Options,
}

/// What `prepare` takes.
#[derive(Debug, Clone, clap::Args)]
pub struct PrepareArgs {
    /// Workload, servers, tables.
    #[command(flatten)]
    pub table: TableArgs,
    /// Number of connections that fill the tables. Default: twice the cores.
    #[arg(long, alias = "num-threads", alias = "num_threads")]
    pub threads: Option<usize>,
}

/// What `run` takes.
#[derive(Debug, Clone, clap::Args)]
pub struct RunArgs {
    /// Number of clients. Same as sysbench's --threads.
    #[arg(
        long,
        visible_alias = "clients",
        visible_alias = "threads",
        alias = "num-threads",
        alias = "num_threads",
        default_value_t = 1
    )]
    pub connections: u32,
    /// Time to record, in seconds. 0: until --events have ended.
    #[arg(long, alias = "max-time", alias = "max_time", default_value_t = 10.0)]
    pub time: f64,
    /// End the run after this number of events, if --time has not ended it before. 0 disables the limit.
    #[arg(long, alias = "max-requests", alias = "max_requests", default_value_t = 0)]
    pub events: u64,
    /// Time to run before recording, in seconds.
    #[arg(long, alias = "warmup-time", alias = "warmup_time", default_value_t = 0.0)]
    pub warmup: f64,
    /// Events per second of all clients together, whether or not earlier events have ended. Latency is
    /// measured from the time an event was due. Default: each client begins its next event when the last one
    /// has ended.
    #[arg(long, alias = "tx-rate", alias = "tx_rate", conflicts_with = "every")]
    pub rate: Option<f64>,
    /// Timing of the events of --rate.
    #[arg(long, value_enum, default_value_t = Arrival::Poisson)]
    pub arrival: Arrival,
    /// Time a client waits between two events, in seconds. With 'exp:' before it, that is the mean of random
    /// times.
    #[arg(long, alias = "think_time", conflicts_with_all = ["rate", "every"], value_parser = parse_think)]
    pub think_time: Option<Think>,
    /// Statement that each client sends once it has logged in, such as "SET search_path = s:client_id".
    /// `:client_id` is the client's number, from 0. May be given several times.
    #[arg(long, value_name = "SQL")]
    pub on_connect: Vec<String>,
    /// Errors after which a transaction is rolled back and begun again: their codes, or 'all' or 'none'.
    /// Default: 1213, 1020 and 1205 for MySQL, 40P01, 40001 and 23505 for PostgreSQL.
    #[arg(long, alias = "mysql-ignore-errors", value_delimiter = ',')]
    pub ignore_errors: Vec<String>,
    /// Interval between the events of one client, in seconds. The clients begin evenly spread.
    #[arg(long)]
    pub every: Option<f64>,
    /// Threads of the generator itself, each with an event loop for its part of the connections. Default: all
    /// cores, or half of them when the server is on this machine; more when one descriptor table is too
    /// small.
    #[arg(long)]
    pub event_loops: Option<usize>,
    /// How queries are sent.
    #[arg(long, value_enum, default_value_t = Mode::Simple)]
    pub protocol_mode: Mode,
    /// sysbench's: auto is prepared, disable is simple.
    #[arg(long, alias = "db_ps_mode", hide = true, value_enum, conflicts_with = "protocol_mode")]
    pub db_ps_mode: Option<PsMode>,
    /// Write the report as JSON to this file.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Write the report with plots to this self-contained HTML file.
    #[arg(long)]
    pub report: Option<PathBuf>,
    /// Write a line for each recorded second to this file, as CSV.
    #[arg(long)]
    pub csv: Option<PathBuf>,
    /// Interval of the live report, in seconds. 0 disables it.
    #[arg(long, alias = "report_interval", default_value_t = 1)]
    pub report_interval: u64,
    /// Maximum number of connections begun per second.
    #[arg(long, alias = "connect_rate")]
    pub connect_rate: Option<f64>,
    /// Maximum time of a connect and login, in seconds. A longer one is an error.
    #[arg(long, default_value_t = 60.0)]
    pub connect_timeout: f64,
    /// Maximum time of a reply, in seconds. A longer one is an error.
    #[arg(long, default_value_t = 60.0)]
    pub query_timeout: f64,
    /// Machines that generate the load, each running `weir bench agent`: HOST or HOST:PORT (6440). Clients,
    /// rate and events are divided among them. Certificate files are read on these machines.
    #[arg(long, value_delimiter = ',')]
    pub agents: Vec<String>,
    /// A file with the secret that agents and coordinators share. Default: WEIR_BENCH_TOKEN in the
    /// environment.
    #[arg(long)]
    pub token_file: Option<PathBuf>,
    /// Resume TLS sessions. Default: each connection makes a full handshake, as most clients of both
    /// databases do.
    #[arg(long, alias = "tls_resume")]
    pub tls_resume: bool,
    /// Local addresses to connect from. Default: the system's choice, and on loopback as many of 127.0.0.x
    /// as the ports need.
    #[arg(long = "source", value_delimiter = ',')]
    pub sources: Vec<IpAddr>,
    /// Processes whose CPU time and memory to report: NAME=PID,...
    #[arg(long, value_delimiter = ',', value_parser = parse_pid)]
    pub pids: Vec<(String, u32)>,
    /// Workload, servers, tables. Last: its headings hold for all that follows.
    #[command(flatten)]
    pub table: TableArgs,
}

/// How sysbench sends queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PsMode {
    /// Prepared.
    Auto,
    /// As text.
    Disable,
}

/// What `agent` takes.
#[derive(Debug, Clone, clap::Args)]
pub struct AgentArgs {
    /// Address to listen on for coordinators.
    #[arg(long, default_value = "127.0.0.1:6440")]
    pub listen: String,
    /// A file with the secret that agents and coordinators share. Default: WEIR_BENCH_TOKEN in the
    /// environment.
    #[arg(long)]
    pub token_file: Option<PathBuf>,
}

/// What `ramp` takes.
#[derive(Debug, Clone, clap::Args)]
pub struct RampArgs {
    /// The load of each level. --connections is the highest level (default 1024), --time the maximum time of
    /// a level.
    #[command(flatten)]
    pub run: RunArgs,
    /// Connections of the first level.
    #[arg(long, default_value_t = 1)]
    pub from: u32,
    /// Minimum time of a level, in seconds.
    #[arg(long, default_value_t = 5.0)]
    pub min_time: f64,
    /// End a level early when half the 95% confidence interval of its throughput is below this percentage.
    #[arg(long, default_value_t = 2.0)]
    pub precision: f64,
    /// Report how many clients keep the mean latency below this limit, in milliseconds. Default: 10, 100 and
    /// 1000.
    #[arg(long)]
    pub latency_limit: Option<f64>,
}

impl RampArgs {
    /// Connections of the highest level.
    pub fn connections_max(&self) -> u32 {
        if self.run.connections > 1 { self.run.connections } else { RAMP_CONNECTIONS }
    }

    /// The ladder these arguments describe.
    ///
    /// # Errors
    /// An option is out of its range, does not fit a ramp (`--rate`, `--every`, `--agents`), or a URL cannot
    /// be resolved.
    pub fn ramp(&self) -> Result<Ramp, String> {
        let run = RunArgs {
            warmup: if self.run.warmup > 0.0 { self.run.warmup } else { RAMP_WARM_UP_S },
            connections: self.from.max(1),
            ..self.run.clone()
        };
        if run.rate.is_some() || run.every.is_some() {
            return Err("a ramp finds out how much can be done; --rate and --every would fix it".to_owned());
        }
        if !run.agents.is_empty() {
            return Err("a ramp runs on this machine only: no --agents".to_owned());
        }
        Ok(Ramp {
            plan: run.plan()?,
            from: self.from,
            max: self.connections_max(),
            min_time: seconds("min-time", positive("min-time", self.min_time)?)?,
            precision: positive("precision", self.precision)? / 100.0,
            latency_limit_ms: self.latency_limit.map(|ms| positive("latency-limit", ms)).transpose()?,
        })
    }
}

fn workloads_help() -> String {
    let mut text = "Workloads:\n".to_owned();
    for (name, about) in NAMES {
        text.push_str(&format!("  {name:<22} {about}\n"));
    }
    text
}

fn parse_pid(text: &str) -> Result<(String, u32), String> {
    let (name, pid) = text.split_once('=').ok_or("expected NAME=PID")?;
    Ok((name.to_owned(), pid.parse().map_err(|_| format!("'{pid}' is not a process id"))?))
}

fn seconds(name: &str, value: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(value).map_err(|_| format!("--{name}: {value} is not a time in seconds"))
}

fn positive(name: &str, value: f64) -> Result<f64, String> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(format!("--{name} must be above 0")) }
}

/// When events of an open loop are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Arrival {
    /// At equal intervals.
    Constant,
    /// At random times, like independent users.
    Poisson,
}

fn parse_think(text: &str) -> Result<Think, String> {
    let (exponential, number) = text.strip_prefix("exp:").map_or((false, text), |rest| (true, rest));
    let mean_s: f64 = number.parse().map_err(|_| format!("'{text}' is not a time in seconds"))?;
    positive("think-time", mean_s)?;
    Ok(Think { mean_s, exponential })
}

impl TableArgs {
    /// Where the servers are, by `--url` or in sysbench's words.
    ///
    /// # Errors
    /// The options in the words of sysbench contradict each other, or the environment lacks a password.
    pub fn urls(&self) -> Result<Vec<String>, String> {
        if self.urls.is_empty() {
            return self.sysbench.urls();
        }
        self.urls.iter().map(|url| weir_config::url_with_password(url)).collect()
    }

    fn resolve(&self, connections: u32) -> Result<(Vec<Url>, Arc<dyn Workload>), String> {
        let urls = self.urls()?.iter().map(|text| Url::parse(text)).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = urls.first() else { return Err("no --url given".to_owned()) };
        let mut options = self.options.clone();
        let workload = self.sysbench.workload(&self.workload);
        match (&self.script, workload.as_str()) {
            (Some(file), "script") => options.file = Some(file.clone()),
            (Some(other), _) => return Err(format!("did not expect '{}'", other.display())),
            (None, _) => {}
        }
        let params = Params { dialect: first.dialect, connections, options };
        Ok((urls, Arc::from(workloads::by_name(&workload, &params)?)))
    }
}

impl RunArgs {
    /// The plan these arguments describe.
    ///
    /// # Errors
    /// An option is out of its range, options contradict each other, the workload is not known, or a URL
    /// cannot be resolved.
    pub fn plan(&self) -> Result<Plan, String> {
        let (mut servers, workload) = self.table.resolve(self.connections)?;
        if self.tls_resume {
            servers = servers.iter().map(Url::resuming).collect::<Result<_, _>>()?;
        }
        let plan = Plan::new(servers, workload, self.connections);
        Ok(Plan {
            threads: self.event_loops.unwrap_or(plan.threads),
            mode: match self.db_ps_mode {
                Some(PsMode::Auto) => Mode::Prepared,
                Some(PsMode::Disable) => Mode::Simple,
                None => self.protocol_mode,
            },
            on_connect: self.on_connect.clone(),
            pace: self.pace()?,
            think: self.think_time,
            ignored: self.ignored().unwrap_or(plan.ignored),
            events: (self.events > 0).then_some(self.events),
            warm_up: seconds("warmup", self.warmup)?,
            time: self.recorded_time()?,
            report_interval: (self.report_interval > 0).then(|| Duration::from_secs(self.report_interval)),
            connect_rate: self.connect_rate.map(|rate| positive("connect-rate", rate)).transpose()?,
            connect_timeout: seconds("connect-timeout", positive("connect-timeout", self.connect_timeout)?)?,
            query_timeout: seconds("query-timeout", positive("query-timeout", self.query_timeout)?)?,
            sources: self.sources.clone(),
            watched: self.pids.clone(),
            ..plan
        })
    }

    fn recorded_time(&self) -> Result<Duration, String> {
        if self.time == 0.0 && self.events > 0 {
            return Ok(UNLIMITED);
        }
        if self.time == 0.0 {
            return Err("--time 0 would never end: say how many --events".to_owned());
        }
        seconds("time", positive("time", self.time)?)
    }

    fn pace(&self) -> Result<Pace, String> {
        Ok(match (self.rate, self.every) {
            (None, None) => Pace::Closed,
            (Some(rate), _) => {
                Pace::Open { rate: positive("rate", rate)?, poisson: self.arrival == Arrival::Poisson }
            }
            (None, Some(every)) => Pace::Every(seconds("every", positive("every", every)?)?),
        })
    }

    fn ignored(&self) -> Option<Ignored> {
        match self.ignore_errors.as_slice() {
            [] => None,
            [word] if word == "all" => Some(Ignored::All),
            [word] if word == "none" => Some(Ignored::Codes(Vec::new())),
            codes => Some(Ignored::Codes(codes.to_vec())),
        }
    }
}

/// Does what the arguments say; the result is the exit code.
pub fn run(args: &BenchArgs, control: &Arc<Control>) -> u8 {
    let outcome = match &args.command {
        BenchCommand::Prepare(table) => prepare(table),
        BenchCommand::Cleanup(table) => cleanup(table),
        BenchCommand::Run(run) => return bench(run, control),
        BenchCommand::Ramp(args) => return ramp(args, control),
        BenchCommand::Agent(args) => return agent(args, control),
        BenchCommand::Compare(args) => {
            return match compare::run(args) {
                Ok(missed) => {
                    if missed {
                        EXIT_MISSED
                    } else {
                        EXIT_OK
                    }
                }
                Err(text) => complain(EXIT_RUNTIME, &text),
            };
        }
    };
    match outcome {
        Ok(()) => EXIT_OK,
        Err((code, text)) => complain(code, &text),
    }
}

fn complain(code: u8, text: &str) -> u8 {
    eprintln!("weir bench: {text}");
    code
}

fn prepare(args: &PrepareArgs) -> Result<(), (u8, String)> {
    let (urls, workload) = args.table.resolve(1).map_err(|text| (EXIT_USAGE, text))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.unwrap_or(cores * 2);
    for url in &urls {
        let bar = ProgressBar::new(0).with_style(
            ProgressStyle::with_template("{wide_bar} {human_pos} of {human_len} rows, {per_sec}, {eta} left")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        prepare::prepare(url, workload.as_ref(), threads, &mut |done, all| {
            bar.set_length(all);
            bar.set_position(done);
        })
        .map_err(|error| (EXIT_RUNTIME, format!("{url}: {error}")))?;
        bar.finish_and_clear();
        println!("{url}: {} is prepared", workload.name());
    }
    Ok(())
}

fn cleanup(args: &TableArgs) -> Result<(), (u8, String)> {
    let (urls, workload) = args.resolve(1).map_err(|text| (EXIT_USAGE, text))?;
    for url in &urls {
        prepare::cleanup(url, workload.as_ref())
            .map_err(|error| (EXIT_RUNTIME, format!("{url}: {error}")))?;
        println!("{url}: {} is cleaned up", workload.name());
    }
    Ok(())
}

fn bench(args: &RunArgs, control: &Arc<Control>) -> u8 {
    let plan = match args.plan() {
        Ok(plan) => plan,
        Err(text) => return complain(EXIT_USAGE, &text),
    };
    let mut live = Live::new(args.report_interval);
    let hear = &mut |progress: Progress<'_>| live.hear(&progress);
    let outcome = match args.agents.as_slice() {
        [] => run_plan(plan, control, hear),
        agents => run_on_agents(args, &plan, agents, control, hear),
    };
    let result = match outcome {
        Ok(result) => result,
        Err(RunError::Plan(text)) => return complain(EXIT_USAGE, &text),
        Err(error @ (RunError::Server(_) | RunError::Io(_))) => {
            return complain(EXIT_RUNTIME, &error.to_string());
        }
    };
    print!("{}", result.to_text());
    if let Err(text) = save(args, &result) {
        return complain(EXIT_RUNTIME, &text);
    }
    exit_code(&result)
}

fn run_on_agents(
    args: &RunArgs,
    plan: &Plan,
    addresses: &[String],
    control: &Arc<Control>,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<RunResult, RunError> {
    if !args.pids.is_empty() {
        return Err(RunError::Plan(
            "--pids are of one machine: watch them there, without --agents".to_owned(),
        ));
    }
    let secret = Secret::find(args.token_file.as_deref()).map_err(RunError::Plan)?;
    let addresses = agents::addresses(addresses).map_err(RunError::Plan)?;
    let script = args.table.script.as_deref().map(std::fs::read_to_string).transpose()?;
    // The agents read the same command line: what is said of a run is said once.
    let arguments: Vec<String> = std::env::args().skip_while(|word| word != "run").collect();
    let jobs = agents::jobs(plan, addresses.len(), &arguments, script);
    agents::run(plan, &addresses, jobs, &secret, control, observer)
}

/// An agent's own reading of a command line.
#[derive(clap::Parser)]
struct JobLine {
    #[command(subcommand)]
    command: BenchCommand,
}

/// The plan of an agent's part of a run.
///
/// # Errors
/// The coordinator's command line cannot be understood here, its script cannot be written, or it describes
/// no valid plan.
pub fn plan_of_job(job: &Job) -> Result<Plan, String> {
    let words = std::iter::once("bench").chain(job.arguments.iter().map(String::as_str));
    let line = <JobLine as clap::Parser>::try_parse_from(words).map_err(|error| error.to_string())?;
    let BenchCommand::Run(mut args) = line.command else { return Err("the job is no run".to_owned()) };
    if let (Some(script), Some(path)) = (&job.script, &mut args.table.script) {
        // The coordinator's file is not here.
        *path = std::env::temp_dir().join(format!("weir-agent-{}.sql", std::process::id()));
        std::fs::write(&*path, script).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    // The workload knows of all clients, so that each does what it does on one machine.
    args.connections = job.of;
    let plan = args.plan();
    if let (Some(_), Some(path)) = (&job.script, &args.table.script) {
        // It is read.
        let _ = std::fs::remove_file(path);
    }
    let plan = plan?;
    let share = f64::from(job.connections) / f64::from(job.of.max(1));
    let pace = match plan.pace {
        Pace::Open { rate, poisson } => Pace::Open { rate: rate * share, poisson },
        other => other,
    };
    Ok(Plan {
        connections: job.connections,
        first_client: job.first_client,
        events: job.events,
        connect_rate: plan.connect_rate.map(|rate| rate * share),
        pace,
        ..plan
    })
}

fn agent(args: &AgentArgs, control: &Arc<Control>) -> u8 {
    let secret = match Secret::find(args.token_file.as_deref()) {
        Ok(secret) => secret,
        Err(text) => return complain(EXIT_USAGE, &text),
    };
    let bound = Agent::bind(&args.listen, secret, Arc::clone(control))
        .and_then(|agent| agent.address().map(|address| (agent, address)));
    match bound {
        Ok((agent, address)) => {
            println!("weir bench agent: listening on {address}");
            agent.serve(&|text| eprintln!("{text}"));
            EXIT_OK
        }
        Err(text) => complain(EXIT_RUNTIME, &text),
    }
}

fn ramp(args: &RampArgs, control: &Arc<Control>) -> u8 {
    let ladder = match args.ramp() {
        Ok(ladder) => ladder,
        Err(text) => return complain(EXIT_USAGE, &text),
    };
    println!("{}", ramp::HEADING);
    let found =
        ramp::climb(&ladder, control, &mut |level| println!("{level}"), &mut |text| eprintln!("{text}"));
    let found = match found {
        Ok(found) => found,
        Err(RunError::Plan(text)) => return complain(EXIT_USAGE, &text),
        Err(error) => return complain(EXIT_RUNTIME, &error.to_string()),
    };
    print!("\n{}", found.to_text());
    let files = [
        (&args.run.json, found.to_json()),
        (&args.run.csv, found.to_csv()),
        (&args.run.report, report::html::write(&found.page())),
    ];
    for (path, text) in files {
        if let Some(path) = path
            && let Err(text) = report::save(path, &text)
        {
            return complain(EXIT_RUNTIME, &text);
        }
    }
    EXIT_OK
}

/// Writes the files that were asked for.
fn save(args: &RunArgs, result: &RunResult) -> Result<(), String> {
    if let Some(path) = &args.json {
        report::save(path, &result.to_json())?;
    }
    if let Some(path) = &args.csv {
        report::save(path, &report::run::seconds_csv(result))?;
    }
    if let Some(path) = &args.report {
        report::save(path, &report::html::write(&report::run::page(result)))?;
    }
    Ok(())
}

fn exit_code(report: &RunResult) -> u8 {
    let failed = report.errors > 0 || report.checks.iter().any(|check| !check.passed);
    if failed || report.is_incomplete() { EXIT_MISSED } else { EXIT_OK }
}

/// The live report on the terminal.
struct Live {
    every_s: u64,
    gathered: Interval,
    gathered_s: u64,
    terminal: bool,
    shown: u32,
}

impl Live {
    fn new(every_s: u64) -> Live {
        let terminal = std::io::stderr().is_terminal();
        Live { every_s, gathered: Interval::default(), gathered_s: 0, terminal, shown: 0 }
    }

    fn hear(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Remark(text) => eprintln!("{text}"),
            Progress::Connecting { connected, given_up, of } if self.terminal && *of >= 1000 => {
                if connected + given_up != self.shown {
                    self.shown = connected + given_up;
                    eprint!("\rconnecting: {connected} of {of}");
                    // Progress only: a terminal that has gone does not matter.
                    let _ = std::io::stderr().flush();
                }
            }
            Progress::Connecting { .. } => {}
            Progress::Started { connected } => {
                let (begin, end) = if self.shown > 0 { ("\r", "            ") } else { ("", "") };
                eprintln!("{begin}connected: {connected}{end}");
            }
            Progress::Second(interval) => self.second(interval),
        }
    }

    fn second(&mut self, interval: &Interval) {
        if self.every_s == 0 {
            return;
        }
        (self.gathered.connected, self.gathered.busy, self.gathered.queued) = (0, 0, 0);
        self.gathered.merge(interval);
        self.gathered_s += 1;
        if self.gathered_s >= self.every_s {
            println!("{}", live_line(interval.number + 1, self.gathered_s, &self.gathered));
            (self.gathered, self.gathered_s) = (Interval::default(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Bench {
        #[command(flatten)]
        args: BenchArgs,
    }

    fn run_args(line: &str) -> Result<RunArgs, String> {
        let bench = Bench::try_parse_from(line.split_whitespace()).map_err(|e| e.to_string())?;
        match bench.args.command {
            BenchCommand::Run(run) => Ok(*run),
            BenchCommand::Prepare(_)
            | BenchCommand::Cleanup(_)
            | BenchCommand::Ramp(_)
            | BenchCommand::Agent(_)
            | BenchCommand::Compare(_) => Err("not run".to_owned()),
        }
    }

    #[test]
    fn a_full_command_line() {
        let plan = run_args(
            "bench run oltp_point_select --url mysql://a:b@127.0.0.1:1/d --url mysql://127.0.0.2 \
             --connections 30000 --time 60 --every 3 --event-loops 2 --protocol-mode prepared --json x.json \
             --report-interval 5 --pids weir=12,db=34 --table-size 500 --source 127.0.0.9,127.0.0.10",
        )
        .unwrap()
        .plan()
        .unwrap();
        assert_eq!((plan.servers.len(), plan.connections, plan.threads), (2, 30_000, 2));
        assert_eq!((plan.pace, plan.mode), (Pace::Every(Duration::from_secs(3)), Mode::Prepared));
        assert_eq!(plan.watched, [("weir".to_owned(), 12), ("db".to_owned(), 34)]);
        assert_eq!((plan.sources.len(), plan.time), (2, Duration::from_secs(60)));
        assert_eq!(plan.workload.name(), "oltp_point_select");
    }

    #[test]
    fn paces() {
        let plan = |more: &str| {
            run_args(&format!("bench run select_one --url postgres://127.0.0.1 {more}"))
                .unwrap()
                .plan()
                .unwrap()
        };
        assert_eq!(plan("--rate 50").pace, Pace::Open { rate: 50.0, poisson: true });
        assert_eq!(plan("--rate 50 --arrival constant").pace, Pace::Open { rate: 50.0, poisson: false });
        assert_eq!(plan("--every 2").pace, Pace::Every(Duration::from_secs(2)));
        assert_eq!(plan("--think-time 0.5").think, Some(Think { mean_s: 0.5, exponential: false }));
        assert_eq!(plan("--think-time exp:0.5").think, Some(Think { mean_s: 0.5, exponential: true }));
    }

    #[test]
    fn names_of_sysbench_are_understood() {
        let plan = run_args(
            "bench run oltp_read_write --url mysql://a@127.0.0.1/d --tables 4 --table_size=500 --rand-type=special \
             --point_selects=2 --range_selects=off --skip-trx=on --mysql-ignore-errors=1213,1062 --report_interval=0",
        )
        .unwrap()
        .plan()
        .unwrap();
        assert_eq!(plan.ignored, Ignored::Codes(vec!["1213".to_owned(), "1062".to_owned()]));
        let options = plan.workload.options();
        for (name, value) in [
            ("tables", "4"),
            ("table-size", "500"),
            ("distribution", "special"),
            ("point-selects", "2"),
            ("skip-trx", "on"),
        ] {
            assert_eq!(options[name], value, "{name}");
        }
        assert!(plan.report_interval.is_none());
    }

    #[test]
    fn a_command_line_of_sysbench_means_what_it_means_there() {
        let of_0_5 = "bench run oltp.lua --num-threads=16 --max-time=30 --max-requests=500 --oltp-tables-count=4 \
                      --oltp-table-size=1000 --oltp-range-size=7 --oltp-point-selects=3 --oltp-simple-ranges=2 \
                      --oltp-dist-type=special --oltp-skip-trx=on --oltp-index-updates=2 --oltp-non-index-updates=3 --oltp-read-only=off \
                      --mysql-host=127.0.0.1 --mysql-user=me --mysql-password=secret --mysql-db=test --mysql-table-engine=innodb";
        let plan = run_args(of_0_5).unwrap().plan().unwrap();
        assert_eq!((plan.connections, plan.time, plan.events), (16, Duration::from_secs(30), Some(500)));
        assert_eq!(plan.workload.name(), "oltp_read_write");
        let options = plan.workload.options();
        let all = [
            ("tables", "4"),
            ("table-size", "1000"),
            ("range-size", "7"),
            ("point-selects", "3"),
            ("skip-trx", "on"),
        ];
        for (name, value) in all.into_iter().chain([
            ("index-updates", "2"),
            ("non-index-updates", "3"),
            ("simple-ranges", "2"),
        ]) {
            assert_eq!(options[name], value, "{name}");
        }
        assert!(
            plan.servers[0].shown.contains("me") && plan.servers[0].shown.contains("127.0.0.1"),
            "{}",
            plan.servers[0]
        );

        let of_1_0 = "bench run oltp_read_only --threads=8 --time=0 --events=100 --db-driver=pgsql --pgsql-host=127.0.0.1 \
                      --pgsql-port=6432 --pgsql-user=me --pgsql-db=app --db-ps-mode=auto --tables=2 --table-size=50 --report-interval=1";
        let plan = run_args(of_1_0).unwrap().plan().unwrap();
        assert_eq!((plan.connections, plan.events, plan.mode), (8, Some(100), Mode::Prepared));
        assert!(plan.time > Duration::from_secs(24 * 3600), "by its events only");
        assert_eq!(plan.servers[0].dialect, crate::url::Dialect::Postgres);
        assert!(
            run_args("bench run select_one --url postgres://h --mysql-user=a").is_err(),
            "one or the other"
        );
    }

    #[test]
    fn what_is_asked_for_first_is_first_in_the_help() {
        let help = Bench::try_parse_from(["bench", "run", "--help"]).err().unwrap().to_string();
        let at = |option: &str| help.find(option).unwrap_or_else(|| panic!("{option} is not in the help"));
        assert!(at("--connections") < at("--time <") && at("--time <") < at("--url"), "{help}");
        assert!(at("--time <") < at("--tables"), "{help}");
    }

    #[test]
    fn mistakes_are_told() {
        let url = "--url postgres://127.0.0.1";
        assert!(run_args("bench run select_one").unwrap_err().contains("--url"));
        assert!(run_args(&format!("bench run select_one {url} --rate 1 --every 1")).is_err());
        assert!(run_args(&format!("bench run select_one {url} --pids 12")).is_err());
        let plan = |line: &str| run_args(line).unwrap().plan().map(|_| ()).unwrap_err();
        assert!(plan(&format!("bench run nonsense {url}")).contains("oltp_point_select"));
        assert!(plan(&format!("bench run select_one {url} --rate 0")).contains("--rate"));
        assert!(plan(&format!("bench run select_one {url} --time 0")).contains("--time"));
        assert!(plan("bench run select_one --url http://x").contains("http"));
    }
}
