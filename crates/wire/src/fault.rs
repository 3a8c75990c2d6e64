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
            /// Its meaning, in a sentence, for the manual.
            pub fn meaning(self) -> &'static str {
                match self { $(FaultKind::$name => concat!($($doc),*),)* }.trim()
            }
        }
    };
}

fault_kinds! {
    /// The client sent bytes that are not the protocol, or a message in the wrong state.
    ClientProtocol Client "client_protocol",
    /// A message of the client exceeds a limit.
    ClientTooLarge Client "client_too_large",
    /// Unknown user or wrong password.
    LoginFailed Client "login_failed",
    /// The LDAP server or PAM, which knows the users, could not be asked or did not answer; the log has the
    /// reason.
    LoginUnanswered Weir "login_unanswered",
    /// A line of the HBA file rejects the login, or none matches.
    LoginRejected Client "login_rejected",
    /// The TLS handshake with the client failed: no TLS, no common version, an invalid certificate.
    ClientTls Client "client_tls",
    /// A login without TLS where `client_tls_sslmode` requires it.
    TlsRequired Client "tls_required",
    /// A connection from one of `proxy_protocol_networks` does not begin with a valid PROXY header.
    ProxyHeader Client "proxy_header",
    /// A login did not finish within `client_login_timeout`.
    LoginTimeout Client "login_timeout",
    /// The database is not in Weir's configuration.
    NoSuchDatabase Client "no_such_database",
    /// `max_client_conn` or a smaller limit is reached.
    TooManyClients Weir "too_many_clients",
    /// More logins wait for password computations than can be served in time.
    TooManyLogins Weir "too_many_logins",
    /// The client sent nothing for `client_idle_timeout`.
    ClientIdleTimeout Client "client_idle_timeout",
    /// A client that holds a server paused in the middle of a message for `client_read_timeout`.
    ClientReadTimeout Client "client_read_timeout",
    /// A transaction was idle for `idle_transaction_timeout`.
    IdleInTransactionTimeout Client "idle_transaction_timeout",
    /// A transaction took longer than `transaction_timeout`.
    TransactionTimeout Client "transaction_timeout",
    /// A request ran longer than `query_timeout`.
    QueryTimeout Client "query_timeout",
    /// A request waited for a server longer than `query_wait_timeout`.
    QueryWaitTimeout Weir "query_wait_timeout",
    /// More clients wait for a server than `max_waiting_clients` allows.
    QueueFull Weir "queue_full",
    /// The client cancelled its own waiting request.
    Cancelled Client "cancelled",
    /// KILL or the operator closed the client.
    Killed Client "killed",
    /// The client used something that Weir does not support, such as a transaction in statement mode.
    NotAllowed Weir "not_allowed",
    /// The client stopped reading or disconnected with a request in progress.
    ClientGone Client "client_gone",
    /// The server cannot be reached: refused, unreachable, timed out.
    ServerUnavailable Server "server_unavailable",
    /// The server refused Weir's login; the log has its message.
    ServerLoginFailed Server "server_login_failed",
    /// The server has no TLS where `server_tls_sslmode` requires it, or its certificate is invalid.
    ServerTls Server "server_tls",
    /// The server connection was lost while a reply was outstanding.
    ServerLost Server "server_lost",
    /// The server sent bytes that are not the protocol.
    ServerProtocol Server "server_protocol",
    /// A message of the server exceeds a limit.
    ServerTooLarge Server "server_too_large",
    /// Weir is stopping.
    ShuttingDown Weir "shutting_down",
    /// A worker thread panicked: a defect of Weir.
    WorkerFailed Weir "worker_failed",
    /// Weir detected an inconsistency: a defect of Weir. It closes the client and the server concerned.
    InternalError Weir "internal_error",
    /// Weir ran out of descriptors, ports or memory.
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
