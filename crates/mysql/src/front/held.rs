//! What a client holds on its server and may release: temporary tables, named locks, statements of PREPARE.
//!
//! Owns: how many there are, from texts and replies; when none is left, the pin ends. Must not know: packets,
//! settings.
//!
//! Invariant: in doubt, something is still held. A table counts as dropped when a DROP TABLE succeeded that
//! spells its name as the CREATE did; a lock counts as free when as many RELEASE_LOCK() as GET_LOCK() have
//! returned 1. `DO RELEASE_LOCK('name')` returns nothing; it has released a lock that was taken under the
//! same literal and not yet released. A GET_LOCK() whose answer is not seen (`DO GET_LOCK('name', 1)`,
//! `SELECT IF(GET_LOCK('name', 1), ...)`) has taken its lock at most once: a RELEASE_LOCK() of the same
//! literal frees it, whatever that returns.

use super::finish::has_run;
use super::{Front, Outcome};
use crate::binding::literals;
use crate::follow;
use crate::message::lenenc;
use crate::prepared::{Execute, text_with};
use crate::session_state::Flavour;
use crate::words::{Piece, Words};
use weir_sql::{Class, Locks, Uses, Verb};
use weir_wire::limits::{HELD_NAMES, HELD_TEXT_BYTES};
use weir_wire::{Pin, Reader};

type Name = Box<[u8]>;

/// Things of one kind by their names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Names {
    Known(Vec<Box<[u8]>>),
    Unknown,
}

impl Default for Names {
    fn default() -> Names {
        Names::Known(Vec::new())
    }
}

impl Names {
    fn add(&mut self, name: Option<Box<[u8]>>) {
        match (&mut *self, name) {
            (Names::Known(names), Some(name)) if names.contains(&name) => {}
            (Names::Known(names), Some(name)) if names.len() < HELD_NAMES => names.push(name),
            _ => *self = Names::Unknown,
        }
    }

    fn remove(&mut self, name: &[u8]) {
        if let Names::Known(names) = self {
            names.retain(|known| **known != *name);
        }
    }

    fn is_empty(&self) -> bool {
        *self == Names::Known(Vec::new())
    }
}

/// What a client holds.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Temporary tables: schema, NUL, table.
    tables: Names,
    /// Statements of PREPARE.
    statements: Names,
    /// Their texts, where those are known.
    texts: Vec<(Name, Box<[u8]>)>,
    /// How often its GET_LOCK() got a lock that it has not released; `None`: nobody knows.
    locks: Option<u32>,
    /// The literals by which some of these were named, one for each time.
    named: Vec<Box<[u8]>>,
    /// The literals of locks that it may have besides, once each.
    maybe: Vec<Box<[u8]>>,
}

impl Held {
    fn new() -> Held {
        Held { locks: Some(0), ..Held::default() }
    }

    fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.statements.is_empty() && self.has_no_lock()
    }

    /// PREPARE has made a statement of this text.
    fn prepared(&mut self, name: Box<[u8]>, text: Option<Box<[u8]>>) {
        self.texts.retain(|(known, _)| *known != name);
        if let Some(text) = text.filter(|_| self.texts.len() < HELD_NAMES) {
            self.texts.push((name.clone(), text));
        }
        self.statements.add(Some(name));
    }

    fn has_no_lock(&self) -> bool {
        self.locks == Some(0) && self.maybe.is_empty()
    }

    /// GET_LOCK() may have got this lock, or not: once, as long as it is not asked for again.
    fn may_have_taken(&mut self, name: Box<[u8]>) {
        let is_clear = self.locks.is_some() && !self.maybe.contains(&name) && self.place_of(&name).is_none();
        // A lock that was taken under a name that is no literal may be the same one.
        let are_named = self.locks.is_some_and(|locks| locks as usize == self.named.len());
        match is_clear && are_named && self.maybe.len() < HELD_NAMES {
            true => self.maybe.push(name),
            false => self.locks = None,
        }
    }

    /// RELEASE_LOCK() has answered for a lock that it may have had.
    fn settled(&mut self, name: Option<&[u8]>) -> bool {
        let before = self.maybe.len();
        self.maybe.retain(|known| name != Some(&**known));
        self.maybe.len() != before
    }

    /// GET_LOCK() has answered.
    fn took(&mut self, name: Option<Box<[u8]>>, told: Option<bool>) {
        // One that it may have already, perhaps: nobody counts those.
        let told = told.filter(|_| self.maybe.is_empty());
        self.locks = self.locks.zip(told).map(|(locks, one)| locks.saturating_add(u32::from(one)));
        if told == Some(true) && self.named.len() < HELD_NAMES {
            self.named.extend(name);
        }
    }

    /// RELEASE_LOCK() has freed a lock.
    fn freed(&mut self, name: Option<&[u8]>) {
        self.locks = self.locks.map(|locks| locks.saturating_sub(1));
        match name.and_then(|name| self.place_of(name)) {
            Some(at) => drop(self.named.swap_remove(at)),
            // Which of them it was is not known.
            None => self.named.clear(),
        }
    }

    fn place_of(&self, name: &[u8]) -> Option<usize> {
        self.named.iter().position(|known| **known == *name)
    }
}

