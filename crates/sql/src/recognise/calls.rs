//! Functions and variables, in any statement.

use weir_wire::Pin;
use weir_wire::limits::TEXT_CALLS;

use super::{Mode, Recogniser, Target, position};
use crate::class::{Call, CallKind, Locks, Span, Uses, Verb};
use crate::token::{Kind, Token};
use crate::words::{Func, Word};

impl Recogniser {
    /// `(`
    pub(super) fn open(&mut self) {
        let last = self.now.last;
        let is_name = matches!(last.kind, Kind::Word | Kind::Quoted | Kind::Escaped | Kind::Number);
        let names_columns = self.now.target == Target::Here
            || self.now.relations.at_alias
            || (self.now.before.word == Word::As
                && self.now.before.kind == Kind::Word
                && last.word == Word::Name)
            || (self.now.mode == Mode::With && self.now.depth == 0);
        if is_name && !names_columns && self.now.mode != Mode::Routine {
            if last.kind == Kind::Escaped {
                // A name nobody can read may be any function's.
                self.pin(Pin::Unrecognised);
            }
            self.call(last.func);
        }
        match self.now.depth.checked_add(1) {
            Some(depth) => self.now.depth = depth,
            None => self.class.doubtful = true,
        }
    }

    /// `)`
    pub(super) fn close(&mut self) {
        match self.now.depth.checked_sub(1) {
            Some(depth) => self.now.depth = depth,
            None => self.alone = true,
        }
        if self.now.config_depth == self.now.depth.saturating_add(1) {
            self.now.config_depth = 0;
            let is_local = self.now.last.word == Word::True
                && self.now.last.kind == Kind::Word
                && self.now.before.kind == Kind::Comma;
            let is_named = self.end_set_config(is_local);
            if !is_local {
                self.pin(Pin::Setting);
                if !self.now.config_is_plain {
                    self.uses(if is_named { Uses::ROLE } else { Uses::ROLE | Uses::SEED });
                }
            }
        }
    }

    /// A value is drawn from a sequence. MariaDB's sessions know what they drew last, and tell no value where
    /// they drew none.
    fn draws(&mut self) {
        self.uses(Uses::NEXTVAL);
        self.alone = true;
        if self.mariadb {
            self.pin(Pin::Sequence);
        }
    }

    /// MariaDB: `NEXT VALUE FOR s`, `PREVIOUS VALUE FOR s`, and `s.nextval` of its Oracle mode. Of another
    /// table than a sequence, or in another mode, that is a column, which costs no more than a pin.
    pub(super) fn sequence_word(&mut self, token: &Token<'_>, word: Word) {
        if self.now.mode == Mode::Routine {
            return;
        }
        let last = self.now.last;
        match word {
            Word::Value if last.kind == Kind::Word && last.word == Word::Next => self.draws(),
            Word::Value if last.kind == Kind::Word && last.word == Word::Previous => {
                self.uses(Uses::LASTVAL);
                self.alone = true;
            }
            _ if last.kind == Kind::Dot && token.text.eq_ignore_ascii_case(b"nextval") => self.draws(),
            _ if last.kind == Kind::Dot && token.text.eq_ignore_ascii_case(b"currval") => {
                self.uses(Uses::LASTVAL);
                self.alone = true;
            }
            _ => {}
        }
    }

