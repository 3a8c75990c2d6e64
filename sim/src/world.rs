//! One run: workers, databases and clients, one step at a time.
//!
//! Owns: all participants, and the order in which they act. Must not know: protocols.
//!
//! Invariant: one thread, one clock, one stream of chance; the same seed gives the same run.

use crate::actor::{Order, Stage};
use crate::between::{self, take_turn};
use crate::check::Checker;
use crate::dice::Dice;
use crate::mysql::client::{Errand, MyClient};
use crate::mysql::session::MySession;
use crate::net::{Listener, Shared as Net, SimNet};
use crate::network::{EndId, Item, Network, Read, START_NS};
use crate::oracle::Oracle;
use crate::plan::{Fault, Plan, Wings};
use crate::post::Post;
use crate::postgres::client::PgClient;
use crate::postgres::session::PgSession;
use crate::routes::SimRoutes;
use arc_swap::ArcSwap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use weir_metrics::Metrics;
use weir_net::Event;
use weir_proxy::berths::Berths;
use weir_proxy::context::Shared;
use weir_proxy::greeting::Greetings;
use weir_proxy::mail::Mail;
use weir_proxy::panics::Panics;
use weir_proxy::pool::Registry;
use weir_proxy::settings::{Logged, Settings};
use weir_proxy::worker::{Door, Worker};
use weir_session::Protocol;
use weir_wire::FaultKind;

/// Steps of one run at most: more means that somebody runs in circles.
const STEPS: u64 = 2_000_000;
/// Virtual time a run may take while clients are at work.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Virtual time after the last client has gone in which everything must come to rest.
const REST_NS: u64 = 60_000_000_000;

/// Time that worker 1 waits to take a turn in the middle of one of worker 0's.
const BETWEEN_NS: u64 = 100_000_000;

/// How a run went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Steps of the agenda.
    pub steps: u64,
    /// Virtual milliseconds.
    pub elapsed_ms: u64,
    /// Logins that succeeded.
    pub logins: u64,
    /// Requests answered.
    pub answers: u64,
    /// Requests cancelled on purpose.
    pub cancelled: u64,
    /// Transactions' entries found in the databases.
    pub committed: u64,
    /// Clients that lost their server by a fault.
    pub losses: u64,
    /// Sessions that the databases have had.
    pub sessions: usize,
    /// Errors that Weir has counted as defects of its own.
    pub defects: i64,
    /// A hash of all bytes and times.
    pub fingerprint: u64,
}

enum Actor {
    PgClient(Box<PgClient>),
    PgSession(Box<PgSession>),
    MyClient(Box<MyClient>),
    MySession(Box<MySession>),
    Canceller(Canceller),
}

impl Actor {
    fn turn(&mut self, stage: &mut Stage<'_>) {
        match self {
            Actor::PgClient(client) => client.turn(stage),
            Actor::PgSession(session) if !session.over => session.turn(stage),
            Actor::MyClient(client) => client.turn(stage),
            Actor::MySession(session) if !session.over => session.turn(stage),
            Actor::PgSession(_) | Actor::MySession(_) => {}
            Actor::Canceller(canceller) => canceller.turn(stage),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Actor::PgClient(client) => client.over,
            Actor::PgSession(session) => session.over,
            Actor::MyClient(client) => client.over,
            Actor::MySession(session) => session.over,
            Actor::Canceller(canceller) => canceller.over,
        }
    }

    /// The client for which it carries a cancel request.
    fn cancels_for(&self) -> Option<u32> {
        match self {
            Actor::Canceller(canceller) => Some(canceller.client),
            Actor::MyClient(client) => client.kills_for,
            Actor::PgClient(_) | Actor::PgSession(_) | Actor::MySession(_) => None,
        }
    }

    /// It is one of the plan's clients.
    fn is_client(&self) -> bool {
        matches!(self, Actor::PgClient(_) | Actor::MyClient(_)) && self.cancels_for().is_none()
    }

    /// It is a living session of this database.
    fn is_session_of(&self, database: u32) -> bool {
        match self {
            Actor::PgSession(session) => session.database == database && !session.over,
            Actor::MySession(session) => session.database == database && !session.over,
            Actor::PgClient(_) | Actor::MyClient(_) | Actor::Canceller(_) => false,
        }
    }

