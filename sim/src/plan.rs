//! The plan that follows from a seed: workers, clients, servers, settings, network conditions, faults.
//!
//! Owns: every choice that is made once for a run. Must not know: how it is carried out.

use crate::actor::Stage;
use crate::dice::Dice;
use crate::network::{START_NS, Weather};
use crate::secure::Secure;
use std::collections::VecDeque;
use std::sync::Arc;
use weir_auth::Secret;
use weir_proxy::settings::{PoolMode, Timeouts};
use weir_session::AuthMethod;
use weir_session::Protocol;

/// The password of every user.
pub const PASSWORD: &str = "a pass phrase";

/// Which protocols take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wings {
    /// PostgreSQL only.
    Postgres,
    /// MySQL only.
    MySql,
    /// Both.
    Both,
}

/// Something bad that happens at a time of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A session of this database ends: its connection breaks, closes or is told so first.
    SessionDies(u32),
    /// All its sessions end and it refuses connections for a while.
    DatabaseDies(u32, u64),
    /// An idle session says something of its own accord.
    Mention(u32),
    /// All workers are told to drain.
    Drain,
    /// New settings: another pool size and other limits; with `true`, other servers.
    Reload(bool),
    /// The connection of this session breaks: which one, in the order in which they came.
    Break(u32),
    /// New settings: this pool size.
    Resize(usize),
    /// The console pauses all databases for this long.
    Pause(u64),
    /// It resumes them.
    Resume,
    /// It has all servers replaced.
    Reconnect,
    /// This session of PostgreSQL's says these bytes, whatever they are: at once, or right behind its next
    /// ReadyForQuery.
    Says(u32, &'static [u8], bool),
    /// This session of MySQL's answers its next COM_PING with an error, and stays.
    FailsPing(u32),
    /// The first worker meets what cannot be, about the first client of this protocol that holds a server.
    Defect(Protocol),
}

/// Somebody who does what is written and leaves nothing to chance.
#[derive(Debug, Clone)]
pub struct Part {
    /// Which protocol it speaks.
    pub protocol: Protocol,
    /// The worker that accepts it.
    pub worker: usize,
    /// Which user.
    pub user: u32,
    /// What a client of PostgreSQL asks for as it connects.
    pub startup: &'static [(&'static str, &'static str)],
    /// Bytes that its connection holds unread.
    pub pipe: usize,
    /// What it does, and when.
    pub lines: VecDeque<(When, Line)>,
}

impl Part {
    /// What is to be done now, if anything is. `done`: everything before it is.
    pub fn next(&mut self, stage: &Stage<'_>, done: bool) -> Option<(When, Line)> {
        match self.lines.front()?.0 {
            When::Then if !done => return None,
            When::At(us) if stage.now_ns < START_NS + us * 1_000 => {
                stage.wake_at(START_NS + us * 1_000);
                return None;
            }
            When::Then | When::At(_) => {}
        }
        self.lines.pop_front()
    }
}

/// When somebody does what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At this time after the beginning, in microseconds, whether earlier requests are answered or not.
    At(u64),
    /// As soon as everything before it is answered, and the connection that brought its cancel or KILL is
    /// over.
    Then,
}

