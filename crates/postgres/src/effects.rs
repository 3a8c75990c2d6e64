//! What a text leaves behind in its session, and what a session has left behind so far.
//!
//! Owns: [`Effects`], a class of the lexer reduced to what the PostgreSQL wing acts on, and [`Traces`], the
//! sum of the effects that succeeded. Must not know: messages, queues.
//!
//! Invariant: in doubt a trace is kept. Removing one too early could give a client another client's answer.

#[cfg(test)]
mod tests;
mod text;

use self::text::{
    asks_sequence, changes_accounts, changes_code, draws, is_of_transaction, is_planned, is_read_late,
    may_free, may_set, only_changes, only_drops, only_plain, runs_user_code, says, sets_amid,
    what_is_prepared,
};
use crate::role::{AUTHORIZATION, ROLE};
use std::cell::RefCell;
use std::sync::{Arc, LazyLock};
use weir_sql::catalogue::{Knowledge, Proof, UnknownCode};
use weir_sql::{Class, Clears, Dialect, Locks, Memo, Scope, Touched, Transaction, Uses, Verb, classify_in};
use weir_sql::{decides_plans, decides_reading};
use weir_wire::{Pin, Pins};

/// Whether a text draws from a sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Draws {
    #[default]
    No,
    /// Only where it writes to a temporary table: those that the catalogue knows draw nothing.
    Temporary,
    /// It may: an INSERT does where a column has such a default.
    May,
    /// It says so: `nextval()`, `setval()`.
    Outright,
}

impl Draws {
    /// Of a client that has no temporary tables, as far as is known, or may have some.
    #[inline]
    pub fn of_a_client(self, has_no_temporary: bool) -> Draws {
        match self {
            Draws::Temporary if has_no_temporary => Draws::No,
            Draws::Temporary => Draws::May,
            draws => draws,
        }
    }
}

/// What a text does to its session if it succeeds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Effects {
    /// Reasons to stay on the server. `Setting` counts only for names that are not followed.
    pub pins: Pins,
    /// Reasons that are gone.
    pub releases: Pins,
    /// Statements that clear much at once.
    pub clears: Clears,
    /// Session locks taken.
    pub takes: Locks,
    /// Session locks freed.
    pub frees: Locks,
    /// It only reads, leaves no trace and asks nothing about earlier requests.
    pub shareable: bool,
    /// Whoever asks it before it begins to run, with the same settings, may be given the same answer.
    pub alike: bool,
    /// PostgreSQL plans it. Its result keeps the columns that it had when it was prepared, or fails; those of
    /// others (FETCH, SHOW, EXECUTE, CALL) are what they are when it runs.
    pub is_planned: bool,
    /// PostgreSQL reads what is in it when it runs, and not before: nothing has to be as it was when it was
    /// prepared.
    pub is_read_late: bool,
    /// It may change settings, if only until the transaction ends: what is prepared behind it may be read
    /// otherwise.
    pub may_set: bool,
    /// Asks `currval()` or `lastval()`, by its own words or by code of users.
    pub asks_sequence: bool,
    pub draws: Draws,
    /// Has transaction control: what it or its neighbours clear may come back in the same request.
    pub controls: bool,
    /// Says how its transaction is to be: nothing of Weir's may run in front of it there.
    pub characteristics: bool,
    /// May change the role, which RESET ALL leaves as it is.
    pub role: bool,
    /// What it does with settings beyond setting them.
    pub touched: Option<Arc<Touched>>,
    /// It begins a sequence of random numbers, which nothing ends but the session.
    pub seeds: bool,
    /// It may free what was left before: locks, temporary objects, cursors, channels.
    pub may_free: bool,
    /// It may put `pg_temp` into the search path.
    pub temporary_path: bool,
    /// It reads where settings come from.
    pub setting_source: bool,
    /// The names of a lone SET or RESET, when all were understood; else the pin stands.
    pub names: Option<Box<[SetName]>>,
    /// The name of a lone `DEALLOCATE name`.
    pub deallocates: Option<Box<str>>,
    /// The name of a lone `EXECUTE name`.
    pub executes: Option<Box<str>>,
    /// What is prepared in its session, and under which names, may bear on it. A lone `EXECUTE name` or
    /// `DEALLOCATE name` is not meant.
    pub statement_names: bool,
    /// It is a lone statement that drops all prepared ones.
    pub ends_names: bool,
    /// It may change the catalogue.
    pub ddl: bool,
    /// And what code of users does.
    pub changes_code: bool,
    /// It runs code of users, which is read once in each session, under the settings of that moment.
    pub runs_code: bool,
    /// What is only prepared may run code already.
    pub runs_when_parsed: bool,
    /// Some of what it runs may be read under settings that its client has before and behind it no more.
    pub reads_otherwise: bool,
    /// The same of what plans may hold ([`decides_plans`]).
    pub plans_otherwise: bool,
    /// Code that it runs asks about the session, and PostgreSQL is told that its value is always the same:
    /// the first one's is in the plan.
    pub is_personal: bool,
    /// It may execute statements by name, beside or within others.
    pub runs_names: bool,
    /// What its only PREPARE prepares, by what is known now.
    pub prepares: Option<Arc<Effects>>,
    /// It may add an object to it, where the search path says.
    pub creates: bool,
    /// It may give code to what has had none, or other code: it does more than to drop things.
    pub gives_code: bool,
    /// It may change what a new session begins with, or who may have one: roles, what is set for them or for
    /// databases.
    pub accounts: bool,
    /// The catalogue was not known when it was judged: user code in it may do more than is said here.
    pub doubtful: bool,
    /// What it leaves may outlive DISCARD ALL ([`weir_sql::Uses::OUTLIVES_RESET`]).
    pub outlives: bool,
    /// It would pin for this reason, and the operator refuses that: it is not sent.
    pub refused: Option<Pin>,
}

