//! Starts and stops the data plane: listeners, workers, crypto threads.
//!
//! Owns: the threads of the data plane, the order in which they start and stop, and their settings. Signals,
//! HTTP and reading files are the caller's (`src/cli`).

use crate::ask::Asker;
use crate::berths::Berths;
use crate::console::Hatch;
use crate::context::{Shared, Ticket};
use crate::crypto::{self, Submit, Work};
use crate::ear::Ears;
use crate::front_tls::FrontTls;
use crate::further::{Further, Handles, Posts, next_handle};
use crate::greeting::Greetings;
use crate::ids::Numbers;
use crate::mail::Mail;
use crate::panics::{Panics, inject};
use crate::pool::Registry;
use crate::room::{Room, clients_of};
use crate::routes::ConfigRoutes;
use crate::settings::{Logged, Settings};
use crate::sizing::Sizing;
use crate::vouch::Vouchers;
use crate::worker::{Door, Worker};
use arc_swap::ArcSwap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_auth::job::RsaKey;
use weir_auth::scram;
use weir_config::{Auth, ListenAt, Snapshot};
use weir_metrics::Metrics;
use weir_net::fleet::{Fleet, Seat};
use weir_net::listener::{BindError, ListenOptions, SocketFile, bind};
use weir_net::socket::{Keepalive, SocketOptions};
use weir_net::tables::TablePlan;
use weir_net::{Kernel, Mailbox, Target, tables};
use weir_session::AuthMethod;
use weir_session::Protocol;
use weir_wire::limits::WORKERS;

/// Clients that one worker gets before the next gets any. So many cannot keep a worker busy, but on one they
/// share its wake-ups, and their servers need not change hands.
const CLIENTS_TOGETHER: usize = 8;

/// Clients on one worker beside whom it does the handshakes of others itself.
const FEW_CLIENTS: usize = 32;

/// Messages a worker takes at a time.
pub(crate) const MAIL_PER_TURN: usize = 1024;

