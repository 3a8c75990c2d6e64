//! What the last statement has left, ahead of a request that may ask for it: warnings, ROW_COUNT() and
//! FOUND_ROWS() of its client, as far as they can be brought.
//!
//! Owns: what is sent for that. Must not know: what replies say of it (`front/last.rs`).

use super::{ASK_FOUND_ROWS, NOT_KNOWN, refuse};
use crate::back::Back;
use crate::frame;
use crate::front::{Front, Leaves};
use crate::message::Command;
use crate::queue::{Ahead, Entry};
use crate::reset::put_command;
use crate::rewrite;
use crate::says::{self, Says};
use crate::session_state::{Flavour, put_query};
use crate::warnings::{self, Kept};
use weir_sql::{Uses, Verb};

/// Clears the warnings of others on both servers (a plain `DO 0` does not on MariaDB).
const CLEAR_WARNINGS: &str = "DO (SELECT 1 FROM (SELECT 1) x)";

/// The same on MySQL, where it leaves FOUND_ROWS() as it is.
const CLEAR_BY_SET: &str = "SET @_weir_s_own_ = NULL";

/// It makes ROW_COUNT() 1.
pub(super) const ONE_ROW: &str = "SELECT NULL INTO @_weir_s_own_";

/// The same, and it clears warnings.
const ONE_ROW_CLEAR: &str = "SELECT NULL INTO @_weir_s_own_ FROM (SELECT 1) x";

/// The same, and FOUND_ROWS() 1, which on MariaDB it is not by that.
pub(super) const ONE_ROW_FOUND: &str = "SELECT SQL_CALC_FOUND_ROWS NULL INTO @_weir_s_own_";

/// It makes ROW_COUNT() -1, and leaves all else.
pub(super) const COUNTS_NOTHING: &str = "SHOW WARNINGS LIMIT 0";

/// Rows of a SELECT of Weir's that leaves FOUND_ROWS() as it is to be. Deeper recursion must be allowed by a
/// setting.
const MOST_ROWS_BROUGHT: u64 = 1000;

/// What a request has to do with ROW_COUNT().
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    /// It may ask for it.
    pub(super) wanted: bool,
    /// It is to be made -1 by what goes ahead last.
    pub(super) nothing: bool,
    /// It may ask for FOUND_ROWS(), or leave what is there.
    pub(super) wants_found: bool,
    /// What that is to be.
    pub(super) found: Option<u64>,
    /// What has to be brought would take away warnings that only this server has, and that the request may
    /// leave: they are asked for first.
    pub(super) warnings_first: bool,
}

