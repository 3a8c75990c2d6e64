//! Interprets tokens: which statement this is and what it leaves behind.
//!
//! Owns: where statements begin and end, what each verb and each known function means for the session. Must
//! not know: bytes, quotes, comments.
//!
//! Invariants: an unrecognised statement states the pin `Unrecognised`; `shareable` is concluded at the end
//! from the absence of every doubt; memory is constant except for the lists of [`Details`], which are
//! bounded.

mod body;
mod calls;
mod defines;
mod names;
mod operator;
mod relations;
mod set;
mod steps;
mod touched;
mod verbs;

pub(crate) use relations::is_no_word;

use weir_wire::limits::TEXT_HEADS;
use weir_wire::{Pin, Pins};

use crate::Dialect;
use crate::catalogue::{Catalogue, NameKey};
use crate::class::{CallKind, Class, Clears, Details, Locks, Transaction, Uses, Verb};
use crate::fingerprint::Fingerprint;
use crate::token::{Kind, Sink, Token};
use crate::words::{Func, Word, lookup};

/// What the recogniser does with the tokens of the current statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    /// Waits for the verb.
    #[default]
    Start,
    /// Behind WITH, before the statement's own verb.
    With,
    /// SELECT, INSERT and their like.
    Query,
    /// Only functions and variables matter.
    Rest,
    /// Nothing matters: the body of a routine up to its end.
    Routine,
    /// CREATE or ALTER EVENT up to its body: the schedule is evaluated at once.
    Event,
    Begin,
    StartWhat,
    Commit,
    Rollback,
    /// The name is next. Behind it, `Rest`.
    Name,
    Prepare,
    Execute,
    Deallocate,
    Discard,
    Unlisten,
    Close,
    Copy,
    Declare,
    Create,
    Alter,
    Drop,
    Lock,
    Unlock,
    Flush,
    Backup,
    Handler,
    Xa,
    Load,
    Kill,
    Show,
    Explain,
    Maintain,
    Set,
}

/// Where the table of INSERT or COPY is, behind which a parenthesis opens a list of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Target {
    #[default]
    None,
    /// Its name is next.
    Next,
    /// Its name is the last token.
    Here,
}

/// A token that has passed.
#[derive(Debug, Clone, Copy, Default)]
struct Past {
    kind: Kind,
    word: Word,
    func: Func,
    /// A word that PostgreSQL takes neither as a table's name nor as an alias.
    reserved: bool,
}

/// What is known of the current statement only.
#[derive(Debug, Clone, Default)]
struct Statement {
    /// Where the last token started and ended.
    last_start: u32,
    last_end: u32,
    /// Where a call that is being read started.
    call_start: u32,
    /// Open parentheses.
    depth: u16,
    /// Parentheses that were open before those of `set_config`, plus one; 0 if there is none.
    config_depth: u16,
    /// Open BEGIN, CASE, IF and loops of a routine's body.
    body_depth: u16,
    /// Calls that were listed before this statement.
    calls_before: u8,
    mode: Mode,
    verb: Verb,
    /// How far the mode has come.
    step: u8,
    /// Tokens so far, up to 255.
    tokens: u8,
    last: Past,
    before: Past,
    target: Target,
    call: Option<CallKind>,
    transaction: Option<Transaction>,
    set: set::Progress,
    /// In the outermost select list.
    in_list: bool,
    /// The last call ends at the last token and may be a whole select item.
    call_may_be_bare: bool,
    /// The call or variable that is being read began a select item.
    item_begins: bool,
    /// Behind `@@`.
    in_system: bool,
    /// `SELECT ... INTO` was met.
    into: bool,
    /// UNION, EXCEPT or INTERSECT was met.
    in_union: bool,
    /// LIMIT was met outside of parentheses.
    limited: bool,
    /// It is `SELECT f()` up to here, with an f that frees all locks.
    frees_all: bool,
    /// The name before the dot is `pg_catalog`.
    in_catalog: bool,
    /// It stands behind SET STATEMENT ... FOR.
    is_wrapped: bool,
    /// A body was begun.
    body_begun: bool,
    /// Inside a body: DECLARE ... HANDLER.
    body_handler: bool,
    /// Words were met that may make a body without BEGIN go on behind a semicolon.
    body_goes_on: bool,
    /// The first argument of `set_config` names something other than the role.
    config_is_plain: bool,
    /// In a call that is given an XPath (MySQL).
    xpath: calls::XPath,
    /// The last word is SQL (MariaDB).
    is_sql: bool,
    /// Behind `current_setting(`.
    asks_setting: bool,
    /// UPDATE was met, or what may be one.
    updates: bool,
    /// `pg_settings` was met.
    settings_view: bool,
    /// So was `*`, or a column that says where a setting comes from.
    settings_source: bool,
    arguments: touched::Arguments,
    /// The lists of relations (PostgreSQL).
    relations: relations::Relations,
    /// Behind `OPERATOR(` (PostgreSQL).
    operator: operator::Named,
    /// It only defines (PostgreSQL).
    definition: defines::Definition,
    /// Where its first token stands.
    start: u32,
}

