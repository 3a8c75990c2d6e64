//! A hash of a statement without its values.
//!
//! Literals and parameters become `?`, blanks and comments are removed, words lose their case, `(?, ?, ?)` is
//! `(?)` and `(?), (?), (?)` is `(?)`. The hash depends on nothing but the tokens; it is stable within a
//! process and not meant to be stored.

use crate::token::{Kind, Token};

/// Computes the hash token by token.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fingerprint {
    hash: u64,
    group: Group,
    on: bool,
    /// A semicolon was met that counts only if something follows.
    semicolon: bool,
}

/// How much of a list of values stands before the next token. Signs that are not hashed yet are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Group {
    /// Nothing.
    #[default]
    None,
    /// `(`
    Open,
    /// `( ?`
    Value,
    /// `( ? ,` and the comma is not hashed.
    ValueComma,
    /// `( ? )`
    Closed,
    /// `( ? ) ,` and the comma is not hashed.
    ClosedComma,
    /// `( ? ) , (` and the comma and the parenthesis are not hashed.
    ClosedOpen,
    /// `( ? ) , ( ?` and all behind the first closing parenthesis is not hashed.
    ClosedValue,
    /// `( ? ) , ( ? ,` likewise.
    ClosedValueComma,
}

/// The token `?`.
const VALUE: u64 = 0x3f;

impl Fingerprint {
    pub(crate) fn new(on: bool) -> Fingerprint {
        Fingerprint { on, ..Fingerprint::default() }
    }

    pub(crate) fn token(&mut self, token: &Token<'_>) {
        if !self.on {
            return;
        }
        if token.kind == Kind::Semicolon {
            self.semicolon = true;
            return;
        }
        if std::mem::take(&mut self.semicolon) && self.hash != 0 {
            self.settle(self.group);
            self.group = Group::None;
            self.mix(u64::from(b';'));
        }
        self.add(token);
    }

    fn add(&mut self, token: &Token<'_>) {
        let is_value = matches!(token.kind, Kind::Str | Kind::Number | Kind::Param);
        let next = match (self.group, token.kind) {
            (Group::Open, _) if is_value => {
                self.mix(VALUE);
                Group::Value
            }
            (Group::Value, Kind::Comma) => Group::ValueComma,
            (Group::ValueComma, _) if is_value => Group::Value,
            (Group::Value, Kind::Close) => {
                self.mix(u64::from(b')'));
                Group::Closed
            }
            (Group::Closed, Kind::Comma) => Group::ClosedComma,
            (Group::ClosedComma, Kind::Open) => Group::ClosedOpen,
            (Group::ClosedOpen | Group::ClosedValueComma, _) if is_value => Group::ClosedValue,
            (Group::ClosedValue, Kind::Comma) => Group::ClosedValueComma,
            (Group::ClosedValue, Kind::Close) => Group::Closed,
            (group, kind) => {
                self.settle(group);
                self.mix_token(token);
                if kind == Kind::Open { Group::Open } else { Group::None }
            }
        };
        self.group = next;
    }

    /// Hashes what was held back because it might have been dropped.
    fn settle(&mut self, group: Group) {
        let held: &[u8] = match group {
            Group::None | Group::Open | Group::Value | Group::Closed => b"",
            Group::ValueComma | Group::ClosedComma => b",",
            Group::ClosedOpen => b",(",
            Group::ClosedValue => b",(?",
            Group::ClosedValueComma => b",(?,",
        };
        for &sign in held {
            self.mix(u64::from(sign));
        }
    }

    fn mix_token(&mut self, token: &Token<'_>) {
        match token.kind {
            Kind::Str | Kind::Number | Kind::Param => self.mix(VALUE),
            Kind::Word | Kind::Quoted | Kind::Escaped | Kind::UserVariable => self.mix_name(token),
            Kind::Open => self.mix(u64::from(b'(')),
            Kind::Close => self.mix(u64::from(b')')),
            Kind::Comma => self.mix(u64::from(b',')),
            Kind::Operator => self.mix(u64::from(token.text.first().copied().unwrap_or(b'~'))),
            Kind::None
            | Kind::SystemPrefix
            | Kind::Assign
            | Kind::Dot
            | Kind::Semicolon
            | Kind::Equals
            | Kind::Star
            | Kind::Colon => self.mix(0x100 + token.kind as u64),
        }
    }

    fn mix_name(&mut self, token: &Token<'_>) {
        let lower = token.kind == Kind::Word;
        self.mix((token.len as u64) << 9 | 0x200 | token.kind as u64);
        for chunk in token.text.chunks(8) {
            let mut value = 0;
            for (i, &byte) in chunk.iter().enumerate() {
                let byte = if lower { byte.to_ascii_lowercase() } else { byte };
                value |= u64::from(byte) << (8 * i);
            }
            self.mix(value);
        }
    }

    #[inline]
    fn mix(&mut self, value: u64) {
        // Multiply and fold, with a constant of well spread bits (2^64 divided by the golden ratio).
        let product =
            u128::from(self.hash ^ value.wrapping_add(0x632b_e59b_d9b4_e019)) * 0x9e37_79b9_7f4a_7c15;
        self.hash = (product as u64) ^ ((product >> 64) as u64).rotate_left(29);
    }

    /// The hash, or 0 if none was asked for.
    pub(crate) fn finish(mut self) -> u64 {
        if !self.on {
            return 0;
        }
        self.settle(self.group);
        self.mix(0);
        self.hash.max(1)
    }
}
