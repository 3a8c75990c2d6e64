//! Who has which server, when a server is free, and who gets it next.

use super::{Hall, Order};
use crate::books::{Post, Want};
use crate::client::Phase;
use crate::context::Cx;
use crate::ids::{Key, Kind, Tag};
use crate::line::Line;
use crate::mail::{Transfer, WingMail};
use crate::panics::inject;
use crate::pending::Pending;
use crate::pool::{PoolEntry, PoolId, Right};
use crate::server::{Cleaning, Server, ServerFlags, ServerPhase, ServerState};
use crate::settings::PoolMode;
use crate::wing::{Back, Front, Welcomes, Wing};
use std::sync::Arc;
use weir_net::{Kept, Net};
use weir_wire::{Boundary, Fault, FaultKind, INTERNAL, Owner, Pins};

/// A worker gives a freed server to its own oldest waiter unless another worker's oldest has waited longer
/// by more than this. Moving a server costs two workers a wake-up; 2 ms is some tens of point selects.
pub(super) const HAND_OVER_NS: u64 = 2_000_000;

/// Why a server closes that others could use.
const HAS_WAITED_LONGER: &str = "a pool under the same limit has waited longer";

/// Why a server closes that others could use.
const DOES_NOT_SUIT: &str = "who waits needs a new one";

const ACCOUNTS_CHANGED: &str = "an account or a global setting has changed";

impl<W: Wing, N: Net> Hall<W, N> {
    /// A server for this client without waiting, which it does not have yet. `None`: it must queue.
    pub(super) fn free_at_once(&mut self, cx: &mut Cx<'_, N>, key: Key) -> Option<Key> {
        let id = self.clients.get(key)?.pool?;
        if self.pool(id)?.waiting_len() > 0 {
            return None;
        }
        let check_after_ms = cx.settings.timeouts.server_check_delay_ms;
        let studies = self.wants_study(cx, id);
        let server = self.find_suiting(cx, id, key)?;
        let now_ms = cx.now_ms();
        let held = self.servers.get(server)?;
        let idle_ms = now_ms.saturating_sub(held.since_ms);
        let stale = matches!(&held.phase, ServerPhase::Live(back) if back.is_outdated());
        if stale && self.must_be_fresh(id, key) {
            self.close_server(cx, server, ACCOUNTS_CHANGED);
            return None;
        }
        if idle_ms >= check_after_ms {
            self.check(cx, server);
            return None;
        }
        if studies {
            self.clean(server);
            return None;
        }
        Some(server)
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
        // Only here: who was sent back into the queue, or is in a transaction, is never refused.
        let id = self.clients.get(key).and_then(|client| client.pool);
        if id.and_then(|id| self.pool(id)).is_some_and(|pool| pool.entry.shared.queue_is_full()) {
            self.end_client(cx, key, FaultKind::QueueFull.into());
            return;
        }
        self.enter_queue(cx, key);
    }

