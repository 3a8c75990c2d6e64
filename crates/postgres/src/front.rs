//! The client side of a session: where requests begin and end in a client's bytes, and the state that moves
//! with the client.
//!
//! A request is a simple Query, a FunctionCall, or an extended batch up to its Sync. It is gathered until it
//! is complete; one that is too long, ends in Flush or is COPY data is handed out in parts.
//!
//! Owns: [`Front`]. Must not know: servers, queues; `dispatch.rs` turns a request into what its server gets,
//! `front/find.rs` finds where one ends.
//!
//! Invariants: bytes are examined once, however they are split; nothing is gathered beyond
//! [`REQUEST_GATHER_BYTES`]; every text is lexed once, and its effects wait in order for the dispatch.

pub(crate) use self::scan::Names;
use self::scan::{Batch, Long, Scan, Tail, Texts};
use crate::cancel::ClientKey;
use crate::datestyle::part_in;
use crate::effects::{Draws, Effects, Judge, Traces};
use crate::error::{Severity, put_error, put_refusal, words_of};
use crate::late::Late;
use crate::message::reply::put_ready;
use crate::own::Rare;
use crate::prepared::ClientPrepared;
use crate::session_state::{Reported, Settings, text_of};
use std::sync::Arc;
use weir_session::login::{ClientId, KillOutcome};
use weir_sql::catalogue::Knowledge;
use weir_sql::{Dialect, Encoding};
use weir_wire::{Boundary, Fault, Found, INTERNAL, Owner, Pins};

/// Whether a request asks what was drawn from a sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asks {
    #[default]
    No,
    /// Names of statements in it may stand for what does.
    Perhaps,
    /// By its own words.
    Outright,
}

/// A logged-in client.
#[derive(Debug)]
pub struct Front {
    id: ClientId,
    key: ClientKey,
    /// Where its last answered request left its server.
    pub(crate) boundary: Boundary,
    /// Its server waits for COPY data.
    pub(crate) copy_in: bool,
    /// Servers report the search path (PostgreSQL 18), so it moves with the client.
    pub(crate) reports_path: bool,
    /// A request under way gives or takes names of statements, and it is not known yet whether it succeeds.
    names_under_way: bool,
    /// A request under way may change how texts are to be read.
    dialect_under_way: bool,
    /// Every request that is under way provably leaves no trace.
    under_way_is_shareable: bool,
    /// Requests dispatched and not answered.
    pub(crate) outstanding: u16,
    /// The transaction that it has begun and no server knows of.
    pub(crate) late: Late,
    /// The server refused the settings of its login.
    pub(crate) welcome_refused: bool,
    /// A server has taken the settings of its login.
    pub(crate) confirmed: bool,
    /// The request found last asks what was drawn from a sequence.
    pub(crate) asks: Asks,
    /// The same request draws itself.
    pub(crate) draws: Draws,
    /// It has transaction control: what it has drawn may be asked behind it in the same transaction.
    pub(crate) controls: bool,
    /// It runs nothing, as it only prepares or takes names away: what the last one has drawn may still be
    /// asked by the next one.
    pub(crate) runs_nothing: bool,
    /// It may tie the client to its server.
    pub(crate) ties: bool,
    /// It runs code of users.
    pub(crate) runs_code: bool,
    /// Under settings that it changes itself, or it is another thing in each session.
    pub(crate) plans_otherwise: bool,
    /// To the request found last it matters which statements are prepared under which names.
    pub(crate) names_matter: Names,
    /// The server where it may have drawn from a sequence last, by its process number; 0 for none.
    pub(crate) drew_at: u32,
    /// The request found last needs a server that was opened for this client.
    pub(crate) wants_own: bool,
    /// What few clients have.
    pub(crate) rare: Option<Box<Rare>>,
    /// What it named at its start is not what servers have by themselves.
    pub(crate) startup_differs: bool,
    /// It has a server of its own.
    pub(crate) is_at_home: bool,
    /// Its server's farewell was passed on.
    pub(crate) told_fatal: bool,
    /// Statements that are this client's own have been numbered up to here.
    private_statements: u32,
    /// The proxy's word for it, as given with its last dispatch.
    pub(crate) owner: Owner,
    pub(crate) dialect: Dialect,
    pub(crate) traces: Traces,
    /// What it named at its start: RESET goes back to it.
    pub(crate) startup: Arc<Settings>,
    /// What it has now.
    pub(crate) settings: Arc<Settings>,
    pub(crate) prepared: Option<Box<ClientPrepared>>,
    /// What its pool knows of the database's catalogue.
    pub(crate) knowledge: Arc<Knowledge>,
    /// The state of it by which the request found last was judged to be shareable.
    proven_by: u64,
    scan: Scan,
    texts: Texts,
}

