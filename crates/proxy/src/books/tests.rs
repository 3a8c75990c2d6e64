//! The books alone, compared with a model: what may happen in any order, and what may not.
//!
//! `WEIR_BOOKS_STEPS` sets the number of steps: a million in CI.

use super::{
    Books, Claim, Claimant, Fit, GroupId, HAND_OVER_NS, Holding, Next, Pool, Post, ServerState, Tenant, Want,
};
use crate::ids::{Arena, Key};
use crate::pool::registry::tests::spec;
use crate::pool::{Opening, PoolId, Registry, Right, shared::NOBODY};
use crate::settings::PoolSpec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use weir_metrics::Metrics;
use weir_wire::{Pin, Pins};

mod aside;
mod next;

/// Steps of one walk.
const WALK: usize = 2_000;
/// Clients, and servers that the pool may have.
const CLIENTS: usize = 12;
const LIMIT: usize = 5;
/// Servers set aside that do not count against that.
const ALLOWANCE: usize = 2;

struct Guest {
    claim: Claim,
    pool: Option<PoolId>,
}

struct Host {
    post: Post,
    pool: PoolId,
    /// Its place under the limit, given back when it goes.
    _right: Option<Right<()>>,
}

impl Claimant for Guest {
    fn claim(&self) -> &Claim {
        &self.claim
    }
    fn claim_mut(&mut self) -> &mut Claim {
        &mut self.claim
    }
    fn pool(&self) -> Option<PoolId> {
        self.pool
    }
}

impl Tenant for Host {
    fn post(&self) -> &Post {
        &self.post
    }
    fn post_mut(&mut self) -> &mut Post {
        &mut self.post
    }
    fn pool(&self) -> PoolId {
        self.pool
    }
}

/// A worker's books, and beside them what should stand there.
struct House {
    clients: Arena<Guest>,
    servers: Arena<Host>,
    pools: Vec<Option<Box<Pool<()>>>>,
    /// What each client should have.
    holding: BTreeMap<Key, Holding>,
    /// What each server should be.
    state: BTreeMap<Key, ServerState>,
    /// Cancels that may hit a server.
    held: BTreeMap<Key, u32>,
    /// Those who should wait, in the order in which they came.
    queue: Vec<(u64, Key)>,
    /// Idle servers, as they came.
    idle: Vec<Key>,
    pinned: BTreeMap<Key, bool>,
    /// Clients whose servers should be set aside.
    aside: BTreeSet<Key>,
    /// Those who ask for others, and for which.
    leads: BTreeMap<Key, GroupId>,
    /// Who has begun to follow, in the order in which they did.
    followed: BTreeMap<GroupId, Vec<Key>>,
    now_ns: u64,
}

impl House {
    fn new() -> Self {
        let entry = Registry::<()>::new(1).enter(PoolSpec { size: LIMIT, pinned_size: ALLOWANCE, ..spec() });
        let cells = Metrics::new(1, &["postgres"]).pool(0, "postgres", "app", "me");
        let id = entry.id;
        let mut pools = Vec::new();
        pools.resize_with(id.0 as usize, || None);
        pools.push(Some(Box::new(Pool::new(entry, 0, cells))));
        let mut house = House {
            clients: Arena::default(),
            servers: Arena::default(),
            pools,
            holding: BTreeMap::new(),
            state: BTreeMap::new(),
            held: BTreeMap::new(),
            queue: Vec::new(),
            idle: Vec::new(),
            pinned: BTreeMap::new(),
            aside: BTreeSet::new(),
            leads: BTreeMap::new(),
            followed: BTreeMap::new(),
            now_ns: 1,
        };
        for _ in 0..CLIENTS {
            let client = house.clients.insert(Guest { claim: Claim::default(), pool: Some(id) });
            house.holding.insert(client, Holding::Nothing);
            house.pinned.insert(client, false);
        }
        house
    }

