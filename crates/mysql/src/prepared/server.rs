//! The statements of a server: copies of what clients have prepared.
//!
//! Owns: which copies exist, which of them is evicted for another, and closing it. Must not know: clients.
//!
//! Invariant: the number of copies never exceeds its bound.

use super::ClientStatement;
use super::Execute;
use super::Key;
use super::PrepareReply;
use super::Settled;
use super::Text;
use crate::binding;
use crate::binding::Binding;
use crate::binding::Change;
use crate::binding::Wants;
use crate::frame;
use crate::message::Command;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;
use weir_wire::limits;

/// A statement on a server.
#[derive(Debug)]
pub(crate) struct ServerStatement {
    pub id: u32,
    /// The types bound last; empty when none were.
    pub types: Box<[u8]>,
    /// What its parameters are to the server, from its prepare on.
    pub kinds: Binding,
    /// Of another text than its key's, with an answer in it that holds for one execution: only the cursor of
    /// that is of use.
    answered: bool,
    /// A cursor was opened on it: where that was its first execution, MySQL answers one without a cursor
    /// wrongly.
    pub had_cursor: bool,
    used: u64,
}

/// What a server said of a text.
#[derive(Debug)]
struct Said {
    reply: Arc<PrepareReply>,
    /// The state of the catalogue it was said in; 0: of none that is known.
    state: u64,
    /// Copies of the text.
    copies: usize,
}

/// The statements of a server.
#[derive(Debug)]
pub(crate) struct ServerStatements {
    by_key: HashMap<Key, ServerStatement, RandomState>,
    /// What a COM_STMT_PREPARE of a text that has copies was answered last.
    replies: HashMap<Arc<Text>, Said>,
    /// Numbers of statements that are no longer known here and must be closed.
    leaving: Vec<u32>,
    most: usize,
    /// Bytes of the texts, counted for each copy.
    bytes: usize,
    clock: u64,
}

impl ServerStatements {
    /// No statements, and never more than `most` (at least one).
    pub(crate) fn new(most: usize) -> ServerStatements {
        let (replies, leaving) = (HashMap::new(), Vec::new());
        ServerStatements {
            by_key: HashMap::default(),
            replies,
            leaving,
            most: most.max(1),
            bytes: 0,
            clock: 0,
        }
    }

    /// The statement, which thereby is the one used last.
    pub(crate) fn touch(&mut self, key: &Key) -> Option<&mut ServerStatement> {
        self.clock += 1;
        let statement = self.by_key.get_mut(key)?;
        statement.used = self.clock;
        Some(statement)
    }

    /// There is a copy of this text that is not one client's own.
    pub(crate) fn has_shared(&self, text: &Arc<Text>) -> bool {
        self.by_key.keys().any(|key| key.private.is_none() && key.text == *text)
    }

    /// What this server said when this text was prepared last.
    pub(crate) fn reply_to(&self, text: &Arc<Text>) -> Option<Arc<PrepareReply>> {
        self.replies.get(text).map(|said| said.reply.clone())
    }

    /// Whether this server has said in this very state of the catalogue what the text means, and had nothing
    /// to warn of: it would say the same again.
    pub(crate) fn would_say_again(&self, text: &Arc<Text>, state: u64) -> bool {
        state != 0
            && self.replies.get(text).is_some_and(|said| said.state == state && said.reply.warnings == 0)
    }

