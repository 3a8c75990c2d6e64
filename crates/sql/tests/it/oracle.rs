//! A real parser as oracle: where it understands a text, the scanner must agree with it.

use proptest::prelude::*;
use sqlparser::ast::Statement;
use sqlparser::dialect::{MySqlDialect, PostgreSqlDialect};
use sqlparser::parser::Parser;
use weir_sql::{Class, Dialect, Uses, Verb, classify};

/// Statements with holes: `{e}` an expression, `{n}` a name, `_` a blank or comment.
const TEMPLATES: &[&str] = &[
    "SELECT_{e}",
    "SELECT_{e},_{e}_FROM_{n}_WHERE_{e}_=_{e}",
    "SELECT_*_FROM_{n}_AS_{n}_ORDER_BY_{e}_LIMIT_1",
    "SELECT_count(*)_FROM_{n}_GROUP_BY_{n}",
    "(_SELECT_{e}_)_UNION_(_SELECT_{e}_)",
    "WITH_{n}_AS_(_SELECT_{e}_)_SELECT_*_FROM_{n}",
    "INSERT_INTO_{n}_(_{n},_{n}_)_VALUES_(_{e},_{e}_),_(_{e},_{e}_)",
    "INSERT_INTO_{n}_SELECT_{e}",
    "UPDATE_{n}_SET_{n}_=_{e}_WHERE_{n}_=_{e}",
    "DELETE_FROM_{n}_WHERE_{n}_IN_(_{e},_{e}_)",
    "BEGIN",
    "START_TRANSACTION",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT_{n}",
    "ROLLBACK_TO_SAVEPOINT_{n}",
    "SET_{n}_=_1",
    "SET_SESSION_{n}_=_'x'",
    "CREATE_TABLE_{n}_(_{n}_INT_)",
    "CREATE_TEMPORARY_TABLE_{n}_(_{n}_INT_)",
    "DROP_TABLE_{n}",
    "PREPARE_{n}_AS_SELECT_{e}",
    "DEALLOCATE_{n}",
];

const POSTGRES_TEXTS: &[&str] = &[
    "1",
    "1.5",
    "1e10",
    "'x'",
    "'it''s'",
    "'a;b'",
    "'-- x'",
    "'/* x'",
    "E'it\\'s; x'",
    "E'\\\\'",
    "'\\'",
    "$$a;b$$",
    "$x$ $$ ; $x$",
    "\"a;b\"",
    "\"a\"\"b\"",
    "a",
    "t.a",
    "lower('x')",
    "coalesce(a, 1)",
    "(1)",
    "(SELECT 1)",
    "CASE WHEN a THEN 1 ELSE 2 END",
    "a::int",
    "a - -1",
    "a / 2 * 3",
    "NULL",
    "my_function(1)",
    "nextval('s')",
    "pg_advisory_lock(1)",
    "currval('s')",
    "set_config('a', 'b', false)",
];

const MYSQL_TEXTS: &[&str] = &[
    "1",
    "1.5",
    "1e10",
    "'x'",
    "'it''s'",
    "'a;b'",
    "'-- x'",
    "'/* x'",
    "'it\\'s; x'",
    "'\\\\'",
    "\"a;b\"",
    "\"it\\\"s; x\"",
    "`a;b`",
    "a",
    "t.a",
    "lower('x')",
    "coalesce(a, 1)",
    "(1)",
    "(SELECT 1)",
    "CASE WHEN a THEN 1 ELSE 2 END",
    "a - -1",
    "a / 2 * 3",
    "NULL",
    "my_function(1)",
    "@a",
    "@@autocommit",
    "0xFF",
    "GET_LOCK('a', 1)",
    "LAST_INSERT_ID()",
    "CONNECTION_ID()",
    "FOUND_ROWS()",
];

/// Expressions that leave a trace or ask about the session: a statement with one must not be shareable.
const TELLING: &[&str] = &[
    "my_function(1)",
    "nextval('s')",
    "pg_advisory_lock(1)",
    "currval('s')",
    "set_config('a', 'b', false)",
    "@a",
    "@@autocommit",
    "GET_LOCK('a', 1)",
    "LAST_INSERT_ID()",
    "CONNECTION_ID()",
    "FOUND_ROWS()",
];

const BLANKS: &[&str] = &[" ", " ", " ", "\n", "\t", " /* ; ' */ ", " -- ; '\n"];
const NAMES: &[&str] = &["a", "b_2", "accounts", "\u{e9}t\u{e9}"];

/// What the choices of a test case are taken from.
struct Choices<'a> {
    numbers: &'a [usize],
    at: usize,
}

impl Choices<'_> {
    fn of(&mut self, list: &'static [&'static str]) -> &'static str {
        let number = self.numbers[self.at % self.numbers.len()] + self.at / self.numbers.len();
        self.at += 1;
        list[number % list.len()]
    }
}

