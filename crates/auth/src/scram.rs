//! SCRAM-SHA-256 (RFC 5802, RFC 7677) in both roles, as PostgreSQL uses it: the user name of the startup
//! packet counts and the one in the SCRAM message is ignored. With channel binding (`-PLUS`,
//! tls-server-end-point of RFC 5929) both sides prove that they see the same certificate.
//!
//! Invariants: no PBKDF2 runs here except in [`ScramKeys::derive`], which only a job may call; proofs and
//! signatures are compared in constant time; an unknown user gets a constant salt and fails at the same
//! message as a wrong password.

use crate::secret::SecretKind;
use crate::{Job, Secret};
use aws_lc_rs::{digest, hmac, pbkdf2};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};
use subtle::ConstantTimeEq;
use weir_wire::Reader;
use zeroize::Zeroize;

/// The mechanism's name on the wire.
pub const MECHANISM: &str = "SCRAM-SHA-256";

/// The mechanism with channel binding.
pub const MECHANISM_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// Of the client's first message, with channel binding.
const PLUS_HEADER: &[u8] = b"p=tls-server-end-point,,";

/// What the server's side knows of the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerBinding<'a> {
    /// [`MECHANISM_PLUS`] was not offered.
    NotOffered,
    /// It was offered and the client chose the other one.
    NotChosen,
    /// It was chosen; the data of our certificate.
    Chosen(&'a [u8]),
}

/// What the client's side knows of the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientBinding<'a> {
    /// Nothing could be bound to.
    Unsupported,
    /// The server did not offer it; if it did, somebody in between has taken that away, and the server will
    /// notice.
    NotOffered,
    /// The data of the server's certificate.
    Bound(&'a [u8]),
}

/// Rounds for passwords Weir has in clear: PostgreSQL's default (`scram_iterations`).
pub const DEFAULT_ITERATIONS: u32 = 4096;

/// Rounds a server may ask of Weir: about a second of a crypto thread (measured: 1 ms for PostgreSQL's
/// default, 1.2 s for this). PostgreSQL's `scram_iterations` allows 2^31 - 1, which would hold the thread for
/// most of an hour; the largest number that anybody recommends is 600,000 (OWASP).
pub const MAX_ITERATIONS: u32 = 1_000_000;

/// Random bytes of a nonce, before base64.
const NONCE_BYTES: usize = 18;

const KEY_BYTES: usize = 32;

/// Why an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScramError {
    /// A message that does not follow RFC 5802, or asks for what Weir does not have.
    Malformed(&'static str),
    /// The proof is wrong, or the user has no secret.
    Refused,
    /// The secret Weir has (a hash) cannot make a proof for this server.
    NoKeys,
}

/// What a password becomes under a salt.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramKeys {
    client: [u8; KEY_BYTES],
    stored: [u8; KEY_BYTES],
    server: [u8; KEY_BYTES],
}

impl Drop for ScramKeys {
    fn drop(&mut self) {
        self.client.zeroize();
        self.stored.zeroize();
        self.server.zeroize();
    }
}

impl std::fmt::Debug for ScramKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScramKeys(..)")
    }
}

impl ScramKeys {
    /// Runs PBKDF2: milliseconds. `iterations` 0 counts as 1.
    pub fn derive(password: &str, salt: &[u8], iterations: u32) -> Self {
        // PostgreSQL uses the raw bytes when a password is not fit for SASLprep.
        let prepared = stringprep::saslprep(password).unwrap_or(password.into());
        let mut salted = [0; KEY_BYTES];
        let rounds = NonZeroU32::new(iterations).unwrap_or(NonZeroU32::MIN);
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, salt, prepared.as_bytes(), &mut salted);
        let client = sign(&salted, &[b"Client Key"]);
        let server = sign(&salted, &[b"Server Key"]);
        salted.zeroize();
        ScramKeys { client, stored: sha256(&client), server }
    }

    /// This password made that verifier. Constant time.
    pub fn matches(&self, verifier: &ScramVerifier) -> bool {
        bool::from(self.stored.ct_eq(&verifier.stored_key) & self.server.ct_eq(&verifier.server_key))
    }
}

