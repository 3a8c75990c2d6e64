//! Commands sent ahead of a request, and what happens to the request when they are confirmed or refused.
//!
//! Owns: the replies to those commands. Must not know: the reply to the request itself.

use super::prepare::{read_definition, take_reply};
use super::result::keep_return;
use super::{At, Progress, Reply, Way, malformed, whole};
use crate::back::Back;
use crate::binding::{self, Binding};
use crate::dispatch::{NOT_KNOWN, give_up, put_execute};
use crate::front::Outcome;
use crate::login::again::Verdict;
use crate::message::ok::ErrPacket;
use crate::message::{Command, ok};
use crate::prepared::Key;
use crate::queue::{Ahead, Alone, Entry, PrepareAhead, Stage};
use crate::session_state::Charset;
use crate::warnings::Kept;
use std::ops::ControlFlow;
use std::sync::Arc;
use weir_sql::Uses;
use weir_wire::Fault;

/// ER_UNKNOWN_CHARACTER_SET and ER_UNKNOWN_COLLATION.
const UNKNOWN_CHARSET: [u16; 2] = [1115, 1273];

/// ER_NO_DB_ERROR.
pub(super) const NO_DATABASE: u16 = 1046;
/// ER_BAD_DB_ERROR.
const UNKNOWN_DATABASE: u16 = 1049;
/// ER_DBACCESS_DENIED_ERROR.
const DATABASE_DENIED: u16 = 1044;

/// The session has not been let into a schema: nothing else is refused so.
fn refuses_schema(payload: &[u8]) -> bool {
    ErrPacket::read(payload).is_ok_and(|err| matches!(err.code, UNKNOWN_DATABASE | DATABASE_DENIED))
}

