//! Variables of PL/pgSQL that hold the strings which EXECUTE runs.
//!
//! Such a variable is known if the code declares it once, as a text, in front of its first BEGIN, and does
//! nothing with it but give it a value in a statement of its own, run it and show it in a RAISE. Whatever it
//! runs is then one of these values.
//!
//! Owns: where the values of a variable stand. Must not know: what they say (`dynamic`).
//!
//! Invariant: a use of the name that is not surely one of these makes it unknown.

use super::code::Facts;
use super::dynamic::Dynamic;
use crate::Dialect;
use crate::lex::Lexer;
use crate::token::{Kind, Sink, Token};
use weir_wire::limits::STRINGS_RUN;

/// Behind these words a statement may begin, as behind a semicolon.
const BEGINS: [&[u8]; 5] = [b"begin", b"then", b"else", b"loop", b"declare"];
/// Behind a variable that is run.
const ENDS: [&[u8]; 3] = [b"using", b"into", b"loop"];

/// A token, by its place.
#[derive(Debug, Clone, Copy)]
struct Piece {
    kind: Kind,
    start: usize,
    end: usize,
}

/// A body, once a variable of it is run.
#[derive(Debug, Default)]
pub(super) struct Strings {
    pieces: Vec<Piece>,
    /// How many variables were looked for.
    asked: usize,
}

#[derive(Debug, Default)]
struct Pieces(Vec<Piece>);

impl Sink for Pieces {
    fn token(&mut self, token: Token<'_>) {
        if let (Ok(start), Ok(end)) = (usize::try_from(token.start), usize::try_from(token.end)) {
            self.0.push(Piece { kind: token.kind, start, end });
        }
    }
}

impl Strings {
    /// What running this variable of `code` does; `None` if nobody knows.
    pub(super) fn facts(&mut self, dialect: Dialect, code: &[u8], name: &[u8]) -> Option<Facts> {
        self.asked += 1;
        if self.asked > STRINGS_RUN {
            return None;
        }
        if self.pieces.is_empty() {
            let mut pieces = Pieces::default();
            let mut lexer = Lexer::new(dialect);
            lexer.feed(code, &mut pieces);
            lexer.finish(&mut pieces);
            self.pieces = pieces.0;
        }
        let mut all = Facts::default();
        for (start, end) in (Body { code, pieces: &self.pieces }).values(name)? {
            all.add(Dynamic::of(dialect, code.get(start..end)?)?);
        }
        Some(all)
    }
}

struct Body<'a> {
    code: &'a [u8],
    pieces: &'a [Piece],
}

