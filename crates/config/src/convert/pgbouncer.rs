//! From a pgbouncer.ini to a weir.toml.
//!
//! Owns: how each of its settings is said in weir.toml. Must not know: how a pgbouncer.ini is read; the draft
//! comes from the reader that serves use.

use super::document::{Document, Named, encoded, host};
use super::{NoteKind, Notes};
use crate::build::build;
use crate::draft::Draft;
use crate::entry::{ENTRY_KEYS, Entry, Table};
use crate::fate::{DIFFERS, ZERO_DIFFERS};
use crate::pgbouncer::read_ini;
use crate::problem::{Place, Problems, WarningKind};
use crate::registry::{Files, Key, Kind, SETTINGS, Setting};
use crate::values::{Flavour, Value, Values, show};
use crate::{Loaded, Snapshot};
use std::path::{Path, PathBuf};

/// The document, and what was not carried into it.
///
/// # Errors
/// The problems for which Weir would not serve the file.
pub(super) fn convert(file: &Path, text: &str) -> Result<(Document, Notes), Problems> {
    let read = || {
        let mut draft = Draft::new(Flavour::Pgbouncer, None);
        read_ini(&file.into(), text, &mut draft);
        draft
    };
    let loaded = build(read())?;
    let here = std::env::current_dir().unwrap_or_default();
    let document = Document {
        head: vec![
            format!("Converted from {} by `weir config convert`.", file.display()),
            "Check with `weir check-config FILE`, start with `weir serve --config FILE`.".to_owned(),
        ],
        ..Document::default()
    };
    let mut converter = Converter { draft: read(), here, document, notes: Notes::default() };
    converter.settings();
    converter.databases();
    converter.users(&loaded.snapshot);
    converter.findings(loaded);
    Ok((converter.document, converter.notes))
}

struct Converter {
    draft: Draft,
    /// PgBouncer takes relative paths from where it was started.
    here: PathBuf,
    document: Document,
    notes: Notes,
}

impl Converter {
    fn place(&self, key: Key) -> Option<Place> {
        self.draft.places.get(&key).cloned()
    }

    fn settings(&mut self) {
        let weir = Values::new(Flavour::Weir);
        for row in SETTINGS.iter().filter(|row| row.files == Files::All) {
            let given = self.draft.values.is_given(row.key);
            match row.key {
                Key::PostgresListen if !given => self.listen(),
                // There are no databases of MySQL in such a file.
                Key::MysqlListen if !given => {}
                Key::ServerLifetime if *self.draft.values.value(row.key) == Value::Millis(0) => {
                    let text =
                        "server_lifetime = 0: a weir.toml has 1 ms for one use; there, 0 means no limit";
                    self.notes.add(NoteKind::Carried, self.place(row.key), text);
                    self.document.set(row.key, Value::Millis(1), "one use");
                }
                _ if given => self.given(row),
                key if self.draft.values.value(key) != weir.value(key) => {
                    let mine = match weir.value(key) {
                        Value::Bool(value) => value.to_string(),
                        value => show(row.kind, value),
                    };
                    let mine = if mine.is_empty() { "empty".to_owned() } else { mine };
                    let comment = format!("PgBouncer's default; Weir's is {mine}");
                    self.document.set(key, self.draft.values.value(key).clone(), comment);
                }
                _ => {}
            }
        }
        if self.draft.values.secret(Key::PostgresAuthLdapOptions).contains("ldapbindpasswd") {
            let text = "ldapbindpasswd is in the weir.toml in clear text, as in this file; there, `${NAME}` stands for an environment variable";
            self.notes.add(NoteKind::Carried, self.place(Key::PostgresAuthLdapOptions), text);
        }
        if self.draft.values.is_given(Key::HttpToken) {
            let text =
                "http.token is in the weir.toml in clear text; token_file keeps it in a file of its own";
            self.notes.add(NoteKind::Carried, self.place(Key::HttpToken), text);
        }
    }

    fn given(&mut self, row: &Setting) {
        let value = self.draft.values.value(row.key).clone();
        let value = match (row.kind, value) {
            (Kind::Path, Value::Text(path)) => Value::Text(self.absolute(&path, self.place(row.key))),
            (_, value) => value,
        };
        self.document.set(row.key, value, "");
        let Some(alias) = row.alias else { return };
        let is_off = matches!(self.draft.values.value(row.key), Value::Count(0) | Value::Millis(0));
        // That was said where its 0 means something else.
        let was_said = is_off && ZERO_DIFFERS.iter().any(|(name, _)| *name == alias);
        if let Some((_, how)) = DIFFERS.iter().find(|(name, _)| *name == alias && !was_said) {
            self.notes.add(NoteKind::Differs, self.place(row.key), format!("{alias}: {how}"));
        }
    }

    /// A path that means the same wherever the weir.toml lies.
    fn absolute(&mut self, path: &str, place: Option<Place>) -> String {
        if path.is_empty() || path.starts_with(['/', '@']) {
            return path.to_owned();
        }
        let whole = self.here.join(path).display().to_string();
        let text = format!(
            "{path} is written as {whole}: relative paths are relative to the directory of weir.toml, and not to that in which Weir is started"
        );
        self.notes.add(NoteKind::Carried, place, text);
        whole
    }

