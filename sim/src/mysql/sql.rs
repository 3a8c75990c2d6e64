//! The small language of the model database, in MySQL's form. Comments contain instructions for the model, as
//! in `postgres::sql`.
//!
//! Owns: splitting a text into statements and reading one. Must not know: sessions, packets.

pub use crate::postgres::sql::split;

/// What a statement asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Nothing.
    Empty,
    /// Rows that show a literal.
    Literal(String),
    /// Rows that show the parameter.
    Parameter,
    /// The rows this transaction has inserted.
    OwnRows,
    /// What is in the temporary table.
    Temporary,
    /// The user variable `@v`.
    ReadVariable,
    /// Weir's question what its column is like, if anybody has set it.
    VariableKind,
    /// Weir's question for its collation and value.
    VariableValue,
    /// Assigns it.
    SetVariable(String),
    /// Settings of the session, `None` where there is no such setting, and the connection's number behind
    /// them.
    Settings(Vec<Option<String>>),
    /// Changes settings of the session.
    Set(Vec<(String, String)>),
    /// The default schema.
    ShowSchema,
    /// Changes it.
    Use(String),
    /// Weir's question about the catalogue: nobody has made anything here that runs code.
    Catalogue {
        /// For all of it, whose fingerprint Weir sums up itself; else for that alone.
        whole: bool,
    },
    /// CONNECTION_ID(), or what Weir has put in its place.
    ConnectionId(Option<u64>),
    /// LAST_INSERT_ID().
    InsertId,
    /// The same; where it is 0, it becomes this number.
    OwnInsertId(u64),
    /// The same, and it is 0 from then on.
    TakeInsertId,
    /// The messages of the last statement.
    ShowWarnings,
    /// The same, of which it shows none.
    ShowNothing,
    /// FOUND_ROWS().
    FoundRows,
    /// So many rows, for nothing but their number.
    Rows(usize),
    /// Counters of the server: nothing is ever defined here.
    ShowStatus,
    /// BEGIN.
    Begin,
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// Inserts the tag, or the parameter.
    Insert,
    /// Makes the temporary table, which holds this text.
    CreateTemporary(String),
    /// Drops it.
    DropTemporary,
    /// A session lock.
    Lock,
    /// Frees all.
    Unlock,
    /// Takes away the messages of the last statement.
    Clear,
    /// Ends what another connection runs.
    KillQuery(u32),
    /// The model does not know it: a bug of the simulator, or a text that was mangled.
    Unknown,
}

/// The column in which [`Command::VariableKind`] shows what the variable is.
pub const VARIABLE: &str = "@`v`";

/// One statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// What it asks for.
    pub command: Command,
    /// Who sent it: client, a dot, a number.
    pub tag: Option<String>,
    /// Which statement it is, shown in every row.
    pub id: String,
    /// Rows of the answer.
    pub rows: usize,
    /// Bytes of a row at least.
    pub width: usize,
    /// How long it takes.
    pub sleep_us: u64,
    /// It fails.
    pub fails: bool,
    /// A read that sets this time zone, out of sight.
    pub sets: Option<String>,
    /// The time zone and the schema its client believes to be in force.
    pub time_zone: Option<String>,
    /// As above; empty for none.
    pub schema: Option<String>,
    /// Its text.
    pub text: String,
}

fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, behind)| behind);
    }
    out.push_str(rest);
    out
}

fn literal(text: &str) -> String {
    text.split('\'').nth(1).unwrap_or_default().to_owned()
}

impl Statement {
    /// Reads one statement.
    pub fn read(text: &str) -> Statement {
        let bare = without_comments(text);
        let mut statement = Statement {
            command: command(bare.trim()),
            tag: None,
            id: String::new(),
            rows: 1,
            width: 0,
            sleep_us: 0,
            fails: false,
            sets: None,
            time_zone: None,
            schema: None,
            text: text.to_owned(),
        };
        let comment = text.split_once("/*").and_then(|(_, rest)| rest.split_once("*/"));
        for word in comment.map_or("", |(inside, _)| inside).split_whitespace() {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name {
                "tag" => statement.tag = Some(value.to_owned()),
                "id" => statement.id = value.to_owned(),
                "rows" => statement.rows = value.parse().unwrap_or(1),
                "width" => statement.width = value.parse().unwrap_or(0),
                "sleep" => statement.sleep_us = value.parse().unwrap_or(0),
                "fail" => statement.fails = true,
                "sets" => statement.sets = Some(value.to_owned()),
                "tz" => statement.time_zone = Some(value.to_owned()),
                "db" => statement.schema = Some(value.to_owned()),
                _ => {}
            }
        }
        statement
    }

