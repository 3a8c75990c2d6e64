//! The settings that move with a client: those it named at startup and those it has SET since.
//!
//! Owns: [`Settings`] (what a client wants, or what a server has been given beyond its own defaults),
//! [`Reported`] (what a server says about itself by ParameterStatus) and the query that turns one into the
//! other. Must not know: queues, replies.
//!
//! Invariants: names are in lower case and sorted; a value is the text PostgreSQL reports or accepts in a
//! startup packet, never SQL: it is quoted here, each time it is sent.

use crate::frame::put;
use crate::role::{AUTHORIZATION, WHO, in_order, is_who};
use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use weir_sql::Scope;
use weir_sql::{READ_BY, decides_plans};
use weir_wire::limits::{CLIENT_SETTINGS, CLIENT_SETTINGS_BYTES, REPORTED_PARAMETERS, REPORTED_VALUE_BYTES};

/// Settings beyond a server's own defaults. Cheap to share, never changed in place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    entries: Vec<(Box<str>, Box<[u8]>)>,
    plan_key: u64,
    /// See [`Settings::kept_plan_key`].
    kept_plan_key: u64,
    /// See [`Settings::is_somebody`].
    is_somebody: bool,
}

/// The setting that every client may have different and that changes no answer.
pub const APPLICATION_NAME: &str = "application_name";

/// More settings than Weir carries for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

/// See [`Settings::doubt`]. No setting can have it.
const NO_VALUE: &[u8] = b"\0";

/// Ends a value with bytes beyond ASCII that stood in a startup packet, and no other. PostgreSQL takes such
/// bytes as they are, in the database's encoding; those of a statement are in the client's.
const AS_IT_IS: u8 = 0;

/// Setting the isolation level of a transaction.
const ISOLATION: &str = "transaction_isolation";

/// The text of a value, without what Weir remembers of it.
pub(crate) fn text_of(value: &[u8]) -> &[u8] {
    value.strip_suffix(&[AS_IT_IS]).unwrap_or(value)
}

fn is_as_it_is(value: &[u8]) -> bool {
    value.ends_with(&[AS_IT_IS]) && value != NO_VALUE
}

