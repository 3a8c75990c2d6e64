//! The work of clients: one file per workload.
//!
//! A workload is a pure function: the same seed, client, event and step (and rows received) always give the
//! same query. A connection therefore stores neither a query nor a generator of random numbers, and a reply
//! can be checked by computing the query again.

pub mod connect;
pub mod idle;
pub mod oltp;
pub mod oltp_delete;
pub mod oltp_insert;
pub mod oltp_point_select;
pub mod oltp_read_only;
pub mod oltp_read_write;
pub mod oltp_update_index;
pub mod oltp_update_non_index;
pub mod oltp_write_only;
pub mod options;
pub mod pgbench;
pub mod script;
pub mod select;
pub mod select_one;
pub mod select_random;
pub mod storm;
pub mod tpcc;

use crate::client::blocking::{Client, ClientError};
use crate::fill::Stage;
use crate::record::result::CheckLine;
use crate::statement::{Query, Row, Statement};
use crate::url::Dialect;
use options::Options;
use select_random::{Choice, SelectRandom};
use std::collections::BTreeMap;
use std::time::Duration;

/// Which query is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// Number of the client in the plan.
    pub client: u32,
    /// Counts the events of that client, from 1; an event that is begun again counts anew.
    pub event: u32,
    /// Counts the queries of that event, from 0.
    pub step: u16,
}

/// How a client of a workload uses its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Connect once, then one event after another.
    Queries,
    /// Each event connects, asks and disconnects.
    Connects,
    /// Connect once and stay silent.
    Silent,
}

/// What clients do.
pub trait Workload: Send + Sync {
    /// The name on the command line.
    fn name(&self) -> &'static str;

    /// How a client uses its connection. Clients that connect for each event do so all or none.
    fn shape(&self, client: u32) -> Shape {
        let _ = client;
        Shape::Queries
    }

    /// All statements it may send.
    fn statements(&self) -> &[Statement];

    /// Fills in the query at this place; false when the event has no more. `heard` are the rows that came for
    /// earlier steps of this event whose query said `listen`.
    fn query(&self, at: At, heard: &[Row], query: &mut Query) -> bool;

    /// Kinds of its transactions; empty: they are all alike.
    fn transactions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Of which kind an event is.
    fn transaction(&self, at: At) -> usize {
        let _ = at;
        0
    }

    /// Sent once on each connection, behind the login.
    fn greeting(&self) -> &[String] {
        &[]
    }

