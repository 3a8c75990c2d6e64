//! The digit columns of sysbench's tables: groups of eleven digits joined by `-`, ten in `c` and five in
//! `pad`.
//!
//! The columns filled here look the same and are marked: the last but one group names the table and the row,
//! the last one is a checksum of all before it. A reply can therefore be checked although other clients
//! update the row: a value with a correct checksum must name the requested row. A value without one was
//! written by sysbench and can only be accepted.

use crate::dice::mix;

/// Groups of the column `c`.
pub const C_GROUPS: usize = 10;
/// Groups of the column `pad`.
pub const PAD_GROUPS: usize = 5;

/// Digits of a group.
const DIGITS: usize = 11;
/// One more than the largest group.
const GROUP_END: u64 = 100_000_000_000;

/// Appends a value for a row; `random` varies it.
pub fn write(table: u32, id: u32, random: u64, groups: usize, out: &mut Vec<u8>) {
    let from = out.len();
    for group in 0..groups.saturating_sub(2) {
        write_group(mix(random, group as u64 + 1), out);
        out.push(b'-');
    }
    write_group(owner(table, id), out);
    out.push(b'-');
    let checksum = checksum(out.get(from..).unwrap_or_default());
    write_group(checksum, out);
}

/// The value is of this row, or nobody knows of which.
pub fn belongs(text: &[u8], table: u32, id: u32) -> bool {
    named_owner(text).is_none_or(|named| named == owner(table, id) % GROUP_END)
}

/// The value is one of ours.
pub fn is_marked(text: &[u8]) -> bool {
    named_owner(text).is_some()
}

fn named_owner(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_end();
    let (before, last) = text.split_at_checked(text.len().checked_sub(DIGITS)?)?;
    if number(last)? != checksum(before) % GROUP_END {
        return None;
    }
    let end = before.len().checked_sub(1)?;
    number(before.get(end.checked_sub(DIGITS)?..end)?)
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn owner(table: u32, id: u32) -> u64 {
    mix(u64::from(table) + 1, u64::from(id))
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(chunk) {
            *to = *from;
        }
        sum = mix(sum, u64::from_le_bytes(word));
    }
    sum
}

fn write_group(number: u64, out: &mut Vec<u8>) {
    let mut digits = [b'0'; DIGITS];
    let mut rest = number % GROUP_END;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(table: u32, id: u32, random: u64, groups: usize) -> Vec<u8> {
        let mut out = Vec::new();
        write(table, id, random, groups, &mut out);
        out
    }

    #[test]
    fn values_have_the_shape_of_sysbench() {
        for (groups, len) in [(C_GROUPS, 119), (PAD_GROUPS, 59)] {
            let c = value(1, 1, 5, groups);
            assert_eq!(c.len(), len);
            let whole = |g: &&[u8]| g.len() == 11 && g.iter().all(u8::is_ascii_digit);
            assert_eq!(c.split(|&b| b == b'-').filter(whole).count(), groups);
        }
        assert_ne!(value(1, 1, 5, C_GROUPS), value(1, 1, 6, C_GROUPS));
    }

    #[test]
    fn a_value_of_another_row_is_found_whatever_was_updated() {
        for random in 0..50 {
            let mut c = value(3, 77, random, C_GROUPS);
            c.push(b' ');
            assert!(is_marked(&c) && belongs(&c, 3, 77));
            assert!(!belongs(&c, 3, 78) && !belongs(&c, 2, 77));
        }
    }

    #[test]
    fn values_of_sysbench_are_accepted() {
        let theirs = b"83868641912-28773972837-60736120486-75162659906-27563526494-20381887404-41576422241-93426793964-56405065102-33518432330";
        assert!(!is_marked(theirs) && belongs(theirs, 1, 1));
        for odd in [&b""[..], b"x", b"1234567890", b"12345678901", b"-12345678901"] {
            assert!(!is_marked(odd), "{odd:?}");
        }
    }
}
