//! A table as JSON, made piece by piece while it is sent.
//!
//! Invariant: a piece is at most [`PIECE_BYTES`] and one row long, so that 100,000 rows hold up nobody on the
//! control thread and are not in memory twice.

use hyper::body::{Body, Bytes, Frame};
use std::convert::Infallible;
use std::fmt::Write;
use std::pin::Pin;
use std::task::{Context, Poll};
use weir_wire::console::{Kind, Table};

const PIECE_BYTES: usize = 64 * 1024;

/// `{"table": NAME, "count": ROWS, "rows": [{COLUMN: VALUE}]}`.
pub(super) struct Rows {
    name: &'static str,
    table: Table,
    /// The next row.
    at: usize,
    /// Rows still to be sent.
    left: usize,
    /// The columns' names as JSON.
    keys: Vec<String>,
    state: State,
    _hold: Box<dyn Send>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Begin,
    FirstRow,
    Row,
    End,
}

// Nothing in it is pinned.
impl Unpin for Rows {}

impl Rows {
    pub(super) fn new(name: &'static str, table: Table, limit: usize, hold: Box<dyn Send>) -> Rows {
        let keys = table.columns.iter().map(|column| text(column.name)).collect();
        Rows { name, left: limit.min(table.len()), table, at: 0, keys, state: State::Begin, _hold: hold }
    }

    fn piece(&mut self) -> String {
        let mut out = String::with_capacity(PIECE_BYTES + 1024);
        if self.state == State::Begin {
            // Writing to a String cannot fail.
            let _ = write!(out, "{{\"table\":{},\"count\":{},\"rows\":[", text(self.name), self.table.len());
            self.state = State::FirstRow;
        }
        while out.len() < PIECE_BYTES {
            let row = if self.left == 0 { None } else { self.table.row(self.at) };
            let Some((values, next)) = row else {
                out.push_str("\n]}\n");
                self.state = State::End;
                break;
            };
            out.push_str(if self.state == State::FirstRow { "\n{" } else { ",\n{" });
            for (index, value) in values.iter().enumerate() {
                let column = &self.table.columns[index];
                let comma = if index == 0 { "" } else { "," };
                let _ = write!(out, "{comma}{}:{}", self.keys[index], json(column.kind, *value));
            }
            out.push('}');
            (self.state, self.at, self.left) = (State::Row, next, self.left - 1);
        }
        out
    }
}

impl Body for Rows {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(match self.state {
            State::End => None,
            State::Begin | State::FirstRow | State::Row => Some(Ok(Frame::data(self.piece().into()))),
        })
    }
}

/// A value; a whole number is a number.
fn json(kind: Kind, value: Option<&[u8]>) -> String {
    let Some(value) = value else { return "null".to_owned() };
    let value = String::from_utf8_lossy(value);
    let digits = value.strip_prefix('-').unwrap_or(&value);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match kind {
        Kind::Int4 | Kind::Int8 | Kind::Numeric if is_number => value.into_owned(),
        Kind::Text | Kind::Int4 | Kind::Int8 | Kind::Numeric => text(&value),
    }
}

fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::console::Column;

    fn all(mut rows: Rows) -> (String, usize) {
        let (mut out, mut pieces) = (String::new(), 0);
        while rows.state != State::End {
            let piece = rows.piece();
            assert!(piece.len() < PIECE_BYTES + 4096, "{}", piece.len());
            out.push_str(&piece);
            pieces += 1;
        }
        (out, pieces)
    }

    fn table(rows: usize) -> Table {
        let columns = [
            Column { name: "name", kind: Kind::Text },
            Column { name: "n", kind: Kind::Int8 },
            Column { name: "big", kind: Kind::Numeric },
        ];
        let mut table = Table::new(&columns);
        for _ in 0..rows {
            table.text("</script>\"'\u{0}\u{2028}\u{1F600}").number(-12i64).null();
        }
        table
    }

    #[test]
    fn names_are_text_and_numbers_are_numbers() {
        let (out, _) = all(Rows::new("clients", table(2), usize::MAX, Box::new(())));
        let value: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&value["table"], &value["count"]), (&"clients".into(), &2.into()));
        assert_eq!(value["rows"][1]["name"], "</script>\"'\u{0}\u{2028}\u{1F600}");
        assert_eq!((&value["rows"][0]["n"], &value["rows"][0]["big"]), (&(-12).into(), &().into()));
        assert!(value["rows"][2].is_null());
    }

    #[test]
    fn a_long_table_comes_in_pieces_and_may_be_cut() {
        let (out, pieces) = all(Rows::new("clients", table(10_000), usize::MAX, Box::new(())));
        let value: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(value["rows"].as_array().unwrap().len(), 10_000);
        assert!(pieces > 5, "{pieces}");
        for (limit, wanted) in [(0, 0), (3, 3), (usize::MAX, 7)] {
            let (out, _) = all(Rows::new("x", table(7), limit, Box::new(())));
            let value: serde_json::Value = serde_json::from_str(&out).unwrap();
            assert_eq!(value["rows"].as_array().unwrap().len(), wanted);
            assert_eq!(value["count"], 7);
        }
    }

    #[test]
    fn what_is_no_number_is_text_in_a_column_of_numbers() {
        assert_eq!(json(Kind::Int4, Some(b"-")), "\"-\"");
        assert_eq!(json(Kind::Int4, Some(b"1e5")), "\"1e5\"");
        assert_eq!(json(Kind::Text, Some(b"12")), "\"12\"");
    }
}
