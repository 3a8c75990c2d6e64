//! Pools: the servers of one (database, user), their limits, and what workers tell each other about them.
//!
//! Owns: the limits, the shares, the sizes, the order of those who wait. One worker's part of a pool, its
//! idle servers and its queue, is in the books (`crate::books`). Must not know: protocols, sockets, what a
//! server or a client is: it stores keys.

pub mod auto;
pub mod cap;
pub mod health;
pub mod history;
pub mod place;
pub mod queue;
pub mod registry;
pub mod right;
pub mod shared;

pub use cap::{Cap, Standing};
pub use health::{Failure, Health};
pub use history::History;
pub use place::Place;
pub use queue::{Link, Linked, Queue};
pub use registry::{PoolEntry, PoolId, Registry};
pub use right::Right;
pub use shared::{Opening, PoolShared, Served};
