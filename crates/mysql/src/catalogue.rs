//! Reads the routines, triggers and views of a MySQL or MariaDB server with requests of Weir's own.
//!
//! Owns: the queries and how their rows are read. Must not know: when they are sent ([`weir_sql::catalogue`]
//! decides how long an answer is valid, the proxy has the clock), what the answer means for a text.
//!
//! Invariants: all names in the queries are qualified; anything the user may not see counts as code that may
//! do anything; an incomplete answer proves nothing.

use crate::back::Back;
use crate::frame::HEADER_BYTES;
use crate::message::{Command, lenenc, ok};
use crate::queue::{Entry, Stage};
use crate::session_state::{Flavour, put_query};
use std::collections::VecDeque;
use weir_sql::Dialect;
use weir_sql::catalogue::{Answer, Builder, Function, Language, On, Reading, Volatility};
use weir_wire::{Fault, INTERNAL, Reader, limits};

/// Schemas of the server's own, whose code changes with its version only. What a text calls there is not
/// known, and so may do anything.
macro_rules! own_schemas {
    () => {
        "('mysql', 'sys', 'information_schema', 'performance_schema')"
    };
}

/// Columns that draw from a sequence by themselves (MariaDB). It keeps their defaults in this form, however
/// they were written.
macro_rules! drawing_columns {
    () => {
        concat!(
            "information_schema.COLUMNS WHERE COLUMN_DEFAULT LIKE '%nextval(%' AND TABLE_SCHEMA NOT IN ",
            own_schemas!()
        )
    };
}

/// Columns that are computed when they are read (MariaDB), perhaps by functions that give another value each
/// time. MySQL refuses those.
macro_rules! virtual_columns {
    () => {
        concat!(
            "information_schema.COLUMNS WHERE EXTRA LIKE '%VIRTUAL%' AND TABLE_SCHEMA NOT IN ",
            own_schemas!()
        )
    };
}

/// What tells a routine's, trigger's or view's state from others.
macro_rules! check {
    ("routine") => {
        "CRC32(CONCAT_WS('/', ROUTINE_SCHEMA, ROUTINE_NAME, SQL_MODE, ROUTINE_DEFINITION))"
    };
    ("trigger") => {
        "CRC32(CONCAT_WS('/', EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, TRIGGER_NAME, ACTION_STATEMENT))"
    };
    ("view") => {
        "CRC32(CONCAT_WS('/', TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION))"
    };
}

/// The same as a column of a row, for [`Checks`].
macro_rules! check_column {
    ($of:tt) => {
        concat!(", CAST(CONVERT(", check!($of), " USING utf8mb4) AS BINARY) ")
    };
}

/// Who may see triggers.
macro_rules! privileges {
    () => {
        "(SELECT COUNT(*) FROM information_schema.SCHEMA_PRIVILEGES WHERE PRIVILEGE_TYPE = 'TRIGGER')"
    };
}

/// What tells the state of the catalogue from others, in one row. A binary string goes through unchanged
/// whatever character set the session has; literals and numbers do not by themselves become the same one, as
/// they have the character set of the connection, which may be UTF-16 or UTF-32.
macro_rules! fingerprint {
    () => {
        concat!(
            "SELECT CAST(_latin1'z' AS BINARY), CAST(CONVERT(CONCAT_WS(' ', \
                (SELECT CONCAT(COUNT(*), '/', COALESCE(SUM(",
            check!("routine"),
            "), 0)) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA NOT IN ",
            own_schemas!(),
            "), (SELECT CONCAT(COUNT(*), '/', COALESCE(SUM(",
            check!("trigger"),
            "), 0)) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA NOT IN ",
            own_schemas!(),
            "), (SELECT CONCAT(COUNT(*), '/', COALESCE(SUM(",
            check!("view"),
            "), 0)) FROM information_schema.VIEWS WHERE TABLE_SCHEMA NOT IN ",
            own_schemas!(),
            "), ",
            privileges!(),
            ") USING utf8mb4) AS BINARY), NULL, NULL, NULL"
        )
    };
}

