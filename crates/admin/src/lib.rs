//! Interfaces for operators: the console ([`console`]), HTTP ([`http`]), and the figures that both the
//! dashboard and `weir top` show ([`live`]).
//!
//! Runs on the control thread; nothing here is on the data path.
#![forbid(unsafe_code)]

pub mod console;
pub mod http;
pub mod live;
