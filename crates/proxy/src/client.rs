//! One client: its connection, its front, what waits for it.

use crate::ids::Key;
use crate::line::Line;
use crate::pending::Pending;
use crate::pool::{Link, Linked, PoolId};
use crate::wing::Wing;
use weir_auth::Login;
use weir_net::Peer;
use weir_wire::{Fault, Pins};

/// A connection from an application.
pub struct Client<W: Wing, S> {
    /// Its connection.
    pub line: Line<S>,
    /// Where it comes from.
    pub peer: Peer,
    /// Login, session, or the last words.
    pub phase: Phase<W>,
    /// Read and not yet understood. While `pending` is a request, it starts with that request.
    pub input: Pending,
    /// Written and not yet taken by the kernel.
    pub output: Pending,
    /// Its pool, once it has proved itself.
    pub pool: Option<PoolId>,
    /// The user it logged in as, if that is not the pool's: its number among the names of the hall; 0: the
    /// pool's. For the log.
    pub user: u16,
    /// While it logs in on top of a session: that session.
    pub before: Option<Box<Before<W>>>,
    /// The server it holds.
    pub lease: Option<Key>,
    /// The server that carries its request among those of others. Never together with a lease.
    pub ride: Option<Key>,
    /// The server that is not read from until this client has read its replies.
    pub chokes: Option<Key>,
    /// What it waits in the queue for.
    pub pending: Wants,
    /// Its place in the queue.
    pub link: Link,
    /// Since when it waits in the queue (nanoseconds of the worker's clock).
    pub wait_since_ns: u64,
    /// When its oldest unanswered request was sent on.
    pub request_since_ns: u64,
    /// The fingerprint of the request under way, if others might have stood behind it; 0: of none or of
    /// several.
    pub fingerprint: u32,
    /// When it last did or got anything, for the idle timeouts (milliseconds of the worker's clock).
    pub active_ms: u64,
    /// When it last asked for the numbers of the database's connections; 0: never.
    pub listed_ms: u64,
    /// When its transaction began; 0: none is open.
    pub transaction_since_ms: u64,
    /// Earliest timer that is armed for it; `u64::MAX`: none.
    pub armed_ms: u64,
    /// The reasons already counted for which it keeps its server.
    pub pinned: Pins,
    /// Requests sent on and not answered.
    pub inflight: u32,
    /// When it connected (seconds of the worker's clock).
    pub connected_s: u32,
    /// Facts in single bits.
    pub is: Flags,
}

/// Facts about a client.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flags {
    /// The kernel may have more bytes from it.
    pub readable: bool,
    /// The end of its stream has been announced: read until it is met.
    pub hup: bool,
    /// It is gone in both directions.
    pub hangup: bool,
    /// The request it has under way on its lease could stand among those of others, if it is the only one;
    /// see [`Client::is_quick`].
    pub quick: bool,
    /// It will send nothing more.
    pub eof: bool,
    /// It has taken bytes after that: it has ended only its own direction, and still reads.
    pub reads_on: bool,
    /// What it runs was cancelled, because it may be gone.
    pub given_up: bool,
    /// A request was sent on in part and more of it must come.
    pub part_open: bool,
    /// A timer is set for a batch whose end has not come.
    pub gathering: bool,
    /// A timer is set for how long it may keep its server in case it asks that something.
    pub kept: bool,
    /// Its login has been ended with a greeting.
    pub greeted: bool,
    /// It is counted among those who log in.
    pub counted: bool,
    /// It has proved itself, and is counted as a client of `max_client_conn`.
    pub proven: bool,
    /// It comes by a load balancer, whose PROXY header is still to come.
    pub header_due: bool,
    /// Its login waits for room in a turn.
    pub queued: bool,
    /// Its login has waited, and its turn has come.
    pub called: bool,
    /// Not any server will do for the request it waits with.
    pub choosy: bool,
    /// A server is being opened for it alone.
    pub opening: bool,
    /// Its transport has failed; it is to be closed.
    pub broken: bool,
    /// It is a client of the administration console: the hall has its seat.
    pub console: bool,
}

