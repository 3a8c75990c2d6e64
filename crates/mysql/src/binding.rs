//! The parameter types that MySQL remembers for a prepared statement.
//!
//! MySQL (from 8.0.22) resolves the types of a statement's parameters at its first execution and discards
//! them only when a later value does not fit. `SELECT ?` executed with 1.5 returns 0 for 'again' from then
//! on. The result therefore depends on all earlier executions of that copy of the statement, and clients may
//! share a copy only if the server cannot tell their parameters apart. [`Binding`] is what the server
//! distinguishes.
//!
//! A client that changes types keeps its server until it closes the statement. When it changes them on a
//! server on which it has not executed the statement before, Weir first executes the statement with the
//! former parameters there, if the statement only reads. A statement that writes would write twice, and all
//! that makes an execution fail before it writes (a transaction READ ONLY, an XA transaction that has ended,
//! a malformed value) makes it fail before it settles anything; LOCK TABLES READ does not, but waits for
//! others and ends transactions. So an execution that shows what was settled before ([`Wants`]) goes to a
//! server that has a copy settled like that, and is refused where there is none. Each parameter of VALUES
//! stands by itself and few values show it: there nothing else keeps a client's server.
//!
//! Found on MySQL 9.7.4: integers of all widths are one type, signed and unsigned are two; NULL keeps the
//! resolved types but counts as a type of its own when it comes first or when another parameter is resolved
//! anew; a string where a number is expected counts as an integer, unless the whole string is a negative,
//! fractional or huge number, for which the parameter becomes a DECIMAL. MariaDB 10.11 discards the types
//! after each execution: there is nothing to distinguish.
//!
//! What a parameter is before the first execution follows from the tables (`id = ?`), and a server keeps it
//! when it prepares the statement anew because a table was made anew: the *kinds* that the reply to the
//! prepare names. A copy of other kinds is of no use to a client; where a fresh copy has others, an execution
//! with values of the former kinds brings them back. A statement that writes cannot be executed for that, and
//! CAST(? AS ...) in its text is not the same (an empty or NULL value, the words of a warning): there its
//! parameters are those of the new tables.
//!
//! An execution that fails may do so before the server has settled anything: it does that when it has opened
//! the tables of the statement, before those of triggers and functions, and before it runs. Behind an error
//! that comes before, the parameters are what they were; behind one that may be either (a lock wait, a KILL),
//! the client may execute the same once more, and is refused what would show the difference.
//!
//! Owns: reading a COM_STMT_EXECUTE into a binding. Must not know: which copies exist.

use crate::frame::Header;
use crate::message::{Command, lenenc};
use crate::prepared::{EXECUTE_FIXED_BYTES, Execute};
use std::sync::Arc;
use weir_wire::Reader;

/// Two bytes for each parameter: its type (0 for NULL) and what else makes a difference.
pub(crate) type Binding = Arc<[u8]>;

/// What an execution makes of what the server has settled before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is as if the statement had been executed like this from the beginning.
    Settles(Binding),
    /// Nothing.
    Keeps,
    /// What comes of it depends on both.
    Mixes,
}

/// What an execution makes of what was settled by `base`.
///
/// Found on MySQL 9.7.4: NULL never changes what is settled. What was executed with nothing but NULL is
/// settled anew by the first value, as by a first execution. Of several parameters of which some were NULL
/// that is not so (`COALESCE(?, ?)`).
pub(crate) fn change(base: &[u8], now: &[u8]) -> Change {
    if base.len() != now.len() {
        return Change::Mixes;
    }
    let pairs = || base.chunks_exact(2).zip(now.chunks_exact(2));
    if pairs().all(|(base, now)| now == base || now == NULL) {
        return Change::Keeps;
    }
    if base.chunks_exact(2).all(|base| base == NULL) {
        return Change::Settles(now.into());
    }
    Change::Mixes
}

/// What an execution wants of the copy it runs on, if that cannot be executed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Wants {
    /// Any is as good.
    #[default]
    Nothing,
    /// One that was settled as its client's was.
    Settled,
    /// The same, and the answer of any other may be wrong.
    OnlySettled,
}

/// What a parameter is, as far as another type behind it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Null,
    Text,
    Exact,
    Approximate,
    Temporal,
}

