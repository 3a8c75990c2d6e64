//! Where the statement of a handler begins: `DECLARE CONTINUE HANDLER FOR NOT FOUND, 1062 SET done = 1`.
//!
//! Any statement may stand there, so it is not looked for by the words that begin one: it begins with what
//! can be no condition, and no comma between two.
//!
//! What a handler asks for warnings is about the condition it handles, not about a statement before the code.

use crate::token::{Kind, Token};
use crate::words::Word;

/// What is read of a handler's conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handled {
    /// There is no handler.
    Nothing,
    /// The word HANDLER has come: FOR is next.
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

/// Whether the code is in the statement of a handler. In doubt it is not.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Within {
    /// Blocks that are open, with that of the handler.
    blocks: u32,
    /// It is a statement that is no block.
    alone: bool,
    /// END has come: a block's, if nothing else is named behind it.
    ends: bool,
}

impl Within {
    pub(super) fn is_in(self) -> bool {
        self.alone || self.blocks > 0
    }

    /// The statement of a handler begins with this word.
    pub(super) fn begin(&mut self, word: Word) {
        match word {
            Word::Begin => self.blocks += 1,
            _ => self.alone = self.blocks == 0,
        }
    }

    /// A token, and whether a statement begins with it.
    pub(super) fn token(&mut self, word: Word, begins: bool) {
        if std::mem::take(&mut self.ends)
            && !matches!(word, Word::If | Word::Case | Word::Loop | Word::Repeat | Word::While | Word::For)
        {
            self.blocks = self.blocks.saturating_sub(1);
        }
        if begins && self.blocks > 0 {
            self.blocks += u32::from(word == Word::Begin);
            self.ends = word == Word::End;
        }
    }

    /// A statement is over.
    pub(super) fn end_statement(&mut self) {
        self.alone = false;
    }
}
