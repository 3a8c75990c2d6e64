//! Database URLs: `postgres://user:password@host:port/database?key=value` and `mysql://...`.
//!
//! Must not do: quote a URL in a message. It contains a password.

use crate::values::did_you_mean;
use crate::{Protocol, Server};
use std::borrow::Cow;
use std::path::PathBuf;
use weir_tls::SslMode;

/// What a URL says.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    /// From the scheme.
    pub protocol: Protocol,
    /// User to log in as.
    pub user: Option<String>,
    /// Its password.
    pub password: Option<String>,
    /// Where the database is.
    pub server: Server,
    /// What it says about TLS.
    pub tls: UrlTls,
    /// Database (schema).
    pub database: Option<String>,
}

/// What a URL says about TLS. What it does not say is as `tls.server` has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UrlTls {
    /// `sslmode`, in either family's words.
    pub mode: Option<SslMode>,
    /// `sslrootcert`: a file, or `system`.
    pub ca: Option<String>,
    /// `sslcert`.
    pub certificate: Option<String>,
    /// `sslkey`.
    pub key: Option<String>,
    /// `sslnegotiation=direct`.
    pub direct: Option<bool>,
    /// `server-public-key-path`: MySQL's RSA key.
    pub public_key: Option<String>,
    /// `get-server-public-key`: a MySQL server that nothing proves gets the password if it asks for it.
    pub trust_unverified: Option<bool>,
}

/// Without the password.
impl std::fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let DatabaseUrl { protocol, user, password: _, server, tls: _, database } = self;
        let shown = (protocol, user, server, database);
        f.debug_tuple("DatabaseUrl").field(&shown).finish()
    }
}

const PARAMETERS: [&str; 17] = [
    "host",
    "port",
    "socket",
    "user",
    "password",
    "dbname",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslnegotiation",
    "ssl-mode",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "server-public-key-path",
    "get-server-public-key",
];

impl DatabaseUrl {
    /// Reads a URL.
    ///
    /// # Errors
    /// What is wrong, as a sentence without its full stop. It never contains the password.
    pub fn parse(url: &str) -> Result<DatabaseUrl, String> {
        DatabaseUrl::parse_with(url, None)
    }

    /// The same; a URL that names no host means this machine.
    ///
    /// # Errors
    /// As [`DatabaseUrl::parse`].
    pub fn parse_or_local(url: &str) -> Result<DatabaseUrl, String> {
        DatabaseUrl::parse_with(url, Some("127.0.0.1"))
    }

    fn parse_with(url: &str, no_host: Option<&str>) -> Result<DatabaseUrl, String> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or("must be a URL such as postgres://user:password@host:5432/database")?;
        let protocol = match scheme {
            "postgres" | "postgresql" => Protocol::Postgres,
            "mysql" | "mariadb" => Protocol::Mysql,
            other => {
                let near = did_you_mean(other, &["postgres", "postgresql", "mysql", "mariadb"]);
                return Err(format!("the URL must begin with postgres:// or mysql://, not {other}://{near}"));
            }
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        // The last `@`: a careless password may contain one.
        let (login, address) = match authority.rsplit_once('@') {
            Some((login, address)) => (Some(login), address),
            None => (None, authority),
        };
        let mut parts = Parts::default();
        if let Some(login) = login {
            let (user, password) = match login.split_once(':') {
                Some((user, password)) => (user, Some(password)),
                None => (login, None),
            };
            parts.user = non_empty(decode(user, "user name")?);
            parts.password = password.map(|p| decode(p, "password")).transpose()?.and_then(non_empty);
        }
        let (host, port) = split_port(address)?;
        parts.host = non_empty(decode(host, "host")?);
        parts.port = port.map(parse_port).transpose()?;
        parts.database = non_empty(decode(path.trim_end_matches('/'), "database name")?);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            parts.parameter(&decode(key, "parameter")?, decode(value, "parameter")?.into_owned())?;
        }
        parts.host = parts.host.or_else(|| no_host.map(str::to_owned));
        parts.finish(protocol)
    }
}

#[derive(Default)]
struct Parts {
    user: Option<String>,
    password: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    socket: Option<String>,
    database: Option<String>,
    tls: UrlTls,
}

