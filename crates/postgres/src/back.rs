//! The server side of a session: a queue of requests, the replies owed for each, and the boundary.
//!
//! Owns: [`Back`], its state and small questions about it. `dispatch.rs` writes requests, `reply.rs` reads
//! replies, `reset.rs` holds Weir's own requests. Must not know: sockets, clocks, pools.
//!
//! Invariants: entries of several owners may be in the queue, and an error of one affects no other; a server
//! is reusable only when it is idle, owes nothing, and carries no trace.

use crate::Front;
use crate::cancel::ServerKey;
use crate::catalogue::Study;
use crate::dispatch::own_names::Lacks;
use crate::effects::Traces;
use crate::follow::Questions;
use crate::frame::{ServerTag, body, server_header};
use crate::late::Facts;
use crate::listen::Listening;
use crate::prepared::{OwnNames, ServerPrepared, Statement};
use crate::queue::{Entry, Owed, Queue};
use crate::session_state::{Reported, Settings};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use weir_session::Tally;
use weir_session::listen::{Channels, Mark};
use weir_session::login::{CancelPlan, Changes, ServerGreeting};
use weir_sql::SettingNames;
use weir_sql::catalogue::Answer;
use weir_sql::catalogue::Reading;
use weir_sql::catalogue::{Knowledge, Unsettled};
use weir_wire::Fault;
use weir_wire::Step;
use weir_wire::{Boundary, Owner};

/// Under which settings a server has read the code of users that it has run. It keeps what it has read until
/// it is told otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeRead {
    /// The client that ran some last.
    pub(crate) client: u64,
    /// Its settings then ([`Settings::kept_plan_key`]).
    pub(crate) kept_plan_key: u64,
    /// [`Knowledge::changes`] then: expressions of PL/pgSQL keep the types of what they read.
    pub(crate) changes: u64,
    /// It has had others before, or perhaps others for a moment.
    pub(crate) mixed: bool,
    /// Other clients have had some read that is still there.
    pub(crate) others: bool,
}

impl CodeRead {
    /// What was read before is to be read anew for who runs some now. What a client itself has had
    /// read under settings that it has changed since stays, as in a session of its own.
    pub(crate) fn is_of_another(&self, now: &CodeRead) -> bool {
        let anew = now.mixed || self.kept_plan_key != now.kept_plan_key || self.changes != now.changes;
        self.is_others_too(now.client) && (anew || self.client != now.client && self.mixed)
    }

    /// Another client than this one has had some read.
    pub(crate) fn is_others_too(&self, client: u64) -> bool {
        self.others || self.client != client
    }

    /// A client with these settings runs some; `mixed`: perhaps under others.
    pub(crate) fn by(before: &mut Option<CodeRead>, now: CodeRead) {
        let differs = |then: &CodeRead| {
            then.mixed || then.kept_plan_key != now.kept_plan_key || then.changes != now.changes
        };
        let others = before.is_some_and(|then| then.is_others_too(now.client));
        *before = Some(CodeRead { mixed: before.as_ref().is_some_and(differs) || now.mixed, others, ..now });
    }
}

