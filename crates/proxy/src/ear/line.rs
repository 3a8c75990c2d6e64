//! One blocking connection on which PostgreSQL tells what is notified.
//!
//! Owns: its messages, the channel of Weir's own marks, and the time limit of each answer. Must not know: for
//! whom it listens.
//!
//! Invariant: what is notified is told in its order, whether it comes with an answer or by itself.

use super::Way;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_blocking::{self as blocking, Failure};
use weir_net::Target;
use weir_postgres::error::field;
use weir_postgres::frame::{ServerTag, body, server_header};
use weir_postgres::listen;
use weir_postgres::message::query::{TERMINATE, put_query};
use weir_session::Connect as _;
use weir_session::login::ConnectParams;
use weir_wire::limits::SERVER_GATHER_BYTES;
use weir_wire::{Fault, FaultKind};

/// Longest wait of one read: an answer has a limit of its own.
const READ: Duration = Duration::from_millis(1);

/// What was notified.
pub(super) enum Heard<'a> {
    /// The mark behind which this client is told.
    Begins(u64),
    /// The mark behind which this client is no longer told.
    Ends(u64),
    /// A NotificationResponse.
    Notified { channel: &'a [u8], message: &'a [u8] },
}

/// A connection that listens.
pub(super) struct Line {
    line: blocking::Line,
    channel: Arc<str>,
    patience: Duration,
}

fn lost(what: impl std::fmt::Display) -> Fault {
    Fault::new(FaultKind::ServerLost, what.to_string())
}

/// The words of an ErrorResponse.
fn refusal(payload: &[u8]) -> Fault {
    let of = |wanted| String::from_utf8_lossy(field(payload, wanted).unwrap_or_default()).into_owned();
    lost(format!("the database says: {} ({})", of(b'M'), of(b'C')))
}

fn failed(failure: Failure) -> Fault {
    match failure {
        Failure::Io(error) => lost(error),
        Failure::Tls(text) => Fault::new(FaultKind::ServerTls, format!("TLS: {text}")),
        Failure::Broken(what) => lost(what),
        Failure::Refused(said) => refusal(&said),
        Failure::Login(fault) => fault,
    }
}

/// Such a statement for each of these channels.
pub(super) fn text(verb: &str, names: &[Box<[u8]>]) -> Vec<u8> {
    let mut text = Vec::new();
    for name in names {
        text.extend_from_slice(verb.as_bytes());
        text.push(b' ');
        listen::put_name(&mut text, name);
        text.push(b';');
    }
    text
}

impl Line {
    pub(super) fn open(target: &Target, way: &Way) -> Result<Line, Fault> {
        let mut bytes = [0; 16];
        weir_net::random::fill(&mut bytes).map_err(lost)?;
        let mut channel = "weir_".to_owned();
        for byte in bytes {
            let _ = write!(channel, "{byte:02x}");
        }
        let by = blocking::Way {
            target,
            tls: way.tls.as_deref(),
            connect: way.patience,
            silence: Some(way.patience),
        };
        let opened = blocking::Line::open(&by, |tls| {
            let mut nonce = [0; 64];
            weir_net::random::fill(&mut nonce)?;
            Ok(weir_postgres::Connect::new(ConnectParams { nonce, tls, ..way.params.clone() }))
        });
        let (line, _) = opened.map_err(failed)?;
        line.set_timeout(Some(READ)).map_err(lost)?;
        let mut line = Line { line, channel: channel.into(), patience: way.patience };
        let name: Box<[u8]> = line.channel.as_bytes().into();
        line.ask(&text("LISTEN", &[name]), |_| {})?;
        Ok(line)
    }

    pub(super) fn get(&self) -> &blocking::Line {
        &self.line
    }

    /// The channel of its marks.
    pub(super) fn channel(&self) -> &Arc<str> {
        &self.channel
    }

    /// Runs statements that return nothing. An error: the connection is of no more use.
    pub(super) fn ask(&mut self, text: &[u8], mut hear: impl FnMut(Heard<'_>)) -> Result<(), Fault> {
        let mut out = Vec::new();
        put_query(&mut out, text);
        self.line.send(&out).map_err(lost)?;
        let begun = Instant::now();
        while !self.read(&mut hear)? {
            if begun.elapsed() > self.patience {
                return Err(lost("no answer in time"));
            }
            self.line.receive_all().map_err(lost)?;
        }
        Ok(())
    }

    /// Something may have come.
    pub(super) fn hear(&mut self, mut hear: impl FnMut(Heard<'_>)) -> Result<(), Fault> {
        self.line.receive_all().map_err(lost)?;
        self.read(&mut hear).map(|_| ())
    }

    /// Reads what is there. True: the answer to a question is over.
    fn read(&mut self, hear: &mut impl FnMut(Heard<'_>)) -> Result<bool, Fault> {
        let (mut used, mut is_over) = (0, false);
        loop {
            let rest = self.line.input.get(used..).unwrap_or_default();
            let Some(message) =
                server_header(rest)?.and_then(|header| Some((header.tag, rest.get(..header.total)?)))
            else {
                break;
            };
            let (tag, message) = message;
            used += message.len();
            match tag {
                ServerTag::ErrorResponse => return Err(refusal(body(message))),
                ServerTag::ReadyForQuery => is_over = true,
                ServerTag::NotificationResponse => self.notified(message, hear),
                _ => {}
            }
        }
        self.line.input.drain(..used);
        if self.line.input.len() > SERVER_GATHER_BYTES {
            return Err(Fault::new(FaultKind::ServerTooLarge, "a message over the bound"));
        }
        Ok(is_over)
    }

    fn notified(&self, message: &[u8], hear: &mut impl FnMut(Heard<'_>)) {
        let Some((channel, text)) = listen::read(message) else { return };
        if channel != self.channel.as_bytes() {
            return hear(Heard::Notified { channel, message });
        }
        let number = std::str::from_utf8(text.get(1..).unwrap_or_default()).ok().and_then(|n| n.parse().ok());
        match (text.first(), number) {
            (Some(b'p'), Some(number)) => hear(Heard::Begins(number)),
            (Some(b'h'), Some(number)) => hear(Heard::Ends(number)),
            _ => {}
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // A server that has gone needs none.
        let _ = self.line.send(TERMINATE);
    }
}
