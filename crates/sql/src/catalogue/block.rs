//! `DO`: PL/pgSQL code in a client's text.
//!
//! It is read like the body of a function, and the names in it are looked up in the catalogue. Must not know:
//! the other effects of its statement.
//!
//! Invariant: a block in another than the plain form, in another language, or one that may make code that it
//! then runs, counts as unknown.

use super::build::Language;
use super::code::Code;
use super::{Catalogue, Doings};
use crate::Dialect;
use crate::class::Touched;
use weir_wire::Pin;

/// What a block does.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) doings: Doings,
    /// With settings that it names itself.
    pub(crate) touched: Touched,
}

impl Block {
    /// Of a text that is nothing but one block. None: it is something else, or another form.
    fn of_text(dialect: Dialect, text: &[u8], catalogue: &Catalogue) -> Option<Block> {
        if dialect.is_mysql() {
            return None;
        }
        let mut facts = Code::read(dialect, Language::PlPgSql, body(text)?);
        facts.resolve_calls(&catalogue.names);
        let own = std::mem::take(&mut facts.own);
        let mut doings = facts.reached(&catalogue.names, catalogue.anything);
        // What it calls may be what it, or something else that it calls, has just made.
        let makes = facts.makes_code || doings.ddl || (own.ddl && facts.commits);
        // What is temporary, or may be by the search path, must not hide what is not.
        let temporary = own.pins.contains(Pin::TemporaryTable)
            || facts.touched.gives.may_contain("search_path")
            || facts.touched.resets.may_contain("search_path");
        let makes = makes || (own.ddl && temporary);
        doings.add(own);
        let keeps = facts.commits && !doings.pins.is_empty();
        (!makes && !keeps).then_some(Block { doings, touched: facts.touched })
    }

    /// Of all statements of a text that are blocks, which stand at these places. None: one of them is nothing
    /// that is known.
    pub(crate) fn of_places(
        dialect: Dialect,
        text: &[u8],
        places: &[(u32, u32)],
        catalogue: &Catalogue,
    ) -> Option<Block> {
        let mut all = Block { doings: Doings::default(), touched: Touched::default() };
        for &(start, end) in places {
            let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
            let block = Block::of_text(dialect, text.get(start..end)?, catalogue)?;
            all.doings.add(block.doings);
            all.touched.add_all(&block.touched);
        }
        Some(all)
    }
}

/// What stands between the dollars of `DO [LANGUAGE plpgsql] $tag$...$tag$ [LANGUAGE plpgsql] [;]`.
fn body(text: &[u8]) -> Option<&[u8]> {
    let rest = behind_language(behind_word(text.trim_ascii_start(), b"do")?)?;
    let tag_end = rest.strip_prefix(b"$")?.iter().position(|&byte| byte == b'$')? + 2;
    let (tag, rest) = rest.split_at_checked(tag_end)?;
    let in_tag = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let name = tag.get(1..tag_end - 1)?;
    if !name.iter().all(in_tag) || name.first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let end = rest.windows(tag.len()).position(|window| window == tag)?;
    let (body, rest) = rest.split_at_checked(end)?;
    let rest = behind_language(rest.get(tag.len()..)?)?;
    let rest = rest.strip_prefix(b";").unwrap_or(rest);
    rest.trim_ascii().is_empty().then_some(body)
}

/// The rest of the text behind a word and spaces.
fn behind_word<'a>(text: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let (found, rest) = text.split_at_checked(word.len())?;
    let ends =
        rest.first().is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_' && byte.is_ascii());
    (found.eq_ignore_ascii_case(word) && ends).then_some(rest.trim_ascii_start())
}

/// The rest behind `LANGUAGE plpgsql`, if that stands there. None: it is another language.
fn behind_language(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii_start();
    match behind_word(text, b"language") {
        Some(rest) => behind_word(rest, b"plpgsql"),
        None => Some(text),
    }
}

#[cfg(test)]
mod tests {
    use super::body;

    #[test]
    fn the_body_of_a_plain_block_is_found() {
        for (text, found) in [
            ("DO $$ BEGIN END $$", Some(" BEGIN END ")),
            (" do\n$x$ begin perform $$a$$; end $x$ ; ", Some(" begin perform $$a$$; end ")),
            ("DO LANGUAGE plpgsql $$ x $$;", Some(" x ")),
            ("DO $$ x $$ LANGUAGE PLPGSQL", Some(" x ")),
            ("DO$$ x $$language plpgsql;", Some(" x ")),
            ("DO LANGUAGE plperl $$ x $$", None),
            ("DO $$ x $$ LANGUAGE \"plpgsql\"", None),
            ("DO $$ x $$ LANGUAGE plpgsql_check", None),
            ("DO $1$ x $1$", None),
            ("DO $$ x $$; SELECT 1", None),
            ("DO $$ x $$ $$ y $$", None),
            ("DO ' x '", None),
            ("/* y */ DO $$ x $$", None),
            ("DO $$ x", None),
            ("SELECT $$ x $$", None),
            ("", None),
        ] {
            assert_eq!(body(text.as_bytes()), found.map(str::as_bytes), "{text}");
        }
    }
}
