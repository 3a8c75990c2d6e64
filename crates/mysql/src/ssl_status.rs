//! What a client may ask about its own TLS and compression: SHOW STATUS, and the tables behind it.
//!
//! Owns: the query that replaces such a text. It is the query that the server itself runs for SHOW STATUS,
//! with what the client's connection has instead of Weir's. Must not know: connections.
//!
//! Invariants: a text that does not ask for either by name is not changed; the condition is the client's own,
//! byte for byte.

use crate::packing::Algorithm;
use crate::session_state::Flavour;

/// Longer texts are not looked at: nobody asks like that.
const TEXT_BYTES: usize = 1000;

/// Words that follow a table's name and are not another name for it.
const BEHIND_TABLE: [&[u8]; 18] = [
    b"where",
    b"order",
    b"limit",
    b"group",
    b"having",
    b"union",
    b"join",
    b"inner",
    b"left",
    b"right",
    b"cross",
    b"natural",
    b"on",
    b"using",
    b"for",
    b"into",
    b"procedure",
    b"straight_join",
];

/// What a client's connection has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Own {
    /// Of TLS; empty: none.
    pub version: &'static str,
    pub cipher: &'static str,
    /// What its bytes are packed by.
    pub packs: Option<Algorithm>,
}

/// The text to send instead of this one, which is a single statement.
pub(crate) fn text(text: &[u8], flavour: Flavour, own: Own) -> Option<Vec<u8>> {
    if text.len() > TEXT_BYTES || !may_name_any(text) {
        return None;
    }
    show(text, flavour, own).or_else(|| select(text, flavour, own))
}

/// It has one of the names' beginnings in it. Every text with one statement is asked this.
fn may_name_any(text: &[u8]) -> bool {
    const fn folded(bytes: [u8; 3]) -> u32 {
        // Letters without case; a few other bytes fall together, too, and are told apart behind this.
        (bytes[0] as u32 | (bytes[1] as u32) << 8 | (bytes[2] as u32) << 16) | 0x20_20_20
    }
    const BEGINNINGS: [u32; 3] = [folded(*b"ssl"), folded(*b"cip"), folded(*b"com")];
    text.windows(3).any(|window| match *window {
        [first, second, third] => BEGINNINGS.contains(&folded([first, second, third])),
        _ => false,
    })
}

/// `SHOW [SESSION] STATUS {LIKE pattern | WHERE condition}`.
fn show(text: &[u8], flavour: Flavour, own: Own) -> Option<Vec<u8>> {
    let mut rest = word(text, b"show")?;
    rest = word(rest, b"session").or_else(|| word(rest, b"local")).unwrap_or(rest);
    rest = word(rest, b"status")?;
    let (column, condition) = match word(rest, b"like") {
        Some(pattern) => ("Variable_name LIKE ", pattern),
        None => ("", word(rest, b"where")?),
    };
    let end = if column.is_empty() { names_of(condition)? } else { literal(condition)? };
    let ended = end.trim_ascii_start().iter().all(|byte| *byte == b';');
    if !ended {
        return None;
    }
    let mut out = b"SELECT * FROM ".to_vec();
    table(&mut out, flavour, ["Variable_name", "Value"], own);
    out.extend_from_slice(b" session_status WHERE ");
    out.extend_from_slice(column.as_bytes());
    out.extend_from_slice(condition.trim_ascii_start());
    Some(out)
}

/// What stands behind `Variable_name {= name | LIKE pattern | IN (name, ...)} [OR ...]`.
fn names_of(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        rest = word(rest, b"variable_name").or_else(|| symbol(rest, b"`variable_name`"))?;
        rest = if let Some(name) = symbol(rest, b"=") {
            literal(name)?
        } else if let Some(pattern) = word(rest, b"like") {
            literal(pattern)?
        } else {
            let mut names = symbol(word(rest, b"in")?, b"(")?;
            loop {
                names = literal(names)?;
                match symbol(names, b",") {
                    Some(more) => names = more,
                    None => break symbol(names, b")")?,
                }
            }
        };
        match word(rest, b"or") {
            Some(more) => rest = more,
            None => return Some(rest),
        }
    }
}

/// What stands behind a literal that is the name of a status variable, or a pattern of such names. The table
/// does not have the counters of commands (`Com_...`), so a pattern that may mean them is none.
fn literal(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii_start();
    let quote = *text.first().filter(|byte| b"'\"".contains(byte))?;
    let inside = &text[1..];
    let end = inside.iter().position(|byte| *byte == quote)?;
    let (name, behind) = (&inside[..end], &inside[end + 1..]);
    let safe = name.iter().all(|byte| is_name(*byte) || b"%\\".contains(byte)) && !name.ends_with(b"\\");
    let may_be_command = name.first().is_none_or(|first| b"cC%_\\".contains(first));
    let may_be_command =
        may_be_command && !name.get(..4).is_some_and(|begins| begins.eq_ignore_ascii_case(b"comp"));
    // A quote behind it would be a part of it.
    (safe && !may_be_command && behind.first() != Some(&quote)).then_some(behind)
}

