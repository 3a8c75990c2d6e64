//! SET and RESET: which names they change, their scope, and where the values are.

use weir_wire::Pin;
use weir_wire::limits::TEXT_ASSIGNMENTS;

use super::steps::{is_temporary_schema, may_say_temporary};
use super::{Mode, Past, Recogniser, position};
use crate::class::{Assignment, Scope, SetTarget, Span, Transaction, Uses, Verb};
use crate::token::{Kind, Token};
use crate::words::{Word, lookup};

/// How far a SET has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// A name, or a word that is a form of its own.
    #[default]
    Target,
    /// PostgreSQL, behind SET SESSION.
    Session,
    /// Behind `@@`.
    SystemName,
    /// Behind `@@session`.
    SystemDot,
    /// Behind a name: a dot, or what separates it from the value.
    Named,
    /// Behind a name and a dot.
    NamePart,
    /// In a value.
    Value,
    /// One certain word is next: the rest of `CHARACTER SET`, `TIME ZONE`, `XML OPTION`,
    /// `SESSION AUTHORIZATION`, `DEFAULT ROLE`.
    Second(Word),
    /// Behind `TRANSACTION` or `CONSTRAINTS` (PostgreSQL), which a dot makes the first part of a name.
    Form(Word),
    /// Nothing more is looked at.
    Tail,
    /// MariaDB: the variables of SET STATEMENT, up to FOR.
    Statement,
}

/// What is known of the SET that is being read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    phase: Phase,
    /// The scope of the assignment that is being read.
    scope: Scope,
    /// MySQL: the scope of names without one, from the last keyword.
    keyword: Option<Scope>,
    /// Tokens of the value so far, up to 255.
    value_tokens: u8,
    /// The value belongs to a user variable.
    of_user_variable: bool,
    /// The value is a list of transaction characteristics.
    of_transaction: bool,
}

impl Default for Progress {
    fn default() -> Self {
        Progress {
            phase: Phase::Target,
            scope: Scope::Session,
            keyword: None,
            value_tokens: 0,
            of_user_variable: false,
            of_transaction: false,
        }
    }
}

impl Recogniser {
    /// The verb was SET or RESET.
    pub(super) fn begin_set(&mut self) {
        self.details().set = Some(SetTarget { complete: true, ..SetTarget::default() });
    }

    /// The token is on the left side of SET.
    pub(super) fn is_set_target(&self) -> bool {
        self.now.mode == Mode::Set
            && !matches!(self.now.set.phase, Phase::Value | Phase::Tail | Phase::Statement)
    }

    /// A token of SET or RESET.
    pub(super) fn set_token(&mut self, token: &Token<'_>, past: Past) {
        match self.now.set.phase {
            Phase::Target if self.mysql => self.mysql_target(token, past.word),
            Phase::Target => self.postgres_target(token, past.word),
            Phase::Session => self.behind_session(token, past.word),
            Phase::SystemName => self.system_target(token),
            Phase::SystemDot if token.kind == Kind::Dot => self.now.set.phase = Phase::NamePart,
            Phase::SystemDot => self.not_set(),
            Phase::Named => self.behind_name(token, past.word),
            Phase::NamePart => self.name_part(token),
            Phase::Value => self.value(token, past),
            Phase::Second(expected) if past.word == expected && token.kind == Kind::Word => {
                self.second_word(expected);
            }
            Phase::Second(_) => self.not_set(),
            Phase::Form(word) => self.form(token, word),
            Phase::Tail => {}
            Phase::Statement => {
                if past.word == Word::For && self.now.depth == 0 {
                    // What follows is a statement like any other.
                    self.alone = true;
                    self.class.lends_settings = true;
                    self.details().set = None;
                    self.now.set = Progress::default();
                    self.now.tokens = 0;
                    self.now.is_wrapped = true;
                    self.now.mode = Mode::Start;
                } else if matches!(token.kind, Kind::Word | Kind::Quoted) && stays(token.text) {
                    self.lent_stays();
                }
            }
        }
    }

    /// The statement is at its end.
    pub(super) fn end_set(&mut self) {
        match self.now.set.phase {
            Phase::Value => self.end_value(),
            Phase::Named if self.now.verb == Verb::Reset => {
                if let Some(assignment) = self.assignment() {
                    assignment.default = true;
                }
            }
            Phase::Tail => {}
            _ => self.not_set(),
        }
        if self.now.is_wrapped {
            // SET STATEMENT x = 1 FOR SET x = 2: the former value of x comes back behind it. A role stays.
            self.set().assignments.retain(|assignment| assignment.name == "role");
            self.incomplete();
            self.pin(Pin::Unrecognised);
            self.uses(Uses::ROLE);
        }
        self.set_touches();
        let session = |assignment: &Assignment| assignment.scope == Scope::Session;
        let role = |assignment: &Assignment| {
            matches!(assignment.name.as_str(), "role" | "session_authorization" | "seed")
        };
        let Some(set) = &self.details().set else { return };
        let has_session = set.assignments.iter().any(session);
        let has_role = set.assignments.iter().any(|assignment| session(assignment) && role(assignment));
        if has_session {
            self.pin(Pin::Setting);
        }
        if has_role {
            self.uses(Uses::ROLE);
        }
    }

