//! The meaning of names in a database: which user code may run when a text mentions them, and what that code
//! may do to its session and to the data.
//!
//! A text does not show which function, view, operator or trigger runs; the database's catalogue does. Weir
//! reads it ([`Builder`] takes it row by row) and keeps, per name, the union of what everything of that name
//! may do, in any schema and with any arguments ([`Catalogue`]). A text is then judged by all the words in it
//! (`recognise/names.rs`). [`Knowledge`] is one pool's view of it, and whether it is still valid.
//!
//! Owns: names, what they may do, how long that is known. Must not know: sockets, clocks, protocols, how the
//! catalogue is queried.
//!
//! Invariants: doubt is never resolved in favour of sharing: a name that cannot be read, a body in a language
//! that is not understood, and an incomplete catalogue count as code that may do anything.

mod block;
mod build;
mod code;
mod dynamic;
mod handled;
mod knowledge;
mod made;
mod strings;

pub(crate) use block::Block;
pub use build::{Builder, Function, Language, On, Volatility};
pub(crate) use code::reads_only;
pub use knowledge::{Group, Knowledge, Proof, Reading, UnknownCode, Unsettled};

use crate::class::{Locks, SettingNames, Touched, Uses};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use weir_wire::{Pin, Pins};

/// What running something may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Doings {
    /// Running it a second time, or for nobody, may be noticed: it writes, locks, sleeps, or nobody knows.
    pub impure: bool,
    /// Two who run it at the same moment may get different values ([`Class::varies`](crate::Class::varies)).
    pub varies: bool,
    /// What it may leave in its session.
    pub pins: Pins,
    /// Of these only what the pins do not say: [`Uses::ROLE`], [`Uses::NEXTVAL`], [`Uses::SETVAL`],
    /// [`Uses::SEED`], [`Uses::TEMPORARY_PATH`] and those of code, and of MySQL what is asked of the session.
    pub uses: Uses,
    /// Session locks it may take.
    pub takes: Locks,
    /// It may change the catalogue itself.
    pub ddl: bool,
    /// What it may do with settings of PostgreSQL beyond setting them.
    pub settings: SettingBits,
    /// It may ask for prepared statements of its session, give them names or take them away (PostgreSQL).
    pub statement_names: bool,
}

/// [`Touched`] of code: each bit stands for a name of [`Catalogue`]'s table, the highest for any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SettingBits {
    pub(crate) resets: u32,
    pub(crate) tells: u32,
    pub(crate) reads: u32,
    pub(crate) sets: u32,
    pub(crate) variables: u32,
}

impl SettingBits {
    /// Names that have a bit of their own.
    pub(crate) const NAMED: usize = 31;
    pub(crate) const OTHER: u32 = 1 << Self::NAMED;
    pub(crate) const ANY: SettingBits = SettingBits {
        resets: Self::OTHER,
        tells: Self::OTHER,
        reads: Self::OTHER,
        sets: Self::OTHER,
        variables: Self::OTHER,
    };

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.resets | self.tells | self.reads | self.sets | self.variables == 0
    }
}

impl Doings {
    /// Nobody knows what it does. That it may change the catalogue is not said: such changes are found as
    /// those of others are, by asking.
    pub fn unknown() -> Doings {
        Doings {
            impure: true,
            varies: true,
            pins: Pin::Code.into(),
            uses: Uses::ROLE,
            takes: Locks::NONE,
            ddl: false,
            settings: SettingBits::ANY,
            statement_names: true,
        }
    }

    /// Without what only [`Doings::unknown`] says.
    pub(crate) fn forgive(&mut self) {
        self.pins.remove(Pin::Code);
        self.uses.remove(Uses::ROLE);
        self.statement_names = false;
        if !self.pins.contains(Pin::Setting) {
            let settings = &mut self.settings;
            for bits in [
                &mut settings.resets,
                &mut settings.tells,
                &mut settings.reads,
                &mut settings.sets,
                &mut settings.variables,
            ] {
                *bits &= !SettingBits::OTHER;
            }
        }
    }

