//! The settings that the proxy uses: plain, immutable structs, shared as `Arc<Snapshot>`.
//!
//! A reload creates a new snapshot; an existing one never changes. Every time is in milliseconds, 0 means "no
//! limit"; every size is a count of connections, 0 means "no limit" where the field says so.

use crate::Values;
use crate::pins::OwnPins;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use weir_auth::Secret;
use weir_session::AuthMethod;
use weir_session::Protocol;
use weir_wire::PinPolicies;

/// When a server goes back to its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoolMode {
    /// When its client leaves.
    Session,
    /// When the transaction ends and nothing pins the server to its client.
    Transaction,
    /// When the statement ends. Transactions of several statements are refused.
    Statement,
}

impl PoolMode {
    /// The word of the configuration files and of SHOW.
    pub fn name(self) -> &'static str {
        match self {
            PoolMode::Session => "session",
            PoolMode::Transaction => "transaction",
            PoolMode::Statement => "statement",
        }
    }

    /// The mode called `name`.
    pub fn from_name(name: &str) -> Option<PoolMode> {
        [PoolMode::Session, PoolMode::Transaction, PoolMode::Statement]
            .into_iter()
            .find(|mode| mode.name() == name)
    }
}

/// Everything `weir serve` was told.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Worker threads. Never 0: the number of cores is already put in for `auto`.
    pub workers: usize,
    /// Where clients connect.
    pub listeners: Vec<Listener>,
    /// Where the HTTP endpoint listens. Empty: nowhere. As with [`Listener`]s, an IPv6 address must be opened
    /// with IPV6_V6ONLY; true: may be left out where the system has no such family.
    pub http: Vec<(SocketAddr, bool)>,
    /// Somebody asked for `http`: not to be able to listen there is an error. Else it is a warning, because
    /// another Weir on this machine may have the default address.
    pub http_required: bool,
    /// What a request for a table of `/api` must bear; `None`: these tables are refused.
    pub http_token: Option<crate::Token>,
    /// Databases and users of PostgreSQL clients.
    pub postgres: Realm,
    /// Databases and users of MySQL clients.
    pub mysql: Realm,
    /// Bounds an operator sets.
    pub limits: Limits,
    /// All waiting times.
    pub timeouts: Timeouts,
    /// What is decided of reasons for pins.
    pub pins: PinPolicies,
    /// TLS with clients.
    pub client_tls: crate::ClientTls,
    /// Options of TCP sockets, on both sides.
    pub tcp: Tcp,
    /// What is logged, and where.
    pub log: Log,
    /// Where the process number is written.
    pub pidfile: Option<PathBuf>,
    /// The settings these structs were built from: SHOW CONFIG and the difference at a reload.
    pub values: Values,
}

impl Snapshot {
    /// Databases and users of one protocol.
    pub fn realm(&self, protocol: Protocol) -> &Realm {
        match protocol {
            Protocol::Postgres => &self.postgres,
            Protocol::Mysql => &self.mysql,
        }
    }
}

/// One address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Listener {
    /// What is spoken there.
    pub protocol: Protocol,
    /// Where.
    pub at: ListenAt,
    /// Do not fail when this one cannot be opened: it was not named but follows from `*` on a machine
    /// that may have no IPv6.
    pub optional: bool,
}

/// The address of a [`Listener`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListenAt {
    /// TCP. An IPv6 address must be opened with IPV6_V6ONLY: `*` is a pair of listeners.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix {
        /// The socket itself (PostgreSQL: `DIR/.s.PGSQL.PORT`). One that starts with `@` is abstract.
        path: PathBuf,
        /// Permissions of the socket file.
        mode: u32,
        /// Its group; `None`: that of the process.
        group: Option<u32>,
    },
}

/// Databases and users of one protocol.
#[derive(Debug, Clone)]
pub struct Realm {
    /// By the name a client asks for.
    pub databases: BTreeMap<String, Arc<Database>>,
    /// For a name that is not in `databases` (`*`).
    pub fallback: Option<Arc<Database>>,
    /// Who may log in.
    pub users: BTreeMap<String, Arc<User>>,
    /// How many of them are asked for another proof than `auth` says, because only a hash of their password
    /// is known.
    pub users_by_hash: usize,
    /// What is known of users of whom only a SCRAM verifier is known: names that do not exist look like them.
    pub verifiers: Vec<Arc<Secret>>,
    /// How a client proves who it is.
    pub auth: Auth,
    /// Who knows the passwords, where the method of `auth` asks somebody.
    pub(crate) authority: Option<crate::vouch::Authority>,
    /// TLS with LDAP servers.
    pub(crate) ldap_tls: Option<crate::vouch::LdapTls>,
    /// What [`Auth::Hba`] goes by.
    pub hba: Option<Arc<crate::Hba>>,
    /// MySQL: the version Weir greets with; empty: what the server says.
    pub server_version: String,
    /// Which other names of certificates or of this machine may be which user.
    pub ident: Option<crate::IdentMap>,
    /// Number and name of the accounts that may be a user, where the method asks for them.
    pub accounts: Vec<(u32, String)>,
    /// Whose connections begin with a PROXY header.
    pub balancers: Vec<crate::Network>,
}