    /// A statement has settings for itself alone of which one leaves something, or asks for more than it
    /// says. It counts as a SET of that.
    pub(crate) fn lent_stays(&mut self) {
        self.pin(Pin::Setting);
        self.incomplete();
        // Should it be sql_auto_is_null: `id IS NULL` asks for LAST_INSERT_ID().
        self.uses(Uses::LAST_INSERT_ID);
        self.alone = true;
        self.class.lent_stays = true;
    }

    /// A form of SET the scanner does not know.
    fn not_set(&mut self) {
        self.incomplete();
        self.pin(Pin::Unrecognised);
        self.uses(Uses::ROLE);
        self.now.set.phase = Phase::Tail;
    }

    fn incomplete(&mut self) {
        if let Some(set) = &mut self.details().set {
            set.complete = false;
        }
    }

    fn set(&mut self) -> &mut SetTarget {
        self.details().set.get_or_insert_default()
    }

    fn assignment(&mut self) -> Option<&mut Assignment> {
        self.set().assignments.last_mut()
    }

    fn assign(&mut self, name: &str, scope: Scope) {
        if self.set().assignments.len() >= TEXT_ASSIGNMENTS {
            self.incomplete();
            self.pin(Pin::Unrecognised);
            self.set().assignments.pop();
        }
        self.now.set.of_user_variable = false;
        self.set().assignments.push(Assignment {
            name: name.to_owned(),
            scope,
            value: Span::default(),
            constant: true,
            default: false,
            toggle: None,
        });
    }

    /// A form whose value follows at once.
    fn assign_form(&mut self, name: &str) {
        let scope = self.now.set.scope;
        self.assign(name, scope);
        self.begin_value();
    }

    fn begin_value(&mut self) {
        let reset = self.now.verb == Verb::Reset;
        self.now.set.phase = if reset { Phase::Named } else { Phase::Value };
        self.now.set.value_tokens = 0;
    }

    fn begin_name(&mut self, token: &Token<'_>, scope: Scope) {
        self.assign("", scope);
        self.name_part(token);
    }

    fn name_part(&mut self, token: &Token<'_>) {
        let name = self.name_of(token);
        let Some(name) = name else {
            self.not_set();
            return;
        };
        if let Some(assignment) = self.assignment() {
            if !assignment.name.is_empty() {
                assignment.name.push('.');
            }
            assignment.name.push_str(&name.to_ascii_lowercase());
        }
        self.now.set.phase = Phase::Named;
    }

    fn behind_name(&mut self, token: &Token<'_>, word: Word) {
        match token.kind {
            Kind::Dot if !self.now.set.of_user_variable => self.now.set.phase = Phase::NamePart,
            Kind::Equals if self.now.verb == Verb::Set => self.begin_value(),
            Kind::Assign if self.mysql => self.begin_value(),
            Kind::Word if word == Word::To && !self.mysql && self.now.verb == Verb::Set => self.begin_value(),
            // SET name FROM CURRENT, and whatever else.
            _ => self.not_set(),
        }
    }

    fn second_word(&mut self, word: Word) {
        match word {
            Word::Set => self.assign_form("character set"),
            Word::Zone => self.assign_form("timezone"),
            Word::Option => self.assign_form("xmloption"),
            Word::Authorization => self.assign_form("session_authorization"),
            Word::Role => {
                // SET DEFAULT ROLE changes accounts.
                self.class.ddl = true;
                self.now.set.phase = Phase::Tail;
            }
            _ => self.not_set(),
        }
    }

    fn postgres_target(&mut self, token: &Token<'_>, word: Word) {
        let first = self.now.last.word == Word::Set || self.now.last.word == Word::Reset;
        let reset = self.now.verb == Verb::Reset;
        match word {
            Word::Session if reset => self.now.set.phase = Phase::Second(Word::Authorization),
            Word::Session if first => self.now.set.phase = Phase::Session,
            Word::Session => self.now.set.phase = Phase::Second(Word::Authorization),
            Word::Local if first && !reset => self.now.set.scope = Scope::Transaction,
            Word::All if reset => {
                self.class.clears.insert(crate::Clears::RESET_ALL);
                self.details().set = None;
                self.now.set.phase = Phase::Tail;
            }
            Word::Transaction | Word::Constraints if !reset => self.now.set.phase = Phase::Form(word),
            Word::Time => self.now.set.phase = Phase::Second(Word::Zone),
            Word::Xml if !reset => self.now.set.phase = Phase::Second(Word::Option),
            Word::Names if !reset => self.assign_form("client_encoding"),
            Word::Schema if !reset => self.assign_form("search_path"),
            Word::Role => self.assign_form("role"),
            _ => {
                let scope = self.now.set.scope;
                self.begin_name(token, scope);
            }
        }
    }

