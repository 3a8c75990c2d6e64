//! From a client's login to the proof it must give and to the pool it belongs to.

use crate::asking::{self, Learnt};
use crate::hba::{Decision, Rule};
use crate::values::AUTO;
use crate::{Auth, Database, IdentMap, Key, PoolMode, Protocol, Realm, Server, Snapshot, User, Values};
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use weir_auth::Secret;
use weir_auth::secret::SecretKind;
use weir_session::{Admission, AuthMethod, Login};
use weir_wire::PinPolicies;

/// Where a client's requests go: everything the proxy needs to find or make the pool.
#[derive(Debug, Clone)]
pub struct Route {
    /// Name of the pool's database, as the user sees it: the client's name for a PostgreSQL database; for
    /// MySQL the name of the entry, because one server serves all schemas.
    pub pool: String,
    /// The entry it comes from.
    pub database: Arc<Database>,
    /// Where the server is.
    pub server: Server,
    /// PostgreSQL: the database to log in to. MySQL: the schema the client starts in; empty: none.
    pub server_database: String,
    /// The user to log in as.
    pub server_user: String,
    /// What to log in with.
    pub server_secret: Option<Arc<Secret>>,
    /// When a server goes back.
    pub pool_mode: PoolMode,
    /// Servers of this pool, at most. Never 0.
    pub pool_size: usize,
    /// Weir finds the size itself, between this and `pool_size`.
    pub auto_size_min: Option<usize>,
    /// Servers beyond that which clients keep because of a pin, at most.
    pub pinned_pool_size: usize,
    /// Servers to keep open.
    pub min_pool_size: usize,
    /// Servers of all pools of this database, at most; 0: no limit.
    pub max_db_connections: usize,
    /// Servers of all pools of `server_user`, at most; 0: no limit.
    pub max_user_connections: usize,
    /// Requests that one server carries at a time.
    pub pipeline_depth: usize,
    /// BEGIN waits for the first request of its transaction before it takes a server.
    pub late_begin: bool,
    /// Identical reads that wait at the same moment are sent once.
    pub share_answers: bool,
    /// What becomes of a server on which unknown code has run: `pin`, `reset` or `pass`.
    pub unknown_code: &'static str,
    /// What is decided of reasons for pins; nothing in session mode.
    pub pins: PinPolicies,
    /// Time for which a client that listens keeps its server, in milliseconds; `None`: for ever.
    pub listen_linger_ms: Option<u64>,
    /// Its share in limits that several pools have; 0: none was set.
    pub share: usize,
    /// Servers under such limits that others leave to it.
    pub reserved: usize,
    /// Clients that may wait for one of its servers; `None`: as many as have hope.
    pub max_waiting_clients: Option<usize>,
}

/// Where a client comes from, as far as that proves anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Origin<'a> {
    /// From this machine: by Unix socket or from a loopback address.
    pub local: bool,
    /// The account at the other end of its Unix socket.
    pub uid: Option<u32>,
    /// By Unix socket.
    pub unix: bool,
    /// Its address, where it has one.
    pub address: Option<IpAddr>,
    /// Inside TLS.
    pub tls: bool,
    /// The common name of its certificate, which was verified.
    pub certificate: Option<&'a str>,
}

