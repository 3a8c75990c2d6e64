//! Requests and replies of a MySQL or MariaDB client (client/server protocol, "Text Protocol" and "Prepared
//! Statements").
//!
//! `Simple` is COM_QUERY. `Prepared` is COM_STMT_PREPARE once for each statement and COM_STMT_EXECUTE from
//! then on; `Extended` prepares, executes and closes each time, like a driver that keeps no statements. The
//! wing's login requires CLIENT_DEPRECATE_EOF, so there are no EOF packets.

use super::{MESSAGE_BYTES_MAX, Piece, Protocol, Refusal};
use crate::plan::Mode;
use crate::statement::{Got, Query, Statement, Value};
use crate::url::Dialect;
use weir_mysql::Connect;
use weir_session::login::ConnectParams;
use weir_wire::{Reader, Short};

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const COM_STMT_CLOSE: u8 = 0x19;

/// The error of an execution whose statement the server does not know.
const ER_UNKNOWN_STMT_HANDLER: &str = "1243";

/// The error of a COM_STMT_PREPARE whose statement can only be sent as text (BEGIN, for MySQL).
const ER_UNSUPPORTED_PS: &str = "1295";

/// A deadlock's victim: the server has rolled its transaction back.
const ER_LOCK_DEADLOCK: &str = "1213";

/// In place of a statement's number: it can only be sent as text.
const AS_TEXT: u32 = u32::MAX;

/// SERVER_STATUS_IN_TRANS in the status flags.
const IN_TRANSACTION: u16 = 0x0001;

/// SERVER_MORE_RESULTS_EXISTS in the status flags.
const MORE_RESULTS: u16 = 0x0008;

/// A packet of this length is continued by the next one.
const PACKET_BYTES_MAX: usize = 0xff_ffff;

/// The MySQL protocol.
pub enum Mysql {}

/// What a MySQL client keeps between two queries.
#[derive(Debug, Default)]
pub struct Session {
    /// Where the reply stands.
    expect: Await,
    /// Bytes of a long packet that still have to pass.
    skip: usize,
    /// The packet after this one continues the same payload.
    continued: bool,
    /// The reply to the query is in the binary format.
    binary: bool,
    /// A row of this reply was seen.
    row_seen: bool,
    /// The type of the first column, once its definition has come.
    first_type: u8,
    /// The server's numbers of the statements this session has prepared; 0 is none.
    prepared: Vec<u32>,
    /// The statement whose COM_STMT_PREPARE is under way.
    preparing: usize,
    /// The query wants all rows.
    listen: bool,
    /// The types of all columns, for a query that wants all rows.
    types: Vec<u8>,
    /// The last status flags said that a transaction is open.
    in_transaction: bool,
}

/// What the next packet is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Await {
    /// Nothing is owed: only a server that closes says something.
    #[default]
    Nothing,
    /// OK, ERR, or the number of columns.
    Head,
    /// Column definitions.
    Columns { left: u64, first: bool },
    /// A row, or the end of the result.
    Row,
    /// COM_STMT_PREPARE's OK.
    PrepareHead,
    /// Definitions of parameters and columns.
    PrepareRest { left: u32 },
}

impl Protocol for Mysql {
    const REFUSAL_ENDS_REPLY: bool = true;

    const TLS_IS_ASKED_FIRST: bool = false;

    type Login = Connect;
    type Session = Session;

    fn login(params: ConnectParams) -> Connect {
        Connect::bare(params)
    }

    fn read_refusal(payload: &[u8]) -> Refusal {
        refusal(payload)
    }

    fn into_session(_login: Connect) -> Session {
        Session::default()
    }

    fn begin(session: &mut Session, statements: &[Statement], query: &Query, mode: Mode, out: &mut Vec<u8>) {
        let Some(statement) = statements.get(query.statement) else { return };
        session.row_seen = false;
        session.listen = query.listen;
        let known = session.prepared.get(query.statement).copied().unwrap_or(0);
        if mode == Mode::Simple || known == AS_TEXT {
            session.binary = false;
            session.expect = Await::Head;
            return packet(COM_QUERY, out, |out| statement.render(&query.params, Dialect::Mysql, out));
        }
        if known == 0 {
            session.preparing = query.statement;
            session.expect = Await::PrepareHead;
            return packet(COM_STMT_PREPARE, out, |out| {
                out.extend_from_slice(statement.template(Dialect::Mysql).as_bytes());
            });
        }
        session.binary = true;
        session.expect = Await::Head;
        packet(COM_STMT_EXECUTE, out, |out| write_execute(known, &query.params, out));
        if mode == Mode::Extended {
            // COM_STMT_CLOSE has no reply; servers take it right behind the execution.
            packet(COM_STMT_CLOSE, out, |out| out.extend_from_slice(&known.to_le_bytes()));
            if let Some(id) = session.prepared.get_mut(query.statement) {
                *id = 0;
            }
        }
    }

