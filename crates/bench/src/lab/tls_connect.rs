//! One client that opens connections as fast as it can: without TLS, with it, and through Weir on its own
//! host, which has TLS behind and a Unix socket in front.

use super::ground::{Base, Front, Load, Way};
use super::{Lab, Measured, Outcome, of_each};
use crate::record::result::RunResult;
use crate::report::page::{Axis, Draw, Plot, Section, Series, Table, count, milliseconds, number};
use serde_json::{Value, json};

/// Seconds of a measurement.
const SECONDS: f64 = 5.0;

/// What was published is the time for so many.
const CONNECTS: f64 = 10_000.0;

/// The published figures.
pub fn published() -> Section {
    let mut section = Section::new("As published");
    section.text(
        "MySQL 5.7, one PHP thread that opens 10,000 connections as fast as it can, the database on another host.",
    );
    let mut rows = Table::new(["way", "seconds", "as fast as direct without TLS"]).with_text(&[0]);
    for (way, seconds, times) in [
        ("direct, no TLS", "20.4", "1.0 times"),
        ("direct, TLS", "79.9", "0.26 times"),
        ("through an OpenVPN tunnel", "15.2", "1.3 times"),
        (
            "through ProxySQL 1.4.1 on the application's host: Unix socket in front, TLS behind",
            "2.79",
            "7.3 times",
        ),
    ] {
        rows.row([way, seconds, times]);
    }
    section.table(rows);
    section
}

/// The ways, in the order of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Clear,
    Tls,
    Resumed,
    Proxy,
}

impl How {
    const ALL: [How; 4] = [How::Clear, How::Tls, How::Resumed, How::Proxy];

    fn name(self) -> &'static str {
        match self {
            How::Clear => "direct, no TLS",
            How::Tls => "direct, TLS",
            How::Resumed => "direct, TLS with resumed sessions",
            How::Proxy => "Weir on this host: Unix socket in front, TLS behind",
        }
    }

    fn way(self, lab: &Lab<'_>, base: &Base) -> Result<Way, String> {
        match self {
            How::Clear => base.direct("sslmode=disable"),
            How::Tls => base.direct("sslmode=require"),
            How::Resumed => {
                let mut way = base.direct("sslmode=require")?;
                way.url = way.url.resuming()?;
                Ok(way)
            }
            How::Proxy => lab.ground.weir_on_a_socket(base, 100),
        }
    }
}

/// A mean of one phase.
type OfPhase = fn(&RunResult) -> f64;

struct Cell {
    how: How,
    result: RunResult,
}

impl Cell {
    /// Seconds that the published number of connects takes.
    fn seconds(&self) -> f64 {
        CONNECTS / self.result.tps.max(1e-9)
    }
}

/// Measures each database by each way.
///
/// # Errors
/// The database or what stands before it cannot be started or asked, a measurement cannot be carried out, or
/// the user stops the experiment (`stopped`).
pub fn run(lab: &mut Lab<'_>) -> Result<Outcome, String> {
    let ground = lab.ground;
    let mut without = Vec::new();
    let mut outcome = of_each(lab, ground.bases.iter(), |lab, base| {
        let mut cells = Vec::new();
        for how in How::ALL {
            lab.go_on()?;
            let way = how.way(lab, base)?;
            let workload = base.workload("connect", 1, |_| {})?;
            let measured = Load::new(base, &way, workload, 1, lab.seconds(SECONDS)).run(lab.stop);
            let result = match measured {
                Ok(result) => result,
                Err(text) if how == How::Tls => {
                    without.push(format!("{}: left out, for it has no TLS ({text}).", base.title));
                    break;
                }
                Err(text) => return Err(text),
            };
            // PostgreSQL gives no tickets.
            if how == How::Resumed && result.transport.resumed == 0 {
                continue;
            }
            let cell = Cell { how, result };
            lab.say(&format!("  {}, {}: 10,000 take {:.1} s", base.title, how.name(), cell.seconds()));
            cells.push(cell);
        }
        Ok(cells)
    })?;
    outcome.lead.extend(without);
    Ok(outcome)
}

