//! MySQL: a model database, model clients, and the engine both rest on. The mirror of `postgres`.

pub mod client;
pub mod engine;
pub mod excuse;
pub mod script;
pub mod session;
pub mod sql;
pub mod wire;
