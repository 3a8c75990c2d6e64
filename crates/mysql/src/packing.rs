//! Compressed packets (MySQL protocol, "Compression"): a header of seven bytes, and what is packed by zlib or
//! zstd, or as it is.
//!
//! Owns: the headers and their sequence numbers, which are other ones than those of the packets within, and
//! both algorithms. Must not know: what is packed, whose it is, any socket.
//!
//! Nobody looks at the numbers of the packets within: MySQL's and MariaDB's libraries give those of LOAD DATA
//! LOCAL, and of a payload over 16 MB, the numbers of the compressed packets. Here they become what they are
//! without compression.
//!
//! Invariants: nothing a peer sends makes more bytes than its header announces, nor more than the caller has
//! room for; between two compressed packets nothing is kept; what does not become shorter goes as it is.

use crate::frame;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::cell::{Cell, RefCell};
use weir_wire::{Fault, FaultKind, limits};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

/// Bytes of a header: length as packed, sequence number, length before, 0 if it is not packed.
const HEADER_BYTES: usize = 7;

/// Shorter ones are not worth it. So do the servers.
const WORTH_BYTES: usize = 50;

/// Bytes that are packed at a time: a worker serves others meanwhile.
const PART_BYTES: usize = 32 * 1024;

/// Of zlib, whose levels differ in the packer alone. The servers use 6: a tenth shorter, in three times the
/// time.
const ZLIB_LEVEL: u32 = 1;

/// Of zstd. Those above need hundreds of megabytes.
const ZSTD_LEVELS: std::ops::RangeInclusive<i32> = 1..=9;

/// An unpacker that had more to do than this keeps too much memory to be used again.
const SPARE_BYTES: usize = 256 * 1024;

thread_local! {
    static INFLATE: Cell<Option<Box<Decompress>>> = const { Cell::new(None) };
    static UNZSTD: Cell<Option<Box<Decoder<'static>>>> = const { Cell::new(None) };
    static DEFLATE: RefCell<Compress> = RefCell::new(Compress::new(Compression::new(ZLIB_LEVEL), true));
    static ZSTD: RefCell<Option<(i32, zstd::bulk::Compressor<'static>)>> = const { RefCell::new(None) };
}

/// By what a client packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Zlib,
    Zstd { level: i32 },
}

impl Algorithm {
    /// The level is the client's word.
    pub(crate) fn zstd(level: u8) -> Algorithm {
        Algorithm::Zstd { level: i32::from(level).clamp(*ZSTD_LEVELS.start(), *ZSTD_LEVELS.end()) }
    }
}

/// Both directions of a connection, from the end of its login on.
pub(crate) struct Packing {
    algorithm: Algorithm,
    /// Sequence number of the next header.
    seq: u8,
    /// The last header was the peer's.
    heard_last: bool,
    /// Packets within, in both directions, and the number of the next one.
    heard: Within,
    said: Within,
    number: u8,
    head: [u8; HEADER_BYTES],
    head_len: usize,
    /// The packet under way.
    packet: Option<Packet>,
}

/// Where the packets within begin.
#[derive(Default)]
struct Within {
    /// Bytes of a header that were there.
    head: usize,
    /// Of the payload: announced, and then still to come.
    left: usize,
}

impl Within {
    fn is_between(&self) -> bool {
        self.head == 0
    }

    /// Where the next sequence number stands from `at` on, which goes behind it.
    fn next_number(&mut self, bytes: &[u8], at: &mut usize) -> Option<usize> {
        while let Some(&byte) = bytes.get(*at) {
            if self.head == frame::HEADER_BYTES {
                let len = self.left.min(bytes.len() - *at);
                (*at, self.left) = (*at + len, self.left - len);
                self.head = if self.left == 0 { 0 } else { self.head };
                continue;
            }
            (*at, self.head) = (*at + 1, self.head + 1);
            if self.head < frame::HEADER_BYTES {
                self.left |= usize::from(byte) << (8 * (self.head - 1));
                continue;
            }
            self.head = if self.left == 0 { 0 } else { self.head };
            return Some(*at - 1);
        }
        None
    }
}

/// A compressed packet that is being unpacked.
struct Packet {
    /// Bytes that are still to come.
    packed: usize,
    /// Bytes that are still to be made of them.
    plain: usize,
    len: usize,
    how: How,
}

enum How {
    AsItIs,
    Zlib(Box<Decompress>),
    Zstd(Box<Decoder<'static>>),
}

impl Packing {
    pub(crate) fn new(algorithm: Algorithm) -> Packing {
        Packing {
            algorithm,
            seq: 0,
            heard_last: false,
            heard: Within::default(),
            said: Within::default(),
            number: 0,
            head: [0; HEADER_BYTES],
            head_len: 0,
            packet: None,
        }
    }

