//! Reading a server's reply and passing it on.
//!
//! Owns: what is owed for a command, where the reply ends, what must be changed in it for this client.
//! Must not know: sockets, clocks, pools.
//!
//! Invariants: rows are never gathered, whatever their size; a packet is looked at only at its first
//! bytes; for a client with the capabilities Weir has towards the server, runs of packets go through
//! unchanged as long as they are.
//!
//! Changed for a client without DEPRECATE_EOF: an EOF behind the column definitions, EOF instead of the OK that
//! ends rows, and sequence numbers that are higher by the packets put in between. Changed for a client without
//! SESSION_TRACK: OK packets. A client with SESSION_TRACK is not shown what only Weir asked to track
//! (state change, transaction).
//!
//! Found on MariaDB 10.11 and MySQL 9.7 with DEPRECATE_EOF: a SELECT's last packet carries trackers and
//! status flags; `SELECT 1` outside a transaction carries none. state_change is raised by SET of variables
//! and user variables, text PREPARE, CREATE and DROP TEMPORARY TABLE, also inside CALL; it is not raised by
//! `SELECT @a := 1`, `INTO @a`, GET_LOCK and HANDLER. An open cursor is announced by one packet directly behind
//! the column definitions. ERR carries neither flags nor trackers; the next COM_PING carries both and leaves
//! the warnings alone.

use crate::back::{Ahead, Back, Entry, PrepareAhead, Stage};
use crate::error;
use crate::frame::{self, HEADER_BYTES, Header};
use crate::front::{FileData, Front, Outcome, Phase};
use crate::login::again::Verdict;
use crate::message::ok::{self, Change, ErrPacket, OkPacket, changes};
use crate::message::{Capabilities, Command, lenenc, status};
use crate::prepared::{ClientStatement, Key, PrepareReply};
use crate::reset::put_command;
use crate::session_state::{Charset, put_query};
use crate::warnings::{self, Warnings};
use std::sync::Arc;
use weir_sql::Uses;
use weir_wire::{Boundary, Fault, FaultKind, INTERNAL, Pin, Reader, Step, limits};

/// Bytes of a result looked at ahead to see whether it holds OUT parameters.
const OUT_PARAMS_BYTES: usize = 64 * 1024;

/// ER_UNKNOWN_CHARACTER_SET and ER_UNKNOWN_COLLATION.
const UNKNOWN_CHARSET: [u16; 2] = [1115, 1273];

/// What the next packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// The first of a result: OK, ERR, a request for a file, or the number of columns.
    First,
    /// Column definitions, and how many are left.
    Columns(u64),
    /// Rows, or their end. `fresh`: none was passed on, so an EOF may have to go before it.
    Rows { fresh: bool },
    /// A file is coming from the client.
    File,
    /// The server was told that there is no file; its answer is dropped.
    FileRefused,
    /// One packet, OK, EOF or ERR.
    One,
    /// One packet of text, or ERR.
    Text,
    /// The first packet of a reply to COM_STMT_PREPARE.
    Prepare,
    /// Definitions of parameters and columns.
    Definitions,
}

/// What is owed for one command.
#[derive(Debug)]
pub(crate) struct Reply {
    at: At,
    /// How much higher the client's sequence numbers are.
    shift: u8,
    /// Bytes of the packet under way that have not come.
    left: usize,
    /// The packet under way has a successor.
    continues: bool,
    /// The next packet is that successor.
    continuing: bool,
    /// Rows of the result under way.
    rows: u64,
    /// Sequence number of the next packet of a file, as the server counts.
    file_seq: u8,
    file: FileShift,
    prepare: Option<Box<PrepareAhead>>,
    /// Packets of the answer about LAST_INSERT_ID() that have come.
    asked: u8,
    /// The answer to SHOW WARNINGS as far as it has come.
    warnings: Option<Box<Warnings>>,
}

/// Where a file's packets are, to change their sequence numbers.
#[derive(Debug, Clone, Copy, Default)]
struct FileShift {
    left: usize,
    header: [u8; HEADER_BYTES],
    header_len: usize,
}

impl Reply {
    pub(crate) fn new(command: Command) -> Reply {
        let at = match command {
            Command::Query | Command::StmtExecute | Command::ProcessInfo => At::First,
            Command::StmtPrepare => At::Prepare,
            Command::StmtFetch | Command::FieldList => At::Rows { fresh: false },
            Command::Statistics => At::Text,
            _ => At::One,
        };
        Reply {
            at,
            shift: 0,
            left: 0,
            continues: false,
            continuing: false,
            rows: 0,
            file_seq: 0,
            file: FileShift::default(),
            prepare: None,
            asked: 0,
            warnings: None,
        }
    }

    pub(crate) fn wants_file(&self) -> bool {
        self.at == At::File
    }

    /// Passes on a piece of a file, with the server's sequence numbers.
    pub(crate) fn send_file(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes;
        while let Some((&byte, tail)) = rest.split_first() {
            let file = &mut self.file;
            if file.left > 0 {
                let (piece, tail) = rest.split_at(file.left.min(rest.len()));
                out.extend_from_slice(piece);
                file.left -= piece.len();
                rest = tail;
                continue;
            }
            file.header[file.header_len] = byte;
            file.header_len += 1;
            rest = tail;
            if file.header_len == HEADER_BYTES {
                let [a, b, c, _] = file.header;
                file.left = u32::from_le_bytes([a, b, c, 0]) as usize;
                file.header_len = 0;
                out.extend_from_slice(&[a, b, c, self.file_seq]);
                self.file_seq = self.file_seq.wrapping_add(1);
            }
        }
    }

