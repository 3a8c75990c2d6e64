//! Texts that ask about the session: the answer is Weir's and is put in their place.
//!
//! CONNECTION_ID() and @@pseudo_thread_id give Weir's number of the client. (Setting pseudo_thread_id would
//! do it on the server, but needs a privilege that applications do not have.) ROW_COUNT() and
//! FOUND_ROWS() give what the last reply said, unless the text runs on the server that gave that reply and
//! nothing else has run there since.
//!
//! What SHOW STATUS says of TLS is about the client's own connection (see [`crate::ssl_status`]).
//!
//! Where the text reads what the server says of its sessions (the process list and its like), CONNECTION_ID() stays
//! as it is.
//!
//! A call that is a whole item of the select list keeps its column's name by an alias. In the middle of an
//! expression without an alias the column's name shows the number instead of the call.

use crate::session_state::Flavour;
use crate::ssl_status;
use weir_sql::{CallKind, Class, Uses, Verb};

/// What can be answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answers {
    pub id: u32,
    pub row_count: i64,
    /// `None` when only the server knows.
    pub found_rows: Option<u64>,
    /// Version and cipher of the client's own TLS; empty: none.
    pub tls: (&'static str, &'static str),
    pub flavour: Flavour,
}

/// The text asks for more of it than the lexer lists.
pub(crate) fn impossible(class: &Class) -> bool {
    class.uses.contains(Uses::OVERFLOW) && class.uses.contains(Uses::CONNECTION_ID)
}

/// The text with its answers, if it asks. With `about_last` false (a text to prepare) what changes from
/// statement to statement is left alone.
pub(crate) fn text(class: &Class, text: &[u8], answers: &Answers, about_last: bool) -> Option<Vec<u8>> {
    if class.statements == 1
        && matches!(class.verb, Verb::Show | Verb::Select)
        && let Some(answer) = ssl_status::text(text, answers.flavour, answers.tls)
    {
        return Some(answer);
    }
    let own_session = !class.calls().is_empty() && looks_at_servers(text);
    let mut out = Vec::new();
    let mut at = 0;
    for call in class.calls() {
        let answer = match call.kind {
            CallKind::ConnectionId | CallKind::PseudoThreadId if own_session => continue,
            // The casts give the types that the calls have.
            CallKind::ConnectionId | CallKind::PseudoThreadId => format!("CAST({} AS UNSIGNED)", answers.id),
            CallKind::RowCount if about_last => format!("CAST({} AS SIGNED)", answers.row_count),
            CallKind::FoundRows if about_last => match answers.found_rows {
                Some(rows) => format!("CAST({rows} AS SIGNED)"),
                None => continue,
            },
            CallKind::RowCount
            | CallKind::FoundRows
            | CallKind::LastInsertId
            | CallKind::Identity
            | CallKind::BackendPid => continue,
        };
        let (Some(before), Some(name)) = (text.get(at..call.span.start as usize), call.span.of(text)) else {
            return None;
        };
        out.extend_from_slice(before);
        out.extend_from_slice(answer.as_bytes());
        if call.bare && !name.contains(&b'`') {
            out.extend_from_slice(b" AS `");
            out.extend_from_slice(name);
            out.push(b'`');
        }
        at = call.span.end as usize;
    }
    if at == 0 {
        return None;
    }
    out.extend_from_slice(text.get(at..)?);
    Some(out)
}

/// The text reads what the server says of its sessions: there the client is its server's connection, and only by that number it
/// finds itself.
fn looks_at_servers(text: &[u8]) -> bool {
    let views: [&[u8]; 8] = [
        b"processlist",
        b"performance_schema",
        b"sys",
        b"threads",
        b"innodb_trx",
        b"innodb_locks",
        b"innodb_lock_waits",
        b"is_used_lock",
    ];
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    text.split(|b| !word(b)).any(|found| views.iter().any(|view| found.eq_ignore_ascii_case(view)))
}

/// `KILL [QUERY] CONNECTION_ID()`: whether only the request is meant.
pub(crate) fn kill_self(class: &Class, text: &[u8]) -> Option<bool> {
    let [call] = class.calls() else { return None };
    if call.kind != CallKind::ConnectionId || class.statements != 1 {
        return None;
    }
    let before = std::str::from_utf8(text.get(..call.span.start as usize)?).ok()?.to_ascii_uppercase();
    let behind = text.get(call.span.end as usize..)?;
    if !behind.iter().all(|b| b.is_ascii_whitespace() || *b == b';') {
        return None;
    }
    match before.split_ascii_whitespace().collect::<Vec<_>>().as_slice() {
        ["KILL"] | ["KILL", "CONNECTION"] => Some(false),
        ["KILL", "QUERY"] => Some(true),
        _ => None,
    }
}
