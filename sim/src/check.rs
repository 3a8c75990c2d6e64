//! The invariants that hold after each step of each worker.
//!
//! Owns: the last state seen. Must not know: how to correct anything.

use crate::network::Network;
use std::collections::BTreeMap;
use weir_proxy::audit::{Audit, PoolAudit};

/// A waiter may stand beside a free server or free room for as long as it takes word to travel: letters,
/// stalls and turns of some milliseconds each. Longer means that nobody will ever wake it.
const PATIENCE_NS: u64 = 2_000_000_000;

/// A pool's protocol and its number there.
type PoolId = (&'static str, u32);

/// What was seen.
#[derive(Default)]
pub struct Checker {
    last: Vec<Option<Audit>>,
    /// By pool: servers open and their limit, as last seen.
    shared: BTreeMap<PoolId, (usize, usize)>,
    /// The same of limits that several pools share, by name.
    caps: BTreeMap<String, (usize, usize)>,
    /// By pool: since when somebody waits who could be served.
    stuck: BTreeMap<PoolId, u64>,
    /// Most servers of one pool that were open at once.
    pub most_opened: usize,
}

impl Checker {
    /// Nothing seen yet.
    pub fn new(workers: usize) -> Self {
        Checker { last: vec![None; workers], ..Checker::default() }
    }

    /// A worker has taken its turn.
    pub fn after_turn(&mut self, worker: usize, audit: Audit, network: &mut Network) -> Result<(), String> {
        let sockets = network.sockets_of(worker);
        let known = audit.clients + audit.servers + audit.cancellers;
        if sockets != known {
            return Err(format!("worker {worker} has {sockets} sockets open and knows of {known}"));
        }
        for pool in &audit.pools {
            // A limit may be lowered below what is open, also in the turn in which that was opened; but
            // nothing is opened over the old limit and the new one.
            let before = self.shared.get(&pool.id).map_or(0, |&(opened, limit)| opened.max(limit));
            if pool.opened > pool.limit && pool.opened > before {
                return Err(format!("pool {:?} has {} servers of {}", pool.id, pool.opened, pool.limit));
            }
            self.shared.insert(pool.id, (pool.opened, pool.limit));
            for (name, opened, limit) in &pool.caps {
                let before = self.caps.get(name).map_or(0, |&(opened, limit)| opened.max(limit));
                if opened > limit && *opened > before {
                    return Err(format!("{name} has {opened} servers of {limit}"));
                }
                self.caps.insert(name.clone(), (*opened, *limit));
            }
            self.most_opened = self.most_opened.max(pool.opened);
        }
        if let Some(before) = &self.last[worker] {
            in_order(before, &audit)?;
        }
        self.last[worker] = Some(audit);
        self.nobody_is_forgotten(network.now_ns)
    }

    /// A worker has ended.
    pub fn worker_over(&mut self, worker: usize) {
        self.last[worker] = None;
    }

    fn pools(&self) -> impl Iterator<Item = &PoolAudit> {
        self.last.iter().flatten().flat_map(|audit| &audit.pools)
    }

    /// Nobody waits beside an idle server or beside room for one more.
    fn nobody_is_forgotten(&mut self, now_ns: u64) -> Result<(), String> {
        let ids: std::collections::BTreeSet<PoolId> = self.pools().map(|pool| pool.id).collect();
        for id in ids {
            let idle: usize = self.pools().filter(|pool| pool.id == id).map(|pool| pool.idle).sum();
            let waits = |pool: &&PoolAudit| pool.id == id && !pool.waiting.is_empty();
            let waiting = self.pools().filter(waits).count() > 0;
            let (opened, limit) = self.shared.get(&id).copied().unwrap_or_default();
            // Under a limit that is reached, an idle server of another pool gives way.
            let full = |name: &str| self.caps.get(name).is_some_and(|&(opened, limit)| opened >= limit);
            let gives_way = |pool: &PoolAudit| {
                pool.caps.iter().filter(|(name, ..)| full(name)).all(|(name, ..)| {
                    self.pools().any(|other| {
                        let gives = other.id != id && other.idle > 0 && !other.keeps;
                        gives && other.caps.iter().any(|cap| cap.0 == *name)
                    })
                })
            };
            // A worker that pauses after a failed connect, or has connects under way, does what it can.
            let could_open = self.pools().filter(waits).any(|pool| {
                pool.connecting < pool.waiting.len()
                    && !pool.tries_one
                    && now_ns / 1_000_000 > pool.retry_at_ms
                    && opened < limit
                    && gives_way(pool)
            });
            let beside_idle =
                idle > 0 && self.pools().filter(waits).any(|pool| pool.connecting < pool.waiting.len());
            if !(waiting && (beside_idle || could_open)) {
                self.stuck.remove(&id);
                continue;
            }
            let since_ns = *self.stuck.entry(id).or_insert(now_ns);
            if now_ns - since_ns > PATIENCE_NS {
                let state: Vec<_> = self.pools().filter(|pool| pool.id == id).collect();
                return Err(format!("somebody waits beside {idle} idle servers, or room: {state:?}"));
            }
        }
        Ok(())
    }

    /// The run is over and all clients have gone: nothing may be left but clean idle servers.
    pub fn at_end(&self, transfers: usize) -> Result<(), String> {
        let audits = || self.last.iter().flatten();
        let clients: usize = audits().map(|audit| audit.clients).sum();
        let cancellers: usize = audits().map(|audit| audit.cancellers).sum();
        if clients + cancellers > 0 {
            return Err(format!("{clients} clients and {cancellers} cancels are left at the end"));
        }
        let mut totals: BTreeMap<PoolId, (usize, usize, usize)> = BTreeMap::new();
        for pool in self.pools() {
            let total = totals.entry(pool.id).or_default();
            total.0 += pool.servers;
            total.1 += pool.idle;
            total.2 = self.shared.get(&pool.id).map_or(0, |&(opened, _)| opened);
        }
        for (id, (servers, idle, opened)) in totals {
            if servers != idle || transfers > 0 {
                return Err(format!(
                    "pool {id:?} has {servers} servers at the end and {idle} are idle, {transfers} under way"
                ));
            }
            if servers != opened {
                return Err(format!("pool {id:?} believes to have {opened} servers and has {servers}"));
            }
        }
        Ok(())
    }
}

/// Whoever got a server in this turn had waited longer than those who still wait. Only a place among the
/// requests of others may be had before somebody older who wants a server alone; and whoever waits for the
/// server that knows what it asks is passed over by others.
fn in_order(before: &Audit, after: &Audit) -> Result<(), String> {
    for pool in &before.pools {
        let Some(now) = after.pools.iter().find(|now| now.id == pool.id) else { continue };
        let stays =
            |entry: &&(u64, u64, bool)| now.waiting.contains(entry) && !now.awaiting.contains(&entry.0);
        let still: Vec<_> = pool.waiting.iter().filter(stays).collect();
        // A server that was opened with a client's own parameters is for that one, whoever is older.
        let by_turn = |client: &u64| now.leased.contains(client) && !pool.choosy.contains(client);
        let served = pool.waiting.iter().filter(|(client, ..)| by_turn(client));
        for &(client, later_ns, shares) in served {
            let older = still.iter().find(|(_, since_ns, other)| later_ns > *since_ns && (*other || !shares));
            if let Some((oldest, ..)) = older {
                let (a, b) = (client & 0xffff_ffff, oldest & 0xffff_ffff);
                return Err(format!("client {a} was served before client {b}, who had waited longer"));
            }
        }
    }
    Ok(())
}
