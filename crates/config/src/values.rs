//! Values of settings: how text becomes a value, what is set, and how SHOW CONFIG prints it.
//!
//! Invariant: a value in [`Values`] is inside the bounds of its row.

use crate::registry::{Change, Files, Key, Kind, SETTINGS, Setting, setting};

/// `auto`, as the value of a [`Kind::Size`].
pub const AUTO: u64 = 0;

/// Whose defaults hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// weir.toml, or no file.
    Weir,
    /// pgbouncer.ini.
    Pgbouncer,
}

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// [`Kind::Bool`].
    Bool(bool),
    /// [`Kind::Count`], [`Kind::Size`] and [`Kind::Mode`].
    Count(u64),
    /// [`Kind::Seconds`], in milliseconds.
    Millis(u64),
    /// [`Kind::Word`], [`Kind::Policy`], [`Kind::Text`] and [`Kind::Path`].
    Text(String),
    /// [`Kind::Secret`].
    Secret(Hidden),
    /// [`Kind::List`].
    List(Vec<String>),
}

/// Text that no message shows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Hidden(pub String);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.shown())
    }
}

impl Hidden {
    /// What stands for it: nothing, or the same stars for every text.
    pub fn shown(&self) -> &'static str {
        if self.0.is_empty() { "" } else { "********" }
    }
}

/// The values of all settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values {
    flavour: Flavour,
    values: Vec<Value>,
    given: Vec<bool>,
}

/// One row of SHOW CONFIG.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigRow {
    /// The setting's name.
    pub key: String,
    /// What holds.
    pub value: String,
    /// What would hold if nobody said anything.
    pub default: String,
    /// A reload can change it.
    pub changeable: bool,
}

impl Values {
    /// All defaults.
    ///
    /// # Panics
    /// If a default in the table is out of its own bounds. A test of the table proves that none is.
    pub fn new(flavour: Flavour) -> Values {
        let values = SETTINGS
            .iter()
            .map(|row| match parse_text(row.kind, default_of(row, flavour)) {
                Ok(value) => value,
                Err(error) => panic!("the default of {} {error}", row.full_name()),
            })
            .collect();
        Values { flavour, values, given: vec![false; SETTINGS.len()] }
    }

    /// Whose defaults hold.
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// Sets a value that [`parse_text`] or a sibling gave for this key.
    pub(crate) fn set(&mut self, key: Key, value: Value) {
        self.values[key as usize] = value;
        self.given[key as usize] = true;
    }

    /// Somebody set it; it is not a default.
    pub fn is_given(&self, key: Key) -> bool {
        self.given[key as usize]
    }

    /// The value.
    pub fn value(&self, key: Key) -> &Value {
        &self.values[key as usize]
    }

    /// The value of a [`Kind::Bool`].
    pub fn bool(&self, key: Key) -> bool {
        match self.value(key) {
            Value::Bool(value) => *value,
            other => wrong_type(key, other),
        }
    }

    /// The value of a [`Kind::Count`] or [`Kind::Mode`].
    pub fn count(&self, key: Key) -> u64 {
        match self.value(key) {
            Value::Count(value) => *value,
            other => wrong_type(key, other),
        }
    }

    /// The value of a [`Kind::Count`], as a size.
    pub fn size(&self, key: Key) -> usize {
        usize::try_from(self.count(key)).unwrap_or(usize::MAX)
    }

    /// The value of a [`Kind::Seconds`], in milliseconds.
    pub fn millis(&self, key: Key) -> u64 {
        match self.value(key) {
            Value::Millis(value) => *value,
            other => wrong_type(key, other),
        }
    }

    /// The value of a [`Kind::Word`], [`Kind::Policy`], [`Kind::Text`] or [`Kind::Path`].
    pub fn text(&self, key: Key) -> &str {
        match self.value(key) {
            Value::Text(value) => value,
            other => wrong_type(key, other),
        }
    }

    /// The value of a [`Kind::Secret`].
    pub fn secret(&self, key: Key) -> &str {
        match self.value(key) {
            Value::Secret(Hidden(value)) => value,
            other => wrong_type(key, other),
        }
    }

    /// The value of a [`Kind::List`].
    pub fn list(&self, key: Key) -> &[String] {
        match self.value(key) {
            Value::List(value) => value,
            other => wrong_type(key, other),
        }
    }

    /// The value as SHOW CONFIG prints it.
    pub fn show(&self, key: Key) -> String {
        show(setting(key).kind, self.value(key))
    }

    /// All rows of SHOW CONFIG. What belongs to pgbouncer.ini alone is shown only there.
    pub fn rows(&self) -> Vec<ConfigRow> {
        let defaults = Values::new(self.flavour);
        SETTINGS
            .iter()
            .filter(|row| self.flavour == Flavour::Pgbouncer || row.files == Files::All)
            .map(|row| ConfigRow {
                key: row.name_in(self.flavour),
                value: self.show(row.key),
                default: defaults.show(row.key),
                changeable: row.change == Change::Live,
            })
            .collect()
    }
}