impl Settings {
    /// Of pairs of a startup packet, in any order and any case; of a name given twice the last value counts,
    /// as in PostgreSQL.
    ///
    /// # Errors
    /// [`TooMany`] for more settings than [`weir_wire::limits`] allows.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Settings, TooMany> {
        let mut settings = Settings::default();
        for (name, mut value) in pairs {
            if !value.is_ascii() {
                value.push(AS_IT_IS);
            }
            settings.put(&name, &value);
            settings.check()?;
        }
        settings.seal();
        Ok(settings)
    }

    /// These settings with one more or another value.
    ///
    /// # Errors
    /// [`TooMany`] when there would be more settings than [`weir_wire::limits`] allows.
    pub fn with(&self, name: &str, value: &[u8]) -> Result<Settings, TooMany> {
        let mut settings = self.clone();
        settings.put(name, value);
        settings.check()?;
        settings.seal();
        Ok(settings)
    }

    /// These settings without one.
    pub fn without(&self, name: &str) -> Settings {
        let mut settings = self.clone();
        if let Ok(at) = settings.find(name) {
            settings.entries.remove(at);
        }
        settings.seal();
        settings
    }

    /// What RESET ALL leaves as it is (`GUC_NO_RESET_ALL` of guc.c).
    pub(crate) fn beyond_reset_all(&self) -> Settings {
        let mut settings = self.clone();
        settings.entries.retain(|(name, _)| is_who(name));
        settings.seal();
        settings
    }

    /// These settings with one of which it is not known what it is: it differs from every value, so that it
    /// is sent before it counts again.
    pub fn doubt(&self, name: &str) -> Settings {
        self.with(name, NO_VALUE).unwrap_or_else(|TooMany| self.clone())
    }

    /// Of one it is not known what it is.
    pub fn has_doubt(&self) -> bool {
        self.entries.iter().any(|(_, value)| &**value == NO_VALUE)
    }

    /// The value of a setting.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.find(name).ok().and_then(|at| self.entries.get(at)).map(|(_, value)| &**value)
    }

    /// Names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries.iter().map(|(name, value)| (&**name, &**value))
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Equal for settings under which the same text means the same: all but `application_name` count.
    /// 0 when there are none.
    pub fn plan_key(&self) -> u64 {
        self.plan_key
    }

    /// Equal for settings under which a plan that is kept means the same ([`weir_sql::decides_plans`]). 0
    /// when there are none. (PostgreSQL itself looks at `search_path` and row security again.)
    pub fn kept_plan_key(&self) -> u64 {
        self.kept_plan_key
    }

    /// They say who a session acts as: a role or a session authorization.
    #[inline]
    pub fn is_somebody(&self) -> bool {
        self.is_somebody
    }

    /// A statement may be cut off by them.
    pub fn limits_time(&self) -> bool {
        let limits = |name| self.get(name).is_some_and(|value| value != b"0");
        limits("statement_timeout") || limits("transaction_timeout")
    }

    /// Equal but for `application_name`.
    pub fn same_but_application_name(&self, other: &Settings) -> bool {
        let counts = |&(name, _): &(&str, &[u8])| name != APPLICATION_NAME;
        self.iter().filter(counts).eq(other.iter().filter(counts))
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|(have, _)| compare_names(have, name))
    }

    fn put(&mut self, name: &str, value: &[u8]) {
        match self.find(name) {
            Ok(at) => {
                if let Some(entry) = self.entries.get_mut(at) {
                    entry.1 = value.into();
                }
            }
            Err(at) => self.entries.insert(at, (name.to_ascii_lowercase().into(), value.into())),
        }
    }

    fn check(&self) -> Result<(), TooMany> {
        let bytes: usize = self.entries.iter().map(|(name, value)| name.len() + value.len()).sum();
        if self.entries.len() > CLIENT_SETTINGS || bytes > CLIENT_SETTINGS_BYTES {
            Err(TooMany)
        } else {
            Ok(())
        }
    }

    fn seal(&mut self) {
        let mut hasher = DefaultHasher::new();
        let mut any = false;
        for (name, value) in self.iter().filter(|&(name, _)| name != APPLICATION_NAME) {
            any = true;
            name.hash(&mut hasher);
            value.hash(&mut hasher);
        }
        self.plan_key = if any { hasher.finish() | 1 } else { 0 };
        let (mut hasher, mut reads) = (DefaultHasher::new(), false);
        for (name, value) in &self.entries {
            if decides_plans(name) {
                reads = true;
                name.hash(&mut hasher);
                value.hash(&mut hasher);
            }
        }
        self.kept_plan_key = if reads { hasher.finish() | 1 } else { 0 };
        self.is_somebody = any && WHO.iter().any(|name| self.get(name).is_some());
    }
}

/// Compares an entry's lower-case name with a name in any case, byte by byte.
fn compare_names(have: &str, name: &str) -> Ordering {
    have.bytes().cmp(name.bytes().map(|b| b.to_ascii_lowercase()))
}

/// What a server says about itself by ParameterStatus, in the order it said it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reported {
    entries: Vec<(Box<str>, Box<[u8]>)>,
}

impl Reported {
    /// Notes a value. False when the server reports more than Weir keeps.
    pub fn set(&mut self, name: &str, value: &[u8]) -> bool {
        if value.len() > REPORTED_VALUE_BYTES {
            return false;
        }
        if let Some(entry) = self.entries.iter_mut().find(|(have, _)| have.eq_ignore_ascii_case(name)) {
            entry.1 = value.into();
            return true;
        }
        let room = self.entries.len() < REPORTED_PARAMETERS;
        if room {
            self.entries.push((name.into(), value.into()));
        }
        room
    }

    /// The value of a parameter; the case of its name does not count.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.entries.iter().find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }

    /// Names as the server writes them, and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries.iter().map(|(name, value)| (&**name, &**value))
    }
}