/// Why Weir does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nothing can listen there.
    #[error("{0}")]
    Bind(#[from] BindError),
    /// Too many workers.
    #[error("workers = {0}: at most {WORKERS} are possible")]
    Workers(usize),
    /// No TLS with clients.
    #[error("TLS with clients: {0}")]
    Tls(#[from] weir_tls::TlsError),
    /// The system refused something else.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> StartError {
    move |source| StartError::System { what, source }
}

/// A running data plane.
pub struct Proxy {
    pub(crate) shared: Arc<Shared<Kernel>>,
    routes: Mutex<Arc<ConfigRoutes>>,
    front_tls: Mutex<FrontTls>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    /// Of workers that have begun later.
    further: Option<Handles>,
    files: Vec<SocketFile>,
    listening: Vec<(Protocol, Target)>,
    plan: TablePlan,
    room: Room,
    /// Clients that the machine holds.
    reckoned: usize,
    _fleet: Fleet,
}

impl Proxy {
    /// Opens the listeners and starts the workers. Blocks while names are resolved, and for at most a second
    /// while MySQL's servers are asked how they greet. `memory`: what this process may have, in bytes.
    /// `before_exit` is called when a defect ends the process, after the reason was logged.
    ///
    /// # Errors
    /// An address cannot be listened on, a private descriptor table is refused, or a thread cannot start.
    pub fn start(
        snapshot: &Arc<Snapshot>,
        memory: Option<u64>,
        before_exit: impl Fn() + Send + Sync + 'static,
    ) -> Result<Proxy, StartError> {
        if snapshot.workers > WORKERS {
            return Err(StartError::Workers(snapshot.workers));
        }
        tables::raise_limit();
        let reckoned = room_of_machine(snapshot, memory);
        let (reckoned, room) = match snapshot.limits.max_client_conn {
            Some(set) => (reckoned.clients, Room::set(set)),
            None => (reckoned.clients, reckoned),
        };
        let plan = table_plan(snapshot, &room);
        let workers = plan.workers;
        let options = socket_options(snapshot);
        let fleet = Fleet::new(plan.clone(), &[], options.clone()).map_err(system("prepare the workers"))?;
        let berths = Arc::new(berths(&plan));
        // Before anything else is open.
        let further = Further::prepare(&fleet, &berths).map_err(system("prepare further workers"))?;
        let (doors, files, listening) = open_doors(snapshot, workers, &options)?;
        let routes = Arc::new(ConfigRoutes::new(snapshot.clone()));
        let front_tls = FrontTls::new(snapshot, &FrontTls::default())?;
        let (posts, mailboxes) = Posts::new(&fleet, berths.clone());
        let metrics = Metrics::new(plan.most, &Protocol::NAMES);
        let panics = Arc::new(Panics::new(metrics.clone(), before_exit));
        let submit = start_crypto(posts.clone(), workers, panics.clone());
        let submit = submit.map_err(system("start a crypto thread"))?;
        let greetings = greetings(snapshot, &routes, &panics);
        let shared = Arc::new(Shared {
            settings: ArcSwap::from_pointee(settings(snapshot, room.clients, routes.clone(), &front_tls)),
            postgres: Registry::growing(&berths),
            mysql: Registry::growing(&berths),
            metrics,
            panics,
            berths,
            post: {
                let posts = posts.clone();
                Box::new(move |worker, mail| posts.send(worker, mail))
            },
            submit,
            numbers: numbers(),
            random: Box::new(random),
            clients: AtomicUsize::new(0),
            proven: AtomicUsize::new(0),
            rsa: rsa_key(snapshot),
            greetings,
            console: Hatch::default(),
        });
        let mut handles = Vec::new();
        for (worker, (doors, mailbox)) in doors.into_iter().zip(mailboxes).enumerate() {
            let (protocols, listeners): (Vec<_>, Vec<_>) = doors.into_iter().unzip();
            let seat = fleet.seat(worker, listeners).map_err(system("prepare a worker"))?;
            let shared = shared.clone();
            let panics = shared.panics.clone();
            let name = format!("worker {worker}");
            let body = move || panics.whole(&name, || run_worker(seat, worker, protocols, mailbox, shared));
            let thread = std::thread::Builder::new().name(format!("worker-{worker}")).spawn(body);
            handles.push(thread.map_err(system("start a worker thread"))?);
        }
        let further = further.map(|further| further.begin(&shared, &posts));
        derive_ahead(snapshot, &shared.panics);
        let (routes, workers) = (Mutex::new(routes), Mutex::new(handles));
        let front_tls = Mutex::new(front_tls);
        Ok(Proxy {
            shared,
            routes,
            front_tls,
            workers,
            further,
            files,
            listening,
            plan,
            room,
            reckoned,
            _fleet: fleet,
        })
    }

    /// What is counted.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// Where it listens, ports as they really are.
    pub fn listening(&self) -> &[(Protocol, Target)] {
        &self.listening
    }

    /// Worker threads from the start.
    pub fn workers(&self) -> usize {
        self.plan.workers
    }

    /// How descriptors are spread over the workers, in a sentence for the log.
    pub fn plan(&self) -> &TablePlan {
        &self.plan
    }

    /// Looks up host names again. Blocks; for the control thread, every `dns_max_ttl`.
    pub fn resolve_again(&self) {
        if self.routes().resolve_again() {
            tracing::info!(
                "the address of a host has changed: connections to the old address are closed when they are free"
            );
            self.tell_all(|| Mail::Readdressed);
        }
    }

    fn tell_all(&self, mail: impl Fn() -> Mail<Kernel>) {
        self.shared.berths.open().for_each(|worker| (self.shared.post)(worker, mail()));
    }

    /// Looks after the sizes of the pools; `elapsed`: since the last time. For the control thread, each
    /// [`crate::sizing::EVERY`].
    pub fn look_at_sizes(&self, sizing: &mut Sizing, elapsed: Duration) {
        inject::here("control");
        let looked = self.shared.panics.guard("the sizing of the pools", || {
            inject::here("sizing");
            sizing.look(&self.shared, elapsed);
        });
        if looked.is_none() {
            *sizing = Sizing::default();
        }
    }

    /// How many clients there may be.
    pub fn room(&self) -> &Room {
        &self.room
    }

    pub(crate) fn routes(&self) -> Arc<ConfigRoutes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on these settings hold, as far as they can change without a restart. Clients stay. Blocks
    /// while names are resolved.
    pub fn reload(&self, snapshot: &Arc<Snapshot>) {
        let routes = Arc::new(self.routes().renewed(snapshot.clone()));
        *self.routes.lock().unwrap_or_else(PoisonError::into_inner) = routes.clone();
        let capacity = self.plan.capacity;
        // The tables may have been laid out for another number.
        let fits = clients_of(&self.plan, server_room(snapshot)) as usize;
        let clients = snapshot.limits.max_client_conn.unwrap_or(self.reckoned.min(fits));
        let needed = clients as u64 + server_room(snapshot);
        if needed > capacity && snapshot.limits.max_client_conn.is_some() {
            tracing::warn!(
                "{needed} connections need more descriptors than the {capacity} planned at the start: restart Weir"
            );
        }
        let mut front_tls = self.front_tls.lock().unwrap_or_else(PoisonError::into_inner);
        match FrontTls::new(snapshot, &front_tls) {
            Ok(new) => *front_tls = new,
            Err(error) => tracing::error!("TLS settings for clients stay unchanged: {error}"),
        }
        self.shared.settings.store(Arc::new(settings(snapshot, clients, routes, &front_tls)));
        self.tell_all(|| Mail::Reload);
        // Their hosts were looked up, too.
        self.tell_all(|| Mail::Readdressed);
        derive_ahead(snapshot, &self.shared.panics);
    }

    /// Accepts nobody new, lets transactions end within `drain_timeout`, then stops.
    pub fn drain(&self) {
        self.shared.berths.end();
        self.tell_all(|| Mail::Drain);
    }

    /// Accepts nobody new, and stops when all clients have left of their own accord. Those of the console are
    /// not waited for.
    pub fn leave(&self) {
        self.shared.berths.end();
        self.tell_all(|| Mail::Leave);
    }

    /// Stops now.
    pub fn stop(&self) {
        self.shared.berths.end();
        self.tell_all(|| Mail::Stop);
    }

    /// Waits until all workers have ended, then removes socket files. To be called once.
    pub fn join(&self) {
        let handles = std::mem::take(&mut *self.workers.lock().unwrap_or_else(PoisonError::into_inner));
        handles.into_iter().for_each(join_worker);
        // Nobody begins any more: the first workers end only when they were told to.
        while let Some(handle) = self.further.as_ref().and_then(next_handle) {
            join_worker(handle);
        }
        for file in &self.files {
            file.remove();
        }
    }

    /// All workers have ended.
    pub fn is_over(&self) -> bool {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).iter().all(JoinHandle::is_finished)
    }
}

