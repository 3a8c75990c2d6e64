//! What a client may ask about its last statement: ROW_COUNT(), FOUND_ROWS(), its warnings.
//!
//! Owns: which of that is known from replies, and which only from a server. Must not know: packets.
//!
//! Found on MariaDB 10.11 and MySQL 9.7, and relied on here:
//! - ROW_COUNT() is the count of the last OK, and -1 after rows, an EOF or an error. COM_PING and COM_INIT_DB
//!   set it to 0; COM_STMT_PREPARE, COM_STMT_CLOSE, COM_STATISTICS and GET DIAGNOSTICS keep it.
//! - FOUND_ROWS() survives errors, transaction control, SET of constants, DDL and all commands, also a reset.
//!   It is the number of rows of a plain SELECT, also with LIMIT n; not with an offset, nor with LIMIT after
//!   UNION. On MySQL an UPDATE sets it to the rows it matched.
//! - MySQL discards warnings at each statement except SHOW WARNINGS, SHOW ERRORS and GET DIAGNOSTICS. MariaDB
//!   keeps them over statements that neither use a table nor warn.
//! - On MySQL the OK of COM_PING and COM_INIT_DB counts the warnings added since the last text or
//!   COM_STMT_PREPARE, EXECUTE, FETCH, RESET or COM_FIELD_LIST began, even if SHOW WARNINGS still shows more;
//!   after SHOW WARNINGS it is 0. On MariaDB it is 0.

use super::finish::{NO_SUCH_ROUTINE, runs_code};
use super::found::{self, Found};
use super::{Front, Leaves, Outcome, ROWS_FRESH, ROWS_MARKED, ROWS_UNKNOWN, ROWS_UNLESS, Request};
use crate::frame::HEADER_BYTES;
use crate::message::{Capabilities, Command, status};
use crate::says::{self, Says, Shows, Skipped};
use crate::session_state::{Flavour, Slot};
use crate::warnings::{Kept, Warnings};
use crate::words::Words;
use weir_sql::{Class, Locks, Uses, Verb};
use weir_wire::Pin;

/// Calls a function that is not built in.
fn calls(class: &Class) -> bool {
    class.uses.intersects(Uses::UNKNOWN_FUNCTION | Uses::USER_FUNCTION)
}

/// It draws from a sequence or asks for one, which is a table.
fn opens_a_sequence(class: &Class) -> bool {
    class.uses.intersects(Uses::NEXTVAL | Uses::SETVAL | Uses::LASTVAL | Uses::CURRVAL)
}

/// What it warns of may be of SIGNAL, with any SQLSTATE.
fn may_raise(class: &Class) -> bool {
    let unread = class.doubtful || !class.proven;
    unread
        || runs_code(class)
        || class.uses.intersects(Uses::RAISES | Uses::SQL_PREPARE | Uses::EXECUTABLE_COMMENT)
}

/// It neither opens a table nor has rows.
pub(crate) fn opens_nothing(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::Begin
            | Verb::Commit
            | Verb::Rollback
            | Verb::Savepoint
            | Verb::Release
            | Verb::RollbackTo
            | Verb::Use
            | Verb::Unlock
    )
}

/// The text was one statement, without a comment behind it that had an OK of its own.
fn is_alone(class: &Class, outcome: &Outcome) -> bool {
    class.statements == 1 && outcome.results <= 1
}

/// ROW_COUNT() is behind this command what it was.
fn leaves_row_count(command: Command) -> bool {
    matches!(
        command,
        Command::StmtPrepare | Command::Statistics | Command::StmtClose | Command::StmtSendLongData
    )
}

/// What COM_CHANGE_USER leaves of FOUND_ROWS().
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundLeft {
    rows: u64,
    times: [u32; 2],
}

impl Request {
    /// The place among the statements of a text of the first of those GET DIAGNOSTICS that end it.
    pub(crate) fn first_of_gets(&self) -> Option<u32> {
        let ends = self.class.statements > 1 && self.says.has(Says::ENDS_WITH_GET);
        ends.then(|| self.class.statements.saturating_sub(self.says.gets()))
    }

