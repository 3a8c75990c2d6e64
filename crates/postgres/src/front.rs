//! The client's end of a session: where requests begin and end in its bytes, and what moves with it.
//!
//! A request is a simple Query, a FunctionCall, or an extended batch up to its Sync. It is gathered until
//! it is whole; what is too long, ends in Flush or is data of a COPY is handed out in parts.
//!
//! Owns: [`Front`]. Must not know: servers, queues; what a request becomes on a server is `dispatch.rs`.
//!
//! Invariants: bytes are looked at once, however they are cut; nothing is gathered beyond
//! [`REQUEST_GATHER_BYTES`]; every text found is lexed once and its effects wait in order for the dispatch.

use crate::cancel::ClientKey;
use crate::dispatch::leaves_nothing;
use crate::effects::{Effects, Judge, Traces};
use crate::error::{Severity, put_error, put_refusal, words_of};
use crate::frame::{ClientTag, HEADER_BYTES, body, client_header};
use crate::late::Late;
use crate::message::query::{read_bind, read_parse, read_query};
use crate::message::reply::put_ready;
use crate::own::Rare;
use crate::prepared::{ClientPrepared, Statement, fingerprint_of};
use crate::session_state::{Reported, Settings};
use std::collections::VecDeque;
use std::sync::Arc;
use weir_session::Front as _;
use weir_session::login::KillOutcome;
use weir_sql::catalogue::Knowledge;
use weir_sql::{Dialect, Encoding, Scanner};
use weir_wire::limits::REQUEST_GATHER_BYTES;
use weir_wire::{Boundary, Fault, FaultKind, Found, INTERNAL, Needs, Owner, Pins, name_of};

/// A logged-in client.
#[derive(Debug)]
pub struct Front {
    id: u32,
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
    pub(crate) asks_sequence: bool,
    /// It does so by its own words, and not only because names of statements may stand for what does.
    pub(crate) asks_outright: bool,
    /// The same request may draw itself.
    pub(crate) draws: bool,
    /// It has transaction control: what it has drawn may be asked behind it in the same transaction.
    pub(crate) controls: bool,
    /// It prepares, and runs nothing: what the last one has drawn may still be asked by the next one.
    pub(crate) only_prepares: bool,
    /// It may tie the client to its server.
    pub(crate) ties: bool,
    /// To the request found last it matters which statements are prepared under which names.
    pub(crate) names_matter: bool,
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

/// How far the client's bytes were looked at.
#[derive(Debug)]
struct Scan {
    /// Bytes at the start of the input that belong to the batch being gathered.
    looked: usize,
    /// Bytes of a long message that have not been handed out.
    left: usize,
    /// What the long message is, while `left` is not 0.
    long: Long,
    /// The lexer of a long Query, and the state of the catalogue by which it reads.
    scanner: Option<Box<(Scanner, u64)>>,
    /// Parts of a batch were handed out, and not its end.
    open: bool,
    /// A request was rejected before its end had come.
    discarding: bool,
    /// What there is of a batch is not to wait for its end.
    hastens: bool,
    /// The request found last puts settings back to the server's defaults. What this client named at its
    /// start must be brought back behind it, so nothing is looked at until it is answered.
    resetting: bool,
    /// What was found uses names whose meaning is not known yet, or is behind what may change how a text is
    /// read: it waits until everything before it is answered, and is looked at again then.
    waits: bool,
    /// The request found last may leave something that ties its client to its server.
    may_pin: bool,
    /// Texts were read otherwise before.
    dialect_changed: bool,
    batch: Batch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Long {
    /// Part of a batch.
    Batch,
    /// A Query or FunctionCall: its end is the end of the request.
    Request,
    /// COPY data for the server.
    Copy,
    /// Nobody waits for it.
    Drop,
    /// A rejected Query: ReadyForQuery is due at its end.
    Rejected,
}

/// No text of the batch has been judged.
const NOTHING_JUDGED: u64 = u64::MAX;

/// What was learnt of the messages in the batch being gathered.
#[derive(Debug, Clone, Copy)]
struct Batch {
    shareable: bool,
    /// Of all its texts.
    fingerprint: u32,
    asks_sequence: bool,
    draws: bool,
    controls: bool,
    characteristics: bool,
    /// Texts so far.
    texts: u8,
    parses: bool,
    parses_unnamed: bool,
    binds: bool,
    /// Settings are put back to their defaults.
    resets: bool,
    /// Names of statements are asked for, given or taken.
    uses_names: bool,
    /// So is an unnamed statement of an earlier request.
    uses_unnamed: bool,
    /// They are given or taken.
    changes_names: bool,
    /// Which there are matters to a text of it.
    names_matter: bool,
    /// The same of a text that was only prepared in it so far.
    names_will_matter: bool,
    /// What was parsed in it needs a server that was opened for this client, once it runs.
    wants_own: bool,
    /// The same of its unnamed statement.
    unnamed_wants_own: bool,
    /// The state of the catalogue by which its texts were judged.
    judged_by: u64,
    /// What decides how a text is read may be another behind it.
    changes_dialect: bool,
    /// It may leave something that ties its client to its server.
    may_pin: bool,
    /// It only begins or ends a transaction, and may be answered without a server.
    late: bool,
}

impl Batch {
    const EMPTY: Batch = Batch {
        shareable: true,
        fingerprint: 0,
        asks_sequence: false,
        draws: false,
        controls: false,
        characteristics: false,
        texts: 0,
        parses: false,
        parses_unnamed: false,
        binds: false,
        resets: false,
        uses_names: false,
        uses_unnamed: false,
        changes_names: false,
        names_matter: false,
        names_will_matter: false,
        wants_own: false,
        unnamed_wants_own: false,
        judged_by: NOTHING_JUDGED,
        changes_dialect: false,
        may_pin: false,
        late: false,
    };

