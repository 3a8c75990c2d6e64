//! The reply to a client's request is complete: records what the request did to the session.
//!
//! Owns: pins and state after a reply. Must not know: packets.

use super::{Act, AsksSession, Front, Outcome, Phase, Request, remove_setting};
use crate::message::{Command, status};
use crate::session_state::{Changes, Charset, Flavour, Slot, State};
use weir_sql::catalogue::UnknownCode;
use weir_sql::{Class, Locks, Transaction, Uses};
use weir_wire::{Pin, Pins};

/// ER_PARSE_ERROR: nothing of the text ran.
const PARSE_ERROR: u16 = 1064;

/// ER_UNKNOWN_SYSTEM_VARIABLE.
const NO_SUCH_VARIABLE: u16 = 1193;

/// ER_UNKNOWN_STMT_HANDLER.
const NO_SUCH_STATEMENT: u16 = 1243;

/// ER_SP_DOES_NOT_EXIST.
pub(crate) const NO_SUCH_ROUTINE: u16 = 1305;

impl Front {
    /// The reply is done: takes over what the request did.
    /// True when FOUND_ROWS() is something else now that only this server knows.
    pub(crate) fn finish(&mut self, outcome: &Outcome, server: u64) -> bool {
        let mut request = std::mem::replace(&mut self.request, Request::new(Command::Ping));
        self.phase = Phase::Idle;
        self.reply_begun = false;
        if !matches!(request.command, Command::Query | Command::StmtExecute) {
            // What was prepared has said so already.
            if outcome.failed && outcome.error != PARSE_ERROR && request.makes_variables() {
                self.note_variables_of(&request.class);
            }
            if request.class.lent_stays && outcome.error != PARSE_ERROR {
                // A preparation that failed late; see `answer_prepare`.
                self.pins.insert(Pin::Setting);
            }
            self.finish_command(&request, outcome, server);
            return false;
        }
        let has_left_nothing =
            request.ordinary && outcome.any_ok && !outcome.failed && !outcome.state_changed;
        if has_left_nothing && self.pins.is_empty() && self.held.is_none() && self.locks.is_empty() {
            return self.finish_last(&request, outcome, server);
        }
        let rereads = request.extra.as_deref().is_some_and(|extra| extra.rereads);
        let changes = request.extra.as_deref_mut().and_then(|extra| extra.changes.take());
        let class = &request.class;
        if class.uses.contains(Uses::PROCESS_LIST) {
            self.rare.get_or_insert_default().listed_on = server;
        }
        if request.asks_session == AsksSession::Counters {
            // Who reads them once compares them with what they are later.
            self.pins.insert(Pin::Setting);
        }
        let mut pins = class.pins;
        let runs_known = match request.act.as_deref() {
            Some(Act::RunsKnown { .. }) => true,
            Some(Act::RunsNothing) => outcome.failed && outcome.error == NO_SUCH_STATEMENT,
            Some(_) | None => false,
        };
        if runs_known {
            // What EXECUTE runs was read when it was prepared.
            pins.remove(Pin::Unrecognised);
        }
        // A change that the SETs at the head make is not among those that are asked about here.
        let mut explained = !runs_known && !class.pins_behind().is_empty() || explains_change(class);
        let follows = changes.is_some_and(|changes| self.follow_set(changes, class, outcome));
        if follows {
            remove_setting(&mut pins, class);
        }
        if class.verb == weir_sql::Verb::Use && class.statements > 1 && !self.traits.trackers {
            pins.insert(Pin::Setting);
        }
        if outcome.any_ok && !outcome.failed {
            for pin in class.releases.iter().filter(|pin| *pin != Pin::SessionLock) {
                self.pins.remove(pin);
            }
        }
        if let Some(Transaction::Commit { release: true, .. } | Transaction::Rollback { release: true, .. }) =
            class.transaction
            && !outcome.failed
        {
            self.parting = true;
        }
        if class.transaction == Some(Transaction::SetTransaction)
            && class.statements == 1
            && class.set().is_none_or(|set| set.assignments.len() <= 1)
            && self.traits.trackers
        {
            // The tracker says how long it holds.
            pins.remove(Pin::Setting);
        }
        let unread = class.doubtful || class.ddl || class.uses.contains(Uses::EXECUTABLE_COMMENT);
        let is_read = class.statements == 1 || class.proven || !unread;
        let sets_nothing = class.pins.iter().all(|pin| pin == Pin::UserVariable);
        explained |= class.lends_settings && is_read && sets_nothing && !runs_code(class);
        if !self.traits.trackers && class.uses.contains(Uses::BLOCK) {
            explained = false;
        }
        if class.verb == weir_sql::Verb::Use && class.statements == 1 {
            // The tracker says where it led.
            pins.remove(Pin::Setting);
        }
        pins.remove(Pin::SessionLock);
        let mut code = class.code;
        if pins.contains(Pin::UserVariable) && (outcome.any_ok || outcome.failed) {
            self.note_variables_of(class);
        }
        pins.remove(Pin::UserVariable);
        code.remove(Pin::UserVariable);
        // LastResult lasts to the next statement, see below.
        pins.remove(Pin::LastResult);
        code.remove(Pin::LastResult);
        if outcome.any_ok {
            self.pins.union(pins);
        } else {
            let mut left = left_by_failure(class, pins, outcome);
            if follows {
                left.remove(Pin::Setting);
            }
            self.pins.union(left);
        }
        // What routines and triggers did stays when the statement that ran them fails.
        self.pins.union(code);
        let is_unknown = class.unknown_code == UnknownCode::Pin;
        if is_unknown && runs_code(class) && !calls_nobody(class, outcome) {
            self.pins.insert(Pin::Code);
        }
        explained |= !is_unknown;
        // Code and views of another schema are read in that, from where the server comes back. All that they
        // leave is known.
        explained |= outcome.schema_told && class.proven && !runs_code(class);
        if (outcome.state_changed || !self.traits.trackers && class.uses.contains(Uses::BLOCK)) && !explained
        {
            self.pins.insert(Pin::Setting);
        }
        if request.asks_session == AsksSession::Trackers && may_leave_unseen(class) {
            // For its answer the trackers were as without Weir, so that they told nothing.
            self.pins.insert(Pin::Setting);
        }
        let all_follows = follows && class.heads().len().max(1) >= class.statements as usize;
        let may_have_set = outcome.state_changed || !self.traits.trackers;
        if rereads && !all_follows && may_have_set && !self.pins.is_empty() {
            self.rare.get_or_insert_default().reads_unknown = true;
        }
        let act = request.act.take().map_or(Act::Other, |act| *act);
        self.finish_locks(&request.class, act, outcome);
        self.finish_last(&request, outcome, server)
    }

