//! `weir check-config`: validates a file and prints a summary.

use super::{Failure, logging, print};
use serde_json::json;
use std::path::PathBuf;
use weir_config::{ListenAt, Loaded, Place, Problem, Problems, Protocol, Sources, load};

/// Check a weir.toml or pgbouncer.ini without running anything.
///
/// Prints each error with file, line and column, and exits with 2; or prints a summary, with a warning for
/// each setting that Weir does not have, and exits with 0.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Configuration file: a weir.toml or pgbouncer.ini.
    file: PathBuf,
    /// Print every setting with its value, and its default where that differs.
    #[arg(long)]
    all: bool,
    /// Treat warnings as errors: exit with 2.
    #[arg(long)]
    strict: bool,
    /// Print the result as JSON.
    #[arg(long, conflicts_with = "all")]
    json: bool,
}

/// Checks and prints.
///
/// # Errors
/// The configuration has errors, or with `--strict` warnings, or the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let found = load(&Sources::file(&args.file));
    if args.json {
        return run_json(args, &found);
    }
    let loaded = found?;
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
    let good = !args.strict || loaded.warnings.is_empty();
    lines.push(format!("{}: {}\n", args.file.display(), if good { "good" } else { "warnings" }));
    print(lines.join("\n").as_bytes())?;
    strict(args, loaded.warnings.len())
}

/// With `--strict` a warning is a failure.
fn strict(args: &Args, warnings: usize) -> Result<(), Failure> {
    if args.strict && warnings > 0 {
        let s = if warnings == 1 { "" } else { "s" };
        return Err(Failure::Usage(format!("{}: {warnings} warning{s} (--strict)", args.file.display())));
    }
    Ok(())
}

/// `{"file", "good", "problems": [{"file", "line", "column", "text"}], "warnings": [the same]}`.
fn run_json(args: &Args, found: &Result<Loaded, Problems>) -> Result<(), Failure> {
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    match found {
        Ok(loaded) => {
            warnings.extend(loaded.warnings.iter().map(|warning| as_json(&warning.problem)));
            if let Err(level) = logging::filter(&loaded.snapshot.log, 0) {
                problems
                    .push(json!({ "file": null, "line": null, "column": null, "text": level.to_string() }));
            }
        }
        Err(found) => problems.extend(found.0.iter().map(as_json)),
    }
    let (wrong, doubtful) = (problems.len(), warnings.len());
    let good = wrong == 0 && (doubtful == 0 || !args.strict);
    let result = json!({ "file": args.file, "good": good, "problems": problems, "warnings": warnings });
    print(format!("{result:#}\n").as_bytes())?;
    if wrong > 0 {
        return Err(Failure::Usage(format!("{}: {wrong} to be put right", args.file.display())));
    }
    strict(args, doubtful)
}

fn as_json(problem: &Problem) -> serde_json::Value {
    let (file, line, column) = match &problem.place {
        Some(Place::File { file, line, column }) => {
            (json!(file.display().to_string()), json!(line), json!(column))
        }
        Some(Place::Argument(name)) => (json!(name), json!(null), json!(null)),
        None => (json!(null), json!(null), json!(null)),
    };
    json!({ "file": file, "line": line, "column": column, "text": problem.text })
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
            "{}: listens on {}; databases {}; {}",
            protocol.name(),
            listening.join(", "),
            names.join(", "),
            match realm.asked() {
                Some(whose) => format!("users of {whose}"),
                None => format!("{} users", realm.users.len()),
            }
        ));
    }
    lines
}