/// What `pg_authid` stores for a user.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramVerifier {
    /// Rounds of PBKDF2.
    pub iterations: u32,
    /// Decoded salt.
    pub salt: Box<[u8]>,
    stored_key: [u8; KEY_BYTES],
    server_key: [u8; KEY_BYTES],
}

impl Drop for ScramVerifier {
    fn drop(&mut self) {
        self.stored_key.zeroize();
        self.server_key.zeroize();
    }
}

impl ScramVerifier {
    /// Reads `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("SCRAM-SHA-256$")?;
        let (head, keys) = rest.split_once('$')?;
        let (iterations, salt) = head.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        Some(ScramVerifier {
            iterations: iterations.parse().ok().filter(|&n| n > 0)?,
            salt: BASE64.decode(salt).ok()?.into(),
            stored_key: BASE64.decode(stored).ok()?.try_into().ok()?,
            server_key: BASE64.decode(server).ok()?.try_into().ok()?,
        })
    }

    /// The text [`ScramVerifier::parse`] reads, made from derived keys.
    pub fn text_of(keys: &ScramKeys, salt: &[u8], iterations: u32) -> String {
        format!(
            "SCRAM-SHA-256${iterations}:{}${}:{}",
            BASE64.encode(salt),
            BASE64.encode(keys.stored),
            BASE64.encode(keys.server)
        )
    }
}

impl ScramVerifier {
    /// What a user of this name, who does not exist, is taken to have: as many rounds and as long a salt as
    /// this user, always the same ones as long as this user's are, and keys that no password makes.
    pub fn decoy(&self, name: &str) -> Secret {
        let cut = |what: &[u8]| sign(&self.stored_key, &[b"weir decoy", what, name.as_bytes()]);
        let salt = (0..=u8::MAX).cycle().flat_map(|n| cut(&[b's', n])).take(self.salt.len());
        let salt = salt.collect::<Vec<u8>>().into();
        let (stored_key, server_key) = (cut(b"stored"), cut(b"server"));
        Secret::new(SecretKind::ScramVerifier(ScramVerifier {
            iterations: self.iterations,
            salt,
            stored_key,
            server_key,
        }))
    }

    /// A number cut from a name that nobody can foresee, the same as long as this user's secret is.
    pub fn place_of(&self, name: &str) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = sign(&self.stored_key, &[b"weir place", name.as_bytes()]);
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

/// Derives the keys of a password in clear under the salt that this user is told, so that no login has to:
/// whose first one takes longer exists. PBKDF2: blocks for a millisecond. `nonce` is fresh.
pub fn derive_ahead(user: &str, secret: &Secret, nonce: &[u8; 32]) {
    crate::job::scram_keys(secret, &salt_for(user, nonce), DEFAULT_ITERATIONS);
}

fn sha256(bytes: &[u8]) -> [u8; KEY_BYTES] {
    let mut out = [0; KEY_BYTES];
    out.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    out
}

fn sign(key: &[u8], parts: &[&[u8]]) -> [u8; KEY_BYTES] {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    for part in parts {
        context.update(part);
    }
    let mut out = [0; KEY_BYTES];
    out.copy_from_slice(context.sign().as_ref());
    out
}

fn xor(a: &[u8; KEY_BYTES], b: &[u8; KEY_BYTES]) -> [u8; KEY_BYTES] {
    std::array::from_fn(|i| a[i] ^ b[i])
}

/// The salt of a user whose secret names none (in clear, or no such user). It must be the same at every
/// login, or asking twice would tell which users exist; so it is cut from a key made once per process out
/// of the first nonce that comes by.
fn salt_for(user: &str, nonce: &[u8; 32]) -> Box<[u8]> {
    static PROCESS_KEY: OnceLock<[u8; KEY_BYTES]> = OnceLock::new();
    let key = PROCESS_KEY.get_or_init(|| sign(nonce, &[b"weir scram salts"]));
    let mac = sign(key, &[user.as_bytes()]);
    mac[..16].into()
}

fn printable(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&b| (0x21..=0x7e).contains(&b) && b != b',')
}

