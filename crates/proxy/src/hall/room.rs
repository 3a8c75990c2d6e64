//! Room under the limits of a pool: who uses it, on this worker, on another worker or in another pool.

use super::Hall;
use super::caps::Entry;
use crate::context::Cx;
use crate::mail::WingMail;
use crate::panics::inject;
use crate::pool::{Place, PoolEntry, PoolId};
use crate::wing::Wing;
use std::sync::Arc;
use weir_net::Net;

impl<W: Wing, N: Net> Hall<W, N> {
    /// There is room under the limits of a pool: for a waiter here, or for one elsewhere.
    pub(super) fn freed(&mut self, cx: &mut Cx<'_, N>, entry: &Arc<PoolEntry<W::Welcomes>>) {
        inject::here("slot_freed");
        self.cap_freed(cx, entry);
        self.room_for_waiters(cx, entry);
        // Whoever waited for the one that is gone has not asked for an idle one elsewhere.
        self.ask_neighbour(cx, entry.id);
        self.fill(cx, entry.id);
    }

    /// Uses room under a pool's limit where somebody waits: here, and what is left elsewhere. All who wait
    /// are told, because one who was told alone may have been served by then, or may be pausing after a
    /// failed connect.
    pub(super) fn room_for_waiters(&mut self, cx: &mut Cx<'_, N>, entry: &Arc<PoolEntry<W::Welcomes>>) {
        self.pool_of(cx, entry);
        self.open_for_waiters(cx, entry.id);
        for worker in cx.shared.berths.open().filter(|&worker| worker != cx.worker) {
            if entry.shared.has_room() && entry.shared.waits(worker) {
                cx.post::<W>(worker, WingMail::SlotFree { pool: entry.clone() });
            }
        }
    }

    /// There may be room for those who wait under a limit that `entry`'s pool shares.
    pub(super) fn cap_freed(&mut self, cx: &mut Cx<'_, N>, entry: &Entry<W>) {
        if !entry.shared.has_caps() {
            return;
        }
        for (_, other) in Self::capped_waiters(cx, entry) {
            for worker in cx.shared.berths.open() {
                if !other.shared.has_room() || !other.shared.waits(worker) {
                    continue;
                }
                if worker == cx.worker {
                    self.open_for_waiters(cx, other.id);
                } else {
                    cx.post::<W>(worker, WingMail::SlotFree { pool: other.clone() });
                }
            }
        }
    }

    /// Another worker wants the place of an idle server of this pool.
    pub(super) fn evict(&mut self, cx: &mut Cx<'_, N>, entry: &Entry<W>) {
        // Else somebody was quicker; whoever waits looks again.
        if entry.shared.is_capped() && !self.give_way(cx, entry) {
            self.cap_freed(cx, entry);
        }
    }

    /// Another pool has left its place to this worker, which opens a server if it still lacks one.
    pub(super) fn place_arrived(&mut self, cx: &mut Cx<'_, N>, place: Place<W::Welcomes>) {
        let entry = place.entry().clone();
        let now_ms = cx.now_ms();
        let pool = self.pool_of(cx, &entry);
        if pool.may_connect(now_ms) && pool.lacks() > 0 {
            let right = place.take();
            if self.open(cx, entry.id, right) {
                self.open_for_waiters(cx, entry.id);
            }
            return;
        }
        drop(place);
        self.cap_freed(cx, &entry);
        self.room_for_waiters(cx, &entry);
    }

    /// So many clients have come back into the queue, where they want servers of their own. What is free goes
    /// to whoever has waited longest.
    pub(super) fn rehouse(&mut self, cx: &mut Cx<'_, N>, id: PoolId, clients: u32) {
        for _ in 0..clients {
            let Some(idle) = self.pool(id).and_then(|pool| pool.newest_idle()) else { break };
            self.check_or_offer(cx, idle);
        }
        // A place among others may be free at once.
        self.place_sharing(cx, id);
        self.open_for_waiters(cx, id);
        self.ask_neighbour(cx, id);
    }
}