    /// The session counts the same rows behind it as before, whosever they were.
    pub(crate) fn leaves_rows(&self, outcome: &Outcome, flavour: Flavour) -> bool {
        let only_gets = is_alone(&self.class, outcome) || self.first_of_gets() == Some(0);
        let gets = self.command == Command::Query && self.class.verb == Verb::Get && only_gets;
        !outcome.failed && (gets || leaves_row_count(self.command)) || looks_in_vain(self, outcome, flavour)
    }
}

impl Front {
    /// The reply to a command that runs no text is done.
    pub(super) fn finish_command(&mut self, request: &Request, outcome: &Outcome, server: u64) {
        let command = request.command;
        let ran_there = self.ran_there;
        self.has_run();
        if outcome.failed || !leaves_row_count(command) {
            self.row_count = row_count(outcome);
        } else {
            // What it counts there is what it counted before.
            self.ran_there = ran_there;
        }
        self.conditions = match command {
            // They leave the conditions of the last statement, and add their own.
            Command::Ping
            | Command::InitDb
            | Command::Statistics
            | Command::StmtClose
            | Command::StmtSendLongData => {
                self.conditions.map(|n| n.saturating_add(u16::from(outcome.failed)))
            }
            _ => outcome.conditions,
        };
        if outcome.appended {
            // See `append_error`.
        } else if outcome.failed || outcome.warnings > 0 {
            self.warn_on_server(false);
            self.last_server = server;
        } else if command == Command::StmtPrepare && request.leaves == Leaves::Unsure {
            self.finish_unsure(outcome);
            self.last_server = server;
        } else if command == Command::StmtPrepare && request.leaves == Leaves::Nothing {
            self.last_result = false;
            self.warnings = None;
            self.last_server = server;
        } else if command == Command::InitDb && matches!(self.warnings(), Some(Kept::Read(..))) {
            // It would be another read now.
            self.keep_warnings(Kept::Lost);
        }
    }

