//! Records: latencies by phase, counts, errors by code; for each interval and for the whole run.
//!
//! Each worker records for itself; nothing is shared while it works.

pub mod gather;
pub mod result;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use result::RunResult;

/// The lowest latency that is told apart, in nanoseconds.
const LATENCY_MIN_NS: u64 = 1_000;

/// The highest latency that is told apart, in nanoseconds: one hour.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;

/// Significant decimal digits of a latency.
const LATENCY_DIGITS: u8 = 3;

/// Kinds of errors kept apart; further codes are counted together.
const ERROR_KINDS_MAX: usize = 256;

/// Bytes of the first text of a kind of error that are kept.
const ERROR_TEXT_BYTES: usize = 300;

/// Latencies in nanoseconds.
/// As data: the buckets that have any. Whoever reads them has the same histogram.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Latencies(Histogram<u64>);

impl From<Latencies> for Vec<(u64, u64)> {
    fn from(latencies: Latencies) -> Self {
        latencies.buckets().collect()
    }
}

impl From<Vec<(u64, u64)>> for Latencies {
    fn from(buckets: Vec<(u64, u64)>) -> Self {
        let mut latencies = Latencies::new();
        for (ns, count) in buckets {
            latencies.0.saturating_record_n(ns, count);
        }
        latencies
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies::new()
    }
}

impl Latencies {
    /// None yet.
    pub fn new() -> Self {
        // The bounds are constants that hdrhistogram accepts (low >= 1, high >= 2 low, digits <= 5).
        Latencies(
            Histogram::new_with_bounds(LATENCY_MIN_NS, LATENCY_MAX_NS, LATENCY_DIGITS)
                .expect("constant bounds are valid"),
        )
    }

    /// Adds one.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Latencies) {
        // Equal bounds: it cannot fail.
        self.0.add(&other.0).expect("equal bounds");
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// This percentile (0 to 100), in milliseconds; 0 when there is nothing.
    pub fn percentile_ms(&self, percentile: f64) -> f64 {
        if self.0.is_empty() {
            return 0.0;
        }
        // A bucket's upper end may lie above the largest value recorded.
        self.0.value_at_percentile(percentile).min(self.0.max()) as f64 / 1e6
    }

    /// Buckets with at least one: the highest value of each in nanoseconds, and how many fell into it.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// The mean, in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.0.mean() / 1e6
    }

    /// The smallest, in milliseconds.
    pub fn min_ms(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.min() as f64 / 1e6 }
    }

    /// The largest, in milliseconds.
    pub fn max_ms(&self) -> f64 {
        self.0.max() as f64 / 1e6
    }
}

/// The phases of a connection's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Until the socket is connected.
    Connect,
    /// Until the TLS handshake is done.
    Tls,
    /// Until the server says that it is ready.
    Login,
    /// From a query to the end of its reply.
    Query,
}

impl Phase {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Connect => "connect",
            Phase::Tls => "tls",
            Phase::Login => "login",
            Phase::Query => "query",
        }
    }
}

/// How often a kind of error came and what it said first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// How often.
    pub count: u64,
    /// The first text.
    pub first_text: String,
}

/// Errors by phase and code.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<(Phase, String, ErrorCount)>", into = "Vec<(Phase, String, ErrorCount)>")]
pub struct Errors(BTreeMap<(Phase, String), ErrorCount>);

impl From<Errors> for Vec<(Phase, String, ErrorCount)> {
    fn from(errors: Errors) -> Self {
        errors.0.into_iter().map(|((phase, code), error)| (phase, code, error)).collect()
    }
}

impl From<Vec<(Phase, String, ErrorCount)>> for Errors {
    fn from(kinds: Vec<(Phase, String, ErrorCount)>) -> Self {
        Errors(kinds.into_iter().map(|(phase, code, error)| ((phase, code), error)).collect())
    }
}

impl Errors {
    /// Counts one.
    pub fn record(&mut self, phase: Phase, code: &str, text: &str) {
        let full = self.0.len() >= ERROR_KINDS_MAX && !self.0.contains_key(&(phase, code.to_owned()));
        let key = (phase, if full { "other".to_owned() } else { code.to_owned() });
        let kind = self.0.entry(key).or_insert_with(|| {
            let mut end = text.len().min(ERROR_TEXT_BYTES);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            ErrorCount { count: 0, first_text: text[..end].to_owned() }
        });
        kind.count += 1;
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Errors) {
        for (key, error) in &other.0 {
            match self.0.get_mut(key) {
                Some(mine) => mine.count += error.count,
                None => {
                    self.0.insert(key.clone(), error.clone());
                }
            }
        }
    }

