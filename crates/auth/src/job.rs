//! Slow work of a login, to be run away from the workers: PBKDF2 and RSA.

use crate::Secret;
use crate::scram::ScramKeys;
use crate::secret::SecretKind;
use std::sync::Arc;
use zeroize::Zeroizing;

pub use crate::rsa::RsaKey;

/// Something slow to compute. `run` may take milliseconds and is called on a crypto thread.
#[derive(Debug)]
pub enum Job {
    /// Derive the SCRAM keys of a secret for a salt (PBKDF2). The result is also remembered in the secret,
    /// so that the next login with the same salt needs no job.
    ScramKeys {
        /// Whose keys. A secret that is not in clear gives none.
        secret: Arc<Secret>,
        /// The salt, decoded.
        salt: Box<[u8]>,
        /// Rounds of PBKDF2.
        iterations: u32,
    },
    /// Open the envelope with a password that a client sent for caching_sha2_password.
    RsaDecrypt {
        /// Weir's own key.
        key: Arc<RsaKey>,
        /// What the client sent.
        sealed: Box<[u8]>,
    },
    /// Put a password into an envelope for a server's key.
    RsaEncrypt {
        /// The server's public key as it sent it.
        pem: Box<[u8]>,
        /// What to put in: the password and its NUL, XORed with the scramble.
        masked: Zeroizing<Vec<u8>>,
    },
}

/// What a [`Job`] gave.
#[derive(Debug)]
pub enum JobDone {
    /// The keys; `None` when the secret cannot give them (it is a hash).
    ScramKeys(Option<ScramKeys>),
    /// What an envelope held, still XORed with the scramble; `None` when it cannot be opened.
    RsaDecrypted(Option<Zeroizing<Vec<u8>>>),
    /// The envelope; `None` when the key is none or is too small.
    RsaEncrypted(Option<Vec<u8>>),
}

impl JobDone {
    /// The keys of a [`Job::ScramKeys`]; `None` when there are none or this answers another job.
    pub fn into_scram_keys(self) -> Option<ScramKeys> {
        match self {
            JobDone::ScramKeys(keys) => keys,
            JobDone::RsaDecrypted(_) | JobDone::RsaEncrypted(_) => None,
        }
    }
}

impl Job {
    /// Computes. Blocks for milliseconds.
    pub fn run(self) -> JobDone {
        match self {
            Job::ScramKeys { secret, salt, iterations } => {
                JobDone::ScramKeys(scram_keys(&secret, &salt, iterations))
            }
            Job::RsaDecrypt { key, sealed } => JobDone::RsaDecrypted(key.decrypt(&sealed)),
            Job::RsaEncrypt { pem, masked } => JobDone::RsaEncrypted(crate::rsa::encrypt(&pem, &masked)),
        }
    }
}

pub(crate) fn scram_keys(secret: &Secret, salt: &[u8], iterations: u32) -> Option<ScramKeys> {
    // A job that waited may find that another login of the same user has done the work.
    if let Some(keys) = secret.scram_keys(salt, iterations) {
        return Some(keys);
    }
    match secret.kind() {
        SecretKind::Plain(password) => {
            let keys = ScramKeys::derive(password, salt, iterations);
            secret.remember_scram_keys(salt, iterations, keys.clone());
            Some(keys)
        }
        SecretKind::Md5(_) | SecretKind::ScramVerifier(_) | SecretKind::MySqlNative(_) => None,
    }
}
