//! weir.toml.

use crate::draft::Draft;
use crate::entry::{ENTRY_KEYS, Entry, Table, entry_key};
use crate::problem::Place;
use crate::registry::{Files, Kind, SETTINGS, by_full_name};
use crate::secrets::with_variables;
use crate::values::{Value, did_you_mean, parse_text};
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads the text of a weir.toml into a draft.
pub(crate) fn read_toml(file: &Arc<Path>, text: &str, draft: &mut Draft) {
    let reader = Reader { file, text };
    match DeTable::parse(text) {
        Ok(document) => reader.document(document.get_ref(), draft),
        Err(error) => {
            let place = reader.at(error.span().map_or(0, |span| span.start));
            // The parser's text may have lines of its own; one line is enough beside the place.
            let message = error.message().split('\n').collect::<Vec<_>>().join(", ");
            draft.findings.problem(place, message);
        }
    }
}

struct Reader<'a> {
    file: &'a Arc<Path>,
    text: &'a str,
}

impl Reader<'_> {
    fn at(&self, offset: usize) -> Place {
        Place::in_text(self.file, self.text, offset)
    }

    fn document(&self, document: &DeTable<'_>, draft: &mut Draft) {
        for (name, value) in in_order(document) {
            let place = self.at(name.span().start);
            match (name.get_ref().as_ref(), value.get_ref()) {
                ("databases", DeValue::Table(table)) => self.entries(Table::Databases, table, draft),
                ("users", DeValue::Table(table)) => self.entries(Table::Users, table, draft),
                (section @ ("databases" | "users"), _) => {
                    draft
                        .findings
                        .problem(place, format!("{section} must be tables such as [{section}.NAME]"));
                }
                (section, DeValue::Table(table)) => self.section(section, place, table, draft),
                (key, _) => self.setting("", key, place, value, draft),
            }
        }
    }

    fn section(&self, section: &str, place: Place, table: &DeTable<'_>, draft: &mut Draft) {
        let known = sections();
        // [tls.client] and [tls.server] are tables in a table that has nothing of its own.
        let prefix = format!("{section}.");
        if known.iter().any(|known| known.starts_with(&prefix)) {
            for (key, value) in in_order(table) {
                let (full, place) = (format!("{prefix}{}", key.get_ref()), self.at(key.span().start));
                match value.get_ref() {
                    DeValue::Table(table) => self.section(&full, place, table, draft),
                    _ => draft.findings.problem(place, unknown_key(section, key.get_ref())),
                }
            }
            return;
        }
        if !known.contains(&section) {
            let near = did_you_mean(section, &known);
            return draft.findings.problem(place, format!("unknown section [{section}]{near}"));
        }
        for (key, value) in in_order(table) {
            self.setting(section, key.get_ref(), self.at(key.span().start), value, draft);
        }
    }

    fn setting(
        &self,
        section: &str,
        key: &str,
        place: Place,
        value: &Spanned<DeValue<'_>>,
        draft: &mut Draft,
    ) {
        let full = if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
        let Some(setting) = by_full_name(&full).filter(|s| s.section == section) else {
            return draft.findings.problem(place, unknown_key(section, key));
        };
        match read_value(key, setting.kind, value.get_ref()) {
            Ok(value) => draft.set(setting.key, value, place),
            Err(error) => {
                draft.findings.problem(self.at(value.span().start), format!("{key} {error}"));
            }
        }
    }

    fn entries(&self, table: Table, entries: &DeTable<'_>, draft: &mut Draft) {
        for (name, value) in in_order(entries) {
            let place = self.at(name.span().start);
            let DeValue::Table(fields) = value.get_ref() else {
                let (section, name) = (table.name(), name.get_ref());
                let text = format!("{section}.{name} must be a table [{section}.{name}]");
                draft.findings.problem(place, text);
                continue;
            };
            let mut entry = Entry::new(place);
            for (key, value) in in_order(fields) {
                self.field(table, key.get_ref(), self.at(key.span().start), value, &mut entry, draft);
            }
            draft.entries(table).insert(name.get_ref().to_string(), entry);
        }
    }

    fn field(
        &self,
        table: Table,
        key: &str,
        place: Place,
        value: &Spanned<DeValue<'_>>,
        entry: &mut Entry,
        draft: &mut Draft,
    ) {
        let Some(known) = entry_key(table, key).filter(|known| known.toml) else {
            let names: Vec<_> =
                ENTRY_KEYS.iter().filter(|k| k.table == table && k.toml).map(|k| k.name).collect();
            let text = match (table, key) {
                (Table::Databases, "host" | "port" | "dbname") => {
                    format!("`{key}` stands in the url here: url = \"postgres://host:port/dbname\"")
                }
                _ => format!("unknown key `{key}` in [{}.NAME]{}", table.name(), did_you_mean(key, &names)),
            };
            entry.broken = true;
            return draft.findings.problem(place, text);
        };
        match read_value(key, known.kind, value.get_ref()) {
            Ok(value) => {
                entry.fields.insert(known.name, (value, place));
            }
            Err(error) => {
                entry.broken = true;
                draft.findings.problem(self.at(value.span().start), format!("{key} {error}"));
            }
        }
    }
}