    /// Another text of it was judged by this state.
    fn note_state(&mut self, state: u64) {
        if self.judged_by == NOTHING_JUDGED {
            self.judged_by = state;
        }
        self.shareable &= state == self.judged_by;
    }

    fn note_fingerprint(&mut self, fingerprint: u32) {
        self.fingerprint = self.fingerprint.rotate_left(7) ^ fingerprint;
    }

    fn note_sequences(&mut self, effects: &Effects) {
        self.asks_sequence |= effects.asks_sequence;
        self.draws |= effects.draws;
        self.controls |= effects.controls;
        self.characteristics |= effects.characteristics;
    }

    /// A text of these effects is run or prepared in it.
    fn note_names(&mut self, effects: &Effects) {
        let changes = effects.deallocates.is_some() || effects.drops_all_statements();
        self.may_pin |= !effects.pins.is_empty() || effects.role;
        self.changes_names |= changes;
        self.names_matter |= effects.statement_names;
        self.uses_names |= changes || effects.executes.is_some() || effects.statement_names;
    }
}

/// Effects of the texts found and not yet dispatched, in order. Nearly always at most one.
#[derive(Debug, Default)]
struct Texts {
    first: Option<(Arc<Effects>, u64)>,
    more: VecDeque<(Arc<Effects>, u64)>,
}

impl Texts {
    fn push(&mut self, effects: Arc<Effects>, state: u64) {
        if self.first.is_none() && self.more.is_empty() {
            self.first = Some((effects, state));
        } else {
            self.more.push_back((effects, state));
        }
    }
    fn pop(&mut self) -> Option<(Arc<Effects>, u64)> {
        self.first.take().or_else(|| self.more.pop_front())
    }
    fn clear(&mut self) {
        self.first = None;
        self.more = VecDeque::new();
    }
}

fn malformed(tag: ClientTag) -> Fault {
    Fault::new(FaultKind::ClientProtocol, format!("malformed {} message", name_of(&tag)))
}

impl Front {
    pub(crate) fn new(id: u32, key: ClientKey, settings: Settings) -> Front {
        let settings = Arc::new(settings);
        Front {
            id,
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
            asks_sequence: false,
            asks_outright: false,
            draws: false,
            controls: false,
            only_prepares: false,
            ties: false,
            names_matter: false,
            drew_at: 0,
            wants_own: false,
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
            scan: Scan {
                looked: 0,
                left: 0,
                long: Long::Batch,
                scanner: None,
                open: false,
                discarding: false,
                hastens: false,
                resetting: false,
                waits: false,
                may_pin: false,
                dialect_changed: false,
                batch: Batch::EMPTY,
            },
            texts: Texts::default(),
        }
    }