    /// The empty packet has gone to the server.
    pub(crate) fn file_ended(&mut self) {
        self.at = At::First;
    }
}

/// Where the bytes of a reply go.
struct Way<'a> {
    front: Option<&'a mut Front>,
    to_client: &'a mut Vec<u8>,
    to_server: &'a mut Vec<u8>,
}

impl Way<'_> {
    fn capabilities(&self) -> Option<Capabilities> {
        self.front.as_deref().map(|front| front.capabilities)
    }

    /// Packets of rows go through as they are.
    fn is_verbatim(&self, shift: u8) -> bool {
        shift == 0 && self.capabilities().is_some_and(|c| c.has(Capabilities::DEPRECATE_EOF))
    }

    /// The client expects an EOF behind column definitions.
    fn needs_eof(&self) -> bool {
        self.capabilities().is_some_and(|c| !c.has(Capabilities::DEPRECATE_EOF))
    }

    fn put(&mut self, header: Header, shift: u8, write: impl FnOnce(&mut Vec<u8>, Capabilities)) {
        if let Some(front) = self.front.as_deref_mut() {
            front.reply_begun = true;
            let capabilities = front.capabilities;
            frame::put(self.to_client, header.seq.wrapping_add(shift), |out| write(out, capabilities));
        }
    }
}

/// What was done with some bytes.
enum Progress {
    /// So many bytes; with `verbatim` they go to the client as they are.
    Took { bytes: usize, verbatim: bool },
    /// Nothing more can be done.
    NeedMore,
    /// So many bytes, and with them the reply to the request itself is whole.
    Ended { bytes: usize, verbatim: bool },
}

impl Back {
    /// Looks at the start of the server's bytes.
    ///
    /// # Errors
    /// `ServerProtocol` and `ServerTooLarge` for what is no reply, `ServerLost` when the server speaks
    /// without being asked (it says goodbye). The connection is of no use after any of them.
    pub fn handle_reply(
        &mut self,
        front: Option<&mut Front>,
        input: &[u8],
        to_client: &mut Vec<u8>,
        to_server: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        let Some(mut entry) = self.queue.pop_front() else {
            return match input {
                [] => Ok(Step::Incomplete),
                _ => Err(Fault::new(FaultKind::ServerLost, goodbye(input))),
            };
        };
        let front = front.filter(|_| entry.owner != INTERNAL && !entry.gone);
        let mut way = Way { front, to_client, to_server };
        let step = self.advance(&mut entry, &mut way, input);
        if !matches!(step, Ok(Step::Done { .. })) {
            self.queue.push_front(entry);
        }
        step
    }

    fn advance(&mut self, entry: &mut Entry, way: &mut Way<'_>, input: &[u8]) -> Result<Step, Fault> {
        loop {
            match entry.stage {
                Stage::Waiting => {
                    let Some(front) = way.front.as_deref_mut() else {
                        // It never reached the server.
                        entry.leaves_trace = false;
                        entry.taints = false;
                        entry.stage = Stage::Finished;
                        continue;
                    };
                    let request = std::mem::take(&mut entry.held);
                    self.start(entry, front, &request, way.to_server)?;
                }
                Stage::Local => {
                    self.answer_prepare(entry, way);
                    entry.stage = Stage::Finished;
                }
                Stage::Ahead => match self.read_ahead(entry, way, input)? {
                    0 if entry.stage == Stage::Ahead && !entry.ahead.is_empty() => {
                        return Ok(Step::Incomplete);
                    }
                    bytes => return Ok(Step::Consumed(bytes)),
                },
                Stage::Ping => {
                    let bytes = self.read_ping(entry, way, input)?;
                    return Ok(if bytes == 0 { Step::Incomplete } else { Step::Consumed(bytes) });
                }
                Stage::Sent => {
                    let (bytes, verbatim) = match self.read_reply(entry, way, input)? {
                        Progress::NeedMore => return Ok(Step::Incomplete),
                        Progress::Took { bytes, verbatim } => (bytes, verbatim),
                        Progress::Ended { bytes, verbatim } => {
                            self.reply_ended(entry, way);
                            (bytes, verbatim)
                        }
                    };
                    return Ok(if verbatim { Step::Forward(bytes) } else { Step::Consumed(bytes) });
                }
                Stage::Refused if !entry.whole => return Ok(Step::Incomplete),
                Stage::Refused => {
                    if let (Some(front), Some(error)) = (way.front.as_deref_mut(), entry.ahead_error.take()) {
                        Back::put_error(front, false, &error, way.to_client);
                    }
                    entry.stage = Stage::Finished;
                }
                Stage::Torn => {
                    return Err(Fault::new(
                        FaultKind::ServerLost,
                        "the server ended a request before its client did",
                    ));
                }
                Stage::Finished => {
                    self.finish(entry, way.front.as_deref_mut());
                    // The warnings first: the other question would wipe them away.
                    entry.stage = Stage::Answered;
                    if self.asks_warnings(entry, way) {
                        entry.stage = Stage::AskWarnings;
                    } else if self.asks_insert_id(way) {
                        entry.stage = Stage::AskInsertId;
                    }
                    if entry.stage != Stage::Answered {
                        return Ok(Step::Consumed(0));
                    }
                }
                Stage::AskWarnings => {
                    let Some((header, payload)) = whole(input)? else { return Ok(Step::Incomplete) };
                    if self.read_warnings(entry, way, payload)? {
                        let asks = self.asks_insert_id(way);
                        entry.stage = if asks { Stage::AskInsertId } else { Stage::Answered };
                    }
                    return Ok(Step::Consumed(header.total()));
                }
                Stage::AskInsertId => {
                    let Some((header, payload)) = whole(input)? else { return Ok(Step::Incomplete) };
                    if self.read_insert_id(entry, way, payload)? {
                        entry.stage = Stage::Answered;
                    }
                    return Ok(Step::Consumed(header.total()));
                }
                Stage::Answered => {
                    return Ok(Step::Done { owner: entry.owner, boundary: self.boundary() });
                }
            }
        }
    }

