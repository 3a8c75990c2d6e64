//! A server on which statements have the names that one client gave them, and on which no other client has
//! statements. There the server itself handles everything that refers to names: `EXPLAIN EXECUTE`, PREPARE of
//! a name that is taken, `pg_prepared_statements`, code that runs any of them.
//!
//! Must not know: which texts need it (`effects.rs`).
//!
//! Invariants: no statement of another client is prepared there, and none under a name of Weir's; the client
//! keeps the server until all its names are gone (DISCARD ALL, a lone DEALLOCATE ALL), until the server says
//! that none of them comes from SQL, or until it disconnects; then the server is reset.

use crate::back::Back;
use crate::effects::{Draws, Effects};
use crate::front::Front;
use crate::message::query::{SYNC, put_parse, put_query, put_statement};
use crate::prepared::{Origin, OwnNames, Statement};
use crate::queue::{Internal, Owed, Undo};
use crate::session_state::{Change, all_that_decides_reading, put_changes};
use std::sync::Arc;
use weir_sql::Scope;
use weir_sql::decides_reading;
use weir_wire::{Boundary, Pin};

/// What a request lacks that began in a failed transaction, where nothing can be prepared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Lacks {
    #[default]
    Nothing,
    /// The names of its client's statements, which matter to it.
    Names,
    /// The same, and what may have ended the transaction has been sent.
    NamesBehindItsEnd,
}

impl Back {
    /// From here on the names of the statements here are this client's. `at_start`: nothing of its request
    /// has been sent yet, so that what is sent ahead of it can fail by itself.
    pub(super) fn take_own_names(&mut self, front: &mut Front, at_start: bool, out: &mut Vec<u8>) {
        // A failed transaction prepares nothing and runs nothing. What went before is answered: the front has
        // waited for it.
        if self.own_names.is_some() || self.skipping {
            return;
        }
        if self.boundary == Boundary::Failed {
            self.lacks = Lacks::Names;
            return;
        }
        self.take_names(front, at_start, false, out);
    }

    /// This has been sent in a failed transaction.
    pub(super) fn note_end_of_failure(&mut self, effects: &Effects) {
        if self.lacks == Lacks::Names && effects.controls {
            self.lacks = Lacks::NamesBehindItsEnd;
        }
    }

    /// In front of what asks for names behind what may have ended a failed transaction. If that has not, the
    /// server skips them with all else. One that could not be read would fail the request: where that may be,
    /// it is brought ahead of the next one.
    pub(super) fn take_names_behind(&mut self, front: &mut Front, effects: &Effects, out: &mut Vec<u8>) {
        if self.lacks == Lacks::NamesBehindItsEnd && effects.statement_names {
            self.lacks = Lacks::Nothing;
            self.take_names(front, false, true, out);
        }
    }

    /// A text of these effects would be told of other names: nothing can go in between its statements. What
    /// unknown code asks nobody knows.
    pub(super) fn lacks_names_for(&self, effects: &Effects) -> bool {
        let is_known = [Pin::Unrecognised, Pin::Code].iter().all(|&pin| !effects.pins.contains(pin));
        self.lacks != Lacks::Nothing && effects.controls && effects.statement_names && is_known
    }

    fn take_names(&mut self, front: &mut Front, at_start: bool, sure: bool, out: &mut Vec<u8>) {
        let first = !front.traces.pins().contains(Pin::SqlPrepare);
        front.traces.hold_names();
        self.traces.hold_names();
        // What may be drawn or asked by a statement's name is not known: it was forgotten ahead of this.
        self.drawn_by = front.unique();
        front.drew_at = self.server_pid();
        let mut bytes = Vec::new();
        let names = self.prepared.take_all();
        self.close_stand_ins(names, &mut bytes);
        let mut own = self.bring_names(front, at_start, false, sure, &mut bytes);
        own.taken_for = self.queue.tail().filter(|_| first).map(|tail| tail.number);
        self.own_names = Some(own);
        self.write(&bytes, out);
    }