    pub(crate) fn key(&self) -> &ClientKey {
        &self.key
    }

    /// By what its texts are judged.
    pub(crate) fn judge(&self) -> Judge<'_> {
        Judge { dialect: self.dialect, knowledge: &self.knowledge }
    }

    /// Looks at one whole message that ends at `end`. `None`: the batch goes on.
    fn look(&mut self, tag: ClientTag, message: &[u8], end: usize) -> Result<Option<Found>, Fault> {
        let body = body(message);
        match tag {
            ClientTag::Query => {
                let text = read_query(body).map_err(|_| malformed(tag))?;
                let (effects, fingerprint, state) = self.judge().text(text);
                self.scan.batch.note_fingerprint(fingerprint);
                self.scan.batch.note_state(state);
                self.scan.batch.shareable &= effects.shareable && end == message.len() && !self.scan.open;
                self.note_wishes(&effects);
                self.scan.batch.note_sequences(&effects);
                self.scan.batch.resets |= effects.resets_settings();
                self.scan.batch.note_names(&effects);
                if let Some(executed) = self.executed(&effects) {
                    self.scan.batch.note_sequences(&executed.effects(self.judge()));
                }
                self.scan.batch.changes_dialect |= self.may_change_dialect(&effects);
                self.scan.batch.late = effects.controls
                    && end == message.len()
                    && !self.scan.open
                    && self.control_of(text).is_some();
                self.texts.push(effects, state);
                Ok(Some(self.request(end)))
            }
            ClientTag::FunctionCall => {
                self.scan.batch.shareable = false;
                // It pins.
                let pins = !leaves_nothing(body);
                self.scan.batch.may_pin |= pins;
                self.wants_own |= self.startup_differs && !self.is_at_home && pins;
                if pins && self.traces.pins().is_empty() && self.knowledge.are_placeholders_known() {
                    self.rare.get_or_insert_default().reads.add_any();
                }
                Ok(Some(self.request(end)))
            }
            ClientTag::Sync => Ok(Some(self.request(end))),
            ClientTag::Flush => {
                if end == message.len() && !self.scan.open {
                    // Nothing is under way that it could bring forward.
                    self.scan.looked = 0;
                    return Ok(Some(Found::Drop { len: end }));
                }
                Ok(Some(self.part_before(end)))
            }
            ClientTag::Parse => {
                let parse = read_parse(body).map_err(|_| malformed(tag))?;
                let (effects, state) = self.effects_of_parse(parse.name, parse.text, parse.content);
                self.scan.batch.note_fingerprint(fingerprint_of(parse.content));
                self.scan.batch.note_state(state);
                // A name that is given or taken cannot be taken back when the request goes elsewhere.
                self.scan.batch.shareable &= effects.shareable && parse.name.is_empty();
                self.note_wishes_of_parse(&effects, parse.name.is_empty());
                self.scan.batch.note_sequences(&effects);
                self.scan.batch.parses = true;
                self.scan.batch.resets |= effects.resets_settings();
                let names_matter = self.scan.batch.names_matter;
                self.scan.batch.note_names(&effects);
                self.scan.batch.names_will_matter |= effects.statement_names;
                // What it is like is asked before it runs, when no other statement can stand in.
                self.scan.batch.names_matter = names_matter || effects.executes.is_some();
                self.scan.batch.changes_dialect |= self.may_change_dialect(&effects);
                self.scan.batch.uses_names |= !parse.name.is_empty();
                self.scan.batch.changes_names |= !parse.name.is_empty();
                self.scan.batch.parses_unnamed |= parse.name.is_empty();
                self.texts.push(effects, state);
                Ok(None)
            }
            ClientTag::Bind => {
                let bind = read_bind(body).map_err(|_| malformed(tag))?;
                self.scan.batch.binds = true;
                self.scan.batch.names_matter |= self.scan.batch.names_will_matter;
                let named = !bind.statement.is_empty();
                self.wants_own |=
                    if named { self.scan.batch.wants_own } else { self.scan.batch.unnamed_wants_own };
                self.scan.batch.uses_names |= named;
                self.scan.batch.uses_unnamed |= !named && !self.scan.batch.parses_unnamed;
                let state = self.knowledge.state();
                let known = self.prepared.as_deref().and_then(|p| p.get(bind.statement)).cloned();
                match known {
                    Some(statement) => {
                        let effects = &*statement.effects(self.judge());
                        self.note_wishes(effects);
                        self.scan.batch.note_state(state);
                        if !self.scan.batch.parses {
                            self.scan.batch.note_fingerprint(statement.fingerprint());
                        }
                        self.scan.batch.shareable &= effects.shareable;
                        self.scan.batch.resets |= effects.resets_settings();
                        self.scan.batch.note_names(effects);
                        self.scan.batch.changes_dialect |= self.may_change_dialect(effects);
                        self.scan.batch.note_sequences(effects);
                    }
                    None => self.scan.batch.shareable &= self.scan.batch.parses,
                }
                Ok(None)
            }
            ClientTag::Execute => {
                self.scan.batch.shareable &= self.scan.batch.binds;
                Ok(None)
            }
            ClientTag::Close => {
                let named = names_statement(body);
                self.scan.batch.shareable &= body.first() != Some(&b'S');
                self.scan.batch.uses_names |= named;
                self.scan.batch.changes_names |= named;
                Ok(None)
            }
            ClientTag::Describe => {
                self.scan.batch.uses_names |= names_statement(body);
                self.scan.batch.uses_unnamed |= body == b"S\0" && !self.scan.batch.parses_unnamed;
                Ok(None)
            }
            ClientTag::CopyData | ClientTag::CopyDone | ClientTag::CopyFail | ClientTag::Terminate => {
                Err(malformed(tag))
            }
        }
    }