    /// The same of a text, whether it ran to its end or failed.
    fn follow_set(&mut self, changes: Changes, class: &Class, outcome: &Outcome) -> bool {
        // Of a text that failed at last the first statement ran, if anything did.
        let all_ran = !outcome.failed || class.heads().len() == 1;
        if outcome.any_ok {
            return all_ran && self.follow(changes);
        }
        // It has set what stands in front of what is refused.
        let has_begun = class.statements == 1 && outcome.failed && outcome.error != PARSE_ERROR;
        let several = changes.slots().nth(1).is_some();
        match changes.all_asked().filter(|_| has_begun && several) {
            Some(changes) => self.follow(changes),
            None => false,
        }
    }

    /// Takes over what SET changed. False when it cannot be followed: it pins.
    fn follow(&mut self, changes: Changes) -> bool {
        // They are asked for at the end of the transaction, and until then texts would be read wrongly.
        let late = self.status & status::IN_TRANS != 0 && changes.asked.iter().any(|slot| slot.rereads());
        if late || !self.state.apply(changes.known) {
            return false;
        }
        if !changes.asked.is_empty() {
            let unasked = &mut self.rare.get_or_insert_default().unasked;
            unasked.extend(changes.asked);
            unasked.sort_unstable();
            unasked.dedup();
        }
        true
    }

    /// The session has begun anew with global settings that nobody has read yet: its server is asked.
    pub(crate) fn ask_all_settings(&mut self) {
        let has_value = |slot: &Slot| self.state.based(*slot).is_some();
        let slots = Slot::BASED.iter().copied().filter(has_value).collect();
        self.rare.get_or_insert_default().unasked = slots;
    }

    /// A server has said what the settings are that were asked for; `None` when it has not, or in a way that
    /// cannot be said to others. They stay on it then.
    pub(crate) fn keep_settings(&mut self, values: Option<Vec<Box<str>>>) {
        let slots = self.take_unasked();
        let state = &self.state;
        let is_own = |(slot, value): &(Slot, Box<str>)| {
            // As it was at the login.
            state.setting(*slot).is_some() || state.based(*slot) != Some(&**value)
        };
        let own = values.map(|values| slots.into_iter().zip(values).filter(is_own).collect::<Vec<_>>());
        let kept = own.is_some_and(|own| own.is_empty() || self.state.apply(own));
        if !kept {
            self.pins.insert(Pin::Setting);
        }
    }

