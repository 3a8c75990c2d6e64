//! One blocking connection: login by the wings' machines, then text queries.
//!
//! Owns: time limits, reading replies. Must not know: what is asked; sockets.
//!
//! Invariants: a reply is bounded ([`REPLY_BYTES_MAX`]); a silent server is given up ([`ANSWER_TIMEOUT`]).

use super::Place;
use crate::root::NUMBER_MAX;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use weir_auth::Secret;
use weir_blocking::{Failure, Line, Way};
use weir_config::Protocol;
use weir_mysql::message::{lenenc, ok};
use weir_net::Target;
use weir_postgres::frame::{ServerTag, server_header};
use weir_session::Connect;
use weir_session::login::{ConnectParams, TlsWish};
use weir_wire::{Fault, FaultKind, Reader, Short};

/// Maximum time for a connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum silence of a server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest reply that is read.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// Values of a row; `None` is NULL.
pub type Row = Vec<Option<String>>;

/// Names and values that a server said, for the checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts(BTreeMap<String, String>);

impl Facts {
    /// Adds a fact. NULL is none.
    pub fn put(&mut self, name: impl Into<String>, value: Option<String>) {
        if let Some(value) = value {
            self.0.insert(name.into(), value);
        }
    }

    /// A fact as text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A fact as a number, at most [`NUMBER_MAX`]; none if it is no number or below 0.
    pub fn number(&self, name: &str) -> Option<u64> {
        let number = self.text(name)?.trim().parse::<f64>().ok().filter(|n| *n >= 0.0)?;
        Some((number as u64).min(NUMBER_MAX))
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Facts {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(pairs: T) -> Self {
        Facts(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// Why a database did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DbError {
    /// SQLSTATE or errno of the server; empty when it is not the server's refusal.
    pub code: String,
    /// What happened.
    pub text: String,
    /// The connection is gone with it.
    pub fatal: bool,
}

impl fmt::Display for DbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if self.code.is_empty() { Ok(()) } else { write!(f, " ({})", self.code) }
    }
}

impl std::error::Error for DbError {}

impl From<io::Error> for DbError {
    fn from(error: io::Error) -> Self {
        let text = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".to_owned(),
            _ => error.to_string(),
        };
        DbError { code: String::new(), text, fatal: true }
    }
}

impl From<Fault> for DbError {
    fn from(fault: Fault) -> Self {
        DbError { code: String::new(), text: fault.to_string(), fatal: true }
    }
}

impl From<Short> for DbError {
    fn from(_: Short) -> Self {
        broken("a message shorter than its fields")
    }
}

fn broken(why: &str) -> DbError {
    DbError { code: String::new(), text: format!("not the protocol: {why}"), fatal: true }
}

/// A logged-in connection that blocks.
pub struct Connection {
    line: Line,
    protocol: Protocol,
}

impl Connection {
    /// Connects and logs in, by the first transport that the URL allows and the server takes.
    ///
    /// # Errors
    /// The server cannot be reached, has not the TLS that the URL asks for, refuses the login, or breaks the
    /// protocol.
    pub fn open(place: &Place) -> Result<Connection, DbError> {
        let protocol = place.url.protocol;
        let way = Way {
            target: &place.target,
            tls: place.tls.as_deref(),
            connect: CONNECT_TIMEOUT,
            silence: Some(ANSWER_TIMEOUT),
        };
        let opened = match protocol {
            Protocol::Postgres => {
                Line::open(&way, |wish| Ok(weir_postgres::Connect::new(params(place, wish))))
                    .map(|(line, _)| line)
            }
            Protocol::Mysql => Line::open(&way, |wish| Ok(weir_mysql::Connect::bare(params(place, wish))))
                .map(|(line, _)| line),
        };
        match opened {
            Ok(line) => Ok(Connection { line, protocol }),
            Err(failure) => Err(failed(protocol, failure)),
        }
    }

