//! Finds where a request ends in its client's bytes, and what its server must have or do for it.
//!
//! Owns: reading whole messages, and the wishes and needs of a request. Must not know: servers; messages too
//! long to be gathered (`long`).
//!
//! Invariant: bytes are examined once, unless their meaning was not known yet.

use super::scan::{Batch, NOTHING_JUDGED, Names, Tail};
use super::{Asks, Front};
use crate::dispatch::leaves_nothing;
use crate::effects::{Draws, Effects};
use crate::frame::{ClientTag, body, client_header};
use crate::message::query::{read_bind, read_parse, read_query};
use crate::prepared::{Statement, fingerprint_of};
use std::sync::Arc;
use weir_session::Front as _;
use weir_sql::Dialect;
use weir_wire::limits::REQUEST_GATHER_BYTES;
use weir_wire::{Boundary, Fault, FaultKind, Found, Needs, name_of};

pub(super) fn malformed(tag: ClientTag) -> Fault {
    Fault::new(FaultKind::ClientProtocol, format!("malformed {} message", name_of(&tag)))
}

/// A Close or Describe of a statement that has a name.
fn names_statement(body: &[u8]) -> bool {
    matches!(body, [b'S', first, ..] if *first != 0)
}

/// Bytes that go ahead of the end of their request; `continues` says that others of it went before.
pub(super) fn part(len: usize, continues: bool) -> Found {
    Found::Part { len, needs: Needs { lease: true, continues, ..Needs::default() } }
}

/// The function that a FunctionCall names is `currval(regclass)` or `lastval()` (`pg_proc.dat`).
fn asks_sequence(body: &[u8]) -> bool {
    const ASKS: [u32; 2] = [1575, 2559];
    let oid = body.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    oid.is_some_and(|oid| ASKS.contains(&oid))
}