    /// What is held, and given back. Its pins go when nothing is left.
    fn finish_locks(&mut self, class: &Class, act: Act, outcome: &Outcome) {
        // Those that are counted are looked after there.
        let named = self.locks.contains(Locks::NAMED);
        // Code that fails keeps what it has taken before.
        if outcome.any_ok || outcome.failed && class.code.contains(Pin::SessionLock) {
            self.locks.insert(class.takes);
        }
        if outcome.any_ok && !outcome.failed && class.statements == 1 && has_run(class, outcome) {
            self.locks.remove(class.frees);
        }
        self.locks.remove(Locks::NAMED);
        if named {
            self.locks.insert(Locks::NAMED);
        }
        self.finish_held(class, act, outcome);
        if self.locks.is_empty() {
            self.pins.remove(Pin::SessionLock);
        } else {
            self.pins.insert(Pin::SessionLock);
        }
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
        if let Some(rare) = self.rare.as_deref_mut() {
            (rare.untold, rare.unasked, rare.prepares_trackers) = (Vec::new(), Vec::new(), false);
            (rare.prepares_unread, rare.reads_unknown) = (false, false);
        }
        self.forget_variables();
        self.locks = Locks::NONE;
        self.status = self.traits.fresh_status();
        self.held = None;
        self.one_shot = false;
        self.forget_warnings();
        self.insert_id = 0;
        self.insert_server = 0;
        self.insert_unknown = false;
        self.own_trackers = 0;
        self.row_count = 0;
    }

    /// COM_RESET_CONNECTION leaves the session the role that its client has set, and its profiles. `is_seen`:
    /// its server has said so.
    pub(crate) fn keep_beyond_reset(&mut self, is_seen: bool) {
        if is_seen || self.rare.as_deref().is_some_and(|rare| rare.outlives_reset) {
            self.pins.insert(Pin::Setting);
        }
    }

    /// The login that COM_CHANGE_USER began was refused. MariaDB goes on with the session as it was after its
    /// own login, but with the server's character set, and refuses any more such commands after three; MySQL
    /// closes. Returns whether it goes on.
    pub(crate) fn login_refused(&mut self) -> bool {
        self.reset_session();
        self.state.charset = Charset::ServerDefault;
        self.forget_request();
        self.refused_logins += 1;
        self.traits.flavour == Flavour::MariaDb
    }
}

/// Beside a question about trackers a text does what only they would tell.
fn may_leave_unseen(class: &Class) -> bool {
    let several = class.statements > 1 && (!class.proven || class.uses.contains(Uses::TRANSACTION));
    several || !class.pins.is_empty() || runs_code(class) || class.uses.contains(Uses::BLOCK) && !class.proven
}

/// With `sql_select_limit = 0` a SELECT has no row, and does nothing.
pub(super) fn has_run(class: &Class, outcome: &Outcome) -> bool {
    class.verb != weir_sql::Verb::Select || outcome.rows > 0
}

/// Code that is not in the text runs: a procedure, a block, a function that is not built in. What it does to
/// the session is not known, and no tracker tells of `SELECT ... INTO @x`, GET_LOCK() and FLUSH TABLES WITH
/// READ LOCK.
pub(super) fn runs_code(class: &Class) -> bool {
    match class.foreseen {
        true => class.pins.contains(Pin::Code),
        false => class.uses.intersects(Uses::BLOCK | Uses::UNKNOWN_FUNCTION),
    }
}

/// A routine that is called by name is not there, and nothing else in the text is code of which the catalogue
/// does not know what it leaves: the server looks for all routines before it runs anything.
fn calls_nobody(class: &Class, outcome: &Outcome) -> bool {
    outcome.error == NO_SUCH_ROUTINE
        && outcome.failed
        && !outcome.any_ok
        && class.proven
        && class.statements == 1
        && class.uses.contains(Uses::UNKNOWN_FUNCTION)
        && (class.verb == weir_sql::Verb::Call || !class.uses.contains(Uses::BLOCK))
        && !class.code.contains(Pin::Code)
}

/// Of the reasons to pin those that hold although the statement failed: it may have done a part.
fn left_by_failure(class: &Class, pins: Pins, outcome: &Outcome) -> Pins {
    let mut left = Pins::NONE;
    if pins.contains(Pin::Sequence) {
        left.insert(Pin::Sequence);
    }
    let parsed = outcome.error != PARSE_ERROR || class.verb != weir_sql::Verb::Unrecognised;
    if pins.contains(Pin::Unrecognised) && parsed {
        left.insert(Pin::Unrecognised);
    }
    let set = match class.heads() {
        [only] => Some(only),
        _ => class.set(),
    };
    let several = set.is_none_or(|set| set.assignments.len() + set.user_variables.len() > 1);
    // Of what cannot be parsed nothing has run, nor of a SET that names what is no variable.
    let calls = class.uses.intersects(Uses::UNKNOWN_FUNCTION | Uses::USER_FUNCTION);
    let unread = outcome.error == PARSE_ERROR || outcome.error == NO_SUCH_VARIABLE && !calls;
    let set_in_part = class.verb == weir_sql::Verb::Set && several && !unread;
    let lent = class.lent_stays && outcome.error != PARSE_ERROR;
    if set_in_part || lent {
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
