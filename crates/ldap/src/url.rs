//! `ldapurl`: `ldap[s]://host[:port]/basedn[?[attribute][?[scope][?[filter]]]]` (RFC 4516).

use percent_encoding::percent_decode_str;

/// How far below its base a search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The base itself.
    Base = 0,
    /// What is directly below it.
    One = 1,
    /// The base and all below it.
    Sub = 2,
}

/// The parts that a URL names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) ldaps: bool,
    /// Empty: none.
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    pub(crate) base: Option<String>,
    pub(crate) attribute: Option<String>,
    pub(crate) scope: Scope,
    pub(crate) filter: Option<String>,
}

/// Takes a URL apart.
///
/// # Errors
/// What is wrong with it, as the end of a sentence that begins with it.
pub(crate) fn parse(url: &str) -> Result<Parts, String> {
    let (scheme, rest) = url.split_once("://").ok_or("must be ldap://HOST/BASEDN?ATTRIBUTE?SCOPE?FILTER")?;
    let ldaps = match scheme.to_ascii_lowercase().as_str() {
        "ldap" => false,
        "ldaps" => true,
        other => return Err(format!("has the scheme `{other}`; there are ldap and ldaps")),
    };
    let (at, path) = rest.split_once('/').unwrap_or((rest, ""));
    if at.contains(['?', '@']) {
        return Err("must have a `/` between the host and what follows, and no user".to_owned());
    }
    let (host, port) = split_port(at)?;
    let mut parts = path.split('?');
    let mut next = || -> Result<Option<String>, String> {
        match parts.next() {
            None | Some("") => Ok(None),
            Some(text) => decoded(text).map(Some),
        }
    };
    let base = next()?;
    let attribute = next()?;
    let scope = match next()?.as_deref() {
        None | Some("base") => Scope::Base,
        Some("one") => Scope::One,
        Some("sub") => Scope::Sub,
        Some(other) => return Err(format!("has the scope `{other}`; there are base, one and sub")),
    };
    let filter = next()?;
    if next()?.is_some() {
        return Err("has extensions behind its filter, which Weir does not know".to_owned());
    }
    // PostgreSQL takes the first.
    let attribute = attribute.map(|names| names.split(',').next().unwrap_or_default().to_owned());
    Ok(Parts { ldaps, host: decoded(host)?, port, base, attribute, scope, filter })
}

fn decoded(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(|text| text.into_owned()).map_err(|_| format!("is not UTF-8 in `{text}`"))
}

/// `host`, `host:port`, `[IPv6]` or `[IPv6]:port`; the host without brackets.
pub(crate) fn split_port(text: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']').ok_or("has a `[` without its `]`")?;
            match behind.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if behind.is_empty() => (host, None),
                None => return Err(format!("has `{behind}` behind an address")),
            }
        }
        None => match text.split_once(':') {
            // An IPv6 address as it is.
            Some((_, port)) if port.contains(':') => (text, None),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map(|port| match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("has the port `{port}`; a port is a number from 1 to 65535")),
    });
    Ok((host, port.transpose()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_the_manual() {
        let parts = parse("ldap://ldap.example.net/dc=example,dc=net?uid?sub").unwrap();
        assert_eq!((parts.host.as_str(), parts.port, parts.ldaps), ("ldap.example.net", None, false));
        assert_eq!(parts.base.as_deref(), Some("dc=example,dc=net"));
        assert_eq!((parts.attribute.as_deref(), parts.scope, parts.filter), (Some("uid"), Scope::Sub, None));
        let parts = parse("ldaps://[::1]:6636/o=a%20b??one?(%7Curi=$username)(x=y)").unwrap();
        assert_eq!((parts.host.as_str(), parts.port, parts.ldaps), ("::1", Some(6636), true));
        assert_eq!((parts.base.as_deref(), parts.attribute, parts.scope), (Some("o=a b"), None, Scope::One));
        assert_eq!(parts.filter.as_deref(), Some("(|uri=$username)(x=y)"));
        let parts = parse("LDAP://host").unwrap();
        assert_eq!((parts.host.as_str(), parts.base, parts.scope), ("host", None, Scope::Base));
        assert_eq!(parse("ldap:///dc=x").unwrap().host, "");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (url, wanted) in [
            ("host", "must be ldap://"),
            ("ldapi:///x", "the scheme `ldapi`"),
            ("ldap://host?uid", "a `/` between"),
            ("ldap://user@host/", "no user"),
            ("ldap://host:0/", "the port `0`"),
            ("ldap://host:x/", "the port `x`"),
            ("ldap://[::1/", "without its `]`"),
            ("ldap://[::1]x/", "`x` behind an address"),
            ("ldap://host/dc=x?uid?deep", "the scope `deep`"),
            ("ldap://host/%ff", "is not UTF-8"),
            ("ldap://host/dc=x?uid?sub?(a=b)?!x", "extensions"),
        ] {
            let why = parse(url).unwrap_err();
            assert!(why.contains(wanted), "{url}: {why}");
        }
    }

    #[test]
    fn hosts_and_ports() {
        for (text, host, port) in [
            ("a", "a", None),
            ("a:1", "a", Some(1)),
            ("::1", "::1", None),
            ("[::1]", "::1", None),
            ("[::1]:2", "::1", Some(2)),
            ("127.0.0.1:389", "127.0.0.1", Some(389)),
        ] {
            assert_eq!(split_port(text), Ok((host, port)), "{text}");
        }
    }
}
