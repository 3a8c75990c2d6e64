//! Pools: the servers of one (database, user) and the queue in front of them.
//!
//! Owns: which servers are idle, who waits, the limit. Must not know: protocols, sockets, what a server
//! or a client is: it stores keys.

pub mod auto;
pub mod cap;
pub mod history;
pub mod place;
pub mod queue;
pub mod registry;
pub mod right;
pub mod shared;

pub use cap::{Cap, Standing};
pub use history::History;
pub use place::Place;
pub use queue::{Link, Linked, Queue};
pub use registry::{PoolEntry, PoolId, Registry};
pub use right::Right;
pub use shared::{Opening, PoolShared, Served};

use crate::ids::{Arena, Key};
use crate::settings::PoolSpec;
use std::sync::Arc;
use weir_metrics::PoolCells;

/// Others are told of so many missing servers at most: so a long queue, which lacks more than it can get,
/// need not tell of each client that comes and goes.
pub(crate) const LACKS_TOLD: usize = 16;

/// One worker's part of a pool.
#[derive(Debug)]
pub struct Pool<X> {
    /// What all workers know of it.
    pub entry: Arc<PoolEntry<X>>,
    /// Where its servers are, by the settings this worker has.
    pub spec: Arc<PoolSpec>,
    /// Idle servers; the most recently used is last and is used first.
    idle: Vec<Key>,
    /// Clients that wait for a server of their own.
    alone: Queue,
    /// Clients whose request may stand behind those of others.
    sharing: Queue,
    /// Servers that may carry further requests, as far as was known when they were listed.
    pub open: Vec<Key>,
    /// How long a request is at the head of its server before it is answered (nanoseconds), of late, as far
    /// as it could stand among others.
    pub head_ns: u64,
    /// Statements that took long, so that none stands behind one of them.
    pub history: History,
    /// The shared server that takes no more requests, so that it becomes free for who wants it alone.
    pub draining: Option<Key>,
    /// Connects and logins under way on this worker.
    connecting: usize,
    /// Servers of this worker that are free but for a question about the catalogue.
    studying: usize,
    /// Servers of this worker, in every state, connecting ones included.
    pub servers: usize,
    /// Connects that failed in a row.
    failures: u32,
    /// No connect before this time (milliseconds of the worker's clock).
    retry_at_ms: u64,
    /// That time has not come, as far as was looked.
    pauses: bool,
    /// What others were told that it lacks.
    told_lacks: u32,
    /// Which of the targets is tried next.
    pub next_target: usize,
    /// The size that was last added to its gauge, by the worker that keeps it.
    pub told_size: usize,
    worker: usize,
    /// What this worker counts for it.
    pub cells: Arc<PoolCells>,
}

impl<X> Pool<X> {
    /// A pool without servers.
    pub fn new(entry: Arc<PoolEntry<X>>, worker: usize, cells: Arc<PoolCells>) -> Self {
        Pool {
            spec: entry.spec(),
            entry,
            idle: Vec::new(),
            alone: Queue::default(),
            sharing: Queue::default(),
            open: Vec::new(),
            draining: None,
            head_ns: 0,
            history: History::default(),
            connecting: 0,
            studying: 0,
            servers: 0,
            failures: 0,
            retry_at_ms: 0,
            pauses: false,
            told_lacks: 0,
            next_target: 0,
            told_size: 0,
            worker,
            cells,
        }
    }

    /// All that this worker had of it is gone: others are told so, and it is as it was when the worker first
    /// met it.
    pub fn begin_anew(&mut self) {
        let shared = &self.entry.shared;
        shared.publish_oldest(self.worker, shared::NOBODY);
        shared.publish_queue(self.worker, shared::NOBODY);
        shared.publish_idle(self.worker, 0);
        shared.publish_lacks(self.worker, 0);
        shared.note_waiting(self.worker, 0);
        let now = [&self.cells.servers_connecting, &self.cells.servers_idle, &self.cells.servers_active];
        let now = now.into_iter().chain([&self.cells.servers_cleaning, &self.cells.waiting_clients]);
        now.chain([&self.cells.pinned_servers]).for_each(|gauge| gauge.set(0));
        let told_size = self.told_size;
        *self = Pool { told_size, ..Pool::new(self.entry.clone(), self.worker, self.cells.clone()) };
    }

    /// Idle servers on this worker.
    pub fn idle_len(&self) -> usize {
        self.idle.len()
    }

    /// Idle servers, the one used last at the end.
    pub fn idle_keys(&self) -> &[Key] {
        &self.idle
    }

    /// Notes how long a request was at the head.
    pub fn note_head(&mut self, took_ns: u64) {
        self.head_ns = history::usual_ns(self.head_ns, took_ns);
    }

    /// Clients that wait on this worker.
    pub fn waiting_len(&self) -> usize {
        self.alone.len() + self.sharing.len()
    }

