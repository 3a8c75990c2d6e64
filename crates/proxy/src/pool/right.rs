//! The right to have one server of a pool.
//!
//! Owns: one place under the pool's limit, for the lifetime of the server. Must not know: servers.
//!
//! Invariant: whatever happens to the server, its place is given back once: when it closes, when its connect
//! fails, when it is lost on its way between workers, and when the worker that had it panics.

use super::{Opening, PoolEntry};
use std::sync::Arc;

/// The right to have one server of a pool. Whoever drops it gives it back.
#[derive(Debug)]
pub struct Right<X> {
    entry: Arc<PoolEntry<X>>,
    moved: bool,
}

impl<X> Right<X> {
    /// Takes the right to open one server.
    ///
    /// # Errors
    /// Why there is none; never [`Opening::Granted`].
    pub fn take(entry: &Arc<PoolEntry<X>>) -> Result<Self, Opening> {
        match entry.shared.try_open() {
            Opening::Granted => Ok(Right::taken(entry)),
            refused @ (Opening::PoolIsFull | Opening::CapIsFull | Opening::CapWasQuicker) => Err(refused),
        }
    }

    /// One that has been taken already.
    pub(super) fn taken(entry: &Arc<PoolEntry<X>>) -> Self {
        Right { entry: entry.clone(), moved: false }
    }

    /// Of which pool.
    pub fn entry(&self) -> &Arc<PoolEntry<X>> {
        &self.entry
    }

    /// It is another pool's now.
    pub(super) fn moved(mut self) {
        self.moved = true;
    }
}

impl<X> Drop for Right<X> {
    fn drop(&mut self) {
        if !self.moved {
            self.entry.shared.closed();
        }
    }
}
