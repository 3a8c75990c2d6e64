//! Client logins: from accept to the first request.

use super::counted::Counted;
use super::study::is_due;
use super::who::log_client;
use super::{Hall, Order};
use crate::ask::Answer;
use crate::books::{Claim, Want};
use crate::client::{Before, Client, Flags, LoginPhase, Phase, silence};
use crate::context::{Cx, Ticket};
use crate::crypto::Work;
use crate::ids::{Key, Kind, MAX_CLIENTS_PER_WORKER, Tag};
use crate::line::Line;
use crate::mail::{Kill, Warrant, WingMail};
use crate::panics::inject;
use crate::stream::Stream;
use crate::vouch::Vouched;
use crate::wing::{Accept, Console, Front, Welcomes, Wing};
use std::fmt::Display;
use std::sync::atomic::Ordering::Relaxed;
use weir_auth::JobDone;
use weir_net::{Kept, Net, Peer};
use weir_session::Login;
use weir_session::login::{AcceptParams, AcceptStep, ClientId};
use weir_wire::proxy_header::{self, Forwarded};
use weir_wire::{Fault, FaultKind, limits};

/// How a client's connection comes to its worker.
pub(super) enum Arrival<N: Net> {
    /// Accepted here.
    Here(N::Socket),
    /// Accepted by another worker.
    Parcel(N::Parcel),
}

impl<W: Wing, N: Net> Hall<W, N> {
    /// A client has connected: it is served here or by another worker.
    pub fn seat(&mut self, cx: &mut Cx<'_, N>, socket: N::Socket, peer: Peer) {
        let together = if self.draining { 0 } else { cx.settings.clients_together };
        let to = cx.shared.berths.take_seat(cx.worker, together);
        if to == cx.worker {
            return self.accepted(cx, Arrival::Here(socket), peer);
        }
        match cx.net.pack(socket, to) {
            Ok(parcel) => cx.post::<W>(to, WingMail::Client { parcel, peer }),
            Err(Kept { socket, .. }) => {
                cx.shared.berths.leave_seat(to);
                cx.shared.berths.take_seat_here(cx.worker);
                self.accepted(cx, Arrival::Here(socket), peer);
            }
        }
    }

    /// A client is here, and has a seat.
    pub(super) fn accepted(&mut self, cx: &mut Cx<'_, N>, arrival: Arrival<N>, peer: Peer) {
        inject::here("accepted");
        let counted = Counted::new(cx);
        let full = cx.client_total() > cx.most_clients().1 && !self.give_up_a_silent_login(cx);
        if full || self.clients.len() >= MAX_CLIENTS_PER_WORKER || self.draining {
            self.count_fault(FaultKind::TooManyClients);
            if let Arrival::Here(socket) = arrival {
                cx.net.close(socket, true);
            }
            return;
        }
        let key = self.clients.next_key();
        let token = Tag { kind: Kind::Client, protocol: W::PROTOCOL, key }.token();
        let registered = match arrival {
            Arrival::Here(socket) => cx.net.register(&socket, token).map(|()| socket),
            Arrival::Parcel(parcel) => cx.net.unpack(parcel, token),
        };
        let Ok(socket) = registered else { return self.count_fault(FaultKind::OutOfResources) };
        let header_due = cx.settings.routes.is_balancer(W::PROTOCOL, &peer);
        let accept = W::Accept::new(accept_params::<W, N>(cx, key, &peer));
        let phase = LoginPhase::new(accept);
        self.clients.insert(Client {
            stream: Stream::new(Line::new(socket)),
            peer,
            phase: Phase::Login(Box::new(phase)),
            pool: None,
            user: 0,
            before: None,
            claim: Claim::default(),
            chokes: None,
            request_since_ns: cx.now_ns(),
            fingerprint: 0,
            active_ms: cx.now_ms(),
            listed_ms: 0,
            transaction_since_ns: 0,
            armed_ms: u64::MAX,
            inflight: 0,
            connected_s: (cx.now_ms() / 1_000) as u32,
            is: Flags { counted: true, header_due, ..Flags::default() },
        });
        counted.stays();
        self.silent.note(key);
        if self.silent.is_long(self.clients.len()) {
            let (clients, now_ms) = (&self.clients, cx.now_ms());
            self.silent.tidy(|key| silence(clients.get(key), now_ms));
        }
        self.cells.wing.client_accepts.inc();
        self.cells.wing.client_connections.inc();
        self.cells.wing.client_logins_pending.inc();
        if !header_due {
            self.start_login(cx, key);
        }
        self.arm_client(cx, key);
    }

