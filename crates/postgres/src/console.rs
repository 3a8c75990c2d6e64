//! The administration console in the PostgreSQL protocol: simple queries in; rows, notices and errors out.
//!
//! Owns: the bytes. Must not know: what a statement means, who answers it. The text of refusals and the
//! SQLSTATE 08P01 of every error are those of PgBouncer's console.
//!
//! Invariant: no statement longer than [`CONSOLE_STATEMENT_BYTES`] is buffered.

use crate::frame::{ClientTag, HEADER_BYTES, put, put_cstr};
use crate::message::reply::{put_key, put_parameter, put_ready};
use crate::{Back, Front};
use weir_session::Front as _;
use weir_wire::Boundary;
use weir_wire::console::{Answer, Column, Heard, Kind, Progress, Table};
use weir_wire::limits::CONSOLE_STATEMENT_BYTES;

/// The SQLSTATE of all that PgBouncer itself has to say.
const POOLER: &str = "08P01";

impl Back {
    /// The database's own number of this connection.
    pub(crate) fn console_pid(&self) -> u64 {
        u64::from(self.server_pid())
    }
}

impl weir_session::Console for Front {
    fn console_greet(&mut self, version: &str, out: &mut Vec<u8>) {
        for (name, value) in [
            ("server_version", version),
            ("client_encoding", "UTF8"),
            ("server_encoding", "UTF8"),
            ("DateStyle", "ISO"),
            ("TimeZone", "GMT"),
            ("standard_conforming_strings", "on"),
            ("is_superuser", "on"),
        ] {
            put_parameter(out, name, value.as_bytes());
        }
        put_key(out, self.id(), self.key().bytes());
        put_ready(out, Boundary::Idle);
    }

    /// Last words to a client that may not come to the console, or to a database that takes nobody now.
    fn console_refuse(&mut self, text: &str, out: &mut Vec<u8>) {
        put_words(out, b'E', "FATAL", POOLER, text, None);
    }

    fn console_farewell(&mut self, text: &str, out: &mut Vec<u8>) {
        if !self.told_fatal {
            self.console_refuse(text, out);
        }
    }

    /// Looks at the start of the client's bytes.
    fn console_find(&mut self, input: &[u8], out: &mut Vec<u8>) -> Heard {
        let Some(&[tag, a, b, c, d]) = input.first_chunk::<HEADER_BYTES>() else { return Heard::Incomplete };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !(4..=CONSOLE_STATEMENT_BYTES).contains(&length) {
            put_words(out, b'E', "FATAL", POOLER, "statement too long for the console", None);
            return Heard::Refused;
        }
        let Some(body) = input.get(HEADER_BYTES..length + 1) else { return Heard::Incomplete };
        let what = match ClientTag::of(tag) {
            Some(ClientTag::Query) => {
                let text = body.split(|&byte| byte == 0).next().unwrap_or_default();
                let text = String::from_utf8_lossy(text).into_owned();
                return Heard::Statement { len: length + 1, text };
            }
            Some(ClientTag::Terminate) => return Heard::Goodbye,
            Some(ClientTag::Parse | ClientTag::Bind | ClientTag::Execute) => {
                "extended query protocol not supported by admin console".to_owned()
            }
            Some(
                ClientTag::Describe
                | ClientTag::Close
                | ClientTag::Sync
                | ClientTag::Flush
                | ClientTag::FunctionCall
                | ClientTag::CopyData
                | ClientTag::CopyDone
                | ClientTag::CopyFail,
            )
            | None => format!("unsupported packet type for admin console: {tag}"),
        };
        put_words(out, b'E', "ERROR", POOLER, &what, None);
        put_ready(out, Boundary::Idle);
        put_words(out, b'E', "FATAL", POOLER, "bad packet", None);
        Heard::Refused
    }

    /// Puts an answer into bytes, of rows about `most` at a time. True: all of it.
    fn console_put(
        &mut self,
        answer: &Answer,
        progress: &mut Progress,
        most: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        match answer {
            Answer::Rows(table) => {
                if !std::mem::replace(&mut progress.begun, true) {
                    put_columns(out, &table.columns);
                }
                if !put_rows(out, table, &mut progress.at, most) {
                    return false;
                }
                put_done(out, "SHOW");
            }
            Answer::Done { tag, notice } => {
                if let Some((line, detail)) = notice {
                    put_words(out, b'N', "NOTICE", "00000", line, Some(detail).filter(|it| !it.is_empty()));
                }
                put_done(out, tag);
            }
            Answer::Error(text) => put_words(out, b'E', "ERROR", POOLER, text, None),
        }
        put_ready(out, Boundary::Idle);
        true
    }
}

