//! Impatient clients that disconnect and reconnect while a table is locked for some seconds.

use super::ground::{Base, Front, Load, Way};
use super::{Lab, Measured, Outcome, of_each};
use crate::client::blocking::Client;
use crate::record::result::RunResult;
use crate::report::page::{Axis, Mark, Plot, Section, Series, Table, count, milliseconds, number};
use crate::run::Progress;
use crate::url::Dialect;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Clients of the storm, where the way takes them.
const CLIENTS: u32 = 20_000;

/// Seconds before the lock, with it, and behind it.
const BEFORE_S: u64 = 6;
const STALL_S: u64 = 10;
const AFTER_S: u64 = 18;

/// A client's patience with a query, in seconds.
const PATIENCE_S: f64 = 1.0;

/// Throughput is back when it is this share of what it was before.
const BACK_SHARE: f64 = 0.8;

/// Events each second that all clients want together, for each core: well below what a server can do, so that
/// only the lock makes anybody wait.
const RATE_PER_CORE: f64 = 1_000.0;

/// The published figures.
pub fn published() -> Section {
    let mut section = Section::new("As published");
    section.text(
        "Named by the authors of the other experiments as the worst habit of applications: to reconnect and repeat when a \
         query is slow, thousands of connections within seconds. Not measured there.",
    );
    section
}

struct Cell {
    front: Front,
    clients: u32,
    result: RunResult,
    /// Connections of the database at each second of the run.
    servers: Vec<Option<i64>>,
}

impl Cell {
    fn most_servers(&self) -> i64 {
        self.servers.iter().flatten().copied().max().unwrap_or(0)
    }

    fn before(&self) -> f64 {
        mean(self.result.per_second.iter().take(BEFORE_S as usize).map(|s| s.events as f64))
    }

    /// Seconds from the end of the lock until throughput is back; `None`: not within the run.
    fn back_after(&self) -> Option<usize> {
        let wanted = BACK_SHARE * self.before();
        let behind = self.result.per_second.iter().skip((BEFORE_S + STALL_S) as usize);
        behind.map(|s| s.events as f64).position(|events| events >= wanted)
    }

    fn left(&self) -> u64 {
        self.result.errors_by_code.iter().filter(|e| e.code == "patience").map(|e| e.count).sum()
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    if n > 0.0 { sum / n } else { 0.0 }
}

/// One storm by each way.
///
/// # Errors
/// The database or what stands before it cannot be started or asked, a measurement cannot be carried out, or
/// the user stops the experiment (`stopped`).
pub fn run(lab: &mut Lab<'_>) -> Result<Outcome, String> {
    let ground = lab.ground;
    of_each(lab, ground.bases.iter(), |lab, base| {
        let mut cells = Vec::new();
        for front in [Front::Direct, Front::Weir, Front::PgBouncer] {
            lab.go_on()?;
            let wanted = CLIENTS.min(ground.clients_max);
            let Some(way) = ground.way(base, front, wanted)? else { continue };
            // Directly the server must have room for those who come back while the others are still there.
            let most = if front == Front::Direct { way.clients_max / 2 } else { way.clients_max };
            let cell = measure(lab, base, &way, wanted.min(most))?;
            let back = cell.back_after().map_or("not back".to_owned(), |s| format!("back after {s} s"));
            lab.say(&format!(
                "  {}, {}, {} clients: at most {} connections to the database, {back}",
                base.title,
                front.name(),
                count(u64::from(cell.clients)),
                cell.most_servers()
            ));
            cells.push(cell);
        }
        Ok(cells)
    })
}

impl Measured for Cell {
    type Verdict = Vec<String>;

    fn verdict(_lab: &Lab<'_>, base: &Base, cells: &[Cell]) -> Vec<String> {
        cells.iter().map(|cell| verdict(base, cell)).collect()
    }

    fn section(lab: &Lab<'_>, base: &Base, cells: &[Cell]) -> Option<Section> {
        Some(section(base, cells, lab.ground.pool_size))
    }

    fn figure(&self) -> Value {
        let r = &self.result;
        json!({
            "way": self.front.name(), "clients": self.clients, "events_per_second_before": self.before(),
            "most_database_connections": self.most_servers(), "back_after_seconds": self.back_after(),
            "left_and_came_again": self.left(), "errors": r.errors, "errors_by_code": r.errors_by_code,
            "max_ms": r.latency.max_ms, "database_connections": self.servers,
            "events": r.per_second.iter().map(|s| s.events).collect::<Vec<_>>(),
            "reconnects": r.per_second.iter().map(|s| s.reconnects).collect::<Vec<_>>(),
        })
    }
}

fn measure(lab: &Lab<'_>, base: &Base, way: &Way, clients: u32) -> Result<Cell, String> {
    let workload = base.workload("storm", clients, |options| {
        options.patience = PATIENCE_S;
        options.busy_workload = "oltp_point_select".to_owned();
        // One table, so that one lock stops all.
        options.tables = 1;
    })?;
    let mut load = Load::new(base, way, workload, clients, (BEFORE_S + STALL_S + AFTER_S) as f64);
    let rate = (RATE_PER_CORE * f64::from(lab.ground.cores)).min(f64::from(clients) * 2.0);
    load.plan.pace = crate::plan::Pace::Every(Duration::from_secs_f64(f64::from(clients) / rate));
    load.plan.connect_timeout = Duration::from_secs(15);
    load.plan.query_timeout = Duration::from_secs(STALL_S + AFTER_S);
    let (looker, locker) = (base.look()?, base.look()?);
    let (second, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| watch(base, looker, &second, &ended));
        let lock = scope.spawn(|| lock(base, locker, &second, &ended));
        let result = load.run_heard(lab.stop, &mut |progress| {
            if let Progress::Second(interval) = progress {
                second.store(interval.number + 1, Ordering::Relaxed);
            }
        });
        ended.store(true, Ordering::Relaxed);
        let servers = watch.join().map_err(|_| "the watcher panicked".to_owned())?;
        lock.join().map_err(|_| "the locker panicked".to_owned())??;
        Ok(Cell { front: way.front, clients, result: result?, servers })
    })
}

