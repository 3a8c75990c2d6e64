//! A session of the model database: an engine behind a connection, with time and faults.

use super::engine::Engine;
use super::wire::{
    Ending, command, flag, packet, put, put_command, put_err, status, take, take_string, take_text, take_u32,
};
use crate::actor::{Order, Outbox, Stage};
use crate::network::{EndId, Read};
use weir_auth::caching_sha2::{Fast, verify_fast};
use weir_auth::native;
use weir_session::AuthMethod;
use weir_session::Protocol;

/// Bytes of unsent reply at which the session stops working, as a blocked thread does.
const BLOCKED_BYTES: usize = 32 * 1024;

/// The payload of a wish for TLS (MySQL, Protocol::SSLRequest).
const SSL_REQUEST_BYTES: usize = 32;

/// What the model database can.
pub const CAPABILITIES: u32 = flag::LONG_PASSWORD
    | flag::FOUND_ROWS
    | flag::CONNECT_WITH_DB
    | flag::PROTOCOL_41
    | flag::TRANSACTIONS
    | flag::SECURE_CONNECTION
    | flag::MULTI_STATEMENTS
    | flag::MULTI_RESULTS
    | flag::PLUGIN_AUTH
    | flag::CONNECT_ATTRS
    | flag::PLUGIN_AUTH_LENENC
    | flag::SESSION_TRACK
    | flag::DEPRECATE_EOF;

/// A session.
pub struct MySession {
    /// Its connection.
    pub end: EndId,
    /// Which database it belongs to.
    pub database: u32,
    /// Its number.
    pub id: u32,
    /// The session proper, once logged in.
    pub engine: Option<Engine>,
    /// It is over.
    pub over: bool,
    input: Vec<u8>,
    outbox: Outbox,
    scramble: [u8; 20],
}

impl MySession {
    /// A connection has arrived: the server speaks first.
    pub fn new(end: EndId, database: u32, id: u32, stage: &mut Stage<'_>) -> Self {
        let scramble = scramble(stage);
        let mut session = MySession {
            end,
            database,
            id,
            engine: None,
            over: false,
            input: Vec::new(),
            outbox: Outbox::default(),
            scramble,
        };
        let capabilities = CAPABILITIES | if stage.plan.secure.offered { flag::SSL } else { 0 };
        session.greet(plugin(stage), capabilities);
        stage.wake_at(stage.now_ns);
        session
    }