    /// `postgres.listen`, of listen_addr, listen_port and unix_socket_dir.
    fn listen(&mut self) {
        let port = self.draft.values.count(Key::ListenPort);
        let mut items: Vec<String> = Vec::new();
        for host in self.draft.values.list(Key::ListenAddr) {
            let bracketed = host.contains(':');
            let item = if bracketed { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
            if !items.contains(&item) {
                items.push(item);
            }
        }
        let directory = self.socket_directory(true);
        if !directory.is_empty() {
            items.push(format!("{directory}:{port}"));
        }
        self.document.set(Key::PostgresListen, Value::List(items), "");
    }

    fn socket_directory(&mut self, say: bool) -> String {
        let directory = self.draft.values.text(Key::UnixSocketDir).to_owned();
        if say {
            let place = self.place(Key::UnixSocketDir);
            return self.absolute(&directory, place);
        }
        let is_whole = directory.is_empty() || directory.starts_with(['/', '@']);
        if is_whole { directory } else { self.here.join(directory).display().to_string() }
    }

    fn databases(&mut self) {
        let sockets = self.socket_directory(false);
        let databases = std::mem::take(&mut self.draft.databases);
        for (name, entry) in &databases {
            let mut one = Named::new(name);
            one.field("url", Value::Text(url(entry, &sockets)));
            fields(Table::Databases, entry, &mut one);
            if entry.text("password").is_some_and(|password| !password.is_empty()) {
                let text = format!(
                    "the password of database {name} is in the weir.toml in clear text, as in this file; password_file keeps it in a file of its own"
                );
                self.notes.add(NoteKind::Carried, entry.place_of("password"), text);
            }
            if name == "*" {
                let text = "database pgbouncer: whoever may not use the console is refused with a pgbouncer.ini; \
                            with a weir.toml, that name is one of those that * stands for";
                self.notes.add(NoteKind::Differs, entry.place.clone(), text);
            }
            self.document.databases.push(one);
        }
        self.draft.databases = databases;
    }

    /// Users that the file qualifies and does not list cannot log in. The reader says so.
    fn users(&mut self, snapshot: &Snapshot) {
        for (name, entry) in &self.draft.users {
            if snapshot.postgres.users.contains_key(name) {
                let mut one = Named::new(name);
                fields(Table::Users, entry, &mut one);
                self.document.users.push(one);
            }
        }
        let is_named = |entry: &Entry| entry.text("user").is_some_and(|user| !user.is_empty());
        let named = self.draft.databases.values().any(is_named);
        let listed = !self.draft.values.text(Key::PostgresAuthFile).is_empty();
        if named && !listed && self.document.users.is_empty() {
            // A weir.toml that lists no users lets in those that its databases name.
            let comment = "no users: without this line, those of [databases] could log in";
            self.document.set(Key::PostgresAuthFile, Value::Text("/dev/null".to_owned()), comment);
        }
    }

    fn findings(&mut self, loaded: Loaded) {
        for warning in loaded.warnings {
            let kind = match warning.kind {
                WarningKind::NotSupported => NoteKind::LeftOut,
                WarningKind::Doubtful => NoteKind::Carried,
            };
            self.notes.add(kind, warning.problem.place, warning.problem.text);
        }
        for problem in std::mem::take(&mut self.draft.findings.not_needed) {
            self.notes.add(NoteKind::NotNeeded, problem.place, problem.text);
        }
    }
}

/// What an entry says in the same words in both files.
fn fields(table: Table, entry: &Entry, one: &mut Named) {
    for key in ENTRY_KEYS.iter().filter(|key| key.table == table && key.toml && key.ini) {
        if let Some((value, _)) = entry.fields.get(key.name) {
            one.field(key.name, value.clone());
        }
    }
}

/// Host, port and dbname as a URL.
fn url(entry: &Entry, sockets: &str) -> String {
    let port = entry.count("port").unwrap_or(5432);
    let database = encoded(entry.text("dbname").unwrap_or_default(), "");
    let named = entry.text("host").filter(|host| !host.is_empty());
    match named.filter(|host| !host.starts_with(['/', '@'])) {
        Some(name) if database.is_empty() => format!("postgres://{}:{port}", host(name)),
        Some(name) => format!("postgres://{}:{port}/{database}", host(name)),
        None => {
            let directory = encoded(named.unwrap_or(sockets), "/@");
            let port = if port == 5432 { String::new() } else { format!("&port={port}") };
            format!("postgres:///{database}?host={directory}{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_only_a_pgbouncer_ini_has_are_said_by_listen() {
        for row in SETTINGS.iter().filter(|row| row.files == Files::PgbouncerOnly) {
            assert!(
                matches!(row.key, Key::ListenAddr | Key::ListenPort | Key::UnixSocketDir),
                "{}: it must be converted",
                row.full_name()
            );
        }
    }
}
