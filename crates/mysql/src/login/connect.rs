//! Weir logs in to a server: mysql_native_password, caching_sha2_password (fast; full by RSA, or in cleartext
//! on a safe path), sha256_password (likewise), AuthSwitch; one more round trip sets up the session.
//!
//! Owns: the order of the packets, the server's capabilities, the initial state of the session. Must not
//! know: sockets, clocks, clients, pools.
//!
//! Invariants: a password is sent only as [`Credentials`] allow; anything else the server asks for is
//! refused.
//!
//! The set-up consists of a `SET` of the three trackers that Weir relies on, and a `SELECT` of every setting
//! that Weir can move with a client, so that each can be restored to its initial value. Both are sent in one
//! write. If a server refuses the first, it is used without trackers (changes that only they report become
//! pins); if it refuses the second, without moving settings.

use super::again::Again;
use super::credentials::{Credentials, Method, refuse};
use super::{FAST_OK, FULL_NEEDED, KEY_REQUEST, MORE_DATA};
use crate::back::Back;
use crate::frame::{self, Header};
use crate::message::greeting::Greeting;
use crate::message::ok::{self, OkPacket};
use crate::message::response::{HandshakeResponse, put_ssl_request};
use crate::message::{Capabilities, Command, lenenc, status};
use crate::session_state::{AtLogin, Base, Flavour, LOGIN_COLLATION, Slot, base_query, setup_query};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use weir_auth::{Job, JobDone};
use weir_session::Connect as _;
use weir_session::login::{Changes, ConnectParams, ConnectStep, Secured, ServerGreeting, TlsWish};
use weir_wire::{Fault, FaultKind, Reader, limits};

/// Longest packet Weir takes: what a server may have set at most.
const MAX_PACKET_BYTES: u32 = 0x4000_0000;

/// What the login waits for.
enum State {
    ExpectGreeting,
    /// The TLS handshake is under way; then the login that answers this greeting goes out.
    ExpectSecured {
        method: Method,
        scramble: Vec<u8>,
    },
    /// OK, ERR, a switch, or more data of the method under way.
    ExpectVerdict {
        method: Method,
        scramble: Vec<u8>,
    },
    /// The server's public key.
    ExpectKey {
        scramble: Vec<u8>,
    },
    /// The envelope is being made.
    ExpectJob {
        method: Method,
        scramble: Vec<u8>,
    },
    /// The reply to the SET of trackers.
    ExpectTrackers,
    /// The reply to the SELECT of settings.
    ExpectBase(BaseReply),
    Done,
    Failed,
}

/// How far the SELECT of settings is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BaseReply {
    First,
    Columns(u64),
    Row,
    End,
}

/// What is known of a server after its login.
pub(crate) struct ServerFacts {
    /// How it greets.
    pub greeting: Arc<ServerGreeting>,
    /// Which of the two it is.
    pub flavour: Flavour,
    /// Its connection id.
    pub id: u64,
    /// Capabilities both sides have.
    pub capabilities: Capabilities,
    /// Status flags of the last OK.
    pub status: u16,
    /// The trackers are on.
    pub trackers: bool,
    /// The settings at login, in the order of [`Slot::BASED`]; empty when they could not be read.
    pub base: Base,
    /// `init_connect` says something.
    pub begins_otherwise: bool,
    /// Sessions begin with `session_track_schema` on.
    pub tracks_schema: bool,
    /// The role of the login, as a literal; `None`: servers have no roles.
    pub role: Option<Box<str>>,
    /// As in [`ConnectParams`].
    pub changes: Changes,
    /// What it was when the login began.
    pub born: u64,
}

/// Weir's login to a server.
pub struct Connect {
    params: ConnectParams,
    state: State,
    seq: u8,
    rejection: Option<Vec<u8>>,
    credentials: Credentials,
    /// Method and scramble of the login that went through.
    again: Option<(Method, Vec<u8>)>,
    facts: ServerFacts,
    /// The login ends with the server's OK: no session is set up.
    bare: bool,
    /// The server has TLS.
    offers_tls: bool,
}

