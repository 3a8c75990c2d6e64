//! Computes the result of the run from the records.

use super::result::{
    AgentLine, Bucket, CheckLine, ErrorLine, FORMAT, Machine, Percentiles, PlanFacts, ProcessLine, RunResult,
    SecondLine, StatementLine, TransactionLine, Transport,
};
use super::{ErrorCount, Errors, Interval, Latencies, Phase, Totals};
use crate::plan::{Pace, Plan};
use crate::procs::Watched;
use crate::statement::{Kind, Statement};
use crate::url::Dialect;
use crate::workloads::Workload;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;

/// A worker's thread was on a core for more than this share of the time: the figures may be the generator's
/// own limit.
const SATURATED: f64 = 0.95;

/// 99% of what was due must be sent within this time.
const LATE_MS: f64 = 10.0;

/// What is known of a run beside what its workers recorded.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Around {
    /// Clients that were logged in when events began.
    pub connected: u32,
    /// Length of the connect phase.
    pub connect_ns: u64,
    /// When events began: milliseconds since 1970.
    pub began_unix_ms: u64,
    /// What the servers say of themselves.
    pub server_versions: Vec<String>,
    /// The machine, looked at before the run.
    pub machine: Machine,
    /// What the connections go through; `resumed` is not known yet.
    pub transport: Transport,
    /// Event loops there were.
    pub workers: usize,
    /// Sentences the observer heard.
    pub remarks: Vec<String>,
    /// The machines that made the load, if there were several.
    pub agents: Vec<AgentLine>,
    /// What was checked behind the run.
    pub checks: Vec<CheckLine>,
}

/// Puts the result together.
pub fn gather(
    plan: &Plan,
    around: Around,
    totals: &Totals,
    per_second: &[Interval],
    watched: &[Watched],
) -> RunResult {
    let seconds = (totals.recorded_ns as f64 / 1e9).max(1e-9);
    let connected = around.connected;
    let busiest = totals.busiest_cpu_us as f64 / 1e6 / seconds;
    let mut errors_by_code = error_lines(&totals.errors, false);
    errors_by_code.extend(error_lines(&totals.ignored, true));
    RunResult {
        format: FORMAT,
        weir_version: env!("CARGO_PKG_VERSION").to_owned(),
        began_unix_ms: around.began_unix_ms,
        workload: plan.workload.name().to_owned(),
        servers: plan.servers.iter().map(ToString::to_string).collect(),
        server_versions: around.server_versions,
        dialect: plan.servers.first().map_or("", |url| dialect_name(url.dialect)).to_owned(),
        protocol_mode: plan.mode.name().to_owned(),
        rate_wanted: rate_wanted(plan),
        plan: plan_facts(plan, around.workers),
        transport: Transport { resumed: totals.tls_resumed, ..around.transport },
        machine: around.machine,
        connections: plan.connections,
        connected,
        given_up: totals.given_up,
        connect_seconds: around.connect_ns as f64 / 1e9,
        seconds,
        events: totals.events,
        queries: totals.queries,
        reads: totals.reads,
        writes: totals.writes,
        others: totals.queries.saturating_sub(totals.reads + totals.writes),
        qps: totals.queries as f64 / seconds,
        tps: totals.events as f64 / seconds,
        reconnects: totals.reconnects,
        errors: totals.errors.total(),
        ignored_errors: totals.ignored.total(),
        errors_by_code,
        latency: (&totals.event).into(),
        histogram: totals.event.buckets().map(|(upto_ns, count)| Bucket { upto_ns, count }).collect(),
        query: (&totals.query).into(),
        connect: (&totals.connect).into(),
        tls: (&totals.tls).into(),
        login: (&totals.login).into(),
        lateness: (&totals.lateness).into(),
        statements: statement_lines(plan.workload.as_ref(), totals),
        transactions: transaction_lines(plan.workload.as_ref(), totals),
        generator_cpu_us_per_query: totals.cpu_us as f64 / totals.queries.max(1) as f64,
        generator_busy: totals.cpu_us as f64 / 1e6 / seconds / around.workers.max(1) as f64,
        generator_busiest_thread: busiest,
        saturation: saturation(totals, seconds),
        processes: watched
            .iter()
            .map(|w| process_line(w, totals.queries, seconds, u64::from(connected)))
            .collect(),
        per_second: per_second.iter().map(SecondLine::from).collect(),
        agents: around.agents,
        checks: around.checks,
        remarks: around.remarks,
    }
}

