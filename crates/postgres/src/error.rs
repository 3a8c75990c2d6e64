//! The ErrorResponse that a client gets when Weir itself ends or refuses something (protocol sections 55.7
//! and 55.8).
//!
//! Owns: the SQLSTATE and the text of every [`FaultKind`]. Must not know: why it happened; `detail` of a
//! fault is for the log and is never sent. Invariant: every error has a SQLSTATE (drivers crash without one),
//! says what to do, and leaks nothing.

use crate::frame::{put, put_cstr};
use weir_wire::{FaultKind, Pin, Reader};

/// How bad it is, as field `S` and `V` say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The request failed, the session goes on.
    Error,
    /// The session ends.
    Fatal,
}

impl Severity {
    /// The word on the wire; never translated.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
        }
    }
}

/// SQLSTATE, message and hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// Five characters of SQLSTATE (PostgreSQL's appendix A).
    pub sqlstate: &'static str,
    /// What happened.
    pub message: &'static str,
    /// What to do; may be empty.
    pub hint: &'static str,
}

const fn words(sqlstate: &'static str, message: &'static str, hint: &'static str) -> Words {
    Words { sqlstate, message, hint }
}

/// What a prepared statement returns has changed since it was prepared: PostgreSQL's own words
/// (`RevalidateCachedQuery`).
const PLAN_MUST_NOT_CHANGE: Words = words("0A000", "cached plan must not change result type", "");

/// A replication connection.
pub const NO_REPLICATION: Words = words(
    "0A000",
    "Weir does not support replication connections",
    "Connect to the database server directly.",
);

/// A word in the startup parameter `options` that PostgreSQL refuses (42601, `process_postgres_switches`), or
/// a switch that Weir does not know.
pub const UNKNOWN_OPTION: Words = words(
    "42601",
    "invalid command-line argument for server process in the startup parameter \"options\"",
    "Most clients need \"-c name=value\" only.",
);

/// Direct TLS without ALPN, which tells it from other protocols (CVE-2021-3618).
pub const NO_ALPN: Words = words(
    "08P01",
    "direct TLS connection without the application protocol \"postgresql\"",
    "Use a driver with sslnegotiation=direct, or request TLS with an SSLRequest.",
);

/// A startup packet without a user, or with an empty name.
pub const NO_USER: Words = words(
    "28000",
    "no PostgreSQL user name specified in startup packet",
    "Name a user in the connection string.",
);

/// Method `cert`: no certificate, or another user's.
pub const CERT_FAILED: Words = words(
    "28000",
    "certificate authentication failed",
    "The common name of the client's certificate must be the user's name, or one that auth_ident_map allows.",
);

/// Nobody vouches for the client, or for somebody else.
pub const PEER_FAILED: Words = words(
    "28000",
    "peer authentication failed",
    "Connect through the Unix socket, as the operating system's user of that name or as one that auth_ident_map allows.",
);

/// Method `ldap`: PostgreSQL's words without the user's name, whatever the reason.
pub const LDAP_FAILED: Words = words(
    "28000",
    "LDAP authentication failed",
    "Check the user name and the password. Weir's log has the reason.",
);

/// Method `pam`: PostgreSQL's words without the user's name, whatever the reason.
pub const PAM_FAILED: Words = words(
    "28000",
    "PAM authentication failed",
    "Check the user name and the password. Weir's log has the reason.",
);

/// An empty password where somebody else would be asked about it: PostgreSQL's words
/// (`recv_password_packet`).
pub const EMPTY_PASSWORD: Words =
    words("28P01", "empty password returned by client", "This user needs a password.");

/// A major version other than 3.
pub const UNKNOWN_VERSION: Words = words(
    "0A000",
    "unsupported frontend protocol: Weir supports 3.0 to 3.2",
    "Use a driver that supports version 3 of the protocol.",
);

