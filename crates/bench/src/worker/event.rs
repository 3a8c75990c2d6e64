//! The parts of an event: queries, replies, errors, and repeated events.

use super::Worker;
use super::conn::Stage;
use super::serve::Flow;
use crate::client::{Piece, Protocol, Refusal};
use crate::clock;
use crate::plan::Pace;
use crate::record::Phase;
use crate::statement::{Got, Kind, Query, Row, Value};
use crate::workloads::{At, Shape};

/// Rows that one event may hear. What is beyond is dropped: no workload asks for so many.
const HEARD_ROWS_MAX: usize = 4096;

impl<P: Protocol> Worker<P> {
    // ---- events and queries ----

    /// Begins an event of a client that is free, as the workload's shape wants.
    pub(super) fn begin(&mut self, i: usize, begun_ns: u64) {
        let events = self.shared.plan.events;
        if self.shared.control.may_begin(events) {
            self.start_event(i, begun_ns);
        }
    }

    fn start_event(&mut self, i: usize, begun_ns: u64) {
        let shape = self.shape(i);
        let conn = &mut self.conns[i];
        conn.event = conn.event.wrapping_add(1);
        conn.step = 0;
        conn.begun_ns = begun_ns;
        match shape {
            Shape::Queries => {
                self.send_query(i);
            }
            Shape::Connects => self.open(i),
            Shape::Silent => {}
        }
    }

    /// Begins the next event if one is due: at once in a closed loop.
    pub(super) fn begin_next(&mut self, i: usize, now: u64) {
        let shape = self.shape(i);
        if self.ended || !self.started || shape == Shape::Silent {
            return;
        }
        match self.shared.plan.pace {
            Pace::Closed if self.shared.plan.think.is_some() => self.think(i, now),
            Pace::Closed => self.begin(i, now),
            Pace::Open { .. } => {
                self.conns[i].since_ns = now;
                match &mut self.arrivals {
                    // Those that were free before take what has just become due.
                    Some(arrivals) if self.free.is_empty() && arrivals.due_ns() <= now => {
                        let due_ns = arrivals.due_ns();
                        arrivals.take();
                        self.begin(i, due_ns);
                    }
                    Some(_) | None => self.list(i),
                }
            }
            Pace::Every(_) => {
                let conn = &mut self.conns[i];
                if conn.owed > 0 {
                    conn.owed -= 1;
                    let due_ns = conn.due_ns;
                    conn.due_ns += conn.period_ns;
                    self.begin(i, due_ns);
                }
            }
        }
    }

    fn at(&self, i: usize) -> At {
        let conn = &self.conns[i];
        At { client: conn.client, event: conn.event, step: conn.step }
    }

    /// Fills in the present step's query. False: the event has no more.
    fn ask_workload(&mut self, i: usize) -> bool {
        let at = self.at(i);
        self.shared.plan.workload.query(at, &self.conns[i].heard, &mut self.query)
    }

    /// Sends the present step's query. False: the event has no more.
    pub(super) fn send_query(&mut self, i: usize) -> bool {
        if !self.ask_workload(i) {
            return false;
        }
        let conn = &mut self.conns[i];
        conn.needs_row = self.query.expect.needs_row();
        conn.failed = false;
        conn.class = self.shared.classes.of.get(self.query.statement).copied().unwrap_or_default();
        conn.since_ns = clock::now_ns();
        self.write_query(i);
        true
    }

    fn write_query(&mut self, i: usize) {
        let plan = &self.shared.plan;
        self.out.clear();
        let session = &mut self.conns[i].session;
        P::begin(session, plan.workload.statements(), &self.query, plan.mode, &mut self.out);
        self.move_to(i, Stage::Busy);
        self.send(i);
    }

    // ---- replies ----

    pub(super) fn advance_reply(&mut self, i: usize, bytes: &[u8]) -> Flow {
        match P::next(&mut self.conns[i].session, bytes) {
            Piece::Incomplete => Flow::Wait,
            Piece::Pass(n) => Flow::Used(n),
            Piece::First(n, got) => {
                self.check(i, got);
                Flow::Used(n)
            }
            Piece::Row(n, values) => {
                self.hear(i, values);
                Flow::Used(n)
            }
            Piece::Refused(n, refusal) => self.refused(i, n, &refusal),
            Piece::Again(n) => {
                // What was prepared is executed.
                if self.ask_workload(i) {
                    self.write_query(i);
                }
                if self.conns[i].socket.is_some() { Flow::Used(n) } else { Flow::Gone }
            }
            Piece::Done(n) => {
                self.reply_ended(i);
                Flow::Used(n)
            }
            Piece::Broken(why) => {
                self.lose(i, Phase::Query, "protocol", why);
                Flow::Gone
            }
        }
    }

    fn hear(&mut self, i: usize, values: Vec<Value>) {
        let conn = &mut self.conns[i];
        conn.needs_row = false;
        if conn.heard.len() < HEARD_ROWS_MAX {
            conn.heard.push(Row { step: conn.step, values });
        }
    }

    /// Compares the first value with what was asked for.
    fn check(&mut self, i: usize, got: Got<'_>) {
        self.conns[i].needs_row = false;
        if self.conns[i].rolling_back || !self.ask_workload(i) {
            return;
        }
        if !self.query.expect.matches(got) {
            let text = wrong_reply(self.at(i), &self.query, got);
            self.fail_query(i, "wrong-reply", &text, false);
        }
    }

