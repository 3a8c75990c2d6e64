//! How the reply to a request ended, as its server told it.
//!
//! Owns: [`Outcome`], which [`super::Front::finish`] takes. Must not know: what follows for the client.

use crate::warnings::Left;

/// How the reply to a request ended, for [`Front::finish`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outcome {
    /// Some result was OK.
    pub any_ok: bool,
    /// Results that have ended, but for errors.
    pub results: u16,
    /// The last result was ERR.
    pub failed: bool,
    /// The errno of that.
    pub error: u16,
    /// Its SQLSTATE.
    pub state: Option<[u8; 5]>,
    /// It is about a table that the statement names itself, which is not there.
    pub lacks_own_table: bool,
    /// Warnings of the last result.
    pub warnings: u16,
    /// Some result had warnings.
    pub warned: bool,
    /// The same as a COM_PING behind it says: errors count. `None` when no server has said it.
    pub conditions: Option<u16>,
    /// The id some INSERT made; 0 for none.
    pub insert_id: u64,
    /// Rows changed by the last result; `None` when it had rows.
    pub affected_rows: Option<u64>,
    /// The same of the result before the last, or before all GET DIAGNOSTICS at the end of a text.
    pub affected_before: Option<u64>,
    /// One of those had a warning: there was no such condition.
    pub got_nothing: bool,
    /// Rows of the last result that had rows.
    pub rows: u64,
    /// Rows that an UPDATE matched, or that INSERT ... SELECT took, as its OK says.
    pub matched_rows: Option<u64>,
    /// The last result failed behind its columns.
    pub broke_off: bool,
    /// Some result had rows, or might have had.
    pub had_rows: bool,
    /// The tracker said that the session changed.
    pub state_changed: bool,
    /// It was told that the session has entered a schema, be it the one that it was in.
    pub schema_told: bool,
    /// The only value of the only row was 1, if that was looked at.
    pub told: Option<bool>,
    /// The server had what its client's statement before had left.
    pub had_warnings: bool,
    /// It had Weir's mark in the place of that.
    pub marked: bool,
    /// Its error stands behind warnings of others on its server.
    pub appended: bool,
    /// A COM_PING followed.
    pub pinged: bool,
    /// What FOUND_ROWS() gave on its server was its client's own.
    pub found_own: bool,
    /// It was Weir's mark, and its client's own is 0.
    pub found_marked: bool,
    /// MySQL: and so was what it was to give behind a statement that changes rows.
    pub next_own: bool,
}

impl Outcome {
    /// What it says of warnings.
    pub(crate) fn left(&self) -> Left {
        let (error, warnings) = if self.failed { (self.error, 0) } else { (0, self.warnings) };
        Left { error, warnings }
    }
}
