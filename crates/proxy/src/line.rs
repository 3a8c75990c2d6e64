//! A connection's transport: a socket, with or without TLS, with or without packing over it.
//!
//! Owns: the socket, and the state that TLS and packing keep for it. On a plain connection each call is the
//! socket's own behind one branch. Must not know: what the bytes mean, whose connection it is.
//!
//! The costly step of a handshake can be moved to another thread ([`Line::lend`]): until it is back, nothing
//! is read or written.
//!
//! Invariants: bytes count as sent when the socket has accepted them as TLS records, not when they are
//! encrypted, so a sender keeps what has not been sent, as with a socket; after `WouldBlock` the caller must
//! repeat the same bytes first; an idle connection keeps no buffer here, except for the tickets of a client
//! that has not been sent anything yet.

use packed::Packed;
use std::io;
use std::sync::Arc;
use weir_net::Net;
use weir_session::Packing;
use weir_session::login::Secured;
use weir_tls::{Stream, TlsError};
use weir_wire::FaultKind;

/// Plain bytes that are encrypted at a time: some records of 16 kB, so that a slow peer leaves little behind.
const SEAL_BYTES: usize = 64 * 1024;

/// Reads from a socket in one call, when what comes is not plain text for anybody (tickets, half records).
const READS: u32 = 8;

/// A socket, perhaps with TLS.
pub struct Line<S> {
    socket: S,
    /// The kernel may have more bytes of the peer.
    pub readable: bool,
    /// The end of the peer's bytes has been announced, which may stand right behind a short read: read until
    /// it is met.
    pub hup: bool,
    over: Option<Box<Over>>,
}

/// What stands over a socket.
#[derive(Default)]
pub struct Over {
    tls: Option<Tls>,
    packed: Option<Packed>,
}

/// What TLS keeps for a connection.
struct Tls {
    /// Away while another thread takes a step of the handshake.
    stream: Option<Stream>,
    /// Decrypted and not yet taken.
    plain: Vec<u8>,
    /// Of the peer, read before TLS began.
    early: Vec<u8>,
    /// Encrypted and not yet taken by the socket.
    out: Vec<u8>,
    /// Plain bytes that `out` ends with. Their sender still has them.
    owed: usize,
    /// The handshake has been reported to the login machine.
    told: bool,
    /// The peer's hello has been answered: what is left of the handshake is cheap.
    answered: bool,
    /// The socket's end has been announced. Writing behind it would be an error, for which the connection is
    /// reset, and what was said before would be lost with it.
    shut: bool,
    /// `out` holds tickets only. Nobody waits for these: they go with the next bytes, in one packet.
    tickets_only: bool,
}

/// What a read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Bytes; 0 is the end of the stream.
    pub len: usize,
    /// There is nothing more now. Not to be believed when the peer has announced its end.
    pub drained: bool,
}

impl<S> Line<S> {
    /// Without TLS.
    pub fn new(socket: S) -> Self {
        Line::with(socket, None)
    }

    /// As it was before it was taken apart.
    pub fn with(socket: S, over: Option<Box<Over>>) -> Self {
        Line { socket, readable: false, hup: false, over }
    }

    fn tls(&self) -> Option<&Tls> {
        self.over.as_deref()?.tls.as_ref()
    }

