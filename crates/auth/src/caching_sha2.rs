//! `caching_sha2_password` (MySQL protocol, "Caching_sha2_password information").
//!
//! The fast path: the client answers `SHA256(password) XOR SHA256(SHA256(SHA256(password)) + scramble)`. The
//! full exchange sends the password itself: in cleartext on a safe path, otherwise XORed with the scramble
//! and encrypted with the server's RSA key ([`crate::job::RsaKey`]).

use crate::Secret;
use crate::native;
use crate::secret::SecretKind;
use aws_lc_rs::digest::{Context, SHA256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Bytes of an answer.
pub const ANSWER_BYTES: usize = 32;

fn sha256(parts: &[&[u8]]) -> Zeroizing<[u8; ANSWER_BYTES]> {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let mut hash = Zeroizing::new([0; ANSWER_BYTES]);
    hash.iter_mut().zip(context.finish().as_ref()).for_each(|(to, from)| *to = *from);
    hash
}

fn fast_answer(password: &[u8], scramble: &[u8]) -> Zeroizing<[u8; ANSWER_BYTES]> {
    let mut once = sha256(&[password]);
    let twice = sha256(&[&*once]);
    let mask = sha256(&[&*twice, scramble]);
    once.iter_mut().zip(mask.iter()).for_each(|(a, b)| *a ^= b);
    once
}

/// What a client answers to a scramble: empty for an empty password. `None` when the secret is not in
/// clear.
pub fn response(secret: &Secret, scramble: &[u8]) -> Option<Vec<u8>> {
    let SecretKind::Plain(password) = secret.kind() else { return None };
    if password.is_empty() {
        return Some(Vec::new());
    }
    Some(fast_answer(password.as_bytes(), scramble).to_vec())
}

/// What the fast path says about a client's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fast {
    /// The password is right.
    Right,
    /// There is no password, and one is needed.
    Wrong,
    /// Not right, or only the password itself can tell: ask for the full exchange. What is wrong is told
    /// there, for a wrong password, for a user known by a hash and for one that does not exist alike.
    NeedsFull,
}

/// Checks an answer. Constant time in the secret; an unknown user (`None`) and one known by a hash cost the
/// same and get the same answer, so that nobody learns here who exists. MySQL, too, goes on to the full
/// exchange after any answer that is not right.
pub fn verify_fast(secret: Option<&Secret>, scramble: &[u8], answer: &[u8]) -> Fast {
    let (password, known) = match secret.map(Secret::kind) {
        Some(SecretKind::Plain(password)) if password.is_empty() && answer.is_empty() => return Fast::Right,
        Some(SecretKind::Plain(password)) => (password.as_bytes(), !password.is_empty()),
        Some(SecretKind::MySqlNative(_) | SecretKind::Md5(_) | SecretKind::ScramVerifier(_)) | None => {
            (&b"nobody"[..], false)
        }
    };
    if answer.is_empty() {
        return Fast::Wrong;
    }
    let right: bool = fast_answer(password, scramble).ct_eq(answer).into();
    if right && known { Fast::Right } else { Fast::NeedsFull }
}

/// Checks the password itself, as the full exchange gave it (without its NUL).
pub fn verify_full(secret: Option<&Secret>, password: &[u8]) -> bool {
    let (stored, known) = match secret.map(Secret::kind) {
        Some(SecretKind::Plain(right)) => (native::stored_hash(right.as_bytes()), true),
        Some(SecretKind::MySqlNative(stored)) => (*stored, true),
        Some(SecretKind::Md5(_) | SecretKind::ScramVerifier(_)) | None => {
            (native::stored_hash(b"nobody"), false)
        }
    };
    let right: bool = native::stored_hash(password).ct_eq(&stored).into();
    right && known
}

/// XORs `bytes` with the scramble, again and again to their end: the form in which a password is put into
/// the RSA envelope. Its own inverse.
pub fn mask(bytes: &mut [u8], scramble: &[u8]) {
    if scramble.is_empty() {
        return;
    }
    bytes.iter_mut().zip(scramble.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_path() {
        let scramble = b"abcdefghijklmnopqrst";
        let secret = Secret::plain("geheim");
        let answer = response(&secret, scramble).unwrap();
        assert_eq!(answer.len(), ANSWER_BYTES);
        assert_eq!(verify_fast(Some(&secret), scramble, &answer), Fast::Right);
        assert_eq!(verify_fast(Some(&secret), b"bbcdefghijklmnopqrst", &answer), Fast::NeedsFull);
        assert_eq!(verify_fast(Some(&secret), scramble, &[]), Fast::Wrong);
        assert_eq!(verify_fast(None, scramble, &answer), Fast::NeedsFull);
        let nobody = response(&Secret::plain("nobody"), scramble).unwrap();
        assert_eq!(verify_fast(None, scramble, &nobody), Fast::NeedsFull);
        assert_eq!(verify_fast(None, scramble, &[]), Fast::Wrong);
        let stored = Secret::new(SecretKind::MySqlNative(native::stored_hash(b"geheim")));
        assert_eq!(verify_fast(Some(&stored), scramble, &answer), Fast::NeedsFull);
        assert!(verify_full(Some(&stored), b"geheim"));
        assert!(!verify_full(Some(&stored), b"geheim2"));
        assert!(!verify_full(None, b"nobody"));
    }

    #[test]
    fn nobody_learns_who_exists() {
        let scramble = b"abcdefghijklmnopqrst";
        let users = [
            None,
            Some(Secret::plain("geheim")),
            Some(Secret::new(SecretKind::MySqlNative(native::stored_hash(b"geheim")))),
        ];
        for guess in [&b""[..], &[7; ANSWER_BYTES], &[7; 5]] {
            let said = users.each_ref().map(|user| verify_fast(user.as_ref(), scramble, guess));
            assert!(said.iter().all(|one| *one == said[0] && *one != Fast::Right), "{guess:?}: {said:?}");
        }
        assert!(users.iter().all(|user| !verify_full(user.as_ref(), b"a guess")));
        // An account without a password is as much a secret.
        let open = Secret::plain("");
        assert_eq!(verify_fast(Some(&open), scramble, &[]), Fast::Right);
        assert_eq!(verify_fast(Some(&open), scramble, &[7; ANSWER_BYTES]), Fast::NeedsFull);
    }

    #[test]
    fn answer_of_a_known_scramble() {
        // Computed by the formula of the manual with another implementation (Python hashlib).
        let answer = response(&Secret::plain("secret"), b"01234567890123456789").unwrap();
        assert_eq!(hex::encode(answer), "1a2da2573c2faa367e2afddb54cdfd11a95ed22eef0167151196a6fc8e3d3813");
    }

    #[test]
    fn mask_is_its_own_inverse() {
        let mut bytes = *b"a password that is longer than the scramble\0";
        mask(&mut bytes, b"01234567890123456789");
        assert_ne!(&bytes[..10], b"a password");
        mask(&mut bytes, b"01234567890123456789");
        assert_eq!(&bytes, b"a password that is longer than the scramble\0");
        mask(&mut bytes, b"");
    }
}