/// ErrorResponse or NoticeResponse, with the fields that PgBouncer's have.
fn put_words(
    out: &mut Vec<u8>,
    tag: u8,
    severity: &str,
    sqlstate: &str,
    message: &str,
    detail: Option<&&str>,
) {
    put(out, tag, |out| {
        let detail = detail.map(|detail| (b'D', *detail));
        for (field, text) in [(b'S', severity), (b'C', sqlstate), (b'M', message)].into_iter().chain(detail) {
            out.push(field);
            put_cstr(out, text.as_bytes());
        }
        out.push(0);
    });
}

fn put_done(out: &mut Vec<u8>, tag: &str) {
    put(out, b'C', |out| put_cstr(out, tag.as_bytes()));
}

fn put_columns(out: &mut Vec<u8>, columns: &[Column]) {
    put(out, b'T', |out| {
        out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
        for column in columns {
            // Number and length of PostgreSQL's types text, int4, int8 and numeric.
            let (oid, length): (u32, i16) = match column.kind {
                Kind::Text => (25, -1),
                Kind::Int4 => (23, 4),
                Kind::Int8 => (20, 8),
                Kind::Numeric => (1700, -1),
            };
            put_cstr(out, column.name.as_bytes());
            // Of no table, in no place of one.
            out.extend_from_slice(&[0; 6]);
            out.extend_from_slice(&oid.to_be_bytes());
            out.extend_from_slice(&length.to_be_bytes());
            // No modifier, as text.
            out.extend_from_slice(&(-1i32).to_be_bytes());
            out.extend_from_slice(&[0; 2]);
        }
    });
}

/// True: no row is left.
fn put_rows(out: &mut Vec<u8>, table: &Table, at: &mut usize, most: usize) -> bool {
    while let Some((row, end)) = table.row(*at) {
        if out.len() >= most {
            return false;
        }
        *at = end;
        put(out, b'D', |out| {
            out.extend_from_slice(&(row.len() as u16).to_be_bytes());
            for value in row {
                match value {
                    Some(bytes) => {
                        out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                        out.extend_from_slice(bytes);
                    }
                    None => out.extend_from_slice(&u32::MAX.to_be_bytes()),
                }
            }
        });
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::ClientKey;
    use crate::message::reply::read_ready;
    use crate::session_state::Settings;
    use weir_session::Console as _;

    fn front() -> Front {
        Front::new(7, ClientKey::new(&[1; 32], false), Settings::default())
    }

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, tag, |out| out.extend_from_slice(body));
        out
    }

    #[test]
    fn statements_are_found_however_they_are_cut() {
        let whole = message(b'Q', b"show pools\0");
        for cut in 0..whole.len() {
            assert_eq!(front().console_find(&whole[..cut], &mut Vec::new()), Heard::Incomplete);
        }
        let two = [whole.clone(), whole.clone()].concat();
        let text = "show pools".to_owned();
        assert_eq!(front().console_find(&two, &mut Vec::new()), Heard::Statement { len: whole.len(), text });
        assert_eq!(front().console_find(&message(b'X', b""), &mut Vec::new()), Heard::Goodbye);
    }

    #[test]
    fn what_is_not_a_statement_is_refused_and_never_a_panic() {
        for tag in 0..=u8::MAX {
            for length in [0u32, 3, 4, 9, CONSOLE_STATEMENT_BYTES as u32 + 1, u32::MAX] {
                let mut bytes = vec![tag];
                bytes.extend_from_slice(&length.to_be_bytes());
                bytes.extend_from_slice(&[0xFF; 8]);
                let mut out = Vec::new();
                let heard = front().console_find(&bytes, &mut out);
                assert_eq!(heard == Heard::Refused, !out.is_empty(), "{tag} {length}: {heard:?}");
                let is_long = !(4..=CONSOLE_STATEMENT_BYTES as u32).contains(&length);
                assert!(!is_long || heard == Heard::Refused);
            }
        }
    }

    #[test]
    fn rows_come_in_pieces_and_whole() {
        let columns = [Column { name: "a", kind: Kind::Text }, Column { name: "b", kind: Kind::Int4 }];
        let mut table = Table::new(&columns);
        for n in 0..100usize {
            table.text("x").number(n);
        }
        let answer = Answer::Rows(table);
        let mut at_once = Vec::new();
        assert!(front().console_put(&answer, &mut Progress::default(), usize::MAX, &mut at_once));
        let (mut pieces, mut progress, mut times) = (Vec::new(), Progress::default(), 0);
        loop {
            let mut out = Vec::new();
            let done = front().console_put(&answer, &mut progress, 100, &mut out);
            assert!(out.len() < 200);
            pieces.extend_from_slice(&out);
            times += 1;
            if done {
                break;
            }
        }
        assert!(pieces == at_once && times > 10);
        assert_eq!(read_ready(&at_once[at_once.len() - 1..]), Ok(Boundary::Idle));
    }
}