impl Snapshot {
    /// How the client behind `login` must prove itself. A user that does not exist gets the method it would
    /// get if it did, and no secret.
    /// `learnt`: what a database said of the user, where it was asked.
    pub fn admit(
        &self,
        protocol: Protocol,
        login: &Login,
        from: Origin<'_>,
        learnt: Option<&Learnt>,
    ) -> Admission {
        let realm = self.realm(protocol);
        let found = learnt.and_then(|learnt| realm.learnt_user(&login.user, learnt));
        let listed = realm.users.get(&login.user).filter(|user| !user.asked).map(Arc::as_ref);
        let user = listed.or(found.as_ref());
        let (method, map) = match realm.auth {
            Auth::Any => return Admission { method: AuthMethod::Trust, secret: None, names: None },
            Auth::Method(method) => (method, realm.ident.as_ref()),
            Auth::Hba => match realm.hba_decides(login, from) {
                Decision::By(line, method) => (method, line.map.as_deref()),
                // Such a login has been refused; it would not be let in here.
                Decision::Rejected(_) | Decision::WithoutCertificate(_) | Decision::NoLine => {
                    return Admission { method: AuthMethod::ScramSha256, secret: None, names: None };
                }
            },
        };
        // Whoever is asked knows who there is.
        if method.is_vouched() {
            return Admission { method, secret: None, names: None };
        }
        match user {
            Some(user) if method == AuthMethod::Peer => realm.admit_peer(user, from, map),
            // MySQL's servers refuse who gives a password where there is none.
            Some(user) if user.local_trust && from.local && protocol == Protocol::Mysql => {
                let secret = Some(Arc::new(Secret::plain("")));
                Admission { method: asking_method(method, protocol), secret, names: None }
            }
            Some(user) if user.local_trust && from.local && realm.auth != Auth::Hba => {
                Admission { method: AuthMethod::Trust, secret: None, names: None }
            }
            Some(user) => {
                let names = map.map(|map| map.names_of(&user.name));
                Admission { names: names.filter(|_| method == AuthMethod::Cert), ..admit_known(method, user) }
            }
            None if learnt.is_some() => {
                let method = asking_method(method, protocol);
                let (method, secret) =
                    learnt.map_or((method, None), |learnt| asking::decoy(method, &login.user, learnt));
                Admission { method, secret, names: None }
            }
            // No secret fits: with trust, which asks for nothing, an unknown name is asked for a password.
            None => {
                let method = realm.decoy(asking_method(method, protocol), &login.user);
                let verified = matches!(method, AuthMethod::Plain | AuthMethod::ScramSha256);
                let fits = verified && protocol == Protocol::Postgres;
                let secret = fits.then(|| realm.decoy_secret(&login.user)).flatten();
                Admission { method, secret, names: None }
            }
        }
    }

    /// Why a login is refused whatever it proves; for the operator. `None`: it may prove itself.
    pub fn rejects(&self, protocol: Protocol, login: &Login, from: Origin<'_>) -> Option<String> {
        let realm = self.realm(protocol);
        if realm.auth != Auth::Hba {
            return None;
        }
        Some(match realm.hba_decides(login, from) {
            Decision::By(..) => return None,
            Decision::Rejected(line) => format!("{} rejects it", line.place()),
            Decision::WithoutCertificate(line) => {
                format!("{} asks for a certificate that the client has not shown", line.place())
            }
            Decision::NoLine => "no line of auth_hba_file fits".to_owned(),
        })
    }

    /// The pool of a client that has logged in. `None`: there is no such database.
    /// `learnt`: what a database said of the user, where it was asked.
    pub fn route(&self, protocol: Protocol, login: &Login, learnt: Option<&Learnt>) -> Option<Route> {
        let realm = self.realm(protocol);
        let (asked, pool) = match protocol {
            Protocol::Postgres => {
                let asked = login.database.as_deref().filter(|d| !d.is_empty()).unwrap_or(&login.user);
                (asked, asked.to_owned())
            }
            Protocol::Mysql => (login.database.as_deref().unwrap_or(""), String::new()),
        };
        let database = match realm.databases.get(asked).or(realm.fallback.as_ref()) {
            Some(database) => database,
            // A MySQL client may name its schema later; with one entry there is no doubt which it means.
            None if asked.is_empty() && realm.databases.len() == 1 => realm.databases.values().next()?,
            None => return None,
        };
        let pool = if protocol == Protocol::Mysql { database.name.clone() } else { pool };
        let found = learnt.and_then(|learnt| realm.learnt_user(&login.user, learnt));
        let client = found.as_ref().or_else(|| realm.users.get(&login.user).map(Arc::as_ref));
        let (server_user, server_secret) = match &database.forced_user {
            Some(forced) => {
                let listed = || realm.users.get(&forced.name).and_then(|user| user.secret.clone());
                (forced.name.clone(), forced.secret.clone().or_else(listed))
            }
            None if realm.auth == Auth::Any => return None,
            None => (login.user.clone(), client.and_then(|user| user.secret.clone())),
        };
        let server_database = match (&database.server_database, asked) {
            (_, "") => String::new(),
            (Some(name), _) => name.clone(),
            (None, asked) => asked.to_owned(),
        };
        let max_user_connections = realm.users.get(&server_user).and_then(|user| user.max_user_connections);
        let sizes = Sizes::of(&self.values, database, client);
        let of_database = database.pins.over(self.pins);
        let pins = client.map_or(of_database, |user| user.pins.over(of_database));
        Some(Route {
            pool,
            server: database.server.clone(),
            database: database.clone(),
            server_database,
            server_user,
            server_secret,
            pool_mode: sizes.pool_mode,
            pool_size: sizes.pool_size,
            auto_size_min: sizes.auto_size_min,
            pinned_pool_size: sizes.pinned_pool_size,
            min_pool_size: sizes.min_pool_size,
            max_db_connections: database
                .max_db_connections
                .unwrap_or_else(|| self.values.size(Key::MaxDbConnections)),
            max_user_connections: max_user_connections
                .unwrap_or_else(|| self.values.size(Key::MaxUserConnections)),
            pipeline_depth: sizes.pipeline_depth,
            late_begin: self.values.bool(Key::LateBegin),
            share_answers: self.values.bool(Key::ShareAnswers),
            unknown_code: ["reset", "pass"]
                .into_iter()
                .find(|word| *word == self.values.text(Key::UnknownCode))
                .unwrap_or("pin"),
            pins: match (sizes.pool_mode, protocol) {
                (PoolMode::Session, _) => PinPolicies::default(),
                (_, Protocol::Postgres) => pins,
                (_, Protocol::Mysql) => pins.warning_of_passed(),
            },
            listen_linger_ms: self
                .values
                .bool(Key::SharedListen)
                .then(|| self.values.millis(Key::ListenLinger)),
            share: client.and_then(|user| user.share).or(database.share).unwrap_or(0),
            reserved: client
                .and_then(|user| user.reserved_connections)
                .or(database.reserved_connections)
                .unwrap_or(0),
            max_waiting_clients: Some(self.values.size(Key::MaxWaitingClients)).filter(|&n| n as u64 != AUTO),
        })
    }
}

