//! The event loop, sockets, buffers, timers, mailboxes and descriptor handover. Independent of the meaning of
//! bytes.
//!
//! Owns: every system call of the data plane, and the only `unsafe` of the project, therefore also the calls
//! of libpam ([`pam`]). Must not know: protocols, sessions, settings.
//!
//! A worker is written against [`Net`], not against the kernel: `kernel` implements it on mio, `sim`
//! implements it in memory with a virtual clock and seeded faults, and io_uring can implement it later.

#![deny(clippy::undocumented_unsafe_blocks)]
#![warn(clippy::missing_errors_doc)]

pub mod backoff;
pub mod buffer;
pub mod fleet;
pub mod handover;
pub mod kernel;
pub mod listener;
pub mod mailbox;
pub mod pam;
pub mod priority;
pub mod random;
pub mod seam;
pub mod socket;
mod sync;
pub mod tables;
pub mod wake;
pub mod wheel;

pub use buffer::Buffer;
pub use fleet::{Fleet, Seat};
pub use kernel::Kernel;
pub use mailbox::{Address, Mailbox, mailbox};
pub use seam::{Event, Kept, Net, Peer, Target, Token};
pub use wake::{KernelWake, Wake};
pub use wheel::Wheel;
