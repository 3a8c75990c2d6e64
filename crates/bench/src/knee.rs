//! The knee of a curve of throughput against connections: how many connections are enough, and how many too
//! many.
//!
//! Owns: the ladder (which number of connections to measure next), the fit of the Universal Scalability Law,
//! and what follows from both. Pure: levels in, advice out. Must not know: how a level is measured.
//!
//! The law (N. J. Gunther): with N connections the throughput is `X(N) = l N / (1 + s (N - 1) + k N (N -
//! 1))`: `l` what one connection alone does, `s` the share that cannot be done at the same time, `k` the
//! price of keeping each other informed. `N / X(N)` is linear in 1/l, s/l and k/l, so the fit is a
//! least-squares problem with three unknowns that are not negative, solved exactly by trying which of them
//! are zero. Residuals are relative: a level of 1,000/s counts as much as one of 100,000/s.
//!
//! The *knee* is the smallest number of connections that reaches [`KNEE_SHARE`] of the best throughput. More
//! connections bring nothing from there on but latency.

use crate::stats::Estimate;

/// The share of the best throughput that makes a knee.
pub const KNEE_SHARE: f64 = 0.95;

/// Clients that take away less than this share of the best throughput are no harm.
const HARM_SHARE: f64 = 0.90;

/// A fit whose typical relative error is larger does not describe the curve.
const FIT_ERROR_MAX: f64 = 0.10;

/// A level that gains less than this over the best before has stopped rising.
const GAIN_MIN: f64 = 0.03;

/// Latency that has grown by this factor has started to rise.
const LATENCY_RISE: f64 = 1.3;

/// Levels that must have stopped rising before the ladder ends.
const FLAT_LEVELS: usize = 2;

/// Levels that are measured beside the knee when the ladder has ended.
const REFINE_LEVELS: usize = 2;

/// What was measured at one number of connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Connections.
    pub connections: u32,
    /// Events each second.
    pub throughput: Estimate,
    /// Mean latency of an event, in milliseconds.
    pub mean_ms: f64,
    /// 95th percentile of it.
    pub p95_ms: f64,
}

/// The Universal Scalability Law, fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Law {
    /// Throughput of one connection.
    pub lambda: f64,
    /// Contention: the share of the work that is done one after another.
    pub sigma: f64,
    /// Coherence: what each pair of connections costs.
    pub kappa: f64,
    /// The typical relative distance (root of the mean square) of a level from the curve.
    pub error: f64,
}

impl Law {
    /// Fits the law. `None` with fewer than three levels, or none with a throughput.
    pub fn fit(levels: &[Level]) -> Option<Law> {
        let points: Vec<(f64, f64)> = levels
            .iter()
            .filter(|level| level.throughput.mean > 0.0)
            .map(|level| (f64::from(level.connections), level.throughput.mean))
            .collect();
        if points.len() < 3 {
            return None;
        }
        // Rows of the least-squares problem, each divided by N/X: the wanted side is 1 everywhere.
        let rows: Vec<[f64; 3]> = points
            .iter()
            .map(|&(n, x)| {
                let w = x / n;
                [w, w * (n - 1.0), w * n * (n - 1.0)]
            })
            .collect();
        let mut best: Option<([f64; 3], f64)> = None;
        // Which of sigma and kappa may differ from zero. Lambda always does.
        for active in [[true, true, true], [true, true, false], [true, false, true], [true, false, false]] {
            let Some(solution) = least_squares(&rows, active) else { continue };
            if solution.iter().any(|&v| v < 0.0) || solution[0] <= 0.0 {
                continue;
            }
            let residual =
                |row: &[f64; 3]| (row.iter().zip(&solution).map(|(a, b)| a * b).sum::<f64>() - 1.0).powi(2);
            let sum: f64 = rows.iter().map(residual).sum();
            if best.is_none_or(|(_, least)| sum < least) {
                best = Some((solution, sum));
            }
        }
        let ([a, b, c], sum) = best?;
        Some(Law { lambda: 1.0 / a, sigma: b / a, kappa: c / a, error: (sum / rows.len() as f64).sqrt() })
    }

    /// Throughput at this number of connections.
    pub fn at(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }

