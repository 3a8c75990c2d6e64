//! What the workers of one process share about a pool: one limit, and who has waited longest.
//!
//! Owns: the number of open servers, each worker's oldest waiter and number of idle servers. Atomics only: a
//! worker never waits for another.
//! Must not know: protocols, sockets, sessions.
//!
//! Workers that start later than the others ([`crate::berths`]) have separate entries in each pool, created
//! when one of them is first used or looked up.
//!
//! Servers that clients keep for long ([`PoolShared::set_aside`]) are outside the size, as many as the
//! allowance (`pinned_pool_size`) says. Which of them that are is nobody's business: the limit is higher by
//! their number, and falls when one comes back. Both numbers are in one atomic, so that nobody opens a server
//! in the place of one that has just come back.
//!
//! Invariant: `opened` is the number of server connections of this pool in the process, in every state from
//! the start of a connect to the close, and never exceeds the limit, except after that has fallen. A waiter
//! that finds nothing and a server that finds no waiter cannot miss each other: each publishes itself first
//! and looks second, both sequentially consistent.

use super::Cap;
use crate::sync::Arc;
use crate::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::OnceLock;

/// No waiter.
pub const NOBODY: u64 = u64::MAX;

/// May one more server be opened?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Yes, and it counts from now on.
    Granted,
    /// The pool has as many as it may have.
    PoolIsFull,
    /// A limit it shares with other pools is reached.
    CapIsFull,
    /// The same, and for a moment places were held that others may have missed: they must be told.
    CapWasQuicker,
}

/// The part of a pool that all workers see.
#[derive(Debug)]
pub struct PoolShared {
    /// Its size: the limit, but for servers that are set aside.
    size: AtomicUsize,
    /// Servers set aside that do not count against the size, at most.
    allowance: AtomicUsize,
    /// It may have no server for now, whatever the limit says.
    paused: AtomicBool,
    /// Servers that were opened by then are to be replaced (milliseconds of the process's clock); 0: none.
    reconnected_ms: AtomicU64,
    /// A [`Tenancy`].
    tenancy: AtomicU64,
    /// Clients that may wait.
    max_waiting: AtomicUsize,
    /// Limits it shares with other pools: its database's, its user's.
    caps: [Arc<Cap>; 2],
    first: Places,
    /// Those of the workers behind the first.
    further: OnceLock<Places>,
    /// How many of these there can be; no worker with this number or a higher one has begun.
    beyond: Option<(usize, Arc<AtomicUsize>)>,
}

/// Servers of a pool, packed into one number: the lower half counts all of them, the upper half those set
/// aside.
#[derive(Debug, Clone, Copy)]
struct Tenancy(u64);

impl Tenancy {
    const ONE: u64 = 1;
    const ASIDE: u64 = 1 << 32;

    fn opened(self) -> usize {
        self.0 as u32 as usize
    }

    fn aside(self) -> usize {
        (self.0 >> 32) as usize
    }
}

/// Servers that a pool may have: so many, and so many of those set aside beyond that.
#[derive(Debug, Clone, Copy)]
struct Allowed {
    size: usize,
    outside: usize,
}

impl Allowed {
    fn limit(self, tenancy: Tenancy) -> usize {
        self.size + tenancy.aside().min(self.outside)
    }

    fn has_room(self, tenancy: Tenancy) -> bool {
        tenancy.opened() < self.limit(tenancy)
    }
}

/// What some workers say and count.
#[derive(Debug)]
struct Places {
    desks: Vec<Desk>,
    tallies: Vec<Tally>,
}

impl Places {
    fn new(workers: usize) -> Places {
        Places {
            desks: (0..workers).map(|_| Desk::new()).collect(),
            tallies: (0..workers).map(|_| Tally::default()).collect(),
        }
    }
}

/// One worker's public figures. Padded, so that workers do not share cache lines.
#[derive(Debug)]
#[repr(align(64))]
struct Desk {
    oldest_wait_ns: AtomicU64,
    /// Since when somebody has waited without a break, whoever it was.
    queue_since_ns: AtomicU64,
    idle: AtomicU32,
    /// Servers the worker would open if the limits allowed it.
    lacks: AtomicU32,
    /// Places on their way to it.
    promised: AtomicU32,
}

/// What one worker has served, for [`super::auto`]. Not on its desk: others look there all the time.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Tally {
    answered: AtomicU64,
    took_ns: AtomicU64,
    waited_ns: AtomicU64,
    /// Clients that wait.
    waiting: AtomicUsize,
}

