//! Cancel and KILL: end what one client runs, and nothing else.
//!
//! A cancel is sent to a server only while that client's request is at the head of its queue, and the server
//! does not change hands until the cancel's own connection is closed. When the request ends by itself, a
//! cancel that has not been sent yet is dropped; behind one that has been sent, the client's next request
//! waits: a late cancel never hits a later request. A request that is still waiting simply leaves the queue.
//! Where the server first does something of Weir's for the request, as bringing the client's settings, the
//! cancel waits until it has done so: a program that asks once must not wait for ever. It does not wait for
//! what the server tells together with the request's own answer (a BEGIN in front of it), nor for a lock.

use super::who::log_client;
use super::{Hall, Order};
use crate::books::Want;
use crate::client::Phase;
use crate::context::{Cx, Ticket};
use crate::crypto::Work;
use crate::dial::{self, Dial, Progress};
use crate::ids::{FIRST_CLIENT_NUMBER, Key, Kind, Tag, worker_of};
use crate::line::Line;
use crate::mail::{Kill, Listed, Warrant, WingMail};
use crate::panics::inject;
use crate::server::{AGAIN_MS, Server, ServerPhase, ServerState};
use crate::stream::{Heard, Stream};
use crate::wing::{Back, Front, Wing};
use weir_auth::JobDone;
use weir_net::{Event, Net};
use weir_session::login::{CancelPlan, ConnectParams, KillOutcome, TlsWish};
use weir_wire::{Fault, FaultKind};

/// Who is to be told what became of a kill: its worker and key.
type Asker = Option<(usize, Key)>;

/// A cancel has this long to reach the server.
const CANCEL_MS: u64 = 10_000;

/// A connection that carries a cancel request to a server.
pub struct Canceller<W: Wing, S> {
    stream: Stream<S>,
    dial: Dial<W>,
    /// The server that must not change hands until this is over.
    server: Key,
    asker: Asker,
    plan: CancelPlan,
    /// The login before it is over, if it needs one.
    logged_in: bool,
    /// The cancel itself is on its way: it can no longer be taken back.
    sent: bool,
}

impl<W: Wing, S> Canceller<W, S> {
    /// It is given up; returns who asked for it.
    pub(super) fn close<N: Net<Socket = S>>(self, cx: &mut Cx<'_, N>) -> Option<(usize, Key)> {
        self.stream.line.close(cx.net, true);
        self.asker
    }

    /// Its login has come to this. Goes as far as it can. `None`: it is over, because the server closed
    /// (PostgreSQL), has answered (MySQL), or failed.
    fn go_on<N: Net<Socket = S>>(
        &mut self,
        net: &mut N,
        buf: &mut [u8],
        mut progress: Progress,
    ) -> Option<Progress> {
        self.stream.flush(net).1.ok()?;
        if !self.logged_in && matches!(progress, Progress::Waits) {
            progress = self.dial.go_on(net, &mut self.stream, buf).ok()?;
        }
        let (CancelPlan::Raw(bytes) | CancelPlan::AfterLogin(bytes)) = &self.plan;
        if matches!(progress, Progress::LoggedIn) {
            self.stream.output.append(bytes);
            self.logged_in = true;
        }
        // Inside TLS the login machine says the request itself, where no login goes before it.
        self.sent |= self.logged_in || self.dial.is_secured() && matches!(self.plan, CancelPlan::Raw(_));
        self.stream.flush(net).1.ok()?;
        while self.logged_in && self.stream.line.readable {
            match (self.stream.hear(net, buf), &self.plan) {
                // Any answer, good or bad, ends it.
                (Heard::Bytes(_), CancelPlan::AfterLogin(_)) | (Heard::End | Heard::Failed(_), _) => {
                    return None;
                }
                // The server says nothing to a cancel request; whatever it says is not for us.
                (Heard::Bytes(_) | Heard::Again, _) => {}
                (Heard::Nothing, _) => break,
            }
        }
        Some(progress)
    }
}