    // ---- What goes ahead -------------------------------------------------------------------------------

    /// Reads one reply to what went ahead; when it was the last, sends the request. Returns the bytes
    /// read.
    fn read_ahead(&mut self, entry: &mut Entry, way: &mut Way<'_>, input: &[u8]) -> Result<usize, Fault> {
        let Some(ahead) = entry.ahead.front_mut() else {
            self.ahead_done(entry, way)?;
            return Ok(0);
        };
        let Some((header, payload)) = whole(input)? else { return Ok(0) };
        let is_error = payload.first() == Some(&ok::ERR);
        if is_error && !matches!(ahead, Ahead::Login) {
            entry.ahead_error.get_or_insert_with(|| payload.into());
        }
        match ahead {
            Ahead::State => {
                if is_error {
                    self.session.known = false;
                } else {
                    self.note_status(payload)?;
                }
                entry.ahead.pop_front();
            }
            Ahead::Login => {
                if self.again.handle(header, payload, way.to_server)? == Verdict::Through {
                    self.session.logged_in_again();
                    self.session_was_reset();
                    self.session.charset_known = true;
                    self.needs_setup = true;
                    self.note_status(payload)?;
                    entry.ahead.pop_front();
                    // From the beginning, on a session that can be brought to its client's state.
                    entry.stage = Stage::Waiting;
                    return Ok(header.total());
                }
            }
            Ahead::Prepare(prepare) => {
                if is_error {
                    entry.ahead.pop_front();
                } else if read_definition(prepare, payload)? {
                    let key = prepare.key.clone();
                    let id = prepare.id;
                    let reply = take_reply(prepare);
                    self.statements.insert(key, id, Arc::new(reply), way.to_server);
                    entry.ahead.pop_front();
                }
            }
        }
        if entry.ahead.is_empty() {
            self.ahead_done(entry, way)?;
        }
        Ok(header.total())
    }

    fn ahead_done(&mut self, entry: &mut Entry, way: &mut Way<'_>) -> Result<(), Fault> {
        let Some(front) = way.front.as_deref_mut() else {
            entry.leaves_trace = false;
            entry.taints = false;
            entry.stage = Stage::Finished;
            return Ok(());
        };
        let Some(error) = entry.ahead_error.take() else {
            if entry.welcome {
                entry.stage = Stage::Finished;
                return Ok(());
            }
            let request = std::mem::take(&mut entry.held);
            let whole = entry.whole;
            self.send(entry, front, &request, way.to_server);
            debug_assert_eq!(whole, entry.whole);
            return Ok(());
        };
        let code = ErrPacket::read(&error).map_or(0, |err| err.code);
        if UNKNOWN_CHARSET.contains(&code) && front.state.charset != Charset::ServerDefault {
            // What a login at the server itself would silently do.
            front.state.charset = Charset::ServerDefault;
            entry.stage = Stage::Waiting;
            return Ok(());
        }
        if entry.welcome {
            front.refused = true;
        }
        entry.outcome = Outcome { failed: true, ..Outcome::default() };
        if !entry.whole {
            // The client is told when it has sent all of it.
            entry.ahead_error = Some(error);
            entry.held = Vec::new();
            entry.stage = Stage::Refused;
            return Ok(());
        }
        Back::put_error(front, entry.welcome, &error, way.to_client);
        entry.stage = Stage::Finished;
        Ok(())
    }

    // ---- The reply itself ------------------------------------------------------------------------------

