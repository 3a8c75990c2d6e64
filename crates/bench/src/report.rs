//! What a run showed: lines while it goes, a table at its end, JSON for programs.

use crate::plan::{Pace, Plan};
use crate::procs::Watched;
use crate::record::{Interval, Latencies, Totals};
use serde::Serialize;
use std::fmt::Write;

/// The workers' threads were on a core for more than this share of the time: the figures may be the
/// generator's own limit.
const SATURATED: f64 = 0.95;

/// The result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Name of the workload.
    pub workload: String,
    /// URLs without passwords.
    pub servers: Vec<String>,
    /// How queries were sent.
    pub protocol_mode: String,
    /// Events each second that were wanted; `null` for a closed loop.
    pub rate_wanted: Option<f64>,
    /// Clients wanted.
    pub connections: u32,
    /// Clients that were logged in when events began.
    pub connected: u32,
    /// Clients that never could log in.
    pub given_up: u64,
    /// How long the connect phase took, in seconds.
    pub connect_seconds: f64,
    /// Recorded time, in seconds.
    pub seconds: f64,
    /// Events that ended in the recorded time.
    pub events: u64,
    /// Queries that ended in the recorded time.
    pub queries: u64,
    /// Queries each second.
    pub qps: f64,
    /// Events each second.
    pub tps: f64,
    /// Connections made anew after the start.
    pub reconnects: u64,
    /// All errors, of every phase and moment of the run.
    pub errors: u64,
    /// Errors by phase and code.
    pub errors_by_code: Vec<ErrorLine>,
    /// Latency of an event (for one-query workloads: of the query), from the moment it was due.
    pub latency: Percentiles,
    /// Latency of a query, from the moment it was sent.
    pub query: Percentiles,
    /// Latency of a socket connect.
    pub connect: Percentiles,
    /// Latency of a login.
    pub login: Percentiles,
    /// How late the generator sent what was due (with a rate only).
    pub lateness: Percentiles,
    /// CPU time of the generator's threads for each query, in microseconds.
    pub generator_cpu_us_per_query: f64,
    /// Share of the recorded time that the generator's threads were on a core.
    pub generator_busy: f64,
    /// Watched processes.
    pub processes: Vec<ProcessLine>,
    /// One line for each recorded second.
    pub per_second: Vec<SecondLine>,
}

/// One kind of error.
#[derive(Debug, Clone, Serialize)]
pub struct ErrorLine {
    /// `connect`, `login` or `query`.
    pub phase: String,
    /// SQLSTATE, errno, name of an I/O error, `wrong-reply`, `timeout`, `closed` or `protocol`.
    pub code: String,
    /// How often.
    pub count: u64,
    /// What the first said.
    pub first_text: String,
}

/// A distribution, in milliseconds.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs)]
pub struct Percentiles {
    pub count: u64,
    pub min_ms: f64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p75_ms: f64,
    pub p90_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub p9999_ms: f64,
    pub max_ms: f64,
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

/// What a watched process used.
#[derive(Debug, Clone, Serialize)]
pub struct ProcessLine {
    /// Its name.
    pub name: String,
    /// Its id.
    pub pid: u32,
    /// CPU time for each query, in microseconds, its children's included.
    pub cpu_us_per_query: Option<f64>,
    /// Cores it kept busy.
    pub cores: Option<f64>,
    /// Resident memory at the end, in bytes.
    pub rss_bytes: Option<u64>,
    /// Growth of resident memory from before the first connect, in bytes.
    pub rss_growth_bytes: Option<u64>,
    /// That growth for each connection, in bytes.
    pub bytes_per_connection: Option<f64>,
}

/// One recorded second.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct SecondLine {
    pub second: u64,
    pub events: u64,
    pub queries: u64,
    pub errors: u64,
    pub reconnects: u64,
    pub connected: u64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
}

impl From<&Interval> for SecondLine {
    fn from(i: &Interval) -> Self {
        SecondLine {
            second: i.number + 1,
            events: i.events,
            queries: i.queries,
            errors: i.errors,
            reconnects: i.reconnects,
            connected: i.connected,
            p50_ms: i.latencies.percentile_ms(50.0),
            p95_ms: i.latencies.percentile_ms(95.0),
            p99_ms: i.latencies.percentile_ms(99.0),
            p999_ms: i.latencies.percentile_ms(99.9),
            max_ms: i.latencies.max_ms(),
        }
    }
}

