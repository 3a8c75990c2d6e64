//! TLS over buffers that the caller owns: rustls with aws-lc-rs.
//!
//! Owns: which versions, ciphers and certificates; the handshake; records. A [`Stream`] takes bytes of the
//! peer and returns plain text and bytes for the peer, and keeps nothing while no record is incomplete. Must
//! not know: sockets, the clock of the event loop, and what the plain text means.
//!
//! Invariants: what a stream returned before an error may be sent, nothing after it; no byte of plain text is
//! returned before the handshake is done and, if requested, the peer's certificate is verified.

#![forbid(unsafe_code)]

mod acceptor;
mod blocking;
mod ciphers;
mod connector;
mod mode;
mod pem;
mod self_made;
mod stream;
mod x509;

pub use acceptor::{Acceptor, AcceptorSettings, ClientCertificate};
pub use blocking::Blocking;
pub use ciphers::{Bounds, check_ciphers, check_curves, check_protocols};
pub use connector::{Connector, ConnectorSettings, Verify};
pub use mode::SslMode;
pub use pem::{Identity, read_pem};
pub use self_made::{SelfMade, self_made};
pub use stream::{Facts, Stream};

use std::path::PathBuf;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file has not what it should have, or a setting makes no sense.
    #[error("{0}")]
    Setting(String),
    /// The handshake or a record failed.
    #[error("{0}")]
    Tls(String),
}

impl TlsError {
    fn setting(text: impl Into<String>) -> TlsError {
        TlsError::Setting(text.into())
    }
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        TlsError::Tls(words_of(&error))
    }
}

/// A handshake's error in words an operator can act on.
fn words_of(error: &rustls::Error) -> String {
    use rustls::{AlertDescription, CertificateError, Error};
    match error {
        Error::InvalidCertificate(reason) => match reason {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the certificate has expired".to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the certificate is not valid yet".to_owned()
            }
            // A bad signature: a CA of the same name and another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "the certificate is not signed by a CA that is trusted here".to_owned()
            }
            CertificateError::NotValidForName => "the certificate is for another host".to_owned(),
            CertificateError::NotValidForNameContext { expected, presented } => {
                let expected = expected.to_str();
                if presented.is_empty() {
                    format!("the certificate is for another host than {expected}: it names none")
                } else {
                    format!(
                        "the certificate is for another host than {expected}: for {}",
                        presented.join(", ")
                    )
                }
            }
            CertificateError::Revoked => "the certificate is revoked".to_owned(),
            other => format!("the certificate is not good: {other}"),
        },
        Error::NoCertificatesPresented => "the peer shows no certificate, and one is wanted".to_owned(),
        Error::AlertReceived(alert) => match alert {
            AlertDescription::UnknownCA => "the peer does not trust our certificate's CA".to_owned(),
            AlertDescription::CertificateRequired => "the peer wants a certificate of ours".to_owned(),
            AlertDescription::CertificateExpired => {
                "the peer says that our certificate has expired".to_owned()
            }
            AlertDescription::BadCertificate => "the peer does not like our certificate".to_owned(),
            AlertDescription::HandshakeFailure => {
                "the peer sees no cipher or key exchange that both sides have".to_owned()
            }
            AlertDescription::ProtocolVersion => {
                "the peer sees no TLS version that both sides have".to_owned()
            }
            other => format!("the peer ended the handshake: {}", in_words(&other)),
        },
        Error::PeerIncompatible(reason) => format!("no common ground with the peer: {}", in_words(&reason)),
        Error::NoApplicationProtocol => "no application protocol (ALPN) that both sides have".to_owned(),
        Error::InvalidMessage(_) => "the peer's bytes are not TLS".to_owned(),
        other => other.to_string(),
    }
}

/// A reason of rustls, which has only names for them: `NoCipherSuitesInCommon` is "no cipher suites in
/// common".
fn in_words(reason: &impl std::fmt::Debug) -> String {
    let name = format!("{reason:?}");
    let mut words = String::new();
    let mut before = ' ';
    for c in name.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
        before = c;
    }
    words
}
