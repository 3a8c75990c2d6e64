//! Messages without a type byte: StartupMessage, SSLRequest, GSSENCRequest, CancelRequest; and the answer
//! NegotiateProtocolVersion (protocol sections 55.2.1, 55.2.10 to 55.2.12, 55.7).

use crate::frame::{put, put_cstr, put_untyped};
use weir_wire::{Fault, FaultKind, Reader, Short};

/// PostgreSQL's bound on a startup packet (`MAX_STARTUP_PACKET_LENGTH`).
pub const STARTUP_BYTES: usize = 10_000;

/// Major version 3 in the upper half of the version number.
pub const MAJOR_VERSION: u16 = 3;

/// The newest minor version Weir speaks: 2, with cancel keys of up to 256 bytes (PostgreSQL 18).
pub const NEWEST_MINOR: u16 = 2;

/// Bytes of a cancel key in protocol 3.2 (section 55.2.8).
pub const CANCEL_KEY_BYTES: std::ops::RangeInclusive<usize> = 4..=256;

const CANCEL_REQUEST: u32 = 80_877_102;
const SSL_REQUEST: u32 = 80_877_103;
const GSSENC_REQUEST: u32 = 80_877_104;

/// The first thing a client says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum First<'a> {
    /// Wants TLS.
    Ssl,
    /// Wants GSSAPI encryption.
    GssEnc,
    /// Wants to cancel what client `pid` runs.
    Cancel {
        /// The number of the client, from its BackendKeyData.
        pid: u32,
        /// Its secret.
        key: &'a [u8],
    },
    /// Wants a session.
    Startup(Startup<'a>),
    /// Speaks another major version.
    Version {
        /// Upper half of the version number.
        major: u16,
        /// Lower half.
        minor: u16,
    },
}

/// A startup packet of protocol 3.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Startup<'a> {
    /// The minor version asked for.
    pub minor: u16,
    /// Names and values, in order. Names are not checked.
    pub parameters: Vec<(&'a [u8], &'a [u8])>,
}

fn bad(text: &'static str) -> Fault {
    Fault::new(FaultKind::ClientProtocol, text)
}

/// Reads the first message; `None` when it is not there whole. Also says how long it is.
///
/// # Errors
/// A protocol fault when the length is out of bounds (8 to 10,000 bytes, as in PostgreSQL), the parameters
/// are not pairs that end with a NUL, or the key of a cancel request has a length that no server gives out.
pub fn read_first(input: &[u8]) -> Result<Option<(usize, First<'_>)>, Fault> {
    let mut reader = Reader::new(input);
    let Ok(length) = reader.u32_be() else { return Ok(None) };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if !(8..=STARTUP_BYTES).contains(&length) {
        return Err(bad("length of a startup packet"));
    }
    let Ok(content) = reader.take(length - 4) else { return Ok(None) };
    let first = read_content(content).map_err(|Short| bad("startup packet is cut short"))?;
    Ok(Some((length, first?)))
}

fn read_content(content: &[u8]) -> Result<Result<First<'_>, Fault>, Short> {
    let mut reader = Reader::new(content);
    let code = reader.u32_be()?;
    Ok(Ok(match code {
        SSL_REQUEST if reader.is_empty() => First::Ssl,
        GSSENC_REQUEST if reader.is_empty() => First::GssEnc,
        CANCEL_REQUEST => {
            let pid = reader.u32_be()?;
            let key = reader.take_rest();
            if !CANCEL_KEY_BYTES.contains(&key.len()) {
                return Ok(Err(bad("length of a cancel key")));
            }
            First::Cancel { pid, key }
        }
        _ => {
            let (major, minor) = ((code >> 16) as u16, code as u16);
            if major != MAJOR_VERSION {
                return Ok(Ok(First::Version { major, minor }));
            }
            let mut parameters = Vec::new();
            loop {
                let name = reader.cstr()?;
                if name.is_empty() {
                    break;
                }
                parameters.push((name, reader.cstr()?));
            }
            if !reader.is_empty() {
                return Ok(Err(bad("bytes behind the end of the startup packet")));
            }
            First::Startup(Startup { minor, parameters })
        }
    }))
}

/// Appends a StartupMessage of protocol 3.0.
pub fn put_startup<'a>(out: &mut Vec<u8>, parameters: impl Iterator<Item = (&'a str, &'a str)>) {
    put_untyped(out, |out| {
        out.extend_from_slice(&(u32::from(MAJOR_VERSION) << 16).to_be_bytes());
        for (name, value) in parameters {
            put_cstr(out, name.as_bytes());
            put_cstr(out, value.as_bytes());
        }
        out.push(0);
    });
}

