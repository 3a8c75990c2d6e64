//! The lexer that classifies statements.
//!
//! Owns: splitting a text into words as PostgreSQL, MySQL and MariaDB do ([`Dialect`]), and deciding what a
//! text means for sharing its server ([`Class`]). It never parses a grammar. In doubt the result is
//! `Unrecognised`, never wrongly "harmless".
//!
//! Must not know: sockets, clocks, sessions, settings, protocols.
//!
//! Invariants: a text fed in any pieces gives the same class as the whole; memory is constant; no bytes make
//! it panic.
#![forbid(unsafe_code)]

pub mod catalogue;
mod class;
mod code;
mod dialect;
mod fingerprint;
mod lex;
mod memo;
mod reading;
mod recognise;
mod scan;
mod shown;
mod token;
mod words;

pub use class::{
    Assignment, Call, CallKind, Class, Clears, Kill, Locks, MAX_NAME_BYTES, Scope, SetTarget, SettingNames,
    Span, Touched, Transaction, Uses, Verb,
};
pub use code::{makes_code, plain_words, prepared_text};
pub use dialect::{Dialect, Encoding};
pub use memo::Memo;
pub use reading::{READ_BY, decides_plans, decides_reading, decides_text};
pub use scan::{Scanner, classify, classify_in};
pub use shown::without_values;
