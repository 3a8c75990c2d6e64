//! Errors and warnings of a configuration, with their place.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a setting stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a file. Lines and columns count from 1, columns in characters.
    File {
        /// The file, as it was named.
        file: Arc<Path>,
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// In an argument of the command, such as `--pool-size` or `the URL`.
    Argument(String),
}

impl Place {
    /// The place of a byte of `text`, which is the content of `file`.
    pub(crate) fn in_text(file: &Arc<Path>, text: &str, offset: usize) -> Place {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place::File {
            file: file.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { file, line, column } => write!(f, "{}:{line}:{column}", file.display()),
            Place::Argument(name) => f.write_str(name),
        }
    }
}

/// One thing that is wrong. Its text never contains a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where; `None` when it is wrong that something is missing.
    pub place: Option<Place>,
    /// What, in a sentence without its full stop.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Everything that is wrong, in the order of the file. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Why something is only a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarningKind {
    /// PgBouncer has the setting, Weir does not; the text says what happens instead.
    NotSupported,
    /// It is legal but will hardly do what is meant.
    Doubtful,
}

/// Something the operator should know; Weir starts all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Why.
    pub kind: WarningKind,
    /// Where and what.
    pub problem: Problem,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

/// Collects problems and warnings while files are read.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<Warning>,
    /// What a file says that Weir needs not be told: for who asks what has become of each line.
    pub(crate) not_needed: Vec<Problem>,
}

impl Findings {
    pub(crate) fn problem(&mut self, place: impl Into<Option<Place>>, text: impl Into<String>) {
        self.problems.push(Problem { place: place.into(), text: text.into() });
    }

    pub(crate) fn warn(
        &mut self,
        kind: WarningKind,
        place: impl Into<Option<Place>>,
        text: impl Into<String>,
    ) {
        self.warnings.push(Warning { kind, problem: Problem { place: place.into(), text: text.into() } });
    }
}

/// Reads a whole file as text; what goes wrong is a problem at `place`.
pub(crate) fn read(path: &Path, place: Option<Place>, findings: &mut Findings) -> Option<String> {
    match std::fs::read(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(_) => {
                findings.problem(place, format!("{} is not UTF-8 text", path.display()));
                None
            }
        },
        Err(error) => {
            findings.problem(place, format!("cannot read {}: {error}", path.display()));
            None
        }
    }
}

/// `path`, from `folder` if it is relative.
pub(crate) fn relative_to(folder: Option<&Path>, path: &str) -> PathBuf {
    match folder {
        Some(folder) => folder.join(path),
        None => PathBuf::from(path),
    }
}
