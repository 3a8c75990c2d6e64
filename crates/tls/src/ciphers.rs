//! Versions, ciphers and curves: from OpenSSL's names to rustls, and back for `Ssl_cipher`.

use crate::TlsError;
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::{CipherSuite, ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion};
use std::sync::Arc;

/// What a handshake may agree on. Empty text: everything that is safe.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// `tlsv1.2`, `tlsv1.3`, or both separated by commas; `secure`, `default` and `all` mean both.
    pub protocols: String,
    /// Ciphers of TLS 1.2 by OpenSSL's names, separated by colons or commas.
    pub ciphers: String,
    /// Ciphers of TLS 1.3, likewise.
    pub ciphers13: String,
    /// Curves by OpenSSL's names, likewise.
    pub curves: String,
}

/// OpenSSL's names. All that rustls has is safe; there is no RC4, 3DES, CBC or static RSA here.
const SUITES: [(CipherSuite, &str); 9] = [
    (CipherSuite::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384"),
    (CipherSuite::TLS13_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256"),
    (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256"),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "ECDHE-ECDSA-AES256-GCM-SHA384"),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "ECDHE-ECDSA-AES128-GCM-SHA256"),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-ECDSA-CHACHA20-POLY1305"),
    (CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, "ECDHE-RSA-AES256-GCM-SHA384"),
    (CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "ECDHE-RSA-AES128-GCM-SHA256"),
    (CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-RSA-CHACHA20-POLY1305"),
];

/// PgBouncer's and OpenSSL's words for a choice; all of them mean everything that is safe.
const ANY: [&str; 8] = ["", "default", "secure", "normal", "fast", "all", "high", "compat"];

/// OpenSSL's name of a cipher.
pub(crate) fn cipher_name(suite: CipherSuite) -> &'static str {
    SUITES.iter().find(|(known, _)| *known == suite).map_or("unknown", |(_, name)| name)
}

/// OpenSSL's name of a version.
pub(crate) fn version_name(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        ProtocolVersion::TLSv1_3 => "TLSv1.3",
        _ => "unknown",
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ':']).map(str::trim).filter(|word| !word.is_empty())
}

fn is_any(text: &str) -> bool {
    ANY.iter().any(|word| text.trim().eq_ignore_ascii_case(word))
}

/// Reads a list of versions.
///
/// # Errors
/// A sentence without its full stop.
pub fn check_protocols(text: &str) -> Result<(), String> {
    versions(text).map(drop)
}

/// Reads a list of ciphers of TLS 1.2 (or 1.3).
///
/// # Errors
/// A sentence without its full stop.
pub fn check_ciphers(text: &str, tls13: bool) -> Result<(), String> {
    suites(text, tls13).map(drop)
}

/// Reads a list of curves.
///
/// # Errors
/// A sentence without its full stop.
pub fn check_curves(text: &str) -> Result<(), String> {
    groups(text).map(drop)
}

fn versions(text: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let both = vec![&rustls::version::TLS13, &rustls::version::TLS12];
    if is_any(text) {
        return Ok(both);
    }
    let mut chosen: Vec<&'static SupportedProtocolVersion> = Vec::new();
    for word in words(text) {
        match word.to_ascii_lowercase().as_str() {
            "tlsv1.3" => chosen.push(&rustls::version::TLS13),
            "tlsv1.2" => chosen.push(&rustls::version::TLS12),
            "all" | "secure" | "default" | "legacy" => chosen.extend(&both),
            // Without it the safe ones are meant, as in PgBouncer's `!tlsv1.0`.
            "!tlsv1.0" | "!tlsv1.1" if chosen.is_empty() => chosen.extend(&both),
            "!tlsv1.0" | "!tlsv1.1" => {}
            "tlsv1.0" | "tlsv1.1" => {
                return Err(format!("has {word}, which is no longer safe: Weir has tlsv1.2 and tlsv1.3"));
            }
            _ => return Err(format!("has `{word}`; it is a list of tlsv1.2 and tlsv1.3, or `secure`")),
        }
    }
    Ok(both.into_iter().filter(|version| chosen.contains(version)).collect())
}

fn is_tls13(suite: &SupportedCipherSuite) -> bool {
    suite.tls13().is_some()
}

