//! Prepared statements on their way to a server: statements are renamed, missing ones are parsed first, and
//! the least recently used are closed.
//!
//! Invariant: a statement is used only after a Parse that this very server has confirmed or has ahead of it
//! in the same batch; no statement that the batch uses is closed.

use super::own_names::effects_of_named;
use super::{Message, malformed};
use crate::back::{Back, Unnamed};
use crate::effects::Effects;
use crate::frame::{ClientTag, HEADER_BYTES, body, put_cstr};
use crate::front::Front;
use crate::message::query::{
    ASIDE_REPLIES, Bind, FLUSH, Object, count_parameters, put_aside, put_close_portal, put_parse,
    put_statement, read_bind, read_object, read_parse,
};
use crate::prepared::{Name, Origin, Runner, Statement, has_literals, is_server_name};
use crate::queue::{Owed, Undo};
use crate::reset::put_bind_nobody;
use crate::session_state::{
    Change, Settings, all_that_decides_reading, difference, put_visit, what_decides_reading,
};
use std::sync::Arc;
use weir_sql::{decides_reading, decides_text};
use weir_wire::{Boundary, Fault, Pin, Pins};

/// A name on a server for a statement of Weir's own in a client's batch.
const ASIDE: &[u8] = b"weir_aside";

/// Why a client stays where it has prepared something that Weir does not keep.
pub(crate) const RAW_PARSE: [Pin; 2] = [Pin::Prepared, Pin::Unrecognised];

/// The effects of a text with those of what it executes, what to undo when it fails, and the names that stand
/// in.
type StandIns = (Arc<Effects>, Option<Box<Undo>>, Vec<Box<[u8]>>);

impl Back {
    /// `EXECUTE name` and `DEALLOCATE name` of a name that was prepared by the protocol mean nothing to the
    /// server. Statements of those names are put there for the text to find, and closed behind it.
    pub(super) fn stand_ins(
        &mut self,
        front: &mut Front,
        effects: Arc<Effects>,
        out: &mut Vec<u8>,
    ) -> StandIns {
        let (mut effects, mut undo, mut names) = (effects, None, Vec::new());
        let speaks_of_names = effects.statement_names || effects.pins.contains(Pin::SqlPrepare);
        if effects.executes.is_none() && effects.deallocates.is_none() && !speaks_of_names {
            return (effects, undo, names);
        }
        effects = front.with_named(effects);
        // They are there under their names.
        let has_own = self.own_names.is_some() || self.skipping;
        let execute = effects.executes.as_deref().map(|name| Box::from(name.as_bytes()));
        if let Some(name) = execute
            && let Some(statement) =
                front.prepared.as_deref().and_then(|prepared| prepared.get(&name)).cloned()
        {
            let judged = statement.effects(front.judge());
            if !has_own {
                let back = self.go_back_to(front, &statement, out);
                self.put_stand_in(&name, &statement.resolved_content(), out);
                if let Some(back) = back {
                    self.put_aside(&back, out);
                }
                names.push(name);
            }
            effects = Arc::new(effects.and(&judged));
        }
        let deallocate = effects.deallocates.as_deref().map(|name| Box::from(name.as_bytes()));
        if let Some(name) = deallocate
            && let Some(statement) = front.prepared.as_deref_mut().and_then(|prepared| prepared.remove(&name))
        {
            // One that could not be read here is not there, and can be dropped all the same.
            let is_lost = self.own_names.as_deref().is_some_and(|own| own.is_lost(&statement));
            if (!has_own || is_lost) && !names.contains(&name) {
                self.put_stand_in(&name, b"\0\0\0", out);
                names.push(name.clone());
            }
            undo = Some(Box::new(Undo::Unnamed { name, statement }));
        }
        (effects, undo, names)
    }

    fn put_stand_in(&mut self, name: &[u8], content: &[u8], out: &mut Vec<u8>) {
        put_statement(out, b'C', name);
        self.queue.push(Owed::HiddenClose { leftover: None });
        put_parse(out, name, content);
        self.queue.push(Owed::Parse { statement: None, undo: None, taken: None, hidden: true, quiet: true });
    }

    pub(super) fn close_stand_ins(&mut self, names: Vec<Box<[u8]>>, out: &mut Vec<u8>) {
        for name in names {
            put_statement(out, b'C', &name);
            self.queue.push(Owed::HiddenClose { leftover: Some(name) });
        }
    }