/// What a text does to it, if that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Act {
    /// Nothing, or nothing that is understood.
    #[default]
    Other,
    MakesTable(Box<[u8]>),
    DropsTables(Vec<Box<[u8]>>),
    /// It may give a table another name.
    Renames,
    /// Its only value is that of GET_LOCK(), which has this literal for a name.
    TakesLock(Option<Box<[u8]>>),
    /// It evaluates one GET_LOCK() of this literal, once or not at all.
    MayTakeLock(Box<[u8]>),
    /// Its only value is that of RELEASE_LOCK().
    FreesLock(Option<Box<[u8]>>),
    /// `DO RELEASE_LOCK('name')`: nothing is answered.
    FreesSilently(Box<[u8]>),
    /// PREPARE: the name, and what it prepares.
    Prepares(Box<[u8]>, Option<Box<[u8]>>),
    Deallocates(Box<[u8]>),
    /// EXECUTE of a statement that is not there: a server says so (1243), and runs nothing.
    RunsNothing,
    /// EXECUTE of a statement whose text is known, and leaves nothing. `ddl`: it changes the catalogue.
    RunsKnown {
        ddl: bool,
    },
}

impl Act {
    /// As a request has it: most do nothing of the kind.
    pub(super) fn boxed(self) -> Option<Box<Act>> {
        (!matches!(self, Act::Other)).then(|| Box::new(self))
    }

    /// The one value of its answer says what it did.
    pub(crate) fn is_told(&self) -> bool {
        matches!(self, Act::TakesLock(_) | Act::FreesLock(_))
    }
}

/// The only value of a row is 1.
pub(crate) fn tells_one(row: &[u8], binary: bool) -> bool {
    if !binary {
        return lenenc::string(&mut Reader::new(row)) == Ok(b"1");
    }
    // A zero, one byte of NULL bits from the third on, an integer.
    matches!(row, [0, 0, 1, rest @ ..] if rest.iter().all(|byte| *byte == 0))
}

impl Front {
    /// The same of an execution, whose parameters may name a lock.
    pub(super) fn act_of_execution(
        &self,
        text: &[u8],
        number: u32,
        payload: &[u8],
        execute: &Execute,
    ) -> Act {
        let class = &self.request.class;
        // Names without a schema are those of the one in which it was prepared.
        let statement = self.statements.as_deref().and_then(|all| all.get(number));
        let schema = statement.and_then(|statement| statement.text.shape.schema.as_deref());
        let names_lock = class.takes.contains(Locks::NAMED) || self.locks.contains(Locks::NAMED);
        let said = || {
            let statement = self.statements.as_deref()?.get(number)?;
            let is_whole = statement.params > 0
                && statement.types.len() == usize::from(statement.params) * 2
                && statement.long_data.is_empty();
            let literals = is_whole.then(|| literals(payload, execute, &statement.types))??;
            text_with(text, &literals)
        };
        match names_lock.then(said).flatten() {
            Some(said) => self.act_in(schema, class, &said),
            None => self.act_in(schema, class, text),
        }
    }

    /// What the text does to what is held here.
    pub(super) fn act_of(&self, class: &Class, text: &[u8]) -> Act {
        self.act_in(self.state.schema.as_deref(), class, text)
    }