/// Counts the connections to the database, once for each second of the run.
fn watch(base: &Base, mut client: Client, second: &AtomicU64, ended: &AtomicBool) -> Vec<Option<i64>> {
    let mut seen: Vec<Option<i64>> = Vec::new();
    while !ended.load(Ordering::Relaxed) {
        let at = second.load(Ordering::Relaxed) as usize;
        let found = base.connections(&mut client).ok().map(|n| n - LOCKERS);
        if seen.len() <= at {
            seen.resize(at + 1, None);
        }
        if let Some(place) = seen.last_mut() {
            *place = (*place).max(found);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    seen
}

/// The connection that holds the lock is no client's.
const LOCKERS: i64 = 1;

/// Takes the table at its second and lets it go again.
fn lock(base: &Base, mut client: Client, second: &AtomicU64, ended: &AtomicBool) -> Result<(), String> {
    while second.load(Ordering::Relaxed) < BEFORE_S {
        if ended.load(Ordering::Relaxed) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let (take, leave): (&[&str], &str) = match base.url.dialect {
        Dialect::Postgres => (&["BEGIN", "LOCK TABLE sbtest1 IN ACCESS EXCLUSIVE MODE"], "COMMIT"),
        Dialect::Mysql => (&["LOCK TABLES sbtest1 WRITE"], "UNLOCK TABLES"),
    };
    let failed = |error| format!("{}: the lock: {error}", base.title);
    take.iter().try_for_each(|sql| client.run(sql)).map_err(failed)?;
    for _ in 0..STALL_S * 20 {
        if ended.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    client.run(leave).map_err(failed)
}

fn verdict(base: &Base, cell: &Cell) -> String {
    let back = match cell.back_after() {
        Some(0 | 1) => "throughput was back within 2 s of its end".to_owned(),
        Some(seconds) => format!("throughput was back {seconds} s behind its end"),
        None => format!("throughput was not back {AFTER_S} s behind its end"),
    };
    format!(
        "{}, {}, {} clients, a table locked for {STALL_S} s: at most {} connections to the database; {back}; {} times a \
         client left and came again, {} errors.",
        base.title,
        cell.front.name(),
        count(u64::from(cell.clients)),
        count(cell.most_servers().max(0) as u64),
        count(cell.left()),
        count(cell.result.errors)
    )
}

fn section(base: &Base, cells: &[Cell], pool_size: u32) -> Section {
    let mut section = Section::new(base.title.clone());
    section.text(format!(
        "Each client sends a point select now and then; all together stay far below what the database can do. After {BEFORE_S} s \
         another session takes the table for {STALL_S} s, as a migration would. A client that waits more than {PATIENCE_S} s \
         leaves and connects anew at once. The pools have {pool_size} connections."
    ));
    let length = cells.iter().map(|c| c.result.per_second.len()).max().unwrap_or(0);
    let xs: Vec<f64> = (1..=length).map(|n| n as f64).collect();
    let marks = vec![
        Mark { x: (BEFORE_S + 1) as f64, label: "locked".to_owned() },
        Mark { x: (BEFORE_S + STALL_S + 1) as f64, label: "unlocked".to_owned() },
    ];
    let picture = |title: &str, unit: &str, of: &dyn Fn(&Cell, usize) -> Option<f64>| Plot {
        title: format!("{}: {title}", base.title),
        group: base.title.clone(),
        x_axis: Axis::linear("second"),
        y_axis: Axis::linear(unit),
        xs: xs.clone(),
        series: cells
            .iter()
            .map(|cell| Series {
                name: cell.front.name().to_owned(),
                values: (0..length).map(|n| of(cell, n)).collect(),
                colour: cell.front.colour(),
                ..Series::default()
            })
            .collect(),
        marks: marks.clone(),
        ..Plot::default()
    };
    section.plot(picture("queries answered", "per second", &|c, n| {
        c.result.per_second.get(n).map(|s| s.events as f64)
    }));
    section.plot(picture("connections to the database", "connections", &|c, n| {
        c.servers.get(n).copied().flatten().map(|n| n as f64)
    }));
    section.plot(picture("clients that connect anew", "per second", &|c, n| {
        c.result.per_second.get(n).map(|s| s.reconnects as f64)
    }));
    let mut rows = Table::new([
        "way",
        "clients",
        "before, /s",
        "database connections, most",
        "left and came again",
        "back after",
        "longest wait",
        "errors",
    ]);
    for cell in cells {
        rows.row([
            cell.front.name().to_owned(),
            count(u64::from(cell.clients)),
            number(cell.before()),
            count(cell.most_servers().max(0) as u64),
            count(cell.left()),
            cell.back_after().map_or("-".to_owned(), |s| format!("{s} s")),
            milliseconds(cell.result.latency.max_ms),
            count(cell.result.errors),
        ]);
    }
    section.table(rows);
    section
}
