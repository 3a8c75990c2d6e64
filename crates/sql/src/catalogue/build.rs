//! Builds the meaning of names from the rows of a catalogue.
//!
//! Each row is read when it arrives, and only its names are kept; at the end, everything that code calls,
//! selects from or writes to is followed through all levels.

use self::personal::Personal;
use super::code::{Code, Facts};
use super::{Anything, Catalogue, Doings, Meaning, NameKey, Names, SettingBits, SystemNames};
use crate::Dialect;
use crate::class::{SettingNames, Uses};
use crate::words::{Func, lookup};
use std::sync::Arc;
use weir_wire::Pin;
use weir_wire::limits::CATALOGUE_BYTES;

/// The language of a routine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// SQL statements.
    Sql,
    /// An expression, or several.
    Expression,
    /// PL/pgSQL.
    PlPgSql,
    /// MySQL's or MariaDB's stored programs.
    Routine,
    /// A compiled function, of PostgreSQL or of a library.
    Compiled,
    /// Any other: nobody reads it here.
    Other,
}

impl Language {
    /// PostgreSQL's name of it (`pg_language.lanname`).
    pub fn of_postgres(name: &[u8]) -> Language {
        match name {
            b"sql" => Language::Sql,
            b"plpgsql" => Language::PlPgSql,
            b"c" | b"internal" => Language::Compiled,
            _ => Language::Other,
        }
    }
}

/// What PostgreSQL was told of a function (`pg_proc.provolatile`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volatility {
    /// IMMUTABLE: its result depends on its arguments alone.
    Immutable,
    /// STABLE: it does not write, but may read anything.
    Stable,
    /// VOLATILE, the default.
    Volatile,
}

/// A routine of the catalogue.
#[derive(Debug, Clone, Copy)]
pub struct Function<'a> {
    /// Its name, without schema.
    pub name: &'a [u8],
    /// What its body is written in.
    pub language: Language,
    /// As it was declared. Matters for compiled functions only; bodies are read.
    pub volatility: Volatility,
    /// The extension it came with; empty if with none.
    pub extension: &'a [u8],
    /// Its text.
    pub body: &'a [u8],
}

/// When code that belongs to a relation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// Whenever it is mentioned.
    Read,
    /// When it is written to.
    Write,
}

/// Extensions whose compiled functions leave nothing in their session, whatever their volatility, but for
/// those of
/// [`TRACES`]: they only compute, or make random values.
const QUIET: &[&[u8]] = &[
    b"address_standardizer",
    b"btree_gin",
    b"btree_gist",
    b"citext",
    b"cube",
    b"earthdistance",
    b"fuzzystrmatch",
    b"hstore",
    b"intarray",
    b"isn",
    b"ltree",
    b"pg_trgm",
    b"pgcrypto",
    b"postgis",
    b"postgis_raster",
    b"postgis_topology",
    b"seg",
    b"unaccent",
    b"uuid-ossp",
    b"vector",
];

/// Their functions that leave something after all.
const TRACES: &[&[u8]] = &[b"set_limit", b"postgis_cache_bbox", b"isn_weak"];

/// One thing of the catalogue, before what it mentions is followed.
#[derive(Debug)]
struct Thing {
    key: NameKey,
    on: On,
    is_function: bool,
    facts: Facts,
}

/// What `Thing`s are collected for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Name,
    /// A name that is an operator's.
    Operator,
    Ambient,
    /// In any text that writes.
    Written,
    Ddl,
}

/// Takes a catalogue row by row.
#[derive(Debug)]
pub struct Builder {
    dialect: Dialect,
    things: Vec<(Place, Thing)>,
    system: Vec<(NameKey, bool)>,
    /// The version of the server that has these.
    version: Box<[u8]>,
    /// The same, from a reading before this one.
    known_system: Option<Arc<SystemNames>>,
    variables: Names<()>,
    personal: Personal,
    bytes: usize,
    blind: bool,
}

