//! Rewrites texts that ask about the session: Weir inserts its own answer.
//!
//! CONNECTION_ID() and @@pseudo_thread_id return Weir's number of the client. (Setting pseudo_thread_id on
//! the server would do it, but needs a privilege that applications do not have.) ROW_COUNT() and
//! FOUND_ROWS(), @@warning_count and @@error_count return the values of the last reply. Only the first
//! statement of a text refers to the last reply: later ones refer to the statement before them, and the
//! server answers them correctly.
//!
//! The TLS values of SHOW STATUS are those of the client's own connection (see [`crate::ssl_status`]).
//!
//! Where a statement reads what the server reports about its sessions (such as the process list), or runs
//! code that contains CONNECTION_ID(), CONNECTION_ID() is not rewritten: both are the server's number then.
//! This does not apply to a table that may be a view that Weir has not read yet: tables that hold the
//! client's number are more common.
//!
//! A call that is a whole item of the select list keeps its column's name by an alias. In the middle of an
//! expression the server derives the column's name from the rewritten text: where it is visible (names of
//! columns, messages), the client's own text is restored, see [`restored`]. A syntax error quotes the text
//! from the position of the error: see [`cited`].

mod items;

use crate::session_state::Flavour;
use crate::ssl_status;
use crate::warnings::Warnings;
use crate::words::{Piece, Words};
use std::sync::Arc;
use weir_sql::{CallKind, Class, Span, Uses, Verb};

/// What stands in a text for the client's own words, in the order of the text.
pub(crate) type Names = Arc<[Name]>;

/// Words that stand in a text for the client's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    /// Where they stand in the text that the server gets.
    at: usize,
    put: Box<[u8]>,
    /// What the client wrote.
    said: Box<[u8]>,
    /// The server makes names of columns of them, and shows them in messages.
    shows: bool,
}

impl Name {
    fn end(&self) -> usize {
        self.at + self.put.len()
    }

    /// As a server shows an expression: in small letters, one blank between words, numbers without zeros in
    /// front.
    fn printed(words: &[u8], flavour: Flavour) -> Vec<u8> {
        let words = String::from_utf8_lossy(words).to_lowercase().replace("null", "NULL");
        if let Some(variable) = words.strip_prefix("@@") {
            // MySQL shows nothing there.
            let name = variable.rsplit('.').next().unwrap_or(variable).trim();
            return if flavour == Flavour::MySql { Vec::new() } else { format!("@@{name}").into() };
        }
        let mut out = String::new();
        let mut rest = words.as_str();
        while let Some(next) = rest.chars().next() {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (piece, behind) = rest.split_at(if digits > 0 { digits } else { next.len_utf8() });
            rest = behind;
            let number = piece.trim_start_matches('0');
            match next {
                _ if digits > 0 && out.ends_with('-') && flavour == Flavour::MySql => {
                    out.push_str(&format!("({number})"));
                }
                _ if digits > 0 => out.push_str(if number.is_empty() { "0" } else { number }),
                _ if next.is_whitespace() && (out.ends_with([' ', '(']) || rest.starts_with([' ', ')'])) => {}
                _ if next.is_whitespace() => out.push(' '),
                _ => out.push(next),
            }
        }
        out.into()
    }
}

/// A text with answers in it.
#[derive(Debug)]
pub(crate) struct Rewritten {
    pub text: Vec<u8>,
    pub names: Names,
}

impl From<Vec<u8>> for Rewritten {
    fn from(text: Vec<u8>) -> Rewritten {
        Rewritten { text, names: Names::default() }
    }
}

/// The text as its client wrote it.
fn original(sent: &[u8], names: &Names) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(sent.len());
    let mut at = 0;
    for name in names.iter() {
        out.extend_from_slice(sent.get(at..name.at)?);
        out.extend_from_slice(&name.said);
        at = name.end();
    }
    out.extend_from_slice(sent.get(at..)?);
    Some(out)
}

/// Bytes of a text that a syntax error cites; behind what is cut, MariaDB puts dots in the place of the last
/// three.
const CITED: usize = 80;
const DOTS: &[u8] = b"...";