impl<W: Wing, N: Net> Hall<W, N> {
    /// Brings a kill to the worker of its target.
    pub(super) fn send_kill(&mut self, cx: &mut Cx<'_, N>, kill: Kill) {
        if kill.listed.is_some() {
            return self.kill_listed(cx, kill);
        }
        let worker = worker_of(kill.number);
        if worker == cx.worker {
            self.kill(cx, kill);
        } else if cx.shared.berths.is_open(worker) {
            cx.post::<W>(worker, WingMail::Kill(kill));
        } else {
            self.answer_kill(cx, kill.asker, KillOutcome::NoSuchThread);
        }
    }

    pub(super) fn answer_kill(&mut self, cx: &mut Cx<'_, N>, asker: impl Into<Asker>, outcome: KillOutcome) {
        match asker.into() {
            Some((worker, asker)) if worker == cx.worker => self.kill_done(cx, asker, outcome),
            Some((worker, asker)) => cx.post::<W>(worker, WingMail::KillDone { asker, outcome }),
            None => {}
        }
    }

    /// The target is the number of a connection to the database: looks for it among the servers of all
    /// workers, one after the other. Twice: a server may be on its way from one to another.
    fn kill_listed(&mut self, cx: &mut Cx<'_, N>, mut kill: Kill) {
        let Some(listed) = &mut kill.listed else { return };
        let is_it = |server: &Server<W, N::Socket>| {
            let number = match &server.phase {
                ServerPhase::Live(back) => back.connection_number(),
                ServerPhase::Login { .. } => None,
            };
            number == Some(u64::from(kill.number)) && listed.targets.contains(&server.target)
        };
        let found = self.servers.iter().find(|(_, server)| is_it(server)).map(|(key, _)| key);
        if let Some(key) = found {
            return self.kill_on(cx, key, kill);
        }
        listed.visited += 1;
        let next = cx.shared.berths.behind(cx.worker);
        if listed.visited < 2 * cx.shared.berths.open().count() && next != cx.worker {
            return cx.post::<W>(next, WingMail::Kill(kill));
        }
        // By mail in any case: the asker's bytes are being looked at, and its request is about to be put back
        // among them.
        let (worker, asker) = kill.asker;
        cx.post::<W>(worker, WingMail::KillDone { asker, outcome: KillOutcome::NotOurs });
    }

    /// The target is this server. Meant is whoever had it when the asker saw its number: whoever has come to
    /// it since is never hit. Where that cannot be told, what was there has ended, as far as the asker could
    /// know.
    fn kill_on(&mut self, cx: &mut Cx<'_, N>, key: Key, kill: Kill) {
        let seen_ms = kill.listed.as_ref().map_or(0, |listed| listed.since_ms);
        let Some(server) = self.servers.get_mut(key) else { return };
        let (state, since_ms, head_since_ms) =
            (server.state(), server.since_ms, server.head_since_ns / 1_000_000);
        let head = server.back().and_then(|back| back.head()).and_then(Key::from_raw);
        let holder = match state {
            ServerState::Leased(client) if since_ms < seen_ms || kill.asker == (cx.worker, client) => {
                Some(client)
            }
            ServerState::Shared if head_since_ms < seen_ms => head,
            ServerState::Leased(_)
            | ServerState::Shared
            | ServerState::Idle
            | ServerState::Cleaning
            | ServerState::Login => None,
        };
        match holder {
            Some(client) => self.kill_client(cx, client, kill),
            // The request has ended.
            None if kill.query_only => self.answer_kill(cx, kill.asker, KillOutcome::Killed),
            None => {
                let idle = state == ServerState::Idle;
                if idle {
                    self.close_server(cx, key, "it was killed by its number");
                }
                let outcome = if idle { KillOutcome::Killed } else { KillOutcome::NoSuchThread };
                self.answer_kill(cx, kill.asker, outcome);
            }
        }
    }

    /// Ends a client of this worker, or what it runs, if the asker may.
    pub(super) fn kill(&mut self, cx: &mut Cx<'_, N>, kill: Kill) {
        inject::here("kill");
        if kill.listed.is_some() {
            return self.kill_listed(cx, kill);
        }
        let Some(key) = self.clients.key_of(cx.shared.numbers.slot(kill.number)) else {
            self.cells.wing.cancels_unknown.inc();
            return self.answer_kill(cx, kill.asker, KillOutcome::NoSuchThread);
        };
        self.kill_client(cx, key, kill);
    }

