//! Reads the body of a routine, a view's query or an expression: what it does itself, and which names it
//! mentions.
//!
//! A body is split into its statements, and each is read like a text of a client (`recognise`). Words of the
//! procedural language that begin something else than a statement are read as if they were SELECT: only the
//! calls in them matter. A string that PL/pgSQL runs is read by itself (`dynamic`).
//!
//! Invariant: a construct that is not understood counts as code that may do anything.

use super::build::Language;
use super::dynamic::Dynamic;
use super::handled::{Handled, Within};
use super::made::Made;
use super::strings::Strings;
use super::{Doings, NameKey};
use crate::Dialect;
use crate::class::{Clears, Touched, Uses, Verb};
use crate::lex::Lexer;
use crate::recognise::Recogniser;
use crate::token::{Kind, Sink, Token};
use crate::words::{Word, lookup};
use weir_wire::limits::CODE_FACTS;
use weir_wire::{Pin, Pins};

/// What is known of a piece of code by itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// What it does, without what it mentions.
    pub own: Doings,
    /// Every word in it.
    pub names: Vec<NameKey>,
    /// Functions it calls that are not among the harmless built-in ones.
    pub calls: Vec<NameKey>,
    /// Names it assigns to, of which it is not known whether they are variables of the system (MySQL).
    pub assigned: Vec<NameKey>,
    /// It has statements that write.
    pub writes: bool,
    /// What it does with settings of PostgreSQL, by their names.
    pub touched: Touched,
    /// It may make code that the rest of it runs.
    pub makes_code: bool,
    /// It may end transactions: what it has left by then stays, also when the rest of it fails.
    pub commits: bool,
    /// Functions and operators that must be the database's own, or anything may be done.
    pub trusted: Vec<NameKey>,
    /// It names relations that nobody knows.
    pub any_relation: bool,
    /// It names things that nobody knows, functions among them.
    pub any_name: bool,
    /// It runs under a search_path by which what it creates may be temporary.
    pub temporary_path: bool,
}

impl Facts {
    /// It does all of this as well.
    pub(super) fn add(&mut self, other: Facts) {
        self.own.add(other.own);
        self.names.extend(other.names);
        self.calls.extend(other.calls);
        self.assigned.extend(other.assigned);
        self.writes |= other.writes;
        self.touched.add_all(&other.touched);
        self.commits |= other.commits;
        self.makes_code |= other.makes_code;
        self.trusted.extend(other.trusted);
        self.any_relation |= other.any_relation;
        self.any_name |= other.any_name;
        self.temporary_path |= other.temporary_path;
    }
}

/// Whose rows MySQL's FOUND_ROWS() and ROW_COUNT() tell of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// Those of a statement before the code: none of its own has begun.
    Before,
    /// The first is one that counts its own, whatever comes of it.
    First,
    /// Those of a statement of the code.
    Own,
    /// It depends on how the code runs.
    Unsure,
}

/// Cuts code into statements.
#[derive(Debug)]
pub(super) struct Code {
    recogniser: Recogniser,
    language: Language,
    /// A statement begins with the next token.
    begins: bool,
    /// Parentheses open.
    depth: u32,
    /// Tokens of the current statement, up to 255.
    tokens: u8,
    /// The statement is not SQL: it was begun with a SELECT that does not stand there.
    made_up: bool,
    /// Between `<<` and `>>`.
    label: bool,
    last: Word,
    last_kind: Kind,
    /// `DECLARE ... HANDLER FOR`: a statement follows the conditions.
    handler: Handled,
    within: Within,
    /// What its statements ask of the one before, and whether one does that is not in a handler.
    asks: Uses,
    asks_outside: bool,
    /// Between DECLARE and BEGIN (PL/pgSQL).
    declares: bool,
    /// The statement begins with a word behind which only a variable's value can be meant (PL/pgSQL).
    assigns: bool,
    /// The statement begins with a word that a parenthesis, or a comment, stands behind.
    may_call: bool,
    /// CASE expressions that are open: behind their THEN and ELSE no statement begins.
    cases: u32,
    /// The last word may have a query behind it: RETURN QUERY, FOR ... IN, OPEN ... FOR (PL/pgSQL).
    before_query: bool,
    /// The statement gives or takes rights: its EXECUTE runs nothing.
    grants: bool,
    /// The statement creates or alters something, and what.
    defines: bool,
    made: Made,
    /// What its statements did before the current one.
    pins_before: Pins,
    /// What MySQL's FOUND_ROWS() and ROW_COUNT() tell of here.
    counts: Counts,
    facts: Facts,
    /// The string that is run (PL/pgSQL), while it is read, and what those before it do.
    dynamic: Option<Dynamic>,
    ran: Facts,
}