    /// It does all of this as well.
    #[inline]
    pub fn add(&mut self, other: Doings) {
        self.impure |= other.impure;
        self.varies |= other.varies;
        self.pins.union(other.pins);
        self.uses.insert(other.uses);
        self.takes.insert(other.takes);
        self.ddl |= other.ddl;
        self.settings.resets |= other.settings.resets;
        self.settings.tells |= other.settings.tells;
        self.settings.reads |= other.settings.reads;
        self.settings.sets |= other.settings.sets;
        self.settings.variables |= other.settings.variables;
        self.statement_names |= other.statement_names;
    }

    /// Something of it may be there behind it: it keeps a server, sets, or writes.
    pub fn leaves(&self) -> bool {
        let SettingBits { resets, sets, .. } = self.settings;
        let writes = self.uses.contains(Uses::CODE_WRITES);
        !self.pins.is_empty() || !self.takes.is_empty() || resets != 0 || sets != 0 || writes
    }

    /// It reads at most, and leaves nothing. What it reads may vary.
    pub fn is_pure(&self) -> bool {
        Doings { varies: false, ..*self } == Doings::default()
    }
}

/// What a name may stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Meaning {
    /// What may happen when it is called, selected from or used as a type.
    pub(crate) read: Doings,
    /// What may happen when it is written to.
    pub(crate) write: Doings,
    /// A function of this name came with the database itself.
    pub(crate) is_system: bool,
    /// Somebody has made a function of this name.
    pub(crate) is_made: bool,
}

impl Meaning {
    /// There is a function of this name.
    pub(crate) fn is_function(&self) -> bool {
        self.is_system || self.is_made
    }
}

/// What names may stand for that are not known before they are run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Anything {
    /// Any relation, read or written.
    pub(crate) relations: Doings,
    /// Any relation or function.
    pub(crate) names: Doings,
    /// What any write may run, whatever it names: defaults of types.
    pub(crate) written: Doings,
}

/// A name as the catalogue and the texts agree on it: without case, cut as PostgreSQL cuts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NameKey(u64);

/// PostgreSQL cuts names to this many bytes (NAMEDATALEN - 1); MySQL refuses longer ones than 64 characters.
const NAME_BYTES: usize = 63;

/// As PostgreSQL cuts a name that is too long: at the end of a character (`pg_mbcliplen`).
#[cold]
fn cut(name: &[u8]) -> &[u8] {
    let continues = |byte: &u8| byte & 0xc0 == 0x80;
    let end = (0..=NAME_BYTES).rev().find(|&end| !name.get(end).is_some_and(continues)).unwrap_or_default();
    name.get(..end).unwrap_or(name)
}

impl NameKey {
    /// All names whose spelling is not certain here: beyond ASCII (encodings and collations differ), with
    /// quotes in it, or with escapes.
    pub(crate) const UNREADABLE: NameKey = NameKey(0);

    /// Of the text between the quotes, or of the bare word.
    #[inline]
    pub(crate) fn of(name: &[u8]) -> NameKey {
        // Eight bytes at a time: every word of every text comes by here.
        const LOW: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        let name = if name.len() > NAME_BYTES { cut(name) } else { name };
        let has = |word: u64, byte: u8| {
            let other = word ^ (LOW * u64::from(byte));
            other.wrapping_sub(LOW) & !other & HIGH != 0
        };
        let mix = |hash: u64, word: u64| {
            let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^ hash >> 32
        };
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for chunk in name.chunks(8) {
            let mut bytes = [0; 8];
            for (to, from) in bytes.iter_mut().zip(chunk) {
                *to = *from;
            }
            let word = u64::from_le_bytes(bytes);
            if word & HIGH != 0 || has(word, b'"') || has(word, b'`') || has(word, b'\\') {
                return NameKey::UNREADABLE;
            }
            // The high bit of each byte says whether it is one of A to Z.
            let upper = (word + LOW * u64::from(0x80 - b'A')) & !(word + LOW * u64::from(0x7f - b'Z')) & HIGH;
            hash = mix(hash, word | upper >> 2);
        }
        NameKey(mix(hash, name.len() as u64).max(1))
    }

    /// Of an operator of PostgreSQL, which is made of signs: FNV-1a.
    #[inline]
    pub(crate) fn of_operator(signs: &[u8]) -> NameKey {
        let hash = signs.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &sign| {
            (hash ^ u64::from(sign)).wrapping_mul(0x100_0000_01b3)
        });
        NameKey(hash.max(1))
    }
}

