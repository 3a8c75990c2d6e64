//! Session state that a used server cannot be given: the values that RESET returns to, and placeholders that
//! have never been set.
//!
//! PostgreSQL takes the values of RESET, and the source that `pg_settings` reports for them, from the startup
//! packet. A client whose startup parameters differ from the server's, and whose text may return to them in a
//! way that is visible before the text is over, therefore gets a server that was opened with its parameters.
//! It keeps that server until it disconnects or runs DISCARD ALL, or for one answer when that leaves nothing
//! behind; no other client gets it afterwards.
//!
//! A placeholder (a setting with a dot in its name) exists on a server from its first SET, `set_config` or
//! RESET until the session ends: with `''` where a new session has NULL or an error. Weir tracks which
//! placeholders exist on a server and which a client has named itself; a client that asks for one gets a
//! server on which both agree.
//!
//! Invariant: a server opened for one client is brought to the client's settings only once, at the beginning.

use crate::back::Back;
use crate::datestyle::{DATESTYLE, part_in};
use crate::effects::{Draws, Effects, SetName};
use crate::follow::moves;
use crate::front::{Asks, Front};
use crate::listen::Away;
use crate::queue::{Internal, Owed};
use crate::role::is_who;
use crate::session_state::{Change, Reported, Settings, put_changes, text_of};
use std::sync::Arc;
use weir_sql::{Clears, Locks, Scope, SettingNames, Touched};
use weir_wire::{Boundary, Pin};

/// What few clients have.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    /// Placeholders that it has named.
    pub told: SettingNames,
    /// Placeholders that the request found last may ask for.
    pub reads: SettingNames,
    /// It has set something on a server of its own.
    pub has_been_home: bool,
    /// It has asked for a value of another server than it had: from now on it keeps its server until it asks.
    pub asks_later: bool,
    /// The request found last says how its transaction is to be.
    pub characteristics: bool,
    /// It has changed what code does, in a transaction that has not ended.
    pub changed_code: bool,
    /// Its server is being asked what it has left there.
    pub is_being_asked: bool,
    /// Its settings were reset on the server, and these they were before. The client is told its own behind
    /// that.
    pub were_reset: Option<Arc<Settings>>,
    /// Some of its settings may have been set by another user than the one that logged in.
    pub sets_as_another: bool,
    /// Its channels, while another connection listens for it; `listen.rs`.
    pub away: Option<Away>,
    /// What SQL has prepared for it here, and by which catalogue that was read.
    pub by_sql: Option<(Arc<Effects>, u64)>,
    /// What a server reported under an `application_name` that is not remembered.
    pub asked: Option<Reported>,
}

impl Rare {
    /// Of a client that names these at its start.
    pub fn of(settings: &Settings) -> Option<Box<Rare>> {
        let mut rare = Rare::default();
        settings.iter().filter(|(name, _)| name.contains('.')).for_each(|(name, _)| rare.told.add(name));
        (!rare.told.is_empty()).then(|| Box::new(rare))
    }
}

/// Every server reports these, so they move with clients (PostgreSQL's section 55.2.7).
fn is_reported(name: &str) -> bool {
    const REPORTED: [&str; 6] = [
        "application_name",
        "client_encoding",
        "datestyle",
        "intervalstyle",
        "standard_conforming_strings",
        "timezone",
    ];
    REPORTED.contains(&name)
}

impl Front {
    /// What a server must be opened with for the request found last.
    pub(crate) fn startup_parameters(&self) -> Option<Vec<(String, String)>> {
        if !self.wants_own {
            return None;
        }
        if let Some(value) = part_in(&self.startup) {
            // It logs in. Its other settings are sent later: what refuses them must not refuse Weir's login.
            return Some(vec![(DATESTYLE.to_owned(), String::from_utf8(value.to_vec()).ok()?)]);
        }
        let pair = |(name, value): (&str, &[u8])| {
            Some((name.to_owned(), String::from_utf8(text_of(value).to_vec()).ok()?))
        };
        self.startup.iter().map(pair).collect()
    }