    fn in_transaction(session: &Session) -> bool {
        session.in_transaction
    }

    fn begin_text(session: &mut Session, text: &[u8], out: &mut Vec<u8>) {
        session.row_seen = false;
        session.listen = false;
        session.binary = false;
        session.expect = Await::Head;
        packet(COM_QUERY, out, |out| out.extend_from_slice(text));
    }

    fn next<'a>(session: &mut Session, input: &'a [u8]) -> Piece<'a> {
        if session.skip > 0 && !input.is_empty() {
            let n = session.skip.min(input.len());
            session.skip -= n;
            return Piece::Pass(n);
        }
        let mut reader = Reader::new(input);
        let (Ok(len), Ok(_sequence)) = (reader.u24_le(), reader.u8()) else { return Piece::Incomplete };
        let len = len as usize;
        let continuation = std::mem::replace(&mut session.continued, false);
        if len > MESSAGE_BYTES_MAX || continuation {
            return long_packet(session, continuation, len, input.len());
        }
        let Ok(payload) = reader.take(len) else { return Piece::Incomplete };
        match session.handle(payload, len + 4) {
            Ok(piece) => piece,
            Err(Short) => Piece::Broken("a packet shorter than its fields"),
        }
    }

    fn quit(out: &mut Vec<u8>) {
        packet(COM_QUIT, out, |_| {});
    }
}

/// Only rows may be longer than [`MESSAGE_BYTES_MAX`].
fn long_packet<'a>(session: &mut Session, continuation: bool, len: usize, here: usize) -> Piece<'a> {
    if session.expect != Await::Row {
        return Piece::Broken("a packet over 256 kB that is no row");
    }
    session.continued = len == PACKET_BYTES_MAX;
    let n = (len + 4).min(here);
    session.skip = len + 4 - n;
    if session.row_seen || continuation {
        return Piece::Pass(n);
    }
    session.row_seen = true;
    Piece::First(n, Got::TooLong)
}