    /// All of them together.
    pub fn total(&self) -> u64 {
        self.0.values().map(|e| e.count).sum()
    }

    /// One kind.
    pub fn count(&self, phase: Phase, code: &str) -> u64 {
        self.0.get(&(phase, code.to_owned())).map_or(0, |e| e.count)
    }

    /// Phase, code, how often.
    pub fn iter(&self) -> impl Iterator<Item = (Phase, &str, &ErrorCount)> {
        self.0.iter().map(|((phase, code), error)| (*phase, code.as_str(), error))
    }
}

/// What happened in one interval of one worker.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Interval {
    /// Counts from 0 at the start of recording; `None` while connecting or warming up.
    pub number: u64,
    /// Events that ended.
    pub events: u64,
    /// Queries that ended.
    pub queries: u64,
    /// Of these: SELECT.
    pub reads: u64,
    /// Of these: INSERT, UPDATE, DELETE.
    pub writes: u64,
    /// Errors of every kind, without the ignored ones.
    pub errors: u64,
    /// Ignored errors.
    pub ignored: u64,
    /// Connections made after the start.
    pub reconnects: u64,
    /// Connections that are logged in.
    pub connected: u64,
    /// Of these: with a reply owed to them.
    pub busy: u64,
    /// Events that are due and have found no free client.
    pub queued: u64,
    /// Latencies of events.
    pub latencies: Latencies,
}

impl Interval {
    /// Adds another worker's.
    pub fn merge(&mut self, other: &Interval) {
        self.number = other.number;
        self.events += other.events;
        self.queries += other.queries;
        self.reads += other.reads;
        self.writes += other.writes;
        self.errors += other.errors;
        self.ignored += other.ignored;
        self.reconnects += other.reconnects;
        self.connected += other.connected;
        self.busy += other.busy;
        self.queued += other.queued;
        self.latencies.merge(&other.latencies);
    }

    /// Forgets what was counted; gauges stay.
    pub fn clear(&mut self) {
        *self = Interval { connected: self.connected, ..Interval::default() };
    }
}

/// What happened to one statement.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct OfStatement {
    /// How often it failed, ignored errors included.
    pub errors: u64,
    /// Latencies of those that ended well.
    pub latencies: Latencies,
}

/// What happened in the whole run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Events that ended within the recorded time.
    pub events: u64,
    /// Queries that ended within the recorded time.
    pub queries: u64,
    /// Of these: SELECT.
    pub reads: u64,
    /// Of these: INSERT, UPDATE, DELETE.
    pub writes: u64,
    /// Connections made after the start.
    pub reconnects: u64,
    /// Socket connects.
    pub connect: Latencies,
    /// TLS handshakes.
    pub tls: Latencies,
    /// Of these: an earlier session was resumed.
    pub tls_resumed: u64,
    /// Logins, without the handshake.
    pub login: Latencies,
    /// Queries.
    pub query: Latencies,
    /// Events. For one-query workloads the same as queries, but counted from the moment the event was due.
    pub event: Latencies,
    /// How late the generator itself sent what was due.
    pub lateness: Latencies,
    /// Errors.
    pub errors: Errors,
    /// Errors after which the event was begun again.
    pub ignored: Errors,
    /// By the class of the statement.
    pub statements: Vec<OfStatement>,
    /// Events by the kind of the transaction.
    pub transactions: Vec<Latencies>,
    /// Clients that never could log in.
    pub given_up: u64,
    /// Recorded time, in nanoseconds: of all workers the longest.
    pub recorded_ns: u64,
    /// CPU time of the workers' threads while recording, in microseconds.
    pub cpu_us: u64,
    /// The same of the busiest of them.
    pub busiest_cpu_us: u64,
    /// Of all threads the longest time that it had work and waited for a core, or worked, in microseconds.
    pub busiest_runnable_us: u64,
}

