//! One look at the counters each second, and what has changed since the one before.

use super::document::{
    Asked, Clients, DatabaseFigures, DatabaseState, FaultFigures, LastFault, Live, PinFigures, PoolFigures,
    ProtocolFigures, Queue, Servers, Times,
};
use super::statements::Lately;
use crate::console::mode_name;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_config::Snapshot;
use weir_metrics::{HistogramTotals, Totals};
use weir_proxy::Proxy;
use weir_proxy::console::{Decrees, PoolRow};
use weir_proxy::pool::{Failure, PoolId, Served};
use weir_session::Protocol;
use weir_wire::{FaultKind, Pin};

/// Somebody who looks comes again within this time.
const WATCHED: Duration = Duration::from_secs(15);
/// While nobody looks, the counters are looked at so often: rates of the first look are about this time.
const REST: Duration = Duration::from_secs(10);
/// Databases whose last failure is kept when nobody uses their pools: clients may name any database.
const REMEMBERED_FAILURES: usize = 200;
/// A look that is older is made anew for who asks.
const FRESH: Duration = Duration::from_millis(1_500);

/// The last look and what came of it.
pub(crate) struct Pulse {
    started: Instant,
    at: Instant,
    /// When somebody asked last.
    asked: Option<Instant>,
    /// By protocol.
    totals: BTreeMap<Protocol, Totals>,
    served: HashMap<(Protocol, PoolId), Served>,
    /// All but what is chosen for each request.
    figures: Live,
    pools: Vec<PoolFigures>,
    databases: BTreeMap<Name, Database>,
    /// The last failure of each database, also of pools that nobody uses any more.
    failures: BTreeMap<Name, Arc<Failure>>,
    /// Databases whose last attempt has failed.
    failing: BTreeSet<Name>,
    /// Which statements take most time.
    pub(crate) statements: Lately,
}

/// A database by its protocol.
type Name = (Protocol, String);

/// What is summed up of a database's pools.
#[derive(Debug, Default)]
struct Database {
    pools: usize,
    servers: usize,
    waiting: usize,
    /// The last attempt of one of them has failed.
    failing: bool,
    /// One of them has had a server.
    proven: bool,
    failure: Option<Arc<Failure>>,
}

impl Pulse {
    pub(crate) fn new() -> Pulse {
        let now = Instant::now();
        Pulse {
            started: now,
            at: now,
            asked: None,
            totals: BTreeMap::new(),
            served: HashMap::new(),
            figures: Live::default(),
            pools: Vec::new(),
            databases: BTreeMap::new(),
            failures: BTreeMap::new(),
            failing: BTreeSet::new(),
            statements: Lately::default(),
        }
    }

    /// Somebody looks.
    pub(crate) fn is_watched(&self, now: Instant) -> bool {
        self.asked.is_some_and(|asked| now.saturating_duration_since(asked) < WATCHED)
    }

