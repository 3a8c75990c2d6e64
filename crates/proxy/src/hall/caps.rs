//! Limits that several pools share (`max_db_connections`, `max_user_connections`): who gives way to whom.
//!
//! A pool that wants a server and finds such a limit reached takes the place of an idle server of another
//! pool under it. When there is none, it waits, and whoever is next free under the limit gives its place to
//! the pool that has waited longest. The rule of order is that of `pool::shared`: publish first, look second.

use super::Hall;
use crate::context::Cx;
use crate::pool::PoolEntry;
use crate::pool::shared::NOBODY;
use crate::wing::Wing;
use std::cmp::Reverse;
use std::sync::Arc;
use weir_net::Net;

/// A busy pool gives a place to another one under the same limit when that has waited longer by more than
/// this. It costs a connect and a login, some milliseconds of two machines.
const GIVE_WAY_NS: u64 = 100_000_000;

type Entry<W> = Arc<PoolEntry<<W as Wing>::Welcomes>>;

impl<W: Wing, N: Net> Hall<W, N> {
    /// Pools for which a server less in `entry`'s pool is room for one more, and that want one: the one that
    /// has waited longest first.
    pub(super) fn capped_waiters(cx: &Cx<'_, N>, entry: &Entry<W>) -> Vec<(u64, Entry<W>)> {
        let all = W::registry(cx.shared).all();
        let wants = |other: &&Entry<W>| {
            other.id != entry.id
                && other.shared.caps().iter().any(|cap| {
                    cap.is_limited() && entry.shared.caps().iter().any(|own| Arc::ptr_eq(cap, own))
                })
        };
        let mut found: Vec<_> = all
            .iter()
            .filter(wants)
            .map(|other| (other.shared.longest_waiting(), other.clone()))
            .filter(|(since_ns, _)| *since_ns != NOBODY)
            .collect();
        found.sort_by_key(|(since_ns, _)| *since_ns);
        found
    }

    /// A pool under a limit that is reached has waited longer than whoever waits for this one.
    pub(super) fn others_wait_longer(&self, cx: &Cx<'_, N>, entry: &Entry<W>) -> bool {
        let own_ns = entry.shared.longest_waiting();
        let could_open = |other: &Entry<W>| {
            other.shared.is_capped_with(&entry.shared) && other.shared.opened() < other.shared.limit()
        };
        Self::capped_waiters(cx, entry).iter().any(|(since_ns, other)| {
            let longer = own_ns == NOBODY || since_ns.saturating_add(GIVE_WAY_NS) < own_ns;
            longer && could_open(other)
        })
    }

    /// A limit that other pools share keeps this one from opening a server: an idle server of another pool
    /// gives way.
    pub(super) fn make_room(&mut self, cx: &mut Cx<'_, N>, entry: &Entry<W>) {
        let all = W::registry(cx.shared).all();
        let mut others: Vec<&Entry<W>> = all
            .iter()
            .filter(|other| other.id != entry.id && entry.shared.is_capped_with(&other.shared))
            .collect();
        // Those with the most servers first.
        others.sort_by_key(|other| Reverse(other.shared.opened()));
        for other in others {
            if let Some(pool) = self.pool(other.id)
                && pool.waiting_len() == 0
                && let Some(&oldest) = pool.idle_keys().first()
            {
                self.close_server(cx, oldest, "a pool under the same limit has a waiter");
                return;
            }
            if let Some(worker) = other.shared.idle_elsewhere(cx.worker) {
                cx.post::<W>(worker, crate::mail::WingMail::Evict { pool: other.clone() });
                return;
            }
        }
    }

    /// Another worker wants the place of an idle server of this pool.
    pub(super) fn evict(&mut self, cx: &mut Cx<'_, N>, entry: &Entry<W>) {
        if !entry.shared.is_capped() {
            return;
        }
        if let Some(pool) = self.pool(entry.id)
            && pool.waiting_len() == 0
            && let Some(&oldest) = pool.idle_keys().first()
        {
            self.close_server(cx, oldest, "a pool under the same limit has a waiter");
            return;
        }
        // Somebody was quicker; whoever waits looks again.
        self.cap_freed(cx, entry);
    }

    /// There may be room for those who wait under a limit that `entry`'s pool shares.
    pub(super) fn cap_freed(&mut self, cx: &mut Cx<'_, N>, entry: &Entry<W>) {
        if !entry.shared.has_caps() {
            return;
        }
        for (_, other) in Self::capped_waiters(cx, entry) {
            for worker in 0..cx.shared.workers {
                if !other.shared.has_room() || !other.shared.waits(worker) {
                    continue;
                }
                if worker == cx.worker {
                    self.open_for_waiters(cx, other.id);
                } else {
                    // Passed on once, or two pools that pause after a failure would tell each other for ever.
                    let (pool, yielded) = (other.clone(), self.yields);
                    cx.post::<W>(worker, crate::mail::WingMail::SlotFree { pool, yielded });
                }
            }
        }
    }
}
