//! Keys of what a worker owns, and the slabs that store it.
//!
//! Owns: [`Key`] (slot and generation), [`Arena`], the packing of keys into event-loop tokens and timer keys,
//! and the numbers by which clients are known outside.
//! Invariant: a stale key never finds a later occupant of its slot.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use weir_net::Token;
use weir_session::Protocol;

/// Slot and generation of something in an [`Arena`]. Never 0, so it can be a queue owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(NonZeroU64);

/// Generations use 28 bits, so that a token has room for its kind.
const GENERATION_MASK: u32 = (1 << 28) - 1;

impl Key {
    /// Generations start at 1: no key is 0, and none at all costs no room.
    fn new(generation: u32, slot: u32) -> Key {
        debug_assert!(generation > 0);
        Key(NonZeroU64::new(u64::from(generation) << 32 | u64::from(slot)).unwrap_or(NonZeroU64::MAX))
    }
    /// From what [`Key::raw`] gave.
    pub fn from_raw(raw: u64) -> Option<Key> {
        NonZeroU64::new(raw).filter(|raw| raw.get() >> 32 != 0).map(Key)
    }
    /// As a number: generation in the upper half, slot in the lower.
    pub fn raw(self) -> u64 {
        self.0.get()
    }
    /// The slot.
    pub fn slot(self) -> u32 {
        self.raw() as u32
    }
    /// The generation: 1 to 2^28 - 1.
    pub fn generation(self) -> u32 {
        (self.raw() >> 32) as u32
    }
}

/// A slab whose keys carry a generation.
#[derive(Debug)]
pub struct Arena<T> {
    slots: Vec<Slot<T>>,
    /// What has been free longest comes first.
    free: VecDeque<u32>,
    /// So many stay free.
    spare: usize,
    len: usize,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Arena::with_spare(0)
    }
}

impl<T> Arena<T> {
    /// An empty one, that takes new slots until so many are free. A slot has another tenant the less often.
    pub fn with_spare(spare: usize) -> Self {
        Arena { slots: Vec::new(), free: VecDeque::new(), spare, len: 0 }
    }
    /// Things in it.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Puts a thing in.
    pub fn insert(&mut self, value: T) -> Key {
        self.len += 1;
        let reused = if self.free.len() > self.spare { self.free.pop_front() } else { None };
        let slot = reused.unwrap_or_else(|| {
            self.slots.push(Slot { generation: 1, value: None });
            (self.slots.len() - 1) as u32
        });
        let place = &mut self.slots[slot as usize];
        place.value = Some(value);
        Key::new(place.generation, slot)
    }
    /// The key that the next `insert` will return.
    pub fn next_key(&self) -> Key {
        let reused = self.free.front().filter(|_| self.free.len() > self.spare);
        let (slot, generation) = match reused {
            Some(&slot) => (slot, self.slots[slot as usize].generation),
            None => (self.slots.len() as u32, 1),
        };
        Key::new(generation, slot)
    }
    /// Takes a thing out.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let place = self.slots.get_mut(key.slot() as usize)?;
        if place.generation != key.generation() {
            return None;
        }
        let value = place.value.take()?;
        place.generation = (place.generation + 1) & GENERATION_MASK;
        if place.generation == 0 {
            place.generation = 1;
        }
        self.free.push_back(key.slot());
        self.len -= 1;
        Some(value)
    }
    /// Looks at a thing.
    #[inline]
    pub fn get(&self, key: Key) -> Option<&T> {
        let place = self.slots.get(key.slot() as usize)?;
        if place.generation == key.generation() { place.value.as_ref() } else { None }
    }
    /// Looks at a thing to change it.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.slots.get_mut(key.slot() as usize)?;
        if place.generation == key.generation() { place.value.as_mut() } else { None }
    }
    /// Whatever is in a slot now, and its key.
    pub fn at(&self, slot: u32) -> Option<(Key, &T)> {
        let place = self.slots.get(slot as usize)?;
        Some((Key::new(place.generation, slot), place.value.as_ref()?))
    }
    /// Looks at whatever is in a slot now.
    pub fn at_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.slots.get_mut(slot as usize)?.value.as_mut()
    }
    /// The key of whatever is in a slot now.
    pub fn key_of(&self, slot: u32) -> Option<Key> {
        self.at(slot).map(|(key, _)| key)
    }
    /// Slots there are, used or not: all are below this number.
    pub fn slots(&self) -> u32 {
        self.slots.len() as u32
    }
    /// All keys, lowest slot first.
    pub fn keys(&self) -> Vec<Key> {
        (0..self.slots.len() as u32).filter_map(|slot| self.key_of(slot)).collect()
    }
    /// All things with their keys, lowest slot first.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        (0..self.slots()).filter_map(|slot| self.at(slot))
    }
}

