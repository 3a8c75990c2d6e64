//! A server's entry in the books: who has it.

use crate::ids::Key;
use crate::pool::PoolId;
use weir_metrics::{Gauge, PoolCells};

/// Who has a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// Not yet usable.
    Login,
    /// Nobody; it is in the pool's idle list.
    Idle,
    /// This client.
    Leased(Key),
    /// Requests of several clients stand in its queue, each whole and without a trace; `hall/share.rs`.
    Shared,
    /// Weir itself: drained, rolled back, reset or checked before anybody gets it.
    Cleaning,
}

impl ServerState {
    /// The gauge that counts servers in this state.
    pub fn gauge(self, cells: &PoolCells) -> &Gauge {
        match self {
            ServerState::Login => &cells.servers_connecting,
            ServerState::Idle => &cells.servers_idle,
            ServerState::Leased(_) | ServerState::Shared => &cells.servers_active,
            ServerState::Cleaning => &cells.servers_cleaning,
        }
    }
}

/// A server's entry in the books.
#[derive(Debug)]
pub struct Post {
    pub(super) state: ServerState,
    pub(super) riders: u32,
    pub(super) holds: u32,
    pub(super) meant_for: Option<Key>,
    pub(super) listed: bool,
    pub(super) studies: bool,
    pub(super) aside: bool,
}

/// Something that a client can hold.
pub trait Tenant {
    /// Its entry.
    fn post(&self) -> &Post;
    /// The same for the books, which alone can change anything of it.
    fn post_mut(&mut self) -> &mut Post;
    /// The pool it belongs to.
    fn pool(&self) -> PoolId;
}

impl Post {
    /// That of a server whose connect begins, perhaps for this client alone.
    pub fn connecting(meant_for: Option<Key>) -> Self {
        let state = ServerState::Login;
        Post { state, riders: 0, holds: 0, meant_for, listed: false, studies: false, aside: false }
    }

    /// That of a server that comes from another worker.
    pub fn arriving() -> Self {
        Post { state: ServerState::Cleaning, ..Post::connecting(None) }
    }

    /// Who has it.
    #[inline]
    pub fn state(&self) -> ServerState {
        self.state
    }

    /// A cancel that may still hit it is under way: it must not change hands.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.holds > 0
    }

    /// Clients whose requests it carries.
    pub fn riders(&self) -> u32 {
        self.riders
    }

    /// Its client keeps it for long: another one may be opened in its place, within the pool's allowance.
    pub fn is_aside(&self) -> bool {
        self.aside
    }

    /// The client it was opened for, until anybody has it.
    pub fn meant_for(&self) -> Option<Key> {
        self.meant_for
    }
}
