//! What is packed over a socket or its TLS.
//!
//! Owns: packed bytes in both directions that have not been dealt with. Must not know: how they are packed.
//!
//! Invariants: those of [`Line`](super::Line): bytes count as sent when the layer below has taken them.

use super::{READS, Received, send_kept};
use std::io;
use weir_session::Packing;

/// Plain bytes that are packed at a time, so that a slow peer leaves little behind.
const PACK_BYTES: usize = 64 * 1024;

/// The layer's own state.
pub struct Packed {
    packing: Box<dyn Packing>,
    /// Of the peer, not yet unpacked.
    input: Vec<u8>,
    /// Packed and not yet taken by the layer below.
    out: Vec<u8>,
    /// Plain bytes that `out` ends with. Their sender still has them.
    owed: usize,
}

impl Packed {
    /// `early` was read already and belongs to it; `clear` is what was said before, and not yet taken.
    pub fn new(packing: Box<dyn Packing>, early: Vec<u8>, clear: Vec<u8>) -> Packed {
        Packed { packing, input: early, out: clear, owed: 0 }
    }

    /// Bytes wait for the layer below.
    pub fn has_unsent(&self) -> bool {
        !self.out.is_empty()
    }

    /// Reads by `below`, which is given room for packed bytes.
    ///
    /// # Errors
    /// Those of `below`; of kind `InvalidInput`: the peer's bytes are nothing packed.
    pub fn recv(
        &mut self,
        buf: &mut [u8],
        mut below: impl FnMut(&mut [u8]) -> io::Result<Received>,
    ) -> io::Result<Received> {
        // What an earlier read has said may have become wrong.
        let mut drained = false;
        for _ in 0..READS {
            let unpacked = self.packing.unpack(&self.input, buf);
            let (used, len) = unpacked.map_err(|fault| io::Error::new(io::ErrorKind::InvalidInput, fault))?;
            self.input.drain(..used);
            if self.input.is_empty() {
                self.input = Vec::new();
            }
            if len > 0 {
                let drained = drained && self.input.is_empty() && !self.packing.is_holding();
                return Ok(Received { len, drained });
            }
            let received = below(buf)?;
            if received.len == 0 {
                return Ok(received);
            }
            drained = received.drained;
            self.input.extend_from_slice(&buf[..received.len]);
        }
        Err(io::ErrorKind::Interrupted.into())
    }

    /// Sends by `below` what is packed, or as much as it takes.
    ///
    /// # Errors
    /// Those of `below`.
    pub fn flush(&mut self, below: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<()> {
        send_kept(&mut self.out, below)
    }

    /// Packs and sends by `below` what there is room for.
    ///
    /// # Errors
    /// Those of `below`.
    pub fn send(
        &mut self,
        bytes: &[u8],
        mut below: impl FnMut(&[u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.flush(&mut below)?;
        let mut sent = std::mem::take(&mut self.owed).min(bytes.len());
        while sent < bytes.len() {
            let part = &bytes[sent..bytes.len().min(sent + PACK_BYTES)];
            self.packing.pack(part, &mut self.out);
            match self.flush(&mut below) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::Fault;

    /// Packs nothing, and unpacks two bytes at a time.
    struct Slow(Vec<u8>);

    impl Packing for Slow {
        fn unpack(&mut self, input: &[u8], buf: &mut [u8]) -> Result<(usize, usize), Fault> {
            self.0.extend_from_slice(input);
            let len = self.0.len().min(2);
            buf[..len].copy_from_slice(&self.0[..len]);
            self.0.drain(..len);
            Ok((input.len(), len))
        }

        fn is_holding(&self) -> bool {
            !self.0.is_empty()
        }

        fn pack(&mut self, plain: &[u8], out: &mut Vec<u8>) {
            out.extend_from_slice(plain);
        }
    }

    /// More may have come since it was read: no event tells of that again.
    #[test]
    fn what_an_earlier_read_said_of_the_socket_does_not_count() {
        let mut packed = Packed::new(Box::new(Slow(Vec::new())), Vec::new(), Vec::new());
        let mut buf = [0; 8];
        let first = packed.recv(&mut buf, |buf| {
            buf[..4].copy_from_slice(b"abcd");
            Ok(Received { len: 4, drained: true })
        });
        assert_eq!(first.unwrap(), Received { len: 2, drained: false });
        let second = packed.recv(&mut buf, |_| panic!("there is something left"));
        assert_eq!(second.unwrap(), Received { len: 2, drained: false });
        let third = packed.recv(&mut buf, |buf| {
            buf[..2].copy_from_slice(b"ef");
            Ok(Received { len: 2, drained: true })
        });
        assert_eq!(third.unwrap(), Received { len: 2, drained: true });
    }

    /// The sender repeats what was not taken.
    #[test]
    fn bytes_count_as_sent_when_the_layer_below_has_taken_them() {
        let mut packed = Packed::new(Box::new(Slow(Vec::new())), Vec::new(), b"clear ".to_vec());
        let (mut taken, mut room) = (Vec::new(), 8);
        let mut below = |bytes: &[u8]| {
            let len = bytes.len().min(room);
            room -= len;
            taken.extend_from_slice(&bytes[..len]);
            if len == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(len) }
        };
        assert_eq!(packed.send(b"packed", &mut below).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(packed.has_unsent());
        let mut rest = Vec::new();
        let mut below = |bytes: &[u8]| {
            rest.extend_from_slice(bytes);
            Ok(bytes.len())
        };
        assert_eq!(packed.send(b"packed", &mut below).unwrap(), 6);
        assert_eq!([taken, rest].concat(), b"clear packed");
        assert!(!packed.has_unsent());
    }
}
