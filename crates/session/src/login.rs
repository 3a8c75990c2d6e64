//! Types of a login that both wings and the proxy use.

use std::sync::Arc;
use weir_auth::job::RsaKey;
use weir_auth::{Job, Password, Secret};

/// How a client proves who it is. `auth_type` of PgBouncer for the PostgreSQL wing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuthMethod {
    /// No proof.
    Trust,
    /// Password in clear (PostgreSQL `password`, MySQL `mysql_clear_password`).
    Plain,
    /// A certificate that was verified and names the user (PostgreSQL `cert`). A secret, whatever it is, says
    /// that the user is known.
    Cert,
    /// The kernel's word for who is at the other end of a Unix socket (PostgreSQL `peer`, MySQL
    /// `auth_socket`). A secret, whatever it is, says that this is the user.
    Peer,
    /// Password in clear, which an LDAP server is asked about (PostgreSQL `ldap`).
    Ldap,
    /// Password in clear, which PAM is asked about (PostgreSQL `pam`).
    Pam,
    /// PostgreSQL md5.
    Md5,
    /// PostgreSQL SCRAM-SHA-256.
    ScramSha256,
    /// MySQL `mysql_native_password`.
    Native,
    /// MySQL `caching_sha2_password`.
    CachingSha2,
    /// MySQL: the method that the database's own server names in its greeting, of the two above.
    LikeServer,
}

impl AuthMethod {
    /// Somebody else says whether the password is right, and knows who there is.
    pub fn is_vouched(self) -> bool {
        matches!(self, AuthMethod::Ldap | AuthMethod::Pam)
    }
}

/// Who a client says it is and what it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// User name, as the client sent it.
    pub user: String,
    /// Database name; `None` when the client named none (PostgreSQL: the user name is meant; MySQL: no
    /// schema is chosen).
    pub database: Option<String>,
    /// The client wants a replication connection (PostgreSQL `replication`).
    pub replication: bool,
}

/// The proxy's answer to a [`Login`]: how the client must prove itself. A user that does not exist gets
/// the same method and no secret: the login then fails where a wrong password would.
#[derive(Debug, Clone)]
pub struct Admission {
    /// The proof to ask for.
    pub method: AuthMethod,
    /// What to check it against.
    pub secret: Option<Arc<Secret>>,
    /// [`AuthMethod::Cert`]: common names that may be this user; `None`: the user's own.
    pub names: Option<Arc<[String]>>,
}

/// How a MySQL or MariaDB server greets its clients, and Weir the clients of that server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerGreeting {
    /// The version as the server writes it, with MariaDB's `5.5.5-` if it sends that.
    pub version: Arc<str>,
    /// Number of the default collation, the low 8 bits.
    pub collation: u8,
    /// What the server can: capability flags, MariaDB's own in the upper half.
    pub capabilities: u64,
}

/// What a client may have of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsOffer {
    /// No TLS here.
    #[default]
    Off,
    /// If it asks for it.
    Offered,
    /// No login without.
    Required,
}

/// What a server is asked for before the login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsWish {
    /// No TLS.
    #[default]
    Off,
    /// TLS if the server has it.
    IfOffered,
    /// TLS or no login.
    Required,
}

/// What is known of an encrypted transport.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Secured {
    /// `tls-server-end-point` of the server's certificate, if its kind has any.
    pub end_point: Option<Arc<[u8]>>,
    /// SHA-256 of Weir's own certificate, where Weir is the server.
    pub fingerprint: Option<Arc<[u8]>>,
    /// Common name in the client's certificate, which was verified.
    pub peer_name: Option<String>,
    /// Both sides agreed on the database's own application protocol (ALPN).
    pub alpn: bool,
    /// OpenSSL's name of the version.
    pub version: &'static str,
    /// OpenSSL's name of the cipher.
    pub cipher: &'static str,
}

/// What makes a MySQL server worth a password it can read. None of it is needed on a Unix socket, nor by
/// methods that give a proof in the password's place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trust {
    /// A TLS handshake is only good if the server's certificate is.
    pub verified: bool,
    /// The server's RSA key, in PEM: only who has its other half opens the envelope.
    pub key: Option<Arc<[u8]>>,
    /// Nothing: whoever answers at that address gets it.
    pub unproven: bool,
}

/// Which client it is, of all that the process ever has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientId {
    number: u32,
    times: u32,
}

impl ClientId {
    /// `number` comes round again with another client, together with `times` it does not.
    pub fn new(number: u32, times: u32) -> ClientId {
        ClientId { number, times }
    }

    /// Weir's own number of this client: PostgreSQL's backend pid, MySQL's connection id. Not 0, below 2^31,
    /// and no other client's that is connected.
    pub fn number(self) -> u32 {
        self.number
    }

