//! Messages of the authentication exchange (protocol section 55.2.1 and 55.3).

use crate::frame::{put, put_cstr};
use weir_wire::{Reader, Short};

/// Bytes of a client's password or SASL message (`PG_MAX_AUTH_TOKEN_LENGTH`).
pub const AUTH_MESSAGE_BYTES: usize = 65_535;

/// An authentication request of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request<'a> {
    /// The login is accepted.
    Ok,
    /// Password in clear.
    CleartextPassword,
    /// md5 with this salt.
    Md5Password([u8; 4]),
    /// One of these SASL mechanisms.
    Sasl(Vec<&'a [u8]>),
    /// The server's next SASL message.
    SaslContinue(&'a [u8]),
    /// The server's last SASL message.
    SaslFinal(&'a [u8]),
    /// A method Weir does not have (Kerberos, GSSAPI, SSPI).
    Other(u32),
}

/// Reads the body of an Authentication message.
///
/// # Errors
/// [`Short`] when the body ends before the code and what belongs to it (section 55.7).
pub fn read_request(body: &[u8]) -> Result<Request<'_>, Short> {
    let mut reader = Reader::new(body);
    Ok(match reader.u32_be()? {
        0 => Request::Ok,
        3 => Request::CleartextPassword,
        5 => Request::Md5Password(reader.array()?),
        10 => {
            let mut mechanisms = Vec::new();
            loop {
                match reader.cstr()? {
                    b"" => break,
                    name => mechanisms.push(name),
                }
            }
            Request::Sasl(mechanisms)
        }
        11 => Request::SaslContinue(reader.take_rest()),
        12 => Request::SaslFinal(reader.take_rest()),
        other => Request::Other(other),
    })
}

fn put_request(out: &mut Vec<u8>, code: u32, data: &[u8]) {
    put(out, b'R', |out| {
        out.extend_from_slice(&code.to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// AuthenticationOk.
pub fn put_ok(out: &mut Vec<u8>) {
    put_request(out, 0, b"");
}

/// AuthenticationCleartextPassword.
pub fn put_cleartext(out: &mut Vec<u8>) {
    put_request(out, 3, b"");
}

/// AuthenticationMD5Password.
pub fn put_md5(out: &mut Vec<u8>, salt: [u8; 4]) {
    put_request(out, 5, &salt);
}

/// AuthenticationSASL with these mechanisms, the preferred one first.
pub fn put_sasl(out: &mut Vec<u8>, mechanisms: &[&str]) {
    let mut list = Vec::new();
    mechanisms.iter().for_each(|mechanism| put_cstr(&mut list, mechanism.as_bytes()));
    list.push(0);
    put_request(out, 10, &list);
}

/// AuthenticationSASLContinue.
pub fn put_sasl_continue(out: &mut Vec<u8>, data: &[u8]) {
    put_request(out, 11, data);
}

/// AuthenticationSASLFinal.
pub fn put_sasl_final(out: &mut Vec<u8>, data: &[u8]) {
    put_request(out, 12, data);
}

/// PasswordMessage.
pub fn put_password(out: &mut Vec<u8>, password: &[u8]) {
    put(out, b'p', |out| put_cstr(out, password));
}

/// SASLInitialResponse.
pub fn put_sasl_initial(out: &mut Vec<u8>, mechanism: &str, data: &[u8]) {
    put(out, b'p', |out| {
        put_cstr(out, mechanism.as_bytes());
        // SCRAM's first message is a few dozen bytes.
        out.extend_from_slice(&u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// SASLResponse.
pub fn put_sasl_response(out: &mut Vec<u8>, data: &[u8]) {
    put(out, b'p', |out| out.extend_from_slice(data));
}

/// The password in a PasswordMessage body: up to its NUL, which must be its last byte.
///
/// # Errors
/// [`Short`] without a NUL as the last byte.
pub fn read_password(body: &[u8]) -> Result<&[u8], Short> {
    let mut reader = Reader::new(body);
    let password = reader.cstr()?;
    if reader.is_empty() { Ok(password) } else { Err(Short) }
}

/// The mechanism and the data of a SASLInitialResponse body.
///
/// # Errors
/// [`Short`] when the body ends before the data that its length announces.
pub fn read_sasl_initial(body: &[u8]) -> Result<(&[u8], &[u8]), Short> {
    let mut reader = Reader::new(body);
    let mechanism = reader.cstr()?;
    let length = reader.u32_be()?;
    // -1 stands for "no data"; SCRAM always has some.
    let data = reader.take(usize::try_from(length).map_err(|_| Short)?)?;
    if reader.is_empty() { Ok((mechanism, data)) } else { Err(Short) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_round() {
        let mut out = Vec::new();
        put_ok(&mut out);
        assert_eq!(read_request(&out[5..]), Ok(Request::Ok));
        out.clear();
        put_md5(&mut out, [1, 2, 3, 4]);
        assert_eq!(read_request(&out[5..]), Ok(Request::Md5Password([1, 2, 3, 4])));
        out.clear();
        put_sasl(&mut out, &["SCRAM-SHA-256"]);
        assert_eq!(read_request(&out[5..]), Ok(Request::Sasl(vec![b"SCRAM-SHA-256"])));
        assert_eq!(read_request(&out[5..out.len() - 1]), Err(Short));
        assert_eq!(read_request(b"\0\0\0\x07"), Ok(Request::Other(7)));
        assert_eq!(read_request(b"\0\0\0"), Err(Short));
    }

    #[test]
    fn passwords() {
        assert_eq!(read_password(b"secret\0"), Ok(&b"secret"[..]));
        assert_eq!(read_password(b"secret"), Err(Short));
        assert_eq!(read_password(b"secret\0more"), Err(Short));
        let mut out = Vec::new();
        put_sasl_initial(&mut out, "M", b"data");
        assert_eq!(read_sasl_initial(&out[5..]), Ok((&b"M"[..], &b"data"[..])));
        assert_eq!(read_sasl_initial(b"M\0\xff\xff\xff\xff"), Err(Short));
        assert_eq!(read_sasl_initial(b"M\0\0\0\0\x01ab"), Err(Short));
    }
}
