//! The checks of databases: a server's own information about the connections it accepts.
//!
//! Owns: one blocking connection to each URL, read-only statements, and the checks of their answers. Must not
//! do: change anything; keep a password in a finding.

pub mod connection;
mod mysql;
mod mysql_ask;
mod postgres;
mod postgres_ask;

use crate::cure::Cure;
use crate::explain;
use crate::finding::{Finding, State};
use crate::question::Question;
use connection::{Connection, DbError, Facts};
use std::io;
use std::sync::Arc;
use weir_config::{DatabaseUrl, Protocol, Server, ServerTls};
use weir_net::Target;
use weir_session::login::Trust;
use weir_tls::SslMode;

/// A database to look at.
#[derive(Debug, Clone)]
pub struct Place {
    /// What the user wrote, parsed.
    pub url: DatabaseUrl,
    /// The first address of its name, or its socket.
    pub target: Target,
    /// TLS, if there may be any: what the URL says, or `prefer`.
    pub tls: Option<Arc<ServerTls>>,
    /// MySQL: what makes the server worth a password it can read.
    pub trust: Trust,
    /// The URL without its password.
    pub shown: String,
}

impl Place {
    /// Parses a URL and looks its host up. The error has no password in it.
    ///
    /// # Errors
    /// The URL is wrong, the environment lacks its password, its host cannot be resolved, or a file of its
    /// TLS options cannot be read.
    pub fn parse(text: &str) -> Result<Place, String> {
        let url = DatabaseUrl::parse(&weir_config::url_with_password(text)?)?;
        let user = url.user.clone().unwrap_or_else(|| default_user(url.protocol).to_owned());
        let database = url.database.clone().unwrap_or_default();
        let shown = format!("{}://{user}@{}/{database}", url.protocol.name(), url.server);
        let target = target(&url.server).map_err(|error| format!("{shown}: {error}"))?;
        let tls = ServerTls::of_url(&url, SslMode::Prefer, 0).map_err(|error| format!("{shown}: {error}"))?;
        let trust = weir_config::trust_of_url(&url, tls.as_deref());
        let trust = trust.map_err(|error| format!("{shown}: {error}"))?;
        Ok(Place { url, target, tls, trust, shown })
    }

    /// User to log in as.
    pub fn user(&self) -> &str {
        self.url.user.as_deref().unwrap_or_else(|| default_user(self.url.protocol))
    }
}

fn default_user(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Postgres => "postgres",
        Protocol::Mysql => "root",
    }
}

fn target(server: &Server) -> io::Result<Target> {
    match server {
        Server::Unix(path) => Ok(Target::Unix(path.clone())),
        Server::Tcp { host, .. } => {
            let first = server.resolve()?.into_iter().next();
            let none = || io::Error::new(io::ErrorKind::NotFound, format!("no address for {host}"));
            first.map(Target::Tcp).ok_or_else(none)
        }
    }
}

/// Logs in, asks, and judges the answers against the question.
pub fn check(place: &Place, ask: &Question) -> Vec<Finding> {
    let outcome = Connection::open(place).and_then(|mut connection| facts(place, &mut connection));
    let findings = match outcome {
        Ok(facts) => judge(place.url.protocol, &facts, ask),
        Err(error) => vec![refused(&error)],
    };
    findings.into_iter().map(|finding| finding.of(&place.shown)).collect()
}

fn facts(place: &Place, connection: &mut Connection) -> Result<Facts, DbError> {
    match place.url.protocol {
        Protocol::Postgres => postgres_ask::ask(connection),
        Protocol::Mysql => mysql_ask::ask(connection),
    }
}

/// The checks of one protocol on what a server said.
pub fn judge(protocol: Protocol, facts: &Facts, ask: &Question) -> Vec<Finding> {
    match protocol {
        Protocol::Postgres => postgres::judge(facts, ask),
        Protocol::Mysql => mysql::judge(facts, ask),
    }
}

/// A login that failed is a finding: its words are often the symptom.
fn refused(error: &DbError) -> Finding {
    let finding =
        Finding::judged("database_login", State::Blocker, format!("cannot ask the database: {error}"));
    match explain::best(&error.to_string()) {
        Some(entry) => {
            let finding = finding.breaks("what it means", entry.cause);
            entry.cures.iter().fold(finding, |finding, cure| finding.cure(Cure::advice(*cure)))
        }
        None => finding,
    }
}