/// A whole text is read.
struct Reader<'a> {
    code: Code,
    dialect: Dialect,
    text: &'a [u8],
    strings: Strings,
}

impl Code {
    /// Reads a whole text.
    pub(super) fn read(dialect: Dialect, language: Language, text: &[u8]) -> Facts {
        let mut lexer = Lexer::new(dialect);
        let code = Code {
            recogniser: Recogniser::of_code(dialect),
            language,
            begins: true,
            depth: 0,
            tokens: 0,
            made_up: false,
            label: false,
            last: Word::Name,
            last_kind: Kind::None,
            handler: Handled::Nothing,
            within: Within::default(),
            asks: Uses::NONE,
            asks_outside: false,
            declares: false,
            assigns: false,
            may_call: false,
            cases: 0,
            before_query: false,
            grants: false,
            defines: false,
            made: Made::Nothing,
            pins_before: Pins::NONE,
            counts: Counts::Before,
            facts: Facts::default(),
            dynamic: None,
            ran: Facts::default(),
        };
        let mut reader = Reader { code, dialect, text, strings: Strings::default() };
        lexer.feed(text, &mut reader);
        lexer.finish(&mut reader);
        let mut code = reader.code;
        code.end_statement();
        if code.dynamic.is_some() {
            code.unknown();
        }
        let Code { mut recogniser, mut facts, ran, counts, asks, asks_outside, .. } = code;
        if lexer.lent_stays {
            recogniser.lent_stays();
        }
        let (mut class, noted, alone) = recogniser.finish_code();
        class.uses.insert(asks);
        if asks_outside {
            facts.own.uses.insert(Uses::CODE_WARNINGS);
        }
        facts.names = noted.names;
        facts.calls = noted.calls;
        let overflow =
            [facts.names.len(), facts.calls.len(), facts.assigned.len()].iter().any(|&n| n >= CODE_FACTS);
        // Executable comments hold code for some versions only.
        if lexer.doubtful || lexer.executable || class.doubtful || overflow {
            facts.own.add(Doings::unknown());
        }
        if let Some(touched) = class.touched() {
            facts.touched = touched.clone();
        }
        // What is cleared in the midst of code is more than what Weir knows to be there.
        if !class.clears.is_empty() {
            facts.own.add(Doings::unknown());
        }
        if class.clears.intersects(Clears::RESET_ALL | Clears::DISCARD_ALL) {
            facts.touched.resets.add_any();
        }
        if class.pins.contains(Pin::Setting) && facts.touched.sets.is_empty() {
            facts.touched.sets.add_any();
        }
        facts.own.varies |= class.varies;
        facts.own.pins.union(class.pins);
        facts.own.takes.insert(class.takes);
        // What it asks of its session is its client's: who runs it must find that there.
        let of_client = [
            Uses::LAST_INSERT_ID,
            Uses::LAST_INSERT_ID_SET,
            Uses::USER_VARIABLE_READ,
            Uses::USER_VARIABLE_WRITE,
        ];
        for uses in
            [Uses::ROLE, Uses::NEXTVAL, Uses::SETVAL, Uses::SEED, Uses::TEMPORARY_PATH, Uses::MAINTAINS]
                .into_iter()
                .chain([Uses::OUTLIVES_RESET])
                .chain(of_client)
        {
            if class.uses.contains(uses) {
                facts.own.uses.insert(uses);
            }
        }
        let none = Uses::default();
        let [row_count, found_rows] = match counts {
            Counts::Own => [none; 2],
            Counts::Before | Counts::First | Counts::Unsure => [Uses::CODE_ROW_COUNT, Uses::CODE_FOUND_ROWS],
        };
        for (uses, of_code) in [
            (Uses::ROW_COUNT, row_count),
            // Of ROW_COUNT, perhaps.
            (Uses::DIAGNOSTICS, row_count),
            (Uses::FOUND_ROWS, found_rows),
            (Uses::CONNECTION_ID, Uses::CODE_CONNECTION_ID),
            (Uses::TRACKERS, Uses::CODE_TRACKERS),
        ] {
            if class.uses.contains(uses) {
                facts.own.uses.insert(of_code);
            }
        }
        facts.commits = class.uses.contains(Uses::TRANSACTION) && !dialect.is_mysql();
        if class.uses.contains(Uses::BLOCK) || (facts.commits && !class.pins.is_empty()) {
            facts.own.add(Doings::unknown());
        }
        facts.own.ddl |= class.ddl;
        facts.any_relation |= noted.any_relation;
        facts.own.statement_names |= class.statement_names || class.uses.contains(Uses::SQL_PREPARE);
        facts.writes |= class.uses.contains(Uses::WITH_WRITES);
        if !dialect.is_mysql() {
            if class.uses.intersects(Uses::CURRVAL | Uses::LASTVAL) {
                facts.own.uses.insert(Uses::CODE_ASKS_SEQUENCE);
            }
            if facts.writes || class.uses.intersects(Uses::NEXTVAL | Uses::SETVAL) {
                facts.own.uses.insert(Uses::CODE_WRITES);
            }
        }
        let alone_by =
            Uses::ROW_LOCK | Uses::SLEEP | Uses::LAST_INSERT_ID | Uses::LAST_INSERT_ID_SET | Uses::TRACKERS;
        facts.own.impure |= alone || facts.writes || facts.own.ddl || class.uses.intersects(alone_by);
        facts.add(ran);
        if facts.names.len() >= CODE_FACTS || facts.commits && !facts.own.pins.is_empty() {
            facts.own.add(Doings::unknown());
        }
        facts.names.sort_unstable_by_key(|key| key.0);
        facts.names.dedup();
        facts
    }

