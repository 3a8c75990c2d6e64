//! The server side of a session: a queue of requests, and the reply that is owed for each.
//!
//! Owns: [`Back`], what Weir knows about the session, and its small questions. The entries of the queue are
//! in `queue.rs`; requests are written in `dispatch.rs`, replies read in `reply.rs`, Weir's own requests made
//! in `reset.rs`. Must not know: sockets, clocks, pools.
//!
//! Invariants:
//! - Replies arrive in queue order; everything a server sends belongs to the head of the queue.
//! - When the server is not in the client's state, Weir sends the difference first and holds the request
//!   until all of it is confirmed, so a request never runs in a wrong state. Requests behind it wait, too.
//!   Only a difference costs that round trip.
//! - The request of a disconnected client keeps its place; its reply is dropped.

use crate::catalogue::Study;
use crate::dispatch::Texts;
use crate::follow::Variables;
use crate::frame::{HEADER_BYTES, Header};
use crate::front::Front;
use crate::front::{Traits, modes_of};
use crate::insert_id::InsertId;
use crate::login::again::Again;
use crate::login::connect::ServerFacts;
use crate::message::ok::OkPacket;
use crate::message::{Capabilities, ok, status};
use crate::prepared::ServerStatements;
use crate::queue::{Ahead, Entry, Stage};
use crate::session_state::{Flavour, LOGIN_COLLATION, ServerState, Slot, State, setup_behind_reset};
use crate::warnings::Kept;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use weir_session::Tally;
use weir_session::login::CancelPlan;
use weir_session::login::{Changes, ServerGreeting};
use weir_sql::catalogue::Answer;
use weir_sql::catalogue::Knowledge;
use weir_sql::catalogue::Reading;
use weir_wire::Fault;
use weir_wire::Step;
use weir_wire::{Boundary, Owner};

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
    /// The user variables that this session has.
    pub(crate) variables: Option<Arc<Variables>>,
    /// Whose LAST_INSERT_ID() this session would give.
    pub(crate) insert_id: InsertId,
    /// The client whose FOUND_ROWS() only this session knows.
    pub(crate) found_client: u64,
    /// The client whose warnings SHOW WARNINGS would show here.
    pub(crate) warned_client: u64,
    /// The client whose request was the last thing that ran here: code finds what that has left.
    pub(crate) last_client: u64,
    /// The client whose request ran here last, whatever it has left.
    pub(crate) guest: u64,
    /// Rows that the last statement here has changed, Weir's own included: what MySQL's CALL answers that
    /// counts nothing.
    pub(crate) last_rows: u64,
    /// Whose FOUND_ROWS() this session gives, as [`Front::found_mark`] has it; 0: of nobody that is known.
    pub(crate) found_here: u128,
    /// MySQL: whose FOUND_ROWS() it would give behind a statement that changes rows, as [`Front::next_mark`]
    /// has it.
    pub(crate) next_here: u128,
    /// A request of Weir's own failed, or the end of a request cannot be sent any more.
    pub(crate) broken: bool,
    /// Statements prepared here for clients that had prepared them elsewhere, not counted yet.
    pub(crate) tally: Tally,
    /// A client left in the middle of something that may have left a trace.
    pub(crate) tainted: bool,
    /// Part of a message was read.
    pub(crate) mid_message: bool,
    /// The trackers must be switched on again.
    pub(crate) needs_setup: bool,
    pub(crate) again: Again,
    /// What may have to be asked again.
    pub(crate) texts: Texts,
    /// What the pool knows of the database's catalogue.
    pub(crate) knowledge: Arc<Knowledge>,
    /// A question about it is under way here.
    pub(crate) study: Option<Box<Study>>,
    /// Something ran here of which it was not known what it does: a reset comes before anybody else.
    pub(crate) doubtful: bool,
    /// [`Knowledge::surprises`] when nobody had run anything here.
    pub(crate) surprises: u64,
    greeting: Arc<ServerGreeting>,
    /// What a statement makes of its parameters depends on its executions before (MySQL from 8.0.22 on).
    pub(crate) settles_types: bool,
    server_id: u64,
    trackers: bool,
    /// A client ran here last that stands in this schema, which is gone: the session has none.
    pub(crate) lost_schema: Option<Arc<str>>,
    /// MySQL tells with the next OK, whosever it is, that preparing a statement with SET_VAR has set
    /// something for a moment.
    pub(crate) untold_hint: bool,
    /// Counted by all servers: see [`Changes`].
    changes: Changes,
    /// What it was when the login here began.
    born: u64,
    /// Sessions begin with autocommit off, whatever the flags say.
    pub(crate) autocommit_off: bool,
    /// Sessions begin with what init_connect says, which no reset runs again.
    pub(crate) begins_otherwise: bool,
    /// Sessions begin with `session_track_schema` on.
    tracks_schema: bool,
    /// MariaDB: texts of its client may be listed here, which SHOW PROFILES would tell others.
    pub(crate) has_profiles: bool,
    /// MariaDB: a transaction of XA has begun here. A reset would leave its locks where nobody can end it.
    pub(crate) has_xa: bool,
    /// What is set behind a reset of Weir's own, and behind one of a client's.
    pub(crate) setup_behind_reset: Box<str>,
    pub(crate) setup_behind_own: Box<str>,
}

