//! What a client's text is.
//!
//! Owns: the memory of texts that differ in numbers only, of each worker. Must not know: what follows from a
//! class.
//!
//! Invariant: what is remembered is what reading the text again would give; builds with assertions read it
//! again each time, and compare.

use super::Front;
use std::cell::RefCell;
use weir_sql::{Class, Memo, classify_in};

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
        if class.is_of_any_numbers() {
            MEMO.with_borrow_mut(|memo| memo.keep(dialect, knowledge, state, || class.clone()));
        }
        (class, state)
    }
}
