//! What the verb of a text and its plain words say about its effects.
//!
//! Must not know: clients, servers, what the catalogue says beyond the class.
//!
//! Invariant: in doubt a text does more.

use super::{Draws, Effects};
use std::sync::Arc;
use weir_sql::catalogue::Proof;
use weir_sql::{Class, Dialect, Locks, Uses, Verb, classify_in, makes_code, plain_words, prepared_text};

/// A text changes what code does, so that those behind it may run something else than the catalogue said.
pub(super) fn changes_code(class: &Class, text: &[u8]) -> bool {
    const KINDS: [&str; 10] = [
        "function",
        "procedure",
        "aggregate",
        "view",
        "trigger",
        "rule",
        "operator",
        "cast",
        "policy",
        "domain",
    ];
    class.ddl && makes_code(text, &["create", "alter"], &KINDS)
}

/// A text makes or alters nothing but tables, indexes and sequences, with nothing in them that the catalogue
/// knows to leave something: what is done with them behind it leaves nothing that was not known before.
pub(super) fn only_plain(class: &Class, text: &[u8]) -> bool {
    const ON_THE_WAY: [&str; 9] =
        ["or", "unique", "unlogged", "temp", "temporary", "local", "global", "if", "exists"];
    const KINDS: [&str; 5] = ["table", "index", "sequence", "column", "constraint"];
    let is_one_of = |word: &[u8], wanted: &[&str]| {
        wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted.as_bytes()))
    };
    let leaves = !class.pins.is_empty() || class.touched().is_some() || class.statement_names;
    if !class.foreseen || class.user_code && leaves {
        return false;
    }
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let (mut rest, mut open) = (text, false);
    while let Some(start) = rest.iter().position(is_of_word) {
        let (between, from) = rest.split_at(start);
        let end = from.iter().position(|byte| !is_of_word(byte)).unwrap_or(from.len());
        let (word, behind) = from.split_at(end);
        rest = behind;
        // In a comment behind CREATE a kind is none.
        if open && !between.iter().all(u8::is_ascii_whitespace) {
            return false;
        }
        if open && !is_one_of(word, &ON_THE_WAY) {
            if !is_one_of(word, &KINDS) {
                return false;
            }
            open = false;
        } else {
            open |= is_one_of(word, &["create", "alter"]);
        }
        // What these bring along somebody else has made, or it begins to count.
        if is_one_of(word, &["extension", "import", "call", "do", "execute", "enable", "force"]) {
            return false;
        }
    }
    !open
}

/// Among the statements of a text, or of code in it, may be one that sets what `decides` something for those
/// behind it.
pub(super) fn sets_amid(class: &Class, text: &[u8], decides: fn(&str) -> bool) -> bool {
    const SETS: [&[u8]; 7] =
        [b"zone", b"names", b"option", b"set_config", b"pg_settings", b"reset", b"discard"];
    let sets = |word: &[u8]| {
        std::str::from_utf8(word).is_ok_and(decides)
            || SETS.iter().any(|sets| word.eq_ignore_ascii_case(sets))
    };
    let several = class.statements > 1 || class.uses.contains(Uses::BLOCK);
    let touched = class.touched().is_some_and(|touched| touched.changes(decides));
    touched || several && plain_words(text).any(sets)
}

/// A text that changes the catalogue speaks of accounts. Words that only look so cost a few logins at the
/// server.
pub(super) fn changes_accounts(class: &Class, text: &[u8]) -> bool {
    let words: &[&[u8]] = match class.verb {
        _ if class.statements > 1 => &[b"role", b"user", b"database", b"grant", b"revoke"],
        Verb::Create | Verb::Alter | Verb::Drop => &[b"role", b"user", b"group", b"database"],
        Verb::Catalogue => &[b"grant", b"revoke"],
        Verb::Do => &[b"role", b"user", b"database", b"grant", b"revoke"],
        // COMMIT PREPARED says nothing of what it commits.
        Verb::TwoPhase => return true,
        _ => return false,
    };
    plain_words(text).any(|found| words.iter().any(|wanted| found.eq_ignore_ascii_case(wanted)))
}

/// A setting that lasts for a transaction, whatever word it is set with.
pub(super) fn is_of_transaction(name: &str) -> bool {
    ["transaction_deferrable", "transaction_isolation", "transaction_read_only"]
        .iter()
        .any(|of| name.eq_ignore_ascii_case(of))
}

/// It is among the words of the text, or of its strings and comments.
pub(super) fn says(text: &[u8], word: &str) -> bool {
    plain_words(text).any(|found| found.eq_ignore_ascii_case(word.as_bytes()))
}

/// What the PREPARE at the start of a text prepares, if it is the only one.
pub(super) fn what_is_prepared(
    dialect: Dialect,
    class: &Class,
    text: &[u8],
    proof: Option<Proof>,
) -> Option<Arc<Effects>> {
    let end = match class.first_end as usize {
        0 => text.len(),
        end => end.min(text.len()),
    };
    let (first, rest) = text.split_at(end);
    if class.verb != Verb::Prepare || says(rest, "prepare") {
        return None;
    }
    let prepared = prepared_text(dialect, first)?;
    Some(Effects::of_class(&classify_in(dialect, prepared, proof).0))
}

