//! Requests: simple query and the extended protocol (protocol sections 55.2.2, 55.2.3, 55.7).

use crate::frame::{ClientTag, body, client_header, put, put_cstr};
use weir_wire::{Reader, Short};

/// The body of a Parse message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parse<'a> {
    /// Name of the statement; empty for the unnamed one.
    pub name: &'a [u8],
    /// The text.
    pub text: &'a [u8],
    /// All behind the name: the text with its NUL and the parameter types. This is what makes a statement
    /// what it is.
    pub content: &'a [u8],
}

/// Reads a Parse body. What stands behind the text is left for the server to check.
///
/// # Errors
/// [`Short`] when the name or the text has no NUL.
pub fn read_parse(body: &[u8]) -> Result<Parse<'_>, Short> {
    let mut reader = Reader::new(body);
    let name = reader.cstr()?;
    let content = reader.rest();
    let text = reader.cstr()?;
    Ok(Parse { name, text, content })
}

/// The Parse of a request that is nothing but the Parse of a named statement and its Sync.
pub fn lone_parse(request: &[u8]) -> Option<Parse<'_>> {
    let header = client_header(request).ok()??;
    let (message, rest) = request.split_at_checked(header.total)?;
    let parse = read_parse(body(message)).ok()?;
    (header.tag == ClientTag::Parse && rest == SYNC && !parse.name.is_empty()).then_some(parse)
}

/// The text of a request that is one whole Query.
pub fn lone_query(request: &[u8]) -> Option<&[u8]> {
    let header = client_header(request).ok()??;
    let text = read_query(body(request)).ok()?;
    (header.tag == ClientTag::Query && header.total == request.len()).then_some(text)
}

/// The body of a Bind message, as far as Weir looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bind<'a> {
    /// Name of the portal.
    pub portal: &'a [u8],
    /// Name of the statement.
    pub statement: &'a [u8],
    /// Formats, values and result formats.
    pub rest: &'a [u8],
}

/// Reads a Bind body; it may be cut anywhere behind the names.
///
/// # Errors
/// [`Short`] when one of the names has no NUL.
pub fn read_bind(body: &[u8]) -> Result<Bind<'_>, Short> {
    let mut reader = Reader::new(body);
    Ok(Bind { portal: reader.cstr()?, statement: reader.cstr()?, rest: reader.rest() })
}

/// How many values stand in the rest of a Bind, behind their formats (section 55.7).
///
/// # Errors
/// [`Short`] when the rest ends before that number.
pub fn count_parameters(rest: &[u8]) -> Result<u16, Short> {
    let mut reader = Reader::new(rest);
    let formats = reader.u16_be()?;
    reader.take(2 * usize::from(formats))?;
    reader.u16_be()
}

/// What Describe and Close speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object<'a> {
    /// A statement of this name.
    Statement(&'a [u8]),
    /// A portal of this name.
    Portal(&'a [u8]),
}

/// Reads the body of Describe or Close.
///
/// # Errors
/// [`Short`] when the kind is neither `S` nor `P`, or the body does not end with the NUL of the name.
pub fn read_object(body: &[u8]) -> Result<Object<'_>, Short> {
    let mut reader = Reader::new(body);
    let kind = reader.u8()?;
    let name = reader.cstr()?;
    match kind {
        _ if !reader.is_empty() => Err(Short),
        b'S' => Ok(Object::Statement(name)),
        b'P' => Ok(Object::Portal(name)),
        _ => Err(Short),
    }
}

/// The portal an Execute body names.
///
/// # Errors
/// [`Short`] when the body is anything but a name, its NUL and four bytes.
pub fn read_execute(body: &[u8]) -> Result<&[u8], Short> {
    let mut reader = Reader::new(body);
    let portal = reader.cstr()?;
    reader.u32_be()?;
    if reader.is_empty() { Ok(portal) } else { Err(Short) }
}

