//! `weir doctor` and `weir advise`: which limits will stop N connections on this machine, and whether a
//! database needs a pooler, in which mode and with which size.
//!
//! Owns: reading the system's limits ([`Root`]), the checks (one file each), the explanations of common
//! errors ([`mod@explain`]), the queries to databases, and the advice. Must not know: the proxy, its sessions
//! or its settings; the load generator.
//!
//! Invariants: nothing is ever changed, neither on the machine nor in the database; every fact names its
//! source; what could not be read is `unknown`, never `ok`; everything of the system is read below a
//! [`Root`], so that every check runs in tests on a /proc and /sys made of files.
#![forbid(unsafe_code)]

pub mod advise;
pub mod checks;
pub mod cure;
pub mod database;
pub mod explain;
pub mod finding;
pub mod numbers;
pub mod probe;
pub mod question;
mod quick;
pub mod report;
pub mod root;
pub mod text;

pub use cure::{Cure, Place};
pub use finding::{Break, Finding, Reading, State};
pub use question::{Program, Question};
pub use quick::{QUICK_FROM_CLIENTS, quick, quick_at};
pub use report::Report;
pub use root::Root;
