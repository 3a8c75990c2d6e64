//! What clients do: one file a workload.
//!
//! A workload is a pure function: the same seed, client, event and step always give the same query. So a
//! connection keeps no query and no generator of random numbers, and a reply can be checked by asking
//! again what was sent.

pub mod connect;
pub mod idle;
pub mod point_select;
pub mod select_one;

use crate::client::blocking::{Client, ClientError};
use crate::statement::{Query, Statement};
use crate::url::Dialect;

/// Which query is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// Number of the client in the plan.
    pub client: u32,
    /// Counts the events of that client, from 1.
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

    /// How it uses connections.
    fn shape(&self) -> Shape {
        Shape::Queries
    }

    /// All statements it may send.
    fn statements(&self) -> &[Statement];

    /// Fills in the query at this place; false when the event has no more.
    fn query(&self, at: At, query: &mut Query) -> bool;

    /// Creates and fills what the workload needs. `progress` hears of rows done and rows in all.
    fn prepare(&self, client: &mut Client, progress: &mut dyn FnMut(u64, u64)) -> Result<(), ClientError> {
        let _ = client;
        progress(0, 0);
        Ok(())
    }

    /// Looks, before a run, whether what it needs is there. The answer is a remark for the report.
    fn probe(&self, client: &mut Client) -> Result<Option<String>, ClientError> {
        let _ = client;
        Ok(None)
    }

    /// Removes what `prepare` made.
    fn cleanup(&self, client: &mut Client) -> Result<(), ClientError> {
        let _ = client;
        Ok(())
    }
}

/// What a workload is made from.
#[derive(Debug, Clone, Copy)]
pub struct Params {
    /// The protocol of the run.
    pub dialect: Dialect,
    /// Tables `sbtest1` to `sbtestN`.
    pub tables: u32,
    /// Rows in each.
    pub table_size: u32,
    /// Seed of all random choices.
    pub seed: u64,
}

/// Names and one-line descriptions, in the order of the help.
pub const NAMES: &[(&str, &str)] = &[
    ("select_one", "SELECT of a number that the reply must repeat; needs no tables"),
    ("oltp_point_select", "sysbench's: SELECT c FROM sbtestN WHERE id=?"),
    ("connect", "connect, one query, disconnect"),
    ("idle", "connect and stay silent"),
];

/// The workload of this name. `point_select` is another name of `oltp_point_select`.
pub fn by_name(name: &str, params: Params) -> Option<Box<dyn Workload>> {
    Some(match name {
        "select_one" => Box::new(select_one::SelectOne::new()),
        "oltp_point_select" | "point_select" => Box::new(point_select::PointSelect::new(params)),
        "connect" => Box::new(connect::Connect::new()),
        "idle" => Box::new(idle::Idle),
        _ => return None,
    })
}

/// A well-mixed number from two (the finalizer of SplitMix64): random choices without a state.
#[inline]
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let mut z = a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known() {
        let params = Params { dialect: Dialect::Postgres, tables: 1, table_size: 10, seed: 1 };
        for (name, _) in NAMES {
            assert_eq!(by_name(name, params).unwrap().name(), *name);
        }
        assert!(by_name("nonsense", params).is_none());
    }
}