/// Appends an SSLRequest.
pub fn put_ssl_request(out: &mut Vec<u8>) {
    put_untyped(out, |out| out.extend_from_slice(&SSL_REQUEST.to_be_bytes()));
}

/// Appends a CancelRequest.
pub fn put_cancel(out: &mut Vec<u8>, pid: u32, key: &[u8]) {
    put_untyped(out, |out| {
        out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
        out.extend_from_slice(&pid.to_be_bytes());
        out.extend_from_slice(key);
    });
}

/// Appends a NegotiateProtocolVersion: the version that will be spoken and the options that will not.
pub fn put_negotiate(out: &mut Vec<u8>, minor: u16, unknown: &[&[u8]]) {
    put(out, b'v', |out| {
        let version = (u32::from(MAJOR_VERSION) << 16) | u32::from(minor);
        out.extend_from_slice(&version.to_be_bytes());
        // A startup packet has at most STARTUP_BYTES / 2 names.
        let count = u32::try_from(unknown.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&count.to_be_bytes());
        for name in unknown {
            put_cstr(out, name);
        }
    });
}

/// A word in `options` that PostgreSQL refuses, or a switch that Weir does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownSwitch;

/// Reads the startup parameter `options`: words between blanks, a backslash takes the next byte as it is
/// (section 34.1.2, `options`), and of these the switches of a session, read as `getopt` does
/// (`process_postgres_switches` of postgres.c).
///
/// # Errors
/// [`UnknownSwitch`] for a word of any other form.
pub fn read_options(text: &[u8]) -> Result<Vec<(String, Vec<u8>)>, UnknownSwitch> {
    let mut pairs = Vec::new();
    let mut words = split_words(text).into_iter();
    while let Some(word) = words.next() {
        if word == b"--" {
            // Nothing behind it is a switch, and a session takes nothing else.
            return if words.next().is_none() { Ok(pairs) } else { Err(UnknownSwitch) };
        }
        let mut flags = word.strip_prefix(b"-").filter(|flags| !flags.is_empty()).ok_or(UnknownSwitch)?;
        while let Some((&flag, rest)) = flags.split_first() {
            flags = rest;
            if b"BCDNSWcfhkprtv-".contains(&flag) {
                let argument =
                    if rest.is_empty() { words.next().ok_or(UnknownSwitch)? } else { rest.to_vec() };
                pairs.extend(switch_with(flag, &argument)?);
                break;
            }
            pairs.extend(lone_switch(flag)?);
        }
    }
    Ok(pairs)
}

type Pair = Option<(String, Vec<u8>)>;

/// The setting that such a switch stands for; none where PostgreSQL takes it and does nothing.
fn lone_switch(flag: u8) -> Result<Pair, UnknownSwitch> {
    let (name, value) = match flag {
        b'e' => ("datestyle", "euro"),
        b'F' => ("fsync", "false"),
        b'i' => ("listen_addresses", "*"),
        b'l' => ("ssl", "true"),
        b'O' => ("allow_system_table_mods", "true"),
        b'P' => ("ignore_system_indexes", "true"),
        b's' => ("log_statement_stats", "true"),
        b'b' | b'E' | b'j' | b'n' => return Ok(None),
        _ => return Err(UnknownSwitch),
    };
    Ok(Some((name.to_owned(), value.into())))
}

/// The same of a switch with an argument.
fn switch_with(flag: u8, argument: &[u8]) -> Result<Pair, UnknownSwitch> {
    let (name, value) = match flag {
        b'c' | b'-' => return assignment(argument).map(Some),
        b'f' => (method_of(argument).ok_or(UnknownSwitch)?, b"false".to_vec()),
        b't' => (statistics_of(argument).ok_or(UnknownSwitch)?, b"true".to_vec()),
        b'B' => ("shared_buffers", argument.to_vec()),
        b'h' => ("listen_addresses", argument.to_vec()),
        b'k' => ("unix_socket_directories", argument.to_vec()),
        b'N' => ("max_connections", argument.to_vec()),
        b'p' => ("port", argument.to_vec()),
        b'S' => ("work_mem", argument.to_vec()),
        b'W' => ("post_auth_delay", argument.to_vec()),
        b'C' | b'D' | b'r' | b'v' => return Ok(None),
        _ => return Err(UnknownSwitch),
    };
    Ok(Some((name.to_owned(), value)))
}

/// `name=value`, where `-` in a name means `_`.
fn assignment(text: &[u8]) -> Result<(String, Vec<u8>), UnknownSwitch> {
    let equals = text.iter().position(|&b| b == b'=').ok_or(UnknownSwitch)?;
    let (name, value) = text.split_at_checked(equals).ok_or(UnknownSwitch)?;
    let name = std::str::from_utf8(name).map_err(|_| UnknownSwitch)?.trim().replace('-', "_");
    if name.is_empty() {
        return Err(UnknownSwitch);
    }
    Ok((name, value.get(1..).unwrap_or_default().to_vec()))
}

