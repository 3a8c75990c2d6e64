//! The header by which a load balancer names the client whose connection it forwards: the PROXY protocol,
//! versions 1 and 2 (haproxy.org, `proxy-protocol.txt`).
//!
//! Owns: the two forms, their bounds. Must not know: which senders are trusted.
//!
//! Invariants: the header is complete or absent, nothing is decided by a part of it except that it cannot
//! become one; extensions (TLVs) are skipped, never read.

use crate::cursor::{Reader, Short};
use crate::limits::PROXY_HEADER_BYTES;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Version 2 begins with these bytes (section 2.2).
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 1 begins with these (section 2.1).
const WORD: &[u8] = b"PROXY ";
/// The longest line of version 1, with its CRLF (section 2.1).
const LINE_BYTES: usize = 107;
/// Signature, command, family and length of version 2.
const FIXED_BYTES: usize = 16;

/// Whose connection it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forwarded {
    /// The balancer's own: it asks whether we live.
    Local,
    /// Somebody's whom the balancer does not name, or not by an address of the Internet.
    Unknown,
    /// This client's.
    From(SocketAddr),
}

/// What is wrong with a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    /// The connection does not begin with one.
    Missing,
    /// It is none of the forms there are.
    Malformed,
    /// Longer than its form allows, or than [`PROXY_HEADER_BYTES`].
    TooLong,
}

impl std::fmt::Display for HeaderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            HeaderError::Missing => "the connection does not begin with a PROXY header",
            HeaderError::Malformed => "malformed PROXY header",
            HeaderError::TooLong => "the PROXY header is too long",
        })
    }
}

impl std::error::Error for HeaderError {}

/// Reads the header at the start of a connection: its bytes and what it says, or `None` until it is whole.
///
/// # Errors
/// As soon as no further byte can make a header of it.
pub fn read(input: &[u8]) -> Result<Option<(usize, Forwarded)>, HeaderError> {
    if begins(input, &SIGNATURE) {
        return read_v2(input);
    }
    if begins(input, WORD) {
        return read_v1(input);
    }
    Err(HeaderError::Missing)
}

/// As far as it is there, it is the beginning of `whole`.
fn begins(input: &[u8], whole: &[u8]) -> bool {
    let len = input.len().min(whole.len());
    input[..len] == whole[..len]
}

fn read_v1(input: &[u8]) -> Result<Option<(usize, Forwarded)>, HeaderError> {
    let seen = &input[..input.len().min(LINE_BYTES)];
    let Some(end) = seen.windows(2).position(|two| two == b"\r\n") else {
        // A line ends where it may: what has no end in that many bytes has none.
        return if seen.len() == LINE_BYTES { Err(HeaderError::TooLong) } else { Ok(None) };
    };
    let line = std::str::from_utf8(&seen[..end]).map_err(|_| HeaderError::Malformed)?;
    let rest = line.get(WORD.len()..).ok_or(HeaderError::Malformed)?;
    // What stands behind UNKNOWN says nothing.
    let said = if rest == "UNKNOWN" || rest.starts_with("UNKNOWN ") {
        Forwarded::Unknown
    } else {
        Forwarded::From(line_source(rest).ok_or(HeaderError::Malformed)?)
    };
    Ok(Some((end + 2, said)))
}

/// `TCP4 SOURCE DESTINATION SOURCE_PORT DESTINATION_PORT`, by single spaces.
fn line_source(text: &str) -> Option<SocketAddr> {
    let mut words = text.split(' ');
    let v6 = match words.next()? {
        "TCP4" => false,
        "TCP6" => true,
        _ => return None,
    };
    let mut address = || {
        let word = words.next()?;
        if v6 {
            word.parse::<Ipv6Addr>().ok().map(IpAddr::from)
        } else {
            word.parse::<Ipv4Addr>().ok().map(IpAddr::from)
        }
    };
    let (source, _) = (address()?, address()?);
    let (port, _) = (port(words.next()?)?, port(words.next()?)?);
    words.next().is_none().then_some(SocketAddr::new(source, port))
}

/// A decimal number without sign and leading zeros.
fn port(word: &str) -> Option<u16> {
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    (digits && (word == "0" || !word.starts_with('0'))).then(|| word.parse().ok())?
}

fn read_v2(input: &[u8]) -> Result<Option<(usize, Forwarded)>, HeaderError> {
    let mut r = Reader::new(input);
    if r.take(SIGNATURE.len()).is_err() {
        return Ok(None);
    }
    // The version stands before all that could be waited for.
    let command = match r.u8() {
        Ok(0x20) => Forwarded::Local,
        Ok(0x21) => Forwarded::Unknown,
        Ok(_) => return Err(HeaderError::Malformed),
        Err(Short) => return Ok(None),
    };
    let (Ok(family), Ok(len)) = (r.u8(), r.u16_be()) else { return Ok(None) };
    let total = FIXED_BYTES + usize::from(len);
    // AF_UNSPEC, then INET, INET6 and UNIX, each as stream; a datagram is not what carries a database's
    // protocol.
    let address_bytes = match family {
        0x00 => 0,
        0x11 => 12,
        0x21 => 36,
        0x31 => 216,
        // Of the balancer's own connection nothing is looked at.
        _ if command == Forwarded::Local => 0,
        _ => return Err(HeaderError::Malformed),
    };
    if command != Forwarded::Local && usize::from(len) < address_bytes {
        return Err(HeaderError::Malformed);
    }
    if total > PROXY_HEADER_BYTES {
        return Err(HeaderError::TooLong);
    }
    let Ok(body) = r.take(usize::from(len)) else { return Ok(None) };
    if command == Forwarded::Local {
        return Ok(Some((total, Forwarded::Local)));
    }
    let said = match family {
        0x11 => v2_source(body, |r| Ok(IpAddr::from(r.array::<4>()?))),
        0x21 => v2_source(body, |r| Ok(IpAddr::from(r.array::<16>()?))),
        _ => Ok(Forwarded::Unknown),
    };
    Ok(Some((total, said.map_err(|Short| HeaderError::Malformed)?)))
}

