//! Sends a request to its server, preceded by whatever the server needs first.
//!
//! Owns: bringing the server into the client's state. Must not know: how a request is written.

mod along;
mod last;
mod ordinary;
mod send;
mod texts;

use self::along::{has_unknown_settings, state_to_prepare};
use self::last::{COUNTS_NOTHING, Counts, ONE_ROW, ONE_ROW_FOUND, one_row_of, rows_of};
pub(crate) use self::send::put_execute;
pub(crate) use self::texts::Texts;
use crate::back::Back;
use crate::follow::{InTheWay, Wanted};
use crate::frame::{HEADER_BYTES, Header};
use crate::front::{Act, AsksSession, Front, Leaves, Request, opens_nothing, runs_user_code};
use crate::message::Command;
use crate::message::ok::ErrPacket;
use crate::prepared::{Execute, Key, Text};
use crate::queue::{Ahead, Alone, Entry, PrepareAhead, Stage};
use crate::reset::put_command;
use crate::session_state::{Flavour, State, client_trackers, put_query, setup_query};
use crate::words::{Piece, Words};
use crate::{binding, frame, lost_schema, says};
use std::sync::Arc;
use weir_session::Back as _;
use weir_session::Front as _;
use weir_sql::catalogue::UnknownCode;
use weir_sql::{Locks, Uses, Verb};
use weir_wire::{Boundary, Fault, FaultKind, Owner, Pin};

/// Of warnings that cannot be had.
pub(crate) const NOT_KNOWN: &str =
    "What the last statement left is no longer known; ask with SHOW WARNINGS, or within the transaction";

/// Of an execution whose answer depends on parameters of former ones.
const SETTLED_ELSEWHERE: &str = "This value would be stored otherwise: parameters of another type were bound \
     before, and the server that knows them is busy or was reset; execute it again, or prepare it again";

/// Of an execution whose answer depends on whether one that failed had come as far as to its parameters.
const IN_DOUBT: &str = "This value might be taken otherwise: the statement was executed with parameters of another \
     type, and failed; execute that again, or prepare the statement again";

/// What is FOUND_ROWS()?
pub(crate) const ASK_FOUND_ROWS: &str = "SELECT FOUND_ROWS() LIMIT 1";

impl Back {
    /// Puts a request at the end of the queue and appends to `out` what makes it run here.
    ///
    /// # Errors
    /// `NotAllowed` for the rare requests that cannot be carried to this server.
    pub(crate) fn dispatch(
        &mut self,
        front: &mut Front,
        owner: Owner,
        request: &[u8],
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        if whole {
            front.judge_again(request);
        }
        let mut entry = Entry::new(owner, front.request.command, Stage::Waiting);
        entry.whole = whole;
        entry.leaves_trace = !front.request.leaves_no_trace();
        entry.taints = front.request.taints() || !whole;
        entry.reply.add_shift(std::mem::take(&mut front.shift));
        self.judge(&mut entry, front, request);
        if self.queue.iter().any(Entry::blocks) {
            entry.held = request.to_vec();
        } else if let Err(fault) = self.start(&mut entry, front, request, out) {
            // Part of the difference may be on its way.
            self.broken = true;
            return Err(fault);
        }
        self.queue.push_back(entry);
        Ok(())
    }

    /// What runs here may change the catalogue, or do more than is known.
    fn judge(&mut self, entry: &mut Entry, front: &mut Front, bytes: &[u8]) {
        let changes = front.request.class.ddl
            && front.request.class.verb != Verb::Truncate
            && !is_temporary(front, bytes);
        let request = &front.request;
        let changes = changes || matches!(request.act.as_deref(), Some(Act::RunsKnown { ddl: true }));
        if !matches!(request.command, Command::Query | Command::StmtExecute) {
            return;
        }
        let state = self.knowledge.state();
        if state == 0 || request.judged_by != state {
            self.doubtful |= runs_user_code(&request.class);
        }
        self.doubtful |= request.class.unknown_code == UnknownCode::Reset;
        self.has_xa |= front.traits.flavour == Flavour::MariaDb && request.class.takes.contains(Locks::XA);
        if changes {
            entry.unsettled = Some(self.knowledge.unsettle(changes_code(&front.request, bytes)));
        }
    }