    /// A text of these effects is part of the batch.
    fn note_wishes(&mut self, effects: &Effects) {
        let batch = &mut self.scan.batch;
        let (before, others) = (batch.resets, batch.texts > 0 || self.scan.open);
        batch.texts = batch.texts.saturating_add(1);
        self.ties |= self.ties_by_text(effects);
        let ties = (self.startup_differs && self.may_tie(effects)) || self.settles(effects);
        if effects.touched.is_some() || effects.setting_source || before || others || ties {
            self.wish(effects, before, others);
        }
        if let Some(executed) = self.executed(effects) {
            let executed = executed.effects(self.judge());
            self.wish(&executed, before, others);
        }
    }

    /// What is only prepared does nothing yet, nor tells anything; but behind a RESET it is read by what that
    /// goes back to.
    fn note_wishes_of_parse(&mut self, effects: &Effects, unnamed: bool) {
        self.wants_own |= self.scan.batch.resets && self.startup_differs && !self.is_at_home;
        let before = std::mem::take(&mut self.wants_own);
        self.note_wishes(effects);
        let wants = std::mem::replace(&mut self.wants_own, before);
        if unnamed {
            self.scan.batch.unnamed_wants_own = wants;
        } else {
            self.scan.batch.wants_own |= wants;
        }
    }

