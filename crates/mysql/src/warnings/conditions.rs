//! Sends kept conditions to a server: raised again there, or assigned to the variables of GET DIAGNOSTICS.
//!
//! Found on MariaDB 10.11 and MySQL 9.7, and relied on here: texts of conditions are utf8mb3, numbers are
//! unsigned except for ROW_COUNT; SHOW WARNINGS shows texts in the character set of results. MySQL warns
//! about every mention of utf8mb3.
//!
//! Owns: that. Must not know: what is kept, and why.

use super::{Warnings, is_error, states};
use crate::message::lenenc;
use crate::words::{Piece, Words};
use weir_wire::Reader;

/// Bytes of a text that SIGNAL takes (MESSAGE_TEXT is a VARCHAR(128)).
const SIGNAL_BYTES: usize = 128;

impl Warnings {
    /// They were left by a statement that has failed with this SQLSTATE.
    pub(crate) fn are_of_error(&mut self, code: u16, state: [u8; 5]) {
        let is_last = self.rows.last().filter(|row| is_error(row)).and_then(|row| Condition::read(row));
        let is_its = is_last.is_some_and(|last| last.code == code);
        let place = self.rows.len().saturating_sub(1);
        self.states.retain(|(at, _)| *at != place);
        self.states.extend(is_its.then_some((place, state)));
    }

    /// A statement that leaves the only condition of the list anew; `None` when there are several, or one
    /// that no statement can raise. `states`: who it is for asks for its SQLSTATE.
    pub(crate) fn signal(&self, states: bool) -> Option<String> {
        let [row] = self.rows.as_slice() else { return None };
        let Condition { level, code, message, .. } = Condition::read(row)?;
        let state = match (level, self.state_at(0).and_then(plain_state)) {
            (b"Error", Some(state)) => state,
            (b"Error", None) if !states => "HY000".to_owned(),
            // Another class would make an error of it.
            (b"Warning", _) if !states => "01000".to_owned(),
            _ => return None,
        };
        // Longer texts are cut, by characters.
        if message.len() > SIGNAL_BYTES || message.is_empty() {
            return None;
        }
        let introducer = if message.is_ascii() { "_utf8mb4 " } else { self.introducer()? };
        let hex = hex_of(message);
        Some(format!("SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO={code},MESSAGE_TEXT={introducer}x'{hex}'"))
    }

    /// The SQLSTATE of this one.
    fn state_of(&self, condition: &Condition<'_>) -> Option<[u8; 5]> {
        let by_number = || states::state_of(condition.code, self.numbered?);
        self.state_at(condition.place).or_else(by_number)
    }

    /// What says before a string which characters the bytes of messages are: nothing where they are a
    /// server's own. `None` where that is not known.
    fn introducer(&self) -> Option<&'static str> {
        // MariaDB's collations that do not pad.
        let number = if let 1024..2048 = self.collation { self.collation - 1024 } else { self.collation };
        match number {
            5 | 8 | 15 | 31 | 47..=49 | 94 => Some("_latin1 "),
            // UTF-8 of three bytes, of four; binary. Where MariaDB's newest are: 2048 and 2304.
            33 | 76 | 83 | 192..=215 | 223 => Some(""),
            45 | 46 | 224..=247 | 255..=323 => Some(""),
            63 | 2048..2560 => Some(""),
            _ => None,
        }
    }

    /// The value that GET DIAGNOSTICS gives to a variable. A name of the system's is utf8mb3, and makes what
    /// is appended to it the same.
    fn text_value(&self, text: &[u8]) -> Option<String> {
        let introducer = if text.is_ascii() { "" } else { self.introducer()? };
        Some(format!("CONCAT(LEFT(USER(),0),{introducer}x'{}')", hex_of(text)))
    }
}

/// A row of SHOW WARNINGS.
struct Condition<'a> {
    /// Where it stands in the list.
    place: usize,
    level: &'a [u8],
    code: u16,
    message: &'a [u8],
}

