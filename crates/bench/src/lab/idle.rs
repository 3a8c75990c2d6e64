//! Busy clients together with more and more idle ones.

use super::ground::{Base, Front, Load, Way, private_bytes};
use super::{Lab, Measured, Outcome, distinct, of_each, points};
use crate::record::result::RunResult;
use crate::report::page::{Axis, Plot, Scale, Section, Series, Table, bytes, count, milliseconds, number};
use crate::run::Progress;
use crate::stats::Estimate;
use serde_json::{Value, json};

/// Idle clients of each step.
const STEPS: [u32; 7] = [0, 20, 100, 500, 1_500, 10_000, 100_000];

/// Seconds of a step.
const SECONDS: f64 = 5.0;

/// The published figures.
pub fn published() -> Section {
    let mut section = Section::new("As published");
    section.text(
        "Percona Server, DBT2 (TPC-C, 1 warehouse) over 4 busy connections while 0, 20, ... 1,500 others sat idle. \
         Published as a fall of throughput to 1.3% at 1,500 idle connections; later found to be a debug build. What \
         stayed: each idle connection costs the server a thread or a process, memory and one of its slots.",
    );
    section
}

struct Cell {
    front: Front,
    idle: u32,
    result: RunResult,
    throughput: Estimate,
    bytes_each: Option<f64>,
}

/// Measures each database, directly as far as it goes, and through Weir.
///
/// # Errors
/// The database or what stands before it cannot be started or asked, a measurement cannot be carried out, or
/// the user stops the experiment (`stopped`).
pub fn run(lab: &mut Lab<'_>) -> Result<Outcome, String> {
    let ground = lab.ground;
    of_each(lab, ground.bases.iter(), |lab, base| {
        let mut cells = Vec::new();
        let busy = busy(lab);
        let steps: Vec<u32> = STEPS.iter().map(|&n| n.min(ground.clients_max.saturating_sub(busy))).collect();
        for front in [Front::Direct, Front::Weir, Front::PgBouncer] {
            let last = steps.last().copied().unwrap_or(0) + busy;
            let Some(way) = ground.way(base, front, last)? else { continue };
            let mut before = None;
            for &idle in &steps {
                lab.go_on()?;
                if before == Some(idle) || idle + busy > way.clients_max {
                    continue;
                }
                before = Some(idle);
                let cell = measure(lab, base, &way, idle, busy)?;
                lab.say(&format!(
                    "  {}, {}, {} idle: {} queries/s",
                    base.title,
                    front.name(),
                    count(u64::from(idle)),
                    number(cell.result.qps)
                ));
                cells.push(cell);
            }
        }
        Ok(cells)
    })
}

/// Clients that work.
fn busy(lab: &Lab<'_>) -> u32 {
    2 * lab.ground.cores
}

impl Measured for Cell {
    type Verdict = Vec<String>;

    fn verdict(_lab: &Lab<'_>, base: &Base, cells: &[Cell]) -> Vec<String> {
        verdict(base, cells)
    }

    fn section(lab: &Lab<'_>, base: &Base, cells: &[Cell]) -> Option<Section> {
        Some(section(base, cells, busy(lab)))
    }

    fn figure(&self) -> Value {
        let r = &self.result;
        json!({
            "way": self.front.name(), "idle": self.idle, "connected": r.connected, "queries_per_second": r.qps,
            "half_width": self.throughput.half_width.is_finite().then_some(self.throughput.half_width),
            "p50_ms": r.latency.p50_ms, "p95_ms": r.latency.p95_ms, "p99_ms": r.latency.p99_ms,
            "bytes_per_client": self.bytes_each, "connect_seconds": r.connect_seconds, "errors": r.errors,
        })
    }
}

