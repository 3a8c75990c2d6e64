//! Connect, one point select, disconnect, repeated by more and more clients.

use super::ground::{Base, Front, Load};
use super::{Lab, Measured, Outcome, of_each, points};
use crate::record::result::RunResult;
use crate::report::page::{Axis, Plot, Scale, Section, Table, count, milliseconds, number};
use serde_json::{Value, json};

/// Clients of each step.
const STEPS: [u32; 6] = [2, 4, 8, 16, 32, 64];

/// Seconds of a step.
const SECONDS: f64 = 4.0;

/// The published figures.
pub fn published() -> Section {
    let mut section = Section::new("As published");
    section.text("MySQL 8.0 on 2 x 22 cores: connect, one point select, disconnect, repeat.");
    let mut rows = Table::new(["clients", "per second"]);
    for (clients, rate) in [("8", "20,000"), ("16", "43,000"), ("32", "73,000"), ("64", "80,000")] {
        rows.row([clients, rate]);
    }
    section.table(rows);
    section
}

struct Cell {
    front: Front,
    clients: u32,
    result: RunResult,
}

/// Measures each database by each way.
///
/// # Errors
/// The database or what stands before it cannot be started or asked, a measurement cannot be carried out, or
/// the user stops the experiment (`stopped`).
pub fn run(lab: &mut Lab<'_>) -> Result<Outcome, String> {
    let ground = lab.ground;
    of_each(lab, ground.bases.iter(), |lab, base| {
        let mut cells = Vec::new();
        for front in Front::ALL {
            let Some(way) = ground.way(base, front, 1_000)? else { continue };
            for clients in STEPS.into_iter().filter(|&n| n <= way.clients_max) {
                lab.go_on()?;
                let workload = base.workload("connect", clients, |_| {})?;
                let mut load = Load::new(base, &way, workload, clients, lab.seconds(SECONDS));
                // A connection costs the load generator as much as a proxy. Were it one thread only, a proxy
                // with several would wait for it, and one with a single thread would not.
                load.plan.threads = ground.cores as usize;
                let result = load.run(lab.stop)?;
                let (name, rate) = (front.name(), number(result.tps));
                lab.say(&format!("  {}, {name}, {clients} clients: {rate} per second", base.title));
                cells.push(Cell { front, clients, result });
            }
        }
        Ok(cells)
    })
}

fn best(cells: &[Cell], front: Front) -> Option<&Cell> {
    cells.iter().filter(|c| c.front == front).max_by(|a, b| a.result.tps.total_cmp(&b.result.tps))
}

impl Measured for Cell {
    type Verdict = Option<String>;

    fn verdict(_lab: &Lab<'_>, base: &Base, cells: &[Cell]) -> Option<String> {
        let (direct, weir) = (best(cells, Front::Direct)?, best(cells, Front::Weir)?);
        let pgbouncer = best(cells, Front::PgBouncer);
        let beside =
            pgbouncer.map(|c| format!(", through PgBouncer {}", number(c.result.tps))).unwrap_or_default();
        Some(format!(
            "{}: at best {} connections a second directly, {} through Weir ({:.1} times as many){beside}.",
            base.title,
            number(direct.result.tps),
            number(weir.result.tps),
            weir.result.tps / direct.result.tps.max(1e-9)
        ))
    }

    fn section(_lab: &Lab<'_>, base: &Base, cells: &[Cell]) -> Option<Section> {
        let mut section = Section::new(base.title.clone());
        let at = |front: Front, n: u32| cells.iter().find(|c| c.front == front && c.clients == n);
        let series = |front: Front| {
            points(front.name(), front.colour(), &STEPS, |n| at(front, n).map(|c| c.result.tps))
        };
        let fronts = Front::ALL.into_iter().filter(|front| cells.iter().any(|c| c.front == *front));
        section.plot(Plot {
            title: format!("{}: connect, query, disconnect", base.title),
            x_axis: Axis::new("clients", Scale::Doubling),
            y_axis: Axis::linear("per second"),
            xs: STEPS.iter().map(|&n| f64::from(n)).collect(),
            series: fronts.map(series).collect(),
            ..Plot::default()
        });
        let mut rows = Table::new([
            "way",
            "clients",
            "per second",
            "mean",
            "p95",
            "p99",
            "proxy CPU us each",
            "database CPU us each",
            "errors",
        ]);
        for cell in cells {
            let r = &cell.result;
            let cpu = |name: &str| {
                let line = r.processes.iter().find(|p| p.name == name);
                line.and_then(|p| p.cpu_us_per_query).map_or("-".to_owned(), number)
            };
            rows.row([
                cell.front.name().to_owned(),
                count(u64::from(cell.clients)),
                number(r.tps),
                milliseconds(r.latency.mean_ms),
                milliseconds(r.latency.p95_ms),
                milliseconds(r.latency.p99_ms),
                if cell.front == Front::Direct { "-".to_owned() } else { cpu(cell.front.name()) },
                cpu("database"),
                count(r.errors),
            ]);
        }
        section.table(rows);
        Some(section)
    }

    fn figure(&self) -> Value {
        let r = &self.result;
        json!({
            "way": self.front.name(), "clients": self.clients, "per_second": r.tps, "mean_ms": r.latency.mean_ms,
            "p95_ms": r.latency.p95_ms, "p99_ms": r.latency.p99_ms, "errors": r.errors, "processes": r.processes,
        })
    }
}
