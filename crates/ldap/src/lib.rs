//! LDAP as PostgreSQL's method `ldap` uses it: whether a server takes a user's password.
//!
//! Owns: the options of that method with their rules ([`Options`]), names and filters with what must be
//! escaped in them, LDAP's messages (RFC 4511) as far as they are needed, and the questions and answers of
//! one login as a pure machine ([`Exchange`]): bytes in, bytes out. Must not know: sockets, TLS, clocks,
//! settings.
//!
//! Invariants: an empty password never gets as far as a server, which would take it for an anonymous bind,
//! and neither does an empty name; a name that a client sends is never more than a value in a DN or a filter;
//! referrals are not followed; what a server sends is read without recursion and within bounds.
//!
//! Why there is no LDAP crate below this: ldap3 0.12.1 reads messages of any length, by a parser (lber 0.5.1)
//! that calls itself for each level of nesting: 50 kB from a server, or from whoever stands in for it,
//! overflow a thread's stack, which ends the process and all its sessions.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod ber;
mod exchange;
mod filter;
mod message;
mod name;
mod options;
mod url;

pub use exchange::{Exchange, Step, Verdict};
pub use message::MESSAGE_BYTES;
pub use options::{Builder, Encryption, NO_PAIR, Options, Way, pairs};
pub use url::Scope;
