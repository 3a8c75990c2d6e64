//! `DateStyle`, one setting with two parts: the style of dates that are written, and the order in which those
//! that are read are taken. A value may name one part only; PostgreSQL then takes the other from what is in
//! force when the value is set (`check_datestyle` of datetime.c).
//!
//! Owns: what such a value comes to. Must not know: queues, replies.
//!
//! Invariant: a value that a client named at its start is completed from what a new session begins with
//! before anything else is sent, so that no server completes it from what another client has there. A startup
//! packet is read before what ALTER DATABASE and ALTER ROLE have stored: where a `DateStyle` is stored, only
//! a server that is opened with the client's value tells what it comes to.

use crate::front::Front;
use crate::session_state::Settings;
use std::sync::Arc;

/// The setting, as settings are named in Weir.
pub(crate) const DATESTYLE: &str = "datestyle";

/// What is known of both parts, in PostgreSQL's spelling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    style: Option<&'static str>,
    order: Option<&'static str>,
}

/// What one word says.
enum Word {
    Style(&'static str),
    Order(&'static str),
    /// What RESET goes back to: at a start, what was set last.
    Default,
}

impl Parts {
    /// What is in force once a startup packet sets this where `self` is. `None`: PostgreSQL refuses it.
    pub fn then(self, value: &[u8]) -> Option<Parts> {
        let mut said = Parts::default();
        let mut now = self;
        for word in words(value)? {
            match word_of(&word)? {
                Word::Style(style) if said.style.is_some_and(|said| said != style) => return None,
                Word::Style(style) => {
                    (said.style, now.style) = (Some(style), Some(style));
                    if style == "German" && said.order.is_none() {
                        now.order = Some("DMY");
                    }
                }
                Word::Order(order) if said.order.is_some_and(|said| said != order) => return None,
                Word::Order(order) => (said.order, now.order) = (Some(order), Some(order)),
                Word::Default => now = said.or(self),
            }
        }
        Some(now)
    }

    /// With the parts of `base` where nothing is known.
    fn or(self, base: Parts) -> Parts {
        Parts { style: self.style.or(base.style), order: self.order.or(base.order) }
    }

    /// As PostgreSQL writes them.
    pub fn to_value(self) -> Vec<u8> {
        let parts: Vec<&str> = self.style.into_iter().chain(self.order).collect();
        parts.join(", ").into_bytes()
    }
}

/// The words of a list of names (`SplitIdentifierString`). `None`: it is none.
fn words(value: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = value.trim_ascii();
    if rest.is_empty() {
        return Some(words);
    }
    loop {
        let length = if let Some(quoted) = rest.strip_prefix(b"\"") {
            let length = quoted.iter().position(|&byte| byte == b'"')?;
            words.push(quoted.get(..length)?.to_vec());
            length + 2
        } else {
            let ends = |&byte: &u8| byte == b',' || byte.is_ascii_whitespace();
            let length = rest.iter().position(ends).unwrap_or(rest.len());
            words.push(rest.get(..length).filter(|word| !word.is_empty())?.to_vec());
            length
        };
        rest = rest.get(length..)?.trim_ascii_start();
        match rest.split_first() {
            None => return Some(words),
            Some((b',', more)) => rest = more.trim_ascii_start(),
            Some(_) => return None,
        }
    }
}

/// `None`: PostgreSQL knows no such word.
fn word_of(word: &[u8]) -> Option<Word> {
    let word = word.to_ascii_uppercase();
    Some(match word.as_slice() {
        b"ISO" => Word::Style("ISO"),
        b"SQL" => Word::Style("SQL"),
        b"GERMAN" => Word::Style("German"),
        b"YMD" => Word::Order("YMD"),
        b"DMY" => Word::Order("DMY"),
        b"MDY" | b"US" => Word::Order("MDY"),
        b"DEFAULT" => Word::Default,
        word if word.starts_with(b"POSTGRES") => Word::Style("Postgres"),
        word if word.starts_with(b"EURO") => Word::Order("DMY"),
        word if word.starts_with(b"NONEURO") => Word::Order("MDY"),
        _ => return None,
    })
}

/// Of pairs in the order in which PostgreSQL sets them: all that name a `DateStyle` become one, which says
/// what they say together. What PostgreSQL refuses stays, so that it does.
pub(crate) fn fold(pairs: Vec<(String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
    let (named, mut rest): (Vec<_>, Vec<_>) =
        pairs.into_iter().partition(|(name, _)| name.eq_ignore_ascii_case(DATESTYLE));
    let Some((name, _)) = named.first() else { return rest };
    let mut parts = Parts::default();
    for (name, value) in &named {
        match parts.then(value) {
            Some(now) => parts = now,
            None => {
                rest.push((name.clone(), value.clone()));
                return rest;
            }
        }
    }
    rest.push((name.clone(), parts.to_value()));
    rest
}

/// These settings with both parts, the missing one from `base`; `None` when they have them, or neither.
fn completed(settings: &Settings, base: &[u8]) -> Option<Settings> {
    let named = settings.get(DATESTYLE)?;
    let base = Parts::default().then(base)?;
    let whole = Parts::default().then(named)?.or(base).to_value();
    (whole != named).then(|| settings.with(DATESTYLE, &whole).ok())?
}

/// The value that these settings name in part.
pub(crate) fn part_in(settings: &Settings) -> Option<&[u8]> {
    let named = settings.get(DATESTYLE)?;
    let parts = Parts::default().then(named)?;
    (parts.style.is_none() || parts.order.is_none()).then_some(named)
}

impl Front {
    /// A `DateStyle` that the client named in part at its start gets its other part from `base`. It needs no
    /// server of its own to find that out then.
    pub(crate) fn complete_datestyle(&mut self, base: &[u8]) {
        if let Some(settings) = completed(&self.startup, base) {
            self.startup = Arc::new(settings);
            self.settings = Arc::clone(&self.startup);
            self.wants_own = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(before: &str, value: &str) -> Option<String> {
        let before = Parts::default().then(before.as_bytes()).unwrap();
        before.then(value.as_bytes()).map(|parts| String::from_utf8(parts.to_value()).unwrap())
    }

    #[test]
    fn a_value_takes_its_other_part_from_what_is_in_force() {
        for (before, value, after) in [
            ("SQL, DMY", "ISO", "ISO, DMY"),
            ("SQL, DMY", "us", "SQL, MDY"),
            ("ISO, MDY", "german", "German, DMY"),
            ("ISO, MDY", "ymd,GERMAN", "German, YMD"),
            ("ISO, MDY", "german,ymd", "German, YMD"),
            ("ISO, MDY", "", "ISO, MDY"),
            ("", "iso", "ISO"),
            ("", "european", "DMY"),
            ("", "noneuropean , \"sql\"", "SQL, MDY"),
            ("", "postgresql", "Postgres"),
            ("German, DMY", "default, sql", "SQL, DMY"),
            ("German, DMY", "ymd, default", "German, YMD"),
            ("SQL, MDY", "german, default", "German, MDY"),
            ("", "german, default", "German"),
            ("", "default, german", "German, DMY"),
            ("", "iso, ISO", "ISO"),
        ] {
            assert_eq!(set(before, value).as_deref(), Some(after), "{before} then {value}");
        }
        for bad in ["iso, sql", "dmy, mdy", "iso,", ",iso", "iso sql", "\"iso", "\"\"", "nope", "iso;"] {
            assert_eq!(set("ISO, MDY", bad), None, "{bad}");
        }
    }

    #[test]
    fn several_values_of_a_start_are_one() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
        let folded = |pairs: &[(&str, &str)]| fold(pairs.iter().map(|(n, v)| pair(n, v)).collect());
        assert_eq!(folded(&[("a", "1")]), [pair("a", "1")]);
        assert_eq!(
            folded(&[("datestyle", "german"), ("a", "1"), ("DateStyle", "iso")]),
            [pair("a", "1"), pair("datestyle", "ISO, DMY")]
        );
        assert_eq!(folded(&[("datestyle", "nope"), ("datestyle", "iso")]), [pair("datestyle", "nope")]);
    }

    #[test]
    fn the_rest_comes_from_what_servers_have() {
        let named = |value: &str| Settings::from_pairs([(DATESTYLE.to_owned(), value.into())]).unwrap();
        let base = b"SQL, DMY";
        assert_eq!(completed(&named("ISO"), base), Some(named("ISO, DMY")));
        assert_eq!(completed(&named(""), base), Some(named("SQL, DMY")));
        assert_eq!(completed(&named("ISO, MDY"), base), None);
        assert_eq!(completed(&named("nope"), base), None, "the server refuses it");
        assert_eq!(completed(&Settings::default(), base), None);
        assert_eq!(part_in(&named("ISO")), Some(&b"ISO"[..]));
        assert_eq!((part_in(&named("ISO, MDY")), part_in(&named("nope"))), (None, None));
    }
}
