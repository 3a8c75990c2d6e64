//! Completes a request: its effects are recorded for the client and for the server.
//!
//! Owns: that. Must not know: packets.

use crate::back::Back;
use crate::front::Front;
use crate::insert_id::{InsertId, InsertUse};
use crate::message::{Capabilities, Command, status};
use crate::prepared::{Key, Settles};
use crate::queue::Entry;
use crate::says::Says;
use crate::session_state::{Changes, Flavour};
use crate::warnings::{Kept, Warnings};
use crate::{error, frame};
use weir_sql::{Uses, Verb};
use weir_wire::{FaultKind, INTERNAL, Pin};

/// ER_WRONG_ARGUMENTS: long data for a parameter that does not exist. The statement answers every execution
/// with it until it is reset, so that this copy is of no use to others and must stay with its client.
const WRONG_ARGUMENTS: u16 = 1210;

/// Whether an execution that is over has settled the types of its parameters, which MySQL does when it has
/// opened the tables of the statement itself, and before those of triggers and functions and before it runs.
///
/// Found on MySQL 9.7.4. Lock waits, deadlocks and KILL may end either.
fn settles(entry: &Entry, verb: Verb) -> Settles {
    /// XAER_RMFAIL, ER_WRONG_ARGUMENTS, ER_UNKNOWN_STMT_HANDLER, ER_MALFORMED_PACKET: nothing was looked at.
    const BEFORE: [u16; 4] = [1399, WRONG_ARGUMENTS, 1243, 1835];
    const READ_ONLY_TRANSACTION: u16 = 1792;
    const NO_SUCH_TABLE: u16 = 1146;
    const TABLE_NOT_LOCKED: u16 = 1100;
    /// What rows do not take, in order: ER_BAD_NULL_ERROR, ER_DUP_ENTRY, ER_SUBQUERY_NO_1_ROW,
    /// ER_WARN_DATA_OUT_OF_RANGE, WARN_DATA_TRUNCATED, ER_DIVISION_BY_ZERO,
    /// ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, ER_DATA_TOO_LONG, ER_ROW_IS_REFERENCED_2, ER_NO_REFERENCED_ROW_2,
    /// ER_SIGNAL_EXCEPTION, ER_DATA_OUT_OF_RANGE, ER_CHECK_CONSTRAINT_VIOLATED,
    /// ER_TABLE_NOT_LOCKED_FOR_WRITE.
    const BEHIND: [u16; 14] =
        [1048, 1062, 1242, 1264, 1265, 1365, 1366, 1406, 1451, 1452, 1644, 1690, 3819, 1099];
    let outcome = &entry.outcome;
    let writes = matches!(verb, Verb::Insert | Verb::Replace | Verb::Update | Verb::Delete);
    match outcome.error {
        _ if !outcome.failed || outcome.broke_off || outcome.any_ok => Settles::Yes,
        // It was refused, or what went ahead of it has failed.
        0 => Settles::No,
        error if BEFORE.contains(&error) => Settles::No,
        error if BEHIND.contains(&error) => Settles::Yes,
        // That of a function is raised when it is called.
        READ_ONLY_TRANSACTION if writes => Settles::No,
        NO_SUCH_TABLE | TABLE_NOT_LOCKED if outcome.lacks_own_table => Settles::No,
        _ => Settles::Perhaps,
    }
}