impl Front {
    /// What `weir_session::Front::find` says.
    pub(super) fn find_next(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Found, Fault> {
        if self.scan.left() > 0 {
            return self.continue_long(input, out);
        }
        if self.scan.resetting {
            if self.outstanding == 0 {
                self.scan.resetting = false;
            } else if !self.is_of_copy(input)? {
                return Ok(Found::Incomplete);
            }
        }
        if self.scan.waits {
            if self.outstanding > 0 && self.scan.tail != Tail::Known {
                return Ok(Found::Incomplete);
            }
            // What its names mean and how its texts are to be read is known now.
            self.scan.waits = false;
            self.scan.looked = 0;
            self.scan.batch = Batch::EMPTY;
            self.texts.clear();
        }
        loop {
            let at = self.scan.looked;
            let rest = input.get(at..).unwrap_or_default();
            let Some(header) = client_header(rest)? else {
                let hastens = std::mem::take(&mut self.scan.hastens);
                return Ok(if hastens && at > 0 && rest.is_empty() {
                    self.part_before(at)
                } else {
                    Found::Incomplete
                });
            };
            let end = at.saturating_add(header.total);
            match header.tag {
                ClientTag::CopyData | ClientTag::CopyDone | ClientTag::CopyFail => {
                    if at > 0 {
                        return Ok(self.part_before(at));
                    }
                    return self.copy_message(header.tag, input);
                }
                ClientTag::Terminate => return Ok(Found::Goodbye),
                ClientTag::Query
                | ClientTag::Parse
                | ClientTag::Bind
                | ClientTag::Describe
                | ClientTag::Execute
                | ClientTag::Close
                | ClientTag::Sync
                | ClientTag::Flush
                | ClientTag::FunctionCall => {}
            }
            if self.scan.discarding {
                return self.discard(header.tag, header.total, input, out);
            }
            if end > REQUEST_GATHER_BYTES {
                if at > 0 {
                    return Ok(self.part_before(at));
                }
                return self.begin_long(header.tag, header.total, input);
            }
            let Some(message) = rest.get(..header.total) else { return Ok(Found::Incomplete) };
            if self.copy_in && matches!(header.tag, ClientTag::Sync | ClientTag::Flush) && at == 0 {
                // A server in copy-in mode ignores them (section 55.2.3); it must see them all the same.
                return Ok(part(end, true));
            }
            self.scan.looked = end;
            if let Some(found) = self.look(header.tag, message, end)? {
                return Ok(found);
            }
        }
    }

    /// The request under way waits for what comes next: data of its COPY, or its end.
    fn is_of_copy(&self, input: &[u8]) -> Result<bool, Fault> {
        if matches!(self.scan.tail, Tail::Guess | Tail::Known) {
            return Ok(true);
        }
        let Some(tag) = client_header(input)?.map(|header| header.tag) else { return Ok(false) };
        let is_data = matches!(tag, ClientTag::CopyData | ClientTag::CopyDone | ClientTag::CopyFail);
        // These are ignored there.
        Ok(is_data || (self.copy_in && matches!(tag, ClientTag::Sync | ClientTag::Flush)))
    }

    /// Looks at one whole message that ends at `end`. `None`: the batch goes on.
    fn look(&mut self, tag: ClientTag, message: &[u8], end: usize) -> Result<Option<Found>, Fault> {
        let body = body(message);
        match tag {
            ClientTag::Query => {
                let text = read_query(body).map_err(|_| malformed(tag))?;
                let (found, fingerprint, state) = self.judge().text(text);
                let effects = found.if_sent();
                self.scan.batch.note_fingerprint(fingerprint);
                self.scan.batch.note_state(state);
                self.scan.batch.shareable &= effects.shareable && end == message.len() && !self.scan.open;
                self.scan.batch.texts.runs(effects.shareable);
                self.scan.batch.texts.note_alike(effects.alike);
                self.scan.batch.texts.note_execute();
                self.note_wishes(effects);
                self.scan.batch.note_sequences(effects);
                self.scan.batch.resets |= effects.resets_settings();
                self.scan.batch.note_names(effects);
                self.scan.batch.texts.note_alone(effects.deallocates.is_none());
                if let Some(executed) = self.executed(effects) {
                    self.scan.batch.note_sequences(&executed.judged_by(self.judge()));
                }
                self.scan.batch.changes_dialect |= self.may_change_dialect(effects);
                self.scan.batch.late = effects.controls
                    && end == message.len()
                    && !self.scan.open
                    && self.control_of(text).is_some();
                self.texts.push(found, state);
                Ok(Some(self.request(end)))
            }
            ClientTag::FunctionCall => {
                self.scan.batch.shareable = false;
                self.scan.batch.texts.runs(false);
                // It pins.
                let pins = !leaves_nothing(body);
                self.scan.batch.texts.note_alone(true);
                self.scan.batch.may_pin |= pins;
                if pins {
                    // It may be any function.
                    self.scan.batch.asks_sequence = asks_sequence(body);
                    self.scan.batch.draws =
                        if self.scan.batch.asks_sequence { Draws::No } else { Draws::Outright };
                    self.runs_code = true;
                }
                self.wants_own |= self.startup_differs && !self.is_at_home && pins;
                if pins && self.traces.pins().is_empty() && self.knowledge.are_placeholders_known() {
                    self.rare.get_or_insert_default().reads.add_any();
                }
                Ok(Some(self.request(end)))
            }
            ClientTag::Sync => {
                let found = self.request(end);
                if matches!(found, Found::Request { .. }) {
                    self.scan.tail = Tail::MayCome;
                }
                Ok(Some(found))
            }
            ClientTag::Flush => {
                if end == message.len() && !self.scan.open {
                    // Nothing is under way that it could bring forward.
                    self.scan.looked = 0;
                    return Ok(Some(Found::Drop { len: end }));
                }
                Ok(Some(self.part_before(end)))
            }
            ClientTag::Parse => {
                let parse = read_parse(body).map_err(|_| malformed(tag))?;
                let (found, state) = self.effects_of_parse(parse.name, parse.text, parse.content);
                let effects = found.if_sent();
                self.scan.batch.note_fingerprint(fingerprint_of(parse.content));
                self.scan.batch.note_state(state);
                // A name that is given or taken cannot be taken back when the request goes elsewhere.
                self.scan.batch.shareable &= effects.shareable && parse.name.is_empty();
                self.scan.batch.texts.parses(effects.shareable);
                let is_first = !self.scan.batch.parses;
                self.scan.batch.texts.note_alike(effects.alike && is_first);
                self.note_wishes_of_parse(effects, parse.name.is_empty());
                if !parse.name.is_ascii() {
                    self.note_raw_name();
                }
                self.scan.batch.note_sequences(effects);
                self.scan.batch.parses = true;
                self.scan.batch.resets |= effects.resets_settings();
                let names_matter = self.scan.batch.names_matter;
                self.scan.batch.note_names(effects);
                self.scan.batch.names_will_matter |= effects.statement_names;
                // What it is like is asked before it runs, when no other statement can stand in.
                let executes = if effects.executes.is_some() { Names::ToText } else { Names::NoMatter };
                self.scan.batch.names_matter = names_matter.max(executes);
                self.scan.batch.changes_dialect |= self.may_change_dialect(effects);
                self.scan.batch.uses_names |= !parse.name.is_empty();
                self.scan.batch.changes_names |= !parse.name.is_empty();
                self.scan.batch.parses_unnamed |= parse.name.is_empty();
                self.texts.push(found, state);
                Ok(None)
            }
            ClientTag::Bind => {
                let bind = read_bind(body).map_err(|_| malformed(tag))?;
                let is_first = self.scan.batch.parses_unnamed && !self.scan.batch.binds;
                let is_plain = is_first && bind.statement.is_empty() && bind.portal.is_empty();
                self.scan.batch.texts.note_alike(is_plain);
                self.scan.batch.binds = true;
                self.scan.batch.names_begin_to_matter();
                self.scan.batch.texts.runs_parsed();
                let named = !bind.statement.is_empty();
                self.wants_own |=
                    if named { self.scan.batch.wants_own } else { self.scan.batch.unnamed_wants_own };
                self.scan.batch.uses_names |= named;
                self.scan.batch.uses_unnamed |= !named && !self.scan.batch.parses_unnamed;
                let state = self.judge().state();
                let known = self.prepared.as_deref().and_then(|p| p.get(bind.statement)).cloned();
                match known {
                    Some(statement) => {
                        let effects = &*statement.judged_by(self.judge());
                        self.note_wishes(effects);
                        self.scan.batch.note_state(state);
                        if !self.scan.batch.parses {
                            self.scan.batch.note_fingerprint(statement.fingerprint());
                        }
                        self.scan.batch.shareable &= effects.shareable;
                        self.scan.batch.texts.runs(effects.shareable);
                        self.scan.batch.resets |= effects.resets_settings();
                        self.scan.batch.note_names(effects);
                        // What was the unnamed one before is replaced by then.
                        if effects.statement_names && (named || !self.scan.batch.parses_unnamed) {
                            self.scan.batch.names_matter = Names::ToMore;
                        }
                        self.scan.batch.changes_dialect |= self.may_change_dialect(effects);
                        self.scan.batch.note_sequences(effects);
                    }
                    None => {
                        self.scan.batch.shareable &= self.scan.batch.parses;
                        self.scan.batch.texts.runs(self.scan.batch.parses);
                    }
                }
                Ok(None)
            }
            ClientTag::Execute => {
                self.scan.batch.shareable &= self.scan.batch.binds;
                self.scan.batch.texts.runs(self.scan.batch.binds);
                // The unnamed portal, to its last row.
                let is_first = !self.scan.batch.texts.executes();
                self.scan.batch.texts.note_alike(is_first && body == b"\0\0\0\0\0");
                self.scan.batch.texts.note_execute();
                // Its portal may be of an earlier request of the transaction.
                self.scan.batch.texts.note_alone(true);
                Ok(None)
            }
            ClientTag::Close => {
                let named = names_statement(body);
                self.scan.batch.texts.note_alike(false);
                self.scan.batch.shareable &= body.first() != Some(&b'S');
                self.scan.batch.uses_names |= named;
                self.scan.batch.changes_names |= named;
                Ok(None)
            }
            ClientTag::Describe => {
                self.scan.batch.uses_names |= names_statement(body);
                let batch = &mut self.scan.batch;
                let is_plain = !batch.texts.executes()
                    && (body == b"P\0" && batch.binds
                        || body == b"S\0" && batch.parses_unnamed && !batch.binds);
                batch.texts.note_alike(is_plain);
                self.scan.batch.uses_unnamed |= body == b"S\0" && !self.scan.batch.parses_unnamed;
                Ok(None)
            }
            ClientTag::CopyData | ClientTag::CopyDone | ClientTag::CopyFail | ClientTag::Terminate => {
                Err(malformed(tag))
            }
        }
    }

    /// A text of these effects is part of the batch.
    fn note_wishes(&mut self, effects: &Effects) {
        let batch = &mut self.scan.batch;
        let (before, others) = (batch.resets, batch.texts.is_there() || self.scan.open);
        batch.texts.note();
        self.ties |= self.ties_by_text(effects);
        let ties = (self.startup_differs && self.may_tie(effects)) || self.settles(effects);
        if effects.touched.is_some() || effects.setting_source || before || others || ties {
            self.wish(effects, before, others);
        }
        if let Some(executed) = self.executed(effects) {
            let executed = executed.effects(self.judge());
            self.wish(&executed, before, others);
        }
    }

    /// What is only prepared does nothing yet, nor tells anything; but behind a RESET it is read by what that
    /// goes back to.
    fn note_wishes_of_parse(&mut self, effects: &Effects, unnamed: bool) {
        self.wants_own |= self.scan.batch.resets && self.startup_differs && !self.is_at_home;
        let before = std::mem::take(&mut self.wants_own);
        self.note_wishes(effects);
        let wants = std::mem::replace(&mut self.wants_own, before);
        if unnamed {
            self.scan.batch.unnamed_wants_own = wants;
        } else {
            self.scan.batch.wants_own |= wants;
        }
    }

    /// What a lone EXECUTE runs, when that was prepared by the protocol.
    fn executed(&self, effects: &Effects) -> Option<Arc<Statement>> {
        let name = effects.executes.as_deref()?;
        self.prepared.as_deref()?.get(name.as_bytes()).cloned()
    }

    /// A text behind one of these effects may be read otherwise.
    pub(super) fn may_change_dialect(&self, effects: &Effects) -> bool {
        let goes_back = || {
            self.dialect != Dialect::POSTGRES || self.settings.get("standard_conforming_strings").is_some()
        };
        (effects.controls && goes_back())
            || effects.may_set_name("standard_conforming_strings")
            || effects.may_set_name("client_encoding")
    }

    /// A text that was the unnamed statement before is not lexed again.
    fn effects_of_parse(&self, name: &[u8], text: &[u8], content: &[u8]) -> (Arc<Effects>, u64) {
        let prepared = self.prepared.as_deref().filter(|_| !self.scan.dialect_changed);
        let known = prepared.and_then(|p| p.get(name)).filter(|s| s.content() == content);
        match known {
            Some(statement) => {
                let state = self.judge().state();
                (statement.effects(self.judge()), state)
            }
            None => {
                let (effects, _, state) = self.judge().text(text);
                (effects, state)
            }
        }
    }

    /// The request ends at `end`.
    pub(super) fn request(&mut self, end: usize) -> Found {
        if self.must_wait(false) {
            self.scan.waits = true;
            return Found::Incomplete;
        }
        let batch = std::mem::replace(&mut self.scan.batch, Batch::EMPTY);
        let was_open = std::mem::replace(&mut self.scan.open, false);
        self.scan.looked = 0;
        self.scan.tail = Tail::No;
        let still = self.scan.resetting && self.outstanding > 0;
        self.scan.resetting = still || (batch.resets && !self.startup.is_empty());
        let alone = self.outstanding == 0 && self.boundary == Boundary::Idle && !was_open;
        self.note_questions(batch);
        self.runs_nothing = !batch.texts.runs_alone() && !batch.binds && !was_open;
        let quiet = self.outstanding == 0 || self.under_way_is_shareable;
        let choosy = self.is_choosy();
        let home = self.note_home(batch.texts.only_reads() && !was_open);
        let shareable = batch.shareable
            && !choosy
            // Its server must first say whether the client may still be who it is.
            && !self.settings.is_somebody()
            && quiet
            && !was_open
            && self.boundary == Boundary::Idle
            && self.traces.pins().is_empty();
        self.under_way_is_shareable = shareable;
        self.scan.may_pin = batch.may_pin;
        self.proven_by = if shareable && batch.judged_by != NOTHING_JUDGED { batch.judged_by } else { 0 };
        Found::Request {
            len: end,
            needs: Needs {
                shareable,
                alike: shareable
                    && batch.texts.is_alike()
                    && batch.texts.executes()
                    && alone
                    && self.is_plain(),
                fingerprint: batch.fingerprint,
                lease: false,
                continues: was_open,
                lists: false,
                prepares: batch.parses
                    && !batch.parses_unnamed
                    && !batch.binds
                    && alone
                    && self.pins().is_empty(),
                choosy,
                late: batch.late && !choosy,
                home,
            },
        }
    }

    /// What the server it goes to must have is known.
    fn note_questions(&mut self, batch: Batch) {
        self.names_matter = match (self.names_matter, batch.names_matter) {
            (Names::NoMatter, names) | (names, Names::NoMatter) => names,
            _ => Names::ToMore,
        };
        let names_matter = batch.names_matter.matter();
        // Who has names on a server stays there.
        self.wants_own |=
            names_matter && self.startup_differs && !self.is_at_home && !self.traces.holds_names();
        // Statements may be executed by name that ask, or that draw.
        let may_ask = names_matter && !self.traces.holds_names();
        self.asks = self.asks.max(match batch.asks_sequence {
            true => Asks::Outright,
            false if may_ask => Asks::Perhaps,
            false => Asks::No,
        });
        let has_no_temporary = !batch.may_pin && self.outstanding == 0 && self.traces.pins().is_empty();
        self.draws = self.draws.max(batch.draws.of_a_client(has_no_temporary));
        self.controls |= batch.controls;
        self.runs_code |= batch.texts.runs_code();
        self.plans_otherwise |= batch.texts.plans_otherwise();
        if batch.characteristics {
            self.rare.get_or_insert_default().characteristics = true;
        }
    }

    /// The first `at` bytes go ahead of a batch that has not ended.
    pub(super) fn part_before(&mut self, at: usize) -> Found {
        self.wants_own |= self.scan.batch.wants_own || self.scan.batch.unnamed_wants_own;
        if self.must_wait(true) {
            self.scan.waits = true;
            return Found::Incomplete;
        }
        self.scan.looked = 0;
        self.under_way_is_shareable = false;
        // Nothing of it is there yet: names can be brought in front of it.
        self.scan.batch.names_begin_to_matter();
        self.note_questions(self.scan.batch);
        if self.traces.pins().is_empty() && self.knowledge.are_placeholders_known() {
            self.rare.get_or_insert_default().reads.add_any();
        }
        self.runs_nothing = false;
        let choosy = self.is_choosy();
        let home = self.note_home(false);
        let mut found = part(at, std::mem::replace(&mut self.scan.open, true));
        if let Found::Part { needs, .. } = &mut found {
            (needs.choosy, needs.home) = (choosy, home);
        }
        found
    }

    /// What a name means can depend on whether a request before it succeeds. A guess could be wrong, so what
    /// uses names waits for the answer; so does a `part`, the rest of which may use them. What goes is noted.
    pub(super) fn must_wait(&mut self, part: bool) -> bool {
        let under_way = self.outstanding > 0;
        self.names_under_way &= under_way;
        self.dialect_under_way &= under_way;
        // Its server must listen first.
        let goes_home = under_way && self.is_away() && (part || !self.scan.batch.texts.only_reads());
        let batch = &self.scan.batch;
        let uses_names = batch.uses_names || part;
        let runs = batch.parses || batch.binds;
        // Any Parse or Query may be what replaces or destroys the unnamed one.
        let uses_unnamed = batch.uses_unnamed || (part && !batch.parses_unnamed);
        // Whether its transaction has failed decides whether its statements can be brought there.
        let brings_names = under_way && batch.names_matter.matter() && !self.traces.holds_names();
        // Its client cannot change servers before all that goes before is answered.
        let chooses =
            (under_way || self.is_being_asked()) && self.is_choosy() && self.boundary == Boundary::Idle;
        let waits = (self.names_under_way && uses_names)
            || goes_home
            || (under_way && uses_unnamed)
            || brings_names
            || self.dialect_under_way
            || (self.scan.resetting && under_way)
            || chooses;
        let ends_copy = under_way
            && match self.scan.tail {
                Tail::No | Tail::MayCome => false,
                Tail::Guess => !runs,
                Tail::Known => true,
            };
        if waits && !self.scan.open && !ends_copy {
            return true;
        }
        self.names_under_way |= self.scan.batch.changes_names;
        self.dialect_under_way |= self.scan.batch.changes_dialect;
        false
    }
}
