//! Texts that may change how later ones are read, in a way that nobody can follow.
//!
//! `sql_mode` and the client's character set decide where strings end. A SET of them that Weir follows needs
//! nothing of this. Any other one (behind other statements, in an executable comment, in a string that SQL
//! prepares) leaves its client with rules that only its server knows.
//!
//! Invariant: while the rules are not known, no text is rewritten in which they would make a difference.

use super::Front;
use crate::prepared::Text;
use std::borrow::Cow;
use weir_sql::{Class, Dialect, Encoding, Uses, Verb};
use weir_wire::Pin;

/// What stands in each text that names one of them.
const NAMES: [&[u8]; 4] = [b"sql_mode", b"names", b"character", b"charset"];

/// What stands in a text that SQL prepares from more than its own letters.
const MADE_OF_OTHERS: [&[u8]; 2] = [b"@", b"concat"];

impl Front {
    /// The rules by which this client's texts are read are not known.
    pub(super) fn reads_unknown(&self) -> bool {
        self.rare.as_deref().is_some_and(|rare| rare.reads_unknown)
    }

    /// A text as those read it who look at its words only, and take a backslash for an escape.
    pub(super) fn for_words<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        in_words(self.dialect(), text)
    }

    /// The same of a prepared text, which the server read when it was prepared.
    pub(super) fn prepared_for_words<'a>(&self, text: &'a Text) -> Cow<'a, [u8]> {
        in_words(self.dialect_in(&text.shape), &text.text)
    }

    /// The text may change the rules, and not by a SET that Weir follows.
    pub(super) fn rereads(&mut self, class: &Class, text: &[u8]) -> bool {
        let may_set = [Pin::Setting, Pin::SqlPrepare, Pin::Unrecognised];
        let may_set = may_set.iter().any(|&pin| class.pins.contains(pin));
        let prepares = class.uses.contains(Uses::SQL_PREPARE);
        if !may_set && !prepares && !class.doubtful && !class.uses.contains(Uses::EXECUTABLE_COMMENT) {
            return false;
        }
        let names = contains_any(text, &NAMES);
        if !prepares {
            return names;
        }
        if names || contains_any(text, &MADE_OF_OTHERS) {
            self.rare.get_or_insert_default().prepares_unread = true;
        }
        let unread = self.rare.as_deref().is_some_and(|rare| rare.prepares_unread);
        names || unread && class.verb != Verb::Prepare
    }

    /// How a text is read that changes the rules before its own end: not for certain, where they may make a
    /// difference.
    pub(super) fn rereads_itself(class: &Class, text: &[u8], dialect: Dialect) -> Option<Dialect> {
        let several = class.statements > 1 && class.heads().len() < class.statements as usize;
        let prepares = several && class.uses.contains(Uses::SQL_PREPARE);
        let sets =
            class.pins.contains(Pin::Setting) && (several || class.uses.contains(Uses::EXECUTABLE_COMMENT));
        let changes = (sets || prepares) && contains_any(text, &NAMES);
        let unread = prepares && contains_any(text, &MADE_OF_OTHERS);
        (changes || unread).then(|| dialect.with(Encoding::Unknown))
    }
}

fn in_words(dialect: Dialect, text: &[u8]) -> Cow<'_, [u8]> {
    let Dialect::MySql { no_backslash_escapes: true, .. } = dialect else { return text.into() };
    if !text.contains(&b'\\') {
        return text.into();
    }
    text.iter().map(|&byte| if byte == b'\\' { b'_' } else { byte }).collect()
}

fn contains_any(text: &[u8], words: &[&[u8]]) -> bool {
    words.iter().any(|word| text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_changes_how_it_is_read_is_told_from_others() {
        let is_unsure = |text: &str| {
            let class = weir_sql::classify(Dialect::MYSQL, text.as_bytes());
            Front::rereads_itself(&class, text.as_bytes(), Dialect::MYSQL).is_some()
        };
        for text in [
            "DO 1; SET sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT '\\'",
            "SET SQL_MODE = ''; SELECT '\\'",
            "SELECT 1 INTO @x; SET NAMES gbk",
            "PREPARE p FROM 'SET NAMES gbk'; EXECUTE p; SELECT '\\'",
            "PREPARE p FROM @text; EXECUTE p; SELECT '\\'",
            "/*!80000 SET character_set_client = gbk */ ",
        ] {
            assert!(is_unsure(text), "{text}");
        }
        for text in [
            "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
            "SET NAMES utf8mb4; SET sql_mode = ''",
            "SELECT names FROM t; SELECT 2",
            "PREPARE p FROM 'SELECT names FROM t'",
            "SET @a = 1; SELECT @a",
        ] {
            assert!(!is_unsure(text), "{text}");
        }
    }
}
