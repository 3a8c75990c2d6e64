//! The reply to a request: results, their rows and their ends, in the form that the client understands.
//!
//! Owns: where a result ends, what is changed in it. Must not know: what precedes or follows a request.

use super::ahead::NO_DATABASE;
use super::file::looked_further;
use super::{At, Progress, Reply, Way, malformed, whole};
use crate::back::Back;
use crate::frame::{self, HEADER_BYTES, Header};
use crate::front::{Front, NO_CURSOR, NO_SUCH_ROUTINE, Outcome, has_no_cursor, tells_one};
use crate::lost_schema;
use crate::message::ok::{Change, ErrPacket, OkPacket, changes};
use crate::message::{Capabilities, Command, lenenc, ok, status};
use crate::prepared::Text;
use crate::queue::{Entry, Reworded};
use crate::rewrite::{Names, Rewritten, cited, restored};
use crate::says;
use crate::session_state::Flavour;
use crate::warnings::Kept;
use weir_sql::Uses;
use weir_wire::limits::OUT_PARAMS_BYTES;
use weir_wire::{ErrorCode, Fault, Reader};

/// ER_UNKNOWN_STMT_HANDLER.
const UNKNOWN_STATEMENT: u16 = 1243;
/// How it cites the number that no statement has.
const ZERO: &[u8] = b"(0)";

/// ER_PARSE_ERROR.
const PARSE_ERROR: u16 = 1064;
/// ER_NO_SUCH_TABLE.
const NO_SUCH_TABLE: u16 = 1146;
/// ER_TABLE_NOT_LOCKED.
const TABLE_NOT_LOCKED: u16 = 1100;

impl Back {
    pub(super) fn read_reply(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        input: &[u8],
    ) -> Result<Progress, Fault> {
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
    pub(super) fn read_packet(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        input: &[u8],
    ) -> Result<Progress, Fault> {
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
                Some(_) | None if entry.reply.told => {
                    let one = tells_one(payload, entry.command == Command::StmtExecute);
                    // Of several rows nothing is known.
                    entry.outcome.told = (entry.reply.rows == 0).then_some(one);
                    entry.reply.rows += 1;
                    entry.reply.at = At::Rows { fresh: false };
                    Ok(pass(way, entry.reply.shift, header, payload))
                }
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
            At::FileRefused { .. } => Ok(self.read_file_refused(entry, way, header, payload)?),
            At::Columns(left) if entry.reply.names.is_some() => {
                entry.reply.at = if left > 1 { At::Columns(left - 1) } else { At::Rows { fresh: true } };
                match entry
                    .reply
                    .names
                    .as_ref()
                    .and_then(|names| renamed(payload, names, self.session.flavour))
                {
                    Some(renamed) => {
                        way.put(header, entry.reply.shift, |out, _| out.extend_from_slice(&renamed));
                        Ok(Progress::Took { bytes, verbatim: false })
                    }
                    None => Ok(pass(way, entry.reply.shift, header, payload)),
                }
            }
            At::Columns(_) | At::File => Err(malformed("a packet that nobody asked for")),
        }
    }

