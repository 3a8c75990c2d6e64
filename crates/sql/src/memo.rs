//! What is known of texts that differ from an earlier one in numbers only.
//!
//! Applications send few statements with many values. What a text is depends on its words and not on the
//! numbers in it, so it need not be read again: most of the time that a text costs goes into that.
//!
//! Owns: when two texts are alike in this sense. Must not know: what is remembered of them.
//!
//! Invariants: only runs of digits that are surely whole numbers are left out of the comparison, and all
//! other bytes are compared one by one; what was known in another state of the catalogue, of another database
//! or in another dialect is not found; memory is bounded ([`limits::REMEMBERED_TEXTS`],
//! [`limits::REMEMBERED_TEXT_BYTES`]).

use crate::Dialect;
use crate::catalogue::Knowledge;
use weir_wire::limits;

/// Where a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    dialect: Dialect,
    /// [`Knowledge::number`].
    knowledge: u64,
    /// [`Knowledge::state`]; never 0.
    state: u64,
}

/// A text that is remembered, or of which only its hash is so far.
#[derive(Debug)]
struct Slot<V> {
    hash: u64,
    kept: Option<(Place, Box<[u8]>, V)>,
}

/// What one thread remembers of texts.
#[derive(Debug)]
pub struct Memo<V> {
    /// By hashes.
    slots: Vec<Slot<V>>,
    /// The text that was looked for last, without its numbers; empty: it is not one that can be remembered.
    wanted: Vec<u8>,
    hash: u64,
}

impl<V> Default for Memo<V> {
    fn default() -> Memo<V> {
        let slots = (0..limits::REMEMBERED_TEXTS).map(|_| Slot { hash: 0, kept: None }).collect();
        Memo { slots, wanted: Vec::new(), hash: 0 }
    }
}

impl<V: Clone> Memo<V> {
    /// What is known of such a text, and the state of the catalogue by which it was judged.
    pub fn find(&mut self, dialect: Dialect, knowledge: &Knowledge, text: &[u8]) -> Option<(V, u64)> {
        self.wanted.clear();
        let state = knowledge.state();
        if state == 0 || text.len() > limits::REMEMBERED_TEXT_BYTES || !mask(text, &mut self.wanted) {
            self.wanted.clear();
            return None;
        }
        self.hash = hash(&self.wanted);
        let place = Place { dialect, knowledge: knowledge.number(), state };
        let slot = self.slots.get(self.hash as usize % limits::REMEMBERED_TEXTS)?;
        match &slot.kept {
            Some((of, masked, value))
                if slot.hash == self.hash && *of == place && **masked == *self.wanted =>
            {
                Some((value.clone(), state))
            }
            _ => None,
        }
    }

    /// This became of the text that was looked for last, when it was judged by this state. It is remembered
    /// when it comes the second time: many texts come once, and would push out those that come often.
    pub fn keep(&mut self, dialect: Dialect, knowledge: &Knowledge, state: u64, value: impl FnOnce() -> V) {
        if self.wanted.is_empty() || state == 0 {
            return;
        }
        let Some(slot) = self.slots.get_mut(self.hash as usize % limits::REMEMBERED_TEXTS) else { return };
        if slot.hash != self.hash {
            *slot = Slot { hash: self.hash, kept: None };
            return;
        }
        let place = Place { dialect, knowledge: knowledge.number(), state };
        slot.kept = Some((place, self.wanted.as_slice().into(), value()));
    }
}

/// What a byte is to [`mask`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Byte {
    /// A text with it is not remembered: quotes, comments, several statements, beyond ASCII.
    Refused,
    /// Neither part of a word nor of a number.
    Between,
    /// Part of a word or a name; or of a number, where that is more than digits.
    Word,
    Digit,
}

const BYTES: [Byte; 256] = {
    let mut bytes = [Byte::Refused; 256];
    let mut at = 0;
    while at < 256 {
        bytes[at] = match at as u8 {
            b'0'..=b'9' => Byte::Digit,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'.' | b'@' => Byte::Word,
            b' ' | b'\n' | b'\t' | b'\r' | b',' | b'(' | b')' | b'=' | b'<' | b'>' | b'*' | b'+' | b'-'
            | b'/' => Byte::Between,
            _ => Byte::Refused,
        };
        at += 1;
    }
    bytes
};

fn byte_of(byte: u8) -> Byte {
    BYTES.get(usize::from(byte)).copied().unwrap_or(Byte::Refused)
}

/// Appends the text with a zero byte in place of each number. False: it has something in it that may be more
/// than words, signs and numbers.
fn mask(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut rest = text;
    let mut in_word = false;
    while let Some((&byte, behind)) = rest.split_first() {
        match byte_of(byte) {
            Byte::Refused => return false,
            Byte::Between => {
                let begins_comment =
                    matches!((byte, behind.first()), (b'-', Some(b'-')) | (b'/', Some(b'*')));
                if begins_comment {
                    return false;
                }
                in_word = false;
            }
            Byte::Word => in_word = true,
            Byte::Digit if in_word => {}
            Byte::Digit => {
                let len = rest.iter().position(|&byte| byte_of(byte) != Byte::Digit).unwrap_or(rest.len());
                let (digits, behind) = rest.split_at_checked(len).unwrap_or((rest, &[]));
                let is_number = behind.first().is_none_or(|&byte| byte_of(byte) != Byte::Word);
                if is_number {
                    out.push(0);
                } else {
                    out.extend_from_slice(digits);
                }
                rest = behind;
                continue;
            }
        }
        out.push(byte);
        rest = behind;
    }
    true
}

