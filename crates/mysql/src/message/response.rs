//! Packets after the greeting: the client's login, switches of the method, further authentication data (MySQL
//! protocol, "Connection Phase Packets"), and COM_CHANGE_USER.

use super::Capabilities;
use super::lenenc;
use weir_wire::{Reader, Short};

/// Protocol::HandshakeResponse41.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandshakeResponse<'a> {
    /// What the client can and wants.
    pub capabilities: Capabilities,
    /// Longest packet the client takes, in bytes; 0 means no matter.
    pub max_packet_bytes: u32,
    /// Collation, the low 8 bits of its number.
    pub collation: u8,
    /// User name.
    pub user: &'a [u8],
    /// Answer to the scramble.
    pub answer: &'a [u8],
    /// Schema, if one was named.
    pub database: Option<&'a [u8]>,
    /// Name of the method of `answer`, if the client says it.
    pub plugin: Option<&'a [u8]>,
    /// Connection attributes as they came: names and values in turn, length-encoded.
    pub attributes: &'a [u8],
    /// Level of zstd.
    pub zstd_level: u8,
}

/// Only the fixed part of a login with the SSL flag: an SSLRequest.
pub const SSL_REQUEST_BYTES: usize = 32;

/// Appends the payload of an SSLRequest.
pub fn put_ssl_request(out: &mut Vec<u8>, capabilities: Capabilities, max_packet_bytes: u32, collation: u8) {
    let [a, b, c, d, own @ ..] = capabilities.0.to_le_bytes();
    out.extend_from_slice(&[a, b, c, d]);
    out.extend_from_slice(&max_packet_bytes.to_le_bytes());
    out.push(collation);
    out.extend_from_slice(&[0; 19]);
    out.extend_from_slice(&own);
}

impl<'a> HandshakeResponse<'a> {
    /// Reads the payload of a client that has PROTOCOL_41 (check [`read_capabilities`] first).
    ///
    /// # Errors
    /// [`Short`] when the payload ends within a field that its capabilities promise.
    pub fn read(payload: &'a [u8]) -> Result<Self, Short> {
        let mut r = Reader::new(payload);
        let low = r.u32_le()?;
        let max_packet_bytes = r.u32_le()?;
        let collation = r.u8()?;
        r.take(19)?;
        let capabilities = Capabilities::with_mariadb(low, r.u32_le()?);
        let user = r.cstr()?;
        let answer = if capabilities.has(Capabilities::PLUGIN_AUTH_LENENC) {
            lenenc::string(&mut r)?
        } else if capabilities.has(Capabilities::SECURE_CONNECTION) {
            let len = r.u8()?;
            r.take(usize::from(len))?
        } else {
            r.cstr()?
        };
        let mut database = None;
        if capabilities.has(Capabilities::CONNECT_WITH_DB) && !r.is_empty() {
            database = Some(text_or_rest(&mut r)).filter(|name| !name.is_empty());
        }
        let mut plugin = None;
        if capabilities.has(Capabilities::PLUGIN_AUTH) && !r.is_empty() {
            plugin = Some(text_or_rest(&mut r));
        }
        let mut attributes = &b""[..];
        if capabilities.has(Capabilities::CONNECT_ATTRS) && !r.is_empty() {
            attributes = lenenc::string(&mut r)?;
        }
        let mut zstd_level = 0;
        if capabilities.has(Capabilities::ZSTD_COMPRESSION) && !r.is_empty() {
            zstd_level = r.u8()?;
        }
        Ok(HandshakeResponse {
            capabilities,
            max_packet_bytes,
            collation,
            user,
            answer,
            database,
            plugin,
            attributes,
            zstd_level,
        })
    }

    /// Appends the payload. Fields that the capabilities do not allow are left out.
    pub fn write(&self, out: &mut Vec<u8>) {
        let [a, b, c, d, own @ ..] = self.capabilities.0.to_le_bytes();
        out.extend_from_slice(&[a, b, c, d]);
        out.extend_from_slice(&self.max_packet_bytes.to_le_bytes());
        out.push(self.collation);
        out.extend_from_slice(&[0; 19]);
        out.extend_from_slice(&own);
        put_cstr(out, self.user);
        if self.capabilities.has(Capabilities::PLUGIN_AUTH_LENENC) {
            lenenc::put_string(out, self.answer);
        } else {
            out.push(self.answer.len() as u8);
            out.extend_from_slice(self.answer);
        }
        if self.capabilities.has(Capabilities::CONNECT_WITH_DB) {
            put_cstr(out, self.database.unwrap_or_default());
        }
        if self.capabilities.has(Capabilities::PLUGIN_AUTH) {
            put_cstr(out, self.plugin.unwrap_or_default());
        }
        if self.capabilities.has(Capabilities::CONNECT_ATTRS) {
            lenenc::put_string(out, self.attributes);
        }
        if self.capabilities.has(Capabilities::ZSTD_COMPRESSION) {
            out.push(self.zstd_level);
        }
    }
}