    /// A statement was prepared while the catalogue was in this state (0: none that is known). Appends to
    /// `out` the closing of those that have to leave for it.
    pub(crate) fn insert(
        &mut self,
        key: Key,
        id: u32,
        reply: Arc<PrepareReply>,
        state: u64,
        out: &mut Vec<u8>,
    ) {
        self.clock += 1;
        let text = key.text.clone();
        self.close(&key, out);
        let kinds = reply.kinds();
        let (types, answered, used) = (Box::default(), false, self.clock);
        let copy = ServerStatement { id, types, kinds, answered, had_cursor: false, used };
        self.by_key.insert(key, copy);
        self.bytes += text.text.len();
        let copies = self.replies.get(&text).map_or(0, |said| said.copies) + 1;
        self.replies.insert(text, Said { reply, state, copies });
        while self.by_key.len() > self.most
            || self.bytes > limits::SERVER_PREPARED_BYTES && self.by_key.len() > 1
        {
            let oldest = self.by_key.iter().min_by_key(|(_, statement)| statement.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
            self.close(&key, out);
        }
    }

    /// This copy was prepared when the text's parameters were something else, because its tables were.
    pub(crate) fn is_of_other_kinds(&self, key: &Key, kinds: &Binding) -> bool {
        !kinds.is_empty() && self.by_key.get(key).is_some_and(|copy| copy.kinds != *kinds)
    }

    /// The key of the copy that gives the answer this client's statement would get without Weir, with these
    /// parameters; and what has to be executed on it first, if it has to be prepared.
    ///
    /// While all executions had parameters of the same types, that is any copy of which this is true as well:
    /// with NULL in some places a server keeps what it has settled. From then on it is one of its own, which
    /// has seen all that. `alone`: it runs on a copy of its own in any case, this time. `example`: the
    /// execution, if it may be repeated. `wants`: what it wants where nothing may be.
    ///
    /// `None`: only a copy will do that is not here and cannot be made.
    pub(crate) fn copy_for(
        &mut self,
        statement: &mut ClientStatement,
        executor: (u64, u32),
        binding: Binding,
        alone: bool,
        example: Option<(&Execute, &[u8])>,
        wants: Wants,
    ) -> Option<(Key, Option<Box<[u8]>>)> {
        let fresh = Key::fresh(statement.text.clone());
        let change = match statement.settled.as_deref() {
            None => Change::Settles(binding.clone()),
            Some(_) if statement.mixed => Change::Mixes,
            Some(settled) => binding::change(&settled.base, &binding),
        };
        if matches!(change, Change::Settles(_)) {
            statement.remember(&binding);
        }
        let settled = statement.settled.get_or_insert_default();
        let found = match change {
            Change::Settles(base) => {
                let example =
                    example.and_then(|(execute, payload)| execute.with_types(payload, &statement.types));
                **settled = Settled { base: base.clone(), example };
                (self.take_fresh(fresh, base, alone), None)
            }
            Change::Keeps if binding == settled.base => (self.take_fresh(fresh, binding, alone), None),
            Change::Keeps => {
                let key = Key { binding: Some(settled.base.clone()), ..fresh };
                if settled.example.is_some() || self.by_key.contains_key(&key) {
                    return Some((key, settled.example.clone()));
                }
                // It writes, so it cannot be executed first.
                (Key { binding: Some(binding), ..key }, None)
            }
            Change::Mixes => {
                let own = own_key(&fresh, executor);
                let shared = Key { binding: Some(settled.base.clone()), ..fresh.clone() };
                let is_here = [&own, &shared].iter().any(|key| self.by_key.contains_key(key));
                let writes = settled.example.is_none();
                if writes && wants == Wants::OnlySettled && !is_here {
                    return None;
                }
                let by_itself = writes && !alone && !statement.mixed;
                let by_itself = by_itself && binding::has_values_only(&statement.text.text);
                if by_itself && wants == Wants::OnlySettled {
                    // It stays as it is.
                    return Some((shared, None));
                }
                let merged = binding::merged(&settled.base, &binding);
                // Where it is neither, no copy but this client's own will have seen the like.
                let is_alike = by_itself && (merged == settled.base || merged == binding);
                if is_alike || writes && !is_here && !statement.mixed {
                    statement.remember(&binding);
                    statement.settled.get_or_insert_default().base = merged;
                    return Some((self.take_fresh(fresh, binding, alone), None));
                }
                if !std::mem::replace(&mut statement.mixed, true) {
                    // From now on it is of no use to others.
                    self.rename(&shared, own.clone());
                }
                (own, settled.example.clone())
            }
        };
        Some(found)
    }

    /// This server has settled a statement's parameters as it was executed for this client.
    pub(crate) fn has_settled(&self, statement: &ClientStatement, executor: (u64, u32)) -> bool {
        let fresh = Key::fresh(statement.text.clone());
        let own = own_key(&fresh, executor);
        let base = statement.settled.as_deref().map(|settled| settled.base.clone());
        self.by_key.contains_key(&Key { binding: base, ..fresh }) || self.by_key.contains_key(&own)
    }

    /// The key of a copy that was executed with these parameters only; one that nobody has executed becomes
    /// it where there is none.
    fn take_fresh(&mut self, fresh: Key, binding: Binding, alone: bool) -> Key {
        let key = Key { binding: Some(binding), ..fresh.clone() };
        if !alone && !self.by_key.contains_key(&key) {
            self.rename(&fresh, key.clone());
        }
        key
    }

    /// A copy is known by another key from here on, of the same text.
    pub(crate) fn rename(&mut self, from: &Key, to: Key) {
        if *from == to || !self.by_key.contains_key(from) {
            return;
        }
        let before = self.forget(&to);
        self.leaving.extend(before);
        if let Some(statement) = self.by_key.remove(from) {
            self.by_key.insert(to, statement);
        }
    }

    /// The copy of this key, which is of one client's statement, is of its text.
    fn has_own(&self, own: &Key) -> bool {
        self.by_key.get(own).is_some_and(|copy| !copy.answered)
    }

    /// The copy of a statement that all clients use.
    fn shared_copy(&self, statement: &ClientStatement) -> Option<Key> {
        let fresh = Key::fresh(statement.text.clone());
        let settled = statement.settled.as_deref().map(|settled| settled.base.clone());
        let executed = Key { binding: settled, ..fresh.clone() };
        [executed, fresh].into_iter().find(|key| self.by_key.contains_key(key))
    }

    /// There is such a copy and no other one would do better. `closes`: an execution without a cursor is to
    /// come, which one that had a cursor may answer wrongly.
    pub(crate) fn serves_on(&self, statement: &ClientStatement, own: &Key, closes: bool) -> bool {
        let had_cursor = || self.by_key.get(own).is_some_and(|copy| copy.had_cursor);
        self.has_own(own) && !(closes && had_cursor() && self.shared_copy(statement).is_some())
    }

    /// The copy that all clients use becomes the one of this key, if that has none: it is as good as another
    /// that would be prepared. With `stays` the statement cannot be prepared anew.
    pub(crate) fn take_over(&mut self, statement: &ClientStatement, own: &Key, closes: bool, stays: bool) {
        let shared = self.shared_copy(statement);
        let had_cursor = self.by_key.get(own).is_some_and(|copy| copy.had_cursor);
        if closes && had_cursor && (shared.is_some() || !stays) {
            self.give_up(own);
        }
        if let Some(shared) = shared.filter(|_| !self.has_own(own)) {
            self.rename(&shared, own.clone());
        }
    }

    /// A copy of a text with an answer in it has a cursor open, which its client knows by its own text.
    pub(crate) fn keep_answered(&mut self, answered: &Key, own: Key) {
        let before = self.forget(&own);
        self.leaving.extend(before);
        let Some(reply) = self.reply_to(&answered.text) else { return self.give_up(answered) };
        let Some(id) = self.forget(answered) else { return };
        let (types, kinds, used) = (Box::default(), reply.kinds(), self.clock);
        self.bytes += own.text.text.len();
        let said = self.replies.entry(own.text.clone()).or_insert(Said { reply, state: 0, copies: 0 });
        said.copies += 1;
        let copy = ServerStatement { id, types, kinds, answered: true, had_cursor: true, used };
        self.by_key.insert(own, copy);
    }

    /// A copy is executed: not one with the answer of another execution.
    pub(crate) fn drop_answered(&mut self, key: &Key) {
        if key.private.is_some() && self.by_key.get(key).is_some_and(|copy| copy.answered) {
            self.give_up(key);
        }
    }

    /// A copy is of no use any more; it is closed with the next request.
    pub(crate) fn give_up(&mut self, key: &Key) {
        let id = self.forget(key);
        self.leaving.extend(id);
    }

    /// Appends the closing of statements that were given up where nothing could be sent.
    pub(crate) fn put_closes(&mut self, out: &mut Vec<u8>) {
        self.leaving.drain(..).for_each(|id| put_close(out, id));
    }

    /// Forgets a statement and appends its closing.
    pub(crate) fn close(&mut self, key: &Key, out: &mut Vec<u8>) {
        if let Some(id) = self.forget(key) {
            put_close(out, id);
        }
    }

    /// The server no longer has this statement. Returns its number there.
    pub(crate) fn forget(&mut self, key: &Key) -> Option<u32> {
        let statement = self.by_key.remove(key)?;
        self.bytes -= key.text.text.len();
        if let Some(said) = self.replies.get_mut(&key.text) {
            said.copies -= 1;
            if said.copies == 0 {
                self.replies.remove(&key.text);
            }
        }
        Some(statement.id)
    }

    /// The server no longer has any.
    pub(crate) fn clear(&mut self) {
        self.by_key.clear();
        self.bytes = 0;
        self.replies.clear();
        self.leaving.clear();
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }
}

/// The key of a copy that has seen parameters of several types.
pub(super) fn own_key(fresh: &Key, executor: (u64, u32)) -> Key {
    Key { private: Some(executor), binding: Some(Binding::default()), ..fresh.clone() }
}

fn put_close(out: &mut Vec<u8>, id: u32) {
    frame::put(out, 0, |out| {
        out.push(Command::StmtClose as u8);
        out.extend_from_slice(&id.to_le_bytes());
    });
}
