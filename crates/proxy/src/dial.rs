//! A login to a server, driven over a stream: for connections that clients get, and for those that carry a
//! cancel.
//!
//! Owns: the wing's login machine, the TLS around it, and the progress of both. Must not know: what the
//! connection is for; the caller gets the result ([`Progress`], or the fault that ends the login), and sends
//! what is pending.
//!
//! Invariants: the machine gets no bytes while its slow work is in progress; a login keeps the TLS settings
//! it began with.

use crate::line::Line;
use crate::stream::{Heard, Stream};
use crate::wing::{Connect, Wing};
use std::io;
use std::sync::Arc;
use weir_auth::{Job, JobDone};
use weir_config::ServerTls;
use weir_net::{Net, Target, Token};
use weir_session::login::{ConnectParams, ConnectStep, Secured, TlsWish};
use weir_tls::SslMode;
use weir_wire::{Fault, FaultKind, limits};

/// A login under way.
pub struct Dial<W: Wing> {
    /// The machine. `None`: there is no login, and the first words are the dialler's own.
    connect: Option<W::Connect>,
    /// The TLS that the machine may ask for.
    tls: Option<Arc<ServerTls>>,
    target: Target,
    /// The transport is up.
    connected: bool,
    /// Slow work is under way elsewhere.
    busy: bool,
    /// TLS has begun.
    secured: bool,
    /// The second try, by the other transport.
    second: bool,
}

/// What a login has come to.
pub enum Progress {
    /// It waits for its server, or for slow work.
    Waits,
    /// Slow work. Its result goes to [`Dial::job_done`].
    Work(Job),
    /// It is over: [`Dial::into_back`].
    LoggedIn,
}

/// Opens a connection whose events come by this token.
///
/// # Errors
/// The system's own.
pub fn open<N: Net>(net: &mut N, target: &Target, token: Token) -> io::Result<N::Socket> {
    let socket = net.connect(target)?;
    net.register(&socket, token)?;
    Ok(socket)
}

/// How a server is to be asked for TLS: at the first try, or at the second by the other transport.
pub fn tls_wish(mode: Option<SslMode>, second: bool) -> TlsWish {
    let wishes = weir_config::tls_wishes(mode.unwrap_or(SslMode::Disable));
    wishes.get(usize::from(second)).or(wishes.last()).copied().unwrap_or_default()
}

impl<W: Wing> Dial<W> {
    /// A login that has not begun; `second`: by the other transport, after the first was refused.
    pub fn new(target: Target, tls: Option<Arc<ServerTls>>, params: ConnectParams, second: bool) -> Self {
        Dial { connect: Some(W::Connect::new(params)), second, ..Dial::bare(target, tls) }
    }

    /// A connection without a login.
    pub fn bare(target: Target, tls: Option<Arc<ServerTls>>) -> Self {
        Dial { connect: None, tls, target, connected: false, busy: false, secured: false, second: false }
    }

    /// TLS has begun.
    pub fn is_secured(&self) -> bool {
        self.secured
    }

    /// The server's own refusal.
    pub fn rejection(&self) -> Option<&[u8]> {
        self.connect.as_ref().and_then(Connect::rejection)
    }

    /// After [`Progress::LoggedIn`]. `None`: there was no login.
    pub fn into_back(self) -> Option<W::Back> {
        self.connect.map(Connect::into_back)
    }

    /// A login that has failed may go through by the other transport, where the mode leaves it open. `tls`:
    /// it had TLS, or the beginning of it.
    pub fn may_try_otherwise(&self, fault: &Fault, tls: bool) -> bool {
        let refused = self.connect.as_ref().is_some_and(Connect::is_transport_refused);
        match self.tls.as_deref().map(|tls| tls.mode) {
            _ if self.second => false,
            Some(SslMode::Prefer) => tls && (refused || fault.kind == FaultKind::ServerTls),
            Some(SslMode::Allow) => !tls && refused,
            _ => false,
        }
    }

    /// The transport may be up. True: it is, and the login has begun.
    ///
    /// # Errors
    /// The connect has failed, or TLS could not begin.
    pub fn begin<N: Net>(&mut self, net: &mut N, stream: &mut Stream<N::Socket>) -> Result<bool, Fault> {
        if self.connected {
            return Ok(true);
        }
        match net.connect_outcome(stream.line.socket()) {
            Ok(true) => self.connected = true,
            Ok(false) => return Ok(false),
            Err(e) => return Err(self.failed(&e)),
        }
        match (self.tls.as_deref().filter(|tls| tls.direct), &mut self.connect) {
            (Some(tls), _) => connect_tls(&mut stream.line, net, tls, &[], &[])?,
            (None, Some(connect)) => connect.start(stream.output.tail_mut()),
            (None, None) => {}
        }
        Ok(true)
    }