    fn books(&mut self) -> Books<'_, Guest, Host, ()> {
        Books::of(&mut self.clients, &mut self.servers, &mut self.pools)
    }

    fn pool(&self) -> &Pool<()> {
        self.pools.iter().flatten().next().expect("there is one")
    }

    fn nth<T>(of: &BTreeMap<Key, T>, n: u8) -> Option<Key> {
        of.keys().nth(usize::from(n) % of.len().max(1)).copied()
    }

    fn riders(&self, server: Key) -> usize {
        self.holding
            .values()
            .filter(|it| matches!(it, Holding::Riding { server: on, .. } if *on == server))
            .count()
    }

    fn held(&self, server: Key) -> bool {
        self.held.get(&server).is_some_and(|&held| held > 0)
    }

    fn moves(&mut self, server: Key, to: ServerState) {
        self.idle.retain(|&idle| idle != server);
        if to == ServerState::Idle {
            self.idle.push(server);
        }
        self.state.insert(server, to);
    }

    fn unpin(&mut self, client: Key) {
        self.pinned.insert(client, false);
        self.aside.remove(&client);
    }

    /// The next in line, by the model.
    fn next(&self) -> Option<Key> {
        self.queue.iter().min_by_key(|&&(since, _)| since).map(|&(_, client)| client)
    }

    /// One thing happens, possible or not. Afterwards the books say what the model says.
    fn step(&mut self, (what, who, which): (u8, u8, u8)) {
        self.now_ns += u64::from(which % 3) * 1_000_000;
        let client = Self::nth(&self.holding, who).expect("there are clients");
        let Some(server) = Self::nth(&self.state, which) else { return self.dial() };
        let (has, is) = (self.holding[&client], self.state[&server]);
        match what % 27 {
            0 | 1 => self.dial(),
            2 | 3 => {
                let may = is == ServerState::Login;
                assert_eq!(self.books().logged_in(server).is_ok(), may);
                if may {
                    self.moves(server, ServerState::Cleaning);
                }
            }
            4 | 5 => self.want(client, which),
            6 => self.queue(client),
            7 => {
                assert_eq!(self.books().leave_queue(client), matches!(has, Holding::Waiting(_)));
                self.leaves_queue(client);
            }
            8 => {
                let wanted = self.books().forget(client);
                if let Holding::Wanting(want) | Holding::Waiting(want) | Holding::Following { want, .. } = has
                {
                    assert_eq!(wanted, Some(want));
                    self.queue.retain(|&(_, it)| it != client);
                    self.holding.insert(client, Holding::Nothing);
                }
            }
            // As the hall does it: whoever has waited longest gets what is free.
            9 | 10 => self.offer(server, who, which),
            // And as it must not.
            11 => self.lease(server, client),
            12 => {
                let released = self.books().release(client);
                assert_eq!(released, if let Holding::Leased(server) = has { Some(server) } else { None });
                if let Some(server) = released {
                    self.holding.insert(client, Holding::Nothing);
                    self.unpin(client);
                    self.moves(server, ServerState::Cleaning);
                }
            }
            13 => {
                let may = is == ServerState::Cleaning && !self.held(server);
                assert_eq!(self.books().rest(server).is_ok(), may);
                if may {
                    self.moves(server, ServerState::Idle);
                }
            }
            14 => {
                let may = match is {
                    ServerState::Idle | ServerState::Cleaning => true,
                    ServerState::Shared => self.riders(server) == 0,
                    ServerState::Login | ServerState::Leased(_) => false,
                };
                assert_eq!(self.books().clean(server).is_ok(), may);
                if may {
                    self.moves(server, ServerState::Cleaning);
                }
            }
            15 => {
                let may = matches!(is, ServerState::Idle | ServerState::Cleaning) && !self.held(server);
                assert_eq!(self.books().share(server).is_ok(), may);
                if may {
                    self.moves(server, ServerState::Shared);
                }
            }
            16 => self.convert(server, is),
            17 | 18 => self.ride(server, client),
            19 => match who % 2 {
                0 => {
                    let on = self.books().alight(client);
                    if let Holding::Riding { server, len } = has {
                        assert_eq!(on, Some((server, len)));
                        self.holding.insert(client, Holding::Nothing);
                    }
                }
                _ => {
                    let back = self.books().take_back(client);
                    if let Holding::Riding { server, len: len @ 1.. } = has {
                        assert_eq!(back, Some(server));
                        let want = Want::Request { len, whole: true, shares: false };
                        self.holding.insert(client, Holding::Wanting(want));
                    } else {
                        assert_eq!(back, None);
                    }
                }
            },
            20 => self.seclude(server, client),
            22 | 23 => self.follow(client, Self::nth(&self.holding, which).expect("there are clients")),
            24 => {
                let (unfollows, follows) =
                    (self.books().unfollow(client), matches!(has, Holding::Following { .. }));
                assert_eq!(unfollows, follows);
                if let Holding::Following { want, .. } = has {
                    self.holding.insert(client, Holding::Wanting(want));
                }
            }
            25 => {
                let answered = self.books().answered(client);
                if let Holding::Following { want: Want::Request { len, .. }, .. } = has {
                    assert_eq!(answered, Some(len));
                    self.holding.insert(client, Holding::Nothing);
                } else {
                    assert_eq!(answered, None);
                }
            }
            26 => self.scatter(client),
            _ => self.other(client, server, who),
        }
    }

    /// A client would wait for the answer to what another one asks.
    fn follow(&mut self, client: Key, leader: Key) {
        let whole = |want: Want| matches!(want, Want::Request { whole: true, .. });
        let follows = self.books().follow(client, leader);
        match (self.holding[&client], self.holding[&leader]) {
            (Holding::Wanting(want), Holding::Waiting(led)) if whole(want) && whole(led) => {
                let group = follows.expect("the other one waits");
                let is_new = !self.leads.contains_key(&leader);
                assert!(
                    self.leads.values().all(|other| *other != group) || !is_new,
                    "a group has one leader"
                );
                assert_eq!(*self.leads.entry(leader).or_insert(group), group);
                self.followed.entry(group).or_default().push(client);
                self.holding.insert(client, Holding::Following { group, want });
            }
            _ => assert!(follows.is_err(), "nobody follows one who does not wait"),
        }
    }

    /// A client asks for others no more: each of those gets its turn once.
    fn scatter(&mut self, leader: Key) {
        let group = self.books().leads_no_more(leader);
        assert_eq!(group, self.leads.remove(&leader));
        let (Some(group), id) = (group, self.pool().entry.id) else { return };
        for client in self.followed.remove(&group).unwrap_or_default() {
            let Holding::Following { group: of, want } = self.holding[&client] else { continue };
            if of == group {
                assert_eq!(self.books().next_follower(id, group), Some(client), "the first one is first");
                assert!(self.books().unfollow(client));
                self.holding.insert(client, Holding::Wanting(want));
            }
        }
        assert_eq!(self.books().next_follower(id, group), None);
        assert_eq!(self.pool().followers(group).count(), 0);
    }

    fn dial(&mut self) {
        let entry = self.pool().entry.clone();
        match Right::take(&entry) {
            Ok(right) => {
                assert!(self.state.len() < self.limit(), "the limit is exceeded");
                let host = Host { post: Post::connecting(None), pool: entry.id, _right: Some(right) };
                let server = self.books().enter(host);
                self.state.insert(server, ServerState::Login);
            }
            Err(full) => {
                assert!(full == Opening::PoolIsFull && self.state.len() >= self.limit());
            }
        }
    }

    fn limit(&self) -> usize {
        LIMIT + self.aside.len().min(ALLOWANCE)
    }

    /// A client keeps its server for long, or was thought to.
    fn set_aside(&mut self, client: Key) {
        let (before, may) = (self.limit(), self.pinned[&client]);
        let was = self.aside.contains(&client);
        if may {
            self.aside.insert(client);
        }
        match self.books().set_aside(client) {
            Ok(grows) => assert_eq!((may, grows), (true, !was && self.limit() > before)),
            Err(_) => assert!(!may),
        }
    }

    fn want(&mut self, client: Key, which: u8) {
        let want = match which % 5 {
            0 => Want::Welcome,
            n => Want::Request { len: u32::from(n), whole: n > 1, shares: n > 2 },
        };
        let may = self.holding[&client] == Holding::Nothing;
        assert_eq!(self.books().want(client, want).is_ok(), may);
        if may {
            let now_ns = self.now_ns;
            self.books().wants_since(client, now_ns);
            self.holding.insert(client, Holding::Wanting(want));
        }
    }

    fn queue(&mut self, client: Key) {
        let has = self.holding[&client];
        assert_eq!(self.books().queue(client).is_ok(), matches!(has, Holding::Wanting(_)));
        if let Holding::Wanting(want) = has {
            self.stands(client, want);
        }
    }

    /// Those of the same time: alone before sharing, then as they came.
    fn stands(&mut self, client: Key, want: Want) {
        let since_ns = self.clients.get(client).expect("is there").claim.since_ns();
        self.queue.push((since_ns, client));
        self.holding.insert(client, Holding::Waiting(want));
        let holding = &self.holding;
        let shares = |key: &Key| matches!(holding[key], Holding::Waiting(Want::Request { shares: true, .. }));
        self.queue.sort_by_key(|(since, key)| (*since, shares(key)));
    }

    fn leaves_queue(&mut self, client: Key) {
        if let Holding::Waiting(want) = self.holding[&client] {
            self.queue.retain(|&(_, it)| it != client);
            self.holding.insert(client, Holding::Wanting(want));
        }
    }

    fn lease(&mut self, server: Key, client: Key) {
        let free = match self.state[&server] {
            ServerState::Idle | ServerState::Cleaning => !self.held(server),
            ServerState::Shared => self.riders(server) == 0,
            ServerState::Login | ServerState::Leased(_) => false,
        };
        let has = self.holding[&client];
        let may =
            free && !matches!(has, Holding::Leased(_) | Holding::Riding { .. } | Holding::Following { .. });
        let served = self.books().lease(server, client);
        assert_eq!(served.is_ok(), may, "{has:?}");
        if let Ok(served) = served {
            assert_eq!(served.waited_since_ns.is_some(), matches!(has, Holding::Waiting(_)));
            self.queue.retain(|&(_, it)| it != client);
            self.holding.insert(client, Holding::Leased(server));
            self.moves(server, ServerState::Leased(client));
        }
    }

    fn convert(&mut self, server: Key, is: ServerState) {
        if let ServerState::Leased(holder) = is
            && !self.pinned[&holder]
        {
            self.books().note_quick(holder, true);
            assert_eq!(self.books().convert(server), Ok(holder));
            self.holding.insert(holder, Holding::Riding { server, len: 0 });
            self.moves(server, ServerState::Shared);
        } else {
            assert!(self.books().convert(server).is_err());
        }
    }

    fn ride(&mut self, server: Key, client: Key) {
        let has = self.holding[&client];
        let may = self.state[&server] == ServerState::Shared
            && matches!(
                has,
                Holding::Wanting(Want::Request { whole: true, shares: true, .. })
                    | Holding::Waiting(Want::Request { whole: true, shares: true, .. })
            );
        let rides = self.books().ride(server, client);
        assert_eq!(rides.is_ok(), may);
        if let Ok((len, _)) = rides {
            self.queue.retain(|&(_, it)| it != client);
            self.holding.insert(client, Holding::Riding { server, len });
        }
    }

    fn seclude(&mut self, server: Key, client: Key) {
        let rides = matches!(self.holding[&client], Holding::Riding { server: on, .. } if on == server);
        let may = rides && self.riders(server) == 1;
        assert_eq!(self.books().seclude(server, client).is_ok(), may);
        if may {
            self.holding.insert(client, Holding::Leased(server));
            self.moves(server, ServerState::Leased(client));
        }
    }

    fn other(&mut self, client: Key, server: Key, who: u8) {
        match who % 5 {
            0 => {
                self.books().hold_for_cancel(server);
                *self.held.entry(server).or_default() += 1;
            }
            1 | 2 => {
                self.books().cancel_over(server);
                let held = self.held.entry(server).or_default();
                *held = held.saturating_sub(1);
            }
            3 if self.pinned[&client] || server.slot().is_multiple_of(4) => self.set_aside(client),
            3 if matches!(self.holding[&client], Holding::Leased(_)) => {
                let mut pins = Pins::NONE;
                pins.insert(Pin::TemporaryTable);
                self.books().pin(client, pins);
                self.pinned.insert(client, true);
            }
            3 => {
                let waits = matches!(self.holding[&client], Holding::Waiting(_));
                let claim = &self.clients.get(client).expect("is there").claim;
                let wants = claim.want().filter(|_| claim.follows().is_none());
                assert_eq!(self.books().want_alone(client).is_ok(), wants.is_some());
                // Whoever has waited alone before keeps its place among those of the same time.
                if let Some(Want::Request { len, whole, shares: true }) = wants {
                    let want = Want::Request { len, whole, shares: false };
                    self.leaves_queue(client);
                    self.holding.insert(client, Holding::Wanting(want));
                    if waits {
                        self.stands(client, want);
                    }
                }
            }
            // It is lost, with whoever has it; nobody rides on it by then.
            _ if self.riders(server) == 0 => {
                assert!(self.books().close(server).is_some());
                if let ServerState::Leased(holder) = self.state[&server] {
                    self.holding.insert(holder, Holding::Nothing);
                    self.unpin(holder);
                }
                self.idle.retain(|&idle| idle != server);
                self.state.remove(&server);
                self.held.remove(&server);
            }
            _ => {}
        }
    }

    /// The books say what the model says, and what they tell others is so.
    fn agree(&self) {
        for (&key, &holding) in &self.holding {
            let claim = &self.clients.get(key).expect("is there").claim;
            assert_eq!(claim.holding(), holding);
            assert_eq!(claim.pinned().is_empty(), !self.pinned[&key]);
            assert_eq!(claim.leads(), self.leads.get(&key).copied());
        }
        let following = self.holding.values().filter(|it| matches!(it, Holding::Following { .. })).count();
        assert_eq!(self.pool().following(), following);
        assert_eq!(self.servers.len(), self.state.len());
        let mut leased = 0;
        let mut riders = BTreeMap::new();
        for holding in self.holding.values() {
            if let Holding::Riding { server, .. } = holding {
                *riders.entry(*server).or_insert(0) += 1;
            }
        }
        for (&key, &state) in &self.state {
            let post = &self.servers.get(key).expect("is there").post;
            let carried = riders.get(&key).copied().unwrap_or(0);
            assert_eq!((post.state(), post.riders()), (state, carried));
            assert_eq!(post.is_held(), self.held(key));
            assert!(state == ServerState::Shared || carried == 0, "somebody rides on what is not shared");
            if let ServerState::Leased(client) = state {
                assert_eq!(self.holding[&client], Holding::Leased(key), "the two name each other");
                assert_eq!(post.is_aside(), self.aside.contains(&client));
                leased += 1;
            }
        }
        let holders = self.holding.values().filter(|it| matches!(it, Holding::Leased(_))).count();
        assert_eq!(holders, leased, "a server has one client");
        let pool = self.pool();
        let count =
            |wanted: &dyn Fn(ServerState) -> bool| self.state.values().filter(|&&it| wanted(it)).count();
        let connecting = count(&|it| it == ServerState::Login);
        let cells = &pool.cells;
        let gauges =
            [&cells.servers_connecting, &cells.servers_idle, &cells.servers_active, &cells.servers_cleaning];
        let there = [
            connecting,
            self.idle.len(),
            count(&|it| matches!(it, ServerState::Leased(_) | ServerState::Shared)),
            count(&|it| it == ServerState::Cleaning),
        ];
        assert_eq!(gauges.map(|gauge| gauge.get()), there.map(|n| n as i64));
        assert_eq!(cells.waiting_clients.get(), (self.queue.len() + following) as i64);
        assert_eq!(cells.pinned_servers.get(), self.pinned.values().filter(|&&it| it).count() as i64);
        assert_eq!((pool.len(), pool.connecting()), (self.state.len(), connecting));
        assert_eq!(pool.idle_keys(), self.idle);
        assert_eq!(pool.waiting_len(), self.queue.len(), "a waiter is lost");
        let oldest = self.queue.iter().map(|&(since, _)| since).min().unwrap_or(NOBODY);
        let told = pool.entry.shared.published(0);
        assert_eq!((told.0, told.1), (oldest, self.idle.len()));
        assert_eq!(pool.entry.shared.waiting(), self.queue.len());
        assert_eq!(pool.entry.shared.opened(), self.state.len());
        assert!(pool.entry.shared.opened() <= LIMIT + ALLOWANCE);
        assert_eq!((pool.aside(), pool.entry.shared.limit()), (self.aside.len(), self.limit()));
        assert_eq!(pool.entry.shared.is_over_limit(), self.state.len() > self.limit());
    }

    /// Whoever waits is served in the end, in the order of those who came.
    fn serve_all(&mut self) {
        let mut last_ns = 0;
        while let Some(next) = self.pool().oldest(&self.clients) {
            let since_ns = self.clients.get(next).expect("is there").claim.since_ns();
            assert!(since_ns >= last_ns, "somebody was passed over");
            last_ns = since_ns;
            assert!(self.books().forget(next).is_some());
            self.queue.retain(|&(_, it)| it != next);
            self.holding.insert(next, Holding::Nothing);
        }
        assert_eq!(self.queue, [], "somebody still waits and nobody knows");
        self.agree();
    }
}