/// Source and destination, then their ports.
fn v2_source(
    body: &[u8],
    address: impl Fn(&mut Reader<'_>) -> Result<IpAddr, Short>,
) -> Result<Forwarded, Short> {
    let mut r = Reader::new(body);
    let (source, _) = (address(&mut r)?, address(&mut r)?);
    Ok(Forwarded::From(SocketAddr::new(source, r.u16_be()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let mut out = SIGNATURE.to_vec();
        out.extend_from_slice(&[command, family]);
        out.extend_from_slice(&u16::try_from(body.len()).unwrap().to_be_bytes());
        out.extend_from_slice(body);
        out
    }

    fn from(text: &str) -> Forwarded {
        Forwarded::From(text.parse().unwrap())
    }

    fn headers() -> Vec<(Vec<u8>, Forwarded)> {
        let v4 = [192, 0, 2, 7, 10, 0, 0, 1, 0x30, 0x39, 0x19, 0x20];
        let mut v6 = [0u8; 36];
        v6[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        v6[15] = 9;
        v6[32..34].copy_from_slice(&[0x30, 0x39]);
        let with_tlvs = |body: &[u8]| [body, &[0x20, 0, 8, 1, 0, 0, 0, 0, 0x21, 0, 0], &[0x04; 700]].concat();
        vec![
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 12345 6432\r\n".to_vec(), from("192.0.2.7:12345")),
            (b"PROXY TCP6 2001:db8::9 ::1 12345 6432\r\n".to_vec(), from("[2001:db8::9]:12345")),
            (b"PROXY UNKNOWN\r\n".to_vec(), Forwarded::Unknown),
            (b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n".to_vec(), Forwarded::Unknown),
            (v2(0x21, 0x11, &v4), from("192.0.2.7:12345")),
            (v2(0x21, 0x21, &v6), from("[2001:db8::9]:12345")),
            (v2(0x21, 0x11, &with_tlvs(&v4)), from("192.0.2.7:12345")),
            (v2(0x21, 0x31, &[b'/'; 216]), Forwarded::Unknown),
            (v2(0x21, 0x00, b"what is not looked at"), Forwarded::Unknown),
            (v2(0x20, 0x00, &[]), Forwarded::Local),
            (v2(0x20, 0x11, &v4), Forwarded::Local),
        ]
    }
    #[test]
    fn a_header_says_the_same_however_it_is_split() {
        for (header, said) in headers() {
            let all = [&header[..], b"what follows"].concat();
            assert_eq!(read(&all), Ok(Some((header.len(), said))), "{header:?}");
            for end in 0..header.len() {
                assert_eq!(read(&header[..end]), Ok(None), "{end} of {header:?}");
            }
        }
    }

    #[test]
    fn a_corrupted_byte_never_panics_and_never_takes_more_than_there_is() {
        for (header, _) in headers() {
            for at in 0..header.len() {
                for byte in [0, 1, b' ', b'\r', b'9', 0x7f, 0xff] {
                    let mut bad = header.clone();
                    bad[at] = byte;
                    if let Ok(Some((used, _))) = read(&bad) {
                        assert!(used <= bad.len());
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_header_is_refused_at_once() {
        use HeaderError::{Malformed, Missing, TooLong};
        let long_line = [&b"PROXY UNKNOWN "[..], &[b'x'; 200]].concat();
        let too_long = v2(0x21, 0x11, &vec![0; PROXY_HEADER_BYTES]);
        for (bytes, wanted) in [
            (&b"\x00\x00\x00\x08\x04\xd2\x16\x2f"[..], Missing),
            (b"\x16\x03\x01", Missing),
            (b"PROXX", Missing),
            (b"\r\n\r\nX", Missing),
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 1 2 3\r\n", Malformed),
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 1\r\n", Malformed),
            (b"PROXY TCP4  192.0.2.7 10.0.0.1 1 2\r\n", Malformed),
            (b"PROXY TCP4 ::1 ::1 1 2\r\n", Malformed),
            (b"PROXY TCP6 192.0.2.7 10.0.0.1 1 2\r\n", Malformed),
            (b"PROXY TCP4 192.0.2.07 10.0.0.1 1 2\r\n", Malformed),
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 01 2\r\n", Malformed),
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 +1 2\r\n", Malformed),
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 65536 2\r\n", Malformed),
            (b"PROXY UDP4 192.0.2.7 10.0.0.1 1 2\r\n", Malformed),
            (b"PROXY UNKNOWNX\r\n", Malformed),
            (b"PROXY \xff\r\n", Malformed),
            (&long_line, TooLong),
            (&v2(0x31, 0x11, &[0; 12])[..13], Malformed),
            (&v2(0x22, 0x11, &[0; 12])[..13], Malformed),
            (&v2(0x21, 0x12, &[0; 12])[..16], Malformed),
            (&v2(0x21, 0x41, &[0; 12])[..16], Malformed),
            (&v2(0x21, 0x11, &[0; 11])[..16], Malformed),
            (&v2(0x21, 0x21, &[0; 35])[..16], Malformed),
            (&v2(0x21, 0x31, &[0; 215])[..16], Malformed),
            (&too_long[..16], TooLong),
        ] {
            assert_eq!(read(bytes), Err(wanted), "{bytes:?}");
        }
    }
}
