//! The commands. Each has a file; this one parses the arguments and turns results into exit codes.

mod advise;
mod bench;
mod check;
mod config;
mod control;
mod demo;
mod doctor;
mod drop_in;
mod generate;
mod lab;
mod logging;
mod process;
mod reach;
mod serve;
mod top;

use clap::{Parser, Subcommand};
use std::fmt;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// The version, as `--version`, `/` and `weir_build_info` have it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why a command failed: its exit code and its message on standard error.
#[derive(Debug)]
pub enum Failure {
    /// Exit code 2: the arguments or the configuration are wrong.
    Usage(String),
    /// Exit code 1: a failure while running.
    Runtime(anyhow::Error),
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Failure::Runtime(_) => 1,
            Failure::Usage(_) => 2,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text) => f.write_str(text),
            Failure::Runtime(error) => write!(f, "{error:#}"),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::Runtime(error)
    }
}

impl From<weir_config::Problems> for Failure {
    fn from(problems: weir_config::Problems) -> Self {
        Failure::Usage(problems.to_string())
    }
}

/// Writes to standard output. A reader that has seen enough (`| head`) is no failure.
fn print(text: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Runtime(error.into())),
        _ => Ok(()),
    }
}

const AFTER_HELP: &str = "\
Exit codes: 0 success; 1 a failure while running; 2 wrong arguments or configuration;
3 the doctor found a blocker; 4 a benchmark with errors.

Examples:
  weir serve 'postgres://app:${PASSWORD}@127.0.0.1:5432/app'
      clients: psql -h 127.0.0.1 -p 6432 -U app app
  weir serve 'mysql://app:${PASSWORD}@127.0.0.1:3306/app'
      clients: mysql -h 127.0.0.1 -P 6033 -u app -p app
  weir serve --config weir.toml
  weir check-config pgbouncer.ini
  weir config convert pgbouncer.ini -o weir.toml
  weir bench run select_one --url postgres://app@127.0.0.1:6432/app --connections 1000
  weir doctor --connections 100000
  weir advise --url 'postgres://app:${PASSWORD}@127.0.0.1:5432/app'
  weir lab knee
  weir top
  weir demo";

/// A connection pooler for PostgreSQL, MySQL and MariaDB.
///
/// Any number of clients may connect to Weir. The database only sees the few connections it runs best with.
#[derive(Debug, Parser)]
#[command(name = "weir", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    CheckConfig(check::Args),
    Config(config::Args),
    Bench(weir_bench::cli::BenchArgs),
    Doctor(doctor::Args),
    Advise(advise::Args),
    Demo(weir_bench::demo::DemoArgs),
    Lab(weir_bench::lab::LabArgs),
    Top(weir_top::Args),
    #[command(hide = true)]
    Generate(generate::Args),
    /// Asks PAM for a Weir that serves: passwords come on standard input.
    #[command(hide = true)]
    PamHelper,
}

/// Runs the command of this process.
pub fn main() -> ExitCode {
    let called = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&called).file_name().and_then(|name| name.to_str()).unwrap_or("weir");
    let outcome = if name == "pgbouncer" {
        drop_in::run(drop_in::Args::parse())
    } else {
        match Cli::parse().command {
            Command::Advise(args) => advise::run(&args),
            Command::Doctor(args) => match doctor::run(&args) {
                Ok(code) => return code,
                Err(failure) => Err(failure),
            },
            Command::Serve(args) => serve::run(&args),
            Command::CheckConfig(args) => check::run(&args),
            Command::Config(args) => config::run(&args),
            Command::Bench(args) => return bench::run(&args),
            Command::Demo(args) => return demo::run(&args),
            Command::Lab(args) => return lab::run(&args),
            Command::Top(args) => top::run(&args),
            Command::Generate(args) => generate::run(&args),
            Command::PamHelper => return weir_proxy::vouch::pam::serve(),
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            for line in failure.to_string().lines() {
                eprintln!("{name}: {line}");
            }
            ExitCode::from(failure.code())
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Cli::command().debug_assert();
        super::drop_in::Args::command().debug_assert();
    }

    /// The pages of the manual, with their names.
    fn manual() -> Vec<(String, String)> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut paths = vec![root.join("README.md")];
        paths.extend(std::fs::read_dir(root.join("docs/src")).unwrap().map(|entry| entry.unwrap().path()));
        paths.sort();
        paths.retain(|path| path.extension().is_some_and(|e| e == "md"));
        let name = |path: &std::path::Path| path.strip_prefix(root).unwrap().display().to_string();
        paths.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
    }

    /// Every command line that begins with `weir`: in a block of code or between backticks.
    fn command_lines(text: &str) -> Vec<String> {
        let text = text.replace("\\\n", " ");
        let mut found = Vec::new();
        for (index, part) in text.split("```").enumerate() {
            if index % 2 == 1 {
                found.extend(part.lines().map(str::to_owned));
            } else {
                found.extend(part.split('`').skip(1).step_by(2).map(str::to_owned));
            }
        }
        let begins = |before: &str| {
            before.is_empty() || ["| ", "' ", "target/release/"].iter().any(|end| before.ends_with(end))
        };
        found
            .iter()
            .filter_map(|line| {
                line.find("weir ").filter(|&at| begins(&line[..at])).map(|at| line[at..].to_owned())
            })
            .collect()
    }

    /// The long options of a command, hidden names too.
    fn options(command: &clap::Command) -> Vec<&str> {
        command
            .get_opts()
            .flat_map(|option| {
                option.get_long().into_iter().chain(option.get_all_aliases().unwrap_or_default())
            })
            .chain(["help", "version"])
            .collect()
    }

    fn all_options(command: &clap::Command) -> Vec<&str> {
        command.get_subcommands().flat_map(all_options).chain(options(command)).collect()
    }

    /// The name of an option at the start of a word: `--pool-size=4` is `pool-size`.
    fn option_of(word: &str) -> Option<&str> {
        let name = word.strip_prefix("--")?;
        Some(
            &name[..name
                .find(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c))
                .unwrap_or(name.len())],
        )
    }

    #[test]
    fn commands_and_options_of_the_manual_exist() {
        let root = super::Cli::command();
        let mut lines = 0;
        for (page, text) in manual() {
            for line in command_lines(&text) {
                let line = line.split(['|', '#', '>']).next().unwrap();
                let mut command = &root;
                for word in line.split_whitespace().skip(1) {
                    if let Some(option) = option_of(word) {
                        assert!(options(command).contains(&option), "{page}: --{option} in `{line}`");
                    } else if let Some(next) = command.find_subcommand(word) {
                        command = next;
                    }
                }
                let is_command =
                    line.split_whitespace().nth(1).is_some_and(|word| word.starts_with(char::is_lowercase));
                assert!(!is_command || !std::ptr::eq(command, &root), "{page}: no such command: `{line}`");
                lines += 1;
            }
        }
        assert!(lines > 30, "only {lines} command lines were found");
    }

    #[test]
    fn options_that_the_pages_of_the_tools_name_exist() {
        let root = super::Cli::command();
        let known = all_options(&root);
        for (page, text) in manual() {
            if !["bench", "reports", "doctor", "advise", "first-steps"]
                .iter()
                .any(|name| page.ends_with(&format!("/{name}.md")))
            {
                continue;
            }
            for quoted in text.split('`').skip(1).step_by(2) {
                if let Some(option) = option_of(quoted) {
                    assert!(option.is_empty() || known.contains(&option), "{page}: --{option}");
                }
            }
        }
    }
}
