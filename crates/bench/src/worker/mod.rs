//! One thread of the load generator: an event loop with its clients.
//!
//! Owns: its connections, their pace, its records. Must not know: other workers, reports.
//!
//! Invariants: a client has at most one connection and one query in progress; `opening`, `busy` and
//! `connected` change only in [`Worker::move_to`], so they always equal the states of the connections; an
//! event belongs to the generation of the connection it was registered for.
//!
//! [`serve`] handles one connection, [`event`] builds its events; this file decides when.

mod arrivals;
mod conn;
mod event;
mod secure;
mod serve;

use crate::client::Protocol;
use crate::clock;
use crate::dice::Dice;
use crate::plan::{Pace, Plan, Share};
use crate::record::gather::Classes;
use crate::record::{Interval, Latencies, OfStatement, Phase, Totals};
use crate::sources::Sources;
use crate::statement::Query;
use crate::workloads::Shape;
use arrivals::Arrivals;
use conn::{Conn, Stage};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;
use weir_net::{Event, Kernel, Net};

/// Connects and logins that one worker has under way at most: enough to keep a server busy, few enough for
/// its listen backlog.
const OPENING_MAX: u32 = 128;

/// Pause before a client that failed tries again.
const RETRY_PAUSE_NS: u64 = 1_000_000_000;

/// Pause when a Unix listener's backlog is full: a connect that blocks would wait.
const BACKLOG_PAUSE_NS: u64 = 5_000_000;

/// A client that failed so often before the start stays away.
const CONNECT_TRIES: u8 = 3;

/// Length of an interval of [`Interval`].
pub const TICK_NS: u64 = 1_000_000_000;

/// How long a server may take to close after a goodbye.
const LEAVING_NS: u64 = 5_000_000_000;

/// Clients without patience are looked at so often at most.
const PATIENCE_SWEEP_NS: u64 = 20_000_000;

/// Bytes of one read.
const SCRATCH_BYTES: usize = 64 * 1024;

/// How often a worker looks for the start.
const START_POLL: Duration = Duration::from_millis(10);

/// What the driver tells its workers and hears from them at any moment.
#[derive(Debug, Default)]
pub struct Control {
    /// When events begin ([`clock::now_ns`]); 0: not known yet.
    start_ns: AtomicU64,
    stop: AtomicBool,
    connected: AtomicU32,
    given_up: AtomicU32,
    /// Events that have begun and that have ended, counted only where their number is limited.
    begun: AtomicU64,
    over: AtomicU64,
    /// The watched processes have been read for the last time.
    read: AtomicBool,
}

/// Processes are read within this time, even where thousands of them have to wait for a core.
const READING: Duration = Duration::from_secs(10);

impl Control {
    /// The watched processes have been read for the last time: the clients may go.
    pub fn let_go(&self) {
        self.read.store(true, Ordering::Relaxed);
    }

