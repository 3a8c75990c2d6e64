//! Rows that no client gets: the answers to Weir's own queries. Each is read when complete, and not
//! forwarded.
//!
//! Owns: which query a row answers. Must not know: how an answer is read; that is implemented with each
//! query.
//!
//! Invariant: a row that is too long to be read is skipped, and its query remains unanswered.

use crate::back::Back;
use crate::follow::read_values;
use crate::queue::{Internal, Owed};
use crate::session_state::as_read_under;
use std::sync::Arc;

/// What a row is for that no client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    /// What the database holds; `catalogue.rs`.
    Catalogue,
    /// What a client has set; `follow.rs`.
    Values,
    /// Under which settings a statement was read.
    Reading,
    /// Whether BEGIN may wait; `late.rs`.
    Facts,
    /// On which channels a client listens; `listen.rs`.
    Channel,
}

impl Back {
    /// What the next row is for, if it answers a question of Weir's own that somebody still waits for.
    #[inline]
    pub(super) fn hidden_row(&self) -> Option<Hidden> {
        match self.queue.next()? {
            Owed::Internal(Internal::Catalogue) if self.studies() => Some(Hidden::Catalogue),
            Owed::Internal(Internal::Values) if self.asks_for_values() => Some(Hidden::Values),
            Owed::Internal(Internal::Facts) => Some(Hidden::Facts),
            Owed::Internal(Internal::Channels) => Some(Hidden::Channel),
            Owed::Aside { reading: Some(_), .. } => Some(Hidden::Reading),
            _ => None,
        }
    }

    /// It is this: the body of a DataRow.
    pub(super) fn take_hidden_row(&mut self, what: Hidden, row: &[u8]) {
        match what {
            Hidden::Catalogue => self.catalogue_row(row),
            Hidden::Values => self.values_row(row),
            Hidden::Reading => self.reading_row(row),
            Hidden::Facts => self.facts_row(row),
            Hidden::Channel => self.channel_row(row),
        }
    }

    /// It is too long to be looked at.
    pub(super) fn hidden_row_too_long(&mut self, what: Hidden) {
        match what {
            Hidden::Catalogue => self.catalogue_row_too_long(),
            // One value fewer than asked for, or none.
            Hidden::Values | Hidden::Reading | Hidden::Facts | Hidden::Channel => {}
        }
    }

    /// Behind it other replies of the aside follow.
    fn reading_row(&mut self, row: &[u8]) {
        let values = read_values(row).unwrap_or_default();
        let settings = as_read_under(&self.applied, &values).map(Arc::new);
        if let Some(Owed::Aside { left, reading: Some(statement) }) = self.queue.next_mut() {
            *left = left.saturating_sub(1);
            if let Some(settings) = &settings {
                statement.was_read_under(settings);
            }
        }
        if let Some(entry) = self.queue.head_mut() {
            entry.raw |= settings.is_none();
        }
    }
}