fn family(kind: u8) -> Family {
    match kind {
        0 | kind::NULL => Family::Null,
        kind::TINY | kind::SHORT | kind::LONG | kind::LONGLONG | kind::INT24 | kind::YEAR => Family::Exact,
        kind::DECIMAL => Family::Exact,
        kind::FLOAT | kind::DOUBLE => Family::Approximate,
        kind::TIMESTAMP | kind::DATE | kind::TIME | kind::DATETIME => Family::Temporal,
        _ => Family::Text,
    }
}

/// Where each parameter stands by itself, these are stored alike behind those, and those behind these.
pub(crate) fn are_alike(base: &[u8], now: &[u8]) -> bool {
    let mut pairs = base.chunks_exact(2).zip(now.chunks_exact(2)).map(|(a, b)| (family(a[0]), family(b[0])));
    base.len() == now.len() && pairs.all(|(base, now)| now == Family::Null || base == now)
}

/// What is settled of parameters that were settled by `base` and are now others, where each stands by itself.
///
/// Found on MySQL 9.7.4: dates and times replace all, numbers replace strings, and floating point replaces
/// what is exact; anything else is made into what is settled.
pub(crate) fn merged(base: &[u8], now: &[u8]) -> Binding {
    let pairs = base.chunks_exact(2).zip(now.chunks_exact(2));
    let merged = pairs.flat_map(|(base, now)| match (family(base[0]), family(now[0])) {
        (_, Family::Null) => base,
        (Family::Null | Family::Text, _) | (_, Family::Temporal) => now,
        (Family::Exact, Family::Approximate) => now,
        _ => base,
    });
    merged.copied().collect()
}

/// What this COM_STMT_EXECUTE of a statement of this text wants, whose parameters were settled by `base`; the
/// rest as in [`of`].
pub(crate) fn wants(
    base: &[u8],
    text: &[u8],
    payload: &[u8],
    execute: &Execute,
    types: &[u8],
    long_data: &[u8],
) -> Wants {
    let pairs = || base.chunks_exact(2).zip(types.chunks_exact(2));
    let is_other = |base: u8, now: u8| family(now) != Family::Null && family(base) != family(now);
    if !pairs().any(|(base, now)| is_other(base[0], now[0])) {
        // As good as all.
        return Wants::Nothing;
    }
    let long = long_parameters(long_data);
    let mut values = values_of(payload, execute, types);
    let mut any = false;
    for (i, (base, now)) in pairs().enumerate() {
        let is_long = long.contains(&i);
        if !is_long && is_null(payload, i) {
            continue;
        }
        let value = Reader::new(values.rest());
        if !is_long {
            parameter(now[0], 0, &mut values);
        }
        any |= is_other(base[0], now[0]);
        let string = (!is_long).then_some(value).and_then(|mut value| lenenc::string(&mut value).ok());
        if shows(base[0], now[0], string) {
            return Wants::OnlySettled;
        }
    }
    if any && !has_values_only(text) { Wants::Settled } else { Wants::Nothing }
}

/// A value of the type `now` may be stored as another one where the parameter was settled as `base`.
/// `string`: that value, if it is a string that is in the packet.
fn shows(base: u8, now: u8, string: Option<&[u8]>) -> bool {
    match (family(base), family(now)) {
        (Family::Temporal, Family::Text) => string.is_none_or(|text| text.iter().any(u8::is_ascii_digit)),
        (Family::Temporal, Family::Exact | Family::Approximate) => true,
        (Family::Exact | Family::Approximate, Family::Text) => string.is_none_or(is_odd_number),
        (Family::Approximate, Family::Exact) if now == kind::DECIMAL => string.is_none_or(is_odd_number),
        _ => false,
    }
}

/// The string is a number, and not as a server would write it.
fn is_odd_number(string: &[u8]) -> bool {
    /// Any floating point number has so many.
    const DIGITS: usize = 15;
    let number = string.trim_ascii();
    let digits = number.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_number = digits > 0 && number.iter().all(|b| b.is_ascii_digit() || b".eE+-".contains(b));
    let plain = string.strip_prefix(b"-").unwrap_or(string);
    let mut parts = plain.splitn(2, |byte| *byte == b'.');
    let (whole, fraction) = (parts.next().unwrap_or_default(), parts.next());
    let plain = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let is_usual = plain(whole)
        && (whole.len() == 1 || whole[0] != b'0')
        && fraction.is_none_or(|part| plain(part) && !part.ends_with(b"0"))
        && string != b"-0"
        && digits <= DIGITS;
    is_number && !is_usual
}

