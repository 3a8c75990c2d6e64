//! Requests and replies of a PostgreSQL client (protocol 3.0, sections "Simple Query" and "Extended
//! Query").
//!
//! In the modes with parameters it sends what libpq sends: Parse (once or each time), Bind, Describe of
//! the portal, Execute, Sync, in one packet.

use super::{MESSAGE_BYTES_MAX, Piece, Protocol, Refusal};
use crate::plan::Mode;
use crate::statement::{Got, Query, Statement, Value};
use crate::url::Dialect;
use weir_postgres::Connect;
use weir_session::Connect as _;
use weir_session::login::ConnectParams;
use weir_wire::{Reader, Short};

/// Type byte and length of a message.
const HEADER_BYTES: usize = 5;

/// The PostgreSQL protocol.
pub enum Postgres {}

/// What a PostgreSQL client keeps between two queries.
#[derive(Debug, Default)]
pub struct Session {
    /// Bytes of a long message that still have to pass.
    skip: usize,
    /// One bit for each statement of the workload that this session has prepared.
    prepared: Vec<u64>,
    /// The statement whose Parse is under way: it counts once ParseComplete comes.
    parsing: Option<usize>,
    /// A row of this reply was seen.
    row_seen: bool,
    /// The query wants all rows.
    listen: bool,
    /// The last ReadyForQuery said that a transaction is open, or has failed.
    in_transaction: bool,
}

impl Session {
    fn is_prepared(&self, statement: usize) -> bool {
        self.prepared.get(statement / 64).is_some_and(|word| word & (1 << (statement % 64)) != 0)
    }

    fn set_prepared(&mut self, statement: usize) {
        if self.prepared.len() <= statement / 64 {
            self.prepared.resize(statement / 64 + 1, 0);
        }
        if let Some(word) = self.prepared.get_mut(statement / 64) {
            *word |= 1 << (statement % 64);
        }
    }
}

impl Protocol for Postgres {
    const REFUSAL_ENDS_REPLY: bool = false;

    const TLS_IS_ASKED_FIRST: bool = true;

    type Login = Connect;
    type Session = Session;

    fn login(params: ConnectParams) -> Connect {
        Connect::new(params)
    }

    fn read_refusal(payload: &[u8]) -> Refusal {
        refusal(payload)
    }

    fn into_session(_login: Connect) -> Session {
        Session::default()
    }

    fn begin(session: &mut Session, statements: &[Statement], query: &Query, mode: Mode, out: &mut Vec<u8>) {
        session.row_seen = false;
        session.listen = query.listen;
        let Some(statement) = statements.get(query.statement) else { return };
        match mode {
            Mode::Simple => message(b'Q', out, |out| {
                statement.render(&query.params, Dialect::Postgres, out);
                out.push(0);
            }),
            Mode::Extended => {
                write_parse(b"", statement, out);
                write_run(b"", query, out);
            }
            Mode::Prepared => {
                let name = format!("s{}", query.statement);
                if !session.is_prepared(query.statement) {
                    write_parse(name.as_bytes(), statement, out);
                    session.parsing = Some(query.statement);
                }
                write_run(name.as_bytes(), query, out);
            }
        }
    }

    fn in_transaction(session: &Session) -> bool {
        session.in_transaction
    }

    fn begin_text(session: &mut Session, text: &[u8], out: &mut Vec<u8>) {
        session.row_seen = false;
        session.listen = false;
        message(b'Q', out, |out| {
            out.extend_from_slice(text);
            out.push(0);
        });
    }

