//! `select_random_points` and `select_random_ranges`: rows whose k is one of some random numbers, or a count
//! of those whose k lies in one of some short ranges. As in sysbench each client has a part of the table to
//! itself.

use super::options::Options;
use super::{At, Params, Workload, oltp};
use crate::client::blocking::{Client, ClientError};
use crate::dice::Dice;
use crate::fill::Stage;
use crate::statement::{Expect, Query, Row, Statement, Value};
use crate::url::Dialect;
use std::collections::BTreeMap;

/// What is random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Numbers.
    Points,
    /// Where ranges begin.
    Ranges,
}

/// The workload.
pub struct SelectRandom {
    choice: Choice,
    dialect: Dialect,
    options: Options,
    connections: u32,
    statements: [Statement; 1],
}

impl SelectRandom {
    /// The workload on these tables.
    pub fn new(choice: Choice, params: &Params) -> Self {
        let options = Options { tables: 1, ..params.options.clone() };
        let text = match choice {
            Choice::Points => {
                let points = vec!["?"; usize::from(options.random_points)].join(", ");
                format!("SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({points})")
            }
            Choice::Ranges => {
                let ranges = vec!["k BETWEEN ? AND ?"; usize::from(options.number_of_ranges)].join(" OR ");
                format!("SELECT count(k) FROM sbtest1 WHERE {ranges}")
            }
        };
        let (dialect, connections) = (params.dialect, params.connections.max(1));
        SelectRandom { choice, dialect, options, connections, statements: [Statement::new(&text)] }
    }
}

/// The part of the table that is one client's: from where to where.
fn part(client: u32, connections: u32, table_size: u32) -> (i64, i64) {
    let length = f64::from(table_size) / f64::from(connections);
    let first = length * f64::from(client % connections);
    (first as i64, (first + length) as i64)
}

impl Workload for SelectRandom {
    fn name(&self) -> &'static str {
        match self.choice {
            Choice::Points => "select_random_points",
            Choice::Ranges => "select_random_ranges",
        }
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn query(&self, at: At, _heard: &[Row], query: &mut Query) -> bool {
        if at.step > 0 {
            return false;
        }
        let mut dice = Dice::new(self.options.seed, at.client, at.event, 0);
        let (first, last) = part(at.client, self.connections, self.options.table_size);
        let ids = self.options.ids();
        match self.choice {
            Choice::Points => {
                let of = 0..self.options.random_points;
                query.set(0, of.map(|_| Value::Int(ids.draw(&mut dice, first, last))), Expect::Success);
            }
            Choice::Ranges => {
                query.set(0, [], Expect::Row);
                for _ in 0..self.options.number_of_ranges {
                    let from = ids.draw(&mut dice, first, last);
                    let to = from + i64::from(self.options.delta);
                    query.params.extend([Value::Int(from), Value::Int(to)]);
                }
            }
        }
        true
    }

    fn options(&self) -> BTreeMap<String, String> {
        let mut options = self.options.of_tables();
        let mut put = |name: &str, value: String| options.insert(name.to_owned(), value);
        match self.choice {
            Choice::Points => {
                put("random-points", self.options.random_points.to_string());
            }
            Choice::Ranges => {
                put("number-of-ranges", self.options.number_of_ranges.to_string());
                put("delta", self.options.delta.to_string());
            }
        }
        options
    }

    fn seed(&self) -> u64 {
        self.options.seed
    }

    fn prepare(&self) -> Vec<Stage> {
        oltp::stages(self.dialect, &self.options, false)
    }

    fn probe(&self, client: &mut Client) -> Result<Option<String>, ClientError> {
        oltp::probe(client, &self.options).map(|_| None)
    }

    fn cleanup(&self) -> Vec<String> {
        oltp::drops(&self.options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap_by_more_than_their_edge() {
        let parts: Vec<_> = (0..4).map(|client| part(client, 4, 100)).collect();
        assert_eq!(parts, [(0, 25), (25, 50), (50, 75), (75, 100)]);
    }
}
