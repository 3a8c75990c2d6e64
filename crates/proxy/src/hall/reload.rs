//! Reload: what new settings change for existing clients, servers and pools.
//!
//! Clients stay. A server that would now be opened differently (another host, password or number of prepared
//! statements) is replaced when it is next free; one that exceeds a smaller pool is closed then. So is a
//! server whose host name resolves to other addresses.

use super::Hall;
use crate::books::Pool;
use crate::context::Cx;
use crate::pool::{PoolEntry, PoolId};
use crate::server::ServerState;
use crate::wing::Wing;
use std::sync::Arc;
use weir_net::Net;

impl<W: Wing, N: Net> Hall<W, N> {
    /// `cx.settings` are new.
    pub fn reload(&mut self, cx: &mut Cx<'_, N>) {
        for index in 0..self.pools.len() {
            let Some(Some(pool)) = self.pools.get(index) else { continue };
            let entry = pool.entry.clone();
            entry.renew(&cx.settings.routes.renew(W::PROTOCOL, &entry.spec()));
            self.refresh(cx, entry.id);
        }
        for key in self.clients.keys() {
            self.arm_client(cx, key);
        }
        for key in self.servers.keys() {
            self.arm_server(cx, key);
        }
    }

    /// A host has other addresses than before: servers at one that it has no longer are closed, those in use
    /// when they are next free.
    pub fn readdressed(&mut self, cx: &mut Cx<'_, N>) {
        for key in self.servers.keys() {
            if !self.has_moved(key) {
                continue;
            }
            let Some(server) = self.servers.get_mut(key) else { continue };
            server.is.retire = true;
            if server.state() == ServerState::Idle {
                self.close_server(cx, key, "its host has another address now");
            }
        }
    }

    /// Lets go of those of these pools that have no server, no waiter and no client here.
    pub(super) fn sweep(&mut self, unused: &[PoolId]) {
        let mut used = vec![false; self.pools.len()];
        for (_, client) in self.clients.iter() {
            let before = client.before.as_ref().and_then(|before| before.pool);
            for id in [client.pool, before].into_iter().flatten() {
                if let Some(used) = used.get_mut(id.0 as usize) {
                    *used = true;
                }
            }
        }
        for id in unused {
            let at = id.0 as usize;
            let idle = |pool: &mut Box<Pool<W::Welcomes>>| {
                pool.is_empty() && pool.waiting_len() + pool.following() == 0
            };
            if used.get(at) == Some(&false)
                && let Some(pool) = self.pools[at].take_if(idle)
            {
                self.statements.forget(*id);
                pool.cells.pool_size.add(-(pool.told_size as i64));
                pool.cells.pinned_pool_servers.add(-(pool.told_outside as i64));
            }
        }
    }

    /// A pool has another size: servers too many that are idle are closed, the others when they are next
    /// free.
    pub(super) fn sized(&mut self, cx: &mut Cx<'_, N>, entry: &Arc<PoolEntry<W::Welcomes>>) {
        let worker = cx.worker;
        let pool = self.pool_of(cx, entry);
        let idle = pool.idle_keys().to_vec();
        if worker == 0 {
            let size = if entry.shared.is_paused() { 0 } else { entry.shared.size() };
            pool.cells.pool_size.add(size as i64 - std::mem::replace(&mut pool.told_size, size) as i64);
            let outside = entry.shared.inside_and_outside().1;
            let told = std::mem::replace(&mut pool.told_outside, outside);
            pool.cells.pinned_pool_servers.add(outside as i64 - told as i64);
        }
        for key in idle {
            if entry.shared.is_over_limit() {
                self.close_server(cx, key, "the pool is to be smaller");
            }
        }
        self.room_for_waiters(cx, entry);
    }

    /// Takes over what is new about a pool.
    pub(super) fn refresh(&mut self, cx: &mut Cx<'_, N>, id: PoolId) {
        let Some(pool) = self.pool(id) else { return };
        let entry = pool.entry.clone();
        let spec = entry.spec();
        if Arc::ptr_eq(&pool.spec, &spec) {
            return;
        }
        if pool.spec.servers_since < spec.servers_since {
            // What failed before may succeed now.
            pool.end_pause();
        }
        pool.spec = spec.clone();
        let idle = pool.idle_keys().to_vec();
        for key in idle {
            let outdated = self.servers.get(key).is_some_and(|server| server.spec_epoch < spec.servers_since);
            // One that closes may let others open; so each is looked at on its own.
            if outdated || entry.shared.is_over_limit() {
                self.close_server(cx, key, "the settings have changed");
            }
        }
        self.look_at_pins(cx, id);
        self.room_for_waiters(cx, &entry);
        if entry.shared.has_caps() {
            self.cap_freed(cx, &entry);
        }
        self.fill(cx, id);
    }
}
