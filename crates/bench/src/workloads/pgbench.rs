//! `tpcb-like`, `simple-update`, `select-only`: pgbench's transactions on pgbench's tables, on either
//! protocol.

use super::options::Options;
use super::{At, Params, Workload};
use crate::client::blocking::{Client, ClientError};
use crate::dice::Dice;
use crate::fill::{Job, RowWriter, Rows, Stage, cut};
use crate::statement::{Expect, Query, Row, Statement, Value};
use crate::url::Dialect;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Accounts, tellers and branches of scale 1.
const ACCOUNTS: i64 = 100_000;
const TELLERS: i64 = 10;

/// Rows that one job of `prepare` fills.
const JOB_ROWS: u64 = 25_000;

/// Statements, by their place in [`Pgbench::statements`].
const BEGIN: usize = 0;
const UPDATE_ACCOUNT: usize = 1;
const SELECT_ACCOUNT: usize = 2;
const UPDATE_TELLER: usize = 3;
const UPDATE_BRANCH: usize = 4;
const INSERT_HISTORY: usize = 5;
const END: usize = 6;

/// One of the three workloads.
pub struct Pgbench {
    name: &'static str,
    dialect: Dialect,
    options: Options,
    /// The scale of the tables: as asked for, else as found by `probe`.
    scale: AtomicU32,
    statements: Vec<Statement>,
    steps: &'static [usize],
}

impl Pgbench {
    /// The workload of this name.
    ///
    /// # Errors
    /// pgbench has no workload of this name.
    pub fn new(name: &str, params: &Params) -> Result<Self, String> {
        let (name, steps): (_, &'static [usize]) = match name {
            "tpcb-like" => (
                "tpcb-like",
                &[BEGIN, UPDATE_ACCOUNT, SELECT_ACCOUNT, UPDATE_TELLER, UPDATE_BRANCH, INSERT_HISTORY, END],
            ),
            "simple-update" => {
                ("simple-update", &[BEGIN, UPDATE_ACCOUNT, SELECT_ACCOUNT, INSERT_HISTORY, END])
            }
            "select-only" => ("select-only", &[SELECT_ACCOUNT]),
            other => return Err(format!("unknown workload '{other}'")),
        };
        let end = match params.dialect {
            Dialect::Postgres => "END",
            Dialect::Mysql => "COMMIT",
        };
        let texts = [
            "BEGIN",
            "UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ?",
            "SELECT abalance FROM pgbench_accounts WHERE aid = ?",
            "UPDATE pgbench_tellers SET tbalance = tbalance + ? WHERE tid = ?",
            "UPDATE pgbench_branches SET bbalance = bbalance + ? WHERE bid = ?",
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP)",
            end,
        ];
        let statements = texts.iter().map(|text| Statement::new(text)).collect();
        let options = params.options.clone();
        let scale = AtomicU32::new(options.scale.unwrap_or(1));
        Ok(Pgbench { name, dialect: params.dialect, options, scale, statements, steps })
    }

    fn scale(&self) -> i64 {
        i64::from(self.scale.load(Ordering::Relaxed))
    }
}

impl Workload for Pgbench {
    fn name(&self) -> &'static str {
        self.name
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn query(&self, at: At, _heard: &[Row], query: &mut Query) -> bool {
        let Some(&statement) = self.steps.get(usize::from(at.step)) else { return false };
        let (mut dice, scale) = (Dice::new(self.options.seed, at.client, at.event, 0), self.scale());
        // In pgbench's order, all of them in each step: so they are the same in all steps of an event.
        let aid = Value::Int(self.options.ids().draw(&mut dice, 1, ACCOUNTS * scale));
        let bid = Value::Int(dice.uniform(1, scale));
        let tid = Value::Int(dice.uniform(1, TELLERS * scale));
        let delta = Value::Int(dice.uniform(-5000, 5000));
        match statement {
            UPDATE_ACCOUNT => query.set(statement, [delta, aid], Expect::Success),
            SELECT_ACCOUNT => query.set(statement, [aid], Expect::Row),
            UPDATE_TELLER => query.set(statement, [delta, tid], Expect::Success),
            UPDATE_BRANCH => query.set(statement, [delta, bid], Expect::Success),
            INSERT_HISTORY => query.set(statement, [tid, bid, aid, delta], Expect::Success),
            _ => query.set(statement, [], Expect::Success),
        }
        true
    }

