//! Comments: `--`, `#`, `/* */` nested and not, and MySQL's comments that are code.

use super::bytes::opens_dash_comment;
use super::{Lexer, State};
use crate::Encoding;
use crate::token::{Kind, Sink, Token};

/// Versions up to this one are older than any server Weir stands before (MySQL 5.7, MariaDB 10.2): a
/// comment for them is code everywhere. From 50700 on, MariaDB ignores such comments.
const CODE_EVERYWHERE: u32 = 50_699;
/// The same for MariaDB's own comments.
const CODE_ON_MARIADB: std::ops::RangeInclusive<u32> = 100_000..=100_200;
/// Digits of a version number that are read at most.
const VERSION_DIGITS: u16 = 6;

impl Lexer {
    pub(super) fn dash(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        if bytes[at] != b'-' {
            self.emit_sign(Kind::Operator, b"-", at, sink);
            return at;
        }
        self.state = if self.mysql { State::DashDash } else { State::LineComment };
        at + 1
    }

    pub(super) fn dash_dash(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        if opens_dash_comment(bytes[at]) {
            // The byte itself may be the end of the line.
            self.state = State::LineComment;
            return at;
        }
        if bytes[at] >= 0x80 && self.encoding != Encoding::Utf8 {
            self.doubtful = true;
        }
        // Two signs. The second may be the first of a comment's.
        let second = (self.base + at as u64).saturating_sub(1);
        sink.token(Token { kind: Kind::Operator, text: b"-", len: 1, start: self.start, end: second });
        self.start = second;
        self.state = State::Dash;
        at
    }

    pub(super) fn slash(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        if bytes[at] != b'*' {
            self.emit_sign(Kind::Operator, b"/", at, sink);
            return at;
        }
        self.count = 1;
        self.state = if self.mysql { State::SlashStar } else { State::BlockComment };
        at + 1
    }

    pub(super) fn slash_star(&mut self, bytes: &[u8], at: usize) -> usize {
        match bytes[at] {
            b'!' => self.open_executable(at),
            b'M' if self.mariadb => {
                self.state = State::SlashStarM;
                at + 1
            }
            b'+' => {
                self.begin_hint();
                at + 1
            }
            _ => {
                self.state = State::BlockComment;
                at
            }
        }
    }

    pub(super) fn slash_star_m(&mut self, bytes: &[u8], at: usize) -> usize {
        if bytes[at] == b'!' {
            return self.open_executable(at);
        }
        self.state = State::BlockComment;
        at
    }

    fn open_executable(&mut self, at: usize) -> usize {
        // Nested ones end together in some servers.
        if self.in_executable {
            self.doubtful = true;
        }
        self.in_executable = true;
        self.executable = true;
        self.version = 0;
        self.count = 0;
        self.state = State::Version;
        at + 1
    }

    pub(super) fn version(&mut self, bytes: &[u8], at: usize) -> usize {
        let byte = bytes[at];
        if byte.is_ascii_digit() && self.count < VERSION_DIGITS {
            self.version = self.version * 10 + u32::from(byte - b'0');
            self.count += 1;
            return at + 1;
        }
        let is_code = match self.count {
            0 => true,
            5 => self.version <= CODE_EVERYWHERE,
            6 => self.mariadb && CODE_ON_MARIADB.contains(&self.version),
            _ => false,
        };
        // What may or may not be code leaves everything in doubt: it may hide a quote.
        if !is_code {
            self.doubtful = true;
        }
        self.state = State::Code;
        at
    }

    pub(super) fn executable_star(&mut self, bytes: &[u8], at: usize, sink: &mut impl Sink) -> usize {
        if bytes[at] == b'/' {
            self.in_executable = false;
            self.state = State::Code;
            return at + 1;
        }
        self.emit_sign(Kind::Star, b"*", at, sink);
        at
    }

    pub(super) fn line_comment(&mut self, bytes: &[u8], at: usize) -> usize {
        let rest = &bytes[at..];
        // In MySQL a NUL ends the line, too, and is then read as what it is outside comments.
        let end =
            if self.mysql { memchr::memchr2(b'\n', 0, rest) } else { memchr::memchr2(b'\n', b'\r', rest) };
        let Some(len) = end else { return bytes.len() };
        self.state = State::Code;
        at + len + usize::from(rest[len] != 0)
    }

    pub(super) fn block_comment(&mut self, bytes: &[u8], at: usize) -> usize {
        let rest = &bytes[at..];
        let end = if self.mysql { memchr::memchr(b'*', rest) } else { memchr::memchr2(b'*', b'/', rest) };
        let Some(len) = end else { return bytes.len() };
        self.state = if rest[len] == b'*' { State::BlockStar } else { State::BlockSlash };
        at + len + 1
    }

    pub(super) fn block_star(&mut self, bytes: &[u8], at: usize) -> usize {
        match bytes[at] {
            b'*' => {}
            b'/' => {
                self.count -= 1;
                self.state = if self.count == 0 { State::Code } else { State::BlockComment };
            }
            _ => self.state = State::BlockComment,
        }
        at + 1
    }

    pub(super) fn block_slash(&mut self, bytes: &[u8], at: usize) -> usize {
        match bytes[at] {
            b'/' => {}
            b'*' => match self.count.checked_add(1) {
                Some(count) => {
                    self.count = count;
                    self.state = State::BlockComment;
                }
                None => {
                    self.doubtful = true;
                    self.state = State::Opaque;
                }
            },
            _ => self.state = State::BlockComment,
        }
        at + 1
    }
}
