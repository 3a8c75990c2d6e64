//! The scanner's result for a text.
//!
//! Everything here errs on the safe side: `shareable` and a release are set only when certain, a pin when in
//! doubt.

use crate::catalogue::UnknownCode;
use weir_wire::Pins;
use weir_wire::limits::TEXT_SETTINGS;

/// Bytes `start..end` of the scanned text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes of `text` it stands for, or nothing if `text` is not the scanned text.
    pub fn of(self, text: &[u8]) -> Option<&[u8]> {
        text.get(self.start as usize..self.end as usize)
    }
}

macro_rules! bit_set {
    ($(#[doc = $set_doc:literal])* $set:ident($int:ty) { $($(#[doc = $doc:literal])* $name:ident,)* }) => {
        $(#[doc = $set_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $set($int);
        impl $set {
            /// Nothing.
            pub const NONE: $set = $set(0);
            /// Adds everything of `other`.
            #[inline]
            pub fn insert(&mut self, other: $set) { self.0 |= other.0; }
            /// Takes everything of `other` away.
            #[inline]
            pub fn remove(&mut self, other: $set) { self.0 &= !other.0; }
            /// Has all of `other`.
            #[inline]
            pub fn contains(self, other: $set) -> bool { self.0 & other.0 == other.0 }
            /// Has something of `other`.
            #[inline]
            pub fn intersects(self, other: $set) -> bool { self.0 & other.0 != 0 }
            /// Has nothing.
            #[inline]
            pub fn is_empty(self) -> bool { self.0 == 0 }
        }
        // Their order numbers them; more of them than the integer has bits do not compile.
        const _: () = {
            #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "the names of the constants")]
            #[derive(Clone, Copy)]
            enum Bit { $($name,)* }
            impl $set {
                $($(#[doc = $doc])* pub const $name: $set = $set(1 << Bit::$name as u32);)*
            }
        };
        impl std::ops::BitOr for $set {
            type Output = $set;
            fn bitor(self, other: $set) -> $set { $set(self.0 | other.0) }
        }
    };
}

bit_set! {
    /// What a text makes use of, in any of its statements.
    Uses(u64) {
        /// Any transaction control: the boundary may move inside this text.
        TRANSACTION,
        /// `currval()`.
        CURRVAL,
        /// `lastval()`.
        LASTVAL,
        /// `nextval()`: a later `currval` or `lastval` on the same server would see it. No pin is stated,
        /// most clients use the value returned.
        NEXTVAL,
        /// `setval()`.
        SETVAL,
        /// `CONNECTION_ID()`, `@@pseudo_thread_id`, `pg_backend_pid()`.
        CONNECTION_ID,
        /// Reads `LAST_INSERT_ID()`, `@@identity`, `@@last_insert_id`.
        LAST_INSERT_ID,
        /// `LAST_INSERT_ID(expr)`: sets it. After INSERT, REPLACE and UPDATE the OK packet says to what;
        /// elsewhere the pin `LastResult` goes with it.
        LAST_INSERT_ID_SET,
        /// `FOUND_ROWS()`.
        FOUND_ROWS,
        /// `ROW_COUNT()`.
        ROW_COUNT,
        /// `SHOW WARNINGS`, `SHOW ERRORS`, `@@warning_count`, `@@error_count`.
        WARNINGS,
        /// `GET DIAGNOSTICS`.
        DIAGNOSTICS,
        /// `SQL_CALC_FOUND_ROWS`: `FOUND_ROWS()` is about to be asked.
        CALC_FOUND_ROWS,
        /// Reads a MySQL user variable.
        USER_VARIABLE_READ,
        /// Writes a MySQL user variable: `SET @a`, `@a :=`, `INTO @a`, an argument of CALL.
        USER_VARIABLE_WRITE,
        /// Reads a MySQL system variable, `@@name`.
        SYSTEM_VARIABLE,
        /// `LOAD DATA LOCAL INFILE`, `LOAD XML LOCAL INFILE`: the server will ask the client for a file.
        LOAD_LOCAL,
        /// `/*! */` or `/*M! */` code.
        EXECUTABLE_COMMENT,
        /// `DO $$...$$`, `CALL`: code the scanner does not see runs on the server.
        BLOCK,
        /// `COPY ... FROM STDIN`.
        COPY_IN,
        /// `COPY ... TO STDOUT`.
        COPY_OUT,
        /// DECLARE, FETCH, MOVE, CLOSE, HANDLER.
        CURSOR,
        /// DECLARE ... WITH HOLD.
        WITH_HOLD,
        /// A function that is not in the list of harmless built-in functions, or one of a named schema.
        UNKNOWN_FUNCTION,
        /// `EXPLAIN FOR CONNECTION n`: n is a number of Weir's.
        EXPLAIN_CONNECTION,
        /// `SHOW PROCESSLIST` and what else shows numbers of connections (`processlist`, `pg_stat_activity`,
        /// `innodb_trx`, `sys`...).
        PROCESS_LIST,
        /// More calls or assignments were met than are listed.
        OVERFLOW,
        /// A sleep (`pg_sleep`, `SLEEP`, `BENCHMARK`): slow on purpose.
        SLEEP,
        /// SQL-level PREPARE, EXECUTE or DEALLOCATE.
        SQL_PREPARE,
        /// `FOR UPDATE`, `FOR SHARE`, `LOCK IN SHARE MODE`.
        ROW_LOCK,
        /// SET ROLE, SET SESSION AUTHORIZATION, `setseed()`, or something that may do the same: the pin
        /// `Setting` that goes with it outlives RESET ALL.
        ROLE,
        /// `WITH x AS (INSERT ...)`: it writes though the verb may be SELECT.
        WITH_WRITES,
        /// `setseed()`, `SET seed`: nothing takes it back, not even DISCARD ALL. Comes with the pin
        /// `Setting`.
        SEED,
        /// `set_config` that may put `pg_temp` into the search path: tables made behind it may be temporary.
        TEMPORARY_PATH,
        /// PostgreSQL: something that may be temporary is given code: a default, a view, a trigger.
        TEMPORARY_CODE,
        /// Reads of `pg_settings` where a setting comes from or what RESET would make of it.
        SETTING_SOURCE,
        /// MySQL: it may ask which trackers of the session are on: `SHOW VARIABLES`, `@@session_track_schema`
        /// and their like. Setting them is meant, too.
        TRACKERS,
        /// MySQL's LOAD DATA and LOAD XML: the OK does not tell the id that it makes.
        LOAD,
        /// MySQL: code that it runs reads `ROW_COUNT()`, perhaps before it runs a statement of its own.
        CODE_ROW_COUNT,
        /// The same of `FOUND_ROWS()`.
        CODE_FOUND_ROWS,
        /// The same of [`Uses::TRACKERS`].
        CODE_TRACKERS,
        /// MySQL: code that it runs asks for warnings or diagnostics, perhaps before it runs a statement of
        /// its own.
        CODE_WARNINGS,
        /// MySQL: code that it runs has the name of what GET DIAGNOSTICS says of the origin of a condition.
        CODE_STATES,
        /// MySQL: code that it runs may change `FOUND_ROWS()`: it has SELECT somewhere, DO, UPDATE, or runs
        /// what is not read.
        CODE_SELECTS,
        /// MySQL: code that it runs has `CONNECTION_ID()`, which is the server's number there.
        CODE_CONNECTION_ID,
        /// MySQL: it is SIGNAL or RESIGNAL, or code that it runs has one of these.
        RAISES,
        /// A function of the database's own is called, of which the catalogue tells what it does.
        USER_FUNCTION,
        /// MySQL: a query has another one in parentheses.
        SUBQUERY,
        /// PostgreSQL: code that it runs asks `currval()` or `lastval()`.
        CODE_ASKS_SEQUENCE,
        /// PostgreSQL: code that it runs writes, or draws from a sequence; or a column's default may draw.
        CODE_WRITES,
        /// PostgreSQL: maintenance, its own or of code that it runs: event triggers hear of some.
        MAINTAINS,
        /// PostgreSQL: code that it runs has settings of its own that a plan may hold something of.
        CODE_READS_OTHERWISE,
        /// PostgreSQL: code that it runs, and that is said to have the same value for ever, asks about the
        /// session. The planner writes the first answer into the plan.
        CODE_IS_PERSONAL,
        /// PostgreSQL: code that any literal may run, to be read at all, leaves something.
        CODE_OF_LITERALS,
        /// PostgreSQL: what it leaves may be more than DISCARD ALL takes away: variables of a compiled
        /// library or of another language, connections, what the process itself does for others.
        OUTLIVES_RESET,
    }
}

bit_set! {
    /// Kinds of lock that outlive a transaction. [`weir_wire::Pin::SessionLock`] stands for all of them;
    /// it is gone when all that were taken are freed.
    Locks(u32) {
        /// `LOCK TABLES`, `FLUSH TABLES ... FOR EXPORT`, `FLUSH TABLES WITH READ LOCK`.
        TABLES,
        /// `LOCK INSTANCE FOR BACKUP`.
        INSTANCE,
        /// `GET_LOCK()`.
        NAMED,
        /// `BACKUP STAGE` (MariaDB).
        BACKUP,
        /// `BACKUP LOCK` (MariaDB), which BACKUP UNLOCK frees, and no BACKUP STAGE END.
        BACKUP_LOCK,
        /// `pg_advisory_lock()` and its session-wide kin.
        ADVISORY,
        /// An XA transaction between START and COMMIT or ROLLBACK.
        XA,
        /// A backup of PostgreSQL begun by `pg_backup_start()`.
        PG_BACKUP,
    }
}

bit_set! {
    /// Statements that clear much at once.
    Clears(u32) {
        /// `DISCARD ALL`.
        DISCARD_ALL,
        /// `RESET ALL`. Releases the pin `Setting`, unless it comes with [`Uses::ROLE`]. States no pin: who
        /// carries settings must know that they are gone.
        RESET_ALL,
        /// `UNLISTEN *`.
        UNLISTEN_ALL,
        /// `DEALLOCATE ALL`. Deallocates statements prepared by the protocol, too.
        DEALLOCATE_ALL,
        /// `CLOSE ALL`.
        CLOSE_ALL,
        /// `DISCARD TEMP`.
        DISCARD_TEMP,
        /// `DISCARD PLANS`.
        DISCARD_PLANS,
        /// `DISCARD SEQUENCES`.
        DISCARD_SEQUENCES,
    }
}

/// The first word of a statement, or of the statement behind WITH.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Verb {
    /// There is no statement.
    #[default]
    Empty,
    /// A word the scanner does not know, or a known one in a form it does not know.
    Unrecognised,
    /// ALTER.
    Alter,
    /// ANALYZE, CHECK, CHECKSUM, OPTIMIZE, REPAIR, VACUUM, REINDEX, CLUSTER, CHECKPOINT, REFRESH, CACHE
    /// and PURGE: work on tables or the server that leaves nothing in the session.
    Maintain,
    /// BACKUP (MariaDB).
    Backup,
    /// BEGIN, START TRANSACTION.
    Begin,
    /// CALL.
    Call,
    /// CLOSE.
    Close,
    /// COMMIT, END.
    Commit,
    /// COPY.
    Copy,
    /// CREATE.
    Create,
    /// DEALLOCATE, and MySQL's DROP PREPARE.
    Deallocate,
    /// DECLARE.
    Declare,
    /// DELETE.
    Delete,
    /// DISCARD.
    Discard,
    /// DO.
    Do,
    /// DROP.
    Drop,
    /// EXECUTE.
    Execute,
    /// EXPLAIN, DESCRIBE, DESC.
    Explain,
    /// FETCH, MOVE.
    Fetch,
    /// FLUSH.
    Flush,
    /// GET DIAGNOSTICS.
    Get,
    /// GRANT, REVOKE, COMMENT, SECURITY LABEL, REASSIGN, IMPORT FOREIGN SCHEMA, RENAME, INSTALL,
    /// UNINSTALL: other changes of the catalogue.
    Catalogue,
    /// HANDLER.
    Handler,
    /// INSERT.
    Insert,
    /// KILL.
    Kill,
    /// LISTEN.
    Listen,
    /// LOAD.
    Load,
    /// LOCK.
    Lock,
    /// MERGE.
    Merge,
    /// NOTIFY.
    Notify,
    /// PREPARE, without PREPARE TRANSACTION.
    Prepare,
    /// PREPARE TRANSACTION, COMMIT PREPARED, ROLLBACK PREPARED.
    TwoPhase,
    /// RELEASE SAVEPOINT.
    Release,
    /// REPLACE.
    Replace,
    /// PostgreSQL's RESET.
    Reset,
    /// ROLLBACK, ABORT, without ROLLBACK TO.
    Rollback,
    /// ROLLBACK TO SAVEPOINT.
    RollbackTo,
    /// SAVEPOINT.
    Savepoint,
    /// SELECT, TABLE.
    Select,
    /// CHANGE, CLONE, BINLOG, RESET MASTER and their like, START/STOP REPLICA, SHUTDOWN, RESTART,
    /// SIGNAL, HELP: administration of a MySQL server that leaves nothing in the session.
    Server,
    /// SET.
    Set,
    /// SHOW.
    Show,
    /// TRUNCATE.
    Truncate,
    /// UNLISTEN.
    Unlisten,
    /// UNLOCK.
    Unlock,
    /// UPDATE.
    Update,
    /// USE.
    Use,
    /// VALUES.
    Values,
    /// XA.
    Xa,
}

/// What a statement does to the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transaction {
    /// BEGIN, START TRANSACTION.
    Begin {
        /// Nothing but BEGIN, BEGIN WORK, BEGIN TRANSACTION or START TRANSACTION was said.
        plain: bool,
        /// START TRANSACTION WITH CONSISTENT SNAPSHOT: the moment matters, it cannot be held back.
        snapshot: bool,
    },
    /// COMMIT, END.
    Commit {
        /// AND CHAIN: a new transaction is open behind it. MySQL's `completion_type` can do the same unsaid.
        chain: bool,
        /// RELEASE: the server closes the connection behind it.
        release: bool,
    },
    /// ROLLBACK, ABORT.
    Rollback {
        /// AND CHAIN.
        chain: bool,
        /// RELEASE.
        release: bool,
    },
    /// SAVEPOINT.
    Savepoint,
    /// ROLLBACK TO SAVEPOINT.
    RollbackTo,
    /// RELEASE SAVEPOINT.
    Release,
    /// PREPARE TRANSACTION: ends the transaction as COMMIT does.
    PrepareTwoPhase,
    /// COMMIT PREPARED, ROLLBACK PREPARED.
    FinishTwoPhase,
    /// SET TRANSACTION without SESSION or GLOBAL. PostgreSQL: about the transaction that is open. MySQL:
    /// about the next one, so it also states the pin `Setting`.
    SetTransaction,
    /// Any XA statement.
    Xa,
}

/// How far an assignment reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The session.
    Session,
    /// The transaction (PostgreSQL's SET LOCAL).
    Transaction,
    /// The server, not this session (MySQL's GLOBAL, PERSIST, PERSIST_ONLY).
    Global,
}

/// One name that SET or RESET changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The name in lower case, with dots if it has several parts and without quotes. Forms with a syntax of
    /// their own are given the name of the setting: SET NAMES is `client_encoding` (PostgreSQL) or `names`
    /// (MySQL), SET CHARACTER SET is `character set`, SET TIME ZONE is `timezone`, SET SCHEMA is
    /// `search_path`, SET ROLE is `role`, SET SESSION AUTHORIZATION is `session_authorization`,
    /// SET SESSION CHARACTERISTICS and MySQL's SET SESSION TRANSACTION are `transaction characteristics`,
    /// SET TRANSACTION SNAPSHOT does not occur.
    pub name: String,
    /// How far it reaches.
    pub scope: Scope,
    /// The text of the value, without blanks around it. Empty for RESET.
    pub value: Span,
    /// The value is made of literals and plain words: its text means the same on any server. False for
    /// MySQL values with functions, variables or subqueries.
    pub constant: bool,
    /// The value says DEFAULT, or the statement is RESET.
    pub default: bool,
    /// The value is 0, 1, ON, OFF, TRUE or FALSE.
    pub toggle: Option<bool>,
}

