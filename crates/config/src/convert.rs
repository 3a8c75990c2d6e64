//! From the files of PgBouncer and ProxySQL to a weir.toml.
//!
//! Owns: which file is whose, and what is said of each line ([`Note`]). Must not know: how settings are
//! checked; the readers of those files and of weir.toml do that.
//!
//! Invariants: a weir.toml that is returned passes `check-config`; that of a pgbouncer.ini comes to the same
//! [`Snapshot`](crate::Snapshot) as the pgbouncer.ini itself; no note contains a password.

mod document;
mod libconfig;
mod pgbouncer;
mod proxysql;

use crate::problem::{Findings, Place, Problem, Problems, read};
use crate::{Loaded, Protocol, Sources, load_text};
use std::fmt;
use std::path::Path;

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// pgbouncer.ini.
    Pgbouncer,
    /// proxysql.cnf.
    Proxysql,
}

/// What a line comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteKind {
    /// It is not in the weir.toml, and something is different without it.
    LeftOut,
    /// It is carried, and means something else.
    Differs,
    /// It is not in the weir.toml, and nothing is different.
    NotNeeded,
    /// It is carried; the operator should know something about it.
    Carried,
}

impl NoteKind {
    /// The word before the sentence.
    pub fn name(self) -> &'static str {
        match self {
            NoteKind::LeftOut => "left out",
            NoteKind::Differs => "differs",
            NoteKind::NotNeeded => "not needed",
            NoteKind::Carried => "note",
        }
    }
}

/// What has become of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What the line comes to.
    pub kind: NoteKind,
    /// Where and why.
    pub problem: Problem,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem.place {
            Some(place) => write!(f, "{place}: {}: {}", self.kind.name(), self.problem.text),
            None => write!(f, "{}: {}", self.kind.name(), self.problem.text),
        }
    }
}

/// A weir.toml, and what was not carried into it.
#[derive(Debug, Clone)]
pub struct Converted {
    /// The text of the file.
    pub toml: String,
    /// In the order of the files.
    pub notes: Vec<Note>,
    /// What it comes to.
    pub loaded: Loaded,
}

impl Converted {
    /// What there is, and how many notes of each kind, in one line.
    pub fn summary(&self) -> String {
        let snapshot = &self.loaded.snapshot;
        let databases: usize =
            Protocol::ALL.map(|one| snapshot.realm(one).all_databases().count()).iter().sum();
        let users = snapshot.postgres.users.len();
        let count = |kind| self.notes.iter().filter(|note| note.kind == kind).count();
        format!(
            "{databases} database{}, {users} user{}; {} left out, {} with another meaning, {} not needed",
            if databases == 1 { "" } else { "s" },
            if users == 1 { "" } else { "s" },
            count(NoteKind::LeftOut),
            count(NoteKind::Differs),
            count(NoteKind::NotNeeded)
        )
    }
}

/// Collects notes while a file is converted.
#[derive(Debug, Default)]
struct Notes(Vec<Note>);

impl Notes {
    fn add(&mut self, kind: NoteKind, place: impl Into<Option<Place>>, text: impl Into<String>) {
        self.0.push(Note { kind, problem: Problem { place: place.into(), text: text.into() } });
    }

    fn left_out(&mut self, place: impl Into<Option<Place>>, text: impl Into<String>) {
        self.add(NoteKind::LeftOut, place, text);
    }

    /// In the order of the files, `main` first; what has no place stands at the end.
    fn in_order(mut self, main: &Path) -> Vec<Note> {
        self.0.sort_by_key(|note| match &note.problem.place {
            Some(Place::File { file, line, column }) => {
                (0, &**file != main, file.to_path_buf(), *line, *column)
            }
            _ => (1, false, Path::new("").to_owned(), 0, 0),
        });
        self.0
    }
}

/// Converts a file. `format`: whose it is; `None`: by its name and its first words.
///
/// # Errors
/// What is wrong with the file, with file, line and column. For a pgbouncer.ini these are the problems that
/// `check-config` finds, since Weir would not serve the file either.
pub fn convert(file: &Path, format: Option<Format>) -> Result<Converted, Problems> {
    let mut findings = Findings::default();
    match read(file, None, &mut findings) {
        Some(text) => convert_text(file, &text, format),
        None => Err(Problems(findings.problems)),
    }
}

/// Like [`convert`], with the content of `file` given.
///
/// # Errors
/// As [`convert`].
pub fn convert_text(file: &Path, text: &str, format: Option<Format>) -> Result<Converted, Problems> {
    let Some(format) = format.or_else(|| format_of(file, text)) else {
        let text = format!(
            "{} looks neither like a pgbouncer.ini nor like a proxysql.cnf; name its format: --from pgbouncer or --from proxysql",
            file.display()
        );
        return Err(Problems(vec![Problem { place: None, text }]));
    };
    let (document, notes) = match format {
        Format::Pgbouncer => pgbouncer::convert(file, text)?,
        Format::Proxysql => proxysql::convert(file, text)?,
    };
    let toml = document.text();
    let loaded = load_text(Path::new("weir.toml"), &toml, &Sources::default())?;
    Ok(Converted { toml, notes: notes.in_order(file), loaded })
}

/// Whose file it is, by its name or its words.
fn format_of(file: &Path, text: &str) -> Option<Format> {
    let begins = |words: &[&str]| {
        text.lines().any(|line| words.iter().any(|word| line.trim_start().starts_with(word)))
    };
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => None,
        Some("ini") => Some(Format::Pgbouncer),
        Some("cnf") => Some(Format::Proxysql),
        _ if begins(&["[pgbouncer]", "[databases]"]) => Some(Format::Pgbouncer),
        _ if begins(&["mysql_", "pgsql_", "admin_variables"]) => Some(Format::Proxysql),
        _ => None,
    }
}