    fn read_reply(&mut self, entry: &mut Entry, way: &mut Way<'_>, input: &[u8]) -> Result<Progress, Fault> {
        let mut pos = 0;
        loop {
            let verbatim = way.is_verbatim(entry.reply.shift);
            let rest = input.get(pos..).unwrap_or_default();
            let run = entry.reply.run(rest, verbatim, way);
            if run > 0 {
                pos += run;
                self.mid_message = entry.reply.left > 0 || entry.reply.continuing;
                if let Some(front) = way.front.as_deref_mut() {
                    front.reply_begun = true;
                }
                continue;
            }
            let mark = way.to_client.len();
            let progress = self.read_packet(entry, way, rest)?;
            let (bytes, same, over) = match progress {
                Progress::NeedMore if pos == 0 => return Ok(Progress::NeedMore),
                Progress::NeedMore => return Ok(Progress::Took { bytes: pos, verbatim }),
                Progress::Took { bytes, verbatim } => (bytes, verbatim, false),
                Progress::Ended { bytes, verbatim } => (bytes, verbatim, true),
            };
            if verbatim && !same && pos > 0 {
                // This packet was changed: what goes before it was to go unchanged, so it is copied now.
                let changed = way.to_client.split_off(mark);
                way.to_client.extend_from_slice(&input[..pos]);
                way.to_client.extend_from_slice(&changed);
            } else if same && !verbatim && pos > 0 {
                // The other way round: what goes before it has been copied, so this is, too.
                way.to_client.extend_from_slice(rest.get(..bytes).unwrap_or_default());
                pos += bytes;
                if over {
                    return Ok(Progress::Ended { bytes: pos, verbatim: false });
                }
                continue;
            }
            pos += bytes;
            if over {
                return Ok(Progress::Ended { bytes: pos, verbatim: same });
            }
            if !(same && verbatim) {
                return Ok(Progress::Took { bytes: pos, verbatim: same });
            }
        }
    }

    /// Reads a packet that means something: whole, and perhaps changed on its way.
    fn read_packet(&mut self, entry: &mut Entry, way: &mut Way<'_>, input: &[u8]) -> Result<Progress, Fault> {
        if entry.reply.at == (At::Rows { fresh: true }) && way.needs_eof() {
            if !self.put_columns_end(entry, way, input)? {
                return Ok(Progress::NeedMore);
            }
            entry.reply.at = At::Rows { fresh: false };
            return Ok(Progress::Took { bytes: 0, verbatim: false });
        }
        let Some((header, payload)) = whole(input)? else { return Ok(Progress::NeedMore) };
        let first = payload.first().copied();
        let bytes = header.total();
        match entry.reply.at {
            At::First => match first {
                Some(ok::OK) => self.read_end(entry, way, header, payload, ok::OK),
                Some(ok::ERR) => self.read_err(entry, way, header, payload),
                Some(ok::LOCAL_INFILE) => Ok(self.read_file_request(entry, way, header, payload)),
                Some(_) | None => self.read_column_count(entry, way, header, payload),
            },
            At::Rows { .. } => match first {
                Some(ok::EOF) => self.read_end(entry, way, header, payload, ok::EOF),
                Some(ok::ERR) => self.read_err(entry, way, header, payload),
                Some(_) | None => Err(malformed("a row that is none")),
            },
            At::One => match first {
                Some(ok::OK) => self.read_end(entry, way, header, payload, ok::OK),
                Some(ok::EOF) => self.read_end(entry, way, header, payload, ok::EOF),
                Some(ok::ERR) => self.read_err(entry, way, header, payload),
                Some(_) | None => Err(malformed("a reply that is neither OK nor ERR")),
            },
            At::Text => {
                if first == Some(ok::ERR) {
                    return self.read_err(entry, way, header, payload);
                }
                entry.outcome.any_ok = true;
                Ok(Progress::Ended { bytes, verbatim: way.front.is_some() })
            }
            At::Prepare => {
                if first == Some(ok::ERR) {
                    return self.read_err(entry, way, header, payload);
                }
                self.read_prepare(entry, way, payload, bytes)
            }
            At::Definitions => self.read_prepare(entry, way, payload, bytes),
            At::FileRefused => Ok(self.read_file_refused(entry, way, header, payload)?),
            At::Columns(_) | At::File => Err(malformed("a packet that nobody asked for")),
        }
    }

    fn read_column_count(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        header: Header,
        payload: &[u8],
    ) -> Result<Progress, Fault> {
        let mut r = Reader::new(payload);
        let columns = lenenc::number(&mut r).map_err(|_| malformed("malformed count of columns"))?;
        if columns == 0 || !r.is_empty() {
            return Err(malformed("malformed count of columns"));
        }
        entry.reply.at = At::Columns(columns);
        entry.reply.rows = 0;
        Ok(pass(way, entry.reply.shift, header, payload))
    }

    /// Puts the EOF behind the column definitions that this client expects. False when more must come
    /// before it can be known whether and how.
    fn put_columns_end(&mut self, entry: &mut Entry, way: &mut Way<'_>, input: &[u8]) -> Result<bool, Fault> {
        let (Some(header), Some(&first)) = (Header::read(input), input.get(HEADER_BYTES)) else {
            return Ok(false);
        };
        let mut flags = self.status & !status::OF_THE_REPLY;
        if first == ok::EOF && !header.continues() {
            let Some((_, payload)) = whole(input)? else { return Ok(false) };
            let end = self.read_ok(payload)?;
            if end.status & status::CURSOR_EXISTS != 0 {
                // Only this one packet stands behind the definitions.
                return Ok(true);
            }
            flags = end.status;
        } else {
            match self.peek_end(input)? {
                Some(end) => flags = end & !(status::STATE_CHANGED | status::LAST_ROW_SENT),
                // OUT parameters are one row, and drivers know it by the flag in this EOF: worth waiting for.
                None if input.len() < OUT_PARAMS_BYTES && runs_call(entry, way) => return Ok(false),
                None => {}
            }
        }
        let shift = entry.reply.shift;
        let end = OkPacket { status: flags, ..OkPacket::default() };
        way.put(header, shift, |out, capabilities| end.write(ok::EOF, capabilities, out));
        entry.reply.shift = shift.wrapping_add(1);
        Ok(true)
    }