    /// Puts a client into the queue, at the place that its time gives it.
    pub(super) fn enter_queue(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("enter_queue");
        let Some(id) = self.clients.get(key).and_then(|client| client.pool) else { return };
        let queued = self.books().queue(key);
        if self.sound(queued).is_none() {
            return;
        }
        // Others may wait here although servers are idle: those are being asked whether they live. Nobody
        // would look at the rest of the idle ones again.
        let idle = self.pool(id).and_then(|pool| pool.newest_idle());
        self.arm_client(cx, key);
        if let Some(server) = idle {
            self.check_or_offer(cx, server);
        }
        self.open_for_waiters(cx, id);
        self.ask_neighbour(cx, id);
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

    /// Nothing here and no room under the limit: a worker that has an idle server may send it.
    pub(super) fn ask_neighbour(&mut self, cx: &mut Cx<'_, N>, id: PoolId) {
        let Some(pool) = self.pool(id) else { return };
        if pool.connecting() >= pool.waiting_len() {
            return;
        }
        let entry = pool.entry.clone();
        if let Some(neighbour) = entry.shared.idle_elsewhere(cx.worker) {
            cx.post::<W>(neighbour, WingMail::Want { pool: entry, from: cx.worker });
        }
    }

    /// Another worker has a waiter and nothing idle.
    pub(super) fn wanted(&mut self, cx: &mut Cx<'_, N>, entry: &Arc<PoolEntry<W::Welcomes>>, from: usize) {
        let worker = cx.worker;
        let pool = self.pool_of(cx, entry);
        // Whoever waits here has a server that is being checked; the idle ones are to spare.
        if let Some(server) = pool.newest_idle() {
            self.hand_over(cx, server, from);
        } else if let Some(other) = entry.shared.idle_elsewhere(worker)
            && other != from
            && entry.shared.waits(from)
        {
            // Somebody was quicker. The wish goes on to where there is another one.
            cx.post::<W>(other, WingMail::Want { pool: entry.clone(), from });
        }
    }

    /// Gives a server to a client, and says what that wants of it. `None`: it cannot have it.
    pub(super) fn lease(&mut self, cx: &mut Cx<'_, N>, server: Key, key: Key) -> Option<Option<Want>> {
        inject::here("lease");
        let leased = self.books().lease(server, key);
        let served = self.sound(leased)?;
        let now_ms = cx.now_ms();
        if let Some(held) = self.servers.get_mut(server) {
            held.since_ms = now_ms;
            held.cleaning = Cleaning::default();
            held.is.used |= served.want != Some(Want::Welcome);
        }
        if let Some(client) = self.clients.get_mut(key) {
            client.transaction_since_ms = 0;
        }
        if let Some(since_ns) = served.waited_since_ns {
            self.note_waited(cx, key, since_ns);
            self.crowd.behind += 1;
        }
        Some(served.want)
    }

    /// A server that is free takes up what a client wants.
    fn serve(&mut self, cx: &mut Cx<'_, N>, server: Key, key: Key) {
        let Some(Some(want)) = self.lease(cx, server, key) else { return };
        let Some(client) = self.clients.get_mut(key) else { return };
        match want {
            Want::Request { len, whole, .. } => {
                let mut input = std::mem::take(&mut client.input);
                let len = (len as usize).min(input.len());
                self.dispatch(cx, key, server, &input.as_slice()[..len], whole);
                let Some(client) = self.clients.get_mut(key) else { return };
                input.consume(len);
                input.release_if_empty();
                client.input = input;
                if !client.input.is_empty() || client.is.readable {
                    self.todo.push_back(Order::PumpClient(key));
                }
            }
            Want::Welcome => self.dispatch_welcome(cx, key, server),
        }
    }

    /// A client of this worker has waited for a server since then.
    pub(super) fn note_waited(&mut self, cx: &Cx<'_, N>, key: Key, since_ns: u64) {
        let waited_ns = cx.now_ns().saturating_sub(since_ns);
        self.cells.wait_duration.record_ns(waited_ns);
        let id = self.clients.get(key).and_then(|client| client.pool);
        if let Some(pool) = id.and_then(|id| self.pool(id)) {
            pool.entry.shared.note_waited(cx.worker, waited_ns);
        }
    }

    fn dispatch_welcome(&mut self, cx: &mut Cx<'_, N>, key: Key, server: Key) {
        let (Some(client), Some(held)) = (self.clients.get_mut(key), self.servers.get_mut(server)) else {
            return;
        };
        let (Phase::Session(front), ServerPhase::Live(back)) = (&mut client.phase, &mut held.phase) else {
            return;
        };
        let sent = back.dispatch_welcome(front, key.raw(), held.output.tail_mut());
        client.inflight += 1;
        self.mark_dirty(server);
        match sent {
            Ok(()) => {
                self.todo.push_back(Order::PumpServer(server));
                self.arm_client(cx, key);
            }
            Err(fault) => self.end_client(cx, key, fault),
        }
    }

    /// The request at a server's head is answered.
    pub(super) fn done(&mut self, cx: &mut Cx<'_, N>, server: Key, owner: Owner, boundary: Boundary) {
        inject::here("done");
        if owner == INTERNAL {
            self.studied(cx, server);
            self.settle_later(server);
            return;
        }
        let Some(key) = Key::from_raw(owner) else { return };
        let now_ns = cx.now_ns();
        let Some(client) = self.clients.get_mut(key).filter(|client| client.server() == Some(server)) else {
            self.settle_later(server);
            return;
        };
        let took_ns = now_ns.saturating_sub(client.request_since_ns);
        client.request_since_ns = now_ns;
        client.active_ms = now_ns / 1_000_000;
        if boundary == Boundary::Idle {
            client.transaction_since_ms = 0;
        }
        let quick = client.is_quick();
        client.inflight = client.inflight.saturating_sub(1);
        let (greeted, id, inflight) = (client.is.greeted, client.pool, client.inflight);
        self.crowd.answered += 1;
        // Whatever the client keeps its server for from here on, it is no longer for that request.
        self.books().note_quick(key, false);
        if inflight == 0 && self.servers.get(server).is_some_and(|server| server.post.is_held()) {
            self.cancels_too_late(cx, server);
        }
        if let Some(pool) = id.and_then(|id| self.pool(id)) {
            pool.entry.shared.note_answered(cx.worker, took_ns);
            if quick {
                pool.note_head(took_ns);
            }
        }
        if self.clients.get(key).is_some_and(|client| client.claim.ride().is_none()) {
            self.note_history(key, took_ns);
        }
        self.cells.request_duration.record_ns(took_ns);
        let back = self.servers.get_mut(server).and_then(|server| server.back());
        let injected = back.map_or(0, |back| back.take_injected_prepares());
        if let Some(id) = id {
            self.count_pool(id, |cells| {
                cells.requests.inc();
                if injected > 0 {
                    cells.injected_prepares.add(u64::from(injected));
                }
            });
        }
        if self.clients.get(key).is_some_and(|client| client.claim.ride().is_some()) {
            return self.carried(cx, key, server, boundary);
        }
        if !greeted {
            self.welcome_done(cx, key, server);
        }
        let front = self.clients.get_mut(key).and_then(|client| client.front());
        if let Some((number, query_only)) = front.and_then(|front| front.take_kill()) {
            return self.done_but_for_a_kill(cx, key, boundary, number, query_only);
        }
        self.boundary(cx, key, boundary);
    }

    /// A request is answered but for the KILL at its end.
    fn done_but_for_a_kill(
        &mut self,
        cx: &mut Cx<'_, N>,
        key: Key,
        boundary: Boundary,
        number: u32,
        query_only: bool,
    ) {
        let kill = self.kill_of(cx, key, number, query_only);
        self.boundary(cx, key, boundary);
        let Some(kill) = kill else { return };
        if let Some(client) = self.clients.get_mut(key).filter(|it| matches!(it.phase, Phase::Session(_))) {
            client.inflight += 1;
        }
        self.send_kill(cx, kill);
    }

    /// A client is at a boundary: is its server free?
    pub(super) fn boundary(&mut self, cx: &mut Cx<'_, N>, key: Key, boundary: Boundary) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.is.part_open && client.front().is_some_and(|front| !front.is_part_open()) {
            // What came in parts was data of a COPY, which is over.
            client.is.part_open = false;
        }
        let (inflight, part_open) = (client.inflight, client.is.part_open);
        // What it has sent before it ended is answered first.
        let eof = client.has_said_all();
        if matches!(client.phase, Phase::Closing) {
            return;
        }
        if inflight > 0 || part_open {
            return;
        }
        if client.front().is_some_and(|front| front.is_told_the_end()) {
            // It came right behind the answer. What the client has sent since must not run elsewhere.
            self.close_client(cx, key, None);
            return;
        }
        let Some(id) = client.pool else { return };
        let Some(mode) = self.pool(id).map(|pool| pool.spec.mode) else { return };
        if mode == PoolMode::Statement && boundary != Boundary::Idle && !self.awaits_end(key) {
            let text = "a transaction of several statements in a pool of mode statement";
            self.end_client(cx, key, Fault::new(FaultKind::NotAllowed, text));
            return;
        }
        let pins = self.pins(key);
        if boundary == Boundary::Idle && mode != PoolMode::Session {
            if pins.is_empty() {
                self.end_lease(cx, key);
            } else {
                self.count_pins(key, pins);
                self.await_question(cx, key);
            }
        }
        if eof || (self.draining && boundary == Boundary::Idle) {
            let why = (!eof).then(|| FaultKind::ShuttingDown.into());
            self.close_client(cx, key, why);
            return;
        }
        self.arm_client(cx, key);
        self.todo.push_back(Order::PumpClient(key));
    }

