//! The books' answer to an event that cannot be true.
//!
//! Owns: whom such a defect would have harmed. Must not know: what is done about it.

use crate::ids::Key;

/// What was asked for cannot be: a defect of Weir. Nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Broken {
    /// What cannot be.
    pub what: &'static str,
    /// Whom it would have harmed.
    pub client: Option<Key>,
    /// The server that nobody must get.
    pub server: Option<Key>,
}

/// A transition that was made, or is impossible.
pub type Sound<T = ()> = Result<T, Broken>;

pub(super) fn broken(what: &'static str) -> Broken {
    Broken { what, client: None, server: None }
}

impl Broken {
    pub(super) fn of(self, client: Key) -> Self {
        Broken { client: Some(client), ..self }
    }

    pub(super) fn on(self, server: Key) -> Self {
        Broken { server: Some(server), ..self }
    }

    pub(super) fn both(self, client: Key, server: Key) -> Self {
        self.of(client).on(server)
    }
}
