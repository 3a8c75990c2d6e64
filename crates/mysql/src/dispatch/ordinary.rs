//! Reads that nothing goes ahead of: most requests of most clients. For them each of the questions that
//! `start` asks has the same answer, which costs more to find than the request to send.
//!
//! Owns: when that is so. Must not know: what the questions are about.
//!
//! Invariant: what `start` would leave, of the request and of this session, is what is left here. Builds with
//! assertions go both ways by turns of clients, and compare.

use super::state_elsewhere;
use crate::back::Back;
use crate::front::{AsksSession, Front, Leaves, Request};
use crate::message::Command;
use crate::queue::Entry;
use crate::says::{Says, Skipped};
use weir_session::Front as _;
use weir_sql::Verb;

impl Request {
    /// It is one SELECT that was looked up in the catalogue, uses nothing but tables, and leaves and asks
    /// nothing of its session.
    fn is_ordinary(&self) -> bool {
        let class = &self.class;
        matches!(self.command, Command::Query | Command::StmtExecute)
            && class.verb == Verb::Select
            && class.statements == 1
            && class.uses.is_empty()
            && class.proven
            && class.only_reads()
            && class.pins.is_empty()
            && class.code.is_empty()
            && class.releases.is_empty()
            && class.takes.is_empty()
            && class.transaction.is_none()
            && class.user_variables().is_none()
            && !class.doubtful
            && !class.lends_settings
            && self.says == Says::default()
            && self.skipped != Skipped::Other
            && self.leaves == Leaves::Nothing
            && self.asks_session == AsksSession::Nothing
            && self.extra.is_none()
            && self.act.is_none()
            && !self.changes_others
    }
}

impl Back {
    /// Nothing goes ahead of this request, whose statement is here.
    pub(super) fn is_ordinary(&self, entry: &Entry, front: &Front) -> bool {
        let request = &front.request;
        let holds = request.judged_by != 0 && request.judged_by == self.knowledge.state();
        let has_nothing = front.variables().is_none()
            && !front.may_have_warnings()
            && front.rare.is_none()
            && front.statements.as_deref().is_none_or(|all| !all.read_variables());
        let is_as_wanted = !self.needs_setup
            && !self.untold_hint
            && self.variables.is_none()
            && self.lost_schema.is_none()
            && self.session.is_at(&front.state);
        holds
            && has_nothing
            && is_as_wanted
            && entry.whole
            && !entry.welcome
            && entry.lost_schema.is_none()
            && request.is_ordinary()
            && front.pins().is_empty()
            && state_elsewhere(entry, front).is_none()
    }

    /// What the questions leave behind where nothing goes ahead: for builds that compare.
    pub(super) fn left_ahead(&self, entry: &Entry) -> impl PartialEq + std::fmt::Debug + use<> {
        let of_entry = (entry.ahead.len(), entry.insert_use, entry.found_own, entry.found_marked);
        let warned = (entry.had_warnings, entry.marked, entry.clears, entry.answers_warnings);
        let stages = (entry.stage, entry.elsewhere, entry.kept_out, entry.setup_owed);
        let here = (self.warned_client, self.last_client, self.last_rows, self.found_here, self.next_here);
        let further = (self.found_client, self.insert_id, self.guest, self.variables.is_some());
        (of_entry, warned, stages, here, further)
    }
}
