//! Logins in both roles.

pub mod accept;
pub mod connect;
mod start;

#[cfg(test)]
mod tests;
