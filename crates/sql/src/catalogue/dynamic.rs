//! Strings that PL/pgSQL runs (`EXECUTE`), where the code itself shows what they say.
//!
//! Such a string is known if it is made of literals, `quote_ident()`, `quote_literal()`, `quote_nullable()`
//! and `format()` with `%I` and `%L`, joined by `||`: these quote what they are given, so that it cannot
//! become another statement (PostgreSQL documentation, 43.5.4). It is read like a body, with a word that
//! stands for any name and a parameter for any value.
//!
//! Owns: the string, token by token, and what may stand where. Must not know: what statements do (`code`).
//!
//! Invariant: whatever is not surely one of these forms counts as code that may do anything. `%I` quotes
//! reserved words only (not `temp`, `function`), so a name counts only where nothing but names and reserved
//! words can stand.

use super::NameKey;
use super::code::{Code, Facts};
use crate::Dialect;
use crate::lex::Lexer;
use crate::recognise::is_no_word;
use crate::token::{Kind, Sink, Token};
use weir_wire::limits::DYNAMIC_SQL_BYTES;

/// Stands for a name that is not known; nobody calls anything so.
const ANY_NAME: &[u8] = b"weir_any_name_9f3c";
/// Stands for a value that is not known.
const ANY_VALUE: &[u8] = b"$987654";

/// What quotes its argument, and what the result stands for.
const QUOTING: [(&[u8], &[u8]); 3] =
    [(b"quote_ident", ANY_NAME), (b"quote_literal", ANY_VALUE), (b"quote_nullable", ANY_VALUE)];

/// Stands for the operator `||` of two texts, as the catalogue names it.
pub(super) const TEXTS_JOINED: &[u8] = b"text||text";

/// Statements that may have names and values put into them.
const VERBS: [&[u8]; 11] = [
    b"select",
    b"with",
    b"values",
    b"insert",
    b"update",
    b"delete",
    b"merge",
    b"truncate",
    b"create",
    b"drop",
    b"alter",
];

/// Of these, the ones that change the catalogue.
const DDL: [&[u8]; 4] = [b"truncate", b"create", b"drop", b"alter"];

/// Behind these stands what a statement of [`DDL`] is about.
const OBJECT: [&[u8]; 10] =
    [b"table", b"exists", b"index", b"on", b"of", b"partition", b"truncate", b"schema", b"view", b"sequence"];

/// Behind these stands a relation that is read or updated.
const READ: [&[u8]; 5] = [b"from", b"join", b"update", b"only", b"using"];

/// Behind these stands an expression or a column.
const NAMED: [&[u8]; 14] = [
    b"select",
    b"where",
    b"and",
    b"or",
    b"not",
    b"set",
    b"by",
    b"on",
    b"of",
    b"column",
    b"returning",
    b"having",
    b"constraint",
    b"to",
];

/// Parentheses within each other.
const NESTED: usize = 64;

