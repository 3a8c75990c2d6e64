//! The reply to a client's request is done: what the request did to the session.
//!
//! Owns: pins and state after a reply, what may be asked about the last statement. Must not know: packets.

use super::{Front, Outcome, Phase, ROWS_UNKNOWN, Request, TEMPORARY_UNKNOWN};
use crate::message::{Command, status};
use crate::session_state::{Charset, Flavour, State};
use crate::warnings::Kept;
use weir_sql::{Class, Locks, Transaction, Uses};
use weir_wire::{Pin, Pins};

/// ER_PARSE_ERROR: nothing of the text ran.
const PARSE_ERROR: u16 = 1064;

impl Front {
    /// The reply is done: takes over what the request did.
    pub(crate) fn finish(&mut self, outcome: &Outcome, server: u64) {
        let request = std::mem::replace(&mut self.request, Request::new(Command::Ping));
        self.phase = Phase::Idle;
        self.reply_begun = false;
        if !matches!(request.command, Command::Query | Command::StmtExecute) {
            // What asks about the last result leaves it as it was; these do not change it.
            if outcome.failed || outcome.warnings > 0 {
                self.only_warnings |= !self.last_result;
                self.last_result = true;
                self.warnings = None;
            } else if request.command == Command::InitDb && matches!(self.warnings(), Some(Kept::Read(_))) {
                // It would be another read now.
                self.keep_warnings(Kept::Lost);
            }
            return;
        }
        let class = &request.class;
        let mut pins = class.pins;
        let mut explained = !pins.is_empty() || explains_change(class);
        let changes = request.extra.and_then(|extra| extra.changes);
        if outcome.any_ok && !outcome.failed {
            if let Some(changes) = changes
                && self.state.apply(changes)
            {
                pins.remove(Pin::Setting);
            }
            for pin in class.releases.iter().filter(|pin| *pin != Pin::SessionLock) {
                self.pins.remove(pin);
            }
        }
        if class.transaction == Some(Transaction::SetTransaction)
            && class.statements == 1
            && class.set().is_none_or(|set| set.assignments.len() <= 1)
            && self.traits.trackers
        {
            // The tracker says how long it holds.
            pins.remove(Pin::Setting);
        }
        if !self.traits.trackers && class.uses.contains(Uses::BLOCK) {
            explained = false;
        }
        if class.verb == weir_sql::Verb::Use && class.statements == 1 {
            // The tracker says where it led.
            pins.remove(Pin::Setting);
        }
        self.finish_temporary(class, outcome, request.drops_table);
        self.finish_locks(class, outcome);
        pins.remove(Pin::SessionLock);
        // LastResult lasts to the next statement, see below.
        pins.remove(Pin::LastResult);
        if outcome.any_ok {
            self.pins.union(pins);
        } else {
            self.pins.union(left_by_failure(class, pins, outcome));
        }
        // What routines and triggers did stays when the statement that ran them fails.
        self.pins.union(class.code.pins);
        if runs_code(class) {
            self.pins.insert(Pin::Code);
        }
        if (outcome.state_changed || !self.traits.trackers && class.uses.contains(Uses::BLOCK)) && !explained
        {
            self.pins.insert(Pin::Setting);
        }
        self.finish_last(&request.class, outcome, server);
    }

    /// Counts temporary tables, so that their pin goes with the last one.
    fn finish_temporary(&mut self, class: &Class, outcome: &Outcome, drops_table: bool) {
        if class.pins.contains(Pin::TemporaryTable) {
            let one = class.statements == 1 && class.verb == weir_sql::Verb::Create;
            self.temporary = if one { self.temporary.saturating_add(1) } else { TEMPORARY_UNKNOWN };
        } else if drops_table && outcome.any_ok && !outcome.failed {
            if self.temporary != TEMPORARY_UNKNOWN {
                self.temporary = self.temporary.saturating_sub(1);
            }
            if self.temporary == 0 {
                self.pins.remove(Pin::TemporaryTable);
            }
        }
    }

    pub(super) fn finish_locks(&mut self, class: &Class, outcome: &Outcome) {
        // GET_LOCK() may have got its lock in a statement that failed later.
        if outcome.any_ok || class.takes.contains(Locks::NAMED) {
            self.locks.insert(class.takes);
        }
        if outcome.any_ok && !outcome.failed && class.statements == 1 {
            self.locks.remove(class.frees);
        }
        if self.locks.is_empty() {
            self.pins.remove(Pin::SessionLock);
        } else {
            self.pins.insert(Pin::SessionLock);
        }
    }