    /// The status flags at the end of rows, if all of them are at hand: a server's own EOF behind the column
    /// definitions shows much the same.
    fn peek_end(&self, input: &[u8]) -> Result<Option<u16>, Fault> {
        let mut rest = input.get(..input.len().min(OUT_PARAMS_BYTES)).unwrap_or_default();
        let mut continuing = false;
        while let Some(header) = Header::read(rest) {
            let Some(payload) = rest.get(HEADER_BYTES..header.total()) else { break };
            match payload.first() {
                Some(&ok::EOF) if !continuing && !header.continues() => {
                    return self.read_ok(payload).map(|end| Some(end.status));
                }
                Some(&ok::ERR) if !continuing => break,
                Some(_) | None => {}
            }
            continuing = header.continues();
            rest = rest.get(header.total()..).unwrap_or_default();
        }
        Ok(None)
    }

    /// OK, or what ends rows.
    fn read_end(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        header: Header,
        payload: &[u8],
        first: u8,
    ) -> Result<Progress, Fault> {
        let end = self.note_ok(entry, way, payload)?;
        let outcome = &mut entry.outcome;
        outcome.any_ok = true;
        outcome.failed = false;
        outcome.warnings = end.warnings;
        let had_rows = matches!(entry.reply.at, At::Rows { .. });
        outcome.affected_rows = (!had_rows).then_some(end.affected_rows);
        if had_rows {
            outcome.rows = entry.reply.rows;
        }
        if end.insert_id != 0 {
            outcome.insert_id = end.insert_id;
        }
        let progress = pass_end(way, entry.reply.shift, header, &end, first);
        if end.status & status::MORE_RESULTS != 0 {
            entry.reply.at = At::First;
            return Ok(progress);
        }
        Ok(ended(progress))
    }

    fn read_err(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        header: Header,
        payload: &[u8],
    ) -> Result<Progress, Fault> {
        let err = ErrPacket::read(payload).map_err(|_| malformed("malformed ERR"))?;
        entry.outcome.failed = true;
        entry.outcome.error = err.code;
        if err.code == 1243
            && let Some(key) = &entry.key
        {
            // It will be prepared anew.
            self.statements.forget(key);
        }
        Ok(ended(pass(way, entry.reply.shift, header, payload)))
    }

