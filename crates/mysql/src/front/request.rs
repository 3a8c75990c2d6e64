//! What is known of the request under way, and what follows from it for its server.
//!
//! Owns: [`Request`] and the questions that the proxy asks of it. Must not know: how it was found
//! (`find.rs`), how its reply is read.

use super::AsksSession;
use super::finish::runs_code;
use super::held::Act;
use crate::binding::Wants;
use crate::message::Command;
use crate::prepared::Text;
use crate::rewrite::Rewritten;
use crate::says::{Says, Shows, Skipped};
use crate::session_state::Changes;
use std::sync::Arc;
use weir_sql::{Class, Kill};
use weir_wire::{Pin, Pins};

/// What is known of the request under way.
#[derive(Debug)]
pub(crate) struct Request {
    pub command: Command,
    pub class: Class,
    /// The client's number of the statement, or the target of KILL.
    pub number: u32,
    /// KILL QUERY.
    pub query_only: bool,
    pub asks_session: AsksSession,
    pub extra: Option<Box<Extra>>,
    /// All that came before its last bytes was gathered: its text is the one in `extra`.
    pub gathered: bool,
    /// It spends what was sent ahead of it, so it cannot be sent again.
    pub only_once: bool,
    /// What it does to what its client holds.
    pub act: Option<Box<Act>>,
    /// It changes accounts or global settings: sessions that begin behind it are others.
    pub changes_others: bool,
    /// The state of the catalogue by which `class` was judged; 0: none.
    pub judged_by: u64,
    /// What becomes of the warnings of the statement before it, unless it warns itself.
    pub leaves: Leaves,
    /// What SHOW, DESCRIBE and EXPLAIN make of FOUND_ROWS().
    pub shows: Shows,
    /// What LIMIT leaves out, if it matters.
    pub skipped: Skipped,
    /// What its words say beyond its class.
    pub says: Says,
    /// What an execution wants of its copy.
    pub wants: Wants,
    /// It leaves nothing and asks nothing (`dispatch/ordinary.rs`).
    pub ordinary: bool,
}

/// What becomes of the warnings of the statement before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// They go.
    Nothing,
    /// They stay.
    All,
    /// Only a server that has them can tell: they are brought there, and asked for behind it.
    Unsure,
}

/// What few requests have.
#[derive(Debug, Default)]
pub(crate) struct Extra {
    /// What SET changes, if all of it can move.
    pub changes: Option<Changes>,
    /// The text to send instead of the client's.
    pub text: Option<Rewritten>,
    /// The statement to prepare.
    pub prepare: Option<Arc<Text>>,
    /// It is a KILL.
    pub kills: Option<Kill>,
    /// A KILL stands behind the text that is sent: its target, and whether only the request is meant.
    pub kill_behind: Option<(u32, bool)>,
    /// It may change how texts are read, and not by a SET that can be followed.
    pub rereads: bool,
}

impl Request {
    pub(crate) fn new(command: Command) -> Request {
        Request {
            command,
            class: Class::default(),
            number: 0,
            query_only: false,
            asks_session: AsksSession::Nothing,
            extra: None,
            only_once: false,
            gathered: false,
            act: None,
            changes_others: false,
            judged_by: 0,
            leaves: Leaves::Nothing,
            shows: Shows::Other,
            skipped: Skipped::Unsaid,
            says: Says::default(),
            wants: Wants::Nothing,
            ordinary: false,
        }
    }

    /// Its client is told an error instead, and no server has seen it: it has done nothing.
    pub(crate) fn has_not_run(&mut self) {
        (self.class, self.act) = (Class::default(), None);
        if let Some(extra) = self.extra.as_deref_mut() {
            (extra.changes, extra.rereads) = (None, false);
        }
    }

    /// Whatever it does, nothing of it stays on its server.
    pub(crate) fn leaves_no_trace(&self) -> bool {
        match self.command {
            Command::Ping | Command::Statistics => true,
            Command::Query | Command::StmtExecute => self.class.shareable && self.leaves != Leaves::Unsure,
            _ => false,
        }
    }

