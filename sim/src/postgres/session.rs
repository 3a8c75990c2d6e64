//! A session of the model database: an engine behind a connection, with time and faults.

use super::engine::Engine;
use super::wire::{message, put, put_complaint, put_text, take_text};
use crate::actor::{Order, Outbox, Stage};
use crate::network::{EndId, Read};
use crate::plan::PASSWORD;
use std::sync::Arc;
use weir_auth::md5;
use weir_auth::scram::{ServerExpectFinal, Verdict};
use weir_session::AuthMethod;
use weir_session::Protocol;

/// Bytes of unsent reply at which the session stops working, as a blocked backend does.
const BLOCKED_BYTES: usize = 32 * 1024;

/// A session.
pub struct PgSession {
    /// Its connection.
    pub end: EndId,
    /// Which database it belongs to.
    pub database: u32,
    /// Its number.
    pub pid: u32,
    /// What a cancel request must show.
    pub secret: [u8; 4],
    /// Who logged in.
    pub user: String,
    /// The session proper, once logged in.
    pub engine: Option<Engine>,
    /// It is over.
    pub over: bool,
    login: LoginState,
    input: Vec<u8>,
    outbox: Outbox,
    salt: [u8; 4],
    startup: Vec<(String, String)>,
    /// What it says right behind its next reply.
    afterthought: Vec<u8>,
}

enum LoginState {
    Startup,
    Password,
    SaslInitial,
    SaslFinal(Box<ServerExpectFinal>),
    Done,
}

impl PgSession {
    /// A connection has arrived.
    pub fn new(end: EndId, database: u32, pid: u32, stage: &mut Stage<'_>) -> Self {
        let mut secret = [0; 4];
        let mut salt = [0; 4];
        stage.dice.fill(&mut secret);
        stage.dice.fill(&mut salt);
        PgSession {
            end,
            database,
            pid,
            secret,
            user: String::new(),
            engine: None,
            over: false,
            login: LoginState::Startup,
            input: Vec::new(),
            outbox: Outbox::default(),
            salt,
            startup: Vec::new(),
            afterthought: Vec::new(),
        }
    }

    /// Takes its turn.
    pub fn turn(&mut self, stage: &mut Stage<'_>) {
        let mut gone = false;
        loop {
            if self.is_blocked() {
                self.work(stage);
                if self.over || self.is_blocked() {
                    break;
                }
            }
            let max = stage.dice.spread(1, 1 << 17) as usize;
            let read = stage.net().peer_read(self.end, max);
            match read {
                Read::Bytes(bytes) => {
                    let Some(bytes) = self.plain(bytes, stage) else { return self.close(stage, true) };
                    match &mut self.engine {
                        Some(engine) => engine.feed(&bytes),
                        None => self.input.extend_from_slice(&bytes),
                    }
                }
                Read::Nothing => break,
                Read::Eof | Read::Reset => {
                    gone = true;
                    break;
                }
            }
            if self.engine.is_none() && !self.login(stage) {
                return;
            }
            self.work(stage);
        }
        self.work(stage);
        // A backend that works on something notices later that nobody is there.
        let busy = self.engine.as_ref().is_some_and(|engine| engine.busy_until_ns().is_some());
        let over = self.engine.as_ref().is_some_and(|engine| engine.over);
        if over || (gone && !busy) {
            self.close(stage, false);
        }
    }

    /// Where TLS comes with the first byte, it begins by itself.
    fn plain(&mut self, bytes: Vec<u8>, stage: &mut Stage<'_>) -> Option<Vec<u8>> {
        let secure = &stage.plan.secure;
        if secure.direct && !self.outbox.is_secure() {
            self.outbox.secure(secure.acceptor(Protocol::Postgres).accept().ok()?);
        }
        self.outbox.open_or_complain(bytes, stage)
    }

    /// A backend that works or cannot write does not read.
    fn is_blocked(&self) -> bool {
        let busy = self.engine.as_ref().is_some_and(|engine| engine.busy_until_ns().is_some());
        let unread = self.engine.as_ref().map_or(0, Engine::unread);
        self.outbox.len() > BLOCKED_BYTES || (busy && unread > BLOCKED_BYTES)
    }

