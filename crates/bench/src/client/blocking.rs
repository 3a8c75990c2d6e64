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
use std::time::Duration;
use weir_auth::login::ConnectStep;
use weir_net::Target;

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
    pub fn connect(url: &Url) -> Result<Client, ClientError> {
        Ok(match url.dialect {
            Dialect::Postgres => Client::Postgres(Session::connect(url)?),
            Dialect::Mysql => Client::Mysql(Session::connect(url)?),
        })
    }

    /// How long each read of a reply may wait; `None`, as at first: for ever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<(), ClientError> {
        match self {
            Client::Postgres(session) => session.stream.set_timeout(timeout)?,
            Client::Mysql(session) => session.stream.set_timeout(timeout)?,
        }
        Ok(())
    }

    /// Runs a statement and throws its rows away.
    pub fn run(&mut self, text: &str) -> Result<(), ClientError> {
        self.ask(text, &mut |_| {})
    }

    /// Runs a statement that need not be UTF-8 and throws its rows away.
    pub fn run_bytes(&mut self, text: &[u8]) -> Result<(), ClientError> {
        match self {
            Client::Postgres(session) => session.ask(text, &mut |_| {}),
            Client::Mysql(session) => session.ask(text, &mut |_| {}),
        }
    }

    /// COPY ... FROM STDIN: `more` appends rows and says whether it did. PostgreSQL only.
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
    pub fn ask(&mut self, text: &str, first: &mut dyn FnMut(Got<'_>)) -> Result<(), ClientError> {
        match self {
            Client::Postgres(session) => session.ask(text.as_bytes(), first),
            Client::Mysql(session) => session.ask(text.as_bytes(), first),
        }
    }
}

trait Stream: Read + Write + Send {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
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

impl<P: Protocol> Session<P> {
    fn connect(url: &Url) -> Result<Self, ClientError> {
        let mut stream: Box<dyn Stream> = match &url.target {
            Target::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, CONNECT_TIMEOUT)?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Target::Unix(path) => Box::new(UnixStream::connect(path)?),
        };
        let mut login = P::login(connect_params(url, rand::random()));
        let (mut input, mut output) = (Vec::new(), Vec::new());
        P::start(&mut login, &mut output);
        loop {
            stream.write_all(&output)?;
            output.clear();
            let step = advance::<P>(&mut login, &mut input, &mut output);
            match step {
                Ok(true) => break,
                Ok(false) if output.is_empty() => {
                    if let Err(error) = receive(stream.as_mut(), &mut input) {
                        return Err(P::refusal(&login).map_or(error.into(), ClientError::from));
                    }
                }
                Ok(false) => {}
                Err(error) => return Err(P::refusal(&login).map_or(error, ClientError::from)),
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

/// Gives the login what has come. True: logged in.
fn advance<P: Protocol>(
    login: &mut P::Login,
    input: &mut Vec<u8>,
    output: &mut Vec<u8>,
) -> Result<bool, ClientError> {
    loop {
        let (n, step) = P::handle_login(login, input, output).map_err(login_fault)?;
        input.drain(..n);
        let mut step = step;
        while let ConnectStep::Work(job) = step {
            step = P::handle_job(login, job.run(), output).map_err(login_fault)?;
        }
        match step {
            ConnectStep::LoggedIn => return Ok(true),
            ConnectStep::More if n == 0 => return Ok(false),
            ConnectStep::More | ConnectStep::Work(_) | ConnectStep::Tls => {}
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
