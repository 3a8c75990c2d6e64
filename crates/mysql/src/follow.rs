//! User variables move with their client.
//!
//! After a request that may have set some, as soon as its transaction is over, Weir asks the server for their
//! values, behind the client's own reply. They become the client's variables, and its pin ends. Until then
//! the pin (`user_variable`) keeps the server for this client. The next server gets the variables ahead of a
//! request that may use them, and only then: other requests neither pay for them nor see them.
//!
//! Owns: the variables of a client and of a server's session, the query for them, the literals that set them
//! again. Must not know: which requests see variables (`front/variables.rs`), pools.
//!
//! Invariants: a value moves only if its literal restores the same type, bytes, character set and collation;
//! in doubt the pin stays. Only a reset removes a variable from a session: a variable that a session has and
//! a client has not is recognised by its type.
//!
//! Found on MariaDB 10.11 and MySQL 9.7, and relied on here:
//! - A variable has one of four kinds: integer with or without a sign, double, decimal with its scale, string
//!   with a collation and the coercibility 2. Temporal values and JSON are strings; MariaDB keeps a geometry.
//! - `SET @a = NULL` keeps the kind, and the collation of a string. A variable that was never set is NULL,
//!   too, but of a type that no other variable has: on MySQL a VARCHAR of as many whole characters of
//!   collation_connection as fit into 65535 bytes, on MariaDB a BLOB of exactly 16 MiB.
//! - Preparing a statement that sets a variable creates it, and so does a statement that fails or returns no
//!   rows, except INTO.
//! - MySQL shows at most 22 characters of a double, which may be too few; MariaDB as many as are needed.

use crate::back::Back;
use crate::front::Front;
use crate::message::{Capabilities, lenenc, ok};
use crate::session_state::put_query;
use std::fmt::Write as _;
use std::sync::Arc;
use weir_wire::{Reader, Short, limits};

/// User variables by their names, sorted: what SET says to have each again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Variables(Vec<(Box<str>, Box<str>)>);

impl Variables {
    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(self.place(name).ok()?).map(|(_, assignment)| &**assignment)
    }

    pub(crate) fn set(&mut self, name: &str, assignment: Box<str>) {
        match self.place(name) {
            Ok(at) => self.0[at].1 = assignment,
            Err(at) => self.0.insert(at, (name.into(), assignment)),
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if let Ok(at) = self.place(name) {
            self.0.remove(at);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, assignment)| (&**name, &**assignment))
    }

    /// They are as many and as long as Weir carries.
    pub(crate) fn fits(&self) -> bool {
        let bytes: usize = self.0.iter().map(|(name, assignment)| name.len() + assignment.len()).sum();
        self.0.len() <= limits::USER_VARIABLES && bytes <= limits::USER_VARIABLES_BYTES
    }
}

/// Some of them by their names: what sets each, `None` for one that is not there.
pub(crate) type Told = Vec<(Box<str>, Option<Box<str>>)>;

/// What of the variables matters to a request or a prepared statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Wanted {
    /// All of them are to be these.
    All(Option<Arc<Variables>>),
    /// These.
    Named(Told),
}

/// What of the variables matters to what a prepared statement is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Named {
    /// Those that it names, as they were when its client prepared it.
    pub wanted: Wanted,
    /// It sets some: preparing it makes them.
    pub makes: bool,
}

/// A session has variables that are not wanted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InTheWay;

/// A question on its way.
#[derive(Debug, Default)]
pub(crate) struct Question {
    /// The variables that are asked for.
    names: Vec<Box<str>>,
    /// Packets of the answer that have come.
    at: usize,
    /// What they are, from the first result.
    kinds: Vec<Kind>,
    /// One of the two results was an error.
    failed: bool,
    /// What the second one says: how each is set again; `None`: it is not there.
    values: Option<Vec<Option<Box<str>>>>,
}

/// What a variable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Signed,
    Unsigned,
    Double,
    Decimal,
    Text,
    /// Nobody has set it.
    Unset,
    /// It does not move.
    Other,
}

