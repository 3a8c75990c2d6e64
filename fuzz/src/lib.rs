//! The fuzz targets' use of their input.
//!
//! The bytes are a script: some choose what happens next, some choose one of the messages of that protocol
//! ([`peers`]), some are sent as they are. A target fails by a panic: of the code under test, or of an
//! assertion here about that code's guarantees.

pub mod config;
pub mod ldap;
pub mod login;
pub mod peers;
pub mod script;
pub mod session;
pub mod sql;
