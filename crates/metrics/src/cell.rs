//! The smallest parts: a counter, a gauge and a histogram that one thread writes and any thread reads.
//!
//! Invariant: a cell has one writer, the worker it was given to. A step is therefore a plain load and store
//! and not a locked instruction; two writers would lose steps (never more than that). Readers may be a few
//! steps behind.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    #[inline]
    pub fn inc(&self) {
        self.add(1);
    }

    /// `n` more.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// How many.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number that grows and shrinks. What one worker adds another may take away (a server that moves), so a
/// single gauge may be below 0; the sum over the workers never is for long.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// One more.
    #[inline]
    pub fn inc(&self) {
        self.add(1);
    }

    /// One less.
    #[inline]
    pub fn dec(&self) {
        self.add(-1);
    }

    /// `n` more, or less.
    #[inline]
    pub fn add(&self, n: i64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// Exactly `n`.
    #[inline]
    pub fn set(&self, n: i64) {
        self.0.store(n, Relaxed);
    }

    /// How many.
    #[inline]
    pub fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// Buckets of [`Counts`]: none, 1, 2, up to 4, 8 and so on to 1,024, and more.
pub const COUNT_BUCKETS: usize = 13;

/// How many there were at a time: a histogram of small numbers.
#[derive(Debug, Default)]
pub struct Counts {
    buckets: [Counter; COUNT_BUCKETS],
    sum: Counter,
}

impl Counts {
    /// So many this time.
    #[inline]
    pub fn record(&self, count: usize) {
        self.buckets[count_bucket(count)].inc();
        self.sum.add(count as u64);
    }

    /// Adds what is in the cells to `totals`.
    pub fn add_to(&self, totals: &mut CountTotals) {
        for (total, bucket) in totals.buckets.iter_mut().zip(&self.buckets) {
            *total += bucket.get();
        }
        totals.sum += self.sum.get();
    }
}

#[inline]
fn count_bucket(count: usize) -> usize {
    match count.checked_sub(1) {
        None => 0,
        Some(less) => (less.checked_ilog2().map_or(1, |log| log as usize + 2)).min(COUNT_BUCKETS - 1),
    }
}

/// The most that is counted in a bucket; the last one has no end.
pub fn count_bucket_end(bucket: usize) -> Option<u64> {
    match bucket {
        0 => Some(0),
        bucket if bucket < COUNT_BUCKETS - 1 => Some(1 << (bucket - 1)),
        _ => None,
    }
}

/// The sum of several [`Counts`] at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountTotals {
    /// Times, by how many there were.
    pub buckets: [u64; COUNT_BUCKETS],
    /// All of them together.
    pub sum: u64,
}

impl CountTotals {
    /// Times.
    pub fn times(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// Buckets of a [`Histogram`]: one below 8 us, four for each doubling from 8 us to 134 s, one above.
pub const BUCKETS: usize = 1 + 4 * OCTAVES + 1;
/// Doublings: 8 us * 2^24 = 134 s, more than `query_wait_timeout` is by default.
const OCTAVES: usize = 24;
/// 8 us: less than a hop over loopback costs.
const FIRST_OCTAVE: u32 = 3;

/// How long things took: buckets a quarter of an octave wide, so that a quantile is right within 12.5%.
#[derive(Debug)]
pub struct Histogram {
    buckets: [Counter; BUCKETS],
    sum_ns: Counter,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: std::array::from_fn(|_| Counter::default()), sum_ns: Counter::default() }
    }
}

impl Histogram {
    /// Counts one thing that took this long.
    #[inline]
    pub fn record_ns(&self, ns: u64) {
        self.buckets[bucket_of(ns / 1000)].inc();
        self.sum_ns.add(ns);
    }

    /// Nanoseconds of all things together: grows with each.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns.get()
    }

    /// Adds what is in the cells to `totals`.
    pub fn add_to(&self, totals: &mut HistogramTotals) {
        for (total, bucket) in totals.buckets.iter_mut().zip(&self.buckets) {
            *total += bucket.get();
        }
        totals.sum_ns += self.sum_ns.get();
    }
}

/// The bucket of a time in microseconds.
#[inline]
fn bucket_of(us: u64) -> usize {
    if us < 1 << FIRST_OCTAVE {
        return 0;
    }
    let octave = us.ilog2();
    let quarter = (us >> (octave - 2)) & 3;
    let bucket = 1 + 4 * (octave - FIRST_OCTAVE) as usize + quarter as usize;
    bucket.min(BUCKETS - 1)
}