fn wrong_type(key: Key, value: &Value) -> ! {
    unreachable!("{key:?} was read as another type than {value:?}")
}

/// The text of a default.
pub fn default_of(row: &Setting, flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::Weir => row.default,
        Flavour::Pgbouncer => row.pgbouncer_default.unwrap_or(row.default),
    }
}

/// Reads a value from text, as in pgbouncer.ini and `--set`. The error is the end of a sentence that begins
/// with the setting's name.
///
/// # Errors
/// What the value must be, as the end of a sentence that begins with the setting's name.
pub fn parse_text(kind: Kind, text: &str) -> Result<Value, String> {
    match kind {
        Kind::Bool => {
            parse_bool(text).map(Value::Bool).ok_or_else(|| format!("must be true or false, not `{text}`"))
        }
        Kind::Count { min, max, unit } => parse_count(text, min, max, unit),
        Kind::Size { .. } if text == "auto" => Ok(Value::Count(AUTO)),
        Kind::Size { max, unit } => {
            parse_count(text, 1, max, unit).map_err(|error| error.replacen(", not", " or auto, not", 1))
        }
        Kind::Seconds { max_ms } => parse_seconds(text, max_ms),
        Kind::Mode => match u32::from_str_radix(text, 8) {
            Ok(mode) if mode <= 0o7777 && !text.starts_with('+') => Ok(Value::Count(mode.into())),
            _ => Err(format!("must be permissions in octal such as 0777, not `{text}`")),
        },
        Kind::Word(words) => {
            if words.contains(&text) {
                Ok(Value::Text(text.to_owned()))
            } else {
                Err(format!("must be {}, not `{text}`{}", one_of(words), did_you_mean(text, words)))
            }
        }
        Kind::Policy { words, why } => parse_text(Kind::Word(words), text).map_err(|error| {
            let is_another = matches!(text, "error" | "pass");
            if is_another { format!("must be {}, not `{text}`: {why}", one_of(words)) } else { error }
        }),
        Kind::Text | Kind::Path => Ok(Value::Text(text.to_owned())),
        Kind::Secret => Ok(Value::Secret(Hidden(text.to_owned()))),
        Kind::List => Ok(Value::List(
            text.split(',').map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned).collect(),
        )),
    }
}

/// PgBouncer's words for true and false, and TOML's.
fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "yes" | "t" | "y" => Some(true),
        "0" | "false" | "off" | "no" | "f" | "n" => Some(false),
        _ => None,
    }
}

fn parse_count(text: &str, min: u64, max: u64, unit: &str) -> Result<Value, String> {
    let digits: String = text.chars().filter(|&c| c != '_').collect();
    match digits.parse::<u64>() {
        Ok(n) if (min..=max).contains(&n) && digits.starts_with(|c: char| c.is_ascii_digit()) => {
            Ok(Value::Count(n))
        }
        _ => {
            let unit = if unit.is_empty() { String::new() } else { format!(" of {unit}") };
            Err(format!("must be a number{unit} from {min} to {max}, not `{text}`"))
        }
    }
}

/// A time: a number of seconds with or without a fraction, or a number with a unit.
fn parse_seconds(text: &str, max_ms: u64) -> Result<Value, String> {
    let bad = || {
        format!(
            "must be a time in seconds such as 30 or 0.5, or one with a unit such as 500ms, 5s, 2min, 1h, not `{text}`"
        )
    };
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number.trim_end();
    if !number.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(bad());
    }
    let factor = match unit {
        "ms" => 1.0,
        "" | "s" => 1_000.0,
        "min" | "m" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return Err(bad()),
    };
    let number: f64 = number.parse().map_err(|_| bad())?;
    let ms = number * factor;
    if !ms.is_finite() || ms > max_ms as f64 {
        return Err(format!("must be at most {} seconds, not `{text}`", max_ms / 1000));
    }
    // 0 means "no limit": a very short time must not become one.
    let ms = if ms > 0.0 { ms.round().max(1.0) } else { 0.0 };
    Ok(Value::Millis(ms as u64))
}

/// A value as SHOW CONFIG and the reference print it: seconds as seconds, as PgBouncer does.
pub fn show(kind: Kind, value: &Value) -> String {
    match value {
        Value::Bool(true) => "1".to_owned(),
        Value::Bool(false) => "0".to_owned(),
        Value::Count(n) if kind == Kind::Mode => format!("0{n:03o}"),
        Value::Count(AUTO) if matches!(kind, Kind::Size { .. }) => "auto".to_owned(),
        Value::Count(n) => n.to_string(),
        Value::Millis(ms) if ms % 1000 == 0 => (ms / 1000).to_string(),
        Value::Millis(ms) => format!("{}.{:03}", ms / 1000, ms % 1000).trim_end_matches('0').to_owned(),
        Value::Text(text) => text.clone(),
        Value::Secret(hidden) => hidden.shown().to_owned(),
        Value::List(items) => items.join(","),
    }
}

