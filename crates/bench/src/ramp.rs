//! `weir bench ramp`: doubles the connections until throughput stops rising and latency starts to; derives
//! the knee, a pool size, and the number of clients.
//!
//! Owns: how one level is measured, the result and how it is shown. [`knee`] chooses the next level and finds
//! the knee.
//!
//! A level is measured until the confidence interval of its throughput is narrow enough, within the plan's
//! minimum and maximum times.

use crate::knee::{KNEE_SHARE, Knee, Ladder, Law, Level};
use crate::plan::Plan;
use crate::record::result::RunResult;
use crate::report::page::{
    Axis, Draw, Mark, Page, Plot, Scale, Section, Series, Table, count, milliseconds, number,
};
use crate::report::{csv, terminal};
use crate::run::{Progress, RunError, run as run_plan};
use crate::stats::Estimate;
use crate::worker::Control;
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Latencies for which a number of clients is named when nobody asks for another.
const LATENCIES_MS: [f64; 3] = [10.0, 100.0, 1000.0];

/// A ramp whose typical confidence interval is wider says so.
const NOISY: f64 = 0.10;

/// Points of the fitted curve between two levels.
const CURVE_POINTS: u32 = 6;

/// What is measured and how exactly.
#[derive(Clone)]
pub struct Ramp {
    /// The run of each level; its number of connections is the ladder's, its time the longest of a level.
    pub plan: Plan,
    /// Connections of the first level.
    pub from: u32,
    /// Connections of the last level at most.
    pub max: u32,
    /// The shortest time of a level.
    pub min_time: Duration,
    /// A level ends when half the confidence interval of its throughput is at most this share of it.
    pub precision: f64,
    /// For this mean latency, the number of clients is named.
    pub latency_limit_ms: Option<f64>,
}

/// One level, as JSON has it.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct LevelLine {
    pub connections: u32,
    pub seconds: f64,
    pub events_per_second: f64,
    /// Half the 95% confidence interval; `null`: not known.
    pub half_width: Option<f64>,
    pub queries_per_second: f64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub errors: u64,
    pub generator_busiest_thread: f64,
    #[serde(skip)]
    level: Level,
}

/// The heading of the lines that [`LevelLine`] displays.
pub const HEADING: &str = "connections      events/s       ± 95%     mean ms      p95 ms  errors";

impl fmt::Display for LevelLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let half = self.half_width.map_or("-".to_owned(), number);
        let (events, errors) = (number(self.events_per_second), count(self.errors));
        let connections = count(u64::from(self.connections));
        write!(
            f,
            "{connections:>11}  {events:>12}  {half:>10}  {:>10.3}  {:>10.3}  {errors:>6}",
            self.mean_ms, self.p95_ms
        )
    }
}

/// The knee, as JSON has it.
#[derive(Debug, Clone, Serialize)]
pub struct KneeLine {
    /// Connections at the knee, and so the pool size that is recommended.
    pub connections: u32,
    /// Throughput there, in events per second.
    pub events_per_second: f64,
    /// Mean latency there.
    pub mean_ms: f64,
    /// The best throughput.
    pub best_events_per_second: f64,
    /// Up to so many connections throughput stays within 10% of the best.
    pub direct_limit: u32,
    /// The last level did no harm yet: the limit is higher.
    pub direct_limit_not_reached: bool,
    /// Throughput was still rising at the last level.
    pub still_rising: bool,
    /// Found on the fitted curve, else between levels.
    pub by_law: bool,
    /// The Universal Scalability Law: throughput of one connection.
    pub lambda: Option<f64>,
    /// Contention.
    pub sigma: Option<f64>,
    /// Coherence.
    pub kappa: Option<f64>,
    /// Typical relative distance of a level from the fitted curve.
    pub law_error: Option<f64>,
    /// Busy clients behind a pool of that size, for mean latencies.
    pub clients: Vec<ClientsLine>,
}