/// Who the question is asked by, as the tables of privileges have it.
macro_rules! grantee {
    () => {
        "CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')"
    };
}

/// A row of rows has its end said: `sql_select_limit` of a client would end it sooner.
const ALL: &str = " LIMIT 18446744073709551615";

/// Everything but system variables: those are in another place on each of the two. A language of `O` is one
/// that is not read here: another `sql_mode` reads texts differently. The fingerprint is summed up here, from
/// the rows' own ([`Checks`]): asking for both reads everything twice.
macro_rules! everything {
    () => {
        concat!(
            "SELECT CAST(_latin1'z' AS BINARY), CAST(CONVERT(",
            privileges!(),
            " USING utf8mb4) AS BINARY), NULL, NULL, NULL UNION ALL SELECT CAST(_latin1'f' AS BINARY), CAST(ROUTINE_NAME AS BINARY), \
                CAST(IF(ROUTINE_BODY <> 'SQL' OR SQL_MODE REGEXP 'ANSI|ORACLE|NO_BACKSLASH', _latin1'O', _latin1'R') AS BINARY), \
                CAST(IF(CHAR_LENGTH(ROUTINE_DEFINITION) > 200000, NULL, ROUTINE_DEFINITION) AS BINARY)",
            check_column!("routine"),
            "FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA NOT IN ",
            own_schemas!(),
            " UNION ALL SELECT CAST(_latin1't' AS BINARY), CAST(EVENT_OBJECT_TABLE AS BINARY), \
                CAST(IF(SQL_MODE REGEXP 'ANSI|ORACLE|NO_BACKSLASH', _latin1'O', _latin1'R') AS BINARY), \
                CAST(IF(CHAR_LENGTH(ACTION_STATEMENT) > 200000, NULL, ACTION_STATEMENT) AS BINARY)",
            check_column!("trigger"),
            "FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA NOT IN ",
            own_schemas!(),
            " UNION ALL SELECT CAST(_latin1'v' AS BINARY), CAST(TABLE_NAME AS BINARY), CAST(_latin1'R' AS BINARY), \
                CAST(IF(VIEW_DEFINITION = '' OR CHAR_LENGTH(VIEW_DEFINITION) > 200000, NULL, VIEW_DEFINITION) AS BINARY)",
            check_column!("view"),
            "FROM information_schema.VIEWS WHERE TABLE_SCHEMA NOT IN ",
            own_schemas!(),
            " UNION ALL SELECT CAST(_latin1'b' AS BINARY), CAST(t.TABLE_NAME AS BINARY), NULL, NULL, NULL FROM information_schema.TABLES t \
                WHERE t.TABLE_TYPE = 'BASE TABLE' AND t.TABLE_SCHEMA NOT IN ",
            own_schemas!(),
            " AND NOT EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES u WHERE u.GRANTEE = ",
            grantee!(),
            " AND u.PRIVILEGE_TYPE = 'TRIGGER') \
              AND NOT EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES s WHERE s.GRANTEE = ",
            grantee!(),
            " AND s.PRIVILEGE_TYPE = 'TRIGGER' AND t.TABLE_SCHEMA LIKE s.TABLE_SCHEMA) \
              AND NOT EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES p WHERE p.GRANTEE = ",
            grantee!(),
            " AND p.PRIVILEGE_TYPE = 'TRIGGER' AND p.TABLE_SCHEMA = t.TABLE_SCHEMA AND p.TABLE_NAME = t.TABLE_NAME)"
        )
    };
}

/// Asks for the fingerprint alone. Columns that draw are not in it: looking at all columns opens every table,
/// and [`DEFINED`] tells when one may have changed.
const FINGERPRINT: &str = fingerprint!();

/// Asks for everything.
const WHOLE_MYSQL: &str = concat!(
    everything!(),
    " UNION ALL SELECT CAST(_latin1'n' AS BINARY), CAST(VARIABLE_NAME AS BINARY), NULL, NULL, NULL FROM performance_schema.session_variables"
);

