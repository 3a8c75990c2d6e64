//! Prepared statements that outlive their server: what a client has prepared, what a server has, and the
//! names in between.
//!
//! PostgreSQL reads a text when it is prepared: names are looked up, types of parameters found, literals of
//! points in time made values. So every Parse of a client reaches a server, and a statement that is there
//! already serves another client only if it was prepared after that client's own Parse was answered: it
//! cannot be older than what that client was told. What a client was told of parameters and columns is its
//! statement's *shape*; elsewhere it is prepared with these very types, and one whose columns differ is
//! refused as PostgreSQL refuses it.
//!
//! Owns: [`Statement`], [`ClientPrepared`], [`ServerPrepared`]. Must not know: messages, queues.
//!
//! Invariants: a server's statement counts as there only after ParseComplete; one that the batch being sent
//! uses is never evicted; a name on a server is never used twice; both maps are bounded.

pub mod known;

use crate::effects::{Effects, Judge};
use crate::session_state::Settings;
use arc_swap::ArcSwap;
use known::KnownStatements;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use weir_wire::limits::{
    CLIENT_PREPARED, CLIENT_PREPARED_BYTES, KEPT_REFUSAL_BYTES, PORTALS, SERVER_PREPARED_BYTES,
    STATEMENT_VERSIONS,
};
use weir_wire::{Owner, Reader};

/// What a text is known by, wherever it is prepared: 128 bits of SHA-256 of the text, its types and settings.
pub type Key = [u8; 16];

/// All names Weir gives to servers' statements begin so.
pub const NAME_PREFIX: &[u8] = b"weir_";

/// Bytes of such a name: the prefix and 32 hexadecimal digits. PostgreSQL keeps 63.
pub const NAME_BYTES: usize = NAME_PREFIX.len() + 32;

/// A statement's name on a server.
pub type Name = [u8; NAME_BYTES];

/// The order in which things happened to statements, over all servers of the process: a statement prepared at
/// a later number is not older.
fn now() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// What a server said of a statement that it had read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The types of its parameters, as Parse takes them.
    types: Box<[u8]>,
    /// Names and types of its columns, hashed; `None` when it has none.
    columns: Option<u64>,
}

impl Shape {
    /// Of the bodies of ParameterDescription and RowDescription (`None` for NoData). The numbers of tables
    /// and columns are no part of it, as they are none for PostgreSQL (`equalTupleDescs`).
    pub fn of(types: &[u8], columns: Option<&[u8]>) -> Shape {
        Shape { types: types.into(), columns: columns.map(|body| columns_of(body).unwrap_or(u64::MAX)) }
    }
}

impl Shape {
    /// The body of its ParameterDescription.
    pub fn types(&self) -> &[u8] {
        &self.types
    }

    /// How many parameters it has.
    pub fn parameters(&self) -> Option<u16> {
        self.types.first_chunk::<2>().map(|count| u16::from_be_bytes(*count))
    }

    /// It gives rows.
    pub fn has_columns(&self) -> bool {
        self.columns.is_some()
    }
}

fn columns_of(body: &[u8]) -> Result<u64, weir_wire::Short> {
    let mut reader = Reader::new(body);
    let mut hasher = std::hash::DefaultHasher::new();
    let count = reader.u16_be()?;
    hasher.write_u16(count);
    for _ in 0..count {
        hasher.write(reader.cstr()?);
        reader.take(4 + 2)?; // of which table, and which column
        hasher.write(reader.take(4 + 2 + 4)?); // type, length, modifier
        reader.take(2)?;
    }
    Ok(hasher.finish())
}

