//! The words that the scanner knows, and their look-up.
//!
//! One table for both dialects, built by the compiler: open addressing over a hash of the word's first and
//! last eight bytes. A word that is not in it is a name.

mod functions;

use functions::{
    MYSQL_BARE, MYSQL_HARMLESS, MYSQL_VARYING, POSTGRES_BARE, POSTGRES_HARMLESS, POSTGRES_RESERVED,
    POSTGRES_VARYING, SPECIAL, SYNTAX,
};

macro_rules! keywords {
    ($($name:ident $text:literal,)*) => {
        /// Words that mean something to the recogniser. A name is [`Word::Name`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[repr(u8)]
        pub(crate) enum Word {
            /// No word of these.
            #[default]
            Name,
            $($name,)*
        }
        const KEYWORDS: &[(&str, Word)] = &[$(($text, Word::$name),)*];
    };
}

keywords! {
    Abort "abort", Aggregate "aggregate", Algorithm "algorithm", All "all", Alter "alter", Analyse "analyse", Analyze "analyze", And "and", As "as",
    Atomic "atomic", Authorization "authorization",
    Backup "backup", Begin "begin", Binlog "binlog", Body "body",
    Cache "cache", Call "call", Case "case", Chain "chain", Change "change", Character "character",
    Characteristics "characteristics", Charset "charset", Check "check", Checkpoint "checkpoint",
    Checksum "checksum", Clone "clone", Close "close", Cluster "cluster", Comment "comment", Commit "commit",
    Concurrent "concurrent", Connection "connection", Consistent "consistent", Constraints "constraints",
    Continue "continue", Copy "copy", Count "count", Create "create",
    Data "data", Deallocate "deallocate", Declare "declare", Default "default", Definer "definer", Delayed "delayed",
    Delete "delete", Desc "desc", Describe "describe", Diagnostics "diagnostics", Discard "discard", Distinct "distinct",
    Distinctrow "distinctrow", Do "do", Drop "drop",
    Each "each", Else "else", End "end", Errors "errors", Event "event", Except "except", Execute "execute", Exit "exit", Explain "explain",
    Export "export",
    False "false", Fetch "fetch", Flush "flush", For "for", From "from", Function "function",
    Get "get", Global "global", Grant "grant", Group "group",
    Handler "handler", Hard "hard", Having "having", Help "help", HighPriority "high_priority", Hold "hold",
    Id "id", Identity "identity", Is "is", If "if", Ignore "ignore", Immediate "immediate", Import "import", Index "index",
    Infile "infile", Insert "insert", Intersect "intersect", Install "install", Instance "instance", Into "into", Invoker "invoker",
    Kill "kill", LastInsertIdVariable "last_insert_id",
    Limit "limit", Listen "listen", Load "load", Local "local", Lock "lock", Loop "loop",
    LowPriority "low_priority",
    Merge "merge", Move "move",
    Names "names", Next "next", No "no", Not "not", Notify "notify",
    Off "off", Offset "offset", On "on", Open "open", Optimize "optimize", Option "option", Or "or", Order "order",
    Package "package", Password "password", Persist "persist", PersistOnly "persist_only",
    PgCatalog "pg_catalog", PgPreparedStatement "pg_prepared_statement", PgPreparedStatements "pg_prepared_statements",
    PgSettings "pg_settings", PgStatActivity "pg_stat_activity", Plans "plans", Prepare "prepare",
    Prepared "prepared", Previous "previous", Procedure "procedure", Processlist "processlist", Engine "engine",
    // What shows the numbers of MySQL's connections.
    InnodbTrx "innodb_trx", InnodbLocks "innodb_locks", InnodbLockWaits "innodb_lock_waits", Threads "threads", DataLocks "data_locks",
    DataLockWaits "data_lock_waits", MetadataLocks "metadata_locks", PerformanceSchema "performance_schema", Sys "sys", IsUsedLock "is_used_lock",
    UserVariables "user_variables", UserVariablesByThread "user_variables_by_thread",
    SessionVariables "session_variables", SystemVariables "system_variables", Status "status",
    Variables "variables", VariablesByThread "variables_by_thread", TrackSchema "session_track_schema", TrackState "session_track_state_change",
    TrackTransaction "session_track_transaction_info",
    PseudoThreadId "pseudo_thread_id", Purge "purge",
    Query "query",
    Read "read", Reassign "reassign", Recover "recover", Recursive "recursive", Refresh "refresh",
    Reindex "reindex", Release "release", Rename "rename", Repair "repair", Repeat "repeat",
    Replace "replace", Reset "reset", Resignal "resignal", Resource "resource", Restart "restart",
    Revoke "revoke", Role "role", Rollback "rollback",
    Savepoint "savepoint", Schema "schema", Security "security", Select "select", Sequences "sequences",
    Session "session", Set "set", Share "share", Show "show", Shutdown "shutdown", Signal "signal",
    Snapshot "snapshot", Soft "soft", Sql "sql", SqlBigResult "sql_big_result", SqlBufferResult "sql_buffer_result",
    SqlCache "sql_cache", SqlCalcFoundRows "sql_calc_found_rows", SqlNoCache "sql_no_cache",
    SqlSmallResult "sql_small_result", Stage "stage", Start "start", Statement "statement", Stdin "stdin",
    Stdout "stdout", Stop "stop", StraightJoin "straight_join",
    Table "table", Tables "tables", Temp "temp", Temporary "temporary", Then "then", Time "time", To "to",
    Transaction "transaction", Trigger "trigger", True "true", Truncate "truncate",
    Uninstall "uninstall", Union "union", Undo "undo", Unlisten "unlisten", Unlock "unlock", Unlogged "unlogged", Update "update", Use "use",
    User "user", Using "using",
    Vacuum "vacuum", Value "value", Values "values",
    WarningCount "warning_count", ErrorCount "error_count", Warnings "warnings", Where "where",
    While "while", With "with", Work "work",
    Xa "xa", Xml "xml",
    Zone "zone",
}

