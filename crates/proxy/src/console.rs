//! The interface between the administration console and the data plane: statements out, answers and decrees
//! in, and lists of what exists.
//!
//! A client that has logged in to the console stays on its worker; its statements go out through the
//! [`Clerk`], and the answers come back by mail. The console therefore costs the data path one test of a bit
//! per read.
//!
//! Owns: the messages ([`Statement`], [`Letter`]), the decrees in force ([`Decrees`]), and the rows of a
//! list. Must not know: what a statement means (`weir_admin` does).
//!
//! Invariants: a worker examines at most [`weir_wire::limits::CONSOLE_LOOKS`] clients or servers in one turn;
//! rows of a list are sent as they are produced, and a list ends when its last reference is dropped, whatever
//! happens to a worker.

use crate::context::{Shared, Ticket};
use crate::control::Proxy;
use crate::ids::{Key, worker_of};
use crate::mail::{Mail, WingMail};
use crate::pool::{PoolEntry, PoolId};
use crate::settings::PoolSpec;
use crate::statements::Figures;
use crate::wing::{MySql, Postgres, Wing};
use arc_swap::{ArcSwap, Guard};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use weir_metrics::{PoolLabels, PoolNow};
use weir_net::{Net, Peer, Target};
use weir_session::Protocol;
use weir_wire::console::{Answer, Progress};
use weir_wire::{Pins, limits};

/// What a client of the console has asked. Dropped without an answer, it is answered by an error.
pub struct Statement {
    /// Its words.
    pub text: String,
    /// Who asks.
    pub user: String,
    /// The name by which he has come: `pgbouncer` or `weir`.
    pub database: String,
    /// By which protocol.
    pub protocol: Protocol,
    /// He may change things.
    pub admin: bool,
    fate: Arc<AtomicU8>,
    /// Takes the answer.
    reply: Option<Box<dyn FnOnce(Answer, Hold) + Send + Sync>>,
}

impl Statement {
    /// Its client has asked for its end (a cancel request).
    pub fn is_cancelled(&self) -> bool {
        self.fate.load(Relaxed) == CANCELLED
    }

    /// Its client has gone: nobody waits for the answer.
    pub fn is_gone(&self) -> bool {
        self.fate.load(Relaxed) == GONE
    }

    /// Answers it.
    pub fn answer(self, answer: Answer) {
        self.answer_holding(answer, None);
    }

    /// Answers it; `hold` is dropped when the client has taken the answer, or has gone.
    pub fn answer_holding(mut self, answer: Answer, hold: Hold) {
        if let Some(reply) = self.reply.take() {
            reply(answer, hold);
        }
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        if let Some(reply) = self.reply.take() {
            reply(Answer::Error("the console could not answer".to_owned()), None);
        }
    }
}

/// What has become of a statement meanwhile.
const CANCELLED: u8 = 1;
const GONE: u8 = 2;

/// A statement on its way, and where its answer goes.
pub(crate) struct Ask {
    ticket: Ticket,
    statement: Statement,
}

/// What is held for an answer until it is taken.
pub type Hold = Option<Box<dyn Send>>;

/// An answer that a client is being given.
pub(crate) struct Giving {
    pub(crate) answer: Box<Answer>,
    pub(crate) progress: Progress,
    pub(crate) _hold: Hold,
}

/// Takes statements, at once and without waiting.
pub type Clerk = Box<dyn Fn(Statement) + Send + Sync>;

/// What an operator has ordered of databases, by their names in Weir.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decrees {
    /// All are paused.
    pub all_paused: bool,
    /// These are paused.
    pub paused: BTreeSet<String>,
    /// These take no new clients.
    pub disabled: BTreeSet<String>,
}

impl Decrees {
    /// Nobody gets a server of this database.
    pub fn is_paused(&self, database: &str) -> bool {
        self.all_paused || self.paused.contains(database)
    }

    /// It takes no new clients.
    pub fn is_disabled(&self, database: &str) -> bool {
        self.disabled.contains(database)
    }
}

/// Where the console and the data plane meet.
#[derive(Default)]
pub struct Hatch {
    clerk: OnceLock<Box<dyn Fn(Ask) + Send + Sync>>,
    decrees: ArcSwap<Decrees>,
    clients: Arc<AtomicUsize>,
}

impl Hatch {
    /// The decrees in force.
    pub fn decrees(&self) -> Guard<Arc<Decrees>> {
        self.decrees.load()
    }