    /// What the next statement may ask about this one. True when only this server knows FOUND_ROWS() now.
    pub(super) fn finish_last(&mut self, request: &Request, outcome: &Outcome, server: u64) -> bool {
        let class = &request.class;
        self.has_run();
        self.last_server = server;
        self.conditions = outcome.conditions;
        let gets = class.verb == Verb::Get && is_alone(class, outcome);
        let ends_with_get = class.statements > 1 && request.says.has(Says::ENDS_WITH_GET) && !outcome.failed;
        if gets && outcome.warnings > 0 || ends_with_get && outcome.got_nothing {
            // There was no such condition.
            self.row_count = -1;
        } else if ends_with_get && request.first_of_gets() == Some(0)
            || looks_in_vain(request, outcome, self.traits.flavour)
        {
            // What it was.
        } else if ends_with_get {
            self.row_count = rows_counted(outcome.affected_before);
        } else if !gets || outcome.failed {
            self.row_count = row_count(outcome);
        }
        self.found_did = 0;
        let found = self.found_rows_after(request, outcome);
        let found = self.settle_found_rows(request, outcome, found);
        if !matches!(found, Found::Kept) {
            self.found_did |= found::CHANGED;
            self.found_times[0] = self.found_times[0].wrapping_add(1);
        }
        let mariadb = self.traits.flavour == Flavour::MariaDb;
        let may_keep = !outcome.found_own && may_keep_found_rows(class, outcome, mariadb);
        match found {
            Found::Kept => {}
            Found::Known(rows) => self.found_rows = rows,
            Found::OnServer => {
                self.found_rows = match outcome.found_marked {
                    true => ROWS_MARKED | ROWS_UNLESS,
                    false if may_keep => self.found_rows | ROWS_UNLESS,
                    false => ROWS_UNKNOWN,
                };
                self.found_server = server;
            }
            Found::Lost => {
                self.found_rows = ROWS_UNKNOWN;
                self.found_server = 0;
            }
        }
        // On MariaDB the last of several statements leaves the warnings of those before it, unless it uses a
        // table.
        // On MySQL one that asks for warnings leaves them, too.
        let leaves_earlier = mariadb || class.uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS);
        if outcome.appended {
            // See `append_error`.
        } else if outcome.failed || outcome.warnings > 0 || leaves_earlier && outcome.warned {
            self.warn_on_server(may_raise(class));
        } else if request.leaves == Leaves::Nothing {
            self.last_result = false;
            self.warnings = None;
        } else if request.leaves == Leaves::Unsure {
            self.raised = self.raised && outcome.marked || may_raise(class);
            self.finish_unsure(outcome);
        } else if matches!(class.verb, Verb::Use | Verb::Set) {
            match self.warnings.as_deref_mut() {
                // It would be another read now.
                Some(Kept::Read(..)) => self.keep_warnings(Kept::Lost),
                Some(Kept::Answer(kept)) if class.verb == Verb::Set => {
                    kept.is_shown_otherwise(&self.state, self.traits.flavour);
                }
                Some(Kept::Answer(_) | Kept::Lost) | None => {}
            }
        }
        matches!(found, Found::OnServer)
    }

    /// The last statement has left warnings on its server. `raised`: code of users may have.
    fn warn_on_server(&mut self, raised: bool) {
        (self.last_result, self.warnings, self.raised) = (true, None, raised);
    }

    /// Only the server knows whether warnings of the statement before are still there.
    fn finish_unsure(&mut self, outcome: &Outcome) {
        match (outcome.had_warnings, outcome.marked) {
            // The mark tells whether they are still there.
            (true, true) => {}
            (true, false) => (self.last_result, self.warnings) = (true, None),
            (false, _) => self.keep_warnings(Kept::Lost),
        }
    }

    /// Weir has answered in a server's place, with an OK or with an error: what a server's answer would have
    /// done. Warnings stay as they are, wherever they are.
    pub(super) fn answered_here(&mut self, row_count: i64) {
        self.has_run();
        self.row_count = row_count;
        self.conditions = Some(0);
        self.ran_there = false;
    }

    /// The first command is over. On MariaDB it sets FOUND_ROWS() to 1.
    fn has_run(&mut self) {
        self.ran_there = true;
        if self.found_rows == ROWS_FRESH {
            self.found_rows = u64::from(self.traits.flavour == Flavour::MariaDb);
        }
    }

    fn found_rows_after(&self, request: &Request, outcome: &Outcome) -> Found {
        let class = &request.class;
        let mysql = self.traits.flavour == Flavour::MySql;
        let unseen = Uses::BLOCK | Uses::EXECUTABLE_COMMENT | Uses::CALC_FOUND_ROWS;
        let single = class.statements == 1 && !class.doubtful && !class.uses.intersects(unseen);
        let has_rows = outcome.affected_rows.is_none();
        let told = outcome.matched_rows.map_or(Found::OnServer, Found::Known);
        match class.verb {
            // There is no such procedure. What returns no rows has hardly selected any; a routine may.
            Verb::Call
                if class.statements == 1
                    && !class.doubtful
                    && outcome.results == 0
                    && outcome.error == NO_SUCH_ROUTINE =>
            {
                Found::Kept
            }
            // A comment behind it has an OK of its own.
            _ if single && class.first_end != 0 && outcome.results == 2 && finds_nothing(request, mysql) => {
                Found::Kept
            }
            // So did what stands behind a single one.
            _ if class.statements <= 1 && outcome.results > 1 => Found::OnServer,
            _ if class.statements > 1 => {
                let plain = class.verb != Verb::Call && !class.skips_rows && !class.uses.intersects(unseen);
                let [may_set, selects, ends] =
                    [Says::MAY_SET, Says::SELECTS, Says::ENDS_WITH_SELECT].map(|it| request.says.has(it));
                if !may_set && !selects {
                    // Rows of RETURNING do not count.
                    return Found::Kept;
                }
                // One of them failed that stands before all that set it, or the first that would.
                let finder = if may_set { 0 } else { request.says.finder() };
                let read_some = outcome.broke_off && !mysql;
                let unsure = read_some || may_set && class.doubtful;
                if outcome.failed && !unsure && outcome.results <= finder {
                    return Found::Kept;
                }
                match ends && has_rows && !outcome.failed && plain && !class.doubtful {
                    true => Found::Known(outcome.rows),
                    false => Found::OnServer,
                }
            }
            _ if class.doubtful || class.uses.contains(Uses::EXECUTABLE_COMMENT) => Found::OnServer,
            _ if !(single
                || outcome.had_rows
                || calls_what_selects(class)
                || mysql && class.verb == Verb::Update) =>
            {
                Found::Kept
            }
            _ if !single => Found::OnServer,
            _ if outcome.broke_off && !mysql => Found::OnServer,
            _ if outcome.failed && !mysql && self.may_leave(request) => Found::OnServer,
            // MariaDB counts what the subquery of a SELECT has found in which another part fails.
            Verb::Select
                if outcome.failed
                    && !mysql
                    && class.uses.contains(Uses::SUBQUERY)
                    && !found::READ_NOTHING.contains(&outcome.error) =>
            {
                Found::OnServer
            }
            // Its rows are still to come.
            _ if self.status & status::CURSOR_EXISTS != 0 => Found::OnServer,
            _ if outcome.failed => Found::Kept,
            // Of UNION and its like MariaDB finds all rows, whatever sql_select_limit says.
            Verb::Select if !mysql && self.state.setting(Slot::SelectLimit).is_some() => Found::OnServer,
            Verb::Select if has_rows && !class.skips_rows && request.skipped == Skipped::Unsaid => {
                Found::Known(outcome.rows)
            }
            Verb::Select if has_rows && outcome.rows > 0 => match request.skipped {
                Skipped::Known(offset) => Found::Known(outcome.rows.saturating_add(offset.into())),
                Skipped::Unsaid | Skipped::Parameter { .. } | Skipped::Other => Found::OnServer,
            },
            // MariaDB finds none where there is no table.
            Verb::Select if !has_rows && !mysql => Found::OnServer,
            Verb::Select if !has_rows && !class.skips_rows => {
                outcome.affected_rows.map_or(Found::Kept, Found::Known)
            }
            Verb::Values if !mysql => Found::Kept,
            Verb::Values if !class.skips_rows => Found::Known(outcome.rows),
            Verb::Show | Verb::Explain => match request.shows {
                Shows::Rows => Found::Known(outcome.rows),
                Shows::Nothing | Shows::Stored => Found::Kept,
                Shows::Other => Found::OnServer,
            },
            // Of several tables it may tell others than it matched.
            Verb::Update if mysql && request.skipped == Skipped::Other => Found::OnServer,
            // Where nothing can match (`WHERE id <= NULL`, `AND 1 = 0`), the server does not look.
            Verb::Update if mysql && outcome.matched_rows == Some(0) => Found::OnServer,
            Verb::Update if mysql => told,
            Verb::Insert | Verb::Replace if class.skips_rows && !mysql => Found::OnServer,
            Verb::Insert | Verb::Replace if class.skips_rows => told,
            Verb::Set if mysql => Found::Kept,
            Verb::Insert | Verb::Replace | Verb::Update | Verb::Delete | Verb::Set | Verb::Do
                if request.skipped == Skipped::Other =>
            {
                Found::OnServer
            }
            Verb::Create if request.skipped == Skipped::Other && outcome.matched_rows.is_some() && !mysql => {
                Found::OnServer
            }
            // LOAD INDEX INTO CACHE; XA RECOVER.
            Verb::Load if !class.uses.contains(Uses::LOAD) => Found::Kept,
            Verb::Xa => Found::Kept,
            Verb::Maintain => Found::OnServer,
            Verb::Do if mysql => Found::Known(1),
            Verb::Begin
            | Verb::Commit
            | Verb::Rollback
            | Verb::Savepoint
            | Verb::Release
            | Verb::RollbackTo
            | Verb::Handler
            | Verb::Use
            | Verb::Create
            | Verb::Alter
            | Verb::Drop
            | Verb::Truncate
            | Verb::Lock
            | Verb::Unlock
            | Verb::Get
            | Verb::Prepare
            | Verb::Deallocate
            | Verb::Server
            | Verb::Insert
            | Verb::Replace
            | Verb::Update
            | Verb::Delete
            | Verb::Do
            | Verb::Set
            | Verb::Empty => Found::Kept,
            _ if !outcome.had_rows => Found::Kept,
            _ => Found::OnServer,
        }
    }

    /// What a SELECT leaves out of FOUND_ROWS() by its LIMIT. `Unsaid` where it has none that matters.
    pub(super) fn skipped(&self, class: &Class, text: &[u8]) -> Skipped {
        if found::changes(class.verb) && class.statements == 1 && says::selects(class, text) {
            return Skipped::Other;
        }
        let single = class.verb == Verb::Select && class.statements == 1;
        if single && class.skips_rows {
            says::skipped(text, self.traits.flavour)
        } else if single && text.trim_ascii_start().first() == Some(&b'(') && says::limits(text) {
            // What stands in the parentheses may have an offset.
            Skipped::Other
        } else if single && self.asks_found_rows && self.aggregates(text) {
            Skipped::Other
        } else {
            Skipped::Unsaid
        }
    }

    /// MariaDB leaves FOUND_ROWS() as it was where it makes an aggregate of no rows without reading a table,
    /// and does not say so.
    fn aggregates(&self, text: &[u8]) -> bool {
        self.traits.flavour == Flavour::MariaDb && says::aggregates(text)
    }

    /// The last text may have changed it.
    pub(crate) fn found_rows_changed(&self) -> bool {
        self.found_did & found::CHANGED != 0
    }

    /// This client uses FOUND_ROWS().
    pub(crate) fn asks_found_rows(&self) -> bool {
        self.asks_found_rows
    }

    /// What its server gives for FOUND_ROWS() may be Weir's mark.
    pub(crate) fn found_rows_may_be_marked(&self) -> bool {
        self.found_rows == ROWS_MARKED | ROWS_UNLESS
    }

    /// FOUND_ROWS() is known by this server only.
    pub(crate) fn found_rows_are_on(&self, server: u64) -> bool {
        self.found_rows_are_unknown() && self.found_server == server
    }

    /// FOUND_ROWS() cannot be answered by a text of Weir's.
    pub(crate) fn found_rows_are_unknown(&self) -> bool {
        self.found_rows & ROWS_UNLESS != 0 && self.found_rows != ROWS_FRESH
    }

    /// What FOUND_ROWS() gives behind COM_CHANGE_USER; [`ROWS_UNKNOWN`] when only a server knows, which its
    /// client is about to leave.
    pub(crate) fn found_rows_left(&self) -> FoundLeft {
        let rows = match self.found_rows {
            ROWS_FRESH => u64::from(self.traits.flavour == Flavour::MariaDb),
            _ if self.found_rows_are_unknown() => ROWS_UNKNOWN,
            rows => rows,
        };
        FoundLeft { rows, times: self.found_times.map(|times| times.wrapping_add(1)) }
    }

    /// The same, of the session before.
    pub(crate) fn take_found_rows(&mut self, left: FoundLeft) {
        (self.found_rows, self.found_times) = (left.rows, left.times);
    }

    /// A server has said what FOUND_ROWS() is.
    pub(crate) fn keep_found_rows(&mut self, rows: u64) {
        if self.found_rows_may_be_marked() {
            self.found_rows = if rows == found::MARK { 0 } else { rows };
            return;
        }
        // More cannot have been found; see `may_keep_found_rows`.
        let most = u64::from(self.traits.flavour == Flavour::MariaDb);
        let is_own = rows <= most || !self.found_rows_are_unknown() || self.found_rows == ROWS_UNKNOWN;
        self.found_rows = if is_own { rows & !ROWS_UNLESS } else { self.found_rows & !ROWS_UNLESS };
    }

    /// Warnings of the last statement altogether, and errors among them; `None` when only a server knows.
    pub(crate) fn warning_counts(&self) -> Option<(u64, u64)> {
        match self.warnings() {
            None => (!self.last_result).then_some((0, 0)),
            Some(Kept::Answer(warnings)) => Some(warnings.counts()),
            Some(Kept::Read(..) | Kept::Lost) => None,
        }
    }

    /// The number of warnings in the OK of a command that leaves them as they are; `None` when only a server
    /// knows.
    pub(crate) fn remaining_warnings(&self) -> Option<u16> {
        match self.traits.flavour {
            Flavour::MySql => self.conditions,
            Flavour::MariaDb => Some(0),
        }
    }

    /// An error that Weir answers to a command stands behind warnings that only its server has, so that
    /// server has to say it.
    pub(super) fn adds_to_warnings_elsewhere(&self) -> bool {
        self.last_result && self.traits.flavour == Flavour::MySql
    }

    /// A server has said it.
    pub(crate) fn keep_conditions(&mut self, conditions: u16) {
        self.conditions = Some(conditions);
    }

    /// The error that Weir has written behind `mark`, in a server's place, is what SHOW WARNINGS shows.
    pub(super) fn answered_by_error(&mut self, out: &[u8], mark: usize) {
        self.answered_here(-1);
        self.conditions = Some(1);
        if let Some(payload) = out.get(mark + HEADER_BYTES..) {
            // MySQL adds it to the warnings that are there.
            let has_some = matches!(self.warnings(), Some(Kept::Answer(kept)) if kept.counts().0 > 0);
            match has_some && self.traits.flavour == Flavour::MySql {
                true => self.append_error(payload),
                false => self.keep_error_alone(payload),
            }
        }
    }

    /// The last statement left warnings: what of them is kept here.
    pub(crate) fn warnings(&self) -> Option<&Kept> {
        self.warnings.as_deref()
    }

    /// The last statement left warnings, which only its server knows.
    pub(crate) fn warnings_are_on_server(&self) -> bool {
        self.last_result
    }

    /// Nothing but the warnings of its last statement keeps a server with this client.
    pub(crate) fn only_warnings_pin(&self) -> bool {
        let mut others = self.lasting_pins();
        others.remove(Pin::LastResult);
        self.last_result && others.is_empty()
    }

    /// A server has added this error to the warnings that are there, and others' requests stand behind it.
    pub(crate) fn append_error(&mut self, payload: &[u8]) {
        match self.warnings.as_deref_mut() {
            Some(Kept::Answer(warnings)) if warnings.counts().0 > 0 => {
                warnings.add_error(payload, &self.state);
                self.last_result = false;
            }
            // With what it was added to.
            Some(Kept::Lost) => self.last_result = false,
            Some(Kept::Answer(_) | Kept::Read(..)) | None => self.keep_error_alone(payload),
        }
    }

    fn keep_error_alone(&mut self, payload: &[u8]) {
        let extended = self.capabilities.has(Capabilities::EXTENDED_METADATA);
        self.keep_warnings(Kept::Answer(Warnings::of_error(payload, self.traits.flavour, extended)));
    }

    /// A statement has taken them away that no server has run.
    pub(super) fn forget_warnings(&mut self) {
        self.last_server = 0;
        self.last_result = false;
        self.warnings = None;
        self.conditions = Some(0);
    }

    /// The warnings of the last statement are here now; the server may go.
    pub(crate) fn keep_warnings(&mut self, mut warnings: Kept) {
        self.last_result = false;
        if let Kept::Answer(kept) = &mut warnings
            && !self.raised
        {
            kept.are_of_server(self.traits.flavour);
        }
        let is_none = matches!(&warnings, Kept::Answer(kept) if kept.counts().0 == 0);
        if is_none && self.traits.flavour == Flavour::MariaDb {
            // None are there, as where the last statement has left none.
            self.warnings = None;
            return;
        }
        self.warnings = Some(Box::new(warnings));
        self.conditions.get_or_insert(1);
    }

    /// What preparing this text makes of the warnings of the statement before it.
    pub(super) fn preparing_leaves(&self, class: &Class, text: &[u8]) -> Leaves {
        let writes =
            matches!(class.verb, Verb::Insert | Verb::Replace | Verb::Update | Verb::Delete | Verb::Load);
        let opens = writes
            || class.verb == Verb::Explain && opens_a_table_to_explain(text)
            || opens_a_sequence(class)
            || says::names_a_table(text);
        let may_open =
            matches!(class.verb, Verb::Maintain | Verb::Lock | Verb::Flush | Verb::Handler | Verb::Backup)
                || class.verb == Verb::Show && !class.uses.contains(Uses::WARNINGS);
        // MariaDB takes them away when it opens a table, that of functions too.
        match self.traits.flavour {
            Flavour::MariaDb if self.may_have_warnings() && (calls(class) || class.ddl || may_open) => {
                Leaves::Unsure
            }
            Flavour::MariaDb if !opens => Leaves::All,
            Flavour::MariaDb | Flavour::MySql => Leaves::Nothing,
        }
    }

    /// What this text makes of the warnings of the statement before it, unless it warns itself.
    pub(super) fn leaves(&self, class: &Class, text: &[u8]) -> Leaves {
        if !self.may_have_warnings() {
            return Leaves::Nothing;
        }
        let single = class.statements == 1 && !class.doubtful;
        let asks = match class.verb {
            Verb::Get => true,
            verb => verb == Verb::Show && class.uses.contains(Uses::WARNINGS),
        };
        match (class.verb, self.traits.flavour) {
            // Where they run several statements, a comment behind it is one, which takes them away on MySQL.
            (_, flavour)
                if single
                    && asks
                    && (flavour == Flavour::MariaDb
                        || !self.state.multi_statements
                        || says::is_all_of(class, text)) =>
            {
                Leaves::All
            }
            (Verb::Get | Verb::Show, Flavour::MySql)
                if class.statements > 1 && !class.doubtful && says::only_asks(text) =>
            {
                Leaves::All
            }
            (_, Flavour::MySql) => Leaves::Nothing,
            // On MariaDB what opens a table takes them away, and only that.
            (Verb::Insert | Verb::Replace | Verb::Update | Verb::Delete | Verb::Load, Flavour::MariaDb)
                if single =>
            {
                Leaves::Nothing
            }
            (verb, Flavour::MariaDb) if single && (opens_nothing(verb) || verb == Verb::Deallocate) => {
                Leaves::All
            }
            (Verb::Create | Verb::Alter, Flavour::MariaDb) if single && says::is_about_a_schema(text) => {
                Leaves::All
            }
            (Verb::Select | Verb::Values | Verb::Do | Verb::Set | Verb::Explain, Flavour::MariaDb)
                if single && !class.uses.contains(Uses::EXECUTABLE_COMMENT) =>
            {
                // What code draws from is opened by the code.
                let opens = opens_a_sequence(class) && !calls(class);
                let explains = class.verb == Verb::Explain && opens_a_table_to_explain(text);
                if opens || explains || says::names_a_table(text) {
                    Leaves::Nothing
                } else if calls(class) || class.takes.contains(Locks::NAMED) {
                    // One in vain is an error inside, which takes them away.
                    Leaves::Unsure
                } else {
                    Leaves::All
                }
            }
            (Verb::Show, Flavour::MariaDb) if opens_a_table_to_show(class, text) => Leaves::Nothing,
            (_, Flavour::MariaDb) if head_opens_a_table(class, text) => Leaves::Nothing,
            (_, Flavour::MariaDb) => Leaves::Unsure,
        }
    }
}

