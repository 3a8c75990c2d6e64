//! The part of a session that moves with its client from server to server: default schema, character set,
//! multi-statements, and the settings of [`Slot`].
//!
//! Owns: the state of a client and of a server, reading SET into it, and writing the difference as commands.
//! Must not know: queues, replies, prepared statements.
//!
//! Invariants: only values that a server has accepted are kept, and only those whose text means the same
//! everywhere (literals of plain ASCII); everything else that SET can do is a pin, named by the lexer.
//!
//! Found on MariaDB 10.11.19 and MySQL 9.7.4, and relied on here:
//! - The tracker does not report `SET NAMES x COLLATE y` as `collation_connection`, so Weir keeps what the
//!   client sent and not what the tracker reports.
//! - `SET foreign_key_checks = DEFAULT` on MySQL keeps the value. DEFAULT is never kept.
//! - A login with collation 45 also gives text columns the number 45. On MySQL `SET character_set_results =
//!   45` does the same, while `= utf8mb4` gives the default collation's number, 255. MariaDB accepts numbers
//!   of collations only for `collation_connection`; there `SET NAMES x COLLATE y` does it, which needs the
//!   names.
//! - A login with the number of a character set's compiled default (45, 33, 8...) gets on MariaDB 11.8 what
//!   `character_set_collations` names for it (utf8mb4_uca1400_ai_ci), as `SET NAMES x` does and `COLLATE y`
//!   does not.
//! - A number that a server does not support is error 1115 or 1273, while a login with it silently gets the
//!   server's default.
//! - COM_RESET_CONNECTION: MariaDB returns to the charset of the login, MySQL to the server's default
//!   (section 2.6 of the field notes is right); both keep the schema; the trackers return to their defaults.
//! - No command brings a session back to "no schema"; COM_CHANGE_USER does.

mod changes;

pub(crate) use self::changes::{Changes, changes_in};
use crate::frame;
use crate::message::Command;
use crate::message::greeting::is_mariadb;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weir_sql::{Assignment, Encoding};
use weir_wire::limits;

/// The collation Weir logs in with: utf8mb4_general_ci, which every server has.
pub(crate) const LOGIN_COLLATION: u8 = 45;

/// Which of the two servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Flavour {
    MySql,
    MariaDb,
}

impl Flavour {
    pub(crate) fn of(version: &[u8]) -> Flavour {
        if is_mariadb(version) { Flavour::MariaDb } else { Flavour::MySql }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Toggle,
}

macro_rules! slots {
    ($($slot:ident $kind:ident $mysql:literal $mariadb:literal $shapes:literal,)*) => {
        /// A setting that moves with its client, in the order in which they are replayed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub(crate) enum Slot { Names, CharsetClient, CharsetResults, CharsetConnection, CollationConnection, $($slot,)* }
        impl Slot {
            /// Those that have a value of their own at login, which [`base_query`] asks for.
            pub(crate) const BASED: &'static [Slot] = &[$(Slot::$slot,)*];
            fn kind(self) -> Kind {
                match self {
                    Slot::Names | Slot::CharsetClient | Slot::CharsetResults | Slot::CharsetConnection
                    | Slot::CollationConnection => Kind::Text,
                    $(Slot::$slot => Kind::$kind,)*
                }
            }
            /// The variable; empty where the server has none.
            pub(crate) fn variable(self, flavour: Flavour) -> &'static str {
                match (self, flavour) {
                    (Slot::Names, _) => "names",
                    (Slot::CharsetClient, _) => "character_set_client",
                    (Slot::CharsetResults, _) => "character_set_results",
                    (Slot::CharsetConnection, _) => "character_set_connection",
                    (Slot::CollationConnection, _) => "collation_connection",
                    $((Slot::$slot, Flavour::MySql) => $mysql, (Slot::$slot, Flavour::MariaDb) => $mariadb,)*
                }
            }
            /// What a statement means or returns may be fixed by it when the statement is prepared.
            fn shapes_statements(self) -> bool {
                match self {
                    Slot::Names | Slot::CharsetClient | Slot::CharsetResults | Slot::CharsetConnection
                    | Slot::CollationConnection => true,
                    $(Slot::$slot => $shapes,)*
                }
            }
        }
    };
}

