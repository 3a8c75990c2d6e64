//! `weir generate`: manual pages, shell completions and the reference, from the tables they describe.

use super::{Cli, Failure, print};
use anyhow::Context;
use clap::{CommandFactory, ValueEnum};

/// Print a manual page, a completion script or the reference of all settings.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to print.
    what: What,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// weir.1
    Man,
    /// weir.toml.5
    ManConfig,
    /// The reference of weir.toml, in Markdown.
    Reference,
    /// What becomes of each setting of pgbouncer.ini, in Markdown.
    Pgbouncer,
    /// For bash.
    Bash,
    /// For zsh.
    Zsh,
    /// For fish.
    Fish,
}

/// Prints it.
pub fn run(args: &Args) -> Result<(), Failure> {
    use weir_config::reference;
    let mut out = Vec::new();
    let mut command = Cli::command();
    let complete = |shell: clap_complete::Shell, command: &mut clap::Command, out: &mut Vec<u8>| {
        clap_complete::generate(shell, command, "weir", out);
    };
    match args.what {
        What::Man => clap_mangen::Man::new(command).render(&mut out).context("cannot render")?,
        What::ManConfig => out.extend(reference::man_page().bytes()),
        What::Reference => out.extend(reference::markdown().bytes()),
        What::Pgbouncer => out.extend(reference::pgbouncer_markdown().bytes()),
        What::Bash => complete(clap_complete::Shell::Bash, &mut command, &mut out),
        What::Zsh => complete(clap_complete::Shell::Zsh, &mut command, &mut out),
        What::Fish => complete(clap_complete::Shell::Fish, &mut command, &mut out),
    }
    print(&out)
}
