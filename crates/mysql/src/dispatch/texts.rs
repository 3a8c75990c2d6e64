//! Texts of reads in progress, kept until Weir knows that they need not be run again.
//!
//! A read that fails or warns among the requests of other clients leaves its messages on its server only
//! until the next request overwrites them. Its client keeps the text instead (`warnings`), and Weir runs it
//! again if the client asks for the messages.
//!
//! Owns: those texts. Must not know: replies.
//! Invariant: bounded by the texts of a full queue and [`REQUEST_TEXTS_OVER_BYTES`].

use std::ops::Range;
use weir_wire::limits::{REQUEST_TEXT_BYTES, REQUEST_TEXTS_OVER_BYTES};

/// The texts, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    /// Place of the first byte, counted from the first that ever was.
    base: u64,
}

impl Texts {
    /// Keeps a text behind all others; returns its place, which is empty when it is too long.
    pub(crate) fn keep(&mut self, text: &[u8], oldest: Option<u64>) -> Range<u64> {
        let end = self.base + self.bytes.len() as u64;
        if text.len() > REQUEST_TEXT_BYTES {
            return end..end;
        }
        let over = oldest.map_or(self.bytes.len() as u64, |oldest| oldest.saturating_sub(self.base));
        let over = usize::try_from(over).unwrap_or(usize::MAX).min(self.bytes.len());
        if over == self.bytes.len() || over > REQUEST_TEXTS_OVER_BYTES {
            self.bytes.drain(..over);
            self.base += over as u64;
        }
        self.bytes.extend_from_slice(text);
        end..end + text.len() as u64
    }

    /// The text at a place; `None` when it was not kept.
    pub(crate) fn get(&self, place: &Range<u64>) -> Option<&[u8]> {
        let at = |place: u64| usize::try_from(place.checked_sub(self.base)?).ok();
        self.bytes.get(at(place.start)?..at(place.end)?).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_as_long_as_something_older_is_under_way() {
        let mut texts = Texts::default();
        let first = texts.keep(b"one", None);
        let second = texts.keep(b"second", Some(first.start));
        assert_eq!((texts.get(&first), texts.get(&second)), (Some(&b"one"[..]), Some(&b"second"[..])));
        let third = texts.keep(b"3", None);
        assert_eq!((texts.get(&first), texts.get(&third)), (None, Some(&b"3"[..])));
        let long = texts.keep(&vec![b'x'; REQUEST_TEXT_BYTES + 1], None);
        assert_eq!(texts.get(&long), None);
    }

    #[test]
    fn a_queue_that_is_never_empty_does_not_grow_them() {
        let mut texts = Texts::default();
        let mut under_way = std::collections::VecDeque::new();
        for n in 0..10_000 {
            let oldest = under_way.front().map(|place: &Range<u64>| place.start);
            under_way.push_back(texts.keep(format!("SELECT {n:0100}").as_bytes(), oldest));
            if under_way.len() > 16 {
                under_way.pop_front();
            }
        }
        assert!(under_way.iter().all(|place| texts.get(place).is_some()));
        assert!(texts.bytes.capacity() < 4 * REQUEST_TEXTS_OVER_BYTES);
    }
}