/// The message of a syntax error that cites the text sent, as one that cites what the client wrote; `None`
/// when the two are the same, or it is not known where in the text the citation stands.
pub(crate) fn cited(message: &[u8], sent: &[u8], names: &Names, flavour: Flavour) -> Option<Vec<u8>> {
    let dots = flavour == Flavour::MariaDb;
    let quotes: Vec<usize> = (0..message.len()).filter(|at| message.get(*at) == Some(&b'\'')).collect();
    let end = *quotes.last()?;
    let (start, at) = quotes.iter().find_map(|quote| {
        let citation = message.get(quote + 1..end).filter(|citation| !citation.is_empty())?;
        let cut = citation.len() >= CITED;
        let citation = citation.strip_suffix(DOTS).filter(|_| cut && dots).unwrap_or(citation);
        let mut places = sent.windows(citation.len()).enumerate().filter(|(_, window)| *window == citation);
        let (at, _) = places.find(|(at, _)| cut || at + citation.len() == sent.len())?;
        Some((quote + 1, at))
    })?;
    let original = original(sent, names)?;
    let mut from = at;
    for name in names.iter().take_while(|name| name.at < at) {
        // Within what was put, it begins where the client's word begins.
        from = if at < name.end() { from + name.at - at } else { from + name.said.len() - name.put.len() };
    }
    let citation = original.get(from..)?;
    let cut = citation.len() > CITED;
    let most = if cut && dots { CITED - DOTS.len() } else { CITED };
    let citation = citation.get(..most).filter(|_| cut).unwrap_or(citation);
    let mut out = message.get(..start)?.to_vec();
    // A character is not cut.
    let text = String::from_utf8_lossy(citation);
    let whole = text.trim_end_matches('\u{FFFD}').len().min(citation.len());
    out.extend_from_slice(citation.get(..whole)?);
    if cut && dots {
        out.extend_from_slice(DOTS);
    }
    out.extend_from_slice(message.get(end..)?);
    (out != message).then_some(out)
}

/// A server's words with the client's own in the places of answers; `None` when there are none.
pub(crate) fn restored(words: &[u8], names: &Names, flavour: Flavour) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut at = 0;
    let mut pairs: Vec<[Box<[u8]>; 2]> = Vec::new();
    for name in names.iter().filter(|name| name.shows) {
        pairs.push([name.put.clone(), name.said.clone()]);
        let printed = |words| Name::printed(words, flavour).into();
        pairs.push([printed(&name.put), printed(&name.said)]);
    }
    while let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) {
        let next = pairs.iter().filter_map(|[put, said]| {
            let found = rest.windows(put.len()).position(|window| window == &**put)?;
            Some((found, put.len(), said))
        });
        let Some((found, len, said)) = next.min_by_key(|(found, ..)| *found) else { break };
        out.extend_from_slice(&rest[..found]);
        out.extend_from_slice(said);
        at += found + len;
    }
    if at == 0 {
        return None;
    }
    out.extend_from_slice(words.get(at..)?);
    Some(out)
}

/// What can be answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answers<'a> {
    pub id: u32,
    pub row_count: i64,
    /// `None` when only the server knows.
    pub found_rows: Option<u64>,
    /// Warnings altogether, and errors among them. `None` when only the server knows.
    pub warning_counts: Option<(u64, u64)>,
    /// The warnings themselves, if they are kept.
    pub diagnostics: Option<&'a Warnings>,
    /// Version and cipher of the client's own TLS; empty: none.
    pub own: ssl_status::Own,
    pub flavour: Flavour,
}

/// The text asks for more of it than the lexer lists.
pub(crate) fn impossible(class: &Class) -> bool {
    class.uses.contains(Uses::OVERFLOW) && class.uses.contains(Uses::CONNECTION_ID)
}

