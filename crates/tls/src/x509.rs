//! The parts of X.509 that rustls does not provide: a certificate's subject, its dates, and the hash of its
//! signature.
//!
//! RFC 5280, section 4.1, read by x509-parser. The certificates come from the peer and are verified
//! elsewhere: anything that is not understood is `None`.

use aws_lc_rs::digest;
use x509_parser::asn1_rs::{Any, FromDer, Oid, oid};
use x509_parser::certificate::X509Certificate;
use x509_parser::oid_registry::OID_X509_EXT_SUBJECT_ALT_NAME;

/// What is read of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    /// The last common name of the subject, as PostgreSQL and PgBouncer take it.
    pub common_name: Option<String>,
    /// It says for which hosts it is, so that its common name does not.
    pub has_alt_names: bool,
}

/// Reads a certificate.
pub(crate) fn read(der: &[u8]) -> Option<Read> {
    let certificate = parse(der)?;
    // Also one that cannot be understood: the common name is no way around it.
    let has_alt_names =
        certificate.extensions().iter().any(|found| found.oid == OID_X509_EXT_SUBJECT_ALT_NAME);
    Some(Read { common_name: common_name(&certificate), has_alt_names })
}

fn parse(der: &[u8]) -> Option<X509Certificate<'_>> {
    X509Certificate::from_der(der).ok().map(|(_, certificate)| certificate)
}

/// A name with a NUL in it is one name to one reader and another to the next.
fn common_name(certificate: &X509Certificate<'_>) -> Option<String> {
    let name = certificate.subject().iter_common_name().last()?.as_str().ok()?;
    (!name.contains('\0')).then(|| name.to_owned())
}

/// The algorithm of a certificate's key, as an AlgorithmIdentifier without its head, and the key's bits.
pub(crate) fn public_key(der: &[u8]) -> Option<(&[u8], Vec<u8>)> {
    let info = parse(der)?.tbs_certificate.subject_pki;
    let (_, fields) = Any::from_der(info.raw).ok()?;
    let (_, algorithm) = Any::from_der(fields.data).ok()?;
    let key = info.subject_public_key;
    (key.unused_bits == 0).then(|| (algorithm.data, key.data.into_owned()))
}

/// `tls-server-end-point` of a certificate (RFC 5929, section 4.1): its hash by the hash of its signature,
/// SHA-256 in place of MD5 and SHA-1. `None` for signatures without one hash (Ed25519, RSA-PSS), for which
/// nothing is defined.
pub(crate) fn end_point(der: &[u8]) -> Option<Vec<u8>> {
    use x509_parser::oid_registry as known;
    const ECDSA_SHA1: Oid<'static> = oid!(1.2.840.10045.4.1);
    const ECDSA_SHA224: Oid<'static> = oid!(1.2.840.10045.4.3.1);
    let signature = parse(der)?.signature_algorithm.algorithm;
    let sha256 = [
        known::OID_PKCS1_MD5WITHRSAENC,
        known::OID_PKCS1_SHA1WITHRSA,
        known::OID_PKCS1_SHA256WITHRSA,
        known::OID_SIG_ECDSA_WITH_SHA256,
        ECDSA_SHA1,
    ];
    let algorithm = match &signature {
        found if sha256.contains(found) => &digest::SHA256,
        found if [known::OID_PKCS1_SHA224WITHRSA, ECDSA_SHA224].contains(found) => &digest::SHA224,
        found if [known::OID_PKCS1_SHA384WITHRSA, known::OID_SIG_ECDSA_WITH_SHA384].contains(found) => {
            &digest::SHA384
        }
        found if [known::OID_PKCS1_SHA512WITHRSA, known::OID_SIG_ECDSA_WITH_SHA512].contains(found) => {
            &digest::SHA512
        }
        _ => return None,
    };
    Some(digest::digest(algorithm, der).as_ref().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pem::certificates;
    use crate::self_made;

    #[test]
    fn a_certificates_subject_and_end_point_are_read() {
        let made = self_made(&["db.example.com".to_owned()], None).unwrap();
        let der = certificates(&made.identity.chain).unwrap().remove(0);
        let read = read(&der).unwrap();
        assert_eq!(read.common_name.as_deref(), Some("db.example.com"));
        assert!(read.has_alt_names);
        assert_eq!(end_point(&der).unwrap(), digest::digest(&digest::SHA256, &der).as_ref());
    }

    #[test]
    fn what_is_no_certificate_is_none_at_every_length() {
        let made = self_made(&["h".to_owned()], None).unwrap();
        let der = certificates(&made.identity.chain).unwrap().remove(0);
        for length in 0..der.len() {
            assert_eq!(read(&der[..length]), None, "{length}");
        }
        for at in 0..der.len() {
            let mut broken = der.to_vec();
            broken[at] ^= 0x81;
            let _ = (read(&broken), end_point(&broken), public_key(&broken));
        }
    }
}
