//! Servers that clients keep for long because of a pin.
//!
//! A server that is set aside counts as such in its pool ([`crate::pool::PoolShared::set_aside`]) until its
//! lease ends, by the same transition as the pin.

use super::broken::broken;
use super::{Books, Claimant, Pool, Sound, Tenant};
use crate::ids::Key;
use weir_wire::Pins;

impl<C: Claimant, S: Tenant, X> Books<'_, C, S, X> {
    /// A client has been pinned for long: its server counts as one that is, until the lease ends. Returns
    /// whether another one may be opened in its place.
    ///
    /// # Errors
    /// Nothing pins it, or it has no server.
    pub fn set_aside(&mut self, client: Key) -> Sound<bool> {
        let held = self.clients.get(client).filter(|client| !client.claim().pinned.is_empty());
        let Some(server) = held.and_then(|client| client.claim().lease()) else {
            return Err(broken("a server is set aside and nothing pins it").of(client));
        };
        let Some(held) = self.servers.get_mut(server) else {
            return Err(broken("a server is set aside that is gone").of(client));
        };
        if std::mem::replace(&mut held.post_mut().aside, true) {
            return Ok(false);
        }
        Ok(self.pool_of(server).is_some_and(Pool::set_aside))
    }

    /// These reasons pin a client now: if there is none, its server, if it was set aside, counts as others
    /// do.
    pub(super) fn come_back(&mut self, client: Key, pins: Pins) {
        let lease = self.clients.get(client).and_then(|client| client.claim().lease());
        let Some(server) = lease.filter(|_| pins.is_empty()) else { return };
        let held = self.servers.get_mut(server);
        if held.is_some_and(|held| std::mem::take(&mut held.post_mut().aside))
            && let Some(pool) = self.pool_of(server)
        {
            pool.come_back();
        }
    }
}
