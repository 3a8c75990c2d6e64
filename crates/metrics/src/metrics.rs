//! The owners of cells, and their sums.

use crate::cell::{CountTotals, Counts, Gauge, Histogram, HistogramTotals};
use crate::codes::{CodeTotals, Codes};
use crate::table::{PoolCells, PoolTotals, WingCells, WingTotals};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use weir_wire::ErrorCode;
use weir_wire::limits::NAMED_POOLS;

/// Database and user of the pools beyond [`NAMED_POOLS`].
pub const OTHER: &str = "(other)";

/// All metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    protocols: &'static [&'static str],
    /// By worker, then by protocol: made when the worker first asks.
    workers: Vec<Vec<OnceLock<Arc<WorkerCells>>>>,
    /// By worker: made when the worker first asks.
    turns: Vec<OnceLock<Arc<TurnCells>>>,
    pools: Mutex<Vec<Pool>>,
    /// Panics of threads that serve. Any of them may add to it.
    panics: AtomicU64,
}

/// What one worker counts for one protocol.
#[derive(Debug, Default)]
pub struct WorkerCells {
    /// Counters and gauges.
    pub wing: WingCells,
    /// From the moment a request is sent to a server to the end of its reply, without the wait.
    pub request_duration: Histogram,
    /// From the moment a request needs a server to the moment it has one.
    pub wait_duration: Histogram,
    /// From the first request of a transaction to the end of its last one's reply, where it had several.
    pub transaction_duration: Histogram,
    /// From the moment a client connects to the end of its login.
    pub login_duration: Histogram,
    /// Requests that failed on a server.
    pub errors: Codes,
}

impl WorkerCells {
    /// A reply has come to its end, and perhaps a transaction of several requests with it.
    pub fn note_answered(&self, took_ns: u64, transaction_ns: Option<u64>, error: Option<ErrorCode>) {
        self.request_duration.record_ns(took_ns);
        if let Some(code) = error {
            self.errors.note(code);
        }
        if let Some(took_ns) = transaction_ns {
            self.transaction_duration.record_ns(took_ns);
        }
    }
}

/// What one worker counts of itself, whatever the protocol.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct TurnCells {
    /// It is there: 1, or 0.
    pub workers: Gauge,
    /// It lets replies gather before it runs: 1, or 0.
    pub gathering: Gauge,
    /// What it found each time it ran.
    pub events: Counts,
}

/// The sums of all workers at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnTotals {
    /// Workers that are there.
    pub workers: i64,
    /// Those of them that let replies gather.
    pub gathering: i64,
    /// What they found each time they ran.
    pub events: CountTotals,
}

/// Who a pool is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolLabels {
    /// The value of the `protocol` label.
    pub protocol: &'static str,
    /// The pool's database.
    pub database: String,
    /// The pool's user.
    pub user: String,
}

#[derive(Debug)]
struct Pool {
    labels: PoolLabels,
    by_worker: Vec<Option<Arc<PoolCells>>>,
}

/// The sums of one protocol at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Of all workers.
    pub wing: WingTotals,
    /// Of all pools.
    pub pools: PoolTotals,
    /// Of all workers.
    pub request_duration: HistogramTotals,
    /// Of all workers.
    pub wait_duration: HistogramTotals,
    /// Of all workers.
    pub transaction_duration: HistogramTotals,
    /// Of all workers.
    pub login_duration: HistogramTotals,
    /// Of all workers: by code, and those of codes beyond what a worker tells apart.
    pub errors: CodeTotals,
}

