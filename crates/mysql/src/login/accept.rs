//! A client logs in to Weir: greeting, handshake response, AuthSwitch, mysql_native_password,
//! caching_sha2_password (fast, full by RSA, full in cleartext inside TLS or on a Unix socket),
//! mysql_clear_password inside TLS or on a Unix socket.
//!
//! Owns: the order of the packets, the sequence number, the client's capabilities. Must not know: users (the
//! proxy looks them up), sockets, clocks.
//!
//! Invariants: an unknown user takes the same path as a wrong password and gets the same text; the final OK
//! is sent not here but with the welcome (see `welcome.rs`), so that an unknown schema or charset is refused
//! within the login, as a server does.
//!
//! A MariaDB client that has no other reason to trust the certificate is told, behind the answer to
//! mysql_native_password, what only somebody can make who knows its password (`native::vouch`).
//!
//! TLS begins after a response that is cut to 32 bytes with the SSL flag; the complete response follows
//! inside. What a client sent in cleartext before TLS is not read again.

use super::{CACHING_SHA2, CLEAR, FAST_OK, FULL_NEEDED, FromLogin, KEY_REQUEST, MORE_DATA, NATIVE};
use crate::error;
use crate::frame;
use crate::front::{FoundLeft, Front};
use crate::message::greeting::{Greeting, SCRAMBLE_BYTES};
use crate::message::response::{
    ChangeUser, HandshakeResponse, SSL_REQUEST_BYTES, put_auth_switch, read_capabilities,
};
use crate::message::{Capabilities, status};
use crate::packing::Algorithm;
use crate::session_state::encoding_numbered;
use std::sync::Arc;
use weir_auth::caching_sha2::{self, Fast};
use weir_auth::{Job, JobDone, Secret, native};
use weir_session::Front as _;
use weir_session::login::{AcceptParams, AcceptStep, Admission, Secured, TlsOffer};
use weir_session::{AuthMethod, Login};
use weir_sql::Encoding;
use weir_wire::{Fault, FaultKind, limits};
use zeroize::Zeroizing;

/// What the login waits for.
enum State {
    /// The client's handshake response.
    ExpectResponse,
    /// The TLS handshake is under way.
    ExpectSecured,
    /// The proxy's word about the user.
    ExpectLookup { plugin: Option<Vec<u8>>, answer: Vec<u8> },
    /// The answer to an AuthSwitchRequest.
    ExpectSwitched(Admission),
    /// caching_sha2_password: the password or the request for the key.
    ExpectFull(Option<Arc<Secret>>),
    /// caching_sha2_password: the envelope.
    ExpectSealed(Option<Arc<Secret>>),
    /// The envelope is being opened.
    ExpectJob(Option<Arc<Secret>>),
    /// Through.
    Done,
    /// Refused, or an error.
    Failed,
}

/// A client's login.
pub struct Accept {
    params: AcceptParams,
    scramble: [u8; SCRAMBLE_BYTES],
    /// Sequence number of our next packet.
    seq: u8,
    capabilities: Capabilities,
    collation: u16,
    user: String,
    database: Option<Arc<str>>,
    with_password: bool,
    /// Several statements in one text are allowed, if that is not as the capabilities say.
    multi_statements: Option<bool>,
    /// What FOUND_ROWS() gives: a login on top of a session leaves it.
    found_rows: Option<FoundLeft>,
    /// What the client's bytes are packed by behind its OK, or already.
    packs: Option<Algorithm>,
    is_packed: bool,
    /// Told with the final OK.
    vouch: Option<Box<str>>,
    /// The answer that came with the name of a method was made for another scramble.
    stale: bool,
    state: State,
}

