//! Properties of every text.

use proptest::prelude::*;
use weir_sql::catalogue::{Catalogue, Knowledge};
use weir_sql::{Class, Dialect, Encoding, Memo, Scanner, Uses, Verb, classify, classify_in};
use weir_wire::Pin;

const DIALECTS: &[Dialect] = &[
    Dialect::POSTGRES,
    Dialect::Postgres { standard_conforming_strings: false, encoding: Encoding::AsciiUnsafe },
    Dialect::MYSQL,
    Dialect::MARIADB,
    Dialect::MySql {
        ansi_quotes: true,
        no_backslash_escapes: false,
        mariadb: false,
        encoding: Encoding::HighBytes,
    },
    Dialect::MySql {
        ansi_quotes: false,
        no_backslash_escapes: true,
        mariadb: true,
        encoding: Encoding::AsciiUnsafe,
    },
];

/// The class of a text that arrives in pieces.
fn in_pieces<'a>(dialect: Dialect, pieces: impl Iterator<Item = &'a [u8]>) -> Class {
    let mut scanner = Scanner::with_fingerprint(dialect);
    for piece in pieces {
        scanner.feed(piece);
    }
    scanner.finish()
}

/// Pieces of statements, put together in any order.
const SCRAPS: &[&str] = &[
    "SELECT",
    "select",
    " ",
    " ",
    " ",
    "\n",
    ";",
    ",",
    "(",
    ")",
    "()",
    ".",
    "=",
    ":=",
    "*",
    "-",
    "--",
    "-- ",
    "#",
    "/*",
    "*/",
    "/*!",
    "/*!40101",
    "/*!99999 ",
    "/*M!",
    "/*+",
    "'",
    "''",
    "\"",
    "`",
    "\\",
    "$",
    "$$",
    "$a$",
    "$1",
    "@",
    "@@",
    "@a",
    "?",
    ":",
    "::",
    "E'",
    "U&'",
    "U&\"",
    "x'",
    "1",
    "0xFF",
    "1e5",
    "FROM",
    "INTO",
    "t",
    "a_b",
    "é",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "TO",
    "SET",
    "SESSION",
    "LOCAL",
    "GLOBAL",
    "autocommit",
    "NAMES",
    "ROLE",
    "RESET",
    "ALL",
    "CREATE",
    "TEMP",
    "TABLE",
    "PROCEDURE",
    "FUNCTION",
    "ATOMIC",
    "END",
    "CASE",
    "IF",
    "LOOP",
    "WITH",
    "AS",
    "HOLD",
    "DECLARE",
    "PREPARE",
    "EXECUTE",
    "KILL",
    "QUERY",
    "USE",
    "LOCK",
    "TABLES",
    "UNLOCK",
    "GET_LOCK(",
    "CONNECTION_ID()",
    "LAST_INSERT_ID()",
    "set_config('a', 'b', ",
    "true",
    "pg_temp",
    "pg_catalog",
    "COPY",
    "STDIN",
    "INSERT",
    "UPDATE",
    "DELETE",
    "VALUES",
    "AND",
    "CHAIN",
    "STATEMENT",
    "FOR",
    "XA",
    "START",
    "TRANSACTION",
    "a_very_long_name_that_goes_on_and_on_until_it_is_longer_than_any_name_may_be",
];

