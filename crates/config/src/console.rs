//! Who may log in to the administration console, and with which rights.
//!
//! Owns: the names of its database, and who is let in. Must not know: the console's commands.
//!
//! Invariant: a database that the configuration names is that database, whatever its name; and if the name
//! could also be that of a database on a server, only a listed user reaches the console by it.

use crate::values::Flavour;
use crate::{Key, Origin, Protocol, Snapshot};
use weir_session::Login;

/// What somebody may do at the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// Everything (`admin_users`).
    Admin,
    /// Look (`stats_users`).
    Stats,
    /// He is who runs Weir, as the kernel says: everything, and no password is asked.
    Owner,
}

/// PgBouncer's name of its console.
pub const PGBOUNCER: &str = "pgbouncer";
/// Weir's own, on both protocols.
pub const WEIR: &str = "weir";

impl Snapshot {
    /// A login names the console: what it may do there, or `None` within: nothing. Without: it names a
    /// database.
    pub fn console(
        &self,
        protocol: Protocol,
        login: &Login,
        from: Origin<'_>,
        own_uid: u32,
    ) -> Option<Option<Rights>> {
        let name = match (login.database.as_deref().unwrap_or_default(), protocol) {
            ("", Protocol::Postgres) => login.user.as_str(),
            (name, _) => name,
        };
        let is_ours = name == WEIR || (name == PGBOUNCER && protocol == Protocol::Postgres);
        let realm = self.realm(protocol);
        if !is_ours || login.replication || realm.databases.contains_key(name) {
            return None;
        }
        let is_listed = |key: Key| self.values.list(key).contains(&login.user);
        let rights = if from.uid == Some(own_uid) && (login.user == PGBOUNCER || login.user == WEIR) {
            Some(Rights::Owner)
        } else if is_listed(Key::AdminUsers) {
            Some(Rights::Admin)
        } else if is_listed(Key::StatsUsers) {
            Some(Rights::Stats)
        } else {
            None
        };
        // PgBouncer has reserved that name in its own files.
        let reserved = name == PGBOUNCER && self.values.flavour() == Flavour::Pgbouncer;
        (rights.is_some() || reserved || realm.fallback.is_none()).then_some(rights)
    }
}
