//! What the parameters of a startup packet come to as settings of a session.
//!
//! Owns: [`settings_of_start`]. Must not know: who logs in.

use crate::datestyle;
use crate::session_state::{Settings, TooMany};

/// The settings of a session that begins with these pairs, in the order in which PostgreSQL sets them: what
/// stood in `options`, then the packet's own (`process_startup_options`).
///
/// # Errors
/// [`TooMany`] for more settings than [`weir_wire::limits`] allows.
pub(crate) fn settings_of_start(pairs: Vec<(String, Vec<u8>)>) -> Result<Settings, TooMany> {
    Settings::from_pairs(datestyle::fold(pairs))
}