impl Parts {
    fn parameter(&mut self, key: &str, value: String) -> Result<(), String> {
        match key {
            "host" => self.host = Some(value),
            "port" => self.port = Some(parse_port(&value)?),
            "socket" => self.socket = Some(value),
            "user" => self.user = Some(value),
            "password" => self.password = Some(value),
            "dbname" => self.database = Some(value),
            "sslmode" | "ssl-mode" => {
                let mode = SslMode::from_name(&value);
                let mode = mode.ok_or_else(|| {
                    let modes = SslMode::NAMES.join(", ");
                    format!("{key} must be one of {modes} (or MySQL's words for them), not `{value}`")
                })?;
                self.tls.mode = Some(mode);
            }
            "sslrootcert" | "ssl-ca" => self.tls.ca = Some(value),
            "sslcert" | "ssl-cert" => self.tls.certificate = Some(value),
            "sslkey" | "ssl-key" => self.tls.key = Some(value),
            "sslnegotiation" => match value.as_str() {
                "postgres" => self.tls.direct = Some(false),
                "direct" => self.tls.direct = Some(true),
                _ => return Err(format!("sslnegotiation must be postgres or direct, not `{value}`")),
            },
            "server-public-key-path" => self.tls.public_key = Some(value),
            "get-server-public-key" => match value.as_str() {
                "true" | "1" | "" => self.tls.trust_unverified = Some(true),
                "false" | "0" => self.tls.trust_unverified = Some(false),
                _ => return Err(format!("get-server-public-key must be true or false, not `{value}`")),
            },
            unknown => {
                let near = did_you_mean(unknown, &PARAMETERS);
                return Err(format!("the URL has an unknown parameter `{unknown}`{near}"));
            }
        }
        Ok(())
    }

    fn finish(self, protocol: Protocol) -> Result<DatabaseUrl, String> {
        let port = self.port.unwrap_or(protocol.server_port());
        let server = match (self.socket, self.host) {
            (Some(socket), _) => Server::Unix(PathBuf::from(socket)),
            (None, Some(host)) => server_at(protocol, &host, port)?,
            (None, None) => {
                let example = match protocol {
                    Protocol::Postgres => "?host=/var/run/postgresql",
                    Protocol::Mysql => "?socket=/run/mysqld/mysqld.sock",
                };
                return Err(format!("the URL names no host; for a Unix socket add {example}"));
            }
        };
        Ok(DatabaseUrl {
            protocol,
            user: self.user,
            password: self.password,
            server,
            tls: self.tls,
            database: self.database,
        })
    }
}

/// The server on `host`: a name, an address, or the directory of a Unix socket (MySQL: the socket).
pub(crate) fn server_at(protocol: Protocol, host: &str, port: u16) -> Result<Server, String> {
    if host.contains(',') {
        return Err("names several hosts; Weir does not support that yet: name one".to_owned());
    }
    if !host.starts_with(['/', '@']) {
        return Ok(Server::Tcp { host: host.to_owned(), port });
    }
    Ok(Server::Unix(match protocol {
        Protocol::Postgres => postgres_socket(host, port),
        Protocol::Mysql => PathBuf::from(host),
    }))
}

/// PostgreSQL's socket in a directory, by libpq's rule.
pub(crate) fn postgres_socket(directory: &str, port: u16) -> PathBuf {
    PathBuf::from(format!("{}/.s.PGSQL.{port}", directory.trim_end_matches('/')))
}

/// `host:port`, `[v6]:port` or one of them without a port.
pub(crate) fn split_port(address: &str) -> Result<(&str, Option<&str>), String> {
    if let Some(rest) = address.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or("has a `[` without its `]`")?;
        return match after.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if after.is_empty() => Ok((host, None)),
            None => Err(format!("has `{after}` behind the `]`, where only :PORT may stand")),
        };
    }
    match address.split_once(':') {
        Some((_, rest)) if rest.contains(':') => Ok((address, None)),
        Some((host, "")) => Ok((host, None)),
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((address, None)),
    }
}

/// A port number.
pub(crate) fn parse_port(text: &str) -> Result<u16, String> {
    match text.parse::<u16>() {
        Ok(port) if port > 0 && !text.starts_with('+') => Ok(port),
        _ => Err(format!("must have a port from 1 to 65535, not `{text}`")),
    }
}

fn non_empty(text: Cow<'_, str>) -> Option<String> {
    (!text.is_empty()).then(|| text.into_owned())
}

