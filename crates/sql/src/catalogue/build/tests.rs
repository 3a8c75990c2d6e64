mod alike;
mod blocks;
mod bodies;
mod objects;
mod personal;
mod strings;

use super::*;
use crate::catalogue::UnknownCode;
use crate::{Class, classify_in};
use std::sync::Arc;

fn plpgsql(name: &'static str, body: &'static str) -> Function<'static> {
    Function {
        name: name.as_bytes(),
        language: Language::PlPgSql,
        volatility: Volatility::Volatile,
        extension: b"",
        body: body.as_bytes(),
    }
}

fn catalogue(fill: impl Fn(&mut Builder)) -> Arc<Catalogue> {
    let mut builder = Builder::new(Dialect::POSTGRES);
    for name in [
        "now",
        "lower",
        "pg_switch_wal",
        "set_config",
        "format",
        "count",
        "quote_ident",
        "quote_literal",
        "quote_nullable",
    ] {
        builder.system_function(name.as_bytes(), false);
    }
    fill(&mut builder);
    Arc::new(builder.finish())
}

fn by(dialect: Dialect, text: &str, catalogue: &Arc<Catalogue>) -> Class {
    let proof = crate::catalogue::Proof {
        catalogue: Arc::clone(catalogue),
        state: 1,
        current: true,
        unknown_code: UnknownCode::Pin,
        changed: false,
    };
    classify_in(dialect, text.as_bytes(), Some(proof)).0
}

#[test]
fn a_catalogue_that_does_not_hold_any_more_still_pins_and_proves_nothing() {
    let c = catalogue(|b| b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); end")));
    let proof = || crate::catalogue::Proof {
        catalogue: Arc::clone(&c),
        state: 0,
        current: true,
        unknown_code: UnknownCode::Pin,
        changed: false,
    };
    let (class, state) = classify_in(Dialect::POSTGRES, b"select locks()", Some(proof()));
    assert!(class.pins.contains(Pin::SessionLock) && !class.proven && state == 0);
    assert!(!classify_in(Dialect::POSTGRES, b"select 1", Some(proof())).0.proven);
}

fn read(catalogue: &Arc<Catalogue>, text: &str) -> Class {
    let class = by(Dialect::POSTGRES, text, catalogue);
    assert!(class.proven);
    class
}

#[track_caller]
fn is_pure(catalogue: &Arc<Catalogue>, text: &str) {
    let class = read(catalogue, text);
    assert!(class.only_reads() && class.pins.is_empty(), "{text}: {class:?}");
}

#[track_caller]
fn is_not_pure(catalogue: &Arc<Catalogue>, text: &str) {
    assert!(!read(catalogue, text).only_reads(), "{text}");
}

#[track_caller]
fn pins(catalogue: &Arc<Catalogue>, text: &str, pin: Pin) {
    let class = read(catalogue, text);
    assert!(class.pins.contains(pin), "{text}: {class:?}");
    assert!(!class.only_reads(), "{text}");
}

#[track_caller]
fn leaves_nothing(catalogue: &Arc<Catalogue>, text: &str) {
    let class = read(catalogue, text);
    assert!(class.pins.is_empty(), "{text}: {class:?}");
}

#[test]
fn names_that_cannot_be_read_stand_for_all_of_their_kind() {
    let c = catalogue(|b| {
        b.function(plpgsql("gr\u{f6}\u{df}e", "begin insert into logs values (1); return 1; end"));
        let long = "x".repeat(63);
        b.function(Function { name: long.as_bytes(), ..plpgsql("", "begin insert into a values (1); end") });
    });
    is_not_pure(&c, "select gr\u{f6}\u{df}e(1)");
    is_not_pure(&c, "select U&\"gr\\00f6\\00dfe\"(1)");
    is_not_pure(&c, "select \"stra\u{df}e\" from t");
    is_not_pure(&c, &format!("select {}(1)", "x".repeat(70)));
    is_pure(&c, "select a from t");
}

#[test]
fn a_catalogue_that_cannot_be_read_proves_nothing() {
    let c = catalogue(Builder::is_incomplete);
    let class = by(Dialect::POSTGRES, "select a from t", &c);
    assert!(!class.proven && class.pins.contains(Pin::Code) && !class.only_reads());
}

#[test]
fn the_functions_of_a_version_are_read_once_for_all_of_its_catalogues() {
    let read = |version: &[u8], known, names: &[&str]| {
        let mut builder = Builder::new(Dialect::POSTGRES);
        builder.of_version(version, known);
        names.iter().for_each(|name| builder.system_function(name.as_bytes(), false));
        builder.function(plpgsql("calls", "begin perform of_this_version('A'); end"));
        Arc::new(builder.finish())
    };
    let first = read(b"15.1", None, &["of_this_version"]);
    let known = first.system_names(b"15.1");
    assert!(known.is_some() && first.system_names(b"16.0").is_none());
    let second = read(b"15.1", known, &[]);
    for catalogue in [&first, &second] {
        assert!(by(Dialect::POSTGRES, "select calls()", catalogue).pins.is_empty());
    }
    assert!(second.system_names(b"15.1").is_some());
    let unread = read(b"16.0", first.system_names(b"16.0"), &[]);
    assert!(by(Dialect::POSTGRES, "select calls()", &unread).pins.contains(Pin::Code));
    assert!(unread.system_names(b"16.0").is_none(), "nothing was read: next time it is asked for");
}

#[test]
fn a_name_in_escapes_stands_for_any_that_there_is() {
    let c = catalogue(|b| {
        b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); end"));
        b.view(b"v", Language::Sql, b"select locks()");
        b.trigger_of(b"t", b"sets");
        b.function(plpgsql("sets", "begin perform set_config('work_mem', '1MB', false); return new; end"));
    });
    for text in
        ["select x from U&\"\\0076\"", "insert into U&\"\\0074\" values (1)", "select (t).U&\"x\" from s t"]
    {
        let class = by(Dialect::POSTGRES, text, &c);
        assert!(class.pins.contains(Pin::SessionLock) && class.pins.contains(Pin::Setting), "{text}");
        assert!(!class.shareable, "{text}");
    }
    assert!(by(Dialect::POSTGRES, "select x from \"w\"", &c).pins.is_empty());
    // In code it may be anything, too.
    let c = catalogue(|b| b.function(plpgsql("reads", "begin return (select x from U&\"\\0076\"); end")));
    assert!(by(Dialect::POSTGRES, "select reads()", &c).pins.contains(Pin::Code));
}

#[test]
fn names_are_cut_at_the_end_of_a_character() {
    let short = "a".repeat(62);
    for longer in ["\u{e9}", "\u{20ac}x", "\u{1f600}"] {
        let name = format!("{short}{longer}");
        assert_eq!(NameKey::of(name.as_bytes()), NameKey::of(short.as_bytes()), "{name}");
    }
    let full = "b".repeat(63);
    assert_eq!(NameKey::of(format!("{full}\u{e9}").as_bytes()), NameKey::of(full.as_bytes()));
    assert_eq!(NameKey::of(format!("{}\u{e9}", "c".repeat(61)).as_bytes()), NameKey::UNREADABLE);
}
