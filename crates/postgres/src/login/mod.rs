//! Logins in both roles.

pub mod accept;
pub mod connect;

#[cfg(test)]
mod tests;