/// MariaDB: one of several statements uses a table, and those before it ask for nothing. What the statement
/// before the text has left is gone then, whatever follows.
fn head_opens_a_table(class: &Class, text: &[u8]) -> bool {
    let is_read = class.statements > 1 && !class.doubtful && !class.uses.contains(Uses::EXECUTABLE_COMMENT);
    is_read && says::head_opens_a_table(text)
}

/// MariaDB: EXPLAIN of a table, or of what writes.
fn opens_a_table_to_explain(text: &[u8]) -> bool {
    says::describes_a_table(text) || says::explains_a_write(text)
}

/// MariaDB: SHOW, be it the first of several statements, makes a table of what it shows.
fn opens_a_table_to_show(class: &Class, text: &[u8]) -> bool {
    let is_read = !class.doubtful && !class.uses.contains(Uses::EXECUTABLE_COMMENT);
    is_read && says::shows_a_table(Words::new(text).skip(1))
}

/// MariaDB: SHOW or DESCRIBE looked for a table or a schema in vain, having opened the one in which it puts
/// what it finds: ROW_COUNT() is what it was.
fn looks_in_vain(request: &Request, outcome: &Outcome, flavour: Flavour) -> bool {
    /// ER_DBACCESS_DENIED_ERROR, ER_BAD_DB_ERROR, ER_NO_SUCH_TABLE.
    const IN_VAIN: [u16; 3] = [1044, 1049, 1146];
    flavour == Flavour::MariaDb
        && outcome.failed
        && outcome.results == 0
        && request.shows == Shows::Rows
        && matches!(request.class.verb, Verb::Show | Verb::Explain)
        && IN_VAIN.contains(&outcome.error)
}

