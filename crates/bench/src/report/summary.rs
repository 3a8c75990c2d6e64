//! Terminal output of a run: lines while it runs, a table at its end, in sysbench's form.

use crate::record::result::Transport;
use crate::record::{Interval, RunResult};
use std::fmt::Write;

impl RunResult {
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
            let (reads, writes, others) = (self.reads, self.writes, self.others);
            writeln!(out, "    read/write/other: {reads} / {writes} / {others}")?;
        }
        if self.ended_late() > 0 {
            let text = "when the time was over: in the latencies, not in the rates";
            writeln!(out, "    ended late:     {:>12}  ({text})", self.ended_late())?;
        }
        let per_second = self.errors as f64 / self.seconds;
        writeln!(out, "    errors:         {:>12}  ({per_second:.2} per sec.)", self.errors)?;
        if self.ignored_errors > 0 {
            let per_second = self.ignored_errors as f64 / self.seconds;
            writeln!(out, "    ignored errors: {:>12}  ({per_second:.2} per sec.)", self.ignored_errors)?;
        }
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
        if !self.transport.version.is_empty() {
            writeln!(out, "    transport:      {}", self.transport)?;
        }
        for agent in &self.agents {
            let (address, queries, errors) = (&agent.address, agent.queries, agent.errors);
            let (had, wanted) = (agent.connected, agent.connections);
            writeln!(
                out,
                "    agent {address}: {had} of {wanted} connections, {queries} queries, {errors} errors"
            )?;
        }
        if let Some(rate) = self.rate_wanted {
            writeln!(out, "    rate wanted:    {rate:>12.2} per sec.")?;
        }
        self.write_latencies(out)?;
        self.write_processes(out)?;
        self.write_checks(out)?;
        self.write_errors(out)
    }

    fn write_checks(&self, out: &mut String) -> std::fmt::Result {
        if self.checks.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nChecks:")?;
        for check in &self.checks {
            let verdict = if check.passed { "passed" } else { "FAILED" };
            writeln!(out, "    {verdict}  {}: {}", check.name, check.text)?;
        }
        Ok(())
    }

    fn write_latencies(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "\nLatency (ms): {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10}",
            "min", "avg", "p50", "p95", "p99", "p99.9", "max", "count"
        )?;
        // An event of several queries, or of a connect and a query, is not the same as its queries.
        let is_query = self.events == self.queries && self.workload != "connect";
        let mut lines = vec![(if is_query { "query" } else { "event" }, &self.latency)];
        if !is_query {
            lines.push(("query", &self.query));
        }
        lines.extend(self.transactions.iter().map(|of| (of.name.as_str(), &of.latency)));
        lines.extend([("connect", &self.connect), ("TLS", &self.tls), ("login", &self.login)]);
        lines.push(("sent late", &self.lateness));
        for (name, p) in lines.into_iter().filter(|(_, p)| p.count > 0) {
            writeln!(
                out,
                "    {name:<11}{:>8.3} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>10}",
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
        if let Some(why) = &self.saturation {
            writeln!(out, "    {why}.")?;
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
            let ignored = if error.ignored { " (begun again)" } else { "" };
            writeln!(out, "    {phase:<8} {code:<12} {count:>8}{ignored}  first: {}", error.first_text)?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.version.is_empty() {
            return f.write_str("in clear");
        }
        write!(f, "{} {} (sslmode={}", self.version, self.cipher, self.sslmode)?;
        if self.resume {
            write!(f, ", {} handshakes resumed", self.resumed)?;
        }
        f.write_str(")")
    }
}

/// The line of the live report, of `seconds` merged seconds ending at second `at`.
pub fn live_line(at: u64, seconds: u64, interval: &Interval) -> String {
    let per_second = |n: u64| n as f64 / seconds.max(1) as f64;
    format!(
        "[ {at}s ] conns: {} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,95%): {:.2} (ms,99%): {:.2} \
         err/s: {:.2} reconn/s: {:.2}",
        interval.connected,
        per_second(interval.events),
        per_second(interval.queries),
        per_second(interval.reads),
        per_second(interval.writes),
        per_second(interval.queries.saturating_sub(interval.reads + interval.writes)),
        interval.latencies.percentile_ms(95.0),
        interval.latencies.percentile_ms(99.0),
        per_second(interval.errors + interval.ignored),
        per_second(interval.reconnects),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Pace, Plan};
    use crate::record::gather::{Around, gather};
    use crate::record::{Phase, Totals};
    use crate::url::Url;
    use crate::workloads::select_one::SelectOne;
    use std::sync::Arc;
    use std::time::Duration;

    fn report() -> RunResult {
        let servers = vec![Url::parse("postgres://app:hunter2@127.0.0.1/d").unwrap()];
        let pace = Pace::Every(Duration::from_secs(5));
        let plan = Plan { pace, ..Plan::new(servers, Arc::new(SelectOne::new()), 10) };
        let mut totals = Totals {
            events: 100,
            queries: 100,
            cpu_us: 2_000_000,
            busiest_cpu_us: 2_000_000,
            recorded_ns: 2_000_000_000,
            ..Totals::default()
        };
        totals.event.record(2_000_000);
        totals.errors.record(Phase::Query, "wrong-reply", "asked 1, got 2");
        let around = Around { connected: 9, connect_ns: 500_000_000, workers: 1, ..Around::default() };
        gather(&plan, around, &totals, &[Interval::default()], &[])
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
            "on a core for 100% of the time",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!report.to_json().contains("hunter2"));
    }

    #[test]
    fn counts_of_one_report_agree() {
        let mut report = report();
        report.latency.count = report.events + 9;
        let text = report.to_text();
        let line = text.lines().find(|line| line.contains("ended late:")).expect("a line");
        assert_eq!(line.split_whitespace().nth(2), Some("9"), "{line}");
        report.latency.count = report.events;
        assert!(!report.to_text().contains("ended late"));
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
