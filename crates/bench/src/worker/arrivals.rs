//! The due times of an open loop's events: a sequence that is generated on the fly, so that a queue of events
//! costs no memory, however long it is.

use crate::dice::Dice;

/// The dues of one worker.
#[derive(Debug, Clone)]
pub(super) struct Arrivals {
    next: Cursor,
    /// The same sequence, run ahead: the difference is the queue.
    ahead: Cursor,
}

#[derive(Debug, Clone)]
struct Cursor {
    start_ns: f64,
    interval_ns: f64,
    poisson: bool,
    seed: u64,
    worker: u32,
    number: u64,
    due_ns: f64,
}

impl Arrivals {
    /// Events of worker `worker` of `workers` from `start_ns` on, `rate` a second.
    pub(super) fn new(
        start_ns: u64,
        rate: f64,
        poisson: bool,
        seed: u64,
        worker: u32,
        workers: u32,
    ) -> Arrivals {
        let interval_ns = 1e9 / rate;
        // At equal distances the workers take turns.
        let first_ns =
            if poisson { 0.0 } else { interval_ns * f64::from(worker) / f64::from(workers.max(1)) };
        let start_ns = start_ns as f64 + first_ns;
        let mut next = Cursor { start_ns, interval_ns, poisson, seed, worker, number: 0, due_ns: start_ns };
        if poisson {
            next.advance();
        }
        Arrivals { ahead: next.clone(), next }
    }

    /// When the oldest event that has not begun is, or will be, due.
    pub(super) fn due_ns(&self) -> u64 {
        self.next.due_ns as u64
    }

    /// That event begins.
    pub(super) fn take(&mut self) {
        self.next.advance();
    }

    /// Events that are due at `now` and have not begun.
    pub(super) fn queued(&mut self, now: u64) -> u64 {
        if self.ahead.number < self.next.number {
            self.ahead = self.next.clone();
        }
        while self.ahead.due_ns as u64 <= now {
            self.ahead.advance();
        }
        self.ahead.number - self.next.number
    }
}

impl Cursor {
    fn advance(&mut self) {
        self.number += 1;
        if self.poisson {
            let mut dice =
                Dice::new(self.seed, self.worker, self.number as u32, self.number >> 32 | 0x6172_0000_0000);
            self.due_ns += dice.exponential(self.interval_ns);
        } else {
            // From the start each time: no error adds up.
            self.due_ns = self.start_ns + self.interval_ns * self.number as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn dues(mut arrivals: Arrivals, until_ns: u64) -> Vec<u64> {
        let mut dues = Vec::new();
        while arrivals.due_ns() < until_ns {
            dues.push(arrivals.due_ns());
            arrivals.take();
        }
        dues
    }

    #[test]
    fn constant_rates_of_two_workers_are_one_even_sequence() {
        let mut all = dues(Arrivals::new(S, 10.0, false, 1, 0, 2), 2 * S);
        all.extend(dues(Arrivals::new(S, 10.0, false, 1, 1, 2), 2 * S));
        all.sort_unstable();
        assert_eq!(all, (0..20).map(|n| S + n * S / 20).collect::<Vec<_>>());
    }

    #[test]
    fn random_moments_have_the_rate_and_the_spread_of_a_poisson_process() {
        let dues = dues(Arrivals::new(0, 1000.0, true, 7, 0, 1), 100 * S);
        let n = dues.len() as f64;
        assert!((n / 100_000.0 - 1.0).abs() < 0.02, "{n}");
        let gaps: Vec<f64> = dues.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / n;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
        // Exponential: the standard deviation is the mean.
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "{mean} {variance}");
    }

    #[test]
    fn the_queue_is_what_is_due_and_has_not_begun() {
        let mut arrivals = Arrivals::new(S, 10.0, false, 1, 0, 1);
        assert_eq!(arrivals.queued(S - 1), 0);
        assert_eq!(arrivals.queued(2 * S - 1), 10);
        arrivals.take();
        assert_eq!(arrivals.queued(2 * S - 1), 9);
        for _ in 0..20 {
            arrivals.take();
        }
        assert_eq!(arrivals.queued(2 * S - 1), 0);
    }
}