    fn tls_mut(&mut self) -> Option<&mut Tls> {
        self.over.as_deref_mut()?.tls.as_mut()
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The socket and what stands over it, to go elsewhere together.
    pub fn into_parts(self) -> (S, Option<Box<Over>>) {
        (self.socket, self.over)
    }

    /// From here on all bytes are packed. `early` was read already and belongs to it; `clear` is what was
    /// said before, and not yet sent. What is packed stays so.
    pub fn pack(&mut self, packing: Box<dyn Packing>, early: Vec<u8>, clear: Vec<u8>) {
        let over = self.over.get_or_insert_default();
        over.packed = Some(Packed::new(packing, early, clear));
    }

    /// TLS begins. `early` was read already and belongs to it; `clear` is what the socket has not taken yet
    /// of what was said before.
    pub fn secure(&mut self, stream: Stream, early: &[u8], clear: &[u8]) {
        let (plain, out) = (Vec::new(), clear.to_vec());
        let tls = Tls {
            stream: Some(stream),
            plain,
            early: early.to_vec(),
            out,
            owed: 0,
            told: false,
            answered: false,
            shut: false,
            tickets_only: false,
        };
        self.over = Some(Box::new(Over { tls: Some(tls), packed: None }));
    }

    /// A handshake is under way.
    #[inline]
    pub fn is_handshaking(&self) -> bool {
        self.tls().is_some_and(|tls| !tls.told && tls.is_handshaking())
    }

    /// The next step of a handshake is the costly one: the peer's hello is to be answered, by a key exchange
    /// and a signature.
    #[inline]
    pub fn is_expecting_hello(&self) -> bool {
        self.tls().is_some_and(|tls| !tls.answered && tls.stream.is_some())
    }

    /// A step of the handshake is being taken elsewhere.
    #[inline]
    pub fn is_lent(&self) -> bool {
        self.tls().is_some_and(|tls| tls.stream.is_none())
    }

    /// Reads what is there for the handshake, and gives both away for a step to be taken elsewhere. `None`:
    /// the stream is at its end.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there to be read, or there is no TLS; else the connection is broken.
    pub fn lend<N: Net<Socket = S>>(&mut self, net: &mut N, buf: &mut [u8]) -> io::Result<Option<Handshake>> {
        let tls = self.over.as_deref_mut().and_then(|over| over.tls.as_mut());
        let Some(tls) = tls else { return Err(io::ErrorKind::WouldBlock.into()) };
        let input = if tls.early.is_empty() {
            let len = net.recv(&self.socket, buf)?;
            buf[..len].to_vec()
        } else {
            std::mem::take(&mut tls.early)
        };
        if input.is_empty() {
            return Ok(None);
        }
        let Some(stream) = tls.stream.take() else { return Err(io::ErrorKind::WouldBlock.into()) };
        Ok(Some(Handshake { stream, input, plain: Vec::new(), out: Vec::new(), outcome: Ok(()) }))
    }

    /// Takes a lent handshake back after its step, and sends what came of it. An error of kind `InvalidData`
    /// is TLS's.
    ///
    /// # Errors
    /// Of kind `InvalidData`: TLS's own, [`Line`] tells which; else the connection is broken.
    pub fn take_back<N: Net<Socket = S>>(&mut self, net: &mut N, step: Handshake) -> io::Result<()> {
        match self.over.as_deref_mut().and_then(|over| over.tls.as_mut()) {
            Some(tls) => tls.take_back(net, &self.socket, step),
            None => Ok(()),
        }
    }

    /// What a handshake that has just ended came to. Once.
    #[inline]
    pub fn take_secured(&mut self) -> Option<Arc<Secured>> {
        let tls = self.tls_mut().filter(|tls| !tls.told)?;
        let facts = tls.stream.as_ref()?.facts()?;
        tls.told = true;
        Some(Arc::new(weir_config::secured(facts)))
    }

    /// What is known of the TLS that is there.
    pub fn secured(&self) -> Option<Arc<Secured>> {
        self.tls()?.stream.as_ref()?.facts().map(|facts| Arc::new(weir_config::secured(facts)))
    }

    /// There is TLS, or the beginning of it.
    #[inline]
    pub fn is_tls(&self) -> bool {
        self.tls().is_some()
    }

    /// Bytes of TLS itself, or packed ones, wait for the socket.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.over.as_deref().is_some_and(Over::has_unsent)
    }

    /// Reads what is there. An error of kind `InvalidData` is TLS's.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there; `InvalidData`: TLS's own; else the connection is broken.
    #[inline]
    pub fn recv<N: Net<Socket = S>>(&mut self, net: &mut N, buf: &mut [u8]) -> io::Result<Received> {
        match &mut self.over {
            None => read(net, &self.socket, buf),
            Some(over) => over.recv(net, &self.socket, buf, self.hup),
        }
    }

    /// Writes what there is room for.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room; else the connection is broken.
    #[inline]
    pub fn send<N: Net<Socket = S>>(&mut self, net: &mut N, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.over {
            None => net.send(&self.socket, bytes),
            Some(over) => over.send(net, &self.socket, bytes),
        }
    }