impl Front {
    pub(crate) fn new(id: impl Into<ClientId>, key: ClientKey, settings: Settings) -> Front {
        let settings = Arc::new(settings);
        Front {
            id: id.into(),
            key,
            boundary: Boundary::Idle,
            copy_in: false,
            reports_path: false,
            names_under_way: false,
            dialect_under_way: false,
            under_way_is_shareable: true,
            outstanding: 0,
            late: Late::No,
            welcome_refused: false,
            confirmed: false,
            asks: Asks::No,
            draws: Draws::No,
            controls: false,
            runs_nothing: false,
            ties: false,
            runs_code: false,
            plans_otherwise: false,
            names_matter: Names::NoMatter,
            drew_at: 0,
            wants_own: part_in(&settings).is_some(),
            rare: Rare::of(&settings),
            startup_differs: !settings.is_empty(),
            is_at_home: false,
            told_fatal: false,
            private_statements: 0,
            owner: INTERNAL,
            dialect: Dialect::POSTGRES,
            traces: Traces::default(),
            startup: Arc::clone(&settings),
            settings,
            prepared: None,
            knowledge: Arc::default(),
            proven_by: 0,
            scan: Scan::NEW,
            texts: Texts::default(),
        }
    }

    /// The server takes the data of a COPY whose end was sent ahead.
    pub(crate) fn copy_has_begun(&mut self) {
        if self.scan.tail == Tail::Guess && self.outstanding == 1 {
            self.scan.tail = Tail::Known;
        }
    }

    pub(crate) fn key(&self) -> &ClientKey {
        &self.key
    }

    /// Nothing of it but its settings could bear on the answer to a request that only reads, or would be
    /// another behind it.
    pub(crate) fn is_plain(&self) -> bool {
        self.outstanding == 0
            && self.boundary == Boundary::Idle
            && self.late == Late::No
            && !self.copy_in
            && !self.scan.open
            && !self.scan.resetting
            && !self.wants_own
            && !self.is_at_home
            && !self.names_matter.matter()
            && self.draws == Draws::No
            && self.asks == Asks::No
            && !self.told_fatal
            && self.rare.is_none()
            && self.traces.is_empty()
            && !self.prepared.as_deref().is_some_and(|prepared| prepared.unnamed_is_raw)
    }

    /// What servers remember it by.
    pub(crate) fn unique(&self) -> u64 {
        self.id.unique()
    }