    /// Where the reply leaves the server, and what of the session it changed.
    fn note_ok<'a>(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        payload: &'a [u8],
    ) -> Result<OkPacket<'a>, Fault> {
        let end = self.note_status(payload)?;
        if let Some(front) = way.front.as_deref_mut() {
            front.status = end.status;
        }
        for (change, _) in changes(end.changes) {
            match change {
                Change::State => entry.outcome.state_changed = true,
                Change::Schema(name) => self.note_schema(way, name),
                Change::Characteristics(text) => {
                    if let Some(front) = way.front.as_deref_mut() {
                        front.one_shot = !text.is_empty();
                    }
                }
                Change::Variable | Change::Transaction | Change::Other => {}
            }
        }
        Ok(end)
    }

    fn note_status<'a>(&mut self, payload: &'a [u8]) -> Result<OkPacket<'a>, Fault> {
        let end = self.read_ok(payload)?;
        self.status = end.status;
        Ok(end)
    }

    fn read_ok<'a>(&self, payload: &'a [u8]) -> Result<OkPacket<'a>, Fault> {
        OkPacket::read(payload, self.capabilities).map_err(|_| malformed("malformed OK"))
    }

    fn note_schema(&mut self, way: &mut Way<'_>, name: &[u8]) {
        let text = String::from_utf8_lossy(name);
        let schema = (!text.is_empty()).then(|| Arc::from(&*text));
        self.session.state.schema = schema.clone();
        if let Some(front) = way.front.as_deref_mut() {
            // A name that means something else in another charset cannot be said to another server.
            if !name.is_ascii() {
                front.pin(Pin::Setting);
            }
            front.state.schema = schema;
        }
    }

    /// The request's own reply is whole.
    fn reply_ended(&mut self, entry: &mut Entry, way: &mut Way<'_>) {
        self.mid_message = false;
        if !entry.whole {
            // A packet too large for the server: it has said so and closes.
            entry.stage = Stage::Torn;
            return;
        }
        if entry.setup_owed {
            // The reply to the SET of trackers behind a reset: read as a ping.
            entry.stage = Stage::Ping;
            return;
        }
        let autocommit_idle = self.status & (status::IN_TRANS | status::AUTOCOMMIT) == status::AUTOCOMMIT;
        let harmless = !entry.leaves_trace && autocommit_idle && entry.owner != INTERNAL;
        if entry.outcome.failed && !harmless {
            // ERR says nothing about the transaction: deadlocks roll it back, timeouts may not.
            put_command(way.to_server, Command::Ping);
            entry.outcome.pinged = true;
            entry.stage = Stage::Ping;
        } else {
            entry.stage = Stage::Finished;
        }
    }

    fn read_ping(&mut self, entry: &mut Entry, way: &mut Way<'_>, input: &[u8]) -> Result<usize, Fault> {
        let Some((header, payload)) = whole(input)? else { return Ok(0) };
        match payload.first() {
            Some(&ok::OK) => {
                let failed = entry.outcome.failed;
                self.note_ok(entry, way, payload)?;
                entry.outcome.failed = failed;
            }
            Some(&ok::ERR) => self.broken = true,
            Some(_) | None => return Err(malformed("an answer to COM_PING that is neither OK nor ERR")),
        }
        entry.setup_owed = false;
        entry.stage = Stage::Finished;
        Ok(header.total())
    }

    // ---- LAST_INSERT_ID() ------------------------------------------------------------------------------

    /// The client is about to leave this server, and only this server knows its warnings: asks. Where other
    /// requests are on their way already, they have wiped them away.
    fn asks_warnings(&mut self, entry: &mut Entry, way: &mut Way<'_>) -> bool {
        let idle = self.boundary() == Boundary::Idle;
        let Some(front) = way.front.as_deref_mut() else { return false };
        if !idle || !front.only_warnings_pin() {
            return false;
        }
        if self.others_are_sent() {
            front.keep_warnings(None);
            return false;
        }
        put_query(way.to_server, "SHOW WARNINGS");
        self.last_client = 0;
        entry.reply.warnings = Some(Box::default());
        front.phase = Phase::Busy;
        true
    }

    /// Reads a packet of the answer to SHOW WARNINGS. True when it was the last.
    fn read_warnings(&mut self, entry: &mut Entry, way: &mut Way<'_>, payload: &[u8]) -> Result<bool, Fault> {
        let Some(warnings) = entry.reply.warnings.as_deref_mut() else { return Ok(true) };
        let progress = warnings.take(payload).map_err(|_| malformed("malformed SHOW WARNINGS"))?;
        if progress == warnings::Progress::More {
            return Ok(false);
        }
        let kept = entry.reply.warnings.take();
        if let Some(front) = way.front.as_deref_mut() {
            front.phase = Phase::Idle;
            if progress == warnings::Progress::Whole {
                front.keep_warnings(kept);
            }
        }
        Ok(true)
    }

    /// The client is about to leave this server, and only this server knows its LAST_INSERT_ID(): asks.
    /// Warnings, which the question would clear on MySQL, have been asked for.
    fn asks_insert_id(&mut self, way: &mut Way<'_>) -> bool {
        let id = self.server_id();
        let idle = self.boundary() == Boundary::Idle && !self.others_are_sent();
        let Some(front) = way.front.as_deref_mut() else { return false };
        if !front.insert_unknown || front.insert_server != id || !idle || !front.pins().is_empty() {
            return false;
        }
        put_query(way.to_server, "SELECT LAST_INSERT_ID()");
        self.last_client = 0;
        self.warned_client = 0;
        front.phase = Phase::Busy;
        true
    }

    /// A packet of the answer; true when it was the last.
    fn read_insert_id(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        payload: &[u8],
    ) -> Result<bool, Fault> {
        // Number of columns, definition, row, end.
        let at = entry.reply.asked;
        entry.reply.asked += 1;
        let over = payload.first() == Some(&ok::ERR) || at == 3;
        if let Some(front) = way.front.as_deref_mut() {
            if at == 2 && !over {
                let number = lenenc::string(&mut Reader::new(payload)).ok();
                let number = number.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
                front.insert_id = number.ok_or_else(|| malformed("malformed LAST_INSERT_ID()"))?;
                front.insert_unknown = false;
            }
            if over {
                front.phase = Phase::Idle;
            }
        }
        Ok(over)
    }

    // ---- LOCAL INFILE ----------------------------------------------------------------------------------

    /// The server asks for a file: only the client whose statement said LOAD DATA LOCAL and who allowed it
    /// at login is asked.
    fn read_file_request(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        header: Header,
        payload: &[u8],
    ) -> Progress {
        let shift = entry.reply.shift;
        let allowed = way.front.as_deref_mut().filter(|front| {
            front.capabilities.has(Capabilities::LOCAL_FILES)
                && front.request.class.uses.contains(Uses::LOAD_LOCAL)
        });
        let Some(front) = allowed else {
            Header { len: 0, seq: header.seq.wrapping_add(1) }.write(way.to_server);
            entry.reply.at = At::FileRefused;
            // What the client gets instead is numbered as this packet.
            entry.reply.file_seq = header.seq;
            return Progress::Took { bytes: header.total(), verbatim: false };
        };
        front.phase = Phase::File(FileData::default());
        entry.reply.at = At::File;
        entry.reply.file_seq = header.seq.wrapping_add(1);
        entry.reply.file = FileShift::default();
        pass(way, shift, header, payload)
    }

    fn read_file_refused(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        header: Header,
        payload: &[u8],
    ) -> Result<Progress, Fault> {
        if payload.first() != Some(&ok::ERR) {
            self.note_ok(entry, way, payload)?;
        }
        entry.outcome.failed = true;
        let seq = entry.reply.file_seq.wrapping_add(entry.reply.shift);
        if way.front.is_some() {
            let text =
                "Loading local data is disabled; this must be enabled on both the client and server sides";
            error::put(way.to_client, seq, 3948, "42000", text);
        }
        Ok(Progress::Ended { bytes: header.total(), verbatim: false })
    }

    // ---- COM_STMT_PREPARE ------------------------------------------------------------------------------

    /// Gathers the reply; when it is whole, remembers it and gives it to the client under its own number.
    fn read_prepare(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        payload: &[u8],
        bytes: usize,
    ) -> Result<Progress, Fault> {
        if entry.reply.prepare.is_none() {
            // A long text's key is known only now that all of it was found.
            let text = way.front.as_deref().and_then(|front| front.request.extra.as_deref()?.prepare.clone());
            let key = entry.key.clone().or_else(|| text.map(Key::fresh));
            let Some(key) = key.or_else(|| unknown_key(way)) else {
                return Err(malformed("a statement without a text"));
            };
            entry.key = Some(key.clone());
            entry.reply.prepare = Some(Box::new(PrepareAhead::new(key)));
        }
        let Some(prepare) = entry.reply.prepare.as_deref_mut() else { return Err(malformed("a definition")) };
        if !read_definition(prepare, payload)? {
            entry.reply.at = At::Definitions;
            return Ok(Progress::Took { bytes, verbatim: false });
        }
        let (key, id) = (prepare.key.clone(), prepare.id);
        let reply = Arc::new(take_reply(prepare));
        entry.reply.prepare = None;
        self.statements.insert(key, id, reply, way.to_server);
        self.answer_prepare(entry, way);
        Ok(Progress::Ended { bytes, verbatim: false })
    }

    /// Gives a client the reply to its COM_STMT_PREPARE from what is known, and the statement its number.
    fn answer_prepare(&mut self, entry: &mut Entry, way: &mut Way<'_>) {
        let Some(key) = entry.key.clone() else { return };
        let Some(reply) = self.statements.reply_to(&key.text) else { return };
        entry.outcome.any_ok = true;
        entry.outcome.warnings = reply.warnings;
        let Some(front) = way.front.as_deref_mut() else { return };
        let number = front.request.number;
        let class = std::mem::take(&mut front.request.class);
        let statements = front.statements.get_or_insert_default();
        statements.asks_about_last |= class.uses.intersects(Uses::FOUND_ROWS | Uses::ROW_COUNT);
        statements.insert(
            number,
            ClientStatement {
                text: key.text,
                class: Box::new(class),
                params: reply.params,
                types: Box::default(),
                long_data: Vec::new(),
                sent_ahead: false,
                cursor: false,
                last: None,
            },
        );
        front.reply_begun = true;
        reply.write(number, self.status & !status::OF_THE_REPLY, front.capabilities, way.to_client);
    }
}

