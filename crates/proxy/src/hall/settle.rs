//! When a server is free, and which client gets it next: the one that has waited longest, on this worker or
//! another.
//!
//! A server that no client holds is made reusable step by step (`settle`); then it is offered. A client that
//! finds no free server joins the queue.

use super::caps::Entry;
use super::{Hall, Order};
use crate::books::{Fit, Next, Want};
use crate::context::Cx;
use crate::ids::Key;
use crate::panics::inject;
use crate::pool::PoolId;
use crate::server::{Cleaning, Server, ServerPhase, ServerState};
use crate::wing::{Back, Welcomes, Wing};
use weir_net::Net;
use weir_wire::{Boundary, FaultKind};

/// Why a server closes that others could use.
const HAS_WAITED_LONGER: &str = "a pool under the same limit has waited longer";

/// Why a server closes that others could use.
const DOES_NOT_SUIT: &str = "who waits needs a new one";

const ACCOUNTS_CHANGED: &str = "an account or a global setting has changed";

impl<W: Wing, N: Net> Hall<W, N> {
    /// A server for this client without waiting, which it does not have yet. `None`: it must queue.
    pub(super) fn free_at_once(&mut self, cx: &mut Cx<'_, N>, key: Key) -> Option<Key> {
        let id = self.clients.get(key)?.pool?;
        if self.pool(id)?.waiting_len() > 0 || self.has_favourite_soon(id, key) {
            return None;
        }
        let check_after_ms = cx.settings.timeouts.server_check_delay_ms;
        let studies = self.wants_study(cx, id);
        let server = self.find_suiting(cx, id, key)?;
        let now_ms = cx.now_ms();
        let held = self.servers.get(server)?;
        let idle_ms = now_ms.saturating_sub(held.since_ms);
        let stale = matches!(&held.phase, ServerPhase::Live(back) if back.is_outdated());
        // Since it became idle it was found that what ran there may have left anything.
        let suspect = matches!(&held.phase, ServerPhase::Live(back) if back.wants_reset());
        if stale && self.must_be_fresh(id, key) {
            self.close_server(cx, server, ACCOUNTS_CHANGED);
            return None;
        }
        if idle_ms >= check_after_ms {
            self.check(cx, server);
            return None;
        }
        if studies || suspect {
            self.clean(server);
            return None;
        }
        Some(server)
    }

    /// A server for what a client wants: now, or in its turn.
    pub(super) fn acquire_or_wait(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("acquire_or_wait");
        if let Some(server) = self.free_at_once(cx, key) {
            self.serve(cx, server, key);
            return;
        }
        self.books().wants_since(key, cx.net.now_ns());
        if self.ride_at_once(cx, key) {
            return;
        }
        if self.follow(key) {
            self.arm_client(cx, key);
            return;
        }
        // Only here: who was sent back into the queue, or is in a transaction, is never refused.
        let id = self.clients.get(key).and_then(|client| client.pool);
        if id.and_then(|id| self.pool(id)).is_some_and(|pool| pool.entry.shared.queue_is_full()) {
            self.end_client(cx, key, FaultKind::QueueFull.into());
            return;
        }
        self.enter_queue(cx, key);
    }

    /// A client that has waited elsewhere joins the queue, or follows one there.
    pub(super) fn join_queue(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        if self.follow(key) {
            self.arm_client(cx, key);
        } else {
            self.enter_queue(cx, key);
        }
    }

    /// Puts a client into the queue, at the place that its time gives it.
    fn enter_queue(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("enter_queue");
        let Some(id) = self.clients.get(key).and_then(|client| client.pool) else { return };
        let queued = self.books().queue(key);
        if self.sound(queued).is_none() {
            return;
        }
        // Others may wait here although servers are idle: those are being asked whether they live. Nobody
        // would look at the rest of the idle ones again.
        if self.has_favourite_soon(id, key) {
            self.await_favourite(cx, key);
        }
        self.arm_client(cx, key);
        self.offer_idle(cx, id);
        self.open_for_waiters(cx, id);
        self.ask_neighbour(cx, id);
    }

    /// Somebody may wait although servers are idle: the one used last is offered.
    pub(super) fn offer_idle(&mut self, cx: &mut Cx<'_, N>, id: PoolId) {
        if let Some(server) = self.pool(id).and_then(|pool| pool.newest_idle()) {
            self.check_or_offer(cx, server);
        }
    }

