//! Those who take part beside the workers: model clients and the sessions of model databases.

use crate::dice::Dice;
use crate::net::Shared;
use crate::network::{EndId, Network};
use crate::oracle::Oracle;
use crate::plan::Plan;
use std::sync::MutexGuard;

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
        /// As which user, in which schema, with which capabilities: as a client that Weir knows it can greet at once.
        user: String,
        /// As above.
        schema: Option<String>,
        /// As above.
        capabilities: u32,
        /// Weir's number of the client.
        target: u32,
    },
}

/// Bytes that wait to be written.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// So many of them have been written.
    written: usize,
}

impl Outbox {
    /// Where more bytes are appended.
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Nothing shall be written any more.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.written = 0;
    }

    /// Writes what goes. False: the connection is broken.
    pub fn write(&mut self, stage: &Stage<'_>, end: EndId) -> bool {
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
