//! Which functions that users have declared IMMUTABLE give another value in each session after all.
//!
//! PostgreSQL writes the value of such a call into the plan, with the first caller's value, and another
//! client would get that. So their callers' statements and plans are their own (`Uses::CODE_IS_PERSONAL`),
//! unless all that the body mentions is the same for everybody.
//!
//! Owns: what a body may mention. Must not know: what follows for a text (`weir_postgres`).
//!
//! Invariant: in doubt it is personal. That costs a private copy of a statement, and nothing else.

use super::super::{NameKey, Names, SystemNames};
use super::{Function, Language, Volatility, is_quiet};
use crate::plain_words;

/// Words of SQL that are another thing in each session, or transaction, and no functions by name.
const OF_SESSIONS: [&[u8]; 11] = [
    b"current_catalog",
    b"current_date",
    b"current_role",
    b"current_schema",
    b"current_time",
    b"current_timestamp",
    b"current_user",
    b"localtime",
    b"localtimestamp",
    b"session_user",
    b"user",
];

/// Stable functions of the database's own, and types of their names, that look at nothing but at settings
/// which plans are kept apart by ([`crate::decides_plans`]).
const OF_READING: [&[u8]; 19] = [
    b"age",
    b"array_to_string",
    b"concat",
    b"concat_ws",
    b"date",
    b"date_part",
    b"date_trunc",
    b"extract",
    b"format",
    b"generate_series",
    b"interval",
    b"isfinite",
    b"overlaps",
    b"string_agg",
    b"time",
    b"timestamp",
    b"timestamptz",
    b"timetz",
    b"timezone",
];

/// A body that was declared IMMUTABLE.
#[derive(Debug)]
struct Declared {
    /// Which of the catalogue's things it is.
    at: usize,
    /// What it mentions; `None`: that cannot be known.
    words: Option<Vec<NameKey>>,
}

/// What is known of all that a body may mention.
#[derive(Debug, Default)]
pub(super) struct Personal {
    declared: Vec<Declared>,
    /// Functions and relations of users that may be another thing in each session.
    unsettled: Names<()>,
    /// Functions that run without being named: an operator's, a cast's.
    unnamed: Vec<NameKey>,
    /// So does a text that may ask about the session.
    anywhere: bool,
}

impl Personal {
    /// A function of users, which is the catalogue's thing number `at`.
    pub(super) fn function(&mut self, function: &Function<'_>, at: usize) {
        let is_read = matches!(function.language, Language::Sql | Language::Expression | Language::PlPgSql);
        if function.volatility == Volatility::Immutable && is_read {
            self.declared.push(Declared { at, words: words_of(function.body) });
            return;
        }
        let computes = match function.language {
            Language::Compiled => is_quiet(function) || function.volatility == Volatility::Immutable,
            Language::Sql
            | Language::Expression
            | Language::PlPgSql
            | Language::Routine
            | Language::Other => false,
        };
        if !computes {
            self.unsettled.insert(NameKey::of(function.name), ());
        }
    }

    /// A view, or a table whose rows are not the same for all.
    pub(super) fn relation(&mut self, name: &[u8]) {
        self.unsettled.insert(NameKey::of(name), ());
    }

    /// A function that runs without being named.
    pub(super) fn unnamed(&mut self, function: &[u8]) {
        self.unnamed.push(NameKey::of(function));
    }

    /// A text that runs without being named.
    pub(super) fn unnamed_text(&mut self, text: &[u8]) {
        match words_of(text) {
            Some(words) => self.unnamed.extend(words),
            None => self.anywhere = true,
        }
    }

    /// The things that are personal.
    pub(super) fn settle(self, system: &SystemNames) -> impl Iterator<Item = usize> {
        let Personal { declared, unsettled, unnamed, anywhere } = self;
        let own: Vec<NameKey> = OF_SESSIONS.iter().map(|word| NameKey::of(word)).collect();
        let reading: Vec<NameKey> = OF_READING.iter().map(|word| NameKey::of(word)).collect();
        let asks = move |key: &NameKey| {
            own.contains(key)
                || unsettled.contains_key(key)
                || system.is_unsettled(*key) && !reading.contains(key)
        };
        let anywhere = anywhere || unnamed.iter().any(&asks);
        let personal = move |declared: Declared| {
            let is_one = anywhere || declared.words.is_none_or(|words| words.iter().any(&asks));
            is_one.then_some(declared.at)
        };
        declared.into_iter().filter_map(personal).collect::<Vec<_>>().into_iter()
    }
}

/// The names that a body may mention; `None` where it may mention any: it runs strings, or has names that are
/// written in another way, or reads views of the database's own.
fn words_of(body: &[u8]) -> Option<Vec<NameKey>> {
    if body.iter().any(|byte| !byte.is_ascii() || matches!(byte, b'"' | b'\\')) {
        return None;
    }
    let mut words = Vec::new();
    for word in plain_words(body) {
        let looks = word.eq_ignore_ascii_case(b"execute")
            || word.eq_ignore_ascii_case(b"information_schema")
            || is_of_the_database(word);
        if looks {
            return None;
        }
        words.push(NameKey::of(word));
    }
    words.sort_unstable();
    words.dedup();
    Some(words)
}

/// A view or a function of the database's own, whose name says so. Few of them compute only.
fn is_of_the_database(word: &[u8]) -> bool {
    let is = word.get(..3).is_some_and(|head| head.eq_ignore_ascii_case(b"pg_"));
    is && !word.eq_ignore_ascii_case(b"pg_catalog")
}
