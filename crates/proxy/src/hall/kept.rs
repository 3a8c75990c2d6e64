//! Clients that keep a server only because their next request may ask for something that it holds.
//!
//! The last value that a PostgreSQL client has drawn from a sequence is in one server's session, and most
//! programs that ask for it do so at once. The client therefore keeps that server up to its next request (the
//! wing says when: `Wing::is_kept_in_case`). If that takes longer, waiting clients come first.

use super::Hall;
use crate::context::Cx;
use crate::ids::Key;
use crate::server::ServerPhase;
use crate::wing::{Back, Front, Wing};
use weir_net::Net;
use weir_wire::Boundary;

/// Time for which a client without a request keeps such a server while others wait: programs need less from
/// one statement to the next, and a pool of any size still answers ten times per second for each server.
pub(super) const KEPT_MS: u64 = 100;

/// Time for which a client waits for the one server that does not answer wrongly: longer than nearly all
/// statements take, and than a reading of the catalogue on a busy machine. Then it is refused.
const NEEDED_MS: u64 = 10_000;

impl<W: Wing, N: Net> Hall<W, N> {
    /// The client's request is answered, and it keeps its server.
    pub(super) fn await_question(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let front = self.clients.get_mut(key).and_then(|client| client.front());
        if front.is_some_and(|front| front.is_kept_in_case()) {
            self.await_favourite(cx, key);
        }
    }

    /// It has had its time, unless it was at work in between or nobody waits.
    pub(super) fn kept_timer(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let (now_ms, boundary) = (cx.now_ms(), self.boundary_of(key));
        let Some(client) = self.clients.get_mut(key) else { return };
        client.is.kept = false;
        let needed = client.front().is_some_and(|front| front.needs_favourite());
        let early = now_ms < client.active_ms + if needed { NEEDED_MS } else { KEPT_MS };
        let id = client.pool;
        if let (true, Some(id)) = (client.is_waiting(), id) {
            // Not for a lease: for the server that knows what it asks.
            return if early { self.await_favourite(cx, key) } else { self.offer_idle(cx, id) };
        }
        let Some(server) = client.lease() else { return };
        let at_rest = client.inflight == 0
            && boundary == Boundary::Idle
            && !client.is.part_open
            && client.stream.input.is_empty();
        if !at_rest {
            return;
        }
        let waits = id.and_then(|id| self.pool(id)).is_some_and(|pool| {
            pool.waiting_len() > 0 || pool.entry.shared.longest_waiting_elsewhere(cx.worker).is_some()
        });
        if early || !waits {
            return self.await_question(cx, key);
        }
        let (Some(client), Some(held)) = (self.clients.get_mut(key), self.servers.get_mut(server)) else {
            return;
        };
        let (Some(front), ServerPhase::Live(back)) = (client.front(), &mut held.phase) else { return };
        if !front.is_kept_in_case() {
            return;
        }
        back.let_go(front);
        if front.pins().is_empty() {
            self.end_lease(cx, key);
        }
    }
}