    /// The same in this schema.
    fn act_in(&self, schema: Option<&str>, class: &Class, text: &[u8]) -> Act {
        let unread = Uses::EXECUTABLE_COMMENT | Uses::UNKNOWN_FUNCTION | Uses::BLOCK;
        let matters = match class.verb {
            Verb::Create => class.pins.contains(Pin::TemporaryTable),
            Verb::Drop | Verb::Alter | Verb::Catalogue => self.held.is_some(),
            Verb::Select => class.takes.contains(Locks::NAMED) || self.locks.contains(Locks::NAMED),
            Verb::Do | Verb::Set => class.takes.contains(Locks::NAMED) || self.locks.contains(Locks::NAMED),
            Verb::Prepare | Verb::Deallocate => true,
            Verb::Execute => true,
            _ => false,
        };
        if !matters {
            return Act::Other;
        }
        if class.verb == Verb::Execute && class.statements == 1 && !self.has_prepared(class) {
            return Act::RunsNothing;
        }
        let words = || Words::new(text);
        if matches!(class.verb, Verb::Alter | Verb::Catalogue) {
            let renames = text.len() > HELD_TEXT_BYTES || words().any(|piece| piece.is(b"RENAME"));
            return if renames { Act::Renames } else { Act::Other };
        }
        // A backslash may end a string or not; executable comments are skipped here.
        let clear = class.statements == 1
            && !class.doubtful
            && !class.uses.intersects(unread)
            && class.code.is_empty()
            && text.len() <= HELD_TEXT_BYTES
            && !text.contains(&b'\\');
        if !clear {
            return Act::Other;
        }
        let found = match class.verb {
            Verb::Create => table_made(schema, &mut words()).map(Act::MakesTable),
            Verb::Drop => tables_dropped(schema, &mut words()).map(Act::DropsTables),
            Verb::Select | Verb::Do | Verb::Set => {
                lock_asked(&mut words()).or_else(|| lock_tried(words()).map(Act::MayTakeLock))
            }
            Verb::Prepare => {
                statement_name(class).map(|name| Act::Prepares(name, self.text_to_prepare(words())))
            }
            Verb::Execute => self.runs_known(class).map(|ddl| Act::RunsKnown { ddl }),
            Verb::Deallocate => statement_name(class).map(Act::Deallocates),
            _ => None,
        };
        found.unwrap_or_default()
    }

    /// `PREPARE name FROM 'text'`, or `FROM @variable` whose value goes along with its client.
    fn text_to_prepare(&self, mut words: Words<'_>) -> Option<Box<[u8]>> {
        words.find(|piece| piece.is(b"FROM"))?;
        let (first, second, end) = (words.next()?, words.next(), words.next());
        if !first.is(b"@") {
            let [b'\'', text @ .., b'\''] = first.bytes else { return None };
            let is_plain = text.is_ascii() && !text.iter().any(|byte| matches!(byte, b'\'' | b'"'));
            return (is_plain && second.is_none_or(|piece| piece.is(b";"))).then(|| text.into());
        }
        let name = std::str::from_utf8(second?.bytes).ok()?.to_ascii_lowercase();
        let value = self.variables()?.get(&name).filter(|_| end.is_none_or(|piece| piece.is(b";")))?;
        let is_unasked = self.unasked_variables().iter().any(|unasked| **unasked == *name);
        // These are read by sql_mode, which may be another one when it is executed.
        let is_plain = |text: &[u8]| text.is_ascii() && !text.iter().any(|byte| matches!(byte, b'\\' | b'"'));
        follow::text_of(value).filter(|text| !is_unasked && text.len() <= HELD_TEXT_BYTES && is_plain(text))
    }

    /// A statement of PREPARE of this name may be here.
    fn has_prepared(&self, class: &Class) -> bool {
        let Some(held) = &self.held else { return class.name().is_none() };
        match (&held.statements, statement_name(class)) {
            (Names::Known(names), Some(name)) => names.contains(&name),
            (Names::Known(_), None) | (Names::Unknown, _) => true,
        }
    }

    /// What EXECUTE runs is known, and by proof leaves nothing behind it. Whether it changes the catalogue.
    fn runs_known(&self, class: &Class) -> Option<bool> {
        let (held, name) = (self.held.as_ref()?, statement_name(class)?);
        let (_, text) = held.texts.iter().find(|(known, _)| *known == name)?;
        let inner = self.classify(text).0;
        let unseen = Uses::SQL_PREPARE | Uses::USER_VARIABLE_WRITE | Uses::BLOCK | Uses::EXECUTABLE_COMMENT;
        let reads_or_writes =
            matches!(inner.verb, Verb::Select | Verb::Insert | Verb::Replace | Verb::Update | Verb::Delete);
        // Which temporary table has which name is told by texts that are read.
        let defines = inner.ddl && held.tables.is_empty();
        let makes = defines && matches!(inner.verb, Verb::Create | Verb::Alter | Verb::Drop | Verb::Truncate);
        let leaves = inner.pins.is_empty() && inner.code.is_empty() && inner.takes == Locks::default();
        let is_read =
            inner.statements == 1 && !inner.doubtful && inner.proven && !inner.uses.intersects(unseen);
        (is_read && leaves && (reads_or_writes || makes)).then_some(inner.ddl)
    }

