//! Search filters: from text (RFC 4515) to what is sent (RFC 4511, section 4.5.1.7).
//!
//! Invariant: the text is the operator's, with a client's name in it only as [`crate::name::in_filter`]
//! writes it; how deep it may nest is bounded all the same.

use crate::ber::{OCTETS, SEQUENCE, put, put_bytes};

const AND: u8 = 0xA0;
const OR: u8 = 0xA1;
const NOT: u8 = 0xA2;
const EQUALITY: u8 = 0xA3;
const SUBSTRINGS: u8 = 0xA4;
const GREATER_OR_EQUAL: u8 = 0xA5;
const LESS_OR_EQUAL: u8 = 0xA6;
const PRESENT: u8 = 0x87;
const APPROXIMATE: u8 = 0xA8;
const EXTENSIBLE: u8 = 0xA9;

/// The parts of a substring match, by where they stand.
const INITIAL: u8 = 0x80;
const ANY: u8 = 0x81;
const FINAL: u8 = 0x82;

/// The parts of an extensible match.
const RULE: u8 = 0x81;
const TYPE: u8 = 0x82;
const VALUE: u8 = 0x83;
const DN_ATTRIBUTES: u8 = 0x84;

/// Filters inside filters, at most.
const DEPTH: usize = 32;

/// Appends a filter.
///
/// # Errors
/// What is wrong with the text, as the end of a sentence that begins with it.
pub(crate) fn put_filter(out: &mut Vec<u8>, text: &str) -> Result<(), String> {
    let text = text.trim();
    // Libraries take a lone match without parentheses, too.
    let rest = if text.starts_with('(') {
        one(out, text, 0)?
    } else {
        item(out, text)?;
        ""
    };
    if rest.is_empty() { Ok(()) } else { Err(format!("goes on behind its end, with `{rest}`")) }
}

/// One filter at the front of `text`; returns what is behind it.
fn one<'t>(out: &mut Vec<u8>, text: &'t str, depth: usize) -> Result<&'t str, String> {
    if depth > DEPTH {
        return Err(format!("has more than {DEPTH} filters inside one another"));
    }
    let inner = text.strip_prefix('(').ok_or_else(|| format!("needs `(` where `{text}` stands"))?;
    let tag = match inner.trim_start().bytes().next() {
        Some(b'&') => AND,
        Some(b'|') => OR,
        Some(b'!') => NOT,
        _ => {
            let end = inner.find(')').ok_or("has a `(` without its `)`")?;
            item(out, &inner[..end])?;
            return Ok(&inner[end + 1..]);
        }
    };
    let mut rest = &inner.trim_start()[1..];
    let mut found = 0;
    let mut failed = None;
    put(out, tag, |out| {
        while rest.trim_start().starts_with('(') {
            match one(out, rest.trim_start(), depth + 1) {
                Ok(behind) => rest = behind,
                Err(why) => {
                    failed = Some(why);
                    return;
                }
            }
            found += 1;
        }
    });
    if let Some(why) = failed {
        return Err(why);
    }
    if found == 0 || (tag == NOT && found > 1) {
        let wanted = if tag == NOT { "one filter behind `!`" } else { "a filter behind `&` and `|`" };
        return Err(format!("needs {wanted}"));
    }
    rest.trim_start().strip_prefix(')').ok_or_else(|| "has a `(` without its `)`".to_owned())
}

