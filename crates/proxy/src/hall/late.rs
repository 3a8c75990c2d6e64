//! Transactions that have begun but not sent a request yet. They hold no server: the wing answers their
//! BEGIN, and sends it to the server that their first request gets.
//!
//! Invariant: `Flags::empty` is set from that answer until the client gets a server, ends the transaction or
//! disconnects, so the gauge counts each transaction once.

use super::Hall;
use crate::context::Cx;
use crate::ids::Key;
use crate::pool::PoolId;
use crate::settings::PoolMode;
use crate::wing::{Front, Wing};
use weir_net::Net;
use weir_wire::FaultKind;

impl<W: Wing, N: Net> Hall<W, N> {
    /// BEGIN waits in this pool for the first request of its transaction.
    pub(super) fn lets_begin_wait(&self, id: Option<PoolId>) -> bool {
        let pool = id.and_then(|id| self.pools.get(id.0 as usize)?.as_deref());
        pool.is_some_and(|pool| pool.spec.late_begin && pool.spec.mode == PoolMode::Transaction)
    }

    /// The wing has begun a transaction for its client, or has ended an empty one.
    pub(super) fn answered_late(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let now_ns = cx.now_ns();
        let begun = match self.clients.get_mut(key) {
            Some(client) => {
                let begun = client.front().is_some_and(|front| front.is_in_empty_transaction());
                client.active_ms = now_ns / 1_000_000;
                client.transaction_since_ns = if begun { now_ns.max(1) } else { 0 };
                begun
            }
            None => false,
        };
        self.tell(cx, key);
        if !begun && self.draining {
            self.close_client(cx, key, Some(FaultKind::ShuttingDown.into()));
        } else {
            self.arm_client(cx, key);
        }
    }
}
