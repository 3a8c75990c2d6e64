//! What the fuzz targets do with their bytes.
//!
//! The bytes are a script: some choose what happens next, some choose one of the messages a peer of that
//! protocol knows ([`peers`]), some are said as they stand. A target fails by a panic: of the code under
//! test, or of an assertion here about what that code promises.

pub mod config;
pub mod login;
pub mod peers;
pub mod script;
pub mod session;
pub mod sql;
