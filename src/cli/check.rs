//! `weir check-config`: is a file right, and what does it come to?

use super::{Failure, logging, print};
use std::path::PathBuf;
use weir_config::{ListenAt, Loaded, Protocol, Sources, load};

/// Check a weir.toml or pgbouncer.ini without running anything.
///
/// Prints what is wrong with file, line and column, and exits with 2; or says what the file comes to, with
/// warnings for what Weir ignores, and exits with 0.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file.
    file: PathBuf,
    /// Print every setting with its value, and its default where that differs.
    #[arg(long)]
    all: bool,
}

/// Checks and prints.
pub fn run(args: &Args) -> Result<(), Failure> {
    let loaded = load(&Sources::file(&args.file))?;
    logging::filter(&loaded.snapshot.log, 0)?;
    let mut lines: Vec<String> =
        loaded.warnings.iter().map(|warning| format!("warning: {warning}")).collect();
    lines.extend(summary(&loaded));
    if args.all {
        for row in loaded.snapshot.values.rows() {
            let changed = row.value != row.default;
            let note = if changed { format!("   (default {})", quoted(&row.default)) } else { String::new() };
            lines.push(format!("{} = {}{note}", row.key, quoted(&row.value)));
        }
    }
    lines.push(format!("{}: good\n", args.file.display()));
    print(lines.join("\n").as_bytes())
}

fn quoted(value: &str) -> &str {
    if value.is_empty() { "\"\"" } else { value }
}

fn summary(loaded: &Loaded) -> Vec<String> {
    let snapshot = &loaded.snapshot;
    let mut lines = Vec::new();
    for protocol in Protocol::ALL {
        let realm = snapshot.realm(protocol);
        if realm.is_empty() {
            continue;
        }
        let names: Vec<_> = realm.all_databases().map(|database| database.name.as_str()).collect();
        let listening: Vec<_> = snapshot
            .listeners
            .iter()
            .filter(|listener| listener.protocol == protocol)
            .map(|listener| match &listener.at {
                ListenAt::Tcp(address) => address.to_string(),
                ListenAt::Unix { path, .. } => path.display().to_string(),
            })
            .collect();
        lines.push(format!(
            "{}: listens on {}; databases {}; {} users",
            protocol.name(),
            listening.join(", "),
            names.join(", "),
            realm.users.len()
        ));
    }
    lines
}