    /// By this a server remembers it. Never 0, nor ever another client's.
    pub fn unique(self) -> u64 {
        u64::from(self.times) << 32 | u64::from(self.number)
    }
}

impl From<u32> for ClientId {
    fn from(number: u32) -> ClientId {
        ClientId::new(number, 0)
    }
}

/// What a client login machine (we are the server) starts from.
#[derive(Clone)]
pub struct AcceptParams {
    /// Which client it is.
    pub id: ClientId,
    /// Fresh random bytes: salts, scrambles and cancel secrets are cut from them.
    pub nonce: [u8; 64],
    /// Connected by Unix socket.
    pub unix: bool,
    /// What this client may have of TLS.
    pub tls: TlsOffer,
    /// The transport is encrypted already (a login on top of a session).
    pub secured: Option<Arc<Secured>>,
    /// MySQL: how to greet. PostgreSQL does not use it.
    pub greeting: Arc<ServerGreeting>,
    /// MySQL: the method named in the greeting, before the user is known.
    pub default_method: AuthMethod,
    /// MySQL: compression is offered.
    pub compression: bool,
    /// MySQL: the RSA key for caching_sha2_password without TLS.
    pub rsa: Option<Arc<RsaKey>>,
}

/// What a client login machine wants next.
#[derive(Debug)]
pub enum AcceptStep {
    /// More bytes from the client.
    More,
    /// Call `handle_lookup` with the [`Admission`] of this user.
    Lookup(Login),
    /// Run this away from the worker and call `handle_job`.
    Work(Job),
    /// Ask the one who knows whether this is the user's password, away from the worker, and call
    /// `handle_vouched`.
    Vouch(Password),
    /// Not a session: cancel the running request of client `id` if `secret` is right, then close.
    Cancel {
        /// Weir's number of the client.
        id: u32,
        /// The secret that client was given.
        secret: Box<[u8]>,
    },
    /// From here on all bytes are TLS: begin as its server with those that are left, and call
    /// `handle_secured` when the handshake is done. What was appended to `out` goes in clear before it.
    Tls,
    /// The client has proved itself: call `into_front`.
    LoggedIn,
}

/// What a server login machine (we are the client) starts from.
#[derive(Clone)]
pub struct ConnectParams {
    /// User to log in as.
    pub user: String,
    /// Its password or what stands for it.
    pub secret: Option<Arc<Secret>>,
    /// Database to log in to; empty means none (MySQL).
    pub database: String,
    /// Parameters to send at start: PostgreSQL startup parameters, MySQL connection attributes.
    pub parameters: Vec<(String, String)>,
    /// Fresh random bytes.
    pub nonce: [u8; 64],
    /// Connected by Unix socket: the path is as safe as TLS for clear passwords.
    pub unix: bool,
    /// What to ask of the server before the login.
    pub tls: TlsWish,
    /// MySQL: what makes the server worth the password itself.
    pub trust: Trust,
    /// In place of a login, once the transport is as wished: this cancel request (PostgreSQL).
    pub cancel: Option<Vec<u8>>,
    /// What the pool's clients chose that a server cannot change later: `Front::pool_variant`.
    pub variant: u32,
    /// Statements to keep prepared on this server at most (`max_prepared_statements`).
    pub max_prepared_statements: usize,
    /// How often something was changed through Weir that sessions which are there do not see: accounts,
    /// global settings.
    pub changes: Changes,
}

/// A count that all servers of one wing share: a server whose login began before the last change is not for
/// new clients.
pub type Changes = Arc<std::sync::atomic::AtomicU64>;

/// What a server login machine wants next.
#[derive(Debug)]
pub enum ConnectStep {
    /// More bytes from the server.
    More,
    /// Run this away from the worker and call `handle_job`.
    Work(Job),
    /// From here on all bytes are TLS: begin as its client, once what was appended to `out` is sent in clear,
    /// and call `handle_secured` when the handshake is done.
    Tls,
    /// Logged in: call `into_back`.
    LoggedIn,
}

/// How to cancel what runs on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelPlan {
    /// Connect, send these bytes, wait for the server to close (PostgreSQL CancelRequest).
    Raw(Vec<u8>),
    /// Connect, log in as this server's user, send these bytes, wait for one answer, close (MySQL
    /// `KILL QUERY`).
    AfterLogin(Vec<u8>),
}

/// What became of a KILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillOutcome {
    /// Done.
    Killed,
    /// No client has that number.
    NoSuchThread,
    /// It belongs to another user.
    Denied,
    /// It is a number of the database's, and none of Weir's servers has it.
    NotOurs,
}