/// What a single SET or RESET statement changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetTarget {
    /// System settings, in order. At most [`MAX_ASSIGNMENTS`].
    pub assignments: Vec<Assignment>,
    /// Names of user variables that are set, in lower case, without `@` and quotes.
    pub user_variables: Vec<String>,
    /// All of the statement is in the lists. When false, something was not understood and a pin says so.
    pub complete: bool,
}

impl SetTarget {
    /// `SET autocommit = 0|1|ON|OFF` of this session and nothing else.
    pub fn autocommit(&self) -> Option<bool> {
        match self.assignments.as_slice() {
            [only] if self.complete && self.user_variables.is_empty() => {
                (only.name == "autocommit" && only.scope == Scope::Session).then_some(only.toggle)?
            }
            _ => None,
        }
    }
}

/// Bytes of a name that are kept; a longer one counts as unknown.
pub const MAX_NAME_BYTES: usize = 64;

/// What is asked about the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// `CONNECTION_ID()`.
    ConnectionId,
    /// `LAST_INSERT_ID()` without argument.
    LastInsertId,
    /// `ROW_COUNT()`.
    RowCount,
    /// `FOUND_ROWS()`.
    FoundRows,
    /// `@@pseudo_thread_id`, with or without `session.`.
    PseudoThreadId,
    /// `@@identity`, `@@last_insert_id`.
    Identity,
    /// `pg_backend_pid()`.
    BackendPid,
}