/// How the clients of one protocol prove who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// By this method.
    Method(AuthMethod),
    /// By the line of [`Realm::hba`] that fits.
    Hba,
    /// Anybody may come in and call himself what he likes; databases without a forced user are refused.
    Any,
}

/// One database clients may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// The name clients use; `*` for the fallback.
    pub name: String,
    /// Where its server is.
    pub server: Server,
    /// TLS with it; `None`: none.
    pub tls: Option<Arc<crate::ServerTls>>,
    /// MySQL: what makes that server worth a password it can read.
    pub trust: weir_session::login::Trust,
    /// The name on the server. `None`: the name the client asked for.
    pub server_database: Option<String>,
    /// All servers log in as this user; `None`: as the client's user.
    pub forced_user: Option<ForcedUser>,
    /// Servers of one (database, user).
    pub pool_size: Option<usize>,
    /// Servers of each beyond that which clients keep because of a pin.
    pub pinned_pool_size: Option<usize>,
    /// What is decided of reasons for pins.
    pub pins: OwnPins,
    /// Its pools' share in limits that several pools have.
    pub share: Option<usize>,
    /// Connections of each of its pools that others leave to it.
    pub reserved_connections: Option<usize>,
    /// Servers to keep open for one (database, user).
    pub min_pool_size: Option<usize>,
    /// Servers of all its pools together; 0: no limit.
    pub max_db_connections: Option<usize>,
    /// Overrides the general mode.
    pub pool_mode: Option<PoolMode>,
    /// Overrides the general depth.
    pub pipeline_depth: Option<usize>,
    /// How it is asked for the passwords of users who are not listed; `None`: not at all.
    pub asking: Option<Asking>,
}

/// How a database is asked for the password of a user (PgBouncer's auth_query).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Asking {
    /// As this user.
    pub user: String,
    /// What; `$1` is the name.
    pub query: String,
    /// In place of the database that the client asks for: this one of the configuration.
    pub database: Option<String>,
}

/// The user all servers of a database log in as.
#[derive(Debug, Clone)]
pub struct ForcedUser {
    /// Its name.
    pub name: String,
    /// Its password; `None`: the one in `users`, or none.
    pub secret: Option<Arc<Secret>>,
}

/// Where a server is. Names are resolved by the control thread ([`crate::resolve`]).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Server {
    /// TCP.
    Tcp {
        /// A name or an address (IPv6 without brackets).
        host: String,
        /// Its port.
        port: u16,
    },
    /// A Unix socket: the socket itself, not its directory. One that starts with `@` is abstract.
    Unix(PathBuf),
}

/// Somebody who may log in.
#[derive(Debug, Clone)]
pub struct User {
    /// The name.
    pub name: String,
    /// The password or what stands for it.
    pub secret: Option<Arc<Secret>>,
    /// The secret stands in auth_file, not in `users`.
    pub from_auth_file: bool,
    /// Only what qualifies this user is known: the database is asked for the password.
    pub asked: bool,
    /// Comes in without a password, but only from this machine: named by a URL without a password.
    pub local_trust: bool,
    /// Overrides the database's mode.
    pub pool_mode: Option<PoolMode>,
    /// Overrides the database's pool size.
    pub pool_size: Option<usize>,
    /// Overrides what the database has beyond that for pinned clients.
    pub pinned_pool_size: Option<usize>,
    /// What is decided of reasons for pins.
    pub pins: OwnPins,
    /// Its pools' share in limits that several pools have.
    pub share: Option<usize>,
    /// Connections of each of its pools that others leave to it.
    pub reserved_connections: Option<usize>,
    /// Servers of all its pools together; 0: no limit.
    pub max_user_connections: Option<usize>,
}

impl User {
    /// Nothing is known of this user.
    pub(crate) fn nobody(name: &str) -> User {
        User {
            name: name.to_owned(),
            secret: None,
            from_auth_file: false,
            asked: false,
            local_trust: false,
            pool_mode: None,
            pool_size: None,
            pinned_pool_size: None,
            pins: OwnPins::default(),
            share: None,
            reserved_connections: None,
            max_user_connections: None,
        }
    }
}

