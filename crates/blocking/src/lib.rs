//! A blocking connection to a database, for callers with a thread of their own: auth_query, the doctor, and
//! the load generator before and after a run.
//!
//! Owns: the socket and its time limits, TLS over it, which transports are tried, and driving a login. Must
//! not know: either protocol (a login is any [`Connect`]), who asks, and what is asked.
//!
//! Invariants: bytes received before TLS are never taken for the server's; the second transport is tried only
//! if the first was refused; a login's own bounds apply to its input.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use weir_config::ServerTls;
use weir_net::Target;
use weir_session::Connect;
use weir_session::login::{ConnectStep, TlsWish};
use weir_tls::{Blocking, Facts, SslMode};
use weir_wire::Fault;

/// Bytes of one read.
const READ_BYTES: usize = 16 * 1024;

/// Which server, and how long it may take.
#[derive(Debug, Clone, Copy)]
pub struct Way<'a> {
    /// Its address.
    pub target: &'a Target,
    /// TLS, if there may be any.
    pub tls: Option<&'a ServerTls>,
    /// Maximum time for a connect.
    pub connect: Duration,
    /// Maximum silence of the server, and maximum time it may leave bytes unread. `None` disables the limit.
    pub silence: Option<Duration>,
}

/// Why there is no connection.
#[derive(Debug)]
pub enum Failure {
    /// The kernel's error, or the end of the connection.
    Io(io::Error),
    /// TLS did not come about.
    Tls(String),
    /// What happened is not the protocol.
    Broken(&'static str),
    /// The server's own refusal: payload of its ErrorResponse or ERR packet.
    Refused(Box<[u8]>),
    /// What the login says.
    Login(Fault),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Io(error)
    }
}

/// A login that failed.
struct Failed {
    why: Failure,
    /// By another transport it may succeed.
    by_transport: bool,
}

impl<E: Into<Failure>> From<E> for Failed {
    fn from(why: E) -> Self {
        Failed { why: why.into(), by_transport: false }
    }
}

trait Stream: Read + Write + Send {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
    fn fd(&self) -> BorrowedFd<'_>;
    /// What TLS came to.
    fn facts(&self) -> Option<Facts> {
        None
    }
}

impl Stream for TcpStream {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

impl Stream for UnixStream {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

/// For TLS to lie over.
impl Stream for Box<dyn Stream> {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.as_ref().set_timeout(timeout)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.as_ref().fd()
    }

    fn facts(&self) -> Option<Facts> {
        self.as_ref().facts()
    }
}

impl Stream for Blocking<Box<dyn Stream>> {
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.transport().set_timeout(timeout)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.transport().fd()
    }

    fn facts(&self) -> Option<Facts> {
        Blocking::facts(self)
    }
}

/// A logged-in connection.
pub struct Line {
    stream: Box<dyn Stream>,
    /// What has come and is not dealt with.
    pub input: Vec<u8>,
}

impl Line {
    /// Connects and logs in, by the first transport that the TLS mode allows and the server takes. `login`
    /// makes a login that has not begun, one for each try.
    ///
    /// # Errors
    /// The server cannot be reached, has not the TLS that is asked for, refuses the login, or breaks the
    /// protocol.
    pub fn open<C: Connect>(
        way: &Way<'_>,
        mut login: impl FnMut(TlsWish) -> io::Result<C>,
    ) -> Result<(Line, C), Failure> {
        let mode = way.tls.map_or(SslMode::Disable, |tls| tls.mode);
        let mut wishes = weir_config::tls_wishes(mode).iter();
        loop {
            let wish = wishes.next().copied().unwrap_or_default();
            let mut machine = login(wish)?;
            match Line::open_by(way, wish, &mut machine) {
                Ok(line) => return Ok((line, machine)),
                Err(failed) if failed.by_transport && !wishes.as_slice().is_empty() => {}
                Err(failed) => return Err(failed.why),
            }
        }
    }