/// So many busy clients see this mean latency.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct ClientsLine {
    pub mean_ms: f64,
    pub clients: u64,
}

/// What a ramp found.
#[derive(Debug, Clone, Serialize)]
pub struct RampResult {
    /// The layout's number.
    pub format: u32,
    /// Name of the workload.
    pub workload: String,
    /// URLs without passwords.
    pub servers: Vec<String>,
    /// What they say of themselves.
    pub server_versions: Vec<String>,
    /// Cores of the load generator's machine.
    pub cores: u64,
    /// The server is on that machine too.
    pub server_is_here: bool,
    /// The levels, ascending.
    pub levels: Vec<LevelLine>,
    /// The knee, if anything was measured.
    pub knee: Option<KneeLine>,
    /// What was out of the ordinary.
    pub remarks: Vec<String>,
    #[serde(skip)]
    law: Option<Law>,
}

/// Climbs the ladder. `stop` ends it with what has been measured; `hear` is told of each level.
///
/// # Errors
/// The first level cannot be measured, or `stop` comes before it is. A later level that fails ends the
/// ladder with a remark.
pub fn climb(
    ramp: &Ramp,
    stop: &Control,
    hear: &mut dyn FnMut(&LevelLine),
    remark: &mut dyn FnMut(&str),
) -> Result<RampResult, RunError> {
    let mut ladder = Ladder::new(ramp.from, ramp.max);
    let mut lines: Vec<LevelLine> = Vec::new();
    let mut remarks: Vec<String> = Vec::new();
    let mut last = None;
    while let Some(connections) = ladder.next_connections() {
        if stop.is_stopped() {
            remarks.push("Stopped before the end of the ladder.".to_owned());
            break;
        }
        let result = match measure(ramp, connections, stop, remark) {
            Ok(result) => result,
            // The first level must be possible; a later one may be more than the server or the machine
            // allows.
            Err(error) if lines.is_empty() => return Err(error),
            Err(error) => {
                remarks.push(format!(
                    "The ladder ends before {} connections: {error}.",
                    count(u64::from(connections))
                ));
                ladder.refuse();
                continue;
            }
        };
        if result.connected < connections && !stop.is_stopped() && result.is_incomplete() {
            let why = result
                .errors_by_code
                .first()
                .map_or(String::new(), |e| format!(": {} ({})", e.first_text, e.code));
            let text = format!("The server did not take {} connections{why}.", count(u64::from(connections)));
            if lines.is_empty() {
                return Err(RunError::Server(text));
            }
            remarks.push(text);
            ladder.refuse();
            continue;
        }
        let line = level_line(connections, &result);
        // A level cut short says nothing.
        if line.level.throughput.samples < 2 {
            continue_or_end(stop, &mut ladder);
            continue;
        }
        hear(&line);
        ladder.push(line.level);
        lines.push(line);
        last = Some(result);
    }
    lines.sort_by_key(|line| line.connections);
    lines.dedup_by_key(|line| line.connections);
    let (Some(last), Some(best)) = (last, lines.iter().map(|l| l.events_per_second).max_by(f64::total_cmp))
    else {
        return Err(RunError::Server("stopped before a level was measured".to_owned()));
    };
    if let Some(line) =
        lines.iter().find(|l| l.generator_busiest_thread > 0.95 && l.events_per_second > 0.9 * best)
    {
        let busy = line.generator_busiest_thread * 100.0;
        remarks.push(format!(
            "With {} connections a thread of the load generator was busy {busy:.0}% of the time: the curve may be the \
             generator's own (--event-loops).",
            line.connections
        ));
    }
    let mut widths: Vec<f64> = lines.iter().map(|line| line.level.throughput.relative()).collect();
    widths.sort_by(f64::total_cmp);
    if widths[widths.len() / 2] > NOISY {
        let percent = widths[widths.len() / 2] * 100.0;
        remarks.push(format!(
            "Throughput is known to ±{percent:.0}% only: the machine is not quiet, or the levels are too short (--min-time)."
        ));
    }
    let errors: u64 = lines.iter().map(|line| line.errors).sum();
    if errors > 0 {
        remarks.push(format!("There were {} errors.", count(errors)));
    }
    let levels: Vec<Level> = lines.iter().map(|line| line.level).collect();
    let found = Knee::find(&levels);
    Ok(RampResult {
        format: 1,
        workload: last.workload,
        servers: last.servers,
        server_versions: last.server_versions,
        cores: last.machine.cores,
        server_is_here: last.machine.server_is_here,
        law: found.as_ref().and_then(|knee| knee.law),
        knee: found.map(|knee| knee_line(&knee, ramp.latency_limit_ms)),
        levels: lines,
        remarks,
    })
}

