//! Clients that keep their servers for long because of a pin: they take none from the others
//! (`pinned_pool_size`), and the log names them while others wait (`log_pins_after`).
//!
//! Nothing of this costs a request anything: a timer of the pool, armed by the first pin, looks at all such
//! clients of a worker. A pin counts for `pinned_pool_size` once it has lasted: one that ends sooner would
//! open a server for a moment and close one behind it.

use super::who::log_client;
use super::{Hall, Order};
use crate::context::Cx;
use crate::ids::{Key, Tag};
use crate::pool::PoolId;
use crate::pool::shared::NOBODY;
use crate::server::ServerState;
use crate::wing::{Front, Wing};
use weir_net::Net;
use weir_wire::{PinPolicies, Pins};

/// Age of a lease from which a pin counts: longer than clients keep a server in case they ask something
/// (`kept::KEPT_MS`), short beside what a person or a queue notices.
const LASTING_MS: u64 = 200;

/// Pause between two lines about pins of one reason in one pool of a worker.
const WARN_PAUSE_MS: u64 = 60_000;

/// Pause between two looks at clients that are to be logged as soon as others wait.
const LOOK_MS: u64 = 1_000;

impl<W: Wing, N: Net> Hall<W, N> {
    /// A client of this pool has begun to keep its server: it is looked at when that may matter.
    fn watch_pins(&mut self, cx: &mut Cx<'_, N>, id: PoolId) {
        let (now_ms, log_ms) = (cx.now_ms(), cx.settings.timeouts.log_pins_after_ms);
        let Some(pool) = self.pool(id) else { return };
        let due_ms = match (pool.spec.pinned_size, log_ms) {
            (0, 0) => return,
            (0, log_ms) => now_ms + log_ms,
            (_, 0) => now_ms + LASTING_MS,
            (_, log_ms) => now_ms + log_ms.min(LASTING_MS),
        };
        self.watch_pins_at(cx, id, due_ms);
    }

    fn watch_pins_at(&mut self, cx: &mut Cx<'_, N>, id: PoolId, due_ms: u64) {
        let Some(pool) = self.pool(id) else { return };
        if due_ms < pool.watched_ms {
            pool.watched_ms = due_ms;
            cx.wheel.insert(due_ms, Tag::of_pins(W::PROTOCOL, id.0).pack());
        }
    }

    /// Looks at all clients of a pool that keep their servers on this worker: by a timer, and when the
    /// settings have changed.
    pub(super) fn look_at_pins(&mut self, cx: &mut Cx<'_, N>, id: PoolId) {
        let (now_ms, log_ms) = (cx.now_ms(), cx.settings.timeouts.log_pins_after_ms);
        let Some(pool) = self.pool(id) else { return };
        pool.watched_ms = u64::MAX;
        let (entry, may_leave) = (pool.entry.clone(), pool.spec.pinned_size > 0);
        let others_wait = entry.shared.longest_waiting() != NOBODY;
        let (mut next_ms, mut has_room) = (u64::MAX, false);
        for (server, client, in_case) in self.pinned_clients(id) {
            let Some(held) = self.servers.get_mut(server) else { continue };
            let since_ms = if in_case { now_ms } else { held.since_ms };
            let (aside, logged) = (held.post.is_aside(), held.is.pin_logged);
            let is_due = |after_ms: u64| now_ms >= since_ms + after_ms;
            if may_leave && !aside {
                if is_due(LASTING_MS) {
                    let set_aside = self.books().set_aside(client);
                    has_room |= self.sound(set_aside).unwrap_or_default();
                } else {
                    next_ms = next_ms.min(since_ms + LASTING_MS);
                }
            }
            if log_ms > 0 && !logged {
                if is_due(log_ms) && others_wait {
                    self.log_pin(cx, server, client);
                } else {
                    next_ms = next_ms.min((since_ms + log_ms).max(now_ms + LOOK_MS));
                }
            }
        }
        if has_room {
            self.todo.push_back(Order::Freed(entry));
        }
        if next_ms != u64::MAX {
            self.watch_pins_at(cx, id, next_ms);
        }
    }

    /// A client keeps its server for these reasons; for those `before` it did already. What the operator
    /// wants to know of them is logged, but not again and again.
    pub(super) fn note_pins(&mut self, cx: &mut Cx<'_, N>, id: PoolId, key: Key, before: Pins, pins: Pins) {
        if before.is_empty() {
            self.watch_pins(cx, id);
        }
        let now_ms = cx.now_ms();
        let policies = self.pool(id).map_or_else(PinPolicies::default, |pool| pool.spec.pins);
        for pin in policies.tells(pins).iter().filter(|&pin| !before.contains(pin)) {
            let Some(pool) = self.pool(id) else { continue };
            let again_ms = pool.warned_ms.entry(pin).or_default();
            if now_ms < *again_ms {
                continue;
            }
            *again_ms = now_ms + WARN_PAUSE_MS;
            let (reason, statement) = (pin.label(), self.cause_of(key));
            log_client!(
                warn,
                self,
                cx,
                key,
                reason,
                statement,
                "client is pinned: it keeps its server beyond the transaction"
            );
        }
    }

    /// The servers of this worker that clients keep, those clients, and whether they do so only in case they
    /// ask something next: that ends by itself while others wait.
    fn pinned_clients(&mut self, id: PoolId) -> Vec<(Key, Key, bool)> {
        let held = self.servers.iter().filter(|(_, server)| server.pool == id);
        let leased = held.filter_map(|(server, held)| match held.state() {
            ServerState::Leased(client) => Some((server, client)),
            _ => None,
        });
        let leased: Vec<(Key, Key)> = leased.collect();
        let pinned = leased.into_iter().filter_map(|(server, client)| {
            let held = self.clients.get_mut(client).filter(|held| !held.claim.pinned().is_empty())?;
            let in_case = held.front().is_some_and(|front| front.is_kept_in_case());
            Some((server, client, in_case))
        });
        pinned.collect()
    }

    fn log_pin(&mut self, cx: &Cx<'_, N>, server: Key, client: Key) {
        let Some(held) = self.servers.get_mut(server) else { return };
        held.is.pin_logged = true;
        let held_s = cx.now_ms().saturating_sub(held.since_ms) / 1_000;
        let reasons = self.pins(client).iter().map(|pin| pin.label()).collect::<Vec<_>>().join(",");
        let statement = self.cause_of(client);
        log_client!(
            warn,
            self,
            cx,
            client,
            reasons,
            held_s,
            statement,
            "client keeps its server because of a pin while others wait"
        );
    }
}
