//! Statements of a workload, their parameters and what must come back.
//!
//! A statement is written once with `?` for each parameter; the clients send it as text with the values
//! in place, or as `?` (MySQL) and `$n` (PostgreSQL) with the values apart.

use crate::url::Dialect;

/// A parameter, or a value that came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// Text.
    Text(Vec<u8>),
}

/// A statement with places for parameters.
#[derive(Debug, Clone)]
pub struct Statement {
    parts: Vec<String>,
    postgres: String,
    mysql: String,
}

impl Statement {
    /// A statement in which each `?` is a parameter. (Workloads are ours: none has a `?` in a literal.)
    pub fn new(text: &str) -> Self {
        let parts: Vec<String> = text.split('?').map(str::to_owned).collect();
        let mut postgres = parts[0].clone();
        for (number, part) in parts.iter().enumerate().skip(1) {
            postgres.push_str(&format!("${number}{part}"));
        }
        Statement { parts, postgres, mysql: text.to_owned() }
    }

    /// How many parameters it takes.
    pub fn params(&self) -> usize {
        self.parts.len() - 1
    }

    /// The text with placeholders of this dialect.
    pub fn template(&self, dialect: Dialect) -> &str {
        match dialect {
            Dialect::Postgres => &self.postgres,
            Dialect::Mysql => &self.mysql,
        }
    }

    /// Appends the text with the values in place.
    pub fn render(&self, values: &[Value], out: &mut Vec<u8>) {
        let mut values = values.iter();
        for (n, part) in self.parts.iter().enumerate() {
            if n > 0
                && let Some(value) = values.next()
            {
                value.write_literal(out);
            }
            out.extend_from_slice(part.as_bytes());
        }
    }
}

impl Value {
    /// Appends the value as an SQL literal. Text must have neither quotes nor backslashes: both dialects
    /// then read it alike, whatever their settings.
    pub fn write_literal(&self, out: &mut Vec<u8>) {
        match self {
            Value::Int(n) => write_int(*n, out),
            Value::Text(text) => {
                debug_assert!(!text.iter().any(|b| matches!(b, b'\'' | b'\\' | 0)));
                out.push(b'\'');
                out.extend_from_slice(text);
                out.push(b'\'');
            }
        }
    }

    /// Appends the value as plain text.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Value::Int(n) => write_int(*n, out),
            Value::Text(text) => out.extend_from_slice(text),
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
}

impl Expect {
    /// The first value is right.
    pub fn matches(&self, got: Got<'_>) -> bool {
        match (self, got) {
            (Expect::Success | Expect::Row, _) => true,
            (Expect::First(Value::Int(a)), Got::Int(b)) => *a == b,
            (Expect::First(Value::Int(a)), Got::Text(text)) => {
                std::str::from_utf8(text).ok().and_then(|t| t.parse::<i64>().ok()) == Some(*a)
            }
            (Expect::First(Value::Text(a)), Got::Text(b)) => {
                // CHAR(n) comes back padded with spaces from PostgreSQL and without them from MySQL.
                a.trim_ascii_end() == b.trim_ascii_end()
            }
            (Expect::First(Value::Text(_)), Got::Int(_)) => false,
            (Expect::First(_), Got::Null | Got::TooLong) => false,
        }
    }

    /// A reply without a row will not do.
    pub fn needs_row(&self) -> bool {
        match self {
            Expect::Success => false,
            Expect::Row | Expect::First(_) => true,
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
}

impl Query {
    /// Sets all of it.
    pub fn set(&mut self, statement: usize, params: impl IntoIterator<Item = Value>, expect: Expect) {
        self.statement = statement;
        self.params.clear();
        self.params.extend(params);
        self.expect = expect;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(statement: &Statement, values: &[Value]) -> String {
        let mut out = Vec::new();
        statement.render(values, &mut out);
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
