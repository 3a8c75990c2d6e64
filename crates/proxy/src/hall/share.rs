//! One server for the requests of several clients: each is whole, only reads and provably leaves no trace, so
//! they may stand behind each other in a server's queue. The database then wakes up once for several of them,
//! and so does Weir.
//!
//! Owns: who rides on which server, when a shared server takes more and when it must become free.
//! Must not know: bytes.
//!
//! Invariants: a client rides on one server at most and with one request at most, whose bytes stay at the
//! start of its `input` until it is answered; only the request at the head of a shared server can have begun,
//! as far as is known, so only that one is lost with the server, and only that one can be hit by a cancel:
//! before a cancel is sent, the others go elsewhere (`seclude`). Since they only read, it does not matter
//! that the server may still run them for nobody. What was sent once is asked again once at most, and then
//! has a server to itself (`take_back`). A client that must keep its server after all gets it, and those
//! behind it go elsewhere (`keep_after_all`): nobody is ever tied to a server without having it.

use super::lease::HAND_OVER_NS;
use super::{Hall, Order};
use crate::books::Holding;
use crate::client::Phase;
use crate::context::Cx;
use crate::ids::Key;
use crate::panics::inject;
use crate::pool::PoolId;
use crate::server::{Cleaning, Server, ServerPhase, ServerState};
use crate::settings::PoolMode;
use crate::wing::{Back, Front, Wing};
use weir_net::Net;
use weir_wire::{Boundary, Fault, FaultKind, INTERNAL, Needs, Pin, limits};

/// A request at the head for longer than this has its server to itself: those behind it go elsewhere. A point
/// select takes tens of microseconds, so this is a thousand of them; short enough for nobody to notice it
/// once.
pub(super) const LATE_MS: u64 = 20;

/// While a pool may open more servers, a request stands behind others only if it will not wait there for
/// longer than it takes to tell: its like are at the head for less than this. Longer ones are better off at
/// the same time.
const QUICK_NS: u64 = 1_000_000;

/// A pool that may open more servers does so when a request has to expect to be answered so late where it
/// rides. On few cores it is cheaper to stand behind others for that long; on many, one server cannot keep
/// them all at work.
const GROW_NS: u64 = 250_000;

impl<W: Wing, N: Net> Hall<W, N> {
    /// Requests that a server of this pool may carry at a time. 1: it is never shared.
    fn depth(&self, id: PoolId) -> usize {
        let pool = self.pools.get(id.0 as usize).and_then(|pool| pool.as_deref());
        pool.filter(|pool| pool.spec.mode != PoolMode::Session).map_or(1, |pool| pool.spec.pipeline_depth)
    }

    /// The same for the pool of a client.
    pub(super) fn depth_of(&self, key: Key) -> usize {
        self.clients.get(key).and_then(|client| client.pool).map_or(1, |id| self.depth(id))
    }

    /// A request was sent to a leased server. If it is the only one there and others may stand behind it, the
    /// server is listed for those who find none free.
    pub(super) fn offer_to_share(&mut self, key: Key, server: Key, shares: bool) {
        self.books().note_quick(key, shares);
        if self.clients.get(key).is_some_and(|client| client.is_quick()) {
            self.books().list(server);
        }
    }

    /// Sends the request at the start of a client's input behind those of others, if a server can carry it
    /// and nobody has waited longer for that. False: it must queue.
    pub(super) fn ride_at_once(&mut self, cx: &mut Cx<'_, N>, key: Key) -> bool {
        let Some(client) = self.clients.get(key) else { return false };
        let Some(id) = client.pool.filter(|_| client.shares()) else { return false };
        let Some(pool) = self.pool(id) else { return false };
        let has_room = pool.entry.shared.has_room();
        if pool.sharing_len() > 0 || (pool.head_ns > QUICK_NS && has_room) {
            return false;
        }
        let Some(server) = self.roomiest(cx, id) else { return false };
        if !self.convert(server) {
            return false;
        }
        self.ride(cx, server, key);
        let ahead = self.servers.get_mut(server).and_then(|held| held.back()).map_or(0, |back| back.queued());
        let wait_ns = (ahead as u64).saturating_mul(self.pool(id).map_or(0, |pool| pool.head_ns));
        if has_room && wait_ns > GROW_NS {
            // It does not wait for one more server, but those after it are better off with it.
            self.grow(cx, id);
        }
        true
    }

