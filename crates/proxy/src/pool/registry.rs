//! The process-wide list of pools.
//!
//! A worker asks it at a login, never while it serves. That is why a mutex is good enough here.

use super::PoolShared;
use crate::settings::PoolSpec;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A pool's number in this process, the same on all workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub u32);

/// What all workers know of a pool. `X` is the wing's `Welcomes`.
#[derive(Debug)]
pub struct PoolEntry<X> {
    /// Its number.
    pub id: PoolId,
    /// Where its servers are.
    pub spec: PoolSpec,
    /// The limit and who waits longest.
    pub shared: PoolShared,
    /// What clients are greeted with: what one worker has learnt, all know. Read and changed at logins of
    /// clients and servers only, and never in place.
    welcomes: ArcSwap<X>,
}

impl<X: Clone> PoolEntry<X> {
    /// What clients are greeted with now.
    pub fn welcomes(&self) -> arc_swap::Guard<Arc<X>> {
        self.welcomes.load()
    }

    /// Learns something new about it; returns what `learn` returned, and what is known then. `learn` is called
    /// again when another worker learns at the same time; the last call counts.
    pub fn learn<R>(&self, mut learn: impl FnMut(&mut X) -> R) -> (R, Arc<X>) {
        let mut before = self.welcomes.load_full();
        loop {
            let mut known = X::clone(&before);
            let result = learn(&mut known);
            let known = Arc::new(known);
            let found = self.welcomes.compare_and_swap(&before, known.clone());
            if Arc::ptr_eq(&found, &before) {
                return (result, known);
            }
            before = Arc::clone(&found);
        }
    }
}

/// Database, user, variant.
type Identity = (String, String, u32);

/// All pools of one wing, by what they are and by number.
#[derive(Debug)]
struct Pools<X> {
    by_identity: HashMap<Identity, Arc<PoolEntry<X>>>,
    all: Vec<Arc<PoolEntry<X>>>,
}

/// All pools of one wing. They are made at the first login that needs them and live as long as the process.
#[derive(Debug)]
pub struct Registry<X> {
    workers: usize,
    pools: Mutex<Pools<X>>,
}

impl<X: Default> Registry<X> {
    /// An empty list for a process with this many workers.
    pub fn new(workers: usize) -> Self {
        Registry { workers, pools: Mutex::new(Pools { by_identity: HashMap::new(), all: Vec::new() }) }
    }

    /// The pool for these servers, made if it is new. The first spec of a (database, user, variant) counts.
    pub fn enter(&self, spec: PoolSpec) -> Arc<PoolEntry<X>> {
        let identity = (spec.database.clone(), spec.user.clone(), spec.variant);
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = pools.by_identity.get(&identity) {
            return entry.clone();
        }
        let shared = PoolShared::new(spec.size, self.workers);
        let id = PoolId(pools.all.len() as u32);
        let entry = Arc::new(PoolEntry { id, spec, shared, welcomes: ArcSwap::default() });
        pools.by_identity.insert(identity, entry.clone());
        pools.all.push(entry.clone());
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{PoolMode, Targets};

    fn spec() -> PoolSpec {
        PoolSpec {
            wing: 0,
            database: "app".into(),
            user: "me".into(),
            secret: None,
            server_database: "app".into(),
            targets: Targets::default(),
            mode: PoolMode::Transaction,
            size: 1,
            min_size: 0,
            variant: 0,
            max_prepared_statements: 0,
        }
    }

    #[test]
    fn what_one_worker_learns_all_know_and_nothing_learnt_at_the_same_time_is_lost() {
        const EACH: u32 = 200;
        let registry = Registry::<Vec<u32>>::new(4);
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let entry = registry.enter(spec());
                scope.spawn(move || {
                    for n in 0..EACH {
                        let (added, known) = entry.learn(|known| {
                            known.push(worker * EACH + n);
                            worker * EACH + n
                        });
                        assert!(known.contains(&added));
                    }
                });
            }
        });
        let mut known = registry.enter(spec()).welcomes().to_vec();
        known.sort_unstable();
        assert_eq!(known, (0..4 * EACH).collect::<Vec<_>>());
    }
}