    /// A name and a parenthesis.
    pub(super) fn call(&mut self, func: Func) {
        if matches!(self.now.verb, Verb::Do | Verb::Explain) && self.now.tokens == 2 {
            // `DO (SELECT 1)`, `EXPLAIN (ANALYZE) SELECT 1`: the name is the verb.
            return;
        }
        if func == Func::Operator {
            return self.begin_operator();
        }
        // MySQL has no sequences: somebody has made a function of that name.
        let sequences = matches!(func, Func::Nextval | Func::Lastval | Func::Setval);
        let func = if sequences && self.mysql && !self.mariadb { Func::Unknown } else { func };
        if matches!(func, Func::Harmless | Func::Syntax) {
            self.called_harmless();
            return;
        }
        // In a schema it is somebody's own.
        let func =
            if func == Func::XPath && self.now.before.kind == Kind::Dot { Func::Unknown } else { func };
        if func == Func::XPath {
            self.called_harmless();
            self.begin_xpath();
            return;
        }
        // Of a function that users have made, the catalogue says it.
        self.class.varies |= func != Func::Unknown;
        if func == Func::Varies {
            self.called_harmless();
            return;
        }
        if func == Func::CurrentSetting {
            self.now.asks_setting = true;
            return;
        }
        if func == Func::Unknown && self.runs_expressions() && self.is_known_call() {
            return;
        }
        self.alone = true;
        match func {
            Func::Harmless | Func::Varies | Func::Syntax | Func::CurrentSetting | Func::Unknown => {}
            Func::Operator | Func::XPath => {}
            Func::Currval => self.uses(Uses::CURRVAL),
            Func::Lastval => self.uses(Uses::LASTVAL),
            Func::Nextval => self.draws(),
            Func::Setval => self.uses(Uses::SETVAL),
            Func::AdvisoryLock => self.takes(Locks::ADVISORY),
            Func::GetLock => self.takes(Locks::NAMED),
            Func::PgBackupStart => {
                self.takes(Locks::PG_BACKUP);
                self.uses(Uses::OUTLIVES_RESET);
            }
            Func::Alone => {}
            Func::AdvisoryUnlockAll | Func::ReleaseAllLocks => {
                let only = matches!(self.now.verb, Verb::Select | Verb::Do) && self.now.tokens == 3;
                self.now.frees_all = only;
            }
            Func::SetConfig => self.begin_set_config(),
            Func::SetSeed => {
                self.pin(Pin::Setting);
                self.uses(Uses::ROLE | Uses::SEED);
            }
            Func::Keeps => {
                self.pin(Pin::Unrecognised);
                self.uses(Uses::OUTLIVES_RESET);
            }
            Func::RunsText => self.runs_unknown(),
            Func::ReplicationSlot => {
                self.pin(Pin::Replication);
                self.uses(Uses::OUTLIVES_RESET);
            }
            Func::Sleep => self.uses(Uses::SLEEP),
            Func::BackendPid => self.begin_call(CallKind::BackendPid, Uses::CONNECTION_ID),
            Func::ConnectionId => self.begin_call(CallKind::ConnectionId, Uses::CONNECTION_ID),
            Func::LastInsertId => self.begin_call(CallKind::LastInsertId, Uses::NONE),
            Func::FoundRows => self.begin_call(CallKind::FoundRows, Uses::FOUND_ROWS),
            Func::RowCount => self.begin_call(CallKind::RowCount, Uses::ROW_COUNT),
        }
    }

    /// In this statement a name and a parenthesis are a call.
    fn runs_expressions(&self) -> bool {
        matches!(
            self.now.verb,
            Verb::Select
                | Verb::Values
                | Verb::Insert
                | Verb::Update
                | Verb::Delete
                | Verb::Merge
                | Verb::Replace
                | Verb::Do
                | Verb::Call
                | Verb::Set
                | Verb::Explain
                | Verb::Declare
                | Verb::Prepare
        ) || self.mysql
            && (matches!(self.now.verb, Verb::Show | Verb::Handler | Verb::Execute | Verb::Kill)
                || (self.now.verb == Verb::Load && self.now.step == super::steps::LOAD_SETS)
                || self.now.step == super::steps::FILLED)
    }

    pub(super) fn takes(&mut self, locks: Locks) {
        self.class.takes.insert(locks);
        self.pin(Pin::SessionLock);
        self.alone = true;
    }

    fn begin_set_config(&mut self) {
        if self.now.config_depth != 0 {
            // One inside the other: too much to follow.
            self.pin(Pin::Setting);
            self.uses(Uses::ROLE);
            self.touches_any();
            return;
        }
        self.now.config_depth = self.now.depth.saturating_add(1);
        self.now.config_is_plain = false;
    }

    /// A token of the arguments of `set_config`. Plain is a literal that does not name the role, and a comma.
    pub(super) fn config_argument(&mut self, token: &Token<'_>) {
        if self.now.last.kind == Kind::Open {
            let role = [b"role".as_slice(), b"session_authorization", b"seed"];
            self.now.config_is_plain = token.kind == Kind::Str
                && !token.is_cut()
                && !token.text.contains(&b'\\')
                && !role.iter().any(|name| token.text.eq_ignore_ascii_case(name));
        } else if self.now.before.kind == Kind::Open && token.kind != Kind::Comma {
            self.now.config_is_plain = false;
        }
    }

    /// `EXTRACTVALUE(` or `UPDATEXML(`: unless its XPath turns out to name none, it reads any user variable.
    fn begin_xpath(&mut self) {
        match self.now.xpath {
            XPath::None => match u8::try_from(self.now.depth.saturating_add(1)) {
                Ok(depth) => self.now.xpath = XPath::Before(depth),
                Err(_) => self.reads_any_variable(),
            },
            // One inside the other: too much to follow.
            XPath::Before(_) | XPath::Here | XPath::Literal => self.reads_any_variable(),
        }
    }