/// What `-f` forbids (`set_plan_disabling_options`).
fn method_of(argument: &[u8]) -> Option<&'static str> {
    Some(match argument.first()? {
        b's' => "enable_seqscan",
        b'i' => "enable_indexscan",
        b'o' => "enable_indexonlyscan",
        b'b' => "enable_bitmapscan",
        b't' => "enable_tidscan",
        b'n' => "enable_nestloop",
        b'm' => "enable_mergejoin",
        b'h' => "enable_hashjoin",
        _ => return None,
    })
}

/// What `-t` shows (`get_stats_option_name`).
fn statistics_of(argument: &[u8]) -> Option<&'static str> {
    Some(match argument {
        [b'p', b'a', ..] => "log_parser_stats",
        [b'p', b'l', ..] => "log_planner_stats",
        [b'e', ..] => "log_executor_stats",
        _ => return None,
    })
}

fn split_words(text: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => words.extend(word.take()),
            b'\\' => word.get_or_insert_default().extend(bytes.next()),
            _ => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(code: u32, rest: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put_untyped(&mut out, |o| {
            o.extend_from_slice(&code.to_be_bytes());
            o.extend_from_slice(rest);
        });
        out
    }

    #[test]
    fn first_messages() {
        assert_eq!(read_first(&packet(SSL_REQUEST, b"")), Ok(Some((8, First::Ssl))));
        assert_eq!(read_first(&packet(GSSENC_REQUEST, b"")), Ok(Some((8, First::GssEnc))));
        let mut out = Vec::new();
        put_cancel(&mut out, 7, b"1234");
        assert_eq!(read_first(&out), Ok(Some((16, First::Cancel { pid: 7, key: b"1234" }))));
        let mut out = Vec::new();
        put_cancel(&mut out, 7, &[5; 256]);
        assert_eq!(read_first(&out), Ok(Some((268, First::Cancel { pid: 7, key: &[5; 256] }))));
        let two = packet(2 << 16, b"");
        assert_eq!(read_first(&two), Ok(Some((8, First::Version { major: 2, minor: 0 }))));
        let mut out = Vec::new();
        put_startup(&mut out, [("user", "u"), ("database", "d")].into_iter());
        for n in 0..out.len() {
            assert_eq!(read_first(&out[..n]), Ok(None), "{n}");
        }
        let Ok(Some((n, First::Startup(startup)))) = read_first(&out) else { panic!() };
        assert_eq!((n, startup.minor), (out.len(), 0));
        assert_eq!(startup.parameters, [(&b"user"[..], &b"u"[..]), (b"database", b"d")]);
    }

    #[test]
    fn absurd_first_messages() {
        for bad in [
            &b"\0\0\0\0\0\0\0\0"[..],
            b"\0\0\0\x07\0\x03\0\0",
            b"\xff\xff\xff\xff",
            b"\0\0\x27\x11",
            b"GET / HTTP/1.1\r\n",
            &packet(CANCEL_REQUEST, b""),
            &packet(CANCEL_REQUEST, b"1234567"),
            &packet(CANCEL_REQUEST, &[0; 261]),
            &packet(3 << 16, b""),
            &packet(3 << 16, b"user"),
            &packet(3 << 16, b"user\0u\0"),
            &packet(3 << 16, b"user\0u\0\0more"),
        ] {
            assert_eq!(read_first(bad).unwrap_err().kind, FaultKind::ClientProtocol, "{bad:?}");
        }
    }

    #[test]
    fn options() {
        let read = |text: &str| {
            read_options(text.as_bytes()).map(|pairs| {
                pairs
                    .into_iter()
                    .map(|(n, v)| format!("{n}={}", String::from_utf8(v).unwrap()))
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(
            read("-c geqo=off --statement-timeout=5min  -csearch_path=a\\ b,c\\\\d").unwrap(),
            ["geqo=off", "statement_timeout=5min", "search_path=a b,c\\d"]
        );
        assert_eq!(read("").unwrap(), [""; 0]);
        assert_eq!(read("-c a=").unwrap(), ["a="]);
        assert_eq!(read("-c a=b=c").unwrap(), ["a=b=c"]);
        assert_eq!(
            read("-eS 2048 -S64 -fh -tpl -nE -- ").unwrap().join(" "),
            "datestyle=euro work_mem=2048 work_mem=64 enable_hashjoin=false log_planner_stats=true"
        );
        for bad in ["-z", "-c", "-c geqo", "geqo=off", "--=x", "-c =x", "-S", "-f x", "-t", "-", "-- -e"] {
            assert_eq!(read(bad), Err(UnknownSwitch), "{bad}");
        }
    }
}
