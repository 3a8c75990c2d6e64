//! Lists this worker's clients, servers and pools for the administration console: reads, and changes nothing.
//!
//! Owns: how a client or server becomes a row or is counted. Everything the console shows of the hall is read
//! here and nowhere else.
//!
//! Invariant: at most [`CONSOLE_LOOKS`] slots are examined in one turn; the rest follows by mail to itself.

use super::Hall;
use crate::client::{Client, Phase};
use crate::console::{
    ClientRow, ClientState, Counts, Letter, List, Part, ServerMark, ServerRow, StatementRow,
};
use crate::context::Cx;
use crate::ids::Key;
use crate::mail::WingMail;
use crate::pool::PoolId;
use crate::server::{Server, ServerPhase, ServerState};
use crate::wing::{Back, Front, Wing};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_net::Net;
use weir_wire::limits::{CONSOLE_LOOKS, CONSOLE_NAME_BYTES, STATEMENT_WORDS_BYTES};

/// A server's number in lists: below those of clients.
fn server_number(worker: usize, key: Key) -> u32 {
    ((key.slot() & 0x007F_FFFF) + 1) << 6 | worker as u32 & 63
}

/// The beginning of a name.
fn shown(name: &str) -> String {
    let end = (0..=name.len().min(CONSOLE_NAME_BYTES)).rev().find(|&end| name.is_char_boundary(end));
    name[..end.unwrap_or(0)].to_owned()
}

impl<W: Wing, N: Net> Hall<W, N> {
    /// Lists some of what there is, and then the next.
    pub(super) fn list(&mut self, cx: &mut Cx<'_, N>, list: Arc<List>, servers: bool, from: u32) {
        let mut part = Part::new(W::PROTOCOL, cx.now_ns());
        let slots = if servers { self.servers.slots() } else { self.clients.slots() };
        let wanted = if servers { list.servers } else { list.clients };
        let end = if wanted { slots.min(from.saturating_add(CONSOLE_LOOKS as u32)) } else { slots };
        let mut counts: BTreeMap<PoolId, Counts> = BTreeMap::new();
        let mut users: BTreeMap<String, usize> = BTreeMap::new();
        for slot in if wanted { from..end } else { 0..0 } {
            match servers {
                false => {
                    let Some(client) = self.clients.at(slot) else { continue };
                    self.list_client(cx, &list, client, &mut part, &mut counts);
                    if let Some(user) = self.user_of(cx, client).filter(|_| list.users) {
                        *users.entry(user).or_default() += 1;
                    }
                }
                true => {
                    let Some(server) = self.servers.at(slot) else { continue };
                    self.list_server(cx, &list, server, &mut part, &mut counts);
                }
            }
        }
        if list.statements && !servers {
            part.statements = self.list_statements();
        }
        part.counts = counts.into_iter().collect();
        part.users = users.into_iter().collect();
        (list.sink)(part);
        let next = match (end < slots, servers) {
            (true, servers) => Letter::List { list, servers, from: end },
            (false, false) => Letter::List { list, servers: true, from: 0 },
            (false, true) => return,
        };
        cx.post::<W>(cx.worker, WingMail::Console(next));
    }

    /// Each statement, and what all others together have cost.
    fn list_statements(&self) -> Vec<StatementRow> {
        let called = self.statements.rows().filter(|row| row.figures.times.count() > 0);
        let rows = called.map(|row| {
            let pool = self.pools.get(row.pool.0 as usize).and_then(|pool| pool.as_deref());
            let spec = pool.map(|pool| &pool.spec);
            StatementRow {
                user: spec.map(|spec| shown(&spec.user)).unwrap_or_default(),
                database: spec.map(|spec| shown(&spec.database)).unwrap_or_default(),
                words: Some(row.words.to_string()),
                // Two that begin alike are two.
                apart: if row.words.len() < STATEMENT_WORDS_BYTES { 0 } else { row.fingerprint },
                figures: row.figures.clone(),
            }
        });
        let rest = self.statements.rest().clone();
        let others = StatementRow {
            user: String::new(),
            database: String::new(),
            words: None,
            apart: 0,
            figures: rest,
        };
        rows.chain(std::iter::once(others).filter(|row| row.figures.times.count() > 0)).collect()
    }

    /// The user of a client, once it has logged in.
    fn user_of(&self, cx: &Cx<'_, N>, (key, client): (Key, &Client<W, N::Socket>)) -> Option<String> {
        let in_session = matches!(client.phase, Phase::Session(_));
        in_session.then(|| self.who(cx.number(key), key).map(|who| shown(who.user))).flatten()
    }

