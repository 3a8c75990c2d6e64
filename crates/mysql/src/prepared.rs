//! Prepared statements on two levels: the client's ids and the server's.
//!
//! Owns: the statements of a client under Weir's own ids, the statements of a server with least-recently-used
//! eviction, parameter types, long data. Must not know: queues, replies, sockets.
//!
//! Invariants: a Prepare is answered from memory only while nothing can have changed since a server answered
//! it; there is one copy per server, text, shape of the session (schema, charset, sql_mode and whatever else
//! fixes a statement's meaning when it is prepared) and, on MySQL, kind of parameters it was executed with
//! (see [`crate::binding`]); a statement with an open cursor or with long data has a copy of its own, so that
//! no other statement of the same text closes or fills it; the number of statements on a server never exceeds
//! its bound.

use crate::binding::{self, Binding, Change};
use crate::follow::Named;
use crate::frame;
use crate::message::ok::{self, OkPacket};
use crate::message::{Capabilities, Command};
use crate::rewrite::Names;
use crate::session_state::State;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use weir_sql::catalogue::Proof;
use weir_sql::{Class, Dialect, Kill, Uses, classify_in};
use weir_wire::{Reader, Short, limits};

/// The number that means "the statement prepared last" (MariaDB's drivers prepare and execute in one go).
pub(crate) const LAST_PREPARED: u32 = u32::MAX;

/// What a statement is: its text and what fixes its meaning.
#[derive(Debug)]
pub(crate) struct Text {
    hash: u64,
    /// The client's state when it prepared, as far as it matters.
    pub shape: State,
    /// The user variables that it names, as they were then.
    pub variables: Option<Named>,
    /// The client and its statement, where the client had settings then that only its server knows: no other
    /// text means the same for certain.
    tied: Option<(u32, u32)>,
    /// As the server gets it.
    pub text: Box<[u8]>,
    /// What of it the client has said in other words.
    pub names: Names,
}

impl Text {
    pub(crate) fn new(shape: State, variables: Option<Named>, text: Box<[u8]>, names: Names) -> Text {
        let mut hasher = DefaultHasher::new();
        (&shape, &variables, &text).hash(&mut hasher);
        Text { hash: hasher.finish(), shape, variables, tied: None, text, names }
    }

