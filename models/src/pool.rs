//! Limits and notices of pools.

#[path = "../../crates/proxy/src/pool/cap.rs"]
pub mod cap;
#[path = "../../crates/proxy/src/pool/shared.rs"]
pub mod shared;

pub use cap::Cap;
pub use shared::{NOBODY, Opening, PoolShared};
