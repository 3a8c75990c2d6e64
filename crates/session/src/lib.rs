//! What the hall and both wings agree on.
//!
//! Owns: which protocols there are ([`Protocol`]).
//! Must not know: either protocol's bytes, any socket, clock, setting or metric.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod protocol;

pub use protocol::Protocol;