    /// The listed server with the shortest queue that may carry one more. Servers that may not are taken off
    /// the list; they come back with their next request.
    fn roomiest(&mut self, cx: &Cx<'_, N>, id: PoolId) -> Option<Key> {
        let depth = self.depth(id);
        let now_ns = cx.now_ns();
        let mut best: Option<(usize, Key)> = None;
        let mut at = 0;
        while let Some(key) = self.pool(id).and_then(|pool| pool.open_at(at)) {
            let Some(head_since_ns) = self.quick_since_ns(key) else {
                self.books().unlist(id, at);
                continue;
            };
            at += 1;
            let draining = self.pool(id).is_some_and(|pool| pool.draining() == Some(key));
            let old = self.is_to_be_replaced(cx, key);
            let Some(server) = self.servers.get_mut(key) else { continue };
            let late = now_ns.saturating_sub(head_since_ns) >= LATE_MS * 1_000_000;
            if late || draining || old || server.is.paused || server.post.is_held() {
                continue;
            }
            let full = server.output.len() > limits::SERVER_OUTPUT_BYTES;
            let queued = server.back().map_or(usize::MAX, |back| back.queued());
            if !full && queued < depth && best.is_none_or(|(least, _)| queued < least) {
                best = Some((queued, key));
            }
        }
        best.map(|(_, key)| key)
    }

    /// Since when the request at the head of a server is there, if others may stand behind it.
    fn quick_since_ns(&self, key: Key) -> Option<u64> {
        let server = self.servers.get(key)?;
        match (server.state(), &server.phase) {
            (ServerState::Shared, _) => Some(server.head_since_ns),
            // All that the server has to do is that one request, and it does that outside a transaction.
            (ServerState::Leased(holder), ServerPhase::Live(back))
                if back.queued() == 1
                    && back.head() == Some(holder.raw())
                    && back.boundary() == Boundary::Idle =>
            {
                let client = self.clients.get(holder).filter(|client| client.is_quick());
                client.map(|client| client.request_since_ns)
            }
            (
                ServerState::Leased(_) | ServerState::Login | ServerState::Idle | ServerState::Cleaning,
                ServerPhase::Live(_) | ServerPhase::Login { .. },
            ) => None,
        }
    }

    /// Others should not stand behind this request, nor should it stand behind others: its like took long, or
    /// how long it takes is not known yet. A hundred clients that begin with the same slow statement would
    /// all send it at once, and it would run twice for most of them.
    pub(super) fn may_be_slow(&mut self, key: Key, needs: Needs) -> bool {
        let Some(id) = self.clients.get(key).and_then(|client| client.pool) else { return false };
        self.pool(id).is_some_and(|pool| {
            pool.history.is_new(needs.fingerprint) || pool.history.is_slow(needs.fingerprint, pool.head_ns)
        })
    }

    /// The client that has waited longest for a place among others. Whose request is known to be slow by now
    /// wants a server alone, and so does whose database has changed since the request was found: it may do
    /// more than read.
    fn next_sharing(&mut self, id: PoolId) -> Option<Key> {
        loop {
            let pool = self.pools.get_mut(id.0 as usize)?.as_deref_mut()?;
            let next = pool.oldest_sharing(&self.clients)?;
            let client = self.clients.get_mut(next)?;
            let is_proven = client.front().is_some_and(|front| front.is_proven());
            if is_proven && !pool.history.is_slow(client.fingerprint, pool.head_ns) {
                return Some(next);
            }
            let alone = self.books().want_alone(next);
            self.sound(alone)?;
        }
    }