    fn list_client(
        &self,
        cx: &Cx<'_, N>,
        list: &List,
        (key, client): (Key, &Client<W, N::Socket>),
        part: &mut Part,
        counts: &mut BTreeMap<PoolId, Counts>,
    ) {
        let state = match &client.phase {
            Phase::Closing => return,
            Phase::Login(_) => ClientState::Login,
            Phase::Session(_) if client.claim.is_in_line() => ClientState::Waiting,
            Phase::Session(_) if client.server().is_some() => ClientState::Active,
            Phase::Session(_) => ClientState::Idle,
        };
        let pool = client.pool.filter(|_| state != ClientState::Login);
        match (pool, state) {
            (None, ClientState::Login) => part.logins += 1,
            (None, _) => {}
            (Some(id), ClientState::Waiting) => counts.entry(id).or_default().cl_waiting += 1,
            (Some(id), _) => counts.entry(id).or_default().cl_active += 1,
        }
        let pins = match &client.phase {
            Phase::Session(front) if client.lease().is_some() && client.pool.is_some() => front.pins(),
            Phase::Session(_) | Phase::Login(_) | Phase::Closing => weir_wire::Pins::NONE,
        };
        let leaves_out =
            list.pinned && pins.is_empty() || list.waiting && state != ClientState::Waiting || !list.rows;
        if !leaves_out {
            part.clients.push(self.client_row(cx, key, client, state, pins));
        }
    }

    fn client_row(
        &self,
        cx: &Cx<'_, N>,
        key: Key,
        client: &Client<W, N::Socket>,
        state: ClientState,
        pins: weir_wire::Pins,
    ) -> ClientRow {
        let who = self.who(cx.number(key), key);
        let (user, mut database, application_name) = match &who {
            Some(who) => (shown(who.user), shown(who.database), who.application_name.as_deref().map(shown)),
            None => (String::new(), String::new(), None),
        };
        if let Some(visit) = self.consoles.get(&key) {
            database = shown(&visit.database);
        }
        let server = client.server();
        ClientRow {
            number: cx.number(key),
            user,
            database,
            application_name: application_name.unwrap_or_default(),
            peer: client.peer.clone(),
            local: cx.net.local(client.stream.line.socket()),
            state,
            connected_ms: u64::from(client.connected_s) * 1_000,
            active_ms: client.active_ms.max(client.request_since_ns / 1_000_000),
            waited_ns: match state {
                ClientState::Waiting => cx.now_ns().saturating_sub(client.claim.since_ns()),
                ClientState::Login | ClientState::Active | ClientState::Idle => 0,
            },
            server: server.map(|server| server_number(cx.worker, server)),
            leased_ms: server.and_then(|server| self.servers.get(server)).map_or(0, |server| server.since_ms),
            cause: self.cause_of(key).to_owned(),
            pins,
            inflight: client.inflight,
            tls: client.stream.line.secured().map(|secured| (secured.version, secured.cipher)),
            console: client.is.console,
        }
    }

    fn list_server(
        &self,
        cx: &Cx<'_, N>,
        list: &List,
        (key, server): (Key, &Server<W, N::Socket>),
        part: &mut Part,
        counts: &mut BTreeMap<PoolId, Counts>,
    ) {
        let of_pool = counts.entry(server.pool).or_default();
        let state = match server.state() {
            ServerState::Login => ServerMark::Login,
            ServerState::Idle => ServerMark::Idle,
            ServerState::Leased(_) | ServerState::Shared => ServerMark::Active,
            ServerState::Cleaning => ServerMark::Tested,
        };
        match state {
            ServerMark::Tested if server.post.is_held() => of_pool.sv_being_canceled += 1,
            ServerMark::Login => of_pool.sv_login += 1,
            ServerMark::Idle => of_pool.sv_idle += 1,
            ServerMark::Active => of_pool.sv_active += 1,
            ServerMark::Tested => of_pool.sv_tested += 1,
        }
        of_pool.sv_active_cancel += usize::from(server.post.is_held());
        if list.rows {
            part.servers.push(self.server_row(cx, key, server, state));
        }
    }

    fn server_row(
        &self,
        cx: &Cx<'_, N>,
        key: Key,
        server: &Server<W, N::Socket>,
        state: ServerMark,
    ) -> ServerRow {
        let pool = self.pools.get(server.pool.0 as usize).and_then(|pool| pool.as_deref());
        let spec = pool.map(|pool| &pool.spec);
        let client = match (server.state(), &server.phase) {
            (ServerState::Leased(client), _) => Some(client),
            (ServerState::Shared, ServerPhase::Live(back)) => back.head().and_then(Key::from_raw),
            (ServerState::Shared | ServerState::Login | ServerState::Idle | ServerState::Cleaning, _) => None,
        };
        let from_before = pool.is_some_and(|pool| {
            pool.entry.shared.is_from_before(server.opened_ms) || server.spec_epoch < pool.spec.servers_since
        });
        ServerRow {
            number: server_number(cx.worker, key),
            user: spec.map(|spec| shown(&spec.user)).unwrap_or_default(),
            database: spec.map(|spec| shown(&spec.database)).unwrap_or_default(),
            target: server.target.clone(),
            local: cx.net.local(server.stream.line.socket()),
            state,
            opened_ms: server.opened_ms,
            since_ms: server.since_ms,
            close_needed: server.is.retire || from_before,
            client: client.map(|client| cx.number(client)),
            pid: match &server.phase {
                ServerPhase::Live(back) => back.console_pid(),
                ServerPhase::Login { .. } => 0,
            },
            tls: server.stream.line.secured().map(|secured| (secured.version, secured.cipher)),
        }
    }
}