/// One name of a SET or RESET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetName {
    /// In lower case.
    pub name: Box<str>,
    /// RESET, or SET TO DEFAULT.
    pub reset: bool,
    /// SET LOCAL.
    pub local: bool,
}

/// By what a text is judged: how its client writes, and what is known of its database.
#[derive(Debug, Clone, Copy)]
pub struct Judge<'a> {
    /// How texts are read.
    pub dialect: Dialect,
    /// What the names in them stand for.
    pub knowledge: &'a Knowledge,
    /// The client has changed code in a transaction that has not ended: what is known of the others' does not
    /// hold for it.
    pub changed_code: bool,
}

thread_local! {
    /// Of texts that do nothing an operator decides about: what they do, and their fingerprints.
    static MEMO: RefCell<Memo<(Arc<Effects>, u32)>> = RefCell::default();
}

impl Judge<'_> {
    /// What a text does, its fingerprint, and the state of the catalogue that this was judged by.
    pub fn text(self, text: &[u8]) -> (Arc<Effects>, u32, u64) {
        if self.changed_code {
            let (effects, class, state) = self.read(text);
            return (self.decided(effects), class.fingerprint as u32, state);
        }
        let known = MEMO.with_borrow_mut(|memo| memo.find(self.dialect, self.knowledge, text));
        if let Some(((effects, fingerprint), state)) = known {
            if cfg!(debug_assertions) {
                let again = self.read(text);
                // Unless the catalogue has changed in between.
                let same = again.0 == effects && again.1.fingerprint as u32 == fingerprint;
                assert!(again.2 != state || same, "{}", String::from_utf8_lossy(text));
            }
            return (effects, fingerprint, state);
        }
        let (effects, class, state) = self.read(text);
        let fingerprint = class.fingerprint as u32;
        if class.is_of_any_numbers() {
            let value = || (Arc::clone(&effects), fingerprint);
            MEMO.with_borrow_mut(|memo| memo.keep(self.dialect, self.knowledge, state, value));
        }
        (self.decided(effects), fingerprint, state)
    }

    /// The same of a text that is not known.
    fn read(self, text: &[u8]) -> (Arc<Effects>, Class, u64) {
        let known = self.knowledge.proof();
        if !self.changed_code {
            return Effects::of_text(self.dialect, text, known);
        }
        let read = Effects::of_text(self.dialect, text, known.clone());
        // What is only named does not run; `CREATE TABLE ... AS SELECT f()` runs it.
        if read.1.only_defines {
            read
        } else {
            Effects::of_text(self.dialect, text, known.map(Proof::changed))
        }
    }

    /// What the operator has decided of the reasons for pins in a text.
    #[inline]
    fn decided(self, effects: Arc<Effects>) -> Arc<Effects> {
        if effects.pins.is_empty() {
            return effects;
        }
        let policies = self.knowledge.pin_policies();
        if policies.is_default() {
            return effects;
        }
        let (refused, pins) = (policies.refuses(effects.pins), policies.without_passed(effects.pins));
        if refused.is_none() && pins == effects.pins {
            return effects;
        }
        // Locks that nobody keeps a server for are not counted either.
        let takes = if pins.contains(Pin::SessionLock) { effects.takes } else { Locks::default() };
        Arc::new(Effects { refused, pins, takes, ..Effects::clone(&effects) })
    }

    /// The state that texts are judged by now.
    #[inline]
    pub fn state(self) -> u64 {
        if self.changed_code { 0 } else { self.knowledge.state() }
    }
}