    /// A place for one more client; `None`: there are too many.
    pub(crate) fn visit(&self, admin: bool, user: &str, database: &str) -> Option<Visit> {
        let place = Place(self.clients.clone());
        let before = self.clients.fetch_add(1, Relaxed);
        let (user, database) = (user.into(), database.into());
        (before < limits::CONSOLES).then_some(Visit {
            admin,
            user,
            database,
            answer: None,
            fate: Arc::default(),
            _place: place,
        })
    }

    /// Passes a statement on. False: nobody takes any.
    pub(crate) fn ask(&self, ask: Ask) -> bool {
        let Some(clerk) = self.clerk.get() else { return false };
        clerk(ask);
        true
    }
}

/// A place among the clients of the console.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// What is kept of a client of the console.
pub struct Visit {
    /// It may change things.
    pub(crate) admin: bool,
    pub(crate) user: Box<str>,
    pub(crate) database: Box<str>,
    /// The answer that it is being given.
    pub(crate) answer: Option<Giving>,
    /// Of its last statement.
    fate: Arc<AtomicU8>,
    _place: Place,
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.fate.store(GONE, Relaxed);
    }
}

impl Visit {
    /// Its client has asked for the end of its statement.
    pub(crate) fn cancel(&self) {
        self.fate.store(CANCELLED, Relaxed);
    }

    /// A statement of its client.
    pub(crate) fn ask(&mut self, ticket: Ticket, text: String) -> Ask {
        self.fate = Arc::default();
        let fate = self.fate.clone();
        let (user, database) = (self.user.to_string(), self.database.to_string());
        Ask {
            ticket,
            statement: Statement {
                text,
                user,
                database,
                protocol: ticket.protocol,
                admin: self.admin,
                fate,
                reply: None,
            },
        }
    }
}

/// Something of the console for a hall.
pub enum Letter<W: Wing> {
    /// The answer for one of its clients.
    Answer {
        /// Which one.
        client: Key,
        /// The answer.
        answer: Box<Answer>,
        /// To be dropped behind it.
        hold: Hold,
    },
    /// What is ordered of this pool has changed.
    Ordered {
        /// The pool.
        pool: Arc<PoolEntry<W::Welcomes>>,
    },
    /// End all clients of this pool, from this slot on.
    KillAll {
        /// The pool.
        pool: Arc<PoolEntry<W::Welcomes>>,
        /// The slot.
        from: u32,
    },
    /// End this client.
    KillClient {
        /// Its number.
        number: u32,
        /// Is told whether there was such a client.
        told: Box<dyn FnOnce(bool) + Send>,
    },
    /// List what there is, from this slot on: first clients, then servers.
    List {
        /// What.
        list: Arc<List>,
        /// Clients are done.
        servers: bool,
        /// The slot.
        from: u32,
    },
}

/// What is to be listed. The list is complete when the last copy of the pointer to this is dropped.
pub struct List {
    /// Clients.
    pub clients: bool,
    /// Servers.
    pub servers: bool,
    /// Each as a row; else only how many there are.
    pub rows: bool,
    /// Clients only that keep their server for a stated reason.
    pub pinned: bool,
    /// How many clients each user has.
    pub users: bool,
    /// Clients only that wait.
    pub waiting: bool,
    /// Statements.
    pub statements: bool,
    /// Takes what a worker has found, piece by piece.
    pub sink: Box<dyn Fn(Part) + Send + Sync>,
}

/// A piece of a list.
#[derive(Debug)]
pub struct Part {
    /// Which protocol it speaks.
    pub protocol: Protocol,
    /// The clock of the process when it was made (nanoseconds).
    pub now_ns: u64,
    /// Clients.
    pub clients: Vec<ClientRow>,
    /// Servers.
    pub servers: Vec<ServerRow>,
    /// How many there are, by pool.
    pub counts: Vec<(PoolId, Counts)>,
    /// Clients that are logging in.
    pub logins: usize,
    /// Clients by their user, if those are wanted.
    pub users: Vec<(String, usize)>,
    /// Statements, if those are wanted.
    pub statements: Vec<StatementRow>,
}

impl Part {
    /// Nothing was found yet.
    pub fn new(protocol: Protocol, now_ns: u64) -> Part {
        Part {
            protocol,
            now_ns,
            clients: Vec::new(),
            servers: Vec::new(),
            counts: Vec::new(),
            logins: 0,
            users: Vec::new(),
            statements: Vec::new(),
        }
    }
}

