//! Looks the words of a text up in the catalogue, or records them for it.

use super::{Mode, Recogniser};
use crate::SetTarget;
use crate::catalogue::{Catalogue, Doings, NameKey, Proof, UnknownCode, reads_only};
use crate::class::{Class, Uses, Verb};
use crate::token::{Kind, Token};
use std::sync::Arc;
use weir_wire::limits::CODE_NAMES;
use weir_wire::{Pin, Pins};

/// What is done with the words of a text.
#[derive(Debug, Clone, Default)]
pub(super) enum Watch {
    /// Nothing: no catalogue is at hand.
    #[default]
    None,
    /// They are looked up.
    Text(Found),
    /// They are code of the catalogue itself.
    Code(Box<Noted>),
}

/// What the catalogue says of the words so far.
#[derive(Debug, Clone)]
pub(super) struct Found {
    catalogue: Arc<Catalogue>,
    holds: bool,
    current: bool,
    unknown_code: UnknownCode,
    /// [`Proof::changed`].
    changed: bool,
    /// Of them as things that are read or called.
    read: Doings,
    /// Of them as things that are written to.
    write: Doings,
    /// A statement that may write was met.
    writes: bool,
    /// Signs that stand together, as an operator of PostgreSQL may.
    operator: Operator,
    /// The last name is a function that users have made.
    last_is_own: bool,
    /// Something was named, or is done everywhere, that runs code of users.
    user_code: bool,
}

impl Found {
    pub(super) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }
}

/// Whatever unknown code may do counts as nothing, for the operator said so; whether there is some.
fn forgive(class: &mut Class, doings: &mut Doings, mysql: bool) -> bool {
    // MySQL's code executes strings that it has prepared; PostgreSQL's may only prepare them.
    let of_code = [Pin::Code, Pin::Unrecognised].into_iter().chain(mysql.then_some(Pin::SqlPrepare));
    let is_there = class.pins.contains(Pin::Code) || of_code.clone().any(|pin| doings.pins.contains(pin));
    if is_there {
        class.pins.remove(Pin::Code);
        doings.forgive();
        of_code.for_each(|pin| doings.pins.remove(pin));
    }
    is_there
}

/// Signs without anything between them. An operator is a part of these, for PostgreSQL may end one before the
/// last.
#[derive(Debug, Clone, Copy, Default)]
struct Operator {
    signs: [u8; Operator::SIGNS],
    len: usize,
    /// Where the next sign must stand.
    end: u64,
}

impl Operator {
    /// Signs that are looked at together; longer operators count as unknown.
    const SIGNS: usize = 16;

    /// Takes one more. None: there are too many.
    fn push(&mut self, sign: u8, start: u64, end: u64) -> Option<&[u8]> {
        if start != self.end {
            self.len = 0;
        }
        self.end = end;
        *self.signs.get_mut(self.len)? = sign;
        self.len += 1;
        self.signs.get(..self.len)
    }
}

/// What such a token is written with, if it may be part of an operator.
pub(super) fn sign_of(token: &Token<'_>) -> Option<u8> {
    match token.kind {
        Kind::Operator | Kind::Equals | Kind::Star | Kind::Param | Kind::UserVariable => {
            token.text.first().copied().filter(|byte| b"+-*/<>=~!@#%^&|`?".contains(byte))
        }
        _ => None,
    }
}

/// The words so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Noted {
    pub(crate) names: Vec<NameKey>,
    /// Those that are called and are no harmless built-in functions.
    pub(crate) calls: Vec<NameKey>,
    /// There is maintenance in it that names no relation.
    pub(crate) any_relation: bool,
    operator: Operator,
}

impl Recogniser {
    /// Looks words up in a catalogue from now on.
    pub(crate) fn watch(&mut self, proof: Proof) {
        let found = Found {
            catalogue: proof.catalogue,
            holds: proof.state != 0,
            current: proof.current,
            unknown_code: proof.unknown_code,
            changed: proof.changed,
            read: Doings::default(),
            write: Doings::default(),
            writes: false,
            operator: Operator::default(),
            last_is_own: false,
            user_code: false,
        };
        self.watch = Watch::Text(found);
    }

    /// For code of the catalogue itself.
    pub(crate) fn of_code(dialect: crate::Dialect) -> Recogniser {
        let mut recogniser = Recogniser::new(dialect, false);
        recogniser.watch = Watch::Code(Box::default());
        recogniser
    }

    /// What is read is code that the catalogue holds.
    pub(super) fn is_of_code(&self) -> bool {
        matches!(self.watch, Watch::Code(_))
    }

