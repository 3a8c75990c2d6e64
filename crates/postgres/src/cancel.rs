//! Cancel keys (protocol section 55.2.8): the one that Weir gives a client, and the one that a server gave
//! Weir.
//!
//! Must not know: what runs where. Weir answers a CancelRequest by sending the server's own key to the server
//! that runs the client's request, and to no other.

use crate::message::startup::put_cancel;
use std::fmt;
use subtle::ConstantTimeEq;
use weir_session::login::CancelPlan;

/// Bytes of a key in protocol 3.0.
const SHORT_KEY_BYTES: usize = 4;
/// Bytes of the keys Weir gives in protocol 3.2, as PostgreSQL 18 does.
const LONG_KEY_BYTES: usize = 32;

/// The key of one of Weir's clients.
#[derive(Clone, Copy)]
pub struct ClientKey {
    bytes: [u8; LONG_KEY_BYTES],
    long: bool,
}

impl ClientKey {
    /// Made of fresh random bytes; long for protocol 3.2.
    pub fn new(nonce: &[u8; LONG_KEY_BYTES], long: bool) -> Self {
        ClientKey { bytes: *nonce, long }
    }

    /// As BackendKeyData carries it.
    pub fn bytes(&self) -> &[u8] {
        let length = if self.long { LONG_KEY_BYTES } else { SHORT_KEY_BYTES };
        self.bytes.get(..length).unwrap_or_default()
    }

    /// Constant time in the bytes.
    pub fn is(&self, secret: &[u8]) -> bool {
        bool::from(self.bytes().ct_eq(secret))
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKey(..)")
    }
}

/// The key of a server.
#[derive(Clone, Default)]
pub struct ServerKey {
    pid: u32,
    secret: Box<[u8]>,
}

impl ServerKey {
    /// From BackendKeyData.
    pub fn new(pid: u32, secret: &[u8]) -> Self {
        ServerKey { pid, secret: secret.into() }
    }

    /// The server's process number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What to send on a connection of its own.
    pub fn plan(&self) -> CancelPlan {
        let mut bytes = Vec::new();
        put_cancel(&mut bytes, self.pid, &self.secret);
        CancelPlan::Raw(bytes)
    }
}

impl fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerKey(pid {})", self.pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_length_of_their_protocol() {
        let mut nonce = [7; 32];
        nonce[3] = 1;
        let short = ClientKey::new(&nonce, false);
        let long = ClientKey::new(&nonce, true);
        assert_eq!(short.bytes(), [7, 7, 7, 1]);
        assert_eq!(long.bytes(), nonce);
        assert!(short.is(&[7, 7, 7, 1]) && long.is(&nonce));
        assert!(!short.is(&nonce) && !long.is(&[7, 7, 7, 1]) && !short.is(&[]) && !short.is(&[7, 7, 7, 2]));
    }

    #[test]
    fn the_plan_is_a_cancel_request() {
        let CancelPlan::Raw(bytes) = ServerKey::new(258, b"abcd").plan() else { panic!() };
        assert_eq!(bytes, b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\x01\x02abcd");
    }
}