/// The words of a fault. One place, so that no two paths say different things about the same fault.
pub fn words_of(kind: FaultKind) -> Words {
    match kind {
        FaultKind::ClientProtocol => words(
            "08P01",
            "protocol violation: Weir could not read the client's message",
            "The connection is closed because its state is unknown. Check the driver's version.",
        ),
        FaultKind::ClientTooLarge => words(
            "54000",
            "a message is larger than Weir accepts",
            "Send the data in smaller pieces, or use COPY.",
        ),
        FaultKind::LoginFailed => words(
            "28P01",
            "password authentication failed",
            "Check the user name, the password and the database name.",
        ),
        FaultKind::LoginUnanswered => words(
            "28000",
            "authentication failed",
            "Nobody could say whether the password is right. Weir's log has the reason.",
        ),
        FaultKind::LoginRejected => words(
            "28000",
            "login rejected",
            "The HBA file does not allow this user to connect to this database in this way. Weir's log names the line that decided.",
        ),
        FaultKind::ClientTls => words("08P01", "the TLS handshake failed", "Weir's log has the reason."),
        FaultKind::ProxyHeader => words(
            "08P01",
            "the connection does not begin with a PROXY header",
            "This address is listed in proxy_protocol_networks. Weir's log has the details.",
        ),
        // PostgreSQL says "no pg_hba.conf entry for host ..., no encryption".
        FaultKind::TlsRequired => {
            words("28000", "SSL required", "Connect with sslmode=require or higher: Weir requires TLS.")
        }
        FaultKind::ServerTls => words(
            "08001",
            "cannot establish a TLS connection to the database server",
            "Weir's log has the reason. See the settings in [tls.server].",
        ),
        FaultKind::LoginTimeout => words(
            "08P01",
            "the login took too long (client_login_timeout)",
            "Raise client_login_timeout if the client's network is slow.",
        ),
        FaultKind::NoSuchDatabase => words(
            "3D000",
            "no such database is configured in Weir",
            "Check the database name, or add it to [databases].",
        ),
        FaultKind::TooManyClients => words(
            "53300",
            "no more connections allowed (max_client_conn)",
            "Raise max_client_conn, or close connections that are not needed.",
        ),
        FaultKind::TooManyLogins => words(
            "53300",
            "too many logins at once",
            "Try again in a moment. SCRAM verifiers instead of passwords save Weir this work.",
        ),
        FaultKind::ClientIdleTimeout => {
            words("57P05", "the client was idle for too long (client_idle_timeout)", "Connect again.")
        }
        FaultKind::ClientReadTimeout => words(
            "08006",
            "the rest of a message did not arrive in time (client_read_timeout)",
            "The request was not run. Raise client_read_timeout if the client pauses in the middle of its messages.",
        ),
        FaultKind::IdleInTransactionTimeout => words(
            "25P03",
            "the transaction was idle for too long (idle_transaction_timeout)",
            "The transaction was rolled back. End transactions soon after their last statement.",
        ),
        FaultKind::TransactionTimeout => words(
            "25P04",
            "the transaction took too long (transaction_timeout)",
            "The transaction was rolled back, unless it was just being committed. Make it shorter or raise transaction_timeout.",
        ),
        FaultKind::QueryTimeout => words(
            "57014",
            "the query took too long (query_timeout)",
            "Make the query cheaper or raise query_timeout.",
        ),
        FaultKind::QueueFull => words(
            "53300",
            "too many clients are already waiting for a server connection (max_waiting_clients)",
            "The request was not run. Try again later, send fewer requests, make queries and transactions shorter, or raise pool_size if the \
             database can handle more connections.",
        ),
        FaultKind::QueryWaitTimeout => words(
            "08006",
            "no server connection became free in time (query_wait_timeout)",
            "The statement did not run. Look for long transactions and pinned sessions (weir_pinned_servers), or raise default_pool_size.",
        ),
        FaultKind::Cancelled => words(
            "57014",
            "canceling statement due to user request",
            "The statement did not run: it was still waiting for a server.",
        ),
        FaultKind::Killed => {
            words("57P01", "terminating connection due to administrator command", "Connect again.")
        }
        FaultKind::NotAllowed => words(
            "0A000",
            "this is not allowed with the pool_mode of this database",
            "Use pool_mode = transaction or session for this database.",
        ),
        FaultKind::ClientGone => words("08006", "the client stopped reading", ""),
        FaultKind::ServerUnavailable => words(
            "08001",
            "the database server cannot be reached",
            "Try again later. Weir's log has the address and the reason.",
        ),
        FaultKind::ServerLoginFailed => words(
            "08004",
            "the database server refused Weir's login",
            "Check the user and password of this database in Weir's configuration; Weir's log has the server's message.",
        ),
        FaultKind::ServerLost => words(
            "08006",
            "the connection to the database server was lost",
            "Whether the statement took effect is not known. Check before you repeat it.",
        ),
        FaultKind::ServerProtocol => words(
            "08P01",
            "Weir could not read a message of the database server",
            "Whether the statement took effect is not known. Check before you repeat it.",
        ),
        FaultKind::ServerTooLarge => words(
            "54000",
            "a message of the database server is larger than Weir accepts",
            "Request less data in one message.",
        ),
        FaultKind::ShuttingDown => words("57P01", "Weir is shutting down", "Connect again."),
        FaultKind::WorkerFailed => {
            words("57P01", "Weir ended this connection after an internal error", "Connect again.")
        }
        FaultKind::InternalError => words(
            "XX000",
            "Weir closed this connection because of an internal error",
            "Whether the statement took effect is not known. Check before you repeat it.",
        ),
        FaultKind::OutOfResources => words(
            "53000",
            "Weir is out of descriptors, ports or memory",
            "Try again later. `weir doctor` on Weir's machine names the limit.",
        ),
    }
}

