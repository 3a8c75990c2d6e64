//! The books: who holds what. The only place where a client gets, keeps and loses a server.
//!
//! Owns: for each client what it wants or holds ([`Holding`]), for each server who has it ([`ServerState`]),
//! for each pool its idle servers and its queue ([`Pool`]), and the gauges that count these. The entries are
//! stored in the things themselves (a client's [`Claim`], a server's [`Post`]), so they cost no look-up;
//! nothing else can change them. Must not know: sockets, bytes, clocks, what a request says.
//!
//! Each method is one transition. It first checks whether its arguments can be true, and changes nothing if
//! not ([`Broken`]): a defect of Weir then costs one client and one server, and no client gets that server.
//!
//! Invariants: a server is leased to at most one client, and the two name each other; a client waits, follows
//! one that asks the same, has a lease or rides, never two of these; a client begins to follow only while the
//! other one waits; a server is shared while a client rides on it or it is about to be filled, and no client
//! rides on any other; a server that is set aside is the lease of a client that is pinned; a server is in the
//! idle list exactly while it is idle; a server that a cancel may still hit changes hands only to the client
//! that the cancel is for; the gauges equal the entries.

mod aside;
mod broken;
mod claim;
mod follow;
mod next;
mod pool;
mod post;
mod questions;
#[cfg(test)]
mod tests;

pub use broken::{Broken, Sound};
pub use claim::{Alike, Claim, Claimant, GroupId, Holding, Want};
pub use next::{Fit, HAND_OVER_NS, Next};
pub(crate) use pool::LACKS_TOLD;
pub use pool::Pool;
pub use post::{Post, ServerState, Tenant};
pub use questions::hash_of;

use crate::ids::{Arena, Key};
use crate::pool::PoolId;
use broken::broken;
use weir_wire::Pins;

/// A client has got what it wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// That. `None`: it has asked for nothing beyond the server.
    pub want: Option<Want>,
    /// It stood in the queue since then.
    pub waited_since_ns: Option<u64>,
}

/// The books of one worker and protocol.
pub struct Books<'a, C, S, X> {
    clients: &'a mut Arena<C>,
    servers: &'a mut Arena<S>,
    pools: &'a mut [Option<Box<Pool<X>>>],
}

impl<'a, C: Claimant, S: Tenant, X> Books<'a, C, S, X> {
    /// Those of these clients, servers and pools.
    #[inline]
    pub fn of(
        clients: &'a mut Arena<C>,
        servers: &'a mut Arena<S>,
        pools: &'a mut [Option<Box<Pool<X>>>],
    ) -> Self {
        Books { clients, servers, pools }
    }

    // What a client wants.

    /// A client wants a server. It has none.
    ///
    /// # Errors
    /// It has one, or wants one already.
    pub fn want(&mut self, client: Key, want: Want) -> Sound {
        match self.holding(client)? {
            Holding::Nothing => self.hold(client, Holding::Wanting(want)),
            Holding::Wanting(_)
            | Holding::Waiting(_)
            | Holding::Following { .. }
            | Holding::Leased(_)
            | Holding::Riding { .. } => {
                return Err(broken("a client wants a server and has one, or wants one already").of(client));
            }
        }
        Ok(())
    }

    /// Since when it wants that. Whoever has a place in the queue keeps it.
    pub fn wants_since(&mut self, client: Key, since_ns: u64) {
        if let Some(client) = self.clients.get_mut(client)
            && !client.claim().is_in_line()
        {
            client.claim_mut().since_ns = since_ns;
        }
    }

    /// It goes into the queue, to where its time puts it.
    ///
    /// # Errors
    /// It wants nothing, or belongs to no pool.
    pub fn queue(&mut self, client: Key) -> Sound {
        let Holding::Wanting(want) = self.holding(client)? else {
            return Err(broken("a client goes into the queue and wants nothing").of(client));
        };
        let shares = matches!(want, Want::Request { shares: true, .. });
        let id = self.clients.get(client).and_then(Claimant::pool);
        let Some(pool) = id.and_then(|id| pool_in(self.pools, id)) else {
            return Err(broken("a client waits for a server of no pool").of(client));
        };
        pool.wait(self.clients, client, shares);
        self.hold(client, Holding::Waiting(want));
        Ok(())
    }

