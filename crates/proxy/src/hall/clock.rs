//! Timeouts. A client or server has one deadline at a time, which follows from its state; its timer is
//! lazy: it fires at or before the deadline, looks, and is armed again. So the data path pays nothing.

use super::who::log_client;
use super::{Hall, Order};
use crate::client::{Client, Phase};
use crate::context::Cx;
use crate::ids::{Key, Kind, Tag};
use crate::panics::inject;
use crate::server::{Server, ServerPhase, ServerState};
use crate::settings::Timeouts;
use crate::wing::{Accept, Back, Front, Wing};
use weir_net::Net;
use weir_wire::{Boundary, Fault, FaultKind};

/// The last words of a client have this long to leave and to be read.
const CLOSING_MS: u64 = 2_000;

/// A batch that has no end waits this long for more of it; then what there is goes to a server, as it would
/// direct. Most batches come whole, and those of a slow network are seldom cut between two messages.
const BATCH_MS: u64 = 5;

impl<W: Wing, N: Net> Hall<W, N> {
    /// A timer has fired.
    pub fn timer(&mut self, cx: &mut Cx<'_, N>, tag: Tag) {
        match tag.kind {
            Kind::Client => self.client_timer(cx, tag.key),
            Kind::Batch => self.batch_timer(cx, tag.key),
            Kind::Kept => self.kept_timer(cx, tag.key),
            Kind::Server => self.server_timer(cx, tag.key),
            Kind::Canceller => self.canceller_timer(cx, tag.key),
            Kind::Pool => {
                let id = crate::pool::PoolId(tag.key.slot());
                self.open_for_waiters(cx, id);
                // The ones that failed may have left room that others wait for.
                if let Some(pool) = self.pool(id) {
                    let entry = pool.entry.clone();
                    self.room_for_waiters(cx, &entry);
                    self.cap_freed(cx, &entry);
                }
            }
            Kind::Listener => {}
        }
    }

