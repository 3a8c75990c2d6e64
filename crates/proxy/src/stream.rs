//! A connection's bytes: its line, bytes read but not yet processed, bytes written but not yet accepted.
//!
//! Owns: what a read returns and implies for the next one, and how pending bytes are sent. All reads and
//! writes of clients, servers and cancels go through it. Must not know: whose connection it is, what the
//! bytes mean, when it is right to read.
//!
//! Invariants: bytes are sent in the order in which they were written; an idle stream keeps no buffer.

use crate::line::{Line, Received};
use crate::pending::Pending;
use std::io;
use weir_net::Net;
use weir_session::Packing;

/// A line, and what waits on both sides of it.
pub struct Stream<S> {
    /// The transport.
    pub line: Line<S>,
    /// Read and not yet understood.
    pub input: Pending,
    /// Written and not yet taken by the kernel.
    pub output: Pending,
}

/// What a read came to.
#[derive(Debug)]
pub enum Heard {
    /// So many bytes.
    Bytes(usize),
    /// Nothing for anybody; there may be more.
    Again,
    /// Nothing before the next event.
    Nothing,
    /// The peer sends nothing more.
    End,
    /// The connection is broken. Of kind `InvalidData`: its TLS is.
    Failed(io::Error),
}

impl<S> Stream<S> {
    /// Nothing waits.
    pub fn new(line: Line<S>) -> Self {
        Stream { line, input: Pending::default(), output: Pending::default() }
    }

    /// From here on all bytes are packed: those that wait on both sides stand before and behind that.
    pub fn pack(&mut self, packing: Box<dyn Packing>) {
        let (early, clear) = (self.input.as_slice().to_vec(), self.output.as_slice().to_vec());
        self.input.clear();
        self.output.clear();
        self.line.readable |= !early.is_empty();
        self.line.pack(packing, early, clear);
    }

    /// Reads what is there.
    #[inline]
    pub fn hear<N: Net<Socket = S>>(&mut self, net: &mut N, buf: &mut [u8]) -> Heard {
        let received = self.line.recv(net, buf);
        self.heard(received)
    }

    /// What this read came to. Notes whether there may be more.
    #[inline]
    pub fn heard(&mut self, received: io::Result<Received>) -> Heard {
        match received {
            Ok(Received { len: 0, .. }) => Heard::End,
            Ok(Received { len, drained }) => {
                if drained && !self.line.hup {
                    self.line.readable = false;
                }
                Heard::Bytes(len)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.line.readable = false;
                Heard::Nothing
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Heard::Again,
            Err(e) => Heard::Failed(e),
        }
    }

    /// Sends these bytes as far as there is room and nothing waits before them; the rest waits. Returns how
    /// many have gone.
    ///
    /// # Errors
    /// The connection is broken.
    #[inline]
    pub fn say<N: Net<Socket = S>>(&mut self, net: &mut N, bytes: &[u8]) -> io::Result<usize> {
        let mut sent = 0;
        if self.output.is_empty() {
            match self.line.send(net, bytes) {
                Ok(n) => sent = n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
        if sent < bytes.len() {
            self.output.append(&bytes[sent..]);
        }
        Ok(sent)
    }

    /// Sends what waits, as far as there is room. Returns how many bytes have gone, and the error that the
    /// connection is broken by.
    #[inline]
    pub fn flush<N: Net<Socket = S>>(&mut self, net: &mut N) -> (usize, io::Result<()>) {
        if self.line.has_unsent()
            && let Err(e) = self.line.nudge(net)
        {
            return (0, Err(e));
        }
        let mut sent = 0;
        while !self.output.is_empty() {
            match self.line.send(net, self.output.as_slice()) {
                Ok(n) => {
                    sent += n;
                    self.output.consume(n);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return (sent, Err(e)),
            }
        }
        (sent, Ok(()))
    }
}

#[cfg(test)]
mod tests;