    /// A session that nobody uses: its number, and what is left in it that another client must not meet.
    fn state_left(&self) -> Option<(u32, String)> {
        match self {
            Actor::PgSession(session) if !session.over => {
                session.engine.as_ref().and_then(|engine| Some((session.pid, engine.state_left()?)))
            }
            Actor::MySession(session) if !session.over => {
                session.engine.as_ref().and_then(|engine| Some((session.id, engine.state_left()?)))
            }
            _ => None,
        }
    }

    fn waits_for(&self) -> Option<String> {
        match self {
            Actor::PgClient(client) => client.waits_for(),
            Actor::MyClient(client) => client.waits_for(),
            Actor::PgSession(_) | Actor::MySession(_) | Actor::Canceller(_) => None,
        }
    }

    /// A fault is about to end this session: whom it may cost what it has.
    fn owe(&self, stage: &mut Stage<'_>) {
        let (end, at_work, client) = match self {
            Actor::PgSession(session) => (session.end, session.is_at_work(), session.client()),
            Actor::MySession(session) => (session.end, session.is_at_work(), session.client()),
            Actor::PgClient(_) | Actor::MyClient(_) | Actor::Canceller(_) => return,
        };
        let spoken_to = stage.net().is_spoken_to(end);
        if at_work || spoken_to {
            stage.oracle.owed.by_work();
        } else {
            stage.oracle.owed.by_rest(stage.now_ns, client);
        }
    }

    /// This session's connection, if it is one.
    fn end_of_session(&self) -> Option<EndId> {
        match self {
            Actor::PgSession(session) => Some(session.end),
            Actor::MySession(session) => Some(session.end),
            Actor::PgClient(_) | Actor::MyClient(_) | Actor::Canceller(_) => None,
        }
    }

    /// A fault ends this session.
    fn die(&mut self, stage: &mut Stage<'_>) {
        self.owe(stage);
        match self {
            Actor::PgSession(session) => session.die(stage),
            Actor::MySession(session) => session.die(stage),
            Actor::PgClient(_) | Actor::MyClient(_) | Actor::Canceller(_) => {}
        }
    }

    /// The connection of this session breaks.
    fn break_off(&mut self, stage: &mut Stage<'_>) {
        self.owe(stage);
        match self {
            Actor::PgSession(session) => session.close(stage, true),
            Actor::MySession(session) => session.close(stage, true),
            Actor::PgClient(_) | Actor::MyClient(_) | Actor::Canceller(_) => {}
        }
    }

    /// This session says these bytes.
    fn say(&mut self, bytes: &[u8], at_once: bool, stage: &mut Stage<'_>) {
        if let Actor::PgSession(session) = self {
            session.say(bytes, at_once, stage);
        }
    }

    /// This session says something of its own accord. MySQL's never do.
    fn mention(&mut self, stage: &mut Stage<'_>) {
        if let Actor::PgSession(session) = self {
            session.mention(stage);
        }
    }
}

/// A connection that carries a client's cancel request to Weir.
struct Canceller {
    end: EndId,
    bytes: Vec<u8>,
    client: u32,
    over: bool,
}

/// Something that happens at its own time.
enum Event_ {
    Spawn,
    Fault(Fault),
    Return(u32),
}

struct World {
    plan: Plan,
    network: Net,
    dice: Dice,
    oracle: Oracle,
    checker: Checker,
    workers: Vec<Option<Worker<SimNet>>>,
    post: Post,
    shared: Arc<Shared<SimNet>>,
    routes: Arc<SimRoutes>,
    /// By protocol ([`Protocol::index`]) and worker: the listener's number.
    listeners: [Vec<u32>; 2],
    actors: Vec<Option<Actor>>,
    events: Vec<Event_>,
    /// Sessions of databases in the order in which they came.
    came: Vec<u32>,
    /// Looks at the clock of worker 0 that are left until worker 1 takes a turn in between.
    looks: u64,
    spawned: u32,
    alive: u32,
    orders: Vec<Order>,
    sender: u32,
    letters: Vec<Mail<SimNet>>,
    ready: Vec<Event>,
}

