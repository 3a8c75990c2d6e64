//! A statement as shown to an operator: without the values in it, on one line, and no longer than a line.
//!
//! Must not know: what a statement does.
//!
//! Invariant: no byte of a literal or of a comment is shown.

use crate::Dialect;
use crate::lex::Lexer;
use crate::token::{Kind, Sink, Token};

/// The beginning of a text, with `?` in the place of each literal and without comments: at most `bytes`
/// bytes, and `...` where more follows.
pub fn without_values(dialect: Dialect, text: &[u8], bytes: usize) -> String {
    // What is cut off here would be cut off there; only comments may take more room than they are shown with.
    let read = text.get(..bytes.saturating_mul(READ_FOR_SHOWN)).unwrap_or(text);
    let mut shown = Shown { read, out: String::new(), end: 0, bytes, full: false };
    let mut lexer = Lexer::new(dialect);
    lexer.feed(read, &mut shown);
    lexer.finish(&mut shown);
    shown.full |= read.len() < text.len();
    let Shown { mut out, full, .. } = shown;
    if full {
        out.push_str("...");
    }
    out
}

/// So many bytes are looked at for each that is shown.
const READ_FOR_SHOWN: usize = 4;

struct Shown<'a> {
    read: &'a [u8],
    out: String,
    /// Where the last token has ended.
    end: u64,
    bytes: usize,
    full: bool,
}

impl Sink for Shown<'_> {
    fn token(&mut self, token: Token<'_>) {
        if self.full {
            return;
        }
        let (start, end) = (token.start as usize, token.end as usize);
        let said = self.read.get(start..end).unwrap_or_default();
        let word = match token.kind {
            Kind::None => return,
            Kind::Str | Kind::Number => "?".into(),
            Kind::Word
            | Kind::Quoted
            | Kind::Escaped
            | Kind::Param
            | Kind::UserVariable
            | Kind::SystemPrefix
            | Kind::Assign
            | Kind::Open
            | Kind::Close
            | Kind::Comma
            | Kind::Dot
            | Kind::Semicolon
            | Kind::Equals
            | Kind::Star
            | Kind::Colon
            | Kind::Operator => String::from_utf8_lossy(said),
        };
        let blank = !self.out.is_empty() && token.start > self.end;
        self.full = self.out.len() + usize::from(blank) + word.len() > self.bytes;
        if self.full {
            return;
        }
        if blank {
            self.out.push(' ');
        }
        // A quoted name may hold anything.
        self.out.extend(word.chars().map(|c| if c.is_control() { ' ' } else { c }));
        self.end = token.end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        without_values(Dialect::POSTGRES, text.as_bytes(), 60)
    }

    #[test]
    fn values_and_comments_are_not_shown() {
        assert_eq!(
            shown("select  set_tenant('secret', 42)\n  /* 'key' */ -- x\n from \"T\" where a=$1"),
            "select set_tenant(?, ?) from \"T\" where a=$1"
        );
        assert_eq!(shown("SELECT $tag$ secret $tag$, E'a\\'b', 0x1F"), "SELECT ?, ?, ?");
    }

    #[test]
    fn what_is_too_long_ends_with_dots() {
        let long = shown(&format!("select {}1", "aaaa, ".repeat(40)));
        assert!(long.ends_with("...") && long.len() <= 63, "{long}");
        assert_eq!(shown(&format!("/* {} */ select 1", "x".repeat(1000))), "...");
    }

    #[test]
    fn a_literal_without_an_end_is_not_shown() {
        assert!(!shown("select 'secret and no end").contains("secret"));
        assert!(!shown("select $$secret and no end").contains("secret"));
        assert!(!shown("select 1 /* secret").contains("secret"));
    }
}