/// A level without samples: the ladder cannot go on behind it.
fn continue_or_end(stop: &Control, ladder: &mut Ladder) {
    if !stop.is_stopped() {
        ladder.refuse();
    }
}

/// Measures one level.
fn measure(
    ramp: &Ramp,
    connections: u32,
    stop: &Control,
    remark: &mut dyn FnMut(&str),
) -> Result<RunResult, RunError> {
    let control = Arc::new(Control::default());
    let told = Arc::clone(&control);
    let plan = Plan { connections, ..ramp.plan.clone() };
    let (mut samples, first) = (Vec::new(), connections == ramp.from);
    run_plan(plan, &control, &mut |progress| {
        if stop.is_stopped() {
            told.stop();
        }
        match progress {
            // The same at each level.
            Progress::Remark(text) if first => remark(text),
            Progress::Remark(_) => {}
            Progress::Connecting { given_up, .. } => {
                if given_up > 0 {
                    told.stop();
                }
            }
            Progress::Started { .. } => {}
            Progress::Second(second) => {
                samples.push(second.events as f64);
                let long_enough = samples.len() as u64 >= ramp.min_time.as_secs().max(2);
                if long_enough && Estimate::of(&samples).relative() <= ramp.precision {
                    told.stop();
                }
            }
        }
    })
}

fn level_line(connections: u32, result: &RunResult) -> LevelLine {
    let samples: Vec<f64> = result.per_second.iter().map(|s| s.events as f64).collect();
    let throughput = Estimate::of(&samples);
    let (mean_ms, p95_ms) = (result.latency.mean_ms, result.latency.p95_ms);
    LevelLine {
        connections,
        seconds: result.seconds,
        events_per_second: throughput.mean,
        half_width: throughput.half_width.is_finite().then_some(throughput.half_width),
        queries_per_second: result.qps,
        mean_ms,
        p50_ms: result.latency.p50_ms,
        p95_ms,
        p99_ms: result.latency.p99_ms,
        errors: result.errors,
        generator_busiest_thread: result.generator_busiest_thread,
        level: Level { connections, throughput, mean_ms, p95_ms },
    }
}

fn knee_line(knee: &Knee, latency_limit_ms: Option<f64>) -> KneeLine {
    let limits = latency_limit_ms.map_or_else(|| LATENCIES_MS.to_vec(), |ms| vec![ms]);
    KneeLine {
        connections: knee.connections,
        events_per_second: knee.throughput,
        mean_ms: knee.latency_ms,
        best_events_per_second: knee.best,
        direct_limit: knee.direct_limit,
        direct_limit_not_reached: knee.limit_not_reached,
        still_rising: knee.still_rising,
        by_law: knee.by_law,
        lambda: knee.law.map(|law| law.lambda),
        sigma: knee.law.map(|law| law.sigma),
        kappa: knee.law.map(|law| law.kappa),
        law_error: knee.law.map(|law| law.error),
        clients: limits
            .iter()
            .map(|&mean_ms| ClientsLine { mean_ms, clients: knee.clients_for(mean_ms) })
            .collect(),
    }
}

