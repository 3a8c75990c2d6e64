//! Delays refusals after wrong passwords. After several in a row each further refusal is delayed, longer each
//! time, so that passwords cannot be found by trying; attempts on many connections at once are delayed one
//! after the other.
//!
//! Owns: the number of recent failures, by address and by user. Must not know: clients, protocols.
//!
//! Invariants: only refusals are delayed, so a client with the right password never waits; the memory is
//! fixed. Two addresses or names that collide in the table are delayed together.

use std::net::IpAddr;
use weir_wire::limits::REFUSED_ADDRESSES;

/// So many are answered at once: a typing error, a fleet that has not heard of the new password yet.
const FREE: u32 = 5;
/// The first wait, which doubles up to the last.
const FIRST_MS: u64 = 50;
const LAST_MS: u64 = 1_000;
/// The longest wait of who tries over many connections at once.
const QUEUE_MS: u64 = 15_000;
/// Time after which half of them is forgotten.
const HALF_MS: u64 = 10_000;

/// The wrong passwords of late.
#[derive(Debug)]
pub struct Failures {
    slots: Box<[Slot]>,
}

/// Those of an address or of a name.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    since_ms: u64,
    count: u32,
    /// When the last of its refusals that are held back is told.
    last_ms: u64,
}

impl Default for Failures {
    fn default() -> Self {
        Failures { slots: vec![Slot::default(); REFUSED_ADDRESSES].into() }
    }
}

impl Failures {
    /// Counts one more; returns how long its answer has to wait.
    pub fn count(&mut self, now_ms: u64, from: Option<IpAddr>, user: &str) -> u64 {
        let address = match from {
            Some(IpAddr::V4(v4)) => self.add(now_ms, &v4.octets()),
            // Whoever has one address of such a network has them all.
            Some(IpAddr::V6(v6)) => self.add(now_ms, v6.octets().get(..8).unwrap_or_default()),
            None => 0,
        };
        let user = self.add(now_ms, user.as_bytes());
        address.max(user)
    }

    /// Counts one of this name; returns its wait.
    fn add(&mut self, now_ms: u64, name: &[u8]) -> u64 {
        // FNV-1a: spread is all it is for.
        let hash = name.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        let at = usize::try_from(hash >> 32).unwrap_or_default() % REFUSED_ADDRESSES;
        let Some(slot) = self.slots.get_mut(at) else { return 0 };
        let halves = now_ms.saturating_sub(slot.since_ms) / HALF_MS;
        if halves > 0 {
            let halves = u32::try_from(halves).ok();
            slot.count = halves.and_then(|halves| slot.count.checked_shr(halves)).unwrap_or(0);
            slot.since_ms = now_ms;
        }
        slot.count = slot.count.saturating_add(1);
        let gap_ms = wait_ms(slot.count);
        if gap_ms == 0 {
            return 0;
        }
        // Behind those of it that wait already.
        let until_ms = slot.last_ms.max(now_ms) + gap_ms;
        slot.last_ms = until_ms.min(now_ms + QUEUE_MS);
        slot.last_ms - now_ms
    }
}

fn wait_ms(count: u32) -> u64 {
    match count.checked_sub(FREE + 1) {
        None => 0,
        Some(over) => (FIRST_MS << over.min(16)).min(LAST_MS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_free_and_the_rest_later_each_time() {
        let mut failures = Failures::default();
        let from = Some(IpAddr::from([10, 0, 0, 1]));
        let mut now_ms = 1_000_000;
        let mut next = |from, user| {
            let wait_ms = failures.count(now_ms, from, user);
            now_ms += wait_ms;
            wait_ms
        };
        let waits: Vec<u64> = (0..12).map(|_| next(from, "app")).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 50, 100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(next(Some(IpAddr::from([10, 0, 0, 2])), "other"), 0);
        assert_eq!(next(Some(IpAddr::from([10, 0, 0, 3])), "app"), LAST_MS, "by its name");
        assert_eq!(next(from, "third"), LAST_MS, "by its address");
    }

    #[test]
    fn many_at_once_wait_one_behind_the_other() {
        let mut failures = Failures::default();
        let from = Some(IpAddr::from([10, 0, 0, 1]));
        let waits: Vec<u64> = (0..100).map(|n| failures.count(1_000_000, from, &n.to_string())).collect();
        assert_eq!(waits[..5], [0; 5]);
        assert!(waits.is_sorted() && waits[5] == FIRST_MS, "{waits:?}");
        assert_eq!((waits[10], waits[99]), (2_550, QUEUE_MS));
        let told = waits.iter().filter(|&&wait| wait < 10_000).count();
        assert!(told < 20, "{told} in the first ten seconds");
        assert_eq!(failures.count(1_000_000 + QUEUE_MS, from, "x"), LAST_MS, "the queue is empty again");
    }

    #[test]
    fn they_are_forgotten() {
        let mut failures = Failures::default();
        for _ in 0..8 {
            failures.count(1_000_000, None, "app");
        }
        assert_eq!(failures.count(1_000_000 + HALF_MS, None, "app"), 0);
        assert_eq!(failures.count(u64::MAX, None, "app"), 0);
    }
}