/// What an event or a timer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A listener; the slot is its index.
    Listener,
    /// A client.
    Client,
    /// A server.
    Server,
    /// A connection that carries a cancel request to a server.
    Canceller,
    /// A pool's timers; the slot is its index, and the generation says which ([`Tag::of_pins`]).
    Pool,
    /// A client whose batch has no end yet: its timer.
    Batch,
    /// A client that keeps a server in case it asks something next: its timer.
    Kept,
    /// A client that only listens: its timer.
    Listen,
}

/// Kind, protocol and key in one number, for tokens and timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// What it is.
    pub kind: Kind,
    /// Which protocol it speaks.
    pub protocol: Protocol,
    /// Which one.
    pub key: Key,
}

impl Tag {
    /// Packs into 64 bits: 3 kind, 1 protocol, 28 generation, 32 slot.
    pub fn pack(self) -> u64 {
        (self.kind as u64) << 61 | (self.protocol as u64) << 60 | self.key.raw()
    }
    /// A token for the event loop.
    pub fn token(self) -> Token {
        Token(self.pack())
    }
    /// Unpacks; `None` for the mailbox's token and nonsense.
    pub fn unpack(raw: u64) -> Option<Tag> {
        let kind = match raw >> 61 {
            0 => Kind::Listener,
            1 => Kind::Client,
            2 => Kind::Server,
            3 => Kind::Canceller,
            4 => Kind::Pool,
            5 => Kind::Batch,
            6 => Kind::Kept,
            _ if raw == Token::MAIL.0 => return None,
            _ => Kind::Listen,
        };
        let protocol = Protocol::ALL[(raw >> 60 & 1) as usize];
        let key = Key::from_raw(raw & ((1 << 60) - 1))?;
        Some(Tag { kind, protocol, key })
    }
    /// A tag for something that stays in an indexed list permanently.
    pub fn fixed(kind: Kind, protocol: Protocol, index: u32) -> Tag {
        Tag { kind, protocol, key: Key::new(1, index) }
    }
    /// The timer that looks at the pinned clients of a pool.
    pub fn of_pins(protocol: Protocol, index: u32) -> Tag {
        Tag { kind: Kind::Pool, protocol, key: Key::new(2, index) }
    }
    /// It is that one.
    pub fn is_of_pins(self) -> bool {
        self == Tag::of_pins(self.protocol, self.key.slot())
    }
}

/// Slots for clients that stay free in each worker. Four bits of a client's number tell one tenant of a slot
/// from the next: with so many slots a number names somebody else only after 2,064 more clients, and a KILL
/// by an old number finds nobody until then.
pub const SPARE_CLIENTS: usize = 128;
/// Clients that one worker can have, because a client's number names its slot in 20 bits.
pub const MAX_CLIENTS_PER_WORKER: usize = (1 << 20) - SPARE_CLIENTS;
/// The bits of a slot in a client's number.
const SLOT_MASK: u32 = (1 << 20) - 1;

/// Clients' numbers begin here; what is below is the number of a database's connection.
pub const FIRST_CLIENT_NUMBER: u32 = 1 << 30;

/// The numbers by which clients are known outside (PostgreSQL's backend pid, MySQL's connection id): worker
/// in 6 bits, slot in 20, generation in 4. Never 0, below 2^31, and above what MySQL's servers, which count
/// their connections, come to: a number that reaches a server by mistake names nobody there.
///
/// Slot and generation are masked by bits that each process draws for itself: MySQL's KILL has no secret, and
/// one that a load balancer takes to another Weir must find nobody there.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    mask: u32,
}

