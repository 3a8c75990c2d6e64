//! Parses a statement as PgBouncer's console does: a command and one argument, or SET.
//!
//! Owns: the grammar. Must not know: commands.

/// Bytes of a command's name, of its argument and of a value at most: PgBouncer's bounds.
const NAME_BYTES: usize = 15;
const ARGUMENT_BYTES: usize = 63;
const VALUE_BYTES: usize = 255;

/// What a statement says.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A command, in lower case, and its argument; empty: none.
    Command(String, String),
    /// SET.
    Set(String, String),
    /// A word of it is too long.
    TooLong,
    /// Neither.
    Neither,
}

/// Reads a statement.
pub fn parse(text: &str) -> Parsed {
    if let Some(parsed) = command(text) {
        return parsed;
    }
    set(text).unwrap_or(Parsed::Neither)
}

fn command(text: &str) -> Option<Parsed> {
    let (name, rest) = word(blank(text))?;
    if ends(rest) {
        return Some(bounded(&[(&name, NAME_BYTES)], || {
            Parsed::Command(name.to_ascii_lowercase(), String::new())
        }));
    }
    let behind = blank(rest);
    let (argument, end) = if behind.len() < rest.len() { word(behind)? } else { return None };
    if !ends(end) {
        return None;
    }
    let bounds = [(&name, NAME_BYTES), (&argument, ARGUMENT_BYTES)];
    Some(bounded(&bounds, || Parsed::Command(name.to_ascii_lowercase(), argument.clone())))
}

fn set(text: &str) -> Option<Parsed> {
    let rest = blank(text);
    let (keyword, rest) = word(rest)?;
    if !keyword.eq_ignore_ascii_case("set") {
        return None;
    }
    let behind = blank(rest);
    if behind.len() == rest.len() {
        return None;
    }
    let (key, rest) = word(behind)?;
    let rest = blank(rest);
    let rest = rest.strip_prefix('=').or_else(|| {
        let (to, rest) = rest.split_at_checked(2)?;
        to.eq_ignore_ascii_case("to").then_some(rest)
    })?;
    let rest = blank(rest);
    let (value, rest) = if rest.starts_with('\'') { quoted(rest, '\'')? } else { word(rest)? };
    let bounds = [(&key, ARGUMENT_BYTES), (&value, VALUE_BYTES)];
    ends(rest).then(|| bounded(&bounds, || Parsed::Set(key.clone(), value.clone())))
}

fn bounded(words: &[(&String, usize)], parsed: impl FnOnce() -> Parsed) -> Parsed {
    if words.iter().any(|(word, most)| word.len() > *most) { Parsed::TooLong } else { parsed() }
}

fn blank(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}

/// Nothing but blanks and one semicolon.
fn ends(text: &str) -> bool {
    let text = blank(text);
    blank(text.strip_prefix(';').unwrap_or(text)).is_empty()
}

/// A word and what is behind it.
fn word(text: &str) -> Option<(String, &str)> {
    if text.starts_with('"') {
        return quoted(text, '"').filter(|(word, _)| !word.is_empty());
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| (text[..end].to_owned(), &text[end..]))
}

/// A text in quotes, in which two of them stand for one.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut rest = text.strip_prefix(quote)?;
    loop {
        let end = rest.find(quote)?;
        word.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix(quote) {
            Some(more) => {
                word.push(quote);
                rest = more;
            }
            None => return Some((word, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(text: &str, name: &str, argument: &str) {
        assert_eq!(parse(text), Parsed::Command(name.into(), argument.into()), "{text}");
    }

    #[test]
    fn commands_have_one_argument() {
        is("SHOW pools;  ", "show", "pools");
        is(" \n reload", "reload", "");
        is("show \"pools\"", "show", "pools");
        is("PAUSE \"my \"\"own\"\" db\" ;", "pause", "my \"own\" db");
        for text in [
            "",
            ";",
            "; ",
            "show pools; show lists",
            "show clients x",
            "select version()",
            "-- hi\nshow lists",
            "pause my-db",
            "show \"pools",
            "sh\u{f6}w pools",
            "show\u{a0}pools",
            "\"\"",
            "reload;;",
        ] {
            assert_eq!(parse(text), Parsed::Neither, "{text}");
        }
        assert_eq!(parse("show_me_everything_now pools"), Parsed::TooLong);
        assert_eq!(parse(&format!("pause {}", "x".repeat(64))), Parsed::TooLong);
    }

    #[test]
    fn set_takes_words_and_texts() {
        let set = |key: &str, value: &str| Parsed::Set(key.into(), value.into());
        assert_eq!(parse("set log_stats = 1"), set("log_stats", "1"));
        assert_eq!(parse("SET pool_mode TO 'it''s';"), set("pool_mode", "it's"));
        assert_eq!(parse("set \"pool.pool_mode\"='session'"), set("pool.pool_mode", "session"));
        assert_eq!(parse("set x"), Parsed::Command("set".into(), "x".into()));
        for text in ["set x =", "set = 1", "set x = 1 2", "set x = 'y", "set x tö 1"] {
            assert_eq!(parse(text), Parsed::Neither, "{text}");
        }
    }

    #[test]
    fn any_text_is_read() {
        let pieces = ["set", " ", "\"", "'", "=", "to", ";", "ä", "show", "\u{0}", "x"];
        for a in pieces {
            for b in pieces {
                for c in pieces {
                    for d in pieces {
                        parse(&format!("{a}{b}{c}{d}"));
                    }
                }
            }
        }
    }
}
