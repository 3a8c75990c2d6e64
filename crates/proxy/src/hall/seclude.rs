//! Ends the sharing of a server: the request at its head gets it alone, and those behind go elsewhere. Only
//! this file decides what may run a second time (`take_back`).

use super::{Hall, Order};
use crate::books::Holding;
use crate::client::{Phase, is_shareable};
use crate::context::Cx;
use crate::ids::Key;
use crate::panics::inject;
use crate::pool::PoolId;
use crate::server::{Server, ServerPhase, ServerState};
use crate::wing::{Back, Wing};
use weir_net::Net;
use weir_wire::{FaultKind, INTERNAL};

impl<W: Wing, N: Net> Hall<W, N> {
    /// The head of a shared server has been there for long.
    pub(super) fn head_late(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(server) = self.servers.get_mut(key) else { return };
        if server.back().is_some_and(|back| back.queued() > 1) {
            let (id, since_ns) = (server.pool, server.head_since_ns);
            let head = server.back().and_then(|back| back.head()).and_then(Key::from_raw);
            // The next one of its kind must not wait until this one is answered.
            let fingerprint = head.and_then(|head| self.clients.get(head)).map_or(0, |head| head.fingerprint);
            let so_far_ns = cx.now_ns().saturating_sub(since_ns);
            if is_shareable(fingerprint)
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
    pub(super) fn take_back(&mut self, cx: &mut Cx<'_, N>, server: Key, from: usize) -> Vec<Key> {
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
            let back = self.recall_request(rider);
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
    pub(super) fn take_back_one(&mut self, key: Key) -> bool {
        let server = self.clients.get(key).and_then(|client| client.claim.ride());
        let back = server.and_then(|server| self.servers.get_mut(server)).and_then(|server| server.back());
        back.is_some_and(|back| back.head() != Some(key.raw())) && self.recall_request(key)
    }

    /// The same, wherever it stands: nothing of its answer has come.
    fn recall_request(&mut self, key: Key) -> bool {
        let Some(client) = self.clients.get_mut(key) else { return false };
        let Some(server) = client.claim.ride() else { return false };
        let Some(held) = self.servers.get_mut(server) else { return false };
        let Server { phase: ServerPhase::Live(back), stream, .. } = held else { return false };
        let (Phase::Session(front), Holding::Riding { len: 1.., .. }) =
            (&mut client.phase, client.claim.holding())
        else {
            return false;
        };
        back.recall(front, key.raw(), stream.output.tail_mut());
        client.inflight = client.inflight.saturating_sub(1);
        self.mark_dirty(server);
        // What was sent once is not asked for others a second time.
        self.part(key, false);
        self.books().take_back(key).is_some()
    }

    /// The requests that were taken back from a server go to the front of the queue.
    pub(super) fn place_again(&mut self, cx: &mut Cx<'_, N>, id: PoolId, moved: &[Key]) {
        for &rider in moved {
            let queued = self.books().queue(rider);
            self.sound(queued);
            self.arm_client(cx, rider);
        }
        self.todo.push_back(Order::Rehouse(id, moved.len() as u32));
    }

    /// Takes away from a client what rode for it; the request is over.
    pub(super) fn alight(&mut self, key: Key) {
        if let Some((_, len)) = self.books().alight(key) {
            self.drop_request(key, len);
        }
    }

    /// The request at the start of a client's input is answered, or under way where it cannot be taken back.
    pub(super) fn drop_request(&mut self, key: Key, len: u32) {
        let Some(client) = self.clients.get_mut(key) else { return };
        client.stream.input.consume((len as usize).min(client.stream.input.len()));
        client.stream.input.release_if_empty();
    }
}