    /// MySQL: what PREPARE prepares has a hint that leaves something, or may have.
    fn preparing_stays(&self, text: Option<&[u8]>) -> bool {
        let stays = |text| self.classify(text).0.lent_stays;
        self.traits.flavour == Flavour::MySql && text.is_none_or(stays)
    }

    /// The request that did this is done.
    pub(super) fn finish_held(&mut self, class: &Class, act: Act, outcome: &Outcome) {
        let done = outcome.any_ok && !outcome.failed;
        let takes = class.takes.contains(Locks::NAMED);
        let makes = [Pin::TemporaryTable, Pin::SqlPrepare].map(|pin| class.pins.contains(pin));
        if self.held.is_none() && !takes && makes == [false, false] {
            return;
        }
        let mut held = self.held.take().unwrap_or_else(|| Box::new(Held::new()));
        let [makes_table, prepares] = makes;
        if let Act::Prepares(_, text) = &act
            && self.preparing_stays(text.as_deref())
        {
            self.pins.insert(Pin::Setting);
        }
        match act {
            Act::MakesTable(name) if done => held.tables.add(Some(name)),
            Act::MakesTable(_) => {}
            Act::DropsTables(names) if done => names.iter().for_each(|name| held.tables.remove(name)),
            Act::Renames if !held.tables.is_empty() => held.tables = Names::Unknown,
            _ if makes_table => held.tables = Names::Unknown,
            _ if class.statements > 1 && class.ddl && !held.tables.is_empty() => held.tables = Names::Unknown,
            Act::Prepares(name, text) if done => held.prepared(name, text),
            // The one of that name before is gone.
            Act::Prepares(name, _) => held.texts.retain(|(known, _)| *known != name),
            Act::Deallocates(name) if done => {
                held.texts.retain(|(known, _)| *known != name);
                held.statements.remove(&name);
            }
            _ if prepares => (held.statements, held.texts) = (Names::Unknown, Vec::new()),
            Act::TakesLock(name) if done => held.took(name, outcome.told),
            Act::MayTakeLock(name) => held.may_have_taken(name),
            // It may have got its lock in a statement that failed later.
            _ if takes => held.locks = None,
            Act::FreesLock(name) if done && has_run(class, outcome) && held.settled(name.as_deref()) => {}
            Act::FreesSilently(name) if done && held.settled(Some(&name)) => {}
            Act::FreesLock(name) if done && outcome.told == Some(true) => held.freed(name.as_deref()),
            Act::FreesSilently(name) if done && held.place_of(&name).is_some() => held.freed(Some(&name)),
            _ => {}
        }
        if prepares && makes_table || takes && (prepares || makes_table) {
            // One of them was not looked at.
            let (tables, statements) = (Names::Unknown, Names::Unknown);
            *held = Held { tables, statements, ..Held::default() };
        }
        let frees = class.statements == 1 && class.frees.contains(Locks::NAMED);
        if done && frees && has_run(class, outcome) {
            (held.locks, held.named, held.maybe) = (Some(0), Vec::new(), Vec::new());
        }
        for (names, pin) in [(&held.tables, Pin::TemporaryTable), (&held.statements, Pin::SqlPrepare)] {
            if names.is_empty() {
                self.pins.remove(pin);
            }
        }
        match held.has_no_lock() {
            true => self.locks.remove(Locks::NAMED),
            false => self.locks.insert(Locks::NAMED),
        }
        self.held = Some(held).filter(|held| !held.is_empty());
    }
}

/// `CREATE [OR REPLACE] TEMPORARY TABLE [IF NOT EXISTS] name ...`
fn table_made<'a>(schema: Option<&'a str>, words: &mut Words<'a>) -> Option<Box<[u8]>> {
    let word = words.find(|piece| !any(piece, &[b"CREATE", b"OR", b"REPLACE"]))?;
    let table = words.next()?;
    (word.is(b"TEMPORARY") && table.is(b"TABLE")).then_some(())?;
    let first = words.find(|piece| !any(piece, &[b"IF", b"NOT", b"EXISTS"]))?;
    Some(full_name(schema, first, words)?.0)
}

