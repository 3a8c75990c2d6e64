//! The messages of a login (RFC 4511, section 4): what is asked, and what a server may answer.
//!
//! Invariants: a message is read only when it is there whole, and one that is longer than [`MESSAGE_BYTES`]
//! is refused by its first bytes.

use crate::ber::{
    BOOLEAN, ENUMERATED, Element, Elements, INTEGER, Malformed, OCTETS, SEQUENCE, element, integer, put,
    put_bytes, put_integer,
};
use crate::name::for_log;
use crate::url::Scope;
use std::fmt;

/// Bytes of a message at most. An answer is a code, a name and a sentence; the entry that is asked for comes
/// without its attributes.
pub const MESSAGE_BYTES: usize = 64 * 1024;

const BIND_REQUEST: u8 = 0x60;
const BIND_RESPONSE: u8 = 0x61;
const UNBIND_REQUEST: u8 = 0x42;
const SEARCH_REQUEST: u8 = 0x63;
const SEARCH_ENTRY: u8 = 0x64;
const SEARCH_DONE: u8 = 0x65;
const SEARCH_REFERENCE: u8 = 0x73;
const EXTENDED_REQUEST: u8 = 0x77;
const EXTENDED_RESPONSE: u8 = 0x78;

/// `AuthenticationChoice`: simple.
const SIMPLE: u8 = 0x80;
/// `requestName` of an extended request.
const REQUEST_NAME: u8 = 0x80;
/// RFC 4511, section 4.14.1.
const START_TLS: &[u8] = b"1.3.6.1.4.1.1466.20037";
/// No attributes (section 4.5.1.8).
const NO_ATTRIBUTES: &[u8] = b"1.1";
/// The version of the protocol.
const VERSION: u32 = 3;
/// Entries that a search may find: with the second it is known that there is more than one.
const ENTRIES: u32 = 2;

fn put_message(out: &mut Vec<u8>, id: u32, operation: impl FnOnce(&mut Vec<u8>)) {
    put(out, SEQUENCE, |out| {
        put_integer(out, INTEGER, id);
        operation(out);
    });
}

/// Who somebody says to be, and the password in clear.
pub(crate) fn put_bind(out: &mut Vec<u8>, id: u32, name: &str, password: &[u8]) {
    put_message(out, id, |out| {
        put(out, BIND_REQUEST, |out| {
            put_integer(out, INTEGER, VERSION);
            put_bytes(out, OCTETS, name.as_bytes());
            put_bytes(out, SIMPLE, password);
        });
    });
}

/// Which entries `filter`, as it is sent, fits.
pub(crate) fn put_search(out: &mut Vec<u8>, id: u32, base: &str, scope: Scope, filter: &[u8]) {
    put_message(out, id, |out| {
        put(out, SEARCH_REQUEST, |out| {
            put_bytes(out, OCTETS, base.as_bytes());
            put_integer(out, ENUMERATED, scope as u32);
            // Aliases are not followed, as by OpenLDAP's library.
            put_integer(out, ENUMERATED, 0);
            put_integer(out, INTEGER, ENTRIES);
            // The server's own limit of time.
            put_integer(out, INTEGER, 0);
            put_bytes(out, BOOLEAN, &[0]);
            out.extend_from_slice(filter);
            put(out, SEQUENCE, |out| put_bytes(out, OCTETS, NO_ATTRIBUTES));
        });
    });
}

/// From here on by TLS.
pub(crate) fn put_start_tls(out: &mut Vec<u8>, id: u32) {
    put_message(out, id, |out| {
        put(out, EXTENDED_REQUEST, |out| put_bytes(out, REQUEST_NAME, START_TLS));
    });
}

/// The last words.
pub(crate) fn put_unbind(out: &mut Vec<u8>, id: u32) {
    put_message(out, id, |out| put_bytes(out, UNBIND_REQUEST, &[]));
}

/// `LDAPResult` (section 4.1.9), without its referral.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome<'a> {
    pub(crate) code: u32,
    pub(crate) diagnostics: &'a [u8],
}