impl Session {
    fn handle<'a>(&mut self, payload: &'a [u8], whole: usize) -> Result<Piece<'a>, Short> {
        let first = *payload.first().ok_or(Short)?;
        if first == 0xff && !matches!(self.expect, Await::Columns { .. }) {
            let mut refusal = refusal(payload);
            refusal.fatal |= self.expect == Await::Nothing;
            let preparing = std::mem::take(&mut self.expect) == Await::PrepareHead;
            if preparing && refusal.code == ER_UNSUPPORTED_PS {
                self.set_number(AS_TEXT);
                return Ok(Piece::Again(whole));
            }
            if refusal.code == ER_LOCK_DEADLOCK {
                self.in_transaction = false;
            }
            if refusal.code == ER_UNKNOWN_STMT_HANDLER {
                // The server has lost our statements: the next queries prepare them again.
                self.prepared.clear();
            }
            // An ERR packet is the whole reply: the connection waits for the next command.
            return Ok(Piece::Refused(whole, refusal));
        }
        match self.expect {
            Await::Nothing => Ok(Piece::Broken("a packet nobody asked for")),
            Await::Head => self.handle_head(first, payload, whole),
            Await::Columns { left, first } => {
                if self.listen {
                    self.types.push(column_type(payload)?);
                } else if first {
                    self.first_type = column_type(payload)?;
                }
                self.expect = match left.saturating_sub(1) {
                    0 => Await::Row,
                    left => Await::Columns { left, first: false },
                };
                Ok(Piece::Pass(whole))
            }
            Await::Row => self.handle_row(first, payload, whole),
            Await::PrepareHead => self.handle_prepare(payload, whole),
            Await::PrepareRest { left } => Ok(self.prepare_left(left.saturating_sub(1), whole)),
        }
    }

    fn handle_head<'a>(&mut self, first: u8, payload: &'a [u8], whole: usize) -> Result<Piece<'a>, Short> {
        match first {
            0x00 => {
                let mut reader = Reader::new(payload);
                reader.u8()?;
                lenenc(&mut reader)?;
                lenenc(&mut reader)?;
                Ok(self.result_ended(reader.u16_le()?, whole))
            }
            0xfb => Ok(Piece::Broken("LOCAL INFILE, which no workload asks for")),
            _ => {
                let columns = lenenc(&mut Reader::new(payload))?;
                self.types.clear();
                self.expect = Await::Columns { left: columns, first: true };
                Ok(Piece::Pass(whole))
            }
        }
    }

    fn handle_row<'a>(&mut self, first: u8, payload: &'a [u8], whole: usize) -> Result<Piece<'a>, Short> {
        // The end is an OK packet that begins with 0xfe. A row that does begins with a string over 16 MB and
        // is not looked at here.
        if first == 0xfe {
            let mut reader = Reader::new(payload);
            reader.u8()?;
            lenenc(&mut reader)?;
            lenenc(&mut reader)?;
            return Ok(self.result_ended(reader.u16_le()?, whole));
        }
        if self.listen {
            let values =
                if self.binary { binary_values(payload, &self.types)? } else { text_values(payload)? };
            return Ok(Piece::Row(whole, values));
        }
        if std::mem::replace(&mut self.row_seen, true) {
            return Ok(Piece::Pass(whole));
        }
        let got = if self.binary { binary_value(payload, self.first_type)? } else { text_value(payload)? };
        Ok(Piece::First(whole, got))
    }

    fn result_ended<'a>(&mut self, status: u16, whole: usize) -> Piece<'a> {
        self.in_transaction = status & IN_TRANSACTION != 0;
        if status & MORE_RESULTS != 0 {
            self.expect = Await::Head;
            return Piece::Pass(whole);
        }
        self.expect = Await::Nothing;
        Piece::Done(whole)
    }

    fn handle_prepare<'a>(&mut self, payload: &'a [u8], whole: usize) -> Result<Piece<'a>, Short> {
        let mut reader = Reader::new(payload);
        reader.u8()?;
        let id = reader.u32_le()?;
        let (columns, params) = (u32::from(reader.u16_le()?), u32::from(reader.u16_le()?));
        self.set_number(id);
        Ok(self.prepare_left(columns + params, whole))
    }

    /// What the server calls the statement that is being prepared.
    fn set_number(&mut self, number: u32) {
        if self.prepared.len() <= self.preparing {
            self.prepared.resize(self.preparing + 1, 0);
        }
        if let Some(known) = self.prepared.get_mut(self.preparing) {
            *known = number;
        }
    }

    fn prepare_left<'a>(&mut self, left: u32, whole: usize) -> Piece<'a> {
        if left > 0 {
            self.expect = Await::PrepareRest { left };
            return Piece::Pass(whole);
        }
        self.expect = Await::Nothing;
        Piece::Again(whole)
    }
}

/// A length-encoded number ("Protocol::LengthEncodedInteger").
fn lenenc(reader: &mut Reader<'_>) -> Result<u64, Short> {
    Ok(match reader.u8()? {
        0xfc => u64::from(reader.u16_le()?),
        0xfd => u64::from(reader.u24_le()?),
        0xfe => reader.u64_le()?,
        small => u64::from(small),
    })
}

fn lenenc_bytes<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Short> {
    let len = lenenc(reader)?;
    reader.take(usize::try_from(len).map_err(|_| Short)?)
}

/// The type byte of a column definition ("Protocol::ColumnDefinition41"): six strings (catalog to original
/// name), the length of what follows, character set, length, type. MariaDB's extended metadata is never
/// asked for.
fn column_type(payload: &[u8]) -> Result<u8, Short> {
    let mut reader = Reader::new(payload);
    for _ in 0..6 {
        lenenc_bytes(&mut reader)?;
    }
    lenenc(&mut reader)?;
    reader.take(6)?;
    reader.u8()
}

fn text_value(payload: &[u8]) -> Result<Got<'_>, Short> {
    if payload.first() == Some(&0xfb) {
        return Ok(Got::Null);
    }
    Ok(Got::Text(lenenc_bytes(&mut Reader::new(payload))?))
}

/// The first value of a binary row ("Binary Protocol Resultset Row"). The null bitmap begins with bit 2.
fn binary_value(payload: &[u8], kind: u8) -> Result<Got<'_>, Short> {
    let mut reader = Reader::new(payload);
    reader.u8()?;
    if reader.u8()? & 0b100 != 0 {
        return Ok(Got::Null);
    }
    // The rest of the bitmap is unknown without the number of columns; workloads that compare a binary
    // value ask for six columns at most, and (6 + 2 + 7) / 8 is the one byte read above.
    binary_field(&mut reader, kind)
}