    /// All places are taken, some by connections that say nothing: the oldest of these makes room. False:
    /// there is none here.
    fn give_up_a_silent_login(&mut self, cx: &mut Cx<'_, N>) -> bool {
        let now_ms = cx.now_ms();
        let clients = &self.clients;
        let Some(key) = self.silent.take(|key| silence(clients.get(key), now_ms)) else { return false };
        self.count_fault(FaultKind::TooManyLogins);
        self.leave(cx, key);
        self.remove_client(cx, key, true);
        true
    }

    /// Says what the protocol's server says first.
    fn start_login(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let mut out = std::mem::take(&mut self.staging);
        if let Some(phase) = self.login_phase(key) {
            phase.accept.start(&mut out);
        }
        self.send_client(cx, key, &out);
        self.recycle(out);
    }

    /// A load balancer's first bytes: the header that says whose connection it is. The login begins behind
    /// it, and knows nothing of it. Returns how many bytes are dealt with.
    fn forwarded(&mut self, cx: &mut Cx<'_, N>, key: Key, bytes: &[u8]) -> usize {
        let (used, said) = match proxy_header::read(bytes) {
            Ok(None) => return 0,
            Ok(Some(read)) => read,
            Err(error) => {
                self.refuse(cx, key, Fault::new(FaultKind::ProxyHeader, error.to_string()));
                return bytes.len();
            }
        };
        let Some(client) = self.clients.get_mut(key) else { return used };
        client.is.header_due = false;
        match said {
            Forwarded::Local => {}
            Forwarded::Unknown => client.peer = Peer::Unknown,
            Forwarded::From(address) => client.peer = Peer::Tcp(address),
        }
        let accept = W::Accept::new(accept_params::<W, N>(cx, key, &client.peer));
        client.phase = Phase::Login(Box::new(LoginPhase::new(accept)));
        self.start_login(cx, key);
        used
    }

    pub(super) fn login_phase(&mut self, key: Key) -> Option<&mut LoginPhase<W>> {
        match &mut self.clients.get_mut(key)?.phase {
            Phase::Login(phase) => Some(phase),
            Phase::Session(_) | Phase::Closing => None,
        }
    }

    /// Looks at a client's login bytes once; returns how many are dealt with.
    pub(super) fn login_input(&mut self, cx: &mut Cx<'_, N>, key: Key, bytes: &[u8]) -> usize {
        inject::here("login_input");
        if self.clients.get(key).is_some_and(|client| client.is.header_due) {
            return self.forwarded(cx, key, bytes);
        }
        if self.login_phase(key).is_none_or(|phase| phase.busy) {
            return 0;
        }
        let mut out = std::mem::take(&mut self.staging);
        let Some(phase) = self.login_phase(key) else { return 0 };
        let handled = phase.accept.handle_input(bytes, &mut out);
        if let Ok((used, _)) = &handled {
            phase.bytes += used;
        }
        let too_much = phase.bytes > limits::LOGIN_BYTES || bytes.len() > limits::LOGIN_BYTES;
        let (used, step) = match handled {
            Ok((used, step)) => (used, Ok(step)),
            Err(fault) => (bytes.len(), Err(fault)),
        };
        match self.after_answer(cx, key, step, out) {
            None => used,
            Some(AcceptStep::More) if too_much => {
                self.refuse(cx, key, FaultKind::ClientTooLarge.into());
                bytes.len()
            }
            Some(AcceptStep::Tls) => {
                if let Err(fault) = self.begin_tls(cx, key, &bytes[used..]) {
                    self.refuse(cx, key, fault);
                }
                bytes.len()
            }
            Some(step) => {
                self.login_step(cx, key, step);
                used
            }
        }
    }

