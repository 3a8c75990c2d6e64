//! The scanner.

use weir_sql::{Class, Dialect, Encoding, Scanner, classify};
use weir_wire::Pin;

/// Any text as PostgreSQL; the first byte chooses the session's settings.
pub fn postgres(data: &[u8]) {
    let Some((&choice, text)) = data.split_first() else { return };
    let dialect =
        Dialect::Postgres { standard_conforming_strings: choice & 1 == 0, encoding: encoding(choice) };
    scan(dialect, choice, text);
}

/// Any text as MySQL or MariaDB; the first byte chooses the session's settings.
pub fn mysql(data: &[u8]) {
    let Some((&choice, text)) = data.split_first() else { return };
    let dialect = Dialect::MySql {
        ansi_quotes: choice & 1 != 0,
        no_backslash_escapes: choice & 2 != 0,
        mariadb: choice & 4 != 0,
        encoding: encoding(choice),
    };
    scan(dialect, choice, text);
}

fn encoding(choice: u8) -> Encoding {
    match choice >> 6 {
        0 | 1 => Encoding::Utf8,
        2 => Encoding::HighBytes,
        _ => Encoding::AsciiUnsafe,
    }
}

fn in_pieces(dialect: Dialect, text: &[u8], size: usize) -> Class {
    let mut scanner = Scanner::with_fingerprint(dialect);
    for piece in text.chunks(size.max(1)) {
        scanner.feed(piece);
    }
    scanner.finish()
}

fn scan(dialect: Dialect, choice: u8, text: &[u8]) {
    let whole = in_pieces(dialect, text, text.len());
    assert_eq!(whole, in_pieces(dialect, text, 1 + usize::from(choice >> 3 & 7)));
    assert!(!whole.shareable || (whole.statements == 1 && whole.pins.is_empty()));
    assert!(!whole.doubtful || whole.pins.contains(Pin::Unrecognised));
    for call in whole.calls() {
        assert!(call.span.of(text).is_some_and(|span| !span.is_empty()));
    }
    if whole.shareable {
        // Nothing can hide behind what was called harmless.
        let longer = [text, b"\n;COMMIT"].concat();
        assert_eq!(classify(dialect, &longer).statements, 2);
    }
}
