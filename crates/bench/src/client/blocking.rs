//! One connection that blocks: for preparing and removing tables and for looking before a run.

use super::mysql::Mysql;
use super::postgres::Postgres;
use super::{Piece, Protocol, Refusal, connect_params, io_code};
use crate::statement::Got;
use crate::url::{Dialect, Url};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use weir_config::ServerTls;
use weir_net::Target;
use weir_session::Connect as _;
use weir_session::login::{ConnectStep, TlsWish};
use weir_tls::{Blocking, Facts};

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
            Client::Postgres(session) => session.stream.facts(),
            Client::Mysql(session) => session.stream.facts(),
        }
    }

    /// Maximum time each read of a reply waits. `None`, as at first, disables the limit.
    ///
    /// # Errors
    /// The kernel refuses it; a timeout of zero is one.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<(), ClientError> {
        match self {
            Client::Postgres(session) => session.stream.set_timeout(timeout)?,
            Client::Mysql(session) => session.stream.set_timeout(timeout)?,
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

trait Stream: Read + Write + Send {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
    /// What TLS came to.
    fn facts(&self) -> Option<Facts> {
        None
    }
}

/// For TLS to lie over.
impl Stream for Box<dyn Stream> {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.as_ref().set_timeout(timeout)
    }

    fn facts(&self) -> Option<Facts> {
        self.as_ref().facts()
    }
}

impl Stream for Blocking<Box<dyn Stream>> {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.transport().set_timeout(timeout)
    }

    fn facts(&self) -> Option<Facts> {
        Blocking::facts(self)
    }
}

impl Stream for TcpStream {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)
    }
}

impl Stream for UnixStream {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)
    }
}

/// A logged-in connection that blocks.
pub struct Session<P: Protocol> {
    stream: Box<dyn Stream>,
    pub(super) session: P::Session,
    input: Vec<u8>,
}

/// A login that failed.
struct Failed {
    error: ClientError,
    /// By another transport it may succeed.
    by_transport: bool,
}

impl<E: Into<ClientError>> From<E> for Failed {
    fn from(error: E) -> Self {
        Failed { error: error.into(), by_transport: false }
    }
}

impl<P: Protocol> Session<P> {
    /// By the first transport that the URL allows and the server takes.
    fn connect(url: &Url) -> Result<Self, ClientError> {
        let mut wishes = url.wishes().iter();
        loop {
            let wish = wishes.next().copied().unwrap_or_default();
            match Self::connect_by(url, wish) {
                Ok(session) => return Ok(session),
                Err(failed) if failed.by_transport && !wishes.as_slice().is_empty() => {}
                Err(failed) => return Err(failed.error),
            }
        }
    }