    /// Those of them whose request may stand behind others.
    pub fn sharing_len(&self) -> usize {
        self.sharing.len()
    }

    /// A server is free and nobody wants it.
    pub fn put_idle(&mut self, server: Key) {
        self.idle.push(server);
        self.entry.shared.publish_idle(self.worker, self.idle.len());
    }

    /// The idle server that was used last.
    pub fn take_idle(&mut self) -> Option<Key> {
        let server = self.idle.pop()?;
        self.entry.shared.publish_idle(self.worker, self.idle.len());
        Some(server)
    }

    /// This server is no longer idle (it is closing). False when it was not.
    pub fn remove_idle(&mut self, server: Key) -> bool {
        let Some(at) = self.idle.iter().position(|&k| k == server) else { return false };
        self.idle.remove(at);
        self.entry.shared.publish_idle(self.worker, self.idle.len());
        true
    }

    /// Puts a client into the queue: at its end, or, when it has waited elsewhere before, where it belongs.
    pub fn wait<T: Linked>(
        &mut self,
        clients: &mut Arena<T>,
        client: Key,
        shares: bool,
        since: impl Fn(&T) -> u64,
    ) {
        let queue = if shares { &mut self.sharing } else { &mut self.alone };
        queue.insert(clients, client, &since);
        let is_oldest = queue.front(clients) == Some(client);
        self.entry.shared.note_waiting(self.worker, self.alone.len() + self.sharing.len());
        self.cells.waiting_clients.inc();
        if self.waiting_len() == 1 {
            let since_ns = clients.get(client).map_or(shared::NOBODY, &since);
            self.entry.shared.publish_queue(self.worker, since_ns);
        }
        if is_oldest {
            self.publish_oldest(clients, since);
        }
        self.publish_lacks();
    }

    /// The client that has waited longest.
    pub fn oldest<T>(&self, clients: &Arena<T>, since: impl Fn(&T) -> u64) -> Option<Key> {
        let since = |key: Key| clients.get(key).map_or(u64::MAX, &since);
        match (self.oldest_alone(clients), self.oldest_sharing(clients)) {
            (Some(alone), Some(sharing)) if since(sharing) < since(alone) => Some(sharing),
            (Some(alone), _) => Some(alone),
            (None, sharing) => sharing,
        }
    }

    /// The client that has waited longest for a server of its own.
    pub fn oldest_alone<T>(&self, clients: &Arena<T>) -> Option<Key> {
        self.alone.front(clients)
    }

    /// The client that has waited longest for any place.
    pub fn oldest_sharing<T>(&self, clients: &Arena<T>) -> Option<Key> {
        self.sharing.front(clients)
    }

    /// Takes a client out of the queue, from the front or from anywhere. False when it was not in it.
    pub fn stop_waiting<T: Linked>(
        &mut self,
        clients: &mut Arena<T>,
        client: Key,
        shares: bool,
        since: impl Fn(&T) -> u64,
    ) -> bool {
        let queue = if shares { &mut self.sharing } else { &mut self.alone };
        let was_oldest = queue.front(clients) == Some(client);
        let removed = queue.remove(clients, client);
        if removed {
            self.cells.waiting_clients.dec();
            self.entry.shared.note_waiting(self.worker, self.alone.len() + self.sharing.len());
            if self.waiting_len() == 0 {
                self.entry.shared.publish_queue(self.worker, shared::NOBODY);
            }
        }
        if was_oldest {
            self.publish_oldest(clients, since);
        }
        self.publish_lacks();
        removed
    }

    /// Servers that this worker would open for those who wait, if the limits allow.
    pub fn lacks(&self) -> usize {
        match self.failures {
            _ if self.pauses => 0,
            0 => self.waiting_len().saturating_sub(self.connecting + self.studying),
            // After a failure one connect at a time tries the ground.
            _ => usize::from(self.waiting_len() > 0 && self.connecting + self.studying == 0),
        }
    }

    /// Connects and logins under way on this worker.
    pub fn connecting(&self) -> usize {
        self.connecting
    }

    /// Connects that failed in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// No connect before this time (milliseconds of the worker's clock).
    pub fn retry_at_ms(&self) -> u64 {
        self.retry_at_ms
    }

    /// May a connect be tried at this time? Ends the pause after a failure when it is over.
    pub fn may_connect(&mut self, now_ms: u64) -> bool {
        if self.pauses && now_ms >= self.retry_at_ms {
            self.pauses = false;
            self.publish_lacks();
        }
        !self.pauses
    }

    /// A connect begins.
    pub fn connect_begins(&mut self) {
        self.servers += 1;
        self.connecting += 1;
        self.publish_lacks();
    }

    /// A connect is over without a server.
    pub fn connect_ends(&mut self) {
        self.servers -= 1;
        self.connecting -= 1;
        self.publish_lacks();
    }

