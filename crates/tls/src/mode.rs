//! What must be encrypted and verified, with libpq's and PgBouncer's names.

/// `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum SslMode {
    /// Never TLS.
    #[default]
    Disable,
    /// In front: if the client asks. Behind: only if the server refuses to go on without.
    Allow,
    /// In front: if the client asks. Behind: if the server has it.
    Prefer,
    /// TLS or nothing; the peer's certificate is not looked at.
    Require,
    /// TLS, and the peer's certificate is signed by a CA that is trusted.
    VerifyCa,
    /// TLS, a trusted certificate, and it is for the host that was asked for.
    VerifyFull,
}

impl SslMode {
    /// PostgreSQL's words.
    pub const NAMES: [&'static str; 6] =
        ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];
    const ALL: [SslMode; 6] = [
        SslMode::Disable,
        SslMode::Allow,
        SslMode::Prefer,
        SslMode::Require,
        SslMode::VerifyCa,
        SslMode::VerifyFull,
    ];
    /// MySQL's words (`ssl-mode`).
    const MYSQL: [(&'static str, SslMode); 5] = [
        ("DISABLED", SslMode::Disable),
        ("PREFERRED", SslMode::Prefer),
        ("REQUIRED", SslMode::Require),
        ("VERIFY_CA", SslMode::VerifyCa),
        ("VERIFY_IDENTITY", SslMode::VerifyFull),
    ];

    /// libpq's word.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The mode of one of PostgreSQL's or MySQL's words.
    pub fn from_name(name: &str) -> Option<SslMode> {
        let postgres = Self::ALL.into_iter().find(|mode| mode.name() == name);
        postgres.or_else(|| {
            Self::MYSQL.into_iter().find(|(word, _)| word.eq_ignore_ascii_case(name)).map(|(_, mode)| mode)
        })
    }

    /// Nothing goes in clear.
    pub fn is_required(self) -> bool {
        self >= SslMode::Require
    }

    /// The peer's certificate is verified.
    pub fn verifies(self) -> bool {
        self >= SslMode::VerifyCa
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_words_are_known() {
        for mode in SslMode::ALL {
            assert_eq!(SslMode::from_name(mode.name()), Some(mode));
        }
        assert_eq!(SslMode::from_name("VERIFY_IDENTITY"), Some(SslMode::VerifyFull));
        assert_eq!(SslMode::from_name("preferred"), Some(SslMode::Prefer));
        assert_eq!(SslMode::from_name("on"), None);
        assert!(SslMode::Require.is_required() && !SslMode::Prefer.is_required());
    }
}
