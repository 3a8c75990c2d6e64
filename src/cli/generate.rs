//! `weir generate`: manual pages, shell completions and the reference, from the tables they describe.

use super::{Cli, Failure, print};
use anyhow::Context;
use clap::{Command, CommandFactory, ValueEnum};
use clap_mangen::Man;
use std::io::Write;

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

/// weir.1: one page with the help of each command, instead of references to pages that do not exist.
fn man(mut command: Command, out: &mut Vec<u8>) -> std::io::Result<()> {
    command.build();
    let page = Man::new(command.clone());
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    writeln!(out, ".SH EXIT CODES, EXAMPLES")?;
    verbatim(super::AFTER_HELP, out)?;
    helps(&mut command, "weir", out)?;
    writeln!(out, ".SH SEE ALSO\n.BR weir.toml (5)")
}

/// The help of every visible command below this one.
fn helps(command: &mut Command, above: &str, out: &mut Vec<u8>) -> std::io::Result<()> {
    for below in
        command.get_subcommands_mut().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        let name = format!("{above} {}", below.get_name());
        writeln!(out, ".SH {}", name.to_uppercase())?;
        verbatim(&below.render_long_help().to_string(), out)?;
        helps(below, &name, out)?;
    }
    Ok(())
}

/// Lines as they are. One that begins with a dot or an apostrophe would be a request.
fn verbatim(text: &str, out: &mut Vec<u8>) -> std::io::Result<()> {
    writeln!(out, ".nf")?;
    for line in text.lines() {
        writeln!(out, "\\&{}", line.replace('\\', "\\e").replace('-', "\\-"))?;
    }
    writeln!(out, ".fi")
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
        What::Man => man(command, &mut out).context("cannot render")?,
        What::ManConfig => out.extend(reference::man_page().bytes()),
        What::Reference => out.extend(reference::markdown().bytes()),
        What::Pgbouncer => out.extend(reference::pgbouncer_markdown().bytes()),
        What::Bash => complete(clap_complete::Shell::Bash, &mut command, &mut out),
        What::Zsh => complete(clap_complete::Shell::Zsh, &mut command, &mut out),
        What::Fish => complete(clap_complete::Shell::Fish, &mut command, &mut out),
    }
    print(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_page_has_the_options_of_each_command_and_names_no_page_that_is_not_there() {
        let mut out = Vec::new();
        man(Cli::command(), &mut out).unwrap();
        let page = String::from_utf8(out).unwrap().replace("\\-", "-");
        for wanted in [".SH WEIR SERVE\n", ".SH WEIR BENCH RUN\n", "--pool-size <N>", "--fail-if-worse"] {
            assert!(page.contains(wanted), "{wanted}");
        }
        assert!(!page.contains("weir-serve"), "such a page does not exist");
        assert!(!page.contains("GENERATE"), "a command for packagers is hidden");
    }
}
