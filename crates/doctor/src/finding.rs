//! The result of a check.
//!
//! The names here are those of the JSON output: changing one breaks its readers.

use crate::cure::Cure;
use crate::root::Unread;
use serde::Serialize;

/// How bad it is. Ordered from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Enough for what was asked.
    Ok,
    /// It could not be read.
    Unknown,
    /// It works, until something adds to it; or slower than it could.
    Warn,
    /// What was asked cannot work.
    Blocker,
}

impl State {
    /// The word in text and JSON.
    pub fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Unknown => "unknown",
            State::Warn => "warn",
            State::Blocker => "blocker",
        }
    }
}

/// A fact and where it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// The file, or the statement for a database.
    pub source: String,
    /// What it said.
    pub value: String,
}

/// What breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Break {
    /// At how many connections; `None`: not a matter of their number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// Whose log or screen shows it.
    pub seen_by: String,
    /// The words to look for, or what happens when there are none.
    pub message: String,
}

/// The answer of one check.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Stable name of the check.
    pub id: &'static str,
    /// The database it is about, without its password; `None`: this machine.
    pub subject: Option<String>,
    /// How bad it is.
    pub state: State,
    /// One sentence.
    pub summary: String,
    /// What was read.
    pub read: Vec<Reading>,
    /// What breaks, where, with which words.
    pub breaks: Vec<Break>,
    /// What would help, to be applied by a person.
    pub cures: Vec<Cure>,
}

impl Finding {
    fn new(id: &'static str, state: State, summary: String) -> Finding {
        Finding { id, subject: None, state, summary, read: Vec::new(), breaks: Vec::new(), cures: Vec::new() }
    }

    /// Nothing to do.
    pub fn ok(id: &'static str, summary: impl Into<String>) -> Finding {
        Finding::new(id, State::Ok, summary.into())
    }

    /// Works, with a reason to look.
    pub fn warn(id: &'static str, summary: impl Into<String>) -> Finding {
        Finding::new(id, State::Warn, summary.into())
    }

    /// Cannot work.
    pub fn blocker(id: &'static str, summary: impl Into<String>) -> Finding {
        Finding::new(id, State::Blocker, summary.into())
    }

    /// Blocker, warning or good, with one summary.
    pub fn judged(id: &'static str, state: State, summary: impl Into<String>) -> Finding {
        Finding::new(id, state, summary.into())
    }

    /// A file that could not be read.
    pub fn unread(id: &'static str, source: &str, error: &Unread) -> Finding {
        Finding::new(id, State::Unknown, format!("{source}: {}", error.0)).read(source, &error.0)
    }

    /// A file that containers do not show, because it is one for the whole machine.
    pub fn unread_of_machine(id: &'static str, source: &str, error: &Unread) -> Finding {
        let mut finding = Finding::unread(id, source, error);
        finding.summary.push_str("; a container does not show it: ask on the host");
        finding
    }

    /// Adds what was read.
    pub fn read(mut self, source: impl Into<String>, value: impl ToString) -> Finding {
        self.read.push(Reading { source: source.into(), value: value.to_string() });
        self
    }

    /// Adds what breaks at a number of connections.
    pub fn breaks_at(mut self, connections: u64, seen_by: &str, message: impl Into<String>) -> Finding {
        let (seen_by, message) = (seen_by.to_owned(), message.into());
        self.breaks.push(Break { connections: Some(connections), seen_by, message });
        self
    }

    /// Adds what breaks at no particular number.
    pub fn breaks(mut self, seen_by: &str, message: impl Into<String>) -> Finding {
        self.breaks.push(Break { connections: None, seen_by: seen_by.to_owned(), message: message.into() });
        self
    }

    /// Adds a cure.
    pub fn cure(mut self, cure: Cure) -> Finding {
        self.cures.push(cure);
        self
    }

    /// Adds cures where there is something to cure.
    pub fn cures_unless_ok(mut self, cures: impl IntoIterator<Item = Cure>) -> Finding {
        if self.state > State::Unknown {
            self.cures.extend(cures);
        }
        self
    }

    /// Says which database it is about.
    pub fn of(mut self, subject: &str) -> Finding {
        self.subject = Some(subject.to_owned());
        self
    }

    /// For a log: id, summary, and the first thing that breaks.
    pub fn line(&self) -> String {
        let breaks = self.breaks.first().map(|first| format!("; {}: {}", first.seen_by, first.message));
        format!("{}: {}{}", self.id, self.summary, breaks.unwrap_or_default())
    }
}
