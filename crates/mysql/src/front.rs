//! A logged-in client: finds its requests, answers what needs no server, carries its state.
//!
//! Owns: where requests begin and end in a client's bytes, what the lexer said about the request under way,
//! the client's state, pins, prepared statements, and what it may ask about its last statement.
//! Must not know: servers, queues.
//!
//! Invariants: one request is under way at a time; a client that sends several commands at once keeps
//! its bytes until each reply is done. Nothing that `find` says changes the state: that happens when the
//! reply says that the server did it.

use crate::error;
use crate::frame::{self, HEADER_BYTES, Header};
use crate::long::Long;
use crate::message::greeting::SCRAMBLE_BYTES;
use crate::message::ok::{self, OkPacket};
use crate::message::{Capabilities, Command, status};
use crate::prepared::{ClientStatements, Text, statement_id};
use crate::rewrite;
use crate::session_state::{Charset, Flavour, Slot, State, changes_of};
use crate::warnings::{Warnings, is_show_warnings};
use std::sync::Arc;
use weir_auth::login::KillOutcome;
use weir_sql::{Class, Dialect, Kill, Locks, Transaction, Uses, classify};
use weir_wire::{Fault, FaultKind, Found, Needs, Pin, Pins, Reader, limits};

/// Where a client is.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Logged in, but not greeted yet.
    Greeting,
    /// Between requests.
    Idle,
    /// A request was found whole and its reply is not done.
    Busy,
    /// A long request is found in parts.
    Long(Box<Long>),
    /// The server has asked for a file: packets of it are found up to the empty one.
    File(FileData),
}

/// The packets of a LOCAL file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileData {
    /// Bytes of the packet under way that were not found yet.
    left: usize,
    /// The packet before had a successor, so an empty one is not the end.
    continuing: bool,
}

/// What is known of the request under way.
#[derive(Debug)]
pub(crate) struct Request {
    pub command: Command,
    pub class: Class,
    /// The client's number of the statement, or the target of KILL.
    pub number: u32,
    pub extra: Option<Box<Extra>>,
}

/// What few requests have.
#[derive(Debug, Default)]
pub(crate) struct Extra {
    /// What SET changes, if all of it can move.
    pub changes: Option<Vec<(Slot, Box<str>)>>,
    /// The text to send instead of the client's.
    pub text: Option<Vec<u8>>,
    /// The same for the server that gave the last reply, if it is not the same: `Some(None)` is the client's.
    pub text_here: Option<Option<Vec<u8>>>,
    /// The statement to prepare.
    pub prepare: Option<Arc<Text>>,
}

/// What a client of a pool may rely on, as a server of it showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traits {
    pub flavour: Flavour,
    /// Session trackers work.
    pub trackers: bool,
    /// `sql_mode` at login has ANSI_QUOTES.
    pub ansi_quotes: bool,
    /// `sql_mode` at login has NO_BACKSLASH_ESCAPES.
    pub no_backslash_escapes: bool,
}

impl Traits {
    const UNKNOWN: Traits =
        Traits { flavour: Flavour::MySql, trackers: false, ansi_quotes: false, no_backslash_escapes: false };
}

/// How the reply to a request ended, for [`Front::finish`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outcome {
    /// Some result was OK.
    pub any_ok: bool,
    /// The last result was ERR.
    pub failed: bool,
    /// The errno of that.
    pub error: u16,
    /// Warnings of the last result.
    pub warnings: u16,
    /// The id some INSERT made; 0 for none.
    pub insert_id: u64,
    /// Rows changed by the last result; `None` when it had rows.
    pub affected_rows: Option<u64>,
    /// Rows of the last result that had rows.
    pub rows: u64,
    /// The tracker said that the session changed.
    pub state_changed: bool,
    /// A COM_PING followed.
    pub pinged: bool,
}