/// A place in the text that asks about the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// What is asked.
    pub kind: CallKind,
    /// The whole call, with its parentheses.
    pub span: Span,
    /// It is a whole item of the outermost select list without an alias: its text is the column's name, which
    /// a rewriter keeps by adding one.
    pub bare: bool,
}

/// KILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kill {
    /// `KILL [HARD|SOFT] [CONNECTION|QUERY] id`.
    Id {
        /// As written.
        id: u64,
        /// QUERY.
        query_only: bool,
    },
    /// `KILL [CONNECTION|QUERY] ?`, to be prepared.
    Parameter {
        /// QUERY.
        query_only: bool,
    },
    /// `KILL [HARD|SOFT] QUERY ID n` (MariaDB): a number of the server's that stands for one request only.
    QueryId,
    /// Anything else: an expression, `KILL USER name`.
    Other,
}

/// Parts of a [`Class`] that few texts have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Details {
    pub(crate) set: Option<SetTarget>,
    pub(crate) heads: Vec<SetTarget>,
    pub(crate) pins_behind: Pins,
    pub(crate) calls: Vec<Call>,
    pub(crate) kill: Option<Kill>,
    /// Where the first KILL begins.
    pub(crate) kill_start: u32,
    /// Where the semicolon behind it stands; 0: it has none.
    pub(crate) kill_end: u32,
    /// Statements in front of it.
    pub(crate) before_kill: u32,
    /// How many there are, up to 255.
    pub(crate) kills: u8,
    pub(crate) name: Option<String>,
    pub(crate) touched: Option<Box<Touched>>,
}