/// Runs a seed.
///
/// # Errors
/// The invariant that was broken, and when.
pub fn run(seed: u64, trace: bool) -> Result<Report, String> {
    run_plan(Plan::new(seed), trace)
}

/// Runs a plan.
///
/// # Errors
/// The invariant that was broken, and when.
pub fn run_plan(plan: Plan, trace: bool) -> Result<Report, String> {
    if trace {
        println!("{plan:#?}");
    }
    let mut world = World::new(plan, trace);
    let result = world.run();
    let now_ms = world.network.lock().now_ns / 1_000_000;
    result.map_err(|problem| format!("at {now_ms} ms: {problem}"))
}

impl World {
    fn new(plan: Plan, trace: bool) -> World {
        // Of a run that ended in a panic.
        drop(between::end());
        let mut dice = Dice::new(plan.seed.wrapping_mul(0x9e37_79b9).wrapping_add(1));
        let mut kernel = Network::new(dice.split(), plan.weather.clone(), plan.workers, 2);
        kernel.trace = trace;
        kernel.is_opaque = plan.secure.is_used();
        let network = Net(Arc::new(Mutex::new(kernel)));
        let post = Post::new(&network, dice.split(), plan.workers);
        let routes = Arc::new(SimRoutes::new(&plan));
        let settings = Settings {
            tls: plan.secure.with_clients(),
            max_client_conn: plan.max_clients,
            clients_together: plan.clients_together,
            few_clients: plan.few_clients,
            statements: 20,
            timeouts: plan.timeouts.clone(),
            routes: routes.clone(),
            epoch: 1,
            logged: Logged::default(),
        };
        let (sender, worker) = (post.clone(), post.clone());
        let random = Mutex::new(dice.split());
        let metrics = Metrics::new(plan.workers, &["postgres", "mysql"]);
        let shared = Arc::new(Shared {
            settings: ArcSwap::from_pointee(settings),
            postgres: Registry::new(plan.workers),
            mysql: Registry::new(plan.workers),
            panics: Arc::new(Panics::new(metrics.clone(), || {})),
            metrics,
            berths: Arc::new(Berths::fixed(plan.workers)),
            post: Box::new(move |to, mail| sender.send(to, mail)),
            submit: Box::new(move |ticket, work| {
                worker.work(ticket, work);
                Ok(())
            }),
            numbers: weir_proxy::ids::Numbers::new([0x5a; 4]),
            random: Box::new(move |bytes| random.lock().unwrap_or_else(|e| e.into_inner()).fill(bytes)),
            clients: AtomicUsize::new(0),
            proven: AtomicUsize::new(0),
            rsa: None,
            greetings: Arc::new(Greetings::new("8.0.0-model")),
            console: Default::default(),
        });
        let mut listeners = [Vec::new(), Vec::new()];
        let mut workers = Vec::new();
        for number in 0..plan.workers {
            let doors = Protocol::ALL.map(|protocol| {
                let listener = Listener::new(&network, number);
                listeners[protocol.index()].push(listener.number());
                Door::new(listener, protocol)
            });
            let mut net = SimNet::new(&network, number);
            net.events_per_wait = if plan.weather.still { 1_024 } else { *dice.pick(&[1, 3, 1_024, 1_024]) };
            let worker = Worker::new(net, number, shared.clone(), doors.into_iter().collect());
            workers.push(worker.ok());
        }
        let mut world = World {
            checker: Checker::new(plan.workers),
            network,
            dice,
            oracle: Oracle::default(),
            workers,
            post,
            shared,
            routes,
            listeners,
            actors: Vec::new(),
            events: Vec::new(),
            came: Vec::new(),
            looks: plan.between.map_or(u64::MAX, |between| between.look),
            spawned: 0,
            alive: 0,
            orders: Vec::new(),
            sender: 0,
            letters: Vec::new(),
            ready: Vec::new(),
            plan,
        };
        world.write_agenda();
        world
    }

    fn write_agenda(&mut self) {
        let start_ns = self.network.lock().now_ns;
        for _ in 0..self.plan.clients {
            let still = !self.plan.cast.is_empty();
            let at_ns = start_ns + if still { 0 } else { self.dice.below(20_000_000) };
            self.event_at(at_ns, Event_::Spawn);
        }
        for (at_ns, fault) in self.plan.faults.clone() {
            self.event_at(start_ns + at_ns, Event_::Fault(fault));
        }
    }

