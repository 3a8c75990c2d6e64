//! The SQL dialect of a text, as far as the lexer's rules depend on it.

/// The rules by which a text is cut into words.
///
/// The session's settings decide: a front follows them and makes a new scanner for each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL.
    Postgres {
        /// `standard_conforming_strings`: a backslash in `'...'` is an ordinary character.
        standard_conforming_strings: bool,
        /// `client_encoding`.
        encoding: Encoding,
    },
    /// MySQL or MariaDB.
    MySql {
        /// `sql_mode` has ANSI_QUOTES: `"..."` is an identifier.
        ansi_quotes: bool,
        /// `sql_mode` has NO_BACKSLASH_ESCAPES: a backslash in a string is an ordinary character.
        no_backslash_escapes: bool,
        /// The server is MariaDB: `/*M! */` is code, and some statements exist only there.
        mariadb: bool,
        /// `character_set_client`.
        encoding: Encoding,
    },
}

/// What the client's character set means for finding quotes and blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// UTF-8 or ASCII.
    #[default]
    Utf8,
    /// One byte a character (latin1, cp1251, koi8r), or several that are all above 127 (EUC).
    /// MySQL takes some bytes above 127 for blanks in these; a text that has such bytes outside
    /// quotes is doubtful there.
    HighBytes,
    /// Wide characters may end in an ASCII byte such as a backslash: SJIS, CP932, BIG5, GBK, GB18030, UHC,
    /// JOHAB. A text in which that could matter is doubtful.
    AsciiUnsafe,
    /// Not known, nor is what a backslash and a double quote mean: a text with one of these, or with a byte
    /// above 127, is doubtful.
    Unknown,
}

impl Dialect {
    /// PostgreSQL as it comes: standard strings, UTF-8.
    pub const POSTGRES: Dialect =
        Dialect::Postgres { standard_conforming_strings: true, encoding: Encoding::Utf8 };
    /// MySQL as it comes.
    pub const MYSQL: Dialect = Dialect::MySql {
        ansi_quotes: false,
        no_backslash_escapes: false,
        mariadb: false,
        encoding: Encoding::Utf8,
    };
    /// MariaDB as it comes.
    pub const MARIADB: Dialect = Dialect::MySql {
        ansi_quotes: false,
        no_backslash_escapes: false,
        mariadb: true,
        encoding: Encoding::Utf8,
    };

    /// The same, of texts in this character set.
    #[must_use]
    pub fn with(mut self, of_texts: Encoding) -> Dialect {
        match &mut self {
            Dialect::Postgres { encoding, .. } | Dialect::MySql { encoding, .. } => *encoding = of_texts,
        }
        self
    }

    /// Either of MySQL and MariaDB.
    #[inline]
    pub fn is_mysql(self) -> bool {
        matches!(self, Dialect::MySql { .. })
    }
}
