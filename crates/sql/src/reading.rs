//! Settings of PostgreSQL that bear on how literals are read, which is done once, when a statement is parsed.
//! (What else bears on a statement is looked at again when it runs: `search_path`.)

/// All of them.
pub const READ_BY: [&str; 11] = [
    "array_nulls",
    "backslash_quote",
    "client_encoding",
    "datestyle",
    "intervalstyle",
    "lc_monetary",
    "standard_conforming_strings",
    "timezone",
    "timezone_abbreviations",
    "transform_null_equals",
    "xmloption",
];

/// It is one of these, in whatever case.
pub fn decides_reading(name: &str) -> bool {
    READ_BY.iter().any(|known| known.eq_ignore_ascii_case(name))
}