    fn next<'a>(session: &mut Session, input: &'a [u8]) -> Piece<'a> {
        if session.skip > 0 && !input.is_empty() {
            let n = session.skip.min(input.len());
            session.skip -= n;
            return Piece::Pass(n);
        }
        let mut reader = Reader::new(input);
        let (Ok(tag), Ok(len)) = (reader.u8(), reader.u32_be()) else { return Piece::Incomplete };
        let Some(body_len) = (len as usize).checked_sub(4) else {
            return Piece::Broken("a message length below 4");
        };
        let whole = HEADER_BYTES + body_len;
        if body_len > MESSAGE_BYTES_MAX {
            return long_message(session, tag, whole, input.len());
        }
        let Ok(body) = reader.take(body_len) else { return Piece::Incomplete };
        whole_message(session, tag, whole, body)
    }

    fn quit(out: &mut Vec<u8>) {
        message(b'X', out, |_| {});
    }
}

fn whole_message<'a>(session: &mut Session, tag: u8, whole: usize, body: &'a [u8]) -> Piece<'a> {
    match tag {
        b'D' if session.listen => match all_values(body) {
            Ok(values) => Piece::Row(whole, values),
            Err(Short) => Piece::Broken("a DataRow shorter than its fields"),
        },
        b'D' if !session.row_seen => {
            session.row_seen = true;
            match first_value(body) {
                Ok(got) => Piece::First(whole, got),
                Err(Short) => Piece::Broken("a DataRow shorter than its fields"),
            }
        }
        b'E' => {
            session.parsing = None;
            Piece::Refused(whole, refusal(body))
        }
        b'Z' => {
            session.in_transaction = body.first() != Some(&b'I');
            session.parsing = None;
            Piece::Done(whole)
        }
        // Prepared from here on, whatever becomes of its execution and of the transaction.
        b'1' => {
            if let Some(statement) = session.parsing.take() {
                session.set_prepared(statement);
            }
            Piece::Pass(whole)
        }
        // DataRow, RowDescription, CommandComplete, EmptyQueryResponse, BindComplete,
        // CloseComplete, NoData, ParameterDescription, PortalSuspended; and what may come at any moment:
        // NoticeResponse, ParameterStatus, NotificationResponse.
        b'D' | b'T' | b'C' | b'I' | b'2' | b'3' | b'n' | b't' | b's' | b'N' | b'S' | b'A' => {
            Piece::Pass(whole)
        }
        // CopyInResponse, CopyOutResponse, CopyBothResponse, CopyData, CopyDone, FunctionCallResponse.
        b'G' | b'H' | b'W' | b'd' | b'c' | b'V' => Piece::Broken("a reply no workload asks for"),
        b'R' | b'K' | b'v' => Piece::Broken("a login message after the login"),
        _ => Piece::Broken("an unknown message type"),
    }
}

/// Only rows may be longer than [`MESSAGE_BYTES_MAX`].
fn long_message<'a>(session: &mut Session, tag: u8, whole: usize, here: usize) -> Piece<'a> {
    if tag != b'D' {
        return Piece::Broken("a message over 256 kB that is no row");
    }
    let n = whole.min(here);
    session.skip = whole - n;
    if session.row_seen {
        return Piece::Pass(n);
    }
    session.row_seen = true;
    Piece::First(n, Got::TooLong)
}

fn first_value(body: &[u8]) -> Result<Got<'_>, Short> {
    let mut reader = Reader::new(body);
    if reader.u16_be()? == 0 {
        return Ok(Got::Null);
    }
    match reader.u32_be()? {
        u32::MAX => Ok(Got::Null),
        len => Ok(Got::Text(reader.take(len as usize)?)),
    }
}

fn all_values(body: &[u8]) -> Result<Vec<Value>, Short> {
    let mut reader = Reader::new(body);
    let count = reader.u16_be()?;
    let value = |reader: &mut Reader<'_>| match reader.u32_be()? {
        u32::MAX => Ok(Value::Null),
        len => Ok(Value::Text(reader.take(len as usize)?.to_vec())),
    };
    (0..count).map(|_| value(&mut reader)).collect()
}