/// A logged-in client.
#[derive(Debug)]
pub struct Front {
    id: u32,
    pub(crate) capabilities: Capabilities,
    pub(crate) state: State,
    pub(crate) phase: Phase,
    pub(crate) request: Request,
    pub(crate) statements: Option<Box<ClientStatements>>,
    /// What LAST_INSERT_ID() gives.
    pub(crate) insert_id: u64,
    /// The server on which LAST_INSERT_ID() gives it by itself; 0 for none.
    pub(crate) insert_server: u64,
    /// The server that gave the last reply to a text.
    pub(crate) last_server: u64,
    /// What ROW_COUNT() gives.
    row_count: i64,
    /// What FOUND_ROWS() gives; `u64::MAX` when only the server knows.
    found_rows: u64,
    pins: Pins,
    locks: Locks,
    /// Status flags of the session as the client saw them last.
    pub(crate) status: u16,
    login_collation: u16,
    /// What the server made of it.
    pub(crate) login_charset: Charset,
    pub(crate) traits: Traits,
    /// Sequence number of the packet that ends the login.
    pub(crate) seq: u8,
    /// SET TRANSACTION was said about the next transaction.
    pub(crate) one_shot: bool,
    /// The next request may ask about the last one.
    last_result: bool,
    /// What it may ask for is the warnings and nothing else.
    only_warnings: bool,
    /// The warnings of the last statement, which has left its server.
    warnings: Option<Box<Warnings>>,
    /// This client uses LAST_INSERT_ID().
    asks_insert_id: bool,
    /// `insert_id` may be something else: only `insert_server` knows.
    pub(crate) insert_unknown: bool,
    /// This client has set trackers of its own.
    pub(crate) own_trackers: bool,
    /// A server refused the settings of the login.
    pub(crate) refused: bool,
    /// A packet of the reply under way has gone to the client.
    pub(crate) reply_begun: bool,
    /// Sequence number of the first packet of a reply: a request of several packets has counted on.
    pub(crate) reply_seq: u8,
    /// COM_CHANGE_USER was refused so often.
    refused_logins: u8,
    /// The scramble of the greeting, for a client that knows no other way to prove itself again.
    pub(crate) scramble: Option<Box<[u8; SCRAMBLE_BYTES]>>,
}

const ROWS_UNKNOWN: u64 = u64::MAX;

/// After so many refused logins on top of a session, MariaDB hears no more of them.
const REFUSED_LOGINS: u8 = 3;

impl Extra {
    /// The text to send instead of the client's; `here`: to the server that gave the last reply.
    pub(crate) fn text(&self, here: bool) -> Option<&[u8]> {
        match &self.text_here {
            Some(text) if here => text.as_deref(),
            Some(_) | None => self.text.as_deref(),
        }
    }
}

impl Request {
    fn new(command: Command) -> Request {
        Request { command, class: Class::default(), number: 0, extra: None }
    }

    /// Whatever it does, nothing of it stays on its server.
    pub(crate) fn leaves_no_trace(&self) -> bool {
        match self.command {
            Command::Ping | Command::Statistics => true,
            Command::Query | Command::StmtExecute => self.class.shareable,
            _ => false,
        }
    }
}

impl Request {
    /// LAST_INSERT_ID() is something else after it, or may be.
    pub(crate) fn sets_insert_id(&self, outcome: &Outcome) -> bool {
        sets_insert_id(&self.class, outcome)
    }

    /// What it does to its server cannot be undone by setting everything anew.
    pub(crate) fn taints(&self) -> bool {
        let followed = self.extra.as_deref().is_some_and(|extra| extra.changes.is_some());
        let runs = matches!(self.command, Command::Query | Command::StmtExecute);
        runs && (!self.class.pins.is_empty() && !followed || self.class.uses.contains(Uses::BLOCK))
    }
}

impl Front {
    pub(crate) fn new(id: u32, capabilities: Capabilities, collation: u16, seq: u8) -> Front {
        Front {
            id,
            capabilities,
            state: State::new(collation, capabilities.has(Capabilities::MULTI_STATEMENTS)),
            phase: Phase::Greeting,
            request: Request::new(Command::Ping),
            statements: None,
            insert_id: 0,
            insert_server: 0,
            row_count: -1,
            found_rows: ROWS_UNKNOWN,
            pins: Pins::NONE,
            locks: Locks::NONE,
            status: status::AUTOCOMMIT,
            login_collation: collation,
            login_charset: Charset::Collation(collation),
            traits: Traits::UNKNOWN,
            seq,
            one_shot: false,
            last_result: false,
            only_warnings: false,
            warnings: None,
            asks_insert_id: false,
            insert_unknown: false,
            own_trackers: false,
            last_server: 0,
            refused: false,
            reply_begun: false,
            reply_seq: 1,
            refused_logins: 0,
            scramble: None,
        }
    }

    /// The schema this client begins in, when the operator's settings give it another name than the client
    /// did. Before the client is greeted.
    pub fn set_schema(&mut self, schema: Option<&str>) {
        self.state.schema = schema.filter(|name| !name.is_empty()).map(Arc::from);
    }