    /// A token of a call of one of these. An XPath of which that is plain is one literal without a `$`.
    pub(super) fn xpath_argument(&mut self, token: &Token<'_>) {
        self.now.xpath = match self.now.xpath {
            XPath::None => return,
            XPath::Before(depth) if self.now.depth != u16::from(depth) => XPath::Before(depth),
            XPath::Before(depth) => match token.kind {
                Kind::Comma => XPath::Here,
                Kind::Close => XPath::None,
                _ => XPath::Before(depth),
            },
            XPath::Here if is_plain_xpath(token) => XPath::Literal,
            XPath::Literal if matches!(token.kind, Kind::Comma | Kind::Close) => XPath::None,
            XPath::Here | XPath::Literal => {
                self.reads_any_variable();
                XPath::None
            }
        };
    }

    fn reads_any_variable(&mut self) {
        self.uses(Uses::USER_VARIABLE_READ);
        self.touched().variables.add_any();
        self.alone = true;
        self.class.varies = true;
    }

    fn begin_call(&mut self, kind: CallKind, uses: Uses) {
        self.uses(uses);
        // A stored function of that name in a schema is something else, but the doubt remains.
        if self.now.before.kind != Kind::Dot {
            self.now.call = Some(kind);
            self.now.call_start = self.now.last_start;
            self.now.item_begins = self.begins_item();
        } else {
            self.uses(Uses::UNKNOWN_FUNCTION);
        }
    }

    /// The token before the last one is one behind which a select item begins.
    fn begins_item(&self) -> bool {
        self.now.in_list && self.now.depth == 0 && begins_item(self.now.before)
    }

    /// The token behind `CONNECTION_ID(`.
    pub(super) fn settle_call(&mut self, token: &Token<'_>) {
        let Some(kind) = self.now.call.take() else { return };
        if token.kind == Kind::Close {
            if kind == CallKind::LastInsertId {
                self.uses(Uses::LAST_INSERT_ID);
            }
            self.found_call(kind, token.end);
        } else if kind == CallKind::LastInsertId {
            self.uses(Uses::LAST_INSERT_ID_SET);
            // The OK packet of these says what was set, as after an ordinary INSERT.
            if !matches!(self.now.verb, Verb::Insert | Verb::Replace | Verb::Update) {
                self.pin(Pin::LastResult);
            }
        }
    }

    /// MariaDB's Oracle mode: `SQL%ROWCOUNT` is ROW_COUNT(), and `SQLCODE` and `SQLERRM` are what the first
    /// of the warnings says, in code only. SQL is a reserved word, and the others are columns elsewhere.
    pub(super) fn oracle_word(&mut self, token: &Token<'_>) {
        let is = |word: &[u8]| token.text.eq_ignore_ascii_case(word);
        let behind_sql = std::mem::replace(&mut self.now.is_sql, token.kind == Kind::Word && is(b"sql"));
        if self.now.mode == Mode::Routine {
            return;
        }
        if self.now.is_sql {
            self.now.call_start = position(token.start);
            self.now.item_begins = self.now.in_list && self.now.depth == 0 && begins_item(self.now.last);
        } else if behind_sql && self.now.last.kind == Kind::Operator && is(b"rowcount") {
            self.uses(Uses::ROW_COUNT);
            self.alone = true;
            self.class.varies = true;
            self.found_call(CallKind::RowCount, token.end);
        } else if self.runs_as_code() && self.now.last.kind != Kind::Dot && (is(b"sqlcode") || is(b"sqlerrm"))
        {
            self.uses(Uses::WARNINGS);
            self.alone = true;
            self.class.varies = true;
        }
    }

    /// It is code that the server runs, or part of a text that is (MariaDB).
    fn runs_as_code(&self) -> bool {
        self.in_block
            || self.is_of_code()
            || matches!(self.now.verb, Verb::Declare | Verb::Unrecognised)
            || self.class.statements > 0
    }

    fn found_call(&mut self, kind: CallKind, end: u64) {
        let span = Span { start: self.now.call_start, end: position(end) };
        if span.end == u32::MAX || self.details().calls.len() >= TEXT_CALLS {
            self.uses(Uses::OVERFLOW);
            return;
        }
        self.details().calls.push(Call { kind, span, bare: false });
        self.now.call_may_be_bare = self.now.item_begins;
    }

    /// The token behind a call that began a select item.
    pub(super) fn settle_bare(&mut self, token: &Token<'_>, word: Word) {
        self.now.call_may_be_bare = false;
        let ends_item = token.kind == Kind::Comma
            || matches!(
                word,
                Word::From
                    | Word::Into
                    | Word::Where
                    | Word::Group
                    | Word::Having
                    | Word::Order
                    | Word::Limit
                    | Word::Union
                    | Word::For
                    | Word::Lock
            );
        if ends_item {
            self.mark_bare();
        }
    }