impl Numbers {
    /// Those of a process that has drawn these bytes.
    pub fn new(random: [u8; 4]) -> Self {
        Numbers { mask: u32::from_ne_bytes(random) & (FIRST_CLIENT_NUMBER - 1) & !63 }
    }

    /// The number of a client.
    pub fn of(self, worker: usize, key: Key) -> u32 {
        let number = (key.generation() % 16) << 26 | (key.slot() & SLOT_MASK) << 6 | worker as u32 & 63;
        FIRST_CLIENT_NUMBER | (number ^ self.mask)
    }

    /// The slot that a number names.
    pub fn slot(self, number: u32) -> u32 {
        (number ^ self.mask) >> 6 & SLOT_MASK
    }
}

/// The worker that a client's number names.
pub fn worker_of(number: u32) -> usize {
    (number & 63) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_does_not_find_the_next_tenant() {
        let mut arena = Arena::default();
        let first = arena.insert("first");
        assert_eq!(arena.remove(first), Some("first"));
        assert_eq!(arena.next_key().slot(), first.slot());
        let second = arena.insert("second");
        assert_eq!(second.slot(), first.slot());
        assert_eq!(arena.get(first), None);
        assert_eq!(arena.remove(first), None);
        assert_eq!(arena.get(second), Some(&"second"));
        assert_eq!(arena.keys(), vec![second]);
    }

    #[test]
    fn tags_survive_packing() {
        let mut arena = Arena::default();
        for _ in 0..1000 {
            let key = arena.insert(());
            for kind in [
                Kind::Listener,
                Kind::Client,
                Kind::Server,
                Kind::Canceller,
                Kind::Pool,
                Kind::Batch,
                Kind::Kept,
                Kind::Listen,
            ] {
                for protocol in Protocol::ALL {
                    let tag = Tag { kind, protocol, key };
                    assert_eq!(Tag::unpack(tag.pack()), Some(tag));
                }
            }
        }
        assert_eq!(Tag::unpack(Token::MAIL.0), None);
        let (retry, pins) = (Tag::fixed(Kind::Pool, Protocol::Mysql, 7), Tag::of_pins(Protocol::Mysql, 7));
        assert!(pins.is_of_pins() && !retry.is_of_pins());
        assert_eq!(Tag::unpack(pins.pack()), Some(pins));
    }

    #[test]
    fn client_numbers_name_worker_and_slot_and_change_with_the_tenant() {
        let mut arena = Arena::default();
        let key = arena.insert(());
        for mask in [0, 0x1234_5678, u32::MAX] {
            let numbers = Numbers::new(u32::to_ne_bytes(mask));
            let number = numbers.of(63, key);
            assert!((FIRST_CLIENT_NUMBER..1 << 31).contains(&number), "{number}");
            assert_eq!((worker_of(number), numbers.slot(number)), (63, key.slot()));
            arena.remove(key);
            assert_ne!(numbers.of(63, arena.insert(())), number);
        }
    }

    #[test]
    fn a_number_of_another_process_names_nobody() {
        let mut arena = Arena::default();
        let here: Vec<u32> = {
            let numbers = Numbers::new([0; 4]);
            (0..1000).map(|_| numbers.of(0, arena.insert(()))).collect()
        };
        let other = Numbers::new(u32::to_ne_bytes(0x2a5c_9000));
        assert!(here.iter().all(|&number| arena.at(other.slot(number)).is_none()));
    }

    #[test]
    fn a_client_gets_the_number_of_another_one_after_thousands_only() {
        let mut arena = Arena::with_spare(SPARE_CLIENTS);
        let mut next = || {
            let key = arena.insert(());
            arena.remove(key);
            Numbers::new([7; 4]).of(0, key)
        };
        let first = next();
        assert_eq!((1..).find(|_| next() == first), Some(16 * (SPARE_CLIENTS + 1)));
    }
}