    /// The same for this statement of a client only, if `tied`.
    pub(crate) fn tied(mut self, tied: bool, client: u32, number: u32) -> Text {
        if tied {
            self.tied = Some((client, number));
            self.hash ^= (u64::from(client) << 32 | u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
        self
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.hash == other.hash
            && self.text == other.text
            && self.shape == other.shape
            && self.variables == other.variables
            && self.tied == other.tied
            && self.names == other.names
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
    /// The parameters of every execution so far; `None` before the first, and where it does not matter.
    pub binding: Option<Binding>,
}

impl Key {
    /// A copy that nobody has executed, for any client.
    pub(crate) fn fresh(text: Arc<Text>) -> Key {
        Key { text, private: None, binding: None }
    }
}

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
    pub(crate) fn key(&self, client: u32, id: u32, private: bool) -> Key {
        let private = (private || self.cursor || self.sent_ahead).then_some((client, id));
        Key { private, ..Key::fresh(self.text.clone()) }
    }
}

/// The statements of a client.
#[derive(Debug, Default)]
pub(crate) struct ClientStatements {
    by_id: HashMap<u32, ClientStatement>,
    last_id: u32,
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

    /// The number that `id` stands for.
    pub(crate) fn resolve(&self, id: u32) -> u32 {
        if id == LAST_PREPARED { self.last_id } else { id }
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
        let statement = self.by_id.remove(&id)?;
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

/// The reply to a COM_STMT_PREPARE.
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
    /// The types bound last; empty when none were.
    pub types: Box<[u8]>,
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
    by_key: HashMap<Key, ServerStatement>,
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
        let (by_key, replies, leaving) = (HashMap::new(), HashMap::new(), Vec::new());
        ServerStatements { by_key, replies, leaving, most: most.max(1), bytes: 0, clock: 0 }
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
        self.by_key.insert(key, ServerStatement { id, types: Box::default(), used: self.clock });
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

    /// The key of the copy that gives the answer this client's statement would get without Weir, with these
    /// parameters; and what has to be executed on it first, if it has to be prepared.
    ///
    /// While all executions had parameters of the same types, that is any copy of which this is true as well:
    /// with NULL in some places a server keeps what it has settled. From then on it is one of its own, which
    /// has seen all that. `alone`: it runs on a copy of its own in any case, this time. `example`: the
    /// execution, if it may be repeated.
    pub(crate) fn copy_for(
        &mut self,
        statement: &mut ClientStatement,
        executor: (u32, u32),
        binding: Binding,
        alone: bool,
        example: Option<(&Execute, &[u8])>,
    ) -> (Key, Option<Box<[u8]>>) {
        let fresh = Key::fresh(statement.text.clone());
        let change = match statement.settled.as_deref() {
            None => Change::Settles(binding.clone()),
            Some(_) if statement.mixed => Change::Mixes,
            Some(settled) => binding::change(&settled.base, &binding, &statement.text.text),
        };
        let settled = statement.settled.get_or_insert_default();
        match change {
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
                    return (key, settled.example.clone());
                }
                // It writes, so it cannot be executed first.
                (Key { binding: Some(binding), ..key }, None)
            }
            Change::Mixes => {
                let own = Key { private: Some(executor), binding: Some(Binding::default()), ..fresh.clone() };
                if !std::mem::replace(&mut statement.mixed, true) {
                    // From now on it is of no use to others.
                    let shared = Key { binding: Some(settled.base.clone()), ..fresh };
                    self.rename(&shared, own.clone());
                }
                (own, settled.example.clone())
            }
        }
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
pub(crate) const EXECUTE_FIXED_BYTES: usize = 10;

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

impl Execute {
    /// The execution with its types in it, for another copy; `None` if it is long.
    pub(crate) fn with_types(&self, payload: &[u8], types: &[u8]) -> Option<Box<[u8]>> {
        let at = self.types_flag_at.filter(|_| payload.len() + types.len() <= limits::EXECUTION_BYTES)?;
        if self.has_types {
            return Some(payload.into());
        }
        let (before, values) = (payload.get(..at)?, payload.get(at + 1..)?);
        Some([before, &[1], types, values].concat().into())
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
        Key::fresh(Arc::new(Text::new(
            State::new(45, true).shape(),
            None,
            text.as_bytes().into(),
            Names::default(),
        )))
    }

    fn reply() -> Arc<PrepareReply> {
        Arc::new(PrepareReply { params: 0, columns: 0, warnings: 0, definitions: Box::default() })
    }

    #[test]
    fn what_ties_a_client_is_known_whichever_of_its_statements_it_is_and_was() {
        let mut all = ClientStatements::default();
        for id in 1..=3 {
            all.insert(id, client_statement(&key("a")));
        }
        assert!(!all.any_cursor() && !all.any_mixed() && !all.any_sent_ahead() && all.long_data_bytes() == 0);
        all.get_mut(1).unwrap().cursor = true;
        assert!(all.any_cursor());
        all.get_mut(2).unwrap().long_data = vec![0; 5];
        all.get_mut(3).unwrap().mixed = true;
        assert!(all.any_cursor() && all.any_mixed() && all.long_data_bytes() == 5);
        all.get_mut(1).unwrap().cursor = false;
        all.get_mut(2).unwrap();
        assert!(!all.any_cursor() && all.any_mixed());
        all.get_mut(2).unwrap().long_data.clear();
        all.get_mut(LAST_PREPARED).unwrap().sent_ahead = true;
        assert!(all.any_sent_ahead() && all.long_data_bytes() == 0);
        all.remove(3);
        assert!(!all.any_mixed() && !all.any_sent_ahead());
        all.insert(3, client_statement(&key("a")));
        assert!(!all.any_mixed());
    }

    #[test]
    fn the_least_recently_used_leaves() {
        let mut statements = ServerStatements::new(2);
        let mut out = Vec::new();
        statements.insert(key("a"), 1, reply(), 0, &mut out);
        statements.insert(key("b"), 2, reply(), 0, &mut out);
        assert_eq!(statements.touch(&key("a")).unwrap().id, 1);
        assert!(out.is_empty());
        statements.insert(key("c"), 3, reply(), 0, &mut out);
        assert_eq!(out, [5, 0, 0, 0, 0x19, 2, 0, 0, 0]);
        assert!(statements.touch(&key("b")).is_none());
        assert_eq!(statements.len(), 2);
    }

    #[test]
    fn same_text_in_another_schema_is_another_statement() {
        let shape = State { schema: Some("other".into()), ..State::new(45, true) }.shape();
        let other = Key::fresh(Arc::new(Text::new(shape, None, b"a"[..].into(), Names::default())));
        assert_ne!(key("a"), other);
        assert_eq!(key("a"), key("a"));
        assert_ne!(key("a"), Key { private: Some((1, 1)), ..key("a") });
    }

    #[test]
    fn texts_are_bounded_by_their_bytes() {
        let long = |n: usize| key(&"x".repeat(limits::SERVER_PREPARED_BYTES / 4 + n));
        let (mut server, mut out) = (ServerStatements::new(100), Vec::new());
        for n in 0..6 {
            server.insert(long(n), n as u32 + 1, reply(), 0, &mut out);
        }
        assert_eq!(server.len(), 3);
        let mut client = ClientStatements::default();
        let mut kept = 0;
        while let Some(id) = client.next_id(limits::SERVER_PREPARED_BYTES / 4) {
            client.insert(id, client_statement(&long(0)));
            kept += 1;
        }
        assert_eq!(kept, limits::CLIENT_PREPARED_BYTES / (limits::SERVER_PREPARED_BYTES / 4));
        client.remove(1);
        assert!(client.next_id(limits::SERVER_PREPARED_BYTES / 4).is_some());
    }

    fn client_statement(text: &Key) -> ClientStatement {
        ClientStatement {
            text: text.text.clone(),
            class: Box::default(),
            judged_by: 0,
            dialect: Dialect::MYSQL,
            params: 1,
            types: Box::default(),
            long_data: Vec::new(),
            sent_ahead: false,
            warned: false,
            cursor: false,
            kill: None,
            settled: None,
            mixed: false,
        }
    }

    const INT: &[u8] = &[8, 0];
    const TEXT: &[u8] = &[0xFD, 0];
    const NULL: &[u8] = &[0, 0];

    /// Runs a statement as a server's end does; returns the number of the copy it ran on.
    fn run(
        server: &mut ServerStatements,
        statement: &mut ClientStatement,
        executor: (u32, u32),
        binding: &[u8],
        next: &mut u32,
    ) -> u32 {
        let (key, _) = server.copy_for(statement, executor, binding.into(), false, None);
        if server.touch(&key).is_none() {
            *next += 1;
            server.insert(key.clone(), *next, reply(), 0, &mut Vec::new());
        }
        server.touch(&key).unwrap().id
    }

    #[test]
    fn a_copy_is_shared_by_those_who_bind_alike() {
        let (mut server, mut next) = (ServerStatements::new(9), 0);
        let text = key("select ?");
        let (mut a, mut b, mut c) =
            (client_statement(&text), client_statement(&text), client_statement(&text));
        let one = run(&mut server, &mut a, (1, 1), INT, &mut next);
        assert_eq!(run(&mut server, &mut b, (2, 1), INT, &mut next), one);
        assert_ne!(run(&mut server, &mut c, (3, 1), TEXT, &mut next), one);
        assert_eq!(run(&mut server, &mut a, (1, 1), NULL, &mut next), one);
        assert_eq!(run(&mut server, &mut a, (1, 1), INT, &mut next), one);
        assert!(!a.mixed && server.len() == 2);
        // It takes the copy that has seen what it has; the other one gets another.
        assert_eq!(run(&mut server, &mut a, (1, 1), TEXT, &mut next), one);
        assert_ne!(run(&mut server, &mut b, (2, 1), INT, &mut next), one);
        assert_eq!(run(&mut server, &mut a, (1, 1), INT, &mut next), one);
        assert!(a.mixed && !b.mixed && server.len() == 3);
    }

    #[test]
    fn a_copy_that_was_executed_with_null_alone_is_another() {
        let (mut server, mut next) = (ServerStatements::new(9), 0);
        let text = key("select ?");
        let (mut a, mut b) = (client_statement(&text), client_statement(&text));
        let null = run(&mut server, &mut a, (1, 1), NULL, &mut next);
        let int = run(&mut server, &mut a, (1, 1), INT, &mut next);
        assert_ne!(null, int);
        assert_eq!(run(&mut server, &mut a, (1, 1), NULL, &mut next), int);
        assert_eq!(run(&mut server, &mut b, (2, 1), NULL, &mut next), null);
    }

    #[test]
    fn on_another_server_a_read_is_first_executed_as_before() {
        let (mut one, mut other, mut next) = (ServerStatements::new(9), ServerStatements::new(9), 0);
        let text = key("select ?");
        let mut reads = client_statement(&text);
        let payload = [0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0];
        let execute = Execute::read(&payload, 1).unwrap();
        let (_, first) = one.copy_for(&mut reads, (1, 1), INT.into(), false, Some((&execute, &payload)));
        assert_eq!(first, None);
        let example = Some(payload[..].into());
        let (key, first) = other.copy_for(&mut reads, (1, 1), NULL.into(), false, None);
        assert_eq!((key.private, key.binding.as_deref(), first), (None, Some(INT), example.clone()));
        assert!(!reads.mixed);
        let (key, first) = other.copy_for(&mut reads, (1, 1), TEXT.into(), false, None);
        assert_eq!((key.private, first), (Some((1, 1)), example));
        assert!(reads.mixed);
        let mut writes = client_statement(&text);
        run(&mut one, &mut writes, (2, 1), INT, &mut next);
        let (key, first) = other.copy_for(&mut writes, (2, 1), NULL.into(), false, None);
        assert_eq!((key.binding.as_deref(), first), (Some(NULL), None));
    }

    #[test]
    fn a_copy_whose_key_goes_to_another_is_closed() {
        let mut server = ServerStatements::new(9);
        let (text, mut out) = (key("select ?"), Vec::new());
        let private = Key { private: Some((1, 1)), ..text.clone() };
        server.insert(private.clone(), 1, reply(), 0, &mut out);
        server.insert(text.clone(), 2, reply(), 0, &mut out);
        server.rename(&text, private.clone());
        server.put_closes(&mut out);
        assert_eq!(out, [5, 0, 0, 0, 0x19, 1, 0, 0, 0]);
        assert_eq!(server.touch(&private).unwrap().id, 2);
        assert!(server.reply_to(&text.text).is_some());
    }

    #[test]
    fn the_reply_to_a_prepare_is_known_while_any_copy_is_there() {
        let mut server = ServerStatements::new(9);
        let text = key("select ?");
        let bound = Key { binding: Some(b"int"[..].into()), ..text.clone() };
        server.insert(text.clone(), 1, reply(), 0, &mut Vec::new());
        server.insert(bound.clone(), 2, reply(), 0, &mut Vec::new());
        server.close(&text, &mut Vec::new());
        assert!(server.reply_to(&text.text).is_some());
        server.forget(&bound);
        assert!(server.reply_to(&text.text).is_none());
    }

    #[test]
    fn execute_is_read_up_to_its_types() {
        let mut payload = vec![0x17, 5, 0, 0, 0, 1, 1, 0, 0, 0];
        assert!(Execute::read(&payload, 0).unwrap().cursor);
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
        let id = statements.next_id(1).unwrap();
        assert_eq!(id, u32::MAX - 1);
        statements.last_id = id;
        assert_eq!(statements.next_id(1), Some(1));
    }
}
