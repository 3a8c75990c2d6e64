//! `mysql_native_password` (MySQL protocol, "Native 41" authentication).
//!
//! The client answers `SHA1(password) XOR SHA1(scramble + SHA1(SHA1(password)))`. Verifying needs only the
//! double hash, answering needs the password or its single hash. MySQL removed the method in 9.0; MariaDB
//! still offers it in its greeting.

use crate::Secret;
use crate::secret::SecretKind;
use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Bytes of a scramble, without the NUL that ends it on the wire.
pub const SCRAMBLE_BYTES: usize = 20;
/// Bytes of an answer, of a hash and of a double hash.
pub const HASH_BYTES: usize = 20;

fn sha1(parts: &[&[u8]]) -> Zeroizing<[u8; HASH_BYTES]> {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    for part in parts {
        context.update(part);
    }
    let mut hash = Zeroizing::new([0; HASH_BYTES]);
    // SHA-1 is 20 bytes long by definition; the zip keeps this free of a panic all the same.
    hash.iter_mut().zip(context.finish().as_ref()).for_each(|(to, from)| *to = *from);
    hash
}

/// `SHA1(SHA1(password))`: what `mysql.user` stores in hexadecimal behind a `*`.
pub fn stored_hash(password: &[u8]) -> [u8; HASH_BYTES] {
    *sha1(&[&*sha1(&[password])])
}

/// The stored hash in the form of `mysql.user`: `*` and 40 hexadecimal digits.
pub fn parse_stored(text: &str) -> Option<[u8; HASH_BYTES]> {
    let hex = text.strip_prefix('*').filter(|hex| hex.len() == 2 * HASH_BYTES)?.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut hash = [0; HASH_BYTES];
    for (to, pair) in hash.iter_mut().zip(hex.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *to = u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?;
    }
    Some(hash)
}

/// What a client answers to a scramble: empty for an empty password. `None` when the secret is not in
/// clear.
pub fn response(secret: &Secret, scramble: &[u8]) -> Option<Vec<u8>> {
    let SecretKind::Plain(password) = secret.kind() else { return None };
    if password.is_empty() {
        return Some(Vec::new());
    }
    let once = sha1(&[password.as_bytes()]);
    let twice = sha1(&[&*once]);
    let mask = sha1(&[scramble, &*twice]);
    Some(once.iter().zip(mask.iter()).map(|(a, b)| a ^ b).collect())
}

/// What a MariaDB server ends a login with, for a client that has no other reason to trust the certificate
/// (MariaDB from 11.4 on, "Zero-Configuration SSL"): who does not know the password cannot make it. The hash
/// of the double hash, the scramble and the certificate's fingerprint, in hexadecimal digits. `None` without
/// a password, or where only something else than the double hash is known.
pub fn vouch(secret: &Secret, scramble: &[u8], fingerprint: &[u8]) -> Option<String> {
    let stored = match secret.kind() {
        SecretKind::Plain(password) if password.is_empty() => return None,
        SecretKind::Plain(password) => stored_hash(password.as_bytes()),
        SecretKind::MySqlNative(stored) => *stored,
        SecretKind::Md5(_) | SecretKind::ScramVerifier(_) => return None,
    };
    let mut context = Context::new(&SHA256);
    [&stored, scramble, fingerprint].iter().for_each(|part| context.update(part));
    Some(context.finish().as_ref().iter().map(|byte| format!("{byte:02X}")).collect())
}

/// The answer of a client is right. Constant time in the secret; an unknown user (`None`) costs the same.
pub fn verify(secret: Option<&Secret>, scramble: &[u8], answer: &[u8]) -> bool {
    let (stored, known) = match secret.map(Secret::kind) {
        Some(SecretKind::Plain(password)) if password.is_empty() => return answer.is_empty(),
        Some(SecretKind::Plain(password)) => (stored_hash(password.as_bytes()), true),
        Some(SecretKind::MySqlNative(stored)) => (*stored, true),
        Some(SecretKind::Md5(_) | SecretKind::ScramVerifier(_)) | None => (stored_hash(b"nobody"), false),
    };
    let Ok(answer) = <&[u8; HASH_BYTES]>::try_from(answer) else { return false };
    let mask = sha1(&[scramble, &stored]);
    let mut once = Zeroizing::new([0; HASH_BYTES]);
    once.iter_mut().zip(answer.iter().zip(mask.iter())).for_each(|(to, (a, b))| *to = a ^ b);
    let right: bool = sha1(&[&*once]).ct_eq(&stored).into();
    right && known
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From MariaDB 11.8.9: its certificate, its greeting's scramble and the end of the login.
    #[test]
    fn a_certificate_is_vouched_for_as_mariadb_does() {
        let fingerprint = "9e76138b94fbf90432d804ba95085a0742ae333324cdec79e264e82e6ffcc5da";
        let fingerprint: Vec<u8> =
            (0..64).step_by(2).map(|at| u8::from_str_radix(&fingerprint[at..at + 2], 16).unwrap()).collect();
        let told = vouch(&Secret::plain("weir-secret"), b"d^.hAM<(RB6&[xj,9z{}", &fingerprint).unwrap();
        assert_eq!(told, "16CA28EC0A053E7CAEEE3A9B81D25E27E77CE7C11B5CDDDE600B2FE5C853586F");
        assert_eq!(vouch(&Secret::plain(""), &[1; 20], &fingerprint), None, "anybody knows it");
    }

    #[test]
    fn stored_hash_of_a_known_password() {
        // SELECT PASSWORD('password') on MariaDB 10.11.
        let text = "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19";
        assert_eq!(parse_stored(text), Some(stored_hash(b"password")));
        assert_eq!(parse_stored("*2470"), None);
        assert_eq!(parse_stored("*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E1é"), None);
    }

    #[test]
    fn right_wrong_unknown() {
        let scramble = b"abcdefghijklmnopqrst";
        let secret = Secret::plain("geheim");
        let answer = response(&secret, scramble).unwrap();
        assert!(verify(Some(&secret), scramble, &answer));
        assert!(!verify(Some(&secret), b"bbcdefghijklmnopqrst", &answer));
        assert!(!verify(Some(&Secret::plain("geheim2")), scramble, &answer));
        assert!(!verify(None, scramble, &answer));
        assert!(!verify(Some(&secret), scramble, &[]));
        assert!(!verify(Some(&secret), scramble, &answer[..19]));
        let stored = Secret::new(SecretKind::MySqlNative(stored_hash(b"geheim")));
        assert!(verify(Some(&stored), scramble, &answer));
        assert!(response(&stored, scramble).is_none());
        // The words used for an unknown user open no door.
        let nobody = response(&Secret::plain("nobody"), scramble).unwrap();
        assert!(!verify(None, scramble, &nobody));
    }

    #[test]
    fn empty_password() {
        let secret = Secret::plain("");
        assert_eq!(response(&secret, b"x"), Some(Vec::new()));
        assert!(verify(Some(&secret), b"x", &[]));
        assert!(!verify(Some(&secret), b"x", &[0; 20]));
    }
}