/// The text with its answers, if it asks. With `about_last` false (a text to prepare) what changes from
/// statement to statement is left alone.
pub(crate) fn text(class: &Class, text: &[u8], answers: &Answers<'_>, about_last: bool) -> Option<Rewritten> {
    if class.statements == 1
        && matches!(class.verb, Verb::Show | Verb::Select)
        && let Some(answer) = ssl_status::text(text, answers.flavour, answers.own)
    {
        return Some(answer.into());
    }
    let looks = !class.calls().is_empty() && looks_at_servers(text);
    let of_code = class.uses.contains(Uses::CODE_CONNECTION_ID);
    let several = class.statements > 1 && !class.doubtful && !class.uses.contains(Uses::EXECUTABLE_COMMENT);
    let about_last = about_last && asks_about_last(class);
    let found_moves = about_last && crate::says::found_moves(class, text, answers.flavour);
    if about_last && matches!(class.verb, Verb::Show | Verb::Get) && class.statements == 1 {
        let end = if class.first_end == 0 { text.len() } else { class.first_end as usize };
        // A comment behind it is answered, too.
        let (head, rest) = text.split_at_checked(end)?;
        if class.verb == Verb::Get {
            let set = crate::warnings::diagnostics(head, answers.diagnostics?, answers.row_count)?;
            return Some([&set, rest].concat().into());
        }
        if let Some(errors) = crate::says::show_count(head) {
            let shown = count_shown(answers.warning_counts?, errors);
            return Some([shown.as_bytes(), rest].concat().into());
        }
    }
    let mut places = if about_last { warning_counts(class, text, answers) } else { Vec::new() };
    for call in class.calls() {
        let about_last = about_last && is_in_first(class, call.span);
        let statement = || statement_of(text, call.span.start as usize);
        let own_session = of_code && (!several || may_run_code(statement()));
        let own_session = own_session || looks && looks_at_servers(statement());
        let answer = match call.kind {
            CallKind::ConnectionId | CallKind::PseudoThreadId if own_session => continue,
            // The casts give the types that the calls have.
            CallKind::ConnectionId => format!("CAST({} AS UNSIGNED)", answers.id),
            CallKind::PseudoThreadId => count_of(u64::from(answers.id)),
            // The other branch gives the width, also to what it is a part of.
            CallKind::RowCount if about_last && answers.flavour == Flavour::MariaDb => {
                format!("IF(1,{},ROW_COUNT())", answers.row_count)
            }
            CallKind::RowCount if about_last => signed(answers.row_count),
            CallKind::FoundRows if about_last && !found_moves => match answers.found_rows {
                // MySQL warns of the call.
                Some(rows) if answers.flavour == Flavour::MySql => {
                    format!("IF(1,{},FOUND_ROWS())", signed(rows.cast_signed()))
                }
                Some(rows) => format!("IF(1,{rows},FOUND_ROWS())"),
                None => continue,
            },
            CallKind::RowCount
            | CallKind::FoundRows
            | CallKind::LastInsertId
            | CallKind::Identity
            | CallKind::BackendPid => continue,
        };
        places.push(Place { span: call.span, answer, bare: call.bare, names: false });
    }
    if !places.is_empty() && (class.verb == Verb::Create || class.uses.contains(Uses::SUBQUERY)) {
        let aliases = items::aliases(text, class.verb == Verb::Create, |start, end| {
            places.iter().any(|place| (start..end).contains(&(place.span.start as usize)))
        });
        places.extend(aliases.into_iter().filter_map(|(at, alias)| {
            let at = u32::try_from(at).ok()?;
            Some(Place { span: Span { start: at, end: at }, answer: alias, bare: false, names: true })
        }));
    }
    places.sort_by_key(|place| place.span.start);
    let (mut out, mut at, mut names) = (Vec::new(), 0, Vec::new());
    for place in places {
        place.put(text, &mut at, &mut out, &mut names)?;
    }
    if at == 0 {
        return None;
    }
    out.extend_from_slice(text.get(at..)?);
    Some(Rewritten { text: out, names: names.into() })
}

/// The statement of the text that this place is in.
fn statement_of(text: &[u8], place: usize) -> &[u8] {
    let ends = Words::new(text).filter(|piece| piece.is(b";")).map(|piece| piece.start());
    let (mut start, mut end) = (0, text.len());
    for at in ends {
        if at >= place {
            end = at;
            break;
        }
        start = at;
    }
    text.get(start..end).unwrap_or(text)
}

/// Code of the database may run in this one of several statements: it names more than CONNECTION_ID().
fn may_run_code(statement: &[u8]) -> bool {
    let before: [&[u8]; 9] = [b"CONNECTION_ID", b"SELECT", b"AND", b"OR", b"NOT", b"IN", b"=", b",", b"("];
    let names: [&[u8]; 7] = [b"FROM", b"TABLE", b"INTO", b"CALL", b"EXECUTE", b"UPDATE", b"JOIN"];
    let is_one_of = |piece: &Piece<'_>, words: &[&[u8]]| words.iter().any(|word| piece.is(word));
    let pieces: Vec<Piece<'_>> = Words::new(statement).collect();
    let calls = pieces.windows(2).any(|pair| match pair {
        [name, next] => next.is(b"(") && !is_one_of(name, &before),
        _ => false,
    });
    calls || pieces.iter().any(|piece| is_one_of(piece, &names))
}

