//! Sends a request to its server, preceded by whatever the server needs first.
//!
//! Owns: bringing the server into the client's state. Must not know: how a request is written.

mod send;
mod texts;

pub(crate) use self::send::put_execute;
pub(crate) use self::texts::Texts;
use crate::back::Back;
use crate::follow::{InTheWay, Named, Wanted};
use crate::frame::{HEADER_BYTES, Header};
use crate::front::{AsksSession, Front, Leaves, Request, Unsettles, runs_user_code};
use crate::message::Command;
use crate::message::ok::ErrPacket;
use crate::prepared::{Execute, Key, Text};
use crate::queue::{Ahead, Entry, PrepareAhead, Stage};
use crate::reset::put_command;
use crate::says::Says;
use crate::session_state::{Flavour, State, client_trackers, put_query, setup_query};
use crate::warnings::Kept;
use crate::words::{Piece, Words};
use crate::{binding, frame, lost_schema, rewrite, says, warnings};
use std::sync::Arc;
use weir_session::Back as _;
use weir_session::Front as _;
use weir_sql::catalogue::UnknownCode;
use weir_sql::{Class, Uses, Verb};
use weir_wire::{Boundary, Fault, FaultKind, Owner, Pin, limits};

/// Of warnings that cannot be had.
pub(crate) const NOT_KNOWN: &str =
    "What the last statement left is no longer known; ask with SHOW WARNINGS, or within the transaction";

/// What is FOUND_ROWS()?
pub(crate) const ASK_FOUND_ROWS: &str = "SELECT FOUND_ROWS() LIMIT 1";

/// Clears the warnings of others on both servers (a plain `DO 0` does not on MariaDB).
const CLEAR_WARNINGS: &str = "DO (SELECT 1 FROM (SELECT 1) x)";

/// The same on MySQL, where it leaves FOUND_ROWS() as it is.
const CLEAR_BY_SET: &str = "SET @weir = NULL";

/// It makes ROW_COUNT() 1.
const ONE_ROW: &str = "SELECT NULL INTO @weir";

/// The same, and FOUND_ROWS() 1, which on MariaDB it is not by that.
const ONE_ROW_FOUND: &str = "SELECT SQL_CALC_FOUND_ROWS NULL INTO @weir";

/// It makes ROW_COUNT() -1, and leaves all else.
const COUNTS_NOTHING: &str = "SHOW WARNINGS LIMIT 0";

/// Rows of a SELECT of Weir's that leaves FOUND_ROWS() as it is to be. Deeper recursion must be allowed by a
/// setting.
const MOST_ROWS_BROUGHT: u64 = 1000;

