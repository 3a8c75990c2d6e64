//! Texts that change what code of users does, so that what the catalogue said of it holds no more.
//!
//! Owns: which words of a text say so. Must not know: what follows from it.
//!
//! Invariant: words in strings and comments count as words, so a text may be taken for one of these and is
//! not, never the other way round.

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

#[cfg(test)]
mod tests {
    use super::*;

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
