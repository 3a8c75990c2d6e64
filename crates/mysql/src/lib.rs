//! The MySQL and MariaDB protocols as pure machines: bytes in, bytes out.
//!
//! Owns: packets, messages, login in both roles, the client side ([`Front`]) and the server side ([`Back`])
//! of a session, the state that moves with a client from server to server, prepared statements under Weir's
//! own ids, and the text for a [`weir_wire::Fault`]. Must not know: sockets, clocks, settings, pools,
//! metrics.
//!
//! Invariants: no input from a peer causes a panic or unbounded growth; a reply goes to the owner of its
//! request and to nobody else; a request runs only in its client's state, or the client gets an error.
//!
//! Capabilities are negotiated separately on each side. Towards servers Weir always has DEPRECATE_EOF and
//! SESSION_TRACK (MySQL 5.7, MariaDB 10.2 or newer); packets are rewritten for clients that lack either.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod back;
mod binding;
mod cancel;
mod catalogue;
mod console;
mod dispatch;
pub mod error;
mod follow;
pub mod frame;
mod front;
mod insert_id;
mod login;
mod lost_schema;
pub mod message;
mod packing;
mod prepared;
mod queue;
mod reply;
mod reset;
mod rewrite;
mod says;
mod session_state;
mod ssl_status;
mod warnings;
mod welcome;
mod words;

pub use back::Back;
pub use front::Front;
pub use login::accept::Accept;
pub use login::connect::Connect;
pub use welcome::Welcomes;

use weir_session::Protocol;

/// MySQL and MariaDB.
#[derive(Debug)]
pub struct MySql;

impl weir_session::Machines for MySql {
    const PROTOCOL: Protocol = Protocol::Mysql;
    const HAS_CATALOGUE: bool = true;
    const RESTS_BEHIND_TABLES: bool = false;
    const ASKS_ACCOUNTS: bool = false;
    type Accept = Accept;
    type Connect = Connect;
    type Front = Front;
    type Back = Back;
    type Welcomes = Welcomes;
}
