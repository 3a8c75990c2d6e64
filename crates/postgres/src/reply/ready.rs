//! What ReadyForQuery settles: where the boundary is, which effects stay, whether settings were accepted.
//!
//! Invariant: an effect counts only when its request is over, and whatever a ROLLBACK may undo is uncertain.

use super::{Way, protocol};
use crate::back::Back;
use crate::dispatch::remember_accepted;
use crate::dispatch::statements::RAW_PARSE;
use crate::effects::{Draws, Effects, Outcome};
use crate::frame::body;
use crate::front::Front;
use crate::message::reply::{put_parameter, read_ready};
use crate::queue::{Internal, Kind, Owed, Undo, put_right};
use crate::role::{FIXED_BY_TEMPORARY, is_who};
use crate::session_state::{Settings, follows, text_of};
use std::sync::Arc;
use weir_sql::Clears;
use weir_wire::{Boundary, Fault, FaultKind, Pin, name_of};

/// See [`Owed::Settings`].
struct SettingsOwed {
    previous: Arc<Settings>,
    /// Another value of what a server cannot change any more.
    fixed: bool,
    last: bool,
    only: bool,
}

impl Back {
    /// Between transactions, whoever ended the last one: what it has changed of the catalogue is there, or
    /// never will be.
    fn settle_catalogue(&mut self) {
        if self.boundary != Boundary::Idle {
            return;
        }
        if std::mem::take(&mut self.accounts) {
            self.count_change();
        }
        if self.unsettled.is_some() && !self.queue.changes_catalogue() {
            self.unsettled = None;
        }
    }

    /// ReadyForQuery.
    pub(super) fn ready(
        &mut self,
        mut front: Option<&mut Front>,
        message: &[u8],
        way: Way,
        to_server: &mut Vec<u8>,
        to_client: &mut Vec<u8>,
    ) -> Result<Way, Fault> {
        let boundary =
            read_ready(body(message)).map_err(|_| protocol("malformed ReadyForQuery".to_owned()))?;
        self.boundary = boundary;
        (self.needs_sync, self.swallowed) = (false, false);
        let Some(owed) = self.queue.pop() else { return Ok(way) };
        match owed {
            Owed::Settings { previous, brings, last, only } => {
                let fixed = brings.get(FIXED_BY_TEMPORARY) != previous.get(FIXED_BY_TEMPORARY);
                let owed = SettingsOwed { previous, fixed, last, only };
                self.settings_done(front, owed, to_server, to_client)?;
                return Ok(Way::Hide);
            }
            Owed::Internal(what) => {
                self.internal_done(front, what)?;
                self.settle_catalogue();
                return Ok(Way::Hide);
            }
            Owed::HiddenSync => {
                if let Some(entry) = self.queue.head_mut() {
                    entry.ready = entry.items == 0;
                    // What failed is what went before.
                    entry.failed &= entry.kind != Kind::Internal;
                }
                return Ok(Way::Hide);
            }
            Owed::Query { effects, undo } => self.query_done(front.as_deref_mut(), effects, undo),
            Owed::FunctionCall { leaves_nothing } => {
                self.may_have_set |= !leaves_nothing;
                if !leaves_nothing && let Some(entry) = self.queue.head_mut() {
                    // Whether it failed or not, and whatever the transaction comes to.
                    entry.succeeded.push(Arc::new(Effects {
                        pins: Pin::Unrecognised.into(),
                        outlives: true,
                        ..Effects::default()
                    }));
                }
            }
            Owed::Sync => self.sync_done(front.as_deref_mut()),
            other => return Err(protocol(format!("ReadyForQuery where {} is owed", name_of(&other)))),
        }
        if boundary == Boundary::Idle
            && let Some(entry) = self.queue.head_mut()
        {
            entry.ddl = false;
            if let Some(front) = front.as_deref_mut().filter(|front| front.outstanding <= 1)
                && let Some(rare) = front.rare.as_deref_mut()
            {
                rare.changed_code = false;
            }
        }
        // Before anybody is told that it is done.
        self.settle_catalogue();
        self.end_copy(front.as_deref_mut());
        while let Some(Owed::CopyEnd) = self.queue.next() {
            self.queue.pop();
        }
        if let Some(entry) = self.queue.head_mut() {
            entry.ready = entry.items == 0;
            let drew = if boundary == Boundary::Idle { entry.draws } else { Draws::No };
            let asked = entry.asks;
            let settled = entry.from_idle && !entry.controls && boundary == Boundary::Idle;
            let ends = !settled && boundary == Boundary::Idle;
            let outcome = match (entry.failed, settled) {
                (true, _) => Outcome::Doubtful,
                (false, true) => Outcome::Settled,
                (false, false) => Outcome::InTransaction,
            };
            let (raw, number) = (entry.raw, entry.number);
            let succeeded = std::mem::take(&mut entry.succeeded);
            // What drops all names may have run in front of what has given one since.
            let mut behind = succeeded.iter().skip_while(|effects| !effects.ends_names);
            let gives = behind.any(|effects| effects.pins.contains(Pin::SqlPrepare));
            let given = self.own_names.take_if(|own| own.given_in >= number || gives);
            for effects in succeeded {
                self.apply(front.as_deref_mut(), &effects, outcome);
            }
            if given.is_some() {
                self.own_names = given;
                self.traces.hold_names();
                if let Some(front) = front.as_deref_mut() {
                    front.traces.hold_names();
                }
            }
            if boundary == Boundary::Idle
                && let Some(front) = front.as_deref_mut()
            {
                self.keep_own(front);
            }
            self.note_freed(ends);
            if let (true, Some(front)) = (drew != Draws::No, front.as_deref_mut()) {
                self.keep_drawn(front, drew, asked);
            }
            if raw {
                // A request that cleared everything may have been answered since it was sent.
                for pin in RAW_PARSE {
                    self.traces.pin(pin);
                    if let Some(front) = front.as_deref_mut() {
                        front.traces.pin(pin);
                    }
                }
            }
        }
        self.forget_transaction();
        self.forget_path();
        if let Some(front) = front {
            front.boundary = boundary;
            if boundary == Boundary::Idle {
                self.tell_withheld(to_client);
            }
            if let Some(before) = front.rare.as_deref_mut().and_then(|rare| rare.were_reset.take()) {
                // The server went back to its own values, which nobody was told; this client goes back to
                // those it named at its start, which come to the server with its next request.
                let own = |name| {
                    front
                        .settings
                        .get(name)
                        .filter(|now| before.get(name) != Some(now))
                        .map(|now| (name, now))
                };
                for (name, value) in self.reported.iter().filter_map(|(name, _)| own(name)) {
                    put_parameter(to_client, name, text_of(value));
                }
            }
            if boundary == Boundary::Idle
                && let Some(prepared) = front.prepared.as_deref_mut()
            {
                prepared.end_portals();
            }
            self.ask_what_is_left(front, to_server);
        }
        Ok(way)
    }

