//! The options of PostgreSQL's method `ldap`: what they are called, which go together, and what they come to.
//!
//! Owns: the rules of PostgreSQL's `parse_hba_auth_opt` and PgBouncer's `auth_ldap_options`. Must not know:
//! in which file they stand.

use crate::filter::{check_attribute, put_filter};
use crate::name;
use crate::url::{Scope, parse, split_port};
use std::fmt;
use zeroize::Zeroizing;

/// What an LDAP server is asked, and which.
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// Hosts without brackets, and their ports: they are tried in this order.
    pub hosts: Vec<(String, u16)>,
    /// How what is sent is protected.
    pub encryption: Encryption,
    /// How a user is found.
    pub way: Way,
}

/// How what is sent to an LDAP server is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// Not at all.
    None,
    /// By TLS that begins inside a connection in clear (`ldaptls=1`).
    StartTls,
    /// By TLS from the first byte on (`ldaps`).
    Ldaps,
}

/// How a user's entry is found.
#[derive(Clone, PartialEq, Eq)]
pub enum Way {
    /// Its name is the user's between these.
    Bind {
        /// `ldapprefix`.
        prefix: String,
        /// `ldapsuffix`.
        suffix: String,
    },
    /// It is the only one that a search finds.
    Search {
        /// `ldapbasedn`.
        base: String,
        /// How far below.
        scope: Scope,
        /// RFC 4515, with `$username` for the user's name.
        filter: String,
        /// `ldapbinddn` and `ldapbindpasswd`: who searches; `None`: nobody in particular.
        searcher: Option<(String, Zeroizing<String>)>,
    },
}

impl Options {
    /// The DN to bind as, where no search finds it. `None`: a search does.
    pub fn name_of(&self, user: &str) -> Option<String> {
        let Way::Bind { prefix, suffix } = &self.way else { return None };
        // `user@domain` and `DOMAIN\user` of Active Directory are no DNs: nothing in them has a meaning of
        // its own.
        let is_dn = prefix.contains('=') || suffix.contains('=');
        let user = if is_dn { name::in_dn(user) } else { user.to_owned() };
        Some(format!("{prefix}{user}{suffix}"))
    }

    /// Who is asked, for the log.
    pub fn url(&self, (host, port): &(String, u16)) -> String {
        let scheme = if self.encryption == Encryption::Ldaps { "ldaps" } else { "ldap" };
        if host.contains(':') {
            format!("{scheme}://[{host}]:{port}")
        } else {
            format!("{scheme}://{host}:{port}")
        }
    }
}

/// Without passwords.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("hosts", &self.hosts)
            .field("encryption", &self.encryption)
            .field("way", &self.way)
            .finish()
    }
}

/// Without passwords.
impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Bind { prefix, suffix } => {
                f.debug_struct("Bind").field("prefix", prefix).field("suffix", suffix).finish()
            }
            Way::Search { base, scope, filter, searcher } => f
                .debug_struct("Search")
                .field("base", base)
                .field("scope", scope)
                .field("filter", filter)
                .field("searcher", &searcher.as_ref().map(|(name, _)| name))
                .finish(),
        }
    }
}

/// The text with the user's name put in.
pub(crate) fn filled_in(filter: &str, user: &str) -> String {
    filter.replace("$username", &name::in_filter(user))
}

/// What stands where an option should.
pub const NO_PAIR: &str = "an LDAP option is NAME=VALUE; a VALUE with spaces or commas needs double quotes";

/// The names of all options.
pub(crate) const NAMES: &[&str] = &[
    "ldapserver",
    "ldapport",
    "ldapscheme",
    "ldaptls",
    "ldapurl",
    "ldapprefix",
    "ldapsuffix",
    "ldapbasedn",
    "ldapbinddn",
    "ldapbindpasswd",
    "ldapsearchattribute",
    "ldapsearchfilter",
];

/// Takes options one after the other.
#[derive(Clone, Default)]
pub struct Builder {
    server: String,
    port: Option<u16>,
    ldaps: bool,
    start_tls: bool,
    prefix: Option<String>,
    suffix: Option<String>,
    base: Option<String>,
    bind_name: Option<String>,
    bind_password: Option<Zeroizing<String>>,
    attribute: Option<String>,
    filter: Option<String>,
    scope: Option<Scope>,
    given: Vec<&'static str>,
}

impl Builder {
    /// Somebody has set something.
    pub fn is_given(&self) -> bool {
        !self.given.is_empty()
    }