    /// A server that is free takes up what a client wants.
    fn serve(&mut self, cx: &mut Cx<'_, N>, server: Key, key: Key) {
        let Some(Some(want)) = self.lease(cx, server, key) else { return };
        self.lead(cx, key);
        let Some(client) = self.clients.get_mut(key) else { return };
        match want {
            Want::Request { len, whole, .. } => {
                let mut input = std::mem::take(&mut client.stream.input);
                let len = (len as usize).min(input.len());
                self.dispatch(cx, key, server, &input.as_slice()[..len], whole);
                let Some(client) = self.clients.get_mut(key) else { return };
                input.consume(len);
                input.release_if_empty();
                client.stream.input = input;
                if !client.stream.input.is_empty() || client.stream.line.readable {
                    self.todo.push_back(Order::PumpClient(key));
                }
            }
            Want::Welcome => self.dispatch_welcome(cx, key, server),
        }
    }

    /// An idle server goes to whoever waits, once it is known to live.
    pub(super) fn check_or_offer(&mut self, cx: &mut Cx<'_, N>, server: Key) {
        let (now_ms, check_after_ms) = (cx.now_ms(), cx.settings.timeouts.server_check_delay_ms);
        let Some(held) = self.servers.get_mut(server) else { return };
        if now_ms.saturating_sub(held.since_ms) >= check_after_ms {
            return self.check(cx, server);
        }
        self.clean(server);
    }

    /// Nobody has a server any more, or nobody had it: it is brought to where it can be offered.
    fn clean(&mut self, server: Key) {
        let cleaned = self.books().clean(server);
        if self.sound(cleaned).is_none() {
            return;
        }
        if let Some(held) = self.servers.get_mut(server) {
            held.cleaning = Cleaning::default();
        }
        self.settle_later(server);
    }

    /// A server that nobody holds: brings it to where it can be used again, then offers it. Called at each
    /// step on that way; does nothing while something is under way.
    pub(super) fn settle(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("settle");
        let Some(server) = self.servers.get_mut(key) else { return };
        server.is.due = false;
        if server.state() == ServerState::Shared {
            return self.refill(cx, key);
        }
        if server.state() != ServerState::Cleaning {
            return;
        }
        if server.post.is_held() {
            // A cancel on its way to it may take long. Whoever waits takes another one where there is room.
            let id = server.pool;
            return self.open_for_waiters(cx, id);
        }
        let Server { phase: ServerPhase::Live(back), stream, cleaning, .. } = server else { return };
        if back.is_broken() {
            self.close_server(
                cx,
                key,
                "a request on it was cut in two, or it failed a request of Weir's own",
            );
            return;
        }
        if back.queued() > 0 {
            return;
        }
        if back.boundary() != Boundary::Idle {
            if cleaning.rolled_back {
                return self.close_server(cx, key, "it did not roll back");
            }
            cleaning.rolled_back = true;
            back.rollback(stream.output.tail_mut());
            let id = server.pool;
            self.count_pool(id, |cells| cells.server_rollbacks.inc());
            return self.clean_on(cx, key);
        }
        cleaning.needs_reset |= back.wants_reset();
        let stays = back.is_never_reset();
        if cleaning.needs_reset && !stays && !cleaning.reset {
            cleaning.reset = true;
            back.reset(stream.output.tail_mut());
            let id = server.pool;
            self.count_pool(id, |cells| cells.server_resets.inc());
            return self.clean_on(cx, key);
        }
        if !back.is_reusable() || (stays && cleaning.needs_reset) || !server.stream.input.is_empty() {
            self.close_server(cx, key, "it cannot be used again");
            return;
        }
        if !server.stream.output.is_empty() {
            // It has answered before it has read everything, as after an error in COPY. What it has not taken
            // yet stays in front of what the next client sends; `flush_server` comes back here.
            self.mark_dirty(key);
            self.arm_server(cx, key);
            return;
        }
        if self.study(cx, key) {
            return self.clean_on(cx, key);
        }
        self.offer(cx, key);
    }

    fn clean_on(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        self.mark_dirty(key);
        self.arm_server(cx, key);
        self.todo.push_back(Order::PumpServer(key));
    }

