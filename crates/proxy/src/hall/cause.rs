//! The statement that has pinned a server to its client, for the operator.
//!
//! Owns: the statements of clients that are pinned, or may be at their next boundary. Must not know: what
//! pins.
//!
//! Invariant: a client without a lease has no entry, so there are no more entries than servers.

use super::Hall;
use crate::client::Phase;
use crate::ids::Key;
use crate::wing::{Front, Wing};
use weir_net::Net;
use weir_wire::limits::SHOWN_STATEMENT_BYTES;

impl<W: Wing, N: Net> Hall<W, N> {
    /// A request is about to be sent to its client's own server. What has pinned a client stays; what has not
    /// gives way to what may.
    pub(super) fn note_cause(&mut self, key: Key, request: &[u8]) {
        let Some(Phase::Session(front)) = self.clients.get(key).map(|client| &client.phase) else { return };
        if !front.may_pin() || self.causes.contains_key(&key) && !front.pins().is_empty() {
            return;
        }
        if let Some(words) = front.words_of(request, SHOWN_STATEMENT_BYTES) {
            self.causes.insert(key, words.into());
        }
    }

    /// Its client keeps no server any longer.
    pub(super) fn forget_cause(&mut self, key: Key) {
        if !self.causes.is_empty() {
            self.causes.remove(&key);
        }
    }

    /// What it has said; empty where nothing is known.
    pub(super) fn cause_of(&self, key: Key) -> &str {
        self.causes.get(&key).map_or("", |words| words)
    }

    /// The invariant.
    pub(crate) fn audit_causes(&self) -> Result<(), String> {
        let holds = |key: &Key| self.clients.get(*key).is_some_and(|client| client.lease().is_some());
        match self.causes.keys().all(holds) {
            true => Ok(()),
            false => Err("a client has a cause of pins and no server".to_owned()),
        }
    }
}
