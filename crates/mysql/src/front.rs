//! The client side of a session: finds requests, answers those that need no server, carries the client's
//! state.
//!
//! Owns: where requests begin and end in a client's bytes, the lexer's result for the current request, the
//! client's state, pins and prepared statements, and what it may ask about its last statement. Must not know:
//! servers, queues.
//!
//! Invariants: one request is in progress at a time; a client that sends several commands at once keeps its
//! bytes until each reply is complete. `find` never changes the state: that happens when the reply confirms
//! the change.

mod by_heart;
mod cause;
mod class;
mod find;
mod finish;
mod found;
mod heads;
mod held;
mod last;
mod long;
mod outcome;
mod request;
mod rereads;
mod variables;
mod words;

pub(crate) use self::find::{AsksSession, NO_CURSOR, NO_MORE_STATEMENTS, has_no_cursor};
pub(crate) use self::finish::NO_SUCH_ROUTINE;
use self::held::Held;
pub(crate) use self::held::{Act, tells_one};
pub(crate) use self::last::{FoundLeft, opens_nothing};
use self::long::Long;
pub(crate) use self::outcome::Outcome;
use self::request::remove_setting;
pub(crate) use self::request::{Extra, Leaves, Request, Unsettles, runs_user_code};
use crate::binding::Wants;
use crate::frame::HEADER_BYTES;
use crate::login::FromLogin;
use crate::message::ok::{Change, changes, told_once};
use crate::message::{Capabilities, Command, status};
use crate::prepared::ClientStatements;
use crate::rewrite::{self, Rewritten};
use crate::says::Skipped;
use crate::session_state::{Charset, Flavour, Slot, State};
use crate::ssl_status::Own;
use crate::warnings::{Kept, Warnings};
use std::sync::Arc;
use weir_session::login::ClientId;
use weir_session::login::KillOutcome;
use weir_sql::catalogue::Knowledge;
use weir_sql::{Class, Dialect, Encoding, Locks, Uses};
use weir_wire::Found;
use weir_wire::{Fault, FaultKind, Pin, Pins, limits};

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
    /// Sessions begin with autocommit off.
    pub autocommit_off: bool,
    /// Sessions begin with `session_track_schema` on.
    pub tracks_schema: bool,
}

impl Traits {
    const UNKNOWN: Traits = Traits {
        flavour: Flavour::MySql,
        trackers: false,
        ansi_quotes: false,
        no_backslash_escapes: false,
        autocommit_off: false,
        tracks_schema: false,
    };

    /// The status flags of a session that has just begun.
    pub(crate) fn fresh_status(self) -> u16 {
        if self.autocommit_off { 0 } else { status::AUTOCOMMIT }
    }
}

/// What few clients have.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    /// The server on which its statements were prepared before it set something there.
    pub along_on: u64,
    /// Settings that a SET changed to values that only its server knows so far.
    pub unasked: Vec<Slot>,
    /// The request is answered but for the KILL at its end: its target, and whether only the request is
    /// meant.
    pub owed_kill: Option<(u32, bool)>,
    /// Changes of the session that it has not been told, because the packet that would have told them has no
    /// room for them: as the server's words are.
    pub untold: Vec<u8>,
    /// What stands behind a KILL in its text.
    pub behind_kill: Option<Box<[u8]>>,
    /// The server by whose number this client has seen itself last.
    pub listed_on: u64,
    /// A text that SQL prepared may ask for trackers.
    pub prepares_trackers: bool,
    /// SQL has prepared what is not in its text, or what changes how texts are read.
    pub prepares_unread: bool,
    /// How its texts are read is not known.
    pub reads_unknown: bool,
    /// It may have set what no reset takes away: its role; on MariaDB, that profiles are kept.
    pub outlives_reset: bool,
    /// Its user variables.
    pub variables: variables::Own,
}

