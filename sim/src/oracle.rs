//! What is true: what the databases have committed, what the clients know of it, what excuses a loss.
//!
//! Owns: the books of a run. Must not know: how anything came about.

use std::collections::BTreeMap;

/// The books.
#[derive(Debug, Default)]
pub struct Oracle {
    /// The first broken invariant.
    pub problem: Option<String>,
    /// Entries the databases have committed, and how often.
    pub committed: BTreeMap<String, u32>,
    /// Entries whose commit a client was told of.
    pub confirmed: BTreeMap<String, ()>,
    /// Entries a client asked to commit without getting an answer.
    pub unknown: BTreeMap<String, ()>,
    /// Sessions that ended by a fault: each may cost one client its session.
    pub deaths: u64,
    /// Clients that were told their server was lost, or lost their connection without a word.
    pub losses: u64,
    /// Weir has been told to drain.
    pub draining: bool,
    /// Requests answered as they should be.
    pub answers: u64,
    /// Logins that succeeded.
    pub logins: u64,
    /// Cancels that hit what they were meant for.
    pub cancelled: u64,
    /// What clients were refused with, and how often.
    pub refusals: BTreeMap<String, u64>,
}

impl Oracle {
    /// An invariant is broken. The first one counts.
    pub fn broken(&mut self, what: impl FnOnce() -> String) {
        if self.problem.is_none() {
            self.problem = Some(what());
        }
    }

    /// The entries agree: none is lost, none is there twice, none is there that should not be.
    pub fn check_entries(&mut self) {
        let twice = self
            .committed
            .iter()
            .find(|&(_, &n)| n != 1)
            .map(|(entry, n)| format!("{entry} was committed {n} times"));
        let lost = self.confirmed.keys().find(|entry| !self.committed.contains_key(*entry));
        let lost = lost.map(|entry| format!("the commit of {entry} was confirmed and did not happen"));
        let ghost = self
            .committed
            .keys()
            .find(|entry| !self.confirmed.contains_key(*entry) && !self.unknown.contains_key(*entry));
        let ghost = ghost.map(|entry| format!("{entry} was committed and its client never asked for that"));
        if let Some(problem) = twice.or(lost).or(ghost) {
            self.broken(|| problem);
        }
    }
}