    /// A text of these effects is part of the request. `behind`: others are in front of it.
    pub(crate) fn wish(&mut self, effects: &Effects, reset_before: bool, others: bool) {
        if self.is_at_home {
            return;
        }
        let touched = effects.touched.as_deref();
        if self.startup_differs {
            let puts_back = |touched: &Touched| {
                // A new session authorization takes its role away, too.
                let with_role = touched.resets.contains("session_authorization");
                touched.resets.is_any()
                    || self.startup.iter().any(|(name, _)| {
                        touched.resets.contains(name) || (with_role && name.eq_ignore_ascii_case("role"))
                    })
            };
            let inside = reset_before || (others && effects.resets_settings());
            // The server would say of the user that logged in what holds for another.
            let who = self.startup.is_somebody() && effects.resets_who();
            self.wants_own |= inside || who || touched.is_some_and(puts_back) || self.is_to_stay(effects);
        }
        self.wants_own |= effects.setting_source && !self.startup.is_empty();
        if let Some(touched) = touched.filter(|touched| !touched.reads.is_empty()) {
            self.rare.get_or_insert_default().reads.add_all(&touched.reads);
        }
        if self.settles(effects) {
            // It stays where this runs, and may ask there for anything.
            self.rare.get_or_insert_default().reads.add_any();
        }
    }

    /// Who gives a statement a name beyond ASCII stays on the server that has it (`parse_raw`).
    pub(crate) fn note_raw_name(&mut self) {
        // What it resets there by such a name goes back to what the server was opened with.
        self.wants_own |= self.startup_differs && !self.is_at_home;
        if self.traces.pins().is_empty() && self.knowledge.are_placeholders_known() {
            self.rare.get_or_insert_default().reads.add_any();
        }
    }

    /// It ties its client to a server, which has been told of placeholders by others.
    pub(crate) fn settles(&self, effects: &Effects) -> bool {
        // Who has names on a server stays there, too.
        let ties = self.ties_by_text(effects) || effects.statement_names || effects.executes.is_some();
        ties && self.traces.pins().is_empty() && self.knowledge.are_placeholders_known()
    }

    /// It may tie its client to its server, as far as that shows in its text.
    pub(crate) fn may_tie(&self, effects: &Effects) -> bool {
        self.ties_by_text(effects)
            || (effects.draws != Draws::No && self.asks_later())
            || (effects.creates && self.has_temporary_path())
    }

    /// A text of these effects has run, or a part of it: which placeholders the client has named.
    pub(crate) fn note_named(&mut self, effects: &Effects) {
        if let Some(touched) = effects.touched.as_deref().filter(|touched| !touched.tells.is_empty()) {
            self.rare.get_or_insert_default().told.add_all(&touched.tells);
        }
    }

    /// Its server is being asked what it has left there: it cannot change servers before it has answered.
    pub(crate) fn is_being_asked(&self) -> bool {
        self.rare.as_deref().is_some_and(|rare| rare.is_being_asked)
    }

    /// It has asked in vain what it had drawn.
    pub(crate) fn asks_later(&self) -> bool {
        self.rare.as_deref().is_some_and(|rare| rare.asks_later)
    }

    /// It says that it leaves something on its server, and not only settings that move.
    pub(crate) fn ties_by_text(&self, effects: &Effects) -> bool {
        !effects.pins.is_empty() && !effects.only_moves(|name| self.is_told(name))
    }

    /// Servers report this setting.
    fn is_told(&self, name: &str) -> bool {
        is_reported(name) || (name == "search_path" && self.reports_path)
    }

    /// This setting is not what the server has by itself.
    pub(crate) fn has_set(&self, name: &str) -> bool {
        self.settings.get(name).is_some()
    }

    /// Its settings once some, or all of them, have gone back to what was named at the start.
    pub(crate) fn settings_after(&self, effects: &Effects) -> Settings {
        let mut settings = Settings::clone(&self.settings);
        if effects.clears.contains(Clears::DISCARD_ALL) {
            settings = Settings::clone(&self.startup);
        } else if effects.clears.contains(Clears::RESET_ALL) {
            settings = self.settings.beyond_reset_all();
            for (name, value) in self.startup.iter().filter(|(name, _)| !is_who(name)) {
                settings = settings.with(name, value).unwrap_or(settings);
            }
        }
        for name in effects.resets() {
            settings = match self.startup.get(name) {
                Some(value) => settings.with(name, value).unwrap_or(settings),
                None => settings.without(name),
            };
        }
        settings
    }