/// A logged-in client.
#[derive(Debug)]
pub struct Front {
    id: ClientId,
    pub(crate) capabilities: Capabilities,
    pub(crate) state: State,
    pub(crate) phase: Phase,
    pub(crate) request: Request,
    /// What its pool knows of the database's catalogue.
    pub(crate) knowledge: Arc<Knowledge>,
    pub(crate) statements: Option<Box<ClientStatements>>,
    /// What LAST_INSERT_ID() gives.
    pub(crate) insert_id: u64,
    /// The server on which LAST_INSERT_ID() gives it by itself; 0 for none.
    pub(crate) insert_server: u64,
    /// The server that gave the last reply to a text, or to another command that has made its warnings
    /// others.
    pub(crate) last_server: u64,
    /// What ROW_COUNT() gives.
    row_count: i64,
    /// What FOUND_ROWS() gives; [`ROWS_UNKNOWN`] when only `found_server` knows.
    found_rows: u64,
    found_server: u64,
    /// This client uses FOUND_ROWS().
    asks_found_rows: bool,
    /// The last text may have changed FOUND_ROWS() ([`found::CHANGED`]), or what is in store for it
    /// ([`found::STORED`]).
    found_did: u8,
    /// MySQL: what the next statement that changes rows makes of FOUND_ROWS().
    found_next: found::Next,
    /// How often FOUND_ROWS() has become something else, and what is in store for it.
    found_times: [u32; 2],
    /// A server has run its last command: Weir has not answered in its place since.
    pub(crate) ran_there: bool,
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
    /// What it holds and may give back.
    held: Option<Box<Held>>,
    /// SET TRANSACTION was said about the next transaction.
    pub(crate) one_shot: bool,
    /// The warnings of the last statement are on its server only.
    last_result: bool,
    /// Code of users may have raised them.
    raised: bool,
    /// The warnings of the last statement, which has left its server.
    warnings: Option<Box<Kept>>,
    /// Warnings and errors of the last statement, as MySQL counts them in the OK of commands; `None` when
    /// only its server knows.
    conditions: Option<u16>,
    /// This client uses LAST_INSERT_ID().
    pub(crate) asks_insert_id: bool,
    /// `insert_id` may be something else: only `insert_server` knows.
    pub(crate) insert_unknown: bool,
    /// This client has set trackers of its own: which, as [`crate::session_state::tracker_bit`] has it.
    pub(crate) own_trackers: u8,
    /// A server has taken the settings of the login.
    pub(crate) confirmed: bool,
    /// A server refused the settings of the login.
    pub(crate) refused: bool,
    /// A packet of the reply under way has gone to the client.
    pub(crate) reply_begun: bool,
    /// Sequence number of the first packet of a reply: a request of several packets has counted on.
    pub(crate) reply_seq: u8,
    /// COM_CHANGE_USER was refused so often.
    refused_logins: u8,
    /// The reply to the request found next is a part of a longer one: so many packets went before.
    pub(crate) shift: u8,
    /// What is found next is a KILL for the database itself.
    passes: bool,
    /// What few clients have.
    pub(crate) rare: Option<Box<Rare>>,
    /// COMMIT RELEASE or ROLLBACK RELEASE has run: its server closes, and the client is closed with it,
    /// without a word.
    parting: bool,
    /// What few logins leave behind.
    pub(crate) login: Option<Box<FromLogin>>,
}

const ROWS_UNKNOWN: u64 = u64::MAX;
/// With this bit the server knows, but if it gives more rows than can have been found, those are another
/// client's, and the other bits say what FOUND_ROWS() gives.
const ROWS_UNLESS: u64 = 1 << 63;
/// FOUND_ROWS() of a session that has run nothing.
const ROWS_FRESH: u64 = u64::MAX - 1;
/// With [`ROWS_UNLESS`]: what the server gives is the client's, unless that is [`found::MARK`].
const ROWS_MARKED: u64 = 1 << 62;

impl Front {
    pub(crate) fn new(id: impl Into<ClientId>, capabilities: Capabilities, collation: u16, seq: u8) -> Front {
        Front {
            id: id.into(),
            capabilities,
            state: State::new(collation, capabilities.has(Capabilities::MULTI_STATEMENTS)),
            phase: Phase::Greeting,
            knowledge: Arc::default(),
            request: Request::new(Command::Ping),
            statements: None,
            insert_id: 0,
            insert_server: 0,
            row_count: 0,
            found_rows: ROWS_FRESH,
            found_server: 0,
            asks_found_rows: false,
            found_did: 0,
            found_next: found::Next::Same,
            found_times: [0, 0],
            ran_there: false,
            pins: Pins::NONE,
            locks: Locks::NONE,
            status: status::AUTOCOMMIT,
            login_collation: collation,
            login_charset: Charset::Collation(collation),
            traits: Traits::UNKNOWN,
            seq,
            held: None,
            one_shot: false,
            last_result: false,
            raised: false,
            warnings: None,
            conditions: Some(0),
            asks_insert_id: false,
            insert_unknown: false,
            own_trackers: 0,
            last_server: 0,
            confirmed: false,
            refused: false,
            reply_begun: false,
            reply_seq: 1,
            refused_logins: 0,
            shift: 0,
            passes: false,
            rare: None,
            parting: false,
            login: None,
        }
    }