impl Back {
    pub(crate) fn new(
        facts: ServerFacts,
        again: Again,
        database: String,
        max_prepared_statements: usize,
    ) -> Back {
        let mut state = State::new(u16::from(LOGIN_COLLATION), true);
        state.base = Some(facts.base.clone());
        state.multi_statements = facts.capabilities.has(Capabilities::MULTI_STATEMENTS);
        state.schema = (!database.is_empty()).then(|| database.into());
        let autocommit_at = Slot::BASED.iter().position(|slot| *slot == Slot::Autocommit);
        let autocommit = autocommit_at.and_then(|at| facts.base.get(at)?.as_deref());
        Back {
            autocommit_off: autocommit == Some("0"),
            queue: VecDeque::new(),
            session: ServerState {
                state,
                known: true,
                schema_known: true,
                charset_known: true,
                settings_known: true,
                restricted: false,
                flavour: facts.flavour,
                base: facts.base,
            },
            begins_otherwise: facts.begins_otherwise,
            tracks_schema: facts.tracks_schema,
            has_profiles: false,
            has_xa: false,
            setup_behind_reset: setup_behind_reset(facts.flavour, facts.role.as_deref(), false).into(),
            setup_behind_own: setup_behind_reset(facts.flavour, facts.role.as_deref(), true).into(),
            statements: ServerStatements::new(max_prepared_statements),
            capabilities: facts.capabilities,
            status: facts.status,
            quiet_transaction: false,
            variables: None,
            insert_id: InsertId::Zero,
            found_client: 0,
            warned_client: 0,
            last_client: 0,
            guest: 0,
            last_rows: 0,
            found_here: 0,
            next_here: 0,
            broken: false,
            tally: Tally::default(),
            tainted: false,
            mid_message: false,
            needs_setup: false,
            again,
            texts: Texts::default(),
            knowledge: Arc::default(),
            study: None,
            doubtful: false,
            surprises: 0,
            settles_types: facts.flavour == Flavour::MySql && settles_types(&facts.greeting.version),
            greeting: facts.greeting,
            server_id: facts.id,
            trackers: facts.trackers,
            lost_schema: None,
            untold_hint: false,
            born: facts.born,
            changes: facts.changes,
        }
    }

    pub(crate) fn changes(&self) -> (&Changes, u64) {
        (&self.changes, self.born)
    }

    /// A client has changed an account or a global setting: what logs in from here on sees it.
    pub(crate) fn count_change(&self) {
        self.changes.fetch_add(1, Relaxed);
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
        Traits {
            flavour: self.session.flavour,
            trackers: self.trackers,
            ansi_quotes,
            no_backslash_escapes,
            autocommit_off: self.autocommit_off,
            tracks_schema: self.tracks_schema,
        }
    }

    /// What SHOW WARNINGS would show here is this client's.
    pub(crate) fn shows_warnings_of(&self, front: Option<&Front>) -> bool {
        front.is_some_and(|front| {
            let is_here = self.warned_client == front.unique() && front.last_server == self.server_id;
            is_here && matches!(front.warnings(), None | Some(Kept::Read(..)))
        })
    }

    /// A COM_CHANGE_USER of Weir's own is under way.
    pub(crate) fn is_logging_in(&self) -> bool {
        self.queue.iter().any(|entry| entry.ahead.iter().any(|ahead| matches!(ahead, Ahead::Login)))
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        self.queue.push_back(entry);
    }

    /// With the head taken out of the queue: the server has requests behind it. A question of Weir's own
    /// would be answered after theirs.
    pub(crate) fn others_are_sent(&self) -> bool {
        self.queue.iter().any(|entry| entry.stage != Stage::Waiting)
    }