    /// It has left something here that a new login would take away. What ties it from this request on has not
    /// come here yet.
    fn keeps(&self, front: &Front) -> bool {
        self.boundary() != Boundary::Idle || self.guest == front.unique() && front.stays_here()
    }

    /// Why the operator refuses this request: its text says that it would pin.
    fn refused_pin(&self, entry: &Entry, front: &Front) -> Option<Pin> {
        let pins = front.request.class.pins;
        if pins.is_empty() || !matches!(entry.command, Command::Query | Command::StmtExecute) {
            return None;
        }
        self.knowledge.pin_policies().refuses(pins)
    }

    /// Puts the check of a client's login settings at the end of the queue.
    ///
    /// # Errors
    /// As [`Back::dispatch`].
    pub(crate) fn dispatch_welcome(
        &mut self,
        front: &mut Front,
        owner: Owner,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let mut entry = Entry::new(owner, Command::Ping, Stage::Waiting);
        entry.welcome = true;
        if !self.queue.iter().any(Entry::blocks) {
            self.start(&mut entry, front, &[], out)?;
        }
        self.queue.push_back(entry);
        Ok(())
    }

    /// Sends what goes ahead of a request, or, when there is nothing, the request.
    pub(crate) fn start(
        &mut self,
        entry: &mut Entry,
        front: &mut Front,
        request: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        if let Some(pin) = self.refused_pin(entry, front) {
            refuse_pin(entry, front, pin);
            return Ok(());
        }
        let missing = self.find_statement(entry, front, request)?;
        if entry.stage == Stage::Refused {
            return Ok(());
        }
        let is_ordinary = missing.is_none() && self.is_ordinary(entry, front);
        front.request.ordinary = is_ordinary;
        let mut expected = None;
        if is_ordinary {
            entry.found_own = self.found_here == front.found_mark();
            if !cfg!(debug_assertions) || front.unique().is_multiple_of(2) {
                self.send(entry, front, request, out);
                return Ok(());
            }
            expected = Some(self.left_ahead(entry));
        }
        self.say_what_is_gone(entry, front, request);
        let nowhere = entry.lost_schema.is_some().then(|| State { schema: None, ..front.state.clone() });
        let mut shaped = missing.as_ref().map(|key| state_to_prepare(front, &key.text));
        if let Some(shaped) = shaped.as_mut().filter(|_| nowhere.is_some()) {
            shaped.schema = None;
        }
        if let (Some(key), Some(shaped)) = (&missing, &mut shaped)
            && self.session.needs_new_login(shaped)
            && self.keeps(front)
        {
            // Prepared before its client had a schema. A new login would end the transaction, and take away
            // what else is held here. What could be prepared without a schema names in full all that it uses,
            // so it means the same in any; only what asks for the schema itself does not.
            if asks_for_schema(&key.text.text) {
                refuse(entry, front, "a statement prepared without a schema asks for it; prepare it again");
                return Ok(());
            }
            shaped.schema = front.state.schema.clone();
        }
        let first = shaped.as_ref().or(nowhere.as_ref()).unwrap_or(&front.state);
        if self.session.needs_new_login(first) {
            if matches!(entry.command, Command::StmtFetch | Command::StmtReset | Command::StmtClose) {
                // Its cursor is in this session, whose schema is the statement's, and its client has none any
                // more.
                self.send(entry, front, request, out);
                return Ok(());
            }
            if self.keeps(front) {
                if needs_no_schema(&front.request) {
                    entry.lost_schema = None;
                    entry.kept_out = true;
                    self.send(entry, front, request, out);
                    return Ok(());
                }
                entry.kept_out = true;
                // A new login would take away what the client is tied to this server by.
                refuse(entry, front, "this session has no schema any more; name one by USE first");
                if let Some(lost) = &entry.lost_schema {
                    (entry.refusal, entry.ahead_error) = (Some(lost.clone()), Some(lost.clone()));
                }
                return Ok(());
            }
            self.again.start(out)?;
            entry.ahead.push_back(Ahead::Login);
            entry.stage = Stage::Ahead;
            entry.held = request.to_vec();
            return Ok(());
        }
        let wanted = front.wants_variables(entry.whole);
        let is_cleared = self.must_be_cleared(missing.as_ref(), wanted.as_ref(), front)
            || self.along_must_be_cleared(entry, front, wanted.is_some());
        if is_cleared && !self.begins_otherwise {
            put_command(out, Command::ResetConnection);
            entry.ahead.push_back(Ahead::Reset);
            entry.stage = Stage::Ahead;
            entry.held = request.to_vec();
            return Ok(());
        }
        let to = nowhere.as_ref().unwrap_or(&front.state);
        if self.wipes_warnings(entry, front, missing.as_ref(), to, wanted.is_some()) {
            self.ask_warnings(entry, front, out);
            entry.ahead.push_back(Ahead::AskWarnings);
            entry.stage = Stage::Ahead;
            entry.held = request.to_vec();
            return Ok(());
        }
        if std::mem::take(&mut self.untold_hint) {
            put_command(out, Command::Ping);
            entry.ahead.push_back(Ahead::Command);
        }
        if self.sets_up_first(front) {
            self.needs_setup = false;
            put_query(out, setup_query());
            entry.ahead.push_back(Ahead::State);
        }
        if let (Some(key), Some(shaped)) = (missing, shaped) {
            self.prepare_ahead(entry, front, &shaped, key, out);
            if entry.alone == Alone::Next {
                entry.alone = Alone::Now;
                entry.stage = Stage::Ahead;
                entry.held = request.to_vec();
                return Ok(());
            }
        }
        entry.alone = Alone::No;
        self.prepare_along(entry, front, wanted.is_some(), out);
        let elsewhere = self.state_of_cursor(entry, front).or_else(|| state_elsewhere(entry, front));
        let elsewhere = elsewhere.filter(|_| nowhere.is_none());
        entry.elsewhere = elsewhere.is_some();
        let state = nowhere.as_ref().or(elsewhere.as_ref()).unwrap_or(&front.state);
        if self.session.needs_new_login(state) {
            let text = "a statement prepared in a schema, for a client that has none any more";
            return Err(Fault::new(FaultKind::NotAllowed, text));
        }
        self.move_ahead(entry, state, out);
        if let Some(wanted) = &wanted
            && !self.variables_ahead(entry, wanted, front, out)
            && front.may_see_variables(entry.whole)
        {
            // A reset would take away what ties its client to this server.
            self.put_out_of_the_way(wanted, front, out);
            entry.ahead.push_back(Ahead::State);
        }
        if entry.welcome {
            entry.stage = if entry.ahead.is_empty() { Stage::Finished } else { Stage::Ahead };
            return Ok(());
        }
        if front.request.asks_session == AsksSession::Trackers
            && let Some(query) = client_trackers(front.own_trackers)
        {
            put_query(out, &query);
            entry.ahead.push_back(Ahead::State);
            // Whoever has set some of them keeps this server.
            self.needs_setup = front.own_trackers == 0;
        }
        let first = (entry.ahead.len(), out.len());
        let (insert_id, insert_server) = (self.insert_id, front.insert_server);
        self.bring_insert_id(entry, front, out);
        let can_run = self.knows_found_rows(entry, front);
        let counts = if can_run { self.bring_counts(entry, front, out) } else { Counts::default() };
        let (before, keeps) = (entry.ahead.len(), self.keeps_warnings(entry));
        if counts.warnings_first && keeps {
            self.ask_warnings(entry, front, out);
            entry.ahead.push_back(Ahead::AskWarnings);
            entry.stage = Stage::Ahead;
            entry.held = request.to_vec();
            return Ok(());
        }
        let can_run = can_run && self.bring_warnings(entry, front, out);
        if !keeps || entry.ahead.len() != before {
            self.warned_client = 0;
        }
        if !can_run {
            return Ok(());
        }
        if counts.wanted
            && front.answers().row_count == 0
            && matches!(entry.ahead.back(), Some(Ahead::Signal))
        {
            // An error that is raised again counts -1.
            put_command(out, Command::Ping);
            entry.ahead.push_back(Ahead::Command);
        }
        let cleared = entry.ahead.len() != before && matches!(entry.ahead.back(), Some(Ahead::State));
        let selects = cleared && self.session.flavour == Flavour::MariaDb;
        if self.ask_found_rows_first(entry, front, selects, counts, first, out) {
            // What went ahead from there on is taken back.
            (self.insert_id, front.insert_server) = (insert_id, insert_server);
            entry.stage = Stage::Ahead;
            entry.held = request.to_vec();
            return Ok(());
        }
        let only_prepares = entry.first.is_none() && entry.kinds.is_none();
        let selects_ahead = |ahead: &Ahead| match ahead {
            Ahead::Prepare(_) => !only_prepares,
            ahead => !matches!(ahead, Ahead::State | Ahead::Schema(_) | Ahead::Command),
        };
        if entry.ahead.iter().any(selects_ahead) {
            self.next_here = 0;
        }
        let row_count = front.answers().row_count;
        if let Some(rows) = counts.found.filter(|_| selects) {
            // What clears warnings there is a SELECT.
            let counts_one = counts.wanted && row_count == 1;
            put_query(out, &if counts_one { one_row_of(rows) } else { rows_of(rows) });
            entry.ahead.push_back(Ahead::Repeat(None));
            self.found_here = front.found_mark();
            entry.found_own = true;
        } else if selects
            || entry.ahead.len() != before && matches!(entry.ahead.back(), Some(Ahead::Repeat(_)))
        {
            self.found_here = 0;
            entry.found_marked = false;
        }
        let disturbed = entry.ahead.len() != before && counts.wanted;
        if disturbed && row_count == 1 && (entry.marked || selects && counts.found.is_none()) {
            // Without a table, which would take the mark away. A mark stands on MariaDB only.
            let found = counts.found == Some(1);
            put_query(out, if found { ONE_ROW_FOUND } else { ONE_ROW });
            entry.ahead.push_back(Ahead::Repeat(None));
            self.found_here = if found { front.found_mark() } else { 0 };
        }
        if disturbed && row_count == 0 && selects && counts.found.is_some() {
            put_command(out, Command::Ping);
            entry.ahead.push_back(Ahead::Command);
        }
        let counted = disturbed && row_count == -1;
        if counted || counts.nothing {
            put_query(out, COUNTS_NOTHING);
            entry.ahead.push_back(Ahead::Repeat(None));
        }
        entry.found_own &= self.found_here == front.found_mark();
        debug_assert!(expected.is_none_or(|expected| expected == self.left_ahead(entry)), "not ordinary");
        if entry.ahead.is_empty() {
            self.send(entry, front, request, out);
        } else {
            entry.stage = Stage::Ahead;
            entry.held = request.to_vec();
            self.last_client = 0;
            // Nor does a command behind it leave that.
            let leaves = |ahead: &Ahead| matches!(ahead, Ahead::Prepare(_));
            self.last_rows = if entry.ahead.iter().all(leaves) { self.last_rows } else { 0 };
        }
        Ok(())
    }