impl Totals {
    /// Adds another worker's.
    pub fn merge(&mut self, other: &Totals) {
        self.events += other.events;
        self.queries += other.queries;
        self.reads += other.reads;
        self.writes += other.writes;
        self.reconnects += other.reconnects;
        self.connect.merge(&other.connect);
        self.tls.merge(&other.tls);
        self.tls_resumed += other.tls_resumed;
        self.login.merge(&other.login);
        self.query.merge(&other.query);
        self.event.merge(&other.event);
        self.lateness.merge(&other.lateness);
        self.errors.merge(&other.errors);
        self.ignored.merge(&other.ignored);
        self.statements.resize_with(self.statements.len().max(other.statements.len()), OfStatement::default);
        for (mine, other) in self.statements.iter_mut().zip(&other.statements) {
            mine.errors += other.errors;
            mine.latencies.merge(&other.latencies);
        }
        self.transactions.resize_with(self.transactions.len().max(other.transactions.len()), Latencies::new);
        for (mine, other) in self.transactions.iter_mut().zip(&other.transactions) {
            mine.merge(other);
        }
        self.given_up += other.given_up;
        self.recorded_ns = self.recorded_ns.max(other.recorded_ns);
        self.cpu_us += other.cpu_us;
        self.busiest_cpu_us = self.busiest_cpu_us.max(other.busiest_cpu_us);
        self.busiest_runnable_us = self.busiest_runnable_us.max(other.busiest_runnable_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_histograms_are_one() {
        let (mut all, mut odd, mut even) = (Latencies::new(), Latencies::new(), Latencies::new());
        for n in 1..=10_000u64 {
            all.record(n * 10_000);
            if n % 2 == 0 { even.record(n * 10_000) } else { odd.record(n * 10_000) }
        }
        odd.merge(&even);
        assert_eq!(odd.count(), 10_000);
        for percentile in [0.0, 50.0, 95.0, 99.9, 100.0] {
            assert_eq!(odd.percentile_ms(percentile), all.percentile_ms(percentile));
        }
        assert!((odd.percentile_ms(50.0) - 50.0).abs() < 0.1);
        assert!((odd.mean_ms() - 50.0).abs() < 0.1);
    }

    #[test]
    fn latencies_that_went_over_the_wire_are_the_same() {
        let mut latencies = Latencies::new();
        (1..=5_000u64).for_each(|n| latencies.record(n * n * 37));
        let text = serde_json::to_string(&latencies).unwrap();
        let back: Latencies = serde_json::from_str(&text).unwrap();
        assert_eq!(back.count(), latencies.count());
        for percentile in [0.0, 50.0, 95.0, 99.9, 100.0] {
            assert_eq!(back.percentile_ms(percentile), latencies.percentile_ms(percentile));
        }
        assert_eq!(
            (back.mean_ms(), back.min_ms(), back.max_ms()),
            (latencies.mean_ms(), latencies.min_ms(), latencies.max_ms())
        );
    }

    #[test]
    fn extremes_are_kept() {
        let mut latencies = Latencies::new();
        assert_eq!((latencies.percentile_ms(95.0), latencies.min_ms()), (0.0, 0.0));
        latencies.record(0);
        latencies.record(u64::MAX);
        assert_eq!(latencies.count(), 2);
        assert!(latencies.max_ms() > 3_599_000.0);
    }

    #[test]
    fn errors_by_code_with_the_first_text() {
        let (mut a, mut b) = (Errors::default(), Errors::default());
        a.record(Phase::Login, "53300", "too many clients");
        a.record(Phase::Login, "53300", "second text");
        b.record(Phase::Login, "53300", "other worker's text");
        b.record(Phase::Query, "wrong-reply", "x");
        a.merge(&b);
        assert_eq!((a.total(), a.count(Phase::Login, "53300"), a.count(Phase::Query, "53300")), (4, 3, 0));
        let (_, _, first) = a.iter().next().unwrap();
        assert_eq!(first.first_text, "too many clients");
    }

    #[test]
    fn kinds_of_errors_are_bounded() {
        let mut errors = Errors::default();
        for n in 0..ERROR_KINDS_MAX + 50 {
            errors.record(Phase::Query, &n.to_string(), &"\u{e9}".repeat(400));
        }
        assert_eq!(errors.total(), (ERROR_KINDS_MAX + 50) as u64);
        assert!(errors.iter().count() <= ERROR_KINDS_MAX + 1);
        assert_eq!(errors.count(Phase::Query, "other"), 50);
    }
}
