//! The address of a database and the login, as a URL.
//!
//! `postgres://user:password@host:port/database?sslmode=require`, `mysql://...`: the same URLs and parameters
//! as in the configuration of a proxy ([`weir_config::DatabaseUrl`]). Defaults: this machine, `postgres` or
//! `root`, no TLS. A load generator does not choose TLS by itself, so that it is clear what was measured.

use std::fmt;
use std::net::ToSocketAddrs;
use std::sync::Arc;
use weir_auth::Secret;
use weir_config::{DatabaseUrl, Protocol, Server, ServerTls};
use weir_net::Target;
use weir_session::login::{TlsWish, Trust};
use weir_tls::SslMode;

/// TLS sessions of one server that are remembered, when they are resumed at all: more than logins under way.
const SESSIONS: usize = 4096;

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
    /// TLS, if there may be any.
    pub tls: Option<Arc<ServerTls>>,
    /// MySQL: what makes the server worth a password it can read.
    pub trust: Trust,
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
    /// Parses a URL and resolves its host (the first address counts). The error has no password in it.
    ///
    /// # Errors
    /// The URL is wrong, its host cannot be resolved, or a file of its TLS options cannot be read.
    pub fn parse(text: &str) -> Result<Url, String> {
        let url = DatabaseUrl::parse_or_local(text)?;
        let (dialect, default_user) = match url.protocol {
            Protocol::Postgres => (Dialect::Postgres, "postgres"),
            Protocol::Mysql => (Dialect::Mysql, "root"),
        };
        let user = url.user.clone().unwrap_or_else(|| default_user.to_owned());
        let database = match (&url.database, dialect) {
            (Some(database), _) => database.clone(),
            (None, Dialect::Postgres) => user.clone(),
            (None, Dialect::Mysql) => String::new(),
        };
        let place = match &url.server {
            Server::Unix(path) => path.display().to_string().replace('/', "%2F"),
            tcp @ Server::Tcp { .. } => tcp.to_string(),
        };
        let mut shown = format!("{}://{user}@{place}/{database}", url.protocol.name());
        let tls = ServerTls::of_url(&url, SslMode::Disable, 0)?;
        if let Some(tls) = &tls {
            shown.push_str(&format!("?sslmode={}", tls.mode.name()));
            shown.push_str(if tls.direct { "&sslnegotiation=direct" } else { "" });
        }
        let trust = weir_config::trust_of_url(&url, tls.as_deref())?;
        let secret = url.password.as_deref().map(|password| Arc::new(Secret::plain(password)));
        Ok(Url { dialect, user, secret, target: target(&url.server)?, database, tls, trust, shown })
    }

    /// The same; with TLS, sessions are resumed.
    ///
    /// # Errors
    /// The TLS settings cannot be made again.
    pub fn resuming(&self) -> Result<Url, String> {
        let tls = self.tls.as_ref().map(|tls| tls.resuming(SESSIONS)).transpose()?;
        Ok(Url { tls: tls.map(Arc::new), ..self.clone() })
    }

    /// What `allow` and `prefer` came to is what all connections do from here on: they are to be alike.
    pub fn decided(&self, is_tls: bool) -> Url {
        let tls = self.tls.as_ref().filter(|_| is_tls).map(|tls| match tls.mode.is_required() {
            true => Arc::clone(tls),
            false => Arc::new(ServerTls { mode: SslMode::Require, ..ServerTls::clone(tls) }),
        });
        Url { tls, ..self.clone() }
    }

    /// What to ask of the server first, and then if it refuses that for its transport.
    pub fn wishes(&self) -> &'static [TlsWish] {
        weir_config::tls_wishes(self.tls.as_ref().map_or(SslMode::Disable, |tls| tls.mode))
    }
}

