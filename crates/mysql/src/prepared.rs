//! Prepared statements in two levels: what a client calls a number, and what a server does.
//!
//! Owns: the statements of a client under numbers of Weir's own, the statements of a server with the
//! least recently used leaving first, parameter types, long data.
//! Must not know: queues, replies, sockets.
//!
//! Invariants: one copy for each server, text and shape of session (schema, charset, sql_mode and what
//! else a statement's meaning is fixed by when it is prepared); a statement with an open cursor or with
//! long data sent ahead has a copy of its own, so that no other statement of the same text closes or fills it;
//! a server never has more than its bound.

use crate::frame;
use crate::message::ok::{self, OkPacket};
use crate::message::{Capabilities, Command};
use crate::session_state::State;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use weir_sql::Class;
use weir_wire::{Reader, Short, limits};

/// Bytes of long data kept for one client; more of it goes to a pinned server as it comes.
pub(crate) const LONG_DATA_BYTES: usize = 256 * 1024;

/// The number that means "the statement prepared last" (MariaDB's drivers prepare and execute in one go).
pub(crate) const LAST_PREPARED: u32 = u32::MAX;

/// What a statement is: its text and what fixes its meaning.
#[derive(Debug)]
pub(crate) struct Text {
    hash: u64,
    /// The client's state when it prepared, as far as it matters.
    pub shape: State,
    /// As the server gets it.
    pub text: Box<[u8]>,
}

impl Text {
    pub(crate) fn new(shape: State, text: Box<[u8]>) -> Text {
        let mut hasher = DefaultHasher::new();
        (&shape, &text).hash(&mut hasher);
        Text { hash: hasher.finish(), shape, text }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.hash == other.hash && self.text == other.text && self.shape == other.shape
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// What a server's copy is found by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub text: Arc<Text>,
    /// The client and its statement, if the copy is only for it.
    pub private: Option<(u32, u32)>,
}

/// A statement of a client.
#[derive(Debug)]
pub(crate) struct ClientStatement {
    pub text: Arc<Text>,
    pub class: Box<Class>,
    pub params: u16,
    /// Two bytes for each parameter, as last bound; empty when none were.
    pub types: Box<[u8]>,
    /// COM_STMT_SEND_LONG_DATA packets as they came.
    pub long_data: Vec<u8>,
    /// Long data was sent ahead to a server: only that server can execute.
    pub sent_ahead: bool,
    /// A cursor is open.
    pub cursor: bool,
}

impl ClientStatement {
    pub(crate) fn key(&self, client: u32, id: u32, private: bool) -> Key {
        let private = (private || self.cursor || self.sent_ahead).then_some((client, id));
        Key { text: self.text.clone(), private }
    }
}

/// The statements of a client.
#[derive(Debug, Default)]
pub(crate) struct ClientStatements {
    by_id: HashMap<u32, ClientStatement>,
    last_id: u32,
    /// Some statement asks for FOUND_ROWS() or ROW_COUNT(), which cannot be answered in its text.
    pub asks_about_last: bool,
}

impl ClientStatements {
    /// The number the next statement gets, if there is room for one.
    pub(crate) fn next_id(&self) -> Option<u32> {
        if self.by_id.len() >= limits::CLIENT_PREPARED {
            return None;
        }
        let free = |id: &u32| *id != 0 && *id != LAST_PREPARED && !self.by_id.contains_key(id);
        (1..=u32::MAX).map(|step| self.last_id.wrapping_add(step)).find(free)
    }

    pub(crate) fn insert(&mut self, id: u32, statement: ClientStatement) {
        self.last_id = id;
        self.by_id.insert(id, statement);
    }

