//! pgbouncer.ini: the meaning of its sections and keys in Weir. The format is in `ini.rs`.

use crate::draft::Draft;
use crate::entry::{ENTRY_KEYS, Entry, Table, entry_key};
use crate::fate::{self, Fate, fate};
use crate::ini::{Line, connection_string, lines};
use crate::problem::{Place, Problem, WarningKind, read};
use crate::registry::{Key, Kind, SETTINGS, by_ini_name};
use crate::values::{Value, did_you_mean, parse_text};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files that include files, at most; PgBouncer's own bound (`MAX_INCLUDE`) is 10.
const INCLUDE_DEPTH: usize = 10;

/// Reads the text of a pgbouncer.ini into a draft.
pub(crate) fn read_ini(file: &Arc<Path>, text: &str, draft: &mut Draft) {
    Reader { draft, section: None }.file(file, text, 0);
}

enum Section {
    Pgbouncer,
    Table(Table),
    /// Its lines mean nothing; that was said at its head.
    Other,
}

struct Reader<'d> {
    draft: &'d mut Draft,
    section: Option<Section>,
}

impl Reader<'_> {
    fn file(&mut self, file: &Arc<Path>, text: &str, depth: usize) {
        for line in lines(file, text) {
            match line {
                Line::Section { name, place } => self.open(&name, place),
                Line::Include { file: named, place } => self.include(file, &named, place, depth),
                Line::Broken { place, why } => self.draft.findings.problem(place, why),
                Line::Pair { key, place, value, value_place } => match self.section {
                    None => {
                        self.draft.findings.problem(place, format!("`{key}` stands before the first section"))
                    }
                    Some(Section::Pgbouncer) => self.setting(&key, place, &value, value_place),
                    Some(Section::Table(table)) => self.entry(table, key, place, &value, value_place),
                    Some(Section::Other) => {}
                },
            }
        }
    }

    fn open(&mut self, name: &str, place: Place) {
        self.section = Some(match name {
            "pgbouncer" => Section::Pgbouncer,
            "databases" => Section::Table(Table::Databases),
            "users" => Section::Table(Table::Users),
            "peers" => {
                let text = "[peers] is not supported: Weir processes do not forward each other's cancel requests \
                            yet; one process uses all cores";
                self.draft.findings.warn(WarningKind::NotSupported, place, text);
                Section::Other
            }
            other => {
                let near = did_you_mean(other, &["pgbouncer", "databases", "users", "peers"]);
                self.draft.findings.problem(place, format!("unknown section [{other}]{near}"));
                Section::Other
            }
        });
    }

    /// The file is looked for where the process is, as PgBouncer does, and then beside the file that names
    /// it.
    fn include(&mut self, from: &Arc<Path>, named: &str, place: Place, depth: usize) {
        if depth >= INCLUDE_DEPTH {
            let text = format!("files may include files {INCLUDE_DEPTH} deep, not deeper");
            return self.draft.findings.problem(place, text);
        }
        let mut path = PathBuf::from(named);
        if !path.exists() {
            let beside = from.parent().map(|folder| folder.join(named)).filter(|path| path.exists());
            path = beside.unwrap_or(path);
        }
        if let Some(text) = read(&path, Some(place), &mut self.draft.findings) {
            self.file(&path.into(), &text, depth + 1);
        }
    }

    fn setting(&mut self, key: &str, place: Place, value: &str, value_place: Place) {
        if key == "verbose" {
            return self.verbose(value, place, value_place);
        }
        let Some(setting) = by_ini_name(key) else {
            return self.not_ours(fate::PGBOUNCER, key, place, value, value_place);
        };
        match parse_ini(setting.kind, value) {
            Ok(value) => {
                self.warn_of_zero(key, &value, &place);
                self.draft.set(setting.key, value, place);
            }
            Err(error) => self.draft.findings.problem(value_place, format!("{key} {error}")),
        }
    }

    /// A file that switches a setting off must not switch on something else in silence.
    fn warn_of_zero(&mut self, key: &str, value: &Value, place: &Place) {
        let differs = fate::ZERO_DIFFERS.iter().find(|(name, _)| *name == key);
        if let Some((_, how)) = differs.filter(|_| matches!(value, Value::Count(0) | Value::Millis(0))) {
            self.draft.findings.warn(WarningKind::Doubtful, place.clone(), format!("{key} = 0: {how}"));
        }
    }

    /// PgBouncer's number is our level.
    fn verbose(&mut self, value: &str, place: Place, value_place: Place) {
        let level = match value.parse::<u32>() {
            Ok(0) => "info",
            Ok(1) => "debug",
            Ok(_) => "trace",
            Err(_) => {
                let text = format!("verbose must be a number, not `{value}`");
                return self.draft.findings.problem(value_place, text);
            }
        };
        self.draft.set(Key::LogLevel, Value::Text(level.to_owned()), place);
    }

    /// A key Weir does not have.
    fn not_ours(&mut self, table: &[(&str, Fate)], key: &str, place: Place, value: &str, value_place: Place) {
        let findings = &mut self.draft.findings;
        let mut not_needed =
            |text: String| findings.not_needed.push(Problem { place: Some(place.clone()), text });
        match fate(table, key) {
            Some(Fate::Covered(why)) => not_needed(format!("{key}: {}", why.trim_end_matches('.'))),
            // PgBouncer's files come with many settings that are empty or off.
            Some(Fate::Missing(_)) if matches!(value, "" | "0" | "0.0") => {
                not_needed(format!("{key} is off, and Weir does not have it"))
            }
            Some(Fate::Missing(instead)) => {
                let text = format!("{key} is not supported yet: {instead}");
                findings.warn(WarningKind::NotSupported, place, text);
            }
            Some(Fate::Refused { harmless, .. }) if value.is_empty() || harmless.contains(&value) => {
                not_needed(format!("{key} is off, and Weir does not have it"))
            }
            Some(Fate::Refused { why, .. }) => {
                findings.problem(value_place, format!("{key} = {value}: {why}"))
            }
            None => {
                let names: Vec<&str> =
                    SETTINGS.iter().filter_map(|s| s.alias).chain(table.iter().map(|(n, _)| *n)).collect();
                let near = did_you_mean(key, &names);
                findings.problem(place, format!("unknown key `{key}`{near}"));
            }
        }
    }

    fn entry(&mut self, table: Table, name: String, place: Place, value: &str, value_place: Place) {
        if table == Table::Databases && name == "pgbouncer" {
            let text = "the name pgbouncer is kept for the console";
            return self.draft.findings.problem(place, text);
        }
        let words = match connection_string(value) {
            Ok(words) => words,
            Err((at, text)) => return self.draft.findings.problem(shift(&value_place, value, at), text),
        };
        let mut entry = Entry::new(place);
        entry.from_ini = true;
        for word in words {
            let at = shift(&value_place, value, word.at);
            self.field(table, &word.key, &word.value, at, &mut entry);
        }
        let before = self.draft.entries(table).insert(name, entry);
        if let Some(before) = before {
            let text = format!("this entry is replaced by one that follows in {}", table.name());
            self.draft.findings.warn(WarningKind::Doubtful, before.place, text);
        }
    }

    fn field(&mut self, table: Table, key: &str, value: &str, at: Place, entry: &mut Entry) {
        if let Some(known) = entry_key(table, key).filter(|known| known.ini) {
            match parse_ini(known.kind, value) {
                Ok(value) => {
                    entry.fields.insert(known.name, (value, at));
                }
                Err(error) => self.draft.findings.problem(at, format!("{key} {error}")),
            }
            return;
        }
        let fates = match table {
            Table::Databases => fate::DATABASES,
            Table::Users => fate::USERS,
        };
        if fate(fates, key).is_some() {
            return self.not_ours(fates, key, at.clone(), value, at);
        }
        let names: Vec<_> = ENTRY_KEYS
            .iter()
            .filter(|k| k.table == table && k.ini)
            .map(|k| k.name)
            .chain(fates.iter().map(|(name, _)| *name))
            .collect();
        let text = format!("unknown key `{key}`{}", did_you_mean(key, &names));
        entry.broken = true;
        self.draft.findings.problem(at, text);
    }
}