/// `DROP [TEMPORARY] TABLE [IF EXISTS] name, ...`
fn tables_dropped<'a>(schema: Option<&'a str>, words: &mut Words<'a>) -> Option<Vec<Box<[u8]>>> {
    let table = words.find(|piece| !any(piece, &[b"DROP", b"TEMPORARY"]))?;
    any(&table, &[b"TABLE", b"TABLES"]).then_some(())?;
    let mut first = words.find(|piece| !any(piece, &[b"IF", b"EXISTS"]))?;
    let mut names = Vec::new();
    loop {
        let (name, next) = full_name(schema, first, words)?;
        names.push(name);
        match next {
            Some(next) if next.is(b",") => first = words.next()?,
            Some(next) if !any(&next, &[b";", b"RESTRICT", b"CASCADE", b"WAIT", b"NOWAIT"]) => {
                return None;
            }
            Some(_) | None => return Some(names),
        }
    }
}

/// A table's name in full, and the piece behind it.
fn full_name<'a>(
    schema: Option<&'a str>,
    first: Piece<'a>,
    words: &mut Words<'a>,
) -> Option<(Box<[u8]>, Option<Piece<'a>>)> {
    let mut name = identifier(first)?;
    let mut schema = schema.map(str::as_bytes);
    let mut next = words.next();
    if next.is_some_and(|piece| piece.is(b".")) {
        schema = Some(name);
        name = identifier(words.next()?)?;
        next = words.next();
    }
    Some(([schema?, name].join(&0).into(), next))
}

fn any(piece: &Piece<'_>, words: &[&[u8]]) -> bool {
    words.iter().any(|word| piece.is(word))
}

/// A name without its quotes; `None` for what is none, or is not plain. Double quotes are a name's with
/// ANSI_QUOTES, and otherwise no server takes what they enclose for one.
fn identifier(piece: Piece<'_>) -> Option<&[u8]> {
    let name = match piece.bytes {
        [b'`', name @ .., b'`'] | [b'"', name @ .., b'"'] => name,
        name => name,
    };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-' | b' ');
    (!name.is_empty() && name.iter().all(plain)).then_some(name)
}

/// Names of statements have no case.
fn statement_name(class: &Class) -> Option<Box<[u8]>> {
    let name = class.name().filter(|name| name.is_ascii())?;
    Some(name.to_ascii_lowercase().into_bytes().into())
}

/// `SELECT GET_LOCK(...)` or `SELECT RELEASE_LOCK(...)` and nothing more but a name for the column, or `DO
/// RELEASE_LOCK('name')`.
fn lock_asked(words: &mut Words<'_>) -> Option<Act> {
    let (verb, function) = (words.next()?, words.next()?);
    words.next().filter(|piece| piece.is(b"("))?;
    let (first, second) = (words.next().filter(|piece| !piece.is(b")"))?, words.next()?);
    let name = literal(first).filter(|_| any(&second, &[b",", b")"]));
    let mut pieces = [first, second].into_iter().chain(words.by_ref());
    let mut depth = 1;
    while depth > 0 {
        match pieces.next()? {
            piece if piece.is(b"(") => depth += 1,
            piece if piece.is(b")") => depth -= 1,
            piece if any(&piece, &[b"SELECT", b"GET_LOCK", b"RELEASE_LOCK", b"RELEASE_ALL_LOCKS"]) => {
                return None;
            }
            _ => {}
        }
    }
    if verb.is(b"DO") {
        let ends = words.all(|piece| piece.is(b";"));
        return name.filter(|_| ends && function.is(b"RELEASE_LOCK")).map(Act::FreesSilently);
    }
    let act = match function {
        it if it.is(b"GET_LOCK") => Act::TakesLock(name),
        it if it.is(b"RELEASE_LOCK") => Act::FreesLock(name),
        _ => return None,
    };
    verb.is(b"SELECT").then_some(())?;
    let mut next = words.next();
    if next.is_some_and(|piece| piece.is(b"AS")) {
        words.next().and_then(identifier_or_string)?;
        next = words.next();
    } else if next.and_then(identifier).is_some() && !next.is_some_and(|piece| is_clause(&piece)) {
        next = words.next();
    }
    if next.is_some_and(|piece| piece.is(b"FROM")) {
        words.next().filter(|piece| piece.is(b"DUAL"))?;
        next = words.next();
    }
    while next.is_some_and(|piece| piece.is(b";")) {
        next = words.next();
    }
    next.is_none().then_some(act)
}

