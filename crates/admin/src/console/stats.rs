//! SHOW STATS: sums for each database, and averages over `stats_period`.
//!
//! Owns: the counters at the last look. Must not know: who asks.
//!
//! Invariants: at most [`NAMED_POOLS`] unused databases are remembered; sums never shrink: they keep what a
//! freed pool had served.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use weir_metrics::{OTHER, PoolTotals};
use weir_proxy::Proxy;
use weir_proxy::pool::{PoolId, Served};
use weir_session::Protocol;
use weir_wire::limits::NAMED_POOLS;

/// The twelve figures of [`super::tables::STATS_TOTALS`], in its order; times in microseconds.
pub type Figures = [u64; 12];

const XACT_COUNT: usize = 1;
const QUERY_COUNT: usize = 2;
const XACT_TIME: usize = 5;
const QUERY_TIME: usize = 6;
const WAIT_TIME: usize = 7;
const ASSIGNMENTS: usize = 0;

/// By protocol (`postgres`, `mysql`) and database.
pub type Sums = BTreeMap<(&'static str, String), Figures>;

/// What was counted, and when.
#[derive(Debug)]
pub struct Stats {
    /// Of each pool, what it had served when it was looked at last.
    seen: BTreeMap<(Protocol, PoolId), (String, Served)>,
    /// What pools have served that are forgotten, by protocol and database.
    gone: BTreeMap<(Protocol, String), Served>,
    /// The sums at the beginning of this period, and of the last one.
    periods: [(Instant, Sums); 2],
}

fn plus(to: &mut Served, more: Served) {
    to.answered = to.answered.wrapping_add(more.answered);
    to.took_ns = to.took_ns.wrapping_add(more.took_ns);
    to.waited_ns = to.waited_ns.wrapping_add(more.waited_ns);
}

impl Stats {
    /// Nothing was counted.
    pub fn new() -> Stats {
        let now = Instant::now();
        Stats {
            seen: BTreeMap::new(),
            gone: BTreeMap::new(),
            periods: [(now, Sums::new()), (now, Sums::new())],
        }
    }

    /// Notes what pools have served. To be called at least once in some seconds, so that none comes and goes
    /// unseen.
    pub fn note(&mut self, proxy: &Proxy) {
        let before = std::mem::take(&mut self.seen);
        for pool in proxy.pools() {
            self.seen.insert((pool.protocol, pool.id), (pool.spec.database.clone(), pool.served));
        }
        for (name, (database, served)) in before {
            // A number may be another pool's by now, which has served less.
            let still = self.seen.get(&name);
            if !still.is_some_and(|(other, now)| *other == database && now.answered >= served.answered) {
                self.keep(name.0, database, served);
            }
        }
    }

    /// Keeps what a pool had served that is gone. Clients may name any database, and of those that do not
    /// exist nothing is kept.
    fn keep(&mut self, protocol: Protocol, database: String, served: Served) {
        if served.answered == 0 {
            return;
        }
        let is_new = !self.gone.contains_key(&(protocol, database.clone()));
        let name = if is_new && self.gone.len() >= NAMED_POOLS { OTHER.to_owned() } else { database };
        plus(self.gone.entry((protocol, name)).or_default(), served);
    }

    /// Looks at what there is.
    pub fn look(&mut self, proxy: &Proxy) -> Sums {
        self.note(proxy);
        let mut times = self.gone.clone();
        for ((protocol, _), (database, served)) in &self.seen {
            plus(times.entry((*protocol, database.clone())).or_default(), *served);
        }
        let mut sums = Sums::new();
        for (labels, totals) in proxy.metrics().pool_totals() {
            let figures = sums.entry((labels.protocol, labels.database)).or_default();
            counted(&totals)
                .iter()
                .zip(figures)
                .for_each(|(more, figure)| *figure = figure.wrapping_add(*more));
        }
        for ((protocol, database), served) in times {
            let figures = sums.entry((protocol.name(), database)).or_default();
            figures[XACT_TIME] = served.took_ns / 1_000;
            figures[QUERY_TIME] = served.took_ns / 1_000;
            figures[WAIT_TIME] = served.waited_ns / 1_000;
        }
        sums
    }

    /// A period is over.
    pub fn turn(&mut self, proxy: &Proxy) {
        let sums = self.look(proxy);
        let [_, this] = &self.periods;
        self.periods = [this.clone(), (Instant::now(), sums)];
    }

    /// The averages since the last whole period began, as PgBouncer takes them.
    pub fn averages(&self, database: &(&'static str, String), now: &Figures) -> Figures {
        let [(began, sums), _] = &self.periods;
        averages(&sums.get(database).copied().unwrap_or_default(), now, began.elapsed())
    }
}

/// What the metrics have of a pool. Parses and binds are not counted, nor are logins by database.
fn counted(totals: &PoolTotals) -> Figures {
    let number = |n: i64| u64::try_from(n).unwrap_or(0);
    let assigned = number(totals.leases) + number(totals.shared_requests);
    let mut figures = Figures::default();
    figures[ASSIGNMENTS] = assigned;
    figures[XACT_COUNT] = assigned;
    figures[QUERY_COUNT] = number(totals.requests);
    figures[3] = number(totals.server_sent_bytes);
    figures[4] = number(totals.server_received_bytes);
    figures[9] = number(totals.injected_prepares);
    figures
}

/// Counts a second; times by what took them.
pub fn averages(before: &Figures, now: &Figures, time: Duration) -> Figures {
    let grown = |at: usize| now[at].saturating_sub(before[at]);
    let us = time.as_micros().max(1);
    std::array::from_fn(|at| match at {
        XACT_TIME => grown(at).checked_div(grown(XACT_COUNT)).unwrap_or(0),
        QUERY_TIME => grown(at).checked_div(grown(QUERY_COUNT)).unwrap_or(0),
        WAIT_TIME => grown(at).checked_div(grown(ASSIGNMENTS)).unwrap_or(0),
        _ => u64::try_from(u128::from(grown(at)) * 1_000_000 / us).unwrap_or(u64::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_clients_make_up_do_not_fill_the_memory() {
        let mut stats = Stats::new();
        stats.keep(Protocol::Postgres, "never there".into(), Served { waited_ns: 5, ..Served::default() });
        assert!(stats.gone.is_empty());
        let one = Served { answered: 1, took_ns: 2, waited_ns: 3 };
        for n in 0..2 * NAMED_POOLS {
            stats.keep(Protocol::Postgres, format!("d{n}"), one);
            stats.keep(Protocol::Postgres, "d0".into(), one);
        }
        assert!(stats.gone.len() <= NAMED_POOLS + 1);
        let answered: u64 = stats.gone.values().map(|served| served.answered).sum();
        assert_eq!(answered, 4 * NAMED_POOLS as u64, "sums never shrink");
    }

    #[test]
    fn counts_are_by_second_and_times_by_what_took_them() {
        let mut now = Figures::default();
        (now[ASSIGNMENTS], now[XACT_COUNT], now[QUERY_COUNT], now[QUERY_TIME], now[WAIT_TIME]) =
            (20, 20, 40, 4_000, 200);
        let found = averages(&Figures::default(), &now, Duration::from_secs(10));
        assert_eq!(
            (found[XACT_COUNT], found[QUERY_COUNT], found[QUERY_TIME], found[WAIT_TIME]),
            (2, 4, 100, 10)
        );
        assert_eq!(averages(&now, &now, Duration::ZERO), Figures::default());
    }
}