/// Reads a value as PgBouncer does, or refuses what it reads otherwise: words in any case; a number that
/// begins with 0 is octal, one that does not is decimal, permissions too.
fn parse_ini(kind: Kind, value: &str) -> Result<Value, String> {
    let octal = value.len() > 1 && value.starts_with('0');
    match kind {
        Kind::Word(_) | Kind::Policy { .. } => parse_text(kind, &value.to_ascii_lowercase()),
        Kind::Mode if !octal => {
            Err(format!("must begin with 0, as in 0777: PgBouncer reads `{value}` as a decimal number"))
        }
        Kind::Count { .. } | Kind::Size { .. } if octal => {
            Err(format!("must not begin with 0: PgBouncer reads `{value}` as an octal number"))
        }
        Kind::Bool
        | Kind::Count { .. }
        | Kind::Size { .. }
        | Kind::Seconds { .. }
        | Kind::Mode
        | Kind::Text
        | Kind::Path
        | Kind::Secret
        | Kind::List => parse_text(kind, value),
    }
}

/// The place of byte `at` of a value that begins at `place`.
fn shift(place: &Place, value: &str, at: usize) -> Place {
    match place {
        Place::File { file, line, column } => Place::File {
            file: file.clone(),
            line: *line,
            column: column + value.get(..at).map_or(0, |before| before.chars().count()),
        },
        Place::Argument(name) => Place::Argument(name.clone()),
    }
}