/// Names of settings, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettingNames {
    names: Vec<Box<str>>,
    /// There may be others.
    any: bool,
}

impl SettingNames {
    /// One more.
    pub fn add(&mut self, name: &str) {
        if self.contains(name) {
            return;
        }
        if self.names.len() >= TEXT_SETTINGS || name.len() > MAX_NAME_BYTES * 2 {
            return self.add_any();
        }
        self.names.push(name.to_ascii_lowercase().into());
    }

    /// Others of which the names are not known.
    pub fn add_any(&mut self) {
        self.any = true;
    }

    /// All of `other` as well.
    pub fn add_all(&mut self, other: &SettingNames) {
        self.any |= other.any;
        other.iter().for_each(|name| self.add(name));
    }

    /// It is among those that are known by name.
    pub fn contains(&self, name: &str) -> bool {
        self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// It may be among them.
    pub fn may_contain(&self, name: &str) -> bool {
        self.any || self.contains(name)
    }

    /// There may be others than those known by name.
    pub fn is_any(&self) -> bool {
        self.any
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && !self.any
    }

    /// Those known by name.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }
}

/// Settings of PostgreSQL that a text, or code that it runs, does more with than to set them, and user
/// variables of MySQL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Touched {
    /// They may go back to what they are in a new session, and something behind that may see it.
    pub resets: SettingNames,
    /// Placeholders (names with a dot) that the server knows from now on, whatever becomes of their values.
    pub tells: SettingNames,
    /// Placeholders that it may ask for.
    pub reads: SettingNames,
    /// They may have another value in the session afterwards. There may be others if it pins for its settings
    /// and none is listed.
    pub sets: SettingNames,
    /// They are given a value that is named, in a statement that only sets or in `set_config`.
    pub gives: SettingNames,
    /// What its last SET, RESET or `set_config` of `role` or `session_authorization` did for the session:
    /// true if it went back to what they were at the start. None: there is none, or its value is not a
    /// literal.
    pub who_is_reset: Option<bool>,
    /// User variables of MySQL that it may read or set. See [`Uses::USER_VARIABLE_WRITE`].
    pub variables: SettingNames,
}

