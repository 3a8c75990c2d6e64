//! Which workers exist, and where a client gets its seat.
//!
//! The first workers, one for each core, live as long as the process and share a descriptor table. When that
//! has no room for more clients, further workers start, each with a table of its own; the first workers
//! accept connections for them. A further worker that has had no client for a while ends, and its table with
//! it. A client's worker is chosen when the client is accepted and never changes.
//!
//! Owns: the number of clients of each worker, which workers are open, when another one is started. Must not
//! know: how a worker starts or ends.
//!
//! Invariants: a client gets a seat only at an open worker, and a worker closes only while none of its seats
//! is taken, in one step of one atomic. All open workers have numbers below [`Berths::shown`].

use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// In the place of a number of clients: this worker is not open.
const CLOSED: usize = usize::MAX / 2;

/// Where the workers are.
pub struct Berths {
    /// The workers that are always there.
    first: usize,
    /// No worker with this number or a higher one is open.
    shown: Arc<AtomicUsize>,
    /// Clients of each worker, with those on their way to it.
    seats: Box<[AtomicUsize]>,
    /// Clients that the first workers' table has room for.
    first_room: usize,
    /// The same for each further worker.
    further_room: usize,
    /// One bit for each worker that is ordered and not open yet, or closed and has not ended yet.
    ordered: AtomicU64,
    /// Held while `shown` changes.
    changes: Mutex<()>,
    order: OnceLock<Box<dyn Fn(usize) + Send + Sync>>,
    /// Nobody begins any more.
    is_over: AtomicBool,
    /// The system has refused to let one begin.
    is_refused: AtomicBool,
}

/// Where a client goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// There is room.
    Yes,
    /// There will be in a moment: a worker is about to begin.
    Soon,
    /// All tables that there can be are as full as they should be.
    No,
}

impl Berths {
    /// So many workers, and never others.
    pub fn fixed(workers: usize) -> Berths {
        Berths::growing(workers, workers, usize::MAX, 0)
    }

    /// `first` workers, and further ones when these have `first_room` clients; `most` in all.
    pub fn growing(first: usize, most: usize, first_room: usize, further_room: usize) -> Berths {
        let seats = (0..most).map(|worker| AtomicUsize::new(if worker < first { 0 } else { CLOSED }));
        Berths {
            first,
            shown: Arc::new(AtomicUsize::new(first)),
            seats: seats.collect(),
            first_room,
            further_room,
            ordered: AtomicU64::new(0),
            changes: Mutex::default(),
            order: OnceLock::new(),
            is_over: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
        }
    }

    /// Who starts further workers. To be told once, before anybody is a client.
    pub fn set_order(&self, order: impl Fn(usize) + Send + Sync + 'static) {
        drop(self.order.set(Box::new(order)));
    }

    /// Workers that are always there.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Workers there can be.
    pub fn most(&self) -> usize {
        self.seats.len()
    }

    /// Open workers have lower numbers.
    pub fn shown(&self) -> usize {
        self.shown.load(SeqCst)
    }

    /// The same, for those who look each time.
    pub fn roster(&self) -> Arc<AtomicUsize> {
        self.shown.clone()
    }

    /// Numbers of the workers that are open.
    pub fn open(&self) -> impl Iterator<Item = usize> {
        (0..self.shown()).filter(|&worker| self.is_open(worker))
    }

    /// This worker takes mail.
    pub fn is_open(&self, worker: usize) -> bool {
        worker < self.first || self.seats.get(worker).is_some_and(|seat| seat.load(SeqCst) < CLOSED)
    }

    /// The open worker behind this one, the first one behind the last.
    pub fn behind(&self, worker: usize) -> usize {
        (worker + 1..self.shown()).find(|&next| self.is_open(next)).unwrap_or(0)
    }

