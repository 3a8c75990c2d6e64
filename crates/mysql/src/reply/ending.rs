//! The end of a reply: the state in which it leaves the session, and what Weir asks before the client leaves
//! its server.
//!
//! Owns: the contents of OK packets, the ping after an error, questions about warnings and LAST_INSERT_ID().
//! Must not know: results.

use super::{Way, malformed, whole};
use crate::back::Back;
use crate::binding;
use crate::dispatch::ASK_FOUND_ROWS;
use crate::follow::Question;
use crate::front::{Front, Phase};
use crate::message::ok::{Change, ErrPacket, OkPacket, changes};
use crate::message::{Command, lenenc, ok, status};
use crate::prepared::{self, Execute};
use crate::queue::{Entry, Stage};
use crate::reset::put_command;
use crate::session_state::{Flavour, Slot, put_query, settings_query};
use crate::warnings::{self, Kept, Warnings};
use std::ops::ControlFlow;
use std::sync::Arc;
use weir_session::Back as _;
use weir_wire::{Boundary, Fault, INTERNAL, Pin, Reader};

/// Errors behind which the server closes the connection: ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED (MariaDB),
/// ER_SESSION_WAS_KILLED and ER_CLIENT_INTERACTION_TIMEOUT (MySQL).
const PARTING: [u16; 4] = [1053, 1927, 3169, 4031];

/// ER_WRONG_VALUE_FOR_VAR: what is set behind a reset finds something that the reset has left.
const WRONG_VALUE: u16 = 1231;

fn is_error(payload: &[u8], code: u16) -> bool {
    ErrPacket::read(payload).is_ok_and(|error| error.code == code)
}

