//! What a byte means outside quotes and comments.

/// Classes of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Byte {
    /// Ends a word and means nothing.
    Space,
    /// Begins a word.
    Letter,
    Digit,
    /// `'`
    Quote,
    /// `"`
    DoubleQuote,
    /// MySQL's backtick.
    Backtick,
    Dash,
    Slash,
    Star,
    /// `$` in PostgreSQL.
    Dollar,
    /// `#` in MySQL.
    Hash,
    /// `@` in MySQL.
    At,
    Colon,
    /// `?` in MySQL.
    Question,
    Open,
    Close,
    Comma,
    Dot,
    Semicolon,
    Equals,
    /// Any other printable character.
    Sign,
    /// A control character no grammar has a use for.
    Control,
}

/// `Byte` of each byte, and whether a word or number goes on with it.
pub(super) struct Table {
    pub(super) class: [Byte; 256],
    pub(super) in_word: [bool; 256],
}

const fn build(mysql: bool) -> Table {
    let mut class = [Byte::Sign; 256];
    let mut in_word = [false; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        class[at] = match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => Byte::Space,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80..=0xff => Byte::Letter,
            b'0'..=b'9' => Byte::Digit,
            b'\'' => Byte::Quote,
            b'"' => Byte::DoubleQuote,
            b'`' if mysql => Byte::Backtick,
            b'-' => Byte::Dash,
            b'/' => Byte::Slash,
            b'*' => Byte::Star,
            b'$' if mysql => Byte::Letter,
            b'$' => Byte::Dollar,
            b'#' if mysql => Byte::Hash,
            b'@' if mysql => Byte::At,
            b':' => Byte::Colon,
            b'?' if mysql => Byte::Question,
            b'(' => Byte::Open,
            b')' => Byte::Close,
            b',' => Byte::Comma,
            b'.' => Byte::Dot,
            b';' => Byte::Semicolon,
            b'=' => Byte::Equals,
            0..=0x08 | 0x0e..=0x1f | 0x7f => Byte::Control,
            _ => Byte::Sign,
        };
        in_word[at] = matches!(class[at], Byte::Letter | Byte::Digit) || byte == b'$';
        at += 1;
    }
    Table { class, in_word }
}

/// PostgreSQL (`scan.l`: ident_start, ident_cont, space, self).
pub(super) static POSTGRES: Table = build(false);
/// MySQL and MariaDB (the state maps of their character sets).
pub(super) static MYSQL: Table = build(true);

/// The byte can stand in an unquoted `@name`.
#[inline]
pub(super) fn in_variable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'$' | 0x80..)
}

/// The byte can begin a dollar quote's tag; digits only go on in it (`scan.l`: dolq_start, dolq_cont).
#[inline]
pub(super) fn begins_tag(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | 0x80..)
}

/// MySQL reads `--` as a comment only before one of these.
#[inline]
pub(super) fn opens_dash_comment(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f
}

/// An ASCII byte with which a wide character may end and which means something to the lexer or begins nothing
/// that could: `@`, `[` to backtick, `{` to `~`.
#[inline]
pub(super) fn is_unsafe_tail(byte: u8) -> bool {
    matches!(byte, b'@' | b'['..=b'`' | b'{'..=b'~')
}
