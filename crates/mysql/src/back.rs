//! The server's end: a queue of requests, each with what is owed for it.
//!
//! Owns: the queue, bringing the server into a client's state before its request, prepared statements of
//! this server, what is known of its session.
//! Must not know: sockets, clocks, pools.
//!
//! Invariants:
//! - Replies come in the order of the queue; everything a server sends belongs to the head.
//! - When the server is not in the client's state, the difference is sent first and the request is held
//!   until all of it is confirmed: it cannot run in a wrong state. Requests behind it wait, too. Only a
//!   difference costs that round trip.
//! - A request of a client that has gone keeps its place; its reply is dropped.

use crate::binding;
use crate::error;
use crate::frame::{self, HEADER_BYTES, Header};
use crate::front::{Front, Outcome, Traits, modes_of};
use crate::login::again::Again;
use crate::login::connect::ServerFacts;
use crate::message::ok::ErrPacket;
use crate::message::{Capabilities, Command, status};
use crate::prepared::{Execute, Key, Last, PrepareReply, ServerStatements};
use crate::relay::Reply;
use crate::reset::put_reset;
use crate::session_state::{Flavour, LOGIN_COLLATION, ServerState, Slot, State, put_query, setup_query};
use std::collections::VecDeque;
use std::sync::Arc;
use weir_auth::login::ServerGreeting;
use weir_sql::{Uses, Verb};
use weir_wire::{Boundary, Fault, FaultKind, INTERNAL, Owner};

/// ER_WRONG_ARGUMENTS: long data for a parameter that does not exist. The statement answers every execution with it
/// until it is reset, so that this copy is of no use to others and must stay with its client.
const WRONG_ARGUMENTS: u16 = 1210;

/// A command sent ahead of a request.
#[derive(Debug)]
pub(crate) enum Ahead {
    /// COM_CHANGE_USER; nothing else can be sent until it is through.
    Login,
    /// It changes the session.
    State,
    /// It prepares a statement the request needs.
    Prepare(PrepareAhead),
}

/// The reply to a statement prepared for an EXECUTE, as far as it came.
#[derive(Debug)]
pub(crate) struct PrepareAhead {
    pub key: Key,
    pub id: u32,
    pub reply: Option<PrepareReply>,
    pub definitions: Vec<u8>,
    pub left: usize,
}

impl PrepareAhead {
    pub(crate) fn new(key: Key) -> PrepareAhead {
        PrepareAhead { key, id: 0, reply: None, definitions: Vec::new(), left: 0 }
    }
}

/// Where an entry of the queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing of it was sent: something before it must be confirmed first.
    Waiting,
    /// What goes ahead was sent, the request is held.
    Ahead,
    /// The request was sent (or is being sent, in parts).
    Sent,
    /// The reply can be given without the server.
    Local,
    /// The reply was passed on; a COM_PING asks where it left the transaction.
    Ping,
    /// What went ahead failed; the client is still sending the rest of the request.
    Refused,
    /// The server ended the request while the client was still sending it.
    Torn,
    /// All is done.
    Finished,
    /// All is done but for one question: what is LAST_INSERT_ID() now?
    AskInsertId,
    /// That was answered, too.
    Answered,
    /// All is done but for one question: what are the warnings?
    AskWarnings,
}

/// A request in the queue.
#[derive(Debug)]
pub(crate) struct Entry {
    pub owner: Owner,
    pub gone: bool,
    pub stage: Stage,
    pub command: Command,
    /// `dispatch_welcome`.
    pub welcome: bool,
    /// What goes ahead and was not confirmed yet.
    pub ahead: VecDeque<Ahead>,
    /// The first error of what went ahead.
    pub ahead_error: Option<Box<[u8]>>,
    /// The request, while it is held.
    pub held: Vec<u8>,
    /// No further part of it will come.
    pub whole: bool,
    /// A reset is followed by the set-up of trackers, whose reply is owed.
    pub setup_owed: bool,
    /// It may change the session.
    pub leaves_trace: bool,
    /// It may change the session in a way that cannot be undone by setting everything anew.
    pub taints: bool,
    /// The copy of a statement it is about.
    pub key: Option<Key>,
    pub reply: Reply,
    pub outcome: Outcome,
}