/// A client that sets this parameter takes the new value along. The others are facts about the server, or
/// about who is logged in there, which a setting cannot carry elsewhere.
pub fn follows(name: &str) -> bool {
    const FACTS: [&str; 6] = [
        "in_hot_standby",
        "integer_datetimes",
        "is_superuser",
        "server_encoding",
        "server_version",
        "session_authorization",
    ];
    !FACTS.iter().any(|fact| fact.eq_ignore_ascii_case(name))
}

/// What must change on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// Name, in lower case.
    pub name: &'a str,
    /// The value to set, or `None` for the server's default.
    pub value: Option<&'a [u8]>,
}

/// The difference between what a server has (`applied` over `base`) and what a client wants, in an order in
/// which it can be made.
pub fn difference<'a>(applied: &'a Settings, wanted: &'a Settings, base: &'a Reported) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    // A fact is set nowhere: the server refuses it, whatever it is said to be.
    let base_of = |name| base.get(name).filter(|_| follows(name) || name == AUTHORIZATION);
    for (name, value) in wanted.iter() {
        let has = applied.get(name).or_else(|| base_of(name));
        if has != Some(value) {
            changes.push(Change { name, value: Some(value) });
        }
    }
    for (name, value) in applied.iter() {
        if wanted.get(name).is_none() && base.get(name) != Some(value) {
            changes.push(Change { name, value: None });
        }
    }
    in_order(changes, applied, wanted)
}

/// Appends the simple queries that make these changes and returns how many they are: one, or two when a
/// value with bytes beyond ASCII must be read under the new `client_encoding`.
///
/// `set_config` and not SET: its value is the text of the startup packet, so a list such as `search_path`
/// is not quoted a second time, and with NULL it resets. One SELECT is one statement: all or nothing.
pub fn put_queries(out: &mut Vec<u8>, changes: &[Change<'_>]) -> usize {
    let is_encoding = |change: &&Change<'_>| change.name == "client_encoding";
    let beyond_ascii =
        |change: &Change<'_>| change.value.is_some_and(|value| !value.is_ascii() && !is_as_it_is(value));
    if changes.iter().any(|c| is_encoding(&c)) && changes.iter().any(beyond_ascii) {
        put_changes(out, changes.iter().filter(is_encoding), Scope::Session);
        put_changes(out, changes.iter().filter(|c| !is_encoding(c)), Scope::Session);
        return 2;
    }
    put_changes(out, changes.iter(), Scope::Session);
    1
}

/// Appends one query that makes these changes, for the session or for the rest of the transaction.
pub(crate) fn put_changes<'a>(
    out: &mut Vec<u8>,
    changes: impl Iterator<Item = &'a Change<'a>>,
    scope: Scope,
) {
    let end: &[u8] = if scope == Scope::Transaction { b",true)" } else { b",false)" };
    put(out, b'Q', |out| {
        let mut before: &[u8] = b"SELECT ";
        for change in changes {
            out.extend_from_slice(before);
            before = b",";
            put_change(out, change, end);
            if change.name == ISOLATION {
                // Only a client's start brings it, and only what PostgreSQL refuses there: it has begun with
                // this one by then. Whatever there is on this server, one of the two is another.
                out.push(b',');
                put_change(out, &Change { value: Some(b"read committed"), ..*change }, end);
            }
        }
        out.push(0);
    });
}

fn put_change(out: &mut Vec<u8>, change: &Change<'_>, end: &[u8]) {
    out.extend_from_slice(b"pg_catalog.set_config(");
    put_literal(out, change.name.as_bytes());
    out.push(b',');
    match change.value {
        Some(value) if is_as_it_is(value) => put_as_it_is(out, text_of(value)),
        Some(value) => put_literal(out, value),
        None => out.extend_from_slice(b"NULL"),
    }
    out.extend_from_slice(end);
}

