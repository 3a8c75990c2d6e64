//! `weir lab`: published experiments, repeated on this machine.
//!
//! Owns: the list of experiments, their order, and the output of their results: text on the terminal, a JSON
//! file and an HTML file each. One file per experiment. Must not know: the proxy; `weir serve` is started as
//! a process.
//!
//! Every figure is measured; published figures are shown next to them, unchanged. Sizes are scaled to the
//! machine, and the report says how.

mod connect_rate;
pub mod ground;
mod hundred_k;
mod idle;
mod knee;
mod pooler_tpcc;
mod storm;
mod tls_connect;

use crate::demo::Stop;
use crate::report::page::{Draw, Page, Section, Series, Table, bytes};
use crate::report::{html, save, terminal};
use ground::{Base, Ground};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Repeat a published experiment: direct, through Weir, and through PgBouncer or HAProxy if they are
/// installed.
#[derive(Debug, Clone, clap::Args)]
pub struct LabArgs {
    /// Name of the experiment.
    #[arg(value_enum)]
    pub experiment: Name,
    /// Database: postgres://user:password@host:port/database or mysql://... May be given several times.
    /// Default: temporary PostgreSQL and MariaDB servers. Tables sbtest1 to sbtest10 are created and dropped
    /// again.
    #[arg(long = "url")]
    pub urls: Vec<String>,
    /// Directory for the reports: NAME.html and NAME.json.
    #[arg(long, default_value = "weir-lab")]
    pub out: PathBuf,
    /// Number of connections of a pool. Default: 4 for each core.
    #[arg(long)]
    pub pool_size: Option<u32>,
    /// Maximum number of clients of any experiment. Default: 100,000, or as many as memory allows.
    #[arg(long)]
    pub max_clients: Option<u32>,
    /// Seconds of each measurement. Default: the experiment's own.
    #[arg(long)]
    pub time: Option<f64>,
}

/// The experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Name {
    /// Where throughput stops rising and latency starts to; a pool size follows.
    Knee,
    /// The cost of thousands of idle connections for busy ones.
    Idle,
    /// Connect, query, disconnect, as often as possible.
    ConnectRate,
    /// One client that opens connections: without TLS, with TLS, and through Weir on its own host.
    TlsConnect,
    /// Impatient clients that reconnect while the database is stalled.
    Storm,
    /// 10,000 to 100,000 active clients.
    HundredK,
    /// TPC-C through pools of different sizes.
    PoolerTpcc,
    /// All experiments.
    All,
}

impl LabArgs {
    /// The most clients that the experiment means to have at a time.
    pub fn clients_max(&self) -> u32 {
        let wanted = match self.experiment {
            Name::ConnectRate | Name::TlsConnect | Name::PoolerTpcc => 100,
            Name::Knee => 1_024,
            Name::Storm => 20_000,
            Name::Idle | Name::HundredK | Name::All => ground::CLIENTS_MAX,
        };
        wanted.min(self.max_clients.unwrap_or(u32::MAX))
    }
}

/// What an experiment needs.
pub struct Lab<'a> {
    /// Databases.
    pub ground: &'a Ground,
    /// Ends everything.
    pub stop: &'a Stop,
    seconds: Option<f64>,
    say: &'a mut dyn FnMut(&str),
}

impl Lab<'_> {
    /// Seconds of a measurement, when the user has not said.
    pub fn seconds(&self, own: f64) -> f64 {
        self.seconds.unwrap_or(own)
    }

    /// Tells the terminal how it goes.
    pub fn say(&mut self, text: &str) {
        (self.say)(text);
    }

    /// An error when it is to end.
    ///
    /// # Errors
    /// `stopped`, once the user has asked to end.
    pub fn go_on(&self) -> Result<(), String> {
        if self.stop.is_stopped() { Err("stopped".to_owned()) } else { Ok(()) }
    }
}

/// What an experiment found.
pub struct Outcome {
    /// The answers, one sentence each.
    pub lead: Vec<String>,
    /// Tables and plots.
    pub sections: Vec<Section>,
    /// The figures for programs.
    pub figures: Value,
}

/// One measurement of an experiment that makes a table of them for each database.
trait Measured: Sized {
    /// One sentence, or several.
    type Verdict: IntoIterator<Item = String>;

