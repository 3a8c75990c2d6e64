//! `make sim`: many seeds on all cores.
//!
//! `weir-sim --seeds N [--from M]` runs N seeds from M; `weir-sim --seed S` runs one and prints what happens.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Seeds named at the end because they took most steps.
const LONGEST: usize = 8;

struct Arguments {
    from: u64,
    seeds: u64,
    one: Option<u64>,
    threads: usize,
    twice: bool,
}

fn arguments() -> Result<Arguments, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut found = Arguments { from: 0, seeds: 1_000, one: None, threads: cores, twice: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a number"))?;
        let value: u64 = value.parse().map_err(|_| format!("{value} is not a number"))?;
        match word.as_str() {
            "--seeds" => found.seeds = value,
            "--from" => found.from = value,
            "--seed" => found.one = Some(value),
            "--twice" => (found.seeds, found.twice) = (value, true),
            "--threads" => found.threads = value as usize,
            _ => return Err(format!("{word} is unknown; there are --seeds, --from, --seed and --threads")),
        }
    }
    Ok(found)
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::from(2);
        }
    };
    if arguments.twice {
        return twice(&arguments);
    }
    if let Some(seed) = arguments.one {
        return match weir_sim::run(seed, true) {
            Ok(report) => {
                println!("{report:#?}");
                ExitCode::SUCCESS
            }
            Err(problem) => {
                println!("seed {seed}: {problem}");
                ExitCode::FAILURE
            }
        };
    }
    if many(&arguments) == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Each seed must give the same run each time.
fn twice(arguments: &Arguments) -> ExitCode {
    for seed in arguments.from..arguments.from + arguments.seeds {
        let (one, two) = (weir_sim::run_caught(seed), weir_sim::run_caught(seed));
        if one != two {
            println!("seed {seed} does not repeat: {one:?} and {two:?}");
            return ExitCode::FAILURE;
        }
    }
    println!("{} passed, 0 failed", arguments.seeds);
    ExitCode::SUCCESS
}

/// Runs seeds on all threads; returns how many failed.
fn many(arguments: &Arguments) -> u64 {
    let (next, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let (steps, answers) = (AtomicU64::new(0), AtomicU64::new(0));
    // Those that took most steps: one that takes very many may have run in circles for a while.
    let longest: Mutex<Vec<(u64, u64)>> = Mutex::default();
    let start = Instant::now();
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Relaxed);
                    if n >= arguments.seeds || failed.load(Relaxed) >= 20 {
                        return;
                    }
                    let seed = arguments.from + n;
                    match weir_sim::run_caught(seed) {
                        Ok(report) => {
                            steps.fetch_add(report.steps, Relaxed);
                            answers.fetch_add(report.answers, Relaxed);
                            let mut longest = longest.lock().unwrap_or_else(|e| e.into_inner());
                            let at = longest.partition_point(|&(steps, _)| steps >= report.steps);
                            if at < LONGEST {
                                longest.insert(at, (report.steps, seed));
                                longest.truncate(LONGEST);
                            }
                        }
                        Err(problem) => {
                            failed.fetch_add(1, Relaxed);
                            println!("BROKEN seed {seed}: {problem}");
                            println!("  {}", weir_sim::replay_command(seed));
                        }
                    }
                    if (n + 1) % 1_000 == 0 {
                        let rate = (n + 1) as f64 / start.elapsed().as_secs_f64();
                        println!("{} of {} seeds, {rate:.0} a second", n + 1, arguments.seeds);
                    }
                }
            });
        }
    });
    let failed = failed.load(Relaxed);
    let (steps, answers) = (steps.load(Relaxed), answers.load(Relaxed));
    let done = next.load(Relaxed).min(arguments.seeds);
    println!("{} passed, {failed} failed", done - failed.min(done));
    println!("{steps} steps, {answers} answers checked, {:.0} s", start.elapsed().as_secs_f64());
    let longest = longest.into_inner().unwrap_or_else(|e| e.into_inner());
    let longest: Vec<_> = longest.iter().map(|(steps, seed)| format!("{seed} ({steps})")).collect();
    println!("longest, by steps: {}", longest.join(", "));
    failed
}
