//! TPC-C by more and more clients through pools of different sizes: too small, right, and too large.

use super::ground::{Base, Front, Ground, Load, Way};
use super::{Lab, Measured, Outcome, distinct, of_each, points};
use crate::prepare;
use crate::record::result::RunResult;
use crate::report::page::{Axis, Plot, Scale, Section, Series, Table, count, milliseconds, number};
use crate::url::Dialect;
use crate::workloads::Workload;
use crate::workloads::options::{Isolation, Options, Switch};
use serde_json::{Value, json};
use std::sync::Arc;

/// Clients and pools, in multiples of the cores, as published (56 cores).
const CLIENTS: [f64; 4] = [1.0, 2.7, 5.4, 10.7];
const POOLS: [f64; 5] = [0.25, 1.0, 2.7, 5.4, 10.7];

/// Warehouses for each core.
const WAREHOUSES_PER_CORE: u32 = 2;

/// Seconds of a cell.
const SECONDS: f64 = 3.0;

/// The published figures.
pub fn published() -> Section {
    let mut section = Section::new("As published");
    section.text(
        "PostgreSQL on 56 cores, sysbench-tpcc (10 sets of tables, scale 100, read committed, no foreign keys), 30 minutes a \
         run; PgBouncer 1.8.1 in transaction mode on the same machine; 56, 150, 300 and 600 clients, pools of 14, 56, 150, 300 \
         and 600. At 56 clients PostgreSQL alone was 2.5 times faster than through PgBouncer; from 150 clients on the \
         pooler won and stayed flat; a pool of the number of cores was best, a quarter of it almost as good, 600 as bad \
         as none.",
    );
    section
}

struct Cell {
    front: Front,
    /// Connections of the pool; `None`: direct.
    pool: Option<u32>,
    clients: u32,
    result: RunResult,
}

/// The grid, on each PostgreSQL.
///
/// # Errors
/// No database is a PostgreSQL, the database or what stands before it cannot be started or asked, a
/// measurement cannot be carried out, or the user stops the experiment (`stopped`).
pub fn run(lab: &mut Lab<'_>) -> Result<Outcome, String> {
    let ground = lab.ground;
    let times = |factor: f64| ((factor * f64::from(ground.cores)).round() as u32).max(1);
    let sizes = |factors: &[f64]| distinct(factors.iter().map(|&factor| times(factor)));
    let (clients, pools) = (sizes(&CLIENTS), sizes(&POOLS));
    let bases: Vec<&Base> =
        ground.bases.iter().filter(|base| base.url.dialect == Dialect::Postgres).collect();
    if bases.is_empty() {
        return Err("this experiment needs a PostgreSQL".to_owned());
    }
    of_each(lab, bases.into_iter(), |lab, base| {
        let tables = Tables::make(lab, base)?;
        let mut cells = Vec::new();
        for front in [Front::Direct, Front::Weir, Front::PgBouncer] {
            let sizes: Vec<Option<u32>> =
                if front == Front::Direct { vec![None] } else { pools.iter().copied().map(Some).collect() };
            for pool in sizes {
                let Some(way) = way(ground, base, front, pool)? else { continue };
                for &n in clients.iter().filter(|&&n| n <= way.clients_max) {
                    lab.go_on()?;
                    let load = Load::new(base, &way, tables.workload(n)?, n, lab.seconds(SECONDS));
                    cells.push(Cell { front, pool, clients: n, result: load.run(lab.stop)? });
                }
                let text = pool.map_or(String::new(), |size| format!(", pool of {size}"));
                let rates: Vec<String> = cells[cells.len().saturating_sub(clients.len())..]
                    .iter()
                    .map(|c| number(c.result.tps))
                    .collect();
                lab.say(&format!(
                    "  {}, {}{text}: {} transactions/s",
                    base.title,
                    front.name(),
                    rates.join(", ")
                ));
            }
        }
        Ok(cells)
    })
}

impl Measured for Cell {
    type Verdict = Vec<String>;

    fn verdict(lab: &Lab<'_>, base: &Base, cells: &[Cell]) -> Vec<String> {
        verdict(base, cells, lab.ground.cores)
    }

    fn section(_lab: &Lab<'_>, base: &Base, cells: &[Cell]) -> Option<Section> {
        Some(section(base, cells, &distinct(cells.iter().map(|c| c.clients))))
    }

    fn figure(&self) -> Value {
        let r = &self.result;
        json!({
            "way": self.front.name(), "pool": self.pool, "clients": self.clients, "transactions_per_second": r.tps,
            "mean_ms": r.latency.mean_ms, "p95_ms": r.latency.p95_ms, "p99_ms": r.latency.p99_ms,
            "begun_again": r.ignored_errors, "errors": r.errors, "errors_by_code": r.errors_by_code,
        })
    }
}

