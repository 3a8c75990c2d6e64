//! Whom Weir asks about passwords that it does not know itself: LDAP servers and PAM.
//!
//! Owns: who is asked about a client's password, by the settings and by the line of an HBA file, and which
//! password such a client's servers get. Must not know: how it is asked.
//!
//! Invariant: a method that has nobody to ask is an error of the configuration, not a refused login.

use crate::asking::Learnt;
use crate::draft::Draft;
use crate::problem::{Findings, Place, WarningKind, relative_to};
use crate::registry::Key;
use crate::route::Origin;
use crate::{Auth, Protocol, Realm, Snapshot, User};
use std::path::Path;
use std::sync::Arc;
use weir_auth::Secret;
use weir_auth::secret::SecretKind;
use weir_ldap::{Builder, Encryption, Options};
use weir_session::{AuthMethod, Login};
use weir_tls::{Connector, ConnectorSettings, Verify, read_pem};

/// Where the files of PAM's services are, by the order in which they count.
const PAM_FOLDERS: [&str; 3] = ["/etc/pam.d", "/usr/lib/pam.d", "/usr/etc/pam.d"];

/// Who says whether a client's password is right.
#[derive(Debug, Clone)]
pub enum Voucher {
    /// An LDAP server.
    Ldap {
        /// Which, and what it is asked.
        options: Arc<Options>,
        /// Makes our end of TLS with it; `None`: nothing of it is asked for.
        tls: Option<Connector>,
    },
    /// PAM.
    Pam(PamService),
}

/// What PAM is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PamService {
    /// By the rules of this service.
    pub name: String,
    /// The client's host is told by its name, not by its address.
    pub use_hostname: bool,
}

/// A [`Voucher`] as the configuration names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Authority {
    Ldap(Arc<Options>),
    Pam(PamService),
}

impl Authority {
    fn name(&self) -> &'static str {
        match self {
            Authority::Ldap(_) => "an LDAP server",
            Authority::Pam(_) => "PAM",
        }
    }
}

/// What lines of an HBA file have that say nothing themselves.
#[derive(Debug, Default)]
pub(crate) struct General {
    pub(crate) ldap: Option<Arc<Options>>,
    pub(crate) pam_service: String,
}

/// TLS with LDAP servers.
#[derive(Debug, Clone)]
pub(crate) struct LdapTls {
    connector: Connector,
}

/// `auth_ldap_options` and `pam_service`.
pub(crate) fn general(draft: &mut Draft) -> General {
    let text = draft.values.secret(Key::PostgresAuthLdapOptions).to_owned();
    let place = draft.places.get(&Key::PostgresAuthLdapOptions).cloned();
    let ldap = match text.trim() {
        "" => None,
        text => match options(text) {
            Ok(options) => Some(Arc::new(options)),
            Err(why) => {
                let name = draft.name_of(Key::PostgresAuthLdapOptions);
                draft.findings.problem(place, format!("{name}: {why}"));
                None
            }
        },
    };
    General { ldap, pam_service: draft.values.text(Key::PostgresPamService).to_owned() }
}

fn options(text: &str) -> Result<Options, String> {
    let mut builder = Builder::default();
    for (name, value) in weir_ldap::pairs(text)? {
        builder.set(&name, &value)?;
    }
    builder.finish()
}

/// Who is asked about everybody's password, where auth_type says that somebody is.
pub(crate) fn authority(draft: &mut Draft, auth: Auth, general: &General) -> Option<Authority> {
    let place = draft.places.get(&Key::PostgresAuthType).cloned();
    let asked = match auth {
        Auth::Method(AuthMethod::Ldap) => match &general.ldap {
            Some(options) => Some(Authority::Ldap(options.clone())),
            None => {
                let name = draft.name_of(Key::PostgresAuthLdapOptions);
                // What is wrong with them was said.
                if !draft.values.is_given(Key::PostgresAuthLdapOptions) {
                    draft.findings.problem(place, format!("auth_type = ldap needs {name}"));
                }
                None
            }
        },
        Auth::Method(AuthMethod::Pam) => {
            let place = draft.places.get(&Key::PostgresPamService).cloned().or(place);
            let name = draft.name_of(Key::PostgresPamService);
            match pam_service(&general.pam_service, false, place.as_ref(), &mut draft.findings) {
                Ok(service) => Some(Authority::Pam(service)),
                Err(why) => {
                    draft.findings.problem(place, format!("{name} {why}"));
                    None
                }
            }
        }
        Auth::Method(_) | Auth::Hba | Auth::Any => return None,
    };
    if !draft.values.text(Key::PostgresAuthUser).is_empty() {
        let who = if matches!(auth, Auth::Method(AuthMethod::Ldap)) { "the LDAP server" } else { "PAM" };
        let text = format!("auth_user has no effect: {who} knows the users");
        let place = draft.places.get(&Key::PostgresAuthUser).cloned();
        draft.findings.warn(WarningKind::Doubtful, place, text);
    }
    asked
}

