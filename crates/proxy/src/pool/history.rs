//! Which statements of a pool have been slow, by fingerprint: no request is queued behind one of them. Which
//! have been answered at all: no request is queued behind a new one either. And the usual duration there,
//! since slow means far longer than that.
//!
//! Owns: the slow statements, and how slow they were; the mean of all. Of quick ones, nearly all, only the
//! occurrence is kept. Must not know: what a statement is; it stores numbers. Invariant: at most
//! [`SLOW_STATEMENTS`] slow ones are kept, and the one noted longest ago is replaced first; of all, at most
//! [`SEEN_STATEMENTS`], where a new one replaces one whose number falls on the same place.

use std::collections::HashMap;
use weir_wire::limits::{SEEN_STATEMENTS, SLOW_STATEMENTS};

/// Entries it has room for at first.
const SEEN_FIRST: usize = 64;
/// A statement at the head of its server for longer is slow: a point select takes a hundredth of that.
const SLOW_NS: u64 = 2_000_000;
/// And it must take so many times what the others take: where everything is slow, nothing holds up anything.
const TIMES_THE_OTHERS: u64 = 8;
/// The weight of what was before, in eighths.
const MEMORY: u64 = 7;

/// A request that takes longer than so many times the mean counts as so many...
const ODD_TIMES: u64 = 4;
/// ...and for as long as this at least, so that the mean can begin at 0.
const ODD_NS: u64 = 1_000_000;

/// What a request usually takes, when it was `usual_ns` until now and one took `took_ns`: a moving mean over
/// some thirty requests. One that takes far longer than the others says nothing about them; counted in full,
/// two of them would make all others look slow, and nothing slow beside them. Where all become slow, the mean
/// is there after some tens of requests.
pub fn usual_ns(usual_ns: u64, took_ns: u64) -> u64 {
    let most_ns = ODD_NS.max(usual_ns.saturating_mul(ODD_TIMES));
    usual_ns - usual_ns / 32 + took_ns.min(most_ns) / 32
}

/// The slow statements of a pool.
#[derive(Debug, Default)]
pub struct History {
    slow: HashMap<u32, Entry>,
    clock: u64,
    /// Empty until the first is answered; 0: a free place.
    seen: Box<[u32]>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    mean_ns: u64,
    noted: u64,
}

impl History {
    /// Notes how long a statement was at the head of its server; the others take `others_ns`.
    pub fn note(&mut self, fingerprint: u32, took_ns: u64, others_ns: u64) {
        self.see(fingerprint);
        let slow = took_ns > bound(others_ns);
        if self.slow.is_empty() && !slow {
            return;
        }
        self.clock += 1;
        let noted = self.clock;
        if let Some(entry) = self.slow.get_mut(&fingerprint) {
            entry.noted = noted;
            entry.mean_ns = (entry.mean_ns / 8 * MEMORY).saturating_add(took_ns / 8);
            if entry.mean_ns < SLOW_NS / 4 {
                self.slow.remove(&fingerprint);
            }
        } else if slow {
            if self.slow.len() >= SLOW_STATEMENTS
                && let Some(oldest) = self.slow.iter().min_by_key(|(_, entry)| entry.noted).map(|(&f, _)| f)
            {
                self.slow.remove(&oldest);
            }
            // Half of it: once by chance is not a habit, unless it was very slow.
            self.slow.insert(fingerprint, Entry { mean_ns: took_ns / 2, noted });
        }
    }

    /// Nothing like it has been answered here, as far as is remembered.
    pub fn is_new(&self, fingerprint: u32) -> bool {
        let at = self.place_of(fingerprint);
        fingerprint != 0 && !self.seen.get(at..at + 2).is_some_and(|pair| pair.contains(&fingerprint))
    }

    fn see(&mut self, fingerprint: u32) {
        if !self.is_new(fingerprint) {
            return;
        }
        let (at, len) = (self.place_of(fingerprint), self.seen.len());
        let full = self.seen.get(at + 1).is_none_or(|&second| second != 0);
        if full && len < SEEN_STATEMENTS {
            let larger = vec![0; (len * 2).max(SEEN_FIRST)].into();
            let before = std::mem::replace(&mut self.seen, larger);
            before.iter().filter(|&&number| number != 0).for_each(|&number| self.put_seen(number));
        }
        self.put_seen(fingerprint);
    }

    fn put_seen(&mut self, fingerprint: u32) {
        let at = self.place_of(fingerprint);
        self.seen[at + 1] = self.seen[at];
        self.seen[at] = fingerprint;
    }

