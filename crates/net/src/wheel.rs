//! A hierarchical timer wheel for a million deadlines.
//!
//! Owns: deadlines and the keys that belong to them. Must not know: the time (every call gets it), what a key
//! means.
//!
//! A deadline is never cancelled or moved: its owner keeps the current deadline, and when an old one fires,
//! checks, and inserts again if the time has not come. A connection therefore has one entry here however
//! often its deadline changes.
//!
//! How it works: time in milliseconds is a number of eleven digits to the base 64. A deadline waits at the
//! level of the highest digit in which it differs from the present, in the slot of its own digit there. When
//! the present reaches that digit, the slot is dealt out to the levels below; at level 0 a slot is one
//! millisecond and fires. Insertion is O(1), each entry moves at most ten times and seldom more than three,
//! and no deadline that 64 bits can hold is too far away.
//!
//! Invariants: every entry of a level shares all higher digits with the present, so an occupied slot is
//! always ahead, and the lowest occupied level holds the earliest deadline. Entries fire in the order of
//! (deadline, insertion), the same on every run. Nothing fires early, nothing is lost.
//!
//! Memory: 24 bytes per entry (the vector that holds them doubles when it grows, so up to 48 at times) and 6
//! kB for the wheel. An emptied wheel releases its memory.

const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
/// Eleven digits of six bits hold 64 bits.
const LEVELS: usize = 11;
/// End of a list.
const NONE: u32 = u32::MAX;
/// An emptied wheel keeps memory for this many entries.
const KEEP_ENTRIES: usize = 1024;

/// One deadline, a link in its slot's list or in the free list.
#[derive(Debug, Clone, Copy)]
struct Entry {
    deadline_ms: u64,
    key: u64,
    next: u32,
}

/// A list of entries, first in, first out.
#[derive(Debug, Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    const EMPTY: List = List { first: NONE, last: NONE };
}

/// The deadlines of one worker.
#[derive(Debug)]
pub struct Wheel {
    now_ms: u64,
    entries: Vec<Entry>,
    free: u32,
    len: usize,
    /// Deadlines that had passed when they were inserted.
    due: List,
    slots: [[List; SLOTS]; LEVELS],
    /// Bit n says that slot n of the level is not empty.
    occupied: [u64; LEVELS],
}

impl Wheel {
    /// An empty wheel whose present is `now_ms`.
    pub fn new(now_ms: u64) -> Wheel {
        Wheel {
            now_ms,
            entries: Vec::new(),
            free: NONE,
            len: 0,
            due: List::EMPTY,
            slots: [[List::EMPTY; SLOTS]; LEVELS],
            occupied: [0; LEVELS],
        }
    }