/// A setting by which PL/pgSQL compiles a function, once for as long as the session lasts: no reset has it
/// compiled again.
fn is_compiled_in(name: &str) -> bool {
    name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("plpgsql."))
}

impl Effects {
    /// It says that it sets, or takes back, what decides how literals are read.
    pub fn sets_reading(&self) -> bool {
        self.clears_all() || self.sets_what(decides_reading)
    }

    /// The same of what a plan may hold something of.
    pub fn sets_plans(&self) -> bool {
        self.role || self.clears_all() || self.sets_what(decides_plans)
    }

    /// It says so in a form that is not followed word by word.
    fn touches(&self, decides: fn(&str) -> bool) -> bool {
        self.touched.as_deref().is_some_and(|touched| touched.changes_by_name(decides))
    }

    fn sets_what(&self, decides: fn(&str) -> bool) -> bool {
        self.names.iter().flatten().any(|set| decides(&set.name))
    }

    fn clears_all(&self) -> bool {
        self.clears.intersects(Clears::DISCARD_ALL | Clears::RESET_ALL)
    }

    /// Of a whole text, with its class in a database of this catalogue; and the state by which it was judged.
    pub fn of_text(dialect: Dialect, text: &[u8], proof: Option<Proof>) -> (Arc<Effects>, Class, u64) {
        let policy = proof.as_ref().map_or(UnknownCode::Pin, |proof| proof.unknown_code);
        let proof_of_prepared = proof.clone();
        let (class, state) = classify_in(dialect, text, proof);
        let mut effects = Effects::of_class(&class);
        if effects.ddl && changes_accounts(&class, text) {
            effects = Arc::new(Effects { accounts: true, ..Effects::clone(&effects) });
        }
        if changes_code(&class, text) {
            let mut changes = Effects::clone(&effects);
            changes.changes_code = true;
            effects = Arc::new(changes);
        } else if effects.ddl {
            // IMPORT FOREIGN SCHEMA brings defaults.
            let gives_code = says(text, "import") || effects.gives_code && !only_plain(&class, text);
            if gives_code != effects.gives_code {
                effects = Arc::new(Effects { gives_code, ..Effects::clone(&effects) });
            }
        }
        if sets_amid(&class, text, decides_plans) {
            let reads_otherwise = effects.reads_otherwise || sets_amid(&class, text, decides_reading);
            let plans_otherwise = true;
            effects = Arc::new(Effects { reads_otherwise, plans_otherwise, ..Effects::clone(&effects) });
        }
        if class.statement_names {
            let prepares = what_is_prepared(dialect, &class, text, proof_of_prepared);
            let runs_names = says(text, "execute");
            effects = Arc::new(Effects { prepares, runs_names, ..Effects::clone(&effects) });
        }
        if class.verb == Verb::Create
            && class.statements == 1
            && says(text, "concurrently")
            && !says(text, "as")
        {
            effects = Arc::new(Effects { is_read_late: true, ..Effects::clone(&effects) });
        }
        if effects.changes_code && class.statements > 1 && !class.only_defines {
            // What stands behind it may run what nobody has read.
            let mut made = Effects::clone(&effects);
            match policy {
                UnknownCode::Pin => {
                    made.statement_names = true;
                    made.pins.insert(Pin::Code);
                }
                UnknownCode::Reset => made.doubtful = true,
                UnknownCode::Pass => {}
            }
            effects = Arc::new(made);
        }
        (effects, class, state)
    }

