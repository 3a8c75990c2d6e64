//! The plan of a run: target, number of clients, rate, duration.
//!
//! Owns: the description, its defaults, and how it is divided among workers. Must not know: sockets.

use crate::url::{Dialect, Url};
use crate::workloads::Workload;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// How queries are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// As text with the values in place.
    Simple,
    /// Parsed and executed each time, values apart.
    Extended,
    /// Prepared once for each connection, then executed.
    Prepared,
}

impl Mode {
    /// The word on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Simple => "simple",
            Mode::Extended => "extended",
            Mode::Prepared => "prepared",
        }
    }
}

/// When a client begins its next event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// At once when the last one has ended.
    Closed,
    /// So many events each second over all clients, whether earlier ones have ended or not. Any free client
    /// takes the next; an event that finds none waits, and counts from the moment it was due.
    Open {
        /// Events each second.
        rate: f64,
        /// At random moments (a Poisson process) instead of equal distances.
        poisson: bool,
    },
    /// One event of each client each so often, whether the last one has ended or not; the clients are spread
    /// evenly over the period. An event that had to wait for the one before it counts from the moment it was
    /// due.
    Every(Duration),
}

/// The pause of a client of a closed loop between two events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Think {
    /// Its mean, in seconds.
    pub mean_s: f64,
    /// Exponentially distributed instead of constant.
    pub exponential: bool,
}

/// Errors that are part of the game: the event is rolled back and begun again, as sysbench does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ignored {
    /// Those with these codes.
    Codes(Vec<String>),
    /// All that a server says.
    All,
}

impl Ignored {
    /// sysbench's choice: deadlocks, lock wait timeouts, records that changed; serialization failures, unique
    /// keys.
    pub fn default_of(dialect: Dialect) -> Ignored {
        let codes: &[&str] = match dialect {
            Dialect::Postgres => &["40P01", "40001", "23505"],
            Dialect::Mysql => &["1213", "1020", "1205"],
        };
        Ignored::Codes(codes.iter().map(|code| (*code).to_owned()).collect())
    }

    /// This one is.
    pub fn has(&self, code: &str) -> bool {
        match self {
            Ignored::All => true,
            Ignored::Codes(codes) => codes.iter().any(|known| known == code),
        }
    }
}

/// How long replies are awaited after the end when nobody says, beside each client's turn.
pub const DRAIN: Duration = Duration::from_secs(5);

/// A client's turn behind the end: clients that all wait are answered one after the other, and a database
/// that is shared with them answers 3,000 a second at least.
const TURN: Duration = Duration::from_micros(300);

/// A run.
#[derive(Clone)]
pub struct Plan {
    /// Servers; clients are dealt out to them in turn. All of one dialect, at least one.
    pub servers: Vec<Url>,
    /// What the clients do.
    pub workload: Arc<dyn Workload>,
    /// Clients.
    pub connections: u32,
    /// Number of the first client: other agents have those before.
    pub first_client: u32,
    /// Connections that other runs of this process hold at the same time: they need descriptors too.
    pub beside: u32,
    /// Event loops. More are started if descriptors would not suffice.
    pub threads: usize,
    /// Statements that each connection begins with, behind those of the workload. `:client_id` in them is the
    /// client's number.
    pub on_connect: Vec<String>,
    /// How queries are sent.
    pub mode: Mode,
    /// When.
    pub pace: Pace,
    /// Pause between two events of a client of a closed loop.
    pub think: Option<Think>,
    /// Errors after which an event is begun again.
    pub ignored: Ignored,
    /// The run ends when so many events have; `None`: by its time only.
    pub events: Option<u64>,
    /// Time before anything is recorded.
    pub warm_up: Duration,
    /// Time that is recorded.
    pub time: Duration,
    /// Time between two lines of the live report.
    pub report_interval: Option<Duration>,
    /// Connects begun each second at most, over all workers; `None`: as fast as they are accepted.
    pub connect_rate: Option<f64>,
    /// A connect or login that takes longer is an error.
    pub connect_timeout: Duration,
    /// A reply that takes longer is an error.
    pub query_timeout: Duration,
    /// How long replies are awaited after the end. With N clients that all wait it takes N / throughput until
    /// the last has come its turn.
    pub drain: Duration,
    /// Local addresses to connect from. Empty: chosen when one does not have enough ports.
    pub sources: Vec<IpAddr>,
    /// Processes whose CPU time and memory are watched: a name and a process id.
    pub watched: Vec<(String, u32)>,
}

