//! The server's first packet (MySQL protocol, "Protocol::HandshakeV10").

use super::Capabilities;
use weir_session::login::ServerGreeting;
use weir_wire::{Reader, Short};

/// Bytes of the scramble.
pub const SCRAMBLE_BYTES: usize = 20;

/// Handshake v10.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting<'a> {
    /// Version text, with MariaDB's `5.5.5-` prefix if the server sends it.
    pub version: &'a [u8],
    /// Connection id, the low 32 bits.
    pub id: u32,
    /// Random bytes, 20 and none of them NUL when they come from a sane server.
    pub scramble: [u8; SCRAMBLE_BYTES],
    /// What the server can.
    pub capabilities: Capabilities,
    /// Default collation, the low 8 bits of its number.
    pub collation: u8,
    /// Status flags.
    pub status: u16,
    /// Name of the method `scramble` is meant for. Empty without PLUGIN_AUTH.
    pub plugin: &'a [u8],
}

impl<'a> Greeting<'a> {
    /// Reads the payload, the version byte 10 included. `None` for another version.
    ///
    /// # Errors
    /// [`Short`] when the payload ends within the greeting (HandshakeV10).
    pub fn read(payload: &'a [u8]) -> Result<Option<Self>, Short> {
        let mut r = Reader::new(payload);
        if r.u8()? != 10 {
            return Ok(None);
        }
        let version = r.cstr()?;
        let id = r.u32_le()?;
        let mut scramble = [0; SCRAMBLE_BYTES];
        scramble[..8].copy_from_slice(&r.array::<8>()?);
        r.u8()?;
        let low = u32::from(r.u16_le()?);
        let collation = r.u8()?;
        let status = r.u16_le()?;
        let low = low | u32::from(r.u16_le()?) << 16;
        r.u8()?;
        r.take(6)?;
        let capabilities = Capabilities::with_mariadb(low, r.u32_le()?);
        // The second part has at least 13 bytes, the last of them NUL.
        scramble[8..].copy_from_slice(&r.array::<12>()?);
        if !r.is_empty() {
            r.u8()?;
        }
        // Some old servers leave out the NUL behind the name.
        let rest = r.take_rest();
        let plugin = rest.split(|&b| b == 0).next().unwrap_or_default();
        Ok(Some(Greeting { version, id, scramble, capabilities, collation, status, plugin }))
    }

    /// Appends the payload.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(10);
        out.extend_from_slice(self.version);
        out.push(0);
        out.extend_from_slice(&self.id.to_le_bytes());
        out.extend_from_slice(&self.scramble[..8]);
        out.push(0);
        let [a, b, c, d, own @ ..] = self.capabilities.0.to_le_bytes();
        out.extend_from_slice(&[a, b, self.collation]);
        out.extend_from_slice(&self.status.to_le_bytes());
        out.extend_from_slice(&[c, d, SCRAMBLE_BYTES as u8 + 1]);
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(&own);
        out.extend_from_slice(&self.scramble[8..]);
        out.push(0);
        out.extend_from_slice(self.plugin);
        out.push(0);
    }
}

impl Greeting<'_> {
    /// What of it is the same for all clients.
    pub fn to_owned(&self) -> ServerGreeting {
        ServerGreeting {
            version: String::from_utf8_lossy(self.version).into(),
            collation: self.collation,
            capabilities: self.capabilities.0,
        }
    }
}

/// How clients are greeted before any server has greeted Weir: as by MySQL, with utf8mb4 in its default
/// collation.
pub fn before_any(version: &str) -> ServerGreeting {
    let capabilities = Capabilities::OFFERED.without(Capabilities::EXTENDED_METADATA).0;
    ServerGreeting { version: version.into(), collation: 255, capabilities }
}

/// `payload` is MariaDB's version text.
pub fn is_mariadb(version: &[u8]) -> bool {
    version.windows(7).any(|window| window.eq_ignore_ascii_case(b"mariadb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_and_cut() {
        let greeting = Greeting {
            version: b"5.5.5-10.11.19-MariaDB",
            id: 77,
            scramble: *b"abcdefghijklmnopqrst",
            capabilities: Capabilities::OFFERED.without(Capabilities::LONG_PASSWORD),
            collation: 45,
            status: 2,
            plugin: b"mysql_native_password",
        };
        let mut out = Vec::new();
        greeting.write(&mut out);
        assert_eq!(Greeting::read(&out), Ok(Some(greeting)));
        for n in 0..out.len() {
            // Without the plugin's name it is still a greeting; nothing panics.
            let _ = Greeting::read(&out[..n]);
        }
        out[0] = 9;
        assert_eq!(Greeting::read(&out), Ok(None));
        assert!(is_mariadb(b"5.5.5-10.11.19-MariaDB-0+deb12u1") && !is_mariadb(b"9.7.4-2"));
    }
}