fn suites(text: &str, tls13: bool) -> Result<Vec<SupportedCipherSuite>, String> {
    let mut all: Vec<_> =
        aws_lc_rs::DEFAULT_CIPHER_SUITES.iter().copied().filter(|suite| is_tls13(suite) == tls13).collect();
    // First those whose hash is SHA-256, for which processors have instructions: with SHA-384 a handshake
    // costs 30 us more (measured), and AES-128 is as safe as the certificates are.
    all.sort_by_key(|suite| !cipher_name(suite.suite()).contains("128"));
    if is_any(text) {
        return Ok(all);
    }
    let mut chosen = Vec::new();
    for word in words(text) {
        if is_any(word) {
            chosen.extend(all.iter().copied());
            continue;
        }
        // What OpenSSL's lists take away or sort is not here to be taken away.
        if word.starts_with(['!', '-', '@']) {
            continue;
        }
        let suite = all.iter().find(|suite| cipher_name(suite.suite()).eq_ignore_ascii_case(word));
        let Some(suite) = suite else {
            let names: Vec<_> = all.iter().map(|suite| cipher_name(suite.suite())).collect();
            return Err(format!("has `{word}`, which Weir does not have: it has {}", names.join(", ")));
        };
        chosen.push(*suite);
    }
    if chosen.is_empty() {
        return Err("names no cipher that Weir has".to_owned());
    }
    Ok(chosen)
}

fn groups(text: &str) -> Result<Vec<&'static dyn SupportedKxGroup>, String> {
    if is_any(text) || text.trim().eq_ignore_ascii_case("auto") {
        return Ok(aws_lc_rs::DEFAULT_KX_GROUPS.to_vec());
    }
    let mut chosen: Vec<&'static dyn SupportedKxGroup> = Vec::new();
    for word in words(text) {
        chosen.push(match word.to_ascii_lowercase().as_str() {
            "x25519" => aws_lc_rs::kx_group::X25519,
            "prime256v1" | "p-256" | "secp256r1" => aws_lc_rs::kx_group::SECP256R1,
            "secp384r1" | "p-384" => aws_lc_rs::kx_group::SECP384R1,
            "x25519mlkem768" => aws_lc_rs::kx_group::X25519MLKEM768,
            _ => {
                return Err(format!(
                    "has `{word}`; Weir has X25519, prime256v1, secp384r1 and X25519MLKEM768, or `auto`"
                ));
            }
        });
    }
    Ok(chosen)
}

impl Bounds {
    /// The mathematics and the versions within these bounds.
    pub(crate) fn provider(
        &self,
    ) -> Result<(Arc<CryptoProvider>, Vec<&'static SupportedProtocolVersion>), TlsError> {
        let named = |name: &str, text: String| TlsError::Setting(format!("{name} {text}"));
        let versions = versions(&self.protocols).map_err(|text| named("tls_protocols", text))?;
        let mut cipher_suites = suites(&self.ciphers13, true).map_err(|text| named("tls13_ciphers", text))?;
        cipher_suites.extend(suites(&self.ciphers, false).map_err(|text| named("tls_ciphers", text))?);
        let kx_groups = groups(&self.curves).map_err(|text| named("tls_ecdhcurve", text))?;
        let provider = CryptoProvider { cipher_suites, kx_groups, ..aws_lc_rs::default_provider() };
        Ok((Arc::new(provider), versions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cipher_has_openssls_name() {
        for suite in aws_lc_rs::ALL_CIPHER_SUITES {
            assert_ne!(cipher_name(suite.suite()), "unknown", "{suite:?}");
        }
    }

    #[test]
    fn what_costs_least_is_first_unless_another_order_is_given() {
        let name = |text, tls13| cipher_name(suites(text, tls13).unwrap()[0].suite());
        assert_eq!(name("", true), "TLS_AES_128_GCM_SHA256");
        assert_eq!(name("", false), "ECDHE-ECDSA-AES128-GCM-SHA256");
        let given = "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256";
        assert_eq!(name(given, true), "TLS_AES_256_GCM_SHA384");
    }

    #[test]
    fn lists_are_read_as_pgbouncer_reads_them() {
        assert_eq!(versions("secure").unwrap().len(), 2);
        assert_eq!(versions("tlsv1.3").unwrap(), [&rustls::version::TLS13]);
        assert_eq!(versions("tlsv1.2,tlsv1.3").unwrap().len(), 2);
        assert!(check_protocols("tlsv1.1").unwrap_err().contains("no longer safe"));
        assert!(check_ciphers("HIGH:!aNULL", false).is_ok());
        assert_eq!(suites("ECDHE-RSA-AES128-GCM-SHA256", false).unwrap().len(), 1);
        assert!(check_ciphers("AES128-SHA", false).unwrap_err().contains("does not have"));
        assert!(check_ciphers("TLS_AES_128_GCM_SHA256", true).is_ok());
        assert!(check_curves("prime256v1:X25519").is_ok() && check_curves("secp521r1").is_err());
    }
}