fn target(server: &Server) -> Result<Target, String> {
    match server {
        Server::Unix(path) => Ok(Target::Unix(path.clone())),
        Server::Tcp { host, port } => {
            let mut found =
                (host.as_str(), *port).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
            found.next().map(Target::Tcp).ok_or_else(|| format!("{host}: no address"))
        }
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
        assert!(pg.tls.is_none());
        let my = Url::parse("mysql://127.0.0.1").unwrap();
        assert_eq!((my.user.as_str(), my.database.as_str()), ("root", ""));
        assert_eq!(my.target, Target::Tcp("127.0.0.1:3306".parse().unwrap()));
        let six = Url::parse("mysql://a@[::1]:4000/d").unwrap();
        assert_eq!(six.target, Target::Tcp("[::1]:4000".parse().unwrap()));
        assert_eq!(six.shown, "mysql://a@[::1]:4000/d");
    }

    #[test]
    fn unix_sockets() {
        let pg = Url::parse("postgres://app@%2Frun%2Fpg:15600/d").unwrap();
        assert_eq!(pg.target, Target::Unix("/run/pg/.s.PGSQL.15600".into()));
        let pg = Url::parse("postgres://app@/d?host=/run/pg&sslmode=require").unwrap();
        assert_eq!(pg.target, Target::Unix("/run/pg/.s.PGSQL.5432".into()));
        assert!(pg.tls.is_none(), "libpq has no TLS on Unix sockets");
        let my = Url::parse("mysql://app@/d?socket=/run/my.sock").unwrap();
        assert_eq!(my.target, Target::Unix("/run/my.sock".into()));
    }

    #[test]
    fn tls_in_both_families_words() {
        for (text, mode) in [
            ("postgres://a@127.0.0.1/d?sslmode=allow", SslMode::Allow),
            ("postgres://a@127.0.0.1/d?sslmode=prefer", SslMode::Prefer),
            ("postgres://a@127.0.0.1/d?sslmode=require", SslMode::Require),
            ("mysql://a@127.0.0.1/d?ssl-mode=PREFERRED", SslMode::Prefer),
            ("mysql://a@127.0.0.1/d?ssl-mode=REQUIRED", SslMode::Require),
            ("mysql://a@/d?socket=/run/my.sock&ssl-mode=REQUIRED", SslMode::Require),
        ] {
            assert_eq!(Url::parse(text).unwrap().tls.unwrap().mode, mode, "{text}");
        }
        for text in ["postgres://a@127.0.0.1/d?sslmode=disable", "mysql://a@127.0.0.1/d?ssl-mode=DISABLED"] {
            assert!(Url::parse(text).unwrap().tls.is_none(), "{text}");
        }
        let url = Url::parse("postgres://a@localhost:1/d?sslmode=require&sslnegotiation=direct").unwrap();
        assert_eq!(url.shown, "postgres://a@localhost:1/d?sslmode=require&sslnegotiation=direct");
        assert_eq!(url.tls.unwrap().host, "localhost");
        for (text, wanted) in [
            ("postgres://a@127.0.0.1/d?sslmode=maybe", "sslmode must be one of"),
            ("postgres://a@127.0.0.1/d?sslnegotiation=direct&sslmode=prefer", "needs sslmode=require"),
            ("mysql://a@127.0.0.1/d?ssl-mode=REQUIRED&sslnegotiation=direct", "PostgreSQL's"),
            ("postgres://a@127.0.0.1/d?sslmode=verify-ca&sslrootcert=/no/such/file", "/no/such/file"),
            ("mysql://a@127.0.0.1/d?ssl-mode=REQUIRED&ssl-cert=x.pem", "one of sslcert and sslkey"),
        ] {
            let error = Url::parse(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn what_prefer_came_to_is_kept() {
        let url = Url::parse("postgres://a@127.0.0.1/d?sslmode=prefer").unwrap();
        assert_eq!(url.wishes(), [TlsWish::IfOffered, TlsWish::Off]);
        assert_eq!(url.decided(true).wishes(), [TlsWish::Required]);
        assert_eq!(url.decided(false).wishes(), [TlsWish::Off]);
        let url = Url::parse("postgres://a@127.0.0.1/d?sslmode=require").unwrap();
        assert_eq!(url.resuming().unwrap().decided(true).tls.unwrap().settings.sessions, SESSIONS);
    }

    #[test]
    fn errors_never_show_the_password() {
        for text in
            ["postgres://app:hunter2@127.0.0.1:x/d", "http://app:hunter2@h/d", "mysql://app:hunter2@h/d?z=1"]
        {
            let error = Url::parse(text).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert!(Url::parse("nonsense").is_err());
        assert!(Url::parse("postgres://a%4@127.0.0.1").is_err());
    }
}
