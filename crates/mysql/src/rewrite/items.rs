//! Items of select lists that have no name of their own: a server names them by their words, and where others
//! refer to them by that name, they must keep it.
//!
//! Invariant: in doubt an item is left as it is.

use crate::words::{Piece, Words};

/// Names of columns have at most so many characters.
const NAME_BYTES: usize = 64;

/// Words that may stand between SELECT and its first item.
const MODIFIERS: [&[u8]; 10] = [
    b"ALL",
    b"DISTINCT",
    b"DISTINCTROW",
    b"HIGH_PRIORITY",
    b"STRAIGHT_JOIN",
    b"SQL_SMALL_RESULT",
    b"SQL_BIG_RESULT",
    b"SQL_BUFFER_RESULT",
    b"SQL_NO_CACHE",
    b"SQL_CALC_FOUND_ROWS",
];

/// Words behind which no item goes on.
const ENDS: [&[u8]; 13] = [
    b"FROM",
    b"INTO",
    b"WHERE",
    b"GROUP",
    b"HAVING",
    b"ORDER",
    b"LIMIT",
    b"UNION",
    b"EXCEPT",
    b"INTERSECT",
    b"FOR",
    b"LOCK",
    b";",
];

/// Words behind which a word is no alias.
const OPERATORS: [&[u8]; 20] = [
    b"IS",
    b"NOT",
    b"AND",
    b"OR",
    b"XOR",
    b"DIV",
    b"MOD",
    b"LIKE",
    b"REGEXP",
    b"RLIKE",
    b"BETWEEN",
    b"IN",
    b"COLLATE",
    b"BINARY",
    b"INTERVAL",
    b"ESCAPE",
    b"WHEN",
    b"THEN",
    b"ELSE",
    b"CASE",
];

/// What is read of one level of parentheses.
#[derive(Default)]
struct Level<'a> {
    /// In a select list.
    in_list: bool,
    start: Option<usize>,
    end: usize,
    last: Option<Piece<'a>>,
    before: Option<Piece<'a>>,
}

fn any(piece: &Piece<'_>, words: &[&[u8]]) -> bool {
    words.iter().any(|word| piece.is(word))
}

/// A word, a number, something in quotes.
fn is_operand(piece: &Piece<'_>) -> bool {
    let first = piece.bytes.first().copied().unwrap_or_default();
    first.is_ascii_alphanumeric() || matches!(first, b'_' | b'$' | b'`' | b'"' | b'\'') || first >= 0x80
}

impl Level<'_> {
    /// The item has a name of its own, or it may have.
    fn is_named(&self) -> bool {
        let (Some(last), Some(before)) = (&self.last, &self.before) else { return false };
        let is_behind = before.is(b")") || is_operand(before) && !any(before, &OPERATORS);
        is_operand(last) && !last.is(b"END") && is_behind
    }
}

/// Where items end that have no name and in which `asks` finds something, and what names them. Those of the
/// outermost list only if a table is made of it.
pub(super) fn aliases(text: &[u8], fills: bool, asks: impl Fn(usize, usize) -> bool) -> Vec<(usize, String)> {
    // Where strings end depends on settings; comments may be run, or are part of the name.
    let is_unclear = |two: &[u8]| matches!(two, b"/*" | b"--");
    if text.iter().any(|byte| matches!(byte, b'\\' | b'#')) || text.windows(2).any(is_unclear) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut levels = vec![Level::default()];
    // What stands behind the first statement fills nothing.
    let mut fills = fills;
    let mut finish = |level: &mut Level<'_>, counts: bool| {
        let item = level.start.take().filter(|_| level.in_list && counts && !level.is_named());
        if let Some(start) = item.filter(|start| asks(*start, level.end))
            && let Some(Ok(name)) = text.get(start..level.end).map(std::str::from_utf8)
            && name.len() <= NAME_BYTES
            && name.bytes().all(|byte| matches!(byte, b' '..0x7F) && byte != b'`')
        {
            // A tab, as no server writes it itself: see `restored`.
            found.push((level.end, format!("\tAS `{name}`")));
        }
        (level.last, level.before) = (None, None);
    };
    for piece in Words::new(text) {
        let is_inner = levels.len() > 1;
        if piece.is(b")")
            && is_inner
            && let Some(mut level) = levels.pop()
        {
            finish(&mut level, true);
        }
        let opens = piece.is(b"(");
        let Some(level) = levels.last_mut() else { return Vec::new() };
        if piece.is(b"SELECT") {
            *level = Level { in_list: true, ..Level::default() };
        } else if piece.is(b",") || any(&piece, &ENDS) {
            finish(level, is_inner || fills);
            level.in_list &= piece.is(b",");
            fills &= is_inner || !piece.is(b";");
        } else if level.in_list && !(level.start.is_none() && any(&piece, &MODIFIERS)) {
            level.start.get_or_insert(piece.start());
            level.end = piece.start() + piece.bytes.len();
            level.before = level.last.replace(piece);
        }
        if opens {
            levels.push(Level::default());
        }
    }
    if let [level] = levels.as_mut_slice() {
        finish(level, fills);
    }
    found
}
