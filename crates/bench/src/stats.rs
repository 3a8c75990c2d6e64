//! Statistics of one-second samples: means with confidence intervals, and whether two runs differ.
//!
//! Owns: the mathematics. Must not know: what was measured.
//!
//! Neighbouring seconds of a run are correlated (a checkpoint lasts several), so n of them contain less
//! information than n independent samples. Everything here therefore uses the *effective* number of samples:
//! n divided by the integrated autocorrelation time, whose sum of autocorrelations is cut off where pairs of
//! them stop being positive (Geyer 1992, "Practical Markov Chain Monte Carlo", the initial positive
//! sequence).

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Samples below which nothing is said about a difference.
pub const SAMPLES_MIN: usize = 5;

/// A mean and how far the true one may be away, with 95% confidence.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// The mean of the samples.
    pub mean: f64,
    /// Half the width of the confidence interval; infinite with less than two samples.
    pub half_width: f64,
    /// The unbiased variance of a sample.
    pub variance: f64,
    /// Samples.
    pub samples: usize,
    /// Independent samples that would say as much.
    pub effective: f64,
}

impl Estimate {
    /// From samples in the order of time.
    pub fn of(samples: &[f64]) -> Estimate {
        let n = samples.len();
        if n == 0 {
            return Estimate { half_width: f64::INFINITY, ..Estimate::default() };
        }
        let mean = samples.iter().sum::<f64>() / n as f64;
        if n == 1 {
            return Estimate { mean, half_width: f64::INFINITY, variance: 0.0, samples: 1, effective: 1.0 };
        }
        let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        let effective = effective_samples(samples, mean);
        let error = (variance / effective).sqrt();
        let half_width = if error == 0.0 { 0.0 } else { student_quantile(0.975, effective - 1.0) * error };
        Estimate { mean, half_width, variance, samples: n, effective }
    }

    /// Half the interval as a share of the mean.
    pub fn relative(&self) -> f64 {
        if self.mean == 0.0 { f64::INFINITY } else { self.half_width / self.mean.abs() }
    }
}