    /// Takes bytes of a header; whether it is whole. Returns how many were taken.
    fn take_header(&mut self, input: &[u8]) -> Result<usize, Fault> {
        let taken = input.len().min(HEADER_BYTES - self.head_len);
        self.head[self.head_len..self.head_len + taken].copy_from_slice(&input[..taken]);
        self.head_len += taken;
        if self.head_len < HEADER_BYTES {
            return Ok(taken);
        }
        self.head_len = 0;
        let [a, b, c, seq, d, e, f] = self.head;
        let packed = u32::from_le_bytes([a, b, c, 0]) as usize;
        let plain = u32::from_le_bytes([d, e, f, 0]) as usize;
        // A command begins, unless the numbers have come round within one.
        let comes_round = self.heard_last && self.seq == 0;
        if seq == 0 && !comes_round && self.heard.is_between() {
            self.number = 0;
        }
        self.seq = seq.wrapping_add(1);
        self.heard_last = true;
        let (plain, how) = match (plain, self.algorithm) {
            (0, _) => (packed, How::AsItIs),
            (_, Algorithm::Zlib) => (plain, How::Zlib(inflate())),
            (_, Algorithm::Zstd { .. }) => (plain, How::Zstd(unzstd().map_err(|_| malformed())?)),
        };
        self.packet = Some(Packet { packed, plain, len: plain, how }).filter(|_| packed > 0 || plain > 0);
        Ok(taken)
    }
}

impl weir_session::Packing for Packing {
    fn unpack(&mut self, input: &[u8], buf: &mut [u8]) -> Result<(usize, usize), Fault> {
        let (mut used, mut made) = (0, 0);
        loop {
            let Some(packet) = &mut self.packet else {
                if used == input.len() {
                    return Ok((used, made));
                }
                used += self.take_header(&input[used..])?;
                continue;
            };
            let (took, gave, ended) = packet.step(&input[used..], &mut buf[made..])?;
            let (part, mut at) = (&mut buf[made..made + gave], 0);
            while let Some(seq) = self.heard.next_number(part, &mut at) {
                part[seq] = self.number;
                self.number = self.number.wrapping_add(1);
            }
            used += took;
            made += gave;
            if ended {
                self.packet.take().into_iter().for_each(Packet::spare);
            } else if took == 0 && gave == 0 {
                let is_stuck = made < buf.len() && (packet.packed == 0 || used < input.len());
                return if is_stuck { Err(malformed()) } else { Ok((used, made)) };
            }
        }
    }

    fn is_holding(&self) -> bool {
        self.packet.as_ref().is_some_and(|packet| packet.packed == 0)
    }

    fn pack(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        self.heard_last = false;
        let mut at = 0;
        while let Some(seq) = self.said.next_number(plain, &mut at) {
            self.number = plain[seq].wrapping_add(1);
        }
        for part in plain.chunks(PART_BYTES) {
            let start = out.len();
            out.extend_from_slice(&[0; HEADER_BYTES]);
            let shorter = part.len() >= WORTH_BYTES && put_packed(self.algorithm, part, out);
            if !shorter {
                out.truncate(start + HEADER_BYTES);
                out.extend_from_slice(part);
            }
            let len = out.len() - start - HEADER_BYTES;
            let before = if shorter { part.len() } else { 0 };
            let ([a, b, c, _], [d, e, f, _]) = ((len as u32).to_le_bytes(), (before as u32).to_le_bytes());
            out[start..start + HEADER_BYTES].copy_from_slice(&[a, b, c, self.seq, d, e, f]);
            self.seq = self.seq.wrapping_add(1);
        }
    }
}

impl Packet {
    /// How many bytes of `input` were used and of `buf` made, and whether this was the end.
    fn step(&mut self, input: &[u8], buf: &mut [u8]) -> Result<(usize, usize, bool), Fault> {
        let input = &input[..input.len().min(self.packed)];
        let room = buf.len().min(self.plain);
        let buf = &mut buf[..room];
        let (took, gave, at_end) = match &mut self.how {
            How::AsItIs => {
                let len = input.len().min(buf.len());
                buf[..len].copy_from_slice(&input[..len]);
                (len, len, len == self.packed)
            }
            How::Zlib(inflate) => {
                let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
                let status =
                    inflate.decompress(input, buf, FlushDecompress::None).map_err(|_| malformed())?;
                let took = (inflate.total_in() - before_in) as usize;
                let gave = (inflate.total_out() - before_out) as usize;
                (took, gave, status == Status::StreamEnd)
            }
            How::Zstd(decoder) => {
                let (mut from, mut to) = (InBuffer::around(input), OutBuffer::around(&mut *buf));
                let left = decoder.run(&mut from, &mut to).map_err(|_| malformed())?;
                let (took, gave) = (from.pos(), to.pos());
                (took, gave, left == 0 && took + gave > 0)
            }
        };
        self.packed -= took;
        self.plain -= gave;
        // It ends where both its lengths do.
        let lengths_end = self.packed == 0 && self.plain == 0;
        if at_end && !lengths_end {
            return Err(malformed());
        }
        Ok((took, gave, at_end))
    }