/// A parameter that is NULL, in a [`Binding`].
const NULL: [u8; 2] = [0, 0];

/// An INSERT or REPLACE whose parameters all stand in VALUES, each by itself.
pub(crate) fn has_values_only(text: &[u8]) -> bool {
    let text = text.to_ascii_lowercase();
    let Some(at) = text.windows(6).rposition(|word| word == b"values") else { return false };
    let (before, rows) = (&text[..at], &text[at + 6..]);
    let inserts = [&b"insert"[..], b"replace"].iter().any(|verb| before.trim_ascii_start().starts_with(verb));
    let plain = |b: &u8| b.is_ascii_whitespace() || b.is_ascii_digit() || b"(),?;.".contains(b);
    let mut words = rows.split(plain).filter(|word| !word.is_empty());
    inserts && !before.contains(&b'?') && words.all(|word| [&b"null"[..], b"default"].contains(&word))
}

/// Types of parameters (MySQL protocol, `enum_field_types`).
mod kind {
    pub(super) const TINY: u8 = 1;
    pub(super) const SHORT: u8 = 2;
    pub(super) const LONG: u8 = 3;
    pub(super) const FLOAT: u8 = 4;
    pub(super) const DOUBLE: u8 = 5;
    pub(super) const NULL: u8 = 6;
    pub(super) const TIMESTAMP: u8 = 7;
    pub(super) const LONGLONG: u8 = 8;
    pub(super) const INT24: u8 = 9;
    pub(super) const DATE: u8 = 10;
    pub(super) const TIME: u8 = 11;
    pub(super) const DATETIME: u8 = 12;
    pub(super) const YEAR: u8 = 13;
    pub(super) const DECIMAL: u8 = 246;
    pub(super) const VARCHAR: u8 = 15;
    pub(super) const BLOB: u8 = 252;
    pub(super) const VAR_STRING: u8 = 253;
    pub(super) const STRING: u8 = 254;
}

/// Of strings: what they are where a number is wanted. The unsigned flag (0x80) is never set with them.
mod text {
    pub(super) const NEGATIVE: u8 = 1;
    pub(super) const HUGE: u8 = 2;
    pub(super) const FRACTION: u8 = 3;
    /// It came as long data.
    pub(super) const LONG: u8 = 4;
}

/// Digits that any integer of 64 bits can hold.
const SAFE_DIGITS: usize = 18;

/// Longer strings are not looked at: they are no numbers that anybody would mean.
const NUMBER_BYTES: usize = 100;

/// What a parameter is, by its definition: its type and whether it has no sign.
pub(crate) fn kind_in(definition: &[u8]) -> Option<[u8; 2]> {
    /// Catalogue, schema, table twice, name twice.
    const TEXTS: usize = 6;
    const UNSIGNED: u16 = 0x20;
    let mut r = Reader::new(definition);
    for _ in 0..TEXTS {
        lenenc::string(&mut r).ok()?;
    }
    // Length of what follows, collation, width.
    r.take(1 + 2 + 4).ok()?;
    let (kind, flags) = (r.u8().ok()?, r.u16_le().ok()?);
    Some([kind, if flags & UNSIGNED != 0 { 0x80 } else { 0 }])
}

/// An execution that makes parameters of these kinds out of others: COM_STMT_EXECUTE with values that are
/// zero or empty. `None` where there is none that is sure to be understood.
pub(crate) fn execution_of(kinds: &[u8]) -> Option<Box<[u8]>> {
    let count = kinds.len() / 2;
    let mut out = vec![0; EXECUTE_FIXED_BYTES + count.div_ceil(8)];
    // Command; the number of executions is 1.
    (out[0], out[6]) = (Command::StmtExecute as u8, 1);
    out.push(1);
    out.extend_from_slice(kinds);
    for kind in kinds.chunks_exact(2) {
        let zeros = match kind[0] {
            kind::LONGLONG | kind::DOUBLE => 8,
            // The length of an empty one.
            kind::VARCHAR | kind::VAR_STRING | kind::STRING | kind::BLOB => 1,
            _ => return None,
        };
        out.extend(std::iter::repeat_n(0, zeros));
    }
    Some(out.into())
}

