//! The value of FOUND_ROWS() after a statement, where the reply alone does not determine it.
//!
//! Owns: which statements may set or keep it, and the value that MySQL holds back for a later statement. Must
//! not know: packets, servers.
//!
//! Found on MariaDB 10.11 and MySQL 9.7, and relied on here:
//! - MariaDB: other statements that select (a subquery in SET, INSERT ... SELECT) set it, but not where the
//!   rows are known without reading a table. An aggregate of no rows leaves it as it was.
//! - MySQL: SET with a subquery and CREATE TABLE ... SELECT keep it. The number of rows that they found
//!   appears after the next statement that changes rows (INSERT, REPLACE, DELETE, LOAD DATA) or CALL, as does
//!   the number found by subqueries of a failed statement and by a failed UPDATE that found its table. A
//!   statement that selects replaces both with its own rows. EXPLAIN of a statement without a subquery
//!   returns it, too, and sets nothing.

use super::{Front, Outcome, Request};
use crate::says::{Says, Shows, Skipped};
use crate::session_state::Flavour;
use weir_sql::{Class, Uses, Verb};

/// Errors of a statement that did not come to reading rows: ER_BAD_FIELD_ERROR, ER_PARSE_ERROR,
/// ER_NO_SUCH_TABLE, ER_UNKNOWN_STMT_HANDLER, ER_SP_DOES_NOT_EXIST.
pub(super) const READ_NOTHING: [u16; 5] = [1054, 1064, 1146, 1243, 1305];

/// MySQL: so many rows stand for none ahead of code that is to find one row counted and none found, which
/// together nothing leaves that Weir may run. Code that finds just as many itself is taken for code that
/// finds nothing. It is the square of what `marked_row` (`dispatch/last.rs`) selects from twice.
pub(crate) const MARK: u64 = 961;

/// `Front::found_did`: FOUND_ROWS() may be another.
pub(super) const CHANGED: u8 = 1;
/// The same: something else is in store for it.
pub(super) const STORED: u8 = 2;

/// What a statement makes of FOUND_ROWS().
pub(super) enum Found {
    /// What it was.
    Kept,
    Known(u64),
    /// Only its server knows.
    OnServer,
    /// Nobody knows.
    Lost,
}

/// MySQL: what FOUND_ROWS() gives behind the next statement that changes rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// What it gives now.
    Same,
    Rows(u32),
    /// Its server knows, if it has run nothing else since.
    Unknown,
    /// Nobody knows: a statement failed, perhaps before its subqueries found anything, on a server whose
    /// FOUND_ROWS() was not this client's. Where they found nothing MySQL gives what it gave before.
    Lost,
}

/// It changes something, and may select rows besides.
pub(super) fn changes(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::Insert | Verb::Replace | Verb::Update | Verb::Delete | Verb::Set | Verb::Do | Verb::Create
    )
}

impl Front {
    /// The request under way may set FOUND_ROWS() or leave it, and its reply will not say: what is there is
    /// to be this client's.
    pub(crate) fn may_leave_found_rows(&self) -> bool {
        !self.found_rows_are_to_change() && self.may_leave(&self.request)
    }

    pub(super) fn may_leave(&self, request: &Request) -> bool {
        let verb = request.class.verb;
        let mysql = self.traits.flavour == Flavour::MySql;
        let sets = mysql && !flushes(verb);
        let sets_rows = mysql || request.class.skips_rows;
        let may = match verb {
            Verb::Explain | Verb::Show => request.shows == Shows::Other,
            Verb::Maintain => true,
            // Those who never ask pay nothing for it.
            Verb::Select => self.asks_found_rows && request.skipped == Skipped::Other && !sets_rows,
            _ => request.skipped == Skipped::Other && changes(verb) && !sets,
        };
        request.class.statements == 1 && may
    }

    /// MySQL: the server has something else in store for FOUND_ROWS() than it gives.
    pub(crate) fn found_rows_are_to_change(&self) -> bool {
        self.found_next != Next::Same
    }

    /// What a server remembers of a client that has left its FOUND_ROWS() there: whose they are, and which of
    /// all that it had. They are something else now when the client has found others elsewhere.
    pub(crate) fn found_mark(&self) -> u128 {
        u128::from(self.id.unique()) << 32 | u128::from(self.found_times[0])
    }

    /// The same of what is in store.
    pub(crate) fn next_mark(&self) -> u128 {
        u128::from(self.id.unique()) << 32 | u128::from(self.found_times[1])
    }

    /// Something is in store.
    pub(crate) fn has_in_store(&self) -> bool {
        self.found_next != Next::Same
    }