    /// COM_RESET_CONNECTION was sent.
    pub(crate) fn session_was_reset(&mut self) {
        self.statements.clear();
        self.session.charset_known = false;
        // They are what the global ones are now, which may not be what they were at the login.
        self.session.settings_known = false;
        self.session.restricted = false;
        self.session.state.settings = None;
        self.variables = None;
        self.insert_id = InsertId::Zero;
        self.found_client = 0;
        self.warned_client = 0;
        self.last_client = 0;
        self.last_rows = 0;
        self.found_here = 0;
        self.next_here = 0;
        self.quiet_transaction = false;
        self.tainted = false;
    }
}

impl weir_session::Back for Back {
    type Front = Front;

    fn is_never_reset(&self) -> bool {
        self.begins_otherwise || self.has_profiles || self.has_xa
    }

    /// An account or a global setting was changed since its login: that is for new sessions.
    fn is_outdated(&self) -> bool {
        self.changes.load(Relaxed) != self.born
    }

    /// How the server greeted Weir: so are its clients.
    fn server_greeting(&self) -> Option<&Arc<ServerGreeting>> {
        Some(&self.greeting)
    }

    fn answers_head(&self) -> bool {
        self.queue.front().is_some_and(|head| head.stage == Stage::Sent && !head.gone && !head.studies)
    }

    fn is_plain_answer(&self, answer: &[u8]) -> bool {
        is_plain(answer, self.capabilities)
    }

    fn echo(&self) -> Back {
        let session = ServerState {
            known: true,
            schema_known: true,
            charset_known: true,
            settings_known: true,
            ..self.session.clone()
        };
        let scramble = Vec::new();
        let most_statements = 1;
        Back {
            queue: VecDeque::new(),
            session,
            begins_otherwise: false,
            tracks_schema: self.tracks_schema,
            has_profiles: false,
            has_xa: false,
            setup_behind_reset: Box::default(),
            setup_behind_own: Box::default(),
            statements: ServerStatements::new(most_statements),
            capabilities: self.capabilities,
            status: self.traits().fresh_status(),
            quiet_transaction: false,
            variables: None,
            insert_id: InsertId::Zero,
            found_client: 0,
            warned_client: 0,
            last_client: 0,
            guest: 0,
            last_rows: 0,
            found_here: 0,
            next_here: 0,
            broken: false,
            tally: Tally::default(),
            tainted: false,
            mid_message: false,
            needs_setup: false,
            again: Again { credentials: self.again.credentials.clone(), method: self.again.method, scramble },
            texts: Texts::default(),
            knowledge: Arc::clone(&self.knowledge),
            study: None,
            doubtful: false,
            surprises: self.surprises,
            greeting: Arc::clone(&self.greeting),
            settles_types: self.settles_types,
            // Nobody's: what a client may ask about its last statement, no server knows.
            server_id: 0,
            trackers: self.trackers,
            lost_schema: None,
            untold_hint: false,
            changes: self.changes.clone(),
            born: self.born,
            autocommit_off: self.autocommit_off,
        }
    }

    fn be_as(&mut self, front: &Front) {
        self.session.state = front.state.clone();
    }

    fn head(&self) -> Option<Owner> {
        self.queue.front().map(Entry::reader)
    }

    fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Bytes of requests that wait until what goes ahead of them is confirmed.
    fn held_bytes(&self) -> usize {
        self.queue.iter().map(|entry| entry.held.len()).sum()
    }

    fn owner_at(&self, place: usize) -> Option<Owner> {
        self.queue.get(place).map(Entry::reader)
    }

    fn recall(&mut self, _front: &mut Front, owner: Owner, _out: &mut Vec<u8>) {
        for entry in self.queue.iter_mut().filter(|entry| entry.owner == owner) {
            entry.gone = true;
            entry.held = Vec::new();
        }
    }

    /// The request at the head goes on only when its client sends more: the file of LOCAL INFILE.
    fn awaits_client(&self) -> bool {
        self.queue.front().is_some_and(|head| !head.gone && head.reply.wants_file())
    }

    fn boundary(&self) -> Boundary {
        if self.status & status::IN_TRANS != 0 || self.quiet_transaction {
            Boundary::InTransaction
        } else {
            Boundary::Idle
        }
    }

    /// Idle, nothing owed, no part of a message read, and nothing failed.
    fn is_reusable(&self) -> bool {
        self.queue.is_empty()
            && self.boundary() == Boundary::Idle
            && !self.broken
            && !self.tainted
            && !self.doubtful
            && !self.mid_message
    }

    fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Every request of this protocol ends by itself.
    fn awaits_end(&self) -> bool {
        false
    }

