//! Panics of the serving threads: defects of Weir whose harm must be limited.
//!
//! Owns: how many there were, how many are too many, and, in debug builds, how a test causes one. `worker.rs`
//! decides what happens to a worker's clients and servers. Must not know: what a thread did.
//!
//! Invariant: after a panic a serving thread continues, or the process ends. A thread is never just missing:
//! its listeners would accept clients that nobody serves, and other workers would send it servers.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use weir_metrics::Metrics;

/// Number of panics within [`WITHIN`] that end the process: more would follow, and the service manager makes
/// a better start.
const MOST: usize = 3;
/// See [`MOST`].
const WITHIN: Duration = Duration::from_secs(60);
/// The exit status then, as for any error at run time.
const STATUS: i32 = 1;

/// The panics of a process.
pub struct Panics {
    metrics: Arc<Metrics>,
    recent: Mutex<VecDeque<Instant>>,
    before_exit: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Panics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Panics").field("recent", &self.recent).finish_non_exhaustive()
    }
}

impl Panics {
    /// None yet. `before_exit` is called when the process is about to end, after the reason was logged: a log
    /// that is written by a thread of its own would be lost.
    pub fn new(metrics: Arc<Metrics>, before_exit: impl Fn() + Send + Sync + 'static) -> Self {
        Panics { metrics, recent: Mutex::default(), before_exit: Box::new(before_exit) }
    }

    /// Does something; `None` when it has panicked, which is counted and said.
    pub fn guard<R>(&self, what: &str, work: impl FnOnce() -> R) -> Option<R> {
        // Whoever calls it throws away what was half done.
        let outcome = catch_unwind(AssertUnwindSafe(work));
        if outcome.is_err() && self.note(Instant::now()) {
            self.fail(&format!("{what} has panicked, and that has happened too often"));
        } else if outcome.is_err() {
            tracing::error!(
                "{what} has panicked: this is a defect of Weir, please report it with the lines above"
            );
        }
        outcome.ok()
    }

    /// The whole of a thread that others rely on. A panic that no [`Panics::guard`] has met ends the process:
    /// the thread would be missing.
    pub fn whole<R>(&self, what: &str, body: impl FnOnce() -> R) -> R {
        catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
            self.metrics.note_panic();
            self.fail(&format!("{what} has panicked where it cannot go on"))
        })
    }

    /// Ends the process: it cannot serve as it should.
    pub fn fail(&self, why: &str) -> ! {
        tracing::error!("Weir ends with status {STATUS}: {why}");
        (self.before_exit)();
        std::process::exit(STATUS)
    }

    /// One more, now. True: too many.
    fn note(&self, now: Instant) -> bool {
        self.metrics.note_panic();
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|&then| now.saturating_duration_since(then) < WITHIN);
        recent.push_back(now);
        recent.len() >= inject::most().unwrap_or(MOST)
    }
}

/// A panic on purpose, for tests: in debug builds only, and only where `WEIR_TEST_PANICS` is set, to how many
/// end the process. A request that says "weir panics at PLACE" makes its worker panic when it next gets
/// there.
#[cfg(debug_assertions)]
pub(crate) mod inject {
    use std::cell::RefCell;
    use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

    const WORDS: &[u8] = b"weir panics at ";

    thread_local! {
        static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
    }
    /// The same for threads that read no requests.
    static ELSEWHERE: Mutex<Option<String>> = Mutex::new(None);
    /// Places of such threads.
    const PLACES_ELSEWHERE: [&str; 7] =
        ["crypto", "crypto_thread", "sizing", "control", "derive", "greeting", "nursery"];

    pub fn most() -> Option<usize> {
        static MOST: OnceLock<Option<usize>> = OnceLock::new();
        *MOST.get_or_init(|| std::env::var("WEIR_TEST_PANICS").ok()?.parse().ok())
    }

    fn elsewhere() -> MutexGuard<'static, Option<String>> {
        ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for the words in a request.
    pub fn arm(request: &[u8]) {
        if most().is_none() {
            return;
        }
        let Some(at) = request.windows(WORDS.len()).position(|window| window == WORDS) else { return };
        let name = request[at + WORDS.len()..].iter().take_while(|b| b.is_ascii_lowercase() || **b == b'_');
        let name: String = name.map(|&b| char::from(b)).collect();
        if PLACES_ELSEWHERE.contains(&name.as_str()) {
            *elsewhere() = Some(name);
        } else {
            PLACE.set(Some(name));
        }
    }

    /// Execution has got to a place.
    pub fn here(place: &str) {
        if most().is_none() {
            return;
        }
        let armed = if PLACES_ELSEWHERE.contains(&place) {
            elsewhere().take_if(|armed| armed == place).is_some()
        } else {
            PLACE.with_borrow_mut(|armed| armed.take_if(|armed| armed == place)).is_some()
        };
        assert!(!armed, "a test asked for a panic at {place}");
    }
}

#[cfg(not(debug_assertions))]
pub(crate) mod inject {
    pub const fn most() -> Option<usize> {
        None
    }
    #[inline(always)]
    pub const fn arm(_request: &[u8]) {}
    #[inline(always)]
    pub const fn here(_place: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_counted_and_goes_no_further_and_a_few_in_a_row_are_too_many() {
        let metrics = Metrics::new(1, &["postgres"]);
        let panics = Panics::new(metrics.clone(), || {});
        assert_eq!(panics.guard("a test", || 5), Some(5));
        assert_eq!(panics.guard("a test", || assert!(metrics.panics() > 0, "on purpose")), None);
        assert_eq!(metrics.panics(), 1);
        let later = Instant::now() + WITHIN;
        let at = |seconds| later + Duration::from_secs(seconds);
        assert!(!panics.note(at(0)) && !panics.note(at(59)) && !panics.note(at(61)), "spread out");
        assert!(panics.note(at(62)), "three within a minute");
    }
}