/// Takes `name=value` up to the next comma (consumed) or the end.
fn attribute<'a>(reader: &mut Reader<'a>, name: u8) -> Result<&'a [u8], ScramError> {
    const BAD: ScramError = ScramError::Malformed("an attribute is missing or out of order");
    let rest = reader.rest();
    let end = rest.iter().position(|&b| b == b',').unwrap_or(rest.len());
    let field = reader.take(end).map_err(|_| BAD)?;
    if !reader.is_empty() {
        reader.take(1).map_err(|_| BAD)?;
    }
    match field {
        [n, b'=', value @ ..] if *n == name => Ok(value),
        _ => Err(BAD),
    }
}

/// The server's side, after the client's first message.
#[derive(Debug)]
pub struct ServerExpectFinal {
    secret: Option<Arc<Secret>>,
    salt: Box<[u8]>,
    iterations: u32,
    /// `cbind-input`: the client's `gs2-header`, then the data of the channel. It must be in the final
    /// message.
    bound: Box<[u8]>,
    nonce: Box<[u8]>,
    /// client-first-message-bare "," server-first-message ","
    auth_message: Vec<u8>,
}

/// What the server's side says to the client's final message.
#[derive(Debug)]
pub enum Verdict {
    /// The proof is right; send this as the final message.
    Verified(Vec<u8>),
    /// Run this, then ask again.
    Work(Job),
}

impl ServerExpectFinal {
    /// Reads the client's first message. Returns the state and the server's first message. `nonce` is
    /// fresh; a missing secret is not told.
    ///
    /// # Errors
    /// `Malformed` when the message does not follow RFC 5802, section 7, or asks for a channel binding that
    /// this connection does not have.
    pub fn begin(
        user: &str,
        secret: Option<Arc<Secret>>,
        nonce: &[u8; 32],
        client_first: &[u8],
        binding: ServerBinding<'_>,
    ) -> Result<(Self, Vec<u8>), ScramError> {
        // RFC 5802 section 7: gs2-header = gs2-cbind-flag "," [ authzid ] ","
        let (bound, bare): (Box<[u8]>, &[u8]) = match (client_first, binding) {
            ([b'n', b',', b',', bare @ ..], ServerBinding::NotOffered | ServerBinding::NotChosen) => {
                ((*b"n,,").into(), bare)
            }
            ([b'y', b',', b',', bare @ ..], ServerBinding::NotOffered) => ((*b"y,,").into(), bare),
            ([b'y', b',', b',', ..], ServerBinding::NotChosen) => {
                return Err(ScramError::Malformed("the offer of channel binding did not reach the client"));
            }
            ([b'p', ..], ServerBinding::Chosen(data)) => match client_first.strip_prefix(PLUS_HEADER) {
                Some(bare) => ([PLUS_HEADER, data].concat().into(), bare),
                None => return Err(ScramError::Malformed("unknown type of channel binding")),
            },
            ([b'p', ..], _) => return Err(ScramError::Malformed("channel binding was not offered")),
            ([b'n' | b'y', b',', b',', ..], ServerBinding::Chosen(_)) => {
                return Err(ScramError::Malformed("channel binding was chosen and is not used"));
            }
            ([b'n' | b'y', b',', b'a', ..], _) => {
                return Err(ScramError::Malformed("authzid is not supported"));
            }
            _ => return Err(ScramError::Malformed("bad gs2 header")),
        };
        let mut reader = Reader::new(bare);
        attribute(&mut reader, b'n')?;
        let client_nonce = attribute(&mut reader, b'r')?;
        if !printable(client_nonce) {
            return Err(ScramError::Malformed("bad nonce"));
        }
        let (salt, iterations) = match secret.as_deref().map(Secret::kind) {
            Some(SecretKind::ScramVerifier(v)) => (v.salt.clone(), v.iterations),
            Some(SecretKind::Plain(_) | SecretKind::Md5(_) | SecretKind::MySqlNative(_)) | None => {
                (salt_for(user, nonce), DEFAULT_ITERATIONS)
            }
        };
        let mut full_nonce = client_nonce.to_vec();
        full_nonce.extend_from_slice(BASE64.encode(&nonce[..NONCE_BYTES]).as_bytes());
        let mut first = b"r=".to_vec();
        first.extend_from_slice(&full_nonce);
        first.extend_from_slice(format!(",s={},i={iterations}", BASE64.encode(&salt)).as_bytes());
        let auth_message = [bare, b",", &first, b","].concat();
        let state =
            ServerExpectFinal { secret, salt, iterations, bound, nonce: full_nonce.into(), auth_message };
        Ok((state, first))
    }