    /// Closes what an error left behind.
    pub(super) fn close_leftovers(&mut self, out: &mut Vec<u8>) {
        if self.prepared.leftovers.is_empty() {
            return;
        }
        let mut bytes = Vec::new();
        let names = std::mem::take(&mut self.prepared.leftovers);
        self.close_stand_ins(names, &mut bytes);
        self.write(&bytes, out);
    }

    /// A statement that drops all prepared ones is about to run: what is sent behind it must prepare again.
    pub(super) fn drop_statements(&mut self, front: &mut Front, effects: &Effects) -> Option<Box<Undo>> {
        if !effects.drops_all_statements() {
            return None;
        }
        self.prepared.distrust_all();
        self.unnamed = None;
        let names = front.prepared.as_deref_mut()?.take_names();
        (!names.is_empty()).then(|| Box::new(Undo::AllUnnamed(names)))
    }

    /// The first temporary table of a session stands in front of others of its name, also for what is
    /// prepared already. The server may have had some before, for another client, and would not look again.
    pub(super) fn read_anew_behind_temporary(&mut self, front: &Front, effects: &Effects) {
        // Code may make one, too.
        let may_make = |pins: Pins| pins.contains(Pin::TemporaryTable) || pins.contains(Pin::Code);
        if may_make(effects.pins) && !may_make(front.traces.pins()) {
            self.prepared.distrust_all();
            self.unnamed = None;
        }
    }

    pub(super) fn parse(
        &mut self,
        front: &mut Front,
        message: Message<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        if !message.is_kept() {
            return self.parse_raw(front, message, out);
        }
        let parse = read_parse(body(message.bytes)).map_err(|_| malformed(ClientTag::Parse))?;
        let effects = match front.next_text() {
            Some(effects) => effects,
            None => front.judge().text(parse.text).0,
        };
        self.take_names_behind(front, &effects, out);
        if let Some(why) = self.refuses(&effects) {
            if parse.name.is_empty() {
                let prepared = front.prepared_mut();
                (prepared.unnamed, prepared.answered, prepared.unnamed_is_raw) = (None, None, false);
            }
            put_bind_nobody(out);
            self.queue.push(Owed::Doomed(Some(why.told())));
            return Ok(());
        }
        if effects.runs_when_parsed
            && has_literals(parse.content)
            && front.prepared_mut().get(parse.name).is_none()
        {
            // Here, and never again elsewhere.
            return self.parse_raw(front, message, out);
        }
        let otherwise = self.is_read_otherwise(front, parse.content, &effects);
        if parse.name.is_empty() {
            let statement = self.parse_unnamed(front, parse.content, effects, otherwise);
            out.extend_from_slice(message.bytes);
            if otherwise {
                self.ask_reading(statement, out);
            }
            return Ok(());
        }
        if !parse.name.is_ascii() {
            // What it is on a server depends on its client's encoding, there and then.
            return self.parse_raw(front, message, out);
        }
        if self.own_names.is_some() {
            if !front.prepared_mut().has_room() {
                return self.parse_raw(front, message, out);
            }
            self.parse_own(front, parse.name, parse.content, effects);
            out.extend_from_slice(message.bytes);
            return Ok(());
        }
        if let Some(existing) = front.prepared_mut().get(parse.name).cloned() {
            self.parse_taken(front, parse.name, parse.content, &existing, out);
            return Ok(());
        }
        if !self.prepared.is_enabled() || !front.prepared_mut().has_room() {
            return self.parse_raw(front, message, out);
        }
        let mut origin = self.origin(front);
        if otherwise && origin.private == 0 {
            origin.private = front.next_private();
        }
        let key = Statement::key_of(parse.content, origin);
        let content = self.prepared.content(&key).unwrap_or_else(|| parse.content.into());
        let mut statement = Statement::new(content, key, origin, effects, front.judge().state());
        if !otherwise {
            statement = statement.under(&self.applied);
        }
        front.prepared_mut().insert(parse.name, Arc::clone(&statement));
        let undo = Box::new(Undo::Named { name: parse.name.into(), statement: Arc::clone(&statement) });
        let by = self.runner(front, &statement);
        let (server_name, number) = self.prepared.prepare(&statement, front.owner, by, false);
        put_parse(out, &server_name, parse.content);
        self.queue.push(Owed::Parse {
            statement: Some((Arc::clone(&statement), number)),
            undo: Some(undo),
            taken: None,
            hidden: false,
            quiet: false,
        });
        self.ask_shape(Arc::clone(&statement), &server_name, number, false, out);
        if otherwise {
            self.ask_reading(statement, out);
        }
        self.evict(out);
        Ok(())
    }