    /// Keeps the clients connected until the watched processes have been read. A database that has a process
    /// for each client spends as much on its end as on a hundred queries, and that is no part of what was
    /// measured.
    fn await_reading(&self) {
        let until_ns = clock::now_ns() + READING.as_nanos() as u64;
        while !self.read.load(Ordering::Relaxed) && clock::now_ns() < until_ns {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends the run now.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The run is to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Events begin at this moment.
    pub fn start_at(&self, ns: u64) {
        self.start_ns.store(ns, Ordering::Relaxed);
    }

    /// Connections that are logged in now.
    pub fn connected(&self) -> u32 {
        self.connected.load(Ordering::Relaxed)
    }

    /// One more event may begin.
    fn may_begin(&self, events: Option<u64>) -> bool {
        events.is_none_or(|events| self.begun.fetch_add(1, Ordering::Relaxed) < events)
    }

    /// An event is over; the last one ends the run.
    fn event_over(&self, events: Option<u64>) {
        if events.is_some_and(|events| self.over.fetch_add(1, Ordering::Relaxed) + 1 >= events) {
            self.stop();
        }
    }

    /// Clients that have given up before the start.
    pub fn given_up(&self) -> u32 {
        self.given_up.load(Ordering::Relaxed)
    }
}

/// What all workers of a run share.
pub struct Shared {
    /// The run.
    pub plan: Plan,
    /// Where connections to each server come from.
    pub sources: Vec<Sources>,
    /// How its statements are counted.
    pub classes: Classes,
    /// Workers there are.
    pub workers: usize,
    /// Start and stop.
    pub control: Arc<Control>,
}

/// The moments of a run.
#[derive(Debug, Clone, Copy)]
struct Timeline {
    start_ns: u64,
    measure_ns: u64,
    end_ns: u64,
}

/// One thread's clients.
pub struct Worker<P: Protocol> {
    kernel: Kernel,
    shared: Arc<Shared>,
    share: Share,
    ticks: Sender<(usize, Interval)>,
    conns: Vec<Conn<P>>,
    /// First connects that have not begun: all from here on.
    next_open: usize,
    first_open_ns: u64,
    /// Clients that wait for their next try, each until its moment. Two queues, so that each is in order.
    retries: VecDeque<(u64, usize)>,
    soon: VecDeque<(u64, usize)>,
    opening: u32,
    busy: u32,
    timeline: Option<Timeline>,
    started: bool,
    ended: bool,
    /// CPU time and time waited for a core, when recording began.
    cpu_at_measure_us: Option<(u64, u64)>,
    /// When events of an open loop are due.
    arrivals: Option<Arrivals>,
    /// Clients that are free to take one, each listed once; some may have become busy or lost since.
    free: VecDeque<usize>,
    /// Clients that think: until when, who, at which of its events.
    thinking: BinaryHeap<Reverse<(u64, usize, u32)>>,
    /// The next client to become due, and how often the period has passed.
    due_slot: usize,
    due_round: u64,
    next_sweep_ns: u64,
    tick: Interval,
    totals: Totals,
    scratch: Vec<u8>,
    /// What TLS decrypted of it.
    plain: Vec<u8>,
    /// What is to be sent, and the same encrypted.
    out: Vec<u8>,
    sealed: Vec<u8>,
    query: Query,
}

impl<P: Protocol> Worker<P> {
    /// A worker with the clients of `share`. It reports each second by `ticks`.
    pub fn new(
        kernel: Kernel,
        shared: Arc<Shared>,
        share: Share,
        ticks: Sender<(usize, Interval)>,
    ) -> Worker<P> {
        let conns = share.clients.clone().map(Conn::new).collect();
        let mut totals = Totals::default();
        totals.statements.resize_with(shared.classes.statements.len(), OfStatement::default);
        totals.transactions.resize_with(shared.plan.workload.transactions().len(), Latencies::new);
        Worker {
            kernel,
            shared,
            share,
            ticks,
            conns,
            next_open: 0,
            first_open_ns: clock::now_ns(),
            retries: VecDeque::new(),
            soon: VecDeque::new(),
            opening: 0,
            busy: 0,
            timeline: None,
            started: false,
            ended: false,
            cpu_at_measure_us: None,
            arrivals: None,
            free: VecDeque::new(),
            thinking: BinaryHeap::new(),
            due_slot: 0,
            due_round: 0,
            next_sweep_ns: 0,
            tick: Interval::default(),
            totals,
            scratch: vec![0; SCRATCH_BYTES],
            plain: Vec::new(),
            out: Vec::new(),
            sealed: Vec::new(),
            query: Query::default(),
        }
    }

    /// Works until the run is over. An error is one of the event loop itself.
    ///
    /// # Errors
    /// The event loop fails. Connections that fail are counted.
    pub fn run(mut self) -> std::io::Result<Totals> {
        let mut events: Vec<Event> = Vec::new();
        loop {
            let now = clock::now_ns();
            self.follow_timeline(now);
            if self.is_over(now) {
                break;
            }
            self.open_some(now);
            self.retry_some(now);
            self.begin_due(now);
            self.begin_arrived(now);
            self.wake_thinkers(now);
            self.sweep(now);
            let timeout = self.time_to_wait(clock::now_ns());
            self.kernel.wait(&mut events, Some(timeout))?;
            for event in &events {
                self.handle_event(*event);
            }
        }
        self.shared.control.await_reading();
        self.say_goodbye();
        Ok(self.totals)
    }

    /// Starts, rolls intervals over and ends, as time passes.
    fn follow_timeline(&mut self, now: u64) {
        let control = Arc::clone(&self.shared.control);
        if self.timeline.is_none() {
            let start_ns = control.start_ns.load(Ordering::Relaxed);
            if start_ns > 0 {
                let plan = &self.shared.plan;
                let measure_ns = start_ns + plan.warm_up.as_nanos() as u64;
                let end_ns = measure_ns.saturating_add(plan.time.as_nanos() as u64);
                self.timeline = Some(Timeline { start_ns, measure_ns, end_ns });
            }
        }
        let Some(mut timeline) = self.timeline else { return };
        if control.is_stopped() && timeline.end_ns > now {
            timeline.end_ns = now;
            self.timeline = Some(timeline);
        }
        if !self.started && now >= timeline.start_ns {
            self.started = true;
            self.begin_all(now);
        }
        if now >= timeline.measure_ns && self.cpu_at_measure_us.is_none() {
            self.cpu_at_measure_us = Some((clock::thread_cpu_us(), clock::thread_wait_us()));
            self.tick.clear();
        }
        while !self.ended
            && now.min(timeline.end_ns) >= timeline.measure_ns + (self.tick.number + 1) * TICK_NS
        {
            self.report_tick();
        }
        if now >= timeline.end_ns && !self.ended {
            self.ended = true;
            self.totals.recorded_ns = timeline.end_ns.saturating_sub(timeline.measure_ns);
            let (cpu, wait) = (clock::thread_cpu_us(), clock::thread_wait_us());
            let (cpu_before, wait_before) = self.cpu_at_measure_us.unwrap_or((cpu, wait));
            self.totals.cpu_us = cpu.saturating_sub(cpu_before);
            self.totals.busiest_cpu_us = self.totals.cpu_us;
            self.totals.busiest_runnable_us = self.totals.cpu_us + wait.saturating_sub(wait_before);
        }
    }

    fn report_tick(&mut self) {
        let number = self.tick.number;
        self.tick.busy = u64::from(self.busy);
        self.tick.queued = self.arrivals.as_mut().map_or(0, |arrivals| arrivals.queued(clock::now_ns()));
        // The driver has gone when it is not interested any more.
        let _ = self.ticks.send((self.share.worker, self.tick.clone()));
        self.tick.clear();
        self.tick.number = number + 1;
    }

    fn is_over(&mut self, now: u64) -> bool {
        let Some(timeline) = self.timeline else { return self.shared.control.is_stopped() };
        if !self.ended {
            return false;
        }
        let drain = self.shared.plan.drain;
        if self.busy > 0 && now >= timeline.end_ns + drain.as_nanos() as u64 {
            let text = format!("no reply {} s after the end of the run", drain.as_secs_f64());
            for _ in 0..self.busy {
                self.totals.errors.record(Phase::Query, "timeout", &text);
            }
            return true;
        }
        self.busy == 0
    }

    /// Opens connections for the first time, as many as may be under way.
    fn open_some(&mut self, now: u64) {
        if self.ended || self.connects() {
            return;
        }
        let allowed = match self.shared.plan.connect_rate {
            None => usize::MAX,
            Some(rate) => {
                let passed = (now - self.first_open_ns) as f64 / 1e9;
                let mine = rate * self.conns.len() as f64 / f64::from(self.shared.plan.connections.max(1));
                (passed * mine) as usize + 1
            }
        };
        while self.next_open < self.conns.len().min(allowed) && self.opening < OPENING_MAX {
            let i = self.next_open;
            self.next_open += 1;
            self.open(i);
        }
    }

    fn retry_some(&mut self, now: u64) {
        if self.ended {
            return;
        }
        // Clients without patience do not stand in line: that is what makes a storm.
        let opening_max = match self.shared.plan.workload.patience() {
            Some(_) => u32::MAX,
            None => OPENING_MAX.max(self.conns.len() as u32 / 4),
        };
        for soon in [false, true] {
            let queue =
                |worker: &Self| if soon { worker.soon.front() } else { worker.retries.front() }.copied();
            while let Some((at_ns, i)) = queue(self) {
                if at_ns > now || self.opening >= opening_max {
                    break;
                }
                if soon {
                    self.soon.pop_front()
                } else {
                    self.retries.pop_front()
                };
                self.open(i);
            }
        }
    }

    /// Clients connect for each event.
    fn connects(&self) -> bool {
        self.shared.plan.workload.shape(0) == Shape::Connects
    }

    fn shape(&self, i: usize) -> Shape {
        self.shared.plan.workload.shape(self.conns[i].client)
    }

    /// The start: every client of a closed loop begins.
    fn begin_all(&mut self, now: u64) {
        if let Pace::Open { rate, poisson } = self.shared.plan.pace {
            let plan = &self.shared.plan;
            // Each worker has its clients' part of the rate.
            let mine = rate * self.conns.len() as f64 / f64::from(plan.connections.max(1));
            let start_ns = self.timeline.map_or(now, |timeline| timeline.start_ns);
            // Agents are not to have the same random moments.
            let seed = plan.workload.seed() ^ u64::from(plan.first_client) << 32;
            let worker = self.share.worker as u32;
            if mine > 0.0 {
                let workers = self.shared.workers as u32;
                self.arrivals = Some(Arrivals::new(start_ns, mine, poisson, seed, worker, workers));
            }
        }
        if self.paced() {
            return;
        }
        for i in 0..self.conns.len() {
            let shape = self.shape(i);
            if !self.conns[i].can_begin(shape) {
                continue;
            }
            match self.shared.plan.pace {
                Pace::Open { .. } => self.list(i),
                Pace::Closed | Pace::Every(_) if self.shared.plan.think.is_some() => self.think(i, now),
                Pace::Closed | Pace::Every(_) => self.begin(i, now),
            }
        }
    }

    /// The client is free to take an event of an open loop.
    fn list(&mut self, i: usize) {
        if !std::mem::replace(&mut self.conns[i].listed, true) {
            self.free.push_back(i);
        }
    }

    /// Begins events of an open loop, as many as are due and find a free client.
    fn begin_arrived(&mut self, now: u64) {
        if !self.started || self.ended {
            return;
        }
        while let Some(due_ns) = self.arrivals.as_ref().map(Arrivals::due_ns).filter(|due| *due <= now) {
            let Some(i) = self.free.pop_front() else { return };
            self.conns[i].listed = false;
            if !self.conns[i].can_begin(self.shape(i)) {
                continue;
            }
            if let Some(arrivals) = &mut self.arrivals {
                arrivals.take();
            }
            // The client was free: that it begins late is our own lateness, not the server's.
            let free_since = due_ns.max(self.conns[i].since_ns);
            self.totals.lateness.record(clock::now_ns().saturating_sub(free_since));
            self.begin(i, due_ns);
        }
    }

    /// The client pauses before its next event.
    fn think(&mut self, i: usize, now: u64) {
        let Some(think) = self.shared.plan.think else { return };
        let conn = &self.conns[i];
        let mut dice = Dice::new(self.shared.plan.workload.seed(), conn.client, conn.event, 0x7468_696e_6b00);
        let pause_s = if think.exponential {
            dice.exponential(think.mean_s)
        } else if conn.event == 0 {
            // Spread at the start: otherwise all clients would always act at the same time.
            dice.unit() * think.mean_s
        } else {
            think.mean_s
        };
        self.thinking.push(Reverse((now.saturating_add((pause_s * 1e9) as u64), i, conn.event)));
    }

    fn wake_thinkers(&mut self, now: u64) {
        while let Some(Reverse((until_ns, i, event))) = self.thinking.peek().copied() {
            if until_ns > now {
                return;
            }
            self.thinking.pop();
            let shape = self.shape(i);
            if !self.ended && self.conns[i].event == event && self.conns[i].can_begin(shape) {
                self.begin(i, clock::now_ns());
            }
        }
    }

    fn paced(&self) -> bool {
        self.shared.plan.due(0).is_some()
    }

    /// When the next client is due.
    fn next_due(&self) -> Option<(u64, u64)> {
        let timeline = self.timeline.filter(|_| self.started && !self.ended)?;
        let (offset, period) = self.shared.plan.due(self.conns.get(self.due_slot)?.client)?;
        let period_ns = period.as_nanos() as u64;
        Some((timeline.start_ns + offset.as_nanos() as u64 + self.due_round * period_ns, period_ns))
    }

    /// Begins what has become due. What cannot begin yet is owed.
    fn begin_due(&mut self, now: u64) {
        while let Some((due_ns, period_ns)) = self.next_due() {
            if due_ns > now {
                return;
            }
            let i = self.due_slot;
            self.due_slot += 1;
            if self.due_slot == self.conns.len() {
                self.due_slot = 0;
                self.due_round += 1;
            }
            let shape = self.shape(i);
            if shape == Shape::Silent {
                continue;
            }
            let conn = &mut self.conns[i];
            if conn.owed == 0 {
                conn.due_ns = due_ns;
            }
            conn.owed = conn.owed.saturating_add(1);
            conn.period_ns = period_ns;
            if conn.owed == 1 && conn.can_begin(shape) {
                conn.owed = 0;
                // The client was free: that it begins late is our own lateness, not the server's.
                let now = clock::now_ns();
                self.totals.lateness.record(now - due_ns);
                self.begin(i, now);
            }
        }
    }

    /// Closes what takes too long. Looks at everything once a second.
    fn sweep(&mut self, now: u64) {
        if now < self.next_sweep_ns {
            return;
        }
        let patience_ns = self.shared.plan.workload.patience().map(|patience| patience.as_nanos() as u64);
        self.next_sweep_ns =
            now + patience_ns.map_or(TICK_NS, |ns| (ns / 20).clamp(PATIENCE_SWEEP_NS, TICK_NS));
        let connect_ns = self.shared.plan.connect_timeout.as_nanos() as u64;
        let query_ns = self.shared.plan.query_timeout.as_nanos() as u64;
        for i in 0..self.conns.len() {
            let age = now.saturating_sub(self.conns[i].since_ns);
            match self.conns[i].stage {
                Stage::Connecting if age > connect_ns => {
                    self.lose(i, Phase::Connect, "timeout", "the connect took too long");
                }
                Stage::Securing(..) if age > connect_ns => {
                    self.lose(i, Phase::Tls, "timeout", "the TLS handshake took too long");
                }
                Stage::LoggingIn(_) | Stage::Greeting(_) if age > connect_ns => {
                    self.lose(i, Phase::Login, "timeout", "the login took too long");
                }
                Stage::Busy if age > query_ns => {
                    self.lose(i, Phase::Query, "timeout", "the reply took too long");
                }
                Stage::Busy if patience_ns.is_some_and(|ns| age > ns) && !self.ended => {
                    self.give_up_waiting(i, now)
                }
                Stage::Leaving if age > LEAVING_NS => self.left(i),
                Stage::Absent
                | Stage::Connecting
                | Stage::Securing(..)
                | Stage::LoggingIn(_)
                | Stage::Greeting(_)
                | Stage::Idle
                | Stage::Busy
                | Stage::Leaving => {}
            }
        }
    }

    /// How long nothing will happen by itself.
    fn time_to_wait(&self, now: u64) -> Duration {
        let mut until = now.saturating_add(TICK_NS).min(self.next_sweep_ns);
        let mut earlier = |ns: u64| until = until.min(ns);
        match self.timeline {
            None => earlier(now + START_POLL.as_nanos() as u64),
            Some(timeline) => {
                // Late enough to notice a stop, early enough for every boundary.
                earlier(now + 100_000_000);
                if !self.started {
                    earlier(timeline.start_ns);
                }
                if self.cpu_at_measure_us.is_none() {
                    earlier(timeline.measure_ns);
                }
                if !self.ended {
                    earlier(timeline.end_ns);
                    earlier(timeline.measure_ns + (self.tick.number + 1) * TICK_NS);
                }
            }
        }
        for (ns, _) in self.retries.front().iter().chain(self.soon.front().iter()) {
            earlier(*ns);
        }
        if let Some((ns, _)) = self.next_due() {
            earlier(ns);
        }
        if let (Some(arrivals), false, true) = (&self.arrivals, self.free.is_empty(), !self.ended) {
            earlier(arrivals.due_ns());
        }
        if let Some(Reverse((ns, _, _))) = self.thinking.peek() {
            earlier(*ns);
        }
        if self.next_open < self.conns.len() && self.shared.plan.connect_rate.is_some() {
            earlier(now + 1_000_000);
        }
        Duration::from_nanos(until.saturating_sub(now))
    }

    /// What is recorded at this moment goes into the intervals.
    fn is_recording(&self, now: u64) -> bool {
        self.timeline.is_some_and(|t| now >= t.measure_ns && now < t.end_ns)
    }

    /// Recording has begun; replies that come after the end still tell their latency.
    fn is_measuring(&self, now: u64) -> bool {
        self.timeline.is_some_and(|t| now >= t.measure_ns)
    }

    /// The only place where a connection's stage changes.
    fn move_to(&mut self, i: usize, stage: Stage<P::Login>) {
        let before = std::mem::replace(&mut self.conns[i].stage, stage);
        let after = &self.conns[i].stage;
        self.opening = self.opening + u32::from(after.is_opening()) - u32::from(before.is_opening());
        self.busy = self.busy + u32::from(after.is_busy()) - u32::from(before.is_busy());
        match (before.is_connected(), after.is_connected()) {
            (false, true) => {
                self.tick.connected += 1;
                self.shared.control.connected.fetch_add(1, Ordering::Relaxed);
            }
            (true, false) => {
                self.tick.connected -= 1;
                self.shared.control.connected.fetch_sub(1, Ordering::Relaxed);
            }
            (false, false) | (true, true) => {}
        }
    }

    fn say_goodbye(&mut self) {
        for i in 0..self.conns.len() {
            if let Some(socket) = self.conns[i].socket.take() {
                self.out.clear();
                P::quit(&mut self.out);
                if matches!(self.conns[i].stage, Stage::Idle) && self.seal(i).is_ok() {
                    // A server that does not listen any more has nothing to lose.
                    let _ = self.kernel.send(&socket, &self.out);
                }
                self.kernel.close(socket, false);
            }
            self.move_to(i, Stage::Absent);
        }
    }
}