/// Texts in which no code of users can run: transaction control, settings, and what only speaks of the
/// session.
pub(super) fn runs_user_code(class: &Class) -> bool {
    let harmless = matches!(
        class.verb,
        Verb::Empty
            | Verb::Begin
            | Verb::Commit
            | Verb::Rollback
            | Verb::RollbackTo
            | Verb::Savepoint
            | Verb::Release
            | Verb::Set
            | Verb::Reset
            | Verb::Show
            | Verb::Discard
            | Verb::Deallocate
            | Verb::Listen
            | Verb::Unlisten
            | Verb::Notify
    );
    // A COMMIT runs what is deferred, but that belongs to statements before it.
    class.statements > 1 || !harmless
}

/// DDL that adds nothing where the search path says: what it makes stands beside what it changes.
pub(super) fn only_changes(verb: Verb) -> bool {
    matches!(verb, Verb::Alter | Verb::Drop | Verb::Truncate | Verb::Catalogue | Verb::TwoPhase)
}

/// DDL that takes things or rows away, or rights.
pub(super) fn only_drops(verb: Verb) -> bool {
    matches!(verb, Verb::Drop | Verb::Truncate | Verb::Catalogue)
}

pub(super) fn is_planned(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::Select
            | Verb::Values
            | Verb::Insert
            | Verb::Update
            | Verb::Delete
            | Verb::Merge
            | Verb::Unrecognised
    )
}

/// Of these nothing but the grammar is looked at before they run (`analyze.c`: all that is neither planned
/// nor EXPLAIN, DECLARE, CALL or CREATE TABLE AS). Some of them fail where anything stands beside them.
pub(super) fn is_read_late(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::Alter
            | Verb::Close
            | Verb::Deallocate
            | Verb::Discard
            | Verb::Drop
            | Verb::Listen
            | Verb::Lock
            | Verb::Maintain
            | Verb::Notify
            | Verb::TwoPhase
            | Verb::Unlisten
    )
}

/// Who is pinned for what it may free is asked behind it whether that is still so.
pub(super) fn may_free(class: &Class) -> bool {
    let frees =
        matches!(class.verb, Verb::Drop | Verb::Close | Verb::Unlisten | Verb::Discard | Verb::Deallocate);
    // It speaks of statements by name, and gives none.
    let names = class.statement_names && class.verb != Verb::Prepare;
    // Functions free locks, and may take one in vain.
    let calls = matches!(class.verb, Verb::Select | Verb::Values | Verb::Call | Verb::Do | Verb::Execute);
    frees
        || names
        || (calls && !class.only_reads())
        || class.takes.intersects(Locks::ADVISORY)
        || class.statements > 1
}

/// Not a known statement, alone, that sets nothing and calls nothing but what is known to be harmless.
pub(super) fn may_set(class: &Class) -> bool {
    let sets = matches!(class.verb, Verb::Set | Verb::Reset | Verb::Discard);
    // What the lexer does not know is an error nearly always, and pins otherwise.
    let other = matches!(class.verb, Verb::Copy | Verb::Unrecognised);
    let quiet = class.shareable || is_quiet(class.verb) || other;
    sets || class.statements > 1 || !quiet
}

/// What one session knows of sequences is asked.
pub(super) fn asks_sequence(class: &Class) -> bool {
    class.uses.intersects(Uses::CURRVAL | Uses::LASTVAL | Uses::CODE_ASKS_SEQUENCE)
}

/// No is said of a known statement, alone, that writes nothing and calls nothing but what is known to be
/// harmless; `Temporary` of one that writes to what the catalogue knows.
pub(super) fn draws(class: &Class) -> Draws {
    if class.uses.intersects(Uses::NEXTVAL | Uses::SETVAL) {
        return Draws::Outright;
    }
    let does = Uses::UNKNOWN_FUNCTION | Uses::WITH_WRITES | Uses::BLOCK;
    let only_asks = matches!(class.verb, Verb::Select | Verb::Values)
        && asks_sequence(class)
        && !class.uses.intersects(does | Uses::CODE_WRITES)
        && class.pins.is_empty();
    let is_known = class.proven && class.pins.is_empty() && !class.uses.intersects(does | Uses::CODE_WRITES);
    match class.verb {
        _ if class.statements > 1 => Draws::May,
        verb if class.only_reads() || is_quiet(verb) || only_asks => Draws::No,
        Verb::Insert | Verb::Update | Verb::Delete | Verb::Merge if is_known => Draws::Temporary,
        _ => Draws::May,
    }
}

/// Statements that run nothing of the database's own.
fn is_quiet(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::Empty
            | Verb::Begin
            | Verb::Commit
            | Verb::Rollback
            | Verb::Savepoint
            | Verb::Release
            | Verb::RollbackTo
            | Verb::Fetch
            | Verb::Close
            | Verb::Show
            | Verb::Listen
            | Verb::Unlisten
            | Verb::Notify
            | Verb::Lock
            | Verb::Prepare
            | Verb::Deallocate
            | Verb::Set
            | Verb::Reset
            | Verb::Discard
            | Verb::Truncate
    )
}
