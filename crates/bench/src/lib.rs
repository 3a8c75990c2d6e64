//! The load generator: event loops, not one thread per connection.
//!
//! Owns: plans, workloads, the request and reply machines of a client, the workers that drive them, what they
//! record and how it is reported; and the demo, which is the load generator in front of temporary servers.
//! Must not know: the proxy. Anything that answers at a URL is a server.
//!
//! Invariants: every reply is checked against a value derived from the client and its counter; every error is
//! counted under its own code with the first text; a latency is never shortened by the generator's own delay
//! in sending the next request.
#![forbid(unsafe_code)]

pub mod agents;
pub mod cli;
pub mod client;
pub mod clock;
pub mod column;
pub mod compare;
pub mod demo;
pub mod dice;
pub mod fill;
pub mod knee;
pub mod lab;
pub mod plan;
pub mod prepare;
pub mod procs;
pub mod ramp;
pub mod record;
pub mod report;
pub mod run;
pub mod sources;
pub mod statement;
pub mod stats;
pub mod sysbench;
pub mod url;
pub mod worker;
pub mod workloads;

pub use plan::{Mode, Pace, Plan};
pub use record::RunResult;
pub use run::run;
pub use url::Url;