    /// Runs a statement and returns its rows.
    ///
    /// # Errors
    /// The server refuses the statement; `fatal` if the connection is lost or of no more use.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Row>, DbError> {
        let mut output = Vec::new();
        match self.protocol {
            Protocol::Postgres => weir_postgres::message::query::put_query(&mut output, sql.as_bytes()),
            Protocol::Mysql => {
                weir_mysql::frame::put(&mut output, 0, |out| {
                    out.push(weir_mysql::message::Command::Query as u8);
                    out.extend_from_slice(sql.as_bytes());
                });
            }
        }
        self.line.send(&output)?;
        match self.protocol {
            Protocol::Postgres => self.postgres_reply(),
            Protocol::Mysql => self.mysql_reply(),
        }
    }

    /// The first value of the first row.
    ///
    /// # Errors
    /// As for [`Connection::query`].
    pub fn value(&mut self, sql: &str) -> Result<Option<String>, DbError> {
        Ok(self.query(sql)?.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
    }

    /// Rows of a name and a value each, added to `facts` with a prefix before their names. A refusal of the
    /// server adds nothing: the user may not see it, or this version does not have it.
    ///
    /// # Errors
    /// The connection is lost (`fatal` errors of [`Connection::query`]).
    pub fn gather(&mut self, facts: &mut Facts, prefix: &str, sql: &str) -> Result<(), DbError> {
        match self.query(sql) {
            Ok(rows) => {
                for row in rows {
                    let mut row = row.into_iter();
                    if let (Some(Some(name)), Some(value)) = (row.next(), row.next()) {
                        facts.put(format!("{prefix}{}", name.to_lowercase()), value);
                    }
                }
                Ok(())
            }
            Err(error) if error.fatal => Err(error),
            Err(_) => Ok(()),
        }
    }

    fn postgres_reply(&mut self) -> Result<Vec<Row>, DbError> {
        let (mut rows, mut refused, mut total) = (Vec::new(), None, 0);
        loop {
            let (tag, message) = self.postgres_message(&mut total)?;
            let body = weir_postgres::frame::body(&message);
            match tag {
                ServerTag::DataRow => rows.push(postgres_row(body)?),
                ServerTag::ErrorResponse => {
                    let error = postgres_refusal(body);
                    if error.fatal {
                        return Err(error);
                    }
                    refused = Some(error);
                }
                ServerTag::ReadyForQuery => return refused.map_or(Ok(rows), Err),
                // Descriptions, completions, notices: nothing that is asked for here.
                _ => {}
            }
        }
    }

    fn postgres_message(&mut self, total: &mut usize) -> Result<(ServerTag, Vec<u8>), DbError> {
        loop {
            if let Some(header) = server_header(&self.line.input)?
                && self.line.input.len() >= header.total
            {
                *total += header.total;
                return Ok((header.tag, self.line.input.drain(..header.total).collect()));
            }
            self.receive_bounded(*total)?;
        }
    }

    fn receive_bounded(&mut self, total: usize) -> Result<(), DbError> {
        if total + self.line.input.len() > REPLY_BYTES_MAX {
            return Err(broken("a reply that does not end"));
        }
        Ok(self.line.receive()?)
    }

    fn mysql_reply(&mut self) -> Result<Vec<Row>, DbError> {
        let mut total = 0;
        let head = self.mysql_packet(&mut total)?;
        let columns = match head.first() {
            Some(&ok::OK) => return Ok(Vec::new()),
            Some(&ok::ERR) => return Err(mysql_refusal(&head)),
            _ => lenenc::number(&mut Reader::new(&head))?,
        };
        for _ in 0..columns {
            self.mysql_packet(&mut total)?;
        }
        let mut rows = Vec::new();
        loop {
            let packet = self.mysql_packet(&mut total)?;
            match packet.first() {
                Some(&ok::ERR) => return Err(mysql_refusal(&packet)),
                // The end is an OK packet that begins with 0xfe; a row that does begins with 16 MB of text.
                Some(&ok::EOF) => return Ok(rows),
                _ => rows.push(mysql_row(&packet, columns)?),
            }
        }
    }

    fn mysql_packet(&mut self, total: &mut usize) -> Result<Vec<u8>, DbError> {
        loop {
            let whole =
                weir_mysql::frame::whole(&self.line.input, REPLY_BYTES_MAX, FaultKind::ServerTooLarge)?;
            if let Some((header, payload)) = whole {
                let payload = payload.to_vec();
                *total += header.total();
                self.line.input.drain(..header.total());
                return Ok(payload);
            }
            self.receive_bounded(*total)?;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut goodbye = Vec::new();
        match self.protocol {
            Protocol::Postgres => goodbye.extend_from_slice(weir_postgres::message::query::TERMINATE),
            Protocol::Mysql => {
                weir_mysql::frame::put(&mut goodbye, 0, |out| {
                    out.push(weir_mysql::message::Command::Quit as u8)
                });
            }
        }
        // A server that has gone needs none.
        let _ = self.line.send(&goodbye);
    }
}

fn params(place: &Place, tls: TlsWish) -> ConnectParams {
    let parameters = match place.url.protocol {
        Protocol::Postgres => vec![("application_name".to_owned(), "weir doctor".to_owned())],
        Protocol::Mysql => vec![("program_name".to_owned(), "weir doctor".to_owned())],
    };
    ConnectParams {
        user: place.user().to_owned(),
        secret: place.url.password.as_deref().map(|password| Arc::new(Secret::plain(password))),
        database: match (&place.url.database, place.url.protocol) {
            (Some(name), _) => name.clone(),
            (None, Protocol::Postgres) => place.user().to_owned(),
            (None, Protocol::Mysql) => String::new(),
        },
        parameters,
        nonce: rand::random(),
        unix: matches!(place.target, Target::Unix(_)),
        tls,
        trust: place.trust.clone(),
        cancel: None,
        variant: 0,
        max_prepared_statements: 0,
        changes: Default::default(),
    }
}

/// Why nobody logged in; a refusal in the server's words.
fn failed(protocol: Protocol, failure: Failure) -> DbError {
    match failure {
        Failure::Io(error) => error.into(),
        Failure::Tls(text) => DbError { code: String::new(), text: format!("TLS: {text}"), fatal: true },
        Failure::Broken(why) => broken(why),
        Failure::Refused(body) => match protocol {
            Protocol::Postgres => postgres_refusal(&body),
            Protocol::Mysql => DbError { fatal: true, ..mysql_refusal(&body) },
        },
        Failure::Login(fault) => fault.into(),
    }
}

fn postgres_refusal(body: &[u8]) -> DbError {
    let of = |wanted| {
        let value = weir_postgres::error::field(body, wanted);
        value.map(|value| String::from_utf8_lossy(value).into_owned()).unwrap_or_default()
    };
    // `V` is never translated and stands behind `S` since 9.6.
    let severity = Some(of(b'V')).filter(|severity| !severity.is_empty()).unwrap_or_else(|| of(b'S'));
    let fatal = matches!(severity.as_str(), "FATAL" | "PANIC");
    DbError { code: of(b'C'), text: format!("{severity}: {}", of(b'M')), fatal }
}

fn mysql_refusal(payload: &[u8]) -> DbError {
    match ok::ErrPacket::read(payload) {
        Ok(err) => {
            let text = String::from_utf8_lossy(err.message).into_owned();
            DbError { code: err.code.to_string(), text, fatal: false }
        }
        Err(Short) => broken("a refusal that cannot be read"),
    }
}

fn postgres_row(body: &[u8]) -> Result<Row, Short> {
    let mut r = Reader::new(body);
    let columns = r.u16_be()?;
    let mut row = Vec::with_capacity(usize::from(columns));
    for _ in 0..columns {
        row.push(match r.u32_be()? {
            u32::MAX => None,
            len => Some(String::from_utf8_lossy(r.take(len as usize)?).into_owned()),
        });
    }
    Ok(row)
}

fn mysql_row(payload: &[u8], columns: u64) -> Result<Row, Short> {
    let mut r = Reader::new(payload);
    let mut row = Vec::new();
    for _ in 0..columns {
        if r.rest().first() == Some(&ok::LOCAL_INFILE) {
            // 0xfb is NULL here.
            r.take(1)?;
            row.push(None);
        } else {
            row.push(Some(String::from_utf8_lossy(lenenc::string(&mut r)?).into_owned()));
        }
    }
    Ok(row)
}
