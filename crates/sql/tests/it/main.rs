//! The scanner's results for real statements, tables first.

mod mysql;
mod oracle;
mod postgres;
mod properties;
mod summary;
