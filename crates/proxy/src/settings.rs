//! The hall's settings, as plain values. `control` makes them from the configuration; the simulator makes
//! them by hand.

use crate::ask::Question;
use crate::pool::auto::Bounds;
use arc_swap::ArcSwap;
use std::sync::Arc;
use weir_auth::Secret;
pub use weir_config::Timeouts;
use weir_config::console::Rights;
use weir_config::{Learnt, ServerTls, Voucher};
use weir_net::{Peer, Target};
use weir_session::Protocol;
use weir_session::login::{Secured, TlsOffer, Trust};
use weir_session::{Admission, Login};
use weir_sql::catalogue::UnknownCode;
use weir_tls::Acceptor;
use weir_wire::{Fault, PinPolicies};

/// When a server is free for the next client. The words and meanings are PgBouncer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoolMode {
    /// When the client leaves.
    Session,
    /// When the transaction ends, unless a [`weir_wire::Pin`] says otherwise.
    Transaction,
    /// When the statement ends; transactions of several statements are refused.
    Statement,
}

/// The addresses of one host, as they were last resolved. Copies see the change.
#[derive(Debug, Clone, Default)]
pub struct Targets(Arc<ArcSwap<Vec<Target>>>);

impl Targets {
    /// These addresses.
    pub fn fixed(targets: Vec<Target>) -> Self {
        Targets(Arc::new(ArcSwap::from_pointee(targets)))
    }
    /// From now on these addresses. Returns whether there were others before, which are not among these.
    pub fn set(&self, targets: Vec<Target>) -> bool {
        let targets = Arc::new(targets);
        let before = self.0.swap(targets.clone());
        before.iter().any(|target| !targets.contains(target))
    }
    /// One of them is this.
    pub fn contains(&self, target: &Target) -> bool {
        self.0.load().contains(target)
    }
    /// All of them.
    pub fn all(&self) -> Vec<Target> {
        self.0.load().to_vec()
    }
    /// The address for the `turn`-th try.
    pub fn pick(&self, turn: usize) -> Option<Target> {
        let targets = self.0.load();
        targets.get(turn % targets.len().max(1)).cloned()
    }
}

/// Where the servers of a pool are and who they are logged in as.
#[derive(Debug, Clone)]
pub struct PoolSpec {
    /// The settings it comes from ([`Settings::epoch`]).
    pub epoch: u64,
    /// The settings since which its servers are logged in as they would be now. Older ones are replaced.
    pub servers_since: u64,
    /// The first login that led here: what a reload asks for again.
    pub login: Login,
    /// What a database said of that user, where no file lists it.
    pub learnt: Option<Arc<Learnt>>,
    /// Which protocol it speaks.
    pub protocol: Protocol,
    /// The database's name in Weir.
    pub database: String,
    /// The user the servers are logged in as.
    pub user: String,
    /// That user's password.
    pub secret: Option<Arc<Secret>>,
    /// The database's name on the server.
    pub server_database: String,
    /// TLS with the server; `None`: none.
    pub tls: Option<Arc<ServerTls>>,
    /// MySQL: what makes the server worth a password it can read.
    pub trust: Trust,
    /// Where the server is. Several addresses of one name are tried in turn.
    pub targets: Targets,
    /// When a server is free for the next client.
    pub mode: PoolMode,
    /// Servers at most.
    pub size: usize,
    /// The size is found by trial, between these.
    pub auto: Option<Bounds>,
    /// Servers that clients keep for long and that do not count against the size, at most.
    pub pinned_size: usize,
    /// Servers of all pools of this database at most; 0: no limit of its own.
    pub max_of_database: usize,
    /// Servers of all pools of this user at most; 0: no limit of its own.
    pub max_of_user: usize,
    /// Servers kept open once the pool is in use.
    pub min_size: usize,
    /// Requests that one server carries at a time when none is free; 1: servers are not shared.
    pub pipeline_depth: usize,
    /// BEGIN waits for the first request of its transaction before it takes a server.
    pub late_begin: bool,
    /// Identical reads that wait at the same moment are sent once, and all who asked get the answer.
    pub share_answers: bool,
    /// What becomes of a server on which code has run that nobody can read.
    pub unknown_code: UnknownCode,
    /// What is decided of reasons for pins.
    pub pins: PinPolicies,
    /// Time for which a client that only listens keeps its server; `None`: for ever.
    pub listen_linger_ms: Option<u64>,
    /// Its share in limits that several pools have; 0: none was set.
    pub share: usize,
    /// Servers under such limits that others leave to it.
    pub reserved: usize,
    /// Clients that may wait for one of its servers; `None`: as many as have hope.
    pub max_waiting: Option<usize>,
    /// Part of a pool's identity that clients choose and a server cannot change later (MySQL's
    /// CLIENT_FOUND_ROWS and its like).
    pub variant: u32,
    /// Statements kept prepared on one server at most.
    pub max_prepared_statements: usize,
}

impl PoolSpec {
    /// Its password is a newer answer of the database than the other's.
    pub fn is_learnt_after(&self, other: &PoolSpec) -> bool {
        let turn = |spec: &PoolSpec| spec.learnt.as_ref().map_or(0, |learnt| learnt.turn);
        turn(self) > turn(other)
    }

