//! MySQL's packets as the models write and read them. Written from the protocol's documentation, and
//! deliberately not shared with the wing under test.

/// Capability flags.
pub mod flag {
    /// Long passwords. MariaDB's servers clear it.
    pub const LONG_PASSWORD: u32 = 1;
    /// Affected rows are those found.
    pub const FOUND_ROWS: u32 = 1 << 1;
    /// The login names a schema.
    pub const CONNECT_WITH_DB: u32 = 1 << 3;
    /// The protocol of 4.1.
    pub const PROTOCOL_41: u32 = 1 << 9;
    /// TLS.
    pub const SSL: u32 = 1 << 11;
    /// Status flags in OK packets.
    pub const TRANSACTIONS: u32 = 1 << 13;
    /// The answer to the scramble is the one of 4.1.
    pub const SECURE_CONNECTION: u32 = 1 << 15;
    /// Several statements in one text.
    pub const MULTI_STATEMENTS: u32 = 1 << 16;
    /// Several results.
    pub const MULTI_RESULTS: u32 = 1 << 17;
    /// Authentication methods have names.
    pub const PLUGIN_AUTH: u32 = 1 << 19;
    /// Connection attributes.
    pub const CONNECT_ATTRS: u32 = 1 << 20;
    /// The answer to the scramble has a length.
    pub const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
    /// OK packets tell what changed.
    pub const SESSION_TRACK: u32 = 1 << 23;
    /// Rows end with an OK packet.
    pub const DEPRECATE_EOF: u32 = 1 << 24;
}

/// Status flags.
pub mod status {
    /// A transaction is open.
    pub const IN_TRANS: u16 = 1;
    /// autocommit is on.
    pub const AUTOCOMMIT: u16 = 2;
    /// Another result follows.
    pub const MORE_RESULTS: u16 = 8;
    /// Session state changes follow.
    pub const STATE_CHANGED: u16 = 0x4000;
}

/// Commands.
pub mod command {
    /// COM_QUIT.
    pub const QUIT: u8 = 1;
    /// COM_INIT_DB.
    pub const INIT_DB: u8 = 2;
    /// COM_QUERY.
    pub const QUERY: u8 = 3;
    /// COM_PING.
    pub const PING: u8 = 0x0E;
    /// COM_CHANGE_USER.
    pub const CHANGE_USER: u8 = 0x11;
    /// COM_STMT_PREPARE.
    pub const PREPARE: u8 = 0x16;
    /// COM_STMT_EXECUTE.
    pub const EXECUTE: u8 = 0x17;
    /// COM_STMT_SEND_LONG_DATA.
    pub const LONG_DATA: u8 = 0x18;
    /// COM_STMT_CLOSE.
    pub const CLOSE: u8 = 0x19;
    /// COM_STMT_RESET.
    pub const RESET: u8 = 0x1A;
    /// COM_SET_OPTION.
    pub const SET_OPTION: u8 = 0x1B;
    /// COM_RESET_CONNECTION.
    pub const RESET_CONNECTION: u8 = 0x1F;
}

/// First byte of ERR.
pub const ERR: u8 = 0xFF;
/// First byte of EOF and of what ends rows.
pub const EOF: u8 = 0xFE;

/// Appends a packet; returns the number of the next one. Payloads of 16 MB are not sent here.
pub fn put(out: &mut Vec<u8>, seq: u8, payload: &[u8]) -> u8 {
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes()[..3]);
    out.push(seq);
    out.extend_from_slice(payload);
    seq.wrapping_add(1)
}

/// Appends a command with its argument.
pub fn put_command(out: &mut Vec<u8>, command: u8, rest: &[u8]) {
    put(out, 0, &[&[command], rest].concat());
}

/// The first whole packet: number, payload, bytes in all. `None`: not whole yet.
pub fn packet(bytes: &[u8]) -> Option<(u8, &[u8], usize)> {
    let &[a, b, c, seq] = bytes.first_chunk::<4>()?;
    let total = u32::from_le_bytes([a, b, c, 0]) as usize + 4;
    Some((seq, bytes.get(4..total)?, total))
}

/// Appends a length-encoded number.
pub fn put_number(out: &mut Vec<u8>, n: u64) {
    let bytes = n.to_le_bytes();
    match n {
        0..=250 => out.push(bytes[0]),
        251..=0xFFFF => out.extend_from_slice(&[0xFC, bytes[0], bytes[1]]),
        0x1_0000..=0xFF_FFFF => out.extend_from_slice(&[0xFD, bytes[0], bytes[1], bytes[2]]),
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends a length-encoded string.
pub fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Takes so many bytes from the front.
pub fn take<'a>(rest: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(n)?;
    *rest = tail;
    Some(head)
}

/// Takes a number of four bytes from the front.
pub fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    let (head, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    Some(u32::from_le_bytes(*head))
}

/// Takes a byte from the front.
pub fn take_u8(rest: &mut &[u8]) -> Option<u8> {
    take(rest, 1).map(|byte| byte[0])
}

/// Takes a length-encoded string from the front.
pub fn take_string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let n = match take_u8(rest)? {
        small @ 0..=250 => usize::from(small),
        0xFC => take(rest, 2).map(|b| usize::from(u16::from_le_bytes([b[0], b[1]])))?,
        0xFD => take(rest, 3).map(|b| u32::from_le_bytes([b[0], b[1], b[2], 0]) as usize)?,
        _ => return None,
    };
    take(rest, n)
}