    /// An option called `name`.
    ///
    /// # Errors
    /// There is none, it was set before, or its value cannot be: a sentence without its full stop, which
    /// contains no password.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let Some(known) = NAMES.iter().find(|known| **known == name) else {
            // What does not begin like one may be the rest of a password.
            let named = if name.starts_with("ldap") {
                format!("unknown option `{name}`")
            } else {
                NO_PAIR.to_owned()
            };
            return Err(format!("{named}; options are {}", NAMES.join(", ")));
        };
        if self.given.contains(known) {
            return Err(format!("{known} is set twice"));
        }
        self.given.push(known);
        let text = || Some(value.to_owned());
        match *known {
            "ldapserver" => self.server = value.to_owned(),
            "ldapport" => self.port = Some(port(value)?),
            "ldapscheme" => {
                self.ldaps = match value {
                    "ldap" => false,
                    "ldaps" => true,
                    other => return Err(format!("ldapscheme must be ldap or ldaps, not `{other}`")),
                }
            }
            "ldaptls" => {
                self.start_tls = match value {
                    "1" => true,
                    "0" => false,
                    other => return Err(format!("ldaptls must be 1 or 0, not `{other}`")),
                }
            }
            "ldapurl" => self.url(value).map_err(|why| format!("ldapurl {why}"))?,
            "ldapprefix" => self.prefix = text(),
            "ldapsuffix" => self.suffix = text(),
            "ldapbasedn" => self.base = text(),
            "ldapbinddn" => self.bind_name = text(),
            "ldapbindpasswd" => self.bind_password = Some(Zeroizing::new(value.to_owned())),
            "ldapsearchattribute" => self.attribute = text(),
            _ => self.filter = text(),
        }
        Ok(())
    }

    fn url(&mut self, url: &str) -> Result<(), String> {
        let parts = parse(url)?;
        self.ldaps = parts.ldaps;
        self.server = parts.host;
        self.port = parts.port.or(self.port);
        self.base = parts.base.or_else(|| self.base.take());
        self.attribute = parts.attribute.or_else(|| self.attribute.take());
        self.filter = parts.filter.or_else(|| self.filter.take());
        self.scope = Some(parts.scope);
        Ok(())
    }

    /// What they come to.
    ///
    /// # Errors
    /// Options that do not go together, or one that is missing: a sentence without its full stop.
    pub fn finish(self) -> Result<Options, String> {
        if self.ldaps && self.start_tls {
            return Err(
                "ldaptls=1 begins TLS inside a connection in clear: it is for ldap, not for ldaps".to_owned()
            );
        }
        let encryption = match (self.ldaps, self.start_tls) {
            (true, _) => Encryption::Ldaps,
            (_, true) => Encryption::StartTls,
            _ => Encryption::None,
        };
        let hosts = self.hosts()?;
        let way = if self.prefix.is_some() || self.suffix.is_some() { self.bind()? } else { self.search()? };
        Ok(Options { hosts, encryption, way })
    }

    fn hosts(&self) -> Result<Vec<(String, u16)>, String> {
        let port = self.port.unwrap_or(if self.ldaps { 636 } else { 389 });
        let mut hosts = Vec::new();
        for one in self.server.split_whitespace() {
            let (host, own) = split_port(one).map_err(|why| format!("ldapserver {why}"))?;
            hosts.push((host.to_owned(), own.unwrap_or(port)));
        }
        if hosts.is_empty() {
            return Err("ldapserver or a host in ldapurl is missing: Weir does not look for servers in DNS"
                .to_owned());
        }
        Ok(hosts)
    }

    fn bind(self) -> Result<Way, String> {
        let of_search = [
            ("ldapbasedn", self.base.is_some()),
            ("ldapbinddn", self.bind_name.is_some()),
            ("ldapbindpasswd", self.bind_password.is_some()),
            ("ldapsearchattribute", self.attribute.is_some()),
            ("ldapsearchfilter", self.filter.is_some()),
            ("ldapurl", self.given.contains(&"ldapurl")),
        ];
        if let Some((name, _)) = of_search.iter().find(|(_, is_given)| *is_given) {
            return Err(format!(
                "{name} searches for the user, ldapprefix and ldapsuffix name it without a search: use one of the two"
            ));
        }
        Ok(Way::Bind { prefix: self.prefix.unwrap_or_default(), suffix: self.suffix.unwrap_or_default() })
    }

    fn search(self) -> Result<Way, String> {
        let Some(base) = self.base else {
            return Err(
                "ldapbasedn, ldapprefix or ldapsuffix is missing: which entry is the user's?".to_owned()
            );
        };
        let filter = match (self.attribute, self.filter) {
            (Some(_), Some(_)) => {
                return Err("ldapsearchattribute and ldapsearchfilter exclude each other".to_owned());
            }
            (attribute, None) => {
                let attribute = attribute.as_deref().unwrap_or("uid");
                check_attribute(attribute).map_err(|why| format!("ldapsearchattribute {why}"))?;
                format!("({attribute}=$username)")
            }
            (None, Some(filter)) => filter,
        };
        put_filter(&mut Vec::new(), &filled_in(&filter, "x"))
            .map_err(|why| format!("ldapsearchfilter {why}"))?;
        if !filter.contains("$username") {
            return Err("ldapsearchfilter needs $username where the user's name belongs".to_owned());
        }
        let password = self.bind_password.unwrap_or_default();
        let searcher = match self.bind_name.filter(|name| !name.is_empty()) {
            Some(_) if password.is_empty() => {
                return Err(
                    "ldapbinddn needs ldapbindpasswd: without a password a server takes it for an anonymous \
                            user; leave out both to search as one"
                        .to_owned(),
                );
            }
            Some(name) => Some((name, password)),
            None if !password.is_empty() => return Err("ldapbindpasswd needs ldapbinddn".to_owned()),
            None => None,
        };
        Ok(Way::Search { base, scope: self.scope.unwrap_or(Scope::Sub), filter, searcher })
    }
}