/// The recogniser.
#[derive(Debug, Clone)]
pub(crate) struct Recogniser {
    class: Class,
    now: Statement,
    fingerprint: Fingerprint,
    mysql: bool,
    mariadb: bool,
    /// Something was met that forbids sharing.
    alone: bool,
    /// All statements so far were SETs that were understood; the pins of those that are over.
    in_heads: bool,
    head_pins: Pins,
    /// A routine without BEGIN ended at a semicolon: what follows may still belong to it.
    after_routine: bool,
    /// An anonymous block of MariaDB's has begun.
    in_block: bool,
    /// CREATE or ALTER has been met in it.
    defines_in_block: bool,
    /// A statement that clears settings in whole has ended.
    cleared: bool,
    /// What its words stand for.
    watch: names::Watch,
    /// The statements of the text only define.
    definitions: defines::Definitions,
    /// Where the blocks of the text stand (PostgreSQL's DO); it has more than are counted, or calls a
    /// procedure.
    blocks: Vec<(u32, u32)>,
    more_blocks: bool,
    /// What they do, when that is known.
    pub(crate) block: Option<Box<crate::catalogue::Block>>,
    /// The last word, when they are watched.
    last_name: NameKey,
}

impl Sink for Recogniser {
    fn token(&mut self, token: Token<'_>) {
        self.fingerprint.token(&token);
        if token.kind == Kind::Semicolon && self.splits() {
            let before = self.class.statements;
            if self.now.verb == Verb::Kill {
                let details = self.details();
                details.kill_end = if details.kills == 1 { position(token.start) } else { details.kill_end };
            }
            self.end_statement();
            if self.class.statements != before {
                self.note_head();
            }
            if self.class.statements == 1 && self.class.first_end == 0 {
                self.class.first_end = position(token.start);
            }
            return;
        }
        self.now.tokens = self.now.tokens.saturating_add(1);
        if self.now.tokens == 1 {
            self.now.start = position(token.start);
        }
        self.named(&token);
        let past = match token.kind {
            Kind::Word => self.word(&token),
            Kind::Quoted => {
                let entry = lookup(token.text);
                self.class.varies |= is_of_the_server(token.text, entry, self.mysql);
                if self.mysql {
                    self.mentioned_quoted(entry.word);
                } else {
                    self.quoted_view(token.text);
                }
                if matches!(entry.word, Word::PgPreparedStatement | Word::PgPreparedStatements) {
                    self.asks_statements();
                }
                let func = quoted_function(entry, self.mysql, self.mariadb);
                Past { kind: Kind::Quoted, word: self.word_for_dot(token.text), func, reserved: false }
            }
            kind => {
                // In PostgreSQL `@` is an operator.
                self.class.varies |= kind == Kind::Escaped
                    || (self.mysql && matches!(kind, Kind::SystemPrefix | Kind::UserVariable));
                if kind == Kind::Escaped {
                    // Its name may be any.
                    self.class.statement_names |= !self.mysql;
                    if self.now.updates {
                        self.mentions_settings();
                    }
                }
                Past { kind, ..Past::default() }
            }
        };
        if self.mariadb && matches!(past.kind, Kind::Word | Kind::Quoted) {
            self.sequence_word(&token, past.word);
        }
        if self.now.call_may_be_bare {
            self.settle_bare(&token, past.word);
        }
        if self.now.call.is_some() && self.now.last.kind == Kind::Open {
            self.settle_call(&token);
        }
        if self.now.config_depth != 0 && self.now.config_depth == self.now.depth {
            self.config_argument(&token);
            self.setting_argument(&token);
        }
        self.xpath_argument(&token);
        self.asked_setting(&token);
        self.defined_setting(&token);
        self.operator_token(&token);
        self.mode_token(&token, past);
        if self.mariadb && matches!(past.kind, Kind::Word | Kind::Quoted) {
            self.oracle_word(&token);
        }
        match token.kind {
            Kind::Dot => self.now.in_catalog = self.now.last.word == Word::PgCatalog,
            Kind::Open => self.open(),
            Kind::Star => self.now.settings_source = true,
            Kind::Close => self.close(),
            Kind::UserVariable if !self.is_set_target() => self.user_variable(&token),
            Kind::Assign if self.now.last.kind == Kind::UserVariable => self.writes_variable(),
            Kind::Comma if self.now.limited && self.now.depth == 0 => self.class.skips_rows = true,
            _ => {}
        }
        if !self.mysql {
            self.follow_relations(&token, past);
            self.defines(&token, past.word);
        } else if !self.is_set_target() {
            self.system_variable(&token);
        }
        self.follow_target(&token, past);
        self.now.before = self.now.last;
        self.now.last = past;
        self.now.last_start = position(token.start);
        self.now.last_end = position(token.end);
    }
}

