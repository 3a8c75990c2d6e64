//! Types shared by both wire protocols.
//!
//! Owns: what a front found in a client's bytes ([`Found`]), what a back did with a server's bytes
//! ([`Step`]), the state in which a reply leaves a server ([`Boundary`]), why a server must stay with a
//! client ([`Pin`]), whose fault an error is ([`Fault`]), named upper bounds ([`limits`]), the checked cursor
//! ([`Reader`]) through which every byte of a peer is read, questions and answers of the console
//! ([`console`]), and the header that load balancers send before either protocol ([`proxy_header`]).
//!
//! Must not know: either database's protocol, any socket, clock, setting or metric.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod code;
pub mod console;
pub mod cursor;
pub mod fault;
pub mod limits;
pub mod proxy_header;
pub mod relay;

pub use code::ErrorCode;
pub use cursor::{Reader, Short};
pub use fault::{Fault, FaultKind, Whose, name_of};
pub use relay::{Boundary, Found, INTERNAL, Needs, Owner, Pin, PinPolicies, Pins, Step};
