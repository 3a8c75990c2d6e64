//! The statements of a client, under Weir's own ids.
//!
//! Owns: their ids, parameter types and long data, and the list of those that tie their client to its server
//! or hold long data. Must not know: servers.

use super::Execute;
use super::Key;
use super::LAST_PREPARED;
use super::Text;
use super::server::own_key;
use crate::binding::{self, Binding, Change, Wants};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;
use weir_sql::Class;
use weir_sql::Dialect;
use weir_sql::Kill;
use weir_sql::Uses;
use weir_sql::catalogue::Proof;
use weir_sql::classify_in;
use weir_wire::limits;

/// A statement of a client.
#[derive(Debug)]
pub(crate) struct ClientStatement {
    pub text: Arc<Text>,
    pub class: Box<Class>,
    /// The state of the catalogue by which that was judged; 0: none.
    pub judged_by: u64,
    /// How its text is read.
    pub dialect: Dialect,
    pub params: u16,
    /// What its parameters were to the server that prepared it for its client, where that matters.
    pub kinds: Binding,
    /// Two bytes for each parameter, as last bound; empty when none were.
    pub types: Box<[u8]>,
    /// COM_STMT_SEND_LONG_DATA packets as they came.
    pub long_data: Vec<u8>,
    /// Long data was sent ahead to a server: only that server can execute.
    pub sent_ahead: bool,
    /// Its last execution left warnings. They cannot be had again, so the next one does not stand among
    /// others.
    pub warned: bool,
    /// A cursor is open.
    pub cursor: bool,
    /// It is a KILL, which no server executes.
    pub kill: Option<Kill>,
    /// What the server has settled of its parameters, where it does.
    pub settled: Option<Box<Settled>>,
    /// Executions had several types: only the server that had them all has settled the same.
    pub mixed: bool,
    /// What was settled before the execution that is under way, if that changes it: an error may come first.
    pub before: Option<Box<Before>>,
    /// The parameters of an execution that failed, where nobody knows whether it has settled them.
    pub doubt: Option<Binding>,
}

/// What was settled before an execution that changes it.
#[derive(Debug)]
pub(crate) struct Before {
    /// Nothing, if that is the first.
    settled: Option<Box<Settled>>,
    /// Its parameters.
    binding: Binding,
}

/// What a server has settled of the parameters of a client's statement, and how another one comes to the
/// same.
#[derive(Debug, Default, Clone)]
pub(crate) struct Settled {
    /// An execution by which any server comes to it.
    pub base: Binding,
    /// That execution, as the client sent it, of a statement that only reads.
    pub example: Option<Box<[u8]>>,
}

impl ClientStatement {
    /// Judges its text anew, by what is known of the database now.
    pub fn judge(&mut self, proof: Option<Proof>) {
        (*self.class, self.judged_by) = classify_in(self.dialect, &self.text.text, proof);
    }
}

impl ClientStatement {
    /// An execution with these parameters is about to change what is settled. If it is sent again, to another
    /// server, it is still the same one.
    pub(super) fn remember(&mut self, binding: &Binding) {
        if self.before.is_none() {
            let (settled, binding) = (self.settled.clone(), binding.clone());
            self.before = Some(Box::new(Before { settled, binding }));
        }
    }

    /// Its execution is over. True: what it was to settle may not be settled, so that the copy it ran on is
    /// of no use.
    pub(crate) fn end_execution(&mut self, settles: Settles) -> bool {
        let Some(before) = self.before.take() else { return false };
        let Before { settled, binding } = *before;
        if settles == Settles::Yes {
            self.doubt.take_if(|doubt| *doubt == binding);
            return false;
        }
        self.settled = settled;
        if settles == Settles::Perhaps {
            self.doubt = Some(binding);
        }
        true
    }

    /// An execution with these parameters may give another value according to whether one that failed has
    /// settled them. The same once more comes to the same.
    pub(crate) fn is_in_doubt(&self, binding: &Binding) -> bool {
        let Some(doubt) = self.doubt.as_ref().filter(|doubt| *doubt != binding) else { return false };
        !(binding::has_values_only(&self.text.text) && binding::are_alike(doubt, binding))
    }