    /// How many deadlines wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a deadline. One that is not after the present fires at the next [`Wheel::advance`]. The same key
    /// may wait more than once. Bound: 2^32 - 1 entries, which is 100 GB of them.
    pub fn insert(&mut self, deadline_ms: u64, key: u64) {
        let entry = Entry { deadline_ms, key, next: NONE };
        let index = if self.free == NONE {
            assert!(self.entries.len() < NONE as usize, "a wheel holds fewer than 2^32 deadlines");
            self.entries.push(entry);
            (self.entries.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.entries[index as usize].next;
            self.entries[index as usize] = entry;
            index
        };
        self.len += 1;
        self.place(index);
    }

    /// Moves the present to `now_ms` (never back) and appends the keys of all deadlines that are not after
    /// it to `fired`, in the order of (deadline, insertion).
    pub fn advance(&mut self, now_ms: u64, fired: &mut Vec<u64>) {
        self.fire(fired);
        while let Some((level, slot, start_ms)) = self.earliest_slot() {
            if start_ms > now_ms {
                break;
            }
            // At level 0 the present may already be there: its slot is the millisecond that is.
            self.now_ms = self.now_ms.max(start_ms);
            let list = std::mem::replace(&mut self.slots[level][slot], List::EMPTY);
            self.occupied[level] &= !(1 << slot);
            self.deal_out(list);
            self.fire(fired);
        }
        self.now_ms = self.now_ms.max(now_ms);
        if self.len == 0 && self.entries.capacity() > KEEP_ENTRIES {
            self.entries = Vec::new();
            self.free = NONE;
        }
    }

    /// A time that is not after the earliest deadline, when [`Wheel::advance`] should be called next; `None`
    /// when no deadline waits. It may be before the deadline; then `advance` fires nothing but brings the
    /// entry at least one level down, so a deadline costs at most ten such calls, and seldom more than three.
    pub fn next_ms(&self) -> Option<u64> {
        if self.due.first != NONE {
            return Some(self.now_ms);
        }
        self.earliest_slot().map(|(_, _, start_ms)| start_ms)
    }

    /// The lowest occupied level's first occupied slot, and when it starts.
    fn earliest_slot(&self) -> Option<(usize, usize, u64)> {
        let level = self.occupied.iter().position(|&bits| bits != 0)?;
        let slot = self.occupied[level].trailing_zeros();
        let shift = DIGIT_BITS * level as u32;
        // The highest level has no digit above it: the shift would be 66.
        let above = self.now_ms.checked_shr(shift + DIGIT_BITS).unwrap_or(0);
        let start_ms = above.checked_shl(shift + DIGIT_BITS).unwrap_or(0) | (u64::from(slot) << shift);
        Some((level, slot as usize, start_ms))
    }

    /// Appends the entry to the list where its deadline belongs as seen from the present.
    fn place(&mut self, index: u32) {
        let deadline_ms = self.entries[index as usize].deadline_ms;
        let list = if deadline_ms <= self.now_ms {
            &mut self.due
        } else {
            let differing_bits = u64::BITS - (deadline_ms ^ self.now_ms).leading_zeros();
            let level = ((differing_bits - 1) / DIGIT_BITS) as usize;
            let slot = (deadline_ms >> (DIGIT_BITS * level as u32)) as usize % SLOTS;
            self.occupied[level] |= 1 << slot;
            &mut self.slots[level][slot]
        };
        let last = std::mem::replace(&mut list.last, index);
        if last == NONE {
            list.first = index;
        } else {
            self.entries[last as usize].next = index;
        }
    }

    /// Places every entry of a list anew, in its order.
    fn deal_out(&mut self, list: List) {
        let mut at = list.first;
        while at != NONE {
            let next = std::mem::replace(&mut self.entries[at as usize].next, NONE);
            self.place(at);
            at = next;
        }
    }

    /// Hands over the keys that are due and frees their entries.
    fn fire(&mut self, fired: &mut Vec<u64>) {
        let list = std::mem::replace(&mut self.due, List::EMPTY);
        let mut at = list.first;
        while at != NONE {
            let entry = &mut self.entries[at as usize];
            fired.push(entry.key);
            let next = std::mem::replace(&mut entry.next, self.free);
            self.free = at;
            self.len -= 1;
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn fired(wheel: &mut Wheel, now_ms: u64) -> Vec<u64> {
        let mut keys = Vec::new();
        wheel.advance(now_ms, &mut keys);
        keys
    }

    #[test]
    fn fires_in_order_and_never_early() {
        let mut wheel = Wheel::new(1_000);
        wheel.insert(1_500, 3);
        wheel.insert(1_001, 1);
        wheel.insert(1_500, 4);
        wheel.insert(1_064, 2);
        assert_eq!(fired(&mut wheel, 1_000), []);
        assert_eq!(fired(&mut wheel, 1_001), [1]);
        assert_eq!(fired(&mut wheel, 1_499), [2]);
        assert_eq!(fired(&mut wheel, 1_500), [3, 4]);
        assert_eq!(wheel.next_ms(), None);
    }

    #[test]
    fn a_passed_deadline_fires_at_once_and_the_clock_never_goes_back() {
        let mut wheel = Wheel::new(500);
        wheel.insert(10, 1);
        assert_eq!(wheel.next_ms(), Some(500));
        assert_eq!(fired(&mut wheel, 400), [1]);
        wheel.insert(450, 2);
        assert_eq!(fired(&mut wheel, 400), [2]);
        wheel.insert(501, 3);
        assert_eq!(fired(&mut wheel, 400), []);
        assert_eq!(fired(&mut wheel, 501), [3]);
    }

    #[test]
    fn the_farthest_deadline_is_not_too_far() {
        let mut wheel = Wheel::new(0);
        wheel.insert(u64::MAX, 9);
        wheel.insert(u64::MAX - 1, 8);
        assert_eq!(fired(&mut wheel, u64::MAX - 2), []);
        assert_eq!(fired(&mut wheel, u64::MAX - 1), [8]);
        assert_eq!(fired(&mut wheel, u64::MAX), [9]);
        wheel.insert(u64::MAX, 10);
        assert_eq!(fired(&mut wheel, u64::MAX), [10]);
    }

    #[test]
    fn a_sleeper_who_follows_next_ms_wakes_seldom() {
        let mut wheel = Wheel::new(12_345);
        wheel.insert(12_345 + 3_600_000, 1);
        let mut wakes = 0;
        let mut keys = Vec::new();
        while let Some(next) = wheel.next_ms() {
            wheel.advance(next, &mut keys);
            wakes += 1;
        }
        assert_eq!(keys, [1]);
        assert!(wakes <= LEVELS, "{wakes} wakes for one deadline");
    }

    #[test]
    fn a_million_deadlines_cost_what_is_documented_and_are_given_back() {
        assert_eq!(size_of::<Entry>(), 24);
        assert!(size_of::<Wheel>() < 6_400);
        let mut wheel = Wheel::new(0);
        for key in 0..1_000_000_u64 {
            // A multiplicative walk spreads the deadlines over an hour.
            wheel.insert(key.wrapping_mul(2_654_435_761) % 3_600_000, key);
        }
        let mut keys = Vec::new();
        let mut now_ms = 0;
        while !wheel.is_empty() {
            now_ms += 777;
            wheel.advance(now_ms, &mut keys);
        }
        assert_eq!(keys.len(), 1_000_000);
        assert!(keys.is_sorted_by_key(|key| key.wrapping_mul(2_654_435_761) % 3_600_000));
        assert!(wheel.entries.capacity() <= KEEP_ENTRIES);
    }

    #[derive(Debug, Clone)]
    enum Act {
        Insert(u64),
        Advance(u64),
        Next,
    }

    fn act() -> impl Strategy<Value = Act> {
        // Distances of every size, so that every level is met; and deadlines that have passed.
        let distance = || (0u32..44, any::<u64>()).prop_map(|(bits, raw)| raw & ((1 << bits) - 1));
        prop_oneof![
            6 => distance().prop_map(Act::Insert),
            3 => distance().prop_map(Act::Advance),
            2 => Just(Act::Next),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn equals_a_sorted_map(start in any::<u64>().prop_map(|n| n >> 1),
                               acts in prop::collection::vec(act(), 1..200)) {
            let mut wheel = Wheel::new(start);
            let mut now = start;
            let mut model: BTreeMap<(u64, u64), u64> = BTreeMap::new();
            for (number, act) in acts.into_iter().enumerate() {
                let number = number as u64;
                let target = match act {
                    Act::Insert(distance) => {
                        // One in four lies in the past.
                        let deadline = if distance % 4 == 0 { now.saturating_sub(distance) }
                                       else { now.saturating_add(distance) };
                        wheel.insert(deadline, number);
                        model.insert((deadline.max(now), number), number);
                        prop_assert_eq!(wheel.len(), model.len());
                        let earliest = model.keys().next().map(|&(at, _)| at).unwrap_or(0);
                        let next = wheel.next_ms().unwrap_or(u64::MAX);
                        prop_assert!(next <= earliest && next >= now);
                        continue;
                    }
                    Act::Advance(distance) => now.saturating_add(distance),
                    Act::Next => wheel.next_ms().unwrap_or(now),
                };
                now = target;
                let mut keys = Vec::new();
                wheel.advance(now, &mut keys);
                let later = model.split_off(&(now.saturating_add(1), 0));
                let expected: Vec<u64> = std::mem::replace(&mut model, later).into_values().collect();
                prop_assert_eq!(keys, expected);
                prop_assert_eq!(wheel.len(), model.len());
            }
            let mut keys = Vec::new();
            wheel.advance(u64::MAX, &mut keys);
            prop_assert_eq!(keys, model.into_values().collect::<Vec<_>>());
            prop_assert!(wheel.is_empty());
        }
    }
}