fn join_worker(handle: JoinHandle<()>) {
    if handle.join().is_err() {
        tracing::error!("a worker has panicked: this is a defect of Weir, please report it");
    }
}

/// Descriptors for all clients and the servers they may need, listeners, and the rest of the process.
fn table_plan(snapshot: &Snapshot, room: &Room) -> TablePlan {
    tables::plan_growing(room.clients as u64, server_room(snapshot), snapshot.workers, WORKERS)
}

fn room_of_machine(snapshot: &Snapshot, memory: Option<u64>) -> Room {
    let (limit, servers) = (tables::open_files().soft, server_room(snapshot));
    Room::of_machine(memory, limit, tables::can_split(), servers, snapshot.workers, WORKERS)
}

fn berths(plan: &TablePlan) -> Berths {
    if !plan.may_grow() {
        return Berths::fixed(plan.workers);
    }
    Berths::growing(plan.workers, plan.most, plan.first_room as usize, plan.further_room as usize)
}

/// Servers that may be open at a time, more or less.
fn server_room(snapshot: &Snapshot) -> u64 {
    let auto = snapshot.values.size(weir_config::Key::AutoSizeMax);
    let pinned = snapshot.values.size(weir_config::Key::PinnedPoolSize);
    let pools: usize = [&snapshot.postgres, &snapshot.mysql]
        .iter()
        .flat_map(|realm| realm.databases.values().chain(&realm.fallback))
        .map(|database| {
            let pinned = database.pinned_pool_size.unwrap_or(pinned);
            database.pool_size.unwrap_or(0).max(DEFAULT_POOL_ROOM).max(auto) + pinned
        })
        .sum();
    pools as u64
}