    fn open_by(way: &Way<'_>, wish: TlsWish, machine: &mut impl Connect) -> Result<Line, Failed> {
        let tls = way.tls.filter(|_| wish != TlsWish::Off);
        let mut out = Vec::new();
        let mut line = Line { stream: connect(way)?, input: Vec::new() };
        if let Some(tls) = tls.filter(|tls| tls.direct) {
            line = line.secured(tls, machine, &mut out)?;
        }
        machine.start(&mut out);
        loop {
            line.send(&out)?;
            out.clear();
            match advance(machine, &mut line.input, &mut out) {
                Ok(ConnectStep::LoggedIn) => break,
                Ok(ConnectStep::Tls) => {
                    line.send(&out)?;
                    out.clear();
                    let tls = tls.ok_or(Failure::Broken("TLS that nobody wished for"))?;
                    // Whoever put them there is not the server: what it encrypts comes behind the handshake.
                    if !line.input.is_empty() {
                        return Err(Failure::Broken("unencrypted bytes in front of TLS").into());
                    }
                    line = line.secured(tls, machine, &mut out)?;
                }
                Ok(ConnectStep::More | ConnectStep::Work(_)) if out.is_empty() => {
                    line.receive().map_err(|error| refusal(machine).unwrap_or(error.into()))?;
                }
                Ok(ConnectStep::More | ConnectStep::Work(_)) => {}
                Err(fault) => {
                    let why = refusal(machine).unwrap_or(Failure::Login(fault));
                    return Err(Failed { why, by_transport: machine.is_transport_refused() });
                }
            }
        }
        line.send(&out)?;
        Ok(line)
    }

    /// The same with TLS over it, of which the login is told.
    fn secured(self, tls: &ServerTls, login: &mut impl Connect, out: &mut Vec<u8>) -> Result<Line, Failed> {
        let failed = |text: String| Failed { why: Failure::Tls(text), by_transport: !tls.mode.is_required() };
        let begun = tls.connector.connect(&tls.host).map_err(|error| failed(error.to_string()))?;
        let over = Blocking::handshake(begun, self.stream).map_err(|error| failed(error.to_string()))?;
        let facts = Blocking::facts(&over).ok_or_else(|| failed("the handshake has no end".to_owned()))?;
        login.handle_secured(Arc::new(weir_config::secured(facts)), out).map_err(Failure::Login)?;
        Ok(Line { stream: Box::new(over), input: self.input })
    }

    /// Sends all of these bytes.
    ///
    /// # Errors
    /// The kernel's, or TLS's.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Waits until some more has come, and puts it behind `input`.
    ///
    /// # Errors
    /// The kernel's, or TLS's; a server that has closed the connection is one.
    pub fn receive(&mut self) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        let n = self.stream.read(&mut buffer)?;
        if n == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        self.input.extend_from_slice(buffer.get(..n).unwrap_or_default());
        Ok(())
    }

    /// Maximum time each read waits. `None` disables the limit.
    ///
    /// # Errors
    /// The kernel refuses it; a timeout of zero is one.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.stream.set_timeout(timeout)
    }

    /// Bytes may have come.
    ///
    /// # Errors
    /// As `receive`, but for a time limit that is over.
    pub fn receive_all(&mut self) -> io::Result<()> {
        loop {
            let before = self.input.len();
            match self.receive() {
                // What TLS has decrypted beyond that is not announced again.
                Ok(()) if self.input.len() - before == READ_BYTES => {}
                Ok(()) => return Ok(()),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// What TLS came to, if there is any.
    pub fn facts(&self) -> Option<Facts> {
        self.stream.facts()
    }
}

/// Waits until a server says something or the bell rings, and says whether the server does.
///
/// # Errors
/// The kernel's.
pub fn wait(line: Option<&Line>, bell: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
    let mut fds = vec![PollFd::from_borrowed_fd(bell, PollFlags::IN)];
    fds.extend(line.map(|line| PollFd::from_borrowed_fd(line.stream.fd(), PollFlags::IN)));
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(fds.get(1).is_some_and(|fd| !fd.revents().is_empty()))
}

fn connect(way: &Way<'_>) -> io::Result<Box<dyn Stream>> {
    Ok(match way.target {
        Target::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, way.connect)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(way.silence)?;
            stream.set_write_timeout(way.silence)?;
            Box::new(stream)
        }
        Target::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(way.silence)?;
            stream.set_write_timeout(way.silence)?;
            Box::new(stream)
        }
    })
}

/// What the server that refused this login said.
fn refusal(login: &impl Connect) -> Option<Failure> {
    login.rejection().map(|said| Failure::Refused(said.into()))
}

/// Gives the login what has come. `More`: there is nothing more to give.
fn advance(machine: &mut impl Connect, input: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<ConnectStep, Fault> {
    loop {
        let (used, mut step) = machine.handle_input(input, out)?;
        input.drain(..used);
        while let ConnectStep::Work(job) = step {
            step = machine.handle_job(job.run(), out)?;
        }
        if used == 0 || matches!(step, ConnectStep::LoggedIn | ConnectStep::Tls) {
            return Ok(step);
        }
    }
}