    fn kill_client(&mut self, cx: &mut Cx<'_, N>, key: Key, kill: Kill) {
        let target = self.clients.get_mut(key).and_then(|client| Some((client.pool, client.front()?)));
        let target = target.filter(|(_, front)| kill.listed.is_some() || front.id() == kill.number);
        let Some((id, front)) = target else {
            return self.answer_kill(cx, kill.asker, KillOutcome::NoSuchThread);
        };
        let user = id.and_then(|id| Some(self.pools.get(id.0 as usize)?.as_deref()?.spec.user.as_str()));
        let may = match &kill.warrant {
            Warrant::Secret(secret) => front.is_cancel_secret(secret),
            Warrant::User(asker) => user == Some(asker),
        };
        if !may {
            self.cells.wing.cancels_unknown.inc();
            return self.answer_kill(cx, kill.asker, KillOutcome::Denied);
        }
        if kill.query_only {
            self.cancel_request(cx, key, Some(kill.asker));
        } else {
            // The asker may be the target.
            self.answer_kill(cx, kill.asker, KillOutcome::Killed);
            self.stop_what_runs(cx, key);
            self.end_client(cx, key, FaultKind::Killed.into());
        }
    }

    /// Ends what a client runs, or drops it where it still waits.
    fn cancel_request(&mut self, cx: &mut Cx<'_, N>, key: Key, asker: Asker) {
        if let Some(seat) = self.consoles.get(&key) {
            seat.cancel();
        } else if self.clients.get(key).is_some_and(|client| client.claim.is_in_line())
            || self.take_back_one(key)
        {
            self.cells.wing.cancels_dequeued.inc();
            self.reject_waiting(cx, key);
        } else {
            self.seclude_with(cx, key);
            let server = self.clients.get(key).filter(|client| client.inflight > 0);
            match server.and_then(|client| client.lease()) {
                Some(server) => return self.cancel_when_due(cx, server, key, asker),
                // Nothing runs: as on the database, nothing happens.
                None => self.cells.wing.cancels_idle.inc(),
            }
        }
        self.answer_kill(cx, asker, KillOutcome::Killed);
    }

    /// A client will be ended: what it runs would hold a server for nobody, and might commit what its client
    /// is told is over.
    pub(super) fn stop_what_runs(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        self.seclude_with(cx, key);
        let lease = self.clients.get(key).and_then(|client| client.lease());
        if let Some((server, held)) = lease.and_then(|key| Some((key, self.servers.get_mut(key)?))) {
            held.cleaning.again_ms = AGAIN_MS;
            if self.is_cancellable(server) {
                self.cancel_server(cx, server, None);
            }
        }
    }

    /// Cancels what a server does for a client, once it is at that and at nothing of Weir's.
    pub(super) fn cancel_when_due(&mut self, cx: &mut Cx<'_, N>, at: Key, client: Key, asker: Asker) {
        let now_ms = cx.now_ms();
        if self.servers.get_mut(at).is_some_and(|held| held.is_cancel_due(client, now_ms)) {
            return self.cancel_server(cx, at, asker);
        }
        self.arm_server(cx, at);
        self.answer_kill(cx, asker, KillOutcome::Killed);
    }

    /// The request at the start of a client's input will not run. Where the rest of it is still to come and
    /// could not be told from a new request, its client ends.
    fn reject_waiting(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        self.part(key, true);
        let want = self.books().forget(key);
        let mut out = std::mem::take(&mut self.staging);
        let Some(client) = self.clients.get_mut(key) else { return };
        let mut input = std::mem::take(&mut client.stream.input);
        let mut rejected = false;
        if let (&Some(Want::Request { len, whole, .. }), Some(front)) = (&want, client.front())
            && (whole || front.rejects_parts())
        {
            let len = (len as usize).min(input.len());
            front.reject(&FaultKind::Cancelled.into(), &input.as_slice()[..len], &mut out);
            input.consume(len);
            rejected = true;
        }
        client.stream.input = input;
        self.send_client(cx, key, &out);
        self.recycle(out);
        if rejected {
            self.todo.push_back(Order::PumpClient(key));
        } else if want.is_some() {
            self.end_client(cx, key, FaultKind::Cancelled.into());
        }
    }