/// What the server says of its sessions.
const VIEWS: [&[u8]; 10] = [
    b"ps_thread_id",
    b"ps_current_thread_id",
    b"processlist",
    b"performance_schema",
    b"sys",
    b"threads",
    b"innodb_trx",
    b"innodb_locks",
    b"innodb_lock_waits",
    b"is_used_lock",
];

/// The text reads what the server says of its sessions: there the client is its server's connection, and only
/// by that number it finds itself.
fn looks_at_servers(text: &[u8]) -> bool {
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let is_view = |name: &[u8]| VIEWS.iter().any(|view| name.eq_ignore_ascii_case(view));
    // Where a string ends depends on settings, and what a comment says may be run.
    let unclear = || text.contains(&b'\\') || text.windows(2).any(|two| matches!(two, b"*!" | b"M!"));
    text.split(|b| !word(b)).any(is_view) && (unclear() || reads_views(text))
}

/// One of these stands where a table is read, is called, or is the schema of something; and is no alias,
/// column or part of a string.
fn reads_views(text: &[u8]) -> bool {
    let begins: [&[u8]; 10] = [
        b"FROM",
        b"JOIN",
        b"STRAIGHT_JOIN",
        b"UPDATE",
        b"INTO",
        b"TABLE",
        b"SHOW",
        b"FULL",
        b"LATERAL",
        b"HANDLER",
    ];
    let ends: [&[u8]; 11] = [
        b"SELECT", b"WHERE", b"GROUP", b"HAVING", b"ORDER", b"LIMIT", b"SET", b"ON", b"VALUES", b"UNION",
        b"WINDOW",
    ];
    let is_one_of = |piece: &Piece<'_>, words: &[&[u8]]| words.iter().any(|word| piece.is(word));
    let mut words = Words::new(text).peekable();
    // In the list of tables, for each parenthesis that is open.
    let mut lists = vec![false];
    let mut before: Option<Piece<'_>> = None;
    while let Some(piece) = words.next() {
        let name = match piece.bytes {
            [b'`', name @ .., b'`'] | [b'"', name @ .., b'"'] => name,
            name => name,
        };
        let in_list = lists.last().copied().unwrap_or_default();
        if VIEWS.iter().any(|view| name.eq_ignore_ascii_case(view)) {
            let next = words.peek();
            let begins_name =
                |piece: &Piece<'_>| is_one_of(piece, &begins) || is_one_of(piece, &[b",", b"(", b"."]);
            let is_read = in_list && before.as_ref().is_some_and(begins_name);
            if is_read || next.is_some_and(|next| next.is(b".") || next.is(b"(")) {
                return true;
            }
        } else if piece.is(b"(") {
            lists.push(in_list);
        } else if piece.is(b")") {
            lists.pop();
        } else if let Some(last) = lists.last_mut() {
            *last = is_one_of(&piece, &begins) || *last && !is_one_of(&piece, &ends);
        }
        before = Some(piece);
    }
    false
}

/// With so many digits it is a BIGINT of the width that the functions have.
fn signed(number: i64) -> String {
    format!("CAST({number:021} AS SIGNED)")
}

/// As a variable that may be NULL.
fn count_of(number: u64) -> String {
    format!("IF(1,CAST({number:021} AS UNSIGNED),NULL)")
}

/// What shows the count of warnings or errors, of which there are so many, as SHOW COUNT(*) does.
pub(crate) fn count_shown((all, errors): (u64, u64), of_errors: bool) -> String {
    let (name, count) = if of_errors { ("error_count", errors) } else { ("warning_count", all) };
    format!("SELECT {} AS `@@session.{name}`", count_of(count))
}