/// The same on MariaDB.
const WHOLE_MARIADB: &str = concat!(
    everything!(),
    " UNION ALL SELECT CAST(_latin1'n' AS BINARY), CAST(VARIABLE_NAME AS BINARY), NULL, NULL, NULL FROM information_schema.SYSTEM_VARIABLES \
      UNION ALL SELECT CAST(_latin1't' AS BINARY), CAST(TABLE_NAME AS BINARY), CAST(_latin1'R' AS BINARY), CAST(CONCAT('SELECT ', COLUMN_DEFAULT) AS BINARY), NULL FROM ",
    drawing_columns!(),
    " UNION ALL SELECT CAST(_latin1'k' AS BINARY), CAST(TABLE_NAME AS BINARY), NULL, NULL, NULL FROM ",
    virtual_columns!()
);

/// How often anything was defined anew on this server, by anybody: tables too, of which the catalogue holds
/// nothing. Every user may ask. MySQL counts temporary tables with the others.
const DEFINED: &str = "SHOW GLOBAL STATUS WHERE Variable_name REGEXP '^Com_(alter|create|drop|grant|import|install|rename|revoke|uninstall)' \
     AND Variable_name NOT LIKE '%temporary%'";

/// MariaDB: a table that is locked for longer than a second is left out, with a warning, instead of waited
/// for. Its tables of the catalogue open those that they tell of; most locks are those of a statement that is
/// over at once. Where one is not, the whole question takes some seconds. (Behind SET STATEMENT a later OK
/// would tell of a change that no client has made.)
const LEAVES_OUT_LOCKED: &str = "SET lock_wait_timeout=1";

/// What was left out. Only [`LOCKED`] counts: a view whose tables are gone warns, too.
const LEFT_OUT: &str = "SHOW WARNINGS";

/// ER_LOCK_WAIT_TIMEOUT, as SHOW WARNINGS shows it, without the zeros that UTF-16 and UTF-32 have between.
const LOCKED: &[u8] = b"1205";

/// What `SHOW` shows all its rows with.
const NO_LIMIT: &str = "SET sql_select_limit=18446744073709551615";

/// One of the replies to a question about the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// To SET: nothing to learn.
    Set,
    /// What the catalogue holds, or its fingerprint.
    Catalogue,
    /// To [`LEFT_OUT`].
    LeftOut,
    /// To [`DEFINED`].
    Defined,
}

/// A question about the catalogue that is under way.
#[derive(Debug)]
pub(crate) struct Study {
    reading: Reading,
    /// What is collected, when everything is asked for.
    builder: Option<Builder>,
    /// What the rows so far come to, when everything is asked for.
    checks: Option<Checks>,
    fingerprint: Vec<u8>,
    /// One of the replies was an error.
    failed: bool,
    /// Something was locked.
    locked: bool,
    /// Replies to come.
    steps: VecDeque<Step>,
    /// Column definitions to come; `None` before their number is known.
    columns: Option<u64>,
    /// Behind the definitions comes their end, which is not that of the rows.
    definitions_end: bool,
    /// The sum of what [`DEFINED`] shows.
    defined: u64,
}

/// What the fingerprint says of routines, triggers and views: their numbers, and the sums of their checks.
#[derive(Debug, Default)]
struct Checks {
    routines: (u64, u64),
    triggers: (u64, u64),
    views: (u64, u64),
    /// Of [`privileges`].
    privileges: Vec<u8>,
}

impl Checks {
    fn add(&mut self, kind: &[u8], check: &[u8]) {
        let (count, sum) = match kind {
            b"f" => &mut self.routines,
            b"t" => &mut self.triggers,
            _ => &mut self.views,
        };
        *count += 1;
        let number = std::str::from_utf8(check).ok().and_then(|text| text.parse::<u64>().ok());
        *sum = sum.wrapping_add(number.unwrap_or(0));
    }

    /// As [`FINGERPRINT`] has it.
    fn fingerprint(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (count, sum) in [self.routines, self.triggers, self.views] {
            out.extend_from_slice(format!("{count}/{sum} ").as_bytes());
        }
        out.extend_from_slice(&self.privileges);
        out
    }
}

