//! Timeouts. A client or server has one deadline at a time, which follows from its state; its timer is lazy:
//! it fires at or before the deadline, checks, and is armed again. The data path therefore pays nothing.

use super::Hall;
use super::deadline::{BATCH_MS, client_deadline, server_deadline};
use crate::client::Phase;
use crate::context::Cx;
use crate::ids::{Key, Kind, Tag};
use crate::panics::inject;
use crate::server::{Late, ServerState};
use crate::wing::{Front, Wing};
use weir_net::Net;
use weir_wire::{Fault, FaultKind};

impl<W: Wing, N: Net> Hall<W, N> {
    /// A timer has fired.
    pub fn timer(&mut self, cx: &mut Cx<'_, N>, tag: Tag) {
        match tag.kind {
            Kind::Client => self.client_timer(cx, tag.key),
            Kind::Batch => self.batch_timer(cx, tag.key),
            Kind::Kept => self.kept_timer(cx, tag.key),
            Kind::Listen => self.listen_timer(cx, tag.key),
            Kind::Server => self.server_timer(cx, tag.key),
            Kind::Canceller => self.canceller_timer(cx, tag.key),
            Kind::Pool if tag.is_of_pins() => self.look_at_pins(cx, crate::pool::PoolId(tag.key.slot())),
            Kind::Pool => {
                let id = crate::pool::PoolId(tag.key.slot());
                self.open_for_waiters(cx, id);
                // The ones that failed may have left room that others wait for.
                if let Some(pool) = self.pool(id) {
                    let entry = pool.entry.clone();
                    self.room_for_waiters(cx, &entry);
                    self.cap_freed(cx, &entry);
                }
            }
            Kind::Listener => {}
        }
    }

    fn batch_timer(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let now_ms = cx.now_ms();
        let Some(client) = self.clients.get_mut(key) else { return };
        client.is.gathering = false;
        let kept = client.stream.input.len();
        if client.claim.is_served_later()
            || !client.front().is_some_and(|front| front.is_between_messages(kept))
        {
            return;
        }
        if now_ms < client.active_ms + BATCH_MS {
            self.await_batch(cx, key);
            return;
        }
        if let Some(front) = client.front() {
            front.hasten();
        }
        self.consume_kept(cx, key);
    }

    fn client_timer(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("client_timer");
        let boundary = self.boundary_of(key);
        let now_ms = cx.now_ms();
        let Some(client) = self.clients.get_mut(key) else { return };
        client.armed_ms = u64::MAX;
        if client.is.part_open && client.stream.line.readable {
            // It is Weir that does not read: the server is slow, and that is not the client's fault.
            client.active_ms = now_ms;
        }
        let deadline = client_deadline::<W, N>(client, boundary, &cx.settings.timeouts);
        let Some((deadline_ms, kind)) = deadline else { return };
        if now_ms < deadline_ms {
            self.arm_client(cx, key);
            return;
        }
        match (&client.phase, kind) {
            (Phase::Closing, _) => self.remove_client(cx, key, false),
            (Phase::Login(phase), _) => {
                let fault =
                    phase.refused.as_ref().map_or_else(|| kind.into(), |(_, fault)| Fault::clone(fault));
                self.refuse(cx, key, fault);
            }
            (Phase::Session(_), FaultKind::ClientGone) => self.give_up(cx, key),
            (Phase::Session(_), _) => {
                self.stop_what_runs(cx, key);
                self.end_client(cx, key, kind.into());
            }
        }
    }

    /// A client that may be gone has had its time: what it runs is cancelled, and is answered to it if it is
    /// there after all. If that does not help, it is gone.
    fn give_up(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let now_ms = cx.now_ms();
        self.seclude_with(cx, key);
        let Some(client) = self.clients.get_mut(key) else { return };
        let again = std::mem::replace(&mut client.is.given_up, true);
        client.active_ms = now_ms;
        match client.lease().filter(|_| !again) {
            Some(server) if self.is_cancellable(server) => {
                self.cancel_server(cx, server, None);
                self.arm_client(cx, key);
            }
            Some(_) | None => self.close_client(cx, key, Some(FaultKind::ClientGone.into())),
        }
    }

    fn server_timer(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let now_ms = cx.now_ms();
        let Some(server) = self.servers.get_mut(key) else { return };
        server.armed_ms = u64::MAX;
        let Some(deadline_ms) = server_deadline::<W, N>(server, &cx.settings.timeouts) else { return };
        if now_ms < deadline_ms {
            self.arm_server(cx, key);
            return;
        }
        match server.state() {
            ServerState::Login => {
                let fault =
                    Fault::new(FaultKind::ServerUnavailable, format!("{}: no login in time", server.target));
                self.login_ended(cx, key, fault);
            }
            ServerState::Idle => self.idle_late(cx, key),
            ServerState::Leased(client) => self.cancel_when_due(cx, key, client, None),
            ServerState::Shared => self.head_late(cx, key),
            ServerState::Cleaning => {
                let (late, running) = server.late(now_ms, cx.settings.timeouts.cancel_wait_timeout_ms);
                self.cleaning_late(cx, key, late, running);
            }
        }
    }

    /// Nobody has used a server for long, or it is old. The last `min_pool_size` stay unless they are old.
    fn idle_late(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let now_ms = cx.now_ms();
        let lifetime_ms = cx.settings.timeouts.server_lifetime_ms;
        let Some(server) = self.servers.get_mut(key) else { return };
        let age_ms = now_ms.saturating_sub(server.opened_ms);
        let is_old = lifetime_ms.is_some_and(|most_ms| most_ms > 0 && age_ms >= most_ms);
        let pool = self.pools.get(server.pool.0 as usize).and_then(|pool| pool.as_deref());
        let needed = pool.is_some_and(|pool| pool.entry.shared.inside_and_outside().0 <= pool.spec.min_size);
        if needed && !is_old {
            server.since_ms = now_ms;
            self.arm_server(cx, key);
        } else {
            self.close_server(cx, key, "nobody used it, or it is old");
        }
    }

    /// What a client that has gone left running has had its time: cancel it, then give up.
    fn cleaning_late(&mut self, cx: &mut Cx<'_, N>, key: Key, late: Late, running: bool) {
        let cancellable = running && self.is_cancellable(key);
        match late {
            Late::GivenUp => self.drop_late(cx, key),
            // What stands behind it would run without it.
            Late::LastCancel if running && !cancellable => self.drop_late(cx, key),
            Late::Cancel | Late::LastCancel if !running => self.settle_later(key),
            Late::Cancel | Late::LastCancel | Late::CancelOnItsWay => {
                if cancellable && late != Late::CancelOnItsWay {
                    self.cancel_server(cx, key, None);
                }
                self.arm_server(cx, key);
            }
        }
    }

    fn drop_late(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let text = "what its client left behind did not end in time";
        self.server_lost(cx, key, Fault::new(FaultKind::ServerLost, text));
    }
}