    /// Begins a handshake (as a client), or sends what TLS has to say of its own accord.
    ///
    /// # Errors
    /// `InvalidData`: TLS's own; else the connection is broken.
    pub fn nudge<N: Net<Socket = S>>(&mut self, net: &mut N) -> io::Result<()> {
        let Some(over) = self.over.as_deref_mut() else { return Ok(()) };
        if let Some(tls) = over.tls.as_mut().filter(|tls| tls.is_handshaking()) {
            tls.process(net, &self.socket, &mut [])?;
        }
        match over.flush(net, &self.socket) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            flushed => flushed,
        }
    }

    /// Tells the peer that nothing more will come.
    pub fn shutdown_write<N: Net<Socket = S>>(&mut self, net: &mut N) {
        if let Some(over) = self.over.as_deref_mut()
            && over.packed.is_some()
        {
            let _ = over.flush(net, &self.socket);
        }
        self.say_farewell(net);
        let _ = net.shutdown_write(&self.socket);
    }

    /// TLS's own word for the end (RFC 8446, section 6.1): an end without it may be an attacker's, and is an
    /// error to some.
    fn say_farewell<N: Net<Socket = S>>(&mut self, net: &mut N) {
        let tls = self.over.as_deref_mut().and_then(|over| over.tls.as_mut());
        if let Some(tls) = tls.filter(|tls| !tls.shut) {
            // Who cannot take it now learns the same from the socket.
            if let Some(stream) = &mut tls.stream {
                let _ = stream.close(&mut tls.out);
            }
            let _ = tls.flush(net, &self.socket);
            tls.shut = true;
        }
    }

    /// Closes it.
    pub fn close<N: Net<Socket = S>>(mut self, net: &mut N, abort: bool) {
        if !abort && !self.hup {
            self.say_farewell(net);
        }
        net.close(self.socket, abort);
    }
}

fn read<N: Net>(net: &mut N, socket: &N::Socket, buf: &mut [u8]) -> io::Result<Received> {
    let len = net.recv(socket, buf)?;
    Ok(Received { len, drained: len < buf.len() })
}