    /// The server itself says that the name is taken, in its order of checks. Where it lacks the statement of
    /// that name, which it might not be able to prepare any more, an empty one has the name meanwhile.
    fn parse_taken(
        &mut self,
        front: &Front,
        name: &[u8],
        content: &[u8],
        existing: &Statement,
        out: &mut Vec<u8>,
    ) {
        let by = self.runner(front, existing);
        let server_name = self.prepared.find(existing, front.owner, by);
        if server_name.is_none() {
            self.put_stand_in(name, b"\0\0\0", out);
        }
        put_parse(out, server_name.as_ref().map_or(name, |name| &name[..]), content);
        let taken = Some(name.into());
        self.queue.push(Owed::Parse { statement: None, undo: None, taken, hidden: false, quiet: false });
        if server_name.is_none() {
            self.close_stand_ins(vec![name.into()], out);
        }
    }

    /// Asks what the server makes of a statement. With `stops` the rest waits for the answer.
    pub(super) fn ask_shape(
        &mut self,
        statement: Arc<Statement>,
        name: &[u8],
        number: u64,
        stops: bool,
        out: &mut Vec<u8>,
    ) {
        put_statement(out, b'D', name);
        self.queue.push(Owed::Shape { statement, number, stops, visible: false, types: None });
        if stops {
            out.extend_from_slice(FLUSH);
            self.stop = Some(out.len());
        }
    }

    /// A Parse that Weir cannot keep: it goes as it is, and the client stays where it went.
    fn parse_raw(&mut self, front: &mut Front, message: Message<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let names_unnamed = body(message.bytes).first() == Some(&0);
        if names_unnamed {
            self.unnamed = None;
            let prepared = front.prepared_mut();
            prepared.unnamed = None;
            prepared.unnamed_is_raw = true;
        }
        for pin in RAW_PARSE {
            front.traces.pin(pin);
            self.traces.pin(pin);
        }
        if let Some(tail) = self.queue.tail_mut() {
            tail.raw = true;
        }
        let undo = names_unnamed.then(|| Box::new(Undo::Replaced(None)));
        self.queue.push(Owed::Parse { statement: None, undo, taken: None, hidden: false, quiet: false });
        out.extend_from_slice(message.bytes);
        Ok(())
    }

    fn parse_unnamed(
        &mut self,
        front: &mut Front,
        content: &[u8],
        effects: Arc<Effects>,
        otherwise: bool,
    ) -> Arc<Statement> {
        let state = front.judge().state();
        let prepared = front.prepared_mut();
        let before = prepared.unnamed.take();
        prepared.unnamed_is_raw = false;
        let statement = match &before {
            // One of which the client was told anything is read anew.
            Some(same)
                if !otherwise
                    && same.content() == content
                    && same.shape().is_none()
                    && same.settings().is_some_and(|then| then.plan_key() == self.applied.plan_key()) =>
            {
                Arc::clone(same)
            }
            _ if otherwise => Statement::unnamed(content, effects, state),
            _ => Statement::unnamed(content, effects, state).under(&self.applied),
        };
        prepared.unnamed = Some(Arc::clone(&statement));
        let undo = Some(Box::new(Undo::Replaced(Some(Arc::clone(&statement)))));
        self.sent_unnamed(Arc::clone(&statement));
        self.queue.push(Owed::Parse { statement: None, undo, taken: None, hidden: false, quiet: false });
        statement
    }

    fn sent_unnamed(&mut self, statement: Arc<Statement>) {
        let entry = self.queue.tail().map_or(0, |entry| entry.number);
        self.unnamed = Some(Unnamed { statement, entry, confirmed: false });
    }

    /// What Weir has asked last is what the client asks now.
    fn shape_is_for_client(&mut self, wanted: &Arc<Statement>) -> bool {
        match self.queue.last_mut() {
            Some(Owed::Shape { statement, stops: false, visible: visible @ false, .. })
                if Arc::ptr_eq(statement, wanted) =>
            {
                *visible = true;
                true
            }
            _ => false,
        }
    }