slots! {
    Autocommit Toggle "autocommit" "autocommit" false,
    SqlMode Text "sql_mode" "sql_mode" true,
    TimeZone Text "time_zone" "time_zone" true,
    Isolation Text "transaction_isolation" "tx_isolation" false,
    ReadOnly Toggle "transaction_read_only" "tx_read_only" false,
    ForeignKeyChecks Toggle "foreign_key_checks" "foreign_key_checks" false,
    UniqueChecks Toggle "unique_checks" "unique_checks" false,
    SafeUpdates Toggle "sql_safe_updates" "sql_safe_updates" true,
    SelectLimit Number "sql_select_limit" "sql_select_limit" true,
    AutoIsNull Toggle "sql_auto_is_null" "sql_auto_is_null" true,
    Notes Toggle "sql_notes" "sql_notes" false,
    Warnings Toggle "sql_warnings" "sql_warnings" false,
    QuoteShowCreate Toggle "sql_quote_show_create" "sql_quote_show_create" false,
    GroupConcatMaxLen Number "group_concat_max_len" "group_concat_max_len" true,
    DivPrecision Number "div_precision_increment" "div_precision_increment" true,
    LcTimeNames Text "lc_time_names" "lc_time_names" true,
    LcMessages Text "lc_messages" "lc_messages" false,
    OptimizerSwitch Text "optimizer_switch" "optimizer_switch" false,
    StorageEngine Text "default_storage_engine" "default_storage_engine" true,
    MaxExecutionTime Number "max_execution_time" "" false,
    MaxStatementTime Number "" "max_statement_time" false,
    StatsExpiry Number "information_schema_stats_expiry" "" false,
    WaitTimeout Number "wait_timeout" "wait_timeout" false,
    InteractiveTimeout Number "interactive_timeout" "interactive_timeout" false,
    NetReadTimeout Number "net_read_timeout" "net_read_timeout" false,
    NetWriteTimeout Number "net_write_timeout" "net_write_timeout" false,
    LockWaitTimeout Number "lock_wait_timeout" "lock_wait_timeout" false,
    InnodbLockWaitTimeout Number "innodb_lock_wait_timeout" "innodb_lock_wait_timeout" false,
    SortBufferSize Number "sort_buffer_size" "sort_buffer_size" false,
    JoinBufferSize Number "join_buffer_size" "join_buffer_size" false,
    TmpTableSize Number "tmp_table_size" "tmp_table_size" false,
    MaxHeapTableSize Number "max_heap_table_size" "max_heap_table_size" false,
    DefaultWeekFormat Number "default_week_format" "default_week_format" true,
    MaxSortLength Number "max_sort_length" "max_sort_length" false,
    ReadBufferSize Number "read_buffer_size" "read_buffer_size" false,
    ReadRndBufferSize Number "read_rnd_buffer_size" "read_rnd_buffer_size" false,
    BulkInsertBufferSize Number "bulk_insert_buffer_size" "bulk_insert_buffer_size" false,
    BigSelects Toggle "sql_big_selects" "sql_big_selects" false,
    OptimizerSearchDepth Number "optimizer_search_depth" "optimizer_search_depth" false,
    OptimizerPruneLevel Number "optimizer_prune_level" "optimizer_prune_level" false,
    RangeDiveLimit Number "eq_range_index_dive_limit" "eq_range_index_dive_limit" false,
    InnodbStrictMode Toggle "innodb_strict_mode" "innodb_strict_mode" false,
    InnodbTableLocks Toggle "innodb_table_locks" "innodb_table_locks" false,
    LowPriorityUpdates Toggle "low_priority_updates" "low_priority_updates" false,
    AutoIncrementIncrement Number "auto_increment_increment" "auto_increment_increment" false,
    AutoIncrementOffset Number "auto_increment_offset" "auto_increment_offset" false,
    RecursionDepth Number "cte_max_recursion_depth" "max_recursive_iterations" false,
    RoutineRecursionDepth Number "max_sp_recursion_depth" "max_sp_recursion_depth" false,
    TemporaryStorageEngine Text "default_tmp_storage_engine" "" true,
    QueryCacheType Text "" "query_cache_type" false,
    LongQueryTime Number "long_query_time" "long_query_time" false,
    RequirePrimaryKey Toggle "sql_require_primary_key" "" false,
    ShowCreateVerbosity Toggle "show_create_table_verbosity" "" false,
    SecondaryEngine Text "use_secondary_engine" "" false,
    RangeMemory Number "range_optimizer_max_mem_size" "" false,
    CheckConstraints Toggle "" "check_constraint_checks" false,
    JoinCacheLevel Number "" "join_cache_level" false,
    ConditionSelectivity Number "" "optimizer_use_condition_selectivity" false,
    TrackedVariables Text "session_track_system_variables" "session_track_system_variables" false,
}

impl Slot {
    fn is_charset(self) -> bool {
        self <= Slot::CollationConnection
    }

    /// MySQL wants a privilege of whoever sets it, though it be to the value that it has
    /// (SESSION_VARIABLES_ADMIN; "System Variable Privileges").
    fn is_restricted(self) -> bool {
        matches!(
            self,
            Slot::BulkInsertBufferSize
                | Slot::InnodbStrictMode
                | Slot::LowPriorityUpdates
                | Slot::RequirePrimaryKey
        )
    }

    /// It changes how texts are read.
    pub(crate) fn rereads(self) -> bool {
        self.is_charset() || self == Slot::SqlMode
    }

    fn named(name: &str) -> Option<Slot> {
        let name = name.strip_prefix("session.").or_else(|| name.strip_prefix("local.")).unwrap_or(name);
        let charset =
            [Slot::CharsetClient, Slot::CharsetResults, Slot::CharsetConnection, Slot::CollationConnection];
        charset.iter().chain(Slot::BASED).copied().find(|slot| {
            name == slot.variable(Flavour::MySql) && !name.is_empty()
                || name == slot.variable(Flavour::MariaDb)
        })
    }

    /// A value the server reported, as a literal; `None` when it has no safe one.
    pub(crate) fn literal_of(self, value: &[u8]) -> Option<Box<str>> {
        let text = std::str::from_utf8(value).ok()?;
        match self.kind() {
            Kind::Text => quoted(text),
            Kind::Number => is_number(text).then(|| text.into()),
            Kind::Toggle => match text {
                "0" | "OFF" => Some("0".into()),
                "1" | "ON" => Some("1".into()),
                _ => None,
            },
        }
    }