    /// Nothing can make this server usable again: close it.
    fn is_broken(&self) -> bool {
        self.broken
    }

    /// The client whose reply is being passed on has got the beginning of a packet and not its end: nothing
    /// but the rest can be said to it.
    fn is_mid_message(&self) -> bool {
        self.mid_message
    }

    /// What its pool knows of the database's catalogue.
    fn know(&mut self, knowledge: &Arc<Knowledge>) {
        self.knowledge = Arc::clone(knowledge);
        self.surprises = knowledge.surprises();
    }

    fn is_favourite(&self, front: &Front) -> bool {
        let number = front.request.number;
        let statement = front.statements.as_deref().and_then(|all| all.get(number));
        statement.is_some_and(|one| self.statements.has_settled(one, (front.unique(), number)))
    }

    /// What ran here may have left something that nobody knows of.
    fn wants_reset(&self) -> bool {
        self.doubtful || self.surprises != self.knowledge.surprises()
    }

    /// The server works on the head's own request: a KILL QUERY hits that and not something of Weir's in
    /// front of it. A statement that is prepared waits for its tables.
    fn is_cancellable(&self, patient: bool) -> bool {
        self.queue.front().is_some_and(|entry| match entry.stage {
            Stage::Sent => true,
            Stage::Ahead => patient,
            _ => false,
        })
    }

    fn dispatch(
        &mut self,
        front: &mut Front,
        owner: Owner,
        request: &[u8],
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        self.dispatch(front, owner, request, whole, out)
    }

    fn extend(
        &mut self,
        front: &mut Front,
        bytes: &[u8],
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        self.extend(front, bytes, whole, out)
    }

    fn dispatch_welcome(&mut self, front: &mut Front, owner: Owner, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.dispatch_welcome(front, owner, out)
    }

    fn handle_reply(
        &mut self,
        front: Option<&mut Front>,
        input: &[u8],
        to_client: &mut Vec<u8>,
        to_server: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        self.handle_reply(front, input, to_client, to_server)
    }

    fn forget(&mut self, owner: Owner, out: &mut Vec<u8>) {
        self.forget(owner, out);
    }

    fn rollback(&mut self, out: &mut Vec<u8>) {
        self.rollback(out);
    }

    fn reset(&mut self, out: &mut Vec<u8>) {
        self.reset(out);
    }

    fn check(&mut self, out: &mut Vec<u8>) {
        self.check(out);
    }

    fn ask_catalogue(&mut self, reading: Reading, out: &mut Vec<u8>) -> bool {
        self.ask_catalogue(reading, out)
    }

    fn take_catalogue(&mut self) -> Option<Answer> {
        self.take_catalogue()
    }

    fn cancel_plan(&self) -> CancelPlan {
        self.cancel_plan()
    }

    fn connection_number(&self) -> Option<u64> {
        self.connection_number()
    }

    fn quit(&mut self, out: &mut Vec<u8>) {
        self.quit(out);
    }

    fn console_pid(&self) -> u64 {
        self.console_pid()
    }
}

/// MySQL from 8.0.22 on; in doubt, too.
fn settles_types(version: &str) -> bool {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok);
    match (next(), next(), next()) {
        (Some(major), Some(minor), Some(patch)) => (major, minor, patch) >= (8, 0, 22),
        _ => true,
    }
}

/// These packets are the answer to one statement, and it had rows, no error and no warning.
fn is_plain(answer: &[u8], capabilities: Capabilities) -> bool {
    let (mut rest, mut last, mut packets) = (answer, &[][..], 0u32);
    while let Some(header) = Header::read(rest) {
        packets += 1;
        let follows = u32::from(header.seq) == packets % 256;
        let Some(payload) = rest.get(HEADER_BYTES..header.total()).filter(|_| follows && !header.continues())
        else {
            return false;
        };
        if packets == 1
            && matches!(payload.first(), None | Some(&(ok::OK | ok::ERR | ok::EOF | ok::LOCAL_INFILE)))
        {
            return false;
        }
        last = payload;
        rest = rest.get(header.total()..).unwrap_or_default();
    }
    let says = status::MORE_RESULTS
        | status::IN_TRANS
        | status::CURSOR_EXISTS
        | status::DB_DROPPED
        | status::PS_OUT_PARAMS;
    let end = OkPacket::read(last, capabilities);
    rest.is_empty()
        && packets > 2
        && last.first() == Some(&ok::EOF)
        && end.is_ok_and(|end| end.warnings == 0 && end.status & says == 0)
}
