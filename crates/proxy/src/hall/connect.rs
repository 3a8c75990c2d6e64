//! Opens servers, handles failed connects, and handles the clients of servers that are lost.

use super::who::log_client;
use super::{Hall, Order};
use crate::books::{Post, Want};
use crate::client::Phase;
use crate::context::{Cx, Ticket};
use crate::crypto::Work;
use crate::dial::{self, Dial, Progress};
use crate::ids::{Key, Kind, Tag};
use crate::line::Line;
use crate::panics::inject;
use crate::pool::{Opening, PoolId, Right};
use crate::server::{Cleaning, Server, ServerFlags, ServerPhase, ServerState};
use crate::stream::Stream;
use crate::wing::{Back, Front, Welcomes, Wing};
use weir_auth::JobDone;
use weir_net::Net;
use weir_session::login::{ConnectParams, TlsWish};
use weir_wire::{Fault, FaultKind};

/// The first pause after a failed connect; each further failure doubles it up to `server_login_retry`.
const FIRST_RETRY_MS: u64 = 100;

impl<W: Wing, N: Net> Hall<W, N> {
    /// Starts connects for those who wait, as many as the limit allows and as are wanted.
    pub(super) fn open_for_waiters(&mut self, cx: &mut Cx<'_, N>, id: PoolId) {
        loop {
            let Some(pool) = self.pool(id) else { return };
            if !pool.may_connect(cx.now_ms()) || pool.lacks() == 0 {
                return;
            }
            let entry = pool.entry.clone();
            let right = match Right::take(&entry) {
                Ok(right) => right,
                Err(Opening::PoolIsFull | Opening::Granted) => return,
                Err(Opening::CapIsFull) => return self.make_room(cx, &entry),
                Err(Opening::CapWasQuicker) => return self.todo.push_back(Order::CapFreed(entry)),
            };
            if !self.open(cx, id, right) {
                return;
            }
        }
    }

    /// A client that waits to be told that it is logged in is told what the next connect brings. The database
    /// itself would tell it at once, so it does not wait for a pause that has grown long.
    pub(super) fn try_for_login(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let waits = self.clients.get(key).filter(|c| c.claim.want() == Some(Want::Welcome) && c.is_waiting());
        let Some(id) = waits.and_then(|client| client.pool) else { return };
        let due_ms = cx.now_ms() + FIRST_RETRY_MS;
        let Some(pool) = self.pool(id) else { return };
        if pool.entry.shared.opened() == 0 && pool.shorten_pause(due_ms) {
            cx.wheel.insert(due_ms, Tag::fixed(Kind::Pool, W::PROTOCOL, id.0).pack());
        }
    }

    /// Starts one connect if fewer than `min_pool_size` servers are open. The next one follows when this
    /// one is ready.
    pub(super) fn fill(&mut self, cx: &mut Cx<'_, N>, id: PoolId) {
        let (now_ms, draining) = (cx.now_ms(), self.draining);
        let Some(pool) = self.pool(id) else { return };
        let wanted = pool.entry.shared.inside_and_outside().0 < pool.spec.min_size;
        if wanted && !draining && pool.may_connect(now_ms) {
            self.open_unasked(cx, id);
        }
    }

    /// Starts one connect if none is under way and there is room for it, for nobody who waits now.
    pub(super) fn grow(&mut self, cx: &mut Cx<'_, N>, id: PoolId) {
        let (now_ms, draining) = (cx.now_ms(), self.draining);
        let Some(pool) = self.pool(id) else { return };
        if pool.connecting() == 0 && pool.failures() == 0 && !draining && pool.may_connect(now_ms) {
            self.open_unasked(cx, id);
        }
    }

    /// Starts one connect that nobody waits for: it takes nothing from another pool.
    fn open_unasked(&mut self, cx: &mut Cx<'_, N>, id: PoolId) {
        let Some(entry) = self.pool(id).map(|pool| pool.entry.clone()) else { return };
        match Right::take(&entry) {
            Ok(right) => drop(self.open(cx, id, right)),
            Err(Opening::PoolIsFull | Opening::CapIsFull | Opening::Granted) => {}
            Err(Opening::CapWasQuicker) => self.todo.push_back(Order::CapFreed(entry)),
        }
    }

