//! The format of proxysql.cnf: libconfig's groups, lists, arrays and scalars. The meaning of the settings is
//! in `proxysql.rs`.
//!
//! Invariants: whatever the text is, a result or a [`Problem`] with file, line and column, and never a panic;
//! depth, bytes and included files are bounded.

use crate::problem::{Findings, Place, Problem, read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Groups, lists and arrays inside each other, at most: ProxySQL's own files have three.
const DEPTH: usize = 16;
/// Bytes of a file and all that it includes, at most.
const BYTES: usize = 16 << 20;
/// Files that include files, at most; libconfig's own bound (`MAX_INCLUDE_DEPTH`) is 10.
const INCLUDE_DEPTH: usize = 10;
/// Files that are included, at most.
const INCLUDES: usize = 100;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Bool(bool),
    /// Also a hexadecimal one, and one of 64 bits (`L`).
    Int(i64),
    /// As it was written.
    Float(String),
    Text(String),
    /// `( ... )` or `[ ... ]`.
    List(Vec<Item>),
    /// `{ ... }`.
    Group(Vec<Setting>),
}

/// A value, and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub(super) node: Node,
    pub(super) place: Place,
}

/// `name = value`, and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) item: Item,
    pub(super) place: Place,
}

impl Item {
    /// A scalar as text: a switch is `true` or `false`.
    pub(super) fn scalar(&self) -> Option<String> {
        match &self.node {
            Node::Bool(value) => Some(value.to_string()),
            Node::Int(value) => Some(value.to_string()),
            Node::Float(value) | Node::Text(value) => Some(value.clone()),
            Node::List(_) | Node::Group(_) => None,
        }
    }
}

/// Reads a file's text, and the files that it includes.
pub(super) fn settings(file: &Path, text: &str) -> Result<Vec<Setting>, Problem> {
    let mut budget = Budget { bytes: BYTES, includes: INCLUDES };
    Parser::new(file, text, 0, &mut budget)?.settings(None, 0)
}

struct Budget {
    bytes: usize,
    includes: usize,
}

struct Parser<'a> {
    file: Arc<Path>,
    rest: &'a str,
    line: usize,
    /// In characters, from 1.
    column: usize,
    /// Files around this one.
    included: usize,
    budget: &'a mut Budget,
}

