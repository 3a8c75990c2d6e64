//! Certificates and keys in PEM.

use crate::TlsError;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;

/// A certificate with what it takes to show it, and its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// PEM of the certificate, then of those between it and the root.
    pub chain: Vec<u8>,
    /// PEM of its key.
    pub key: Vec<u8>,
}

/// Without the key.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity(..)")
    }
}

/// Reads a file, with its name in the error.
///
/// # Errors
/// It cannot be read.
pub fn read_pem(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::File { path: path.to_owned(), source })
}

impl Identity {
    /// Reads a certificate and its key.
    ///
    /// # Errors
    /// A file that cannot be read or holds no certificate, or no key.
    pub fn read(certificate: &Path, key: &Path) -> Result<Identity, TlsError> {
        let identity = Identity { chain: read_pem(certificate)?, key: read_pem(key)? };
        if identity.parse_chain()?.is_empty() {
            return Err(TlsError::setting(format!("{}: no certificate in it", certificate.display())));
        }
        let unusable =
            |_| TlsError::setting(format!("{}: no private key in it that can be used", key.display()));
        identity.parse_key().map_err(unusable)?;
        Ok(identity)
    }

    pub(crate) fn parse_chain(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        certificates(&self.chain)
    }

    pub(crate) fn parse_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| TlsError::setting(format!("private key: {error}")))
    }
}

pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| TlsError::setting(format!("certificate: {error}")))
}

/// CAs to trust: those of a PEM text or, without one, the system's. Also given as they stand, for
/// certificates that are their own CA.
pub(crate) fn roots(pem: Option<&[u8]>) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), TlsError> {
    let mut store = RootCertStore::empty();
    let Some(pem) = pem else {
        let found = rustls_native_certs::load_native_certs();
        store.add_parsable_certificates(found.certs);
        if store.is_empty() {
            return Err(TlsError::setting("no CA of the system was found: name a file with the CA to trust"));
        }
        return Ok((store, Vec::new()));
    };
    let given = certificates(pem)?;
    let (added, _) = store.add_parsable_certificates(given.iter().cloned());
    if added == 0 {
        return Err(TlsError::setting("no certificate of a CA that can be used"));
    }
    Ok((store, given))
}
