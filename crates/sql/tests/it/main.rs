//! The scanner's results for real statements, tables first.

mod mysql;
mod mysql_readings;
mod oracle;
mod postgres;
mod postgres_calls;
mod postgres_readings;
mod properties;
mod summary;