/// The text of a Query body: up to its NUL, which must be its last byte.
///
/// # Errors
/// [`Short`] without a NUL as the last byte.
pub fn read_query(body: &[u8]) -> Result<&[u8], Short> {
    let mut reader = Reader::new(body);
    let text = reader.cstr()?;
    if reader.is_empty() { Ok(text) } else { Err(Short) }
}

/// Query.
pub fn put_query(out: &mut Vec<u8>, text: &[u8]) {
    put(out, b'Q', |out| put_cstr(out, text));
}

/// Parse of `content` (text and types, as [`Parse::content`]) under a name.
pub fn put_parse(out: &mut Vec<u8>, name: &[u8], content: &[u8]) {
    put(out, b'P', |out| {
        put_cstr(out, name);
        out.extend_from_slice(content);
    });
}

/// A statement of no parameters, prepared, run and closed under a name that nobody else has. It is answered
/// by [`ASIDE_REPLIES`] messages.
pub fn put_aside(out: &mut Vec<u8>, name: &[u8], text: &[u8]) {
    put(out, b'P', |out| {
        put_cstr(out, name);
        put_cstr(out, text);
        out.extend_from_slice(&[0; 2]);
    });
    put(out, b'B', |out| {
        put_cstr(out, name);
        put_cstr(out, name);
        out.extend_from_slice(&[0; 6]);
    });
    put(out, b'E', |out| {
        put_cstr(out, name);
        out.extend_from_slice(&[0; 4]);
    });
    put_close_portal(out, name);
    put_statement(out, b'C', name);
}

/// ParseComplete, BindComplete, one DataRow, CommandComplete, and CloseComplete twice.
pub const ASIDE_REPLIES: u8 = 6;

/// Describe or Close of a statement.
pub fn put_statement(out: &mut Vec<u8>, tag: u8, name: &[u8]) {
    put(out, tag, |out| {
        out.push(b'S');
        put_cstr(out, name);
    });
}

/// Close of a portal.
pub fn put_close_portal(out: &mut Vec<u8>, name: &[u8]) {
    put(out, b'C', |out| {
        out.push(b'P');
        put_cstr(out, name);
    });
}

/// Sync.
pub const SYNC: &[u8] = b"S\0\0\0\x04";

/// Flush.
pub const FLUSH: &[u8] = b"H\0\0\0\x04";

/// CopyFail with a reason.
pub fn put_copy_fail(out: &mut Vec<u8>, reason: &str) {
    put(out, b'f', |out| put_cstr(out, reason.as_bytes()));
}

/// Terminate.
pub const TERMINATE: &[u8] = b"X\0\0\0\x04";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_keeps_text_and_types_together() {
        let parse = read_parse(b"s1\0select $1\0\0\x01\0\0\0\x17").unwrap();
        assert_eq!((parse.name, parse.text), (&b"s1"[..], &b"select $1"[..]));
        assert_eq!(parse.content, b"select $1\0\0\x01\0\0\0\x17");
        assert_eq!(read_parse(b"s1\0select"), Err(Short));
        let mut out = Vec::new();
        put_parse(&mut out, b"x", parse.content);
        assert_eq!(read_parse(&out[5..]).unwrap().content, parse.content);
    }

    #[test]
    fn objects() {
        assert_eq!(read_object(b"Ss1\0"), Ok(Object::Statement(b"s1")));
        assert_eq!(read_object(b"P\0"), Ok(Object::Portal(b"")));
        for bad in [&b""[..], b"S", b"Ss1", b"Xs1\0", b"Ss1\0x"] {
            assert_eq!(read_object(bad), Err(Short), "{bad:?}");
        }
        assert_eq!(read_execute(b"p\0\0\0\0\x01"), Ok(&b"p"[..]));
        assert_eq!(read_execute(b"p\0\0\0\0"), Err(Short));
        assert_eq!(read_query(b"select 1\0"), Ok(&b"select 1"[..]));
        assert_eq!(read_query(b"select 1\0;drop\0"), Err(Short));
    }
}
