//! MariaDB's error for a table in a client's schema that another client has dropped.
//!
//! A session whose default schema was dropped gets "table does not exist"; a session without a default
//! schema, which is what Weir's server then is, gets "no database selected". MySQL reports an unknown
//! database to both.
//!
//! Owns: extracting the table's name, and the text of the error. Must not know: when a schema is gone.

use crate::message::ok::ErrPacket;
use crate::words::{Piece, Words};

/// ER_NO_SUCH_TABLE for the table that the text names first; `None` where MariaDB says that the database is
/// unknown, or it is not seen which table it is.
pub(crate) fn no_such_table(schema: &str, text: &[u8]) -> Option<Vec<u8>> {
    let table = String::from_utf8_lossy(table_of(text)?).into_owned();
    let message = format!("Table '{schema}.{table}' doesn't exist");
    let mut error = Vec::new();
    ErrPacket { code: 1146, sqlstate: b"42S02", message: message.as_bytes() }.write(&mut error);
    Some(error)
}

/// The message of ER_SP_DOES_NOT_EXIST with the schema in front of the routine's name; `None` where it has
/// one, or where the message is not in English.
pub(crate) fn in_schema(schema: &str, message: &[u8]) -> Option<Vec<u8>> {
    let message = std::str::from_utf8(message).ok()?;
    let (kind, rest) =
        message.split_once(' ').filter(|(kind, _)| ["FUNCTION", "PROCEDURE"].contains(kind))?;
    let name = rest.strip_suffix(" does not exist").filter(|name| !name.contains('.'))?;
    Some(format!("{kind} {schema}.{name} does not exist").into_bytes())
}

/// The first table of a text that stands outside of all parentheses, or else the first of all.
fn table_of(text: &[u8]) -> Option<&[u8]> {
    let mut words = Words::new(text).skip_while(|piece| piece.is(b"(")).peekable();
    let verb = words.next()?;
    let tables: [&[u8]; 5] = [b"FROM", b"INTO", b"JOIN", b"TABLE", b"TABLES"];
    let modifiers: [&[u8]; 6] =
        [b"IGNORE", b"LOW_PRIORITY", b"HIGH_PRIORITY", b"DELAYED", b"QUICK", b"ONLINE"];
    // These have it right behind them.
    let bare: [&[u8]; 7] = [b"INSERT", b"REPLACE", b"UPDATE", b"TRUNCATE", b"DESCRIBE", b"DESC", b"HANDLER"];
    let others: [&[u8]; 9] =
        [b"SELECT", b"WITH", b"DELETE", b"ALTER", b"EXPLAIN", b"LOCK", b"DO", b"SET", b"LOAD"];
    let is_in = |piece: &Piece<'_>, list: &[&[u8]]| list.iter().any(|word| piece.is(word));
    let mut comes = is_in(&verb, &bare);
    if !comes && !is_in(&verb, &others) {
        return None;
    }
    let (mut depth, mut within) = (0_u32, None);
    while let Some(piece) = words.next() {
        if is_in(&piece, &tables) {
            comes = true;
        } else if piece.is(b"(") {
            (depth, comes) = (depth + 1, false);
        } else if piece.is(b")") {
            (depth, comes) = (depth.saturating_sub(1), false);
        } else if comes && !is_in(&piece, &modifiers) {
            comes = false;
            let elsewhere = words.peek().is_some_and(|next| next.is(b"."));
            let name = name(piece).filter(|_| !elsewhere && !piece.is(b"DUAL"));
            match name {
                // What stands behind WITH has names of its own.
                Some(name) if depth == 0 || verb.is(b"WITH") => return Some(name),
                Some(name) => within = within.or(Some(name)),
                None => {}
            }
        }
    }
    within
}

fn name(piece: Piece<'_>) -> Option<&[u8]> {
    match piece.bytes {
        [b'`', name @ .., b'`'] => Some(name),
        [first, ..] if first.is_ascii_alphanumeric() || matches!(first, b'_' | b'$' | 0x80..) => {
            Some(piece.bytes)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_routine_is_in_the_schema_that_is_gone() {
        let of =
            |message: &str| in_schema("y", message.as_bytes()).map(|own| String::from_utf8(own).unwrap());
        assert_eq!(of("FUNCTION f does not exist").as_deref(), Some("FUNCTION y.f does not exist"));
        assert_eq!(of("PROCEDURE p does not exist").as_deref(), Some("PROCEDURE y.p does not exist"));
        assert_eq!(of("FUNCTION x.f does not exist"), None);
        assert_eq!(of("FUNKTION f existiert nicht"), None);
    }

    #[test]
    fn the_table_of_a_text() {
        for (text, table) in [
            ("SELECT * FROM t", Some("t")),
            ("DELETE FROM shadow WHERE id = ?", Some("shadow")),
            ("INSERT INTO d2 SELECT * FROM x", Some("d2")),
            ("INSERT IGNORE u VALUES (1)", Some("u")),
            ("REPLACE `we ird` VALUES (1)", Some("we ird")),
            ("UPDATE a1, b1 SET n = 1", Some("a1")),
            ("TRUNCATE TABLE d", Some("d")),
            ("LOCK TABLES t READ", Some("t")),
            ("WITH y AS (SELECT id FROM t) SELECT 1 FROM y", Some("t")),
            ("SELECT (SELECT v FROM t2) FROM t3", Some("t3")),
            ("SELECT 1 FROM (SELECT 1 FROM t) x", Some("t")),
            ("SELECT 1 FROM mysql.user JOIN u", Some("u")),
            ("CREATE TABLE c (a int)", None),
            ("CREATE VIEW v AS SELECT 1", None),
            ("SELECT f(1)", None),
            ("SHOW TABLES", None),
        ] {
            assert_eq!(table_of(text.as_bytes()), table.map(str::as_bytes), "{text}");
        }
    }
}
