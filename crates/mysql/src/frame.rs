//! Packets: a length of three bytes, a sequence number, and up to 16,777,215 bytes of payload (MySQL
//! protocol, "MySQL Packets").
//!
//! Owns: headers and how a payload is cut into packets. A payload of 16,777,215 bytes or more goes on in
//! the next packet; one of an exact multiple ends with an empty packet.
//! Must not know: what a payload means.

use weir_wire::{Fault, FaultKind};

/// Bytes of a packet's header.
pub const HEADER_BYTES: usize = 4;

/// Bytes of payload in one packet at most. A packet this long has a successor.
pub const MAX_PAYLOAD_BYTES: usize = 0xFF_FF_FF;

/// A packet's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes of payload in this packet.
    pub len: usize,
    /// Sequence number: 0 at the first packet of a command, one more for each packet of either side.
    pub seq: u8,
}

impl Header {
    /// The header at the start of `input`, if all of it is there.
    #[inline]
    pub fn read(input: &[u8]) -> Option<Header> {
        let &[a, b, c, seq] = input.first_chunk::<HEADER_BYTES>()?;
        Some(Header { len: u32::from_le_bytes([a, b, c, 0]) as usize, seq })
    }

    /// Appends the header.
    #[inline]
    pub fn write(self, out: &mut Vec<u8>) {
        debug_assert!(self.len <= MAX_PAYLOAD_BYTES);
        let [a, b, c, _] = (self.len as u32).to_le_bytes();
        out.extend_from_slice(&[a, b, c, self.seq]);
    }

    /// Bytes of header and payload.
    #[inline]
    pub fn total(self) -> usize {
        HEADER_BYTES + self.len
    }

    /// The payload goes on in the next packet.
    #[inline]
    pub fn continues(self) -> bool {
        self.len == MAX_PAYLOAD_BYTES
    }
}

/// The packet at the start of `input` with its payload, if it is whole. For packets that are understood and
/// therefore short.
///
/// # Errors
/// `kind` when the packet is longer than `limit_bytes` or goes on in a second one.
pub fn whole(input: &[u8], limit_bytes: usize, kind: FaultKind) -> Result<Option<(Header, &[u8])>, Fault> {
    let Some(header) = Header::read(input) else { return Ok(None) };
    if header.len > limit_bytes || header.continues() {
        return Err(Fault::new(kind, format!("a packet of {} bytes", header.len)));
    }
    Ok(input.get(HEADER_BYTES..header.total()).map(|payload| (header, payload)))
}

/// Appends a packet whose payload `write` appends. The payload must be short; a longer one is cut as the
/// protocol wants. Returns the sequence number of the next packet.
pub fn put(out: &mut Vec<u8>, seq: u8, write: impl FnOnce(&mut Vec<u8>)) -> u8 {
    let start = out.len();
    Header { len: 0, seq }.write(out);
    write(out);
    let len = out.len() - start - HEADER_BYTES;
    if len < MAX_PAYLOAD_BYTES {
        let [a, b, c, _] = (len as u32).to_le_bytes();
        out[start] = a;
        out[start + 1] = b;
        out[start + 2] = c;
        return seq.wrapping_add(1);
    }
    let payload = out.split_off(start + HEADER_BYTES);
    out.truncate(start);
    put_payload(out, seq, &payload)
}

/// Appends `payload` in as many packets as it needs. Returns the sequence number of the next packet.
pub fn put_payload(out: &mut Vec<u8>, mut seq: u8, payload: &[u8]) -> u8 {
    let mut rest = payload;
    loop {
        let (piece, tail) = rest.split_at(rest.len().min(MAX_PAYLOAD_BYTES));
        let header = Header { len: piece.len(), seq };
        header.write(out);
        out.extend_from_slice(piece);
        seq = seq.wrapping_add(1);
        rest = tail;
        if !header.continues() {
            return seq;
        }
    }
}

/// The payload of a request that is given with its headers: the headers between its packets are left
/// out. `None` when `request` is not a whole number of packets.
pub fn payload_of(request: &[u8]) -> Option<std::borrow::Cow<'_, [u8]>> {
    let header = Header::read(request)?;
    if !header.continues() {
        let payload = request.get(HEADER_BYTES..)?;
        return (payload.len() == header.len).then_some(payload.into());
    }
    let mut joined = Vec::with_capacity(request.len());
    let mut rest = request;
    loop {
        let header = Header::read(rest)?;
        joined.extend_from_slice(rest.get(HEADER_BYTES..header.total())?);
        rest = rest.get(header.total()..)?;
        if !header.continues() {
            return rest.is_empty().then_some(joined.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_multiples_end_with_an_empty_packet() {
        for (len, packets) in [(0, 1), (1, 1), (MAX_PAYLOAD_BYTES - 1, 1), (MAX_PAYLOAD_BYTES, 2)] {
            let payload = vec![7; len];
            let mut out = Vec::new();
            assert_eq!(put_payload(&mut out, 255, &payload), 255u8.wrapping_add(packets));
            assert_eq!(out.len(), len + usize::from(packets) * HEADER_BYTES);
            assert_eq!(payload_of(&out).as_deref(), Some(&payload[..]));
            let mut again = Vec::new();
            put(&mut again, 255, |out| out.extend_from_slice(&payload));
            assert_eq!(again, out);
        }
    }

    #[test]
    fn half_packets_are_not_whole() {
        let mut out = Vec::new();
        put(&mut out, 3, |out| out.extend_from_slice(b"abc"));
        for n in 0..out.len() {
            assert_eq!(whole(&out[..n], 100, FaultKind::ClientTooLarge).unwrap(), None);
            assert_eq!(payload_of(&out[..n]), None);
        }
        let (header, payload) = whole(&out, 100, FaultKind::ClientTooLarge).unwrap().unwrap();
        assert_eq!((header.seq, payload), (3, &b"abc"[..]));
        assert!(whole(&out, 2, FaultKind::ClientTooLarge).is_err());
        assert!(whole(&[255, 255, 255, 0], usize::MAX, FaultKind::ServerTooLarge).is_err());
    }
}
