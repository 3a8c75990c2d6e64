//! The target of the parsers: values and entries before they are combined.

use crate::entry::{Entry, Table, entry_key};
use crate::problem::{Findings, Place};
use crate::registry::{Key, by_full_name, by_ini_name};
use crate::values::{Flavour, Value, Values, did_you_mean, parse_text};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Everything that was read.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) values: Values,
    pub(crate) places: BTreeMap<Key, Place>,
    pub(crate) databases: BTreeMap<String, Entry>,
    pub(crate) users: BTreeMap<String, Entry>,
    /// Relative paths in the file start here; `None`: where the process is.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) findings: Findings,
    /// Made once for all databases that ask for the same.
    pub(crate) connectors: Vec<(weir_tls::ConnectorSettings, weir_tls::Connector)>,
}

impl Draft {
    pub(crate) fn new(flavour: Flavour, folder: Option<PathBuf>) -> Draft {
        Draft {
            values: Values::new(flavour),
            places: BTreeMap::new(),
            databases: BTreeMap::new(),
            users: BTreeMap::new(),
            folder,
            findings: Findings::default(),
            connectors: Vec::new(),
        }
    }

    pub(crate) fn set(&mut self, key: Key, value: Value, place: Place) {
        self.values.set(key, value);
        self.places.insert(key, place);
    }

    /// A setting's name in the file that was read, for messages.
    pub(crate) fn name_of(&self, key: Key) -> String {
        crate::registry::setting(key).name_in(self.values.flavour())
    }

    pub(crate) fn entries(&mut self, table: Table) -> &mut BTreeMap<String, Entry> {
        match table {
            Table::Databases => &mut self.databases,
            Table::Users => &mut self.users,
        }
    }

    /// `--set name=value`: the name is `section.key`, PgBouncer's name, or `databases.NAME.key`.
    pub(crate) fn set_argument(&mut self, argument: &str, name: &str, value: &str) {
        let place = Place::Argument(argument.to_owned());
        if let Some((table, entry, key)) = split_entry_name(name) {
            return self.set_entry_argument(place, table, entry, key, value);
        }
        let Some(setting) = by_full_name(name).or_else(|| by_ini_name(name)) else {
            let names: Vec<String> = crate::SETTINGS
                .iter()
                .flat_map(|s| [Some(s.full_name()), s.alias.map(str::to_owned)])
                .flatten()
                .collect();
            let near = did_you_mean(name, &names);
            return self.findings.problem(place, format!("unknown setting `{name}`{near}"));
        };
        match parse_text(setting.kind, value) {
            Ok(value) => self.set(setting.key, value, place),
            Err(error) => self.findings.problem(place, format!("{name} {error}")),
        }
    }

    fn set_entry_argument(&mut self, place: Place, table: Table, entry: &str, key: &str, value: &str) {
        let Some(known) = entry_key(table, key) else {
            let names: Vec<_> =
                crate::entry::ENTRY_KEYS.iter().filter(|k| k.table == table).map(|k| k.name).collect();
            let near = did_you_mean(key, &names);
            return self.findings.problem(place, format!("unknown key `{key}` of {}{near}", table.name()));
        };
        match parse_text(known.kind, value) {
            Ok(value) => {
                let entry =
                    self.entries(table).entry(entry.to_owned()).or_insert_with(|| Entry::new(place.clone()));
                entry.fields.insert(known.name, (value, place));
            }
            Err(error) => self.findings.problem(place, format!("{key} {error}")),
        }
    }
}

/// `databases.NAME.key`; the name may contain dots.
fn split_entry_name(name: &str) -> Option<(Table, &str, &str)> {
    let (table, rest) = name.split_once('.')?;
    let table = match table {
        "databases" => Table::Databases,
        "users" => Table::Users,
        _ => return None,
    };
    let (entry, key) = rest.rsplit_once('.')?;
    Some((table, entry, key))
}
