//! Random choices without state: the same seed, client, event and position always give the same numbers.
//!
//! The distributions are sysbench's: the same shapes with the same parameters, implemented independently.

/// A well-mixed number from two (the finalizer of SplitMix64).
#[inline]
pub fn mix(a: u64, b: u64) -> u64 {
    let mut z = a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A sequence of random numbers.
#[derive(Debug, Clone)]
pub struct Dice {
    seed: u64,
    drawn: u64,
}

impl Dice {
    /// The numbers of one place of one event.
    #[inline]
    pub fn new(seed: u64, client: u32, event: u32, place: u64) -> Dice {
        let event = mix(mix(seed, u64::from(client)), u64::from(event));
        Dice { seed: mix(event, place), drawn: 0 }
    }

    /// The next one.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.drawn += 1;
        mix(self.seed, self.drawn)
    }

    /// From 0 up to, and without, 1.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        // 53 bits: what a double holds.
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From `low` to `high`, both included. With `high` below `low`: `low`.
    #[inline]
    pub fn uniform(&mut self, low: i64, high: i64) -> i64 {
        if high <= low {
            return low;
        }
        let span = (high - low) as u64 + 1;
        if span == 0 {
            return self.draw() as i64;
        }
        // Multiply and shift (Lemire): the bias of 64 bits onto a table's size is not measurable.
        low + ((u128::from(self.draw()) * u128::from(span)) >> 64) as i64
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

/// How ids are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// The middle more often: the mean of several uniform choices.
    Gaussian {
        /// How many.
        iterations: u32,
    },
    /// sysbench 1.0's default: some share of the choices falls into a small part in the middle, the others
    /// are gaussian.
    Special {
        /// Uniform choices of which the gaussian part is the mean.
        iterations: u32,
        /// Size of the part in the middle, in percent.
        part: u32,
        /// Choices that fall into it, in percent.
        share: u32,
    },
    /// The first rows more often (h 0.2: 80% of the choices are 20% of the rows).
    Pareto {
        /// The parameter h.
        h: f64,
    },
    /// The first rows more often, by Zipf's law.
    Zipfian {
        /// The exponent.
        exponent: f64,
    },
}

impl Distribution {
    /// A choice from `low` to `high`, both included.
    pub fn draw(self, dice: &mut Dice, low: i64, high: i64) -> i64 {
        let span = (high - low).max(0);
        let offset = match self {
            Distribution::Uniform => return dice.uniform(low, high),
            Distribution::Gaussian { iterations } => gaussian(dice, span, iterations),
            Distribution::Special { iterations, part, share } => special(dice, span, iterations, part, share),
            Distribution::Pareto { h } => {
                let power = h.ln() / (1.0 - h).ln();
                ((span + 1) as f64 * dice.unit().powf(power)) as i64
            }
            Distribution::Zipfian { exponent } => zipfian(dice, span + 1, exponent) - 1,
        };
        low + offset.clamp(0, span)
    }
}

fn gaussian(dice: &mut Dice, span: i64, iterations: u32) -> i64 {
    let iterations = iterations.max(1);
    let sum: i64 = (0..iterations).map(|_| dice.uniform(0, span)).sum();
    sum / i64::from(iterations)
}

fn special(dice: &mut Dice, span: i64, iterations: u32, part: u32, share: u32) -> i64 {
    if dice.unit() * 100.0 >= f64::from(share) {
        return gaussian(dice, span, iterations);
    }
    let width = (span as f64 * f64::from(part) / 100.0).max(1.0);
    let first = span as f64 / 2.0 - width / 2.0;
    (first + dice.unit() * width) as i64
}

/// From 1 to `n` by rejection-inversion (Hörmann and Derflinger 1996, "Rejection-inversion to generate
/// variates from monotone discrete distributions").
fn zipfian(dice: &mut Dice, n: i64, exponent: f64) -> i64 {
    // The integral of x^-s and its inverse; s = 1 is the logarithm.
    let is_one = (exponent - 1.0).abs() < 1e-9;
    let integral = |x: f64| if is_one { x.ln() } else { (x.powf(1.0 - exponent) - 1.0) / (1.0 - exponent) };
    let inverse = |y: f64| {
        if is_one { y.exp() } else { (y * (1.0 - exponent) + 1.0).max(0.0).powf(1.0 / (1.0 - exponent)) }
    };
    let (low, high) = (integral(1.5) - 1.0, integral(n as f64 + 0.5));
    // A try succeeds far more often than not; the bound only keeps a bad exponent from looping.
    for _ in 0..64 {
        let y = low + dice.unit() * (high - low);
        let k = inverse(y).round().clamp(1.0, n as f64);
        if y >= integral(k + 0.5) - k.powf(-exponent) {
            return k as i64;
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: i64 = 1000;

    fn counts(distribution: Distribution) -> Vec<u32> {
        let mut counts = vec![0; N as usize];
        for event in 0..200_000 {
            let id = distribution.draw(&mut Dice::new(1, 2, event, 3), 1, N);
            counts[(id - 1) as usize] += 1;
        }
        counts
    }

    fn share(counts: &[u32], range: std::ops::Range<usize>) -> f64 {
        f64::from(counts[range].iter().sum::<u32>()) / f64::from(counts.iter().sum::<u32>())
    }

    #[test]
    fn uniform_covers_all_alike() {
        let counts = counts(Distribution::Uniform);
        assert!(counts.iter().all(|&n| (100..320).contains(&n)), "{counts:?}");
    }

    #[test]
    fn special_puts_three_quarters_into_one_percent_in_the_middle() {
        let counts = counts(Distribution::Special { iterations: 12, part: 1, share: 75 });
        // Ten rows of a thousand; the gaussian rest adds some 5% of a quarter there.
        let middle = share(&counts, 493..507);
        assert!((0.74..0.80).contains(&middle), "{middle}");
    }

    #[test]
    fn gaussian_and_pareto_have_their_shape() {
        let counts_gaussian = counts(Distribution::Gaussian { iterations: 12 });
        // Twelve uniform choices: a standard deviation of 1/12 of the range.
        let within_one_deviation = share(&counts_gaussian, 417..583);
        assert!((0.65..0.72).contains(&within_one_deviation), "{within_one_deviation}");
        let counts_pareto = counts(Distribution::Pareto { h: 0.2 });
        let first_fifth = share(&counts_pareto, 0..200);
        assert!((0.78..0.82).contains(&first_fifth), "{first_fifth}");
    }

    #[test]
    fn zipfian_follows_its_law() {
        let counts = counts(Distribution::Zipfian { exponent: 0.8 });
        let weights: Vec<f64> = (1..=N).map(|k| (k as f64).powf(-0.8)).collect();
        let all: f64 = weights.iter().sum();
        for k in [0, 1, 4, 20] {
            let (seen, wanted) = (f64::from(counts[k]) / 200_000.0, weights[k] / all);
            assert!((seen / wanted - 1.0).abs() < 0.12, "rank {k}: {seen} for {wanted}");
        }
    }

    #[test]
    fn bounds_hold_for_small_ranges() {
        for distribution in [
            Distribution::Uniform,
            Distribution::Gaussian { iterations: 12 },
            Distribution::Special { iterations: 12, part: 1, share: 75 },
            Distribution::Pareto { h: 0.2 },
            Distribution::Zipfian { exponent: 0.8 },
        ] {
            for high in [1, 2, 3, 10] {
                for event in 0..200 {
                    let id = distribution.draw(&mut Dice::new(9, 0, event, 0), 1, high);
                    assert!((1..=high).contains(&id), "{distribution:?} {id} of {high}");
                }
            }
        }
    }
}