impl Builder {
    /// Of a database that reads texts like this by default.
    pub fn new(dialect: Dialect) -> Builder {
        Builder {
            dialect,
            things: Vec::new(),
            system: Vec::new(),
            version: Box::default(),
            known_system: None,
            variables: Names::default(),
            personal: Personal::default(),
            bytes: 0,
            blind: false,
        }
    }

    /// Something could not be read: every name may stand for anything.
    pub fn is_incomplete(&mut self) {
        self.blind = true;
    }

    /// The server has this version. `known`: its functions, which then do not come again.
    pub fn of_version(&mut self, version: &[u8], known: Option<Arc<SystemNames>>) {
        (self.version, self.known_system) = (version.into(), known);
    }

    /// A function that every database of this version has. `settled`: all of this name are IMMUTABLE.
    pub fn system_function(&mut self, name: &[u8], settled: bool) {
        self.count(name.len());
        self.system.push((NameKey::of(name), settled));
    }

    /// A system variable of MySQL: a body that assigns to it changes its session. Where none is known, any
    /// may be one.
    pub fn system_variable(&mut self, name: &[u8]) {
        self.count(name.len());
        self.variables.insert(NameKey::of(name), ());
    }

    /// A function, procedure or aggregate.
    pub fn function(&mut self, function: Function<'_>) {
        self.count(function.name.len() + function.body.len());
        if !self.blind && !self.dialect.is_mysql() {
            self.personal.function(&function, self.things.len());
        }
        let facts = match function.language {
            Language::Sql | Language::Expression | Language::PlPgSql | Language::Routine => {
                let mut facts = self.read(function.language, function.body);
                // What it leaves is known by its body. Whether its value is the same for all is not asked.
                facts.own.varies = true;
                facts
            }
            Language::Compiled => Facts::own(compiled(&function)),
            Language::Other => self.unread(function.body),
        };
        self.add(Place::Name, NameKey::of(function.name), On::Read, true, facts);
    }

