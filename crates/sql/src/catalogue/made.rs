//! What CREATE and ALTER inside of code are about: whether what they make may be code that the rest runs.
//!
//! Must not know: what else their statement does.
//!
//! Invariant: only kinds that are listed here, in their plain forms, make none. What a table's columns,
//! defaults and constraints mention is looked up like any word of the code.

use crate::token::{Kind, Token};
use crate::words::Word;

/// A statement that begins with CREATE or ALTER, as far as it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Made {
    /// None of these.
    #[default]
    Nothing,
    /// The kind of thing comes next.
    Awaited { creates: bool },
    /// A table or what belongs to one. `created`: by CREATE.
    Table { created: bool },
    /// CREATE TYPE, before its AS.
    Type,
    /// What can run nothing.
    Plain,
    /// Perhaps code.
    Code,
}

/// Whatever else these words may mean, with one of them it may be code.
const OF_CODE: [&[u8]; 15] = [
    b"function",
    b"procedure",
    b"routine",
    b"aggregate",
    b"view",
    b"trigger",
    b"rule",
    b"operator",
    b"cast",
    b"policy",
    b"domain",
    b"event",
    b"extension",
    b"language",
    b"range",
];

impl Made {
    /// Of a statement that begins with this word.
    pub(super) fn by(word: Word) -> Made {
        match word {
            Word::Create => Made::Awaited { creates: true },
            Word::Alter => Made::Awaited { creates: false },
            Word::Import => Made::Code,
            _ => Made::Nothing,
        }
    }

    /// A token behind the first.
    pub(super) fn token(self, token: &Token<'_>, word: Word) -> Made {
        let is = |what: &[u8]| token.kind == Kind::Word && token.text.eq_ignore_ascii_case(what);
        match self {
            Made::Nothing | Made::Code => self,
            _ if OF_CODE.iter().any(|what| is(what)) => Made::Code,
            Made::Awaited { creates } => match word {
                Word::Unlogged | Word::Temp | Word::Temporary | Word::Local | Word::Global => self,
                _ if is(b"unique") => self,
                Word::Table | Word::Index => Made::Table { created: creates && word == Word::Table },
                _ if is(b"type") && creates => Made::Type,
                Word::Schema => Made::Plain,
                _ if is(b"type") || is(b"sequence") => Made::Plain,
                _ => Made::Code,
            },
            // Filled by a query, or computed from other columns.
            Made::Table { created: true } if word == Word::As => Made::Code,
            Made::Type if word == Word::As => Made::Plain,
            Made::Table { .. } | Made::Type | Made::Plain => self,
        }
    }

    /// At its end: it may have made code.
    pub(super) fn is_code(self) -> bool {
        matches!(self, Made::Code | Made::Type | Made::Awaited { .. })
    }
}