    /// It leaves the queue, and wants what it wanted. False: it was not in it.
    pub fn leave_queue(&mut self, client: Key) -> bool {
        let Some(held) = self.clients.get(client) else { return false };
        let (shares, id) = (held.claim().shares(), held.pool());
        let Holding::Waiting(want) = held.claim().holding else { return false };
        let left = id
            .and_then(|id| pool_in(self.pools, id))
            .is_some_and(|pool| pool.stop_waiting(self.clients, client, shares));
        debug_assert!(left, "a client waits outside the queue");
        self.hold(client, Holding::Wanting(want));
        true
    }

    /// From now on it wants a server of its own. One in the queue keeps its time there, and whoever has
    /// waited alone before keeps its place.
    ///
    /// # Errors
    /// It wants nothing.
    pub fn want_alone(&mut self, client: Key) -> Sound {
        if self.clients.get(client).is_some_and(|it| it.claim().is_waiting() && !it.claim().shares()) {
            return Ok(());
        }
        let waits = self.leave_queue(client);
        match self.holding(client)? {
            Holding::Wanting(Want::Request { len, whole, .. }) => {
                self.hold(client, Holding::Wanting(Want::Request { len, whole, shares: false }));
            }
            Holding::Wanting(Want::Welcome) => {}
            Holding::Nothing
            | Holding::Waiting(_)
            | Holding::Following { .. }
            | Holding::Leased(_)
            | Holding::Riding { .. } => {
                return Err(broken("a client wants nothing alone").of(client));
            }
        }
        if waits { self.queue(client) } else { Ok(()) }
    }

    /// It wants nothing any more. Returns what it wanted.
    pub fn forget(&mut self, client: Key) -> Option<Want> {
        self.leave_queue(client);
        self.unfollow(client);
        let want = self.clients.get(client)?.claim().want()?;
        self.hold(client, Holding::Nothing);
        Some(want)
    }

    /// The request that a client has under way on its lease could stand among those of others, or not.
    pub fn note_quick(&mut self, client: Key, quick: bool) {
        if let Some(client) = self.clients.get_mut(client) {
            client.claim_mut().quick = quick;
        }
    }

    /// A server is being opened for this client alone, or no longer.
    pub fn note_opening(&mut self, client: Key, opening: bool) {
        if let Some(client) = self.clients.get_mut(client) {
            client.claim_mut().opening = opening;
        }
    }

    // Servers come and go.

    /// A server comes to be, in the state that its entry says.
    pub fn enter(&mut self, server: S) -> Key {
        let (id, state) = (server.pool(), server.post().state);
        let key = self.servers.insert(server);
        if let Some(pool) = pool_in(self.pools, id) {
            pool.moves(key, None, Some(state));
        }
        key
    }

    /// A server has logged in.
    ///
    /// # Errors
    /// It was not in its login.
    pub fn logged_in(&mut self, server: Key) -> Sound {
        match self.state(server)? {
            ServerState::Login => self.change(server, ServerState::Cleaning),
            _ => return Err(broken("a server logs in twice").on(server)),
        }
        if let Some(pool) = self.pool_of(server) {
            pool.end_pause();
        }
        Ok(())
    }

    /// A server is gone, and whoever held it has lost it.
    pub fn close(&mut self, server: Key) -> Option<S> {
        self.study_ends(server);
        if let ServerState::Leased(client) = self.servers.get(server)?.post().state {
            self.release_to(client, server, ServerState::Cleaning);
        }
        let gone = self.servers.remove(server)?;
        if let Some(pool) = pool_in(self.pools, gone.pool()) {
            pool.moves(server, Some(gone.post().state), None);
        }
        Some(gone)
    }

