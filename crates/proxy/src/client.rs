//! One client: its connection, its front, its pending work.

use crate::books::{Alike, Claim, Claimant};
use crate::ids::Key;
use crate::pool::PoolId;
use crate::settings::Visitor;
use crate::silent::Silence;
use crate::stream::Stream;
use crate::wing::Wing;
use std::sync::Arc;
use weir_config::Learnt;
use weir_net::Peer;
use weir_session::login::AcceptStep;
use weir_session::{Front, Login};
use weir_wire::{Fault, Needs};

/// A connection from an application.
pub struct Client<W: Wing, S> {
    /// Its connection. While it wants a request served or rides, what was read starts with that request.
    pub stream: Stream<S>,
    /// Where it comes from.
    pub peer: Peer,
    /// Login, session, or the last words.
    pub phase: Phase<W>,
    /// Its pool, once it has proved itself.
    pub pool: Option<PoolId>,
    /// The user it logged in as, if that is not the pool's: its number among the names of the hall; 0: the
    /// pool's. For the log.
    pub user: u16,
    /// While it logs in on top of a session: that session.
    pub before: Option<Box<Before<W>>>,
    /// What it wants or holds, which only the books change.
    pub claim: Claim,
    /// The server that is not read from until this client has read its replies.
    pub chokes: Option<Key>,
    /// When its oldest unanswered request was sent on.
    pub request_since_ns: u64,
    /// [`mark_of`] the request under way; 0: of none or of several.
    pub fingerprint: u32,
    /// When it last did or got anything, for the idle timeouts (milliseconds of the worker's clock).
    pub active_ms: u64,
    /// When it last asked for the numbers of the database's connections; 0: never.
    pub listed_ms: u64,
    /// When the first request of its transaction was sent on; 0: none is open.
    pub transaction_since_ns: u64,
    /// Earliest timer that is armed for it; `u64::MAX`: none.
    pub armed_ms: u64,
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
    /// It is gone in both directions.
    pub hangup: bool,
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
    /// Who listens for it, if it is not only its server.
    pub listens: Listens,
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
    /// It has begun a transaction in which it has asked nothing, and which holds no server.
    pub empty: bool,
    /// Its transport has failed; it is to be closed.
    pub broken: bool,
    /// It is a client of the administration console: the hall has its seat.
    pub console: bool,
}

/// Who listens for a client: a byte, for there are many clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listens {
    /// Its server, or nobody.
    #[default]
    Here,
    /// Its server, and a timer is set for how long.
    Lingers,
    /// Its server, which is being asked to stop.
    Goes,
    /// Another connection.
    Away,
    /// Another connection, and a server is being asked to listen again.
    Returns,
}

impl Listens {
    /// What the client asks must wait.
    pub fn moves(self) -> bool {
        matches!(self, Listens::Goes | Listens::Returns)
    }

    /// Another connection listens for it.
    pub fn is_away(self) -> bool {
        matches!(self, Listens::Away | Listens::Returns)
    }
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
    /// What a database has said of it, where no file lists it.
    pub learnt: Option<Arc<Learnt>>,
    /// Slow work is under way elsewhere: its bytes must wait.
    pub busy: bool,
    /// The work is somebody else's, who may never answer.
    pub vouching: bool,
    /// Bytes it has sent so far.
    pub bytes: usize,
    /// It has given a wrong password, and is told so then.
    pub refused: Option<(u64, Box<Fault>)>,
    /// What it asks for, once the server that it has left is clean.
    pub later: Option<AcceptStep>,
}

impl<W: Wing> LoginPhase<W> {
    /// A login that begins.
    pub fn new(accept: W::Accept) -> Self {
        LoginPhase {
            accept,
            login: None,
            learnt: None,
            busy: false,
            vouching: false,
            bytes: 0,
            refused: None,
            later: None,
        }
    }
}

/// Pause of a login after which it may be given up for another.
const SLOW_LOGIN_MS: u64 = 1_000;