    /// The first of the two places that a number can stand at.
    fn place_of(&self, fingerprint: u32) -> usize {
        fingerprint as usize % (self.seen.len() / 2).max(1) * 2
    }

    /// Others should not stand behind it.
    pub fn is_slow(&self, fingerprint: u32, others_ns: u64) -> bool {
        !self.slow.is_empty()
            && self.slow.get(&fingerprint).is_some_and(|entry| entry.mean_ns > bound(others_ns))
    }
}

fn bound(others_ns: u64) -> u64 {
    SLOW_NS.max(others_ns.saturating_mul(TIMES_THE_OTHERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK_NS: u64 = 50_000;
    const MS: u64 = 1_000_000;

    #[test]
    fn a_statement_is_new_until_it_was_answered_once() {
        let mut history = History::default();
        assert!(history.is_new(7) && !history.is_new(0), "what has no number is not told from others");
        history.note(7, QUICK_NS, QUICK_NS);
        assert!(!history.is_new(7) && history.is_new(8));
        // Hundreds are remembered side by side; with too many of like numbers the older ones go.
        let mut history = History::default();
        let numbers = |n: u32| (1..=n).map(|number| number.wrapping_mul(0x9e37_79b9));
        numbers(300).for_each(|number| history.note(number, QUICK_NS, QUICK_NS));
        assert_eq!(numbers(300).filter(|&number| history.is_new(number)).count(), 0);
        numbers(100_000).for_each(|number| history.note(number, QUICK_NS, QUICK_NS));
        assert_eq!(history.seen.len(), SEEN_STATEMENTS);
        (1..=3).for_each(|turn| history.note(7 + turn * SEEN_STATEMENTS as u32, QUICK_NS, QUICK_NS));
        assert_eq!(
            [1, 2, 3].map(|turn| history.is_new(7 + turn * SEEN_STATEMENTS as u32)),
            [true, false, false]
        );
    }

    #[test]
    fn a_slow_statement_is_known_after_it_ran_once() {
        let mut history = History::default();
        history.note(1, 100 * MS, QUICK_NS);
        history.note(2, QUICK_NS, QUICK_NS);
        assert!(history.is_slow(1, QUICK_NS));
        assert!(!history.is_slow(2, QUICK_NS));
    }

    #[test]
    fn a_statement_that_becomes_quick_is_forgotten() {
        let mut history = History::default();
        history.note(1, 100 * MS, QUICK_NS);
        for _ in 0..100 {
            history.note(1, QUICK_NS, QUICK_NS);
        }
        assert!(!history.is_slow(1, QUICK_NS));
        assert!(history.slow.is_empty());
    }

    #[test]
    fn a_moment_of_a_busy_machine_makes_nothing_slow() {
        let mut history = History::default();
        history.note(1, 3 * MS, QUICK_NS);
        assert!(!history.is_slow(1, QUICK_NS));
        history.note(1, 3 * MS, QUICK_NS);
        history.note(1, 3 * MS, QUICK_NS);
        history.note(1, 3 * MS, QUICK_NS);
        history.note(1, 3 * MS, QUICK_NS);
        assert!(history.is_slow(1, QUICK_NS), "that is its habit");
    }

    #[test]
    fn where_all_are_slow_none_is() {
        let mut history = History::default();
        history.note(1, 10 * MS, 9 * MS);
        assert!(!history.is_slow(1, 9 * MS));
    }

    #[test]
    fn one_that_is_slow_does_not_make_the_others_slow() {
        // The first requests of a pool are slow ones.
        let (mut history, mut usual) = (History::default(), 0);
        for took_ns in [1_800 * MS, 2_000 * MS, 500 * MS] {
            usual = usual_ns(usual, took_ns);
            history.note(1, took_ns, usual);
            assert!(history.is_slow(1, usual), "{usual}");
        }
        // One in twenty is.
        for turn in 0..10_000 {
            usual = usual_ns(usual, if turn % 20 == 0 { 100 * MS } else { QUICK_NS });
        }
        assert!(usual < 4 * QUICK_NS, "{usual}");
        // All are.
        for _ in 0..200 {
            usual = usual_ns(usual, 100 * MS);
        }
        assert!(usual > 90 * MS, "{usual}");
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes() {
        let mut history = History::default();
        for fingerprint in 0..3 * SLOW_STATEMENTS as u32 {
            history.note(fingerprint, 100 * MS, QUICK_NS);
        }
        assert_eq!(history.slow.len(), SLOW_STATEMENTS);
        assert!(history.is_slow(3 * SLOW_STATEMENTS as u32 - 1, QUICK_NS) && !history.is_slow(0, QUICK_NS));
    }
}
