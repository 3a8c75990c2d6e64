//! Repeatable chance: everything random in a run comes from its seed through here.
//!
//! Owns: one stream of numbers (splitmix64, public domain, by Sebastiano Vigna). Must not know: what they
//! decide.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice(seed ^ 0x9e37_79b9_7f4a_7c15);
        dice.draw();
        dice
    }

    /// A stream of its own, so that one actor's draws do not shift another's.
    pub fn split(&mut self) -> Dice {
        Dice::new(self.draw())
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 for `n` = 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.draw() % n }
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True in `n` of 1,000 cases.
    pub fn per_mille(&mut self, n: u64) -> bool {
        self.below(1_000) < n
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A number from `low` to `high` whose logarithm is even: small ones are as likely as large ones.
    pub fn spread(&mut self, low: u64, high: u64) -> u64 {
        let low_bits = u64::from((low + 1).ilog2());
        let high_bits = u64::from((high + 1).ilog2());
        let bits = self.between(low_bits, high_bits);
        let base = 1u64 << bits;
        (base - 1 + self.below(base)).clamp(low, high)
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }

    /// The index of one of these weights, in proportion to them.
    pub fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut at = self.below(weights.iter().sum());
        for (index, &weight) in weights.iter().enumerate() {
            if at < weight {
                return index;
            }
            at -= weight;
        }
        0
    }

    /// Fills a buffer.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.draw().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_seed_others() {
        let numbers = |seed| {
            let mut dice = Dice::new(seed);
            std::array::from_fn::<u64, 4, _>(|_| dice.draw())
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }

    #[test]
    fn numbers_stay_in_their_bounds() {
        let mut dice = Dice::new(1);
        for _ in 0..1_000 {
            assert!((3..=9).contains(&dice.between(3, 9)));
            assert!((10..=100_000).contains(&dice.spread(10, 100_000)));
            assert!(dice.weighted(&[0, 5, 0, 1]) % 2 == 1);
        }
    }
}