impl Touched {
    /// It may change, be it for a moment, what decides so.
    pub fn changes(&self, decides: fn(&str) -> bool) -> bool {
        let all = [&self.resets, &self.sets, &self.gives];
        all.iter().any(|names| names.is_any()) || self.changes_by_name(decides)
    }

    /// It changes one that it names.
    pub fn changes_by_name(&self, decides: fn(&str) -> bool) -> bool {
        [&self.resets, &self.sets, &self.gives].iter().any(|names| names.iter().any(decides))
    }

    /// Nothing of all that.
    pub fn is_empty(&self) -> bool {
        self.resets.is_empty()
            && self.tells.is_empty()
            && self.reads.is_empty()
            && self.sets.is_empty()
            && self.gives.is_empty()
            && self.variables.is_empty()
    }

    /// All of `other` as well.
    pub fn add_all(&mut self, other: &Touched) {
        self.resets.add_all(&other.resets);
        self.tells.add_all(&other.tells);
        self.reads.add_all(&other.reads);
        self.sets.add_all(&other.sets);
        self.gives.add_all(&other.gives);
        self.who_is_reset = other.who_is_reset.or(self.who_is_reset);
        self.variables.add_all(&other.variables);
    }
}

/// What the scanner says about a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Class {
    /// Statements in the text, empty ones not counted. A text of blanks, comments and semicolons has 0. It is
    /// not the number of replies: MySQL answers once more for a comment behind the last semicolon.
    pub statements: u32,
    /// The verb of the first statement.
    pub verb: Verb,
    /// Why the server must stay with the client if the text succeeds, in full or in part. `Setting` is stated
    /// for every SET, RESET name and USE of the session; who follows all names of [`Class::set`] may take it
    /// away.
    pub pins: Pins,
    /// Reasons that are certainly gone once the text has succeeded. Apply them before `pins`. See also
    /// `clears` and `frees`.
    pub releases: Pins,
    /// Statements in it that clear much at once.
    pub clears: Clears,
    /// Session locks it takes.
    pub takes: Locks,
    /// Session locks it certainly frees, all of their kind.
    pub frees: Locks,
    /// What it makes use of.
    pub uses: Uses,
    /// What the first statement that has to do with transactions does, or one with RELEASE. See
    /// [`Uses::TRANSACTION`].
    pub transaction: Option<Transaction>,
    /// It provably leaves no trace on its server and asks nothing about earlier requests: one SELECT, VALUES,
    /// INSERT, UPDATE, DELETE, MERGE or REPLACE, and only harmless built-in functions. What triggers, views,
    /// operators and casts of the database do is not seen.
    pub shareable: bool,
    /// Two who run it at the same moment, each in a session of its own with the same settings, may get
    /// different answers, by its own words or by what they stand for: random values, the time, what the
    /// session is or has done. In doubt it is set.
    pub varies: bool,
    /// It changes the catalogue (in MySQL: it commits implicitly).
    pub ddl: bool,
    /// PostgreSQL: what its last statement makes, if anything, has no code of its own: a sequence, or a table
    /// without checks and defaults but literals.
    pub makes_no_code: bool,
    /// PostgreSQL: its statements only define, begin or end transactions, or set. Whatever code they make,
    /// none of them runs it.
    pub only_defines: bool,
    /// PostgreSQL: which statements are prepared in its session, under which names and with which texts, may
    /// bear on what it does, or it may change that. A single EXECUTE or DEALLOCATE is not meant:
    /// [`Class::name`] says of what.
    pub statement_names: bool,
    /// All its words were looked up in the catalogue of its database, so what is said here holds for user
    /// code, too.
    pub proven: bool,
    /// The same, but code may be changing now: what runs is reckoned with, and to be sure of it, what it runs
    /// on is reset before another client gets it.
    pub foreseen: bool,
    /// By the catalogue it runs code that users have made, whatever that does.
    pub user_code: bool,
    /// Not `Pin`: it runs code that nobody can read, and the operator said that this is no reason for a pin.
    pub unknown_code: UnknownCode,
    /// What user code that it runs may leave, by the catalogue. It is part of `pins`.
    pub code: Pins,
    /// The text ends inside a string, a comment or a body, or has bytes the lexer cannot be sure of. The
    /// other fields may be wrong; `pins` has `Unrecognised`.
    pub doubtful: bool,
    /// A SELECT in it has LIMIT with an offset, or LIMIT together with UNION, or it fills a table:
    /// FOUND_ROWS() is not the number of the rows that the client gets.
    pub skips_rows: bool,
    /// Some statement may have settings for itself alone: MariaDB's SET STATEMENT ... FOR, hints of the
    /// optimiser.
    pub lends_settings: bool,
    /// ... and one of these leaves something behind, with the pin `Setting`: MySQL's `timestamp`, MariaDB's
    /// `optimizer_trace`. Preparing it is enough.
    pub lent_stays: bool,
    /// Where the first statement ends; 0 when the text is at its end without a semicolon.
    pub first_end: u32,
    /// Hash of the normalised text, if asked for; else 0.
    pub fingerprint: u64,
    pub(crate) details: Option<Box<Details>>,
}