/// Where a client is in its life.
pub enum Phase<W: Wing> {
    /// Proving itself.
    Login(Box<LoginPhase<W>>),
    /// At work.
    Session(W::Front),
    /// The last words are on their way; then the socket closes.
    Closing,
}

/// A session on top of which its client logs in.
pub struct Before<W: Wing> {
    /// Goes on if that login is refused, on some servers.
    pub front: W::Front,
    /// Its pool.
    pub pool: Option<PoolId>,
    /// Its user, as the client's.
    pub user: u16,
}

/// What a login needs until it is over.
pub struct LoginPhase<W: Wing> {
    /// The machine.
    pub accept: W::Accept,
    /// Who it says it is.
    pub login: Option<Login>,
    /// Slow work is under way elsewhere: its bytes must wait.
    pub busy: bool,
    /// Bytes it has sent so far.
    pub bytes: usize,
    /// It has given a wrong password, and is told so then.
    pub refused: Option<(u64, Box<Fault>)>,
}

/// What a client waits in the queue for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// Nothing.
    Nothing,
    /// A server for the request at the start of `input`.
    Request {
        /// Bytes of it.
        len: u32,
        /// It is whole.
        whole: bool,
        /// It may stand behind the requests of others on a server that is shared.
        shares: bool,
    },
    /// The end of its request, which is under way on `ride`. The bytes stay at the start of `input` until it
    /// is answered, so that another server can take it.
    Carried {
        /// Bytes of it.
        len: u32,
    },
    /// A server that confirms its login settings.
    Welcome,
}

impl<W: Wing, S> Client<W, S> {
    /// The front, once logged in.
    pub fn front(&mut self) -> Option<&mut W::Front> {
        match &mut self.phase {
            Phase::Session(front) => Some(front),
            Phase::Login(_) | Phase::Closing => None,
        }
    }

    /// Since when it logs in. Bytes it sends do not buy it more time.
    pub fn active_since_login_ms(&self) -> u64 {
        self.request_since_ns / 1_000_000
    }

    /// The server that has something of it under way or to itself.
    pub fn server(&self) -> Option<Key> {
        self.lease.or(self.ride)
    }

    /// It waits, or would, for a place among the requests of others.
    pub fn shares(&self) -> bool {
        matches!(self.pending, Wants::Request { shares: true, .. })
    }

    /// It has one request under way on its lease, nothing keeps it there beyond that, and others may stand
    /// behind it.
    pub fn is_quick(&self) -> bool {
        self.is.quick
            && self.inflight == 1
            && self.lease.is_some()
            && self.pinned.is_empty()
            && self.pending == Wants::Nothing
            && !self.is.part_open
    }

    /// From now on what it waits for is a server of its own.
    pub fn wants_alone(&mut self) {
        if let Wants::Request { shares, .. } = &mut self.pending {
            *shares = false;
        }
    }

    /// It has said its last while a request of it runs, and nothing shows that it is still there: a client
    /// that closes its connection looks so, and so does one that has ended its own direction and waits for
    /// its answer.
    pub fn may_be_gone(&self) -> bool {
        (self.is.hup || self.is.eof) && self.inflight > 0 && !self.is.reads_on
    }

    /// Nothing more of it will run: it has ended, and all it has sent before has begun; or it was given up.
    pub fn has_said_all(&self) -> bool {
        self.is.given_up || self.is.eof && self.input.is_empty()
    }

    /// It stands in the queue.
    pub fn is_waiting(&self) -> bool {
        self.link.is_linked()
    }
}

impl<W: Wing, S> Linked for Client<W, S> {
    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wing::{MySql, Postgres};
    use weir_net::socket::Socket;

    #[test]
    fn a_client_without_tls_pays_for_a_pointer() {
        assert_eq!(size_of::<Line<Socket>>(), 16);
        assert_eq!(size_of::<Option<Key>>(), size_of::<Key>());
        // Hundred thousands of them are idle: what makes them larger needs a reason. The last eight bytes say when each
        // has connected, which SHOW CLIENTS shows.
        let sizes = (size_of::<Client<Postgres, Socket>>(), size_of::<Client<MySql, Socket>>());
        assert!(sizes.0 <= 520 && sizes.1 <= 592, "{sizes:?}");
    }
}
