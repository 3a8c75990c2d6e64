//! `weir generate`: manual pages, shell completions and the reference, from the tables they describe.

use super::{Cli, Failure, print};
use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory, ValueEnum};
use clap_mangen::Man;
use std::io::Write;
use std::path::{Path, PathBuf};
use weir_bench::workloads::NAMES;

/// Print a manual page, a completion script or the reference of all settings.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to print.
    what: What,
    /// Directory for the files of man-pages, such as /usr/local/share/man: they go into man1 and man5.
    #[arg(required_if_eq("what", "man-pages"))]
    directory: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// weir.1 alone, with the help of every command.
    Man,
    /// All pages as files: weir.1, a page for each command, weir.toml.5.
    ManPages,
    /// weir.toml.5
    ManConfig,
    /// The reference of weir.toml, in Markdown.
    Reference,
    /// How Weir treats each setting of pgbouncer.ini, in Markdown.
    Pgbouncer,
    /// For bash.
    Bash,
    /// For zsh.
    Zsh,
    /// For fish.
    Fish,
}

/// The page of each visible command and weir.toml.5, by their path in a directory of manual pages.
fn pages() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    // No pages for `help` of each command.
    let mut command = with_workloads(Cli::command().disable_help_subcommand(true));
    command.build();
    let mut pages = Vec::new();
    page(&command, None, &mut pages)?;
    pages.push(("man5/weir.toml.5".to_owned(), weir_config::reference::man_page().into_bytes()));
    Ok(pages)
}

/// The page of a command, whose own commands are named in it, and theirs.
fn page(command: &Command, above: Option<&str>, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    let man = Man::new(command.clone()).manual("Weir");
    let file = man.get_filename();
    let mut text = Vec::new();
    man.render(&mut text)?;
    let name = file.trim_end_matches(".1");
    writeln!(text, ".SH SEE ALSO")?;
    if let Some(above) = above {
        writeln!(text, ".BR {} (1),", above.replace('-', "\\-"))?;
    }
    writeln!(text, ".BR weir.toml (5)")?;
    pages.push((format!("man1/{file}"), text));
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below.into_iter().try_for_each(|below| page(below, Some(name), pages))
}

fn write_pages(directory: &Path) -> Result<(), Failure> {
    for (path, text) in pages().context("cannot render")? {
        let path = directory.join(path);
        let write = || {
            std::fs::create_dir_all(path.parent().unwrap_or(directory))?;
            std::fs::write(&path, &text)
        };
        write().with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// weir.1 alone: one page with the help of each command, instead of references to other pages.
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

/// The commands of `weir bench` whose first argument is a workload.
const WITH_WORKLOAD: [&str; 4] = ["prepare", "run", "cleanup", "ramp"];

/// The workloads' names as values, for completions. The commands themselves know more names than these.
fn with_workloads(command: clap::Command) -> clap::Command {
    let names = || PossibleValuesParser::new(NAMES.iter().map(|(name, _)| *name));
    command.mut_subcommand("bench", |bench| {
        WITH_WORKLOAD.iter().fold(bench, |bench, name| {
            bench.mut_subcommand(name, |command| {
                command
                    .mut_arg("workload", |arg| arg.value_parser(names()).index(1))
                    .mut_arg("script", |arg| arg.index(2))
            })
        })
    })
}

/// clap's completions for fish have no values of positional arguments.
fn fish_workloads() -> String {
    let commands = WITH_WORKLOAD.join(" ");
    let line = |(name, about): &(&str, &str)| {
        let about = about.replace('\\', "").replace('\'', "\\'");
        format!(
            "complete -c weir -n \"__fish_weir_using_subcommand bench; and __fish_seen_subcommand_from {commands}\" -f -a \"{name}\" \
             -d '{about}'\n"
        )
    };
    NAMES.iter().map(line).collect()
}

/// Prints it.
///
/// # Errors
/// The text cannot be made or written.
pub fn run(args: &Args) -> Result<(), Failure> {
    use weir_config::reference;
    let mut out = Vec::new();
    // No words for `help` of each command.
    let mut command = with_workloads(Cli::command().disable_help_subcommand(true));
    let complete = |shell: clap_complete::Shell, command: &mut clap::Command, out: &mut Vec<u8>| {
        clap_complete::generate(shell, command, "weir", out);
    };
    match args.what {
        What::Man => man(Cli::command(), &mut out).context("cannot render")?,
        What::ManPages => write_pages(args.directory.as_deref().unwrap_or(Path::new(".")))?,
        What::ManConfig => out.extend(reference::man_page().bytes()),
        What::Reference => out.extend(reference::markdown().bytes()),
        What::Pgbouncer => out.extend(reference::pgbouncer_markdown().bytes()),
        What::Bash => complete(clap_complete::Shell::Bash, &mut command, &mut out),
        What::Zsh => complete(clap_complete::Shell::Zsh, &mut command, &mut out),
        What::Fish => {
            complete(clap_complete::Shell::Fish, &mut command, &mut out);
            out.extend(fish_workloads().bytes());
        }
    }
    print(&out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The pages of Weir that a page names: `weir\-serve(1)`, `.BR weir.toml (5)`.
    fn named(page: &str) -> BTreeSet<String> {
        let page = page.replace("\\-", "-").replace("\\&", "");
        let mut found = BTreeSet::new();
        for section in ["1", "5"] {
            let end = format!("({section})");
            for (at, _) in page.match_indices(&end) {
                let before = page[..at].trim_end_matches(' ');
                let part = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
                let name = &before[before.rfind(|c| !part(c)).map_or(0, |at| at + 1)..];
                if name.starts_with("weir") {
                    found.insert(format!("man{section}/{name}.{section}"));
                }
            }
        }
        found
    }

    fn names_of(command: &Command, name: &str, out: &mut BTreeSet<String>) {
        out.insert(format!("man1/{name}.1"));
        let below = command.get_subcommands().filter(|below| !below.is_hide_set());
        below.for_each(|below| names_of(below, &format!("{name}-{}", below.get_name()), out));
    }

    #[test]
    fn every_command_has_a_page_and_every_page_that_is_named_is_there() {
        let pages = pages().unwrap();
        let there: BTreeSet<String> = pages.iter().map(|(path, _)| path.clone()).collect();
        let mut wanted = BTreeSet::from(["man5/weir.toml.5".to_owned()]);
        names_of(&Cli::command(), "weir", &mut wanted);
        assert_eq!(there, wanted);
        assert!(wanted.contains("man1/weir-config-convert.1") && wanted.len() > 12, "{wanted:?}");
        let mut seen = BTreeSet::new();
        for (path, text) in &pages {
            let named = named(std::str::from_utf8(text).unwrap());
            assert!(!named.is_empty(), "{path} names no page");
            assert!(named.is_subset(&there), "{path} names {named:?}");
            seen.extend(named);
        }
        assert_eq!(seen, there, "a page that no other one names");
    }

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