fn way(ground: &Ground, base: &Base, front: Front, pool: Option<u32>) -> Result<Option<Way>, String> {
    ground.way_with_pool(base, front, 1_000, pool.unwrap_or(ground.pool_size))
}

/// The tables of TPC-C: made, and removed when dropped.
struct Tables<'a> {
    base: &'a Base,
    warehouses: u32,
}

impl<'a> Tables<'a> {
    fn make(lab: &mut Lab<'_>, base: &'a Base) -> Result<Tables<'a>, String> {
        let tables = Tables { base, warehouses: WAREHOUSES_PER_CORE * lab.ground.cores };
        lab.say(&format!("  {}: filling the tables of {} warehouses ...", base.title, tables.warehouses));
        let workload = tables.workload(1)?;
        let threads = lab.ground.cores as usize;
        prepare::prepare(&base.url, &*workload, threads, &mut |_, _| {})
            .map_err(|error| format!("{}: {error}", base.title))?;
        Ok(tables)
    }

    fn workload(&self, clients: u32) -> Result<Arc<dyn Workload>, String> {
        self.base.workload("tpcc", clients, |options: &mut Options| {
            options.tables = 1;
            options.scale = Some(self.warehouses);
            options.use_fk = Switch::Off;
            options.trx_level = Isolation::Rc;
        })
    }
}

impl Drop for Tables<'_> {
    fn drop(&mut self) {
        // The server may have gone, and its tables with it.
        if let Ok(workload) = self.workload(1) {
            let _ = prepare::cleanup(&self.base.url, &*workload);
        }
    }
}

fn find(cells: &[Cell], front: Front, pool: Option<u32>, clients: u32) -> Option<&Cell> {
    cells.iter().find(|c| c.front == front && c.pool == pool && c.clients == clients)
}

fn verdict(base: &Base, cells: &[Cell], cores: u32) -> Vec<String> {
    let few = cells.iter().map(|c| c.clients).min().unwrap_or(0);
    let many = cells.iter().map(|c| c.clients).max().unwrap_or(0);
    let mut lead = Vec::new();
    for front in [Front::Weir, Front::PgBouncer] {
        let compared = |clients: u32| {
            let pooled = find(cells, front, Some(cores), clients)?;
            let direct = find(cells, Front::Direct, None, clients)?;
            Some(pooled.result.tps / direct.result.tps.max(1e-9))
        };
        if let (Some(at_few), Some(at_many)) = (compared(few), compared(many)) {
            lead.push(format!(
                "{}, {}, a pool of {cores} (the cores): {at_few:.2} times the direct throughput with {few} clients, \
                 {at_many:.2} times with {many}.",
                base.title,
                front.name()
            ));
        }
    }
    lead
}

fn section(base: &Base, cells: &[Cell], clients: &[u32]) -> Section {
    let mut section = Section::new(base.title.clone());
    let mut lines: Vec<(Front, Option<u32>)> = Vec::new();
    for cell in cells {
        if !lines.contains(&(cell.front, cell.pool)) {
            lines.push((cell.front, cell.pool));
        }
    }
    let name = |front: Front, pool: Option<u32>| {
        pool.map_or(front.name().to_owned(), |size| format!("{}, pool of {size}", front.name()))
    };
    for shown in [Front::Weir, Front::PgBouncer] {
        let mut colours = [0, 2, 3, 4, 5, 6].into_iter().cycle();
        let series: Vec<Series> = lines
            .iter()
            .filter(|(front, _)| *front == shown || *front == Front::Direct)
            .map(|&(front, pool)| {
                let colour = if front == Front::Direct { 1 } else { colours.next().unwrap_or(0) };
                points(&name(front, pool), colour, clients, |n| {
                    find(cells, front, pool, n).map(|c| c.result.tps)
                })
            })
            .collect();
        if series.len() > 1 {
            section.plot(Plot {
                title: format!("{}: TPC-C directly and through {}", base.title, shown.name()),
                x_axis: Axis::new("clients", Scale::Doubling),
                y_axis: Axis::linear("transactions/s"),
                xs: clients.iter().map(|&n| f64::from(n)).collect(),
                series,
                ..Plot::default()
            });
        }
    }
    let mut rows =
        Table::new(["way", "clients", "transactions/s", "mean", "p95", "p99", "begun again", "errors"]);
    for cell in cells {
        let r = &cell.result;
        rows.row([
            name(cell.front, cell.pool),
            count(u64::from(cell.clients)),
            number(r.tps),
            milliseconds(r.latency.mean_ms),
            milliseconds(r.latency.p95_ms),
            milliseconds(r.latency.p99_ms),
            count(r.ignored_errors),
            count(r.errors),
        ]);
    }
    section.table(rows);
    section
}