    fn log_cancel(&self, cx: &Cx<'_, N>, server: Key, what: &str) {
        match self.servers.get(server).map(|server| server.state()) {
            Some(ServerState::Leased(client)) => {
                log_client!(warn, self, cx, client, "a cancel request for this client {what}");
            }
            _ => tracing::warn!(protocol = W::PROTOCOL.name(), "a cancel request {what}"),
        }
    }

    /// Starts a connection that cancels what runs at a server's head. One at a time for a server.
    pub(super) fn cancel_server(&mut self, cx: &mut Cx<'_, N>, server: Key, asker: Asker) {
        let answer = |hall: &mut Self, cx: &mut Cx<'_, N>| hall.answer_kill(cx, asker, KillOutcome::Killed);
        let held = self.servers.get_mut(server).filter(|held| !held.post.is_held());
        let Some(Server { phase: ServerPhase::Live(back), pool: id, target, stream, .. }) = held else {
            return answer(self, cx);
        };
        let (id, target, plan, is_tls) = (*id, target.clone(), back.cancel_plan(), stream.line.is_tls());
        let unix = matches!(target, weir_net::Target::Unix(_));
        let key = self.cancellers.next_key();
        let tag = Tag { kind: Kind::Canceller, protocol: W::PROTOCOL, key };
        let socket = match dial::open(cx.net, &target, tag.token()) {
            Ok(socket) => socket,
            Err(error) => {
                self.log_cancel(cx, server, &format!("could not be sent: {target}: {error}"));
                return answer(self, cx);
            }
        };
        // As safe as the connection it is about: its secret is not to be read by others, either.
        let tls = self.pool(id).and_then(|pool| pool.spec.tls.clone()).filter(|_| is_tls);
        let wish = if tls.is_some() { TlsWish::Required } else { TlsWish::Off };
        let dial = match (&plan, self.connect_params(cx, id, unix, wish, Vec::new())) {
            (CancelPlan::Raw(_), _) if tls.is_none() => Dial::bare(target, None),
            (CancelPlan::Raw(bytes), Some(params)) => {
                Dial::new(target, tls, ConnectParams { cancel: Some(bytes.clone()), ..params }, false)
            }
            (CancelPlan::AfterLogin(_), Some(params)) => Dial::new(target, tls, params, false),
            (_, None) => return answer(self, cx),
        };
        self.books().hold_for_cancel(server);
        let stream = Stream::new(Line::new(socket));
        let (logged_in, sent) = (false, false);
        self.cancellers.insert(Canceller { stream, dial, server, asker, plan, logged_in, sent });
        self.cells.wing.cancels_sent.inc();
        cx.wheel.insert(cx.now_ms() + CANCEL_MS, tag.pack());
    }

    /// Something happened on a cancel's connection.
    pub(super) fn canceller_event(&mut self, cx: &mut Cx<'_, N>, key: Key, event: Event) {
        let Some(canceller) = self.cancellers.get_mut(key) else { return };
        canceller.stream.line.hup |= event.read_closed || event.hangup;
        canceller.stream.line.readable |= event.readable || event.read_closed || event.hangup;
        if event.writable || event.hangup {
            match canceller.dial.begin(cx.net, &mut canceller.stream) {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => return self.canceller_over(cx, key),
            }
        }
        self.canceller_came_to(cx, key, Ok(Progress::Waits));
    }

    fn canceller_came_to(&mut self, cx: &mut Cx<'_, N>, key: Key, progress: Result<Progress, Fault>) {
        let Some(canceller) = self.cancellers.get_mut(key) else { return };
        match progress.ok().and_then(|progress| canceller.go_on(cx.net, cx.scratch, progress)) {
            Some(Progress::Waits | Progress::LoggedIn) => {}
            Some(Progress::Work(job)) => {
                let ticket = Ticket { worker: cx.worker, protocol: W::PROTOCOL, kind: Kind::Canceller, key };
                let _ = (cx.shared.submit)(ticket, Work::Login(job));
            }
            None => self.canceller_over(cx, key),
        }
    }

