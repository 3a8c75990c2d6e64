//! The text of a weir.toml.
//!
//! Owns: the order of its sections, and how a value is written. Must not know: where values come from.
//!
//! Invariant: what is written is read as the same value again.

use crate::entry::{Table, entry_key};
use crate::registry::{Key, Kind, SETTINGS};
use crate::secrets::{as_password, as_text};
use crate::toml_file::sections;
use crate::values::{Value, show};
use std::collections::BTreeMap;

/// What a weir.toml is to say.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// Lines of comment at its top.
    pub(super) head: Vec<String>,
    /// Settings with a comment behind their line, which may be empty.
    pub(super) settings: BTreeMap<Key, (Value, String)>,
    pub(super) databases: Vec<Named>,
    pub(super) users: Vec<Named>,
}

/// `[databases.NAME]` or `[users.NAME]`.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) name: String,
    /// Lines of comment above it.
    pub(super) comments: Vec<String>,
    pub(super) fields: Vec<(&'static str, Value)>,
}

impl Named {
    pub(super) fn new(name: impl Into<String>) -> Named {
        Named { name: name.into(), ..Named::default() }
    }

    pub(super) fn field(&mut self, key: &'static str, value: Value) {
        self.fields.push((key, value));
    }
}

impl Document {
    pub(super) fn set(&mut self, key: Key, value: Value, comment: impl Into<String>) {
        self.settings.insert(key, (value, comment.into()));
    }

    /// The whole file.
    pub(super) fn text(&self) -> String {
        let mut out: String = self.head.iter().map(|line| format!("# {line}\n")).collect();
        self.section("", &mut out);
        for section in sections() {
            match section {
                "databases" | "users" => {}
                _ => self.section(section, &mut out),
            }
        }
        self.databases.iter().for_each(|one| named(Table::Databases, one, &mut out));
        self.users.iter().for_each(|one| named(Table::Users, one, &mut out));
        out
    }

    fn section(&self, section: &str, out: &mut String) {
        let mut rows =
            SETTINGS.iter().filter(|row| row.section == section && self.settings.contains_key(&row.key));
        let Some(first) = rows.next() else { return };
        out.push('\n');
        if !section.is_empty() {
            out.push_str(&format!("[{section}]\n"));
        }
        for row in std::iter::once(first).chain(rows) {
            let (value, comment) = &self.settings[&row.key];
            let text = written(row.kind, value);
            let comment = if comment.is_empty() { String::new() } else { format!("   # {comment}") };
            out.push_str(&format!("{} = {text}{comment}\n", row.name));
        }
    }
}

fn named(table: Table, one: &Named, out: &mut String) {
    out.push('\n');
    one.comments.iter().for_each(|line| out.push_str(&format!("# {line}\n")));
    out.push_str(&format!("[{}.{}]\n", table.name(), key(&one.name)));
    for (name, value) in &one.fields {
        let kind = entry_key(table, name).map_or(Kind::Text, |known| known.kind);
        let text = match (*name, value) {
            ("password", Value::Text(text)) => quoted(&as_password(text)),
            ("password_file", Value::Text(text)) => quoted(text),
            _ => written(kind, value),
        };
        out.push_str(&format!("{name} = {text}\n"));
    }
}

fn written(kind: Kind, value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Text(text) => quoted(&as_text(text)),
        Value::Secret(hidden) => quoted(&as_text(&hidden.0)),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| quoted(&as_text(item))).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Count(_) | Value::Millis(_) => match show(kind, value) {
            number if kind != Kind::Mode && number != "auto" => number,
            text => quoted(&text),
        },
    }
}

/// A key of a table: bare where TOML allows that.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { quoted(name) }
}

/// A basic string of TOML 1.0.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Text of a URL in percent-encoding; what `kept` has stays as it is.
pub(super) fn encoded(text: &str, kept: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let c = char::from(byte);
        if byte.is_ascii_alphanumeric() || "-._~".contains(c) || (byte.is_ascii() && kept.contains(c)) {
            out.push(c);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// A host as a URL has it.
pub(super) fn host(name: &str) -> String {
    match name.parse::<std::net::Ipv6Addr>() {
        Ok(_) => format!("[{name}]"),
        Err(_) => encoded(name, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_text_are_quoted_where_toml_wants_it() {
        assert_eq!((key("app-1_x"), key("*"), key("")), ("app-1_x".into(), "\"*\"".into(), "\"\"".into()));
        assert_eq!(quoted("a\"b\\c\t\u{7f}ä"), "\"a\\\"b\\\\c\\u0009\\u007Fä\"");
        assert_eq!(encoded("a b/ü$", "/"), "a%20b/%C3%BC%24");
        assert_eq!((host("::1"), host("db.example")), ("[::1]".into(), "db.example".into()));
    }

    #[test]
    fn an_empty_document_is_an_empty_file() {
        assert_eq!(Document::default().text(), "");
    }
}
