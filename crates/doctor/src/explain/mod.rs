//! Common error messages and their explanations.
//!
//! Owns: recognising a message, a code or a line of a log ([`find`]). The entries are in [`entries`]. Must
//! not do: probe anything. An explanation is right on any machine.

mod application;
mod database;
pub mod entries;
mod pooler;
mod system;
mod weir;

use entries::all;
use serde::Serialize;

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Stable name.
    pub id: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// The messages that mean it, as they are written.
    pub messages: &'static [&'static str],
    /// What else is seen.
    pub symptom: &'static str,
    /// Why.
    pub cause: &'static str,
    /// What helps, the best first.
    pub cures: &'static [&'static str],
    /// Checks of `weir doctor` that measure it.
    pub checks: &'static [&'static str],
    /// How a message is recognised: any of these, each with parts (` & `) that must all be there, word by
    /// word.
    #[serde(skip)]
    pub signs: &'static [&'static str],
    /// Error numbers and SQLSTATEs. They count alone, or where a message says that it is a code.
    #[serde(skip)]
    pub codes: &'static [&'static str],
}

/// A text of so few words is a code or a name, not a sentence.
const SHORT_WORDS: usize = 3;

/// Entries that fit a text, the best first.
pub fn find(text: &str) -> Vec<&'static Entry> {
    let heard = Heard::new(text);
    let mut found: Vec<(Fit, &Entry)> = all().filter_map(|entry| Some((heard.fit(entry)?, entry))).collect();
    // Stable: of two that fit as well the one that stands first in the table.
    found.sort_by_key(|(fit, _)| std::cmp::Reverse(fit.score));
    let Some(best) = found.first().map(|(fit, _)| *fit) else { return Vec::new() };
    // What fits with much fewer words, or with a part of the best one's words, is about something else.
    let close =
        |fit: &Fit| fit.score * 2 >= best.score && (fit.sign == best.sign || !best.sign.contains(fit.sign));
    found.iter().filter(|(fit, _)| *fit == best || close(fit)).map(|(_, entry)| *entry).collect()
}

/// How well an entry fits a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fit {
    score: usize,
    /// The longest sign that was found; empty: only a code was.
    sign: &'static str,
}

/// The entry that fits a text best.
pub fn best(text: &str) -> Option<&'static Entry> {
    find(text).into_iter().next()
}

/// Entries found in the lines of a log, in the order of their first line, with how many lines each had.
pub fn find_in_log<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<(&'static Entry, usize, String)> {
    let mut found: Vec<(&'static Entry, usize, String)> = Vec::new();
    for line in lines {
        let Some(entry) = best(line) else { continue };
        match found.iter_mut().find(|(known, _, _)| known.id == entry.id) {
            Some((_, times, _)) => *times += 1,
            None => found.push((entry, 1, line.trim().to_owned())),
        }
    }
    found
}

/// A text as it is compared: words in lower case between single spaces, with a space at both ends.
struct Heard {
    padded: String,
    words: usize,
}

impl Heard {
    fn new(text: &str) -> Heard {
        let padded = normal(text);
        let words = padded.split_whitespace().count();
        Heard { padded, words }
    }

    fn has(&self, words: &str) -> bool {
        self.padded.contains(&normal(words))
    }

    /// How much of the text an entry explains; `None`: nothing.
    fn fit(&self, entry: &Entry) -> Option<Fit> {
        let signs = entry.signs.iter().filter(|sign| sign.split(" & ").all(|part| self.has(part)));
        let sign = signs.max_by_key(|sign| sign.len()).copied();
        let code = entry.codes.iter().filter(|code| self.has_code(code)).map(|code| code.len()).max();
        let score = |len: Option<usize>| len.map_or(0, |len| len + 4);
        let score = score(sign.map(str::len)) + score(code);
        (score > 0).then_some(Fit { score, sign: sign.unwrap_or_default() })
    }

    /// A code counts when the text is little more than it, or says before it that it is one.
    fn has_code(&self, code: &str) -> bool {
        if !self.has(code) {
            return false;
        }
        let said = ["error", "errno", "sqlstate", "code", "os error", "err", "errno code", "hy000"];
        // An SQLSTATE with a letter, or a MySQL code beside its SQLSTATE, is no other number.
        self.words <= SHORT_WORDS
            || code.chars().any(|c| c.is_ascii_alphabetic())
            || said.iter().any(|word| self.has(&format!("{word} {code}")))
    }
}

fn normal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(' ');
    for c in text.chars() {
        let c = c.to_ascii_lowercase();
        if c.is_alphanumeric() || c == '_' {
            out.push(c);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    if !out.ends_with(' ') {
        out.push(' ');
    }
    out
}