    /// Nobody has a server any more, and it is not free yet: it was idle, or shared by nobody.
    ///
    /// # Errors
    /// Somebody has it, or it carries requests.
    pub fn clean(&mut self, server: Key) -> Sound {
        let riders = self.servers.get(server).map_or(0, |server| server.post().riders);
        match self.state(server)? {
            ServerState::Idle | ServerState::Cleaning => {}
            ServerState::Shared if riders == 0 => {}
            ServerState::Shared => return Err(broken("a server is free and carries requests").on(server)),
            ServerState::Login | ServerState::Leased(_) => {
                return Err(broken("a server is free and somebody has it").on(server));
            }
        }
        self.change(server, ServerState::Cleaning);
        Ok(())
    }

    /// A server is free and nobody wants it.
    ///
    /// # Errors
    /// It is not free, or a cancel may hit it.
    pub fn rest(&mut self, server: Key) -> Sound {
        if self.is_held(server) {
            return Err(broken("a server rests that a cancel may hit").on(server));
        }
        match self.state(server)? {
            ServerState::Cleaning => self.change(server, ServerState::Idle),
            _ => return Err(broken("a server rests that is not free").on(server)),
        }
        Ok(())
    }

    /// A server that was about to be free is asked for its catalogue first.
    pub fn study_begins(&mut self, server: Key) {
        if let Some(held) = self.servers.get_mut(server)
            && !std::mem::replace(&mut held.post_mut().studies, true)
            && let Some(pool) = self.pool_of(server)
        {
            pool.study_begins();
        }
    }

    /// It has answered, or is gone.
    pub fn study_ends(&mut self, server: Key) {
        if let Some(held) = self.servers.get_mut(server)
            && std::mem::take(&mut held.post_mut().studies)
            && let Some(pool) = self.pool_of(server)
        {
            pool.study_ends();
        }
    }

    /// A cancel that may hit a server is under way.
    pub fn hold_for_cancel(&mut self, server: Key) {
        if let Some(server) = self.servers.get_mut(server) {
            server.post_mut().holds += 1;
        }
    }

    /// It is over.
    pub fn cancel_over(&mut self, server: Key) {
        if let Some(server) = self.servers.get_mut(server) {
            let post = server.post_mut();
            post.holds = post.holds.saturating_sub(1);
        }
    }

    // Leases.

    /// A server goes to a client, which may have waited for it.
    ///
    /// # Errors
    /// The server is not free, or a cancel may hit it; the client has one.
    pub fn lease(&mut self, server: Key, client: Key) -> Sound<Served> {
        let held = self.is_held(server);
        match self.state(server)? {
            ServerState::Idle | ServerState::Cleaning if !held => {}
            // Its request has left something behind; the others have gone.
            ServerState::Shared if self.riders(server) == 0 => {}
            ServerState::Idle | ServerState::Cleaning => {
                return Err(
                    broken("a server that a cancel may hit goes to another client").both(client, server)
                );
            }
            ServerState::Login | ServerState::Shared | ServerState::Leased(_) => {
                return Err(broken("a server goes to a client and is not free").both(client, server));
            }
        }
        let waited = self.leave_queue(client);
        let (want, since_ns) = match self.clients.get(client) {
            Some(client) => (client.claim().holding, client.claim().since_ns),
            None => return Err(broken("a server goes to a client that is gone").on(server)),
        };
        let want = match want {
            Holding::Nothing => None,
            Holding::Wanting(want) => Some(want),
            Holding::Waiting(_) | Holding::Following { .. } | Holding::Leased(_) | Holding::Riding { .. } => {
                return Err(broken("a client that has a server gets another").both(client, server));
            }
        };
        self.give(server, client);
        Ok(Served { want, waited_since_ns: waited.then_some(since_ns) })
    }

    /// A client needs its server no longer, which is to be cleaned. `None`: it has none to itself.
    pub fn release(&mut self, client: Key) -> Option<Key> {
        let server = self.clients.get(client)?.claim().lease()?;
        self.release_to(client, server, ServerState::Cleaning);
        Some(server)
    }