    /// Trackers are set up ahead of the request, unless that would take away the warnings that it asks for.
    fn sets_up_first(&self, front: &Front) -> bool {
        let class = &front.request.class;
        let asks = class.statements == 1 && class.uses.contains(Uses::WARNINGS);
        self.needs_setup && !(asks && self.shows_warnings_of(Some(front)))
    }

    /// The request asks for warnings that only this server has, or may leave them as they are, and what goes
    /// ahead of it would take them away. `to`: its client's state.
    fn wipes_warnings(
        &self,
        entry: &Entry,
        front: &Front,
        missing: Option<&Key>,
        to: &State,
        brings: bool,
    ) -> bool {
        if !front.warnings_are_on_server() || !self.shows_warnings_of(Some(front)) {
            return false;
        }
        let request = &front.request;
        let runs = matches!(entry.command, Command::Query | Command::StmtExecute);
        let asks = runs && request.class.uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS);
        let leaves = (runs || entry.command == Command::StmtPrepare) && request.leaves != Leaves::Nothing;
        let mariadb = self.session.flavour == Flavour::MariaDb;
        let wipes = |key: &Key| !mariadb || says::names_a_table(&key.text.text);
        let sets = !self.session.is_at(to) || self.sets_up_first(front);
        let wiped = missing.is_some_and(wipes) || !mariadb && sets;
        asks && wiped || leaves && !asks && (wiped || self.goes_along(front, brings).is_some())
    }

    /// What is open here goes on in whatever schema this session is: its client's own may be gone.
    fn state_of_cursor(&self, entry: &Entry, front: &Front) -> Option<State> {
        let goes_on = matches!(entry.command, Command::StmtFetch | Command::StmtReset | Command::StmtClose);
        let schema = &self.session.state.schema;
        let is_known = self.session.known && self.session.schema_known;
        let differs = goes_on && is_known && *schema != front.state.schema;
        differs.then(|| State { schema: schema.clone(), ..front.state.clone() })
    }

    /// Its client's schema is gone: the words of the server about that are those about the table that the
    /// request names.
    fn say_what_is_gone(&self, entry: &mut Entry, front: &Front, request: &[u8]) {
        if entry.lost_schema.is_none() || self.session.flavour != Flavour::MariaDb {
            return;
        }
        let text = match (entry.command, &entry.key) {
            (Command::Query | Command::StmtPrepare, _) => request.get(HEADER_BYTES + 1..),
            (Command::StmtExecute, Some(key)) => Some(&*key.text.text),
            _ => None,
        };
        let schema = front.state.schema.as_deref().unwrap_or_default();
        if let Some(words) = text.and_then(|text| lost_schema::no_such_table(schema, text)) {
            entry.lost_schema = Some(words.into());
        }
    }

    pub(super) fn move_ahead(&mut self, entry: &mut Entry, to: &State, out: &mut Vec<u8>) {
        if to.schema.is_some() && to.schema != self.lost_schema {
            // Where this session goes now it stays when the other client asks for its own again.
            self.lost_schema = None;
        }
        let sets_option = self.session.known && self.session.state.multi_statements != to.multi_statements;
        let commands = self.session.move_to(to, out);
        self.tally.settings += commands;
        if sets_option && commands == 1 {
            entry.ahead.push_back(Ahead::Command);
            return;
        }
        entry.ahead.extend((0..commands).map(|_| Ahead::State));
    }

    /// Finds the copy of the statement a command is about; returns its key when it has to be prepared
    /// first.
    pub(super) fn find_statement(
        &mut self,
        entry: &mut Entry,
        front: &mut Front,
        request: &[u8],
    ) -> Result<Option<Key>, Fault> {
        let (client, number) = (front.unique(), front.request.number);
        if entry.command == Command::StmtPrepare && entry.whole {
            let prepare = front.request.extra.as_deref().and_then(|extra| extra.prepare.clone());
            entry.key = prepare.map(Key::fresh);
            return Ok(None);
        }
        let runs = match entry.command {
            Command::StmtExecute | Command::StmtSendLongData => true,
            Command::StmtFetch | Command::StmtReset | Command::StmtClose => false,
            _ => return Ok(None),
        };
        let answered = front.answered_statement();
        let unknown = has_unknown_settings(front);
        let wants = front.request.wants;
        let statement = front.statements.as_deref_mut().and_then(|all| all.get_mut(number));
        let Some(statement) = statement else { return Ok(None) };
        if entry.command == Command::StmtFetch && !statement.cursor {
            // No server has a cursor of it; under the number that no statement has it says so, and adds that
            // to its client's warnings.
            return Ok(None);
        }
        let mut cursor = false;
        let mut has_types = true;
        let (mut binding, mut example) = (None, None::<(Execute, &[u8])>);
        if entry.command == Command::StmtExecute {
            let payload = request.get(HEADER_BYTES..).unwrap_or_default();
            if let Ok(execute) = Execute::read(payload, statement.params) {
                cursor = execute.cursor;
                has_types = execute.has_types;
                if self.settles_types && statement.params > 0 {
                    let like = statement.settled.as_deref().map(|settled| &settled.base);
                    let (types, long_data) = (&statement.types, &statement.long_data);
                    let bound = binding::of(payload, &execute, types, long_data, like);
                    if statement.is_in_doubt(&bound) {
                        refuse(entry, front, IN_DOUBT);
                        return Ok(None);
                    }
                    binding = Some(bound);
                    if entry.whole
                        && statement.long_data.is_empty()
                        && !cursor
                        && statement.class.only_reads()
                    {
                        example = Some((execute, payload));
                    }
                }
            }
        } else if runs {
            statement.sent_ahead = true;
        }
        let executes = entry.command == Command::StmtExecute;
        // A server prepares a statement again by itself where a table of it was flushed, under the modes of
        // who executes it then.
        let otherwise = runs && !front.state.is_like(&statement.text.shape);
        // It cannot be prepared again as it was: its client goes on with what it has prepared here.
        let stays = otherwise && unknown;
        let gives_up = self.settles_types && executes && statement.cursor && !cursor && !stays;
        if executes && statement.sent_ahead && (answered.is_some() || gives_up) {
            // The data is in the copy that would not be executed.
            let text = "long data for a statement that asks ROW_COUNT() or FOUND_ROWS(), or had a cursor";
            return Err(Fault::new(FaultKind::NotAllowed, text));
        }
        if gives_up {
            // MySQL answers wrongly where a copy whose first execution had a cursor is executed without one.
            self.statements.give_up(&statement.key(client, number, true));
            statement.cursor = false;
        }
        // Where its client has told no types yet, a server would take those that another client told it.
        let untyped = executes && statement.params > 0 && statement.types.is_empty();
        // Long data may leave an error in the statement, which nobody else must meet.
        let alone = cursor || untyped || executes && otherwise || !statement.long_data.is_empty();
        let own = (otherwise || unknown).then(|| statement.key(client, number, true));
        // A copy that has the data of this execution stays.
        let has_data = executes && statement.sent_ahead;
        let closes = self.settles_types && !cursor && !statement.cursor && !has_data;
        let goes_on = |own: &Key| unknown && executes && self.statements.serves_on(statement, own, closes);
        let alone = alone || own.as_ref().is_some_and(goes_on);
        let mut key = statement.key(client, number, alone);
        // Nobody else's execution is on its way on it.
        let is_on_its_way = |other: &Entry| other.key.as_ref().is_some_and(|key| key.text == statement.text);
        if let Some(own) = own.filter(|_| otherwise && !untyped)
            && !self.queue.iter().any(is_on_its_way)
        {
            self.statements.take_over(statement, &own, closes, stays);
        }
        // What cannot be prepared again can have no answers in it: what it asks about ran on this server,
        // where its client stays.
        if let Some(found) = answered.filter(|_| entry.command == Command::StmtExecute && !stays) {
            let Text { shape, variables, .. } = &*statement.text;
            let text = Text::new(shape.clone(), variables.clone(), found.text.into(), found.names);
            key = Key { private: Some((client, number)), ..Key::fresh(Arc::new(text)) };
            entry.answered = true;
        }
        if entry.command == Command::StmtExecute {
            self.statements.drop_answered(&key);
        }
        let (mut first, mut has_kinds) = (None, false);
        // What was sent ahead, or the error that it has left, is in the copy it was sent to.
        if let Some(binding) = binding.filter(|_| !entry.answered && !statement.sent_ahead) {
            let is_alone = key.private.is_some();
            let example = example.as_ref().map(|(execute, payload)| (execute, *payload));
            // One that was executed like this, and one that nobody has executed.
            for _ in 0..2 {
                let executor = (client, number);
                let binding = binding.clone();
                let shared = self.statements.copy_for(statement, executor, binding, is_alone, example, wants);
                let Some(shared) = shared else {
                    refuse(entry, front, SETTLED_ELSEWHERE);
                    return Ok(None);
                };
                first = shared.1;
                if key.private.is_none() || shared.0.private.is_some() {
                    key = shared.0;
                }
                if key.settles_nothing() || !self.statements.is_of_other_kinds(&key, &statement.kinds) {
                    break;
                }
                self.statements.give_up(&key);
            }
            has_kinds = !statement.kinds.is_empty() && !key.settles_nothing();
        }
        let bound = self.statements.touch(&key).map(|copy| copy.types == statement.types);
        let len = Header::read(request).map_or(0, |header| header.len + statement.types.len());
        if !has_types && bound != Some(true) && len >= frame::MAX_PAYLOAD_BYTES {
            let text = "parameters of 16 MB whose types would have to be sent again";
            return Err(Fault::new(FaultKind::NotAllowed, text));
        }
        let missing = runs && bound.is_none();
        entry.first = first.filter(|_| missing);
        let kinds = || (statement.kinds.clone(), statement.class.only_reads());
        entry.kinds = (missing && has_kinds).then(kinds);
        let lacks = missing.then(|| key.clone());
        entry.key = Some(key);
        Ok(lacks)
    }

    /// Variables of others are here that the request, or the statement it needs, must not find, and its
    /// client has nothing here that a reset would take away.
    fn must_be_cleared(&self, missing: Option<&Key>, wanted: Option<&Wanted>, front: &Front) -> bool {
        let of_text = missing.and_then(|key| key.text.variables.as_ref()).map(|named| &named.wanted);
        let in_the_way = |wanted: &Wanted| self.variables_are_in_the_way(wanted, front);
        // Requests of others that are on their way are done before it.
        let free = self.boundary() == Boundary::Idle && front.pins().is_empty();
        free && (of_text.is_some_and(in_the_way) || wanted.is_some_and(in_the_way))
    }

    /// Brings the variables that are wanted; false if those of others are in the way.
    fn variables_ahead(
        &mut self,
        entry: &mut Entry,
        wanted: &Wanted,
        front: &Front,
        out: &mut Vec<u8>,
    ) -> bool {
        match self.bring_variables(wanted, front, out) {
            Ok(commands) => {
                entry.ahead.extend((0..commands).map(|_| Ahead::State));
                true
            }
            Err(InTheWay) => false,
        }
    }

    /// Prepares a statement in the state its client had when it prepared it.
    pub(super) fn prepare_ahead(
        &mut self,
        entry: &mut Entry,
        front: &Front,
        shaped: &State,
        key: Key,
        out: &mut Vec<u8>,
    ) {
        self.move_ahead(entry, shaped, out);
        if let Some(named) = &key.text.variables {
            // Where some are in the way, its client is tied to this server and has set them since.
            self.variables_ahead(entry, &named.wanted, front, out);
            self.makes_variables(named, front);
        }
        frame::put(out, 0, |out| {
            out.push(Command::StmtPrepare as u8);
            out.extend_from_slice(&key.text.text);
        });
        entry.ahead.push_back(Ahead::Prepare(PrepareAhead::new(key)));
        self.tally.prepares += 1;
    }
}