impl Class {
    /// It is shareable and only reads: run twice, it costs twice and changes nothing else.
    pub fn only_reads(&self) -> bool {
        let does_more = Uses::ROW_LOCK | Uses::WITH_WRITES | Uses::SLEEP | Uses::UNKNOWN_FUNCTION;
        let reads = matches!(self.verb, Verb::Select | Verb::Values);
        self.shareable && reads && !self.ddl && !self.uses.intersects(does_more)
    }

    /// It only reads, and whoever asks it in a session with the same settings before it begins to run may be
    /// given the same answer.
    pub fn is_alike(&self) -> bool {
        let mut uses = self.uses;
        // A view selects, which matters to what MySQL remembers of it: that wing sees to it.
        uses.remove(Uses::SUBQUERY | Uses::USER_FUNCTION | Uses::CODE_SELECTS);
        self.only_reads() && self.proven && !self.varies && !self.lends_settings && uses.is_empty()
    }

    /// Other numbers in the text would make it nothing else: it is one statement that reads or writes rows,
    /// of which nothing is said by where it stands in the text.
    pub fn is_of_any_numbers(&self) -> bool {
        matches!(self.verb, Verb::Select | Verb::Insert | Verb::Update | Verb::Delete)
            && self.statements == 1
            && self.first_end == 0
            && self.details.is_none()
            && self.proven
            && !self.ddl
            && !self.doubtful
            && self.pins.is_empty()
    }