    /// Another packet may need its unpacker.
    fn spare(self) {
        if self.len > SPARE_BYTES {
            return;
        }
        match self.how {
            How::AsItIs => {}
            How::Zlib(inflate) => INFLATE.set(Some(inflate)),
            How::Zstd(decoder) => UNZSTD.set(Some(decoder)),
        }
    }
}

fn inflate() -> Box<Decompress> {
    let Some(mut spare) = INFLATE.take() else { return Box::new(Decompress::new(true)) };
    spare.reset(true);
    spare
}

fn unzstd() -> std::io::Result<Box<Decoder<'static>>> {
    if let Some(mut spare) = UNZSTD.take() {
        spare.reinit()?;
        return Ok(spare);
    }
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(limits::ZSTD_WINDOW_LOG))?;
    Ok(Box::new(decoder))
}

/// Appends `part` as it becomes by packing; false if it does not become shorter.
fn put_packed(algorithm: Algorithm, part: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.resize(start + part.len(), 0);
    let room = &mut out[start..];
    let len = match algorithm {
        Algorithm::Zlib => DEFLATE.with_borrow_mut(|deflate| {
            deflate.reset();
            let done = deflate.compress(part, room, FlushCompress::Finish);
            matches!(done, Ok(Status::StreamEnd)).then(|| deflate.total_out() as usize)
        }),
        Algorithm::Zstd { level } => ZSTD.with_borrow_mut(|kept| {
            if kept.as_ref().is_none_or(|(of, _)| *of != level) {
                *kept = zstd::bulk::Compressor::new(level).ok().map(|made| (level, made));
            }
            kept.as_mut()?.1.compress_to_buffer(part, room).ok()
        }),
    };
    let len = len.filter(|len| *len < part.len());
    out.truncate(start + len.unwrap_or(0));
    len.is_some()
}