    /// The columns of its answer; none for OK.
    pub fn columns(&self) -> Vec<String> {
        let one = |name: &str| vec![name.to_owned()];
        match &self.command {
            Command::Literal(_) | Command::Parameter | Command::OwnRows | Command::Temporary => one("v"),
            Command::ReadVariable => one("@v"),
            Command::VariableKind => one(VARIABLE),
            Command::VariableValue => ["COLLATION(@`v`)", "value"].map(str::to_owned).to_vec(),
            Command::Settings(names) => {
                names.iter().map(|name| name.clone().unwrap_or_else(|| "NULL".to_owned())).collect()
            }
            Command::ShowSchema => one("DATABASE()"),
            Command::Catalogue { .. } => {
                ["kind", "name", "language", "text", "check"].map(str::to_owned).to_vec()
            }
            Command::ConnectionId(_) => one("CONNECTION_ID()"),
            Command::InsertId | Command::OwnInsertId(_) => one("LAST_INSERT_ID()"),
            Command::TakeInsertId => ["LAST_INSERT_ID()", "LAST_INSERT_ID(0)"].map(str::to_owned).to_vec(),
            Command::FoundRows => one("FOUND_ROWS()"),
            Command::Rows(_) => one("1"),
            Command::ShowWarnings | Command::ShowNothing => {
                ["Level", "Code", "Message"].map(str::to_owned).to_vec()
            }
            Command::ShowStatus => ["Variable_name", "Value"].map(str::to_owned).to_vec(),
            Command::Lock => one("GET_LOCK('l',0)"),
            Command::Unlock => one("RELEASE_ALL_LOCKS()"),
            _ => Vec::new(),
        }
    }

    /// Parameters it takes.
    pub fn parameters(&self) -> usize {
        usize::from(without_comments(&self.text).contains('?'))
    }
}

fn command(text: &str) -> Command {
    let upper = text.to_ascii_uppercase();
    let words: Vec<&str> = upper.split_whitespace().take(5).collect();
    match words.as_slice() {
        [] => Command::Empty,
        ["SELECT", "?", ..] => Command::Parameter,
        ["SELECT", "OWN", "FROM", "T"] => Command::OwnRows,
        ["SELECT", "V", "FROM", "TMP"] => Command::Temporary,
        ["SELECT", "@V"] => Command::ReadVariable,
        ["SELECT", "@`V`", "LIMIT", "0"] => Command::VariableKind,
        ["SELECT", list, ..] if list.starts_with("COLLATION(@`V`),") => Command::VariableValue,
        ["SELECT", "DATABASE()"] => Command::ShowSchema,
        ["SELECT", "CONNECTION_ID()"] => Command::ConnectionId(None),
        ["SELECT", "LAST_INSERT_ID()"] | ["SELECT", "LAST_INSERT_ID()", "LIMIT", "1"] => Command::InsertId,
        ["SELECT", value, "LIMIT", "1"] if value.starts_with("LAST_INSERT_ID(IF(LAST_INSERT_ID()=0,") => {
            Command::OwnInsertId(value.split(',').nth(1).and_then(|own| own.parse().ok()).unwrap_or(0))
        }
        ["SELECT", "LAST_INSERT_ID(),", "LAST_INSERT_ID(0)", "LIMIT", "1"] => Command::TakeInsertId,
        ["SELECT", "FOUND_ROWS()", "LIMIT", "1"] => Command::FoundRows,
        ["SELECT", "1", "FROM", "DUAL", "WHERE"] => Command::Rows(0),
        ["SELECT", "1"] => Command::Rows(1),
        ["WITH", "RECURSIVE", ..] => Command::Rows(rows_of(text)),
        ["SELECT", "NULL", "INTO", "@_WEIR_S_OWN_", ..] | ["SELECT", "SQL_CALC_FOUND_ROWS", ..] => {
            Command::Clear
        }
        ["SELECT", "CAST(_LATIN1'Z'", "AS", "BINARY),", what, ..] => {
            Command::Catalogue { whole: !what.ends_with("CONCAT_WS('") }
        }
        ["SELECT", cast, "AS", ..] if cast.starts_with("CAST(") => {
            Command::ConnectionId(cast["CAST(".len()..].parse().ok())
        }
        ["SELECT", lock, ..] if lock.starts_with("GET_LOCK(") => Command::Lock,
        ["SELECT", "RELEASE_ALL_LOCKS()"] => Command::Unlock,
        ["SELECT", list, ..] if list.starts_with("@@") => {
            settings(text["SELECT ".len()..].trim_end_matches(" LIMIT 1"))
        }
        ["SELECT", value, ..] if value.starts_with('\'') => Command::Literal(literal(text)),
        ["SET", variable, ..] if variable.starts_with("@_WEIR_S_OWN_") => Command::Clear,
        ["SET", "@V", ..] => Command::SetVariable(literal(text)),
        ["SET", assignment, ..] if assignment.starts_with("@`V`=") => {
            Command::SetVariable(from_hex(&literal(text)))
        }
        ["SET", ..] => set(&text["SET ".len()..]),
        ["USE", ..] => Command::Use(text["USE ".len()..].trim().to_owned()),
        ["SHOW", "GLOBAL", "STATUS", ..] => Command::ShowStatus,
        ["SHOW", "WARNINGS"] => Command::ShowWarnings,
        ["SHOW", "WARNINGS", "LIMIT", "0"] => Command::ShowNothing,
        ["DO", ..] => Command::Clear,
        ["BEGIN"] | ["START", "TRANSACTION"] => Command::Begin,
        ["COMMIT"] => Command::Commit,
        ["ROLLBACK"] => Command::Rollback,
        ["INSERT", "INTO", "T", ..] => Command::Insert,
        ["CREATE", "TEMPORARY", "TABLE", "TMP", ..] => Command::CreateTemporary(literal(text)),
        ["DROP", "TEMPORARY", "TABLE", "TMP"] => Command::DropTemporary,
        ["KILL", "QUERY", id] => id.parse().map_or(Command::Unknown, Command::KillQuery),
        _ => Command::Unknown,
    }
}

