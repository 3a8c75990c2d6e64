//! One connection: bytes of the peer in, plain text and bytes for the peer out.

use crate::ciphers::{cipher_name, version_name};
use crate::{TlsError, x509};
use aws_lc_rs::digest;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{ClientConfig, CommonState, HandshakeKind, ProtocolVersion, ServerConfig};
use std::sync::Arc;

/// Bytes of a peer that may be kept because something is half there: a message of a handshake (rustls takes
/// 64 kB) in records of 16 kB.
const KEPT_BYTES: usize = 100 * 1024;

/// What is known after the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// OpenSSL's name of the cipher.
    pub cipher: &'static str,
    /// The protocol both sides agreed on (ALPN).
    pub alpn: Option<Vec<u8>>,
    /// An earlier session was resumed.
    pub resumed: bool,
    /// The peer has shown a certificate (a client's is always verified).
    pub peer_certificate: bool,
    /// Common name of its subject.
    pub peer_name: Option<String>,
    /// Channel binding: `tls-server-end-point` of the server's certificate, if its kind has any.
    pub end_point: Option<Arc<[u8]>>,
    /// SHA-256 of our own certificate, on the server's side.
    pub fingerprint: Option<Arc<[u8]>>,
}

/// What is told of our own certificate.
#[derive(Debug, Clone, Default)]
pub(crate) struct Own {
    pub end_point: Option<Arc<[u8]>>,
    pub fingerprint: Option<Arc<[u8]>>,
}

impl Own {
    pub(crate) fn of(der: &[u8]) -> Own {
        let fingerprint = digest::digest(&digest::SHA256, der);
        Own {
            end_point: x509::end_point(der).map(Arc::from),
            fingerprint: Some(Arc::from(fingerprint.as_ref())),
        }
    }
}

enum Conn {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

/// One end of a connection.
pub struct Stream {
    conn: Conn,
    /// Bytes of the peer that are not a whole record or message yet.
    kept: Vec<u8>,
    /// On the server's side.
    own: Own,
    peer_closed: bool,
    failed: bool,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("is_handshaking", &self.is_handshaking()).finish_non_exhaustive()
    }
}

/// What is to be done after one step.
enum Next {
    Again,
    /// Nothing more without new bytes.
    Wait,
}

impl Stream {
    pub(crate) fn server(config: Arc<ServerConfig>, own: Own) -> Result<Stream, rustls::Error> {
        let conn = Conn::Server(UnbufferedServerConnection::new(config)?);
        Ok(Stream { conn, kept: Vec::new(), own, peer_closed: false, failed: false })
    }

