//! One worker: a thread with its own event loop, clients, servers and timers.
//!
//! Owns: the loop. Must not know: what the halls do with an event.
//! Invariants: it blocks only in `Net::wait`, and takes no lock while it serves.

use crate::berths::Room;
use crate::context::{Cx, Shared};
use crate::economy::Economy;
use crate::hall::Hall;
use crate::ids::{Kind, Tag};
use crate::mail::Mail;
use crate::panics::inject;
use crate::settings::Settings;
use crate::wing::{MySql, Postgres};
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::TurnCells;
use weir_net::backoff::{AcceptPause, is_exhaustion};
use weir_net::{Event, Net, Token, Wheel};
use weir_session::Protocol;
use weir_wire::limits::SCRATCH_BYTES;

/// Connections accepted from one listener in one turn, some 10 us each, so that a storm of connects cannot
/// stall queries.
const ACCEPTS_PER_TURN: usize = 16;

/// Time without a client after which a further worker ends.
const EMPTY_MS: u64 = 10_000;

/// A listener of this worker.
pub struct Door<N: Net> {
    listener: N::Listener,
    protocol: Protocol,
    pause: AcceptPause,
}

impl<N: Net> Door<N> {
    /// A listener for clients of a protocol.
    pub fn new(listener: N::Listener, protocol: Protocol) -> Self {
        Door { listener, protocol, pause: AcceptPause::default() }
    }
}

/// How far a worker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Serving,
    /// Until all clients have gone, or this time (milliseconds; `u64::MAX`: however long that takes).
    Draining(u64),
    /// Until all clients have left.
    Leaving,
    Over,
}

/// A worker.
pub struct Worker<N: Net> {
    net: N,
    number: usize,
    shared: Arc<Shared<N>>,
    settings: Arc<Settings>,
    wheel: Wheel,
    scratch: Vec<u8>,
    doors: Vec<Door<N>>,
    pub(crate) postgres: Hall<Postgres, N>,
    pub(crate) mysql: Hall<MySql, N>,
    life: Life,
    /// Doors to be asked at the end of this turn, or of the next.
    again: Vec<u32>,
    /// Timers that have fired, reused in each turn.
    fired: Vec<u64>,
    economy: Economy,
    turns: Arc<TurnCells>,
    /// For a further worker: since when it has had no client (milliseconds).
    empty_since_ms: Option<u64>,
}