    /// Weir's number of this client.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The flags this client chose that a server cannot change later (FOUND_ROWS, IGNORE_SPACE,
    /// INTERACTIVE, MariaDB's EXTENDED_METADATA): clients with different ones need different servers.
    pub fn pool_variant(&self) -> u32 {
        self.capabilities.variant()
    }

    /// Why the lease must outlive the boundary, now.
    pub fn pins(&self) -> Pins {
        let mut pins = self.pins;
        if self.one_shot {
            pins.insert(Pin::Setting);
        }
        if self.last_result {
            pins.insert(Pin::LastResult);
        }
        if let Some(statements) = &self.statements {
            if statements.any_cursor() {
                pins.insert(Pin::Cursor);
            }
            if statements.any_sent_ahead() {
                pins.insert(Pin::Prepared);
            }
        }
        pins
    }

    /// MySQL cancels by KILL; there is no secret.
    pub fn is_cancel_secret(&self, _secret: &[u8]) -> bool {
        false
    }

    /// Looks at the start of the client's bytes.
    ///
    /// # Errors
    /// `ClientProtocol` and `ClientTooLarge`: close the client. `NotAllowed` when a request that was
    /// already sent in part turns out to be one that Weir cannot carry.
    pub fn find(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Found, Fault> {
        match &mut self.phase {
            Phase::Greeting | Phase::Busy => Ok(Found::Incomplete),
            Phase::Idle => self.find_command(input, out),
            Phase::Long(_) => self.find_part(input, true),
            Phase::File(file) => {
                let (found, ended) = file.find(input);
                if ended {
                    self.phase = Phase::Busy;
                }
                Ok(found)
            }
        }
    }

    /// The client is in the middle of a command or of a packet of its file; `kept` bytes of it wait to be
    /// found.
    pub fn is_mid_message(&self, kept: usize) -> bool {
        match &self.phase {
            Phase::Long(_) => true,
            Phase::File(file) => file.left > 0 || kept > 0,
            Phase::Greeting | Phase::Idle | Phase::Busy => kept > 0,
        }
    }

    fn find_command(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Found, Fault> {
        let Some(header) = Header::read(input) else { return Ok(Found::Incomplete) };
        if header.seq != 0 || header.len == 0 {
            return Err(Fault::new(FaultKind::ClientProtocol, "a command with a wrong header"));
        }
        self.reply_seq = 1;
        if header.total() > limits::REQUEST_GATHER_BYTES {
            return self.begin_long(header, input);
        }
        let Some(payload) = input.get(HEADER_BYTES..header.total()) else { return Ok(Found::Incomplete) };
        let len = header.total();
        self.reply_begun = false;
        let code = payload.first().copied().unwrap_or_default();
        let Some(command) = Command::from_code(code) else { return Ok(self.unknown_command(len, out)) };
        self.request = Request::new(command);
        match command {
            Command::Quit => Ok(Found::Goodbye),
            Command::Query => Ok(self.find_query(payload, len, out)),
            Command::StmtPrepare => Ok(self.find_prepare(payload, len, out)),
            Command::StmtExecute
            | Command::StmtFetch
            | Command::StmtReset
            | Command::StmtClose
            | Command::StmtSendLongData => self.find_statement(command, payload, len, out),
            Command::Ping | Command::Statistics => Ok(self.request(len)),
            Command::InitDb
            | Command::FieldList
            | Command::Refresh
            | Command::ProcessInfo
            | Command::Debug => Ok(self.request(len)),
            Command::ProcessKill => {
                let mut r = Reader::new(payload.get(1..).unwrap_or_default());
                let target = r.u32_le().map_err(|_| malformed("COM_PROCESS_KILL"))?;
                Ok(self.kill(target, false, len))
            }
            Command::SetOption => Ok(self.set_option(payload, len, out)),
            Command::ResetConnection => Ok(self.find_reset(len, out)),
            Command::ChangeUser if self.refused_logins < REFUSED_LOGINS => Ok(Found::Login { len }),
            Command::ChangeUser => Ok(self.unknown_command(len, out)),
            Command::Shutdown
            | Command::BinlogDump
            | Command::BinlogDumpGtid
            | Command::RegisterReplica
            | Command::Clone
            | Command::SubscribeGroupReplication => Ok(self.not_allowed(len, out)),
            Command::Sleep
            | Command::CreateDb
            | Command::DropDb
            | Command::Connect
            | Command::Time
            | Command::DelayedInsert
            | Command::TableDump
            | Command::ConnectOut
            | Command::Daemon
            | Command::StmtBulkExecute => Ok(self.unknown_command(len, out)),
        }
    }

    /// The request is whole and goes to a server.
    pub(crate) fn request(&mut self, len: usize) -> Found {
        self.phase = Phase::Busy;
        let quiet = self.status & (status::IN_TRANS | status::AUTOCOMMIT) == status::AUTOCOMMIT;
        let shareable = quiet && self.request.leaves_no_trace() && self.pins().is_empty();
        Found::Request { len, needs: Needs { shareable, ..Needs::default() } }
    }

    fn find_query(&mut self, payload: &[u8], len: usize, out: &mut Vec<u8>) -> Found {
        let text = payload.get(1..).unwrap_or_default();
        let class = classify(self.dialect(), text);
        if let Some(found) = self.find_kill(&class, text, len, out) {
            return found;
        }
        if class.uses.contains(Uses::EXPLAIN_CONNECTION) || rewrite::impossible(&class) {
            return self.not_allowed(len, out);
        }
        let asks_all = class.uses.contains(Uses::WARNINGS) && is_show_warnings(text);
        if asks_all && let Some(warnings) = &self.warnings {
            warnings.put(self.capabilities, self.status & !status::OF_THE_REPLY, out);
            return Found::Answered { len };
        }
        let mut extra = Extra::default();
        extra.changes = class.set().and_then(|set| changes_of(set, text));
        extra.text = rewrite::text(&class, text, &self.answers(), true);
        if class.uses.intersects(Uses::ROW_COUNT | Uses::FOUND_ROWS) {
            extra.text_here = Some(rewrite::text(&class, text, &self.answers(), false));
        }
        // Its own trackers are shown to it from now on.
        let tracker = |name: &str| name.starts_with("session_track");
        self.own_trackers |=
            class.set().is_some_and(|set| set.assignments.iter().any(|assignment| tracker(&assignment.name)));
        self.note_uses(&class);
        self.request.class = class;
        if extra.changes.is_some() || extra.text.is_some() || extra.text_here.is_some() {
            self.request.extra = Some(Box::new(extra));
        }
        self.request(len)
    }

    /// KILL in any form is never sent to a server: the numbers in it are Weir's.
    fn find_kill(&mut self, class: &Class, text: &[u8], len: usize, out: &mut Vec<u8>) -> Option<Found> {
        match class.kill() {
            Some(Kill::Id { id, query_only }) => {
                let target = u32::try_from(id).unwrap_or(0);
                Some(self.kill(target, query_only, len))
            }
            Some(Kill::Other) => match rewrite::kill_self(class, text) {
                Some(query_only) => Some(self.kill(self.id, query_only, len)),
                None => Some(self.not_allowed(len, out)),
            },
            None if class.verb == weir_sql::Verb::Kill => Some(self.not_allowed(len, out)),
            None => None,
        }
    }

    fn kill(&mut self, target: u32, query_only: bool, len: usize) -> Found {
        self.phase = Phase::Busy;
        self.request.number = target;
        Found::Kill { len, target, query_only }
    }

    fn find_prepare(&mut self, payload: &[u8], len: usize, out: &mut Vec<u8>) -> Found {
        let text = payload.get(1..).unwrap_or_default();
        let class = classify(self.dialect(), text);
        // The numbers KILL ? is given at each execution are Weir's, too.
        let is_kill = class.verb == weir_sql::Verb::Kill;
        if is_kill || class.uses.contains(Uses::EXPLAIN_CONNECTION) || rewrite::impossible(&class) {
            return self.not_allowed(len, out);
        }
        let rewritten = rewrite::text(&class, text, &self.answers(), false);
        let text = rewritten.as_deref().unwrap_or(text);
        self.prepare(class, text.into(), len, out)
    }

    /// The text is to be prepared.
    pub(crate) fn prepare(&mut self, class: Class, text: Box<[u8]>, len: usize, out: &mut Vec<u8>) -> Found {
        let statements = self.statements.get_or_insert_default();
        let Some(id) = statements.next_id() else {
            error::put(out, 1, 1461, "42000", "Can't create more prepared statements for this client");
            return Found::Answered { len };
        };
        self.request.number = id;
        self.note_uses(&class);
        self.request.class = class;
        let prepare = Some(Arc::new(Text::new(self.state.shape(), text)));
        self.request.extra = Some(Box::new(Extra { prepare, ..Extra::default() }));
        let found = self.request(len);
        debug_assert!(!matches!(found, Found::Request { needs: Needs { shareable: true, .. }, .. }));
        found
    }

    fn find_statement(
        &mut self,
        command: Command,
        payload: &[u8],
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<Found, Fault> {
        let number = statement_id(payload).map_err(|_| malformed("a command about a statement"))?;
        let idle = self.status & !status::OF_THE_REPLY;
        let flavour = self.traits.flavour;
        let capabilities = self.capabilities;
        let kept = self.statements.as_deref().map_or(0, ClientStatements::long_data_bytes);
        let Some(statements) = self.statements.as_deref_mut() else {
            return Ok(unknown_statement(command, flavour, number, len, out));
        };
        self.request.number = statements.resolve(number);
        let Some(statement) = statements.get_mut(number) else {
            return Ok(unknown_statement(command, flavour, number, len, out));
        };
        match command {
            Command::StmtSendLongData => {
                if !statement.sent_ahead && kept + len <= crate::prepared::LONG_DATA_BYTES {
                    let header = Header { len: payload.len(), seq: 0 };
                    header.write(&mut statement.long_data);
                    statement.long_data.extend_from_slice(payload);
                    return Ok(Found::Answered { len });
                }
            }
            Command::StmtReset if !statement.cursor && !statement.sent_ahead => {
                statement.long_data = Vec::new();
                let ok = OkPacket { status: idle, ..OkPacket::default() };
                frame::put(out, 1, |out| ok.write(ok::OK, capabilities, out));
                return Ok(Found::Answered { len });
            }
            Command::StmtClose if !statement.cursor && !statement.sent_ahead => {
                statements.remove(number);
                return Ok(Found::Answered { len });
            }
            Command::StmtFetch if !statement.cursor => {
                let stop = if flavour == Flavour::MySql { "." } else { "" };
                let text = format!("The statement ({number}) has no open cursor{stop}");
                error::put(out, 1, 1421, "HY000", &text);
                return Ok(Found::Answered { len });
            }
            Command::StmtExecute => {
                let params = statement.params;
                let execute = crate::prepared::Execute::read(payload, params);
                let execute = execute.map_err(|_| malformed("COM_STMT_EXECUTE"))?;
                if execute.has_types {
                    statement.types = execute.types(payload, params).into();
                }
                self.request.class = (*statement.class).clone();
                let set = self.request.class.set();
                if let Some(changes) = set.and_then(|set| changes_of(set, &statement.text.text)) {
                    self.request.extra = Some(Box::new(Extra { changes: Some(changes), ..Extra::default() }));
                }
                // A cursor belongs to its server.
                self.request.class.shareable &= !execute.cursor && !statement.cursor;
            }
            _ => {}
        }
        Ok(self.request(len))
    }

    fn set_option(&mut self, payload: &[u8], len: usize, out: &mut Vec<u8>) -> Found {
        let multi_statements = match payload.get(1..3) {
            Some([0, 0]) => true,
            Some([1, 0]) => false,
            Some(_) | None => return self.unknown_command(len, out),
        };
        // The server is told with the next request.
        self.state.multi_statements = multi_statements;
        self.put_ok(ok::EOF, out);
        Found::Answered { len }
    }

    fn find_reset(&mut self, len: usize, out: &mut Vec<u8>) -> Found {
        // Nothing of this client is on any server but what would be brought there anew.
        if self.pins().is_empty() && self.status & status::IN_TRANS == 0 {
            self.reset_session();
            self.put_ok(ok::OK, out);
            return Found::Answered { len };
        }
        self.request(len)
    }

    /// Remembers what this client is in the habit of asking.
    pub(crate) fn note_uses(&mut self, class: &Class) {
        if class.uses.intersects(Uses::LAST_INSERT_ID | Uses::LAST_INSERT_ID_SET) {
            self.asks_insert_id = true;
        }
    }

    /// What the text may ask about this client, for [`rewrite::text`].
    fn answers(&self) -> rewrite::Answers {
        rewrite::Answers {
            id: self.id,
            row_count: self.row_count,
            found_rows: (self.found_rows != ROWS_UNKNOWN).then_some(self.found_rows),
        }
    }

    /// The rules by which this client's texts are read.
    pub(crate) fn dialect(&self) -> Dialect {
        let (mut ansi_quotes, mut no_backslash_escapes) =
            (self.traits.ansi_quotes, self.traits.no_backslash_escapes);
        if let Some(mode) = self.state.setting(Slot::SqlMode) {
            (ansi_quotes, no_backslash_escapes) = modes_of(mode);
        }
        Dialect::MySql {
            ansi_quotes,
            no_backslash_escapes,
            mariadb: self.traits.flavour == Flavour::MariaDb,
            encoding: self.state.encoding(),
        }
    }

    pub(crate) fn put_ok(&self, first: u8, out: &mut Vec<u8>) {
        let ok = OkPacket { status: self.status & !status::OF_THE_REPLY, ..OkPacket::default() };
        frame::put(out, 1, |out| ok.write(first, self.capabilities, out));
    }

    fn unknown_command(&self, len: usize, out: &mut Vec<u8>) -> Found {
        error::put(out, 1, 1047, "08S01", "Unknown command");
        Found::Answered { len }
    }

    fn not_allowed(&self, len: usize, out: &mut Vec<u8>) -> Found {
        error::put_fault(out, 1, FaultKind::NotAllowed);
        Found::Answered { len }
    }

    /// The request will not run: answers it with an error; the session goes on.
    pub fn reject(&mut self, fault: &Fault, _request: &[u8], out: &mut Vec<u8>) {
        let mute = matches!(self.request.command, Command::StmtClose | Command::StmtSendLongData);
        if !mute {
            error::put_fault(out, self.reply_seq, fault.kind);
        }
        self.forget_request();
    }

    /// Last words before Weir closes this client. None in the middle of a reply: they would be taken for a
    /// part of it.
    pub fn fatal(&mut self, fault: &Fault, out: &mut Vec<u8>) {
        if matches!(self.phase, Phase::Greeting) {
            error::put_fault(out, self.seq, fault.kind);
        } else if !self.reply_begun {
            error::put_fault(out, self.reply_seq, fault.kind);
        }
    }

    /// Last words: a server's refusal of Weir's login.
    pub fn fatal_rejection(&mut self, rejection: &[u8], out: &mut Vec<u8>) {
        let seq = if matches!(self.phase, Phase::Greeting) { self.seq } else { self.reply_seq };
        // Before its own login is through, a server may leave out the SQLSTATE; a client of ours is past
        // that.
        match ok::ErrPacket::read(rejection) {
            Ok(err) => {
                let sqlstate = if err.sqlstate.is_empty() { &b"HY000"[..] } else { err.sqlstate };
                frame::put(out, seq, |out| ok::ErrPacket { sqlstate, ..err }.write(out));
            }
            Err(_) => {
                error::put_fault(out, seq, FaultKind::ServerLoginFailed);
            }
        }
    }

    /// The answer to `Found::Kill`.
    pub fn killed(&mut self, outcome: KillOutcome, out: &mut Vec<u8>) {
        let target = self.request.number;
        match outcome {
            // Whoever interrupts itself is told so, as by a server.
            KillOutcome::Killed if target == self.id => {
                error::put_fault(out, 1, FaultKind::Cancelled);
            }
            KillOutcome::Killed => self.put_ok(ok::OK, out),
            KillOutcome::NoSuchThread => {
                error::put(out, 1, 1094, "HY000", &format!("Unknown thread id: {target}"));
            }
            KillOutcome::Denied => {
                error::put(out, 1, 1095, "HY000", &format!("You are not owner of thread {target}"));
            }
        }
        self.forget_request();
    }

    fn forget_request(&mut self) {
        self.request = Request::new(Command::Ping);
        self.phase = Phase::Idle;
        self.reply_begun = false;
    }

    /// The reply is done: takes over what the request did.
    pub(crate) fn finish(&mut self, outcome: &Outcome, server: u64) {
        let request = std::mem::replace(&mut self.request, Request::new(Command::Ping));
        self.phase = Phase::Idle;
        self.reply_begun = false;
        if !matches!(request.command, Command::Query | Command::StmtExecute) {
            // What asks about the last result leaves it as it was; these do not change it.
            if outcome.failed || outcome.warnings > 0 {
                self.only_warnings |= !self.last_result;
                self.last_result = true;
                self.warnings = None;
            }
            return;
        }
        let class = &request.class;
        let mut pins = class.pins;
        let mut explained = !pins.is_empty() || explains_change(class);
        let changes = request.extra.and_then(|extra| extra.changes);
        if outcome.any_ok && !outcome.failed {
            if let Some(changes) = changes
                && self.state.apply(changes)
            {
                pins.remove(Pin::Setting);
            }
            for pin in class.releases.iter().filter(|pin| *pin != Pin::SessionLock) {
                self.pins.remove(pin);
            }
        }
        if class.transaction == Some(Transaction::SetTransaction)
            && class.statements == 1
            && self.traits.trackers
        {
            pins.remove(Pin::Setting);
        }
        if !self.traits.trackers && class.uses.contains(Uses::BLOCK) {
            explained = false;
        }
        if class.verb == weir_sql::Verb::Use && class.statements == 1 {
            // The tracker says where it led.
            pins.remove(Pin::Setting);
        }
        self.finish_locks(class, outcome);
        pins.remove(Pin::SessionLock);
        // LastResult lasts to the next statement, see below.
        pins.remove(Pin::LastResult);
        if outcome.any_ok {
            self.pins.union(pins);
        } else if pins.contains(Pin::UserVariable) {
            // A failed statement may have assigned before it failed.
            self.pins.insert(Pin::UserVariable);
        }
        if (outcome.state_changed || !self.traits.trackers && class.uses.contains(Uses::BLOCK)) && !explained
        {
            self.pins.insert(Pin::Setting);
        }
        self.finish_last(&request.class, outcome, server);
    }

    fn finish_locks(&mut self, class: &Class, outcome: &Outcome) {
        // GET_LOCK() may have got its lock in a statement that failed later.
        if outcome.any_ok || class.takes.contains(Locks::NAMED) {
            self.locks.insert(class.takes);
        }
        if outcome.any_ok && !outcome.failed && class.statements == 1 {
            self.locks.remove(class.frees);
        }
        if self.locks.is_empty() {
            self.pins.remove(Pin::SessionLock);
        } else {
            self.pins.insert(Pin::SessionLock);
        }
    }

    /// What the next statement may ask about this one.
    fn finish_last(&mut self, class: &Class, outcome: &Outcome, server: u64) {
        self.last_server = server;
        if outcome.insert_id != 0 {
            self.insert_id = outcome.insert_id;
            self.insert_unknown = false;
        }
        if sets_insert_id(class, outcome) {
            self.insert_server = server;
            // An INSERT that names its own id reports that id, but LAST_INSERT_ID() stays as it was: whoever
            // asks must get the truth.
            self.insert_unknown = outcome.insert_id == 0 || self.asks_insert_id;
        }
        self.row_count = match outcome.affected_rows {
            Some(rows) if !outcome.failed => i64::try_from(rows).unwrap_or(i64::MAX),
            Some(_) | None => -1,
        };
        let plain_rows = outcome.affected_rows.is_none() && !outcome.failed && class.statements == 1;
        let calculated = class.uses.contains(Uses::CALC_FOUND_ROWS);
        let is_select = class.verb == weir_sql::Verb::Select;
        self.found_rows = if plain_rows && is_select && !calculated { outcome.rows } else { ROWS_UNKNOWN };
        let asks_warnings = class.uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS);
        let asks_about_last = self.statements.as_deref().is_some_and(|all| all.asks_about_last);
        let warns = outcome.failed || outcome.warnings > 0;
        // What asks about the last result leaves it as it was.
        if asks_warnings && !warns && !calculated && !asks_about_last {
            return;
        }
        self.last_result = warns || calculated || asks_about_last;
        self.only_warnings = !calculated && !asks_about_last;
        self.warnings = None;
    }

    /// The last statement left warnings, and they are kept here.
    pub(crate) fn has_warnings(&self) -> bool {
        self.warnings.is_some()
    }

    /// Nothing but the warnings of its last statement keeps a server with this client.
    pub(crate) fn only_warnings_pin(&self) -> bool {
        let mut others = self.pins();
        others.remove(Pin::LastResult);
        self.last_result && self.only_warnings && others.is_empty()
    }

    /// The warnings of the last statement are here now; the server may go.
    pub(crate) fn keep_warnings(&mut self, warnings: Option<Box<Warnings>>) {
        self.warnings = warnings;
        self.last_result = false;
    }

    /// COM_RESET_CONNECTION: all of the session but its schema begins anew.
    pub(crate) fn reset_session(&mut self) {
        let charset = match self.traits.flavour {
            Flavour::MariaDb => self.login_charset,
            Flavour::MySql => Charset::ServerDefault,
        };
        let multi_statements = self.state.multi_statements;
        let schema = self.state.schema.take();
        self.state = State { schema, charset, settings: None, multi_statements };
        self.statements = None;
        self.pins = Pins::NONE;
        self.locks = Locks::NONE;
        self.status = status::AUTOCOMMIT;
        self.one_shot = false;
        self.last_result = false;
        self.only_warnings = false;
        self.warnings = None;
        self.insert_id = 0;
        self.insert_server = 0;
        self.insert_unknown = false;
        self.own_trackers = false;
        self.row_count = -1;
        self.found_rows = ROWS_UNKNOWN;
    }

    /// The login that COM_CHANGE_USER began was refused. MariaDB goes on with the session as it was after its own
    /// login, but with the server's character set, and refuses any more such commands after three; MySQL closes.
    /// Returns whether it goes on.
    pub fn login_refused(&mut self) -> bool {
        self.reset_session();
        self.state.charset = Charset::ServerDefault;
        self.forget_request();
        self.refused_logins += 1;
        self.traits.flavour == Flavour::MariaDb
    }

    /// The collation the client logged in with.
    pub(crate) fn login_collation(&self) -> u16 {
        self.login_collation
    }

    /// Adds a reason that only a reply shows.
    pub(crate) fn pin(&mut self, pin: Pin) {
        self.pins.insert(pin);
    }
}

impl FileData {
    /// Finds what is there; true when the end of the file is among it.
    fn find(&mut self, input: &[u8]) -> (Found, bool) {
        let mut pos = 0;
        let mut ended = false;
        while !ended {
            let rest = input.get(pos..).unwrap_or_default();
            if self.left > 0 {
                let n = self.left.min(rest.len());
                self.left -= n;
                pos += n;
                if self.left > 0 {
                    break;
                }
                continue;
            }
            let Some(header) = Header::read(rest) else { break };
            ended = header.len == 0 && !self.continuing;
            self.continuing = header.continues();
            self.left = header.len;
            pos += HEADER_BYTES;
        }
        let needs = Needs { lease: true, continues: true, shareable: false };
        match (pos, ended) {
            (0, _) => (Found::Incomplete, false),
            (len, true) => (Found::Request { len, needs }, true),
            (len, false) => (Found::Part { len, needs }, false),
        }
    }
}

/// ANSI_QUOTES and NO_BACKSLASH_ESCAPES in a value of `sql_mode`.
pub(crate) fn modes_of(mode: &str) -> (bool, bool) {
    let mode = mode.trim_matches('\'').to_ascii_uppercase();
    // The combinations all have ANSI_QUOTES in them.
    let ansi = ["ANSI", "ANSI_QUOTES", "DB2", "MAXDB", "MSSQL", "ORACLE", "POSTGRESQL"];
    let has = |names: &[&str]| mode.split(',').any(|word| names.contains(&word.trim()));
    (has(&ansi), has(&["NO_BACKSLASH_ESCAPES"]))
}

fn sets_insert_id(class: &Class, outcome: &Outcome) -> bool {
    outcome.insert_id != 0
        || class.uses.intersects(Uses::LAST_INSERT_ID_SET | Uses::BLOCK)
        || class.pins.contains(Pin::Unrecognised)
}

/// The lexer saw why the tracker says that the session changed.
fn explains_change(class: &Class) -> bool {
    match class.verb {
        weir_sql::Verb::Set | weir_sql::Verb::Use | weir_sql::Verb::Drop | weir_sql::Verb::Deallocate => {
            class.statements == 1 && !class.uses.contains(Uses::BLOCK)
        }
        _ => false,
    }
}

fn unknown_statement(
    command: Command,
    flavour: Flavour,
    number: u32,
    len: usize,
    out: &mut Vec<u8>,
) -> Found {
    let name = match command {
        // These two are never answered.
        Command::StmtClose | Command::StmtSendLongData => return Found::Answered { len },
        _ if flavour == Flavour::MySql => "mysql_stmt_precheck",
        Command::StmtFetch => "mysqld_stmt_fetch",
        Command::StmtReset => "mysqld_stmt_reset",
        _ => "mysqld_stmt_execute",
    };
    let text = format!("Unknown prepared statement handler ({number}) given to {name}");
    error::put(out, 1, 1243, "HY000", &text);
    Found::Answered { len }
}

pub(crate) fn malformed(what: &'static str) -> Fault {
    Fault::new(FaultKind::ClientProtocol, what)
}