/// The first statement may ask about the last reply, in a form that is evaluated at once.
pub(crate) fn asks_about_last(class: &Class) -> bool {
    let asks = Uses::ROW_COUNT | Uses::FOUND_ROWS | Uses::WARNINGS | Uses::DIAGNOSTICS;
    let evaluates = matches!(
        class.verb,
        Verb::Select
            | Verb::Values
            | Verb::Insert
            | Verb::Replace
            | Verb::Update
            | Verb::Delete
            | Verb::Do
            | Verb::Set
            | Verb::Call
            | Verb::Create
            | Verb::Alter
            | Verb::Load
            | Verb::Handler
            | Verb::Prepare
            | Verb::Execute
            | Verb::Show
            | Verb::Get
    );
    evaluates && class.uses.intersects(asks)
}

/// What it asks about warnings is answered by a text of Weir's, if there is one.
pub(crate) fn asks_known_warnings(class: &Class) -> bool {
    class.statements == 1 && matches!(class.verb, Verb::Select | Verb::Show | Verb::Get)
}

/// The first statement asks for FOUND_ROWS() of the one before.
pub(crate) fn asks_found_rows(class: &Class) -> bool {
    let of_first = |call: &weir_sql::Call| call.kind == CallKind::FoundRows && is_in_first(class, call.span);
    class.uses.contains(Uses::FOUND_ROWS) && class.calls().iter().any(of_first)
}

/// The first statement asks for ROW_COUNT() or FOUND_ROWS() of the one before; what stands behind it asks
/// about a statement of the same text.
pub(crate) fn asks_in_first(class: &Class) -> bool {
    let asks = |call: &weir_sql::Call| {
        matches!(call.kind, CallKind::FoundRows | CallKind::RowCount) && is_in_first(class, call.span)
    };
    class.uses.contains(Uses::OVERFLOW) && class.uses.intersects(Uses::ROW_COUNT | Uses::FOUND_ROWS)
        || class.calls().iter().any(asks)
}

fn is_in_first(class: &Class, span: Span) -> bool {
    class.first_end == 0 || span.start < class.first_end
}

/// Something to be put in the place of a part of the text.
struct Place {
    span: Span,
    answer: String,
    bare: bool,
    /// It names the item that it stands behind.
    names: bool,
}

impl Place {
    /// Copies the text up to it, and the answer. Line breaks are kept: errors tell lines.
    fn put(&self, text: &[u8], at: &mut usize, out: &mut Vec<u8>, names: &mut Vec<Name>) -> Option<()> {
        let name = self.span.of(text)?;
        out.extend_from_slice(text.get(*at..self.span.start as usize)?);
        if self.names {
            let put = self.answer.as_bytes().into();
            names.push(Name { at: out.len(), put, said: Box::default(), shows: true });
        } else if self.bare && !name.contains(&b'`') {
            let put = [self.answer.as_bytes(), b" AS `", name, b"`"].concat();
            names.push(Name { at: out.len(), put: put.into(), said: name.into(), shows: false });
        } else {
            // Blanks tell one from the other where several ask the same in other words.
            let lines = "\n".repeat(name.iter().filter(|byte| **byte == b'\n').count());
            let answer = self.answer.replacen('(', &format!("({lines}{:1$}", "", names.len()), 1);
            names.push(Name {
                at: out.len(),
                put: answer.into_bytes().into(),
                said: name.into(),
                shows: true,
            });
        }
        out.extend_from_slice(names.last().map_or(&[], |name| &name.put));
        *at = self.span.end as usize;
        Some(())
    }
}

/// The places where a SELECT asks for @@warning_count or @@error_count.
fn warning_counts(class: &Class, text: &[u8], answers: &Answers<'_>) -> Vec<Place> {
    let counts = answers.warning_counts.filter(|_| class.uses.contains(Uses::WARNINGS));
    let Some((all, errors)) = counts.filter(|_| class.verb == Verb::Select) else { return Vec::new() };
    // On MariaDB a statement that uses a table begins with none.
    let end = if class.first_end == 0 { text.len() } else { class.first_end as usize };
    let first = text.get(..end).unwrap_or(text);
    let cleared = answers.flavour == Flavour::MariaDb && crate::says::names_a_table(first);
    let (all, errors) = if cleared { (0, 0) } else { (all, errors) };
    let mut found = Vec::new();
    for variable in crate::says::counts_in(text) {
        if is_in_first(class, variable.span) {
            let number = if variable.errors { errors } else { all };
            let answer = count_of(number);
            found.push(Place { span: variable.span, answer, bare: variable.bare, names: false });
        }
    }
    found
}

