//! One blocking connection on which PostgreSQL is asked for passwords.
//!
//! Owns: the messages of the query, and the time limit of each answer. Must not know: who asked; sockets.
//!
//! Invariants: the login carries no parameter from a client; a name is sent as a parameter of the extended
//! protocol; an answer is bounded, and every name has an answer of its own.

use super::Question;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_auth::Secret;
use weir_blocking::{self as blocking, Failure, Way};
use weir_net::Target;
use weir_postgres::error::field;
use weir_postgres::frame::{ServerTag, body, put, put_cstr, server_header};
use weir_postgres::message::query::{SYNC, TERMINATE, put_parse};
use weir_session::Connect;
use weir_session::login::{ConnectParams, TlsWish};
use weir_wire::limits::SERVER_GATHER_BYTES;
use weir_wire::{Fault, FaultKind, Reader, Short};

/// Longest wait for the server where `server_connect_timeout` sets none.
const PATIENCE: Duration = Duration::from_secs(15);

/// `timestamp with time zone`: the type of a third column (`pg_type.oid`).
const TIMESTAMPTZ: u32 = 1184;

/// From 1970 to 2000, where PostgreSQL's times begin.
const EPOCH_SHIFT_US: i64 = 946_684_800_000_000;

/// What the database stores for one user; `None`: who cannot log in.
pub(super) type Found = Result<Option<Arc<Secret>>, Fault>;

/// A connection that has asked for nothing yet, or whose answers were all read.
pub(super) struct Line {
    line: blocking::Line,
    /// The query returns until when a password is valid.
    has_time: bool,
}

fn unavailable(what: impl std::fmt::Display) -> Fault {
    Fault::new(FaultKind::ServerUnavailable, format!("auth_query: {what}"))
}

fn broken(error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => unavailable("no answer in time"),
        _ => unavailable(error),
    }
}

fn short(_: Short) -> Fault {
    Fault::new(FaultKind::ServerProtocol, "auth_query: a message shorter than its fields")
}

/// The words of an ErrorResponse.
fn refusal(kind: FaultKind, payload: &[u8]) -> Fault {
    let of = |wanted| String::from_utf8_lossy(field(payload, wanted).unwrap_or_default()).into_owned();
    Fault::new(kind, format!("auth_query: the database says: {} ({})", of(b'M'), of(b'C')))
}

/// Why nobody logged in.
fn failed(failure: Failure) -> Fault {
    match failure {
        Failure::Io(error) => broken(error),
        Failure::Tls(text) => Fault::new(FaultKind::ServerTls, format!("auth_query: TLS: {text}")),
        Failure::Broken(what) => unavailable(what),
        Failure::Refused(said) => refusal(FaultKind::ServerLoginFailed, &said),
        Failure::Login(fault) => fault,
    }
}

impl Line {
    /// Connects to one of the addresses, logs in and prepares the query.
    pub(super) fn open(question: &Question) -> Result<Line, Fault> {
        let longest = patience(question);
        let tls = question.asked.entry.tls.as_deref();
        let mut last = unavailable("no address for this host");
        for target in question.targets.all() {
            let way = Way { target: &target, tls, connect: longest, silence: Some(longest) };
            match blocking::Line::open(&way, |wish| login(question, &target, wish)) {
                Ok((line, _)) => {
                    let mut line = Line { line, has_time: false };
                    line.prepare(&question.asked.asking.query)?;
                    return Ok(line);
                }
                Err(failure) => last = failed(failure),
            }
        }
        Err(last)
    }

    /// Prepares the query as the unnamed statement, and looks at what it takes and returns.
    fn prepare(&mut self, query: &str) -> Result<(), Fault> {
        let mut out = Vec::new();
        put_parse(&mut out, b"", &[query.as_bytes(), b"\0\0\0"].concat());
        put(&mut out, b'D', |out| out.extend_from_slice(b"S\0"));
        out.extend_from_slice(SYNC);
        self.line.send(&out).map_err(broken)?;
        let (mut parameters, mut columns, mut third) = (0, 0, 0);
        self.replies(|tag, payload| {
            let mut reader = Reader::new(payload);
            match tag {
                ServerTag::ParameterDescription => parameters = reader.u16_be()?,
                ServerTag::RowDescription => {
                    columns = reader.u16_be()?;
                    for _ in 0..columns {
                        reader.cstr()?;
                        reader.take(6)?;
                        third = reader.u32_be()?;
                        reader.take(8)?;
                    }
                }
                _ => {}
            }
            Ok(())
        })?
        .map_or(Ok(()), Err)?;
        if parameters != 1 {
            return Err(unavailable(format!("the query must have one parameter, $1, and has {parameters}")));
        }
        self.has_time = match (columns, third) {
            (2, _) => false,
            (3, TIMESTAMPTZ) => true,
            (3, _) => return Err(unavailable("the third column must be a timestamp with time zone")),
            (n, _) => return Err(unavailable(format!("the query must return 2 or 3 columns, not {n}"))),
        };
        Ok(())
    }