    fn connect_by(url: &Url, wish: TlsWish) -> Result<Self, Failed> {
        let mut stream: Box<dyn Stream> = match &url.target {
            Target::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, CONNECT_TIMEOUT)?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Target::Unix(path) => Box::new(UnixStream::connect(path)?),
        };
        let tls = url.tls.as_deref().filter(|_| wish != TlsWish::Off);
        let mut login = P::login(connect_params(url, wish, rand::random()));
        let (mut input, mut output) = (Vec::new(), Vec::new());
        if let Some(tls) = tls.filter(|tls| tls.direct) {
            stream = secure::<P>(stream, tls, &mut login, &mut output)?;
        }
        login.start(&mut output);
        loop {
            stream.write_all(&output)?;
            output.clear();
            match advance::<P>(&mut login, &mut input, &mut output) {
                Ok(Advance::LoggedIn) => break,
                Ok(Advance::Tls) => {
                    let none = || ClientError::own("the login asks for TLS that nobody wished for");
                    stream.write_all(&output)?;
                    output.clear();
                    stream = secure::<P>(stream, tls.ok_or_else(none)?, &mut login, &mut output)?;
                }
                Ok(Advance::More) if output.is_empty() => {
                    if let Err(error) = receive(stream.as_mut(), &mut input) {
                        return Err(P::refusal(&login).map_or(error.into(), ClientError::from).into());
                    }
                }
                Ok(Advance::More) => {}
                Err(error) => {
                    let error = P::refusal(&login).map_or(error, ClientError::from);
                    return Err(Failed { error, by_transport: login.is_transport_refused() });
                }
            }
        }
        stream.write_all(&output)?;
        Ok(Session { stream, session: P::into_session(login), input })
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        Ok(self.stream.write_all(bytes)?)
    }

    pub(super) fn receive(&mut self) -> Result<(), ClientError> {
        Ok(receive(self.stream.as_mut(), &mut self.input)?)
    }

    /// What has come and is not dealt with.
    pub(super) fn input(&self) -> &[u8] {
        &self.input
    }

    pub(super) fn drop_input(&mut self, n: usize) {
        self.input.drain(..n);
    }

    fn ask(&mut self, text: &[u8], first: &mut dyn FnMut(Got<'_>)) -> Result<(), ClientError> {
        let mut output = Vec::new();
        P::begin_text(&mut self.session, text, &mut output);
        self.stream.write_all(&output)?;
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
            at += match P::next(&mut self.session, self.input.get(at..).unwrap_or_default()) {
                Piece::Incomplete => {
                    self.input.drain(..at);
                    at = 0;
                    if let Err(error) = receive(self.stream.as_mut(), &mut self.input) {
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
                        self.input.drain(..at + n);
                        return Err(error);
                    }
                    n
                }
                Piece::Done(n) => {
                    self.input.drain(..at + n);
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
        drop(self.stream.write_all(&output));
    }
}

/// Puts TLS over a stream and tells the login.
fn secure<P: Protocol>(
    stream: Box<dyn Stream>,
    tls: &ServerTls,
    login: &mut P::Login,
    output: &mut Vec<u8>,
) -> Result<Box<dyn Stream>, Failed> {
    let failed = |text: String| Failed {
        error: ClientError { code: "tls".to_owned(), text: format!("TLS: {text}") },
        by_transport: !tls.mode.is_required(),
    };
    let begun = tls.connector.connect(&tls.host).map_err(|error| failed(error.to_string()))?;
    let line = Blocking::handshake(begun, stream).map_err(|error| failed(error.to_string()))?;
    let facts = Blocking::facts(&line).ok_or_else(|| failed("the handshake has no end".to_owned()))?;
    let secured = Arc::new(weir_config::secured(facts));
    login.handle_secured(secured, output).map_err(login_fault)?;
    Ok(Box::new(line))
}

/// What a login waits for.
enum Advance {
    More,
    Tls,
    LoggedIn,
}

/// Gives the login what has come.
fn advance<P: Protocol>(
    login: &mut P::Login,
    input: &mut Vec<u8>,
    output: &mut Vec<u8>,
) -> Result<Advance, ClientError> {
    loop {
        let (n, step) = login.handle_input(input, output).map_err(login_fault)?;
        input.drain(..n);
        let mut step = step;
        while let ConnectStep::Work(job) = step {
            step = login.handle_job(job.run(), output).map_err(login_fault)?;
        }
        match step {
            ConnectStep::LoggedIn => return Ok(Advance::LoggedIn),
            // Whoever put them there is not the server: what it encrypts comes behind the handshake.
            ConnectStep::Tls if !input.is_empty() => {
                return Err(ClientError::own("unencrypted bytes in front of TLS"));
            }
            ConnectStep::Tls => return Ok(Advance::Tls),
            ConnectStep::More if n == 0 => return Ok(Advance::More),
            ConnectStep::More | ConnectStep::Work(_) => {}
        }
    }
}

fn login_fault(fault: weir_wire::Fault) -> ClientError {
    ClientError { code: fault.kind.label().to_owned(), text: fault.to_string() }
}

fn receive(stream: &mut dyn Stream, input: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    let n = stream.read(&mut buffer)?;
    if n == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
    }
    input.extend_from_slice(buffer.get(..n).unwrap_or_default());
    Ok(())
}