/// What it means when a parenthesis follows the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Func {
    /// A function nobody vouches for.
    #[default]
    Unknown,
    /// Not a call: `IN (`, `VALUES (`, `varchar(`.
    Syntax,
    /// A built-in function that leaves no trace and asks nothing about the session.
    Harmless,
    /// The same, but two who call it at the same moment may get different values.
    Varies,
    /// Leaves nothing behind, but what it does depends on the session.
    Alone,
    Currval,
    Lastval,
    Nextval,
    Setval,
    AdvisoryLock,
    AdvisoryUnlockAll,
    SetConfig,
    CurrentSetting,
    SetSeed,
    PgBackupStart,
    /// Opens something the session keeps: a dblink connection, a replication origin.
    Keeps,
    /// Runs SQL that stands in its arguments, or reads a table that is named there.
    RunsText,
    ReplicationSlot,
    Sleep,
    BackendPid,
    /// A function, or what names an operator: `OPERATOR(pg_catalog.=)`.
    Operator,
    ConnectionId,
    LastInsertId,
    FoundRows,
    RowCount,
    GetLock,
    ReleaseAllLocks,
    /// Its second argument is an XPath, which may name user variables: `/a/b[$@i]`.
    XPath,
}

/// A word and what it means in each dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    name: &'static str,
    pub(crate) word: Word,
    pub(crate) postgres: Func,
    pub(crate) mysql: Func,
    /// It varies wherever it stands, without a parenthesis behind it.
    pub(crate) bare_postgres: bool,
    pub(crate) bare_mysql: bool,
    /// PostgreSQL takes it neither as a table's name nor as an alias.
    pub(crate) reserved_postgres: bool,
}

const NOTHING: Entry = Entry {
    name: "",
    word: Word::Name,
    postgres: Func::Unknown,
    mysql: Func::Unknown,
    bare_postgres: false,
    bare_mysql: false,
    reserved_postgres: false,
};

/// Slots of the hash table: a power of two, at least four times the entries.
const SLOTS: usize = 8192;
/// Upper bound on entries; the compiler stops with an index error if the lists outgrow it.
const ENTRIES: usize = 1536;
/// The longest word in the table. A longer one is a name.
pub(crate) const LONGEST: usize = 40;

struct Dictionary {
    slots: [u16; SLOTS],
    entries: [Entry; ENTRIES],
}

static DICTIONARY: Dictionary = build();

/// Lower case for letters; other bytes may change too, the comparison behind it is exact.
const LOWER: u64 = 0x2020_2020_2020_2020;