/// The state a prepared statement is executed in when its client has gone to another schema since: a server
/// would go to the schema of the statement for as long as it runs, and say that the session changed, which
/// would look like a change that stays.
fn state_elsewhere(entry: &Entry, front: &Front) -> Option<State> {
    let key = entry.key.as_ref().filter(|_| entry.command == Command::StmtExecute)?;
    let schema = &key.text.shape.schema;
    let differs = schema.is_some() && *schema != front.state.schema;
    differs.then(|| State { schema: schema.clone(), ..front.state.clone() })
}

/// The request will not run: its client gets this error when what went ahead is answered.
fn refuse(entry: &mut Entry, front: &mut Front, text: &str) {
    give_up(entry, text);
    front.request.has_not_run();
    // This session is in whatever state it was brought to.
    entry.leaves_trace = false;
    entry.outcome.failed = true;
    entry.outcome.conditions = Some(1);
    entry.stage = if entry.ahead.is_empty() { Stage::Refused } else { Stage::Ahead };
}

/// The same: the operator refuses statements that pin for this reason.
fn refuse_pin(entry: &mut Entry, front: &mut Front, pin: Pin) {
    let text = format!(
        "This statement is refused: its client would keep the server connection beyond the transaction ({0}). \
         Weir's setting pins.{0} = error refuses it; change the setting, or connect to the database server directly",
        pin.label()
    );
    refuse(entry, front, "");
    give_up_with(entry, &ErrPacket { code: 1235, sqlstate: b"42000", message: text.as_bytes() });
}

