//! Prepared statements that outlive their server: what a client has prepared, what a server has, and the
//! names in between.
//!
//! A statement's name on servers is made of what it is (text, parameter types, the settings under which
//! it was parsed), so that every worker and every server agrees on it without asking. A client's names lead
//! to statements; a server knows which statements it has.
//!
//! Owns: [`Statement`], [`ClientPrepared`], [`ServerPrepared`]. Must not know: messages, queues.
//!
//! Invariants: a server's statement counts as there only after ParseComplete; one that the batch being sent
//! uses is never evicted; both maps are bounded.

pub mod known;

use crate::effects::{Effects, Judge};
use arc_swap::ArcSwap;
use known::KnownStatements;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use weir_wire::Owner;
use weir_wire::limits::CLIENT_PREPARED;

/// What a server's statement is known by: 128 bits of SHA-256.
pub type Key = [u8; 16];

/// All names Weir gives to servers' statements begin so.
pub const NAME_PREFIX: &[u8] = b"weir_";

/// Bytes of such a name: the prefix and 32 hexadecimal digits. PostgreSQL keeps 63.
pub const NAME_BYTES: usize = NAME_PREFIX.len() + 32;

/// One prepared statement, shared by all that use it.
#[derive(Debug)]
pub struct Statement {
    key: Key,
    origin: Origin,
    /// Text, NUL, parameter types: a Parse body behind the name.
    content: Box<[u8]>,
    /// As it was judged last. User code in it may have changed since.
    judged: ArcSwap<Judged>,
    fingerprint: u32,
}

/// What a statement does, and by which state of the catalogue that was judged.
#[derive(Debug)]
struct Judged {
    effects: Arc<Effects>,
    state: u64,
}

/// Under which settings a statement was parsed. They bear on its meaning: the literal of a point in time is
/// read when it is parsed, a name is looked up in the `search_path`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// `Settings::plan_key` of what was known to be in force.
    pub plan_key: u64,
    /// Not 0 when other settings may have been in force, too: the statement is that client's own, and no other
    /// has this number.
    pub private: u64,
    /// Counts up when the statement of the number before became stale: its result has another shape now, and
    /// who prepared it then must not get the new shape under the old name.
    pub generation: u32,
}

impl Origin {
    /// Under the same settings, whatever the generation.
    pub fn has_settings_of(&self, other: Origin) -> bool {
        self.plan_key == other.plan_key && self.private == other.private
    }
}

/// The same number for the same text, within a process. Values are no part of it: they come with Bind.
pub fn fingerprint_of(content: &[u8]) -> u32 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(content);
    hasher.finish() as u32
}

impl Statement {
    /// [`fingerprint_of`] its content.
    pub fn fingerprint(&self) -> u32 {
        self.fingerprint
    }

    /// The key of a statement parsed there.
    pub fn key_of(content: &[u8], origin: Origin) -> Key {
        let (plan_key, private) = (origin.plan_key.to_be_bytes(), origin.private.to_be_bytes());
        let generation = origin.generation.to_be_bytes();
        let digest = weir_auth::hash::sha256(&[&plan_key, &private, &generation, content]);
        let mut key = [0; 16];
        key.copy_from_slice(digest.split_at(16).0);
        key
    }

    /// A statement parsed there, with what it does by a state of the catalogue (0: by none).
    pub fn new(content: &[u8], origin: Origin, effects: Arc<Effects>, state: u64) -> Arc<Statement> {
        let key = Statement::key_of(content, origin);
        Arc::new(Statement {
            key,
            origin,
            content: content.into(),
            judged: ArcSwap::from_pointee(Judged { effects, state }),
            fingerprint: fingerprint_of(content),
        })
    }

    /// An unnamed statement: it is known by its place, and has no key.
    pub fn unnamed(content: &[u8], effects: Arc<Effects>, state: u64) -> Arc<Statement> {
        let (key, origin, fingerprint) = ([0; 16], Origin::default(), fingerprint_of(content));
        let judged = ArcSwap::from_pointee(Judged { effects, state });
        Arc::new(Statement { key, origin, content: content.into(), judged, fingerprint })
    }

