//! Prepared statements that outlive their server: what a client has prepared, what a server has, and the
//! names in between.
//!
//! PostgreSQL interprets a text when it is prepared: it looks up names, resolves the types of parameters, and
//! turns literals of points in time into values. Every Parse of a client therefore reaches a server, and a
//! statement that exists there serves another client only if it was prepared after that client's own Parse
//! was answered: it cannot be older than what that client was told. The parameters and columns that a client
//! was told are its statement's *shape*; on another server the statement is prepared with exactly these
//! types, and refused as PostgreSQL refuses it if its columns differ.
//!
//! Owns: [`Statement`], [`ClientPrepared`], [`ServerPrepared`]. Must not know: messages, queues.
//!
//! Invariants: a server's statement exists only after ParseComplete; one that the batch being sent uses is
//! never evicted; a name on a server is never reused; both maps are bounded.

mod client;
pub mod known;
mod server;
#[cfg(test)]
mod tests;

use crate::effects::{Effects, Judge};
use crate::session_state::Settings;
use arc_swap::{ArcSwap, Guard};
pub use client::{ClientPrepared, Names, OwnNames};
pub use server::{Runner, ServerPrepared};
use std::hash::Hasher as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use weir_wire::Reader;

/// What a text is known by, wherever it is prepared: 128 bits of SHA-256 of the text, its types and settings.
pub type Key = [u8; 16];

/// All names Weir gives to servers' statements begin so.
pub const NAME_PREFIX: &[u8] = b"weir_";

/// Bytes of such a name: the prefix and 32 hexadecimal digits. PostgreSQL keeps 63.
pub const NAME_BYTES: usize = NAME_PREFIX.len() + 32;

/// A statement's name on a server.
pub type Name = [u8; NAME_BYTES];

/// It could be one of Weir's own.
pub fn is_server_name(name: &[u8]) -> bool {
    let digits = name.strip_prefix(NAME_PREFIX).filter(|_| name.len() == NAME_BYTES);
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

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
    pub private: u128,
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
        has_literals(&self.content) && !self.judged.load().effects.is_read_late
    }

    /// What it comes to in a plan depends on who has it planned.
    pub fn is_personal(&self) -> bool {
        self.judged.load().effects.is_personal
    }

    /// What it was parsed under; `None` as long as the server has not said it.
    pub fn settings(&self) -> Option<&Arc<Settings>> {
        self.settings.get()
    }

    /// The same statement of the same client, to be prepared again under other settings; `read`: and to be
    /// read under these.
    pub fn moved_to(&self, origin: Origin, read: Option<&Arc<Settings>>) -> Arc<Statement> {
        Arc::new(Statement {
            key: Statement::key_of(&self.content, origin),
            origin,
            settings: read.map_or_else(|| self.settings.clone(), |settings| Arc::clone(settings).into()),
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

    /// The state of the catalogue by which it was judged last; 0: none.
    pub fn state(&self) -> u64 {
        self.judged.load().state
    }

    /// It can be prepared for its client elsewhere: not one of which only its own server has a copy.
    pub fn is_anybodys(&self) -> bool {
        self.key != [0; 16]
    }

    /// Text and types.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// What an execution does, as far as is known now.
    pub fn effects(&self, judge: Judge<'_>) -> Arc<Effects> {
        Arc::clone(&self.judged_by(judge).0.effects)
    }

    /// The same for a look at it: workers that share the statement do not meet in a count of references.
    pub fn judged_by(&self, judge: Judge<'_>) -> JudgedNow {
        let judged = self.judged.load();
        let state = judge.state();
        if state == judged.state && state != 0 {
            return JudgedNow(judged);
        }
        let text = self.content.split(|&byte| byte == 0).next().unwrap_or_default();
        let (effects, _, state) = judge.text(text);
        let judged = Arc::new(Judged { effects, state });
        self.judged.store(Arc::clone(&judged));
        JudgedNow(Guard::from_inner(judged))
    }
}

/// What an execution does, for as long as one looks at it.
pub struct JudgedNow(Guard<Arc<Judged>>);

impl std::ops::Deref for JudgedNow {
    type Target = Effects;

    fn deref(&self) -> &Effects {
        &self.0.effects
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

/// A text has literals whose value depends on how they are read.
pub(crate) fn has_literals(content: &[u8]) -> bool {
    let text = content.split(|&b| b == 0).next().unwrap_or_default();
    let has = |word: &[u8]| text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    let quoted_by_dollars = |pair: &[u8]| matches!(pair, [b'$', next] if !next.is_ascii_digit());
    text.contains(&b'\'') || text.windows(2).any(quoted_by_dollars) || has(b"null") || has(b"xml")
}
