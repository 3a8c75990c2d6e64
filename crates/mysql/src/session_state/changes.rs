//! What SET changes of the settings that move with their client.
//!
//! Owns: reading that from a text that the lexer has taken apart. Must not know: servers, replies.

use super::{Slot, State, quoted, unquoted};
use weir_sql::{Class, Scope, SetTarget};

/// What a text changes of the settings by its SET, or by the SETs at its head: only such as leave what stands
/// behind them to be read as it was. A USE among these changes none.
/// `tracks_schema`: sessions begin with `session_track_schema` on, so that it changes nothing to set that.
pub(crate) fn changes_in(class: &Class, text: &[u8], state: &State, tracks_schema: bool) -> Option<Changes> {
    if class.heads().is_empty() {
        return changes_of(class.set()?, text, state, tracks_schema, &Changes::default());
    }
    let mut changes = Changes::default();
    for set in class.heads() {
        let Changes { mut known, asked } = changes_of(set, text, state, tracks_schema, &changes)?;
        changes.known.append(&mut known);
        changes.asked.extend(asked);
    }
    let rereads = changes.slots().any(Slot::rereads);
    let follows = !changes.are_mixed() && (!rereads || reads_the_same(&changes, text));
    follows.then_some(changes)
}

/// The text says the same whatever these settings are: it has neither a backslash nor a double quote, and no
/// byte that a character set reads otherwise. MariaDB's ORACLE mode has other statements.
fn reads_the_same(changes: &Changes, text: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii() && !matches!(byte, b'\\' | b'"');
    let is_oracle = |value: &str| value.to_ascii_uppercase().contains("ORACLE");
    let oracle = changes.known.iter().any(|(slot, value)| *slot == Slot::SqlMode && is_oracle(value));
    text.iter().all(plain) && !oracle && !changes.asked.iter().any(|slot| slot.rereads())
}

/// What SET NAMES and its like change. `character_set_connection` goes with its collation.
const CHARACTER_SETS: [Slot; 3] = [Slot::CharsetClient, Slot::CharsetResults, Slot::CollationConnection];

/// What SET changes of the settings that move.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Changes {
    /// Those whose values are in the text.
    pub known: Vec<(Slot, Box<str>)>,
    /// Those whose values only the server knows then.
    pub asked: Vec<Slot>,
}

impl Changes {
    /// Of a SET that failed, nobody knows how much it has changed: all of it is asked for. `None` where no
    /// answer would say that. Of character sets that is the number of a collation that a login has, on MySQL.
    pub(crate) fn all_asked(&self) -> Option<Changes> {
        let mut asked: Vec<Slot> = self.slots().collect();
        asked.sort_unstable();
        asked.dedup();
        let untold =
            |slot: &Slot| matches!(slot, Slot::TrackedVariables | Slot::AutoIsNull) || slot.is_charset();
        (!asked.iter().any(untold)).then_some(Changes { known: Vec::new(), asked })
    }

    /// SET NAMES is said, and what goes with it is to be asked for.
    fn are_mixed(&self) -> bool {
        let names = self.known.iter().any(|(slot, _)| *slot == Slot::Names);
        names && self.asked.contains(&Slot::CollationConnection)
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.known.iter().map(|(slot, _)| *slot).chain(self.asked.iter().copied())
    }
}

/// What a single SET changes of the settings, if all of that can move with the client (user variables are a
/// pin of their own). `text` is the scanned text; `before`: what those in front of it have changed.
fn changes_of(
    set: &SetTarget,
    text: &[u8],
    state: &State,
    tracks_schema: bool,
    before: &Changes,
) -> Option<Changes> {
    if !set.complete {
        return None;
    }
    let (mut known, mut asked) = (Vec::new(), Vec::new());
    for assignment in &set.assignments {
        if assignment.scope == Scope::Global {
            continue;
        }
        if assignment.scope != Scope::Session {
            return None;
        }
        let plain = assignment.constant && !assignment.default;
        match assignment.name.as_str() {
            "names" if plain => known.push((Slot::Names, names_literal(assignment.value.of(text)?)?)),
            "character set" if plain => {
                let value = quoted(unquoted(std::str::from_utf8(assignment.value.of(text)?).ok()?)?)?;
                known.extend([(Slot::CharsetClient, value.clone()), (Slot::CharsetResults, value)]);
                // That of the default schema.
                asked.push(Slot::CollationConnection);
            }
            "names" | "character set" if assignment.default => asked.extend(CHARACTER_SETS),
            "transaction characteristics" => {
                characteristics(std::str::from_utf8(assignment.value.of(text)?).ok()?, &mut known)?;
            }
            "session_track_schema" if tracks_schema && assignment.toggle == Some(true) => {}
            name => {
                let slot = Slot::named(name)?;
                let value = match plain {
                    // Only what is named in it changes.
                    true if slot == Slot::OptimizerSwitch => None,
                    true => slot.literal_in(assignment, text),
                    // An assignment in front of it may change what `@@sql_mode` is.
                    false if slot == Slot::SqlMode && !is_changed(slot, &known, &asked) => {
                        mode_behind(before, assignment.value.of(text)?, state)
                    }
                    false => None,
                };
                match value {
                    // What `id IS NULL` finds does not move.
                    Some(value) if slot == Slot::AutoIsNull && *value != *"0" => return None,
                    Some(value) => known.push((slot, value)),
                    None if slot == Slot::AutoIsNull => return None,
                    // It may be that of another one.
                    None if slot.is_charset() => asked.extend(CHARACTER_SETS),
                    None => asked.push(slot),
                }
            }
        }
    }
    // What is asked for in the end is the last that was said of it.
    let mut changes = Changes { known, asked };
    let mixed = changes.are_mixed();
    changes.known.retain(|(slot, _)| !changes.asked.contains(slot));
    changes.asked.sort_unstable();
    changes.asked.dedup();
    (!mixed).then_some(changes)
}