    pub(crate) fn client(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Stream, rustls::Error> {
        let conn = Conn::Client(UnbufferedClientConnection::new(config, name)?);
        Ok(Stream { conn, kept: Vec::new(), own: Own::default(), peer_closed: false, failed: false })
    }

    /// Takes bytes of the peer (they are decrypted where they stand), appends plain text to `plain` and what
    /// must go to the peer to `out`. Also to be called once without bytes, to begin.
    ///
    /// # Errors
    /// The connection is over. `out` may have an alert that tells the peer why.
    pub fn handle_input(
        &mut self,
        bytes: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        if self.failed {
            return Err(TlsError::Tls("the connection has failed before".to_owned()));
        }
        let done = if self.kept.is_empty() {
            let outcome = self.process(bytes, plain, out);
            if let Ok(used) = outcome {
                self.kept.extend_from_slice(&bytes[used..]);
            }
            outcome.map(drop)
        } else {
            let mut kept = std::mem::take(&mut self.kept);
            kept.extend_from_slice(bytes);
            let outcome = self.process(&mut kept, plain, out);
            if let Ok(used) = outcome
                && used < kept.len()
            {
                kept.drain(..used);
                self.kept = kept;
            }
            outcome.map(drop)
        };
        if done.is_ok() && self.kept.len() > KEPT_BYTES {
            self.failed = true;
            return Err(TlsError::Tls("more bytes than a record or a handshake has".to_owned()));
        }
        done.map_err(TlsError::from)
    }

    /// Goes through `bytes`; returns how many are done with.
    fn process(
        &mut self,
        bytes: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<usize, rustls::Error> {
        let mut used = 0;
        loop {
            let rest = &mut bytes[used..];
            let closed = &mut self.peer_closed;
            let step = match &mut self.conn {
                Conn::Server(conn) => step(conn.process_tls_records(rest), closed, plain, out),
                Conn::Client(conn) => step(conn.process_tls_records(rest), closed, plain, out),
            };
            match step {
                Ok((discard, Next::Again)) => used += discard,
                Ok((discard, Next::Wait)) => return Ok(used + discard),
                Err(error) => {
                    self.failed = true;
                    self.last_words(out);
                    return Err(error);
                }
            }
        }
    }

    /// The alert that tells the peer why. Asked only while there is one: the machine must see no bytes after
    /// its error.
    fn last_words(&mut self, out: &mut Vec<u8>) {
        let (closed, plain) = (&mut false, &mut Vec::new());
        while self.common().wants_write() {
            let step = match &mut self.conn {
                Conn::Server(conn) => step(conn.process_tls_records(&mut []), closed, plain, out),
                Conn::Client(conn) => step(conn.process_tls_records(&mut []), closed, plain, out),
            };
            if step.is_err() {
                return;
            }
        }
    }

    /// Appends `plain`, encrypted, to `out`. Only after the handshake.
    ///
    /// # Errors
    /// The handshake is not over, or the connection has failed.
    pub fn encrypt(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), TlsError> {
        self.put(Put::Plain(plain), out)
    }

    /// Appends the message that says that nothing more will follow. After it only reading makes sense.
    ///
    /// # Errors
    /// As for [`Stream::encrypt`].
    pub fn close(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        self.put(Put::Close, out)
    }

    fn put(&mut self, what: Put<'_>, out: &mut Vec<u8>) -> Result<(), TlsError> {
        if self.failed {
            return Err(TlsError::Tls("the connection has failed before".to_owned()));
        }
        let mut kept = std::mem::take(&mut self.kept);
        let closed = &mut self.peer_closed;
        let done = loop {
            let done = match &mut self.conn {
                Conn::Server(conn) => put(conn.process_tls_records(&mut kept), &what, closed, out),
                Conn::Client(conn) => put(conn.process_tls_records(&mut kept), &what, closed, out),
            };
            match done {
                Ok(true) => break Ok(()),
                Ok(false) => {}
                Err(error) => break Err(error),
            }
        };
        self.kept = kept;
        self.failed |= done.is_err();
        done
    }

    fn common(&self) -> &CommonState {
        match &self.conn {
            Conn::Server(conn) => conn,
            Conn::Client(conn) => conn,
        }
    }

    /// The handshake is not over yet.
    pub fn is_handshaking(&self) -> bool {
        self.common().is_handshaking()
    }

    /// We are a server whose handshake is done and whose client has all it needs: what was written with its
    /// last bytes are tickets, for which no client waits. (In TLS 1.2 they come before the end of the
    /// handshake.)
    pub fn is_heard_out(&self) -> bool {
        let tls13 = self.common().protocol_version() == Some(ProtocolVersion::TLSv1_3);
        matches!(self.conn, Conn::Server(_)) && tls13 && !self.is_handshaking()
    }

    /// The peer has said that nothing more will follow.
    pub fn is_peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// It has ended with an error: nothing of the peer's bytes means anything any more.
    pub fn is_failed(&self) -> bool {
        self.failed
    }

    /// Bytes kept because something is half there.
    pub fn kept_bytes(&self) -> usize {
        self.kept.capacity()
    }

    /// What the handshake came to; `None` before its end.
    pub fn facts(&self) -> Option<Facts> {
        let common = self.common();
        if common.is_handshaking() {
            return None;
        }
        let peer = common.peer_certificates().and_then(<[_]>::first);
        let end_point = match &self.conn {
            Conn::Server(_) => self.own.end_point.clone(),
            Conn::Client(_) => peer.and_then(|own| x509::end_point(own)).map(Arc::from),
        };
        Some(Facts {
            version: common.protocol_version().map_or("unknown", version_name),
            cipher: common.negotiated_cipher_suite().map_or("unknown", |suite| cipher_name(suite.suite())),
            alpn: common.alpn_protocol().map(<[u8]>::to_vec),
            resumed: common.handshake_kind() == Some(HandshakeKind::Resumed),
            peer_certificate: peer.is_some(),
            peer_name: peer.and_then(|own| x509::read(own)).and_then(|read| read.common_name),
            end_point,
            fingerprint: self.own.fingerprint.clone(),
        })
    }
}

/// What [`put`] encrypts.
enum Put<'a> {
    Plain(&'a [u8]),
    Close,
}

fn unexpected() -> rustls::Error {
    rustls::Error::General("a state of TLS that Weir does not know".to_owned())
}

/// Handles one state while reading. Returns bytes to discard.
fn step<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    closed: &mut bool,
    plain: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(usize, Next), rustls::Error> {
    let UnbufferedStatus { mut discard, state } = status;
    let next = match state? {
        ConnectionState::ReadTraffic(mut traffic) => {
            while let Some(record) = traffic.next_record() {
                let record = record?;
                discard += record.discard;
                plain.extend_from_slice(record.payload);
            }
            Next::Again
        }
        ConnectionState::EncodeTlsData(mut data) => {
            append(out, |room| data.encode(room).map_err(missing_of_encode))?;
            Next::Again
        }
        ConnectionState::TransmitTlsData(data) => {
            // It stands in `out`, in front of whatever follows.
            data.done();
            Next::Again
        }
        ConnectionState::PeerClosed => {
            *closed = true;
            Next::Again
        }
        ConnectionState::Closed => {
            *closed = true;
            Next::Wait
        }
        ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_) => Next::Wait,
        // Never: no configuration of ours allows early data.
        ConnectionState::ReadEarlyData(_) => return Err(unexpected()),
        _ => return Err(unexpected()),
    };
    Ok((discard, next))
}

/// Handles one state while writing. True when `what` is written.
fn put<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    what: &Put<'_>,
    closed: &mut bool,
    out: &mut Vec<u8>,
) -> Result<bool, TlsError> {
    debug_assert_eq!(status.discard, 0, "what is kept is not whole");
    match status.state? {
        ConnectionState::WriteTraffic(mut traffic) => {
            append(out, |room| {
                let written = match what {
                    Put::Plain(plain) => traffic.encrypt(plain, room),
                    Put::Close => traffic.queue_close_notify(room),
                };
                written.map_err(missing_of_encrypt)
            })?;
            Ok(true)
        }
        ConnectionState::EncodeTlsData(mut data) => {
            append(out, |room| data.encode(room).map_err(missing_of_encode))?;
            Ok(false)
        }
        ConnectionState::TransmitTlsData(data) => {
            data.done();
            Ok(false)
        }
        ConnectionState::PeerClosed => {
            *closed = true;
            Ok(false)
        }
        ConnectionState::Closed => Err(TlsError::Tls("the connection is closed".to_owned())),
        ConnectionState::BlockedHandshake => Err(TlsError::Tls("the handshake is not over".to_owned())),
        ConnectionState::ReadTraffic(_) | ConnectionState::ReadEarlyData(_) => Err(unexpected().into()),
        _ => Err(unexpected().into()),
    }
}

/// Room that is lacking, or `None` for another error.
fn missing_of_encode(error: EncodeError) -> Option<usize> {
    match error {
        EncodeError::InsufficientSize(size) => Some(size.required_size),
        EncodeError::AlreadyEncoded => None,
    }
}

fn missing_of_encrypt(error: EncryptError) -> Option<usize> {
    match error {
        EncryptError::InsufficientSize(size) => Some(size.required_size),
        EncryptError::EncryptExhausted => None,
    }
}

/// Appends what `write` writes, which says how much room it needs.
fn append(
    out: &mut Vec<u8>,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<usize>>,
) -> Result<(), rustls::Error> {
    let start = out.len();
    // The first try, into no room, tells the size.
    let mut room = 0;
    for _ in 0..2 {
        out.resize(start + room, 0);
        match write(&mut out[start..]) {
            Ok(written) => {
                out.truncate(start + written);
                return Ok(());
            }
            Err(Some(required)) => room = required,
            Err(None) => break,
        }
    }
    out.truncate(start);
    Err(rustls::Error::EncryptError)
}

#[cfg(test)]
mod tests;
