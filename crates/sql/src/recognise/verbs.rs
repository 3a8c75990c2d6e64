//! The first word of a statement.

use weir_wire::Pin;

use super::{Mode, Recogniser, Target, position};
use crate::class::{Kill, Transaction, Uses, Verb};
use crate::token::{Kind, Token};
use crate::words::Word;

impl Recogniser {
    /// A token where a statement begins.
    pub(super) fn start(&mut self, token: &Token<'_>, word: Word) {
        match token.kind {
            // `(SELECT ...) UNION ...`
            Kind::Open => {}
            Kind::Word if self.now.depth == 0 || opens_query(word) => self.verb(token, word),
            _ => self.unrecognised(),
        }
    }

    fn verb(&mut self, token: &Token<'_>, word: Word) {
        let found = self
            .common_verb(word)
            .or_else(|| if self.mysql { self.mysql_verb(word) } else { self.postgres_verb(word) });
        let Some((verb, mode)) = found else {
            self.unrecognised();
            return;
        };
        self.now.verb = verb;
        self.now.mode = mode;
        if verb == Verb::Kill {
            self.begin_kill(token);
        }
        if word == Word::Resignal {
            // It adds its error to the conditions that are there.
            self.uses(Uses::DIAGNOSTICS);
        }
        self.enter(verb, mode);
    }

    fn begin_kill(&mut self, token: &Token<'_>) {
        let before_kill = self.class.statements;
        let details = self.details();
        details.kills = details.kills.saturating_add(1);
        if details.kills == 1 {
            details.kill = Some(Kill::Other);
            details.kill_start = position(token.start);
            details.before_kill = before_kill;
        }
    }

    /// What a verb means before anything else of its statement is known.
    fn enter(&mut self, verb: Verb, mode: Mode) {
        match verb {
            Verb::Select => self.now.in_list = self.now.depth == 0,
            Verb::Insert | Verb::Replace | Verb::Copy => self.now.target = Target::Next,
            Verb::Create | Verb::Alter | Verb::Drop | Verb::Catalogue | Verb::Truncate => {
                self.class.ddl = true
            }
            Verb::Begin if mode == Mode::Begin => {
                self.now.transaction = Some(Transaction::Begin { plain: true, snapshot: false });
            }
            Verb::Commit => {
                self.now.transaction = Some(Transaction::Commit { chain: false, release: false });
            }
            Verb::Rollback => {
                self.now.transaction = Some(Transaction::Rollback { chain: false, release: false });
            }
            Verb::Savepoint => self.now.transaction = Some(Transaction::Savepoint),
            Verb::Release => self.now.transaction = Some(Transaction::Release),
            Verb::Xa => self.now.transaction = Some(Transaction::Xa),
            Verb::Listen => self.pin(Pin::Listen),
            Verb::Call => self.uses(Uses::BLOCK),
            Verb::Do if !self.mysql => self.uses(Uses::BLOCK),
            Verb::Use => self.pin(Pin::Setting),
            Verb::Close | Verb::Fetch | Verb::Declare => self.uses(Uses::CURSOR),
            Verb::Execute | Verb::Deallocate => self.uses(Uses::SQL_PREPARE),
            Verb::Get => self.uses(Uses::DIAGNOSTICS),
            Verb::Maintain if !self.mysql => self.uses(Uses::MAINTAINS),
            Verb::Server => self.uses(Uses::RAISES),
            Verb::Load if !self.mysql => self.pin(Pin::Load),
            Verb::Set | Verb::Reset => self.begin_set(),
            _ => {}
        }
    }

