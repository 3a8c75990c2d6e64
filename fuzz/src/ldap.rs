//! A login at an LDAP server that sends anything, and any text as the options of one.

use crate::script::Script;
use std::sync::{Arc, LazyLock};
use weir_ldap::{Builder, Exchange, Options, Step};

/// More than any login says.
const OUTPUT_BYTES: usize = 1 << 16;

static OPTIONS: LazyLock<[Arc<Options>; 3]> = LazyLock::new(|| {
    [
        "ldapserver=a ldapprefix=\"uid=\" ldapsuffix=\",dc=x\"",
        "ldapserver=a ldapbasedn=\"dc=x\" ldapbinddn=\"cn=f\" ldapbindpasswd=find",
        "ldapserver=a ldaptls=1 ldapbasedn=\"dc=x\" ldapsearchfilter=\"(|(uid=$username)(mail=$username))\"",
    ]
    .map(|text| Arc::new(options(text).unwrap_or_else(|why| panic!("{text}: {why}"))))
});

fn options(text: &str) -> Result<Options, String> {
    let mut builder = Builder::default();
    for (name, value) in weir_ldap::pairs(text)? {
        builder.set(&name, &value)?;
    }
    builder.finish()
}

/// An answer of this kind to the question with this number: a code, no name, no words.
fn answer(id: u8, operation: u8, code: u8) -> Vec<u8> {
    vec![0x30, 12, 2, 1, id, operation, 7, 10, 1, code, 4, 0, 4, 0]
}

static KNOWN: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut known = Vec::new();
    for id in 1..5 {
        for (operation, code) in [(0x61, 0), (0x61, 49), (0x65, 0), (0x65, 4), (0x78, 0)] {
            known.push(answer(id, operation, code));
        }
        known.push(vec![0x30, 13, 2, 1, id, 0x64, 8, 4, 4, b'u', b'=', b'a', b'b', 0x30, 0]);
        known.push(vec![0x30, 7, 2, 1, id, 0x73, 2, 4, 0]);
    }
    known.push(answer(0, 0x78, 52));
    known
});

/// A server that says anything.
pub fn server(data: &[u8]) {
    let mut script = Script::new(data);
    let options = &OPTIONS[usize::from(script.choice()) % OPTIONS.len()];
    let name = String::from_utf8_lossy(script.raw(5)).into_owned();
    let Some(mut exchange) = Exchange::new(options.clone(), &name, b"right") else { return };
    let (mut input, mut out) = (Vec::new(), Vec::new());
    exchange.start(&mut out);
    assert!(!out.is_empty());
    while !script.is_over() {
        input.extend_from_slice(&script.saying(&KNOWN));
        let Ok((used, step)) = exchange.handle_input(&input, &mut out) else { return };
        assert!(used <= input.len() && out.len() < OUTPUT_BYTES);
        input.drain(..used);
        match step {
            Step::More => {}
            Step::Tls => exchange.handle_secured(&mut out),
            Step::Done => return exchange.end(&mut out),
        }
    }
}

/// Any text as options; those that are right make a login that can begin.
pub fn text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(options) = options(text) else { return };
    assert!(!options.hosts.is_empty());
    let exchange = Exchange::new(Arc::new(options), "any)(name*", b"right");
    let mut out = Vec::new();
    if let Some(mut exchange) = exchange {
        exchange.start(&mut out);
    }
    assert!(!out.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_lead_to_the_end() {
        // Of the second options: the searcher is taken, an entry, the end of the search, the user is taken.
        let mut exchange = Exchange::new(OPTIONS[1].clone(), "ann", b"right").unwrap();
        let mut out = Vec::new();
        exchange.start(&mut out);
        let steps = [&KNOWN[0], &KNOWN[12], &KNOWN[9], &KNOWN[14]];
        let last = steps.map(|message| exchange.handle_input(message, &mut out).map(|(_, step)| step));
        assert_eq!(last, [Ok(Step::More), Ok(Step::More), Ok(Step::More), Ok(Step::Done)]);
    }

    #[test]
    fn scripts_are_played() {
        server(&[1, b'a', b'n', b'n', b'i', b'e', 0, 12, 9, 14]);
        server(&[]);
        text(b"ldapserver=a ldapprefix=x");
        text(b"\xff");
    }
}