/// What a statement has cost on one worker.
#[derive(Debug)]
pub struct StatementRow {
    /// The user its servers are logged in as.
    pub user: String,
    /// The database's name in Weir.
    pub database: String,
    /// The statement without its values; `None`: all that have no row of their own.
    pub words: Option<String>,
    /// Tells it from others with the same words, where these are not all; else 0.
    pub apart: u32,
    /// Calls, times, rows, errors.
    pub figures: Figures,
}

/// Clients and servers of a pool, by PgBouncer's states.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Clients, those that wait left out.
    pub cl_active: usize,
    /// Clients that wait for a server.
    pub cl_waiting: usize,
    /// Servers that clients have.
    pub sv_active: usize,
    /// Connections under way that carry a cancel request.
    pub sv_active_cancel: usize,
    /// Servers that wait for the end of such a connection.
    pub sv_being_canceled: usize,
    /// Servers that are free.
    pub sv_idle: usize,
    /// Servers that are being reset or checked.
    pub sv_tested: usize,
    /// Servers that are logging in.
    pub sv_login: usize,
}

impl Counts {
    /// Both together.
    pub fn add(&mut self, other: &Counts) {
        self.cl_active += other.cl_active;
        self.cl_waiting += other.cl_waiting;
        self.sv_active += other.sv_active;
        self.sv_active_cancel += other.sv_active_cancel;
        self.sv_being_canceled += other.sv_being_canceled;
        self.sv_idle += other.sv_idle;
        self.sv_tested += other.sv_tested;
        self.sv_login += other.sv_login;
    }
}

/// What a client is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientState {
    /// Logging in.
    Login,
    /// It has a server.
    Active,
    /// It has none and wants none.
    Idle,
    /// It waits for one.
    Waiting,
}

/// A client. Times are milliseconds of the process's clock.
#[derive(Debug, Clone)]
pub struct ClientRow {
    /// Weir's number of it, which is also what its program was told.
    pub number: u32,
    /// Its user.
    pub user: String,
    /// Its database.
    pub database: String,
    /// What its program calls itself.
    pub application_name: String,
    /// Where it comes from.
    pub peer: Peer,
    /// Where it has come to.
    pub local: Option<SocketAddr>,
    /// What it is at.
    pub state: ClientState,
    /// When it connected.
    pub connected_ms: u64,
    /// When it last asked or was answered.
    pub active_ms: u64,
    /// For how long it has waited for a server (nanoseconds).
    pub waited_ns: u64,
    /// The number of its server in the list of servers.
    pub server: Option<u32>,
    /// Since when it has that.
    pub leased_ms: u64,
    /// Why it keeps it.
    pub pins: Pins,
    /// The statement that was the reason, without its values; empty where it is not known.
    pub cause: String,
    /// Requests under way.
    pub inflight: u32,
    /// Version and cipher of its TLS.
    pub tls: Option<(&'static str, &'static str)>,
    /// It is a client of the console.
    pub console: bool,
}

/// What a server is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerMark {
    /// Connecting or logging in.
    Login,
    /// Free.
    Idle,
    /// A client has it, or several share it.
    Active,
    /// Being reset or checked.
    Tested,
}

/// A server. Times are milliseconds of the process's clock.
#[derive(Debug, Clone)]
pub struct ServerRow {
    /// Its number among those of Weir.
    pub number: u32,
    /// The user it is logged in as.
    pub user: String,
    /// The database's name in Weir.
    pub database: String,
    /// Where it leads.
    pub target: Target,
    /// This end of it.
    pub local: Option<SocketAddr>,
    /// What it is at.
    pub state: ServerMark,
    /// When its connect began.
    pub opened_ms: u64,
    /// When it entered its state.
    pub since_ms: u64,
    /// It is closed when it is next free.
    pub close_needed: bool,
    /// The number of the client that has it.
    pub client: Option<u32>,
    /// The database's own number of the connection.
    pub pid: u64,
    /// Version and cipher of its TLS.
    pub tls: Option<(&'static str, &'static str)>,
}

/// A pool, as all workers know it.
#[derive(Debug, Clone)]
pub struct PoolRow {
    /// Which protocol it speaks.
    pub protocol: Protocol,
    /// Its number there.
    pub id: PoolId,
    /// Its settings.
    pub spec: Arc<PoolSpec>,
    /// Servers it has.
    pub opened: usize,
    /// Those of them that clients keep and that do not count against its size.
    pub outside: usize,
    /// Those of them that are not idle.
    pub active: usize,
    /// Servers it may have, were it not paused.
    pub size: usize,
    /// It is paused.
    pub paused: bool,
    /// Clients that wait.
    pub waiting: usize,
    /// Since when the one that has waited longest does (nanoseconds of the process's clock).
    pub waits_since_ns: Option<u64>,
    /// What it has served.
    pub served: crate::pool::Served,
    /// The last attempt to open a server has failed.
    pub failing: bool,
    /// The last failure of such an attempt, whatever came behind it.
    pub failure: Option<Arc<crate::pool::Failure>>,
}

