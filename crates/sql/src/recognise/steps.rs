//! The meaning of the words behind the verb, one function per statement.

use weir_wire::Pin;

use super::{Mode, Past, Recogniser, Statement, Target};
use crate::class::{Clears, Kill, Locks, Transaction, Uses, Verb};
use crate::token::{Kind, Token};
use crate::words::Word;

/// The step behind SET in LOAD.
pub(super) const LOAD_SETS: u8 = 3;
/// The step behind CREATE TABLE.
const OF_TABLE: u8 = 250;
/// The step behind the first SELECT of CREATE TABLE, and in the schedule of an event.
pub(super) const FILLED: u8 = 251;
/// The step behind AS of CREATE TABLE (PostgreSQL).
const OF_ROWS: u8 = 252;
/// The step behind CREATE SEQUENCE (PostgreSQL).
const OF_SEQUENCE: u8 = 253;
/// The steps behind DEFAULT in CREATE TABLE, and behind a literal there (PostgreSQL).
const AT_DEFAULT: u8 = 254;
const AT_LITERAL: u8 = 255;

/// Words in CREATE TABLE behind which stands code that its rows run, or another table that has some.
const KEEPS_CODE: [&[u8]; 6] = [b"check", b"generated", b"like", b"inherits", b"exclude", b"of"];

/// The step behind a relation's name in VACUUM and its like.
const ONE_RELATION: u8 = 1;
/// The step behind REINDEX SCHEMA.
const ALL_RELATIONS: u8 = 2;

impl Recogniser {
    /// PostgreSQL: VACUUM, ANALYZE, CLUSTER, REINDEX. Which relations: those that are named, or all.
    fn maintain(&mut self, token: &Token<'_>, word: Word) {
        const OPTIONS: [&[u8]; 6] = [b"full", b"freeze", b"verbose", b"analyze", b"analyse", b"concurrently"];
        const OF_ALL: [&[u8]; 3] = [b"schema", b"database", b"system"];
        let is_name = matches!(token.kind, Kind::Word | Kind::Quoted | Kind::Escaped);
        if self.now.step != 0 || self.now.depth != 0 || !is_name {
            return;
        }
        let is = |words: &[&[u8]]| {
            token.kind == Kind::Word && words.iter().any(|word| token.text.eq_ignore_ascii_case(word))
        };
        if is(&OF_ALL) {
            self.now.step = ALL_RELATIONS;
        } else if !is(&OPTIONS) && !matches!(word, Word::Table | Word::Index) {
            self.now.step = ONE_RELATION;
        }
    }

    /// Hands a token to the statement it stands in.
    pub(super) fn mode_token(&mut self, token: &Token<'_>, past: Past) {
        let word = past.word;
        self.defines_in_block |= self.in_block && matches!(word, Word::Create | Word::Alter);
        match self.now.mode {
            Mode::Start => self.start(token, word),
            Mode::Query => {
                if word != Word::Name {
                    self.query(word);
                } else if self.now.into {
                    self.temporary_schema(token);
                }
            }
            Mode::Rest => {}
            Mode::With => self.with(word),
            Mode::Routine => self.body(token, word),
            Mode::Event => self.event(token, word),
            Mode::Begin => self.begin(token, word),
            Mode::StartWhat => self.start_what(word),
            Mode::Commit => self.commit(word),
            Mode::Rollback => self.rollback(word),
            Mode::Name => self.name(token, word),
            Mode::Prepare => self.prepare(token, word),
            Mode::Execute => self.execute(token, word),
            Mode::Deallocate => self.deallocate(token, word),
            Mode::Discard => self.discard(word),
            Mode::Unlisten => self.unlisten(token),
            Mode::Close => self.close_cursor(token, word),
            Mode::Copy => self.copy(word),
            Mode::Declare => self.declare(token, word),
            Mode::Create => self.create(token, word),
            Mode::Alter => self.alter(token, word),
            Mode::Drop => self.drop_what(word),
            Mode::Lock => self.lock(word),
            Mode::Unlock => self.unlock(word),
            Mode::Flush => self.flush(word),
            Mode::Backup => self.backup(word),
            Mode::Handler => self.handler(word),
            Mode::Xa => self.xa(word),
            Mode::Load => self.load(word),
            Mode::Kill => self.kill(token, word),
            Mode::Show => {
                self.show(word);
                self.shown(token);
            }
            Mode::Explain => self.explain(token, word),
            Mode::Maintain => self.maintain(token, word),
            Mode::Set => self.set_token(token, past),
        }
    }