impl Back {
    /// The entry at the head is done: what it did is taken over by its client and by what is known of this
    /// server.
    pub(crate) fn finish(&mut self, entry: &mut Entry, front: Option<&mut Front>) {
        let failed = entry.outcome.failed;
        // The check of a login may have nothing to ask.
        let leaves = |front: &Front| front.request.leaves_rows(&entry.outcome, self.session.flavour);
        let leaves = entry.welcome || front.as_deref().is_some_and(leaves);
        if !leaves {
            self.last_rows = entry.outcome.affected_rows.unwrap_or(0);
        }
        if entry.owner == INTERNAL {
            self.warned_client = 0;
            self.last_client = 0;
            self.last_rows = 0;
            (self.found_here, self.next_here) = (0, 0);
            self.broken |= failed;
            if entry.command == Command::ResetConnection && !failed {
                self.doubtful = false;
                self.session_was_reset();
                self.session.was_reset();
            } else if entry.command == Command::Query {
                self.quiet_transaction = false;
            }
            return;
        }
        let Some(front) = front.filter(|_| !entry.gone) else {
            if entry.insert_use != InsertUse::Nothing {
                self.insert_id = InsertId::Foreign;
            }
            self.found_client = 0;
            self.warned_client = 0;
            self.last_client = 0;
            (self.found_here, self.next_here) = (0, 0);
            self.tainted |= entry.taints;
            self.session.known &= !entry.leaves_trace;
            return;
        };
        if entry.welcome {
            return;
        }
        if entry.command == Command::ResetConnection && !failed {
            // FOUND_ROWS() outlives it.
            let found_client = self.found_client;
            self.session_was_reset();
            self.found_client = found_client;
            // Code may have left texts for others, and what is set behind Weir's own reset looks for that.
            let pins = weir_session::Front::pins(front);
            let unseen = [Pin::Code, Pin::SqlPrepare, Pin::Unrecognised, Pin::Setting];
            self.doubtful |= unseen.iter().any(|&pin| pins.contains(pin));
            // MariaDB leaves the locks of a transaction that XA has prepared where nobody can end it.
            self.broken |= self.has_xa;
            let is_outdated = weir_session::Back::is_outdated(self);
            if !is_outdated {
                front.traits = self.traits();
            }
            front.reset_session();
            front.note_rows_stored_by_reset();
            if !is_outdated {
                front.state.base = Some(self.session.base.clone());
            } else if !self.session.base.is_empty() {
                front.ask_all_settings();
            }
            front.keep_beyond_reset(entry.keeps_beyond_reset);
        }
        self.has_profiles |= front.request.says.has(Says::PROFILES);
        if front.request.says.has(Says::SETS_ROLE) || front.request.says.has(Says::PROFILES) {
            front.rare.get_or_insert_default().outlives_reset = true;
        }
        if entry.refusal.is_none() {
            self.guest = front.unique();
        }
        self.finish_statement(entry, front);
        self.watch_savepoint(front);
        self.refuse_stuck_settings(front);
        self.finish_insert_id(entry, front);
        let runs_text = matches!(entry.command, Command::Query | Command::StmtExecute);
        let last_here = !self.others_are_sent();
        let shows_its =
            entry.had_warnings || self.replaced_warnings(entry, front) || self.shows_warnings_of(Some(front));
        self.warned_client = if last_here && shows_its { front.unique() } else { 0 };
        let undisturbed = last_here && entry.refusal.is_none() && !entry.outcome.pinged;
        let leaves = front.request.leaves_rows(&entry.outcome, self.session.flavour);
        let goes_on = runs_text && !leaves || self.last_client == front.unique();
        self.last_client = if undisturbed && goes_on { front.unique() } else { 0 };
        if entry.outcome.any_ok && front.request.changes_others {
            self.count_change();
        }
        entry.outcome.had_warnings = entry.had_warnings;
        entry.outcome.marked = entry.marked;
        entry.outcome.found_own = entry.found_own || entry.found_marked;
        entry.outcome.found_marked = entry.found_marked;
        entry.outcome.next_own = self.next_here == front.next_mark();
        let only_here = front.finish(&entry.outcome, self.server_id());
        self.has_xa &= front.has_xa();
        self.note_found_rows(front, runs_text, last_here);
        if let Some(error) = &entry.refusal {
            match entry.outcome.appended {
                true => front.append_error(error),
                false => {
                    let extended = front.capabilities.has(Capabilities::EXTENDED_METADATA);
                    front.keep_warnings(Kept::Answer(Warnings::of_error(
                        error,
                        self.session.flavour,
                        extended,
                    )));
                }
            }
        }
        if only_here && last_here {
            self.found_client = front.unique();
        } else if runs_text && self.found_client != front.unique() {
            self.found_client = 0;
        }
        if entry.leaves_trace && !entry.kept_out {
            self.take_over_state(front, entry.elsewhere, entry.lost_schema.is_some());
        }
    }

    /// Whose FOUND_ROWS() this session gives now, and would give behind a statement that changes rows.
    fn note_found_rows(&mut self, front: &Front, runs_text: bool, last_here: bool) {
        let (found, next) = (front.found_mark(), front.next_mark());
        if !last_here {
            (self.found_here, self.next_here) = (0, 0);
        } else if runs_text {
            if front.found_rows_changed() {
                self.found_here = found;
            }
            let is_own = front.has_stored_found_rows() || self.next_here == next;
            if front.found_rows_are_to_change() && is_own {
                self.next_here = next;
                // Others would find it behind a statement of theirs.
                self.found_here = if self.found_here == found { found } else { 0 };
            } else {
                self.next_here = 0;
            }
        }
    }

