//! Transactions, and the settings that end or return with them.

use super::{Engine, REPORTED, Settings, Transaction, value};
use crate::postgres::sql::{Command, Statement};
use crate::postgres::wire::{put_complaint, put_parameter};
use std::rc::Rc;

impl Engine {
    pub(super) fn discard_all(&mut self) {
        self.portals.clear();
        self.statements.clear();
        self.temporary = None;
        self.listening = false;
        self.locked = false;
        let defaults = self.defaults.clone();
        self.change_all(defaults);
        self.owner_of_state = None;
    }

    pub(super) fn unknown(&mut self, statement: &Statement) {
        self.problem = Some(format!("the model does not understand {:?}", statement.text));
    }

    // Settings.

    pub(super) fn set(&mut self, name: &str, value: Option<String>) -> Result<(), (&'static str, String)> {
        let known = name.contains('.') || self.defaults.contains_key(name);
        if !known {
            return Err(("42704", format!("unrecognized configuration parameter \"{name}\"")));
        }
        let value = value.or_else(|| self.defaults.get(name).cloned()).unwrap_or_default();
        if value.starts_with("bad") {
            return Err(("22023", format!("invalid value for parameter \"{name}\": \"{value}\"")));
        }
        let mut settings = self.settings.clone();
        Rc::make_mut(&mut settings).insert(name.to_owned(), value);
        self.change_all(settings);
        Ok(())
    }

    /// Changes settings and reports those that are reported.
    pub(super) fn change_all(&mut self, settings: Settings) {
        if !Rc::ptr_eq(&self.settings, &settings) {
            for (name, _) in REPORTED {
                let new = value(&settings, name);
                if value(&self.settings, name) != new {
                    put_parameter(&mut self.held, name, new.map_or("", String::as_str));
                }
            }
        }
        self.settings = settings;
    }

    // Transactions.

    pub(super) fn open_implicit(&mut self, statement: &Statement) {
        if matches!(statement.command, Command::Commit | Command::Rollback) {
            return;
        }
        if self.settings_before.is_none() {
            self.settings_before = Some(self.settings.clone());
            self.temporary_before = Some(self.temporary.clone());
        }
        if self.transaction == Transaction::Idle {
            self.implicit = true;
        }
    }

    pub(super) fn end_implicit(&mut self) {
        if self.transaction == Transaction::Idle && (self.implicit || !self.staged.is_empty()) {
            self.commit();
        }
        if self.transaction == Transaction::Idle {
            self.portals.clear();
        }
    }

    pub(super) fn commit(&mut self) {
        self.committed.append(&mut self.staged);
        self.settings_before = None;
        self.temporary_before = None;
        self.end_local();
        self.end_transaction();
    }

    /// SET LOCAL ends with its transaction.
    pub(super) fn end_local(&mut self) {
        if self.local.is_empty() {
            return;
        }
        let mut settings = self.settings.clone();
        for (name, before) in std::mem::take(&mut self.local) {
            match before {
                Some(before) => drop(Rc::make_mut(&mut settings).insert(name, before)),
                None => drop(Rc::make_mut(&mut settings).remove(&name)),
            }
        }
        self.change_all(settings);
    }

    pub(super) fn roll_back(&mut self) {
        self.staged.clear();
        self.local.clear();
        if let Some(before) = self.settings_before.take() {
            self.change_all(before);
        }
        if let Some(before) = self.temporary_before.take() {
            self.temporary = before;
        }
        self.end_transaction();
    }

    /// The savepoint stays.
    pub(super) fn roll_back_to_savepoint(&mut self) {
        let Some(before) = self.savepoint.clone() else { return };
        self.staged.truncate(before.staged);
        self.local = before.local;
        self.temporary = before.temporary;
        self.change_all(before.settings);
        self.transaction = Transaction::Open;
    }

    pub(super) fn end_transaction(&mut self) {
        self.savepoint = None;
        self.transaction = Transaction::Idle;
        self.implicit = false;
        self.portals.clear();
    }

    /// A statement fails: ErrorResponse, and what follows from it.
    pub(super) fn fail(&mut self, code: &str, text: &str, extended: bool) {
        put_complaint(&mut self.held, b'E', "ERROR", code, text);
        self.flush();
        match self.transaction {
            Transaction::Idle => self.roll_back(),
            Transaction::Open => {
                self.transaction = Transaction::Failed;
                self.portals.clear();
            }
            Transaction::Failed => {}
        }
        self.queue.clear();
        if extended {
            self.skips = true;
        } else {
            self.in_query = false;
            self.ready();
        }
    }
}