/// What the server can tell apart of the parameters of this COM_STMT_EXECUTE (or of as much of it as is
/// there). `types` are those the client has bound, `long_data` its COM_STMT_SEND_LONG_DATA packets.
///
/// `like` is what the statement has settled already, which most executions repeat.
pub(crate) fn of(
    payload: &[u8],
    execute: &Execute,
    types: &[u8],
    long_data: &[u8],
    like: Option<&Binding>,
) -> Binding {
    let long = &long_parameters(long_data);
    let parameters = || {
        let mut values = values_of(payload, execute, types);
        types.chunks_exact(2).enumerate().flat_map(move |(i, bytes)| {
            let (kind, flags) = (bytes[0], bytes[1] & 0x80);
            if long.contains(&i) {
                [kind, text::LONG]
            } else if kind == kind::NULL || is_null(payload, i) {
                [0, 0]
            } else {
                parameter(kind, flags, &mut values)
            }
        })
    };
    match like {
        Some(like) if parameters().eq(like.iter().copied()) => like.clone(),
        Some(_) | None => parameters().collect(),
    }
}

/// The values in the payload, or as much of them as is there.
fn values_of<'a>(payload: &'a [u8], execute: &Execute, types: &[u8]) -> Reader<'a> {
    let values_at = execute.types_flag_at.map(|at| at + 1 + if execute.has_types { types.len() } else { 0 });
    Reader::new(values_at.and_then(|at| payload.get(at..)).unwrap_or_default())
}

/// The first parameter as a number: 0 for NULL and for what is none; `None` for what is not in the packet.
pub(crate) fn integer(payload: &[u8], execute: &Execute, types: &[u8]) -> Option<u64> {
    integer_at(payload, execute, types, 0)
}

/// The same of any parameter.
pub(crate) fn integer_at(payload: &[u8], execute: &Execute, types: &[u8], index: usize) -> Option<u64> {
    let kind = *types.get(index * 2)?;
    let at = execute.types_flag_at? + 1 + if execute.has_types { types.len() } else { 0 };
    let mut values = Reader::new(payload.get(at..)?);
    for (i, bytes) in types.chunks_exact(2).enumerate().take(index) {
        if bytes[0] != kind::NULL && !is_null(payload, i) {
            parameter(bytes[0], 0, &mut values);
        }
    }
    if kind == kind::NULL || is_null(payload, index) {
        return Some(0);
    }
    match kind {
        kind::TINY => values.u8().ok().map(u64::from),
        kind::SHORT | kind::YEAR => values.u16_le().ok().map(u64::from),
        kind::LONG | kind::INT24 => values.u32_le().ok().map(u64::from),
        kind::LONGLONG => Some(u64::from_le_bytes(values.take(8).ok()?.try_into().ok()?)),
        kind::DOUBLE => {
            let double = f64::from_le_bytes(values.take(8).ok()?.try_into().ok()?);
            Some(double.round() as u64)
        }
        kind::FLOAT | kind::TIMESTAMP | kind::DATE | kind::TIME | kind::DATETIME => None,
        _ => {
            let text = std::str::from_utf8(lenenc::string(&mut values).ok()?.trim_ascii()).ok()?;
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            Some(text.get(..digits)?.parse().unwrap_or(0))
        }
    }
}

/// The parameters as a text says them: numbers, NULL, and strings that mean the same whatever `sql_mode` and
/// character set are. `None` where one of them is something else, or not in the packet.
pub(crate) fn literals(payload: &[u8], execute: &Execute, types: &[u8]) -> Option<Vec<String>> {
    let Some(flag_at) = execute.types_flag_at else { return Some(Vec::new()) };
    let at = flag_at + 1 + if execute.has_types { types.len() } else { 0 };
    let mut values = Reader::new(payload.get(at..)?);
    let literal = |(i, bytes): (usize, &[u8])| {
        let (kind, unsigned) = (bytes[0], bytes[1] & 0x80 != 0);
        if kind == kind::NULL || is_null(payload, i) {
            return Some("NULL".to_owned());
        }
        let bytes = match kind {
            kind::TINY => 1,
            kind::SHORT => 2,
            kind::LONG | kind::INT24 => 4,
            kind::LONGLONG => 8,
            kind::DOUBLE => {
                let double = f64::from_le_bytes(values.take(8).ok()?.try_into().ok()?);
                return double.is_finite().then(|| format!("{double:e}"));
            }
            kind::VARCHAR | kind::VAR_STRING | kind::STRING => {
                let text = std::str::from_utf8(lenenc::string(&mut values).ok()?).ok()?;
                let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'\\');
                return plain.then(|| format!("'{}'", text.replace('\'', "''")));
            }
            _ => return None,
        };
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(values.take(bytes).ok()?);
        let number = u64::from_le_bytes(number);
        let above = 64 - 8 * bytes;
        Some(match unsigned {
            true => number.to_string(),
            // With its sign, from as many bytes as it has.
            false => ((number << above).cast_signed() >> above).to_string(),
        })
    };
    types.chunks_exact(2).enumerate().map(literal).collect()
}