/// The name of a schema, which a server reads in the character set of the login: what its letters are is
/// known in UTF-8 only.
///
/// # Errors
/// `NotAllowed` for one beyond ASCII in any other.
fn schema_named(name: &[u8], collation: u16) -> Result<String, Fault> {
    let is_read = name.is_ascii() || encoding_numbered(collation) == Encoding::Utf8;
    match std::str::from_utf8(name) {
        Ok(name) if is_read => Ok(name.to_owned()),
        _ => {
            let text = "a database name beyond ASCII in another character set than UTF-8";
            Err(Fault::new(FaultKind::NotAllowed, text))
        }
    }
}

impl Accept {
    fn offered(&self) -> Capabilities {
        let offered = Capabilities::OFFERED.and(Capabilities(self.params.greeting.capabilities));
        let packing = Capabilities::COMPRESS.or(Capabilities::ZSTD_COMPRESSION);
        let offered = if self.params.compression { offered } else { offered.without(packing) };
        if self.params.tls == TlsOffer::Off { offered } else { offered.or(Capabilities::SSL) }
    }

    /// What is said here can be read by the client only.
    fn is_safe(&self) -> bool {
        self.params.unix || self.params.secured.is_some()
    }

    fn handle_response(&mut self, payload: &[u8]) -> Result<AcceptStep, Fault> {
        let malformed = |_| Fault::new(FaultKind::ClientProtocol, "malformed handshake response");
        let said = read_capabilities(payload).map_err(malformed)?;
        if !said.has(Capabilities::PROTOCOL_41) {
            return Err(Fault::new(FaultKind::ClientProtocol, "a client older than 4.1"));
        }
        if said.has(Capabilities::SSL) && self.params.secured.is_none() {
            if self.params.tls == TlsOffer::Off {
                return Err(Fault::new(FaultKind::ClientProtocol, "TLS was not offered"));
            }
            if payload.len() != SSL_REQUEST_BYTES {
                return Err(Fault::new(
                    FaultKind::ClientProtocol,
                    "a login in clear in place of an SSLRequest",
                ));
            }
            self.state = State::ExpectSecured;
            return Ok(AcceptStep::Tls);
        }
        if self.params.tls == TlsOffer::Required && !self.is_safe() {
            return Err(FaultKind::TlsRequired.into());
        }
        let response = HandshakeResponse::read(payload).map_err(malformed)?;
        self.capabilities = response.capabilities.and(self.offered()).without(Capabilities::SSL);
        self.packs = algorithm_of(self.capabilities, response.zstd_level);
        self.collation = u16::from(response.collation);
        self.user = String::from_utf8_lossy(response.user).into_owned();
        let database = response.database.map(|name| schema_named(name, self.collation)).transpose()?;
        self.database = database.as_deref().map(Arc::from);
        self.with_password = !response.answer.is_empty();
        self.state = State::ExpectLookup {
            plugin: response.plugin.map(<[u8]>::to_vec),
            answer: response.answer.to_vec(),
        };
        Ok(AcceptStep::Lookup(Login { user: self.user.clone(), database, replication: false }))
    }

    /// The client has named a method that is none of Weir's: it could not load the greeting's and goes on
    /// with a stand-in, which answers an OK by an empty packet (`dummy_fallback_auth` of MariaDB's connector,
    /// whose threads find no method while another thread loads it). Servers ask such a client for another
    /// method, and it goes on with that.
    fn has_stand_in(&self, plugin: Option<&[u8]>) -> bool {
        let known = |name: &[u8]| name.is_empty() || [NATIVE, CACHING_SHA2, CLEAR].contains(&name);
        self.capabilities.has(Capabilities::PLUGIN_AUTH) && plugin.is_some_and(|name| !known(name))
    }

    fn switch(&mut self, method: &[u8], admission: Admission, out: &mut Vec<u8>) -> AcceptStep {
        let scramble = self.scramble;
        self.seq = frame::put(out, self.seq, |out| put_auth_switch(out, method, &scramble));
        self.state = State::ExpectSwitched(admission);
        AcceptStep::More
    }