impl<'a> Condition<'a> {
    fn read(row: &'a [u8]) -> Option<Condition<'a>> {
        let mut r = Reader::new(row);
        let [level, code, message] = [(); 3].map(|()| lenenc::string(&mut r).ok());
        let code = std::str::from_utf8(code?).ok()?.parse().ok()?;
        Some(Condition { place: 0, level: level?, code, message: message? })
    }
}

/// The collation in the definition of a column, whose last 13 bytes have fixed places.
pub(super) fn collation_of(column: &[u8]) -> u16 {
    match column.last_chunk() {
        Some([0x0C, low, high, _, _, _, _, _, _, _, _, _, _]) => u16::from_le_bytes([*low, *high]),
        Some(_) | None => 0,
    }
}

/// A state that SIGNAL makes an error of.
fn plain_state(state: [u8; 5]) -> Option<String> {
    let is_plain = state.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    let state = String::from_utf8(state.into()).ok().filter(|_| is_plain)?;
    (!state.starts_with("00") && !state.starts_with("01")).then_some(state)
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What GET DIAGNOSTICS asks for: of which condition, and into which variables.
struct Asked<'a> {
    condition: Option<usize>,
    items: Vec<(&'a [u8], Piece<'a>)>,
}

impl<'a> Asked<'a> {
    fn read(text: &'a [u8]) -> Option<Asked<'a>> {
        let mut words = Words::new(text).peekable();
        words.next()?;
        let mut word = words.next()?;
        if word.is(b"CURRENT") {
            word = words.next()?;
        }
        if !word.is(b"DIAGNOSTICS") {
            return None;
        }
        let condition = match words.next_if(|piece| piece.is(b"CONDITION")) {
            Some(_) => Some(usize::try_from(words.next()?.number()?).ok()?),
            None => None,
        };
        let mut items = Vec::new();
        loop {
            words.next().filter(|piece| piece.is(b"@"))?;
            let name = words.next()?.bytes;
            words.next().filter(|piece| piece.is(b"="))?;
            items.push((name, words.next()?));
            match words.next() {
                Some(piece) if piece.is(b",") => {}
                Some(piece) if piece.is(b";") && words.next().is_none() => break,
                Some(_) => return None,
                None => break,
            }
        }
        Some(Asked { condition, items })
    }
}

/// GET DIAGNOSTICS as a SET of the same variables to what is kept; `None` for items that are not.
pub(crate) fn diagnostics(text: &[u8], kept: &Warnings, row_count: i64) -> Option<Vec<u8>> {
    let asked = Asked::read(text)?;
    let condition = match asked.condition {
        Some(number) => {
            let place = number.checked_sub(1)?;
            Some(Condition { place, ..Condition::read(kept.rows.get(place)?)? })
        }
        None => None,
    };
    let mut out = b"SET ".to_vec();
    for (at, (name, item)) in asked.items.into_iter().enumerate() {
        out.extend_from_slice(if at > 0 { b",@" } else { b"@" });
        out.extend_from_slice(name);
        let value = value_of(item, condition.as_ref(), kept, row_count)?;
        out.extend_from_slice(format!("={value}").as_bytes());
    }
    Some(out)
}

/// GET DIAGNOSTICS of a condition that is not in the list: it sets nothing, and adds an error to the list.
pub(crate) fn misses_condition(text: &[u8], kept: &Warnings) -> bool {
    // By a name that no server has, the text is a syntax error.
    let is_known = |item: &Piece<'_>| ITEMS.iter().any(|name| item.is(name));
    Asked::read(text).is_some_and(|asked| {
        let is_missed = asked.condition.is_some_and(|number| number == 0 || number > kept.rows.len());
        is_missed && asked.items.iter().all(|(_, item)| is_known(item))
    })
}

/// What GET DIAGNOSTICS tells of a condition, on MySQL and on MariaDB.
const ITEMS: [&[u8]; 13] = [
    b"CLASS_ORIGIN",
    b"SUBCLASS_ORIGIN",
    b"RETURNED_SQLSTATE",
    b"MESSAGE_TEXT",
    b"MYSQL_ERRNO",
    b"CONSTRAINT_CATALOG",
    b"CONSTRAINT_SCHEMA",
    b"CONSTRAINT_NAME",
    b"CATALOG_NAME",
    b"SCHEMA_NAME",
    b"TABLE_NAME",
    b"COLUMN_NAME",
    b"CURSOR_NAME",
];

/// Those that only SIGNAL gives.
const NAMES: &[&[u8]] = ITEMS.split_at(5).1;

/// GET DIAGNOSTICS that asks a condition for what only the statement has, or the other way round: a syntax
/// error on every server. GET STACKED DIAGNOSTICS is an error outside handlers.
pub(crate) fn asks_wrongly(text: &[u8]) -> bool {
    if Words::new(text).nth(1).is_some_and(|word| word.is(b"STACKED")) {
        return true;
    }
    Asked::read(text).is_some_and(|asked| {
        let of_statement = |item: &Piece<'_>| item.is(b"NUMBER") || item.is(b"ROW_COUNT");
        let of_condition = |item: &Piece<'_>| ITEMS.iter().any(|name| item.is(name));
        let has = |test: &dyn Fn(&Piece<'_>) -> bool| asked.items.iter().any(|(_, item)| test(item));
        if asked.condition.is_some() { has(&of_statement) } else { has(&of_condition) }
    })
}

/// An item of GET DIAGNOSTICS: of a condition, or of the statement.
fn value_of(
    item: Piece<'_>,
    condition: Option<&Condition<'_>>,
    kept: &Warnings,
    row_count: i64,
) -> Option<String> {
    match condition {
        None if item.is(b"NUMBER") => Some(format!("CAST({} AS UNSIGNED)", kept.rows.len())),
        None if item.is(b"ROW_COUNT") => Some(row_count.to_string()),
        Some(it) if item.is(b"MYSQL_ERRNO") => Some(format!("CAST({} AS UNSIGNED)", it.code)),
        Some(it) if item.is(b"MESSAGE_TEXT") => kept.text_value(it.message),
        Some(it) if item.is(b"RETURNED_SQLSTATE") => kept.text_value(&kept.state_of(it)?),
        Some(_) if kept.numbered.is_some() && NAMES.iter().any(|name| item.is(name)) => kept.text_value(b""),
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session_state::Flavour;

    /// The definition of a column with this collation.
    fn column(collation: u8) -> Vec<u8> {
        let fixed = [0x0C, collation, 0, 0, 2, 0, 0, 253, 1, 0, 39, 0, 0];
        [&b"\x03def\0\0\0\x07Message\0"[..], &fixed].concat()
    }

    fn shown(collation: u8, level: &str, message: &[u8]) -> Warnings {
        let mut warnings = Warnings::default();
        warnings.take(&[3]).unwrap();
        for at in [63, 63, collation] {
            warnings.take(&column(at)).unwrap();
        }
        let mut row = Vec::new();
        [level.as_bytes(), b"1146", message].iter().for_each(|value| lenenc::put_string(&mut row, value));
        warnings.take(&row).unwrap();
        warnings
    }

    #[test]
    fn messages_are_read_by_the_character_set_they_are_shown_in() {
        let text =
            |warnings: &Warnings| warnings.signal(false).map(|it| it.split('=').nth(2).unwrap().to_owned());
        assert_eq!(text(&shown(8, "Error", b"\xe9")).as_deref(), Some("_latin1 x'e9'"));
        assert_eq!(text(&shown(45, "Error", b"\xc3\xa9")).as_deref(), Some("x'c3a9'"));
        assert_eq!(text(&shown(8, "Error", b"e")).as_deref(), Some("_utf8mb4 x'65'"));
        // Nobody knows how to read koi8r here, or what Weir was told before it was asked.
        assert_eq!(text(&shown(7, "Error", b"\xe9")), None);
        let error = Warnings::of_error(b"\xff\x7a\x04#42S02\xe9", Flavour::MySql, false);
        assert_eq!(text(&error), None);
    }

    #[test]
    fn a_condition_with_another_state_is_not_raised_for_who_asks() {
        let mut error = shown(45, "Error", b"x");
        assert!(error.signal(true).is_none() && error.signal(false).unwrap().contains("'HY000'"));
        error.are_of_error(1, *b"42S02");
        assert!(error.signal(true).is_none());
        error.are_of_error(1146, *b"42S02");
        assert!(error.signal(true).unwrap().contains("'42S02'"));
        let text = b"GET DIAGNOSTICS CONDITION 1 @s = RETURNED_SQLSTATE, @n = MYSQL_ERRNO";
        let set = "SET @s=CONCAT(LEFT(USER(),0),x'3432533032'),@n=CAST(1146 AS UNSIGNED)";
        assert_eq!(diagnostics(text, &error, 0).as_deref(), Some(set.as_bytes()));
        let mut warning = shown(45, "Warning", b"x");
        warning.are_of_error(1146, *b"22007");
        assert!(warning.signal(true).is_none() && diagnostics(text, &warning, 0).is_none());
    }
}