/// A text, and whether one of its expressions is telling.
fn write(
    statements: usize,
    expressions: &'static [&'static str],
    choices: &mut Choices<'_>,
) -> (String, bool) {
    let mut text = String::new();
    let mut telling = false;
    for number in 0..statements {
        if number > 0 {
            text.push(';');
        }
        let template = choices.of(TEMPLATES);
        let mut rest = template;
        while let Some(next) = rest.chars().next() {
            if let Some(behind) = rest.strip_prefix("{e}") {
                let expression = choices.of(expressions);
                telling |= TELLING.contains(&expression);
                text.push_str(expression);
                rest = behind;
            } else if let Some(behind) = rest.strip_prefix("{n}") {
                text.push_str(choices.of(NAMES));
                rest = behind;
            } else {
                if next == '_' {
                    text.push_str(choices.of(BLANKS));
                } else {
                    text.push(next);
                }
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    (text, telling)
}

fn verb_of(statement: &Statement) -> Option<Verb> {
    Some(match statement {
        Statement::Query(_) => Verb::Select,
        Statement::Insert(_) => Verb::Insert,
        Statement::Update(_) => Verb::Update,
        Statement::Delete(_) => Verb::Delete,
        Statement::StartTransaction { .. } => Verb::Begin,
        Statement::Commit { .. } => Verb::Commit,
        Statement::Rollback { savepoint: Some(_), .. } => Verb::RollbackTo,
        Statement::Rollback { .. } => Verb::Rollback,
        Statement::Savepoint { .. } => Verb::Savepoint,
        Statement::Set(_) => Verb::Set,
        Statement::CreateTable(_) => Verb::Create,
        Statement::Drop { .. } => Verb::Drop,
        Statement::Prepare { .. } => Verb::Prepare,
        Statement::Deallocate { .. } => Verb::Deallocate,
        _ => return None,
    })
}

fn agrees(text: &str, class: &Class, parsed: &[Statement], telling: bool) -> Result<(), TestCaseError> {
    prop_assert!(!class.doubtful, "{text}");
    prop_assert_eq!(class.statements as usize, parsed.len(), "{}", text);
    let verbs: Vec<_> = parsed.iter().filter_map(verb_of).collect();
    prop_assert_eq!(verbs.len(), parsed.len(), "{}", text);
    prop_assert_eq!(Some(&class.verb), verbs.first(), "{}", text);
    let controls = [Verb::Begin, Verb::Commit, Verb::Rollback, Verb::RollbackTo, Verb::Savepoint];
    let controlled = verbs.iter().any(|verb| controls.contains(verb));
    prop_assert_eq!(class.uses.contains(Uses::TRANSACTION), controlled, "{}", text);
    let of_data = [Verb::Select, Verb::Insert, Verb::Update, Verb::Delete];
    let harmless = verbs.len() == 1 && of_data.contains(&verbs[0]) && !telling;
    prop_assert_eq!(class.shareable, harmless, "{}", text);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn a_parser_of_postgres_agrees(statements in 1usize..4, numbers in prop::collection::vec(0usize..1000, 20..60)) {
        let (text, telling) = write(statements, POSTGRES_TEXTS, &mut Choices { numbers: &numbers, at: 0 });
        if let Ok(parsed) = Parser::parse_sql(&PostgreSqlDialect {}, &text) {
            agrees(&text, &classify(Dialect::POSTGRES, text.as_bytes()), &parsed, telling)?;
        }
    }

    #[test]
    fn a_parser_of_mysql_agrees(statements in 1usize..4, numbers in prop::collection::vec(0usize..1000, 20..60)) {
        let (text, telling) = write(statements, MYSQL_TEXTS, &mut Choices { numbers: &numbers, at: 0 });
        // PREPARE ... AS and DEALLOCATE name are PostgreSQL's.
        if text.contains("PREPARE") || text.contains("DEALLOCATE") {
            return Ok(());
        }
        if let Ok(parsed) = Parser::parse_sql(&MySqlDialect {}, &text) {
            agrees(&text, &classify(Dialect::MYSQL, text.as_bytes()), &parsed, telling)?;
        }
    }
}

#[test]
fn the_oracle_understands_most_of_what_it_is_asked() {
    let mut understood = 0;
    for seed in 0..500usize {
        let numbers: Vec<usize> = (0..40).map(|i| (seed * 7919 + i * i * 104_729) % 1000).collect();
        let (text, _) = write(1, POSTGRES_TEXTS, &mut Choices { numbers: &numbers, at: 0 });
        understood += usize::from(Parser::parse_sql(&PostgreSqlDialect {}, &text).is_ok());
    }
    assert!(understood > 400, "{understood} of 500");
}