fn malformed() -> Fault {
    Fault::new(FaultKind::ClientProtocol, "a compressed packet that cannot be unpacked")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_session::Packing as _;

    const BOTH: [Algorithm; 2] = [Algorithm::Zlib, Algorithm::Zstd { level: 3 }];

    /// Unpacks in pieces, into a buffer of this size.
    fn unpack(algorithm: Algorithm, packed: &[u8], piece: usize, room: usize) -> Result<Vec<u8>, Fault> {
        let (mut packing, mut out) = (Packing::new(algorithm), Vec::new());
        let mut buf = vec![0; room];
        for piece in packed.chunks(piece) {
            let mut at = 0;
            while at < piece.len() || packing.is_holding() {
                let (used, made) = packing.unpack(&piece[at..], &mut buf)?;
                at += used;
                out.extend_from_slice(&buf[..made]);
            }
        }
        Ok(out)
    }

    /// Texts that become shorter, bytes that do not, short ones, and none.
    fn samples() -> Vec<Vec<u8>> {
        let mut noise = 1u32;
        let mut next = move || {
            noise ^= noise << 13;
            noise ^= noise >> 17;
            noise ^= noise << 5;
            noise as u8
        };
        let noise: Vec<u8> = (0..70_000).map(|_| next()).collect();
        let text: Vec<u8> = b"select * from orders where id = 4711; ".repeat(9_000);
        let framed = |payload: &[u8]| {
            let mut out = Vec::new();
            frame::put(&mut out, 0, |out| out.extend_from_slice(payload));
            out
        };
        [b"", &b"select 1"[..], &text[..50], &text, &noise].map(framed).into()
    }

    #[test]
    fn there_and_back_in_all_pieces() {
        for algorithm in BOTH {
            for plain in samples() {
                let mut packed = Vec::new();
                Packing::new(algorithm).pack(&plain, &mut packed);
                for (piece, room) in [(usize::MAX, 1 << 20), (7, 100), (1, 1), (4096, 333)] {
                    if plain.len() > 100_000 && room < 100 {
                        continue;
                    }
                    let piece = piece.min(packed.len().max(1));
                    assert_eq!(unpack(algorithm, &packed, piece, room).unwrap(), plain, "{algorithm:?}");
                }
            }
        }
    }

    #[test]
    fn what_repeats_becomes_shorter_and_noise_no_longer_than_its_headers() {
        for algorithm in BOTH {
            let samples = samples();
            let (mut text, mut noise) = (Vec::new(), Vec::new());
            Packing::new(algorithm).pack(&samples[3], &mut text);
            Packing::new(algorithm).pack(&samples[4], &mut noise);
            assert!(text.len() * 20 < samples[3].len(), "{}", text.len());
            assert_eq!(noise.len(), samples[4].len() + 3 * HEADER_BYTES);
        }
    }

    #[test]
    fn numbers_go_on_from_the_peers_last() {
        let mut packing = Packing::new(Algorithm::Zlib);
        let mut buf = [0; 16];
        assert_eq!(packing.unpack(&[1, 0, 0, 254, 0, 0, 0, 9], &mut buf).unwrap(), (8, 1));
        let mut out = Vec::new();
        packing.pack(&[1, 0], &mut out);
        packing.pack(&[0], &mut out);
        assert_eq!(out, [2, 0, 0, 255, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    }

    /// What the peer wrote, each in a compressed packet of this number, and what the packets' numbers are
    /// then.
    fn numbers_of(packing: &mut Packing, seqs: std::ops::Range<usize>) -> Vec<u8> {
        let mut buf = [0; 64];
        let read = |seq: usize| {
            // Its own number is the compressed packet's.
            let said = [5, 0, 0, seq as u8, 0, 0, 0, 1, 0, 0, seq as u8, b'x'];
            assert_eq!(packing.unpack(&said, &mut buf).unwrap(), (12, 5));
            buf[3]
        };
        seqs.map(read).collect()
    }

    /// The data of LOAD DATA LOCAL has the numbers of its compressed packets, which are fewer or more.
    #[test]
    fn packets_within_have_the_numbers_that_they_have_without_compression() {
        let mut packing = Packing::new(Algorithm::Zlib);
        assert_eq!(numbers_of(&mut packing, 0..1), [0]);
        let (mut out, mut reply) = (Vec::new(), vec![1, 0, 0, 1, 7]);
        packing.pack(&reply, &mut out);
        assert_eq!(numbers_of(&mut packing, 2..300), (2..300).map(|n| n as u8).collect::<Vec<u8>>());
        reply[3] = 44;
        packing.pack(&reply, &mut out);
        assert_eq!(numbers_of(&mut packing, 0..1), [0], "a command begins");
        packing.pack(&[1, 0, 0, 1, 7, 1, 0, 0, 2, 7, 1, 0, 0, 3, 251], &mut out);
        assert_eq!(numbers_of(&mut packing, 2..4), [4, 5]);
    }

    fn put_len(packet: &mut [u8]) {
        let len = (packet.len() - HEADER_BYTES) as u32;
        packet[..3].copy_from_slice(&len.to_le_bytes()[..3]);
    }

    /// A header that announces less than there is, or more; a stream that ends early, goes on, or is none.
    #[test]
    fn lengths_that_are_not_true_end_the_connection() {
        for algorithm in BOTH {
            let mut packed = Vec::new();
            Packing::new(algorithm).pack(&samples()[3][..20_000], &mut packed);
            for announced in [1u32, 19_999, 20_001, 0xFF_FF_FF] {
                let mut wrong = packed.clone();
                wrong[4..7].copy_from_slice(&announced.to_le_bytes()[..3]);
                assert!(
                    unpack(algorithm, &wrong, wrong.len(), 1 << 16).is_err(),
                    "{algorithm:?} {announced}"
                );
            }
            let mut longer = packed.clone();
            longer.push(0);
            put_len(&mut longer);
            assert!(unpack(algorithm, &longer, longer.len(), 1 << 16).is_err(), "{algorithm:?}");
            let mut cut = packed.clone();
            cut.truncate(packed.len() - 1);
            put_len(&mut cut);
            cut.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 1]);
            assert!(unpack(algorithm, &cut, cut.len(), 1 << 16).is_err(), "{algorithm:?}");
            for at in 0..packed.len() {
                let mut broken = packed.clone();
                broken[at] ^= 0x55;
                let _ = unpack(algorithm, &broken, broken.len(), 1 << 16);
            }
        }
    }
}