    /// The number that `id` stands for.
    pub(crate) fn resolve(&self, id: u32) -> u32 {
        if id == LAST_PREPARED { self.last_id } else { id }
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut ClientStatement> {
        self.by_id.get_mut(&self.resolve(id))
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<ClientStatement> {
        self.by_id.remove(&id)
    }

    /// Some statement has a cursor open.
    pub(crate) fn any_cursor(&self) -> bool {
        self.by_id.values().any(|statement| statement.cursor)
    }

    /// Some statement has long data on a server.
    pub(crate) fn any_sent_ahead(&self) -> bool {
        self.by_id.values().any(|statement| statement.sent_ahead)
    }

    pub(crate) fn long_data_bytes(&self) -> usize {
        self.by_id.values().map(|statement| statement.long_data.len()).sum()
    }
}

/// The reply to a COM_STMT_PREPARE, kept to answer the next one.
#[derive(Debug)]
pub(crate) struct PrepareReply {
    pub params: u16,
    pub columns: u16,
    pub warnings: u16,
    /// The definitions, packet by packet with the server's headers, parameters first.
    pub definitions: Box<[u8]>,
}

impl PrepareReply {
    /// The first packet: number of the statement and the reply without its definitions.
    pub(crate) fn read(payload: &[u8]) -> Result<(u32, PrepareReply), Short> {
        let mut r = Reader::new(payload);
        r.u8()?;
        let id = r.u32_le()?;
        let columns = r.u16_le()?;
        let params = r.u16_le()?;
        // Servers before 5.0 stop here.
        let warnings = if r.rest().len() >= 3 { Reader::new(&r.rest()[1..]).u16_le()? } else { 0 };
        Ok((id, PrepareReply { params, columns, warnings, definitions: Box::default() }))
    }

    /// Appends the whole reply for a client that calls the statement `id`.
    pub(crate) fn write(&self, id: u32, status: u16, capabilities: Capabilities, out: &mut Vec<u8>) {
        let mut seq = frame::put(out, 1, |out| {
            out.push(ok::OK);
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&self.columns.to_le_bytes());
            out.extend_from_slice(&self.params.to_le_bytes());
            out.push(0);
            out.extend_from_slice(&self.warnings.to_le_bytes());
        });
        let mut rest = &*self.definitions;
        for count in [self.params, self.columns] {
            for _ in 0..count {
                let Some(header) = frame::Header::read(rest) else { return };
                let Some(payload) = rest.get(frame::HEADER_BYTES..header.total()) else { return };
                seq = frame::put(out, seq, |out| out.extend_from_slice(payload));
                rest = &rest[header.total()..];
            }
            if count > 0 && !capabilities.has(Capabilities::DEPRECATE_EOF) {
                let end = OkPacket { status, ..OkPacket::default() };
                seq = frame::put(out, seq, |out| end.write(ok::EOF, capabilities, out));
            }
        }
    }
}

/// A statement on a server.
#[derive(Debug)]
pub(crate) struct ServerStatement {
    pub id: u32,
    pub reply: Arc<PrepareReply>,
    /// The types bound last; empty when none were.
    pub types: Box<[u8]>,
    used: u64,
}

/// The statements of a server.
#[derive(Debug)]
pub(crate) struct ServerStatements {
    by_key: HashMap<Key, ServerStatement>,
    bound: usize,
    clock: u64,
}

impl ServerStatements {
    /// No statements, and never more than `bound` (at least one).
    pub(crate) fn new(bound: usize) -> ServerStatements {
        ServerStatements { by_key: HashMap::new(), bound: bound.max(1), clock: 0 }
    }

    /// The statement, which thereby is the one used last.
    pub(crate) fn touch(&mut self, key: &Key) -> Option<&mut ServerStatement> {
        self.clock += 1;
        let statement = self.by_key.get_mut(key)?;
        statement.used = self.clock;
        Some(statement)
    }

    /// A statement was prepared. Appends to `out` the closing of those that have to leave for it.
    pub(crate) fn insert(&mut self, key: Key, id: u32, reply: Arc<PrepareReply>, out: &mut Vec<u8>) {
        self.clock += 1;
        let statement = ServerStatement { id, reply, types: Box::default(), used: self.clock };
        if let Some(old) = self.by_key.insert(key, statement) {
            put_close(out, old.id);
        }
        while self.by_key.len() > self.bound {
            let oldest = self.by_key.iter().min_by_key(|(_, statement)| statement.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
            self.close(&key, out);
        }
    }

    /// Forgets a statement and appends its closing.
    pub(crate) fn close(&mut self, key: &Key, out: &mut Vec<u8>) {
        if let Some(statement) = self.by_key.remove(key) {
            put_close(out, statement.id);
        }
    }

    /// The server no longer has this statement.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.by_key.remove(key);
    }

    /// The server no longer has any.
    pub(crate) fn clear(&mut self) {
        self.by_key.clear();
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }
}

fn put_close(out: &mut Vec<u8>, id: u32) {
    frame::put(out, 0, |out| {
        out.push(Command::StmtClose as u8);
        out.extend_from_slice(&id.to_le_bytes());
    });
}

/// The fixed part of COM_STMT_EXECUTE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Execute {
    pub id: u32,
    /// A cursor is wanted.
    pub cursor: bool,
    /// Where the flag "types follow" stands in the payload; `None` without parameters.
    pub types_flag_at: Option<usize>,
    /// Types follow.
    pub has_types: bool,
}

/// Bytes before the NULL bitmap of COM_STMT_EXECUTE: command, number, flags, iterations.
const EXECUTE_FIXED_BYTES: usize = 10;

impl Execute {
    /// Reads the payload, or its start if that holds all but the values.
    pub(crate) fn read(payload: &[u8], params: u16) -> Result<Execute, Short> {
        let mut r = Reader::new(payload);
        r.u8()?;
        let id = r.u32_le()?;
        let flags = r.u8()?;
        r.u32_le()?;
        let mut execute = Execute { id, cursor: flags & 0x07 != 0, types_flag_at: None, has_types: false };
        if params > 0 {
            let bitmap = usize::from(params).div_ceil(8);
            r.take(bitmap)?;
            execute.types_flag_at = Some(EXECUTE_FIXED_BYTES + bitmap);
            execute.has_types = r.u8()? == 1;
            if execute.has_types {
                r.take(usize::from(params) * 2)?;
            }
        }
        Ok(execute)
    }