    /// A second has passed. With thousands of pools a look costs milliseconds, so there are few while nobody
    /// is interested.
    pub(crate) fn tick(&mut self, proxy: &Proxy) {
        if self.is_due(Instant::now()) {
            self.beat(proxy);
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.is_watched(now) || now.saturating_duration_since(self.at) + FRESH > REST
    }

    /// Somebody looks.
    pub(crate) fn ask(&mut self, proxy: &Proxy) {
        let now = Instant::now();
        self.asked = Some(now);
        if now.saturating_duration_since(self.at) > FRESH {
            self.beat(proxy);
        }
    }

    /// Looks at all counters: what they have grown by since the last look is what is shown from now on.
    fn beat(&mut self, proxy: &Proxy) {
        let now = Instant::now();
        let period = now - std::mem::replace(&mut self.at, now);
        let metrics = proxy.metrics();
        let totals: BTreeMap<Protocol, Totals> =
            Protocol::ALL.into_iter().map(|protocol| (protocol, metrics.totals(protocol.name()))).collect();
        let clock_ns = proxy.clock_ns();
        let rows = proxy.pools();
        let mut figures = Live {
            at_ms: clock_ns / 1_000_000,
            period_ms: u64::try_from(period.as_millis()).unwrap_or(u64::MAX),
            ..Live::default()
        };
        let before = std::mem::replace(&mut self.totals, totals);
        flow(&mut figures, &before, &self.totals, period);
        figures.clients.connected = proxy.clients() as u64;
        figures.clients.limit = proxy.max_clients() as u64;
        figures.servers.limit = rows.iter().map(|row| row.size as u64).sum();
        let waits_since_ns = rows.iter().filter_map(|row| row.waits_since_ns).min();
        figures.queue.longest_us = since_us(clock_ns, waits_since_ns);
        self.look(&rows);
        let pinned: HashMap<(&'static str, String, String), u64> = metrics
            .pool_totals()
            .into_iter()
            .map(|(labels, totals)| {
                ((labels.protocol, labels.database, labels.user), count(totals.pinned_servers))
            })
            .collect();
        self.pools = pools(&rows, &self.served, period, clock_ns);
        for pool in &mut self.pools {
            let protocol = Protocol::ALL.into_iter().find(|protocol| protocol.name() == pool.protocol);
            let name = (protocol.map_or("", Protocol::name), pool.database.clone(), pool.user.clone());
            pool.pinned = pinned.get(&name).copied();
        }
        self.served = rows.iter().map(|row| ((row.protocol, row.id), row.served)).collect();
        self.figures = figures;
    }

    /// Takes in how the databases are now, without their figures.
    pub(crate) fn look(&mut self, rows: &[PoolRow]) {
        self.databases = databases(rows);
        self.remember();
    }

    /// Pools that nobody uses are forgotten, and with them why their databases could not be reached: it is
    /// kept here.
    fn remember(&mut self) {
        for (name, database) in &self.databases {
            if let Some(failure) = &database.failure {
                self.failures.insert(name.clone(), failure.clone());
            }
            if database.failing {
                self.failing.insert(name.clone());
            } else if database.proven {
                self.failing.remove(name);
            }
        }
        // Clients may name any database where there is one of the name `*`.
        while self.failures.len() > REMEMBERED_FAILURES {
            let oldest = self.failures.iter().min_by_key(|(_, failure)| failure.at_ms);
            let Some(name) = oldest.map(|(name, _)| name.clone()) else { break };
            self.failures.remove(&name);
        }
        let failures = &self.failures;
        self.failing.retain(|name| failures.contains_key(name));
    }

    /// The document as it is asked for. `details`: with the log's words about faults, and
    /// with statements.
    pub(crate) fn document(
        &self,
        asked: &Asked,
        snapshot: &Snapshot,
        decrees: &Decrees,
        clock_ns: u64,
        details: bool,
    ) -> Live {
        let needle = asked.needle();
        let has = |name: &str| name.to_lowercase().contains(&needle);
        let mut pools: Vec<&PoolFigures> =
            self.pools.iter().filter(|pool| has(&pool.database) || has(&pool.user)).collect();
        let pools_matching = pools.len();
        pools.sort_by(|a, b| asked.sort.compare(a, b));
        pools.truncate(asked.rows());
        let mut databases = self.states(snapshot, decrees);
        let databases_total = databases.len();
        databases.retain(|(_, _, name)| has(name));
        databases.truncate(asked.rows());
        Live {
            uptime_s: self.started.elapsed().as_secs(),
            databases: databases
                .into_iter()
                .map(|(state, protocol, name)| self.database(state, protocol, name, clock_ns, details))
                .collect(),
            databases_total,
            pools: pools.into_iter().cloned().collect(),
            pools_matching,
            pools_total: self.pools.len(),
            statements: if details { self.statements.shown().to_vec() } else { Vec::new() },
            ..self.figures.clone()
        }
    }

    /// Databases that are configured, in use or out of reach, those that want a look first.
    pub(crate) fn states<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        decrees: &Decrees,
    ) -> Vec<(DatabaseState, Protocol, &'a str)> {
        let mut databases = Vec::new();
        for protocol in Protocol::ALL {
            let configured = snapshot.realm(protocol).databases.keys().map(String::as_str);
            let used = self.databases.keys().chain(&self.failing).filter(|(of, _)| *of == protocol);
            let used = used.map(|(_, name)| name.as_str());
            databases.extend(
                configured.chain(used).map(|name| (self.state(protocol, name, decrees), protocol, name)),
            );
        }
        databases.sort_unstable();
        databases.dedup();
        databases
    }

    fn state(&self, protocol: Protocol, name: &str, decrees: &Decrees) -> DatabaseState {
        let key = (protocol, name.to_owned());
        let found = self.databases.get(&key).filter(|database| database.servers > 0);
        if self.failing.contains(&key) {
            DatabaseState::Failing
        } else if decrees.is_paused(name) {
            DatabaseState::Paused
        } else if decrees.is_disabled(name) {
            DatabaseState::Disabled
        } else {
            match found {
                Some(database) if database.proven => DatabaseState::Up,
                Some(_) => DatabaseState::Connecting,
                None => DatabaseState::Unused,
            }
        }
    }

    fn database(
        &self,
        state: DatabaseState,
        protocol: Protocol,
        name: &str,
        clock_ns: u64,
        details: bool,
    ) -> DatabaseFigures {
        let mut figures = DatabaseFigures {
            protocol: protocol.name().to_owned(),
            database: name.to_owned(),
            state,
            ..DatabaseFigures::default()
        };
        let key = (protocol, name.to_owned());
        if let Some(found) = self.databases.get(&key) {
            (figures.pools, figures.servers, figures.waiting) = (found.pools, found.servers, found.waiting);
        }
        figures.fault = self.failures.get(&key).map(|failure| LastFault {
            kind: failure.fault.kind.label().to_owned(),
            meaning: failure.fault.kind.meaning().to_owned(),
            ago_s: (clock_ns / 1_000_000).saturating_sub(failure.at_ms) / 1_000,
            detail: details.then(|| failure.fault.detail.to_string()),
        });
        figures
    }
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn per_second(grown: u64, period: Duration) -> f64 {
    let seconds = period.as_secs_f64();
    // One decimal is enough to read and short to send.
    if seconds > 0.0 { (grown as f64 / seconds * 10.0).round() / 10.0 } else { 0.0 }
}

fn since_us(clock_ns: u64, since_ns: Option<u64>) -> u64 {
    since_ns.map_or(0, |since_ns| clock_ns.saturating_sub(since_ns) / 1_000)
}

fn times(totals: &HistogramTotals) -> Times {
    let us = |quantile| totals.quantile_ns(quantile) / 1_000;
    Times { p50_us: us(0.5), p95_us: us(0.95), p99_us: us(0.99) }
}

fn add(to: &mut HistogramTotals, more: &HistogramTotals) {
    to.buckets.iter_mut().zip(&more.buckets).for_each(|(sum, more)| *sum += more);
    to.sum_ns += more.sum_ns;
}

/// What is counted by protocol.
fn flow(
    figures: &mut Live,
    before: &BTreeMap<Protocol, Totals>,
    now: &BTreeMap<Protocol, Totals>,
    period: Duration,
) {
    let nothing = Totals::default();
    let rate = |now: i64, then: i64| per_second(count(now - then), period);
    let (mut queries, mut waits) = (HistogramTotals::default(), HistogramTotals::default());
    let (mut all, mut clients) = (ProtocolFigures::default(), Clients::default());
    let (mut queue, mut servers) = (Queue::default(), Servers::default());
    for (protocol, now) in now {
        let then = before.get(protocol).unwrap_or(&nothing);
        let query = now.request_duration.since(&then.request_duration);
        let wait = now.wait_duration.since(&then.wait_duration);
        let one = ProtocolFigures {
            protocol: protocol.name().to_owned(),
            requests_per_s: rate(now.pools.requests, then.pools.requests),
            received_bytes_per_s: rate(now.wing.client_received_bytes, then.wing.client_received_bytes),
            sent_bytes_per_s: rate(now.wing.client_sent_bytes, then.wing.client_sent_bytes),
            query: times(&query),
            waits_per_s: per_second(wait.count(), period),
            wait: times(&wait),
        };
        all.requests_per_s += one.requests_per_s;
        all.waits_per_s += one.waits_per_s;
        all.received_bytes_per_s += one.received_bytes_per_s;
        all.sent_bytes_per_s += one.sent_bytes_per_s;
        if now.wing.client_accepts > 0 {
            figures.protocols.push(one);
        }
        add(&mut queries, &query);
        add(&mut waits, &wait);
        clients.logging_in += count(now.wing.client_logins_pending);
        clients.logins_per_s += rate(now.wing.logins_ok, then.wing.logins_ok);
        clients.refusals_per_s += rate(now.wing.logins_failed, then.wing.logins_failed);
        queue.waiting += count(now.pools.waiting_clients);
        servers.idle += count(now.pools.servers_idle);
        servers.active += count(now.pools.servers_active);
        servers.other += count(now.pools.servers_connecting) + count(now.pools.servers_cleaning);
        servers.pinned += count(now.pools.pinned_servers);
    }
    servers.open = servers.idle + servers.active + servers.other;
    (all.query, all.wait) = (times(&queries), times(&waits));
    (figures.all, figures.clients, figures.queue, figures.servers) = (all, clients, queue, servers);
    kinds(figures, before, now, period);
}

/// What is counted by reason and by kind.
fn kinds(
    figures: &mut Live,
    before: &BTreeMap<Protocol, Totals>,
    now: &BTreeMap<Protocol, Totals>,
    period: Duration,
) {
    let rate = |now: i64, then: i64| per_second(count(now - then), period);
    let sum =
        |totals: &BTreeMap<Protocol, Totals>, of: &dyn Fn(&Totals) -> i64| totals.values().map(of).sum();
    for &pin in Pin::ALL {
        let of = |totals: &Totals| totals.pools.pins(pin);
        let (total, then): (i64, i64) = (sum(now, &of), sum(before, &of));
        if total > 0 {
            let (reason, per_s) = (pin.label().to_owned(), rate(total, then));
            figures.pins.push(PinFigures { reason, total: count(total), per_s });
        }
    }
    for &kind in FaultKind::ALL {
        let of = |totals: &Totals| totals.wing.faults(kind);
        let (total, then): (i64, i64) = (sum(now, &of), sum(before, &of));
        if total > 0 {
            figures.faults.push(FaultFigures {
                kind: kind.label().to_owned(),
                meaning: kind.meaning().to_owned(),
                total: count(total),
                per_s: rate(total, then),
            });
        }
    }
}

/// Pools by name: a pool that newer settings have replaced is one with its successor.
fn pools(
    rows: &[PoolRow],
    before: &HashMap<(Protocol, PoolId), Served>,
    period: Duration,
    clock_ns: u64,
) -> Vec<PoolFigures> {
    let mut found: BTreeMap<(Protocol, &str, &str), (PoolFigures, Served)> = BTreeMap::new();
    for row in rows {
        let spec = &row.spec;
        let (pool, grown) = found.entry((row.protocol, &spec.database, &spec.user)).or_default();
        let then = before.get(&(row.protocol, row.id)).copied().unwrap_or_default();
        let more = grown_by(row.served, then);
        grown.answered += more.answered;
        grown.took_ns += more.took_ns;
        grown.waited_ns += more.waited_ns;
        pool.mode = mode_name(spec.mode).to_owned();
        pool.waiting += row.waiting;
        pool.longest_us = pool.longest_us.max(since_us(clock_ns, row.waits_since_ns));
        pool.servers += row.opened;
        pool.active += row.active;
        pool.limit += row.size;
        pool.paused |= row.paused;
        pool.failing |= row.failing;
    }
    found
        .into_iter()
        .map(|((protocol, database, user), (mut pool, grown))| {
            (pool.protocol, pool.database, pool.user) =
                (protocol.name().to_owned(), database.to_owned(), user.to_owned());
            pool.requests_per_s = per_second(grown.answered, period);
            pool.query_mean_us = grown.took_ns.checked_div(grown.answered).unwrap_or(0) / 1_000;
            pool.wait_mean_us = grown.waited_ns.checked_div(grown.answered).unwrap_or(0) / 1_000;
            pool
        })
        .collect()
}

/// A number may be another pool's by now, which has served less: then all of it is new.
fn grown_by(now: Served, then: Served) -> Served {
    if now.answered < then.answered || now.took_ns < then.took_ns || now.waited_ns < then.waited_ns {
        return now;
    }
    Served {
        answered: now.answered - then.answered,
        took_ns: now.took_ns - then.took_ns,
        waited_ns: now.waited_ns - then.waited_ns,
    }
}

fn databases(rows: &[PoolRow]) -> BTreeMap<Name, Database> {
    let mut found: BTreeMap<Name, Database> = BTreeMap::new();
    for row in rows {
        let database = found.entry((row.protocol, row.spec.database.clone())).or_default();
        database.pools += 1;
        database.servers += row.opened;
        database.waiting += row.waiting;
        database.failing |= row.failing;
        database.proven |= row.has_tried() && !row.failing;
        let is_later = |failure: &Arc<Failure>| {
            database.failure.as_ref().is_none_or(|known| known.at_ms < failure.at_ms)
        };
        if let Some(failure) = row.failure.clone().filter(is_later) {
            database.failure = Some(failure);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::Metrics;

    #[test]
    fn figures_are_what_counters_have_grown_by() {
        let metrics = Metrics::new(1, &["postgres", "mysql"]);
        let cells = metrics.worker(0, "postgres");
        let pool = metrics.pool(0, "postgres", "app", "ann");
        let look = || -> BTreeMap<Protocol, Totals> {
            Protocol::ALL.into_iter().map(|it| (it, metrics.totals(it.name()))).collect()
        };
        cells.wing.client_accepts.inc();
        pool.requests.add(1_000);
        cells.request_duration.record_ns(9_000_000_000);
        let before = look();
        pool.requests.add(50);
        (0..50).for_each(|_| cells.request_duration.record_ns(1_000_000));
        pool.pins(Pin::Listen).inc();
        cells.wing.faults(FaultKind::LoginFailed).add(4);
        pool.waiting_clients.add(3);
        pool.servers_idle.inc();
        let mut figures = Live::default();
        flow(&mut figures, &before, &look(), Duration::from_secs(2));
        assert_eq!(figures.all.requests_per_s, 25.0);
        let p99_us = figures.all.query.p99_us;
        assert!((800..1_250).contains(&p99_us), "what was before is not in it: {p99_us}");
        assert_eq!(figures.protocols.len(), 1, "nobody came by the other one");
        assert_eq!((figures.pins[0].total, figures.pins[0].per_s), (1, 0.5));
        assert_eq!((figures.faults[0].kind.as_str(), figures.faults[0].per_s), ("login_failed", 2.0));
        assert_eq!((figures.queue.waiting, figures.servers.open), (3, 1));
    }

    #[test]
    fn a_number_that_another_pool_has_now_is_counted_from_the_start() {
        let served = |answered| Served { answered, took_ns: answered, waited_ns: answered };
        assert_eq!(grown_by(served(7), served(5)), served(2));
        assert_eq!(grown_by(served(3), served(5)), served(3));
    }

    #[test]
    fn a_failing_database_is_remembered_when_its_pool_is_not() {
        let mut pulse = Pulse::new();
        let name = (Protocol::Postgres, "app".to_owned());
        let failure = |at_ms| Arc::new(Failure { at_ms, fault: FaultKind::ServerUnavailable.into() });
        let mut look = |failing, proven, failure| {
            let servers = usize::from(proven);
            let database = Database { pools: 1, servers, failing, proven, failure, ..Database::default() };
            pulse.databases = BTreeMap::from([(name.clone(), database)]);
            pulse.remember();
            pulse.state(Protocol::Postgres, "app", &Decrees::default())
        };
        assert_eq!(look(true, false, Some(failure(5))), DatabaseState::Failing);
        assert_eq!(look(false, false, None), DatabaseState::Failing, "another pool has not tried yet");
        assert_eq!(look(false, true, None), DatabaseState::Up);
        pulse.databases.clear();
        pulse.remember();
        assert_eq!(pulse.state(Protocol::Postgres, "app", &Decrees::default()), DatabaseState::Unused);
        let shown = pulse.database(DatabaseState::Unused, Protocol::Postgres, "app", 2_005_000_000, false);
        let fault = shown.fault.unwrap();
        assert_eq!((fault.kind.as_str(), fault.ago_s, fault.detail), ("server_unavailable", 2, None));
        for n in 0..2 * REMEMBERED_FAILURES as u64 {
            let database = Database { failing: true, failure: Some(failure(n)), ..Database::default() };
            pulse.databases = BTreeMap::from([((Protocol::Mysql, format!("d{n}")), database)]);
            pulse.remember();
        }
        assert_eq!((pulse.failures.len(), pulse.failing.len()), (REMEMBERED_FAILURES, REMEMBERED_FAILURES));
    }

    #[test]
    fn few_looks_are_taken_while_nobody_is_interested() {
        let mut pulse = Pulse::new();
        let at = |seconds| pulse.at + Duration::from_secs(seconds);
        let due: Vec<u64> = (1..12).filter(|&second| pulse.is_due(at(second))).collect();
        assert_eq!(due, [9, 10, 11]);
        pulse.asked = Some(at(5));
        let at = |seconds| pulse.at + Duration::from_secs(seconds);
        assert!(pulse.is_due(at(6)) && pulse.is_due(at(7)));
    }
}