    /// It leaves no trace and can be run again elsewhere.
    pub(crate) fn only_reads(&self) -> bool {
        match self.command {
            Command::Ping | Command::Statistics => true,
            Command::Query | Command::StmtExecute => {
                let alone = self.extra.is_some() || self.only_once || self.leaves == Leaves::Unsure;
                // FOUND_ROWS() is then what only its server can say.
                let counts = match self.skipped {
                    Skipped::Known(_) => false,
                    Skipped::Unsaid | Skipped::Parameter { .. } => self.class.skips_rows,
                    Skipped::Other => true,
                };
                self.class.proven && self.class.only_reads() && !alone && !counts
            }
            _ => false,
        }
    }

    /// What it does to its server cannot be undone by setting everything anew.
    pub(crate) fn taints(&self) -> bool {
        let mut pins = self.class.pins;
        if self.extra.as_deref().is_some_and(|extra| extra.changes.is_some()) {
            // The settings are followed. What else the text does is not: SET may name user variables, too.
            remove_setting(&mut pins, &self.class);
        }
        let runs = matches!(self.command, Command::Query | Command::StmtExecute);
        runs && (!pins.is_empty() || runs_code(&self.class))
            || self.makes_variables()
            || self.class.lent_stays
    }

    /// It may be a reason for its client to keep its server.
    pub(crate) fn may_leave_something(&self) -> bool {
        let runs = matches!(self.command, Command::Query | Command::StmtExecute);
        let leaves = !self.class.pins.is_empty() || runs_code(&self.class);
        runs && leaves || self.makes_variables() || self.class.lent_stays
    }

    /// Which of its client's statements may come to something else when they are prepared behind it.
    pub(crate) fn unsettles(&self) -> Option<Unsettles> {
        let mut pins = self.class.pins;
        if self.extra.as_deref().is_some_and(|extra| extra.changes.is_some()) {
            remove_setting(&mut pins, &self.class);
        }
        match self.command {
            Command::Query | Command::StmtExecute if pins.contains(Pin::Setting) => Some(Unsettles::All),
            Command::Query | Command::StmtExecute
                if pins.contains(Pin::UserVariable) || runs_code(&self.class) =>
            {
                Some(Unsettles::OfVariables)
            }
            _ if self.makes_variables() => Some(Unsettles::OfVariables),
            _ => None,
        }
    }

    /// The variables that a statement sets are in the session as soon as it is prepared: their type is
    /// another one than that of variables that nobody has named. Whether a doubtful one sets some is not
    /// known.
    pub(crate) fn makes_variables(&self) -> bool {
        let may_set = self.class.pins.contains(Pin::UserVariable) || self.class.doubtful;
        self.command == Command::StmtPrepare && may_set
    }
}

/// Statements that come to something else when they are prepared behind a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsettles {
    /// Any: it sets what is not followed.
    All,
    /// Those that read user variables: their columns have the types of these.
    OfVariables,
}

/// The settings of a text are followed: they are no reason to stay, unless something behind them sets more.
pub(super) fn remove_setting(pins: &mut Pins, class: &Class) {
    if class.heads().is_empty() || !class.pins_behind().contains(Pin::Setting) {
        pins.remove(Pin::Setting);
    }
}

/// Texts in which code of users may run: all but transaction control, settings, and what only speaks of the
/// session.
pub(crate) fn runs_user_code(class: &Class) -> bool {
    let harmless = matches!(
        class.verb,
        weir_sql::Verb::Empty
            | weir_sql::Verb::Begin
            | weir_sql::Verb::Commit
            | weir_sql::Verb::Rollback
            | weir_sql::Verb::RollbackTo
            | weir_sql::Verb::Savepoint
            | weir_sql::Verb::Release
            | weir_sql::Verb::Set
            | weir_sql::Verb::Show
            | weir_sql::Verb::Use
            | weir_sql::Verb::Kill
    );
    class.statements > 1 || !harmless
}
