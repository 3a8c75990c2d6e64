//! One load from several machines: `weir bench agent` on each, and `--agents` on the coordinator.
//!
//! Owns: how a run is divided among agents, its common start, and merging their results: histograms are
//! merged, never averaged. Must not know: what is measured.
//!
//! Invariants: events begin on all agents at the same moment, with an accuracy of half the difference between
//! the network's two directions; when one agent fails, the others are stopped and the run has no result; an
//! agent without its coordinator ends its run.

mod agent;
mod wire;

pub use agent::Agent;
pub use wire::{Job, Secret};

use crate::clock;
use crate::plan::Plan;
use crate::record::gather::{Around, gather};
use crate::record::result::AgentLine;
use crate::record::{Interval, RunResult};
use crate::run::{Measured, Progress, RunError};
use crate::worker::Control;
use std::collections::BTreeMap;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};
use weir_tls::{Blocking, Connector, ConnectorSettings};
use wire::{AGENT, COORDINATOR, Line, Order, REPORT_BYTES_MAX, Report};

/// The port of an agent when nobody says another.
pub const PORT: u16 = 6440;

/// How long an agent may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Pings by which the way to an agent is measured.
const PINGS: u32 = 8;

/// Time between the decision to start and the start, beside the longest way.
const START_LEAD_NS: u64 = 200_000_000;

/// How long an agent may be silent behind the end of its run.
const SILENCE: Duration = Duration::from_secs(120);

/// Where agents listen: HOST or HOST:PORT.
///
/// # Errors
/// A text is not HOST or HOST:PORT, or an agent is named twice.
pub fn addresses(texts: &[String]) -> Result<Vec<String>, String> {
    let with_port = |text: &String| match text.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => Ok(text.clone()),
        None if !text.is_empty() => Ok(format!("{text}:{PORT}")),
        _ => Err(format!("--agents: '{text}' is not HOST or HOST:PORT")),
    };
    let mut found: Vec<String> = texts.iter().map(with_port).collect::<Result<_, _>>()?;
    found.dedup();
    if found.len() < texts.len() { Err("--agents names one twice".to_owned()) } else { Ok(found) }
}

/// Cuts a run into one job for each agent.
pub fn jobs(plan: &Plan, agents: usize, arguments: &[String], script: Option<String>) -> Vec<Job> {
    let agents = agents.max(1) as u64;
    let cut = |all: u64, n: u64| all * n / agents;
    let job = |n: u64| {
        let connections = u64::from(plan.connections);
        Job {
            arguments: arguments.to_vec(),
            script: script.clone(),
            first_client: cut(connections, n) as u32,
            connections: (cut(connections, n + 1) - cut(connections, n)) as u32,
            of: plan.connections,
            events: plan.events.map(|events| cut(events, n + 1) - cut(events, n)),
        }
    };
    (0..agents).map(job).collect()
}

