//! Answers questions about warnings that Weir keeps: the whole text, or its first statement.
//!
//! Owns: those answers, and the texts that replace such a statement. Must not know: which warnings are kept,
//! and why.

use super::Front;
use super::finish::runs_code;
use crate::frame;
use crate::message::ok::OkPacket;
use crate::message::{Capabilities, Command, ok, status};
use crate::reply::put_schema;
use crate::rewrite::{self, Rewritten};
use crate::says;
use crate::session_state::Flavour;
use crate::warnings::{self, Kept, Shown};
use weir_sql::{Class, Uses, Verb};
use weir_wire::{Found, Needs};

impl Front {
    /// Answers SHOW WARNINGS by what is kept, if it is all that the text says.
    pub(super) fn shows_warnings(
        &mut self,
        class: &Class,
        text: &[u8],
        binary: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        if class.uses.contains(Uses::WARNINGS)
            && !class.uses.contains(Uses::EXECUTABLE_COMMENT)
            && let Some(Kept::Answer(warnings)) = self.warnings.as_deref()
            && !warnings.is_better_shown()
            && (!self.state.multi_statements || says::is_all_of(class, text))
            && let Some(wanted) = says::wanted(text)
        {
            let has_room = self.capabilities.has(Capabilities::DEPRECATE_EOF);
            let came_back = if binary { self.comes_back() } else { Vec::new() };
            if !has_room {
                self.keep_untold(&came_back);
            }
            let told = if has_room { self.told_with(came_back) } else { Vec::new() };
            let Some(Kept::Answer(warnings)) = self.warnings.as_deref() else { return false };
            let status = self.status & !status::OF_THE_REPLY;
            let to = Shown { capabilities: self.capabilities, status, changes: &told, binary };
            warnings.put(wanted, to, self.reply_seq, out);
            self.answered_here(-1);
            self.shift = 0;
            return true;
        }
        false
    }

    /// Answers GET DIAGNOSTICS, if it is all that the text says and asks for a condition that is not among
    /// those that are kept: no server could be given all of these. Unlike others it leaves -1 for
    /// ROW_COUNT().
    pub(super) fn misses_condition(
        &mut self,
        class: &Class,
        text: &[u8],
        executed: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let is_all = !self.state.multi_statements || says::is_all_of(class, text);
        let is_read = !class.doubtful && !class.uses.contains(Uses::EXECUTABLE_COMMENT);
        if class.verb != Verb::Get || class.statements != 1 || !is_all || !is_read {
            return false;
        }
        if !self.adds_missed(text) {
            return false;
        }
        if executed {
            let came_back = self.comes_back();
            self.keep_untold(&came_back);
        }
        self.put_warned(0, out);
        self.shift = 0;
        true
    }

    /// This GET DIAGNOSTICS asks for a condition that is not among those that are kept: that is another one
    /// now.
    fn adds_missed(&mut self, text: &[u8]) -> bool {
        let Some(Kept::Answer(warnings)) = self.warnings.as_deref_mut() else { return false };
        if !warnings.have_room() || !warnings::misses_condition(text, warnings) {
            return false;
        }
        warnings.add_missed();
        self.answered_here(-1);
        self.keep_conditions(1);
        true
    }

    /// The OK of a statement that has added a condition to those that are kept.
    fn put_warned(&mut self, more: u16, out: &mut Vec<u8>) -> u8 {
        let told = if more == 0 { self.take_untold() } else { Vec::new() };
        let status = self.status & !status::OF_THE_REPLY | more;
        let ok = OkPacket { status, changes: &told, warnings: 1, ..OkPacket::default() };
        frame::put(out, self.reply_seq, |out| ok.write(ok::OK, self.capabilities, out))
    }

    /// What a server of the client's own tells behind the statement that it executes: on MariaDB that it has
    /// come back from the statement's schema.
    fn comes_back(&mut self) -> Vec<u8> {
        let (number, mut told) = (self.request.number, Vec::new());
        let statement = self.statements.as_deref_mut().and_then(|all| all.get_mut(number));
        let elsewhere = statement.is_some_and(|statement| statement.text.shape.schema != self.state.schema);
        if elsewhere && self.traits.flavour == Flavour::MariaDb {
            put_schema(&mut told, self.state.schema.as_deref().unwrap_or_default());
        }
        told
    }