    /// What Weir sets behind a reset has a subquery: MySQL stores its rows. What its server alone gives is
    /// another one then behind the next statement that changes rows.
    pub(crate) fn note_rows_stored_by_reset(&mut self) {
        if self.traits.flavour == Flavour::MySql && self.found_rows_are_unknown() {
            self.found_next = Next::Lost;
        }
    }

    /// The last statement has put it there.
    pub(crate) fn has_stored_found_rows(&self) -> bool {
        self.found_did & STORED != 0
    }

    /// What of FOUND_ROWS() is known behind the statement, and what is in store. `found`: what its reply
    /// says.
    pub(super) fn settle_found_rows(&mut self, request: &Request, outcome: &Outcome, found: Found) -> Found {
        let before = self.found_next;
        let is_own = if before == Next::Same { outcome.found_own } else { outcome.next_own };
        let found = match found {
            Found::OnServer if !is_own && (self.may_leave(request) || may_select(request, outcome)) => {
                Found::Lost
            }
            Found::Kept | Found::Known(_) | Found::OnServer | Found::Lost => found,
        };
        if self.traits.flavour == Flavour::MariaDb {
            return found;
        }
        // What has stood where the KILL is counts a row of its own.
        let stood_in = request.extra.as_deref().is_some_and(|extra| extra.kill_behind.is_some());
        let found = if stood_in && !outcome.failed { Found::Lost } else { found };
        let next = in_store(request, outcome, &found);
        // A failed UPDATE says 0 by itself.
        let is_lost = outcome.failed && !outcome.found_own && request.class.verb != Verb::Update;
        let next = if is_lost { next.map(|_| Next::Lost) } else { next };
        if next.is_some() {
            self.found_did |= STORED;
            self.found_times[1] = self.found_times[1].wrapping_add(1);
        }
        let is_single = is_single(&request.class);
        let flushes = match is_single {
            true => !outcome.failed && (flushes(request.class.verb) || request.shows == Shows::Stored),
            false => request.class.doubtful || request.says.has(Says::CHANGES_ROWS),
        };
        if !matches!(found, Found::Kept) {
            self.found_next = next.unwrap_or(Next::Same);
            return found;
        }
        if flushes {
            self.found_next = Next::Same;
        }
        if let Some(next) = next {
            self.found_next = next;
        }
        match before {
            Next::Rows(rows) if flushes && is_single => Found::Known(rows.into()),
            Next::Rows(_) | Next::Unknown if flushes && is_own => Found::OnServer,
            Next::Rows(_) | Next::Unknown | Next::Lost if flushes => Found::Lost,
            Next::Same | Next::Rows(_) | Next::Unknown | Next::Lost => Found::Kept,
        }
    }
}

/// A routine was called that may have selected something or not: no rows tell of it.
fn may_select(request: &Request, outcome: &Outcome) -> bool {
    request.class.verb == Verb::Call && request.class.statements == 1 && !outcome.had_rows
}

/// It is one statement that was read for certain.
fn is_single(class: &Class) -> bool {
    class.statements == 1 && !class.doubtful && !class.uses.contains(Uses::EXECUTABLE_COMMENT)
}

/// MySQL gives behind it what is in store.
fn flushes(verb: Verb) -> bool {
    matches!(verb, Verb::Insert | Verb::Replace | Verb::Delete | Verb::Load | Verb::Call)
}

/// What the statement leaves in store; `None`: what was there, or what it gives.
fn in_store(request: &Request, outcome: &Outcome, found: &Found) -> Option<Next> {
    let class = &request.class;
    let selects = request.skipped == Skipped::Other;
    let broke = outcome.failed && !READ_NOTHING.contains(&outcome.error);
    if !is_single(class) {
        let unread = class.doubtful || class.uses.contains(Uses::EXECUTABLE_COMMENT);
        let broke = broke && (unread || request.says.has(Says::BREAKS_LATE));
        let unsure = class.doubtful || request.says.has(Says::SELECTS_BESIDES) || broke;
        return (unsure && !matches!(found, Found::Known(_))).then_some(Next::Unknown);
    }
    match class.verb {
        Verb::Create if selects && !outcome.failed => {
            let rows = outcome.matched_rows.and_then(|rows| u32::try_from(rows).ok());
            Some(rows.map_or(Next::Unknown, Next::Rows))
        }
        Verb::Update if broke => Some(Next::Unknown),
        Verb::Select | Verb::Values if broke && class.uses.contains(Uses::SUBQUERY) => Some(Next::Unknown),
        Verb::Set if selects && (broke || !outcome.failed) => Some(Next::Unknown),
        verb if changes(verb) && selects && broke => Some(Next::Unknown),
        _ => None,
    }
}