    /// The token behind a word that is a form of its own, unless a dot follows it.
    fn form(&mut self, token: &Token<'_>, word: Word) {
        let is_transaction = word == Word::Transaction;
        if token.kind == Kind::Dot {
            let scope = self.now.set.scope;
            self.assign(if is_transaction { "transaction" } else { "constraints" }, scope);
            self.now.set.phase = Phase::NamePart;
            return;
        }
        self.now.set.phase = Phase::Tail;
        match is_transaction {
            true => self.now.transaction = Some(Transaction::SetTransaction),
            false => self.incomplete(),
        }
    }

    /// A dot where the value of a form is due: the form's word is the first part of a name, as in
    /// `SET role.x = 1`.
    fn dotted_form(&mut self) {
        let mysql = self.mysql;
        let word = self.assignment().filter(|_| !mysql).and_then(|assignment| {
            let word = match assignment.name.as_str() {
                "role" => "role",
                "client_encoding" => "names",
                "search_path" => "schema",
                "transaction characteristics" => "characteristics",
                _ => return None,
            };
            word.clone_into(&mut assignment.name);
            Some(word)
        });
        match word {
            Some(_) => self.now.set.phase = Phase::NamePart,
            None => self.not_set(),
        }
    }

    fn behind_session(&mut self, token: &Token<'_>, word: Word) {
        match word {
            Word::Characteristics => {
                self.assign("transaction characteristics", Scope::Session);
                self.begin_value();
            }
            Word::Authorization => self.assign_form("session_authorization"),
            _ if token.kind == Kind::Dot => self.not_set(),
            _ => {
                self.now.set.phase = Phase::Target;
                self.postgres_target(token, word);
            }
        }
    }

    fn mysql_target(&mut self, token: &Token<'_>, word: Word) {
        let first = self.now.tokens == 2;
        let keyword = match word {
            Word::Global | Word::Persist | Word::PersistOnly => Some(Scope::Global),
            Word::Session | Word::Local => Some(Scope::Session),
            _ => None,
        };
        if let Some(scope) = keyword {
            self.now.set.keyword = Some(scope);
            return;
        }
        let scope = self.now.set.keyword.unwrap_or(Scope::Session);
        match (token.kind, word) {
            (Kind::SystemPrefix, _) => self.now.set.phase = Phase::SystemName,
            (Kind::UserVariable, _) => self.user_target(token),
            (Kind::Word, Word::Transaction) => self.set_transaction(),
            (Kind::Word, Word::Names) => self.assign_form("names"),
            (Kind::Word, Word::Charset) => self.assign_form("character set"),
            (Kind::Word, Word::Character) => self.now.set.phase = Phase::Second(Word::Set),
            (Kind::Word, Word::Role) if first => {
                self.assign("role", Scope::Session);
                self.begin_value();
            }
            (Kind::Word, Word::Password) if first => {
                self.incomplete();
                self.class.ddl = true;
                self.now.set.phase = Phase::Tail;
            }
            (Kind::Word, Word::Default) if first => {
                self.incomplete();
                self.now.set.phase = Phase::Second(Word::Role);
            }
            (Kind::Word, Word::Resource) if first => self.not_set(),
            (Kind::Word, Word::Statement) if first && self.mariadb => self.now.set.phase = Phase::Statement,
            (Kind::Word | Kind::Quoted | Kind::Number, _) => self.begin_name(token, scope),
            _ => self.not_set(),
        }
    }

    /// The one-shot form is about the next transaction.
    fn set_transaction(&mut self) {
        match self.now.set.keyword {
            None => {
                self.incomplete();
                self.now.transaction = Some(Transaction::SetTransaction);
                self.pin(Pin::Setting);
                self.now.set.phase = Phase::Tail;
            }
            Some(scope) => {
                self.assign("transaction characteristics", scope);
                self.now.set.of_transaction = true;
                self.begin_value();
            }
        }
    }

    fn user_target(&mut self, token: &Token<'_>) {
        self.writes_variable();
        if self.now.mode != Mode::Routine {
            self.names_variable(token);
        }
        let name = std::str::from_utf8(token.text).ok().filter(|_| !token.is_cut()).map(str::to_lowercase);
        match name {
            Some(name) if self.set().user_variables.len() < TEXT_ASSIGNMENTS => {
                self.set().user_variables.push(name);
            }
            _ => self.incomplete(),
        }
        self.now.set.of_user_variable = true;
        self.now.set.phase = Phase::Named;
    }

