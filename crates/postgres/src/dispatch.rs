//! Turns a client's bytes into what its server gets: the difference of settings, statements to prepare,
//! renamed statements; and for each message an entry for what the server will owe.
//!
//! Must not know: replies.
//!
//! Invariants: requests begin and end where their messages say, however they are split between calls; no Sync
//! is ever inserted between a client's messages, so its implicit transactions stay whole; the client never
//! sees the replies to what was added.

use self::own_names::Lacks;
use crate::back::{Back, CodeRead, Held};
use crate::datestyle::DATESTYLE;
use crate::effects::{Draws, Effects};
use crate::error::Refusal;
use crate::frame::{ClientTag, body, client_header};
use crate::front::{Asks, Front};
use crate::late::Late;
use crate::message::query::{
    SYNC, lone_parse, put_close_portal, put_query, read_execute, read_parse, read_query,
};
use crate::queue::{Internal, Kind, Owed, Undo};
use crate::role::may_be_refused;
use crate::session_state::{difference, put_queries};
use std::sync::Arc;
use weir_sql::Verb;
use weir_sql::catalogue::UnknownCode;
use weir_wire::limits::{PLANS_ACCEPTED, REQUEST_GATHER_BYTES};
use weir_wire::{Boundary, Fault, FaultKind, Owner, Pin, name_of};

/// A portal and a statement that never exist: closing them is the cheapest question inside a batch.
pub(crate) const NOBODY: &[u8] = b"weir_nobody";

/// One message of a client, or its beginning when it is longer than the bytes at hand.
#[derive(Clone, Copy)]
struct Message<'a> {
    bytes: &'a [u8],
    /// Bytes of the whole message.
    total: usize,
}

impl Message<'_> {
    /// It is there whole and short enough to be kept.
    fn is_kept(&self) -> bool {
        self.is_whole() && self.total <= REQUEST_GATHER_BYTES
    }

    fn is_whole(&self) -> bool {
        self.bytes.len() == self.total
    }
}

fn malformed(tag: ClientTag) -> Fault {
    Fault::new(FaultKind::ClientProtocol, format!("malformed {} message", name_of(&tag)))
}

impl Back {
    /// Puts a request of `front` at the end of the queue and appends to `out` what makes it run here. With
    /// `whole` false it is the first part of a request and `extend` follows. Data of a COPY that is under way
    /// here is taken for what it is, whichever of the two is called.
    ///
    /// # Errors
    /// A malformed message: the client's session ends, and `forget` ends what was begun.
    pub(crate) fn dispatch(
        &mut self,
        front: &mut Front,
        owner: Owner,
        request: &[u8],
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        front.owner = owner;
        if !whole {
            // What the rest of it does is not known, and nothing can go ahead of that any more.
            front.draws = Draws::Outright;
            front.runs_code = true;
            front.runs_nothing = false;
        }
        self.prepared.begin_batch();
        self.transmit(front, request, out)?;
        if request.first() == Some(&ClientTag::Parse.byte())
            && lone_parse(request).is_some()
            && let Some(tail) = self.queue.tail_mut()
        {
            tail.only_prepares = true;
        }
        Ok(())
    }

    /// A further part of the request at the end of the queue.
    ///
    /// # Errors
    /// As `dispatch`.
    pub(crate) fn extend(
        &mut self,
        front: &mut Front,
        bytes: &[u8],
        _whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        self.transmit(front, bytes, out)
    }

    /// Puts the check of a client's login settings at the end of the queue.
    ///
    /// # Errors
    /// None; the signature is the wings' common one.
    pub(crate) fn dispatch_welcome(
        &mut self,
        front: &mut Front,
        owner: Owner,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        front.owner = owner;
        // One of its own was opened with the client's.
        let has = if self.own.is_some() { &self.reported } else { &self.base };
        front.complete_datestyle(has.get(DATESTYLE).unwrap_or_default());
        front.outstanding = front.outstanding.saturating_add(1);
        self.queue.push_entry(owner, Kind::Welcome, self.queue.is_empty() && self.boundary == Boundary::Idle);
        let mut bytes = Vec::new();
        if self.bring_settings(front, &mut bytes).is_none() {
            bytes.extend_from_slice(SYNC);
            self.queue.push(Owed::HiddenSync);
        }
        if let Some(tail) = self.queue.tail_mut() {
            tail.ended = true;
        }
        self.write(&bytes, out);
        Ok(())
    }