    fn work(&mut self, stage: &mut Stage<'_>) {
        if let Some(engine) = &mut self.engine {
            if self.outbox.len() <= BLOCKED_BYTES {
                engine.pace_ns = stage.dice.below(stage.plan.pace_ns);
                engine.work(stage.now_ns);
            }
            if !engine.output.is_empty() && engine.is_at_rest() {
                engine.output.append(&mut self.afterthought);
            }
            self.outbox.tail().append(&mut engine.output);
            for entry in engine.committed.drain(..) {
                *stage.oracle.committed.entry(entry).or_insert(0) += 1;
            }
            let begun = std::mem::take(&mut engine.begun);
            for tag in begun {
                stage.say(|| format!("database {} session {}: runs {tag}", self.database, self.pid));
            }
            if let Some(problem) = engine.problem.take() {
                let pid = self.pid;
                stage.oracle.broken(|| format!("session {pid}: {problem}"));
            }
            if let Some(at_ns) = engine.busy_until_ns().filter(|&at_ns| at_ns > stage.now_ns) {
                stage.wake_at(at_ns);
            }
        }
        if !self.outbox.write(stage, self.end) {
            self.close(stage, true);
        }
    }

    /// Somebody waits for it, or has left something here.
    pub fn is_at_work(&self) -> bool {
        let engine = self.engine.as_ref().filter(|_| !self.over);
        engine.is_some_and(|it| !it.is_at_rest() || it.state_left().is_some()) || !self.outbox.is_empty()
    }

    /// Whose statement ran here last.
    pub fn client(&self) -> Option<String> {
        self.engine.as_ref()?.client.clone()
    }

    /// Ends it.
    pub fn close(&mut self, stage: &mut Stage<'_>, abort: bool) {
        if !self.over {
            self.over = true;
            let pid = self.pid;
            stage.say(|| format!("session {pid}: ends"));
            stage.net().close(self.end, abort);
        }
    }

    /// A fault ends it: broken, closed, or told so first.
    pub fn die(&mut self, stage: &mut Stage<'_>) {
        if self.over {
            return;
        }
        match stage.dice.below(3) {
            0 => self.close(stage, true),
            1 => self.close(stage, false),
            _ => {
                let text = "terminating connection due to administrator command";
                put_complaint(self.outbox.tail(), b'E', "FATAL", "57P01", text);
                let _ = self.outbox.write(stage, self.end);
                self.close(stage, false);
            }
        }
    }

    /// It says these bytes, whatever they are.
    pub fn say(&mut self, bytes: &[u8], at_once: bool, stage: &mut Stage<'_>) {
        let to = if at_once { self.outbox.tail() } else { &mut self.afterthought };
        to.extend_from_slice(bytes);
        self.work(stage);
    }

    /// It says something of its own accord while nothing runs.
    pub fn mention(&mut self, stage: &mut Stage<'_>) {
        let Some(engine) = &mut self.engine else { return };
        if !engine.is_at_rest() || engine.notify() {
            return;
        }
        let client = engine.client.clone().unwrap_or_default();
        engine.mention(&format!("idle after {client}"));
        self.work(stage);
    }

    /// A cancel request with the right secret.
    pub fn cancel(&mut self, stage: &mut Stage<'_>) {
        let Some(engine) = &mut self.engine else { return };
        let running = engine.running_tag().map(str::to_owned);
        let hit = engine.cancel(stage.now_ns);
        let pid = self.pid;
        stage.say(|| format!("session {pid}: cancel hits {running:?} ({hit})"));
        self.work(stage);
    }

    // Login.

    /// False when the connection is over.
    fn login(&mut self, stage: &mut Stage<'_>) -> bool {
        loop {
            let input = std::mem::take(&mut self.input);
            let used = match self.login {
                LoginState::Startup => self.startup(&input, stage),
                LoginState::Password | LoginState::SaslInitial | LoginState::SaslFinal(_) => {
                    match message(&input) {
                        Some((b'p', body, total)) => {
                            let body = body.to_vec();
                            self.proof(&body, stage).then_some(total)
                        }
                        Some((b'X', ..)) => None,
                        Some((tag, ..)) => {
                            stage.oracle.broken(|| format!("message {:?} in a login", tag as char));
                            None
                        }
                        None => Some(0),
                    }
                }
                LoginState::Done => Some(0),
            };
            let Some(used) = used else {
                self.close(stage, false);
                return false;
            };
            let rest = input.get(used..).unwrap_or_default().to_vec();
            if let Some(engine) = &mut self.engine {
                engine.feed(&rest);
                return true;
            }
            self.input = rest;
            if used == 0 {
                return true;
            }
        }
    }

