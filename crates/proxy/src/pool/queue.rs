//! The queue of waiting clients: first come, first served; leaving from the middle costs nothing.
//!
//! Owns: the order. The links are stored in the things themselves, so a waiting client needs no memory.
//! Invariant: `len` is the number of linked things; a thing is in at most one queue.

use crate::ids::{Arena, Key};

/// A thing's place in a [`Queue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Link {
    prev: Option<NonMax>,
    next: Option<NonMax>,
    linked: bool,
}

/// A slot number; stored plus one so that `Option` costs nothing.
type NonMax = std::num::NonZeroU32;

fn pack(slot: u32) -> NonMax {
    NonMax::MIN.saturating_add(slot)
}

fn unpack(slot: NonMax) -> u32 {
    slot.get() - 1
}

impl Link {
    /// It is in a queue.
    pub fn is_linked(&self) -> bool {
        self.linked
    }
}

/// Something that can stand in a queue.
pub trait Linked {
    /// Its place.
    fn link(&self) -> Link;
    /// The same, to change it.
    fn link_mut(&mut self) -> &mut Link;
}

/// First in, first out, over things in an [`Arena`].
#[derive(Debug, Default)]
pub struct Queue {
    head: Option<NonMax>,
    tail: Option<NonMax>,
    len: usize,
}

impl Queue {
    /// Things in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The oldest.
    pub fn front<T>(&self, arena: &Arena<T>) -> Option<Key> {
        self.head.and_then(|slot| arena.key_of(unpack(slot)))
    }

    /// All of them, the oldest first.
    pub fn keys<T: Linked>(&self, arena: &Arena<T>) -> impl Iterator<Item = Key> {
        let behind = |key: &Key| arena.key_of(unpack(arena.get(*key)?.link().next?));
        std::iter::successors(self.front(arena), behind)
    }

    /// Puts a thing at the end. It must not be in a queue.
    pub fn push_back<T: Linked>(&mut self, arena: &mut Arena<T>, key: Key) {
        let slot = pack(key.slot());
        let Some(thing) = arena.get_mut(key) else { return };
        let link = thing.link_mut();
        debug_assert!(!link.linked, "already in a queue");
        *link = Link { prev: self.tail, next: None, linked: true };
        match self.tail.and_then(|tail| arena.at_mut(unpack(tail))) {
            Some(tail) => tail.link_mut().next = Some(slot),
            None => self.head = Some(slot),
        }
        self.tail = Some(slot);
        self.len += 1;
    }

    /// Puts a thing in by its age, `since`: nearly always that is the end. It must not be in a queue.
    pub fn insert<T: Linked>(&mut self, arena: &mut Arena<T>, key: Key, since: impl Fn(&T) -> u64) {
        let Some(age) = arena.get(key).map(&since) else { return };
        let mut after = self.tail;
        while let Some(slot) = after
            && let Some(thing) = arena.at_mut(unpack(slot))
            && since(thing) > age
        {
            after = thing.link_mut().prev;
        }
        if after == self.tail {
            return self.push_back(arena, key);
        }
        let slot = pack(key.slot());
        let next = match after.and_then(|slot| arena.at_mut(unpack(slot))) {
            Some(before) => before.link_mut().next.replace(slot),
            None => self.head.replace(slot),
        };
        if let Some(next) = next.and_then(|slot| arena.at_mut(unpack(slot))) {
            next.link_mut().prev = Some(slot);
        }
        if let Some(thing) = arena.get_mut(key) {
            *thing.link_mut() = Link { prev: after, next, linked: true };
        }
        self.len += 1;
    }

    /// Takes a thing out, wherever it stands. False when it was not in a queue.
    pub fn remove<T: Linked>(&mut self, arena: &mut Arena<T>, key: Key) -> bool {
        let Some(thing) = arena.get_mut(key) else { return false };
        let link = std::mem::take(thing.link_mut());
        if !link.linked {
            return false;
        }
        match link.prev.and_then(|slot| arena.at_mut(unpack(slot))) {
            Some(prev) => prev.link_mut().next = link.next,
            None => self.head = link.next,
        }
        match link.next.and_then(|slot| arena.at_mut(unpack(slot))) {
            Some(next) => next.link_mut().prev = link.prev,
            None => self.tail = link.prev,
        }
        self.len -= 1;
        true
    }

    /// Takes the oldest out.
    pub fn pop_front<T: Linked>(&mut self, arena: &mut Arena<T>) -> Option<Key> {
        let key = self.front(arena)?;
        self.remove(arena, key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Thing(Link);
    impl Linked for Thing {
        fn link(&self) -> Link {
            self.0
        }
        fn link_mut(&mut self) -> &mut Link {
            &mut self.0
        }
    }

    #[test]
    fn order_is_first_in_first_out_and_the_middle_may_leave() {
        let mut arena = Arena::default();
        let mut queue = Queue::default();
        let keys: Vec<Key> = (0..5).map(|_| arena.insert(Thing::default())).collect();
        for &key in &keys {
            queue.push_back(&mut arena, key);
        }
        assert!(queue.remove(&mut arena, keys[2]));
        assert!(!queue.remove(&mut arena, keys[2]));
        assert!(queue.remove(&mut arena, keys[4]));
        assert_eq!(queue.len(), 3);
        queue.push_back(&mut arena, keys[2]);
        let order: Vec<Key> = std::iter::from_fn(|| queue.pop_front(&mut arena)).collect();
        assert_eq!(order, vec![keys[0], keys[1], keys[3], keys[2]]);
        assert!(queue.is_empty());
    }
}