impl<'a> Parser<'a> {
    fn new(
        file: &Path,
        text: &'a str,
        included: usize,
        budget: &'a mut Budget,
    ) -> Result<Parser<'a>, Problem> {
        let parser = Parser {
            file: file.into(),
            rest: text.strip_prefix('\u{feff}').unwrap_or(text),
            line: 1,
            column: 1,
            included,
            budget,
        };
        match parser.budget.bytes.checked_sub(text.len()) {
            Some(left) => parser.budget.bytes = left,
            None => return Err(parser.expected("at most 16 MB")),
        }
        Ok(parser)
    }

    fn place(&self) -> Place {
        Place::File { file: self.file.clone(), line: self.line, column: self.column }
    }

    /// The error that something else is here.
    fn expected(&self, what: &str) -> Problem {
        let found = match self.rest.chars().next() {
            None => "the end of the file".to_owned(),
            // It could be the beginning of a password.
            Some('"') => "text in quotes".to_owned(),
            Some(c) => format!("`{}`", c.escape_debug()),
        };
        Problem { place: Some(self.place()), text: format!("expected {what}, found {found}") }
    }

    fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        for c in passed.chars() {
            (self.line, self.column) =
                if c == '\n' { (self.line + 1, 1) } else { (self.line, self.column + 1) };
        }
        self.rest = rest;
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.rest.starts_with(c);
        if found {
            self.advance(c.len_utf8());
        }
        found
    }

    /// Spaces and comments: `#`, `//` and `/* */`.
    fn skip(&mut self) -> Result<(), Problem> {
        loop {
            let spaces = self.rest.len() - self.rest.trim_start().len();
            self.advance(spaces);
            if self.rest.starts_with('#') || self.rest.starts_with("//") {
                self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                let Some(end) = self.rest[2..].find("*/") else {
                    return Err(self.expected("the end of this comment, */"));
                };
                self.advance(end + 4);
            } else {
                return Ok(());
            }
        }
    }

    /// Settings up to `end`, or to the end of the file.
    fn settings(&mut self, end: Option<char>, depth: usize) -> Result<Vec<Setting>, Problem> {
        let mut found = Vec::new();
        loop {
            self.skip()?;
            if self.rest.is_empty() && end.is_none() || end.is_some_and(|end| self.rest.starts_with(end)) {
                return Ok(found);
            }
            if self.rest.starts_with("@include") {
                found.extend(self.include()?);
                continue;
            }
            let place = self.place();
            let name = self.name(end)?;
            self.skip()?;
            if !self.take('=') && !self.take(':') {
                return Err(self.expected(&format!("= after {name}")));
            }
            let item = self.item(depth)?;
            self.skip()?;
            let _ends = self.take(';') || self.take(',');
            found.push(Setting { name, item, place });
        }
    }

    fn name(&mut self, end: Option<char>) -> Result<String, Problem> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_*.".contains(c);
        let length = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
        if length == 0 || self.rest.starts_with(|c: char| !c.is_ascii_alphabetic() && c != '*') {
            let more = end.map_or_else(String::new, |end| format!(" or {end}"));
            return Err(self.expected(&format!("the name of a setting{more}")));
        }
        let name = self.rest[..length].to_owned();
        self.advance(length);
        Ok(name)
    }

    /// `@include "file"`, from the directory of this file.
    fn include(&mut self) -> Result<Vec<Setting>, Problem> {
        let place = self.place();
        self.advance("@include".len());
        self.skip()?;
        if !self.rest.starts_with('"') {
            return Err(self.expected("the name of a file in quotes"));
        }
        let named = self.text()?;
        let problem = |text: String| Err(Problem { place: Some(place.clone()), text });
        if self.included >= INCLUDE_DEPTH {
            return problem(format!("files may include files {INCLUDE_DEPTH} deep, not deeper"));
        }
        let Some(left) = self.budget.includes.checked_sub(1) else {
            return problem(format!("at most {INCLUDES} files may be included"));
        };
        self.budget.includes = left;
        let path = self.file.parent().map_or_else(|| PathBuf::from(&named), |folder| folder.join(&named));
        let mut findings = Findings::default();
        match read(&path, Some(place.clone()), &mut findings) {
            Some(text) => Parser::new(&path, &text, self.included + 1, self.budget)?.settings(None, 0),
            None => match findings.problems.pop() {
                Some(found) => Err(found),
                None => problem(format!("cannot read {}", path.display())),
            },
        }
    }

    fn item(&mut self, depth: usize) -> Result<Item, Problem> {
        self.skip()?;
        let place = self.place();
        if self.rest.starts_with(['{', '(', '[']) && depth >= DEPTH {
            let text = format!("groups and lists may stand {DEPTH} deep in each other, not deeper");
            return Err(Problem { place: Some(place), text });
        }
        let node = if self.take('{') {
            let inside = self.settings(Some('}'), depth + 1)?;
            self.take('}');
            Node::Group(inside)
        } else if self.take('(') {
            self.list(')', depth + 1)?
        } else if self.take('[') {
            self.list(']', depth + 1)?
        } else if self.rest.starts_with('"') {
            let mut text = self.text()?;
            // Pieces of text behind each other are one.
            loop {
                self.skip()?;
                if !self.rest.starts_with('"') {
                    break;
                }
                text.push_str(&self.text()?);
            }
            Node::Text(text)
        } else {
            self.word()?
        };
        Ok(Item { node, place })
    }

    fn list(&mut self, end: char, depth: usize) -> Result<Node, Problem> {
        let mut items = Vec::new();
        loop {
            self.skip()?;
            if self.take(end) {
                return Ok(Node::List(items));
            }
            items.push(self.item(depth)?);
            self.skip()?;
            if !self.take(',') && !self.rest.starts_with(end) {
                return Err(self.expected(&format!(", or {end}")));
            }
        }
    }

    /// Text in quotes, which begins here.
    fn text(&mut self) -> Result<String, Problem> {
        let begin = self.place();
        let unclosed = || Problem {
            place: Some(begin.clone()),
            text: "expected a closing quote, found the end of the file".to_owned(),
        };
        self.advance(1);
        let mut text = String::new();
        loop {
            let Some(c) = self.rest.chars().next() else { return Err(unclosed()) };
            self.advance(c.len_utf8());
            match c {
                '"' => return Ok(text),
                '\\' => {
                    let Some(escaped) = self.rest.chars().next() else { return Err(unclosed()) };
                    self.advance(escaped.len_utf8());
                    match escaped {
                        'n' => text.push('\n'),
                        't' => text.push('\t'),
                        'r' => text.push('\r'),
                        'f' => text.push('\u{c}'),
                        'x' => text.push(self.hexadecimal()?),
                        other => text.push(other),
                    }
                }
                c => text.push(c),
            }
        }
    }

    /// The two digits of `\xNN`.
    fn hexadecimal(&mut self) -> Result<char, Problem> {
        let digits = self.rest.get(..2).filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(value) = digits.and_then(|two| u8::from_str_radix(two, 16).ok()) else {
            return Err(self.expected("two hexadecimal digits after \\x"));
        };
        self.advance(2);
        Ok(char::from(value))
    }

    /// A switch or a number.
    fn word(&mut self) -> Result<Node, Problem> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let word = &self.rest[..self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len())];
        let digits = word.trim_end_matches('L');
        let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
        let node = if word.eq_ignore_ascii_case("true") {
            Node::Bool(true)
        } else if word.eq_ignore_ascii_case("false") {
            Node::Bool(false)
        } else if let Some(number) = hexadecimal.and_then(|h| u64::from_str_radix(h, 16).ok()) {
            Node::Int(number.cast_signed())
        } else if let Ok(number) = digits.parse() {
            Node::Int(number)
        } else if word.contains(|c: char| c.is_ascii_digit()) && word.parse::<f64>().is_ok() {
            Node::Float(word.to_owned())
        } else {
            return Err(self.expected("a value: a number, true or false, text in quotes, {, ( or ["));
        };
        self.advance(word.len());
        Ok(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(item: &Item) -> String {
        match &item.node {
            Node::List(items) => format!("({})", items.iter().map(shown).collect::<Vec<_>>().join(" ")),
            Node::Group(settings) => format!("{{{}}}", all(settings)),
            _ => item.scalar().unwrap(),
        }
    }

    fn all(settings: &[Setting]) -> String {
        settings.iter().map(|s| format!("{}={}", s.name, shown(&s.item))).collect::<Vec<_>>().join(" ")
    }

    fn parsed(text: &str) -> Result<String, String> {
        settings(Path::new("p.cnf"), text).map(|found| all(&found)).map_err(|problem| problem.to_string())
    }

    #[test]
    fn all_that_libconfig_has() {
        let text = "# a\n// b\n/* c\n */ datadir=\"/var\" \"/lib\";\nthreads : 0x10, big = 5000000000L\nratio = 1.5\n\
                    on = TRUE off=false\nneg=-3\nservers = ( { a=1, b=\"x\\\"y\\\\z\\x41\\n\" }, {} , )\narray = [1, 2]\n\
                    empty = ()\ngroup = { inner = { deep = [] } }";
        assert_eq!(
            parsed(text).unwrap(),
            "datadir=/var/lib threads=16 big=5000000000 ratio=1.5 on=true off=false neg=-3 servers=({a=1 b=x\"y\\zA\n} {}) \
             array=(1 2) empty=() group={inner={deep=()}}"
        );
        let found = settings(Path::new("p.cnf"), "a = 1\n  b = (\n 2)").unwrap();
        assert_eq!(found[1].place.to_string(), "p.cnf:2:3");
        let Node::List(items) = &found[1].item.node else { panic!("a list") };
        assert_eq!(items[0].place.to_string(), "p.cnf:3:2");
    }

    #[test]
    fn errors_say_where_and_what_was_expected() {
        let deep = format!("a = {}", "(".repeat(DEPTH + 1));
        for (text, wanted) in [
            ("a", "p.cnf:1:2: expected = after a, found the end of the file"),
            ("a = 1\n= 2", "p.cnf:2:1: expected the name of a setting, found `=`"),
            ("a = { b = 1", "p.cnf:1:12: expected the name of a setting or }, found the end of the file"),
            ("a = ( 1 2 )", "p.cnf:1:9: expected , or ), found `2`"),
            (
                "a = yes",
                "p.cnf:1:5: expected a value: a number, true or false, text in quotes, {, ( or [, found `y`",
            ),
            ("a = \"hunter2", "p.cnf:1:5: expected a closing quote, found the end of the file"),
            ("/* a", "p.cnf:1:1: expected the end of this comment, */, found `/`"),
            ("a = \"\\xg\"", "p.cnf:1:8: expected two hexadecimal digits after \\x, found `g`"),
            ("a \"hunter2\"", "p.cnf:1:3: expected = after a, found text in quotes"),
            ("@include x", "p.cnf:1:10: expected the name of a file in quotes, found `x`"),
            (&deep, "p.cnf:1:21: groups and lists may stand 16 deep in each other, not deeper"),
        ] {
            assert_eq!(parsed(text), Err(wanted.to_owned()), "{text}");
        }
        let large = format!("a = \"{}\"", "x".repeat(BYTES));
        assert!(parsed(&large).is_err_and(|said| said.starts_with("p.cnf:1:1: expected at most 16 MB")));
    }

    #[test]
    fn included_files() {
        let folder = std::env::temp_dir().join(format!("weir-libconfig-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("a.cnf");
        std::fs::write(folder.join("b.cnf"), "b = 2").unwrap();
        let found = settings(&file, "a = 1\n@include \"b.cnf\"\nc = 3").unwrap();
        assert_eq!(all(&found), "a=1 b=2 c=3");
        assert!(found[1].place.to_string().ends_with("b.cnf:1:1"));
        std::fs::write(&file, "@include \"a.cnf\"\n@include \"a.cnf\"").unwrap();
        let said = settings(&file, "@include \"a.cnf\"").unwrap_err().to_string();
        assert!(said.ends_with("files may include files 10 deep, not deeper"), "{said}");
        let said = settings(&file, "@include \"none.cnf\"").unwrap_err().to_string();
        assert!(said.contains("a.cnf:1:1: cannot read"), "{said}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
