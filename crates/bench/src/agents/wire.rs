//! The protocol between an agent and its coordinator: JSON behind a length, in TLS, both sides proved by the
//! shared secret.
//!
//! Owns: messages, their bounds, the proof. Must not know: runs.
//!
//! The agent creates its TLS certificate at its start, unsigned. The proof authenticates it: HMAC-SHA-256
//! with the secret over both sides' random bytes and the certificate's hash (RFC 5929, tls-server-end-point).
//! A man in the middle has another certificate, and therefore another proof; the secret itself is never sent.

use crate::record::Interval;
use crate::run::Measured;
use aws_lc_rs::hmac;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;
use weir_tls::Blocking;

/// A message to an agent: arguments, and perhaps a script.
pub const ORDER_BYTES_MAX: usize = 4 << 20;

/// A message of an agent: all histograms of a run.
pub const REPORT_BYTES_MAX: usize = 256 << 20;

/// A message of one who has not proved to know the secret.
pub const STRANGER_BYTES_MAX: usize = 4096;

/// Characters of a secret, at least: it can be tried out by whoever has listened to a proof.
const SECRET_CHARS_MIN: usize = 16;

/// How long a look for bytes waits, when there is something else to do.
const POLL: Duration = Duration::from_millis(10);

/// The environment's name of the secret.
pub const SECRET_VARIABLE: &str = "WEIR_BENCH_TOKEN";

/// Random bytes of one side.
pub type Nonce = [u8; 32];

/// What a coordinator says.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// The first word: who speaks, and that it knows the secret.
    Prove {
        /// Version of the program.
        version: String,
        /// Its random bytes.
        nonce: Nonce,
        /// The proof.
        proof: Vec<u8>,
    },
    /// How long is the way?
    Ping,
    /// The part of a run that is yours. The clients are connected at once.
    Job(Box<Job>),
    /// Events begin so many nanoseconds from now.
    Start {
        /// From the arrival of this.
        after_ns: u64,
    },
    /// The run ends now.
    Stop,
}

/// One agent's part of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// The command line of `weir bench run`, from `run` on.
    pub arguments: Vec<String>,
    /// The script of `script FILE`.
    pub script: Option<String>,
    /// Number of its first client.
    pub first_client: u32,
    /// Its clients.
    pub connections: u32,
    /// The clients of all agents.
    pub of: u32,
    /// Its part of `--events`.
    pub events: Option<u64>,
}

/// What an agent says.
#[derive(Debug, Serialize, Deserialize)]
pub enum Report {
    /// The first word: who listens here.
    Hello {
        /// Version of the program.
        version: String,
        /// Its random bytes.
        nonce: Nonce,
    },
    /// The coordinator is right, and the agent knows the secret too.
    Welcome {
        /// The proof.
        proof: Vec<u8>,
    },
    /// To a ping.
    Pong,
    /// A sentence about the run.
    Remark(String),
    /// The connect phase goes on.
    Connecting {
        /// Clients logged in.
        connected: u32,
        /// Clients that have given up.
        given_up: u32,
    },
    /// All its clients that will be are connected.
    Ready {
        /// How many.
        connected: u32,
    },
    /// One recorded second.
    Second(Box<Interval>),
    /// The run is over.
    Done(Box<Measured>),
    /// There is no run, or no more.
    Failed(String),
}

/// The secret that agents and coordinators share.
#[derive(Clone)]
pub struct Secret(hmac::Key);

impl Secret {
    /// From a file or else from the environment; blanks around it do not count.
    ///
    /// # Errors
    /// The file cannot be read, neither the file nor the environment has a secret, or it is too short.
    pub fn find(file: Option<&Path>) -> Result<Secret, String> {
        let text = match file {
            Some(path) => std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?,
            None => std::env::var(SECRET_VARIABLE).map_err(|_| {
                format!(
                    "agents need a shared secret: --token-file FILE, or {SECRET_VARIABLE} in the environment"
                )
            })?,
        };
        Secret::new(text.trim())
    }