fn is_null(payload: &[u8], parameter: usize) -> bool {
    payload.get(EXECUTE_FIXED_BYTES + parameter / 8).is_some_and(|byte| byte >> (parameter % 8) & 1 == 1)
}

fn parameter(kind: u8, flags: u8, values: &mut Reader<'_>) -> [u8; 2] {
    let bytes = match kind {
        kind::TINY => 1,
        kind::SHORT | kind::YEAR => 2,
        kind::LONG | kind::INT24 | kind::FLOAT => 4,
        kind::LONGLONG | kind::DOUBLE => 8,
        kind::TIMESTAMP | kind::DATE | kind::TIME | kind::DATETIME => values.u8().map_or(0, usize::from),
        _ => return [kind, lenenc::string(values).map_or(0, number_in)],
    };
    if values.take(bytes).is_err() {
        values.take_rest();
    }
    match kind {
        kind::TINY | kind::SHORT | kind::LONG | kind::INT24 | kind::LONGLONG => [kind::LONGLONG, flags],
        _ => [kind, flags],
    }
}

/// What a string is where a number is wanted; 0 for an integer, and for all that is no number.
fn number_in(string: &[u8]) -> u8 {
    if string.len() > NUMBER_BYTES {
        return 0;
    }
    let trimmed = string.trim_ascii();
    let (negative, number) = match trimmed.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        Some(_) | None => (false, trimmed),
    };
    let digits = number.iter().filter(|byte| byte.is_ascii_digit()).count();
    let rest = number.iter().filter(|byte| !byte.is_ascii_digit());
    if digits == 0 || !rest.clone().all(|byte| matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-')) {
        0
    } else if rest.count() > 0 {
        text::FRACTION
    } else if digits > SAFE_DIGITS {
        text::HUGE
    } else if negative {
        text::NEGATIVE
    } else {
        0
    }
}

/// The numbers of the parameters that kept COM_STMT_SEND_LONG_DATA packets are for.
fn long_parameters(long_data: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut rest = long_data;
    while let Some(header) = Header::read(rest) {
        let mut r = Reader::new(rest.get(HEADER_AND_STATEMENT_BYTES..).unwrap_or_default());
        if let Ok(parameter) = r.u16_le() {
            found.push(usize::from(parameter));
        }
        rest = rest.get(header.total()..).unwrap_or_default();
    }
    found
}

