//! Message headers: one byte of type and four of length (protocol section 55.7), and the maximum length of
//! each type.
//!
//! Owns: the tags of both directions and their bounds. Must not know: what the messages mean. Invariant: no
//! length from a peer is trusted before it has been compared with the bound of its type.

use weir_wire::{Fault, FaultKind, name_of};

/// Bytes of a header: the type and the length. The length counts itself but not the type.
pub const HEADER_BYTES: usize = 5;

/// PostgreSQL's bound on messages that carry little (`PQ_SMALL_MESSAGE_LIMIT`).
pub const SMALL_MESSAGE_BYTES: u32 = 10_000;

/// PostgreSQL's bound on messages that carry data (`PQ_LARGE_MESSAGE_LIMIT`, `MaxAllocSize - 1`).
pub const LARGE_MESSAGE_BYTES: u32 = 0x3fff_fffe;

macro_rules! tags {
    ($(#[doc = $set_doc:literal])* $set:ident { $($(#[doc = $doc:literal])* $name:ident = $byte:literal, $limit:ident;)* }) => {
        $(#[doc = $set_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $set { $($(#[doc = $doc])* $name,)* }
        impl $set {
            /// All of them.
            pub const ALL: &'static [$set] = &[$($set::$name,)*];
            /// The type of this byte.
            #[inline]
            pub fn of(byte: u8) -> Option<$set> { match byte { $($byte => Some($set::$name),)* _ => None } }
            /// The byte on the wire.
            #[inline]
            pub fn byte(self) -> u8 { match self { $($set::$name => $byte,)* } }
            /// The largest length a peer may state.
            #[inline]
            pub fn limit(self) -> u32 { match self { $($set::$name => $limit,)* } }
        }
    };
}

tags! {
    /// Messages of a logged-in client (protocol section 55.7, "F" and "F & B").
    ClientTag {
        /// Simple query.
        Query = b'Q', LARGE_MESSAGE_BYTES;
        /// Parse.
        Parse = b'P', LARGE_MESSAGE_BYTES;
        /// Bind.
        Bind = b'B', LARGE_MESSAGE_BYTES;
        /// Describe.
        Describe = b'D', SMALL_MESSAGE_BYTES;
        /// Execute.
        Execute = b'E', SMALL_MESSAGE_BYTES;
        /// Close.
        Close = b'C', SMALL_MESSAGE_BYTES;
        /// Sync.
        Sync = b'S', SMALL_MESSAGE_BYTES;
        /// Flush.
        Flush = b'H', SMALL_MESSAGE_BYTES;
        /// FunctionCall.
        FunctionCall = b'F', LARGE_MESSAGE_BYTES;
        /// CopyData.
        CopyData = b'd', LARGE_MESSAGE_BYTES;
        /// CopyDone.
        CopyDone = b'c', SMALL_MESSAGE_BYTES;
        /// CopyFail.
        CopyFail = b'f', SMALL_MESSAGE_BYTES;
        /// Terminate.
        Terminate = b'X', SMALL_MESSAGE_BYTES;
    }
}

/// A server's row may be as long as the length can say.
const ANY_BYTES: u32 = 0x7fff_ffff;

tags! {
    /// Messages of a server (protocol section 55.7, "B" and "F & B").
    ServerTag {
        /// Authentication requests of all kinds.
        Authentication = b'R', SMALL_MESSAGE_BYTES;
        /// BackendKeyData.
        BackendKeyData = b'K', SMALL_MESSAGE_BYTES;
        /// BindComplete.
        BindComplete = b'2', SMALL_MESSAGE_BYTES;
        /// CloseComplete.
        CloseComplete = b'3', SMALL_MESSAGE_BYTES;
        /// CommandComplete.
        CommandComplete = b'C', SMALL_MESSAGE_BYTES;
        /// CopyData.
        CopyData = b'd', ANY_BYTES;
        /// CopyDone.
        CopyDone = b'c', SMALL_MESSAGE_BYTES;
        /// CopyInResponse.
        CopyInResponse = b'G', SMALL_MESSAGE_BYTES;
        /// CopyOutResponse.
        CopyOutResponse = b'H', SMALL_MESSAGE_BYTES;
        /// CopyBothResponse.
        CopyBothResponse = b'W', SMALL_MESSAGE_BYTES;
        /// DataRow.
        DataRow = b'D', ANY_BYTES;
        /// EmptyQueryResponse.
        EmptyQueryResponse = b'I', SMALL_MESSAGE_BYTES;
        /// ErrorResponse.
        ErrorResponse = b'E', ANY_BYTES;
        /// FunctionCallResponse.
        FunctionCallResponse = b'V', ANY_BYTES;
        /// NegotiateProtocolVersion.
        NegotiateProtocolVersion = b'v', SMALL_MESSAGE_BYTES;
        /// NoData.
        NoData = b'n', SMALL_MESSAGE_BYTES;
        /// NoticeResponse.
        NoticeResponse = b'N', ANY_BYTES;
        /// NotificationResponse.
        NotificationResponse = b'A', SMALL_MESSAGE_BYTES;
        /// ParameterDescription.
        ParameterDescription = b't', ANY_BYTES;
        /// ParameterStatus.
        ParameterStatus = b'S', ANY_BYTES;
        /// ParseComplete.
        ParseComplete = b'1', SMALL_MESSAGE_BYTES;
        /// PortalSuspended.
        PortalSuspended = b's', SMALL_MESSAGE_BYTES;
        /// ReadyForQuery.
        ReadyForQuery = b'Z', SMALL_MESSAGE_BYTES;
        /// RowDescription.
        RowDescription = b'T', ANY_BYTES;
    }
}

/// A header whose type is known and whose length is within the bound of that type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<T> {
    /// The type.
    pub tag: T,
    /// Bytes of the whole message, header included.
    pub total: usize,
}

#[inline]
fn raw(input: &[u8]) -> Option<(u8, u32)> {
    let (head, _) = input.split_first_chunk::<HEADER_BYTES>()?;
    let [tag, a, b, c, d] = *head;
    Some((tag, u32::from_be_bytes([a, b, c, d])))
}

/// The header at the start of a client's bytes; `None` when it is not there yet. An unknown type is
/// refused before its length has arrived, as PostgreSQL does.
///
/// # Errors
/// A protocol fault for a type that clients do not send, a length below 4, and one above the bound of its
/// type.
#[inline]
pub fn client_header(input: &[u8]) -> Result<Option<Header<ClientTag>>, Fault> {
    let Some(&byte) = input.first() else { return Ok(None) };
    let Some(tag) = ClientTag::of(byte) else {
        return Err(Fault::new(
            FaultKind::ClientProtocol,
            format!("message type {byte:#04x} from the client"),
        ));
    };
    let Some((_, length)) = raw(input) else { return Ok(None) };
    if length < 4 {
        return Err(Fault::new(
            FaultKind::ClientProtocol,
            format!("length {length} in a {} message", name_of(&tag)),
        ));
    }
    if length > tag.limit() {
        return Err(Fault::new(
            FaultKind::ClientTooLarge,
            format!("length {length} in a {} message", name_of(&tag)),
        ));
    }
    Ok(Some(Header { tag, total: length as usize + 1 }))
}

/// The header at the start of a server's bytes; `None` when it is not there yet.
///
/// # Errors
/// A fault of the server for a type that servers do not send, a length below 4, and one above the bound of
/// its type.
#[inline]
pub fn server_header(input: &[u8]) -> Result<Option<Header<ServerTag>>, Fault> {
    let Some(&byte) = input.first() else { return Ok(None) };
    let Some(tag) = ServerTag::of(byte) else {
        return Err(Fault::new(
            FaultKind::ServerProtocol,
            format!("message type {byte:#04x} from the server"),
        ));
    };
    let Some((_, length)) = raw(input) else { return Ok(None) };
    if length < 4 {
        return Err(Fault::new(
            FaultKind::ServerProtocol,
            format!("length {length} in a {} message", name_of(&tag)),
        ));
    }
    if length > tag.limit() {
        return Err(Fault::new(
            FaultKind::ServerTooLarge,
            format!("length {length} in a {} message", name_of(&tag)),
        ));
    }
    Ok(Some(Header { tag, total: length as usize + 1 }))
}

/// The body of a message that is there whole, without its header.
#[inline]
pub fn body(message: &[u8]) -> &[u8] {
    message.get(HEADER_BYTES..).unwrap_or_default()
}

/// Appends a message: the type, a length made of what `fill` appends, and that.
pub fn put(out: &mut Vec<u8>, tag: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    put_untyped(out, fill);
}

/// Appends a message without a type (startup, cancel).
pub fn put_untyped(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(out);
    // Nothing Weir writes itself comes near 4 GB: its parts are bounded by the gather limits.
    let length = u32::try_from(out.len() - at).unwrap_or(u32::MAX);
    if let Some(slot) = out.get_mut(at..at + 4) {
        slot.copy_from_slice(&length.to_be_bytes());
    }
}

/// Appends a string and its NUL. Bytes behind a NUL in `text` are left out: a peer would read them as the
/// next field.
pub fn put_cstr(out: &mut Vec<u8>, text: &[u8]) {
    let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
    out.extend_from_slice(text.get(..end).unwrap_or_default());
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_their_bytes() {
        for &tag in ClientTag::ALL {
            assert_eq!(ClientTag::of(tag.byte()), Some(tag));
        }
        for &tag in ServerTag::ALL {
            assert_eq!(ServerTag::of(tag.byte()), Some(tag));
        }
        assert_eq!(ClientTag::of(b'p'), None, "a password has no place after the login");
    }

    #[test]
    fn lengths_are_checked_before_they_are_used() {
        assert_eq!(client_header(b""), Ok(None));
        assert_eq!(client_header(b"Q\0\0\0"), Ok(None));
        assert_eq!(client_header(b"Q\0\0\0\x05"), Ok(Some(Header { tag: ClientTag::Query, total: 6 })));
        assert_eq!(client_header(b"?").unwrap_err().kind, FaultKind::ClientProtocol);
        assert_eq!(client_header(b"Q\0\0\0\x03").unwrap_err().kind, FaultKind::ClientProtocol);
        assert_eq!(client_header(b"Q\xff\xff\xff\xff").unwrap_err().kind, FaultKind::ClientTooLarge);
        assert_eq!(client_header(b"S\0\0\x27\x11").unwrap_err().kind, FaultKind::ClientTooLarge);
        assert_eq!(server_header(b"D\x7f\xff\xff\xff").unwrap().unwrap().total, 0x8000_0000);
        assert_eq!(server_header(b"D\x80\0\0\0").unwrap_err().kind, FaultKind::ServerTooLarge);
        assert_eq!(server_header(b"Z\0\0\0\0").unwrap_err().kind, FaultKind::ServerProtocol);
    }

    #[test]
    fn strings_end_at_their_first_nul() {
        let mut out = Vec::new();
        put(&mut out, b'Q', |o| put_cstr(o, b"ab\0cd"));
        assert_eq!(out, b"Q\0\0\0\x07ab\0");
    }
}