    /// Makes sure that a timer fires at or before a client's deadline.
    pub(super) fn arm_client(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        // The data path comes by twice a request; with PgBouncer's defaults it turns back here.
        let unbounded = cx.settings.timeouts.sessions_are_unbounded();
        let Some(client) = self.clients.get(key) else { return };
        let (in_session, stalls) = match &client.phase {
            Phase::Session(front) => (true, front.is_mid_message(0)),
            Phase::Login(_) | Phase::Closing => (false, false),
        };
        let bounded = client.is_waiting() || client.is.part_open || stalls || client.may_be_gone();
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
            cx.wheel.insert(deadline_ms, Tag { kind: Kind::Client, wing: W::INDEX, key }.pack());
        }
    }

    pub(super) fn boundary_of(&mut self, key: Key) -> Boundary {
        let lease = self.clients.get(key).and_then(|client| client.lease());
        lease
            .and_then(|server| self.servers.get_mut(server))
            .and_then(|server| server.back().map(|back| back.boundary()))
            .unwrap_or(Boundary::Idle)
    }

    /// All that a client has sent are messages of a batch without its end. Perhaps it waits for what comes of
    /// them.
    pub(super) fn await_batch(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if std::mem::replace(&mut client.is.gathering, true) {
            return;
        }
        let due_ms = cx.now_ms() + BATCH_MS;
        cx.wheel.insert(due_ms, Tag { kind: Kind::Batch, wing: W::INDEX, key }.pack());
    }

    fn batch_timer(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let now_ms = cx.now_ms();
        let Some(client) = self.clients.get_mut(key) else { return };
        client.is.gathering = false;
        let kept = client.input.len();
        if client.claim.is_served_later()
            || !client.front().is_some_and(|front| front.is_between_messages(kept))
        {
            return;
        }
        if now_ms < client.active_ms + BATCH_MS {
            self.await_batch(cx, key);
            return;
        }
        if let Some(front) = client.front() {
            front.hasten();
        }
        self.consume_kept(cx, key);
    }

    fn client_timer(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("client_timer");
        let boundary = self.boundary_of(key);
        let now_ms = cx.now_ms();
        let Some(client) = self.clients.get_mut(key) else { return };
        client.armed_ms = u64::MAX;
        if client.is.part_open && client.is.readable {
            // It is Weir that does not read: the server is slow, and that is not the client's fault.
            client.active_ms = now_ms;
        }
        let deadline = client_deadline::<W, N>(client, boundary, &cx.settings.timeouts);
        let Some((deadline_ms, kind)) = deadline else { return };
        if now_ms < deadline_ms {
            self.arm_client(cx, key);
            return;
        }
        match (&client.phase, kind) {
            (Phase::Closing, _) => self.remove_client(cx, key, false),
            (Phase::Login(phase), _) => {
                let fault =
                    phase.refused.as_ref().map_or_else(|| kind.into(), |(_, fault)| Fault::clone(fault));
                self.refuse(cx, key, fault);
            }
            (Phase::Session(_), FaultKind::QueryTimeout) => {
                // What it runs is stopped too; leaving it running would hold a server for nobody.
                self.seclude_with(cx, key);
                let server = self.clients.get(key).and_then(|client| client.lease());
                if let Some(server) = server.filter(|&server| self.is_cancellable(server)) {
                    self.cancel_server(cx, server, None);
                }
                self.end_client(cx, key, kind.into());
            }
            (Phase::Session(_), FaultKind::ClientGone) => self.give_up(cx, key),
            (Phase::Session(_), _) => self.end_client(cx, key, kind.into()),
        }
    }

    /// A client that may be gone has had its time: what it runs is cancelled, and is answered to it if it is
    /// there after all. If that does not help, it is gone.
    fn give_up(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let now_ms = cx.now_ms();
        self.seclude_with(cx, key);
        let Some(client) = self.clients.get_mut(key) else { return };
        let again = std::mem::replace(&mut client.is.given_up, true);
        client.active_ms = now_ms;
        match client.lease().filter(|_| !again) {
            Some(server) if self.is_cancellable(server) => {
                self.cancel_server(cx, server, None);
                self.arm_client(cx, key);
            }
            Some(_) | None => self.close_client(cx, key, Some(FaultKind::ClientGone.into())),
        }
    }

    /// Makes sure that a timer fires at or before a server's deadline.
    pub(super) fn arm_server(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(server) = self.servers.get_mut(key) else { return };
        let Some(deadline_ms) = server_deadline::<W, N>(server, &cx.settings.timeouts) else { return };
        if deadline_ms < server.armed_ms {
            server.armed_ms = deadline_ms;
            cx.wheel.insert(deadline_ms, Tag { kind: Kind::Server, wing: W::INDEX, key }.pack());
        }
    }

    fn server_timer(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let now_ms = cx.now_ms();
        let Some(server) = self.servers.get_mut(key) else { return };
        server.armed_ms = u64::MAX;
        let Some(deadline_ms) = server_deadline::<W, N>(server, &cx.settings.timeouts) else { return };
        if now_ms < deadline_ms {
            self.arm_server(cx, key);
            return;
        }
        match server.state() {
            ServerState::Login => {
                let fault =
                    Fault::new(FaultKind::ServerUnavailable, format!("{}: no login in time", server.target));
                self.login_ended(cx, key, fault);
            }
            ServerState::Idle => self.idle_late(cx, key),
            ServerState::Leased(_) => {}
            ServerState::Shared => self.head_late(cx, key),
            ServerState::Cleaning => self.cleaning_late(cx, key),
        }
    }

    /// Nobody has used a server for long, or it is old. The last `min_pool_size` stay unless they are old.
    fn idle_late(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let now_ms = cx.now_ms();
        let lifetime_ms = cx.settings.timeouts.server_lifetime_ms;
        let Some(server) = self.servers.get_mut(key) else { return };
        let age_ms = now_ms.saturating_sub(server.opened_ms);
        let is_old = lifetime_ms.is_some_and(|most_ms| most_ms > 0 && age_ms >= most_ms);
        let pool = self.pools.get(server.pool.0 as usize).and_then(|pool| pool.as_deref());
        let needed = pool.is_some_and(|pool| pool.entry.shared.opened() <= pool.spec.min_size);
        if needed && !is_old {
            server.since_ms = now_ms;
            self.arm_server(cx, key);
        } else {
            self.close_server(cx, key, "nobody used it, or it is old");
        }
    }

    /// What a client that has gone left running has had its time: cancel it, then give up.
    fn cleaning_late(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let now_ms = cx.now_ms();
        let Some(server) = self.servers.get_mut(key) else { return };
        if server.cleaning.cancelled {
            if !server.post.is_held() {
                self.drop_late(cx, key);
            } else {
                server.since_ms = now_ms;
                self.arm_server(cx, key);
            }
            return;
        }
        server.cleaning.cancelled = true;
        server.since_ms = now_ms;
        let running = server.back().is_some_and(|back| back.queued() > 0);
        if running && !self.is_cancellable(key) {
            // What stands behind it would run without it.
            self.drop_late(cx, key);
        } else if running {
            self.cancel_server(cx, key, None);
            self.arm_server(cx, key);
        } else {
            self.settle_later(key);
        }
    }

    /// Weir may cancel what runs there of its own accord. A cancel hits a client's own request, and nothing
    /// stands behind it: a request that Weir has put settings in front of would run under others, and one
    /// that its client has sent after a BEGIN would be committed by itself.
    fn is_cancellable(&mut self, key: Key) -> bool {
        let back = self.servers.get_mut(key).and_then(|server| server.back());
        back.is_some_and(|back| back.queued() == 1 && back.is_cancellable())
    }

    fn drop_late(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let text = "what its client left behind did not end in time";
        self.server_lost(cx, key, Fault::new(FaultKind::ServerLost, text));
    }

    /// The client has got the beginning of a message and not its end.
    pub(super) fn is_mid_message(&mut self, key: Key) -> bool {
        let server = self.clients.get(key).and_then(|client| client.server());
        let back = server.and_then(|server| self.servers.get_mut(server)).and_then(|server| server.back());
        back.is_some_and(|back| back.head() == Some(key.raw()) && back.is_mid_message())
    }

    /// Ends a client with a reason that it can read.
    pub(super) fn end_client(&mut self, cx: &mut Cx<'_, N>, key: Key, fault: Fault) {
        if self.is_mid_message(key) {
            // Words in the middle of a message would be read as a part of it.
            if cx.settings.logged.pooler_errors {
                log_client!(info, self, cx, key, "client closed in the middle of a reply: {fault}");
            }
            self.count_fault(fault.kind);
            self.begin_closing(cx, key);
            return;
        }
        if cx.settings.logged.pooler_errors
            && self.clients.get(key).is_some_and(|client| matches!(client.phase, Phase::Session(_)))
        {
            log_client!(info, self, cx, key, "client closed: {fault}");
        }
        let mut out = std::mem::take(&mut self.staging);
        let Some(client) = self.clients.get_mut(key) else {
            self.recycle(out);
            return;
        };
        match &mut client.phase {
            Phase::Session(front) => {
                front.fatal(&fault, &mut out);
            }
            Phase::Login(phase) => phase.accept.refuse(&fault, &mut out),
            Phase::Closing => {}
        }
        self.count_fault(fault.kind);
        self.send_client(cx, key, &out);
        self.recycle(out);
        self.begin_closing(cx, key);
    }

    /// Nothing more is done for this client; what was said to it still goes out.
    pub(super) fn begin_closing(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        self.leave(cx, key);
        let now_ms = cx.now_ms();
        let Some(client) = self.clients.get_mut(key) else { return };
        client.input.clear();
        client.input.release_if_empty();
        if matches!(client.phase, Phase::Closing) {
            return;
        }
        client.phase = Phase::Closing;
        client.active_ms = now_ms;
        self.leave_login(key);
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.is.broken || (client.is.eof && client.output.is_empty()) {
            self.remove_client(cx, key, client_is_broken(&self.clients, key));
            return;
        }
        if client.output.is_empty() {
            client.line.shutdown_write(cx.net);
        }
        self.arm_client(cx, key);
        self.todo.push_back(Order::PumpClient(key));
    }

    /// Closes a client, with last words if there is a reason that it can read.
    pub(super) fn close_client(&mut self, cx: &mut Cx<'_, N>, key: Key, fault: Option<Fault>) {
        match fault {
            Some(fault) if fault.kind != FaultKind::ClientGone => self.end_client(cx, key, fault),
            Some(fault) => {
                self.count_fault(fault.kind);
                self.leave(cx, key);
                self.remove_client(cx, key, true);
            }
            // Whoever has ended its own direction may still read: its last answer goes out first.
            None if self.clients.get(key).is_some_and(|c| !c.is.broken && !c.output.is_empty()) => {
                self.begin_closing(cx, key);
            }
            None => {
                self.leave(cx, key);
                let broken = client_is_broken(&self.clients, key);
                self.remove_client(cx, key, broken);
            }
        }
    }

    /// A client leaves the queue and its server.
    pub(super) fn leave(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        self.books().forget(key);
        if let Some(client) = self.clients.get_mut(key)
            && let Some(server) = client.chokes.take()
            && let Some(server) = self.servers.get_mut(server)
        {
            server.is.paused = false;
        }
        self.abandon(cx, key);
    }

    /// The end of a client. The only place where one ceases to be.
    pub(super) fn remove_client(&mut self, cx: &mut Cx<'_, N>, key: Key, abort: bool) {
        inject::here("remove_client");
        self.leave_login(key);
        if cx.settings.logged.disconnections
            && let Some(Client { pool: Some(_), is, .. }) = self.clients.get(key)
        {
            let broken = is.broken;
            log_client!(info, self, cx, key, broken, "client has left");
        }
        let Some(client) = self.clients.remove(key) else { return };
        cx.shared.clients.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        if client.is.proven {
            cx.shared.proven.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        }
        cx.shared.berths.leave_seat(cx.worker);
        debug_assert!(client.server().is_none() && !client.is_waiting());
        client.line.close(cx.net, abort);
        self.cells.wing.client_connections.dec();
    }
}