    /// The warnings of this session are this client's now, whosever they were. Commands that are no
    /// statements leave them as they are; so do, on MariaDB, statements without a table that neither warn nor
    /// fail: what is there may be another's, or, where it was another's, be gone. What asks for warnings ran
    /// only because its client's were there, unless its text had the answer.
    fn replaced_warnings(&self, entry: &Entry, front: &Front) -> bool {
        let runs_text = matches!(entry.command, Command::Query | Command::StmtExecute);
        let asks = front.request.class.uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS);
        let looks = asks && !entry.answers_warnings;
        let clears = runs_text && (looks || self.session.flavour == Flavour::MySql);
        entry.refusal.is_none() && (clears || entry.outcome.failed || entry.outcome.warned)
    }

    /// Whatever a request did here was done by it: the state of its client is the one this server is in, but
    /// for a schema that was only its own.
    pub(crate) fn take_over_state(&mut self, front: &Front, elsewhere: bool, lost: bool) {
        self.lost_schema = None;
        if self.others_are_sent() {
            // They have brought the session to their own state, from one that it may not have been in.
            self.session.known = false;
            return;
        }
        let schema = self.session.state.schema.take();
        self.session.state = front.state.clone();
        if elsewhere {
            self.session.state.schema = schema;
        }
        if lost {
            self.session.state.schema = None;
            self.lost_schema = front.state.schema.clone();
        }
    }

    /// Statements come and go, cursors open and close.
    pub(super) fn finish_statement(&mut self, entry: &mut Entry, front: &mut Front) {
        let number = front.request.number;
        let executor = (front.unique(), number);
        let Some(statements) = front.statements.as_deref_mut() else { return };
        match entry.command {
            Command::StmtClose => {
                statements.remove(number);
            }
            Command::StmtExecute | Command::StmtFetch | Command::StmtReset => {
                let Some(statement) = statements.get_mut(number) else { return };
                match entry.command {
                    Command::StmtExecute => {
                        // MySQL's flag behind the rows of EXPLAIN tells of no cursor.
                        statement.cursor = self.status & status::CURSOR_EXISTS != 0
                            && entry.reply.rows == 0
                            && !entry.outcome.failed;
                        if statement.cursor
                            && let Some(copy) = entry.key.as_ref().and_then(|key| self.statements.touch(key))
                        {
                            copy.had_cursor = true;
                        }
                        if let Some(key) = entry.key.as_ref().filter(|_| entry.answered) {
                            let own = Key { private: Some(executor), ..Key::fresh(statement.text.clone()) };
                            match statement.cursor {
                                true => self.statements.keep_answered(key, own),
                                false => self.statements.give_up(key),
                            }
                        }
                        statement.sent_ahead = false;
                        statement.warned = entry.outcome.failed || entry.outcome.warnings > 0;
                        let settles = settles(entry, statement.class.verb);
                        let unsettled = statement.end_execution(settles);
                        let Some(key) = entry.key.as_ref().filter(|_| entry.outcome.failed) else { return };
                        if unsettled && key.private.is_none() {
                            // One that is on its way with the same parameters settles them.
                            if !self.queue.iter().any(|other| other.key.as_ref() == Some(key)) {
                                self.statements.give_up(key);
                            }
                            return;
                        }
                        if let Some(copy) = self.statements.touch(key) {
                            // Whether it came to binding the types is not known.
                            copy.types = Box::default();
                        }
                        // Long data is sent to a copy of its client's own.
                        if entry.outcome.error == WRONG_ARGUMENTS && key.private.is_some() {
                            statement.sent_ahead = true;
                            let own = Key { private: Some(executor), ..Key::fresh(key.text.clone()) };
                            self.statements.rename(key, own);
                        }
                    }
                    Command::StmtFetch => {
                        statement.cursor &= self.status & status::LAST_ROW_SENT == 0 && !entry.outcome.failed;
                    }
                    _ => {
                        statement.cursor = false;
                        statement.sent_ahead = false;
                        statement.long_data = Vec::new();
                    }
                }
            }
            _ => {}
        }
    }

    /// With autocommit off a SAVEPOINT opens a transaction that the flags do not show until a table is
    /// touched (both servers; MySQL bug 107875).
    pub(super) fn watch_savepoint(&mut self, front: &Front) {
        let class = &front.request.class;
        if self.status & status::IN_TRANS != 0 {
            self.quiet_transaction = false;
        } else if class.verb == Verb::Savepoint
            && (self.status & status::AUTOCOMMIT == 0 || self.autocommit_off)
        {
            self.quiet_transaction = true;
        } else if matches!(class.verb, Verb::Commit | Verb::Rollback | Verb::Begin) || class.ddl {
            self.quiet_transaction = false;
        }
    }

    /// A setting that this server could not be brought back from stays with its client.
    pub(super) fn refuse_stuck_settings(&self, front: &mut Front) {
        if let Some(extra) = front.request.extra.as_deref_mut()
            && extra.changes.iter().flat_map(Changes::slots).any(|slot| !self.session.can_undo(slot))
        {
            extra.changes = None;
        }
    }

    /// Writes the error that ends a request which did not run.
    pub(crate) fn put_error(front: &mut Front, welcome: bool, payload: &[u8], out: &mut Vec<u8>) {
        let seq = if welcome { front.seq } else { front.reply_seq };
        if payload.is_empty() {
            error::put_fault(out, seq, FaultKind::ServerProtocol);
        } else {
            frame::put(out, seq, |out| out.extend_from_slice(payload));
        }
    }
}