fn is_changed(slot: Slot, known: &[(Slot, Box<str>)], asked: &[Slot]) -> bool {
    asked.contains(&slot) || known.iter().any(|(other, _)| *other == slot)
}

/// The same as `mode_of`, where these changes go before.
fn mode_behind(before: &Changes, value: &[u8], state: &State) -> Option<Box<str>> {
    if !is_changed(Slot::SqlMode, &before.known, &before.asked) {
        return mode_of(value, state);
    }
    let mut state = state.clone();
    let is_known = !before.asked.contains(&Slot::SqlMode) && state.apply(before.known.clone());
    if is_known { mode_of(value, &state) } else { None }
}

/// The value of `CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')` and its like, with which drivers and frameworks
/// begin: made of literals, `@@sql_mode`, CONCAT and REPLACE.
pub(super) fn mode_of(value: &[u8], state: &State) -> Option<Box<str>> {
    let mut value = std::str::from_utf8(value).ok()?.trim();
    // `(SELECT REPLACE(...))`
    if let Some(inner) = value.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        let (select, rest) = inner.trim().split_at_checked(6)?;
        value = rest.trim();
        if !select.eq_ignore_ascii_case("select") || !rest.starts_with(|c: char| c.is_ascii_whitespace()) {
            return None;
        }
    }
    quoted(&evaluate(value, state, 0)?)
}

fn evaluate(text: &str, state: &State, depth: u8) -> Option<String> {
    /// Deeper ones nobody writes.
    const DEEPEST: u8 = 8;
    let text = text.trim();
    if text.starts_with(['\'', '"']) {
        return unquoted(text).map(str::to_owned);
    }
    if let Some(name) = text.strip_prefix("@@") {
        let name = name.to_ascii_lowercase();
        let name = name.strip_prefix("session.").or_else(|| name.strip_prefix("local.")).unwrap_or(&name);
        let mode = state.setting(Slot::SqlMode).or_else(|| state.based(Slot::SqlMode))?;
        return (name == "sql_mode").then(|| unquoted(mode).map(str::to_owned))?;
    }
    let (function, rest) = text.split_once('(')?;
    let arguments = arguments(rest.strip_suffix(')')?)?;
    if depth >= DEEPEST {
        return None;
    }
    if function.trim().eq_ignore_ascii_case("concat") {
        return arguments.iter().map(|argument| evaluate(argument, state, depth + 1)).collect();
    }
    // The server's own spelling is replaced in, which only a value that it reported has.
    if function.trim().eq_ignore_ascii_case("replace") && state.setting(Slot::SqlMode).is_none() {
        let [all, from, to] = arguments.as_slice() else { return None };
        let from = evaluate(from, state, depth + 1).filter(|from| !from.is_empty())?;
        return Some(evaluate(all, state, depth + 1)?.replace(&from, &evaluate(to, state, depth + 1)?));
    }
    None
}

/// What the commas outside quotes and parentheses separate.
fn arguments(text: &str) -> Option<Vec<&str>> {
    let (mut found, mut depth, mut quote, mut from) = (Vec::new(), 0_u32, None, 0);
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'(') => depth += 1,
            (None, b')') => depth = depth.checked_sub(1)?,
            (None, b',') if depth == 0 => {
                found.push(text.get(from..at)?);
                from = at + 1;
            }
            (None, _) => {}
        }
    }
    found.push(text.get(from..)?);
    (quote.is_none() && depth == 0).then_some(found)
}

/// `utf8mb4 COLLATE utf8mb4_bin` as `'utf8mb4' COLLATE 'utf8mb4_bin'`.
pub(super) fn names_literal(value: &[u8]) -> Option<Box<str>> {
    let mut words = std::str::from_utf8(value).ok()?.split_ascii_whitespace();
    let charset = quoted(unquoted(words.next()?)?)?;
    match (words.next(), words.next(), words.next()) {
        (None, None, None) => Some(charset),
        (Some(collate), Some(collation), None) if collate.eq_ignore_ascii_case("collate") => {
            if collation.eq_ignore_ascii_case("default") {
                // The word, and no name (MariaDB).
                return Some(format!("{charset} COLLATE DEFAULT").into());
            }
            Some(format!("{charset} COLLATE {}", quoted(unquoted(collation)?)?).into())
        }
        _ => None,
    }
}

/// `ISOLATION LEVEL READ COMMITTED, READ ONLY`.
pub(super) fn characteristics(value: &str, changes: &mut Vec<(Slot, Box<str>)>) -> Option<()> {
    for part in value.split(',') {
        let words: Vec<String> = part.split_ascii_whitespace().map(str::to_ascii_uppercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["ISOLATION", "LEVEL", level @ ..] if matches!(level.len(), 1 | 2) => {
                changes.push((Slot::Isolation, quoted(&level.join("-"))?));
            }
            ["READ", "ONLY"] => changes.push((Slot::ReadOnly, "1".into())),
            ["READ", "WRITE"] => changes.push((Slot::ReadOnly, "0".into())),
            _ => return None,
        }
    }
    Some(())
}
