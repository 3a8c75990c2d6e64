//! Splits a text into tokens, in pieces of any size.
//!
//! Owns: where quotes, comments and words begin and end, as PostgreSQL's `scan.l` and MySQL's `sql_lex.cc`
//! define it. Must not know: what any word means.
//!
//! Invariants: the tokens do not depend on how the text is split into pieces; a token that lies whole in one
//! piece is not copied; of any other at most [`MAX_NAME_BYTES`] are kept. Ambiguous text sets `doubtful`.

mod bytes;
mod comment;
mod hint;
mod quoted;

use crate::token::{Kind, Sink, Token};
use crate::{Dialect, Encoding, MAX_NAME_BYTES};
use bytes::{Byte, Table};

/// Where the lexer is between two bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Outside everything.
    Code,
    /// In a word; it is in the carry.
    Word,
    /// In a number; it is in the carry.
    Number,
    /// In a MySQL `@name`; it is in the carry.
    Variable,
    /// In quotes.
    Quoted,
    /// In quotes, behind a backslash.
    QuotedEscape,
    /// Behind a quote that ends the quotes unless another one follows.
    QuotedEnd,
    /// Behind `-`.
    Dash,
    /// Behind `--` (MySQL).
    DashDash,
    /// Behind `/`.
    Slash,
    /// Behind `/*` (MySQL).
    SlashStar,
    /// Behind `/*M` (MariaDB).
    SlashStarM,
    /// In the version number of an executable comment.
    Version,
    /// In a comment up to the end of the line.
    LineComment,
    /// In a comment.
    BlockComment,
    /// In a comment, behind `*`.
    BlockStar,
    /// In a comment, behind `/` (PostgreSQL).
    BlockSlash,
    /// In `/*+ */` (MySQL).
    Hint,
    /// In a hint, behind `*`.
    HintStar,
    /// Behind `*`, in an executable comment.
    ExecutableStar,
    /// Behind `:`.
    Colon,
    /// Behind `@` (MySQL).
    At,
    /// Behind the word `U` and `&` (PostgreSQL).
    UnicodeAmpersand,
    /// Behind `$` (PostgreSQL).
    Dollar,
    /// In `$1`.
    Param,
    /// In the opening tag of a dollar quote; it is in the carry.
    DollarTag,
    /// In a dollar quote; its tag is in the carry.
    DollarBody,
    /// In a dollar quote, behind `$` and `matched` bytes of the tag.
    DollarMatch,
    /// Not looked at any more: the text is doubtful.
    Opaque,
}

/// The lexer.
#[derive(Debug, Clone)]
pub(crate) struct Lexer {
    /// Bytes fed before this piece.
    base: u64,
    /// Where the current token started.
    start: u64,
    /// Bytes of the current token's text so far, when it is in the carry.
    carried: u64,
    /// The version number of an executable comment.
    version: u32,
    /// Nesting of comments, digits of a version, matched bytes of a tag.
    count: u16,
    carry: [u8; MAX_NAME_BYTES],
    state: State,
    /// The quote that ends the quotes.
    quote: u8,
    /// What the quotes will be.
    quoted: Kind,
    /// The last byte of the piece before, for encodings that are not safe.
    last_byte: u8,
    encoding: Encoding,
    mysql: bool,
    mariadb: bool,
    ansi_quotes: bool,
    /// A backslash escapes in ordinary strings.
    escapes: bool,
    /// A backslash escapes in these quotes.
    escape: bool,
    /// The last token was a PostgreSQL `E'...'`, which another quote continues.
    continues: bool,
    /// In an executable comment.
    in_executable: bool,
    /// An odd number of quotes was met in this hint.
    hint_quote: bool,
    /// Executable comments were met.
    pub(crate) executable: bool,
    /// Where it is in a hint.
    hint: hint::Hint,
    /// A hint for the optimiser was met.
    pub(crate) hinted: bool,
    /// One sets a variable that MySQL does not give back its value behind the statement.
    pub(crate) lent_stays: bool,
    /// The text can be read in two ways.
    pub(crate) doubtful: bool,
}

