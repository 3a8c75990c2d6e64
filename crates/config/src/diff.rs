//! What a reload changes.

use crate::registry::{Change, SETTINGS};
use crate::{Protocol, Snapshot};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The difference between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Settings whose value is another.
    pub settings: Vec<ChangedSetting>,
    /// Databases and users, as `postgres database app`.
    pub added: Vec<String>,
    /// The same.
    pub removed: Vec<String>,
    /// The same.
    pub changed: Vec<String>,
}

/// A setting whose value is another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSetting {
    /// Its name in the file.
    pub name: String,
    /// The value that holds.
    pub old: String,
    /// The value that the file asks for.
    pub new: String,
    /// It takes effect at the next start only.
    pub restart: bool,
}

impl Difference {
    /// Nothing is different.
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
            && self.added.is_empty()
            && self.removed.is_empty()
            && self.changed.is_empty()
    }

    /// Something takes effect at the next start only.
    pub fn needs_restart(&self) -> bool {
        self.settings.iter().any(|setting| setting.restart)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for setting in &self.settings {
            let later = if setting.restart { " (at the next start)" } else { "" };
            parts.push(format!("{} {} -> {}{later}", setting.name, setting.old, setting.new));
        }
        for (what, names) in [("added", &self.added), ("removed", &self.removed), ("changed", &self.changed)]
        {
            parts.extend(names.iter().map(|name| format!("{what} {name}")));
        }
        if parts.is_empty() { f.write_str("nothing changed") } else { f.write_str(&parts.join(", ")) }
    }
}

/// What is different in `new`.
pub fn diff(old: &Snapshot, new: &Snapshot) -> Difference {
    let mut difference = Difference::default();
    for row in SETTINGS {
        let (before, after) = (old.values.show(row.key), new.values.show(row.key));
        // What is hidden looks the same before and after.
        if old.values.value(row.key) != new.values.value(row.key) {
            let restart = row.change == Change::Restart;
            difference.settings.push(ChangedSetting {
                name: row.name_in(new.values.flavour()),
                old: before,
                new: after,
                restart,
            });
        }
    }
    if old.postgres.hba.is_some() && new.postgres.hba.is_some() && old.postgres.hba != new.postgres.hba {
        difference.changed.push("the lines of auth_hba_file".to_owned());
    }
    for protocol in Protocol::ALL {
        let (old, new) = (old.realm(protocol), new.realm(protocol));
        let named = |realm: &crate::Realm| -> BTreeMap<String, Arc<crate::Database>> {
            realm.all_databases().map(|database| (database.name.clone(), database.clone())).collect()
        };
        difference.compare(&format!("{} database", protocol.name()), &named(old), &named(new));
        difference.compare(&format!("{} user", protocol.name()), &old.users, &new.users);
    }
    difference
}

impl Difference {
    fn compare<T: PartialEq>(&mut self, what: &str, old: &BTreeMap<String, T>, new: &BTreeMap<String, T>) {
        for (name, value) in new {
            match old.get(name) {
                None => self.added.push(format!("{what} {name}")),
                Some(before) if before != value => self.changed.push(format!("{what} {name}")),
                Some(_) => {}
            }
        }
        self.removed
            .extend(old.keys().filter(|name| !new.contains_key(*name)).map(|name| format!("{what} {name}")));
    }
}
