//! Login, both roles.

pub mod accept;
pub(crate) mod again;
pub mod connect;
pub(crate) mod credentials;

use crate::message::greeting::SCRAMBLE_BYTES;
use crate::packing::{Algorithm, Packing};
use crate::ssl_status::Own;
use std::sync::Arc;
use weir_session::login::Secured;

/// The method of MariaDB and of MySQL before 8.0.
pub(crate) const NATIVE: &[u8] = b"mysql_native_password";
/// The method of MySQL since 8.0.
pub(crate) const CACHING_SHA2: &[u8] = b"caching_sha2_password";
/// The method of MySQL 5.6 for accounts that should be safe: the password itself, in an envelope or on a safe
/// path.
pub(crate) const SHA256: &[u8] = b"sha256_password";
/// The password in clear.
pub(crate) const CLEAR: &[u8] = b"mysql_clear_password";

/// caching_sha2_password: the fast path was enough.
pub(crate) const FAST_OK: u8 = 3;
/// caching_sha2_password: the password itself is needed.
pub(crate) const FULL_NEEDED: u8 = 4;
/// caching_sha2_password: the client asks for the public key.
pub(crate) const KEY_REQUEST: u8 = 2;
/// sha256_password: the same.
pub(crate) const SHA256_KEY_REQUEST: u8 = 1;
/// First byte of Protocol::AuthMoreData.
pub(crate) const MORE_DATA: u8 = 1;

/// What few logins leave behind.
#[derive(Debug, Default)]
pub(crate) struct FromLogin {
    /// The scramble of the greeting, for a client that knows no other way to prove itself again.
    pub scramble: Option<[u8; SCRAMBLE_BYTES]>,
    /// The client came inside TLS.
    pub secured: Option<Arc<Secured>>,
    /// What vouches for the certificate, until it is told.
    pub vouch: Option<Box<str>>,
    /// What its bytes are packed by.
    pub packs: Option<Algorithm>,
    /// They already are.
    pub is_packed: bool,
}

impl FromLogin {
    /// What SHOW STATUS may tell of the connection.
    pub(crate) fn connection(&self) -> Own {
        let secured = self.secured.as_deref();
        let (version, cipher) = secured.map_or(("", ""), |secured| (secured.version, secured.cipher));
        Own { version, cipher, packs: self.packs }
    }

    /// What the client's bytes are packed by from here on, if they are not already.
    pub(crate) fn take_packing(&mut self) -> Option<Box<dyn weir_session::Packing>> {
        let algorithm = self.packs.filter(|_| !self.is_packed)?;
        self.is_packed = true;
        Some(Box::new(Packing::new(algorithm)))
    }
}
