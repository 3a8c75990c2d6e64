//! The deadline of a client or server. It follows from the state; the timer that is armed for it is lazy
//! (`clock.rs`).

use super::Hall;
use crate::books::Alike;
use crate::client::{Client, Phase};
use crate::context::Cx;
use crate::ids::{Key, Kind, Tag};
use crate::server::{Server, ServerPhase, ServerState};
use crate::settings::Timeouts;
use crate::wing::{Back, Front, Wing};
use weir_net::Net;
use weir_wire::{Boundary, FaultKind};

/// The last words of a client have this long to leave and to be read.
pub(super) const CLOSING_MS: u64 = 2_000;

/// A batch that has no end waits this long for more of it; then what there is goes to a server, as it would
/// direct. Most batches come whole, and those of a slow network are seldom cut between two messages.
pub(super) const BATCH_MS: u64 = 5;

impl<W: Wing, N: Net> Hall<W, N> {
    pub(super) fn boundary_of(&mut self, key: Key) -> Boundary {
        let lease = self.clients.get(key).and_then(|client| client.lease());
        lease
            .and_then(|server| self.servers.get_mut(server))
            .and_then(|server| server.back().map(|back| back.boundary()))
            .unwrap_or(Boundary::Idle)
    }

    /// Makes sure that a timer fires at or before a client's deadline.
    pub(super) fn arm_client(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        // The data path comes by twice a request; with PgBouncer's defaults it turns back here.
        let unbounded = cx.settings.timeouts.sessions_are_unbounded();
        let Some(client) = self.clients.get(key) else { return };
        let (in_session, by_itself) = match &client.phase {
            // It has stalled, or has said itself how long it may be idle.
            Phase::Session(front) => (true, front.is_mid_message(0) || front.idle_ms() > 0),
            Phase::Login(_) | Phase::Closing => (false, false),
        };
        let bounded = client.claim.is_in_line() || client.is.part_open || by_itself || client.may_be_gone();
        if unbounded && in_session && !bounded {
            return;
        }
        let boundary = self.boundary_of(key);
        let Some(client) = self.clients.get_mut(key) else { return };
        let Some((deadline_ms, _)) = client_deadline::<W, N>(client, boundary, &cx.settings.timeouts) else {
            return;
        };
        if deadline_ms < client.armed_ms {
            client.armed_ms = deadline_ms;
            cx.wheel.insert(deadline_ms, Tag { kind: Kind::Client, protocol: W::PROTOCOL, key }.pack());
        }
    }

    /// Makes sure that a timer fires at or before a server's deadline.
    pub(super) fn arm_server(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(server) = self.servers.get_mut(key) else { return };
        let Some(deadline_ms) = server_deadline::<W, N>(server, &cx.settings.timeouts) else { return };
        if deadline_ms < server.armed_ms {
            server.armed_ms = deadline_ms;
            cx.wheel.insert(deadline_ms, Tag { kind: Kind::Server, protocol: W::PROTOCOL, key }.pack());
        }
    }

    /// All that a client has sent are messages of a batch without its end. Perhaps it waits for what comes of
    /// them.
    pub(super) fn await_batch(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if std::mem::replace(&mut client.is.gathering, true) {
            return;
        }
        let due_ms = cx.now_ms() + BATCH_MS;
        cx.wheel.insert(due_ms, Tag { kind: Kind::Batch, protocol: W::PROTOCOL, key }.pack());
    }

    /// The client has got the beginning of a message and not its end.
    pub(super) fn is_mid_message(&mut self, key: Key) -> bool {
        let server = self.clients.get(key).and_then(|client| client.server());
        let back = server.and_then(|server| self.servers.get_mut(server)).and_then(|server| server.back());
        back.is_some_and(|back| back.head() == Some(key.raw()) && back.is_mid_message())
    }

    /// Weir may cancel what has run there for long, of its own accord. A cancel hits a client's own request,
    /// and nothing stands behind it: a request that Weir has put settings in front of would run under others,
    /// and one that its client has sent after a BEGIN would be committed by itself.
    pub(super) fn is_cancellable(&mut self, key: Key) -> bool {
        let back = self.servers.get_mut(key).and_then(|server| server.back());
        back.is_some_and(|back| back.queued() == 1 && back.is_cancellable(true))
    }
}

/// Of two bounds the one that comes first; 0 is none.
fn shorter(one_ms: u64, other_ms: u64) -> u64 {
    match (one_ms, other_ms) {
        (0, only_ms) | (only_ms, 0) => only_ms,
        (one_ms, other_ms) => one_ms.min(other_ms),
    }
}