fn binary_field<'a>(reader: &mut Reader<'a>, kind: u8) -> Result<Got<'a>, Short> {
    Ok(match kind {
        // TINY
        0x01 => Got::Int(i64::from(reader.u8()? as i8)),
        // SHORT, YEAR
        0x02 | 0x0d => Got::Int(i64::from(reader.u16_le()? as i16)),
        // LONG, INT24
        0x03 | 0x09 => Got::Int(i64::from(reader.u32_le()? as i32)),
        // LONGLONG
        0x08 => Got::Int(reader.u64_le()? as i64),
        // Everything else a workload asks for is a length-encoded string.
        _ => Got::Text(lenenc_bytes(reader)?),
    })
}

fn text_values(payload: &[u8]) -> Result<Vec<Value>, Short> {
    let mut reader = Reader::new(payload);
    let mut values = Vec::new();
    while let Some(&first) = reader.rest().first() {
        if first == 0xfb {
            reader.u8()?;
            values.push(Value::Null);
        } else {
            values.push(Value::Text(lenenc_bytes(&mut reader)?.to_vec()));
        }
    }
    Ok(values)
}

/// All values of a binary row. FLOAT, DOUBLE and the temporal types have a form of their own.
fn binary_values(payload: &[u8], types: &[u8]) -> Result<Vec<Value>, Short> {
    let mut reader = Reader::new(payload);
    reader.u8()?;
    let bitmap = reader.take((types.len() + 9) / 8)?;
    let is_null = |n: usize| bitmap.get((n + 2) / 8).is_some_and(|byte| byte & (1 << ((n + 2) % 8)) != 0);
    let mut values = Vec::with_capacity(types.len());
    for (n, kind) in types.iter().enumerate() {
        values.push(match kind {
            _ if is_null(n) => Value::Null,
            // FLOAT, DOUBLE
            0x04 => Value::Number(f32::from_bits(reader.u32_le()?).to_string().into_bytes()),
            0x05 => Value::Number(f64::from_bits(reader.u64_le()?).to_string().into_bytes()),
            // DATE, TIME, DATETIME, TIMESTAMP: a length and that many bytes, which no workload looks into.
            0x07 | 0x0a | 0x0b | 0x0c => {
                let len = reader.u8()?;
                reader.take(usize::from(len))?;
                Value::Text(Vec::new())
            }
            kind => match binary_field(&mut reader, *kind)? {
                Got::Int(n) => Value::Int(n),
                Got::Text(text) => Value::Text(text.to_vec()),
                Got::Null | Got::TooLong => Value::Null,
            },
        });
    }
    Ok(values)
}

/// Reads an ERR packet.
fn refusal(payload: &[u8]) -> Refusal {
    let mut reader = Reader::new(payload);
    let (_, code) = (reader.u8(), reader.u16_le().unwrap_or(0));
    let mut text = reader.rest();
    if text.first() == Some(&b'#') && text.len() >= 6 {
        text = &text[6..];
    }
    // ER_CON_COUNT, server shutdown, idle timeouts: the server closes behind these.
    let fatal = matches!(code, 1040 | 1053 | 1927 | 3032 | 3169 | 4031);
    Refusal { code: code.to_string(), text: String::from_utf8_lossy(text).into_owned(), fatal }
}

/// The body of COM_STMT_EXECUTE: no cursor, all parameters with their types.
fn write_execute(statement: u32, params: &[Value], out: &mut Vec<u8>) {
    out.extend_from_slice(&statement.to_le_bytes());
    out.push(0);
    out.extend_from_slice(&1u32.to_le_bytes());
    if params.is_empty() {
        return;
    }
    let nulls = out.len();
    out.resize(nulls + params.len().div_ceil(8), 0);
    out.push(1);
    for (n, value) in params.iter().enumerate() {
        let kind: u8 = match value {
            Value::Int(_) => 0x08,
            Value::Text(_) => 0xfd,
            // NEWDECIMAL
            Value::Number(_) => 0xf6,
            Value::Null => 0x06,
        };
        if kind == 0x06 {
            out[nulls + n / 8] |= 1 << (n % 8);
        }
        out.extend_from_slice(&[kind, 0]);
    }
    for value in params {
        match value {
            Value::Int(n) => out.extend_from_slice(&n.to_le_bytes()),
            Value::Null => {}
            Value::Text(text) | Value::Number(text) => {
                // Workloads' texts are below 64 kB.
                out.push(0xfc);
                out.extend_from_slice(&(text.len() as u16).to_le_bytes());
                out.extend_from_slice(text);
            }
        }
    }
}

/// A command. Ours are far below 16 MB.
fn packet(command: u8, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, command]);
    body(out);
    let len = (out.len() - at - 4) as u32;
    out[at..at + 3].copy_from_slice(&len.to_le_bytes()[..3]);
}

#[cfg(test)]
mod tests;