impl Back {
    /// Queues a question about the catalogue: the whole of it when nothing is known, else whether it has
    /// changed. True: this wing has one.
    pub(crate) fn ask_catalogue(&mut self, reading: Reading, out: &mut Vec<u8>) -> bool {
        // Behind a change of Weir's own clients the counters of definitions are others anyway.
        let whole = !reading.has_fingerprint() || reading.is_behind_a_change();
        let text = match (whole, self.session.flavour) {
            (false, _) => FINGERPRINT,
            (true, Flavour::MySql) => WHOLE_MYSQL,
            (true, Flavour::MariaDb) => WHOLE_MARIADB,
        };
        // `put_query` by `put_query`: one command each, whose replies come in this order.
        let limit = self.session.row_limit().map(|limit| format!("SET sql_select_limit={limit}"));
        let all = [text, ALL].concat();
        let mut steps = VecDeque::from([(Step::Catalogue, all.as_str())]);
        let waits_again =
            self.session.lock_wait_timeout().map(|seconds| format!("SET lock_wait_timeout={seconds}"));
        if let Some(waits_again) = waits_again.as_deref().filter(|_| self.session.flavour == Flavour::MariaDb)
        {
            steps.push_front((Step::Set, LEAVES_OUT_LOCKED));
            steps.push_back((Step::LeftOut, LEFT_OUT));
            steps.push_back((Step::Set, waits_again));
        }
        steps.push_back((Step::Defined, DEFINED));
        if let Some(limit) = &limit {
            steps.push_front((Step::Set, NO_LIMIT));
            steps.push_back((Step::Set, limit));
        }
        steps.iter().for_each(|(_, text)| put_query(out, text));
        let mut entry = Entry::sent(INTERNAL, Command::Query);
        entry.studies = true;
        self.push(entry);
        // It is the last statement of this session now.
        self.found_client = 0;
        self.warned_client = 0;
        self.last_client = 0;
        self.last_rows = 0;
        self.found_here = 0;
        self.next_here = 0;
        let builder = whole.then(|| Builder::new(self.dialect()));
        self.study = Some(Box::new(Study {
            reading,
            builder,
            checks: whole.then(Checks::default),
            fingerprint: Vec::new(),
            failed: false,
            locked: false,
            steps: steps.into_iter().map(|(step, _)| step).collect(),
            columns: None,
            definitions_end: false,
            defined: 0,
        }));
        true
    }

    /// The answer, once the question is done.
    pub(crate) fn take_catalogue(&mut self) -> Option<Answer> {
        let study = self.study.take_if(|study| study.steps.is_empty())?;
        let Study { reading, builder, fingerprint, failed, locked, .. } = *study;
        Some(Answer { reading, catalogue: builder.map(Builder::finish), fingerprint, failed, locked })
    }

    /// As servers read routines that say nothing else.
    fn dialect(&self) -> Dialect {
        Dialect::MySql {
            ansi_quotes: false,
            no_backslash_escapes: false,
            mariadb: self.session.flavour == Flavour::MariaDb,
            encoding: weir_sql::Encoding::Utf8,
        }
    }