    /// Under which settings it was parsed.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Its key.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Text and types.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// What an execution does, as far as is known now.
    pub fn effects(&self, judge: Judge<'_>) -> Arc<Effects> {
        let judged = self.judged.load();
        let state = judge.state();
        if state == judged.state && state != 0 {
            return Arc::clone(&judged.effects);
        }
        let text = self.content.split(|&byte| byte == 0).next().unwrap_or_default();
        let (effects, _, state) = judge.text(text);
        self.judged.store(Arc::new(Judged { effects: Arc::clone(&effects), state }));
        effects
    }

    /// Its name on servers.
    pub fn server_name(&self) -> [u8; NAME_BYTES] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut name = [0; NAME_BYTES];
        let (prefix, digits) = name.split_at_mut(NAME_PREFIX.len());
        prefix.copy_from_slice(NAME_PREFIX);
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.key) {
            if let [high, low] = pair {
                *high = DIGITS[usize::from(byte >> 4)];
                *low = DIGITS[usize::from(byte & 15)];
            }
        }
        name
    }
}

/// A client's names.
pub type Names = HashMap<Box<[u8]>, Arc<Statement>>;

/// What a client has prepared.
#[derive(Debug, Default)]
pub struct ClientPrepared {
    named: Names,
    /// The unnamed statement, kept because a later batch may bind it: what it is if all that is under way succeeds.
    pub unnamed: Option<Arc<Statement>>,
    /// The same according to the replies that have come.
    pub answered: Option<Arc<Statement>>,
    /// The unnamed statement was too long to keep: it is on the server this client is pinned to.
    pub unnamed_is_raw: bool,
    /// What an Execute of the unnamed portal does.
    pub portal: Option<Arc<Effects>>,
    /// The same for named portals that do something; they end with the transaction.
    portals: Vec<(Box<[u8]>, Arc<Effects>)>,
}

/// Named portals with effects that are remembered; more count as the last one.
const PORTALS: usize = 64;

impl ClientPrepared {
    /// The statement of a name; the unnamed one for "".
    pub fn get(&self, name: &[u8]) -> Option<&Arc<Statement>> {
        if name.is_empty() { self.unnamed.as_ref() } else { self.named.get(name) }
    }

    /// Gives a name to a statement. False when the client has as many as Weir carries.
    pub fn insert(&mut self, name: &[u8], statement: Arc<Statement>) -> bool {
        if self.named.len() >= CLIENT_PREPARED && !self.named.contains_key(name) {
            return false;
        }
        self.named.insert(name.into(), statement);
        true
    }

    /// There is room for another name.
    pub fn has_room(&self) -> bool {
        self.named.len() < CLIENT_PREPARED
    }

    /// Forgets a name.
    pub fn remove(&mut self, name: &[u8]) -> Option<Arc<Statement>> {
        self.named.remove(name)
    }

    /// Forgets a name if it still means this statement.
    pub fn remove_if(&mut self, name: &[u8], statement: &Arc<Statement>) {
        if self.named.get(name).is_some_and(|have| Arc::ptr_eq(have, statement)) {
            self.named.remove(name);
        }
    }

    /// Gives the names back that were taken by [`ClientPrepared::take_names`], unless they are in use again.
    pub fn restore_names(&mut self, names: Names) {
        for (name, statement) in names {
            self.named.entry(name).or_insert(statement);
        }
    }

    /// Forgets all names and hands them out. The unnamed statement has none and stays.
    pub fn take_names(&mut self) -> Names {
        std::mem::take(&mut self.named)
    }

    /// The client's name for the statement of this server name, for error texts.
    pub fn name_of(&self, server_name: &[u8]) -> Option<&[u8]> {
        self.named.iter().find(|(_, s)| s.server_name() == server_name).map(|(name, _)| &**name)
    }

    /// A portal was bound.
    pub fn bind_portal(&mut self, portal: &[u8], effects: Option<Arc<Effects>>) {
        if portal.is_empty() {
            self.portal = effects;
            return;
        }
        self.portals.retain(|(name, _)| **name != *portal);
        if let Some(effects) = effects.filter(|e| !e.is_nothing()) {
            if self.portals.len() >= PORTALS {
                self.portals.pop();
            }
            self.portals.push((portal.into(), effects));
        }
    }