    /// The server has refused the request for which names were to matter, before anything of it ran: where
    /// there are none, nothing was left; where there are, the server is asked whether SQL has given any.
    pub(crate) fn give_names_back(&mut self, front: &mut Front) {
        let number = self.queue.head().map(|head| head.number);
        let has_names = front.prepared.as_deref().is_some_and(|prepared| !prepared.is_empty());
        let for_this =
            self.own_names.as_deref().is_some_and(|own| own.taken_for == number && number.is_some());
        if for_this && has_names {
            self.note_names_may_be_gone();
        }
        // What stands behind it was sent for a server with these names.
        if for_this && !has_names && self.queue.len() == 1 {
            self.own_names = None;
            self.traces.forget_names();
            front.traces.forget_names();
        }
    }

    /// The server has no statement any more that SQL has prepared, by its own word: those of the protocol can
    /// go with their client again. False: not now, because what is sent behind the question may give a name.
    pub(crate) fn no_name_is_left(&mut self, front: &mut Front) -> bool {
        if self.queue.len() > 1 {
            return false;
        }
        let names = front.prepared.as_deref().map(|prepared| prepared.in_order()).unwrap_or_default();
        // One that was prepared here under its own name was read under settings that nobody knows.
        if names.iter().all(|(_, statement)| statement.is_anybodys()) {
            self.own_names = None;
            self.traces.forget_names();
            front.traces.forget_names();
            front.forget_made_by_sql();
            self.prepared.leftovers.extend(names.into_iter().map(|(name, _)| name));
        }
        true
    }

    /// Names that the server has skipped, because they came behind an error that nobody knew of yet, are
    /// brought in front of the next request that can have them.
    pub(super) fn bring_missed_names(&mut self, front: &mut Front, out: &mut Vec<u8>) {
        if self.boundary == Boundary::Failed
            || self.skipping
            || self.needs_sync
            || !self.own_names.as_deref().is_some_and(|own| own.missed)
        {
            return;
        }
        let mut bytes = Vec::new();
        let own = self.bring_names(front, true, true, false, &mut bytes);
        self.own_names = Some(own);
        self.write(&bytes, out);
    }

    /// Prepares the client's statements under its own names. `again`: some may be there. `sure`: only those
    /// that can be read as things are.
    fn bring_names(
        &mut self,
        front: &mut Front,
        at_start: bool,
        again: bool,
        sure: bool,
        bytes: &mut Vec<u8>,
    ) -> Box<OwnNames> {
        let mut own = Box::new(OwnNames::default());
        let mut statements =
            front.prepared.as_deref().map(|prepared| prepared.in_order()).unwrap_or_default();
        // One that cannot be read any more must not fail its client's transaction, nor lock anything in it.
        // What is prepared survives the savepoint.
        let in_transaction =
            self.boundary == Boundary::InTransaction || (self.queue.len() > 1 && !self.only_asks());
        let applied = Arc::clone(&self.applied);
        let reads = |name: &str| decides_reading(name) || name == "search_path";
        let unknown = self.has_other_settings();
        if sure {
            let (all, state) = (statements.len(), front.judge().state());
            statements.retain(|(_, statement)| {
                let changes = self.changes_to_read(&applied, statement, reads);
                !unknown && changes.is_empty() && statement.state() == state
            });
            own.missed = statements.len() < all;
        }
        let differs = unknown
            || statements
                .iter()
                .any(|(_, statement)| !self.changes_to_read(&applied, statement, reads).is_empty());
        let guarded = at_start && (in_transaction || differs) && !statements.is_empty();
        if guarded {
            self.end_ahead(at_start, bytes);
            if !in_transaction {
                self.put_quietly(b"BEGIN", bytes);
            }
            self.put_quietly(b"SAVEPOINT weir_names", bytes);
        }
        for (name, statement) in statements {
            if guarded
                && unknown
                && statement.origin().private == 0
                && let Some(then) = statement.settings()
            {
                // What is in force now is not known, what was then is.
                let path = Change { name: "search_path", value: then.get("search_path") };
                let mut changes = all_that_decides_reading(then);
                changes.push(path);
                put_changes(bytes, changes.iter(), Scope::Transaction);
                self.queue.push(Owed::Internal(Internal::Quiet));
            } else if guarded {
                let changes = self.changes_to_read(&applied, &statement, reads);
                if !changes.is_empty() {
                    put_changes(bytes, changes.iter(), Scope::Transaction);
                    self.queue.push(Owed::Internal(Internal::Quiet));
                }
            } else if !guarded {
                self.end_ahead(at_start, bytes);
            }
            if again {
                put_statement(bytes, b'C', &name);
                self.queue.push(Owed::HiddenClose { leftover: None });
            }
            self.put_own(&name, &statement, at_start, bytes);
            own.brought(&statement);
            if guarded {
                self.end_ahead(at_start, bytes);
                self.put_quietly(b"ROLLBACK TO SAVEPOINT weir_names", bytes);
            }
        }
        if guarded && in_transaction {
            self.put_quietly(b"RELEASE SAVEPOINT weir_names", bytes);
        } else if guarded {
            self.put_quietly(b"ROLLBACK", bytes);
        } else {
            self.end_ahead(at_start, bytes);
        }
        own
    }