/// The same, where something that goes ahead is still under way.
pub(crate) fn give_up(entry: &mut Entry, text: &str) {
    give_up_with(entry, &ErrPacket { code: 1105, sqlstate: b"HY000", message: text.as_bytes() });
}

fn give_up_with(entry: &mut Entry, words: &ErrPacket<'_>) {
    let mut error = Vec::new();
    words.write(&mut error);
    entry.refusal = Some(error.clone().into());
    entry.ahead_error = Some(error.into());
}

/// The request makes or drops temporary tables only, of which the catalogue knows nothing.
fn is_temporary(front: &mut Front, bytes: &[u8]) -> bool {
    let (class, number) = (&front.request.class, front.request.number);
    if class.statements != 1 || class.doubtful || class.uses.contains(Uses::EXECUTABLE_COMMENT) {
        return false;
    }
    let text = match front.request.command {
        Command::StmtExecute => {
            let statement = front.statements.as_deref_mut().and_then(|all| all.get_mut(number));
            statement.map(|statement| &*statement.text.text)
        }
        _ => bytes.get(HEADER_BYTES + 1..),
    };
    let words: Vec<Piece<'_>> = Words::new(text.unwrap_or_default()).take(4).collect();
    let begins = |wanted: &[&[u8]]| {
        wanted.len() <= words.len() && wanted.iter().zip(&words).all(|(word, piece)| piece.is(word))
    };
    begins(&[b"DROP", b"TEMPORARY"])
        || begins(&[b"CREATE", b"TEMPORARY"])
        || begins(&[b"CREATE", b"OR", b"REPLACE", b"TEMPORARY"])
}