/// Where a bucket ends, in microseconds; the last one has no end.
pub fn bucket_end_us(bucket: usize) -> u64 {
    if bucket == 0 {
        return 1 << FIRST_OCTAVE;
    }
    if bucket >= BUCKETS - 1 {
        return u64::MAX;
    }
    let (octave, quarter) = ((bucket - 1) / 4, (bucket - 1) as u64 % 4);
    ((5 + quarter) << (octave + FIRST_OCTAVE as usize)) / 4
}

/// The sum of several histograms at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramTotals {
    /// Things in each bucket.
    pub buckets: [u64; BUCKETS],
    /// All times together, in nanoseconds.
    pub sum_ns: u64,
}

impl Default for HistogramTotals {
    fn default() -> Self {
        HistogramTotals { buckets: [0; BUCKETS], sum_ns: 0 }
    }
}

impl HistogramTotals {
    /// Counts one thing that took this long.
    #[inline]
    pub fn record_ns(&mut self, ns: u64) {
        self.buckets[bucket_of(ns / 1000)] += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &HistogramTotals) {
        for (total, other) in self.buckets.iter_mut().zip(&other.buckets) {
            *total += other;
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// Things counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The mean, in nanoseconds; 0 when nothing was counted.
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(self.count()).unwrap_or(0)
    }

    /// The time within which `quantile` (0 to 1) of all things ended, in nanoseconds: a point on the line
    /// between the ends of its bucket. 0 when nothing was counted.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let count = self.count();
        if count == 0 {
            return 0;
        }
        let rank = (quantile.clamp(0.0, 1.0) * count as f64).max(1.0);
        let mut before = 0;
        for (bucket, &here) in self.buckets.iter().enumerate() {
            if here > 0 && (before + here) as f64 >= rank {
                let start = if bucket == 0 { 0 } else { bucket_end_us(bucket - 1) };
                let end = if bucket == BUCKETS - 1 { start } else { bucket_end_us(bucket) };
                let part = (rank - before as f64) / here as f64;
                return ((start as f64 + part * (end - start) as f64) * 1000.0) as u64;
            }
            before += here;
        }
        0
    }

    /// What was added after `earlier` was taken.
    pub fn since(&self, earlier: &HistogramTotals) -> HistogramTotals {
        let mut difference = self.clone();
        for (now, then) in difference.buckets.iter_mut().zip(&earlier.buckets) {
            *now = now.saturating_sub(*then);
        }
        difference.sum_ns = self.sum_ns.saturating_sub(earlier.sum_ns);
        difference
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_the_bucket_that_says_so() {
        for count in (0..3_000).chain([usize::MAX]) {
            let bucket = count_bucket(count);
            assert!(
                count_bucket_end(bucket).is_none_or(|end| count as u64 <= end),
                "{count} in bucket {bucket}"
            );
            let before = bucket.checked_sub(1).and_then(count_bucket_end);
            assert!(before.is_none_or(|end| count as u64 > end), "{count} in bucket {bucket}");
        }
        assert_eq!(count_bucket_end(COUNT_BUCKETS - 2), Some(1024));
    }

    #[test]
    fn every_time_is_in_the_bucket_that_says_so() {
        for us in (0..4096).chain((0..40).map(|n| (1u64 << n) - 1)).chain((0..40).map(|n| 1u64 << n)) {
            let bucket = bucket_of(us);
            assert!(us < bucket_end_us(bucket), "{us} us in bucket {bucket}");
            assert!(bucket == 0 || us >= bucket_end_us(bucket - 1), "{us} us in bucket {bucket}");
        }
        assert_eq!(bucket_end_us(BUCKETS - 2), 134_217_728);
    }

    #[test]
    fn quantiles_are_within_a_bucket() {
        let histogram = Histogram::default();
        for us in 1..=10_000u64 {
            histogram.record_ns(us * 1000);
        }
        let mut totals = HistogramTotals::default();
        histogram.add_to(&mut totals);
        for (quantile, us) in [(0.5, 5_000.0), (0.95, 9_500.0), (0.99, 9_900.0)] {
            let found = totals.quantile_ns(quantile) as f64 / 1000.0;
            assert!((found / us - 1.0).abs() < 0.125, "{quantile}: {found} instead of {us}");
        }
        assert_eq!(totals.mean_ns(), 5_000_500);
        assert_eq!(HistogramTotals::default().quantile_ns(0.5), 0);
        histogram.record_ns(1_000_000_000);
        let mut later = HistogramTotals::default();
        histogram.add_to(&mut later);
        let difference = later.since(&totals);
        assert_eq!(difference.count(), 1);
        assert!((0.8e9..1.2e9).contains(&(difference.quantile_ns(1.0) as f64)));
    }
}