    /// A server stays with its client beyond the boundary. Returns the reasons for which it did before.
    pub fn pin(&mut self, client: Key, pins: Pins) -> Pins {
        let Some(held) = self.clients.get_mut(client) else { return Pins::NONE };
        let before = std::mem::replace(&mut held.claim_mut().pinned, pins);
        let id = held.pool();
        if let Some(pool) = id.and_then(|id| pool_in(self.pools, id)) {
            pool.pinned(!before.is_empty(), !pins.is_empty());
        }
        self.come_back(client, pins);
        before
    }

    // Shared servers.

    /// A server may carry further requests: those who find none free look among these.
    pub fn list(&mut self, server: Key) {
        if let Some(held) = self.servers.get_mut(server)
            && !std::mem::replace(&mut held.post_mut().listed, true)
            && let Some(pool) = self.pool_of(server)
        {
            pool.list(server);
        }
    }

    /// The one at this place in the list may not, or is gone.
    pub fn unlist(&mut self, id: PoolId, at: usize) {
        let Some(pool) = pool_in(self.pools, id) else { return };
        let Some(server) = pool.joinable_at(at) else { return };
        pool.unlist(at);
        if let Some(server) = self.servers.get_mut(server) {
            server.post_mut().listed = false;
        }
    }

    /// A server that is free takes up requests of several clients.
    ///
    /// # Errors
    /// It is not free, or a cancel may hit it.
    pub fn share(&mut self, server: Key) -> Sound {
        if self.is_held(server) {
            return Err(broken("a server is shared that a cancel may hit").on(server));
        }
        match self.state(server)? {
            ServerState::Idle | ServerState::Cleaning => self.change(server, ServerState::Shared),
            ServerState::Login | ServerState::Leased(_) | ServerState::Shared => {
                return Err(broken("a server is shared that is not free").on(server));
            }
        }
        self.list(server);
        Ok(())
    }

    /// A leased server takes up requests of others behind the one its client has under way. That stays where
    /// it is.
    ///
    /// # Errors
    /// Nobody holds it, or its client is tied to it.
    pub fn convert(&mut self, server: Key) -> Sound<Key> {
        let ServerState::Leased(client) = self.state(server)? else {
            return Err(broken("a server is shared that nobody holds").on(server));
        };
        if !self.clients.get(client).is_some_and(|client| client.claim().is_quick()) {
            return Err(broken("a server is shared that is tied to its client").both(client, server));
        }
        self.release_to(client, server, ServerState::Shared);
        self.carry(server, client, 0);
        Ok(client)
    }

    /// A client's request goes behind those of others on a shared server. Returns how long it is.
    ///
    /// # Errors
    /// The server is not shared, or the client does not want to ride.
    pub fn ride(&mut self, server: Key, client: Key) -> Sound<(u32, Option<u64>)> {
        if self.state(server)? != ServerState::Shared {
            return Err(broken("a request rides on a server that is not shared").both(client, server));
        }
        let Some(held) = self.clients.get(client) else {
            return Err(broken("a client that is gone rides").on(server));
        };
        let since_ns = held.claim().since_ns;
        let Some(Want::Request { len, whole: true, shares: true }) =
            held.claim().want().filter(|_| held.claim().follows().is_none())
        else {
            return Err(broken("a client rides that does not want to").both(client, server));
        };
        let waited = self.leave_queue(client);
        self.carry(server, client, len);
        Ok((len, waited.then_some(since_ns)))
    }

    /// A client's ride is over: its request is answered, or the client goes. Returns the server and how many
    /// bytes of the request stand at the start of its input. `None`: it does not ride.
    pub fn alight(&mut self, client: Key) -> Option<(Key, u32)> {
        let Holding::Riding { server, len } = self.clients.get(client)?.claim().holding else { return None };
        self.set_down(server, client);
        Some((server, len))
    }

    /// A client's request is taken back from a shared server, and wants one of its own. `None`: that cannot
    /// be, because it does not ride or its bytes are gone.
    pub fn take_back(&mut self, client: Key) -> Option<Key> {
        let Holding::Riding { server, len: len @ 1.. } = self.clients.get(client)?.claim().holding else {
            return None;
        };
        self.set_down(server, client);
        self.hold(client, Holding::Wanting(Want::Request { len, whole: true, shares: false }));
        Some(server)
    }