    /// What is known of the database has changed since the request under way was found: it is judged again by
    /// what is known now.
    pub(crate) fn judge_again(&mut self, request: &[u8]) {
        let state = self.knowledge.state();
        // Where nothing is proven, more may be known than before all the same.
        if state == self.request.judged_by && (state != 0 || !runs_user_code(&self.request.class)) {
            return;
        }
        match self.request.command {
            Command::Query => {
                let gathered = self.request.extra.as_deref().and_then(|extra| extra.text.as_ref());
                let gathered =
                    gathered.filter(|_| self.request.gathered).map(|rewritten| rewritten.text.as_slice());
                let text = gathered.or(request.get(HEADER_BYTES + 1..)).unwrap_or_default();
                (self.request.class, self.request.judged_by) = self.classify(text);
            }
            Command::StmtExecute => {
                let proof = self.knowledge.proof();
                let number = self.request.number;
                if let Some(statement) = self.statements.as_deref_mut().and_then(|all| all.get_mut(number)) {
                    statement.judge(proof);
                    self.request.class = (*statement.class).clone();
                    self.request.judged_by = statement.judged_by;
                }
            }
            _ => {}
        }
    }

    /// The request under way is a plain read in words, and nothing of its client but what moves with it could
    /// bear on its answer, or would be another behind it than that says.
    pub(crate) fn is_plain(&self) -> bool {
        const OF_THE_SERVER: [&str; 4] = ["mysql", "sys", "information_schema", "performance_schema"];
        let request = &self.request;
        let schema = self.state.schema.as_deref().unwrap_or_default();
        let is_plain_request = request.command == Command::Query
            && request.class.is_alike()
            && !request.class.skips_rows
            && !request.class.uses.contains(Uses::CODE_SELECTS)
            && request.skipped == Skipped::Unsaid
            && request.leaves == Leaves::Nothing
            && request.asks_session == AsksSession::Nothing
            && request.extra.is_none()
            && request.act.is_none()
            && !request.only_once
            && !request.gathered
            && !request.changes_others;
        let has_nothing = self.pins.is_empty()
            && self.locks.is_empty()
            && self.held.is_none()
            && self.rare.is_none()
            && self.own_trackers == 0
            && !self.one_shot
            && !self.parting
            && !self.passes
            && !self.insert_unknown;
        let knows_its_last = !self.may_have_warnings()
            && self.conditions.is_some()
            && !self.asks_found_rows
            && self.found_next == found::Next::Same;
        is_plain_request
            && has_nothing
            && knows_its_last
            && matches!(self.phase, Phase::Busy)
            && (self.shift, self.reply_seq) == (0, 1)
            && self.status & (status::IN_TRANS | status::AUTOCOMMIT) == status::AUTOCOMMIT
            && !OF_THE_SERVER.iter().any(|own| own.eq_ignore_ascii_case(schema))
    }

    /// Settings that a SET changed to values that only its server knows so far.
    pub(crate) fn unasked(&self) -> &[Slot] {
        self.rare.as_deref().map_or(&[], |rare| &rare.unasked)
    }

    /// The same, of which none are left.
    fn take_unasked(&mut self) -> Vec<Slot> {
        self.rare.as_deref_mut().map(|rare| std::mem::take(&mut rare.unasked)).unwrap_or_default()
    }