    /// The statement ends: what only its end decides.
    pub(super) fn end_mode(&mut self) {
        match self.now.mode {
            // Nothing but parentheses, or a verb without what must follow it.
            Mode::Start
            | Mode::With
            | Mode::StartWhat
            | Mode::Discard
            | Mode::Unlock
            | Mode::Backup
            | Mode::Xa => {
                self.unrecognised();
            }
            Mode::Lock if self.mysql => self.unrecognised(),
            // A statement of that name.
            Mode::Deallocate if self.now.step == 1 && !self.mysql => {
                self.details().name = Some("prepare".to_owned());
            }
            Mode::Set => self.end_set(),
            _ => {}
        }
    }

    fn with(&mut self, word: Word) {
        if self.now.depth != 0 {
            self.inside_with(word);
            return;
        }
        // `WITH values AS (...)`: only the reserved words are verbs wherever they stand.
        let is_reserved = matches!(word, Word::Select | Word::Table);
        if self.now.last.kind != Kind::Close && !is_reserved {
            return;
        }
        let verb = match word {
            Word::Select | Word::Table => Verb::Select,
            Word::Values => Verb::Values,
            Word::Insert => Verb::Insert,
            Word::Replace if self.mysql => Verb::Replace,
            Word::Update => Verb::Update,
            Word::Delete => Verb::Delete,
            Word::Merge => Verb::Merge,
            _ => return,
        };
        self.now.verb = verb;
        self.now.mode = Mode::Query;
        self.now.in_list = verb == Verb::Select;
        if matches!(verb, Verb::Insert | Verb::Replace) {
            self.now.target = Target::Next;
        }
    }

    /// PostgreSQL: a statement that writes may stand in the parentheses.
    fn inside_with(&mut self, word: Word) {
        match word {
            Word::Select if self.mysql => self.uses(Uses::SUBQUERY),
            // Behind `(`, or behind the list of a WITH of its own.
            Word::Insert | Word::Update | Word::Delete | Word::Merge
                if matches!(self.now.last.kind, Kind::Open | Kind::Close) =>
            {
                self.uses(Uses::WITH_WRITES);
            }
            Word::Into => self.now.target = Target::Next,
            // FOR UPDATE, FOR NO KEY UPDATE, FOR SHARE of a SELECT in there.
            Word::Update | Word::Share | Word::Lock => self.uses(Uses::ROW_LOCK),
            _ => {}
        }
    }

    fn query(&mut self, word: Word) {
        match word {
            Word::Limit | Word::Offset | Word::Fetch if self.now.depth == 0 => {
                self.class.skips_rows |= word == Word::Offset || self.now.in_union;
                self.now.limited = true;
                self.now.in_list = false;
            }
            Word::Union | Word::Except | Word::Intersect if self.now.depth == 0 => {
                self.class.skips_rows |= self.now.limited;
                self.now.in_union = true;
                self.now.in_list = false;
            }
            Word::Select => {
                self.now.in_list = self.now.depth == 0;
                if self.mysql && !self.now.in_list {
                    self.uses(Uses::SUBQUERY);
                }
                self.class.skips_rows |= matches!(self.now.verb, Verb::Insert | Verb::Replace);
            }
            Word::From | Word::Where | Word::Group | Word::Having | Word::Order if self.now.depth == 0 => {
                self.now.in_list = false;
            }
            Word::Into => self.into(),
            Word::Temp | Word::Temporary if self.is_temporary_modifier() => self.pin(Pin::TemporaryTable),
            Word::Update if self.now.verb == Verb::Select && self.now.last.kind != Kind::Open => {
                self.uses(Uses::ROW_LOCK);
            }
            Word::Share => self.uses(Uses::ROW_LOCK),
            Word::Lock => self.uses(Uses::ROW_LOCK),
            Word::SqlCalcFoundRows if self.mysql => {
                self.uses(Uses::CALC_FOUND_ROWS);
                self.pin(Pin::LastResult);
            }
            _ => {}
        }
    }

