//! Weir logs in to a server (protocol section 55.2.1): from the startup packet to the first ReadyForQuery.
//!
//! Invariants: a server that began SCRAM must prove that it has the password's verifier before its "ok"
//! counts; what it reports about itself is bounded; its refusal is kept and shown to clients.

use crate::back::Back;
use crate::cancel::ServerKey;
use crate::error::field;
use crate::frame::{ServerTag, body, server_header};
use crate::message::auth::{self, Request};
use crate::message::reply::{read_key, read_parameter, read_ready};
use crate::message::startup::{put_ssl_request, put_startup};
use crate::session_state::{Reported, Settings};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use weir_auth::scram::{
    self, ClientBinding, ClientChallenge, ClientExpectFinal, ClientExpectFirst, ScramError, ScramKeys,
};
use weir_auth::{JobDone, Secret, SecretKind, md5};
use weir_session::login::{ConnectParams, ConnectStep, Secured, TlsWish};
use weir_wire::limits::LOGIN_BYTES;
use weir_wire::{Boundary, Fault, FaultKind};

/// A login under way.
pub struct Connect {
    params: ConnectParams,
    state: State,
    reported: Reported,
    key: ServerKey,
    secured: Option<Arc<Secured>>,
    /// Data of a password or proof is on its way: a refusal is no longer about the transport.
    proving: bool,
    rejection: Option<Box<[u8]>>,
    bytes_seen: usize,
    /// `ConnectParams::changes` when it began.
    born: u64,
}

enum State {
    /// The one byte that answers SSLRequest.
    ExpectTlsAnswer,
    /// The handshake is under way.
    ExpectSecured,
    /// A cancel request has been sent: the server closes without a word.
    ExpectEnd,
    ExpectRequest,
    ExpectSaslContinue {
        scram: ClientExpectFirst,
    },
    /// PBKDF2 runs elsewhere.
    ExpectKeys {
        challenge: ClientChallenge,
    },
    ExpectSaslFinal {
        scram: ClientExpectFinal,
    },
    /// All proofs are made; only "ok" or a refusal may follow.
    ExpectOk,
    ExpectReady,
    LoggedIn,
    Ended,
}

fn protocol(detail: &'static str) -> Fault {
    Fault::new(FaultKind::ServerProtocol, detail)
}

fn refused(detail: &'static str) -> Fault {
    Fault::new(FaultKind::ServerLoginFailed, detail)
}

