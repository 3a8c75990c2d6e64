//! Weir is the server: configuration of the side that clients connect to.

use crate::stream::{Own, Stream};
use crate::{Bounds, Identity, TlsError, pem};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use std::sync::Arc;

/// What is asked of a client's certificate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ClientCertificate {
    /// None is asked for.
    #[default]
    None,
    /// Asked for; whoever shows one must show a good one. PEM of the CAs to trust.
    Optional(Vec<u8>),
    /// Nobody without a good one.
    Required(Vec<u8>),
}

/// What an [`Acceptor`] is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptorSettings {
    /// Our certificate.
    pub identity: Identity,
    /// Versions and ciphers.
    pub bounds: Bounds,
    /// Clients' certificates.
    pub client: ClientCertificate,
    /// Protocols that a client may name (ALPN); a client that names others only is refused, one that names
    /// none is not.
    pub alpn: Vec<Vec<u8>>,
    /// Sessions can be resumed by tickets.
    pub tickets: bool,
}

/// Makes the server's end of connections.
#[derive(Clone)]
pub struct Acceptor {
    config: Arc<ServerConfig>,
    own: Own,
}

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Acceptor(..)")
    }
}

impl Acceptor {
    /// # Errors
    /// Settings that cannot work: a key of another certificate, a CA file that holds none, unknown ciphers.
    pub fn new(settings: &AcceptorSettings) -> Result<Acceptor, TlsError> {
        let (provider, versions) = settings.bounds.provider()?;
        let builder =
            ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(&versions)?;
        let verifier = match &settings.client {
            ClientCertificate::None => None,
            ClientCertificate::Optional(ca) | ClientCertificate::Required(ca) => {
                let (roots, _) = pem::roots(Some(ca))?;
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                let verifier = match &settings.client {
                    ClientCertificate::Required(_) => verifier,
                    ClientCertificate::Optional(_) | ClientCertificate::None => {
                        verifier.allow_unauthenticated()
                    }
                };
                Some(verifier.build().map_err(|error| TlsError::setting(format!("client CA: {error}")))?)
            }
        };
        let builder = match verifier {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let chain = settings.identity.parse_chain()?;
        let own = chain.first().map(|own| Own::of(own)).unwrap_or_default();
        let mut config = builder
            .with_single_cert(chain, settings.identity.parse_key()?)
            .map_err(|error| TlsError::setting(format!("the certificate and its key: {error}")))?;
        config.alpn_protocols.clone_from(&settings.alpn);
        // Our order of ciphers holds, as in PgBouncer: clients put first what costs most.
        config.ignore_client_order = true;
        // The cache that would be used instead is one lock for all workers.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = usize::from(settings.tickets);
        if settings.tickets {
            config.ticketer = Ticketer::new()?;
        }
        Ok(Acceptor { config: Arc::new(config), own })
    }

    /// The server's end of one connection.
    ///
    /// # Errors
    /// Out of random bytes.
    pub fn accept(&self) -> Result<Stream, TlsError> {
        Ok(Stream::server(self.config.clone(), self.own.clone())?)
    }

    /// Channel binding data of our certificate, if its kind has any.
    pub fn end_point(&self) -> Option<&[u8]> {
        self.own.end_point.as_deref()
    }
}