/// What a request has to do with ROW_COUNT().
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// It may ask for it.
    wanted: bool,
    /// It is to be made -1 by what goes ahead last.
    nothing: bool,
    /// What FOUND_ROWS() is to be, for a request that may ask for it.
    found: Option<u64>,
    /// What has to be brought would take away warnings that only this server has, and that the request may
    /// leave: they are asked for first.
    warnings_first: bool,
}

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
        if !matches!(request.command, Command::Query | Command::StmtExecute) {
            return;
        }
        let state = self.knowledge.state();
        if state == 0 || request.judged_by != state {
            self.doubtful |= runs_user_code(&request.class);
        }
        self.doubtful |= request.class.unknown_code == UnknownCode::Reset;
        if changes {
            entry.unsettled = Some(self.knowledge.unsettle(changes_code(&front.request, bytes)));
        }
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
            refuse_pin(entry, pin);
            return Ok(());
        }
        let missing = self.find_statement(entry, front, request)?;
        self.say_what_is_gone(entry, front, request);
        let nowhere = entry.lost_schema.is_some().then(|| State { schema: None, ..front.state.clone() });
        let mut shaped = missing.as_ref().map(|key| front.state.shaped(&key.text.shape));
        if let Some(shaped) = shaped.as_mut().filter(|_| nowhere.is_some()) {
            shaped.schema = None;
        }
        if let (Some(key), Some(shaped)) = (&missing, &mut shaped)
            && self.session.needs_new_login(shaped)
            && (self.boundary() != Boundary::Idle || !front.pins().is_empty())
        {
            // Prepared before its client had a schema. A new login would end the transaction, and take away
            // what else is held here. What could be prepared without a schema names in full all that it uses,
            // so it means the same in any; only what asks for the schema itself does not.
            if asks_for_schema(&key.text.text) {
                refuse(entry, "a statement prepared without a schema asks for it; prepare it again");
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
            if !front.pins().is_empty() && self.session.flavour == Flavour::MySql {
                // A new login would take away what the client is tied to this server by.
                refuse(entry, "this session has no schema any more; name one by USE first");
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
        if self.must_be_cleared(missing.as_ref(), wanted.as_ref(), front)
            || self.along_must_be_cleared(entry, front, wanted.is_some())
        {
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
        // What Weir sets would take away the warnings that this asks for.
        let asks_here = front.request.class.statements == 1
            && front.request.class.uses.contains(Uses::WARNINGS)
            && self.shows_warnings_of(Some(front));
        if self.needs_setup && !asks_here {
            self.needs_setup = false;
            put_query(out, setup_query());
            entry.ahead.push_back(Ahead::State);
        }
        if let (Some(key), Some(shaped)) = (missing, shaped) {
            self.prepare_ahead(entry, front, &shaped, key, out);
        }
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
        let cleared = entry.ahead.len() != before && matches!(entry.ahead.back(), Some(Ahead::State));
        let selects = cleared && self.session.flavour == Flavour::MariaDb;
        self.ask_found_rows_first(entry, front, selects, first, out);
        let only_prepares = entry.first.is_none() && entry.kinds.is_none();
        let selects_ahead = |ahead: &Ahead| match ahead {
            Ahead::Prepare(_) => !only_prepares,
            ahead => !matches!(ahead, Ahead::State | Ahead::Schema(_) | Ahead::Command),
        };
        if entry.ahead.iter().any(selects_ahead) {
            self.next_here = 0;
        }
        if let Some(rows) = counts.found.filter(|_| selects) {
            // What clears warnings there is a SELECT.
            put_query(out, &rows_of(rows));
            entry.ahead.push_back(Ahead::Repeat(None));
            self.found_here = front.found_mark();
            entry.found_own = true;
        } else if selects
            || entry.ahead.len() != before && matches!(entry.ahead.back(), Some(Ahead::Repeat(_)))
        {
            self.found_here = 0;
        }
        let disturbed = entry.ahead.len() != before && counts.wanted;
        if disturbed && entry.marked && front.answers().row_count == 1 {
            // Without a table, which would take the mark away. A mark stands on MariaDB only.
            let found = counts.found == Some(1);
            put_query(out, if found { ONE_ROW_FOUND } else { ONE_ROW });
            entry.ahead.push_back(Ahead::Repeat(None));
            self.found_here = if found { front.found_mark() } else { 0 };
        }
        let counted = disturbed && front.answers().row_count == -1;
        if counted || counts.nothing {
            put_query(out, COUNTS_NOTHING);
            entry.ahead.push_back(Ahead::Repeat(None));
        }
        entry.found_own &= self.found_here == front.found_mark();
        if entry.ahead.is_empty() {
            self.send(entry, front, request, out);
        } else {
            entry.stage = Stage::Ahead;
            entry.held = request.to_vec();
            self.last_client = 0;
        }
        Ok(())
    }

    /// The statements that go along with a request, if any do.
    fn goes_along(&self, front: &Front, brings: bool) -> Option<Unsettles> {
        let reads = front.statements.as_deref()?.read_variables();
        let of_variables = (brings && reads).then_some(Unsettles::OfVariables);
        let of = front.request.unsettles().or(of_variables)?;
        let along_on = front.rare.as_deref().map_or(0, |rare| rare.along_on);
        // What it has prepared since, it has prepared here.
        (along_on != self.server_id() || front.pins().is_empty()).then_some(of)
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
        let wiped = missing.is_some_and(wipes) || !mariadb && !self.session.is_at(to);
        asks && wiped || leaves && !asks && (wiped || self.goes_along(front, brings).is_some())
    }

    /// Settings and variables that a request makes, and that tie its client to this server, may change what
    /// its statements come to when they are prepared behind it. Those that it has prepared elsewhere are
    /// prepared here in front of it. `brings`: its variables come here now, perhaps into a transaction, where
    /// nothing takes them away again.
    fn prepare_along(&mut self, entry: &mut Entry, front: &mut Front, brings: bool, out: &mut Vec<u8>) {
        let Some(of) = self.goes_along(front, brings) else { return };
        if entry.lost_schema.is_some() {
            // They were prepared in a schema that is gone: no server can prepare them any more.
            return;
        }
        let asks = front.request.class.uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS);
        if asks && front.warnings_are_on_server() {
            // What is prepared here takes away what it asks for.
            return;
        }
        let mut any = false;
        for text in texts_along(front, of) {
            any = true;
            let shaped = front.state.shaped(&text.shape);
            let of_now = |text: &Named| !self.variables_are_in_the_way(&text.wanted, front);
            if self.can_go_along(&text, entry, front, &shaped) && text.variables.as_ref().is_none_or(of_now) {
                self.go_along(entry, &shaped, out);
                self.prepare_ahead(entry, front, &shaped, Key::fresh(text), out);
                if let Some(Ahead::Prepare(prepare)) = entry.ahead.back_mut() {
                    prepare.along = true;
                }
            }
        }
        if any {
            front.rare.get_or_insert_default().along_on = self.server_id();
        }
    }

    /// This statement is not here, and can be prepared in this session.
    fn can_go_along(&self, text: &Arc<Text>, entry: &Entry, front: &Front, shaped: &State) -> bool {
        let is_ahead = entry.key.as_ref().is_some_and(|key| key.text == *text);
        // No command leaves a schema for none.
        let stays = shaped.schema.is_some() == front.state.schema.is_some();
        !is_ahead && stays && !self.session.needs_new_login(shaped) && !self.statements.has_shared(text)
    }

    /// Variables of others are in the way of a statement that goes along with the request, and its client has
    /// nothing here that a reset would take away.
    fn along_must_be_cleared(&self, entry: &Entry, front: &Front, brings: bool) -> bool {
        let free = self.variables.is_some() && self.boundary() == Boundary::Idle && front.pins().is_empty();
        let Some(of) = free.then(|| self.goes_along(front, brings)).flatten() else { return false };
        let is_in_the_way = |text: &Arc<Text>| {
            let shaped = front.state.shaped(&text.shape);
            let named = text.variables.as_ref().filter(|_| self.can_go_along(text, entry, front, &shaped));
            named.is_some_and(|named| self.variables_are_in_the_way(&named.wanted, front))
        };
        entry.lost_schema.is_none() && texts_along(front, of).any(|text| is_in_the_way(&text))
    }

    /// Brings this session to where a statement was prepared that the request can do without. Its schema may
    /// be gone.
    fn go_along(&mut self, entry: &mut Entry, shaped: &State, out: &mut Vec<u8>) {
        let goes = !self.session.known || self.session.state.schema != shaped.schema;
        let before = entry.ahead.len();
        self.move_ahead(entry, shaped, out);
        if let Some(schema) = shaped.schema.clone().filter(|_| goes)
            && entry.ahead.len() > before
            && let Some(last) = entry.ahead.back_mut()
        {
            *last = Ahead::Schema(schema);
        }
    }

    /// What is open here goes on in whatever schema this session is: its client's own may be gone.
    fn state_of_cursor(&self, entry: &Entry, front: &Front) -> Option<State> {
        let goes_on = matches!(entry.command, Command::StmtFetch | Command::StmtReset | Command::StmtClose);
        let schema = &self.session.state.schema;
        let differs = goes_on && self.session.known && *schema != front.state.schema;
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
        if sets_option && commands == 1 {
            entry.ahead.push_back(Ahead::Command);
            return;
        }
        entry.ahead.extend((0..commands).map(|_| Ahead::State));
    }

    fn clear_warnings(&self) -> &'static str {
        match self.session.flavour {
            Flavour::MySql => CLEAR_BY_SET,
            Flavour::MariaDb => CLEAR_WARNINGS,
        }
    }

    /// What goes ahead leaves the warnings that are here: an option does, and on MariaDB all that has no
    /// table.
    fn keeps_warnings(&self, entry: &Entry) -> bool {
        let mariadb = self.session.flavour == Flavour::MariaDb;
        let keeps = |ahead: &Ahead| match ahead {
            Ahead::Command => true,
            Ahead::State | Ahead::Schema(_) | Ahead::AskInsertId | Ahead::AskFoundRows | Ahead::Rows => {
                mariadb
            }
            Ahead::Prepare(prepare) => mariadb && !says::names_a_table(&prepare.key.text.text),
            Ahead::Login | Ahead::Reset | Ahead::Signal | Ahead::AskWarnings | Ahead::Repeat(_) => false,
        };
        entry.ahead.iter().all(keeps)
    }

    /// A text that asks for warnings finds its client's here, or none when it has none. False when they
    /// cannot be had: the request is refused.
    pub(super) fn bring_warnings(&mut self, entry: &mut Entry, front: &Front, out: &mut Vec<u8>) -> bool {
        let class = &front.request.class;
        let runs = matches!(entry.command, Command::Query | Command::StmtExecute);
        let prepares = entry.command == Command::StmtPrepare;
        let unsure = (runs || prepares) && front.request.leaves == Leaves::Unsure;
        // MariaDB takes them away itself when it opens a table.
        let clears = front.may_have_warnings()
            && front.request.leaves == Leaves::Nothing
            && self.session.flavour == Flavour::MariaDb;
        let asks = runs && !clears && class.uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS);
        let is_here = self.shows_warnings_of(Some(front));
        let is_answered = rewrite::asks_known_warnings(class)
            && front.warning_counts().is_some()
            && (entry.answered || front.request.extra.as_deref().is_some_and(|extra| extra.text.is_some()));
        let last = self.keeps_warnings(entry);
        entry.had_warnings = unsure;
        if !asks && !unsure || is_here && last {
            return true;
        }
        if is_answered {
            entry.answers_warnings = true;
            return true;
        }
        let behind = class.statements > 1 && !front.request.says.has(Says::HEAD_ASKS);
        if behind && front.traits.flavour == Flavour::MySql {
            // It asks about a statement of its own. On MariaDB that may leave what is there.
            put_query(out, self.clear_warnings());
            entry.ahead.push_back(Ahead::State);
            return true;
        }
        match front.warnings() {
            Some(Kept::Answer(_)) if !asks => {
                put_query(out, &warnings::mark());
                entry.ahead.push_back(Ahead::Signal);
                entry.marked = true;
                return true;
            }
            // What goes ahead takes them away.
            None if is_here && front.warnings_are_on_server() => {}
            None => {
                put_query(out, self.clear_warnings());
                entry.ahead.push_back(Ahead::State);
                return true;
            }
            Some(Kept::Read(text, left)) => {
                frame::put(out, 0, |out| {
                    out.push(Command::Query as u8);
                    out.extend_from_slice(text);
                });
                entry.ahead.push_back(Ahead::Repeat(Some(*left)));
                return true;
            }
            Some(Kept::Answer(warnings)) => {
                if warnings.counts().0 == 0 {
                    put_query(out, self.clear_warnings());
                    entry.ahead.push_back(Ahead::State);
                    return true;
                }
                // One of its kind is as good, for whoever does not look at where it came from.
                let says = front.request.says;
                let signal = warnings.signal(says.has(Says::STATES));
                if let Some(signal) = signal.filter(|_| !says.has(Says::ORIGINS)) {
                    put_query(out, &signal);
                    entry.ahead.push_back(Ahead::Signal);
                    return true;
                }
            }
            // The server that knows has gone to others.
            Some(Kept::Lost) => {}
        }
        entry.had_warnings = false;
        // Nothing of it runs on MySQL when its first statement is none.
        if !asks || front.request.says.has(Says::BEGINS_WITH_NONE) || front.refuses_whole(class) {
            return true;
        }
        if behind {
            put_query(out, self.clear_warnings());
            entry.ahead.push_back(Ahead::State);
            return true;
        }
        refuse(entry, NOT_KNOWN);
        false
    }

    /// Code that asks for FOUND_ROWS() or ROW_COUNT() before it runs a statement of its own finds its
    /// client's, and so does a statement behind one that leaves FOUND_ROWS() as it was. More than one row
    /// that was changed cannot be brought.
    fn bring_counts(&mut self, entry: &mut Entry, front: &Front, out: &mut Vec<u8>) -> Counts {
        let class = &front.request.class;
        let is_here = self.last_client == front.id() && front.last_server == self.server_id();
        let is_here = is_here && front.ran_there && entry.ahead.is_empty();
        let leaves = |ahead: &Ahead| match ahead {
            Ahead::State | Ahead::Schema(_) | Ahead::Command => true,
            Ahead::AskInsertId => self.session.flavour == Flavour::MariaDb,
            // Unless it is executed ahead, too.
            Ahead::Prepare(_) => entry.first.is_none() && entry.kinds.is_none(),
            Ahead::Login
            | Ahead::Reset
            | Ahead::Signal
            | Ahead::Repeat(_)
            | Ahead::AskFoundRows
            | Ahead::AskWarnings
            | Ahead::Rows => false,
        };
        let found_is_here = self.found_here == front.found_mark() && entry.ahead.iter().all(leaves);
        // A table may be a view that nobody has read yet.
        let names =
            matches!(class.verb, Verb::Select | Verb::Insert | Verb::Replace | Verb::Update | Verb::Delete);
        let unread_names = names
            && !class.uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS)
            && front.knowledge.state() == 0
            && front.knowledge.last().is_some_and(|last| !last.is_blind());
        let code = unread_names || class.uses.intersects(Uses::UNKNOWN_FUNCTION | Uses::BLOCK);
        let in_doubt = !class.proven && code;
        let unclear = entry.whole && (class.doubtful || class.uses.contains(Uses::EXECUTABLE_COMMENT));
        let unread = in_doubt || unclear || class.verb == Verb::Execute;
        // A SELECT leaves it on MariaDB where it is an aggregate of no rows.
        let may_be_left = class.verb != Verb::Select || self.session.flavour == Flavour::MariaDb;
        let behind = class.statements > 1 && may_be_left && class.uses.contains(Uses::FOUND_ROWS);
        let behind = behind || front.request.says.has(Says::MAY_SET);
        // It may leave what is there. Where it is no CALL the reply tells of what its code selects, unless
        // that fails.
        let asks_first = front.asks_found_rows() || class.verb == Verb::Call;
        let may_leave = asks_first && class.uses.contains(Uses::CODE_SELECTS) || front.may_leave_found_rows();
        let wants_found = unread || behind || may_leave || class.uses.contains(Uses::CODE_FOUND_ROWS);
        let wants_count =
            unread || class.uses.contains(Uses::CODE_ROW_COUNT) || front.request.says.has(Says::COUNTS);
        // MySQL's answer to a CALL whose statements count nothing tells of the statement before it.
        let stay_here = entry.ahead.iter().all(|ahead| matches!(ahead, Ahead::Prepare(_)));
        let rows_here = if stay_here { self.last_rows } else { 0 };
        let own_rows = u64::try_from(front.answers().row_count).unwrap_or(0);
        let answers_count =
            class.verb == Verb::Call && self.session.flavour == Flavour::MySql && rows_here != own_rows;
        let wants_count = wants_count || answers_count;
        let lasting = wants_count && is_here && !(-1..=1).contains(&front.answers().row_count);
        // What is brought would take away warnings that only this server has.
        let warnings = class.uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS)
            || front.request.leaves == Leaves::Unsure;
        let only_here = front.warnings_are_on_server() && self.shows_warnings_of(Some(front));
        // Nor can FOUND_ROWS() be brought back that only this server knows.
        let found_only_here = front.found_rows_are_unknown()
            && self.found_client == front.id()
            && rewrite::asks_found_rows(class);
        let may_bring = !(warnings && only_here || found_only_here);
        let asks_found = wants_found && !found_is_here && !lasting && may_bring;
        entry.found_own = found_is_here;
        let asks_count = wants_count && (!is_here || asks_found);
        let asks = class.uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS);
        let to_bring = wants_found && !found_is_here && !lasting || wants_count && !is_here;
        let warnings_first = only_here && warnings && !asks && !found_only_here && to_bring;
        if !matches!(entry.command, Command::Query | Command::StmtExecute) {
            return Counts::default();
        }
        let found = front.answers().found_rows.filter(|rows| wants_found && *rows <= MOST_ROWS_BROUGHT);
        if !asks_found && !asks_count {
            return Counts { wanted: wants_count, nothing: false, found, warnings_first };
        }
        let answers = front.answers();
        // What counts one row has found one.
        let asks_found = asks_found || wants_found && asks_count && answers.row_count == 1 && may_bring;
        let mut select = None;
        if asks_found {
            select = answers.found_rows.filter(|rows| *rows <= MOST_ROWS_BROUGHT).map(rows_of);
        }
        if asks_count && answers.row_count == 1 && may_bring {
            select = Some(one_row_of(answers.found_rows.filter(|_| asks_found).unwrap_or(0)));
        }
        if let Some(select) = &select {
            put_query(out, select);
            let has_table = select.contains("FROM") && !select.contains("FROM DUAL");
            entry.ahead.push_back(if has_table { Ahead::Repeat(None) } else { Ahead::Rows });
            self.found_here = if asks_found { front.found_mark() } else { 0 };
            entry.found_own = asks_found && answers.found_rows.is_some();
        }
        if asks_count && answers.row_count == 0 {
            put_command(out, Command::Ping);
            entry.ahead.push_back(Ahead::Command);
        }
        let nothing = asks_count && answers.row_count == -1 && select.is_none();
        Counts { wanted: wants_count, nothing, found, warnings_first }
    }

    /// What goes ahead from `first` on would take away what only this session knows of FOUND_ROWS(): that is
    /// asked for in front of it. `selects`: so does what clears warnings.
    fn ask_found_rows_first(
        &mut self,
        entry: &mut Entry,
        front: &Front,
        selects: bool,
        first: (usize, usize),
        out: &mut Vec<u8>,
    ) {
        let only_here = self.found_client == front.id() && front.found_rows_are_on(self.server_id());
        let mysql = self.session.flavour == Flavour::MySql;
        let sets = |ahead: &Ahead| match ahead {
            Ahead::Repeat(_) | Ahead::Rows => true,
            Ahead::AskInsertId => mysql,
            Ahead::State
            | Ahead::Schema(_)
            | Ahead::Command
            | Ahead::Prepare(_)
            | Ahead::Login
            | Ahead::Reset
            | Ahead::Signal
            | Ahead::AskWarnings
            | Ahead::AskFoundRows => false,
        };
        let goes = selects || entry.ahead.iter().skip(first.0).any(sets);
        if !only_here || !goes || rewrite::asks_found_rows(&front.request.class) {
            return;
        }
        let mut question = Vec::new();
        put_query(&mut question, ASK_FOUND_ROWS);
        out.splice(first.1..first.1, question);
        entry.ahead.insert(first.0, Ahead::AskFoundRows);
        (entry.reply.asked, self.found_client) = (0, 0);
    }

    /// FOUND_ROWS() can be answered here: by a text of Weir's, or because only this session knows. False when
    /// it cannot: the request is refused.
    fn knows_found_rows(&self, entry: &mut Entry, front: &Front) -> bool {
        let asks = rewrite::asks_found_rows(&front.request.class)
            && matches!(entry.command, Command::Query | Command::StmtExecute);
        let is_here = self.found_client == front.id() && front.found_rows_are_on(self.server_id());
        if !asks || !front.found_rows_are_unknown() || is_here || front.refuses_whole(&front.request.class) {
            return true;
        }
        refuse(entry, "FOUND_ROWS() of that statement is no longer known; ask within the transaction");
        false
    }

    /// Finds the copy of the statement a command is about; returns its key when it has to be prepared
    /// first.
    pub(super) fn find_statement(
        &mut self,
        entry: &mut Entry,
        front: &mut Front,
        request: &[u8],
    ) -> Result<Option<Key>, Fault> {
        let (client, number) = (front.id(), front.request.number);
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
                    binding = Some(binding::of(payload, &execute, &statement.types, &statement.long_data));
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
        // Long data may leave an error in the statement, which nobody else must meet.
        let alone = cursor || !statement.long_data.is_empty();
        let mut key = statement.key(client, number, alone);
        if let Some(found) = answered.filter(|_| entry.command == Command::StmtExecute) {
            let Text { shape, variables, .. } = &*statement.text;
            let text = Text::new(shape.clone(), variables.clone(), found.text.into(), found.names);
            key = Key { private: Some((client, number)), ..Key::fresh(Arc::new(text)) };
            entry.answered = true;
        }
        let (mut first, mut kinds) = (None, None);
        // What was sent ahead, or the error that it has left, is in the copy it was sent to.
        if let Some(binding) = binding.filter(|_| !entry.answered && !statement.sent_ahead) {
            let is_alone = key.private.is_some();
            let example = example.as_ref().map(|(execute, payload)| (execute, *payload));
            // One that was executed like this, and one that nobody has executed.
            for _ in 0..2 {
                let executor = (client, number);
                let shared =
                    self.statements.copy_for(statement, executor, binding.clone(), is_alone, example);
                first = shared.1;
                if key.private.is_none() || shared.0.private.is_some() {
                    key = shared.0;
                }
                if !self.statements.is_of_other_kinds(&key, &statement.kinds) {
                    break;
                }
                self.statements.give_up(&key);
            }
            let reads = statement.class.only_reads();
            kinds = (!statement.kinds.is_empty()).then(|| (statement.kinds.clone(), reads));
        }
        entry.key = Some(key.clone());
        let bound = self.statements.touch(&key).map(|copy| copy.types == statement.types);
        let len = Header::read(request).map_or(0, |header| header.len + statement.types.len());
        if !has_types && bound != Some(true) && len >= frame::MAX_PAYLOAD_BYTES {
            let text = "parameters of 16 MB whose types would have to be sent again";
            return Err(Fault::new(FaultKind::NotAllowed, text));
        }
        let missing = runs && bound.is_none();
        entry.first = first.filter(|_| missing);
        entry.kinds = kinds.filter(|_| missing);
        Ok(missing.then_some(key))
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
        self.injected_prepares += 1;
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

/// The texts of the statements that may go along with a request.
fn texts_along(front: &Front, of: Unsettles) -> impl Iterator<Item = Arc<Text>> {
    let wanted = move |class: &Class| match of {
        Unsettles::All => true,
        Unsettles::OfVariables => class.uses.contains(Uses::USER_VARIABLE_READ),
    };
    let texts = front.statements.as_deref().map(|all| all.texts(wanted));
    texts.into_iter().flatten().take(limits::PREPARED_ALONG)
}

/// A SELECT of so many rows.
fn rows_of(rows: u64) -> String {
    match rows {
        0 => "SELECT 1 FROM DUAL WHERE 0".to_owned(),
        1 => "SELECT 1".to_owned(),
        _ => format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i FROM n"
        ),
    }
}

