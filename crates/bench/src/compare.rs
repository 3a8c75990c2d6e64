//! Compares two runs and tests whether they differ by more than chance.
//!
//! Owns: what is compared, the verdicts, and how they are shown. The mathematics is in [`stats`].
//!
//! The samples are the recorded seconds of each run. Neighbouring seconds are correlated, so Welch's t test
//! uses the effective number of samples; and as several measures are tested together, Holm's correction
//! raises each p, so that the chance of any false alarm in the whole table is 5%. A percentile is compared by
//! its values in each second; percentiles of the whole runs are shown without a verdict.

use crate::record::result::{RunResult, SecondLine};
use crate::report::page::{Axis, Page, Plot, Scale, Section, Series, Table, count, milliseconds, number};
use crate::report::run::{Curve, percentile_curve, percentile_plot, title};
use crate::report::{html, save, terminal};
use crate::stats::{self, Difference, Estimate};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A difference with a smaller corrected p is not called chance.
const SIGNIFICANT: f64 = 0.05;

/// Runs with fewer seconds are compared, with a warning.
const SECONDS_WANTED: usize = 20;

/// Halves of one run that differ by a larger share are a drift, if the trend is clear.
const DRIFT_SHARE: f64 = 0.05;

/// A trend of so many standard deviations is clear (1 in 100 by chance).
const DRIFT_CLEAR: f64 = 2.58;

/// How the test is called in JSON.
const METHOD: &str = "Welch's t test on recorded seconds, effective sample sizes (initial positive sequence), Holm's correction";

/// Compare two runs: by how much they differ, and whether by more than chance.
#[derive(Debug, Clone, clap::Args)]
pub struct CompareArgs {
    /// What `weir bench run --json` wrote.
    pub a: PathBuf,
    /// The same of the other run.
    pub b: PathBuf,
    /// Write the comparison as JSON to this file.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Write the comparison with plots to this file: HTML that needs nothing else.
    #[arg(long)]
    pub report: Option<PathBuf>,
    /// End with exit code 4 if any measure of the second run is worse by more percent than this, and by more
    /// than chance.
    #[arg(long, value_name = "PERCENT")]
    pub fail_if_worse: Option<f64>,
}

/// What is said of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The second run is better.
    Better,
    /// The second run is worse.
    Worse,
    /// It may be chance.
    NotShown,
    /// There are too few seconds to say.
    TooFewSeconds,
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Verdict::Better => "B is better",
            Verdict::Worse => "B is worse",
            Verdict::NotShown => "no difference shown",
            Verdict::TooFewSeconds => "too few seconds to say",
        }
    }
}

/// The mean of one measure over the seconds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mean {
    /// Mean of the recorded seconds.
    pub mean: f64,
    /// Half its 95% confidence interval; `null`: not known.
    pub half_width: Option<f64>,
    /// Seconds.
    pub seconds: usize,
    /// Independent seconds that would say as much.
    pub effective_seconds: f64,
}

impl From<Estimate> for Mean {
    fn from(e: Estimate) -> Mean {
        Mean {
            mean: e.mean,
            half_width: e.half_width.is_finite().then_some(e.half_width),
            seconds: e.samples,
            effective_seconds: e.effective,
        }
    }
}

/// One measure of both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measure {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// More of it is better.
    pub more_is_better: bool,
    /// Of the first run.
    pub a: Mean,
    /// Of the second.
    pub b: Mean,
    /// Mean of the second less mean of the first, in percent of the first.
    pub difference_percent: f64,
    /// Half the 95% confidence interval of that.
    pub half_width_percent: Option<f64>,
    /// The chance of such a difference between equal runs.
    pub p: Option<f64>,
    /// The same after Holm's correction.
    pub p_corrected: Option<f64>,
    /// What follows.
    pub verdict: Verdict,
}

/// Two runs side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What the first is.
    pub a: String,
    /// What the second is.
    pub b: String,
    /// The test.
    pub method: &'static str,
    /// Throughput and latencies.
    pub measures: Vec<Measure>,
    /// Why the runs may not be comparable.
    pub warnings: Vec<String>,
}