    /// The worker for a client that `here` has accepted, with a seat there. The first workers get `together`
    /// each before the others get any: few clients are served with fewer wake-ups where they are together.
    /// Beyond that, and where this worker is one of those first ones, the kernel's choice stands, until the
    /// table is full.
    pub fn take_seat(&self, here: usize, together: usize) -> usize {
        let taken = self.taken();
        if taken >= self.first_room
            && let Some(further) = self.take_further_seat()
        {
            return further;
        }
        let free = |worker: &usize| self.seats[*worker].load(Relaxed) < together;
        let needed = taken / together.max(1);
        let to = if here <= needed { here } else { (0..self.first).find(free).unwrap_or(here) };
        self.seats[to].fetch_add(1, Relaxed);
        to
    }

    /// A seat here, whatever else is free.
    pub fn take_seat_here(&self, worker: usize) {
        self.seats[worker].fetch_add(1, Relaxed);
    }

    /// A client of a worker has gone, or did not get there.
    pub fn leave_seat(&self, worker: usize) {
        self.seats[worker].fetch_sub(1, SeqCst);
    }

    /// Whether there is room for one more client. Orders a worker in time.
    pub fn room(&self) -> Room {
        if self.most() == self.first {
            return Room::Yes;
        }
        let taken = self.taken();
        if taken < self.first_room / 4 * 3 {
            return Room::Yes;
        }
        let free: usize = (self.first..self.shown())
            .map(|worker| self.further_room.saturating_sub(self.seats[worker].load(SeqCst)))
            .sum();
        let is_ordered = free <= self.further_room / 4 && self.order_next();
        match taken < self.first_room || free > 0 {
            true => Room::Yes,
            false if is_ordered => Room::Soon,
            false => Room::No,
        }
    }

    fn taken(&self) -> usize {
        self.seats[..self.first].iter().map(|seat| seat.load(Relaxed)).sum()
    }

    /// The lowest one with room, so that the others are empty some time.
    fn take_further_seat(&self) -> Option<usize> {
        (self.first..self.shown()).find(|&worker| {
            let one_more = |taken| (taken < self.further_room).then_some(taken + 1);
            self.seats[worker].fetch_update(SeqCst, SeqCst, one_more).is_ok()
        })
    }

    /// Orders the lowest worker that is not open, if there is one. True: one is on its way.
    fn order_next(&self) -> bool {
        if self.is_refused.load(Relaxed) {
            return false;
        }
        let is_closed = |worker: &usize| self.seats[*worker].load(SeqCst) >= CLOSED;
        for worker in (self.first..self.most()).filter(is_closed) {
            if self.ordered.fetch_or(1 << worker, SeqCst) & 1 << worker != 0 {
                return true;
            }
            if let Some(order) = self.order.get() {
                order(worker);
                return true;
            }
        }
        false
    }

    /// A worker that was ordered is about to begin: it takes mail from now on. False: the process ends, it
    /// must not.
    pub fn opens(&self, worker: usize) -> bool {
        {
            let _changes = self.lock();
            self.shown.fetch_max(worker + 1, SeqCst);
            self.seats[worker].store(0, SeqCst);
        }
        self.ordered.fetch_and(!(1 << worker), SeqCst);
        !self.is_over.load(SeqCst)
    }

    /// The system does not let a worker begin that was ordered: none is ordered any more.
    pub fn refused(&self) {
        self.is_refused.store(true, Relaxed);
    }

    /// Clients that the tables have room for, where the system has refused a further one: what is left of
    /// theirs is for servers. Otherwise `usize::MAX`.
    pub fn bound(&self) -> usize {
        match self.is_refused.load(Relaxed) {
            true => {
                let further = (self.first..self.shown()).filter(|&worker| self.is_open(worker)).count();
                self.first_room + further * self.further_room
            }
            false => usize::MAX,
        }
    }

    /// A worker ends if nobody has a seat there.
    pub fn close(&self, worker: usize) -> bool {
        self.ordered.fetch_or(1 << worker, SeqCst);
        let closed = self.seats[worker].compare_exchange(0, CLOSED, SeqCst, SeqCst).is_ok();
        if !closed {
            self.ordered.fetch_and(!(1 << worker), SeqCst);
        }
        closed
    }

