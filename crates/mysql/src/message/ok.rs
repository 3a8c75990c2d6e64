//! OK, EOF and ERR (MySQL protocol, "Generic Response Packets"), and session state changes.
//!
//! Towards servers Weir always has SESSION_TRACK and DEPRECATE_EOF (if the server supports them); clients may
//! lack either, so an OK packet may have to be rewritten: `info` is a length-encoded string with
//! SESSION_TRACK, and the rest of the packet without.

use super::{Capabilities, lenenc, status};
use weir_wire::{Reader, Short};

/// First byte of OK.
pub const OK: u8 = 0x00;
/// First byte of EOF, and of the OK that ends rows. A packet is that only when it is shorter than
/// 16,777,215 bytes: a longer one is a row whose first value is huge.
pub const EOF: u8 = 0xFE;
/// First byte of ERR.
pub const ERR: u8 = 0xFF;
/// First byte of a request for a LOCAL file.
pub const LOCAL_INFILE: u8 = 0xFB;

/// An OK packet, or an EOF packet read as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OkPacket<'a> {
    /// Rows changed (or found, with FOUND_ROWS).
    pub affected_rows: u64,
    /// The id an INSERT made.
    pub insert_id: u64,
    /// Status flags, see [`status`].
    pub status: u16,
    /// Warnings.
    pub warnings: u16,
    /// Text for people.
    pub info: &'a [u8],
    /// Session state changes, see [`changes`].
    pub changes: &'a [u8],
}

impl<'a> OkPacket<'a> {
    /// Reads OK or EOF as a server with these capabilities sends it.
    ///
    /// # Errors
    /// [`Short`] when the payload ends too early for these capabilities.
    pub fn read(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, Short> {
        let mut r = Reader::new(payload);
        let first = r.u8()?;
        if first == EOF && payload.len() <= 5 {
            let warnings = r.u16_le()?;
            let status = r.u16_le()?;
            return Ok(OkPacket { status, warnings, ..OkPacket::default() });
        }
        let mut ok = OkPacket {
            affected_rows: lenenc::number(&mut r)?,
            insert_id: lenenc::number(&mut r)?,
            status: r.u16_le()?,
            warnings: r.u16_le()?,
            info: b"",
            changes: b"",
        };
        // Both servers write the text with its length, also to clients without SESSION_TRACK.
        if !r.is_empty() {
            ok.info = lenenc::string(&mut r)?;
            if capabilities.has(Capabilities::SESSION_TRACK) && ok.status & status::STATE_CHANGED != 0 {
                ok.changes = lenenc::string(&mut r)?;
            }
        }
        Ok(ok)
    }

    /// Appends the payload for a client with these capabilities. `first` is [`OK`] or [`EOF`]; EOF for a
    /// client without DEPRECATE_EOF becomes a real EOF packet.
    pub fn write(&self, first: u8, capabilities: Capabilities, out: &mut Vec<u8>) {
        out.push(first);
        if first == EOF && !capabilities.has(Capabilities::DEPRECATE_EOF) {
            out.extend_from_slice(&self.warnings.to_le_bytes());
            out.extend_from_slice(&(self.status & !status::STATE_CHANGED).to_le_bytes());
            return;
        }
        let tracked = capabilities.has(Capabilities::SESSION_TRACK) && !self.changes.is_empty();
        let flag = if tracked { status::STATE_CHANGED } else { 0 };
        lenenc::put_number(out, self.affected_rows);
        lenenc::put_number(out, self.insert_id);
        out.extend_from_slice(&(self.status & !status::STATE_CHANGED | flag).to_le_bytes());
        out.extend_from_slice(&self.warnings.to_le_bytes());
        if tracked || !self.info.is_empty() {
            lenenc::put_string(out, self.info);
            if tracked {
                lenenc::put_string(out, self.changes);
            }
        }
    }
}

/// One session state change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// A system variable that the session asked to track, as the server wrote it.
    Variable,
    /// The default schema; empty when there is none any more.
    Schema(&'a [u8]),
    /// Something of the session changed: variable, user variable, temporary table, text PREPARE, schema.
    State,
    /// The statements that would open the next or current transaction; empty when there is none.
    Characteristics(&'a [u8]),
    /// Flags of the transaction.
    Transaction,
    /// Something newer, GTIDs among it.
    Other,
}

/// Cuts session state changes into `(kind, whole entry)`. Ends at the first that is cut short.
pub fn changes(bytes: &[u8]) -> impl Iterator<Item = (Change<'_>, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let entry = rest;
        let mut r = Reader::new(rest);
        let kind = r.u8().ok()?;
        let mut data = Reader::new(lenenc::string(&mut r).ok()?);
        rest = r.rest();
        let entry = &entry[..entry.len() - rest.len()];
        let change = match kind {
            0 => Change::Variable,
            1 => Change::Schema(lenenc::string(&mut data).ok()?),
            2 => Change::State,
            4 => Change::Characteristics(lenenc::string(&mut data).ok()?),
            5 => Change::Transaction,
            _ => Change::Other,
        };
        Some((change, entry))
    })
}

