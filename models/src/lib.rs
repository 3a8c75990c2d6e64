//! The same source files as in the crates, built with shuttle's atomics and channels instead of std's:
//! shuttle then decides which thread takes the next step, and tries every order of them, or very many.
//!
//! shuttle's atomics are sequentially consistent. Files that depend on that use `SeqCst` explicitly; the
//! mailbox's orders are read-modify-writes of one location.

pub mod sync {
    //! In the place of `crate::sync` of both crates.
    pub use shuttle::sync::{Mutex, MutexGuard, atomic, mpsc};
    pub use std::sync::{Arc, PoisonError};
}

pub mod wake {
    //! What the mailbox knows of a thread that waits.

    /// As in `weir-net`.
    pub trait Wake: Send + Sync {
        /// The thread goes on, or does not begin to wait.
        fn wake(&self);
    }
}

#[path = "../../crates/net/src/handover.rs"]
pub mod handover;
#[path = "../../crates/net/src/mailbox.rs"]
pub mod mailbox;

pub mod pool;
