//! Closes clients, with or without a final message, and removes them from the queue, from their server and
//! from the hall.

use super::who::log_client;
use super::{Hall, Order};
use crate::client::{Client, Phase};
use crate::context::Cx;
use crate::ids::Key;
use crate::panics::inject;
use crate::server::{Cleaning, Server, ServerPhase};
use crate::settings::PoolMode;
use crate::wing::{Accept, Back, Front, Wing};
use weir_net::Net;
use weir_wire::{Fault, FaultKind};

impl<W: Wing, N: Net> Hall<W, N> {
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
            None if self.clients.get(key).is_some_and(|c| !c.is.broken && !c.stream.output.is_empty()) => {
                self.begin_closing(cx, key);
            }
            None => {
                self.leave(cx, key);
                let broken = client_is_broken(&self.clients, key);
                self.remove_client(cx, key, broken);
            }
        }
    }

    /// Nothing more is done for this client; what was said to it still goes out.
    pub(super) fn begin_closing(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        self.leave(cx, key);
        let now_ms = cx.now_ms();
        let Some(client) = self.clients.get_mut(key) else { return };
        client.stream.input.clear();
        client.stream.input.release_if_empty();
        if matches!(client.phase, Phase::Closing) {
            return;
        }
        client.phase = Phase::Closing;
        client.active_ms = now_ms;
        self.leave_login(key);
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.is.broken || (client.is.eof && client.stream.output.is_empty()) {
            self.remove_client(cx, key, client_is_broken(&self.clients, key));
            return;
        }
        if client.stream.output.is_empty() {
            client.stream.line.shutdown_write(cx.net);
        }
        self.arm_client(cx, key);
        self.todo.push_back(Order::PumpClient(key));
    }

    /// A client leaves the queue and its server, which is returned.
    pub(super) fn leave(&mut self, cx: &mut Cx<'_, N>, key: Key) -> Option<Key> {
        let is_asked = self.clients.get(key).is_some_and(|client| client.server().is_some());
        self.part(key, !is_asked);
        self.books().forget(key);
        self.note_empty(key, false);
        if let Some(client) = self.clients.get_mut(key)
            && let Some(server) = client.chokes.take()
            && let Some(server) = self.servers.get_mut(server)
        {
            server.is.paused = false;
        }
        self.abandon(cx, key)
    }

    /// The end of a client. The only place where one ceases to be.
    pub(super) fn remove_client(&mut self, cx: &mut Cx<'_, N>, key: Key, abort: bool) {
        inject::here("remove_client");
        self.leave_login(key);
        self.forget_listener(cx, key);
        self.forget_asked(key);
        if cx.settings.logged.disconnections
            && let Some(Client { pool: Some(_), is, .. }) = self.clients.get(key)
        {
            let broken = is.broken;
            log_client!(info, self, cx, key, broken, "client has left");
        }
        let Some(client) = self.clients.remove(key) else { return };
        if client.is.console {
            self.consoles.remove(&key);
        }
        cx.shared.clients.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        if client.is.proven {
            cx.shared.proven.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        }
        cx.shared.berths.leave_seat(cx.worker);
        debug_assert!(client.server().is_none() && !client.claim.is_in_line());
        debug_assert!(client.claim.leads().is_none());
        client.stream.line.close(cx.net, abort);
        self.cells.wing.client_connections.dec();
    }

    /// A client leaves its server, in whatever state that is.
    pub(super) fn abandon(&mut self, cx: &mut Cx<'_, N>, key: Key) -> Option<Key> {
        inject::here("abandon");
        self.forget_cause(key);
        self.leave_shared(key);
        let server = self.books().release(key)?;
        let client = self.clients.get_mut(key)?;
        let pinned = client.front().is_none_or(|front| !front.pins().is_empty());
        let pool = client.pool.and_then(|id| self.pools.get(id.0 as usize)?.as_deref());
        let in_session_mode = pool.map(|pool| pool.spec.mode) == Some(PoolMode::Session);
        if let Some(held) = self.servers.get_mut(server) {
            held.is.paused = false;
            held.since_ms = cx.net.now_ns() / 1_000_000;
            let needs_reset = in_session_mode || pinned;
            held.cleaning = Cleaning { needs_reset, again_ms: held.cleaning.again_ms, ..Cleaning::default() };
            let Server { phase: ServerPhase::Live(back), stream, .. } = held else { return None };
            back.forget(key.raw(), stream.output.tail_mut());
            self.mark_dirty(server);
        }
        self.arm_server(cx, server);
        self.todo.push_back(Order::PumpServer(server));
        self.settle_later(server);
        Some(server)
    }

    /// A client that goes leaves its place in a shared server's queue; the reply will go nowhere.
    fn leave_shared(&mut self, key: Key) {
        let Some((server, _)) = self.books().alight(key) else { return };
        let Some(held) = self.servers.get_mut(server) else { return };
        let Server { phase: ServerPhase::Live(back), stream, .. } = held else { return };
        back.forget(key.raw(), stream.output.tail_mut());
        self.mark_dirty(server);
        self.settle_later(server);
    }
}

fn client_is_broken<W: Wing, S>(clients: &crate::ids::Arena<Client<W, S>>, key: Key) -> bool {
    clients.get(key).is_some_and(|client| client.is.broken)
}