    /// A value as the client wrote it, as a literal; `None` when it has no safe one.
    fn literal_in(self, assignment: &Assignment, text: &[u8]) -> Option<Box<str>> {
        let value = std::str::from_utf8(assignment.value.of(text)?).ok()?;
        match self.kind() {
            Kind::Toggle => assignment.toggle.map(|on| if on { "1".into() } else { "0".into() }),
            Kind::Number => is_number(value).then(|| value.into()),
            // Of other settings it may leave something as it was.
            Kind::Text if value.eq_ignore_ascii_case("null") => {
                (self == Slot::CharsetResults).then(|| "NULL".into())
            }
            Kind::Text => quoted(unquoted(value)?),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 24 && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// The content of `'...'`, `"..."` or a bare word. `None` for numbers (they mean something else than their
/// text) and for anything that needs escapes.
fn unquoted(value: &str) -> Option<&str> {
    for quote in ['\'', '"'] {
        if let Some(inner) = value.strip_prefix(quote) {
            return inner.strip_suffix(quote).filter(|inner| is_plain(inner));
        }
    }
    let is_word = value.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_word.then_some(value)
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|b| (b' '..0x7F).contains(&b) && !matches!(b, b'\'' | b'"' | b'\\' | b'`'))
}

fn quoted(text: &str) -> Option<Box<str>> {
    is_plain(text).then(|| format!("'{text}'").into())
}

/// Values of settings, sorted by slot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Settings(Vec<(Slot, Box<str>)>);

impl Settings {
    pub(crate) fn get(&self, slot: Slot) -> Option<&str> {
        let at = self.0.binary_search_by_key(&slot, |(slot, _)| *slot).ok()?;
        self.0.get(at).map(|(_, value)| &**value)
    }

    fn set(&mut self, slot: Slot, value: Box<str>) {
        match slot {
            Slot::Names => self.0.retain(|(other, _)| !other.is_charset()),
            // Either of the two decides both.
            Slot::CharsetConnection => self.0.retain(|(other, _)| *other != Slot::CollationConnection),
            Slot::CollationConnection => self.0.retain(|(other, _)| *other != Slot::CharsetConnection),
            _ => {}
        }
        match self.0.binary_search_by_key(&slot, |(slot, _)| *slot) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (slot, value)),
        }
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|(_, value)| value.len() + 4).sum()
    }

    fn charset(&self) -> &[(Slot, Box<str>)] {
        &self.0[..self.0.partition_point(|(slot, _)| slot.is_charset())]
    }
}

/// What a session's character sets start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Charset {
    /// A collation by its number, as logins name it.
    Collation(u16),
    /// The server's default.
    ServerDefault,
}

/// What a session has had at its login.
pub(crate) type Base = Arc<AtLogin>;

/// Literals of [`Slot::BASED`], in that order; `None` where there is no safe one.
#[derive(Debug, Default)]
pub(crate) struct AtLogin {
    values: Vec<Option<Box<str>>>,
    /// Counts changes of global settings; and what it was when these were last found to be so.
    changes: weir_session::login::Changes,
    born: AtomicU64,
}

impl AtLogin {
    pub(crate) fn new(
        values: Vec<Option<Box<str>>>,
        changes: weir_session::login::Changes,
        born: u64,
    ) -> AtLogin {
        AtLogin { values, changes, born: AtomicU64::new(born) }
    }

    /// A global setting may be another one by now: a session that begins anew would have that.
    pub(crate) fn is_outdated(&self) -> bool {
        self.changes.load(Relaxed) != self.born.load(Relaxed)
    }

    /// A later login has found the same.
    pub(crate) fn is_confirmed_by(&self, later: &AtLogin) {
        self.born.fetch_max(later.born.load(Relaxed), Relaxed);
    }
}

impl std::ops::Deref for AtLogin {
    type Target = [Option<Box<str>>];
    fn deref(&self) -> &Self::Target {
        &self.values
    }
}

// When they were found is no part of what they are: sessions are compared by it.
impl PartialEq for AtLogin {
    fn eq(&self, other: &AtLogin) -> bool {
        self.values == other.values
    }
}

impl Eq for AtLogin {}

impl std::hash::Hash for AtLogin {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.values.hash(state);
    }
}

/// What moves with a client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// What it began with: the global settings of that moment. `None`: whatever its server began with.
    pub base: Option<Base>,
    /// The default schema.
    pub schema: Option<Arc<str>>,
    pub charset: Charset,
    /// What SET changed since login.
    pub settings: Option<Arc<Settings>>,
    /// Several statements in one text are allowed.
    pub multi_statements: bool,
}

impl State {
    pub(crate) fn new(collation: u16, multi_statements: bool) -> State {
        let charset = Charset::Collation(collation);
        State { base: None, schema: None, charset, settings: None, multi_statements }
    }

    /// The value of a setting that its client has not changed.
    pub(crate) fn based(&self, slot: Slot) -> Option<&str> {
        based(self.base.as_deref()?, slot)
    }

    pub(crate) fn setting(&self, slot: Slot) -> Option<&str> {
        self.settings.as_deref()?.get(slot)
    }

    fn charset_settings(&self) -> &[(Slot, Box<str>)] {
        self.settings.as_deref().map_or(&[], Settings::charset)
    }