impl Reply {
    /// Passes on what needs no look: the rest of a packet, column definitions, rows. Returns the bytes
    /// dealt with.
    fn run(&mut self, input: &[u8], verbatim: bool, way: &mut Way<'_>) -> usize {
        let mut pos = 0;
        loop {
            let rest = input.get(pos..).unwrap_or_default();
            if self.left > 0 {
                let n = self.left.min(rest.len());
                if n == 0 {
                    break;
                }
                if !verbatim && way.front.is_some() {
                    way.to_client.extend_from_slice(&rest[..n]);
                }
                self.left -= n;
                pos += n;
                if self.left == 0 {
                    self.packet_ended();
                }
                continue;
            }
            let Some(header) = Header::read(rest) else { break };
            if !self.continuing && !self.may_pass(header, rest, way.needs_eof()) {
                break;
            }
            if let At::Rows { fresh } = &mut self.at {
                *fresh = false;
            }
            if !verbatim && let Some(front) = way.front.as_deref_mut() {
                front.reply_begun = true;
                Header { seq: header.seq.wrapping_add(self.shift), ..header }.write(way.to_client);
            }
            pos += HEADER_BYTES;
            self.left = header.len;
            self.continues = header.continues();
            self.continuing = true;
            if header.len == 0 {
                self.packet_ended();
            }
        }
        pos
    }

    /// The packet is a column definition or a row, and nothing has to go before it.
    fn may_pass(&self, header: Header, input: &[u8], needs_eof: bool) -> bool {
        match self.at {
            At::Columns(_) => true,
            At::Rows { fresh } if !fresh || !needs_eof => match input.get(HEADER_BYTES) {
                Some(&(ok::EOF | ok::ERR)) => header.continues(),
                Some(_) => true,
                None => header.len == 0,
            },
            At::Rows { .. }
            | At::First
            | At::File
            | At::FileRefused
            | At::One
            | At::Text
            | At::Prepare
            | At::Definitions => false,
        }
    }

