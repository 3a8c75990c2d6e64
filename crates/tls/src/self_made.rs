//! A certificate for when none is configured: ECDSA P-256, because a handshake with it costs the least.

use crate::{Identity, TlsError};
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use std::io::Write;
use std::path::Path;

/// A certificate that Weir made for itself.
#[derive(Debug)]
pub struct SelfMade {
    /// The certificate and its key.
    pub identity: Identity,
    /// It was made now, not found in its file.
    pub is_new: bool,
}

/// The certificate kept in `file`, or a new one for these names and addresses, which is then kept there.
/// Without a file it lives as long as the process.
///
/// # Errors
/// The file can neither be read nor written, or holds something else.
pub fn self_made(names: &[String], file: Option<&Path>) -> Result<SelfMade, TlsError> {
    if let Some(file) = file {
        match std::fs::read(file) {
            Ok(pem) => {
                let identity = Identity { chain: pem.clone(), key: pem };
                if identity.parse_chain()?.is_empty() || identity.parse_key().is_err() {
                    let text = "holds no certificate with its key; remove it to have one made";
                    return Err(TlsError::setting(format!("{}: {text}", file.display())));
                }
                return Ok(SelfMade { identity, is_new: false });
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(TlsError::File { path: file.to_owned(), source }),
        }
    }
    let identity = make(names)?;
    if let Some(file) = file {
        match write_private(file, &[identity.key.as_slice(), &identity.chain].concat()) {
            Ok(()) => {}
            // Another process was quicker: both show the same.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return self_made(names, Some(file));
            }
            Err(source) => return Err(TlsError::File { path: file.to_owned(), source }),
        }
    }
    Ok(SelfMade { identity, is_new: true })
}

fn make(names: &[String]) -> Result<Identity, TlsError> {
    let failed = |error: rcgen::Error| TlsError::setting(format!("no certificate could be made: {error}"));
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(failed)?;
    let mut params = CertificateParams::new(names).map_err(failed)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, names.first().map_or("weir", String::as_str));
    subject.push(DnType::OrganizationName, "Weir, made by itself");
    params.distinguished_name = subject;
    params.is_ca = IsCa::ExplicitNoCa;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // It proves nothing to who does not know it, so it need not end soon.
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2120, 1, 1);
    let certificate = params.self_signed(&key).map_err(failed)?;
    Ok(Identity { chain: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes() })
}

/// Whole or not at all, and for nobody else to read. `AlreadyExists`: there is such a file now.
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    let linked = std::fs::hard_link(&beside, path);
    let outcome = match linked {
        // A file system without links.
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return std::fs::rename(&beside, path);
        }
        outcome => outcome,
    };
    // It is there under its own name, or not needed.
    drop(std::fs::remove_file(&beside));
    outcome
}