    /// Takes over what SET changed. False when there is no room: the caller pins.
    #[must_use]
    pub(crate) fn apply(&mut self, changes: Vec<(Slot, Box<str>)>) -> bool {
        let mut settings = self.settings.as_deref().cloned().unwrap_or_default();
        changes.into_iter().for_each(|(slot, value)| settings.set(slot, value));
        let fits = settings.bytes() <= limits::CLIENT_SETTINGS_BYTES;
        if fits {
            self.settings = Some(Arc::new(settings));
        }
        fits
    }

    /// The part of the state that a prepared statement's meaning depends on.
    pub(crate) fn shape(&self) -> State {
        let settings = self.settings.as_deref().map(|settings| {
            Settings(settings.0.iter().filter(|(slot, _)| slot.shapes_statements()).cloned().collect())
        });
        let settings = settings.filter(|settings| !settings.0.is_empty()).map(Arc::new);
        State {
            settings,
            schema: self.schema.clone(),
            base: self.base.clone(),
            charset: self.charset,
            multi_statements: true,
        }
    }

    /// A statement of this shape would mean the same if it were prepared now, but for its schema, which the
    /// server keeps with it.
    pub(crate) fn is_like(&self, shape: &State) -> bool {
        fn shaping(state: &State) -> impl Iterator<Item = &(Slot, Box<str>)> {
            let all = state.settings.as_deref().map_or(&[][..], |settings| &settings.0);
            all.iter().filter(|(slot, _)| slot.shapes_statements())
        }
        self.charset == shape.charset && self.base == shape.base && shaping(self).eq(shaping(shape))
    }

    /// This state with the parts that shape statements replaced by those of `shape`.
    pub(crate) fn shaped(&self, shape: &State) -> State {
        let mut settings = shape.settings.as_deref().cloned().unwrap_or_default();
        if let Some(own) = self.settings.as_deref() {
            let others = own.0.iter().filter(|(slot, _)| !slot.shapes_statements()).cloned();
            others.for_each(|(slot, value)| settings.set(slot, value));
        }
        let settings = (!settings.0.is_empty()).then(|| Arc::new(settings));
        State {
            base: shape.base.clone(),
            schema: shape.schema.clone(),
            charset: shape.charset,
            settings,
            multi_statements: self.multi_statements,
        }
    }

    /// How the bytes of a text are to be read.
    pub(crate) fn encoding(&self) -> Encoding {
        let name = self.setting(Slot::CharsetClient).or_else(|| self.setting(Slot::Names));
        match (name, self.charset) {
            (Some(name), _) => encoding_named(name),
            (None, Charset::Collation(number)) => encoding_numbered(number),
            (None, Charset::ServerDefault) => Encoding::AsciiUnsafe,
        }
    }
}

/// `'utf8mb4' COLLATE ...` and its like.
fn encoding_named(literal: &str) -> Encoding {
    let name = literal.trim_start_matches('\'').split('\'').next().unwrap_or_default().to_ascii_lowercase();
    match name.as_str() {
        "utf8" | "utf8mb3" | "utf8mb4" | "ascii" | "binary" => Encoding::Utf8,
        "latin1" | "latin2" | "latin5" | "latin7" | "cp1250" | "cp1251" | "cp1256" | "cp1257" | "koi8r"
        | "koi8u" | "greek" | "hebrew" | "tis620" | "ujis" | "eucjpms" | "euckr" | "gb2312" => {
            Encoding::HighBytes
        }
        _ => Encoding::AsciiUnsafe,
    }
}

/// Numbers of collations (`information_schema.COLLATIONS`); the same on both servers as far as they go.
pub(crate) fn encoding_numbered(number: u16) -> Encoding {
    match number {
        11 | 65 | 33 | 45 | 46 | 63 | 76 | 83 | 192..=215 | 223..=247 | 255..=323 => Encoding::Utf8,
        1 | 84 | 13 | 88 | 28 | 87 | 95 | 96 | 248..=250 => Encoding::AsciiUnsafe,
        2..=10
        | 12
        | 14..=27
        | 29..=32
        | 34
        | 36..=44
        | 47..=52
        | 57..=59
        | 64
        | 66..=72
        | 74
        | 75
        | 77..=82
        | 85
        | 86
        | 89..=94
        | 97..=99 => Encoding::HighBytes,
        _ => Encoding::AsciiUnsafe,
    }
}

/// What is known of a server's session.
#[derive(Debug, Clone)]
pub(crate) struct ServerState {
    pub state: State,
    /// False after a difference was only applied in part: everything is established anew.
    pub known: bool,
    /// False after it was not let into a schema, all else is as it was; or where it is to enter its schema
    /// again.
    pub schema_known: bool,
    /// False after COM_RESET_CONNECTION.
    pub charset_known: bool,
    /// False where the session has begun anew: its settings are those that are the global ones by now.
    pub settings_known: bool,
    pub flavour: Flavour,
    /// What it began with.
    pub base: Base,
    /// One of the settings that need a privilege may have been set here.
    pub restricted: bool,
}

fn based(base: &[Option<Box<str>>], slot: Slot) -> Option<&str> {
    let at = Slot::BASED.iter().position(|based| *based == slot)?;
    base.get(at)?.as_deref()
}

impl ServerState {
    fn base(&self, slot: Slot) -> Option<&str> {
        based(&self.base, slot)
    }

    /// What a session in this state has, if that can be said.
    fn effective<'a>(&'a self, state: &'a State, slot: Slot) -> Option<&'a str> {
        state.setting(slot).or_else(|| state.based(slot)).or_else(|| self.base(slot))
    }