    fn unknown(&mut self) {
        self.facts.own.add(Doings::unknown());
    }

    fn is_routine(&self) -> bool {
        self.language == Language::Routine
    }

    fn end_statement(&mut self) {
        let set = self.recogniser.end_code_statement();
        if self.counts == Counts::First {
            let asks = Uses::ROW_COUNT | Uses::FOUND_ROWS | Uses::DIAGNOSTICS;
            self.counts = if self.recogniser.uses_any(asks) { Counts::Unsure } else { Counts::Own };
        }
        if let Some((verb, target)) = set {
            let leaves = matches!(
                verb,
                Verb::Insert
                    | Verb::Replace
                    | Verb::Set
                    | Verb::Begin
                    | Verb::Commit
                    | Verb::Rollback
                    | Verb::Savepoint
                    | Verb::Release
                    | Verb::RollbackTo
                    | Verb::Create
                    | Verb::Alter
                    | Verb::Drop
                    | Verb::Truncate
                    | Verb::Get
            );
            if !self.made_up && !leaves {
                self.facts.own.uses.insert(Uses::CODE_SELECTS);
            }
            if !self.made_up && !reads_only(verb) {
                self.facts.writes = true;
            }
            // Heard twice, if it runs twice.
            self.facts.own.impure |= verb == Verb::Notify;
            // Which channels its session hears is its client's.
            if matches!(verb, Verb::Deallocate | Verb::Execute | Verb::Unlisten) && !self.is_routine() {
                self.unknown();
            }
            if matches!(verb, Verb::Set | Verb::Reset) {
                self.assignment(target);
            }
        }
        if std::mem::take(&mut self.cases) > 0 {
            // Some word was taken for another one: what stood behind it may have been statements.
            self.unknown();
        }
        self.before_query = false;
        let asks = self.recogniser.take_uses(Uses::WARNINGS | Uses::DIAGNOSTICS);
        self.asks_outside |= !asks.is_empty() && !self.within.is_in();
        self.asks.insert(asks);
        self.within.end_statement();
        self.pins_before = self.recogniser.pins();
        self.facts.makes_code |= std::mem::take(&mut self.made).is_code();
        self.begins = true;
        self.tokens = 0;
        self.made_up = false;
        self.handler = Handled::Nothing;
        self.depth = 0;
    }