/// What comes next in the expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Operand,
    /// `||`, or the end.
    Joint,
    /// The second sign of `||`.
    Bar,
    /// The parenthesis behind a function; then, for `format`, its template.
    Call {
        of: Call,
    },
    Template,
    /// Arguments, with so many parentheses open.
    Arguments {
        depth: u32,
        stands_for: &'static [u8],
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Format,
    Quote(&'static [u8]),
}

/// The string behind an EXECUTE, as far as it has come.
#[derive(Debug)]
pub(super) struct Dynamic {
    text: Vec<u8>,
    next: Next,
    unknown: bool,
    /// The variable that holds it, if it is nothing but that.
    variable: Option<Vec<u8>>,
    /// What is quoted, while nothing but a literal stands there.
    quoted: Option<Vec<u8>>,
    /// All of it so far are literals, of which no operator knows the type.
    is_untyped: bool,
    /// The last operand is one.
    is_literal: bool,
    /// A `||` stands in front of the next operand.
    is_joined: bool,
    /// Functions and the operator that made it, which must be PostgreSQL's own.
    trusted: Vec<NameKey>,
}

impl Dynamic {
    /// Behind the word EXECUTE.
    pub(super) fn new() -> Dynamic {
        Dynamic {
            text: Vec::new(),
            next: Next::Operand,
            unknown: false,
            variable: None,
            quoted: None,
            is_untyped: true,
            is_literal: false,
            is_joined: false,
            trusted: Vec::new(),
        }
    }

    /// What running the value of this expression does; `None` if nobody knows.
    pub(super) fn of(dialect: Dialect, code: &[u8]) -> Option<Facts> {
        let mut whole = Expression { dynamic: Dynamic::new(), code, ended: false };
        let mut lexer = Lexer::new(dialect);
        lexer.feed(code, &mut whole);
        lexer.finish(&mut whole);
        let Expression { mut dynamic, ended, .. } = whole;
        dynamic.unknown |= ended || dynamic.variable.is_some();
        dynamic.facts(dialect)
    }

    /// It is the value of this variable.
    pub(super) fn variable(&self) -> Option<&[u8]> {
        self.variable.as_deref().filter(|_| !self.unknown)
    }

    /// A token of the expression; `code` is what it stands in. True: the expression is over.
    pub(super) fn token(&mut self, token: &Token<'_>, code: &[u8]) -> bool {
        let ends = token.kind == Kind::Semicolon
            || token.kind == Kind::Word && is_one(token, &[b"using", b"into", b"loop"]);
        if ends && !matches!(self.next, Next::Arguments { .. }) {
            self.unknown |= self.next != Next::Joint;
            return true;
        }
        if token.kind == Kind::Semicolon {
            self.unknown = true;
            return true;
        }
        match self.take(token, code) {
            Some(next) => self.next = next,
            None => self.unknown = true,
        }
        self.unknown |= self.text.len() > DYNAMIC_SQL_BYTES;
        false
    }

    fn take(&mut self, token: &Token<'_>, code: &[u8]) -> Option<Next> {
        match self.next {
            Next::Operand if token.kind == Kind::Str => {
                self.text.extend_from_slice(&literal(token, code)?);
                self.is_literal = true;
                self.join();
                Some(Next::Joint)
            }
            Next::Operand => match self.call(token) {
                Some(of) => {
                    self.is_literal = false;
                    self.join();
                    Some(Next::Call { of })
                }
                None if self.may_be_variable(token) => {
                    self.variable = Some(token.text.to_vec());
                    Some(Next::Joint)
                }
                None => None,
            },
            Next::Joint if self.variable.is_some() => None,
            Next::Joint => is_bar(token).then_some(Next::Bar),
            Next::Bar => {
                self.is_joined = true;
                is_bar(token).then_some(Next::Operand)
            }
            Next::Call { of } if token.kind == Kind::Open => Some(match of {
                Call::Format => Next::Template,
                Call::Quote(stands_for) => Next::Arguments { depth: 1, stands_for },
            }),
            Next::Template if token.kind == Kind::Str => {
                self.template(&literal(token, code)?)?;
                Some(Next::Arguments { depth: 1, stands_for: b"" })
            }
            Next::Call { .. } | Next::Template => None,
            Next::Arguments { depth, stands_for } => {
                let said = literal(token, code).filter(|_| token.kind == Kind::Str);
                if let Some(said) = said.filter(|_| self.quoted.is_none()) {
                    self.quoted = Some(said);
                } else if token.kind != Kind::Close {
                    // Something else is quoted, or more than that.
                    self.quoted = Some(Vec::new());
                }
                Some(self.argument(token.kind, depth, stands_for))
            }
        }
    }

    fn may_be_variable(&self, token: &Token<'_>) -> bool {
        token.kind == Kind::Word && !token.is_cut() && !self.is_joined
    }

    /// An operand stands behind what there is: which operator joins them. Where one of the two is a text, the
    /// other is read as one, too, and only an operator of two texts can be meant (PostgreSQL documentation,
    /// 10.2).
    fn join(&mut self) {
        let is_untyped = self.is_untyped && self.is_literal;
        if std::mem::take(&mut self.is_joined) {
            self.trust(NameKey::of_operator(if is_untyped { b"||" } else { TEXTS_JOINED }));
        }
        self.is_untyped = is_untyped;
    }

    fn call(&mut self, token: &Token<'_>) -> Option<Call> {
        if token.kind != Kind::Word || token.is_cut() {
            return None;
        }
        let call = if is_one(token, &[b"format"]) {
            Call::Format
        } else {
            Call::Quote(QUOTING.iter().find(|(name, _)| is_one(token, &[name]))?.1)
        };
        self.trust(NameKey::of(token.text));
        Some(call)
    }

    fn argument(&mut self, kind: Kind, depth: u32, stands_for: &'static [u8]) -> Next {
        let depth = match kind {
            Kind::Open => depth.saturating_add(1),
            Kind::Close => depth - 1,
            _ => depth,
        };
        if depth > 0 {
            return Next::Arguments { depth, stands_for };
        }
        match self.quoted.take().filter(|name| stands_for == ANY_NAME && is_plain(name)) {
            Some(name) => self.text.extend_from_slice(&name),
            None => self.text.extend_from_slice(stands_for),
        }
        Next::Joint
    }

    /// `format`'s first argument: `%I`, `%L`, `%1$I`, `%%`. Not `%s`, which quotes nothing.
    fn template(&mut self, template: &[u8]) -> Option<()> {
        let mut rest = template;
        while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
            self.text.extend_from_slice(rest.get(..at)?);
            rest = rest.get(at + 1..)?;
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits > 0 && rest.get(digits) == Some(&b'$') {
                rest = rest.get(digits + 1..)?;
            }
            self.text.extend_from_slice(match rest.first()? {
                b'I' => ANY_NAME,
                b'L' => ANY_VALUE,
                b'%' => b"%",
                _ => return None,
            });
            rest = rest.get(1..)?;
        }
        self.text.extend_from_slice(rest);
        Some(())
    }

    fn trust(&mut self, name: NameKey) {
        if !self.trusted.contains(&name) {
            self.trusted.push(name);
        }
    }

    /// What running it does; `None` if nobody knows.
    pub(super) fn facts(self, dialect: Dialect) -> Option<Facts> {
        if self.unknown || self.next != Next::Joint {
            return None;
        }
        let text = &self.text;
        let mut check = Check { text, ..Check::default() };
        let mut lexer = Lexer::new(dialect);
        lexer.feed(text, &mut check);
        lexer.finish(&mut check);
        let names = places(text, ANY_NAME)?;
        let values = places(text, ANY_VALUE)?;
        if check.misplaced || check.names != names || check.values != values {
            return None;
        }
        let mut facts = Code::read(dialect, super::build::Language::Sql, text);
        facts.trusted = self.trusted;
        facts.any_relation = check.any_relation;
        facts.any_name = check.any_name;
        Some(facts)
    }
}