    /// TEMP stands here where it makes what is created temporary.
    fn is_temporary_modifier(&self) -> bool {
        matches!(self.now.last.word, Word::Into | Word::Create | Word::Local | Word::Global)
    }

    fn into(&mut self) {
        let of_insert = matches!(
            self.now.last.word,
            Word::Insert
                | Word::Merge
                | Word::Replace
                | Word::Ignore
                | Word::LowPriority
                | Word::HighPriority
                | Word::Delayed
        );
        // `SELECT 1 merge INTO OUTFILE ...` gives a column that name.
        if of_insert && !matches!(self.now.verb, Verb::Select | Verb::Values) {
            self.now.target = Target::Next;
            return;
        }
        // SELECT INTO: a table in PostgreSQL; a file or variables in MySQL.
        self.now.into = true;
        self.alone = true;
        if self.now.depth == 0 {
            self.now.in_list = false;
        }
        if !self.mysql {
            self.class.ddl = true;
        }
    }

    /// A table in `pg_temp` is a temporary one.
    pub(super) fn temporary_schema(&mut self, token: &Token<'_>) {
        let named = matches!(token.kind, Kind::Word | Kind::Quoted | Kind::Escaped);
        if !self.mysql && named && (token.kind == Kind::Escaped || is_temporary_schema(token.text)) {
            self.pin(Pin::TemporaryTable);
        }
    }

    fn begin(&mut self, token: &Token<'_>, word: Word) {
        // Steps: 0 behind BEGIN, 1 behind BEGIN WORK, 2 behind START TRANSACTION.
        if self.now.step == 0 && (word == Word::Work || (word == Word::Transaction && !self.mysql)) {
            self.now.step = 1;
            return;
        }
        // MySQL's BEGIN takes nothing more: it is a block of MariaDB's.
        if self.mysql && self.now.step != 2 {
            self.uses(Uses::BLOCK);
            self.in_block = true;
            self.defines_in_block |= matches!(word, Word::Create | Word::Alter);
            return self.not_control();
        }
        self.now.step = self.now.step.max(1);
        if token.kind == Kind::Word && word == Word::Snapshot {
            self.now.transaction = Some(Transaction::Begin { plain: false, snapshot: true });
        } else if let Some(Transaction::Begin { plain, .. }) = &mut self.now.transaction {
            *plain = false;
        }
    }

    fn start_what(&mut self, word: Word) {
        if word == Word::Transaction {
            self.now.mode = Mode::Begin;
            self.now.step = 2;
            self.now.transaction = Some(Transaction::Begin { plain: true, snapshot: false });
        } else if self.mysql && word == Word::Name {
            // START REPLICA, START SLAVE, START GROUP_REPLICATION.
            self.now.verb = Verb::Server;
            self.now.mode = Mode::Rest;
        } else {
            self.unrecognised();
        }
    }

    fn commit(&mut self, word: Word) {
        match word {
            Word::Work => {}
            Word::Transaction if !self.mysql => {}
            Word::And | Word::No => {}
            Word::Chain => {
                if let Some(Transaction::Commit { chain, .. }) = &mut self.now.transaction {
                    *chain = self.now.last.word != Word::No;
                }
            }
            Word::Release if self.mysql => {
                if let Some(Transaction::Commit { release, .. }) = &mut self.now.transaction {
                    *release = self.now.last.word != Word::No;
                }
            }
            Word::Prepared if !self.mysql && self.now.last.word == Word::Commit => {
                self.finish_two_phase();
                // Whatever that transaction has changed is there from now on, and it may be anybody's.
                self.class.ddl = true;
            }
            _ => self.not_control(),
        }
    }

    fn rollback(&mut self, word: Word) {
        match word {
            Word::Work => {}
            Word::Transaction if !self.mysql => {}
            Word::And | Word::No => {}
            Word::Chain => {
                if let Some(Transaction::Rollback { chain, .. }) = &mut self.now.transaction {
                    *chain = self.now.last.word != Word::No;
                }
            }
            Word::Release if self.mysql => {
                if let Some(Transaction::Rollback { release, .. }) = &mut self.now.transaction {
                    *release = self.now.last.word != Word::No;
                }
            }
            Word::To => {
                self.now.verb = Verb::RollbackTo;
                self.now.transaction = Some(Transaction::RollbackTo);
                self.now.mode = Mode::Name;
            }
            Word::Prepared if !self.mysql && self.now.last.word == Word::Rollback => self.finish_two_phase(),
            _ => self.not_control(),
        }
    }

