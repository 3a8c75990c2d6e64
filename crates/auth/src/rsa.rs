//! The RSA encryption with which caching_sha2_password sends a password without TLS: OAEP with SHA-1, keys as
//! PEM (MySQL protocol, "Authentication::PublicKeyResponse").
//!
//! Every function here is slow (decrypting takes about a millisecond, creating a key tens of them) and
//! belongs on a crypto thread, see [`crate::Job`].

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rsa::{
    KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey,
    PublicEncryptingKey,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use weir_wire::limits::PUBLIC_KEY_BYTES;
use zeroize::Zeroizing;

/// An RSA key pair for password exchange without TLS. Made once for a process.
pub struct RsaKey {
    private: OaepPrivateDecryptingKey,
    pem: String,
}

impl fmt::Debug for RsaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RsaKey")
    }
}

impl RsaKey {
    /// A new key pair of 2048 bits, as MySQL makes. `None` when the library has no randomness.
    pub fn generate() -> Option<Self> {
        let private = PrivateDecryptingKey::generate(KeySize::Rsa2048).ok()?;
        let der: PublicKeyX509Der<'_> = private.public_key().as_der().ok()?;
        let pem = to_pem(der.as_ref());
        Some(RsaKey { private: OaepPrivateDecryptingKey::new(private).ok()?, pem })
    }

    /// The public key as it is sent to clients.
    pub fn public_pem(&self) -> &str {
        &self.pem
    }

    /// Opens an envelope. `None` when it was not made for this key.
    pub fn decrypt(&self, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        if sealed.len() != self.private.key_size_bytes() {
            return None;
        }
        let mut opened = Zeroizing::new(vec![0; self.private.min_output_size()]);
        let len = self.private.decrypt(&OAEP_SHA1_MGF1SHA1, sealed, &mut opened, None).ok()?.len();
        opened.truncate(len);
        Some(opened)
    }
}

/// Puts `bytes` into an envelope for the key in `pem`. `None` when that is no RSA key or it is too small.
pub fn encrypt(pem: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
    let key = PublicEncryptingKey::from_der(&from_pem(pem)?).ok()?;
    let key = OaepPublicEncryptingKey::new(key).ok()?;
    if bytes.len() > key.max_plaintext_size(&OAEP_SHA1_MGF1SHA1) {
        return None;
    }
    let mut sealed = vec![0; key.ciphertext_size()];
    let len = key.encrypt(&OAEP_SHA1_MGF1SHA1, bytes, &mut sealed, None).ok()?.len();
    sealed.truncate(len);
    Some(sealed)
}

fn to_pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN PUBLIC KEY-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = tail;
    }
    pem.push_str("-----END PUBLIC KEY-----\n");
    pem
}

fn from_pem(pem: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(pem).ok().filter(|text| text.len() <= PUBLIC_KEY_BYTES)?;
    let (_, text) = text.split_once("-----BEGIN PUBLIC KEY-----")?;
    let (text, _) = text.split_once("-----END PUBLIC KEY-----")?;
    let digits: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD.decode(digits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let key = RsaKey::generate().unwrap();
        let sealed = encrypt(key.public_pem().as_bytes(), b"geheim\0").unwrap();
        assert_eq!(&**key.decrypt(&sealed).unwrap(), b"geheim\0");
        let mut broken = sealed.clone();
        broken[7] ^= 1;
        assert!(key.decrypt(&broken).is_none());
        assert!(key.decrypt(&sealed[1..]).is_none());
        assert!(key.decrypt(&[]).is_none());
        assert!(encrypt(b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", b"x").is_none());
        assert!(encrypt(b"", b"x").is_none());
        assert!(encrypt(key.public_pem().as_bytes(), &[0; 300]).is_none());
    }
}
