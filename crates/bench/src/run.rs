//! A run from its plan to its report: workers started, the start given, intervals merged, processes
//! watched.
//!
//! Owns: threads and the moments of a run. Must not know: protocols, terminals.

use crate::client::Protocol;
use crate::client::blocking::Client;
use crate::client::mysql::Mysql;
use crate::client::postgres::Postgres;
use crate::clock;
use crate::plan::{Plan, Share};
use crate::procs::{Watched, usage};
use crate::record::gather::{Around, Classes, gather, machine};
use crate::record::result::CheckLine;
use crate::record::{Interval, RunResult, Totals};
use crate::sources::{Sources, is_here, port_range};
use crate::statement::Got;
use crate::url::Dialect;
use crate::worker::{Control, Shared, Worker};
use crate::workloads::Shape;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_net::fleet::{Fleet, Seat};
use weir_net::socket::SocketOptions;
use weir_net::tables;
use weir_tls::SslMode;

/// How often the driver looks at its workers while they connect.
const POLL: Duration = Duration::from_millis(20);

/// Time between the decision to start and the start, so that all workers hear of it before.
const START_LEAD_NS: u64 = 30_000_000;

/// How long the connect phase may stand still.
const STALLED_NS: u64 = 30_000_000_000;

/// What an observer of a run hears.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A sentence about the run: tables of their own, source addresses, remarks of the workload.
    Remark(&'a str),
    /// The connect phase goes on.
    Connecting {
        /// Clients logged in.
        connected: u32,
        /// Clients that have given up.
        given_up: u32,
        /// Clients in all.
        of: u32,
    },
    /// All clients that will be are connected; events begin.
    Started {
        /// Clients logged in.
        connected: u32,
    },
    /// One second of recorded time, all workers together.
    Second(&'a Interval),
}

/// Why there is no report.
#[derive(Debug)]
pub enum RunError {
    /// The plan cannot be carried out on this machine.
    Plan(String),
    /// The server cannot be used.
    Server(String),
    /// The system refused something.
    Io(io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Plan(text) | RunError::Server(text) => f.write_str(text),
            RunError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        RunError::Io(error)
    }
}

/// What one process measured, before it becomes a result.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// What is known beside.
    pub around: Around,
    /// The whole run.
    pub totals: Totals,
    /// Its seconds.
    pub seconds: Vec<Interval>,
    /// Processes; the last one is this.
    pub watched: Vec<Watched>,
}

