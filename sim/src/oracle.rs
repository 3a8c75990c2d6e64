//! The truth of a run: what the databases have committed, what the clients know of it, what excuses a loss.
//!
//! Owns: the records of a run. Must not know: how anything happened.

use std::collections::BTreeMap;

/// Time after the end of an idle session during which a client may still get it, because Weir has not been
/// told of the end yet.
const UNHEARD_NS: u64 = 100_000_000;

/// Sessions of clients that faults have ended. A client may lose its own only for one of them, and each
/// serves for one client.
#[derive(Debug, Default)]
pub struct Owed {
    /// Server sessions that ended while they worked, or while something was on its way to them.
    at_work: u64,
    /// Those that ended at rest, with who was there last: something may tie it to that session that is not
    /// seen there.
    at_rest: Vec<(u64, Option<String>)>,
}

impl Owed {
    /// A fault ends a session that works for somebody.
    pub fn by_work(&mut self) {
        self.at_work += 1;
    }

    /// A fault ends a session at rest, where this client was last.
    pub fn by_rest(&mut self, now_ns: u64, client: Option<String>) {
        self.at_rest.push((now_ns, client));
    }

    /// This client has lost its session. False: no fault explains it.
    pub fn settle(&mut self, now_ns: u64, name: &str) -> bool {
        let own = |(_, client): &(u64, Option<String>)| client.as_deref() == Some(name);
        let unheard = |&(at_ns, _): &(u64, Option<String>)| now_ns < at_ns + UNHEARD_NS;
        let found = self.at_rest.iter().position(own);
        if found.is_none() && self.at_work > 0 {
            self.at_work -= 1;
            return true;
        }
        let found = found.or_else(|| self.at_rest.iter().position(unheard));
        found.map(|at| self.at_rest.swap_remove(at)).is_some()
    }
}

/// What the databases answer `SELECT 'clock'` with: when they began to work on it.
pub const CLOCK: &str = "clock";

/// Digits of that, in nanoseconds.
const CLOCK_DIGITS: usize = 20;

/// The value of the clock.
pub fn clock(now_ns: u64) -> String {
    format!("{CLOCK}{now_ns:0CLOCK_DIGITS$}")
}

/// An answer is the one that was expected, but for the time in it: the database began to work on it after it
/// was asked, which is the time in what was expected.
pub fn is_not_older(got: &[u8], expected: &[u8]) -> bool {
    let Some(at) = expected.windows(CLOCK.len()).position(|word| word == CLOCK.as_bytes()) else {
        return false;
    };
    let (from, to) = (at + CLOCK.len(), at + CLOCK.len() + CLOCK_DIGITS);
    let parts = |bytes: &[u8]| Some((bytes.get(..from)?.to_vec(), bytes.get(to..)?.to_vec()));
    let time = |bytes: &[u8]| std::str::from_utf8(bytes.get(from..to)?).ok()?.parse::<u64>().ok();
    parts(got).is_some()
        && parts(got) == parts(expected)
        && time(got).zip(time(expected)).is_some_and(|(got, asked)| got >= asked)
}

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
    /// What faults have taken from clients, and nobody has missed yet.
    pub owed: Owed,
    /// Clients that were told their server was lost, or lost their connection without a word.
    pub losses: u64,
    /// Weir has been told to drain.
    pub draining: bool,
    /// Weir was made to meet a defect of its own.
    pub defect: bool,
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