/// A match of one attribute, without its parentheses.
fn item(out: &mut Vec<u8>, text: &str) -> Result<(), String> {
    if text.contains('(') {
        return Err(format!("has a `(` in the value of `{text}`: write \\28"));
    }
    let (left, value) = text.split_once('=').ok_or_else(|| format!("has no `=` in `{text}`"))?;
    if let Some(left) = left.strip_suffix(':') {
        return extensible(out, left, value);
    }
    let (attribute, tag) = match left.as_bytes().last() {
        Some(b'~') => (&left[..left.len() - 1], APPROXIMATE),
        Some(b'>') => (&left[..left.len() - 1], GREATER_OR_EQUAL),
        Some(b'<') => (&left[..left.len() - 1], LESS_OR_EQUAL),
        _ => (left, EQUALITY),
    };
    let attribute = attribute.trim();
    check_attribute(attribute)?;
    if tag != EQUALITY || !value.contains('*') {
        let value = unescaped(value)?;
        put(out, tag, |out| {
            put_bytes(out, OCTETS, attribute.as_bytes());
            put_bytes(out, OCTETS, &value);
        });
        return Ok(());
    }
    if value == "*" {
        put_bytes(out, PRESENT, attribute.as_bytes());
        return Ok(());
    }
    let parts = value.split('*').map(unescaped).collect::<Result<Vec<_>, _>>()?;
    let last = parts.len() - 1;
    put(out, SUBSTRINGS, |out| {
        put_bytes(out, OCTETS, attribute.as_bytes());
        put(out, SEQUENCE, |out| {
            for (at, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
                let tag = if at == 0 {
                    INITIAL
                } else if at == last {
                    FINAL
                } else {
                    ANY
                };
                put_bytes(out, tag, part);
            }
        });
    });
    Ok(())
}

/// `attribute:dn:rule:=value`, of which the attribute or the rule may be missing.
fn extensible(out: &mut Vec<u8>, left: &str, value: &str) -> Result<(), String> {
    let mut parts = left.split(':');
    let attribute = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let (dn, rule) = match &rest[..] {
        [] => (false, None),
        ["dn"] => (true, None),
        [rule] => (false, Some(*rule)),
        ["dn", rule] => (true, Some(*rule)),
        _ => return Err(format!("has too many colons in `{left}:={value}`")),
    };
    if attribute.is_empty() && rule.is_none() {
        return Err(format!("names neither an attribute nor a rule in `{left}:={value}`"));
    }
    for name in [attribute, rule.unwrap_or_default()].into_iter().filter(|name| !name.is_empty()) {
        check_attribute(name)?;
    }
    let value = unescaped(value)?;
    put(out, EXTENSIBLE, |out| {
        if let Some(rule) = rule {
            put_bytes(out, RULE, rule.as_bytes());
        }
        if !attribute.is_empty() {
            put_bytes(out, TYPE, attribute.as_bytes());
        }
        put_bytes(out, VALUE, &value);
        if dn {
            put_bytes(out, DN_ATTRIBUTES, &[0xFF]);
        }
    });
    Ok(())
}

/// A name or a number of an attribute (RFC 4512, section 2.5), with options behind semicolons.
pub(crate) fn check_attribute(name: &str) -> Result<(), String> {
    let is_right = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ';' | '_');
    if !name.is_empty() && name.chars().all(is_right) {
        return Ok(());
    }
    Err(format!("has `{name}` where an attribute must be named"))
}