    /// The same but for settings that the server can be asked for.
    pub(crate) fn lasting_pins(&self) -> Pins {
        let mut pins = self.pins;
        // What is told of a transaction that has begun is about that.
        if self.one_shot && !self.is_in_transaction() {
            pins.insert(Pin::Setting);
        }
        if self.last_result || self.parting {
            pins.insert(Pin::LastResult);
        }
        if let Some(statements) = &self.statements {
            let ties = statements.ties();
            if ties.cursor {
                pins.insert(Pin::Cursor);
            }
            if ties.sent_ahead || ties.mixed {
                pins.insert(Pin::Prepared);
            }
        }
        pins
    }

    /// Changes of the session behind an error or rows without room for them: MySQL tells them with its next
    /// OK; MariaDB, with the next one that has more to tell, and in an order of variables that nobody else
    /// knows, so that only the schema is kept for that.
    pub(crate) fn keep_untold(&mut self, words: &[u8]) {
        if !self.capabilities.has(Capabilities::SESSION_TRACK) {
            return;
        }
        let is_mysql = self.traits.flavour == Flavour::MySql;
        let mut new = Vec::new();
        for (change, entry) in changes(words) {
            match change {
                Change::Schema(_) => new.extend_from_slice(entry),
                Change::Variable | Change::Other if is_mysql => new.extend_from_slice(entry),
                Change::Variable
                | Change::Other
                | Change::State
                | Change::Characteristics(_)
                | Change::Transaction => {}
            }
        }
        if new.is_empty() {
            return;
        }
        let untold = &mut self.rare.get_or_insert_default().untold;
        let all = told_once(untold, &new, is_mysql);
        if all.len() <= limits::CLIENT_SETTINGS_BYTES {
            *untold = all;
        }
    }

    /// There is something that it has not been told.
    pub(crate) fn has_untold(&self) -> bool {
        self.rare.as_deref().is_some_and(|rare| !rare.untold.is_empty())
    }

    /// What it has not been told, for an OK to it that tells nothing else.
    pub(crate) fn take_untold(&mut self) -> Vec<u8> {
        if self.traits.flavour == Flavour::MariaDb {
            return Vec::new();
        }
        self.rare.as_deref_mut().map(|rare| std::mem::take(&mut rare.untold)).unwrap_or_default()
    }

    /// What an OK to it tells that has these changes to tell.
    pub(crate) fn told_with(&mut self, new: Vec<u8>) -> Vec<u8> {
        let is_mysql = self.traits.flavour == Flavour::MySql;
        let untold = self.rare.as_deref_mut().filter(|_| is_mysql || !new.is_empty());
        let untold = untold.map(|rare| std::mem::take(&mut rare.untold)).unwrap_or_default();
        if untold.is_empty() { new } else { told_once(&untold, &new, is_mysql) }
    }

    /// The session that they belonged to is over.
    pub(crate) fn forget_untold(&mut self) {
        if let Some(rare) = self.rare.as_deref_mut() {
            rare.untold = Vec::new();
        }
    }

    /// What its server knew of it is gone with that: it finds its connection closed, as with a server of its
    /// own.
    pub(crate) fn part(&mut self) {
        self.parting = true;
    }

    /// Remembers what this client is in the habit of asking.
    pub(crate) fn note_uses(&mut self, class: &Class) {
        if class.uses.intersects(Uses::LAST_INSERT_ID | Uses::LAST_INSERT_ID_SET) {
            self.asks_insert_id = true;
        }
        if class.uses.intersects(Uses::FOUND_ROWS | Uses::CALC_FOUND_ROWS) {
            self.asks_found_rows = true;
        }
    }

    /// It is in a transaction, or pinned: nothing moves it to another server now.
    pub(crate) fn stays_here(&self) -> bool {
        self.is_in_transaction() || !weir_session::Front::pins(self).is_empty()
    }

    /// It has begun a transaction of XA, or prepared one.
    pub(crate) fn has_xa(&self) -> bool {
        self.locks.contains(Locks::XA)
    }