    /// A word, whatever it is here.
    #[inline]
    pub(super) fn named(&mut self, token: &Token<'_>) {
        let key = match (&self.watch, token.kind) {
            (Watch::None, _) => return,
            (_, Kind::Word | Kind::Quoted) => NameKey::of(token.text),
            // A name of MySQL's that begins with a digit.
            (_, Kind::Number) if self.mysql => NameKey::of(token.text),
            (_, Kind::Escaped) => return self.named_anything(),
            _ => return self.sign(token),
        };
        self.last_name = key;
        // What is defined or dropped does not run.
        let only_named = self.mysql && (self.now.mode == Mode::Routine || self.now.verb == Verb::Drop);
        match &mut self.watch {
            Watch::None => {}
            Watch::Text(_) if only_named => {}
            Watch::Text(found) => {
                found.last_is_own = false;
                if let Some(meaning) = found.catalogue.look(key) {
                    found.read.add(meaning.read);
                    found.write.add(meaning.write);
                    if found.changed && !meaning.is_system {
                        found.read.add(Doings::unknown());
                    }
                    found.last_is_own = meaning.is_function() && !meaning.is_system;
                    found.user_code |= !meaning.is_system;
                }
            }
            Watch::Code(noted) => {
                if noted.names.len() < CODE_NAMES {
                    noted.names.push(key);
                }
            }
        }
    }

    /// A name in escapes stands for any that there is, read and written.
    #[cold]
    fn named_anything(&mut self) {
        self.last_name = NameKey::UNREADABLE;
        self.alone = true;
        self.now.settings_view = true;
        self.now.settings_source = true;
        match &mut self.watch {
            Watch::None => {}
            Watch::Text(found) => {
                found.last_is_own = false;
                found.read.add(found.catalogue.anything());
                found.user_code = true;
                if found.changed {
                    found.read.add(Doings::unknown());
                }
            }
            Watch::Code(_) => self.class.doubtful = true,
        }
    }

    /// A sign may be, or be part of, an operator that users have made.
    #[inline]
    fn sign(&mut self, token: &Token<'_>) {
        if self.mysql {
            return;
        }
        let Some(sign) = sign_of(token) else { return };
        match &mut self.watch {
            Watch::None => {}
            Watch::Text(found) => {
                if !found.catalogue.has_operators() {
                    return;
                }
                let Some(signs) = found.operator.push(sign, token.start, token.end) else {
                    return found.read.add(Doings::unknown());
                };
                for from in 0..signs.len() {
                    let key = NameKey::of_operator(signs.get(from..).unwrap_or_default());
                    if let Some(meaning) = found.catalogue.look(key) {
                        found.read.add(if found.changed { Doings::unknown() } else { meaning.read });
                        found.user_code = true;
                    }
                }
            }
            Watch::Code(noted) => {
                let Some(signs) = noted.operator.push(sign, token.start, token.end) else {
                    self.class.doubtful = true;
                    return;
                };
                for from in 0..signs.len() {
                    let key = NameKey::of_operator(signs.get(from..).unwrap_or_default());
                    // The last few repeat themselves.
                    let known = noted.names.iter().rev().take(16).any(|known| *known == key);
                    if noted.names.len() < CODE_NAMES && !known {
                        noted.names.push(key);
                    }
                }
            }
        }
    }

    /// MySQL: a function is called that is harmless where it is built in: the last name. Users may have made
    /// one of that name.
    pub(super) fn called_harmless(&mut self) {
        if self.mysql && matches!(&self.watch, Watch::Text(found) if found.last_is_own) {
            self.class.uses.insert(Uses::USER_FUNCTION);
        }
    }

    /// A function that nobody vouches for is called: the last name. True when all that it does is known by
    /// its name, or will be; false when it must be alone.
    pub(super) fn is_known_call(&mut self) -> bool {
        let key = self.last_name;
        match &mut self.watch {
            Watch::None => {
                self.uses(Uses::UNKNOWN_FUNCTION);
                false
            }
            Watch::Text(found) => match found.catalogue.look(key) {
                Some(meaning) if meaning.is_function() => {
                    if !meaning.is_system {
                        self.class.uses.insert(Uses::USER_FUNCTION);
                    }
                    !meaning.is_system
                }
                _ => {
                    self.uses_unknown();
                    false
                }
            },
            Watch::Code(noted) => {
                if noted.calls.len() < CODE_NAMES {
                    noted.calls.push(key);
                }
                true
            }
        }
    }

    fn uses_unknown(&mut self) {
        self.class.uses.insert(Uses::UNKNOWN_FUNCTION);
        self.runs_unknown();
    }

    /// Code runs that nobody can read.
    pub(super) fn runs_unknown(&mut self) {
        self.class.pins.insert(Pin::Code);
        if !matches!(&self.watch, Watch::Text(found) if found.unknown_code != UnknownCode::Pin) {
            self.class.uses.insert(Uses::ROLE);
        }
    }

