//! A client logs in to Weir (protocol section 55.2.1): from the first byte to AuthenticationOk. What follows
//! (ParameterStatus, BackendKeyData, ReadyForQuery) depends on a server's answer and is in `welcome.rs`.
//!
//! Invariants: a state is named after what it waits for; bytes received before the answer to SSLRequest or
//! GSSENCRequest are refused (CVE-2021-3935); an unknown user fails at the same point as a wrong password,
//! with the same text.

use crate::cancel::ClientKey;
use crate::error::{
    CERT_FAILED, EMPTY_PASSWORD, LDAP_FAILED, NO_ALPN, NO_REPLICATION, NO_USER, PAM_FAILED, PEER_FAILED,
    Severity, UNKNOWN_OPTION, UNKNOWN_VERSION, Words, put_error, words_of,
};
use crate::frame::HEADER_BYTES;
use crate::front::Front;
use crate::login::start::settings_of_start;
use crate::message::auth;
use crate::message::startup::{First, NEWEST_MINOR, Startup, put_negotiate, read_first, read_options};
use crate::session_state::Settings;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use weir_auth::scram::{self, ScramError, ServerBinding, ServerExpectFinal, Verdict};
use weir_auth::{Job, JobDone, Password, Secret, SecretKind, md5};
use weir_session::login::{AcceptParams, AcceptStep, Admission, AuthMethod, Login, Secured, TlsOffer};
use weir_wire::limits::LOGIN_BYTES;
use weir_wire::{Fault, FaultKind};

/// The type of a TLS record that carries a handshake.
const TLS_HANDSHAKE: u8 = 22;

/// A login under way.
pub struct Accept {
    params: AcceptParams,
    state: State,
    session: Option<Box<Session>>,
    /// Words that say more than the kind of the fault does; they leak nothing.
    words: Option<Words>,
    bytes_seen: usize,
}

/// What the startup packet said.
struct Session {
    user: String,
    minor: u16,
    settings: Settings,
}

enum State {
    ExpectFirst {
        /// TLS was asked for and refused, or is there.
        ssl_done: bool,
        gss_done: bool,
    },
    /// The handshake is under way.
    ExpectSecured {
        /// It began without SSLRequest.
        direct: bool,
    },
    ExpectAdmission,
    ExpectPassword {
        method: PasswordMethod,
        secret: Option<Arc<Secret>>,
    },
    ExpectSaslInitial {
        secret: Option<Arc<Secret>>,
    },
    ExpectSaslFinal {
        scram: Box<ServerExpectFinal>,
    },
    /// PBKDF2 runs elsewhere for this final message.
    ExpectScramKeys {
        scram: Box<ServerExpectFinal>,
        client_final: Box<[u8]>,
    },
    /// PBKDF2 runs elsewhere for a password in clear against a verifier.
    ExpectPasswordKeys {
        secret: Arc<Secret>,
    },
    /// Somebody else is asked about the password.
    ExpectVouched {
        failed: Words,
    },
    LoggedIn,
    /// A CancelRequest came: whatever follows it is of no interest.
    Cancelled,
    Ended,
}

enum PasswordMethod {
    Plain,
    Md5 {
        salt: [u8; 4],
    },
    /// Somebody else knows it. What the client is told if it is wrong.
    Vouched {
        failed: Words,
    },
}

/// For the operator's log: one cannot be told from the other, so that nothing takes longer for one of them.
const WRONG: &str = "wrong password, or no such user";

fn login_failed(detail: &'static str) -> Fault {
    Fault::new(FaultKind::LoginFailed, detail)
}

fn protocol(detail: &'static str) -> Fault {
    Fault::new(FaultKind::ClientProtocol, detail)
}