impl Back {
    /// Reads one reply to what went ahead; when it was the last, sends the request. Returns the bytes
    /// read.
    pub(super) fn read_ahead(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        input: &[u8],
    ) -> Result<usize, Fault> {
        let is_followed = entry.ahead.len() > 1;
        let Some(ahead) = entry.ahead.front_mut() else {
            self.ahead_done(entry, way)?;
            return Ok(0);
        };
        if matches!(ahead, Ahead::Repeat(_) | Ahead::Rows) {
            return self.read_repeated(entry, way, input);
        }
        let Some((header, payload)) = whole(input)? else { return Ok(0) };
        let is_error = payload.first() == Some(&ok::ERR);
        let along = matches!(ahead, Ahead::Prepare(PrepareAhead { along: true, .. }));
        let optional = matches!(
            ahead,
            Ahead::Login | Ahead::Signal | Ahead::AskFoundRows | Ahead::AskWarnings | Ahead::Schema(_)
        );
        if is_error && !along && !optional {
            let is_first = entry.ahead_error.is_none() && entry.alone == Alone::No;
            if is_first && matches!(ahead, Ahead::Prepare(_)) && is_followed {
                entry.alone = Alone::Next;
            }
            entry.ahead_error.get_or_insert_with(|| payload.into());
        }
        match ahead {
            Ahead::State | Ahead::Command => {
                if is_error && refuses_schema(payload) {
                    self.session.schema_known = false;
                } else if is_error {
                    self.session.known = false;
                } else {
                    self.note_status(payload)?;
                }
                entry.ahead.pop_front();
            }
            Ahead::Schema(schema) => {
                let schema = Arc::clone(schema);
                if is_error {
                    // Its client's own comes behind it, whatever became of this one.
                    for ahead in &mut entry.ahead {
                        if let Ahead::Prepare(prepare) = ahead {
                            prepare.astray |=
                                prepare.along && prepare.key.text.shape.schema.as_ref() == Some(&schema);
                        }
                    }
                } else {
                    self.note_status(payload)?;
                }
                entry.ahead.pop_front();
            }
            Ahead::Reset => {
                entry.ahead.pop_front();
                if is_error {
                    self.broken = true;
                } else {
                    self.session_was_reset();
                    self.session.was_reset();
                    self.needs_setup = true;
                    self.note_status(payload)?;
                    // From the beginning, on a session without variables.
                    entry.stage = Stage::Waiting;
                    return Ok(header.total());
                }
            }
            Ahead::Login => {
                if self.again.handle(header, payload, way.to_server)? == Verdict::Through {
                    self.session.logged_in_again();
                    self.session_was_reset();
                    self.session.charset_known = true;
                    self.needs_setup = true;
                    self.note_status(payload)?;
                    entry.ahead.pop_front();
                    // From the beginning, on a session that can be brought to its client's state.
                    entry.stage = Stage::Waiting;
                    return Ok(header.total());
                }
            }
            Ahead::Repeat(_) | Ahead::Rows => {}
            Ahead::AskInsertId => {
                if self.ask_insert_id_again(entry, payload, way.to_server) {
                    return Ok(header.total());
                }
                let over = self.take_insert_id(entry, way.front.as_deref_mut(), payload);
                if over.ok_or_else(|| malformed("malformed LAST_INSERT_ID()"))? {
                    entry.ahead.pop_front();
                    if let Some(front) = way.front.as_deref_mut() {
                        self.bring_known_insert_id(entry, front, way.to_server);
                    }
                }
            }
            Ahead::AskWarnings => {
                let front = way.front.as_deref_mut();
                if let ControlFlow::Break(kept) = self.take_warnings(entry, front, payload)? {
                    entry.ahead.pop_front();
                    if let Some(front) = way.front.as_deref_mut() {
                        front.keep_warnings(kept.map_or(Kept::Lost, |kept| Kept::Answer(*kept)));
                    }
                    // From the beginning, now that nothing can take them away.
                    entry.stage = Stage::Waiting;
                    return Ok(header.total());
                }
            }
            Ahead::AskFoundRows => {
                if Back::take_found_rows(entry, way.front.as_deref_mut(), payload)? {
                    entry.ahead.pop_front();
                    entry.reply.asked = 0;
                    if entry.ahead.is_empty() {
                        // It went alone: from the beginning, now that the answer can be brought.
                        entry.stage = Stage::Waiting;
                        return Ok(header.total());
                    }
                }
            }
            Ahead::Signal => {
                // An error is what was wanted, or the same as a warning.
                entry.ahead.pop_front();
            }
            Ahead::Prepare(prepare) => {
                if is_error {
                    entry.ahead.pop_front();
                } else if read_definition(prepare, payload)? {
                    let key = prepare.key.clone();
                    let (id, astray) = (prepare.id, prepare.astray);
                    let reply = take_reply(prepare);
                    self.statements.insert(key.clone(), id, Arc::new(reply), 0, way.to_server);
                    entry.ahead.pop_front();
                    if astray {
                        self.statements.close(&key, way.to_server);
                    }
                    let kinds = entry.kinds.take_if(|_| !along);
                    let settles = kinds.and_then(|kinds| self.settle_kinds(&key, kinds));
                    let first = entry.first.take_if(|_| !along);
                    for payload in settles.into_iter().chain(first) {
                        put_execute(id, &payload, way.to_server);
                        entry.ahead.push_back(Ahead::Repeat(None));
                    }
                }
            }
        }
        if entry.ahead.is_empty() {
            self.ahead_done(entry, way)?;
        }
        Ok(header.total())
    }

    /// A copy that was prepared now for a statement of before, whose tables have been made anew since: a
    /// server keeps what its parameters were. Returns the execution that comes to the same.
    fn settle_kinds(&mut self, key: &Key, (kinds, may_run): (Binding, bool)) -> Option<Box<[u8]>> {
        if !self.statements.is_of_other_kinds(key, &kinds) {
            return None;
        }
        let execution = binding::execution_of(&kinds).filter(|_| may_run);
        // Where there is none, another copy would be no better.
        self.statements.touch(key)?.kinds = kinds;
        execution
    }

