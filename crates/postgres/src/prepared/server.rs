//! What one server has prepared, under Weir's names, and which clients' statements that serves.
//!
//! Owns: [`ServerPrepared`]. Must not know: clients' names.
//!
//! Invariants: a statement exists only after ParseComplete; one that the batch being sent uses is never
//! evicted; a name is never reused.

use super::known::KnownStatements;
use super::{Key, Name, Shape, Statement, name_for, now};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_wire::Owner;
use weir_wire::limits::{SERVER_PREPARED_BYTES, STATEMENT_VERSIONS};

/// Keys are hashes already.
#[derive(Debug, Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(chunk) {
                *to = *from;
            }
            self.0 = self.0.rotate_left(5) ^ u64::from_le_bytes(word);
        }
    }
    fn write_usize(&mut self, _length: usize) {}
}

/// How sure Weir is that a server has a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// ParseComplete came.
    Ready,
    /// A Parse is under way for this owner.
    Sent(Owner),
    /// The same, but Weir added the Parse to the request of this number. An error in that request skips it,
    /// so a later request of the same client does not rely on it.
    Added(Owner, u64),
    /// Something on the way may have dropped it.
    Unsure,
}

/// Who runs a statement, and under what. PostgreSQL reads a statement again, with all its literals, where a
/// table of it has changed or has been analysed, and keeps plans in which values are computed and rights are
/// looked at: whoever runs it then decides for all who run it later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runner {
    /// The client; 0: several.
    pub client: u64,
    /// The settings that plans hold something of ([`crate::session_state::Settings::kept_plan_key`]); `None`:
    /// perhaps others, for a moment, or more than settings.
    pub key: Option<u64>,
}

impl Runner {
    /// What has been run so far only by this one means to `now` what it would mean in a session of its own.
    fn suits(self, now: Runner) -> bool {
        self.client == now.client || now.key.is_some() && self.key == now.key
    }

    /// Whoever may run what one of them has run may run what the other has.
    fn is_like(self, other: Runner) -> bool {
        self == other || self.key.is_some() && self.key == other.key
    }

    fn and(self, now: Runner) -> Runner {
        Runner {
            client: if self.client == now.client { now.client } else { 0 },
            key: self.key.filter(|_| self.key == now.key),
        }
    }
}

/// A text as it was read at one time. Another reading of it may have found other types.
#[derive(Debug)]
pub(super) struct Version {
    /// When its Parse was sent.
    number: u64,
    /// The last part of its name: how many were prepared here before.
    name: u64,
    /// The statement it was sent for.
    id: u64,
    state: State,
    /// `None` as long as the server has not said it.
    shape: Option<Shape>,
    /// Who has run it, or has had it read.
    run_by: Runner,
}

impl Version {
    fn serves(&self, statement: &Statement, owner: Owner, by: Runner, batch: u64) -> bool {
        let own = self.id == statement.id;
        if !self.run_by.suits(by) {
            return false;
        }
        match self.state {
            State::Ready => {
                let since = statement.since.load(Ordering::Relaxed);
                let fits = self.shape.is_some() && self.shape.as_ref() == statement.shape();
                own || (fits && since != 0 && self.number > since)
            }
            State::Sent(by) => own && by == owner,
            State::Added(by, to) => own && by == owner && to == batch,
            State::Unsure => false,
        }
    }

    fn is_under_way(&self) -> bool {
        matches!(self.state, State::Sent(_) | State::Added(..))
    }
}

#[derive(Debug)]
pub(super) struct Slot {
    key: Key,
    /// Shared with all statements of this text that come here.
    content: Arc<[u8]>,
    pub(super) versions: Vec<Version>,
    /// Used since the hand of the clock last came by.
    used: bool,
    /// The batch that used it last.
    batch: u64,
}

impl Slot {
    fn is_under_way(&self) -> bool {
        self.versions.iter().any(Version::is_under_way)
    }
}