/// A run on several machines. `plan` is the whole, `jobs` are its parts.
///
/// # Errors
/// [`RunError::Plan`]: the plan cannot be split among agents. [`RunError::Server`]: an agent cannot be
/// reached, refuses its part, or is lost during the run.
pub fn run(
    plan: &Plan,
    agents: &[String],
    jobs: Vec<Job>,
    secret: &Secret,
    control: &Arc<Control>,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<RunResult, RunError> {
    if jobs.iter().any(|job| job.connections == 0) {
        let text = format!("{} connections are too few for {} agents", plan.connections, agents.len());
        return Err(RunError::Plan(text));
    }
    let mut lines = Vec::new();
    for address in agents {
        let reached = reach(address, secret);
        lines.push(reached.map_err(|text| RunError::Server(format!("agent {address}: {text}")))?);
    }
    let (say, said) = channel();
    std::thread::scope(|scope| {
        let mut orders = Vec::new();
        for (n, ((line, way_ns), job)) in lines.into_iter().zip(jobs.clone()).enumerate() {
            let (order, ordered) = channel();
            let say = say.clone();
            scope.spawn(move || {
                if let Err(text) = converse(n, line, way_ns, job, &ordered, &say) {
                    // The run is over when nobody listens.
                    let _ = say.send((n, Report::Failed(text)));
                }
            });
            orders.push(order);
        }
        drop(say);
        let way_ns = 0;
        let mut run =
            Run { agents, orders, said, control, state: vec![State::default(); agents.len()], way_ns };
        let found = run.drive(plan, observer);
        // Those that are still at work end with their connection.
        run.orders.clear();
        Ok(merge(plan, agents, &jobs, found?))
    })
}

/// Connects, and both sides prove that they know the secret. With how long the way there and back takes.
fn reach(address: &str, secret: &Secret) -> Result<(Line, u64), String> {
    let text = |error: io::Error| error.to_string();
    let mut last = "no address".to_owned();
    let mut found = None;
    for address in address.to_socket_addrs().map_err(text)? {
        match TcpStream::connect_timeout(&address, ANSWER_TIMEOUT) {
            Ok(stream) => {
                found = Some(stream);
                break;
            }
            Err(error) => last = error.to_string(),
        }
    }
    let stream = found.ok_or(last)?;
    stream.set_nodelay(true).map_err(text)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(text)?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT)).map_err(text)?;
    let connector = Connector::new(&ConnectorSettings::default()).map_err(|error| error.to_string())?;
    let tls = connector.connect("localhost").map_err(|error| error.to_string())?;
    let no_agent = |error: io::Error| format!("this is no agent of weir bench: {error}");
    let mut line = Line::new(Blocking::handshake(tls, stream).map_err(no_agent)?);
    let end_point = line.end_point()?;
    let Report::Hello { version, nonce: theirs } = line.receive().map_err(no_agent)? else {
        return Err("this is no agent of weir bench: it does not say hello".to_owned());
    };
    let own_version = env!("CARGO_PKG_VERSION");
    let ours = rand::random();
    let proof = secret.proof(COORDINATOR, &ours, &theirs, &end_point);
    line.send(&Order::Prove { version: own_version.to_owned(), nonce: ours, proof }).map_err(text)?;
    match line.receive().map_err(text)? {
        Report::Welcome { proof } if secret.is_proof(&proof, AGENT, &theirs, &ours, &end_point) => {}
        Report::Welcome { .. } => return Err("it does not know the shared secret".to_owned()),
        Report::Failed(why) => return Err(why),
        _ => return Err("this is no agent of weir bench: it does not welcome".to_owned()),
    }
    if version != own_version {
        return Err(format!("it is weir {version}, this is {own_version}: they must be the same"));
    }
    line.bytes_max = REPORT_BYTES_MAX;
    let mut way_ns = u64::MAX;
    for _ in 0..PINGS {
        let sent_ns = clock::now_ns();
        line.send(&Order::Ping).map_err(text)?;
        match line.receive().map_err(text)? {
            Report::Pong => way_ns = way_ns.min(clock::now_ns() - sent_ns),
            _ => return Err("it does not answer a ping".to_owned()),
        }
    }
    Ok((line, way_ns))
}

/// What an agent's thread is told.
enum Command {
    /// Events begin at this moment of our clock.
    StartAt(u64),
    Stop,
}

/// Talks with one agent until its run is over.
fn converse(
    n: usize,
    mut line: Line,
    way_ns: u64,
    job: Job,
    orders: &Receiver<Command>,
    say: &Sender<(usize, Report)>,
) -> Result<(), String> {
    let lost = |error: io::Error| format!("the agent is gone: {error}");
    line.send(&Order::Job(Box::new(job))).map_err(lost)?;
    loop {
        match orders.try_recv() {
            Ok(Command::StartAt(at_ns)) => {
                let after_ns = at_ns.saturating_sub(clock::now_ns() + way_ns / 2);
                line.send(&Order::Start { after_ns }).map_err(lost)?;
            }
            Ok(Command::Stop) => line.send(&Order::Stop).map_err(lost)?,
            Err(TryRecvError::Empty) => {}
            // Nobody wants this run any more: the end of the connection ends it.
            Err(TryRecvError::Disconnected) => return Ok(()),
        }
        let Some(report) = line.poll::<Report>().map_err(lost)? else { continue };
        let is_last = matches!(report, Report::Done(_) | Report::Failed(_));
        if say.send((n, report)).is_err() || is_last {
            return Ok(());
        }
    }
}

/// What is known of one agent.
#[derive(Default, Clone, Copy)]
struct State {
    connected: u32,
    given_up: u32,
    ready: bool,
}

struct Run<'a> {
    agents: &'a [String],
    orders: Vec<Sender<Command>>,
    said: Receiver<(usize, Report)>,
    control: &'a Control,
    state: Vec<State>,
    way_ns: u64,
}