impl Accept {
    fn first(
        &mut self,
        input: &[u8],
        ssl_done: bool,
        gss_done: bool,
        out: &mut Vec<u8>,
    ) -> Result<(usize, AcceptStep), Fault> {
        // PostgreSQL 17's direct TLS: the first byte of a ClientHello, which no startup packet begins with.
        if input.first() == Some(&TLS_HANDSHAKE) && self.offers_tls() && !ssl_done && !gss_done {
            self.state = State::ExpectSecured { direct: true };
            return Ok((0, AcceptStep::Tls));
        }
        let Some((length, first)) = read_first(input)? else { return Ok((0, AcceptStep::More)) };
        match first {
            First::Ssl if !ssl_done && self.offers_tls() => {
                answer_encryption(input, length, b'S', out)?;
                self.state = State::ExpectSecured { direct: false };
                Ok((length, AcceptStep::Tls))
            }
            First::Ssl if !ssl_done => {
                answer_encryption(input, length, b'N', out)?;
                self.state = State::ExpectFirst { ssl_done: true, gss_done };
                Ok((length, AcceptStep::More))
            }
            First::GssEnc if !gss_done => {
                answer_encryption(input, length, b'N', out)?;
                self.state = State::ExpectFirst { ssl_done, gss_done: true };
                Ok((length, AcceptStep::More))
            }
            First::Ssl | First::GssEnc => Err(protocol("encryption was asked for twice")),
            First::Cancel { pid, key } => {
                self.state = State::Cancelled;
                Ok((length, AcceptStep::Cancel { id: pid, secret: key.into() }))
            }
            First::Version { major, minor } => {
                self.words = Some(UNKNOWN_VERSION);
                Err(Fault::new(FaultKind::ClientProtocol, format!("protocol version {major}.{minor}")))
            }
            First::Startup(startup) => Ok((length, self.startup(&startup, out)?)),
        }
    }

    /// PostgreSQL has no TLS on Unix sockets.
    fn offers_tls(&self) -> bool {
        self.params.tls != TlsOffer::Off && !self.params.unix
    }

    fn startup(&mut self, startup: &Startup<'_>, out: &mut Vec<u8>) -> Result<AcceptStep, Fault> {
        if self.params.tls == TlsOffer::Required && self.params.secured.is_none() && !self.params.unix {
            return Err(FaultKind::TlsRequired.into());
        }
        let mut user = None;
        let mut database = None;
        let mut replication = false;
        let mut pairs = Vec::new();
        let mut options: &[u8] = b"";
        let mut unknown: Vec<&[u8]> = Vec::new();
        for &(name, value) in &startup.parameters {
            match name {
                b"user" => user = Some(text(value)?),
                b"database" => database = Some(text(value)?),
                b"replication" => replication = !is_false(value),
                b"options" => options = value,
                _ if name.starts_with(b"_pq_.") => unknown.push(name),
                _ => pairs.push((text(name)?, value.to_vec())),
            }
        }
        let minor = startup.minor.min(NEWEST_MINOR);
        if minor < startup.minor || !unknown.is_empty() {
            put_negotiate(out, minor, &unknown);
        }
        let Some(user) = user.filter(|user| !user.is_empty()) else {
            return Err(self.refused_with(NO_USER));
        };
        if replication {
            return Err(self.refused_with(NO_REPLICATION));
        }
        // PostgreSQL sets what stands in `options` first (`process_startup_options`).
        let Ok(mut named) = read_options(options) else { return Err(self.refused_with(UNKNOWN_OPTION)) };
        named.append(&mut pairs);
        let settings = settings_of_start(named)
            .map_err(|_| Fault::new(FaultKind::ClientTooLarge, "settings in the startup packet"))?;
        self.session = Some(Box::new(Session { user: user.clone(), minor, settings }));
        self.state = State::ExpectAdmission;
        let database = database.filter(|d| !d.is_empty());
        Ok(AcceptStep::Lookup(Login { user, database, replication }))
    }

    fn refused_with(&mut self, words: Words) -> Fault {
        self.words = Some(words);
        Fault::new(FaultKind::NotAllowed, words.message)
    }