impl Connect {
    /// Version 3.0: every server speaks it, and Weir needs nothing of 3.2 there.
    fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some(cancel) = self.params.cancel.take() {
            out.extend_from_slice(&cancel);
            self.state = State::ExpectEnd;
            return;
        }
        self.state = State::ExpectRequest;
        let user = [("user", self.params.user.as_str())];
        let database =
            (!self.params.database.is_empty()).then_some(("database", self.params.database.as_str()));
        let more = self.params.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        put_startup(out, user.into_iter().chain(database).chain(more));
    }

    fn tls_answer(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, ConnectStep), Fault> {
        match input {
            [] => Ok((0, ConnectStep::More)),
            [b'S'] => {
                self.state = State::ExpectSecured;
                Ok((1, ConnectStep::Tls))
            }
            // Somebody has put bytes in front of what the server will encrypt (CVE-2021-23222).
            [b'S', ..] => Err(protocol("unencrypted bytes behind the answer to SSLRequest")),
            [b'N', ..] if self.params.tls == TlsWish::IfOffered => {
                self.begin(out);
                Ok((1, ConnectStep::More))
            }
            [b'N', ..] => Err(Fault::new(FaultKind::ServerTls, "the server does not offer TLS")),
            // Nobody has proved to be the server yet: its words are not shown to clients (CVE-2024-10977).
            [b'E', ..] => {
                Err(Fault::new(FaultKind::ServerUnavailable, "the server refuses with an error before TLS"))
            }
            [_, ..] => Err(protocol("an answer to SSLRequest that is neither S nor N")),
        }
    }

    fn message(&mut self, tag: ServerTag, body: &[u8], out: &mut Vec<u8>) -> Result<ConnectStep, Fault> {
        match tag {
            ServerTag::ErrorResponse => {
                self.rejection = Some(body.into());
                self.state = State::Ended;
                let message = field(body, b'M').map(String::from_utf8_lossy).unwrap_or_default().into_owned();
                Err(Fault::new(FaultKind::ServerLoginFailed, message))
            }
            ServerTag::NoticeResponse => Ok(ConnectStep::More),
            ServerTag::Authentication => self.authentication(body, out),
            // Asked for 3.0 without options, a server has nothing to negotiate; harmless if it does.
            ServerTag::NegotiateProtocolVersion => match self.state {
                State::ExpectRequest => Ok(ConnectStep::More),
                _ => Err(protocol("version negotiation out of place")),
            },
            ServerTag::ParameterStatus | ServerTag::BackendKeyData | ServerTag::ReadyForQuery => {
                self.after_ok(tag, body)
            }
            ServerTag::BindComplete
            | ServerTag::CloseComplete
            | ServerTag::CommandComplete
            | ServerTag::CopyData
            | ServerTag::CopyDone
            | ServerTag::CopyInResponse
            | ServerTag::CopyOutResponse
            | ServerTag::CopyBothResponse
            | ServerTag::DataRow
            | ServerTag::EmptyQueryResponse
            | ServerTag::FunctionCallResponse
            | ServerTag::NoData
            | ServerTag::NotificationResponse
            | ServerTag::ParameterDescription
            | ServerTag::ParseComplete
            | ServerTag::PortalSuspended
            | ServerTag::RowDescription => Err(protocol("a reply before the login was done")),
        }
    }

    fn authentication(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<ConnectStep, Fault> {
        let request = auth::read_request(body).map_err(|_| protocol("malformed authentication request"))?;
        self.proving = true;
        match (std::mem::replace(&mut self.state, State::Ended), request) {
            (State::ExpectRequest | State::ExpectOk, Request::Ok) => {
                self.state = State::ExpectReady;
                Ok(ConnectStep::More)
            }
            (State::ExpectRequest, Request::CleartextPassword) => {
                let secret = self.secret()?;
                let SecretKind::Plain(password) = secret.kind() else {
                    return Err(refused("the server wants the password in clear and Weir has only its hash"));
                };
                auth::put_password(out, password.as_bytes());
                self.state = State::ExpectOk;
                Ok(ConnectStep::More)
            }
            (State::ExpectRequest, Request::Md5Password(salt)) => {
                let secret = self.secret()?;
                let answer = md5::response(&self.params.user, &secret, salt)
                    .ok_or(refused("the server wants md5 and Weir has only a SCRAM verifier"))?;
                auth::put_password(out, answer.as_bytes());
                self.state = State::ExpectOk;
                Ok(ConnectStep::More)
            }
            (State::ExpectRequest, Request::Sasl(mechanisms)) => self.begin_scram(&mechanisms, out),
            (State::ExpectSaslContinue { scram }, Request::SaslContinue(data)) => {
                let challenge = scram.challenge(data).map_err(scram_fault)?;
                let secret = self.secret()?;
                match challenge.keys(&secret).map_err(scram_fault)? {
                    Ok(keys) => Ok(self.prove(challenge, &keys, out)),
                    Err(job) => {
                        self.state = State::ExpectKeys { challenge };
                        Ok(ConnectStep::Work(job))
                    }
                }
            }
            (State::ExpectSaslFinal { scram }, Request::SaslFinal(data)) => {
                scram
                    .verify(data)
                    .map_err(|_| refused("the server does not know the password it asks for"))?;
                self.state = State::ExpectOk;
                Ok(ConnectStep::More)
            }
            (State::ExpectRequest, Request::Other(_)) => {
                Err(refused("the server wants an authentication method that Weir does not have"))
            }
            (_, Request::Ok) => Err(refused("the server skipped the end of SCRAM")),
            (
                _,
                Request::CleartextPassword
                | Request::Md5Password(_)
                | Request::Sasl(_)
                | Request::SaslContinue(_)
                | Request::SaslFinal(_)
                | Request::Other(_),
            ) => Err(protocol("authentication request out of place")),
        }
    }

    fn begin_scram(&mut self, mechanisms: &[&[u8]], out: &mut Vec<u8>) -> Result<ConnectStep, Fault> {
        let plus = mechanisms.contains(&scram::MECHANISM_PLUS.as_bytes());
        let end_point = self.secured.as_deref().and_then(|secured| secured.end_point.as_deref());
        let (mechanism, binding) = match end_point {
            Some(data) if plus => (scram::MECHANISM_PLUS, ClientBinding::Bound(data)),
            Some(_) => (scram::MECHANISM, ClientBinding::NotOffered),
            None => (scram::MECHANISM, ClientBinding::Unsupported),
        };
        if !mechanisms.contains(&mechanism.as_bytes()) {
            return Err(refused("the server offers no SASL mechanism that Weir has"));
        }
        self.secret()?;
        let nonce = self.params.nonce.first_chunk::<32>().copied().unwrap_or([0; 32]);
        let (scram, first) = ClientExpectFirst::begin(&nonce, binding);
        auth::put_sasl_initial(out, mechanism, &first);
        self.state = State::ExpectSaslContinue { scram };
        Ok(ConnectStep::More)
    }

    fn secret(&self) -> Result<Arc<Secret>, Fault> {
        self.params
            .secret
            .clone()
            .ok_or(refused("the server wants a password and Weir has none for this user"))
    }

    fn prove(&mut self, challenge: ClientChallenge, keys: &ScramKeys, out: &mut Vec<u8>) -> ConnectStep {
        let (scram, message) = challenge.answer(keys);
        auth::put_sasl_response(out, &message);
        self.state = State::ExpectSaslFinal { scram };
        ConnectStep::More
    }

    fn after_ok(&mut self, tag: ServerTag, body: &[u8]) -> Result<ConnectStep, Fault> {
        let State::ExpectReady = self.state else { return Err(protocol("a session before its login")) };
        match tag {
            ServerTag::ParameterStatus => {
                let (name, value) =
                    read_parameter(body).map_err(|_| protocol("malformed ParameterStatus"))?;
                if !self.reported.set(name, value) {
                    return Err(Fault::new(FaultKind::ServerTooLarge, "parameters reported at login"));
                }
                Ok(ConnectStep::More)
            }
            ServerTag::BackendKeyData => {
                let (pid, secret) = read_key(body).map_err(|_| protocol("malformed BackendKeyData"))?;
                self.key = ServerKey::new(pid, secret);
                Ok(ConnectStep::More)
            }
            _ => match read_ready(body) {
                Ok(Boundary::Idle) => {
                    self.state = State::LoggedIn;
                    Ok(ConnectStep::LoggedIn)
                }
                Ok(Boundary::InTransaction | Boundary::Failed) | Err(_) => {
                    Err(protocol("malformed ReadyForQuery"))
                }
            },
        }
    }
}

