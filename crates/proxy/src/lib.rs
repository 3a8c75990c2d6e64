//! The hall: workers, sessions, servers, pools.
//!
//! Owns: who is connected, which server runs whose request, how long a client may wait. `worker` is the loop;
//! `hall` is one worker's clients and servers of one protocol; `pool` is who waits for what; `wing` is what a
//! protocol provides; `control` starts and stops everything. Must not know: what the bytes mean (the wings
//! do), files (`config` does), what console statements mean: `console` forwards them and lists what exists.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod ask;
#[doc(hidden)]
pub mod audit;
pub mod berths;
pub mod books;
pub mod client;
pub mod console;
pub mod context;
pub mod control;
pub mod crypto;
pub mod dial;
pub mod ear;
mod economy;
pub mod failures;
mod front_tls;
mod further;
pub mod greeting;
pub mod hall;
pub mod ids;
pub mod line;
pub mod mail;
pub mod panics;
pub mod pending;
pub mod pool;
mod room;
mod routes;
pub mod server;
pub mod settings;
mod silent;
pub mod sizing;
pub mod statements;
pub mod stream;
mod sync;
pub mod vouch;
pub mod wing;
pub mod worker;

pub use control::{Proxy, StartError};