/// What one worker does of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Number of the worker.
    pub worker: usize,
    /// Numbers of its clients.
    pub clients: Range<u32>,
}

impl Plan {
    /// A closed loop without a pause, for a quarter of a minute; all else is what the command line gives when
    /// nothing is said. At least one server.
    pub fn new(servers: Vec<Url>, workload: Arc<dyn Workload>, connections: u32) -> Plan {
        let dialect = servers.first().map_or(Dialect::Postgres, |url| url.dialect);
        Plan {
            threads: default_threads(&servers),
            servers,
            workload,
            connections,
            first_client: 0,
            beside: 0,
            on_connect: Vec::new(),
            mode: Mode::Simple,
            pace: Pace::Closed,
            think: None,
            ignored: Ignored::default_of(dialect),
            events: None,
            warm_up: Duration::ZERO,
            time: Duration::from_secs(15),
            report_interval: None,
            connect_rate: None,
            connect_timeout: Duration::from_secs(60),
            query_timeout: Duration::from_secs(60),
            drain: DRAIN + TURN * connections,
            sources: Vec::new(),
            watched: Vec::new(),
        }
    }

    /// Cuts the clients into one contiguous share for each worker.
    pub fn shares(&self, workers: usize) -> Vec<Share> {
        let (all, workers) = (u64::from(self.connections), workers.max(1));
        let cut = |n: usize| self.first_client + (all * n as u64 / workers as u64) as u32;
        (0..workers).map(|worker| Share { worker, clients: cut(worker)..cut(worker + 1) }).collect()
    }

    /// When client `client` is due for the first time after the start, and how long its period is. The
    /// first dues of all clients are equally far apart.
    pub fn due(&self, client: u32) -> Option<(Duration, Duration)> {
        let Pace::Every(period) = self.pace else { return None };
        // Neighbours in a share are due one after another, and the shares take turns.
        let own = client.saturating_sub(self.first_client);
        let nanos = period.as_nanos() * u128::from(own) / u128::from(self.connections.max(1));
        Some((Duration::from_nanos(nanos as u64), period))
    }
}

/// Event loops when nobody says how many: all cores for a server elsewhere; half of them, and at least
/// one, for a server on this machine, which needs the others.
pub fn default_threads(servers: &[Url]) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if servers.iter().all(|url| crate::sources::is_here(&url.target)) { (cores / 2).max(1) } else { cores }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::idle::Idle;

    fn plan(connections: u32, threads: usize, pace: Pace) -> Plan {
        let servers = vec![Url::parse("postgres://127.0.0.1").unwrap()];
        Plan { threads, pace, ..Plan::new(servers, Arc::new(Idle::silent()), connections) }
    }

    #[test]
    fn shares_cover_all_clients_once() {
        for (connections, workers) in [(10, 3), (1, 4), (30_000, 2), (7, 7)] {
            let shares = plan(connections, 1, Pace::Closed).shares(workers);
            assert_eq!(shares.len(), workers);
            assert_eq!(shares[0].clients.start, 0);
            assert_eq!(shares[workers - 1].clients.end, connections);
            for pair in shares.windows(2) {
                assert_eq!(pair[0].clients.end, pair[1].clients.start);
                assert!(pair[0].clients.len().abs_diff(pair[1].clients.len()) <= 1);
            }
        }
    }

    #[test]
    fn many_clients_that_wait_at_the_end_have_time_for_their_turns() {
        // 100,000 clients at 10,600 queries a second: the last reply came 9.4 s behind the end.
        assert!(plan(100_000, 1, Pace::Closed).drain >= Duration::from_secs(30));
        assert!(plan(1, 1, Pace::Closed).drain < Duration::from_secs(6));
    }

    #[test]
    fn dues_are_spread_evenly_over_the_period() {
        let plan = plan(6, 2, Pace::Every(Duration::from_secs(3)));
        let mut dues: Vec<_> = (0..6).map(|client| plan.due(client).unwrap().0).collect();
        dues.sort();
        let half = Duration::from_millis(500);
        assert_eq!(dues, (0..6).map(|n| half * n).collect::<Vec<_>>());
    }
}