fn scraps() -> impl Strategy<Value = Vec<u8>> {
    let scrap = prop_oneof![
        20 => prop::sample::select(SCRAPS).prop_map(|scrap| scrap.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(scrap, 0..40).prop_map(|scraps| scraps.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn a_text_in_pieces_is_the_same_text(text in scraps(), cuts in prop::collection::vec(0usize..200, 0..6)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.push(0);
        cuts.push(text.len());
        cuts.sort_unstable();
        for &dialect in DIALECTS {
            let whole = in_pieces(dialect, std::iter::once(text.as_slice()));
            let pieces = in_pieces(dialect, cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]));
            prop_assert_eq!(&whole, &pieces, "{:?}", dialect);
            let bytes = in_pieces(dialect, text.chunks(1));
            prop_assert_eq!(&whole, &bytes, "{:?}", dialect);
        }
    }

    #[test]
    fn other_numbers_make_no_other_text(
        head in prop::sample::select(&["SELECT ", "INSERT INTO t VALUES (", "UPDATE t SET a = ", "DELETE FROM t WHERE a = ", ""][..]),
        scraps in prop::collection::vec(prop::option::weighted(0.7, prop::sample::select(SCRAPS)), 0..20),
        numbers in prop::collection::vec(prop_oneof![0..3_u64, any::<u64>()], 40),
    ) {
        // `None` is a number. Which one it is differs from one text to the next.
        let text = |from: usize| {
            let mut numbers = numbers.iter().skip(from);
            let mut number = || numbers.next().map_or_else(|| "7".to_owned(), u64::to_string);
            let words: Vec<String> = scraps.iter().map(|scrap| scrap.map_or_else(&mut number, str::to_owned)).collect();
            format!("{head}{}", words.join(" "))
        };
        for &dialect in DIALECTS {
            let knowledge = Knowledge::settled(Catalogue::default());
            let mut memo = Memo::default();
            for from in 0..5 {
                let text = text(from);
                let (class, state) = classify_in(dialect, text.as_bytes(), knowledge.proof());
                match memo.find(dialect, &knowledge, text.as_bytes()) {
                    Some(known) => prop_assert_eq!(known, (class, state), "{:?} {}", dialect, text),
                    None if class.is_of_any_numbers() => memo.keep(dialect, &knowledge, state, || class),
                    None => {}
                }
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(text in prop::collection::vec(any::<u8>(), 0..300)) {
        for &dialect in DIALECTS {
            let class = classify(dialect, &text);
            prop_assert!(!class.shareable || class.statements == 1);
            prop_assert!(!class.shareable || class.pins.is_empty());
            prop_assert!(!class.doubtful || class.pins.contains(Pin::Unrecognised));
        }
    }

    #[test]
    fn what_follows_a_shareable_statement_is_always_seen(text in scraps()) {
        // If the text is one harmless statement, a BEGIN behind it must come to light.
        for &dialect in DIALECTS {
            if classify(dialect, &text).shareable {
                let mut longer = text.clone();
                longer.extend_from_slice(b"\n;BEGIN");
                let class = classify(dialect, &longer);
                prop_assert!(class.uses.contains(Uses::TRANSACTION), "{:?}", dialect);
                prop_assert_eq!(class.statements, 2);
            }
        }
    }

    #[test]
    fn spans_lie_in_the_text(text in scraps()) {
        for &dialect in DIALECTS {
            let class = classify(dialect, &text);
            for call in class.calls() {
                prop_assert!(call.span.of(&text).is_some_and(|call| !call.is_empty()));
            }
            for assignment in class.set().into_iter().flat_map(|set| &set.assignments) {
                prop_assert!(assignment.value.of(&text).is_some());
            }
        }
    }
}

fn fingerprint(text: &str) -> u64 {
    in_pieces(Dialect::POSTGRES, std::iter::once(text.as_bytes())).fingerprint
}

#[test]
fn fingerprints_forget_values_blanks_and_case() {
    let same = [
        ("SELECT * FROM t WHERE id = 1", "select  *\nfrom T where ID=$1 -- x"),
        ("SELECT * FROM t WHERE a = 'x'", "SELECT * FROM t WHERE a = 'it''s'"),
        ("SELECT * FROM t WHERE a IN (1, 2, 3)", "SELECT * FROM t WHERE a IN (1)"),
        ("SELECT * FROM t WHERE a IN (1, $2, 'x')", "SELECT * FROM t WHERE a IN (5, 6)"),
        ("INSERT INTO t (a, b) VALUES (1, 2)", "INSERT INTO t (a, b) VALUES (1, 2), (3, 4), (5, 6);"),
        ("SELECT 1", "SELECT 2;;"),
    ];
    for (one, other) in same {
        assert_eq!(fingerprint(one), fingerprint(other), "{one} | {other}");
        assert_ne!(fingerprint(one), 0);
    }
}

#[test]
fn fingerprints_tell_statements_apart() {
    let texts = [
        "SELECT * FROM t WHERE id = 1",
        "SELECT * FROM t WHERE id > 1",
        "SELECT * FROM t WHERE id - 1",
        "SELECT * FROM t WHERE id / 1",
        "SELECT * FROM u WHERE id = 1",
        "SELECT * FROM \"T\" WHERE id = 1",
        "SELECT * FROM t WHERE id = (1)",
        "SELECT * FROM t WHERE id = (1, a)",
        "SELECT * FROM t WHERE id = (1), (a)",
        "SELECT * FROM t WHERE id = (1), (2, a)",
        "SELECT * FROM t WHERE id = (1), (2,",
        "SELECT * FROM t WHERE id = (1), (2",
        "SELECT * FROM t WHERE id = (1), (",
        "SELECT * FROM t WHERE id = (1),",
        "SELECT * FROM t WHERE id = (1,",
        "SELECT * FROM t WHERE id = (a)",
        "SELECT * FROM t WHERE id = 1; SELECT 1",
        "SELECT 1; SELECT 1",
        "SELECT 1 SELECT 1",
        "SELECT ab, c",
        "SELECT a, bc",
        "SELECT abc",
        "",
    ];
    let mut hashes: Vec<u64> = texts.iter().map(|text| fingerprint(text)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), texts.len());
}

#[test]
fn without_being_asked_there_is_no_fingerprint() {
    let mut scanner = Scanner::new(Dialect::POSTGRES);
    scanner.feed(b"SELECT 1");
    assert_eq!(scanner.finish().fingerprint, 0);
}

#[test]
fn a_very_long_statement_needs_no_memory_of_its_own() {
    let mut scanner = Scanner::new(Dialect::MYSQL);
    scanner.feed(b"INSERT INTO t (a) VALUES ");
    for _ in 0..20_000 {
        scanner.feed(b"('some text; BEGIN', 12345, \"more\"), ");
    }
    scanner.feed(b"(1)");
    let class = scanner.finish();
    assert_eq!((class.verb, class.statements, class.shareable), (Verb::Insert, 1, true));
}

#[test]
fn the_scanner_is_small() {
    // It lives as long as a text that is read in parts.
    assert!(size_of::<Scanner>() <= 528, "{}", size_of::<Scanner>());
}
