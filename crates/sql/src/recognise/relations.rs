//! Where a list of relations (FROM, USING, JOIN) stands, and where in it a name can only be an alias.
//!
//! `FROM (VALUES (1)) v(a)`, `FROM t x(a, b)`: PostgreSQL's grammar has no call directly behind a relation,
//! so such a name with a parenthesis names columns (`alias_clause` of gram.y). In front of a relation, and
//! anywhere else, it is a call: `FROM f(1)`, `JOIN LATERAL f(1)`, `ON f(1)`, `WHERE f(1)`.
//!
//! Must not know: what calls do.
//!
//! Invariants: a name that is not surely an alias is none; memory is constant: parentheses deeper than
//! [`Relations::LEVELS`] have no lists.

use super::{Past, Recogniser};
use crate::token::{Kind, Token};
use crate::words::Word;

/// How far the list of one level of parentheses has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Outside of any list.
    None,
    /// A relation comes next.
    Next,
    /// Behind the dot in its name.
    Part,
    /// Its name, or the function's, has just ended.
    Name,
    /// It is whole, and has no alias yet.
    Whole,
    /// Behind AS.
    As,
    /// It has an alias, or is part of a condition: up to a comma or the next JOIN nothing matters.
    Over,
    /// Behind WITH, where ORDINALITY may stand.
    With,
}

const PLACES: [Place; 8] =
    [Place::None, Place::Next, Place::Part, Place::Name, Place::Whole, Place::As, Place::Over, Place::With];

/// The lists of all open parentheses.
#[derive(Debug, Clone, Default)]
pub(super) struct Relations {
    /// Of each level its [`Place`], the outermost in the lowest bits.
    places: u64,
    /// The last token is a name where only an alias can stand.
    pub(super) at_alias: bool,
}

impl Relations {
    const BITS: u32 = 3;
    /// Levels that are known.
    const LEVELS: u32 = u64::BITS / Relations::BITS;

    fn at(&self, level: u16) -> Place {
        let bits = u32::from(level) * Relations::BITS;
        let place = self.places.checked_shr(bits).unwrap_or_default() & 0b111;
        PLACES.get(place as usize).copied().unwrap_or(Place::None)
    }

    fn put(&mut self, level: u16, place: Place) {
        if u32::from(level) < Relations::LEVELS {
            let bits = u32::from(level) * Relations::BITS;
            self.places = self.places & !(0b111 << bits) | (place as u64) << bits;
        }
    }
}

/// A word that means nothing to PostgreSQL or to Weir, as far as is known here.
pub(crate) fn is_no_word(word: &[u8]) -> bool {
    let entry = crate::words::lookup(word);
    let means = entry.word != Word::Name || entry.postgres != crate::words::Func::Unknown;
    !means && !entry.bare_postgres && !entry.reserved_postgres
}

fn is(token: &Token<'_>, word: &[u8]) -> bool {
    token.text.eq_ignore_ascii_case(word)
}

impl Recogniser {
    /// A token of PostgreSQL's has passed, and parentheses count as it has left them.
    #[inline]
    pub(super) fn follow_relations(&mut self, token: &Token<'_>, past: Past) {
        let level = self.now.depth;
        let relations = &mut self.now.relations;
        relations.at_alias = false;
        let place = relations.at(level);
        match token.kind {
            Kind::Open => {
                let Some(outside) = level.checked_sub(1) else { return };
                // Only where a relation is due may its own list stand in parentheses.
                let inside = if relations.at(outside) == Place::Next { Place::Next } else { Place::None };
                relations.put(level, inside);
            }
            Kind::Close => {
                let then = match place {
                    // What stood in the parentheses, or was called, is the relation.
                    Place::Next | Place::Name => Place::Whole,
                    Place::As => Place::Over,
                    place => place,
                };
                relations.put(level, then);
            }
            Kind::Word if place == Place::None && !matches!(past.word, Word::From | Word::Using) => {}
            _ if place == Place::None && token.kind != Kind::Word => {}
            _ => {
                let then = then(place, token, past);
                relations.at_alias = matches!(place, Place::Name | Place::Whole | Place::As)
                    && then == Place::Over
                    && is_alias(past);
                relations.put(level, then);
            }
        }
    }
}

/// A name that may be an alias.
fn is_alias(past: Past) -> bool {
    match past.kind {
        Kind::Word => !past.reserved,
        Kind::Quoted | Kind::Escaped => true,
        _ => false,
    }
}

/// Where the list is behind this token.
fn then(place: Place, token: &Token<'_>, past: Past) -> Place {
    let Past { word, reserved: is_reserved, .. } = past;
    match (place, token.kind) {
        (Place::Part, Kind::Word | Kind::Quoted | Kind::Escaped) => Place::Name,
        (_, Kind::Word) if is_reserved => reserved(place, token, word),
        (Place::Next, Kind::Word) if word == Word::Values => Place::None,
        (Place::Next, Kind::Word | Kind::Quoted | Kind::Escaped) => Place::Name,
        (Place::With, Kind::Word) if is(token, b"ordinality") => Place::Whole,
        (Place::Name, Kind::Dot) => Place::Part,
        // `t *`: with all that inherit from it.
        (Place::Name, Kind::Star) => Place::Whole,
        (Place::None, _) => Place::None,
        (Place::Next | Place::Part, _) => Place::None,
        (_, Kind::Comma) => Place::Next,
        (Place::Name | Place::Whole | Place::As | Place::Over | Place::With, _) => Place::Over,
    }
}

/// The same behind a word that is no name.
fn reserved(place: Place, token: &Token<'_>, word: Word) -> Place {
    match place {
        _ if matches!(word, Word::From | Word::Using) => Place::Next,
        Place::None => Place::None,
        Place::Next if is(token, b"only") || is(token, b"lateral") => Place::Next,
        Place::Next | Place::Part => Place::None,
        Place::Name | Place::Whole if word == Word::As => Place::As,
        Place::Name | Place::Whole if word == Word::With => Place::With,
        _ if is(token, b"join") => Place::Next,
        _ if ends_list(token, word) => Place::None,
        Place::Name | Place::Whole | Place::As | Place::Over | Place::With => Place::Over,
    }
}

/// No relation follows in this list.
fn ends_list(token: &Token<'_>, word: Word) -> bool {
    let known = matches!(
        word,
        Word::Where
            | Word::Group
            | Word::Having
            | Word::Order
            | Word::Limit
            | Word::Offset
            | Word::Fetch
            | Word::For
            | Word::Union
            | Word::Except
            | Word::Intersect
            | Word::Into
            | Word::Select
            | Word::Do
            | Word::Then
    );
    known || is(token, b"when") || is(token, b"window") || is(token, b"returning")
}