/// Appends an ErrorResponse.
pub fn put_error(out: &mut Vec<u8>, severity: Severity, words: Words) {
    put(out, b'E', |out| {
        put_fields(out, severity, words);
        out.push(0);
    });
}

/// Appends [`PLAN_MUST_NOT_CHANGE`] with the routine that PostgreSQL names: by that, drivers such as asyncpg
/// and pgJDBC know that they must prepare again.
pub fn put_plan_must_not_change(out: &mut Vec<u8>) {
    put(out, b'E', |out| {
        put_fields(out, Severity::Error, PLAN_MUST_NOT_CHANGE);
        put_field(out, b'F', "plancache.c");
        put_field(out, b'R', "RevalidateCachedQuery");
        out.push(0);
    });
}

fn put_fields(out: &mut Vec<u8>, severity: Severity, words: Words) {
    put_field(out, b'S', severity.word());
    put_field(out, b'V', severity.word());
    put_field(out, b'C', words.sqlstate);
    put_field(out, b'M', words.message);
    put_field(out, b'H', words.hint);
}

/// A field of an error or notice, unless there is nothing to say.
fn put_field(out: &mut Vec<u8>, field: u8, text: &str) {
    if !text.is_empty() {
        out.push(field);
        put_cstr(out, text.as_bytes());
    }
}

/// What an application can do in the place of what pins: a sentence and a blank, or nothing.
fn instead_of(pin: Pin) -> &'static str {
    match pin {
        Pin::SessionLock => "Use locks that end with the transaction, such as pg_advisory_xact_lock(). ",
        Pin::TemporaryTable => "Use a common table expression or a permanent table. ",
        Pin::Cursor => "Use a cursor that ends with its transaction. ",
        Pin::SqlPrepare => "Prepare statements through the driver. ",
        Pin::Setting
        | Pin::Listen
        | Pin::LastResult
        | Pin::UserVariable
        | Pin::Load
        | Pin::Prepared
        | Pin::Replication
        | Pin::Unrecognised
        | Pin::Code
        | Pin::Sequence => "",
    }
}

/// Why Weir refuses a statement in the database's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It would pin for this reason, and the operator has decided so.
    Pin(Pin),
    /// It ends a failed transaction and asks what was drawn from a sequence: what another client has drawn
    /// there cannot be forgotten before.
    AsksBehindFailure,
    /// It ends a failed transaction and may ask what is prepared under which names, which the server does not
    /// know before.
    NamesBehindFailure,
}

impl Refusal {
    /// The body of an ErrorResponse.
    pub fn told(self) -> Box<[u8]> {
        match self {
            Refusal::Pin(pin) => refusal_of_pin(pin),
            Refusal::AsksBehindFailure => refusal(
                "this statement is refused: it ends a failed transaction and asks currval() or lastval() in one request",
                "Send ROLLBACK in a request of its own, then ask.",
            ),
            Refusal::NamesBehindFailure => refusal(
                "this statement is refused: it ends a failed transaction and asks for prepared statements in one request",
                "Send ROLLBACK in a request of its own, then ask.",
            ),
        }
    }
}

/// The body of an ErrorResponse: the operator refuses statements that pin for this reason.
fn refusal_of_pin(pin: Pin) -> Box<[u8]> {
    let message = format!(
        "this statement is refused: its client would keep the server connection beyond the transaction ({})",
        pin.label()
    );
    let hint = format!(
        "Weir's setting pins.{} = error refuses it. {}Change the setting, or connect to the database server directly.",
        pin.label(),
        instead_of(pin)
    );
    refusal(&message, &hint)
}