/// What stands behind this symbol, if the text begins with it.
fn symbol<'a>(text: &'a [u8], symbol: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = text.trim_ascii_start().split_at_checked(symbol.len())?;
    head.eq_ignore_ascii_case(symbol).then_some(rest)
}

/// A query of the table that SHOW STATUS reads.
fn select(text: &[u8], flavour: Flavour, own: Own) -> Option<Vec<u8>> {
    let name: &[u8] = match flavour {
        Flavour::MySql => b"performance_schema.session_status",
        Flavour::MariaDb => b"information_schema.session_status",
    };
    word(text, b"select")?;
    let at = position(text, name)?;
    let (before, behind) = (text.get(..at)?, text.get(at + name.len()..)?);
    // Nothing before it can hide it: no literal, no quoted name, no comment.
    let hidden =
        before.iter().any(|byte| b"'\"`#".contains(byte)) || has(before, b"--") || has(before, b"/*");
    let from = before.trim_ascii_end().len() < before.len() && ends_in_word(before.trim_ascii_end(), b"from");
    // The columns may be called by the table's whole name elsewhere.
    if hidden || !from || position(behind, b"session_status").is_some() {
        return None;
    }
    let next = behind.trim_ascii_start();
    if !next.is_empty() && !behind.starts_with(b" ") && next[0] != b';' {
        return None;
    }
    let next = &next[..next.iter().take_while(|byte| is_name(**byte)).count()];
    let named = !next.is_empty() && !BEHIND_TABLE.iter().any(|word| next.eq_ignore_ascii_case(word));
    // A column of the answer is called as it was asked for.
    let spelt = |name: &'static str| {
        let at = position(before, name.as_bytes());
        let found = at.and_then(|at| std::str::from_utf8(before.get(at..at + name.len())?).ok());
        found.unwrap_or(name)
    };
    let mut out = before.to_vec();
    table(&mut out, flavour, [spelt("VARIABLE_NAME"), spelt("VARIABLE_VALUE")], own);
    if !named {
        out.extend_from_slice(b" session_status");
    }
    out.extend_from_slice(behind);
    Some(out)
}

/// All rows, with the client's own where they are about the connection.
fn table(out: &mut Vec<u8>, flavour: Flavour, [name, value]: [&str; 2], own: Own) {
    let (schema, shown) = match (flavour, name) {
        (Flavour::MySql, _) => ("performance_schema", "VARIABLE_NAME"),
        // The table has the names in capitals, SHOW as they are written.
        (Flavour::MariaDb, "Variable_name") => (
            "information_schema",
            "CAST(IF(VARIABLE_NAME LIKE 'WSREP%', LOWER(VARIABLE_NAME), \
             CONCAT(LEFT(VARIABLE_NAME, 1), LOWER(SUBSTRING(VARIABLE_NAME, 2)))) AS CHAR(64))",
        ),
        (Flavour::MariaDb, _) => ("information_schema", "VARIABLE_NAME"),
    };
    let Own { version, cipher, packs } = own;
    let (is_packed, algorithm, level) = match packs {
        None => ("OFF", "", 0),
        // The level is what servers say.
        Some(Algorithm::Zlib) => ("ON", "zlib", 6),
        Some(Algorithm::Zstd { level }) => ("ON", "zstd", level),
    };
    let query = format!(
        "(SELECT {shown} AS {name}, CASE VARIABLE_NAME WHEN 'Ssl_version' THEN '{version}' \
         WHEN 'Ssl_cipher' THEN '{cipher}' WHEN 'Compression' THEN '{is_packed}' \
         WHEN 'Compression_algorithm' THEN '{algorithm}' WHEN 'Compression_level' THEN '{level}' \
         ELSE VARIABLE_VALUE END AS {value} FROM {schema}.session_status)"
    );
    out.extend_from_slice(query.as_bytes());
}

/// What stands behind this word, if the text begins with it.
fn word<'a>(text: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let text = text.trim_ascii_start();
    let (head, rest) = text.split_at_checked(word.len())?;
    let ends = rest.first().is_some_and(|byte| !is_name(*byte));
    (head.eq_ignore_ascii_case(word) && ends).then_some(rest)
}

fn ends_in_word(text: &[u8], word: &[u8]) -> bool {
    let Some(at) = text.len().checked_sub(word.len()) else { return false };
    text[at..].eq_ignore_ascii_case(word) && text[..at].last().is_some_and(|byte| !is_name(*byte))
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..) || byte == b'.'
}