    /// What an execution of it wants of a copy that cannot be executed first.
    pub(crate) fn wanted(&self, payload: &[u8], execute: &Execute) -> Wants {
        match self.settled.as_deref() {
            Some(Settled { base, example: None }) => {
                binding::wants(base, &self.text.text, payload, execute, &self.types, &self.long_data)
            }
            Some(_) | None => Wants::Nothing,
        }
    }

    /// This execution has parameters of other types than those before it, or one of those had: its client
    /// keeps the server that runs it.
    pub(crate) fn mixes(&self, payload: &[u8], execute: &Execute) -> bool {
        let Some(settled) = self.settled.as_deref().filter(|_| !self.mixed) else { return self.mixed };
        let now = binding::of(payload, execute, &self.types, &self.long_data, Some(&settled.base));
        matches!(binding::change(&settled.base, &now), Change::Mixes)
    }

    pub(crate) fn key(&self, client: u64, id: u32, private: bool) -> Key {
        let fresh = Key::fresh(self.text.clone());
        match (private || self.cursor || self.sent_ahead).then_some((client, id)) {
            // What was executed last was executed there.
            Some(executor) if self.mixed && !self.sent_ahead => own_key(&fresh, executor),
            private => Key { private, ..fresh },
        }
    }
}

/// Whether an execution has settled the parameters of its statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settles {
    Yes,
    No,
    /// It has failed with an error that may come before that and behind it.
    Perhaps,
}

/// The statements of a client.
#[derive(Debug, Default)]
pub(crate) struct ClientStatements {
    by_id: HashMap<u32, Place, RandomState>,
    all: Vec<Option<ClientStatement>>,
    /// Places that are free again.
    free: Vec<Place>,
    last_id: u32,
    /// MariaDB: the one that [`LAST_PREPARED`] stands for; 0: none, also behind a preparation that failed.
    last_prepared: u32,
    /// Some may read user variables.
    read_variables: bool,
    /// Bytes of their texts.
    bytes: usize,
    /// The one that may have been changed last, which the next requests are mostly about, and its place; 0:
    /// none.
    touched: u32,
    touched_at: Place,
    /// Those that tie their client to its server or hold long data, and were not changed since: nearly always
    /// none. The one that was changed last may be among them.
    notable: Vec<Place>,
    /// What these come to without that one: asked about several times in each request.
    others: Ties,
}

/// Where a statement stands in `all`.
type Place = u32;

/// What ties a client to its server because of its statements.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ties {
    /// Some statement has a cursor open.
    pub cursor: bool,
    /// Only its server has settled the same of some statement's parameters.
    pub mixed: bool,
    /// Some statement has long data on a server.
    pub sent_ahead: bool,
    pub long_data_bytes: usize,
}

impl Ties {
    fn add(&mut self, statement: &ClientStatement) {
        self.cursor |= statement.cursor;
        self.mixed |= statement.mixed;
        self.sent_ahead |= statement.sent_ahead;
        self.long_data_bytes += statement.long_data.len();
    }
}

impl ClientStatement {
    /// It ties its client to its server, or holds long data.
    fn is_notable(&self) -> bool {
        self.cursor || self.sent_ahead || self.mixed || !self.long_data.is_empty()
    }
}

impl ClientStatements {
    /// What became of the statement that was changed last is noted, and this one is now the one.
    fn touch(&mut self, id: u32, place: Place) {
        let last = std::mem::replace(&mut self.touched, id);
        let last_at = std::mem::replace(&mut self.touched_at, place);
        if last == id {
            return;
        }
        if last != 0 {
            self.notable.retain(|&other| other != last_at);
            if self.at(last_at).is_some_and(ClientStatement::is_notable) {
                self.notable.push(last_at);
            }
        }
        self.sum_up_others();
    }

    fn sum_up_others(&mut self) {
        let mut ties = Ties::default();
        let others = self.notable.iter().filter(|&&place| self.touched == 0 || place != self.touched_at);
        others.filter_map(|&place| self.at(place)).for_each(|statement| ties.add(statement));
        self.others = ties;
    }

