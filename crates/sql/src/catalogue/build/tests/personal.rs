//! Functions that are declared IMMUTABLE: whose value may be in a plan that others use.

use super::super::{Builder, Function, Language, On, Volatility};
use crate::{Class, Dialect, Uses};
use std::sync::Arc;

fn function(builder: &mut Builder, name: &str, volatility: Volatility, language: Language, body: &str) {
    let (name, body) = (name.as_bytes(), body.as_bytes());
    builder.function(Function { name, language, volatility, extension: b"", body });
}

/// Whether `f`, with this body, is its caller's own.
fn is_personal(body: &str, more: impl Fn(&mut Builder)) -> bool {
    let mut builder = Builder::new(Dialect::POSTGRES);
    for (name, settled) in [("lower", true), ("abs", true), ("format", false), ("to_tsvector", false)] {
        builder.system_function(name.as_bytes(), settled);
    }
    function(&mut builder, "f", Volatility::Immutable, Language::PlPgSql, body);
    function(&mut builder, "settled", Volatility::Immutable, Language::Sql, "SELECT abs($1)");
    function(&mut builder, "stable", Volatility::Stable, Language::Sql, "SELECT 1");
    more(&mut builder);
    let class: Class = super::by(Dialect::POSTGRES, "SELECT f(1)", &Arc::new(builder.finish()));
    class.uses.contains(Uses::CODE_IS_PERSONAL)
}

#[test]
fn a_value_that_is_the_same_for_everybody_may_be_in_anybodys_plan() {
    for body in [
        "begin return lower($1) || pg_catalog.abs(2); end",
        "begin return format('%s', settled($1)); end",
        "begin return $1::date + interval '1 day'; end",
    ] {
        assert!(!is_personal(body, |_| {}), "{body}");
    }
}

#[test]
fn what_a_function_asks_through_others_makes_it_its_caller_s() {
    for body in [
        "begin return current_user; end",
        "begin return current_setting('app.tenant'); end",
        "begin return stable(); end",
        "begin return to_tsvector($1); end",
        "begin return (select s.stable from t s); end",
        "begin execute 'select ' || 'sta' || 'ble()' into r; return r; end",
        "begin return \"stable\"(); end",
        "begin return (select setting from pg_settings); end",
        "begin return (select x from v); end",
        "begin return (select x from secret); end",
    ] {
        let more = |builder: &mut Builder| {
            builder.system_function(b"current_setting", false);
            builder.view(b"v", Language::Sql, b"SELECT 1 AS x");
            builder.text_of(b"secret", On::Read, Language::Expression, b"tenant = 1");
        };
        assert!(is_personal(body, more), "{body}");
    }
    // What it calls may itself be one.
    let over = |builder: &mut Builder| {
        function(builder, "g", Volatility::Immutable, Language::Sql, "SELECT stable()");
    };
    assert!(is_personal("begin return g(); end", over));
}

#[test]
fn what_runs_without_a_name_may_be_anywhere() {
    let body = "begin return lower($1); end";
    assert!(!is_personal(body, |builder| builder.operator(b"@@@", b"settled")));
    assert!(is_personal(body, |builder| builder.operator(b"@@@", b"stable")));
    assert!(is_personal(body, |builder| builder.ambient(b"stable")));
    assert!(is_personal(body, |builder| builder.ambient_text(b"VALUE = current_user")));
}