    fn finish_two_phase(&mut self) {
        self.now.verb = Verb::TwoPhase;
        self.now.transaction = Some(Transaction::FinishTwoPhase);
        self.now.mode = Mode::Rest;
    }

    /// A word that does not belong to transaction control.
    fn not_control(&mut self) {
        self.now.transaction = None;
        self.uses(Uses::TRANSACTION);
        self.unrecognised();
    }

    fn name(&mut self, token: &Token<'_>, word: Word) {
        let may_say_savepoint = matches!(self.now.verb, Verb::Release | Verb::RollbackTo);
        if word == Word::Savepoint && self.now.step == 0 && may_say_savepoint {
            self.now.step = 1;
            return;
        }
        if self.now.verb == Verb::Use {
            self.now.step = self.now.step.saturating_add(1);
            // A schema has one part; anything more is nothing the scanner knows.
            if self.now.step > 1 {
                self.unrecognised();
                return;
            }
            self.keep_name(token);
            return;
        }
        self.keep_name(token);
        self.now.mode = Mode::Rest;
    }

    fn prepare(&mut self, token: &Token<'_>, word: Word) {
        let behind_transaction = self.now.step == 1;
        if behind_transaction && token.kind == Kind::Str {
            self.now.verb = Verb::TwoPhase;
            self.now.transaction = Some(Transaction::PrepareTwoPhase);
            self.now.mode = Mode::Rest;
            self.details().name = None;
            return;
        }
        if !behind_transaction {
            self.keep_name(token);
            if word == Word::Transaction && !self.mysql {
                // `PREPARE TRANSACTION 'id'`, or a statement of that name.
                self.now.step = 1;
                return;
            }
        }
        self.uses(Uses::SQL_PREPARE);
        self.pin(Pin::SqlPrepare);
        self.class.statement_names |= !self.mysql;
        // The list of types of `PREPARE name (int)` calls nothing.
        self.now.target = if behind_transaction { Target::Here } else { Target::Next };
        self.now.mode = Mode::Query;
    }

    fn execute(&mut self, token: &Token<'_>, word: Word) {
        if self.mysql {
            // What it runs was a string when it was prepared; nobody read it.
            self.pin(Pin::Unrecognised);
        }
        if !(self.mariadb && word == Word::Immediate) {
            self.keep_name(token);
        }
        self.now.target = Target::Next;
        self.now.mode = Mode::Rest;
    }

    fn deallocate(&mut self, token: &Token<'_>, word: Word) {
        if word == Word::Prepare && self.now.step == 0 {
            self.now.step = 1;
            return;
        }
        if word == Word::All && !self.mysql {
            self.class.clears.insert(Clears::DEALLOCATE_ALL);
            self.class.releases.insert(Pin::SqlPrepare);
        } else {
            self.keep_name(token);
        }
        self.now.mode = Mode::Rest;
    }

    fn discard(&mut self, word: Word) {
        match word {
            Word::All => {
                self.class.clears.insert(Clears::DISCARD_ALL);
                for pin in [
                    Pin::Setting,
                    Pin::TemporaryTable,
                    Pin::SessionLock,
                    Pin::Cursor,
                    Pin::Listen,
                    Pin::SqlPrepare,
                    Pin::LastResult,
                ] {
                    self.class.releases.insert(pin);
                }
                self.class.frees.insert(Locks::ADVISORY);
            }
            Word::Plans => self.class.clears.insert(Clears::DISCARD_PLANS),
            Word::Sequences => self.class.clears.insert(Clears::DISCARD_SEQUENCES),
            Word::Temp | Word::Temporary => {
                self.class.clears.insert(Clears::DISCARD_TEMP);
                self.class.releases.insert(Pin::TemporaryTable);
            }
            _ => return self.unrecognised(),
        }
        self.now.mode = Mode::Rest;
    }