    /// Where this client's server is will be known when the client has ended what it has begun.
    fn awaits_end(&mut self, key: Key) -> bool {
        let server = self.clients.get(key).and_then(|client| client.server());
        let back = server.and_then(|server| self.servers.get_mut(server)?.back());
        back.is_some_and(|back| back.awaits_end())
    }

    /// A server stays with its client beyond the boundary: counts the reasons that are new.
    pub(super) fn count_pins(&mut self, key: Key, pins: Pins) {
        let before = self.books().pin(key, pins);
        let Some(id) = self.clients.get(key).and_then(|client| client.pool) else { return };
        self.count_pool(id, |cells| {
            pins.iter().filter(|&pin| !before.contains(pin)).for_each(|pin| cells.pins(pin).inc());
        });
    }

    pub(super) fn pins(&mut self, key: Key) -> Pins {
        self.clients.get_mut(key).and_then(|client| client.front()).map_or(Pins::NONE, |front| front.pins())
    }

    fn welcome_done(&mut self, cx: &mut Cx<'_, N>, key: Key, server: Key) {
        let (Some(client), Some(held)) = (self.clients.get_mut(key), self.servers.get_mut(server)) else {
            return;
        };
        let Some(pool) = client.pool.and_then(|id| self.pools.get_mut(id.0 as usize)?.as_deref_mut()) else {
            return;
        };
        let (Phase::Session(front), ServerPhase::Live(back)) = (&mut client.phase, &mut held.phase) else {
            return;
        };
        let (accepted, welcomes) = pool.entry.learn(|welcomes| welcomes.record(front, back));
        if !accepted {
            // The server has told the client why.
            self.cells.wing.logins_failed.inc();
            if !self.go_back(cx, key) {
                self.begin_closing(cx, key);
            }
            return;
        }
        let mut out = std::mem::take(&mut self.staging);
        if welcomes.greet(front, &mut out) {
            client.is.greeted = true;
            client.before = None;
            self.cells.wing.logins_ok.inc();
            self.leave_login(key);
        }
        self.send_client(cx, key, &out);
        self.recycle(out);
        if self.clients.get(key).is_some_and(|client| !client.is.greeted) {
            let text = "settings that were confirmed cannot be greeted";
            self.end_client(cx, key, Fault::new(FaultKind::ServerProtocol, text));
        }
    }