    /// Reads one packet of the answer. Returns the bytes read.
    pub(crate) fn read_catalogue(&mut self, entry: &mut Entry, input: &[u8]) -> Result<usize, Fault> {
        let Some((header, payload)) =
            crate::frame::whole(input, limits::SERVER_GATHER_BYTES, weir_wire::FaultKind::ServerTooLarge)?
        else {
            return Ok(0);
        };
        let total = header.total();
        debug_assert!(total >= HEADER_BYTES);
        let Some(mut study) = self.study.take() else {
            entry.stage = Stage::Finished;
            return Ok(total);
        };
        let is_end = payload.first() == Some(&ok::EOF) && header.len < 0xff_ffff;
        let step = study.steps.front().copied().unwrap_or(Step::Set);
        match (payload.first(), &mut study.columns) {
            (_, _) if step == Step::Set => study.next_step(),
            (Some(&ok::ERR), _) => {
                let mut blind = Builder::new(self.dialect());
                blind.is_incomplete();
                study.builder = Some(blind);
                study.failed = true;
                study.next_step();
            }
            (_, None) => {
                study.columns = Some(lenenc::number(&mut Reader::new(payload)).unwrap_or(0));
                // A server that does not leave it out.
                study.definitions_end = !self.capabilities.has(crate::message::Capabilities::DEPRECATE_EOF);
            }
            (_, Some(left @ 1..)) => *left -= 1,
            (_, Some(0)) if is_end && study.definitions_end => study.definitions_end = false,
            (_, Some(0)) if is_end => {
                self.note_status(payload)?;
                study.next_step();
            }
            (_, Some(0)) if step == Step::Defined => study.count(payload),
            (_, Some(0)) if step == Step::LeftOut => study.locked |= is_of_a_lock(payload),
            (_, Some(0)) => study.row(payload),
        }
        if study.steps.is_empty() {
            entry.stage = Stage::Finished;
        }
        self.study = Some(study);
        Ok(total)
    }
}

/// A row of SHOW WARNINGS, which may come in UTF-16 or UTF-32: its second column is the number.
fn is_of_a_lock(row: &[u8]) -> bool {
    let mut reader = Reader::new(row);
    let number = lenenc::string(&mut reader).and_then(|_| lenenc::string(&mut reader)).unwrap_or_default();
    number.iter().filter(|byte| **byte != 0).eq(LOCKED)
}

impl Study {
    /// A reply has come whole.
    fn next_step(&mut self) {
        match (self.steps.pop_front(), &self.checks) {
            (Some(Step::Catalogue), Some(checks)) => self.fingerprint = checks.fingerprint(),
            (Some(Step::Defined), _) => self.fingerprint.extend_from_slice(&self.defined.to_le_bytes()),
            _ => {}
        }
        self.columns = None;
    }

    /// A name and a number, which may come in UTF-16 or UTF-32.
    fn count(&mut self, payload: &[u8]) {
        let mut reader = Reader::new(payload);
        let number =
            lenenc::string(&mut reader).and_then(|_| lenenc::string(&mut reader)).unwrap_or_default();
        let digits = number.iter().filter(|byte| byte.is_ascii_digit());
        let number =
            digits.fold(0u64, |sum, digit| sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
        self.defined = self.defined.wrapping_add(number);
    }

    /// Columns of text, each with its length; 0xFB is NULL.
    fn row(&mut self, payload: &[u8]) {
        let mut reader = Reader::new(payload);
        let mut columns: [Option<&[u8]>; 5] = [None; 5];
        for column in &mut columns {
            if reader.rest().first() == Some(&0xFB) {
                let _ = reader.u8();
                continue;
            }
            match lenenc::string(&mut reader) {
                Ok(text) => *column = Some(text),
                Err(_) => return self.is_incomplete(),
            }
        }
        let [Some(kind), Some(name), language, text, check] = columns else { return self.is_incomplete() };
        match (&mut self.checks, kind, check) {
            (Some(checks), b"z", _) => return checks.privileges = name.to_vec(),
            (None, b"z", _) => return self.fingerprint = name.to_vec(),
            (Some(checks), b"f" | b"t" | b"v", Some(check)) => checks.add(kind, check),
            _ => {}
        }
        let Some(builder) = &mut self.builder else { return };
        let language = match (language, text) {
            (Some(b"R"), Some(_)) => Language::Routine,
            _ => Language::Other,
        };
        let body = text.unwrap_or_default();
        match kind {
            b"f" => {
                let volatility = Volatility::Volatile;
                builder.function(Function { name, language, volatility, extension: b"", body });
            }
            b"t" => builder.text_of(name, On::Write, language, body),
            b"v" => builder.view(name, language, body),
            b"b" => builder.text_of(name, On::Write, Language::Other, b""),
            b"k" => builder.varying(name),
            b"n" => builder.system_variable(name),
            _ => self.is_incomplete(),
        }
    }

    fn is_incomplete(&mut self) {
        if let Some(builder) = &mut self.builder {
            builder.is_incomplete();
        }
    }
}