    /// What gives no rows is described as it was read, whatever has become of its tables or the
    /// `search_path`, and in a failed transaction, too: PostgreSQL looks again for columns only. Reading it
    /// anew might fail.
    fn is_told_by_heart(&mut self, statement: &Statement, front: &Front) -> bool {
        statement.shape().is_some_and(|shape| !shape.has_columns()) && self.lacks(front, statement)
    }

    fn lacks(&mut self, front: &Front, statement: &Statement) -> bool {
        let by = self.runner(front, statement);
        self.prepared.find(statement, front.owner, by).is_none()
    }

    /// The client as one that runs this statement here now.
    fn runner(&self, front: &Front, statement: &Statement) -> Runner {
        let unsure = statement.is_personal() || self.plans_are_unsure(front);
        Runner { client: front.unique(), key: (!unsure).then(|| front.settings.kept_plan_key()) }
    }

    pub(super) fn evict(&mut self, out: &mut Vec<u8>) {
        while let Some(name) = self.prepared.evict() {
            put_statement(out, b'C', &name);
            self.queue.push(Owed::HiddenClose { leftover: Some(name) });
        }
    }

    /// Its client may have given it settings that Weir does not know.
    pub(super) fn has_other_settings(&self) -> bool {
        let pins = self.traces.pins();
        pins.contains(Pin::Setting)
            || pins.contains(Pin::Unrecognised)
            || pins.contains(Pin::TemporaryTable)
            || pins.contains(Pin::Code)
            || self.may_have_set
    }

    /// What is in force for what is sent now is what Weir has applied.
    fn knows_settings(&self, front: &Front) -> bool {
        !self.has_other_settings() && !self.queue.may_change_settings(front.owner)
    }

    /// It is read under a setting that this transaction or batch has set: what its literals come to there
    /// can be told from nothing that Weir keeps, so the server is asked.
    fn is_read_otherwise(&self, front: &Front, content: &[u8], effects: &Effects) -> bool {
        // A lone SET is taken word for word, but for escapes in its literals.
        let is_word_for_word = effects.names.is_some() && !content.contains(&b'\\');
        self.own_names.is_none()
            && (self.reads_otherwise || self.queue.changes_reading(front.owner) || self.applied.has_doubt())
            && has_literals(content)
            && !effects.is_read_late
            && !is_word_for_word
    }

    /// Asks under which settings the statement in front was read, in its own batch: behind that they may be
    /// others. Nothing is done to the transaction that reading the statement has not done.
    fn ask_reading(&mut self, statement: Arc<Statement>, out: &mut Vec<u8>) {
        put_aside(out, ASIDE, &what_decides_reading());
        self.queue.push(Owed::Aside { left: ASIDE_REPLIES, reading: Some(statement) });
    }

    /// Under which settings a statement that is sent now will be parsed.
    fn origin(&self, front: &mut Front) -> Origin {
        let private = if self.knows_settings(front) { 0 } else { front.next_private() };
        Origin { plan_key: self.applied.plan_key(), private }
    }

    /// Sees to it that the server has the statement of a client's name when the next message arrives there.
    /// Returns the statement to use, which is another one when it must be parsed again under other settings
    /// than before, and its name there.
    fn ensure(
        &mut self,
        front: &mut Front,
        name: &[u8],
        statement: Arc<Statement>,
        out: &mut Vec<u8>,
    ) -> (Arc<Statement>, Name) {
        let mut statement = statement;
        let by = self.runner(front, &statement);
        if let Some(server_name) = self.prepared.find(&statement, front.owner, by) {
            return (statement, server_name);
        }
        let mut origin = self.origin(front);
        let mut back = None;
        if origin != statement.origin() {
            back = self.go_back_to(front, &statement, out);
            if back.is_some() && origin.private == 0 {
                origin.private = front.next_private();
            }
            let read = self.is_read_anew(front, &statement).then(|| self.read_anew(&statement));
            statement = statement.moved_to(origin, read.as_ref());
            front.prepared_mut().insert(name, Arc::clone(&statement));
        }
        let (server_name, number) = self.prepared.prepare(&statement, front.owner, by, true);
        put_parse(out, &server_name, &statement.resolved_content());
        self.tally.prepares += 1;
        self.queue.push(Owed::Parse {
            statement: Some((Arc::clone(&statement), number)),
            undo: None,
            taken: None,
            hidden: true,
            quiet: false,
        });
        // While the server skips, nothing is answered, and nothing done.
        let stops = statement.keeps_columns() && !self.skipping;
        self.ask_shape(Arc::clone(&statement), &server_name, number, stops, out);
        if let Some(back) = back {
            self.put_aside(&back, out);
        }
        self.evict(out);
        (statement, server_name)
    }

