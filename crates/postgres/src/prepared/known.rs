//! Statements that servers of one pool have accepted: with them, any worker can answer a Parse while no
//! server is free.
//!
//! Owns: [`KnownStatements`], one small table per pool, read and written by all workers without a lock. Must
//! not know: which server has what ([`super::ServerPrepared`]), who asks.
//!
//! Invariants: bounded; every statement in it was accepted outside a transaction, in a batch of its own and
//! without a notice, and counts only under the state of the catalogue in which it was: what a table dropped
//! since would make of it only a server knows.

use super::Key;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Statements in a bucket: one line of the processor's cache.
const WAYS: usize = 8;

/// Buckets of a pool. 16 kB, taken when the first statement is known.
const BUCKETS: usize = 256;

/// Makes states that follow each other differ in all bits.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// What is remembered of a key under a state of the catalogue. Two may look alike once in 2^64; then a Parse
/// is answered that the server would refuse, and the refusal comes with its Bind.
#[derive(Clone, Copy)]
struct Mark(u64);

impl Mark {
    fn of(key: &Key, state: u64) -> Mark {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(key.split_at(8).0);
        Mark((u64::from_be_bytes(bytes) ^ state.wrapping_mul(SPREAD)).max(1))
    }

    fn bucket(self) -> usize {
        (self.0 >> 8) as usize % BUCKETS
    }

    /// The place it takes in a full bucket.
    fn way(self) -> usize {
        (self.0 >> 1) as usize % WAYS
    }
}

/// The statements of one pool.
#[derive(Debug, Default)]
pub struct KnownStatements(OnceLock<Box<[[AtomicU64; WAYS]]>>);

impl KnownStatements {
    /// A server of the pool has taken this statement in this state of the catalogue (0: nobody knows in
    /// which).
    pub fn insert(&self, key: &Key, state: u64) {
        if state == 0 {
            return;
        }
        let mark = Mark::of(key, state);
        self.0.get_or_init(|| (0..BUCKETS).map(|_| Default::default()).collect());
        let bucket = self.bucket(mark);
        let place = |wanted: u64| bucket.iter().find(|slot| slot.load(Ordering::Relaxed) == wanted);
        if let Some(slot) = place(mark.0).or_else(|| place(0)).or_else(|| bucket.get(mark.way())) {
            slot.store(mark.0, Ordering::Relaxed);
        }
    }

    /// A server has refused it, in this state.
    pub fn forget(&self, key: &Key, state: u64) {
        let mark = Mark::of(key, state);
        for slot in self.bucket(mark) {
            // What another worker puts there meanwhile stays.
            let _ = slot.compare_exchange(mark.0, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// A server has taken it in this state, and none has refused it since.
    pub fn contains(&self, key: &Key, state: u64) -> bool {
        let mark = Mark::of(key, state);
        state != 0 && self.bucket(mark).iter().any(|slot| slot.load(Ordering::Relaxed) == mark.0)
    }

    fn bucket(&self, mark: Mark) -> &[AtomicU64] {
        self.0.get().and_then(|buckets| buckets.get(mark.bucket())).map_or(&[], |bucket| bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> Key {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&n.wrapping_mul(0xD6E8_FEB8_6659_FD93).to_be_bytes());
        key
    }

    #[test]
    fn known_until_a_server_refuses_it() {
        let known = KnownStatements::default();
        assert!(!known.contains(&key(1), 1));
        known.forget(&key(1), 1);
        known.insert(&key(1), 1);
        assert!(known.contains(&key(1), 1) && !known.contains(&key(2), 1));
        known.forget(&key(1), 1);
        assert!(!known.contains(&key(1), 1));
        known.insert(&key(1), 1);
        assert!(known.contains(&key(1), 1));
    }

    #[test]
    fn known_in_the_state_in_which_it_was_taken() {
        let known = KnownStatements::default();
        known.insert(&key(1), 0);
        assert!(!known.contains(&key(1), 0));
        known.insert(&key(1), 7);
        assert!(known.contains(&key(1), 7));
        assert!(!known.contains(&key(1), 8) && !known.contains(&key(1), 0));
    }

    #[test]
    fn the_table_is_bounded_and_keeps_what_came_last() {
        let known = KnownStatements::default();
        let many = (BUCKETS * WAYS * 4) as u64;
        for n in 1..=many {
            known.insert(&key(n), 1);
            assert!(known.contains(&key(n), 1));
        }
        let kept = (1..=many).filter(|&n| known.contains(&key(n), 1)).count();
        assert!(kept > BUCKETS * WAYS / 2 && kept <= BUCKETS * WAYS);
    }
}