    pub(super) fn mark_bare(&mut self) {
        if let Some(call) = self.details().calls.last_mut() {
            call.bare = true;
        }
    }

    /// `@name`
    pub(super) fn user_variable(&mut self, token: &Token<'_>) {
        self.alone = true;
        let written = matches!(self.now.verb, Verb::Call | Verb::Load | Verb::Get)
            || (self.now.last.word == Word::Into && self.now.last.kind == Kind::Word)
            || (self.now.into && self.now.last.kind == Kind::Comma);
        // `user@host` in statements about accounts. A word that stands there may as well be an operator (DIV,
        // LIKE), so it counts where no expression can be: DEFINER=user@host.
        let last = self.now.last;
        let is_user = match last.kind {
            Kind::Quoted | Kind::Str => last.word == Word::Name,
            Kind::Word => {
                let in_front = matches!(self.now.mode, Mode::Create | Mode::Alter) && self.now.step == 0;
                in_front && self.now.before.kind == Kind::Equals && last.word == Word::Name
            }
            _ => false,
        };
        let account = is_user
            && matches!(self.now.verb, Verb::Create | Verb::Alter | Verb::Drop | Verb::Catalogue | Verb::Set);
        if !account && self.now.mode != Mode::Routine {
            self.names_variable(token);
        }
        if written {
            self.writes_variable();
        } else if !account && self.now.mode != Mode::Routine {
            self.uses(Uses::USER_VARIABLE_READ);
        }
    }

    /// A user variable is named. Names that may be spelt in several ways (accents, blanks at the end) count
    /// as any.
    pub(super) fn names_variable(&mut self, token: &Token<'_>) {
        if !self.mysql {
            return;
        }
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.');
        let name = std::str::from_utf8(token.text).ok();
        let name = name.filter(|name| !token.is_cut() && !name.is_empty() && name.bytes().all(|b| plain(&b)));
        let variables = &mut self.touched().variables;
        match name {
            Some(name) => variables.add(name),
            None => variables.add_any(),
        }
    }

    pub(super) fn writes_variable(&mut self) {
        if self.now.mode != Mode::Routine {
            self.uses(Uses::USER_VARIABLE_WRITE);
            self.pin(Pin::UserVariable);
        }
    }

    /// A token that may belong to a name behind `@@`.
    pub(super) fn system_variable(&mut self, token: &Token<'_>) {
        match token.kind {
            Kind::SystemPrefix => {
                self.alone = true;
                self.uses(Uses::SYSTEM_VARIABLE);
                self.now.in_system = true;
                self.now.call_start = position(token.start);
                self.now.item_begins = self.now.in_list && self.now.depth == 0 && begins_item(self.now.last);
            }
            Kind::Word | Kind::Quoted if self.now.in_system => {
                self.system_name(crate::words::lookup(token.text).word, token);
            }
            Kind::Dot => {}
            _ => self.now.in_system = false,
        }
    }

    fn system_name(&mut self, word: Word, token: &Token<'_>) {
        match word {
            Word::PseudoThreadId => {
                self.uses(Uses::CONNECTION_ID);
                self.found_call(CallKind::PseudoThreadId, token.end);
            }
            Word::Identity | Word::LastInsertIdVariable => {
                self.uses(Uses::LAST_INSERT_ID);
                self.found_call(CallKind::Identity, token.end);
            }
            Word::WarningCount | Word::ErrorCount => self.uses(Uses::WARNINGS),
            _ => {}
        }
    }
}

/// Where a call of EXTRACTVALUE or UPDATEXML is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum XPath {
    /// There is none.
    #[default]
    None,
    /// In front of the comma before its XPath, which stands inside so many parentheses.
    Before(u8),
    /// Behind it.
    Here,
    /// Behind a literal that is the XPath, if it is all of it.
    Literal,
}

/// A literal that is all there, and no `x'2F'`: nothing like that begins with a slash.
fn is_plain_xpath(token: &Token<'_>) -> bool {
    token.kind == Kind::Str && !token.is_cut() && token.text.starts_with(b"/") && !token.text.contains(&b'$')
}

/// A select item begins behind this token, if it is one of the outermost select list.
fn begins_item(past: super::Past) -> bool {
    past.kind == Kind::Comma
        || matches!(
            past.word,
            Word::Select
                | Word::All
                | Word::Distinct
                | Word::Distinctrow
                | Word::HighPriority
                | Word::StraightJoin
                | Word::SqlBigResult
                | Word::SqlSmallResult
                | Word::SqlBufferResult
                | Word::SqlCache
                | Word::SqlNoCache
                | Word::SqlCalcFoundRows
        )
}