/// Undoes percent-encoding (RFC 3986, section 2.1).
fn decode<'a>(text: &'a str, what: &str) -> Result<Cow<'a, str>, String> {
    if !text.contains('%') {
        return Ok(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits
            .filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|two| u8::from_str_radix(two, 16).ok())
            .ok_or_else(|| {
                format!(
                    "the {what} in the URL has a % without two hexadecimal digits; a % itself is written %25"
                )
            })?;
        bytes.push(byte);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| format!("the {what} in the URL is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Server {
        Server::Tcp { host: host.into(), port }
    }

    #[test]
    fn good_urls() {
        let parse = |url| DatabaseUrl::parse(url).unwrap();
        let url = parse("postgres://app:secret@127.0.0.1:5432/app");
        assert_eq!(url.protocol, Protocol::Postgres);
        assert_eq!(url.user.as_deref(), Some("app"));
        assert_eq!(url.password.as_deref(), Some("secret"));
        assert_eq!(url.server, tcp("127.0.0.1", 5432));
        assert_eq!(url.database.as_deref(), Some("app"));

        let url = parse("mysql://app@db.example.com");
        assert_eq!((url.protocol, url.password, url.database), (Protocol::Mysql, None, None));
        assert_eq!(url.server, tcp("db.example.com", 3306));

        assert_eq!(parse("postgresql://u@[::1]:7000/d").server, tcp("::1", 7000));
        assert_eq!(parse("postgres://u@[fe80::1]/d").server, tcp("fe80::1", 5432));
        assert_eq!(parse("mariadb://u@h/d").protocol, Protocol::Mysql);
        let socket = Server::Unix("/var/run/postgresql/.s.PGSQL.5432".into());
        assert_eq!(parse("postgres://user@/db?host=/var/run/postgresql").server, socket);
        assert_eq!(parse("postgres://user@%2Fvar%2Frun%2Fpostgresql/db").server, socket);
        let socket = Server::Unix("/var/run/postgresql/.s.PGSQL.6000".into());
        assert_eq!(parse("postgres://user@/db?host=/var/run/postgresql/&port=6000").server, socket);
        let url = parse("mysql://user@localhost/db?socket=/run/mysqld/mysqld.sock");
        assert_eq!(url.server, Server::Unix("/run/mysqld/mysqld.sock".into()));
        let url = parse("mysql://u@h/d?ssl-mode=VERIFY_CA&ssl-ca=ca.pem");
        assert_eq!((url.tls.mode, url.tls.ca.as_deref()), (Some(SslMode::VerifyCa), Some("ca.pem")));
        let url = parse("postgres://u@h/d?sslmode=require&sslnegotiation=direct");
        assert_eq!((url.tls.mode, url.tls.direct), (Some(SslMode::Require), Some(true)));
        let url = parse("postgres://a%40b:p%2Fw%3A%25@h/d%20b?sslmode=prefer");
        assert_eq!((url.user.as_deref(), url.password.as_deref()), (Some("a@b"), Some("p/w:%")));
        assert_eq!(url.database.as_deref(), Some("d b"));
        assert_eq!(parse("postgres://u:p@ss@h/d").password.as_deref(), Some("p@ss"));
    }

    #[test]
    fn bad_urls_say_why_and_keep_the_password() {
        for (url, wanted) in [
            ("app:hunter2@host", "must be a URL such as"),
            ("postgre://u:hunter2@h/d", "did you mean `postgres`?"),
            ("http://u:hunter2@h/d", "must begin with postgres:// or mysql://"),
            ("postgres://u:hunter2@a,b/d", "several hosts"),
            ("postgres://u:hunter2@h:0/d", "port from 1 to 65535, not `0`"),
            ("postgres://u:hunter2@h:99999/d", "port from 1 to 65535, not `99999`"),
            ("postgres://u:hunter2@/d", "names no host; for a Unix socket add ?host="),
            ("mysql://u:hunter2@/d", "names no host; for a Unix socket add ?socket="),
            ("postgres://u:hunter2%zz@h/d", "password in the URL has a %"),
            ("postgres://u:hunter2%ff@h/d", "password in the URL is not UTF-8"),
            ("postgres://u:hunter2@h/d?sslnegotiation=yes", "sslnegotiation must be"),
            ("postgres://u:hunter2@h/d?sslmode=on", "sslmode must be one of"),
            ("postgres://u:hunter2@h/d?prot=1", "unknown parameter `prot`; did you mean `port`?"),
            ("postgres://u:hunter2@[::1/d", "`[` without its `]`"),
            ("postgres://u:hunter2@[::1]5/d", "behind the `]`"),
        ] {
            let error = DatabaseUrl::parse(url).unwrap_err();
            assert!(error.contains(wanted), "{url}: {error}");
            assert!(!error.contains("hunter2"), "{url}: {error}");
        }
    }
}