    /// By what its texts are judged.
    pub(crate) fn judge(&self) -> Judge<'_> {
        let changed_code = self.has_changed_code();
        Judge { dialect: self.dialect, knowledge: &self.knowledge, changed_code }
    }

    /// It has changed what code does, in a transaction that has not ended: others have not seen that yet.
    fn has_changed_code(&self) -> bool {
        self.rare.as_deref().is_some_and(|rare| rare.changed_code)
    }

    /// What it named at its start, or has been told of since, puts new tables among the temporary ones.
    pub(crate) fn has_temporary_path(&self) -> bool {
        self.settings.get("search_path").is_some_and(names_temporary)
    }

    /// Effects of the next text that is dispatched. None when it must be judged anew: what is known of the
    /// database has changed since it was found, or may have. Where nothing is proven, as while somebody
    /// changes a table, code that has changed is read all the same before anybody gets a server.
    pub(crate) fn next_text(&mut self) -> Option<Arc<Effects>> {
        let (effects, state) = self.texts.pop()?;
        let as_judged = state != 0 && state == self.judge().state() && !self.has_changed_code();
        as_judged.then_some(effects)
    }

    /// The only text of a request is about to be sent, to whose answer names of statements were to matter by
    /// what was known when it came. Where that is known no longer, or what it calls is known only since, they
    /// may not.
    pub(crate) fn judge_names_again(&mut self, text: &[u8]) {
        let Some((_, state)) = self.texts.first.as_ref().filter(|_| self.texts.more.is_empty()) else {
            return;
        };
        let holds = *state != 0 && *state == self.knowledge.state();
        if holds || self.names_matter != Names::ToText {
            return;
        }
        let (effects, _, state) = self.judge().text(text);
        // What the code draws from sequences, or asks of them, was to be seen to when the request came.
        let sequences = effects.asks_sequence || effects.draws != Draws::No;
        if !effects.statement_names && effects.executes.is_none() && !sequences {
            self.names_matter = Names::NoMatter;
            if self.asks == Asks::Perhaps {
                self.asks = Asks::No;
            }
            self.texts.first = Some((effects, state));
        }
    }

    /// The same of a text that is not at hand any more.
    pub(crate) fn next_long_text(&mut self) -> Option<Arc<Effects>> {
        let (effects, state) = self.texts.pop()?;
        if state == self.knowledge.state() {
            return Some(effects);
        }
        Some(Arc::new(Effects { doubtful: true, ..Effects::clone(&effects) }))
    }

    /// A number that no statement of any client has.
    pub(crate) fn next_private(&mut self) -> u128 {
        self.private_statements = self.private_statements.wrapping_add(1);
        u128::from(self.unique()) << 32 | u128::from(self.private_statements)
    }

    /// Stands in for the lexer: the texts found have these effects.
    #[cfg(test)]
    pub(crate) fn replace_texts(&mut self, effects: &Arc<Effects>) {
        for text in self.texts.first.iter_mut().chain(&mut self.texts.more) {
            *text = (Arc::clone(effects), self.knowledge.state());
        }
    }

    /// So many requests are answered, or were taken back.
    pub(crate) fn answered(&mut self, requests: u16) {
        self.outstanding = self.outstanding.saturating_sub(requests);
        if self.outstanding == 0
            && let Some(prepared) = self.prepared.as_deref_mut()
        {
            prepared.unnamed.clone_from(&prepared.answered);
        }
    }

    pub(crate) fn prepared_mut(&mut self) -> &mut ClientPrepared {
        self.prepared.get_or_insert_default()
    }

    /// What the client was told about itself: the lexer reads its texts accordingly.
    pub(crate) fn observe(&mut self, name: &str, value: &[u8]) {
        let Dialect::Postgres { mut standard_conforming_strings, mut encoding } = self.dialect else {
            return;
        };
        if name.eq_ignore_ascii_case("standard_conforming_strings") {
            standard_conforming_strings = value != b"off";
        } else if name.eq_ignore_ascii_case("client_encoding") {
            encoding = encoding_of(value);
        }
        let now = Dialect::Postgres { standard_conforming_strings, encoding };
        self.scan.dialect_changed |= now != self.dialect;
        self.dialect = now;
    }

    pub(crate) fn observe_all(&mut self, reported: &Reported) {
        for (name, value) in reported.iter() {
            self.observe(name, value);
        }
    }

    /// The request found last has failed and nothing more of it will run: ReadyForQuery now, or where its end
    /// comes.
    pub(crate) fn end_failed(&mut self, out: &mut Vec<u8>) {
        if self.scan.left() > 0 {
            let is_batch = self.scan.long == Long::Batch;
            self.scan.discarding = is_batch;
            self.scan.long = if is_batch { Long::Drop } else { Long::Rejected };
        } else if self.scan.open {
            self.scan.discarding = true;
        } else {
            put_ready(out, self.boundary);
        }
        self.scan.open = false;
        self.scan.batch = Batch::EMPTY;
    }
}

impl weir_session::Front for Front {
    fn id(&self) -> u32 {
        self.id.number()
    }

    /// All clients of a pool use the pool's database.
    fn schema(&self) -> Option<&str> {
        None
    }