/// A logged-in server.
#[derive(Debug)]
pub struct Back {
    key: ServerKey,
    /// What it reports now.
    pub(crate) reported: Reported,
    /// What it reported without any setting of a client.
    pub(crate) base: Reported,
    /// What it has been given beyond that.
    pub(crate) applied: Arc<Settings>,
    /// The unnamed portal may be that of a BEGIN of Weir's, which its client has said in a text.
    pub(crate) has_begin_portal: bool,
    /// Plan keys of settings this server has accepted before.
    pub(crate) accepted: Vec<u64>,
    pub(crate) prepared: ServerPrepared,
    /// Statements have the names here that their client gave them, and nobody else has any.
    pub(crate) own_names: Option<Box<OwnNames>>,
    pub(crate) unnamed: Option<Unnamed>,
    pub(crate) queue: Queue,
    pub(crate) boundary: Boundary,
    /// The open transaction may have changed settings for its own time.
    pub(crate) may_have_set: bool,
    /// The open transaction has set what decides how literals are read.
    pub(crate) reads_otherwise: bool,
    /// The same of what a plan may hold something of.
    pub(crate) plans_otherwise: bool,
    /// What others have drawn here must not be asked by the request whose bytes come, and cannot be
    /// forgotten.
    pub(crate) forbids_asking: bool,
    /// What names the request whose bytes come lacks.
    pub(crate) lacks: Lacks,
    /// Why the statement that the next text executes could not be prepared under its client's name.
    pub(crate) refused_stand_in: Option<Box<[u8]>>,
    /// The client that may have drawn from a sequence here last; 0 for none.
    pub(crate) drawn_by: u64,
    /// Values that others have drawn may be there beneath that client's, if it has drawn at all.
    pub(crate) mixes_drawn: bool,
    /// What clients have left behind here.
    pub(crate) traces: Traces,
    /// What must not be sent before the server has answered what is in front of it.
    pub(crate) held: Option<Box<Held>>,
    /// Where in the bytes of the message being written the server must be waited for.
    pub(crate) stop: Option<usize>,
    /// So many answers have come that something was held for.
    pub(crate) released: usize,
    /// The server discards messages until a Sync.
    pub(crate) skipping: bool,
    /// Extended messages ran and no Sync has ended them.
    pub(crate) needs_sync: bool,
    /// A COPY of the extended protocol has swallowed the Sync of the request at the head, and no other was
    /// sent: without one the server answers nothing more.
    pub(crate) swallowed: bool,
    /// The request whose Sync that is, when its replies have come and the rest of it has not.
    pub(crate) unended: Option<Box<Entry>>,
    /// The server reads COPY data, and its end has not been sent.
    pub(crate) copy_in: bool,
    /// Bytes of a message from a client that are still to be sent.
    pub(crate) outgoing: usize,
    /// Bytes of a message from the server that are still to come.
    pub(crate) incoming: usize,
    /// They go nowhere.
    pub(crate) incoming_hidden: bool,
    /// A request of Weir's own failed, the server said farewell, or a message was cut short.
    pub(crate) spoiled: bool,
    /// Statements prepared here for clients that had prepared them elsewhere, not counted yet.
    pub(crate) tally: Tally,
    /// What the pool knows of its database's catalogue.
    pub(crate) knowledge: Arc<Knowledge>,
    /// A question about the catalogue is under way here.
    pub(crate) study: Option<Box<Study>>,
    /// Counts changes of accounts, for all servers of all pools; and what it was when this login began.
    changes: Changes,
    born: u64,
    /// The open transaction may have changed one.
    pub(crate) accounts: bool,
    /// A request here may have changed the catalogue, and its transaction is not over.
    pub(crate) unsettled: Option<Unsettled>,
    /// Who has run code of users here last, under which settings.
    pub(crate) code_read: Option<CodeRead>,
    /// Something ran here of which it was not known what it does: a reset comes before anybody else.
    pub(crate) doubtful: bool,
    /// [`Knowledge::surprises`] when nobody had run anything here.
    pub(crate) surprises: u64,
    /// The message under way stands behind others of its client's that no Sync has ended.
    pub(crate) amid_batch: bool,
    /// [`Knowledge::reloads`] when it logged in.
    pub(crate) reloads: u64,
    /// What its session goes back to, as it said at its start.
    pub(crate) defaults: Option<Box<[u8]>>,
    /// The startup parameters of the one client it was opened for; `own.rs`.
    pub(crate) own: Option<Arc<Settings>>,
    /// That client, once its settings have been brought to it.
    pub(crate) home_of: Option<u64>,
    /// Placeholders that it was told of.
    pub(crate) told: Option<Box<SettingNames>>,
    /// Settings that SET LOCAL has put to the server's default, for the rest of the transaction.
    pub(crate) local_defaults: Vec<Box<str>>,
    /// What its client has set and is to be asked for; `follow.rs`.
    pub(crate) questions: Option<Box<Questions>>,
    /// `pg_temp` may have been put into the search path since the last client.
    pub(crate) temporary_path: bool,
    /// It stands there by the server's own settings, those stored for a database or a role among them.
    pub(crate) own_temporary_path: bool,
    /// Who keeps it has changed the catalogue, and nobody has read that since.
    pub(crate) keeper_has_changed: bool,
    /// What it tells a client that listens; `listen.rs`.
    pub(crate) listening: Option<Box<Listening>>,
    /// Whether BEGIN may wait, for all of its pool; what this server has said of it, and that it was asked.
    pub(crate) facts: Arc<Facts>,
    pub(crate) facts_said: u8,
    pub(crate) facts_asked: bool,
}

/// The unnamed statement of a server.
#[derive(Debug)]
pub(crate) struct Unnamed {
    pub statement: Arc<Statement>,
    /// The request that sent it.
    pub entry: u64,
    /// ParseComplete came.
    pub confirmed: bool,
}

/// Bytes kept back until the server has accepted the settings in front of them, or has said what it makes of
/// a statement in front of them.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// The request whose settings are waited for; 0 for a statement.
    pub settings_of: u64,
    /// What waits, and what was queued behind it.
    pub bytes: Vec<u8>,
    /// Where in it a statement must be waited for.
    pub stops: VecDeque<usize>,
}

