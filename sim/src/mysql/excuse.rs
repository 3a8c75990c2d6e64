//! May a client have been refused or lost for this reason? Only if an event explains it.

use crate::actor::Stage;
use crate::excuse::lost;

/// Errors with which Weir ends a session; all others answer a request.
pub const LAST_WORDS: [u16; 12] = [1040, 1041, 1042, 1045, 1053, 1105, 1153, 1158, 1159, 1205, 3024, 4031];

/// A client was told that its session ends.
pub fn fatal(stage: &mut Stage<'_>, name: &str, code: u16, text: &str) {
    *stage.oracle.refusals.entry(format!("{code} {text}")).or_insert(0) += 1;
    let (plan, timeouts) = (stage.plan, &stage.plan.timeouts);
    let excused = match code {
        1158 => lost(stage, name),
        1053 => stage.oracle.draining,
        1105 => stage.oracle.defect,
        // Also when the wait would surely end with query_wait_timeout.
        1040 if text.contains("max_waiting_clients") => {
            plan.max_waiting.is_some() || timeouts.query_wait_timeout_ms > 0
        }
        1040 if text.starts_with("Too many") => plan.max_clients < 10_000,
        1040 => timeouts.query_wait_timeout_ms > 0,
        1159 => timeouts.client_login_timeout_ms > 0,
        // The database's own farewell, which crossed a request.
        4031 if text.contains("by the server") => lost(stage, name),
        4031 if text.contains("transaction") => timeouts.idle_transaction_timeout_ms > 0,
        4031 => timeouts.client_idle_timeout_ms > 0,
        1205 => timeouts.transaction_timeout_ms > 0,
        3024 => timeouts.query_timeout_ms > 0,
        1041 | 1042 => !plan.calm,
        _ => false,
    };
    if !excused {
        stage.oracle.broken(|| format!("{name}: refused with {code} {text} and nothing explains it"));
    }
}
