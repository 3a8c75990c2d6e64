//! Strings, quoted identifiers, dollar quotes.

use super::bytes::begins_tag;
use super::{Lexer, State};
use crate::MAX_NAME_BYTES;
use crate::token::{Kind, NOT_KEPT, Sink, Token};

impl Lexer {
    /// `quote` at `at` opens quotes that will be a token of `kind`.
    pub(super) fn open(&mut self, quote: u8, kind: Kind, escape: bool, at: usize) -> usize {
        self.quote = quote;
        self.quoted = kind;
        self.escape = escape;
        self.carried = 0;
        self.enter(State::Quoted, at)
    }

    pub(super) fn in_quotes(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        let from = at;
        let mut at = at;
        loop {
            let rest = bytes.get(at..).unwrap_or(&[]);
            let found = if self.escape {
                memchr::memchr2(self.quote, b'\\', rest)
            } else {
                memchr::memchr(self.quote, rest)
            };
            let Some(skipped) = found else {
                self.carry_on(&bytes[from..]);
                return bytes.len();
            };
            at += skipped;
            let is_quote = rest[skipped] == self.quote;
            let Some(&next) = bytes.get(at + 1) else {
                // The quote itself is not carried yet: it may be the last one.
                self.state = if is_quote { State::QuotedEnd } else { State::QuotedEscape };
                self.carry_on(&bytes[from..at + usize::from(!is_quote)]);
                return bytes.len();
            };
            if is_quote && next != self.quote {
                self.close(&bytes[from..at], at + 1, sink);
                return at + 1;
            }
            at += 2;
        }
    }

    /// The quotes end before `end`; `text` is what this piece has of what they hold.
    fn close(&mut self, text: &[u8], end: usize, sink: &mut impl Sink) {
        let continues = !self.mysql && self.escape && self.quoted == Kind::Str;
        if self.carried == 0 {
            self.state = State::Code;
            let kept = text.get(..MAX_NAME_BYTES).unwrap_or(text);
            let token = Token {
                kind: self.quoted,
                text: kept,
                len: text.len(),
                start: self.start,
                end: self.base + end as u64,
            };
            sink.token(token);
        } else {
            self.carry_on(text);
            self.emit_carried(self.quoted, end, sink);
        }
        self.continues = continues;
    }

    pub(super) fn quoted_escape(&mut self, bytes: &[u8], at: usize) -> usize {
        self.carry_on(&bytes[at..at + 1]);
        self.state = State::Quoted;
        at + 1
    }

    pub(super) fn quoted_end(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        let quote = self.quote;
        if bytes[at] == quote {
            self.carry_on(&[quote, quote]);
            self.state = State::Quoted;
            return at + 1;
        }
        self.close(&[], at, sink);
        at
    }

    pub(super) fn dollar(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        let byte = bytes[at];
        self.carried = 0;
        match byte {
            b'0'..=b'9' => self.state = State::Param,
            b'$' => {
                self.state = State::DollarBody;
                return at + 1;
            }
            _ if begins_tag(byte) => self.state = State::DollarTag,
            _ => {
                self.emit_sign(Kind::Operator, b"$", at, sink);
            }
        }
        at
    }

    pub(super) fn param(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        let byte = bytes[at];
        if byte.is_ascii_digit() {
            return at + 1;
        }
        // `$1from` is two words to old servers and an error to new ones.
        if begins_tag(byte) {
            self.doubtful = true;
        }
        self.emit_sign(Kind::Param, b"?", at, sink);
        at
    }

    pub(super) fn dollar_tag(&mut self, bytes: &[u8], at: usize) -> usize {
        let rest = &bytes[at..];
        let end = rest.iter().position(|&b| !(begins_tag(b) || b.is_ascii_digit()));
        self.carry_on(&rest[..end.unwrap_or(rest.len())]);
        let Some(len) = end else { return bytes.len() };
        if rest[len] == b'$' && self.carried <= MAX_NAME_BYTES as u64 {
            self.state = State::DollarBody;
            return at + len + 1;
        }
        // A tag longer than is kept, or no tag at all, which no server accepts.
        self.doubtful = true;
        self.state = State::Opaque;
        at + len
    }

    pub(super) fn dollar_body(&mut self, bytes: &[u8], at: usize) -> usize {
        let Some(len) = memchr::memchr(b'$', &bytes[at..]) else { return bytes.len() };
        self.count = 0;
        self.state = State::DollarMatch;
        at + len + 1
    }

    pub(super) fn dollar_match(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        let byte = bytes[at];
        let tag = self.carry.get(..usize::try_from(self.carried).unwrap_or(0)).unwrap_or(&[]);
        match tag.get(usize::from(self.count)) {
            Some(&expected) if expected == byte => self.count += 1,
            None if byte == b'$' => self.close_dollar(at + 1, sink),
            // This `$` may open the tag instead.
            _ if byte == b'$' => self.count = 0,
            _ => self.state = State::DollarBody,
        }
        at + 1
    }

    /// The tag that closes a dollar quote ends before `end`. What it holds is mostly code, and is not kept:
    /// it must not be taken for an empty string.
    fn close_dollar(&mut self, end: usize, sink: &mut impl Sink) {
        self.continues = false;
        self.state = State::Code;
        let (start, end) = (self.start, self.base + end as u64);
        sink.token(Token { kind: Kind::Str, text: b"", len: NOT_KEPT, start, end });
    }
}