/// A hasher for keys that are hashes already.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        // The low bits choose the slot, the high ones tell entries of a slot apart; both are good.
        self.0
    }
    fn write(&mut self, _bytes: &[u8]) {}
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

pub(crate) type Names<T> = HashMap<NameKey, T, BuildHasherDefault<AsIs>>;

/// What all names of a database stand for, at the moment it was read. Never changed in place.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    names: Names<Meaning>,
    /// What may happen whatever a text names: user code in operators, casts, domains.
    ambient: Doings,
    /// What may happen with any change of the catalogue: event triggers.
    on_ddl: Doings,
    /// What may happen where the name is not known.
    anything: Anything,
    /// Names of settings that code resets, makes known or asks for; on MySQL, of user variables in it.
    settings: Vec<Box<str>>,
    /// Users have made operators that do more than compute.
    has_operators: bool,
    /// There are event triggers.
    has_event_triggers: bool,
    /// Code of users is compiled, or in a language that is not read.
    has_unread: bool,
    /// It could not be read, or not whole: every name may stand for anything.
    blind: bool,
    system: Option<Arc<SystemNames>>,
}

/// The names of the functions that every database of one version of the server has. They are most of what
/// there is to read, and stay the same.
#[derive(Debug)]
pub struct SystemNames {
    version: Box<[u8]>,
    /// In order. With each, whether all functions of the name are IMMUTABLE.
    names: Vec<(NameKey, bool)>,
}

impl SystemNames {
    fn new(version: Box<[u8]>, mut names: Vec<(NameKey, bool)>) -> SystemNames {
        names.sort_unstable();
        SystemNames { version, names }
    }

    /// A function of this name may give another value the next time.
    fn is_unsettled(&self, key: NameKey) -> bool {
        self.names.binary_search(&(key, false)).is_ok()
    }
}

/// What a server has answered about its catalogue.
#[derive(Debug)]
pub struct Answer {
    /// The right to read.
    pub reading: Reading,
    /// Everything, if everything was asked for.
    pub catalogue: Option<Catalogue>,
    /// What tells this state from others.
    pub fingerprint: Vec<u8>,
    /// The server has refused to answer. `catalogue` is then that of a database of which nothing can be
    /// known.
    pub failed: bool,
    /// It has refused because somebody has locked a part of it.
    pub locked: bool,
}

impl Answer {
    /// What its operator can do where nothing is known behind it.
    pub fn cure(&self) -> &'static str {
        match self.locked {
            true => "A transaction has locked a part of it; Weir asks again from half a second on.",
            false => "Let this user read it.",
        }
    }

    /// Takes it in. The right to read comes back when the fingerprint is another one, or when something was
    /// locked: everything must be asked for.
    pub fn conclude(self, now_ms: u64) -> Option<Reading> {
        let Answer { reading, catalogue, fingerprint, failed, locked } = self;
        if locked {
            return reading.meet_lock(now_ms);
        }
        if failed && reading.fail(now_ms) {
            return None;
        }
        match catalogue {
            Some(catalogue) => {
                reading.learn(catalogue, &fingerprint, now_ms);
                None
            }
            None if reading.confirm(&fingerprint, now_ms) => None,
            None => Some(reading.again(now_ms)),
        }
    }
}

impl Catalogue {
    /// Of a database whose catalogue cannot be read.
    pub fn blind() -> Catalogue {
        Catalogue { blind: true, ..Catalogue::default() }
    }

    /// The functions of a server of this version, if it was read from one.
    pub fn system_names(&self, version: &[u8]) -> Option<Arc<SystemNames>> {
        self.system.clone().filter(|system| *system.version == *version)
    }

    /// It could not be read whole.
    pub fn is_blind(&self) -> bool {
        self.blind
    }

    /// Names it knows.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// It knows no name.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Names that may stand for code that does more than read.
    pub fn notable(&self) -> usize {
        self.names.values().filter(|meaning| !meaning.read.is_pure() || !meaning.write.is_pure()).count()
    }

    /// Code that nobody knows may leave what DISCARD ALL does not take away.
    pub(crate) fn has_unread(&self) -> bool {
        self.has_unread || self.blind
    }