/// `first` and `last` are the word's first and last eight bytes (padded with zeros if it is shorter).
const fn slot_of(first: u64, last: u64, len: usize) -> usize {
    // An odd constant with well spread bits (2^64 divided by the golden ratio).
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let mixed = (first ^ last.rotate_left(23) ^ len as u64).wrapping_mul(SPREAD);
    (mixed >> (64 - SLOTS.trailing_zeros())) as usize
}

const fn load_const(bytes: &[u8], from: usize) -> u64 {
    let mut value = 0;
    let mut i = 0;
    while i < 8 && from + i < bytes.len() {
        value |= ((bytes[from + i] | 0x20) as u64) << (8 * i);
        i += 1;
    }
    value
}

const fn slot_of_const(bytes: &[u8]) -> usize {
    let from = if bytes.len() > 8 { bytes.len() - 8 } else { 0 };
    slot_of(load_const(bytes, 0), load_const(bytes, from), bytes.len())
}

const fn equal_const(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// The entry of `name`, made if there is none yet. Returns its number.
const fn entry_of(dictionary: &mut Dictionary, count: &mut usize, name: &'static str) -> usize {
    assert!(name.len() <= LONGEST);
    let mut slot = slot_of_const(name.as_bytes());
    while dictionary.slots[slot] != 0 {
        let at = dictionary.slots[slot] as usize;
        if equal_const(dictionary.entries[at].name.as_bytes(), name.as_bytes()) {
            return at;
        }
        slot = (slot + 1) % SLOTS;
    }
    *count += 1;
    dictionary.slots[slot] = *count as u16;
    dictionary.entries[*count].name = name;
    *count
}

const fn build() -> Dictionary {
    // Entry 0 stands for "not found".
    let mut dictionary = Dictionary { slots: [0; SLOTS], entries: [NOTHING; ENTRIES] };
    let mut count = 0;
    let mut i = 0;
    while i < KEYWORDS.len() {
        let at = entry_of(&mut dictionary, &mut count, KEYWORDS[i].0);
        dictionary.entries[at].word = KEYWORDS[i].1;
        i += 1;
    }
    i = 0;
    while i < SYNTAX.len() {
        let at = entry_of(&mut dictionary, &mut count, SYNTAX[i]);
        dictionary.entries[at].postgres = Func::Syntax;
        dictionary.entries[at].mysql = Func::Syntax;
        i += 1;
    }
    i = 0;
    while i < POSTGRES_HARMLESS.len() {
        let at = entry_of(&mut dictionary, &mut count, POSTGRES_HARMLESS[i]);
        dictionary.entries[at].postgres = Func::Harmless;
        i += 1;
    }
    i = 0;
    while i < MYSQL_HARMLESS.len() {
        let at = entry_of(&mut dictionary, &mut count, MYSQL_HARMLESS[i]);
        dictionary.entries[at].mysql = Func::Harmless;
        i += 1;
    }
    i = 0;
    while i < POSTGRES_VARYING.len() {
        let at = entry_of(&mut dictionary, &mut count, POSTGRES_VARYING[i]);
        dictionary.entries[at].postgres = Func::Varies;
        i += 1;
    }
    i = 0;
    while i < MYSQL_VARYING.len() {
        let at = entry_of(&mut dictionary, &mut count, MYSQL_VARYING[i]);
        dictionary.entries[at].mysql = Func::Varies;
        i += 1;
    }
    i = 0;
    while i < POSTGRES_BARE.len() {
        let at = entry_of(&mut dictionary, &mut count, POSTGRES_BARE[i]);
        dictionary.entries[at].bare_postgres = true;
        i += 1;
    }
    i = 0;
    while i < MYSQL_BARE.len() {
        let at = entry_of(&mut dictionary, &mut count, MYSQL_BARE[i]);
        dictionary.entries[at].bare_mysql = true;
        i += 1;
    }
    i = 0;
    while i < SPECIAL.len() {
        let at = entry_of(&mut dictionary, &mut count, SPECIAL[i].0);
        dictionary.entries[at].postgres = SPECIAL[i].1;
        dictionary.entries[at].mysql = SPECIAL[i].2;
        i += 1;
    }
    i = 0;
    while i < POSTGRES_RESERVED.len() {
        let at = entry_of(&mut dictionary, &mut count, POSTGRES_RESERVED[i]);
        dictionary.entries[at].reserved_postgres = true;
        i += 1;
    }
    dictionary
}

#[inline]
fn load(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        return (u64::from_le_bytes(*first) | LOWER, u64::from_le_bytes(*last) | LOWER);
    }
    let mut value = 0;
    for (i, &byte) in bytes.iter().enumerate() {
        value |= u64::from(byte | 0x20) << (8 * i);
    }
    (value, value)
}