/// "Feature not supported".
fn refusal(message: &str, hint: &str) -> Box<[u8]> {
    let mut body = Vec::new();
    let error = Severity::Error.word().as_bytes();
    let fields: [(u8, &[u8]); 5] =
        [(b'S', error), (b'V', error), (b'C', b"0A000"), (b'M', message.as_bytes()), (b'H', hint.as_bytes())];
    for (field, text) in fields {
        body.push(field);
        put_cstr(&mut body, text);
    }
    body.push(0);
    body.into()
}

/// The fields of an ErrorResponse or NoticeResponse body, in order, until its end or its first broken field.
pub fn fields(body: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut reader = Reader::new(body);
    std::iter::from_fn(move || {
        let field = reader.u8().ok().filter(|&f| f != 0)?;
        Some((field, reader.cstr().ok()?))
    })
}

/// One field of an ErrorResponse body.
pub fn field(body: &[u8], wanted: u8) -> Option<&[u8]> {
    fields(body).find(|&(f, _)| f == wanted).map(|(_, text)| text)
}

/// Appends an ErrorResponse with the fields of `body`, its severity turned to FATAL: what a server said
/// about an attempt, told to a client whose session ends with it.
pub fn put_as_fatal(out: &mut Vec<u8>, body: &[u8]) {
    put(out, b'E', |out| {
        for (field, text) in fields(body) {
            out.push(field);
            put_cstr(out, if matches!(field, b'S' | b'V') { b"FATAL" } else { text });
        }
        out.push(0);
    });
}

/// What a client reads behind a server's words about an account: it has logged in to Weir already.
const WEIRS_OWN_LOGIN: &[u8] =
    b"The database server refused Weir's own login, not this client's login to Weir. \
    Check the user and password of this database in Weir's configuration.";

/// [`put_as_fatal`] of what a server said of Weir's own login. Of an account (class 28, invalid
/// authorization) it reads as if the client's were meant.
pub fn put_refusal(out: &mut Vec<u8>, body: &[u8]) {
    let is_of_account = field(body, b'C').is_some_and(|code| code.starts_with(b"28"));
    if !is_of_account || field(body, b'H').is_some() {
        return put_as_fatal(out, body);
    }
    let mut with_hint: Vec<u8> = Vec::with_capacity(body.len() + WEIRS_OWN_LOGIN.len() + 2);
    for (field, text) in fields(body).chain([(b'H', WEIRS_OWN_LOGIN)]) {
        with_hint.push(field);
        put_cstr(&mut with_hint, text);
    }
    with_hint.push(0);
    put_as_fatal(out, &with_hint);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_weirs_own_login_says_whose_it_is() {
        let mut out = Vec::new();
        put_refusal(
            &mut out,
            b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user \"app\"\0\0",
        );
        let body = &out[5..];
        assert_eq!(field(body, b'C'), Some(&b"28P01"[..]));
        assert_eq!(field(body, b'H'), Some(WEIRS_OWN_LOGIN));
        let mut out = Vec::new();
        put_refusal(&mut out, b"SFATAL\0VFATAL\0C3D000\0Mdatabase \"x\" does not exist\0\0");
        assert_eq!(field(&out[5..], b'H'), None, "that is the client's business");
    }

    #[test]
    fn every_fault_has_a_sqlstate_and_words() {
        for &kind in FaultKind::ALL {
            let words = words_of(kind);
            assert_eq!(words.sqlstate.len(), 5, "{kind:?}");
            assert!(words.sqlstate.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase()), "{kind:?}");
            assert!(!words.message.is_empty(), "{kind:?}");
            let mut out = Vec::new();
            put_error(&mut out, Severity::Error, words);
            let body = &out[5..];
            assert_eq!(field(body, b'C'), Some(words.sqlstate.as_bytes()));
            assert_eq!(field(body, b'M'), Some(words.message.as_bytes()));
            assert_eq!(field(body, b'V'), Some(&b"ERROR"[..]));
        }
    }

    #[test]
    fn login_failure_tells_nothing_about_the_user() {
        let words = words_of(FaultKind::LoginFailed);
        assert!(!words.message.contains("exist"));
    }

    #[test]
    fn a_servers_error_becomes_fatal() {
        let mut out = Vec::new();
        put_as_fatal(&mut out, b"SFEHLER\0VERROR\0C22023\0Minvalid value\0\0");
        assert_eq!(&out[5..], b"SFATAL\0VFATAL\0C22023\0Minvalid value\0\0");
        // A broken body loses what is broken and nothing else.
        out.clear();
        put_as_fatal(&mut out, b"C22023\0Mno end");
        assert_eq!(&out[5..], b"C22023\0\0");
    }
}