impl Run<'_> {
    /// Until all agents are done.
    fn drive(&mut self, plan: &Plan, observer: &mut dyn FnMut(Progress<'_>)) -> Result<Found, RunError> {
        let mut found = Found { parts: BTreeMap::new(), seconds: Vec::new(), connect_ns: 0 };
        let mut merged: BTreeMap<u64, (usize, Interval)> = BTreeMap::new();
        let (began_ns, mut heard, mut stopped) = (clock::now_ns(), Instant::now(), false);
        while found.parts.len() < self.agents.len() {
            if self.control.is_stopped() && !std::mem::replace(&mut stopped, true) {
                self.tell_all(|| Command::Stop);
            }
            let (n, report) = match self.said.recv_timeout(Duration::from_millis(50)) {
                Ok(said) => said,
                Err(RecvTimeoutError::Timeout) if heard.elapsed() < SILENCE + plan.time + plan.warm_up => {
                    continue;
                }
                Err(_) => return Err(RunError::Server("the agents are silent".to_owned())),
            };
            heard = Instant::now();
            match report {
                Report::Failed(text) => {
                    let address = self.agents.get(n).map_or("?", String::as_str);
                    return Err(RunError::Server(format!("agent {address}: {text}")));
                }
                Report::Remark(text) => {
                    let address = self.agents.get(n).map_or("?", String::as_str);
                    observer(Progress::Remark(&format!("agent {address}: {text}")));
                }
                Report::Connecting { connected, given_up } => {
                    self.state[n] = State { connected, given_up, ..self.state[n] };
                    let sum = |of: fn(&State) -> u32| self.state.iter().map(of).sum();
                    let (connected, given_up) = (sum(|s| s.connected), sum(|s| s.given_up));
                    observer(Progress::Connecting { connected, given_up, of: plan.connections });
                }
                Report::Ready { connected } => {
                    self.state[n] = State { connected, ready: true, ..self.state[n] };
                    if self.state.iter().all(|state| state.ready) {
                        found.connect_ns = clock::now_ns() - began_ns;
                        let at_ns = clock::now_ns() + START_LEAD_NS + self.way_ns;
                        self.tell_all(|| Command::StartAt(at_ns));
                        observer(Progress::Started {
                            connected: self.state.iter().map(|state| state.connected).sum(),
                        });
                    }
                }
                Report::Second(interval) => {
                    let (parts, sum) = merged.entry(interval.number).or_default();
                    sum.merge(&interval);
                    *parts += 1;
                    if *parts == self.agents.len()
                        && let Some((_, second)) = merged.remove(&interval.number)
                    {
                        observer(Progress::Second(&second));
                        found.seconds.push(second);
                    }
                }
                Report::Done(measured) => {
                    found.parts.insert(n, *measured);
                }
                Report::Hello { .. } | Report::Welcome { .. } | Report::Pong => {}
            }
        }
        Ok(found)
    }

    fn tell_all(&self, command: impl Fn() -> Command) {
        // Who has failed is heard by itself.
        self.orders.iter().for_each(|order| drop(order.send(command())));
    }
}

/// What the agents measured.
struct Found {
    parts: BTreeMap<usize, Measured>,
    seconds: Vec<Interval>,
    connect_ns: u64,
}

/// One result of all parts.
fn merge(plan: &Plan, agents: &[String], jobs: &[Job], found: Found) -> RunResult {
    let mut around = Around::default();
    let mut totals = crate::record::Totals::default();
    let mut watched = Vec::new();
    for ((address, job), (n, part)) in agents.iter().zip(jobs).zip(found.parts) {
        totals.merge(&part.totals);
        let seconds = (part.totals.recorded_ns as f64 / 1e9).max(1e-9);
        around.agents.push(AgentLine {
            address: address.clone(),
            connections: job.connections,
            connected: part.around.connected,
            queries: part.totals.queries,
            errors: part.totals.errors.total(),
            busiest_thread: part.totals.busiest_cpu_us as f64 / 1e6 / seconds,
            machine: part.around.machine.clone(),
        });
        around.connected += part.around.connected;
        around.workers += part.around.workers;
        around.remarks.extend(part.around.remarks.iter().map(|text| format!("agent {address}: {text}")));
        around.checks.extend(part.around.checks.iter().cloned());
        around.began_unix_ms = around.began_unix_ms.max(part.around.began_unix_ms);
        if n == 0 {
            around.machine = part.around.machine;
            around.server_versions = part.around.server_versions;
            around.transport = part.around.transport;
        }
        watched.extend(part.watched.into_iter().map(|mut process| {
            process.name = format!("agent {address}");
            process
        }));
    }
    around.connect_ns = found.connect_ns;
    gather(plan, around, &totals, &found.seconds, &watched)
}