    fn unlisten(&mut self, token: &Token<'_>) {
        if token.kind == Kind::Star {
            self.class.clears.insert(Clears::UNLISTEN_ALL);
            self.class.releases.insert(Pin::Listen);
        } else {
            self.keep_name(token);
        }
        self.now.mode = Mode::Rest;
    }

    fn close_cursor(&mut self, token: &Token<'_>, word: Word) {
        if word == Word::All {
            self.class.clears.insert(Clears::CLOSE_ALL);
            self.class.releases.insert(Pin::Cursor);
        } else {
            self.keep_name(token);
        }
        self.now.mode = Mode::Rest;
    }

    fn copy(&mut self, word: Word) {
        if self.now.depth == 0 && matches!(word, Word::Stdin | Word::Stdout) {
            match self.now.last.word {
                Word::From => self.uses(Uses::COPY_IN),
                Word::To => self.uses(Uses::COPY_OUT),
                _ => {}
            }
        }
    }

    fn declare(&mut self, token: &Token<'_>, word: Word) {
        if self.now.last.word == Word::Declare && self.now.step == 0 {
            self.now.step = 1;
            self.keep_name(token);
        }
        if word == Word::Hold && self.now.last.word == Word::With {
            self.uses(Uses::WITH_HOLD);
            self.pin(Pin::Cursor);
        }
    }

    fn create(&mut self, token: &Token<'_>, word: Word) {
        self.temporary_schema(token);
        if matches!(word, Word::Temp | Word::Temporary) && self.now.step == 0 {
            self.pin(Pin::TemporaryTable);
        }
        if self.mysql && self.now.step == OF_TABLE && word == Word::Select {
            self.forget_stored_calls();
            self.now.step = FILLED;
        }
        self.routine_or_not(token, word);
        if !self.mysql {
            self.look_for_kept_code(token, word);
        }
    }

    /// PostgreSQL: a temporary table may keep code, as any table does: in defaults other than literals, in
    /// checks.
    fn look_for_kept_code(&mut self, token: &Token<'_>, word: Word) {
        let in_table = matches!(self.now.step, OF_TABLE | AT_DEFAULT | AT_LITERAL);
        if !in_table || !self.class.pins.contains(Pin::TemporaryTable) {
            return;
        }
        let is = |what: &[&[u8]]| {
            token.kind == Kind::Word && what.iter().any(|what| token.text.eq_ignore_ascii_case(what))
        };
        self.now.step = match self.now.step {
            _ if word == Word::As && self.now.depth == 0 => OF_ROWS,
            AT_DEFAULT if matches!(token.kind, Kind::Number | Kind::Str) => AT_LITERAL,
            AT_DEFAULT if is(&[b"null", b"true", b"false", b"current_timestamp"]) => AT_LITERAL,
            AT_LITERAL if matches!(token.kind, Kind::Comma | Kind::Close) => OF_TABLE,
            AT_LITERAL if is(&[b"not", b"null", b"primary", b"unique"]) => OF_TABLE,
            OF_TABLE if is(&[b"default"]) => AT_DEFAULT,
            OF_TABLE if !is(&KEEPS_CODE) => OF_TABLE,
            _ => 1,
        };
    }

    /// PostgreSQL: what this statement makes has no code of its own.
    pub(super) fn makes_no_code(&self) -> bool {
        match self.now.verb {
            Verb::Create => matches!(self.now.step, OF_TABLE | OF_ROWS | OF_SEQUENCE),
            // A table of rows.
            Verb::Select | Verb::Explain => true,
            _ => false,
        }
    }

    /// PostgreSQL: what this statement defines has code, and may be temporary.
    pub(super) fn look_for_temporary_code(&mut self) {
        let keeps = matches!(self.now.verb, Verb::Create | Verb::Alter)
            && self.class.pins.contains(Pin::TemporaryTable)
            && self.now.mode != Mode::Routine
            && !self.makes_no_code();
        if keeps {
            self.uses(Uses::TEMPORARY_CODE);
        }
    }

    fn alter(&mut self, token: &Token<'_>, word: Word) {
        self.temporary_schema(token);
        // ALTER EVENT may give a new body.
        if self.mysql {
            self.routine_or_not(token, word);
        }
    }

