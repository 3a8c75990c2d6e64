//! A place under limits that several pools share, on its way from one pool to another.
//!
//! Owns: one right to open a server, and the promise of it to one worker. Must not know: mail, servers.
//!
//! Invariant: the place counts as taken from the moment one pool gives it up until the other one has it. No
//! third pool can take it meanwhile, nor can the one that gave it up.

use super::{PoolEntry, Right};
use std::sync::Arc;

/// The right to open one server of a pool, for one worker. Whoever drops it gives it back.
#[derive(Debug)]
pub struct Place<X> {
    entry: Arc<PoolEntry<X>>,
    worker: usize,
    taken: bool,
}

impl<X> Place<X> {
    /// Makes the place of a server that has just closed one of pool `to`, for a worker. `None`: `to` may not
    /// have it, and it is free.
    pub fn leave(from: Right<X>, to: &Arc<PoolEntry<X>>, worker: usize) -> Option<Self> {
        if !from.entry().shared.leave_to(&to.shared) {
            return None;
        }
        from.moved();
        to.shared.promise(worker);
        Some(Place { entry: to.clone(), worker, taken: false })
    }

    /// Whose place it is.
    pub fn entry(&self) -> &Arc<PoolEntry<X>> {
        &self.entry
    }

    /// The server is being opened, by this right.
    pub fn take(mut self) -> Right<X> {
        self.taken = true;
        Right::taken(&self.entry)
    }
}

impl<X> Drop for Place<X> {
    fn drop(&mut self) {
        self.entry.shared.promise_over(self.worker);
        if !self.taken {
            self.entry.shared.closed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::registry::tests::spec;
    use crate::pool::{Opening, Registry};
    use crate::settings::PoolSpec;

    /// Two pools of one database that may have one server together, and each user `max_of_user`. The first
    /// has it.
    fn two_pools(max_of_user: usize) -> [Arc<PoolEntry<()>>; 2] {
        let registry = Registry::<()>::new(2);
        let entries = ["me", "you"].map(|user| {
            registry.enter(PoolSpec { user: user.into(), max_of_database: 1, max_of_user, size: 2, ..spec() })
        });
        assert_eq!(entries[0].shared.try_open(), Opening::Granted);
        entries
    }

    /// That of the server the pool has.
    fn right_of(entry: &Arc<PoolEntry<()>>) -> Right<()> {
        Right::taken(entry)
    }

    #[test]
    fn nobody_takes_a_place_that_is_on_its_way_to_another_pool() {
        let [from, to] = two_pools(1);
        let place = Place::leave(right_of(&from), &to, 1).expect("there is room for it");
        assert_eq!(from.shared.try_open(), Opening::CapIsFull, "the pool that left it is not quicker");
        assert_eq!(to.shared.try_open(), Opening::CapIsFull, "nor is another worker");
        assert_eq!((from.shared.opened(), to.shared.opened()), (0, 1));
        assert_eq!(from.shared.caps()[1].figures().0, 0, "its user has no server any more");
        assert_eq!(to.shared.caps()[1].figures().0, 1);
        let right = place.take();
        assert_eq!((from.shared.opened(), to.shared.opened()), (0, 1), "the server has it now");
        drop(right);
        assert_eq!((from.shared.opened(), to.shared.opened()), (0, 0), "the server is gone");
    }

    #[test]
    fn a_place_that_nobody_takes_is_free_again() {
        let [from, to] = two_pools(0);
        drop(Place::leave(right_of(&from), &to, 1));
        assert_eq!((from.shared.opened(), to.shared.opened()), (0, 0));
        assert_eq!(from.shared.try_open(), Opening::Granted);
    }

    #[test]
    fn a_place_is_not_left_to_a_pool_whose_own_limit_is_reached() {
        let [from, to] = two_pools(1);
        assert!(to.shared.caps()[1].take());
        assert!(Place::leave(right_of(&from), &to, 1).is_none());
        to.shared.caps()[1].give_back();
        assert_eq!(from.shared.try_open(), Opening::Granted);
        from.shared.set_size(0);
        assert!(Place::leave(right_of(&from), &to, 1).is_none(), "a limit that was lowered is reached first");
        assert_eq!((from.shared.opened(), to.shared.opened()), (0, 0), "then it is free");
        assert_eq!(from.shared.caps()[0].figures().0, 0);
    }

    #[test]
    fn a_worker_that_is_promised_a_place_lacks_one_less() {
        let [from, to] = two_pools(0);
        to.shared.publish_oldest(0, 10);
        to.shared.publish_oldest(1, 5);
        to.shared.publish_lacks(0, 1);
        to.shared.publish_lacks(1, 1);
        assert_eq!(to.shared.longest_lacking(), Some((5, 1)));
        let place = Place::leave(right_of(&from), &to, 1).expect("there is room for it");
        assert_eq!(to.shared.longest_lacking(), Some((10, 0)));
        to.shared.publish_lacks(0, 0);
        assert_eq!(to.shared.longest_lacking(), None);
        drop(place);
        assert_eq!(to.shared.longest_lacking(), Some((5, 1)));
    }
}