    /// What SET or RESET changes, if that is the only statement.
    pub fn set(&self) -> Option<&SetTarget> {
        self.details.as_deref()?.set.as_ref()
    }

    /// MySQL: what the SETs change with which a text of several statements begins, up to the first that is
    /// not understood. At most [`weir_wire::limits::TEXT_HEADS`].
    pub fn heads(&self) -> &[SetTarget] {
        self.details.as_deref().map_or(&[], |details| &details.heads)
    }

    /// The part of `pins` that is stated by what stands behind `heads`; all of it where there are none.
    pub fn pins_behind(&self) -> Pins {
        match self.details.as_deref() {
            Some(details) if !details.heads.is_empty() => details.pins_behind,
            Some(_) | None => self.pins,
        }
    }

    /// Places that ask about the session, in order. At most [`weir_wire::limits::TEXT_CALLS`].
    pub fn calls(&self) -> &[Call] {
        self.details.as_deref().map_or(&[], |details| &details.calls)
    }

    /// The first KILL in it.
    pub fn kill(&self) -> Option<Kill> {
        self.details.as_deref()?.kill
    }

    /// Statements in front of it.
    pub fn before_kill(&self) -> u32 {
        self.details.as_deref().map_or(0, |details| details.before_kill)
    }

    /// Where the semicolon behind it stands; 0: it has none.
    pub fn kill_end(&self) -> u32 {
        self.details.as_deref().map_or(0, |details| details.kill_end)
    }

