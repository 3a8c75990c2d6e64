//! The document of `/api/live`, for whoever writes and whoever reads it.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Pools, and databases, that one document may have.
pub const MOST_ROWS: usize = 500;
/// So many when nobody says how many.
const ROWS: usize = 50;
/// Characters of a filter.
const MATCH_LENGTH: usize = 128;

/// The figures of one moment. Times are in microseconds where nothing else is said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Live {
    /// Weir's version.
    pub version: String,
    /// When this was looked at: milliseconds of a clock that only grows.
    pub at_ms: u64,
    /// The time before that which rates and percentiles are about.
    pub period_ms: u64,
    /// Since the start.
    pub uptime_s: u64,
    /// What Weir is at.
    pub state: State,
    /// Clients.
    pub clients: Clients,
    /// Clients that wait for a server.
    pub queue: Queue,
    /// Server connections.
    pub servers: Servers,
    /// Of all protocols together.
    pub all: ProtocolFigures,
    /// Of each protocol that has databases.
    pub protocols: Vec<ProtocolFigures>,
    /// Pins by reason, those that have occurred.
    pub pins: Vec<PinFigures>,
    /// Errors by kind, those that have occurred.
    pub faults: Vec<FaultFigures>,
    /// Databases, those in trouble first.
    pub databases: Vec<DatabaseFigures>,
    /// How many there are.
    pub databases_total: usize,
    /// Pools in the wanted order.
    pub pools: Vec<PoolFigures>,
    /// How many match the filter.
    pub pools_matching: usize,
    /// How many there are.
    pub pools_total: usize,
    /// Statements that have taken most time lately, for those who send the token.
    pub statements: Vec<StatementFigures>,
    /// What `weir doctor` found at the start.
    pub warnings: Vec<String>,
    /// Weir has further warnings and details for those who send the token.
    pub withheld: bool,
}

/// What Weir is at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It serves.
    #[default]
    Ready,
    /// All databases are paused.
    Paused,
    /// It takes no new clients and will end.
    Stopping,
}

impl State {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Paused => "paused",
            State::Stopping => "stopping",
        }
    }
}

/// Clients.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clients {
    /// Connected, those that log in included.
    pub connected: u64,
    /// Logging in.
    pub logging_in: u64,
    /// Most there may be.
    pub limit: u64,
    /// Completed logins.
    pub logins_per_s: f64,
    /// Refused logins.
    pub refusals_per_s: f64,
}

/// Clients that wait for a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// How many.
    pub waiting: u64,
    /// How long the one has waited that has waited longest.
    pub longest_us: u64,
}

/// Server connections of all pools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Servers {
    /// In every state.
    pub open: u64,
    /// Free.
    pub idle: u64,
    /// Lent to a client, or with requests in their queue.
    pub active: u64,
    /// Connecting, logging in, being reset or checked.
    pub other: u64,
    /// Kept by a client beyond its transaction.
    pub pinned: u64,
    /// Most that the pools there are may have.
    pub limit: u64,
}

/// Percentiles of one period.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// Half took less.
    pub p50_us: u64,
    /// 95% took less.
    pub p95_us: u64,
    /// 99% took less.
    pub p99_us: u64,
}

/// What passed in one period.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProtocolFigures {
    /// `postgres` or `mysql`; empty: all.
    pub protocol: String,
    /// Requests answered.
    pub requests_per_s: f64,
    /// From clients.
    pub received_bytes_per_s: f64,
    /// To clients.
    pub sent_bytes_per_s: f64,
    /// From the moment a request is sent to a server to the end of its reply, without the wait.
    pub query: Times,
    /// Requests that had to wait for a server.
    pub waits_per_s: f64,
    /// How long these waited.
    pub wait: Times,
}

/// A statement, in the last 10 to 20 seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatementFigures {
    /// `postgres` or `mysql`.
    pub protocol: String,
    /// The database's name in Weir.
    pub database: String,
    /// The user the servers are logged in as.
    pub user: String,
    /// Without its values.
    pub statement: String,
    /// Calls.
    pub calls_per_s: f64,
    /// Those of them that were answered with an error.
    pub errors_per_s: f64,
    /// Rows that were returned or changed.
    pub rows_per_s: f64,
    /// How many calls were in progress on average: sent to a server and not answered.
    pub in_progress: f64,
    /// How long servers took, without the wait for one.
    pub times: Times,
}

/// Pins for one reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PinFigures {
    /// The reason, as in the metrics.
    pub reason: String,
    /// Since the start.
    pub total: u64,
    /// Now.
    pub per_s: f64,
}

/// Errors of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FaultFigures {
    /// The kind, as in the metrics.
    pub kind: String,
    /// What it means.
    pub meaning: String,
    /// Since the start.
    pub total: u64,
    /// Now.
    pub per_s: f64,
}

/// Whether a database can be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DatabaseState {
    /// The last attempt to open a server has failed.
    Failing,
    /// An operator has paused it.
    Paused,
    /// An operator has disabled it for new clients.
    Disabled,
    /// Its first server is being opened.
    Connecting,
    /// It has servers.
    Up,
    /// It has none, and the last attempt to open one, if there was any, has succeeded: nobody uses it.
    #[default]
    Unused,
}

impl DatabaseState {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            DatabaseState::Failing => "failing",
            DatabaseState::Paused => "paused",
            DatabaseState::Disabled => "disabled",
            DatabaseState::Connecting => "connecting",
            DatabaseState::Up => "up",
            DatabaseState::Unused => "unused",
        }
    }
}