    /// It is in a transaction.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.status & status::IN_TRANS != 0
    }

    /// What servers remember it by.
    pub(crate) fn unique(&self) -> u64 {
        self.id.unique()
    }

    /// What SHOW STATUS may tell of this client's connection.
    fn connection(&self) -> Own {
        self.login.as_deref().map(FromLogin::connection).unwrap_or_default()
    }

    /// What the text may ask about this client, for [`rewrite::text`].
    pub(crate) fn answers(&self) -> rewrite::Answers<'_> {
        rewrite::Answers {
            id: self.id.number(),
            row_count: self.row_count,
            found_rows: match self.found_rows {
                ROWS_FRESH => Some(0),
                rows if rows & ROWS_UNLESS != 0 => None,
                rows => Some(rows),
            },
            warning_counts: self.warning_counts(),
            diagnostics: self.diagnostics(),
            own: self.connection(),
            flavour: self.traits.flavour,
        }
    }

    /// What GET DIAGNOSTICS tells of the last statement, where that is known.
    pub(crate) fn diagnostics(&self) -> Option<&Warnings> {
        match self.warnings() {
            Some(Kept::Answer(warnings)) => Some(warnings),
            None if !self.last_result => Some(Warnings::none()),
            Some(Kept::Read(..) | Kept::Lost) | None => None,
        }
    }

    /// The text of the prepared statement that the request executes, with what it asks about the last
    /// statement answered.
    pub(crate) fn answered_statement(&mut self) -> Option<Rewritten> {
        if !rewrite::asks_about_last(&self.request.class) {
            return None;
        }
        let number = self.request.number;
        let text = self.statements.as_deref()?.get(number)?.text.clone();
        // What was answered when it was prepared has moved the places.
        let class = weir_sql::classify(self.dialect(), &text.text);
        let mut found = rewrite::text(&class, &text.text, &self.answers(), true)?;
        if !text.names.is_empty() {
            found.names = found.names.iter().chain(text.names.iter()).cloned().collect();
        }
        Some(found)
    }

    /// The last statement left warnings, or may have.
    pub(crate) fn may_have_warnings(&self) -> bool {
        self.last_result || self.warnings.is_some()
    }

    /// The rules by which this client's texts are read.
    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect_in(&self.state)
    }

    /// How a text was read that the client sent when this was its state.
    pub(crate) fn dialect_in(&self, state: &State) -> Dialect {
        let (mut ansi_quotes, mut no_backslash_escapes) =
            (self.traits.ansi_quotes, self.traits.no_backslash_escapes);
        if let Some(mode) = state.setting(Slot::SqlMode) {
            (ansi_quotes, no_backslash_escapes) = modes_of(mode);
        }
        Dialect::MySql {
            ansi_quotes,
            no_backslash_escapes,
            mariadb: self.traits.flavour == Flavour::MariaDb,
            encoding: if self.reads_unknown() { Encoding::Unknown } else { state.encoding() },
        }
    }

    /// The collation the client logged in with.
    pub(crate) fn login_collation(&self) -> u16 {
        self.login_collation
    }

    /// A statement was prepared.
    pub(crate) fn note_variables(&mut self) {
        if self.request.makes_variables() {
            let class = std::mem::take(&mut self.request.class);
            self.note_variables_of(&class);
            self.request.class = class;
        }
    }

    /// Adds a reason that only a reply shows.
    pub(crate) fn pin(&mut self, pin: Pin) {
        self.pins.insert(pin);
    }
}

impl weir_session::Front for Front {
    /// The schema this client begins in, when the operator's settings give it another name than the client
    /// did. Before the client is greeted.
    fn set_schema(&mut self, schema: &str) {
        self.state.schema = Some(schema).filter(|name| !name.is_empty()).map(Arc::from);
    }

    fn id(&self) -> u32 {
        self.id.number()
    }

    /// Its default schema.
    fn schema(&self) -> Option<&str> {
        self.state.schema.as_deref()
    }

