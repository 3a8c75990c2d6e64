//! The small language of the model database. Comments contain instructions for the model.
//!
//! Owns: splitting a text into statements and reading one. Must not know: sessions, messages.

/// A column of the question of what a session has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// The value of a setting.
    Setting(String),
    /// The names of all settings that are not at their defaults.
    Settings,
    /// There is a session lock.
    Lock,
    /// There is the temporary table.
    Temporary,
    /// It listens.
    Listens,
}

/// What a statement asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Nothing.
    Empty,
    /// Rows that show a literal.
    Literal(String),
    /// Rows that show the first parameter.
    Parameter,
    /// The rows this transaction has inserted.
    OwnRows,
    /// What is in the temporary table.
    Temporary,
    /// `set_config` of these, for the session. `None`: the default.
    SetConfig(Vec<(String, Option<String>)>),
    /// The value of a setting.
    Show(String),
    /// What Weir asks about a session.
    Left(Vec<Left>),
    /// Changes a setting. `None`: the default.
    Set(String, Option<String>),
    /// The same until the transaction ends.
    SetLocal(String, String),
    /// All settings to their defaults.
    ResetAll,
    /// BEGIN.
    Begin,
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// SAVEPOINT. Weir's own is the only one that there ever is.
    Savepoint,
    /// ROLLBACK TO SAVEPOINT.
    RollbackTo,
    /// RELEASE SAVEPOINT.
    Release,
    /// Inserts the tag.
    Insert,
    /// Makes the temporary table, which holds this text.
    CreateTemporary(String),
    /// Drops it.
    DropTemporary,
    /// COPY FROM STDIN.
    CopyIn,
    /// COPY TO STDOUT.
    CopyOut,
    /// LISTEN.
    Listen,
    /// UNLISTEN *.
    Unlisten,
    /// DISCARD ALL.
    DiscardAll,
    /// DISCARD SEQUENCES.
    DiscardSequences,
    /// DISCARD PLANS.
    DiscardPlans,
    /// DEALLOCATE ALL.
    DeallocateAll,
    /// A session lock.
    Lock,
    /// Frees it.
    Unlock,
    /// The model does not know it: a bug of the simulator, or a text that was mangled.
    Unknown,
}

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
    /// It says something on the way.
    pub notices: bool,
    /// The time zone its client believes to be in force.
    pub time_zone: Option<String>,
    /// Its text.
    pub text: String,
}

/// Cuts a text into statements at semicolons outside quotes and comments.
pub fn split(text: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let (mut quoted, mut comment, mut previous, mut start) = (false, false, b' ', 0);
    for (at, c) in text.bytes().enumerate() {
        match c {
            b'\'' if !comment => quoted = !quoted,
            b'*' if previous == b'/' && !quoted => comment = true,
            b'/' if previous == b'*' && comment => comment = false,
            b';' if !quoted && !comment => {
                statements.push(text[start..at].to_owned());
                (start, previous) = (at + 1, b' ');
                continue;
            }
            _ => {}
        }
        previous = c;
    }
    statements.push(text[start..].to_owned());
    statements.retain(|statement| !without_comments(statement).trim().is_empty());
    statements
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

fn comment_of(text: &str) -> &str {
    text.split_once("/*").and_then(|(_, rest)| rest.split_once("*/")).map_or("", |(inside, _)| inside)
}

/// The literals of a text in order: `'...'` and `E'...'`.
fn literals(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut chars = text.chars().peekable();
    let mut previous = ' ';
    while let Some(c) = chars.next() {
        if c != '\'' {
            previous = c;
            continue;
        }
        let escapes = previous == 'E';
        let mut literal = String::new();
        while let Some(c) = chars.next() {
            match c {
                '\'' if chars.peek() == Some(&'\'') => {
                    chars.next();
                    literal.push('\'');
                }
                '\'' => break,
                '\\' if escapes => literal.extend(chars.next()),
                c => literal.push(c),
            }
        }
        previous = '\'';
        found.push(literal);
    }
    found
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
            notices: false,
            time_zone: None,
            text: text.to_owned(),
        };
        for word in comment_of(text).split_whitespace() {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name {
                "tag" => statement.tag = Some(value.to_owned()),
                "id" => statement.id = value.to_owned(),
                "rows" => statement.rows = value.parse().unwrap_or(1),
                "width" => statement.width = value.parse().unwrap_or(0),
                "sleep" => statement.sleep_us = value.parse().unwrap_or(0),
                "fail" => statement.fails = true,
                "notice" => statement.notices = true,
                "tz" => statement.time_zone = Some(value.to_owned()),
                _ => {}
            }
        }
        statement
    }

    /// It answers with rows.
    pub fn has_rows(&self) -> bool {
        matches!(
            self.command,
            Command::Literal(_)
                | Command::Parameter
                | Command::OwnRows
                | Command::Temporary
                | Command::SetConfig(_)
                | Command::Show(_)
                | Command::Lock
                | Command::Unlock
        )
    }

    /// Parameters it takes.
    pub fn parameters(&self) -> usize {
        usize::from(without_comments(&self.text).contains("$1"))
    }

    /// Transaction control that a failed transaction still takes.
    pub fn ends_transaction(&self) -> bool {
        matches!(self.command, Command::Commit | Command::Rollback | Command::RollbackTo)
    }
}

