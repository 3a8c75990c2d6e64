//! May a client have been refused or lost for this reason? Only if an event explains it.

use crate::actor::Stage;
use crate::network::EndId;

/// A client was told that its session ends. `in_login`: it has none yet; all who wait for the same login to a
/// server are told what became of that.
pub fn fatal(stage: &mut Stage<'_>, name: &str, code: &str, text: &str, in_login: bool) {
    *stage.oracle.refusals.entry(format!("{code} {text}")).or_insert(0) += 1;
    let plan = stage.plan;
    let excused = if text.contains("protocol") || text.contains("larger than") {
        false
    } else if text.contains("was lost") {
        lost(stage, name)
    } else if text.contains("administrator command") {
        // The database's own farewell, passed on.
        lost(stage, name) || in_login && !plan.calm
    } else if text.contains("Weir is stopping") || text.contains("shutting down") {
        stage.oracle.draining
    } else if text.contains("internal error") {
        stage.oracle.defect
    } else if text.contains("max_client_conn") {
        plan.max_clients < 10_000
    } else if text.contains("max_waiting_clients") {
        // Also when the wait would surely end with query_wait_timeout.
        plan.max_waiting.is_some() || plan.timeouts.query_wait_timeout_ms > 0
    } else if text.contains("query_wait_timeout") {
        plan.timeouts.query_wait_timeout_ms > 0
    } else if text.contains("client_login_timeout") {
        plan.timeouts.client_login_timeout_ms > 0
    } else if text.contains("client_idle_timeout") {
        plan.timeouts.client_idle_timeout_ms > 0
    } else if text.contains("idle_transaction_timeout") {
        plan.timeouts.idle_transaction_timeout_ms > 0
    } else if text.contains("transaction_timeout") {
        plan.timeouts.transaction_timeout_ms > 0
    } else if text.contains("query_timeout") {
        plan.timeouts.query_timeout_ms > 0
    } else if text.contains("cannot establish a TLS connection") {
        // A session that dies says its farewell in clear, and may do so in the middle of a handshake.
        in_login && !plan.calm
    } else {
        text.contains("cannot be reached") && !plan.calm
    };
    if !excused {
        stage.oracle.broken(|| format!("{name}: refused with {code} {text} and nothing explains it"));
    }
}

/// A client's server is gone, and with it its session. False: no fault explains it.
pub fn lost(stage: &mut Stage<'_>, name: &str) -> bool {
    stage.oracle.losses += 1;
    let now_ns = stage.now_ns;
    stage.oracle.owed.settle(now_ns, name)
}

/// A client's connection ended without a word.
pub fn silent_end(stage: &mut Stage<'_>, end: EndId, name: &str, cut: bool, in_login: bool) {
    let plan = stage.plan;
    let weather = stage.net().is_broken(end);
    let aborted = in_login && plan.weather.accept_aborted > 0;
    // It was accepted by another worker, and lost on its way.
    let moved = in_login && plan.clients_together > 0 && plan.weather.unpack_lost > 0;
    let drained = stage.oracle.draining;
    let refused = in_login && plan.max_clients < 10_000;
    // An error message may be lost in a reset when bytes of the client were still on their way.
    // And in the middle of a reply nothing can be said.
    let bounds = &plan.timeouts;
    let late = [
        bounds.query_timeout_ms,
        bounds.transaction_timeout_ms,
        bounds.client_idle_timeout_ms,
        bounds.query_wait_timeout_ms,
    ];
    let said = cut && !plan.calm && (in_login || late.iter().any(|&ms| ms > 0) || plan.max_waiting.is_some());
    if !(weather || aborted || moved || drained || refused)
        && !(cut && !in_login && lost(stage, name))
        && !said
    {
        stage.oracle.broken(|| format!("{name}: the connection ended without a word"));
    }
}