/// One statement of one client.
#[derive(Debug)]
pub struct Statement {
    key: Key,
    origin: Origin,
    /// What was in force when it was parsed, as far as known. Not there before a server has said it, where
    /// the statement was sent behind what its own transaction had set.
    settings: OnceLock<Arc<Settings>>,
    /// No other has this number.
    id: u64,
    /// When its Parse was answered; 0 before that.
    since: AtomicU64,
    /// Text, NUL, parameter types: a Parse body behind the name.
    content: Arc<[u8]>,
    /// As it was judged last. User code in it may have changed since.
    judged: ArcSwap<Judged>,
    fingerprint: u32,
    /// Not there before a server has said it.
    shape: OnceLock<Shape>,
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
    /// Not 0 when other settings may have been in force, too: the statement is that client's own, and no
    /// other has this number.
    pub private: u64,
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
        let digest = weir_auth::hash::sha256(&[&plan_key, &private, content]);
        let mut key = [0; 16];
        key.copy_from_slice(digest.split_at(16).0);
        key
    }

    /// A statement that a client prepares there, with what it does by a state of the catalogue (0: by none).
    pub fn new(
        content: Arc<[u8]>,
        key: Key,
        origin: Origin,
        effects: Arc<Effects>,
        state: u64,
    ) -> Arc<Statement> {
        let fingerprint = fingerprint_of(&content);
        let (id, since, shape) = (now(), AtomicU64::new(0), OnceLock::new());
        let judged = ArcSwap::from_pointee(Judged { effects, state });
        let settings = OnceLock::new();
        Arc::new(Statement { key, origin, settings, id, since, content, judged, fingerprint, shape })
    }

    /// One whose Parse is answered, although no server has read it yet: the first that runs it must.
    pub fn by_heart(content: &[u8], origin: Origin, effects: Arc<Effects>, state: u64) -> Arc<Statement> {
        let key = Statement::key_of(content, origin);
        let statement = Statement::new(content.into(), key, origin, effects, state);
        statement.answered();
        statement
    }

    /// It was parsed under these settings. What is known already stays.
    pub fn under(self: Arc<Self>, settings: &Arc<Settings>) -> Arc<Statement> {
        self.was_read_under(settings);
        self
    }

    /// The same, said by a server.
    pub fn was_read_under(&self, settings: &Arc<Settings>) {
        let _ = self.settings.set(Arc::clone(settings));
    }

    /// It may have literals, which are read when it is parsed: not if all that it is given comes as
    /// parameters.
    pub fn has_literals(&self) -> bool {
        has_literals(&self.content)
    }

    /// What it was parsed under; `None` as long as the server has not said it.
    pub fn settings(&self) -> Option<&Arc<Settings>> {
        self.settings.get()
    }

    /// The same statement of the same client, to be prepared again under other settings.
    pub fn moved_to(&self, origin: Origin) -> Arc<Statement> {
        Arc::new(Statement {
            key: Statement::key_of(&self.content, origin),
            origin,
            settings: self.settings.clone(),
            id: now(),
            since: AtomicU64::new(self.since.load(Ordering::Relaxed)),
            content: Arc::clone(&self.content),
            judged: ArcSwap::new(self.judged.load_full()),
            fingerprint: self.fingerprint,
            shape: self.shape.clone(),
        })
    }

    /// An unnamed statement: it is known by its place, and has no key.
    pub fn unnamed(content: &[u8], effects: Arc<Effects>, state: u64) -> Arc<Statement> {
        Statement::new(content.into(), [0; 16], Origin::default(), effects, state)
    }

    /// The client has been told that it is prepared: what servers had prepared before is too old for it.
    pub fn answered(&self) {
        self.since.store(now(), Ordering::Relaxed);
    }

    /// It is prepared, and it is not known how it was read.
    pub fn is_of_unknown_reading(&self) -> bool {
        self.since.load(Ordering::Relaxed) != 0 && self.settings.get().is_none()
    }

    /// What its client was told of it, as far as a server has said it.
    pub fn shape(&self) -> Option<&Shape> {
        self.shape.get()
    }

    /// PostgreSQL would refuse it if its columns had changed.
    pub fn keeps_columns(&self) -> bool {
        self.judged.load().effects.is_planned && self.shape().is_some_and(|shape| shape.columns.is_some())
    }

    /// What another server must be asked so that it is the same there: its text with the types that were
    /// found.
    pub fn resolved_content(&self) -> std::borrow::Cow<'_, [u8]> {
        let text = self.content.iter().position(|&b| b == 0).and_then(|nul| self.content.get(..=nul));
        match (self.shape(), text) {
            (Some(shape), Some(text)) => [text, &shape.types].concat().into(),
            _ => (&*self.content).into(),
        }
    }

    /// Under which settings it was parsed.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
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
}