    /// Where the curve is highest; infinite where it never falls.
    pub fn peak(&self) -> f64 {
        if self.kappa <= 0.0 {
            f64::INFINITY
        } else {
            ((1.0 - self.sigma).max(0.0) / self.kappa).sqrt().max(1.0)
        }
    }

    /// It describes what was measured.
    pub fn is_good(&self) -> bool {
        self.error <= FIT_ERROR_MAX
    }
}

/// Solves `rows * x = 1` in the sense of least squares with the inactive unknowns zero.
fn least_squares(rows: &[[f64; 3]], active: [bool; 3]) -> Option<[f64; 3]> {
    let columns: Vec<usize> = (0..3).filter(|&n| active[n]).collect();
    let size = columns.len();
    // Columns differ by many powers of ten: each is divided by its length before the normal equations are
    // made.
    let lengths: Vec<f64> =
        columns.iter().map(|&c| rows.iter().map(|row| row[c] * row[c]).sum::<f64>().sqrt()).collect();
    if lengths.contains(&0.0) {
        return None;
    }
    let mut matrix = vec![vec![0.0; size + 1]; size];
    for row in rows {
        for i in 0..size {
            let value = row[columns[i]] / lengths[i];
            for j in 0..size {
                matrix[i][j] += value * row[columns[j]] / lengths[j];
            }
            matrix[i][size] += value;
        }
    }
    // Gauss, with the largest pivot.
    for i in 0..size {
        let pivot = (i..size).max_by(|&a, &b| matrix[a][i].abs().total_cmp(&matrix[b][i].abs()))?;
        matrix.swap(i, pivot);
        if matrix[i][i].abs() < 1e-12 {
            return None;
        }
        let pivot_row = matrix[i].clone();
        for (_, row) in matrix.iter_mut().enumerate().filter(|(other, _)| *other != i) {
            let factor = row[i] / pivot_row[i];
            for (value, pivot) in row.iter_mut().zip(&pivot_row) {
                *value -= factor * pivot;
            }
        }
    }
    let mut solution = [0.0; 3];
    for i in 0..size {
        solution[columns[i]] = matrix[i][size] / matrix[i][i] / lengths[i];
    }
    Some(solution)
}

/// What a curve says.
#[derive(Debug, Clone, PartialEq)]
pub struct Knee {
    /// Connections at the knee.
    pub connections: u32,
    /// Throughput there.
    pub throughput: f64,
    /// Mean latency there, in milliseconds (Little's law).
    pub latency_ms: f64,
    /// The best throughput.
    pub best: f64,
    /// The level at which it was measured.
    pub best_at: u32,
    /// The law, if there were enough levels.
    pub law: Option<Law>,
    /// The knee was found on the fitted curve; else between the measured levels.
    pub by_law: bool,
    /// The throughput was still rising at the last level: the knee may be further on.
    pub still_rising: bool,
    /// Up to so many connections the throughput stays above 90% of the best.
    pub direct_limit: u32,
    /// That limit is the last level measured: the true one may be higher.
    pub limit_not_reached: bool,
}

impl Knee {
    /// Finds the knee. Levels in any order; `None` without any throughput.
    pub fn find(levels: &[Level]) -> Option<Knee> {
        let mut levels: Vec<Level> = levels.iter().copied().filter(|l| l.throughput.mean > 0.0).collect();
        levels.sort_by_key(|level| level.connections);
        let last = *levels.last()?;
        let measured_best = levels.iter().max_by(|a, b| a.throughput.mean.total_cmp(&b.throughput.mean))?;
        let law = Law::fit(&levels);
        let best_at = measured_best.connections;
        let good = law.filter(Law::is_good);
        let curve = |n: f64| match good {
            Some(law) => law.at(n),
            None => between(&levels, n),
        };
        let (first, last_n) = (f64::from(levels[0].connections), f64::from(last.connections));
        // A curve has one best place; the measured levels, noisy as they are, would make the best too good.
        let top = match good {
            Some(law) => law.peak().clamp(first, last_n),
            None => f64::from(best_at),
        };
        let best = curve(top);
        let connections = whole_from(first, top, |n| curve(n) >= KNEE_SHARE * best);
        let limit = largest_until(top, last_n, |n| curve(n) >= HARM_SHARE * best);
        let throughput = curve(f64::from(connections));
        Some(Knee {
            connections,
            throughput,
            latency_ms: f64::from(connections) * 1e3 / throughput,
            best,
            best_at,
            law,
            by_law: good.is_some(),
            still_rising: is_rising(&levels),
            direct_limit: limit,
            limit_not_reached: limit >= last.connections,
        })
    }

