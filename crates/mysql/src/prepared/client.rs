//! The statements of a client, under Weir's own ids.
//!
//! Owns: their ids, parameter types and long data, and the list of those that tie their client to its server
//! or hold long data. Must not know: servers.

use super::Execute;
use super::Key;
use super::LAST_PREPARED;
use super::Text;
use super::server::own_key;
use crate::binding::{self, Binding, Wants};
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
    /// What the execution under way wants of its copy.
    pub wants: Wants,
}

/// What a server has settled of the parameters of a client's statement, and how another one comes to the
/// same.
#[derive(Debug, Default)]
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
    /// What an execution of it wants of a copy that cannot be executed first.
    pub(crate) fn wanted(&self, payload: &[u8], execute: &Execute) -> Wants {
        match self.settled.as_deref() {
            Some(Settled { base, example: None }) => {
                binding::wants(base, &self.text.text, payload, execute, &self.types, &self.long_data)
            }
            Some(_) | None => Wants::Nothing,
        }
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

/// The statements of a client.
#[derive(Debug, Default)]
pub(crate) struct ClientStatements {
    by_id: HashMap<u32, ClientStatement, RandomState>,
    last_id: u32,
    /// MariaDB: the one that [`LAST_PREPARED`] stands for; 0: none, also behind a preparation that failed.
    last_prepared: u32,
    /// Some may read user variables.
    read_variables: bool,
    /// Bytes of their texts.
    bytes: usize,
    /// The one that may have been changed last; 0: none.
    touched: u32,
    /// Of the others, those that tie their client to its server or hold long data: asked about at each
    /// request, and nearly always none.
    notable: Vec<u32>,
}

impl ClientStatement {
    /// It ties its client to its server, or holds long data.
    fn is_notable(&self) -> bool {
        self.cursor || self.sent_ahead || self.mixed || !self.long_data.is_empty()
    }
}

impl ClientStatements {
    /// What became of the statement that was changed last is noted, and this one is now the one.
    fn touch(&mut self, id: u32) {
        let last = std::mem::replace(&mut self.touched, id);
        if last == id || last == 0 {
            return;
        }
        self.notable.retain(|&other| other != last);
        if self.by_id.get(&last).is_some_and(ClientStatement::is_notable) {
            self.notable.push(last);
        }
    }

    /// Those that may tie their client to its server or hold long data.
    fn notable(&self) -> impl Iterator<Item = &ClientStatement> {
        let others = self.notable.iter().filter(|&&id| id != self.touched);
        others.chain(std::iter::once(&self.touched)).filter_map(|id| self.by_id.get(id))
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
        self.last_id = id;
        self.read_variables |= statement.class.uses.contains(Uses::USER_VARIABLE_READ);
        self.bytes += statement.text.text.len();
        self.touch(id);
        self.by_id.insert(id, statement);
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
        self.by_id.get(&self.resolve(id))
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut ClientStatement> {
        let id = self.resolve(id);
        self.touch(id);
        self.by_id.get_mut(&id)
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<ClientStatement> {
        let id = self.resolve(id);
        let statement = self.by_id.remove(&id)?;
        if self.last_prepared == id {
            self.last_prepared = 0;
        }
        self.notable.retain(|&other| other != id);
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
        let mut texts: Vec<_> = self.by_id.iter().filter(|(_, one)| of_any(one)).collect();
        texts.sort_unstable_by_key(|(id, _)| **id);
        texts.into_iter().map(|(_, one)| one.text.clone()).collect::<Vec<_>>().into_iter()
    }

    /// Some statement has a cursor open.
    pub(crate) fn any_cursor(&self) -> bool {
        self.notable().any(|statement| statement.cursor)
    }

    /// Only its server has settled the same of some statement's parameters.
    pub(crate) fn any_mixed(&self) -> bool {
        self.notable().any(|statement| statement.mixed)
    }

    /// Some statement has long data on a server.
    pub(crate) fn any_sent_ahead(&self) -> bool {
        self.notable().any(|statement| statement.sent_ahead)
    }

    pub(crate) fn long_data_bytes(&self) -> usize {
        self.notable().map(|statement| statement.long_data.len()).sum()
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
