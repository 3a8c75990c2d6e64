//! The page and the CSV of one run.
//!
//! Owns: which figures of a [`RunResult`] are shown, in which order and how they are named.

use super::csv;
use super::page::{
    Axis, Draw, Page, Plot, Scale, Section, Series, Table, bytes, count, milliseconds, number,
};
use crate::record::result::{Bucket, Percentiles, RunResult, SecondLine};

/// Percentiles drawn, beside those the table has.
const DRAWN_PERCENTILES: [f64; 26] = [
    0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 92.5, 95.0, 97.0, 98.0, 99.0,
    99.5, 99.75, 99.9, 99.95, 99.975, 99.99, 99.995, 99.999, 99.9999,
];

/// The page of a run.
pub fn page(result: &RunResult) -> Page {
    let mut sections = vec![overview(result)];
    sections.extend([over_time(result), distribution(result), statements(result), processes(result)]);
    sections.extend([errors(result), about(result)]);
    sections.retain(|section| !section.blocks.is_empty());
    Page { title: title(result), lead: lead(result), sections }
}

/// Workload and size, in a few words.
pub fn title(result: &RunResult) -> String {
    let rate =
        result.rate_wanted.map(|rate| format!(", {} events/s wanted", number(rate))).unwrap_or_default();
    format!("{}, {} connections{rate}", result.workload, count(u64::from(result.connections)))
}

fn lead(result: &RunResult) -> Vec<String> {
    let unit = if result.events == result.queries { "queries" } else { "events" };
    let mut lead = vec![format!(
        "{} {unit} per second over {:.0} seconds; half of them took at most {}, 99% at most {}; {}.",
        number(result.tps),
        result.seconds,
        milliseconds(result.latency.p50_ms),
        milliseconds(result.latency.p99_ms),
        match result.errors {
            0 => "no errors".to_owned(),
            1 => "1 error".to_owned(),
            n => format!("{} errors", count(n)),
        }
    )];
    let versions = &result.server_versions;
    for (n, server) in result.servers.iter().enumerate() {
        let version =
            versions.get(n).filter(|v| !v.is_empty()).map(|v| format!(" ({v})")).unwrap_or_default();
        lead.push(format!("Server: {server}{version}"));
    }
    if !result.transport.version.is_empty() {
        lead.push(format!("Transport: {}", result.transport));
    }
    lead
}

fn overview(result: &RunResult) -> Section {
    let mut section = Section::new("Result");
    let mut facts: Vec<(String, String)> = vec![("queries per second".into(), number(result.qps))];
    if result.events != result.queries {
        facts.push(("transactions per second".into(), number(result.tps)));
    }
    for (name, ms) in [
        ("mean latency", result.latency.mean_ms),
        ("p50", result.latency.p50_ms),
        ("p95", result.latency.p95_ms),
        ("p99", result.latency.p99_ms),
        ("p99.9", result.latency.p999_ms),
    ] {
        facts.push((name.into(), milliseconds(ms)));
    }
    facts.push(("events".into(), count(result.events)));
    if result.ended_late() > 0 {
        facts.push(("ended late (in the latencies only)".into(), count(result.ended_late())));
    }
    facts.push(("connections".into(), count(u64::from(result.connected))));
    facts.push(("errors".into(), count(result.errors)));
    section.facts(facts);
    if let Some(why) = &result.saturation {
        section.warning(capital(why) + ".");
    }
    if result.is_incomplete() {
        let missing = result.connections - result.connected;
        section.warning(format!("{missing} of {} clients could not connect.", result.connections));
    }
    for check in &result.checks {
        let text = format!("{}: {}", check.name, check.text);
        if check.passed { section.text(format!("Checked, {text}")) } else { section.warning(text) }
    }
    section
}

