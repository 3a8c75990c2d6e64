//! A client gets a server, its request is sent there, and it gives the server back.

use super::{Hall, Order};
use crate::books::Want;
use crate::client::Phase;
use crate::context::Cx;
use crate::ids::Key;
use crate::panics::inject;
use crate::server::{Cleaning, ServerPhase, ServerState};
use crate::wing::{Back, Front, Wing};
use weir_net::Net;
use weir_wire::Fault;

impl<W: Wing, N: Net> Hall<W, N> {
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
            held.is.pin_logged = false;
        }
        if let Some(client) = self.clients.get_mut(key) {
            if client.is.empty {
                self.note_empty(key, false);
            } else {
                client.transaction_since_ns = 0;
            }
        }
        if let Some(since_ns) = served.waited_since_ns {
            self.note_waited(cx, key, since_ns);
            self.crowd.behind += 1;
        }
        Some(served.want)
    }

    /// A client of this worker has waited for a server since then.
    pub(super) fn note_waited(&mut self, cx: &Cx<'_, N>, key: Key, since_ns: u64) {
        let waited_ns = cx.now_ns().saturating_sub(since_ns);
        self.cells.wait_duration.record_ns(waited_ns);
        self.note_wait(cx, key, waited_ns);
        let id = self.clients.get(key).and_then(|client| client.pool);
        if let Some(pool) = id.and_then(|id| self.pool(id)) {
            pool.entry.shared.note_waited(cx.worker, waited_ns);
        }
    }

    pub(super) fn dispatch_welcome(&mut self, cx: &mut Cx<'_, N>, key: Key, server: Key) {
        let (Some(client), Some(held)) = (self.clients.get_mut(key), self.servers.get_mut(server)) else {
            return;
        };
        let (Phase::Session(front), ServerPhase::Live(back)) = (&mut client.phase, &mut held.phase) else {
            return;
        };
        let sent = back.dispatch_welcome(front, key.raw(), held.stream.output.tail_mut());
        client.inflight += 1;
        self.sent(cx, key, server, sent);
    }

    /// The client needs its server no longer.
    pub(super) fn end_lease(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("end_lease");
        let Some(server) = self.books().release(key) else { return };
        self.forget_cause(key);
        let Some(client) = self.clients.get_mut(key) else { return };
        client.transaction_since_ns = 0;
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
}

impl<W: Wing, N: Net> Hall<W, N> {
    /// Sends a request on to the server that its client holds.
    pub(super) fn dispatch(
        &mut self,
        cx: &mut Cx<'_, N>,
        key: Key,
        server: Key,
        request: &[u8],
        whole: bool,
    ) {
        inject::here("dispatch");
        let is_away = self.clients.get(key).is_some_and(|client| client.is.listens.is_away());
        if is_away && self.comes_home(cx, key, server, request, whole) {
            return;
        }
        self.note_cause(key, request);
        self.note_asked(cx, key, request);
        let Some(client) = self.clients.get_mut(key) else { return };
        let Some(held) = self.servers.get_mut(server) else { return };
        debug_assert_eq!(held.state(), ServerState::Leased(key));
        let Phase::Session(front) = &mut client.phase else { return };
        let ServerPhase::Live(back) = &mut held.phase else { return };
        if let Some(id) = client.pool {
            self.statements
                .see(cx.settings.statements, id, client.fingerprint, |most| front.words_of(request, most));
        }
        let sent = back.dispatch(front, key.raw(), request, whole, held.stream.output.tail_mut());
        client.inflight += 1;
        client.is.part_open = !whole;
        let now_ns = cx.net.now_ns().max(1);
        if client.inflight == 1 {
            client.request_since_ns = now_ns;
        }
        if client.transaction_since_ns == 0 {
            client.transaction_since_ns = now_ns;
        }
        self.sent(cx, key, server, sent);
    }

    pub(super) fn extend(&mut self, cx: &mut Cx<'_, N>, key: Key, server: Key, bytes: &[u8], whole: bool) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let Some(held) = self.servers.get_mut(server) else { return };
        let Phase::Session(front) = &mut client.phase else { return };
        let ServerPhase::Live(back) = &mut held.phase else { return };
        let sent = back.extend(front, bytes, whole, held.stream.output.tail_mut());
        client.is.part_open = !whole;
        self.sent(cx, key, server, sent);
    }
    /// A wing has put what a client asks into its server's buffer, or cannot.
    fn sent(&mut self, cx: &mut Cx<'_, N>, key: Key, server: Key, sent: Result<(), Fault>) {
        self.mark_dirty(server);
        match sent {
            Ok(()) => {
                // A back may have answered all by itself, without a byte for the server.
                self.todo.push_back(Order::PumpServer(server));
                self.arm_client(cx, key);
            }
            Err(fault) => self.end_client(cx, key, fault),
        }
    }
}