    /// Asks an idle server whether it lives before somebody gets it.
    fn check(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let cleaned = self.books().clean(key);
        if self.sound(cleaned).is_none() {
            return;
        }
        let Some(server) = self.servers.get_mut(key) else { return };
        server.since_ms = cx.net.now_ns() / 1_000_000;
        server.cleaning = Cleaning::default();
        let id = server.pool;
        self.count_pool(id, |cells| cells.server_checks.inc());
        let Some(server) = self.servers.get_mut(key) else { return };
        let Server { phase: ServerPhase::Live(back), stream, .. } = server else { return };
        back.check(stream.output.tail_mut());
        self.clean_on(cx, key);
    }

    /// A server that is outdated is not for this client: it logs in, or others of its kind may have logged in
    /// since. Who was there before goes on with it as long as nothing newer can be had: his account may be
    /// gone.
    fn must_be_fresh(&self, id: PoolId, key: Key) -> bool {
        let logs_in = self.clients.get(key).is_some_and(|client| client.claim.want() == Some(Want::Welcome));
        let pool = self.pools.get(id.0 as usize).and_then(|pool| pool.as_deref());
        logs_in || pool.is_some_and(|pool| pool.entry.welcomes().is_current())
    }

    /// A clean server: whoever has waited longest gets it.
    fn offer(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("offer");
        let Some(server) = self.servers.get_mut(key) else { return };
        let id = server.pool;
        self.todo.extend(server.cleaning.awaited.take().map(Order::GoOn));
        let Some(pool) = self.pool(id) else { return };
        let entry = pool.entry.clone();
        if self.is_to_be_replaced(cx, key) {
            self.close_server(cx, key, "it is to be replaced");
            return;
        }
        if self.is_reserved(key) {
            return match self.heir_of(key) {
                Some(heir) => self.serve(cx, key, heir),
                None => self.close_server(cx, key, "nobody has use for what it was opened with"),
            };
        }
        if let Some(heir) = self.who_has_waited_longer(cx, &entry) {
            self.close_for(cx, key, heir, HAS_WAITED_LONGER);
            return;
        }
        match self.next_for(cx, key, &entry) {
            Next::Serve(client) => {
                self.serve(cx, key, client);
                // He may have waited for this one while another one was idle, and others behind him.
                if self.pool(id).is_some_and(|pool| pool.waiting_len() > 0) {
                    self.offer_idle(cx, id);
                }
            }
            Next::Share => self.share(cx, key),
            Next::HandOver(worker) => self.hand_over(cx, key, worker),
            Next::Close => self.close_server(cx, key, ACCOUNTS_CHANGED),
            Next::Renew(client) => {
                self.books().note_opening(client, false);
                self.renew_for(cx, key, client, DOES_NOT_SUIT);
            }
            Next::Rest => self.rest(cx, key, &entry),
        }
    }

    /// Who gets a server that is clean.
    fn next_for(&self, cx: &Cx<'_, N>, key: Key, entry: &Entry<W>) -> Next {
        let Some(Some(pool)) = self.pools.get(entry.id.0 as usize) else { return Next::Rest };
        let elsewhere = entry.shared.longest_waiting_elsewhere(cx.worker);
        let is_outdated = || {
            let phase = self.servers.get(key).map(|held| &held.phase);
            matches!(phase, Some(ServerPhase::Live(back)) if back.is_outdated())
        };
        pool.next(&self.clients, elsewhere, |client| match () {
            () if is_outdated() && self.must_be_fresh(entry.id, client) => Fit::Outdated,
            () if self.awaits_favourite(entry.id, key, client) => Fit::Ignorant,
            () if !self.suits(key, client) => Fit::Unsuitable,
            () => Fit::Suits,
        })
    }

    /// Nobody wants a clean server: it is idle.
    fn rest(&mut self, cx: &mut Cx<'_, N>, key: Key, entry: &Entry<W>) {
        let now_ms = cx.now_ms();
        if let Some(server) = self.servers.get_mut(key) {
            server.since_ms = now_ms;
        }
        let rests = self.books().rest(key);
        if self.sound(rests).is_none() {
            return;
        }
        self.arm_server(cx, key);
        // Published first, looked second: a waiter elsewhere that came in between is seen here.
        if let Some((worker, _)) = entry.shared.longest_waiting_elsewhere(cx.worker) {
            self.hand_over(cx, key, worker);
        } else if let Some(heir) = self.who_has_waited_longer(cx, entry) {
            self.close_for(cx, key, heir, HAS_WAITED_LONGER);
        }
    }
}