    /// This one.
    ///
    /// # Errors
    /// The text is shorter than `SECRET_CHARS_MIN` characters.
    pub fn new(text: &str) -> Result<Secret, String> {
        if text.chars().count() < SECRET_CHARS_MIN {
            return Err(format!("the shared secret of agents needs {SECRET_CHARS_MIN} characters at least"));
        }
        Ok(Secret(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())))
    }

    /// The proof of one side, `of` which it is named.
    pub fn proof(&self, of: &str, own: &Nonce, other: &Nonce, end_point: &[u8]) -> Vec<u8> {
        let text = [of.as_bytes(), own, other, end_point].concat();
        hmac::sign(&self.0, &text).as_ref().to_vec()
    }

    /// It is the other side's.
    pub fn is_proof(&self, proof: &[u8], of: &str, theirs: &Nonce, ours: &Nonce, end_point: &[u8]) -> bool {
        let text = [of.as_bytes(), theirs, ours, end_point].concat();
        hmac::verify(&self.0, &text, proof).is_ok()
    }
}

/// The side's name in a proof.
pub const COORDINATOR: &str = "weir bench coordinator";
/// The side's name in a proof.
pub const AGENT: &str = "weir bench agent";

/// A connection of messages.
pub struct Line {
    tls: Blocking<TcpStream>,
    input: Vec<u8>,
    /// The longest message that is taken.
    pub bytes_max: usize,
}

impl Line {
    /// Over TLS that stands. The peer is a stranger at first.
    pub fn new(tls: Blocking<TcpStream>) -> Line {
        Line { tls, input: Vec::new(), bytes_max: STRANGER_BYTES_MAX }
    }

    /// The hash of the agent's certificate.
    ///
    /// # Errors
    /// The certificate has a signature for which no channel binding is defined.
    pub fn end_point(&self) -> Result<Vec<u8>, String> {
        let end_point = self.tls.facts().and_then(|facts| facts.end_point);
        end_point.map(|bytes| bytes.to_vec()).ok_or_else(|| "its certificate binds to nothing".to_owned())
    }

    /// How long [`Line::receive`] waits.
    ///
    /// # Errors
    /// The timeout is zero, or the kernel refuses it.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.tls.transport().set_read_timeout(Some(timeout))?;
        self.tls.transport().set_write_timeout(Some(timeout))
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The connection is lost, or the peer does not read within the timeout.
    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let body = serde_json::to_vec(message)?;
        let mut bytes = (body.len() as u32).to_be_bytes().to_vec();
        bytes.extend(body);
        self.tls.write_all(&bytes)
    }

    /// The next message. An end of the connection is an error.
    ///
    /// # Errors
    /// The connection has ended or is lost, nothing arrives within the timeout, or the message cannot be
    /// understood.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        loop {
            if let Some(message) = self.whole()? {
                return Ok(message);
            }
            self.read()?;
        }
    }

    /// The next message if it is there.
    ///
    /// # Errors
    /// The connection has ended or is lost, or the message cannot be understood.
    pub fn poll<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        if let Some(message) = self.whole()? {
            return Ok(Some(message));
        }
        self.tls.transport().set_read_timeout(Some(POLL))?;
        match self.read() {
            Ok(()) => self.whole(),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; 64 * 1024];
        let n = self.tls.read(&mut buffer)?;
        if n == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed"));
        }
        self.input.extend_from_slice(buffer.get(..n).unwrap_or_default());
        Ok(())
    }

    fn whole<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some(head) = self.input.first_chunk::<4>() else { return Ok(None) };
        let len = u32::from_be_bytes(*head) as usize;
        if len > self.bytes_max {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message longer than any there is"));
        }
        let Some(body) = self.input.get(4..4 + len) else { return Ok(None) };
        let message = serde_json::from_slice(body)?;
        self.input.drain(..4 + len);
        Ok(Some(message))
    }
}