/// Before the number of the parameter in COM_STMT_SEND_LONG_DATA: header, command, number of the statement.
const HEADER_AND_STATEMENT_BYTES: usize = crate::frame::HEADER_BYTES + 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// A COM_STMT_EXECUTE with these types and values, of which those of `nulls` are NULL.
    fn payload(types: &[u8], nulls: u8, values: &[u8], has_types: bool) -> Vec<u8> {
        let mut out = vec![0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, nulls, u8::from(has_types)];
        if has_types {
            out.extend_from_slice(types);
        }
        out.extend_from_slice(values);
        out
    }

    fn binding(types: &[u8], nulls: u8, values: &[u8]) -> Binding {
        let [with, without] = [true, false].map(|has_types| {
            let payload = payload(types, nulls, values, has_types);
            let execute = Execute::read(&payload, (types.len() / 2) as u16).unwrap();
            for n in 0..payload.len() {
                // As much of it as came in the first part of a long one.
                of(&payload[..n], &execute, types, &[], None);
            }
            of(&payload, &execute, types, &[], None)
        });
        assert_eq!(with, without, "types sent again or not make no difference");
        with
    }

    #[test]
    fn kinds_are_read_from_definitions_and_brought_back_by_an_execution() {
        let mut definition = Vec::new();
        for text in [&b"def"[..], b"", b"", b"", b"?", b""] {
            lenenc::put_string(&mut definition, text);
        }
        definition.extend_from_slice(&[12, 63, 0, 21, 0, 0, 0, kind::LONGLONG, 0xA0, 0, 0, 0, 0]);
        assert_eq!(kind_in(&definition), Some([kind::LONGLONG, 0x80]));
        assert_eq!(kind_in(&definition[..12]), None);
        let kinds = [kind::LONGLONG, 0, kind::VAR_STRING, 0];
        let payload = execution_of(&kinds).unwrap();
        let execute = Execute::read(&payload, 2).unwrap();
        assert!(execute.has_types && !execute.cursor);
        assert_eq!(execute.types(&payload, 2), kinds);
        assert_eq!(&*of(&payload, &execute, &kinds, &[], None), kinds);
        // Nothing is sure to be understood as JSON.
        assert_eq!(execution_of(&[245, 0]), None);
    }

    #[test]
    fn integers_of_all_widths_are_alike_but_for_their_sign() {
        let tiny = binding(&[kind::TINY, 0], 0, &[5]);
        assert_eq!(tiny, binding(&[kind::LONGLONG, 0], 0, &[5; 8]));
        assert_ne!(tiny, binding(&[kind::LONGLONG, 0x80], 0, &[5; 8]));
        assert_ne!(tiny, binding(&[kind::DOUBLE, 0], 0, &[5; 8]));
    }

    #[test]
    fn null_is_a_type_of_its_own() {
        let text = &[0xFD, 0, 0xFD, 0];
        let null = binding(text, 0b01, b"\x01x");
        assert_eq!(&*null, [0, 0, 0xFD, 0]);
        assert_eq!(null, binding(&[kind::NULL, 0, 0xFD, 0], 0, b"\x01x"));
        assert_ne!(null, binding(text, 0b00, b"\x01x\x01x"));
    }

    #[test]
    fn strings_differ_by_the_number_they_are() {
        let of = |string: &str| {
            let mut values = vec![string.len() as u8];
            values.extend_from_slice(string.as_bytes());
            binding(&[0xFD, 0], 0, &values)[1]
        };
        for plain in ["", "abc", "5", " 5 ", "007", "5x", "1.5x", "-", "e", "2020-01-01 10:11:12"] {
            assert_eq!(of(plain), 0, "{plain}");
        }
        for (string, class) in [
            ("-5", text::NEGATIVE),
            ("1.5", text::FRACTION),
            (".5", text::FRACTION),
            ("1.", text::FRACTION),
            ("1e5", text::FRACTION),
            ("99999999999999999999", text::HUGE),
        ] {
            assert_eq!(of(string), class, "{string}");
        }
        assert_eq!(of(&"9".repeat(101)), 0);
    }

    #[test]
    fn values_behind_others_are_found() {
        // A date, a NULL, and a string behind them.
        let types = &[kind::DATETIME, 0, kind::DOUBLE, 0, 0xFD, 0];
        let found = binding(types, 0b010, b"\x04\xe8\x07\x02\x1d\x031.5");
        assert_eq!(&*found, [kind::DATETIME, 0, 0, 0, 0xFD, text::FRACTION]);
    }

    #[test]
    fn parameters_as_a_text_says_them() {
        let said = |types: &[u8], nulls: u8, values: &[u8]| {
            let payload = payload(types, nulls, values, true);
            let execute = Execute::read(&payload, (types.len() / 2) as u16).unwrap();
            literals(&payload, &execute, types).map(|all| all.join(","))
        };
        let numbers = [kind::TINY, 0, kind::SHORT, 0x80, kind::LONGLONG, 0, kind::LONG, 0x80];
        let values = b"\xff\xff\xff\xfe\xff\xff\xff\xff\xff\xff\xff\x01\0\0\x80";
        assert_eq!(said(&numbers, 0, values).as_deref(), Some("-1,65535,-2,2147483649"));
        assert_eq!(said(&numbers, 0, &values[..14]), None);
        let mixed = [kind::DOUBLE, 0, kind::VAR_STRING, 0, kind::LONG, 0];
        let values = [&(-1.5_f64).to_le_bytes()[..], b"\x055'x y"].concat();
        assert_eq!(said(&mixed, 0b100, &values).as_deref(), Some("-1.5e0,'5''x y',NULL"));
        for string in [&b"\x02\\x"[..], b"\x02\xc3\xa4", b"\x01\0"] {
            assert_eq!(said(&[kind::STRING, 0], 0, string), None, "it depends on settings");
        }
        assert_eq!(said(&[kind::DATE, 0], 0, b"\x04\xe8\x07\x02\x1d"), None);
        assert_eq!(said(&[], 0, b"").as_deref(), Some(""));
    }

    #[test]
    fn what_changes_what_is_settled() {
        let (int, text, null) = ([kind::LONGLONG, 0], [0xFD, 0], NULL);
        let both = |a: [u8; 2], b: [u8; 2]| [a, b].concat();
        let values = b"INSERT INTO `t` (a, b) VALUES (?, NULL, ?), (1.5, DEFAULT)";
        assert_eq!(change(&int, &int), Change::Keeps);
        assert_eq!(change(&int, &null), Change::Keeps);
        assert_eq!(change(&int, &text), Change::Mixes);
        assert_eq!(change(&null, &text), Change::Settles(text.into()));
        assert_eq!(change(&both(null, null), &both(null, int)), Change::Settles(both(null, int).into()));
        assert_eq!(change(&both(text, null), &both(text, int)), Change::Mixes);
        assert!(has_values_only(values));
        assert_eq!(*merged(&both(text, null), &both(null, int)), both(text, int));
        let (time, double) = ([kind::TIME, 0], [kind::DOUBLE, 0]);
        assert_eq!(*merged(&both(int, time), &both(text, int)), both(int, time));
        assert_eq!(*merged(&both(int, text), &both(double, int)), both(double, int));
        assert_eq!(*merged(&both(double, int), &both(int, time)), both(double, time));
        for text in [
            &b"insert into t values (? + 1)"[..],
            b"insert into t values (?) on duplicate key update a = ?",
            b"insert into t values (f(?))",
            b"insert into t select ? from (values (1)) x",
            b"select ? /* values */",
            b"update t set a = ?",
        ] {
            assert!(!has_values_only(text), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn what_shows_how_a_parameter_was_settled() {
        const INSERT: &[u8] = b"INSERT INTO t VALUES (?)";
        let wanted = |base: u8, text: &[u8], kind: u8, value: &[u8]| {
            let types = [kind, 0];
            let payload = payload(&types, 0, value, true);
            let execute = Execute::read(&payload, 1).unwrap();
            wants(&[base, 0], text, &payload, &execute, &types, &[])
        };
        let string = |base: u8, text: &[u8], string: &str| {
            let value = [&[string.len() as u8], string.as_bytes()].concat();
            wanted(base, text, kind::VAR_STRING, &value)
        };
        for usual in ["5", "-5", "0", "1.5", "-0.5", "abc", "5x", "12:30", "", "e", "123456789012345"] {
            assert_eq!(string(kind::LONGLONG, INSERT, usual), Wants::Nothing, "{usual}");
            assert_eq!(string(kind::LONGLONG, b"update t set a = ?", usual), Wants::Settled, "{usual}");
        }
        for odd in ["007", " 5", "+5", "5.", ".5", "1.50", "-0", "1e1", "1234567890123456"] {
            assert_eq!(string(kind::DOUBLE, INSERT, odd), Wants::OnlySettled, "{odd}");
            assert_eq!(string(kind::VAR_STRING, INSERT, odd), Wants::Nothing, "{odd}");
        }
        assert_eq!(string(kind::TIME, INSERT, "2"), Wants::OnlySettled);
        assert_eq!(string(kind::TIME, INSERT, "abc"), Wants::Nothing);
        assert_eq!(wanted(kind::TIME, INSERT, kind::TINY, b"\x05"), Wants::OnlySettled);
        assert_eq!(wanted(kind::LONGLONG, INSERT, kind::TINY, b"\x05"), Wants::Nothing);
        assert_eq!(wanted(kind::LONGLONG, b"do ?", kind::NULL, b""), Wants::Nothing);
    }

    #[test]
    fn long_data_is_not_in_the_packet() {
        let types = &[0xFC, 0, 0xFD, 0];
        let payload = payload(types, 0, b"\x02-5", true);
        let execute = Execute::read(&payload, 2).unwrap();
        let long = [7, 0, 0, 0, 0x18, 1, 0, 0, 0, 0, 0];
        assert_eq!(&*of(&payload, &execute, types, &long, None), [0xFC, text::LONG, 0xFD, text::NEGATIVE]);
    }
}
