//! One blocking connection: for preparing and removing tables and for checks before a run.

use super::mysql::Mysql;
use super::postgres::Postgres;
use super::{Piece, Protocol, Refusal, connect_params, io_code};
use crate::statement::Got;
use crate::url::{Dialect, Url};
use std::fmt;
use std::io;
use std::time::Duration;
use weir_blocking::{Failure, Line, Way};
use weir_tls::Facts;

/// How long a connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a request of the blocking client failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientError {
    /// SQLSTATE, errno, or the name of an I/O error.
    pub code: String,
    /// What happened.
    pub text: String,
}

impl ClientError {
    /// An error of the load generator's own finding.
    pub fn own(text: impl Into<String>) -> Self {
        ClientError { code: "weir".to_owned(), text: text.into() }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.code == "weir" { f.write_str(&self.text) } else { write!(f, "{} ({})", self.text, self.code) }
    }
}

impl std::error::Error for ClientError {}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        ClientError { code: io_code(&error), text: error.to_string() }
    }
}

impl From<Refusal> for ClientError {
    fn from(refusal: Refusal) -> Self {
        ClientError { code: refusal.code, text: refusal.text }
    }
}

/// A connection of either protocol.
pub enum Client {
    /// PostgreSQL.
    Postgres(Session<Postgres>),
    /// MySQL or MariaDB.
    Mysql(Session<Mysql>),
}

impl Client {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The server cannot be reached, refuses the login, or breaks the protocol.
    pub fn connect(url: &Url) -> Result<Client, ClientError> {
        Ok(match url.dialect {
            Dialect::Postgres => Client::Postgres(Session::connect(url)?),
            Dialect::Mysql => Client::Mysql(Session::connect(url)?),
        })
    }

    /// What TLS came to, if there is any.
    pub fn facts(&self) -> Option<Facts> {
        match self {
            Client::Postgres(session) => session.line.facts(),
            Client::Mysql(session) => session.line.facts(),
        }
    }

    /// Maximum time each read of a reply waits. `None`, as at first, disables the limit.
    ///
    /// # Errors
    /// The kernel refuses it; a timeout of zero is one.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<(), ClientError> {
        match self {
            Client::Postgres(session) => session.line.set_timeout(timeout)?,
            Client::Mysql(session) => session.line.set_timeout(timeout)?,
        }
        Ok(())
    }

    /// Runs a statement and throws its rows away.
    ///
    /// # Errors
    /// The server refuses the statement, the connection is lost, or the reply breaks the protocol.
    pub fn run(&mut self, text: &str) -> Result<(), ClientError> {
        self.ask(text, &mut |_| {})
    }

    /// Runs a statement that need not be UTF-8 and throws its rows away.
    ///
    /// # Errors
    /// The server refuses the statement, the connection is lost, or the reply breaks the protocol.
    pub fn run_bytes(&mut self, text: &[u8]) -> Result<(), ClientError> {
        match self {
            Client::Postgres(session) => session.ask(text, &mut |_| {}),
            Client::Mysql(session) => session.ask(text, &mut |_| {}),
        }
    }

    /// COPY ... FROM STDIN: `more` appends rows and says whether it did. PostgreSQL only.
    ///
    /// # Errors
    /// The server refuses the statement or a row, the connection is lost, or the server is MySQL.
    pub fn copy_in(
        &mut self,
        text: &str,
        more: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<(), ClientError> {
        match self {
            Client::Postgres(session) => session.copy_in(text, more),
            Client::Mysql(_) => Err(ClientError::own("MySQL has no COPY")),
        }
    }

    /// Runs a statement; `first` hears the first value of the first row, if there is one.
    ///
    /// # Errors
    /// The server refuses the statement, the connection is lost, or the reply breaks the protocol.
    pub fn ask(&mut self, text: &str, first: &mut dyn FnMut(Got<'_>)) -> Result<(), ClientError> {
        match self {
            Client::Postgres(session) => session.ask(text.as_bytes(), first),
            Client::Mysql(session) => session.ask(text.as_bytes(), first),
        }
    }
}

/// A logged-in connection that blocks.
pub struct Session<P: Protocol> {
    line: Line,
    pub(super) session: P::Session,
}

/// Why nobody logged in.
fn failed<P: Protocol>(failure: Failure) -> ClientError {
    match failure {
        Failure::Io(error) => error.into(),
        Failure::Tls(text) => ClientError { code: "tls".to_owned(), text: format!("TLS: {text}") },
        Failure::Broken(why) => ClientError::own(why),
        Failure::Refused(said) => P::read_refusal(&said).into(),
        Failure::Login(fault) => ClientError { code: fault.kind.label().to_owned(), text: fault.to_string() },
    }
}

impl<P: Protocol> Session<P> {
    /// By the first transport that the URL allows and the server takes.
    fn connect(url: &Url) -> Result<Self, ClientError> {
        let tls = url.tls.as_deref();
        let way = Way { target: &url.target, tls, connect: CONNECT_TIMEOUT, silence: None };
        let login = |wish| Ok(P::login(connect_params(url, wish, rand::random())));
        let (line, login) = Line::open(&way, login).map_err(failed::<P>)?;
        Ok(Session { line, session: P::into_session(login) })
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        Ok(self.line.send(bytes)?)
    }

    pub(super) fn receive(&mut self) -> Result<(), ClientError> {
        Ok(self.line.receive()?)
    }

    /// What has come and is not dealt with.
    pub(super) fn input(&self) -> &[u8] {
        &self.line.input
    }

    pub(super) fn drop_input(&mut self, n: usize) {
        self.line.input.drain(..n);
    }

    fn ask(&mut self, text: &[u8], first: &mut dyn FnMut(Got<'_>)) -> Result<(), ClientError> {
        let mut output = Vec::new();
        P::begin_text(&mut self.session, text, &mut output);
        self.line.send(&output)?;
        self.finish_with(first)
    }

    /// Reads the reply to its end.
    pub(super) fn finish(&mut self) -> Result<(), ClientError> {
        self.finish_with(&mut |_| {})
    }

    fn finish_with(&mut self, first: &mut dyn FnMut(Got<'_>)) -> Result<(), ClientError> {
        let mut refused = None;
        let mut at = 0;
        loop {
            at += match P::next(&mut self.session, self.line.input.get(at..).unwrap_or_default()) {
                Piece::Incomplete => {
                    self.line.input.drain(..at);
                    at = 0;
                    if let Err(error) = self.line.receive() {
                        return Err(refused.unwrap_or_else(|| error.into()));
                    }
                    0
                }
                Piece::Pass(n) | Piece::Again(n) | Piece::Row(n, _) => n,
                Piece::First(n, got) => {
                    first(got);
                    n
                }
                Piece::Refused(n, refusal) => {
                    let ends = P::REFUSAL_ENDS_REPLY || refusal.fatal;
                    let error = refused.get_or_insert_with(|| ClientError::from(refusal)).clone();
                    if ends {
                        self.line.input.drain(..at + n);
                        return Err(error);
                    }
                    n
                }
                Piece::Done(n) => {
                    self.line.input.drain(..at + n);
                    return refused.map_or(Ok(()), Err);
                }
                Piece::Broken(why) => {
                    return Err(ClientError { code: "protocol".to_owned(), text: why.to_owned() });
                }
            };
        }
    }
}

impl<P: Protocol> Drop for Session<P> {
    fn drop(&mut self) {
        let mut output = Vec::new();
        P::quit(&mut output);
        // A server that has gone needs no goodbye.
        drop(self.line.send(&output));
    }
}