/// Blocks of a text that are looked at.
const TEXT_BLOCKS: usize = 32;

/// A place in the text; those beyond 4 GiB, which no server accepts, all look alike.
fn position(at: u64) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// What a quoted name means before a parenthesis: only what is not harmless counts. ROW_COUNT is a keyword of
/// MySQL's, so that in quotes it is a function that somebody has made.
fn quoted_function(entry: &crate::words::Entry, mysql: bool, mariadb: bool) -> Func {
    let func = if mysql { entry.mysql } else { entry.postgres };
    match func {
        Func::Harmless | Func::Varies | Func::Syntax => Func::Unknown,
        Func::RowCount if !mariadb => Func::Unknown,
        func => func,
    }
}

/// A name that stands for a value of the session or of the moment, or for what the server keeps about itself.
fn is_of_the_server(name: &[u8], entry: &crate::words::Entry, mysql: bool) -> bool {
    match mysql {
        true => entry.bare_mysql,
        false => entry.bare_postgres || name.get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case(b"pg_")),
    }
}

impl Recogniser {
    pub(crate) fn new(dialect: Dialect, fingerprint: bool) -> Recogniser {
        let mariadb = matches!(dialect, Dialect::MySql { mariadb: true, .. });
        Recogniser {
            class: Class::default(),
            now: Statement::default(),
            fingerprint: Fingerprint::new(fingerprint),
            mysql: dialect.is_mysql(),
            mariadb,
            alone: false,
            in_heads: dialect.is_mysql(),
            head_pins: Pins::NONE,
            after_routine: false,
            in_block: false,
            defines_in_block: false,
            cleared: false,
            watch: names::Watch::None,
            definitions: defines::Definitions::default(),
            blocks: Vec::new(),
            more_blocks: false,
            block: None,
            last_name: NameKey::UNREADABLE,
        }
    }

    /// The text is at its end.
    pub(crate) fn finish(mut self, doubtful: bool, executable: bool) -> Class {
        self.end_statement();
        self.join_heads();
        self.conclude();
        self.finish_touched();
        let mut class = self.class;
        class.fingerprint = self.fingerprint.finish();
        class.doubtful |= doubtful;
        if self.defines_in_block
            && let Some(details) = class.details.as_deref_mut()
        {
            // Which of them a definition inside the block keeps is not known.
            details.calls.clear();
        }
        if executable {
            class.uses.insert(Uses::EXECUTABLE_COMMENT);
            self.alone = true;
        }
        if class.doubtful {
            class.pins.insert(Pin::Unrecognised);
            class.releases = Pins::NONE;
            class.clears = Clears::NONE;
            class.frees = Locks::NONE;
            class.details = None;
            if class.statements == 0 {
                class.statements = 1;
                class.verb = Verb::Unrecognised;
            }
        }
        // Of several statements none is a single one.
        class.statement_names |=
            class.statements > 1 && !self.mysql && class.uses.contains(Uses::SQL_PREPARE);
        if class.statements > 1
            && let Some(details) = &mut class.details
        {
            details.set = None;
            details.name = None;
        }
        if class.details.as_deref().is_some_and(|details| *details == Details::default()) {
            class.details = None;
        }
        let of_data = matches!(
            class.verb,
            Verb::Select
                | Verb::Values
                | Verb::Insert
                | Verb::Update
                | Verb::Delete
                | Verb::Merge
                | Verb::Replace
        );
        class.shareable =
            class.statements == 1 && of_data && !self.alone && !class.doubtful && class.pins.is_empty();
        class
    }