    fn transmit(&mut self, front: &mut Front, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let mut rest = bytes;
        if self.outgoing > 0 {
            let (now, later) = rest.split_at(rest.len().min(self.outgoing));
            self.outgoing -= now.len();
            rest = later;
            self.write(now, out);
            if self.outgoing == 0 {
                self.end_long(front);
            }
        }
        while !rest.is_empty() {
            let header = client_header(rest)?
                .ok_or_else(|| Fault::new(FaultKind::ClientProtocol, "a part that ends inside a header"))?;
            let (now, later) = rest.split_at(rest.len().min(header.total));
            rest = later;
            let message = Message { bytes: now, total: header.total };
            if front.names_matter.matter() && message.is_whole() {
                judge_names_again(front, header.tag, now);
            }
            self.begin_entry(front, header.tag, out);
            let mut held = self.held.take();
            let sink = held.as_deref_mut().map_or(&mut *out, |held| &mut held.bytes);
            let result = self.message(front, header.tag, message, sink);
            self.held = held;
            self.hold_behind_stop(out);
            result?;
            self.outgoing = header.total - now.len();
        }
        Ok(())
    }

    /// What was written behind a statement that the server must speak of first is held.
    fn hold_behind_stop(&mut self, out: &mut Vec<u8>) {
        let Some(stop) = self.stop.take() else { return };
        match &mut self.held {
            Some(held) => held.stops.push_back(stop),
            None => self.held = Some(Box::new(Held { bytes: out.split_off(stop), ..Held::default() })),
        }
    }

