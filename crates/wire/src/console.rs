//! Statements and answers of the administration console, independent of either protocol.
//!
//! Owns: a statement as received ([`Heard`]), and answers: a table, the end of a command, an error
//! ([`Answer`]). Must not know: what a statement means; how an answer is encoded.
//!
//! Invariant: the rows of a table are one buffer, so that those of 100,000 clients cost their bytes and not
//! one allocation per value.

/// What a front of the console found at the start of its client's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Nothing that can be acted on yet.
    Incomplete,
    /// `bytes[..len]` was answered by the front itself, into `out`.
    Answered {
        /// Bytes of it.
        len: usize,
    },
    /// `bytes[..len]` holds a statement, to be answered by [`Answer`].
    Statement {
        /// Bytes of it.
        len: usize,
        /// The statement.
        text: String,
    },
    /// The client says goodbye.
    Goodbye,
    /// It has sent what the console does not speak. What it is told is in `out`; it is to be closed.
    Refused,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number of 32 bits.
    Int4,
    /// A whole number of 64 bits.
    Int8,
    /// A whole number that PgBouncer shows as `numeric`.
    Numeric,
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
}

/// Rows of values; a value is text or NULL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Its columns.
    pub columns: Vec<Column>,
    /// Each value by its length (four bytes, big-endian; all ones: NULL) and its bytes.
    values: Vec<u8>,
    rows: usize,
    /// Values of the last row.
    filled: usize,
}

/// The length of NULL.
const NULL: u32 = u32::MAX;

impl Table {
    /// No rows.
    pub fn new(columns: &[Column]) -> Table {
        Table { columns: columns.to_vec(), ..Table::default() }
    }

    /// Rows so far.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Bytes of all values.
    pub fn bytes(&self) -> usize {
        self.values.len()
    }

    fn put(&mut self, length: u32, bytes: &[u8]) -> &mut Self {
        if self.filled == 0 {
            self.rows += 1;
        }
        self.filled = (self.filled + 1) % self.columns.len().max(1);
        self.values.extend_from_slice(&length.to_be_bytes());
        self.values.extend_from_slice(bytes);
        self
    }

    /// The next value: of the last row, or the first one of another.
    pub fn text(&mut self, text: &str) -> &mut Self {
        match u32::try_from(text.len()) {
            Ok(length) if length != NULL => self.put(length, text.as_bytes()),
            Ok(_) | Err(_) => self.null(),
        }
    }

    /// As [`Table::text`]; `None` is NULL.
    pub fn maybe(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(text),
            None => self.null(),
        }
    }

    /// The next value is a number.
    pub fn number(&mut self, number: impl itoa::Whole) -> &mut Self {
        self.text(&number.words())
    }

    /// The next value is NULL.
    pub fn null(&mut self) -> &mut Self {
        self.put(NULL, &[])
    }

    /// The value at this offset and the offset behind it; `None` behind the last one.
    pub fn value(&self, at: usize) -> Option<(Option<&[u8]>, usize)> {
        let length = u32::from_be_bytes(*self.values.get(at..)?.first_chunk::<4>()?);
        if length == NULL {
            return Some((None, at + 4));
        }
        let end = at + 4 + length as usize;
        Some((Some(self.values.get(at + 4..end)?), end))
    }

    /// The values of one row from an offset on, and the offset behind them; `None` when no row is left.
    pub fn row(&self, at: usize) -> Option<(Vec<Option<&[u8]>>, usize)> {
        let mut row = Vec::with_capacity(self.columns.len());
        let mut end = at;
        for _ in &self.columns {
            let (value, behind) = self.value(end)?;
            row.push(value);
            end = behind;
        }
        (!row.is_empty()).then_some((row, end))
    }
}

/// Whole numbers as words.
pub mod itoa {
    /// A whole number.
    pub trait Whole {
        /// In decimal.
        fn words(&self) -> String;
    }
    macro_rules! whole {
        ($($type:ty)*) => { $(impl Whole for $type { fn words(&self) -> String { self.to_string() } })* };
    }
    whole!(u16 u32 u64 usize i32 i64);
}

/// What a statement is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Rows.
    Rows(Table),
    /// A command has been done.
    Done {
        /// Its name, as PostgreSQL's CommandComplete has it.
        tag: String,
        /// What else is said: a line, and what it says in detail.
        notice: Option<(&'static str, &'static str)>,
    },
    /// It was not done.
    Error(String),
}

impl Answer {
    /// A command has been done, and there is nothing more to say of it.
    pub fn done(tag: &str) -> Answer {
        Answer::Done { tag: tag.to_owned(), notice: None }
    }
}

/// How much of an answer has been put into bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The columns have been.
    pub begun: bool,
    /// Offset of the next value.
    pub at: usize,
    /// MySQL: number of the next packet.
    pub seq: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were_put() {
        let columns = [Column { name: "a", kind: Kind::Text }, Column { name: "b", kind: Kind::Int4 }];
        let mut table = Table::new(&columns);
        assert_eq!(table.row(0), None);
        table.text("x").number(12usize).null().number(-1i64);
        assert_eq!(table.len(), 2);
        let (row, next) = table.row(0).unwrap();
        assert_eq!(row, [Some(&b"x"[..]), Some(b"12")]);
        let (row, next) = table.row(next).unwrap();
        assert_eq!(row, [None, Some(&b"-1"[..])]);
        assert_eq!(table.row(next), None);
    }
}
