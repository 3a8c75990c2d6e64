//! Clients that wait for the answer to what another one asks.
//!
//! Owns: when somebody begins to, and each way in which it ends. Must not know: what is asked.
//!
//! Invariant: nobody begins to follow one that does not stand in the queue.

use super::broken::broken;
use super::{Books, Claimant, GroupId, Holding, Sound, Tenant, Want, pool_in};
use crate::ids::Key;
use crate::pool::PoolId;

impl<C: Claimant, S: Tenant, X> Books<'_, C, S, X> {
    /// A client waits for the answer to what another one asks, who stands in the queue: nothing of that was
    /// sent, so the answer will not be older than the question.
    ///
    /// # Errors
    /// It does not want a whole request, or the other one does not wait with one in the same pool.
    pub fn follow(&mut self, client: Key, leader: Key) -> Sound<GroupId> {
        let Holding::Wanting(want @ Want::Request { whole: true, .. }) = self.holding(client)? else {
            return Err(broken("a client follows that wants no request").of(client));
        };
        let Holding::Waiting(Want::Request { whole: true, .. }) = self.holding(leader)? else {
            return Err(broken("a client follows one that does not wait").of(client));
        };
        let id = self.clients.get(client).and_then(Claimant::pool);
        let leads = self.clients.get(leader).filter(|leader| leader.pool() == id);
        let Some((leads, pool)) =
            leads.map(|leader| leader.claim().leads).zip(id.and_then(|id| pool_in(self.pools, id)))
        else {
            return Err(broken("a client follows one of another pool").of(client));
        };
        let group = leads.unwrap_or_else(|| pool.new_group());
        pool.follow(group, client);
        self.hold(client, Holding::Following { group, want });
        if let Some(leader) = self.clients.get_mut(leader) {
            leader.claim_mut().leads = Some(group);
        }
        Ok(group)
    }

    /// A client waits for that answer no longer, and wants what it wanted. False: it did not.
    pub fn unfollow(&mut self, client: Key) -> bool {
        let Some(held) = self.clients.get(client) else { return false };
        let (id, holding) = (held.pool(), held.claim().holding);
        let Holding::Following { want, .. } = holding else { return false };
        if let Some(pool) = id.and_then(|id| pool_in(self.pools, id)) {
            pool.unfollow();
        }
        self.hold(client, Holding::Wanting(want));
        true
    }

    /// A client has got the answer to what another one has asked. Returns how many bytes of its own request
    /// stand at the start of its input. `None`: it waits for none.
    pub fn answered(&mut self, client: Key) -> Option<u32> {
        self.clients.get(client)?.claim().follows()?;
        match self.forget(client)? {
            Want::Request { len, .. } => Some(len),
            Want::Welcome => None,
        }
    }

    /// A client asks for nobody but itself any more. Returns who has waited for its answer.
    pub fn leads_no_more(&mut self, leader: Key) -> Option<GroupId> {
        self.clients.get_mut(leader)?.claim_mut().leads.take()
    }

    /// One of those who wait for this answer, each once. `None`: there is nobody more, and the group is no
    /// more.
    pub fn next_follower(&mut self, id: PoolId, group: GroupId) -> Option<Key> {
        let pool = pool_in(self.pools, id)?;
        loop {
            let next = pool.next_follower(group)?;
            // Who has left since is still listed.
            if self.clients.get(next).is_some_and(|it| it.claim().follows() == Some(group)) {
                return Some(next);
            }
        }
    }
}