    /// Reads, and goes as far as it can.
    ///
    /// # Errors
    /// What the login ends by.
    pub fn go_on<N: Net>(
        &mut self,
        net: &mut N,
        stream: &mut Stream<N::Socket>,
        buf: &mut [u8],
    ) -> Result<Progress, Fault> {
        loop {
            match self.understand(net, stream)? {
                Progress::Waits => {}
                come_to @ (Progress::Work(_) | Progress::LoggedIn) => return Ok(come_to),
            }
            if self.busy || !self.connected || !stream.line.readable {
                return Ok(Progress::Waits);
            }
            let heard = stream.hear(net, buf);
            if let Some(secured) = stream.line.take_secured() {
                self.handle_secured(secured, stream)?;
            }
            match heard {
                Heard::Bytes(len) => stream.input.append(&buf[..len]),
                Heard::Again => {}
                Heard::Nothing => return Ok(Progress::Waits),
                Heard::End => {
                    let text = "the server closed the connection during the login";
                    return Err(Fault::new(FaultKind::ServerUnavailable, text));
                }
                Heard::Failed(e) => return Err(self.failed(&e)),
            }
            if stream.input.len() > limits::LOGIN_BYTES {
                let text = "more bytes in a login than any server sends";
                return Err(Fault::new(FaultKind::ServerTooLarge, text));
            }
        }
    }

    /// Slow work is done.
    ///
    /// # Errors
    /// What the login ends by.
    pub fn job_done<N: Net>(
        &mut self,
        net: &mut N,
        stream: &mut Stream<N::Socket>,
        done: JobDone,
    ) -> Result<Progress, Fault> {
        self.busy = false;
        let Some(connect) = &mut self.connect else { return Ok(Progress::Waits) };
        let step = connect.handle_job(done, stream.output.tail_mut())?;
        self.take_step(net, stream, step)
    }

    /// Gives the machine the bytes that are there.
    fn understand<N: Net>(&mut self, net: &mut N, stream: &mut Stream<N::Socket>) -> Result<Progress, Fault> {
        while !self.busy && !stream.input.is_empty() {
            let Some(connect) = &mut self.connect else { break };
            let (used, step) = connect.handle_input(stream.input.as_slice(), stream.output.tail_mut())?;
            stream.input.consume(used);
            if used == 0 && matches!(step, ConnectStep::More) {
                break;
            }
            match self.take_step(net, stream, step)? {
                Progress::Waits => {}
                come_to @ (Progress::Work(_) | Progress::LoggedIn) => return Ok(come_to),
            }
        }
        let no_login = self.connected && self.connect.is_none();
        Ok(if no_login { Progress::LoggedIn } else { Progress::Waits })
    }

    fn take_step<N: Net>(
        &mut self,
        net: &mut N,
        stream: &mut Stream<N::Socket>,
        step: ConnectStep,
    ) -> Result<Progress, Fault> {
        match step {
            ConnectStep::More => Ok(Progress::Waits),
            ConnectStep::Work(job) => {
                self.busy = true;
                Ok(Progress::Work(job))
            }
            ConnectStep::LoggedIn => Ok(Progress::LoggedIn),
            ConnectStep::Tls => {
                let Some(tls) = &self.tls else {
                    return Err(Fault::new(FaultKind::ServerTls, "there are no settings for TLS"));
                };
                // What was said before goes out in clear, and then all is TLS.
                let (early, clear) = (std::mem::take(&mut stream.input), std::mem::take(&mut stream.output));
                connect_tls(&mut stream.line, net, tls, early.as_slice(), clear.as_slice())?;
                // What was read too early is looked at without waiting for more.
                stream.line.readable |= !early.is_empty();
                Ok(Progress::Waits)
            }
        }
    }

    /// A handshake is done.
    fn handle_secured<S>(&mut self, secured: Arc<Secured>, stream: &mut Stream<S>) -> Result<(), Fault> {
        self.secured = true;
        let Some(connect) = &mut self.connect else { return Ok(()) };
        connect.handle_secured(secured, stream.output.tail_mut())?;
        if self.tls.as_deref().is_some_and(|tls| tls.direct) {
            connect.start(stream.output.tail_mut());
        }
        Ok(())
    }

    fn failed(&self, error: &io::Error) -> Fault {
        let kind = match error.kind() {
            io::ErrorKind::InvalidData => FaultKind::ServerTls,
            _ => FaultKind::ServerUnavailable,
        };
        Fault::new(kind, format!("{}: {error}", self.target))
    }
}

/// Begins TLS with a server as its client, behind what is still to be said in clear.
fn connect_tls<N: Net>(
    line: &mut Line<N::Socket>,
    net: &mut N,
    tls: &ServerTls,
    early: &[u8],
    clear: &[u8],
) -> Result<(), Fault> {
    let failed = |text: String| Fault::new(FaultKind::ServerTls, text);
    let stream = tls.connector.connect(&tls.host).map_err(|error| failed(error.to_string()))?;
    line.secure(stream, early, clear);
    line.nudge(net).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => failed(error.to_string()),
        // The connection itself: no reason to go on in clear, and nothing to say of TLS.
        _ => Fault::new(FaultKind::ServerUnavailable, error.to_string()),
    })
}
