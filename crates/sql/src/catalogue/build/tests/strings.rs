//! Strings that code runs: EXECUTE of PL/pgSQL, query_to_xml and the like.

use super::*;

/// The class of a call of a function that runs strings.
fn running(more: impl Fn(&mut Builder), body: &str) -> Class {
    let body: &'static str = Box::leak(format!("begin {body}; end").into());
    let c = catalogue(|b| {
        b.function(plpgsql("runs", body));
        more(b);
    });
    read(&c, "select runs()")
}

#[test]
fn a_string_that_code_runs_is_read_where_it_is_made_of_literals_and_quoted_values() {
    for body in [
        "execute 'insert into t values (1)'",
        "execute $q$insert into t values ('a''b')$q$ using new",
        "execute 'insert into t values ($1.*)' using new",
        "execute 'delete from t where id = ' || quote_literal(x)",
        "execute 'update t set a = ' || quote_nullable(old.a) || ', b = ' || quote_literal(lower(y)) || ' where true'",
        "execute 'insert into ' || quote_ident(tg_table_name) || ' values (1)'",
        "execute format('insert into %I values ($1.*)', part) using new",
        "execute format('insert into %I.%I (%I, %I) values (%L, %L)', a, b, c, d, e, f)",
        "execute format('update app.%1$I set %2$I = %3$L where id = %L and 100%% > 1', a, b, c)",
        "execute format('delete from %I where %I = $1', a, b) using c",
        "execute format('truncate %I', a)",
        "execute format('select count(*) from app.%I where %I > %L', a, b, c) into n",
        "return query execute format('select %I, %I from t order by %I', a, b, c) using d",
        "for r in execute 'select 1' loop perform 1; end loop",
        "execute 'select x.a, count(*) from t x join u on x.id = u.id group by 1' into n, m",
    ] {
        let class = running(|_| {}, body);
        assert!(class.pins.is_empty(), "{body}: {:?}", class.pins);
    }
}

#[test]
fn a_string_that_nobody_can_read_may_do_anything() {
    for body in [
        "execute x",
        "execute 'insert into t values (' || x || ')'",
        "execute format('insert into %s values (1)', x)",
        "execute format('insert into %10I values (1)', x)",
        "execute format('insert into t_%I values (1)', x)",
        "execute format('insert into %I_old values (1)', x)",
        "execute format('select ''%I''', x)",
        "execute 'select ''' || quote_ident(x) || ''''",
        "execute format('select 1 -- %I', x)",
        "execute format('select \"%I\"', x)",
        "execute format(x, y)",
        "execute format('create %I table t (a int)', x)",
        "execute format('select 1 into %I x', x)",
        "execute format('create table t as %I x', x)",
        "execute format('set %I = 1', x)",
        "execute format('set work_mem = %L', x)",
        "execute format('listen %I', x)",
        "execute format('select %I()', x)",
        "execute format('select %I(1)', x)",
        "execute format('select app.%I(1)', x)",
        "execute format('select * from %I', x)",
        "execute format('select * from %I.%I', x, y)",
        "execute format('select * from pg_catalog.%I', x)",
        "execute format('select * from t, %I', x)",
        "execute format('select * from (select 1 where true) y, %I', x)",
        "execute format('update %I set a = 1', x)",
        "execute format('table %I', x)",
        "execute format('insert into t table %I', x)",
        "execute E'select 1'",
        "execute 'select \\\\'",
        "execute 'select 1' 'x'",
        "execute (x)",
        "execute my.format('select 1')",
        "execute quote_ident(x)",
        "execute 'select not_there(1)'",
        "execute 'execute x'",
        "execute 'do $$ begin end $$'",
        "execute 'insert into t values (1)",
        "execute 'select ' || quote_literal(execute)",
        "execute $x$create or replace function g() returns int language sql as 'select 1'$x$; perform g()",
        "execute format('alter function g(int) set work_mem = %L', x); perform g(1)",
        "create or replace function g() returns int language sql as 'select 1'; perform count(*)",
    ] {
        let pins = running(|_| {}, body).pins;
        assert!(pins.contains(Pin::Code) || pins.contains(Pin::SqlPrepare), "{body}: {pins:?}");
    }
}