    /// Of a class. Texts without effects share one value.
    pub fn of_class(class: &Class) -> Arc<Effects> {
        let mut pins = class.pins;
        let draws = draws(class);
        if class.touched().is_some_and(|touched| touched.tells.is_any()) {
            // Which setting its server knows from now on is not known, so no other one can be told of it.
            pins.insert(Pin::Setting);
        }
        let names = class.set().filter(|set| set.complete).map(|set| {
            set.assignments
                .iter()
                .filter(|a| a.scope != Scope::Global)
                .map(|a| SetName {
                    name: a.name.as_str().into(),
                    reset: a.default,
                    local: a.scope == Scope::Transaction || is_of_transaction(&a.name),
                })
                .collect()
        });
        let alone = class.statements == 1;
        let deallocates =
            (alone && class.verb == Verb::Deallocate && !class.clears.contains(Clears::DEALLOCATE_ALL))
                .then(|| class.name().map(Into::into))
                .flatten();
        let executes = (alone && class.verb == Verb::Execute).then(|| class.name().map(Into::into)).flatten();
        let drops_all = Clears::DEALLOCATE_ALL | Clears::DISCARD_ALL;
        // Only what user code may change: a temporary table without defaults and checks runs none. A view
        // over code that makes one is none, nor what only mentions `pg_temp`, as functions do in their search
        // path.
        let temporary = class.pins.contains(Pin::TemporaryTable)
            && !class.code.contains(Pin::TemporaryTable)
            && class.makes_no_code;
        let ddl = class.ddl && !(alone && temporary && class.proven);
        let shareable = class.proven
            && class.only_reads()
            && pins.is_empty()
            && class.touched().is_none()
            && draws != Draws::Outright
            && !class.statement_names;
        let effects = Effects {
            pins,
            releases: class.releases,
            clears: class.clears,
            takes: class.takes,
            frees: class.frees,
            shareable,
            alike: shareable && class.is_alike(),
            is_planned: is_planned(class.verb),
            is_read_late: alone && is_read_late(class.verb),
            may_set: may_set(class),
            asks_sequence: asks_sequence(class),
            draws,
            controls: class.uses.intersects(Uses::TRANSACTION),
            characteristics: matches!(
                class.transaction,
                Some(Transaction::Begin { plain: false, .. } | Transaction::SetTransaction)
            ),
            role: class.uses.intersects(Uses::ROLE),
            touched: class.touched().map(|touched| Arc::new(touched.clone())),
            seeds: class.uses.intersects(Uses::SEED),
            may_free: may_free(class),
            temporary_path: class.uses.intersects(Uses::TEMPORARY_PATH),
            setting_source: class.uses.intersects(Uses::SETTING_SOURCE),
            names,
            deallocates,
            executes,
            accounts: false,
            statement_names: class.statement_names || pins.contains(Pin::Code),
            ends_names: alone && class.clears.intersects(drops_all),
            ddl,
            changes_code: false,
            // What code in the text itself calls is not known one by one.
            runs_code: (class.user_code || !class.foreseen || class.uses.contains(Uses::BLOCK))
                && runs_user_code(class),
            runs_when_parsed: class.uses.contains(Uses::CODE_OF_LITERALS) && runs_user_code(class),
            reads_otherwise: class.uses.contains(Uses::CODE_READS_OTHERWISE),
            plans_otherwise: class.uses.contains(Uses::CODE_READS_OTHERWISE),
            is_personal: class.uses.contains(Uses::CODE_IS_PERSONAL),
            runs_names: false,
            prepares: None,
            creates: ddl && !(alone && only_changes(class.verb)),
            gives_code: ddl && !(alone && only_drops(class.verb)),
            doubtful: class.unknown_code == UnknownCode::Reset
                || (!class.proven || (class.ddl && !alone)) && runs_user_code(class),
            outlives: class.uses.contains(Uses::OUTLIVES_RESET),
            refused: None,
        };
        thread_local! {
            static PLAIN: [Arc<Effects>; 16] = {
                let planned = || Effects { is_planned: true, ..Effects::default() };
                [
                    Arc::new(Effects { shareable: true, alike: true, ..planned() }),
                    Arc::new(Effects { shareable: true, ..planned() }),
                    Arc::new(Effects { draws: Draws::Temporary, ..planned() }),
                    Arc::new(Effects { draws: Draws::Temporary, may_set: true, ..planned() }),
                    Arc::new(Effects { draws: Draws::May, ..planned() }),
                    Arc::new(Effects { controls: true, ..Effects::default() }),
                    Arc::new(planned()),
                    Arc::new(Effects { draws: Draws::May, may_set: true, ..planned() }),
                    Arc::new(Effects { draws: Draws::May, may_set: true, ..Effects::default() }),
                    Arc::new(Effects::default()),
                    Arc::new(Effects { doubtful: true, ..planned() }),
                    Arc::new(Effects { doubtful: true, draws: Draws::May, ..planned() }),
                    Arc::new(Effects { may_free: true, ..planned() }),
                    Arc::new(Effects { may_free: true, draws: Draws::May, may_set: true, ..planned() }),
                    Arc::new(Effects { may_free: true, doubtful: true, draws: Draws::May, may_set: true, ..planned() }),
                    Arc::new(Effects { may_free: true, draws: Draws::May, may_set: true, ..Effects::default() }),
                ]
            };
        }
        PLAIN.with(|plain| match plain.iter().find(|known| ***known == effects) {
            Some(known) => Arc::clone(known),
            None => Arc::new(effects),
        })
    }