    fn place(&self, id: u32) -> Option<Place> {
        if id == self.touched && id != 0 {
            return Some(self.touched_at);
        }
        self.by_id.get(&id).copied()
    }

    fn at(&self, place: Place) -> Option<&ClientStatement> {
        self.all.get(place as usize)?.as_ref()
    }

    /// What they all come to.
    #[inline]
    pub(crate) fn ties(&self) -> Ties {
        let mut ties = self.others;
        if self.touched != 0
            && let Some(statement) = self.at(self.touched_at)
        {
            ties.add(statement);
        }
        ties
    }

    /// The number the next statement gets, if there is room for one with a text of `bytes`.
    pub(crate) fn next_id(&self, bytes: usize) -> Option<u32> {
        let full = self.by_id.len() >= limits::CLIENT_PREPARED;
        if full || self.bytes.saturating_add(bytes) > limits::CLIENT_PREPARED_BYTES {
            return None;
        }
        let free = |id: &u32| *id != 0 && *id != LAST_PREPARED && !self.by_id.contains_key(id);
        (1..=u32::MAX).map(|step| self.last_id.wrapping_add(step)).find(free)
    }

    pub(crate) fn insert(&mut self, id: u32, statement: ClientStatement) {
        self.remove(id);
        self.last_id = id;
        self.read_variables |= statement.class.uses.contains(Uses::USER_VARIABLE_READ);
        self.bytes += statement.text.text.len();
        let place = self.free.pop().unwrap_or(self.all.len() as Place);
        match self.all.get_mut(place as usize) {
            Some(free) => *free = Some(statement),
            None => self.all.push(Some(statement)),
        }
        self.by_id.insert(id, place);
        self.touch(id, place);
    }

    /// This one was prepared last; 0: one is being prepared, or could not be.
    pub(crate) fn set_last(&mut self, id: u32) {
        self.last_prepared = id;
    }

    /// The number that `id` stands for.
    pub(crate) fn resolve(&self, id: u32) -> u32 {
        if id == LAST_PREPARED { self.last_prepared } else { id }
    }

    pub(crate) fn get(&self, id: u32) -> Option<&ClientStatement> {
        self.at(self.place(self.resolve(id))?)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut ClientStatement> {
        let id = self.resolve(id);
        let place = self.place(id)?;
        self.touch(id, place);
        self.all.get_mut(place as usize)?.as_mut()
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<ClientStatement> {
        let id = self.resolve(id);
        let place = self.by_id.remove(&id)?;
        let statement = self.all.get_mut(place as usize)?.take()?;
        self.free.push(place);
        if self.touched == id {
            self.touched = 0;
        }
        if self.last_prepared == id {
            self.last_prepared = 0;
        }
        self.notable.retain(|&other| other != place);
        self.sum_up_others();
        self.bytes -= statement.text.text.len();
        Some(statement)
    }

    /// Some may read user variables.
    pub(crate) fn read_variables(&self) -> bool {
        self.read_variables
    }

    /// Texts of statements that any server may prepare, of those that `wanted` says.
    pub(crate) fn texts(&self, wanted: impl Fn(&Class) -> bool) -> impl Iterator<Item = Arc<Text>> {
        let of_any = |one: &&ClientStatement| !one.is_notable() && one.kill.is_none() && wanted(&one.class);
        let all = self.by_id.iter().filter_map(|(id, place)| Some((id, self.at(*place)?)));
        let mut texts: Vec<_> = all.filter(|(_, one)| of_any(one)).collect();
        texts.sort_unstable_by_key(|(id, _)| *id);
        texts.into_iter().map(|(_, one)| one.text.clone()).collect::<Vec<_>>().into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_never_zero_nor_the_last() {
        let mut statements = ClientStatements { last_id: u32::MAX - 2, ..ClientStatements::default() };
        let id = statements.next_id(1).unwrap();
        assert_eq!(id, u32::MAX - 1);
        statements.last_id = id;
        assert_eq!(statements.next_id(1), Some(1));
    }
}
