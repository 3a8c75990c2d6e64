//! Weir's workers over a simulated network, with a virtual clock and seeded faults.
//!
//! The workers and the wings are the real ones; `network` replaces the kernel, and the models in `postgres`
//! and `mysql` replace the databases and their clients. A seed decides everything (`plan`), and the same seed
//! gives the same run, step by step. `check` and `oracle` define the requirements: one lease per server, no
//! byte of one client to another, counters equal lists, waiters in order, every commit once, nothing left at
//! the end.
#![forbid(unsafe_code)]

pub mod actor;
pub mod between;
pub mod check;
pub mod dice;
pub mod excuse;
pub mod mysql;
pub mod net;
pub mod network;
pub mod oracle;
pub mod plan;
pub mod post;
pub mod postgres;
pub mod routes;
pub mod secure;
pub mod world;

pub use world::{Report, run, run_plan};

/// Runs a seed; a panic is a broken invariant, too.
///
/// # Errors
/// The invariant that was broken.
pub fn run_caught(seed: u64) -> Result<Report, String> {
    run_plan_caught(plan::Plan::new(seed))
}

/// The same for a plan.
///
/// # Errors
/// The invariant that was broken.
pub fn run_plan_caught(plan: plan::Plan) -> Result<Report, String> {
    // Nothing of a plan is seen after its run.
    let run = std::panic::AssertUnwindSafe(|| run_plan(plan, false));
    std::panic::catch_unwind(run).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

/// How to see what happened.
pub fn replay_command(seed: u64) -> String {
    format!("WEIR_SIM_SEED={seed} cargo test -p weir-sim replay -- --ignored --nocapture")
}
