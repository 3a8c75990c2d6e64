//! Login, both roles.

pub mod accept;
pub(crate) mod again;
pub mod connect;
pub(crate) mod credentials;

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
