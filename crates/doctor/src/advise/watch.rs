//! Timing of the samples: equal intervals, counters before and after.

use super::sample::{Snapshot, Source};
use super::seen::{Gathered, Seen};
use crate::database::connection::DbError;
use std::time::{Duration, Instant};

/// How long and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Time of watching.
    pub length: Duration,
    /// Time between two looks.
    pub interval: Duration,
}

/// Time, so that tests need none.
pub trait Clock {
    /// Since some beginning.
    fn now(&self) -> Duration;
    /// Waits.
    fn pause(&mut self, time: Duration);
}

/// The machine's clock.
#[derive(Debug)]
pub struct RealClock(Instant);

impl RealClock {
    /// Begins now.
    #[allow(clippy::new_without_default)]
    pub fn new() -> RealClock {
        RealClock(Instant::now())
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
    fn pause(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Looks at a database until its time is over or `progress` has enough.
///
/// # Errors
/// A look fails: the connection is lost, or the server refuses the question.
pub fn watch(
    source: &mut dyn Source,
    plan: Plan,
    clock: &mut dyn Clock,
    progress: &mut dyn FnMut(&Snapshot) -> bool,
) -> Result<Seen, DbError> {
    let before = source.counters()?;
    let (own_before, start) = (source.own_statements(), clock.now());
    let mut snapshots = Vec::new();
    loop {
        let look = source.snapshot()?;
        let more = progress(&look);
        snapshots.push(look);
        // Looks stay on their beat: one that took long is not followed by a pause of full length.
        let next = start + plan.interval * snapshots.len() as u32;
        let now = clock.now();
        if !more || next > start + plan.length {
            break;
        }
        clock.pause(next.saturating_sub(now));
    }
    let rest = (start + plan.length).saturating_sub(clock.now());
    if snapshots.len() > 1 || rest < plan.interval {
        clock.pause(rest.min(plan.interval));
    }
    let (own, seconds) = (source.own_statements() - own_before, (clock.now() - start).as_secs_f64());
    let after = source.counters()?;
    let gathered = Gathered { snapshots, counters: (before, after), seconds, own_statements: own as f64 };
    // Last: the most connections ever include those of the watching.
    Ok(Seen::of(source.about()?, &gathered))
}