    /// A client may change this and the server can be brought back.
    pub(crate) fn can_undo(&self, slot: Slot) -> bool {
        slot.is_charset() || self.base(slot).is_some()
    }

    /// Nothing need be sent for it.
    pub(crate) fn is_at(&self, to: &State) -> bool {
        let known = self.known && self.schema_known && self.charset_known && self.settings_known;
        known && self.state == *to
    }

    /// Appends the commands that bring this session to `to` and takes over that it is there. Each is
    /// answered by one OK. Returns how many they are. See also [`ServerState::needs_new_login`].
    pub(crate) fn move_to(&mut self, to: &State, out: &mut Vec<u8>) -> u32 {
        if self.is_at(to) {
            return 0;
        }
        debug_assert!(!self.needs_new_login(to));
        let mut commands = 0;
        if !self.known || self.state.multi_statements != to.multi_statements {
            frame::put(out, 0, |out| {
                // MYSQL_OPTION_MULTI_STATEMENTS_ON is 0, _OFF is 1.
                out.extend_from_slice(&[Command::SetOption as u8, u8::from(!to.multi_statements), 0]);
            });
            commands += 1;
        }
        let enters = to.schema.as_deref().filter(|_| !self.is_in(to.schema.as_ref()));
        // Whose letters not all character sets have: it is said in the one in which Weir keeps it.
        let first = enters.filter(|name| !name.is_ascii());
        if let Some(name) = first {
            put_query(out, "SET character_set_client=utf8mb4");
            put_init_db(name, out);
            commands += 2;
            self.charset_known = false;
        }
        for assignments in self.assignments(to) {
            put_query(out, &assignments);
            commands += 1;
        }
        if let Some(name) = enters.filter(|_| first.is_none()) {
            put_init_db(name, out);
            commands += 1;
        }
        self.state = to.clone();
        (self.known, self.schema_known) = (true, true);
        self.charset_known = true;
        self.settings_known = true;
        commands
    }

    /// Only COM_CHANGE_USER brings this session to `to`: no command leaves a schema for none.
    pub(crate) fn needs_new_login(&self, to: &State) -> bool {
        to.schema.is_none() && !self.is_in(None)
    }

    /// COM_RESET_CONNECTION went through: the session is in its schema, whose character set it has forgotten.
    pub(crate) fn was_reset(&mut self) {
        self.schema_known &= self.state.schema.is_none();
    }

    /// It is there for certain.
    pub(crate) fn is_in(&self, schema: Option<&Arc<str>>) -> bool {
        self.known && self.schema_known && self.state.schema.as_ref() == schema
    }

    /// COM_CHANGE_USER went through: the session is as after a login without a schema.
    pub(crate) fn logged_in_again(&mut self) {
        let multi_statements = self.state.multi_statements;
        self.state = State::new(u16::from(LOGIN_COLLATION), multi_statements);
        (self.known, self.schema_known) = (true, true);
        self.charset_known = true;
        self.settings_known = false;
    }

    /// How many rows this session shows at most, where that may be fewer than a question of Weir's has.
    pub(crate) fn row_limit(&self) -> Option<&str> {
        const ENOUGH: u64 = 1_000_000_000;
        let limit = self.effective(&self.state, Slot::SelectLimit)?;
        limit.parse::<u64>().map_or(true, |rows| rows < ENOUGH).then_some(limit)
    }

    /// How long this session waits for a table's lock, in seconds; `None` where that is not known.
    pub(crate) fn lock_wait_timeout(&self) -> Option<&str> {
        self.effective(&self.state, Slot::LockWaitTimeout)
    }

    /// `SET names 'utf8mb4', sql_mode=''`: what has to be said, in as few statements as do it.
    fn assignments(&mut self, to: &State) -> Vec<String> {
        let mut statements = Vec::new();
        let mut list = Vec::new();
        // One that was refused may have been set in part.
        let introduce = !self.known || !self.charset_known || reads_literals_otherwise(&self.state);
        let same_charset = self.known
            && self.charset_known
            && self.state.charset == to.charset
            && self.state.charset_settings() == to.charset_settings();
        if !same_charset {
            let own = to.charset_settings();
            if !own.iter().any(|(slot, _)| *slot == Slot::Names) {
                match (to.charset, self.flavour) {
                    (Charset::Collation(n), Flavour::MySql) => {
                        let names = ["character_set_client", "character_set_results", "collation_connection"];
                        list.extend(names.map(|name| format!("{name}={n}")));
                    }
                    (Charset::Collation(n), Flavour::MariaDb) => {
                        statements.push(format!("SET collation_connection={n}"));
                        let names = if is_compiled_default(n) { NAMES_ALONE } else { NAMES_OF_CONNECTION };
                        statements.push(names.to_owned());
                    }
                    (Charset::ServerDefault, _) => list.push(
                        "character_set_client=@@global.character_set_client,\
                         character_set_results=@@global.character_set_results,\
                         collation_connection=@@global.collation_connection"
                            .to_owned(),
                    ),
                }
            }
            list.extend(own.iter().map(|(slot, value)| match slot {
                Slot::Names => format!("NAMES {value}"),
                _ => format!("{}={value}", slot.variable(self.flavour)),
            }));
        }
        for &slot in Slot::BASED {
            let is_set = to.setting(slot).is_some() || self.state.setting(slot).is_some();
            self.restricted |= is_set && slot.is_restricted();
            if slot.is_restricted() && !self.restricted && self.flavour == Flavour::MySql {
                // Nobody has set it here, and who may not is refused.
                continue;
            }
            let (from, wanted) = (self.effective(&self.state, slot), self.effective(to, slot));
            let differs = !self.known || !self.settings_known || from != wanted;
            if let Some(value) = wanted.filter(|_| differs) {
                let introducer = if introduce && value.starts_with('\'') { "_utf8mb4" } else { "" };
                list.push(format!("{}={introducer}{value}", slot.variable(self.flavour)));
            }
        }
        if !list.is_empty() {
            statements.push(format!("SET {}", list.join(",")));
        }
        statements
    }
}