impl Proxy {
    /// From now on this takes the statements of the console.
    pub fn open_console(&self, clerk: Clerk) {
        let shared = Arc::downgrade(&self.shared);
        let take = move |ask: Ask| {
            let (Ask { ticket, mut statement }, shared) = (ask, shared.clone());
            statement.reply = Some(Box::new(move |answer, hold| {
                let Some(shared) = shared.upgrade() else { return };
                let (client, answer) = (ticket.key, Box::new(answer));
                let mail = match ticket.protocol {
                    Protocol::Postgres => {
                        Mail::Postgres(WingMail::Console(Letter::Answer { client, answer, hold }))
                    }
                    Protocol::Mysql => {
                        Mail::MySql(WingMail::Console(Letter::Answer { client, answer, hold }))
                    }
                };
                (shared.post)(ticket.worker, mail);
            }));
            clerk(statement);
        };
        drop(self.shared.console.clerk.set(Box::new(take)));
    }

    /// The clock of [`ClientRow`] and its like, in nanoseconds.
    pub fn clock_ns(&self) -> u64 {
        weir_net::kernel::monotonic_ns()
    }

    /// The decrees in force.
    pub fn decrees(&self) -> Arc<Decrees> {
        self.shared.console.decrees.load_full()
    }

    /// Clients there may be.
    pub fn max_clients(&self) -> usize {
        self.shared.settings.load().max_client_conn
    }

    /// Clients there are, those that log in included.
    pub fn clients(&self) -> usize {
        self.shared.clients.load(Relaxed)
    }

    /// Clients of the console.
    pub fn consoles(&self) -> usize {
        self.shared.console.clients.load(Relaxed)
    }

    /// Hosts that are looked up by name, and their addresses now.
    pub fn hosts(&self) -> Vec<(String, Vec<Target>)> {
        self.routes().hosts()
    }

    /// Bytes of a client and of a server of PostgreSQL, without their buffers.
    pub fn sizes(&self) -> (usize, usize) {
        type Socket = weir_net::socket::Socket;
        (
            size_of::<crate::client::Client<Postgres, Socket>>(),
            size_of::<crate::server::Server<Postgres, Socket>>(),
        )
    }

    /// All pools.
    pub fn pools(&self) -> Vec<PoolRow> {
        let mut rows = Vec::new();
        rows_of::<Postgres>(self.shared.postgres.all().iter(), &mut rows);
        rows_of::<MySql>(self.shared.mysql.all().iter(), &mut rows);
        rows
    }

    /// What the metrics say of all pools at this moment.
    pub fn pools_now(&self) -> Vec<PoolNow> {
        let now_ns = self.clock_ns();
        let of = |row: PoolRow| PoolNow {
            up: row.has_tried().then_some(!row.failing),
            longest_wait_ns: row.waits_since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns)),
            requests_ns: row.served.took_ns,
            waits_ns: row.served.waited_ns,
            labels: PoolLabels {
                protocol: row.protocol.name(),
                database: row.spec.database.clone(),
                user: row.spec.user.clone(),
            },
        };
        self.pools().into_iter().map(of).collect()
    }

    /// Lists what the workers have.
    pub fn list(&self, list: List) {
        let list = Arc::new(list);
        for worker in self.shared.berths.open() {
            let letter = || Letter::List { list: list.clone(), servers: false, from: 0 };
            (self.shared.post)(worker, Mail::Postgres(WingMail::Console(letter())));
            let letter = Letter::List { list: list.clone(), servers: false, from: 0 };
            (self.shared.post)(worker, Mail::MySql(WingMail::Console(letter)));
        }
    }

    /// Changes the decrees; pools of databases that are paused otherwise than before hear of it.
    pub fn decree(&self, change: impl Fn(&mut Decrees)) {
        decree(&self.shared, change);
    }

    /// Servers of these databases that are there now are replaced when they are next free.
    pub fn reconnect(&self, is_meant: impl Fn(&str) -> bool) {
        reconnect(&self.shared, self.clock_ns() / 1_000_000, is_meant);
    }

    /// Ends all clients of these databases.
    pub fn kill_all(&self, is_meant: impl Fn(&str) -> bool) {
        let shared = &self.shared;
        each_pool::<Postgres, _>(shared, &is_meant, |pool| Letter::KillAll { pool: pool.clone(), from: 0 });
        each_pool::<MySql, _>(shared, &is_meant, |pool| Letter::KillAll { pool: pool.clone(), from: 0 });
    }

    /// Ends the client of this number. `told` hears whether there was one, unless its worker ends meanwhile.
    pub fn kill_client(&self, protocol: Protocol, number: u32, told: impl FnOnce(bool) + Send + 'static) {
        let (worker, told) = (worker_of(number), Box::new(told));
        let mail = match protocol {
            Protocol::Postgres => Mail::Postgres(WingMail::Console(Letter::KillClient { number, told })),
            Protocol::Mysql => Mail::MySql(WingMail::Console(Letter::KillClient { number, told })),
        };
        if self.shared.berths.is_open(worker) {
            (self.shared.post)(worker, mail);
        }
    }
}

