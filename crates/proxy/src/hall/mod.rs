//! One worker's clients, servers and pools of one protocol.
//!
//! Owns: everything between the event loop and the wings. The subjects have a file each: `login` (clients
//! come in), `request` (client bytes to servers), `reply` (server bytes to clients), `lease` (who has which
//! server, and when it is free), `share` (one server for the requests of several clients), `connect` (servers
//! come to be), `cancel`, `clock` (timeouts), `drain`.
//! Must not know: what any byte means.
//!
//! Invariants: a server is leased to one client at most, and that client knows it; only a shared one has
//! requests of several clients in its queue; a server that is idle is clean; bytes of a reply go to the owner
//! the back names and to nobody else; a worker never waits.

mod cancel;
mod caps;
mod choosy;
mod clock;
mod connect;
mod drain;
mod handshake;
mod kept;
mod lease;
mod login;
mod reload;
mod reply;
mod request;
mod share;
mod study;
mod who;

pub use cancel::Canceller;

use crate::books::{Books, Broken, Pool, Sound};
use crate::client::{Client, Phase};
use crate::context::Cx;
use crate::economy::Crowd;
use crate::failures::Failures;
use crate::ids::{Arena, Key, Kind, Tag};
use crate::panics::inject;
use crate::pool::{Place, PoolEntry, PoolId};
use crate::server::{Server, ServerState};
use crate::silent::Silent;
use crate::wing::Wing;
use std::collections::VecDeque;
use std::sync::Arc;
use weir_metrics::{PoolCells, WorkerCells};
use weir_net::{Event, Net};
use weir_wire::{Fault, FaultKind};

/// A worker's part of one protocol.
pub struct Hall<W: Wing, N: Net> {
    /// What this worker counts for this protocol.
    pub(crate) cells: Arc<WorkerCells>,
    pub(crate) clients: Arena<Client<W, N::Socket>>,
    pub(crate) servers: Arena<Server<W, N::Socket>>,
    pub(crate) cancellers: Arena<Canceller<W, N::Socket>>,
    /// By pool number; pools that this worker has not met are `None`.
    pub(crate) pools: Vec<Option<Box<Pool<W::Welcomes>>>>,
    /// Work that a step left for the end of the same turn.
    todo: VecDeque<Order<W>>,
    /// Work for the next turn, so that one busy connection cannot starve the others.
    later: VecDeque<Order<W>>,
    /// Servers with bytes to send: one write each, at the end of the turn.
    dirty: Vec<Key>,
    /// Bytes a wing appends for a client, reused for all.
    staging: Vec<u8>,
    draining: bool,
    /// Clients whose logins wait for a turn with room for them, each once.
    login_queue: VecDeque<Key>,
    /// Login work of this turn.
    login_work: u32,
    /// Wrong passwords of late.
    failures: Failures,
    /// Logins that may have said nothing yet.
    silent: Silent,
    /// Whether clients query beside those who log in.
    asked: handshake::Asked,
    /// What requests met in this turn.
    crowd: Crowd,
    /// Users whose name is not that of their pool.
    names: who::Names,
}

/// The books of a hall, open.
type OpenBooks<'a, W, N> =
    Books<'a, Client<W, <N as Net>::Socket>, Server<W, <N as Net>::Socket>, <W as Wing>::Welcomes>;

/// What is to be done once the step that found it out is over. Orders are followed one after the other, by
/// one flat loop ([`Hall::finish_turn`]): nothing that follows an order follows another one in the midst of
/// it.
enum Order<W: Wing> {
    /// Look at a client's bytes again, and read more.
    PumpClient(Key),
    /// Look at a server's bytes again, and read more.
    PumpServer(Key),
    /// Its transport failed or its time is over.
    CloseClient(Key),
    /// It may be free now, or have room for more requests of others.
    Settle(Key),
    /// A pool may need more servers.
    Open(PoolId),
    /// A server of this pool is gone, or could not be opened: there is room under its limits.
    Freed(Arc<PoolEntry<W::Welcomes>>),
    /// There may be room under a limit that this pool shares with others.
    CapFreed(Arc<PoolEntry<W::Welcomes>>),
    /// Another pool has left its place to a pool of this worker.
    Placed(Box<Place<W::Welcomes>>),
    /// So many clients of this pool have come back into the queue: they get what is free.
    Rehouse(PoolId, u32),
    /// The books were told what cannot be.
    Broken(Box<Broken>),
}