    fn common_verb(&self, word: Word) -> Option<(Verb, Mode)> {
        Some(match word {
            Word::Select | Word::Table => (Verb::Select, Mode::Query),
            Word::Values => (Verb::Values, Mode::Query),
            Word::Insert => (Verb::Insert, Mode::Query),
            Word::Update => (Verb::Update, Mode::Query),
            Word::Delete => (Verb::Delete, Mode::Query),
            Word::With => (Verb::Select, Mode::With),
            Word::Begin => (Verb::Begin, Mode::Begin),
            Word::Start => (Verb::Begin, Mode::StartWhat),
            Word::Commit => (Verb::Commit, Mode::Commit),
            Word::Rollback => (Verb::Rollback, Mode::Rollback),
            Word::Savepoint => (Verb::Savepoint, Mode::Name),
            Word::Release => (Verb::Release, Mode::Name),
            Word::Set => (Verb::Set, Mode::Set),
            Word::Show => (Verb::Show, Mode::Show),
            Word::Prepare => (Verb::Prepare, Mode::Prepare),
            Word::Execute => (Verb::Execute, Mode::Execute),
            Word::Deallocate => (Verb::Deallocate, Mode::Deallocate),
            Word::Create => (Verb::Create, Mode::Create),
            Word::Alter => (Verb::Alter, Mode::Alter),
            Word::Drop => (Verb::Drop, Mode::Drop),
            Word::Truncate => (Verb::Truncate, Mode::Rest),
            Word::Grant | Word::Revoke | Word::Import => (Verb::Catalogue, Mode::Rest),
            Word::Explain => (Verb::Explain, Mode::Explain),
            Word::Analyze if self.mysql => (Verb::Maintain, Mode::Explain),
            Word::Analyze => (Verb::Maintain, Mode::Maintain),
            Word::Call => (Verb::Call, Mode::Rest),
            Word::Do => (Verb::Do, Mode::Query),
            Word::Lock => (Verb::Lock, Mode::Lock),
            Word::Load => (Verb::Load, Mode::Load),
            _ => return None,
        })
    }

    fn postgres_verb(&self, word: Word) -> Option<(Verb, Mode)> {
        Some(match word {
            Word::Merge => (Verb::Merge, Mode::Query),
            Word::End => (Verb::Commit, Mode::Commit),
            Word::Abort => (Verb::Rollback, Mode::Rollback),
            Word::Reset => (Verb::Reset, Mode::Set),
            Word::Discard => (Verb::Discard, Mode::Discard),
            Word::Listen => (Verb::Listen, Mode::Name),
            Word::Unlisten => (Verb::Unlisten, Mode::Unlisten),
            Word::Notify => (Verb::Notify, Mode::Name),
            Word::Copy => (Verb::Copy, Mode::Copy),
            Word::Declare => (Verb::Declare, Mode::Declare),
            Word::Fetch | Word::Move => (Verb::Fetch, Mode::Rest),
            Word::Close => (Verb::Close, Mode::Close),
            Word::Analyse | Word::Vacuum | Word::Reindex | Word::Cluster => (Verb::Maintain, Mode::Maintain),
            Word::Checkpoint | Word::Refresh => (Verb::Maintain, Mode::Rest),
            Word::Comment | Word::Security | Word::Reassign => (Verb::Catalogue, Mode::Rest),
            _ => return None,
        })
    }

    fn mysql_verb(&self, word: Word) -> Option<(Verb, Mode)> {
        Some(match word {
            Word::Replace => (Verb::Replace, Mode::Query),
            Word::Desc | Word::Describe => (Verb::Explain, Mode::Explain),
            Word::Use => (Verb::Use, Mode::Name),
            Word::Kill => (Verb::Kill, Mode::Kill),
            Word::Unlock => (Verb::Unlock, Mode::Unlock),
            Word::Flush => (Verb::Flush, Mode::Flush),
            Word::Backup if self.mariadb => (Verb::Backup, Mode::Backup),
            Word::Handler => (Verb::Handler, Mode::Handler),
            Word::Xa => (Verb::Xa, Mode::Xa),
            Word::Get => (Verb::Get, Mode::Rest),
            Word::Check | Word::Checksum | Word::Optimize | Word::Repair | Word::Cache | Word::Purge => {
                (Verb::Maintain, Mode::Rest)
            }
            Word::Rename | Word::Install | Word::Uninstall => (Verb::Catalogue, Mode::Rest),
            Word::Reset
            | Word::Change
            | Word::Stop
            | Word::Help
            | Word::Signal
            | Word::Resignal
            | Word::Shutdown
            | Word::Restart
            | Word::Clone => (Verb::Server, Mode::Rest),
            _ => return None,
        })
    }
}

/// A word with which a statement in parentheses may begin.
fn opens_query(word: Word) -> bool {
    matches!(word, Word::Select | Word::Values | Word::With | Word::Table)
}