fn has(text: &[u8], word: &[u8]) -> bool {
    position(text, word).is_some()
}

fn position(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Own = Own {
        version: "TLSv1.3",
        cipher: "TLS_AES_256_GCM_SHA384",
        packs: Some(Algorithm::Zstd { level: 3 }),
    };
    const CASE: &str = "CASE VARIABLE_NAME WHEN 'Ssl_version' THEN 'TLSv1.3' WHEN 'Ssl_cipher' THEN \
                        'TLS_AES_256_GCM_SHA384' WHEN 'Compression' THEN 'ON' WHEN 'Compression_algorithm' \
                        THEN 'zstd' WHEN 'Compression_level' THEN '3' ELSE VARIABLE_VALUE END";

    fn seen(sql: &str, flavour: Flavour) -> Option<String> {
        text(sql.as_bytes(), flavour, OWN).map(|out| String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_clients_own_tls_is_shown() {
        for (sql, condition) in [
            ("show status like 'ssl_version'", "Variable_name LIKE 'ssl_version'"),
            ("SHOW SESSION STATUS LIKE 'Ssl%' ;", "Variable_name LIKE 'Ssl%' ;"),
            ("\n show\tlocal\nstatus like\"Ssl\\_version\"", "Variable_name LIKE \"Ssl\\_version\""),
            ("show status where `Variable_name` = 'Ssl_cipher'", "`Variable_name` = 'Ssl_cipher'"),
            ("show status like 'compression%'", "Variable_name LIKE 'compression%'"),
            (
                "show status where variable_name in('ssl_cipher' ,'Uptime') or variable_name like 's%'",
                "variable_name in('ssl_cipher' ,'Uptime') or variable_name like 's%'",
            ),
        ] {
            let wanted = format!(
                "SELECT * FROM (SELECT VARIABLE_NAME AS Variable_name, {CASE} AS Value FROM \
                 performance_schema.session_status) session_status WHERE {condition}"
            );
            assert_eq!(seen(sql, Flavour::MySql), Some(wanted));
            let mariadb = seen(sql, Flavour::MariaDb).unwrap();
            assert!(mariadb.contains("FROM information_schema.session_status)"), "{mariadb}");
            assert!(mariadb.ends_with(condition), "{mariadb}");
        }
    }

    #[test]
    fn the_tables_behind_it_are_shown_so_too() {
        let inner = |schema: &str, value: &str| {
            format!("(SELECT VARIABLE_NAME AS VARIABLE_NAME, {CASE} AS {value} FROM {schema}.session_status)")
        };
        let sql = "select variable_value from PERFORMANCE_SCHEMA.session_status where variable_name = 'Ssl_version'";
        let wanted = format!(
            "select variable_value from {} session_status where variable_name = 'Ssl_version'",
            inner("performance_schema", "variable_value")
        );
        assert_eq!(seen(sql, Flavour::MySql), Some(wanted));
        assert_eq!(seen(sql, Flavour::MariaDb), None);
        let sql = "select s.* from information_schema.session_status as s where s.variable_name like 'ssl%'";
        let wanted = format!(
            "select s.* from {} as s where s.variable_name like 'ssl%'",
            inner("information_schema", "VARIABLE_VALUE")
        );
        assert_eq!(seen(sql, Flavour::MariaDb), Some(wanted));
    }

    #[test]
    fn everything_else_is_left_alone() {
        for sql in [
            "show global status like 'Ssl_cipher'",
            "show status",
            "show status like 'Threads%'",
            "show status like 'Com%'",
            "show status like 'Com_compress'",
            "show status like '%ssl%'",
            "show status like 'Ssl' '%'",
            "show status like 'Ssl''_version'",
            "show status like 'Ssl_version\\'",
            "show status where variable_name in ('Ssl_cipher', 'Com_select')",
            "show status where variable_name = 'Ssl_cipher' or value > 3",
            "show status where variable_name = 'Ssl_cipher' and value",
            "show status where variable_name in ()",
            "show session variables like 'ssl%'",
            "show",
            "select 'ssl'",
            "select 'from performance_schema.session_status where ssl'",
            "select `ssl` from performance_schema.session_status",
            "select 1 /* from performance_schema.session_status ssl */",
            "select a.ssl from x.performance_schema.session_status",
            "select ssl from performance_schema.session_status_by_thread",
            "select ssl from performance_schema.session_status where performance_schema.session_status.variable_name = 'x'",
            "insert into t select * from performance_schema.session_status where variable_name like 'ssl%'",
            "",
        ] {
            assert_eq!(seen(sql, Flavour::MySql), None, "{sql}");
        }
        let long = format!("show status like 'ssl%' {}", " ".repeat(TEXT_BYTES));
        assert_eq!(seen(&long, Flavour::MySql), None);
    }
}