/// An expression by itself.
struct Expression<'a> {
    dynamic: Dynamic,
    code: &'a [u8],
    ended: bool,
}

impl Sink for Expression<'_> {
    fn token(&mut self, token: Token<'_>) {
        self.ended |= self.dynamic.token(&token, self.code);
    }
}

/// How often it stands there; `None` where it could be a part of something longer.
fn places(text: &[u8], what: &[u8]) -> Option<usize> {
    let apart = |byte: Option<&u8>| byte.is_none_or(|byte| b" \t\r\n()[],.;=<>|:+-*/".contains(byte));
    let mut count = 0;
    let mut from = 0;
    while let Some(at) = text.get(from..)?.windows(what.len()).position(|window| window == what) {
        let (start, end) = (from + at, from + at + what.len());
        let before = start.checked_sub(1).and_then(|before| text.get(before));
        if !apart(before) || !apart(text.get(end)) {
            return None;
        }
        (count, from) = (count + 1, end);
    }
    Some(count)
}

/// Looks where names and values stand in the string.
#[derive(Debug, Default)]
struct Check<'a> {
    text: &'a [u8],
    names: usize,
    values: usize,
    misplaced: bool,
    any_relation: bool,
    any_name: bool,
    /// A statement has begun; it may have names and values; it changes the catalogue; it creates something.
    inside: bool,
    allowed: bool,
    ddl: bool,
    creates: bool,
    /// The last word says that rows are added or deleted: their table stands behind the next one.
    changes_rows: bool,
    /// For each open parenthesis, and outside of all: a comma separates relations.
    in_from: Vec<bool>,
    last: Before,
    /// The dotted name to which the last token belongs: what was expected where it begins.
    begun: Before,
    /// It begins with a schema that is none of the system's.
    of_schema: bool,
}

/// What the last token was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Before {
    #[default]
    Other,
    Dot,
    /// A word behind which the table stands that is written to or changed: the system's own refuse that.
    Target,
    /// A word behind which a relation is read or updated, which the system's own views allow: they show what
    /// the session has (`pg_prepared_statements`), or set it (`pg_settings`).
    Relation,
    /// Something else behind which a name may stand.
    Named,
}