type OfSecond = fn(&SecondLine) -> f64;

/// Name, unit, more is better, value of a second; latencies come from seconds in which something ended.
const MEASURES: [(&str, &str, bool, OfSecond); 6] = [
    ("throughput", "events/s", true, |s| s.events as f64),
    ("mean latency", "ms", false, |s| s.mean_ms),
    ("p50", "ms", false, |s| s.p50_ms),
    ("p95", "ms", false, |s| s.p95_ms),
    ("p99", "ms", false, |s| s.p99_ms),
    ("p99.9", "ms", false, |s| s.p999_ms),
];

/// Compares two runs.
pub fn compare(a: &RunResult, b: &RunResult) -> Comparison {
    let samples = |run: &RunResult, unit: &str, of: OfSecond| -> Vec<f64> {
        run.per_second.iter().filter(|s| unit != "ms" || s.events > 0).map(of).collect()
    };
    let mut measures = Vec::new();
    let mut tested: Vec<(usize, Difference)> = Vec::new();
    for (name, unit, more_is_better, of) in MEASURES {
        let (of_a, of_b) = (samples(a, unit, of), samples(b, unit, of));
        // Files of an older layout lack some measures.
        if of_a.iter().chain(&of_b).all(|&value| value == 0.0) {
            continue;
        }
        let (mean_a, mean_b) = (Estimate::of(&of_a), Estimate::of(&of_b));
        if let Some(difference) = stats::compare(&of_a, &of_b) {
            tested.push((measures.len(), difference));
        }
        measures.push(Measure {
            name: name.to_owned(),
            unit: unit.to_owned(),
            more_is_better,
            a: mean_a.into(),
            b: mean_b.into(),
            difference_percent: 100.0 * (mean_b.mean - mean_a.mean) / mean_a.mean,
            half_width_percent: None,
            p: None,
            p_corrected: None,
            verdict: Verdict::TooFewSeconds,
        });
    }
    let corrected = stats::holm(&tested.iter().map(|(_, d)| d.p).collect::<Vec<_>>());
    for ((n, difference), p_corrected) in tested.into_iter().zip(corrected) {
        let measure = &mut measures[n];
        measure.half_width_percent = Some(100.0 * difference.half_width / difference.a.mean);
        measure.p = Some(difference.p);
        measure.p_corrected = Some(p_corrected);
        measure.verdict = match p_corrected < SIGNIFICANT {
            false => Verdict::NotShown,
            true if (difference.difference > 0.0) == measure.more_is_better => Verdict::Better,
            true => Verdict::Worse,
        };
    }
    let warnings = warnings(a, b);
    Comparison { a: title(a), b: title(b), method: METHOD, measures, warnings }
}

/// Why the runs may not be comparable, or not mean what they seem to.
fn warnings(a: &RunResult, b: &RunResult) -> Vec<String> {
    let mut found = Vec::new();
    let threads = |run: &RunResult| run.plan.threads.to_string();
    let rate =
        |run: &RunResult| run.rate_wanted.map_or("closed loop".to_owned(), |r| format!("{}/s", number(r)));
    let cores = |run: &RunResult| format!("{} {}", run.machine.cores, run.machine.cpu_model);
    let facts: [(&str, String, String); 6] = [
        ("workload", a.workload.clone(), b.workload.clone()),
        ("number of connections", a.connections.to_string(), b.connections.to_string()),
        ("way of sending queries", a.protocol_mode.clone(), b.protocol_mode.clone()),
        ("rate", rate(a), rate(b)),
        ("number of event loops", threads(a), threads(b)),
        ("machine of the load generator", cores(a), cores(b)),
    ];
    for (what, of_a, of_b) in facts {
        if of_a != of_b {
            found.push(format!("The {what} differs: {of_a} and {of_b}."));
        }
    }
    let names = a.plan.options.keys().chain(b.plan.options.keys()).collect::<std::collections::BTreeSet<_>>();
    for name in names {
        let value =
            |run: &RunResult| run.plan.options.get(name).cloned().unwrap_or_else(|| "nothing".to_owned());
        if value(a) != value(b) {
            found.push(format!("--{name} differs: {} and {}.", value(a), value(b)));
        }
    }
    for (name, run) in [("A", a), ("B", b)] {
        if run.per_second.len() < SECONDS_WANTED {
            let seconds = run.per_second.len();
            found.push(format!(
                "{name} has {seconds} recorded seconds only; {SECONDS_WANTED} or more say more."
            ));
        }
        if run.errors > 0 {
            found.push(format!("{name} had errors: {}.", count(run.errors)));
        }
        if let Some(why) = &run.saturation {
            found.push(format!("{name}: {why}."));
        }
        if let Some(drift) = drift(run) {
            found.push(format!("{name} was not steady: {drift}."));
        }
    }
    found
}

