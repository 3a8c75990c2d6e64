//! The work of `prepare`: statements and rows, in stages.
//!
//! A workload defines the work; [`crate::prepare`] does it. The jobs of a stage may run at the same time, on
//! several connections; a stage begins when the one before it has ended.

use crate::statement::{Value, write_int};
use crate::url::Dialect;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Jobs that may run at the same time.
pub type Stage = Vec<Job>;

/// Makes one row: its number, and where its values go.
pub type MakeRow = Arc<dyn Fn(u64, &mut RowWriter<'_>) + Send + Sync>;

/// One piece of work.
#[derive(Clone)]
pub enum Job {
    /// A statement.
    Sql(String),
    /// Rows of a table.
    Rows(Rows),
}

/// Rows of a table.
#[derive(Clone)]
pub struct Rows {
    /// Its name.
    pub table: String,
    /// The columns that are filled, in order, with commas.
    pub columns: &'static str,
    /// Numbers of the rows.
    pub numbers: RangeInclusive<u64>,
    /// How each is made. May make several rows for one number.
    pub make: MakeRow,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Job::Sql(text) => f.write_str(text),
            Job::Rows(rows) => write!(f, "rows {:?} of {}", rows.numbers, rows.table),
        }
    }
}

impl Job {
    /// Rows it makes, as progress counts them.
    pub fn rows(&self) -> u64 {
        match self {
            Job::Sql(_) => 0,
            Job::Rows(rows) => (rows.numbers.end() + 1).saturating_sub(*rows.numbers.start()),
        }
    }
}

/// Cuts the rows of a table into jobs of at most `each`.
pub fn cut(rows: &Rows, each: u64) -> Stage {
    let (mut first, last) = (*rows.numbers.start(), *rows.numbers.end());
    let mut jobs = Vec::new();
    while first <= last {
        let end = last.min(first + each.max(1) - 1);
        jobs.push(Job::Rows(Rows { numbers: first..=end, ..rows.clone() }));
        first = end + 1;
    }
    jobs
}

/// Takes values and writes them as COPY's text format or as the tuples of an INSERT.
pub struct RowWriter<'a> {
    out: &'a mut Vec<u8>,
    copy: bool,
    dialect: Dialect,
    in_row: bool,
    rows: u64,
}

impl<'a> RowWriter<'a> {
    /// For COPY ... FROM STDIN in text format.
    pub fn copy(out: &'a mut Vec<u8>) -> Self {
        RowWriter { out, copy: true, dialect: Dialect::Postgres, in_row: false, rows: 0 }
    }

    /// For INSERT ... VALUES; `rows` stand before it already.
    pub fn values(out: &'a mut Vec<u8>, dialect: Dialect, rows: u64) -> Self {
        RowWriter { out, copy: false, dialect, in_row: false, rows }
    }

    fn separate(&mut self) {
        match (self.copy, std::mem::replace(&mut self.in_row, true)) {
            (true, true) => self.out.push(b'\t'),
            (true, false) => {}
            (false, true) => self.out.push(b','),
            (false, false) => self.out.extend_from_slice(if self.rows > 0 { b",(" } else { b"(" }),
        }
    }

    /// A whole number.
    pub fn int(&mut self, n: i64) {
        self.separate();
        write_int(n, self.out);
    }

    /// A number in decimal digits.
    pub fn number(&mut self, digits: &str) {
        self.separate();
        self.out.extend_from_slice(digits.as_bytes());
    }

    /// Text without control characters.
    pub fn text(&mut self, text: &[u8]) {
        self.separate();
        if !self.copy {
            return Value::Text(text.to_vec()).write_literal(self.dialect, self.out);
        }
        for &byte in text {
            if byte == b'\\' {
                self.out.push(b'\\');
            }
            self.out.push(byte);
        }
    }

    /// NULL.
    pub fn null(&mut self) {
        self.separate();
        self.out.extend_from_slice(if self.copy { b"\\N" } else { b"NULL" });
    }

    /// The row is whole.
    pub fn end(&mut self) {
        self.out.push(if self.copy { b'\n' } else { b')' });
        self.in_row = false;
        self.rows += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(mut row: RowWriter<'_>) {
        for n in 1..=2 {
            row.int(n);
            row.text(br"a\b");
            row.null();
            row.number("1.50");
            row.end();
        }
    }

    #[test]
    fn both_forms() {
        let (mut copy, mut values) = (Vec::new(), Vec::new());
        write(RowWriter::copy(&mut copy));
        write(RowWriter::values(&mut values, Dialect::Mysql, 0));
        assert_eq!(String::from_utf8(copy).unwrap(), "1\ta\\\\b\t\\N\t1.50\n2\ta\\\\b\t\\N\t1.50\n");
        assert_eq!(String::from_utf8(values).unwrap(), r"(1,'a\\b',NULL,1.50),(2,'a\\b',NULL,1.50)");
    }

    #[test]
    fn cut_covers_all_rows_once() {
        let rows = Rows { table: "t".to_owned(), columns: "id", numbers: 1..=25, make: Arc::new(|_, _| {}) };
        let jobs = cut(&rows, 10);
        assert_eq!(jobs.iter().map(Job::rows).collect::<Vec<_>>(), [10, 10, 5]);
        assert_eq!(jobs.len(), 3);
    }
}