    fn authenticate(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<AcceptStep, Fault> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::ExpectPassword { method, secret } => {
                let password =
                    auth::read_password(body).map_err(|_| protocol("malformed password message"))?;
                match method {
                    PasswordMethod::Plain => self.plain(password, secret, out),
                    PasswordMethod::Md5 { salt } => {
                        if !md5::verify(self.user(), secret.as_deref(), salt, password) {
                            return Err(login_failed(WRONG));
                        }
                        Ok(self.logged_in(out))
                    }
                    PasswordMethod::Vouched { failed } => {
                        let Some(password) = Password::new(password) else {
                            self.words = Some(EMPTY_PASSWORD);
                            return Err(login_failed("an empty password"));
                        };
                        self.state = State::ExpectVouched { failed };
                        Ok(AcceptStep::Vouch(password))
                    }
                }
            }
            State::ExpectSaslInitial { secret } => {
                let (mechanism, data) =
                    auth::read_sasl_initial(body).map_err(|_| protocol("malformed SASL message"))?;
                let plus = mechanism == scram::MECHANISM_PLUS.as_bytes();
                let binding = match self.end_point() {
                    Some(data) if plus => ServerBinding::Chosen(data),
                    Some(_) => ServerBinding::NotChosen,
                    None => ServerBinding::NotOffered,
                };
                let offered = matches!(binding, ServerBinding::Chosen(_));
                if mechanism != scram::MECHANISM.as_bytes() && !offered {
                    return Err(protocol("a SASL mechanism that was not offered"));
                }
                let nonce = self.cut_nonce::<32>(0);
                let (scram, answer) = ServerExpectFinal::begin(self.user(), secret, &nonce, data, binding)
                    .map_err(scram_fault)?;
                auth::put_sasl_continue(out, &answer);
                self.state = State::ExpectSaslFinal { scram: Box::new(scram) };
                Ok(AcceptStep::More)
            }
            State::ExpectSaslFinal { scram } => self.sasl_final(scram, body, out),
            State::ExpectFirst { .. }
            | State::ExpectSecured { .. }
            | State::ExpectAdmission
            | State::ExpectScramKeys { .. }
            | State::ExpectPasswordKeys { .. }
            | State::ExpectVouched { .. }
            | State::LoggedIn
            | State::Cancelled
            | State::Ended => Err(protocol("a password nobody asked for")),
        }
    }

    fn plain(
        &mut self,
        password: &[u8],
        secret: Option<Arc<Secret>>,
        out: &mut Vec<u8>,
    ) -> Result<AcceptStep, Fault> {
        let Some(secret) = secret else { return Err(login_failed(WRONG)) };
        let right = match secret.kind() {
            SecretKind::Plain(known) => bool::from(known.as_bytes().ct_eq(password)),
            SecretKind::Md5(known) => {
                let given = String::from_utf8_lossy(password);
                bool::from(md5::stored_hash(self.user(), &given).as_bytes().ct_eq(known.as_bytes()))
            }
            SecretKind::MySqlNative(_) => false,
            SecretKind::ScramVerifier(verifier) => {
                let given = Arc::new(Secret::plain(&String::from_utf8_lossy(password)));
                let job = Job::ScramKeys {
                    secret: given,
                    salt: verifier.salt.clone(),
                    iterations: verifier.iterations,
                };
                self.state = State::ExpectPasswordKeys { secret };
                return Ok(AcceptStep::Work(job));
            }
        };
        if right { Ok(self.logged_in(out)) } else { Err(login_failed(WRONG)) }
    }

    fn sasl_final(
        &mut self,
        scram: Box<ServerExpectFinal>,
        client_final: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<AcceptStep, Fault> {
        match scram.verify(client_final).map_err(scram_fault)? {
            Verdict::Verified(answer) => {
                auth::put_sasl_final(out, &answer);
                Ok(self.logged_in(out))
            }
            Verdict::Work(job) => {
                self.state = State::ExpectScramKeys { scram, client_final: client_final.into() };
                Ok(AcceptStep::Work(job))
            }
        }
    }

    fn logged_in(&mut self, out: &mut Vec<u8>) -> AcceptStep {
        auth::put_ok(out);
        self.state = State::LoggedIn;
        AcceptStep::LoggedIn
    }

    /// What both sides can bind SCRAM to.
    fn end_point(&self) -> Option<&[u8]> {
        self.params.secured.as_deref()?.end_point.as_deref()
    }

    fn user(&self) -> &str {
        self.session.as_deref().map_or("", |session| &session.user)
    }

    fn cut_nonce<const N: usize>(&self, from: usize) -> [u8; N] {
        self.params.nonce.get(from..).and_then(|rest| rest.first_chunk::<N>()).copied().unwrap_or([0; N])
    }
}

impl weir_session::Accept for Accept {
    type Front = Front;

    /// PostgreSQL has no login on top of a session, and its clients' ends find none.
    ///
    /// # Errors
    /// Always.
    fn again(_: AcceptParams, _: &Front, _: &[u8]) -> Result<(Accept, AcceptStep), Fault> {
        Err(Fault::new(FaultKind::ClientProtocol, "a login on top of a session"))
    }

    fn new(params: AcceptParams) -> Self {
        let state = State::ExpectFirst { ssl_done: false, gss_done: false };
        Accept { params, state, session: None, words: None, bytes_seen: 0 }
    }

    /// PostgreSQL's server waits for the client.
    fn start(&mut self, _out: &mut Vec<u8>) {}

    fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, AcceptStep), Fault> {
        let (used, step) = match &self.state {
            State::ExpectFirst { ssl_done, gss_done } => {
                let (ssl, gss) = (*ssl_done, *gss_done);
                self.first(input, ssl, gss, out)?
            }
            State::ExpectPassword { .. }
            | State::ExpectSaslInitial { .. }
            | State::ExpectSaslFinal { .. } => match auth_message(input)? {
                None => (0, AcceptStep::More),
                Some((body, length)) => (length, self.authenticate(body, out)?),
            },
            // Bytes that come early wait until the answer is there.
            State::ExpectSecured { .. }
            | State::ExpectAdmission
            | State::ExpectScramKeys { .. }
            | State::ExpectPasswordKeys { .. }
            | State::ExpectVouched { .. } => (0, AcceptStep::More),
            State::LoggedIn => (0, AcceptStep::LoggedIn),
            State::Cancelled => (0, AcceptStep::More),
            State::Ended => return Err(protocol("bytes after the end of a login")),
        };
        self.bytes_seen += used;
        if self.bytes_seen > LOGIN_BYTES {
            return Err(Fault::new(FaultKind::ClientTooLarge, "login"));
        }
        Ok((used, step))
    }

    /// The handshake that [`AcceptStep::Tls`] asked for is done.
    ///
    /// # Errors
    /// A direct one was meant for another protocol, or none was under way.
    fn handle_secured(&mut self, secured: Arc<Secured>) -> Result<(), Fault> {
        let State::ExpectSecured { direct } = self.state else {
            return Err(protocol("no handshake was due"));
        };
        if direct && !secured.alpn {
            self.words = Some(NO_ALPN);
            return Err(protocol("direct TLS without ALPN"));
        }
        self.params.secured = Some(secured);
        self.state = State::ExpectFirst { ssl_done: true, gss_done: true };
        Ok(())
    }

    /// The answer to `AcceptStep::Lookup`: asks for the proof.
    ///
    /// # Errors
    /// A method PostgreSQL does not have, or a call in the wrong state.
    fn handle_lookup(&mut self, admission: Admission, out: &mut Vec<u8>) -> Result<AcceptStep, Fault> {
        let State::ExpectAdmission = self.state else { return Err(protocol("no lookup was asked for")) };
        let secret = admission.secret;
        let is_verifier = matches!(secret.as_deref().map(Secret::kind), Some(SecretKind::ScramVerifier(_)));
        match admission.method {
            AuthMethod::Trust => Ok(self.logged_in(out)),
            AuthMethod::Cert => {
                let named = self.params.secured.as_deref().and_then(|secured| secured.peer_name.as_deref());
                let is_user = |name| match &admission.names {
                    Some(names) => names.iter().any(|one| one == name),
                    None => name == self.user(),
                };
                if secret.is_some() && named.is_some_and(is_user) {
                    return Ok(self.logged_in(out));
                }
                self.words = Some(CERT_FAILED);
                Err(login_failed("no certificate, or one of another user"))
            }
            AuthMethod::Peer if secret.is_some() => Ok(self.logged_in(out)),
            AuthMethod::Peer => {
                self.words = Some(PEER_FAILED);
                Err(login_failed("another user of the system"))
            }
            AuthMethod::Plain => {
                auth::put_cleartext(out);
                self.state = State::ExpectPassword { method: PasswordMethod::Plain, secret };
                Ok(AcceptStep::More)
            }
            AuthMethod::Ldap | AuthMethod::Pam => {
                let failed = if admission.method == AuthMethod::Ldap { LDAP_FAILED } else { PAM_FAILED };
                auth::put_cleartext(out);
                self.state = State::ExpectPassword { method: PasswordMethod::Vouched { failed }, secret };
                Ok(AcceptStep::More)
            }
            // Method md5 with a SCRAM verifier means SCRAM, in PostgreSQL and in PgBouncer.
            AuthMethod::Md5 if !is_verifier => {
                let salt = self.cut_nonce::<4>(18);
                auth::put_md5(out, salt);
                self.state = State::ExpectPassword { method: PasswordMethod::Md5 { salt }, secret };
                Ok(AcceptStep::More)
            }
            AuthMethod::Md5 | AuthMethod::ScramSha256 => {
                match self.end_point() {
                    Some(_) => auth::put_sasl(out, &[scram::MECHANISM_PLUS, scram::MECHANISM]),
                    None => auth::put_sasl(out, &[scram::MECHANISM]),
                }
                self.state = State::ExpectSaslInitial { secret };
                Ok(AcceptStep::More)
            }
            AuthMethod::Native | AuthMethod::CachingSha2 | AuthMethod::LikeServer => {
                Err(login_failed("a MySQL method for PostgreSQL"))
            }
        }
    }

    fn handle_job(&mut self, done: JobDone, out: &mut Vec<u8>) -> Result<AcceptStep, Fault> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::ExpectScramKeys { scram, client_final } => {
                // The keys are in the secret now; asking for them a second time means that the job failed.
                let step = self.sasl_final(scram, &client_final, out)?;
                if matches!(step, AcceptStep::Work(_)) {
                    return Err(login_failed("no keys came of the password"));
                }
                Ok(step)
            }
            State::ExpectPasswordKeys { secret } => match (done.into_scram_keys(), secret.kind()) {
                (Some(keys), SecretKind::ScramVerifier(verifier)) if keys.matches(verifier) => {
                    // With them Weir can log in to a server that stores the same verifier.
                    secret.remember_scram_keys(&verifier.salt, verifier.iterations, keys);
                    Ok(self.logged_in(out))
                }
                _ => Err(login_failed(WRONG)),
            },
            State::ExpectFirst { .. }
            | State::ExpectSecured { .. }
            | State::ExpectAdmission
            | State::ExpectPassword { .. }
            | State::ExpectSaslInitial { .. }
            | State::ExpectSaslFinal { .. }
            | State::ExpectVouched { .. }
            | State::LoggedIn
            | State::Cancelled
            | State::Ended => Err(protocol("no work was under way")),
        }
    }

    /// The answer to `AcceptStep::Vouch`.
    ///
    /// # Errors
    /// The password is not taken, or nobody was asked.
    fn handle_vouched(&mut self, answer: Result<(), Fault>, out: &mut Vec<u8>) -> Result<AcceptStep, Fault> {
        let State::ExpectVouched { failed } = std::mem::replace(&mut self.state, State::Ended) else {
            return Err(protocol("nobody was asked about a password"));
        };
        match answer {
            Ok(()) => Ok(self.logged_in(out)),
            Err(fault) => {
                self.words = Some(failed);
                Err(fault)
            }
        }
    }

    fn refuse(&self, fault: &Fault, out: &mut Vec<u8>) {
        let words = self.words.unwrap_or_else(|| words_of(fault.kind));
        put_error(out, Severity::Fatal, words);
    }

    /// After `LoggedIn`: the session.
    fn into_front(self) -> Front {
        let key = self.cut_nonce::<32>(32);
        let (minor, settings) = match self.session {
            Some(session) => (session.minor, session.settings),
            None => (0, Settings::default()),
        };
        Front::new(self.params.id, ClientKey::new(&key, minor >= 2), settings)
    }
}

