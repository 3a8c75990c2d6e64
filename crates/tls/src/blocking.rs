//! TLS over a blocking reader and writer.
//!
//! Owns: what is decrypted and not read yet. Must not know: what it reads from.

use crate::{Facts, Stream, TlsError};
use std::io::{self, Read, Write};

/// Bytes of one read.
const READ_BYTES: usize = 16 * 1024;

/// Plain bytes that are encrypted at a time.
const SEAL_BYTES: usize = 64 * 1024;

/// TLS over a transport that blocks. Errors of kind `InvalidData` are TLS's.
pub struct Blocking<T> {
    transport: T,
    stream: Stream,
    plain: Vec<u8>,
    out: Vec<u8>,
}

impl<T: Read + Write> Blocking<T> {
    /// Shakes hands.
    ///
    /// # Errors
    /// The transport's, TLS's, or the end of the transport before the handshake was done.
    pub fn handshake(stream: Stream, transport: T) -> io::Result<Blocking<T>> {
        let mut line = Blocking { transport, stream, plain: Vec::new(), out: Vec::new() };
        line.process(&mut [])?;
        while line.stream.is_handshaking() {
            if line.receive()? == 0 {
                let why = "the peer closed the connection in the handshake";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
            }
        }
        Ok(line)
    }

    /// What it lies over.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// What the handshake came to.
    pub fn facts(&self) -> Option<Facts> {
        self.stream.facts()
    }

    fn receive(&mut self) -> io::Result<usize> {
        let mut bytes = [0; READ_BYTES];
        let n = self.transport.read(&mut bytes)?;
        self.process(&mut bytes[..n])?;
        Ok(n)
    }

    fn process(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let done = self.stream.handle_input(bytes, &mut self.plain, &mut self.out);
        let sent = self.send();
        done.map_err(broken)?;
        sent
    }

    fn send(&mut self) -> io::Result<()> {
        let out = std::mem::take(&mut self.out);
        self.transport.write_all(&out)
    }
}

fn broken(error: TlsError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl<T: Read + Write> Read for Blocking<T> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.plain.is_empty() {
            if self.stream.is_peer_closed() || self.receive()? == 0 {
                return Ok(0);
            }
        }
        let n = self.plain.len().min(buf.len());
        buf[..n].copy_from_slice(&self.plain[..n]);
        self.plain.drain(..n);
        Ok(n)
    }
}

impl<T: Read + Write> Write for Blocking<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = &bytes[..bytes.len().min(SEAL_BYTES)];
        self.stream.encrypt(part, &mut self.out).map_err(broken)?;
        self.send()?;
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.transport.flush()
    }
}