fn over_time(result: &RunResult) -> Section {
    let mut section = Section::new("Over time");
    let xs: Vec<f64> = result.per_second.iter().map(|s| s.second as f64).collect();
    let plot = |title: &str, y_axis: Axis, series: Vec<Series>| Plot {
        title: title.to_owned(),
        group: "time".to_owned(),
        x_axis: Axis::linear("second"),
        y_axis,
        xs: xs.clone(),
        series,
        ..Plot::default()
    };
    section.plot(plot("Throughput", Axis::linear("per second"), throughput_series(result)));
    section.plot(plot("Latency", Axis::new("ms", Scale::Log), latency_series(&result.per_second)));
    let mut clients = vec![line("connected", 0, &result.per_second, |s| s.connected as f64)];
    if result.per_second.iter().any(|s| s.busy > 0) {
        clients.push(line("waiting for a reply", 1, &result.per_second, |s| s.busy as f64));
    }
    if result.per_second.iter().any(|s| s.queued > 0) {
        clients.push(line("events that wait for a client", 2, &result.per_second, |s| s.queued as f64));
    }
    section.plot(plot("Connections", Axis::linear("connections"), clients));
    let mut trouble = Vec::new();
    for (n, (name, of)) in TROUBLE.iter().enumerate() {
        if result.per_second.iter().any(|s| of(s) > 0.0) {
            trouble.push(Series { draw: Draw::Bars, ..line(name, [1, 4, 5][n], &result.per_second, of) });
        }
    }
    section.plot(plot("Errors and reconnects", Axis::linear("per second"), trouble));
    section
}

type OfSecond = fn(&SecondLine) -> f64;

const TROUBLE: [(&str, OfSecond); 3] = [
    ("errors", |s| s.errors as f64),
    ("ignored errors (begun again)", |s| s.ignored_errors as f64),
    ("reconnects", |s| s.reconnects as f64),
];

fn throughput_series(result: &RunResult) -> Vec<Series> {
    let seconds = &result.per_second;
    let mut series = vec![line("queries", 0, seconds, |s| s.queries as f64)];
    if result.events != result.queries {
        series.push(line("transactions", 2, seconds, |s| s.events as f64));
    }
    // One kind alone is the queries again.
    if seconds.iter().any(|s| s.reads > 0) && seconds.iter().any(|s| s.writes > 0) {
        let kinds: [(&str, usize, OfSecond); 3] = [
            ("reads", 5, |s| s.reads as f64),
            ("writes", 1, |s| s.writes as f64),
            ("others", 7, |s| s.others as f64),
        ];
        series.extend(kinds.iter().map(|(name, colour, of)| line(name, *colour, seconds, of)));
    }
    series
}

/// Latencies of each second.
pub fn latency_series(seconds: &[SecondLine]) -> Vec<Series> {
    let kinds: [(&str, usize, OfSecond); 5] = [
        ("p50", 2, |s| s.p50_ms),
        ("p95", 0, |s| s.p95_ms),
        ("p99", 4, |s| s.p99_ms),
        ("p99.9", 1, |s| s.p999_ms),
        ("max", 7, |s| s.max_ms),
    ];
    // A second in which nothing ended has no latency.
    let one = |&(name, colour, of): &(&str, usize, OfSecond)| Series {
        name: name.to_owned(),
        values: seconds.iter().map(|s| (s.events > 0).then(|| of(s))).collect(),
        colour,
        ..Series::default()
    };
    kinds.iter().map(one).collect()
}

/// One value of each second as a line.
pub fn line(name: &str, colour: usize, seconds: &[SecondLine], of: impl Fn(&SecondLine) -> f64) -> Series {
    let values = seconds.iter().map(|s| Some(of(s))).collect();
    Series { name: name.to_owned(), values, colour, ..Series::default() }
}

