//! `tpcc`: the mix of sysbench-tpcc on its nine tables: new_order, payment, orderstatus, delivery and
//! stocklevel as 10 : 10 : 1 : 1 : 1, without keying and think times. After a run the consistency conditions
//! of TPC-C are checked.
//!
//! Unlike sysbench-tpcc, one in a hundred order lines and 15 in a hundred payments go to another warehouse.

mod check;
mod tables;
mod transactions;

use super::options::{Isolation, Options};
use super::{At, Params, Workload};
use crate::client::blocking::{Client, ClientError};
use crate::dice::{Dice, mix};
use crate::fill::Stage;
use crate::record::result::CheckLine;
use crate::statement::{Query, Row, Statement};
use crate::url::Dialect;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// Items, and stock rows of a warehouse.
const ITEMS: i64 = 100_000;
/// Districts of a warehouse.
const DISTRICTS: i64 = 10;
/// Customers, and orders to begin with, of a district.
const CUSTOMERS: i64 = 3_000;
/// The first order that is not delivered to begin with.
const FIRST_NEW_ORDER: i64 = 2_101;

/// In the order of [`kind`].
const NAMES: &[&str] = &["new_order", "payment", "orderstatus", "delivery", "stocklevel"];

/// The workload.
pub struct Tpcc {
    dialect: Dialect,
    options: Options,
    /// Warehouses of each set: as asked for, else as found by `probe`.
    scale: AtomicU32,
    statements: Vec<Statement>,
    greeting: Vec<String>,
}

impl Tpcc {
    /// The workload on `--tables` sets of `--scale` warehouses.
    pub fn new(params: &Params) -> Tpcc {
        let (dialect, options) = (params.dialect, params.options.clone());
        Tpcc {
            dialect,
            scale: AtomicU32::new(options.scale.unwrap_or(1)),
            statements: transactions::statements(options.tables, begin(dialect, options.trx_level)),
            greeting: greeting(dialect, options.trx_level),
            options,
        }
    }
}

/// PostgreSQL takes the isolation level with BEGIN: nothing is left on the session, so that a pooler can
/// share servers.
fn begin(dialect: Dialect, level: Isolation) -> &'static str {
    match (dialect, level) {
        (Dialect::Mysql, _) | (Dialect::Postgres, Isolation::Rc) => "BEGIN",
        (Dialect::Postgres, Isolation::Rr) => "BEGIN ISOLATION LEVEL REPEATABLE READ",
        (Dialect::Postgres, Isolation::Ser) => "BEGIN ISOLATION LEVEL SERIALIZABLE",
    }
}

fn greeting(dialect: Dialect, level: Isolation) -> Vec<String> {
    match dialect {
        Dialect::Postgres => Vec::new(),
        Dialect::Mysql => vec![
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", level.sql()),
            "SET AUTOCOMMIT=0".to_owned(),
        ],
    }
}

/// Which transaction an event is: an index of [`NAMES`].
fn kind(seed: u64, at: At) -> usize {
    match Dice::new(seed, at.client, at.event, 0).uniform(1, 23) {
        1..=10 => 0,
        11..=20 => 1,
        21 => 2,
        22 => 3,
        _ => 4,
    }
}

/// NURand of the specification (clause 2.1.6): some values come more often.
fn nurand(dice: &mut Dice, seed: u64, a: i64, low: i64, high: i64) -> i64 {
    let c = (mix(seed, a as u64) % (a as u64 + 1)) as i64;
    ((dice.uniform(0, a) | dice.uniform(low, high)) + c) % (high - low + 1) + low
}

/// Clause 4.3.2.3: three syllables.
fn last_name(number: i64) -> String {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    [number / 100, number / 10, number].map(|n| SYLLABLES[(n % 10) as usize]).concat()
}

impl Workload for Tpcc {
    fn name(&self) -> &'static str {
        "tpcc"
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn query(&self, at: At, heard: &[Row], query: &mut Query) -> bool {
        let kind = kind(self.options.seed, at);
        let scale = i64::from(self.scale.load(Ordering::Relaxed));
        transactions::query(&self.options, scale, kind, at, heard, query)
    }

    fn transactions(&self) -> &'static [&'static str] {
        NAMES
    }

    fn transaction(&self, at: At) -> usize {
        kind(self.options.seed, at)
    }

    fn greeting(&self) -> &[String] {
        &self.greeting
    }

    fn options(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("tables".to_owned(), self.options.tables.to_string()),
            ("scale".to_owned(), self.scale.load(Ordering::Relaxed).to_string()),
            ("trx-level".to_owned(), self.options.trx_level.sql().to_owned()),
        ])
    }

    fn seed(&self) -> u64 {
        self.options.seed
    }

    fn prepare(&self) -> Vec<Stage> {
        tables::stages(self.dialect, &self.options, self.scale.load(Ordering::Relaxed))
    }

    fn probe(&self, client: &mut Client) -> Result<Option<String>, ClientError> {
        let mut least = i64::MAX;
        for set in 1..=self.options.tables {
            client.ask(&format!("SELECT count(*) FROM warehouse{set}"), &mut |got| {
                least = least.min(got.as_int().unwrap_or(0));
            })?;
        }
        let found = u32::try_from(least).unwrap_or(0);
        if found == 0 || self.options.scale.is_some_and(|scale| scale > found) {
            return Err(ClientError::own(format!(
                "the tables have {found} warehouses: run 'prepare' with the --scale and --tables wanted"
            )));
        }
        self.scale.store(self.options.scale.unwrap_or(found), Ordering::Relaxed);
        Ok(None)
    }

    fn has_check(&self) -> bool {
        true
    }

    fn check(&self, client: &mut Client) -> Result<Vec<CheckLine>, ClientError> {
        check::check(client, self.options.tables)
    }

    fn cleanup(&self) -> Vec<String> {
        tables::drops(self.options.tables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_specification() {
        assert_eq!((last_name(0), last_name(371)), ("BARBARBAR".to_owned(), "PRICALLYOUGHT".to_owned()));
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn the_mix_is_ten_ten_one_one_one() {
        let mut counts = [0; 5];
        for event in 0..23_000 {
            counts[kind(1, At { client: 3, event, step: 0 })] += 1;
        }
        for (count, wanted) in counts.iter().zip([10_000, 10_000, 1_000, 1_000, 1_000]) {
            assert!((f64::from(*count) / f64::from(wanted) - 1.0_f64).abs() < 0.12, "{counts:?}");
        }
    }

    #[test]
    fn nurand_stays_in_its_range() {
        let mut dice = Dice::new(1, 1, 1, 1);
        for _ in 0..5_000 {
            assert!((1..=3000).contains(&nurand(&mut dice, 1, 1023, 1, 3000)));
            assert!((0..=999).contains(&nurand(&mut dice, 1, 255, 0, 999)));
        }
    }
}