/// A literal without a character set of its own may be one of UTF-16 or UTF-32 in a session of this state.
/// MySQL takes none such for a mode or a time zone.
fn reads_literals_otherwise(state: &State) -> bool {
    let connection = [Slot::CharsetConnection, Slot::CollationConnection];
    state.charset_settings().iter().any(|(slot, _)| connection.contains(slot))
}

/// All character sets as `collation_connection` has it, its number included.
const NAMES_OF_CONNECTION: &str =
    "EXECUTE IMMEDIATE CONCAT('SET NAMES ',@@character_set_connection,' COLLATE ',@@collation_connection)";

/// The same without the collation: the server's default for the character set.
const NAMES_ALONE: &str = "EXECUTE IMMEDIATE CONCAT('SET NAMES ',@@character_set_connection)";

/// Whether a collation is the one its character set has in the program. MariaDB from 11.2 on gives a login
/// with such a number the collation that `character_set_collations` names instead.
fn is_compiled_default(collation: u16) -> bool {
    matches!(
        collation,
        1 | 3 | 4 | 6..=13 | 16 | 18 | 19 | 22 | 24..=26 | 28 | 30 | 32 | 33 | 36..=41 | 45 | 51 | 57 | 59 | 63 | 92 | 95 | 97
    )
}

fn put_init_db(schema: &str, out: &mut Vec<u8>) {
    frame::put(out, 0, |out| {
        out.push(Command::InitDb as u8);
        out.extend_from_slice(schema.as_bytes());
    });
}

/// Appends a COM_QUERY.
pub(crate) fn put_query(out: &mut Vec<u8>, text: &str) {
    frame::put(out, 0, |out| {
        out.push(Command::Query as u8);
        out.extend_from_slice(text.as_bytes());
    });
}

/// Asks for settings that a SET may have changed.
pub(crate) fn settings_query(slots: &[Slot], flavour: Flavour) -> String {
    let names: Vec<_> = slots.iter().map(|slot| format!("@@session.{}", slot.variable(flavour))).collect();
    format!("SELECT {} LIMIT 1", names.join(","))
}

/// Switches on what Weir wants to be told with every OK.
pub(crate) fn setup_query() -> &'static str {
    "SET SESSION session_track_schema=ON,session_track_state_change=ON,\
     session_track_transaction_info='CHARACTERISTICS'"
}

/// The same behind a reset, which leaves the session the role that a client has taken on, and texts of its:
/// MySQL the last one that the optimiser has traced, MariaDB those of SHOW PROFILES. It fails where there is
/// such a text, or where the role is not `role`, the one of the login as a literal, so that the server is
/// closed. `None`: servers have no roles.
/// `own`: the reset is its client's own, behind which FOUND_ROWS() must be what it was. On MariaDB a query in
/// SET would change that.
pub(crate) fn setup_behind_reset(flavour: Flavour, role: Option<&str>, own: bool) -> String {
    let mut holds = Vec::new();
    holds.extend(role.map(|role| format!("CURRENT_ROLE()<=>{role}")));
    let texts = match flavour {
        Flavour::MySql => Some("OPTIMIZER_TRACE"),
        Flavour::MariaDb if own => None,
        Flavour::MariaDb => Some("PROFILING"),
    };
    holds.extend(texts.map(|table| format!("NOT EXISTS(SELECT 1 FROM information_schema.{table})")));
    if holds.is_empty() {
        return setup_query().to_owned();
    }
    // A toggle that is to be 2 is refused.
    setup_query().replacen("=ON", &format!("=2-({})", holds.join(" AND ")), 1)
}

/// The trackers that [`setup_query`] sets.
const TRACKERS: [&str; 3] =
    ["session_track_schema", "session_track_state_change", "session_track_transaction_info"];

/// The bit of a tracker that is none of Weir's.
pub(crate) const OTHER_TRACKERS: u8 = 1 << TRACKERS.len();

/// A tracker that a client sets, as a bit: one of Weir's, or another.
pub(crate) fn tracker_bit(name: &str) -> u8 {
    match TRACKERS.iter().position(|tracker| *tracker == name) {
        Some(at) => 1 << at,
        None if name.starts_with("session_track") => OTHER_TRACKERS,
        None => 0,
    }
}

/// Sets the trackers to what a client has that has set those of `own` itself. `None`: nothing is to be set.
pub(crate) fn client_trackers(own: u8) -> Option<String> {
    let set: Vec<String> = TRACKERS
        .iter()
        .filter(|name| own & tracker_bit(name) == 0)
        .map(|name| format!("{name}=DEFAULT"))
        .collect();
    (!set.is_empty()).then(|| format!("SET SESSION {}", set.join(",")))
}

