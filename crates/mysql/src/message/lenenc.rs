//! Length-encoded numbers and strings (MySQL protocol, "Protocol::LengthEncodedInteger").

use weir_wire::{Reader, Short};

/// Reads a length-encoded number. `0xFB` (NULL) and `0xFF` (error) are no numbers.
///
/// # Errors
/// [`Short`] when the bytes end within the number, or begin with `0xFB` or `0xFF`.
pub fn number(reader: &mut Reader<'_>) -> Result<u64, Short> {
    match reader.u8()? {
        small @ 0..=0xFA => Ok(u64::from(small)),
        0xFC => reader.u16_le().map(u64::from),
        0xFD => reader.u24_le().map(u64::from),
        0xFE => reader.u64_le(),
        0xFB | 0xFF => Err(Short),
    }
}

/// Reads a length-encoded string.
///
/// # Errors
/// [`Short`] when fewer bytes are left than its length says, or the length is none.
pub fn string<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Short> {
    let len = number(reader)?;
    reader.take(usize::try_from(len).map_err(|_| Short)?)
}

/// Appends a length-encoded number.
pub fn put_number(out: &mut Vec<u8>, n: u64) {
    let bytes = n.to_le_bytes();
    match n {
        0..=0xFA => out.push(bytes[0]),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&bytes[..3]);
        }
        0x100_0000.. => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends a length-encoded string.
pub fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_there_and_back() {
        for n in [0, 1, 250, 251, 252, 65_535, 65_536, 0xFF_FFFF, 0x100_0000, u64::MAX] {
            let mut out = Vec::new();
            put_number(&mut out, n);
            let mut reader = Reader::new(&out);
            assert_eq!(number(&mut reader), Ok(n));
            assert!(reader.is_empty());
            for cut in 0..out.len() {
                assert_eq!(number(&mut Reader::new(&out[..cut])), Err(Short));
            }
        }
        assert_eq!(number(&mut Reader::new(&[0xFB])), Err(Short));
        assert_eq!(number(&mut Reader::new(&[0xFF])), Err(Short));
        assert_eq!(string(&mut Reader::new(&[0xFE, 255, 255, 255, 255, 255, 255, 255, 255])), Err(Short));
    }
}