fn error_lines(errors: &Errors, ignored: bool) -> Vec<ErrorLine> {
    let line = |(phase, code, error): (Phase, &str, &ErrorCount)| ErrorLine {
        phase: phase.name().to_owned(),
        code: code.to_owned(),
        count: error.count,
        first_text: error.first_text.clone(),
        ignored,
    };
    errors.iter().map(line).collect()
}

/// One line for each class of statements that was sent.
fn statement_lines(workload: &dyn Workload, totals: &Totals) -> Vec<StatementLine> {
    let classes = Classes::new(workload.statements());
    let lines =
        classes.statements.iter().zip(&totals.statements).map(|((label, kind), seen)| StatementLine {
            text: label.clone(),
            kind: kind.name().to_owned(),
            count: seen.latencies.count(),
            errors: seen.errors,
            latency: (&seen.latencies).into(),
        });
    lines.filter(|line| line.count + line.errors > 0).collect()
}

fn transaction_lines(workload: &dyn Workload, totals: &Totals) -> Vec<TransactionLine> {
    let lines = workload.transactions().iter().zip(&totals.transactions).map(|(name, seen)| {
        TransactionLine { name: (*name).to_owned(), count: seen.count(), latency: seen.into() }
    });
    lines.collect()
}

/// Statements that are reported together: those of one label.
#[derive(Debug, Default)]
pub struct Classes {
    /// The class of each statement.
    pub of: Vec<u16>,
    /// Label and kind of each class.
    pub statements: Vec<(String, Kind)>,
}

impl Classes {
    /// The classes of a workload's statements.
    pub fn new(statements: &[Statement]) -> Classes {
        let mut classes = Classes::default();
        let mut known = HashMap::new();
        for statement in statements {
            // A workload has some dozens of labels.
            let next = classes.statements.len() as u16;
            let class = *known.entry(statement.label()).or_insert(next);
            if class == next {
                classes.statements.push((statement.label().to_owned(), statement.kind()));
            }
            classes.of.push(class);
        }
        classes
    }
}

/// Why the generator itself may be the limit.
fn saturation(totals: &Totals, seconds: f64) -> Option<String> {
    let share = |us: u64| us as f64 / 1e6 / seconds;
    let (busiest, runnable) = (share(totals.busiest_cpu_us), share(totals.busiest_runnable_us));
    let late_ms = totals.lateness.percentile_ms(99.0);
    if busiest > SATURATED {
        return Some(format!(
            "the busiest thread of the load generator was on a core for {:.0}% of the time: it may be the limit of \
             these figures (--event-loops)",
            busiest * 100.0
        ));
    }
    if runnable > SATURATED {
        return Some(format!(
            "a thread of the load generator had work all the time and was on a core for {:.0}% of it: it shares the \
             cores with others, and latencies hold its own waiting",
            busiest * 100.0
        ));
    }
    (late_ms > LATE_MS).then(|| {
        format!("the load generator sent late: one query of a hundred {late_ms:.1} ms after it was due")
    })
}

fn dialect_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "postgres",
        Dialect::Mysql => "mysql",
    }
}

fn rate_wanted(plan: &Plan) -> Option<f64> {
    match plan.pace {
        Pace::Closed => None,
        Pace::Open { rate, .. } => Some(rate),
        Pace::Every(period) => Some(f64::from(plan.connections) / period.as_secs_f64()),
    }
}

