//! `select_random_points`: rows whose k is one of some random numbers. As in sysbench each client has a part of the
//! table to itself.

use super::options::Options;
use super::{At, Params, Workload, oltp};
use crate::client::blocking::{Client, ClientError};
use crate::dice::Dice;
use crate::fill::Stage;
use crate::statement::{Expect, Query, Row, Statement, Value};
use crate::url::Dialect;
use std::collections::BTreeMap;

/// The workload.
pub struct SelectRandomPoints {
    dialect: Dialect,
    options: Options,
    connections: u32,
    statements: [Statement; 1],
}

impl SelectRandomPoints {
    /// The workload on these tables.
    pub fn new(params: &Params) -> Self {
        let options = Options { tables: 1, ..params.options.clone() };
        let points = vec!["?"; usize::from(options.random_points)].join(", ");
        let statement = Statement::new(&format!("SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({points})"));
        let connections = params.connections.max(1);
        SelectRandomPoints { dialect: params.dialect, options, connections, statements: [statement] }
    }
}

/// The part of the table that is one client's: from where to where.
pub(super) fn part(client: u32, connections: u32, table_size: u32) -> (i64, i64) {
    let length = f64::from(table_size) / f64::from(connections);
    let first = length * f64::from(client % connections);
    (first as i64, (first + length) as i64)
}

impl Workload for SelectRandomPoints {
    fn name(&self) -> &'static str {
        "select_random_points"
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
        let points = (0..self.options.random_points).map(|_| Value::Int(ids.draw(&mut dice, first, last)));
        query.set(0, points, Expect::Success);
        true
    }

    fn options(&self) -> BTreeMap<String, String> {
        let mut options = self.options.of_tables();
        options.insert("random-points".to_owned(), self.options.random_points.to_string());
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