impl Kind {
    /// By the definition of the column that shows it.
    fn read(payload: &[u8], capabilities: Capabilities) -> Result<Kind, Short> {
        const UNSIGNED: u16 = 32;
        const BINARY: u16 = 63;
        let mut r = Reader::new(payload);
        for _ in 0..6 {
            lenenc::string(&mut r)?;
        }
        if capabilities.has(Capabilities::EXTENDED_METADATA) && !lenenc::string(&mut r)?.is_empty() {
            return Ok(Kind::Other);
        }
        lenenc::number(&mut r)?;
        let (charset, length, code, flags) = (r.u16_le()?, r.u32_le()?, r.u8()?, r.u16_le()?);
        Ok(match code {
            5 => Kind::Double,
            8 if flags & UNSIGNED != 0 => Kind::Unsigned,
            8 => Kind::Signed,
            246 => Kind::Decimal,
            250..=253 if charset == BINARY && matches!(length, 65_532..=65_535 | 16_777_216) => Kind::Unset,
            250..=252 => Kind::Text,
            _ => Kind::Other,
        })
    }

    /// A value of this kind, for a variable that is NULL. `collation`: its own.
    fn any(self, collation: &str) -> Option<String> {
        match self {
            Kind::Signed => Some("0".into()),
            Kind::Unsigned => Some("CAST(0 AS UNSIGNED)".into()),
            Kind::Double => Some("0e0".into()),
            Kind::Decimal => Some("0.".into()),
            Kind::Text => text_literal(b"", collation),
            Kind::Unset | Kind::Other => None,
        }
    }

    /// A literal of the value. `exact`: the server reads the text as the same number.
    fn literal(self, value: &[u8], exact: bool, collation: &str) -> Option<String> {
        if self == Kind::Text {
            return text_literal(value, collation);
        }
        let number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e');
        let is_number = !value.is_empty() && value.iter().all(number);
        let text = std::str::from_utf8(value).ok().filter(|_| is_number)?;
        match self {
            Kind::Signed => Some(text.into()),
            Kind::Unsigned => Some(format!("CAST({text} AS UNSIGNED)")),
            Kind::Double if !exact => None,
            Kind::Double if text.contains('e') => Some(text.into()),
            Kind::Double => Some(format!("{text}e0")),
            // More digits than are shown may be there.
            Kind::Decimal if text.split('.').nth(1).is_some_and(|places| places.len() >= 30) => None,
            Kind::Decimal if text.contains('.') => Some(text.into()),
            Kind::Decimal => Some(format!("{text}.")),
            Kind::Text | Kind::Unset | Kind::Other => None,
        }
    }
}

/// The bytes of a string that an assignment gives to a variable: `@`a`=_utf8mb4 X'6162' COLLATE ...`.
pub(crate) fn text_of(assignment: &str) -> Option<Box<[u8]>> {
    let (_, behind) = assignment.split_once("=_")?;
    let (_, hex) = behind.split_once(" X'")?;
    let (hex, _) = hex.split_once('\'')?;
    let digits = hex.as_bytes().chunks_exact(2).map(|pair| std::str::from_utf8(pair).ok());
    digits.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

/// `_utf8mb4 X'C3A4' COLLATE utf8mb4_bin`. `None` for bytes that a server may refuse to read.
fn text_literal(value: &[u8], collation: &str) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if collation.is_empty() || !collation.bytes().all(plain) {
        return None;
    }
    let charset = collation.split('_').next().unwrap_or_default();
    let is_read = match charset {
        "binary" => true,
        "utf8" | "utf8mb3" | "utf8mb4" => std::str::from_utf8(value).is_ok(),
        "latin1" | "latin2" | "latin5" | "latin7" | "cp1250" | "cp1251" | "cp1256" | "cp1257" | "koi8r"
        | "koi8u" | "greek" | "hebrew" => true,
        "ucs2" | "utf16" | "utf16le" | "utf32" => value.is_empty(),
        _ => value.is_ascii(),
    };
    if !is_read {
        return None;
    }
    let mut literal = format!("_{charset} X'");
    for byte in value {
        let _ = write!(literal, "{byte:02X}");
    }
    literal.push('\'');
    if charset != "binary" {
        let _ = write!(literal, " COLLATE {collation}");
    }
    Some(literal)
}

/// Asks what the columns of these variables are, and what they hold. In ORACLE mode CONCAT does not tell of
/// NULL.
fn put_question(names: &[Box<str>], out: &mut Vec<u8>) {
    let (mut kinds, mut values) = (String::from("SELECT "), String::from("SELECT "));
    for (at, name) in names.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(kinds, "{comma}@`{name}`");
        let _ = write!(
            values,
            "{comma}COLLATION(@`{name}`),IF(@`{name}` IS NULL,NULL,IF(LENGTH(@`{name}`)>{},'-',\
             CONCAT(IFNULL(@`{name}`=CAST(@`{name}` AS CHAR)+0e0,0),HEX(CAST(@`{name}` AS BINARY)))))",
            limits::USER_VARIABLE_BYTES
        );
    }
    put_query(out, &(kinds + " LIMIT 0"));
    put_query(out, &(values + " LIMIT 1"));
}

