//! Handles one connection: connect, login, bytes, the end.

use super::conn::Stage;
use super::{BACKLOG_PAUSE_NS, CONNECT_TRIES, RETRY_PAUSE_NS, Worker};
use crate::client::{Piece, Protocol, Refusal, connect_params, io_code};
use crate::clock;
use crate::record::Phase;
use crate::workloads::Shape;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_net::{Event, Net, Target, Token};
use weir_session::Connect as _;
use weir_session::login::ConnectStep;

/// What became of the bytes at hand.
pub(super) enum Flow {
    /// So many are dealt with; look at the rest.
    Used(usize),
    /// More must come.
    Wait,
    /// The connection is closed.
    Gone,
}

impl<P: Protocol> Worker<P> {
    // ---- the beginning ----

    /// Starts a connection.
    pub(super) fn open(&mut self, i: usize) {
        if !matches!(self.conns[i].stage, Stage::Absent) {
            return;
        }
        let client = self.conns[i].client;
        let server = client as usize % self.shared.plan.servers.len().max(1);
        let Some(url) = self.shared.plan.servers.get(server) else { return };
        let source = self.shared.sources.get(server).and_then(|sources| sources.of(client));
        let made = match source {
            Some(source) => self.kernel.connect_from(&url.target, source),
            None => self.kernel.connect(&url.target),
        };
        let unix = matches!(url.target, Target::Unix(_));
        let now = clock::now_ns();
        let conn = &mut self.conns[i];
        conn.generation = conn.generation.wrapping_add(1);
        conn.since_ns = now;
        let token = Token(u64::from(conn.generation & 0x7fff_ffff) << 32 | i as u64);
        let registered = made.and_then(|socket| {
            let outcome = self.kernel.register(&socket, token);
            outcome.map(|()| socket)
        });
        match registered {
            Ok(socket) => {
                self.conns[i].socket = Some(socket);
                self.move_to(i, Stage::Connecting);
                if unix {
                    // A Unix connect is over at once and its first event may have come before.
                    self.finish_connect(i);
                }
            }
            Err(error) if unix && error.kind() == io::ErrorKind::WouldBlock => {
                self.soon.push_back((now + BACKLOG_PAUSE_NS, i));
            }
            Err(error) => self.lose_io(i, Phase::Connect, &error),
        }
    }

    /// Something happened on a socket.
    pub(super) fn handle_event(&mut self, event: Event) {
        if event.token == Token::MAIL {
            return;
        }
        let (i, generation) = ((event.token.0 & 0xffff_ffff) as usize, (event.token.0 >> 32) as u32);
        match self.conns.get(i) {
            Some(conn) if conn.generation & 0x7fff_ffff == generation && conn.socket.is_some() => {}
            Some(_) | None => return,
        }
        if matches!(self.conns[i].stage, Stage::Connecting) && !self.finish_connect(i) {
            return;
        }
        if event.writable && !self.conns[i].output.is_empty() && !self.flush(i) {
            return;
        }
        if event.readable || event.hangup {
            self.read(i, event.read_closed || event.hangup);
        }
    }

    /// Looks how the connect ended. True: connected.
    fn finish_connect(&mut self, i: usize) -> bool {
        let Some(socket) = &self.conns[i].socket else { return false };
        match self.kernel.connect_outcome(socket) {
            Ok(false) => false,
            Err(error) => {
                self.lose_io(i, Phase::Connect, &error);
                false
            }
            Ok(true) => {
                let now = clock::now_ns();
                self.totals.connect.record(now - self.conns[i].since_ns);
                self.conns[i].since_ns = now;
                let server = self.conns[i].client as usize % self.shared.plan.servers.len().max(1);
                let Some(url) = self.shared.plan.servers.get(server) else { return false };
                let wish = url.wishes().first().copied().unwrap_or_default();
                let mut login = Box::new(P::login(connect_params(url, wish, rand::random())));
                if url.tls.as_ref().is_some_and(|tls| tls.direct) {
                    return self.begin_tls(i, login, now);
                }
                self.out.clear();
                login.start(&mut self.out);
                self.move_to(i, Stage::LoggingIn(login));
                self.send(i)
            }
        }
    }