/// The pairs of a table in the order of the file: the map sorts them by name.
fn in_order<'t, 'i>(
    table: &'t DeTable<'i>,
) -> Vec<(&'t Spanned<std::borrow::Cow<'i, str>>, &'t Spanned<DeValue<'i>>)> {
    let mut pairs: Vec<_> = table.iter().collect();
    pairs.sort_by_key(|(key, _)| key.span().start);
    pairs
}

/// All sections of weir.toml.
pub(crate) fn sections() -> Vec<&'static str> {
    let mut sections = vec![Table::Databases.name(), Table::Users.name()];
    for setting in SETTINGS.iter().filter(|s| s.files == Files::All && !s.section.is_empty()) {
        if !sections.contains(&setting.section) {
            sections.push(setting.section);
        }
    }
    sections
}

/// Says where the key would be right, when it is right somewhere else, or what it looks like.
fn unknown_key(section: &str, key: &str) -> String {
    let here = if section.is_empty() { "at the top".to_owned() } else { format!("in [{section}]") };
    let elsewhere = SETTINGS.iter().find(|s| s.files == Files::All && s.name == key && s.name != "listen");
    if let Some(right) = elsewhere {
        let there = if right.section.is_empty() {
            "at the top".to_owned()
        } else {
            format!("in [{}]", right.section)
        };
        return format!("unknown key `{key}` {here}; it belongs {there}");
    }
    let mine: Vec<_> =
        SETTINGS.iter().filter(|s| s.files == Files::All && s.section == section).map(|s| s.name).collect();
    format!("unknown key `{key}` {here}{}", did_you_mean(key, &mine))
}

/// A TOML value of a key, with the environment's variables put in. Text that has one may stand for a number
/// or a switch as well.
fn read_value(key: &str, kind: Kind, value: &DeValue<'_>) -> Result<Value, String> {
    // Passwords are whatever they are; `secrets.rs` has their rule.
    if matches!(key, "password" | "password_file") {
        return convert(kind, value);
    }
    match value {
        DeValue::String(text) if text.contains("${") => parse_text(kind, &filled_in(text)?),
        _ => match convert(kind, value)? {
            Value::List(items) => {
                let items: Result<_, _> = items.iter().map(|item| filled_in(item)).collect();
                Ok(Value::List(items?))
            }
            value => Ok(value),
        },
    }
}

fn filled_in(text: &str) -> Result<String, String> {
    with_variables(text).map_err(|why| format!("cannot be filled in: {why}"))
}

/// A TOML value as a value of this kind. Numbers are numbers and text is text here; only times and
/// permissions may be either.
fn convert(kind: Kind, value: &DeValue<'_>) -> Result<Value, String> {
    match (kind, value) {
        (Kind::Bool, DeValue::Boolean(value)) => Ok(Value::Bool(*value)),
        (Kind::Bool, other) => Err(format!("must be true or false, not {}", describe(other))),
        (Kind::Count { .. } | Kind::Size { .. } | Kind::Seconds { .. }, DeValue::Integer(number))
            if number.radix() == 10 =>
        {
            parse_text(kind, number.as_str())
        }
        (Kind::Seconds { .. }, DeValue::Float(number)) => parse_text(kind, number.as_str()),
        (Kind::Mode, DeValue::Integer(number)) if number.radix() == 8 => parse_text(kind, number.as_str()),
        (
            Kind::Seconds { .. }
            | Kind::Mode
            | Kind::Word(_)
            | Kind::Policy { .. }
            | Kind::Text
            | Kind::Path
            | Kind::Secret
            | Kind::List,
            DeValue::String(text),
        ) => parse_text(kind, text),
        (Kind::List, DeValue::Array(items)) => {
            let mut list = Vec::new();
            for item in items.iter() {
                match item.get_ref() {
                    DeValue::String(text) => list.push(text.trim().to_owned()),
                    other => return Err(format!("must be an array of strings, but has {}", describe(other))),
                }
            }
            Ok(Value::List(list))
        }
        (Kind::List, other) => Err(format!("must be an array of strings, not {}", describe(other))),
        (Kind::Text | Kind::Path, other) => Err(format!("must be text in quotes, not {}", describe(other))),
        // It is not repeated.
        (Kind::Secret, _) => Err("must be text in quotes".to_owned()),
        (Kind::Size { .. }, DeValue::String(text)) if text == "auto" => parse_text(kind, text),
        (
            Kind::Count { .. }
            | Kind::Size { .. }
            | Kind::Seconds { .. }
            | Kind::Mode
            | Kind::Word(_)
            | Kind::Policy { .. },
            other,
        ) => {
            // The sentence of `parse_text` names what is wanted.
            match parse_text(kind, &describe(other)) {
                Ok(_) => Err("has the wrong type".to_owned()),
                Err(error) => Err(error.replace('`', "")),
            }
        }
    }
}

/// A value in an error message. Text is not repeated: it could be a password in the wrong place.
fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(_) => "text in quotes".to_owned(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(value) => value.to_string(),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
