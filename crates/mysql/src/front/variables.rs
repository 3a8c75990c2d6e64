//! The user variables of a client: which of them a request may see or set, and which have a value that only
//! one server knows.
//!
//! Owns: that. Must not know: how values are queried and restored (`follow.rs`).
//!
//! Invariants: a client that may stay on a server (in a transaction, with a pin) and one that sets variables
//! finds all its own variables there and no others; a client that only reads some finds those. A variable
//! whose value only one server knows pins its client to that server.

use super::{Front, remove_setting, runs_user_code};
use crate::follow::{Named, Told, Variables, Wanted};
use crate::message::{Command, status};
use crate::session_state::{Flavour, Slot};
use std::sync::Arc;
use weir_sql::{Class, SettingNames, Uses};
use weir_wire::{Pin, limits};

/// The user variables of a client.
#[derive(Debug, Default)]
pub(crate) struct Own {
    /// Those that go along with it.
    known: Option<Arc<Variables>>,
    /// Those that only its server knows.
    unasked: Vec<Box<str>>,
}

impl Front {
    fn own_variables(&self) -> Option<&Own> {
        self.rare.as_deref().map(|rare| &rare.variables)
    }

    /// Those that go along.
    pub(crate) fn variables(&self) -> Option<&Arc<Variables>> {
        self.own_variables()?.known.as_ref()
    }

    /// Those that only its server knows so far.
    pub(crate) fn unasked_variables(&self) -> &[Box<str>] {
        self.own_variables().map_or(&[], |own| &own.unasked)
    }

    /// The session begins anew.
    pub(super) fn forget_variables(&mut self) {
        if let Some(rare) = self.rare.as_deref_mut() {
            rare.variables = Own::default();
        }
    }

    /// All that it has stays where it is.
    pub(super) fn variables_stay(&mut self) {
        self.forget_variables();
        self.pins.insert(Pin::UserVariable);
    }

    /// What these variables are is known to its server only.
    pub(super) fn note_variables_of(&mut self, class: &Class) {
        if self.pins.contains(Pin::UserVariable) {
            return;
        }
        let Some(names) = class.user_variables().filter(|names| !names.is_any()) else {
            return self.variables_stay();
        };
        let unasked = &mut self.rare.get_or_insert_default().variables.unasked;
        for name in names.iter() {
            if !unasked.iter().any(|known| **known == *name) {
                unasked.push(name.into());
            }
        }
        if unasked.len() > limits::USER_VARIABLES {
            self.variables_stay();
        }
    }

    /// A server has said what they are; `None` when it has not, or in a way that cannot be said to others.
    pub(crate) fn keep_variables(&mut self, told: Option<&Told>) {
        let mut all = self.variables().map(|all| Variables::clone(all)).unwrap_or_default();
        for (name, value) in told.into_iter().flatten() {
            match value {
                Some(assignment) => all.set(name, assignment.clone()),
                None => all.remove(name),
            }
        }
        if told.is_none() || !all.fits() {
            return self.variables_stay();
        }
        let own = &mut self.rare.get_or_insert_default().variables;
        own.unasked = Vec::new();
        own.known = Some(Arc::new(all)).filter(|all| all.iter().next().is_some());
    }

    /// What a statement of this text comes to depends on these variables as they are now.
    pub(crate) fn variables_of(&mut self, class: &Class) -> Option<Named> {
        let names = class.user_variables()?;
        if self.pins.contains(Pin::UserVariable) {
            // It is of use here only, and goes with what is here.
            return None;
        }
        if !self.unasked_variables().is_empty() {
            self.variables_stay();
            return None;
        }
        let makes = class.uses.contains(Uses::USER_VARIABLE_WRITE);
        Some(Named { wanted: self.named_variables(names), makes })
    }

    /// Those of these names.
    fn named_variables(&self, names: &SettingNames) -> Wanted {
        let all = self.variables();
        if names.is_any() {
            return Wanted::All(all.cloned());
        }
        let of = |name: &str| (name.into(), all.and_then(|all| all.get(name)).map(Into::into));
        Wanted::Named(names.iter().map(of).collect())
    }

    /// The variables that the request under way must find on its server. `whole`: all of it is known.
    pub(crate) fn wants_variables(&self, whole: bool) -> Option<Wanted> {
        let request = &self.request;
        let runs = matches!(request.command, Command::Query | Command::StmtExecute);
        // Long data stays where it was sent.
        let sends = request.command == Command::StmtSendLongData;
        let other = !runs && !sends && request.command != Command::StmtPrepare;
        if other || self.pins.contains(Pin::UserVariable) {
            return None;
        }
        let class = &request.class;
        // What is prepared may make some, and then ties its client to this server.
        let writes = class.uses.contains(Uses::USER_VARIABLE_WRITE) || request.makes_variables();
        if !whole || sends || writes || runs && self.may_be_tied() {
            return Some(Wanted::All(self.variables().cloned()));
        }
        class.user_variables().map(|names| self.named_variables(names))
    }

    /// The request under way sees variables, or nobody knows.
    pub(crate) fn may_see_variables(&self, whole: bool) -> bool {
        let class = &self.request.class;
        !whole || class.user_variables().is_some() || !class.proven && runs_user_code(class)
    }

    /// Its client may not leave its server behind the request under way.
    fn may_be_tied(&self) -> bool {
        let class = &self.request.class;
        let quiet = self.status & (status::IN_TRANS | status::AUTOCOMMIT) == status::AUTOCOMMIT;
        let commits = !self.traits.autocommit_off || self.state.setting(Slot::Autocommit) == Some("1");
        if self.request.command == Command::StmtExecute
            && (!class.shareable || self.traits.flavour == Flavour::MySql)
        {
            // A cursor ties, and on MySQL types of parameters that have changed.
            return true;
        }
        if quiet && commits && class.shareable && class.proven {
            return false;
        }
        let mut pins = class.pins;
        pins.remove(Pin::LastResult);
        if self.request.extra.as_deref().is_some_and(|extra| extra.changes.is_some()) {
            remove_setting(&mut pins, class);
        }
        !quiet
            || !commits
            || class.statements > 1
            || class.doubtful
            || class.transaction.is_some()
            || class.uses.contains(Uses::TRANSACTION)
            || !pins.is_empty()
            || !class.proven && runs_user_code(class)
    }
}