    /// Prepares a statement under its client's name for it.
    fn put_own(&mut self, name: &[u8], statement: &Statement, quiet: bool, bytes: &mut Vec<u8>) {
        put_parse(bytes, name, &statement.resolved_content());
        self.tally.prepares += 1;
        let undo = Some(Box::new(Undo::Brought(statement.id())));
        self.queue.push(Owed::Parse { statement: None, undo, taken: None, hidden: true, quiet });
    }

    fn put_quietly(&mut self, text: &[u8], bytes: &mut Vec<u8>) {
        put_query(bytes, text);
        self.queue.push(Owed::Internal(Internal::Quiet));
        self.unnamed = None;
    }

    /// What went ahead of a request ends here: an error in it is not the request's.
    fn end_ahead(&mut self, at_start: bool, bytes: &mut Vec<u8>) {
        if at_start && !bytes.is_empty() {
            bytes.extend_from_slice(SYNC);
            self.queue.push(Owed::HiddenSync);
        }
    }

    /// A Parse goes as it is: whether its name is taken is the server's to say.
    pub(super) fn parse_own(
        &mut self,
        front: &mut Front,
        name: &[u8],
        content: &[u8],
        effects: Arc<Effects>,
    ) {
        let number = self.queue.tail().map_or(0, |tail| tail.number);
        if let Some(own) = self.own_names.as_deref_mut() {
            own.given_in = number;
        }
        let state = front.judge().state();
        let statement = Statement::new(content.into(), [0; 16], Origin::default(), effects, state);
        let prepared = front.prepared_mut();
        let before = prepared.get(name).cloned();
        prepared.insert(name, Arc::clone(&statement));
        let undo = Some(Box::new(Undo::Renamed { name: name.into(), statement, before }));
        self.queue.push(Owed::Parse { statement: None, undo, taken: None, hidden: false, quiet: false });
    }

    /// In front of the first use of a statement that was prepared elsewhere before: can it still be read, and
    /// are its columns what its client was told?
    pub(super) fn prove_own(&mut self, name: &[u8], statement: Option<&Arc<Statement>>, out: &mut Vec<u8>) {
        let Some(statement) = statement else { return };
        if self.own_names.as_deref_mut().is_some_and(|own| own.take_lost(statement)) {
            // The server says why it cannot be read, as where it has one that must be read anew.
            self.put_own(name, statement, false, out);
        }
        if self.own_names.as_deref().is_some_and(|own| own.must_ask(statement)) {
            let stops = !self.skipping;
            self.ask_shape(Arc::clone(statement), name, 0, stops, out);
        }
    }

