//! 10,000 to 100,000 active clients, from one load generator.

use super::ground::{Base, Front, Load, Way};
use super::{Lab, Measured, Outcome, distinct, of_each, points};
use crate::record::result::RunResult;
use crate::report::page::{Axis, Plot, Scale, Section, Table, bytes, count, milliseconds, number};
use serde_json::{Value, json};
use std::time::Duration;

/// Clients of each step, through whatever takes them.
const STEPS: [u32; 5] = [10_000, 25_000, 50_000, 75_000, 100_000];

/// Clients of the steps for what takes fewer.
const SMALL_STEPS: [u32; 1] = [1_000];

/// max_connections of the MariaDB with a thread pool.
const THREAD_POOL_CONNECTIONS: u32 = 10_300;

/// Seconds of a step, at least.
const SECONDS: f64 = 8.0;

/// Each client comes its turn so often in a step, unless that takes longer than [`SECONDS_MAX`].
const TURNS: f64 = 3.0;
const SECONDS_MAX: f64 = 40.0;

/// The published figures.
pub fn published() -> Section {
    let mut section = Section::new("As published");
    section.text(
        "MySQL (Percona Server 8.0.13-4) on 24 cores with 64 GB; four more machines ran sysbench 0.5, select.lua: 10 tables \
         of 10,000,000 rows, uniform ids, 300 s. 10,000 with a thread for each connection, the others with its thread \
         pool.",
    );
    let mut rows = Table::new(["connections", "reads/s", "p95"]);
    for (connections, reads, p95) in [
        ("10,000", "33,367", "3,681 ms"),
        ("25,000", "33,332", "974 ms"),
        ("50,000", "33,588", "1,800 ms"),
        ("75,000", "34,899", "2,652 ms"),
        ("100,000", "32,260", "3,405 ms"),
    ] {
        rows.row([connections, reads, p95]);
    }
    section.table(rows);
    section
}

struct Cell {
    way: String,
    front: Front,
    clients: u32,
    result: RunResult,
}

/// Measures each database through Weir with all steps, and beside it what takes fewer.
///
/// # Errors
/// The database or what stands before it cannot be started or asked, a measurement cannot be carried out, or
/// the user stops the experiment (`stopped`).
pub fn run(lab: &mut Lab<'_>) -> Result<Outcome, String> {
    let ground = lab.ground;
    of_each(lab, ground.bases.iter(), |lab, base| {
        let mut cells = Vec::new();
        let all: Vec<u32> = SMALL_STEPS.into_iter().chain(STEPS).collect();
        let most = ground.clients_max;
        for front in [Front::Direct, Front::PgBouncer, Front::Weir] {
            let Some(way) = ground.way(base, front, most)? else { continue };
            // What has limits of its own is measured up to them.
            for clients in steps(&all, way.clients_max.min(most)) {
                lab.go_on()?;
                let cell = measure(lab, base, &way, front.name(), clients, &cells)?;
                cells.push(cell);
            }
        }
        if base.pid().is_some()
            && base.title.contains("MariaDB")
            && let Some((_home, pooled)) = ground.thread_pool(THREAD_POOL_CONNECTIONS)?
            && let Some(way) = ground.way(&pooled, Front::Direct, 0)?
        {
            for clients in steps(&all, way.clients_max.min(most)) {
                lab.go_on()?;
                let cell = measure(lab, &pooled, &way, "direct, pool-of-threads", clients, &cells)?;
                cells.push(cell);
            }
        }
        Ok(cells)
    })
}

/// The steps up to a limit, and the limit itself where it lies far from the step below.
fn steps(all: &[u32], limit: u32) -> Vec<u32> {
    let mut steps: Vec<u32> = all.iter().copied().filter(|&n| n <= limit).collect();
    if steps.last().is_none_or(|&last| limit > last + last / 4) && limit < STEPS[STEPS.len() - 1] {
        steps.push(limit);
    }
    steps
}

/// Measures one step. The lowest throughput so far says how long a client waits its turn.
fn measure(
    lab: &mut Lab<'_>,
    base: &Base,
    way: &Way,
    name: &str,
    clients: u32,
    cells: &[Cell],
) -> Result<Cell, String> {
    let workload = base.workload("select", clients, |_| {})?;
    let slowest = cells.iter().map(|cell| cell.result.qps).fold(f64::INFINITY, f64::min);
    let turn = if slowest > 0.0 { f64::from(clients) / slowest } else { 0.0 };
    let seconds = lab.seconds(SECONDS).max((TURNS * turn).min(SECONDS_MAX));
    let mut load = Load::new(base, way, workload, clients, seconds);
    load.plan.warm_up = Duration::from_secs_f64(turn.clamp(1.0, 10.0));
    load.plan.drain = Duration::from_secs(60);
    let result = load.run(lab.stop)?;
    let (reads, p95) = (number(result.qps), milliseconds(result.latency.p95_ms));
    lab.say(&format!(
        "  {}, {name}, {} clients: {reads} reads/s, p95 {p95}",
        base.title,
        count(u64::from(clients))
    ));
    Ok(Cell { way: name.to_owned(), front: way.front, clients, result })
}