/// Reads the payload of an ErrorResponse.
fn refusal(body: &[u8]) -> Refusal {
    let mut reader = Reader::new(body);
    let (mut code, mut text, mut severity) = (String::new(), String::new(), String::new());
    while let Ok(field) = reader.u8() {
        let Ok(value) = reader.cstr() else { break };
        let value = String::from_utf8_lossy(value);
        match field {
            b'C' => code = value.into_owned(),
            b'M' => text = value.into_owned(),
            // `V` (never translated) is sent after `S` and wins.
            b'S' | b'V' => severity = value.into_owned(),
            _ => {}
        }
    }
    if code.is_empty() {
        code.push_str("no code");
    }
    Refusal { code, text, fatal: matches!(severity.as_str(), "FATAL" | "PANIC") }
}

fn write_parse(name: &[u8], statement: &Statement, out: &mut Vec<u8>) {
    message(b'P', out, |out| {
        write_name(name, out);
        write_name(statement.template(Dialect::Postgres).as_bytes(), out);
        out.extend_from_slice(&0u16.to_be_bytes());
    });
}

/// Bind to the unnamed portal with parameters and results as text, Describe, Execute, Sync.
fn write_run(name: &[u8], query: &Query, out: &mut Vec<u8>) {
    message(b'B', out, |out| {
        write_name(b"", out);
        write_name(name, out);
        out.extend_from_slice(&0u16.to_be_bytes());
        out.extend_from_slice(&(query.params.len() as u16).to_be_bytes());
        for value in &query.params {
            let at = out.len();
            if matches!(value, Value::Null) {
                out.extend_from_slice(&u32::MAX.to_be_bytes());
                continue;
            }
            out.extend_from_slice(&[0; 4]);
            value.write_text(out);
            let len = out.len() - at - 4;
            patch_len(out, at, len);
        }
        out.extend_from_slice(&0u16.to_be_bytes());
    });
    message(b'D', out, |out| out.extend_from_slice(b"P\0"));
    message(b'E', out, |out| out.extend_from_slice(&[0; 5]));
    message(b'S', out, |_| {});
}

fn write_name(name: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.push(0);
}

fn message(tag: u8, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let len = out.len() - at;
    patch_len(out, at, len);
}