impl Measured for Cell {
    type Verdict = Vec<String>;

    fn verdict(_lab: &Lab<'_>, base: &Base, cells: &[Cell]) -> Vec<String> {
        verdict(base, cells).into_iter().collect()
    }

    fn section(_lab: &Lab<'_>, base: &Base, cells: &[Cell]) -> Option<Section> {
        (cells.len() > 1).then(|| section(base, cells))
    }

    fn figure(&self) -> Value {
        let r = &self.result;
        let front = if self.how == How::Proxy { Front::Weir } else { Front::Direct };
        json!({
            "way": self.how.name(), "front": front.name(), "seconds_for_10000": self.seconds(), "per_second": r.tps,
            "connect_ms": r.connect.mean_ms, "tls_ms": r.tls.mean_ms, "login_ms": r.login.mean_ms,
            "query_ms": r.query.mean_ms, "transport": r.transport, "errors": r.errors, "processes": r.processes,
        })
    }
}

fn verdict(base: &Base, cells: &[Cell]) -> Option<String> {
    let seconds = |how: How| cells.iter().find(|cell| cell.how == how).map(Cell::seconds);
    let (clear, tls, proxy) = (seconds(How::Clear)?, seconds(How::Tls)?, seconds(How::Proxy)?);
    Some(format!(
        "{}: one client opens 10,000 connections in {clear:.1} s directly, in {tls:.1} s directly with TLS, and in {proxy:.2} s \
         through Weir on its own host, {:.1} and {:.1} times as fast.",
        base.title,
        clear / proxy,
        tls / proxy
    ))
}

fn section(base: &Base, cells: &[Cell]) -> Section {
    let mut section = Section::new(base.title.clone());
    section.text(
        "Connect, one SELECT of a number, disconnect, one after the other by one client; seconds for 10,000 follow from the rate. \
         The server is on this machine: over a network each round trip that a way needs costs its time in addition, \
         and only the socket has none. What remains with a socket is the login (a hash and three messages) and the query, \
         which still goes to the database and back.",
    );
    let phases: [(&str, OfPhase); 4] = [
        ("connect", |r| r.connect.mean_ms),
        ("TLS", |r| r.tls.mean_ms),
        ("login", |r| r.login.mean_ms),
        ("query", |r| r.query.mean_ms),
    ];
    section.plot(Plot {
        title: format!("{}: 10,000 connects", base.title),
        x_axis: Axis::linear("way (row of the table)"),
        y_axis: Axis::linear("seconds"),
        xs: (1..=cells.len()).map(|n| n as f64).collect(),
        series: vec![Series {
            name: "seconds for 10,000".to_owned(),
            values: cells.iter().map(|cell| Some(cell.seconds())).collect(),
            draw: Draw::Bars,
            colour: 0,
            ..Series::default()
        }],
        ..Plot::default()
    });
    let mut rows = Table::new([
        "",
        "way",
        "seconds for 10,000",
        "per second",
        "connect",
        "TLS",
        "login",
        "query",
        "database CPU us each",
        "errors",
    ])
    .with_text(&[1]);
    for (n, cell) in cells.iter().enumerate() {
        let r = &cell.result;
        let database = r.processes.iter().find(|p| p.name == "database");
        let mut row = vec![
            (n + 1).to_string(),
            cell.how.name().to_owned(),
            format!("{:.2}", cell.seconds()),
            number(r.tps),
        ];
        row.extend(phases.iter().map(|(_, of)| milliseconds(of(r))));
        row.push(database.and_then(|p| p.cpu_us_per_query).map_or("-".to_owned(), number));
        row.push(count(r.errors));
        rows.row(row);
    }
    section.table(rows);
    section
}
