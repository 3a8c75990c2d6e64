//! PostgreSQL's md5 password method (protocol section 55.2.1, AuthenticationMD5Password).

use crate::Secret;
use crate::secret::SecretKind;
use md5::{Digest, Md5};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

fn hex_of(parts: &[&[u8]]) -> Zeroizing<String> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hasher = Md5::new();
    for part in parts {
        hasher.update(part);
    }
    let digest = hasher.finalize();
    let mut text = Zeroizing::new(String::with_capacity(32));
    for byte in digest.iter() {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// The 32 hexadecimal digits that `pg_authid` stores behind `md5`.
pub fn stored_hash(user: &str, password: &str) -> Zeroizing<String> {
    hex_of(&[password.as_bytes(), user.as_bytes()])
}

/// What a client answers to a salt: `md5` and 32 digits. `None` when the secret is a SCRAM verifier.
pub fn response(user: &str, secret: &Secret, salt: [u8; 4]) -> Option<Zeroizing<String>> {
    let hash = match secret.kind() {
        SecretKind::Plain(password) => stored_hash(user, password),
        SecretKind::Md5(hash) => hash.clone(),
        SecretKind::ScramVerifier(_) | SecretKind::MySqlNative(_) => return None,
    };
    let mut text = Zeroizing::new(String::with_capacity(35));
    text.push_str("md5");
    text.push_str(&hex_of(&[hash.as_bytes(), &salt]));
    Some(text)
}

/// The client's answer is right. Without a secret the same work is done and the answer is no.
pub fn verify(user: &str, secret: Option<&Secret>, salt: [u8; 4], answer: &[u8]) -> bool {
    let expected = secret.and_then(|s| response(user, s, salt));
    let known = expected.is_some();
    let expected = match expected {
        Some(text) => text,
        None => {
            let hash = stored_hash(user, "");
            hex_of(&[hash.as_bytes(), &salt])
        }
    };
    bool::from(expected.as_bytes().ct_eq(answer)) && known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answer() {
        // md5('passworduser') as `select md5('password' || 'user')` gives it.
        assert_eq!(&**stored_hash("user", "password"), "4d45974e13472b5a0be3533de4666414");
        let secret = Secret::plain("password");
        let hash = Secret::from_userlist("md54d45974e13472b5a0be3533de4666414");
        let salt = [1, 2, 3, 4];
        let answer = response("user", &secret, salt).unwrap();
        assert_eq!(response("user", &hash, salt).unwrap(), answer);
        assert!(verify("user", Some(&hash), salt, answer.as_bytes()));
        assert!(verify("user", Some(&secret), salt, answer.as_bytes()));
        assert!(!verify("user", Some(&secret), [1, 2, 3, 5], answer.as_bytes()));
        assert!(!verify("other", Some(&secret), salt, answer.as_bytes()));
        assert!(!verify("user", None, salt, answer.as_bytes()));
        assert!(!verify("user", Some(&secret), salt, b""));
    }

    #[test]
    fn nobody_logs_in_with_the_empty_password() {
        let salt = [9; 4];
        let empty = Secret::plain("");
        let answer = response("ghost", &empty, salt).unwrap();
        assert!(!verify("ghost", None, salt, answer.as_bytes()));
        assert!(!verify("ghost", None, salt, &answer.as_bytes()[3..]));
    }
}