/// `X'...'`
fn from_hex(digits: &str) -> String {
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
}

/// The number in `... WHERE i < 5) ...`.
fn rows_of(text: &str) -> usize {
    let number = text.split_once('<').map_or("", |(_, behind)| behind.trim());
    number.split(')').next().and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// `@@session.a,NULL,...,CONNECTION_ID()`, or one setting.
fn settings(list: &str) -> Command {
    let mut names = Vec::new();
    for item in list.split(',').map(str::trim) {
        match item.strip_prefix("@@") {
            Some(name) => names.push(Some(name.strip_prefix("session.").unwrap_or(name).to_owned())),
            None if item == "NULL" || item == "HEX(CURRENT_ROLE())" => names.push(None),
            None if item == "CONNECTION_ID()" => names.push(Some("CONNECTION_ID()".to_owned())),
            None => return Command::Unknown,
        }
    }
    Command::Settings(names)
}

/// `a=1, SESSION b='x', NAMES 'utf8mb4' COLLATE 'x'`.
fn set(list: &str) -> Command {
    let mut changes = Vec::new();
    let mut quoted = false;
    for item in list.split(|c: char| {
        quoted ^= c == '\'';
        c == ',' && !quoted
    }) {
        let item = item.trim();
        let item = item.strip_prefix("SESSION ").unwrap_or(item).trim();
        if let Some(names) = item.strip_prefix("NAMES ") {
            changes.push(("names".to_owned(), names.to_owned()));
            continue;
        }
        let Some((name, value)) = item.split_once('=') else { return Command::Unknown };
        let value = value.trim();
        let value = value.strip_prefix("_utf8mb4").unwrap_or(value).trim_matches('\'');
        // Nobody has a role here, and nothing is traced.
        let finds_nothing = value.starts_with("2-(CURRENT_ROLE()<=>NULL");
        let value = if finds_nothing { "ON" } else { value }.to_owned();
        changes.push((name.trim().to_ascii_lowercase(), value));
    }
    Command::Set(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weirs_own_texts_are_understood() {
        let text = "SET SESSION session_track_schema=ON,session_track_transaction_info='CHARACTERISTICS'";
        let Command::Set(changes) = Statement::read(text).command else { panic!("a SET") };
        assert_eq!(changes[1], ("session_track_transaction_info".into(), "CHARACTERISTICS".into()));
        let text = "SET NAMES 'latin1' COLLATE 'x',sql_mode='A,B'";
        let Command::Set(changes) = Statement::read(text).command else { panic!("a SET") };
        assert_eq!(changes[1], ("sql_mode".into(), "A,B".into()));
        let text = "SELECT @@session.autocommit,NULL,CONNECTION_ID()";
        let Command::Settings(names) = Statement::read(text).command else { panic!("settings") };
        assert_eq!(names, [Some("autocommit".into()), None, Some("CONNECTION_ID()".into())]);
        let text = "SELECT CAST(77 AS UNSIGNED) AS `CONNECTION_ID()` /* tag=c1.2 db=app */";
        let statement = Statement::read(text);
        assert_eq!(statement.command, Command::ConnectionId(Some(77)));
        assert_eq!((statement.tag.as_deref(), statement.schema.as_deref()), (Some("c1.2"), Some("app")));
    }
}