/// What somebody does.
#[derive(Debug, Clone)]
pub enum Line {
    /// Sends a text. What it does besides stands in its comment, as in `postgres::sql`; it gets a tag of its
    /// own.
    Say(&'static str),
    /// Sends a text as it is, without a tag: others may send the same.
    SayAlike(&'static str),
    /// The same as `Say`; the request may be cancelled.
    SayAndCancel(&'static str),
    /// Asks that what it runs be cancelled, and does not wait for anything that may be said to that.
    Cancel,
    /// The same by a stranger: another user, or one that does not know the secret.
    CancelByStranger,
    /// Everything must be answered by now.
    IsAnswered,
    /// Reads nothing from here on.
    StopReading,
    /// Reads all that is there.
    ReadOn,
    /// Goes with a reset.
    Abort,
}

/// Who stands between the turns of two workers: from this time on, in microseconds, worker 1 takes no turn by
/// itself until worker 0 has looked at the clock so often; then it takes one in the middle of that one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Between {
    /// From when on, in microseconds after the beginning.
    pub from_us: u64,
    /// At which look at the clock since then, from 0.
    pub look: u64,
}

/// A whole run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The number it all comes from.
    pub seed: u64,
    /// The password as Weir, the databases and the clients know it. What is derived from it is remembered in
    /// it, so each has its own, made anew for each run.
    pub secrets: [Arc<Secret>; 3],
    /// Which protocols take part.
    pub wings: Wings,
    /// Workers, 1 to 4.
    pub workers: usize,
    /// Servers of one pool at most, 1 to 3.
    pub pool_size: usize,
    /// Servers beyond that for pinned clients, 0 to 2.
    pub pinned_size: usize,
    /// `max_db_connections`; 0: none.
    pub max_of_database: usize,
    /// `max_user_connections`; 0: none.
    pub max_of_user: usize,
    /// `share` of the first user and of the others; 0: none.
    pub shares: [usize; 2],
    /// `reserved_connections` of the first user.
    pub reserved: usize,
    /// `max_waiting_clients`.
    pub max_waiting: Option<usize>,
    /// Requests that a server carries at a time.
    pub pipeline_depth: usize,
    /// BEGIN waits for the first request of its transaction.
    pub late_begin: bool,
    /// Identical reads that wait at the same moment are sent once.
    pub share_answers: bool,
    /// When a server is free.
    pub mode: PoolMode,
    /// Users that clients log in as: a pool each.
    pub users: u32,
    /// Clients at one time.
    pub clients: u32,
    /// Clients in the whole run.
    pub lives: u32,
    /// Requests of a client at most.
    pub steps: u64,
    /// How clients prove themselves.
    pub client_auth: AuthMethod,
    /// How Weir proves itself.
    pub server_auth: AuthMethod,
    /// Statements kept prepared on one server.
    pub max_prepared: usize,
    /// Clients that one worker gets before the next gets any.
    pub clients_together: usize,
    /// `max_client_conn`.
    pub max_clients: usize,
    /// Bounds on time.
    pub timeouts: Timeouts,
    /// How bad the network is.
    pub weather: Weather,
    /// What happens when.
    pub faults: Vec<(u64, Fault)>,
    /// How long a statement takes at most beside its own wishes, in nanoseconds.
    pub pace_ns: u64,
    /// The pause of a client between requests, at most, in nanoseconds.
    pub think_ns: u64,
    /// Nothing bad happens but what clients do themselves: nobody may be refused or lost.
    pub calm: bool,
    /// Clients leave in rude ways.
    pub rude: u64,
    /// Chance that a request is sent before the last one is answered.
    pub pipeline: u64,
    /// TLS.
    pub secure: Secure,
    /// Clients of a worker beside whom it does handshakes itself.
    pub few_clients: usize,
    /// Those who do what is written. Where there are any, nobody else comes.
    pub cast: Vec<Part>,
    /// See [`Between`].
    pub between: Option<Between>,
}

impl Plan {
    /// The plan of a seed.
    pub fn new(seed: u64) -> Plan {
        let mut dice = Dice::new(seed);
        let calm = dice.one_in(3);
        let workers = dice.between(1, 4) as usize;
        let mode = match dice.below(10) {
            0 | 1 => PoolMode::Session,
            2 => PoolMode::Statement,
            _ => PoolMode::Transaction,
        };
        let wings = *dice.pick(&[Wings::Postgres, Wings::Postgres, Wings::MySql, Wings::MySql, Wings::Both]);
        let weather = weather(&mut dice, calm);
        let clients = dice.spread(1, 20) as u32;
        // Short runs, and many of them: a new seed shows more than the hundredth client of an old one.
        let lives = clients + dice.below(u64::from(clients) + 3) as u32;
        let mut faults = Vec::new();
        if !calm {
            for _ in 0..dice.spread(0, 12) {
                let at_ns = dice.below(400_000_000);
                let database = dice.below(2) as u32;
                faults.push((
                    at_ns,
                    match dice.below(12) {
                        0..=6 => Fault::SessionDies(database),
                        7..=8 => Fault::DatabaseDies(database, dice.spread(1_000_000, 3_000_000_000)),
                        _ => Fault::Mention(database),
                    },
                ));
            }
            if dice.one_in(4) {
                faults.push((dice.between(20_000_000, 400_000_000), Fault::Drain));
            }
        } else {
            for _ in 0..dice.below(6) {
                faults.push((dice.below(300_000_000), Fault::Mention(dice.below(2) as u32)));
            }
        }
        // Chance of its own: what a seed stood for before there were reloads, it still stands for.
        let mut more = Dice::new(seed ^ 0x7e10_ad5e);
        if more.one_in(3) {
            for _ in 0..more.between(1, 3) {
                faults.push((more.below(300_000_000), Fault::Reload(more.one_in(2))));
            }
        }
        let mut console = Dice::new(seed ^ 0xc0_5013);
        if console.one_in(3) {
            for _ in 0..console.between(1, 4) {
                let pause = Fault::Pause(console.between(100_000, 60_000_000));
                let fault = if console.one_in(2) { pause } else { Fault::Reconnect };
                faults.push((console.below(300_000_000), fault));
            }
        }
        let mut pinned = Dice::new(seed ^ 0x0914_4ed5);
        let mut tls = Dice::new(seed ^ 0x0715_0715);
        let postgres_methods =
            [AuthMethod::Trust, AuthMethod::Plain, AuthMethod::Md5, AuthMethod::ScramSha256];
        Plan {
            seed,
            secrets: std::array::from_fn(|_| Arc::new(Secret::plain(PASSWORD))),
            wings,
            workers,
            pool_size: dice.between(1, 3) as usize,
            pinned_size: if pinned.one_in(2) { pinned.between(1, 2) as usize } else { 0 },
            mode,
            users: dice.between(1, 2) as u32,
            clients,
            lives,
            steps: dice.spread(4, 40),
            client_auth: *dice.pick(&postgres_methods),
            server_auth: *dice.pick(&postgres_methods),
            pipeline_depth: *dice.pick(&[1, 2, 3, 16, 16]),
            late_begin: !dice.one_in(4),
            max_prepared: *dice.pick(&[0, 1, 2, 5, 100, 100]),
            max_clients: if !calm && dice.one_in(8) {
                dice.between(1, u64::from(clients)) as usize
            } else {
                10_000
            },
            timeouts: patient(timeouts(&mut dice, calm), &weather),
            weather,
            faults,
            pace_ns: dice.spread(1_000, 3_000_000),
            think_ns: dice.spread(1_000, 10_000_000),
            calm,
            rude: if dice.one_in(3) { 0 } else { dice.spread(1, 80) },
            pipeline: if dice.one_in(3) { 0 } else { dice.below(600) },
            max_of_database: if more.one_in(3) { more.between(1, 3) as usize } else { 0 },
            max_of_user: if more.one_in(5) { more.between(1, 2) as usize } else { 0 },
            clients_together: if more.one_in(3) { more.between(1, 5) as usize } else { 0 },
            shares: if more.one_in(3) { [more.below(4) as usize, more.below(4) as usize] } else { [0, 0] },
            reserved: usize::from(more.one_in(4)),
            max_waiting: (!calm && more.one_in(6)).then(|| more.below(6) as usize),
            share_answers: !more.one_in(8),
            secure: Secure::new(&mut tls),
            few_clients: *tls.pick(&[0, 0, 2, 1_000]),
            cast: Vec::new(),
            between: None,
        }
    }