    /// SQL executes one that could not be prepared here: the server will say that there is none.
    pub(super) fn note_why_lost(&mut self, front: &Front, effects: &Effects) {
        let statement = || front.prepared.as_deref()?.get(effects.executes.as_deref()?.as_bytes());
        if let Some(own) = self.own_names.as_deref()
            && let Some(why) = statement().and_then(|statement| own.why_lost(statement))
        {
            self.refused_stand_in = Some(why.into());
        }
    }
}

impl Front {
    /// It executes or deallocates a statement of the protocol's by its name.
    pub(super) fn names_own(&self, effects: &Effects) -> bool {
        let names = effects.executes.iter().chain(&effects.deallocates);
        let known = |name: &str| self.prepared.as_deref().is_some_and(|p| p.get(name.as_bytes()).is_some());
        names.into_iter().any(|name| known(name))
    }

    /// A text that speaks of statements by name, with what it may run so: a lone EXECUTE of a name that SQL
    /// has given runs what SQL has prepared; EXECUTE within another statement, or beside others, runs any of
    /// all.
    pub(crate) fn with_named(&mut self, effects: Arc<Effects>) -> Arc<Effects> {
        match &effects.prepares {
            Some(prepared) => self.note_made_by_sql(prepared),
            // Among others, or by code: nobody has read it.
            None if effects.pins.contains(Pin::SqlPrepare) => self.note_made_by_sql(&unread()),
            None => {}
        }
        let known = |name: &str| self.prepared.as_deref().is_some_and(|p| p.get(name.as_bytes()).is_some());
        let runs_any = effects.runs_names && effects.executes.is_none() && !effects.pins.contains(Pin::Code);
        let runs_by_sql = effects.executes.as_deref().is_some_and(|name| !known(name));
        if !runs_any && !runs_by_sql {
            return effects;
        }
        let mut all = Effects::clone(&effects);
        if let Some(by_sql) = self.made_by_sql() {
            all = all.and(&by_sql);
        }
        let names = self.prepared.as_deref().filter(|_| runs_any).map(|prepared| prepared.in_order());
        for (_, statement) in names.into_iter().flatten() {
            all = all.and(&statement.effects(self.judge()));
        }
        all.executes.clone_from(&effects.executes);
        all.deallocates.clone_from(&effects.deallocates);
        all.names.clone_from(&effects.names);
        Arc::new(all)
    }

    fn note_made_by_sql(&mut self, prepared: &Effects) {
        let edition = self.knowledge.edition();
        let before = self.made_by_sql();
        let all = before.map_or_else(|| prepared.clone(), |before| before.and(prepared));
        self.rare.get_or_insert_default().by_sql = Some((Arc::new(all), edition));
    }

    /// What the statements do that SQL has prepared for this client. None: there are none.
    pub(super) fn made_by_sql(&self) -> Option<Arc<Effects>> {
        match self.rare.as_deref().and_then(|rare| rare.by_sql.as_ref()) {
            Some((effects, edition)) if *edition == self.knowledge.edition() => Some(Arc::clone(effects)),
            // The code in them may have changed, or code has made them.
            Some(_) => Some(Arc::new(unread())),
            None => None,
        }
    }

    fn forget_made_by_sql(&mut self) {
        if let Some(rare) = self.rare.as_deref_mut() {
            rare.by_sql = None;
        }
    }
}

/// Of a statement that nobody has read.
fn unread() -> Effects {
    Effects {
        pins: Pin::Code.into(),
        statement_names: true,
        may_free: true,
        runs_code: true,
        ..Effects::default()
    }
}

/// What is executed by a name of the client's may have been prepared by SQL, which nobody read.
pub(super) fn effects_of_named(known: Option<Arc<Effects>>) -> Arc<Effects> {
    let any = Effects { may_set: true, draws: Draws::May, ..Effects::default() };
    Arc::new(known.map_or(any.clone(), |known| known.and(&any)))
}