    /// What decides how a statement is read, and was something else when its client had it
    /// parsed than it is now.
    pub(super) fn changes_to_read<'a>(
        &'a self,
        applied: &'a Settings,
        statement: &'a Statement,
        reads: impl Fn(&str) -> bool,
    ) -> Vec<Change<'a>> {
        let Some(then) = statement.settings() else { return Vec::new() };
        let mut changes = difference(applied, then, &self.base);
        changes.retain(|change| reads(change.name));
        changes
    }

    /// What decides how the literals of a statement are read is put to what it was when its client had it
    /// parsed: PostgreSQL reads them then, once. Returns the text that puts it back; `None` if nothing has to
    /// be done.
    fn go_back_to(&mut self, front: &Front, statement: &Statement, out: &mut Vec<u8>) -> Option<Vec<u8>> {
        if self.skipping || self.boundary == Boundary::Failed || !statement.has_literals() {
            return None;
        }
        let reads = if self.is_read_anew(front, statement) { decides_text } else { decides_reading };
        // Not said yet: it was prepared in this very batch, or just before.
        let then = statement.settings()?;
        let applied = Arc::clone(&self.applied);
        let known = self.knows_settings(front);
        let mut changes = match known {
            true => self.changes_to_read(&applied, statement, reads),
            // What is in force now is not known, what was then is.
            false => all_that_decides_reading(then),
        };
        // Bytes of ASCII are the same in every encoding of a client.
        changes.retain(|change| change.name != "client_encoding" || !statement.content().is_ascii());
        if changes.is_empty() {
            return None;
        }
        let (mut there, mut here) = (Vec::new(), Vec::new());
        put_visit(&mut there, &mut here, &changes, |name| known.then(|| applied.get(name)));
        self.put_aside(&there, out);
        Some(here)
    }

    /// Under what a statement is read that is read anew: what is in force now, but for what its text was read
    /// by.
    fn read_anew(&self, statement: &Statement) -> Arc<Settings> {
        let mut settings = Arc::clone(&self.applied);
        for Change { name, value } in self.changes_to_read(&self.applied, statement, decides_text) {
            let changed = match value {
                Some(value) => settings.with(name, value).ok(),
                None => Some(settings.without(name)),
            };
            settings = changed.map_or(settings, Arc::new);
        }
        settings
    }

    /// PostgreSQL analyses a statement again, literals and all, where the `search_path` is another one than
    /// it was then. The text of the literals it has read once.
    fn is_read_anew(&self, front: &Front, statement: &Statement) -> bool {
        let moved = |name: &str| name == "search_path";
        self.knows_settings(front) && !self.changes_to_read(&self.applied, statement, moved).is_empty()
    }

    /// A statement of Weir's own among the client's messages, which is answered in secret and fails with
    /// them.
    fn put_aside(&mut self, text: &[u8], out: &mut Vec<u8>) {
        put_aside(out, ASIDE, text);
        self.queue.push(Owed::Aside { left: ASIDE_REPLIES, reading: None });
    }

    /// The same for the unnamed statement of a client. Another client's must never stand in for it.
    fn ensure_unnamed(&mut self, front: &mut Front, out: &mut Vec<u8>) {
        let (wanted, raw) = match front.prepared.as_deref() {
            Some(prepared) => (prepared.unnamed.clone(), prepared.unnamed_is_raw),
            None => (None, false),
        };
        match wanted {
            Some(wanted) => {
                let here = self.queue.tail().map_or(0, |entry| entry.number);
                let there = self.unnamed.as_ref().is_some_and(|unnamed| {
                    Arc::ptr_eq(&unnamed.statement, &wanted) && (unnamed.confirmed || unnamed.entry == here)
                });
                if !there {
                    let back = self.go_back_to(front, &wanted, out);
                    put_parse(out, b"", &wanted.resolved_content());
                    self.tally.prepares += 1;
                    self.sent_unnamed(Arc::clone(&wanted));
                    self.queue.push(Owed::Parse {
                        statement: None,
                        undo: None,
                        taken: None,
                        hidden: true,
                        quiet: false,
                    });
                    // Its client may have been told its columns by the server that had it before.
                    if wanted.keeps_columns() && !self.skipping {
                        self.ask_shape(wanted, b"", 0, true, out);
                    }
                    if let Some(back) = back {
                        self.put_aside(&back, out);
                    }
                }
            }
            None if raw => {}
            // The server's own words about a statement that does not exist.
            None => {
                put_statement(out, b'C', b"");
                self.queue.push(Owed::HiddenClose { leftover: None });
                self.unnamed = None;
            }
        }
    }

    pub(super) fn bind(
        &mut self,
        front: &mut Front,
        message: Message<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let bind = read_bind(body(message.bytes)).map_err(|_| malformed(ClientTag::Bind))?;
        let known = front.prepared.as_deref().and_then(|p| p.get(bind.statement)).cloned();
        let effects = known.as_ref().map(|statement| statement.effects(front.judge()));
        if let Some(effects) = &effects {
            self.take_names_behind(front, effects, out);
        }
        let mut bound = None;
        if let Some(why) = effects.as_deref().filter(|_| self.forbids_asking).and_then(|it| self.refuses(it))
        {
            put_bind_nobody(out);
            self.queue.push(Owed::Doomed(Some(why.told())));
            return Ok(());
        }
        self.has_begin_portal &= !bind.portal.is_empty();
        if bind.statement.is_empty() {
            self.ensure_unnamed(front, out);
            out.extend_from_slice(message.bytes);
        } else if self.own_names.is_some() {
            // Parameters that are too few or too many are refused before columns are looked at.
            if known.as_deref().and_then(|known| refusal_of_parameters(known, &bind)).is_none() {
                self.prove_own(bind.statement, known.as_ref(), out);
            }
            out.extend_from_slice(message.bytes);
            let effects = effects_of_named(effects.or_else(|| front.made_by_sql()));
            self.queue.push(Owed::Bind { statement: None, leaves: effects.leaves_when_bound() });
            front.prepared_mut().bind_portal(bind.portal, Some(effects));
            return Ok(());
        } else {
            match known {
                Some(statement)
                    if let Some(refusal) = refusal_of_parameters(&statement, &bind)
                        && self.lacks(front, &statement) =>
                {
                    put_bind_nobody(out);
                    self.queue.push(Owed::Doomed(Some(refusal)));
                    return Ok(());
                }
                Some(statement) => {
                    let (statement, server_name) = self.ensure(front, bind.statement, statement, out);
                    bound = Some(statement);
                    put_bind(&bind, message.total, &server_name, out);
                }
                None => put_bind(&bind, message.total, &foreign_name(bind.statement), out),
            }
        }
        let leaves = effects.as_ref().and_then(Effects::leaves_when_bound);
        front.prepared_mut().bind_portal(bind.portal, effects);
        self.queue.push(Owed::Bind { statement: bound, leaves });
        Ok(())
    }

    /// Its client looks for an unnamed portal of its own, and there is none.
    pub(super) fn close_begin_portal(&mut self, portal: &[u8], out: &mut Vec<u8>) {
        if portal.is_empty() && std::mem::take(&mut self.has_begin_portal) {
            put_close_portal(out, portal);
            self.queue.push(Owed::HiddenClose { leftover: None });
        }
    }

    pub(super) fn describe(
        &mut self,
        front: &mut Front,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let object = read_object(body(message)).map_err(|_| malformed(ClientTag::Describe))?;
        let mut described = None;
        match object {
            Object::Portal(name) => {
                self.close_begin_portal(name, out);
                out.extend_from_slice(message);
                self.queue.push(Owed::Describe { of_statement: false, statement: None });
                return Ok(());
            }
            Object::Statement(b"") => {
                self.ensure_unnamed(front, out);
                out.extend_from_slice(message);
                // What it is told now holds for as long as it has the statement, wherever that is.
                let unnamed = front.prepared.as_deref().and_then(|prepared| prepared.unnamed.clone());
                if let Some(statement) = unnamed {
                    let (number, stops, visible, types) = (0, false, true, None);
                    self.queue.push(Owed::Shape { statement, number, stops, visible, types });
                    return Ok(());
                }
            }
            Object::Statement(name) if self.own_names.is_some() => {
                let known = front.prepared.as_deref().and_then(|p| p.get(name)).cloned();
                self.prove_own(name, known.as_ref(), out);
                out.extend_from_slice(message);
            }
            Object::Statement(name) => match front.prepared.as_deref().and_then(|p| p.get(name)).cloned() {
                Some(statement) if self.is_told_by_heart(&statement, front) => {
                    self.queue.push(Owed::KnownShape { statement });
                    return Ok(());
                }
                Some(statement) => {
                    let (statement, server_name) = self.ensure(front, name, statement, out);
                    if self.shape_is_for_client(&statement) {
                        return Ok(());
                    }
                    put_statement(out, b'D', &server_name);
                    described = Some(statement);
                }
                None => put_statement(out, b'D', &foreign_name(name)),
            },
        }
        self.queue.push(Owed::Describe { of_statement: true, statement: described });
        Ok(())
    }

    pub(super) fn close(
        &mut self,
        front: &mut Front,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let object = read_object(body(message)).map_err(|_| malformed(ClientTag::Close))?;
        let mut undo = None;
        match object {
            Object::Portal(_) => out.extend_from_slice(message),
            Object::Statement(b"") => {
                out.extend_from_slice(message);
                self.unnamed = None;
                if let Some(prepared) = front.prepared.as_deref_mut() {
                    prepared.unnamed = None;
                    undo = Some(Box::new(Undo::Replaced(None)));
                    prepared.unnamed_is_raw = false;
                }
            }
            Object::Statement(name) => match front.prepared.as_deref_mut().and_then(|p| p.remove(name)) {
                Some(statement) if self.own_names.is_some() => {
                    out.extend_from_slice(message);
                    undo = Some(Box::new(Undo::Unnamed { name: name.into(), statement }));
                }
                None if self.own_names.is_some() => out.extend_from_slice(message),
                // The server's statement is shared and stays.
                Some(statement) => {
                    let undo = Some(Box::new(Undo::Unnamed { name: name.into(), statement }));
                    self.queue.push(Owed::KnownClose { undo });
                    return Ok(());
                }
                None => put_statement(out, b'C', &foreign_name(name)),
            },
        }
        self.queue.push(Owed::Close { undo });
        Ok(())
    }
}