    fn event_at(&mut self, at_ns: u64, event: Event_) {
        self.events.push(event);
        let number = (self.events.len() - 1) as u32;
        self.network.lock().schedule(at_ns, Item::Fault(number));
    }

    fn run(&mut self) -> Result<Report, String> {
        let mut steps = 0;
        let mut rest_until_ns = u64::MAX;
        loop {
            let next = self.network.lock().happens_next();
            let Some(item) = next else { break };
            let now_ns = self.network.lock().now_ns;
            if now_ns > rest_until_ns {
                break;
            }
            steps += 1;
            if steps > STEPS || now_ns > LONGEST_NS {
                return Err(format!("no end after {steps} steps; {}", self.who_waits()));
            }
            self.step(item)?;
            if let Some(problem) = self.oracle.problem.take() {
                return Err(problem);
            }
            if rest_until_ns == u64::MAX && self.alive == 0 && self.spawned >= self.plan.lives {
                rest_until_ns = now_ns + REST_NS;
            }
        }
        if self.alive > 0 {
            return Err(format!("nothing will ever happen and {}", self.who_waits()));
        }
        self.end()?;
        Ok(self.report(steps))
    }

    fn report(&self, steps: u64) -> Report {
        let network = self.network.lock();
        Report {
            steps,
            elapsed_ms: network.now_ns / 1_000_000,
            logins: self.oracle.logins,
            answers: self.oracle.answers,
            cancelled: self.oracle.cancelled,
            committed: self.oracle.committed.len() as u64,
            losses: self.oracle.losses,
            sessions: self.came.len(),
            defects: Protocol::NAMES
                .map(|name| self.shared.metrics.totals(name).wing.faults(FaultKind::InternalError))
                .iter()
                .sum(),
            fingerprint: network.fingerprint,
        }
    }

    fn end(&mut self) -> Result<(), String> {
        self.checker.at_end(self.post.transfers())?;
        self.oracle.check_entries();
        if let Some(problem) = self.oracle.problem.take() {
            return Err(problem);
        }
        let clients = self.shared.clients.load(std::sync::atomic::Ordering::Relaxed);
        if clients != 0 {
            return Err(format!("Weir counts {clients} clients at the end"));
        }
        match self.actors.iter().flatten().find_map(Actor::state_left) {
            Some((number, left)) => Err(format!("session {number} is left idle with {left}")),
            None => Ok(()),
        }
    }

    fn who_waits(&self) -> String {
        let waiting: Vec<String> = self.actors.iter().flatten().filter_map(Actor::waits_for).collect();
        format!("{} clients are there: {}", self.alive, waiting.join("; "))
    }

    fn step(&mut self, item: Item) -> Result<(), String> {
        match item {
            Item::Worker(worker) => self.worker_turn(worker)?,
            Item::Peer(peer) => self.actor_turn(peer),
            Item::Fault(event) => self.event(event),
            Item::Arrive(_) | Item::Connected(_) | Item::Knock(..) | Item::Room(_) => {
                self.network.lock().happen(item);
                self.take_arrivals();
            }
        }
        self.carry_out_orders();
        self.count_broken();
        Ok(())
    }

    /// Connections that the weather has just broken: those of servers may cost a client its session.
    fn count_broken(&mut self) {
        let broken = std::mem::take(&mut self.network.lock().just_broken);
        for end in broken {
            let is_it =
                |actor: &Actor| matches!(actor.end_of_session(), Some(it) if it == end || it == end.other());
            if self.actors.iter().flatten().any(is_it) {
                self.oracle.owed.by_work();
            }
        }
    }