    /// Checks an answer that was made for the admission's method.
    fn check(&mut self, admission: Admission, answer: &[u8], out: &mut Vec<u8>) -> Result<AcceptStep, Fault> {
        let secret = admission.secret;
        let right = match admission.method {
            AuthMethod::Trust => true,
            AuthMethod::Native => {
                let right = native::verify(secret.as_deref(), &self.scramble, answer);
                self.vouch = secret.as_deref().filter(|_| right).and_then(|secret| self.vouch(secret));
                right
            }
            AuthMethod::Plain => {
                let password = answer.strip_suffix(&[0]).unwrap_or(answer);
                caching_sha2::verify_full(secret.as_deref(), password)
            }
            AuthMethod::Peer => secret.is_some(),
            // Methods of PostgreSQL.
            AuthMethod::Cert | AuthMethod::Ldap | AuthMethod::Pam => false,
            AuthMethod::CachingSha2 | AuthMethod::LikeServer | AuthMethod::Md5 | AuthMethod::ScramSha256 => {
                // An empty password is answered by nothing or by its NUL.
                let answer = if answer == [0] { &[] } else { answer };
                match caching_sha2::verify_fast(secret.as_deref(), &self.scramble, answer) {
                    Fast::Right if answer.is_empty() => true,
                    Fast::Right => {
                        self.seq =
                            frame::put(out, self.seq, |out| out.extend_from_slice(&[MORE_DATA, FAST_OK]));
                        true
                    }
                    Fast::Wrong => false,
                    Fast::NeedsFull => {
                        self.seq =
                            frame::put(out, self.seq, |out| out.extend_from_slice(&[MORE_DATA, FULL_NEEDED]));
                        self.state = State::ExpectFull(secret);
                        return Ok(AcceptStep::More);
                    }
                }
            }
        };
        self.verdict(right)
    }

    /// For the certificate of this connection.
    fn vouch(&self, secret: &Secret) -> Option<Box<str>> {
        let fingerprint = self.params.secured.as_deref()?.fingerprint.as_deref()?;
        let told = native::vouch(secret, &self.scramble, fingerprint).filter(|_| self.is_mariadb())?;
        Some(told.into())
    }

    /// The database's servers are MariaDB's.
    fn is_mariadb(&self) -> bool {
        self.params.greeting.version.contains("MariaDB")
    }

    /// The one of the greeting.
    fn greeted_method(&self) -> &'static [u8] {
        plugin_of(self.resolve(self.params.default_method, None))
    }

    /// The method that is asked for, of a client that has answered by `plugin`.
    fn resolve(&self, method: AuthMethod, plugin: Option<&[u8]>) -> AuthMethod {
        match method {
            // MySQL's clients no longer have the other one.
            AuthMethod::LikeServer if self.is_mariadb() && plugin != Some(CACHING_SHA2) => AuthMethod::Native,
            AuthMethod::LikeServer => AuthMethod::CachingSha2,
            method => method,
        }
    }

    fn handle_full(
        &mut self,
        secret: Option<Arc<Secret>>,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<AcceptStep, Fault> {
        if payload == [KEY_REQUEST] && !self.is_safe() {
            let Some(key) = &self.params.rsa else {
                return Err(Fault::new(FaultKind::LoginFailed, "there is no RSA key to send"));
            };
            self.seq = frame::put(out, self.seq, |out| {
                out.push(MORE_DATA);
                out.extend_from_slice(key.public_pem().as_bytes());
            });
            self.state = State::ExpectSealed(secret);
            return Ok(AcceptStep::More);
        }
        match payload.strip_suffix(&[0]) {
            Some(password) if self.is_safe() => {
                let right = caching_sha2::verify_full(secret.as_deref(), password);
                self.verdict(right)
            }
            // The client has the key already, by an option of its own or from an earlier login.
            Some(_) | None => self.handle_sealed(secret, payload),
        }
    }

    fn handle_sealed(&mut self, secret: Option<Arc<Secret>>, payload: &[u8]) -> Result<AcceptStep, Fault> {
        let Some(key) = self.params.rsa.clone() else {
            return Err(Fault::new(FaultKind::LoginFailed, "there is no RSA key to open the password with"));
        };
        self.state = State::ExpectJob(secret);
        Ok(AcceptStep::Work(Job::RsaDecrypt { key, sealed: payload.into() }))
    }

    fn verdict(&mut self, right: bool) -> Result<AcceptStep, Fault> {
        if right {
            return Ok(self.logged_in());
        }
        // For the operator's log.
        Err(Fault::new(FaultKind::LoginFailed, "wrong password, or no such user"))
    }

    fn logged_in(&mut self) -> AcceptStep {
        self.state = State::Done;
        AcceptStep::LoggedIn
    }
}