/// Bytes in the database's encoding, whatever the client's is at this moment: no conversion changes them.
fn put_as_it_is(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(b"pg_catalog.convert_from(E'\\\\x");
    for byte in text {
        out.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    out.extend_from_slice(b"'::pg_catalog.bytea,pg_catalog.getdatabaseencoding())");
}

/// Asks the server for all of that: one row.
pub(crate) fn what_decides_reading() -> Vec<u8> {
    let mut text = b"SELECT ".to_vec();
    for (at, name) in READ_BY.iter().enumerate() {
        text.extend_from_slice(if at == 0 { b"" } else { b"," });
        text.extend_from_slice(b"pg_catalog.current_setting(");
        put_literal(&mut text, name.as_bytes());
        text.push(b')');
    }
    text
}

/// These settings with that row's values. `None`: it is not such a row.
pub(crate) fn as_read_under(settings: &Settings, row: &[Option<Box<[u8]>>]) -> Option<Settings> {
    let mut settings = settings.clone();
    if row.len() != READ_BY.len() {
        return None;
    }
    for (name, value) in READ_BY.iter().zip(row) {
        settings = settings.with(name, value.as_deref()?).ok()?;
    }
    Some(settings)
}

/// All of that, as these settings have it.
pub(crate) fn all_that_decides_reading(settings: &Settings) -> Vec<Change<'_>> {
    READ_BY.iter().map(|&name| Change { name, value: settings.get(name) }).collect()
}

/// Writes two texts: one that makes these changes for a moment within a transaction, and one that goes back.
/// `before` says what there is now, if that is known; else the server keeps it in placeholders of Weir's own.
pub(crate) fn put_visit<'a>(
    there: &mut Vec<u8>,
    here: &mut Vec<u8>,
    changes: &[Change<'a>],
    before: impl Fn(&str) -> Option<Option<&'a [u8]>>,
) {
    let call = |out: &mut Vec<u8>, prefix: &[u8], name: &str, value: &dyn Fn(&mut Vec<u8>)| {
        out.extend_from_slice(if out.is_empty() { b"SELECT " } else { b"," });
        out.extend_from_slice(b"pg_catalog.set_config(");
        put_literal(out, &[prefix, name.as_bytes()].concat());
        out.push(b',');
        value(out);
        out.extend_from_slice(b",true)");
    };
    let current = |out: &mut Vec<u8>, prefix: &[u8], name: &str| {
        out.extend_from_slice(b"pg_catalog.current_setting(");
        put_literal(out, &[prefix, name.as_bytes()].concat());
        out.push(b')');
    };
    let plain = |out: &mut Vec<u8>, value: Option<&[u8]>| match value {
        Some(value) => put_literal(out, value),
        None => out.extend_from_slice(b"NULL"),
    };
    for &Change { name, value } in changes {
        match before(name) {
            Some(now) => call(here, b"", name, &|out| plain(out, now)),
            None => {
                call(there, b"weir.", name, &|out| current(out, b"", name));
                call(here, b"", name, &|out| current(out, b"weir.", name));
            }
        }
        call(there, b"", name, &|out| plain(out, value));
    }
}

/// A literal that is read the same whatever `standard_conforming_strings` and `backslash_quote` say.
pub(crate) fn put_literal(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(b"E'");
    for &byte in text {
        match byte {
            b'\'' | b'\\' => out.extend_from_slice(&[byte, byte]),
            0 => {}
            _ => out.push(byte),
        }
    }
    out.push(b'\'');
}

/// How PostgreSQL reports an `application_name` of plain characters: cut to 63 bytes. `None` when it has
/// others, of which versions make different things: ask the server.
pub fn reported_application_name(value: &[u8]) -> Option<&[u8]> {
    const NAMEDATALEN: usize = 64;
    let plain = value.iter().all(|&b| (0x20..=0x7e).contains(&b));
    plain.then(|| value.get(..NAMEDATALEN - 1).unwrap_or(value))
}

