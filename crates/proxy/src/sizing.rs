//! Maintains the sizes of all pools: measures what the workers have served and lets [`AutoSize`] decide. Also
//! removes pools that are no longer used.
//!
//! Owns: one [`AutoSize`] for each pool whose size is `auto`, what workers were last told of any
//! pool, and how long a pool has been unused. Runs on the control thread, a few times per second. Must not
//! know: how a server is opened or closed; it tells the workers that a size has changed.
//!
//! Invariant: at most one pool tries a size at a time, so that no two trials affect each other.

use crate::context::Shared;
use crate::mail::WingMail;
use crate::pool::auto::{AutoSize, Slot};
use crate::pool::{PoolEntry, PoolId, Served};
use crate::settings::PoolSpec;
use crate::wing::{MySql, Postgres, Wing};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use weir_net::Net;
use weir_session::Protocol;

/// How often it is to be called.
pub const EVERY: Duration = Duration::from_millis(500);

/// The sizes of all pools.
#[derive(Debug, Default)]
pub struct Sizing {
    pools: HashMap<(Protocol, PoolId), Pool>,
    /// Who tries a size now.
    trying: Option<(Protocol, PoolId)>,
}

#[derive(Debug, Default)]
struct Pool {
    /// Its limit, and its servers beyond the size.
    told: (usize, usize),
    served: Served,
    auto: Option<AutoSize>,
    /// For how long nobody has used it, as far as can be seen from here.
    unused: Duration,
    /// The workers were asked to let go of it.
    let_go: bool,
    /// What was served in each of the last moments.
    of_late: VecDeque<(Duration, Served)>,
}

/// How many clients may wait with a chance of being served: twice (because it is an estimate) the number that
/// the pool serves within `query_wait_timeout` at its recent rate. `None`: too few requests to estimate, or
/// no limit for the wait.
fn with_hope(of_late: Served, servers: usize, time: Duration, patience: Duration) -> Option<usize> {
    if of_late.answered < LEAST_SERVED || patience.is_zero() {
        return None;
    }
    let answered = of_late.answered as f64;
    let did = answered / time.as_secs_f64().max(1e-3);
    // Nobody may have wanted more.
    let could = servers as f64 / (of_late.took_ns.max(1) as f64 / answered / 1e9);
    Some((2.0 * did.max(could) * patience.as_secs_f64()) as usize)
}

/// Number of answers from which their mean says something.
const LEAST_SERVED: u64 = 100;
/// Number of moments that count, half a minute.
const MOMENTS: usize = 60;

impl Sizing {
    /// Looks at all pools. `elapsed`: since the last time.
    pub(crate) fn look<N: Net>(&mut self, shared: &Shared<N>, elapsed: Duration) {
        self.look_at::<Postgres, N>(shared, elapsed);
        self.look_at::<MySql, N>(shared, elapsed);
    }

    fn look_at<W: Wing, N: Net>(&mut self, shared: &Shared<N>, elapsed: Duration) {
        for entry in W::registry(shared).all().iter() {
            let name = (W::PROTOCOL, entry.id);
            let pool = self.pools.entry(name).or_default();
            let may_try = self.trying.is_none_or(|trying| trying == name);
            let patience = Duration::from_millis(shared.settings.load().timeouts.query_wait_timeout_ms);
            // A pool that is paused tells nothing of what it could do.
            if !entry.shared.is_paused() {
                pool.decide(entry, elapsed, patience, may_try);
            }
            if pool.auto.as_ref().is_some_and(AutoSize::is_trying) {
                self.trying = Some(name);
            } else if self.trying == Some(name) {
                self.trying = None;
            }
            let now = (entry.shared.limit(), entry.shared.inside_and_outside().1);
            if std::mem::replace(&mut pool.told, now) != now {
                for worker in shared.berths.open() {
                    (shared.post)(worker, W::mail(WingMail::Sized { pool: entry.clone() }));
                }
            }
        }
        self.sweep::<W, N>(shared, elapsed);
    }

    /// Pools that have been unused for long are forgotten: the workers let go of them, and when none has one
    /// any more it is gone. Those with a size that was found, or with servers to keep, stay.
    fn sweep<W: Wing, N: Net>(&mut self, shared: &Shared<N>, elapsed: Duration) {
        let registry = W::registry(shared);
        let all = registry.all();
        let patience = if all.len() > MANY_POOLS { UNUSED_OF_MANY } else { UNUSED };
        let (mut unused, mut let_go) = (Vec::new(), Vec::new());
        for entry in all.iter() {
            let Some(pool) = self.pools.get_mut(&(W::PROTOCOL, entry.id)) else { continue };
            let spec = entry.spec();
            let is_unused = entry.shared.is_unused() && spec.min_size == 0 && spec.auto.is_none();
            pool.unused = if is_unused { pool.unused + elapsed } else { Duration::ZERO };
            if std::mem::take(&mut pool.let_go) && is_unused {
                let_go.push(entry.id);
            }
            if pool.unused >= patience {
                (pool.unused, pool.let_go) = (Duration::ZERO, true);
                unused.push(entry.id);
            }
        }
        drop(all);
        if !let_go.is_empty() {
            for id in registry.forget(&let_go) {
                self.pools.remove(&(W::PROTOCOL, id));
            }
        }
        if !unused.is_empty() {
            let unused: Arc<[PoolId]> = unused.into();
            for worker in shared.berths.open() {
                (shared.post)(worker, W::mail(WingMail::Sweep { pools: unused.clone() }));
            }
        }
    }
}

