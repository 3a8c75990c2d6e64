//! One worker's clients, servers and pools of one protocol.
//!
//! Owns: everything between the event loop and the wings, except who holds what (`crate::books`). The file
//! that handles an event tells the books what has happened and leaves the consequences as orders ([`Order`]);
//! [`Hall::finish_turn`] executes these one after the other. Must not know: what any byte means.
//!
//! The files are ordered, and each calls only those below it (`tests/house` checks that): this one and
//! `drain` (events, orders, mail), `clock` (timeouts), `reply` (server bytes to clients), `request` (client
//! bytes to servers), `done` (a request is complete), `listen` (clients that only listen), `login` (client
//! logins), `console` (clients of the administration console, and its orders), `listing` (what it shows),
//! `reload`, `room` (who uses room under a limit), `echo` (one answer for several), `settle` (a server is
//! free, and who gets it), `share` (one server for the requests of several clients), `lead` (who follows
//! whom), `pinned`, `kept`, `cancel`, `connect` (servers are opened), `seclude` (a server is no longer
//! shared), `moves` (servers between workers), `lease` (requests on their way), `away` (clients for whom
//! another connection listens), `caps`, `choosy`, `study`, `handshake`, `close` (servers are closed), `leave`
//! (clients are closed), `alike` (who asks the same), `deadline`, `cause`, `desk` (what all use), `who`.
//!
//! Invariants: an idle server is clean; bytes of a reply go to the owner that the back names and to nobody
//! else; no order is executed in the middle of a step or of another order; a worker never waits.

mod again;
mod alike;
mod away;
mod cancel;
mod caps;
mod cause;
mod choosy;
mod clock;
mod close;
mod connect;
mod console;
mod counted;
mod deadline;
mod desk;
mod done;
mod drain;
mod echo;
mod handshake;
mod inquire;
mod kept;
mod late;
mod lead;
mod lease;
mod leave;
mod listen;
mod listing;
mod login;
mod moves;
mod pinned;
mod reload;
mod reply;
mod request;
mod room;
mod seclude;
mod settle;
mod share;
mod slow;
mod study;
mod who;

pub use cancel::Canceller;

use self::away::Listener;
use crate::books::{Books, Broken, GroupId, Pool};
use crate::client::Client;
use crate::console::Visit;
use crate::context::Cx;
use crate::economy::Crowd;
use crate::failures::Failures;
use crate::ids::{Arena, Key, Kind, SPARE_CLIENTS, Tag};
use crate::pool::{Place, PoolEntry, PoolId};
use crate::server::{Server, ServerState};
use crate::silent::Silent;
use crate::statements::Statements;
use crate::wing::Wing;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use weir_metrics::WorkerCells;
use weir_net::{Event, Net};
use weir_session::Machines;
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
    /// What is kept of clients of the administration console.
    consoles: HashMap<Key, Visit>,
    /// Clients that listen, or have, and for whom another connection may.
    listeners: HashMap<Key, Listener>,
    /// Answers for which several wait.
    echoes: HashMap<(PoolId, GroupId), alike::Echo<W>>,
    /// What those have said who keep their server beyond its boundary, or may.
    causes: HashMap<Key, Box<str>>,
    asked_for: HashMap<Key, slow::Asked>,
    statements: Statements,
}

/// The books of a hall.
type HallBooks<'a, W, N> =
    Books<'a, Client<W, <N as Net>::Socket>, Server<W, <N as Net>::Socket>, <W as Machines>::Welcomes>;

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
    /// The server that it has left for another login is clean, or gone.
    GoOn(Key),
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
    /// An answer for which several of this pool have waited is whole.
    Echo(PoolId, GroupId),
    /// There is none for them: they ask by themselves, or, where nobody has asked yet, again one for all.
    Scatter { pool: PoolId, group: GroupId, again: bool },
    /// The books were told what cannot be.
    Broken(Box<Broken>),
}

impl<W: Wing, N: Net> Hall<W, N> {
    /// Nobody is in it.
    pub fn new(cells: Arc<WorkerCells>) -> Self {
        Hall {
            cells,
            clients: Arena::with_spare(SPARE_CLIENTS),
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
            consoles: HashMap::new(),
            listeners: HashMap::new(),
            echoes: HashMap::new(),
            causes: HashMap::new(),
            asked_for: HashMap::new(),
            statements: Statements::default(),
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
            Kind::Listener | Kind::Pool | Kind::Batch | Kind::Kept | Kind::Listen => {}
        }
    }

    fn client_event(&mut self, cx: &mut Cx<'_, N>, key: Key, event: Event) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if event.read_closed && !client.stream.line.hup {
            client.active_ms = cx.net.now_ns() / 1_000_000;
        }
        client.stream.line.hup |= event.read_closed || event.hangup;
        client.is.hangup |= event.hangup;
        if event.writable && (!client.stream.output.is_empty() || client.stream.line.has_unsent()) {
            self.flush_client(cx, key);
        }
        if (event.readable || event.read_closed || event.hangup)
            && let Some(client) = self.clients.get_mut(key)
        {
            client.stream.line.readable = true;
            self.pump_client(cx, key);
            if event.read_closed {
                self.arm_client(cx, key);
            }
        }
    }

    fn server_event(&mut self, cx: &mut Cx<'_, N>, key: Key, event: Event) {
        let Some(server) = self.servers.get_mut(key) else { return };
        server.stream.line.hup |= event.read_closed || event.hangup;
        if (event.writable || event.hangup) && !self.server_writable(cx, key) {
            return;
        }
        if (event.readable || event.read_closed || event.hangup)
            && let Some(server) = self.servers.get_mut(key)
        {
            server.stream.line.readable = true;
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
                    Order::GoOn(key) => self.login_goes_on(cx, key),
                    Order::Open(id) => {
                        self.open_for_waiters(cx, id);
                        self.fill(cx, id);
                    }
                    Order::Freed(entry) => self.freed(cx, &entry),
                    Order::CapFreed(entry) => self.cap_freed(cx, &entry),
                    Order::Placed(place) => self.place_arrived(cx, *place),
                    Order::Rehouse(id, clients) => self.rehouse(cx, id, clients),
                    Order::Echo(id, group) => self.echo(cx, id, group),
                    Order::Scatter { pool, group, again } => self.scatter(cx, pool, group, again),
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

    /// A defect of Weir: it costs this client and this server, which nobody gets. Clients first: behind the
    /// end of its server one would be told of a lost connection.
    fn broken(&mut self, cx: &mut Cx<'_, N>, broken: Broken) {
        tracing::error!(
            protocol = W::PROTOCOL.name(),
            "{broken}: this is a defect of Weir, please report it"
        );
        let fault = Fault::new(FaultKind::InternalError, broken.what);
        let holder = match broken.server.and_then(|server| self.servers.get(server)).map(Server::state) {
            Some(ServerState::Leased(client)) => Some(client).filter(|_| broken.client != Some(client)),
            _ => None,
        };
        for client in [broken.client, holder].into_iter().flatten() {
            self.end_client(cx, client, fault.clone());
        }
        if let Some(server) = broken.server {
            self.server_lost(cx, server, fault);
        }
    }

    /// Clients of this hall, whatever they do.
    pub fn client_count(&self) -> usize {
        self.clients.len()
    }
}