impl<W: Wing, N: Net> Hall<W, N> {
    /// Nobody is in it.
    pub fn new(cells: Arc<WorkerCells>) -> Self {
        Hall {
            cells,
            clients: Arena::default(),
            servers: Arena::default(),
            cancellers: Arena::default(),
            pools: Vec::new(),
            todo: VecDeque::new(),
            later: VecDeque::new(),
            dirty: Vec::new(),
            staging: Vec::new(),
            draining: false,
            login_queue: VecDeque::new(),
            login_work: 0,
            failures: Failures::default(),
            silent: Silent::default(),
            asked: handshake::Asked::default(),
            crowd: Crowd::default(),
            names: who::Names::default(),
        }
    }
}

/// Reads from one connection in one turn, at most.
const READS_PER_TURN: u32 = 4;

impl<W: Wing, N: Net> Hall<W, N> {
    /// Something happened on a connection.
    pub fn event(&mut self, cx: &mut Cx<'_, N>, tag: Tag, event: Event) {
        match tag.kind {
            Kind::Client => self.client_event(cx, tag.key, event),
            Kind::Server => self.server_event(cx, tag.key, event),
            Kind::Canceller => self.canceller_event(cx, tag.key, event),
            Kind::Listener | Kind::Pool | Kind::Batch | Kind::Kept => {}
        }
    }