    pub(super) fn read_column_count(
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
    pub(super) fn put_columns_end(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        input: &[u8],
    ) -> Result<bool, Fault> {
        let (Some(header), Some(&first)) = (Header::read(input), input.get(HEADER_BYTES)) else {
            return Ok(false);
        };
        let mut flags = self.status & !status::OF_THE_REPLY;
        if first == ok::EOF && !header.continues() {
            let Some((_, payload)) = whole(input)? else { return Ok(false) };
            let end = self.read_ok(payload)?;
            if opens_cursor(entry.command, end.status) {
                // Only this one packet stands behind the definitions.
                return Ok(true);
            }
            flags = end.status;
        } else {
            match self.peek_end(input)? {
                // Rows stand in front of it, so no cursor is open, whatever it says: EXPLAIN's does.
                Some(end) => {
                    let of_rows = status::STATE_CHANGED | status::LAST_ROW_SENT | status::CURSOR_EXISTS;
                    flags = end & !of_rows;
                }
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
    pub(super) fn peek_end(&self, input: &[u8]) -> Result<Option<u16>, Fault> {
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
    pub(super) fn read_end(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        header: Header,
        payload: &[u8],
        first: u8,
    ) -> Result<Progress, Fault> {
        let mut end = self.note_ok(entry, way, payload)?;
        let said = end.warnings;
        if matches!(entry.command, Command::Ping | Command::InitDb) {
            // They leave the warnings of the session alone, and count them on MySQL: those may be another's.
            let front = way.front.as_deref();
            end.warnings = front.and_then(Front::remaining_warnings).unwrap_or(end.warnings);
        }
        let outcome = &mut entry.outcome;
        // Nobody has selected the values of OUT parameters: they are not found, nor a result of the
        // routine's.
        let outs = end.status & status::PS_OUT_PARAMS != 0;
        outcome.results = outcome.results.saturating_add(u16::from(!outs));
        outcome.any_ok = true;
        outcome.failed = false;
        outcome.conditions = Some(said);
        outcome.warnings = match entry.command {
            Command::Ping | Command::InitDb => 0,
            _ => end.warnings,
        };
        outcome.warned |= outcome.warnings > 0;
        let had_rows = matches!(entry.reply.at, At::Rows { .. }) && !outs;
        let gets = way.front.as_deref().and_then(|front| front.request.first_of_gets());
        // Behind so many the others are all GET DIAGNOSTICS.
        let before = gets.map_or(u32::MAX, |first| first.saturating_add(1));
        let results = u32::from(outcome.results);
        if results <= before {
            outcome.affected_before = outcome.affected_rows;
        }
        outcome.got_nothing |= gets.is_some() && results >= before && outcome.warnings > 0;
        outcome.affected_rows = (first == ok::OK).then_some(end.affected_rows);
        outcome.matched_rows = matched_rows(end.info);
        outcome.had_rows |= had_rows;
        if had_rows {
            outcome.rows = entry.reply.rows;
        }
        if way.front.is_some() {
            self.tally.rows += if had_rows { entry.reply.rows } else { end.affected_rows };
        }
        if end.insert_id != 0 {
            outcome.insert_id = end.insert_id;
        }
        if let Some(front) = way.front.as_deref_mut().filter(|_| entry.command == Command::ResetConnection) {
            // What it has not been told belonged to the session that is over.
            front.forget_untold();
        }
        let told = way.front.as_deref().filter(|front| comes_back(entry, front));
        let more = end.status & status::MORE_RESULTS != 0;
        let told = told.map(|front| with_schema(&end, told_schema(entry, front, more)));
        let end = told.as_ref().map_or(end, |changes| OkPacket { changes, ..end });
        if end.status & status::MORE_RESULTS == 0
            && let Some(front) = way.front.as_deref_mut()
            && let Some(kill) = front.request.extra.as_deref().and_then(|extra| extra.kill_behind)
        {
            // This was not the client's, but stood where its KILL is.
            front.rare.get_or_insert_default().owed_kill = Some(kill);
            front.reply_seq = header.seq.wrapping_add(entry.reply.shift);
            return Ok(Progress::Ended { bytes: header.total(), verbatim: false });
        }
        let same = end.warnings == said;
        let progress = pass_end(way, entry.reply.shift, header, &end, first, same);
        if end.status & status::MORE_RESULTS != 0 {
            entry.reply.at = At::First;
            return Ok(progress);
        }
        Ok(ended(progress))
    }

    pub(super) fn read_err(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        header: Header,
        payload: &[u8],
    ) -> Result<Progress, Fault> {
        let err = ErrPacket::read(payload).map_err(|_| malformed("malformed ERR"))?;
        entry.outcome.failed = true;
        entry.outcome.broke_off = matches!(entry.reply.at, At::Rows { .. });
        entry.outcome.error = err.code;
        if way.front.is_some() {
            self.tally.error = ErrorCode::of_errno(err.code);
        }
        let text = entry.key.as_ref().map(|key| &*key.text);
        let is_own = |it: &Text| says::names_missing(&it.text, it.shape.schema.as_deref(), err.message);
        let lacks_one = matches!(err.code, NO_SUCH_TABLE | TABLE_NOT_LOCKED);
        entry.outcome.lacks_own_table = lacks_one && text.is_some_and(is_own);
        entry.outcome.state = err.sqlstate.try_into().ok();
        entry.outcome.conditions = None;
        if let Some(front) = way.front.as_deref_mut() {
            keep_return(entry, front);
        }
        let is_command = matches!(entry.command, Command::InitDb | Command::FieldList);
        if is_command
            && self.session.flavour == Flavour::MySql
            && !self.shows_warnings_of(way.front.as_deref())
        {
            entry.outcome.appended = true;
        }
        if entry.outcome.appended {
            entry.refusal = Some(payload.into());
        }
        if err.code == UNKNOWN_STATEMENT
            && let Some(key) = &entry.key
        {
            // It will be prepared anew.
            self.statements.forget(key);
        }
        if err.code == NO_DATABASE
            && let Some(lost) = entry.lost_schema.as_deref()
        {
            // It stands in one, which is gone.
            entry.refusal = Some(lost.into());
            way.put(header, entry.reply.shift, |out, _| out.extend_from_slice(lost));
            return Ok(Progress::Ended { bytes: header.total(), verbatim: false });
        }
        if looked_further(entry, way, err.code) {
            return Ok(self.refuse_file(entry, way, header));
        }
        if self.send_original(entry, way, err.code) {
            return Ok(Progress::Took { bytes: header.total(), verbatim: false });
        }
        // A message may cite the text.
        if let Some(message) = reworded(entry, way, &err) {
            let code = if lacks_cursor(entry, way, err.code).is_some() { NO_CURSOR } else { err.code };
            let own = ErrPacket { code, message: &message, ..err };
            entry.outcome.error = code;
            way.put(header, entry.reply.shift, |out, _| own.write(out));
            if err.code == UNKNOWN_STATEMENT && has_warnings_kept(way) {
                let mut words = Vec::new();
                own.write(&mut words);
                (entry.outcome.appended, entry.refusal) = (true, Some(words.into()));
            } else if !self.keeps_last_words(entry, &own) {
                let (from, to) = (err.message.into(), message.into());
                entry.reworded = Some(Box::new(Reworded { from, to, code }));
            }
            return Ok(Progress::Ended { bytes: header.total(), verbatim: false });
        }
        self.keeps_last_words(entry, &err);
        Ok(ended(pass(way, entry.reply.shift, header, payload)))
    }
}

impl Back {
    /// An execution among requests of others has failed. They take away what it leaves, and nothing can be
    /// asked again, as a text can: the error alone is kept. Hardly any read warns before it fails.
    fn keeps_last_words(&self, entry: &mut Entry, err: &ErrPacket<'_>) -> bool {
        let goes = entry.command == Command::StmtExecute && self.others_are_sent();
        if goes {
            let mut words = Vec::new();
            err.write(&mut words);
            (entry.outcome.conditions, entry.refusal) = (Some(1), Some(words.into()));
        }
        goes
    }

    /// The first statement of a text with Weir's words in it cannot be parsed, so nothing of the text has
    /// run: it is sent as its client wrote it, which is refused with the words and at the place that the
    /// client would see.
    fn send_original(&mut self, entry: &mut Entry, way: &mut Way<'_>, error: u16) -> bool {
        let nothing_ran = error == PARSE_ERROR && entry.outcome.results == 0 && !self.others_are_sent();
        if !nothing_ran
            || entry.command != Command::Query
            || std::mem::replace(&mut entry.original_sent, true)
        {
            return false;
        }
        let extra = way.front.as_deref().and_then(|front| front.request.extra.as_deref());
        let kills = extra.is_some_and(|extra| extra.kill_behind.is_some());
        let sent = extra.and_then(|extra| extra.text.as_ref()).filter(|_| !kills);
        let Some(text) = sent.and_then(Rewritten::original) else { return false };
        frame::put(way.to_server, 0, |out| {
            out.push(Command::Query as u8);
            out.extend_from_slice(&text);
        });
        entry.outcome = Outcome::default();
        entry.reply.at = At::First;
        entry.reply.names = None;
        true
    }
}

/// MySQL: what the client's statement before has left is kept by Weir, and this error stands behind it.
fn has_warnings_kept(way: &Way<'_>) -> bool {
    way.front.as_deref().is_some_and(|front| {
        let kept = matches!(front.warnings(), Some(Kept::Answer(kept)) if kept.counts().0 > 0);
        kept && front.traits.flavour == Flavour::MySql
    })
}

/// The client's number of a statement that it has, and that was sent under the number that none has: it has
/// no cursor to fetch from. The server's own copy has another number, or is not there.
fn lacks_cursor(entry: &Entry, way: &Way<'_>, error: u16) -> Option<u32> {
    let front = way.front.as_deref()?;
    let number = front.request.number;
    let is_asked = entry.command == Command::StmtFetch && entry.key.is_none() && error == UNKNOWN_STATEMENT;
    let has_it = front.statements.as_deref().is_some_and(|all| all.get(number).is_some());
    (is_asked && has_it).then_some(number)
}

/// The message of an error in the client's own words; `None` when the server's are.
fn reworded(entry: &Entry, way: &Way<'_>, err: &ErrPacket<'_>) -> Option<Vec<u8>> {
    if let Some(number) = lacks_cursor(entry, way, err.code) {
        let flavour = way.front.as_deref()?.traits.flavour;
        return Some(has_no_cursor(number, flavour).into_bytes());
    }
    if err.code == NO_SUCH_ROUTINE
        && entry.lost_schema.is_some()
        && let Some(schema) = &way.front.as_deref()?.state.schema
        && let Some(message) = lost_schema::in_schema(schema, err.message)
    {
        // It was looked for where no schema is the default one.
        return Some(message);
    }
    if err.code == UNKNOWN_STATEMENT && entry.key.is_none() {
        // It was sent under the number that no statement has.
        let number = way.front.as_deref()?.request.number;
        // In whatever language and character set it is.
        let at = err.message.windows(ZERO.len()).position(|window| window == ZERO)?;
        let (before, rest) = err.message.split_at(at);
        let behind = rest.get(ZERO.len()..).unwrap_or_default();
        return Some([before, format!("({number})").as_bytes(), behind].concat());
    }
    let names = entry.reply.names.as_ref()?;
    let flavour = way.front.as_deref()?.traits.flavour;
    let extra = way.front.as_deref().and_then(|front| front.request.extra.as_deref());
    let sent = match entry.command {
        Command::Query => extra.and_then(|extra| Some(extra.text.as_ref()?.text.as_slice())),
        _ => entry.key.as_ref().map(|key| &*key.text.text),
    };
    let cites = |sent| if err.code == PARSE_ERROR { cited(err.message, sent, names, flavour) } else { None };
    sent.and_then(cites).or_else(|| restored(err.message, names, flavour))
}

/// The definition of a column with the client's own words in its name; `None` when they are in it already.
pub(super) fn renamed(definition: &[u8], names: &Names, flavour: Flavour) -> Option<Vec<u8>> {
    /// Catalogue, schema, table twice, name twice.
    const TEXTS: usize = 6;
    if names.is_empty() {
        return None;
    }
    let mut r = Reader::new(definition);
    let mut out = Vec::new();
    let mut found = false;
    for _ in 0..TEXTS {
        let text = lenenc::string(&mut r).ok()?;
        let restored = restored(text, names, flavour);
        found |= restored.is_some();
        lenenc::put_string(&mut out, restored.as_deref().unwrap_or(text));
    }
    out.extend_from_slice(r.rest());
    found.then_some(out)
}

impl Reply {
    /// Passes on what needs no look: the rest of a packet, column definitions, rows. Returns the bytes
    /// dealt with.
    pub(super) fn run(&mut self, input: &[u8], verbatim: bool, way: &mut Way<'_>) -> usize {
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
    pub(super) fn may_pass(&self, header: Header, input: &[u8], needs_eof: bool) -> bool {
        match self.at {
            At::Columns(_) => self.names.is_none(),
            At::Rows { .. } if self.told => false,
            At::Rows { fresh } if !fresh || !needs_eof => match input.get(HEADER_BYTES) {
                Some(&(ok::EOF | ok::ERR)) => header.continues(),
                Some(_) => true,
                None => header.len == 0,
            },
            At::Rows { .. }
            | At::First
            | At::File
            | At::FileRefused { .. }
            | At::One
            | At::Text
            | At::Prepare
            | At::Definitions => false,
        }
    }

    pub(super) fn packet_ended(&mut self) {
        self.continuing = self.continues;
        if self.continuing {
            return;
        }
        match self.at {
            At::Columns(n @ 2..) => self.at = At::Columns(n - 1),
            At::Columns(_) => self.at = At::Rows { fresh: true },
            At::Rows { .. } => self.rows += 1,
            At::First
            | At::File
            | At::FileRefused { .. }
            | At::One
            | At::Text
            | At::Prepare
            | At::Definitions => {}
        }
    }
}

/// The number in `Rows matched: 5  Changed: 0  Warnings: 0` and in `Records: 5  Duplicates: 0  Warnings: 0`,
/// which both servers say in English unless they are told otherwise.
fn matched_rows(info: &[u8]) -> Option<u64> {
    let number = info.strip_prefix(b"Rows matched: ").or_else(|| info.strip_prefix(b"Records: "))?;
    let number = number.split(|byte| *byte == b' ').next()?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// An execution in the schema of its statement has failed: a server came back from there all the same, and
/// tells of that later.
pub(super) fn keep_return(entry: &Entry, front: &mut Front) {
    if comes_back(entry, front) {
        let mut changes = Vec::new();
        put_schema(&mut changes, front.state.schema.as_deref().unwrap_or_default());
        front.keep_untold(&changes);
    }
}

/// A server of the client's own would have gone to the schema of the statement, or to none, and come back.
/// Weir's may have prepared what needs no schema in the client's.
fn comes_back(entry: &Entry, front: &Front) -> bool {
    // What goes on with a cursor goes nowhere.
    let runs = entry.command == Command::StmtExecute;
    let key = entry.key.as_ref().filter(|_| runs);
    let from_none = key.is_some_and(|key| key.text.shape.schema.is_none() && front.state.schema.is_some());
    runs && entry.elsewhere || from_none
}

/// The schema that a server tells of when it executes a statement in another one: that one with the first of
/// its results, and its client's, to which it has come back, with the last.
fn told_schema<'a>(entry: &'a Entry, front: &'a Front, more: bool) -> Option<&'a str> {
    match (more, entry.outcome.results, &entry.key) {
        (false, _, _) => Some(front.state.schema.as_deref().unwrap_or_default()),
        (true, 1, Some(key)) => Some(key.text.shape.schema.as_deref().unwrap_or_default()),
        (true, _, _) => None,
    }
}

/// The changes of an OK with this schema among them, and no other.
fn with_schema(end: &OkPacket<'_>, schema: Option<&str>) -> Vec<u8> {
    let others = changes(end.changes).filter(|(change, _)| !matches!(change, Change::Schema(_)));
    let mut changes: Vec<u8> = others.flat_map(|(_, entry)| entry).copied().collect();
    if let Some(schema) = schema {
        put_schema(&mut changes, schema);
    }
    changes
}

pub(crate) fn put_schema(changes: &mut Vec<u8>, schema: &str) {
    let mut entry = Vec::new();
    lenenc::put_string(&mut entry, schema.as_bytes());
    changes.push(1);
    lenenc::put_string(changes, &entry);
}

/// A packet that goes to the client as it is, but for its number.
pub(super) fn pass(way: &mut Way<'_>, shift: u8, header: Header, payload: &[u8]) -> Progress {
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
pub(super) fn pass_end(
    way: &mut Way<'_>,
    shift: u8,
    header: Header,
    end: &OkPacket<'_>,
    first: u8,
    same: bool,
) -> Progress {
    let bytes = header.total();
    let Some(front) = way.front.as_deref_mut() else { return Progress::Took { bytes, verbatim: false } };
    let capabilities = front.capabilities;
    let has = |flag| capabilities.has(flag);
    let old_end = first == ok::EOF && !has(Capabilities::DEPRECATE_EOF);
    // A client that has set trackers of its own sees all of them.
    let filter = !end.changes.is_empty() && front.own_trackers == 0;
    let plain = end.changes.is_empty() && end.status & status::STATE_CHANGED == 0 && end.info.is_empty();
    if shift == 0
        && !old_end
        && same
        && !filter
        && !front.has_untold()
        && (plain || has(Capabilities::SESSION_TRACK))
    {
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
    if old_end {
        front.keep_untold(&kept);
    } else {
        kept = front.told_with(kept);
    }
    let end = OkPacket { changes: &kept, ..*end };
    way.put(header, shift, |out, capabilities| end.write(first, capabilities, out));
    Progress::Took { bytes, verbatim: false }
}

pub(super) fn ended(progress: Progress) -> Progress {
    match progress {
        Progress::Took { bytes, verbatim } => Progress::Ended { bytes, verbatim },
        Progress::NeedMore | Progress::Ended { .. } => progress,
    }
}

/// Whether the rows of this execution are kept for COM_STMT_FETCH. The flag alone does not say so: a result
/// without rows carries it, too, while code has a cursor of its own open; more results come behind that one.
fn opens_cursor(command: Command, status: u16) -> bool {
    command == Command::StmtExecute
        && status & (status::CURSOR_EXISTS | status::MORE_RESULTS) == status::CURSOR_EXISTS
}

/// A prepared CALL.
pub(super) fn runs_call(entry: &Entry, way: &Way<'_>) -> bool {
    entry.command == Command::StmtExecute
        && way.front.as_deref().is_some_and(|front| front.request.class.uses.contains(Uses::BLOCK))
}