    /// What a transaction had for its own time ends with it, also when Weir ends it for a client that is
    /// gone.
    fn forget_transaction(&mut self) {
        if self.boundary == Boundary::Idle {
            self.may_have_set = false;
            self.reads_otherwise = false;
            self.plans_otherwise = false;
            self.local_defaults.clear();
        }
    }

    /// The client may have drawn from a sequence. Who has asked for such a value in vain once keeps its
    /// server from then on; who has named the sequence, or where any have asked at all, until its next
    /// request.
    fn keep_drawn(&mut self, front: &mut Front, drew: Draws, asked: bool) {
        let later = front.asks_later();
        let may_ask = drew == Draws::Outright || (!asked && front.knowledge.are_sequences_asked());
        for traces in [&mut self.traces, &mut front.traces] {
            if later {
                traces.pin(Pin::LastResult);
            } else if may_ask && front.outstanding <= 1 {
                // Of several under way the last decides.
                traces.pin_softly();
            }
        }
    }

    /// A batch is over. Where its first text with any effects could not be read, none has run.
    fn sync_done(&mut self, front: Option<&mut Front>) {
        let unread = self.queue.head().is_some_and(|entry| {
            entry.failed && entry.misread && !entry.completed && entry.succeeded.is_empty()
        });
        if let Some(front) = front.filter(|_| unread) {
            self.give_names_back(front);
        }
    }

    fn query_done(
        &mut self,
        front: Option<&mut Front>,
        effects: Option<Arc<Effects>>,
        undo: Option<Box<Undo>>,
    ) {
        self.refused_stand_in = None;
        let Some(entry) = self.queue.head_mut() else { return };
        let mut front = front;
        if let Some(prepared) = front.as_deref_mut().and_then(|front| front.prepared.as_deref_mut()) {
            // Whether it failed or not.
            prepared.answered = None;
        }
        // Of several statements some may have taken effect before the error.
        // Of several, the first that cannot be read ends the text, and none has run before it.
        let unread = entry.failed
            && entry.misread
            && !entry.completed
            && effects.as_ref().is_some_and(|effects| effects.is_planned);
        let ran = effects.filter(|_| entry.completed || !entry.misread);
        if let (Some(front), Some(effects)) = (front.as_deref_mut(), &ran) {
            front.note_named(effects);
        }
        let left = match ran {
            Some(effects) if entry.failed && !entry.completed => effects.of_failure(),
            effects => effects,
        };
        entry.succeeded.extend(left);
        if entry.failed {
            put_right(undo, true, front.as_deref_mut());
        }
        if let Some(front) = front.filter(|_| unread) {
            self.give_names_back(front);
        }
    }

