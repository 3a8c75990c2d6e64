//! BER as LDAP restricts it (RFC 4511, section 5.1): definite lengths, tags of one byte.
//!
//! Invariant: nothing here calls itself for what a peer has sent.

use weir_wire::Reader;

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTETS: u8 = 0x04;
pub(crate) const ENUMERATED: u8 = 0x0A;
pub(crate) const SEQUENCE: u8 = 0x30;

/// Tags that go on in a second byte; LDAP has none.
const LONG_TAG: u8 = 0x1F;

/// The bytes are no element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Appends an element whose content `body` appends.
pub(crate) fn put(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let start = out.len();
    body(out);
    let length = out.len() - start;
    let mut head = Vec::new();
    if length < 0x80 {
        head.push(length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let digits = &bytes[length.leading_zeros() as usize / 8..];
        head.push(0x80 | digits.len() as u8);
        head.extend_from_slice(digits);
    }
    out.splice(start..start, head);
}

/// Appends an element with this content.
pub(crate) fn put_bytes(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    put(out, tag, |out| out.extend_from_slice(bytes));
}

/// Appends an integer that is not negative.
pub(crate) fn put_integer(out: &mut Vec<u8>, tag: u8, value: u32) {
    let bytes = value.to_be_bytes();
    let used = &bytes[(value.leading_zeros() as usize / 8).min(3)..];
    put(out, tag, |out| {
        // The highest bit is the sign.
        if used[0] >= 0x80 {
            out.push(0);
        }
        out.extend_from_slice(used);
    });
}

/// An element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    /// Bytes with its tag and its length.
    pub(crate) whole: usize,
}

/// The element at the front of `input` when it is there whole.
///
/// # Errors
/// It is none, or its content is longer than `most`.
pub(crate) fn element(input: &[u8], most: usize) -> Result<Option<Element<'_>>, Malformed> {
    let (Some(&tag), Some(&first)) = (input.first(), input.get(1)) else { return Ok(None) };
    if tag & LONG_TAG == LONG_TAG {
        return Err(Malformed);
    }
    let digits = match first {
        0..=0x7F => 0,
        // Four are enough for every length within bounds; 0x80 is the indefinite form.
        0x81..=0x84 => usize::from(first & 0x7F),
        _ => return Err(Malformed),
    };
    let Some(rest) = input.get(2..2 + digits) else { return Ok(None) };
    let length = match digits {
        0 => usize::from(first),
        _ => rest.iter().fold(0usize, |length, &digit| length << 8 | usize::from(digit)),
    };
    if length > most {
        return Err(Malformed);
    }
    let whole = 2 + digits + length;
    Ok(input.get(2 + digits..whole).map(|content| Element { tag, content, whole }))
}

/// Reads elements from the front of an element's content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elements<'a> {
    rest: Reader<'a>,
}

impl<'a> Elements<'a> {
    pub(crate) fn new(content: &'a [u8]) -> Self {
        Elements { rest: Reader::new(content) }
    }

    /// The next one: its tag and its content. `None`: there is none.
    ///
    /// # Errors
    /// What is there is no whole element.
    pub(crate) fn next(&mut self) -> Result<Option<(u8, &'a [u8])>, Malformed> {
        let rest = self.rest.rest();
        if rest.is_empty() {
            return Ok(None);
        }
        let Element { tag, content, whole } = element(rest, rest.len())?.ok_or(Malformed)?;
        self.rest.take(whole).map_err(|_| Malformed)?;
        Ok(Some((tag, content)))
    }

    /// The content of the next one, which must have this tag.
    ///
    /// # Errors
    /// There is none, or another one.
    pub(crate) fn expect(&mut self, tag: u8) -> Result<&'a [u8], Malformed> {
        match self.next()? {
            Some((found, content)) if found == tag => Ok(content),
            _ => Err(Malformed),
        }
    }
}

/// The content of an integer that is not negative.
///
/// # Errors
/// It is negative or does not fit.
pub(crate) fn integer(content: &[u8]) -> Result<u32, Malformed> {
    match content {
        [] => Err(Malformed),
        [first, ..] if *first >= 0x80 => Err(Malformed),
        [0, rest @ ..] if rest.len() > 4 => Err(Malformed),
        [first, rest @ ..] if *first > 0 && rest.len() > 3 => Err(Malformed),
        digits => Ok(digits.iter().fold(0, |value, &digit| value << 8 | u32::from(digit))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_as_short_as_they_can_be_and_read_in_any_form() {
        for (length, head) in [
            (0usize, vec![4, 0]),
            (127, vec![4, 127]),
            (128, vec![4, 0x81, 128]),
            (256, vec![4, 0x82, 1, 0]),
            (65_536, vec![4, 0x83, 1, 0, 0]),
        ] {
            let content = vec![7; length];
            let mut out = vec![9];
            put_bytes(&mut out, OCTETS, &content);
            assert_eq!(out[1..=head.len()], head, "{length}");
            assert_eq!(
                element(&out[1..], 100_000),
                Ok(Some(Element { tag: OCTETS, content: &content, whole: out.len() - 1 }))
            );
        }
        // As Active Directory writes every length.
        assert_eq!(
            element(&[0x30, 0x84, 0, 0, 0, 1, 5, 6], 9),
            Ok(Some(Element { tag: SEQUENCE, content: &[5], whole: 7 }))
        );
    }

    #[test]
    fn what_is_no_element_or_too_long_is_refused_before_it_is_there() {
        assert_eq!(element(&[], 9), Ok(None));
        assert_eq!(element(&[4], 9), Ok(None));
        assert_eq!(element(&[4, 0x82, 0], 9), Ok(None));
        assert_eq!(element(&[4, 3, 1, 2], 9), Ok(None));
        for bytes in [
            &[4, 10][..],
            &[4, 0x80, 0, 0],
            &[4, 0x85, 0, 0, 0, 0, 1],
            &[4, 0x84, 0xFF, 0xFF, 0xFF, 0xFF],
            &[0x1F, 0],
            &[0xFF, 0x84],
        ] {
            assert_eq!(element(bytes, 9), Err(Malformed), "{bytes:?}");
        }
    }

    #[test]
    fn integers() {
        for (value, content) in [
            (0u32, &[0][..]),
            (3, &[3]),
            (127, &[127]),
            (128, &[0, 128]),
            (256, &[1, 0]),
            (u32::MAX, &[0, 255, 255, 255, 255]),
        ] {
            let mut out = Vec::new();
            put_integer(&mut out, INTEGER, value);
            assert_eq!(out[2..], *content, "{value}");
            assert_eq!(integer(content), Ok(value));
        }
        assert_eq!(integer(&[0, 0, 49]), Ok(49), "longer than it need be");
        for content in [&[][..], &[0x80], &[1, 0, 0, 0, 0], &[0, 1, 0, 0, 0, 0]] {
            assert_eq!(integer(content), Err(Malformed), "{content:?}");
        }
    }

    #[test]
    fn elements_in_a_row() {
        let mut row = Elements::new(&[2, 1, 5, 4, 0]);
        assert_eq!(row.expect(INTEGER), Ok(&[5][..]));
        assert_eq!(row.next(), Ok(Some((OCTETS, &[][..]))));
        assert_eq!(row.next(), Ok(None));
        assert_eq!(Elements::new(&[2, 2, 5]).next(), Err(Malformed), "it ends too early");
        assert_eq!(Elements::new(&[2, 1, 5]).expect(OCTETS), Err(Malformed));
        assert_eq!(Elements::new(&[]).expect(OCTETS), Err(Malformed));
    }
}
