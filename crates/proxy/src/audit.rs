//! Checks the books from outside: do lists, states and counters agree? For the simulator and tests.
//!
//! Owns: nothing. Must not change anything.

use crate::books::Broken;
use crate::books::Holding;
use crate::client::{Client, Phase};
use crate::hall::Hall;
use crate::ids::Key;
use crate::pool::shared::NOBODY;
use crate::server::{Server, ServerPhase, ServerState};
use crate::wing::{Back, Wing};
use crate::worker::Worker;
use std::sync::Arc;
use weir_net::Net;
use weir_session::Protocol;
use weir_wire::{Boundary, limits};

/// What one worker has.
#[derive(Debug, Clone, Default)]
pub struct Audit {
    /// Clients.
    pub clients: usize,
    /// Servers, connecting ones included.
    pub servers: usize,
    /// Connections that carry a cancel request.
    pub cancellers: usize,
    /// Pools it has met.
    pub pools: Vec<PoolAudit>,
}

/// One worker's part of a pool.
#[derive(Debug, Clone)]
pub struct PoolAudit {
    /// Its protocol and its number there.
    pub id: (&'static str, u32),
    /// Who waits, since when, and whether for a place among others; oldest first.
    pub waiting: Vec<(u64, u64, bool)>,
    /// Those of them that a server may be opened for alone, which nobody else gets.
    pub choosy: Vec<u64>,
    /// Those who wait for a certain server, which is free in a moment, and are passed over until then.
    pub awaiting: Vec<u64>,
    /// Clients that hold a server.
    pub leased: Vec<u64>,
    /// Idle servers.
    pub idle: usize,
    /// Connects under way.
    pub connecting: usize,
    /// Servers in every state.
    pub servers: usize,
    /// No connect before this time.
    pub retry_at_ms: u64,
    /// After a failure, one connect tries whether the next can be made.
    pub tries_one: bool,
    /// Servers of the pool in the process.
    pub opened: usize,
    /// Servers it may have.
    pub limit: usize,
    /// It has no more servers than are reserved for it: none gives way.
    pub keeps: bool,
    /// The limits it shares with other pools: name, servers, limit.
    pub caps: [(String, usize, usize); 2],
}

/// One read may come on top of what a bound allows.
const SLACK_BYTES: usize = limits::SCRATCH_BYTES + limits::REQUEST_GATHER_BYTES;

impl<N: Net> Worker<N> {
    /// Compares what must agree.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn audit(&self) -> Result<Audit, String> {
        let mut audit = Audit::default();
        self.postgres.audit(self.number(), &mut audit)?;
        self.mysql.audit(self.number(), &mut audit)?;
        Ok(audit)
    }

    /// As if the books had just met what cannot be, about the first client that holds a server. False: there
    /// is none.
    pub fn pretend_defect(&mut self, protocol: Protocol) -> bool {
        match protocol {
            Protocol::Postgres => self.postgres.pretend_defect(),
            Protocol::Mysql => self.mysql.pretend_defect(),
        }
    }
}

/// Whose books are looked at. Put into words only when they are wrong: this runs after each turn.
struct Name(&'static str, &'static str, u32);

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.0, self.1, self.2)
    }
}

macro_rules! must {
    ($condition:expr, $($text:tt)*) => { if !$condition { return Err(format!($($text)*)); } };
}

impl<W: Wing, N: Net> Hall<W, N> {
    fn pretend_defect(&mut self) -> bool {
        let found = self.clients.iter().find_map(|(key, client)| Some((key, client.lease()?)));
        let Some((client, server)) = found else { return false };
        self.order_broken(Broken { what: "a defect for a test", client: Some(client), server: Some(server) });
        true
    }

