//! One server: its connection, its back, its holder.

pub use crate::books::ServerState;
use crate::books::{Post, Tenant};
use crate::dial::Dial;
use crate::ids::Key;
use crate::pool::{PoolId, Right};
use crate::stream::Stream;
use crate::wing::{Back, Wing};
use weir_net::Target;
use weir_wire::Boundary;

/// A connection to a database.
pub struct Server<W: Wing, S> {
    /// Its connection.
    pub stream: Stream<S>,
    /// Where it leads.
    pub target: Target,
    /// Its pool.
    pub pool: PoolId,
    /// Its place under the pool's limit.
    pub right: Right<W::Welcomes>,
    /// The settings it was logged in by ([`crate::settings::Settings::epoch`]).
    pub spec_epoch: u64,
    /// Login or life.
    pub phase: ServerPhase<W>,
    /// Who has it, which only the books change.
    pub post: Post,
    /// When its connect began (milliseconds of the worker's clock; the clock is the process's).
    pub opened_ms: u64,
    /// When it entered its state.
    pub since_ms: u64,
    /// Since when the request at its head is there, while it is shared (nanoseconds).
    pub head_since_ns: u64,
    /// Earliest timer that is armed for it; `u64::MAX`: none.
    pub armed_ms: u64,
    /// What has been done to it since its last client left.
    pub cleaning: Cleaning,
    /// Facts in single bits.
    pub is: ServerFlags,
}

/// Facts about a server.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerFlags {
    /// Not read from until its client has read.
    pub paused: bool,
    /// In the list of those to be written to at the end of the turn.
    pub dirty: bool,
    /// To be closed when next free.
    pub retire: bool,
    /// The client it serves is not read from until it takes its bytes.
    pub full: bool,
    /// There is an order to settle it.
    pub due: bool,
    /// A request of a client has been sent to it.
    pub used: bool,
    /// That its client keeps it while others wait is in the log.
    pub pin_logged: bool,
}

/// Login or life.
pub enum ServerPhase<W: Wing> {
    /// Connecting, then logging in.
    /// `None` for the moment in which it becomes a back.
    Login(Option<Box<Dial<W>>>),
    /// Logged in.
    Live(W::Back),
}

/// What a server does for a request before it comes to that has this long to be told of.
const PATIENCE_MS: u64 = 50;

/// From the first cancel of what is not to come to its end until the next.
pub const AGAIN_MS: u64 = 20;

/// A cancel that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CancelDue {
    /// What this client runs is to be cancelled.
    pub client: Key,
    /// From here on also while the server seems not to have come to it.
    pub late_ms: u64,
}

/// What has been done to a server since its last client left.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cleaning {
    /// Its last client left something behind that only a full reset removes.
    pub needs_reset: bool,
    /// A ROLLBACK was queued.
    pub rolled_back: bool,
    /// A reset was queued.
    pub reset: bool,
    /// What it still ran was cancelled, for the last time.
    pub cancelled: bool,
    /// What it still runs is not to come to its end. The server may not have come to it when the cancel did:
    /// after so long another one follows, and after twice the time the next. 0: it has time to end by itself.
    pub again_ms: u64,
    /// A cancel that came before the server had come to what it is to end.
    pub cancel_due: Option<CancelDue>,
    /// Its last client logs in anew, which goes on when nothing of it is left here.
    pub awaited: Option<Key>,
}

impl Cleaning {
    /// How long what runs may go on now.
    pub fn patience_ms(&self, most_ms: u64) -> u64 {
        let again_ms = Some(self.again_ms).filter(|&ms| ms > 0);
        again_ms.unwrap_or(most_ms).min(most_ms).max(1)
    }
}

/// What is due where a server has taken long over what its last client has left running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// A cancel, and it may not be the last.
    Cancel,
    /// The last cancel.
    LastCancel,
    /// Nothing but to wait for the last one to be over.
    CancelOnItsWay,
    /// That did not help.
    GivenUp,
}

impl<W: Wing, S> Server<W, S> {
    /// Bytes of requests that the server has not taken yet.
    pub fn backlog(&self) -> usize {
        let held = match &self.phase {
            ServerPhase::Live(back) => back.held_bytes(),
            ServerPhase::Login { .. } => 0,
        };
        self.stream.output.len() + held
    }

    /// What this client runs is to be cancelled: true if that is at the head and the server is at it.
    /// Otherwise it is due later, as long as it is at the head.
    pub fn is_cancel_due(&mut self, client: Key, now_ms: u64) -> bool {
        let before = self.cleaning.cancel_due.filter(|due| due.client == client);
        let is_late = before.is_some_and(|due| due.late_ms <= now_ms);
        let late_ms = before.filter(|_| !is_late).map_or(now_ms + PATIENCE_MS, |due| due.late_ms);
        let back = self.back().filter(|back| back.head() == Some(client.raw()));
        let is_due = back.as_ref().is_some_and(|back| back.is_cancellable(is_late));
        let waits = back.is_some() && !is_due;
        self.cleaning.cancel_due = waits.then_some(CancelDue { client, late_ms });
        is_due
    }

    /// What its last client has left has had its time: what is due, and whether anything runs.
    pub fn late(&mut self, now_ms: u64, most_ms: u64) -> (Late, bool) {
        self.since_ms = now_ms;
        let is_held = self.post.is_held();
        let running = self.back().is_some_and(|back| back.queued() > 0);
        let cleaning = &mut self.cleaning;
        cleaning.again_ms = cleaning.again_ms.saturating_mul(2);
        let is_last = cleaning.again_ms == 0 || cleaning.again_ms >= most_ms;
        let late = match std::mem::replace(&mut cleaning.cancelled, is_last) {
            true if is_held => Late::CancelOnItsWay,
            true => Late::GivenUp,
            false if is_last => Late::LastCancel,
            false => Late::Cancel,
        };
        (late, running)
    }

    /// From when on the cancel that waits for what its client runs does not wait any longer.
    pub fn cancel_late_ms(&self) -> Option<u64> {
        let due = self.cleaning.cancel_due?;
        (self.state() == ServerState::Leased(due.client)).then_some(due.late_ms)
    }

    /// The back, once logged in.
    pub fn back(&mut self) -> Option<&mut W::Back> {
        match &mut self.phase {
            ServerPhase::Live(back) => Some(back),
            ServerPhase::Login { .. } => None,
        }
    }

    /// Nobody holds it, and what its last client has left is still there.
    pub fn is_to_be_cleaned(&self) -> bool {
        let in_transaction =
            matches!(&self.phase, ServerPhase::Live(back) if back.boundary() != Boundary::Idle);
        self.state() == ServerState::Cleaning && (self.cleaning.needs_reset || in_transaction)
    }

    /// Who has it.
    #[inline]
    pub fn state(&self) -> ServerState {
        self.post.state()
    }
}

impl<W: Wing, S> Tenant for Server<W, S> {
    #[inline]
    fn post(&self) -> &Post {
        &self.post
    }

    #[inline]
    fn post_mut(&mut self) -> &mut Post {
        &mut self.post
    }

    #[inline]
    fn pool(&self) -> PoolId {
        self.pool
    }
}
