//! Errors of servers by their code: a few codes make up nearly all, and there are hundreds.
//!
//! Invariants: as for all cells, one writer; a worker tells [`limits::ERROR_CODES`] codes apart, and counts
//! the rest together.

use crate::cell::Counter;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use weir_wire::{ErrorCode, limits};

/// What one worker has seen for one protocol.
#[derive(Debug)]
pub struct Codes {
    /// In the order of their first appearance; 0: free from here on.
    seen: [(AtomicU32, Counter); limits::ERROR_CODES],
    rest: Counter,
}

/// The sums of all workers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeTotals {
    /// How many of each code.
    pub by_code: BTreeMap<ErrorCode, u64>,
    /// How many of codes that came later.
    pub rest: u64,
}

impl Default for Codes {
    fn default() -> Self {
        Codes { seen: std::array::from_fn(|_| Default::default()), rest: Counter::default() }
    }
}

impl Codes {
    /// One more. Its own worker only.
    pub fn note(&self, code: ErrorCode) {
        for (seen, count) in &self.seen {
            let known = seen.load(Relaxed);
            if known == 0 {
                seen.store(code.raw(), Relaxed);
            }
            if known == 0 || known == code.raw() {
                return count.inc();
            }
        }
        self.rest.inc();
    }

    pub(crate) fn add_to(&self, totals: &mut CodeTotals) {
        for (seen, count) in &self.seen {
            let Some(code) = ErrorCode::from_raw(seen.load(Relaxed)) else { break };
            *totals.by_code.entry(code).or_default() += count.get();
        }
        totals.rest += self.rest.get();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_summed_up_and_those_beyond_the_bound_are_counted_together() {
        let (one, other) = (Codes::default(), Codes::default());
        let code = |number: u16| ErrorCode::of_errno(number).expect("not 0");
        [1064, 1062, 1064].into_iter().for_each(|number| one.note(code(number)));
        (0..limits::ERROR_CODES as u16 + 3).for_each(|number| other.note(code(1064 + number)));
        let mut totals = CodeTotals::default();
        one.add_to(&mut totals);
        other.add_to(&mut totals);
        assert_eq!((totals.by_code[&code(1064)], totals.by_code[&code(1062)], totals.rest), (3, 1, 3));
    }
}
