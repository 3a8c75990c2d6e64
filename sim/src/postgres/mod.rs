//! PostgreSQL: a model database, model clients, and the engine both rest on.

pub mod client;
pub mod engine;
pub mod script;
pub mod session;
pub mod sql;
pub mod wire;