    /// Where the KILL of [`Class::kill`] begins.
    pub fn kill_start(&self) -> u32 {
        self.details.as_deref().map_or(0, |details| details.kill_start)
    }

    /// The name of the thing spoken of, if there is only one statement and the name has no more than
    /// [`MAX_NAME_BYTES`]: of PREPARE, EXECUTE and DEALLOCATE the statement, of LISTEN, UNLISTEN and
    /// NOTIFY the channel, of USE the schema, of SAVEPOINT, RELEASE and ROLLBACK TO the savepoint, of
    /// DECLARE and CLOSE the cursor. Without quotes; in lower case if PostgreSQL would read it so.
    pub fn name(&self) -> Option<&str> {
        self.details.as_deref()?.name.as_deref()
    }

    /// MySQL: the user variables that it, or code that it runs, may read or set.
    pub fn user_variables(&self) -> Option<&SettingNames> {
        self.touched().map(|touched| &touched.variables).filter(|names| !names.is_empty())
    }

    /// What it does with settings of PostgreSQL beyond setting them, if anything.
    pub fn touched(&self) -> Option<&Touched> {
        self.details.as_deref()?.touched.as_deref()
    }

    /// The schema of a single `USE schema`.
    pub fn use_schema(&self) -> Option<&str> {
        if self.verb == Verb::Use { self.name() } else { None }
    }
}