fn measure(lab: &Lab<'_>, base: &Base, way: &Way, idle: u32, busy: u32) -> Result<Cell, String> {
    let all = idle + busy;
    let workload = base.workload("idle", all, |options| {
        options.busy = busy;
        options.busy_workload = "oltp_point_select".to_owned();
    })?;
    let mut load = Load::new(base, way, workload, all, lab.seconds(SECONDS));
    load.plan.warm_up = std::time::Duration::from_secs(1);
    // What the idle ones cost whoever they are connected to.
    let holder = if way.front == Front::Direct { base.pid() } else { way.pid() };
    let private = || holder.map(private_bytes);
    let (before, mut after) = (private(), None);
    let result = load.run_heard(lab.stop, &mut |progress| {
        if let Progress::Started { .. } = progress {
            after = private();
        }
    })?;
    let growth = after.zip(before).map(|(after, before)| after.saturating_sub(before));
    // A few clients grow less than the allocator's grain.
    let bytes_each = growth.filter(|_| idle >= 500).map(|bytes| bytes as f64 / f64::from(all));
    let samples: Vec<f64> = result.per_second.iter().map(|s| s.queries as f64).collect();
    Ok(Cell { front: way.front, idle, throughput: Estimate::of(&samples), result, bytes_each })
}

fn verdict(base: &Base, cells: &[Cell]) -> Vec<String> {
    let fronts = Front::ALL.into_iter().filter_map(|front| {
        let of: Vec<&Cell> = cells.iter().filter(|c| c.front == front).collect();
        let (first, last) = (of.first()?, of.last()?);
        let share = 100.0 * last.throughput.mean / first.throughput.mean;
        // Relative errors of a quotient add up like the sides of a right angle.
        let error = share * last.throughput.relative().hypot(first.throughput.relative());
        let each = last.bytes_each.map(|b| format!(", {} for each", bytes(b))).unwrap_or_default();
        Some(format!(
            "{}, {}: with {} idle clients throughput is {share:.0}% ± {error:.0}% of that without{each}.",
            base.title,
            front.name(),
            count(u64::from(last.idle))
        ))
    });
    fronts.collect()
}

fn section(base: &Base, cells: &[Cell], busy: u32) -> Section {
    let mut section = Section::new(base.title.clone());
    section.text(format!("{busy} busy clients (point selects), the others silent."));
    let mut rows = Table::new([
        "way",
        "idle clients",
        "queries/s",
        "± 95%",
        "p50",
        "p95",
        "p99",
        "memory per client",
        "connect phase",
        "errors",
    ]);
    for cell in cells {
        let r = &cell.result;
        rows.row([
            cell.front.name().to_owned(),
            count(u64::from(cell.idle)),
            number(r.qps),
            number(cell.throughput.half_width),
            milliseconds(r.latency.p50_ms),
            milliseconds(r.latency.p95_ms),
            milliseconds(r.latency.p99_ms),
            cell.bytes_each.map_or("-".to_owned(), bytes),
            format!("{:.1} s", r.connect_seconds),
            count(r.errors),
        ]);
    }
    let xs = distinct(cells.iter().map(|c| c.idle));
    let at = |front: Front, n: u32| cells.iter().find(|c| c.front == front && c.idle == n);
    let series = |front: Front| Series {
        error: xs.iter().map(|&n| at(front, n).map(|c| c.throughput.half_width)).collect(),
        ..points(front.name(), front.colour(), &xs, |n| at(front, n).map(|c| c.result.qps))
    };
    let fronts = Front::ALL.into_iter().filter(|front| cells.iter().any(|c| c.front == *front));
    section.plot(Plot {
        title: format!("{}: throughput of {busy} busy clients", base.title),
        // A logarithmic axis has no place for zero: 0 stands at 1.
        x_axis: Axis::new("idle clients (0 at the left edge)", Scale::Log),
        y_axis: Axis::linear("queries/s"),
        xs: xs.iter().map(|&n| f64::from(n.max(1))).collect(),
        series: fronts.map(series).collect(),
        ..Plot::default()
    });
    section.table(rows);
    section.text(
        "Memory is what the process that holds the clients (directly, all processes of the database) has for itself alone, \
         more than before, divided by the clients. The kernel's memory for sockets comes on top.",
    );
    section
}