/// When a client's time is over and what it is told then. `None`: its state has no bound.
pub(super) fn client_deadline<W: Wing, N: Net>(
    client: &Client<W, N::Socket>,
    boundary: Boundary,
    most: &Timeouts,
) -> Option<(u64, FaultKind)> {
    let bound = |from_ms: u64, bound_ms: u64, kind| (bound_ms > 0).then(|| (from_ms + bound_ms, kind));
    let stalled = || bound(client.active_ms, most.client_read_timeout_ms, FaultKind::ClientReadTimeout);
    match &client.phase {
        Phase::Closing => Some((client.active_ms + CLOSING_MS, FaultKind::ClientGone)),
        Phase::Login(phase) if phase.refused.is_some() => {
            phase.refused.as_ref().map(|(due_ms, _)| (*due_ms, FaultKind::LoginFailed))
        }
        Phase::Login(_) => {
            bound(client.active_since_login_ms(), most.client_login_timeout_ms, FaultKind::LoginTimeout)
        }
        // Another one has asked for it, which is as if it had.
        Phase::Session(_) if client.claim.follows().is_some() && client.claim.alike == Alike::Asked => {
            bound(client.request_since_ns / 1_000_000, most.query_timeout_ms, FaultKind::QueryTimeout)
        }
        Phase::Session(_) if client.claim.is_in_line() => {
            let since_ms = client.claim.since_ns() / 1_000_000;
            bound(since_ms, most.query_wait_timeout_ms, FaultKind::QueryWaitTimeout)
        }
        // Whoever looks after Weir may look at it for as long as he likes.
        Phase::Session(_) if client.is.console => None,
        // It waits for the answer to a KILL.
        Phase::Session(_) if client.server().is_none() && client.inflight > 0 => None,
        Phase::Session(front) if client.server().is_none() => idle_deadline(client, front, most),
        Phase::Session(front) => {
            let in_transaction = client.transaction_since_ns > 0 && boundary != Boundary::Idle;
            let transaction_ms = client.transaction_since_ns / 1_000_000;
            let query = (client.inflight > 0).then(|| {
                bound(client.request_since_ns / 1_000_000, most.query_timeout_ms, FaultKind::QueryTimeout)
            });
            let idle = (client.inflight == 0).then(|| match boundary {
                Boundary::Idle => {
                    let idle_ms = shorter(most.client_idle_timeout_ms, front.idle_ms());
                    bound(client.active_ms, idle_ms, FaultKind::ClientIdleTimeout)
                }
                Boundary::InTransaction | Boundary::Failed => bound(
                    client.active_ms,
                    most.idle_transaction_timeout_ms,
                    FaultKind::IdleInTransactionTimeout,
                ),
            });
            let transaction = in_transaction
                .then(|| bound(transaction_ms, most.transaction_timeout_ms, FaultKind::TransactionTimeout));
            // Between the messages of a COPY or of a batch that it flushes, a client may think, or wait for a
            // reply. In the middle of one it can only have stalled.
            let stalls = client.is.part_open && front.is_mid_message(client.stream.input.len());
            let rest = stalls.then(stalled);
            let gone = client
                .may_be_gone()
                .then(|| bound(client.active_ms, most.cancel_wait_timeout_ms, FaultKind::ClientGone));
            [query, idle, transaction, rest, gone]
                .into_iter()
                .flatten()
                .flatten()
                .min_by_key(|&(at_ms, _)| at_ms)
        }
    }
}

/// The same of a client that holds no server and waits for none; it may have begun a transaction.
fn idle_deadline<W: Wing, S>(
    client: &Client<W, S>,
    front: &W::Front,
    most: &Timeouts,
) -> Option<(u64, FaultKind)> {
    let bound = |from_ms: u64, bound_ms: u64, kind| (bound_ms > 0).then(|| (from_ms + bound_ms, kind));
    let (idle_ms, whole_ms, kind) = if client.is.empty {
        let idle_ms = most.idle_transaction_timeout_ms;
        (idle_ms, most.transaction_timeout_ms, FaultKind::IdleInTransactionTimeout)
    } else {
        (shorter(most.client_idle_timeout_ms, front.idle_ms()), 0, FaultKind::ClientIdleTimeout)
    };
    let idle = bound(client.active_ms, idle_ms, kind);
    let whole = bound(client.transaction_since_ns / 1_000_000, whole_ms, FaultKind::TransactionTimeout);
    // What came of a request is kept for it.
    let rest = bound(client.active_ms, most.client_read_timeout_ms, FaultKind::ClientReadTimeout);
    let rest = rest.filter(|_| front.is_mid_message(0));
    [idle, whole, rest].into_iter().flatten().min_by_key(|&(at_ms, _)| at_ms)
}

/// When something must be done about a server. `None`: its state has no bound.
pub(super) fn server_deadline<W: Wing, N: Net>(
    server: &Server<W, N::Socket>,
    most: &Timeouts,
) -> Option<u64> {
    let bound = |from_ms: u64, bound_ms: u64| (bound_ms > 0).then(|| from_ms + bound_ms);
    match (&server.phase, server.state()) {
        (ServerPhase::Login { .. }, _) => bound(server.opened_ms, most.server_connect_timeout_ms),
        (ServerPhase::Live(_), ServerState::Idle) => {
            let idle = bound(server.since_ms, most.server_idle_timeout_ms);
            let life = bound(server.opened_ms, most.server_lifetime_ms.unwrap_or(0));
            [idle, life].into_iter().flatten().min()
        }
        (ServerPhase::Live(_), ServerState::Cleaning) => {
            Some(server.since_ms + server.cleaning.patience_ms(most.cancel_wait_timeout_ms))
        }
        (ServerPhase::Live(_), ServerState::Shared) => Some(server.since_ms + super::share::LATE_MS),
        (ServerPhase::Live(_), ServerState::Leased(_)) => server.cancel_late_ms(),
        (ServerPhase::Live(_), ServerState::Login) => None,
    }
}