impl Question {
    /// Puts it.
    pub(crate) fn put(names: Vec<Box<str>>, out: &mut Vec<u8>) -> Question {
        put_question(&names, out);
        Question { names, ..Question::default() }
    }

    /// A packet of the answer; true when it was the last.
    pub(crate) fn take(&mut self, payload: &[u8], capabilities: Capabilities) -> bool {
        let n = self.names.len();
        // Each result: the number of columns, definitions, rows, the end. The first has no row.
        let (first_end, row_at) = (n + 1, n + 2 + 1 + 2 * n);
        let at = self.at;
        self.at += 1;
        if payload.first() == Some(&ok::ERR) {
            self.failed = true;
            self.at = first_end + 1;
            return at > first_end;
        }
        if (1..first_end).contains(&at) {
            self.kinds.push(Kind::read(payload, capabilities).unwrap_or(Kind::Other));
        } else if at == row_at && payload.first() != Some(&ok::EOF) {
            self.values = self.read_row(payload);
        }
        at > row_at || at == row_at && payload.first() == Some(&ok::EOF)
    }

    fn read_row(&self, payload: &[u8]) -> Option<Vec<Option<Box<str>>>> {
        let mut r = Reader::new(payload);
        let mut values = Vec::with_capacity(self.names.len());
        for (name, kind) in self.names.iter().zip(&self.kinds) {
            let collation = nullable(&mut r).ok()?;
            let told = nullable(&mut r).ok()?;
            if *kind == Kind::Unset {
                values.push(None);
                continue;
            }
            let collation = std::str::from_utf8(collation.unwrap_or_default()).ok()?;
            let assignment = match told {
                None => format!("@`{name}`={},@`{name}`=NULL", kind.any(collation)?),
                Some(told) => {
                    let (exact, hex) = told.split_first()?;
                    let value = from_hex(hex).filter(|_| matches!(exact, b'0' | b'1'))?;
                    format!("@`{name}`={}", kind.literal(&value, *exact == b'1', collation)?)
                }
            };
            values.push(Some(assignment.into()));
        }
        (values.len() == self.names.len()).then_some(values)
    }

    /// What was told; `None` if nothing, or of one of them not all.
    pub(crate) fn finish(self) -> Option<Told> {
        let values = self.values.filter(|_| !self.failed)?;
        Some(self.names.into_iter().zip(values).collect())
    }
}

/// A value of a row of text.
fn nullable<'a>(r: &mut Reader<'a>) -> Result<Option<&'a [u8]>, Short> {
    const NULL: u8 = 0xFB;
    if r.rest().first() == Some(&NULL) {
        return r.u8().map(|_| None);
    }
    lenenc::string(r).map(Some)
}

fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

impl Back {
    /// What has to be said here so that the variables are as wanted. `but`: those that are only here yet.
    ///
    /// # Errors
    /// When only a reset does it.
    fn assignments(&self, wanted: &Wanted, but: &[Box<str>]) -> Result<Vec<String>, InTheWay> {
        let here = self.variables.as_deref();
        let mut list = Vec::new();
        let mut compare = |name: &str, wanted: Option<&str>| {
            let is = here.and_then(|here| here.get(name));
            match wanted {
                _ if is == wanted || but.iter().any(|own| **own == *name) => Ok(()),
                Some(wanted) => {
                    list.push(wanted.to_owned());
                    Ok(())
                }
                None => Err(InTheWay),
            }
        };
        match wanted {
            Wanted::All(all) => {
                if !is_same(all.as_ref(), self.variables.as_ref()) {
                    let all = all.as_deref();
                    for (name, _) in here.into_iter().flat_map(Variables::iter) {
                        compare(name, all.and_then(|all| all.get(name)))?;
                    }
                    for (name, wanted) in all.into_iter().flat_map(Variables::iter) {
                        if here.is_none_or(|here| here.get(name).is_none()) {
                            compare(name, Some(wanted))?;
                        }
                    }
                }
            }
            Wanted::Named(named) => {
                for (name, wanted) in named {
                    compare(name, wanted.as_deref())?;
                }
            }
        }
        Ok(list)
    }

    /// Only a reset of this session takes away what is in the way.
    pub(crate) fn variables_are_in_the_way(&self, wanted: &Wanted, front: &Front) -> bool {
        self.assignments(wanted, front.unasked_variables()).is_err()
    }