fn plan_facts(plan: &Plan, workers: usize) -> PlanFacts {
    let arrival = match plan.pace {
        Pace::Closed => "closed",
        Pace::Open { poisson: true, .. } => "poisson",
        Pace::Open { poisson: false, .. } => "constant",
        Pace::Every(_) => "every",
    };
    PlanFacts {
        arrival: arrival.to_owned(),
        think_time_ms: plan.think.map_or(0.0, |think| think.mean_s * 1e3),
        seed: plan.workload.seed(),
        options: plan.workload.options(),
        connect_rate: plan.connect_rate,
        warm_up_seconds: plan.warm_up.as_secs_f64(),
        time_seconds: plan.time.as_secs_f64(),
        threads: workers as u64,
    }
}

/// With fewer connections the memory of a process grows by other things than connections: 8 of them seemed to
/// take 958 kB each.
const CONNECTIONS_THAT_SHOW: u64 = 1_000;

fn process_line(w: &Watched, queries: u64, seconds: f64, connections: u64) -> ProcessLine {
    let cpu = w.cpu_us((seconds * 1e9) as u64);
    let growth = w.growth_bytes();
    ProcessLine {
        name: w.name.clone(),
        pid: w.pid,
        cpu_us_per_query: cpu.filter(|_| queries > 0).map(|us| us / queries as f64),
        cores: cpu.map(|us| us / 1e6 / seconds),
        rss_bytes: w.ended.map(|usage| usage.rss_bytes),
        rss_growth_bytes: growth,
        bytes_per_connection: growth
            .filter(|_| connections >= CONNECTIONS_THAT_SHOW)
            .map(|b| b as f64 / connections as f64),
    }
}

impl From<&Latencies> for Percentiles {
    fn from(l: &Latencies) -> Self {
        Percentiles {
            count: l.count(),
            min_ms: l.min_ms(),
            mean_ms: l.mean_ms(),
            p50_ms: l.percentile_ms(50.0),
            p75_ms: l.percentile_ms(75.0),
            p90_ms: l.percentile_ms(90.0),
            p95_ms: l.percentile_ms(95.0),
            p99_ms: l.percentile_ms(99.0),
            p999_ms: l.percentile_ms(99.9),
            p9999_ms: l.percentile_ms(99.99),
            max_ms: l.max_ms(),
        }
    }
}

impl From<&Interval> for SecondLine {
    fn from(i: &Interval) -> Self {
        SecondLine {
            second: i.number + 1,
            events: i.events,
            queries: i.queries,
            reads: i.reads,
            writes: i.writes,
            others: i.queries.saturating_sub(i.reads + i.writes),
            errors: i.errors,
            ignored_errors: i.ignored,
            reconnects: i.reconnects,
            connected: i.connected,
            busy: i.busy,
            queued: i.queued,
            min_ms: i.latencies.min_ms(),
            mean_ms: i.latencies.mean_ms(),
            p50_ms: i.latencies.percentile_ms(50.0),
            p90_ms: i.latencies.percentile_ms(90.0),
            p95_ms: i.latencies.percentile_ms(95.0),
            p99_ms: i.latencies.percentile_ms(99.0),
            p999_ms: i.latencies.percentile_ms(99.9),
            p9999_ms: i.latencies.percentile_ms(99.99),
            max_ms: i.latencies.max_ms(),
        }
    }
}

/// Looks at the machine. What the system does not say stays empty.
pub fn machine(server_is_here: bool) -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let after = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    let uname = rustix::system::uname();
    let kilobytes =
        after(&read("/proc/meminfo"), "MemTotal").and_then(|v| v.split(' ').next()?.parse::<u64>().ok());
    Machine {
        kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
        cpu_model: after(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
        cores: std::thread::available_parallelism().map_or(0, |n| n.get() as u64),
        memory_bytes: kilobytes.unwrap_or_default() * 1024,
        open_files_limit: rustix::process::getrlimit(rustix::process::Resource::Nofile)
            .current
            .unwrap_or(u64::MAX),
        load_average: read("/proc/loadavg")
            .split(' ')
            .next()
            .and_then(|v| v.parse().ok())
            .unwrap_or_default(),
        server_is_here,
    }
}