    /// Reads the client's final message. After [`Verdict::Work`] call it again with the same bytes.
    ///
    /// # Errors
    /// `Malformed` when the message does not follow RFC 5802, or its channel binding or nonce is another.
    /// `Refused` when the proof is wrong.
    pub fn verify(&self, client_final: &[u8]) -> Result<Verdict, ScramError> {
        const NO_PROOF: ScramError = ScramError::Malformed("no proof");
        let mut reader = Reader::new(client_final);
        let binding = attribute(&mut reader, b'c')?;
        if BASE64.encode(&self.bound).as_bytes() != binding {
            return Err(ScramError::Malformed("channel binding does not match"));
        }
        if attribute(&mut reader, b'r')? != &*self.nonce {
            return Err(ScramError::Malformed("nonce does not match"));
        }
        let proof_at = client_final.windows(3).rposition(|w| w == b",p=").ok_or(NO_PROOF)?;
        let (without_proof, proof) = client_final.split_at_checked(proof_at).ok_or(NO_PROOF)?;
        let proof: [u8; KEY_BYTES] = BASE64
            .decode(proof.get(3..).unwrap_or_default())
            .ok()
            .and_then(|p| p.try_into().ok())
            .ok_or(ScramError::Malformed("bad proof"))?;
        let (stored, server) = match self.keys()? {
            Keys::Known(stored, server) => (stored, server),
            Keys::Work(job) => return Ok(Verdict::Work(job)),
        };
        let signature = sign(&stored, &[&self.auth_message, without_proof]);
        let client_key = xor(&proof, &signature);
        if !bool::from(sha256(&client_key).ct_eq(&stored)) {
            return Err(ScramError::Refused);
        }
        self.learn(client_key, stored, server);
        let signature = sign(&server, &[&self.auth_message, without_proof]);
        Ok(Verdict::Verified(format!("v={}", BASE64.encode(signature)).into_bytes()))
    }

    fn keys(&self) -> Result<Keys, ScramError> {
        let Some(secret) = &self.secret else { return Ok(self.nobody()) };
        match secret.kind() {
            SecretKind::ScramVerifier(v) => Ok(Keys::Known(v.stored_key, v.server_key)),
            SecretKind::Md5(_) | SecretKind::MySqlNative(_) => Ok(self.nobody()),
            SecretKind::Plain(_) => Ok(match secret.scram_keys(&self.salt, self.iterations) {
                Some(keys) => Keys::Known(keys.stored, keys.server),
                None => Keys::Work(Job::ScramKeys {
                    secret: Arc::clone(secret),
                    salt: self.salt.clone(),
                    iterations: self.iterations,
                }),
            }),
        }
    }

    /// Keys that no proof fits, for the same amount of work.
    fn nobody(&self) -> Keys {
        Keys::Known(sign(&self.nonce, &[b"nobody"]), sign(&self.nonce, &[b"no server"]))
    }

    /// A verifier cannot make proofs, but a client that has proved itself has shown its key; with it Weir
    /// can log in to a server that stores the same verifier.
    fn learn(&self, client: [u8; KEY_BYTES], stored: [u8; KEY_BYTES], server: [u8; KEY_BYTES]) {
        if let Some(secret) = &self.secret
            && matches!(secret.kind(), SecretKind::ScramVerifier(_))
            && secret.scram_keys(&self.salt, self.iterations).is_none()
        {
            secret.remember_scram_keys(&self.salt, self.iterations, ScramKeys { client, stored, server });
        }
    }
}

enum Keys {
    Known([u8; KEY_BYTES], [u8; KEY_BYTES]),
    Work(Job),
}

/// The client's side, after its first message.
#[derive(Debug)]
pub struct ClientExpectFirst {
    nonce: String,
    /// `cbind-input`, as for the server's side.
    bound: Box<[u8]>,
}

/// The client's side, with the server's challenge in hand.
#[derive(Debug)]
pub struct ClientChallenge {
    salt: Box<[u8]>,
    iterations: u32,
    /// client-final-message-without-proof
    without_proof: Vec<u8>,
    auth_message: Vec<u8>,
}

/// The client's side, after its proof.
#[derive(Debug)]
pub struct ClientExpectFinal {
    signature: [u8; KEY_BYTES],
}