    fn packet_ended(&mut self) {
        self.continuing = self.continues;
        if self.continuing {
            return;
        }
        match self.at {
            At::Columns(n @ 2..) => self.at = At::Columns(n - 1),
            At::Columns(_) => self.at = At::Rows { fresh: true },
            At::Rows { .. } => self.rows += 1,
            At::First | At::File | At::FileRefused | At::One | At::Text | At::Prepare | At::Definitions => {}
        }
    }
}

/// Reads a packet of a reply to COM_STMT_PREPARE; true when it was the last.
fn read_definition(prepare: &mut PrepareAhead, payload: &[u8]) -> Result<bool, Fault> {
    if prepare.reply.is_none() {
        let read = PrepareReply::read(payload).map_err(|_| malformed("malformed reply to a prepare"))?;
        let (id, reply) = read;
        prepare.id = id;
        prepare.left = usize::from(reply.params) + usize::from(reply.columns);
        prepare.reply = Some(reply);
        return Ok(prepare.left == 0);
    }
    if prepare.definitions.len() + payload.len() > limits::SERVER_GATHER_BYTES * 8 {
        return Err(Fault::new(FaultKind::ServerTooLarge, "the reply to a prepare"));
    }
    Header { len: payload.len(), seq: 0 }.write(&mut prepare.definitions);
    prepare.definitions.extend_from_slice(payload);
    prepare.left = prepare.left.saturating_sub(1);
    Ok(prepare.left == 0)
}

fn take_reply(prepare: &mut PrepareAhead) -> PrepareReply {
    let definitions = std::mem::take(&mut prepare.definitions).into();
    match prepare.reply.take() {
        Some(reply) => PrepareReply { definitions, ..reply },
        None => PrepareReply { params: 0, columns: 0, warnings: 0, definitions },
    }
}

/// A packet that goes to the client as it is, but for its number.
fn pass(way: &mut Way<'_>, shift: u8, header: Header, payload: &[u8]) -> Progress {
    let bytes = header.total();
    if shift == 0 && way.front.is_some() {
        if let Some(front) = way.front.as_deref_mut() {
            front.reply_begun = true;
        }
        return Progress::Took { bytes, verbatim: true };
    }
    way.put(header, shift, |out, _| out.extend_from_slice(payload));
    Progress::Took { bytes, verbatim: false }
}

/// An OK packet, or what ends rows, in the form its client knows.
fn pass_end(way: &mut Way<'_>, shift: u8, header: Header, end: &OkPacket<'_>, first: u8) -> Progress {
    let bytes = header.total();
    let Some(front) = way.front.as_deref() else { return Progress::Took { bytes, verbatim: false } };
    let has = |flag| front.capabilities.has(flag);
    let old_end = first == ok::EOF && !has(Capabilities::DEPRECATE_EOF);
    // A client that has set trackers of its own sees all of them.
    let filter = !end.changes.is_empty() && !front.own_trackers;
    let plain = end.changes.is_empty() && end.status & status::STATE_CHANGED == 0 && end.info.is_empty();
    if shift == 0 && !old_end && !filter && (plain || has(Capabilities::SESSION_TRACK)) {
        return pass(way, 0, header, &[]);
    }
    let mut kept = Vec::new();
    for (change, entry) in changes(end.changes) {
        match change {
            Change::State | Change::Characteristics(_) | Change::Transaction if filter => {}
            Change::Variable
            | Change::Schema(_)
            | Change::Other
            | Change::State
            | Change::Characteristics(_)
            | Change::Transaction => kept.extend_from_slice(entry),
        }
    }
    let end = OkPacket { changes: &kept, ..*end };
    way.put(header, shift, |out, capabilities| end.write(first, capabilities, out));
    Progress::Took { bytes, verbatim: false }
}

fn ended(progress: Progress) -> Progress {
    match progress {
        Progress::Took { bytes, verbatim } => Progress::Ended { bytes, verbatim },
        Progress::NeedMore | Progress::Ended { .. } => progress,
    }
}

/// A statement whose client has gone before it was answered: its copy is kept under an empty text.
fn unknown_key(way: &Way<'_>) -> Option<Key> {
    way.front.is_none().then(|| {
        let text = crate::prepared::Text::new(crate::session_state::State::new(0, true), Box::default());
        Key { private: Some((0, 0)), ..Key::fresh(Arc::new(text)) }
    })
}

/// A prepared CALL.
fn runs_call(entry: &Entry, way: &Way<'_>) -> bool {
    entry.command == Command::StmtExecute
        && way.front.as_deref().is_some_and(|front| front.request.class.uses.contains(Uses::BLOCK))
}

/// A packet that must be understood.
fn whole(input: &[u8]) -> Result<Option<(Header, &[u8])>, Fault> {
    frame::whole(input, limits::SERVER_GATHER_BYTES, FaultKind::ServerTooLarge)
}

/// What a server said without being asked.
fn goodbye(input: &[u8]) -> String {
    let payload = input.get(HEADER_BYTES..).unwrap_or_default();
    match ErrPacket::read(payload) {
        Ok(err) => format!("the server said {} {}", err.code, String::from_utf8_lossy(err.message)),
        Err(_) => "the server spoke without being asked".to_owned(),
    }
}

fn malformed(text: &'static str) -> Fault {
    Fault::new(FaultKind::ServerProtocol, text)
}