    /// Code that may do anything. On MySQL it was made under another `sql_mode` (ANSI, ORACLE), by which
    /// quotes and backslashes mean something else: what it asks of its session, which is its client's, is
    /// what it asks by any of these readings.
    fn unread(&self, text: &[u8]) -> Facts {
        let mut facts = Facts::own(not_read());
        let Dialect::MySql { mariadb, encoding, .. } = self.dialect else { return facts };
        if text.is_empty() {
            return facts;
        }
        for (ansi_quotes, no_backslash_escapes) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let dialect = Dialect::MySql { ansi_quotes, no_backslash_escapes, mariadb, encoding };
            facts.add(Code::read(dialect, Language::Routine, text));
        }
        facts
    }

    /// A text that runs when a relation or type of this name is read or written: a policy, a default, a
    /// constraint, a trigger's body.
    pub fn text_of(&mut self, relation: &[u8], on: On, language: Language, text: &[u8]) {
        self.count(relation.len() + text.len());
        if on == On::Read {
            self.personal.relation(relation);
        }
        let facts = self.read(language, text);
        self.add(Place::Name, NameKey::of(relation), on, false, facts);
    }

    /// A view. Who writes to it writes to what its query reads, where the database lets views be written to.
    pub fn view(&mut self, view: &[u8], language: Language, query: &[u8]) {
        self.count(view.len() + query.len());
        self.personal.relation(view);
        let facts = self.read(language, query);
        let written = Facts { writes: true, ..facts.clone() };
        self.add(Place::Name, NameKey::of(view), On::Read, false, facts);
        self.add(Place::Name, NameKey::of(view), On::Write, false, written);
    }

    /// A text that may run whenever a function of this name is called: the defaults of its arguments.
    pub fn function_text(&mut self, function: &[u8], text: &[u8]) {
        self.count(function.len() + text.len());
        let facts = self.read(Language::Expression, text);
        self.add(Place::Name, NameKey::of(function), On::Read, true, facts);
    }

    /// A setting that a function has for as long as it runs: `name=value`.
    pub fn function_setting(&mut self, function: &[u8], setting: &[u8]) {
        self.count(function.len() + setting.len());
        let mut facts = Facts::default();
        let mut parts = setting.splitn(2, |&byte| byte == b'=');
        let name = parts.next().unwrap_or_default();
        if std::str::from_utf8(name).is_ok_and(crate::decides_plans) {
            facts.own.uses.insert(Uses::CODE_READS_OTHERWISE);
        }
        if name.eq_ignore_ascii_case(b"seed") {
            // The value goes back, and what it has set does not.
            facts.own.uses.insert(Uses::SEED);
            facts.own.pins.insert(Pin::Setting);
            facts.touched.sets.add("seed");
        }
        if name.eq_ignore_ascii_case(b"search_path") && may_create_temporary(parts.next().unwrap_or_default())
        {
            facts.temporary_path = true;
            facts.names.push(NameKey::of(function));
        }
        if name.contains(&b'.') {
            match std::str::from_utf8(name) {
                Ok(name) => facts.touched.tells.add(name),
                Err(_) => facts.touched.tells.add_any(),
            }
        }
        self.add(Place::Name, NameKey::of(function), On::Read, false, facts);
    }

    /// A function that runs where a text has this operator.
    pub fn operator(&mut self, operator: &[u8], function: &[u8]) {
        self.count(operator.len() + function.len());
        self.personal.unnamed(function);
        let facts = self.calling(function);
        self.add(Place::Operator, NameKey::of_operator(operator), On::Read, true, facts);
    }

    /// A function that runs when a relation is written: its trigger's.
    pub fn trigger_of(&mut self, relation: &[u8], function: &[u8]) {
        self.count(relation.len() + function.len());
        let facts = Facts::calling(NameKey::of(function));
        self.add(Place::Name, NameKey::of(relation), On::Write, false, facts);
    }

    /// Who writes to one relation writes to the other: its partition, or rows that refer to it.
    pub fn reaches(&mut self, relation: &[u8], other: &[u8]) {
        self.count(relation.len() + other.len());
        let facts = Facts::writing(NameKey::of(other));
        self.add(Place::Name, NameKey::of(relation), On::Write, false, facts);
    }

    /// Who reads one relation reads the other: its partition, or what inherits from it.
    pub fn reads(&mut self, relation: &[u8], other: &[u8]) {
        self.count(relation.len() + other.len());
        let facts = Facts { names: vec![NameKey::of(other)], ..Facts::default() };
        self.add(Place::Name, NameKey::of(relation), On::Read, false, facts);
    }

    /// A relation whose rows come from elsewhere: nobody knows what reading it does there.
    pub fn foreign(&mut self, relation: &[u8]) {
        self.count(relation.len());
        self.personal.relation(relation);
        let facts = Facts::own(Doings { impure: true, ..Doings::default() });
        self.add(Place::Name, NameKey::of(relation), On::Read, false, facts);
    }

    /// A relation of which a column is computed when it is read, and may be another each time.
    pub fn varying(&mut self, relation: &[u8]) {
        self.count(relation.len());
        let facts = Facts::own(Doings { varies: true, ..Doings::default() });
        self.add(Place::Name, NameKey::of(relation), On::Read, false, facts);
    }

    /// PostgreSQL: who writes to this relation may draw from a sequence, by a column's default.
    pub fn draws(&mut self, relation: &[u8]) {
        self.count(relation.len());
        let facts = Facts { names: vec![NameKey::of(b"nextval")], ..Facts::own(drawing()) };
        self.add(Place::Name, NameKey::of(relation), On::Write, false, facts);
    }

    /// The same of any relation: by a type's default.
    pub fn type_draws(&mut self) {
        self.add(Place::Written, NameKey::UNREADABLE, On::Read, false, Facts::own(drawing()));
    }

    /// A type's default: it runs where a row is written, of whatever relation.
    pub fn type_default(&mut self, text: &[u8]) {
        self.count(text.len());
        let facts = self.read(Language::Expression, text);
        self.add(Place::Written, NameKey::UNREADABLE, On::Read, false, facts);
    }

    /// A function that may run without being named: an operator's, a cast's.
    pub fn ambient(&mut self, function: &[u8]) {
        self.count(function.len());
        self.personal.unnamed(function);
        let facts = self.calling(function);
        self.add(Place::Ambient, NameKey::UNREADABLE, On::Read, false, facts);
    }

    /// A text that may run without being named: a domain's constraint.
    pub fn ambient_text(&mut self, text: &[u8]) {
        self.count(text.len());
        self.personal.unnamed_text(text);
        let facts = self.read(Language::Expression, text);
        self.add(Place::Ambient, NameKey::UNREADABLE, On::Read, false, facts);
    }

    /// The function of an event trigger.
    pub fn event_trigger(&mut self, function: &[u8]) {
        self.count(function.len());
        let facts = Facts::calling(NameKey::of(function));
        self.add(Place::Ddl, NameKey::UNREADABLE, On::Read, false, facts);
    }

    fn count(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.blind |= self.bytes > CATALOGUE_BYTES;
    }

    fn read(&mut self, language: Language, text: &[u8]) -> Facts {
        match language {
            _ if self.blind => Facts::own(Doings::unknown()),
            Language::Other => self.unread(text),
            Language::Compiled => Facts::own(Doings::unknown()),
            Language::Sql | Language::Expression | Language::PlPgSql | Language::Routine => {
                Code::read(self.dialect, language, text)
            }
        }
    }

    /// A function is called by its operator or cast. The database's own may be one that leaves something.
    fn calling(&mut self, function: &[u8]) -> Facts {
        let mut facts = Facts { writes: false, ..Facts::calling(NameKey::of(function)) };
        let known = lookup(function).postgres;
        if !matches!(known, Func::Unknown | Func::Harmless | Func::Varies | Func::Syntax) {
            facts.add(self.read(Language::Expression, &[function, b"()"].concat()));
        }
        facts
    }

    fn add(&mut self, place: Place, key: NameKey, on: On, is_function: bool, mut facts: Facts) {
        if !self.blind {
            if !self.dialect.is_mysql() && facts.touched.changes(crate::decides_plans) {
                facts.own.uses.insert(Uses::CODE_READS_OTHERWISE);
            }
            self.things.push((place, Thing { key, on, is_function, facts }));
        }
    }

    /// Everything has come.
    pub fn finish(mut self) -> Catalogue {
        if self.blind {
            return Catalogue::blind();
        }
        let mut names: Names<Meaning> = Names::default();
        let system = self.known_system.take().unwrap_or_else(|| {
            let (version, names) = (std::mem::take(&mut self.version), std::mem::take(&mut self.system));
            Arc::new(SystemNames::new(version, names))
        });
        for &(key, _) in &system.names {
            names.entry(key).or_default().is_system = true;
        }
        for at in std::mem::take(&mut self.personal).settle(&system) {
            if let Some((_, thing)) = self.things.get_mut(at) {
                thing.facts.own.uses.insert(Uses::CODE_IS_PERSONAL);
            }
        }
        if !self.dialect.is_mysql() {
            // An update of this view sets settings, or puts them back.
            let sets = Doings {
                impure: true,
                pins: Pin::Setting.into(),
                uses: Uses::ROLE,
                settings: SettingBits {
                    resets: SettingBits::OTHER,
                    sets: SettingBits::OTHER,
                    ..SettingBits::default()
                },
                ..Doings::default()
            };
            names.entry(NameKey::of(b"pg_settings")).or_default().write.add(sets);
        }
        let mut settings = Vec::new();
        for (_, thing) in &mut self.things {
            thing.facts.name_settings(&mut settings);
        }
        for (place, thing) in &mut self.things {
            let unheard = self.variables.is_empty();
            thing.facts.settle_assignments(|key| unheard || self.variables.contains_key(&key));
            if matches!(place, Place::Name | Place::Operator) {
                let meaning = names.entry(thing.key).or_default();
                meaning.is_made |= thing.is_function;
                let side = if thing.on == On::Read { &mut meaning.read } else { &mut meaning.write };
                side.add(thing.facts.own);
            }
        }
        // What is not a name of this catalogue can be left out of what is followed.
        for (_, thing) in &mut self.things {
            thing.facts.resolve_calls(&names);
            thing.facts.names.retain(|key| names.contains_key(key));
        }
        let outlives = |thing: &Thing| thing.facts.own.uses.contains(Uses::OUTLIVES_RESET);
        let has_unread = self.things.iter().any(|(_, thing)| outlives(thing));
        let anything = follow(&self.things, &mut names);
        // A text that names the view itself says whether it updates it; only views over it and code need
        // this.
        let settings_view = NameKey::of(b"pg_settings");
        if !self.things.iter().any(|(_, thing)| thing.key == settings_view) {
            names.remove(&settings_view);
        }
        let system = Some(system).filter(|system| !system.names.is_empty());
        let mut catalogue =
            Catalogue { names, settings, anything, has_unread, system, ..Catalogue::default() };
        for (place, thing) in &self.things {
            let reached = thing.facts.reached(&catalogue.names, anything);
            match place {
                Place::Name | Place::Written => {}
                Place::Operator => catalogue.has_operators |= !reached.is_pure() || reached.varies,
                Place::Ambient => catalogue.ambient.add(reached),
                Place::Ddl => {
                    catalogue.has_event_triggers = true;
                    catalogue.on_ddl.add(reached);
                }
            }
        }
        catalogue
    }
}