    /// Looks at the words between CREATE and the kind of thing for one that has a body.
    fn routine_or_not(&mut self, token: &Token<'_>, word: Word) {
        if self.now.step != 0 || token.kind != Kind::Word {
            return;
        }
        let is_value = self.now.last.kind == Kind::Equals;
        let modifies = matches!(
            word,
            Word::Or
                | Word::Replace
                | Word::Temp
                | Word::Temporary
                | Word::Global
                | Word::Local
                | Word::Unlogged
                | Word::Definer
                | Word::Invoker
                | Word::Sql
                | Word::Security
                | Word::Algorithm
                | Word::Aggregate
        );
        if is_value || modifies {
            return;
        }
        self.now.step = match word {
            Word::Table => OF_TABLE,
            _ if !self.mysql && token.text.eq_ignore_ascii_case(b"sequence") => OF_SEQUENCE,
            _ => 1,
        };
        let has_body = match word {
            Word::Function | Word::Procedure => true,
            Word::Trigger | Word::Event | Word::Package => self.mysql,
            _ => false,
        };
        if has_body {
            self.now.mode = if word == Word::Event { Mode::Event } else { Mode::Routine };
            self.now.step = if word == Word::Event { FILLED } else { 1 };
        }
    }

    /// The schedule of an event ends where DO begins its body. Only what the body asks is stored.
    fn event(&mut self, token: &Token<'_>, word: Word) {
        if token.kind == Kind::Word && word == Word::Do && self.now.depth == 0 {
            let calls = self.class.details.as_deref().map_or(0, |details| details.calls.len());
            self.now.calls_before = u8::try_from(calls).unwrap_or(u8::MAX);
            self.now.step = 1;
            self.now.mode = Mode::Routine;
        }
    }

    fn drop_what(&mut self, word: Word) {
        if self.mysql && word == Word::Prepare {
            self.now.verb = Verb::Deallocate;
            self.class.ddl = false;
            self.uses(Uses::SQL_PREPARE);
            self.now.mode = Mode::Name;
        } else {
            self.now.mode = Mode::Rest;
        }
    }

    fn lock(&mut self, word: Word) {
        if self.mysql {
            match word {
                Word::Table | Word::Tables => {
                    self.takes(Locks::TABLES);
                    // It commits what is open.
                    self.uses(Uses::TRANSACTION);
                }
                Word::Instance => self.takes(Locks::INSTANCE),
                _ => return self.unrecognised(),
            }
        }
        self.now.mode = Mode::Rest;
    }

    fn unlock(&mut self, word: Word) {
        match word {
            Word::Table | Word::Tables => {
                self.class.frees.insert(Locks::TABLES);
                self.uses(Uses::TRANSACTION);
            }
            Word::Instance => self.class.frees.insert(Locks::INSTANCE),
            _ => return self.unrecognised(),
        }
        self.now.mode = Mode::Rest;
    }

    fn flush(&mut self, word: Word) {
        // WITH READ LOCK, FOR EXPORT; a table of such a name costs a pin.
        if matches!(word, Word::Read | Word::Export) {
            self.takes(Locks::TABLES);
        }
        // The session's counters begin anew: who asks for that wants to read them.
        if word == Word::Status {
            self.pin(Pin::Setting);
        }
        // All of the session are gone behind it; what they are is asked, or they stay where they are.
        if word == Word::UserVariables && self.mariadb {
            self.writes_variable();
        }
    }

    fn backup(&mut self, word: Word) {
        match word {
            Word::Stage => return,
            Word::End => self.class.frees.insert(Locks::BACKUP),
            Word::Unlock => self.class.frees.insert(Locks::BACKUP_LOCK),
            _ if self.now.last.word == Word::Stage => self.takes(Locks::BACKUP),
            _ => self.takes(Locks::BACKUP_LOCK),
        }
        self.now.mode = Mode::Rest;
    }

    fn handler(&mut self, word: Word) {
        self.uses(Uses::CURSOR);
        if word == Word::Open {
            self.pin(Pin::Cursor);
        }
    }