    /// How many clients may be busy at the same time behind a pool of the knee's size so that their mean
    /// latency stays below this (Little's law: N = X R).
    pub fn clients_for(&self, latency_ms: f64) -> u64 {
        (self.best * latency_ms / 1e3).floor().max(f64::from(self.connections)) as u64
    }
}

/// The curve through the measured levels, straight on doubly logarithmic paper.
fn between(levels: &[Level], n: f64) -> f64 {
    let point = |level: &Level| (f64::from(level.connections), level.throughput.mean);
    let above = levels.iter().position(|level| f64::from(level.connections) >= n);
    match above {
        None => levels.last().map_or(0.0, |level| level.throughput.mean),
        Some(0) => levels[0].throughput.mean,
        Some(i) => {
            let ((n0, x0), (n1, x1)) = (point(&levels[i - 1]), point(&levels[i]));
            let share = (n / n0).ln() / (n1 / n0).ln();
            x0 * (x1 / x0).powf(share)
        }
    }
}

/// The smallest whole number from `low` to `high` for which `holds`.
fn whole_from(low: f64, high: f64, holds: impl Fn(f64) -> bool) -> u32 {
    let (low, high) = (low.ceil().max(1.0) as u32, high.round().max(1.0) as u32);
    (low..high).find(|&n| holds(f64::from(n))).unwrap_or(high)
}

/// The largest whole number from `low` to `high` up to which `holds`.
fn largest_until(low: f64, high: f64, holds: impl Fn(f64) -> bool) -> u32 {
    let (low, high) = (low.round().max(1.0) as u32, high.round().max(1.0) as u32);
    (low..=high).take_while(|&n| holds(f64::from(n))).last().unwrap_or(low)
}

/// The last level still gained over all before it, by more than chance.
fn is_rising(sorted: &[Level]) -> bool {
    let Some((last, before)) = sorted.split_last() else { return false };
    let Some(best) = before.iter().max_by(|a, b| a.throughput.mean.total_cmp(&b.throughput.mean)) else {
        return true;
    };
    gains(last, best)
}

fn gains(level: &Level, best: &Level) -> bool {
    let noise = finite(level.throughput.half_width).hypot(finite(best.throughput.half_width));
    level.throughput.mean - best.throughput.mean > noise.max(GAIN_MIN * best.throughput.mean)
}

fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

/// Which number of connections comes next: doubled from the first until throughput has stopped rising and
/// latency has started to, then a few beside the knee.
#[derive(Debug, Clone)]
pub struct Ladder {
    next: u32,
    max: u32,
    levels: Vec<Level>,
    flat: usize,
    refined: usize,
    /// No more than so many can be had: the server refused.
    refused: bool,
}

impl Ladder {
    /// A ladder from `from` to `max` connections.
    pub fn new(from: u32, max: u32) -> Ladder {
        let from = from.max(1);
        Ladder { next: from, max: max.max(from), levels: Vec::new(), flat: 0, refined: 0, refused: false }
    }

    /// The levels measured so far, in the order of measuring.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The ladder ended because the server takes no more connections.
    pub fn was_refused(&self) -> bool {
        self.refused
    }

    /// The next number of connections; `None`: enough is known.
    pub fn next_connections(&mut self) -> Option<u32> {
        if self.next > 0 {
            return Some(self.next);
        }
        self.refine()
    }

