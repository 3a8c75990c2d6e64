//! Limits that several pools share: the servers of one database, the servers of one user.
//!
//! Owns: how many there are and may be. Must not know: which pools, who waits.
//!
//! Invariant: `opened` never exceeds the limit, except after the limit was lowered.

use crate::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A limit of several pools. Atomics only, as in [`super::PoolShared`].
#[derive(Debug)]
pub struct Cap {
    limit: AtomicUsize,
    opened: AtomicUsize,
}

impl Cap {
    /// Maximum number of servers; 0: any number.
    pub fn new(limit: usize) -> Self {
        let cap = Cap { limit: AtomicUsize::new(0), opened: AtomicUsize::new(0) };
        cap.set_limit(limit);
        cap
    }

    /// Changes the limit.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(if limit == 0 { usize::MAX } else { limit }, SeqCst);
    }

    /// There is a limit.
    pub fn is_limited(&self) -> bool {
        self.limit.load(SeqCst) != usize::MAX
    }

    /// Nothing more may be opened.
    pub fn is_full(&self) -> bool {
        self.opened.load(SeqCst) >= self.limit.load(SeqCst)
    }

    /// More is open than the limit allows (it was lowered).
    pub fn is_over(&self) -> bool {
        self.opened.load(SeqCst) > self.limit.load(SeqCst)
    }

    /// Takes a place; false when there is none.
    pub(super) fn take(&self) -> bool {
        let limit = self.limit.load(SeqCst);
        self.opened.fetch_update(SeqCst, SeqCst, |n| (n < limit).then_some(n + 1)).is_ok()
    }

    /// Gives a place back.
    pub(super) fn give_back(&self) {
        let before = self.opened.fetch_sub(1, SeqCst);
        debug_assert!(before > 0, "a place was given back that was never taken");
    }

    /// Servers and their limit.
    pub fn figures(&self) -> (usize, usize) {
        (self.opened.load(SeqCst), self.limit.load(SeqCst))
    }
}

/// What a pool has under limits that several pools share, and what it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Its servers.
    pub opened: usize,
    /// Its share; 0: none was set.
    pub share: usize,
    /// Servers that others leave to it.
    pub reserved: usize,
}

impl Standing {
    /// It has no more than others leave to it.
    pub fn is_reserved(&self) -> bool {
        self.opened <= self.reserved
    }

    /// It has less than that.
    pub fn lacks_reserve(&self) -> bool {
        self.opened < self.reserved
    }

    /// Servers for each unit of its share if it had one more; a pool without a share has one of 1.
    fn load_with_one_more(&self) -> usize {
        (self.opened + 1) * 1_000_000 / self.share.max(1)
    }

    /// Who of those who lack a server is first: the smaller, the earlier. Where nobody has a share the time
    /// decides.
    pub fn rank(&self, by_share: bool) -> (bool, usize) {
        (!self.lacks_reserve(), if by_share { self.load_with_one_more() } else { 0 })
    }

    /// A pool with waiters of its own leaves the place of a server to `other`, where clients have `waited`
    /// for long without a break, and the oldest, compared with its own, `longer`. Reserves come first; then
    /// shares, where one of the two has any; else the time.
    pub fn gives_way_to(&self, other: &Standing, waited: bool, longer: bool) -> bool {
        if self.is_reserved() {
            return false;
        }
        if other.lacks_reserve() {
            return true;
        }
        if self.share == 0 && other.share == 0 {
            return longer;
        }
        // After that the other has no more for its share than this one: else the place would come back.
        let left = self.opened.saturating_sub(1) * other.share.max(1);
        waited && (other.opened + 1) * self.share.max(1) <= left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(opened: usize, share: usize, reserved: usize) -> Standing {
        Standing { opened, share, reserved }
    }

    /// Both want all they can get: where it ends.
    fn settle(mut pools: [Standing; 2]) -> [usize; 2] {
        for _ in 0..100 {
            let [a, b] = pools;
            let (to_b, to_a) = (a.gives_way_to(&b, true, false), b.gives_way_to(&a, true, false));
            assert!(!(to_a && to_b), "a place goes to and fro between {pools:?}");
            let (from, to) = match (to_b, to_a) {
                (true, _) => (0, 1),
                (_, true) => (1, 0),
                _ => break,
            };
            pools[from].opened -= 1;
            pools[to].opened += 1;
        }
        pools.map(|pool| pool.opened)
    }

    #[test]
    fn who_wants_all_gets_by_share() {
        assert_eq!(settle([standing(8, 3, 0), standing(0, 1, 0)]), [6, 2]);
        assert_eq!(settle([standing(0, 3, 0), standing(8, 1, 0)]), [6, 2]);
        assert_eq!(
            settle([standing(0, 3, 0), standing(7, 1, 0)]),
            [5, 2],
            "a sixth would be more than its due"
        );
        assert_eq!(settle([standing(0, 1, 0), standing(9, 2, 0)]), [3, 6]);
        assert_eq!(settle([standing(20, 1, 0), standing(0, 1, 0)]), [10, 10]);
    }

    #[test]
    fn a_reserve_is_left_alone_and_filled_first() {
        assert_eq!(settle([standing(8, 0, 0), standing(0, 0, 3)]), [5, 3]);
        assert_eq!(settle([standing(2, 1, 2), standing(6, 100, 0)]), [2, 6]);
        let (full, lacking) = (standing(3, 0, 3), standing(1, 0, 3));
        assert!(!full.gives_way_to(&lacking, true, true) && lacking.rank(true) < full.rank(true));
    }

    #[test]
    fn without_shares_the_time_decides() {
        let (one, other) = (standing(5, 0, 0), standing(1, 0, 0));
        assert!(one.gives_way_to(&other, true, true) && !one.gives_way_to(&other, true, false));
        assert_eq!(one.rank(false), other.rank(false));
    }
}
