//! `weir advise`: arguments and output. The logic is in the crate `weir-doctor`.

use super::bench::on_interrupt;
use super::{Failure, print};
use anyhow::Context;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_doctor::advise::sample::Snapshot;
use weir_doctor::advise::{self, Plan};
use weir_doctor::database::Place;

/// Watch a live database and recommend whether to use a pooler, in which mode and with which size.
///
/// Samples the connections and their activity once a second, and the server's counters before and after. It
/// only reads, over one connection. Use a user who may see all connections (pg_read_all_stats in PostgreSQL,
/// PROCESS in MySQL and MariaDB) for the best result. Ctrl-C stops early and advises from the samples taken.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Address of the database itself, not of a pooler: postgres://user:password@host:5432/database or
    /// mysql://... . `${NAME}` in place of the password is that environment variable.
    #[arg(long, value_name = "URL")]
    url: String,
    /// Duration: 60s, 10m, 1h.
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = time)]
    length: Duration,
    /// Time between two samples.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    interval: Duration,
    /// Number of cores of the database's machine, if Weir cannot determine it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    cores: Option<u32>,
    /// Print the advice as JSON.
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
Exit codes: 0 advised; 1 the database cannot be watched; 2 wrong arguments.

Examples:
  weir advise --url postgres://postgres@db/app --for 10m --cores 16
  weir advise --url 'mysql://root:${PASSWORD}@127.0.0.1/' --json";

/// The shortest time between two looks: each is a query on the database, and InnoDB gives the same list of
/// transactions again to whoever asks within 100 ms.
const INTERVAL_MIN: Duration = Duration::from_millis(200);
/// The most looks: each is kept until the end.
const LOOKS_MAX: u128 = 100_000;

/// Watches and prints.
///
/// # Errors
/// [`Failure::Usage`]: an option or the URL is wrong. [`Failure::Runtime`]: the database cannot be reached
/// or refuses.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.interval < INTERVAL_MIN {
        return Err(Failure::Usage("--interval: at least 200ms".to_owned()));
    }
    if args.length.as_millis() / args.interval.as_millis() > LOOKS_MAX {
        return Err(Failure::Usage(format!(
            "--for and --interval: at most {LOOKS_MAX} samples; use a longer interval"
        )));
    }
    let place = Place::parse(&args.url).map_err(Failure::Usage)?;
    let stopped = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stopped);
    on_interrupt(true, move || told.store(true, Ordering::Relaxed))?;
    let plan = Plan { length: args.length, interval: args.interval };
    let terminal = std::io::stderr().is_terminal();
    let mut looks = 0;
    let mut progress = |look: &Snapshot| {
        looks += 1;
        if terminal {
            eprint!("\rsample {looks}: {} connections, {} hold a server   ", look.seats.len(), look.held());
            // Progress only.
            let _ = std::io::stderr().flush();
        }
        !stopped.load(Ordering::Relaxed)
    };
    let advice = advise::advise(&place, plan, args.cores, &mut progress);
    if terminal && looks > 0 {
        eprint!("\r{:60}\r", "");
    }
    let advice = advice.with_context(|| place.shown.clone())?;
    let output = if args.json { advise::to_json(&advice) } else { advise::text::advice(&advice) };
    print(output.as_bytes())
}

/// `90`, `90s`, `1.5m`, `1h`, `200ms`.
fn time(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let unit_s = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("no unit `{other}`: ms, s, m or h")),
    };
    let number: f64 = number.parse().map_err(|_| "expected a time such as 60s".to_owned())?;
    Duration::try_from_secs_f64(number * unit_s)
        .ok()
        .filter(|time| !time.is_zero() && *time <= Duration::from_secs(7 * 24 * 3600))
        .ok_or_else(|| "from 1ms to 168h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(time("60s"), Ok(Duration::from_secs(60)));
        assert_eq!((time("90"), time("1.5m")), (Ok(Duration::from_secs(90)), Ok(Duration::from_secs(90))));
        assert_eq!(
            (time("200ms"), time("1h")),
            (Ok(Duration::from_millis(200)), Ok(Duration::from_secs(3600)))
        );
        for wrong in ["", "s", "-1s", "0s", "1d", "1e9h", "1.2.3s", "999h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