/// `a, b or c`.
pub fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., last] => format!("{} or {last}", head.join(", ")),
    }
}

/// `; did you mean NAME?` when a known name is near, else nothing.
pub fn did_you_mean<S: AsRef<str>>(word: &str, known: &[S]) -> String {
    nearest(word, known.iter().map(AsRef::as_ref))
        .map(|n| format!("; did you mean `{n}`?"))
        .unwrap_or_default()
}

/// The known name with the smallest edit distance, if it is near enough to be meant.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let far = (word.chars().count() / 3).max(2);
    known
        .map(|name| (strsim::osa_distance(&word, &name.to_ascii_lowercase()), name))
        .filter(|&(distance, _)| distance <= far)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let seconds = Kind::Seconds { max_ms: 3_600_000 };
        for (text, ms) in [
            ("0", 0),
            ("0.0", 0),
            ("1", 1000),
            ("0.5", 500),
            (".25", 250),
            ("0.0001", 1),
            ("250ms", 250),
            ("5 s", 5000),
            ("2min", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(parse_text(seconds, text), Ok(Value::Millis(ms)), "{text}");
        }
        for text in ["", "-1", "fast", "1 week", "1e", "nan", "inf", "1..2"] {
            assert!(parse_text(seconds, text).is_err_and(|e| e.contains("time in seconds")), "{text}");
        }
        assert_eq!(parse_text(seconds, "2h"), Err("must be at most 3600 seconds, not `2h`".into()));
    }

    #[test]
    fn counts_modes_words_and_lists() {
        let count = Kind::Count { min: 1, max: 10_000, unit: "clients" };
        assert_eq!(parse_text(count, "1_000"), Ok(Value::Count(1000)));
        assert_eq!(
            parse_text(count, "0"),
            Err("must be a number of clients from 1 to 10000, not `0`".into())
        );
        assert!(parse_text(count, "+5").is_err());
        assert_eq!(parse_text(Kind::Mode, "0700"), Ok(Value::Count(0o700)));
        assert!(parse_text(Kind::Mode, "0888").is_err());
        assert_eq!(show(Kind::Mode, &Value::Count(0o777)), "0777");
        let word = Kind::Word(&["session", "transaction", "statement"]);
        assert_eq!(
            parse_text(word, "transactions"),
            Err("must be session, transaction or statement, not `transactions`; did you mean `transaction`?"
                .into())
        );
        assert_eq!(parse_text(Kind::List, " a, b ,"), Ok(Value::List(vec!["a".into(), "b".into()])));
    }

    #[test]
    fn shown_as_pgbouncer_shows_it() {
        let mut values = Values::new(Flavour::Pgbouncer);
        values.set(Key::QueryWaitTimeout, Value::Millis(1500));
        let rows = values.rows();
        let row = rows.iter().find(|row| row.key == "query_wait_timeout").unwrap();
        assert_eq!((row.value.as_str(), row.default.as_str(), row.changeable), ("1.5", "120", true));
        let row = rows.iter().find(|row| row.key == "listen_port").unwrap();
        assert_eq!((row.value.as_str(), row.changeable), ("6432", false));
        assert!(!Values::new(Flavour::Weir).rows().iter().any(|row| row.key == "listen_port"));
    }

    #[test]
    fn a_size_is_a_number_or_auto() {
        let kind = Kind::Size { max: 9, unit: "connections" };
        assert_eq!(parse_text(kind, "auto"), Ok(Value::Count(AUTO)));
        assert_eq!(parse_text(kind, "9"), Ok(Value::Count(9)));
        for bad in ["0", "10", "Auto", ""] {
            let said = parse_text(kind, bad).unwrap_err();
            assert_eq!(said, format!("must be a number of connections from 1 to 9 or auto, not `{bad}`"));
        }
        assert_eq!(
            (show(kind, &Value::Count(AUTO)), show(kind, &Value::Count(3))),
            ("auto".into(), "3".into())
        );
    }

    #[test]
    fn near_names() {
        let known = ["default_pool_size", "min_pool_size", "pool_mode"];
        assert_eq!(did_you_mean("pool_mod", &known), "; did you mean `pool_mode`?");
        assert_eq!(did_you_mean("defalut_pool_size", &known), "; did you mean `default_pool_size`?");
        assert_eq!(did_you_mean("colour", &known), "");
        assert_eq!(did_you_mean("opol_mode", &known), "; did you mean `pool_mode`?");
    }
}