    fn audit(&self, worker: usize, audit: &mut Audit) -> Result<(), String> {
        self.audit_rest()?;
        self.audit_causes()?;
        self.audit_clients()?;
        self.audit_servers()?;
        self.audit_gauges()?;
        for pool in 0..self.pools.len() {
            if let Some(found) = self.audit_pool(worker, pool)? {
                audit.pools.push(found);
            }
        }
        audit.clients += self.clients.len();
        audit.servers += self.servers.len();
        audit.cancellers += self.cancellers.len();
        Ok(())
    }

    fn audit_clients(&self) -> Result<(), String> {
        for (key, client) in self.clients.iter() {
            let name = Name(W::PROTOCOL.name(), "client", key.slot());
            if let Some(server) = client.lease() {
                let state = self.servers.get(server).map(|server| server.state());
                must!(
                    state == Some(ServerState::Leased(key)),
                    "{name} believes to hold a server that is {state:?}"
                );
            }
            if let Some(server) = client.claim.ride() {
                let state = self.servers.get(server).map(|server| server.state());
                must!(state == Some(ServerState::Shared), "{name} rides on a server that is {state:?}");
                must!(
                    client.lease().is_none() && client.inflight == 1,
                    "{name} rides and has more than that"
                );
            }
            must!(
                client.is_waiting() <= matches!(client.phase, Phase::Session(_)),
                "{name} waits outside a session"
            );
            if let Some(group) = client.claim.follows() {
                let pool = client.pool.and_then(|id| self.pools.get(id.0 as usize)?.as_deref());
                let listed = pool.is_some_and(|pool| pool.followers(group).any(|it| it == key));
                must!(listed, "{name} follows nobody");
                let leads = |it: &Client<W, N::Socket>| {
                    it.pool == client.pool && it.claim.leads() == Some(group) && !it.is.console
                };
                let echoes = client.pool.is_some_and(|id| self.is_echoed(id, group));
                must!(
                    echoes || self.clients.iter().any(|(_, it)| leads(it)),
                    "{name} waits for an answer that nobody asks for"
                );
                must!(client.inflight == 0 && client.server().is_none(), "{name} follows and has a server");
            }
            let holding = client.claim.holding();
            must!(!matches!(holding, Holding::Wanting(_)), "{name} is {holding:?} and stands in no queue");
            must!(
                client.claim.pinned().is_empty() || client.lease().is_some(),
                "{name} is pinned to nothing"
            );
            must!(
                client.chokes.is_none() || client.chokes == client.lease(),
                "{name} chokes a server it does not hold"
            );
            let (input, output) = (client.stream.input.len(), client.stream.output.len());
            must!(input <= limits::CLIENT_INPUT_BYTES + SLACK_BYTES, "{name} keeps {input} bytes of input");
            let bound = limits::CLIENT_OUTPUT_BYTES + limits::SERVER_GATHER_BYTES + SLACK_BYTES;
            must!(output <= bound, "{name} keeps {output} bytes of output");
        }
        Ok(())
    }

