//! Bodies of routines, in which a semicolon ends no statement.
//!
//! PostgreSQL: `BEGIN ATOMIC ... END`. MySQL: any compound statement. The rules count what opens and what
//! closes; where they may be wrong, the count is not zero at the end and the text is doubtful, or the body
//! seems to end early and the rest is no statement that the scanner recognises.

use super::Recogniser;
use crate::token::{Kind, Token};
use crate::words::Word;

impl Recogniser {
    /// A token of a statement that defines a routine.
    pub(super) fn body(&mut self, token: &Token<'_>, word: Word) {
        if self.now.depth == 0 && self.now.body_depth == 0 && word == Word::Name {
            self.temporary_schema(token);
        }
        if token.kind == Kind::Word {
            if self.mysql { self.mysql_body(word) } else { self.postgres_body(word) }
        } else if token.kind == Kind::Semicolon {
            self.now.body_handler = false;
        } else if token.kind == Kind::Colon {
            // A label.
            self.now.body_goes_on = true;
        }
    }

    fn postgres_body(&mut self, word: Word) {
        // `AS end` is a column's name.
        let is_label = self.now.last.word == Word::As;
        match word {
            Word::Atomic if self.now.last.word == Word::Begin && self.now.body_depth == 0 => self.opens(),
            Word::Case if self.now.body_depth > 0 && !is_label => self.opens(),
            Word::End if self.now.body_depth > 0 && !is_label => self.closes(),
            _ => {}
        }
    }

    fn mysql_body(&mut self, word: Word) {
        let last = self.now.last;
        let begins = last.kind == Kind::Semicolon
            || last.kind == Kind::Colon
            || matches!(
                last.word,
                Word::Begin | Word::Then | Word::Else | Word::Do | Word::Loop | Word::Repeat
            );
        let inside = self.now.body_depth > 0;
        match word {
            // All of the body stands behind FOR EACH ROW.
            Word::Each => self.now.body_goes_on = last.word != Word::For,
            // A compound statement, or the declarations that stand in front of one in MariaDB's mode ORACLE.
            Word::Case
            | Word::If
            | Word::Loop
            | Word::Repeat
            | Word::While
            | Word::For
            | Word::As
            | Word::Is
            | Word::Declare
            | Word::Package => self.now.body_goes_on = true,
            _ => {}
        }
        match word {
            Word::Begin if begins || self.now.body_handler || !self.now.body_begun => self.opens(),
            Word::Case if inside && last.word != Word::End => self.opens(),
            Word::If | Word::Loop | Word::Repeat | Word::While | Word::For if inside && begins => {
                self.opens()
            }
            Word::End if inside => self.closes(),
            Word::Handler if matches!(last.word, Word::Continue | Word::Exit | Word::Undo) => {
                self.now.body_handler = true;
            }
            _ => {}
        }
    }

    fn opens(&mut self) {
        self.now.body_begun = true;
        self.now.body_handler = false;
        match self.now.body_depth.checked_add(1) {
            Some(depth) => self.now.body_depth = depth,
            None => self.class.doubtful = true,
        }
    }

    fn closes(&mut self) {
        self.now.body_depth = self.now.body_depth.saturating_sub(1);
    }
}