/// A service of PAM. That it has no file is doubtful: the service `other` then decides.
///
/// # Errors
/// The name can be none, as the end of a sentence that begins with the option's name.
pub(crate) fn pam_service(
    name: &str,
    use_hostname: bool,
    place: Option<&Place>,
    findings: &mut Findings,
) -> Result<PamService, String> {
    let is_right = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(is_right) {
        return Err(format!("must be the name of a file in /etc/pam.d, not `{name}`"));
    }
    let is_there = PAM_FOLDERS.iter().any(|folder| Path::new(folder).join(name).exists());
    if Path::new(PAM_FOLDERS[0]).is_dir() && !is_there {
        let text = format!("PAM has no service `{name}` (/etc/pam.d/{name}): the service `other` decides");
        findings.warn(WarningKind::Doubtful, place.cloned(), text);
    }
    Ok(PamService { name: name.to_owned(), use_hostname })
}

/// What makes TLS with LDAP servers, if one of them is to have it. Their certificates are always verified.
pub(crate) fn ldap_tls(draft: &mut Draft, realm: &Realm) -> Option<LdapTls> {
    let by_lines = realm.hba.as_ref().into_iter().flat_map(|hba| hba.authorities());
    let needed = realm.authority.iter().chain(by_lines).any(|authority| match authority {
        Authority::Ldap(options) => options.encryption != Encryption::None,
        Authority::Pam(_) => false,
    });
    if !needed {
        return None;
    }
    let file = draft.values.text(Key::PostgresAuthLdapCaFile).to_owned();
    let place = draft.places.get(&Key::PostgresAuthLdapCaFile).cloned();
    let ca = match file.as_str() {
        "" => None,
        file => match read_pem(&relative_to(draft.folder.as_deref(), file)) {
            Ok(pem) => Some(pem),
            Err(error) => {
                draft.findings.problem(place, error.to_string());
                return None;
            }
        },
    };
    let settings = ConnectorSettings { verify: Verify::Full, ca, ..ConnectorSettings::default() };
    match Connector::new(&settings) {
        Ok(connector) => Some(LdapTls { connector }),
        Err(error) => {
            draft.findings.problem(place, format!("TLS with the LDAP server: {error}"));
            None
        }
    }
}

impl Snapshot {
    /// Who is asked about the password of the client behind `login`. `None`: nobody; Weir knows it, or the
    /// client does not come in by one.
    pub fn voucher(&self, protocol: Protocol, login: &Login, from: Origin<'_>) -> Option<Voucher> {
        let realm = self.realm(protocol);
        let authority = match realm.auth {
            Auth::Method(_) => realm.authority.as_ref(),
            Auth::Hba => realm.line_of(login, from).and_then(|line| line.authority.as_ref()),
            Auth::Any => None,
        };
        Some(match authority? {
            Authority::Ldap(options) => Voucher::Ldap {
                options: options.clone(),
                tls: realm.ldap_tls.as_ref().map(|tls| tls.connector.clone()),
            },
            Authority::Pam(service) => Voucher::Pam(service.clone()),
        })
    }
}

impl Realm {
    /// Who knows the users, where `auth` asks somebody about all of them.
    pub fn asked(&self) -> Option<&'static str> {
        self.authority.as_ref().map(Authority::name)
    }

    /// Somebody else knows users whom no file lists.
    pub(crate) fn vouches(&self) -> bool {
        self.authority.is_some() || self.hba.as_ref().is_some_and(|hba| hba.authorities().next().is_some())
    }

    /// The password to log in to a server with, for a client whose own password somebody else has taken: that
    /// of `users` in weir.toml. What auth_file says is PgBouncer's to ignore.
    pub(crate) fn own_secret(&self, name: &str) -> Option<Arc<Secret>> {
        self.users.get(name).and_then(|user| user.own_secret())
    }

    /// What was learnt of this user's password at its login is of no use.
    pub fn overrules(&self, learnt: &Learnt, name: &str) -> bool {
        learnt.vouched && (!self.vouches() || self.own_secret(name).is_some())
    }
}

impl User {
    /// A hash proves a client and logs in to nothing; the client's own password does.
    fn own_secret(&self) -> Option<Arc<Secret>> {
        let secret = self.secret.clone().filter(|_| !self.from_auth_file)?;
        matches!(secret.kind(), SecretKind::Plain(_)).then_some(secret)
    }
}