    pub(crate) fn connect_params(
        &mut self,
        cx: &Cx<'_, N>,
        id: PoolId,
        unix: bool,
        tls: TlsWish,
        parameters: Vec<(String, String)>,
    ) -> Option<ConnectParams> {
        let pool = self.pool(id)?;
        let spec = &pool.spec;
        Some(ConnectParams {
            user: spec.user.clone(),
            // Another worker may have learnt of a new password since.
            secret: pool.entry.spec().secret.clone(),
            database: spec.server_database.clone(),
            parameters,
            nonce: cx.nonce(),
            unix,
            tls,
            trust: spec.trust.clone(),
            cancel: None,
            max_prepared_statements: spec.max_prepared_statements,
            variant: spec.variant,
            changes: pool.entry.changes.clone(),
        })
    }

    /// Starts one connect. False when it failed at once.
    pub(super) fn open(&mut self, cx: &mut Cx<'_, N>, id: PoolId, right: Right<W::Welcomes>) -> bool {
        let meant_for = self.opens_for(id);
        self.open_by(cx, id, right, false, meant_for)
    }

    /// The same; `second`: by the other transport, after the first was refused.
    fn open_by(
        &mut self,
        cx: &mut Cx<'_, N>,
        id: PoolId,
        right: Right<W::Welcomes>,
        second: bool,
        meant_for: Option<Key>,
    ) -> bool {
        inject::here("open");
        let Some(pool) = self.pool(id) else { return false };
        let Some(target) = pool.spec.targets.pick(pool.next_target) else {
            self.connect_failed(
                cx,
                right,
                Fault::new(FaultKind::ServerUnavailable, "no address for this host"),
                None,
            );
            return false;
        };
        let unix = matches!(target, weir_net::Target::Unix(_));
        let key = self.servers.next_key();
        let tag = Tag { kind: Kind::Server, protocol: W::PROTOCOL, key };
        let tls = self.pool(id).and_then(|pool| pool.spec.tls.clone());
        let wish = dial::tls_wish(tls.as_deref().map(|tls| tls.mode), second);
        let parameters = self.startup_of(meant_for);
        let Some(params) = self.connect_params(cx, id, unix, wish, parameters) else { return false };
        let socket = match dial::open(cx.net, &target, tag.token()) {
            Ok(socket) => socket,
            Err(e) => {
                let fault = Fault::new(FaultKind::ServerUnavailable, format!("{target}: {e}"));
                self.connect_failed(cx, right, fault, None);
                return false;
            }
        };
        let now_ms = cx.now_ms();
        let spec_epoch = self.pool(id).map_or(0, |pool| pool.spec.epoch);
        self.books().enter(Server {
            stream: Stream::new(Line::new(socket)),
            phase: ServerPhase::Login(Some(Box::new(Dial::new(target.clone(), tls, params, second)))),
            target,
            pool: id,
            right,
            spec_epoch,
            post: Post::connecting(meant_for),
            opened_ms: now_ms,
            since_ms: now_ms,
            head_since_ns: 0,
            armed_ms: u64::MAX,
            cleaning: Cleaning::default(),
            is: ServerFlags::default(),
        });
        self.arm_server(cx, key);
        true
    }

    /// A server has room for bytes, or its connect has ended. False when it is gone.
    pub(super) fn server_writable(&mut self, cx: &mut Cx<'_, N>, key: Key) -> bool {
        let Some(server) = self.servers.get_mut(key) else { return false };
        if let ServerPhase::Login(Some(dial)) = &mut server.phase {
            match dial.begin(cx.net, &mut server.stream) {
                Ok(true) => {}
                Ok(false) => return true,
                Err(fault) => {
                    self.login_ended(cx, key, fault);
                    return false;
                }
            }
        }
        self.flush_server(cx, key);
        self.servers.get(key).is_some()
    }

    /// Reads and handles login bytes of a server.
    pub(super) fn pump_login(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(server) = self.servers.get_mut(key) else { return };
        let ServerPhase::Login(Some(dial)) = &mut server.phase else { return };
        let progress = dial.go_on(cx.net, &mut server.stream, cx.scratch);
        self.login_came_to(cx, key, progress);
    }