    /// The reply to a read that is run again for its warnings: nobody gets it.
    fn read_repeated(&mut self, entry: &mut Entry, way: &mut Way<'_>, input: &[u8]) -> Result<usize, Fault> {
        let mut nowhere = Way { front: None, to_client: &mut Vec::new(), to_server: way.to_server };
        let own = entry.command;
        if own == Command::StmtPrepare {
            // What is run again is a text, or was executed.
            entry.command = Command::Query;
            if entry.reply.at == At::Prepare {
                entry.reply.at = At::First;
            }
        }
        let progress = self.read_reply(entry, &mut nowhere, input);
        entry.command = own;
        let bytes = match progress? {
            Progress::NeedMore => return Ok(0),
            Progress::Took { bytes, .. } => return Ok(bytes),
            Progress::Ended { bytes, .. } => bytes,
        };
        self.mid_message = false;
        let shift = entry.reply.shift;
        entry.reply = Reply::new(entry.command);
        entry.reply.add_shift(shift);
        let left = std::mem::take(&mut entry.outcome).left();
        if let Some(Ahead::Repeat(Some(expected))) = entry.ahead.pop_front()
            && left != expected
        {
            let uses = way.front.as_deref().map(|front| front.request.class.uses);
            let asks = uses.is_none_or(|uses| uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS));
            if asks && own != Command::StmtPrepare {
                give_up(entry, NOT_KNOWN);
            }
            // They are here no more, for whoever asks later.
            entry.had_warnings = false;
        }
        if entry.ahead.is_empty() {
            self.ahead_done(entry, way)?;
        }
        Ok(bytes)
    }

    pub(super) fn ahead_done(&mut self, entry: &mut Entry, way: &mut Way<'_>) -> Result<(), Fault> {
        let Some(front) = way.front.as_deref_mut() else {
            entry.leaves_trace = false;
            entry.taints = false;
            entry.stage = Stage::Finished;
            return Ok(());
        };
        if entry.alone == Alone::Next || entry.alone == Alone::Now && entry.ahead_error.is_none() {
            // From the beginning, with its statement by itself or with all that goes behind that.
            entry.ahead_error = None;
            entry.stage = Stage::Waiting;
            return Ok(());
        }
        let Some(error) = entry.ahead_error.take() else {
            if entry.welcome {
                entry.stage = Stage::Finished;
                return Ok(());
            }
            let request = std::mem::take(&mut entry.held);
            let whole = entry.whole;
            self.send(entry, front, &request, way.to_server);
            debug_assert_eq!(whole, entry.whole);
            return Ok(());
        };
        let code = ErrPacket::read(&error).map_or(0, |err| err.code);
        if UNKNOWN_CHARSET.contains(&code) && front.state.charset != Charset::ServerDefault {
            // What a login at the server itself would silently do.
            front.state.charset = Charset::ServerDefault;
            entry.stage = Stage::Waiting;
            return Ok(());
        }
        let lost = entry.lost_schema.take();
        // A statement that was prepared in another schema, which is gone, would mean something else in this
        // one.
        let own = entry.key.as_ref().is_none_or(|key| key.text.shape.schema == front.state.schema);
        if code == UNKNOWN_DATABASE && own && !entry.welcome && lost.is_none() {
            if self.lost_schema.is_some() && self.lost_schema == front.state.schema {
                // Only this was refused, and it was so before: nothing that the client has here need go.
                (self.session.known, self.session.schema_known) = (true, true);
                self.session.state.schema = None;
            }
            entry.lost_schema = Some(error);
            entry.stage = Stage::Waiting;
            return Ok(());
        }
        let stands = lost.is_none();
        let error = lost.filter(|_| code == NO_DATABASE).unwrap_or(error);
        if entry.welcome {
            front.refused = true;
        }
        if stands && code != UNKNOWN_DATABASE {
            // Its server would have found out while it ran.
            keep_return(entry, front);
        }
        front.request.has_not_run();
        // The session is where what went ahead has brought it.
        entry.leaves_trace = false;
        entry.outcome = Outcome { failed: true, conditions: Some(1), ..Outcome::default() };
        if !entry.whole {
            // The client is told when it has sent all of it.
            entry.ahead_error = Some(error);
            entry.held = Vec::new();
            entry.stage = Stage::Refused;
            return Ok(());
        }
        Back::put_error(front, entry.welcome, &error, way.to_client);
        entry.stage = Stage::Finished;
        Ok(())
    }
}