/// Looks a word up, whatever its case.
#[inline]
pub(crate) fn lookup(word: &[u8]) -> &'static Entry {
    if word.len() > LONGEST {
        return &NOTHING;
    }
    let (first, last) = load(word);
    let mut slot = slot_of(first, last, word.len());
    loop {
        let at = DICTIONARY.slots[slot % SLOTS] as usize;
        let Some(entry) = DICTIONARY.entries.get(at) else { return &NOTHING };
        if at == 0 || entry.name.as_bytes().eq_ignore_ascii_case(word) {
            return entry;
        }
        slot += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_found_in_either_case() {
        for (text, word) in KEYWORDS {
            assert_eq!(lookup(text.as_bytes()).word, *word, "{text}");
            assert_eq!(lookup(text.to_uppercase().as_bytes()).word, *word, "{text}");
        }
    }

    #[test]
    fn reserved_words_are_known() {
        for word in ["FROM", "with", "session_user", "current_timestamp", "all", "window", "Operator"] {
            assert!(lookup(word.as_bytes()).reserved_postgres, "{word}");
        }
        for word in
            ["value", "ordinality", "rows", "id", "a_word_that_is_longer_than_all_others_there_are", ""]
        {
            assert!(!lookup(word.as_bytes()).reserved_postgres, "{word}");
        }
    }

    #[test]
    fn every_function_is_found() {
        for text in POSTGRES_HARMLESS {
            assert_eq!(lookup(text.as_bytes()).postgres, Func::Harmless, "{text}");
        }
        for text in MYSQL_HARMLESS {
            assert_eq!(lookup(text.as_bytes()).mysql, Func::Harmless, "{text}");
        }
        for text in POSTGRES_VARYING {
            assert_eq!(lookup(text.as_bytes()).postgres, Func::Varies, "{text}");
        }
        for text in MYSQL_VARYING {
            assert_eq!(lookup(text.as_bytes()).mysql, Func::Varies, "{text}");
        }
        for text in POSTGRES_BARE {
            assert!(lookup(text.as_bytes()).bare_postgres, "{text}");
        }
        for text in MYSQL_BARE {
            assert!(lookup(text.as_bytes()).bare_mysql, "{text}");
        }
        for (text, postgres, mysql) in SPECIAL {
            assert_eq!(lookup(text.as_bytes()).postgres, *postgres, "{text}");
            assert_eq!(lookup(text.as_bytes()).mysql, *mysql, "{text}");
        }
    }

    #[test]
    fn the_lists_are_in_lower_case_and_disjoint_from_the_special_functions() {
        let varying = POSTGRES_VARYING.iter().chain(MYSQL_VARYING).chain(POSTGRES_BARE).chain(MYSQL_BARE);
        for text in SYNTAX.iter().chain(POSTGRES_HARMLESS).chain(MYSQL_HARMLESS).chain(varying) {
            assert!(
                text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
                "{text}"
            );
        }
        for (text, postgres, mysql) in SPECIAL {
            assert!(*postgres == Func::Unknown || !POSTGRES_HARMLESS.contains(text), "{text}");
            assert!(*mysql == Func::Unknown || !MYSQL_HARMLESS.contains(text), "{text}");
            assert!(*postgres == Func::Unknown || !POSTGRES_VARYING.contains(text), "{text}");
            assert!(*mysql == Func::Unknown || !MYSQL_VARYING.contains(text), "{text}");
        }
    }

    #[test]
    fn other_words_are_names() {
        for text in
            ["", "x", "selec", "selects", "se1ect", "\u{e9}", "pg_advisory_lock_shared_but_longer_than_any"]
        {
            assert_eq!(lookup(text.as_bytes()).word, Word::Name);
            assert_eq!(lookup(text.as_bytes()).postgres, Func::Unknown);
        }
    }

    #[test]
    fn the_table_is_sparse_enough_to_end_every_search_soon() {
        let used = DICTIONARY.slots.iter().filter(|&&at| at != 0).count();
        assert!(used * 4 <= SLOTS, "{used}");
    }
}