impl Back {
    fn clear_warnings(&self) -> &'static str {
        match self.session.flavour {
            Flavour::MySql => CLEAR_BY_SET,
            Flavour::MariaDb => CLEAR_WARNINGS,
        }
    }

    /// What goes ahead leaves the warnings that are here: an option does, and on MariaDB all that has no
    /// table.
    pub(super) fn keeps_warnings(&self, entry: &Entry) -> bool {
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
    pub(super) fn bring_warnings(&mut self, entry: &mut Entry, front: &mut Front, out: &mut Vec<u8>) -> bool {
        let class = &front.request.class;
        let runs = matches!(entry.command, Command::Query | Command::StmtExecute);
        let prepares = entry.command == Command::StmtPrepare;
        let unsure = (runs || prepares) && front.request.leaves == Leaves::Unsure;
        // MariaDB takes them away itself when it opens a table.
        let clears = front.may_have_warnings()
            && front.request.leaves == Leaves::Nothing
            && self.session.flavour == Flavour::MariaDb;
        // Its answer may be in the text already.
        let is_rewritten = front.request.extra.as_deref().is_some_and(|extra| extra.text.is_some());
        let has_answer = is_rewritten && front.request.says.has(Says::ONLY_HEAD_COUNTS);
        let asks = runs && !clears && !has_answer;
        // Code begins with them on MariaDB.
        let by_code = class.uses.contains(Uses::CODE_WARNINGS) && front.traits.flavour == Flavour::MariaDb;
        let asks = asks && (by_code || class.uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS));
        let is_here = self.shows_warnings_of(Some(front));
        let is_answered = rewrite::asks_known_warnings(class)
            && front.warning_counts().is_some()
            && (entry.answered || is_rewritten);
        let last = self.keeps_warnings(entry);
        entry.had_warnings = unsure;
        if !asks && !unsure || is_here && last {
            return true;
        }
        if is_answered {
            entry.answers_warnings = true;
            return true;
        }
        let says = front.request.says;
        let counts = says.has(Says::HEAD_COUNTS) && !is_rewritten;
        let behind = class.statements > 1 && !says.has(Says::HEAD_ASKS) && !counts;
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
            // What does that else counts no rows.
            None if entry.clears => return true,
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
                let signal =
                    warnings.signal(class.uses.contains(Uses::CODE_STATES) || says.has(Says::STATES));
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
        if class.verb == Verb::Server && says.has(Says::HEAD_ASKS) {
            // RESIGNAL fails whatever is there: its error is added to what is kept here, or lost.
            entry.outcome.appended = true;
            return true;
        }
        refuse(entry, front, NOT_KNOWN);
        false
    }

    /// Code that asks for FOUND_ROWS() or ROW_COUNT() before it runs a statement of its own finds its
    /// client's, and so does a statement behind one that leaves FOUND_ROWS() as it was. More than one row
    /// that was changed cannot be brought.
    pub(super) fn bring_counts(&mut self, entry: &mut Entry, front: &Front, out: &mut Vec<u8>) -> Counts {
        let class = &front.request.class;
        let is_here = self.last_client == front.unique() && front.last_server == self.server_id();
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
        // What is brought would take away what is in store, which this text brings out.
        let is_in_store = front.has_in_store()
            && self.next_here == front.next_mark()
            && front.request.says.has(Says::CHANGES_ROWS);
        let found_is_here =
            (self.found_here == front.found_mark() || is_in_store) && entry.ahead.iter().all(leaves);
        // A table may be a view that nobody has read yet.
        let names =
            matches!(class.verb, Verb::Select | Verb::Insert | Verb::Replace | Verb::Update | Verb::Delete);
        let unread_names = names
            && !class.uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS)
            && front.knowledge.state() == 0
            && front.knowledge.last().is_some_and(|last| !last.is_blind());
        let code = unread_names || class.uses.intersects(Uses::UNKNOWN_FUNCTION | Uses::BLOCK);
        // An anonymous block asks for it by itself, and is no code of the catalogue's.
        let asks = Uses::ROW_COUNT | Uses::FOUND_ROWS | Uses::DIAGNOSTICS;
        let block = class.verb != Verb::Call && class.uses.contains(Uses::BLOCK);
        let in_doubt = !class.proven && code || block && class.uses.intersects(asks);
        let unclear = entry.whole && (class.doubtful || class.uses.contains(Uses::EXECUTABLE_COMMENT));
        let unread = in_doubt || unclear || class.verb == Verb::Execute;
        // A SELECT leaves it on MariaDB where it is an aggregate of no rows.
        let may_be_left = class.verb != Verb::Select || self.session.flavour == Flavour::MariaDb;
        let behind = class.statements > 1 && may_be_left && class.uses.contains(Uses::FOUND_ROWS);
        let behind =
            behind || front.request.says.has(Says::MAY_SET) || front.request.says.has(Says::FOUND_MOVES);
        // It may leave what is there. Where it is no CALL the reply tells of what its code selects, unless
        // that fails.
        let asks_first = front.asks_found_rows() || class.verb == Verb::Call;
        // `SELECT max(id) INTO @a` of no rows leaves it, too, and its reply does not say so.
        let into = class.verb == Verb::Select && class.uses.contains(Uses::USER_VARIABLE_WRITE);
        let leaves = class.uses.contains(Uses::CODE_SELECTS) || into && may_be_left;
        let may_leave = asks_first && leaves || front.may_leave_found_rows();
        // It is executed as it was prepared, without answers in it.
        let is_raw = entry.command == Command::StmtExecute && !entry.answered;
        let asks_raw = |what: Uses| is_raw && class.uses.intersects(what);
        let reads = asks_raw(Uses::FOUND_ROWS) || class.uses.contains(Uses::CODE_FOUND_ROWS);
        let wants_found = unread || behind || may_leave || reads;
        // One row that was counted and none that was found cannot be brought to MySQL, and the text asks what
        // was found.
        let found_alone = behind
            && self.session.flavour == Flavour::MySql
            && front.answers().row_count == 1
            && front.answers().found_rows == Some(0);
        let wants_count = unread && !found_alone
            || asks_raw(Uses::ROW_COUNT)
            || class.uses.contains(Uses::CODE_ROW_COUNT)
            || front.request.says.has(Says::COUNTS);
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
            && self.found_client == front.unique()
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
            return Counts { wanted: wants_count, nothing: false, wants_found, found, warnings_first };
        }
        let answers = front.answers();
        // What counts one row has found one.
        let asks_found = asks_found || wants_found && asks_count && answers.row_count == 1 && may_bring;
        // One row that was counted and none that was found cannot be on MySQL.
        let mysql = self.session.flavour == Flavour::MySql;
        let counts_one = asks_count && answers.row_count == 1;
        let cannot_be = mysql && counts_one && answers.found_rows == Some(0);
        let reads_found = unread || behind || reads;
        let marks = asks_found && cannot_be && class.verb == Verb::Call && !reads_found;
        let mut select = None;
        if asks_found {
            select = answers.found_rows.filter(|rows| *rows <= MOST_ROWS_BROUGHT).map(rows_of);
        }
        if counts_one && may_bring {
            let found = answers.found_rows.filter(|_| asks_found).unwrap_or(0);
            select = Some(match (marks, found) {
                (true, _) => marked_row(),
                // What is asked about are warnings, too.
                (false, 0 | 1) if asks && mysql => {
                    entry.clears = true;
                    ONE_ROW_CLEAR.to_owned()
                }
                (false, _) => one_row_of(found),
            });
        }
        if let Some(select) = &select {
            put_query(out, select);
            let has_table = select.contains("FROM") && !select.contains("FROM DUAL");
            entry.ahead.push_back(if has_table { Ahead::Repeat(None) } else { Ahead::Rows });
            let is_brought = asks_found && !cannot_be;
            self.found_here = if is_brought { front.found_mark() } else { 0 };
            entry.found_own = is_brought && answers.found_rows.is_some();
            entry.found_marked = marks && may_bring;
        }
        if asks_count && answers.row_count == 0 {
            put_command(out, Command::Ping);
            entry.ahead.push_back(Ahead::Command);
        }
        let nothing = asks_count && answers.row_count == -1 && select.is_none();
        Counts { wanted: wants_count, nothing, wants_found, found, warnings_first }
    }

    /// What goes ahead from `first` on would take away what only this session knows of FOUND_ROWS(): that is
    /// asked for in front of it. `selects`: so does what clears warnings. True where the request may ask for
    /// it or leave it: the question goes alone, and the request begins anew with the answer.
    pub(super) fn ask_found_rows_first(
        &mut self,
        entry: &mut Entry,
        front: &Front,
        selects: bool,
        counts: Counts,
        first: (usize, usize),
        out: &mut Vec<u8>,
    ) -> bool {
        let only_here = self.found_client == front.unique() && front.found_rows_are_on(self.server_id());
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
            return false;
        }
        if counts.wants_found {
            out.truncate(first.1);
            entry.ahead.truncate(first.0);
        }
        let mut question = Vec::new();
        put_query(&mut question, ASK_FOUND_ROWS);
        out.splice(first.1..first.1, question);
        entry.ahead.insert(first.0, Ahead::AskFoundRows);
        (entry.reply.asked, self.found_client) = (0, 0);
        counts.wants_found
    }

    /// FOUND_ROWS() can be answered here: by a text of Weir's, or because only this session knows. False when
    /// it cannot: the request is refused.
    pub(super) fn knows_found_rows(&self, entry: &mut Entry, front: &mut Front) -> bool {
        let class = &front.request.class;
        let by_code = class.proven && class.uses.contains(Uses::CODE_FOUND_ROWS);
        // A text that asks behind a statement which leaves it as it was.
        let finds = match class.verb {
            Verb::Select | Verb::Values => true,
            Verb::Update | Verb::Do => self.session.flavour == Flavour::MySql,
            _ => false,
        };
        let behind = class.statements > 1 && class.uses.contains(Uses::FOUND_ROWS) && !finds;
        let asks = (rewrite::asks_found_rows(class) || by_code || behind)
            && matches!(entry.command, Command::Query | Command::StmtExecute);
        let is_here = self.found_client == front.unique() && front.found_rows_are_on(self.server_id());
        if !asks || !front.found_rows_are_unknown() || is_here || front.refuses_whole(&front.request.class) {
            return true;
        }
        refuse(entry, front, "FOUND_ROWS() of that statement is no longer known; ask within the transaction");
        false
    }
}

/// A SELECT of so many rows.
pub(super) fn rows_of(rows: u64) -> String {
    match rows {
        0 => "SELECT 1 FROM DUAL WHERE 0".to_owned(),
        1 => "SELECT 1".to_owned(),
        _ => format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i FROM n"
        ),
    }
}

/// A SELECT that makes ROW_COUNT() 1, and FOUND_ROWS() Weir's mark.
fn marked_row() -> String {
    let rows = format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(30));
    format!("SELECT SQL_CALC_FOUND_ROWS NULL INTO @_weir_s_own_ FROM ({rows}) x, ({rows}) y LIMIT 1")
}

/// A SELECT that makes ROW_COUNT() 1 and FOUND_ROWS() so many, for what can be brought.
pub(super) fn one_row_of(rows: u64) -> String {
    match rows {
        // On MySQL it makes that 1.
        0 => ONE_ROW.to_owned(),
        _ => {
            let all = rows_of(rows.min(MOST_ROWS_BROUGHT));
            // MariaDB warns of INTO behind FROM.
            format!("SELECT SQL_CALC_FOUND_ROWS NULL INTO @_weir_s_own_ FROM ({all}) x LIMIT 1")
        }
    }
}