/// What a server has said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said<'a> {
    Bind(Outcome<'a>),
    /// The name of an entry that was found.
    Entry(&'a [u8]),
    /// Other servers may know more.
    Reference,
    Done(Outcome<'a>),
    Extended(Outcome<'a>),
}

/// The message at the front of `input` when it is there whole: its length, its number, what it says.
///
/// # Errors
/// It is none that answers anything here, or is too long.
pub(crate) fn read(input: &[u8]) -> Result<Option<(usize, u32, Said<'_>)>, Malformed> {
    if input.first().is_some_and(|tag| *tag != SEQUENCE) {
        return Err(Malformed);
    }
    let Some(Element { content, whole, .. }) = element(input, MESSAGE_BYTES)? else { return Ok(None) };
    let mut parts = Elements::new(content);
    let id = integer(parts.expect(INTEGER)?)?;
    // Controls may follow; none was asked for.
    let (operation, content) = parts.next()?.ok_or(Malformed)?;
    let mut parts = Elements::new(content);
    let said = match operation {
        BIND_RESPONSE => Said::Bind(outcome(&mut parts)?),
        SEARCH_ENTRY => Said::Entry(parts.expect(OCTETS)?),
        SEARCH_REFERENCE => Said::Reference,
        SEARCH_DONE => Said::Done(outcome(&mut parts)?),
        EXTENDED_RESPONSE => Said::Extended(outcome(&mut parts)?),
        _ => return Err(Malformed),
    };
    Ok(Some((whole, id, said)))
}

fn outcome<'a>(parts: &mut Elements<'a>) -> Result<Outcome<'a>, Malformed> {
    let code = integer(parts.expect(ENUMERATED)?)?;
    let _matched = parts.expect(OCTETS)?;
    let diagnostics = parts.expect(OCTETS)?;
    Ok(Outcome { code, diagnostics })
}

impl Outcome<'_> {
    pub(crate) fn is_success(&self) -> bool {
        self.code == 0
    }

    /// The server could not or would not look at the password: it says nothing about it.
    pub(crate) fn is_about_itself(&self) -> bool {
        // operationsError, protocolError, timeLimitExceeded, authMethodNotSupported, strongerAuthRequired,
        // referral, adminLimitExceeded, confidentialityRequired, busy, unavailable, loopDetect, other.
        matches!(self.code, 1 | 2 | 3 | 7 | 8 | 10 | 11 | 13 | 51 | 52 | 54 | 80)
    }
}

/// The name of a result code (appendix A of RFC 4511).
fn code_name(code: u32) -> &'static str {
    match code {
        0 => "success",
        1 => "operationsError",
        2 => "protocolError",
        3 => "timeLimitExceeded",
        4 => "sizeLimitExceeded",
        7 => "authMethodNotSupported",
        8 => "strongerAuthRequired",
        10 => "referral; Weir does not follow it",
        11 => "adminLimitExceeded",
        13 => "confidentialityRequired",
        19 => "constraintViolation",
        32 => "noSuchObject",
        34 => "invalidDNSyntax",
        48 => "inappropriateAuthentication",
        49 => "invalidCredentials",
        50 => "insufficientAccessRights",
        51 => "busy",
        52 => "unavailable",
        53 => "unwillingToPerform",
        80 => "other",
        _ => "result code",
    }
}