impl Entry {
    fn new(owner: Owner, command: Command, stage: Stage) -> Entry {
        Entry {
            owner,
            gone: false,
            stage,
            command,
            welcome: false,
            ahead: VecDeque::new(),
            ahead_error: None,
            held: Vec::new(),
            whole: true,
            setup_owed: false,
            leaves_trace: false,
            taints: false,
            key: None,
            reply: Reply::new(command),
            outcome: Outcome::default(),
        }
    }

    /// A request that was sent without anything ahead.
    pub(crate) fn sent(owner: Owner, command: Command) -> Entry {
        Entry::new(owner, command, Stage::Sent)
    }

    /// Nothing behind it may be sent yet.
    fn blocks(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Ahead)
    }
}

/// A logged-in server.
#[derive(Debug)]
pub struct Back {
    pub(crate) queue: VecDeque<Entry>,
    pub(crate) session: ServerState,
    pub(crate) statements: ServerStatements,
    pub(crate) capabilities: Capabilities,
    /// Status flags of the last OK.
    pub(crate) status: u16,
    /// A savepoint was set with autocommit off: the flags do not show that transaction.
    pub(crate) quiet_transaction: bool,
    /// The client whose LAST_INSERT_ID() this session would give.
    pub(crate) insert_client: u32,
    /// The client whose text ran here last, if nothing else has run since.
    pub(crate) last_client: u32,
    /// The client whose warnings SHOW WARNINGS would show here.
    pub(crate) warned_client: u32,
    /// A request of Weir's own failed, or the end of a request cannot be sent any more.
    pub(crate) broken: bool,
    /// A client left in the middle of something that may have left a trace.
    pub(crate) tainted: bool,
    /// Part of a message was read.
    pub(crate) mid_message: bool,
    /// The trackers must be switched on again.
    pub(crate) needs_setup: bool,
    pub(crate) again: Again,
    greeting: Arc<ServerGreeting>,
    server_id: u64,
    trackers: bool,
}

impl Back {
    pub(crate) fn new(
        facts: ServerFacts,
        again: Again,
        database: String,
        max_prepared_statements: usize,
    ) -> Back {
        let mut state = State::new(u16::from(LOGIN_COLLATION), true);
        state.multi_statements = facts.capabilities.has(Capabilities::MULTI_STATEMENTS);
        state.schema = (!database.is_empty()).then(|| database.into());
        Back {
            queue: VecDeque::new(),
            session: ServerState {
                state,
                known: true,
                charset_known: true,
                flavour: facts.flavour,
                base: facts.base,
            },
            statements: ServerStatements::new(max_prepared_statements),
            capabilities: facts.capabilities,
            status: facts.status,
            quiet_transaction: false,
            insert_client: 0,
            last_client: 0,
            warned_client: 0,
            broken: false,
            tainted: false,
            mid_message: false,
            needs_setup: false,
            again,
            greeting: facts.greeting,
            server_id: facts.id,
            trackers: facts.trackers,
        }
    }

    /// How the server greeted Weir: so are its clients.
    pub fn server_greeting(&self) -> Option<&Arc<ServerGreeting>> {
        Some(&self.greeting)
    }

    pub(crate) fn version(&self) -> &str {
        &self.greeting.version
    }

    pub(crate) fn server_id(&self) -> u64 {
        self.server_id
    }

    pub(crate) fn traits(&self) -> Traits {
        let mode_at = Slot::BASED.iter().position(|slot| *slot == Slot::SqlMode);
        let mode = mode_at.and_then(|at| self.session.base.get(at)?.as_deref()).unwrap_or_default();
        let (ansi_quotes, no_backslash_escapes) = modes_of(mode);
        Traits { flavour: self.session.flavour, trackers: self.trackers, ansi_quotes, no_backslash_escapes }
    }

    /// Whose request is at the head.
    pub fn head(&self) -> Option<Owner> {
        self.queue.front().map(|entry| entry.owner)
    }

    /// Requests in the queue.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Bytes of requests that wait until what goes ahead of them is confirmed.
    pub fn held_bytes(&self) -> usize {
        self.queue.iter().map(|entry| entry.held.len()).sum()
    }

    /// Where the server is after all replies that have arrived.
    pub fn boundary(&self) -> Boundary {
        if self.status & status::IN_TRANS != 0 || self.quiet_transaction {
            Boundary::InTransaction
        } else {
            Boundary::Idle
        }
    }