    /// Does what a login machine asked for, and what it asks for then.
    pub(super) fn login_step(&mut self, cx: &mut Cx<'_, N>, key: Key, step: AcceptStep) {
        let mut next = Some(step);
        while let Some(step) = next.take() {
            match step {
                // `Tls` is only answered to input, where it is dealt with.
                AcceptStep::More | AcceptStep::Tls => {}
                AcceptStep::Lookup(login) => next = self.login_lookup(cx, key, login),
                AcceptStep::Work(job) => {
                    let ticket = Ticket { worker: cx.worker, protocol: W::PROTOCOL, kind: Kind::Client, key };
                    let Some(phase) = self.login_phase(key) else { return };
                    phase.busy = (cx.shared.submit)(ticket, Work::Login(job)).is_ok();
                    if !phase.busy {
                        self.refuse(cx, key, FaultKind::TooManyLogins.into());
                    }
                }
                AcceptStep::Vouch(password) => {
                    if let Err(fault) = self.ask_voucher(cx, key, password) {
                        self.refuse(cx, key, fault);
                    }
                }
                AcceptStep::Cancel { id, secret } => {
                    // Nothing it sends counts from here on; it waits for the end of its connection.
                    if let Some(phase) = self.login_phase(key) {
                        phase.busy = true;
                    }
                    let warrant = Warrant::Secret(secret);
                    let asker = (cx.worker, key);
                    let kill = Kill { number: id, warrant, query_only: true, asker, listed: None };
                    self.send_kill(cx, kill);
                }
                AcceptStep::LoggedIn => {
                    let out = std::mem::take(&mut self.staging);
                    self.logged_in(cx, key, out);
                }
            }
        }
    }

    fn login_lookup(&mut self, cx: &mut Cx<'_, N>, key: Key, login: Login) -> Option<AcceptStep> {
        let learnt = self.login_phase(key)?.learnt.clone();
        if learnt.is_none()
            && let Some(held) = self.hold_up(cx, key, &login)
        {
            held.unwrap_or_else(|fault| self.refuse(cx, key, fault));
            return None;
        }
        let learnt = learnt.as_deref();
        let at_console = self.admit_to_console(cx, key, &login, learnt);
        // Who has not proved himself yet takes no place from who has.
        let proven = at_console.is_some() || self.clients.get(key).is_some_and(|client| client.is.proven);
        if !proven && cx.shared.proven.load(Relaxed) >= cx.most_clients().0 {
            self.refuse(cx, key, FaultKind::TooManyClients.into());
            return None;
        }
        let client = self.clients.get(key)?;
        let admission = at_console
            .unwrap_or_else(|| cx.settings.routes.admit(W::PROTOCOL, &login, &client.visitor(), learnt));
        let mut out = std::mem::take(&mut self.staging);
        let phase = self.login_phase(key)?;
        phase.login = Some(login);
        let step = phase.accept.handle_lookup(admission, &mut out);
        self.after_answer(cx, key, step, out)
    }

    /// A database has said what it knows of a client's user.
    pub(super) fn client_answered(&mut self, cx: &mut Cx<'_, N>, key: Key, answer: Answer) {
        let Some(phase) = self.login_phase(key) else { return };
        phase.busy = false;
        let login = phase.login.clone();
        match answer {
            Ok(learnt) => phase.learnt = Some(learnt),
            Err(fault) => return self.refuse(cx, key, fault),
        }
        if let Some(step) = login.and_then(|login| self.login_lookup(cx, key, login)) {
            self.login_step(cx, key, step);
        }
        self.todo.push_back(Order::PumpClient(key));
    }

    /// Somebody has said whether a client's password is right.
    pub(super) fn client_vouched(&mut self, cx: &mut Cx<'_, N>, key: Key, said: Vouched) {
        self.go_on(cx, key, |phase, out| {
            let answer = said.map(|learnt| phase.learnt = learnt);
            phase.accept.handle_vouched(answer, out)
        });
    }

    /// Slow work for a client is done.
    pub(super) fn client_job_done(&mut self, cx: &mut Cx<'_, N>, key: Key, done: JobDone) {
        self.go_on(cx, key, |phase, out| phase.accept.handle_job(done, out));
    }

    /// What a client's login has waited for is there: its machine hears of it.
    fn go_on(
        &mut self,
        cx: &mut Cx<'_, N>,
        key: Key,
        tell: impl FnOnce(&mut LoginPhase<W>, &mut Vec<u8>) -> Result<AcceptStep, Fault>,
    ) {
        let mut out = std::mem::take(&mut self.staging);
        let Some(phase) = self.login_phase(key) else { return };
        phase.busy = false;
        phase.vouching = false;
        let step = tell(phase, &mut out);
        if let Some(step) = self.after_answer(cx, key, step, out) {
            self.login_step(cx, key, step);
        }
        self.todo.push_back(Order::PumpClient(key));
    }

    /// A login machine has answered; returns what it asks for next.
    fn after_answer(
        &mut self,
        cx: &mut Cx<'_, N>,
        key: Key,
        step: Result<AcceptStep, Fault>,
        out: Vec<u8>,
    ) -> Option<AcceptStep> {
        if let Ok(AcceptStep::LoggedIn) = step {
            self.logged_in(cx, key, out);
            return None;
        }
        self.send_client(cx, key, &out);
        self.recycle(out);
        match step {
            Ok(step) => Some(step),
            Err(fault) => {
                self.refuse(cx, key, fault);
                None
            }
        }
    }

