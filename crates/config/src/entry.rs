//! Entries of the two named tables, `databases` and `users`: their keys, for all parsers.

use crate::Protocol;
use crate::problem::Place;
use crate::registry::Kind;
use crate::values::Value;
use std::collections::BTreeMap;

/// A named table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// `[databases.NAME]`, `[databases]`.
    Databases,
    /// `[users.NAME]`, `[users]`.
    Users,
}

impl Table {
    /// Its name in both files.
    pub fn name(self) -> &'static str {
        match self {
            Table::Databases => "databases",
            Table::Users => "users",
        }
    }
}

/// A key an entry may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryKey {
    /// The table.
    pub table: Table,
    /// The name, in both files.
    pub name: &'static str,
    /// Type, unit and bounds.
    pub kind: Kind,
    /// weir.toml may have it.
    pub toml: bool,
    /// pgbouncer.ini may have it.
    pub ini: bool,
    /// What it does.
    pub text: &'static str,
}

const MODES: Kind = Kind::Word(&["session", "transaction", "statement"]);
const SIZE: Kind = Kind::Count { min: 1, max: 262_143, unit: "connections" };
const SIZE_OR_AUTO: Kind = Kind::Size { max: 262_143, unit: "connections" };
const SIZE_OR_NONE: Kind = Kind::Count { min: 0, max: 262_143, unit: "connections" };
const SHARE: Kind = Kind::Count { min: 1, max: 1_000, unit: "" };
const PORT: Kind = Kind::Count { min: 1, max: 65535, unit: "" };

const fn database(name: &'static str, kind: Kind, toml: bool, ini: bool, text: &'static str) -> EntryKey {
    EntryKey { table: Table::Databases, name, kind, toml, ini, text }
}

const fn user(name: &'static str, kind: Kind, toml: bool, ini: bool, text: &'static str) -> EntryKey {
    EntryKey { table: Table::Users, name, kind, toml, ini, text }
}

/// All keys of entries.
pub static ENTRY_KEYS: &[EntryKey] = &[
    database(
        "url",
        Kind::Text,
        true,
        false,
        "Where the database is: postgres://user:password@host:port/database or mysql://... The user is who Weir logs in as; without one, each client's own user and password are used.",
    ),
    database(
        "name",
        Kind::Text,
        true,
        false,
        "The name clients ask for, when it is not the name of the table.",
    ),
    database(
        "host",
        Kind::Text,
        false,
        true,
        "Host name, address or directory of a Unix socket. Without it the Unix socket in unix_socket_dir is used.",
    ),
    database("port", PORT, false, true, "Port of the server, 5432 unless set."),
    database(
        "dbname",
        Kind::Text,
        false,
        true,
        "The name on the server, when it is not the name clients ask for.",
    ),
    database(
        "user",
        Kind::Text,
        true,
        true,
        "Who Weir logs in as. Without one, each client's own user and password are used.",
    ),
    database(
        "password",
        Kind::Text,
        true,
        true,
        "The password of that user, or `${NAME}` for an environment variable (weir.toml). Without one, the password the user has as a client.",
    ),
    database(
        "password_file",
        Kind::Text,
        true,
        false,
        "A file that holds that password and nothing else. Its path may begin with a variable, such as `${CREDENTIALS_DIRECTORY}/app` for a credential of systemd.",
    ),
    database(
        "pool_size",
        SIZE_OR_AUTO,
        true,
        true,
        "Server connections for each user of this database, or auto, instead of default_pool_size.",
    ),
    database(
        "min_pool_size",
        SIZE_OR_NONE,
        true,
        true,
        "Server connections to keep open for each user of this database.",
    ),
    database(
        "max_db_connections",
        SIZE_OR_NONE,
        true,
        true,
        "Server connections of this database, whatever the user. 0: as many as its pools may have.",
    ),
    database(
        "pipeline_depth",
        SIZE,
        true,
        false,
        "Requests of different clients that one server connection of this database carries back to back.",
    ),
    database("pool_mode", MODES, true, true, "The pool mode of this database."),
    database(
        "share",
        SHARE,
        true,
        false,
        "Share of its pools in a limit that several pools have (max_user_connections) while all of them want more: 3 gets three times as many server connections as 1.",
    ),
    database(
        "reserved_connections",
        SIZE_OR_NONE,
        true,
        false,
        "Server connections of each of its pools that no other pool under the same limit takes, and that it gets first. Leave something of the limit to the others: what all is reserved for nobody else gets.",
    ),
    user(
        "password_file",
        Kind::Text,
        true,
        false,
        "A file that holds the password and nothing else. Its path may begin with a variable, such as `${CREDENTIALS_DIRECTORY}/web` for a credential of systemd.",
    ),
    user(
        "password",
        Kind::Text,
        true,
        false,
        "The password, or `${NAME}` for an environment variable, in clear or as the server stores it: md5... or SCRAM-SHA-256$... for PostgreSQL, * and 40 digits of mysql_native_password for MySQL.",
    ),
    user(
        "share",
        SHARE,
        true,
        false,
        "Share of this user's pools in a limit that several pools have (max_db_connections) while all of them want more: 3 gets three times as many server connections as 1. It goes before the database's.",
    ),
    user(
        "reserved_connections",
        SIZE_OR_NONE,
        true,
        false,
        "Server connections of each of this user's pools that no other pool under the same limit takes, and that it gets first. Leave something of the limit to the others: what all is reserved for nobody else gets. It goes before the database's.",
    ),
    user("pool_mode", MODES, true, true, "The pool mode of this user; it goes before the database's."),
    user(
        "pool_size",
        SIZE_OR_AUTO,
        true,
        true,
        "Server connections of this user for each database, or auto; it goes before the database's.",
    ),
    user(
        "max_user_connections",
        SIZE_OR_NONE,
        true,
        true,
        "Server connections of this user, whatever the database. 0: as many as its pools may have.",
    ),
];

/// The key called `name`.
pub fn entry_key(table: Table, name: &str) -> Option<&'static EntryKey> {
    ENTRY_KEYS.iter().find(|key| key.table == table && key.name == name)
}

/// One entry as it was read: values inside their bounds, and where they stand.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Where the entry begins.
    pub(crate) place: Place,
    pub(crate) fields: BTreeMap<&'static str, (Value, Place)>,
    /// What host, port and socket directory come to when the entry has no URL.
    pub(crate) from_ini: bool,
    /// One of its keys was wrong, which has been said; what follows from that need not be.
    pub(crate) broken: bool,
    /// Given on the command line: the name clients use follows from the URL.
    pub(crate) from_url: Option<Protocol>,
}

impl Entry {
    pub(crate) fn new(place: Place) -> Entry {
        Entry { place, fields: BTreeMap::new(), from_ini: false, broken: false, from_url: None }
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.fields.get(key) {
            Some((Value::Text(text), _)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn count(&self, key: &str) -> Option<usize> {
        match self.fields.get(key) {
            Some((Value::Count(n), _)) => usize::try_from(*n).ok(),
            _ => None,
        }
    }

    pub(crate) fn place_of(&self, key: &str) -> Place {
        self.fields.get(key).map_or_else(|| self.place.clone(), |(_, place)| place.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_named_once_and_belong_to_a_file() {
        let mut seen = std::collections::BTreeSet::new();
        for key in ENTRY_KEYS {
            assert!(seen.insert((key.table, key.name)), "{} twice", key.name);
            assert!(key.toml || key.ini, "{} is nowhere", key.name);
            assert!(key.text.ends_with('.'), "{}: the text is a sentence", key.name);
        }
    }
}
