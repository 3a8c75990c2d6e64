//! Clients that need a particular server, and servers that are for one client only.
//!
//! A session that other clients have used differs from a new one: PostgreSQL's `RESET` returns to the startup
//! parameters of the connection, and a setting of an extension's name continues to exist. The wing says
//! whether a request would notice (`Needs::choosy`), and whether a server is suitable (`Wing::suits`). When
//! no idle server is, one of them gives its place to a new one, opened as the client itself would have opened
//! it (`Wing::startup_of`).
//!
//! Invariant: a reserved server is never idle and never shared: it goes to a client that it suits, or is
//! closed.

use super::Hall;
use super::kept::KEPT_MS;
use crate::books::Want;
use crate::client::Phase;
use crate::context::Cx;
use crate::ids::{Key, Kind, Tag};
use crate::pool::PoolId;
use crate::server::{Server, ServerPhase, ServerState};
use crate::wing::{Back, Front, Wing};
use weir_net::Net;
use weir_wire::Boundary;

impl<W: Wing, N: Net> Hall<W, N> {
    /// The server will do for what the client waits for.
    pub(super) fn suits(&self, server: Key, client: Key) -> bool {
        let (Some(held), Some(client)) = (self.servers.get(server), self.clients.get(client)) else {
            return true;
        };
        match (&held.phase, &client.phase) {
            (ServerPhase::Live(back), Phase::Session(front)) => {
                !(client.is.choosy || back.is_reserved()) || back.suits(front)
            }
            _ => true,
        }
    }

    /// It is for one client only.
    pub(super) fn is_reserved(&self, server: Key) -> bool {
        let phase = self.servers.get(server).map(|held| &held.phase);
        matches!(phase, Some(ServerPhase::Live(back)) if back.is_reserved())
    }

    /// Who gets a reserved server: whom it was opened for, or whoever has waited longest.
    pub(super) fn heir_of(&mut self, server: Key) -> Option<Key> {
        let held = self.servers.get(server)?;
        let (id, meant_for) = (held.pool, held.post.meant_for());
        let oldest = self.pools.get(id.0 as usize)?.as_deref()?.oldest_alone(&self.clients);
        [meant_for, oldest].into_iter().flatten().find(|&key| {
            let waits = self.clients.get(key).is_some_and(|client| {
                client.is.choosy
                    && client.is_waiting()
                    && matches!(client.claim.want(), Some(Want::Request { .. } | Want::Welcome))
            });
            waits && self.suits(server, key)
        })
    }

    /// An idle server for this client. Where none of them will do and there is no room for another one, the
    /// one that was not used for longest makes room.
    pub(super) fn find_suiting(&mut self, cx: &mut Cx<'_, N>, id: PoolId, key: Key) -> Option<Key> {
        let favourite = self.favourite(id, key);
        if !self.clients.get(key)?.is.choosy {
            return favourite.or_else(|| self.pool(id)?.newest_idle());
        }
        let pool = self.pools.get(id.0 as usize)?.as_deref()?;
        let idle = pool.idle_keys().iter().rev().copied();
        let found = favourite.into_iter().chain(idle).find(|&server| self.suits(server, key));
        let (longest, full) = (pool.idle_keys().first().copied(), !pool.entry.shared.has_room());
        match (found, longest) {
            (Some(server), _) => Some(server),
            (None, Some(longest)) if full => {
                self.close_server(cx, longest, "a client needs a new one");
                None
            }
            (None, _) => None,
        }
    }

    /// The idle server that knows what this client asks for.
    fn favourite(&self, id: PoolId, key: Key) -> Option<Key> {
        let front = self.has_favourite(key)?;
        let pool = self.pools.get(id.0 as usize)?.as_deref()?;
        pool.idle_keys().iter().copied().find(|&server| self.knows(server, front))
    }

    /// What the client asks is known to one server.
    fn has_favourite(&self, key: Key) -> Option<&W::Front> {
        match &self.clients.get(key)?.phase {
            Phase::Session(front) if front.has_favourite() => Some(front),
            _ => None,
        }
    }

    /// It is this one.
    fn knows(&self, server: Key, front: &W::Front) -> bool {
        let phase = self.servers.get(server).map(|held| &held.phase);
        matches!(phase, Some(ServerPhase::Live(back)) if back.is_favourite(front))
    }

    /// The server that knows what this client asks for is nobody's, and only Weir's own work keeps it from
    /// being idle: it is put right, or asked for the catalogue. Where the client needs that one, it may be
    /// another client's as well.
    pub(super) fn has_favourite_soon(&self, id: PoolId, key: Key) -> bool {
        let Some(front) = self.has_favourite(key) else { return false };
        let needed = front.needs_favourite();
        if needed && self.favourite(id, key).is_some() {
            return false;
        }
        let soon = |held: &Server<W, N::Socket>| {
            let state = held.post.state();
            let put_right = state == ServerState::Cleaning && !held.post.is_held();
            held.pool == id && (put_right || needed && state != ServerState::Idle)
        };
        self.servers.iter().any(|(server, held)| soon(held) && self.knows(server, front))
    }

    /// The client waits for such a server, and it is not this one.
    pub(super) fn awaits_favourite(&self, id: PoolId, server: Key, key: Key) -> bool {
        let waits = self.clients.get(key).is_some_and(|client| client.is.kept);
        waits
            && self.has_favourite(key).is_some_and(|front| !self.knows(server, front))
            && self.has_favourite_soon(id, key)
    }

    /// A client that keeps a server, or waits for one, because of what it may ask there, does so for its
    /// time.
    pub(super) fn await_favourite(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if !std::mem::replace(&mut client.is.kept, true) {
            let due_ms = cx.now_ms() + KEPT_MS;
            cx.wheel.insert(due_ms, Tag { kind: Kind::Kept, protocol: W::PROTOCOL, key }.pack());
        }
    }

    /// The client holds a server that will not do, and nothing ties it to that.
    pub(super) fn may_change(&self, key: Key, server: Key) -> bool {
        let (Some(client), Some(held)) = (self.clients.get(key), self.servers.get(server)) else {
            return false;
        };
        let (ServerPhase::Live(back), Phase::Session(front)) = (&held.phase, &client.phase) else {
            return false;
        };
        // The rest of a message that it has the beginning of comes from here.
        client.inflight == 0
            && !back.is_mid_message()
            && back.boundary() == Boundary::Idle
            && !front.is_told_the_end()
            && front.pins().is_empty()
            && !self.suits(server, key)
    }

    /// The client that the next server of this pool is opened for, if it needs one of its own.
    pub(super) fn opens_for(&mut self, id: PoolId) -> Option<Key> {
        let pool = self.pools.get(id.0 as usize)?.as_deref()?;
        let key = pool.oldest_alone(&self.clients)?;
        self.means(key)
    }

    /// The same, of this client.
    pub(super) fn means(&mut self, key: Key) -> Option<Key> {
        let client = self.clients.get(key)?;
        let Phase::Session(front) = &client.phase else { return None };
        if !client.is.choosy || client.claim.is_opening() || front.startup_parameters().is_none() {
            return None;
        }
        self.books().note_opening(key, true);
        Some(key)
    }

    /// What it is opened with.
    pub(super) fn startup_of(&self, client: Option<Key>) -> Vec<(String, String)> {
        let client = client.and_then(|key| self.clients.get(key));
        match client.map(|client| &client.phase) {
            Some(Phase::Session(front)) => front.startup_parameters().unwrap_or_default(),
            Some(Phase::Login(_) | Phase::Closing) | None => Vec::new(),
        }
    }
}
