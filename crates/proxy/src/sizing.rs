//! Keeps the sizes of all pools: measures what the workers have served and lets [`AutoSize`] decide.
//!
//! Owns: one [`AutoSize`] for each pool whose size is `auto`, and what the workers were told of the size of any pool. Runs
//! on the control thread, some times a second. Must not know: how a server is opened or closed; it tells the
//! workers that a size has changed.
//!
//! Invariant: one pool at most tries a size at a time, so that no two measure each other.

use crate::context::Shared;
use crate::mail::WingMail;
use crate::pool::auto::{AutoSize, Slot};
use crate::pool::{PoolEntry, PoolId, Served};
use crate::wing::{MySql, Postgres, Wing};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use weir_net::Net;

/// How often it is to be called.
pub const EVERY: Duration = Duration::from_millis(500);

/// The sizes of all pools.
#[derive(Debug, Default)]
pub struct Sizing {
    pools: HashMap<(u8, PoolId), Pool>,
    /// Who tries a size now.
    trying: Option<(u8, PoolId)>,
}

#[derive(Debug, Default)]
struct Pool {
    told: usize,
    served: Served,
    auto: Option<AutoSize>,
}

impl Sizing {
    /// Looks at all pools. `elapsed`: since the last time.
    pub(crate) fn look<N: Net>(&mut self, shared: &Shared<N>, elapsed: Duration) {
        self.look_at::<Postgres, N>(shared, elapsed);
        self.look_at::<MySql, N>(shared, elapsed);
    }

    fn look_at<W: Wing, N: Net>(&mut self, shared: &Shared<N>, elapsed: Duration) {
        for entry in W::registry(shared).all().iter() {
            let name = (W::INDEX, entry.id);
            let pool = self.pools.entry(name).or_default();
            let may_try = self.trying.is_none_or(|trying| trying == name);
            pool.decide(entry, elapsed, may_try);
            if pool.auto.as_ref().is_some_and(AutoSize::is_trying) {
                self.trying = Some(name);
            } else if self.trying == Some(name) {
                self.trying = None;
            }
            let limit = entry.shared.limit();
            if std::mem::replace(&mut pool.told, limit) != limit {
                for worker in 0..shared.workers {
                    (shared.post)(worker, W::mail(WingMail::Sized { pool: entry.clone() }));
                }
            }
        }
    }
}

impl Pool {
    fn decide<X>(&mut self, entry: &Arc<PoolEntry<X>>, elapsed: Duration, may_try: bool) {
        let spec = entry.spec();
        let served = entry.shared.served();
        let before = std::mem::replace(&mut self.served, served);
        let Some(bounds) = spec.auto else {
            self.auto = None;
            return;
        };
        let (waiting, active) = entry.shared.demand();
        let auto = self.auto.get_or_insert_with(|| AutoSize::new(bounds, entry.shared.limit()));
        let rebound = auto.set_bounds(bounds);
        let slot = Slot {
            elapsed_ns: elapsed.as_nanos() as u64,
            answered: served.answered.wrapping_sub(before.answered),
            took_ns: served.took_ns.wrapping_sub(before.took_ns),
            waited_ns: served.waited_ns.wrapping_sub(before.waited_ns),
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
        if auto.size() != entry.shared.limit() {
            entry.shared.set_limit(auto.size());
        }
    }
}
