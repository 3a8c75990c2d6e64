//! Messages, one file a family. Parsers borrow from the bytes they read; writers append.

pub mod auth;
pub mod query;
pub mod reply;
pub mod startup;
