//! A summary of the configuration in sentences, for the log at the start.
//!
//! Owns: the sentences. Must not know: files. No sentence contains a password.

use crate::route::Sizes;
use crate::{Database, Protocol, Snapshot};

/// Databases that are described one by one.
const DATABASES_SHOWN: usize = 20;

impl Snapshot {
    /// A line for each database, and one for the limits of clients.
    pub fn description(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for protocol in Protocol::ALL {
            let realm = self.realm(protocol);
            let name = protocol.name();
            lines.extend(
                realm
                    .all_databases()
                    .take(DATABASES_SHOWN)
                    .map(|one| format!("{name} {}", self.database(one))),
            );
            let more = realm.all_databases().count().saturating_sub(DATABASES_SHOWN);
            if more > 0 {
                lines.push(format!("{name}: {more} more databases"));
            }
        }
        lines.push(self.clients());
        lines
    }

    fn database(&self, database: &Database) -> String {
        let sizes = Sizes::of(&self.values, database, None);
        let size = match sizes.auto_size_min {
            Some(min) => format!("{min} to {} connections by trial", sizes.pool_size),
            None => format!("{} connections", sizes.pool_size),
        };
        let pinned = match sizes.pinned_pool_size {
            0 => String::new(),
            more => format!(" and {more} pinned ones"),
        };
        let whose = match &database.forced_user {
            Some(user) => format!("as {} for all users", user.name),
            None => "for each user".to_owned(),
        };
        let tls = database.tls.as_ref().map_or("no TLS".to_owned(), |tls| format!("TLS {}", tls.mode.name()));
        let limit = database.max_db_connections.filter(|&n| n > 0);
        let limit = limit.map_or_else(String::new, |n| format!(", {n} in total"));
        format!(
            "database {} at {}: {} mode, up to {size}{pinned} {whose}{limit}, {tls}",
            database.name,
            database.server,
            sizes.pool_mode.name()
        )
    }

    fn clients(&self) -> String {
        let users = |protocol| {
            let realm = self.realm(protocol);
            if let Some(whose) = realm.asked().filter(|_| !realm.is_empty()) {
                return Some(format!("{} users of {whose}", protocol.name()));
            }
            let s = if realm.users.len() == 1 { "" } else { "s" };
            (!realm.is_empty()).then(|| format!("{} {} user{s}", realm.users.len(), protocol.name()))
        };
        let users: Vec<String> = Protocol::ALL.into_iter().filter_map(users).collect();
        let most = self.limits.max_client_conn.map(|most| format!("up to {most}"));
        format!(
            "clients: {}; {}; TLS {}",
            most.as_deref().unwrap_or("as many as the machine allows"),
            users.join(", "),
            match self.client_tls.mode.name() {
                "disable" => "off",
                mode => mode,
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::{Sources, load_text};
    use std::path::Path;

    #[test]
    fn databases_and_limits_in_words() {
        let text = "[databases.app]\nurl = \"postgres://app:hunter2@10.0.0.1:5433/app\"\nmax_db_connections = 50\n\
                    [databases.shop]\nurl = \"mysql://10.0.0.2/shop\"\n[mysql]\nauth_type = \"mysql_native_password\"\n\
                    [users.app]\npassword = \"hunter2\"\n[users.web]\npassword = \"hunter3\"\n[pool]\npool_mode = \"transaction\"\n";
        let loaded = load_text(Path::new("weir.toml"), text, &Sources::default());
        let lines = loaded.expect("it is right").snapshot.description();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(
            lines[0],
            "postgres database app at 10.0.0.1:5433: transaction mode, up to 20 connections as app for all users, 50 in total, TLS prefer"
        );
        assert!(lines[1].starts_with("mysql database "), "{lines:?}");
        assert!(
            lines[2]
                .starts_with("clients: as many as the machine allows; 2 postgres users, 2 mysql users; TLS "),
            "{lines:?}"
        );
        assert!(!lines.concat().contains("hunter"));
    }
}