    /// The types that follow.
    pub(crate) fn types<'a>(&self, payload: &'a [u8], params: u16) -> &'a [u8] {
        let start = self.types_flag_at.filter(|_| self.has_types).map(|at| at + 1);
        start.and_then(|start| payload.get(start..start + usize::from(params) * 2)).unwrap_or_default()
    }
}

/// The number in the payload of COM_STMT_EXECUTE, _FETCH, _RESET, _CLOSE and _SEND_LONG_DATA.
pub(crate) fn statement_id(payload: &[u8]) -> Result<u32, Short> {
    let mut r = Reader::new(payload);
    r.u8()?;
    r.u32_le()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key { text: Arc::new(Text::new(State::new(45, true).shape(), text.as_bytes().into())), private: None }
    }

    fn reply() -> Arc<PrepareReply> {
        Arc::new(PrepareReply { params: 0, columns: 0, warnings: 0, definitions: Box::default() })
    }

    #[test]
    fn the_least_recently_used_leaves() {
        let mut statements = ServerStatements::new(2);
        let mut out = Vec::new();
        statements.insert(key("a"), 1, reply(), &mut out);
        statements.insert(key("b"), 2, reply(), &mut out);
        assert_eq!(statements.touch(&key("a")).unwrap().id, 1);
        assert!(out.is_empty());
        statements.insert(key("c"), 3, reply(), &mut out);
        assert_eq!(out, [5, 0, 0, 0, 0x19, 2, 0, 0, 0]);
        assert!(statements.touch(&key("b")).is_none());
        assert_eq!(statements.len(), 2);
    }

    #[test]
    fn same_text_in_another_schema_is_another_statement() {
        let shape = State { schema: Some("other".into()), ..State::new(45, true) }.shape();
        let other = Key { text: Arc::new(Text::new(shape, b"a"[..].into())), private: None };
        assert_ne!(key("a"), other);
        assert_eq!(key("a"), key("a"));
        assert_ne!(key("a"), Key { private: Some((1, 1)), ..key("a") });
    }

    #[test]
    fn execute_is_read_up_to_its_types() {
        let mut payload = vec![0x17, 5, 0, 0, 0, 1, 1, 0, 0, 0];
        assert_eq!(Execute::read(&payload, 0).unwrap().cursor, true);
        assert!(Execute::read(&payload, 9).is_err());
        payload.extend_from_slice(&[0, 0, 1]);
        assert!(Execute::read(&payload, 9).is_err());
        payload.extend_from_slice(&[3; 18]);
        let execute = Execute::read(&payload, 9).unwrap();
        assert_eq!((execute.id, execute.types_flag_at, execute.has_types), (5, Some(12), true));
        assert_eq!(execute.types(&payload, 9), [3; 18]);
    }

    #[test]
    fn prepare_reply_for_clients_with_and_without_eof() {
        let mut definitions = Vec::new();
        frame::put(&mut definitions, 2, |out| out.extend_from_slice(b"param"));
        frame::put(&mut definitions, 3, |out| out.extend_from_slice(b"col"));
        let reply = PrepareReply { params: 1, columns: 1, warnings: 0, definitions: definitions.into() };
        let mut new = Vec::new();
        reply.write(7, 2, Capabilities::DEPRECATE_EOF, &mut new);
        let mut old = Vec::new();
        reply.write(7, 2, Capabilities::default(), &mut old);
        assert_eq!(old.len(), new.len() + 2 * 9);
        assert_eq!(&old[16 + 9..16 + 9 + 9], [5, 0, 0, 3, 0xFE, 0, 0, 2, 0]);
        let seqs = |mut bytes: &[u8]| {
            let mut found = Vec::new();
            while let Some(header) = frame::Header::read(bytes) {
                found.push(header.seq);
                bytes = &bytes[header.total()..];
            }
            found
        };
        assert_eq!(seqs(&new), [1, 2, 3]);
        assert_eq!(seqs(&old), [1, 2, 3, 4, 5]);
        let (id, read) = PrepareReply::read(&new[4..16]).unwrap();
        assert_eq!((id, read.params, read.columns), (7, 1, 1));
    }

    #[test]
    fn numbers_are_never_zero_nor_the_last() {
        let mut statements = ClientStatements { last_id: u32::MAX - 2, ..ClientStatements::default() };
        let id = statements.next_id().unwrap();
        assert_eq!(id, u32::MAX - 1);
        statements.last_id = id;
        assert_eq!(statements.next_id(), Some(1));
    }
}
