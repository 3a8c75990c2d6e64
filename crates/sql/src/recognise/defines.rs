//! Whether the statements of a text only define: tables, types, views, triggers, policies, functions, rights.
//! PostgreSQL runs no code of users for these, so that what one of them makes runs in none of the others.
//!
//! Must not know: event triggers, which run for any of them (`names.rs`).
//!
//! Invariant: a statement whose form is not listed here may run code.

use super::Recogniser;
use crate::class::Verb;
use crate::token::{Kind, Token};
use crate::words::Word;

/// How far a CREATE or ALTER has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    /// Before the kind of thing that it is about.
    #[default]
    Kind,
    /// ALTER TABLE, where its name or the next part of it stands.
    Name,
    /// Behind that.
    Named,
    /// In one of its actions.
    Action,
    /// Before the next action.
    Next,
    /// CREATE TABLE, so far one without rows or expressions that are evaluated.
    Table,
    /// It only defines.
    Defines,
    /// It may run something.
    Runs,
}

/// What is known of the current statement.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Definition {
    place: Place,
    /// It is about a function or procedure.
    of_routine: bool,
}

/// What is known of the text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Definitions {
    /// A statement may run code.
    runs: bool,
    /// A routine is defined; a transaction ends, with whose end deferred triggers run.
    routines: bool,
    commits: bool,
}

impl Definitions {
    /// All that the statements do is to define.
    pub(super) fn only(self) -> bool {
        !(self.runs || self.routines && self.commits)
    }
}

/// In CREATE TABLE: bounds of a partition are evaluated, and expressions of indexes planned.
const EVALUATES: [&[u8]; 3] = [b"partition", b"like", b"exclude"];

/// What ALTER TABLE may do without looking at a row, or at an expression.
const ACTIONS: [&[u8]; 6] = [b"enable", b"disable", b"force", b"no", b"owner", b"rename"];

impl Recogniser {
    /// A token of a statement of PostgreSQL.
    pub(super) fn defines(&mut self, token: &Token<'_>, word: Word) {
        let creates = match self.now.verb {
            Verb::Create => true,
            Verb::Alter => false,
            // SET CONSTRAINTS runs what was deferred; IMPORT FOREIGN SCHEMA asks another server.
            Verb::Set if word == Word::Constraints => return self.now.definition.place = Place::Runs,
            Verb::Catalogue if self.now.tokens == 1 && word == Word::Import => {
                return self.now.definition.place = Place::Runs;
            }
            _ => return,
        };
        let is = |what: &[u8]| token.kind == Kind::Word && token.text.eq_ignore_ascii_case(what);
        let definition = &mut self.now.definition;
        definition.place = match definition.place {
            Place::Kind if self.now.tokens == 1 => Place::Kind,
            Place::Kind => match word {
                Word::Or | Word::Replace | Word::Temp | Word::Temporary | Word::Recursive if creates => {
                    Place::Kind
                }
                Word::Function | Word::Procedure => {
                    definition.of_routine = true;
                    Place::Defines
                }
                Word::Trigger | Word::Schema => Place::Defines,
                Word::Table if creates => Place::Table,
                Word::Table => Place::Name,
                _ if creates && (is(b"type") || is(b"domain")) => Place::Defines,
                _ if creates && is(b"unlogged") => Place::Kind,
                _ if is(b"view") || is(b"policy") || is(b"sequence") => Place::Defines,
                _ if creates && is(b"constraint") => Place::Kind,
                _ => Place::Runs,
            },
            Place::Name if matches!(word, Word::If) || is(b"exists") || is(b"only") => Place::Name,
            Place::Name if matches!(token.kind, Kind::Word | Kind::Quoted) => Place::Named,
            Place::Name => Place::Runs,
            Place::Named if token.kind == Kind::Dot => Place::Name,
            Place::Named if token.kind == Kind::Star => Place::Named,
            Place::Named | Place::Next if ACTIONS.iter().any(|action| is(action)) => Place::Action,
            Place::Named | Place::Next => Place::Runs,
            Place::Action if token.kind == Kind::Comma && self.now.depth == 0 => Place::Next,
            // `CREATE TABLE t AS SELECT` runs that.
            Place::Table if word == Word::As && self.now.depth == 0 => Place::Runs,
            Place::Table if EVALUATES.iter().any(|what| is(what)) => Place::Runs,
            place @ (Place::Table | Place::Action | Place::Defines | Place::Runs) => place,
        };
    }

    /// The statement ends.
    pub(super) fn end_definition(&mut self) {
        let Definition { place, of_routine } = self.now.definition;
        let text = &mut self.definitions;
        text.routines |= of_routine;
        text.commits |= self.now.verb == Verb::Commit;
        text.runs |= match self.now.verb {
            Verb::Create | Verb::Alter => !matches!(place, Place::Table | Place::Action | Place::Defines),
            Verb::Set | Verb::Catalogue => place == Place::Runs,
            Verb::Begin
            | Verb::Commit
            | Verb::Rollback
            | Verb::RollbackTo
            | Verb::Savepoint
            | Verb::Release
            | Verb::Reset
            | Verb::Show
            | Verb::Drop => false,
            _ => true,
        };
    }
}
