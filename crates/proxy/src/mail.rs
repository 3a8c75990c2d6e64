//! Messages between workers and the control thread.

use crate::console::Letter;
use crate::crypto::WorkDone;
use crate::ids::{Key, Kind};
use crate::line::Over;
use crate::pool::{Place, PoolEntry, PoolId, Right};
use crate::server::{Cleaning, ServerFlags};
use crate::wing::{MySql, Postgres, Wing};
use std::sync::Arc;
use weir_net::{Net, Peer, Target};
use weir_session::Protocol;
use weir_session::login::KillOutcome;

/// A message to a worker.
pub enum Mail<N: Net> {
    /// For the PostgreSQL hall.
    Postgres(WingMail<Postgres, N>),
    /// For the MySQL hall.
    MySql(WingMail<MySql, N>),
    /// There are new settings.
    Reload,
    /// A host has other addresses than before.
    Readdressed,
    /// Accept nobody new, and stop when all clients have left of their own accord.
    Leave,
    /// Accept nobody new, let transactions end, then stop.
    Drain,
    /// Stop now.
    Stop,
}

impl<N: Net> Mail<N> {
    /// The result of slow work, for the hall of this protocol.
    pub fn job(protocol: Protocol, kind: Kind, key: Key, done: WorkDone) -> Mail<N> {
        match protocol {
            Protocol::Postgres => Mail::Postgres(WingMail::Job { kind, key, done }),
            Protocol::Mysql => Mail::MySql(WingMail::Job { kind, key, done }),
        }
    }
}

/// A message to one hall of a worker.
pub enum WingMail<W: Wing, N: Net> {
    /// A client that another worker has accepted. Its seat here is taken.
    Client {
        /// Its connection.
        parcel: N::Parcel,
        /// Where it comes from.
        peer: Peer,
    },
    /// A server moves here.
    Server(Box<Transfer<W, N>>),
    /// Another worker has a waiter and nothing idle: send it one.
    Want {
        /// Of this pool.
        pool: Arc<PoolEntry<W::Welcomes>>,
        /// To this worker.
        from: usize,
    },
    /// A server of this pool was closed elsewhere: there is room under the limit.
    SlotFree {
        /// The pool.
        pool: Arc<PoolEntry<W::Welcomes>>,
    },
    /// Nobody has used these pools for long: let go of those of whom nobody here is a client.
    Sweep {
        /// Their numbers.
        pools: Arc<[PoolId]>,
    },
    /// The size of this pool was changed.
    Sized {
        /// The pool.
        pool: Arc<PoolEntry<W::Welcomes>>,
    },
    /// Another pool under the same limit leaves one of its places to a pool that lacks a server here.
    Place(Place<W::Welcomes>),
    /// A pool that shares a full limit with this one has a waiter: close an idle server of this one.
    Evict {
        /// The pool.
        pool: Arc<PoolEntry<W::Welcomes>>,
    },
    /// Something of the administration console.
    Console(Letter<W>),
    /// End a client or its running request.
    Kill(Kill),
    /// What became of a [`Kill`] that this worker asked for.
    KillDone {
        /// Who asked.
        asker: Key,
        /// The outcome.
        outcome: KillOutcome,
    },
    /// Slow work is done.
    Job {
        /// Client, server or canceller.
        kind: Kind,
        /// Which one.
        key: Key,
        /// The result.
        done: WorkDone,
    },
}

/// A request to end a client or what it runs.
pub struct Kill {
    /// Weir's number of the client.
    pub number: u32,
    /// What entitles the asker.
    pub warrant: Warrant,
    /// End only the running request.
    pub query_only: bool,
    /// Which worker asked, and which of its clients.
    pub asker: (usize, Key),
    /// For the number of a connection to a database: which one, and what of it its asker has seen.
    pub listed: Option<Listed>,
}

/// The number of a connection to a database, as its clients are shown it.
pub struct Listed {
    /// Where that database is.
    pub targets: crate::settings::Targets,
    /// When the asker last asked for such numbers (milliseconds of the process's clock); 0: never. What has
    /// come to that connection since is not what is meant.
    pub since_ms: u64,
    /// Workers that have looked.
    pub visited: usize,
}

/// What entitles somebody to kill.
pub enum Warrant {
    /// The secret the client was given (PostgreSQL).
    Secret(Box<[u8]>),
    /// Being logged in as this user (MySQL).
    User(Arc<str>),
}

/// A server on its way to another worker.
pub struct Transfer<W: Wing, N: Net> {
    /// Its connection.
    pub parcel: N::Parcel,
    /// The TLS over it.
    pub over: Option<Box<Over>>,
    /// The end of its bytes has been announced.
    pub hup: bool,
    /// Where it leads.
    pub target: Target,
    /// Its place under the limit of its pool.
    pub right: Right<W::Welcomes>,
    /// Its back, at an idle boundary with nothing owed.
    pub back: W::Back,
    /// Read and not yet understood: the beginning of something it says of its own accord.
    pub input: crate::pending::Pending,
    /// When its connect began.
    pub opened_ms: u64,
    /// As in [`crate::server::Server`].
    pub spec_epoch: u64,
    /// As in [`crate::server::Server`].
    pub cleaning: Cleaning,
    /// As in [`crate::server::Server`].
    pub is: ServerFlags,
}