impl Back {
    /// Where the reply leaves the server, and what of the session it changed.
    pub(super) fn note_ok<'a>(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        payload: &'a [u8],
    ) -> Result<OkPacket<'a>, Fault> {
        let end = self.note_status(payload)?;
        if let Some(front) = way.front.as_deref_mut() {
            // What was told of it is over with it, although a tracker that was off meanwhile (see
            // `client_trackers`) does not say so.
            let is_over = front.is_in_transaction() && end.status & status::IN_TRANS == 0;
            front.one_shot &= !is_over;
            front.status = end.status;
        }
        for (change, _) in changes(end.changes) {
            entry.outcome.schema_told |= matches!(change, Change::Schema(_));
            match change {
                Change::State => {
                    // What the SETs at the head of the text do is known.
                    let heads = way.front.as_deref().map_or(0, |front| front.request.class.heads().len());
                    entry.outcome.state_changed |= usize::from(entry.outcome.results) >= heads;
                }
                // The server goes back to the schema that its client has left the statement's for.
                Change::Schema(name) if entry.elsewhere => self.note_schema(None, name),
                Change::Schema(name) => {
                    entry.lost_schema = None;
                    self.note_schema(way.front.as_deref_mut(), name);
                }
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

    pub(crate) fn note_status<'a>(&mut self, payload: &'a [u8]) -> Result<OkPacket<'a>, Fault> {
        let end = self.read_ok(payload)?;
        self.status = end.status;
        Ok(end)
    }

    pub(super) fn read_ok<'a>(&self, payload: &'a [u8]) -> Result<OkPacket<'a>, Fault> {
        OkPacket::read(payload, self.capabilities).map_err(|_| malformed("malformed OK"))
    }

    /// What the tracker says is about the end of this request. Requests that were sent behind it have brought
    /// the session to their own schema since.
    pub(super) fn note_schema(&mut self, front: Option<&mut Front>, name: &[u8]) {
        let text = String::from_utf8_lossy(name);
        let schema: Option<Arc<str>> = (!text.is_empty()).then(|| Arc::from(&*text));
        self.lost_schema = None;
        if !self.others_are_sent() {
            self.session.state.schema = schema.clone();
            self.session.schema_known = true;
        } else if front.as_deref().is_none_or(|front| front.state.schema != schema) {
            // They were brought there from another one than was believed.
            self.session.known = false;
        }
        if let Some(front) = front {
            // A name that means something else in another charset cannot be said to another server.
            if !name.is_ascii() {
                front.pin(Pin::Setting);
            }
            front.state.schema = schema;
        }
    }

    /// The request's own reply is whole.
    pub(super) fn reply_ended(&mut self, entry: &mut Entry, way: &mut Way<'_>) {
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
        let parting = PARTING.contains(&entry.outcome.error);
        if entry.outcome.failed && parting && self.others_are_sent() {
            // A ping would be answered behind what was sent after it, if at all.
            entry.stage = Stage::Torn;
            return;
        }
        let autocommit_idle = self.status & (status::IN_TRANS | status::AUTOCOMMIT) == status::AUTOCOMMIT;
        let harmless = !entry.leaves_trace
            && autocommit_idle
            && !self.autocommit_off
            && entry.owner != INTERNAL
            && !parting;
        if entry.outcome.failed && !harmless {
            // ERR says nothing about the transaction: deadlocks roll it back, timeouts may not. Nor does it
            // say whether the server closes: a client that has got a server's last words must be closed, too.
            put_command(way.to_server, Command::Ping);
            entry.outcome.pinged = true;
            entry.stage = Stage::Ping;
        } else {
            entry.stage = Stage::Finished;
        }
    }

    pub(super) fn read_ping(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        input: &[u8],
    ) -> Result<usize, Fault> {
        let Some((header, payload)) = whole(input)? else { return Ok(0) };
        match payload.first() {
            Some(&ok::OK) => {
                let failed = entry.outcome.failed;
                let end = self.note_ok(entry, way, payload)?;
                if failed {
                    entry.outcome.conditions.get_or_insert(end.warnings);
                }
                if let Some(front) = way.front.as_deref_mut().filter(|_| failed) {
                    front.keep_untold(end.changes);
                }
                entry.outcome.failed = failed;
            }
            Some(&ok::ERR)
                if entry.setup_owed && entry.owner != INTERNAL && is_error(payload, WRONG_VALUE) =>
            {
                // What the reset has left is its client's.
                entry.keeps_beyond_reset = true;
                self.needs_setup = true;
                self.doubtful = true;
            }
            Some(&ok::ERR) => self.broken = true,
            Some(_) | None => return Err(malformed("an answer to COM_PING that is neither OK nor ERR")),
        }
        entry.setup_owed = false;
        entry.stage = Stage::Finished;
        Ok(header.total())
    }

    /// The client is about to leave this server, and only this server knows its warnings: asks. Where other
    /// requests are on their way already, they have wiped them away.
    pub(super) fn asks_warnings(&mut self, entry: &mut Entry, way: &mut Way<'_>) -> bool {
        let idle = self.boundary() == Boundary::Idle;
        let Some(front) = way.front.as_deref_mut() else { return false };
        if entry.reworded.is_none() && !entry.marked && !(idle && front.only_warnings_pin()) {
            return false;
        }
        if self.others_are_sent() {
            if front.remaining_warnings().is_none() {
                // What stands behind it has wiped them away: hardly any read warns before it fails.
                front.keep_conditions(1);
            }
            front.keep_warnings(match self.text_again(entry, front) {
                Some(text) if !entry.had_warnings => Kept::Read(text, entry.outcome.left()),
                Some(_) | None => Kept::Lost,
            });
            return false;
        }
        self.ask_warnings(entry, front, way.to_server);
        front.phase = Phase::Busy;
        true
    }

    /// The read as a text that warns of the same when it is run again; `None` if there is none for certain.
    fn text_again(&self, entry: &Entry, front: &Front) -> Option<Box<[u8]>> {
        let sent = self.texts.get(&entry.text)?;
        if entry.command != Command::StmtExecute {
            return Some(sent.into());
        }
        let key = entry.key.as_ref().filter(|key| key.private.is_none() && !entry.elsewhere)?;
        let statement = front.statements.as_deref()?.get(prepared::statement_id(sent).ok()?)?;
        let execute = Execute::read(sent, statement.params).ok()?;
        let same = key.text.variables.is_none() && front.state.shaped(&key.text.shape) == front.state;
        if !same || execute.cursor || statement.types.len() != usize::from(statement.params) * 2 {
            return None;
        }
        prepared::text_with(&key.text.text, &binding::literals(sent, &execute, &statement.types)?)
    }

    /// Asks for the warnings that are here, which leaves them and FOUND_ROWS() as they are.
    pub(crate) fn ask_warnings(&mut self, entry: &mut Entry, front: &Front, out: &mut Vec<u8>) {
        if self.session.flavour == Flavour::MySql && front.remaining_warnings().is_none() {
            // Its OK counts as the client's own would.
            put_command(out, Command::Ping);
        }
        self.last_client = 0;
        self.last_rows = 0;
        put_query(out, "SHOW WARNINGS");
        entry.reply.warnings = Some(Box::default());
    }

    /// Reads a packet of the answer. Behind the last one: the warnings, `None` where there is no use for
    /// them.
    pub(super) fn take_warnings(
        &mut self,
        entry: &mut Entry,
        front: Option<&mut Front>,
        payload: &[u8],
    ) -> Result<ControlFlow<Option<Box<Warnings>>>, Fault> {
        let Some(warnings) = entry.reply.warnings.as_deref_mut() else { return Ok(ControlFlow::Break(None)) };
        if payload.first() == Some(&ok::OK) && warnings.is_untouched() {
            let end = self.read_ok(payload)?;
            if let Some(front) = front {
                front.keep_conditions(end.warnings);
            }
            return Ok(ControlFlow::Continue(()));
        }
        let progress = warnings.take(payload).map_err(|_| malformed("malformed SHOW WARNINGS"))?;
        if progress == warnings::Progress::More {
            return Ok(ControlFlow::Continue(()));
        }
        let kept = entry.reply.warnings.take();
        Ok(ControlFlow::Break(kept.filter(|_| progress == warnings::Progress::Whole)))
    }

    /// The same, behind a request. True when it was the last.
    pub(super) fn read_warnings(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        payload: &[u8],
    ) -> Result<bool, Fault> {
        let ControlFlow::Break(kept) = self.take_warnings(entry, way.front.as_deref_mut(), payload)? else {
            return Ok(false);
        };
        if let Some(front) = way.front.as_deref_mut() {
            front.phase = Phase::Idle;
            if let Some(mut kept) = kept {
                let all = kept.counts();
                if entry.marked && kept.was_marked() {
                    return Ok(true);
                }
                let goes = self.boundary() == Boundary::Idle && front.only_warnings_pin();
                let has_own = front.warnings_are_on_server() && kept.counts() == all;
                if entry.reworded.is_none() && has_own && !goes {
                    // The mark is gone, and its client stays where they are.
                    return Ok(true);
                }
                if let Some(reworded) = entry.reworded.as_deref() {
                    kept.reword(reworded);
                }
                if let Some(state) = entry.outcome.state.filter(|_| entry.outcome.failed) {
                    kept.are_of_error(entry.outcome.error, state);
                }
                front.keep_warnings(Kept::Answer(*kept));
            }
        }
        Ok(true)
    }

    /// The client is about to leave this server, which alone knows what the client may ask: asks it, one
    /// thing after the other. Warnings come first, the other questions would clear them on MySQL; then
    /// FOUND_ROWS(), which each of the others sets.
    pub(super) fn next_question(&mut self, entry: &mut Entry, way: &mut Way<'_>) -> Stage {
        if !entry.asked_warnings && self.asks_warnings(entry, way) {
            entry.asked_warnings = true;
            return Stage::AskWarnings;
        }
        let id = self.server_id();
        let others = self.others_are_sent();
        let idle = self.boundary() == Boundary::Idle;
        // A mark must not be shown, wherever its client stays.
        let asks = |front: &&mut Front| {
            let leaves = idle && front.lasting_pins().is_empty();
            !others && (leaves || front.found_rows_may_be_marked())
        };
        let Some(front) = way.front.as_deref_mut().filter(asks) else {
            return Stage::Answered;
        };
        entry.reply.asked = 0;
        let asks_found = self.found_client == front.unique() && front.found_rows_are_on(id);
        if !asks_found && !front.unasked().is_empty() {
            put_query(way.to_server, &settings_query(front.unasked(), self.session.flavour));
            self.forget_last();
            front.phase = Phase::Busy;
            return Stage::AskSettings;
        }
        if !asks_found && !front.unasked_variables().is_empty() {
            let names = front.unasked_variables().to_vec();
            entry.reply.variables = Some(Box::new(Question::put(names, way.to_server)));
            self.forget_last();
            front.phase = Phase::Busy;
            return Stage::AskVariables;
        }
        let stage = if asks_found {
            put_query(way.to_server, ASK_FOUND_ROWS);
            Stage::AskFoundRows
        } else if self.ask_insert_id(entry, front, way.to_server) {
            Stage::AskInsertId
        } else {
            return Stage::Answered;
        };
        self.forget_last();
        front.phase = Phase::Busy;
        stage
    }

    /// A question of Weir's own takes the place of the last statement here: nothing can be asked of that any
    /// more.
    fn forget_last(&mut self) {
        self.warned_client = 0;
        self.last_client = 0;
        self.last_rows = 0;
        self.found_here = 0;
        self.next_here = 0;
        self.found_client = 0;
    }

    /// A packet of the answer about settings; true when it was the last.
    pub(super) fn read_settings(&mut self, entry: &mut Entry, way: &mut Way<'_>, payload: &[u8]) -> bool {
        // Number of columns, definitions, row, end.
        let at = usize::from(entry.reply.asked);
        entry.reply.asked += 1;
        let failed = payload.first() == Some(&ok::ERR);
        let Some(front) = way.front.as_deref_mut() else {
            return failed || payload.first() == Some(&ok::EOF);
        };
        let slots = front.unasked();
        if failed || at == slots.len() + 1 {
            let mut r = Reader::new(payload);
            let literal = |slot: &Slot| slot.literal_of(lenenc::string(&mut r).ok()?);
            let values = if failed { None } else { slots.iter().map(literal).collect() };
            front.keep_settings(values);
            entry.reply.asked_columns = 0;
            self.take_over_state(front, entry.elsewhere, entry.lost_schema.is_some());
        }
        let over = failed || entry.reply.asked_columns == 0 && payload.first() == Some(&ok::EOF);
        if over {
            entry.reply.asked_columns = 1;
            front.phase = Phase::Idle;
        }
        over
    }

    /// A packet of the answer about variables; true when it was the last.
    pub(super) fn read_variables(&mut self, entry: &mut Entry, way: &mut Way<'_>, payload: &[u8]) -> bool {
        let Some(question) = entry.reply.variables.as_deref_mut() else { return true };
        let over = question.take(payload, self.capabilities);
        // Nobody knows then what they are.
        self.tainted |= over && way.front.is_none();
        if over
            && let Some(front) = way.front.as_deref_mut()
            && let Some(question) = entry.reply.variables.take()
        {
            front.phase = Phase::Idle;
            self.take_variables(front, *question);
        }
        over
    }

    /// A packet of the answer to SELECT FOUND_ROWS(); true when it was the last.
    pub(super) fn read_found_rows(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        payload: &[u8],
    ) -> Result<bool, Fault> {
        let over = Back::take_found_rows(entry, way.front.as_deref_mut(), payload)?;
        if let Some(front) = way.front.as_deref_mut().filter(|_| over) {
            front.phase = Phase::Idle;
        }
        Ok(over)
    }

    /// The same, wherever it was asked.
    pub(super) fn take_found_rows(
        entry: &mut Entry,
        front: Option<&mut Front>,
        payload: &[u8],
    ) -> Result<bool, Fault> {
        // Number of columns, definition, row, end.
        let at = entry.reply.asked;
        entry.reply.asked += 1;
        let over = payload.first() == Some(&ok::ERR) || at == 3;
        if at == 2
            && !over
            && let Some(front) = front
        {
            let number = crate::insert_id::first_number(payload);
            front.keep_found_rows(number.ok_or_else(|| malformed("malformed FOUND_ROWS()"))?);
        }
        Ok(over)
    }

    /// A packet of the answer about LAST_INSERT_ID(); true when it was the last.
    pub(super) fn read_insert_id(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        payload: &[u8],
    ) -> Result<bool, Fault> {
        if self.ask_insert_id_again(entry, payload, way.to_server) {
            return Ok(false);
        }
        let over = self.take_insert_id(entry, way.front.as_deref_mut(), payload);
        let over = over.ok_or_else(|| malformed("malformed LAST_INSERT_ID()"))?;
        if let Some(front) = way.front.as_deref_mut().filter(|_| over) {
            front.phase = Phase::Idle;
        }
        Ok(over)
    }
}