    /// What an Execute of this portal does, if anything.
    pub fn portal_effects(&self, portal: &[u8]) -> Option<Arc<Effects>> {
        if portal.is_empty() {
            return self.portal.clone();
        }
        self.portals.iter().find(|(name, _)| **name == *portal).map(|(_, effects)| Arc::clone(effects))
    }

    /// The transaction has ended, and all portals with it.
    pub fn end_portals(&mut self) {
        self.portal = None;
        self.portals.clear();
    }

    /// Statements prepared under a name.
    pub fn len(&self) -> usize {
        self.named.len()
    }

    /// No name is in use.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }
}

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

#[derive(Debug)]
struct Slot {
    statement: Arc<Statement>,
    state: State,
    /// Number of the Parse that made it, so that a late answer to an older one changes nothing.
    parse: u64,
    /// Used since the hand of the clock last came by.
    used: bool,
    /// The batch that used it last.
    batch: u64,
    /// The server has refused to run it: the shape of its result has changed.
    stale: bool,
}

impl Slot {
    fn is_under_way(&self) -> bool {
        matches!(self.state, State::Sent(_) | State::Added(..))
    }

    fn is_trusted(&self, owner: Owner, batch: u64) -> bool {
        match self.state {
            State::Ready => true,
            State::Sent(by) => by == owner,
            State::Added(by, to) => by == owner && to == batch,
            State::Unsure => false,
        }
    }
}

/// What must be sent before a statement can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// A Parse with this number; `close_first` when the server may have the name already.
    Parse {
        /// To be given to [`ServerPrepared::confirm`] or [`ServerPrepared::fail`].
        number: u64,
        /// Send Close before it.
        close_first: bool,
    },
}

