//! `script FILE`: the user's statements, with variables and random numbers, in the syntax of pgbench's
//! scripts.
//!
//! ```text
//! \set id random(1, 100000 * :scale)
//! BEGIN;
//! SELECT balance FROM accounts WHERE id = :id \gset
//! UPDATE accounts SET balance = :balance + 1 WHERE id = :id;
//! END;
//! ```
//!
//! One run through the file is one event. `\set NAME EXPRESSION` sets a variable; `:NAME` in a statement is
//! its value: in place in simple mode, as a parameter in the others; in a quoted text or a comment it is not
//! replaced. A statement ends with `;`, or with `\gset [PREFIX]`, which sets variables from the columns of
//! its last row: by number (`:1`, or `:PREFIX1`) and, when the SELECT names them simply, by name. Predefined
//! variables: `client_id`, `scale`, `random_seed` and those of --define.

mod expression;
mod parse;

use super::options::Options;
use super::{At, Params, Workload};
use crate::dice::Dice;
use crate::statement::{Expect, Query, Row, Statement, Value};
use expression::Expression;
use std::collections::BTreeMap;

/// A line of the script that does something.
#[derive(Debug)]
enum Line {
    /// `\set`: the variable's number.
    Set(usize, Expression),
    /// A statement: its number, and the variables that are its parameters.
    Ask(usize, Vec<usize>),
    /// A statement whose last row sets variables: each with the column it comes from.
    AskAndSet(usize, Vec<usize>, Vec<(usize, usize)>),
}

/// A script that has been understood.
#[derive(Debug)]
struct Parsed {
    lines: Vec<Line>,
    statements: Vec<Statement>,
    /// Names of variables, by number.
    variables: Vec<String>,
}

/// The workload.
#[derive(Debug)]
pub struct Script {
    parsed: Parsed,
    options: Options,
    /// What variables are at the beginning of each event; `None`: not known yet.
    given: Vec<Option<Value>>,
}

impl Script {
    /// Reads and understands the file.
    ///
    /// # Errors
    /// No file is named, it cannot be read, or a line cannot be understood; the text names file and line.
    pub fn new(params: &Params) -> Result<Script, String> {
        let Some(file) = &params.options.file else {
            return Err("'script' needs a file: weir bench run script FILE, or --file FILE".to_owned());
        };
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Script::of(&text, params).map_err(|(line, error)| format!("{}, line {line}: {error}", file.display()))
    }

    fn of(text: &str, params: &Params) -> Result<Script, (usize, String)> {
        let options = params.options.clone();
        let mut given = vec![
            // Set for each client.
            ("client_id".to_owned(), None),
            ("scale".to_owned(), Some(Value::Int(i64::from(options.scale.unwrap_or(1))))),
            ("random_seed".to_owned(), Some(Value::Int(options.seed as i64))),
        ];
        for (name, value) in &options.defines {
            let is_number = value.parse::<f64>().is_ok_and(f64::is_finite);
            let bytes = value.clone().into_bytes();
            let value = match value.parse() {
                Ok(n) => Value::Int(n),
                Err(_) if is_number => Value::Number(bytes),
                Err(_) => Value::Text(bytes),
            };
            given.push((name.clone(), Some(value)));
        }
        let names = given.iter().map(|(name, _)| name.clone()).collect();
        let parsed = parse::parse(text, names)?;
        let mut given: Vec<Option<Value>> = given.into_iter().map(|(_, value)| value).collect();
        given.resize(parsed.variables.len(), None);
        Ok(Script { parsed, options, given })
    }

    /// Goes through the script up to the statement of this step. False: there is none.
    fn walk(&self, at: At, heard: &[Row], query: &mut Query) -> bool {
        let mut dice = Dice::new(self.options.seed, at.client, at.event, 0);
        let mut values = self.given.clone();
        if let Some(client) = values.first_mut() {
            *client = Some(Value::Int(i64::from(at.client)));
        }
        let mut step = 0;
        for line in &self.parsed.lines {
            let (statement, parameters, columns) = match line {
                Line::Set(variable, expression) => {
                    // What cannot be computed (a division by zero) is NULL, and the server says what it
                    // thinks of that.
                    let value = expression.value(&values, &mut dice);
                    if let Some(place) = values.get_mut(*variable) {
                        *place = Some(value);
                    }
                    continue;
                }
                Line::Ask(statement, parameters) => (*statement, parameters, None),
                Line::AskAndSet(statement, parameters, columns) => (*statement, parameters, Some(columns)),
            };
            if step == at.step {
                let value =
                    |variable: &usize| values.get(*variable).cloned().flatten().unwrap_or(Value::Null);
                query.set(statement, parameters.iter().map(value), Expect::Success);
                query.listen = columns.is_some();
                return true;
            }
            let last = heard.iter().rfind(|row| row.step == step);
            for (variable, column) in columns.into_iter().flatten() {
                let value = last.and_then(|row| row.values.get(*column)).map(expression::as_number);
                if let Some(place) = values.get_mut(*variable) {
                    *place = Some(value.unwrap_or(Value::Null));
                }
            }
            step += 1;
        }
        false
    }
}