    /// The client needs its server no longer.
    pub(super) fn end_lease(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("end_lease");
        let Some(server) = self.books().release(key) else { return };
        let Some(client) = self.clients.get_mut(key) else { return };
        client.transaction_since_ms = 0;
        // A client that does not read makes its server wait, but not the next client's.
        let choked = client.chokes == Some(server);
        if choked {
            client.chokes = None;
        }
        if let Some(held) = self.servers.get_mut(server) {
            held.is.paused &= !choked;
            held.since_ms = cx.net.now_ns() / 1_000_000;
        }
        self.settle_later(server);
    }

    /// A client leaves its server, in whatever state that is.
    pub(super) fn abandon(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("abandon");
        self.leave_shared(key);
        let Some(server) = self.books().release(key) else { return };
        let Some(client) = self.clients.get(key) else { return };
        let in_session_mode =
            client.pool.and_then(|id| self.pools.get(id.0 as usize)?.as_deref()).map(|pool| pool.spec.mode)
                == Some(PoolMode::Session);
        let Some(client) = self.clients.get_mut(key) else { return };
        let pinned = client.front().is_none_or(|front| !front.pins().is_empty());
        if let Some(held) = self.servers.get_mut(server) {
            held.is.paused = false;
            held.since_ms = cx.net.now_ns() / 1_000_000;
            held.cleaning = Cleaning { needs_reset: in_session_mode || pinned, ..Cleaning::default() };
            let Server { phase: ServerPhase::Live(back), output, .. } = held else { return };
            back.forget(key.raw(), output.tail_mut());
            self.mark_dirty(server);
        }
        self.arm_server(cx, server);
        self.todo.push_back(Order::PumpServer(server));
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
        let Server { phase: ServerPhase::Live(back), output, cleaning, .. } = server else { return };
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
                self.close_server(cx, key, "it did not roll back");
                return;
            }
            cleaning.rolled_back = true;
            back.rollback(output.tail_mut());
            let id = server.pool;
            self.count_pool(id, |cells| cells.server_rollbacks.inc());
            return self.clean_on(cx, key);
        }
        cleaning.needs_reset |= back.wants_reset();
        if cleaning.needs_reset && !cleaning.reset {
            cleaning.reset = true;
            back.reset(output.tail_mut());
            let id = server.pool;
            self.count_pool(id, |cells| cells.server_resets.inc());
            return self.clean_on(cx, key);
        }
        if !back.is_reusable() || !server.input.is_empty() {
            self.close_server(cx, key, "it cannot be used again");
            return;
        }
        if !server.output.is_empty() {
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
        let Server { phase: ServerPhase::Live(back), output, .. } = server else { return };
        back.check(output.tail_mut());
        self.clean_on(cx, key);
    }

    /// A server that is outdated is not for this client: it logs in, or others of its kind may have logged in
    /// since. Who was there before goes on with it as long as nothing newer can be had: his account may be
    /// gone.
    fn must_be_fresh(&mut self, id: PoolId, key: Key) -> bool {
        let logs_in = self.clients.get(key).is_some_and(|client| client.claim.want() == Some(Want::Welcome));
        logs_in || self.pool(id).is_some_and(|pool| pool.entry.welcomes().is_current())
    }

    /// It must not be used again once it is free.
    pub(super) fn is_to_be_replaced(&mut self, cx: &Cx<'_, N>, key: Key) -> bool {
        let Some(server) = self.servers.get_mut(key) else { return false };
        let lifetime_ms = cx.settings.timeouts.server_lifetime_ms;
        let age_ms = cx.now_ms().saturating_sub(server.opened_ms);
        // A login may take longer than a short lifetime: whom the server was opened for gets it.
        let too_old = server.is.used && lifetime_ms.is_some_and(|most_ms| age_ms >= most_ms);
        let stale = matches!(&server.phase, ServerPhase::Live(back) if back.is_outdated());
        let (id, retire, spec_epoch) = (server.pool, server.is.retire, server.spec_epoch);
        let Some(pool) = self.pool(id) else { return false };
        let retire = retire || stale && pool.entry.welcomes().is_current();
        let outdated = spec_epoch < pool.spec.servers_since;
        retire || too_old || outdated || pool.entry.shared.is_over_limit()
    }

    /// A clean server: whoever has waited longest gets it.
    fn offer(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("offer");
        let Some(server) = self.servers.get_mut(key) else { return };
        let id = server.pool;
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
        let own = self.pools[id.0 as usize].as_deref();
        let own = own.and_then(|pool| pool.oldest(&self.clients));
        let own_since = own.and_then(|own| self.clients.get(own)).map(|client| client.claim.since_ns());
        let elsewhere = entry.shared.longest_waiting_elsewhere(cx.worker);
        if let Some(heir) = self.who_has_waited_longer(cx, &entry) {
            self.close_for(cx, key, heir, HAS_WAITED_LONGER);
            return;
        }
        match (own, own_since, elsewhere) {
            (_, None, Some((worker, _))) => return self.hand_over(cx, key, worker),
            (Some(_), Some(mine), Some((worker, theirs))) if theirs.saturating_add(HAND_OVER_NS) < mine => {
                return self.hand_over(cx, key, worker);
            }
            (Some(own), Some(_), _) if self.clients.get(own).is_some_and(|client| client.shares()) => {
                return self.share(cx, key);
            }
            (Some(own), Some(_), _) => {
                let held = self.servers.get(key);
                let stale = held
                    .is_some_and(|held| matches!(&held.phase, ServerPhase::Live(back) if back.is_outdated()));
                if stale && self.must_be_fresh(id, own) {
                    self.close_server(cx, key, ACCOUNTS_CHANGED);
                    return;
                }
                if !self.suits(key, own) {
                    self.books().note_opening(own, false);
                    return self.renew_for(cx, key, own, DOES_NOT_SUIT);
                }
                return self.serve(cx, key, own);
            }
            (None, ..) | (Some(_), None, None) => {}
        }
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
        } else if let Some(heir) = self.who_has_waited_longer(cx, &entry) {
            self.close_for(cx, key, heir, HAS_WAITED_LONGER);
        }
    }

    /// Moves a clean server to another worker.
    pub(super) fn hand_over(&mut self, cx: &mut Cx<'_, N>, key: Key, to: usize) {
        inject::here("hand_over");
        let Some(server) = self.books().close(key) else { return };
        let Server { line, target, right, phase, input, output, opened_ms, .. } = server;
        let (spec_epoch, cleaning, is) = (server.spec_epoch, server.cleaning, server.is);
        debug_assert!(output.is_empty());
        let ServerPhase::Live(back) = phase else { return };
        let (socket, tls) = line.into_parts();
        match cx.net.pack(socket, to) {
            Ok(parcel) => {
                let transfer =
                    Transfer { parcel, tls, target, right, back, input, opened_ms, spec_epoch, cleaning, is };
                cx.post::<W>(to, WingMail::Server(Box::new(transfer)));
            }
            Err(Kept { socket, error }) => {
                tracing::debug!(protocol = W::NAME, %error, "a server could not be handed over");
                cx.net.close(socket, true);
                self.count_pool(right.entry().id, |cells| cells.server_closes.inc());
                self.give_back(right);
            }
        }
    }

    /// A server arrives from another worker.
    pub(super) fn taken_over(&mut self, cx: &mut Cx<'_, N>, transfer: Transfer<W, N>) {
        inject::here("taken_over");
        let Transfer { parcel, tls, target, right, back, input, opened_ms, spec_epoch, cleaning, is } =
            transfer;
        let entry = right.entry().clone();
        let key = self.servers.next_key();
        let tag = Tag { kind: Kind::Server, wing: W::INDEX, key };
        self.pool_of(cx, &entry);
        let socket = match cx.net.unpack(parcel, tag.token()) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(protocol = W::NAME, %error, "a server was lost on its way between workers");
                self.count_pool(entry.id, |cells| cells.server_closes.inc());
                self.give_back(right);
                return;
            }
        };
        self.books().enter(Server {
            line: Line::with(socket, tls),
            target,
            pool: entry.id,
            right,
            spec_epoch,
            phase: ServerPhase::Live(back),
            post: Post::arriving(),
            input,
            output: Pending::default(),
            opened_ms,
            since_ms: cx.now_ms(),
            head_since_ns: 0,
            armed_ms: u64::MAX,
            cleaning,
            is: ServerFlags { readable: true, dirty: false, paused: false, full: false, due: false, ..is },
        });
        self.count_pool(entry.id, |cells| cells.server_handovers.inc());
        if self.has_moved(key)
            && let Some(server) = self.servers.get_mut(key)
        {
            // The word of it may have come here while it was on its way.
            server.is.retire = true;
        }
        self.todo.push_back(Order::PumpServer(key));
        self.settle_later(key);
    }

    /// A server is gone, and its place is free.
    pub(super) fn give_back(&mut self, right: Right<W::Welcomes>) {
        let entry = right.entry().clone();
        drop(right);
        self.todo.push_back(Order::Freed(entry));
    }

    /// There is room under the limits of a pool: for a waiter here, or for one elsewhere.
    pub(super) fn freed(&mut self, cx: &mut Cx<'_, N>, entry: &Arc<PoolEntry<W::Welcomes>>) {
        inject::here("slot_freed");
        self.cap_freed(cx, entry);
        self.room_for_waiters(cx, entry);
        // Whoever waited for the one that is gone has not asked for an idle one elsewhere.
        self.ask_neighbour(cx, entry.id);
        self.fill(cx, entry.id);
    }

    /// Uses room under a pool's limit where somebody waits: here, and what is left elsewhere. All who wait
    /// are told, because one who was told alone may have been served by then, or may be pausing after a
    /// failed connect.
    pub(super) fn room_for_waiters(&mut self, cx: &mut Cx<'_, N>, entry: &Arc<PoolEntry<W::Welcomes>>) {
        self.pool_of(cx, entry);
        self.open_for_waiters(cx, entry.id);
        for worker in cx.shared.berths.open().filter(|&worker| worker != cx.worker) {
            if entry.shared.has_room() && entry.shared.waits(worker) {
                cx.post::<W>(worker, WingMail::SlotFree { pool: entry.clone() });
            }
        }
    }
}