impl fmt::Display for Outcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", code_name(self.code), self.code)?;
        if !self.diagnostics.is_empty() {
            write!(f, ": {}", for_log(self.diagnostics))?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An answer with this code.
    pub(crate) fn answer(id: u32, operation: u8, code: u32, diagnostics: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put_message(&mut out, id, |out| {
            put(out, operation, |out| {
                put_integer(out, ENUMERATED, code);
                put_bytes(out, OCTETS, b"");
                put_bytes(out, OCTETS, diagnostics.as_bytes());
            });
        });
        out
    }

    pub(crate) fn bound(id: u32, code: u32) -> Vec<u8> {
        answer(id, BIND_RESPONSE, code, "")
    }

    pub(crate) fn done(id: u32, code: u32) -> Vec<u8> {
        answer(id, SEARCH_DONE, code, "")
    }

    pub(crate) fn extended(id: u32, code: u32) -> Vec<u8> {
        answer(id, EXTENDED_RESPONSE, code, "")
    }

    pub(crate) fn entry(id: u32, name: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put_message(&mut out, id, |out| {
            put(out, SEARCH_ENTRY, |out| {
                put_bytes(out, OCTETS, name.as_bytes());
                put(out, SEQUENCE, |_| {});
            });
        });
        out
    }

    pub(crate) fn reference(id: u32) -> Vec<u8> {
        let mut out = Vec::new();
        put_message(&mut out, id, |out| {
            put(out, SEARCH_REFERENCE, |out| put_bytes(out, OCTETS, b"ldap://elsewhere/dc=x"));
        });
        out
    }

    #[test]
    fn requests_are_those_of_the_standard() {
        let mut out = Vec::new();
        put_bind(&mut out, 1, "cn=a", b"pw");
        assert_eq!(
            out,
            [0x30, 0x12, 2, 1, 1, 0x60, 0x0D, 2, 1, 3, 4, 4, b'c', b'n', b'=', b'a', 0x80, 2, b'p', b'w']
        );
        out.clear();
        put_unbind(&mut out, 2);
        assert_eq!(out, [0x30, 5, 2, 1, 2, 0x42, 0]);
        out.clear();
        put_search(&mut out, 3, "dc=x", Scope::Sub, &[0x87, 2, b'c', b'n']);
        assert_eq!(
            out,
            [
                0x30, 0x25, 2, 1, 3, 0x63, 0x20, 4, 4, b'd', b'c', b'=', b'x', 10, 1, 2, 10, 1, 0, 2, 1, 2,
                2, 1, 0, 1, 1, 0, 0x87, 2, b'c', b'n', 0x30, 5, 4, 3, b'1', b'.', b'1'
            ]
        );
        out.clear();
        put_start_tls(&mut out, 4);
        assert_eq!(out[..9], [0x30, 0x1D, 2, 1, 4, 0x77, 0x18, 0x80, 0x16]);
        assert_eq!(&out[9..], START_TLS);
    }

    #[test]
    fn answers_whole_and_in_parts() {
        let refused = answer(7, BIND_RESPONSE, 49, "80090308: LdapErr\0");
        for end in 0..refused.len() {
            assert_eq!(read(&refused[..end]), Ok(None), "{end}");
        }
        let (length, id, said) = read(&refused).unwrap().unwrap();
        assert_eq!((length, id), (refused.len(), 7));
        let Said::Bind(outcome) = said else { panic!("{said:?}") };
        assert_eq!(outcome.to_string(), "invalidCredentials (49): 80090308: LdapErr");
        assert!(!outcome.is_about_itself() && !outcome.is_success());
        let found = [entry(1, "cn=a"), reference(1), done(1, 0)].concat();
        let (length, _, said) = read(&found).unwrap().unwrap();
        assert_eq!(said, Said::Entry(b"cn=a"));
        assert_eq!(read(&found[length..]).unwrap().unwrap().2, Said::Reference);
    }

    #[test]
    fn what_is_too_long_is_refused_by_its_first_bytes() {
        assert_eq!(read(&[0x30, 0x83, 1, 0, 1]), Err(Malformed));
        assert_eq!(read(&[0x30, 0x84, 0x7F, 0xFF, 0xFF, 0xFF]), Err(Malformed));
        assert_eq!(read(&[0x31, 0]), Err(Malformed));
        // A request is no answer.
        let mut out = Vec::new();
        put_bind(&mut out, 1, "cn=a", b"pw");
        assert_eq!(read(&out), Err(Malformed));
    }

    #[test]
    fn nesting_costs_nothing() {
        let mut deep = Vec::new();
        for _ in 0..10_000 {
            let length = deep.len();
            let head = [0x30, 0x83, (length >> 16) as u8, (length >> 8) as u8, length as u8];
            deep.splice(0..0, head);
        }
        let mut message = Vec::new();
        put_message(&mut message, 1, |out| {
            put(out, BIND_RESPONSE, |out| {
                put_integer(out, ENUMERATED, 0);
                put_bytes(out, OCTETS, b"");
                put_bytes(out, OCTETS, b"");
                out.extend_from_slice(&deep);
            });
        });
        assert!(matches!(read(&message), Ok(Some((_, 1, Said::Bind(_))))));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_message_or_none(mut bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let _ = read(&bytes);
            if let [first, ..] = &mut bytes[..] {
                *first = SEQUENCE;
                let _ = read(&bytes);
            }
        }

        #[test]
        fn one_wrong_byte_is_survived(at in 0usize..40, value in proptest::num::u8::ANY) {
            let mut message = answer(7, BIND_RESPONSE, 49, "no such user, or so");
            if let Some(byte) = message.get_mut(at) {
                *byte = value;
            }
            let _ = read(&message);
        }
    }
}