    #[inline]
    pub(crate) fn look(&self, key: NameKey) -> Option<&Meaning> {
        self.names.get(&key)
    }

    /// What may happen where a name may be any.
    pub(crate) fn anything(&self) -> Doings {
        self.anything.names
    }

    /// What may happen in any text.
    pub(crate) fn ambient(&self) -> Doings {
        if self.blind { Doings::unknown() } else { self.ambient }
    }

    /// What code does with settings, by their names.
    pub(crate) fn touched(&self, bits: SettingBits) -> Touched {
        let names = |bits: u32| {
            let mut names = SettingNames::default();
            for (at, name) in self.settings.iter().enumerate() {
                if bits >> at & 1 == 1 {
                    names.add(name);
                }
            }
            if bits & SettingBits::OTHER != 0 {
                names.add_any();
            }
            names
        };
        Touched {
            resets: names(bits.resets),
            tells: names(bits.tells),
            reads: names(bits.reads),
            sets: names(bits.sets),
            gives: names(bits.sets | bits.resets),
            who_is_reset: None,
            variables: names(bits.variables),
        }
    }

    /// What may happen in any text that writes, besides.
    #[inline]
    pub(crate) fn written(&self) -> Doings {
        self.anything.written
    }

    /// What may happen in a text that does something with all relations.
    pub(crate) fn any_relation(&self) -> Doings {
        self.anything.relations
    }

    /// Operators are worth looking up.
    #[inline]
    pub(crate) fn has_operators(&self) -> bool {
        self.has_operators
    }

    /// Code runs with any change of the catalogue, or may.
    pub(crate) fn runs_on_ddl(&self) -> bool {
        self.blind || self.has_event_triggers
    }

    /// What may happen in any text that changes the catalogue.
    pub(crate) fn on_ddl(&self) -> Doings {
        self.on_ddl
    }
}

#[cfg(test)]
mod tests {
    use super::NameKey;
    use std::collections::HashSet;

    #[test]
    fn a_name_is_one_key_whatever_its_case() {
        for (one, other) in
            [("set_config", "SET_CONFIG"), ("PgP_Sym_Encrypt_Bytea", "pgp_sym_encrypt_bytea"), ("Z", "z")]
        {
            assert_eq!(NameKey::of(one.as_bytes()), NameKey::of(other.as_bytes()), "{one}");
        }
        let others = [
            "a",
            "b",
            "a\0",
            "",
            "@",
            "`",
            "[",
            "{",
            "_",
            "\x7f",
            "a234567",
            "a2345678",
            "a23456789",
            "2345678a",
        ];
        let keys: HashSet<NameKey> = others.iter().map(|name| NameKey::of(name.as_bytes())).collect();
        // The one with a quote in it is not readable, which is a key as well.
        assert_eq!(keys.len(), others.len());
    }

    #[test]
    fn quotes_and_what_is_beyond_ascii_cannot_be_read_wherever_they_stand() {
        for at in 0..20 {
            for sign in ["\"", "`", "\\", "\u{e4}"] {
                let name = format!("{}{sign}{}", "x".repeat(at), "y".repeat(20 - at));
                assert_eq!(NameKey::of(name.as_bytes()), NameKey::UNREADABLE, "{name}");
            }
        }
    }

    #[test]
    fn names_are_cut_as_postgresql_cuts_them() {
        let (cut, whole, shorter) = ("n".repeat(63), "n".repeat(64), "n".repeat(62));
        assert_eq!(NameKey::of(whole.as_bytes()), NameKey::of(cut.as_bytes()));
        assert_ne!(NameKey::of(shorter.as_bytes()), NameKey::of(cut.as_bytes()));
        assert_eq!(NameKey::of(format!("{cut}\u{e4}").as_bytes()), NameKey::of(cut.as_bytes()));
    }

    #[test]
    fn names_spread_over_the_slots_of_a_table() {
        let low: HashSet<u64> =
            (0..1024).map(|n| NameKey::of(format!("table_{n}").as_bytes()).0 & 0xffff).collect();
        let high: HashSet<u64> =
            (0..1024).map(|n| NameKey::of(format!("table_{n}").as_bytes()).0 >> 57).collect();
        assert!(low.len() > 980 && high.len() == 128, "{} {}", low.len(), high.len());
    }
}
