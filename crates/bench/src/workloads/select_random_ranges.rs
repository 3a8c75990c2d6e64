//! `select_random_ranges`: rows whose k lies in one of some short ranges, counted. As in sysbench each client has a
//! part of the table to itself.

use super::options::Options;
use super::select_random_points::part;
use super::{At, Params, Workload, oltp};
use crate::client::blocking::{Client, ClientError};
use crate::dice::Dice;
use crate::fill::Stage;
use crate::statement::{Expect, Query, Row, Statement, Value};
use crate::url::Dialect;
use std::collections::BTreeMap;

/// The workload.
pub struct SelectRandomRanges {
    dialect: Dialect,
    options: Options,
    connections: u32,
    statements: [Statement; 1],
}

impl SelectRandomRanges {
    /// The workload on these tables.
    pub fn new(params: &Params) -> Self {
        let options = Options { tables: 1, ..params.options.clone() };
        let ranges = vec!["k BETWEEN ? AND ?"; usize::from(options.number_of_ranges)].join(" OR ");
        let statement = Statement::new(&format!("SELECT count(k) FROM sbtest1 WHERE {ranges}"));
        let connections = params.connections.max(1);
        SelectRandomRanges { dialect: params.dialect, options, connections, statements: [statement] }
    }
}

impl Workload for SelectRandomRanges {
    fn name(&self) -> &'static str {
        "select_random_ranges"
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
        query.set(0, [], Expect::Row);
        for _ in 0..self.options.number_of_ranges {
            let from = ids.draw(&mut dice, first, last);
            query.params.extend([Value::Int(from), Value::Int(from + i64::from(self.options.delta))]);
        }
        true
    }

    fn options(&self) -> BTreeMap<String, String> {
        let mut options = self.options.of_tables();
        options.insert("number-of-ranges".to_owned(), self.options.number_of_ranges.to_string());
        options.insert("delta".to_owned(), self.options.delta.to_string());
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