    /// Ends a login with a reason that the client can read.
    pub(super) fn refuse(&mut self, cx: &mut Cx<'_, N>, key: Key, fault: Fault) {
        if fault.kind == FaultKind::LoginFailed && self.refuse_later(cx, key, &fault) {
            return;
        }
        if cx.settings.logged.pooler_errors && self.login_phase(key).is_some() {
            log_client!(info, self, cx, key, "login refused: {fault}");
        }
        let mut out = std::mem::take(&mut self.staging);
        if let Some(client) = self.clients.get_mut(key)
            && let Phase::Login(phase) = &mut client.phase
        {
            phase.accept.refuse(&fault, &mut out);
        }
        self.send_client(cx, key, &out);
        self.recycle(out);
        self.cells.wing.logins_failed.inc();
        self.count_fault(fault.kind);
        if fault.kind != FaultKind::LoginFailed || !self.go_back(cx, key) {
            self.begin_closing(cx, key);
        }
    }

    /// After several wrong passwords the next one is not answered at once. False: this one is, or its time
    /// has come.
    fn refuse_later(&mut self, cx: &mut Cx<'_, N>, key: Key, fault: &Fault) -> bool {
        let now_ms = cx.now_ms();
        let Some(client) = self.clients.get_mut(key) else { return false };
        let from = match client.peer {
            Peer::Tcp(address) => Some(address.ip()),
            Peer::Unix { .. } | Peer::Unknown => None,
        };
        let Phase::Login(phase) = &mut client.phase else { return false };
        if phase.refused.is_some() {
            return false;
        }
        let user = phase.login.as_ref().map_or("", |login| login.user.as_str());
        if let Some(learnt) = &phase.learnt {
            learnt.doubt();
        }
        let wait_ms = self.failures.count(now_ms, from, user);
        if wait_ms == 0 {
            return false;
        }
        phase.busy = true;
        phase.refused = Some((now_ms + wait_ms, Box::new(fault.clone())));
        self.cells.wing.refusals_held.inc();
        self.arm_client(cx, key);
        true
    }

    /// A login on top of a session was refused: the session goes on, if such sessions do.
    pub(super) fn go_back(&mut self, cx: &mut Cx<'_, N>, key: Key) -> bool {
        let Some(client) = self.clients.get_mut(key) else { return false };
        let Some(before) = client.before.take() else { return false };
        let Before { mut front, pool, user } = *before;
        if !front.login_refused() {
            return false;
        }
        // Of the refused login it may have a server, which is clean.
        self.end_lease(cx, key);
        self.leave_login(key);
        let Some(client) = self.clients.get_mut(key) else { return false };
        client.phase = Phase::Session(front);
        client.pool = pool;
        client.user = user;
        client.is.greeted = true;
        self.arm_client(cx, key);
        self.todo.push_back(Order::PumpClient(key));
        true
    }

    /// A client has proved itself: find its pool and greet it. `out` tells it that it has, and goes with the
    /// greeting, in one packet.
    fn logged_in(&mut self, cx: &mut Cx<'_, N>, key: Key, mut out: Vec<u8>) {
        inject::here("logged_in");
        if self.seat_at_console(cx, key, &mut out) {
            return self.recycle(out);
        }
        let Some(client) = self.clients.get_mut(key) else { return };
        if !std::mem::replace(&mut client.is.proven, true)
            && cx.shared.proven.fetch_add(1, Relaxed) >= cx.most_clients().0
        {
            // Others have proved themselves meanwhile.
            self.recycle(out);
            self.refuse(cx, key, FaultKind::TooManyClients.into());
            return;
        }
        let Phase::Login(phase) = std::mem::replace(&mut client.phase, Phase::Closing) else { return };
        let LoginPhase { accept, login, learnt, .. } = *phase;
        let front = accept.into_front();
        let variant = front.pool_variant();
        client.phase = Phase::Session(front);
        let login = login.unwrap_or(Login { user: String::new(), database: None, replication: false });
        match cx.settings.routes.resolve(W::PROTOCOL, &login, learnt, variant) {
            Ok((spec, _)) if cx.shared.console.decrees().is_disabled(&spec.database) => {
                // The words are PgBouncer's.
                let words = format!("database \"{}\" is disabled", spec.database);
                if let Phase::Session(front) = &mut client.phase {
                    front.console_refuse(&words, &mut out);
                }
                self.turn_away(cx, key, &login.user, FaultKind::NoSuchDatabase, &words, out);
            }
            Ok((spec, schema)) => {
                if let Phase::Session(front) = &mut client.phase {
                    front.set_schema(&schema);
                }
                let entry = W::registry(cx.shared).enter(spec);
                Self::heed_orders(cx, &entry);
                if let Phase::Session(front) = &mut client.phase {
                    front.know(&entry.knowledge);
                }
                client.pool = Some(entry.id);
                client.user =
                    if login.user == entry.spec().user { 0 } else { self.names.number(&login.user) };
                self.pool_of(cx, &entry);
                self.refresh(cx, entry.id);
                if cx.settings.logged.connections {
                    log_client!(info, self, cx, key, "login");
                }
                self.greet(cx, key, out);
            }
            Err(fault) => {
                if let Phase::Session(front) = &mut client.phase {
                    front.fatal(&fault, &mut out);
                }
                self.turn_away(cx, key, &login.user, fault.kind, &fault, out);
            }
        }
    }