impl Metrics {
    /// Cells for this number of workers at most. `protocols` are the values of the `protocol` label.
    pub fn new(workers: usize, protocols: &'static [&'static str]) -> Arc<Metrics> {
        let cells = |_| protocols.iter().map(|_| OnceLock::new()).collect();
        let turns = (0..workers).map(|_| OnceLock::new()).collect();
        let workers = (0..workers).map(cells).collect();
        Arc::new(Metrics { protocols, workers, turns, pools: Mutex::default(), panics: AtomicU64::new(0) })
    }

    /// A thread that serves has panicked and goes on.
    pub fn note_panic(&self) {
        self.panics.fetch_add(1, Relaxed);
    }

    /// How often that has happened.
    pub fn panics(&self) -> u64 {
        self.panics.load(Relaxed)
    }

    /// The values of the `protocol` label.
    pub fn protocols(&self) -> &'static [&'static str] {
        self.protocols
    }

    /// The cells of a worker for a protocol. Only that worker may write to them.
    ///
    /// # Panics
    /// If there is no such worker or no such protocol: a mistake of the caller.
    pub fn worker(&self, worker: usize, protocol: &str) -> Arc<WorkerCells> {
        self.workers[worker][self.number(protocol)].get_or_init(Arc::default).clone()
    }

    /// What a worker counts of itself. Only that worker may write to it.
    ///
    /// # Panics
    /// If there is no such worker: a mistake of the caller.
    pub fn turns(&self, worker: usize) -> Arc<TurnCells> {
        self.turns[worker].get_or_init(Arc::default).clone()
    }

    /// The sums of what workers count of themselves.
    pub fn turn_totals(&self) -> TurnTotals {
        let mut totals = TurnTotals::default();
        for cells in self.turns.iter().filter_map(OnceLock::get) {
            totals.workers += cells.workers.get();
            totals.gathering += cells.gathering.get();
            cells.events.add_to(&mut totals.events);
        }
        totals
    }

    /// The cells of a worker for a pool; made at the first call, the same ones later. Only that worker may
    /// write to them. Takes a lock: to be called when a worker first meets a pool, not for each request.
    ///
    /// # Panics
    /// If there is no such worker or no such protocol: a mistake of the caller.
    pub fn pool(&self, worker: usize, protocol: &str, database: &str, user: &str) -> Arc<PoolCells> {
        let labels = PoolLabels {
            protocol: self.protocols[self.number(protocol)],
            database: database.to_owned(),
            user: user.to_owned(),
        };
        let mut pools = self.pools();
        let known = pools.iter().position(|pool| pool.labels == labels);
        let index = known.unwrap_or_else(|| self.add_pool(&mut pools, labels));
        pools[index].by_worker[worker].get_or_insert_default().clone()
    }

    fn add_pool(&self, pools: &mut Vec<Pool>, mut labels: PoolLabels) -> usize {
        if pools.len() >= NAMED_POOLS {
            labels.database = OTHER.to_owned();
            labels.user = OTHER.to_owned();
            if let Some(index) = pools.iter().position(|pool| pool.labels == labels) {
                return index;
            }
        }
        pools.push(Pool { labels, by_worker: vec![None; self.workers.len()] });
        pools.len() - 1
    }

    /// The sums of one protocol.
    ///
    /// # Panics
    /// If there is no such protocol: a mistake of the caller.
    pub fn totals(&self, protocol: &str) -> Totals {
        let number = self.number(protocol);
        let mut totals = Totals::default();
        for cells in self.workers.iter().filter_map(|worker| worker[number].get()) {
            cells.wing.add_to(&mut totals.wing);
            cells.request_duration.add_to(&mut totals.request_duration);
            cells.wait_duration.add_to(&mut totals.wait_duration);
            cells.transaction_duration.add_to(&mut totals.transaction_duration);
            cells.login_duration.add_to(&mut totals.login_duration);
            cells.errors.add_to(&mut totals.errors);
        }
        for pool in self.pools().iter().filter(|pool| pool.labels.protocol == self.protocols[number]) {
            pool.add_to(&mut totals.pools);
        }
        totals
    }

    /// The sums of each pool, sorted by protocol, database and user.
    pub fn pool_totals(&self) -> Vec<(PoolLabels, PoolTotals)> {
        let mut all: Vec<_> = self
            .pools()
            .iter()
            .map(|pool| {
                let mut totals = PoolTotals::default();
                pool.add_to(&mut totals);
                (pool.labels.clone(), totals)
            })
            .collect();
        all.sort_by(|(a, _), (b, _)| {
            (a.protocol, &a.database, &a.user).cmp(&(b.protocol, &b.database, &b.user))
        });
        all
    }

    fn number(&self, protocol: &str) -> usize {
        match self.protocols.iter().position(|p| *p == protocol) {
            Some(number) => number,
            None => panic!("no protocol {protocol} in the metrics"),
        }
    }

    fn pools(&self) -> MutexGuard<'_, Vec<Pool>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    fn add_to(&self, totals: &mut PoolTotals) {
        for cells in self.by_worker.iter().flatten() {
            cells.add_to(totals);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::{FaultKind, Pin};

    #[test]
    fn sums_over_workers_and_pools() {
        let metrics = Metrics::new(2, &["postgres", "mysql"]);
        metrics.worker(0, "postgres").wing.client_connections.inc();
        metrics.worker(1, "postgres").wing.client_connections.add(2);
        metrics.worker(1, "mysql").wing.faults(FaultKind::LoginFailed).inc();
        metrics.pool(0, "postgres", "app", "ann").servers_idle.inc();
        // The server moves from worker 0 to worker 1.
        metrics.pool(0, "postgres", "app", "ann").servers_idle.dec();
        metrics.pool(1, "postgres", "app", "ann").servers_idle.inc();
        metrics.pool(1, "postgres", "app", "bob").pins(Pin::Listen).inc();
        let totals = metrics.totals("postgres");
        assert_eq!(totals.wing.client_connections, 3);
        assert_eq!(totals.pools.servers_idle, 1);
        assert_eq!(totals.pools.pins(Pin::Listen), 1);
        assert_eq!(totals.wing.faults(FaultKind::LoginFailed), 0);
        assert_eq!(metrics.totals("mysql").wing.faults(FaultKind::LoginFailed), 1);
        let users: Vec<_> = metrics.pool_totals().into_iter().map(|(labels, _)| labels.user).collect();
        assert_eq!(users, ["ann", "bob"]);
    }

    #[test]
    fn pools_beyond_the_bound_are_counted_together() {
        let metrics = Metrics::new(1, &["postgres"]);
        for n in 0..NAMED_POOLS + 50 {
            metrics.pool(0, "postgres", &format!("db{n}"), "ann").requests.inc();
        }
        let pools = metrics.pool_totals();
        assert_eq!(pools.len(), NAMED_POOLS + 1);
        let other = pools.iter().find(|(labels, _)| labels.database == OTHER).unwrap();
        assert_eq!(other.1.requests, 50);
        assert_eq!(metrics.totals("postgres").pools.requests, (NAMED_POOLS + 50) as i64);
    }
}