fn walks() -> u32 {
    let steps = std::env::var("WEIR_BOOKS_STEPS").ok().and_then(|steps| steps.parse().ok());
    (steps.unwrap_or(1_000_000) / WALK).max(1) as u32
}

proptest! {
    #![proptest_config(ProptestConfig { cases: walks(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_books_agree_with_the_model(steps in proptest::collection::vec(any::<(u8, u8, u8)>(), WALK)) {
        let mut house = House::new();
        for step in steps {
            house.step(step);
            house.agree();
        }
        house.serve_all();
    }
}

fn waiter(house: &mut House, since_ns: u64, shares: bool) -> Key {
    let client = *house.holding.iter().find(|(_, has)| **has == Holding::Nothing).expect("one is free").0;
    let want = Want::Request { len: 1, whole: true, shares };
    house.books().want(client, want).expect("it has nothing");
    house.books().wants_since(client, since_ns);
    house.books().queue(client).expect("it wants something");
    house.holding.insert(client, Holding::Waiting(want));
    client
}

#[test]
fn whoever_waits_alone_keeps_its_place_when_it_wants_a_server_of_its_own() {
    let mut house = House::new();
    let first = waiter(&mut house, 7, false);
    let second = waiter(&mut house, 7, false);
    house.books().want_alone(first).expect("it waits");
    assert_eq!(house.pool().oldest(&house.clients), Some(first));
    house.books().forget(first);
    assert_eq!(house.pool().oldest(&house.clients), Some(second));
}