impl Body<'_> {
    /// Where the values stand that the variable is given.
    fn values(&self, name: &[u8]) -> Option<Vec<(usize, usize)>> {
        if !self.is_one(0, &[b"declare"]) {
            return None;
        }
        let begin = (0..self.pieces.len()).find(|&at| self.is_one(at, &[b"begin"]))?;
        let (mut values, mut declared) = (Vec::new(), false);
        for at in (0..self.pieces.len()).filter(|&at| self.names(at, name)) {
            let starts = self.starts_statement(at);
            if at < begin {
                if declared || !starts {
                    return None;
                }
                declared = true;
                values.extend(self.declared(at)?);
            } else if self.is_run(at) || self.is_raised(at) {
            } else if starts
                && self.kind(at + 1).is_some_and(|kind| matches!(kind, Kind::Assign | Kind::Equals))
            {
                values.push(self.value(at + 1)?);
            } else {
                return None;
            }
        }
        declared.then_some(values)
    }

    /// `name text [:= value];`
    fn declared(&self, at: usize) -> Option<Option<(usize, usize)>> {
        if !self.is_one(at + 1, &[b"text", b"varchar"]) {
            return None;
        }
        match self.kind(at + 2)? {
            Kind::Semicolon => Some(None),
            Kind::Assign | Kind::Equals => Some(Some(self.value(at + 2)?)),
            Kind::Word if self.is_one(at + 2, &[b"default"]) => Some(Some(self.value(at + 2)?)),
            _ => None,
        }
    }

    /// What stands between this token and the next semicolon.
    fn value(&self, sign: usize) -> Option<(usize, usize)> {
        let rest = self.pieces.get(sign + 1..)?;
        let end = rest.iter().find(|piece| piece.kind == Kind::Semicolon)?;
        Some((self.pieces.get(sign)?.end, end.start))
    }

    fn starts_statement(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else { return false };
        self.kind(before) == Some(Kind::Semicolon) || self.is_one(before, &BEGINS)
    }

    fn is_run(&self, at: usize) -> bool {
        let behind = at.checked_sub(1).is_some_and(|before| self.is_one(before, &[b"execute"]));
        behind && (self.kind(at + 1) == Some(Kind::Semicolon) || self.is_one(at + 1, &ENDS))
    }

    fn is_raised(&self, at: usize) -> bool {
        let start = (0..=at).rev().find(|&at| self.starts_statement(at));
        start.is_some_and(|start| self.is_one(start, &[b"raise"]))
    }

    fn kind(&self, at: usize) -> Option<Kind> {
        self.pieces.get(at).map(|piece| piece.kind)
    }

    fn text(&self, at: usize) -> &[u8] {
        self.pieces.get(at).and_then(|piece| self.code.get(piece.start..piece.end)).unwrap_or_default()
    }

    fn is_one(&self, at: usize, words: &[&[u8]]) -> bool {
        self.kind(at) == Some(Kind::Word) && words.iter().any(|word| self.text(at).eq_ignore_ascii_case(word))
    }

    /// The token may mean a variable of this name, however it is spelt.
    fn names(&self, at: usize, name: &[u8]) -> bool {
        match self.kind(at) {
            Some(Kind::Word) => self.text(at).eq_ignore_ascii_case(name),
            Some(Kind::Quoted) => {
                self.text(at).get(1..=name.len()).is_some_and(|text| text.eq_ignore_ascii_case(name))
            }
            Some(Kind::Escaped) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_known(code: &str) -> bool {
        let mut strings = Strings::default();
        strings.facts(Dialect::POSTGRES, code.as_bytes(), b"q").is_some()
    }

    #[test]
    fn a_variable_that_is_only_given_known_strings_and_run_is_known() {
        for code in [
            "declare q text; begin q := 'select 1'; execute q; end",
            "DECLARE Q TEXT := format('insert into s.%I values (%L)', t, v); BEGIN EXECUTE q USING v; END",
            "declare q varchar default 'select 1'; n int; begin execute q into n; raise notice '%', q; end",
            "declare r record; q text; begin if a then q = 'select 1'; else q := 'select ' || quote_literal(b); end if; \
             for r in execute q loop return next r; end loop; end",
            "declare q text; begin return query execute q using 1; end",
        ] {
            assert!(is_known(code), "{code}");
        }
    }

    #[test]
    fn a_variable_that_may_hold_anything_else_is_not() {
        for code in [
            // A parameter, or nobody's.
            "begin q := 'select 1'; execute q; end",
            "declare r text; begin execute q; end",
            // In a block of its own.
            "declare r text; begin declare q text; begin q := 'select 1'; end; execute q; end",
            "declare q text; begin declare q text := r; begin execute q; end; end",
            // Given what is not shown.
            "declare q text := r; begin execute q; end",
            "declare q text; begin q := 'select 1' || r; execute q; end",
            "declare q text; begin q := format('select %s', r); execute q; end",
            "declare q text; begin q := q || ' where a'; execute q; end",
            "declare q text; begin select a into q from t; execute q; end",
            "declare q text; begin select a, b into r, q from t; execute q; end",
            "declare q text; begin for q in select a from t loop execute q; end loop; end",
            "declare q text; begin fetch c into q; execute q; end",
            "declare q text; begin get diagnostics q = pg_context; execute q; end",
            "declare q text; begin call p(q); execute q; end",
            "declare q text; begin \"q\" := r; execute q; end",
            "declare q text; begin U&\"\\0071\" := r; execute q; end",
            "<<l>> declare q text; begin l.q := r; execute q; end",
            "declare q text; begin l.q := r; execute q; end",
            "declare q alias for $1; begin execute q; end",
            "declare q my_domain; begin execute q; end",
            "declare q text; begin execute q || r; end",
        ] {
            assert!(!is_known(code), "{code}");
        }
    }
}
