//! A request is complete: what its client keeps, and whether its server is free.

use super::{Hall, Order};
use crate::client::Phase;
use crate::context::Cx;
use crate::ids::Key;
use crate::panics::inject;
use crate::pool::PoolId;
use crate::server::{ServerPhase, ServerState};
use crate::settings::PoolMode;
use crate::statements::Call;
use crate::wing::{Back, Front, Tally, Welcomes, Wing};
use weir_net::Net;
use weir_wire::{Boundary, Fault, FaultKind, INTERNAL, Owner, Pin, Pins};

impl<W: Wing, N: Net> Hall<W, N> {
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
        if client.is.listens.moves() {
            return self.way_done(cx, key, server, boundary);
        }
        let (took_ns, transaction_ns) = client.answered(now_ns, boundary == Boundary::Idle);
        let (quick, rides) = (client.is_quick(), client.claim.ride().is_some());
        client.inflight = client.inflight.saturating_sub(1);
        let (greeted, id, inflight) = (client.is.greeted, client.pool, client.inflight);
        let fingerprint = client.fingerprint;
        self.crowd.answered += 1;
        self.note_slow(cx, key, took_ns);
        self.heard_out(key, server, boundary);
        // Whatever the client keeps its server for from here on, it is no longer for that request.
        self.books().note_quick(key, false);
        self.end_held_cancels(cx, server, inflight);
        if let Some(pool) = id.and_then(|id| self.pool(id)) {
            pool.entry.shared.note_answered(cx.worker, took_ns);
            if quick {
                pool.note_head(took_ns);
            }
        }
        if !rides {
            self.note_history(key, took_ns);
        }
        let back = self.servers.get_mut(server).and_then(|server| server.back());
        let tally = back.map_or_else(Tally::default, |back| back.take_tally());
        if greeted {
            self.cells.note_answered(took_ns, transaction_ns, tally.error);
        }
        if let Some(id) = id {
            self.count_answer(id, greeted.then_some(fingerprint), took_ns, &tally);
        }
        if rides {
            return self.carried(cx, key, server, boundary);
        }
        if !greeted {
            self.welcome_done(cx, key, server, took_ns);
        }
        let front = self.clients.get_mut(key).and_then(|client| client.front());
        if let Some((number, query_only)) = front.and_then(|front| front.take_kill()) {
            return self.done_but_for_a_kill(cx, key, boundary, number, query_only);
        }
        self.boundary(cx, key, boundary);
    }

    /// A request of this pool is answered; without `fingerprint` it was part of a login.
    fn count_answer(&mut self, id: PoolId, fingerprint: Option<u32>, took_ns: u64, tally: &Tally) {
        if let Some(fingerprint) = fingerprint {
            let call = Call { took_ns, rows: tally.rows, failed: tally.error.is_some() };
            self.statements.note(id, fingerprint, call);
        }
        self.count_pool(id, |cells| {
            cells.requests.inc();
            if (tally.prepares, tally.settings) != (0, 0) {
                cells.note_injected(tally.prepares, tally.settings);
            }
        });
    }

    /// A server has done its part in a change of who listens for its client.
    fn way_done(&mut self, cx: &mut Cx<'_, N>, key: Key, server: Key, boundary: Boundary) {
        let is_at_boundary = self.handed(cx, key, server);
        self.end_held_cancels(cx, server, 0);
        if is_at_boundary {
            self.boundary(cx, key, boundary);
        }
    }

    /// Cancels of what a client ran would hit what runs next, if nothing of it runs any more.
    fn end_held_cancels(&mut self, cx: &mut Cx<'_, N>, server: Key, inflight: u32) {
        let Some(held) = self.servers.get_mut(server) else { return };
        held.cleaning.cancel_due = None;
        if inflight == 0 && held.post.is_held() {
            self.cancels_too_late(cx, server);
        }
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
                self.count_pins(cx, key, pins);
                self.await_question(cx, key);
                self.await_parting(cx, key);
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
    fn count_pins(&mut self, cx: &mut Cx<'_, N>, key: Key, pins: Pins) {
        let before = self.books().pin(key, pins);
        if before == pins {
            return;
        }
        let Some(id) = self.clients.get(key).and_then(|client| client.pool) else { return };
        self.note_pins(cx, id, key, before, pins);
        self.count_pool(id, |cells| {
            pins.iter().filter(|&pin| !before.contains(pin)).for_each(|pin| cells.pins(pin).inc());
        });
    }

    fn welcome_done(&mut self, cx: &mut Cx<'_, N>, key: Key, server: Key, took_ns: u64) {
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
            self.cells.login_duration.record_ns(took_ns);
            self.greeted(cx, key, out);
        } else {
            self.recycle(out);
            let text = "settings that were confirmed cannot be greeted";
            self.end_client(cx, key, Fault::new(FaultKind::ServerProtocol, text));
        }
    }

    /// The request of a client on a shared server is answered.
    fn carried(&mut self, cx: &mut Cx<'_, N>, key: Key, server: Key, boundary: Boundary) {
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
                client.transaction_since_ns = cx.now_ns().max(1);
            }
            self.boundary(cx, key, boundary);
        }
        self.place_again(cx, id, &moved);
    }
}