impl Workload for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn statements(&self) -> &[Statement] {
        &self.parsed.statements
    }

    fn query(&self, at: At, heard: &[Row], query: &mut Query) -> bool {
        self.walk(at, heard, query)
    }

    fn options(&self) -> BTreeMap<String, String> {
        let mut options: BTreeMap<String, String> = self.options.defines.iter().cloned().collect();
        let file = self.options.file.as_ref().map(|file| file.display().to_string());
        options.insert("file".to_owned(), file.unwrap_or_default());
        options
    }

    fn seed(&self) -> u64 {
        self.options.seed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Dialect;

    fn script(text: &str, defines: &[(&str, &str)]) -> Result<Script, (usize, String)> {
        let defines = defines.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let options = Options { defines, ..Options::default() };
        Script::of(text, &Params { dialect: Dialect::Postgres, connections: 1, options })
    }

    fn asked(script: &Script, step: u16, heard: &[Row]) -> Option<String> {
        let mut query = Query::default();
        let at = At { client: 4, event: 2, step };
        if !script.query(at, heard, &mut query) {
            return None;
        }
        let mut out = Vec::new();
        script.statements()[query.statement].render(&query.params, Dialect::Postgres, &mut out);
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn variables_and_random_numbers() {
        let script = script(
            "-- a comment; with :x\n\\set x random(1, 10)\n\\set y :x * 2 + 1\n\\set x :x + 100\n\
             SELECT :x, ':x', :y::int, \":x\" /* :x */\n  FROM t -- ;\n  WHERE c = :client_id;\nCOMMIT",
            &[],
        )
        .unwrap();
        let first = asked(&script, 0, &[]).unwrap();
        let numbers: Vec<i64> =
            first.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
        let [x, y, client] = numbers[..] else { panic!("{first}") };
        assert!((101..=110).contains(&x) && y == (x - 100) * 2 + 1 && client == 4, "{first}");
        assert!(first.contains("':x'") && first.contains("::int") && first.contains("\":x\""), "{first}");
        assert_eq!(asked(&script, 1, &[]).as_deref(), Some("COMMIT"));
        assert_eq!(asked(&script, 2, &[]), None);
        assert_eq!(asked(&script, 0, &[]).unwrap(), first);
    }

    #[test]
    fn columns_become_variables() {
        let script = script(
            "SELECT a, max(b) AS top FROM t \\gset\nSELECT :a, :top, :2;\n SELECT 1 \\gset p_\nSELECT :p_1;",
            &[],
        )
        .unwrap();
        let row = |step, values: &[&str]| Row {
            step,
            values: values.iter().map(|v| Value::Text(v.as_bytes().to_vec())).collect(),
        };
        let heard = [row(0, &["8", "9"]), row(0, &["5", "it's"]), row(2, &["1"])];
        assert_eq!(asked(&script, 1, &heard).as_deref(), Some("SELECT 5, 'it''s', 'it''s'"));
        assert_eq!(asked(&script, 3, &heard).as_deref(), Some("SELECT 1"));
        assert_eq!(asked(&script, 1, &[]).as_deref(), Some("SELECT NULL, NULL, NULL"));
    }

    #[test]
    fn definitions_of_the_command_line() {
        let script = script("SELECT :n, :t, :f, :scale", &[("n", "7"), ("t", "a b"), ("f", "1.5")]).unwrap();
        assert_eq!(asked(&script, 0, &[]).as_deref(), Some("SELECT 7, 'a b', 1.5, 1"));
    }

    #[test]
    fn mistakes_have_a_line() {
        for (text, line, part) in [
            ("SELECT 1;\n\\set\n", 2, "\\set"),
            ("\n\n\\set x random(1\nSELECT 1", 3, "expected"),
            ("\\set x :nope\nSELECT 1", 1, "nope"),
            ("\\set x rand(1)\nSELECT 1", 1, "rand"),
            ("\\sleep 1\nSELECT 1", 1, "sleep"),
            ("SELECT 'open", 1, "quote"),
            ("-- nothing\n", 1, "no statement"),
            ("\\gset", 1, "\\gset"),
        ] {
            let (at, error) = script(text, &[]).unwrap_err();
            assert!(at == line && error.contains(part), "{text:?}: line {at}: {error}");
        }
    }
}
