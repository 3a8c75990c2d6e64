//! The code of a server's error, of either protocol, in one number.

use std::fmt;
use std::num::NonZeroU32;

/// A SQLSTATE of PostgreSQL or an error number of MySQL and MariaDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorCode(NonZeroU32);

/// Set in those of PostgreSQL.
const SQLSTATE: u32 = 1 << 31;

impl ErrorCode {
    /// Of PostgreSQL: five digits and capital letters (appendix A of its documentation).
    pub fn of_sqlstate(code: &[u8]) -> Option<ErrorCode> {
        let digits: &[u8; 5] = code.try_into().ok()?;
        let number = digits.iter().try_fold(0, |number, &digit| {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'A'..=b'Z' => digit - b'A' + 10,
                _ => return None,
            };
            Some(number * 36 + u32::from(value))
        })?;
        NonZeroU32::new(SQLSTATE | number).map(ErrorCode)
    }

    /// Of MySQL and MariaDB. `None`: 0, which is none.
    pub fn of_errno(number: u16) -> Option<ErrorCode> {
        NonZeroU32::new(number.into()).map(ErrorCode)
    }

    /// As a number: never 0.
    pub fn raw(self) -> u32 {
        self.0.get()
    }

    /// From what [`ErrorCode::raw`] gave; `None` for 0.
    pub fn from_raw(raw: u32) -> Option<ErrorCode> {
        NonZeroU32::new(raw).map(ErrorCode)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let raw = self.raw();
        if raw & SQLSTATE == 0 {
            return write!(f, "{raw}");
        }
        let number = raw & !SQLSTATE;
        for place in (0..5).rev() {
            let digit = number / 36_u32.pow(place) % 36;
            write!(f, "{}", char::from_digit(digit, 36).unwrap_or('?').to_ascii_uppercase())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_both_protocols_survive() {
        for code in ["00000", "01000", "22P02", "57014", "XX000", "ZZZZZ"] {
            let packed = ErrorCode::of_sqlstate(code.as_bytes()).expect(code);
            assert_eq!(ErrorCode::from_raw(packed.raw()).map(|it| it.to_string()).as_deref(), Some(code));
        }
        for number in [1, 1064, 65535] {
            assert_eq!(ErrorCode::of_errno(number).map(|it| it.to_string()), Some(number.to_string()));
        }
        assert_eq!(ErrorCode::of_errno(0), None);
        for wrong in [&b"5701"[..], b"570144", b"57o14", b"", b"57-14"] {
            assert_eq!(ErrorCode::of_sqlstate(wrong), None);
        }
    }
}
