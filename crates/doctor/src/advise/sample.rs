//! One sample: the connections at one moment, and counters that only grow.

use crate::database::connection::DbError;
use serde::Serialize;

/// What a connection does at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Runs a statement.
    Running,
    /// Runs a statement that waits for a lock of another transaction.
    WaitingForLock,
    /// In a transaction, and the server waits for the client.
    IdleInTransaction,
    /// Nothing.
    Idle,
    /// The user may not see it.
    Hidden,
}

/// Why a connection could not be shared between transactions, as far as it can be seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeps {
    /// LISTEN.
    Listen,
    /// Temporary tables.
    TemporaryTable,
    /// A lock of the session: advisory locks, GET_LOCK, LOCK TABLES.
    SessionLock,
    /// A cursor WITH HOLD.
    Cursor,
}

impl Keeps {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Keeps::Listen => "LISTEN",
            Keeps::TemporaryTable => "temporary tables",
            Keeps::SessionLock => "session locks",
            Keeps::Cursor => "cursors WITH HOLD",
        }
    }
}

/// Whose connection it is: what a pool belongs to, and the application for people.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Group {
    /// Database or schema; empty: none chosen.
    pub database: String,
    /// User.
    pub user: String,
}

/// One connection at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Seat {
    /// The same for as long as the connection lives, and for no other.
    pub id: String,
    /// Whose.
    pub group: Group,
    /// What it does.
    pub doing: Doing,
    /// Since when its transaction is open, in seconds.
    pub transaction_s: Option<f64>,
    /// Why it could not be shared.
    pub keeps: Option<Keeps>,
}

/// All connections at a moment, without the one that asks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// Clients' connections.
    pub seats: Vec<Seat>,
}

impl Snapshot {
    /// How many do this.
    pub fn count(&self, doing: Doing) -> u64 {
        self.seats.iter().filter(|seat| seat.doing == doing).count() as u64
    }

    /// Connections that would hold a server in transaction mode.
    pub fn held(&self) -> u64 {
        self.seats.iter().filter(|seat| is_held(seat.doing)).count() as u64
    }
}

/// A connection in this state would hold a server in transaction mode.
pub fn is_held(doing: Doing) -> bool {
    match doing {
        Doing::Running | Doing::WaitingForLock | Doing::IdleInTransaction => true,
        Doing::Idle | Doing::Hidden => false,
    }
}

/// Counters of the whole server since it began to count. `None`: this server does not have it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counters {
    /// Transactions that ended, where every statement is in one (PostgreSQL).
    pub transactions: Option<f64>,
    /// Of these or of the explicit ones, those rolled back.
    pub rollbacks: Option<f64>,
    /// Explicit COMMIT and ROLLBACK (MySQL).
    pub explicit: Option<f64>,
    /// Statements.
    pub statements: Option<f64>,
    /// Seconds that statements ran, over all connections.
    pub running_s: Option<f64>,
    /// Seconds that transactions waited for their client.
    pub idle_in_transaction_s: Option<f64>,
    /// Connections that were made.
    pub connects: Option<f64>,
    /// Connections that were refused because there were too many.
    pub refused: Option<f64>,
}

/// Cores of the database's machine, and who says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cores {
    /// How many.
    pub count: u64,
    /// Where it was read.
    pub from: String,
}

/// What does not change while it is watched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct About {
    /// `PostgreSQL 15.18`, `MariaDB 10.11.19`, `MySQL 9.7.0`.
    pub product: String,
    /// CPU time of the server for one connect, login and disconnect, as measured with servers of its kind, in
    /// seconds.
    pub connect_cpu_s: f64,
    /// Connections the server takes from ordinary users.
    pub slots: u64,
    /// The most there ever were since its start.
    pub most_ever: Option<u64>,
    /// Cores, if the server says.
    pub cores: Option<Cores>,
    /// What this user may not see, and how to let it.
    pub blind: Option<String>,
}

/// A database that is watched.
pub trait Source {
    /// What does not change.
    fn about(&mut self) -> Result<About, DbError>;
    /// The connections at this moment.
    fn snapshot(&mut self) -> Result<Snapshot, DbError>;
    /// The counters.
    fn counters(&mut self) -> Result<Counters, DbError>;
    /// Statements that the watching itself has run so far.
    fn own_statements(&self) -> u64;
}