    /// A statement with a semicolon behind it is over: it may be one of the SETs at the head, or a USE among
    /// them, whose effect servers tell of.
    fn note_head(&mut self) {
        let understood = |set: &mut crate::SetTarget| set.complete;
        let uses = self.in_heads && self.class.verb == Verb::Use && self.class.statements == 1;
        let set = match self.class.details.as_deref_mut().filter(|_| self.in_heads) {
            Some(_) if uses => Some(crate::SetTarget { complete: true, ..Default::default() }),
            Some(details) if details.heads.len() < TEXT_HEADS => details.set.take_if(understood),
            Some(_) | None => None,
        };
        match set {
            Some(set) => {
                self.details().heads.push(set);
                self.head_pins.union(std::mem::take(&mut self.class.pins));
            }
            None => self.in_heads = false,
        }
    }

    /// The text is over: a SET that stands alone in it is no head of anything.
    fn join_heads(&mut self) {
        let behind =
            self.class.details.as_deref().is_some_and(|one| !one.heads.is_empty() && one.set.is_some());
        if behind {
            // Nothing but SETs: the last one, behind which there is no semicolon, is one of them.
            self.note_head();
        }
        let pins = self.class.pins;
        self.class.pins.union(self.head_pins);
        let alone = self.class.statements == 1;
        if let Some(details) = self.class.details.as_deref_mut() {
            details.pins_behind = pins;
            if alone && let Some(set) = details.heads.pop() {
                details.set = Some(set).filter(|_| self.class.verb != Verb::Use);
            }
            if details.heads.is_empty() {
                details.pins_behind = Pins::NONE;
            }
        }
    }

    /// A semicolon here ends the statement.
    fn splits(&self) -> bool {
        self.now.body_depth == 0 && (self.mysql || self.now.depth == 0)
    }

    fn end_statement(&mut self) {
        if self.now.tokens == 0 && !self.now.is_wrapped {
            return;
        }
        self.end_mode();
        self.end_touched();
        if !self.mysql {
            self.end_definition();
            self.end_block();
            self.class.makes_no_code = self.makes_no_code();
            self.look_for_temporary_code();
        }
        if self.now.depth != 0 || self.now.config_depth != 0 {
            self.alone = true;
        }
        if self.now.body_depth != 0 || self.after_routine {
            self.class.doubtful = true;
        }
        let goes_on = !self.now.body_begun && self.now.body_goes_on;
        self.after_routine = self.mysql && self.now.mode == Mode::Routine && goes_on;
        if self.now.call_may_be_bare {
            self.mark_bare();
        }
        if self.mysql && self.now.step != steps::FILLED {
            self.forget_stored_calls();
        }
        if let Some(transaction) = self.now.transaction {
            self.class.uses.insert(Uses::TRANSACTION);
            self.class.transaction.get_or_insert(transaction);
            if let Transaction::Commit { release: true, .. } | Transaction::Rollback { release: true, .. } =
                transaction
            {
                self.class.transaction = Some(transaction);
            }
        }
        if self.now.frees_all && self.now.tokens == 4 && self.now.last.kind == Kind::Close {
            if self.mysql {
                self.class.frees.insert(Locks::NAMED);
            } else {
                self.class.frees.insert(Locks::ADVISORY);
            }
        }
        if self.class.statements == 0 {
            self.class.verb = self.now.verb;
        }
        self.note_verb(self.now.verb);
        self.class.statements = self.class.statements.saturating_add(1);
        let calls = self.class.details.as_deref().map_or(0, |details| details.calls.len());
        // There are at most TEXT_CALLS.
        let calls_before = u8::try_from(calls).unwrap_or(u8::MAX);
        self.now = Statement { calls_before, ..Statement::default() };
    }

