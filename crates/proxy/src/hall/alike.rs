//! The same question, asked once: identical reads that wait in the queue at the same moment are sent once.
//!
//! A client that would join the queue, where another one waits with the same request and the same settings,
//! does not: it *follows* that one, the leader. When the leader's request is sent, nobody can begin to follow
//! any more. So each of them asked before the database began, and the answer is not older than the question
//! of anybody who gets it.
//!
//! Owns: what is overheard of the leader's answer. Must not know: bytes. Who may follow whom is in `lead.rs`,
//! what becomes of the answer in `echo.rs`.
//!
//! Invariants: what is overheard belongs to the one request of the leader that its followers asked; whatever
//! happens to the leader before its answer is whole gives its followers back to the queue, where each asks by
//! itself.

use super::{Hall, Order};
use crate::books::GroupId;
use crate::ids::Key;
use crate::panics::inject;
use crate::pool::PoolId;
use crate::wing::{Back, Wing};
use weir_net::Net;
use weir_wire::{Boundary, Fault, Step, limits};

/// What is heard of an answer for which others wait, too.
pub(super) struct Echo<W: Wing> {
    /// The server's own bytes.
    pub(super) answer: Vec<u8>,
    /// What the leader has got for them.
    pub(super) said: Vec<u8>,
    /// It is whole: this one repeats it. `None`: it is still coming.
    pub(super) voice: Option<Box<W::Back>>,
}

impl<W: Wing> Default for Echo<W> {
    fn default() -> Self {
        Echo { answer: Vec::new(), said: Vec::new(), voice: None }
    }
}

impl<W: Wing, N: Net> Hall<W, N> {
    /// A client asks for nobody but itself any more, without an answer for the others. `again`: its request
    /// was not sent, and one of them may ask for the rest.
    pub(super) fn part(&mut self, key: Key, again: bool) {
        inject::here("part");
        let Some(group) = self.books().leads_no_more(key) else { return };
        let Some(id) = self.clients.get(key).and_then(|client| client.pool) else { return };
        self.echoes.remove(&(id, group));
        self.todo.push_back(Order::Scatter { pool: id, group, again });
    }

    /// What this client asked is being answered, and others wait for that.
    pub(super) fn is_overheard(&self, owner: Option<Key>) -> bool {
        !self.echoes.is_empty() && self.group_of(owner).is_some_and(|group| self.echoes.contains_key(&group))
    }

    /// Whose answer a server goes on with, if others wait for that, too.
    pub(super) fn heard_by_others(&mut self, server: Key) -> Option<Key> {
        if self.echoes.is_empty() {
            return None;
        }
        let back = self.servers.get_mut(server)?.back().filter(|back| back.answers_head())?;
        let head = back.head().and_then(Key::from_raw);
        head.filter(|_| self.is_overheard(head))
    }

    /// A step of that answer: these bytes begin with what it dealt with.
    pub(super) fn overhear_step(&mut self, leader: Option<Key>, step: &Result<Step, Fault>, bytes: &[u8]) {
        if let (Some(_), Ok(Step::Forward(len) | Step::Consumed(len))) = (leader, step) {
            self.overhear(leader, bytes.get(..*len).unwrap_or_default(), &[]);
        }
    }

    /// An answer for these is still being given.
    pub(crate) fn is_echoed(&self, id: PoolId, group: GroupId) -> bool {
        self.echoes.get(&(id, group)).is_some_and(|echo| echo.voice.is_some())
    }

    fn group_of(&self, leader: Option<Key>) -> Option<(PoolId, GroupId)> {
        let leader = self.clients.get(leader?)?;
        leader.pool.zip(leader.claim.leads())
    }

    /// Bytes of a server's answer to a client for which others wait, too, or what that client has got for
    /// them.
    pub(super) fn overhear(&mut self, leader: Option<Key>, answer: &[u8], said: &[u8]) {
        let Some(echo) = self.group_of(leader).and_then(|group| self.echoes.get_mut(&group)) else { return };
        if echo.answer.len().max(echo.said.len()) + answer.len().max(said.len()) > limits::SHARED_ANSWER_BYTES
        {
            // Too much to be kept: the others ask by themselves.
            if let Some(leader) = leader {
                self.part(leader, false);
            }
            return;
        }
        echo.answer.extend_from_slice(answer);
        echo.said.extend_from_slice(said);
    }

    /// A client's request is answered: what was heard goes to those who wait for it, if it is for them.
    pub(super) fn heard_out(&mut self, key: Key, server: Key, boundary: Boundary) {
        let Some((id, group)) = self.group_of(Some(key)) else { return };
        let pinned = !self.pins(key).is_empty();
        let back = self.servers.get_mut(server).and_then(|server| server.back());
        let echo = self.echoes.get_mut(&(id, group));
        if let (Some(back), Some(echo)) = (back, echo)
            && boundary == Boundary::Idle
            && !pinned
            && back.is_plain_answer(&echo.answer)
        {
            echo.voice = Some(Box::new(back.echo()));
            self.books().leads_no_more(key);
            self.todo.push_back(Order::Echo(id, group));
        } else {
            self.part(key, false);
        }
    }
}
