//! Who may follow whom, and that nobody can any more (`alike.rs`).
//!
//! Invariant: nobody follows one whose request was sent.

use super::Hall;
use super::alike::Echo;
use crate::books::{Alike, Want, hash_of};
use crate::client::{Client, Listens, Phase};
use crate::context::Cx;
use crate::ids::Key;
use crate::settings::PoolMode;
use crate::wing::{Front, Wing};
use weir_net::Net;

impl<W: Wing, N: Net> Hall<W, N> {
    /// A client is about to join the queue. If somebody waits there who asks the same, it follows that one
    /// instead; else it is remembered, so that others can follow it.
    pub(super) fn follow(&mut self, key: Key) -> bool {
        let Some(client) = self.clients.get(key) else { return false };
        let (true, Some(id)) = (may_share(client), client.pool) else { return false };
        let Some(pool) = self.pools.get_mut(id.0 as usize).and_then(|pool| pool.as_deref_mut()) else {
            return false;
        };
        if !pool.spec.share_answers || pool.spec.mode == PoolMode::Session {
            return false;
        }
        let (Some(request), Phase::Session(front)) = (request_of(client), &client.phase) else {
            return false;
        };
        let hash = hash_of(request, front.asks_under());
        let leader = pool.questions.look(hash).filter(|&leader| {
            leader != key
                && self.clients.get(leader).is_some_and(|leader| {
                    leader.is_waiting()
                        && leader.pool == Some(id)
                        && may_share(leader)
                        && request_of(leader) == Some(request)
                        && asks_as(client, leader)
                })
        });
        let Some(leader) = leader else {
            pool.questions.put(hash, key);
            return false;
        };
        let follows = self.books().follow(key, leader);
        self.sound(follows).is_some()
    }

    /// The request of a client that has waited is about to be sent: from here on nobody follows it. Those who
    /// do have had their turn, too.
    pub(super) fn lead(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let (Some(group), Some(id)) = (client.claim.leads(), client.pool) else { return };
        if !client.front().is_some_and(|front| front.is_proven()) {
            // What is known of the database has changed since they asked.
            return self.part(key, false);
        }
        let now_ns = cx.now_ns();
        let followers: Vec<Key> =
            self.pool(id).map(|pool| pool.followers(group).collect()).unwrap_or_default();
        for follower in followers {
            let Some(client) = self.clients.get_mut(follower) else { continue };
            if client.claim.follows() == Some(group) && client.claim.alike != Alike::Asked {
                client.claim.alike = Alike::Asked;
                client.request_since_ns = now_ns;
                let since_ns = client.claim.since_ns();
                self.note_waited(cx, follower, since_ns);
                self.arm_client(cx, follower);
            }
        }
        self.echoes.insert((id, group), Echo::default());
    }
}

/// The request that a client waits with.
fn request_of<W: Wing, S>(client: &Client<W, S>) -> Option<&[u8]> {
    match client.claim.want() {
        Some(Want::Request { len, whole: true, .. }) => client.stream.input.as_slice().get(..len as usize),
        Some(Want::Request { whole: false, .. } | Want::Welcome) | None => None,
    }
}

/// What it asks others may ask, too, and it has not been told to ask by itself.
fn may_share<W: Wing, S>(client: &Client<W, S>) -> bool {
    client.claim.alike == Alike::Yes
        && !client.is.choosy
        && client.is.listens == Listens::Here
        && !client.is.part_open
        && client.is.greeted
        && client.inflight == 0
}

fn asks_as<W: Wing, S>(one: &Client<W, S>, other: &Client<W, S>) -> bool {
    match (&one.phase, &other.phase) {
        (Phase::Session(one), Phase::Session(other)) => {
            one.is_proven() && other.is_proven() && one.asks_as(other)
        }
        (Phase::Login(_) | Phase::Session(_) | Phase::Closing, _) => false,
    }
}