impl weir_session::Accept for Accept {
    type Front = Front;

    fn new(params: AcceptParams) -> Self {
        let scramble = scramble_of(&params.nonce);
        Accept {
            params,
            scramble,
            seq: 0,
            capabilities: Capabilities::default(),
            collation: 0,
            user: String::new(),
            database: None,
            with_password: false,
            multi_statements: None,
            found_rows: None,
            packs: None,
            is_packed: false,
            vouch: None,
            stale: false,
            state: State::ExpectResponse,
        }
    }

    /// A login on top of a session: `request` is the COM_CHANGE_USER that began it.
    ///
    /// As MySQL does, Weir asks for an answer to a fresh scramble; only a client that cannot be asked answers
    /// to that of its greeting.
    ///
    /// # Errors
    /// `ClientProtocol` for a request that is none.
    fn again(params: AcceptParams, front: &Front, request: &[u8]) -> Result<(Accept, AcceptStep), Fault> {
        let malformed = |_| Fault::new(FaultKind::ClientProtocol, "malformed COM_CHANGE_USER");
        let change = ChangeUser::read(request.get(frame::HEADER_BYTES + 1..).unwrap_or_default());
        let change = change.map_err(malformed)?;
        let mut accept = Accept::new(params);
        accept.seq = 1;
        accept.capabilities = front.capabilities;
        accept.collation = change.collation.unwrap_or(front.login_collation());
        accept.multi_statements = Some(front.state.multi_statements);
        accept.found_rows = Some(front.found_rows_left());
        accept.user = String::from_utf8_lossy(change.user).into_owned();
        accept.with_password = !change.answer.is_empty();
        accept.stale = true;
        accept.packs = front.login.as_deref().and_then(|login| login.packs);
        accept.is_packed = accept.packs.is_some();
        if let Some(scramble) = front.login.as_deref().and_then(|login| login.scramble) {
            accept.scramble = scramble;
            accept.stale = false;
        }
        let database = schema_named(change.database, accept.collation)?;
        let database = (!database.is_empty()).then_some(database);
        accept.database = database.as_deref().map(Arc::from);
        accept.state = State::ExpectLookup { plugin: None, answer: change.answer.to_vec() };
        let login = Login { user: accept.user.clone(), database, replication: false };
        Ok((accept, AcceptStep::Lookup(login)))
    }

    /// Appends the greeting.
    fn start(&mut self, out: &mut Vec<u8>) {
        let greeting = Greeting {
            version: self.params.greeting.version.as_bytes(),
            id: self.params.id.number(),
            scramble: self.scramble,
            capabilities: self.offered(),
            collation: self.params.greeting.collation,
            status: status::AUTOCOMMIT,
            plugin: self.greeted_method(),
        };
        self.seq = frame::put(out, 0, |out| greeting.write(out));
    }