    /// What it does in a request that has its text: nothing if that is refused.
    #[inline]
    pub fn if_sent(&self) -> &Effects {
        static NOTHING: LazyLock<Effects> = LazyLock::new(Effects::default);
        if self.refused.is_some() { &NOTHING } else { self }
    }

    /// Settings go back to the server's defaults, which are not those of a client that named some.
    pub fn resets_settings(&self) -> bool {
        self.clears.intersects(Clears::DISCARD_ALL | Clears::RESET_ALL)
            || self.names.as_deref().is_some_and(|names| names.iter().any(|set| set.reset))
    }

    /// The settings that a lone RESET puts back, for the session.
    pub(crate) fn resets(&self) -> impl Iterator<Item = &str> {
        let named =
            || self.names.iter().flatten().filter(|set| set.reset && !set.local).map(|set| &*set.name);
        // It takes the role away, too.
        let role = named().any(|name| name == AUTHORIZATION).then_some(ROLE);
        named().chain(role)
    }

    /// This setting goes back to the server's own value.
    pub fn resets_name(&self, name: &str) -> bool {
        self.clears.intersects(Clears::DISCARD_ALL | Clears::RESET_ALL)
            || self.names.iter().flatten().any(|set| set.reset && set.name.eq_ignore_ascii_case(name))
    }

    /// Among other statements this setting may go back, and nothing in the text gives it a value.
    pub fn puts_back(&self, name: &str) -> bool {
        let is_read = ![Pin::Code, Pin::Unrecognised].into_iter().any(|pin| self.pins.contains(pin));
        let touched = self.touched.as_deref().filter(|_| is_read && self.names.is_none());
        touched.is_some_and(|touched| touched.resets.may_contain(name) && !touched.gives.may_contain(name))
    }

