//! What all parts of the hall use: pools and their counters, the books, outgoing bytes, orders.
//!
//! Owns: nothing. Must not know: why anything is sent, counted or ordered.

use super::{Hall, HallBooks, Order};
use crate::books::{Books, Pool, Sound};
use crate::client::Phase;
use crate::context::Cx;
use crate::ids::Key;
use crate::panics::inject;
use crate::pool::{PoolEntry, PoolId};
use crate::server::ServerState;
use crate::wing::{Front, Wing};
use std::sync::Arc;
use weir_metrics::PoolCells;
use weir_net::Net;
use weir_wire::{FaultKind, Pins, limits};

impl<W: Wing, N: Net> Hall<W, N> {
    /// This worker's part of a pool, made when first met.
    pub(crate) fn pool_of(
        &mut self,
        cx: &Cx<'_, N>,
        entry: &Arc<PoolEntry<W::Welcomes>>,
    ) -> &mut Pool<W::Welcomes> {
        let index = entry.id.0 as usize;
        if self.pools.len() <= index {
            self.pools.resize_with(index + 1, || None);
        }
        self.pools[index].get_or_insert_with(|| {
            let spec = entry.spec();
            let cells = cx.shared.metrics.pool(cx.worker, W::PROTOCOL.name(), &spec.database, &spec.user);
            Box::new(Pool::new(entry.clone(), cx.worker, cells))
        })
    }

    /// What this worker counts for a pool it has met.
    pub(crate) fn count_pool(&self, id: PoolId, count: impl FnOnce(&PoolCells)) {
        if let Some(Some(pool)) = self.pools.get(id.0 as usize) {
            count(&pool.cells);
        }
    }

    /// This client has an empty transaction from now on, or no longer.
    pub(super) fn note_empty(&mut self, key: Key, begun: bool) {
        if let Some(client) = self.clients.get_mut(key)
            && std::mem::replace(&mut client.is.empty, begun) != begun
            && let Some(id) = client.pool
        {
            self.count_pool(id, |cells| cells.empty_transactions.add(if begun { 1 } else { -1 }));
        }
    }

    /// Counts an error.
    pub(crate) fn count_fault(&self, kind: FaultKind) {
        self.cells.wing.faults(kind).inc();
    }

    /// The books.
    #[inline]
    pub(super) fn books(&mut self) -> HallBooks<'_, W, N> {
        Books::of(&mut self.clients, &mut self.servers, &mut self.pools)
    }

    /// What the books say, or nothing when they were told what cannot be. Whoever that would have harmed is
    /// closed at the end of the turn.
    #[inline]
    pub(super) fn sound<T>(&mut self, sound: Sound<T>) -> Option<T> {
        match sound {
            Ok(value) => Some(value),
            Err(broken) => {
                debug_assert!(false, "{broken}: {broken:?}");
                self.order_broken(broken);
                None
            }
        }
    }

    /// These have met a defect, and are closed at the end of the turn.
    pub(crate) fn order_broken(&mut self, broken: crate::books::Broken) {
        self.todo.push_back(Order::Broken(Box::new(broken)));
    }

    pub(crate) fn pool(&mut self, id: PoolId) -> Option<&mut Pool<W::Welcomes>> {
        self.pools.get_mut(id.0 as usize)?.as_deref_mut()
    }

    /// Sends bytes to a client, or keeps them until it has room.
    pub(crate) fn send_client(&mut self, cx: &mut Cx<'_, N>, key: Key, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.is.broken {
            return;
        }
        match client.stream.say(cx.net, bytes) {
            Ok(sent) => {
                // To one that is gone these are the first and the last.
                client.is.reads_on |= client.is.eof && sent > 0;
                self.cells.wing.client_sent_bytes.add(sent as u64);
            }
            Err(_) => {
                client.is.broken = true;
                self.todo.push_back(Order::CloseClient(key));
            }
        }
    }

    /// Sends what waits for a client.
    pub(super) fn flush_client(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if !client.is.broken {
            let (sent, outcome) = client.stream.flush(cx.net);
            self.cells.wing.client_sent_bytes.add(sent as u64);
            // One that takes its last words slowly has the time for it.
            if sent > 0 && matches!(client.phase, Phase::Closing) {
                client.active_ms = cx.net.now_ns() / 1_000_000;
            }
            if outcome.is_err() {
                client.is.broken = true;
                self.todo.push_back(Order::CloseClient(key));
                return;
            }
        }
        if client.stream.output.len() <= weir_wire::limits::CLIENT_OUTPUT_BYTES / 2 {
            if let Some(server) = client.chokes.take() {
                if let Some(server) = self.servers.get_mut(server) {
                    server.is.paused = false;
                }
                self.todo.push_back(Order::PumpServer(server));
            }
            self.todo.push_back(Order::PumpClient(key));
        }
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.stream.output.is_empty() {
            client.stream.output.release_if_empty();
            if matches!(client.phase, Phase::Closing) {
                if client.is.eof {
                    self.todo.push_back(Order::CloseClient(key));
                } else {
                    client.stream.line.shutdown_write(cx.net);
                }
            }
        }
    }

    /// A server may be free, or have room: it is looked at once the step that found it out is over.
    pub(super) fn settle_later(&mut self, key: Key) {
        if let Some(server) = self.servers.get_mut(key)
            && !std::mem::replace(&mut server.is.due, true)
        {
            self.todo.push_back(Order::Settle(key));
        }
    }

    /// There are bytes for a server: they go out in one write at the end of the turn.
    pub(crate) fn mark_dirty(&mut self, key: Key) {
        if let Some(server) = self.servers.get_mut(key)
            && !server.is.dirty
        {
            server.is.dirty = true;
            self.dirty.push(key);
        }
    }

    /// Writes what waits for a server.
    pub(super) fn flush_server(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("flush_server");
        let Some(server) = self.servers.get_mut(key) else { return };
        server.is.dirty = false;
        let (sent, outcome) = server.stream.flush(cx.net);
        if sent > 0
            && let Some(Some(pool)) = self.pools.get(server.pool.0 as usize)
        {
            pool.cells.server_sent_bytes.add(sent as u64);
        }
        if outcome.is_err() {
            // The read side tells what happened, and what the server said last.
            server.stream.output.clear();
            (server.stream.line.readable, server.stream.line.hup) = (true, true);
            self.todo.push_back(Order::PumpServer(key));
            return;
        }
        if server.stream.output.is_empty() && server.state() == ServerState::Cleaning {
            self.settle_later(key);
            return;
        }
        if server.is.full && server.backlog() <= weir_wire::limits::SERVER_OUTPUT_BYTES / 2 {
            server.is.full = false;
            if let ServerState::Leased(client) = server.state() {
                self.todo.push_back(Order::PumpClient(client));
            }
        }
    }

    /// Gives the staging buffer back, without what made it large.
    pub(super) fn recycle(&mut self, mut staging: Vec<u8>) {
        staging.clear();
        staging.shrink_to(limits::SCRATCH_BYTES);
        self.staging = staging;
    }

    /// A client no longer counts among those who log in.
    pub(super) fn leave_login(&mut self, key: Key) {
        if let Some(client) = self.clients.get_mut(key)
            && std::mem::take(&mut client.is.counted)
        {
            self.cells.wing.client_logins_pending.dec();
        }
    }

    pub(super) fn pins(&mut self, key: Key) -> Pins {
        self.clients.get_mut(key).and_then(|client| client.front()).map_or(Pins::NONE, |front| front.pins())
    }
}