    /// The handshake that [`AcceptStep::Tls`] asked for is done.
    ///
    /// # Errors
    /// None was under way.
    fn handle_secured(&mut self, secured: Arc<Secured>) -> Result<(), Fault> {
        let State::ExpectSecured = self.state else {
            return Err(Fault::new(FaultKind::ClientProtocol, "no handshake was due"));
        };
        self.params.secured = Some(secured);
        self.state = State::ExpectResponse;
        Ok(())
    }

    fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, AcceptStep), Fault> {
        match self.state {
            State::ExpectResponse
            | State::ExpectSwitched(_)
            | State::ExpectFull(_)
            | State::ExpectSealed(_) => {}
            State::ExpectSecured
            | State::ExpectLookup { .. }
            | State::ExpectJob(_)
            | State::Done
            | State::Failed => {
                return Ok((0, AcceptStep::More));
            }
        }
        let Some((header, payload)) = frame::whole(input, limits::LOGIN_BYTES, FaultKind::ClientTooLarge)?
        else {
            return Ok((0, AcceptStep::More));
        };
        if header.seq != self.seq {
            return Err(Fault::new(FaultKind::ClientProtocol, "login packets out of order"));
        }
        self.seq = header.seq.wrapping_add(1);
        let used = header.total();
        let step = match std::mem::replace(&mut self.state, State::Failed) {
            State::ExpectResponse => self.handle_response(payload)?,
            State::ExpectSwitched(admission) => {
                // What came before was for another method, perhaps nothing.
                self.with_password = !matches!(payload, [] | [0]);
                self.check(admission, payload, out)?
            }
            State::ExpectFull(secret) => self.handle_full(secret, payload, out)?,
            State::ExpectSealed(secret) => self.handle_sealed(secret, payload)?,
            State::ExpectSecured
            | State::ExpectLookup { .. }
            | State::ExpectJob(_)
            | State::Done
            | State::Failed => AcceptStep::More,
        };
        Ok((used, step))
    }

    fn handle_lookup(&mut self, admission: Admission, out: &mut Vec<u8>) -> Result<AcceptStep, Fault> {
        let State::ExpectLookup { plugin, answer } = std::mem::replace(&mut self.state, State::Failed) else {
            return Err(Fault::new(FaultKind::ClientProtocol, "no lookup was asked for"));
        };
        let method = self.resolve(admission.method, plugin.as_deref());
        let admission = Admission { method, ..admission };
        if matches!(admission.method, AuthMethod::Trust | AuthMethod::Peer) {
            if self.has_stand_in(plugin.as_deref()) {
                return Ok(self.switch(NATIVE, admission, out));
            }
            return self.check(admission, &answer, out);
        }
        let wanted = plugin_of(admission.method);
        if wanted == CLEAR && !self.is_safe() {
            let text = "mysql_clear_password is only taken inside TLS and on a Unix socket";
            return Err(Fault::new(FaultKind::LoginFailed, text));
        }
        // Without a name the answer is the one of 4.1; else it was made for the greeting's method only if
        // its name says so. With another method's name MySQL's library sends none yet.
        let greeted = self.greeted_method();
        let is_answer = !answer.is_empty() || plugin.as_deref().is_none_or(|name| name == greeted);
        if plugin.as_deref().unwrap_or(NATIVE) == wanted && is_answer && !self.stale {
            return self.check(admission, &answer, out);
        }
        if !self.capabilities.has(Capabilities::PLUGIN_AUTH) && wanted != CLEAR {
            // A client that knows no names of methods has answered by the one of 4.1.
            return self.check(Admission { method: AuthMethod::Native, ..admission }, &answer, out);
        }
        Ok(self.switch(wanted, admission, out))
    }

    fn handle_job(&mut self, done: JobDone, _out: &mut Vec<u8>) -> Result<AcceptStep, Fault> {
        let State::ExpectJob(secret) = std::mem::replace(&mut self.state, State::Failed) else {
            return Err(Fault::new(FaultKind::ClientProtocol, "no work was asked for"));
        };
        let opened = match done {
            JobDone::RsaDecrypted(opened) => opened,
            JobDone::RsaEncrypted(_) | JobDone::ScramKeys(_) => None,
        };
        let mut password: Zeroizing<Vec<u8>> = opened.unwrap_or_default();
        caching_sha2::mask(&mut password, &self.scramble);
        let right = password.pop() == Some(0) && caching_sha2::verify_full(secret.as_deref(), &password);
        self.verdict(right)
    }

    /// Weir asks nobody else about the passwords of MySQL's clients.
    ///
    /// # Errors
    /// Always.
    fn handle_vouched(&mut self, _: Result<(), Fault>, _: &mut Vec<u8>) -> Result<AcceptStep, Fault> {
        self.state = State::Failed;
        Err(Fault::new(FaultKind::ClientProtocol, "nobody was asked about a password"))
    }

    fn refuse(&self, fault: &Fault, out: &mut Vec<u8>) {
        if fault.kind == FaultKind::LoginFailed {
            let using = if self.with_password { "YES" } else { "NO" };
            let text = format!("Access denied for user '{}' (using password: {using})", self.user);
            error::put(out, self.seq, 1045, "28000", &text);
        } else if fault.kind == FaultKind::ClientProtocol && self.user.is_empty() {
            error::put(out, self.seq, 1043, "08S01", "Bad handshake");
        } else {
            error::put_fault(out, self.seq, fault.kind);
        }
    }

    fn into_front(self) -> Front {
        let mut front = Front::new(self.params.id, self.capabilities, self.collation, self.seq);
        front.set_schema(self.database.as_deref().unwrap_or_default());
        front.state.multi_statements = self.multi_statements.unwrap_or(front.state.multi_statements);
        if let Some(left) = self.found_rows {
            front.take_found_rows(left);
        }
        let scramble = (!self.capabilities.has(Capabilities::PLUGIN_AUTH)).then_some(self.scramble);
        let (secured, vouch) = (self.params.secured, self.vouch);
        if scramble.is_some() || secured.is_some() || self.packs.is_some() {
            front.login = Some(Box::new(FromLogin {
                scramble,
                secured,
                vouch,
                packs: self.packs,
                is_packed: self.is_packed,
            }));
        }
        front
    }
}

