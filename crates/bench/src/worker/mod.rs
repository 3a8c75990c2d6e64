//! One thread of the load generator: an event loop with its clients.
//!
//! Owns: its connections, their pace, what it records. Must not know: other workers, reports.
//!
//! Invariants: a client has at most one connection and one query under way; `opening`, `busy` and
//! `connected` change only in [`Worker::move_to`], so they always equal what the connections say; an event
//! belongs to the generation of the connection it was registered for.
//!
//! [`serve`] is what happens on one connection; this file is when.

mod conn;
mod serve;

use crate::client::Protocol;
use crate::clock;
use crate::plan::{Plan, Share};
use crate::record::{Interval, Phase, Totals};
use crate::sources::Sources;
use crate::statement::Query;
use crate::workloads::Shape;
use conn::{Conn, Stage};
use std::collections::VecDeque;
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

/// How long replies are awaited after the end.
pub const DRAIN_NS: u64 = 5_000_000_000;

/// How long a server may take to close after a goodbye.
const LEAVING_NS: u64 = 5_000_000_000;

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
}

impl Control {
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
    cpu_at_measure_us: Option<u64>,
    /// The next client to become due, and how often the period has passed.
    due_slot: usize,
    due_round: u64,
    next_sweep_ns: u64,
    tick: Interval,
    totals: Totals,
    scratch: Vec<u8>,
    out: Vec<u8>,
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
            due_slot: 0,
            due_round: 0,
            next_sweep_ns: 0,
            tick: Interval::default(),
            totals: Totals::default(),
            scratch: vec![0; SCRATCH_BYTES],
            out: Vec::new(),
            query: Query::default(),
        }
    }

    /// Works until the run is over. An error is one of the event loop itself.
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
            self.sweep(now);
            let timeout = self.time_to_wait(clock::now_ns());
            self.kernel.wait(&mut events, Some(timeout))?;
            for event in &events {
                self.handle_event(*event);
            }
        }
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
            self.cpu_at_measure_us = Some(clock::thread_cpu_us());
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
            let before = self.cpu_at_measure_us.unwrap_or_else(clock::thread_cpu_us);
            self.totals.cpu_us = clock::thread_cpu_us().saturating_sub(before);
            self.totals.busiest_cpu_us = self.totals.cpu_us;
        }
    }

    fn report_tick(&mut self) {
        let number = self.tick.number;
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
        if self.busy > 0 && now >= timeline.end_ns + DRAIN_NS {
            for _ in 0..self.busy {
                self.totals.errors.record(Phase::Query, "timeout", "no reply 5 s after the end of the run");
            }
            return true;
        }
        self.busy == 0
    }

    /// Opens connections for the first time, as many as may be under way.
    fn open_some(&mut self, now: u64) {
        if self.ended || self.shared.plan.workload.shape() == Shape::Connects {
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
        for soon in [false, true] {
            let queue =
                |worker: &Self| if soon { worker.soon.front() } else { worker.retries.front() }.copied();
            while let Some((at_ns, i)) = queue(self) {
                if at_ns > now || self.opening >= OPENING_MAX.max(self.conns.len() as u32 / 4) {
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

    /// The start: every client of a closed loop begins.
    fn begin_all(&mut self, now: u64) {
        if self.paced() {
            return;
        }
        match self.shared.plan.workload.shape() {
            Shape::Silent => {}
            Shape::Queries => {
                for i in 0..self.conns.len() {
                    if matches!(self.conns[i].stage, Stage::Idle) {
                        self.begin_event(i, now);
                    }
                }
            }
            Shape::Connects => {
                for i in 0..self.conns.len() {
                    self.begin_connect(i, now);
                }
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
        if self.shared.plan.workload.shape() == Shape::Silent {
            return;
        }
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
            let conn = &mut self.conns[i];
            if conn.owed == 0 {
                conn.due_ns = due_ns;
            }
            conn.owed = conn.owed.saturating_add(1);
            conn.period_ns = period_ns;
            if conn.owed == 1 && conn.can_begin(self.shared.plan.workload.shape()) {
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
        self.next_sweep_ns = now + TICK_NS;
        let connect_ns = self.shared.plan.connect_timeout.as_nanos() as u64;
        let query_ns = self.shared.plan.query_timeout.as_nanos() as u64;
        for i in 0..self.conns.len() {
            let age = now.saturating_sub(self.conns[i].since_ns);
            match self.conns[i].stage {
                Stage::Connecting if age > connect_ns => {
                    self.lose(i, Phase::Connect, "timeout", "the connect took too long");
                }
                Stage::LoggingIn(_) if age > connect_ns => {
                    self.lose(i, Phase::Login, "timeout", "the login took too long");
                }
                Stage::Busy if age > query_ns => {
                    self.lose(i, Phase::Query, "timeout", "the reply took too long");
                }
                Stage::Leaving if age > LEAVING_NS => self.left(i),
                Stage::Absent
                | Stage::Connecting
                | Stage::LoggingIn(_)
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
        self.out.clear();
        P::quit(&mut self.out);
        for i in 0..self.conns.len() {
            if let Some(socket) = self.conns[i].socket.take() {
                if matches!(self.conns[i].stage, Stage::Idle) {
                    // A server that does not listen any more has nothing to lose.
                    let _ = self.kernel.send(&socket, &self.out);
                }
                self.kernel.close(socket, false);
            }
            self.move_to(i, Stage::Absent);
        }
    }
}
