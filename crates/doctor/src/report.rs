//! All findings of one question, and the same as JSON.
//!
//! The names in the JSON are stable: `version` is raised when one changes its meaning or is removed.

use crate::checks;
use crate::cure::{Cure, Sheet, sheets};
use crate::database::{self, Place};
use crate::finding::{Finding, State};
use crate::probe::Probe;
use crate::question::Question;
use crate::root::Root;
use serde_json::{Value, json};

/// Version of the JSON.
const JSON_VERSION: u32 = 1;

/// What the doctor found.
#[derive(Debug, Clone)]
pub struct Report {
    /// What was asked.
    pub ask: Question,
    /// Databases that were asked, without passwords.
    pub databases: Vec<String>,
    /// Findings, the worst first; the order of the checks within a state.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Runs every check below a root and asks every database.
    pub fn make(root: &Root, mut ask: Question, places: &[Place]) -> Report {
        if ask.targets.is_empty() {
            ask.targets = places.iter().map(|place| place.target.clone()).collect();
        }
        let mut findings = checks::run(&Probe::new(root, &ask));
        for place in places {
            findings.extend(database::check(place, &ask));
        }
        Report::of(ask, places.iter().map(|place| place.shown.clone()).collect(), findings)
    }

    /// A report of these findings.
    pub fn of(ask: Question, databases: Vec<String>, mut findings: Vec<Finding>) -> Report {
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.state));
        Report { ask, databases, findings }
    }

    /// The worst state of all.
    pub fn worst(&self) -> State {
        self.findings.iter().map(|finding| finding.state).max().unwrap_or(State::Ok)
    }

    /// How many findings have a state.
    pub fn count(&self, state: State) -> usize {
        self.findings.iter().filter(|finding| finding.state == state).count()
    }

    /// All cures as texts to copy, one a place.
    pub fn sheets(&self) -> Vec<Sheet> {
        let cures: Vec<&Cure> = self.findings.iter().flat_map(|finding| &finding.cures).collect();
        sheets(cures, &self.ask.unit)
    }

    /// The report as JSON, in lines.
    pub fn to_json(&self) -> String {
        let states = [State::Blocker, State::Warn, State::Unknown, State::Ok];
        let summary: serde_json::Map<String, Value> =
            states.iter().map(|state| (state.name().to_owned(), json!(self.count(*state)))).collect();
        let value = json!({
            "version": JSON_VERSION,
            "asked": {
                "clients": self.ask.clients,
                "servers": self.ask.servers,
                "program": self.ask.program.name(),
                "workers": self.ask.workers,
                "unit": self.ask.unit,
                "pid": self.ask.pid,
                "databases": self.databases,
            },
            "state": self.worst().name(),
            "summary": summary,
            "findings": self.findings.iter().map(finding_json).collect::<Vec<_>>(),
            "sheets": self.sheets(),
        });
        let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
        text.push('\n');
        text
    }
}

fn finding_json(finding: &Finding) -> Value {
    let cures: Vec<Value> = finding
        .cures
        .iter()
        .flat_map(Cure::texts)
        .map(|(place, text)| json!({ "place": place, "text": text }))
        .collect();
    json!({
        "id": finding.id,
        "database": finding.subject,
        "state": finding.state,
        "summary": finding.summary,
        "read": finding.read,
        "breaks": finding.breaks,
        "cures": cures,
    })
}