    fn audit_servers(&self) -> Result<(), String> {
        for (key, server) in self.servers.iter() {
            let name = Name(W::PROTOCOL.name(), "server", key.slot());
            let logged_in = matches!(server.phase, ServerPhase::Live(_));
            must!(
                logged_in != (server.state() == ServerState::Login),
                "{name} is {:?} in another phase",
                server.state()
            );
            if let ServerState::Leased(client) = server.state() {
                let lease = self.clients.get(client).and_then(|client| client.lease());
                must!(lease == Some(key), "{name} is leased to a client that holds {lease:?}");
            }
            if server.state() == ServerState::Shared
                && let ServerPhase::Live(back) = &server.phase
            {
                must!(back.queued() > 0, "{name} is shared by nobody");
                must!(!server.is.paused, "{name} is shared and not read from");
                let mut riders: Vec<_> =
                    (0..back.queued()).filter_map(|place| back.owner_at(place)).collect();
                riders.retain(|&owner| {
                    let client = Key::from_raw(owner).and_then(|owner| self.clients.get(owner));
                    client.is_some_and(|client| client.claim.ride() == Some(key))
                });
                let riding =
                    self.clients.iter().filter(|(_, client)| client.claim.ride() == Some(key)).count();
                must!(
                    riding == server.post.riders() as usize,
                    "{name} counts other riders than its {riding}"
                );
                must!(riders.len() == riding, "{name} carries {} of its {riding} riders", riders.len());
            }
            let choked = self.clients.iter().any(|(_, client)| client.chokes == Some(key));
            must!(server.is.paused <= choked, "{name} is paused and nobody will wake it");
            let output = server.stream.output.len();
            must!(
                output <= limits::SERVER_OUTPUT_BYTES + SLACK_BYTES * 2,
                "{name} keeps {output} bytes of output"
            );
            let idle = server.state() == ServerState::Idle;
            let pool = self.pools.get(server.pool.0 as usize).and_then(|pool| pool.as_deref());
            let listed = pool.map_or(0, |pool| pool.idle_keys().iter().filter(|&&idle| idle == key).count());
            must!(listed == usize::from(idle), "{name} stands {listed} times in the idle list");
            if idle && let ServerPhase::Live(back) = &server.phase {
                must!(back.boundary() == Boundary::Idle && back.queued() == 0, "{name} is idle and busy");
                must!(
                    server.stream.output.is_empty() && !server.post.is_held(),
                    "{name} is idle and not left alone"
                );
                // A part of a notice may have come since.
                must!(!server.is.paused, "{name} is idle and not read from");
            }
        }
        Ok(())
    }

    fn audit_pool(&self, worker: usize, index: usize) -> Result<Option<PoolAudit>, String> {
        let Some(Some(pool)) = self.pools.get(index) else { return Ok(None) };
        let id = pool.entry.id;
        let name = Name(W::PROTOCOL.name(), "pool", id.0);
        let of_pool = || self.servers.iter().filter(|(_, server)| server.pool == id);
        let (servers, connecting) =
            (of_pool().count(), of_pool().filter(|(_, s)| s.state() == ServerState::Login).count());
        must!(pool.len() == servers, "{name} counts {} servers and has {servers}", pool.len());
        must!(
            pool.connecting() == connecting,
            "{name} counts {} connects of {connecting}",
            pool.connecting()
        );
        let aside = || of_pool().filter(|(_, server)| server.post.is_aside());
        must!(pool.aside() == aside().count(), "{name} counts {} servers set aside", pool.aside());
        let is_kept = |server: &Server<W, N::Socket>| match server.state() {
            ServerState::Leased(client) => {
                self.clients.get(client).is_some_and(|client| !client.claim.pinned().is_empty())
            }
            _ => false,
        };
        must!(aside().all(|(_, server)| is_kept(server)), "{name} has set a server aside that nothing pins");
        let mut waiting: Vec<_> = self
            .clients
            .iter()
            .filter(|(_, client)| client.pool == Some(id) && client.is_waiting())
            .map(|(key, client)| (client.claim.since_ns(), key, client.shares()))
            .collect();
        waiting.sort();
        must!(
            pool.waiting_len() == waiting.len(),
            "{name} counts {} of {} waiters",
            pool.waiting_len(),
            waiting.len()
        );
        let oldest =
            pool.oldest(&self.clients).and_then(|key| self.clients.get(key)).map(|c| c.claim.since_ns());
        must!(
            oldest == waiting.first().map(|&(since, ..)| since),
            "{name} does not serve its oldest waiter first"
        );
        let published = pool.entry.shared.published(worker);
        let lacks = pool.lacks().min(crate::books::LACKS_TOLD);
        let actual = (oldest.unwrap_or(NOBODY), pool.idle_len(), lacks);
        must!(published == actual, "{name} tells others {published:?} and has {actual:?}");
        let queue_since = pool.entry.shared.queue_since(worker);
        must!(
            (queue_since == NOBODY) == waiting.is_empty(),
            "{name} tells others of a queue since {queue_since}"
        );
        let leased =
            self.clients.iter().filter(|(_, client)| client.pool == Some(id) && client.server().is_some());
        let waiters = || self.clients.iter().filter(|(_, it)| it.pool == Some(id) && it.is_waiting());
        let of = |which: fn(&Client<W, N::Socket>) -> bool| {
            waiters().filter(|(_, it)| which(it)).map(|(key, _)| key.raw()).collect()
        };
        Ok(Some(PoolAudit {
            id: (W::PROTOCOL.name(), id.0),
            choosy: of(|client| client.is.choosy),
            awaiting: of(|client| client.is.kept),
            waiting: waiting.into_iter().map(|(since, key, shares)| (key.raw(), since, shares)).collect(),
            leased: leased.map(|(key, _)| key.raw()).collect(),
            idle: pool.idle_len(),
            connecting,
            servers,
            retry_at_ms: pool.retry_at_ms(),
            tries_one: pool.failures() > 0 && pool.connecting() > 0,
            opened: pool.entry.shared.opened(),
            limit: pool.entry.shared.limit(),
            keeps: pool.entry.standing().is_reserved(),
            caps: {
                let [database, user] = pool.entry.shared.caps();
                let (d, u) = (database.figures(), user.figures());
                let database = format!("{} database {}", W::PROTOCOL.name(), pool.spec.database);
                [(database, d.0, d.1), (format!("{} user {}", W::PROTOCOL.name(), pool.spec.user), u.0, u.1)]
            },
        }))
    }