/// What one server has prepared.
#[derive(Debug)]
pub struct ServerPrepared {
    slots: Vec<Slot>,
    index: HashMap<Key, usize, BuildHasherDefault<KeyHasher>>,
    limit: usize,
    hand: usize,
    parses: u64,
    batch: u64,
    /// Evicted statements whose Close is not answered yet, and the batch it stands in: an error there may have skipped
    /// it, and with it what stands behind it in the same batch, but nothing in the next one.
    leaving: Vec<(Key, u64)>,
    /// Names of stand-ins whose Close was skipped: to be closed before anything else.
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
            hand: 0,
            parses: 0,
            batch: 0,
            leaving: Vec::new(),
            leftovers: Vec::new(),
            known: Arc::default(),
        }
    }

    /// Statements may be kept at all.
    pub fn is_enabled(&self) -> bool {
        self.limit > 0
    }

    /// Statements believed to be there.
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

    /// The server says that this statement cannot be used any more as it was prepared.
    pub fn mark_stale(&mut self, key: &Key) {
        if let Some(slot) = self.index.get(key).and_then(|&at| self.slots.get_mut(at)) {
            slot.stale = true;
        }
        self.known.mark_stale(key);
    }

    /// The statement of a text that a client prepares now, and its key: the first generation that is not
    /// stale here.
    pub fn fresh(&self, content: &[u8], mut origin: Origin) -> (Origin, Option<&Arc<Statement>>) {
        loop {
            let key = Statement::key_of(content, origin);
            let slot = self.index.get(&key).and_then(|&at| self.slots.get(at));
            match slot {
                // Every stale generation takes a slot, so this ends.
                Some(slot) if slot.stale => origin.generation += 1,
                _ => return (origin, slot.map(|slot| &slot.statement)),
            }
        }
    }

    /// The statement can be used as it is in a request of this owner.
    pub fn has(&self, statement: &Statement, owner: Owner) -> bool {
        let slot = self.index.get(&statement.key).and_then(|&at| self.slots.get(at));
        slot.is_some_and(|slot| slot.is_trusted(owner, self.batch))
    }

    /// The request being sent uses this statement. `fresh` asks for a Parse in any case.
    pub fn require(&mut self, statement: &Arc<Statement>, owner: Owner, fresh: bool) -> Need {
        self.parses += 1;
        let (number, batch) = (self.parses, self.batch);
        if let Some(slot) = self.index.get(&statement.key).and_then(|&at| self.slots.get_mut(at)) {
            slot.used = true;
            slot.batch = batch;
            if slot.is_trusted(owner, batch) && !fresh {
                return Need::Nothing;
            }
            slot.state = State::Sent(owner);
            slot.parse = number;
            return Need::Parse { number, close_first: true };
        }
        self.index.insert(statement.key, self.slots.len());
        self.slots.push(Slot {
            statement: Arc::clone(statement),
            state: State::Sent(owner),
            parse: number,
            used: true,
            batch,
            stale: false,
        });
        let in_doubt = |&(key, closed_in): &(Key, u64)| key == statement.key && closed_in != batch;
        Need::Parse { number, close_first: self.leaving.iter().any(in_doubt) }
    }

    /// The Parse that was just asked for is Weir's own addition to the request being sent.
    pub fn added(&mut self, key: &Key, owner: Owner) {
        if let Some(slot) = self.index.get(key).and_then(|&at| self.slots.get_mut(at)) {
            slot.state = State::Added(owner, self.batch);
        }
    }

    /// One statement to close because there are too many; call until `None`. Second chance: a clock goes
    /// round and takes the first one not used since it last came by.
    pub fn evict(&mut self) -> Option<Arc<Statement>> {
        if self.slots.len() <= self.limit {
            return None;
        }
        for _ in 0..self.slots.len() * 2 {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            let slot = self.slots.get_mut(self.hand)?;
            let safe = slot.batch == self.batch || slot.is_under_way();
            if !safe && !slot.used {
                let key = slot.statement.key;
                self.leaving.push((key, self.batch));
                return self.take(&key);
            }
            slot.used = false;
            self.hand += 1;
        }
        None
    }

    /// ParseComplete for this Parse.
    pub fn confirm(&mut self, key: &Key, number: u64) {
        if let Some(slot) = self.index.get(key).and_then(|&at| self.slots.get_mut(at))
            && slot.parse == number
            && slot.is_under_way()
        {
            slot.state = State::Ready;
        }
    }

    /// This Parse failed or was skipped: the statement is there or not, the next use closes it first.
    pub fn fail(&mut self, key: &Key, number: u64) {
        if let Some(slot) = self.index.get(key).and_then(|&at| self.slots.get_mut(at))
            && slot.parse == number
        {
            slot.state = State::Unsure;
        }
        self.known.forget(key);
    }

    /// The Close of an evicted statement is answered, or was skipped.
    pub fn is_gone(&mut self, key: &Key) {
        if let Some(at) = self.leaving.iter().position(|(leaving, _)| leaving == key) {
            self.leaving.swap_remove(at);
        }
    }

    /// The Close of an evicted statement was skipped: it may still be there.
    pub fn put_back(&mut self, statement: Arc<Statement>) {
        self.is_gone(&statement.key);
        if !self.index.contains_key(&statement.key) {
            self.index.insert(statement.key, self.slots.len());
            let slot =
                Slot { statement, state: State::Unsure, parse: 0, used: false, batch: 0, stale: false };
            self.slots.push(slot);
        }
    }

    /// The server has refused to use this statement as it is.
    pub fn distrust(&mut self, key: &Key) {
        if let Some(slot) = self.index.get(key).and_then(|&at| self.slots.get_mut(at))
            && slot.state == State::Ready
        {
            slot.state = State::Unsure;
        }
        self.known.forget(key);
    }

    /// What is there now may be dropped by something on its way, or may be stale.
    pub fn distrust_all(&mut self) {
        for slot in &mut self.slots {
            slot.state = State::Unsure;
        }
    }

    /// Nothing is there any more (DISCARD ALL of Weir's own, with nothing behind it).
    pub fn clear(&mut self) {
        self.slots.clear();
        self.index.clear();
        self.hand = 0;
    }

    fn take(&mut self, key: &Key) -> Option<Arc<Statement>> {
        let at = self.index.remove(key)?;
        let slot = self.slots.swap_remove(at);
        if let Some(moved) = self.slots.get(at) {
            self.index.insert(moved.statement.key, at);
        }
        Some(slot.statement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(n: u32) -> Arc<Statement> {
        let content = format!("select {n}\0\0\0").into_bytes();
        Statement::new(&content, Origin::default(), Arc::default(), 0)
    }

    fn number(need: Need) -> u64 {
        match need {
            Need::Parse { number, .. } => number,
            Need::Nothing => panic!("nothing was needed"),
        }
    }

    #[test]
    fn a_name_says_what_a_statement_is() {
        let key = |content: &[u8], plan_key, private| {
            Statement::key_of(content, Origin { plan_key, private, generation: 0 })
        };
        let (text, other_type) = (b"select $1\0\0\x01\0\0\0\x17", b"select $1\0\0\x01\0\0\0\x19");
        assert_eq!(key(text, 0, 0), key(text, 0, 0));
        assert_ne!(key(text, 0, 0), key(other_type, 0, 0));
        assert_ne!(key(text, 0, 0), key(text, 1, 0));
        assert_ne!(key(text, 0, 0), key(text, 0, 1));
        let name = statement(1).server_name();
        assert!(name.starts_with(b"weir_") && name[5..].iter().all(u8::is_ascii_hexdigit));
    }

    #[test]
    fn there_only_after_parse_complete() {
        let mut server = ServerPrepared::new(10);
        let s = statement(1);
        let first = number(server.require(&s, 1, false));
        assert_eq!(server.require(&s, 1, false), Need::Nothing, "behind its own Parse");
        let second = server.require(&s, 2, false);
        assert!(matches!(second, Need::Parse { close_first: true, .. }), "another's Parse may fail");
        server.confirm(&s.key(), first);
        assert_ne!(server.require(&s, 1, false), Need::Nothing, "the older answer changes nothing");
        let third = server.parses;
        server.confirm(&s.key(), third);
        assert_eq!(server.require(&s, 3, false), Need::Nothing);
        server.distrust_all();
        assert!(matches!(server.require(&s, 3, false), Need::Parse { close_first: true, .. }));
        server.fail(&s.key(), server.parses);
        assert!(matches!(server.require(&s, 3, false), Need::Parse { close_first: true, .. }));
    }

    #[test]
    fn eviction_spares_the_batch_and_the_used() {
        let mut server = ServerPrepared::new(2);
        let all: Vec<_> = (0..6).map(statement).collect();
        for s in &all[..2] {
            server.begin_batch();
            let n = number(server.require(s, 1, false));
            server.confirm(&s.key(), n);
        }
        server.begin_batch();
        for s in &all[2..4] {
            let n = number(server.require(s, 1, false));
            server.confirm(&s.key(), n);
        }
        let mut gone: Vec<_> = std::iter::from_fn(|| server.evict()).map(|s| s.key()).collect();
        gone.sort_unstable();
        let mut expected = vec![all[0].key(), all[1].key()];
        expected.sort_unstable();
        assert_eq!(gone, expected);
        // All four of one batch stay, although they are over the limit.
        server.begin_batch();
        for s in &all[2..6] {
            server.require(s, 1, false);
        }
        assert!(server.evict().is_none());
        assert_eq!(server.len(), 4);
    }

    #[test]
    fn recently_used_stays() {
        let mut server = ServerPrepared::new(3);
        let all: Vec<_> = (0..40).map(statement).collect();
        let hot = statement(1000);
        for s in &all {
            server.begin_batch();
            for s in [&hot, s] {
                if let Need::Parse { number, .. } = server.require(s, 1, false) {
                    server.confirm(&s.key(), number);
                }
            }
            while let Some(gone) = server.evict() {
                assert_ne!(gone.key(), hot.key());
            }
            assert!(server.len() <= 3);
        }
    }

    #[test]
    fn a_client_holds_a_bounded_number() {
        let mut client = ClientPrepared::default();
        let s = statement(1);
        for n in 0..CLIENT_PREPARED {
            assert!(client.insert(format!("s{n}").as_bytes(), s.clone()));
        }
        assert!(!client.has_room());
        assert!(!client.insert(b"one more", s.clone()));
        assert!(client.insert(b"s1", s.clone()));
        assert_eq!(client.len(), CLIENT_PREPARED);
    }

    #[test]
    fn names_come_back_unless_in_use_again() {
        let mut client = ClientPrepared::default();
        client.insert(b"a", statement(1));
        client.insert(b"b", statement(2));
        let names = client.take_names();
        assert!(client.is_empty());
        client.insert(b"a", statement(3));
        client.restore_names(names);
        assert_eq!(client.get(b"a").unwrap().content(), b"select 3\0\0\0");
        assert_eq!(client.get(b"b").unwrap().content(), b"select 2\0\0\0");
        assert_eq!(client.name_of(&statement(2).server_name()), Some(&b"b"[..]));
    }
}