/// What has not been told yet and then `new`, as a server tells it: the schema and each variable once, as
/// they are now. `by_name`: the variables in MySQL's order; else in that of `new`.
pub fn told_once(untold: &[u8], new: &[u8], by_name: bool) -> Vec<u8> {
    let again = |change: &Change<'_>, entry: &[u8]| {
        changes(new).any(|(other, later)| match (change, other) {
            (Change::Schema(_), Change::Schema(_)) => true,
            (Change::Variable, Change::Variable) => {
                variable(entry).is_some_and(|name| Some(name) == variable(later))
            }
            _ => false,
        })
    };
    let left = changes(untold).filter(|(change, entry)| !again(change, entry));
    let mut told: Vec<&[u8]> = left.chain(changes(new)).map(|(_, entry)| entry).collect();
    told.sort_by_key(|entry| {
        (entry.first().copied(), variable(entry).filter(|_| by_name && entry.first() == Some(&0)))
    });
    told.concat()
}

/// The name in an entry of a variable.
fn variable(entry: &[u8]) -> Option<&[u8]> {
    let mut r = Reader::new(entry.get(1..)?);
    let mut data = Reader::new(lenenc::string(&mut r).ok()?);
    lenenc::string(&mut data).ok()
}

/// An ERR packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrPacket<'a> {
    /// errno.
    pub code: u16,
    /// SQLSTATE, five bytes; empty when the server sent none (before its login is through).
    pub sqlstate: &'a [u8],
    /// Text for people.
    pub message: &'a [u8],
}

impl<'a> ErrPacket<'a> {
    /// Reads the payload.
    ///
    /// # Errors
    /// [`Short`] when the payload ends too early for these capabilities.
    pub fn read(payload: &'a [u8]) -> Result<Self, Short> {
        let mut r = Reader::new(payload);
        r.u8()?;
        let code = r.u16_le()?;
        let mut sqlstate = &b""[..];
        if r.rest().first() == Some(&b'#') {
            r.u8()?;
            sqlstate = r.take(5)?;
        }
        Ok(ErrPacket { code, sqlstate, message: r.take_rest() })
    }

    /// Appends the payload.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(ERR);
        out.extend_from_slice(&self.code.to_le_bytes());
        if !self.sqlstate.is_empty() {
            out.push(b'#');
            out.extend_from_slice(self.sqlstate);
        }
        out.extend_from_slice(self.message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Capabilities = Capabilities(1 << 23 | 1 << 24);
    const EOF_ONLY: Capabilities = Capabilities(1 << 24);
    const NEITHER: Capabilities = Capabilities(0);

    fn written(ok: &OkPacket<'_>, first: u8, capabilities: Capabilities) -> Vec<u8> {
        let mut out = Vec::new();
        ok.write(first, capabilities, &mut out);
        out
    }

    #[test]
    fn info_has_its_length_for_all_clients() {
        let ok = OkPacket { affected_rows: 300, info: b"Rows matched: 1", status: 2, ..OkPacket::default() };
        for capabilities in [BOTH, EOF_ONLY] {
            let out = written(&ok, OK, capabilities);
            assert_eq!(OkPacket::read(&out, capabilities), Ok(ok));
        }
        assert_eq!(written(&ok, OK, BOTH), written(&ok, OK, NEITHER));
        assert_eq!(written(&ok, EOF, NEITHER), [EOF, 0, 0, 2, 0]);
    }

    #[test]
    fn changes_as_a_server_sent_them() {
        // MariaDB 10.11 to USE other, with state_change on.
        let payload = b"\x00\x00\x00\x02\x40\x00\x00\x00\x0b\x01\x06\x05other\x02\x01\x31";
        let ok = OkPacket::read(payload, BOTH).unwrap();
        let found: Vec<_> = changes(ok.changes).collect();
        assert_eq!(found[0], (Change::Schema(b"other"), &b"\x01\x06\x05other"[..]));
        assert_eq!(found[1], (Change::State, &b"\x02\x01\x31"[..]));
        assert_eq!(found.len(), 2);
        for n in 0..payload.len() {
            if let Ok(ok) = OkPacket::read(&payload[..n], BOTH) {
                changes(ok.changes).for_each(drop);
            }
        }
        for n in 0..ok.changes.len() {
            assert!(changes(&ok.changes[..n]).count() < 2);
        }
    }

    #[test]
    fn err_there_and_back() {
        let err = ErrPacket { code: 1045, sqlstate: b"28000", message: b"no" };
        let mut out = Vec::new();
        err.write(&mut out);
        assert_eq!(ErrPacket::read(&out), Ok(err));
        assert_eq!(ErrPacket::read(b"\xff\x10\x04Too many").unwrap().sqlstate, b"");
    }
}
