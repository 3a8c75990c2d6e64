//! Moves servers between workers, to where clients wait.

use super::{Hall, Order};
use crate::books::Post;
use crate::context::Cx;
use crate::ids::{Key, Kind, Tag};
use crate::line::Line;
use crate::mail::{Transfer, WingMail};
use crate::panics::inject;
use crate::pending::Pending;
use crate::pool::{PoolEntry, PoolId};
use crate::server::{Server, ServerFlags, ServerPhase};
use crate::stream::Stream;
use crate::wing::Wing;
use std::sync::Arc;
use weir_net::{Kept, Net};

impl<W: Wing, N: Net> Hall<W, N> {
    /// Moves a clean server to another worker.
    pub(super) fn hand_over(&mut self, cx: &mut Cx<'_, N>, key: Key, to: usize) {
        inject::here("hand_over");
        let Some(server) = self.books().close(key) else { return };
        let Server { stream, target, right, phase, opened_ms, .. } = server;
        let (spec_epoch, cleaning, is) = (server.spec_epoch, server.cleaning, server.is);
        let Stream { line, input, output } = stream;
        debug_assert!(output.is_empty());
        let hup = line.hup;
        let ServerPhase::Live(back) = phase else { return };
        let (socket, over) = line.into_parts();
        match cx.net.pack(socket, to) {
            Ok(parcel) => {
                let transfer = Transfer {
                    parcel,
                    over,
                    hup,
                    target,
                    right,
                    back,
                    input,
                    opened_ms,
                    spec_epoch,
                    cleaning,
                    is,
                };
                cx.post::<W>(to, WingMail::Server(Box::new(transfer)));
            }
            Err(Kept { socket, error }) => {
                tracing::debug!(protocol = W::PROTOCOL.name(), %error, "cannot move a server connection to another worker");
                cx.net.close(socket, true);
                self.count_pool(right.entry().id, |cells| cells.server_closes.inc());
                self.give_back(right);
            }
        }
    }

    /// A server arrives from another worker.
    pub(super) fn taken_over(&mut self, cx: &mut Cx<'_, N>, transfer: Transfer<W, N>) {
        inject::here("taken_over");
        let Transfer { parcel, over, target, right, back, input, opened_ms, spec_epoch, cleaning, is, hup } =
            transfer;
        let entry = right.entry().clone();
        let key = self.servers.next_key();
        let tag = Tag { kind: Kind::Server, protocol: W::PROTOCOL, key };
        self.pool_of(cx, &entry);
        let socket = match cx.net.unpack(parcel, tag.token()) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(protocol = W::PROTOCOL.name(), %error, "a server connection was lost while moving between workers");
                self.count_pool(entry.id, |cells| cells.server_closes.inc());
                self.give_back(right);
                return;
            }
        };
        let mut line = Line::with(socket, over);
        (line.readable, line.hup) = (true, hup);
        self.books().enter(Server {
            stream: Stream { line, input, output: Pending::default() },
            target,
            pool: entry.id,
            right,
            spec_epoch,
            phase: ServerPhase::Live(back),
            post: Post::arriving(),
            opened_ms,
            since_ms: cx.now_ms(),
            head_since_ns: 0,
            armed_ms: u64::MAX,
            cleaning,
            is: ServerFlags { dirty: false, paused: false, full: false, due: false, ..is },
        });
        self.count_pool(entry.id, |cells| cells.server_handovers.inc());
        if self.has_moved(key)
            && let Some(server) = self.servers.get_mut(key)
        {
            // The word of it may have come here while it was on its way.
            server.is.retire = true;
        }
        self.todo.push_back(Order::PumpServer(key));
        self.settle_later(key);
    }

    /// Another worker has a waiter and nothing idle.
    pub(super) fn wanted(&mut self, cx: &mut Cx<'_, N>, entry: &Arc<PoolEntry<W::Welcomes>>, from: usize) {
        let worker = cx.worker;
        let pool = self.pool_of(cx, entry);
        // Whoever waits here has a server that is being checked; the idle ones are to spare.
        if let Some(server) = pool.newest_idle() {
            self.hand_over(cx, server, from);
        } else if let Some(other) = entry.shared.idle_elsewhere(worker)
            && other != from
            && entry.shared.waits(from)
        {
            // Somebody was quicker. The wish goes on to where there is another one.
            cx.post::<W>(other, WingMail::Want { pool: entry.clone(), from });
        }
    }

    /// Nothing here and no room under the limit: a worker that has an idle server may send it.
    pub(super) fn ask_neighbour(&mut self, cx: &mut Cx<'_, N>, id: PoolId) {
        let Some(pool) = self.pool(id) else { return };
        if pool.connecting() >= pool.waiting_len() {
            return;
        }
        let entry = pool.entry.clone();
        if let Some(neighbour) = entry.shared.idle_elsewhere(cx.worker) {
            cx.post::<W>(neighbour, WingMail::Want { pool: entry, from: cx.worker });
        }
    }

    /// The address of this server is not one of its host's any more.
    pub(super) fn has_moved(&self, key: Key) -> bool {
        let Some(server) = self.servers.get(key) else { return false };
        let pool = self.pools.get(server.pool.0 as usize).and_then(|pool| pool.as_deref());
        pool.is_some_and(|pool| !pool.spec.targets.contains(&server.target))
    }
}
