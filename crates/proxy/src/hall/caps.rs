//! Limits that several pools share (`max_db_connections`, `max_user_connections`): which pool gives way to
//! which.
//!
//! A pool that wants a server when such a limit is reached takes the place of an idle server of another pool
//! under the limit. If there is none, it waits, and the next server that becomes free under the limit gives
//! its place to the pool that has waited longest. The order follows the rule of `pool::shared`: publish
//! first, look second.
//!
//! A place that is passed to another pool travels as a [`Place`] and counts as taken all the way. If it were
//! free for that time, the pool that gives it up would be the first to take it again, and the two could close
//! and open servers for each other endlessly. It goes only to a worker that would open a server with it: not
//! to one that pauses after a failed connect, nor to one that already has a connect in progress for every
//! waiting client.

use super::Hall;
use crate::context::Cx;
use crate::mail::WingMail;
use crate::pool::PoolEntry;
use crate::pool::shared::NOBODY;
use crate::wing::Wing;
use std::cmp::Reverse;
use std::sync::Arc;
use weir_net::Net;
use weir_session::Machines;

/// A busy pool gives a place to another one under the same limit when that has waited longer by more than
/// this. It costs a connect and a login, some milliseconds of two machines.
const GIVE_WAY_NS: u64 = 100_000_000;

pub(super) type Entry<W> = Arc<PoolEntry<<W as Machines>::Welcomes>>;

/// Who gets the place of a server that closes.
pub(super) struct Heir<W: Wing> {
    pub(super) entry: Entry<W>,
    pub(super) worker: usize,
}

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

    /// Who gets the place of a server of `entry`'s pool if that closes: the worker, of another pool, that
    /// lacks a server, could open one with that place and has waited longest.
    fn next_in_line(cx: &Cx<'_, N>, entry: &Entry<W>) -> Option<(u64, Heir<W>)> {
        let all = W::registry(cx.shared).all();
        let could_open = |other: &&Entry<W>| {
            other.id != entry.id
                && other.shared.is_capped_with(&entry.shared)
                && other.shared.opened() < other.shared.limit()
        };
        let lacking = all.iter().filter(could_open).filter_map(|other| {
            let (since_ns, worker) = other.shared.longest_lacking()?;
            Some((since_ns, Heir { entry: other.clone(), worker }))
        });
        let mut lacking: Vec<_> =
            lacking.map(|(since_ns, heir)| (heir.entry.standing(), since_ns, heir)).collect();
        let by_share = lacking.iter().any(|(standing, ..)| standing.share > 0);
        lacking.sort_by_key(|(standing, since_ns, heir)| (standing.rank(by_share), *since_ns, heir.entry.id));
        lacking.into_iter().next().map(|(_, since_ns, heir)| (since_ns, heir))
    }

    /// A pool under a limit that is reached has waited longer than whoever waits for this one.
    pub(super) fn who_has_waited_longer(&self, cx: &Cx<'_, N>, entry: &Entry<W>) -> Option<Heir<W>> {
        if !entry.shared.is_capped() {
            return None;
        }
        let own_ns = entry.shared.longest_waiting();
        let (since_ns, heir) = Self::next_in_line(cx, entry)?;
        let longer = since_ns.saturating_add(GIVE_WAY_NS) < own_ns;
        // Where shares decide it is enough that somebody has waited all the time: each by himself may get his
        // turn quickly.
        let queue_ns = heir.entry.shared.queue_since(heir.worker);
        let waited = queue_ns.saturating_add(GIVE_WAY_NS) < cx.now_ns();
        let own = entry.standing();
        let gives_way = match own_ns {
            NOBODY => !own.is_reserved(),
            _ => own.gives_way_to(&heir.entry.standing(), waited, longer),
        };
        gives_way.then_some(heir)
    }

    /// A limit that other pools share keeps this one from opening a server: an idle server of another pool
    /// gives way.
    pub(super) fn make_room(&mut self, cx: &mut Cx<'_, N>, entry: &Entry<W>) {
        let all = W::registry(cx.shared).all();
        let mut others: Vec<&Entry<W>> = all
            .iter()
            .filter(|other| other.id != entry.id && entry.shared.is_capped_with(&other.shared))
            .filter(|other| !other.standing().is_reserved())
            .collect();
        // Those with the most servers first.
        others.sort_by_key(|other| Reverse(other.shared.opened()));
        for other in others {
            if self.give_way(cx, other) {
                return;
            }
            if let Some(worker) = other.shared.idle_elsewhere(cx.worker) {
                cx.post::<W>(worker, WingMail::Evict { pool: other.clone() });
                return;
            }
        }
    }

    /// Closes an idle server of this worker for whoever is next in line. False when there is no such server;
    /// one that nobody needs any more stays.
    pub(super) fn give_way(&mut self, cx: &mut Cx<'_, N>, entry: &Entry<W>) -> bool {
        let Some(pool) = self.pool(entry.id).filter(|pool| pool.waiting_len() == 0) else { return false };
        let Some(&oldest) = pool.idle_keys().first() else { return false };
        if entry.standing().is_reserved() {
            return false;
        }
        if let Some((_, heir)) = Self::next_in_line(cx, entry) {
            self.close_for(cx, oldest, heir, "a pool under the same limit has a waiter");
        }
        true
    }
}