    // ---- bytes ----

    /// Sends what is in `out`. False: the connection is closed.
    pub(super) fn send(&mut self, i: usize) -> bool {
        if let Err(error) = self.seal(i) {
            self.lose(i, self.phase(i), "tls", &error.to_string());
            return false;
        }
        self.send_sealed(i)
    }

    /// The same for what is encrypted already, or goes in clear.
    pub(super) fn send_sealed(&mut self, i: usize) -> bool {
        let conn = &mut self.conns[i];
        let Some(socket) = &conn.socket else { return false };
        if self.out.is_empty() {
            return true;
        }
        if !conn.output.is_empty() {
            conn.output.extend_from_slice(&self.out);
            return true;
        }
        match self.kernel.send(socket, &self.out) {
            Ok(n) => {
                conn.output.extend_from_slice(self.out.get(n..).unwrap_or_default());
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                conn.output.extend_from_slice(&self.out);
                true
            }
            Err(error) => {
                self.lose_io(i, self.phase(i), &error);
                false
            }
        }
    }

    /// Sends what the socket had no room for. False: the connection is closed.
    fn flush(&mut self, i: usize) -> bool {
        let conn = &mut self.conns[i];
        let Some(socket) = &conn.socket else { return false };
        match self.kernel.send(socket, &conn.output) {
            Ok(n) if n >= conn.output.len() => {
                conn.output = Vec::new();
                true
            }
            Ok(n) => {
                conn.output.drain(..n);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
            Err(error) => {
                self.lose_io(i, self.phase(i), &error);
                false
            }
        }
    }

    /// Reads until nothing is left.
    fn read(&mut self, i: usize, to_the_end: bool) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let generation = self.conns[i].generation;
        while let Some(socket) = &self.conns[i].socket {
            match self.kernel.recv(socket, &mut scratch) {
                Ok(0) => {
                    self.handle_end(i);
                    break;
                }
                Ok(n) => {
                    self.take(i, &mut scratch[..n]);
                    // A new connection of the same client must not be read here: it has no event yet.
                    let gone = self.conns[i].generation != generation;
                    if gone || (n < scratch.len() && !to_the_end) {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) if matches!(self.conns[i].stage, Stage::Leaving) => {
                    self.left(i);
                    break;
                }
                Err(error) => {
                    self.lose_io(i, self.phase(i), &error);
                    break;
                }
            }
        }
        self.scratch = scratch;
    }

    pub(super) fn handle_end(&mut self, i: usize) {
        match &self.conns[i].stage {
            Stage::Leaving => self.left(i),
            Stage::Securing(..) => self.lose(i, Phase::Tls, "closed", "the server closed in the handshake"),
            Stage::LoggingIn(login) => {
                let refusal = P::refusal(login);
                match refusal {
                    Some(refusal) => self.lose(i, Phase::Login, &refusal.code, &refusal.text),
                    None => self.lose(i, Phase::Login, "closed", "the server closed during the login"),
                }
            }
            Stage::Greeting(_) => self.lose(i, Phase::Login, "closed", "the server closed behind the login"),
            Stage::Idle => self.lose(i, Phase::Query, "closed", "the server closed an idle connection"),
            Stage::Busy => self.lose(i, Phase::Query, "closed", "the server closed with a reply owed"),
            Stage::Connecting | Stage::Absent => {
                self.lose(i, Phase::Connect, "closed", "the server closed");
            }
        }
    }

    pub(super) fn handle_bytes(&mut self, i: usize, bytes: &[u8]) {
        let mut held = std::mem::take(&mut self.conns[i].input);
        let generation = self.conns[i].generation;
        let was_held = !held.is_empty();
        if was_held {
            held.extend_from_slice(bytes);
        }
        let data = if was_held { &held[..] } else { bytes };
        let mut at = 0;
        loop {
            let rest = data.get(at..).unwrap_or_default();
            let flow = match self.conns[i].stage {
                Stage::LoggingIn(_) => self.advance_login(i, rest),
                Stage::Greeting(n) => self.advance_greeting(i, n, rest),
                Stage::Idle | Stage::Busy => self.advance_reply(i, rest),
                // Whatever comes after a goodbye is not read.
                Stage::Leaving => Flow::Used(rest.len().max(1)),
                Stage::Absent | Stage::Connecting | Stage::Securing(..) => Flow::Gone,
            };
            match flow {
                Flow::Used(n) => at += n,
                Flow::Wait => break,
                Flow::Gone => return,
            }
            if self.conns[i].generation != generation {
                return;
            }
            if at >= data.len() && !matches!(self.conns[i].stage, Stage::LoggingIn(_)) {
                return;
            }
        }
        if at < data.len() {
            self.conns[i].input = if was_held {
                held.drain(..at);
                held
            } else {
                data.get(at..).unwrap_or_default().to_vec()
            };
        }
    }

    // ---- login ----

    fn advance_login(&mut self, i: usize, bytes: &[u8]) -> Flow {
        let Stage::LoggingIn(login) = &mut self.conns[i].stage else { return Flow::Wait };
        self.out.clear();
        let mut outcome = login.handle_input(bytes, &mut self.out);
        let used = outcome.as_ref().map_or(0, |(n, _)| *n);
        // Slow work is done here: a load generator has nobody to keep waiting, and keys are derived once.
        while let Ok((_, ConnectStep::Work(job))) = outcome {
            outcome = login.handle_job(job.run(), &mut self.out).map(|step| (0, step));
        }
        match outcome {
            Err(fault) => {
                let refusal = P::refusal(login).unwrap_or_else(|| Refusal {
                    code: fault.kind.label().to_owned(),
                    text: fault.to_string(),
                    fatal: true,
                });
                self.lose(i, Phase::Login, &refusal.code, &refusal.text);
                Flow::Gone
            }
            Ok((_, step)) => {
                if !self.send(i) {
                    return Flow::Gone;
                }
                match step {
                    ConnectStep::LoggedIn => {
                        self.logged_in(i);
                        Flow::Used(used)
                    }
                    ConnectStep::Tls => self.tls_asked(i, bytes.len() > used),
                    ConnectStep::More | ConnectStep::Work(_) if used == 0 => Flow::Wait,
                    ConnectStep::More | ConnectStep::Work(_) => Flow::Used(used),
                }
            }
        }
    }

    fn logged_in(&mut self, i: usize) {
        let now = clock::now_ns();
        self.totals.login.record(now - self.conns[i].since_ns);
        let stage = std::mem::replace(&mut self.conns[i].stage, Stage::Connecting);
        if let Stage::LoggingIn(login) = stage {
            self.conns[i].session = P::into_session(*login);
        }
        self.greet(i, 0);
    }

    /// Sends statement `n` of those that each connection begins with; without it the client is ready.
    fn greet(&mut self, i: usize, n: u8) {
        let shared = Arc::clone(&self.shared);
        let mut texts = shared.plan.workload.greeting().iter().chain(&shared.plan.on_connect);
        let Some(text) = texts.nth(usize::from(n)) else { return self.ready(i) };
        let text = text.replace(":client_id", &self.conns[i].client.to_string());
        self.out.clear();
        P::begin_text(&mut self.conns[i].session, text.as_bytes(), &mut self.out);
        self.conns[i].since_ns = clock::now_ns();
        self.move_to(i, Stage::Greeting(n));
        self.send(i);
    }

    fn advance_greeting(&mut self, i: usize, n: u8, bytes: &[u8]) -> Flow {
        match P::next(&mut self.conns[i].session, bytes) {
            Piece::Incomplete => Flow::Wait,
            Piece::Pass(used) | Piece::First(used, _) | Piece::Row(used, _) | Piece::Again(used) => {
                Flow::Used(used)
            }
            Piece::Refused(_, refusal) => {
                self.lose(i, Phase::Login, &refusal.code, &refusal.text);
                Flow::Gone
            }
            Piece::Done(used) => {
                self.greet(i, n.saturating_add(1));
                if self.conns[i].socket.is_some() { Flow::Used(used) } else { Flow::Gone }
            }
            Piece::Broken(why) => {
                self.lose(i, Phase::Login, "protocol", why);
                Flow::Gone
            }
        }
    }

    fn ready(&mut self, i: usize) {
        let now = clock::now_ns();
        self.conns[i].since_ns = now;
        self.move_to(i, Stage::Idle);
        let shape = self.shape(i);
        if self.started && shape != Shape::Connects && self.conns[i].was_connected {
            self.totals.reconnects += 1;
            self.tick.reconnects += 1;
        }
        self.conns[i].was_connected = true;
        if !self.started || self.ended {
            return;
        }
        match shape {
            Shape::Connects => {
                self.send_query(i);
            }
            Shape::Queries => self.begin_next(i, now),
            Shape::Silent => {}
        }
    }

    // ---- the end ----

    /// Says goodbye and waits for the server to close: so the server's side of the address pair is the one
    /// that lingers, and our ports are free again.
    pub(super) fn leave(&mut self, i: usize, now: u64) {
        self.out.clear();
        P::quit(&mut self.out);
        self.conns[i].since_ns = now;
        self.move_to(i, Stage::Leaving);
        if self.seal_goodbye(i).is_err() {
            return self.left(i);
        }
        let Some(socket) = &self.conns[i].socket else { return };
        // If it cannot be sent the server has closed, and that is read next.
        let _ = self.kernel.send(socket, &self.out);
    }

    /// A client without patience leaves in the middle of a query, without a word, and is back at once.
    pub(super) fn give_up_waiting(&mut self, i: usize, now: u64) {
        let text = "the reply took longer than --patience";
        self.totals.ignored.record(Phase::Query, "patience", text);
        self.tick.ignored += 1;
        self.shared.control.event_over(self.shared.plan.events);
        self.close(i);
        self.soon.push_back((now, i));
    }

    /// The connection of a finished event is closed.
    pub(super) fn left(&mut self, i: usize) {
        self.close(i);
        self.begin_next(i, clock::now_ns());
    }

    fn close(&mut self, i: usize) {
        let conn = &mut self.conns[i];
        (conn.input, conn.output, conn.heard) = (Vec::new(), Vec::new(), Vec::new());
        conn.tls = None;
        (conn.rolling_back, conn.again) = (false, false);
        conn.session = P::Session::default();
        if let Some(socket) = conn.socket.take() {
            self.kernel.close(socket, false);
        }
        self.move_to(i, Stage::Absent);
    }

    pub(super) fn phase(&self, i: usize) -> Phase {
        match self.conns[i].stage {
            Stage::Absent | Stage::Connecting => Phase::Connect,
            Stage::Securing(..) => Phase::Tls,
            Stage::LoggingIn(_) | Stage::Greeting(_) => Phase::Login,
            Stage::Idle | Stage::Busy | Stage::Leaving => Phase::Query,
        }
    }

    fn lose_io(&mut self, i: usize, phase: Phase, error: &io::Error) {
        self.lose(i, phase, &io_code(error), &error.to_string());
    }

    /// Counts an error, closes the connection, and tries again later.
    pub(super) fn lose(&mut self, i: usize, phase: Phase, code: &str, text: &str) {
        if !self.ended || matches!(self.conns[i].stage, Stage::Busy) {
            self.totals.errors.record(phase, code, text);
            self.tick.errors += 1;
        }
        if matches!(self.conns[i].stage, Stage::Busy) {
            self.shared.control.event_over(self.shared.plan.events);
        }
        self.close(i);
        let conn = &mut self.conns[i];
        if !conn.was_connected && !self.started {
            conn.tries += 1;
            if conn.tries >= CONNECT_TRIES {
                self.totals.given_up += 1;
                self.shared.control.given_up.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        self.retries.push_back((clock::now_ns() + RETRY_PAUSE_NS, i));
    }
}