    /// Reads the first packet; returns the bytes used, `None` when the connection is over.
    fn startup(&mut self, input: &[u8], stage: &mut Stage<'_>) -> Option<usize> {
        let Some(head) = input.first_chunk::<8>() else { return Some(0) };
        let total = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let code = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        let Some(body) = input.get(8..total) else { return Some(0) };
        if code == 80_877_102 {
            let Some(pid) = body.first_chunk::<4>() else {
                stage.oracle.broken(|| "a cancel request without a number".into());
                return None;
            };
            let pid = u32::from_be_bytes(*pid);
            stage.orders.push(Order::CancelPostgres(pid, body[4..].into(), self.end));
            self.over = true;
            return None;
        }
        if code == 80_877_103 {
            if !stage.plan.secure.offered {
                self.outbox.tail().push(b'N');
                return Some(total);
            }
            if input.len() > total {
                stage.oracle.broken(|| "bytes before the handshake".into());
            }
            self.outbox.tail().push(b'S');
            self.outbox.secure(stage.plan.secure.acceptor(Protocol::Postgres).accept().ok()?);
            return Some(total);
        }
        if code != 196_608 {
            stage.oracle.broken(|| format!("a startup packet of version {code}"));
            return None;
        }
        let mut rest = body;
        while let Some(name) = take_text(&mut rest) {
            if name.is_empty() {
                break;
            }
            let Some(value) = take_text(&mut rest) else { break };
            match name {
                "user" => self.user = value.to_owned(),
                "database" => {}
                name => self.startup.push((name.to_owned(), value.to_owned())),
            }
        }
        if self.user.is_empty() {
            stage.oracle.broken(|| "a startup packet without a user".into());
            return None;
        }
        let mut request = Vec::new();
        self.login = match stage.plan.server_auth {
            AuthMethod::Plain => {
                request.extend_from_slice(&3u32.to_be_bytes());
                LoginState::Password
            }
            AuthMethod::Md5 => {
                request.extend_from_slice(&5u32.to_be_bytes());
                request.extend_from_slice(&self.salt);
                LoginState::Password
            }
            AuthMethod::ScramSha256 => {
                request.extend_from_slice(&10u32.to_be_bytes());
                put_text(&mut request, "SCRAM-SHA-256");
                request.push(0);
                LoginState::SaslInitial
            }
            AuthMethod::Trust
            | AuthMethod::Cert
            | AuthMethod::Peer
            | AuthMethod::Ldap
            | AuthMethod::Pam
            | AuthMethod::Native
            | AuthMethod::CachingSha2
            | AuthMethod::LikeServer => {
                self.logged_in();
                return Some(total);
            }
        };
        put(self.outbox.tail(), b'R', &request);
        Some(total)
    }

    fn proof(&mut self, body: &[u8], stage: &mut Stage<'_>) -> bool {
        let secret = Arc::clone(&stage.plan.secrets[1]);
        let text = body.strip_suffix(&[0]).unwrap_or(body);
        match std::mem::replace(&mut self.login, LoginState::Done) {
            LoginState::Password => {
                let right = match stage.plan.server_auth {
                    AuthMethod::Md5 => md5::verify(&self.user, Some(&secret), self.salt, text),
                    _ => text == PASSWORD.as_bytes(),
                };
                self.proven(right, stage)
            }
            LoginState::SaslInitial => {
                let mut rest = body;
                let mechanism = take_text(&mut rest).unwrap_or_default();
                let mut nonce = [0; 32];
                stage.dice.fill(&mut nonce);
                let begun = rest.get(4..).map(|first| {
                    ServerExpectFinal::begin(
                        &self.user,
                        Some(Arc::clone(&stage.plan.secrets[1])),
                        &nonce,
                        first,
                        weir_auth::scram::ServerBinding::NotOffered,
                    )
                });
                let Some(Ok((state, first))) = begun else {
                    stage.oracle.broken(|| format!("a bad first message of {mechanism}"));
                    return false;
                };
                let mut request = 11u32.to_be_bytes().to_vec();
                request.extend_from_slice(&first);
                put(self.outbox.tail(), b'R', &request);
                self.login = LoginState::SaslFinal(Box::new(state));
                true
            }
            LoginState::SaslFinal(state) => {
                let verdict = match state.verify(body) {
                    Ok(Verdict::Work(job)) => {
                        job.run();
                        state.verify(body)
                    }
                    verdict => verdict,
                };
                let Ok(Verdict::Verified(last)) = verdict else { return self.proven(false, stage) };
                let mut request = 12u32.to_be_bytes().to_vec();
                request.extend_from_slice(&last);
                put(self.outbox.tail(), b'R', &request);
                self.proven(true, stage)
            }
            LoginState::Startup | LoginState::Done => false,
        }
    }

    fn proven(&mut self, right: bool, stage: &mut Stage<'_>) -> bool {
        if right {
            self.logged_in();
        } else {
            stage.oracle.broken(|| "Weir gave a wrong password".into());
        }
        right
    }

    fn logged_in(&mut self) {
        let engine = Engine::new(&self.startup, false);
        let out = self.outbox.tail();
        put(out, b'R', &0u32.to_be_bytes());
        out.extend_from_slice(&engine.greeting());
        let mut key = self.pid.to_be_bytes().to_vec();
        key.extend_from_slice(&self.secret);
        put(out, b'K', &key);
        put(out, b'Z', b"I");
        self.engine = Some(engine);
        self.login = LoginState::Done;
    }
}