    /// What the next statement may ask about this one.
    pub(super) fn finish_last(&mut self, class: &Class, outcome: &Outcome, server: u64) {
        self.last_server = server;
        if outcome.insert_id != 0 {
            self.insert_id = outcome.insert_id;
            self.insert_unknown = false;
        }
        if sets_insert_id(class, outcome) {
            self.insert_server = server;
            // An INSERT that names its own id reports that id, but LAST_INSERT_ID() stays as it was: whoever
            // asks must get the truth.
            self.insert_unknown = outcome.insert_id == 0 || self.asks_insert_id;
        }
        self.row_count = match outcome.affected_rows {
            Some(rows) if !outcome.failed => i64::try_from(rows).unwrap_or(i64::MAX),
            Some(_) | None => -1,
        };
        let plain_rows = outcome.affected_rows.is_none() && !outcome.failed && class.statements == 1;
        let calculated = class.uses.contains(Uses::CALC_FOUND_ROWS);
        let is_select = class.verb == weir_sql::Verb::Select;
        self.found_rows = if plain_rows && is_select && !calculated { outcome.rows } else { ROWS_UNKNOWN };
        let asks_warnings = class.uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS);
        let asks_about_last = self.statements.as_deref().is_some_and(|all| all.asks_about_last);
        let warns = outcome.failed || outcome.warnings > 0;
        // What asks about the last result leaves it as it was.
        if asks_warnings && !warns && !calculated && !asks_about_last {
            return;
        }
        self.last_result = warns || calculated || asks_about_last;
        self.only_warnings = !calculated && !asks_about_last;
        self.warnings = None;
    }

    /// The last statement left warnings: what of them is kept here.
    pub(crate) fn warnings(&self) -> Option<&Kept> {
        self.warnings.as_deref()
    }

    /// Nothing but the warnings of its last statement keeps a server with this client.
    pub(crate) fn only_warnings_pin(&self) -> bool {
        let mut others = self.pins();
        others.remove(Pin::LastResult);
        self.last_result && self.only_warnings && others.is_empty()
    }

    /// The warnings of the last statement are here now; the server may go.
    pub(crate) fn keep_warnings(&mut self, warnings: Kept) {
        self.warnings = Some(Box::new(warnings));
        self.last_result = false;
    }

    /// COM_RESET_CONNECTION: all of the session but its schema begins anew.
    pub(crate) fn reset_session(&mut self) {
        let charset = match self.traits.flavour {
            Flavour::MariaDb => self.login_charset,
            Flavour::MySql => Charset::ServerDefault,
        };
        let multi_statements = self.state.multi_statements;
        let schema = self.state.schema.take();
        let base = self.state.base.take();
        self.state = State { base, schema, charset, settings: None, multi_statements };
        self.statements = None;
        self.pins = Pins::NONE;
        self.locks = Locks::NONE;
        self.status = status::AUTOCOMMIT;
        self.temporary = 0;
        self.one_shot = false;
        self.last_result = false;
        self.only_warnings = false;
        self.warnings = None;
        self.insert_id = 0;
        self.insert_server = 0;
        self.insert_unknown = false;
        self.own_trackers = false;
        self.row_count = -1;
        self.found_rows = ROWS_UNKNOWN;
    }

    /// The login that COM_CHANGE_USER began was refused. MariaDB goes on with the session as it was after its own
    /// login, but with the server's character set, and refuses any more such commands after three; MySQL closes.
    /// Returns whether it goes on.
    pub fn login_refused(&mut self) -> bool {
        self.reset_session();
        self.state.charset = Charset::ServerDefault;
        self.forget_request();
        self.refused_logins += 1;
        self.traits.flavour == Flavour::MariaDb
    }
}

pub(super) fn sets_insert_id(class: &Class, outcome: &Outcome) -> bool {
    outcome.insert_id != 0
        || class.uses.intersects(Uses::LAST_INSERT_ID_SET | Uses::BLOCK)
        || class.pins.contains(Pin::Unrecognised)
        || class.pins.contains(Pin::Code)
}

/// Code that is not in the text runs: a procedure, a block, a function that is not built in. What it does to the session is not
/// known, and no tracker tells of `SELECT ... INTO @x`, GET_LOCK() and FLUSH TABLES WITH READ LOCK.
pub(super) fn runs_code(class: &Class) -> bool {
    match class.proven {
        true => class.pins.contains(Pin::Code),
        false => class.uses.intersects(Uses::BLOCK | Uses::UNKNOWN_FUNCTION),
    }
}

/// Of the reasons to pin those that hold although the statement failed: it may have done a part.
fn left_by_failure(class: &Class, pins: Pins, outcome: &Outcome) -> Pins {
    let mut left = Pins::NONE;
    if pins.contains(Pin::UserVariable) {
        left.insert(Pin::UserVariable);
    }
    let parsed = outcome.error != PARSE_ERROR || class.verb != weir_sql::Verb::Unrecognised;
    if pins.contains(Pin::Unrecognised) && parsed {
        left.insert(Pin::Unrecognised);
    }
    let several = class.set().is_none_or(|set| set.assignments.len() + set.user_variables.len() > 1);
    if class.verb == weir_sql::Verb::Set && several {
        left.insert(Pin::Setting);
    }
    left
}

/// The lexer saw why the tracker says that the session changed.
pub(super) fn explains_change(class: &Class) -> bool {
    match class.verb {
        weir_sql::Verb::Set | weir_sql::Verb::Use | weir_sql::Verb::Drop | weir_sql::Verb::Deallocate => {
            class.statements == 1 && !class.uses.contains(Uses::BLOCK)
        }
        _ => false,
    }
}
