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
        "Address of the database: postgres://user:password@host:port/database or mysql://... Weir logs in to the server as this user; without one, it uses each client's own user and password.",
    ),
    database(
        "name",
        Kind::Text,
        true,
        false,
        "Database name that clients use, if it differs from the name of the table.",
    ),
    database(
        "host",
        Kind::Text,
        false,
        true,
        "Host name, address or directory of a Unix socket. Default: the Unix socket in unix_socket_dir.",
    ),
    database("port", PORT, false, true, "Port of the server, 5432 unless set."),
    database(
        "dbname",
        Kind::Text,
        false,
        true,
        "Database name on the server, if it differs from the name that clients use.",
    ),
    database(
        "user",
        Kind::Text,
        true,
        true,
        "User that Weir logs in to the server as. Default: each client's own user and password.",
    ),
    database(
        "password",
        Kind::Text,
        true,
        true,
        "Password of that user, or `${NAME}` for an environment variable (weir.toml only). Default: the password that the user has as a client.",
    ),
    database(
        "password_file",
        Kind::Text,
        true,
        false,
        "File that contains only that password. The path may begin with an environment variable, such as `${CREDENTIALS_DIRECTORY}/app` for a systemd credential.",
    ),
    database(
        "pool_size",
        SIZE_OR_AUTO,
        true,
        true,
        "Maximum number of server connections for each user of this database, or auto. Overrides default_pool_size.",
    ),
    database(
        "pinned_pool_size",
        SIZE_OR_NONE,
        true,
        false,
        "Maximum number of pinned server connections beyond pool_size, for each user of this database. Overrides the general pinned_pool_size.",
    ),
    database(
        "pins",
        Kind::List,
        true,
        false,
        "What happens to clients of this database that pin, by reason, such as `pins = [\"session_lock = error\", \"listen = warn\"]`. Overrides [pins].",
    ),
    database(
        "min_pool_size",
        SIZE_OR_NONE,
        true,
        true,
        "Minimum number of server connections to keep open for each user of this database.",
    ),
    database(
        "max_db_connections",
        SIZE_OR_NONE,
        true,
        true,
        "Maximum number of server connections of this database, over all users. 0: the sum of its pools.",
    ),
    database(
        "pipeline_depth",
        SIZE,
        true,
        false,
        "Maximum number of requests of different clients that Weir sends back to back on one server connection of this database.",
    ),
    database("pool_mode", MODES, true, true, "Pool mode of this database."),
    database(
        "share",
        SHARE,
        true,
        false,
        "Weight of this database's pools when several pools compete for one limit (max_user_connections): 3 gets three times as many server connections as 1.",
    ),
    database(
        "reserved_connections",
        SIZE_OR_NONE,
        true,
        false,
        "Server connections reserved for each of this database's pools under a shared limit: other pools cannot take them. If the reservations use up the whole limit, pools without one get no connection.",
    ),
    database(
        "auth_user",
        Kind::Text,
        true,
        true,
        "User that runs auth_query for clients of this database. Overrides the general auth_user.",
    ),
    database(
        "auth_query",
        Kind::Text,
        true,
        true,
        "Query for the password of a user of this database. Overrides the general auth_query.",
    ),
    database(
        "auth_dbname",
        Kind::Text,
        true,
        true,
        "Database in [databases] that auth_query runs on for clients of this one. Overrides the general auth_dbname.",
    ),
    user(
        "password_file",
        Kind::Text,
        true,
        false,
        "File that contains only the password. The path may begin with an environment variable, such as `${CREDENTIALS_DIRECTORY}/web` for a systemd credential.",
    ),
    user(
        "password",
        Kind::Text,
        true,
        false,
        "Password, or `${NAME}` for an environment variable; in clear text or as the server stores it: md5... or SCRAM-SHA-256$... for PostgreSQL, * and 40 hexadecimal digits (mysql_native_password) for MySQL.",
    ),
    user(
        "share",
        SHARE,
        true,
        false,
        "Weight of this user's pools when several pools compete for one limit (max_db_connections): 3 gets three times as many server connections as 1. Overrides the database's.",
    ),
    user(
        "reserved_connections",
        SIZE_OR_NONE,
        true,
        false,
        "Server connections reserved for each of this user's pools under a shared limit: other pools cannot take them. If the reservations use up the whole limit, pools without one get no connection. Overrides the database's.",
    ),
    user("pool_mode", MODES, true, true, "Pool mode of this user. Overrides the database's."),
    user(
        "pool_size",
        SIZE_OR_AUTO,
        true,
        true,
        "Maximum number of server connections of this user for each database, or auto. Overrides the database's.",
    ),
    user(
        "pinned_pool_size",
        SIZE_OR_NONE,
        true,
        false,
        "Maximum number of pinned server connections beyond pool_size, of this user for each database. Overrides the database's.",
    ),
    user(
        "pins",
        Kind::List,
        true,
        false,
        "What happens to this user's clients that pin, by reason, such as `pins = [\"session_lock = error\"]`. Overrides the database's.",
    ),
    user(
        "max_user_connections",
        SIZE_OR_NONE,
        true,
        true,
        "Maximum number of server connections of this user, over all databases. 0: the sum of the user's pools.",
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