/// The literal that names the only GET_LOCK() of a statement which reads nothing, and evaluates each of its
/// expressions once.
fn lock_tried(words: Words<'_>) -> Option<Box<[u8]>> {
    let pieces: Vec<Piece<'_>> = words.collect();
    let (verb, rest) = pieces.split_first()?;
    let begins = any(verb, &[b"SELECT", b"DO", b"SET"]);
    let others: [&[u8]; 16] = [
        b"SELECT",
        b"FROM",
        b"UNION",
        b"WHERE",
        b"GROUP",
        b"ORDER",
        b"HAVING",
        b"LIMIT",
        b"DISTINCT",
        b"CASE",
        b"FOR",
        b"STATEMENT",
        b"OVER",
        b"RELEASE_LOCK",
        b"RELEASE_ALL_LOCKS",
        b"VALUES",
    ];
    let once: [&[u8]; 7] =
        [b"GET_LOCK", b"IF", b"COALESCE", b"IFNULL", b"UNIX_TIMESTAMP", b"SYSDATE", b"NOW"];
    let is_word = |piece: &Piece<'_>| {
        piece.bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
    };
    let calls_others = rest.windows(2).any(|pair| match pair {
        [name, open] => open.is(b"(") && is_word(name) && !any(name, &once),
        _ => false,
    });
    let ends = rest.iter().position(|piece| piece.is(b";")).is_none_or(|at| at + 1 == rest.len());
    if !begins || !ends || calls_others || rest.iter().any(|piece| any(piece, &others)) {
        return None;
    }
    let mut asked = rest.iter().enumerate().filter(|(_, piece)| piece.is(b"GET_LOCK"));
    let (Some((at, _)), None) = (asked.next(), asked.next()) else { return None };
    let [open, name, comma] = rest.get(at + 1..at + 4)? else { return None };
    literal(*name).filter(|_| open.is(b"(") && comma.is(b","))
}

/// `'name'`, as it is written: two that are alike name the same lock. Beyond ASCII that depends on the
/// character set, which the client may have changed since.
fn literal(piece: Piece<'_>) -> Option<Box<[u8]>> {
    (piece.bytes.is_ascii() && matches!(piece.bytes, [b'\'', .., b'\''])).then(|| piece.bytes.into())
}

fn identifier_or_string(piece: Piece<'_>) -> Option<()> {
    let string = matches!(piece.bytes, [b'\'', .., b'\''] | [b'"', .., b'"']);
    (string || identifier(piece).is_some()).then_some(())
}