/// Lets everything do what all that it mentions does, until nothing changes. What something does only grows,
/// and is a few bits, so the rounds are few.
fn follow(things: &[(Place, Thing)], names: &mut Names<Meaning>) -> Anything {
    let named = || things.iter().filter(|(place, _)| matches!(place, Place::Name | Place::Operator));
    let mut anything = Anything::default();
    loop {
        let mut changed = false;
        for (_, thing) in named() {
            let reached = thing.facts.reached(names, anything);
            let Some(meaning) = names.get_mut(&thing.key) else { continue };
            let side = if thing.on == On::Read { &mut meaning.read } else { &mut meaning.write };
            let before = *side;
            side.add(reached);
            changed |= *side != before;
            anything.names.add(reached);
            if !thing.is_function {
                anything.relations.add(reached);
            }
        }
        for (_, thing) in things.iter().filter(|(place, _)| *place == Place::Written) {
            let before = anything.written;
            anything.written.add(thing.facts.reached(names, anything));
            changed |= anything.written != before;
        }
        if !changed {
            return anything;
        }
    }
}

/// What a column's default does that draws from a sequence.
fn drawing() -> Doings {
    Doings { uses: Uses::CODE_WRITES, ..Doings::default() }
}

/// What is created under this search_path may be temporary: nothing that is surely there stands in front of
/// `pg_temp`.
fn may_create_temporary(path: &[u8]) -> bool {
    let mut parts = path.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let first = parts.find(|part| *part != b"\"$user\"").unwrap_or_default();
    first.windows(7).any(|part| part.eq_ignore_ascii_case(b"pg_temp"))
}