    /// Idle, nothing owed, no part of a message read, and nothing failed.
    pub fn is_reusable(&self) -> bool {
        self.queue.is_empty()
            && self.boundary() == Boundary::Idle
            && !self.broken
            && !self.tainted
            && !self.mid_message
    }

    /// Nothing can make this server usable again: close it.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// The client whose reply is being passed on has got the beginning of a packet and not its end: nothing
    /// but the rest can be said to it.
    pub fn is_mid_message(&self) -> bool {
        self.mid_message
    }

    /// The server works on the head's own request: a KILL QUERY hits that and not something of Weir's in
    /// front of it.
    pub fn is_cancellable(&self) -> bool {
        self.queue.front().is_some_and(|entry| entry.stage == Stage::Sent)
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        self.queue.push_back(entry);
    }

    /// With the head taken out of the queue: the server has requests behind it. A question of Weir's own
    /// would be answered after theirs.
    pub(crate) fn others_are_sent(&self) -> bool {
        self.queue.iter().any(|entry| entry.stage != Stage::Waiting)
    }

    /// Puts a request at the end of the queue and appends to `out` what makes it run here.
    ///
    /// # Errors
    /// `NotAllowed` for the rare requests that cannot be carried to this server.
    pub fn dispatch(
        &mut self,
        front: &mut Front,
        owner: Owner,
        request: &[u8],
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let mut entry = Entry::new(owner, front.request.command, Stage::Waiting);
        entry.whole = whole;
        entry.leaves_trace = !front.request.leaves_no_trace();
        entry.taints = front.request.taints() || !whole;
        if self.queue.iter().any(Entry::blocks) {
            entry.held = request.to_vec();
        } else if let Err(fault) = self.start(&mut entry, front, request, out) {
            // Part of the difference may be on its way.
            self.broken = true;
            return Err(fault);
        }
        self.queue.push_back(entry);
        Ok(())
    }

    /// Puts the check of a client's login settings at the end of the queue.
    ///
    /// # Errors
    /// As [`Back::dispatch`].
    pub fn dispatch_welcome(
        &mut self,
        front: &mut Front,
        owner: Owner,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let mut entry = Entry::new(owner, Command::Ping, Stage::Waiting);
        entry.welcome = true;
        if !self.queue.iter().any(Entry::blocks) {
            self.start(&mut entry, front, &[], out)?;
        }
        self.queue.push_back(entry);
        Ok(())
    }

    /// Sends what goes ahead of a request, or, when there is nothing, the request.
    pub(crate) fn start(
        &mut self,
        entry: &mut Entry,
        front: &mut Front,
        request: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let missing = self.find_statement(entry, front, request)?;
        let shaped = missing.as_ref().map(|key| front.state.shaped(&key.text.shape));
        if self.session.needs_new_login(shaped.as_ref().unwrap_or(&front.state)) {
            self.again.start(out)?;
            entry.ahead.push_back(Ahead::Login);
            entry.stage = Stage::Ahead;
            entry.held = request.to_vec();
            return Ok(());
        }
        if std::mem::take(&mut self.needs_setup) {
            put_query(out, setup_query());
            entry.ahead.push_back(Ahead::State);
        }
        if let (Some(key), Some(shaped)) = (missing, shaped) {
            self.prepare_ahead(entry, &shaped, key, out);
        }
        if self.session.needs_new_login(&front.state) {
            let text = "a statement prepared in a schema, for a client that has none any more";
            return Err(Fault::new(FaultKind::NotAllowed, text));
        }
        self.move_ahead(entry, &front.state, out);
        if entry.welcome {
            entry.stage = if entry.ahead.is_empty() { Stage::Finished } else { Stage::Ahead };
            return Ok(());
        }
        self.bring_insert_id(entry, front, out);
        if !self.bring_warnings(entry, front, out) {
            return Ok(());
        }
        if entry.ahead.is_empty() {
            self.send(entry, front, request, out);
        } else {
            entry.stage = Stage::Ahead;
            entry.held = request.to_vec();
            self.last_client = 0;
            self.warned_client = 0;
        }
        Ok(())
    }

    fn move_ahead(&mut self, entry: &mut Entry, to: &State, out: &mut Vec<u8>) {
        let commands = self.session.move_to(to, out);
        entry.ahead.extend((0..commands).map(|_| Ahead::State));
    }