/// What a user's, a database's and the general settings come to, in this order.
pub(crate) struct Sizes {
    pub(crate) pool_mode: PoolMode,
    pub(crate) pool_size: usize,
    pub(crate) auto_size_min: Option<usize>,
    pub(crate) pinned_pool_size: usize,
    min_pool_size: usize,
    pipeline_depth: usize,
}

impl Sizes {
    pub(crate) fn of(values: &Values, database: &Database, user: Option<&User>) -> Sizes {
        let general = PoolMode::from_name(values.text(Key::PoolMode)).unwrap_or(PoolMode::Session);
        let pool_size = user
            .and_then(|u| u.pool_size)
            .or(database.pool_size)
            .unwrap_or_else(|| values.size(Key::DefaultPoolSize));
        let is_auto = pool_size as u64 == AUTO;
        let pool_size = if is_auto { values.size(Key::AutoSizeMax) } else { pool_size };
        let auto_size_min = is_auto.then(|| values.size(Key::AutoSizeMin).min(pool_size));
        Sizes {
            auto_size_min,
            pool_mode: user.and_then(|u| u.pool_mode).or(database.pool_mode).unwrap_or(general),
            pool_size,
            pinned_pool_size: user
                .and_then(|u| u.pinned_pool_size)
                .or(database.pinned_pool_size)
                .unwrap_or_else(|| values.size(Key::PinnedPoolSize)),
            min_pool_size: database
                .min_pool_size
                .unwrap_or_else(|| values.size(Key::MinPoolSize))
                .min(pool_size),
            pipeline_depth: database.pipeline_depth.unwrap_or_else(|| values.size(Key::PipelineDepth)).max(1),
        }
    }
}

/// A known user: the method his secret allows.
fn admit_known(method: AuthMethod, user: &User) -> Admission {
    let secret = user.secret.clone();
    if method == AuthMethod::Cert {
        // That there is one says that the user is known.
        return Admission {
            method,
            secret: secret.or_else(|| Some(Arc::new(Secret::plain("")))),
            names: None,
        };
    }
    let method = secret.as_deref().and_then(|secret| by_hash(method, secret)).unwrap_or(method);
    Admission { method, secret, names: None }
}

/// The method that a hash of a password allows, when it is another one.
fn by_hash(method: AuthMethod, secret: &Secret) -> Option<AuthMethod> {
    match (method, secret.kind()) {
        // A verifier cannot be checked by md5. PgBouncer asks for SCRAM then, and so do we.
        (AuthMethod::Md5, SecretKind::ScramVerifier(_)) => Some(AuthMethod::ScramSha256),
        // The hash of mysql_native_password proves nothing in another method.
        (AuthMethod::CachingSha2 | AuthMethod::LikeServer, SecretKind::MySqlNative(_)) => {
            Some(AuthMethod::Native)
        }
        _ => None,
    }
}