    /// What it named at its start, or has been told of since, puts new tables among the temporary ones.
    pub(crate) fn has_temporary_path(&self) -> bool {
        self.settings.get("search_path").is_some_and(names_temporary)
    }

    /// What a lone EXECUTE runs, when that was prepared by the protocol.
    fn executed(&self, effects: &Effects) -> Option<Arc<Statement>> {
        let name = effects.executes.as_deref()?;
        self.prepared.as_deref()?.get(name.as_bytes()).cloned()
    }

    /// A text behind one of these effects may be read otherwise.
    fn may_change_dialect(&self, effects: &Effects) -> bool {
        let goes_back = || {
            self.dialect != Dialect::POSTGRES || self.settings.get("standard_conforming_strings").is_some()
        };
        (effects.controls && goes_back())
            || effects.may_set_name("standard_conforming_strings")
            || effects.may_set_name("client_encoding")
    }

    /// A text that was the unnamed statement before is not lexed again.
    fn effects_of_parse(&self, name: &[u8], text: &[u8], content: &[u8]) -> (Arc<Effects>, u64) {
        let prepared = self.prepared.as_deref().filter(|_| !self.scan.dialect_changed);
        let known = prepared.and_then(|p| p.get(name)).filter(|s| s.content() == content);
        match known {
            Some(statement) => {
                let state = self.knowledge.state();
                (statement.effects(self.judge()), state)
            }
            None => {
                let (effects, _, state) = self.judge().text(text);
                (effects, state)
            }
        }
    }

    /// The request ends at `end`.
    fn request(&mut self, end: usize) -> Found {
        if self.must_wait(false) {
            self.scan.waits = true;
            return Found::Incomplete;
        }
        let batch = std::mem::replace(&mut self.scan.batch, Batch::EMPTY);
        let was_open = std::mem::replace(&mut self.scan.open, false);
        self.scan.looked = 0;
        self.scan.resetting = batch.resets && !self.startup.is_empty();
        let alone = self.outstanding == 0 && self.boundary == Boundary::Idle && !was_open;
        self.note_questions(batch);
        self.only_prepares = batch.parses && !batch.binds && !was_open;
        let quiet = self.outstanding == 0 || self.under_way_is_shareable;
        let choosy = self.is_choosy();
        let shareable = batch.shareable
            && !choosy
            // Its server must first say whether the client may still be who it is.
            && !self.settings.is_somebody()
            && quiet
            && !was_open
            && self.boundary == Boundary::Idle
            && self.traces.pins().is_empty();
        self.under_way_is_shareable = shareable;
        self.scan.may_pin = batch.may_pin;
        self.proven_by = if shareable && batch.judged_by != NOTHING_JUDGED { batch.judged_by } else { 0 };
        Found::Request {
            len: end,
            needs: Needs {
                shareable,
                fingerprint: batch.fingerprint,
                lease: false,
                continues: was_open,
                lists: false,
                prepares: batch.parses
                    && !batch.parses_unnamed
                    && !batch.binds
                    && alone
                    && self.pins().is_empty(),
                choosy,
                late: batch.late && !choosy,
            },
        }
    }

    /// What the server it goes to must have is known.
    fn note_questions(&mut self, batch: Batch) {
        self.names_matter |= batch.names_matter;
        // Who has names on a server stays there.
        self.wants_own |=
            batch.names_matter && self.startup_differs && !self.is_at_home && !self.traces.holds_names();
        self.asks_outright |= batch.asks_sequence;
        // Statements may be executed by name that ask, or that draw.
        self.asks_sequence |= batch.asks_sequence || (batch.names_matter && !self.traces.holds_names());
        self.draws |= batch.draws;
        self.controls |= batch.controls;
        if batch.characteristics {
            self.rare.get_or_insert_default().characteristics = true;
        }
    }