    /// Something with effects has succeeded.
    pub(crate) fn apply(&mut self, front: Option<&mut Front>, effects: &Effects, outcome: Outcome) {
        self.may_have_set |= effects.may_set || effects.pins.contains(Pin::Unrecognised);
        self.reads_otherwise |= effects.sets_reading() || effects.reads_otherwise;
        if effects.sets_plans() || effects.plans_otherwise {
            self.plans_otherwise = true;
            // What is deferred runs at the end of the transaction.
            if let Some(code) = self.code_read.as_mut().filter(|_| outcome == Outcome::InTransaction) {
                code.mixed = true;
            }
        }
        let reported = &self.reported;
        let followed = |name: &str| follows(name) && reported.get(name).is_some();
        self.traces.apply(effects, outcome, followed);
        if !self.traces.holds_names() {
            self.own_names = None;
        }
        let clears_settings = effects.clears.intersects(Clears::DISCARD_ALL | Clears::RESET_ALL);
        let resets = || effects.names.iter().flatten().filter(|set| set.reset && !set.local);
        if self.own.is_some() {
            // It goes back by itself to what its client began with, and says so where it reports it.
            let Some(front) = front else { return };
            front.traces.apply(effects, outcome, followed);
            front.is_at_home &= front.traces.is_home();
            let returns = |name: &str| !followed(name) && front.has_set(name);
            let may_return = outcome == Outcome::InTransaction
                && (resets().any(|set| returns(&set.name))
                    || (clears_settings && front.settings.iter().any(|(name, _)| returns(name))));
            if may_return {
                // A ROLLBACK would bring the value back, and nobody would say so.
                front.traces.pin(Pin::Setting);
                self.traces.pin(Pin::Setting);
            } else if outcome == Outcome::Settled && (clears_settings || resets().next().is_some()) {
                front.settings = Arc::new(front.settings_after(effects));
                self.follow_again(front);
            }
            if !front.is_at_home {
                self.question(front, effects, outcome);
            }
            return;
        }
        if outcome == Outcome::Settled {
            if effects.clears.contains(Clears::DISCARD_ALL) {
                self.applied = Arc::default();
            } else if clears_settings {
                self.applied = Arc::new(self.applied.beyond_reset_all());
            }
            for name in effects.resets() {
                self.applied = Arc::new(self.applied.without(name));
            }
        } else {
            // A ROLLBACK may bring the value back; only those that are reported would say so.
            let names: Vec<String> = match clears_settings {
                true => self.applied.iter().map(|(name, _)| name.to_owned()).collect(),
                // Others than those that move with clients stay with their server: its value is not Weir's to
                // choose.
                false => effects
                    .resets()
                    .filter(|name| {
                        let named = front.as_ref().is_some_and(|front| front.startup.get(name).is_some());
                        named || followed(name) || is_who(name) || self.applied.get(name).is_some()
                    })
                    .map(str::to_owned)
                    .collect(),
            };
            for name in names {
                self.applied = Arc::new(self.applied.doubt(&name));
            }
        }
        let Some(front) = front else { return };
        let reported = &self.reported;
        let followed = |name: &str| follows(name) && reported.get(name).is_some();
        front.traces.apply(effects, outcome, followed);
        self.question(front, effects, outcome);
        let resets_some = clears_settings || resets().next().is_some();
        if self.boundary == Boundary::InTransaction && outcome != Outcome::Doubtful {
            for set in effects.names.iter().flatten().filter(|set| set.reset && set.local) {
                self.local_default(front, &set.name);
            }
        }
        if outcome == Outcome::Doubtful || !resets_some {
            return;
        }
        let settings = Arc::new(front.settings_after(effects));
        let before = std::mem::replace(&mut front.settings, settings);
        front.rare.get_or_insert_default().were_reset.get_or_insert(before);
        self.follow_again(front);
    }

    /// SET LOCAL has put a setting to the server's default: the client's own comes in front of its next
    /// request.
    fn local_default(&mut self, front: &mut Front, name: &str) {
        let startup = Arc::clone(&front.startup);
        let Some(value) = startup.get(name) else { return };
        self.local_defaults.push(name.into());
        if !follows(name) || self.reported.get(name).is_none() {
            return;
        }
        if let (Ok(settings), Ok(applied)) =
            (front.settings.with(name, value), self.applied.with(name, value))
        {
            let before = std::mem::replace(&mut front.settings, Arc::new(settings));
            front.rare.get_or_insert_default().were_reset.get_or_insert(before);
            let same = *front.settings == applied;
            self.applied = if same { Arc::clone(&front.settings) } else { Arc::new(applied) };
        }
    }