/// What all workers have served of a pool so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests answered.
    pub answered: u64,
    /// How long they took from the moment they were sent to a server, added up.
    pub took_ns: u64,
    /// How long requests waited in the queue, added up.
    pub waited_ns: u64,
}

/// Only one thread writes to it.
fn add(to: &AtomicU64, more: u64) {
    to.store(to.load(Relaxed).wrapping_add(more), Relaxed);
}

impl Desk {
    fn new() -> Desk {
        Desk {
            oldest_wait_ns: AtomicU64::new(NOBODY),
            queue_since_ns: AtomicU64::new(NOBODY),
            idle: AtomicU32::new(0),
            lacks: AtomicU32::new(0),
            promised: AtomicU32::new(0),
        }
    }
}

impl PoolShared {
    /// A pool with room for `limit` servers, for `workers` workers.
    pub fn new(limit: usize, caps: [Arc<Cap>; 2], workers: usize) -> Self {
        PoolShared {
            size: AtomicUsize::new(limit),
            allowance: AtomicUsize::new(0),
            paused: AtomicBool::new(false),
            reconnected_ms: AtomicU64::new(0),
            tenancy: AtomicU64::new(0),
            max_waiting: AtomicUsize::new(usize::MAX),
            caps,
            first: Places::new(workers),
            further: OnceLock::new(),
            beyond: None,
        }
    }

    /// The same where there can be further workers, `most` in all; `shown`: those that have begun have lower
    /// numbers.
    pub fn growing(
        limit: usize,
        caps: [Arc<Cap>; 2],
        first: usize,
        most: usize,
        shown: Arc<AtomicUsize>,
    ) -> Self {
        let beyond = (most > first).then(|| (most - first, shown));
        PoolShared { beyond, ..PoolShared::new(limit, caps, first) }
    }

    /// The places of further workers, while there is one. Whoever looks before they are made makes them, so
    /// that what a worker says there is not missed.
    fn further(&self) -> Option<&Places> {
        let (most, shown) = self.beyond.as_ref()?;
        (shown.load(SeqCst) > self.first.desks.len()).then(|| self.further.get_or_init(|| Places::new(*most)))
    }

    /// All desks of workers that may have begun, in their order.
    fn desks(&self) -> impl Iterator<Item = &Desk> {
        self.first.desks.iter().chain(self.further().into_iter().flat_map(|places| &places.desks))
    }

    fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.first.tallies.iter().chain(self.further().into_iter().flat_map(|places| &places.tallies))
    }

    /// The places of a worker, and its number there.
    #[inline]
    fn place(&self, worker: usize) -> (&Places, usize) {
        match worker.checked_sub(self.first.desks.len()) {
            None => (&self.first, worker),
            Some(beyond) => {
                let most = self.beyond.as_ref().map_or(0, |(most, _)| *most);
                (self.further.get_or_init(|| Places::new(most)), beyond)
            }
        }
    }

    #[inline]
    fn desk(&self, worker: usize) -> &Desk {
        let (places, number) = self.place(worker);
        &places.desks[number]
    }

    #[inline]
    fn tally(&self, worker: usize) -> &Tally {
        let (places, number) = self.place(worker);
        &places.tallies[number]
    }

    /// Servers the pool may have now, those set aside included: none while it is paused.
    pub fn limit(&self) -> usize {
        self.allowed().limit(self.tenancy())
    }

    /// What the settings allow now.
    fn allowed(&self) -> Allowed {
        if self.is_paused() {
            return Allowed { size: 0, outside: 0 };
        }
        Allowed { size: self.size(), outside: self.allowance() }
    }

    fn tenancy(&self) -> Tenancy {
        Tenancy(self.tenancy.load(SeqCst))
    }

    /// Servers it may have while it is not paused, beside those set aside.
    pub fn size(&self) -> usize {
        self.size.load(SeqCst)
    }

    /// Servers set aside that do not count against the size, at most.
    pub fn allowance(&self) -> usize {
        self.allowance.load(SeqCst)
    }

    /// It may have no server for now.
    pub fn is_paused(&self) -> bool {
        self.paused.load(SeqCst)
    }

    /// From now on it may have no server, or may again. Servers in use go when they are next free.
    pub fn set_paused(&self, paused: bool) {
        self.paused.store(paused, SeqCst);
    }

    /// Servers that were opened by this time are to be replaced when they are next free.
    pub fn reconnect(&self, now_ms: u64) {
        self.reconnected_ms.fetch_max(now_ms, SeqCst);
    }

    /// A server that was opened then is to be replaced.
    pub fn is_from_before(&self, opened_ms: u64) -> bool {
        let since_ms = self.reconnected_ms.load(SeqCst);
        since_ms > 0 && opened_ms <= since_ms
    }

    /// Changes the size. Servers over a smaller limit go when they are next free.
    pub fn set_size(&self, size: usize) {
        self.size.store(size, SeqCst);
    }

    /// Changes how many servers set aside do not count against the size.
    pub fn set_allowance(&self, most: usize) {
        self.allowance.store(most, SeqCst);
    }

    /// Servers the pool has.
    pub fn opened(&self) -> usize {
        self.tenancy().opened()
    }

    /// Those that count against its size, and those that do not.
    pub fn inside_and_outside(&self) -> (usize, usize) {
        let tenancy = self.tenancy();
        let outside = tenancy.aside().min(self.allowance());
        (tenancy.opened().saturating_sub(outside), outside)
    }

    /// A client keeps one of its servers for long. There may be room for another one now.
    pub fn set_aside(&self) {
        self.tenancy.fetch_add(Tenancy::ASIDE, SeqCst);
    }

    /// So many of these servers are kept no longer. They are too many if others are there in their place.
    pub fn come_back(&self, servers: usize) {
        let before = Tenancy(self.tenancy.fetch_sub(Tenancy::ASIDE * servers as u64, SeqCst));
        debug_assert!(before.aside() >= servers, "a server comes back that was not set aside");
    }

    /// One more server, if the limit allows it.
    fn enter(&self) -> bool {
        let allowed = self.allowed();
        let more = |n| allowed.has_room(Tenancy(n)).then_some(n + Tenancy::ONE);
        self.tenancy.fetch_update(SeqCst, SeqCst, more).is_ok()
    }

    /// One server less.
    fn go(&self) {
        let before = Tenancy(self.tenancy.fetch_sub(Tenancy::ONE, SeqCst));
        debug_assert!(before.opened() > 0, "a server was closed that was never opened");
    }

    /// Takes the right to open one server.
    pub fn try_open(&self) -> Opening {
        // Most who find no room find it here, without having held what another might have had.
        if self.is_capped() {
            let has_room = self.allowed().has_room(self.tenancy());
            return if has_room { Opening::CapIsFull } else { Opening::PoolIsFull };
        }
        if !self.enter() {
            return Opening::PoolIsFull;
        }
        let taken = self.caps.iter().take_while(|cap| cap.take()).count();
        if taken == self.caps.len() {
            return Opening::Granted;
        }
        self.caps[..taken].iter().for_each(|cap| cap.give_back());
        self.go();
        Opening::CapWasQuicker
    }

    /// Gives the right back: the server is closed or never came to be.
    pub fn closed(&self) {
        self.caps.iter().for_each(|cap| cap.give_back());
        self.go();
    }

    /// Makes the place of a closed server one of another pool: `true` instead of [`PoolShared::closed`].
    /// `false` when a limit keeps the other pool from having it, or was lowered; then nothing has changed.
    pub fn leave_to(&self, other: &PoolShared) -> bool {
        let shares = |cap: &&Arc<Cap>| self.caps.iter().any(|own| Arc::ptr_eq(cap, own));
        if self.is_over_limit() {
            return false;
        }
        if !other.enter() {
            return false;
        }
        let own: Vec<_> = other.caps.iter().filter(|cap| !shares(cap)).collect();
        let taken = own.iter().take_while(|cap| cap.take()).count();
        if taken < own.len() {
            own[..taken].iter().for_each(|cap| cap.give_back());
            other.go();
            return false;
        }
        let also = |cap: &&Arc<Cap>| other.caps.iter().any(|theirs| Arc::ptr_eq(cap, theirs));
        self.caps.iter().filter(|cap| !also(cap)).for_each(|cap| cap.give_back());
        self.go();
        true
    }

    /// Notes how long an answer of a worker took. Only the worker itself may say so.
    #[inline]
    pub fn note_answered(&self, worker: usize, took_ns: u64) {
        let tally = self.tally(worker);
        add(&tally.answered, 1);
        add(&tally.took_ns, took_ns);
    }

    /// Notes how long a request of a worker has waited in the queue. Only the worker itself may say so.
    #[inline]
    pub fn note_waited(&self, worker: usize, waited_ns: u64) {
        add(&self.tally(worker).waited_ns, waited_ns);
    }

    /// So many clients of a worker wait. Only the worker itself may say so.
    #[inline]
    pub fn note_waiting(&self, worker: usize, waiting: usize) {
        self.tally(worker).waiting.store(waiting, Relaxed);
    }

    /// Changes how many clients may wait.
    pub fn set_max_waiting(&self, most: usize) {
        self.max_waiting.store(most, Relaxed);
    }

    /// As many clients wait as may, or a few more: workers count by themselves. While the pool is paused all
    /// may: nobody is to notice it.
    pub fn queue_is_full(&self) -> bool {
        let most = self.max_waiting.load(Relaxed);
        most != usize::MAX && self.waiting() >= most && !self.is_paused()
    }

    /// Clients that wait on all workers.
    pub fn waiting(&self) -> usize {
        self.tallies().map(|tally| tally.waiting.load(Relaxed)).sum()
    }

    /// What all workers have served so far.
    pub fn served(&self) -> Served {
        // Also by workers that have ended since: a sum that falls would be taken for one that has passed its
        // end.
        let ended = self.further.get().into_iter().flat_map(|places| &places.tallies);
        self.first.tallies.iter().chain(ended).fold(Served::default(), |sum, tally| Served {
            answered: sum.answered.wrapping_add(tally.answered.load(Relaxed)),
            took_ns: sum.took_ns.wrapping_add(tally.took_ns.load(Relaxed)),
            waited_ns: sum.waited_ns.wrapping_add(tally.waited_ns.load(Relaxed)),
        })
    }

    /// No server is there or coming, and nobody waits for one.
    pub fn is_unused(&self) -> bool {
        let promised = self.desks().any(|desk| desk.promised.load(SeqCst) > 0);
        self.opened() == 0 && self.waiting() == 0 && self.longest_waiting() == NOBODY && !promised
    }

    /// Servers that count against its size and are not idle.
    pub fn active(&self) -> usize {
        let idle: usize = self.desks().map(|desk| desk.idle.load(SeqCst) as usize).sum();
        self.inside_and_outside().0.saturating_sub(idle)
    }

    /// A place is on its way to a worker.
    pub(super) fn promise(&self, worker: usize) {
        self.desk(worker).promised.fetch_add(1, SeqCst);
    }

    /// It has arrived there, or never will.
    pub(super) fn promise_over(&self, worker: usize) {
        self.desk(worker).promised.fetch_sub(1, SeqCst);
    }

    /// More servers are open than a limit allows (it has fallen).
    pub fn is_over_limit(&self) -> bool {
        let tenancy = self.tenancy();
        tenancy.opened() > self.allowed().limit(tenancy) || self.caps.iter().any(|cap| cap.is_over())
    }

    /// The limits it shares with other pools.
    pub fn caps(&self) -> &[Arc<Cap>; 2] {
        &self.caps
    }

    /// It shares a limit with other pools.
    pub fn has_caps(&self) -> bool {
        self.caps.iter().any(|cap| cap.is_limited())
    }

    /// A limit it shares with other pools is reached.
    pub fn is_capped(&self) -> bool {
        self.caps.iter().any(|cap| cap.is_full())
    }

    /// A server less in the other pool is room for one more here, as far as their common limits go.
    pub fn is_capped_with(&self, other: &PoolShared) -> bool {
        let shared = |cap: &Arc<Cap>| other.caps.iter().any(|theirs| Arc::ptr_eq(cap, theirs));
        self.is_capped() && self.caps.iter().filter(|cap| cap.is_full()).all(shared)
    }

    /// Publishes since when this worker's oldest waiter waits.
    pub fn publish_oldest(&self, worker: usize, since_ns: u64) {
        self.desk(worker).oldest_wait_ns.store(since_ns, SeqCst);
    }

    /// Publishes since when somebody has waited on this worker without a break.
    pub fn publish_queue(&self, worker: usize, since_ns: u64) {
        self.desk(worker).queue_since_ns.store(since_ns, SeqCst);
    }

    /// Since when somebody has waited there without a break.
    pub fn queue_since(&self, worker: usize) -> u64 {
        self.desk(worker).queue_since_ns.load(SeqCst)
    }

    /// Publishes how many idle servers this worker has.
    pub fn publish_idle(&self, worker: usize, idle: usize) {
        self.desk(worker).idle.store(idle as u32, SeqCst);
    }

    /// Publishes how many servers this worker would open if the limits allowed it.
    pub fn publish_lacks(&self, worker: usize, lacks: u32) {
        self.desk(worker).lacks.store(lacks, SeqCst);
    }

    /// The worker that lacks a server and whose oldest waiter has waited longest, and since when. A worker
    /// that pauses after a failed connect, or has connects or places under way for all who wait, lacks none.
    pub fn longest_lacking(&self) -> Option<(u64, usize)> {
        let lacks = |desk: &Desk| desk.lacks.load(SeqCst) > desk.promised.load(SeqCst);
        let lacking = self.desks().enumerate().filter(|(_, desk)| lacks(desk));
        let oldest = lacking.map(|(worker, desk)| (desk.oldest_wait_ns.load(SeqCst), worker)).min()?;
        (oldest.0 != NOBODY).then_some(oldest)
    }

    /// Another server may be opened.
    pub fn has_room(&self) -> bool {
        self.allowed().has_room(self.tenancy()) && !self.is_capped()
    }

    /// Since when the oldest waiter of all workers waits.
    pub fn longest_waiting(&self) -> u64 {
        self.desks().map(|desk| desk.oldest_wait_ns.load(SeqCst)).min().unwrap_or(NOBODY)
    }

    /// Somebody waits on this worker.
    pub fn waits(&self, worker: usize) -> bool {
        self.desk(worker).oldest_wait_ns.load(SeqCst) != NOBODY
    }

    /// What a worker has published: since when its oldest waiter waits, its idle servers, what it lacks.
    pub(crate) fn published(&self, worker: usize) -> (u64, usize, usize) {
        let desk = self.desk(worker);
        let (idle, lacks) = (desk.idle.load(SeqCst), desk.lacks.load(SeqCst));
        (desk.oldest_wait_ns.load(SeqCst), idle as usize, lacks as usize)
    }

    /// The other worker whose oldest waiter has waited longest, and since when.
    pub fn longest_waiting_elsewhere(&self, worker: usize) -> Option<(usize, u64)> {
        let others = self.desks().enumerate().filter(|&(w, _)| w != worker);
        let (found, since_ns) =
            others.map(|(w, desk)| (w, desk.oldest_wait_ns.load(SeqCst))).min_by_key(|&(_, since)| since)?;
        (since_ns != NOBODY).then_some((found, since_ns))
    }

    /// Another worker that has an idle server, the one with most of them.
    pub fn idle_elsewhere(&self, worker: usize) -> Option<usize> {
        let others = self.desks().enumerate().filter(|&(w, _)| w != worker);
        let (found, idle) =
            others.map(|(w, desk)| (w, desk.idle.load(SeqCst))).max_by_key(|&(_, idle)| idle)?;
        (idle > 0).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(limit: usize, caps: [&Arc<Cap>; 2], workers: usize) -> PoolShared {
        PoolShared::new(limit, caps.map(Arc::clone), workers)
    }

    #[test]
    fn a_limit_of_several_pools_holds_for_all_of_them() {
        let (database, one, two) = (Arc::new(Cap::new(2)), Arc::new(Cap::new(0)), Arc::new(Cap::new(1)));
        let (a, b) = (pool(9, [&database, &one], 1), pool(9, [&database, &two], 1));
        assert_eq!(b.try_open(), Opening::Granted);
        assert_eq!(b.try_open(), Opening::CapIsFull, "the user's limit");
        assert!(!b.is_capped_with(&a), "a server less there is of no use here");
        assert_eq!(a.try_open(), Opening::Granted);
        assert_eq!(a.try_open(), Opening::CapIsFull, "the database's limit");
        assert!(a.is_capped_with(&b) && !a.has_room());
        assert!(!b.is_capped_with(&a), "both limits are reached, and that of the user stays so");
        b.closed();
        assert_eq!(a.try_open(), Opening::Granted);
        database.set_limit(1);
        assert!(a.is_over_limit() && b.is_over_limit());
        assert_eq!(database.figures(), (2, 1));
    }

    #[test]
    fn what_further_workers_have_served_counts_when_they_have_ended() {
        let shown = Arc::new(AtomicUsize::new(2));
        let caps = [9, 9].map(|limit| Arc::new(Cap::new(limit)));
        let pool = PoolShared::growing(9, caps, 1, 4, shown.clone());
        pool.note_answered(0, 1);
        pool.note_answered(1, 10);
        let both = Served { answered: 2, took_ns: 11, waited_ns: 0 };
        assert_eq!(pool.served(), both);
        shown.store(1, SeqCst);
        assert_eq!(pool.served(), both);
    }

    #[test]
    fn a_place_that_is_not_left_stays_where_it_was() {
        let caps = [1, 9, 9, 1].map(|limit| Arc::new(Cap::new(limit)));
        let (from, to) = (pool(9, [&caps[0], &caps[1]], 1), pool(9, [&caps[2], &caps[3]], 1));
        let full = pool(9, [&caps[2], &caps[3]], 1);
        assert_eq!([from.try_open(), full.try_open()], [Opening::Granted; 2]);
        assert!(!from.leave_to(&to), "the user of the other pool has no room");
        assert_eq!([from.opened(), to.opened()], [1, 0]);
        assert_eq!(caps.map(|cap| cap.figures().0), [1, 1, 1, 1]);
    }

    #[test]
    fn limits_hold_when_all_open_at_once() {
        let (database, user) = (Arc::new(Cap::new(3)), Arc::new(Cap::new(2)));
        let pools = [pool(2, [&database, &user], 1), pool(5, [&database, &user], 1)];
        std::thread::scope(|scope| {
            for n in 0..4 {
                let (pools, user) = (&pools, &user);
                scope.spawn(move || {
                    for turn in 0..2_000 {
                        let pool = &pools[(n + turn) % 2];
                        if pool.try_open() == Opening::Granted {
                            assert!(user.figures().0 <= 2);
                            pool.closed();
                        }
                    }
                });
            }
        });
        assert_eq!((database.figures().0, user.figures().0), (0, 0));
        assert_eq!(pools.map(|pool| pool.opened()), [0, 0]);
    }

    #[test]
    fn the_limit_holds() {
        let none = Arc::new(Cap::new(0));
        let pool = pool(2, [&none, &none], 1);
        assert_eq!([pool.try_open(), pool.try_open()], [Opening::Granted; 2]);
        assert_eq!(pool.try_open(), Opening::PoolIsFull);
        pool.closed();
        assert_eq!(pool.try_open(), Opening::Granted);
        pool.set_size(1);
        assert!(pool.is_over_limit());
    }

    #[test]
    fn servers_set_aside_are_outside_the_size_as_many_as_the_allowance_says() {
        let none = Arc::new(Cap::new(0));
        let pool = pool(2, [&none, &none], 1);
        assert_eq!([pool.try_open(), pool.try_open()], [Opening::Granted; 2]);
        pool.set_aside();
        assert_eq!(pool.try_open(), Opening::PoolIsFull, "the allowance is 0");
        pool.set_allowance(1);
        assert_eq!(pool.try_open(), Opening::Granted);
        pool.set_aside();
        assert_eq!(pool.try_open(), Opening::PoolIsFull, "the allowance is used up");
        assert_eq!((pool.inside_and_outside(), pool.limit(), pool.size()), ((2, 1), 3, 2));
        pool.come_back(1);
        assert!(!pool.is_over_limit(), "the other one takes the place outside");
        pool.come_back(1);
        assert!(pool.is_over_limit(), "one is too many");
        pool.closed();
        assert_eq!((pool.inside_and_outside(), pool.is_over_limit()), ((2, 0), false));
    }

    #[test]
    fn a_limit_of_several_pools_holds_for_servers_set_aside() {
        let (database, none) = (Arc::new(Cap::new(2)), Arc::new(Cap::new(0)));
        let pool = pool(2, [&database, &none], 1);
        pool.set_allowance(5);
        assert_eq!([pool.try_open(), pool.try_open()], [Opening::Granted; 2]);
        pool.set_aside();
        assert_eq!(pool.try_open(), Opening::CapIsFull);
        pool.set_paused(true);
        assert_eq!((pool.limit(), pool.is_over_limit()), (0, true));
    }

    #[test]
    fn the_queue_of_all_workers_has_one_bound() {
        let none = Arc::new(Cap::new(0));
        let pool = pool(1, [&none, &none], 2);
        pool.note_waiting(0, 5_000);
        assert!(!pool.queue_is_full(), "nobody has set a bound");
        pool.set_max_waiting(5_002);
        pool.note_waiting(1, 1);
        assert!(!pool.queue_is_full());
        pool.note_waiting(1, 2);
        assert!(pool.queue_is_full());
    }

    #[test]
    fn the_longest_waiting_other_worker_is_found() {
        let none = Arc::new(Cap::new(0));
        let pool = pool(1, [&none, &none], 3);
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