    /// SET or RESET: what it leaves.
    fn assignment(&mut self, target: Option<crate::SetTarget>) {
        let Some(target) = target.filter(|target| target.complete) else { return };
        if target.assignments.iter().any(|set| is_role(&set.name)) {
            self.facts.own.uses.insert(Uses::ROLE);
            if self.is_routine() {
                // No tracker tells of a role. Or a local variable has that name.
                self.facts.own.add(Doings::unknown());
                return;
            }
        }
        // `SET NEW.a = ...` in a trigger sets a column of the row.
        let of_row = |set: &crate::Assignment| set.name.starts_with("new.");
        let local = |set: &crate::Assignment| {
            set.scope == crate::Scope::Session && (!set.name.contains('.') || of_row(set))
        };
        if self.is_routine() && target.user_variables.is_empty() && target.assignments.iter().all(local) {
            // Names without a scope are local variables, unless the system has one of that name.
            // What the values do is done all the same.
            if !self.pins_before.contains(Pin::Setting) {
                self.recogniser.take_back(Pin::Setting);
            }
            let variables = target.assignments.iter().filter(|set| !of_row(set));
            let keys = variables.map(|set| NameKey::of(set.name.as_bytes()));
            self.facts.assigned.extend(keys.take(CODE_FACTS));
        }
    }

    /// The first token of a statement. True: it is not part of one.
    fn begin(&mut self, token: &Token<'_>, word: Word) -> bool {
        if self.label {
            self.label = !(is_sign(token, b'>') && self.last_kind == Kind::Operator);
            return true;
        }
        if self.language == Language::PlPgSql && is_sign(token, b'<') {
            self.label = true;
            return true;
        }
        let between = [Word::Begin, Word::Declare, Word::Else, Word::Then, Word::Loop, Word::Repeat];
        let in_block = match self.language {
            Language::Sql => word == Word::Begin,
            Language::Expression => false,
            Language::PlPgSql | Language::Routine | Language::Compiled | Language::Other => true,
        };
        if token.kind == Kind::Word && in_block && between.contains(&word) {
            // In MySQL DECLARE begins a declaration, elsewhere a row of them.
            if !(word == Word::Declare && self.is_routine()) {
                self.declares = word == Word::Declare || self.declares && word != Word::Begin;
                return true;
            }
        }
        if token.kind == Kind::Word && word == Word::Atomic {
            return true;
        }
        self.begins = false;
        let is_variable = self.language == Language::PlPgSql && (self.declares || self.assigns);
        let word = if is_variable { Word::Name } else { word };
        self.defines = matches!(word, Word::Create | Word::Alter);
        self.made = Made::by(word);
        self.grants = matches!(word, Word::Grant | Word::Revoke);
        self.made_up = self.language == Language::Expression
            || !(token.kind == Kind::Word && self.is_statement(word)) && token.kind != Kind::Open;
        if self.counts == Counts::Before && word != Word::Declare {
            let counts = self.is_routine() && word == Word::Select && !self.made_up;
            self.counts = if counts { Counts::First } else { Counts::Unsure };
        }
        if self.made_up {
            self.recogniser.token(made_up_select(token.start));
            // RETURN, IF, PERFORM, a variable or a label: no function, whatever parenthesis follows. Any
            // other name in front of one is a call in an expression that was not seen to go on.
            let calls = self.may_call && word == Word::Name && !is_keyword(token);
            if self.language != Language::Expression && token.kind == Kind::Word && !calls {
                self.tokens = 1;
                return true;
            }
        }
        false
    }

    /// A statement of SQL begins with this word.
    fn is_statement(&self, word: Word) -> bool {
        let plpgsql = self.language == Language::PlPgSql;
        match word {
            Word::Name | Word::If | Word::While | Word::For | Word::Case | Word::End | Word::Open => false,
            // In MySQL its variables may be the session's.
            Word::Get => !plpgsql,
            // A cursor of PL/pgSQL's own; in SQL it may outlive its transaction.
            Word::Fetch | Word::Move | Word::Close | Word::Declare => self.language == Language::Sql,
            Word::Continue => false,
            Word::Exit | Word::Signal | Word::Resignal | Word::Loop | Word::Repeat => false,
            // PL/pgSQL: a string is run. See `dynamic`.
            Word::Execute => !plpgsql,
            _ => true,
        }
    }

    /// Behind this word a statement may begin.
    fn splits_behind(&self, word: Word) -> bool {
        self.depth == 0
            && self.cases == 0
            && match self.language {
                Language::PlPgSql => matches!(word, Word::Then | Word::Else | Word::Loop | Word::Begin),
                Language::Routine => {
                    matches!(
                        word,
                        Word::Then | Word::Else | Word::Loop | Word::Repeat | Word::Do | Word::Begin
                    )
                }
                Language::Sql | Language::Expression | Language::Compiled | Language::Other => false,
            }
    }
}

