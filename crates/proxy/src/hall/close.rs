//! Closes servers: why one must not be used again, its last message, and its place under the limits of its
//! pool.

use super::caps::Heir;
use super::{Hall, Order};
use crate::context::Cx;
use crate::ids::Key;
use crate::mail::WingMail;
use crate::panics::inject;
use crate::pool::{Place, PoolId, Right};
use crate::server::{Server, ServerPhase, ServerState};
use crate::wing::{Back, Welcomes, Wing};
use weir_net::Net;

impl<W: Wing, N: Net> Hall<W, N> {
    /// Closes a server that nobody holds, saying goodbye.
    pub(super) fn close_server(&mut self, cx: &mut Cx<'_, N>, key: Key, why: &str) {
        let clean = self.say_goodbye(cx, key, why);
        self.drop_server(cx, key, !clean);
    }

    /// Closes a server that nobody holds and leaves its place to another pool.
    pub(super) fn close_for(&mut self, cx: &mut Cx<'_, N>, key: Key, heir: Heir<W>, why: &str) {
        let clean = self.say_goodbye(cx, key, why);
        let Some((_, right)) = self.take_out(cx, key, !clean) else { return };
        let entry = right.entry().clone();
        self.leave_place(cx, right, &heir);
        self.todo.push_back(Order::Freed(entry));
    }

    /// False when what a server was sent before has not all gone out.
    pub(super) fn say_goodbye(&mut self, cx: &mut Cx<'_, N>, key: Key, why: &str) -> bool {
        let Some(server) = self.servers.get_mut(key) else { return false };
        debug_assert!(!matches!(server.state(), ServerState::Leased(_) | ServerState::Shared));
        tracing::debug!(protocol = W::PROTOCOL.name(), "a server is closed: {why}");
        let clean = server.stream.output.is_empty();
        if let Server { phase: ServerPhase::Live(back), stream, .. } = server {
            back.quit(stream.output.tail_mut());
            let goodbye = stream.line.send(cx.net, stream.output.as_slice());
            let _ = goodbye;
        }
        clean
    }

    pub(super) fn drop_server(&mut self, cx: &mut Cx<'_, N>, key: Key, abort: bool) {
        if let Some((_, right)) = self.take_out(cx, key, abort) {
            self.give_back(right);
        }
    }

    /// A server is gone. What is left of it is the right to have one.
    pub(super) fn take_out(
        &mut self,
        cx: &mut Cx<'_, N>,
        key: Key,
        abort: bool,
    ) -> Option<(PoolId, Right<W::Welcomes>)> {
        inject::here("drop_server");
        let server = self.books().close(key)?;
        self.todo.extend(server.cleaning.awaited.map(Order::GoOn));
        self.count_pool(server.pool, |cells| cells.server_closes.inc());
        server.stream.line.close(cx.net, abort);
        Some((server.pool, server.right))
    }

    /// A server has closed, and whoever it was closed for gets its place; where that may not be, it is free.
    fn leave_place(&mut self, cx: &mut Cx<'_, N>, right: Right<W::Welcomes>, heir: &Heir<W>) {
        let Some(place) = Place::leave(right, &heir.entry, heir.worker) else { return };
        if heir.worker == cx.worker {
            self.todo.push_back(Order::Placed(Box::new(place)));
        } else {
            cx.post::<W>(heir.worker, WingMail::Place(place));
        }
    }

    /// A server is gone, and its place is free.
    pub(super) fn give_back(&mut self, right: Right<W::Welcomes>) {
        let entry = right.entry().clone();
        drop(right);
        self.todo.push_back(Order::Freed(entry));
    }

    /// It must not be used again once it is free.
    pub(super) fn is_to_be_replaced(&mut self, cx: &Cx<'_, N>, key: Key) -> bool {
        let Some(server) = self.servers.get_mut(key) else { return false };
        let lifetime_ms = cx.settings.timeouts.server_lifetime_ms;
        let age_ms = cx.now_ms().saturating_sub(server.opened_ms);
        // A login may take longer than a short lifetime: whom the server was opened for gets it.
        let too_old = server.is.used && lifetime_ms.is_some_and(|most_ms| age_ms >= most_ms);
        let stale = matches!(&server.phase, ServerPhase::Live(back) if back.is_outdated());
        let (id, retire, spec_epoch) = (server.pool, server.is.retire, server.spec_epoch);
        let opened_ms = server.opened_ms;
        let Some(pool) = self.pool(id) else { return false };
        let retire = retire || pool.entry.shared.is_from_before(opened_ms);
        let retire = retire || stale && pool.entry.welcomes().is_current();
        let outdated = spec_epoch < pool.spec.servers_since;
        retire || too_old || outdated || pool.entry.shared.is_over_limit()
    }
}
