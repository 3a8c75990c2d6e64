//! Texts that change what code of users does, so that what the catalogue said of it holds no more.
//!
//! Owns: which words of a text say so. Must not know: what follows from it.
//!
//! Invariant: words in strings and comments count as words, so a text may be taken for one of these and is
//! not, never the other way round.

use crate::Dialect;
use crate::lex::Lexer;
use crate::token::{Kind, Sink, Token};

/// The words of a text as they stand: runs of letters, digits and `_`.
pub fn plain_words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').filter(|word| !word.is_empty())
}

/// One of `makers` (CREATE, ALTER...) and one of `kinds` (FUNCTION, VIEW...) are among the words of the text.
/// A kind directly behind DROP does not count: what is only dropped does nothing any more.
pub fn makes_code(text: &[u8], makers: &[&str], kinds: &[&str]) -> bool {
    let is_one_of = |word: &[u8], wanted: &[&str]| {
        wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted.as_bytes()))
    };
    // Words may stand in comments, which are not looked for: with one, none counts as dropped.
    let has_comment = text.windows(2).any(|two| matches!(two, b"/*" | b"--")) || text.contains(&b'#');
    let (mut makes, mut is_code, mut drops) = (false, false, false);
    for word in plain_words(text) {
        makes |= is_one_of(word, makers);
        is_code |= is_one_of(word, kinds) && !drops;
        drops = !has_comment && word.eq_ignore_ascii_case(b"drop");
    }
    makes && is_code
}

/// What a lone `PREPARE name (types) AS ...` of PostgreSQL prepares. None: it is not written so.
pub fn prepared_text(dialect: Dialect, text: &[u8]) -> Option<&[u8]> {
    let mut seen = Prepared::default();
    let mut lexer = Lexer::new(dialect);
    lexer.feed(text, &mut seen);
    lexer.finish(&mut seen);
    text.get(seen.at?..)
}

/// Looks for the AS behind a name and a list of types.
#[derive(Default)]
struct Prepared {
    depth: u32,
    /// Tokens so far.
    count: u32,
    /// Where the word ends.
    at: Option<usize>,
}

impl Sink for Prepared {
    fn token(&mut self, token: Token<'_>) {
        if self.at.is_some() {
            return;
        }
        match token.kind {
            Kind::None => return,
            Kind::Open => self.depth += 1,
            Kind::Close => self.depth = self.depth.saturating_sub(1),
            Kind::Word if self.depth == 0 && self.count >= 2 && token.text.eq_ignore_ascii_case(b"as") => {
                self.at = usize::try_from(token.end).ok();
            }
            _ => {}
        }
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_prepared_stands_behind_as() {
        let prepared = |text: &'static str| {
            prepared_text(Dialect::POSTGRES, text.as_bytes()).map(|text| std::str::from_utf8(text).unwrap())
        };
        assert_eq!(prepared("PREPARE q AS SELECT f()"), Some(" SELECT f()"));
        assert_eq!(
            prepared("prepare \"as\" (text, numeric(1, 2)) /* as */ aS select 1 as x"),
            Some(" select 1 as x")
        );
        assert_eq!(
            prepared("PREPARE as AS SELECT 1"),
            Some(" SELECT 1"),
            "a name, if not one of PostgreSQL's"
        );
        assert_eq!(prepared("PREPARE q (as"), None);
        assert_eq!(prepared("EXECUTE q"), None);
    }

    #[test]
    fn a_text_that_makes_code_is_told_from_one_that_drops_some() {
        let makes = |text: &str| makes_code(text.as_bytes(), &["create", "alter"], &["function", "view"]);
        for text in [
            "DROP FUNCTION IF EXISTS f; CREATE FUNCTION f() RETURNS int RETURN @a := 1; SELECT f()",
            "create or replace view v as select 1; select * from v",
            "ALTER\nFUNCTION f STABLE",
            "DROP /* FUNCTION f; CREATE */ FUNCTION f; CREATE TABLE t (i int)",
            "DROP -- \nFUNCTION f; CREATE TABLE t (i int)",
            "DROP # \nFUNCTION f; CREATE TABLE t (i int)",
            "CREATE TABLE t (i int); SELECT 'view'",
        ] {
            assert!(makes(text), "{text}");
        }
        for text in [
            "",
            "DROP FUNCTION f; CREATE TABLE t (i int)",
            "CREATE TABLE viewed (i int)",
            "SELECT f FROM view",
            "CREATE TABLE t (view_ int, _function int)",
        ] {
            assert!(!makes(text), "{text}");
        }
    }
}
