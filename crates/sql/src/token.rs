//! The tokens that the lexer passes to the recogniser.

use crate::MAX_NAME_BYTES;

/// Kinds of [`Token`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Nothing yet: the start of a statement.
    #[default]
    None,
    /// An unquoted word.
    Word,
    /// A quoted identifier; `text` is what is between the quotes.
    Quoted,
    /// A quoted identifier with Unicode escapes (`U&"..."`): its name is not known.
    Escaped,
    /// A string; `text` is what is between the quotes, escapes as they stand. Of a dollar quote there is
    /// none, and the token counts as cut.
    Str,
    /// A number. In MySQL also a name that begins with a digit.
    Number,
    /// `$1` or `?`.
    Param,
    /// MySQL's `@name`; `text` is the name.
    UserVariable,
    /// MySQL's `@@`; words follow.
    SystemPrefix,
    /// `:=`
    Assign,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// `;`
    Semicolon,
    /// `=`
    Equals,
    /// `*`
    Star,
    /// `:`
    Colon,
    /// Any other character.
    Operator,
}

/// A word, literal or sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    /// Its text, of which at most [`MAX_NAME_BYTES`] bytes are given.
    pub(crate) text: &'a [u8],
    /// Bytes of its text.
    pub(crate) len: usize,
    /// Where it starts in the scanned text.
    pub(crate) start: u64,
    /// One past its end.
    pub(crate) end: u64,
}

/// The length of a text that is not kept at all: what stands between the tags of a dollar quote.
pub(crate) const NOT_KEPT: usize = MAX_NAME_BYTES + 1;

impl Token<'_> {
    /// The text is not all there.
    pub(crate) fn is_cut(&self) -> bool {
        self.len > MAX_NAME_BYTES
    }
}

/// Takes tokens one by one.
pub(crate) trait Sink {
    /// The next token.
    fn token(&mut self, token: Token<'_>);
}