/// A word that may stand behind an expression and is no name.
fn is_clause(piece: &Piece<'_>) -> bool {
    let words: [&[u8]; 24] = [
        b"FROM", b"INTO", b"WHERE", b"GROUP", b"HAVING", b"ORDER", b"LIMIT", b"UNION", b"FOR", b"LOCK",
        b"AND", b"OR", b"XOR", b"DIV", b"MOD", b"IS", b"IN", b"LIKE", b"BETWEEN", b"NOT", b"REGEXP",
        b"RLIKE", b"COLLATE", b"OFFSET",
    ];
    any(piece, &words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Option<Act> {
        lock_asked(&mut Words::new(text.as_bytes()))
    }

    #[test]
    fn a_text_that_only_asks_for_a_lock() {
        for text in [
            "SELECT GET_LOCK('a', 10)",
            "select get_lock(concat('a', database()), ?) as `got`;",
            "SELECT /* x */ GET_LOCK('a',0) t1 FROM DUAL",
        ] {
            assert!(matches!(asked(text), Some(Act::TakesLock(_))), "{text}");
        }
        let name = || Box::from(b"'a'".as_slice());
        assert_eq!(asked("SELECT RELEASE_LOCK('a') AS 'it'"), Some(Act::FreesLock(Some(name()))));
        assert_eq!(asked("SELECT RELEASE_LOCK(concat('a'))"), Some(Act::FreesLock(None)));
        assert_eq!(asked("do release_lock( 'a' ) ;"), Some(Act::FreesSilently(name())));
        for text in [
            "SELECT GET_LOCK('a', 1), GET_LOCK('b', 1)",
            "SELECT GET_LOCK('a', 1) + 1",
            "SELECT GET_LOCK('a', 1) OR 1",
            "SELECT GET_LOCK('a', GET_LOCK('b', 1))",
            "SELECT GET_LOCK('a', 1) FROM t",
            "SELECT GET_LOCK('a', 1) WHERE 1",
            "SELECT NOT GET_LOCK('a', 1)",
            "SELECT GET_LOCK('a', 1) UNION SELECT 1",
            "SELECT GET_LOCK('a', 1) = 1",
            "DO GET_LOCK('a', 1)",
            "DO RELEASE_LOCK(?)",
            "DO RELEASE_LOCK('\u{e4}')",
            "DO RELEASE_LOCK('a'), RELEASE_LOCK('b')",
            "SELECT RELEASE_LOCK()",
        ] {
            assert_eq!(asked(text), None, "{text}");
        }
    }

    #[test]
    fn a_text_that_may_take_a_lock_once() {
        let tried = |text: &str| lock_tried(Words::new(text.as_bytes()));
        for text in [
            "SELECT IF(GET_LOCK('a', 0), UNIX_TIMESTAMP(SYSDATE(6)), NULL) AS acquired",
            "SELECT GET_LOCK('a', 1) = 1",
            "SELECT COALESCE(GET_LOCK('a', 1), 0), 1;",
            "SELECT GET_LOCK('a', 1) INTO @l",
            "SET @l = GET_LOCK('a', 1)",
            "DO GET_LOCK('a', 1)",
        ] {
            assert_eq!(tried(text).as_deref(), Some(&b"'a'"[..]), "{text}");
        }
        for text in [
            "SELECT GET_LOCK('a', 1), GET_LOCK('b', 1)",
            "SELECT GET_LOCK('a', 1) FROM t",
            "SELECT NULLIF(GET_LOCK('a', 1), 0)",
            "SELECT GREATEST(GET_LOCK('a', 1), 0)",
            "SELECT (SELECT GET_LOCK('a', 1))",
            "SELECT GET_LOCK('a', 1) ORDER BY 1",
            "SELECT IF(GET_LOCK('a', 1), RELEASE_LOCK('a'), 0)",
            "DO GET_LOCK(?, 1)",
            "DO GET_LOCK(@n, 1)",
            "SELECT GET_LOCK('a', 1); SELECT 1",
            "DO 1",
        ] {
            assert_eq!(tried(text), None, "{text}");
        }
    }

    #[test]
    fn a_lock_that_may_be_held_is_free_behind_its_release() {
        let name = || Box::from(b"'a'".as_slice());
        let mut held = Held::new();
        held.may_have_taken(name());
        assert!(!held.has_no_lock() && !held.settled(Some(b"'b'")) && !held.settled(None));
        assert!(held.settled(Some(b"'a'")) && held.has_no_lock());
        // Twice the same, or beside others of unknown names: nobody counts them.
        for before in [
            |held: &mut Held| held.may_have_taken(Box::from(b"'a'".as_slice())),
            |held: &mut Held| held.took(None, Some(true)),
        ] {
            let mut held = Held::new();
            before(&mut held);
            held.may_have_taken(name());
            held.settled(Some(b"'a'"));
            assert!(!held.has_no_lock());
        }
        let mut held = Held::new();
        held.may_have_taken(name());
        held.took(Some(name()), Some(true));
        held.settled(Some(b"'a'"));
        assert!(!held.has_no_lock());
    }

    #[test]
    fn rows_that_tell_one() {
        assert!(tells_one(b"\x011", false) && !tells_one(b"\x010", false) && !tells_one(b"\xfb", false));
        assert!(tells_one(&[0, 0, 1, 0, 0, 0], true) && tells_one(&[0, 0, 1, 0, 0, 0, 0, 0, 0, 0], true));
        assert!(!tells_one(&[0, 4], true) && !tells_one(&[0, 0, 0, 0, 0, 0], true));
    }

    #[test]
    fn too_many_names_are_unknown() {
        let mut names = Names::default();
        for n in 0..HELD_NAMES {
            names.add(Some(n.to_string().into_bytes().into()));
        }
        assert_ne!(names, Names::Unknown);
        names.add(Some(b"more".as_slice().into()));
        assert_eq!(names, Names::Unknown);
        names.remove(b"more");
        assert!(!names.is_empty());
    }
}
