//! The doctor in a millisecond, for programs that start: checks the configured numbers, and prints nothing
//! when they fit.

use crate::checks;
use crate::finding::{Finding, State};
use crate::probe::Probe;
use crate::question::Question;
use crate::root::Root;

/// With fewer clients nothing is looked at: no machine is too small for them, and tests stay quiet.
pub const QUICK_FROM_CLIENTS: u64 = 1000;

/// Blockers and warnings about the numbers that `weir serve` was asked for on this machine. Asks no database,
/// reads some twenty small files, changes nothing.
pub fn quick(clients: u64, servers: u64) -> Vec<Finding> {
    quick_at(&Root::real(), &Question::serve(clients, servers))
}

/// The same for a question and a root that are given.
pub fn quick_at(root: &Root, ask: &Question) -> Vec<Finding> {
    if ask.clients < QUICK_FROM_CLIENTS {
        return Vec::new();
    }
    let mut findings = checks::run_at_start(&Probe::new(root, ask));
    findings.retain(|finding| finding.state > State::Unknown);
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.state));
    findings
}