    /// A client's request is answered; this is how long it was at the head of its server.
    pub(super) fn note_history(&mut self, key: Key, took_ns: u64) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let (fingerprint, id) = (std::mem::take(&mut client.fingerprint), client.pool);
        if fingerprint != 0
            && let Some(pool) = id.and_then(|id| self.pool(id))
        {
            pool.history.note(fingerprint, took_ns, pool.head_ns);
        }
    }

    /// A leased server whose client has one quick request under way becomes a shared one. False: it is none
    /// that requests of others may stand on.
    fn convert(&mut self, server: Key) -> bool {
        let Some(state) = self.servers.get(server).map(|held| held.state()) else { return false };
        let ServerState::Leased(holder) = state else { return state == ServerState::Shared };
        if self.quick_since_ns(server).is_none() {
            return false;
        }
        // Its bytes have been consumed: it is at the head and goes nowhere else.
        let converted = self.books().convert(server);
        if self.sound(converted).is_none() {
            return false;
        }
        let Some(client) = self.clients.get_mut(holder) else { return false };
        client.transaction_since_ms = 0;
        if let Some(held) = self.servers.get_mut(server) {
            held.head_since_ns = client.request_since_ns;
            held.since_ms = client.request_since_ns / 1_000_000;
        }
        true
    }

    /// A server that is free takes up what waits for a place.
    pub(super) fn share(&mut self, cx: &mut Cx<'_, N>, server: Key) {
        let now_ms = cx.now_ms();
        let shared = self.books().share(server);
        if self.sound(shared).is_none() {
            return;
        }
        if let Some(held) = self.servers.get_mut(server) {
            held.since_ms = now_ms;
            held.cleaning = Cleaning::default();
        }
        self.refill(cx, server);
    }

    /// The request at the start of a client's input goes to the end of a shared server's queue.
    fn ride(&mut self, cx: &mut Cx<'_, N>, server: Key, key: Key) {
        inject::here("ride");
        let now_ns = cx.now_ns();
        let rides = self.books().ride(server, key);
        let Some((len, waited_since_ns)) = self.sound(rides) else { return };
        if let Some(since_ns) = waited_since_ns {
            self.note_waited(cx, key, since_ns);
        }
        let (Some(client), Some(held)) = (self.clients.get_mut(key), self.servers.get_mut(server)) else {
            return;
        };
        debug_assert_eq!(client.inflight, 0);
        let Phase::Session(front) = &mut client.phase else { return };
        let Server { phase: ServerPhase::Live(back), output, since_ms, head_since_ns, pool, is, .. } = held
        else {
            return;
        };
        let id = *pool;
        is.used = true;
        if back.queued() == 0 {
            *since_ms = now_ns / 1_000_000;
            *head_since_ns = now_ns;
        }
        let len = (len as usize).min(client.input.len());
        let request = &client.input.as_slice()[..len];
        let sent = back.dispatch(front, key.raw(), request, true, output.tail_mut());
        let queued = back.queued();
        self.crowd.behind += u32::from(queued > 1);
        client.inflight = 1;
        client.is.part_open = false;
        client.request_since_ns = now_ns;
        self.count_pool(id, |cells| cells.shared_requests.inc());
        self.mark_dirty(server);
        if let Err(fault) = sent {
            return self.end_client(cx, key, fault);
        }
        if queued == 1 {
            // A back may have answered all by itself, without a byte for the server.
            self.todo.push_back(Order::PumpServer(server));
        } else {
            self.arm_server(cx, server);
        }
        self.arm_client(cx, key);
    }

    /// The request of a client on a shared server is answered.
    pub(super) fn carried(&mut self, cx: &mut Cx<'_, N>, key: Key, server: Key, boundary: Boundary) {
        inject::here("carried");
        let now_ns = cx.now_ns();
        if let Some(held) = self.servers.get_mut(server) {
            held.since_ms = now_ns / 1_000_000;
            let took_ns = now_ns.saturating_sub(std::mem::replace(&mut held.head_since_ns, now_ns));
            let id = held.pool;
            if let Some(pool) = self.pool(id) {
                pool.note_head(took_ns);
            }
            self.note_history(key, took_ns);
        }
        self.alight(key);
        if boundary != Boundary::Idle || !self.pins(key).is_empty() {
            return self.keep_after_all(cx, key, server, boundary);
        }
        let Some(client) = self.clients.get(key) else { return };
        let eof = client.has_said_all();
        if eof || self.draining {
            let why = (!eof).then(|| FaultKind::ShuttingDown.into());
            self.close_client(cx, key, why);
        } else {
            self.arm_client(cx, key);
            self.todo.push_back(Order::PumpClient(key));
        }
        self.settle_later(server);
    }

    /// A request that was to leave no trace has left one: something ties its client to the server, or a
    /// transaction is open there. The server becomes that client's, and those whose requests stand behind go
    /// elsewhere. What the server still runs of theirs only reads; where even that has wiped out what the
    /// client may ask for next, it loses the server rather than get another's answer.
    fn keep_after_all(&mut self, cx: &mut Cx<'_, N>, key: Key, server: Key, boundary: Boundary) {
        let Some(held) = self.servers.get_mut(server) else { return };
        if held.state() != ServerState::Shared {
            return;
        }
        let id = held.pool;
        let overrun = held.back().is_some_and(|back| back.queued() > 0);
        let moved = self.take_back(cx, server, 0);
        self.lease(cx, server, key);
        if overrun && self.pins(key).contains(Pin::LastResult) {
            let text = "what its client may ask about its last statement is gone";
            self.server_lost(cx, server, Fault::new(FaultKind::ServerLost, text));
        } else {
            if let Some(client) = self.clients.get_mut(key).filter(|_| boundary != Boundary::Idle) {
                client.transaction_since_ms = cx.now_ms().max(1);
            }
            self.boundary(cx, key, boundary);
        }
        self.place_again(cx, id, &moved);
    }

    /// Takes away from a client what rode for it; the request is over.
    fn alight(&mut self, key: Key) {
        if let Some((_, len)) = self.books().alight(key) {
            self.drop_request(key, len);
        }
    }

    /// The request at the start of a client's input is answered, or under way where it cannot be taken back.
    fn drop_request(&mut self, key: Key, len: u32) {
        let Some(client) = self.clients.get_mut(key) else { return };
        client.input.consume((len as usize).min(client.input.len()));
        client.input.release_if_empty();
    }

    /// A shared server has room: the next ones get on, unless it is wanted elsewhere. Empty, it is free.
    pub(super) fn refill(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("refill");
        loop {
            let Some(server) = self.servers.get_mut(key) else { return };
            if server.state() != ServerState::Shared {
                return;
            }
            let (id, kept) = (server.pool, server.is.paused || server.post.is_held());
            let full = server.output.len() > limits::SERVER_OUTPUT_BYTES;
            let Some(queued) = server.back().map(|back| back.queued()) else { return };
            if !kept
                && !full
                && queued < self.depth(id)
                && !self.must_drain(cx, id, key)
                && let Some(next) = self.next_sharing(id)
            {
                self.ride(cx, key, next);
                continue;
            }
            if queued == 0 {
                let cleaned = self.books().clean(key);
                if self.sound(cleaned).is_some() {
                    self.settle_later(key);
                }
            }
            return;
        }
    }

    /// Whoever has waited longest wants a server alone, here or on another worker: one shared server after
    /// the other takes no more until it is free.
    fn must_drain(&mut self, cx: &mut Cx<'_, N>, id: PoolId, key: Key) -> bool {
        let Some(pool) = self.pools.get(id.0 as usize).and_then(|pool| pool.as_deref()) else { return false };
        let since = |key: Key| self.clients.get(key).map_or(u64::MAX, |client| client.claim.since_ns());
        let oldest = pool.oldest(&self.clients).map_or(u64::MAX, since);
        let alone = pool.oldest_alone(&self.clients).map(since).is_some_and(|alone| alone <= oldest);
        let away = pool.entry.shared.longest_waiting_elsewhere(cx.worker);
        let away = away.is_some_and(|(_, theirs)| theirs.saturating_add(HAND_OVER_NS) < oldest);
        let drains = pool.draining().filter(|&other| {
            self.servers.get(other).is_some_and(|server| server.state() == ServerState::Shared)
        });
        let wanted = alone || away;
        let drains = match drains {
            Some(other) if wanted => Some(other),
            None if wanted => Some(key),
            Some(_) | None => None,
        };
        self.books().drain(id, drains);
        drains == Some(key) || self.is_to_be_replaced(cx, key) || self.wants_study(cx, id)
    }

    /// The head of a shared server has been there for long.
    pub(super) fn head_late(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(server) = self.servers.get_mut(key) else { return };
        if server.back().is_some_and(|back| back.queued() > 1) {
            let (id, since_ns) = (server.pool, server.head_since_ns);
            let head = server.back().and_then(|back| back.head()).and_then(Key::from_raw);
            // The next one of its kind must not wait until this one is answered.
            let fingerprint = head.and_then(|head| self.clients.get(head)).map_or(0, |head| head.fingerprint);
            let so_far_ns = cx.now_ns().saturating_sub(since_ns);
            if fingerprint != 0
                && let Some(pool) = self.pool(id)
            {
                pool.history.note(fingerprint, so_far_ns, pool.head_ns);
            }
            self.count_pool(id, |cells| cells.late_heads.inc());
            self.seclude(cx, key);
        }
    }

    /// If a client's request runs on a shared server, that server becomes its own.
    pub(super) fn seclude_with(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(server) = self.clients.get(key).and_then(|client| client.claim.ride()) else { return };
        let back = self.servers.get_mut(server).and_then(|server| server.back());
        if back.is_some_and(|back| back.head() == Some(key.raw())) {
            self.seclude(cx, server);
        }
    }

    /// A shared server becomes the lease of whose request is at its head. The others, whose requests have not
    /// begun as far as anybody can know, go to the front of the queue and from there to another server; what
    /// this one still answers for them goes nowhere.
    pub(super) fn seclude(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(server) = self.servers.get_mut(key) else { return };
        if server.state() != ServerState::Shared {
            return;
        }
        let id = server.pool;
        let Some(back) = server.back() else { return };
        let head = back.head().filter(|&owner| owner != INTERNAL).and_then(Key::from_raw);
        let moved = self.take_back(cx, key, 1);
        match head
            .filter(|&head| self.clients.get(head).is_some_and(|client| client.claim.ride() == Some(key)))
        {
            Some(head) => {
                let secluded = self.books().seclude(key, head);
                if let Some(len) = self.sound(secluded) {
                    self.drop_request(head, len);
                }
            }
            None => {
                let cleaned = self.books().clean(key);
                if self.sound(cleaned).is_none() {
                    return;
                }
                if let Some(server) = self.servers.get_mut(key) {
                    server.since_ms = cx.net.now_ns() / 1_000_000;
                }
                self.arm_server(cx, key);
                self.settle_later(key);
            }
        }
        self.place_again(cx, id, &moved);
    }

    /// The requests that were taken back from a server go to the front of the queue.
    fn place_again(&mut self, cx: &mut Cx<'_, N>, id: PoolId, moved: &[Key]) {
        for &rider in moved {
            let queued = self.books().queue(rider);
            self.sound(queued);
            self.arm_client(cx, rider);
        }
        self.todo.push_back(Order::Rehouse(id, moved.len() as u32));
    }

    /// So many clients have come back into the queue, where they want servers of their own. What is free goes
    /// to whoever has waited longest.
    pub(super) fn rehouse(&mut self, cx: &mut Cx<'_, N>, id: PoolId, clients: u32) {
        for _ in 0..clients {
            let Some(idle) = self.pool(id).and_then(|pool| pool.newest_idle()) else { break };
            self.check_or_offer(cx, idle);
        }
        // A place among others may be free at once.
        self.place_sharing(cx, id);
        self.open_for_waiters(cx, id);
        self.ask_neighbour(cx, id);
    }

    /// Those who wait for a place get what is free.
    fn place_sharing(&mut self, cx: &mut Cx<'_, N>, id: PoolId) {
        loop {
            let Some(next) = self.next_sharing(id) else { return };
            let idle = self.pool(id).and_then(|pool| pool.newest_idle());
            if let Some(server) = idle {
                self.share(cx, server);
                continue;
            }
            let Some(server) = self.roomiest(cx, id) else { return };
            if !self.convert(server) {
                return;
            }
            self.ride(cx, server, next);
        }
    }

    /// Takes the requests on a shared server back, from this place in its queue on, whoever asks for it: a
    /// late head, a cancel, a client that reads slowly or must keep the server, a server that is gone.
    /// Returns whose may run again.
    ///
    /// This is where it is decided what runs twice. A request may when it is proven pure (that is what let it
    /// ride: [`Needs::shareable`]), is whole, and no byte of its answer has been dealt with: only of the
    /// request at the head any can have been, so callers begin behind that one unless it has just got there.
    /// And it has not been asked again before: who is taken back waits for a server alone
    /// ([`Books::take_back`]) and rides no more.
    ///
    /// [`Books::take_back`]: crate::books::Books::take_back
    fn take_back(&mut self, cx: &mut Cx<'_, N>, server: Key, from: usize) -> Vec<Key> {
        inject::here("take_back");
        let Some(held) = self.servers.get_mut(server) else { return Vec::new() };
        let id = held.pool;
        let Some(back) = held.back() else { return Vec::new() };
        let owners = (from..back.queued()).filter_map(|place| back.owner_at(place)).filter_map(Key::from_raw);
        let mut moved: Vec<Key> = owners.collect();
        moved.retain(|&rider| {
            self.clients.get(rider).is_some_and(|client| client.claim.ride() == Some(server))
        });
        moved.retain(|&rider| {
            let back = self.unload_unanswered(rider);
            if !back {
                // None is known that could come here. It must not be left to wait for an answer that goes
                // nowhere.
                self.end_client(cx, rider, FaultKind::ServerLost.into());
            }
            back
        });
        self.count_pool(id, |cells| cells.repeated_requests.add(moved.len() as u64));
        moved
    }

    /// Takes a client's request back from a shared server, unless it is at the head and may have begun. True:
    /// it wants a place again.
    pub(super) fn unship(&mut self, key: Key) -> bool {
        let server = self.clients.get(key).and_then(|client| client.claim.ride());
        let back = server.and_then(|server| self.servers.get_mut(server)).and_then(|server| server.back());
        back.is_some_and(|back| back.head() != Some(key.raw())) && self.unload_unanswered(key)
    }

    /// The same, wherever it stands: nothing of its answer has come.
    fn unload_unanswered(&mut self, key: Key) -> bool {
        let Some(client) = self.clients.get_mut(key) else { return false };
        let Some(server) = client.claim.ride() else { return false };
        let Some(held) = self.servers.get_mut(server) else { return false };
        let Server { phase: ServerPhase::Live(back), output, .. } = held else { return false };
        let (Phase::Session(front), Holding::Riding { len: 1.., .. }) =
            (&mut client.phase, client.claim.holding())
        else {
            return false;
        };
        back.recall(front, key.raw(), output.tail_mut());
        client.inflight = client.inflight.saturating_sub(1);
        self.mark_dirty(server);
        self.books().take_back(key).is_some()
    }

    /// A client that goes leaves its place in a shared server's queue; the reply will go nowhere.
    pub(super) fn leave_shared(&mut self, key: Key) {
        let Some((server, _)) = self.books().alight(key) else { return };
        let Some(held) = self.servers.get_mut(server) else { return };
        let Server { phase: ServerPhase::Live(back), output, .. } = held else { return };
        back.forget(key.raw(), output.tail_mut());
        self.mark_dirty(server);
        self.settle_later(server);
    }
}