    /// Attributes of a login are not kept.
    fn application_name(&self) -> Option<std::borrow::Cow<'_, str>> {
        None
    }

    /// What its pool knows of the database's catalogue.
    fn know(&mut self, knowledge: &Arc<Knowledge>) {
        self.knowledge = Arc::clone(knowledge);
    }

    /// What was proven of the request found last still holds: it may run twice.
    fn is_proven(&self) -> bool {
        match self.request.command {
            Command::Query | Command::StmtExecute => {
                self.request.judged_by != 0 && self.request.judged_by == self.knowledge.state()
            }
            _ => true,
        }
    }

    fn asks_as(&self, other: &Front) -> bool {
        self.state == other.state
            && self.capabilities == other.capabilities
            && self.traits == other.traits
            && self.status == other.status
            && self.login_collation == other.login_collation
            && self.request.judged_by == other.request.judged_by
            && self.is_plain()
            && other.is_plain()
    }

    fn asks_under(&self) -> u64 {
        let schema = self.state.schema.as_deref().unwrap_or_default();
        schema.bytes().fold(u64::from(self.capabilities.variant()), |hash, byte| {
            hash.rotate_left(5).wrapping_mul(31) ^ u64::from(byte)
        })
    }

    /// The flags this client chose that a server cannot change later (FOUND_ROWS, IGNORE_SPACE, INTERACTIVE,
    /// MULTI_RESULTS, PS_MULTI_RESULTS, MariaDB's EXTENDED_METADATA): clients with different ones need
    /// different servers.
    fn pool_variant(&self) -> u32 {
        self.capabilities.variant()
    }

    /// The `wait_timeout` that this client has set, in milliseconds; 0: none. No server knows it while the
    /// client has none.
    fn idle_ms(&self) -> u64 {
        let seconds: Option<u64> = self.state.setting(Slot::WaitTimeout).and_then(|text| text.parse().ok());
        seconds.map_or(0, |seconds| seconds.max(1).saturating_mul(1000))
    }

    fn take_packing(&mut self) -> Option<Box<dyn weir_session::Packing>> {
        self.login.as_deref_mut()?.take_packing()
    }

    /// Some server may have settled the parameters of the statement as they were settled for its client.
    fn has_favourite(&self) -> bool {
        self.request.wants != Wants::Nothing
    }

    /// Others may store another value.
    fn needs_favourite(&self) -> bool {
        self.request.wants == Wants::OnlySettled
    }

    fn may_pin(&self) -> bool {
        self.request.may_leave_something()
    }

    fn words_of(&self, request: &[u8], bytes: usize) -> Option<String> {
        self.words_that_pin(request, bytes)
    }

    fn pins(&self) -> Pins {
        let mut pins = self.lasting_pins();
        if !self.unasked().is_empty() {
            pins.insert(Pin::Setting);
        }
        if !self.unasked_variables().is_empty() {
            pins.insert(Pin::UserVariable);
        }
        pins
    }

    /// MySQL cancels by KILL; there is no secret.
    fn is_cancel_secret(&self, _secret: &[u8]) -> bool {
        false
    }

    /// Parts of a request were found and not its end: the end of each is found as such.
    fn is_part_open(&self) -> bool {
        true
    }

    /// The client is in the middle of a command or of a packet of its file; `kept` bytes of it wait to be
    /// found.
    fn is_mid_message(&self, kept: usize) -> bool {
        match &self.phase {
            Phase::Long(_) => true,
            Phase::File(file) => file.left > 0 || kept > 0,
            Phase::Greeting | Phase::Idle | Phase::Busy => kept > 0,
        }
    }

    /// A command is one message: nothing waits between two of a request.
    fn is_between_messages(&self, _kept: usize) -> bool {
        false
    }

    /// A server's farewell comes in the place of an answer, or behind it; its connection ends then.
    fn is_told_the_end(&self) -> bool {
        false
    }

    /// Nothing waits.
    fn hasten(&mut self) {}

    fn find(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Found, Fault> {
        self.find(input, out)
    }

    fn rejects_parts(&self) -> bool {
        self.rejects_parts()
    }

    fn reject(&mut self, fault: &Fault, request: &[u8], out: &mut Vec<u8>) {
        self.reject(fault, request, out);
    }

    fn fatal(&mut self, fault: &Fault, out: &mut Vec<u8>) {
        self.fatal(fault, out);
    }

    fn fatal_rejection(&mut self, rejection: &[u8], out: &mut Vec<u8>) {
        self.fatal_rejection(rejection, out);
    }

    fn login_refused(&mut self) -> bool {
        self.login_refused()
    }

    fn killed(&mut self, outcome: KillOutcome, out: &mut Vec<u8>) -> Vec<u8> {
        self.killed(outcome, out)
    }

    fn pass_on(&mut self) -> Vec<u8> {
        self.pass_on()
    }

    fn take_kill(&mut self) -> Option<(u32, bool)> {
        self.take_kill()
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

pub(crate) fn malformed(what: &'static str) -> Fault {
    Fault::new(FaultKind::ClientProtocol, what)
}