impl Back {
    pub(crate) fn new(key: ServerKey, reported: Reported, max_prepared_statements: usize) -> Back {
        Back {
            key,
            base: reported.clone(),
            reported,
            applied: Arc::default(),
            has_begin_portal: false,
            accepted: Vec::new(),
            prepared: ServerPrepared::new(max_prepared_statements),
            own_names: None,
            unnamed: None,
            queue: Queue::default(),
            boundary: Boundary::Idle,
            may_have_set: false,
            reads_otherwise: false,
            plans_otherwise: false,
            forbids_asking: false,
            lacks: Lacks::Nothing,
            refused_stand_in: None,
            drawn_by: 0,
            mixes_drawn: false,
            traces: Traces::default(),
            held: None,
            stop: None,
            released: 0,
            skipping: false,
            needs_sync: false,
            swallowed: false,
            unended: None,
            copy_in: false,
            outgoing: 0,
            incoming: 0,
            incoming_hidden: false,
            spoiled: false,
            tally: Tally::default(),
            knowledge: Arc::default(),
            study: None,
            changes: Changes::default(),
            born: 0,
            accounts: false,
            unsettled: None,
            code_read: None,
            doubtful: false,
            surprises: 0,
            amid_batch: false,
            reloads: 0,
            defaults: None,
            own: None,
            home_of: None,
            told: None,
            local_defaults: Vec::new(),
            questions: None,
            temporary_path: false,
            keeper_has_changed: false,
            own_temporary_path: false,
            listening: None,
            facts: Arc::default(),
            facts_said: 0,
            facts_asked: false,
        }
    }

    /// The process number of the server, for logs.
    pub fn server_pid(&self) -> u32 {
        self.key.pid()
    }

    /// What the server reports about itself now (`server_version` and so on).
    pub fn reported(&self) -> &Reported {
        &self.reported
    }

    /// Its login began when so many changes had been counted.
    pub(crate) fn born(mut self, changes: Changes, born: u64) -> Back {
        (self.changes, self.born) = (changes, born);
        self
    }

    pub(crate) fn changes(&self) -> (&Changes, u64) {
        (&self.changes, self.born)
    }

    /// The server's configuration was loaded anew since it logged in: what a client has set to the value of
    /// before stays so here.
    pub(crate) fn is_reloaded(&self) -> bool {
        self.reloads != self.knowledge.reloads() && self.own.is_none()
    }

    /// An account has changed: what logs in from here on sees it.
    pub(crate) fn count_change(&self) {
        self.changes.fetch_add(1, Relaxed);
    }
}

impl weir_session::Back for Back {
    type Front = Front;

    /// Bytes that wait until the server has answered what is in front of them.
    fn held_bytes(&self) -> usize {
        self.held.as_deref().map_or(0, |held| held.bytes.len())
    }

    /// PostgreSQL does not greet; its clients are told the version by ParameterStatus.
    fn server_greeting(&self) -> Option<&Arc<ServerGreeting>> {
        None
    }

    fn answers_head(&self) -> bool {
        self.answers_head()
    }

    fn is_plain_answer(&self, answer: &[u8]) -> bool {
        is_plain(answer)
    }

    fn echo(&self) -> Back {
        let most_statements = 0;
        Back {
            base: self.base.clone(),
            knowledge: Arc::clone(&self.knowledge),
            surprises: self.surprises,
            facts: Arc::clone(&self.facts),
            own_temporary_path: self.own_temporary_path,
            ..Back::new(ServerKey::default(), self.reported.clone(), most_statements)
        }
    }

    fn be_as(&mut self, front: &Front) {
        self.applied = Arc::clone(&front.settings);
        self.unnamed = None;
    }

    fn head(&self) -> Option<Owner> {
        self.queue.head().map(|entry| entry.owner)
    }

    fn queued(&self) -> usize {
        self.queue.len()
    }

    fn owner_at(&self, place: usize) -> Option<Owner> {
        self.queue.owner_at(place)
    }

    /// The request at the head goes on only when its client sends more: COPY data.
    fn awaits_client(&self) -> bool {
        self.copy_in
    }

    fn boundary(&self) -> Boundary {
        self.boundary
    }

    /// What the pool knows of its database's catalogue.
    fn know(&mut self, knowledge: &Arc<Knowledge>) {
        self.knowledge = Arc::clone(knowledge);
        self.surprises = knowledge.surprises();
        self.reloads = knowledge.reloads();
    }