    /// Servers of the other are as good as servers of this one.
    pub fn has_servers_of(&self, other: &PoolSpec) -> bool {
        let same_secret = match (&self.secret, &other.secret) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, Some(_)) | (Some(_), None) => false,
        };
        // Who has changed a password in the database stays logged in there.
        let both_learnt = self.learnt.is_some() && other.learnt.is_some();
        (same_secret || both_learnt)
            && self.user == other.user
            && self.server_database == other.server_database
            && Arc::ptr_eq(&self.targets.0, &other.targets.0)
            && self.tls == other.tls
            && self.trust == other.trust
            && self.max_prepared_statements == other.max_prepared_statements
    }
}

/// TLS with clients. A reload makes another; handshakes under way and connections go on with the one they
/// began with.
#[derive(Debug, Clone, Default)]
pub struct ClientTls {
    /// What they may have of it.
    pub offer: TlsOffer,
    /// By [`Protocol::index`].
    pub acceptors: [Option<Acceptor>; 2],
}

impl ClientTls {
    /// Makes the server's end of connections of one protocol.
    pub fn acceptor(&self, protocol: Protocol) -> Option<&Acceptor> {
        self.acceptors[protocol.index()].as_ref()
    }
}

/// What is written to the log about clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logged {
    /// Logins that succeed.
    pub connections: bool,
    /// Clients that leave.
    pub disconnections: bool,
    /// What Weir itself tells clients before it closes them.
    pub pooler_errors: bool,
}

impl Default for Logged {
    fn default() -> Self {
        Logged { connections: false, disconnections: false, pooler_errors: true }
    }
}

/// Somebody at the door.
pub struct Visitor<'a> {
    /// Where it comes from.
    pub peer: &'a Peer,
    /// The TLS it is inside.
    pub secured: Option<Arc<Secured>>,
}

/// Answers to "who may come in" and "where does it go". Configuration behind a trait, so that the hall
/// does not know files.
pub trait Routes: Send + Sync {
    /// How this user must prove itself. Never fails: an unknown user is admitted to a proof it cannot
    /// give.
    /// `learnt`: what a database said of the user, where it was asked.
    fn admit(
        &self,
        protocol: Protocol,
        login: &Login,
        visitor: &Visitor<'_>,
        learnt: Option<&Learnt>,
    ) -> Admission;
    /// Why nobody comes in like this, whatever is proved; for the log.
    fn rejects(&self, _protocol: Protocol, _login: &Login, _visitor: &Visitor<'_>) -> Option<String> {
        None
    }
    /// What a database must be asked before [`Routes::admit`], because no file lists this user.
    fn question(&self, _protocol: Protocol, _login: &Login, _visitor: &Visitor<'_>) -> Option<Question> {
        None
    }
    /// Who says whether the password of this client is right, where Weir does not know it.
    fn voucher(&self, _protocol: Protocol, _login: &Login, _visitor: &Visitor<'_>) -> Option<Voucher> {
        None
    }
    /// Clients may have their connections compressed.
    fn compresses(&self) -> bool {
        true
    }
    /// This peer is a load balancer: its connections begin with a PROXY header.
    fn is_balancer(&self, _protocol: Protocol, _peer: &Peer) -> bool {
        false
    }
    /// This login names the administration console: what it may do there (`None`: nothing), if it is who it
    /// says.
    fn console(&self, _protocol: Protocol, _login: &Login, _peer: &Peer) -> Option<Option<Rights>> {
        None
    }
    /// The pool of a proven login, and the name of its database on the server.
    ///
    /// # Errors
    /// What the client is told: there is no such database, or it has no place for this user.
    fn resolve(
        &self,
        protocol: Protocol,
        login: &Login,
        learnt: Option<Arc<Learnt>>,
        variant: u32,
    ) -> Result<(PoolSpec, String), Fault>;
    /// The same pool by these settings: of another size, with another server, or, when its database or user
    /// is no longer there, as it was, without servers to be kept open for nobody.
    fn renew(&self, protocol: Protocol, spec: &PoolSpec) -> PoolSpec;
    /// How MySQL's greeting asks for a proof before the user is known.
    fn default_method(&self, protocol: Protocol) -> weir_session::AuthMethod;
}

/// Everything the workers need to know. A reload makes new ones; nobody ever changes them.
#[derive(Clone)]
pub struct Settings {
    /// Counts up with every reload.
    pub epoch: u64,
    /// What is logged about clients.
    pub logged: Logged,
    /// Clients at most, in the whole process.
    pub max_client_conn: usize,
    /// Clients that one worker gets before the next gets any.
    pub clients_together: usize,
    /// Clients on one worker that are not held up much by the handshakes of others, one in each turn. Beside
    /// more of them, another thread does the costly step.
    pub few_clients: usize,
    /// Statements whose figures each worker keeps for each protocol; 0: none.
    pub statements: usize,
    /// Bounds on time.
    pub timeouts: Timeouts,
    /// TLS with clients.
    pub tls: ClientTls,
    /// Users and databases.
    pub routes: Arc<dyn Routes>,
}