/// Servers a database is given room for in the descriptor plan when its pools have no size of their own.
const DEFAULT_POOL_ROOM: usize = 100;

fn socket_options(snapshot: &Snapshot) -> SocketOptions {
    let tcp = &snapshot.tcp;
    let keepalive = Keepalive { idle_s: tcp.keepidle_s, interval_s: tcp.keepintvl_s, count: tcp.keepcnt };
    SocketOptions {
        keepalive: tcp.keepalive.then_some(keepalive),
        user_timeout_ms: tcp.user_timeout_ms,
        buffer_bytes: 0,
    }
}

/// The listeners of each worker, with the protocol that is spoken there.
type Doors = Vec<Vec<(Protocol, weir_net::listener::Listener)>>;
/// Listeners, the socket files they made, and where they listen.
type Opened = (Doors, Vec<SocketFile>, Vec<(Protocol, Target)>);

/// Opens each listener once for each worker.
fn open_doors(snapshot: &Snapshot, workers: usize, sockets: &SocketOptions) -> Result<Opened, StartError> {
    let mut doors: Doors = (0..workers).map(|_| Vec::new()).collect();
    let (mut files, mut listening) = (Vec::new(), Vec::new());
    for listener in &snapshot.listeners {
        let (target, unix_mode, unix_group) = match &listener.at {
            ListenAt::Tcp(address) => (Target::Tcp(*address), 0, None),
            ListenAt::Unix { path, mode, group } => (Target::Unix(path.clone()), *mode, *group),
        };
        let options = ListenOptions {
            backlog: snapshot.tcp.listen_backlog,
            unix_mode,
            unix_group,
            share_port: false,
            sockets: sockets.clone(),
        };
        let bound = match bind(&target, workers, &options) {
            Ok(bound) => bound,
            Err(_) if listener.optional => continue,
            Err(error) => return Err(error.into()),
        };
        listening.push((listener.protocol, bound.local));
        files.extend(bound.file);
        for (doors, opened) in doors.iter_mut().zip(bound.listeners) {
            doors.push((listener.protocol, opened));
        }
    }
    Ok((doors, files, listening))
}

fn run_worker(
    seat: Seat,
    number: usize,
    protocols: Vec<Protocol>,
    mut mailbox: Mailbox<Mail<Kernel>>,
    shared: Arc<Shared<Kernel>>,
) {
    let panics = shared.panics.clone();
    let started = seat.enter().and_then(|(kernel, listeners)| {
        let doors = listeners
            .into_iter()
            .zip(protocols)
            .map(|(listener, protocol)| Door::new(listener, protocol))
            .collect();
        Worker::new(kernel, number, shared, doors)
    });
    let outcome = started.and_then(|mut worker| {
        worker.run(|letters| {
            mailbox.drain(MAIL_PER_TURN, letters);
        })
    });
    if let Err(error) = outcome {
        // Its listeners would take clients for nobody.
        panics.fail(&format!("worker {number} has ended: {error}"));
    }
}

fn numbers() -> Numbers {
    let mut bytes = [0; 4];
    random(&mut bytes);
    Numbers::new(bytes)
}