    /// What was set behind a reset in the same request has been reported with its last value.
    fn follow_again(&mut self, front: &mut Front) {
        let set_again: Vec<(String, Vec<u8>)> = self
            .reported
            .iter()
            .filter(|&(name, value)| follows(name) && self.base.get(name) != Some(value))
            .map(|(name, value)| (name.to_owned(), value.to_vec()))
            .collect();
        for (name, value) in set_again {
            self.follow(Some(&mut *front), &name, &value);
        }
    }

    /// What put `pg_temp` into the search path has ended with its transaction, unless it has set that for
    /// longer.
    fn forget_path(&mut self) {
        self.temporary_path &= self.boundary != Boundary::Idle || self.traces.pins().contains(Pin::Setting);
    }

    fn internal_done(&mut self, front: Option<&mut Front>, what: Internal) -> Result<(), Fault> {
        self.forget_transaction();
        let Some(entry) = self.queue.head_mut() else { return Ok(()) };
        entry.ready = entry.items == 0;
        let failed = entry.failed;
        match what {
            Internal::Catalogue => self.catalogue_done(failed),
            Internal::Values => self.values_done(front),
            Internal::Facts => self.facts_done(failed),
            Internal::Parted | Internal::AtHome => return self.handed_over(front),
            Internal::Rollback => self.forget_path(),
            Internal::Quiet | Internal::Channels | Internal::HandOver => {}
            Internal::Reset if failed => {}
            Internal::Reset => {
                self.traces.clear();
                self.questions = None;
                self.own_names = None;
                self.doubtful = false;
                self.code_read = None;
                self.temporary_path = false;
                (self.drawn_by, self.mixes_drawn) = (0, false);
                self.applied = Arc::default();
                if self.queue.len() == 1 {
                    self.prepared.clear();
                }
            }
        }
        Ok(())
    }

    /// The settings in front of a request are there, or were refused.
    fn settings_done(
        &mut self,
        front: Option<&mut Front>,
        owed: SettingsOwed,
        to_server: &mut Vec<u8>,
        to_client: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let others = self.queue.others_wait();
        let Some(entry) = self.queue.head_mut() else { return Ok(()) };
        entry.ready = entry.items == 0;
        let (failed, number) = (entry.failed, entry.number);
        if failed {
            // Of two queries one may have taken effect; such a server is not used again.
            self.spoiled |= !owed.only || owed.fixed;
            self.applied = owed.previous;
            if others || self.queue.head_begins() {
                // They were sent for a server that has the settings it has just refused.
                return Err(Fault::new(FaultKind::ServerLost, "settings refused in front of other requests"));
            }
        } else if owed.last {
            remember_accepted(&mut self.accepted, self.applied.plan_key());
        }
        if !owed.last {
            return Ok(());
        }
        if self.held.as_ref().is_none_or(|held| held.settings_of != number) {
            // Nothing was sent behind them.
        } else if failed {
            self.held = None;
            self.abandon(front, to_client);
        } else {
            self.release(to_server);
        }
        Ok(())
    }

    /// What was waited for has come: what was held goes on its way, up to the next thing to be waited for.
    pub(super) fn release(&mut self, to_server: &mut Vec<u8>) {
        let Some(mut held) = self.held.take() else { return };
        let Some(stop) = held.stops.pop_front() else {
            to_server.extend_from_slice(&held.bytes);
            return;
        };
        to_server.extend(held.bytes.drain(..stop.min(held.bytes.len())));
        for later in &mut held.stops {
            *later -= stop;
        }
        held.settings_of = 0;
        self.held = Some(held);
    }

    /// The request at the head was never sent, because its settings failed.
    fn abandon(&mut self, mut front: Option<&mut Front>, to_client: &mut Vec<u8>) {
        // Statements were not prepared that are believed to be.
        self.spoiled |= self.own_names.is_some();
        let mut dropped = Vec::new();
        while self.queue.next().is_some() {
            dropped.extend(self.queue.pop());
        }
        for owed in dropped.into_iter().rev() {
            owed.undo(false, front.as_deref_mut(), &mut self.prepared);
        }
        self.unnamed = None;
        self.outgoing = 0;
        if let Some(entry) = self.queue.head_mut() {
            entry.ended = true;
            entry.ready = true;
        }
        if let Some(front) = front {
            front.end_failed(to_client);
        }
    }
}
