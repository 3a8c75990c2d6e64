//! Where a database is and who logs in to it, as a URL.
//!
//! `postgres://user:password@host:port/database`, `mysql://...`. A Unix socket is named by a host of
//! percent-encoded slashes (`postgres://app@%2Frun%2Fpostgresql/app`: the directory, as in libpq; for MySQL
//! the socket itself) or by `?host=/run/postgresql` (`?socket=/run/mysqld/mysqld.sock`).

use std::fmt;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::sync::Arc;
use weir_auth::Secret;
use weir_net::Target;

/// Which protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// PostgreSQL 3.0.
    Postgres,
    /// MySQL and MariaDB.
    Mysql,
}

/// A database and the user who logs in.
#[derive(Clone)]
pub struct Url {
    /// The protocol.
    pub dialect: Dialect,
    /// User to log in as.
    pub user: String,
    /// The password, when the URL has one.
    pub secret: Option<Arc<Secret>>,
    /// Resolved address.
    pub target: Target,
    /// Database (schema) to log in to. PostgreSQL: the user's name when the URL has none. MySQL: may be
    /// empty.
    pub database: String,
    /// The URL without the password, for reports.
    pub shown: String,
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Url {
    /// Parses a URL and resolves its host (the first address counts).
    pub fn parse(text: &str) -> Result<Url, String> {
        let parts = Parts::split(text)?;
        let user = if parts.user.is_empty() { default_user(parts.dialect) } else { parts.user.clone() };
        let database = match (parts.database.is_empty(), parts.dialect) {
            (false, _) => parts.database.clone(),
            (true, Dialect::Postgres) => user.clone(),
            (true, Dialect::Mysql) => String::new(),
        };
        let shown = format!("{}://{}@{}/{}", parts.scheme, user, parts.place(), database);
        let secret = parts.password.as_deref().map(|p| Arc::new(Secret::plain(p)));
        Ok(Url { dialect: parts.dialect, user, secret, target: parts.target()?, database, shown })
    }
}

fn default_user(dialect: Dialect) -> String {
    match dialect {
        Dialect::Postgres => "postgres".to_owned(),
        Dialect::Mysql => "root".to_owned(),
    }
}

/// The pieces of a URL, decoded.
struct Parts {
    dialect: Dialect,
    scheme: String,
    user: String,
    password: Option<String>,
    host: String,
    port: u16,
    socket: Option<String>,
    database: String,
}

impl Parts {
    fn split(text: &str) -> Result<Parts, String> {
        let bad = |why: &str| format!("{}: {why}", without_password(text));
        let (scheme, rest) = text.split_once("://").ok_or_else(|| {
            bad("not a URL; expected postgres://user:password@host:port/database or mysql://...")
        })?;
        let (dialect, default_port) = match scheme {
            "postgres" | "postgresql" => (Dialect::Postgres, 5432),
            "mysql" | "mariadb" => (Dialect::Mysql, 3306),
            other => return Err(bad(&format!("unknown scheme '{other}'; expected postgres or mysql"))),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(decode(password)?)),
            None => (login, None),
        };
        let (host, port) = split_place(place, default_port).map_err(|why| bad(&why))?;
        let host = decode(&host)?;
        let mut socket = host.starts_with('/').then(|| host.clone());
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match (name, dialect) {
                ("host", Dialect::Postgres) | ("socket", Dialect::Mysql) => socket = Some(decode(value)?),
                ("sslmode" | "ssl-mode", _) if matches!(value, "disable" | "DISABLED") => {}
                ("sslmode" | "ssl-mode", _) => {
                    return Err(bad("weir bench has no TLS yet: only sslmode=disable is possible"));
                }
                _ => return Err(bad(&format!("unknown parameter '{name}'"))),
            }
        }
        Ok(Parts {
            dialect,
            scheme: scheme.to_owned(),
            user: decode(user)?,
            password,
            host,
            port,
            socket,
            database: decode(database)?,
        })
    }

    /// Host and port, or the socket, as shown in reports.
    fn place(&self) -> String {
        match &self.socket {
            Some(path) => path.replace('/', "%2F"),
            None if self.host.contains(':') => format!("[{}]:{}", self.host, self.port),
            None => format!("{}:{}", self.host, self.port),
        }
    }

    fn target(&self) -> Result<Target, String> {
        if let Some(path) = &self.socket {
            // libpq's rule: the host names the directory, the port the file in it.
            let path = match self.dialect {
                Dialect::Postgres if !path.contains(".s.PGSQL.") => {
                    PathBuf::from(format!("{path}/.s.PGSQL.{}", self.port))
                }
                Dialect::Postgres | Dialect::Mysql => PathBuf::from(path),
            };
            return Ok(Target::Unix(path));
        }
        let mut found =
            (self.host.as_str(), self.port).to_socket_addrs().map_err(|e| format!("{}: {e}", self.host))?;
        found.next().map(Target::Tcp).ok_or_else(|| format!("{}: no address", self.host))
    }
}