    /// The first `at` bytes go ahead of a batch that has not ended.
    fn part_before(&mut self, at: usize) -> Found {
        self.wants_own |= self.scan.batch.wants_own || self.scan.batch.unnamed_wants_own;
        if self.must_wait(true) {
            self.scan.waits = true;
            return Found::Incomplete;
        }
        self.scan.looked = 0;
        self.under_way_is_shareable = false;
        // Nothing of it is there yet: names can be brought in front of it.
        self.scan.batch.names_matter |= self.scan.batch.names_will_matter;
        self.note_questions(self.scan.batch);
        self.only_prepares = false;
        let choosy = self.is_choosy();
        let mut found = part(at, std::mem::replace(&mut self.scan.open, true));
        if let Found::Part { needs, .. } = &mut found {
            needs.choosy = choosy;
        }
        found
    }

    /// What a name means can depend on whether a request before it succeeds. A guess could be wrong, so what
    /// uses names waits for the answer; so does a `part`, the rest of which may use them. What goes is noted.
    fn must_wait(&mut self, part: bool) -> bool {
        let under_way = self.outstanding > 0;
        self.names_under_way &= under_way;
        self.dialect_under_way &= under_way;
        let batch = &self.scan.batch;
        let uses_names = batch.uses_names || part;
        // Any Parse or Query may be what replaces or destroys the unnamed one.
        let uses_unnamed = batch.uses_unnamed || (part && !batch.parses_unnamed);
        // Whether its transaction has failed decides whether its statements can be brought there.
        let brings_names = under_way && batch.names_matter && !self.traces.holds_names();
        // Its client cannot change servers before all that goes before is answered.
        let chooses =
            (under_way || self.is_being_asked()) && self.is_choosy() && self.boundary == Boundary::Idle;
        let waits = (self.names_under_way && uses_names)
            || (under_way && uses_unnamed)
            || brings_names
            || self.dialect_under_way
            || chooses;
        if !self.scan.open && waits {
            return true;
        }
        self.names_under_way |= self.scan.batch.changes_names;
        self.dialect_under_way |= self.scan.batch.changes_dialect;
        false
    }

    /// A message that is too long to be gathered, alone at the start of the input.
    fn begin_long(&mut self, tag: ClientTag, total: usize, input: &[u8]) -> Result<Found, Fault> {
        // Enough is waited for that the names in front of a Parse or Bind are there.
        let have = input.len().min(total);
        if have < REQUEST_GATHER_BYTES {
            return Ok(Found::Incomplete);
        }
        if !matches!(tag, ClientTag::FunctionCall) && self.must_wait(tag != ClientTag::Query) {
            return Ok(Found::Incomplete);
        }
        if tag == ClientTag::Query && self.names_under_way && !self.scan.open {
            // What it does is known at its end.
            return Ok(Found::Incomplete);
        }
        self.under_way_is_shareable = false;
        self.only_prepares = false;
        self.scan.left = total;
        match tag {
            ClientTag::Query => {
                // What it asks is known at its end only.
                (self.asks_sequence, self.draws) = (true, true);
                let mut scanner = Scanner::new(self.dialect);
                let state = self.knowledge.proof().map_or(0, |proof| scanner.watch(proof));
                self.scan.scanner = Some(Box::new((scanner, state)));
                self.scan.long = Long::Request;
            }
            ClientTag::FunctionCall => self.scan.long = Long::Request,
            ClientTag::Parse
            | ClientTag::Bind
            | ClientTag::Describe
            | ClientTag::Execute
            | ClientTag::Close
            | ClientTag::Sync
            | ClientTag::Flush
            | ClientTag::CopyData
            | ClientTag::CopyDone
            | ClientTag::CopyFail
            | ClientTag::Terminate => self.scan.long = Long::Batch,
        }
        let text = input.get(HEADER_BYTES..have).unwrap_or_default();
        Ok(self.hand_out(have, text))
    }

