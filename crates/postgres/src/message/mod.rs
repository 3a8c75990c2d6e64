//! Messages, one file per family. Parsers borrow from the bytes they read; writers append.

pub mod auth;
pub mod query;
pub mod reply;
pub mod startup;