#[test]
fn a_queue_is_as_old_as_its_last_break() {
    let mut house = House::new();
    let entry = house.pool().entry.clone();
    assert_eq!(entry.shared.queue_since(0), NOBODY);
    let first = waiter(&mut house, 10, false);
    let second = waiter(&mut house, 20, true);
    house.books().forget(first);
    assert_eq!((entry.shared.queue_since(0), entry.shared.longest_waiting()), (10, 20));
    house.books().forget(second);
    assert_eq!(entry.shared.queue_since(0), NOBODY);
    waiter(&mut house, 30, false);
    assert_eq!(entry.shared.queue_since(0), 30);
}

#[test]
fn a_worker_asks_for_places_only_while_it_would_open_a_server() {
    let mut house = House::new();
    let entry = house.pool().entry.clone();
    let asks = || entry.shared.longest_lacking().is_some();
    assert!(!asks());
    let waiters = [10, 20].map(|since_ns| waiter(&mut house, since_ns, false));
    assert_eq!((asks(), house.pool().lacks()), (true, 2));
    house.dial();
    assert_eq!((asks(), house.pool().lacks()), (true, 1));
    house.dial();
    assert!(!asks(), "as many connects are under way as clients wait");
    for server in house.servers.keys() {
        house.books().close(server);
        house.state.clear();
    }
    house.pools.iter_mut().flatten().for_each(|pool| pool.pause(100));
    let mut may = |now_ms| house.pools.iter_mut().flatten().all(|pool| pool.may_connect(now_ms));
    assert!(!asks() && !may(99), "a connect has failed");
    assert!(may(100) && asks());
    assert_eq!(house.pool().lacks(), 1, "one tries the ground");
    house.dial();
    assert!(!asks());
    let server = house.servers.keys()[0];
    house.books().logged_in(server).expect("it was connecting");
    assert_eq!((asks(), house.pool().lacks()), (true, 2), "they still wait");
    for waiter in waiters {
        house.books().forget(waiter);
    }
    assert!(!asks());
}

