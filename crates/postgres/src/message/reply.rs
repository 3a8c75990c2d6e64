//! Replies that Weir reads or writes itself (protocol section 55.7).

use crate::frame::{put, put_cstr};
use weir_wire::{Boundary, Reader, Short};

/// ParseComplete.
pub const PARSE_COMPLETE: &[u8] = b"1\0\0\0\x04";
/// CloseComplete.
pub const CLOSE_COMPLETE: &[u8] = b"3\0\0\0\x04";

/// ReadyForQuery's byte for a boundary.
pub fn boundary_byte(boundary: Boundary) -> u8 {
    match boundary {
        Boundary::Idle => b'I',
        Boundary::InTransaction => b'T',
        Boundary::Failed => b'E',
    }
}

/// Reads a ReadyForQuery body.
///
/// # Errors
/// [`Short`] for anything but one byte `I`, `T` or `E`.
pub fn read_ready(body: &[u8]) -> Result<Boundary, Short> {
    match body {
        b"I" => Ok(Boundary::Idle),
        b"T" => Ok(Boundary::InTransaction),
        b"E" => Ok(Boundary::Failed),
        _ => Err(Short),
    }
}

/// ReadyForQuery.
pub fn put_ready(out: &mut Vec<u8>, boundary: Boundary) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, boundary_byte(boundary)]);
}

/// Reads a ParameterStatus body.
///
/// # Errors
/// [`Short`] when the body is anything but name and value with their NULs, or the name is not UTF-8.
pub fn read_parameter(body: &[u8]) -> Result<(&str, &[u8]), Short> {
    let mut reader = Reader::new(body);
    let name = reader.cstr()?;
    let value = reader.cstr()?;
    if !reader.is_empty() {
        return Err(Short);
    }
    Ok((std::str::from_utf8(name).map_err(|_| Short)?, value))
}

/// ParameterStatus.
pub fn put_parameter(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    put(out, b'S', |out| {
        put_cstr(out, name.as_bytes());
        put_cstr(out, value);
    });
}

/// Reads a BackendKeyData body: number and secret (4 bytes in protocol 3.0, up to 256 in 3.2).
///
/// # Errors
/// [`Short`] when the number is not whole, or the secret has not 1 to 256 bytes.
pub fn read_key(body: &[u8]) -> Result<(u32, &[u8]), Short> {
    let mut reader = Reader::new(body);
    let pid = reader.u32_be()?;
    let key = reader.take_rest();
    if (1..=256).contains(&key.len()) { Ok((pid, key)) } else { Err(Short) }
}

/// BackendKeyData.
pub fn put_key(out: &mut Vec<u8>, pid: u32, key: &[u8]) {
    put(out, b'K', |out| {
        out.extend_from_slice(&pid.to_be_bytes());
        out.extend_from_slice(key);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_go_round() {
        for boundary in [Boundary::Idle, Boundary::InTransaction, Boundary::Failed] {
            let mut out = Vec::new();
            put_ready(&mut out, boundary);
            assert_eq!(read_ready(&out[5..]), Ok(boundary));
        }
        assert_eq!(read_ready(b"X"), Err(Short));
        assert_eq!(read_ready(b""), Err(Short));
        let mut out = Vec::new();
        put_parameter(&mut out, "TimeZone", b"UTC");
        assert_eq!(read_parameter(&out[5..]), Ok(("TimeZone", &b"UTC"[..])));
        assert_eq!(read_parameter(b"a\0b"), Err(Short));
        assert_eq!(read_parameter(b"a\0b\0c"), Err(Short));
        let mut out = Vec::new();
        put_key(&mut out, 9, b"1234");
        assert_eq!(read_key(&out[5..]), Ok((9, &b"1234"[..])));
        assert_eq!(read_key(b"\0\0\0\x01"), Err(Short));
    }
}