    /// A server has logged in.
    pub fn connected(&mut self) {
        self.connecting -= 1;
        self.end_pause();
    }

    /// A server that was about to be free is asked for its catalogue first.
    pub fn study_begins(&mut self) {
        self.studying += 1;
        self.publish_lacks();
    }

    /// It has answered, or is gone.
    pub fn study_ends(&mut self) {
        self.studying = self.studying.saturating_sub(1);
        self.publish_lacks();
    }

    /// No further connect before this time (milliseconds of the worker's clock): one has failed.
    pub fn pause(&mut self, until_ms: u64) {
        self.failures = self.failures.saturating_add(1);
        self.retry_at_ms = until_ms;
        self.pauses = true;
        self.publish_lacks();
    }

    /// Somebody is there who would be told at once by the database itself: the pause, if there is one, ends
    /// at this time at the latest. Returns whether it was longer.
    pub fn shorten_pause(&mut self, until_ms: u64) -> bool {
        let shortens = self.pauses && until_ms < self.retry_at_ms;
        if shortens {
            self.retry_at_ms = until_ms;
        }
        shortens
    }

    /// There is reason to believe that the next connect succeeds.
    pub fn end_pause(&mut self) {
        self.failures = 0;
        self.retry_at_ms = 0;
        self.pauses = false;
        self.publish_lacks();
    }

    fn publish_lacks(&mut self) {
        let lacks = self.lacks().min(LACKS_TOLD) as u32;
        if lacks != self.told_lacks {
            self.told_lacks = lacks;
            self.entry.shared.publish_lacks(self.worker, lacks);
        }
    }

    fn publish_oldest<T>(&self, clients: &Arena<T>, since: impl Fn(&T) -> u64) {
        let oldest = self.oldest(clients, &since).and_then(|key| clients.get(key));
        self.entry.shared.publish_oldest(self.worker, oldest.map_or(shared::NOBODY, since));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::Metrics;

    #[derive(Default)]
    struct Waiter {
        link: Link,
        since_ns: u64,
    }

    impl Linked for Waiter {
        fn link_mut(&mut self) -> &mut Link {
            &mut self.link
        }
    }

    #[test]
    fn a_queue_is_as_old_as_its_last_break() {
        let entry = Registry::<()>::new(1).enter(registry::tests::spec());
        let cells = Metrics::new(1, &["postgres"]).pool(0, "postgres", "app", "me");
        let mut pool = Pool::new(entry.clone(), 0, cells);
        let mut clients = Arena::default();
        let keys = [10, 20, 30].map(|since_ns| clients.insert(Waiter { since_ns, ..Waiter::default() }));
        let since = |waiter: &Waiter| waiter.since_ns;
        assert_eq!(entry.shared.queue_since(0), shared::NOBODY);
        pool.wait(&mut clients, keys[0], false, since);
        pool.wait(&mut clients, keys[1], true, since);
        pool.stop_waiting(&mut clients, keys[0], false, since);
        assert_eq!((entry.shared.queue_since(0), entry.shared.longest_waiting()), (10, 20));
        pool.stop_waiting(&mut clients, keys[1], true, since);
        assert_eq!(entry.shared.queue_since(0), shared::NOBODY);
        pool.wait(&mut clients, keys[2], false, since);
        assert_eq!(entry.shared.queue_since(0), 30);
    }

    #[test]
    fn a_worker_asks_for_places_only_while_it_would_open_a_server() {
        let entry = Registry::<()>::new(1).enter(registry::tests::spec());
        let cells = Metrics::new(1, &["postgres"]).pool(0, "postgres", "app", "me");
        let mut pool = Pool::new(entry.clone(), 0, cells);
        let mut clients = Arena::default();
        let keys = [10, 20].map(|since_ns| clients.insert(Waiter { since_ns, ..Waiter::default() }));
        let asks = || entry.shared.longest_lacking().is_some();
        assert!(!asks());
        for key in keys {
            pool.wait(&mut clients, key, false, |waiter| waiter.since_ns);
        }
        assert_eq!((asks(), pool.lacks()), (true, 2));
        pool.connect_begins();
        assert_eq!((asks(), pool.lacks()), (true, 1));
        pool.connect_begins();
        assert!(!asks(), "as many connects are under way as clients wait");
        pool.connect_ends();
        pool.connect_ends();
        pool.pause(100);
        assert!(!asks() && !pool.may_connect(99), "a connect has failed");
        assert!(pool.may_connect(100) && asks());
        assert_eq!(pool.lacks(), 1, "one tries the ground");
        pool.connect_begins();
        assert!(!asks());
        pool.connected();
        assert_eq!((asks(), pool.lacks()), (true, 2), "they still wait");
        for key in keys {
            pool.stop_waiting(&mut clients, key, false, |waiter| waiter.since_ns);
        }
        assert!(!asks());
    }
}