    /// What ran here may have left something that nobody knows of.
    fn wants_reset(&self) -> bool {
        self.doubtful || self.surprises != self.knowledge.surprises() || self.is_reloaded()
    }

    /// Idle, nothing owed, no part of a message read or written, no trace of a client left, and nothing went
    /// wrong that a new client could notice.
    fn is_reusable(&self) -> bool {
        self.queue.is_empty()
            && self.boundary == Boundary::Idle
            && !self.spoiled
            && !self.skipping
            && !self.needs_sync
            && !self.copy_in
            && self.outgoing == 0
            && self.incoming == 0
            && self.held.is_none()
            && !self.doubtful
            && self.traces.pins().is_empty()
    }

    fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Since its login began an account has changed, or what is set for one: that is for new sessions.
    fn is_outdated(&self) -> bool {
        self.changes.load(Relaxed) != self.born
    }

    /// A COPY of the extended protocol has swallowed its Sync: only its client's next one says where the
    /// boundary is.
    fn awaits_end(&self) -> bool {
        self.needs_sync
    }

    /// Nothing can make this server usable again, once nobody has it: close it.
    fn is_broken(&self) -> bool {
        self.spoiled || self.traces.is_lasting() || self.is_reloaded()
    }

    fn is_mid_message(&self) -> bool {
        self.incoming > 0 && !self.incoming_hidden
    }

    /// What the server works on, as far as is known, is the head's own request: a cancel hits that and not
    /// something of Weir's in front of it. A BEGIN is answered with what stands behind it, and a statement
    /// that is prepared waits for its tables.
    fn is_cancellable(&self, patient: bool) -> bool {
        match self.queue.next() {
            Some(Owed::Settings { .. } | Owed::Internal(_)) => false,
            Some(Owed::Begin { .. } | Owed::Shape { stops: true, .. }) => patient,
            _ => true,
        }
    }

    fn cancel_plan(&self) -> CancelPlan {
        self.key.plan()
    }

    /// There is no KILL.
    fn connection_number(&self) -> Option<u64> {
        None
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

    fn recall(&mut self, front: &mut Front, owner: Owner, out: &mut Vec<u8>) {
        self.recall(front, owner, out);
    }

    fn rollback(&mut self, out: &mut Vec<u8>) {
        self.rollback(out);
    }

    fn reset(&mut self, out: &mut Vec<u8>) {
        self.reset(out);
    }

    fn introduce(&mut self, out: &mut Vec<u8>) -> bool {
        self.introduce(out)
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

    fn quit(&mut self, out: &mut Vec<u8>) {
        self.quit(out);
    }

    fn console_pid(&self) -> u64 {
        self.console_pid()
    }

    fn suits(&self, front: &Front) -> bool {
        self.suits(front)
    }

    fn is_favourite(&self, front: &Front) -> bool {
        self.is_favourite(front)
    }

    fn let_go(&mut self, front: &mut Front) {
        self.let_go(front);
    }

    fn is_reserved(&self) -> bool {
        self.is_reserved()
    }

    fn ask_channels(&mut self, front: &mut Front, owner: Owner, out: &mut Vec<u8>) -> bool {
        self.ask_channels(front, owner, out)
    }

    fn take_channels(&mut self) -> Option<Channels> {
        self.take_channels()
    }

    fn part(&mut self, front: &mut Front, owner: Owner, channels: Channels, mark: Mark, out: &mut Vec<u8>) {
        self.part(front, owner, channels, mark, out);
    }

    fn come_home(&mut self, front: &mut Front, owner: Owner, out: &mut Vec<u8>) {
        self.come_home(front, owner, out);
    }

    fn is_home(&mut self, front: &mut Front, before: Vec<u8>, out: &mut Vec<u8>) {
        self.is_home(front, before, out);
    }
}

/// These messages are the answer to one statement outside a transaction, and it had rows, or might have had.
fn is_plain(answer: &[u8]) -> bool {
    let mut rest = answer;
    let (mut completed, mut ready) = (false, false);
    while let Ok(Some(header)) = server_header(rest) {
        let Some(message) = rest.get(..header.total) else { return false };
        rest = rest.get(header.total..).unwrap_or_default();
        match header.tag {
            _ if ready => return false,
            ServerTag::ParseComplete
            | ServerTag::BindComplete
            | ServerTag::ParameterDescription
            | ServerTag::RowDescription
            | ServerTag::DataRow
                if !completed => {}
            ServerTag::CommandComplete if !completed => completed = true,
            ServerTag::ReadyForQuery if completed => ready = body(message) == b"I",
            _ => return false,
        }
    }
    rest.is_empty() && ready
}

#[cfg(test)]
mod tests;
