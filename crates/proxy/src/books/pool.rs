//! One worker's part of a pool: its idle servers, its queue, its connects.
//!
//! Owns: which servers are idle, who waits, and what other workers are told of both. Must not know:
//! protocols, sockets, what a server or a client is: it stores keys. Only the books change its lists and
//! counts.

use super::post::ServerState;
use super::questions::Questions;
use super::{Claimant, GroupId};
use crate::ids::{Arena, Key};
use crate::pool::{History, PoolEntry, Queue, history, shared};
use crate::settings::PoolSpec;
use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use weir_metrics::PoolCells;
use weir_wire::Pin;

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
    /// Who asks what, of those who wait, as far as is remembered.
    pub questions: Questions,
    /// Who waits for the answer to what another one asks. Those who have left since may still be listed.
    groups: HashMap<GroupId, VecDeque<Key>>,
    /// The number of the group that was made last.
    last_group: u32,
    /// Clients that follow.
    following: usize,
    /// Servers that may carry further requests, as far as was known when they were listed.
    joinable: Vec<Key>,
    /// How long a request is at the head of its server before it is answered (nanoseconds), of late, as far
    /// as it could stand among others.
    pub head_ns: u64,
    /// Statements that took long, so that none stands behind one of them.
    pub history: History,
    /// The shared server that takes no more requests, so that it becomes free for who wants it alone.
    pub(super) draining: Option<Key>,
    /// Connects and logins under way on this worker.
    connecting: usize,
    /// Servers of this worker that are free but for a question about the catalogue.
    studying: usize,
    /// Servers of this worker, in every state, connecting ones included.
    servers: usize,
    /// Those of them that are set aside.
    aside: usize,
    /// Earliest timer that is set to look at the clients that keep their servers; `u64::MAX`: none.
    pub watched_ms: u64,
    /// When clients that are pinned for a reason are logged again (milliseconds of the worker's clock).
    pub warned_ms: HashMap<Pin, u64>,
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
    /// The same for its servers beyond the size.
    pub told_outside: usize,
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
            questions: Questions::default(),
            groups: HashMap::new(),
            last_group: 0,
            following: 0,
            joinable: Vec::new(),
            draining: None,
            head_ns: 0,
            history: History::default(),
            connecting: 0,
            studying: 0,
            servers: 0,
            aside: 0,
            watched_ms: u64::MAX,
            warned_ms: HashMap::new(),
            failures: 0,
            retry_at_ms: 0,
            pauses: false,
            told_lacks: 0,
            next_target: 0,
            told_size: 0,
            told_outside: 0,
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
        shared.come_back(self.aside);
        let now = [&self.cells.servers_connecting, &self.cells.servers_idle, &self.cells.servers_active];
        let now = now.into_iter().chain([&self.cells.servers_cleaning, &self.cells.waiting_clients]);
        let held =
            [&self.cells.pinned_servers, &self.cells.empty_transactions, &self.cells.listening_clients];
        now.chain(held).for_each(|gauge| gauge.set(0));
        let (told_size, told_outside) = (self.told_size, self.told_outside);
        *self = Pool {
            told_size,
            told_outside,
            ..Pool::new(self.entry.clone(), self.worker, self.cells.clone())
        };
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

    /// Clients that wait for the answer to what another one asks; they stand in no queue.
    pub fn following(&self) -> usize {
        self.following
    }

    /// Servers of this worker, in every state, connecting ones included.
    pub fn len(&self) -> usize {
        self.servers
    }

    /// It has no server on this worker.
    pub fn is_empty(&self) -> bool {
        self.servers == 0
    }

    /// The idle server that was used last.
    pub fn newest_idle(&self) -> Option<Key> {
        self.idle.last().copied()
    }

    /// The server at this place in the list of those that may carry further requests.
    pub fn joinable_at(&self, at: usize) -> Option<Key> {
        self.joinable.get(at).copied()
    }

    /// The shared server that takes no more requests, so that it becomes free for who wants it alone.
    pub fn draining(&self) -> Option<Key> {
        self.draining
    }

    /// A server comes (from no state), changes its state, or goes (to none). The only place where the gauges
    /// of servers are written and the idle ones are listed.
    pub(super) fn moves(&mut self, server: Key, from: Option<ServerState>, to: Option<ServerState>) {
        if let Some(from) = from {
            from.gauge(&self.cells).dec();
        }
        if let Some(to) = to {
            to.gauge(&self.cells).inc();
        }
        self.servers = (self.servers + usize::from(to.is_some())) - usize::from(from.is_some());
        let was_connecting = usize::from(from == Some(ServerState::Login));
        let is_connecting = usize::from(to == Some(ServerState::Login));
        self.connecting = (self.connecting + is_connecting) - was_connecting;
        match (from == Some(ServerState::Idle), to == Some(ServerState::Idle)) {
            (false, true) => self.put_idle(server),
            (true, false) => self.remove_idle(server),
            (true, true) | (false, false) => {}
        }
        if self.draining == Some(server) && to != Some(ServerState::Shared) {
            self.draining = None;
        }
        if was_connecting + is_connecting > 0 {
            self.publish_lacks();
        }
    }

    fn put_idle(&mut self, server: Key) {
        self.idle.push(server);
        self.entry.shared.publish_idle(self.worker, self.idle.len());
    }

    fn remove_idle(&mut self, server: Key) {
        // Nearly always the last one.
        if let Some(at) = self.idle.iter().rposition(|&idle| idle == server) {
            self.idle.remove(at);
        }
        self.entry.shared.publish_idle(self.worker, self.idle.len());
    }

    /// A server may carry further requests.
    pub(super) fn list(&mut self, server: Key) {
        self.joinable.push(server);
    }

    /// The one at this place may not.
    pub(super) fn unlist(&mut self, at: usize) {
        self.joinable.swap_remove(at);
    }

    /// A client keeps its server beyond the boundary, or no longer.
    pub(super) fn pinned(&self, before: bool, now: bool) {
        match (before, now) {
            (false, true) => self.cells.pinned_servers.inc(),
            (true, false) => self.cells.pinned_servers.dec(),
            (true, true) | (false, false) => {}
        }
    }

    /// A server is kept for long. Returns whether another one may be opened in its place.
    pub(super) fn set_aside(&mut self) -> bool {
        self.aside += 1;
        let outside = self.entry.shared.inside_and_outside().1;
        self.entry.shared.set_aside();
        outside < self.entry.shared.allowance()
    }

    /// It is kept no longer.
    pub(super) fn come_back(&mut self) {
        debug_assert!(self.aside > 0);
        self.aside = self.aside.saturating_sub(1);
        self.entry.shared.come_back(1);
    }

    /// Servers of this worker that are set aside.
    pub fn aside(&self) -> usize {
        self.aside
    }

    /// The number of a group that nobody has.
    pub(super) fn new_group(&mut self) -> GroupId {
        loop {
            self.last_group = self.last_group.wrapping_add(1);
            if let Some(number) = NonZeroU32::new(self.last_group)
                && !self.groups.contains_key(&GroupId(number))
            {
                return GroupId(number);
            }
        }
    }

    /// A client waits for the answer to what another one asks.
    pub(super) fn follow(&mut self, group: GroupId, client: Key) {
        self.groups.entry(group).or_default().push_back(client);
        self.following += 1;
        self.count_waiting(1);
    }

    /// It does so no longer.
    pub(super) fn unfollow(&mut self) {
        debug_assert!(self.following > 0);
        self.following = self.following.saturating_sub(1);
        self.count_waiting(-1);
    }

    /// So many more clients wait, in the queue or for the answer to another one.
    fn count_waiting(&self, more: i64) {
        self.cells.waiting_clients.add(more);
    }

    /// Takes the one who came first out of the list of those who wait for this answer. The empty list goes,
    /// too.
    pub(super) fn next_follower(&mut self, group: GroupId) -> Option<Key> {
        let next = self.groups.get_mut(&group)?.pop_front();
        if next.is_none() {
            self.groups.remove(&group);
        }
        next
    }

    /// Those who wait for this answer, and some who do not any more.
    pub fn followers(&self, group: GroupId) -> impl Iterator<Item = Key> {
        self.groups.get(&group).into_iter().flatten().copied()
    }

    /// Puts a client into the queue: at its end, or, when it has waited elsewhere before, where it belongs.
    pub(super) fn wait<C: Claimant>(&mut self, clients: &mut Arena<C>, client: Key, shares: bool) {
        let queue = if shares { &mut self.sharing } else { &mut self.alone };
        queue.insert(clients, client, |client| client.claim().since_ns());
        let is_oldest = queue.front(clients) == Some(client);
        self.entry.shared.note_waiting(self.worker, self.alone.len() + self.sharing.len());
        self.count_waiting(1);
        if self.waiting_len() == 1 {
            self.entry.shared.publish_queue(self.worker, since_ns(clients, client));
        }
        if is_oldest {
            self.publish_oldest(clients);
        }
        self.publish_lacks();
    }

    /// The client that has waited longest.
    pub fn oldest<C: Claimant>(&self, clients: &Arena<C>) -> Option<Key> {
        let since = |key: Key| since_ns(clients, key);
        match (self.oldest_alone(clients), self.oldest_sharing(clients)) {
            (Some(alone), Some(sharing)) if since(sharing) < since(alone) => Some(sharing),
            (Some(alone), _) => Some(alone),
            (None, sharing) => sharing,
        }
    }

    /// All who wait, the one who has waited longest first.
    pub fn waiting<C: Claimant>(&self, clients: &Arena<C>) -> impl Iterator<Item = Key> {
        let mut alone = self.alone.keys(clients).peekable();
        let mut sharing = self.sharing.keys(clients).peekable();
        std::iter::from_fn(move || match (alone.peek(), sharing.peek()) {
            (Some(&one), Some(&other)) if since_ns(clients, other) < since_ns(clients, one) => sharing.next(),
            (Some(_), _) => alone.next(),
            (None, _) => sharing.next(),
        })
    }

    /// The client that has waited longest for a server of its own.
    pub fn oldest_alone<C>(&self, clients: &Arena<C>) -> Option<Key> {
        self.alone.front(clients)
    }

    /// The client that has waited longest for any place.
    pub fn oldest_sharing<C>(&self, clients: &Arena<C>) -> Option<Key> {
        self.sharing.front(clients)
    }

    /// Takes a client out of the queue, from the front or from anywhere. False when it was not in it.
    pub(super) fn stop_waiting<C: Claimant>(
        &mut self,
        clients: &mut Arena<C>,
        client: Key,
        shares: bool,
    ) -> bool {
        let queue = if shares { &mut self.sharing } else { &mut self.alone };
        let was_oldest = queue.front(clients) == Some(client);
        let removed = queue.remove(clients, client);
        if removed {
            self.count_waiting(-1);
            self.entry.shared.note_waiting(self.worker, self.alone.len() + self.sharing.len());
            if self.waiting_len() == 0 {
                self.entry.shared.publish_queue(self.worker, shared::NOBODY);
            }
        }
        if was_oldest {
            self.publish_oldest(clients);
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

    /// A server that was about to be free is asked for its catalogue first.
    pub(super) fn study_begins(&mut self) {
        self.studying += 1;
        self.publish_lacks();
    }

    /// It has answered, or is gone.
    pub(super) fn study_ends(&mut self) {
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

    fn publish_oldest<C: Claimant>(&self, clients: &Arena<C>) {
        let oldest = self.oldest(clients);
        let since_ns = oldest.map_or(shared::NOBODY, |oldest| since_ns(clients, oldest));
        self.entry.shared.publish_oldest(self.worker, since_ns);
    }
}

/// Since when a client waits; one that is gone has not.
fn since_ns<C: Claimant>(clients: &Arena<C>, client: Key) -> u64 {
    clients.get(client).map_or(shared::NOBODY, |client| client.claim().since_ns())
}