    /// A text of several statements whose first asks for warnings that are kept here, and no server can be
    /// given: that is answered here, and the rest is the request.
    pub(super) fn answer_head(
        &mut self,
        class: &Class,
        text: &[u8],
        len: usize,
        out: &mut Vec<u8>,
    ) -> Option<Found> {
        let kept = self.diagnostics().filter(|_| class.verb == Verb::Get || self.may_have_warnings())?;
        let read = !class.doubtful && !class.uses.contains(Uses::EXECUTABLE_COMMENT);
        if says::is_all_of(class, text) || !read || !self.state.multi_statements {
            return None;
        }
        if kept.is_better_shown() {
            return None;
        }
        let (head, rest) = text.split_at_checked(class.first_end as usize)?;
        if class.verb == Verb::Get && self.adds_missed(head) {
            let next = self.put_warned(status::MORE_RESULTS, out);
            return Some(self.find_rest(next, rest, len, out));
        }
        let kept = self.diagnostics()?;
        // What would stand in its place takes warnings away on MySQL that the rest asks for, too.
        let counts_only = class.verb == Verb::Get || says::show_count(head).is_some();
        if counts_only && self.traits.flavour == Flavour::MySql && !says::asks_nothing(Some(rest)) {
            return None;
        }
        match class.verb {
            Verb::Show => {
                if let Some(errors) = says::show_count(head) {
                    let shown = rewrite::count_shown(kept.counts(), errors);
                    return Some(self.find_own(shown.as_bytes(), head, rest.to_vec().into(), len, out));
                }
                let wanted = says::wanted(head)?;
                let status = self.status & !status::OF_THE_REPLY | status::MORE_RESULTS;
                let to = Shown { capabilities: self.capabilities, status, changes: &[], binary: false };
                let next = kept.put(wanted, to, self.reply_seq, out);
                self.answered_here(-1);
                Some(self.find_rest(next, rest, len, out))
            }
            Verb::Get if !class.uses.contains(Uses::CODE_ROW_COUNT) => {
                let set = warnings::diagnostics(head, kept, self.row_count)?;
                let rest = self.behind_diagnostics(class, rest)?;
                Some(self.find_own(&set, head, rest, len, out))
            }
            _ => None,
        }
    }

    /// The first statement is answered, up to the packet before `next`: what stands behind it is the request.
    /// `rest`: from the semicolon on.
    fn find_rest(&mut self, next: u8, rest: &[u8], len: usize, out: &mut Vec<u8>) -> Found {
        self.reply_begun = true;
        self.shift = next.wrapping_sub(1);
        let rest = rest.get(1..).unwrap_or_default();
        let found = self.find_query(&[&[Command::Query as u8], rest].concat(), len, out);
        self.find_instead(found, |sent| sent.unwrap_or_else(|| rest.to_vec().into()))
    }

    /// What stands behind GET DIAGNOSTICS, for behind a SET: that counts no rows, and GET leaves ROW_COUNT()
    /// as it was. `None` where the answer cannot stand in the text.
    fn behind_diagnostics(&self, whole: &Class, rest: &[u8]) -> Option<Rewritten> {
        let as_it_is = || Rewritten::from(rest.to_vec());
        let (semicolon, statements) = rest.split_at_checked(1)?;
        let class = self.classify(statements).0;
        if whole.uses.contains(Uses::BLOCK) {
            // MariaDB's answer to a CALL says nothing of the statement before it. What code is not read may
            // ask for that.
            let mariadb = self.traits.flavour == Flavour::MariaDb;
            let calls = class.verb == Verb::Call && class.statements == 1 && class.proven;
            return (mariadb && calls && !runs_code(&class)).then(as_it_is);
        }
        if self.row_count == 0 || matches!(class.verb, Verb::Empty) {
            return Some(as_it_is());
        }
        // They ask in ways that are not seen, or leave it for those behind them.
        if matches!(class.verb, Verb::Get | Verb::Execute | Verb::Prepare | Verb::Deallocate) {
            return None;
        }
        if !rewrite::asks_in_first(&class) {
            return Some(as_it_is());
        }
        let answered = rewrite::text(&class, statements, &self.answers(), true)?;
        Some(answered.behind(semicolon))
    }

    /// A text whose first words are Weir's, in the place of `head`; the rest is the client's.
    fn find_own(&mut self, put: &[u8], head: &[u8], rest: Rewritten, len: usize, out: &mut Vec<u8>) -> Found {
        let own = rest.behind(put);
        let (class, state) = self.classify(&own.text);
        let found = self.find_text(class, state, &own.text, len, out);
        // What has answers has all of them.
        let is_answered = !own.names.is_empty();
        self.find_instead(found, |sent| sent.filter(|_| !is_answered).unwrap_or(own).begins_with(put, head))
    }

    /// What is sent is another text than the client's.
    fn find_instead(&mut self, found: Found, own: impl FnOnce(Option<Rewritten>) -> Rewritten) -> Found {
        let Found::Request { len, needs } = found else {
            self.shift = 0;
            return found;
        };
        let extra = self.request.extra.get_or_insert_default();
        extra.text = Some(own(extra.text.take()));
        self.request.gathered = true;
        Found::Request { len, needs: Needs { shareable: false, ..needs } }
    }
}
