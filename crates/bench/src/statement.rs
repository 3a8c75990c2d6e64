//! Statements of a workload, their parameters and expected results.
//!
//! A statement is written once with `?` for each parameter; clients send it as text with the values in place,
//! or with `?` (MySQL) and `$n` (PostgreSQL) and separate values.

use crate::column;
use crate::url::Dialect;

/// A parameter, or a value that came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// Any other number, in decimal digits.
    Number(Vec<u8>),
    /// Text.
    Text(Vec<u8>),
    /// NULL.
    Null,
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Int(number) => number.fmt(f),
            Value::Number(digits) => String::from_utf8_lossy(digits).fmt(f),
            Value::Text(text) => write!(f, "'{}'", String::from_utf8_lossy(text)),
            Value::Null => f.write_str("NULL"),
        }
    }
}

/// What a statement counts as in sysbench's r/w/o.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// SELECT and its like.
    Read,
    /// INSERT, UPDATE, DELETE, REPLACE.
    Write,
    /// All others: BEGIN, COMMIT, SET, ...
    Other,
}

impl Kind {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Other => "other",
        }
    }

    fn of(text: &str) -> Kind {
        let text = text.trim_start();
        let word = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        match word.to_ascii_uppercase().as_str() {
            "SELECT" | "VALUES" | "TABLE" => Kind::Read,
            "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "MERGE" => Kind::Write,
            _ => Kind::Other,
        }
    }
}

/// A statement with places for parameters.
#[derive(Debug, Clone)]
pub struct Statement {
    parts: Vec<String>,
    postgres: String,
    mysql: String,
    label: String,
    kind: Kind,
}

impl Statement {
    /// A statement in which each `?` is a parameter: none may stand in a literal.
    pub fn new(text: &str) -> Self {
        Statement::labelled(text, text)
    }

    /// The same, under a name in reports. Statements of one name (those of several tables) are reported
    /// together.
    pub fn labelled(text: &str, label: &str) -> Self {
        Statement::from_parts(text.split('?').map(str::to_owned).collect(), label)
    }

    /// A statement of the texts between its parameters: at least one.
    pub fn from_parts(parts: Vec<String>, label: &str) -> Self {
        let mut postgres = String::new();
        for (number, part) in parts.iter().enumerate() {
            if number > 0 {
                postgres.push_str(&format!("${number}"));
            }
            postgres.push_str(part);
        }
        let kind = Kind::of(parts.first().map_or("", String::as_str));
        Statement { mysql: parts.join("?"), parts, postgres, label: label.to_owned(), kind }
    }

    /// How many parameters it takes.
    pub fn params(&self) -> usize {
        self.parts.len().saturating_sub(1)
    }

    /// Its name in reports.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// What it counts as.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The text with placeholders of this dialect.
    pub fn template(&self, dialect: Dialect) -> &str {
        match dialect {
            Dialect::Postgres => &self.postgres,
            Dialect::Mysql => &self.mysql,
        }
    }

    /// Appends the text with the values in place.
    pub fn render(&self, values: &[Value], dialect: Dialect, out: &mut Vec<u8>) {
        let mut values = values.iter();
        for (n, part) in self.parts.iter().enumerate() {
            if n > 0
                && let Some(value) = values.next()
            {
                value.write_literal(dialect, out);
            }
            out.extend_from_slice(part.as_bytes());
        }
    }
}

impl Value {
    /// Appends the value as an SQL literal for servers with their default settings (PostgreSQL:
    /// standard_conforming_strings on; MySQL: backslash escapes).
    pub fn write_literal(&self, dialect: Dialect, out: &mut Vec<u8>) {
        match self {
            Value::Int(n) => write_int(*n, out),
            Value::Number(text) => out.extend_from_slice(text),
            Value::Null => out.extend_from_slice(b"NULL"),
            Value::Text(text) => {
                out.push(b'\'');
                if text.iter().any(|b| matches!(b, b'\'' | b'\\')) {
                    for &byte in text {
                        match (byte, dialect) {
                            (b'\'', _) => out.extend_from_slice(b"''"),
                            (b'\\', Dialect::Mysql) => out.extend_from_slice(b"\\\\"),
                            (byte, _) => out.push(byte),
                        }
                    }
                } else {
                    out.extend_from_slice(text);
                }
                out.push(b'\'');
            }
        }
    }

    /// Appends the value as plain text. NULL has none.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Value::Int(n) => write_int(*n, out),
            Value::Number(text) | Value::Text(text) => out.extend_from_slice(text),
            Value::Null => {}
        }
    }

    /// As a whole number, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(n) => Some(*n),
            Value::Number(text) | Value::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
            Value::Null => None,
        }
    }

    /// As a number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Number(text) | Value::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
            Value::Null => None,
        }
    }
}

/// Appends a number in decimal without going through `format!`: this runs once for each query.
pub fn write_int(n: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = n.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if n < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// The first value of the first row of a reply, as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Got<'a> {
    /// NULL.
    Null,
    /// Text, or a number in text.
    Text(&'a [u8]),
    /// A number in binary.
    Int(i64),
    /// Longer than is looked at.
    TooLong,
}

impl Got<'_> {
    /// As a whole number, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Got::Int(n) => Some(*n),
            Got::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
            Got::Null | Got::TooLong => None,
        }
    }
}

