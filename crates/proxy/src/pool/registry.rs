//! The process-wide list of pools.
//!
//! A worker asks it once per pool it meets, at a login; never while it serves. That is why a mutex is
//! good enough here.

use super::PoolShared;
use crate::settings::PoolSpec;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A pool's number in this process, the same on all workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub u32);

/// What all workers know of a pool.
#[derive(Debug)]
pub struct PoolEntry {
    /// Its number.
    pub id: PoolId,
    /// Where its servers are.
    pub spec: PoolSpec,
    /// The limit and who waits longest.
    pub shared: PoolShared,
}

type Identity = (u8, String, String, u32);

/// All pools. They are made at the first login that needs them and live as long as the process.
#[derive(Debug)]
pub struct Registry {
    workers: usize,
    pools: Mutex<(HashMap<Identity, Arc<PoolEntry>>, Vec<Arc<PoolEntry>>)>,
}

impl Registry {
    /// An empty list for a process with this many workers.
    pub fn new(workers: usize) -> Self {
        Registry { workers, pools: Mutex::default() }
    }

    /// The pool for these servers, made if it is new. The first spec of a (protocol, database, user,
    /// variant) counts.
    pub fn enter(&self, spec: PoolSpec) -> Arc<PoolEntry> {
        let identity = (spec.wing, spec.database.clone(), spec.user.clone(), spec.variant);
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = pools.0.get(&identity) {
            return entry.clone();
        }
        let shared = PoolShared::new(spec.size, self.workers);
        let entry = Arc::new(PoolEntry { id: PoolId(pools.1.len() as u32), spec, shared });
        pools.0.insert(identity, entry.clone());
        pools.1.push(entry.clone());
        entry
    }

    /// All pools, oldest first.
    pub fn all(&self) -> Vec<Arc<PoolEntry>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
}