    /// Opens an entry if this message begins a request.
    fn begin_entry(&mut self, front: &mut Front, tag: ClientTag, out: &mut Vec<u8>) {
        match tag {
            ClientTag::CopyData | ClientTag::CopyDone | ClientTag::CopyFail | ClientTag::Terminate => return,
            ClientTag::Sync | ClientTag::Flush if self.copy_in => return,
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
        self.amid_batch = true;
        if self.queue.tail().is_some_and(|tail| tail.owner == front.owner && !tail.ended) {
            if std::mem::take(&mut front.names_matter).matter() {
                self.take_own_names(front, false, out);
            }
            return;
        }
        // The settings of a client whose own request is the last one under way here came with that.
        let first = self.queue.tail().is_none_or(|tail| tail.owner != front.owner);
        let idle = self.boundary == Boundary::Idle;
        let late = std::mem::take(&mut front.late);
        front.controls |= late != Late::No;
        let number = self.queue.push_entry(front.owner, Kind::Client, first && idle && late == Late::No);
        (self.swallowed, self.lacks) = (false, Lacks::Nothing);
        self.amid_batch = self.skipping || self.needs_sync || self.unended.is_some();
        if let (Some(before), Some(entry)) = (self.unended.take(), self.queue.tail_mut()) {
            entry.take_on(*before);
        }
        front.outstanding = front.outstanding.saturating_add(1);
        self.close_leftovers(out);
        let known = self.boundary != Boundary::Failed && !self.skipping && !self.needs_sync;
        self.begin_own(front, out);
        let begins = front.controls && self.boundary == Boundary::Idle;
        // Behind a query the server refuses SET TRANSACTION.
        let bare = self.boundary == Boundary::InTransaction
            && front.rare.as_deref().is_some_and(|rare| rare.characteristics);
        self.forget_sequences(front, out);
        // Ahead of settings: what may be refused holds up all behind it.
        if bare {
            front.plans_otherwise |= std::mem::take(&mut front.runs_code);
        } else {
            self.read_code_anew(front, begins, out);
        }
        let has_them = self.is_settled_home(front) || Arc::ptr_eq(&self.applied, &front.settings);
        if first && known && !has_them {
            let mut bytes = Vec::new();
            let plan_key = front.settings.plan_key();
            // Of the client before: it may cut off what takes it away.
            let timed = self.applied.limits_time();
            if let Some(refusable) = self.bring_settings(front, &mut bytes) {
                self.write(&bytes, out);
                let accepted = plan_key == 0 || self.accepted.contains(&plan_key);
                if self.held.is_none() && (timed || refusable || !accepted) {
                    self.held = Some(Box::new(Held { settings_of: number, ..Held::default() }));
                }
            }
        }
        self.bring_missed_names(front, out);
        // Under which settings a statement is read by who stays here for something unknown nobody can say
        // later: it is prepared under its own name at once.
        let never_leaves = front.traces.pins().contains(Pin::Unrecognised) && self.queue.len() == 1;
        if std::mem::take(&mut front.names_matter).matter() || (tag == ClientTag::Parse && never_leaves) {
            self.take_own_names(front, true, out);
        }
        self.begin_late(late, out);
    }

    /// In front of a request that asks what was drawn from a sequence: what another client has drawn here is
    /// not its business, and where it has drawn elsewhere since, what it finds here is too old. The server
    /// then says itself that there is no value.
    fn forget_sequences(&mut self, front: &mut Front, out: &mut Vec<u8>) {
        let draws = std::mem::take(&mut front.draws);
        let asked = std::mem::take(&mut front.asks);
        let (asks, outright) = (asked != Asks::No, asked == Asks::Outright);
        let characteristics =
            front.rare.as_deref_mut().is_some_and(|rare| std::mem::take(&mut rare.characteristics));
        front.ties = false;
        self.forbids_asking = false;
        if std::mem::take(&mut front.runs_nothing) {
            // Drivers prepare in one request and run in the next, and take the last one's name away in
            // between: who has drawn may ask behind that.
            front.controls = false;
            return;
        }
        // With an answer the reason is gone, as it is with whatever asks nothing.
        front.traces.soften();
        self.traces.soften();
        // Who stays here asks here, as does who names the sequence; and where clients ask at all nobody draws
        // on top of what others have drawn.
        let controls = std::mem::take(&mut front.controls);
        let stays = controls || self.boundary == Boundary::InTransaction || !front.traces.pins().is_empty();
        let others = self.mixes_drawn || (self.drawn_by != 0 && self.drawn_by != front.unique());
        let may_ask = draws == Draws::Outright || stays || front.knowledge.are_sequences_asked();
        // Nothing can be forgotten there, and a request that ends it may ask.
        self.forbids_asking = self.boundary == Boundary::Failed && controls && others;
        let covers = draws != Draws::No && others && may_ask;
        if !asks && !covers {
            return;
        }
        if !asks && characteristics && self.boundary == Boundary::InTransaction {
            // Behind a query the server refuses SET TRANSACTION. It is forgotten once somebody asks.
            self.mixes_drawn = true;
            return;
        }
        let here = self.server_pid();
        let asks_what_it_drew = asks && outright && front.drew_at != 0 && draws == Draws::No;
        if asks_what_it_drew {
            front.knowledge.note_sequences_asked();
        }
        if self.boundary == Boundary::Failed
            || self.skipping
            || self.needs_sync
            || (self.drawn_by == front.unique() && front.drew_at == here && !self.mixes_drawn)
        {
            return;
        }
        (self.drawn_by, self.mixes_drawn) = (0, false);
        if asks_what_it_drew {
            front.rare.get_or_insert_default().asks_later = true;
        } else if let Some(entry) = self.queue.tail_mut().filter(|_| asks && front.drew_at != 0) {
            // It may draw what it asks itself: only the answer tells.
            entry.asks_elsewhere = true;
        }
        let mut bytes = Vec::new();
        put_query(&mut bytes, b"DISCARD SEQUENCES");
        self.queue.push(Owed::Internal(Internal::Quiet));
        self.unnamed = None;
        self.write(&bytes, out);
    }

    /// In front of a request that runs code of users: what the server has read of it under another client's
    /// settings, literals of dates for example, is read anew.
    fn read_code_anew(&mut self, front: &mut Front, begins: bool, out: &mut Vec<u8>) {
        // Once a transaction has failed it is too late, and a text that ends it may run some.
        let runs = std::mem::take(&mut front.runs_code);
        let otherwise = std::mem::take(&mut front.plans_otherwise);
        let now = self.code_reader(front, otherwise);
        let possible = self.boundary != Boundary::Failed && !self.skipping && !self.needs_sync;
        // Its own names hold plans that would be made anew, too: whatever it may read otherwise later, it
        // begins without what others have read.
        let has_names = front.traces.holds_names() || front.traces.pins().contains(Pin::Prepared);
        let takes_names = !has_names && front.names_matter.matter();
        let differs = self.code_read.is_some_and(|code| match takes_names {
            true => code.is_others_too(now.client),
            false => !has_names && code.is_of_another(&now),
        });
        if possible && differs && (runs || begins || takes_names) {
            self.code_read = None;
            // They would be read anew under the settings of the moment.
            self.prepared.distrust_all();
            let mut bytes = Vec::new();
            put_query(&mut bytes, b"DISCARD PLANS");
            self.queue.push(Owed::Internal(Internal::Quiet));
            self.unnamed = None;
            self.write(&bytes, out);
        }
        if runs {
            CodeRead::by(&mut self.code_read, now);
        }
    }

    /// The client as one that runs code now; `otherwise`: under settings that it changes itself.
    fn code_reader(&self, front: &Front, otherwise: bool) -> CodeRead {
        CodeRead {
            client: front.unique(),
            kept_plan_key: front.settings.kept_plan_key(),
            changes: self.knowledge.changes(),
            others: false,
            mixed: otherwise || self.plans_are_unsure(front),
        }
    }

    /// What a plan holds that is made now may be of other settings than those that Weir knows its client to
    /// have: set for a moment, or not asked for yet.
    pub(super) fn plans_are_unsure(&self, front: &Front) -> bool {
        let pins = self.traces.pins();
        self.plans_otherwise
            || [Pin::Setting, Pin::Unrecognised, Pin::Code].iter().any(|&pin| pins.contains(pin))
            || self.queue.changes_plans(front.owner)
    }

    /// The client has a server of its own, which has its settings since its beginning.
    pub(crate) fn is_settled_home(&mut self, front: &Front) -> bool {
        let settled = self.own.is_some() && self.home_of.replace(front.unique()).is_some();
        if settled {
            self.applied = Arc::clone(&front.settings);
        }
        settled
    }

    /// What a text does where `pg_temp` stands in the search path.
    fn in_its_path(&self, front: &Front, effects: Arc<Effects>) -> Arc<Effects> {
        if !self.makes_temporary(front, &effects) {
            return effects;
        }
        let mut effects = Effects::clone(&effects);
        effects.pins.insert(Pin::TemporaryTable);
        Arc::new(effects)
    }

    /// Who keeps this server does not wait for others to read what it has changed: what runs meanwhile has
    /// nobody read, and what it leaves must not go with a reset when the pin ends.
    pub(crate) fn behind_its_change(&mut self, front: &Front, effects: Arc<Effects>) -> Arc<Effects> {
        if front.traces.pins().is_empty() {
            self.keeper_has_changed = false;
            return effects;
        }
        // What is temporary and has code pins by itself.
        self.keeper_has_changed |= effects.gives_code && !effects.pins.contains(Pin::TemporaryTable);
        if self.keeper_has_changed && effects.is_planned && !effects.doubtful {
            // It has been read since.
            self.keeper_has_changed = false;
        }
        let stays = self.keeper_has_changed && effects.doubtful && !effects.pins.contains(Pin::Code);
        if !stays || self.knowledge.unknown_code() != UnknownCode::Pin {
            return effects;
        }
        let mut effects = Effects::clone(&effects);
        effects.pins.insert(Pin::Code);
        Arc::new(effects)
    }

    /// A text of these effects runs here now.
    fn note_run(&mut self, front: &mut Front, effects: &Effects) {
        self.run(effects);
        if effects.changes_code {
            front.rare.get_or_insert_default().changed_code = true;
        }
        if effects.runs_code {
            let now = self.code_reader(front, effects.plans_otherwise || effects.is_personal);
            CodeRead::by(&mut self.code_read, now);
        }
        self.read_anew_behind_temporary(front, effects);
        if let Some(touched) = &effects.touched {
            self.note_told(touched);
        }
        self.temporary_path |= effects.temporary_path;
        let ties = self.queue.tail().is_some_and(|tail| tail.ties);
        let draws =
            effects.draws.of_a_client(!ties && front.outstanding <= 1 && front.traces.pins().is_empty());
        if draws != Draws::No {
            // It may draw, and may not.
            self.mixes_drawn |= self.drawn_by != 0 && self.drawn_by != front.unique();
            self.drawn_by = front.unique();
            front.drew_at = self.server_pid();
        }
        if let Some(tail) = self.queue.tail_mut() {
            tail.controls |= effects.controls;
            tail.draws = tail.draws.max(draws);
            tail.ties |= !effects.pins.is_empty();
            tail.asks |= effects.asks_sequence;
        }
    }

    /// Appends the query that gives this server the client's settings, and says whether it may be refused
    /// even where it was accepted before. None when the server has them.
    pub(crate) fn bring_settings(&mut self, front: &mut Front, out: &mut Vec<u8>) -> Option<bool> {
        let previous = std::mem::replace(&mut self.applied, Arc::clone(&front.settings));
        let mut changes = difference(&previous, &front.settings, &self.base);
        // What a ROLLBACK may have brought back is as it should be here, whatever it is.
        changes
            .retain(|change| !self.is_to_be_asked(change.name) || front.startup.get(change.name).is_some());
        if changes.is_empty() {
            return None;
        }
        for change in changes.iter().filter(|change| change.name.contains('.')) {
            self.knowledge.note_placeholders();
            self.told.get_or_insert_default().add(change.name);
        }
        let queries = put_queries(out, &changes);
        self.tally.settings += queries as u32;
        for n in 1..=queries {
            let (previous, brings) = (Arc::clone(&previous), Arc::clone(&front.settings));
            self.queue.push(Owed::Settings { previous, brings, last: n == queries, only: queries == 1 });
        }
        self.unnamed = None;
        Some(may_be_refused(&changes))
    }

    /// The last byte of a message that came in parts has gone.
    fn end_long(&mut self, front: &mut Front) {
        if let Some(Owed::Query { effects, .. }) = self.queue.last_mut()
            && effects.is_none()
        {
            *effects = front.next_long_text();
            if let Some(effects) = effects.clone() {
                self.note_run(front, &effects);
            }
        }
    }

    fn message(
        &mut self,
        front: &mut Front,
        tag: ClientTag,
        message: Message<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        match tag {
            ClientTag::Query => self.query(front, message, out)?,
            ClientTag::FunctionCall => {
                let leaves_nothing = leaves_nothing(body(message.bytes));
                self.queue.push(Owed::FunctionCall { leaves_nothing });
                out.extend_from_slice(message.bytes);
                self.end_entry();
            }
            ClientTag::Parse => self.parse(front, message, out)?,
            ClientTag::Bind => self.bind(front, message, out)?,
            ClientTag::Describe => self.describe(front, message.bytes, out)?,
            ClientTag::Close => self.close(front, message.bytes, out)?,
            ClientTag::Execute => {
                self.execute(front, message.bytes, out)?;
            }
            ClientTag::Sync => {
                out.extend_from_slice(message.bytes);
                // In copy-in mode the server reads it as data and ignores it.
                if !self.copy_in {
                    self.queue.push(Owed::Sync);
                    self.end_entry();
                }
            }
            ClientTag::Flush => {
                // What Weir answers itself goes out behind a real reply; with a Sync there always is one.
                if self.queue.last_mut().is_some_and(|last| last.is_synthetic()) {
                    put_close_portal(out, NOBODY);
                    self.queue.push(Owed::HiddenClose { leftover: None });
                }
                out.extend_from_slice(message.bytes);
            }
            ClientTag::CopyData => out.extend_from_slice(message.bytes),
            ClientTag::CopyDone | ClientTag::CopyFail => {
                out.extend_from_slice(message.bytes);
                if std::mem::take(&mut self.copy_in) {
                    front.copy_in = false;
                } else {
                    self.queue.push(Owed::CopyEnd);
                }
            }
            ClientTag::Terminate => {}
        }
        Ok(())
    }

    fn execute(&mut self, front: &mut Front, message: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let portal = read_execute(body(message)).map_err(|_| malformed(ClientTag::Execute))?;
        self.close_begin_portal(portal, out);
        let effects = front.prepared.as_deref().and_then(|p| p.portal_effects(portal)).unwrap_or_default();
        let (effects, undo, names) = self.stand_ins(front, effects, out);
        let effects = self.behind_its_change(front, self.in_its_path(front, effects));
        let undo = undo.or_else(|| self.drop_statements(front, &effects));
        self.note_run(front, &effects);
        out.extend_from_slice(message);
        self.note_end_of_failure(&effects);
        self.queue.push(Owed::Execute { effects: Some(effects).filter(|e| !e.is_nothing()), undo });
        self.close_stand_ins(names, out);
        Ok(())
    }

    /// A text of these effects is about to run here.
    fn run(&mut self, effects: &Effects) {
        self.doubtful |= effects.doubtful;
        if !effects.ddl {
            return;
        }
        self.accounts |= effects.accounts;
        // What has become of accounts is asked at once, too.
        let code = effects.gives_code || effects.changes_code || effects.accounts;
        if self.unsettled.as_ref().is_none_or(|change| code && !change.is_of_code()) {
            self.unsettled = Some(self.knowledge.unsettle(code));
        }
        if let Some(tail) = self.queue.tail_mut() {
            tail.ddl = true;
        }
    }

    fn end_entry(&mut self) {
        if let Some(tail) = self.queue.tail_mut() {
            tail.ended = true;
        }
    }

    fn query(&mut self, front: &mut Front, message: Message<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        // A simple Query destroys the unnamed statement and the unnamed portal.
        self.unnamed = None;
        if let Some(prepared) = front.prepared.as_deref_mut() {
            prepared.unnamed = None;
            prepared.unnamed_is_raw = false;
            prepared.portal = None;
        }
        self.end_entry();
        if !message.is_whole() {
            self.queue.push(Owed::Query { effects: None, undo: None });
            out.extend_from_slice(message.bytes);
            return Ok(());
        }
        let effects = match front.next_text() {
            Some(effects) => effects,
            None => {
                let text = read_query(body(message.bytes)).map_err(|_| malformed(ClientTag::Query))?;
                front.judge().text(text).0
            }
        };
        let lacks = self.lacks_names_for(&effects).then_some(Refusal::NamesBehindFailure);
        let why = self.refuses(&effects).or(lacks);
        if let Some(why) = why.filter(|&why| !refuses_itself(front, why, message)) {
            self.refuse_query(why, out);
            return Ok(());
        }
        // A Sync of Weir's would end what its client has not ended, and commit it.
        if self.amid_batch && self.own_names.is_none() && front.names_own(&effects) {
            self.take_own_names(front, false, out);
        }
        let (effects, undo, names) = self.stand_ins(front, effects, out);
        self.note_why_lost(front, &effects);
        let effects = self.behind_its_change(front, self.in_its_path(front, effects));
        let undo = undo.or_else(|| self.drop_statements(front, &effects));
        self.note_run(front, &effects);
        let added = !names.is_empty();
        if added {
            out.extend_from_slice(SYNC);
            self.queue.push(Owed::HiddenSync);
        }
        out.extend_from_slice(message.bytes);
        self.queue.push(Owed::Query { effects: Some(effects).filter(|e| !e.is_nothing()), undo });
        if added {
            self.close_stand_ins(names, out);
            out.extend_from_slice(SYNC);
            self.queue.push(Owed::HiddenSync);
        }
        Ok(())
    }
}

impl Back {
    /// In the place of a text that the operator refuses goes one that fails before anything of it runs, as
    /// the database's own refusal would; its error is replaced. So the transaction fails as well.
    fn refuse_query(&mut self, why: Refusal, out: &mut Vec<u8>) {
        let text = match why {
            Refusal::Pin(pin) => format!("refused by Weir (pins.{} = error)", pin.label()),
            Refusal::AsksBehindFailure | Refusal::NamesBehindFailure => "refused by Weir".to_owned(),
        };
        put_query(out, text.as_bytes());
        self.queue.push(Owed::Query { effects: None, undo: Some(Box::new(Undo::Refused(why))) });
    }

