//! Where the statement of a handler begins: `DECLARE CONTINUE HANDLER FOR NOT FOUND, 1062 SET done = 1`.
//!
//! Any statement may stand there, so it is not looked for by the words that begin one: it begins with what
//! can be no condition, and no comma between two.

use crate::token::{Kind, Token};
use crate::words::Word;

/// What is read of a handler's conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handled {
    /// There is no handler.
    Nothing,
    /// FOR is next.
    For,
    /// A condition is next.
    Condition,
    /// It has begun with SQLSTATE.
    State,
    /// It has begun with NOT.
    Not,
    /// It is at its end.
    Behind,
}

impl Handled {
    /// The word HANDLER has come.
    pub(super) const HANDLER: Handled = Handled::For;

    /// The next token. True: the statement begins with it.
    pub(super) fn ends_before(&mut self, token: &Token<'_>, word: Word) -> bool {
        let is = |text: &[u8]| token.kind == Kind::Word && token.text.eq_ignore_ascii_case(text);
        *self = match *self {
            Handled::Nothing => return false,
            Handled::For if word == Word::For => Handled::Condition,
            // No server takes it.
            Handled::For => Handled::Nothing,
            Handled::Condition if is(b"sqlstate") => Handled::State,
            Handled::Condition if is(b"not") => Handled::Not,
            Handled::State if is(b"value") => Handled::State,
            Handled::Condition | Handled::State | Handled::Not => Handled::Behind,
            Handled::Behind if token.kind == Kind::Comma => Handled::Condition,
            Handled::Behind => {
                *self = Handled::Nothing;
                return true;
            }
        };
        false
    }
}