/// It leaves FOUND_ROWS() as it was, whatever came of it.
fn finds_nothing(request: &Request, mysql: bool) -> bool {
    match request.class.verb {
        Verb::Show => request.shows == Shows::Nothing,
        Verb::Insert | Verb::Replace | Verb::Delete | Verb::Set | Verb::Create => {
            request.skipped != Skipped::Other && !request.class.skips_rows
        }
        Verb::Update | Verb::Do => !mysql && request.skipped != Skipped::Other,
        Verb::Alter | Verb::Drop | Verb::Truncate | Verb::Lock | Verb::Get | Verb::Deallocate => true,
        verb => opens_nothing(verb),
    }
}

/// It found none, or one on MariaDB, or did not look and left what FOUND_ROWS() gave before: an UPDATE of
/// MySQL's where nothing can match (`WHERE id <= NULL`), an aggregate of no rows into variables on MariaDB.
fn may_keep_found_rows(class: &Class, outcome: &Outcome, mariadb: bool) -> bool {
    let may = match class.verb {
        Verb::Update => !mariadb && outcome.matched_rows == Some(0),
        Verb::Select => mariadb && outcome.affected_rows.is_some_and(|rows| rows <= 1),
        _ => false,
    };
    may && is_alone(class, outcome)
}

/// It calls a routine that selects something, or nobody knows what it does.
fn calls_what_selects(class: &Class) -> bool {
    let unread = !class.proven || class.pins.contains(Pin::Code);
    class.verb == Verb::Call && (unread || class.uses.contains(Uses::CODE_SELECTS))
}

/// What ROW_COUNT() gives behind it.
fn row_count(outcome: &Outcome) -> i64 {
    rows_counted(outcome.affected_rows.filter(|_| !outcome.failed))
}

/// The same behind an OK that says so; `None`: behind anything else.
fn rows_counted(affected_rows: Option<u64>) -> i64 {
    match affected_rows {
        // A number of 64 bits without a sign is shown as one with a sign, as by a server.
        Some(rows) => rows.cast_signed(),
        None => -1,
    }
}
