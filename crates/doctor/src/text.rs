//! The report and the explanations as text for a terminal, the worst first.

use crate::cure::{Place, Sheet};
use crate::explain::Entry;
use crate::finding::{Break, Finding, State};
use crate::numbers::{count, things};
use crate::question::Program;
use crate::report::Report;
use std::fmt::Write;

/// Columns of the text.
pub const WIDTH: usize = 98;
/// Column at which the words of a finding begin.
const INDENT: usize = 10;

/// How text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// With colours.
    pub colour: bool,
    /// What was read and what breaks for good findings too.
    pub all: bool,
}

/// The whole report.
pub fn report(report: &Report, style: Style) -> String {
    let mut out = String::new();
    head(&mut out, report);
    for finding in report.findings.iter().filter(|finding| finding.state > State::Unknown || style.all) {
        whole(&mut out, finding, style);
    }
    if !style.all {
        let good = report.findings.iter().filter(|finding| finding.state <= State::Unknown);
        let mut last = &None;
        for finding in good {
            if finding.subject != *last {
                let _ = writeln!(out, "{}", finding.subject.as_deref().unwrap_or("this machine"));
                last = &finding.subject;
            }
            short(&mut out, finding, style);
        }
    }
    let sheets = report.sheets();
    if !sheets.is_empty() {
        cures(&mut out, &sheets);
    }
    out
}

fn head(out: &mut String, report: &Report) {
    let ask = &report.ask;
    let asked = match ask.program {
        Program::Bench => things(ask.clients, "connection", "connections"),
        Program::Serve | Program::Other => {
            format!(
                "{} and {}",
                things(ask.clients, "client", "clients"),
                things(ask.servers, "server", "servers")
            )
        }
    };
    let whose = match ask.pid {
        Some(pid) => format!("process {pid}"),
        None => ask.program.title().to_owned(),
    };
    let title = wrap(&format!("{asked}, {whose}"), WIDTH, 0);
    let _ = writeln!(out, "{title}");
    let n = |state| report.count(state) as u64;
    let _ = writeln!(
        out,
        "{}, {}, {} unknown, {} ok\n",
        things(n(State::Blocker), "blocker", "blockers"),
        things(n(State::Warn), "warning", "warnings"),
        n(State::Unknown),
        n(State::Ok)
    );
}

fn mark(state: State, style: Style) -> String {
    let (word, colour) = match state {
        State::Blocker => ("BLOCKER", "1;31"),
        State::Warn => ("WARN", "33"),
        State::Unknown => ("unknown", "36"),
        State::Ok => ("ok", "32"),
    };
    let padded = format!("{word:<INDENT$}");
    if style.colour { format!("\x1b[{colour}m{padded}\x1b[0m") } else { padded }
}

fn title(finding: &Finding) -> String {
    match &finding.subject {
        Some(database) => format!("{} ({database})", finding.id),
        None => finding.id.to_owned(),
    }
}

/// A finding in one or two lines.
fn short(out: &mut String, finding: &Finding, style: Style) {
    let text = format!("{}: {}", finding.id, finding.summary);
    let _ = writeln!(out, "{}{}", mark(finding.state, style), wrap(&text, WIDTH - INDENT, INDENT));
}

fn whole(out: &mut String, finding: &Finding, style: Style) {
    let _ = writeln!(out, "{}{}", mark(finding.state, style), title(finding));
    field(out, "", &finding.summary);
    for reading in &finding.read {
        field(out, "read", &format!("{} = {}", reading.source, reading.value));
    }
    for what in in_order(&finding.breaks) {
        field(out, "breaks", &broken(what));
    }
    for cure in &finding.cures {
        field(out, "cure", &cure.short());
    }
    out.push('\n');
}

/// What breaks first comes first.
fn in_order(breaks: &[Break]) -> Vec<&Break> {
    let mut sorted: Vec<_> = breaks.iter().collect();
    sorted.sort_by_key(|what| what.connections.unwrap_or(u64::MAX));
    sorted
}

fn broken(what: &Break) -> String {
    match what.connections {
        Some(n) => format!("at {}: {}: {}", count(n), what.seen_by, what.message),
        None => format!("{}: {}", what.seen_by, what.message),
    }
}

fn field(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "  {name:<8}{}", wrap(text, WIDTH - INDENT, INDENT));
}

fn cures(out: &mut String, sheets: &[Sheet]) {
    out.push_str("\nCURES, ready to copy. Nothing was changed. One place alone: --cure sysctl.d\n");
    for sheet in sheets {
        let _ = writeln!(out, "\n# {}: {}", sheet.place.name(), sheet.file);
        if sheet.place == Place::Advice {
            for line in sheet.text.lines() {
                let _ = writeln!(out, "- {}", wrap(line, WIDTH - 2, 2));
            }
        } else {
            let _ = writeln!(out, "{}", sheet.text);
        }
    }
}

/// An explanation; `seen` is the line of a log it was found in.
pub fn explanation(entry: &Entry, seen: Option<&str>) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", entry.title);
    if let Some(line) = seen {
        field(&mut out, "line", line);
    }
    field(&mut out, "symptom", entry.symptom);
    field(&mut out, "cause", entry.cause);
    for cure in entry.cures {
        field(&mut out, "cure", cure);
    }
    let messages: Vec<_> = entry.messages.iter().take(MESSAGES_SHOWN).collect();
    for message in messages {
        field(&mut out, "seen as", message);
    }
    if !entry.checks.is_empty() {
        field(&mut out, "checks", &format!("weir doctor: {}", entry.checks.join(", ")));
    }
    out
}

/// Messages that are shown of an entry.
const MESSAGES_SHOWN: usize = 4;

/// Breaks a text into lines of at most `width` columns; lines after the first begin with `indent` spaces.
pub fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        if column > 0 && column + 1 + len > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += len;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_short_and_whole() {
        let text = "one two three four";
        assert_eq!(wrap(text, 9, 2), "one two\n  three\n  four");
        assert_eq!(wrap(text, 99, 2), text);
        assert_eq!(wrap("unbreakable", 3, 2), "unbreakable");
        assert_eq!(wrap("", 3, 2), "");
    }
}