    /// The server has gone back to its own value of this setting, the client goes back to the one that it
    /// named at its start.
    pub(crate) fn go_back(&mut self, name: &str) {
        let with = self.startup.get(name).map(|value| self.settings.with(name, value));
        if let Some(Ok(settings)) = with {
            let before = std::mem::replace(&mut self.settings, Arc::new(settings));
            self.rare.get_or_insert_default().were_reset.get_or_insert(before);
        }
    }

    /// What it leaves ties the client to its server. Who has set something is who resets it, and could not go
    /// elsewhere then.
    fn is_to_stay(&self, effects: &Effects) -> bool {
        let mut pins = effects.pins;
        if let Some(names) = &effects.names {
            let moves = |name: &str| self.is_told(name) || moves(name);
            let stays = |set: &SetName| !(set.local || set.reset || moves(&set.name));
            if !names.iter().any(stays) {
                pins.remove(Pin::Setting);
            }
        }
        if Locks::ADVISORY.contains(effects.takes) {
            pins.remove(Pin::SessionLock);
        }
        // These end, and then it may go elsewhere. Who has set something where it may reset among other
        // statements may do so here, too.
        if !self.rare.as_deref().is_some_and(|rare| rare.has_been_home) {
            for pin in [Pin::TemporaryTable, Pin::Cursor, Pin::Listen] {
                pins.remove(pin);
            }
        }
        (!pins.is_empty() && self.ties_by_text(effects)) || (effects.pins.is_empty() && self.may_tie(effects))
    }

    /// It asks what it has drawn from a sequence, which one server knows; or stays where it goes now, and may
    /// ask there later.
    pub(crate) fn has_favourite(&self) -> bool {
        (self.asks != Asks::No || self.ties) && self.drew_at != 0
    }

    /// It keeps its server only because it may ask next what it has drawn from a sequence.
    pub(crate) fn is_kept_in_case(&self) -> bool {
        self.traces.is_soft()
    }

    /// It has wishes that not every server fulfils.
    pub(crate) fn is_choosy(&mut self) -> bool {
        if self.wants_own && self.startup_parameters().is_none() {
            // Bytes that no startup packet of Weir's carries.
            self.wants_own = false;
        }
        let chooses = self.wants_own || self.rare.as_deref().is_some_and(|rare| !rare.reads.is_empty());
        if chooses && self.asks == Asks::No {
            // What the last request has drawn is asked by the next one or by none.
            self.traces.soften();
        }
        chooses
    }
}

impl Back {
    /// Opened with a client's startup parameters, whose names and values these are.
    pub(crate) fn opened_with(&mut self, startup: Settings) {
        let startup = Arc::new(startup);
        self.applied = Arc::clone(&startup);
        self.own = Some(startup);
    }

    /// It is for one client only.
    pub(crate) fn is_reserved(&self) -> bool {
        self.own.is_some()
    }

    /// It will do for what the client was found to ask for last.
    pub(crate) fn suits(&self, front: &Front) -> bool {
        match &self.own {
            Some(own) if part_in(&front.startup).is_some() => part_in(own) == part_in(&front.startup),
            Some(own) => **own == *front.startup && self.home_of.is_none_or(|id| id == front.unique()),
            None if front.wants_own => false,
            None => front.rare.as_deref().is_none_or(|rare| self.agrees(rare)),
        }
    }

    /// It knows what the client has drawn from a sequence.
    pub(crate) fn is_favourite(&self, front: &Front) -> bool {
        self.drawn_by == front.unique() && self.server_pid() == front.drew_at
    }

    /// The client has not asked what it has drawn, and others wait.
    pub(crate) fn let_go(&mut self, front: &mut Front) {
        front.traces.soften();
        self.traces.soften();
    }

    /// Of the placeholders that may be asked for it knows none that the client has not named.
    fn agrees(&self, Rare { told: named, reads, .. }: &Rare) -> bool {
        let Some(told) = self.told.as_deref().filter(|_| !reads.is_empty()) else { return true };
        if told.is_any() && !named.is_any() {
            return false;
        }
        told.iter().filter(|name| reads.may_contain(name)).all(|name| named.may_contain(name))
    }