/// A value, in which `\XX` is a byte.
fn unescaped(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let digits = rest.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let value = digits
            .filter(|two| two.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|two| u8::from_str_radix(two, 16).ok());
        let Some(value) = value else {
            return Err(format!(
                "needs two hexadecimal digits behind the backslash in `{text}`; a backslash itself is \\5c"
            ));
        };
        out.push(value);
        rest = rest.get(2..).unwrap_or_default();
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ber::Elements;

    fn bytes(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put_filter(&mut out, text).unwrap_or_else(|why| panic!("{text} {why}"));
        out
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The bytes are those that OpenLDAP's ldapsearch sends.
    #[test]
    fn each_kind_of_match() {
        for (text, wanted) in [
            ("(uid=ann)", "a30a 0403756964 0403616e6e"),
            ("uid=ann", "a30a 0403756964 0403616e6e"),
            ("(uid=)", "a307 0403756964 0400"),
            ("(uid=*)", "87 03 756964"),
            ("(uid>=5)", "a508 0403756964 040135"),
            ("(uid<=5)", "a608 0403756964 040135"),
            ("(uid~=5)", "a808 0403756964 040135"),
            ("(cn=a*b*c)", "a40f 0402636e 3009 800161 810162 820163"),
            ("(cn=*b*)", "a409 0402636e 3003 810162"),
            ("(cn=a*)", "a409 0402636e 3003 800161"),
            ("(cn=\\2a\\28\\5c)", "a309 0402636e 04032a285c"),
            ("(!(uid=a))", "a20a a308 0403756964 040161"),
            ("(&(a=b)(c=d))", "a010 a306 040161 040162 a306 040163 040164"),
            ("(| (a=b) (c=d) )", "a110 a306 040161 040162 a306 040163 040164"),
            ("(cn:2.5.13.5:=x)", "a911 8108 322e352e31332e35 8202636e 830178"),
            ("(:dn:2.5.13.5:=x)", "a910 8108 322e352e31332e35 830178 8401ff"),
            ("(ou:dn:=x)", "a90a 82026f75 830178 8401ff"),
        ] {
            assert_eq!(hex(&bytes(text)), wanted.replace(' ', ""), "{text}");
        }
        // A name is bytes, as they are.
        assert_eq!(bytes("(cn=m\u{fc}ller)"), bytes("(cn=m\\c3\\bcller)"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, wanted) in [
            ("", "has no `=` in ``"),
            ("(uid)", "has no `=` in `uid`"),
            ("(uid=a", "without its `)`"),
            ("(&(uid=a)", "without its `)`"),
            ("(uid=a))", "goes on behind its end, with `)`"),
            ("(uid=a)(cn=b)", "goes on behind its end, with `(cn=b)`"),
            ("(&)", "a filter behind"),
            ("(!)", "one filter behind"),
            ("(!(a=b)(c=d))", "one filter behind"),
            ("(=a)", "has `` where an attribute must be named"),
            ("(u id=a)", "has `u id` where"),
            ("(uid=a\\zz)", "two hexadecimal digits"),
            ("(uid=a\\2)", "two hexadecimal digits"),
            ("(uid=a\\+2)", "two hexadecimal digits"),
            ("(uid=a(b)", "has a `(` in the value"),
            ("(:=a)", "names neither"),
            ("(a:b:c:d:=e)", "too many colons"),
        ] {
            let why = put_filter(&mut Vec::new(), text).unwrap_err();
            assert!(why.contains(wanted), "{text}: {why}");
        }
        let deep = format!("{}(a=b){}", "(!".repeat(1_000), ")".repeat(1_000));
        assert!(put_filter(&mut Vec::new(), &deep).unwrap_err().contains("inside one another"));
    }

    #[test]
    fn a_client_s_name_is_one_value_whatever_it_is() {
        for name in ["*", "a)(uid=*", "a\\2a", "x))(|(a=b", "\0", "", "m\u{fc}ller", "a*b"] {
            let sent = bytes(&format!("(&(objectClass=person)(uid={}))", crate::name::in_filter(name)));
            let mut whole = Elements::new(&sent);
            let mut both = Elements::new(whole.expect(AND).unwrap());
            both.expect(EQUALITY).unwrap();
            let mut second = Elements::new(both.expect(EQUALITY).unwrap());
            assert_eq!(second.expect(OCTETS), Ok(&b"uid"[..]));
            assert_eq!(second.expect(OCTETS), Ok(name.as_bytes()), "{name:?}");
            assert_eq!((second.next(), both.next(), whole.next()), (Ok(None), Ok(None), Ok(None)));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_filter_or_none(text in "[ -~]{0,40}") {
            let _ = put_filter(&mut Vec::new(), &text);
        }

        #[test]
        fn any_name_is_a_value(name in ".*") {
            let sent = bytes(&format!("(uid={})", crate::name::in_filter(&name)));
            let mut whole = Elements::new(&sent);
            let mut parts = Elements::new(whole.expect(EQUALITY).unwrap());
            proptest::prop_assert_eq!(parts.expect(OCTETS), Ok(&b"uid"[..]));
            proptest::prop_assert_eq!(parts.expect(OCTETS), Ok(name.as_bytes()));
            proptest::prop_assert_eq!(parts.next(), Ok(None));
        }
    }
}