fn distribution(result: &RunResult) -> Section {
    let mut section = Section::new("Latency");
    let mut rows =
        Table::new(["", "count", "min", "mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "max"]);
    let phases = [
        (
            if result.events == result.queries { "query, from when it was due" } else { "transaction" },
            &result.latency,
        ),
        ("query, from when it was sent", &result.query),
        ("connect", &result.connect),
        ("TLS handshake", &result.tls),
        ("login", &result.login),
        ("sent late by the generator", &result.lateness),
    ];
    for (name, p) in phases.into_iter().filter(|(_, p)| p.count > 0) {
        rows.row(percentile_cells(name, p));
    }
    section.table(rows);
    let curve = percentile_curve(&result.histogram, &result.latency);
    section.plot(percentile_plot(&[Curve { name: "latency", points: &curve, colour: 0 }]));
    section
}

fn percentile_cells(name: &str, p: &Percentiles) -> Vec<String> {
    let mut cells = vec![name.to_owned(), count(p.count)];
    let values = [
        p.min_ms, p.mean_ms, p.p50_ms, p.p75_ms, p.p90_ms, p.p95_ms, p.p99_ms, p.p999_ms, p.p9999_ms,
        p.max_ms,
    ];
    cells.extend(values.map(milliseconds));
    cells
}

/// Latency over percentile, as (percentile, ms): as far into the nines as there are enough events for.
pub fn percentile_curve(histogram: &[Bucket], known: &Percentiles) -> Vec<(f64, f64)> {
    let all: u64 = histogram.iter().map(|b| b.count).sum();
    if all == 0 {
        let p = known;
        let some = [
            (0.0, p.min_ms),
            (50.0, p.p50_ms),
            (75.0, p.p75_ms),
            (90.0, p.p90_ms),
            (95.0, p.p95_ms),
            (99.0, p.p99_ms),
            (99.9, p.p999_ms),
            (99.99, p.p9999_ms),
        ];
        return some.into_iter().filter(|_| p.count > 0).collect();
    }
    let (mut curve, mut seen, mut at) = (Vec::new(), 0, 0);
    for percentile in DRAWN_PERCENTILES {
        // Beyond this, a single event is the percentile.
        if percentile > 50.0 && (1.0 - percentile / 100.0) * (all as f64) < 0.999_999 {
            break;
        }
        // A hair less, because 99.9% of 1,000 is 999.0000000000001 as a double.
        let wanted = ((percentile / 100.0 * all as f64 - 1e-6).ceil() as u64).max(1);
        while let Some(bucket) = histogram.get(at).filter(|b| seen + b.count < wanted) {
            seen += bucket.count;
            at += 1;
        }
        if let Some(bucket) = histogram.get(at) {
            curve.push((percentile, bucket.upto_ns as f64 / 1e6));
        }
    }
    curve
}

/// A curve of latency over percentile.
pub struct Curve<'a> {
    /// Its name in the legend.
    pub name: &'a str,
    /// Percentile and milliseconds.
    pub points: &'a [(f64, f64)],
    /// The number of its colour.
    pub colour: usize,
}

/// Curves of latency over percentile in one plot.
pub fn percentile_plot(curves: &[Curve<'_>]) -> Plot {
    let longest = curves.iter().map(|c| c.points).max_by_key(|points| points.len()).unwrap_or_default();
    // 1 / (1 - p): 1 for p0, 2 for p50, 10 for p90, 100 for p99.
    let nines = |percentile: f64| 1.0 / (1.0 - percentile / 100.0);
    let series = curves.iter().map(|curve| Series {
        name: curve.name.to_owned(),
        values: (0..longest.len()).map(|n| curve.points.get(n).map(|(_, ms)| *ms)).collect(),
        colour: curve.colour,
        ..Series::default()
    });
    Plot {
        title: "Latency by percentile".to_owned(),
        x_axis: Axis::new("percentile", Scale::Nines),
        y_axis: Axis::new("ms", Scale::Log),
        xs: longest.iter().map(|(percentile, _)| nines(*percentile)).collect(),
        series: series.collect(),
        ..Plot::default()
    }
}

fn statements(result: &RunResult) -> Section {
    let mut section = Section::new("Statements");
    let mut rows =
        Table::new(["transaction", "count", "per second", "mean", "p50", "p95", "p99", "p99.9", "max"]);
    let cells =
        |p: &Percentiles| [p.mean_ms, p.p50_ms, p.p95_ms, p.p99_ms, p.p999_ms, p.max_ms].map(milliseconds);
    for t in &result.transactions {
        let mut row = vec![t.name.clone(), count(t.count), number(t.count as f64 / result.seconds)];
        row.extend(cells(&t.latency));
        rows.row(row);
    }
    section.table(rows);
    let headings =
        ["statement", "kind", "count", "errors", "per second", "mean", "p50", "p95", "p99", "p99.9", "max"];
    let mut rows = Table::new(headings).with_text(&[1]);
    for s in &result.statements {
        let mut row = vec![
            s.text.clone(),
            s.kind.clone(),
            count(s.count),
            count(s.errors),
            number(s.count as f64 / result.seconds),
        ];
        row.extend(cells(&s.latency));
        rows.row(row);
    }
    section.table(rows);
    section
}

fn processes(result: &RunResult) -> Section {
    let mut section = Section::new("Processes");
    let mut rows = Table::new(["process", "CPU us/query", "cores", "memory", "growth", "bytes/connection"]);
    let figure = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    let size = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |b| bytes(b as f64));
    for p in &result.processes {
        rows.row([
            p.name.clone(),
            figure(p.cpu_us_per_query),
            figure(p.cores),
            size(p.rss_bytes),
            size(p.rss_growth_bytes),
            figure(p.bytes_per_connection),
        ]);
    }
    section.table(rows);
    section
}

fn errors(result: &RunResult) -> Section {
    let mut section = Section::new("Errors");
    let mut rows = Table::new(["phase", "code", "count", "first text"]).with_text(&[1, 3]);
    for e in &result.errors_by_code {
        let code = if e.ignored { format!("{} (begun again)", e.code) } else { e.code.clone() };
        rows.row([e.phase.clone(), code, count(e.count), e.first_text.clone()]);
    }
    section.table(rows);
    section
}

fn about(result: &RunResult) -> Section {
    let mut section = Section::new("How it was measured");
    let mut rows = Table::new(["", ""]).with_text(&[1]);
    let plan = &result.plan;
    let machine = &result.machine;
    let mut put = |name: &str, value: String| {
        if !value.is_empty() {
            rows.row([name.to_owned(), value]);
        }
    };
    put("weir", result.weir_version.clone());
    put("queries sent as", result.protocol_mode.clone());
    put(
        "events begin",
        match (plan.arrival.as_str(), result.rate_wanted) {
            ("closed" | "", _) => "when the client's last one has ended".to_owned(),
            (arrival, Some(rate)) => {
                format!("{arrival}, {} per second; latency counts from when they were due", number(rate))
            }
            (arrival, None) => arrival.to_owned(),
        },
    );
    put("event loops", plan.threads.to_string());
    put("connect phase", format!("{:.1} s", result.connect_seconds));
    put("warm-up, recorded", format!("{:.0} s, {:.0} s", plan.warm_up_seconds, result.seconds));
    for (name, value) in &plan.options {
        put(name, value.clone());
    }
    put(
        "generator",
        format!(
            "{} us of CPU per query, {:.0}% busy",
            number(result.generator_cpu_us_per_query),
            result.generator_busy * 100.0
        ),
    );
    if machine.cores > 0 {
        let model =
            if machine.cpu_model.is_empty() { String::new() } else { format!(", {}", machine.cpu_model) };
        let here = if machine.server_is_here { "; the server is on this machine too" } else { "" };
        put(
            "machine",
            format!(
                "{} cores{model}, {} of memory, {}{here}",
                machine.cores,
                bytes(machine.memory_bytes as f64),
                machine.kernel
            ),
        );
        put("load before the run", format!("{:.2}", machine.load_average));
    }
    section.table(rows);
    for remark in &result.remarks {
        section.text(remark.clone());
    }
    section
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The recorded seconds as CSV.
pub fn seconds_csv(result: &RunResult) -> String {
    let headings = [
        "second",
        "events",
        "queries",
        "reads",
        "writes",
        "others",
        "errors",
        "ignored_errors",
        "reconnects",
        "connected",
        "busy",
        "queued",
        "min_ms",
        "mean_ms",
        "p50_ms",
        "p90_ms",
        "p95_ms",
        "p99_ms",
        "p999_ms",
        "p9999_ms",
        "max_ms",
    ];
    let rows = result.per_second.iter().map(|s| {
        let counts = [
            s.second,
            s.events,
            s.queries,
            s.reads,
            s.writes,
            s.others,
            s.errors,
            s.ignored_errors,
            s.reconnects,
            s.connected,
            s.busy,
            s.queued,
        ];
        let latencies =
            [s.min_ms, s.mean_ms, s.p50_ms, s.p90_ms, s.p95_ms, s.p99_ms, s.p999_ms, s.p9999_ms, s.max_ms];
        counts.iter().map(u64::to_string).chain(latencies.iter().map(|ms| format!("{ms:.6}"))).collect()
    });
    csv::write(&headings, rows)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::page::Block;
    use super::*;
    use crate::record::result::{ErrorLine, StatementLine, TransactionLine};

    /// A result in which everything that can be shown is there.
    pub(crate) fn full(qps: f64) -> RunResult {
        let second = |n: u64| SecondLine {
            second: n,
            events: qps as u64 / 20 + n % 3,
            queries: qps as u64 + n % 7,
            reads: qps as u64 / 2,
            writes: qps as u64 / 4,
            others: qps as u64 / 4,
            errors: u64::from(n == 5),
            connected: 64,
            busy: 60,
            p50_ms: 1.0,
            mean_ms: 1.1,
            p95_ms: 2.0 + 0.1 * (n % 4) as f64,
            p99_ms: 4.0,
            p999_ms: 9.0,
            max_ms: 20.0,
            ..SecondLine::default()
        };
        let p = Percentiles {
            count: 1000,
            p50_ms: 1.0,
            p95_ms: 2.0,
            p99_ms: 4.0,
            max_ms: 20.0,
            ..Percentiles::default()
        };
        RunResult {
            workload: "oltp_read_write".to_owned(),
            servers: vec!["postgres://app@127.0.0.1:5432/app".to_owned()],
            server_versions: vec!["PostgreSQL 15".to_owned()],
            connections: 64,
            connected: 64,
            seconds: 30.0,
            qps,
            tps: qps / 20.0,
            events: (qps * 1.5) as u64,
            queries: (qps * 30.0) as u64,
            errors: 1,
            latency: p.clone(),
            query: p.clone(),
            connect: p.clone(),
            login: p.clone(),
            histogram: (1..=1000).map(|n| Bucket { upto_ns: n * 10_000, count: 1 }).collect(),
            statements: vec![StatementLine {
                text: "SELECT c FROM sbtest%u WHERE id=?".to_owned(),
                kind: "read".to_owned(),
                count: 1000,
                errors: 0,
                latency: p.clone(),
            }],
            transactions: vec![TransactionLine { name: "new_order".to_owned(), count: 10, latency: p }],
            errors_by_code: vec![ErrorLine {
                phase: "query".to_owned(),
                code: "40P01".to_owned(),
                count: 1,
                first_text: "deadlock detected".to_owned(),
                ignored: false,
            }],
            saturation: Some("the busiest thread was busy".to_owned()),
            per_second: (1..=30).map(second).collect(),
            ..RunResult::default()
        }
    }

    fn plots(page: &Page) -> Vec<&Plot> {
        let blocks = page.sections.iter().flat_map(|s| &s.blocks);
        blocks.filter_map(|b| if let Block::Plot(plot) = b { Some(plot) } else { None }).collect()
    }

    #[test]
    fn a_page_has_every_plot_and_every_table() {
        let page = page(&full(20_000.0));
        let titles: Vec<&str> = plots(&page).iter().map(|p| p.title.as_str()).collect();
        assert_eq!(
            titles,
            ["Throughput", "Latency", "Connections", "Errors and reconnects", "Latency by percentile"]
        );
        for plot in plots(&page) {
            assert!(plot.series.iter().all(|s| s.values.len() == plot.xs.len()), "{}", plot.title);
            assert!(plot.xs.is_sorted(), "{}", plot.title);
        }
        let text = super::super::terminal::page(&page);
        for part in [
            "new_order",
            "SELECT c FROM sbtest%u",
            "deadlock detected",
            "! The busiest thread",
            "PostgreSQL 15",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_page_of_nothing_is_a_page() {
        let page = page(&RunResult::default());
        assert!(plots(&page).is_empty());
        super::super::html::write(&page);
    }

    #[test]
    fn the_curve_goes_as_far_as_there_are_events() {
        let result = full(1.0);
        let curve = percentile_curve(&result.histogram, &result.latency);
        let at = |p: f64| curve.iter().find(|(x, _)| *x == p).map(|(_, ms)| *ms);
        assert_eq!((at(0.0), at(50.0), at(99.0), at(99.9)), (Some(0.01), Some(5.0), Some(9.9), Some(9.99)));
        assert_eq!(at(99.99), None);
        // An old file has no histogram.
        assert_eq!(percentile_curve(&[], &result.latency).len(), 8);
    }

    #[test]
    fn csv_has_a_line_for_each_second() {
        let text = seconds_csv(&full(1000.0));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 31);
        assert!(lines.iter().all(|line| line.split(',').count() == 21));
        assert!(lines[5].starts_with("5,52,1005,500,250,250,1,0,0,64,60,0,"), "{}", lines[5]);
    }
}