impl Rewritten {
    /// The text as its client wrote it; `None` when it is sent like that.
    pub(crate) fn original(&self) -> Option<Vec<u8>> {
        original(&self.text, &self.names).filter(|text| *text != self.text)
    }

    /// The text stands behind these words.
    pub(crate) fn behind(mut self, words: &[u8]) -> Rewritten {
        self.text.splice(..0, words.iter().copied());
        self.names =
            self.names.iter().map(|name| Name { at: name.at + words.len(), ..name.clone() }).collect();
        self
    }

    /// The text begins with words of Weir's in the place of these.
    pub(crate) fn begins_with(mut self, put: &[u8], said: &[u8]) -> Rewritten {
        let name = Name { at: 0, put: put.into(), said: said.into(), shows: false };
        self.names = [name].into_iter().chain(self.names.iter().cloned()).collect();
        self
    }

    /// The text ends with words of Weir's in the place of these.
    pub(crate) fn ends_with(mut self, put: &[u8], said: &[u8]) -> Rewritten {
        let name = Name { at: self.text.len(), put: put.into(), said: said.into(), shows: false };
        self.text.extend_from_slice(put);
        self.names = self.names.iter().cloned().chain([name]).collect();
        self
    }
}

/// `KILL [QUERY] CONNECTION_ID()`: whether only the request is meant.
pub(crate) fn kill_self(class: &Class, text: &[u8]) -> Option<bool> {
    let start = class.kill_start();
    let end = match class.kill_end() {
        0 => text.len(),
        end => end as usize,
    };
    let call = class.calls().iter().find(|call| call.span.start >= start)?;
    let is_own = matches!(call.kind, CallKind::ConnectionId | CallKind::PseudoThreadId);
    if !is_own || class.uses.contains(Uses::OVERFLOW) {
        return None;
    }
    let before = text.get(start as usize..call.span.start as usize)?;
    let mut before = std::str::from_utf8(before).ok()?.to_ascii_uppercase();
    let mut behind = text.get(call.span.end as usize..end)?.trim_ascii();
    while let Some(inner) = behind.strip_suffix(b")") {
        before = before.trim_ascii_end().strip_suffix('(')?.to_owned();
        behind = inner.trim_ascii_end();
    }
    if !behind.iter().all(|b| *b == b';') {
        return None;
    }
    match before.split_ascii_whitespace().collect::<Vec<_>>().as_slice() {
        ["KILL"] | ["KILL", "CONNECTION"] => Some(false),
        ["KILL", "QUERY"] => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_sql::{Dialect, classify};

    fn answers_of(flavour: Flavour) -> Answers<'static> {
        Answers {
            id: 1234,
            row_count: 3,
            found_rows: Some(4),
            warning_counts: Some((0, 0)),
            diagnostics: None,
            own: ssl_status::Own::default(),
            flavour,
        }
    }

    /// As the server gets it.
    fn put(text: &str) -> String {
        let answers = answers_of(Flavour::MariaDb);
        let class = classify(Dialect::MARIADB, text.as_bytes());
        let rewritten = super::text(&class, text.as_bytes(), &answers, true);
        rewritten.map_or_else(|| text.to_owned(), |found| String::from_utf8_lossy(&found.text).into_owned())
    }

    #[test]
    fn whatever_evaluates_at_once_is_told_of_its_client_s_last_statement() {
        for text in [
            "LOAD DATA INFILE 'x' INTO TABLE w (a, @x) SET n = FOUND_ROWS()",
            "LOAD DATA LOCAL INFILE 'x' INTO TABLE w (a, @x) SET n = ROW_COUNT()",
            "PREPARE q FROM CONCAT('SELECT ', FOUND_ROWS())",
            "EXECUTE IMMEDIATE 'SELECT ?' USING ROW_COUNT()",
            "EXECUTE q USING ROW_COUNT()",
            "HANDLER t READ FIRST WHERE a = FOUND_ROWS()",
            "SHOW TABLES WHERE FOUND_ROWS() = 4",
            "SHOW STATUS WHERE Variable_name = 'x' AND FOUND_ROWS() = 4",
            "CREATE EVENT e ON SCHEDULE EVERY FOUND_ROWS() DAY DO SELECT 1",
            "ALTER EVENT e ON SCHEDULE EVERY ROW_COUNT() DAY",
        ] {
            assert!(put(text).contains("IF(1,"), "{text}: {}", put(text));
        }
        let stored = "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT FOUND_ROWS()";
        assert_eq!(put(stored), stored);
    }

    #[test]
    fn items_of_inner_lists_keep_their_names() {
        for (text, expected) in [
            (
                "SELECT `ROW_COUNT()` FROM (SELECT ROW_COUNT()) x",
                "SELECT `ROW_COUNT()` FROM (SELECT IF(1,3,ROW_COUNT())\tAS `ROW_COUNT()`) x",
            ),
            (
                "WITH c AS (SELECT CONNECTION_ID() + 1, 2) SELECT 1 FROM c",
                "WITH c AS (SELECT CAST(1234 AS UNSIGNED) + 1\tAS `CONNECTION_ID() + 1`, 2) SELECT 1 FROM c",
            ),
            (
                "CREATE TABLE d AS SELECT DISTINCT 2 * CONNECTION_ID() FROM t",
                "CREATE TABLE d AS SELECT DISTINCT 2 * CAST(1234 AS UNSIGNED)\tAS `2 * CONNECTION_ID()` FROM t",
            ),
            // They have names.
            (
                "CREATE TABLE d SELECT CONNECTION_ID() a, CONNECTION_ID() AS b",
                "CREATE TABLE d SELECT CAST(1234 AS UNSIGNED) a, CAST( 1234 AS UNSIGNED) AS b",
            ),
            // What stands behind the statement that fills a table is no column of it.
            (
                "CREATE TABLE d SELECT 1 a; SELECT CONNECTION_ID() + 1",
                "CREATE TABLE d SELECT 1 a; SELECT CAST(1234 AS UNSIGNED) + 1",
            ),
            // No item, or one whose name is the client's own text already.
            (
                "SELECT 1 + CONNECTION_ID(), (SELECT 1 FROM t WHERE a = CONNECTION_ID())",
                "SELECT 1 + CAST(1234 AS UNSIGNED), (SELECT 1 FROM t WHERE a = CAST( 1234 AS UNSIGNED))",
            ),
        ] {
            assert_eq!(put(text), expected);
        }
        let answers =
            ["SELECT (SELECT 1 + CONNECTION_ID()) AS x", "CREATE TABLE d SELECT CONNECTION_ID() IS NULL"];
        for text in answers {
            let class = classify(Dialect::MARIADB, text.as_bytes());
            let rewritten = super::text(&class, text.as_bytes(), &answers_of(Flavour::MySql), true);
            let rewritten = rewritten.expect("it asks");
            assert_eq!(rewritten.original().as_deref(), Some(text.as_bytes()));
            let shown = restored(&rewritten.text, &rewritten.names, Flavour::MySql);
            assert_eq!(shown.as_deref(), Some(text.as_bytes()));
        }
    }

    #[test]
    fn a_client_has_its_own_number_where_no_list_of_servers_is_read() {
        for text in [
            "SELECT CONNECTION_ID(), 'all threads' AS y",
            "SELECT CONNECTION_ID() AS threads",
            "SELECT CONNECTION_ID() threads, t.sys FROM t WHERE processlist = 1",
            "/* sys */ SELECT CONNECTION_ID()",
            "INSERT INTO w (who, n) VALUES ('the sys admin', CONNECTION_ID())",
        ] {
            assert!(put(text).contains("CAST(1234 AS UNSIGNED)"), "{text}: {}", put(text));
        }
        for text in [
            "SELECT * FROM information_schema.processlist WHERE id = CONNECTION_ID()",
            "SELECT * FROM t, threads WHERE processlist_id = CONNECTION_ID()",
            "SELECT * FROM t JOIN `threads` x ON processlist_id = CONNECTION_ID()",
            "SELECT (SELECT 1 FROM `performance_schema` . events WHERE a = CONNECTION_ID())",
            "SELECT * FROM (t, innodb_trx) WHERE x = CONNECTION_ID()",
            "SELECT sys.ps_thread_id(CONNECTION_ID())",
            "SELECT IS_USED_LOCK('a') = CONNECTION_ID()",
            "SELECT CONNECTION_ID() /*! FROM threads */",
        ] {
            assert_eq!(put(text), text);
        }
    }
}