/// What one server has prepared.
#[derive(Debug)]
pub struct ServerPrepared {
    pub(super) slots: Vec<Slot>,
    index: HashMap<Key, usize, BuildHasherDefault<KeyHasher>>,
    limit: usize,
    /// Of the texts of all slots.
    bytes: usize,
    hand: usize,
    batch: u64,
    /// Names given here.
    names: u64,
    /// Names that nobody needs any more: to be closed with the next request.
    pub leftovers: Vec<Box<[u8]>>,
    /// What the whole pool knows.
    pub known: Arc<KnownStatements>,
}

impl ServerPrepared {
    /// Nothing, and at most `limit` statements later (`max_prepared_statements`). One batch may go over the
    /// limit for its own time.
    pub fn new(limit: usize) -> Self {
        ServerPrepared {
            slots: Vec::new(),
            index: HashMap::default(),
            limit,
            bytes: 0,
            hand: 0,
            batch: 0,
            names: 0,
            leftovers: Vec::new(),
            known: Arc::default(),
        }
    }

    /// Statements may be kept at all.
    pub fn is_enabled(&self) -> bool {
        self.limit > 0
    }

    /// Texts believed to be prepared there.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// None.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// A new request begins: what it uses from here on is safe from eviction until the next one.
    pub fn begin_batch(&mut self) {
        self.batch += 1;
    }

    fn slot(&mut self, key: &Key) -> Option<&mut Slot> {
        self.index.get(key).and_then(|&at| self.slots.get_mut(at))
    }

    fn version(&mut self, key: &Key, number: u64) -> Option<&mut Version> {
        self.slot(key)?.versions.iter_mut().find(|version| version.number == number)
    }

    /// The text as it is kept here, so that a thousand clients keep it once.
    pub fn content(&self, key: &Key) -> Option<Arc<[u8]>> {
        self.index.get(key).and_then(|&at| self.slots.get(at)).map(|slot| Arc::clone(&slot.content))
    }

    /// The name by which the request being sent can use a statement, if the server has it as this client
    /// needs it.
    pub fn find(&mut self, statement: &Statement, owner: Owner, by: Runner) -> Option<Name> {
        let batch = self.batch;
        let slot = self.slot(&statement.key)?;
        let version = slot.versions.iter_mut().rev().find(|v| v.serves(statement, owner, by, batch))?;
        version.run_by = version.run_by.and(by);
        let name = version.name;
        slot.used = true;
        slot.batch = batch;
        Some(name_for(&statement.key, name))
    }

    /// The request being sent prepares a statement: under which name, and its number for
    /// [`ServerPrepared::confirm`] and the like. `added`: Weir adds the Parse.
    pub fn prepare(
        &mut self,
        statement: &Statement,
        owner: Owner,
        run_by: Runner,
        added: bool,
    ) -> (Name, u64) {
        let (number, batch) = (now(), self.batch);
        let state = if added { State::Added(owner, batch) } else { State::Sent(owner) };
        self.names += 1;
        let name = self.names;
        let version = Version { number, name, id: statement.id, state, shape: None, run_by };
        let key = statement.key;
        match self.slot(&key) {
            Some(slot) => {
                slot.used = true;
                slot.batch = batch;
                slot.versions.push(version);
            }
            None => {
                self.index.insert(key, self.slots.len());
                let content = Arc::clone(&statement.content);
                self.bytes += content.len();
                self.slots.push(Slot { key, content, versions: vec![version], used: true, batch });
            }
        }
        (name_for(&key, name), number)
    }

    /// One name to close because there are too many; call until `None`. Second chance: a clock goes
    /// round and takes the first one not used since it last came by.
    pub fn evict(&mut self) -> Option<Box<[u8]>> {
        if self.slots.len() > self.limit || self.bytes > SERVER_PREPARED_BYTES {
            self.evict_one();
        }
        self.leftovers.pop()
    }

    fn evict_one(&mut self) {
        for _ in 0..self.slots.len() * 2 {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            let batch = self.batch;
            let Some(slot) = self.slots.get_mut(self.hand) else { return };
            if slot.batch != batch && !slot.is_under_way() && !slot.used {
                let key = slot.key;
                return self.take(&key);
            }
            slot.used = false;
            self.hand += 1;
        }
    }