    /// What a cancel was to end has ended by itself: one that is not on its way yet would hit what comes
    /// next.
    pub(super) fn cancels_too_late(&mut self, cx: &mut Cx<'_, N>, server: Key) {
        let late = self.cancellers.iter().find(|(_, it)| it.server == server && !it.sent).map(|(key, _)| key);
        if let Some(key) = late {
            self.canceller_over(cx, key);
        }
    }

    /// Slow work for a cancel's login is done.
    pub(super) fn canceller_job_done(&mut self, cx: &mut Cx<'_, N>, key: Key, done: JobDone) {
        let Some(canceller) = self.cancellers.get_mut(key) else { return };
        let progress = canceller.dial.job_done(cx.net, &mut canceller.stream, done);
        self.canceller_came_to(cx, key, progress);
    }

    /// A cancel that did not get through in time is given up.
    pub(super) fn canceller_timer(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        if let Some(server) = self.cancellers.get(key).map(|canceller| canceller.server) {
            self.log_cancel(cx, server, "was not answered in time");
            self.canceller_over(cx, key);
        }
    }

    pub(super) fn canceller_over(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(canceller) = self.cancellers.remove(key) else { return };
        canceller.stream.line.close(cx.net, false);
        self.books().cancel_over(canceller.server);
        if let Some(ServerState::Leased(client)) = self.servers.get(canceller.server).map(Server::state) {
            // Its next request had to wait for this.
            self.todo.push_back(Order::PumpClient(client));
        }
        self.settle_later(canceller.server);
        self.answer_kill(cx, canceller.asker, KillOutcome::Killed);
    }
}

impl<W: Wing, N: Net> Hall<W, N> {
    /// What became of a kill that one of this worker's clients asked for.
    pub(super) fn kill_done(&mut self, cx: &mut Cx<'_, N>, asker: Key, outcome: KillOutcome) {
        let Some(client) = self.clients.get_mut(asker) else { return };
        let mut out = std::mem::take(&mut self.staging);
        match &mut client.phase {
            // A cancel request's connection: PostgreSQL answers it by closing.
            Phase::Login(_) => {
                self.recycle(out);
                self.close_client(cx, asker, None);
            }
            Phase::Session(front) => {
                let next = match outcome {
                    // The database itself is asked.
                    KillOutcome::NotOurs => front.pass_on(),
                    _ => front.killed(outcome, &mut out),
                };
                if !next.is_empty() {
                    // It comes before anything that its client has sent behind it.
                    let behind = std::mem::take(&mut client.stream.input);
                    client.stream.input.append(&next);
                    client.stream.input.append(behind.as_slice());
                }
                client.inflight = client.inflight.saturating_sub(1);
                client.active_ms = cx.net.now_ns() / 1_000_000;
                let ended = client.is.eof && client.inflight == 0;
                self.send_client(cx, asker, &out);
                self.recycle(out);
                self.arm_client(cx, asker);
                // One that has said its last and has its answer is not looked at again by anybody else.
                let next = if ended { Order::CloseClient(asker) } else { Order::PumpClient(asker) };
                self.todo.push_back(next);
            }
            Phase::Closing => self.recycle(out),
        }
    }

    /// What a client asks for by KILL.
    pub(super) fn kill_of(
        &mut self,
        cx: &Cx<'_, N>,
        key: Key,
        number: u32,
        query_only: bool,
    ) -> Option<Kill> {
        let client = self.clients.get_mut(key)?;
        let pool = client.pool.and_then(|id| self.pools.get(id.0 as usize)?.as_deref())?;
        let listed = (number < FIRST_CLIENT_NUMBER).then(|| Listed {
            targets: pool.spec.targets.clone(),
            since_ms: client.listed_ms,
            visited: 0,
        });
        let warrant = Warrant::User(pool.spec.user.as_str().into());
        Some(Kill { number, warrant, query_only, asker: (cx.worker, key), listed })
    }
}