/// What the server says of a Bind with too few or too many parameters before it says anything else of the
/// statement: that the transaction has failed, that columns have changed.
fn refusal_of_parameters(statement: &Statement, bind: &Bind<'_>) -> Option<Box<[u8]>> {
    let (wanted, found) = (statement.shape()?.parameters()?, count_parameters(bind.rest).ok()?);
    if wanted == found {
        return None;
    }
    let name = String::from_utf8_lossy(bind.statement);
    let text = format!(
        "bind message supplies {found} parameters, but prepared statement \"{name}\" requires {wanted}"
    );
    let mut body = b"SERROR\0VERROR\0C08P01\0M".to_vec();
    put_cstr(&mut body, text.as_bytes());
    body.push(0);
    Some(body.into())
}

/// The client's Bind of `total` bytes, of the statement that this server knows by `name`.
fn put_bind(bind: &Bind<'_>, total: usize, name: &[u8], out: &mut Vec<u8>) {
    put_header(out, ClientTag::Bind, total - bind.statement.len() + name.len());
    put_cstr(out, bind.portal);
    put_cstr(out, name);
    out.extend_from_slice(bind.rest);
}

fn put_header(out: &mut Vec<u8>, tag: ClientTag, total: usize) {
    out.push(tag.byte());
    // The client's length was within its bound, and a server's name adds 37 bytes at most.
    let length = u32::try_from(total - 1).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    debug_assert!(total >= HEADER_BYTES);
}

/// A name the client never prepared by the protocol. It goes as it is, for it may have been prepared in SQL,
/// and if not, the server's error names it. What could be a name of Weir's own is kept out of reach.
fn foreign_name(name: &[u8]) -> Vec<u8> {
    if is_server_name(name) { [b"client_", name].concat() } else { name.to_vec() }
}