impl Check<'_> {
    fn name(&mut self) {
        self.names += 1;
        let place = if self.last == Before::Dot { self.begun } else { self.last };
        match place {
            Before::Target => self.any_relation = true,
            Before::Relation if self.last == Before::Dot && self.of_schema => self.any_relation = true,
            Before::Relation => self.misplaced = true,
            // `t.f` calls the function f of a row.
            Before::Named | Before::Dot | Before::Other if self.last == Before::Dot => self.any_name = true,
            Before::Named => {}
            Before::Dot | Before::Other => self.misplaced = true,
        }
        self.misplaced |= !self.allowed;
    }

    fn word(&mut self, token: &Token<'_>) -> Before {
        let changes_rows =
            std::mem::replace(&mut self.changes_rows, is_one(token, &[b"insert", b"merge", b"delete"]));
        let relations = is_one(token, &READ);
        if let Some(in_from) = self.in_from.last_mut() {
            *in_from = relations && !changes_rows || *in_from && !is_one(token, &NAMED);
        }
        if changes_rows && is_one(token, &[b"into", b"from"]) || self.ddl && is_one(token, &OBJECT) {
            return Before::Target;
        }
        match () {
            () if relations => Before::Relation,
            // Not CREATE TABLE ... AS execute q.
            () if is_one(token, &[b"as"]) && !self.creates => Before::Named,
            () if is_one(token, &NAMED) => Before::Named,
            () => Before::Other,
        }
    }

    fn sign(&mut self, kind: Kind) -> Before {
        let in_from = self.in_from.last().copied().unwrap_or(true);
        match kind {
            Kind::Open if self.in_from.len() < NESTED => self.in_from.push(in_from),
            Kind::Open => self.misplaced = true,
            Kind::Close if self.in_from.len() > 1 => drop(self.in_from.pop()),
            Kind::Close => self.misplaced = true,
            _ => {}
        }
        match kind {
            Kind::Dot => Before::Dot,
            Kind::Comma | Kind::Open if in_from => Before::Relation,
            Kind::Comma | Kind::Open | Kind::Equals | Kind::Operator | Kind::Star => Before::Named,
            _ => Before::Other,
        }
    }

    fn begins_statement(&mut self, token: &Token<'_>) {
        let is_word = token.kind == Kind::Word;
        self.allowed = is_word && is_one(token, &VERBS);
        self.ddl = is_word && is_one(token, &DDL);
        self.creates = is_one(token, &[b"create"]);
        (self.last, self.changes_rows) = (Before::Other, false);
        self.in_from = vec![false];
    }
}

impl Sink for Check<'_> {
    fn token(&mut self, token: Token<'_>) {
        if !self.inside {
            self.begins_statement(&token);
        }
        self.inside = token.kind != Kind::Semicolon;
        let text = self.text;
        let stands = |what: &[u8]| {
            let place = usize::try_from(token.start).ok().zip(usize::try_from(token.end).ok());
            place.and_then(|(start, end)| text.get(start..end)) == Some(what)
        };
        let is_name = token.kind == Kind::Word && stands(ANY_NAME);
        if is_name {
            self.name();
        } else if token.kind == Kind::Param && stands(ANY_VALUE) {
            self.values += 1;
            self.misplaced |= !self.allowed;
        }
        if token.kind != Kind::Dot && self.last != Before::Dot {
            self.begun = self.last;
            self.of_schema =
                token.kind == Kind::Word && !is_name && !token.text.to_ascii_lowercase().starts_with(b"pg_");
        }
        self.last = if token.kind == Kind::Word { self.word(&token) } else { self.sign(token.kind) };
    }
}

/// A name that `quote_ident()` leaves as it is, and that is nothing but a name wherever it stands.
fn is_plain(name: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
    let starts = name.first().is_some_and(|byte| !byte.is_ascii_digit());
    starts && name.iter().all(plain) && is_no_word(name)
}

/// What a string literal says. `None`: it has escapes, or a prefix.
fn literal(token: &Token<'_>, code: &[u8]) -> Option<Vec<u8>> {
    let (start, end) = (usize::try_from(token.start).ok()?, usize::try_from(token.end).ok()?);
    let prefixed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'&' | b'\'' | b'$');
    if start.checked_sub(1).and_then(|before| code.get(before)).is_some_and(prefixed) {
        return None;
    }
    let raw = code.get(start..end)?;
    if raw.contains(&b'\\') {
        return None;
    }
    if raw.first() == Some(&b'$') {
        let tag = raw.iter().skip(1).position(|&byte| byte == b'$')? + 2;
        return Some(raw.get(tag..raw.len().checked_sub(tag)?)?.to_vec());
    }
    let inside = raw.strip_prefix(b"'")?.strip_suffix(b"'")?;
    let mut said = Vec::with_capacity(inside.len());
    let mut bytes = inside.iter();
    while let Some(&byte) = bytes.next() {
        if byte == b'\'' && bytes.next() != Some(&b'\'') {
            return None;
        }
        said.push(byte);
    }
    Some(said)
}

fn is_bar(token: &Token<'_>) -> bool {
    token.kind == Kind::Operator && token.text.first() == Some(&b'|')
}

fn is_one(token: &Token<'_>, words: &[&[u8]]) -> bool {
    words.iter().any(|word| token.text.eq_ignore_ascii_case(word))
}
