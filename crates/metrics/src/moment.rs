//! What pools know of themselves at the moment of a scrape: nothing here is counted by workers.
//!
//! Owns: names and meaning of these metrics, and which pools are shown as one. Must not know: where the
//! figures come from.
//!
//! Invariant: each name of a pool is shown once, and no more names than the workers' cells have.

use crate::metrics::{OTHER, PoolLabels};
use std::collections::{BTreeMap, HashSet};

/// One pool at this moment. Several may have one name: newer settings have replaced one of them.
#[derive(Debug, Clone)]
pub struct PoolNow {
    /// Who it is.
    pub labels: PoolLabels,
    /// The last attempt to open a server has succeeded; `None`: none has ended.
    pub up: Option<bool>,
    /// For how long the client that has waited longest has waited.
    pub longest_wait_ns: u64,
    /// How long all requests together were with a server.
    pub requests_ns: u64,
    /// How long all requests together waited for one.
    pub waits_ns: u64,
}

/// All pools of one name.
#[derive(Debug, PartialEq)]
pub(crate) struct Moment {
    pub labels: PoolLabels,
    up: Option<bool>,
    longest_wait_ns: u64,
    requests_ns: u64,
    waits_ns: u64,
}

/// A metric of a pool.
pub(crate) struct Row {
    /// Without unit and `_total`.
    pub name: &'static str,
    pub unit: Option<&'static str>,
    pub counter: bool,
    pub help: &'static str,
    pub value: fn(&Moment) -> Option<f64>,
}

/// The metrics, in the order of the exposition.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "weir_database_up",
        unit: None,
        counter: false,
        help: "1: the last attempt to open a server connection succeeded; 0: it failed. Absent before the first attempt.",
        value: |moment| moment.up.map(|up| if up { 1.0 } else { 0.0 }),
    },
    Row {
        name: "weir_longest_wait",
        unit: Some("seconds"),
        counter: false,
        help: "How long the client that has waited longest for a server has been waiting; 0 if none waits. SHOW POOLS calls it maxwait.",
        value: |moment| Some(moment.longest_wait_ns as f64 / 1e9),
    },
    Row {
        name: "weir_pool_requests",
        unit: Some("seconds"),
        counter: true,
        help: "Time that the pool's requests were with a server, in total. Divided by the rate of weir_requests_total: their mean.",
        value: |moment| Some(moment.requests_ns as f64 / 1e9),
    },
    Row {
        name: "weir_pool_waits",
        unit: Some("seconds"),
        counter: true,
        help: "Time that the pool's requests waited for a server, in total.",
        value: |moment| Some(moment.waits_ns as f64 / 1e9),
    },
];

/// The pools by name. Those whose name is not among `named` are one, as in the workers' cells.
pub(crate) fn by_name<'a>(pools: &[PoolNow], named: impl Iterator<Item = &'a PoolLabels>) -> Vec<Moment> {
    let named: HashSet<_> = named.map(|labels| (labels.protocol, &*labels.database, &*labels.user)).collect();
    let mut found: BTreeMap<(&'static str, &str, &str), Moment> = BTreeMap::new();
    for pool in pools {
        let own = (pool.labels.protocol, &*pool.labels.database, &*pool.labels.user);
        let (protocol, database, user) = if named.contains(&own) { own } else { (own.0, OTHER, OTHER) };
        let moment = found.entry((protocol, database, user)).or_insert_with(|| Moment {
            labels: PoolLabels { protocol, database: database.to_owned(), user: user.to_owned() },
            up: None,
            longest_wait_ns: 0,
            requests_ns: 0,
            waits_ns: 0,
        });
        // One that fails is what somebody wants to hear of.
        moment.up = [moment.up, pool.up].into_iter().flatten().min();
        moment.longest_wait_ns = moment.longest_wait_ns.max(pool.longest_wait_ns);
        moment.requests_ns += pool.requests_ns;
        moment.waits_ns += pool.waits_ns;
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(database: &str) -> PoolLabels {
        PoolLabels { protocol: "mysql", database: database.to_owned(), user: "ann".to_owned() }
    }

    fn pool(database: &str, up: Option<bool>, ns: u64) -> PoolNow {
        let labels = labels(database);
        PoolNow { labels, up, longest_wait_ns: ns, requests_ns: ns, waits_ns: 2 * ns }
    }

    #[test]
    fn a_pool_and_its_successor_are_one_row_and_one_that_fails_is_seen() {
        let pools = [
            pool("a", Some(true), 5),
            pool("a", None, 3),
            pool("b", Some(true), 1),
            pool("b", Some(false), 1),
        ];
        let rows = by_name(&pools, [labels("a"), labels("b")].iter());
        assert_eq!(rows.len(), 2);
        let [a, b] = &rows[..] else { unreachable!() };
        assert_eq!((a.up, a.longest_wait_ns, a.requests_ns, a.waits_ns), (Some(true), 5, 8, 16));
        assert_eq!(b.up, Some(false));
    }

    #[test]
    fn pools_that_the_cells_have_no_name_for_are_one() {
        let pools = [pool("a", None, 1), pool("x", Some(true), 2), pool("y", Some(false), 3)];
        let rows = by_name(&pools, [labels("a")].iter());
        let other = rows.iter().find(|row| row.labels.database == OTHER).expect("a row of the others");
        assert_eq!((rows.len(), other.up, other.waits_ns, &*other.labels.user), (2, Some(false), 10, OTHER));
    }
}