/// It is compiled, and known to leave nothing.
fn is_quiet(function: &Function<'_>) -> bool {
    QUIET.contains(&function.extension) && !TRACES.contains(&function.name)
}

/// What a compiled function does, which nobody can read.
fn compiled(function: &Function<'_>) -> Doings {
    match function.volatility {
        // Who declares so of compiled code has the server believe it, too.
        Volatility::Immutable if !TRACES.contains(&function.name) => Doings::default(),
        // Random values and keys among them: run twice, nobody can tell.
        Volatility::Stable | Volatility::Volatile if is_quiet(function) => {
            Doings { varies: true, ..Doings::default() }
        }
        // It may run SQL it is given (crosstab).
        Volatility::Immutable | Volatility::Stable | Volatility::Volatile => not_read(),
    }
}

/// What code may do that is compiled, or in a language which is not read here.
fn not_read() -> Doings {
    let mut doings = Doings::unknown();
    doings.uses.insert(Uses::OUTLIVES_RESET);
    doings
}

impl Facts {
    fn own(own: Doings) -> Facts {
        Facts { own, ..Facts::default() }
    }

    fn calling(function: NameKey) -> Facts {
        // What a trigger's function does it does in the midst of a write.
        Facts { names: vec![function], calls: vec![function], writes: true, ..Facts::default() }
    }