impl Connect {
    /// A login that ends with the server's OK, as a driver's does: for a load generator, which carries no
    /// client's settings. Not for [`Connect::into_back`].
    pub fn bare(params: ConnectParams) -> Self {
        Connect { bare: true, ..Connect::new(params) }
    }

    fn handle_packet(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<ConnectStep, Fault> {
        match std::mem::replace(&mut self.state, State::Failed) {
            State::ExpectGreeting => {
                if header.seq != 0 {
                    return Err(malformed("a greeting with a sequence number"));
                }
                self.handle_greeting(payload, out)
            }
            State::ExpectVerdict { method, scramble } => self.handle_verdict(method, scramble, payload, out),
            State::ExpectKey { scramble } => match payload.split_first() {
                Some((&MORE_DATA, pem)) => self.seal(Method::CachingSha2, scramble, pem),
                Some((&ok::ERR, _)) => Err(self.rejected(payload)),
                Some(_) | None => Err(malformed("no public key")),
            },
            State::ExpectTrackers => {
                match payload.first() {
                    Some(&ok::OK) => self.facts.trackers = true,
                    Some(&ok::ERR) => self.facts.trackers = false,
                    Some(_) | None => return Err(malformed("an answer to SET that is neither OK nor ERR")),
                }
                self.state = State::ExpectBase(BaseReply::First);
                Ok(ConnectStep::More)
            }
            State::ExpectBase(at) => self.handle_base(at, payload),
            State::ExpectSecured { .. } | State::ExpectJob { .. } | State::Done | State::Failed => {
                Ok(ConnectStep::More)
            }
        }
    }

    fn handle_greeting(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<ConnectStep, Fault> {
        if payload.first() == Some(&ok::ERR) {
            return Err(self.rejected(payload));
        }
        let greeting = Greeting::read(payload).map_err(|_| malformed("malformed greeting"))?;
        let Some(greeting) = greeting else { return Err(malformed("a greeting older than version 10")) };
        if !greeting.capabilities.has(Capabilities::PROTOCOL_41) {
            return Err(malformed("a server older than 4.1"));
        }
        if !greeting.capabilities.has(Capabilities::DEPRECATE_EOF.or(Capabilities::SESSION_TRACK)) {
            return Err(refuse("the server is older than MySQL 5.7 or MariaDB 10.2"));
        }
        let variant = Capabilities::of_variant(self.params.variant);
        // Its clients were told that they would get it: another server greeted them.
        if variant.without(greeting.capabilities).has(Capabilities::EXTENDED_METADATA) {
            return Err(refuse("the server has no extended metadata, which its clients were promised"));
        }
        let mut wanted = Capabilities::WANTED.or(variant);
        if !self.params.database.is_empty() {
            wanted = wanted.or(Capabilities::CONNECT_WITH_DB);
        }
        self.facts.capabilities = wanted.and(greeting.capabilities);
        self.offers_tls = greeting.capabilities.has(Capabilities::SSL);
        self.facts.greeting = Arc::new(greeting.to_owned());
        self.facts.flavour = Flavour::of(greeting.version);
        self.facts.id = u64::from(greeting.id);
        // An unknown method: answer for the one every server of that kind has, it will switch.
        let method = Method::named(greeting.plugin).filter(|m| *m != Method::Clear).unwrap_or(Method::Native);
        let scramble = greeting.scramble.to_vec();
        if self.params.tls != TlsWish::Off && greeting.capabilities.has(Capabilities::SSL) {
            self.facts.capabilities = self.facts.capabilities.or(Capabilities::SSL);
            let capabilities = self.facts.capabilities;
            self.seq = frame::put(out, self.seq, |out| {
                put_ssl_request(out, capabilities, MAX_PACKET_BYTES, LOGIN_COLLATION);
            });
            self.state = State::ExpectSecured { method, scramble };
            return Ok(ConnectStep::Tls);
        }
        if self.params.tls == TlsWish::Required {
            return Err(Fault::new(FaultKind::ServerTls, "the server does not offer TLS"));
        }
        self.respond(method, scramble, out)?;
        Ok(ConnectStep::More)
    }

    fn respond(&mut self, method: Method, scramble: Vec<u8>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let answer = self.credentials.answer(method, &scramble)?;
        self.put_response(method, &answer, out);
        self.state = State::ExpectVerdict { method, scramble };
        Ok(())
    }

    fn put_response(&mut self, method: Method, answer: &[u8], out: &mut Vec<u8>) {
        let mut attributes = Vec::new();
        for (name, value) in &self.params.parameters {
            lenenc::put_string(&mut attributes, name.as_bytes());
            lenenc::put_string(&mut attributes, value.as_bytes());
        }
        let response = HandshakeResponse {
            capabilities: self.facts.capabilities,
            max_packet_bytes: MAX_PACKET_BYTES,
            collation: LOGIN_COLLATION,
            user: self.params.user.as_bytes(),
            answer,
            database: Some(self.params.database.as_bytes()),
            plugin: Some(method.name()),
            attributes: &attributes,
            zstd_level: 0,
        };
        self.seq = frame::put(out, self.seq, |out| response.write(out));
    }

    fn handle_verdict(
        &mut self,
        method: Method,
        scramble: Vec<u8>,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<ConnectStep, Fault> {
        let mut r = Reader::new(payload);
        match r.u8() {
            Ok(ok::OK) => {
                self.again = Some((method, scramble));
                self.set_up(payload, out)
            }
            Ok(ok::ERR) => Err(self.rejected(payload)),
            Ok(ok::EOF) => self.handle_switch(r.rest(), out),
            Ok(MORE_DATA) if method == Method::CachingSha2 => self.handle_more(scramble, r.rest(), out),
            // Where nobody between reads, no key was asked for.
            Ok(MORE_DATA) if method == Method::Sha256 && !self.credentials.private => {
                self.seal(method, scramble, r.rest())
            }
            Ok(_) | Err(_) => Err(malformed("an answer to the login that is not understood")),
        }
    }

    fn handle_switch(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<ConnectStep, Fault> {
        let (method, scramble, answer) = self.credentials.switch(payload)?;
        self.seq = frame::put(out, self.seq, |out| out.extend_from_slice(&answer));
        self.state = State::ExpectVerdict { method, scramble };
        Ok(ConnectStep::More)
    }

    fn handle_more(
        &mut self,
        scramble: Vec<u8>,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<ConnectStep, Fault> {
        match data {
            [FAST_OK] => self.state = State::ExpectVerdict { method: Method::CachingSha2, scramble },
            [FULL_NEEDED] if self.credentials.private => {
                let password = self.credentials.in_clear()?;
                self.seq = frame::put(out, self.seq, |out| out.extend_from_slice(&password));
                self.state = State::ExpectVerdict { method: Method::CachingSha2, scramble };
            }
            [FULL_NEEDED] => {
                self.credentials.needs_key()?;
                self.seq = frame::put(out, self.seq, |out| out.push(KEY_REQUEST));
                self.state = State::ExpectKey { scramble };
            }
            _ => return Err(malformed("data of caching_sha2_password that is not understood")),
        }
        Ok(ConnectStep::More)
    }

    /// The password goes into an envelope for this key.
    fn seal(&mut self, method: Method, scramble: Vec<u8>, pem: &[u8]) -> Result<ConnectStep, Fault> {
        let masked = self.credentials.masked(&scramble)?;
        let pem = self.credentials.key(pem).into();
        self.state = State::ExpectJob { method, scramble };
        Ok(ConnectStep::Work(Job::RsaEncrypt { pem, masked }))
    }

    fn set_up(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<ConnectStep, Fault> {
        let ok = OkPacket::read(payload, self.facts.capabilities).map_err(|_| malformed("malformed OK"))?;
        self.facts.status = ok.status;
        if self.bare {
            self.state = State::Done;
            return Ok(ConnectStep::LoggedIn);
        }
        for text in [setup_query(), &base_query(self.facts.flavour, self.has_roles())] {
            frame::put(out, 0, |out| {
                out.push(Command::Query as u8);
                out.extend_from_slice(text.as_bytes());
            });
        }
        self.state = State::ExpectTrackers;
        Ok(ConnectStep::More)
    }

    fn handle_base(&mut self, at: BaseReply, payload: &[u8]) -> Result<ConnectStep, Fault> {
        let next = match at {
            BaseReply::First if payload.first() == Some(&ok::ERR) => {
                self.state = State::Done;
                return Ok(ConnectStep::LoggedIn);
            }
            BaseReply::First => {
                let columns = lenenc::number(&mut Reader::new(payload));
                BaseReply::Columns(columns.map_err(|_| malformed("malformed count of columns"))?)
            }
            BaseReply::Columns(_) | BaseReply::Row | BaseReply::End if payload.first() == Some(&ok::ERR) => {
                return Err(self.rejected(payload));
            }
            BaseReply::Columns(n @ 2..) => BaseReply::Columns(n - 1),
            BaseReply::Columns(_) => BaseReply::Row,
            BaseReply::Row => {
                self.read_base(payload)?;
                BaseReply::End
            }
            BaseReply::End => {
                self.state = State::Done;
                return Ok(ConnectStep::LoggedIn);
            }
        };
        self.state = State::ExpectBase(next);
        Ok(ConnectStep::More)
    }

    fn read_base(&mut self, row: &[u8]) -> Result<(), Fault> {
        let mut r = Reader::new(row);
        let mut base = Vec::with_capacity(Slot::BASED.len());
        for slot in Slot::BASED {
            if r.rest().first() == Some(&ok::LOCAL_INFILE) {
                // 0xFB is NULL: this server has no such variable.
                r.take(1).map_err(|_| malformed("malformed row"))?;
                base.push(None);
                continue;
            }
            let value = lenenc::string(&mut r).map_err(|_| malformed("malformed row"))?;
            base.push(slot.literal_of(value));
        }
        self.facts.begins_otherwise = lenenc::string(&mut r).is_ok_and(|says| says == b"1");
        self.facts.tracks_schema = lenenc::string(&mut r).is_ok_and(|says| says == b"1");
        if self.has_roles() {
            let is_none = r.rest().first() == Some(&ok::LOCAL_INFILE);
            let role = if is_none { r.take(1).map(|_| None) } else { lenenc::string(&mut r).map(Some) };
            let role = role.map_err(|_| malformed("malformed row"))?;
            let literal = |hex: &[u8]| format!("X'{}'", String::from_utf8_lossy(hex));
            self.facts.role = Some(role.map_or_else(|| "NULL".to_owned(), literal).into());
        }
        if let Ok(id) = lenenc::string(&mut r) {
            let id = std::str::from_utf8(id).ok().and_then(|text| text.parse().ok());
            self.facts.id = id.unwrap_or(self.facts.id);
        }
        self.facts.base = Arc::new(AtLogin::new(base, self.facts.changes.clone(), self.facts.born));
        Ok(())
    }

    /// MySQL has roles from version 8 on ("Using Roles" of its manual).
    fn has_roles(&self) -> bool {
        let version = &self.facts.greeting.version;
        let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        self.facts.flavour == Flavour::MariaDb || major.is_some_and(|major| major >= 8)
    }

    fn rejected(&mut self, payload: &[u8]) -> Fault {
        self.rejection = Some(payload.to_vec());
        let text = ok::ErrPacket::read(payload)
            .map(|err| format!("{} {}", err.code, String::from_utf8_lossy(err.message)));
        refuse(text.unwrap_or_default())
    }
}

impl weir_session::Connect for Connect {
    type Back = Back;

    fn new(params: ConnectParams) -> Self {
        let credentials = Credentials {
            user: params.user.clone(),
            secret: params.secret.clone(),
            private: params.unix,
            unix: params.unix,
            trust: params.trust.clone(),
        };
        let (changes, born) = (params.changes.clone(), params.changes.load(Relaxed));
        Connect {
            params,
            credentials,
            again: None,
            state: State::ExpectGreeting,
            seq: 0,
            rejection: None,
            facts: ServerFacts {
                greeting: Arc::new(crate::message::greeting::before_any("")),
                flavour: Flavour::MySql,
                id: 0,
                capabilities: Capabilities::default(),
                status: status::AUTOCOMMIT,
                trackers: false,
                base: Base::default(),
                begins_otherwise: false,
                tracks_schema: false,
                role: None,
                changes,
                born,
            },
            bare: false,
            offers_tls: false,
        }
    }

    /// The server speaks first.
    fn start(&mut self, _out: &mut Vec<u8>) {}

    fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, ConnectStep), Fault> {
        match self.state {
            State::ExpectSecured { .. } | State::ExpectJob { .. } | State::Done | State::Failed => {
                return Ok((0, ConnectStep::More));
            }
            State::ExpectGreeting
            | State::ExpectVerdict { .. }
            | State::ExpectKey { .. }
            | State::ExpectTrackers
            | State::ExpectBase(_) => {}
        }
        let found = frame::whole(input, limits::SERVER_GATHER_BYTES, FaultKind::ServerTooLarge)?;
        let Some((header, payload)) = found else { return Ok((0, ConnectStep::More)) };
        self.seq = header.seq.wrapping_add(1);
        let step = self.handle_packet(header, payload, out)?;
        Ok((header.total(), step))
    }

    /// The handshake that [`ConnectStep::Tls`] asked for is done.
    ///
    /// # Errors
    /// As for [`Connect::handle_input`], or none was under way.
    fn handle_secured(&mut self, _: Arc<Secured>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let State::ExpectSecured { method, scramble } = std::mem::replace(&mut self.state, State::Failed)
        else {
            return Err(malformed("no handshake was due"));
        };
        self.credentials.private = true;
        self.respond(method, scramble, out)
    }

    /// The server refused a login in clear, for what may be the transport: an account that needs TLS is
    /// refused as one with a wrong password (1045); so may Weir itself, which says no password in clear.
    fn is_transport_refused(&self) -> bool {
        // ER_ACCESS_DENIED_ERROR, ER_ACCESS_DENIED_NO_PASSWORD_ERROR, ER_SECURE_TRANSPORT_REQUIRED.
        let is_denied = |packet: &Vec<u8>| matches!(packet.get(1..3), Some(code) if [1045u16, 1698, 3159].iter().any(|known| known.to_le_bytes() == code));
        self.params.tls == TlsWish::Off && self.offers_tls && self.rejection.as_ref().is_none_or(is_denied)
    }

    fn handle_job(&mut self, done: JobDone, out: &mut Vec<u8>) -> Result<ConnectStep, Fault> {
        let State::ExpectJob { method, scramble } = std::mem::replace(&mut self.state, State::Failed) else {
            return Err(refuse("no work was asked for"));
        };
        let JobDone::RsaEncrypted(Some(sealed)) = done else {
            return Err(refuse("the server's public key cannot be used"));
        };
        self.seq = frame::put(out, self.seq, |out| out.extend_from_slice(&sealed));
        self.state = State::ExpectVerdict { method, scramble };
        Ok(ConnectStep::More)
    }

    /// The server's own refusal: the payload of its ERR packet.
    fn rejection(&self) -> Option<&[u8]> {
        self.rejection.as_deref()
    }

    fn into_back(self) -> Back {
        let (method, scramble) = self.again.unwrap_or((Method::Native, Vec::new()));
        let again = Again { credentials: self.credentials, method, scramble };
        Back::new(self.facts, again, self.params.database, self.params.max_prepared_statements)
    }
}

fn malformed(text: &'static str) -> Fault {
    Fault::new(FaultKind::ServerProtocol, text)
}