/// Asks for the settings at login, in the order of [`Slot::BASED`], whether `init_connect` says something,
/// whether changes of the schema are told, for the role if there are `roles`, and for the whole connection
/// id.
pub(crate) fn base_query(flavour: Flavour, roles: bool) -> String {
    let mut query = String::from("SELECT ");
    for slot in Slot::BASED {
        match slot.variable(flavour) {
            "" => query.push_str("NULL,"),
            name => {
                query.push_str("@@session.");
                query.push_str(name);
                query.push(',');
            }
        }
    }
    // The global sql_select_limit may be 0.
    query.push_str("@@global.init_connect<>'',@@session.session_track_schema,");
    query.push_str(if roles { "HEX(CURRENT_ROLE())," } else { "" });
    query.push_str("CONNECTION_ID() LIMIT 1");
    query
}

#[cfg(test)]
mod tests {
    use super::changes::{characteristics, mode_of, names_literal};
    use super::*;

    fn at_login(values: impl Iterator<Item = Option<Box<str>>>) -> Base {
        Arc::new(AtLogin { values: values.collect(), ..AtLogin::default() })
    }

    fn server() -> ServerState {
        server_of(Flavour::MySql)
    }

    fn server_of(flavour: Flavour) -> ServerState {
        ServerState {
            state: State::new(u16::from(LOGIN_COLLATION), true),
            known: true,
            schema_known: true,
            charset_known: true,
            settings_known: true,
            restricted: false,
            flavour,
            base: at_login(
                Slot::BASED
                    .iter()
                    .map(|slot| Some(if slot.kind() == Kind::Text { "'base'" } else { "1" }.into())),
            ),
        }
    }

    fn texts(mut out: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        while let Some(header) = frame::Header::read(out) {
            found.push(format!("{}{}", out[4], String::from_utf8_lossy(&out[5..header.total()])));
            out = &out[header.total()..];
        }
        found
    }

    fn changed(mut state: State, changes: &[(Slot, &str)]) -> State {
        assert!(state.apply(changes.iter().map(|(slot, value)| (*slot, (*value).into())).collect()));
        state
    }

    #[test]
    fn nothing_to_do_costs_nothing() {
        let mut out = Vec::new();
        assert_eq!(server().move_to(&State::new(45, true), &mut out), 0);
        assert!(out.is_empty());
    }

    #[test]
    fn behind_a_reset_it_is_asked_what_that_has_left() {
        let setup = |flavour, role, own| {
            let text = setup_behind_reset(flavour, role, own);
            assert!(text.starts_with("SET SESSION session_track_schema="), "{text}");
            assert!(text.ends_with("session_track_transaction_info='CHARACTERISTICS'"), "{text}");
            let end = text.find(",session_track_state_change=ON").expect("the next one");
            text["SET SESSION session_track_schema=".len()..end].to_owned()
        };
        let trace = "NOT EXISTS(SELECT 1 FROM information_schema.OPTIMIZER_TRACE)";
        let profiles = "NOT EXISTS(SELECT 1 FROM information_schema.PROFILING)";
        for own in [false, true] {
            let both = format!("2-(CURRENT_ROLE()<=>'NONE' AND {trace})");
            assert_eq!(setup(Flavour::MySql, Some("'NONE'"), own), both);
            assert_eq!(setup(Flavour::MySql, None, own), format!("2-({trace})"));
        }
        let both = format!("2-(CURRENT_ROLE()<=>NULL AND {profiles})");
        assert_eq!(setup(Flavour::MariaDb, Some("NULL"), false), both);
        assert_eq!(setup(Flavour::MariaDb, Some("NULL"), true), "2-(CURRENT_ROLE()<=>NULL)");
        assert_eq!(setup(Flavour::MariaDb, None, true), "ON");
    }

    #[test]
    fn there_and_back() {
        let mut server = server();
        let mut other = changed(
            State::new(45, false),
            &[(Slot::SqlMode, "''"), (Slot::Names, "'latin1' COLLATE 'latin1_bin'"), (Slot::Autocommit, "0")],
        );
        other.schema = Some("shop".into());
        let mut out = Vec::new();
        assert_eq!(server.move_to(&other, &mut out), 3);
        assert_eq!(
            texts(&out),
            ["27\u{1}\0", "3SET NAMES 'latin1' COLLATE 'latin1_bin',autocommit=0,sql_mode=''", "2shop"]
        );
        let mut out = Vec::new();
        let back = State { schema: Some("app".into()), ..State::new(8, true) };
        assert_eq!(server.move_to(&back, &mut out), 3);
        assert_eq!(
            texts(&out),
            [
                "27\0\0",
                "3SET character_set_client=8,character_set_results=8,collation_connection=8,\
                 autocommit=1,sql_mode='base'",
                "2app"
            ]
        );
    }

    #[test]
    fn the_number_of_the_login_s_collation_is_set_to_the_number() {
        let mut out = Vec::new();
        assert_eq!(server_of(Flavour::MariaDb).move_to(&State::new(224, true), &mut out), 2);
        let immediate = format!("3{NAMES_OF_CONNECTION}");
        assert_eq!(texts(&out), ["3SET collation_connection=224", immediate.as_str()]);
        let mut out = Vec::new();
        assert_eq!(server_of(Flavour::MySql).move_to(&State::new(224, true), &mut out), 1);
        let all = "3SET character_set_client=224,character_set_results=224,collation_connection=224";
        assert_eq!(texts(&out), [all]);
    }