impl weir_session::Connect for Connect {
    type Back = Back;

    fn new(params: ConnectParams) -> Self {
        Connect {
            born: params.changes.load(Relaxed),
            params,
            state: State::ExpectRequest,
            reported: Reported::default(),
            key: ServerKey::default(),
            secured: None,
            proving: false,
            rejection: None,
            bytes_seen: 0,
        }
    }

    /// SSLRequest, if TLS is wished for and not there yet; else the startup packet (or the cancel request).
    fn start(&mut self, out: &mut Vec<u8>) {
        if self.params.tls != TlsWish::Off && self.secured.is_none() {
            put_ssl_request(out);
            self.state = State::ExpectTlsAnswer;
        } else {
            self.begin(out);
        }
    }

    /// A handshake is done: the one that [`ConnectStep::Tls`] asked for, or a direct one before
    /// [`Connect::start`].
    ///
    /// # Errors
    /// None so far: the other wing has some.
    fn handle_secured(&mut self, secured: Arc<Secured>, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.secured = Some(secured);
        if let State::ExpectSecured = self.state {
            self.begin(out);
        }
        Ok(())
    }

    fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, ConnectStep), Fault> {
        match self.state {
            State::LoggedIn => return Ok((0, ConnectStep::LoggedIn)),
            State::ExpectKeys { .. } | State::ExpectSecured | State::ExpectEnd => {
                return Ok((0, ConnectStep::More));
            }
            State::ExpectTlsAnswer => return self.tls_answer(input, out),
            State::Ended => return Err(protocol("bytes after the end of a login")),
            State::ExpectRequest
            | State::ExpectSaslContinue { .. }
            | State::ExpectSaslFinal { .. }
            | State::ExpectOk
            | State::ExpectReady => {}
        }
        let Some(header) = server_header(input)? else { return Ok((0, ConnectStep::More)) };
        if self.bytes_seen.saturating_add(header.total) > LOGIN_BYTES {
            return Err(Fault::new(FaultKind::ServerTooLarge, "login"));
        }
        let Some(message) = input.get(..header.total) else { return Ok((0, ConnectStep::More)) };
        self.bytes_seen += header.total;
        let step = self.message(header.tag, body(message), out)?;
        Ok((header.total, step))
    }

    /// The server refused before any proof, for what may be the transport: "no pg_hba.conf entry".
    fn is_transport_refused(&self) -> bool {
        let code = self.rejection.as_deref().and_then(|body| field(body, b'C'));
        !self.proving && code == Some(b"28000")
    }

    fn handle_job(&mut self, done: JobDone, out: &mut Vec<u8>) -> Result<ConnectStep, Fault> {
        match (std::mem::replace(&mut self.state, State::Ended), done.into_scram_keys()) {
            (State::ExpectKeys { challenge }, Some(keys)) => Ok(self.prove(challenge, &keys, out)),
            (State::ExpectKeys { .. }, None) => Err(refused("no keys came of the password")),
            _ => Err(protocol("no work was under way")),
        }
    }

    /// The body of the server's ErrorResponse, if it refused.
    fn rejection(&self) -> Option<&[u8]> {
        self.rejection.as_deref()
    }

    /// After `LoggedIn`: the server.
    fn into_back(self) -> Back {
        let changes = self.params.changes;
        let mut back =
            Back::new(self.key, self.reported, self.params.max_prepared_statements).born(changes, self.born);
        let parameters = self.params.parameters;
        if !parameters.is_empty()
            && let Ok(startup) =
                Settings::from_pairs(parameters.into_iter().map(|(n, v)| (n, v.into_bytes())))
        {
            back.opened_with(startup);
        }
        back
    }
}

fn scram_fault(error: ScramError) -> Fault {
    match error {
        ScramError::Malformed(what) => Fault::new(FaultKind::ServerProtocol, what),
        ScramError::Refused => refused("SCRAM"),
        ScramError::NoKeys => {
            refused("the server wants SCRAM and Weir has only a hash of the password that does not fit")
        }
    }
}