impl RampResult {
    /// As JSON.
    pub fn to_json(&self) -> String {
        // Plain structs with string keys: it cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// A line for each level.
    pub fn to_csv(&self) -> String {
        let headings = [
            "connections",
            "seconds",
            "events_per_second",
            "half_width",
            "queries_per_second",
            "mean_ms",
            "p50_ms",
            "p95_ms",
            "p99_ms",
            "errors",
        ];
        let rows = self.levels.iter().map(|l| {
            let half_width = l.half_width.map_or(String::new(), |half| format!("{half:.3}"));
            let latencies = [l.mean_ms, l.p50_ms, l.p95_ms, l.p99_ms].map(|ms| format!("{ms:.6}"));
            let mut row = vec![
                l.connections.to_string(),
                format!("{:.1}", l.seconds),
                format!("{:.3}", l.events_per_second),
                half_width,
                format!("{:.3}", l.queries_per_second),
            ];
            row.extend(latencies);
            row.push(l.errors.to_string());
            row
        });
        csv::write(&headings, rows)
    }

    /// As text.
    pub fn to_text(&self) -> String {
        terminal::page(&self.page())
    }

    /// The page.
    pub fn page(&self) -> Page {
        let mut sections = Vec::new();
        if let Some(knee) = &self.knee {
            sections.push(self.answer(knee));
        }
        let mut curve = Section::new("The curve");
        curve.plot(self.plot("Throughput and latency over connections"));
        curve.table(self.table());
        if let Some(text) = self.law_text() {
            curve.text(text);
        }
        sections.push(curve);
        Page { title: format!("The knee of {}", self.workload), lead: self.lead(), sections }
    }

    /// The sentences that answer "how big should my pool be?"
    pub fn lead(&self) -> Vec<String> {
        let mut lead = self.answers();
        for (n, server) in self.servers.iter().enumerate() {
            let version = self.server_versions.get(n).map(|v| format!(" ({v})")).unwrap_or_default();
            lead.push(format!("Server: {server}{version}"));
        }
        lead
    }

    /// Of it, what is about the knee.
    pub fn answers(&self) -> Vec<String> {
        let mut lead = Vec::new();
        if let Some(knee) = &self.knee {
            let at = count(u64::from(knee.connections));
            if knee.still_rising {
                let last = self.levels.last().map_or(0, |l| u64::from(l.connections));
                lead.push(format!(
                    "Throughput was still rising at {} connections: the knee is there or beyond. Go on with a higher \
                     --connections.",
                    count(last)
                ));
            } else {
                lead.push(format!("Recommended pool size: {at}."));
                lead.push(format!(
                    "The knee is at {at} connections: {} per second, {:.0}% of the best, with a mean latency of {}.",
                    number(knee.events_per_second),
                    KNEE_SHARE * 100.0,
                    milliseconds(knee.mean_ms)
                ));
            }
        }
        lead
    }

    fn answer(&self, knee: &KneeLine) -> Section {
        let mut section = Section::new("What follows");
        for remark in &self.remarks {
            section.warning(remark.clone());
        }
        let not_reached = if knee.direct_limit_not_reached { " or more" } else { "" };
        let mut facts = vec![
            ("recommended pool size".to_owned(), count(u64::from(knee.connections))),
            ("best throughput".to_owned(), format!("{} /s", number(knee.best_events_per_second))),
            ("latency at the knee".to_owned(), milliseconds(knee.mean_ms)),
            (
                "connections without harm".to_owned(),
                format!("{}{not_reached}", count(u64::from(knee.direct_limit))),
            ),
        ];
        if self.server_is_here && self.cores > 0 {
            let each = f64::from(knee.connections) / self.cores as f64;
            facts.push(("connections per core".to_owned(), number(each)));
        }
        section.facts(facts);
        section.text(format!(
            "Up to {}{not_reached} connections straight to the server, its throughput stays within 10% of its best. \
             More clients than that belong behind a pool of {}: they wait in its queue instead of in the server.",
            count(u64::from(knee.direct_limit)),
            count(u64::from(knee.connections))
        ));
        let mut rows = Table::new(["mean latency wanted", "clients, all busy"]).with_text(&[0]);
        for line in &knee.clients {
            rows.row([milliseconds(line.mean_ms), format!("at most {}", count(line.clients))]);
        }
        section.text("Behind that pool, so many clients may be busy at the same time (latency = clients / throughput):");
        section.table(rows);
        section
    }

    /// The levels as a table.
    pub fn table(&self) -> Table {
        let mut rows = Table::new([
            "connections",
            "events/s",
            "± 95%",
            "mean",
            "p50",
            "p95",
            "p99",
            "errors",
            "seconds",
        ]);
        for l in &self.levels {
            let half = l.half_width.map_or("-".to_owned(), number);
            let latencies = [l.mean_ms, l.p50_ms, l.p95_ms, l.p99_ms].map(milliseconds);
            let mut row = vec![count(u64::from(l.connections)), number(l.events_per_second), half];
            row.extend(latencies);
            row.extend([count(l.errors), format!("{:.0}", l.seconds)]);
            rows.row(row);
        }
        rows
    }

    fn law_text(&self) -> Option<String> {
        let law = self.law?;
        let fits = if law.is_good() {
            "The broken line is the Universal Scalability Law fitted to it"
        } else {
            "The Universal Scalability Law does not describe it well, so the knee was read off the levels themselves; \
             fitted all the same it has"
        };
        let peak = if law.peak().is_finite() {
            format!(", its peak at {:.0} connections", law.peak())
        } else {
            String::new()
        };
        Some(format!(
            "{fits}: {} per second for one connection, contention {:.2}%, coherence {:.4}%{peak}; levels lie {:.1}% from \
             it, typically.",
            number(law.lambda),
            law.sigma * 100.0,
            law.kappa * 100.0,
            law.error * 100.0
        ))
    }

    /// Throughput on the left, latency on the right, the knee marked.
    pub fn plot(&self, title: &str) -> Plot {
        let xs = self.plot_places();
        let at = |n: f64| self.levels.iter().find(|l| f64::from(l.connections) == n);
        let values =
            |of: fn(&LevelLine) -> Option<f64>| xs.iter().map(|&n| at(n).and_then(of)).collect::<Vec<_>>();
        let mut series = vec![Series {
            name: "events/s".to_owned(),
            values: values(|l| Some(l.events_per_second)),
            error: values(|l| l.half_width),
            draw: Draw::Points,
            colour: 0,
            right: false,
        }];
        if let Some(law) = self.law.filter(Law::is_good) {
            series.push(Series {
                name: "fitted".to_owned(),
                values: xs.iter().map(|&n| Some(law.at(n))).collect(),
                draw: Draw::Fitted,
                colour: 7,
                ..Series::default()
            });
        }
        let latency = |name: &str, colour: usize, of: fn(&LevelLine) -> Option<f64>| Series {
            name: name.to_owned(),
            values: values(of),
            draw: Draw::Points,
            right: true,
            colour,
            error: Vec::new(),
        };
        series.push(latency("mean latency", 1, |l| Some(l.mean_ms)));
        series.push(latency("p95", 4, |l| Some(l.p95_ms)));
        let marks = self.knee.iter().filter(|k| !k.still_rising);
        Plot {
            title: title.to_owned(),
            x_axis: Axis::new("connections", Scale::Doubling),
            y_axis: Axis::linear("events/s"),
            right_axis: Some(Axis::new("latency, ms", Scale::Log)),
            xs,
            series,
            marks: marks
                .map(|k| Mark { x: f64::from(k.connections), label: format!("knee: {}", k.connections) })
                .collect(),
            ..Plot::default()
        }
    }

    /// The levels, and places between them for the fitted curve.
    fn plot_places(&self) -> Vec<f64> {
        let mut places: Vec<f64> = self.levels.iter().map(|l| f64::from(l.connections)).collect();
        if self.law.is_some_and(|law| law.is_good()) {
            for pair in self.levels.windows(2) {
                let (low, high) = (f64::from(pair[0].connections), f64::from(pair[1].connections));
                for n in 1..CURVE_POINTS {
                    places.push(low * (high / low).powf(f64::from(n) / f64::from(CURVE_POINTS)));
                }
            }
            places.sort_by(f64::total_cmp);
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::html;

    fn result(of: impl Fn(u32) -> f64) -> RampResult {
        let line = |connections: u32| {
            let mean = of(connections);
            let throughput =
                Estimate { mean, half_width: mean * 0.01, samples: 5, effective: 5.0, variance: 1.0 };
            let mean_ms = f64::from(connections) * 1e3 / mean;
            LevelLine {
                connections,
                seconds: 5.0,
                events_per_second: mean,
                half_width: Some(throughput.half_width),
                queries_per_second: mean,
                mean_ms,
                p50_ms: mean_ms,
                p95_ms: 2.0 * mean_ms,
                p99_ms: 3.0 * mean_ms,
                errors: 0,
                generator_busiest_thread: 0.2,
                level: Level { connections, throughput, mean_ms, p95_ms: 2.0 * mean_ms },
            }
        };
        let levels: Vec<LevelLine> = [1, 2, 4, 8, 16, 32, 64].map(line).into();
        let found = Knee::find(&levels.iter().map(|l| l.level).collect::<Vec<_>>()).unwrap();
        RampResult {
            format: 1,
            workload: "oltp_point_select".to_owned(),
            servers: vec!["postgres://a@h/d".to_owned()],
            server_versions: vec!["PostgreSQL 15".to_owned()],
            cores: 2,
            server_is_here: true,
            law: found.law,
            knee: Some(knee_line(&found, None)),
            levels,
            remarks: vec!["A remark.".to_owned()],
        }
    }

    #[test]
    fn the_answer_names_pool_size_and_clients() {
        let law = Law { lambda: 9000.0, sigma: 0.1, kappa: 0.002, error: 0.0 };
        let found = result(|n| law.at(f64::from(n)));
        let text = found.to_text().split_whitespace().collect::<Vec<_>>().join(" ");
        let knee = found.knee.as_ref().unwrap();
        for part in [
            format!("Recommended pool size: {}.", knee.connections),
            "! A remark.".to_owned(),
            "contention 10.00%, coherence 0.2000%".to_owned(),
            "PostgreSQL 15".to_owned(),
        ] {
            assert!(text.contains(&part), "{part}: {text}");
        }
        // 100 ms times the best throughput.
        assert_eq!(knee.clients[1].clients, (knee.best_events_per_second / 10.0) as u64);
        let json: serde_json::Value = serde_json::from_str(&found.to_json()).unwrap();
        assert_eq!(json["levels"].as_array().unwrap().len(), 7);
        assert_eq!(found.to_csv().lines().count(), 8);
    }

    #[test]
    fn the_plot_has_levels_curve_and_knee() {
        let law = Law { lambda: 9000.0, sigma: 0.1, kappa: 0.002, error: 0.0 };
        let found = result(|n| law.at(f64::from(n)));
        let plot = found.plot("x");
        assert!(plot.xs.is_sorted() && plot.series.iter().all(|s| s.values.len() == plot.xs.len()));
        assert_eq!(plot.series[0].values.iter().flatten().count(), 7);
        assert_eq!(plot.marks.len(), 1);
        assert!(html::write(&found.page()).contains("knee: "));
        // Where the law does not hold there is no curve, and no knee where it was not reached.
        let found = result(|n| 1000.0 * f64::from(n));
        assert!(found.plot("x").marks.is_empty());
        assert!(found.to_text().contains("still rising at 64"), "{}", found.to_text());
    }
}