    /// A worker that was closed has ended, and may be ordered again.
    pub fn has_ended(&self, worker: usize) {
        let changes = self.lock();
        let mut shown = self.shown();
        while shown > self.first && !self.is_open(shown - 1) {
            shown -= 1;
        }
        self.shown.store(shown, SeqCst);
        drop(changes);
        self.ordered.fetch_and(!(1 << worker), SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No worker begins from now on; to be called before the others are told to end.
    pub fn end(&self) {
        self.is_over.store(true, SeqCst);
    }

    /// No worker begins any more.
    pub fn is_over(&self) -> bool {
        self.is_over.load(SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn growing() -> (Arc<Berths>, Arc<Mutex<Vec<usize>>>) {
        let berths = Arc::new(Berths::growing(2, 4, 8, 4));
        let ordered = Arc::new(Mutex::new(Vec::new()));
        let orders = ordered.clone();
        berths.set_order(move |worker| orders.lock().unwrap().push(worker));
        (berths, ordered)
    }

    #[test]
    fn few_clients_are_together() {
        let berths = Berths::fixed(3);
        assert_eq!((0..4).map(|_| berths.take_seat(2, 2)).collect::<Vec<_>>(), [0, 0, 1, 1]);
        assert_eq!(berths.take_seat(2, 2), 2);
        assert_eq!(berths.room(), Room::Yes);
    }

    #[test]
    fn workers_begin_when_clients_come_and_end_when_they_have_gone() {
        let (berths, ordered) = growing();
        for _ in 0..6 {
            assert_eq!(berths.room(), Room::Yes);
            assert!(berths.take_seat(1, 0) < 2);
        }
        assert_eq!(berths.open().collect::<Vec<_>>(), [0, 1]);
        for _ in 0..2 {
            assert_eq!(berths.room(), Room::Yes, "a worker is ordered before the table is full");
            assert!(berths.take_seat(1, 0) < 2);
        }
        assert_eq!((berths.room(), berths.room()), (Room::Soon, Room::Soon));
        assert_eq!(*ordered.lock().unwrap(), [2], "once");
        assert!(berths.opens(2));
        assert_eq!((berths.shown(), berths.behind(1), berths.behind(2)), (3, 2, 0));
        for _ in 0..4 {
            assert_eq!((berths.room(), berths.take_seat(0, 0)), (Room::Yes, 2));
        }
        assert_eq!(berths.room(), Room::Soon);
        assert_eq!(*ordered.lock().unwrap(), [2, 3]);
        assert!(!berths.close(2), "it has clients");
        (0..4).for_each(|_| berths.leave_seat(2));
        assert!(berths.close(2) && !berths.is_open(2));
        assert!(berths.opens(3));
        assert_eq!((berths.open().collect::<Vec<_>>(), berths.behind(1)), (vec![0, 1, 3], 3));
        assert_eq!(berths.take_seat(0, 0), 3, "nobody gets to one that is closed");
        (0..3).for_each(|_| assert_eq!(berths.take_seat(0, 0), 3));
        assert_eq!(berths.room(), Room::Soon, "it ends, and then begins again");
        berths.has_ended(2);
        assert_eq!(berths.room(), Room::Soon);
        assert_eq!(*ordered.lock().unwrap(), [2, 3, 2]);
        assert!(berths.opens(2));
        (0..4).for_each(|_| assert_eq!(berths.take_seat(0, 0), 2));
        assert_eq!(berths.room(), Room::No);
        assert!(berths.take_seat(1, 0) < 2, "then as many as the system lets in");
    }

    #[test]
    fn where_no_worker_can_begin_the_tables_that_there_are_bound_the_clients() {
        let (berths, ordered) = growing();
        assert_eq!(berths.bound(), usize::MAX);
        assert!(berths.opens(2));
        berths.refused();
        assert_eq!(berths.bound(), 12);
        (0..12).for_each(|_| assert!(berths.take_seat(0, 0) < 3));
        assert_eq!((berths.room(), ordered.lock().unwrap().len()), (Room::No, 0));
    }

    #[test]
    fn no_worker_begins_at_the_end() {
        let (berths, _) = growing();
        berths.end();
        assert!(!berths.opens(2), "and it is open, so that it hears of the end");
        assert!(berths.is_open(2));
    }
}