fn client_is_broken<W: Wing, S>(clients: &crate::ids::Arena<Client<W, S>>, key: Key) -> bool {
    clients.get(key).is_some_and(|client| client.is.broken)
}

/// Of two bounds the one that comes first; 0 is none.
fn shorter(one_ms: u64, other_ms: u64) -> u64 {
    match (one_ms, other_ms) {
        (0, only_ms) | (only_ms, 0) => only_ms,
        (one_ms, other_ms) => one_ms.min(other_ms),
    }
}

/// When a client's time is over and what it is told then. `None`: its state has no bound.
fn client_deadline<W: Wing, N: Net>(
    client: &Client<W, N::Socket>,
    boundary: Boundary,
    timeouts: &Timeouts,
) -> Option<(u64, FaultKind)> {
    let bound = |from_ms: u64, bound_ms: u64, kind| (bound_ms > 0).then(|| (from_ms + bound_ms, kind));
    let wait_since_ms = client.claim.since_ns() / 1_000_000;
    match &client.phase {
        Phase::Closing => Some((client.active_ms + CLOSING_MS, FaultKind::ClientGone)),
        Phase::Login(phase) if phase.refused.is_some() => {
            phase.refused.as_ref().map(|(due_ms, _)| (*due_ms, FaultKind::LoginFailed))
        }
        Phase::Login(_) => {
            bound(client.active_since_login_ms(), timeouts.client_login_ms, FaultKind::LoginTimeout)
        }
        Phase::Session(_) if client.is_waiting() => {
            bound(wait_since_ms, timeouts.query_wait_ms, FaultKind::QueryWaitTimeout)
        }
        // It waits for the answer to a KILL.
        Phase::Session(_) if client.server().is_none() && client.inflight > 0 => None,
        Phase::Session(front) if client.server().is_none() => {
            let idle_ms = shorter(timeouts.client_idle_ms, front.idle_ms());
            let idle = bound(client.active_ms, idle_ms, FaultKind::ClientIdleTimeout);
            // What came of a request is kept for it.
            let rest = front
                .is_mid_message(0)
                .then(|| bound(client.active_ms, timeouts.client_read_ms, FaultKind::ClientReadTimeout));
            [idle, rest.flatten()].into_iter().flatten().min_by_key(|&(at_ms, _)| at_ms)
        }
        Phase::Session(front) => {
            let in_transaction = client.transaction_since_ms > 0 && boundary != Boundary::Idle;
            let query = (client.inflight > 0).then(|| {
                bound(client.request_since_ns / 1_000_000, timeouts.query_ms, FaultKind::QueryTimeout)
            });
            let idle = (client.inflight == 0).then(|| match boundary {
                Boundary::Idle => {
                    let idle_ms = shorter(timeouts.client_idle_ms, front.idle_ms());
                    bound(client.active_ms, idle_ms, FaultKind::ClientIdleTimeout)
                }
                Boundary::InTransaction | Boundary::Failed => {
                    bound(client.active_ms, timeouts.idle_transaction_ms, FaultKind::IdleInTransactionTimeout)
                }
            });
            let transaction = in_transaction.then(|| {
                bound(client.transaction_since_ms, timeouts.transaction_ms, FaultKind::TransactionTimeout)
            });
            // Between the messages of a COPY or of a batch that it flushes, a client may think, or wait for a
            // reply. In the middle of one it can only have stalled.
            let stalls = client.is.part_open && front.is_mid_message(client.input.len());
            let rest = stalls
                .then(|| bound(client.active_ms, timeouts.client_read_ms, FaultKind::ClientReadTimeout));
            let gone = client
                .may_be_gone()
                .then(|| bound(client.active_ms, timeouts.cancel_wait_ms, FaultKind::ClientGone));
            [query, idle, transaction, rest, gone]
                .into_iter()
                .flatten()
                .flatten()
                .min_by_key(|&(at_ms, _)| at_ms)
        }
    }
}

/// When something must be done about a server. `None`: its state has no bound.
fn server_deadline<W: Wing, N: Net>(server: &Server<W, N::Socket>, timeouts: &Timeouts) -> Option<u64> {
    let bound = |from_ms: u64, bound_ms: u64| (bound_ms > 0).then(|| from_ms + bound_ms);
    match (&server.phase, server.state()) {
        (ServerPhase::Login { .. }, _) => bound(server.opened_ms, timeouts.server_connect_ms),
        (ServerPhase::Live(_), ServerState::Idle) => {
            let idle = bound(server.since_ms, timeouts.server_idle_ms);
            let life = bound(server.opened_ms, timeouts.server_lifetime_ms.unwrap_or(0));
            [idle, life].into_iter().flatten().min()
        }
        (ServerPhase::Live(_), ServerState::Cleaning) => {
            Some(server.since_ms + timeouts.cancel_wait_ms.max(1))
        }
        (ServerPhase::Live(_), ServerState::Shared) => Some(server.since_ms + super::share::LATE_MS),
        (ServerPhase::Live(_), ServerState::Leased(_) | ServerState::Login) => None,
    }
}