/// Changes the decrees. Who gives them looks at all pools behind that; who makes a pool looks at the decrees
/// behind that.
pub fn decree<N: Net>(shared: &Shared<N>, change: impl Fn(&mut Decrees)) {
    let mut decrees = Decrees::clone(&shared.console.decrees());
    change(&mut decrees);
    shared.console.decrees.store(Arc::new(decrees.clone()));
    pause::<Postgres, N>(shared, &decrees);
    pause::<MySql, N>(shared, &decrees);
}

fn pause<W: Wing, N: Net>(shared: &Shared<N>, decrees: &Decrees) {
    for pool in W::registry(shared).all().iter() {
        let paused = decrees.is_paused(&pool.spec().database);
        if pool.shared.is_paused() != paused {
            pool.shared.set_paused(paused);
            tell_all::<W, N>(shared, || Letter::Ordered { pool: pool.clone() });
        }
    }
}

/// Servers of these databases that are there now are replaced when they are next free.
pub fn reconnect<N: Net>(shared: &Shared<N>, now_ms: u64, is_meant: impl Fn(&str) -> bool) {
    each_pool::<Postgres, N>(shared, &is_meant, |pool| {
        pool.shared.reconnect(now_ms);
        Letter::Ordered { pool: pool.clone() }
    });
    each_pool::<MySql, N>(shared, &is_meant, |pool| {
        pool.shared.reconnect(now_ms);
        Letter::Ordered { pool: pool.clone() }
    });
}

/// Tells all workers something of each pool of these databases.
fn each_pool<W: Wing, N: Net>(
    shared: &Shared<N>,
    is_meant: &impl Fn(&str) -> bool,
    letter: impl Fn(&Arc<PoolEntry<W::Welcomes>>) -> Letter<W>,
) {
    for pool in W::registry(shared).all().iter().filter(|pool| is_meant(&pool.spec().database)) {
        tell_all::<W, N>(shared, || letter(pool));
    }
}

fn tell_all<W: Wing, N: Net>(shared: &Shared<N>, letter: impl Fn() -> Letter<W>) {
    for worker in shared.berths.open() {
        (shared.post)(worker, W::mail(WingMail::Console(letter())));
    }
}

impl PoolRow {
    /// An attempt to open a server has ended. Servers are there before it is known whether they can be; idle
    /// ones and answers prove it.
    pub fn has_tried(&self) -> bool {
        self.opened > self.active || self.served.answered > 0 || self.failure.is_some()
    }
}

fn rows_of<'a, W: Wing>(
    entries: impl Iterator<Item = &'a Arc<PoolEntry<W::Welcomes>>>,
    rows: &mut Vec<PoolRow>,
) where
    W::Welcomes: 'a,
{
    rows.extend(entries.map(|entry| {
        let shared = &entry.shared;
        PoolRow {
            protocol: W::PROTOCOL,
            id: entry.id,
            spec: entry.spec(),
            opened: shared.opened(),
            outside: shared.inside_and_outside().1,
            active: shared.active(),
            size: shared.size(),
            paused: shared.is_paused(),
            waiting: shared.waiting(),
            waits_since_ns: Some(shared.longest_waiting()).filter(|&it| it != crate::pool::shared::NOBODY),
            served: shared.served(),
            failing: entry.health.is_failing(),
            failure: entry.health.last_failure(),
        }
    }));
}