#[test]
fn one_shared_server_after_the_other_is_emptied_for_who_wants_one_alone() {
    let mut house = House::new();
    let id = house.pool().entry.id;
    for _ in 0..2 {
        house.dial();
    }
    let [one, other] = [house.servers.keys()[0], house.servers.keys()[1]];
    for server in [one, other] {
        house.books().logged_in(server).expect("it was connecting");
        house.books().share(server).expect("it is free");
    }
    waiter(&mut house, 20, true);
    assert!(!house.books().must_drain(id, one, None), "who has waited longest takes any place");
    let alone = waiter(&mut house, 10, false);
    assert!(house.books().must_drain(id, one, None) && !house.books().must_drain(id, other, None));
    house.books().clean(one).expect("nobody rides on it");
    house.books().lease(one, alone).expect("it is free");
    assert!(!house.books().must_drain(id, other, None));
    let longer = Some((1, 20));
    assert!(!house.books().must_drain(id, other, longer), "they have waited as long");
    waiter(&mut house, 21, false);
    assert!(!house.books().must_drain(id, other, None), "an older one takes any place");
}

#[test]
fn a_server_that_is_emptied_stays_the_one_until_it_is_shared_no_more() {
    let (mut house, [one, other, third]) = with_servers();
    let id = house.pool().entry.id;
    for server in [one, other, third] {
        house.books().share(server).expect("it is free");
    }
    waiter(&mut house, 10, false);
    assert!(house.books().must_drain(id, one, None));
    assert_eq!(house.pool().draining(), Some(one));
    house.books().clean(third).expect("nobody rides on it");
    assert_eq!(house.pool().draining(), Some(one), "what becomes of another one changes nothing");
    house.books().share(third).expect("it is free");
    assert_eq!(house.pool().draining(), Some(one));
    assert!(!house.books().must_drain(id, other, None));
    house.books().clean(one).expect("nobody rides on it");
    assert_eq!(house.pool().draining(), None);
    assert!(house.books().must_drain(id, other, None), "the next one");
    house.books().close(other).expect("nobody rides on it");
    assert_eq!(house.pool().draining(), None, "nor one that is gone");
}