/// Not 0, which is that of a slot without a text.
fn hash(masked: &[u8]) -> u64 {
    let mut hash = masked.len() as u64;
    for chunk in masked.chunks(8) {
        let mut bytes = [0; 8];
        for (to, from) in bytes.iter_mut().zip(chunk) {
            *to = *from;
        }
        hash = (hash ^ u64::from_le_bytes(bytes)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 32;
    }
    hash.max(1)
}

#[cfg(test)]
mod tests {
    use super::{Memo, mask};
    use crate::catalogue::{Catalogue, Knowledge};
    use crate::{Dialect, Encoding};

    fn masked(text: &str) -> Option<String> {
        let mut out = Vec::new();
        mask(text.as_bytes(), &mut out).then(|| String::from_utf8(out).unwrap().replace('\0', "#"))
    }

    #[test]
    fn numbers_are_left_out_and_nothing_else_is() {
        for (text, want) in [
            ("SELECT c FROM sbtest1 WHERE id=4711", "SELECT c FROM sbtest1 WHERE id=#"),
            ("SELECT 1", "SELECT #"),
            ("SELECT (1,22)", "SELECT (#,#)"),
            ("UPDATE t SET a = a + -5 WHERE b/2>1", "UPDATE t SET a = a + -# WHERE b/#>#"),
            ("SELECT 1.5, .5, 1e5, 0x1F, 1abc, a1, a1b2", "SELECT 1.5, .5, 1e5, 0x1F, 1abc, a1, a1b2"),
            ("SELECT @1, @a1, t.1", "SELECT @1, @a1, t.1"),
            ("", ""),
        ] {
            assert_eq!(masked(text).as_deref(), Some(want), "{text}");
        }
    }

    #[test]
    fn texts_with_more_than_words_signs_and_numbers_are_not_remembered() {
        for text in [
            "SELECT '1'",
            "SELECT \"1\"",
            "SELECT `1`",
            "SELECT $1",
            "SELECT $$1$$",
            "SELECT 1 -- 2",
            "SELECT 1 /* 2 */",
            "SELECT 1 # 2",
            "SELECT 1; SELECT 2",
            "SELECT 1;",
            "SELECT \\1",
            "SELECT ?",
            "SELECT :1",
            "SELECT \u{e4}",
            "SELECT 1\0",
        ] {
            assert_eq!(masked(text), None, "{text}");
        }
    }

    fn knows(memo: &mut Memo<u32>, dialect: Dialect, knowledge: &Knowledge, text: &str, value: u32) -> bool {
        match memo.find(dialect, knowledge, text.as_bytes()) {
            Some((known, state)) => known == value && state == knowledge.state(),
            None => {
                memo.keep(dialect, knowledge, knowledge.state(), || value);
                false
            }
        }
    }

    #[test]
    fn a_text_is_known_from_its_third_time_on_and_only_where_it_was_read() {
        let mut memo = Memo::default();
        let (one, other) =
            (Knowledge::settled(Catalogue::default()), Knowledge::settled(Catalogue::default()));
        let latin = Dialect::Postgres { standard_conforming_strings: true, encoding: Encoding::HighBytes };
        for (number, known) in [(1, false), (22, false), (333, true), (4, true)] {
            let text = format!("SELECT a FROM t WHERE id = {number}");
            assert_eq!(knows(&mut memo, Dialect::POSTGRES, &one, &text, 7), known, "{number}");
        }
        for text in [
            "SELECT b FROM t WHERE id = 1",
            "SELECT a FROM t WHERE id = 1.5",
            "SELECT a FROM t WHERE id  = 1",
        ] {
            assert!(memo.find(Dialect::POSTGRES, &one, text.as_bytes()).is_none(), "{text}");
        }
        let text = b"SELECT a FROM t WHERE id = 5";
        assert!(memo.find(Dialect::POSTGRES, &other, text).is_none());
        assert!(memo.find(latin, &one, text).is_none());
        assert!(memo.find(Dialect::MYSQL, &one, text).is_none());
        assert!(memo.find(Dialect::POSTGRES, &one, text).is_some());
        // Another state of the same catalogue.
        drop(one.unsettle(false));
        assert!(memo.find(Dialect::POSTGRES, &one, text).is_none());
        assert!(memo.find(Dialect::POSTGRES, &Knowledge::default(), text).is_none());
    }

    #[test]
    fn nothing_is_kept_of_a_text_that_cannot_be_remembered() {
        let mut memo = Memo::default();
        let knowledge = Knowledge::settled(Catalogue::default());
        let long = format!("SELECT {}", "a,".repeat(1000));
        for text in ["SELECT '1'", long.as_str()] {
            for _ in 0..4 {
                assert!(!knows(&mut memo, Dialect::POSTGRES, &knowledge, text, 1), "{text}");
            }
        }
    }
}
