//! What went wrong, whose fault it is, and who may be told what.
//!
//! The two wings turn a [`FaultKind`] into a SQLSTATE or an errno with a text that drivers know; the proxy
//! turns it into a counter and a log line. `detail` is for the operator's log only and is never sent to a
//! client.

use std::borrow::Cow;

/// Whose fault a [`Fault`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Whose {
    /// The application or its driver.
    Client,
    /// The database.
    Server,
    /// The operator's settings, or a bound Weir keeps.
    Weir,
}

macro_rules! fault_kinds {
    ($($(#[doc = $doc:literal])* $name:ident $whose:ident $label:literal,)*) => {
        /// Kinds of [`Fault`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum FaultKind { $($(#[doc = $doc])* $name,)* }
        impl FaultKind {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [FaultKind] = &[$(FaultKind::$name,)*];
            /// Whose fault it is.
            pub fn whose(self) -> Whose { match self { $(FaultKind::$name => Whose::$whose,)* } }
            /// The value of the `kind` label in metrics and logs.
            pub fn label(self) -> &'static str { match self { $(FaultKind::$name => $label,)* } }
        }
    };
}

fault_kinds! {
    /// Bytes that are not the protocol, or a message in the wrong state.
    ClientProtocol Client "client_protocol",
    /// A message over a bound.
    ClientTooLarge Client "client_too_large",
    /// Wrong user or password. Never says which.
    LoginFailed Client "login_failed",
    /// Nobody comes in like this: a line of the HBA file rejects it, or none fits.
    LoginRejected Client "login_rejected",
    /// No TLS came about: not TLS at all, no common version, a certificate that is not good.
    ClientTls Client "client_tls",
    /// A login in clear where `client_tls_sslmode` asks for TLS.
    TlsRequired Client "tls_required",
    /// A connection from one of `proxy_protocol_networks` that does not begin with a PROXY header that is
    /// good.
    ProxyHeader Client "proxy_header",
    /// Login did not finish in `client_login_timeout`.
    LoginTimeout Client "login_timeout",
    /// No such database in Weir's configuration.
    NoSuchDatabase Client "no_such_database",
    /// `max_client_conn` or a smaller limit is reached.
    TooManyClients Weir "too_many_clients",
    /// More logins wait for slow work than could be served in time.
    TooManyLogins Weir "too_many_logins",
    /// Nothing arrived from the client for `client_idle_timeout`.
    ClientIdleTimeout Client "client_idle_timeout",
    /// A message that holds a server did not go on for `client_read_timeout`.
    ClientReadTimeout Client "client_read_timeout",
    /// `idle_transaction_timeout`.
    IdleInTransactionTimeout Client "idle_transaction_timeout",
    /// `transaction_timeout`.
    TransactionTimeout Client "transaction_timeout",
    /// `query_timeout`.
    QueryTimeout Client "query_timeout",
    /// The request waited longer than `query_wait_timeout` for a server.
    QueryWaitTimeout Weir "query_wait_timeout",
    /// More clients wait for a server than `max_waiting_clients` allows.
    QueueFull Weir "queue_full",
    /// The client asked for the cancellation of its own waiting request.
    Cancelled Client "cancelled",
    /// The client was ended by KILL or by the operator.
    Killed Client "killed",
    /// Something Weir does not carry, such as a transaction in statement mode.
    NotAllowed Weir "not_allowed",
    /// The client stopped reading or went away with a request under way.
    ClientGone Client "client_gone",
    /// No server connection could be made: refused, unreachable, timed out.
    ServerUnavailable Server "server_unavailable",
    /// The server refused Weir's login; its message is in `detail`.
    ServerLoginFailed Server "server_login_failed",
    /// No TLS with the server where `server_tls_sslmode` asks for it, or its certificate is not good.
    ServerTls Server "server_tls",
    /// The server connection ended while it owed a reply.
    ServerLost Server "server_lost",
    /// The server sent bytes that are not the protocol.
    ServerProtocol Server "server_protocol",
    /// A server's message over a bound.
    ServerTooLarge Server "server_too_large",
    /// Weir is stopping.
    ShuttingDown Weir "shutting_down",
    /// A worker of Weir's has panicked, and begins anew without its clients.
    WorkerFailed Weir "worker_failed",
    /// Weir has met what cannot be, which is a defect of Weir: it costs the client and the server it is
    /// about.
    InternalError Weir "internal_error",
    /// Weir ran out of something: descriptors, ports, memory it allows itself.
    OutOfResources Weir "out_of_resources",
}

/// An error with its kind and, for the operator's log, a detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// For the log. May name hosts, users and bytes; never passwords; never sent to a client.
    pub detail: Cow<'static, str>,
}

impl Fault {
    /// A fault with a detail for the log.
    pub fn new(kind: FaultKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Fault { kind, detail: detail.into() }
    }
}

/// The name of a variant without what is in it, for details: messages of a protocol are called as its manual
/// calls them.
pub fn name_of(variant: &impl std::fmt::Debug) -> String {
    let shown = format!("{variant:?}");
    let end = shown.find(|c: char| !c.is_alphanumeric()).unwrap_or(shown.len());
    shown[..end].to_owned()
}

impl From<FaultKind> for Fault {
    fn from(kind: FaultKind) -> Self {
        Fault { kind, detail: Cow::Borrowed("") }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind.label())?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