    /// A text of these effects must not run here.
    pub(super) fn refuses(&self, effects: &Effects) -> Option<Refusal> {
        let asks = self.forbids_asking && effects.asks_sequence;
        effects.refused.map(Refusal::Pin).or(asks.then_some(Refusal::AsksBehindFailure))
    }
}

/// A failed transaction goes on failing: the text begins with what does not end it.
fn refuses_itself(front: &Front, why: Refusal, message: Message<'_>) -> bool {
    if !matches!(why, Refusal::AsksBehindFailure | Refusal::NamesBehindFailure) {
        return false;
    }
    let verb = read_query(body(message.bytes)).map(|text| weir_sql::classify(front.dialect, text).verb);
    let may_end = |verb: &Verb| {
        matches!(
            verb,
            Verb::Commit
                | Verb::Rollback
                | Verb::RollbackTo
                | Verb::TwoPhase
                | Verb::Unrecognised
                | Verb::Empty
        )
    };
    verb.is_ok_and(|verb| !may_end(&verb))
}

/// See [`Front::judge_names_again`]. A malformed one is told of when its turn comes.
fn judge_names_again(front: &mut Front, tag: ClientTag, message: &[u8]) {
    let text = match tag {
        ClientTag::Query => read_query(body(message)).ok(),
        ClientTag::Parse => read_parse(body(message)).ok().map(|parse| parse.text),
        _ => None,
    };
    if let Some(text) = text {
        front.judge_names_again(text);
    }
}

/// The function that a FunctionCall names is one of large objects, which live in their transaction
/// (`pg_proc.dat`).
pub(crate) fn leaves_nothing(body: &[u8]) -> bool {
    const LARGE_OBJECTS: [u32; 17] =
        [715, 952, 953, 954, 955, 956, 957, 958, 964, 1004, 3170, 3171, 3172, 3457, 3458, 3459, 3460];
    let oid = body.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes));
    oid.is_some_and(|oid| LARGE_OBJECTS.contains(&oid))
}

/// Remembers that a server took these settings.
pub(crate) fn remember_accepted(accepted: &mut Vec<u64>, plan_key: u64) {
    if plan_key != 0 && !accepted.contains(&plan_key) {
        if accepted.len() >= PLANS_ACCEPTED {
            accepted.remove(0);
        }
        accepted.push(plan_key);
    }
}

pub(crate) mod own_names;
pub(crate) mod statements;
