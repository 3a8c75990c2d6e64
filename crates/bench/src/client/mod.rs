//! The client side of a session: login by the wings' `Connect`, then requests and replies.
//!
//! Pure machines, one per protocol: bytes in, bytes out; no sockets, no clock. A session between two queries
//! takes a few words, because there may be 100,000 of them.

pub mod blocking;
mod copy;
pub mod mysql;
pub mod postgres;

use crate::plan::Mode;
use crate::statement::{Got, Query, Statement, Value};
use crate::url::Url;
use std::io;
use weir_session::Connect;
use weir_session::login::{ConnectParams, TlsWish};

/// Bytes of one message that are looked at. Longer messages (rows) pass unread.
pub const MESSAGE_BYTES_MAX: usize = 256 * 1024;

/// A server's refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// SQLSTATE, or errno for MySQL.
    pub code: String,
    /// The server's words.
    pub text: String,
    /// The connection ends with it.
    pub fatal: bool,
}

/// What the start of a reply is.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Nothing can be said until more bytes have come behind these.
    Incomplete,
    /// So many bytes are dealt with.
    Pass(usize),
    /// So many bytes held the first value of the first row.
    First(usize, Got<'a>),
    /// So many bytes held a row of a query that listens.
    Row(usize, Vec<Value>),
    /// So many bytes held a refusal. The reply may go on.
    Refused(usize, Refusal),
    /// So many bytes ended a round that was only the beginning: call `begin` again with the same query.
    Again(usize),
    /// So many bytes ended the reply.
    Done(usize),
    /// This is not the protocol.
    Broken(&'static str),
}

/// One database protocol as the load generator needs it.
pub trait Protocol: 'static {
    /// A refusal is the whole reply; else [`Piece::Done`] follows it.
    const REFUSAL_ENDS_REPLY: bool;
    /// The client asks for TLS before the server says anything.
    const TLS_IS_ASKED_FIRST: bool;
    /// The wing's login machine.
    type Login: Connect;
    /// What is kept between two queries.
    type Session: Send + Default;

    /// A login that has not begun.
    fn login(params: ConnectParams) -> Self::Login;
    /// Reads the payload of an ErrorResponse or ERR packet.
    fn read_refusal(payload: &[u8]) -> Refusal;
    /// Why the server refused the login.
    fn refusal(login: &Self::Login) -> Option<Refusal> {
        login.rejection().map(Self::read_refusal)
    }
    /// After `LoggedIn`.
    fn into_session(login: Self::Login) -> Self::Session;

    /// Appends a query, or the first round of one.
    fn begin(
        session: &mut Self::Session,
        statements: &[Statement],
        query: &Query,
        mode: Mode,
        out: &mut Vec<u8>,
    );
    /// A transaction is open, as far as the server has said.
    fn in_transaction(session: &Self::Session) -> bool;
    /// Appends a query that is text.
    fn begin_text(session: &mut Self::Session, text: &[u8], out: &mut Vec<u8>);
    /// Looks at the start of what the server sent. Called again with the rest after each piece.
    fn next<'a>(session: &mut Self::Session, input: &'a [u8]) -> Piece<'a>;
    /// Appends the goodbye.
    fn quit(out: &mut Vec<u8>);
}

/// The parameters of a login to this server.
pub fn connect_params(url: &Url, tls: TlsWish, nonce: [u8; 64]) -> ConnectParams {
    ConnectParams {
        user: url.user.clone(),
        secret: url.secret.clone(),
        database: url.database.clone(),
        parameters: Vec::new(),
        nonce,
        unix: matches!(url.target, weir_net::Target::Unix(_)),
        tls,
        trust: url.trust.clone(),
        cancel: None,
        variant: 0,
        max_prepared_statements: 0,
        changes: Default::default(),
    }
}

/// The code under which an I/O error is counted: the system's name for it where it is one of those that
/// a load generator meets.
pub fn io_code(error: &io::Error) -> String {
    use io::ErrorKind as K;
    match error.kind() {
        K::ConnectionRefused => "ECONNREFUSED".to_owned(),
        K::ConnectionReset => "ECONNRESET".to_owned(),
        K::ConnectionAborted => "ECONNABORTED".to_owned(),
        K::BrokenPipe => "EPIPE".to_owned(),
        K::TimedOut => "ETIMEDOUT".to_owned(),
        K::AddrInUse => "EADDRINUSE".to_owned(),
        K::AddrNotAvailable => "EADDRNOTAVAIL".to_owned(),
        K::NotFound => "ENOENT".to_owned(),
        K::PermissionDenied => "EACCES".to_owned(),
        K::UnexpectedEof => "closed".to_owned(),
        K::InvalidData => "tls".to_owned(),
        _ => match error.raw_os_error() {
            Some(11) => "EAGAIN".to_owned(),
            Some(23) => "ENFILE".to_owned(),
            Some(24) => "EMFILE".to_owned(),
            Some(number) => format!("errno {number}"),
            None => "io".to_owned(),
        },
    }
}
