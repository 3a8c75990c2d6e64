//! Capability flags (MySQL protocol, "Capabilities Flags"). Each side of Weir has its own set.

/// A set of capability flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(pub u64);

macro_rules! flags {
    ($($(#[doc = $doc:literal])* $name:ident = $bit:literal;)*) => {
        impl Capabilities { $($(#[doc = $doc])* pub const $name: Capabilities = Capabilities(1 << $bit);)* }
    };
}

flags! {
    /// MySQL; MariaDB's servers and clients clear it to say that they have more flags of their own.
    LONG_PASSWORD = 0;
    /// Affected rows are those found, not those changed.
    FOUND_ROWS = 1;
    /// Longer column flags.
    LONG_FLAG = 2;
    /// The login names a schema.
    CONNECT_WITH_DB = 3;
    /// zlib compression.
    COMPRESS = 5;
    /// `LOAD DATA LOCAL`.
    LOCAL_FILES = 7;
    /// Blanks between a function's name and its parenthesis.
    IGNORE_SPACE = 8;
    /// The protocol of MySQL 4.1. Weir speaks no older one.
    PROTOCOL_41 = 9;
    /// interactive_timeout instead of wait_timeout.
    INTERACTIVE = 10;
    /// TLS.
    SSL = 11;
    /// Status flags in OK packets.
    TRANSACTIONS = 13;
    /// The answer to the scramble is the one of 4.1.
    SECURE_CONNECTION = 15;
    /// Several statements in one text.
    MULTI_STATEMENTS = 16;
    /// Several results of one text.
    MULTI_RESULTS = 17;
    /// Several results of a prepared statement.
    PS_MULTI_RESULTS = 18;
    /// Authentication methods have names.
    PLUGIN_AUTH = 19;
    /// The login carries attributes.
    CONNECT_ATTRS = 20;
    /// The answer to the scramble may be longer than 250 bytes.
    PLUGIN_AUTH_LENENC = 21;
    /// The client can be told that its password has expired.
    CAN_HANDLE_EXPIRED_PASSWORDS = 22;
    /// OK packets say what changed in the session.
    SESSION_TRACK = 23;
    /// Rows end with an OK packet and no EOF stands behind column definitions.
    DEPRECATE_EOF = 24;
    /// Compression by zstd; the login ends with its level.
    ZSTD_COMPRESSION = 26;
    /// MariaDB: column definitions say what a type is made from (JSON, UUID, INET6, POINT).
    EXTENDED_METADATA = 35;
}

/// Where MariaDB's flags stand in a variant, among MySQL's that are never part of one.
const VARIANT_SHIFT: u32 = 16;

impl Capabilities {
    /// What Weir offers to clients, as far as their servers have it (TLS whatever the servers have, by
    /// settings). No optional metadata, no query attributes; of MariaDB's own only the metadata.
    pub const OFFERED: Capabilities = Capabilities::all(&[
        Capabilities::LONG_PASSWORD,
        Capabilities::FOUND_ROWS,
        Capabilities::LONG_FLAG,
        Capabilities::CONNECT_WITH_DB,
        Capabilities::COMPRESS,
        Capabilities::LOCAL_FILES,
        Capabilities::IGNORE_SPACE,
        Capabilities::PROTOCOL_41,
        Capabilities::INTERACTIVE,
        Capabilities::TRANSACTIONS,
        Capabilities::SECURE_CONNECTION,
        Capabilities::MULTI_STATEMENTS,
        Capabilities::MULTI_RESULTS,
        Capabilities::PS_MULTI_RESULTS,
        Capabilities::PLUGIN_AUTH,
        Capabilities::CONNECT_ATTRS,
        Capabilities::PLUGIN_AUTH_LENENC,
        Capabilities::SESSION_TRACK,
        Capabilities::DEPRECATE_EOF,
        Capabilities::ZSTD_COMPRESSION,
        Capabilities::EXTENDED_METADATA,
    ]);

    /// What Weir asks of every server, as far as the server has it, beside the flags of the clients it is
    /// for ([`Capabilities::of_variant`]).
    pub const WANTED: Capabilities = Capabilities::all(&[
        Capabilities::LONG_PASSWORD,
        Capabilities::LONG_FLAG,
        Capabilities::LOCAL_FILES,
        Capabilities::PROTOCOL_41,
        Capabilities::TRANSACTIONS,
        Capabilities::SECURE_CONNECTION,
        Capabilities::MULTI_STATEMENTS,
        Capabilities::PLUGIN_AUTH,
        Capabilities::CONNECT_ATTRS,
        Capabilities::PLUGIN_AUTH_LENENC,
        Capabilities::SESSION_TRACK,
        Capabilities::DEPRECATE_EOF,
    ]);

    /// What a client chose and a server cannot change after its login: part of a pool's identity.
    const VARIANT: Capabilities = Capabilities::all(&[
        Capabilities::FOUND_ROWS,
        Capabilities::IGNORE_SPACE,
        Capabilities::INTERACTIVE,
        Capabilities::EXTENDED_METADATA,
        Capabilities::MULTI_RESULTS,
        Capabilities::PS_MULTI_RESULTS,
    ]);

    /// Flags of a variant that nearly every client has: its number is 0 with them.
    const USUAL: Capabilities =
        Capabilities::all(&[Capabilities::MULTI_RESULTS, Capabilities::PS_MULTI_RESULTS]);

    /// MariaDB's flags start here: those of MySQL are all below.
    const MARIADB_SHIFT: u32 = 32;

    /// The flags of this set that make servers different, in one number: MariaDB's, of which there are few,
    /// in place of those of MySQL that are never among them. 0 is what Weir's own connections have.
    pub(crate) fn variant(self) -> u32 {
        let flags = self.and(Capabilities::VARIANT).0 ^ Capabilities::USUAL.0;
        flags as u32 | ((flags >> Capabilities::MARIADB_SHIFT) as u32) << VARIANT_SHIFT
    }

    /// The flags that [`Capabilities::variant`] made this number of.
    pub(crate) fn of_variant(variant: u32) -> Capabilities {
        let own = u64::from(variant >> VARIANT_SHIFT) << Capabilities::MARIADB_SHIFT;
        Capabilities((u64::from(variant) | own) ^ Capabilities::USUAL.0).and(Capabilities::VARIANT)
    }

    /// MySQL's flags and, from a peer whose flags say that it is MariaDB's, the further ones.
    pub(crate) fn with_mariadb(low: u32, own: u32) -> Capabilities {
        let low = Capabilities(u64::from(low));
        let own = if low.has(Capabilities::LONG_PASSWORD) { 0 } else { own };
        Capabilities(low.0 | u64::from(own) << Capabilities::MARIADB_SHIFT)
    }

    const fn all(flags: &[Capabilities]) -> Capabilities {
        let mut bits = 0;
        let mut i = 0;
        while i < flags.len() {
            bits |= flags[i].0;
            i += 1;
        }
        Capabilities(bits)
    }

    /// All of `flags` are in the set.
    #[inline]
    pub const fn has(self, flags: Capabilities) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Flags in both sets.
    #[inline]
    pub const fn and(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 & other.0)
    }

    /// Flags in either set.
    #[inline]
    pub const fn or(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 | other.0)
    }

    /// Flags of this set that are not in the other.
    #[inline]
    pub const fn without(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 & !other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_there_and_back() {
        let all = [
            Capabilities::FOUND_ROWS,
            Capabilities::IGNORE_SPACE,
            Capabilities::INTERACTIVE,
            Capabilities::EXTENDED_METADATA,
            Capabilities::MULTI_RESULTS,
            Capabilities::PS_MULTI_RESULTS,
        ];
        for bits in 0..64 {
            let chosen = all.iter().enumerate().filter(|(i, _)| bits & (1 << i) != 0);
            let set = chosen.fold(Capabilities::default(), |set, (_, flag)| set.or(*flag));
            assert_eq!(Capabilities::of_variant(set.variant()), set);
            assert_eq!(Capabilities::of_variant(set.or(Capabilities::WANTED).variant()), set);
        }
    }
}
