//! The PostgreSQL protocol as pure machines: versions 3.0 and 3.2, both roles.
//!
//! Owns: framing, the login in both roles ([`Accept`], [`Connect`]), finding requests in a client's bytes
//! ([`Front`]), the queue of a server and what is owed for each request ([`Back`]), the state that moves with
//! a client (settings, prepared statements), and what clients are told after login ([`Welcomes`]). Must not
//! know: sockets, clocks, settings of Weir, the other wing.
//!
//! Invariants: no input from a peer causes a panic; every buffer and map has a bound; a reply goes to the
//! owner of its request and to nobody else.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod back;
pub mod cancel;
pub mod catalogue;
mod console;
mod datestyle;
mod dispatch;
pub mod effects;
pub mod error;
mod follow;
pub mod frame;
pub mod front;
mod late;
pub mod listen;
pub mod login;
pub mod message;
#[cfg(test)]
mod model;
mod own;
pub mod prepared;
mod queue;
mod reply;
mod reset;
mod role;
pub mod session_state;
#[cfg(test)]
mod testing;
pub mod welcome;

pub use back::Back;
pub use front::Front;
pub use login::accept::Accept;
pub use login::connect::Connect;
pub use welcome::Welcomes;

use weir_session::Protocol;

/// PostgreSQL.
#[derive(Debug)]
pub struct Postgres;

impl weir_session::Machines for Postgres {
    const PROTOCOL: Protocol = Protocol::Postgres;
    const HAS_CATALOGUE: bool = true;
    const RESTS_BEHIND_TABLES: bool = true;
    // The fingerprint of the catalogue comes with the account.
    const ASKS_ACCOUNTS: bool = true;
    type Accept = Accept;
    type Connect = Connect;
    type Front = Front;
    type Back = Back;
    type Welcomes = Welcomes;
}