    /// The answers, one sentence each.
    fn verdict(lab: &Lab<'_>, base: &Base, cells: &[Self]) -> Self::Verdict;

    /// The table and the plots; `None` when there is nothing to show.
    fn section(lab: &Lab<'_>, base: &Base, cells: &[Self]) -> Option<Section>;

    /// The measurement for programs.
    fn figure(&self) -> Value;
}

/// Measures each of these databases, and tells what came of it.
fn of_each<'a, C: Measured>(
    lab: &mut Lab<'a>,
    bases: impl Iterator<Item = &'a Base>,
    mut measure: impl FnMut(&mut Lab<'a>, &'a Base) -> Result<Vec<C>, String>,
) -> Result<Outcome, String> {
    let (mut lead, mut sections, mut figures) = (Vec::new(), Vec::new(), Vec::new());
    for base in bases {
        lab.go_on()?;
        let cells = measure(lab, base)?;
        lead.extend(C::verdict(lab, base, &cells));
        sections.extend(C::section(lab, base, &cells));
        let cells: Vec<Value> = cells.iter().map(C::figure).collect();
        figures.push(json!({ "database": base.title, "cells": cells }));
    }
    Ok(Outcome { lead, sections, figures: json!(figures) })
}

/// A line of points over numbers of clients, with a gap where nothing was measured.
fn points(name: &str, colour: usize, clients: &[u32], of: impl Fn(u32) -> Option<f64>) -> Series {
    Series {
        name: name.to_owned(),
        values: clients.iter().map(|&n| of(n)).collect(),
        draw: Draw::Points,
        colour,
        ..Series::default()
    }
}

/// The numbers of clients that a plot has, each once, rising.
fn distinct(clients: impl Iterator<Item = u32>) -> Vec<u32> {
    clients.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

struct Experiment {
    name: &'static str,
    title: &'static str,
    /// What was done and found, and by which machine.
    published: fn() -> Section,
    run: fn(&mut Lab<'_>) -> Result<Outcome, String>,
}

const EXPERIMENTS: [(Name, Experiment); 7] = [
    (
        Name::Knee,
        Experiment {
            name: "knee",
            title: "The knee of the curve",
            published: knee::published,
            run: knee::run,
        },
    ),
    (
        Name::Idle,
        Experiment { name: "idle", title: "Idle connections", published: idle::published, run: idle::run },
    ),
    (
        Name::ConnectRate,
        Experiment {
            name: "connect-rate",
            title: "Connect, query, disconnect",
            published: connect_rate::published,
            run: connect_rate::run,
        },
    ),
    (
        Name::TlsConnect,
        Experiment {
            name: "tls-connect",
            title: "The price of TLS at a connect",
            published: tls_connect::published,
            run: tls_connect::run,
        },
    ),
    (
        Name::Storm,
        Experiment {
            name: "storm",
            title: "A reconnect storm",
            published: storm::published,
            run: storm::run,
        },
    ),
    (
        Name::HundredK,
        Experiment {
            name: "hundred-k",
            title: "A hundred thousand executing clients",
            published: hundred_k::published,
            run: hundred_k::run,
        },
    ),
    (
        Name::PoolerTpcc,
        Experiment {
            name: "pooler-tpcc",
            title: "TPC-C through a pool",
            published: pooler_tpcc::published,
            run: pooler_tpcc::run,
        },
    ),
];

/// Does what the arguments say, with `executable` as Weir; the result is the exit code.
pub fn run(args: &LabArgs, executable: PathBuf, stop: &Stop) -> u8 {
    let mut say = |text: &str| eprintln!("{text}");
    match run_all(args, executable, stop, &mut say) {
        Ok(failed) => u8::from(failed),
        Err(text) => {
            eprintln!("weir lab: {text}");
            1
        }
    }
}

fn run_all(
    args: &LabArgs,
    executable: PathBuf,
    stop: &Stop,
    say: &mut dyn FnMut(&str),
) -> Result<bool, String> {
    std::fs::create_dir_all(&args.out).map_err(|e| format!("{}: {e}", args.out.display()))?;
    let urls: Result<Vec<_>, _> = args.urls.iter().map(|url| weir_config::url_with_password(url)).collect();
    let ground = Ground::new(&urls?, executable, args.pool_size, args.max_clients, say)?;
    let mut failed = false;
    let mut pages = Vec::new();
    for (name, experiment) in EXPERIMENTS {
        if args.experiment != Name::All && args.experiment != name {
            continue;
        }
        if stop.is_stopped() {
            break;
        }
        say(&format!("\n{} ({}) ...", experiment.title, experiment.name));
        let began = Instant::now();
        let mut lab = Lab { ground: &ground, stop, seconds: args.time, say: &mut *say };
        match (experiment.run)(&mut lab) {
            Ok(outcome) => {
                let took = began.elapsed().as_secs();
                pages.push(write(&args.out, &experiment, outcome, &ground, took)?);
                let file = args.out.join(format!("{}.html", experiment.name));
                say(&format!("{}: {took} s; {}", experiment.name, file.display()));
            }
            Err(text) => {
                failed = true;
                say(&format!("{}: {text}", experiment.name));
            }
        }
    }
    if args.experiment == Name::All && !pages.is_empty() {
        save(&args.out.join("all.html"), &html::write(&together(pages)))?;
    }
    Ok(failed)
}

/// Prints an outcome and writes its files.
fn write(
    directory: &Path,
    experiment: &Experiment,
    outcome: Outcome,
    ground: &Ground,
    took_s: u64,
) -> Result<Page, String> {
    let mut sections = outcome.sections;
    sections.push((experiment.published)());
    sections.push(about(ground, took_s));
    let page = Page { title: experiment.title.to_owned(), lead: outcome.lead, sections };
    println!("\n{}", terminal::page(&page));
    let file = json!({
        "experiment": experiment.name,
        "weir_version": env!("CARGO_PKG_VERSION"),
        "machine": ground.machine,
        "databases": ground.bases.iter().map(|base| base.title.clone()).collect::<Vec<_>>(),
        "pool_size": ground.pool_size,
        "seconds": took_s,
        "lead": page.lead,
        "figures": outcome.figures,
    });
    save(&directory.join(format!("{}.html", experiment.name)), &html::write(&page))?;
    save(&directory.join(format!("{}.json", experiment.name)), &format!("{file:#}\n"))?;
    Ok(page)
}

fn about(ground: &Ground, took_s: u64) -> Section {
    let machine = &ground.machine;
    let mut section = Section::new("How it was done");
    let mut rows = Table::new(["", ""]).with_text(&[1]);
    rows.row([
        "machine".to_owned(),
        format!(
            "{} cores, {} of memory, {}",
            machine.cores,
            bytes(machine.memory_bytes as f64),
            machine.kernel
        ),
    ]);
    rows.row(["load before".to_owned(), format!("{:.2}", machine.load_average)]);
    for base in &ground.bases {
        rows.row(["database".to_owned(), format!("{}, {}", base.title, base.url)]);
    }
    rows.row(["pool".to_owned(), format!("{} connections to each database", ground.pool_size)]);
    rows.row(["took".to_owned(), format!("{took_s} s")]);
    section.table(rows);
    section.text(
        "Load generator, proxies and (when they were started for it) databases shared this machine: figures of one report \
         can be compared with each other, not with those of another machine.",
    );
    section
}

/// All pages in one.
fn together(pages: Vec<Page>) -> Page {
    let mut all = Page { title: "The laboratory of Weir".to_owned(), ..Page::default() };
    for page in pages {
        all.lead.extend(page.lead.iter().map(|text| format!("{}: {text}", page.title)));
        all.sections.extend(page.sections.into_iter().map(|mut section| {
            section.title = format!("{}: {}", page.title, section.title);
            section
        }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_experiment_has_its_name_and_its_published_figures() {
        for (name, experiment) in EXPERIMENTS {
            let value = name.to_possible_value().map(|v| v.get_name().to_owned());
            assert_eq!(value.as_deref(), Some(experiment.name));
            assert!(!(experiment.published)().blocks.is_empty(), "{}", experiment.name);
        }
        assert_eq!(Name::value_variants().len(), EXPERIMENTS.len() + 1);
    }
}