    fn options(&self) -> BTreeMap<String, String> {
        let mut options = self.options.of_tables();
        options.retain(|name, _| name == "distribution");
        options.insert("scale".to_owned(), self.scale().to_string());
        options
    }

    fn seed(&self) -> u64 {
        self.options.seed
    }

    fn prepare(&self) -> Vec<Stage> {
        let scale = u64::from(self.scale.load(Ordering::Relaxed));
        let (branches, tellers, accounts) = (scale, scale * TELLERS as u64, scale * ACCOUNTS as u64);
        let create = [
            "CREATE TABLE pgbench_history(tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
            "CREATE TABLE pgbench_tellers(tid int not null PRIMARY KEY, bid int, tbalance int, filler char(84))",
            "CREATE TABLE pgbench_accounts(aid int not null PRIMARY KEY, bid int, abalance int, filler char(84))",
            "CREATE TABLE pgbench_branches(bid int not null PRIMARY KEY, bbalance int, filler char(88))",
        ];
        let mut stages = vec![create.iter().map(|text| Job::Sql((*text).to_owned())).collect()];
        let table =
            |name: &str, columns, numbers, make| Rows { table: name.to_owned(), columns, numbers, make };
        let below = |each: i64| {
            Arc::new(move |number: u64, row: &mut RowWriter<'_>| {
                row.int(number as i64);
                row.int((number as i64 - 1) / each + 1);
                row.int(0);
                row.text(b"");
                row.end();
            })
        };
        let branch = Arc::new(|number: u64, row: &mut RowWriter<'_>| {
            row.int(number as i64);
            row.int(0);
            row.end();
        });
        let mut fill = cut(&table("pgbench_branches", "bid, bbalance", 1..=branches, branch), JOB_ROWS);
        let columns = "tid, bid, tbalance, filler";
        fill.extend(cut(&table("pgbench_tellers", columns, 1..=tellers, below(TELLERS)), JOB_ROWS));
        let columns = "aid, bid, abalance, filler";
        fill.extend(cut(&table("pgbench_accounts", columns, 1..=accounts, below(ACCOUNTS)), JOB_ROWS));
        stages.push(fill);
        if self.dialect == Dialect::Postgres {
            stages.push(TABLES.iter().map(|table| Job::Sql(format!("VACUUM ANALYZE {table}"))).collect());
        }
        stages
    }

    fn probe(&self, client: &mut Client) -> Result<Option<String>, ClientError> {
        let mut branches = 0;
        client.ask("SELECT count(*) FROM pgbench_branches", &mut |got| {
            branches = got.as_int().unwrap_or(0);
        })?;
        let branches = u32::try_from(branches).unwrap_or(0);
        if branches == 0 || self.options.scale.is_some_and(|scale| scale > branches) {
            return Err(ClientError::own(format!(
                "the tables are of scale {branches}: run 'prepare' (or pgbench -i) with the --scale wanted"
            )));
        }
        self.scale.store(self.options.scale.unwrap_or(branches), Ordering::Relaxed);
        Ok(None)
    }

    fn cleanup(&self) -> Vec<String> {
        TABLES.iter().map(|table| format!("DROP TABLE IF EXISTS {table}")).collect()
    }
}

const TABLES: [&str; 4] = ["pgbench_branches", "pgbench_tellers", "pgbench_accounts", "pgbench_history"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_transaction_uses_one_set_of_numbers() {
        let params = Params { dialect: Dialect::Mysql, connections: 1, options: Options::default() };
        let workload = Pgbench::new("tpcb-like", &params).unwrap();
        let mut queries = Vec::new();
        for step in 0.. {
            let mut query = Query::default();
            if !workload.query(At { client: 0, event: 9, step }, &[], &mut query) {
                break;
            }
            queries.push(query);
        }
        assert_eq!(queries.len(), 7);
        let [update, select, teller, branch, history] = &queries[1..6] else { panic!("seven steps") };
        assert_eq!(update.params[1], select.params[0]);
        let wanted = [&teller.params[1], &branch.params[1], &select.params[0], &update.params[0]];
        assert_eq!(history.params.iter().collect::<Vec<_>>(), wanted);
        assert_eq!(workload.statements()[queries[6].statement].label(), "COMMIT");
    }
}
