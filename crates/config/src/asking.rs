//! Users that no file lists: which database is asked for their passwords, with which user, and what a result
//! means.
//!
//! Owns: PgBouncer's rules of auth_user, auth_query and auth_dbname. Must not know: how the query is sent.
//!
//! Invariant: an unknown name gets the same method as known ones, and a constant salt.

use crate::snapshot::Asking;
use crate::{Auth, Database, Origin, Protocol, Realm, Snapshot, User};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use weir_auth::Secret;
use weir_auth::secret::SecretKind;
use weir_session::{AuthMethod, Login};

/// A question for a database: where, as whom, what.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The entry whose server is asked.
    pub entry: Arc<Database>,
    /// Name of the database on that server.
    pub database: String,
    /// As whom, and what.
    pub asking: Asking,
    /// The password of who asks.
    pub secret: Option<Arc<Secret>>,
}

/// What a database said of a user.
#[derive(Debug)]
pub struct Learnt {
    /// The password as the database stores it; `None`: there is no such user, or it cannot log in.
    pub secret: Option<Arc<Secret>>,
    /// What other users of that database have: names that do not exist look like them.
    pub alike: Option<Arc<Secret>>,
    /// Counts up with the answers of this process.
    pub turn: u64,
    /// No database has said it: it is the password that the client has given, and somebody else has taken.
    pub vouched: bool,
    doubted: AtomicBool,
}

impl Learnt {
    /// An answer.
    pub fn new(secret: Option<Arc<Secret>>, alike: Option<Arc<Secret>>, turn: u64) -> Learnt {
        Learnt { secret, alike, turn, vouched: false, doubted: AtomicBool::new(false) }
    }

    /// The password by which a client has come in, because somebody else has taken it.
    pub fn vouched(secret: Secret, turn: u64) -> Learnt {
        Learnt { vouched: true, ..Learnt::new(Some(Arc::new(secret)), None, turn) }
    }

    /// Somebody did not fit it: the password may have changed since.
    pub fn doubt(&self) {
        self.doubted.store(true, Relaxed);
    }

    /// As [`Learnt::doubt`] said.
    pub fn is_doubted(&self) -> bool {
        self.doubted.load(Relaxed)
    }
}

impl Snapshot {
    /// The question that must be put before [`Snapshot::admit`]; `None`: all is known here that ever will be.
    pub fn asked(&self, protocol: Protocol, login: &Login, from: Origin<'_>) -> Option<Asked> {
        let realm = self.realm(protocol);
        if realm.method_of(login, from).is_some_and(AuthMethod::is_vouched) {
            return None;
        }
        if realm.auth == Auth::Any || realm.users.get(&login.user).is_some_and(|user| !user.asked) {
            return None;
        }
        let name = login.database.as_deref().filter(|name| !name.is_empty()).unwrap_or(&login.user);
        let entry = realm.databases.get(name).or(realm.fallback.as_ref());
        // Where there is no such database the answer changes nothing, but strangers cannot tell.
        let entry = entry.or_else(|| realm.databases.values().find(|database| database.asking.is_some()))?;
        let asking = entry.asking.clone()?;
        let (entry, database) = realm.asked_database(entry, name)?;
        let secret = realm.secret_of_asker(&entry, &asking);
        Some(Asked { entry, database, asking, secret })
    }
}

impl Realm {
    /// The entry that is asked for a client of `entry` who asks for `name`, and the database there.
    pub(crate) fn asked_database(
        &self,
        entry: &Arc<Database>,
        name: &str,
    ) -> Option<(Arc<Database>, String)> {
        let asking = entry.asking.as_ref()?;
        let (entry, name) = match &asking.database {
            Some(named) => (self.databases.get(named).or(self.fallback.as_ref())?, named.as_str()),
            None if entry.name == "*" || entry.server_database.is_some() => (entry, name),
            None => (entry, entry.name.as_str()),
        };
        let database = entry.server_database.clone().unwrap_or_else(|| name.to_owned());
        Some((entry.clone(), database))
    }

    /// The password that Weir asks with: that of the list, or that of the connection string of the same user.
    pub(crate) fn secret_of_asker(&self, entry: &Database, asking: &Asking) -> Option<Arc<Secret>> {
        let listed = self.users.get(&asking.user).and_then(|user| user.secret.clone());
        let forced = entry.forced_user.as_ref().filter(|forced| forced.name == asking.user);
        listed.or_else(|| forced?.secret.clone())
    }

    /// What a learnt user is, as if it were listed: with what `users` says of it. `None`: there is no such
    /// user.
    pub(crate) fn learnt_user(&self, name: &str, learnt: &Learnt) -> Option<User> {
        if self.overrules(learnt, name) {
            return None;
        }
        let secret = Some(learnt.secret.clone()?);
        Some(match self.users.get(name) {
            Some(user) => User { secret, ..User::clone(user) },
            None => User { secret, ..User::nobody(name) },
        })
    }
}

/// How a name that the database does not know is asked, and what for: as its others are.
pub(crate) fn decoy(method: AuthMethod, name: &str, learnt: &Learnt) -> (AuthMethod, Option<Arc<Secret>>) {
    let verifier = match learnt.alike.as_deref().map(Secret::kind) {
        Some(SecretKind::ScramVerifier(verifier)) => verifier,
        Some(SecretKind::Plain(_) | SecretKind::Md5(_) | SecretKind::MySqlNative(_)) | None => {
            return (method, None);
        }
    };
    let method = if method == AuthMethod::Md5 { AuthMethod::ScramSha256 } else { method };
    let fits = matches!(method, AuthMethod::Plain | AuthMethod::ScramSha256);
    (method, fits.then(|| Arc::new(verifier.decoy(name))))
}