    /// By the names in its text, these are all that it may set; not those of a lone SET.
    fn sets_only(&self, which: impl Fn(&str) -> bool) -> bool {
        let sets = self.touched.as_deref().map(|touched| &touched.sets);
        sets.is_some_and(|sets| !sets.is_empty() && !sets.is_any() && sets.iter().all(which))
    }

    /// It may give this parameter another value.
    pub fn may_set_name(&self, name: &str) -> bool {
        match &self.names {
            Some(names) if !self.role => names
                .iter()
                // SET SESSION CHARACTERISTICS stands for parameters of other names.
                .any(|set| {
                    set.name.eq_ignore_ascii_case(name) || &*set.name == "transaction characteristics"
                }),
            _ => self.may_set,
        }
    }

    /// It has dropped all that was prepared, and nothing brings it back or has prepared anything behind it.
    /// `settled`: it ran outside of a transaction.
    pub fn ends_names_now(&self, settled: bool) -> bool {
        self.ends_names && (settled || self.clears.contains(Clears::DEALLOCATE_ALL))
    }

    /// All prepared statements of the server are gone afterwards.
    pub fn drops_all_statements(&self) -> bool {
        self.clears.intersects(Clears::DISCARD_ALL | Clears::DEALLOCATE_ALL)
    }

    /// Nothing changes in the session.
    pub fn is_nothing(&self) -> bool {
        !self.ddl
            && !self.doubtful
            && !self.seeds
            && !self.temporary_path
            && !self.may_free
            && !self.may_set
            && self.pins.is_empty()
            && self.releases.is_empty()
            && self.clears.is_empty()
            && self.takes.is_empty()
            && self.frees.is_empty()
            && self.names.is_none()
            && self.deallocates.is_none()
            && self.executes.is_none()
            && !self.statement_names
            && self.touched.as_deref().is_none_or(|touched| touched.tells.is_empty())
    }

    /// What may be left of it although it failed: what no ROLLBACK takes back.
    pub fn of_failure(&self) -> Option<Arc<Effects>> {
        let mut pins = self.pins;
        for transactional in [Pin::Setting, Pin::TemporaryTable, Pin::Listen, Pin::Cursor, Pin::SqlPrepare] {
            pins.remove(transactional);
        }
        let seeds = self.seeds;
        let left = Effects { pins, takes: self.takes, seeds, ..Effects::default() };
        // What it may have left can be asked.
        (!left.is_nothing()).then(|| Arc::new(Effects { may_free: self.may_free, ..left }))
    }

    /// What may be left of a statement that is only bound: functions and domains run while it is planned, and
    /// SQL may fetch from the portal.
    pub fn leaves_when_bound(self: &Arc<Effects>) -> Option<Arc<Effects>> {
        (self.is_planned && !self.pins.is_empty()).then(|| Arc::clone(self))
    }

    /// These effects and those of what it executes.
    pub fn and(&self, other: &Effects) -> Effects {
        let mut both = self.clone();
        both.pins.union(other.pins);
        both.ddl |= other.ddl;
        both.changes_code |= other.changes_code;
        both.runs_code |= other.runs_code;
        both.reads_otherwise |= other.reads_otherwise;
        both.plans_otherwise |= other.plans_otherwise;
        both.is_personal |= other.is_personal;
        both.runs_when_parsed |= other.runs_when_parsed;
        both.runs_names |= other.runs_names;
        both.creates |= other.creates;
        both.gives_code |= other.gives_code;
        both.doubtful |= other.doubtful;
        both.outlives |= other.outlives;
        both.accounts |= other.accounts;
        both.releases.union(other.releases);
        both.clears.insert(other.clears);
        both.takes.insert(other.takes);
        both.frees.insert(other.frees);
        both.names = self.names.clone().or_else(|| other.names.clone());
        both.may_set |= other.may_set;
        both.draws = self.draws.max(other.draws);
        both.controls |= other.controls;
        both.characteristics |= other.characteristics;
        both.role |= other.role;
        both.seeds |= other.seeds;
        both.may_free |= other.may_free;
        both.temporary_path |= other.temporary_path;
        both.setting_source |= other.setting_source;
        if let Some(touched) = &other.touched {
            let mut all = both.touched.as_deref().cloned().unwrap_or_default();
            all.add_all(touched);
            both.touched = Some(Arc::new(all));
        }
        both.statement_names |= other.statement_names;
        both.ends_names &= other.ends_names;
        both.deallocates = self.deallocates.clone().or_else(|| other.deallocates.clone());
        both
    }
}