    fn greet(&mut self, plugin: &str, capabilities: u32) {
        let [a, b, c, d] = capabilities.to_le_bytes();
        let payload = [
            &b"\x0a8.0.0-model\0"[..],
            &self.id.to_le_bytes(),
            &self.scramble[..8],
            &[0, a, b, 45, status::AUTOCOMMIT as u8, 0, c, d, 21],
            &[0; 10],
            &self.scramble[8..],
            &[0],
            plugin.as_bytes(),
            &[0],
        ];
        put(self.outbox.tail(), 0, &payload.concat());
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
                    let Some(bytes) = self.outbox.open_or_complain(bytes, stage) else {
                        return self.close(stage, true);
                    };
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
                return self.close(stage, false);
            }
            self.work(stage);
        }
        self.work(stage);
        // A thread that works on something notices later that nobody is there.
        let busy = self.engine.as_ref().is_some_and(|engine| engine.busy_until_ns().is_some());
        let over = self.engine.as_ref().is_some_and(|engine| engine.over);
        if over || (gone && !busy) {
            self.close(stage, false);
        }
    }

    /// A thread that works or cannot write does not read.
    fn is_blocked(&self) -> bool {
        let busy = self.engine.as_ref().is_some_and(|engine| engine.busy_until_ns().is_some());
        let unread = self.engine.as_ref().map_or(0, Engine::unread);
        self.outbox.len() > BLOCKED_BYTES || (busy && unread > BLOCKED_BYTES)
    }

    fn work(&mut self, stage: &mut Stage<'_>) {
        let (database, id) = (self.database, self.id);
        if let Some(engine) = &mut self.engine {
            if self.outbox.len() <= BLOCKED_BYTES {
                engine.pace_ns = stage.dice.below(stage.plan.pace_ns);
                engine.work(stage.now_ns);
            }
            self.outbox.tail().append(&mut engine.output);
            for entry in engine.committed.drain(..) {
                *stage.oracle.committed.entry(entry).or_insert(0) += 1;
            }
            for tag in engine.begun.drain(..) {
                stage.say(|| format!("database {database} session {id}: runs {tag}"));
            }
            for target in engine.kills.drain(..) {
                stage.orders.push(Order::KillQuery(target));
            }
            for proof in engine.proofs.drain(..) {
                if !native::verify(Some(&stage.plan.secrets[1]), &self.scramble, &proof) {
                    stage.oracle.broken(|| "Weir gave a wrong password on top of a session".into());
                }
            }
            if let Some(problem) = engine.problem.take() {
                stage.oracle.broken(|| format!("session {id}: {problem}"));
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
            let id = self.id;
            stage.say(|| format!("session {id}: ends"));
            stage.net().close(self.end, abort);
        }
    }

    /// A fault ends it: broken, closed, or told so first.
    pub fn die(&mut self, stage: &mut Stage<'_>) {
        if self.over {
            return;
        }
        let at_rest = self.engine.as_ref().is_some_and(Engine::is_at_rest) && self.outbox.is_empty();
        match stage.dice.below(3) {
            0 => self.close(stage, true),
            2 if at_rest => {
                let text = "The client was disconnected by the server because of inactivity.";
                put_err(self.outbox.tail(), 0, 4031, "HY000", text);
                let _ = self.outbox.write(stage, self.end);
                self.close(stage, false);
            }
            _ => self.close(stage, false),
        }
    }

    /// It answers its next COM_PING with an error.
    pub fn fail_ping(&mut self) {
        if let Some(engine) = &mut self.engine {
            engine.fails_ping = true;
        }
    }

    /// KILL QUERY from another session.
    pub fn cancel(&mut self, stage: &mut Stage<'_>) {
        let Some(engine) = &mut self.engine else { return };
        let running = engine.running_tag().map(str::to_owned);
        let hit = engine.cancel(stage.now_ns);
        let id = self.id;
        stage.say(|| format!("session {id}: KILL QUERY hits {running:?} ({hit})"));
        self.work(stage);
    }

    // Login.

    /// False when the connection is over.
    fn login(&mut self, stage: &mut Stage<'_>) -> bool {
        let input = std::mem::take(&mut self.input);
        let Some((_, payload, total)) = packet(&input) else {
            self.input = input;
            return true;
        };
        if payload.len() == SSL_REQUEST_BYTES {
            let Ok(stream) = stage.plan.secure.acceptor(Protocol::Mysql).accept() else { return false };
            self.outbox.secure(stream);
            // Nobody waits for an answer to the wish.
            match self.outbox.open(input[total..].to_vec()) {
                Ok(plain) => self.input = plain,
                Err(text) => stage.oracle.broken(|| text),
            }
            return true;
        }
        let proof_seq = if self.outbox.is_secure() { 3 } else { 2 };
        let Some((user, answer, schema, capabilities)) = response(payload) else {
            stage.oracle.broken(|| "a malformed handshake response".into());
            return false;
        };
        let secret = Some(&*stage.plan.secrets[1]);
        let (right, mut seq) = match plugin(stage) {
            "caching_sha2_password" => {
                let right = matches!(verify_fast(secret, &self.scramble, answer), Fast::Right);
                (right, put(self.outbox.tail(), proof_seq, &[1, 3]))
            }
            _ => (native::verify(secret, &self.scramble, answer), proof_seq),
        };
        if !right || !user.starts_with("user") {
            stage.oracle.broken(|| format!("Weir gave a wrong password for {user:?}"));
            return false;
        }
        let ending = Ending { status: status::AUTOCOMMIT, ..Ending::default() };
        seq = ending.put(self.outbox.tail(), seq, 0, capabilities);
        debug_assert!(seq > 2);
        let mut engine = Engine::new(self.id, capabilities, schema, self.scramble, false);
        engine.feed(input.get(total..).unwrap_or_default());
        self.engine = Some(engine);
        true
    }
}

/// Random bytes, none of them NUL.
fn scramble(stage: &mut Stage<'_>) -> [u8; 20] {
    std::array::from_fn(|_| stage.dice.between(1, 120) as u8)
}

/// The method that the database begins with.
fn plugin(stage: &Stage<'_>) -> &'static str {
    match stage.plan.server_auth {
        AuthMethod::Trust | AuthMethod::Plain => "caching_sha2_password",
        _ => "mysql_native_password",
    }
}

/// User, answer, schema and capabilities of a handshake response.
fn response(payload: &[u8]) -> Option<(String, &[u8], Option<String>, u32)> {
    let mut rest = payload;
    let capabilities = take_u32(&mut rest)?;
    take(&mut rest, 28)?;
    let user = String::from_utf8_lossy(take_text(&mut rest)?).into_owned();
    let answer = take_string(&mut rest)?;
    let named = capabilities & flag::CONNECT_WITH_DB != 0;
    let schema = if named { Some(String::from_utf8_lossy(take_text(&mut rest)?).into_owned()) } else { None };
    Some((user, answer, schema.filter(|name| !name.is_empty()), capabilities))
}

/// What a client says last.
pub fn put_quit(out: &mut Vec<u8>) {
    put_command(out, command::QUIT, &[]);
}