    /// Slow work for a server's login is done.
    pub(super) fn server_job_done(&mut self, cx: &mut Cx<'_, N>, key: Key, done: JobDone) {
        let Some(server) = self.servers.get_mut(key) else { return };
        let ServerPhase::Login(Some(dial)) = &mut server.phase else { return };
        let progress = dial.job_done(cx.net, &mut server.stream, done);
        if matches!(progress, Ok(Progress::Waits)) {
            self.todo.push_back(Order::PumpServer(key));
        }
        self.login_came_to(cx, key, progress);
    }

    fn login_came_to(&mut self, cx: &mut Cx<'_, N>, key: Key, progress: Result<Progress, Fault>) {
        self.mark_dirty(key);
        match progress {
            Ok(Progress::Waits) => {}
            Ok(Progress::Work(job)) => {
                let ticket = Ticket { worker: cx.worker, protocol: W::PROTOCOL, kind: Kind::Server, key };
                let _ = (cx.shared.submit)(ticket, Work::Login(job));
            }
            Ok(Progress::LoggedIn) => self.server_ready(cx, key),
            Err(fault) => self.login_ended(cx, key, fault),
        }
    }

    /// A server has logged in.
    fn server_ready(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("server_ready");
        let now_ms = cx.now_ms();
        let Some(server) = self.servers.get_mut(key) else { return };
        let ServerPhase::Login(dial) = &mut server.phase else { return };
        let Some(mut back) = dial.take().and_then(|dial| dial.into_back()) else { return };
        if let Some(greeting) = back.server_greeting() {
            cx.shared.greetings.learn(greeting);
        }
        let id = server.pool;
        server.since_ms = now_ms;
        if let Some(pool) = self.pools.get_mut(id.0 as usize).and_then(|p| p.as_deref_mut()) {
            pool.entry.learn(|welcomes| welcomes.observe(&mut back));
            back.know(&pool.entry.knowledge);
            pool.entry.health.succeeded();
        }
        server.phase = ServerPhase::Live(back);
        let logged_in = self.books().logged_in(key);
        if self.sound(logged_in).is_none() {
            return;
        }
        self.count_pool(id, |cells| cells.server_connects_ok.inc());
        self.todo.push_back(Order::PumpServer(key));
        self.settle_later(key);
        // One that got through after failures clears the way for the others. First it serves who waits: else
        // one more would be opened for the same client.
        self.todo.push_back(Order::Open(id));
    }

    /// A connect or login has failed: the server goes, and those it was for are told or wait on.
    pub(super) fn login_ended(&mut self, cx: &mut Cx<'_, N>, key: Key, fault: Fault) {
        let Some(server) = self.books().close(key) else { return };
        let meant_for = server.post.meant_for();
        let Server { stream: Stream { line, .. }, pool: id, right, phase, .. } = server;
        let dial = match &phase {
            ServerPhase::Login(dial) => dial.as_deref(),
            ServerPhase::Live(_) => None,
        };
        let otherwise = dial.is_some_and(|dial| dial.may_try_otherwise(&fault, line.is_tls()));
        let rejection = dial.and_then(Dial::rejection).map(<[u8]>::to_vec);
        line.close(cx.net, true);
        if otherwise {
            tracing::debug!(
                protocol = W::PROTOCOL.name(),
                "retrying the login with the other transport (TLS or plain): {fault}"
            );
            self.open_by(cx, id, right, true, meant_for);
            return;
        }
        if let Some(client) = meant_for {
            self.books().note_opening(client, false);
        }
        self.connect_failed(cx, right, fault, rejection);
    }

    /// The right to open a server is given back after a failure.
    fn connect_failed(
        &mut self,
        cx: &mut Cx<'_, N>,
        right: Right<W::Welcomes>,
        fault: Fault,
        rejection: Option<Vec<u8>>,
    ) {
        let id = right.entry().id;
        self.count_pool(id, |cells| cells.server_connects_failed.inc());
        self.count_fault(fault.kind);
        let retry_max_ms = cx.settings.timeouts.server_login_retry_ms.max(FIRST_RETRY_MS);
        let now_ms = cx.now_ms();
        let Some(pool) = self.pool(id) else { return };
        pool.next_target = pool.next_target.wrapping_add(1);
        let pause_ms = (FIRST_RETRY_MS << pool.failures().min(16)).min(retry_max_ms);
        pool.pause(now_ms + pause_ms);
        let (entry, spec) = (pool.entry.clone(), pool.spec.clone());
        tracing::warn!(
            protocol = W::PROTOCOL.name(),
            database = %spec.database,
            user = %spec.user,
            "no server connection: {fault}; next try in {pause_ms} ms"
        );
        entry.health.failed(now_ms, &fault);
        drop(right);
        // While other servers of the pool live, those who wait will be served by them.
        if entry.shared.opened() == 0 {
            self.fail_waiters(cx, id, &fault, rejection.as_deref());
        }
        let again = Tag::fixed(Kind::Pool, W::PROTOCOL, id.0);
        cx.wheel.insert(now_ms + pause_ms, again.pack());
        // Those who wait here may be served by a neighbour, and those elsewhere or in other pools need not
        // pause.
        self.todo.push_back(Order::Freed(entry));
    }

