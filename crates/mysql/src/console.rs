//! The administration console in the MySQL protocol: COM_QUERY in; rows, OK and ERR out.
//!
//! Owns: the bytes. Must not know: what a statement means, who answers it.
//!
//! Invariant: no statement longer than [`CONSOLE_STATEMENT_BYTES`] is buffered.

use crate::back::Back;
use crate::front::{Front, Phase};
use crate::message::ok::{self, OkPacket};
use crate::message::{Capabilities, Command, lenenc, status};
use crate::{error, frame};
use weir_wire::FaultKind;
use weir_wire::console::{Answer, Column, Heard, Kind, Progress, Table};
use weir_wire::limits::CONSOLE_STATEMENT_BYTES;

/// The errno and SQLSTATE of a statement that the console does not take: those of a syntax error.
const REFUSED: (u16, &str) = (1064, "42000");
/// Of a command that it does not speak.
const UNKNOWN_COMMAND: (u16, &str) = (1047, "08S01");
/// Of a client that may not come in.
const DENIED: (u16, &str) = (1044, "42000");
/// Of a packet that is too long.
const TOO_LONG: (u16, &str) = (1153, "08S01");

/// utf8mb4_general_ci, which all servers have had for long.
const COLLATION: u16 = 45;

/// The schema's name.
const SCHEMA: &[u8] = b"weir";

impl Back {
    /// The database's own number of this connection; 0: it has told none.
    pub(crate) fn console_pid(&self) -> u64 {
        self.connection_number().unwrap_or(0)
    }
}

impl Front {
    fn console_ok(&self, seq: u8, out: &mut Vec<u8>) -> u8 {
        let packet = OkPacket { status: self.status, ..OkPacket::default() };
        frame::put(out, seq, |out| packet.write(ok::OK, self.capabilities, out))
    }

    /// The end of rows.
    fn console_eof(&self, seq: u8, out: &mut Vec<u8>) -> u8 {
        let packet = OkPacket { status: self.status, ..OkPacket::default() };
        frame::put(out, seq, |out| packet.write(ok::EOF, self.capabilities, out))
    }

    fn console_rows(
        &mut self,
        table: &Table,
        progress: &mut Progress,
        most: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        if !std::mem::replace(&mut progress.begun, true) {
            progress.seq = self.console_columns(&table.columns, out);
        }
        while let Some((row, end)) = table.row(progress.at) {
            if out.len() >= most {
                return false;
            }
            progress.at = end;
            progress.seq = frame::put(out, progress.seq, |out| {
                for value in row {
                    match value {
                        Some(bytes) => lenenc::put_string(out, bytes),
                        None => out.push(0xFB),
                    }
                }
            });
        }
        self.console_eof(progress.seq, out);
        true
    }

    fn console_columns(&self, columns: &[Column], out: &mut Vec<u8>) -> u8 {
        let mut seq = frame::put(out, self.reply_seq, |out| lenenc::put_number(out, columns.len() as u64));
        for column in columns {
            seq = frame::put(out, seq, |out| {
                for text in [&b"def"[..], SCHEMA, b"", b"", column.name.as_bytes(), b""] {
                    lenenc::put_string(out, text);
                }
                if self.capabilities.has(Capabilities::EXTENDED_METADATA) {
                    lenenc::put_string(out, b"");
                }
                // MYSQL_TYPE_VAR_STRING, LONG, LONGLONG, NEWDECIMAL; lengths as their servers give them.
                let (kind, length): (u8, u32) = match column.kind {
                    Kind::Text => (0xFD, 1020),
                    Kind::Int4 => (0x03, 11),
                    Kind::Int8 => (0x08, 20),
                    Kind::Numeric => (0xF6, 65),
                };
                // 63 is the "character set" of numbers.
                let collation = if column.kind == Kind::Text { COLLATION } else { 63 };
                out.push(0x0C);
                out.extend_from_slice(&collation.to_le_bytes());
                out.extend_from_slice(&length.to_le_bytes());
                out.extend_from_slice(&[kind, 0, 0, 0, 0, 0]);
            });
        }
        if !self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            seq = self.console_eof(seq, out);
        }
        seq
    }
}

impl weir_session::Console for Front {
    fn console_greet(&mut self, _version: &str, out: &mut Vec<u8>) {
        self.status = status::AUTOCOMMIT;
        let seq = self.seq;
        self.console_ok(seq, out);
        self.phase = Phase::Idle;
    }

    /// Last words to a client that may not come to the console, or to a database that takes nobody now.
    fn console_refuse(&mut self, text: &str, out: &mut Vec<u8>) {
        error::put(out, self.seq, DENIED.0, DENIED.1, text);
    }

    /// Last words to a client in its session: those of a KILL.
    fn console_farewell(&mut self, _text: &str, out: &mut Vec<u8>) {
        self.fatal(&FaultKind::Killed.into(), out);
    }

