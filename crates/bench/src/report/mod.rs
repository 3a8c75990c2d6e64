//! Output of results: lines and a table on the terminal, JSON, CSV, and one HTML file with plots.
//!
//! Owns: how figures are arranged and shown. Must not know: how they are measured.
//!
//! [`summary`] is the table at the end of a run, in sysbench's form. Everything else is a [`page::Page`],
//! which [`terminal`] and [`html`] print: the page of a run is built by [`mod@run`].

pub mod csv;
pub mod html;
pub mod page;
pub mod run;
pub mod summary;
pub mod terminal;

use std::path::Path;

pub use summary::live_line;

/// Writes a file; an error names it.
///
/// # Errors
/// The file cannot be written; the text names it.
pub fn save(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