impl Sink for Reader<'_> {
    fn token(&mut self, token: Token<'_>) {
        let code = &mut self.code;
        if code.begins && code.language == Language::PlPgSql {
            code.assigns = token.kind == Kind::Word && is_assigned(self.text, token.end);
        }
        if code.begins {
            code.may_call = token.kind == Kind::Word && is_called(self.text, token.end);
        }
        let is_whole = code.dynamic.as_mut().is_some_and(|dynamic| dynamic.token(&token, self.text));
        if is_whole {
            let strings = &mut self.strings;
            let facts = code.dynamic.take().and_then(|dynamic| match dynamic.variable() {
                Some(name) => strings.facts(self.dialect, self.text, name),
                None => dynamic.facts(self.dialect),
            });
            match facts {
                Some(facts) => code.ran.add(facts),
                None => code.unknown(),
            }
        }
        code.token(token);
    }
}

impl Code {
    fn token(&mut self, token: Token<'_>) {
        let word = if token.kind == Kind::Word { lookup(token.text).word } else { Word::Name };
        if word == Word::Select && self.is_routine() {
            self.facts.own.uses.insert(Uses::CODE_SELECTS);
        }
        if matches!(word, Word::Signal | Word::Resignal) && self.is_routine() {
            self.facts.own.uses.insert(Uses::RAISES);
        }
        self.within.token(word, self.begins);
        if [&b"returned_sqlstate"[..], b"class_origin", b"subclass_origin"]
            .iter()
            .any(|asked| token.text.eq_ignore_ascii_case(asked))
        {
            self.facts.own.uses.insert(Uses::CODE_STATES);
        }
        if token.kind == Kind::Semicolon {
            self.end_statement();
            self.last = Word::Name;
            self.last_kind = token.kind;
            return;
        }
        let runs_string =
            self.language == Language::PlPgSql && word == Word::Execute && (self.begins || !self.grants);
        if runs_string && self.dynamic.replace(Dynamic::new()).is_some() {
            self.unknown();
        }
        let skipped = self.begins && self.begin(&token, word);
        // It executes a string, and no statement that has this name.
        if !(skipped || runs_string && self.made_up) {
            self.inside(token, word);
        }
        self.last = word;
        self.last_kind = token.kind;
    }