impl Measured for Cell {
    type Verdict = Option<String>;

    fn verdict(_lab: &Lab<'_>, base: &Base, cells: &[Cell]) -> Option<String> {
        let weir: Vec<&Cell> =
            cells.iter().filter(|c| c.front == Front::Weir && c.clients >= SMALL_STEPS[0]).collect();
        let (first, last) = (weir.first()?, weir.last()?);
        let r = &last.result;
        let mean = r.latency.mean_ms.max(1e-9);
        Some(format!(
            "{}: {} clients executing through Weir: {} reads/s, {:.0}% of the throughput of {} clients; p95 is {:.2} times the \
             mean; {} errors.",
            base.title,
            count(u64::from(last.clients)),
            number(r.qps),
            100.0 * r.qps / first.result.qps,
            count(u64::from(first.clients)),
            r.latency.p95_ms / mean,
            count(r.errors)
        ))
    }

    fn section(_lab: &Lab<'_>, base: &Base, cells: &[Cell]) -> Option<Section> {
        let mut section = Section::new(base.title.clone());
        let mut names: Vec<(&str, Front)> = Vec::new();
        for cell in cells {
            if !names.iter().any(|(name, _)| *name == cell.way) {
                names.push((&cell.way, cell.front));
            }
        }
        let xs = distinct(cells.iter().map(|c| c.clients));
        let picture = |title: &str, y_axis: Axis, of: fn(&RunResult) -> f64| {
            let series = names.iter().map(|(name, front)| {
                let colour = if name.contains("pool-of-threads") { 6 } else { front.colour() };
                points(name, colour, &xs, |n| {
                    cells.iter().find(|c| c.way == *name && c.clients == n).map(|c| of(&c.result))
                })
            });
            Plot {
                title: format!("{}: {title}", base.title),
                x_axis: Axis::new("clients, all executing", Scale::Log),
                y_axis,
                xs: xs.iter().map(|&n| f64::from(n)).collect(),
                series: series.collect(),
                ..Plot::default()
            }
        };
        section.plot(picture("throughput", Axis::linear("reads/s"), |r| r.qps));
        section.plot(picture("latency, p95", Axis::new("ms", Scale::Log), |r| r.latency.p95_ms));
        let mut rows = Table::new([
            "way",
            "clients",
            "connected",
            "reads/s",
            "mean",
            "p95",
            "p95 / mean",
            "N / throughput",
            "proxy memory each",
            "errors",
        ]);
        for cell in cells {
            let r = &cell.result;
            let memory =
                r.processes.iter().find(|p| cell.front != Front::Direct && p.name == cell.front.name());
            rows.row([
                cell.way.clone(),
                count(u64::from(cell.clients)),
                count(u64::from(r.connected)),
                number(r.qps),
                milliseconds(r.latency.mean_ms),
                milliseconds(r.latency.p95_ms),
                format!("{:.2}", r.latency.p95_ms / r.latency.mean_ms.max(1e-9)),
                milliseconds(f64::from(cell.clients) * 1e3 / r.qps.max(1e-9)),
                memory.and_then(|p| p.bytes_per_connection).map_or("-".to_owned(), bytes),
                count(r.errors),
            ]);
        }
        section.table(rows);
        section.text(
            "All clients ask all the time, so each of N waits for N / throughput whoever serves them: that is the mean that \
             physics allows. What a way does not take is not in the table.",
        );
        Some(section)
    }

    fn figure(&self) -> Value {
        let r = &self.result;
        json!({
            "way": self.way, "clients": self.clients, "connected": r.connected, "reads_per_second": r.qps,
            "mean_ms": r.latency.mean_ms, "p95_ms": r.latency.p95_ms, "p99_ms": r.latency.p99_ms, "errors": r.errors,
            "errors_by_code": r.errors_by_code, "connect_seconds": r.connect_seconds, "processes": r.processes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_where_a_way_does() {
        let all: Vec<u32> = SMALL_STEPS.into_iter().chain(STEPS).collect();
        assert_eq!(steps(&all, 100_000), all);
        assert_eq!(steps(&all, 1_600), [1_000, 1_600]);
        assert_eq!(steps(&all, 10_200), [1_000, 10_000]);
        assert_eq!(steps(&all, 19_700), [1_000, 10_000, 19_700]);
        assert_eq!(steps(&all, 80), [80]);
    }
}
