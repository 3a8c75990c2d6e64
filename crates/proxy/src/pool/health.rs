//! Whether a pool's database can be reached: what the attempts to open servers have come to.
//!
//! Owns: the last failure, and whether an attempt has succeeded since. Must not know: why an attempt is made.
//!
//! Written when a connect or a login to a server ends, never for a request.

use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use weir_wire::Fault;

/// What the attempts to open servers have come to, of all workers.
#[derive(Debug)]
pub struct Health {
    failing: AtomicBool,
    last: ArcSwapOption<Failure>,
}

/// An attempt that has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// When (milliseconds of the process's clock).
    pub at_ms: u64,
    /// Why. Its detail is for the operator.
    pub fault: Fault,
}

impl Default for Health {
    fn default() -> Self {
        Health { failing: AtomicBool::new(false), last: ArcSwapOption::empty() }
    }
}

impl Health {
    /// An attempt has failed.
    pub fn failed(&self, at_ms: u64, fault: &Fault) {
        self.last.store(Some(Arc::new(Failure { at_ms, fault: fault.clone() })));
        self.failing.store(true, Relaxed);
    }

    /// An attempt has succeeded.
    pub fn succeeded(&self) {
        self.failing.store(false, Relaxed);
    }

    /// The last attempt that has ended has failed.
    pub fn is_failing(&self) -> bool {
        self.failing.load(Relaxed)
    }

    /// The last failure, whatever came behind it.
    pub fn last_failure(&self) -> Option<Arc<Failure>> {
        self.last.load_full()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::FaultKind;

    #[test]
    fn a_success_ends_the_failing_and_keeps_the_last_failure() {
        let health = Health::default();
        assert!(!health.is_failing() && health.last_failure().is_none());
        health.failed(5, &Fault::new(FaultKind::ServerUnavailable, "refused"));
        assert!(health.is_failing());
        health.succeeded();
        assert!(!health.is_failing());
        let last = health.last_failure().unwrap();
        assert_eq!((last.at_ms, last.fault.kind), (5, FaultKind::ServerUnavailable));
    }
}
