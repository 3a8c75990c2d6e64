//! The contract between the hall and both wings.
//!
//! Owns: the protocols ([`Protocol`]), the machines of a protocol as traits ([`Accept`], [`Connect`],
//! [`Front`] with its [`Console`], [`Back`], [`Welcomes`]) and that they belong together ([`Machines`]), and
//! the types of a login ([`login`]). The wings implement the traits; the hall, the load generator and the
//! doctor use them.
//!
//! Must not know: either protocol's bytes, any socket, clock, setting or metric. All of it is pure: bytes in,
//! bytes out.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod accept;
mod back;
mod connect;
mod console;
mod front;
pub mod listen;
pub mod login;
mod machines;
mod packing;
mod protocol;
mod welcomes;

pub use accept::Accept;
pub use back::{Back, Repeated, Tally};
pub use connect::Connect;
pub use console::Console;
pub use front::Front;
pub use login::{Admission, AuthMethod, Login};
pub use machines::Machines;
pub use packing::Packing;
pub use protocol::Protocol;
pub use welcomes::Welcomes;