    fn application_name(&self) -> Option<std::borrow::Cow<'_, str>> {
        let name = text_of(self.settings.get(crate::session_state::APPLICATION_NAME)?);
        (!name.is_empty() && !name.contains(&0)).then(|| String::from_utf8_lossy(name))
    }

    /// What its pool knows of the database's catalogue.
    fn know(&mut self, knowledge: &Arc<Knowledge>) {
        self.knowledge = Arc::clone(knowledge);
    }

    /// What was proven of the request found last still holds: it may run twice.
    fn is_proven(&self) -> bool {
        self.proven_by != 0 && self.proven_by == self.knowledge.state()
    }

    /// Nothing a client chooses at login needs servers of its own.
    fn pool_variant(&self) -> u32 {
        0
    }

    /// What a client has that bears on an answer moves with it in its settings: `is_plain` has seen to it
    /// that it has nothing else.
    fn asks_as(&self, other: &Front) -> bool {
        let same = |one: &Arc<Settings>, other: &Arc<Settings>| {
            Arc::ptr_eq(one, other) || one.same_but_application_name(other)
        };
        same(&self.settings, &other.settings)
            && same(&self.startup, &other.startup)
            && self.dialect == other.dialect
            && self.reports_path == other.reports_path
            && self.proven_by == other.proven_by
            && self.is_plain()
            && other.is_plain()
    }

    fn asks_under(&self) -> u64 {
        self.settings.plan_key()
    }

    fn find(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Found, Fault> {
        self.find_next(input, out)
    }

    fn is_part_open(&self) -> bool {
        self.scan.open || self.scan.left() > 0
    }

    fn is_mid_message(&self, kept: usize) -> bool {
        self.scan.left() > 0 || kept > self.scan.looked
    }

    /// The `kept` bytes that wait to be found are whole messages of a batch whose end has not come, and
    /// nothing else keeps them.
    fn is_between_messages(&self, kept: usize) -> bool {
        let scan = &self.scan;
        scan.left() == 0
            && !scan.waits
            && !scan.resetting
            && !scan.discarding
            && kept > 0
            && kept == scan.looked
    }

    /// Its server's farewell was passed on.
    fn is_told_the_end(&self) -> bool {
        self.told_fatal
    }

    /// A server works on each message when it comes, and answers an error at once: what there is of the batch
    /// is found as a part of it, next time (PostgreSQL documentation, section 54.2.3).
    fn hasten(&mut self) {
        self.scan.hastens = true;
    }

    fn pins(&self) -> Pins {
        self.traces.pins()
    }

    fn may_pin(&self) -> bool {
        self.scan.may_pin
    }

    fn words_of(&self, request: &[u8], bytes: usize) -> Option<String> {
        self.words_that_pin(request, bytes)
    }

    fn reject(&mut self, fault: &Fault, request: &[u8], out: &mut Vec<u8>) {
        self.texts.clear();
        self.scan.scanner = None;
        self.fail_late();
        put_error(out, Severity::Error, words_of(fault.kind));
        if !request.is_empty() {
            self.end_failed(out);
        }
    }

    /// Behind an error a client's messages are dropped up to its Sync (section 54.2.3).
    fn rejects_parts(&self) -> bool {
        true
    }

    /// Last words before Weir closes this client; none when its server has said them.
    fn fatal(&mut self, fault: &Fault, out: &mut Vec<u8>) {
        if self.told_fatal {
            return;
        }
        put_error(out, Severity::Fatal, words_of(fault.kind));
    }

    /// Last words: a server's refusal of Weir's login, as `Connect::rejection` gave it.
    fn fatal_rejection(&mut self, rejection: &[u8], out: &mut Vec<u8>) {
        put_refusal(out, rejection);
    }

    /// PostgreSQL has no login on top of a session.
    fn login_refused(&mut self) -> bool {
        false
    }

    /// PostgreSQL has no KILL; nothing is answered.
    fn killed(&mut self, _outcome: KillOutcome, _out: &mut Vec<u8>) -> Vec<u8> {
        Vec::new()
    }

    /// Its server closes a session that is idle for too long, as that has set.
    fn idle_ms(&self) -> u64 {
        0
    }

    /// There is none to pass on.
    fn pass_on(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// No request has one in it.
    fn take_kill(&mut self) -> Option<(u32, bool)> {
        None
    }

    /// No server knows yet that it has begun a transaction.
    fn is_in_empty_transaction(&self) -> bool {
        self.late != Late::No
    }

    fn is_cancel_secret(&self, secret: &[u8]) -> bool {
        self.key.is(secret)
    }

    fn has_favourite(&self) -> bool {
        self.has_favourite()
    }

    fn is_kept_in_case(&self) -> bool {
        self.is_kept_in_case()
    }

    fn only_listens(&self) -> bool {
        self.only_listens()
    }

    fn wants_home(&self) -> bool {
        self.wants_home()
    }

    fn startup_parameters(&self) -> Option<Vec<(String, String)>> {
        self.startup_parameters()
    }
}

/// What `client_encoding` means to the lexer (PostgreSQL's table 24.1; the unsafe ones are its "client
/// only").
fn encoding_of(name: &[u8]) -> Encoding {
    const UNSAFE: [&[u8]; 8] =
        [b"SJIS", b"BIG5", b"GBK", b"GB18030", b"UHC", b"JOHAB", b"SHIFT_JIS_2004", b"MULE_INTERNAL"];
    match name {
        b"UTF8" | b"SQL_ASCII" => Encoding::Utf8,
        _ if UNSAFE.contains(&name) => Encoding::AsciiUnsafe,
        _ => Encoding::HighBytes,
    }
}

/// A search path that may have `pg_temp` in it.
pub(crate) fn names_temporary(path: &[u8]) -> bool {
    path.windows(7).any(|word| word.eq_ignore_ascii_case(b"pg_temp"))
}

mod cause;
mod find;
mod long;
mod scan;
#[cfg(test)]
mod tests;
