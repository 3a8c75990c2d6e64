//! Weir is the client: configuration of the side that connects to servers.

use crate::stream::Stream;
use crate::{Bounds, Identity, TlsError, pem, x509};
use rustls::ClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;

/// What is asked of a server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Verify {
    /// Nothing: the connection is encrypted to whoever answers.
    #[default]
    None,
    /// It is signed by a CA that is trusted.
    Ca,
    /// Also it is for the host that was asked for.
    Full,
}

/// What a [`Connector`] is made from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnectorSettings {
    /// What is asked of the server's certificate.
    pub verify: Verify,
    /// PEM of the CAs to trust; without it the system's.
    pub ca: Option<Vec<u8>>,
    /// Our certificate, if the server asks for one.
    pub identity: Option<Identity>,
    /// Versions and ciphers.
    pub bounds: Bounds,
    /// Protocols to name (ALPN).
    pub alpn: Vec<Vec<u8>>,
    /// Sessions to remember for resumption; 0: none.
    pub sessions: usize,
}

/// Makes the client's end of connections. Copies remember the same sessions.
#[derive(Clone)]
pub struct Connector {
    config: Arc<ClientConfig>,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector(..)")
    }
}

impl Connector {
    /// # Errors
    /// Settings that cannot work: no CA, a key of another certificate, unknown ciphers.
    pub fn new(settings: &ConnectorSettings) -> Result<Connector, TlsError> {
        let (provider, versions) = settings.bounds.provider()?;
        let verifier: Arc<dyn ServerCertVerifier> = match settings.verify {
            Verify::None => Arc::new(AnyCertificate { provider: provider.clone() }),
            Verify::Ca | Verify::Full => {
                let (roots, given) = pem::roots(settings.ca.as_deref())?;
                let chain = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone())
                    .build()
                    .map_err(|error| TlsError::setting(format!("server CA: {error}")))?;
                Arc::new(ByCa { chain, given, names: settings.verify == Verify::Full })
            }
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config =
            match &settings.identity {
                Some(identity) => builder
                    .with_client_auth_cert(identity.parse_chain()?, identity.parse_key()?)
                    .map_err(|error| TlsError::setting(format!("the certificate and its key: {error}")))?,
                None => builder.with_no_client_auth(),
            };
        config.alpn_protocols.clone_from(&settings.alpn);
        config.resumption = match settings.sessions {
            0 => Resumption::disabled(),
            sessions => Resumption::in_memory_sessions(sessions),
        };
        Ok(Connector { config: Arc::new(config) })
    }

    /// The client's end of one connection to `host`, a name or an address; a name goes into SNI. The first
    /// bytes for the server come with the first [`Stream::handle_input`], also of none.
    ///
    /// # Errors
    /// `host` can be neither a name nor an address.
    pub fn connect(&self, host: &str) -> Result<Stream, TlsError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| TlsError::Tls(format!("`{host}` is neither a host name nor an address")))?;
        Ok(Stream::client(self.config.clone(), name)?)
    }
}

/// Takes any certificate, as `require` does; the handshake still proves that the server has its key.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
        .or_else(|error| self.by_key_alone(error, message, certificate, signature))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
        .or_else(|error| self.by_key_alone(error, message, certificate, signature))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl AnyCertificate {
    /// Certificates of version 1, which `openssl x509 -req` makes by itself, cannot be read by webpki. Who
    /// does not ask whose certificate it is needs only its key; that key must have signed, because channel
    /// binding stands on it.
    fn by_key_alone(
        &self,
        error: Error,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let unread = !matches!(error, Error::InvalidCertificate(CertificateError::BadSignature));
        let Some((algorithm, key)) = x509::public_key(certificate).filter(|_| unread) else {
            return Err(error);
        };
        let supported = &self.provider.signature_verification_algorithms;
        let of_scheme = supported.mapping.iter().filter(|(scheme, _)| *scheme == signature.scheme);
        let signed = of_scheme.flat_map(|(_, all)| all.iter()).any(|verifier| {
            *verifier.public_key_alg_id() == *algorithm
                && verifier.verify_signature(&key, message, signature.signature()).is_ok()
        });
        // The certificate's fault is gone with the reading of it; what is left are faults of the signature.
        match error {
            Error::InvalidCertificate(_) if signed => Ok(HandshakeSignatureValid::assertion()),
            error => Err(error),
        }
    }
}

/// A certificate must lead to a trusted CA and, if names count, be for the host.
#[derive(Debug)]
struct ByCa {
    chain: Arc<WebPkiServerVerifier>,
    /// The certificates that were given to be trusted.
    given: Vec<CertificateDer<'static>>,
    names: bool,
}

impl ByCa {
    fn is_given(&self, certificate: &CertificateDer<'_>) -> bool {
        self.given.iter().any(|given| **given == **certificate)
    }

    /// OpenSSL, and so libpq and MySQL, take the common name for the host when no other name is there.
    fn is_common_name(certificate: &CertificateDer<'_>, host: &ServerName<'_>) -> bool {
        let Some(read) = x509::read(certificate) else { return false };
        match (host, read.common_name) {
            (ServerName::DnsName(host), Some(name)) if !read.has_alt_names => {
                let host = host.as_ref();
                match name.strip_prefix("*.") {
                    // One label, as in RFC 6125.
                    Some(rest) => {
                        host.split_once('.').is_some_and(|(_, tail)| tail.eq_ignore_ascii_case(rest))
                    }
                    None => host.eq_ignore_ascii_case(&name),
                }
            }
            _ => false,
        }
    }
}

impl ServerCertVerifier for ByCa {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.chain.verify_server_cert(certificate, between, host, ocsp, now);
        match verified {
            Err(Error::InvalidCertificate(
                reason
                @ (CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }),
            )) => {
                if !self.names || Self::is_common_name(certificate, host) {
                    Ok(ServerCertVerified::assertion())
                } else {
                    Err(Error::InvalidCertificate(reason))
                }
            }
            // A certificate that was given to be trusted and is a CA of its own, as `openssl req -x509` makes
            // them: webpki says that a CA is no server. Its dates are checked before that.
            Err(Error::InvalidCertificate(CertificateError::Other(_))) if self.is_given(certificate) => {
                if self.names && !Self::is_common_name(certificate, host) {
                    verify_server_name(&ParsedCertificate::try_from(certificate)?, host)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}