    /// A text that asks for LAST_INSERT_ID() finds its client's value here.
    fn bring_insert_id(&mut self, entry: &mut Entry, front: &mut Front, out: &mut Vec<u8>) {
        let asks = front.request.class.uses.contains(Uses::LAST_INSERT_ID) || !entry.whole;
        let is_here = self.insert_client == front.id() && front.insert_server == self.server_id;
        if asks && !is_here && matches!(entry.command, Command::Query | Command::StmtExecute) {
            put_query(out, &format!("SET last_insert_id={}", front.insert_id));
            entry.ahead.push_back(Ahead::State);
            self.insert_client = front.id();
            front.insert_server = self.server_id;
        }
    }

    /// A text that asks for warnings finds its client's here, or none when it has none. False when they
    /// cannot be had: the request is refused.
    fn bring_warnings(&mut self, entry: &mut Entry, front: &Front, out: &mut Vec<u8>) -> bool {
        let asks = front.request.class.uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS);
        let is_here = self.warned_client == front.id() && front.last_server == self.server_id;
        if !asks || is_here && entry.ahead.is_empty() {
            return true;
        }
        if !front.has_warnings() {
            // Clears the warnings of others on both servers (a plain `DO 0` does not on MariaDB).
            put_query(out, "DO (SELECT 1 FROM (SELECT 1) x)");
            entry.ahead.push_back(Ahead::State);
            return true;
        }
        // The server that knows has gone to others.
        let mut error = Vec::new();
        let text = "What the last statement left is no longer known; ask with SHOW WARNINGS, or within the transaction";
        ErrPacket { code: 1105, sqlstate: b"HY000", message: text.as_bytes() }.write(&mut error);
        entry.ahead_error = Some(error.into());
        entry.outcome.failed = true;
        entry.stage = if entry.ahead.is_empty() { Stage::Refused } else { Stage::Ahead };
        false
    }

    /// Finds the copy of the statement a command is about; returns its key when it has to be prepared
    /// first.
    fn find_statement(
        &mut self,
        entry: &mut Entry,
        front: &mut Front,
        request: &[u8],
    ) -> Result<Option<Key>, Fault> {
        let (client, number) = (front.id(), front.request.number);
        if entry.command == Command::StmtPrepare && entry.whole {
            let prepare = front.request.extra.as_deref().and_then(|extra| extra.prepare.clone());
            entry.key = prepare.map(Key::fresh);
            return Ok(None);
        }
        let runs = match entry.command {
            Command::StmtExecute | Command::StmtSendLongData => true,
            Command::StmtFetch | Command::StmtReset | Command::StmtClose => false,
            _ => return Ok(None),
        };
        let statement = front.statements.as_deref_mut().and_then(|all| all.get_mut(number));
        let Some(statement) = statement else { return Ok(None) };
        let mut cursor = false;
        let mut has_types = true;
        let mut binding = None;
        if entry.command == Command::StmtExecute {
            let payload = request.get(HEADER_BYTES..).unwrap_or_default();
            if let Ok(execute) = Execute::read(payload, statement.params) {
                cursor = execute.cursor;
                has_types = execute.has_types;
                let settles = self.session.flavour == Flavour::MySql && statement.params > 0;
                binding =
                    settles.then(|| binding::of(payload, &execute, &statement.types, &statement.long_data));
            }
        } else if runs {
            statement.sent_ahead = true;
        }
        let mut key = statement.key(client, number, cursor);
        if let Some(binding) = binding.filter(|_| key.private.is_none()) {
            key = self.statements.copy_for(statement, (client, number), self.server_id, binding);
        }
        entry.key = Some(key.clone());
        let bound = self.statements.touch(&key).map(|copy| copy.types == statement.types);
        let len = Header::read(request).map_or(0, |header| header.len + statement.types.len());
        if !has_types && bound != Some(true) && len >= frame::MAX_PAYLOAD_BYTES {
            let text = "parameters of 16 MB whose types would have to be sent again";
            return Err(Fault::new(FaultKind::NotAllowed, text));
        }
        Ok((runs && bound.is_none()).then_some(key))
    }

    /// Prepares a statement in the state its client had when it prepared it.
    fn prepare_ahead(&mut self, entry: &mut Entry, shaped: &State, key: Key, out: &mut Vec<u8>) {
        self.move_ahead(entry, shaped, out);
        frame::put(out, 0, |out| {
            out.push(Command::StmtPrepare as u8);
            out.extend_from_slice(&key.text.text);
        });
        entry.ahead.push_back(Ahead::Prepare(PrepareAhead::new(key)));
    }

    /// Sends the request itself, or its first part.
    pub(crate) fn send(&mut self, entry: &mut Entry, front: &mut Front, request: &[u8], out: &mut Vec<u8>) {
        entry.stage = Stage::Sent;
        self.statements.put_closes(out);
        let here = self.last_client == front.id() && front.last_server == self.server_id;
        self.last_client = 0;
        match entry.command {
            Command::Query => match front.request.extra.as_deref().and_then(|extra| extra.text(here)) {
                Some(text) => {
                    frame::put(out, 0, |out| {
                        out.push(Command::Query as u8);
                        out.extend_from_slice(text);
                    });
                }
                None => out.extend_from_slice(request),
            },
            Command::StmtPrepare => self.send_prepare(entry, front, request, out),
            Command::StmtExecute => self.send_execute(entry, front, request, out),
            Command::StmtFetch | Command::StmtReset | Command::StmtSendLongData => {
                let kept = front.statements.as_deref_mut().and_then(|all| all.get_mut(front.request.number));
                let copy = entry.key.as_ref().and_then(|key| self.statements.touch(key));
                if let (Command::StmtSendLongData, Some(kept), Some(copy)) = (entry.command, kept, copy) {
                    put_long_data(&mut kept.long_data, copy.id, out);
                }
                self.send_renamed(entry, request, out);
                if entry.command == Command::StmtSendLongData && entry.whole {
                    entry.stage = Stage::Finished;
                }
            }
            Command::StmtClose => {
                if let Some(key) = &entry.key {
                    self.statements.close(key, out);
                }
                entry.stage = Stage::Finished;
            }
            Command::ResetConnection => {
                put_reset(out);
                entry.setup_owed = true;
            }
            _ => out.extend_from_slice(request),
        }
    }

    fn send_prepare(&mut self, entry: &mut Entry, front: &Front, request: &[u8], out: &mut Vec<u8>) {
        if let Some(key) = &entry.key
            && self.statements.reply_to(&key.text).is_some()
        {
            // The same text in the same state: the server would say the same again.
            entry.stage = Stage::Local;
            return;
        }
        match front.request.extra.as_deref().and_then(|extra| extra.prepare.as_ref()) {
            // Its text may be rewritten.
            Some(text) if entry.whole => {
                frame::put(out, 0, |out| {
                    out.push(Command::StmtPrepare as u8);
                    out.extend_from_slice(&text.text);
                });
            }
            Some(_) | None => out.extend_from_slice(request),
        }
    }

    /// Puts in the server's number of the statement, the types the client bound if the server's copy was
    /// bound with others since, and long data ahead of it.
    fn send_execute(&mut self, entry: &mut Entry, front: &mut Front, request: &[u8], out: &mut Vec<u8>) {
        let (client, number) = (front.id(), front.request.number);
        let statement = front.statements.as_deref_mut().and_then(|all| all.get_mut(number));
        let copy = entry.key.as_ref().and_then(|key| self.statements.touch(key));
        let (Some(statement), Some(copy)) = (statement, copy) else {
            // Forgotten between dispatch and now, by a reset: the server will say that it knows no such
            // statement.
            out.extend_from_slice(request);
            return;
        };
        copy.executors.add((client, number));
        if let Some(key) = entry.key.as_ref().filter(|key| key.binding.is_some()) {
            statement.last = Some(Box::new(Last { server: self.server_id, id: copy.id, key: key.clone() }));
        }
        put_long_data(&mut statement.long_data, copy.id, out);
        let (Some(header), Some(payload)) = (Header::read(request), request.get(HEADER_BYTES..)) else {
            return;
        };
        let execute = Execute::read(payload, statement.params).ok();
        let missing = execute.and_then(|e| e.types_flag_at).filter(|_| copy.types != statement.types);
        let missing =
            missing.filter(|_| execute.is_some_and(|e| !e.has_types) && !statement.types.is_empty());
        let added = missing.map_or(0, |_| statement.types.len());
        let fits = header.len + added < frame::MAX_PAYLOAD_BYTES;
        Header { len: if fits { header.len + added } else { header.len }, seq: 0 }.write(out);
        let id_end = 5.min(payload.len());
        out.push(Command::StmtExecute as u8);
        out.extend_from_slice(&copy.id.to_le_bytes());
        match missing.filter(|_| fits) {
            Some(at) => {
                out.extend_from_slice(&payload[id_end..at]);
                out.push(1);
                out.extend_from_slice(&statement.types);
                out.extend_from_slice(payload.get(at + 1..).unwrap_or_default());
            }
            None => out.extend_from_slice(&payload[id_end..]),
        }
        if execute.is_some_and(|e| e.has_types) || added > 0 {
            copy.types = statement.types.clone();
        }
    }

    /// A command whose first argument is the number of a statement.
    fn send_renamed(&mut self, entry: &Entry, request: &[u8], out: &mut Vec<u8>) {
        let copy = entry.key.as_ref().and_then(|key| self.statements.touch(key));
        let id = copy.map_or(0, |copy| copy.id);
        let fixed = HEADER_BYTES + 1;
        out.extend_from_slice(request.get(..fixed).unwrap_or_default());
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(request.get(fixed + 4..).unwrap_or_default());
    }

    /// A further part of the request at the end of the queue, or of a file the server asked for.
    ///
    /// Whoever calls it looks at [`Back::held_bytes`] first: what has to be held has no bound here.
    ///
    /// # Errors
    /// None yet.
    pub fn extend(
        &mut self,
        _front: &mut Front,
        bytes: &[u8],
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let Some(entry) = self.queue.back_mut() else { return Ok(()) };
        match entry.stage {
            Stage::Waiting | Stage::Ahead => {
                entry.held.extend_from_slice(bytes);
                entry.whole = whole;
            }
            Stage::Sent if entry.reply.wants_file() => {
                entry.reply.send_file(bytes, out);
                if whole {
                    entry.reply.file_ended();
                    entry.whole = true;
                }
            }
            Stage::Sent if !entry.whole => {
                out.extend_from_slice(bytes);
                entry.whole = whole;
                if whole && entry.command == Command::StmtSendLongData {
                    entry.stage = Stage::Finished;
                }
            }
            Stage::Refused => entry.whole = whole,
            Stage::Sent
            | Stage::Local
            | Stage::Ping
            | Stage::Torn
            | Stage::Finished
            | Stage::AskInsertId
            | Stage::Answered
            | Stage::AskWarnings => {}
        }
        Ok(())
    }

    /// The owner has gone: its replies are dropped, and what it did not send to the end is ended.
    pub fn forget(&mut self, owner: Owner, _out: &mut Vec<u8>) {
        for entry in self.queue.iter_mut().filter(|entry| entry.owner == owner && owner != INTERNAL) {
            entry.gone = true;
            entry.held = Vec::new();
            if entry.stage != Stage::Sent {
                entry.whole = true;
            } else if !entry.whole || entry.reply.wants_file() {
                // Half a command cannot be taken back. A file that ends early would be loaded and committed as
                // far as it came; without its connection the server takes all of it back.
                self.broken = true;
            }
        }
    }

    /// COM_RESET_CONNECTION was sent.
    pub(crate) fn session_was_reset(&mut self) {
        self.statements.clear();
        self.session.charset_known = false;
        self.session.state.settings = None;
        self.insert_client = 0;
        self.last_client = 0;
        self.warned_client = 0;
        self.quiet_transaction = false;
        self.tainted = false;
    }

    /// The entry at the head is done: what it did is taken over by its client and by what is known of this
    /// server.
    pub(crate) fn finish(&mut self, entry: &mut Entry, front: Option<&mut Front>) {
        let failed = entry.outcome.failed;
        if entry.owner == INTERNAL {
            self.last_client = 0;
            self.warned_client = 0;
            self.broken |= failed;
            if entry.command == Command::ResetConnection && !failed {
                self.session_was_reset();
            } else if entry.command == Command::Query {
                self.quiet_transaction = false;
            }
            return;
        }
        let Some(front) = front.filter(|_| !entry.gone) else {
            self.insert_client = 0;
            self.last_client = 0;
            self.warned_client = 0;
            self.tainted |= entry.taints;
            self.session.known &= !entry.leaves_trace;
            return;
        };
        if entry.welcome {
            return;
        }
        if entry.command == Command::ResetConnection && !failed {
            self.session_was_reset();
            front.reset_session();
        }
        self.finish_statement(entry, front);
        self.watch_savepoint(front);
        self.refuse_stuck_settings(front);
        if front.request.sets_insert_id(&entry.outcome) {
            self.insert_client = front.id();
        }
        let runs_text = matches!(entry.command, Command::Query | Command::StmtExecute);
        let last_here = !self.others_are_sent();
        self.last_client = if runs_text && !entry.outcome.pinged && last_here { front.id() } else { 0 };
        self.warned_client = if last_here { front.id() } else { 0 };
        front.finish(&entry.outcome, self.server_id);
        if entry.leaves_trace {
            // Whatever it did here was done by it: that is the state this server is in.
            self.session.state = front.state.clone();
        }
    }

    /// Statements come and go, cursors open and close.
    fn finish_statement(&mut self, entry: &mut Entry, front: &mut Front) {
        let number = front.request.number;
        let executor = (front.id(), number);
        let Some(statements) = front.statements.as_deref_mut() else { return };
        match entry.command {
            Command::StmtClose => {
                statements.remove(number);
            }
            Command::StmtExecute | Command::StmtFetch | Command::StmtReset => {
                let Some(statement) = statements.get_mut(number) else { return };
                match entry.command {
                    Command::StmtExecute => {
                        statement.cursor = self.status & status::CURSOR_EXISTS != 0 && !entry.outcome.failed;
                        statement.sent_ahead = false;
                        let Some(key) = entry.key.as_ref().filter(|_| entry.outcome.failed) else { return };
                        if let Some(copy) = self.statements.touch(key) {
                            // Whether it came to binding the types is not known.
                            copy.types = Box::default();
                        }
                        if entry.outcome.error == WRONG_ARGUMENTS {
                            statement.sent_ahead = true;
                            let own = Key { private: Some(executor), ..Key::fresh(key.text.clone()) };
                            self.statements.rename(key, own);
                        }
                    }
                    Command::StmtFetch => {
                        statement.cursor &= self.status & status::LAST_ROW_SENT == 0 && !entry.outcome.failed;
                    }
                    _ => {
                        statement.cursor = false;
                        statement.sent_ahead = false;
                        statement.long_data = Vec::new();
                    }
                }
            }
            _ => {}
        }
    }

    /// With autocommit off a SAVEPOINT opens a transaction that the flags do not show until a table is
    /// touched (both servers; MySQL bug 107875).
    fn watch_savepoint(&mut self, front: &Front) {
        let class = &front.request.class;
        if self.status & status::IN_TRANS != 0 {
            self.quiet_transaction = false;
        } else if class.verb == Verb::Savepoint && self.status & status::AUTOCOMMIT == 0 {
            self.quiet_transaction = true;
        } else if matches!(class.verb, Verb::Commit | Verb::Rollback | Verb::Begin) || class.ddl {
            self.quiet_transaction = false;
        }
    }

    /// A setting that this server could not be brought back from stays with its client.
    fn refuse_stuck_settings(&self, front: &mut Front) {
        if let Some(extra) = front.request.extra.as_deref_mut()
            && extra.changes.iter().flatten().any(|(slot, _)| !self.session.can_undo(*slot))
        {
            extra.changes = None;
        }
    }

    /// Writes the error that ends a request which did not run.
    pub(crate) fn put_error(front: &mut Front, welcome: bool, payload: &[u8], out: &mut Vec<u8>) {
        let seq = if welcome { front.seq } else { front.reply_seq };
        if payload.is_empty() {
            error::put_fault(out, seq, FaultKind::ServerProtocol);
        } else {
            frame::put(out, seq, |out| out.extend_from_slice(payload));
        }
    }
}

/// Sends kept long data under the server's number, and keeps it no longer.
fn put_long_data(long_data: &mut Vec<u8>, id: u32, out: &mut Vec<u8>) {
    let mut rest = std::mem::take(long_data);
    let mut at = 0;
    while let Some(header) = rest.get(at..).and_then(Header::read) {
        let number_at = at + HEADER_BYTES + 1;
        if let Some(number) = rest.get_mut(number_at..number_at + 4) {
            number.copy_from_slice(&id.to_le_bytes());
        }
        at += header.total();
    }
    out.append(&mut rest);
}
