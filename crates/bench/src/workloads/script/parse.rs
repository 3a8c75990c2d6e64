//! Parses a script: its statements, their ends, the variables in them; and the expressions of `\set`.

use super::expression::{Expression, Function, Operator};
use super::{Line, Parsed};
use crate::statement::{Statement, Value};

/// Nesting of an expression at most: more would only exhaust the stack.
const DEPTH_MAX: u32 = 64;

/// A mistake and its line.
type Mistake = (usize, String);

struct Reader<'a> {
    text: &'a str,
    at: usize,
    lines: Vec<Line>,
    statements: Vec<Statement>,
    variables: Vec<String>,
}

/// Reads a script. `known` are the variables that exist from the start.
pub(super) fn parse(text: &str, known: Vec<String>) -> Result<Parsed, Mistake> {
    let mut reader = Reader { text, at: 0, lines: Vec::new(), statements: Vec::new(), variables: known };
    while reader.at < text.len() {
        reader.skip_between();
        match reader.peek() {
            None => break,
            Some('\\') => reader.command()?,
            Some(_) => reader.statement()?,
        }
    }
    if reader.statements.is_empty() {
        return Err((1, "there is no statement in it".to_owned()));
    }
    Ok(Parsed { lines: reader.lines, statements: reader.statements, variables: reader.variables })
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn line(&self) -> usize {
        self.text.get(..self.at).unwrap_or_default().matches('\n').count() + 1
    }

    fn variable(&mut self, name: &str) -> usize {
        if let Some(n) = self.variables.iter().position(|known| known == name) {
            return n;
        }
        self.variables.push(name.to_owned());
        self.variables.len() - 1
    }

    /// Space, comments, and `;` of empty statements.
    fn skip_between(&mut self) {
        loop {
            let rest = self.rest();
            let skipped = if rest.starts_with("--") {
                rest.find('\n').unwrap_or(rest.len())
            } else {
                rest.len() - rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';').len()
            };
            if skipped == 0 {
                return;
            }
            self.at += skipped;
        }
    }

    /// The rest of the line.
    fn take_line(&mut self) -> String {
        let rest = self.rest();
        let end = rest.find('\n').unwrap_or(rest.len());
        let line = rest[..end].to_owned();
        self.at += end;
        line
    }

    fn command(&mut self) -> Result<(), Mistake> {
        let number = self.line();
        let line = self.take_line();
        let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line.as_str(), ""));
        if command != "\\set" {
            let what =
                if command == "\\gset" { "must follow a statement" } else { "is not known; there is \\set" };
            return Err((number, format!("{command} {what}, and \\gset behind a statement")));
        }
        let rest = rest.trim();
        let (name, expression) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if name.is_empty() || expression.trim().is_empty() || !name.chars().all(is_name) {
            return Err((number, "expected \\set NAME EXPRESSION".to_owned()));
        }
        let expression =
            ExpressionReader::read(expression, &self.variables).map_err(|error| (number, error))?;
        let variable = self.variable(name);
        self.lines.push(Line::Set(variable, expression));
        Ok(())
    }

    /// A statement up to its `;`, its `\gset` or the end of the file.
    fn statement(&mut self) -> Result<(), Mistake> {
        let (first_line, begin) = (self.line(), self.at);
        let (mut parts, mut parameters) = (vec![String::new()], Vec::new());
        let mut columns = None;
        while let Some(c) = self.peek() {
            let rest = self.rest();
            let taken = match c {
                ';' => break,
                '\'' | '"' | '`' => quoted(rest, c)
                    .ok_or_else(|| (first_line, format!("{c} opens a quote that does not end")))?,
                '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
                '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                ':' if rest.starts_with("::") => 2,
                ':' => {
                    let name: String = rest[1..].chars().take_while(|c| is_name(*c)).collect();
                    if let Some(variable) = self.variables.iter().position(|known| *known == name) {
                        parameters.push(variable);
                        parts.push(String::new());
                        self.at += 1 + name.len();
                        continue;
                    }
                    1
                }
                '\\' if rest.starts_with("\\gset") => {
                    let text = self.text.get(begin..self.at).unwrap_or_default().to_owned();
                    let line = self.take_line();
                    let prefix = line["\\gset".len()..].trim().to_owned();
                    columns = Some(self.columns(&text, &prefix));
                    break;
                }
                c => c.len_utf8(),
            };
            let text = self.rest().get(..taken).unwrap_or_default().to_owned();
            if let Some(part) = parts.last_mut() {
                part.push_str(&text);
            }
            self.at += taken;
        }
        if let Some(part) = parts.last_mut() {
            part.truncate(part.trim_end().len());
        }
        let label = parts.join("?");
        let statement = self.statements.len();
        self.statements.push(Statement::from_parts(parts, &label));
        self.lines.push(match columns {
            None => Line::Ask(statement, parameters),
            Some(columns) => Line::AskAndSet(statement, parameters, columns),
        });
        Ok(())
    }

    /// Variables for the columns of a statement, by number and, where the text says it simply, by name.
    fn columns(&mut self, text: &str, prefix: &str) -> Vec<(usize, usize)> {
        let mut columns = Vec::new();
        for (n, name) in column_names(text).into_iter().enumerate() {
            columns.push((self.variable(&format!("{prefix}{}", n + 1)), n));
            if let Some(name) = name {
                columns.push((self.variable(&format!("{prefix}{name}")), n));
            }
        }
        columns
    }
}

