//! `weir config convert`: a weir.toml from the file of another pooler.

use super::{Failure, print};
use anyhow::Context;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use weir_config::convert::{Format, convert};

/// Convert the configuration of another pooler.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Convert(ConvertArgs),
}

/// Write the weir.toml for a pgbouncer.ini or a proxysql.cnf.
///
/// The weir.toml goes to standard output. Standard error says, by file and line, what is left out, what
/// differs and what Weir does not need.
///
/// pgbouncer.ini: with the files that it includes. Weir arrives at the same settings from both files. A file
/// that Weir would not serve is not converted; the errors are those of check-config.
///
/// proxysql.cnf: hostgroups become databases, users become users, and variables that Weir has too are
/// carried. Weir has no read/write split and no query rules: a reader hostgroup becomes a database of its
/// own.
#[derive(Debug, clap::Args)]
struct ConvertArgs {
    /// The file to convert.
    file: PathBuf,
    /// Write to this file, readable for its owner only, and not to standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file of --output if it exists.
    #[arg(long, requires = "output")]
    force: bool,
    /// Format of the file. Default: by its name and content.
    #[arg(long, value_name = "FORMAT")]
    from: Option<Whose>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Whose {
    Pgbouncer,
    Proxysql,
}

/// Converts and writes.
///
/// # Errors
/// The file has errors, or the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Command::Convert(args) = &args.command;
    let format = args.from.map(|from| match from {
        Whose::Pgbouncer => Format::Pgbouncer,
        Whose::Proxysql => Format::Proxysql,
    });
    let converted = convert(&args.file, format)?;
    match &args.output {
        Some(path) => write(path, &converted.toml, args.force)?,
        None => print(converted.toml.as_bytes())?,
    }
    converted.notes.iter().for_each(|note| eprintln!("{note}"));
    eprintln!("{}: {}", args.file.display(), converted.summary());
    Ok(())
}

/// It may hold passwords, so nobody else may read it. A file that is replaced keeps its owner and its mode.
fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let mut file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(Failure::Usage(format!("{} exists; --force replaces it", path.display())));
        }
        Err(error) => {
            return Err(Failure::Runtime(
                anyhow::Error::from(error).context(format!("cannot write {}", path.display())),
            ));
        }
    };
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}