/// Answers a request for encryption. A client that sends on without waiting for the answer is either broken,
/// or somebody has put bytes in front of what it will encrypt.
fn answer_encryption(input: &[u8], length: usize, answer: u8, out: &mut Vec<u8>) -> Result<(), Fault> {
    if input.len() > length {
        return Err(protocol("unencrypted bytes behind a request for encryption"));
    }
    out.push(answer);
    Ok(())
}

/// The body and the length of a password message, when it is there whole.
fn auth_message(input: &[u8]) -> Result<Option<(&[u8], usize)>, Fault> {
    match input.first() {
        None => return Ok(None),
        Some(b'p') => {}
        Some(_) => return Err(protocol("expected a password message")),
    }
    let Some((head, rest)) = input.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let [_, a, b, c, d] = *head;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if !(4..=auth::AUTH_MESSAGE_BYTES).contains(&length) {
        return Err(protocol("length of a password message"));
    }
    Ok(rest.get(..length - 4).map(|body| (body, length + 1)))
}

/// The one place where the wire's names become text: Weir routes by them, so they must be UTF-8.
fn text(bytes: &[u8]) -> Result<String, Fault> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| protocol("a name that is not UTF-8"))
}

/// PostgreSQL's spellings of false (`parse_bool`): any beginning of "false" or "no", "of", "off", "0".
fn is_false(value: &[u8]) -> bool {
    let value = value.to_ascii_lowercase();
    match value.as_slice() {
        b"0" | b"of" | b"off" => true,
        [] => false,
        other => b"false".starts_with(other) || b"no".starts_with(other),
    }
}

fn scram_fault(error: ScramError) -> Fault {
    match error {
        ScramError::Malformed(what) => Fault::new(FaultKind::ClientProtocol, what),
        ScramError::Refused | ScramError::NoKeys => login_failed(WRONG),
    }
}