/// Sends what is kept, and keeps what is not taken. Nothing is kept of the room for it.
fn send_kept(kept: &mut Vec<u8>, mut below: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<()> {
    let mut sent = 0;
    let outcome = loop {
        if sent == kept.len() {
            break Ok(());
        }
        match below(&kept[sent..]) {
            Ok(n) => sent += n,
            Err(e) => break Err(e),
        }
    };
    if sent == kept.len() {
        *kept = Vec::new();
    } else {
        kept.drain(..sent);
    }
    outcome
}

impl Over {
    fn has_unsent(&self) -> bool {
        let tls = self.tls.as_ref();
        tls.is_some_and(|tls| !tls.out.is_empty() && !tls.tickets_only && !tls.shut)
            || self.packed.as_ref().is_some_and(Packed::has_unsent)
    }

    fn recv<N: Net>(
        &mut self,
        net: &mut N,
        socket: &N::Socket,
        buf: &mut [u8],
        hup: bool,
    ) -> io::Result<Received> {
        let tls = &mut self.tls;
        let mut below = |buf: &mut [u8]| match tls {
            None => read(net, socket, buf),
            Some(tls) => tls.recv(net, socket, buf, hup),
        };
        match &mut self.packed {
            None => below(buf),
            Some(packed) => packed.recv(buf, below),
        }
    }

    fn send<N: Net>(&mut self, net: &mut N, socket: &N::Socket, bytes: &[u8]) -> io::Result<usize> {
        let tls = &mut self.tls;
        let mut below = |bytes: &[u8]| match tls {
            None => net.send(socket, bytes),
            Some(tls) => tls.send(net, socket, bytes),
        };
        match &mut self.packed {
            None => below(bytes),
            Some(packed) => packed.send(bytes, below),
        }
    }

    /// Sends what is packed and what is encrypted, or as much as the socket takes.
    fn flush<N: Net>(&mut self, net: &mut N, socket: &N::Socket) -> io::Result<()> {
        let tls = &mut self.tls;
        if let Some(packed) = &mut self.packed {
            packed.flush(|bytes| match tls {
                None => net.send(socket, bytes),
                Some(tls) => tls.send(net, socket, bytes),
            })?;
        }
        tls.as_mut().map_or(Ok(()), |tls| tls.flush(net, socket))
    }
}

/// What a client or a server did that its connection has ended by.
pub fn kind_of(error: &io::Error) -> FaultKind {
    match error.kind() {
        io::ErrorKind::InvalidInput => FaultKind::ClientProtocol,
        _ => FaultKind::ClientGone,
    }
}

fn broken(error: TlsError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// A handshake without its connection: one step of it can be taken on any thread.
pub struct Handshake {
    stream: Stream,
    /// Of the peer.
    input: Vec<u8>,
    /// What the step gives, as for [`Stream::handle_input`].
    plain: Vec<u8>,
    out: Vec<u8>,
    outcome: Result<(), TlsError>,
}

impl Handshake {
    /// Takes the step: a fifth of a millisecond, several with a certificate of RSA.
    #[must_use]
    pub fn run(mut self) -> Handshake {
        let Handshake { stream, input, plain, out, outcome } = &mut self;
        *outcome = stream.handle_input(input, plain, out);
        self
    }
}

impl Tls {
    /// Also while it is lent.
    #[inline]
    fn is_handshaking(&self) -> bool {
        self.stream.as_ref().is_none_or(Stream::is_handshaking)
    }

    fn take_back<N: Net>(&mut self, net: &mut N, socket: &N::Socket, step: Handshake) -> io::Result<()> {
        let Handshake { stream, plain, out, outcome, .. } = step;
        self.stream = Some(stream);
        self.plain.extend_from_slice(&plain);
        self.out.extend_from_slice(&out);
        self.after(net, socket, true, outcome)
    }

    fn recv<N: Net>(
        &mut self,
        net: &mut N,
        socket: &N::Socket,
        buf: &mut [u8],
        hup: bool,
    ) -> io::Result<Received> {
        for _ in 0..READS {
            if !self.plain.is_empty() {
                return Ok(self.take_plain(buf, false));
            }
            let Some(stream) = &self.stream else { return Err(io::ErrorKind::WouldBlock.into()) };
            if stream.is_peer_closed() {
                return Ok(Received { len: 0, drained: true });
            }
            let failed = stream.is_failed();
            if !self.early.is_empty() {
                let mut early = std::mem::take(&mut self.early);
                self.process(net, socket, &mut early)?;
                continue;
            }
            let len = net.recv(socket, buf)?;
            // After an error what the peer still sends only has to be taken away.
            if len == 0 || failed {
                return Ok(Received { len, drained: len < buf.len() });
            }
            self.process(net, socket, &mut buf[..len])?;
            if !self.plain.is_empty() {
                return Ok(self.take_plain(buf, len < buf.len()));
            }
            // The kernel need not be asked again for what it does not have.
            if len < buf.len() && !hup {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        Err(io::ErrorKind::Interrupted.into())
    }

    fn take_plain(&mut self, buf: &mut [u8], drained: bool) -> Received {
        let len = self.plain.len().min(buf.len());
        buf[..len].copy_from_slice(&self.plain[..len]);
        if len == self.plain.len() {
            self.plain = Vec::new();
        } else {
            self.plain.drain(..len);
        }
        let closed = self.stream.as_ref().is_some_and(Stream::is_peer_closed);
        Received { len, drained: drained && self.plain.is_empty() && !closed }
    }

    /// Takes bytes of the peer, and sends what TLS answers by itself.
    fn process<N: Net>(&mut self, net: &mut N, socket: &N::Socket, bytes: &mut [u8]) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let shaking = stream.is_handshaking();
        let done = stream.handle_input(bytes, &mut self.plain, &mut self.out);
        self.after(net, socket, shaking, done)
    }

    /// The peer's bytes have been taken: sends what TLS answers by itself. `shaking`: it was in its handshake
    /// before.
    fn after<N: Net>(
        &mut self,
        net: &mut N,
        socket: &N::Socket,
        shaking: bool,
        done: Result<(), TlsError>,
    ) -> io::Result<()> {
        // One that has failed has its answer, even where there is no alert for it.
        self.answered |= done.is_err() || !self.out.is_empty();
        let heard_out = self.stream.as_ref().is_some_and(Stream::is_heard_out);
        self.tickets_only = done.is_ok() && shaking && heard_out;
        if self.tickets_only {
            return Ok(());
        }
        match self.flush(net, socket) {
            Err(e) if e.kind() != io::ErrorKind::WouldBlock && done.is_ok() => return Err(e),
            Ok(()) | Err(_) => {}
        }
        done.map_err(broken)
    }

    /// Sends what is encrypted, or as much as the socket takes.
    fn flush<N: Net>(&mut self, net: &mut N, socket: &N::Socket) -> io::Result<()> {
        if self.shut {
            self.out = Vec::new();
        }
        let outcome = send_kept(&mut self.out, |bytes| net.send(socket, bytes));
        self.tickets_only = false;
        outcome
    }

    fn send<N: Net>(&mut self, net: &mut N, socket: &N::Socket, bytes: &[u8]) -> io::Result<usize> {
        if !self.tickets_only {
            self.flush(net, socket)?;
        }
        let mut sent = std::mem::take(&mut self.owed).min(bytes.len());
        while sent < bytes.len() {
            if self.is_handshaking() {
                return if sent > 0 { Ok(sent) } else { Err(io::ErrorKind::WouldBlock.into()) };
            }
            let part = &bytes[sent..bytes.len().min(sent + SEAL_BYTES)];
            let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::WouldBlock.into()) };
            stream.encrypt(part, &mut self.out).map_err(broken)?;
            match self.flush(net, socket) {
                Ok(()) => sent += part.len(),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.owed = part.len();
                    return if sent > 0 { Ok(sent) } else { Err(e) };
                }
                Err(e) => return Err(e),
            }
        }
        Ok(sent)
    }
}

mod packed;

#[cfg(test)]
mod tests;