/// A name on a server: the key says what it is, the number which one of it.
fn name_for(key: &Key, number: u64) -> Name {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut name = [0; NAME_BYTES];
    let (prefix, digits) = name.split_at_mut(NAME_PREFIX.len());
    prefix.copy_from_slice(NAME_PREFIX);
    let bytes = key.iter().take(8).copied().chain(number.to_be_bytes());
    for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        if let [high, low] = pair {
            *high = DIGITS[usize::from(byte >> 4)];
            *low = DIGITS[usize::from(byte & 15)];
        }
    }
    name
}

/// A client's names.
pub type Names = HashMap<Box<[u8]>, Arc<Statement>>;

/// What a client has prepared.
#[derive(Debug, Default)]
pub struct ClientPrepared {
    named: Names,
    /// Of the texts of all of them, as if each were this client's alone.
    bytes: usize,
    /// The unnamed statement, kept because a later batch may bind it: what it is if all that is under way
    /// succeeds.
    pub unnamed: Option<Arc<Statement>>,
    /// The same according to the replies that have come.
    pub answered: Option<Arc<Statement>>,
    /// The unnamed statement was too long to keep: it is on the server this client is pinned to.
    pub unnamed_is_raw: bool,
    /// What an Execute of the unnamed portal does.
    pub portal: Option<Arc<Effects>>,
    /// The same for named portals that do something; they end with the transaction.
    portals: Vec<(Box<[u8]>, Arc<Effects>)>,
    /// What those do for which there was no place: any portal of another name may be one of them.
    other_portals: Option<Arc<Effects>>,
}

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
        self.bytes += statement.content.len();
        let before = self.named.insert(name.into(), statement);
        self.bytes -= before.map_or(0, |before| before.content.len());
        true
    }

    /// There is room for another name.
    pub fn has_room(&self) -> bool {
        self.named.len() < CLIENT_PREPARED && self.bytes < CLIENT_PREPARED_BYTES
    }

    /// Forgets a name.
    pub fn remove(&mut self, name: &[u8]) -> Option<Arc<Statement>> {
        let statement = self.named.remove(name)?;
        self.bytes -= statement.content.len();
        Some(statement)
    }

    /// Forgets a name if it still means this statement.
    pub fn remove_if(&mut self, name: &[u8], statement: &Arc<Statement>) {
        if self.named.get(name).is_some_and(|have| Arc::ptr_eq(have, statement)) {
            self.remove(name);
        }
    }

    /// Forgets the name of this statement.
    pub fn remove_statement(&mut self, statement: &Arc<Statement>) {
        let bytes = &mut self.bytes;
        self.named.retain(|_, have| {
            let stays = !Arc::ptr_eq(have, statement);
            *bytes -= if stays { 0 } else { have.content.len() };
            stays
        });
    }

    /// All names and what they stand for, in the order in which they were prepared.
    pub fn in_order(&self) -> Vec<(Box<[u8]>, Arc<Statement>)> {
        let mut all: Vec<_> = self.named.iter().map(|(name, s)| (name.clone(), Arc::clone(s))).collect();
        all.sort_unstable_by_key(|(_, statement)| statement.since.load(Ordering::Relaxed));
        all
    }

    /// Gives the names back that were taken by [`ClientPrepared::take_names`], unless they are in use again.
    pub fn restore_names(&mut self, names: Names) {
        for (name, statement) in names {
            if !self.named.contains_key(&name) {
                self.bytes += statement.content.len();
                self.named.insert(name, statement);
            }
        }
    }

    /// Forgets all names and hands them out. The unnamed statement has none and stays.
    pub fn take_names(&mut self) -> Names {
        self.bytes = 0;
        std::mem::take(&mut self.named)
    }

    /// The client's name for a statement of this key, for error texts.
    pub fn name_of(&self, key: &Key) -> Option<&[u8]> {
        self.named.iter().find(|(_, s)| s.key == *key).map(|(name, _)| &**name)
    }

    /// A portal was bound.
    pub fn bind_portal(&mut self, portal: &[u8], effects: Option<Arc<Effects>>) {
        if portal.is_empty() {
            self.portal = effects;
            return;
        }
        self.portals.retain(|(name, _)| **name != *portal);
        if let Some(effects) = effects.filter(|e| !e.is_nothing() || e.controls || e.draws) {
            if self.portals.len() < PORTALS {
                self.portals.push((portal.into(), effects));
                return;
            }
            // Which of them runs is not known: nothing that one of them clears is believed.
            let mut other = match &self.other_portals {
                Some(other) => other.and(&effects),
                None => Effects::clone(&effects),
            };
            (other.releases, other.clears, other.frees) = Default::default();
            (other.names, other.deallocates, other.executes) = (None, None, None);
            self.other_portals = Some(Arc::new(other));
        }
    }

    /// What an Execute of this portal does, if anything.
    pub fn portal_effects(&self, portal: &[u8]) -> Option<Arc<Effects>> {
        if portal.is_empty() {
            return self.portal.clone();
        }
        let known = self.portals.iter().find(|(name, _)| **name == *portal);
        known.map(|(_, effects)| effects).or(self.other_portals.as_ref()).cloned()
    }

    /// The transaction has ended, and all portals with it.
    pub fn end_portals(&mut self) {
        self.portal = None;
        self.portals.clear();
        self.other_portals = None;
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

/// A server on which one client's statements have that client's names.
#[derive(Debug, Default)]
pub struct OwnNames {
    /// Statements that were prepared elsewhere before, by their numbers, of which the server has not said yet
    /// that they are what their client was told.
    unproven: Vec<u64>,
    /// Those that could not be prepared under the settings of that moment, and why not, where that says more
    /// than that they are not there.
    lost: Vec<(u64, Option<Box<[u8]>>)>,
    /// Some were to be prepared behind an error that nobody knew of yet: the server has skipped them.
    pub(crate) missed: bool,
}

impl OwnNames {
    /// It was prepared here anew.
    pub fn brought(&mut self, statement: &Statement) {
        self.unproven.push(statement.id);
    }

    /// The server must say of what columns it is before it is used.
    pub fn must_ask(&self, statement: &Statement) -> bool {
        statement.keeps_columns() && self.unproven.contains(&statement.id)
    }

    /// The statement of this number could not be prepared, by this error.
    pub fn lost(&mut self, id: u64, error: Option<&[u8]>) {
        let error = error.filter(|error| error.len() <= KEPT_REFUSAL_BYTES);
        self.lost.push((id, error.map(Into::into)));
    }

    /// Why it is not there.
    pub fn why_lost(&self, statement: &Statement) -> Option<&[u8]> {
        self.lost.iter().find(|(id, _)| *id == statement.id)?.1.as_deref()
    }

    /// It could not be prepared; that is to be tried again.
    pub fn take_lost(&mut self, statement: &Statement) -> bool {
        let before = self.lost.len();
        self.lost.retain(|(id, _)| *id != statement.id);
        self.lost.len() < before
    }

    /// It is what its client was told.
    pub fn proven(&mut self, statement: &Statement) {
        self.unproven.retain(|&id| id != statement.id);
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

/// A text has literals whose value depends on how they are read.
pub(crate) fn has_literals(content: &[u8]) -> bool {
    let text = content.split(|&b| b == 0).next().unwrap_or_default();
    let has = |word: &[u8]| text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    let quoted_by_dollars = |pair: &[u8]| matches!(pair, [b'$', next] if !next.is_ascii_digit());
    text.contains(&b'\'') || text.windows(2).any(quoted_by_dollars) || has(b"null") || has(b"xml")
}

/// A text as it was read at one time. Another reading of it may have found other types.
#[derive(Debug)]
struct Version {
    /// When its Parse was sent.
    number: u64,
    /// The last part of its name: how many were prepared here before.
    name: u64,
    /// The statement it was sent for.
    id: u64,
    state: State,
    /// `None` as long as the server has not said it.
    shape: Option<Shape>,
}

impl Version {
    fn serves(&self, statement: &Statement, owner: Owner, batch: u64) -> bool {
        let own = self.id == statement.id;
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
struct Slot {
    key: Key,
    /// Shared with all statements of this text that come here.
    content: Arc<[u8]>,
    versions: Vec<Version>,
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
    slots: Vec<Slot>,
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
    pub fn find(&mut self, statement: &Statement, owner: Owner) -> Option<Name> {
        let batch = self.batch;
        let slot = self.slot(&statement.key)?;
        let name = slot.versions.iter().rev().find(|v| v.serves(statement, owner, batch))?.name;
        slot.used = true;
        slot.batch = batch;
        Some(name_for(&statement.key, name))
    }

    /// The request being sent prepares a statement: under which name, and its number for
    /// [`ServerPrepared::confirm`] and the like. `added`: Weir adds the Parse.
    pub fn prepare(&mut self, statement: &Statement, owner: Owner, added: bool) -> (Name, u64) {
        let (number, batch) = (now(), self.batch);
        let state = if added { State::Added(owner, batch) } else { State::Sent(owner) };
        self.names += 1;
        let name = self.names;
        let version = Version { number, name, id: statement.id, state, shape: None };
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
            // An older reading that came to the same is needed by nobody; of others, the last ones are kept.
            let mut newer = slot.versions.iter().filter(|version| version.number > number).count();
            let mut at = slot.versions.len();
            while let Some(before) = at.checked_sub(1) {
                at = before;
                let Some(version) = slot.versions.get(at) else { break };
                if version.number < number && !version.is_under_way() {
                    let same = version.shape.as_ref() == Some(&shape) || version.state == State::Unsure;
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
    pub fn fail(&mut self, key: &Key, number: u64) {
        if let Some(slot) = self.slot(key) {
            slot.versions.retain(|version| version.number != number);
            if slot.versions.is_empty() {
                self.take(key);
            }
        }
        self.known.forget(key);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(n: u32) -> Vec<u8> {
        format!("select {n}\0\0\0").into_bytes()
    }

    fn statement(n: u32) -> Arc<Statement> {
        let key = Statement::key_of(&text(n), Origin::default());
        let planned = Arc::new(Effects { is_planned: true, ..Effects::default() });
        Statement::new(text(n).into(), key, Origin::default(), planned, 0)
    }

    fn shape(of: u8) -> Shape {
        Shape::of(&[0, 0], Some(&[b"\0\x01x\0\0\0\0\0\0\0\0\0\0", &[of][..], &[0; 8][..]].concat()))
    }

    /// A client's own Parse, answered.
    fn prepared(server: &mut ServerPrepared, statement: &Statement, of: u8) -> Name {
        server.begin_batch();
        let (name, number) = server.prepare(statement, 1, false);
        server.confirm(&statement.key(), number);
        statement.answered();
        server.described(statement, number, shape(of));
        name
    }

    #[test]
    fn a_key_says_what_a_text_is_and_under_which_settings() {
        let key =
            |content: &[u8], plan_key, private| Statement::key_of(content, Origin { plan_key, private });
        let (text, other_type) = (b"select $1\0\0\x01\0\0\0\x17", b"select $1\0\0\x01\0\0\0\x19");
        assert_eq!(key(text, 0, 0), key(text, 0, 0));
        assert_ne!(key(text, 0, 0), key(other_type, 0, 0));
        assert_ne!(key(text, 0, 0), key(text, 1, 0));
        assert_ne!(key(text, 0, 0), key(text, 0, 1));
        let name = name_for(&key(text, 0, 0), 1);
        assert!(name.starts_with(b"weir_") && name[5..].iter().all(u8::is_ascii_hexdigit));
        assert_ne!(name, name_for(&key(text, 0, 0), 2));
    }

    #[test]
    fn a_shape_is_names_and_types_and_not_tables() {
        let column =
            |table: u8, of: u8| [b"\0\x01x\0\0\0\0", &[table, 0, 1, 0, 0, 0, of][..], &[0; 8]].concat();
        let of = |body: Vec<u8>| Shape::of(&[0, 0], Some(&body));
        assert_eq!(of(column(1, 23)), of(column(2, 23)));
        assert_ne!(of(column(1, 23)), of(column(1, 25)));
        assert_ne!(of(column(1, 23)), Shape::of(&[0, 0], None));
        assert_ne!(Shape::of(&[0, 1, 0, 0, 0, 23], None), Shape::of(&[0, 0], None));
        // What is no description is equal to itself at least.
        assert_eq!(of(vec![9]), of(vec![9]));
    }

    #[test]
    fn there_only_after_parse_complete() {
        let mut server = ServerPrepared::new(10);
        let (s, other) = (statement(1), statement(1));
        let (name, number) = server.prepare(&s, 1, false);
        assert_eq!(server.find(&s, 1), Some(name), "behind its own Parse");
        assert_eq!(server.find(&s, 2), None, "another's Parse may fail");
        server.confirm(&s.key(), number);
        assert_eq!(server.find(&s, 1), Some(name));
        assert_eq!(server.find(&other, 1), None);
        server.distrust_all();
        assert_eq!(server.find(&s, 1), None);
        let (again, number) = server.prepare(&s, 1, true);
        assert_ne!(again, name, "a name is never used twice");
        assert_eq!(server.find(&s, 1), Some(again));
        server.begin_batch();
        assert_eq!(server.find(&s, 1), None, "an error may skip what Weir added");
        server.fail(&s.key(), number);
        assert_eq!(server.find(&s, 1), None);
    }

    #[test]
    fn what_was_prepared_before_a_clients_own_parse_does_not_serve_it() {
        let (mut one, mut two) = (ServerPrepared::new(10), ServerPrepared::new(10));
        let (old, new) = (statement(1), statement(1));
        let old_there = prepared(&mut two, &old, 23);
        prepared(&mut one, &new, 23);
        assert_eq!(two.find(&old, 1), Some(old_there));
        assert_eq!(two.find(&new, 1), None);
        // What is prepared for it serves the other, too, and the older one goes.
        let (name, number) = two.prepare(&new, 1, true);
        two.confirm(&new.key(), number);
        assert!(two.described(&new, number, shape(23)));
        assert_eq!((two.find(&new, 1), two.find(&old, 1)), (Some(name), Some(name)));
        assert_eq!(two.leftovers, [Box::from(old_there)]);
    }

    #[test]
    fn another_shape_is_another_statement() {
        let mut server = ServerPrepared::new(10);
        let (old, new) = (statement(1), statement(1));
        let first = prepared(&mut server, &old, 23);
        let second = prepared(&mut server, &new, 25);
        assert_eq!((server.find(&old, 1), server.find(&new, 1)), (Some(first), Some(second)));
        assert!(server.leftovers.is_empty());
        // Elsewhere only the new one is to be had.
        let mut elsewhere = ServerPrepared::new(10);
        let (_, number) = elsewhere.prepare(&old, 1, true);
        elsewhere.confirm(&old.key(), number);
        assert!(!elsewhere.described(&old, number, shape(25)));
        elsewhere.begin_batch();
        // Versions are bounded.
        for of in 0..20 {
            prepared(&mut server, &statement(1), of);
        }
        assert!(server.slots[0].versions.len() <= STATEMENT_VERSIONS);
    }

    #[test]
    fn elsewhere_it_is_prepared_with_the_types_that_were_found() {
        let s = statement(1);
        assert_eq!(&*s.resolved_content(), b"select 1\0\0\0");
        let mut server = ServerPrepared::new(10);
        let (_, number) = server.prepare(&s, 1, false);
        server.described(&s, number, Shape::of(&[0, 1, 0, 0, 0, 23], None));
        assert_eq!(&*s.resolved_content(), b"select 1\0\0\x01\0\0\0\x17");
        assert!(!s.keeps_columns(), "it has none");
    }

    #[test]
    fn eviction_spares_the_batch_and_the_used() {
        let mut server = ServerPrepared::new(2);
        let all: Vec<_> = (0..6).map(statement).collect();
        let mut expected: Vec<_> = all[..2].iter().map(|s| Box::from(prepared(&mut server, s, 1))).collect();
        server.begin_batch();
        for s in &all[2..4] {
            let (_, number) = server.prepare(s, 1, false);
            server.confirm(&s.key(), number);
        }
        let mut gone: Vec<Box<[u8]>> = std::iter::from_fn(|| server.evict()).collect();
        gone.sort_unstable();
        expected.sort_unstable();
        assert_eq!(gone, expected);
        // All four of one batch stay, although they are over the limit.
        server.begin_batch();
        for s in &all[2..6] {
            if server.find(s, 1).is_none() {
                server.prepare(s, 1, false);
            }
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
                if server.find(s, 1).is_none() {
                    let (_, number) = server.prepare(s, 1, false);
                    server.confirm(&s.key(), number);
                }
            }
            while server.evict().is_some() {}
            assert!(server.find(&hot, 1).is_some());
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
    fn a_client_holds_a_bounded_number_of_bytes() {
        let mut client = ClientPrepared::default();
        let content: Arc<[u8]> = vec![b'x'; 60_000].into();
        let mut n = 0;
        while client.has_room() {
            let s = Statement::new(Arc::clone(&content), [0; 16], Origin::default(), Arc::default(), 0);
            assert!(client.insert(format!("s{n}").as_bytes(), s));
            n += 1;
        }
        assert!(n < CLIENT_PREPARED && n * content.len() < CLIENT_PREPARED_BYTES + content.len());
        client.remove(b"s1");
        assert!(client.has_room());
        let names = client.take_names();
        assert_eq!(client.bytes, 0);
        client.restore_names(names);
        assert_eq!(client.bytes, (n - 1) * content.len());
    }

    #[test]
    fn a_portal_too_many_is_any_of_them() {
        let mut client = ClientPrepared::default();
        let locks = Arc::new(Effects { pins: weir_wire::Pin::SessionLock.into(), ..Effects::default() });
        let listens = Arc::new(Effects { pins: weir_wire::Pin::Listen.into(), ..Effects::default() });
        for n in 0..PORTALS {
            client.bind_portal(format!("p{n}").as_bytes(), Some(Arc::clone(&locks)));
        }
        client.bind_portal(b"one", Some(Arc::clone(&listens)));
        client.bind_portal(b"two", Some(Arc::clone(&locks)));
        assert_eq!(client.portal_effects(b"p63").unwrap().pins, locks.pins);
        let mut both = locks.pins;
        both.union(listens.pins);
        assert_eq!(client.portal_effects(b"one").unwrap().pins, both);
        client.end_portals();
        assert!(client.portal_effects(b"one").is_none());
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
        assert_eq!(client.name_of(&statement(2).key()), Some(&b"b"[..]));
    }
}