/// A SELECT that makes ROW_COUNT() 1 and FOUND_ROWS() so many, for what can be brought.
fn one_row_of(rows: u64) -> String {
    match rows {
        // On MySQL it makes that 1.
        0 => ONE_ROW.to_owned(),
        _ => {
            let all = rows_of(rows.min(MOST_ROWS_BROUGHT));
            format!("SELECT SQL_CALC_FOUND_ROWS NULL FROM ({all}) x LIMIT 1 INTO @weir")
        }
    }
}

/// The request will not run: its client gets this error when what went ahead is answered.
fn refuse(entry: &mut Entry, text: &str) {
    give_up(entry, text);
    entry.outcome.failed = true;
    entry.outcome.conditions = Some(1);
    entry.stage = if entry.ahead.is_empty() { Stage::Refused } else { Stage::Ahead };
}

/// The same: the operator refuses statements that pin for this reason.
fn refuse_pin(entry: &mut Entry, pin: Pin) {
    let text = format!(
        "This statement is refused: its client would keep the server connection beyond the transaction ({0}). \
         Weir's setting pins.{0} = error refuses it; change the setting, or connect to the database server directly",
        pin.label()
    );
    refuse(entry, "");
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

/// The text may ask which schema is the default one: DATABASE() or SCHEMA().
fn asks_for_schema(text: &[u8]) -> bool {
    let has = |word: &[u8]| text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word));
    has(b"DATABASE") || has(b"SCHEMA")
}