/// A row that a workload asked to hear.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// The step of the event that asked.
    pub step: u16,
    /// Its columns.
    pub values: Vec<Value>,
}

/// What must come back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Expect {
    /// Any success.
    #[default]
    Success,
    /// At least one row.
    Row,
    /// A first row whose first value is this.
    First(Value),
    /// If a row comes, a digit column that belongs to this row of this table (see [`crate::column`]).
    Column {
        /// Number of the table.
        table: u32,
        /// The row's id.
        id: u32,
        /// A reply without a row will not do.
        needed: bool,
    },
}

impl Expect {
    /// The first value is right.
    pub fn matches(&self, got: Got<'_>) -> bool {
        match (self, got) {
            (Expect::Success | Expect::Row, _) => true,
            (Expect::Column { table, id, .. }, Got::Text(text)) => column::belongs(text, *table, *id),
            (Expect::First(Value::Null), got) => got == Got::Null,
            (Expect::First(Value::Int(a)), Got::Int(b)) => *a == b,
            (Expect::First(Value::Int(a)), Got::Text(text)) => {
                std::str::from_utf8(text).ok().and_then(|t| t.parse::<i64>().ok()) == Some(*a)
            }
            (Expect::First(Value::Text(a) | Value::Number(a)), Got::Text(b)) => {
                // CHAR(n) comes back padded with spaces from PostgreSQL and without them from MySQL.
                a.trim_ascii_end() == b.trim_ascii_end()
            }
            (Expect::First(Value::Text(_) | Value::Number(_)) | Expect::Column { .. }, Got::Int(_)) => false,
            (Expect::First(_) | Expect::Column { .. }, Got::Null | Got::TooLong) => false,
        }
    }

    /// A reply without a row will not do.
    pub fn needs_row(&self) -> bool {
        match self {
            Expect::Success => false,
            Expect::Row | Expect::First(_) => true,
            Expect::Column { needed, .. } => *needed,
        }
    }

    /// The first value is looked at.
    pub fn looks(&self) -> bool {
        match self {
            Expect::Success | Expect::Row => false,
            Expect::First(_) | Expect::Column { .. } => true,
        }
    }
}

/// One query to be sent. Workloads fill it; it is reused from query to query.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Index in the workload's statements.
    pub statement: usize,
    /// Its parameters.
    pub params: Vec<Value>,
    /// What must come back.
    pub expect: Expect,
    /// The workload wants to hear the rows.
    pub listen: bool,
}

impl Query {
    /// Sets all of it. The rows are not heard.
    pub fn set(&mut self, statement: usize, params: impl IntoIterator<Item = Value>, expect: Expect) {
        self.statement = statement;
        self.params.clear();
        self.params.extend(params);
        self.expect = expect;
        self.listen = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(statement: &Statement, values: &[Value]) -> String {
        let mut out = Vec::new();
        statement.render(values, Dialect::Mysql, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn placeholders() {
        let s = Statement::new("SELECT c FROM t WHERE a=? AND b=?");
        assert_eq!(s.params(), 2);
        assert_eq!(s.template(Dialect::Postgres), "SELECT c FROM t WHERE a=$1 AND b=$2");
        assert_eq!(s.template(Dialect::Mysql), "SELECT c FROM t WHERE a=? AND b=?");
        let values = [Value::Int(-7), Value::Text(b"x y".to_vec())];
        assert_eq!(rendered(&s, &values), "SELECT c FROM t WHERE a=-7 AND b='x y'");
    }

    #[test]
    fn quotes_end_no_literal() {
        let text = Value::Text(br"it's \".to_vec());
        let (mut postgres, mut mysql) = (Vec::new(), Vec::new());
        text.write_literal(Dialect::Postgres, &mut postgres);
        text.write_literal(Dialect::Mysql, &mut mysql);
        assert_eq!((&postgres[..], &mysql[..]), (&br"'it''s \'"[..], &br"'it''s \\'"[..]));
    }

    #[test]
    fn kinds_are_those_of_sysbench() {
        let kind = |text: &str| Statement::new(text).kind();
        assert_eq!((kind(" select 1"), kind("SELECT(1)")), (Kind::Read, Kind::Read));
        assert_eq!((kind("UPDATE t SET a=?"), kind("delete from t")), (Kind::Write, Kind::Write));
        assert_eq!((kind("BEGIN"), kind("COMMIT")), (Kind::Other, Kind::Other));
    }

    #[test]
    fn numbers() {
        for n in [0, 1, -1, 10, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            write_int(n, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), n.to_string());
        }
    }

    #[test]
    fn expectations() {
        let five = Expect::First(Value::Int(5));
        assert!(five.matches(Got::Text(b"5")) && five.matches(Got::Int(5)));
        assert!(!five.matches(Got::Text(b"6")) && !five.matches(Got::Int(6)));
        assert!(!five.matches(Got::Null) && !five.matches(Got::TooLong) && !five.matches(Got::Text(b"")));
        let text = Expect::First(Value::Text(b"ab".to_vec()));
        assert!(text.matches(Got::Text(b"ab  ")) && !text.matches(Got::Text(b"abc")));
        assert!(Expect::Success.matches(Got::Null) && !Expect::Success.needs_row());
        assert!(Expect::Row.needs_row() && five.needs_row());
    }
}