impl<N: Net> Worker<N> {
    /// A worker that watches its listeners from now on.
    ///
    /// # Errors
    /// A listener cannot be watched.
    pub fn new(
        mut net: N,
        number: usize,
        shared: Arc<Shared<N>>,
        doors: Vec<Door<N>>,
    ) -> std::io::Result<Self> {
        for (index, door) in doors.iter().enumerate() {
            net.watch_listener(
                &door.listener,
                Tag::fixed(Kind::Listener, door.protocol, index as u32).token(),
            )?;
        }
        let postgres = Hall::new(shared.metrics.worker(number, Protocol::Postgres.name()));
        let mysql = Hall::new(shared.metrics.worker(number, Protocol::Mysql.name()));
        let wheel = Wheel::new(net.now_ns() / 1_000_000);
        let economy = Economy::new(net.now_ns());
        let turns = shared.metrics.turns(number);
        turns.workers.set(1);
        Ok(Worker {
            net,
            number,
            settings: shared.settings.load_full(),
            shared,
            wheel,
            scratch: vec![0; SCRATCH_BYTES],
            doors,
            postgres,
            mysql,
            life: Life::Serving,
            again: Vec::new(),
            fired: Vec::new(),
            economy,
            turns,
            empty_since_ms: None,
        })
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// The event loop it runs on.
    pub fn net_mut(&mut self) -> &mut N {
        &mut self.net
    }

    /// Serves until it is told to stop, also after a panic. `mail` takes what is in the mailbox.
    ///
    /// # Errors
    /// The event loop has failed, or the worker cannot begin anew after a panic.
    pub fn run(&mut self, mut mail: impl FnMut(&mut Vec<Mail<N>>)) -> std::io::Result<()> {
        let mut events = Vec::new();
        let mut letters = Vec::new();
        let panics = self.shared.panics.clone();
        let name = format!("worker {}", self.number);
        while !self.is_over() {
            let timeout = if letters.is_empty() { self.timeout() } else { Some(Duration::ZERO) };
            self.net.wait(&mut events, timeout)?;
            if events.iter().any(|event| event.token == Token::MAIL) {
                mail(&mut letters);
            }
            if panics.guard(&name, || self.turn(&events, &mut letters)).is_some() {
                continue;
            }
            // What has come since, and what is behind the letter it was reading, is of those who have harmed
            // nobody.
            letters.reverse();
            if panics.guard(&name, || self.begin_anew()).is_none() {
                panics.fail("a worker that has panicked cannot begin anew");
            }
        }
        Ok(())
    }

    /// A panic has left everything half done. The listeners, the mailbox and the thread's descriptors are as
    /// they were; clients and servers are not.
    fn begin_anew(&mut self) {
        self.scratch = vec![0; SCRATCH_BYTES];
        // Timers of those who are gone find nobody.
        self.wheel = Wheel::new(self.net.now_ns() / 1_000_000);
        self.fired = Vec::new();
        self.with(|postgres, mysql, cx| {
            postgres.begin_anew(cx);
            mysql.begin_anew(cx);
        });
        self.doors.iter_mut().for_each(|door| door.pause.end());
        // That somebody is at a door is said once, and may have been said in this turn.
        self.again = (0..self.doors.len() as u32).collect();
        self.finish_turn();
        debug_assert_eq!(self.audit().err(), None);
    }

    /// It has been told to stop and is done.
    pub fn is_over(&self) -> bool {
        self.life == Life::Over
    }

    /// How long it may sleep.
    pub fn timeout(&self) -> Option<Duration> {
        if self.postgres.has_later() || self.mysql.has_later() || !self.again.is_empty() {
            return Some(Duration::ZERO);
        }
        let now_ms = self.net.now_ns() / 1_000_000;
        let drained_ms = match self.life {
            Life::Draining(until_ms) => Some(until_ms).filter(|&until_ms| until_ms < u64::MAX),
            Life::Serving | Life::Leaving | Life::Over => None,
        };
        let leaves_ms = self.empty_since_ms.map(|since_ms| since_ms + EMPTY_MS);
        let next_ms = [self.wheel.next_ms(), drained_ms, leaves_ms].into_iter().flatten().min()?;
        // One more, because the clock's fraction of a millisecond is lost in `now_ms`.
        Some(Duration::from_millis(next_ms.saturating_sub(now_ms).saturating_add(1)))
    }

    /// Handles what happened: mail, events, timers; then writes to servers.
    pub fn turn(&mut self, events: &[Event], letters: &mut Vec<Mail<N>>) {
        self.turns.events.record(events.len());
        // One by one: a panic must not take those behind with it.
        letters.reverse();
        while let Some(letter) = letters.pop() {
            self.mail(letter);
        }
        // Servers first, and their next requests on their way: none of them is idle while this worker reads
        // what a hundred clients have sent.
        self.events(events, |kind| kind == Kind::Server);
        self.finish_turn();
        self.events(events, |kind| kind != Kind::Server);
        let mut fired = std::mem::take(&mut self.fired);
        fired.clear();
        self.wheel.advance(self.net.now_ns() / 1_000_000, &mut fired);
        for &raw in &fired {
            let Some(tag) = Tag::unpack(raw) else { continue };
            match (tag.kind, tag.protocol) {
                (Kind::Listener, _) => self.knock(tag.key.slot()),
                (_, Protocol::Postgres) => self.with(|hall, _, cx| hall.timer(cx, tag)),
                (_, Protocol::Mysql) => self.with(|_, hall, cx| hall.timer(cx, tag)),
            }
        }
        self.fired = fired;
        self.finish_turn();
        // Those who are here go before those who come.
        if !self.again.is_empty() || self.postgres.has_logins() || self.mysql.has_logins() {
            for index in std::mem::take(&mut self.again) {
                self.accept(index);
            }
            self.with(|postgres, mysql, cx| {
                postgres.resume_logins(cx);
                mysql.resume_logins(cx);
            });
            self.finish_turn();
        }
        self.after_turn();
    }

    fn events(&mut self, events: &[Event], wanted: impl Fn(Kind) -> bool) {
        for &event in events {
            let Some(tag) = Tag::unpack(event.token.0) else { continue };
            if !wanted(tag.kind) {
                continue;
            }
            match (tag.kind, tag.protocol) {
                (Kind::Listener, _) => self.knock(tag.key.slot()),
                (_, Protocol::Postgres) => self.with(|hall, _, cx| hall.event(cx, tag, event)),
                (_, Protocol::Mysql) => self.with(|_, hall, cx| hall.event(cx, tag, event)),
            }
        }
    }

    fn finish_turn(&mut self) {
        self.with(|postgres, mysql, cx| {
            postgres.finish_turn(cx);
            mysql.finish_turn(cx);
        });
    }

    fn after_turn(&mut self) {
        let now_ns = self.net.now_ns();
        let crowd = self.postgres.take_crowd() + self.mysql.take_crowd();
        if let Some(gathers) = self.economy.turn_ends(now_ns, crowd) {
            self.net.gather(gathers);
            self.turns.gathering.set(i64::from(gathers));
        }
        if self.number >= self.shared.berths.first() {
            self.leave_if_empty(now_ns / 1_000_000);
        }
        if self.life == Life::Leaving && self.postgres.has_left() && self.mysql.has_left() {
            self.stop();
        }
        if let Life::Draining(until_ms) = self.life {
            let clients = self.postgres.client_count() + self.mysql.client_count();
            if clients == 0 || self.net.now_ns() / 1_000_000 >= until_ms {
                self.stop();
            }
        }
    }

    /// A worker that began because clients came ends when they have gone for a while.
    fn leave_if_empty(&mut self, now_ms: u64) {
        if self.postgres.client_count() + self.mysql.client_count() > 0 || self.life != Life::Serving {
            self.empty_since_ms = None;
            return;
        }
        if now_ms < *self.empty_since_ms.get_or_insert(now_ms) + EMPTY_MS {
            return;
        }
        // What is under way is looked at again after the same time.
        self.empty_since_ms = Some(now_ms);
        let mut is_clear = false;
        self.with(|postgres, mysql, cx| is_clear = postgres.clears(cx) & mysql.clears(cx));
        self.finish_turn();
        if is_clear && self.shared.berths.close(self.number) {
            self.with(|postgres, mysql, _| {
                postgres.cleared();
                mysql.cleared();
            });
            self.life = Life::Over;
            // Its thread ends, and with it how the kernel wakes it.
            self.turns.workers.set(0);
            self.turns.gathering.set(0);
        }
    }

    fn stop(&mut self) {
        self.with(|postgres, mysql, cx| {
            postgres.stop(cx);
            mysql.stop(cx);
        });
        // Other workers are told of the room that there is now.
        self.finish_turn();
        self.life = Life::Over;
    }

    /// Lends what a hall needs.
    fn with(&mut self, f: impl FnOnce(&mut Hall<Postgres, N>, &mut Hall<MySql, N>, &mut Cx<'_, N>)) {
        let mut cx = Cx {
            net: &mut self.net,
            wheel: &mut self.wheel,
            scratch: &mut self.scratch,
            shared: &self.shared,
            settings: &self.settings,
            worker: self.number,
        };
        f(&mut self.postgres, &mut self.mysql, &mut cx);
    }

    fn mail(&mut self, letter: Mail<N>) {
        inject::here("mail");
        match letter {
            Mail::Postgres(mail) => self.with(|hall, _, cx| hall.mail(cx, mail)),
            Mail::MySql(mail) => self.with(|_, hall, cx| hall.mail(cx, mail)),
            Mail::Reload => {
                self.settings = self.shared.settings.load_full();
                self.with(|postgres, mysql, cx| {
                    postgres.reload(cx);
                    mysql.reload(cx);
                });
            }
            Mail::Readdressed => self.with(|postgres, mysql, cx| {
                postgres.readdressed(cx);
                mysql.readdressed(cx);
            }),
            Mail::Drain => {
                let drain_ms = self.settings.timeouts.drain_timeout_ms;
                self.doors.clear();
                self.life = Life::Draining(match drain_ms {
                    0 => u64::MAX,
                    drain_ms => self.net.now_ns() / 1_000_000 + drain_ms,
                });
                self.with(|postgres, mysql, cx| {
                    postgres.drain(cx);
                    mysql.drain(cx);
                });
            }
            Mail::Leave => {
                self.doors.clear();
                if self.life == Life::Serving {
                    self.life = Life::Leaving;
                }
            }
            Mail::Stop => self.stop(),
        }
    }

    /// Somebody may be at this door.
    fn knock(&mut self, index: u32) {
        if !self.again.contains(&index) {
            self.again.push(index);
        }
    }

    /// Takes connections from a listener until there are none, or it has had its share of this turn.
    fn accept(&mut self, index: u32) {
        let now_ms = self.net.now_ns() / 1_000_000;
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(door) = self.doors.get_mut(index as usize) else { return };
            if !door.pause.is_over(now_ms) {
                return;
            }
            let protocol = door.protocol;
            if self.shared.berths.room() == Room::Soon {
                let until_ms = door.pause.begin(now_ms);
                self.wheel.insert(until_ms, Tag::fixed(Kind::Listener, protocol, index).pack());
                return;
            }
            match self.net.accept(&door.listener) {
                Ok((socket, peer)) => match protocol {
                    Protocol::Postgres => self.with(|hall, _, cx| hall.seat(cx, socket, peer)),
                    Protocol::Mysql => self.with(|_, hall, cx| hall.seat(cx, socket, peer)),
                },
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                    door.pause.end();
                    return;
                }
                Err(e) if is_exhaustion(&e) => {
                    let until_ms = door.pause.begin(now_ms);
                    if door.pause.failures().is_power_of_two() {
                        let failures = door.pause.failures();
                        tracing::warn!(
                            "cannot accept: {e}; {failures} times so far. Raise the limit of open files (LimitNOFILE)"
                        );
                    }
                    let cells = match protocol {
                        Protocol::Postgres => &self.postgres.cells,
                        Protocol::Mysql => &self.mysql.cells,
                    };
                    cells.wing.accept_backoffs.inc();
                    self.wheel.insert(until_ms, Tag::fixed(Kind::Listener, protocol, index).pack());
                    return;
                }
                // A client that went before it was accepted.
                Err(_) => {}
            }
        }
        self.knock(index);
    }
}
