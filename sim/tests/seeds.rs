//! Seeds of the simulator that CI runs. `make sim` runs many more.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weir_auth::login::TlsOffer;
use weir_proxy::settings::PoolMode;
use weir_sim::plan::{Fault, Plan, Wings};
use weir_sim::secure::Secure;
use weir_tls::SslMode;

/// Seeds in CI: as many as a debug build runs in about half a minute.
const SEEDS: u64 = 256;

/// Nothing is broken in the runs of these seeds with this changed in their plans.
fn all_hold(seeds: std::ops::Range<u64>, change: impl Fn(&mut Plan)) {
    for seed in seeds {
        let mut plan = Plan::new(seed);
        change(&mut plan);
        let result = weir_sim::run_plan_caught(plan);
        assert!(result.is_ok(), "seed {seed}: {result:?}");
    }
}

#[test]
fn every_invariant_holds_for_256_seeds() {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let broken: Vec<String> = std::thread::scope(|scope| {
        let run = || {
            let mut broken = Vec::new();
            loop {
                let seed = next.fetch_add(1, Relaxed);
                if seed >= SEEDS {
                    return broken;
                }
                if let Err(problem) = weir_sim::run_caught(seed) {
                    broken.push(format!("seed {seed}: {problem}\n  {}", weir_sim::replay_command(seed)));
                }
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("panics are caught")).collect()
    });
    assert!(broken.is_empty(), "{} seeds broke an invariant:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn a_seed_replays_exactly() {
    for seed in [3, 7, 11, 19] {
        assert_eq!(weir_sim::run_caught(seed), weir_sim::run_caught(seed), "seed {seed}");
    }
}

/// Clients send several requests at once and vanish, and Weir cancels what they have left running at once. A cancel
/// would hit the first of them, and the others would run without it: an INSERT without the BEGIN before it.
#[test]
fn of_what_a_vanished_client_has_sent_no_request_runs_without_those_before_it() {
    all_hold(0..SEEDS / 4, |plan| {
        plan.wings = Wings::Postgres;
        (plan.rude, plan.pipeline, plan.pace_ns) = (60, 900, 3_000_000);
        plan.mode = PoolMode::Transaction;
        plan.calm = false;
        plan.timeouts.cancel_wait_ms = 1;
    });
}

/// Clients have statements killed that end by themselves before the KILL arrives, and those who ask for it may be closed
/// before they are answered. What its client sends next is another statement.
#[test]
fn a_kill_that_comes_too_late_hits_nothing_else() {
    all_hold(0..SEEDS / 2, |plan| {
        plan.wings = Wings::MySql;
        (plan.pipeline, plan.pace_ns, plan.think_ns) = (0, 3_000_000, 1_000_000);
        (plan.mode, plan.rude) = (PoolMode::Session, 0);
        plan.timeouts.client_idle_ms = 6;
    });
}

/// Clients say that they will send nothing more at any moment, and the network brings everything in pieces. What a server
/// has begun to say comes to its end, whether it was asked or not.
#[test]
fn a_client_that_sends_nothing_more_gets_the_rest_of_a_message() {
    let calm = (0..).map(Plan::new).filter(|plan| plan.calm).take(SEEDS as usize);
    for mut plan in calm {
        let seed = plan.seed;
        (plan.wings, plan.mode) = (Wings::Postgres, PoolMode::Session);
        (plan.rude, plan.pace_ns, plan.weather.split) = (200, 3_000_000, 900);
        let mentions = (1..60).map(|n| (n * 5_000_000, Fault::Mention(0)));
        plan.faults.extend(mentions);
        let result = weir_sim::run_plan_caught(plan);
        assert!(result.is_ok(), "seed {seed}: {result:?}");
    }
}

/// A client that reads slowly gets more than is kept for it, at the end of its answer and with the requests of others behind
/// its own: they are not held up. (The run in which this was found; the audit of each step sees it.)
#[test]
fn a_client_that_reads_slowly_holds_up_nobody_behind_its_answer() {
    let mut plan = Plan::new(44_533);
    plan.clients_together = 0;
    let result = weir_sim::run_plan_caught(plan);
    assert!(result.is_ok(), "{result:?}");
}

/// A request ends by itself while the cancel for it is on its way inside TLS, where it takes a handshake longer. What its server
/// does next, perhaps for another client, is not hit.
#[test]
fn a_cancel_inside_tls_that_comes_too_late_hits_nothing_else() {
    all_hold(0..SEEDS / 2, |plan| {
        plan.wings = Wings::Postgres;
        (plan.pipeline, plan.pace_ns, plan.think_ns) = (0, 3_000_000, 1_000_000);
        (plan.pool_size, plan.rude) = (1, 0);
        plan.secure = Secure::of(TlsOffer::Off, Some(SslMode::Require), true);
    });
}

/// The network takes what goes in clear before a handshake in pieces, too.
#[test]
fn tls_begins_behind_what_the_socket_has_not_taken_yet() {
    all_hold(0..SEEDS / 4, |plan| {
        plan.weather.short_write = 500;
        plan.weather.capacity = (64, 1_024);
        plan.secure = Secure::of(TlsOffer::Required, Some(SslMode::Require), false);
    });
}

/// A database dies behind its greeting, and the first bytes of TLS meet a connection that is gone. Its clients learn that the
/// database is not there, not that its TLS has failed. (The run in which this was found.)
#[test]
fn a_server_lost_as_tls_begins_is_not_said_to_refuse_tls() {
    let result = weir_sim::run_caught(175_844);
    assert!(result.is_ok(), "{result:?}");
}

/// A client waits while a server is opened for it, a reload lowers the limit, and that server is closed as one too many. Another worker
/// has an idle one. (The run in which this was found.)
#[test]
fn who_waited_for_a_server_that_a_reload_closed_gets_an_idle_one_elsewhere() {
    let result = weir_sim::run_caught(258_713);
    assert!(result.is_ok(), "{result:?}");
}

/// Prints what happens in the run of `WEIR_SIM_SEED`.
#[test]
fn replay() {
    let Ok(seed) = std::env::var("WEIR_SIM_SEED") else { return };
    let seed = seed.parse().expect("WEIR_SIM_SEED is a number");
    match weir_sim::run(seed, true) {
        Ok(report) => println!("{report:#?}"),
        Err(problem) => panic!("seed {seed}: {problem}"),
    }
}