    /// ParseComplete for this Parse.
    pub fn confirm(&mut self, key: &Key, number: u64) {
        if let Some(version) = self.version(key, number)
            && version.is_under_way()
        {
            version.state = State::Ready;
        }
    }

    /// The server has said what it makes of a statement that it was sent as `number`. False: its client was
    /// told something else before.
    pub fn described(&mut self, statement: &Statement, number: u64, shape: Shape) -> bool {
        let mut gone = Vec::new();
        if let Some(slot) = self.slot(&statement.key) {
            for version in slot.versions.iter_mut().filter(|version| version.number == number) {
                version.shape = Some(shape.clone());
            }
            let run_by = slot.versions.iter().find(|version| version.number == number).map(|it| it.run_by);
            // An older reading that came to the same is needed by nobody; of others, the last ones are kept.
            let mut newer = slot.versions.iter().filter(|version| version.number > number).count();
            let mut at = slot.versions.len();
            while let Some(before) = at.checked_sub(1) {
                at = before;
                let Some(version) = slot.versions.get(at) else { break };
                if version.number < number && !version.is_under_way() {
                    let same = version.shape.as_ref() == Some(&shape)
                        && run_by.is_some_and(|by| version.run_by.is_like(by))
                        || version.state == State::Unsure;
                    newer += 1;
                    if same || newer >= STATEMENT_VERSIONS {
                        gone.push(slot.versions.remove(at).name);
                    }
                }
            }
        }
        self.leftovers.extend(gone.into_iter().map(|name| Box::from(name_for(&statement.key, name))));
        let told = statement.shape.get_or_init(|| shape.clone());
        let as_told = *told == shape || !statement.keeps_columns();
        if !as_told && let Some(version) = self.version(&statement.key, number) {
            // It may serve others, but not the one it was sent for.
            version.id = 0;
        }
        as_told
    }

    /// This Parse failed or was skipped, or its result is of no use.
    pub fn fail(&mut self, key: &Key, number: u64, state: u64) {
        if let Some(slot) = self.slot(key) {
            slot.versions.retain(|version| version.number != number);
            if slot.versions.is_empty() {
                self.take(key);
            }
        }
        self.known.forget(key, state);
    }

    /// What is there now may be dropped by something on its way, or may be stale.
    pub fn distrust_all(&mut self) {
        for version in self.slots.iter_mut().flat_map(|slot| &mut slot.versions) {
            version.state = State::Unsure;
        }
    }

    /// Nothing is there any more (DISCARD ALL of Weir's own, with nothing behind it).
    pub fn clear(&mut self) {
        self.slots.clear();
        self.bytes = 0;
        self.index.clear();
        self.leftovers.clear();
        self.hand = 0;
    }

    /// Forgets all statements, and hands out the names under which the server has any.
    pub fn take_all(&mut self) -> Vec<Box<[u8]>> {
        let mut names = std::mem::take(&mut self.leftovers);
        for slot in &self.slots {
            names.extend(slot.versions.iter().map(|version| Box::from(name_for(&slot.key, version.name))));
        }
        self.clear();
        names
    }

    /// The key of the statement that has this name here.
    pub fn key_of_name(&self, name: &[u8]) -> Option<Key> {
        let has = |slot: &&Slot| slot.versions.iter().any(|v| name_for(&slot.key, v.name) == name);
        self.slots.iter().find(has).map(|slot| slot.key)
    }

    fn take(&mut self, key: &Key) {
        let Some(at) = self.index.remove(key) else { return };
        let slot = self.slots.swap_remove(at);
        self.bytes -= slot.content.len();
        if let Some(moved) = self.slots.get(at) {
            self.index.insert(moved.key, at);
        }
        self.leftovers.extend(slot.versions.iter().map(|v| Box::from(name_for(key, v.name))));
    }
}