#[test]
fn of_two_that_came_at_once_the_one_that_wants_a_server_alone_is_first() {
    let mut house = House::new();
    let sharing = waiter(&mut house, 10, true);
    let alone = waiter(&mut house, 10, false);
    assert_eq!(house.pool().oldest(&house.clients), Some(alone));
    assert_eq!(house.pool().waiting(&house.clients).collect::<Vec<_>>(), [alone, sharing]);
}

#[test]
fn what_cannot_be_changes_nothing() {
    let mut house = House::new();
    house.dial();
    let server = house.servers.keys()[0];
    let [one, other] = [house.clients.keys()[0], house.clients.keys()[1]];
    assert!(house.books().lease(server, one).is_err(), "it is not logged in");
    house.books().logged_in(server).expect("it was connecting");
    house.books().lease(server, one).expect("it is free");
    let refused = house.books().lease(server, other).expect_err("one client has it");
    assert_eq!((refused.client, refused.server), (Some(other), Some(server)));
    assert_eq!(house.servers.get(server).expect("is there").post.state(), ServerState::Leased(one));
    assert_eq!(house.clients.get(other).expect("is there").claim.holding(), Holding::Nothing);
    assert!(house.books().rest(server).is_err() && house.books().share(server).is_err());
    house.books().release(one);
    house.books().hold_for_cancel(server);
    assert!(house.books().lease(server, other).is_err(), "a cancel may hit it");
}

// What the hall reads of the books and the model does not.

/// A house with these servers, logged in.
fn with_servers<const N: usize>() -> (House, [Key; N]) {
    let mut house = House::new();
    for _ in 0..N {
        house.dial();
    }
    let keys = house.servers.keys();
    let servers = std::array::from_fn(|n| keys[n]);
    for server in servers {
        house.books().logged_in(server).expect("it was connecting");
    }
    (house, servers)
}

fn claim(house: &House, client: Key) -> &Claim {
    &house.clients.get(client).expect("is there").claim
}

fn post(house: &House, server: Key) -> &Post {
    &house.servers.get(server).expect("is there").post
}

#[test]
fn a_claim_says_what_its_client_has_and_wants() {
    let (mut house, [one, other]) = with_servers();
    let [client, rider] = [house.clients.keys()[0], house.clients.keys()[1]];
    let has = |house: &House, client| {
        let claim = claim(house, client);
        (
            claim.lease(),
            claim.ride(),
            claim.server(),
            claim.want(),
            claim.is_waiting(),
            claim.is_served_later(),
        )
    };
    assert_eq!(has(&house, client), (None, None, None, None, false, false));
    let alone = Want::Request { len: 3, whole: false, shares: false };
    house.books().want(client, alone).expect("it has nothing");
    assert_eq!(has(&house, client), (None, None, None, Some(alone), false, true));
    assert!(!claim(&house, client).shares());
    house.books().wants_since(client, 7);
    house.books().queue(client).expect("it wants something");
    house.books().wants_since(client, 9);
    assert_eq!(claim(&house, client).since_ns(), 7, "who waits keeps its time");
    assert_eq!(has(&house, client), (None, None, None, Some(alone), true, true));
    house.books().lease(one, client).expect("it is free");
    assert_eq!(has(&house, client), (Some(one), None, Some(one), None, false, false));

    let shared = Want::Request { len: 4, whole: true, shares: true };
    house.books().want(rider, shared).expect("it has nothing");
    assert!(claim(&house, rider).shares());
    house.books().share(other).expect("it is free");
    assert_eq!(house.books().ride(other, rider), Ok((4, None)));
    assert_eq!(has(&house, rider), (None, Some(other), Some(other), None, false, true));
    assert_eq!((post(&house, other).riders(), post(&house, one).riders()), (1, 0));
    assert_eq!(house.books().alight(rider), Some((other, 4)));
}