    /// A client has proved itself, and there is no database for it. `out` tells it so.
    fn turn_away(
        &mut self,
        cx: &mut Cx<'_, N>,
        key: Key,
        user: &str,
        kind: FaultKind,
        words: &dyn Display,
        out: Vec<u8>,
    ) {
        self.cells.wing.logins_failed.inc();
        if cx.settings.logged.pooler_errors
            && let Some(client) = self.clients.get_mut(key)
        {
            client.user = self.names.number(user);
            log_client!(info, self, cx, key, "login refused: {words}");
        }
        self.count_fault(kind);
        self.send_client(cx, key, &out);
        self.recycle(out);
        if !self.go_back(cx, key) {
            self.begin_closing(cx, key);
        }
    }

    /// Ends the login of a proven client, or puts it into the queue for a server that confirms its
    /// settings.
    fn greet(&mut self, cx: &mut Cx<'_, N>, key: Key, mut out: Vec<u8>) {
        let asks = self.must_ask_account(cx, key);
        let Some(client) = self.clients.get_mut(key) else { return };
        let Some(pool) = client.pool.and_then(|id| self.pools.get(id.0 as usize)?.as_deref()) else {
            return;
        };
        let Phase::Session(front) = &mut client.phase else { return };
        let greeted = !asks && pool.entry.welcomes().greet(front, &mut out);
        if greeted {
            self.cells.login_duration.record_ns(cx.now_ns().saturating_sub(client.request_since_ns));
            self.greeted(cx, key, out);
            self.arm_client(cx, key);
        } else {
            client.is.choosy = front.startup_parameters().is_some();
            let wants = self.books().want(key, Want::Welcome);
            self.sound(wants);
            self.send_client(cx, key, &out);
            self.recycle(out);
            self.acquire_or_wait(cx, key);
            self.try_for_login(cx, key);
        }
    }

    /// The login is through, which `out` tells the client.
    pub(super) fn greeted(&mut self, cx: &mut Cx<'_, N>, key: Key, out: Vec<u8>) {
        self.cells.wing.logins_ok.inc();
        self.leave_login(key);
        self.send_client(cx, key, &out);
        self.recycle(out);
        if let Some(client) = self.clients.get_mut(key) {
            client.greeted();
        }
    }

    /// Whether its account is what it was has not been asked for long. Where no server is to be had at once,
    /// its first request will ask.
    fn must_ask_account(&self, cx: &Cx<'_, N>, key: Key) -> bool {
        let pool = self.clients.get(key).and_then(|client| client.pool);
        let Some(pool) = pool.and_then(|id| self.pools.get(id.0 as usize)?.as_deref()) else { return false };
        W::ASKS_ACCOUNTS
            && is_due::<W, N>(cx, &pool.entry.knowledge)
            && (pool.idle_len() > 0 || pool.entry.shared.has_room())
    }
}

/// What the login of the client with this key starts from.
pub(super) fn accept_params<W: Wing, N: Net>(cx: &Cx<'_, N>, key: Key, peer: &Peer) -> AcceptParams {
    AcceptParams {
        id: ClientId::new(cx.number(key), key.generation()),
        nonce: cx.nonce(),
        unix: matches!(peer, Peer::Unix { .. }),
        tls: cx.settings.tls.offer,
        secured: None,
        greeting: cx.shared.greetings.current(),
        default_method: cx.settings.routes.default_method(W::PROTOCOL),
        compression: cx.settings.routes.compresses(),
        rsa: cx.shared.rsa.clone(),
    }
}
