//! `weir top`: the figures of a running Weir on a terminal.
//!
//! Owns: the question over HTTP ([`ask`]), the screen ([`screen`]), the keys ([`run`]). Must not know: where
//! the figures come from; they are the document of `/api/live` ([`weir_admin::live`]).
//!
//! Invariants: the terminal is as it was before, however this ends; nothing that a client has named is sent
//! to the terminal as control characters; an answer is bounded in time and bytes.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod ask;
mod run;
pub mod screen;

pub use run::{Args, Failure, run};
