//! What the workers of one process share about a pool: one limit, and who waits longest.
//!
//! Owns: the number of open servers, each worker's oldest waiter and number of idle servers. Atomics
//! only: a worker never waits for another.
//! Must not know: protocols, sockets, sessions.
//!
//! Invariant: `opened` is the number of server connections of this pool in the process, in every state
//! from the start of a connect to the close, and never exceeds the limit. A waiter that finds nothing and
//! a server that finds no waiter cannot miss each other: each publishes itself first and looks second,
//! both sequentially consistent.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};

/// No waiter.
pub const NOBODY: u64 = u64::MAX;

/// The part of a pool that all workers see.
#[derive(Debug)]
pub struct PoolShared {
    limit: AtomicUsize,
    opened: AtomicUsize,
    desks: Vec<Desk>,
}

/// One worker's public figures. Padded, so that workers do not share cache lines.
#[derive(Debug)]
#[repr(align(64))]
struct Desk {
    oldest_wait_ns: AtomicU64,
    idle: AtomicU32,
}

impl PoolShared {
    /// A pool with room for `limit` servers, for `workers` workers.
    pub fn new(limit: usize, workers: usize) -> Self {
        let desks = (0..workers)
            .map(|_| Desk { oldest_wait_ns: AtomicU64::new(NOBODY), idle: AtomicU32::new(0) })
            .collect();
        PoolShared { limit: AtomicUsize::new(limit), opened: AtomicUsize::new(0), desks }
    }

    /// Servers the pool may have.
    pub fn limit(&self) -> usize {
        self.limit.load(SeqCst)
    }

    /// Changes the limit. Servers over a smaller limit go when they are next free.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, SeqCst);
    }

    /// Servers the pool has.
    pub fn opened(&self) -> usize {
        self.opened.load(SeqCst)
    }

    /// Takes the right to open one server; false when the limit is reached.
    pub fn try_open(&self) -> bool {
        let limit = self.limit();
        self.opened.fetch_update(SeqCst, SeqCst, |n| (n < limit).then_some(n + 1)).is_ok()
    }

    /// Gives the right back: the server is closed or never came to be.
    pub fn closed(&self) {
        let before = self.opened.fetch_sub(1, SeqCst);
        debug_assert!(before > 0, "a server was closed that was never opened");
    }

    /// More servers are open than the limit allows (it was lowered).
    pub fn is_over_limit(&self) -> bool {
        self.opened() > self.limit()
    }

    /// Publishes since when this worker's oldest waiter waits.
    pub fn publish_oldest(&self, worker: usize, since_ns: u64) {
        self.desks[worker].oldest_wait_ns.store(since_ns, SeqCst);
    }

    /// Publishes how many idle servers this worker has.
    pub fn publish_idle(&self, worker: usize, idle: usize) {
        self.desks[worker].idle.store(idle as u32, SeqCst);
    }

    /// Another server may be opened.
    pub fn has_room(&self) -> bool {
        self.opened() < self.limit()
    }

    /// Somebody waits on this worker.
    pub fn waits(&self, worker: usize) -> bool {
        self.desks.get(worker).is_some_and(|desk| desk.oldest_wait_ns.load(SeqCst) != NOBODY)
    }

    /// What a worker has published: since when its oldest waiter waits, and its idle servers.
    pub(crate) fn published(&self, worker: usize) -> (u64, usize) {
        let desk = &self.desks[worker];
        (desk.oldest_wait_ns.load(SeqCst), desk.idle.load(SeqCst) as usize)
    }

    /// The other worker whose oldest waiter has waited longest, and since when.
    pub fn longest_waiting_elsewhere(&self, worker: usize) -> Option<(usize, u64)> {
        let others = self.desks.iter().enumerate().filter(|&(w, _)| w != worker);
        let (found, since_ns) =
            others.map(|(w, desk)| (w, desk.oldest_wait_ns.load(SeqCst))).min_by_key(|&(_, since)| since)?;
        (since_ns != NOBODY).then_some((found, since_ns))
    }

    /// Another worker that has an idle server, the one with most of them.
    pub fn idle_elsewhere(&self, worker: usize) -> Option<usize> {
        let others = self.desks.iter().enumerate().filter(|&(w, _)| w != worker);
        let (found, idle) =
            others.map(|(w, desk)| (w, desk.idle.load(SeqCst))).max_by_key(|&(_, idle)| idle)?;
        (idle > 0).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds() {
        let pool = PoolShared::new(2, 1);
        assert!(pool.try_open() && pool.try_open());
        assert!(!pool.try_open());
        pool.closed();
        assert!(pool.try_open());
        pool.set_limit(1);
        assert!(pool.is_over_limit());
    }

    #[test]
    fn the_longest_waiting_other_worker_is_found() {
        let pool = PoolShared::new(1, 3);
        assert_eq!(pool.longest_waiting_elsewhere(0), None);
        pool.publish_oldest(0, 1);
        pool.publish_oldest(1, 30);
        pool.publish_oldest(2, 20);
        assert_eq!(pool.longest_waiting_elsewhere(0), Some((2, 20)));
        assert_eq!(pool.longest_waiting_elsewhere(2), Some((0, 1)));
        pool.publish_idle(1, 4);
        assert_eq!(pool.idle_elsewhere(0), Some(1));
        assert_eq!(pool.idle_elsewhere(1), None);
    }
}