/// The capabilities at the start of a login of any age: clients before 4.1 send two bytes.
///
/// # Errors
/// [`Short`] when there are fewer than two bytes, or fewer than four of a client from 4.1 on.
pub fn read_capabilities(payload: &[u8]) -> Result<Capabilities, Short> {
    let mut r = Reader::new(payload);
    let low = Capabilities(u64::from(r.u16_le()?));
    if !low.has(Capabilities::PROTOCOL_41) {
        return Ok(low);
    }
    Ok(Capabilities(low.0 | u64::from(r.u16_le()?) << 16))
}

/// Protocol::AuthSwitchRequest: `(method, scramble)`. The payload starts behind `0xFE`. Without a method
/// it is the request for the method before 4.1.
pub fn read_auth_switch(payload: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut r = Reader::new(payload);
    let plugin = r.cstr().ok()?;
    let data = r.take_rest();
    Some((plugin, data.strip_suffix(&[0]).unwrap_or(data)))
}

/// Appends an AuthSwitchRequest.
pub fn put_auth_switch(out: &mut Vec<u8>, plugin: &[u8], scramble: &[u8]) {
    out.push(0xFE);
    put_cstr(out, plugin);
    put_cstr(out, scramble);
}

/// COM_CHANGE_USER.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// User name.
    pub user: &'a [u8],
    /// Answer to the scramble.
    pub answer: &'a [u8],
    /// Schema; empty for none.
    pub database: &'a [u8],
    /// Number of the collation, if the client says it.
    pub collation: Option<u16>,
}

impl<'a> ChangeUser<'a> {
    /// Reads the payload behind the command byte.
    ///
    /// # Errors
    /// [`Short`] when the payload ends within a field that its capabilities promise.
    pub fn read(payload: &'a [u8]) -> Result<Self, Short> {
        let mut r = Reader::new(payload);
        let user = r.cstr()?;
        let len = r.u8()?;
        let answer = r.take(usize::from(len))?;
        let database = text_or_rest(&mut r);
        // Servers take it only if both bytes are there.
        let collation = r.u16_le().ok();
        Ok(ChangeUser { user, answer, database, collation })
    }
}

/// Some clients leave out the NUL of the last field.
fn text_or_rest<'a>(r: &mut Reader<'a>) -> &'a [u8] {
    match r.cstr() {
        Ok(text) => text,
        Err(Short) => r.take_rest(),
    }
}

fn put_cstr(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(capabilities: Capabilities) -> HandshakeResponse<'static> {
        HandshakeResponse {
            capabilities,
            max_packet_bytes: 1 << 24,
            collation: 45,
            user: b"app",
            answer: &[9; 20],
            database: capabilities.has(Capabilities::CONNECT_WITH_DB).then_some(b"weir"),
            plugin: capabilities.has(Capabilities::PLUGIN_AUTH).then_some(b"mysql_native_password"),
            attributes: if capabilities.has(Capabilities::CONNECT_ATTRS) { b"\x01a\x01b" } else { b"" },
            zstd_level: if capabilities.has(Capabilities::ZSTD_COMPRESSION) { 7 } else { 0 },
        }
    }

    #[test]
    fn every_combination_of_flags() {
        let base = Capabilities::PROTOCOL_41.or(Capabilities::SECURE_CONNECTION);
        let optional = [
            Capabilities::CONNECT_WITH_DB,
            Capabilities::PLUGIN_AUTH,
            Capabilities::CONNECT_ATTRS,
            Capabilities::PLUGIN_AUTH_LENENC,
            Capabilities::EXTENDED_METADATA,
        ];
        for bits in 0..32 {
            let chosen = optional.iter().enumerate().filter(|(i, _)| bits & (1 << i) != 0);
            let capabilities = chosen.fold(base, |set, (_, flag)| set.or(*flag));
            let response = sample(capabilities);
            let mut out = Vec::new();
            response.write(&mut out);
            assert_eq!(HandshakeResponse::read(&out), Ok(response));
            for n in 0..out.len() {
                let _ = HandshakeResponse::read(&out[..n]);
            }
        }
    }

    #[test]
    fn long_answers_need_lenenc() {
        let capabilities = Capabilities::PROTOCOL_41.or(Capabilities::PLUGIN_AUTH_LENENC);
        let answer = [5; 300];
        let response = HandshakeResponse { answer: &answer, ..sample(capabilities) };
        let mut out = Vec::new();
        response.write(&mut out);
        assert_eq!(HandshakeResponse::read(&out).unwrap().answer, &answer);
    }

    #[test]
    fn a_schema_without_its_nul() {
        let mut out = Vec::new();
        sample(
            Capabilities::PROTOCOL_41.or(Capabilities::SECURE_CONNECTION).or(Capabilities::CONNECT_WITH_DB),
        )
        .write(&mut out);
        out.pop();
        assert_eq!(HandshakeResponse::read(&out).unwrap().database, Some(&b"weir"[..]));
    }

    #[test]
    fn auth_switch() {
        let mut out = Vec::new();
        put_auth_switch(&mut out, b"caching_sha2_password", b"abcdefghijklmnopqrst");
        assert_eq!(
            read_auth_switch(&out[1..]),
            Some((&b"caching_sha2_password"[..], &b"abcdefghijklmnopqrst"[..]))
        );
        assert_eq!(read_auth_switch(b""), None);
    }
}