    /// What the database stores for these users, each apart. An error: the connection is of no more use.
    pub(super) fn look_up(&mut self, names: &[&str]) -> Result<Vec<Found>, Fault> {
        let mut out = Vec::new();
        for name in names {
            put(&mut out, b'B', |out| {
                put_cstr(out, b"");
                put_cstr(out, b"");
                out.extend_from_slice(&[0, 0, 0, 1]);
                out.extend_from_slice(&u32::try_from(name.len()).unwrap_or(u32::MAX).to_be_bytes());
                out.extend_from_slice(name.as_bytes());
                let formats: &[u8] = if self.has_time { &[0, 3, 0, 0, 0, 0, 0, 1] } else { &[0, 0] };
                out.extend_from_slice(formats);
            });
            // Two rows are one too many, and enough to know it.
            put(&mut out, b'E', |out| out.extend_from_slice(&[0, 0, 0, 0, 2]));
            out.extend_from_slice(SYNC);
        }
        self.line.send(&out).map_err(broken)?;
        names.iter().map(|name| self.look_up_reply(name)).collect()
    }

    fn look_up_reply(&mut self, name: &str) -> Result<Found, Fault> {
        let (mut rows, mut found, has_time) = (0, None, self.has_time);
        let refused = self.replies(|tag, payload| {
            if tag == ServerTag::DataRow {
                rows += 1;
                found = read_row(payload, name, has_time)?;
            }
            Ok(())
        })?;
        Ok(match refused {
            // A name that this database cannot have: its encoding has not these characters.
            Some(fault) if fault.detail.ends_with("(22P05)") || fault.detail.ends_with("(22021)") => Ok(None),
            Some(fault) => Err(fault),
            None if rows > 1 => Err(unavailable("the query returns several rows for one user")),
            None => Ok(found),
        })
    }

    /// Reads up to the end of the replies to one Sync. Returns the server's refusal, if there is one.
    fn replies(
        &mut self,
        mut see: impl FnMut(ServerTag, &[u8]) -> Result<(), Short>,
    ) -> Result<Option<Fault>, Fault> {
        let mut refused = None;
        loop {
            let header =
                server_header(&self.line.input)?.filter(|header| self.line.input.len() >= header.total);
            let Some(header) = header else {
                if self.line.input.len() > SERVER_GATHER_BYTES {
                    return Err(Fault::new(
                        FaultKind::ServerTooLarge,
                        "auth_query: an answer without an end",
                    ));
                }
                self.line.receive().map_err(broken)?;
                continue;
            };
            let message: Vec<u8> = self.line.input.drain(..header.total).collect();
            match header.tag {
                ServerTag::ErrorResponse => {
                    refused = Some(refusal(FaultKind::ServerUnavailable, body(&message)));
                }
                ServerTag::ReadyForQuery => return Ok(refused),
                tag => see(tag, body(&message)).map_err(short)?,
            }
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // A server that has gone needs none.
        let _ = self.line.send(TERMINATE);
    }
}

/// Name, password, and perhaps until when it is valid. `None`: this user cannot log in.
fn read_row(payload: &[u8], name: &str, has_time: bool) -> Result<Option<Arc<Secret>>, Short> {
    let mut reader = Reader::new(payload);
    reader.u16_be()?;
    let mut value = || match reader.u32_be()? {
        u32::MAX => Ok(None),
        length => reader.take(length as usize).map(Some),
    };
    let (user, password) = (value()?, value()?);
    let until = if has_time { value()? } else { None };
    let is_over = until
        .and_then(|bytes| bytes.first_chunk::<8>())
        .is_some_and(|bytes| i64::from_be_bytes(*bytes) < now_us());
    let secret = password.and_then(|bytes| std::str::from_utf8(bytes).ok()).filter(|text| !text.is_empty());
    let fits = user == Some(name.as_bytes()) && !is_over;
    Ok(secret.filter(|_| fits).map(|text| Arc::new(Secret::from_userlist(text))))
}

/// Now, as PostgreSQL counts.
fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX) - EPOCH_SHIFT_US
}

fn patience(question: &Question) -> Duration {
    match question.patience_ms {
        0 => PATIENCE,
        ms => Duration::from_millis(ms),
    }
}

fn login(question: &Question, target: &Target, tls: TlsWish) -> io::Result<weir_postgres::Connect> {
    let mut nonce = [0; 64];
    weir_net::random::fill(&mut nonce)?;
    Ok(weir_postgres::Connect::new(ConnectParams {
        user: question.asked.asking.user.clone(),
        secret: question.asked.secret.clone(),
        database: question.asked.database.clone(),
        parameters: vec![("application_name".to_owned(), "weir auth_query".to_owned())],
        nonce,
        unix: matches!(target, Target::Unix(_)),
        tls,
        trust: question.asked.entry.trust.clone(),
        cancel: None,
        variant: 0,
        max_prepared_statements: 0,
        changes: Default::default(),
    }))
}