/// Takes a text up to its NUL from the front.
pub fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|&b| b == 0)?;
    let text = &rest[..end];
    *rest = &rest[end + 1..];
    Some(text)
}

/// OK, or what ends rows.
#[derive(Debug, Clone, Default)]
pub struct Ending {
    /// Rows changed.
    pub affected: u64,
    /// What an INSERT made.
    pub insert_id: u64,
    /// Status flags.
    pub status: u16,
    /// Warnings.
    pub warnings: u16,
    /// Session state changes.
    pub changes: Vec<u8>,
}

impl Ending {
    /// Appends it as a peer with these capabilities reads it. `first` is 0, or [`EOF`] behind rows.
    pub fn put(&self, out: &mut Vec<u8>, seq: u8, first: u8, capabilities: u32) -> u8 {
        let mut payload = vec![first];
        if first == EOF && capabilities & flag::DEPRECATE_EOF == 0 {
            payload.extend_from_slice(&[0, 0]);
            payload.extend_from_slice(&self.status.to_le_bytes());
            return put(out, seq, &payload);
        }
        let tracked = capabilities & flag::SESSION_TRACK != 0 && !self.changes.is_empty();
        put_number(&mut payload, self.affected);
        put_number(&mut payload, self.insert_id);
        let flag = if tracked { status::STATE_CHANGED } else { 0 };
        payload.extend_from_slice(&(self.status | flag).to_le_bytes());
        payload.extend_from_slice(&self.warnings.to_le_bytes());
        if tracked {
            put_string(&mut payload, b"");
            put_string(&mut payload, &self.changes);
        }
        put(out, seq, &payload)
    }
}

/// Appends ERR.
pub fn put_err(out: &mut Vec<u8>, seq: u8, code: u16, state: &str, text: &str) -> u8 {
    let mut payload = vec![ERR];
    payload.extend_from_slice(&code.to_le_bytes());
    payload.push(b'#');
    payload.extend_from_slice(state.as_bytes());
    payload.extend_from_slice(text.as_bytes());
    put(out, seq, &payload)
}

/// Code and text of an ERR packet's payload.
pub fn error_of(payload: &[u8]) -> (u16, String) {
    let code = payload.get(1..3).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
    let text = payload.get(3..).unwrap_or_default();
    let text = if text.first() == Some(&b'#') { text.get(6..).unwrap_or_default() } else { text };
    (code, String::from_utf8_lossy(text).into_owned())
}

/// Appends the definition of a text column.
pub fn put_definition(out: &mut Vec<u8>, seq: u8, name: &str) -> u8 {
    put_definition_of(out, seq, name, 45, 255, 253)
}

/// The same, of another collation, length and type.
pub fn put_definition_of(
    out: &mut Vec<u8>,
    seq: u8,
    name: &str,
    collation: u16,
    length: u32,
    code: u8,
) -> u8 {
    let mut payload = Vec::new();
    for text in ["def", "", "", "", name, ""] {
        put_string(&mut payload, text.as_bytes());
    }
    payload.push(12);
    payload.extend_from_slice(&collation.to_le_bytes());
    payload.extend_from_slice(&length.to_le_bytes());
    payload.extend_from_slice(&[code, 0, 0, 0, 0, 0]);
    put(out, seq, &payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_and_strings_there_and_back() {
        let mut out = Vec::new();
        let mut payload = Vec::new();
        put_string(&mut payload, &[7; 300]);
        assert_eq!(put(&mut out, 255, &payload), 0);
        let (seq, read, total) = packet(&out).unwrap();
        assert_eq!((seq, total), (255, out.len()));
        let mut rest = read;
        assert_eq!(take_string(&mut rest), Some(&[7; 300][..]));
        assert!(rest.is_empty() && packet(&out[..out.len() - 1]).is_none());
    }

    #[test]
    fn old_clients_get_an_eof() {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        let end = Ending { status: status::AUTOCOMMIT, ..Ending::default() };
        end.put(&mut old, 3, EOF, 0);
        end.put(&mut new, 3, EOF, flag::DEPRECATE_EOF);
        assert_eq!((old.len(), new.len()), (9, 11));
    }
}