    /// A statement of a text ends.
    pub(super) fn note_verb(&mut self, verb: Verb) {
        let of_all = verb == Verb::Maintain && self.now.mode == Mode::Maintain && !self.now.maintains_one();
        match &mut self.watch {
            Watch::Text(found) => {
                found.writes |= !reads_only(verb);
                if of_all {
                    found.read.add(found.catalogue.any_relation());
                }
            }
            Watch::Code(noted) => noted.any_relation |= of_all,
            Watch::None => {}
        }
    }

    /// What the words of a whole text add to its class.
    pub(super) fn conclude(&mut self) {
        let Watch::Text(found) = std::mem::take(&mut self.watch) else { return };
        let class = &mut self.class;
        let mut doings = found.catalogue.ambient();
        class.user_code = found.user_code || doings != Doings::default();
        if !self.mysql && doings.leaves() {
            class.uses.insert(Uses::CODE_OF_LITERALS);
        }
        doings.add(found.read);
        if class.uses.contains(Uses::TEMPORARY_CODE) {
            // Its client may run it before anybody has read it, on the server that it keeps for it.
            let mut kept = found.read;
            kept.add(found.write);
            if !kept.is_pure() {
                class.pins.insert(Pin::Code);
            }
        }
        if found.writes || class.uses.contains(Uses::WITH_WRITES) {
            doings.add(found.write);
            doings.add(found.catalogue.written());
        }
        class.only_defines = self.definitions.only() && !self.mysql && !found.catalogue.runs_on_ddl();
        if class.uses.contains(Uses::BLOCK) && (class.verb != Verb::Call || !self.blocks.is_empty()) {
            // Code in the text itself.
            match self.block.take().filter(|_| !self.more_blocks) {
                Some(block) => {
                    doings.add(block.doings);
                    self.details().touched.get_or_insert_default().add_all(&block.touched);
                }
                None => {
                    doings.add(Doings::unknown());
                    class.ddl = true;
                }
            }
        }
        let class = &mut self.class;
        let maintains = class.uses.contains(Uses::MAINTAINS) || doings.uses.contains(Uses::MAINTAINS);
        if class.ddl || doings.ddl || maintains {
            doings.add(found.catalogue.on_ddl());
        }
        self.alone |= doings.impure;
        class.varies |= doings.varies;
        if found.unknown_code != UnknownCode::Pin && forgive(class, &mut doings, self.mysql) {
            class.unknown_code = found.unknown_code;
        }
        class.pins.union(doings.pins);
        class.uses.insert(doings.uses);
        if class.pins.contains(Pin::Code) && !self.mysql && found.catalogue.has_unread() {
            class.uses.insert(Uses::OUTLIVES_RESET);
        }
        class.takes.insert(doings.takes);
        class.ddl |= doings.ddl;
        if !doings.settings.is_empty() {
            let touched = found.catalogue.touched(doings.settings);
            self.details().touched.get_or_insert_default().add_all(&touched);
        }
        let class = &mut self.class;
        class.statement_names |= doings.statement_names;
        class.code = doings.pins;
        class.proven = found.holds && !found.catalogue.is_blind();
        class.foreseen = class.proven || found.current && !found.catalogue.is_blind();
    }

    /// A statement of code ends: what it was, and what it assigned.
    pub(crate) fn end_code_statement(&mut self) -> Option<(Verb, Option<SetTarget>)> {
        if self.now.tokens == 0 {
            return None;
        }
        let verb = self.now.verb;
        // Only the first statement of a text keeps these.
        self.class.statements = 0;
        self.end_statement();
        let set = self.class.details.as_deref_mut().and_then(|details| details.set.take());
        Some((verb, set))
    }

    /// Why a server must stay, so far.
    pub(crate) fn pins(&self) -> Pins {
        self.class.pins
    }

    /// Some statement so far does one of these.
    pub(crate) fn uses_any(&self, uses: Uses) -> bool {
        self.class.uses.intersects(uses)
    }

    /// Which of these the statements since the last such question do.
    pub(crate) fn take_uses(&mut self, uses: Uses) -> Uses {
        let mut others = self.class.uses;
        others.remove(uses);
        let mut taken = self.class.uses;
        taken.remove(others);
        self.class.uses = others;
        taken
    }

    /// Takes back what a statement was thought to leave.
    pub(crate) fn take_back(&mut self, pin: Pin) {
        self.class.pins.remove(pin);
    }

    /// The code is at its end. Last: something in it does more than read.
    pub(crate) fn finish_code(mut self) -> (Class, Noted, bool) {
        let noted = match std::mem::take(&mut self.watch) {
            Watch::Code(noted) => *noted,
            Watch::None | Watch::Text(_) => Noted::default(),
        };
        (self.class, noted, self.alone)
    }
}