    /// A request of this client begins here: it has what it wished for, as far as that could be had.
    pub(crate) fn begin_own(&mut self, front: &mut Front, out: &mut Vec<u8>) {
        front.wants_own = false;
        let pinned = !front.traces.pins().is_empty();
        if let Some(rare) = front.rare.as_deref_mut().filter(|rare| !rare.reads.is_empty()) {
            // A client that is pinned, or in a transaction, may have given them values here, and of a server
            // that was told of more names than are kept it is not known which it lacks.
            let stays = pinned || self.boundary == Boundary::InTransaction;
            if !(stays && self.told.as_deref().is_some_and(SettingNames::is_any)) {
                self.tell(rare, &front.settings, out);
            }
            rare.reads = SettingNames::default();
        }
        if !self.local_defaults.is_empty() && self.boundary == Boundary::InTransaction {
            self.bring_local(front, out);
        }
    }

    /// A request has ended, outside of a transaction, on a server of its client's own. What it left there
    /// keeps both together for good: what the client resets later could not be brought behind it elsewhere.
    /// Settings that the client takes along do not, and where it left nothing the server goes.
    pub(crate) fn keep_own(&mut self, front: &mut Front) {
        if self.own.is_none() || front.is_at_home || front.traces.firm_pins().is_empty() {
            return;
        }
        front.rare.get_or_insert_default().has_been_home = true;
        if self.only_questions_keep(front) {
            return;
        }
        front.is_at_home = true;
        front.traces.stay_home();
        self.traces.stay_home();
    }

    /// To add placeholders that it is told of.
    pub(crate) fn told(&mut self) -> &mut SettingNames {
        self.knowledge.note_placeholders();
        self.told.get_or_insert_default()
    }

    /// In front of a request that asks for placeholders: those that its client has named elsewhere are made
    /// known.
    fn tell(&mut self, Rare { told: named, reads, .. }: &Rare, settings: &Settings, out: &mut Vec<u8>) {
        if self.boundary == Boundary::Failed || self.skipping || self.needs_sync {
            return;
        }
        let unknown: Vec<&str> = named
            .iter()
            .filter(|name| reads.may_contain(name))
            .filter(|name| self.told.as_deref().is_none_or(|told| !told.contains(name)))
            // It has a value, which comes with the settings or is here.
            .filter(|name| settings.get(name).is_none())
            .collect();
        if unknown.is_empty() {
            return;
        }
        let changes: Vec<_> = unknown.iter().map(|&name| Change { name, value: None }).collect();
        let mut bytes = Vec::new();
        put_changes(&mut bytes, changes.iter(), Scope::Session);
        unknown.iter().for_each(|name| self.told().add(name));
        self.queue.push(Owed::Internal(Internal::Quiet));
        self.unnamed = None;
        self.write(&bytes, out);
    }

    /// In front of a request behind SET LOCAL ... TO DEFAULT: the client's own default, for the same time.
    fn bring_local(&mut self, front: &Front, out: &mut Vec<u8>) {
        let names = std::mem::take(&mut self.local_defaults);
        let change = |name| Some(Change { name, value: Some(front.startup.get(name)?) });
        let changes: Vec<_> = names.iter().filter_map(|name| change(name)).collect();
        if self.skipping || self.needs_sync || changes.is_empty() {
            return;
        }
        let mut bytes = Vec::new();
        put_changes(&mut bytes, changes.iter(), Scope::Transaction);
        self.queue.push(Owed::Internal(Internal::Quiet));
        self.unnamed = None;
        self.write(&bytes, out);
    }

    /// A text of these effects runs here now: which placeholders may be known from then on.
    pub(crate) fn note_told(&mut self, touched: &Touched) {
        if !touched.tells.is_empty() {
            self.told().add_all(&touched.tells);
        }
    }

    /// In this client's search path a new table may be a temporary one.
    pub(crate) fn makes_temporary(&self, front: &Front, effects: &Effects) -> bool {
        // A client that has named another path may go back to the server's in the same text.
        let of_server = self.temporary_path || self.own_temporary_path;
        effects.creates && (of_server || effects.temporary_path || front.has_temporary_path())
    }
}