/// Runs a plan. `control` may stop it early; `observer` hears how it goes, on the calling thread.
///
/// # Errors
/// [`RunError::Plan`]: the plan does not fit itself or this machine. [`RunError::Server`]: the server cannot
/// be reached or has not what the workload needs. Errors of single queries are counted in the result.
pub fn run(
    plan: Plan,
    control: &Arc<Control>,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<RunResult, RunError> {
    let described = plan.clone();
    let mut found = measure(plan, control, observer, &mut |_| Ok(clock::now_ns() + START_LEAD_NS))?;
    found.around.checks = check_behind(&described);
    Ok(gather(&described, found.around, &found.totals, &found.seconds, &found.watched))
}

/// Carries a plan out. When its clients are connected, `start` says when events begin, and may wait for that.
///
/// # Errors
/// As for [`run`], and what `start` returns.
pub fn measure(
    mut plan: Plan,
    control: &Arc<Control>,
    observer: &mut dyn FnMut(Progress<'_>),
    start: &mut dyn FnMut(u32) -> Result<u64, RunError>,
) -> Result<Measured, RunError> {
    let dialect = check(&plan)?;
    let mut watched: Vec<Watched> = plan.watched.iter().map(|(name, pid)| Watched::new(name, *pid)).collect();
    watched.push(Watched::new("weir bench", std::process::id()));
    if let Some(missing) = watched.iter().find(|w| w.before.is_none() && cfg!(target_os = "linux")) {
        return Err(RunError::Plan(format!(
            "--pids: there is no process {} ({})",
            missing.pid, missing.name
        )));
    }
    let mut remarks = Vec::new();
    let observer = &mut |progress: Progress<'_>| {
        if let Progress::Remark(text) = &progress {
            remarks.push((*text).to_owned());
        }
        observer(progress);
    };
    let is_here = plan.servers.iter().all(|url| is_here(&url.target));
    let mut around = Around { machine: machine(is_here), ..Around::default() };
    probe(&mut plan, &mut around, observer)?;
    let sources = choose_sources(&plan, observer)?;
    tables::raise_limit();
    let tables = tables::plan(u64::from(plan.connections) + u64::from(plan.beside), plan.threads);
    if !tables.enough {
        return Err(RunError::Plan(tables.text));
    }
    if tables.private {
        observer(Progress::Remark(&tables.text));
    }
    around.workers = tables.workers;
    let shares = plan.shares(tables.workers);
    let fleet = Fleet::new(tables, &[], SocketOptions::default())?;
    let classes = Classes::new(plan.workload.statements());
    let shared =
        Arc::new(Shared { plan, sources, classes, workers: shares.len(), control: Arc::clone(control) });
    let (sender, ticks) = channel();
    let mut workers = Vec::new();
    for share in shares {
        let seat = fleet.seat(share.worker, Vec::new())?;
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        workers.push(match dialect {
            Dialect::Postgres => spawn::<Postgres>(seat, shared, share, sender)?,
            Dialect::Mysql => spawn::<Mysql>(seat, shared, share, sender)?,
        });
    }
    drop(sender);
    let mut driver =
        Driver { shared: &shared, workers, ticks, watched, merged: BTreeMap::new(), seconds: Vec::new() };
    let totals = driver.drive(&mut around, observer, start)?;
    let (seconds, watched) = (driver.seconds, driver.watched);
    around.remarks = remarks;
    Ok(Measured { around, totals, seconds, watched })
}

fn unix_ms() -> u64 {
    // A clock before 1970 gives 0.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_millis() as u64)
}

fn check(plan: &Plan) -> Result<Dialect, RunError> {
    let Some(first) = plan.servers.first() else { return Err(RunError::Plan("no --url given".to_owned())) };
    if plan.servers.iter().any(|url| url.dialect != first.dialect) {
        return Err(RunError::Plan("all URLs of a run must be of one protocol".to_owned()));
    }
    if plan.connections == 0 {
        return Err(RunError::Plan("a run needs at least one connection".to_owned()));
    }
    Ok(first.dialect)
}

/// Looks, with one connection to each server, whether the run can succeed at all.
/// The answers are what the servers say of themselves. Its transport is what all others take.
fn probe(
    plan: &mut Plan,
    around: &mut Around,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<(), RunError> {
    let wanted = plan.servers.first().and_then(|url| url.tls.as_ref());
    around.transport.sslmode = wanted.map_or(SslMode::Disable, |tls| tls.mode).name().to_owned();
    around.transport.resume = wanted.is_some_and(|tls| tls.settings.sessions > 0);
    for (n, url) in plan.servers.iter_mut().enumerate() {
        let failed = |error| RunError::Server(format!("{url}: {error}"));
        let mut client = Client::connect(url).map_err(failed)?;
        client.set_timeout(Some(plan.query_timeout)).map_err(failed)?;
        if let Some(remark) = plan.workload.probe(&mut client).map_err(failed)? {
            observer(Progress::Remark(&remark));
        }
        around.server_versions.push(version(&mut client));
        let facts = client.facts();
        if let (Some(facts), 0) = (&facts, n) {
            around.transport.version = facts.version.to_owned();
            around.transport.cipher = facts.cipher.to_owned();
        }
        *url = url.decided(facts.is_some());
    }
    Ok(())
}

/// What must hold behind a run, at the first server. A check that cannot be made has failed.
pub fn check_behind(plan: &Plan) -> Vec<CheckLine> {
    let Some(url) = plan.servers.first() else { return Vec::new() };
    if !plan.workload.has_check() {
        return Vec::new();
    }
    let looked = Client::connect(url).and_then(|mut client| plan.workload.check(&mut client));
    looked.unwrap_or_else(|error| {
        vec![CheckLine { name: "checks".to_owned(), passed: false, text: error.to_string() }]
    })
}

/// Empty when the server does not know the question: it is only for the report.
fn version(client: &mut Client) -> String {
    let mut version = String::new();
    let asked = client.ask("SELECT version()", &mut |got| {
        if let Got::Text(text) = got {
            version = String::from_utf8_lossy(text).into_owned();
        }
    });
    asked.map_or_else(|_| String::new(), |()| version)
}

fn choose_sources(plan: &Plan, observer: &mut dyn FnMut(Progress<'_>)) -> Result<Vec<Sources>, RunError> {
    let each = plan.connections.div_ceil(plan.servers.len() as u32);
    let mut all = Vec::new();
    for url in &plan.servers {
        let sources =
            Sources::choose(&url.target, each, &plan.sources, port_range()).map_err(RunError::Plan)?;
        if !sources.is_empty() && plan.sources.is_empty() {
            let text = format!("ports: {each} connections to {url} come from {} addresses", sources.len());
            observer(Progress::Remark(&text));
        }
        all.push(sources);
    }
    Ok(all)
}

type WorkerThread = JoinHandle<io::Result<Totals>>;

fn spawn<P: Protocol>(
    seat: Seat,
    shared: Arc<Shared>,
    share: Share,
    ticks: Sender<(usize, Interval)>,
) -> io::Result<WorkerThread> {
    std::thread::Builder::new().name(format!("bench-{}", share.worker)).spawn(move || {
        let (kernel, _listeners) = seat.enter()?;
        Worker::<P>::new(kernel, shared, share, ticks).run()
    })
}

struct Driver<'a> {
    shared: &'a Shared,
    workers: Vec<WorkerThread>,
    ticks: Receiver<(usize, Interval)>,
    watched: Vec<Watched>,
    /// Seconds that not all workers have reported yet, with how many have.
    merged: BTreeMap<u64, (usize, Interval)>,
    seconds: Vec<Interval>,
}

impl Driver<'_> {
    fn drive(
        &mut self,
        around: &mut Around,
        observer: &mut dyn FnMut(Progress<'_>),
        start: &mut dyn FnMut(u32) -> Result<u64, RunError>,
    ) -> Result<Totals, RunError> {
        let connect_began = clock::now_ns();
        self.await_connects(observer)?;
        around.connect_ns = clock::now_ns() - connect_began;
        for process in &mut self.watched {
            process.connected = usage(process.pid);
        }
        let plan = &self.shared.plan;
        let connected = self.shared.control.connected();
        around.connected = connected;
        let start_ns = match start(connected) {
            Ok(start_ns) => start_ns,
            Err(error) => {
                self.shared.control.stop();
                self.join(observer)?;
                return Err(error);
            }
        };
        around.began_unix_ms = unix_ms();
        self.shared.control.start_at(start_ns);
        observer(Progress::Started { connected });
        let measure_ns = start_ns + plan.warm_up.as_nanos() as u64;
        let end_ns = measure_ns.saturating_add(plan.time.as_nanos() as u64);
        self.listen_until(measure_ns, observer);
        for process in &mut self.watched {
            process.begun = usage(process.pid);
        }
        self.listen_until(end_ns, observer);
        for process in &mut self.watched {
            process.ended = usage(process.pid);
        }
        self.join(observer)
    }

    /// Until every client is logged in or has given up.
    fn await_connects(&mut self, observer: &mut dyn FnMut(Progress<'_>)) -> Result<(), RunError> {
        let (control, of) = (&self.shared.control, self.shared.plan.connections);
        if self.shared.plan.workload.shape(0) == Shape::Connects {
            return Ok(());
        }
        let mut last = (0, clock::now_ns());
        loop {
            let (connected, given_up) = (control.connected(), control.given_up());
            observer(Progress::Connecting { connected, given_up, of });
            if connected + given_up >= of || control.is_stopped() {
                break;
            }
            if connected + given_up != last.0 {
                last = (connected + given_up, clock::now_ns());
            } else if clock::now_ns() - last.1 > STALLED_NS
                || self.workers.iter().any(JoinHandle::is_finished)
            {
                break;
            }
            std::thread::sleep(POLL);
        }
        if control.connected() > 0 || control.is_stopped() {
            return Ok(());
        }
        control.stop();
        let totals = self.join(observer)?;
        let why = totals.errors.iter().next().map_or("nobody answered".to_owned(), |(phase, code, error)| {
            format!("{} failed: {} ({code})", phase.name(), error.first_text)
        });
        Err(RunError::Server(format!("no client could connect: {why}")))
    }

    /// Passes seconds on until `until_ns`, a stop, or the end of all workers.
    fn listen_until(&mut self, until_ns: u64, observer: &mut dyn FnMut(Progress<'_>)) {
        loop {
            let left = until_ns.saturating_sub(clock::now_ns());
            if left == 0 || self.shared.control.is_stopped() {
                return;
            }
            // Short enough to notice a stop.
            match self.ticks.recv_timeout(Duration::from_nanos(left).min(Duration::from_millis(100))) {
                Ok((_, interval)) => self.merge(&interval, observer),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn merge(&mut self, interval: &Interval, observer: &mut dyn FnMut(Progress<'_>)) {
        let (heard, sum) = self.merged.entry(interval.number).or_default();
        sum.merge(interval);
        *heard += 1;
        if *heard == self.workers.len()
            && let Some((_, second)) = self.merged.remove(&interval.number)
        {
            observer(Progress::Second(&second));
            self.seconds.push(second);
        }
    }

    /// Waits for the workers and adds up what they recorded.
    fn join(&mut self, observer: &mut dyn FnMut(Progress<'_>)) -> Result<Totals, RunError> {
        self.shared.control.let_go();
        while let Ok((_, interval)) = self.ticks.recv() {
            self.merge(&interval, observer);
        }
        let mut totals = Totals::default();
        for worker in self.workers.drain(..) {
            match worker.join() {
                Ok(outcome) => totals.merge(&outcome?),
                Err(_) => {
                    return Err(RunError::Io(io::Error::other("a worker of the load generator panicked")));
                }
            }
        }
        Ok(totals)
    }
}
