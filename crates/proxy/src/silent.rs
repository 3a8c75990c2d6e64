//! Logins in order of arrival, so that the oldest silent one can make room for another.
//!
//! Must not know: what a login is; the caller supplies its state.
//!
//! Invariant: the list is at most about twice as long as the number of clients.

use crate::ids::Key;
use std::collections::VecDeque;

/// What a login has said so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// It is none any more.
    Over,
    /// Nothing at all.
    NotAByte,
    /// Something, and then nothing for too long.
    Stalled,
    /// Something, and it goes on.
    Begun,
}

/// Remembered beyond twice the clients.
const SPARE: usize = 64;

/// See above.
#[derive(Debug, Default)]
pub struct Silent {
    /// Those who may not have said anything.
    new: VecDeque<Key>,
    /// Those who have.
    begun: VecDeque<Key>,
}

impl Silent {
    /// A login has come.
    pub fn note(&mut self, key: Key) {
        self.new.push_back(key);
    }

    /// So many are remembered beside so many clients that most of them must be over.
    pub fn is_long(&self, clients: usize) -> bool {
        self.new.len() + self.begun.len() > clients.saturating_mul(2).saturating_add(SPARE)
    }

    /// Forgets those that are over.
    pub fn tidy(&mut self, state: impl Fn(Key) -> Silence) {
        self.new.retain(|&key| state(key) != Silence::Over);
        self.begun.retain(|&key| state(key) != Silence::Over);
    }

    /// The one to give up: the oldest of whom no byte has come, else the oldest that has stalled.
    pub fn take(&mut self, state: impl Fn(Key) -> Silence) -> Option<Key> {
        while let Some(key) = self.new.pop_front() {
            match state(key) {
                Silence::Over => {}
                Silence::NotAByte => return Some(key),
                Silence::Stalled | Silence::Begun => self.begun.push_back(key),
            }
        }
        // In the order of their coming, which is nearly that of their last byte.
        while let Some(key) = self.begun.pop_front() {
            match state(key) {
                Silence::Over => {}
                Silence::NotAByte | Silence::Stalled => return Some(key),
                Silence::Begun => {
                    self.begun.push_front(key);
                    return None;
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn key(n: u64) -> Key {
        Key::from_raw((1 << 32) | n).unwrap()
    }

    #[test]
    fn who_has_said_nothing_goes_first_then_who_has_stalled_and_never_who_goes_on() {
        let keys: Vec<Key> = (0..6).map(key).collect();
        let mut silent = Silent::default();
        keys.iter().for_each(|&key| silent.note(key));
        let states = [
            Silence::Over,
            Silence::Stalled,
            Silence::NotAByte,
            Silence::Begun,
            Silence::NotAByte,
            Silence::Begun,
        ];
        let mut now: HashMap<u64, Silence> = keys.iter().map(|key| key.raw()).zip(states).collect();
        for wanted in [Some(2), Some(4), Some(1), None] {
            let taken = silent.take(|key| now[&key.raw()]);
            assert_eq!(taken, wanted.map(|n: usize| keys[n]));
            if let Some(key) = taken {
                now.insert(key.raw(), Silence::Over);
            }
        }
        now.insert(keys[3].raw(), Silence::Stalled);
        assert_eq!(silent.take(|key| now[&key.raw()]), Some(keys[3]));
    }

    #[test]
    fn those_that_are_over_are_forgotten_before_they_are_many() {
        let mut silent = Silent::default();
        silent.note(key(0));
        for n in 1..10_000 {
            silent.note(key(n));
            if silent.is_long(10) {
                silent.tidy(|one| if one == key(0) { Silence::NotAByte } else { Silence::Over });
            }
            assert!(silent.new.len() <= 20 + SPARE);
        }
        assert_eq!(silent.take(|_| Silence::NotAByte), Some(key(0)));
    }
}