/// Code may do something else afterwards: it is not about a table or an index alone. (`RENAME TABLE` renames
/// views; a column's default may draw from a sequence.)
fn changes_code(request: &Request, bytes: &[u8]) -> bool {
    let class = &request.class;
    let text = bytes.get(HEADER_BYTES + 1..).unwrap_or_default();
    if request.command != Command::Query
        || class.statements != 1
        || class.doubtful
        || class.uses.contains(Uses::EXECUTABLE_COMMENT)
        || !matches!(class.verb, Verb::Create | Verb::Alter | Verb::Drop)
    {
        return true;
    }
    let words: Vec<Piece<'_>> = Words::new(text).take(2).collect();
    let of_tables = words.get(1).is_some_and(|word| word.is(b"TABLE") || word.is(b"INDEX"));
    let has = |word: &[u8]| text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word));
    !of_tables || has(b"nextval") || has(b"next value") || has(b"lastval")
}

/// It comes to the same in any schema, or names one.
fn needs_no_schema(request: &Request) -> bool {
    let class = &request.class;
    match request.command {
        Command::Ping | Command::Statistics | Command::InitDb | Command::ResetConnection => true,
        Command::Query => class.statements == 1 && !class.doubtful && opens_nothing(class.verb),
        _ => false,
    }
}

/// The text may ask which schema is the default one: DATABASE() or SCHEMA().
fn asks_for_schema(text: &[u8]) -> bool {
    let has = |word: &[u8]| text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word));
    has(b"DATABASE") || has(b"SCHEMA")
}
