//! Password mathematics.
//!
//! Owns: secrets and their derived keys ([`Secret`]), SCRAM-SHA-256 in both roles, md5,
//! mysql_native_password, caching_sha2_password, and slow work that must leave the worker ([`Job`]). Must not
//! know: sockets, clocks, settings, message formats.
//!
//! Invariants: secrets are compared in constant time and wiped when dropped; an unknown user takes the same
//! path as a wrong password.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod caching_sha2;
pub mod hash;
pub mod job;
pub mod md5;
pub mod native;
pub mod rsa;
pub mod scram;
pub mod secret;

pub use job::{Job, JobDone};
pub use secret::{Password, Secret, SecretKind};