#[test]
fn nobody_follows_one_whose_request_was_sent() {
    let (mut house, [server, _]) = with_servers();
    let [leader, second, late] = [0, 1, 2].map(|at| house.clients.keys()[at]);
    let request = Want::Request { len: 4, whole: true, shares: false };
    for client in [leader, second, late] {
        house.books().want(client, request).expect("it has nothing");
    }
    assert!(house.books().follow(second, leader).is_err(), "it does not wait yet");
    house.books().queue(leader).expect("it wants something");
    let group = house.books().follow(second, leader).expect("it waits");
    assert_eq!((claim(&house, leader).leads(), claim(&house, second).follows()), (Some(group), Some(group)));
    assert!(claim(&house, second).is_in_line() && !claim(&house, second).is_waiting());
    assert!(house.books().follow(late, second).is_err(), "who follows leads nobody");
    house.books().lease(server, leader).expect("it is free");
    assert!(house.books().follow(late, leader).is_err(), "its request was sent");
    assert_eq!(house.books().answered(second), Some(4));
    assert_eq!(house.books().leads_no_more(leader), Some(group));
    assert_eq!((claim(&house, leader).leads(), claim(&house, second).follows()), (None, None));
}

#[test]
fn only_a_quick_lease_that_nothing_ties_takes_up_others() {
    let (mut house, [server]) = with_servers();
    let client = house.clients.keys()[0];
    house.books().note_quick(client, true);
    assert!(!claim(&house, client).is_quick(), "it has no lease");
    house.books().lease(server, client).expect("it is free");
    assert!(!claim(&house, client).is_quick(), "a lease begins without a request");
    house.books().note_quick(client, true);
    assert!(claim(&house, client).is_quick());
    assert_eq!(house.books().pin(client, Pins::from(Pin::Listen)), Pins::NONE);
    assert!(!claim(&house, client).is_quick() && !claim(&house, client).pinned().is_empty());
    assert!(house.books().convert(server).is_err(), "it is tied to its client");
    assert_eq!(house.books().pin(client, Pins::NONE), Pins::from(Pin::Listen));
    house.books().note_quick(client, false);
    assert!(house.books().convert(server).is_err(), "its request is not quick");
}

#[test]
fn a_server_that_is_opened_for_somebody_is_meant_for_him_until_anybody_has_it() {
    let mut house = House::new();
    let client = house.clients.keys()[0];
    house.books().note_opening(client, true);
    assert!(claim(&house, client).is_opening());
    let pool = house.pool().entry.id;
    let host = Host { post: Post::connecting(Some(client)), pool, _right: None };
    let server = house.books().enter(host);
    assert_eq!(
        (post(&house, server).meant_for(), post(&house, server).state()),
        (Some(client), ServerState::Login)
    );
    house.books().logged_in(server).expect("it was connecting");
    assert_eq!(post(&house, server).meant_for(), Some(client));
    house.books().lease(server, client).expect("it is free");
    assert!(post(&house, server).meant_for().is_none() && !claim(&house, client).is_opening());
    assert_eq!(house.pool().cells.leases.get(), 1);
    let arriving = house.books().enter(Host { post: Post::arriving(), pool, _right: None });
    assert_eq!(
        (post(&house, arriving).meant_for(), post(&house, arriving).state()),
        (None, ServerState::Cleaning)
    );
}

#[test]
fn a_server_that_is_asked_for_its_catalogue_counts_as_one_to_come() {
    let (mut house, [one, other]) = with_servers();
    let entry = house.pool().entry.clone();
    let waiters = [10, 20].map(|since_ns| waiter(&mut house, since_ns, false));
    assert_eq!(house.pool().lacks(), 2);
    house.books().study_begins(one);
    house.books().study_begins(one);
    assert_eq!(house.pool().lacks(), 1, "it is one server, however often it is said");
    house.books().study_begins(other);
    assert!(house.pool().lacks() == 0 && entry.shared.longest_lacking().is_none());
    house.books().study_ends(other);
    house.books().study_ends(other);
    assert!(house.pool().lacks() == 1 && entry.shared.longest_lacking().is_some());
    house.books().close(one);
    assert_eq!(house.pool().lacks(), 2, "one that is gone does not come");
    house.pools.iter_mut().flatten().for_each(|pool| pool.pause(100));
    assert!(house.pools.iter_mut().flatten().all(|pool| pool.may_connect(100)));
    assert_eq!(house.pool().lacks(), 1);
    house.books().study_begins(other);
    assert_eq!(house.pool().lacks(), 0, "after a failure one at a time, whichever it is");
    for waiter in waiters {
        house.books().forget(waiter);
    }
}

#[test]
fn a_pause_ends_at_its_time_or_sooner_or_with_a_login() {
    let mut house = House::new();
    let mut pool = house.pools.pop().flatten().expect("there is one");
    assert_eq!((pool.failures(), pool.retry_at_ms(), pool.may_connect(0)), (0, 0, true));
    assert!(!pool.shorten_pause(0), "there is none");
    pool.pause(100);
    pool.pause(200);
    assert_eq!((pool.failures(), pool.retry_at_ms()), (2, 200));
    assert!(!pool.shorten_pause(200) && pool.shorten_pause(150));
    assert_eq!(pool.retry_at_ms(), 150);
    assert!(!pool.may_connect(149) && pool.may_connect(150) && pool.may_connect(0));
    assert!(!pool.shorten_pause(120), "it is over");
    pool.pause(300);
    pool.end_pause();
    assert_eq!((pool.failures(), pool.retry_at_ms(), pool.may_connect(0)), (0, 0, true));
}

