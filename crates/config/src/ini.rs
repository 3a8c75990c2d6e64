//! The format of pgbouncer.ini: lines, sections, keys, connection strings. The meaning of the keys is in
//! `pgbouncer.rs`.

use crate::problem::Place;
use std::path::Path;
use std::sync::Arc;

/// One line that says something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// `[name]`
    Section { name: String, place: Place },
    /// `key = value`
    Pair { key: String, place: Place, value: String, value_place: Place },
    /// `%include file`
    Include { file: String, place: Place },
    /// Nothing of these.
    Broken { place: Place, why: &'static str },
}

/// The lines of a file. Empty lines and comments (`;`, `#` at the start of a line) are left out.
pub(crate) fn lines(file: &Arc<Path>, text: &str) -> Vec<Line> {
    text.lines().enumerate().filter_map(|(index, line)| read_line(file, index + 1, line)).collect()
}

fn read_line(file: &Arc<Path>, number: usize, line: &str) -> Option<Line> {
    let at = |byte: usize| Place::File {
        file: file.clone(),
        line: number,
        column: line[..byte].chars().count() + 1,
    };
    let start = line.len() - line.trim_start().len();
    let rest = line.trim();
    if rest.is_empty() || rest.starts_with([';', '#']) {
        return None;
    }
    let place = at(start);
    if let Some(inside) = rest.strip_prefix('[') {
        return Some(match inside.strip_suffix(']') {
            Some(name) => Line::Section { name: name.trim().to_owned(), place },
            None => Line::Broken { place, why: "a section has no `]` at the end of its line" },
        });
    }
    if let Some(file) = rest.strip_prefix("%include") {
        return Some(Line::Include { file: file.trim().to_owned(), place });
    }
    let (key, after_key) = if rest.starts_with('"') {
        match read_quoted(rest) {
            Some((key, used)) => (key, used),
            None => return Some(Line::Broken { place, why: "a name in quotes has no closing quote" }),
        }
    } else {
        let end = rest.find('=').unwrap_or(rest.len());
        (rest[..end].trim_end().to_owned(), end)
    };
    let Some(equals) =
        rest[after_key..].find('=').filter(|&n| rest[after_key..after_key + n].trim().is_empty())
    else {
        return Some(Line::Broken { place, why: "a line must be `key = value`" });
    };
    let behind = &rest[after_key + equals + 1..];
    let value = behind.trim_start();
    let value_place = at(start + rest.len() - value.len());
    Some(Line::Pair { key, place, value: value.to_owned(), value_place })
}

/// A name in double quotes, with "" for a quote inside; also how many bytes it took.
pub(crate) fn read_quoted(text: &str) -> Option<(String, usize)> {
    let mut name = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((index, c)) = chars.next() {
        if c != '"' {
            name.push(c);
        } else if chars.next_if(|(_, next)| *next == '"').is_some() {
            name.push('"');
        } else {
            return Some((name, index + 1));
        }
    }
    None
}

/// One `key=value` of a connection string, with the byte the key begins at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) at: usize,
}

/// The words of a connection string: `key=value` separated by spaces; a value with spaces stands in single
/// quotes, with '' for a quote inside.
pub(crate) fn connection_string(text: &str) -> Result<Vec<Word>, (usize, String)> {
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        if at == text.len() {
            return Ok(words);
        }
        let key_at = at;
        let end = text[at..].find(|c: char| c == '=' || c.is_whitespace()).map_or(text.len(), |n| at + n);
        let key = text[at..end].to_owned();
        let rest = text[end..].trim_start();
        let Some(rest) = rest.strip_prefix('=') else {
            return Err((
                key_at,
                format!("`{key}` has no value; a connection string is key=value key=value"),
            ));
        };
        let rest = rest.trim_start();
        at = text.len() - rest.len();
        let (value, used) = if rest.starts_with('\'') {
            read_single_quoted(rest).ok_or((at, format!("the value of {key} has no closing quote")))?
        } else {
            let used = rest.find(char::is_whitespace).unwrap_or(rest.len());
            (rest[..used].to_owned(), used)
        };
        at += used;
        words.push(Word { key, value, at: key_at });
    }
}

fn read_single_quoted(text: &str) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((index, c)) = chars.next() {
        if c != '\'' {
            value.push(c);
        } else if chars.next_if(|(_, next)| *next == '\'').is_some() {
            value.push('\'');
        } else {
            return Some((value, index + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let file: Arc<Path> = Path::new("p.ini").into();
        lines(&file, text)
            .into_iter()
            .map(|line| match line {
                Line::Section { name, place } => format!("{place} [{name}]"),
                Line::Pair { key, place, value, value_place } => {
                    format!("{place} {key}|{value_place} {value}")
                }
                Line::Include { file, place } => format!("{place} include {file}"),
                Line::Broken { place, why } => format!("{place} broken: {why}"),
            })
            .collect()
    }

    #[test]
    fn lines_and_places() {
        let text = "; comment\n\n# comment\n[databases]\n a = host=x ; y\n\"we\"\"ird=\" =  z \nempty =\n\
                    %include /etc/x.ini\n[open\nword\n\"open = 1\n\"a\" b = 1";
        assert_eq!(
            read(text),
            [
                "p.ini:4:1 [databases]",
                "p.ini:5:2 a|p.ini:5:6 host=x ; y",
                "p.ini:6:1 we\"ird=|p.ini:6:15 z",
                "p.ini:7:1 empty|p.ini:7:8 ",
                "p.ini:8:1 include /etc/x.ini",
                "p.ini:9:1 broken: a section has no `]` at the end of its line",
                "p.ini:10:1 broken: a line must be `key = value`",
                "p.ini:11:1 broken: a name in quotes has no closing quote",
                "p.ini:12:1 broken: a line must be `key = value`",
            ]
        );
    }

    #[test]
    fn connection_strings() {
        let words = |text| {
            connection_string(text)
                .map(|words| words.into_iter().map(|w| (w.key, w.value, w.at)).collect::<Vec<_>>())
        };
        let word = |key: &str, value: &str, at| (key.to_owned(), value.to_owned(), at);
        assert_eq!(words(""), Ok(vec![]));
        assert_eq!(
            words("host=h  port = 1 password='a b''c' x="),
            Ok(vec![
                word("host", "h", 0),
                word("port", "1", 8),
                word("password", "a b'c", 17),
                word("x", "", 35)
            ])
        );
        assert_eq!(words("host=h nothing").unwrap_err().0, 7);
        assert_eq!(
            words("password='open").unwrap_err(),
            (9, "the value of password has no closing quote".into())
        );
    }
}