/// Idle time after which a pool is let go of: what is known of it is soon known again.
const UNUSED: Duration = Duration::from_secs(60);
/// The same where there are so many pools that clients seem to make up names.
const UNUSED_OF_MANY: Duration = Duration::from_secs(2);
const MANY_POOLS: usize = 128;

impl Pool {
    /// Says how many clients may wait.
    fn admit<X>(
        &mut self,
        entry: &Arc<PoolEntry<X>>,
        spec: &PoolSpec,
        now: Served,
        elapsed: Duration,
        patience: Duration,
    ) {
        if spec.max_waiting.is_some() {
            return;
        }
        self.of_late.push_back((elapsed, now));
        if self.of_late.len() > MOMENTS {
            self.of_late.pop_front();
        }
        let time = self.of_late.iter().map(|(time, _)| *time).sum();
        let sum = self.of_late.iter().fold(Served::default(), |sum, (_, served)| Served {
            answered: sum.answered + served.answered,
            took_ns: sum.took_ns.saturating_add(served.took_ns),
            waited_ns: sum.waited_ns.saturating_add(served.waited_ns),
        });
        let most = with_hope(sum, entry.shared.size(), time, patience);
        entry.shared.set_max_waiting(most.unwrap_or(usize::MAX));
    }

    fn decide<X>(&mut self, entry: &Arc<PoolEntry<X>>, elapsed: Duration, patience: Duration, may_try: bool) {
        let spec = entry.spec();
        let served = entry.shared.served();
        let before = std::mem::replace(&mut self.served, served);
        let now = Served {
            answered: served.answered.wrapping_sub(before.answered),
            took_ns: served.took_ns.wrapping_sub(before.took_ns),
            waited_ns: served.waited_ns.wrapping_sub(before.waited_ns),
        };
        self.admit(entry, &spec, now, elapsed, patience);
        let Some(bounds) = spec.auto else {
            self.auto = None;
            return;
        };
        let (waiting, active) = (entry.shared.waiting(), entry.shared.active());
        let auto = self.auto.get_or_insert_with(|| AutoSize::new(bounds, entry.shared.size()));
        let rebound = auto.set_bounds(bounds);
        let slot = Slot {
            elapsed_ns: elapsed.as_nanos() as u64,
            answered: now.answered,
            took_ns: now.took_ns,
            waited_ns: now.waited_ns,
            waiting,
            active,
        };
        let changes = [rebound, auto.step(slot, may_try)];
        for change in changes.into_iter().flatten() {
            tracing::info!(
                "pool {}/{}: {} servers instead of {} ({})",
                spec.database,
                spec.user,
                change.to,
                change.from,
                change.why
            );
        }
        if auto.size() != entry.shared.size() {
            entry.shared.set_size(auto.size());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(120);
    const HALF_A_MINUTE: Duration = Duration::from_secs(30);

    fn served(answered: u64, each_ms: u64) -> Served {
        Served { answered, took_ns: answered * each_ms * 1_000_000, waited_ns: 0 }
    }

    #[test]
    fn a_queue_is_hopeless_when_it_cannot_be_served_in_time() {
        // 8 servers that take a second each: 960 in two minutes, and twice that may wait.
        assert_eq!(with_hope(served(240, 1_000), 8, HALF_A_MINUTE, PATIENCE), Some(1_920));
        // Many at a time on one server: what was done counts, not how long each was under way.
        assert_eq!(with_hope(served(3_000, 1_000), 8, HALF_A_MINUTE, PATIENCE), Some(24_000));
    }

    #[test]
    fn a_pool_that_had_little_to_do_has_room_for_what_it_could_do() {
        assert_eq!(with_hope(served(100, 1), 8, HALF_A_MINUTE, PATIENCE), Some(1_920_000));
    }

    #[test]
    fn without_figures_or_without_a_timeout_there_is_hope() {
        assert_eq!(with_hope(served(99, 10_000), 1, HALF_A_MINUTE, PATIENCE), None);
        assert_eq!(with_hope(served(0, 0), 1, HALF_A_MINUTE, PATIENCE), None);
        assert_eq!(with_hope(served(1_000, 10_000), 1, HALF_A_MINUTE, Duration::ZERO), None);
    }
}