    fn continue_long(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Found, Fault> {
        let len = input.len().min(self.scan.left);
        if len == 0 {
            return Ok(Found::Incomplete);
        }
        let found = self.hand_out(len, input.get(..len).unwrap_or_default());
        if self.scan.left == 0 && self.scan.long == Long::Rejected {
            put_ready(out, self.boundary);
            return Ok(Found::Answered { len });
        }
        Ok(found)
    }

    /// `len` more bytes of the long message go out; `text` is what of them a lexer may read.
    fn hand_out(&mut self, len: usize, text: &[u8]) -> Found {
        self.scan.left -= len;
        let ended = self.scan.left == 0;
        match self.scan.long {
            Long::Drop | Long::Rejected => Found::Drop { len },
            Long::Copy => part(len, true),
            Long::Batch => part(len, std::mem::replace(&mut self.scan.open, true)),
            Long::Request => {
                if let Some((scanner, _)) = self.scan.scanner.as_deref_mut() {
                    // The last byte of a Query is its NUL.
                    let visible = text.len() - usize::from(ended && !text.is_empty());
                    scanner.feed(text.get(..visible).unwrap_or_default());
                }
                let continues = std::mem::replace(&mut self.scan.open, !ended);
                if !ended {
                    return part(len, continues);
                }
                if let Some((scanner, state)) = self.scan.scanner.take().map(|scanner| *scanner) {
                    let effects = Effects::of_class(&scanner.finish());
                    self.dialect_under_way |= self.may_change_dialect(&effects);
                    self.names_under_way |= effects.deallocates.is_some() || effects.drops_all_statements();
                    self.scan.resetting = effects.resets_settings() && !self.startup.is_empty();
                    self.texts.push(effects, state);
                }
                self.scan.batch = Batch::EMPTY;
                Found::Request { len, needs: Needs { continues, ..Needs::default() } }
            }
        }
    }

    /// CopyData, CopyDone or CopyFail at the start of the input. A server that is not in copy-in mode ignores
    /// them, so they are sent on while a request is under way and dropped when nobody waits for them.
    fn copy_message(&mut self, tag: ClientTag, input: &[u8]) -> Result<Found, Fault> {
        let wanted = (self.copy_in || self.outstanding > 0 || self.scan.open) && !self.scan.discarding;
        let mut len = 0;
        // As many whole messages of data as there are, and the beginning of the last.
        while let Some(header) = client_header(input.get(len..).unwrap_or_default())? {
            if header.tag != ClientTag::CopyData {
                break;
            }
            let have = (input.len() - len).min(header.total);
            len += have;
            if have < header.total {
                self.scan.left = header.total - have;
                self.scan.long = if wanted { Long::Copy } else { Long::Drop };
                break;
            }
        }
        if len == 0 {
            let total = client_header(input)?.map_or(usize::MAX, |header| header.total);
            if input.len() < total || tag == ClientTag::CopyData {
                return Ok(Found::Incomplete);
            }
            self.copy_in = false;
            len = total;
        }
        Ok(if wanted { part(len, true) } else { Found::Drop { len } })
    }

    /// Drops messages behind a rejected part up to the Sync that ends its batch.
    fn discard(
        &mut self,
        tag: ClientTag,
        total: usize,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Found, Fault> {
        if tag != ClientTag::Sync {
            let len = input.len().min(total);
            self.scan.left = total - len;
            self.scan.long = Long::Drop;
            return Ok(Found::Drop { len });
        }
        if input.len() < total {
            return Ok(Found::Incomplete);
        }
        self.scan.discarding = false;
        put_ready(out, self.boundary);
        Ok(Found::Answered { len: total })
    }

    /// Effects of the next text that is dispatched. None when it must be judged anew: what is known of the
    /// database has changed since it was found.
    pub(crate) fn next_text(&mut self) -> Option<Arc<Effects>> {
        let (effects, state) = self.texts.pop()?;
        (state == self.knowledge.state()).then_some(effects)
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
    pub(crate) fn next_private(&mut self) -> u64 {
        self.private_statements = self.private_statements.wrapping_add(1);
        (u64::from(self.id) << 32) | u64::from(self.private_statements)
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
        if self.scan.left > 0 {
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
        self.id
    }

    /// All clients of a pool use the pool's database.
    fn schema(&self) -> Option<&str> {
        None
    }

    fn application_name(&self) -> Option<std::borrow::Cow<'_, str>> {
        let name = self.settings.get(crate::session_state::APPLICATION_NAME)?;
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

    fn find(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Found, Fault> {
        if self.scan.left > 0 {
            return self.continue_long(input, out);
        }
        if self.scan.resetting {
            if self.outstanding > 0 {
                return Ok(Found::Incomplete);
            }
            self.scan.resetting = false;
        }
        if self.scan.waits {
            if self.outstanding > 0 {
                return Ok(Found::Incomplete);
            }
            // What its names mean and how its texts are to be read is known now.
            self.scan.waits = false;
            self.scan.looked = 0;
            self.scan.batch = Batch::EMPTY;
            self.texts.clear();
        }
        loop {
            let at = self.scan.looked;
            let rest = input.get(at..).unwrap_or_default();
            let Some(header) = client_header(rest)? else {
                let hastens = std::mem::take(&mut self.scan.hastens);
                return Ok(if hastens && at > 0 && rest.is_empty() {
                    self.part_before(at)
                } else {
                    Found::Incomplete
                });
            };
            let end = at.saturating_add(header.total);
            match header.tag {
                ClientTag::CopyData | ClientTag::CopyDone | ClientTag::CopyFail => {
                    if at > 0 {
                        return Ok(self.part_before(at));
                    }
                    return self.copy_message(header.tag, input);
                }
                ClientTag::Terminate => return Ok(Found::Goodbye),
                ClientTag::Query
                | ClientTag::Parse
                | ClientTag::Bind
                | ClientTag::Describe
                | ClientTag::Execute
                | ClientTag::Close
                | ClientTag::Sync
                | ClientTag::Flush
                | ClientTag::FunctionCall => {}
            }
            if self.scan.discarding {
                return self.discard(header.tag, header.total, input, out);
            }
            if end > REQUEST_GATHER_BYTES {
                if at > 0 {
                    return Ok(self.part_before(at));
                }
                return self.begin_long(header.tag, header.total, input);
            }
            let Some(message) = rest.get(..header.total) else { return Ok(Found::Incomplete) };
            if self.copy_in && matches!(header.tag, ClientTag::Sync | ClientTag::Flush) && at == 0 {
                // A server in copy-in mode ignores them (section 55.2.3); it must see them all the same.
                return Ok(part(end, true));
            }
            self.scan.looked = end;
            if let Some(found) = self.look(header.tag, message, end)? {
                return Ok(found);
            }
        }
    }

    fn is_part_open(&self) -> bool {
        self.scan.open || self.scan.left > 0
    }

    fn is_mid_message(&self, kept: usize) -> bool {
        self.scan.left > 0 || kept > self.scan.looked
    }

    /// The `kept` bytes that wait to be found are whole messages of a batch whose end has not come, and
    /// nothing else keeps them.
    fn is_between_messages(&self, kept: usize) -> bool {
        let scan = &self.scan;
        scan.left == 0
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

    fn words_of(&self, request: &[u8]) -> Option<String> {
        self.words_that_pin(request)
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
fn names_temporary(path: &[u8]) -> bool {
    path.windows(7).any(|word| word.eq_ignore_ascii_case(b"pg_temp"))
}

/// A Close or Describe of a statement that has a name.
fn names_statement(body: &[u8]) -> bool {
    matches!(body, [b'S', first, ..] if *first != 0)
}

/// Bytes that go ahead of the end of their request; `continues` says that others of it went before.
fn part(len: usize, continues: bool) -> Found {
    Found::Part { len, needs: Needs { lease: true, continues, ..Needs::default() } }
}

mod cause;
#[cfg(test)]
mod tests;