#[test]
fn a_pool_lists_what_may_be_joined_and_what_is_idle() {
    let (mut house, [one, other]) = with_servers();
    let id = house.pool().entry.id;
    assert_eq!(
        (house.pool().joinable_at(0), house.pool().newest_idle(), house.pool().idle_len()),
        (None, None, 0)
    );
    house.books().rest(one).expect("it is free");
    house.books().rest(other).expect("it is free");
    assert_eq!((house.pool().newest_idle(), house.pool().idle_len()), (Some(other), 2));
    assert!(!house.pool().is_empty() && house.pool().len() == 2);
    for server in [one, other] {
        house.books().share(server).expect("it is free");
        house.books().list(server);
    }
    let joinable = |house: &House| [0, 1, 2].map(|at| house.pool().joinable_at(at));
    assert_eq!(joinable(&house), [Some(one), Some(other), None], "each stands there once");
    house.books().unlist(id, 0);
    assert_eq!(joinable(&house), [Some(other), None, None]);
    house.books().unlist(id, 1);
    assert_eq!(joinable(&house), [Some(other), None, None], "nobody stands there");
    house.books().list(one);
    assert_eq!(joinable(&house), [Some(other), Some(one), None]);
    assert_eq!((house.pool().sharing_len(), house.pool().waiting_len()), (0, 0));
    waiter(&mut house, 5, true);
    waiter(&mut house, 6, false);
    assert_eq!((house.pool().sharing_len(), house.pool().waiting_len()), (1, 2));
    for server in [one, other] {
        house.books().close(server);
    }
    assert!(house.pool().is_empty());
}

#[test]
fn a_worker_that_begins_anew_has_told_others_that_it_has_nothing() {
    let (mut house, [one, other]) = with_servers();
    let entry = house.pool().entry.clone();
    house.books().rest(one).expect("it is free");
    let client = house.clients.keys()[5];
    house.books().lease(other, client).expect("it is free");
    house.books().pin(client, Pins::from(Pin::Listen));
    assert_eq!((house.books().set_aside(client), entry.shared.limit()), (Ok(true), LIMIT + 1));
    house.dial();
    for since_ns in [10, 20, 30] {
        waiter(&mut house, since_ns, false);
    }
    let pool = house.pools.iter_mut().flatten().next().expect("there is one");
    pool.told_size = 3;
    pool.note_head(1_000_000);
    pool.cells.empty_transactions.add(2);
    assert!(pool.head_ns > 0);
    pool.begin_anew();
    assert_eq!(
        (pool.len(), pool.idle_len(), pool.waiting_len(), pool.connecting(), pool.lacks()),
        (0, 0, 0, 0, 0)
    );
    assert_eq!((pool.told_size, pool.head_ns), (3, 0));
    assert_eq!((pool.aside(), entry.shared.limit()), (0, LIMIT));
    let told = entry.shared.published(0);
    assert_eq!((told.0, told.1), (NOBODY, 0));
    assert_eq!((entry.shared.queue_since(0), entry.shared.waiting()), (NOBODY, 0));
    assert!(entry.shared.longest_lacking().is_none());
    let cells = &pool.cells;
    let gauges =
        [&cells.servers_connecting, &cells.servers_idle, &cells.servers_active, &cells.servers_cleaning];
    assert_eq!(gauges.map(|gauge| gauge.get()), [0; 4]);
    let of_clients = [&cells.waiting_clients, &cells.pinned_servers, &cells.empty_transactions];
    assert_eq!(of_clients.map(|gauge| gauge.get()), [0; 3]);
}

#[test]
fn who_is_refused_is_named() {
    let (mut house, [server, other]) = with_servers();
    let [one, two] = [house.clients.keys()[0], house.clients.keys()[1]];
    let refused = house.books().queue(one).expect_err("it wants nothing");
    assert_eq!((refused.client, refused.server), (Some(one), None));
    let refused = house.books().logged_in(server).expect_err("it is logged in");
    assert_eq!((refused.client, refused.server), (None, Some(server)));
    house.books().share(server).expect("it is free");
    let shared = Want::Request { len: 4, whole: true, shares: true };
    for client in [one, two] {
        house.books().want(client, shared).expect("it has nothing");
        house.books().ride(server, client).expect("it wants to");
    }
    let refused = house.books().seclude(server, one).expect_err("it does not ride alone");
    assert_eq!((refused.client, refused.server), (Some(one), Some(server)));
    assert!(house.books().clean(server).is_err() && house.books().lease(server, one).is_err());
    assert_eq!(house.books().take_back(two), Some(server));
    assert_eq!(claim(&house, two).want(), Some(Want::Request { len: 4, whole: true, shares: false }));
    assert!(house.books().seclude(other, one).is_err(), "it rides elsewhere");
    assert_eq!(house.books().seclude(server, one), Ok(4));
    assert_eq!(claim(&house, one).lease(), Some(server));
    house.books().forget(two);
    house.books().hold_for_cancel(other);
    house.books().hold_for_cancel(other);
    house.books().cancel_over(other);
    assert!(post(&house, other).is_held(), "one of two is still on its way");
    assert!(house.books().rest(other).is_err() && house.books().share(other).is_err());
    house.books().cancel_over(other);
    house.books().cancel_over(other);
    assert!(!post(&house, other).is_held());
}