impl Report {
    /// Puts together what was recorded.
    pub fn new(
        plan: &Plan,
        connected: u32,
        connect_ns: u64,
        totals: Totals,
        per_second: &[Interval],
        watched: &[Watched],
    ) -> Report {
        let seconds = (totals.recorded_ns as f64 / 1e9).max(1e-9);
        let process = |w: &Watched| process_line(w, totals.queries, seconds, u64::from(connected));
        let errors_by_code = totals.errors.iter().map(|(phase, code, error)| ErrorLine {
            phase: phase.name().to_owned(),
            code: code.to_owned(),
            count: error.count,
            first_text: error.first_text.clone(),
        });
        Report {
            workload: plan.workload.name().to_owned(),
            servers: plan.servers.iter().map(ToString::to_string).collect(),
            protocol_mode: plan.mode.name().to_owned(),
            rate_wanted: match plan.pace {
                Pace::Closed => None,
                Pace::Every(period) => Some(f64::from(plan.connections) / period.as_secs_f64()),
            },
            connections: plan.connections,
            connected,
            given_up: totals.given_up,
            connect_seconds: connect_ns as f64 / 1e9,
            seconds,
            events: totals.events,
            queries: totals.queries,
            qps: totals.queries as f64 / seconds,
            tps: totals.events as f64 / seconds,
            reconnects: totals.reconnects,
            errors: totals.errors.total(),
            errors_by_code: errors_by_code.collect(),
            latency: (&totals.event).into(),
            query: (&totals.query).into(),
            connect: (&totals.connect).into(),
            login: (&totals.login).into(),
            lateness: (&totals.lateness).into(),
            generator_cpu_us_per_query: totals.cpu_us as f64 / totals.queries.max(1) as f64,
            generator_busy: totals.cpu_us as f64 / 1e6 / seconds / plan.threads.max(1) as f64,
            processes: watched.iter().map(process).collect(),
            per_second: per_second.iter().map(SecondLine::from).collect(),
        }
    }

    /// The report as JSON.
    pub fn to_json(&self) -> String {
        // Plain structs with string keys: it cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Clients that should have been there from the start were not.
    pub fn is_incomplete(&self) -> bool {
        self.connected < self.connections && self.workload != "connect"
    }

    /// The generator's own threads had no time left.
    pub fn is_saturated(&self) -> bool {
        self.generator_busy > SATURATED
    }

    /// The final table.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let _ = self.write_text(&mut out);
        out
    }

    fn write_text(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "\nSQL statistics:")?;
        writeln!(out, "    queries:        {:>12}  ({:.2} per sec.)", self.queries, self.qps)?;
        if self.events != self.queries {
            writeln!(out, "    events:         {:>12}  ({:.2} per sec.)", self.events, self.tps)?;
        }
        let per_second = self.errors as f64 / self.seconds;
        writeln!(out, "    errors:         {:>12}  ({per_second:.2} per sec.)", self.errors)?;
        let per_second = self.reconnects as f64 / self.seconds;
        writeln!(out, "    reconnects:     {:>12}  ({per_second:.2} per sec.)", self.reconnects)?;
        writeln!(out, "\nGeneral statistics:")?;
        writeln!(out, "    total time:     {:>11.4}s", self.seconds)?;
        let missing = if self.is_incomplete() {
            let missing = self.connections - self.connected;
            format!("  ({missing} of {} could not connect)", self.connections)
        } else {
            String::new()
        };
        writeln!(out, "    connections:    {:>12}{missing}", self.connected)?;
        writeln!(out, "    connect phase:  {:>11.4}s", self.connect_seconds)?;
        if let Some(rate) = self.rate_wanted {
            writeln!(out, "    rate wanted:    {rate:>12.2} per sec.")?;
        }
        self.write_latencies(out)?;
        self.write_processes(out)?;
        self.write_errors(out)
    }

    fn write_latencies(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "\nLatency (ms): {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10}",
            "min", "avg", "p50", "p95", "p99", "p99.9", "max", "count"
        )?;
        let event = if self.workload == "connect" { "total" } else { "query" };
        let mut lines = vec![(event, &self.latency)];
        if self.workload == "connect" {
            lines.push(("query", &self.query));
        }
        lines.extend([("connect", &self.connect), ("login", &self.login), ("sent late", &self.lateness)]);
        for (name, p) in lines.into_iter().filter(|(_, p)| p.count > 0) {
            writeln!(
                out,
                "    {name:<10}{:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>10}",
                p.min_ms, p.mean_ms, p.p50_ms, p.p95_ms, p.p99_ms, p.p999_ms, p.max_ms, p.count
            )?;
        }
        Ok(())
    }

    fn write_processes(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "\nProcesses:          CPU us/query     cores    memory MB  growth MB  bytes/connection"
        )?;
        let figure = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"))
        };
        let megabytes = |bytes: Option<u64>| figure(bytes.map(|b| b as f64 / 1e6), 1);
        for p in &self.processes {
            writeln!(
                out,
                "    {:<16}{:>12}{:>10}{:>13}{:>11}{:>18}",
                p.name,
                figure(p.cpu_us_per_query, 1),
                figure(p.cores, 2),
                megabytes(p.rss_bytes),
                megabytes(p.rss_growth_bytes),
                figure(p.bytes_per_connection, 0),
            )?;
        }
        if self.is_saturated() {
            writeln!(
                out,
                "    The load generator itself was busy {:.0}% of the time: its threads may be the limit of \
                 these figures (--threads).",
                self.generator_busy * 100.0
            )?;
        }
        Ok(())
    }

    fn write_errors(&self, out: &mut String) -> std::fmt::Result {
        if self.errors_by_code.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nErrors:")?;
        for error in &self.errors_by_code {
            let (phase, code, count) = (&error.phase, &error.code, error.count);
            writeln!(out, "    {phase:<8} {code:<12} {count:>8}  first: {}", error.first_text)?;
        }
        Ok(())
    }
}

