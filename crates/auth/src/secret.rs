//! A user's secret and the keys derived from it.
//!
//! Owns: the forms in which a secret can be given (those of PostgreSQL's `pg_authid` and of PgBouncer's
//! `auth_file`), and a small cache of derived keys, so that PBKDF2 runs once per secret and not once per
//! login. Must not know: users, messages, clocks.
//!
//! Invariants: everything secret is wiped when dropped and never appears in `Debug`; the cache is bounded.

use crate::scram::{ScramKeys, ScramVerifier};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use subtle::ConstantTimeEq;
use weir_wire::limits::SCRAM_KEYS;
use zeroize::Zeroizing;

/// What Weir knows of a user's password.
pub struct Secret {
    kind: SecretKind,
    scram: Mutex<Vec<CachedKeys>>,
}

/// The form in which a secret was given.
pub enum SecretKind {
    /// In clear.
    Plain(Zeroizing<String>),
    /// The 32 hexadecimal digits behind `md5` in `pg_authid` or an auth_file: md5(password + user).
    Md5(Zeroizing<String>),
    /// `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`.
    ScramVerifier(ScramVerifier),
    /// SHA1(SHA1(password)), the 40 digits behind `*` in `mysql.user` (see [`crate::native`]).
    MySqlNative([u8; 20]),
}

/// A password as a client has sent it, on its way to whoever knows whether it is right. Never empty.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Zeroizing<Vec<u8>>);

impl Password {
    /// `None`: it is empty, which means "anybody" to some who are asked.
    pub fn new(bytes: &[u8]) -> Option<Password> {
        (!bytes.is_empty()).then(|| Password(Zeroizing::new(bytes.to_vec())))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// To log in to a server with. `None`: it is no text.
    pub fn secret(&self) -> Option<Secret> {
        std::str::from_utf8(&self.0).ok().map(Secret::plain)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

struct CachedKeys {
    salt: Box<[u8]>,
    iterations: u32,
    keys: ScramKeys,
}

impl Secret {
    /// A secret of this form.
    pub fn new(kind: SecretKind) -> Self {
        Secret { kind, scram: Mutex::new(Vec::new()) }
    }

    /// A password in clear.
    pub fn plain(password: &str) -> Self {
        Secret::new(SecretKind::Plain(Zeroizing::new(password.to_owned())))
    }

    /// A secret as it stands in `pg_authid` or in the second column of PgBouncer's auth_file: what has the
    /// shape of an md5 hash, of a SCRAM verifier or of `mysql.user` (`*` and 40 digits) is one, all else is a
    /// password in clear.
    pub fn from_userlist(text: &str) -> Self {
        if let Some(hex) = text.strip_prefix("md5")
            && hex.len() == 32
            && hex.bytes().all(|b| b.is_ascii_hexdigit())
        {
            return Secret::new(SecretKind::Md5(Zeroizing::new(hex.to_ascii_lowercase())));
        }
        if let Some(stored) = crate::native::parse_stored(text) {
            return Secret::new(SecretKind::MySqlNative(stored));
        }
        match ScramVerifier::parse(text) {
            Some(verifier) => Secret::new(SecretKind::ScramVerifier(verifier)),
            None => Secret::plain(text),
        }
    }

    /// The other one is the same, letter for letter. Takes as long for others as for the same.
    pub fn is_same(&self, other: &Secret) -> bool {
        match (&self.kind, &other.kind) {
            (SecretKind::Plain(a), SecretKind::Plain(b)) | (SecretKind::Md5(a), SecretKind::Md5(b)) => {
                bool::from(a.as_bytes().ct_eq(b.as_bytes()))
            }
            (SecretKind::ScramVerifier(a), SecretKind::ScramVerifier(b)) => a == b,
            (SecretKind::MySqlNative(a), SecretKind::MySqlNative(b)) => bool::from(a.ct_eq(b)),
            _ => false,
        }
    }

    /// Only what SCRAM is checked against is known.
    pub fn is_verifier(&self) -> bool {
        matches!(self.kind, SecretKind::ScramVerifier(_))
    }

    /// Its form.
    pub fn kind(&self) -> &SecretKind {
        &self.kind
    }

    /// The SCRAM keys for this salt and iteration count, if they were derived or learnt before.
    pub fn scram_keys(&self, salt: &[u8], iterations: u32) -> Option<ScramKeys> {
        let cache = self.scram.lock().unwrap_or_else(PoisonError::into_inner);
        cache.iter().find(|c| c.iterations == iterations && *c.salt == *salt).map(|c| c.keys.clone())
    }

    /// Remembers derived keys. The oldest set leaves when the cache is full.
    pub fn remember_scram_keys(&self, salt: &[u8], iterations: u32, keys: ScramKeys) {
        let mut cache = self.scram.lock().unwrap_or_else(PoisonError::into_inner);
        cache.retain(|c| c.iterations != iterations || *c.salt != *salt);
        if cache.len() >= SCRAM_KEYS {
            cache.remove(0);
        }
        cache.push(CachedKeys { salt: salt.into(), iterations, keys });
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl fmt::Debug for SecretKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SecretKind::Plain(_) => "Secret(plain)",
            SecretKind::Md5(_) => "Secret(md5)",
            SecretKind::ScramVerifier(_) => "Secret(scram verifier)",
            SecretKind::MySqlNative(_) => "Secret(mysql native hash)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn userlist_forms() {
        let md5 = "md5ABCDEF00112233445566778899aabbcc";
        assert!(matches!(Secret::from_userlist(md5).kind(), SecretKind::Md5(h) if h.starts_with("abcdef")));
        assert!(
            matches!(Secret::from_userlist("md5 is old").kind(), SecretKind::Plain(p) if &***p == "md5 is old")
        );
        let native = "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19";
        assert!(matches!(Secret::from_userlist(native).kind(), SecretKind::MySqlNative(_)));
        let verifier = "SCRAM-SHA-256$4096:c2FsdHNhbHQ=$AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=:\
                        AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        assert!(matches!(Secret::from_userlist(verifier).kind(), SecretKind::ScramVerifier(_)));
        let broken = "SCRAM-SHA-256$4096:c2FsdHNhbHQ=$AAEC:AAEC";
        assert!(matches!(Secret::from_userlist(broken).kind(), SecretKind::Plain(_)));
    }

    #[test]
    fn debug_tells_nothing() {
        let text = format!("{:?} {:?}", Secret::plain("hunter2"), Password::new(b"hunter2"));
        assert!(!text.contains("hunter2") && !text.contains("104"), "{text}");
    }

    #[test]
    fn there_is_no_empty_password() {
        assert_eq!(Password::new(b""), None);
        let password = Password::new(b"x\xff").unwrap();
        assert_eq!(password.bytes(), b"x\xff");
        assert!(password.secret().is_none());
        let secret = Password::new(b"m\xc3\xbc").and_then(|password| password.secret());
        assert!(secret.is_some_and(|secret| secret.is_same(&Secret::plain("m\u{fc}"))));
    }

    #[test]
    fn cache_is_bounded_and_newest_stays() {
        let secret = Secret::plain("x");
        for n in 0..50u32 {
            secret.remember_scram_keys(&n.to_be_bytes(), 1, ScramKeys::derive("x", &n.to_be_bytes(), 1));
        }
        assert_eq!(secret.scram.lock().unwrap().len(), SCRAM_KEYS);
        assert!(secret.scram_keys(&49u32.to_be_bytes(), 1).is_some());
        assert!(secret.scram_keys(&0u32.to_be_bytes(), 1).is_none());
        assert!(secret.scram_keys(&49u32.to_be_bytes(), 2).is_none());
    }
}