/// Length of a quoted text with its quotes; two quotes within are one that does not end it.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut from = 1;
    loop {
        from += text.get(from..)?.find(quote)? + 1;
        if !text.get(from..)?.starts_with(quote) {
            return Some(from);
        }
        from += 1;
    }
}

/// What stands between SELECT and FROM, cut at its commas: of each the last word, if it can be a name.
fn column_names(text: &str) -> Vec<Option<String>> {
    let lower = text.to_ascii_lowercase();
    let Some(begin) = lower.find("select").map(|at| at + "select".len()) else { return vec![None] };
    let (mut depth, mut quote, mut last) = (0, None, begin);
    let mut columns = Vec::new();
    let mut end = text.len();
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < begin) {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('\'' | '"' | '`', None) => quote = Some(c),
            ('(', None) => depth += 1,
            (')', None) => depth -= 1,
            (',', None) if depth == 0 => {
                columns.push(text.get(last..at).unwrap_or_default());
                last = at + 1;
            }
            ('f' | 'F', None) if depth == 0 && is_word(&lower, at, "from") => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    columns.push(text.get(last..end).unwrap_or_default());
    let name = |column: &&str| {
        let word = column.trim().rsplit(|c: char| c.is_whitespace() || c == '.').next()?;
        let is_first_letter = word.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
        (is_first_letter && word.chars().all(is_name)).then(|| word.to_owned())
    };
    columns.iter().map(name).collect()
}

fn is_word(text: &str, at: usize, word: &str) -> bool {
    let before = text.get(..at).and_then(|text| text.chars().next_back());
    let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
    text.get(at..).is_some_and(|text| text.starts_with(word))
        && !before.is_some_and(is_name)
        && !after.is_some_and(is_name)
}

/// Reads an expression by recursive descent: sums of products of signed values.
struct ExpressionReader<'a> {
    text: &'a str,
    variables: &'a [String],
    depth: u32,
}

impl<'a> ExpressionReader<'a> {
    fn read(text: &'a str, variables: &'a [String]) -> Result<Expression, String> {
        let mut reader = ExpressionReader { text, variables, depth: 0 };
        let found = reader.sum()?;
        match reader.peek() {
            None => Ok(found),
            Some(c) => Err(format!("did not expect '{c}' in the expression")),
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.text = self.text.trim_start();
        self.text.chars().next()
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.text = &self.text[c.len_utf8()..];
        }
        found
    }

    fn expect(&mut self, c: char) -> Result<(), String> {
        if self.take(c) { Ok(()) } else { Err(format!("expected '{c}' in the expression")) }
    }

    fn word(&mut self) -> &'a str {
        let end = self.text.find(|c: char| !is_name(c) && c != '.').unwrap_or(self.text.len());
        let (word, rest) = self.text.split_at(end);
        self.text = rest;
        word
    }

    fn sum(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("the expression is nested too deeply".to_owned());
        }
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Some('+') => Operator::Add,
                Some('-') => Operator::Subtract,
                _ => break,
            };
            self.text = &self.text[1..];
            left = Expression::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, String> {
        let mut left = self.signed()?;
        loop {
            let operator = match self.peek() {
                Some('*') => Operator::Multiply,
                Some('/') => Operator::Divide,
                Some('%') => Operator::Remainder,
                _ => return Ok(left),
            };
            self.text = &self.text[1..];
            left = Expression::Binary(operator, Box::new(left), Box::new(self.signed()?));
        }
    }

    fn signed(&mut self) -> Result<Expression, String> {
        if self.take('-') {
            return Ok(Expression::Negative(Box::new(self.single()?)));
        }
        self.take('+');
        self.single()
    }

    fn single(&mut self) -> Result<Expression, String> {
        match self.peek() {
            None => Err("expected a value at the end of the expression".to_owned()),
            Some('(') => {
                self.expect('(')?;
                let inner = self.sum()?;
                self.expect(')')?;
                Ok(inner)
            }
            Some(':') => {
                self.expect(':')?;
                let name = self.word();
                let found = self.variables.iter().position(|known| known == name);
                found
                    .map(Expression::Variable)
                    .ok_or_else(|| format!("the variable '{name}' is not known here"))
            }
            Some(c) if c.is_ascii_digit() || c == '.' => {
                let word = self.word();
                let value = match (word.parse::<i64>(), word.parse::<f64>()) {
                    (Ok(n), _) => Value::Int(n),
                    (Err(_), Ok(_)) => Value::Number(word.as_bytes().to_vec()),
                    (Err(_), Err(_)) => return Err(format!("'{word}' is not a number")),
                };
                Ok(Expression::Constant(value))
            }
            Some(c) if is_name(c) => self.call(),
            Some(c) => Err(format!("did not expect '{c}' in the expression")),
        }
    }

    fn call(&mut self) -> Result<Expression, String> {
        let name = self.word();
        let (function, allowed) =
            Function::by_name(name).ok_or_else(|| format!("the function '{name}' is not known"))?;
        self.expect('(')?;
        let mut of = vec![self.sum()?];
        while self.take(',') {
            of.push(self.sum()?);
        }
        self.expect(')')?;
        if !allowed.contains(&of.len()) {
            return Err(format!("'{name}' does not take {} values", of.len()));
        }
        Ok(Expression::Call(function, of))
    }
}