    /// A scene: these people do what is written, everything takes the time it must, and nothing else happens.
    pub fn scene(cast: Vec<Part>) -> Plan {
        let lives = cast.len() as u32;
        Plan {
            wings: Wings::Both,
            workers: 1,
            pool_size: 1,
            pinned_size: 0,
            mode: PoolMode::Transaction,
            users: 2,
            clients: lives,
            lives,
            steps: 1,
            client_auth: AuthMethod::Trust,
            server_auth: AuthMethod::Native,
            pipeline_depth: 16,
            late_begin: true,
            share_answers: true,
            max_prepared: 100,
            max_clients: 10_000,
            timeouts: Timeouts { drain_timeout_ms: 3_000, ..Timeouts::default() },
            weather: Weather::still(),
            faults: Vec::new(),
            pace_ns: 0,
            think_ns: 0,
            calm: true,
            rude: 0,
            pipeline: 0,
            max_of_database: 0,
            max_of_user: 0,
            clients_together: 0,
            shares: [0, 0],
            reserved: 0,
            max_waiting: None,
            secure: Secure::default(),
            few_clients: 1_000,
            cast,
            ..Plan::new(0)
        }
    }
}

fn timeouts(dice: &mut Dice, calm: bool) -> Timeouts {
    let mut timeouts = Timeouts { drain_timeout_ms: 3_000, ..Timeouts::default() };
    timeouts.cancel_wait_timeout_ms = dice.spread(1, 2_000);
    timeouts.server_check_delay_ms = *dice.pick(&[0, 1, 10, 30_000]);
    timeouts.server_idle_timeout_ms = *dice.pick(&[0, 5, 50, 600_000]);
    timeouts.server_lifetime_ms = *dice.pick(&[None, Some(20), Some(200), Some(3_600_000)]);
    timeouts.server_login_retry_ms = *dice.pick(&[100, 500, 15_000]);
    timeouts.server_connect_timeout_ms = *dice.pick(&[1_500, 15_000]);
    // In calm weather nobody may be told that he waited too long.
    timeouts.query_wait_timeout_ms = if calm { 0 } else { *dice.pick(&[300, 5_000, 120_000]) };
    timeouts.client_login_timeout_ms = if calm { 0 } else { *dice.pick(&[2_000, 60_000]) };
    if !calm && dice.one_in(4) {
        timeouts.client_idle_timeout_ms = dice.spread(5, 100);
        timeouts.idle_transaction_timeout_ms = dice.spread(5, 100);
    }
    if !calm && dice.one_in(6) {
        timeouts.query_timeout_ms = dice.spread(2, 100);
        timeouts.transaction_timeout_ms = dice.spread(10, 300);
    }
    timeouts
}

/// Weir waits for an answer as long as its question, piece by piece, may be on the way: who never waits so
/// long opens servers for ever.
fn patient(mut timeouts: Timeouts, weather: &Weather) -> Timeouts {
    let pieces = if weather.capacity.0 < 1_000 { 40 } else { 12 };
    let needed_ms = (pieces * weather.latency_ns.1).div_ceil(1_000_000);
    timeouts.cancel_wait_timeout_ms = timeouts.cancel_wait_timeout_ms.max(needed_ms);
    timeouts
}

fn weather(dice: &mut Dice, calm: bool) -> Weather {
    let slow = dice.spread(20_000, 3_000_000);
    let small = dice.one_in(3);
    let mut weather = Weather {
        latency_ns: (1_000, slow),
        split: *dice.pick(&[0, 100, 500, 900]),
        short_write: *dice.pick(&[0, 50, 300]),
        capacity: if small { (64, 4_096) } else { (4_096, 1 << 20) },
        connect_error: 0,
        connect_lost: 0,
        connect_slow: 0,
        connect_refused: 0,
        accept_exhausted: *dice.pick(&[0, 0, 100]),
        accept_aborted: 0,
        reset: 0,
        pack_refused: 0,
        unpack_lost: 0,
        spurious: *dice.pick(&[0, 20, 200]),
        stall: *dice.pick(&[0, 0, 5, 50]),
        still: false,
        slow_connection: None,
    };
    if !calm {
        weather.connect_error = *dice.pick(&[0, 0, 30]);
        weather.connect_lost = *dice.pick(&[0, 0, 20]);
        weather.connect_slow = *dice.pick(&[0, 0, 100]);
        weather.connect_refused = *dice.pick(&[0, 0, 100]);
        weather.accept_aborted = *dice.pick(&[0, 0, 20]);
        weather.reset = *dice.pick(&[0, 0, 0, 1, 5]);
        weather.pack_refused = *dice.pick(&[0, 0, 100]);
        weather.unpack_lost = *dice.pick(&[0, 0, 50]);
    }
    weather
}
