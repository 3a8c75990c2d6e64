//! Limits that several pools share: the servers of one database, the servers of one user.
//!
//! Owns: how many there are and may be. Must not know: which pools, who waits.
//!
//! Invariant: `opened` never exceeds the limit, but after the limit was lowered.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A limit of several pools. Atomics only, as in [`super::PoolShared`].
#[derive(Debug)]
pub struct Cap {
    limit: AtomicUsize,
    opened: AtomicUsize,
}

impl Cap {
    /// Room for so many servers; 0: for any number.
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