impl ClientExpectFirst {
    /// The state and the client's first message. `nonce` is fresh.
    pub fn begin(nonce: &[u8; 32], binding: ClientBinding<'_>) -> (Self, Vec<u8>) {
        let nonce = BASE64.encode(&nonce[..NONCE_BYTES]);
        let (header, data): (&[u8], &[u8]) = match binding {
            ClientBinding::Unsupported => (b"n,,", b""),
            ClientBinding::NotOffered => (b"y,,", b""),
            ClientBinding::Bound(data) => (PLUS_HEADER, data),
        };
        let first = [header, b"n=,r=", nonce.as_bytes()].concat();
        (ClientExpectFirst { nonce, bound: [header, data].concat().into() }, first)
    }

    /// Reads the server's first message.
    ///
    /// # Errors
    /// `Malformed` when the message does not follow RFC 5802, its nonce does not begin with the client's, or
    /// it asks for more rounds than Weir allows.
    pub fn challenge(self, server_first: &[u8]) -> Result<ClientChallenge, ScramError> {
        let mut reader = Reader::new(server_first);
        let nonce = attribute(&mut reader, b'r')?;
        let own = self.nonce.as_bytes();
        if !nonce.starts_with(own) || nonce.len() == own.len() || !printable(nonce) {
            return Err(ScramError::Malformed("the server's nonce does not continue ours"));
        }
        let salt =
            BASE64.decode(attribute(&mut reader, b's')?).map_err(|_| ScramError::Malformed("bad salt"))?;
        let iterations = std::str::from_utf8(attribute(&mut reader, b'i')?)
            .ok()
            .and_then(|n| n.parse().ok())
            .filter(|n| (1..=MAX_ITERATIONS).contains(n))
            .ok_or(ScramError::Malformed("bad iteration count"))?;
        let bound = BASE64.encode(&self.bound);
        let without_proof = [b"c=", bound.as_bytes(), b",r=", nonce].concat();
        let auth_message = [b"n=,r=", own, b",", server_first, b",", &without_proof].concat();
        Ok(ClientChallenge { salt: salt.into(), iterations, without_proof, auth_message })
    }
}

impl ClientChallenge {
    /// The keys that answer this challenge, or the work that gives them.
    ///
    /// # Errors
    /// `NoKeys` when the secret is no password and not the keys of this salt and number of rounds.
    pub fn keys(&self, secret: &Arc<Secret>) -> Result<Result<ScramKeys, Job>, ScramError> {
        if let Some(keys) = secret.scram_keys(&self.salt, self.iterations) {
            return Ok(Ok(keys));
        }
        match secret.kind() {
            SecretKind::Plain(_) => Ok(Err(Job::ScramKeys {
                secret: Arc::clone(secret),
                salt: self.salt.clone(),
                iterations: self.iterations,
            })),
            SecretKind::Md5(_) | SecretKind::ScramVerifier(_) | SecretKind::MySqlNative(_) => {
                Err(ScramError::NoKeys)
            }
        }
    }

    /// The client's final message.
    pub fn answer(self, keys: &ScramKeys) -> (ClientExpectFinal, Vec<u8>) {
        let proof = xor(&keys.client, &sign(&keys.stored, &[&self.auth_message]));
        let mut message = self.without_proof;
        message.extend_from_slice(b",p=");
        message.extend_from_slice(BASE64.encode(proof).as_bytes());
        (ClientExpectFinal { signature: sign(&keys.server, &[&self.auth_message]) }, message)
    }
}

impl ClientExpectFinal {
    /// Reads the server's final message: it must prove that it knows the verifier.
    ///
    /// # Errors
    /// `Refused` when the server sends an error or its signature is not that of the keys; `Malformed` when
    /// the signature is no base64.
    pub fn verify(self, server_final: &[u8]) -> Result<(), ScramError> {
        let mut reader = Reader::new(server_final);
        let signature = attribute(&mut reader, b'v').map_err(|_| ScramError::Refused)?;
        let signature = BASE64.decode(signature).map_err(|_| ScramError::Malformed("bad signature"))?;
        if bool::from(signature.as_slice().ct_eq(&self.signature)) {
            Ok(())
        } else {
            Err(ScramError::Refused)
        }
    }
}

#[cfg(test)]
mod tests;