impl Lexer {
    pub(crate) fn new(dialect: Dialect) -> Lexer {
        let (encoding, mysql, mariadb, ansi_quotes, escapes) = match dialect {
            Dialect::Postgres { standard_conforming_strings, encoding } => {
                (encoding, false, false, true, !standard_conforming_strings)
            }
            Dialect::MySql { ansi_quotes, no_backslash_escapes, mariadb, encoding } => {
                (encoding, true, mariadb, ansi_quotes, !no_backslash_escapes)
            }
        };
        Lexer {
            base: 0,
            start: 0,
            carried: 0,
            version: 0,
            count: 0,
            carry: [0; MAX_NAME_BYTES],
            state: State::Code,
            quote: 0,
            quoted: Kind::Str,
            last_byte: 0,
            encoding,
            mysql,
            mariadb,
            ansi_quotes,
            escapes,
            escape: false,
            continues: false,
            in_executable: false,
            hint_quote: false,
            executable: false,
            hint: hint::Hint::Elsewhere,
            hinted: false,
            lent_stays: false,
            doubtful: false,
        }
    }

    /// Reads the next piece.
    pub(crate) fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        match self.encoding {
            Encoding::Utf8 | Encoding::HighBytes => {}
            Encoding::AsciiUnsafe => self.look_for_unsafe_tails(bytes),
            Encoding::Unknown => {
                self.doubtful |= bytes.iter().any(|&byte| byte >= 0x80 || matches!(byte, b'\\' | b'"'));
            }
        }
        let mut at = 0;
        while at < bytes.len() {
            at = match self.state {
                State::Code => self.code(bytes, at, sink),
                State::Word => self.word(bytes, at, sink),
                State::Number => self.number(bytes, at, sink),
                State::Variable => self.variable(bytes, at, sink),
                State::Quoted => self.in_quotes(bytes, at, sink),
                State::QuotedEscape => self.quoted_escape(bytes, at),
                State::QuotedEnd => self.quoted_end(bytes, at, sink),
                State::Dash => self.dash(bytes, at, sink),
                State::DashDash => self.dash_dash(bytes, at, sink),
                State::Slash => self.slash(bytes, at, sink),
                State::SlashStar => self.slash_star(bytes, at),
                State::SlashStarM => self.slash_star_m(bytes, at),
                State::Version => self.version(bytes, at),
                State::LineComment => self.line_comment(bytes, at),
                State::BlockComment => self.block_comment(bytes, at),
                State::BlockStar => self.block_star(bytes, at),
                State::BlockSlash => self.block_slash(bytes, at),
                State::Hint => self.hint(bytes, at),
                State::HintStar => self.hint_star(bytes, at),
                State::ExecutableStar => self.executable_star(bytes, at, sink),
                State::Colon => self.colon(bytes, at, sink),
                State::At => self.at_sign(bytes, at, sink),
                State::UnicodeAmpersand => self.unicode_ampersand(bytes, at, sink),
                State::Dollar => self.dollar(bytes, at, sink),
                State::Param => self.param(bytes, at, sink),
                State::DollarTag => self.dollar_tag(bytes, at),
                State::DollarBody => self.dollar_body(bytes, at),
                State::DollarMatch => self.dollar_match(bytes, at, sink),
                State::Opaque => bytes.len(),
            };
        }
        self.base += bytes.len() as u64;
    }

    /// The text is at its end: hands over what was waiting for another byte.
    pub(crate) fn finish(&mut self, sink: &mut impl Sink) {
        match self.state {
            State::Code | State::LineComment | State::DashDash => {}
            State::Word => self.emit_carried(Kind::Word, 0, sink),
            State::Number => self.emit_carried(Kind::Number, 0, sink),
            State::Variable => self.emit_carried(Kind::UserVariable, 0, sink),
            State::QuotedEnd => self.emit_carried(self.quoted, 0, sink),
            State::Dash => self.emit_sign(Kind::Operator, b"-", 0, sink),
            State::Slash => self.emit_sign(Kind::Operator, b"/", 0, sink),
            State::Dollar => self.emit_sign(Kind::Operator, b"$", 0, sink),
            State::Colon => self.emit_sign(Kind::Colon, b":", 0, sink),
            State::At => self.emit_sign(Kind::UserVariable, b"", 0, sink),
            State::Param => self.emit_sign(Kind::Param, b"?", 0, sink),
            State::ExecutableStar => self.emit_sign(Kind::Star, b"*", 0, sink),
            State::UnicodeAmpersand => self.emit_u_and_ampersand(0, sink),
            State::Quoted
            | State::QuotedEscape
            | State::SlashStar
            | State::SlashStarM
            | State::Version
            | State::BlockComment
            | State::BlockStar
            | State::BlockSlash
            | State::Hint
            | State::HintStar
            | State::DollarTag
            | State::DollarBody
            | State::DollarMatch
            | State::Opaque => self.doubtful = true,
        }
        if self.in_executable {
            self.doubtful = true;
        }
    }

    fn table(&self) -> &'static Table {
        if self.mysql { &bytes::MYSQL } else { &bytes::POSTGRES }
    }

    /// Outside quotes and comments: the loop most bytes of most statements go through.
    fn code(&mut self, bytes: &[u8], mut at: usize, sink: &mut impl Sink) -> usize {
        let table = self.table();
        while let Some(&byte) = bytes.get(at) {
            let kind = match table.class[byte as usize] {
                Byte::Space => {
                    at += 1;
                    continue;
                }
                Byte::Letter => {
                    let rest = &bytes[at..];
                    let Some(len) = rest.iter().position(|&b| !table.in_word[b as usize]) else {
                        return self.begin_carry(State::Word, bytes, at);
                    };
                    let next = rest[len];
                    // A word of one letter may be the prefix of a string.
                    if len == 1 && !self.mysql && (next == b'\'' || next == b'&') {
                        self.start = self.base + at as u64;
                        if self.prefix(byte, next, 0) {
                            return at + 2;
                        }
                    }
                    self.check_high_bytes(&rest[..len]);
                    self.check_word(&rest[..len]);
                    self.emit(Kind::Word, &rest[..len], len, at, at + len, sink);
                    at += len;
                    continue;
                }
                Byte::Digit => {
                    let rest = &bytes[at..];
                    let Some(len) = rest.iter().position(|&b| !self.in_number(b)) else {
                        return self.begin_carry(State::Number, bytes, at);
                    };
                    self.check_high_bytes(&rest[..len]);
                    self.check_number(rest[..len].get(..MAX_NAME_BYTES).unwrap_or(&rest[..len]));
                    self.emit(Kind::Number, &rest[..len], len, at, at + len, sink);
                    at += len;
                    continue;
                }
                Byte::Quote => return self.open(byte, Kind::Str, self.escapes || self.continues, at),
                Byte::DoubleQuote if self.ansi_quotes => return self.open(byte, Kind::Quoted, false, at),
                Byte::DoubleQuote => return self.open(byte, Kind::Str, self.escapes, at),
                Byte::Backtick => return self.open(byte, Kind::Quoted, false, at),
                Byte::Dash => return self.enter(State::Dash, at),
                Byte::Slash => return self.enter(State::Slash, at),
                Byte::Star if self.in_executable => return self.enter(State::ExecutableStar, at),
                Byte::Dollar => return self.enter(State::Dollar, at),
                Byte::Hash => return self.enter(State::LineComment, at),
                Byte::At => return self.enter(State::At, at),
                Byte::Colon => return self.enter(State::Colon, at),
                Byte::Control => {
                    self.doubtful = true;
                    Kind::Operator
                }
                Byte::Star => Kind::Star,
                Byte::Question => Kind::Param,
                Byte::Open => Kind::Open,
                Byte::Close => Kind::Close,
                Byte::Comma => Kind::Comma,
                Byte::Dot => Kind::Dot,
                Byte::Semicolon => Kind::Semicolon,
                Byte::Equals => Kind::Equals,
                Byte::Sign => Kind::Operator,
            };
            self.emit(kind, &bytes[at..at + 1], 1, at, at + 1, sink);
            at += 1;
        }
        at
    }

    fn enter(&mut self, state: State, at: usize) -> usize {
        self.start = self.base + at as u64;
        self.state = state;
        at + 1
    }

    /// Hands over a token that lies in this piece.
    #[inline]
    fn emit(&mut self, kind: Kind, text: &[u8], len: usize, from: usize, to: usize, sink: &mut impl Sink) {
        self.continues = false;
        let text = text.get(..MAX_NAME_BYTES).unwrap_or(text);
        sink.token(Token { kind, text, len, start: self.base + from as u64, end: self.base + to as u64 });
    }

    /// Hands over a token of which at least a part is in the carry. It ends before `at`.
    fn emit_carried(&mut self, kind: Kind, at: usize, sink: &mut impl Sink) {
        let carry = self.carry;
        let len = usize::try_from(self.carried).unwrap_or(usize::MAX);
        let text = carry.get(..len).unwrap_or(&carry);
        match kind {
            Kind::Word => self.check_word(text),
            Kind::Number => self.check_number(text),
            _ => {}
        }
        self.continues = false;
        self.state = State::Code;
        sink.token(Token { kind, text, len, start: self.start, end: self.base + at as u64 });
    }

    /// Hands over a sign, or a token whose text does not matter. It ends before `at`.
    fn emit_sign(&mut self, kind: Kind, text: &'static [u8], at: usize, sink: &mut impl Sink) {
        self.continues = false;
        self.state = State::Code;
        sink.token(Token { kind, text, len: text.len(), start: self.start, end: self.base + at as u64 });
    }

    /// Empties the carry and puts the rest of this piece into it.
    fn begin_carry(&mut self, state: State, bytes: &[u8], at: usize) -> usize {
        self.enter(state, at);
        self.carried = 0;
        self.carry_plain(&bytes[at..]);
        bytes.len()
    }

    /// Takes more of a token that is not in quotes into the carry.
    fn carry_plain(&mut self, more: &[u8]) {
        self.check_high_bytes(more);
        self.carry_on(more);
    }

    fn carry_on(&mut self, more: &[u8]) {
        let kept = usize::try_from(self.carried).unwrap_or(usize::MAX);
        if let Some(room) = self.carry.get_mut(kept..) {
            let len = room.len().min(more.len());
            room[..len].copy_from_slice(&more[..len]);
        }
        self.carried += more.len() as u64;
    }

    fn word(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        let table = self.table();
        let rest = &bytes[at..];
        let Some(len) = rest.iter().position(|&b| !table.in_word[b as usize]) else {
            self.carry_plain(rest);
            return bytes.len();
        };
        self.carry_plain(&rest[..len]);
        let next = rest[len];
        let may_prefix = self.carried == 1 && !self.mysql && (next == b'\'' || next == b'&');
        if may_prefix && self.prefix(self.carry[0], next, at) {
            return at + len + 1;
        }
        self.emit_carried(Kind::Word, at + len, sink);
        at + len
    }

    /// PostgreSQL: a word of one letter with `next` behind it. Returns whether `next` was taken as a part of
    /// a prefix. `start` is set.
    fn prefix(&mut self, letter: u8, next: u8, at: usize) -> bool {
        let escape = match (letter.to_ascii_lowercase(), next) {
            (b'e', b'\'') => true,
            (b'b' | b'x', b'\'') => false,
            (b'n', b'\'') => self.escapes,
            (b'u', b'&') => {
                self.carry[0] = letter;
                self.carried = 1;
                self.state = State::UnicodeAmpersand;
                return true;
            }
            _ => return false,
        };
        let start = self.start;
        self.open(b'\'', Kind::Str, escape, at);
        self.start = start;
        true
    }

    fn unicode_ampersand(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        let start = self.start;
        let to = match bytes[at] {
            b'\'' => self.open(b'\'', Kind::Str, false, at),
            b'"' => self.open(b'"', Kind::Escaped, false, at),
            _ => {
                self.emit_u_and_ampersand(at, sink);
                return at;
            }
        };
        self.start = start;
        to
    }

    fn emit_u_and_ampersand(&mut self, at: usize, sink: &mut impl Sink) {
        let letter = [self.carry[0]];
        let (start, end) = (self.start, self.base + at as u64);
        self.continues = false;
        self.state = State::Code;
        sink.token(Token { kind: Kind::Word, text: &letter, len: 1, start, end: end.saturating_sub(1) });
        sink.token(Token { kind: Kind::Operator, text: b"&", len: 1, start: end.saturating_sub(1), end });
    }

    /// A number goes on with letters, digits and dots; MySQL's names that begin with a digit look the same.
    #[inline]
    fn in_number(&self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | 0x80..) || (byte == b'$' && self.mysql)
    }

    fn number(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        let rest = &bytes[at..];
        let Some(len) = rest.iter().position(|&b| !self.in_number(b)) else {
            self.carry_plain(rest);
            return bytes.len();
        };
        self.carry_plain(&rest[..len]);
        self.emit_carried(Kind::Number, at + len, sink);
        at + len
    }

    /// `1INTO` is a number and a word to some servers, an error or a name to others.
    fn check_number(&mut self, text: &[u8]) {
        let dotted = text.contains(&b'.');
        let plain = |b: &u8| matches!(b, b'0'..=b'9' | b'.' | b'_' | b'a'..=b'f' | b'A'..=b'F' | b'x' | b'X' | b'o' | b'O');
        if (!self.mysql || dotted) && !(text.len() < MAX_NAME_BYTES && text.iter().all(plain)) {
            self.doubtful = true;
        }
        // `2fa_codes` is a name; but `1e1INTO` and, behind a dot or an exponent's sign, `5INTO` end in a word
        // of the grammar.
        if self.mysql && !dotted && ends_in_keyword(text) {
            self.doubtful = true;
        }
    }

    /// A `$` before a word may open a dollar quote in newer versions of MySQL.
    #[inline]
    fn check_word(&mut self, text: &[u8]) {
        if self.mysql && text.first() == Some(&b'$') {
            self.doubtful = true;
        }
    }

    /// In MySQL some bytes above 127 are blanks, depending on the character set.
    #[inline]
    fn check_high_bytes(&mut self, text: &[u8]) {
        if self.encoding != Encoding::Utf8 && self.mysql && !text.is_ascii() {
            self.doubtful = true;
        }
    }

    fn look_for_unsafe_tails(&mut self, bytes: &[u8]) {
        let mut last = self.last_byte;
        for &byte in bytes {
            if last >= 0x80 && bytes::is_unsafe_tail(byte) {
                self.doubtful = true;
            }
            last = byte;
        }
        self.last_byte = last;
    }

    fn colon(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        match bytes[at] {
            b'=' => {
                self.emit_sign(Kind::Assign, b":=", at + 1, sink);
                at + 1
            }
            // The second colon of a cast means nothing by itself.
            b':' => {
                self.emit_sign(Kind::Operator, b"::", at + 1, sink);
                at + 1
            }
            _ => {
                self.emit_sign(Kind::Colon, b":", at, sink);
                at
            }
        }
    }

    fn at_sign(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        let byte = bytes[at];
        let start = self.start;
        match byte {
            b'@' => {
                self.emit_sign(Kind::SystemPrefix, b"@@", at + 1, sink);
                at + 1
            }
            b'\'' | b'"' | b'`' => {
                let escape = self.escapes && (byte == b'\'' || (byte == b'"' && !self.ansi_quotes));
                let to = self.open(byte, Kind::UserVariable, escape, at);
                self.start = start;
                to
            }
            _ => {
                self.carried = 0;
                self.state = State::Variable;
                at
            }
        }
    }

    fn variable(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        let rest = &bytes[at..];
        let Some(len) = rest.iter().position(|&b| !bytes::in_variable(b)) else {
            self.carry_plain(rest);
            return bytes.len();
        };
        self.carry_plain(&rest[..len]);
        self.emit_carried(Kind::UserVariable, at + len, sink);
        at + len
    }
}
/// What follows the digits, and an exponent if there is one, is a word that means something.
fn ends_in_keyword(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let rest = text.get(digits(text)..).unwrap_or_default();
    let behind_exponent = match rest {
        [b'e' | b'E', exponent @ ..] if digits(exponent) > 0 => exponent.get(digits(exponent)..),
        _ => None,
    };
    let rest = behind_exponent.unwrap_or(rest);
    !rest.is_empty() && crate::words::lookup(rest).word != crate::words::Word::Name
}