    /// A statement that is a block of code is over.
    fn end_block(&mut self) {
        match self.now.verb {
            Verb::Do if self.blocks.len() < TEXT_BLOCKS => {
                self.blocks.push((self.now.start, self.now.last_end))
            }
            Verb::Do | Verb::Call => self.more_blocks = true,
            _ => {}
        }
    }

    /// Where the blocks of a text stand whose words were looked up, once its last token is there; and where
    /// that was. Of most texts: nowhere.
    pub(crate) fn places_of_blocks(&mut self) -> Option<(&[(u32, u32)], &Catalogue)> {
        let names::Watch::Text(_) = &self.watch else { return None };
        self.end_statement();
        let names::Watch::Text(found) = &self.watch else { return None };
        (!self.blocks.is_empty()).then(|| (self.blocks.as_slice(), found.catalogue()))
    }

    /// A definition (view, default, routine, event) keeps the call itself, and whoever runs it later is
    /// meant: nothing is asked now. Only the SELECT that fills a new table is run at once.
    fn forget_stored_calls(&mut self) {
        let defines = matches!(self.now.verb, Verb::Create | Verb::Alter);
        if defines && let Some(details) = self.class.details.as_deref_mut() {
            details.calls.truncate(usize::from(self.now.calls_before));
        }
    }

    fn pin(&mut self, pin: Pin) {
        self.class.pins.insert(pin);
    }

    fn uses(&mut self, uses: Uses) {
        self.class.uses.insert(uses);
    }

    /// The statement is one the scanner does not know. Returns nothing to be wrong about.
    fn unrecognised(&mut self) {
        self.now.verb = Verb::Unrecognised;
        self.now.mode = Mode::Rest;
        self.pin(Pin::Unrecognised);
        self.alone = true;
    }

    fn details(&mut self) -> &mut Details {
        self.class.details.get_or_insert_default()
    }

    /// Of an identifier only the schema in front of a dot matters.
    fn word_for_dot(&self, text: &[u8]) -> Word {
        if !self.mysql && text == b"pg_catalog" { Word::PgCatalog } else { Word::Name }
    }

    /// What an unquoted word means here. A word behind a dot is a name whatever it says.
    fn word(&mut self, token: &Token<'_>) -> Past {
        let entry = lookup(token.text);
        let mut func = if self.mysql { entry.mysql } else { entry.postgres };
        let mut word = entry.word;
        self.class.varies |= is_of_the_server(token.text, entry, self.mysql);
        self.mentioned(word);
        if word == Word::Name {
            self.may_be_source(token.text);
            self.may_wait(token.text);
        }
        if self.now.last.kind == Kind::Dot {
            let in_catalog = self.now.in_catalog && !self.mysql;
            if !in_catalog && matches!(func, Func::Harmless | Func::Varies | Func::Syntax) {
                func = Func::Unknown;
            }
            word = Word::Name;
        }
        Past { kind: Kind::Word, word, func, reserved: entry.reserved_postgres }
    }

    /// MariaDB runs what says NOWAIT or WAIT with other timeouts, and says that the session has changed.
    fn may_wait(&mut self, word: &[u8]) {
        let waits = |word: &[u8]| word.eq_ignore_ascii_case(b"nowait") || word.eq_ignore_ascii_case(b"wait");
        self.class.lends_settings |= self.mariadb && matches!(word.len(), 4 | 6) && waits(word);
    }