    /// No server is left: clients in their login are told at once, in the server's own words if it had any,
    /// as the database itself would. Those who are logged in wait for the next try until
    /// `query_wait_timeout`: a database that restarts refuses logins for a while, and is then back.
    fn fail_waiters(&mut self, cx: &mut Cx<'_, N>, id: PoolId, fault: &Fault, rejection: Option<&[u8]>) {
        let mut told = Vec::new();
        for (key, client) in self.clients.iter() {
            let waits = client.pool == Some(id) && client.is_waiting();
            if waits && client.claim.want() == Some(Want::Welcome) {
                told.push(key);
            }
        }
        for key in told {
            let mut out = std::mem::take(&mut self.staging);
            if let Some(client) = self.clients.get_mut(key)
                && let Phase::Session(front) = &mut client.phase
            {
                match rejection {
                    Some(rejection) => front.fatal_rejection(rejection, &mut out),
                    None => front.fatal(fault, &mut out),
                }
                if !client.is.greeted {
                    self.cells.wing.logins_failed.inc();
                }
            }
            self.send_client(cx, key, &out);
            self.recycle(out);
            self.begin_closing(cx, key);
        }
    }

    /// A logged-in server is gone or must go because of `fault`. Its client cannot know what became of its
    /// request and is closed.
    pub(super) fn server_lost(&mut self, cx: &mut Cx<'_, N>, key: Key, fault: Fault) {
        let Some(server) = self.servers.get_mut(key) else { return };
        if matches!(server.phase, ServerPhase::Login { .. }) {
            self.login_ended(cx, key, fault);
            return;
        }
        if server.state() == ServerState::Shared {
            // The one at the head loses what it asked; the others have not begun and go elsewhere.
            self.seclude(cx, key);
        }
        let Some(server) = self.servers.get_mut(key) else { return };
        let state = server.state();
        match state {
            ServerState::Idle => {
                tracing::debug!(protocol = W::PROTOCOL.name(), "idle server connection lost: {fault}");
            }
            ServerState::Leased(client) => {
                self.count_fault(fault.kind);
                log_client!(warn, self, cx, client, "server lost while in use by this client: {fault}");
                let cut = self.is_mid_message(client);
                self.books().release(client);
                if let Some(client) = self.clients.get_mut(client) {
                    client.chokes = None;
                }
                if cut {
                    self.begin_closing(cx, client);
                } else {
                    let shown = Fault::new(FaultKind::ServerLost, fault.detail.clone());
                    self.end_client(cx, client, shown);
                }
            }
            ServerState::Cleaning | ServerState::Login | ServerState::Shared => {
                self.count_fault(fault.kind);
            }
        }
        self.drop_server(cx, key, true);
    }

    /// Closes a server that no client holds and opens another one in its place, for this client and as it
    /// would itself. The place stays reserved meanwhile: otherwise two pools under one limit would close and
    /// open servers for each other endlessly.
    pub(super) fn renew_for(&mut self, cx: &mut Cx<'_, N>, server: Key, client: Key, why: &str) {
        let id = self.servers.get(server).map(|held| held.pool);
        let now_ms = cx.now_ms();
        let Some(may_connect) = id.and_then(|id| self.pool(id)).map(|pool| pool.may_connect(now_ms)) else {
            return;
        };
        if !may_connect {
            return self.close_server(cx, server, why);
        }
        let clean = self.say_goodbye(cx, server, why);
        let Some((id, right)) = self.take_out(cx, server, !clean) else { return };
        let meant_for = self.means(client);
        self.open_by(cx, id, right, false, meant_for);
        self.ask_neighbour(cx, id);
    }
}