    fn worker_turn(&mut self, number: usize) -> Result<(), String> {
        let now_ns = self.network.lock().now_ns;
        let from_ns = self.plan.between.map_or(u64::MAX, |between| START_NS + between.from_us * 1_000);
        let between = self.looks != between::OVER && (from_ns..from_ns + BETWEEN_NS).contains(&now_ns);
        if between && number == 1 {
            self.network.lock().wake_worker(number, from_ns + BETWEEN_NS);
            return Ok(());
        }
        let Some(mut worker) = self.workers[number].take() else { return Ok(()) };
        if between && let Some(other) = self.workers[1].take() {
            between::await_looks(other, 1, self.looks, self.post.clone());
        }
        let done = take_turn(&mut worker, number, &self.post, &mut self.ready, &mut self.letters);
        self.workers[number] = Some(worker);
        if let Some((other, looks)) = between::end() {
            (self.workers[1], self.looks) = (Some(other), looks);
            self.after_turn(1)?;
        }
        done?;
        self.after_turn(number)
    }

    fn after_turn(&mut self, number: usize) -> Result<(), String> {
        let Some(worker) = self.workers[number].as_mut() else { return Ok(()) };
        if worker.is_over() {
            self.workers[number] = None;
            self.checker.worker_over(number);
            self.post.close(number);
            return Ok(());
        }
        if let Some(timeout) = worker.timeout() {
            let now_ns = self.network.lock().now_ns;
            let at_ns = now_ns.saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
            self.network.lock().wake_worker(number, at_ns);
        }
        let audit = worker.audit()?;
        self.checker.after_turn(number, audit, &mut self.network.lock())
    }

    fn take_arrivals(&mut self) {
        let arrivals = std::mem::take(&mut self.network.lock().arrivals);
        for (database, end) in arrivals {
            let number = self.actors.len() as u32;
            self.actors.push(None);
            self.sender = number;
            let id = 10_000 + number;
            let session = self.with_stage(number, |stage| match database {
                0 => Actor::PgSession(Box::new(PgSession::new(end, database, id, stage))),
                _ => Actor::MySession(Box::new(MySession::new(end, database, id, stage))),
            });
            self.actors[number as usize] = Some(session);
            self.came.push(number);
            self.network.lock().peer_takes(number, end);
        }
    }

