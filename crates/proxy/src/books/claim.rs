//! A client's entry in the books: what it wants, or what it holds.

use crate::ids::Key;
use crate::pool::{Link, Linked, PoolId};
use std::num::NonZeroU32;
use weir_wire::Pins;

/// What a client needs a server for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// The request at the start of its input.
    Request {
        /// Bytes of it.
        len: u32,
        /// It is whole.
        whole: bool,
        /// It may stand behind the requests of others on a server that is shared.
        shares: bool,
    },
    /// A server that confirms its login settings.
    Welcome,
}

/// Those who wait for one answer; a number that no others of their pool have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub(super) NonZeroU32);

/// What a client has: the one state of its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Holding {
    /// It has nothing and wants nothing.
    #[default]
    Nothing,
    /// It wants a server and does not stand in the queue: for as long as one step of the hall takes.
    Wanting(Want),
    /// It stands in the queue of its pool.
    Waiting(Want),
    /// Somebody else asks the same: it waits for that answer, and stands in no queue.
    Following {
        /// Those who wait for the same answer.
        group: GroupId,
        /// What it wants if there is none for it.
        want: Want,
    },
    /// It has this server to itself.
    Leased(Key),
    /// Its request stands among those of others.
    Riding {
        /// On this server.
        server: Key,
        /// Bytes of it, which stay at the start of the client's input until it is answered, so that another
        /// server can take it. 0: they are gone, and the request stays where it is.
        len: u32,
    },
}

/// Whose answer a client may get to the request it waits with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Alike {
    /// Its own only.
    #[default]
    No,
    /// That of anybody who asks the same with its settings.
    Yes,
    /// The same, and the one that it follows has been sent.
    Asked,
    /// The answer to another one was not for it: it asks by itself.
    ByItself,
}

/// A client's entry in the books.
#[derive(Debug, Default)]
pub struct Claim {
    pub(super) holding: Holding,
    pub(super) link: Link,
    pub(super) since_ns: u64,
    pub(super) pinned: Pins,
    /// Those whose answer is what this client asks.
    pub(super) leads: Option<GroupId>,
    pub(super) quick: bool,
    pub(super) opening: bool,
    /// Whose answer it may get: a note of the hall's, which has room here.
    pub alike: Alike,
}

/// Something with a claim.
pub trait Claimant {
    /// Its claim.
    fn claim(&self) -> &Claim;
    /// The same for the books, which alone can change anything of it.
    fn claim_mut(&mut self) -> &mut Claim;
    /// The pool it belongs to.
    fn pool(&self) -> Option<PoolId>;
}

impl<T: Claimant> Linked for T {
    fn link(&self) -> Link {
        self.claim().link
    }
    fn link_mut(&mut self) -> &mut Link {
        &mut self.claim_mut().link
    }
}

impl Claim {
    /// What it has.
    #[inline]
    pub fn holding(&self) -> Holding {
        self.holding
    }

    /// What it has sent last waits for its turn, or stands among the requests of others: nothing behind it is
    /// looked at.
    #[inline]
    pub fn is_served_later(&self) -> bool {
        match self.holding {
            Holding::Nothing | Holding::Leased(_) => false,
            Holding::Wanting(_)
            | Holding::Waiting(_)
            | Holding::Following { .. }
            | Holding::Riding { .. } => true,
        }
    }

    /// The server it has to itself.
    #[inline]
    pub fn lease(&self) -> Option<Key> {
        match self.holding {
            Holding::Leased(server) => Some(server),
            Holding::Nothing
            | Holding::Wanting(_)
            | Holding::Waiting(_)
            | Holding::Following { .. }
            | Holding::Riding { .. } => None,
        }
    }

    /// The server that carries its request among those of others.
    #[inline]
    pub fn ride(&self) -> Option<Key> {
        match self.holding {
            Holding::Riding { server, .. } => Some(server),
            Holding::Nothing
            | Holding::Wanting(_)
            | Holding::Waiting(_)
            | Holding::Following { .. }
            | Holding::Leased(_) => None,
        }
    }

    /// The server that has something of it under way or to itself.
    #[inline]
    pub fn server(&self) -> Option<Key> {
        match self.holding {
            Holding::Leased(server) | Holding::Riding { server, .. } => Some(server),
            Holding::Nothing | Holding::Wanting(_) | Holding::Waiting(_) | Holding::Following { .. } => None,
        }
    }

    /// What it wants, in the queue or not yet.
    #[inline]
    pub fn want(&self) -> Option<Want> {
        match self.holding {
            Holding::Wanting(want) | Holding::Waiting(want) | Holding::Following { want, .. } => Some(want),
            Holding::Nothing | Holding::Leased(_) | Holding::Riding { .. } => None,
        }
    }

    /// It stands in the queue.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        matches!(self.holding, Holding::Waiting(_))
    }

    /// Those with whom it waits for the answer to what another one asks.
    #[inline]
    pub fn follows(&self) -> Option<GroupId> {
        match self.holding {
            Holding::Following { group, .. } => Some(group),
            Holding::Nothing
            | Holding::Wanting(_)
            | Holding::Waiting(_)
            | Holding::Leased(_)
            | Holding::Riding { .. } => None,
        }
    }

    /// Those who wait for the answer to what it asks.
    #[inline]
    pub fn leads(&self) -> Option<GroupId> {
        self.leads
    }

    /// It waits: for its turn, or for the answer to another one.
    #[inline]
    pub fn is_in_line(&self) -> bool {
        matches!(self.holding, Holding::Waiting(_) | Holding::Following { .. })
    }

    /// It wants, in the queue or not yet, a place among the requests of others.
    pub fn shares(&self) -> bool {
        matches!(self.want(), Some(Want::Request { shares: true, .. }))
    }

    /// Since when it wants what it wants (nanoseconds of the worker's clock): its place in the queue.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// The reasons already counted for which it keeps its server.
    pub fn pinned(&self) -> Pins {
        self.pinned
    }

    /// It has a lease that nothing ties it to beyond the request under way, and others may stand behind that.
    pub fn is_quick(&self) -> bool {
        self.quick && self.lease().is_some() && self.pinned.is_empty()
    }

    /// A server is being opened for it alone.
    pub fn is_opening(&self) -> bool {
        self.opening
    }
}
