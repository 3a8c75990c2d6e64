//! What a client's text is.
//!
//! Owns: the memory of texts that differ in numbers only, of each worker. Must not know: what follows from a
//! class.
//!
//! Invariant: what is remembered is what reading the text again would give; builds with assertions read it
//! again each time, and compare.

use super::Front;
use std::cell::RefCell;
use weir_sql::catalogue::Proof;
use weir_sql::{Class, Memo, classify_in, makes_code};

thread_local! {
    static MEMO: RefCell<Memo<Class>> = RefCell::default();
}

impl Front {
    /// What a text is, with the state of the catalogue by which that was judged.
    pub(crate) fn classify(&self, text: &[u8]) -> (Class, u64) {
        let (dialect, knowledge) = (self.dialect(), &*self.knowledge);
        let read = || classify_in(dialect, text, knowledge.proof());
        if let Some(known) = MEMO.with_borrow_mut(|memo| memo.find(dialect, knowledge, text)) {
            if cfg!(debug_assertions) {
                let again = read();
                // Unless the catalogue has changed in between.
                assert!(again.1 != known.1 || again == known, "{}", String::from_utf8_lossy(text));
            }
            return known;
        }
        let (class, state) = read();
        if class.ddl && class.statements > 1 && changes_code(text) {
            // What stands behind it may run what nobody has read.
            return classify_in(dialect, text, knowledge.proof().map(Proof::changed));
        }
        if let Some(unsure) = Front::rereads_itself(&class, text, dialect) {
            return classify_in(unsure, text, knowledge.proof());
        }
        if class.is_of_any_numbers() {
            MEMO.with_borrow_mut(|memo| memo.keep(dialect, knowledge, state, || class.clone()));
        }
        (class, state)
    }
}

/// A text that changes the catalogue makes code, or makes it anew: what is only dropped does nothing any
/// more.
fn changes_code(text: &[u8]) -> bool {
    const KINDS: [&str; 5] = ["function", "procedure", "trigger", "view", "package"];
    makes_code(text, &["create", "alter", "rename"], &KINDS)
}

#[cfg(test)]
mod tests {
    use super::changes_code;

    #[test]
    fn a_text_that_makes_code_is_told_from_one_that_drops_some() {
        for text in [
            "DROP FUNCTION IF EXISTS f; CREATE FUNCTION f() RETURNS int RETURN @a := 1; SELECT f()",
            "create or replace view v as select 1; select * from v",
            "ALTER PROCEDURE p SQL SECURITY INVOKER; CALL p()",
            "DROP /* FUNCTION f; CREATE */ FUNCTION f; CREATE TABLE t (i int)",
        ] {
            assert!(changes_code(text.as_bytes()), "{text}");
        }
        for text in [
            "DROP FUNCTION fo; CREATE TABLE d AS SELECT 1",
            "CREATE TABLE a (i int); CREATE INDEX b ON a (i)",
        ] {
            assert!(!changes_code(text.as_bytes()), "{text}");
        }
    }
}
