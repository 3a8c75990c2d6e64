//! One server for the requests of several clients: each request is whole, only reads and provably leaves no
//! trace, so they can be queued one behind the other on a server. The database then wakes up once for several
//! of them, and so does Weir.
//!
//! Owns: when a request rides, when a shared server takes more and when it must become free. Who rides where
//! is in the books; ending it is the task of `seclude.rs`.
//! Must not know: bytes.
//!
//! Invariants: a client rides on at most one server and with at most one request, whose bytes stay at the
//! start of its `input` until it is answered; as far as is known, only the request at the head of a shared
//! server can have begun, so only that one is lost with the server, and only that one can be hit by a cancel:
//! before a cancel is sent, the others go elsewhere (`seclude`). Since they only read, it does not matter
//! that the server may still run them for nobody. A request that was sent once is sent again at most once,
//! and then on a server of its own (`take_back`). A client that must keep its server after all gets it, and
//! those behind it go elsewhere (`keep_after_all`): no client is ever tied to a server without holding it.

use super::{Hall, Order};
use crate::client::{Phase, is_shareable, mark_of};
use crate::context::Cx;
use crate::ids::Key;
use crate::panics::inject;
use crate::pool::PoolId;
use crate::server::{Cleaning, Server, ServerPhase, ServerState};
use crate::settings::PoolMode;
use crate::wing::{Back, Front, Wing};
use weir_net::Net;
use weir_wire::{Boundary, Needs, limits};

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
        while let Some(key) = self.pool(id).and_then(|pool| pool.joinable_at(at)) {
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
            let full = server.stream.output.len() > limits::SERVER_OUTPUT_BYTES;
            let back = server.back().filter(|back| !back.wants_reset());
            let queued = back.map_or(usize::MAX, |back| back.queued());
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
            let mark = mark_of(needs);
            pool.history.is_new(mark) || pool.history.is_slow(mark, pool.head_ns)
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
        if is_shareable(fingerprint)
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
        client.transaction_since_ns = 0;
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
        self.lead(cx, key);
        let now_ns = cx.now_ns();
        let rides = self.books().ride(server, key);
        let Some((len, waited_since_ns)) = self.sound(rides) else { return };
        if let Some(since_ns) = waited_since_ns {
            self.note_waited(cx, key, since_ns);
        }
        self.note_ride(cx, key, len as usize);
        let (Some(client), Some(held)) = (self.clients.get_mut(key), self.servers.get_mut(server)) else {
            return;
        };
        debug_assert_eq!(client.inflight, 0);
        let Phase::Session(front) = &mut client.phase else { return };
        let Server { phase: ServerPhase::Live(back), stream, since_ms, head_since_ns, pool, is, .. } = held
        else {
            return;
        };
        let id = *pool;
        is.used = true;
        if back.queued() == 0 {
            *since_ms = now_ns / 1_000_000;
            *head_since_ns = now_ns;
        }
        let len = (len as usize).min(client.stream.input.len());
        let request = &client.stream.input.as_slice()[..len];
        self.statements
            .see(cx.settings.statements, id, client.fingerprint, |most| front.words_of(request, most));
        let sent = back.dispatch(front, key.raw(), request, true, stream.output.tail_mut());
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

    /// A shared server has room: the next ones get on, unless it is wanted elsewhere. Empty, it is free.
    pub(super) fn refill(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("refill");
        loop {
            let Some(server) = self.servers.get_mut(key) else { return };
            if server.state() != ServerState::Shared {
                return;
            }
            let (id, kept) = (server.pool, server.is.paused || server.post.is_held());
            let full = server.stream.output.len() > limits::SERVER_OUTPUT_BYTES;
            let Some(back) = server.back() else { return };
            let (queued, suspect) = (back.queued(), back.wants_reset());
            if !kept
                && !suspect
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

    /// A shared server takes no more, so that it becomes free: for whoever has waited longest, or because its
    /// time is over.
    fn must_drain(&mut self, cx: &mut Cx<'_, N>, id: PoolId, key: Key) -> bool {
        let elsewhere = self.pool(id).and_then(|pool| pool.entry.shared.longest_waiting_elsewhere(cx.worker));
        let drains = self.books().must_drain(id, key, elsewhere);
        drains || self.is_to_be_replaced(cx, key) || self.wants_study(cx, id)
    }

    /// Those who wait for a place get what is free.
    pub(super) fn place_sharing(&mut self, cx: &mut Cx<'_, N>, id: PoolId) {
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
}
