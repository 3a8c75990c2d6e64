//! What the scanner says of real statements, tables first.

mod mysql;
mod oracle;
mod postgres;
mod properties;
mod summary;