fn command(text: &str) -> Command {
    let words: Vec<String> = text.split_whitespace().take(4).map(str::to_ascii_uppercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let first_literal = || literals(text).into_iter().next().unwrap_or_default();
    match words.as_slice() {
        [] => Command::Empty,
        ["SELECT", "$1", ..] => Command::Parameter,
        ["SELECT", "OWN", "FROM", "T"] => Command::OwnRows,
        ["SELECT", "V", "FROM", "TMP"] => Command::Temporary,
        ["SELECT", call, ..] if call.starts_with("PG_CATALOG.SET_CONFIG(") => set_config(text),
        ["SELECT", call, ..] if call.starts_with("PG_CATALOG.CURRENT_SETTING(") || *call == "EXISTS" => {
            left(text)
        }
        ["SELECT", call, ..] if call.starts_with("PG_TRY_ADVISORY_LOCK(") => Command::Lock,
        ["SELECT", call, ..] if call.starts_with("PG_ADVISORY_UNLOCK_ALL(") => Command::Unlock,
        ["SELECT", literal, ..] if literal.starts_with('\'') => Command::Literal(first_literal()),
        ["SHOW", name] => Command::Show(name.to_ascii_lowercase()),
        ["SET", "LOCAL", name, ..] => Command::SetLocal(name.to_ascii_lowercase(), first_literal()),
        ["SET", name, _, "DEFAULT"] => Command::Set(name.to_ascii_lowercase(), None),
        ["SET", name, ..] => Command::Set(name.to_ascii_lowercase(), Some(first_literal())),
        ["RESET", "ALL"] => Command::ResetAll,
        ["RESET", name] => Command::Set(name.to_ascii_lowercase(), None),
        ["BEGIN", ..] | ["START", "TRANSACTION", ..] => Command::Begin,
        ["COMMIT", ..] | ["END", ..] => Command::Commit,
        ["SAVEPOINT", _] => Command::Savepoint,
        ["ROLLBACK", "TO", ..] => Command::RollbackTo,
        ["RELEASE", ..] => Command::Release,
        ["ROLLBACK", ..] | ["ABORT", ..] => Command::Rollback,
        ["INSERT", "INTO", "T", ..] => Command::Insert,
        ["CREATE", "TEMP", "TABLE", "TMP"] => Command::CreateTemporary(first_literal()),
        ["DROP", "TABLE", "TMP"] => Command::DropTemporary,
        ["COPY", "T", "FROM", "STDIN"] => Command::CopyIn,
        ["COPY", "T", "TO", "STDOUT"] => Command::CopyOut,
        ["LISTEN", ..] => Command::Listen,
        ["UNLISTEN", ..] => Command::Unlisten,
        ["DISCARD", "ALL"] => Command::DiscardAll,
        ["DISCARD", "SEQUENCES"] => Command::DiscardSequences,
        ["DISCARD", "PLANS"] => Command::DiscardPlans,
        ["DEALLOCATE", "ALL"] => Command::DeallocateAll,
        _ => Command::Unknown,
    }
}

/// `SELECT pg_catalog.set_config(E'name',E'value',false),...`; NULL for the default.
fn set_config(text: &str) -> Command {
    let mut settings = Vec::new();
    for call in text.split("pg_catalog.set_config(").skip(1) {
        let mut texts = literals(call).into_iter();
        let Some(name) = texts.next() else { return Command::Unknown };
        let value = texts.next();
        if value.is_none() && !call.contains(",NULL,") {
            return Command::Unknown;
        }
        settings.push((name.to_ascii_lowercase(), value));
    }
    Command::SetConfig(settings)
}

/// `SELECT pg_catalog.current_setting(E'name',true),...`, and what else stands behind it.
fn left(text: &str) -> Command {
    let name =
        |call: &str| literals(call).into_iter().next().map(|name| Left::Setting(name.to_ascii_lowercase()));
    let settings = text.split("pg_catalog.current_setting(").skip(1).map(name);
    let Some(mut columns) = settings.collect::<Option<Vec<_>>>() else { return Command::Unknown };
    for (part, column) in [
        ("pg_settings", Left::Settings),
        ("pg_locks", Left::Lock),
        ("pg_my_temp_schema", Left::Temporary),
        ("pg_listening_channels", Left::Listens),
    ] {
        if text.contains(part) {
            columns.push(column);
        }
    }
    Command::Left(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_cut_outside_quotes_and_comments() {
        assert_eq!(split("SELECT 'a;b' /* ; */; BEGIN;"), ["SELECT 'a;b' /* ; */", " BEGIN"]);
        assert!(split(" ; /* x */ ").is_empty());
    }

    #[test]
    fn a_comment_says_what_to_do() {
        let s = Statement::read("SELECT 'x' /* tag=c1.2 rows=3 width=9 sleep=5 fail tz=UTC */");
        assert_eq!(s.command, Command::Literal("x".into()));
        assert_eq!((s.tag.as_deref(), s.rows, s.width, s.sleep_us, s.fails), (Some("c1.2"), 3, 9, 5, true));
    }

    #[test]
    fn weirs_own_query_is_understood() {
        let text =
            "SELECT pg_catalog.set_config(E'a',E'x''\\\\y',false),pg_catalog.set_config(E'b',NULL,false)";
        let expected = vec![("a".to_owned(), Some("x'\\y".to_owned())), ("b".to_owned(), None)];
        assert_eq!(Statement::read(text).command, Command::SetConfig(expected));
    }
}