    fn system_target(&mut self, token: &Token<'_>) {
        let word = if token.kind == Kind::Word { lookup(token.text).word } else { Word::Name };
        let scope = match word {
            Word::Global | Word::Persist | Word::PersistOnly => Scope::Global,
            Word::Session | Word::Local => Scope::Session,
            _ => {
                self.begin_name(token, Scope::Session);
                self.next_transaction_only(token);
                return;
            }
        };
        self.assign("", scope);
        self.now.set.phase = Phase::SystemDot;
    }

    /// `@@transaction_isolation` without a scope means the next transaction, as SET TRANSACTION does.
    fn next_transaction_only(&mut self, token: &Token<'_>) {
        let names = ["transaction_isolation", "transaction_read_only", "tx_isolation", "tx_read_only"]
            .map(str::as_bytes);
        if names.iter().any(|name| token.text.eq_ignore_ascii_case(name)) {
            self.incomplete();
            self.now.transaction = Some(Transaction::SetTransaction);
        }
    }

    fn value(&mut self, token: &Token<'_>, past: Past) {
        if token.kind == Kind::Comma && self.now.depth == 0 && self.mysql && !self.now.set.of_transaction {
            self.end_value();
            self.now.set.phase = Phase::Target;
            return;
        }
        let tokens = self.now.set.value_tokens;
        if tokens == 0 && token.kind == Kind::Dot && self.now.last.kind == Kind::Word {
            return self.dotted_form();
        }
        // `SET role = x` and `SET role TO x` are forms, too.
        let separates = token.kind == Kind::Equals || past.word == Word::To;
        if tokens == 0 && separates && self.now.last.kind == Kind::Word {
            if self.mysql {
                self.not_set();
            }
            return;
        }
        self.now.set.value_tokens = tokens.saturating_add(1);
        self.look_for_temporary_schema(token);
        if self.now.set.of_user_variable {
            return;
        }
        let first = tokens == 0;
        let toggle = toggle_of(token, past.word);
        // SET TIME ZONE LOCAL is another word for it.
        let is_zone = past.word == Word::Local
            && !self.mysql
            && self.assignment().is_some_and(|assignment| assignment.name == "timezone");
        let is_default = token.kind == Kind::Word && (past.word == Word::Default || is_zone);
        let is_constant = !matches!(
            token.kind,
            Kind::UserVariable | Kind::SystemPrefix | Kind::Open | Kind::Param | Kind::Assign
        ) && !matches!(past.word, Word::Select | Word::Case);
        if let Some(assignment) = self.assignment() {
            if first {
                assignment.value.start = position(token.start);
            }
            assignment.value.end = position(token.end);
            assignment.toggle = if first { toggle } else { None };
            assignment.default = first && is_default;
            assignment.constant &= is_constant;
        }
    }

    fn end_value(&mut self) {
        if self.now.set.value_tokens == 0 {
            self.not_set();
        }
    }

    /// With `pg_temp` first in the search path every new table is a temporary one.
    fn look_for_temporary_schema(&mut self, token: &Token<'_>) {
        if self.mysql {
            return;
        }
        let has = match token.kind {
            // `U&'pg!005ftemp' UESCAPE '!'`.
            Kind::Word if token.text.eq_ignore_ascii_case(b"uescape") => true,
            Kind::Word | Kind::Quoted => is_temporary_schema(token.text),
            // Strings on two lines are one.
            Kind::Str => may_say_temporary(token) || self.now.last.kind == Kind::Str,
            Kind::Escaped => true,
            _ => false,
        };
        let of_path = self.assignment().is_some_and(|assignment| assignment.name == "search_path");
        if has && of_path {
            self.pin(Pin::TemporaryTable);
        }
    }
}

/// A variable of SET STATEMENT that leaves something behind the statement, or makes it ask for more than it
/// says. MariaDB takes some letters for others, such as a dotless i.
fn stays(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 3] = [b"optimizer_trace", b"profiling", b"sql_auto_is_null"];
    !name.is_ascii() || NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// 0, 1, ON, OFF, TRUE, FALSE.
fn toggle_of(token: &Token<'_>, word: Word) -> Option<bool> {
    match token.kind {
        Kind::Word => match word {
            Word::On | Word::True => Some(true),
            Word::Off | Word::False => Some(false),
            _ => None,
        },
        Kind::Number | Kind::Str => match token.text {
            b"0" => Some(false),
            b"1" => Some(true),
            text if text.eq_ignore_ascii_case(b"on") || text.eq_ignore_ascii_case(b"true") => Some(true),
            text if text.eq_ignore_ascii_case(b"off") || text.eq_ignore_ascii_case(b"false") => Some(false),
            _ => None,
        },
        _ => None,
    }
}