/// How sure it is that the effects of a text will stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// No transaction was open before and none is now: they stay.
    Settled,
    /// A ROLLBACK may take back what is transactional.
    InTransaction,
    /// An error came in the same request: what it left may be there, what it cleared may be back.
    Doubtful,
}

/// What a session has left on its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traces {
    pins: Pins,
    locks: Locks,
    /// `SET ROLE`, `SET SESSION AUTHORIZATION` or what may be one, which RESET ALL does not undo, and of
    /// which the server has not said yet what it came to.
    role: bool,
    /// Statements have their client's own names on the server.
    names: bool,
    /// `last_result` is there only until the next request that asks for nothing.
    soft: bool,
    /// The server was opened for this client, which has left something there.
    home: bool,
    /// Reasons that nothing takes away: not even a full reset of the server.
    lasting: Pins,
}

impl Traces {
    /// Why the server must stay.
    #[inline]
    pub fn pins(&self) -> Pins {
        self.pins
    }

    /// It has left nothing at all.
    pub fn is_empty(&self) -> bool {
        *self == Traces::default()
    }

    /// A reason that does not come from a text.
    pub fn pin(&mut self, pin: Pin) {
        self.pins.insert(pin);
    }

    /// This reason is gone.
    pub fn unpin(&mut self, pin: Pin) {
        let stays = self.lasting.contains(pin) || (self.home && pin == Pin::Setting);
        if !stays {
            self.pins.remove(pin);
        }
        if pin == Pin::SessionLock {
            self.locks = Locks::NONE;
        }
        self.role &= pin != Pin::Setting;
    }

    /// This reason stands, and a server can be asked whether what it speaks of is still there.
    pub fn asks_for(&self, pin: Pin) -> bool {
        let only_advisory = || !self.locks.is_empty() && Locks::ADVISORY.contains(self.locks);
        // What else keeps the server may give names at any time.
        let only_names = || {
            self.names
                && ![Pin::Code, Pin::Unrecognised, Pin::Prepared]
                    .iter()
                    .any(|&other| self.pins.contains(other))
        };
        self.pins.contains(pin)
            && (pin != Pin::SessionLock || only_advisory())
            && (pin != Pin::SqlPrepare || only_names())
    }

    /// The next request may ask what this one has drawn from a sequence; any other takes this reason away.
    pub fn pin_softly(&mut self) {
        self.soft |= !self.pins.contains(Pin::LastResult);
        self.pins.insert(Pin::LastResult);
    }

    /// Takes away what [`Traces::pin_softly`] gave.
    #[inline]
    pub fn soften(&mut self) {
        if std::mem::take(&mut self.soft) {
            self.pins.remove(Pin::LastResult);
        }
    }

    /// There is no reason but that of [`Traces::pin_softly`].
    pub fn is_soft(&self) -> bool {
        self.soft && self.pins == Pins::from(Pin::LastResult)
    }

    /// The reasons without that of [`Traces::pin_softly`].
    pub fn firm_pins(&self) -> Pins {
        let mut pins = self.pins;
        if self.soft {
            pins.remove(Pin::LastResult);
        }
        pins
    }

    /// The server has statements under the names that their client gave them: both stay together.
    pub fn hold_names(&mut self) {
        self.names = true;
        self.pins.insert(Pin::SqlPrepare);
    }

    /// There are none after all.
    pub fn forget_names(&mut self) {
        self.names = false;
        self.pins.remove(Pin::SqlPrepare);
    }

    /// See [`Traces::hold_names`].
    pub fn holds_names(&self) -> bool {
        self.names
    }

    /// Nothing is left behind (DISCARD ALL).
    pub fn clear(&mut self) {
        *self = Traces { pins: self.lasting, lasting: self.lasting, ..Traces::default() };
    }