#[test]
fn a_string_that_code_runs_leaves_what_it_says() {
    let pins = |more: fn(&mut Builder), body: &str| running(more, body).pins;
    let none: fn(&mut Builder) = |_| {};
    assert!(pins(none, "execute 'set work_mem = 1'").contains(Pin::Setting));
    let sets = "execute 'select set_config(' || quote_literal(x) || ', $1, false)' using y";
    assert!(pins(none, sets).contains(Pin::Setting));
    assert!(pins(none, "execute format('create temp table %I (a int)', x)").contains(Pin::TemporaryTable));
    assert!(pins(none, "execute 'select pg_advisory_lock(1)'").contains(Pin::SessionLock));
    assert!(running(none, "execute format('create table %I (a int)', x)").ddl);
    let locks: fn(&mut Builder) = |b| {
        b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); return new; end"));
        b.trigger_of(b"orders", b"locks");
    };
    let is_lock = |pins: weir_wire::Pins| pins.contains(Pin::SessionLock) && !pins.contains(Pin::Code);
    assert!(is_lock(pins(locks, "execute format('insert into %I values (1)', x)")));
    assert!(is_lock(pins(locks, "execute format('select (t).%I from t', x)")));
    assert!(pins(locks, "execute format('select %I from t', x)").is_empty());
    assert!(pins(locks, "execute format('insert into t values (%L)', x)").is_empty());
    // Somebody's own function or operator makes another string of it.
    let function: fn(&mut Builder) = |b| b.function(plpgsql("format", "begin return 'x'; end"));
    assert!(pins(function, "execute format('select %L', x)").contains(Pin::Code));
    let operator: fn(&mut Builder) = |b| b.operator(b"text||text", b"lower");
    assert!(pins(operator, "execute 'select ' || quote_literal(x)").contains(Pin::Code));
    // One of other types is not meant where one side is a text. Of two literals nobody knows.
    let of_others: fn(&mut Builder) = |b| {
        b.function(plpgsql("hs_concat", "begin return 1; end"));
        b.operator(b"||", b"hs_concat");
    };
    assert!(pins(of_others, "execute 'select ' || quote_literal(x) || ' limit ' || '1'").is_empty());
    assert!(pins(of_others, "execute format('select %L', x) || ' limit 1'").is_empty());
    assert!(pins(of_others, "execute 'select ' || '1 limit ' || quote_literal(x)").contains(Pin::Code));
}

#[test]
fn a_literal_that_code_runs_in_the_midst_of_a_statement_is_read() {
    let locks: fn(&mut Builder) = |b| {
        b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); return new; end"));
        b.trigger_of(b"orders", b"locks");
    };
    for body in [
        "return query execute 'select $1, ''dyn''' using 10",
        "for r in execute 'select 1' loop return next r; end loop",
        "open c for execute 'select 1'",
        "open c for execute 'select $1' using x",
        "execute 'truncate table public.' || quote_ident('ps') || ' cascade'",
        "execute 'select ' || quote_ident('a') || ' from t'",
        "grant execute on function f(int) to public; perform 1",
    ] {
        assert_eq!(running(locks, body).pins, weir_wire::Pins::NONE, "{body}");
    }
    for body in [
        "return query execute 'select locks()' using 10",
        "return query execute 'select $1' using locks()",
        "for r in execute 'select locks()' loop return next r; end loop",
        "for r in execute 'select 1' loop perform locks(); end loop",
        "open c for execute 'select locks()'",
        "execute 'insert into ' || quote_ident('orders') || ' values (1)'",
        "execute 'select ' || quote_ident('locks') || '()'",
    ] {
        assert_eq!(running(locks, body).pins, Pin::SessionLock.into(), "{body}");
    }
    for body in [
        "return query execute x using 10",
        "for r in execute x loop return next r; end loop",
        "open c for execute 'select ' || x",
        "create table x as execute s",
        "execute 'create ' || quote_ident('temp') || ' table x (a int)'",
        "execute 'select ' || quote_ident('locks' || x) || '()'",
        "execute 'select ' || quote_ident('LOCKS') || '()'",
        "execute 'select ' || quote_ident('coalesce') || '()'",
    ] {
        let pins = running(locks, body).pins;
        assert!(pins.contains(Pin::Code) || pins.contains(Pin::SqlPrepare), "{body}: {pins:?}");
    }
}