    /// Counts the error of a query: the first one.
    fn fail_query(&mut self, i: usize, code: &str, text: &str, by_server: bool) {
        if std::mem::replace(&mut self.conns[i].failed, true) {
            return;
        }
        let ignored = by_server && !self.conns[i].rolling_back && self.shared.plan.ignored.has(code);
        if ignored {
            self.conns[i].again = true;
            self.totals.ignored.record(Phase::Query, code, text);
            self.tick.ignored += 1;
        } else {
            self.totals.errors.record(Phase::Query, code, text);
            self.tick.errors += 1;
        }
        let now = clock::now_ns();
        if self.is_recording(now)
            && let Some(of) = self.totals.statements.get_mut(usize::from(self.conns[i].class))
        {
            of.errors += 1;
        }
    }

    fn refused(&mut self, i: usize, n: usize, refusal: &Refusal) -> Flow {
        if refusal.fatal || !matches!(self.conns[i].stage, Stage::Busy) {
            self.lose(i, Phase::Query, &refusal.code, &refusal.text);
            return Flow::Gone;
        }
        self.fail_query(i, &refusal.code, &refusal.text, true);
        if P::REFUSAL_ENDS_REPLY {
            self.reply_ended(i);
        }
        Flow::Used(n)
    }

    /// The reply is whole: next step, next event, or rest.
    fn reply_ended(&mut self, i: usize) {
        if !matches!(self.conns[i].stage, Stage::Busy) {
            return;
        }
        if std::mem::replace(&mut self.conns[i].rolling_back, false) {
            self.move_to(i, Stage::Idle);
            return self.after_failure(i);
        }
        if self.conns[i].needs_row && !self.conns[i].failed {
            let text = {
                let At { client, event, .. } = self.at(i);
                format!("client {client}, event {event}: no row came")
            };
            self.fail_query(i, "wrong-reply", &text, false);
        }
        if self.conns[i].failed {
            return self.end_failed(i);
        }
        let now = clock::now_ns();
        let (query_ns, event_ns) = (now - self.conns[i].since_ns, now.saturating_sub(self.conns[i].begun_ns));
        self.record_query(i, now, query_ns);
        self.conns[i].step = self.conns[i].step.saturating_add(1);
        if self.send_query(i) {
            return;
        }
        self.move_to(i, Stage::Idle);
        self.record_event(i, now, event_ns);
        self.end_event(i, now);
    }

    /// A query has failed: what its transaction has done is taken back first.
    fn end_failed(&mut self, i: usize) {
        if !P::in_transaction(&self.conns[i].session) {
            self.move_to(i, Stage::Idle);
            return self.after_failure(i);
        }
        let conn = &mut self.conns[i];
        (conn.rolling_back, conn.failed, conn.needs_row) = (true, false, false);
        conn.since_ns = clock::now_ns();
        self.out.clear();
        P::begin_text(&mut conn.session, b"ROLLBACK", &mut self.out);
        self.send(i);
    }

    /// The failed event is over: it begins again, with other numbers, or another one does.
    fn after_failure(&mut self, i: usize) {
        let conn = &mut self.conns[i];
        conn.heard = Vec::new();
        let again = std::mem::take(&mut conn.again);
        let now = clock::now_ns();
        if again && !self.ended && !self.connects() {
            // It counts from its first beginning.
            return self.start_event(i, self.conns[i].begun_ns);
        }
        self.end_event(i, now);
    }

    fn end_event(&mut self, i: usize, now: u64) {
        self.conns[i].heard = Vec::new();
        self.shared.control.event_over(self.shared.plan.events);
        if self.connects() { self.leave(i, now) } else { self.begin_next(i, now) }
    }

    fn record_query(&mut self, i: usize, now: u64, ns: u64) {
        let class = usize::from(self.conns[i].class);
        if self.is_measuring(now) {
            self.totals.query.record(ns);
        }
        if !self.is_recording(now) {
            return;
        }
        self.totals.queries += 1;
        self.tick.queries += 1;
        match self.shared.classes.statements.get(class).map(|(_, kind)| *kind) {
            Some(Kind::Read) => {
                self.totals.reads += 1;
                self.tick.reads += 1;
            }
            Some(Kind::Write) => {
                self.totals.writes += 1;
                self.tick.writes += 1;
            }
            Some(Kind::Other) | None => {}
        }
        if let Some(of) = self.totals.statements.get_mut(class) {
            of.latencies.record(ns);
        }
    }

    fn record_event(&mut self, i: usize, now: u64, ns: u64) {
        if self.is_measuring(now) {
            self.totals.event.record(ns);
        }
        if self.is_recording(now) {
            self.totals.events += 1;
            self.tick.events += 1;
            self.tick.latencies.record(ns);
            let kind = self.shared.plan.workload.transaction(self.at(i));
            if let Some(latencies) = self.totals.transactions.get_mut(kind) {
                latencies.record(ns);
            }
        }
    }
}

fn wrong_reply(at: At, query: &Query, got: Got<'_>) -> String {
    let params: Vec<_> = query.params.iter().map(Value::to_string).collect();
    let got = match got {
        Got::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
        Got::Null => "NULL".to_owned(),
        Got::Int(number) => number.to_string(),
        Got::TooLong => "more than is looked at".to_owned(),
    };
    format!("client {}, event {}: asked with {}, got {got}", at.client, at.event, params.join(", "))
}
