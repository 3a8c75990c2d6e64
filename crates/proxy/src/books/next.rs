//! Which client gets a free server, and when a shared server must become free.
//!
//! First come, first served, over all workers, with two exceptions: a server that would have to move to
//! another worker stays if a client on its own worker has waited nearly as long; and whoever waits for
//! another server that will be free in a moment is passed over, so that no server rests while anybody else
//! waits.

use super::{Books, Claimant, Pool, ServerState, Tenant};
use crate::ids::{Arena, Key};
use crate::pool::PoolId;

/// A worker gives a freed server to its own oldest waiter unless another worker's oldest has waited longer
/// by more than this. Moving a server costs two workers a wake-up; 2 ms is some tens of point selects.
pub const HAND_OVER_NS: u64 = 2_000_000;

/// What the hall is to do with a server that is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It goes to this client.
    Serve(Key),
    /// It takes up the requests of several.
    Share,
    /// Another one is opened in its place, for this client.
    Renew(Key),
    /// It closes: who is next must not have it, nor anybody after him.
    Close,
    /// It moves to this worker.
    HandOver(usize),
    /// Nobody wants it.
    Rest,
}

/// What a server is to a client that is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// As good as a new one.
    Suits,
    /// It was logged in too long ago for this client.
    Outdated,
    /// What has been done on it would be noticed.
    Unsuitable,
    /// It does not know what the client asks. The one that does is free in a moment.
    Ignorant,
}

/// Somebody elsewhere has waited for so much longer that a server moves.
fn is_before(elsewhere: Option<(usize, u64)>, own_since_ns: u64) -> Option<usize> {
    let (worker, since_ns) = elsewhere?;
    (since_ns.saturating_add(HAND_OVER_NS) < own_since_ns).then_some(worker)
}

impl<X> Pool<X> {
    /// Who gets a server of this pool that is free. `elsewhere`: the worker whose oldest waiter has waited
    /// longest, and since when.
    pub fn next<C: Claimant>(
        &self,
        clients: &Arena<C>,
        elsewhere: Option<(usize, u64)>,
        mut fit: impl FnMut(Key) -> Fit,
    ) -> Next {
        for (passed, key) in self.waiting(clients).enumerate() {
            let Some(own) = clients.get(key).map(Claimant::claim) else { break };
            if let Some(worker) = is_before(elsewhere, own.since_ns()) {
                return Next::HandOver(worker);
            }
            // A shared server would drain for whoever was passed over.
            if own.shares() && passed == 0 {
                return Next::Share;
            }
            match fit(key) {
                Fit::Suits => return Next::Serve(key),
                Fit::Outdated => return Next::Close,
                Fit::Unsuitable => return Next::Renew(key),
                Fit::Ignorant => {}
            }
        }
        elsewhere.map_or(Next::Rest, |(worker, _)| Next::HandOver(worker))
    }
}

impl<C: Claimant, S: Tenant, X> Books<'_, C, S, X> {
    /// Whether this shared server takes no more: whoever has waited longest wants one alone, here or on
    /// another worker. One shared server after the other is emptied for that.
    pub fn must_drain(&mut self, id: PoolId, server: Key, elsewhere: Option<(usize, u64)>) -> bool {
        let Some(pool) = super::pool_in(self.pools, id) else { return false };
        let since = |key: Key| self.clients.get(key).map_or(u64::MAX, |client| client.claim().since_ns());
        let oldest = pool.oldest(self.clients).map_or(u64::MAX, since);
        let alone = pool.oldest_alone(self.clients).map(since).is_some_and(|alone| alone <= oldest);
        let wanted = alone || is_before(elsewhere, oldest).is_some();
        let is_shared = |&other: &Key| {
            self.servers.get(other).is_some_and(|other| other.post().state() == ServerState::Shared)
        };
        let drains = pool.draining().filter(is_shared).or(Some(server)).filter(|_| wanted);
        pool.draining = drains;
        drains == Some(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_moves_only_to_who_has_waited_longer_by_more_than_the_move_costs() {
        assert_eq!(is_before(None, 10), None);
        assert_eq!(is_before(Some((3, 10)), 10 + HAND_OVER_NS), None);
        assert_eq!(is_before(Some((3, 10)), 11 + HAND_OVER_NS), Some(3));
        assert_eq!(is_before(Some((3, u64::MAX - 1)), u64::MAX), None, "it does not overflow");
    }
}