/// A database.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DatabaseFigures {
    /// `postgres` or `mysql`.
    pub protocol: String,
    /// The name that clients use.
    pub database: String,
    /// Whether it can be reached.
    pub state: DatabaseState,
    /// Its pools.
    pub pools: usize,
    /// Its servers.
    pub servers: usize,
    /// Its clients that wait.
    pub waiting: usize,
    /// The last failed attempt to open a server.
    pub fault: Option<LastFault>,
}

/// A failed attempt to open a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastFault {
    /// The kind, as in the metrics.
    pub kind: String,
    /// What that means.
    pub meaning: String,
    /// How long it was ago.
    pub ago_s: u64,
    /// The words of the log, for those who send the token.
    pub detail: Option<String>,
}

/// A pool: the servers of one database and user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolFigures {
    /// `postgres` or `mysql`.
    pub protocol: String,
    /// The name that clients use.
    pub database: String,
    /// The user.
    pub user: String,
    /// `session`, `transaction` or `statement`.
    pub mode: String,
    /// Requests answered.
    pub requests_per_s: f64,
    /// From sending a request to a server to the end of its answer, on average.
    pub query_mean_us: u64,
    /// In the queue, on average over all requests.
    pub wait_mean_us: u64,
    /// Clients that wait.
    pub waiting: usize,
    /// How long the one has waited that has waited longest.
    pub longest_us: u64,
    /// Servers it has.
    pub servers: usize,
    /// Those of them that are not idle.
    pub active: usize,
    /// Most it may have.
    pub limit: usize,
    /// Those of them that a client keeps beyond its transaction; `None`: not counted for this pool alone.
    pub pinned: Option<u64>,
    /// An operator has paused it.
    pub paused: bool,
    /// The last attempt to open a server has failed.
    pub failing: bool,
}

/// The order of pools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// Requests each second, and clients that wait.
    #[default]
    Activity,
    /// Clients that wait, then how long.
    Waiting,
    /// Average time of a query.
    Latency,
    /// Servers.
    Servers,
    /// Database, then user.
    Name,
}

impl Sort {
    /// All orders.
    pub const ALL: [Sort; 5] = [Sort::Activity, Sort::Waiting, Sort::Latency, Sort::Servers, Sort::Name];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Activity => "activity",
            Sort::Waiting => "waiting",
            Sort::Latency => "latency",
            Sort::Servers => "servers",
            Sort::Name => "name",
        }
    }

    /// The order of two pools; names decide between equals, so that rows do not jump.
    pub fn compare(self, a: &PoolFigures, b: &PoolFigures) -> Ordering {
        let activity = |pool: &PoolFigures| pool.requests_per_s + pool.waiting as f64;
        let first = match self {
            Sort::Activity => activity(b).total_cmp(&activity(a)),
            Sort::Waiting => (b.waiting, b.longest_us).cmp(&(a.waiting, a.longest_us)),
            Sort::Latency => b.query_mean_us.cmp(&a.query_mean_us),
            Sort::Servers => (b.servers, b.active).cmp(&(a.servers, a.active)),
            Sort::Name => Ordering::Equal,
        };
        first.then_with(|| (&a.protocol, &a.database, &a.user).cmp(&(&b.protocol, &b.database, &b.user)))
    }
}

/// What a request for the document asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// At most so many pools, and so many databases.
    pub top: Option<usize>,
    /// The order of the pools.
    pub sort: Sort,
    /// Only pools and databases with this in their names.
    #[serde(rename = "match")]
    pub filter: String,
}

impl Asked {
    /// How many rows there are to be.
    pub fn rows(&self) -> usize {
        self.top.unwrap_or(ROWS).min(MOST_ROWS)
    }

    /// The filter in lower case.
    pub(crate) fn needle(&self) -> String {
        self.filter.chars().take(MATCH_LENGTH).flat_map(char::to_lowercase).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_ordered_by_what_is_asked_and_by_name_between_equals() {
        let pool = |database: &str, requests_per_s, waiting, servers| PoolFigures {
            database: database.into(),
            requests_per_s,
            waiting,
            servers,
            ..PoolFigures::default()
        };
        let pools = [pool("b", 10.0, 0, 1), pool("a", 10.0, 0, 1), pool("stuck", 0.0, 500, 2)];
        let ordered = |sort: Sort| {
            let mut pools = pools.to_vec();
            pools.sort_by(|a, b| sort.compare(a, b));
            pools.into_iter().map(|pool| pool.database).collect::<Vec<_>>()
        };
        for sort in [Sort::Activity, Sort::Waiting, Sort::Servers] {
            assert_eq!(ordered(sort), ["stuck", "a", "b"], "{}", sort.name());
        }
        for sort in [Sort::Name, Sort::Latency] {
            assert_eq!(ordered(sort), ["a", "b", "stuck"], "{}", sort.name());
        }
    }

    #[test]
    fn a_reader_takes_a_document_with_more_or_less_in_it() {
        let live: Live = serde_json::from_str("{\"version\":\"9\",\"new\":[1]}").unwrap();
        assert_eq!(live, Live { version: "9".into(), ..Live::default() });
        let text = serde_json::to_string(&live).unwrap();
        assert_eq!(serde_json::from_str::<Live>(&text).unwrap(), live);
        assert!(text.contains("\"state\":\"ready\""));
    }

    #[test]
    fn what_is_asked_is_bounded() {
        assert_eq!(Asked::default().rows(), ROWS);
        assert_eq!(Asked { top: Some(usize::MAX), ..Asked::default() }.rows(), MOST_ROWS);
        let asked = Asked { filter: "X".repeat(1_000_000), ..Asked::default() };
        assert_eq!(asked.needle().len(), MATCH_LENGTH);
    }
}