/// The settings after a parameter was reported with a new value while a client's request ran. Returns the
/// client's settings unchanged when they already say so.
///
/// # Errors
/// [`TooMany`] when the client would have more settings than [`weir_wire::limits`] allows.
pub fn after_report(
    settings: &Arc<Settings>,
    startup: &Settings,
    base: &Reported,
    name: &str,
    value: &[u8],
) -> Result<Arc<Settings>, TooMany> {
    if base.get(name) == Some(value) && startup.get(name).is_none() {
        if settings.get(name).is_none() {
            return Ok(Arc::clone(settings));
        }
        return Ok(Arc::new(settings.without(name)));
    }
    if settings.get(name) == Some(value) {
        return Ok(Arc::clone(settings));
    }
    settings.with(name, value).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        Settings::from_pairs(pairs.iter().map(|(n, v)| ((*n).to_owned(), v.as_bytes().to_vec()))).unwrap()
    }

    fn query(changes: &[Change<'_>]) -> String {
        let mut out = Vec::new();
        assert_eq!(put_queries(&mut out, changes), 1);
        String::from_utf8(out[5..out.len() - 1].to_vec()).unwrap()
    }

    #[test]
    fn abbreviations_of_time_zones_decide_how_literals_are_read() {
        use weir_sql::decides_reading;
        assert!(decides_reading("timezone_abbreviations") && decides_reading("timezone"));
        assert!(!decides_reading("search_path"));
    }

    #[test]
    fn names_fold_and_the_last_value_counts() {
        let s = settings(&[("TimeZone", "UTC"), ("timezone", "CET"), ("a", "1")]);
        assert_eq!(s.iter().collect::<Vec<_>>(), [("a", &b"1"[..]), ("timezone", b"CET")]);
        assert_eq!(s.get("TIMEZONE"), Some(&b"CET"[..]));
        assert_eq!(s.without("timezone"), settings(&[("a", "1")]));
        assert_eq!(s.with("B", b"2").unwrap(), settings(&[("b", "2"), ("a", "1"), ("timezone", "CET")]));
    }

    #[test]
    fn the_application_name_is_not_part_of_a_plan() {
        let a = settings(&[("application_name", "a"), ("search_path", "x")]);
        let b = settings(&[("application_name", "b"), ("search_path", "x")]);
        assert_eq!(a.plan_key(), b.plan_key());
        assert!(a.same_but_application_name(&b));
        assert_ne!(a.plan_key(), settings(&[("search_path", "y")]).plan_key());
        assert_eq!(settings(&[("application_name", "a")]).plan_key(), 0);
        assert_eq!(settings(&[("search_path", "x"), ("work_mem", "5MB")]).kept_plan_key(), 0);
        let german = settings(&[("datestyle", "German"), ("search_path", "x")]);
        assert_eq!(german.kept_plan_key(), settings(&[("datestyle", "German")]).kept_plan_key());
        assert_ne!(german.kept_plan_key(), settings(&[("extra_float_digits", "0")]).kept_plan_key());
    }

    #[test]
    fn bounds_hold() {
        let many = (0..200).map(|n| (format!("x.n{n}"), b"v".to_vec()));
        assert_eq!(Settings::from_pairs(many), Err(TooMany));
        assert_eq!(Settings::from_pairs([("a".into(), vec![b'x'; 20_000])]), Err(TooMany));
        let mut reported = Reported::default();
        assert!(!reported.set("search_path", &[b'x'; 10_000]));
        assert!((0..128).all(|n| reported.set(&format!("x.n{n}"), b"")));
        assert!(!reported.set("one.more", b""));
    }

    #[test]
    fn only_the_difference_is_sent() {
        let mut base = Reported::default();
        base.set("TimeZone", b"UTC");
        base.set("client_encoding", b"UTF8");
        let applied = settings(&[("timezone", "CET"), ("statement_timeout", "5s"), ("work_mem", "1MB")]);
        let wanted = settings(&[
            ("client_encoding", "UTF8"),
            ("work_mem", "1MB"),
            ("search_path", "\"$user\", a'b\\c"),
        ]);
        assert_eq!(
            query(&difference(&applied, &wanted, &base)),
            "SELECT pg_catalog.set_config(E'search_path',E'\"$user\", a''b\\\\c',false),\
             pg_catalog.set_config(E'statement_timeout',NULL,false),\
             pg_catalog.set_config(E'timezone',NULL,false)"
        );
        assert!(difference(&wanted, &wanted, &base).is_empty());
        assert!(difference(&settings(&[]), &settings(&[("TIMEZONE", "UTC")]), &base).is_empty());
    }

    #[test]
    fn what_is_doubted_is_sent() {
        let mut base = Reported::default();
        base.set("TimeZone", b"UTC");
        let none = Settings::default();
        let doubted = none.doubt("timezone");
        let utc = settings(&[("timezone", "UTC")]);
        assert_eq!(difference(&doubted, &utc, &base), [Change { name: "timezone", value: Some(b"UTC") }]);
        assert_eq!(difference(&doubted, &none, &base), [Change { name: "timezone", value: None }]);
    }

    #[test]
    fn encoding_goes_first_when_it_matters() {
        let base = Reported::default();
        let none = Settings::default();
        let wanted = settings(&[("client_encoding", "LATIN1")]).with("search_path", b"sch\xe9ma").unwrap();
        let mut out = Vec::new();
        assert_eq!(put_queries(&mut out, &difference(&none, &wanted, &base)), 2);
        let plain = settings(&[("client_encoding", "LATIN1"), ("search_path", "schema")]);
        assert_eq!(put_queries(&mut out, &difference(&none, &plain, &base)), 1);
    }

    #[test]
    fn bytes_of_a_startup_packet_are_set_as_they_are() {
        let (base, none) = (Reported::default(), Settings::default());
        let wanted = settings(&[("app.x", "a\u{e9}"), ("client_encoding", "LATIN1")]);
        assert_eq!(
            query(&difference(&none, &wanted, &base)),
            "SELECT pg_catalog.set_config(E'app.x',pg_catalog.convert_from(E'\\\\x61c3a9'::pg_catalog.bytea,\
             pg_catalog.getdatabaseencoding()),false),\
             pg_catalog.set_config(E'client_encoding',E'LATIN1',false)"
        );
        assert_eq!(text_of(wanted.get("app.x").unwrap()), "a\u{e9}".as_bytes());
    }

    #[test]
    fn facts_and_an_isolation_level_of_the_start_are_sent_to_be_refused() {
        let mut base = Reported::default();
        base.set("integer_datetimes", b"on");
        base.set("session_authorization", b"u");
        let none = Settings::default();
        let wanted = settings(&[("integer_datetimes", "on")]);
        let sent = [Change { name: "integer_datetimes", value: Some(b"on") }];
        assert_eq!(difference(&none, &wanted, &base), sent);
        assert!(difference(&none, &settings(&[("session_authorization", "u")]), &base).is_empty());
        assert_eq!(
            query(&difference(&none, &settings(&[("transaction_isolation", "serializable")]), &base)),
            "SELECT pg_catalog.set_config(E'transaction_isolation',E'serializable',false),\
             pg_catalog.set_config(E'transaction_isolation',E'read committed',false)"
        );
    }

    #[test]
    fn reports_move_with_the_client_and_go_back_with_the_transaction() {
        let mut base = Reported::default();
        base.set("TimeZone", b"UTC");
        let none = Arc::new(Settings::default());
        let set = after_report(&none, &none, &base, "TimeZone", b"CET").unwrap();
        assert_eq!(set.get("timezone"), Some(&b"CET"[..]));
        let same = after_report(&set, &none, &base, "TimeZone", b"CET").unwrap();
        assert!(Arc::ptr_eq(&set, &same));
        // ROLLBACK reports the old value, which is the server's default: nothing is left to carry.
        assert!(after_report(&set, &none, &base, "TimeZone", b"UTC").unwrap().is_empty());
        // Named at the start, it stays an explicit wish.
        let startup = settings(&[("timezone", "UTC")]);
        let back = after_report(&set, &startup, &base, "TimeZone", b"UTC").unwrap();
        assert_eq!(back.get("timezone"), Some(&b"UTC"[..]));
    }

    #[test]
    fn application_names() {
        assert_eq!(reported_application_name(b"psql"), Some(&b"psql"[..]));
        assert_eq!(reported_application_name(&[b'x'; 100]).map(<[u8]>::len), Some(63));
        assert_eq!(reported_application_name("caf\u{e9}".as_bytes()), None);
    }
}
