//! The doubling ladder on each database: the knee, the pool size, the client limit.

use super::ground::Load;
use super::{Lab, Outcome};
use crate::ramp::{Ramp, climb};
use crate::report::page::{Section, Table};
use serde_json::json;
use std::time::Duration;

/// The longest time of a level.
const LEVEL_SECONDS: f64 = 6.0;

/// The shortest.
const LEVEL_SECONDS_MIN: f64 = 3.0;

/// A level is known well enough when half its confidence interval is this share of it.
const PRECISION: f64 = 0.02;

/// The last level at most.
const CONNECTIONS_MAX: u32 = 1024;

/// The published figures.
pub fn published() -> Section {
    let mut section = Section::new("As published");
    section.text(
        "MySQL 8.0.15 on 48 cores, point selects from memory, clients doubled from 1 to 1,024. The knee was at 128 \
         clients, 2.7 for each core. The rule of thumb given with it: at most 4 x cores.",
    );
    let mut rows = Table::new(["clients", "queries/s", "latency"]);
    for (clients, queries, latency) in [
        ("16", "300,000", "50 us"),
        ("32", "600,000", "50 us"),
        ("64", "1,200,000", "50 us"),
        ("128", "1,800,000", "70 us"),
        ("256", "less", "140 us"),
        ("512", "less", "300 us"),
    ] {
        rows.row([clients, queries, latency]);
    }
    section.table(rows);
    section
}

/// Climbs on each database.
///
/// # Errors
/// The database or what stands before it cannot be started or asked, a measurement cannot be carried out, or
/// the user stops the experiment (`stopped`).
pub fn run(lab: &mut Lab<'_>) -> Result<Outcome, String> {
    let mut outcome = Outcome { lead: Vec::new(), sections: Vec::new(), figures: json!([]) };
    let mut figures = Vec::new();
    let ground = lab.ground;
    for base in &ground.bases {
        lab.go_on()?;
        let Some(way) = ground.way(base, super::ground::Front::Direct, 0)? else { continue };
        let max = CONNECTIONS_MAX.min(base.direct_clients).min(ground.clients_max);
        let seconds = lab.seconds(LEVEL_SECONDS);
        let load = Load::new(base, &way, base.workload("oltp_point_select", max, |_| {})?, 1, seconds);
        let ramp = Ramp {
            plan: load.plan,
            from: 1,
            max,
            min_time: Duration::from_secs_f64(LEVEL_SECONDS_MIN.min(seconds)),
            precision: PRECISION,
            latency_limit_ms: None,
        };
        let control = lab.stop.control();
        let found =
            climb(&ramp, &control, &mut |level| lab.say(&format!("  {}: {level}", base.title)), &mut |_| {});
        let found = found.map_err(|error| format!("{}: {error}", base.title))?;
        let page = found.page();
        outcome.lead.extend(found.answers().iter().map(|text| format!("{}: {text}", base.title)));
        if let Some(knee) = &found.knee {
            outcome.lead.push(format!(
                "{}: {:.1} connections for each core at the knee; published: 2.7, at most 4.",
                base.title,
                f64::from(knee.connections) / f64::from(ground.cores.max(1))
            ));
        }
        for mut section in page.sections {
            section.title = format!("{}: {}", base.title, section.title.to_lowercase());
            outcome.sections.push(section);
        }
        figures.push(json!({ "database": base.title, "ramp": found }));
    }
    outcome.figures = json!(figures);
    Ok(outcome)
}