    fn writing(relation: NameKey) -> Facts {
        Facts { names: vec![relation], writes: true, ..Facts::default() }
    }

    /// Calls of functions that nobody has heard of may do anything; those of the system leave nothing.
    pub(super) fn resolve_calls(&mut self, names: &Names<Meaning>) {
        if self
            .trusted
            .iter()
            .any(|key| names.get(key).is_some_and(|meaning| meaning.is_made || !meaning.is_system))
        {
            self.own.add(Doings::unknown());
        }
        for meaning in self.calls.drain(..).map(|key| names.get(&key)) {
            match meaning {
                Some(meaning) if meaning.is_function() => self.own.impure |= meaning.is_system,
                _ => self.own.add(Doings::unknown()),
            }
        }
    }

    /// Gives each setting that it touches a bit; `names` is what the bits stand for.
    fn name_settings(&mut self, names: &mut Vec<Box<str>>) {
        let touched = std::mem::take(&mut self.touched);
        let mut bits = |touched: &SettingNames| {
            let mut bits = if touched.is_any() { SettingBits::OTHER } else { 0 };
            for name in touched.iter() {
                let at = names.iter().position(|known| **known == *name).unwrap_or(names.len());
                if at == names.len() && at < SettingBits::NAMED {
                    names.push(name.into());
                }
                bits |= if at < SettingBits::NAMED { 1 << at } else { SettingBits::OTHER };
            }
            bits
        };
        let (resets, tells) = (bits(&touched.resets), bits(&touched.tells));
        let (reads, sets) = (bits(&touched.reads), bits(&touched.sets));
        let variables = bits(&touched.variables);
        self.own.settings.resets |= resets;
        self.own.settings.tells |= tells;
        self.own.settings.reads |= reads;
        self.own.settings.sets |= sets;
        self.own.settings.variables |= variables;
    }

    /// Assignments to local variables leave nothing; those to system variables change the session.
    fn settle_assignments(&mut self, is_system: impl Fn(NameKey) -> bool) {
        if self.assigned.drain(..).any(is_system) {
            self.own.pins.insert(Pin::Setting);
            self.own.impure = true;
        }
    }

    /// What everything that it mentions does, and itself.
    pub(super) fn reached(&self, names: &Names<Meaning>, anything: Anything) -> Doings {
        let mut all = self.own;
        if self.any_relation {
            all.add(anything.relations);
        }
        if self.any_name {
            all.add(anything.names);
        }
        for meaning in self.names.iter().filter_map(|key| names.get(key)) {
            all.add(meaning.read);
            if self.writes {
                all.add(meaning.write);
            }
        }
        if self.writes {
            all.add(anything.written);
        }
        if self.temporary_path && all.ddl {
            all.pins.insert(Pin::TemporaryTable);
        }
        all
    }
}

mod personal;
#[cfg(test)]
mod tests;