    /// The server is this client's until it leaves or nothing is left (DISCARD ALL), and nobody's afterwards.
    pub fn stay_home(&mut self) {
        self.home = true;
        self.pins.insert(Pin::Setting);
    }

    /// See [`Traces::stay_home`].
    pub fn is_home(&self) -> bool {
        self.home
    }

    /// No answer of the server takes this away.
    pub fn is_lasting(&self) -> bool {
        self.home || !self.lasting.is_empty()
    }

    /// A text succeeded. `followed` says of a setting whether its value moves with the client.
    pub fn apply(&mut self, effects: &Effects, outcome: Outcome, followed: impl Fn(&str) -> bool) {
        let settled = outcome == Outcome::Settled;
        if settled && effects.clears.contains(Clears::DISCARD_ALL) {
            self.clear();
        }
        if outcome != Outcome::Doubtful {
            self.release(effects, settled);
        }
        let mut pins = effects.pins;
        if let Some(names) = &effects.names {
            pins.remove(Pin::Setting);
            for set in names.iter().filter(|set| !set.local) {
                if !set.reset && !followed(&set.name) {
                    pins.insert(Pin::Setting);
                }
            }
        } else if !effects.role && effects.sets_only(&followed) {
            pins.remove(Pin::Setting);
        }
        // RESET ROLE and its kin leave something behind only where something was. Only the server's word or
        // DISCARD ALL takes it away: each of them may be rolled back, and one does not undo the other.
        let only_resets = effects.names.as_deref().is_some_and(|names| names.iter().all(|set| set.reset));
        if effects.role && !only_resets {
            self.role = true;
            pins.insert(Pin::Setting);
        }
        if effects.seeds || effects.sets_what(is_compiled_in) || effects.touches(is_compiled_in) {
            self.lasting.insert(Pin::Setting);
            pins.insert(Pin::Setting);
        }
        if effects.pins.contains(Pin::Load) {
            self.lasting.insert(Pin::Load);
        }
        if effects.outlives {
            let of_it = [Pin::Code, Pin::Unrecognised, Pin::Replication, Pin::SessionLock];
            of_it.into_iter().filter(|pin| pins.contains(*pin)).for_each(|pin| self.lasting.insert(pin));
        }
        pins.union(self.lasting);
        self.soft &= !pins.contains(Pin::LastResult);
        self.locks.insert(effects.takes);
        self.pins.union(pins);
    }

    fn release(&mut self, effects: &Effects, settled: bool) {
        // These do not come back with a ROLLBACK.
        const AT_ONCE: [Pin; 2] = [Pin::SqlPrepare, Pin::LastResult];
        self.names &= !effects.ends_names_now(settled);
        for pin in effects.releases.iter() {
            let stays = pin == Pin::SessionLock
                || (pin == Pin::Setting && (self.role || self.home))
                || (pin == Pin::SqlPrepare && self.names);
            if !stays && (settled || AT_ONCE.contains(&pin)) {
                self.pins.remove(pin);
            }
        }
        if effects.clears.contains(Clears::DEALLOCATE_ALL) {
            if !self.names {
                self.pins.remove(Pin::SqlPrepare);
            }
            self.pins.remove(Pin::Prepared);
        }
        if effects.clears.contains(Clears::DISCARD_SEQUENCES) {
            self.pins.remove(Pin::LastResult);
        }
        if settled && effects.clears.contains(Clears::RESET_ALL) && !self.role && !self.home {
            self.pins.remove(Pin::Setting);
        }
        if settled && effects.clears.contains(Clears::UNLISTEN_ALL) {
            self.pins.remove(Pin::Listen);
        }
        if settled && effects.clears.contains(Clears::DISCARD_TEMP) {
            self.pins.remove(Pin::TemporaryTable);
        }
        if !effects.frees.is_empty() {
            self.locks.remove(effects.frees);
            if self.locks.is_empty() {
                self.pins.remove(Pin::SessionLock);
            }
        }
    }
}