    fn xa(&mut self, word: Word) {
        match word {
            Word::Commit | Word::Rollback => self.class.frees.insert(Locks::XA),
            Word::Recover => self.now.transaction = None,
            Word::Start | Word::Begin | Word::End | Word::Prepare => self.takes(Locks::XA),
            _ => return self.unrecognised(),
        }
        self.now.mode = Mode::Rest;
    }

    fn load(&mut self, word: Word) {
        if !self.mysql {
            self.now.mode = Mode::Rest;
            return;
        }
        if self.now.step == 0 {
            self.now.step = 1;
            match word {
                Word::Data | Word::Xml => self.uses(Uses::LOAD),
                Word::Index => {}
                _ => self.unrecognised(),
            }
            return;
        }
        match word {
            Word::Local if self.now.step == 1 => self.uses(Uses::LOAD_LOCAL),
            Word::Infile => self.now.step = 2,
            Word::Set => self.now.step = LOAD_SETS,
            _ => {}
        }
    }

    fn kill(&mut self, token: &Token<'_>, word: Word) {
        // Steps: 0 at the start, 1 after HARD or SOFT, 2 after CONNECTION, 3 after QUERY, 4 after the
        // number, 5 not understood, 6 after QUERY ID, 7 after its number, 8 after a parameter.
        let step = self.now.step;
        self.now.step = match (step, word, token.kind) {
            (0, Word::Hard | Word::Soft, _) if self.mariadb => 1,
            (0 | 1, Word::Connection, _) => 2,
            (0 | 1, Word::Query, _) => 3,
            (0..=3, _, Kind::Number) => 4,
            (0..=3, _, Kind::Param) => 8,
            (3, Word::Id, _) if self.mariadb => 6,
            (6, _, Kind::Number) => 7,
            _ => 5,
        };
        let id = std::str::from_utf8(token.text).ok().and_then(|text| text.parse().ok());
        if self.details().kills > 1 {
            return;
        }
        self.details().kill = Some(match (self.now.step, id) {
            (4, Some(id)) => Kill::Id { id, query_only: step == 3 },
            (7, Some(_)) => Kill::QueryId,
            (8, _) => Kill::Parameter { query_only: step == 3 },
            _ => Kill::Other,
        });
    }

    fn show(&mut self, word: Word) {
        if self.mysql && matches!(word, Word::Warnings | Word::Errors) {
            self.uses(Uses::WARNINGS);
        }
    }

    fn explain(&mut self, token: &Token<'_>, word: Word) {
        match word {
            // EXPLAIN ANALYZE runs what it explains.
            Word::Temp | Word::Temporary if self.is_temporary_modifier() => self.pin(Pin::TemporaryTable),
            Word::Into => {
                self.now.into = true;
                let of_insert = matches!(self.now.last.word, Word::Insert | Word::Merge);
                self.class.ddl |= self.explains() && !of_insert;
                if self.mysql {
                    // No function is called by the name of a table in front of its columns.
                    self.now.target = Target::Next;
                }
            }
            Word::Create => self.class.ddl |= self.explains(),
            Word::Connection if self.mysql && self.now.last.word == Word::For => {
                self.uses(Uses::EXPLAIN_CONNECTION);
            }
            Word::Name => self.temporary_schema(token),
            _ => {}
        }
        if self.now.verb == Verb::Maintain && self.now.tokens == 2 && word == Word::Table {
            self.now.mode = Mode::Rest;
        }
    }

    /// PostgreSQL's EXPLAIN: with ANALYZE it makes the table that it explains the making of.
    fn explains(&self) -> bool {
        !self.mysql && self.now.verb == Verb::Explain
    }
}

/// A string that names such a schema, or may: it is cut or has escapes.
pub(super) fn may_say_temporary(token: &Token<'_>) -> bool {
    token.is_cut() || token.text.contains(&b'\\') || token.text.windows(7).any(is_temporary_schema)
}

impl Statement {
    /// VACUUM, ANALYZE, CLUSTER and REINDEX of what they name, and not of a whole schema or database.
    pub(super) fn maintains_one(&self) -> bool {
        self.step == ONE_RELATION
    }
}

/// `pg_temp`, `pg_temp_3`.
pub(super) fn is_temporary_schema(name: &[u8]) -> bool {
    name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case(b"pg_temp"))
}
