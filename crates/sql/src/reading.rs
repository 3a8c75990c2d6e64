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

/// Those by which the bytes of a text become literals. That is done once: where PostgreSQL analyses a
/// statement again, under another `search_path`, it does not go back to the text.
const TEXT_READ_BY: [&str; 3] = ["backslash_quote", "client_encoding", "standard_conforming_strings"];

/// It is one of those, in whatever case.
pub fn decides_text(name: &str) -> bool {
    TEXT_READ_BY.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// It is one of [`READ_BY`], in whatever case.
pub fn decides_reading(name: &str) -> bool {
    READ_BY.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Settings that change values of built-in functions which PostgreSQL takes to be the same for ever: the
/// planner writes such values into plans.
const FOLDED_BY: [&str; 4] = ["bytea_output", "extra_float_digits", "quote_all_identifiers", "xmlbinary"];

/// Who a session acts as. Some rights are looked at when a statement is read or planned, and not again when
/// it runs: that to use a schema, and to call a function that is written into the plan.
const ACTED_BY: [&str; 2] = ["role", "session_authorization"];

/// A plan may hold something of it that is not looked at again when it runs; in whatever case.
pub fn decides_plans(name: &str) -> bool {
    let is_one_of = |all: &[&str]| all.iter().any(|known| known.eq_ignore_ascii_case(name));
    decides_reading(name) || is_one_of(&FOLDED_BY) || is_one_of(&ACTED_BY)
}
