//! mysql_users and pgsql_users: Weir's users.

use super::super::NoteKind;
use super::super::document::Named;
use super::servers::Hostgroups;
use super::{Converter, Family, Row};
use crate::Protocol;
use crate::values::Value;
use weir_auth::Secret;
use weir_auth::secret::SecretKind;

const KNOWN: [&str; 9] = [
    "username",
    "password",
    "active",
    "default_hostgroup",
    "fast_forward",
    "transaction_persistent",
    "frontend",
    "backend",
    "use_ssl",
];

const REASONS: [(&str, &str); 5] = [
    ("default_schema", "a client that names no schema has none until it names one"),
    ("schema_locked", "a client may use every schema that the server lets it use"),
    (
        "max_connections",
        "the clients of a user have no limit of their own; limits.max_client_conn is that of all",
    ),
    ("attributes", "a user has only what [users.NAME] can say"),
    ("comment", "comments are not carried"),
];

/// Users that a sentence names.
const NAMED: usize = 5;

impl Converter {
    pub(super) fn users(&mut self, family: &Family, users: &[Row<'_>], hostgroups: &Hostgroups) {
        let (mut clear, mut place) = (Vec::new(), None);
        for row in users {
            let Some(name) = row.text(&["username"]).filter(|name| !name.is_empty()) else {
                self.notes.left_out(row.place.clone(), "a user needs a username");
                continue;
            };
            if let Some(is_clear) = self.user(family, row, &name, hostgroups)
                && is_clear
            {
                place.get_or_insert_with(|| row.place.clone());
                clear.push(name);
            }
        }
        let more = clear.len().saturating_sub(NAMED);
        if !clear.is_empty() {
            let names = clear[..clear.len() - more].join(", ");
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let text = format!(
                "the weir.toml has the passwords of {names}{more} in clear text, as this file; password_file keeps one in a file of its own"
            );
            self.notes.add(NoteKind::Carried, place, text);
        }
    }

    /// Carries a user; whether the password is in clear text. `None`: it was left out.
    fn user(&mut self, family: &Family, row: &Row<'_>, name: &str, groups: &Hostgroups) -> Option<bool> {
        let place = row.place.clone();
        if row.flag(&["active"]) == Some(false) {
            self.notes.left_out(place, format!("user {name} is not active"));
            return None;
        }
        let password = row.text(&["password"]).unwrap_or_default();
        if password.is_empty() {
            let text = format!("user {name} has no password; [users.NAME] needs one");
            self.notes.left_out(place, text);
            return None;
        }
        if password.starts_with("$A$") {
            let text = format!(
                "user {name}: its password is known by a hash of caching_sha2_password, by which Weir can neither check nor log in; [users.NAME] needs the password"
            );
            self.notes.left_out(place, text);
            return None;
        }
        let named = self.document.users.iter().find(|other| other.name == name);
        if let Some(other) = named {
            // ProxySQL may have a row for its clients and one for its servers.
            let same = other.fields.iter().any(|field| *field == ("password", Value::Text(password.clone())));
            if !same {
                let text = format!("user {name} has another password above, and Weir has one for each name");
                self.notes.left_out(place, text);
            }
            return None;
        }
        self.say_of_user(row, name, groups);
        self.rest_of_row(row, &KNOWN, &REASONS);
        let is_clear = self.say_of_password(family, row, name, &password);
        let mut one = Named::new(name);
        one.field("password", Value::Text(password));
        if row.flag(&["fast_forward"]) == Some(true) {
            one.field("pool_mode", Value::Text("session".to_owned()));
        }
        self.document.users.push(one);
        Some(is_clear)
    }

    fn say_of_user(&mut self, row: &Row<'_>, name: &str, groups: &Hostgroups) {
        let place = row.place.clone();
        let number = row.number(&["default_hostgroup"]).unwrap_or(0);
        if !groups.is_main(number) {
            let text = match groups.name(number) {
                Some(database) => format!(
                    "user {name}: the database that a client names decides where it goes, not its user; for hostgroup {number}, clients name the database {database}"
                ),
                None => format!("user {name}: its hostgroup {number} has no server; its clients use *"),
            };
            self.notes.add(NoteKind::Differs, place.clone(), text);
        }
        if row.flag(&["transaction_persistent"]) == Some(false) {
            let text =
                format!("user {name}: transaction_persistent: a transaction stays on its server connection");
            self.notes.add(NoteKind::Differs, place.clone(), text);
        }
        if row.flag(&["use_ssl"]) == Some(true) {
            let text = format!(
                "user {name}: use_ssl: TLS cannot be required of one user; tls.client.sslmode = \"require\" requires it of all"
            );
            self.notes.left_out(place, text);
        }
    }

    /// Whether it is in clear text. By a hash alone Weir can check a password but not log in with it.
    fn say_of_password(&mut self, family: &Family, row: &Row<'_>, name: &str, password: &str) -> bool {
        let hash = match family.protocol {
            Protocol::Mysql => weir_auth::native::parse_stored(password).map(|_| "mysql_native_password"),
            Protocol::Postgres => match Secret::from_userlist(password).kind() {
                // Weir logs in with what the client has proved.
                SecretKind::Md5(_) | SecretKind::ScramVerifier(_) => return false,
                SecretKind::Plain(_) | SecretKind::MySqlNative(_) => None,
            },
        };
        if let Some(method) = hash {
            let text = format!(
                "user {name}: its password is known by a hash of {method}: Weir can check it and not log in to a server with it; put the password here, or a user and a password into the url of the database"
            );
            self.notes.add(NoteKind::Differs, row.place.clone(), text);
        }
        hash.is_none()
    }
}