    /// Brings the variables here. How many commands were put, each answered by one OK.
    ///
    /// # Errors
    /// When only a reset does it.
    pub(crate) fn bring_variables(
        &mut self,
        wanted: &Wanted,
        front: &Front,
        out: &mut Vec<u8>,
    ) -> Result<u32, InTheWay> {
        let but = front.unasked_variables();
        let list = self.assignments(wanted, but)?;
        match wanted {
            Wanted::All(all) if but.is_empty() => self.variables.clone_from(all),
            Wanted::All(_) | Wanted::Named(_) if list.is_empty() => {}
            Wanted::All(None) => {}
            Wanted::All(Some(all)) => {
                let set = all.iter().filter(|(_, assignment)| list.iter().any(|one| one == assignment));
                self.note_variables_here(set.map(|(name, assignment)| (name, Some(assignment))));
            }
            Wanted::Named(named) => {
                let set = named.iter().filter_map(|(name, wanted)| Some((&**name, Some(wanted.as_deref()?))));
                self.note_variables_here(set);
            }
        }
        if list.is_empty() {
            return Ok(0);
        }
        put_query(out, &format!("SET {}", list.join(",")));
        Ok(1)
    }

    /// Variables of others are here, and a reset cannot be: they become NULL and binary strings, as one is
    /// that nobody has set. Only the length of a column tells the difference. One command, answered by one
    /// OK.
    pub(crate) fn put_out_of_the_way(&mut self, wanted: &Wanted, front: &Front, out: &mut Vec<u8>) {
        let but = front.unasked_variables();
        let own = |name: &str| match wanted {
            Wanted::All(all) => all.as_deref().and_then(|all| all.get(name)),
            Wanted::Named(named) => {
                named.iter().find(|(known, _)| **known == *name).and_then(|(_, value)| value.as_deref())
            }
        };
        let is_meant = |name: &str| match wanted {
            Wanted::All(_) => true,
            Wanted::Named(named) => named.iter().any(|(known, _)| **known == *name),
        };
        let here = self.variables.clone().unwrap_or_default();
        let mut set: Vec<(Box<str>, Box<str>)> = Vec::new();
        for (name, _) in here.iter().filter(|(name, _)| is_meant(name)) {
            if own(name).is_none() && !but.iter().any(|unasked| **unasked == *name) {
                set.push((name.into(), format!("@`{name}`=_binary'',@`{name}`=NULL").into()));
            }
        }
        let wants: Vec<(&str, &str)> = match wanted {
            Wanted::All(all) => all.as_deref().into_iter().flat_map(Variables::iter).collect(),
            Wanted::Named(named) => {
                named.iter().filter_map(|(name, value)| Some((&**name, value.as_deref()?))).collect()
            }
        };
        for (name, assignment) in wants {
            if here.get(name) != Some(assignment) && !but.iter().any(|unasked| **unasked == *name) {
                set.push((name.into(), assignment.into()));
            }
        }
        debug_assert!(!set.is_empty(), "nothing is in the way");
        let list: Vec<&str> = set.iter().map(|(_, assignment)| &**assignment).collect();
        let list = if list.is_empty() { "@_weir_s_own_=NULL".to_owned() } else { list.join(",") };
        put_query(out, &format!("SET {list}"));
        self.note_variables_here(set.iter().map(|(name, assignment)| (&**name, Some(&**assignment))));
    }

    fn note_variables_here<'a>(&mut self, set: impl Iterator<Item = (&'a str, Option<&'a str>)>) {
        let mut here = self.variables.as_deref().cloned().unwrap_or_default();
        for (name, assignment) in set {
            match assignment {
                Some(assignment) => here.set(name, assignment.into()),
                None => here.remove(name),
            }
        }
        self.variables = Some(Arc::new(here));
    }

    /// A statement that sets these is prepared here: they may be there now, and nothing is known of them.
    /// Those that its client has not, though it has prepared the same, are not made by that.
    pub(crate) fn makes_variables(&mut self, text: &Named, front: &Front) {
        let (Wanted::Named(named), true, Some(own)) = (&text.wanted, text.makes, front.variables()) else {
            return;
        };
        let made = named.iter().map(|(name, _)| &**name).filter(|name| own.get(name).is_some());
        self.note_variables_here(made.map(|name| (name, Some(""))));
    }

    /// The server has said what the variables are that it was asked for.
    pub(crate) fn take_variables(&mut self, front: &mut Front, question: Question) {
        let told = question.finish();
        front.keep_variables(told.as_ref());
        if let Some(told) = told {
            self.note_variables_here(told.iter().map(|(name, value)| (&**name, value.as_deref())));
        }
        if self.variables.as_deref() == front.variables().map(|all| &**all) {
            self.variables = front.variables().cloned();
        }
    }
}

