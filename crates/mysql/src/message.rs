//! The payloads of packets, one file per family.
//!
//! Owns: reading and writing payloads, flags and codes. Must not know: sessions, queues, who sent what.
//! Invariant: a truncated payload is a [`weir_wire::Short`], never a panic.

pub mod capability;
pub mod command;
pub mod greeting;
pub mod lenenc;
pub mod ok;
pub mod response;
pub mod status;

pub use capability::Capabilities;
pub use command::Command;