    fn client_event(&mut self, cx: &mut Cx<'_, N>, key: Key, event: Event) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if event.read_closed && !client.is.hup {
            client.active_ms = cx.net.now_ns() / 1_000_000;
        }
        client.is.hup |= event.read_closed || event.hangup;
        client.is.hangup |= event.hangup;
        if event.writable && (!client.output.is_empty() || client.line.has_unsent()) {
            self.flush_client(cx, key);
        }
        if (event.readable || event.read_closed || event.hangup)
            && let Some(client) = self.clients.get_mut(key)
        {
            client.is.readable = true;
            self.pump_client(cx, key);
            if event.read_closed {
                self.arm_client(cx, key);
            }
        }
    }

    fn server_event(&mut self, cx: &mut Cx<'_, N>, key: Key, event: Event) {
        let Some(server) = self.servers.get_mut(key) else { return };
        server.is.hup |= event.read_closed || event.hangup;
        if (event.writable || event.hangup) && !self.server_writable(cx, key) {
            return;
        }
        if (event.readable || event.read_closed || event.hangup)
            && let Some(server) = self.servers.get_mut(key)
        {
            server.is.readable = true;
            self.pump_server(cx, key);
        }
    }

    /// Ends a turn: does what was left for its end and writes to servers. Called after the events of a
    /// turn, until it has nothing more to do.
    pub fn finish_turn(&mut self, cx: &mut Cx<'_, N>) {
        let later = std::mem::take(&mut self.later);
        self.todo.extend(later);
        loop {
            while let Some(order) = self.todo.pop_front() {
                match order {
                    Order::PumpClient(key) => self.pump_client(cx, key),
                    Order::PumpServer(key) => self.pump_server(cx, key),
                    Order::CloseClient(key) => self.close_client(cx, key, None),
                    Order::Settle(key) => self.settle(cx, key),
                    Order::Open(id) => {
                        self.open_for_waiters(cx, id);
                        self.fill(cx, id);
                    }
                    Order::Freed(entry) => self.freed(cx, &entry),
                    Order::CapFreed(entry) => self.cap_freed(cx, &entry),
                    Order::Placed(place) => self.placed(cx, *place),
                    Order::Rehouse(id, clients) => self.rehouse(cx, id, clients),
                    Order::Broken(broken) => self.broken(cx, *broken),
                }
            }
            let mut dirty = std::mem::take(&mut self.dirty);
            for key in dirty.drain(..) {
                self.flush_server(cx, key);
            }
            if self.dirty.is_empty() {
                self.dirty = dirty;
            }
            if self.todo.is_empty() && self.dirty.is_empty() {
                return;
            }
        }
    }

    /// What requests have met since it was asked last.
    pub fn take_crowd(&mut self) -> Crowd {
        std::mem::take(&mut self.crowd)
    }

    /// There is work that must not wait for an event.
    pub fn has_later(&self) -> bool {
        !self.later.is_empty() || !self.login_queue.is_empty()
    }

    /// Between turns nothing is left to be done in this one.
    pub(crate) fn audit_rest(&self) -> Result<(), String> {
        let (todo, dirty) = (self.todo.len(), self.dirty.len());
        if todo + dirty > 0 {
            return Err(format!(
                "{todo} orders and {dirty} servers with bytes are left at the end of a turn"
            ));
        }
        Ok(())
    }

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
            let cells = cx.shared.metrics.pool(cx.worker, W::NAME, &spec.database, &spec.user);
            Box::new(Pool::new(entry.clone(), cx.worker, cells))
        })
    }

    /// What this worker counts for a pool it has met.
    pub(crate) fn count_pool(&self, id: PoolId, count: impl FnOnce(&PoolCells)) {
        if let Some(Some(pool)) = self.pools.get(id.0 as usize) {
            count(&pool.cells);
        }
    }

    /// Counts an error.
    pub(crate) fn count_fault(&self, kind: FaultKind) {
        self.cells.wing.faults(kind).inc();
    }

    /// Opens the books.
    #[inline]
    pub(super) fn books(&mut self) -> OpenBooks<'_, W, N> {
        Books::open(&mut self.clients, &mut self.servers, &mut self.pools)
    }

    /// What the books say, or nothing when they were told what cannot be. Whoever that would have harmed is
    /// closed at the end of the turn.
    #[inline]
    pub(super) fn sound<T>(&mut self, sound: Sound<T>) -> Option<T> {
        match sound {
            Ok(value) => Some(value),
            Err(broken) => {
                debug_assert!(false, "{broken}: {broken:?}");
                self.todo.push_back(Order::Broken(Box::new(broken)));
                None
            }
        }
    }

    /// A defect of Weir: it costs this client and this server, which nobody gets.
    fn broken(&mut self, cx: &mut Cx<'_, N>, broken: Broken) {
        tracing::error!(protocol = W::NAME, "{broken}: this is a defect of Weir, please report it");
        if let Some(server) = broken.server {
            self.server_lost(cx, server, Fault::new(FaultKind::WorkerFailed, broken.what));
        }
        if let Some(client) = broken.client {
            self.end_client(cx, client, FaultKind::WorkerFailed.into());
        }
    }

    pub(crate) fn pool(&mut self, id: PoolId) -> Option<&mut Pool<W::Welcomes>> {
        self.pools.get_mut(id.0 as usize)?.as_deref_mut()
    }

    /// Clients of this hall, whatever they do.
    pub fn client_count(&self) -> usize {
        self.clients.len()
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
        let mut sent = 0;
        if client.output.is_empty() {
            match client.line.send(cx.net, bytes) {
                Ok(n) => {
                    sent = n;
                    // To one that is gone these are the first and the last.
                    client.is.reads_on |= client.is.eof && n > 0;
                }
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => {
                    client.is.broken = true;
                    self.todo.push_back(Order::CloseClient(key));
                    return;
                }
            }
        }
        self.cells.wing.client_sent_bytes.add(sent as u64);
        if sent < bytes.len() {
            client.output.append(&bytes[sent..]);
        }
    }

    /// Sends what waits for a client.
    fn flush_client(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.line.has_unsent() && client.line.nudge(cx.net).is_err() {
            client.is.broken = true;
            self.todo.push_back(Order::CloseClient(key));
            return;
        }
        while !client.output.is_empty() && !client.is.broken {
            match client.line.send(cx.net, client.output.as_slice()) {
                Ok(n) => {
                    self.cells.wing.client_sent_bytes.add(n as u64);
                    client.output.consume(n);
                    // One that takes its last words slowly has the time for it.
                    if matches!(client.phase, Phase::Closing) {
                        client.active_ms = cx.net.now_ns() / 1_000_000;
                    }
                }
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    client.is.broken = true;
                    self.todo.push_back(Order::CloseClient(key));
                    return;
                }
            }
        }
        if client.output.len() <= weir_wire::limits::CLIENT_OUTPUT_BYTES / 2 {
            if let Some(server) = client.chokes.take() {
                if let Some(server) = self.servers.get_mut(server) {
                    server.is.paused = false;
                }
                self.todo.push_back(Order::PumpServer(server));
            }
            self.todo.push_back(Order::PumpClient(key));
        }
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.output.is_empty() {
            client.output.release_if_empty();
            if matches!(client.phase, Phase::Closing) {
                if client.is.eof {
                    self.todo.push_back(Order::CloseClient(key));
                } else {
                    client.line.shutdown_write(cx.net);
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
    fn flush_server(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("flush_server");
        let Some(server) = self.servers.get_mut(key) else { return };
        server.is.dirty = false;
        if server.line.has_unsent() && server.line.nudge(cx.net).is_err() {
            // The read side tells why.
            server.is.readable = true;
            self.todo.push_back(Order::PumpServer(key));
            return;
        }
        while !server.output.is_empty() {
            match server.line.send(cx.net, server.output.as_slice()) {
                Ok(n) => {
                    if let Some(Some(pool)) = self.pools.get(server.pool.0 as usize) {
                        pool.cells.server_sent_bytes.add(n as u64);
                    }
                    server.output.consume(n);
                }
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => break,
                // The read side tells what happened, and what the server said last.
                Err(_) => {
                    server.output.clear();
                    server.is.readable = true;
                    server.is.hup = true;
                    self.todo.push_back(Order::PumpServer(key));
                    return;
                }
            }
        }
        if server.output.is_empty() && server.state() == ServerState::Cleaning {
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
}