fn process_line(w: &Watched, queries: u64, seconds: f64, connections: u64) -> ProcessLine {
    let cpu = w.cpu_us().map(|us| us as f64);
    let growth = w.growth_bytes();
    ProcessLine {
        name: w.name.clone(),
        pid: w.pid,
        cpu_us_per_query: cpu.filter(|_| queries > 0).map(|us| us / queries as f64),
        cores: cpu.map(|us| us / 1e6 / seconds),
        rss_bytes: w.ended.map(|u| u.rss_bytes),
        rss_growth_bytes: growth,
        bytes_per_connection: growth.filter(|_| connections > 0).map(|g| g as f64 / connections as f64),
    }
}

/// The line of the live report, of `seconds` merged seconds ending at second `at`.
pub fn live_line(at: u64, seconds: u64, interval: &Interval) -> String {
    let per_second = |n: u64| n as f64 / seconds.max(1) as f64;
    format!(
        "[ {at}s ] conns: {} tps: {:.2} qps: {:.2} lat (ms,95%): {:.2} (ms,99%): {:.2} err/s: {:.2} reconn/s: {:.2}",
        interval.connected,
        per_second(interval.events),
        per_second(interval.queries),
        interval.latencies.percentile_ms(95.0),
        interval.latencies.percentile_ms(99.0),
        per_second(interval.errors),
        per_second(interval.reconnects),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Mode;
    use crate::record::Phase;
    use crate::url::Url;
    use crate::workloads::select_one::SelectOne;
    use std::sync::Arc;
    use std::time::Duration;

    fn report() -> Report {
        let plan = Plan {
            servers: vec![Url::parse("postgres://app:hunter2@127.0.0.1/d").unwrap()],
            workload: Arc::new(SelectOne::new()),
            connections: 10,
            beside: 0,
            threads: 1,
            mode: Mode::Simple,
            pace: Pace::Every(Duration::from_secs(5)),
            warm_up: Duration::ZERO,
            time: Duration::from_secs(2),
            report_interval: None,
            connect_rate: None,
            connect_timeout: Duration::from_secs(1),
            query_timeout: Duration::from_secs(1),
            sources: Vec::new(),
            watched: Vec::new(),
        };
        let mut totals = Totals {
            events: 100,
            queries: 100,
            cpu_us: 2_000_000,
            recorded_ns: 2_000_000_000,
            ..Totals::default()
        };
        totals.event.record(2_000_000);
        totals.errors.record(Phase::Query, "wrong-reply", "asked 1, got 2");
        Report::new(&plan, 9, 500_000_000, totals, &[Interval::default()], &[])
    }

    #[test]
    fn text_says_what_matters_and_no_password() {
        let report = report();
        let text = report.to_text();
        for part in [
            "50.00 per sec.",
            "1 of 10 could not connect",
            "wrong-reply",
            "asked 1, got 2",
            "busy 100% of the time",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!report.to_json().contains("hunter2"));
    }

    #[test]
    fn json_has_the_figures() {
        let json: serde_json::Value = serde_json::from_str(&report().to_json()).unwrap();
        assert_eq!(json["qps"], 50.0);
        assert_eq!(json["rate_wanted"], 2.0);
        assert_eq!(json["errors_by_code"][0]["code"], "wrong-reply");
        assert_eq!(json["per_second"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn live_lines_are_per_second() {
        let interval = Interval { events: 30, queries: 30, connected: 7, ..Interval::default() };
        let line = live_line(10, 2, &interval);
        assert!(line.starts_with("[ 10s ] conns: 7 tps: 15.00 qps: 15.00"), "{line}");
    }
}