/// The threads for slow work and for questions, whose results go to the workers' mailboxes.
fn start_crypto(posts: Arc<Posts>, workers: usize, panics: Arc<Panics>) -> std::io::Result<Submit> {
    let deliver = move |ticket, done| {
        let Ticket { worker, protocol, kind, key } = ticket;
        posts.send(worker, Mail::job(protocol, kind, key, done));
    };
    let turn = Arc::new(AtomicU64::new(0));
    let asker = Asker::new(panics.clone(), turn.clone(), deliver.clone());
    let vouchers = Vouchers::new(panics.clone(), turn, deliver.clone());
    let ears = Ears::new(panics.clone(), deliver.clone());
    let crypto = crypto::start(workers, panics, deliver)?;
    Ok(Box::new(move |ticket, work| match work {
        Work::Ask(question) => asker.ask(ticket, question).map_err(Work::Ask),
        Work::Vouch(vouching) => vouchers.ask(ticket, vouching).map_err(Work::Vouch),
        Work::Ear(wish) => ears.take(ticket, *wish).map_err(|wish| Work::Ear(Box::new(wish))),
        work => crypto(ticket, work),
    }))
}

fn random(bytes: &mut [u8]) {
    // Without random bytes no login is safe; Linux and macOS cannot fail here once they have booted.
    if let Err(error) = weir_net::random::fill(bytes) {
        tracing::error!("the system provides no random bytes: {error}");
        std::process::abort();
    }
}

/// Derives the keys of all passwords in clear that clients prove by SCRAM, on a thread of little urgency:
/// from then on a login of a user who exists takes no longer than one of a user who does not. A reload makes
/// the thread before it end.
fn derive_ahead(snapshot: &Arc<Snapshot>, panics: &Arc<Panics>) {
    static NEWEST: AtomicUsize = AtomicUsize::new(0);
    let auth = snapshot.realm(Protocol::Postgres).auth;
    if auth != Auth::Method(AuthMethod::ScramSha256) && auth != Auth::Hba {
        return;
    }
    let (snapshot, panics) = (snapshot.clone(), panics.clone());
    let mine = NEWEST.fetch_add(1, Ordering::Relaxed) + 1;
    let derive = move || {
        weir_net::priority::lower();
        inject::here("derive");
        let mut nonce = [0; 64];
        random(&mut nonce);
        let Some(nonce) = nonce.first_chunk() else { return };
        for (name, user) in &snapshot.realm(Protocol::Postgres).users {
            if NEWEST.load(Ordering::Relaxed) != mine {
                return;
            }
            if let Some(secret) = &user.secret {
                scram::derive_ahead(name, secret, nonce);
            }
        }
    };
    // A panic costs no more than the thread: logins derive what it has not.
    let body = move || panics.guard("the thread that derives password keys in advance", derive);
    if let Err(error) = std::thread::Builder::new().name("derive".to_owned()).spawn(body) {
        tracing::warn!(
            "cannot start the thread that derives password keys in advance; logins derive them: {error}"
        );
    }
}

fn rsa_key(snapshot: &Snapshot) -> Option<Arc<RsaKey>> {
    let needed = snapshot.listeners.iter().any(|listener| listener.protocol == Protocol::Mysql);
    needed.then(RsaKey::generate).flatten().map(Arc::new)
}

/// The first client is greeted as the server greets, if the server is there.
fn greetings(snapshot: &Snapshot, routes: &ConfigRoutes, panics: &Arc<Panics>) -> Arc<Greetings> {
    let greetings = Arc::new(Greetings::new(&snapshot.mysql.server_version));
    if snapshot.listeners.iter().any(|listener| listener.protocol == Protocol::Mysql) {
        greetings.ask(routes.servers_of(&snapshot.mysql), panics);
    }
    greetings
}

fn settings(
    snapshot: &Snapshot,
    max_client_conn: usize,
    routes: Arc<ConfigRoutes>,
    front_tls: &FrontTls,
) -> Settings {
    Settings {
        epoch: routes.epoch(),
        logged: Logged {
            connections: snapshot.log.connections,
            disconnections: snapshot.log.disconnections,
            pooler_errors: snapshot.log.pooler_errors,
        },
        max_client_conn,
        clients_together: CLIENTS_TOGETHER,
        few_clients: FEW_CLIENTS,
        statements: snapshot.values.size(weir_config::Key::TrackStatements),
        timeouts: snapshot.timeouts.clone(),
        tls: front_tls.tls.clone(),
        routes,
    }
}