    /// A level was measured.
    pub fn push(&mut self, level: Level) {
        let climbing = self.next > 0;
        if climbing {
            let best =
                self.levels.iter().max_by(|a, b| a.throughput.mean.total_cmp(&b.throughput.mean)).copied();
            // By the means alone: on a noisy machine nothing is proven, and a level too many costs seconds
            // only.
            let stopped = best.is_some_and(|best| {
                level.throughput.mean < best.throughput.mean * (1.0 + GAIN_MIN)
                    && level.mean_ms > best.mean_ms * LATENCY_RISE
            });
            self.flat = if stopped { self.flat + 1 } else { 0 };
            let doubled = self.next.saturating_mul(2);
            self.next =
                if self.flat >= FLAT_LEVELS || self.next >= self.max { 0 } else { doubled.min(self.max) };
        }
        self.levels.push(level);
    }

    /// The server does not take so many connections.
    pub fn refuse(&mut self) {
        self.refused = true;
        self.next = 0;
    }

    /// A level between the knee and its neighbours, if one is missing.
    fn refine(&mut self) -> Option<u32> {
        if self.refined >= REFINE_LEVELS {
            return None;
        }
        self.refined += 1;
        let mut known: Vec<u32> = self.levels.iter().map(|level| level.connections).collect();
        known.sort_unstable();
        known.dedup();
        let knee = Knee::find(&self.levels)?.connections;
        let above = *known.iter().find(|&&n| n >= knee)?;
        let below = *known.iter().rev().find(|&&n| n < above)?;
        // On a logarithmic axis the middle is the root of the product.
        let middle = (f64::from(below) * f64::from(above)).sqrt().round() as u32;
        (middle > below && middle < above).then_some(middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::tests::noise;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    const DOUBLING: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

    fn level(connections: u32, throughput: f64, error: f64) -> Level {
        let throughput = Estimate { mean: throughput, half_width: error, ..Estimate::default() };
        let mean_ms = f64::from(connections) * 1e3 / throughput.mean;
        Level { connections, throughput, mean_ms, p95_ms: mean_ms * 1.5 }
    }

    fn law_levels(law: Law, counts: &[u32], relative: f64, seed: u64) -> Vec<Level> {
        let mut rng = StdRng::seed_from_u64(seed);
        let one = |&n: &u32| {
            let x = law.at(f64::from(n));
            level(n, x * (1.0 + relative * noise(&mut rng)), 2.0 * relative * x)
        };
        counts.iter().map(one).collect()
    }

    fn climb(curve: impl Fn(u32) -> Level, max: u32) -> Ladder {
        let mut ladder = Ladder::new(1, max);
        while let Some(n) = ladder.next_connections() {
            ladder.push(curve(n));
            assert!(ladder.levels().len() < 40, "it ends");
        }
        ladder
    }

    #[test]
    fn an_exact_curve_is_found_again() {
        for (lambda, sigma, kappa) in
            [(1000.0, 0.05, 0.0002), (8000.0, 0.2, 0.0), (50.0, 0.0, 0.001), (3.0, 0.0, 0.0)]
        {
            let law = Law { lambda, sigma, kappa, error: 0.0 };
            let found = Law::fit(&law_levels(law, &DOUBLING, 0.0, 1)).unwrap();
            assert!((found.lambda / lambda - 1.0).abs() < 1e-6, "{found:?}");
            assert!((found.sigma - sigma).abs() < 1e-6 && (found.kappa - kappa).abs() < 1e-7, "{found:?}");
            assert!(found.error < 1e-6);
        }
    }

    #[test]
    fn noise_moves_the_knee_a_little_only() {
        let law = Law { lambda: 9000.0, sigma: 0.06, kappa: 0.0008, error: 0.0 };
        let exact = Knee::find(&law_levels(law, &DOUBLING, 0.0, 1)).unwrap();
        assert!(exact.by_law && !exact.still_rising);
        // The peak lies at sqrt(0.94 / 0.0008) = 34; 95% of it is reached at 20.
        assert_eq!(
            exact.connections,
            (1..40).find(|&n| law.at(f64::from(n)) >= 0.95 * law.at(law.peak())).unwrap()
        );
        for seed in 1..=50 {
            let knee = Knee::find(&law_levels(law, &DOUBLING, 0.05, seed)).unwrap();
            let ratio = f64::from(knee.connections) / f64::from(exact.connections);
            assert!(
                (0.6..1.7).contains(&ratio),
                "seed {seed}: {} instead of {}",
                knee.connections,
                exact.connections
            );
            assert!((knee.best / exact.best - 1.0).abs() < 0.10, "seed {seed}: {knee:?}");
        }
    }

    #[test]
    fn a_saturated_server_without_a_fall() {
        // Two cores: straight up to 2, then flat. The law cannot bend so sharply; the levels themselves say
        // it.
        let curve = |n: u32| level(n, 10_000.0 * f64::from(n.min(2)), 100.0);
        let knee = Knee::find(&DOUBLING.map(curve)).unwrap();
        assert!((2..=3).contains(&knee.connections), "{knee:?}");
        assert!(knee.limit_not_reached && !knee.still_rising);
        let ladder = climb(curve, 4096);
        assert_eq!(ladder.levels().iter().map(|l| l.connections).max(), Some(8));
    }

    #[test]
    fn the_published_curve_has_its_published_knee() {
        // MySQL 8.0.15 on 48 cores, point selects from memory, as its maker showed them: 1.8 million a second
        // with 128 clients, then a decline.
        let published = [
            (16, 300e3),
            (32, 600e3),
            (64, 1.2e6),
            (128, 1.8e6),
            (256, 1.75e6),
            (512, 1.65e6),
            (1024, 1.5e6),
        ];
        let levels: Vec<Level> = published.iter().map(|&(n, x)| level(n, x, x * 0.01)).collect();
        let knee = Knee::find(&levels).unwrap();
        assert!((96..=160).contains(&knee.connections), "{knee:?}");
        // The rule of thumb shown with it is 4 x cores, 192.
        assert!(knee.direct_limit >= 192, "{knee:?}");
        assert!((0.05..0.11).contains(&knee.latency_ms), "{knee:?}");
    }

    #[test]
    fn a_curve_that_still_rises_is_not_said_to_have_ended() {
        let curve = |n: u32| level(n, 100.0 * f64::from(n), 1.0);
        let ladder = climb(curve, 64);
        let knee = Knee::find(ladder.levels()).unwrap();
        assert!(knee.still_rising, "{knee:?}");
        assert_eq!(knee.best_at, 64);
    }

    #[test]
    fn the_ladder_goes_on_while_anything_is_gained() {
        let law = Law { lambda: 1000.0, sigma: 0.02, kappa: 0.0005, error: 0.0 };
        let ladder = climb(|n| level(n, law.at(f64::from(n)), 5.0), 100_000);
        let counts: Vec<u32> = ladder.levels().iter().map(|l| l.connections).collect();
        assert!(counts.starts_with(&[1, 2, 4, 8, 16, 32, 64, 128]), "{counts:?}");
        assert!(counts.iter().all(|&n| n <= 256), "{counts:?}");
        // Between two powers of two, beside the knee.
        assert!(!counts.last().unwrap().is_power_of_two(), "{counts:?}");
    }

    #[test]
    fn a_noisy_machine_does_not_end_the_ladder_early() {
        let law = Law { lambda: 1000.0, sigma: 0.02, kappa: 0.0005, error: 0.0 };
        // Intervals so wide that no level is proven to gain over another.
        let ladder = climb(|n| level(n, law.at(f64::from(n)), 50_000.0), 100_000);
        assert_eq!(ladder.levels().iter().map(|l| l.connections).max(), Some(128));
    }

    #[test]
    fn a_server_that_refuses_ends_the_ladder() {
        let mut ladder = Ladder::new(1, 1024);
        while let Some(n) = ladder.next_connections() {
            if n > 100 { ladder.refuse() } else { ladder.push(level(n, 100.0 * f64::from(n), 1.0)) }
        }
        assert!(ladder.was_refused());
        assert_eq!(ladder.levels().iter().map(|l| l.connections).max(), Some(64));
    }

    #[test]
    fn nothing_measured_says_nothing() {
        assert!(Knee::find(&[]).is_none() && Knee::find(&[level(1, 0.0, 0.0)]).is_none());
        let one = Knee::find(&[level(4, 100.0, 1.0)]).unwrap();
        assert_eq!((one.connections, one.law), (4, None));
        assert_eq!(one.clients_for(1000.0), 100);
    }
}