    /// Words that matter wherever they stand.
    fn mentioned(&mut self, word: Word) {
        match word {
            Word::Processlist | Word::PgStatActivity => {
                self.uses(Uses::PROCESS_LIST);
                self.alone = true;
            }
            Word::InnodbTrx
            | Word::InnodbLocks
            | Word::InnodbLockWaits
            | Word::Threads
            | Word::DataLocks
            | Word::DataLockWaits
            | Word::MetadataLocks
            | Word::PerformanceSchema
            | Word::Sys
            | Word::IsUsedLock
                if self.mysql =>
            {
                self.uses(Uses::PROCESS_LIST);
            }
            Word::SessionVariables | Word::SystemVariables | Word::VariablesByThread if self.mysql => {
                self.uses(Uses::SYSTEM_VARIABLE | Uses::TRACKERS);
            }
            Word::UserVariables | Word::UserVariablesByThread if self.mysql => {
                self.uses(Uses::USER_VARIABLE_READ);
                self.touched().variables.add_any();
                self.alone = true;
            }
            Word::Variables if self.now.verb == Verb::Show => self.uses(Uses::TRACKERS),
            Word::TrackSchema | Word::TrackState | Word::TrackTransaction if self.mysql => {
                self.uses(Uses::TRACKERS);
            }
            Word::Engine if self.now.verb == Verb::Show => self.uses(Uses::PROCESS_LIST),
            Word::PgSettings if !self.mysql => self.mentions_settings(),
            Word::Update => self.now.updates = true,
            // All columns of what follows.
            Word::Table => self.now.settings_source = true,
            Word::PgPreparedStatement | Word::PgPreparedStatements => self.asks_statements(),
            // EXPLAIN EXECUTE, CREATE TABLE ... AS EXECUTE; and not the right to execute, nor what a trigger
            // does.
            Word::Execute if self.now.tokens > 1 => {
                let is_else = match self.now.verb {
                    Verb::Catalogue => true,
                    Verb::Create => self.now.last.word != Word::As,
                    _ => false,
                };
                self.class.statement_names |= !self.mysql && !is_else;
            }
            _ => {}
        }
    }

    /// The same of MySQL's words in quotes: a name is what it is without.
    fn mentioned_quoted(&mut self, word: Word) {
        match word {
            Word::UserVariables
            | Word::UserVariablesByThread
            | Word::SessionVariables
            | Word::SystemVariables
            | Word::VariablesByThread
            | Word::TrackSchema
            | Word::TrackState
            | Word::TrackTransaction => {
                self.mentioned(word);
            }
            _ => {}
        }
    }

    /// A name in quotes that means the same as without.
    fn quoted_view(&mut self, text: &[u8]) {
        match text {
            b"pg_settings" => self.mentions_settings(),
            _ => self.may_be_source(text),
        }
    }

    /// It is asked what is prepared in this session.
    fn asks_statements(&mut self) {
        if !self.mysql {
            self.class.statement_names = true;
            self.alone = true;
        }
    }

    fn follow_target(&mut self, token: &Token<'_>, past: Past) {
        let now = &mut self.now;
        now.target = match (now.target, token.kind) {
            (Target::None, _) => return,
            (Target::Next, Kind::Word | Kind::Quoted | Kind::Escaped) => match past.word {
                Word::Into
                | Word::Ignore
                | Word::LowPriority
                | Word::HighPriority
                | Word::Delayed
                | Word::Insert
                | Word::Replace
                | Word::Copy => Target::Next,
                _ => Target::Here,
            },
            (Target::Here, Kind::Dot) => Target::Here,
            (Target::Here, Kind::Word | Kind::Quoted | Kind::Escaped) if now.last.kind == Kind::Dot => {
                Target::Here
            }
            _ => Target::None,
        };
    }

    /// Keeps the name of the thing spoken of. PostgreSQL takes as much of a long one as it keeps of any.
    fn keep_name(&mut self, token: &Token<'_>) {
        const BYTES: usize = 63;
        let plain = |byte: &u8| byte.is_ascii() && *byte != b'"';
        let kept = match token.text.get(..BYTES).filter(|text| !self.mysql && text.iter().all(plain)) {
            Some(text) => Token { text, len: BYTES, ..*token },
            None => *token,
        };
        if let Some(name) = self.name_of(&kept) {
            self.details().name = Some(name);
        }
    }

    /// The name a token stands for; none if it is cut or its escapes are not understood.
    fn name_of(&self, token: &Token<'_>) -> Option<String> {
        let name = std::str::from_utf8(token.text).ok()?;
        if token.is_cut() {
            return None;
        }
        match token.kind {
            Kind::Word if self.mysql => Some(name.to_owned()),
            // PostgreSQL folds ASCII only in multi-byte encodings.
            Kind::Word => Some(name.to_ascii_lowercase()),
            Kind::Number if self.mysql => Some(name.to_owned()),
            // Which of its quotes stood around it is not known here; both kinds doubled are too rare to care.
            Kind::Quoted if self.mysql && name.contains("\"\"") => None,
            Kind::Quoted if self.mysql => Some(name.replace("``", "`")),
            Kind::Quoted => Some(name.replace("\"\"", "\"")),
            _ => None,
        }
    }
}