impl Realm {
    fn hba_decides(&self, login: &Login, from: Origin<'_>) -> Decision<'_> {
        let database = login.database.as_deref().filter(|name| !name.is_empty()).unwrap_or(&login.user);
        self.hba.as_ref().map_or(Decision::NoLine, |hba| hba.decide(from, database, &login.user))
    }

    /// The line by which a login may prove itself.
    pub(crate) fn line_of(&self, login: &Login, from: Origin<'_>) -> Option<&Rule> {
        match self.hba_decides(login, from) {
            Decision::By(line, _) => Some(line),
            Decision::Rejected(_) | Decision::WithoutCertificate(_) | Decision::NoLine => None,
        }
    }

    /// How a login must prove itself. `None`: not at all, or it is refused.
    pub(crate) fn method_of(&self, login: &Login, from: Origin<'_>) -> Option<AuthMethod> {
        match self.auth {
            Auth::Method(method) => Some(method),
            Auth::Hba => self.line_of(login, from).and_then(|line| line.method),
            Auth::Any => None,
        }
    }

    /// The kernel's word for the account, and the map's for the name.
    fn admit_peer(&self, user: &User, from: Origin<'_>, map: Option<&IdentMap>) -> Admission {
        let account = self.accounts.iter().find(|(number, _)| from.uid == Some(*number));
        let is_user = account.is_some_and(|(_, name)| match map {
            Some(map) => map.allows(name, &user.name),
            None => *name == user.name,
        });
        let secret = is_user.then(|| Arc::new(Secret::plain("")));
        Admission { method: AuthMethod::Peer, secret, names: None }
    }

    /// Users who are asked for another proof than the others.
    pub(crate) fn count_by_hash(&self) -> usize {
        let method = match self.auth {
            Auth::Method(method) => method,
            // Of all methods a line may name, only this one depends on the form of the password.
            Auth::Hba => AuthMethod::Md5,
            Auth::Any => return 0,
        };
        let secrets = self.users.values().filter_map(|user| user.secret.as_deref());
        secrets.filter(|secret| by_hash(method, secret).is_some()).count()
    }

    /// How a name that does not exist is asked: as often in another way as those that exist, and always the
    /// same name in the same way, so that the question tells nobody who exists.
    fn decoy(&self, method: AuthMethod, name: &str) -> AuthMethod {
        if self.users_by_hash == 0 {
            return method;
        }
        match method {
            _ if self.place_of(name) >= self.users_by_hash => method,
            AuthMethod::Md5 => AuthMethod::ScramSha256,
            AuthMethod::CachingSha2 | AuthMethod::LikeServer => AuthMethod::Native,
            method => method,
        }
    }

    /// What a name that does not exist is taken to have: as often a verifier as those that exist, with the
    /// rounds and the length of the salt of one of them. Nothing that is asked of it, nor the work it makes,
    /// tells it from theirs.
    fn decoy_secret(&self, name: &str) -> Option<Arc<Secret>> {
        let verifier = self.verifiers.get(self.place_of(name))?;
        match verifier.kind() {
            SecretKind::ScramVerifier(verifier) => Some(Arc::new(verifier.decoy(name))),
            SecretKind::Plain(_) | SecretKind::Md5(_) | SecretKind::MySqlNative(_) => None,
        }
    }

    /// A name's place among the users; those known by a verifier, or by another hash, come first. The same
    /// for as long as the first verifier is, also behind a restart; without verifiers, as long as the process
    /// lives.
    fn place_of(&self, name: &str) -> usize {
        static KEY: OnceLock<RandomState> = OnceLock::new();
        let number = match self.verifiers.first().map(|secret| secret.kind()) {
            Some(SecretKind::ScramVerifier(verifier)) => verifier.place_of(name),
            _ => KEY.get_or_init(RandomState::new).hash_one(name),
        };
        (number % self.users.len().max(1) as u64) as usize
    }

    /// The secrets of users of whom only a SCRAM verifier is known.
    pub(crate) fn find_verifiers(&self) -> Vec<Arc<Secret>> {
        let secrets = self.users.values().filter_map(|user| user.secret.as_ref());
        secrets.filter(|secret| matches!(secret.kind(), SecretKind::ScramVerifier(_))).cloned().collect()
    }
}

/// A method that asks for something.
fn asking_method(method: AuthMethod, protocol: Protocol) -> AuthMethod {
    match (method, protocol) {
        (AuthMethod::Trust, Protocol::Postgres) => AuthMethod::ScramSha256,
        (AuthMethod::Trust, Protocol::Mysql) => AuthMethod::LikeServer,
        (method, _) => method,
    }
}
