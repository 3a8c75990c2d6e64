//! Seeds of the simulator that CI runs: some fixed ones, and as many new ones each time. `make sim` runs many
//! more. Defects that were found are in `scenes`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weir_proxy::settings::PoolMode;
use weir_session::login::TlsOffer;
use weir_sim::plan::{Fault, Plan, Wings};
use weir_sim::secure::Secure;
use weir_tls::SslMode;

/// Seeds in CI: as many as a debug build runs in about half a minute.
const SEEDS: u64 = 256;
/// New ones each time beside them. `make sim` runs very many.
const NEW_SEEDS: u64 = 64;

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
    every_invariant_holds(0, SEEDS);
}

/// `tests/run` says which: `WEIR_SIM_FROM` is the first of them, new each time. Without it those behind the
/// fixed ones.
#[test]
fn every_invariant_holds_for_seeds_that_nobody_has_seen() {
    let from =
        std::env::var("WEIR_SIM_FROM").map_or(SEEDS, |from| from.parse().expect("WEIR_SIM_FROM is a number"));
    every_invariant_holds(from, NEW_SEEDS);
}

fn every_invariant_holds(from: u64, seeds: u64) {
    let next = AtomicU64::new(from);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let broken: Vec<String> = std::thread::scope(|scope| {
        let run = || {
            let mut broken = Vec::new();
            loop {
                let seed = next.fetch_add(1, Relaxed);
                if seed >= from + seeds {
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

/// Clients say that they will send nothing more at any moment, and the network brings everything in pieces.
/// What a server has begun to say comes to its end, whether it was asked or not.
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

/// The network takes what goes in clear before a handshake in pieces, too.
#[test]
fn tls_begins_behind_what_the_socket_has_not_taken_yet() {
    all_hold(0..SEEDS / 4, |plan| {
        plan.weather.short_write = 500;
        plan.weather.capacity = (64, 1_024);
        plan.secure = Secure::of(TlsOffer::Required, Some(SslMode::Require), false);
    });
}

/// Prints what happens in the run of `WEIR_SIM_SEED`.
#[test]
#[ignore = "shows one seed: WEIR_SIM_SEED says which"]
fn replay() {
    let seed = std::env::var("WEIR_SIM_SEED").expect("WEIR_SIM_SEED says which seed");
    let seed = seed.parse().expect("WEIR_SIM_SEED is a number");
    match weir_sim::run(seed, true) {
        Ok(report) => println!("{report:#?}"),
        Err(problem) => panic!("seed {seed}: {problem}"),
    }
}