/// Bounds an operator sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Clients of the whole process. `None`: as many as the machine holds.
    pub max_client_conn: Option<usize>,
    /// Statements kept prepared on one server; 0: protocol-level statements pin their server.
    pub max_prepared_statements: usize,
}

/// All bounds on time, in milliseconds. 0: no limit, but for [`Timeouts::server_lifetime_ms`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// Maximum time a request waits for a server.
    pub query_wait_timeout_ms: u64,
    /// Maximum time a request runs, from its dispatch to the end of its reply.
    pub query_timeout_ms: u64,
    /// Maximum duration of a transaction, from its first request to its end.
    pub transaction_timeout_ms: u64,
    /// Maximum time a client that holds a server in a transaction sends nothing.
    pub idle_transaction_timeout_ms: u64,
    /// Maximum time a client that holds no server sends nothing.
    pub client_idle_timeout_ms: u64,
    /// Maximum pause of a client that holds a server, in the middle of a message.
    pub client_read_timeout_ms: u64,
    /// Maximum time for a client's login.
    pub client_login_timeout_ms: u64,
    /// Time after which a request is cancelled whose client has left; after the same time again its server is
    /// closed.
    pub cancel_wait_timeout_ms: u64,
    /// Maximum time for connect and login to a server.
    pub server_connect_timeout_ms: u64,
    /// Time after which an idle server is closed.
    pub server_idle_timeout_ms: u64,
    /// A server that is older is closed when next free, but not before it was used. `None`: no limit; 0: it
    /// is used once.
    pub server_lifetime_ms: Option<u64>,
    /// Maximum pause between attempts to connect after failures.
    pub server_login_retry_ms: u64,
    /// A server that was idle longer is asked whether it lives before a client gets it. 0: always.
    pub server_check_delay_ms: u64,
    /// Interval at which a database in use is asked whether its catalogue has changed.
    pub catalogue_check_ms: u64,
    /// Maximum time for clients to finish their transactions after SIGTERM.
    pub drain_timeout_ms: u64,
    /// Interval at which names are resolved again.
    pub dns_max_ttl_ms: u64,
    /// A client that has kept its server for this long because of a pin is logged while others wait.
    pub log_pins_after_ms: u64,
    /// Requests that take as long are logged; 0: none.
    pub log_min_duration_ms: u64,
}

impl Timeouts {
    /// Only a client in the queue, in its login or at its end has a deadline.
    pub fn sessions_are_unbounded(&self) -> bool {
        self.client_idle_timeout_ms == 0
            && self.idle_transaction_timeout_ms == 0
            && self.transaction_timeout_ms == 0
            && self.query_timeout_ms == 0
    }
}

/// Options of TCP sockets. 0: what the system does by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tcp {
    /// Connections that may wait in the kernel to be accepted.
    pub listen_backlog: u32,
    /// SO_KEEPALIVE.
    pub keepalive: bool,
    /// TCP_KEEPCNT.
    pub keepcnt: u32,
    /// TCP_KEEPIDLE, in seconds.
    pub keepidle_s: u32,
    /// TCP_KEEPINTVL, in seconds.
    pub keepintvl_s: u32,
    /// TCP_USER_TIMEOUT.
    pub user_timeout_ms: u32,
}

/// What is logged, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// `error`, `warn`, `info`, `debug` or `trace`, or a filter of tracing.
    pub level: String,
    /// Each line is a JSON object.
    pub json: bool,
    /// Appended to; also standard error unless told to be quiet.
    pub file: Option<PathBuf>,
    /// Logins that succeed are logged.
    pub connections: bool,
    /// Clients that leave are logged.
    pub disconnections: bool,
    /// What Weir itself tells clients before it closes them is logged.
    pub pooler_errors: bool,
}

impl PartialEq for ForcedUser {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && same_secret(self.secret.as_deref(), other.secret.as_deref())
    }
}

impl Eq for ForcedUser {}

impl PartialEq for User {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && same_secret(self.secret.as_deref(), other.secret.as_deref())
            && self.from_auth_file == other.from_auth_file
            && self.asked == other.asked
            && self.local_trust == other.local_trust
            && self.pool_mode == other.pool_mode
            && self.pool_size == other.pool_size
            && self.pinned_pool_size == other.pinned_pool_size
            && self.pins == other.pins
            && self.share == other.share
            && self.reserved_connections == other.reserved_connections
            && self.max_user_connections == other.max_user_connections
    }
}

impl Eq for User {}

/// For the difference at a reload: both secrets are the operator's, so time tells nobody anything.
pub(crate) fn same_secret(a: Option<&Secret>, b: Option<&Secret>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a.is_same(b),
        _ => false,
    }
}