    /// A shared server becomes that of the client whose request is at its head. Everybody else has been taken
    /// back from it. Returns how many bytes of the request stand at the start of its input.
    ///
    /// # Errors
    /// It does not ride there, or not alone.
    pub fn seclude(&mut self, server: Key, head: Key) -> Sound<u32> {
        let rides = self.clients.get(head).map(|client| client.claim().holding);
        let Some(Holding::Riding { server: on, len }) = rides.filter(|_| self.riders(server) == 1) else {
            return Err(
                broken("a server becomes the lease of who does not ride alone on it").both(head, server)
            );
        };
        if on != server || self.state(server)? != ServerState::Shared {
            return Err(broken("a server becomes the lease of who rides elsewhere").both(head, server));
        }
        self.set_down(server, head);
        self.give(server, head);
        Ok(len)
    }

    // The few places where anything is written.

    /// A lease begins: here and nowhere else.
    fn give(&mut self, server: Key, client: Key) {
        self.change(server, ServerState::Leased(client));
        self.hold(client, Holding::Leased(server));
        if let Some(client) = self.clients.get_mut(client) {
            (client.claim_mut().quick, client.claim_mut().opening) = (false, false);
        }
        if let Some(server) = self.servers.get_mut(server) {
            server.post_mut().meant_for = None;
        }
        if let Some(pool) = self.pool_of(server) {
            pool.cells.leases.inc();
        }
    }

    /// A lease ends: here and nowhere else.
    fn release_to(&mut self, client: Key, server: Key, state: ServerState) {
        if let Some(held) = self.clients.get_mut(client) {
            held.claim_mut().quick = false;
            if !held.claim().pinned.is_empty() {
                self.pin(client, Pins::NONE);
            }
        }
        self.hold(client, Holding::Nothing);
        self.change(server, state);
    }

    /// A ride begins: here and nowhere else.
    fn carry(&mut self, server: Key, client: Key, len: u32) {
        self.hold(client, Holding::Riding { server, len });
        if let Some(server) = self.servers.get_mut(server) {
            server.post_mut().riders += 1;
        }
    }

    /// A ride ends: here and nowhere else.
    fn set_down(&mut self, server: Key, client: Key) {
        self.hold(client, Holding::Nothing);
        if let Some(server) = self.servers.get_mut(server) {
            let post = server.post_mut();
            debug_assert!(post.riders > 0);
            post.riders = post.riders.saturating_sub(1);
        }
    }

    #[inline]
    fn hold(&mut self, client: Key, holding: Holding) {
        if let Some(client) = self.clients.get_mut(client) {
            client.claim_mut().holding = holding;
        }
    }

    #[inline]
    fn change(&mut self, server: Key, state: ServerState) {
        let Some(held) = self.servers.get_mut(server) else { return };
        let before = std::mem::replace(&mut held.post_mut().state, state);
        let id = held.pool();
        if let Some(pool) = pool_in(self.pools, id) {
            pool.moves(server, Some(before), Some(state));
        }
    }

    #[inline]
    fn holding(&self, client: Key) -> Sound<Holding> {
        let client =
            self.clients.get(client).ok_or(broken("a client is gone that something is to happen to"))?;
        Ok(client.claim().holding)
    }

    #[inline]
    fn state(&self, server: Key) -> Sound<ServerState> {
        let server =
            self.servers.get(server).ok_or(broken("a server is gone that something is to happen to"))?;
        Ok(server.post().state)
    }

    fn is_held(&self, server: Key) -> bool {
        self.servers.get(server).is_some_and(|server| server.post().is_held())
    }

    fn riders(&self, server: Key) -> u32 {
        self.servers.get(server).map_or(0, |server| server.post().riders)
    }

    fn pool_of(&mut self, server: Key) -> Option<&mut Pool<X>> {
        let id = self.servers.get(server)?.pool();
        pool_in(self.pools, id)
    }
}

#[inline]
fn pool_in<X>(pools: &mut [Option<Box<Pool<X>>>], id: PoolId) -> Option<&mut Pool<X>> {
    pools.get_mut(id.0 as usize)?.as_deref_mut()
}