/// A scramble has no NUL, which ends it on the wire, and no `$`, which separates fields where servers store
/// salts; MySQL's servers keep it below 128.
fn scramble_of(nonce: &[u8; 64]) -> [u8; SCRAMBLE_BYTES] {
    let mut scramble = [0; SCRAMBLE_BYTES];
    for (to, from) in scramble.iter_mut().zip(nonce) {
        *to = from & 0x7F;
        if *to == 0 || *to == b'$' {
            *to += 1;
        }
    }
    scramble
}

/// Servers prefer zlib where a client has both.
fn algorithm_of(capabilities: Capabilities, zstd_level: u8) -> Option<Algorithm> {
    if capabilities.has(Capabilities::COMPRESS) {
        return Some(Algorithm::Zlib);
    }
    capabilities.has(Capabilities::ZSTD_COMPRESSION).then(|| Algorithm::zstd(zstd_level))
}

fn plugin_of(method: AuthMethod) -> &'static [u8] {
    match method {
        AuthMethod::Native => NATIVE,
        AuthMethod::Plain => CLEAR,
        AuthMethod::CachingSha2
        | AuthMethod::LikeServer
        | AuthMethod::Trust
        | AuthMethod::Cert
        | AuthMethod::Peer
        | AuthMethod::Ldap
        | AuthMethod::Pam
        | AuthMethod::Md5
        | AuthMethod::ScramSha256 => CACHING_SHA2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrambles_have_no_nul_and_no_dollar() {
        for byte in 0..=255 {
            let scramble = scramble_of(&[byte; 64]);
            assert!(scramble.iter().all(|&b| b != 0 && b != b'$' && b < 128));
        }
    }
}