    /// A client whose query takes longer leaves and connects anew.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// Its options, for the report.
    fn options(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Its seed, for the report.
    fn seed(&self) -> u64 {
        0
    }

    /// What creates and fills what it needs.
    fn prepare(&self) -> Vec<Stage> {
        Vec::new()
    }

    /// Looks, before a run, whether what it needs is there. The answer is a remark for the report.
    fn probe(&self, client: &mut Client) -> Result<Option<String>, ClientError> {
        let _ = client;
        Ok(None)
    }

    /// There is something to look at behind a run.
    fn has_check(&self) -> bool {
        false
    }

    /// Looks, behind a run, whether what must hold does.
    fn check(&self, client: &mut Client) -> Result<Vec<CheckLine>, ClientError> {
        let _ = client;
        Ok(Vec::new())
    }

    /// Statements that remove what `prepare` made.
    fn cleanup(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What a workload is made from.
#[derive(Debug, Clone)]
pub struct Params {
    /// The protocol of the run.
    pub dialect: Dialect,
    /// Clients of the run.
    pub connections: u32,
    /// Its options.
    pub options: Options,
}

/// Names and one-line descriptions, in the order of the help.
pub const NAMES: &[(&str, &str)] = &[
    ("oltp_point_select", "one row by its id: SELECT c FROM sbtestN WHERE id=?"),
    ("oltp_read_only", "10 point and 4 range SELECTs in a transaction"),
    ("oltp_read_write", "the same, 2 UPDATEs, a DELETE and an INSERT"),
    ("oltp_write_only", "2 UPDATEs, a DELETE and an INSERT in a transaction"),
    ("oltp_update_index", "UPDATE sbtestN SET k=k+1 WHERE id=?"),
    ("oltp_update_non_index", "UPDATE sbtestN SET c=? WHERE id=?"),
    ("oltp_insert", "INSERT INTO sbtestN"),
    ("oltp_delete", "DELETE FROM sbtestN WHERE id=?"),
    ("select_random_points", "SELECT ... FROM sbtest1 WHERE k IN (?, ...)"),
    ("select_random_ranges", "SELECT count(k) FROM sbtest1 WHERE k BETWEEN ? AND ? OR ..."),
    ("select", "sysbench 0.5: SELECT pad FROM sbtestN WHERE id=?"),
    ("tpcb-like", "pgbench's default transaction"),
    ("simple-update", "pgbench -N"),
    ("select-only", "pgbench -S"),
    ("tpcc", "sysbench-tpcc's mix of five transactions on nine tables"),
    ("script", "the statements of a file: run script FILE"),
    ("select_one", "SELECT of a number that the reply must repeat; needs no tables"),
    ("connect", "connect, one query, disconnect"),
    ("idle", "connect and stay silent; --busy of them work (--busy-workload)"),
    ("storm", "clients that leave and connect anew when a query takes longer than --patience"),
];

/// The workload of this name. `point_select` is another name of `oltp_point_select`.
///
/// # Errors
/// The name is not known, or an option is out of its range.
pub fn by_name(name: &str, params: &Params) -> Result<Box<dyn Workload>, String> {
    params.options.check()?;
    Ok(match name {
        "select_one" => Box::new(select_one::SelectOne::new()),
        "oltp_point_select" | "point_select" => Box::new(oltp_point_select::new(params)),
        "oltp_read_only" => Box::new(oltp_read_only::new(params)),
        "oltp_read_write" => Box::new(oltp_read_write::new(params)),
        "oltp_write_only" => Box::new(oltp_write_only::new(params)),
        "oltp_update_index" => Box::new(oltp_update_index::new(params)),
        "oltp_update_non_index" => Box::new(oltp_update_non_index::new(params)),
        "oltp_insert" => Box::new(oltp_insert::new(params)),
        "oltp_delete" => Box::new(oltp_delete::new(params)),
        "select_random_points" => Box::new(SelectRandom::new(Choice::Points, params)),
        "select_random_ranges" => Box::new(SelectRandom::new(Choice::Ranges, params)),
        "select" => Box::new(select::new(params)),
        "tpcb-like" | "simple-update" | "select-only" => Box::new(pgbench::Pgbench::new(name, params)?),
        "tpcc" => Box::new(tpcc::Tpcc::new(params)),
        "script" => Box::new(script::Script::new(params)?),
        "connect" => Box::new(connect::Connect::new()),
        "idle" => Box::new(idle::Idle::new(params)?),
        "storm" => Box::new(storm::Storm::new(params)?),
        _ => {
            let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
            return Err(format!("unknown workload '{name}'; there are {}", names.join(", ")));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known() {
        for dialect in [Dialect::Postgres, Dialect::Mysql] {
            let params = Params { dialect, connections: 8, options: Options::default() };
            for (name, _) in NAMES.iter().filter(|(name, _)| *name != "script") {
                let workload = by_name(name, &params).unwrap();
                assert_eq!(workload.name(), *name);
                let mut query = Query::default();
                let mut at = At { client: 0, event: 1, step: 0 };
                while at.step < 100 && workload.query(at, &[], &mut query) {
                    let statement = &workload.statements()[query.statement];
                    assert_eq!(statement.params(), query.params.len(), "{name}: {}", statement.label());
                    at.step += 1;
                }
            }
            assert!(by_name("nonsense", &params).is_err_and(|text| text.contains("oltp_point_select")));
        }
    }
}
