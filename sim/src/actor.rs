//! The participants besides the workers: model clients and the sessions of model databases.

use crate::dice::Dice;
use crate::net::Shared;
use crate::network::{EndId, Network};
use crate::oracle::Oracle;
use crate::plan::Plan;
use std::sync::MutexGuard;
use weir_tls::Stream;

/// What an actor borrows for its turn.
pub struct Stage<'a> {
    /// The network.
    pub network: &'a Shared,
    /// The virtual clock.
    pub now_ns: u64,
    /// Chance.
    pub dice: &'a mut Dice,
    /// The books.
    pub oracle: &'a mut Oracle,
    /// The plan.
    pub plan: &'a Plan,
    /// Its own number.
    pub me: u32,
    /// Orders to others, carried out after its turn.
    pub orders: &'a mut Vec<Order>,
}

impl Stage<'_> {
    /// The network, for one call.
    pub fn net(&self) -> MutexGuard<'_, Network> {
        self.network.lock()
    }

    /// It wants a turn at this time.
    pub fn wake_at(&self, at_ns: u64) {
        self.net().wake_peer(self.me, at_ns);
    }

    /// Says what happens, when somebody listens.
    pub fn say(&self, text: impl FnOnce() -> String) {
        self.net().say(text);
    }
}

/// What one actor asks of another.
#[derive(Debug, Clone)]
pub enum Order {
    /// A cancel request reached a database: which number and secret; this end closes afterwards.
    CancelPostgres(u32, Box<[u8]>, EndId),
    /// `KILL QUERY` reached a database.
    KillQuery(u32),
    /// A model client sends a cancel request on a connection of its own.
    SendCancel {
        /// To which listener.
        listener: u32,
        /// The request.
        bytes: Vec<u8>,
    },
    /// A model client sends `KILL QUERY` on a connection of its own.
    SendKill {
        /// To which listener.
        listener: u32,
        /// As which user, in which schema, with which capabilities: as a client that Weir knows it can greet
        /// at once.
        user: String,
        /// As above.
        schema: Option<String>,
        /// As above.
        capabilities: u32,
        /// Weir's number of the client.
        target: u32,
        /// It does not wait for an answer.
        hurry: bool,
    },
}

/// Bytes that wait to be written, through TLS where that has begun.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// So many of them have been written, or encrypted.
    written: usize,
    tls: Option<Box<Tls>>,
}

/// One end of TLS.
#[derive(Debug)]
struct Tls {
    stream: Stream,
    /// Encrypted, or said in clear before TLS began, and not yet written.
    sealed: Vec<u8>,
}

impl Outbox {
    /// Where more bytes are appended.
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.written + self.tls.as_ref().map_or(0, |tls| tls.sealed.len())
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Nothing shall be written any more.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.written = 0;
        if let Some(tls) = &mut self.tls {
            tls.sealed.clear();
        }
    }

    /// All that is said from here on goes through TLS; what waits goes in clear before it.
    pub fn secure(&mut self, stream: Stream) {
        let sealed = self.bytes.split_off(self.written);
        self.clear();
        self.tls = Some(Box::new(Tls { stream, sealed }));
    }

    /// TLS has begun.
    pub fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// What these bytes of the peer say.
    ///
    /// # Errors
    /// They are not TLS's.
    pub fn open(&mut self, mut bytes: Vec<u8>) -> Result<Vec<u8>, String> {
        let Some(tls) = &mut self.tls else { return Ok(bytes) };
        let mut plain = Vec::new();
        let done = tls.stream.handle_input(&mut bytes, &mut plain, &mut tls.sealed);
        done.map_err(|error| format!("TLS: {error}"))?;
        Ok(plain)
    }

    /// The same for those whose peer is Weir: it must not happen that they are not.
    pub fn open_or_complain(&mut self, bytes: Vec<u8>, stage: &mut Stage<'_>) -> Option<Vec<u8>> {
        self.open(bytes).map_err(|text| stage.oracle.broken(|| text)).ok()
    }

    /// TLS says that nothing more will come.
    pub fn say_farewell(&mut self) {
        if let Some(tls) = &mut self.tls {
            // In a handshake there is nothing to say farewell to.
            let _ = tls.stream.close(&mut tls.sealed);
        }
    }

    /// Writes what goes. False: the connection is broken.
    pub fn write(&mut self, stage: &Stage<'_>, end: EndId) -> bool {
        if let Some(tls) = &mut self.tls {
            if self.written < self.bytes.len() && !tls.stream.is_handshaking() {
                if tls.stream.encrypt(&self.bytes[self.written..], &mut tls.sealed).is_err() {
                    return false;
                }
                self.bytes.clear();
                self.written = 0;
            }
            while !tls.sealed.is_empty() {
                match stage.net().peer_write(end, &tls.sealed) {
                    None => return false,
                    Some(0) => break,
                    Some(n) => drop(tls.sealed.drain(..n)),
                }
            }
            return true;
        }
        while !self.is_empty() {
            match stage.net().peer_write(end, &self.bytes[self.written..]) {
                None => return false,
                Some(0) => return true,
                Some(n) => self.written += n,
            }
        }
        self.clear();
        true
    }
}