    fn inside(&mut self, token: Token<'_>, word: Word) {
        match token.kind {
            Kind::Open => self.depth += 1,
            Kind::Close => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        let may_query = matches!(self.language, Language::PlPgSql | Language::Sql);
        if self.made_up && may_query && self.begins_query(&token, word) {
            self.end_statement();
            self.assigns = false;
            // The query of a cursor stands among the declarations.
            let declares = std::mem::take(&mut self.declares);
            let skipped = self.begin(&token, word);
            self.declares = declares;
            if !skipped {
                self.recogniser.token(token);
                self.tokens = 1;
            }
            return;
        }
        // `label: LOOP`
        if self.is_routine() && token.kind == Kind::Colon && self.tokens == 1 {
            self.end_statement();
            return;
        }
        // PL/pgSQL: SELECT ... INTO variables.
        if self.language == Language::PlPgSql
            && word == Word::Into
            && !matches!(self.last, Word::Insert | Word::Merge)
        {
            return;
        }
        if self.counts == Counts::First && matches!(word, Word::Into | Word::Union) {
            self.counts = Counts::Unsure;
        }
        if self.is_routine()
            && word == Word::Handler
            && matches!(self.last, Word::Continue | Word::Exit | Word::Undo)
        {
            // The code goes on where the first statement has failed.
            self.counts = Counts::Unsure;
            self.handler = Handled::For;
        } else if self.handler.ends_before(&token, word) {
            self.end_statement();
            self.within.begin(word);
            let skipped = self.begin(&token, word);
            if !skipped {
                self.recogniser.token(token);
                self.tokens = 1;
            }
            return;
        }
        self.count_cases(word);
        if self.tokens > 0 && token.kind == Kind::Word && self.splits_behind(word) {
            self.end_statement();
            return;
        }
        self.tokens = self.tokens.saturating_add(1);
        if self.tokens > 1 {
            self.made = self.made.token(&token, word);
        }
        if self.defines && self.tokens < 5 && matches!(word, Word::Function | Word::Procedure) {
            // What stands behind it may call what nobody has read.
            self.unknown();
        }
        self.recogniser.token(token);
    }

    /// CASE and END of expressions, in the languages that have statements of the same words. Names may be so
    /// behind a dot and behind AS.
    fn count_cases(&mut self, word: Word) {
        let is_name = self.last_kind == Kind::Dot || self.last_kind == Kind::Word && self.last == Word::As;
        if self.tokens == 0 || is_name || !matches!(self.language, Language::PlPgSql | Language::Routine) {
            return;
        }
        match word {
            Word::Case if self.last == Word::End && self.last_kind == Kind::Word => {}
            Word::Case => self.cases = self.cases.saturating_add(1),
            Word::End => self.cases = self.cases.saturating_sub(1),
            _ => {}
        }
    }

    /// A statement that is not SQL has a query in it, which this word begins and which may write: it is read
    /// by itself. Where such a word stands elsewhere, the code counts as one that writes.
    fn begins_query(&mut self, token: &Token<'_>, word: Word) -> bool {
        let is_word = token.kind == Kind::Word && self.last_kind != Kind::Dot;
        let behind = std::mem::take(&mut self.before_query);
        let is_in = token.text.eq_ignore_ascii_case(b"in");
        self.before_query = is_word && (matches!(word, Word::Query | Word::For) || is_in);
        let writes = is_word && matches!(word, Word::Insert | Word::Update | Word::Delete | Word::Merge);
        let locks_rows = word == Word::Update && self.last == Word::For;
        if behind && is_word && self.depth == 0 && !locks_rows && (writes || word == Word::With) {
            return true;
        }
        self.facts.writes |= writes && !locks_rows;
        false
    }
}

/// What stands behind a word that begins a statement of PL/pgSQL makes it a variable: no statement of SQL
/// begins so. With a comment between them it is not seen.
fn is_assigned(text: &[u8], end: u64) -> bool {
    let behind = usize::try_from(end).ok().and_then(|end| text.get(end..)).unwrap_or_default();
    match behind.trim_ascii_start() {
        [b':', b'=', ..] | [b'=' | b'[', ..] => true,
        // Not SELECT .5
        [b'.', next, ..] => !next.is_ascii_digit(),
        _ => false,
    }
}

/// A parenthesis stands behind a word, or a comment that may hide one.
fn is_called(text: &[u8], end: u64) -> bool {
    let behind = usize::try_from(end).ok().and_then(|end| text.get(end..)).unwrap_or_default();
    matches!(behind.trim_ascii_start(), [b'(' | b'#', ..] | [b'/', b'*', ..] | [b'-', b'-', ..])
}

/// Words of the procedural languages that may have an expression in parentheses behind them, where a
/// statement begins; those that are [`Word`]s of their own are none.
fn is_keyword(token: &Token<'_>) -> bool {
    const KEYWORDS: [&[u8]; 10] = [
        b"return", b"perform", b"assert", b"elsif", b"elseif", b"when", b"until", b"raise", b"foreach",
        b"reverse",
    ];
    KEYWORDS.iter().any(|keyword| token.text.eq_ignore_ascii_case(keyword))
}

fn is_role(name: &str) -> bool {
    matches!(name, "role" | "session_authorization")
}

fn is_sign(token: &Token<'_>, sign: u8) -> bool {
    token.kind == Kind::Operator && token.text.first() == Some(&sign)
}

/// The word SELECT where none stands.
fn made_up_select(at: u64) -> Token<'static> {
    Token { kind: Kind::Word, text: b"select", len: 6, start: at, end: at }
}

/// Statements that neither write nor run code of others by themselves.
pub(crate) fn reads_only(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::Empty
            | Verb::Select
            | Verb::Values
            | Verb::Set
            | Verb::Reset
            | Verb::Show
            | Verb::Begin
            | Verb::Commit
            | Verb::Rollback
            | Verb::RollbackTo
            | Verb::Savepoint
            | Verb::Release
            | Verb::Listen
            | Verb::Unlisten
            | Verb::Notify
            | Verb::Discard
            | Verb::Deallocate
            | Verb::Close
            | Verb::Fetch
            | Verb::Use
            | Verb::Kill
            | Verb::Get
            | Verb::Unlock
    )
}