fn split_place(place: &str, default_port: u16) -> Result<(String, u16), String> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("'[' without ']' in the host")?;
            (host, rest.strip_prefix(':'))
        }
        None => match place.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = match port {
        Some(text) if !text.is_empty() => text.parse().map_err(|_| format!("bad port '{text}'"))?,
        Some(_) | None => default_port,
    };
    Ok((if host.is_empty() { "127.0.0.1".to_owned() } else { host.to_owned() }, port))
}

/// Percent-decoding (RFC 3986, section 2.1). Sequences that are no UTF-8 are refused.
pub(crate) fn decode(text: &str) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let hex = |b: Option<u8>| b.and_then(|b| (b as char).to_digit(16));
        match (hex(bytes.next()), hex(bytes.next())) {
            (Some(high), Some(low)) => out.push((high * 16 + low) as u8),
            (None, _) | (_, None) => return Err(format!("'{text}': '%' without two hexadecimal digits")),
        }
    }
    String::from_utf8(out).map_err(|_| format!("'{text}': not UTF-8 after decoding"))
}

/// For error messages about URLs that could not be parsed.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    match rest.rsplit_once('@') {
        Some((login, place)) => {
            format!("{scheme}://{}@{place}", login.split(':').next().unwrap_or_default())
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_postgres_url() {
        let url = Url::parse("postgres://app:s%40cret@127.0.0.1:15600/shop").unwrap();
        assert_eq!(url.dialect, Dialect::Postgres);
        assert_eq!((url.user.as_str(), url.database.as_str()), ("app", "shop"));
        assert!(url.secret.is_some());
        assert_eq!(url.target, Target::Tcp("127.0.0.1:15600".parse().unwrap()));
        assert_eq!(url.to_string(), "postgres://app@127.0.0.1:15600/shop");
    }

    #[test]
    fn defaults() {
        let pg = Url::parse("postgres://").unwrap();
        assert_eq!((pg.user.as_str(), pg.database.as_str()), ("postgres", "postgres"));
        assert_eq!(pg.target, Target::Tcp("127.0.0.1:5432".parse().unwrap()));
        let my = Url::parse("mysql://127.0.0.1").unwrap();
        assert_eq!((my.user.as_str(), my.database.as_str()), ("root", ""));
        assert_eq!(my.target, Target::Tcp("127.0.0.1:3306".parse().unwrap()));
        let six = Url::parse("mysql://a@[::1]:4000/d").unwrap();
        assert_eq!(six.target, Target::Tcp("[::1]:4000".parse().unwrap()));
    }

    #[test]
    fn unix_sockets() {
        let pg = Url::parse("postgres://app@%2Frun%2Fpg:15600/d").unwrap();
        assert_eq!(pg.target, Target::Unix("/run/pg/.s.PGSQL.15600".into()));
        let pg = Url::parse("postgres://app@/d?host=/run/pg").unwrap();
        assert_eq!(pg.target, Target::Unix("/run/pg/.s.PGSQL.5432".into()));
        let my = Url::parse("mysql://app@/d?socket=/run/my.sock").unwrap();
        assert_eq!(my.target, Target::Unix("/run/my.sock".into()));
    }

    #[test]
    fn errors_never_show_the_password() {
        for text in
            ["postgres://app:hunter2@127.0.0.1:x/d", "http://app:hunter2@h/d", "mysql://app:hunter2@h/d?z=1"]
        {
            let error = Url::parse(text).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert!(Url::parse("postgres://a@127.0.0.1/d?sslmode=require").unwrap_err().contains("no TLS yet"));
        assert!(Url::parse("nonsense").is_err());
        assert!(Url::parse("postgres://a%4@127.0.0.1").is_err());
    }
}