    fn with_stage<T>(&mut self, me: u32, f: impl FnOnce(&mut Stage<'_>) -> T) -> T {
        let now_ns = self.network.lock().now_ns;
        f(&mut Stage {
            network: &self.network,
            now_ns,
            dice: &mut self.dice,
            oracle: &mut self.oracle,
            plan: &self.plan,
            me,
            orders: &mut self.orders,
        })
    }

    fn actor_turn(&mut self, number: u32) {
        let Some(mut actor) = self.actors[number as usize].take() else { return };
        self.sender = number;
        self.with_stage(number, |stage| actor.turn(stage));
        if !actor.is_over() {
            self.actors[number as usize] = Some(actor);
            return;
        }
        if let Some(client) = actor.cancels_for() {
            self.cancel_is_over(client);
        }
        if actor.is_client() {
            self.alive -= 1;
            if self.spawned < self.plan.lives {
                let at_ns = self.network.lock().now_ns + self.dice.spread(1_000, 20_000_000);
                self.event_at(at_ns, Event_::Spawn);
            }
        }
    }

    fn cancel_is_over(&mut self, client: u32) {
        match self.actors.get_mut(client as usize) {
            Some(Some(Actor::PgClient(client))) => client.cancel_is_over(),
            Some(Some(Actor::MyClient(client))) => client.cancel_is_over(),
            _ => {}
        }
        self.network.lock().wake_peer(client, 0);
    }

    fn carry_out_orders(&mut self) {
        for order in std::mem::take(&mut self.orders) {
            match order {
                Order::CancelPostgres(pid, secret, end) => {
                    self.cancel_session(pid, &secret);
                    self.network.lock().close(end, false);
                }
                Order::SendCancel { listener, bytes } => {
                    let number = self.actors.len() as u32;
                    let end = self.network.lock().peer_connect(number, listener);
                    let client = self.sender;
                    self.actors.push(Some(Actor::Canceller(Canceller { end, bytes, client, over: false })));
                    self.network.lock().wake_peer(number, 0);
                }
                Order::SendKill { listener, user, schema, capabilities, target, hurry } => {
                    let (number, client) = (self.actors.len() as u32, self.sender);
                    self.actors.push(None);
                    let errand = Errand { listener, user, schema, capabilities, hurry };
                    let killer =
                        self.with_stage(number, |stage| MyClient::killer(client, target, errand, stage));
                    self.actors[number as usize] = Some(Actor::MyClient(Box::new(killer)));
                }
                Order::KillQuery(id) => {
                    let number = id.wrapping_sub(10_000);
                    if let Some(Some(Actor::MySession(_))) = self.actors.get(number as usize) {
                        self.with_actor(number, |actor, stage| {
                            if let Actor::MySession(session) = actor {
                                session.cancel(stage);
                            }
                        });
                    }
                }
            }
        }
    }

    fn cancel_session(&mut self, pid: u32, secret: &[u8]) {
        let number = pid.wrapping_sub(10_000);
        let Some(Some(Actor::PgSession(session))) = self.actors.get(number as usize) else { return };
        if session.secret != *secret {
            self.oracle.broken(|| format!("a cancel request for session {pid} with a wrong secret"));
            return;
        }
        self.with_actor(number, |actor, stage| {
            if let Actor::PgSession(session) = actor {
                session.cancel(stage);
            }
        });
    }

    // Events.

    fn event(&mut self, number: u32) {
        let event = std::mem::replace(&mut self.events[number as usize], Event_::Spawn);
        match event {
            Event_::Spawn => self.spawn(),
            Event_::Return(database) => {
                let mut network = self.network.lock();
                network.say(|| format!("fault: database {database} is back"));
                network.databases_up[database as usize] = true;
            }
            Event_::Fault(fault) => self.fault(fault),
        }
    }

    fn spawn(&mut self) {
        if self.spawned >= self.plan.lives {
            return;
        }
        self.spawned += 1;
        self.alive += 1;
        let number = self.actors.len() as u32;
        self.actors.push(None);
        self.sender = number;
        if let Some(part) = self.plan.cast.get(self.spawned as usize - 1).cloned() {
            let (name, listener) = (self.spawned, self.listeners[part.protocol.index()][part.worker]);
            let client = self.with_stage(number, |stage| match part.protocol {
                Protocol::Postgres => Actor::PgClient(Box::new(PgClient::play(name, listener, part, stage))),
                Protocol::Mysql => Actor::MyClient(Box::new(MyClient::play(name, listener, part, stage))),
            });
            self.actors[number as usize] = Some(client);
            return;
        }
        let protocol = match self.plan.wings {
            Wings::Postgres => Protocol::Postgres,
            Wings::MySql => Protocol::Mysql,
            Wings::Both => Protocol::ALL[self.dice.below(2) as usize],
        };
        let listener = *self.dice.pick(&self.listeners[protocol.index()]);
        let name = self.spawned;
        let client = self.with_stage(number, |stage| match protocol {
            Protocol::Postgres => Actor::PgClient(Box::new(PgClient::new(name, listener, stage))),
            Protocol::Mysql => Actor::MyClient(Box::new(MyClient::new(name, listener, stage))),
        });
        self.actors[number as usize] = Some(client);
    }

    fn fault(&mut self, fault: Fault) {
        self.network.lock().say(|| format!("fault: {fault:?}"));
        match fault {
            Fault::SessionDies(database) => {
                let sessions = self.sessions(database);
                if !sessions.is_empty() {
                    let session = *self.dice.pick(&sessions);
                    self.with_actor(session, Actor::die);
                }
            }
            Fault::DatabaseDies(database, for_ns) => {
                self.network.lock().databases_up[database as usize] = false;
                for session in self.sessions(database) {
                    self.with_actor(session, Actor::die);
                }
                let at_ns = self.network.lock().now_ns + for_ns;
                self.event_at(at_ns, Event_::Return(database));
            }
            Fault::Mention(database) => {
                let sessions = self.sessions(database);
                if !sessions.is_empty() {
                    let session = *self.dice.pick(&sessions);
                    self.with_actor(session, Actor::mention);
                }
            }
            Fault::Reload(other_servers) => {
                let plan = &mut self.plan;
                plan.pool_size = self.dice.between(1, 3) as usize;
                plan.pinned_size = if plan.pinned_size > 0 { self.dice.below(3) as usize } else { 0 };
                plan.max_of_database = if self.dice.one_in(2) { self.dice.between(1, 3) as usize } else { 0 };
                self.reload(other_servers);
            }
            Fault::Pause(for_ns) => {
                weir_proxy::console::decree(&self.shared, |orders| orders.all_paused = true);
                let at_ns = self.network.lock().now_ns + for_ns;
                self.event_at(at_ns, Event_::Fault(Fault::Resume));
            }
            Fault::Resume => weir_proxy::console::decree(&self.shared, |orders| orders.all_paused = false),
            Fault::Reconnect => {
                let now_ms = self.network.lock().now_ns / 1_000_000;
                weir_proxy::console::reconnect(&self.shared, now_ms, |_| true);
            }
            Fault::Resize(servers) => {
                self.plan.pool_size = servers;
                self.reload(false);
            }
            Fault::Break(nth) => {
                if let Some(session) = self.session_that_came(nth) {
                    self.with_actor(session, Actor::break_off);
                }
            }
            Fault::Says(nth, bytes, at_once) => {
                if let Some(session) = self.session_that_came(nth) {
                    self.with_actor(session, |actor, stage| actor.say(bytes, at_once, stage));
                }
            }
            Fault::FailsPing(nth) => {
                if let Some(session) = self.session_that_came(nth) {
                    self.with_actor(session, |actor, _| {
                        if let Actor::MySession(session) = actor {
                            session.fail_ping();
                        }
                    });
                }
            }
            Fault::Defect(protocol) => {
                let worker = self.workers[0].as_mut();
                self.oracle.defect |= worker.is_some_and(|worker| worker.pretend_defect(protocol));
                let mut network = self.network.lock();
                let now_ns = network.now_ns;
                network.wake_worker(0, now_ns);
            }
            Fault::Drain => {
                self.oracle.draining = true;
                // Nobody new comes.
                self.spawned = self.plan.lives;
                for worker in 0..self.plan.workers {
                    self.post.send(worker, Mail::Drain);
                }
            }
        }
    }

    fn reload(&mut self, other_servers: bool) {
        self.routes = Arc::new(self.routes.renewed(&self.plan, other_servers));
        let old = self.shared.settings.load_full();
        let settings =
            Settings { epoch: old.epoch + 1, routes: self.routes.clone(), ..Settings::clone(&old) };
        self.shared.settings.store(Arc::new(settings));
        for worker in 0..self.plan.workers {
            self.post.send(worker, Mail::Reload);
        }
    }

    /// The session that came as this one, from 0, if it is still there.
    fn session_that_came(&self, nth: u32) -> Option<u32> {
        let number = self.came.get(nth as usize).copied()?;
        self.actors[number as usize].as_ref().map(|_| number)
    }

    fn sessions(&self, database: u32) -> Vec<u32> {
        let found = (0..).zip(&self.actors);
        let found = found.filter(|(_, actor)| actor.as_ref().is_some_and(|a| a.is_session_of(database)));
        found.map(|(number, _)| number).collect()
    }

    fn with_actor(&mut self, number: u32, f: impl FnOnce(&mut Actor, &mut Stage<'_>)) {
        let Some(mut actor) = self.actors[number as usize].take() else { return };
        self.with_stage(number, |stage| f(&mut actor, stage));
        if !actor.is_over() {
            self.actors[number as usize] = Some(actor);
        }
    }
}

impl Canceller {
    fn turn(&mut self, stage: &mut Stage<'_>) {
        if !self.bytes.is_empty() {
            let written = stage.net().peer_write(self.end, &self.bytes);
            match written {
                Some(n) => drop(self.bytes.drain(..n)),
                None => self.over = true,
            }
        }
        // Until there is nothing: the end may stand behind the last bytes, and brings no event of its own.
        while !self.over {
            let read = stage.net().peer_read(self.end, 1_024);
            match read {
                Read::Nothing => break,
                Read::Eof | Read::Reset => self.over = true,
                // It may come too late to be heard: Weir stops, or the login takes too long.
                Read::Bytes(_) if !stage.plan.calm => {}
                Read::Bytes(bytes) => {
                    let text = || format!("a cancel request was answered with {} bytes", bytes.len());
                    stage.oracle.broken(text);
                }
            }
        }
        if self.over {
            stage.net().close(self.end, false);
        }
    }
}
