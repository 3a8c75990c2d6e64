//! Weir's credentials for a server, at login and again with COM_CHANGE_USER.
//!
//! Owns: the response to a method's scramble. Must not know: the order of packets.
//!
//! Invariant: a readable password goes only to a peer that has proven to be the server: by a verified
//! certificate, by the RSA key that the operator configured, or by being at a Unix socket. `Trust::unproven`
//! is the operator's permission to go without. A false server chooses the method, so choosing a safe method
//! on Weir's side is not enough.

use super::{CACHING_SHA2, CLEAR, NATIVE, SHA256, SHA256_KEY_REQUEST};
use std::borrow::Cow;
use std::sync::Arc;
use weir_auth::{Secret, SecretKind, caching_sha2, native};
use weir_session::login::Trust;
use weir_wire::{Fault, FaultKind};
use zeroize::Zeroizing;

/// An authentication method Weir has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Native,
    CachingSha2,
    Sha256,
    Clear,
}

impl Method {
    pub(crate) fn named(plugin: &[u8]) -> Option<Method> {
        [Method::Native, Method::CachingSha2, Method::Sha256, Method::Clear]
            .into_iter()
            .find(|method| method.name() == plugin)
    }

    pub(crate) fn name(self) -> &'static [u8] {
        match self {
            Method::Native => NATIVE,
            Method::CachingSha2 => CACHING_SHA2,
            Method::Sha256 => SHA256,
            Method::Clear => CLEAR,
        }
    }
}

/// A user and what proves it.
#[derive(Debug, Clone)]
pub(crate) struct Credentials {
    pub user: String,
    pub secret: Option<Arc<Secret>>,
    /// The connection is a Unix socket or inside TLS: nobody between reads it, and the server takes the
    /// password as it is.
    pub private: bool,
    /// The connection is a Unix socket.
    pub unix: bool,
    /// What else proves the server.
    pub trust: Trust,
}

/// A method, its scramble, and the answer to it.
type Switched = (Method, Vec<u8>, Zeroizing<Vec<u8>>);

impl Credentials {
    /// The answer to a scramble.
    pub(crate) fn answer(&self, method: Method, scramble: &[u8]) -> Result<Zeroizing<Vec<u8>>, Fault> {
        if method == Method::Clear && !self.private {
            return Err(refuse("the server asks for the password in clear"));
        }
        let Some(secret) = self.secret.as_deref() else { return Ok(Zeroizing::default()) };
        let answer = match method {
            Method::Native => native::response(secret, scramble),
            Method::CachingSha2 => caching_sha2::response(secret, scramble),
            // Where others could read it, the password follows in an envelope; none at all needs no envelope.
            Method::Sha256 if !self.private && self.password()?.len() > 1 => {
                self.needs_key()?;
                return Ok(Zeroizing::new(vec![SHA256_KEY_REQUEST]));
            }
            Method::Sha256 | Method::Clear => return self.in_clear(),
        };
        answer.map(Zeroizing::new).ok_or_else(unknown_password)
    }

    /// The answer to an AuthSwitchRequest (its payload behind `0xFE`), with its method and scramble.
    pub(crate) fn switch(&self, payload: &[u8]) -> Result<Switched, Fault> {
        let Some((plugin, scramble)) = crate::message::response::read_auth_switch(payload) else {
            return Err(refuse("the server asks for the method before 4.1"));
        };
        let Some(method) = Method::named(plugin) else {
            return Err(refuse(format!("the server asks for method `{}`", plugin.escape_ascii())));
        };
        Ok((method, scramble.to_vec(), self.answer(method, scramble)?))
    }

    /// The password with its NUL, for a connection that nobody between reads.
    pub(crate) fn in_clear(&self) -> Result<Zeroizing<Vec<u8>>, Fault> {
        let proven = self.unix || self.trust.verified || self.trust.unproven;
        let password = self.password()?;
        if password.len() <= 1 || self.private && proven { Ok(password) } else { Err(unproven()) }
    }

    /// The server's RSA key is about to be asked for, or used: it is known, or none has to be.
    pub(crate) fn needs_key(&self) -> Result<(), Fault> {
        if self.trust.key.is_some() || self.trust.unproven { Ok(()) } else { Err(unproven()) }
    }

    /// The key for the envelope: the one that is known, whatever the server says.
    pub(crate) fn key<'a>(&'a self, said: &'a [u8]) -> &'a [u8] {
        self.trust.key.as_deref().unwrap_or(said)
    }

    /// The password with its NUL.
    fn password(&self) -> Result<Zeroizing<Vec<u8>>, Fault> {
        let mut bytes = match self.secret.as_deref().map(Secret::kind) {
            Some(SecretKind::Plain(password)) => Zeroizing::new(password.as_bytes().to_vec()),
            None => Zeroizing::default(),
            Some(SecretKind::Md5(_) | SecretKind::ScramVerifier(_) | SecretKind::MySqlNative(_)) => {
                return Err(unknown_password());
            }
        };
        bytes.push(0);
        Ok(bytes)
    }

    /// What goes into the RSA envelope: the password and its NUL, XORed with the scramble.
    pub(crate) fn masked(&self, scramble: &[u8]) -> Result<Zeroizing<Vec<u8>>, Fault> {
        self.needs_key()?;
        let mut masked = self.password()?;
        caching_sha2::mask(&mut masked, scramble);
        Ok(masked)
    }
}

fn unproven() -> Fault {
    refuse(
        "the server asks for the password itself, and nothing proves that it is the right server; set sslmode to \
         verify-ca or verify-full with its CA (tls.server.ca_file), or tls.server.public_key_file to its RSA key with \
         sslmode disable, or use a Unix socket; tls.server.trust_unverified gives the password to whoever answers",
    )
}

fn unknown_password() -> Fault {
    refuse("the password of this user is not known in clear")
}

pub(crate) fn refuse(text: impl Into<Cow<'static, str>>) -> Fault {
    Fault::new(FaultKind::ServerLoginFailed, text)
}