    /// Looks at the start of the client's bytes.
    fn console_find(&mut self, input: &[u8], out: &mut Vec<u8>) -> Heard {
        let Some(header) = frame::Header::read(input) else { return Heard::Incomplete };
        let seq = header.seq.wrapping_add(1);
        if header.len > CONSOLE_STATEMENT_BYTES {
            error::put(out, seq, TOO_LONG.0, TOO_LONG.1, "statement too long for the console");
            return Heard::Refused;
        }
        let len = header.total();
        let Some(payload) = input.get(frame::HEADER_BYTES..len) else { return Heard::Incomplete };
        self.reply_seq = seq;
        let Some((&code, rest)) = payload.split_first() else {
            error::put(out, seq, UNKNOWN_COMMAND.0, UNKNOWN_COMMAND.1, "Unknown command");
            return Heard::Refused;
        };
        match Command::from_code(code) {
            Some(Command::Query) => {
                return Heard::Statement { len, text: String::from_utf8_lossy(rest).into_owned() };
            }
            Some(Command::Quit) => return Heard::Goodbye,
            Some(Command::Ping | Command::ResetConnection) => {
                self.console_ok(seq, out);
            }
            Some(Command::InitDb) if rest == SCHEMA => {
                self.console_ok(seq, out);
            }
            Some(Command::SetOption) => {
                self.console_eof(seq, out);
            }
            Some(Command::InitDb) => {
                let text = "this is the console of Weir; connect anew to use another database";
                error::put(out, seq, DENIED.0, DENIED.1, text);
            }
            // These have no reply.
            Some(Command::StmtClose | Command::StmtSendLongData) => {}
            Some(_) | None => {
                let text = "the console takes text queries only";
                error::put(out, seq, UNKNOWN_COMMAND.0, UNKNOWN_COMMAND.1, text);
            }
        }
        Heard::Answered { len }
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
            Answer::Rows(table) => return self.console_rows(table, progress, most, out),
            // There are no notices: what is said in detail are rows.
            Answer::Done { notice: Some((line, detail)), .. } => {
                let mut table = Table::new(&[Column { name: line, kind: Kind::Text }]);
                detail.lines().map(str::trim).filter(|it| !it.is_empty()).for_each(|it| {
                    table.text(it);
                });
                return self.console_rows(&table, progress, usize::MAX, out);
            }
            Answer::Done { notice: None, .. } => {
                self.console_ok(self.reply_seq, out);
            }
            Answer::Error(text) => {
                error::put(out, self.reply_seq, REFUSED.0, REFUSED.1, text);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_session::Console as _;

    fn front() -> Front {
        Front::new(7, Capabilities::OFFERED, 45, 2)
    }

    fn packet(payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        frame::put_payload(&mut out, 0, payload);
        out
    }

    #[test]
    fn statements_are_found_however_they_are_cut() {
        let whole = packet(b"\x03show pools");
        for cut in 0..whole.len() {
            assert_eq!(front().console_find(&whole[..cut], &mut Vec::new()), Heard::Incomplete);
        }
        let wanted = Heard::Statement { len: whole.len(), text: "show pools".to_owned() };
        assert_eq!(front().console_find(&whole, &mut Vec::new()), wanted);
        assert_eq!(front().console_find(&packet(b"\x01"), &mut Vec::new()), Heard::Goodbye);
    }

    #[test]
    fn any_command_is_answered_and_never_a_panic() {
        for code in 0..=u8::MAX {
            for rest in [&b""[..], b"weir", b"\0\0\0\0", b"\xFF\xFE"] {
                let bytes = packet(&[&[code], rest].concat());
                let mut out = Vec::new();
                match front().console_find(&bytes, &mut out) {
                    Heard::Answered { len } => {
                        assert_eq!(len, bytes.len());
                        let has_no_reply = [0x18, 0x19].contains(&code);
                        assert_eq!(out.is_empty(), has_no_reply, "{code}");
                    }
                    Heard::Statement { .. } => assert_eq!(code, 3),
                    Heard::Goodbye => assert_eq!(code, 1),
                    Heard::Incomplete | Heard::Refused => panic!("{code} {rest:?}"),
                }
            }
        }
        let long = packet(&vec![3; CONSOLE_STATEMENT_BYTES + 1]);
        assert_eq!(front().console_find(&long[..20], &mut Vec::new()), Heard::Refused);
        assert_eq!(front().console_find(&packet(b""), &mut Vec::new()), Heard::Refused);
    }

    #[test]
    fn rows_come_in_pieces_and_whole() {
        let columns = [Column { name: "a", kind: Kind::Text }, Column { name: "b", kind: Kind::Numeric }];
        let mut table = Table::new(&columns);
        for n in 0..300usize {
            table.null().number(n);
        }
        let answer = Answer::Rows(table);
        for capabilities in [Capabilities::OFFERED, Capabilities::PROTOCOL_41] {
            let new = || Front::new(7, capabilities, 45, 2);
            let mut at_once = Vec::new();
            assert!(new().console_put(&answer, &mut Progress::default(), usize::MAX, &mut at_once));
            let (mut pieces, mut progress) = (Vec::new(), Progress::default());
            loop {
                let mut out = Vec::new();
                let done = new().console_put(&answer, &mut progress, 200, &mut out);
                pieces.extend_from_slice(&out);
                if done {
                    break;
                }
            }
            assert!(pieces == at_once);
        }
    }
}