/// A run rose or fell by more than chance.
fn drift(run: &RunResult) -> Option<String> {
    let events: Vec<f64> = run.per_second.iter().map(|s| s.events as f64).collect();
    if stats::trend(&events).abs() < DRIFT_CLEAR {
        return None;
    }
    let (first, second) = events.split_at(events.len() / 2);
    let (first, second) = (Estimate::of(first).mean, Estimate::of(second).mean);
    ((second - first).abs() > DRIFT_SHARE * first).then(|| {
        let (first, second) = (number(first), number(second));
        format!("{first} events/s in its first half and {second} in its second; a longer --warmup may help")
    })
}

impl Comparison {
    /// Measures of the second run that are worse by more percent than this, and by more than chance.
    pub fn worse_by(&self, percent: f64) -> Vec<&Measure> {
        let is_worse = |m: &&Measure| m.verdict == Verdict::Worse && m.difference_percent.abs() > percent;
        self.measures.iter().filter(is_worse).collect()
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        // Plain structs with string keys: it cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The page: the table, the warnings, both runs in each plot.
    pub fn page(&self, a: &RunResult, b: &RunResult) -> Page {
        let mut result = Section::new("Difference");
        for text in &self.warnings {
            result.warning(text.clone());
        }
        result.table(self.table());
        result.text(
            "Means of the recorded seconds with 95% confidence intervals. A difference is called one when chance would \
             show such a one in fewer than 5 of 100 comparisons of equal runs (p < 0.05, corrected for the number of \
             rows). Seconds that resemble their neighbours count for less than one.",
        );
        let mut whole = Section::new("Whole runs");
        whole.table(whole_runs(a, b));
        let mut plots = Section::new("Both runs");
        for plot in over_time(a, b) {
            plots.plot(plot);
        }
        let (curve_a, curve_b) =
            (percentile_curve(&a.histogram, &a.latency), percentile_curve(&b.histogram, &b.latency));
        plots.plot(percentile_plot(&[
            Curve { name: "A", points: &curve_a, colour: 0 },
            Curve { name: "B", points: &curve_b, colour: 1 },
        ]));
        Page {
            title: if self.a == self.b { self.a.clone() } else { format!("{} and {}", self.a, self.b) },
            lead: self.lead(a, b),
            sections: vec![result, whole, plots],
        }
    }

    fn lead(&self, a: &RunResult, b: &RunResult) -> Vec<String> {
        let mut lead = Vec::new();
        if let Some(m) = self.measures.first() {
            let signed = format!("{:+.1}%", m.difference_percent);
            lead.push(match m.verdict {
                Verdict::Better | Verdict::Worse => {
                    format!("{}: B differs from A by {signed}. {}.", m.name, m.verdict.text())
                }
                Verdict::NotShown => format!("{}: {signed}, which may be chance.", m.name),
                Verdict::TooFewSeconds => {
                    format!("{}: {signed}; too few seconds to say whether it is chance.", m.name)
                }
            });
        }
        for (name, run) in [("A", a), ("B", b)] {
            lead.push(format!("{name}: {} {}", run.servers.join(", "), run.server_versions.join(", ")));
        }
        lead
    }

    fn table(&self) -> Table {
        let mut rows = Table::new(["", "A", "B", "difference", "p", ""]).with_text(&[5]);
        for m in &self.measures {
            let with_error = |mean: Mean| {
                let error =
                    mean.half_width.map_or(String::new(), |half| format!(" ± {}", in_unit(half, &m.unit)));
                format!("{}{error}", in_unit(mean.mean, &m.unit))
            };
            let error = m.half_width_percent.map_or(String::new(), |half| format!(" ± {half:.1}%"));
            rows.row([
                m.name.clone(),
                with_error(m.a),
                with_error(m.b),
                format!("{:+.1}%{error}", m.difference_percent),
                m.p_corrected.map_or("-".to_owned(), chance),
                m.verdict.text().to_owned(),
            ]);
        }
        rows
    }
}

fn in_unit(value: f64, unit: &str) -> String {
    if unit == "ms" { milliseconds(value) } else { number(value) }
}

fn chance(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

fn whole_runs(a: &RunResult, b: &RunResult) -> Table {
    let mut rows = Table::new(["", "A", "B", "B / A"]);
    let mut put = |name: &str, a: f64, b: f64, show: fn(f64) -> String| {
        let ratio = if a > 0.0 { format!("{:.3}", b / a) } else { "-".to_owned() };
        rows.row([name.to_owned(), show(a), show(b), ratio]);
    };
    put("queries per second", a.qps, b.qps, number);
    put("events per second", a.tps, b.tps, number);
    let (la, lb) = (&a.latency, &b.latency);
    put("mean", la.mean_ms, lb.mean_ms, milliseconds);
    put("p50", la.p50_ms, lb.p50_ms, milliseconds);
    put("p95", la.p95_ms, lb.p95_ms, milliseconds);
    put("p99", la.p99_ms, lb.p99_ms, milliseconds);
    put("p99.9", la.p999_ms, lb.p999_ms, milliseconds);
    put("p99.99", la.p9999_ms, lb.p9999_ms, milliseconds);
    put("maximum", la.max_ms, lb.max_ms, milliseconds);
    put("errors", a.errors as f64, b.errors as f64, number);
    put("generator CPU us/query", a.generator_cpu_us_per_query, b.generator_cpu_us_per_query, number);
    rows
}

fn over_time(a: &RunResult, b: &RunResult) -> Vec<Plot> {
    let length = a.per_second.len().max(b.per_second.len());
    let series =
        |name: &str, run: &RunResult, colour: usize, of: &dyn Fn(&SecondLine) -> Option<f64>| Series {
            name: name.to_owned(),
            values: (0..length).map(|n| run.per_second.get(n).and_then(of)).collect(),
            colour,
            ..Series::default()
        };
    let both = |title: &str, y_axis: Axis, of: &dyn Fn(&SecondLine) -> Option<f64>| Plot {
        title: title.to_owned(),
        group: "time".to_owned(),
        x_axis: Axis::linear("second"),
        y_axis,
        xs: (1..=length).map(|n| n as f64).collect(),
        series: vec![series("A", a, 0, of), series("B", b, 1, of)],
        ..Plot::default()
    };
    let latency = |of: OfSecond| move |s: &SecondLine| (s.events > 0).then(|| of(s));
    vec![
        both("Throughput", Axis::linear("events/s"), &|s| Some(s.events as f64)),
        both("Median latency", Axis::linear("ms"), &latency(|s| s.p50_ms)),
        both("Latency, p99", Axis::new("ms", Scale::Log), &latency(|s| s.p99_ms)),
    ]
}

/// Does what the arguments say: whether a threshold was missed, or why it could not be done.
///
/// # Errors
/// A file cannot be read or is no result of a run, or a report cannot be written.
pub fn run(args: &CompareArgs) -> Result<bool, String> {
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        RunResult::from_json(&text).map_err(|e| format!("{}: {e}", path.display()))
    };
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    let comparison = compare(&a, &b);
    let page = comparison.page(&a, &b);
    print!("{}", terminal::page(&page));
    if let Some(path) = &args.json {
        save(path, &comparison.to_json())?;
    }
    if let Some(path) = &args.report {
        save(path, &html::write(&page))?;
    }
    let Some(percent) = args.fail_if_worse else { return Ok(false) };
    let worse = comparison.worse_by(percent);
    for measure in &worse {
        println!("{} is worse by {:.1}%.", measure.name, measure.difference_percent.abs());
    }
    Ok(!worse.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::run::tests::full;
    use crate::stats::tests::noise;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    fn noisy(qps: f64, latency_ms: f64, seed: u64) -> RunResult {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut run = full(qps);
        run.errors = 0;
        run.saturation = None;
        let mut slow = 0.0;
        for second in &mut run.per_second {
            slow = 0.5 * slow + 0.02 * noise(&mut rng);
            second.events = (qps / 20.0 * (1.0 + slow)) as u64;
            let mut latency = |factor: f64| latency_ms * factor * (1.0 + 0.03 * noise(&mut rng));
            second.mean_ms = latency(1.1);
            second.p50_ms = latency(1.0);
            second.p95_ms = latency(2.0);
            second.p99_ms = latency(3.0);
            second.p999_ms = latency(5.0);
        }
        run
    }

    fn verdict(comparison: &Comparison, name: &str) -> Verdict {
        comparison.measures.iter().find(|m| m.name == name).unwrap().verdict
    }

    #[test]
    fn a_real_difference_is_found_and_its_direction() {
        let (a, b) = (noisy(20_000.0, 1.0, 1), noisy(24_000.0, 1.2, 2));
        let found = compare(&a, &b);
        assert_eq!(verdict(&found, "throughput"), Verdict::Better);
        assert_eq!(verdict(&found, "p95"), Verdict::Worse);
        let throughput = &found.measures[0];
        assert!((15.0..25.0).contains(&throughput.difference_percent), "{throughput:?}");
        assert!(found.warnings.is_empty(), "{:?}", found.warnings);
        assert_eq!(found.worse_by(30.0).len(), 0);
        assert!(found.worse_by(10.0).iter().any(|m| m.name == "p95"));
        // The other way round it is the other way round.
        assert_eq!(verdict(&compare(&b, &a), "throughput"), Verdict::Worse);
    }

    #[test]
    fn equal_runs_are_not_called_different() {
        let mut alarms = 0;
        for seed in 0..100 {
            let found = compare(&noisy(20_000.0, 1.0, 2 * seed), &noisy(20_000.0, 1.0, 2 * seed + 1));
            alarms += u32::from(found.measures.iter().any(|m| m.verdict != Verdict::NotShown));
        }
        assert!(alarms <= 14, "{alarms} false alarms in 100 comparisons of six measures; 5 are due");
    }

    #[test]
    fn what_makes_runs_incomparable_is_said() {
        let a = noisy(20_000.0, 1.0, 1);
        let mut b = noisy(20_000.0, 1.0, 2);
        b.connections = 128;
        b.errors = 7;
        b.plan.options.insert("table-size".to_owned(), "100".to_owned());
        for (n, second) in b.per_second.iter_mut().enumerate() {
            second.events += 40 * n as u64;
        }
        let found = compare(&a, &b).warnings.join("\n");
        for part in
            ["64 and 128", "B had errors: 7", "--table-size differs: nothing and 100", "B was not steady"]
        {
            assert!(found.contains(part), "{part}: {found}");
        }
    }

    #[test]
    fn short_runs_have_no_verdict_and_pages_are_whole() {
        let (mut a, b) = (noisy(20_000.0, 1.0, 1), noisy(20_000.0, 1.0, 2));
        a.per_second.truncate(3);
        let found = compare(&a, &b);
        assert!(found.measures.iter().all(|m| m.verdict == Verdict::TooFewSeconds && m.p.is_none()));
        let page = found.page(&a, &b);
        let text = terminal::page(&page);
        assert!(
            text.contains("too few seconds to say") && text.contains("A has 3 recorded seconds only"),
            "{text}"
        );
        assert!(found.to_json().contains("\"too_few_seconds\""));
        assert!(html::write(&page).contains("Latency by percentile"));
    }
}
