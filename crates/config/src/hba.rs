//! Who may log in from where: files in the format of PostgreSQL's pg_hba.conf (`auth_type = hba`).
//!
//! Owns: the format of the file with all it includes, and which of its lines decides about a login. Must not
//! know: passwords, and how a proof is given.
//!
//! Invariants: the first matching line decides, and without one the login is refused; a line that cannot be
//! applied exactly is an error with its place, so that no later line decides instead.

mod read;

use crate::IdentMap;
use crate::problem::Place;
use crate::route::Origin;
use crate::vouch::Authority;
use ipnet::IpNet;
use regex_lite::Regex;
use std::sync::Arc;
use weir_session::AuthMethod;

pub(crate) use read::read_hba;

/// The lines of a file, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hba {
    rules: Vec<Rule>,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    place: Place,
    via: Via,
    databases: Vec<Name>,
    users: Vec<Name>,
    from: From,
    /// `None`: reject.
    pub(crate) method: Option<AuthMethod>,
    /// Which names of certificates or accounts may be which user.
    pub(crate) map: Option<Arc<IdentMap>>,
    certificate: Certificate,
    /// Who knows the passwords, for the methods that ask somebody.
    pub(crate) authority: Option<Authority>,
}

/// Its first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Via {
    Local,
    Host,
    HostSsl,
    HostNoSsl,
    /// With GSSAPI encryption, which Weir never has.
    Never,
}

/// What a database or a user must be called.
#[derive(Debug, Clone)]
enum Name {
    All,
    SameUser,
    /// Replication connections, which Weir has none of.
    Never,
    Is(String),
    Like(Regex),
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Name::All, Name::All) | (Name::SameUser, Name::SameUser) | (Name::Never, Name::Never) => true,
            (Name::Is(a), Name::Is(b)) => a == b,
            (Name::Like(a), Name::Like(b)) => a.as_str() == b.as_str(),
            _ => false,
        }
    }
}

impl Eq for Name {}

/// Where a client comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum From {
    Anywhere,
    Networks(Vec<IpNet>),
}

/// What is asked of a client's certificate beside the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certificate {
    Nothing,
    Verified,
    OfUser,
}

/// What the file says of a login.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decision<'a> {
    /// By this line and its method.
    By(&'a Rule, AuthMethod),
    /// By this line it is refused.
    Rejected(&'a Rule),
    /// It is let in by this line only with a certificate that it has not shown.
    WithoutCertificate(&'a Rule),
    /// No line fits.
    NoLine,
}

impl Hba {
    /// What becomes of a login.
    pub(crate) fn decide(&self, from: Origin<'_>, database: &str, user: &str) -> Decision<'_> {
        let Some(rule) = self.rules.iter().find(|rule| rule.fits(from, database, user)) else {
            return Decision::NoLine;
        };
        match rule.method {
            None => Decision::Rejected(rule),
            Some(_) if !rule.is_shown(from, user) => Decision::WithoutCertificate(rule),
            Some(method) => Decision::By(rule, method),
        }
    }

    /// Who is asked about passwords.
    pub(crate) fn authorities(&self) -> impl Iterator<Item = &Authority> {
        self.rules.iter().filter_map(|rule| rule.authority.as_ref())
    }

    /// Lines of this method.
    pub(crate) fn lines_of(&self, method: AuthMethod) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| rule.method == Some(method))
    }
}

impl Rule {
    /// Where it stands.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    fn fits(&self, from: Origin<'_>, database: &str, user: &str) -> bool {
        let way = match self.via {
            Via::Local => from.unix,
            Via::Host => !from.unix,
            Via::HostSsl => !from.unix && from.tls,
            Via::HostNoSsl => !from.unix && !from.tls,
            Via::Never => false,
        };
        way && self.has_address(from) && has(&self.databases, database, user) && has(&self.users, user, user)
    }

    fn has_address(&self, from: Origin<'_>) -> bool {
        match &self.from {
            From::Anywhere => true,
            From::Networks(networks) => from
                .address
                .is_some_and(|address| networks.iter().any(|net| net.contains(&address.to_canonical()))),
        }
    }

    fn is_shown(&self, from: Origin<'_>, user: &str) -> bool {
        match (self.certificate, from.certificate, &self.map) {
            (Certificate::Nothing, _, _) | (Certificate::Verified, Some(_), _) => true,
            (Certificate::Verified | Certificate::OfUser, None, _) => false,
            (Certificate::OfUser, Some(name), None) => name == user,
            (Certificate::OfUser, Some(name), Some(map)) => map.allows(name, user),
        }
    }
}

fn has(names: &[Name], name: &str, user: &str) -> bool {
    names.iter().any(|one| match one {
        Name::All => true,
        Name::SameUser => name == user,
        Name::Never => false,
        Name::Is(text) => text == name,
        Name::Like(regex) => regex.is_match(name),
    })
}

#[cfg(test)]
mod tests;