/// Without passwords.
impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("given", &self.given).finish_non_exhaustive()
    }
}

fn port(text: &str) -> Result<u16, String> {
    match text.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("ldapport must be a number from 1 to 65535, not `{text}`")),
    }
}

/// The pairs of PgBouncer's `auth_ldap_options`: `name=value`, separated by blanks or commas; a value in
/// double quotes may have both, and a quote in it is written twice.
///
/// # Errors
/// What is no pair, as a sentence without its full stop.
pub fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\t', ',', '\r', '\n']);
    while !rest.is_empty() {
        let Some((name, behind)) = rest.split_once('=') else { return Err(NO_PAIR.to_owned()) };
        let name = name.trim_matches('"');
        if name.is_empty() || name.contains([' ', '\t', ',', '"']) {
            return Err(NO_PAIR.to_owned());
        }
        let mut value = String::new();
        let mut chars = behind.char_indices().peekable();
        let mut open = false;
        let mut end = behind.len();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' if open && chars.peek().is_some_and(|(_, next)| *next == '"') => {
                    value.push('"');
                    chars.next();
                }
                '"' => open = !open,
                c if !open && (c.is_whitespace() || c == ',') => {
                    end = at;
                    break;
                }
                c => value.push(c),
            }
        }
        if open {
            return Err(format!("the quotes of {name} have no end"));
        }
        found.push((name.to_owned(), value));
        rest = behind[end..].trim_start_matches([' ', '\t', ',', '\r', '\n']);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Result<Options, String> {
        let mut builder = Builder::default();
        for (name, value) in pairs(text)? {
            builder.set(&name, &value)?;
        }
        builder.finish()
    }

    #[test]
    fn examples_of_postgresqls_manual() {
        let simple =
            options(r#"ldapserver=ldap.example.net ldapprefix="cn=" ldapsuffix=", dc=example, dc=net""#);
        let simple = simple.unwrap();
        assert_eq!(simple.hosts, [("ldap.example.net".to_owned(), 389)]);
        assert_eq!(simple.name_of("ann").as_deref(), Some("cn=ann, dc=example, dc=net"));
        assert_eq!(simple.name_of("a,b").as_deref(), Some("cn=a\\,b, dc=example, dc=net"));
        let search =
            options(r#"ldapserver=ldap.example.net ldapbasedn="dc=example, dc=net" ldapsearchattribute=uid"#);
        let filter = |options: &Options| match &options.way {
            Way::Search { filter, scope, .. } => (filter.clone(), *scope),
            Way::Bind { .. } => panic!("it searches"),
        };
        let search = search.unwrap();
        assert_eq!(filter(&search), ("(uid=$username)".to_owned(), Scope::Sub));
        assert_eq!(search.name_of("ann"), None);
        let url = options(r#"ldapurl="ldap://ldap.example.net/dc=example,dc=net?uid?sub""#).unwrap();
        assert_eq!(filter(&url), ("(uid=$username)".to_owned(), Scope::Sub));
        let filtered = options(
            r#"ldapserver=a ldapbasedn="dc=x" ldapsearchfilter="(|(uid=$username)(mail=$username))" ldaptls=1"#,
        );
        let filtered = filtered.unwrap();
        assert_eq!(filtered.encryption, Encryption::StartTls);
        assert_eq!(filter(&filtered).0, "(|(uid=$username)(mail=$username))");
        assert_eq!(filled_in("(|(uid=$username)(mail=$username))", "a*"), "(|(uid=a\\2a)(mail=a\\2a))");
    }

    #[test]
    fn hosts_ports_and_schemes() {
        let of = |text: &str| options(&format!("{text} ldapbasedn=dc=x")).unwrap();
        let two = of(r#"ldapserver="a b:1390 [::1]:3" ldapport=2"#);
        assert_eq!(two.hosts, [("a".to_owned(), 2), ("b".to_owned(), 1390), ("::1".to_owned(), 3)]);
        assert_eq!(two.url(&two.hosts[2]), "ldap://[::1]:3");
        let ldaps = of("ldapserver=a ldapscheme=ldaps");
        assert_eq!((ldaps.hosts[0].1, ldaps.encryption), (636, Encryption::Ldaps));
        assert_eq!(ldaps.url(&ldaps.hosts[0]), "ldaps://a:636");
        let url = of("ldapurl=ldaps://a:7/");
        assert_eq!((url.hosts[0].1, url.encryption), (7, Encryption::Ldaps));
    }

    #[test]
    fn names_of_active_directory_are_no_dns() {
        let mail = options("ldapserver=a ldapsuffix=@example.net").unwrap();
        assert_eq!(mail.name_of("a+b").as_deref(), Some("a+b@example.net"));
        let domain = options("ldapserver=a ldapprefix=EXAMPLE\\").unwrap();
        assert_eq!(domain.name_of("ann").as_deref(), Some("EXAMPLE\\ann"));
    }

    #[test]
    fn what_does_not_go_together_is_named() {
        for (text, wanted) in [
            ("", "ldapserver or a host in ldapurl is missing"),
            ("ldapserver=a", "ldapbasedn, ldapprefix or ldapsuffix is missing"),
            ("ldapbasedn=dc=x", "ldapserver or a host"),
            ("ldapserver=a ldapprefix=cn= ldapbasedn=dc=x", "ldapbasedn searches"),
            ("ldapserver=a ldapsuffix=x ldapbindpasswd=secret1", "ldapbindpasswd searches"),
            ("ldapprefix=cn= ldapurl=ldap://a/", "ldapurl searches"),
            (
                "ldapserver=a ldapbasedn=dc=x ldapsearchattribute=uid ldapsearchfilter=(a=$username)",
                "exclude each other",
            ),
            ("ldapserver=a ldapbasedn=dc=x ldapsearchattribute=u(d", "has `u(d` where"),
            ("ldapserver=a ldapbasedn=dc=x ldapsearchfilter=(a=$username", "without its `)`"),
            ("ldapserver=a ldapbasedn=dc=x ldapsearchfilter=(a=b)", "needs $username"),
            ("ldapserver=a ldapbasedn=dc=x ldapbinddn=cn=a", "ldapbinddn needs ldapbindpasswd"),
            ("ldapserver=a ldapbasedn=dc=x ldapbindpasswd=secret1", "ldapbindpasswd needs ldapbinddn"),
            ("ldapserver=a ldapbasedn=dc=x ldapscheme=ldaps ldaptls=1", "for ldap, not for ldaps"),
            ("ldapserver=a ldapscheme=ldapi", "ldap or ldaps, not `ldapi`"),
            ("ldapserver=a ldaptls=yes", "1 or 0, not `yes`"),
            ("ldapport=0", "ldapport must be"),
            ("ldapserver=a:x ldapbasedn=dc=x", "ldapserver has the port `x`"),
            ("ldapurl=http://a/", "ldapurl has the scheme `http`"),
            ("ldapserver=a ldapserver=b", "ldapserver is set twice"),
            ("ldapnosuch=secret1", "unknown option `ldapnosuch`; options are ldapserver, "),
            ("ldapserver=a ldapbindpasswd=x,secret1=y", "needs double quotes; options are ldapserver, "),
            ("ldapserver=a ldapbindpasswd=x secret1", "an LDAP option is NAME=VALUE"),
            ("ldapbinddn=\"cn=a", "the quotes of ldapbinddn have no end"),
            ("ldapserver", "an LDAP option is NAME=VALUE"),
            ("ldapbasedn=dc=a, dc=b", "a VALUE with spaces or commas needs double quotes"),
        ] {
            let why = options(text).unwrap_err();
            assert!(why.contains(wanted), "{text}: {why}");
            assert!(!why.contains("secret1"), "{why}");
        }
    }

    #[test]
    fn pairs_as_pgbouncer_reads_them() {
        let read = |text: &str| -> Vec<(String, String)> { pairs(text).unwrap() };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read(""), []);
        assert_eq!(read("a=1, b=2\tc=3\n"), [pair("a", "1"), pair("b", "2"), pair("c", "3")]);
        assert_eq!(read(r#"a="x, ""y""" b=c#d"#), [pair("a", "x, \"y\""), pair("b", "c#d")]);
        assert_eq!(read("a= b=2"), [pair("a", ""), pair("b", "2")]);
    }

    #[test]
    fn debug_tells_no_password() {
        let found = options("ldapserver=a ldapbasedn=dc=x ldapbinddn=cn=f ldapbindpasswd=hunter2").unwrap();
        assert!(!format!("{found:?}").contains("hunter2"));
        let mut builder = Builder::default();
        builder.set("ldapbindpasswd", "hunter2").unwrap();
        assert!(builder.is_given() && !format!("{builder:?}").contains("hunter2"));
    }
}
