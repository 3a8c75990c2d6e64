//! What the hall and a wing tell each other of clients that only listen.

use std::sync::Arc;

/// A place in the order of a database's notifications, which two of its sessions see alike: a notification of
/// Weir's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The channel of such notifications, which nobody else knows.
    pub channel: Arc<str>,
    /// The client's number among those who listen.
    pub number: u64,
}

impl Mark {
    /// What is told where a client's server stops to listen for it.
    #[must_use]
    pub fn parting(&self) -> String {
        format!("p{}", self.number)
    }

    /// What is told where a client's server begins to listen for it again.
    #[must_use]
    pub fn coming_home(&self) -> String {
        format!("h{}", self.number)
    }
}

/// Names of channels, as the server tells them.
pub type Channels = Arc<[Box<[u8]>]>;
