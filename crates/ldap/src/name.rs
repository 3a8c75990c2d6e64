//! Names as values: in a distinguished name (RFC 4514) and in a filter (RFC 4515).

/// Text as the value of an attribute in a distinguished name (RFC 4514, section 2.4): it ends where its
/// attribute does.
pub(crate) fn in_dn(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let last = text.len().saturating_sub(1);
    for (at, c) in text.char_indices() {
        match c {
            '\0' => out.push_str("\\00"),
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' | '=' => out.extend(['\\', c]),
            '#' if at == 0 => out.push_str("\\#"),
            ' ' if at == 0 || at == last => out.push_str("\\ "),
            c => out.push(c),
        }
    }
    out
}

/// Text as a value in a filter (RFC 4515, section 3).
pub(crate) fn in_filter(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0' => out.push_str("\\00"),
            '(' => out.push_str("\\28"),
            ')' => out.push_str("\\29"),
            '*' => out.push_str("\\2a"),
            '\\' => out.push_str("\\5c"),
            c => out.push(c),
        }
    }
    out
}

/// What somebody else has written, for a line of the log.
pub(crate) fn for_log(bytes: &[u8]) -> String {
    const CHARS: usize = 200;
    let text = String::from_utf8_lossy(bytes);
    // Active Directory ends its texts with a NUL.
    let text = text.trim_end_matches(['\0', '\n', '\r', ' ']);
    let shown: String =
        text.chars().take(CHARS).map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect();
    if text.chars().nth(CHARS).is_some() { shown + "..." } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_its_place_in_a_dn() {
        for (name, value) in [
            ("ann", "ann"),
            ("Ann Smith", "Ann Smith"),
            ("ann,ou=admins", "ann\\,ou\\=admins"),
            ("ann+cn=root", "ann\\+cn\\=root"),
            ("a\"b<c>d;e\\f", "a\\\"b\\<c\\>d\\;e\\\\f"),
            (" ann ", "\\ ann\\ "),
            ("  ", "\\ \\ "),
            (" ", "\\ "),
            ("#6869", "\\#6869"),
            ("a#b", "a#b"),
            ("a\0b", "a\\00b"),
            ("m\u{fc}ller", "m\u{fc}ller"),
            ("", ""),
        ] {
            assert_eq!(in_dn(name), value, "{name:?}");
        }
    }

    #[test]
    fn no_name_leaves_its_place_in_a_filter() {
        for (name, value) in [
            ("ann", "ann"),
            ("*", "\\2a"),
            ("ann)(uid=*", "ann\\29\\28uid=\\2a"),
            ("a\\2ab", "a\\5c2ab"),
            ("a\0", "a\\00"),
            ("m\u{fc}ller", "m\u{fc}ller"),
        ] {
            assert_eq!(in_filter(name), value, "{name:?}");
        }
    }

    #[test]
    fn the_log_gets_a_line_of_bounded_length() {
        assert_eq!(for_log(b"80090308: LdapErr: DSID-0C09042F\0"), "80090308: LdapErr: DSID-0C09042F");
        assert_eq!(for_log(b"a\nb\x1b[0m\xff"), "a\u{FFFD}b\u{FFFD}[0m\u{FFFD}");
        assert_eq!(for_log(&[b'x'; 500]).len(), 203);
    }
}