impl<W: Wing, S> Client<W, S> {
    /// As it stands at the door.
    pub fn visitor(&self) -> Visitor<'_> {
        Visitor { peer: &self.peer, secured: self.stream.line.secured() }
    }

    /// It has been told that its login is through: what its bytes are packed by holds from here on.
    pub fn greeted(&mut self) {
        self.is.greeted = true;
        self.before = None;
        if let Some(packing) = self.front().and_then(|front| front.take_packing()) {
            self.stream.pack(packing);
        }
    }

    /// A reply has come to its end: how long that took, and, if its transaction ends with it and had several
    /// requests, how long that did.
    pub fn answered(&mut self, now_ns: u64, ends_transaction: bool) -> (u64, Option<u64>) {
        let asked_ns = std::mem::replace(&mut self.request_since_ns, now_ns);
        self.active_ms = now_ns / 1_000_000;
        let since_ns = match ends_transaction {
            true => std::mem::take(&mut self.transaction_since_ns),
            false => 0,
        };
        let had_several = since_ns != 0 && since_ns != asked_ns;
        (now_ns.saturating_sub(asked_ns), had_several.then(|| now_ns.saturating_sub(since_ns)))
    }

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

    /// The server it has to itself.
    #[inline]
    pub fn lease(&self) -> Option<Key> {
        self.claim.lease()
    }

    /// The server that has something of it under way or to itself.
    #[inline]
    pub fn server(&self) -> Option<Key> {
        self.claim.server()
    }

    /// It waits, or would, for a place among the requests of others.
    pub fn shares(&self) -> bool {
        self.claim.shares()
    }

    /// It has one request under way on its lease, nothing keeps it there beyond that, and others may stand
    /// behind it.
    pub fn is_quick(&self) -> bool {
        self.claim.is_quick() && self.inflight == 1 && !self.is.part_open
    }

    /// It has said its last while a request of it runs, and nothing shows that it is still there: a client
    /// that closes its connection looks so, and so does one that has ended its own direction and waits for
    /// its answer.
    pub fn may_be_gone(&self) -> bool {
        (self.stream.line.hup || self.is.eof) && self.inflight > 0 && !self.is.reads_on
    }

    /// Nothing more of it will run: it has ended, and all it has sent before has begun; or it was given up.
    pub fn has_said_all(&self) -> bool {
        self.is.given_up || self.is.eof && self.stream.input.is_empty()
    }

    /// It stands in the queue.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.claim.is_waiting()
    }

    /// A request of these needs was found.
    pub fn note_needs(&mut self, whole: bool, needs: Needs) {
        let alone = whole && self.inflight == 0;
        self.is.choosy = needs.choosy;
        self.claim.alike = if alone && needs.alike { Alike::Yes } else { Alike::No };
        self.fingerprint = if alone { mark_of(needs) } else { 0 };
    }
}

/// The fingerprint of a request, odd if others may stand behind it; 0: it has none.
pub fn mark_of(needs: Needs) -> u32 {
    match needs.fingerprint {
        0 => 0,
        fingerprint if needs.shareable => fingerprint | 1,
        // Not 0 either.
        fingerprint => (fingerprint & !1).max(2),
    }
}

/// Others may stand behind a request with this mark.
pub fn is_shareable(mark: u32) -> bool {
    mark & 1 == 1
}

/// What a client has said of its login so far.
pub fn silence<W: Wing, S>(client: Option<&Client<W, S>>, now_ms: u64) -> Silence {
    let Some(client) = client else { return Silence::Over };
    let Phase::Login(phase) = &client.phase else { return Silence::Over };
    let is_due =
        (!phase.busy || phase.vouching) && !client.is.queued && client.active_ms + SLOW_LOGIN_MS <= now_ms;
    match (phase.bytes, is_due) {
        (0, _) if client.stream.input.is_empty() => Silence::NotAByte,
        (_, true) => Silence::Stalled,
        (_, false) => Silence::Begun,
    }
}

impl<W: Wing, S> Claimant for Client<W, S> {
    #[inline]
    fn claim(&self) -> &Claim {
        &self.claim
    }

    #[inline]
    fn claim_mut(&mut self) -> &mut Claim {
        &mut self.claim
    }

    #[inline]
    fn pool(&self) -> Option<PoolId> {
        self.pool
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Line;
    use crate::wing::{MySql, Postgres};
    use weir_net::socket::Socket;

    #[test]
    fn a_client_without_tls_pays_for_a_pointer() {
        assert_eq!(size_of::<Line<Socket>>(), 16);
        assert_eq!(size_of::<Option<Key>>(), size_of::<Key>());
        // Hundred thousands of them are idle: what makes them larger needs a reason. The last eight bytes say
        // when each has connected, which SHOW CLIENTS shows; on MySQL as many count which FOUND_ROWS() it is,
        // and eight more tell the client from all others that have had its number. What an execution wants of
        // its copy, which was looked up for each question, costs the eight beyond,
        // and whether a reset begins with settings that are global no more another eight on MySQL.
        let sizes = (size_of::<Client<Postgres, Socket>>(), size_of::<Client<MySql, Socket>>());
        assert!(sizes.0 <= 520 && sizes.1 <= 624, "{sizes:?}");
    }
}