/// How many independent samples say as much about the mean as these: at least two, at most as many as there
/// are.
fn effective_samples(samples: &[f64], mean: f64) -> f64 {
    let n = samples.len();
    let covariance = |lag: usize| {
        samples.iter().zip(&samples[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / n as f64
    };
    let zero = covariance(0);
    if zero <= 0.0 {
        return n as f64;
    }
    let mut time = -1.0;
    let mut lag = 0;
    // Beyond half the samples too few pairs are left to say anything.
    while lag < n / 2 {
        let pair = (covariance(lag) + covariance(lag + 1)) / zero;
        if pair <= 0.0 {
            break;
        }
        time += 2.0 * pair;
        lag += 2;
    }
    (n as f64 / time.max(1.0)).max(2.0)
}

/// What two runs' samples of the same thing say about their difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Of the first run.
    pub a: Estimate,
    /// Of the second.
    pub b: Estimate,
    /// Mean of the second less mean of the first.
    pub difference: f64,
    /// Half the width of its 95% confidence interval.
    pub half_width: f64,
    /// The chance to see such a difference, or a larger one, between two runs of the same thing.
    pub p: f64,
}

/// Whether two runs differ, by their samples. `None`: too few samples.
pub fn compare(a: &[f64], b: &[f64]) -> Option<Difference> {
    (a.len().min(b.len()) >= SAMPLES_MIN).then(|| welch(Estimate::of(a), Estimate::of(b)))
}

/// Welch's t test (unequal variances) on the effective numbers of samples.
pub fn welch(a: Estimate, b: Estimate) -> Difference {
    let (va, vb) = (a.variance / a.effective, b.variance / b.effective);
    let difference = b.mean - a.mean;
    let error = (va + vb).sqrt();
    if error == 0.0 {
        let p = if difference == 0.0 { 1.0 } else { 0.0 };
        return Difference { a, b, difference, half_width: 0.0, p };
    }
    // The degrees of freedom of Welch and Satterthwaite.
    let freedom = (va + vb).powi(2) / (va.powi(2) / (a.effective - 1.0) + vb.powi(2) / (b.effective - 1.0));
    let p = 2.0 * (1.0 - student_cdf((difference / error).abs(), freedom));
    let half_width = student_quantile(0.975, freedom) * error;
    Difference { a, b, difference, half_width, p: p.clamp(0.0, 1.0) }
}

/// How clearly samples rise (above zero) or fall (below), in standard deviations: the test of Mann and
/// Kendall on up to ten means of neighbours, which resemble each other less than the samples do.
pub fn trend(samples: &[f64]) -> f64 {
    let batches = (samples.len() / 2).min(10);
    if batches < 4 {
        return 0.0;
    }
    let cut = |n: usize| n * samples.len() / batches;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let means: Vec<f64> = (0..batches).map(|n| mean(&samples[cut(n)..cut(n + 1)])).collect();
    let mut score = 0.0;
    for (n, earlier) in means.iter().enumerate() {
        for later in &means[n + 1..] {
            score += (later - earlier).partial_cmp(&0.0).map_or(0.0, |order| f64::from(order as i8));
        }
    }
    let n = batches as f64;
    score / (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt()
}

/// Holm's correction: with several differences tested at once, each p is raised so that the chance of *any*
/// false alarm stays what it says. In the order given.
pub fn holm(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_by(|&x, &y| ps[x].total_cmp(&ps[y]));
    let mut corrected = vec![1.0; ps.len()];
    let mut highest = 0.0f64;
    for (rank, &n) in order.iter().enumerate() {
        highest = highest.max((ps[n] * (ps.len() - rank) as f64).min(1.0));
        corrected[n] = highest;
    }
    corrected
}

/// Student's t with this freedom, which is never so small that it has no distribution.
fn student(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom.max(1e-3)).unwrap_or_else(|_| unreachable!("a freedom above zero"))
}

/// The chance that Student's t with this freedom is below `t`.
fn student_cdf(t: f64, freedom: f64) -> f64 {
    student(freedom).cdf(t)
}

/// The t below which Student's t falls with this chance (0.5 to below 1).
fn student_quantile(chance: f64, freedom: f64) -> f64 {
    student(freedom).inverse_cdf(chance)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    /// Normal noise (twelve uniform numbers), the same for the same seed.
    pub(crate) fn noise(rng: &mut StdRng) -> f64 {
        (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
    }

    fn near(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn student_agrees_with_the_tables() {
        // Two-sided 5% points as every table of the t distribution has them.
        for (freedom, t) in
            [(1.0, 12.706), (2.0, 4.303), (5.0, 2.571), (10.0, 2.228), (30.0, 2.042), (1000.0, 1.962)]
        {
            near(student_quantile(0.975, freedom), t, 6e-4);
            near(student_cdf(t, freedom), 0.975, 1e-4);
            near(student_cdf(-t, freedom), 0.025, 1e-4);
        }
    }

    #[test]
    fn welch_agrees_with_a_worked_example() {
        // The first example of the encyclopedias: 15 samples each, equal variances, t = -2.46 with 25 degrees
        // of freedom.
        let a = Estimate { mean: 20.82, variance: 7.9, samples: 15, effective: 15.0, half_width: 0.0 };
        let b = Estimate { mean: 22.99, variance: 3.8, samples: 15, effective: 15.0, half_width: 0.0 };
        let d = welch(a, b);
        near(d.difference, 2.17, 1e-9);
        near(d.p, 0.021, 1e-3);
        // The interval leaves zero out, as it must below 5%.
        assert!(d.half_width < d.difference);
    }

    #[test]
    fn neighbours_that_resemble_each_other_count_for_less() {
        let mut rng = StdRng::seed_from_u64(7);
        let series = |rho: f64, rng: &mut StdRng| {
            let mut x = 0.0;
            (0..2000)
                .map(|_| {
                    x = rho * x + noise(rng);
                    x
                })
                .collect::<Vec<f64>>()
        };
        let independent = Estimate::of(&series(0.0, &mut rng)).effective;
        assert!(independent > 1500.0, "{independent}");
        // The theory: n (1 - rho) / (1 + rho), 222 of 2,000.
        let correlated = Estimate::of(&series(0.8, &mut rng)).effective;
        assert!((130.0..350.0).contains(&correlated), "{correlated}");
    }

    #[test]
    fn runs_of_the_same_thing_are_rarely_called_different() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut run = |shift: f64| {
            let mut x = 0.0;
            (0..60)
                .map(|_| {
                    x = 0.6 * x + noise(&mut rng);
                    100.0 + shift + x
                })
                .collect::<Vec<f64>>()
        };
        let (mut alarms, mut naive, mut found) = (0, 0, 0);
        for _ in 0..400 {
            let (a, b, c) = (run(0.0), run(0.0), run(3.0));
            let d = compare(&a, &b).unwrap();
            alarms += u32::from(d.p < 0.05);
            let error = (d.a.variance / 60.0 + d.b.variance / 60.0).sqrt();
            naive += u32::from((d.difference / error).abs() > 1.98);
            found += u32::from(compare(&a, &c).unwrap().p < 0.05);
        }
        assert!(alarms <= 44, "{alarms} of 400 false alarms; 20 are due");
        assert!(naive > 80, "{naive}: without the correction it would be far more");
        assert!(found > 380, "{found} of 400 true differences found");
    }

    #[test]
    fn little_is_said_of_few_samples() {
        assert_eq!(compare(&[1.0; 4], &[2.0; 10]), None);
        assert_eq!(Estimate::of(&[3.0]).half_width, f64::INFINITY);
        assert_eq!(Estimate::of(&[]).samples, 0);
        let same = compare(&[5.0; 6], &[5.0; 6]).unwrap();
        assert_eq!((same.p, same.difference), (1.0, 0.0));
        assert_eq!(compare(&[5.0; 6], &[6.0; 6]).unwrap().p, 0.0);
    }

    #[test]
    fn a_trend_is_told_from_noise() {
        let mut rng = StdRng::seed_from_u64(3);
        let rising: Vec<f64> = (0..30).map(|n| f64::from(n) + noise(&mut rng)).collect();
        assert!(trend(&rising) > 3.5);
        let falling: Vec<f64> = rising.iter().map(|x| -x).collect();
        assert!(trend(&falling) < -3.5);
        let alarms = (0..200).filter(|_| {
            let flat: Vec<f64> = (0..30).map(|_| noise(&mut rng)).collect();
            trend(&flat).abs() > 2.58
        });
        assert!(alarms.count() <= 5);
        assert_eq!((trend(&[1.0; 20]), trend(&[1.0, 2.0, 3.0])), (0.0, 0.0));
    }

    #[test]
    fn several_tests_at_once_are_corrected() {
        let corrected = holm(&[0.04, 0.01, 0.03]);
        near(corrected[1], 0.03, 1e-12);
        near(corrected[2], 0.06, 1e-12);
        near(corrected[0], 0.06, 1e-12);
        assert!(holm(&[]).is_empty());
    }
}