    #[test]
    fn after_a_failure_everything_is_said() {
        let mut server = server();
        server.known = false;
        let mut out = Vec::new();
        let named = State { schema: Some("app".into()), ..State::new(45, true) };
        assert_eq!(server.move_to(&named, &mut out), 3);
        let texts = texts(&out);
        assert!(
            texts[1].contains("sql_mode=_utf8mb4'base'") && texts[1].contains("collation_connection=45"),
            "{texts:?}"
        );
    }

    #[test]
    fn a_schema_beyond_ascii_is_said_in_utf_8_and_then_the_charset_is() {
        let mut server = server();
        let mut to = changed(State::new(45, true), &[(Slot::Names, "'latin1'")]);
        to.schema = Some("é".into());
        let mut out = Vec::new();
        assert_eq!(server.move_to(&to, &mut out), 3);
        assert_eq!(texts(&out), ["3SET character_set_client=utf8mb4", "2é", "3SET NAMES 'latin1'"]);
        assert!(server.is_at(&to));
    }

    #[test]
    fn no_way_back_to_no_schema() {
        let mut server = server();
        let named = State { schema: Some("x".into()), ..State::new(45, true) };
        assert!(!server.needs_new_login(&State::new(45, true)));
        server.move_to(&named, &mut Vec::new());
        assert!(server.needs_new_login(&State::new(45, true)));
        server.logged_in_again();
        assert!(!server.needs_new_login(&State::new(45, true)));
    }

    #[test]
    fn charset_slots_replace_each_other() {
        let state = changed(
            State::new(45, true),
            &[
                (Slot::CharsetClient, "'latin1'"),
                (Slot::CollationConnection, "'x'"),
                (Slot::CharsetConnection, "'y'"),
            ],
        );
        assert_eq!(state.setting(Slot::CollationConnection), None);
        let state = changed(state, &[(Slot::Names, "'utf8mb4'")]);
        assert_eq!(state.charset_settings().len(), 1);
    }

    #[test]
    fn shapes_leave_out_what_does_not_matter() {
        let a = changed(State::new(45, true), &[(Slot::Autocommit, "0")]);
        let b = changed(State::new(45, false), &[(Slot::Autocommit, "1")]);
        assert_eq!(a.shape(), b.shape());
        let c = changed(a.clone(), &[(Slot::SqlMode, "''")]);
        assert_ne!(a.shape(), c.shape());
        assert_eq!(a.shaped(&c.shape()), c);
        assert!(a.is_like(&b.shape()) && a.is_like(&a.shape()) && !a.is_like(&c.shape()));
    }

    #[test]
    fn literals_that_are_not_safe_are_not_kept() {
        for value in ["'it''s'", "'a\\b'", "33", "'caf\u{e9}'", "@@x", "a b", "", "'a\"b'"] {
            assert_eq!(unquoted(value).and_then(quoted), None, "{value}");
        }
        assert_eq!(unquoted("\"utf8\"").and_then(quoted).as_deref(), Some("'utf8'"));
        assert_eq!(
            names_literal(b"utf8mb4  collate 'utf8mb4_bin'").as_deref(),
            Some("'utf8mb4' COLLATE 'utf8mb4_bin'")
        );
        assert_eq!(names_literal(b"utf8mb4 collate"), None);
        assert_eq!(names_literal(b"default x"), None);
    }

    #[test]
    fn modes_that_are_made_of_the_one_before() {
        let base = at_login(Slot::BASED.iter().map(|_| Some("'STRICT_TRANS_TABLES,ANSI'".into())));
        let state = State { base: Some(base), ..State::new(45, true) };
        for (value, expected) in [
            ("CONCAT(@@sql_mode, ',X')", Some("'STRICT_TRANS_TABLES,ANSI,X'")),
            ("concat(CONCAT(@@SESSION.sql_mode, ',X'), \",Y\")", Some("'STRICT_TRANS_TABLES,ANSI,X,Y'")),
            ("(SELECT REPLACE(@@sql_mode,'ANSI',''))", Some("'STRICT_TRANS_TABLES,'")),
            ("(SELECT CONCAT('A,(', @@sql_mode))", Some("'A,(STRICT_TRANS_TABLES,ANSI'")),
            ("@@sql_mode", Some("'STRICT_TRANS_TABLES,ANSI'")),
            ("CONCAT(@@global.sql_mode, ',X')", None),
            ("CONCAT(@@sql_mode, @x)", None),
            ("own(@@sql_mode)", None),
            ("CONCAT(@@sql_mode, ',X'", None),
            ("(SELECT a FROM t)", None),
            ("CONCAT(@@sql_mode, 'it''s')", None),
        ] {
            assert_eq!(mode_of(value.as_bytes(), &state).as_deref(), expected, "{value}");
        }
        let own = changed(state, &[(Slot::SqlMode, "'x'")]);
        assert_eq!(mode_of(b"CONCAT(@@sql_mode, ',y')", &own).as_deref(), Some("'x,y'"));
        assert_eq!(mode_of(b"REPLACE(@@sql_mode, 'X', '')", &own), None);
    }

    #[test]
    fn transaction_characteristics() {
        let mut changes = Vec::new();
        characteristics("isolation level repeatable read , READ ONLY", &mut changes).unwrap();
        assert_eq!(changes, [(Slot::Isolation, "'REPEATABLE-READ'".into()), (Slot::ReadOnly, "1".into())]);
        assert!(characteristics("WITH CONSISTENT SNAPSHOT", &mut changes).is_none());
    }
}