/// Most often they are one and the same, or there are none.
fn is_same(one: Option<&Arc<Variables>>, other: Option<&Arc<Variables>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
        (Some(one), None) | (None, Some(one)) => one.0.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_is_of_the_kind_and_has_the_value() {
        for (kind, value, literal) in [
            (Kind::Signed, "-5", Some("-5")),
            (Kind::Unsigned, "5", Some("CAST(5 AS UNSIGNED)")),
            (Kind::Decimal, "1.50", Some("1.50")),
            (Kind::Decimal, "-5", Some("-5.")),
            (Kind::Double, "1.5", Some("1.5e0")),
            (Kind::Double, "-1.5e-300", Some("-1.5e-300")),
            (Kind::Signed, "1 OR 1", None),
            (Kind::Other, "1", None),
        ] {
            assert_eq!(kind.literal(value.as_bytes(), true, "binary").as_deref(), literal, "{value}");
        }
        assert_eq!(Kind::Double.literal(b"1.5", false, "binary"), None, "it was shown cut");
    }

    #[test]
    fn a_variable_is_known_by_its_column() {
        for (charset, length, code, flags, kind) in [
            (63_u16, 65_532_u32, 253_u8, 128_u16, Kind::Unset),
            (63, 65_535, 253, 128, Kind::Unset),
            (63, 65_534, 253, 128, Kind::Unset),
            (63, 16_777_216, 251, 128, Kind::Unset),
            (63, 16_777_215, 250, 128, Kind::Text),
            (8, 65_535, 253, 0, Kind::Other),
            (63, 21, 8, 128, Kind::Signed),
            (63, 21, 8, 160, Kind::Unsigned),
        ] {
            let mut column = Vec::new();
            for text in ["def", "", "", "", "@a", ""] {
                lenenc::put_string(&mut column, text.as_bytes());
            }
            column.push(0x0C);
            column.extend_from_slice(&charset.to_le_bytes());
            column.extend_from_slice(&length.to_le_bytes());
            column.push(code);
            column.extend_from_slice(&flags.to_le_bytes());
            column.extend_from_slice(&[31, 0, 0]);
            let none = Capabilities::default();
            assert_eq!(Kind::read(&column, none).unwrap(), kind, "{charset} {length} {code} {flags}");
        }
    }

    #[test]
    fn a_string_has_its_collation() {
        for (value, collation, literal) in [
            (&b"a'"[..], "utf8mb4_bin", Some("_utf8mb4 X'6127' COLLATE utf8mb4_bin")),
            (b"\xff", "latin1_german2_ci", Some("_latin1 X'FF' COLLATE latin1_german2_ci")),
            (b"\xff\x00", "binary", Some("_binary X'FF00'")),
            (b"\xff", "utf8mb4_bin", None),
            (b"\xff", "ascii_bin", None),
            (b"\xc4\xe3", "gbk_chinese_ci", None),
            (b"ab", "gbk_chinese_ci", Some("_gbk X'6162' COLLATE gbk_chinese_ci")),
            (b"ab", "ucs2_bin", None),
            (b"a", "x; DROP", None),
            (b"a", "", None),
        ] {
            assert_eq!(text_literal(value, collation).as_deref(), literal, "{collation}");
        }
    }

    #[test]
    fn a_null_keeps_the_kind() {
        assert_eq!(Kind::Unsigned.any("binary").as_deref(), Some("CAST(0 AS UNSIGNED)"));
        assert_eq!(Kind::Text.any("latin1_bin").as_deref(), Some("_latin1 X'' COLLATE latin1_bin"));
        assert_eq!(Kind::Other.any("binary"), None);
    }

    #[test]
    fn variables_are_sorted_and_bounded() {
        let mut all = Variables::default();
        for name in ["c", "a", "b", "a"] {
            all.set(name, format!("@`{name}`=1").into());
        }
        assert_eq!(all.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b", "c"]);
        all.remove("b");
        assert_eq!((all.get("a"), all.get("b")), (Some("@`a`=1"), None));
        assert!(all.fits());
        all.set("long", "x".repeat(limits::USER_VARIABLES_BYTES).into());
        assert!(!all.fits());
    }
}