    /// Pools that differ only in their variant share their cells.
    fn audit_gauges(&self) -> Result<(), String> {
        for pool in self.pools.iter().flatten() {
            let same = |id: crate::pool::PoolId| {
                let other = self.pools.get(id.0 as usize).and_then(|other| other.as_deref());
                other.is_some_and(|other| Arc::ptr_eq(&other.cells, &pool.cells))
            };
            let name = Name(W::PROTOCOL.name(), "pool", pool.entry.id.0);
            let states = [ServerState::Login, ServerState::Idle, ServerState::Cleaning];
            let of_cells = || self.servers.iter().filter(|(_, server)| same(server.pool));
            for state in states {
                let (told, is) =
                    (state.gauge(&pool.cells).get(), of_cells().filter(|(_, s)| s.state() == state).count());
                must!(told == is as i64, "{name}: the gauge of {state:?} says {told} and it is {is}");
            }
            let active = |state| matches!(state, ServerState::Leased(_) | ServerState::Shared);
            let leased = of_cells().filter(|(_, s)| active(s.state())).count() as i64;
            let told = pool.cells.servers_active.get();
            must!(told == leased, "{name}: the gauge of active servers says {told} and it is {leased}");
            let clients = || self.clients.iter().filter(|(_, client)| client.pool.is_some_and(same));
            let waiting = clients().filter(|(_, client)| client.claim.is_in_line()).count() as i64;
            let told = pool.cells.waiting_clients.get();
            must!(told == waiting, "{name}: the gauge of waiters says {told} and it is {waiting}");
            let pinned = clients().filter(|(_, client)| !client.claim.pinned().is_empty()).count() as i64;
            let told = pool.cells.pinned_servers.get();
            must!(told == pinned, "{name}: the gauge of pinned servers says {told} and it is {pinned}");
        }
        let (told, is) = (self.cells.wing.client_connections.get(), self.clients.len());
        must!(told == is as i64, "{}: the gauge of clients says {told} and it is {is}", W::PROTOCOL.name());
        let is = self.clients.iter().filter(|(_, client)| client.is.counted).count();
        let told = self.cells.wing.client_logins_pending.get();
        must!(told == is as i64, "{}: the gauge of logins says {told} and it is {is}", W::PROTOCOL.name());
        Ok(())
    }
}
