//! Asks an LDAP server: a connection for each login.
//!
//! Owns: the sockets and their time. Must not know: what is said (`weir_ldap`).
//!
//! Invariants: whatever a server does, or does not, it is over at the deadline; a host that cannot be asked
//! is followed by the next one, a host that has refused is not.

use super::{Refusal, Vouching};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_ldap::{Encryption, Exchange, Options, Step, Verdict};
use weir_tls::{Blocking, Connector};
use zeroize::Zeroizing;

/// Maximum time for a connection, so that a host which is off does not take the time of the next one.
const CONNECT: Duration = Duration::from_secs(5);

/// Bytes of one read.
const READ_BYTES: usize = 4 * 1024;

/// Asks whether the password is right.
///
/// # Errors
/// It is not, or nobody has said so before `until`.
pub(super) fn ask(
    options: &Arc<Options>,
    tls: Option<&Connector>,
    vouching: &Vouching,
    until: Instant,
) -> Result<(), Refusal> {
    let mut failed = Vec::new();
    for (number, host) in options.hosts.iter().enumerate() {
        // What is left is for all who are left.
        let left = until.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(options.hosts.len() - number).unwrap_or(1).max(1);
        let begun = Exchange::new(options.clone(), &vouching.user, vouching.password.bytes());
        let Some(mut exchange) = begun else {
            return Err(Refusal::Wrong("an empty password or user name".to_owned()));
        };
        let url = options.url(host);
        let until = Instant::now() + share;
        match one(options, tls, host, &mut exchange, until) {
            Ok(()) => return Ok(()),
            Err(Verdict::Refused(why)) => return Err(Refusal::Wrong(why)),
            Err(Verdict::Unanswered(why)) => failed.push(format!("{url}: {why}")),
        }
    }
    Err(Refusal::Unanswered(failed.join("; ")))
}

fn one(
    options: &Options,
    tls: Option<&Connector>,
    (host, port): &(String, u16),
    exchange: &mut Exchange,
    until: Instant,
) -> Result<(), Verdict> {
    let stream = Timed { stream: connect(host, *port, until)?, until };
    let mut line = Line::Clear(stream);
    if options.encryption == Encryption::Ldaps {
        line = line.secured(tls, host)?;
    }
    let mut out = Zeroizing::new(Vec::new());
    exchange.start(&mut out);
    let mut input = Vec::new();
    loop {
        line.write_all(&out).map_err(|error| unanswered("cannot send", &error))?;
        out.clear();
        let (used, step) = exchange.handle_input(&input, &mut out)?;
        input.drain(..used);
        match step {
            Step::Done => {
                exchange.end(&mut out);
                // Whether it hears that changes nothing.
                let _ = line.write_all(&out);
                return Ok(());
            }
            Step::Tls => {
                // Somebody has put bytes in front of what the server will encrypt.
                if !input.is_empty() {
                    return Err(Verdict::Unanswered("unencrypted bytes in front of TLS".to_owned()));
                }
                line = line.secured(tls, host)?;
                exchange.handle_secured(&mut out);
            }
            Step::More if out.is_empty() => receive(&mut line, &mut input)?,
            Step::More => {}
        }
    }
}

fn receive(line: &mut Line, input: &mut Vec<u8>) -> Result<(), Verdict> {
    let mut buffer = [0; READ_BYTES];
    match line.read(&mut buffer) {
        Ok(0) => Err(Verdict::Unanswered("it has closed the connection".to_owned())),
        Ok(n) => {
            input.extend_from_slice(buffer.get(..n).unwrap_or_default());
            Ok(())
        }
        Err(error) => Err(unanswered("no answer", &error)),
    }
}

fn unanswered(what: &str, error: &io::Error) -> Verdict {
    Verdict::Unanswered(match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => format!("{what}: the time for it is over"),
        _ => format!("{what}: {error}"),
    })
}

fn connect(host: &str, port: u16, until: Instant) -> Result<TcpStream, Verdict> {
    let found: Vec<SocketAddr> = (host, port)
        .to_socket_addrs()
        .map_err(|error| Verdict::Unanswered(format!("cannot resolve `{host}`: {error}")))?
        .collect();
    let mut last = Verdict::Unanswered(format!("`{host}` has no address"));
    for address in found {
        let left = until.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&address, left.min(CONNECT).max(Duration::from_millis(1))) {
            Ok(stream) => {
                // An exchange of short messages.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => last = unanswered("cannot connect", &error),
        }
    }
    Err(last)
}

/// A connection that ends with its time, however little of it each single wait takes.
struct Timed {
    stream: TcpStream,
    until: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection in clear or in TLS.
enum Line {
    Clear(Timed),
    Tls(Box<Blocking<Timed>>),
}

impl Line {
    fn secured(self, tls: Option<&Connector>, host: &str) -> Result<Line, Verdict> {
        let failed = |why: String| Verdict::Unanswered(format!("TLS: {why}"));
        let Line::Clear(stream) = self else { return Err(failed("it is there already".to_owned())) };
        let tls = tls.ok_or_else(|| failed("it is not configured".to_owned()))?;
        let begun = tls.connect(host).map_err(|error| failed(error.to_string()))?;
        let over = Blocking::handshake(begun, stream).map_err(|error| unanswered("TLS", &error))?;
        Ok(Line::Tls(Box::new(over)))
    }
}

impl Read for Line {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Line::Clear(stream) => stream.read(buffer),
            Line::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Line::Clear(stream) => stream.write(bytes),
            Line::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Line::Clear(stream) => stream.flush(),
            Line::Tls(stream) => stream.flush(),
        }
    }
}
