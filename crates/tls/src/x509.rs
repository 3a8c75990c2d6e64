//! The little of X.509 that rustls does not tell: a certificate's subject, its dates, and by which hash it is
//! signed.
//!
//! RFC 5280, section 4.1, in DER. The certificates come from the peer and are verified elsewhere: whatever is
//! not understood is `None`.

use aws_lc_rs::digest;

/// Takes one DER value off the front: its tag and its contents.
pub(crate) fn take<'a>(input: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if bytes.is_empty() || bytes.len() > 4 {
            return None;
        }
        (bytes.iter().fold(0, |n, &b| n << 8 | usize::from(b)), rest)
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    *input = rest;
    Some((tag, contents))
}

pub(crate) fn expect<'a>(input: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    take(input).and_then(|(found, contents)| (found == tag).then_some(contents))
}

pub(crate) const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const BIT_STRING: u8 = 0x03;
const OID: u8 = 0x06;
/// id-at-commonName, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// id-ce-subjectAltName, 2.5.29.17.
const ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];

/// What is read of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    /// The last common name of the subject, as PostgreSQL and PgBouncer take it.
    pub common_name: Option<String>,
    /// It says for which hosts it is, so that its common name does not.
    pub has_alt_names: bool,
    /// Object identifier of the algorithm it is signed by.
    signature: Vec<u8>,
}

/// Reads a certificate.
pub(crate) fn read(der: &[u8]) -> Option<Read> {
    let mut input = der;
    let mut certificate = expect(&mut input, SEQUENCE)?;
    let mut tbs = expect(&mut certificate, SEQUENCE)?;
    let mut algorithm = expect(&mut certificate, SEQUENCE)?;
    let signature = expect(&mut algorithm, OID)?.to_vec();
    skip_to_subject(&mut tbs)?;
    let subject = expect(&mut tbs, SEQUENCE)?;
    let mut has_alt_names = false;
    while let Some((tag, contents)) = take(&mut tbs) {
        if tag == 0xa3 {
            let mut wrapped = contents;
            let mut extensions = expect(&mut wrapped, SEQUENCE)?;
            while let Some(mut extension) = expect(&mut extensions, SEQUENCE) {
                has_alt_names |= expect(&mut extension, OID)? == ALT_NAME;
            }
        }
    }
    Some(Read { common_name: common_name(subject), has_alt_names, signature })
}

/// version [0], serialNumber, signature, issuer, validity; then come subject, subjectPublicKeyInfo,
/// extensions [3].
fn skip_to_subject(tbs: &mut &[u8]) -> Option<()> {
    if tbs.first() == Some(&0xa0) {
        take(tbs)?;
    }
    take(tbs)?;
    (0..3).try_for_each(|_| expect(tbs, SEQUENCE).map(|_| ()))
}

/// The algorithm of a certificate's key, as an AlgorithmIdentifier without its head, and the key's bits.
pub(crate) fn public_key(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut certificate = expect(&mut { der }, SEQUENCE)?;
    let mut tbs = expect(&mut certificate, SEQUENCE)?;
    skip_to_subject(&mut tbs)?;
    expect(&mut tbs, SEQUENCE)?;
    let mut info = expect(&mut tbs, SEQUENCE)?;
    let algorithm = expect(&mut info, SEQUENCE)?;
    // The first byte says how many bits at the end are not used.
    let bits = expect(&mut info, BIT_STRING)?.strip_prefix(&[0])?;
    Some((algorithm, bits))
}

fn common_name(mut subject: &[u8]) -> Option<String> {
    let mut found = None;
    while let Some(mut relative) = expect(&mut subject, SET) {
        while let Some(mut attribute) = expect(&mut relative, SEQUENCE) {
            if expect(&mut attribute, OID)? == COMMON_NAME {
                found = take(&mut attribute).and_then(|(_, value)| text(value));
            }
        }
    }
    found
}

/// A name with a NUL in it is one name to one reader and another to the next.
fn text(value: &[u8]) -> Option<String> {
    std::str::from_utf8(value).ok().filter(|text| !text.contains('\0')).map(str::to_owned)
}

/// `tls-server-end-point` of a certificate (RFC 5929, section 4.1): its hash by the hash of its signature,
/// SHA-256 in place of MD5 and SHA-1. `None` for signatures without one hash (Ed25519, RSA-PSS), for which
/// nothing is defined.
pub(crate) fn end_point(der: &[u8]) -> Option<Vec<u8>> {
    /// sha1WithRSAEncryption and its kin are 1.2.840.113549.1.1.N, ECDSA's 1.2.840.10045.4.3.N.
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];
    let signature = read(der)?.signature;
    let algorithm = match signature.split_last()? {
        (4 | 5 | 11, RSA) | (2, ECDSA) => &digest::SHA256,
        (12, RSA) | (3, ECDSA) => &digest::SHA384,
        (13, RSA) | (4, ECDSA) => &digest::SHA512,
        (14, RSA) | (1, ECDSA) => &digest::SHA224,
        _ if signature == ECDSA_SHA1 => &digest::SHA256,
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