fn patch_len(out: &mut [u8], at: usize, len: usize) {
    // The workloads' texts are far below 2 GB.
    out[at..at + 4].copy_from_slice(&(len as u32).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Expect;

    fn row(value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        message(b'D', &mut out, |out| {
            out.extend_from_slice(&1u16.to_be_bytes());
            out.extend_from_slice(&(value.len() as u32).to_be_bytes());
            out.extend_from_slice(value);
        });
        out
    }

    fn reply(value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        message(b'T', &mut out, |out| out.extend_from_slice(b"\0\0"));
        out.extend(row(value));
        message(b'C', &mut out, |out| out.extend_from_slice(b"SELECT 1\0"));
        message(b'Z', &mut out, |out| out.push(b'I'));
        out
    }

    fn query(session: &mut Session, mode: Mode) -> Vec<u8> {
        let statements = [Statement::new("SELECT ?")];
        let mut query = Query::default();
        query.set(0, [Value::Int(42)], Expect::Success);
        let mut out = Vec::new();
        Postgres::begin(session, &statements, &query, mode, &mut out);
        out
    }

    fn tags(mut bytes: &[u8]) -> String {
        let mut tags = String::new();
        while let Some((&tag, rest)) = bytes.split_first() {
            tags.push(tag as char);
            let len = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
            bytes = &rest[len..];
        }
        tags
    }

    /// Reads a reply that arrives in chunks of `step` bytes.
    fn read(session: &mut Session, bytes: &[u8], step: usize) -> (Option<Vec<u8>>, usize) {
        let (mut start, mut end, mut first, mut done) = (0, 0, None, 0);
        while end < bytes.len() {
            end = (end + step).min(bytes.len());
            loop {
                match Postgres::next(session, &bytes[start..end]) {
                    Piece::Incomplete => break,
                    Piece::First(n, Got::Text(text)) => {
                        first = Some(text.to_vec());
                        start += n;
                    }
                    Piece::Done(n) => {
                        done += 1;
                        start += n;
                    }
                    Piece::Pass(n) | Piece::First(n, _) => start += n,
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(start, bytes.len());
        (first, done)
    }

    #[test]
    fn simple_reply_split_everywhere() {
        let bytes = reply(b"42");
        for step in 1..=bytes.len() {
            let mut session = Session::default();
            query(&mut session, Mode::Simple);
            assert_eq!(read(&mut session, &bytes, step), (Some(b"42".to_vec()), 1));
        }
    }

    #[test]
    fn prepared_parses_once_and_again_after_an_error() {
        let mut session = Session::default();
        assert_eq!(tags(&query(&mut session, Mode::Prepared)), "PBDES");
        let mut error = Vec::new();
        message(b'E', &mut error, |out| out.extend_from_slice(b"SERROR\0C26000\0Mno\0\0"));
        let Piece::Refused(_, refusal) = Postgres::next(&mut session, &error) else { panic!() };
        assert_eq!((refusal.code.as_str(), refusal.text.as_str(), refusal.fatal), ("26000", "no", false));
        read(&mut session, b"Z\0\0\0\x05I", 99);
        assert_eq!(tags(&query(&mut session, Mode::Prepared)), "PBDES");
        let mut parsed = b"1\0\0\0\x04".to_vec();
        parsed.extend(reply(b"42"));
        read(&mut session, &parsed, 99);
        assert_eq!(tags(&query(&mut session, Mode::Prepared)), "BDES");
        assert_eq!(tags(&query(&mut session, Mode::Extended)), "PBDES");
    }

    #[test]
    fn a_statement_whose_first_execution_fails_is_prepared_all_the_same() {
        let mut session = Session::default();
        query(&mut session, Mode::Prepared);
        read(&mut session, b"1\0\0\0\x04", 99);
        let mut error = Vec::new();
        message(b'E', &mut error, |out| out.extend_from_slice(b"SERROR\0C40001\0Mno\0\0"));
        assert!(matches!(Postgres::next(&mut session, &error), Piece::Refused(..)));
        read(&mut session, b"Z\0\0\0\x05E", 99);
        assert!(Postgres::in_transaction(&session));
        assert_eq!(tags(&query(&mut session, Mode::Prepared)), "BDES");
    }

    #[test]
    fn a_query_that_listens_gets_all_values_of_all_rows() {
        let mut session = Session::default();
        let mut asked = Query::default();
        asked.set(0, [Value::Int(1)], Expect::Success);
        asked.listen = true;
        Postgres::begin(&mut session, &[Statement::new("SELECT ?")], &asked, Mode::Simple, &mut Vec::new());
        let mut bytes = Vec::new();
        message(b'D', &mut bytes, |out| {
            out.extend_from_slice(b"\0\x02\0\0\0\x01a\xff\xff\xff\xff");
        });
        let Piece::Row(n, values) = Postgres::next(&mut session, &bytes) else { panic!("not a row") };
        assert_eq!((n, values), (bytes.len(), vec![Value::Text(b"a".to_vec()), Value::Null]));
    }

    #[test]
    fn long_rows_pass_unread() {
        let mut session = Session::default();
        query(&mut session, Mode::Simple);
        let mut bytes = row(&vec![b'x'; MESSAGE_BYTES_MAX * 2]);
        bytes.extend(reply(b"42"));
        assert_eq!(read(&mut session, &bytes, 1000), (None, 1));
    }

    #[test]
    fn malformed_is_broken() {
        for bytes in [&b"D\0\0\0\x03"[..], b"D\0\0\0\x05\0", b"?\0\0\0\x04", b"R\0\0\0\x04", b"G\0\0\0\x04"] {
            let mut session = Session::default();
            assert!(matches!(Postgres::next(&mut session, bytes), Piece::Broken(_)), "{bytes:?}");
        }
    }
}
