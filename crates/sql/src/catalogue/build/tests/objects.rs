//! Objects that run code without being called: views, triggers, policies, operators, types.

use super::*;

#[test]
fn views_triggers_policies_defaults_and_partitions_run_code() {
    let c = catalogue(|b| {
        b.function(plpgsql("audit", "begin perform set_config('app.last', tg_name, false); return new; end"));
        b.function(plpgsql("writes", "begin insert into logs values (1); return 1; end"));
        b.trigger_of(b"orders", b"audit");
        b.view(b"v", Language::Sql, b"SELECT writes() AS x, o.id FROM orders o");
        b.view(b"vv", Language::Sql, b" SELECT x FROM v;");
        b.text_of(b"guarded", On::Read, Language::Expression, b"(owner = CURRENT_USER AND writes() > 0)");
        b.text_of(
            b"owned",
            On::Read,
            Language::Expression,
            b"(tenant = current_setting('app.tenant'::text, true))",
        );
        b.text_of(b"plain", On::Write, Language::Expression, b"CHECK ((a > 0))");
        b.text_of(b"plain", On::Write, Language::Expression, b"now()");
        b.text_of(b"odd", On::Write, Language::Expression, b"writes()");
        b.reaches(b"parent", b"orders");
        b.foreign(b"far");
    });
    is_pure(&c, "select * from orders");
    pins(&c, "insert into orders values (1)", Pin::Setting);
    pins(&c, "with x as (delete from orders returning id) select * from x", Pin::Setting);
    pins(&c, "update parent set a = 1", Pin::Setting);
    pins(&c, "copy orders from stdin", Pin::Setting);
    pins(&c, "explain analyze update orders set a = 1", Pin::Setting);
    is_not_pure(&c, "select * from vv where x = 1");
    leaves_nothing(&c, "select * from vv where x = 1");
    is_not_pure(&c, "select * from guarded");
    leaves_nothing(&c, "select * from owned");
    leaves_nothing(&c, "insert into plain values (1)");
    leaves_nothing(&c, "insert into odd values (1)");
    is_not_pure(&c, "select * from far");
}

#[test]
fn code_that_runs_without_being_named_concerns_every_text() {
    let c = catalogue(|b| {
        b.function(plpgsql("add_up", "begin insert into logs values (1); return 1; end"));
        b.function(plpgsql("on_ddl", "begin perform set_config('a.b', 'c', false); end"));
        b.ambient(b"add_up");
        b.event_trigger(b"on_ddl");
    });
    is_not_pure(&c, "select 1");
    leaves_nothing(&c, "select 1");
    pins(&c, "create table t (a int)", Pin::Setting);
}

#[test]
fn an_operator_named_with_its_schema_is_what_users_made_of_it() {
    let c = catalogue(|b| {
        b.function(plpgsql("opens", "begin return pg_advisory_lock($1) is null; end"));
        b.operator(b"===", b"opens");
        b.function(plpgsql("by_schema", "begin return 1 operator(public.===) 2; end"));
        b.function(plpgsql("built_in", "begin return 1 operator(pg_catalog.=) 2; end"));
        b.function(plpgsql("nobodys", "begin return 1 operator(public.<<<) 2; end"));
    });
    is_pure(&c, "select a operator(pg_catalog.~) 'x' from t");
    leaves_nothing(&c, "select built_in()");
    for text in ["select 1 operator(public.===) 2", "select 1 === 2", "select by_schema()"] {
        pins(&c, text, Pin::SessionLock);
        assert!(!read(&c, text).pins.contains(Pin::Code), "{text}");
    }
    pins(&c, "select 1 operator(public.<<<) 2", Pin::Code);
    pins(&c, "select nobodys()", Pin::Code);
}

#[test]
fn every_function_of_an_aggregate_is_read() {
    let aggregate = |name: &'static str, body: &'static str| Function {
        language: Language::Expression,
        ..plpgsql(name, body)
    };
    let c = catalogue(|b| {
        b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); return 1; end"));
        b.function(plpgsql("adds", "begin return $1 + $2; end"));
        b.function(aggregate("my_sum", "locks()"));
        b.function(aggregate("moving", "adds(), public.locks()"));
        b.function(aggregate("tenants", "set_config()"));
        b.function(aggregate("total", "adds()"));
        b.function(aggregate("collected", ""));
    });
    pins(&c, "select my_sum(a) from t", Pin::SessionLock);
    pins(&c, "select moving(a) from t", Pin::SessionLock);
    pins(&c, "select tenants('A', false)", Pin::Setting);
    for name in ["total", "collected"] {
        let class = read(&c, &format!("select {name}(a) from t"));
        assert!(class.only_reads() && class.pins.is_empty(), "{name}");
    }
}

#[test]
fn the_default_of_a_type_runs_with_any_write() {
    let c = catalogue(|b| {
        b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); return 1; end"));
        b.function(plpgsql("writes", "begin insert into t values (1); return 1; end"));
        b.type_default(b"locks()");
    });
    is_pure(&c, "select a from t");
    pins(&c, "insert into t (a) values (1)", Pin::SessionLock);
    pins(&c, "select writes()", Pin::SessionLock);
    leaves_nothing(&catalogue(|b| b.type_draws()), "insert into t (a) values (1)");
}

#[test]
fn a_built_in_function_that_leaves_something_does_so_as_an_operator_and_a_cast() {
    let c = catalogue(|b| {
        b.system_function(b"pg_try_advisory_lock", false);
        b.operator(b"####", b"pg_try_advisory_lock");
    });
    pins(&c, "select 5 #### 6", Pin::SessionLock);
    is_pure(&c, "select 5 + 6");
    let c = catalogue(|b| {
        b.system_function(b"pg_try_advisory_lock", false);
        b.ambient(b"pg_try_advisory_lock");
    });
    pins(&c, "select 85::bigint::boolean", Pin::SessionLock);
}

#[test]
fn maintenance_that_names_no_table_runs_the_code_of_all() {
    let c = catalogue(|b| {
        b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); return 1; end"));
        b.text_of(b"orders", On::Write, Language::Expression, b"locks()");
        b.function(plpgsql("analyzes", "begin analyze; end"));
        b.function(plpgsql("analyzes_one", "begin analyze other; end"));
    });
    for text in [
        "vacuum",
        "vacuum (full, verbose)",
        "vacuum full analyze",
        "analyze",
        "analyze verbose",
        "cluster",
        "reindex schema s",
        "reindex (verbose) database concurrently d",
        "reindex table orders",
        "vacuum (analyze) orders",
        "analyze other, orders (a)",
        "select analyzes()",
    ] {
        pins(&c, text, Pin::SessionLock);
    }
    for text in [
        "vacuum other",
        "vacuum full other",
        "vacuum (full) s.other (a)",
        "analyze other (a)",
        "reindex (verbose) table concurrently other",
        "reindex index \"other\"",
        "cluster other using i",
        "checkpoint",
        "select analyzes_one()",
    ] {
        leaves_nothing(&c, text);
    }
}

#[test]
fn event_triggers_hear_of_refresh_in_texts_and_in_code() {
    let c = catalogue(|b| {
        b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); end"));
        b.function(plpgsql("refreshes", "begin refresh materialized view v; end"));
        b.event_trigger(b"locks");
    });
    pins(&c, "refresh materialized view v", Pin::SessionLock);
    pins(&c, "select refreshes()", Pin::SessionLock);
    assert!(!read(&c, "refresh materialized view v").ddl);
    leaves_nothing(&c, "insert into t values (1)");
}

#[test]
fn a_function_whose_path_is_pg_temp_makes_temporary_tables() {
    let c = catalogue(|b| {
        for (name, path) in
            [("mine", "pg_temp"), ("theirs", "\"$user\", pg_temp, public"), ("usual", "public, pg_temp")]
        {
            b.function(plpgsql(name, "begin create table hidden (a int); end"));
            b.function_setting(name.as_bytes(), format!("search_path={path}").as_bytes());
        }
        b.function(plpgsql("calls", "begin perform makes(); end"));
        b.function(plpgsql("makes", "begin create table hidden (a int); end"));
        b.function_setting(b"calls", b"search_path=pg_temp");
        b.function(plpgsql("reads", "begin return 1; end"));
        b.function_setting(b"reads", b"search_path=pg_temp");
    });
    for name in ["mine", "theirs", "calls"] {
        pins(&c, &format!("select {name}()"), Pin::TemporaryTable);
    }
    leaves_nothing(&c, "select usual()");
    leaves_nothing(&c, "select reads()");
}

#[test]
fn who_keeps_code_in_something_temporary_keeps_its_server() {
    let c = catalogue(|b| {
        b.function(plpgsql("sets", "begin return set_config('work_mem', $1, false); end"));
        b.text_of(b"parent", On::Write, Language::Expression, b"sets('1MB')");
    });
    let stays = |text: &str| by(Dialect::POSTGRES, text, &c).pins.contains(Pin::Code);
    for text in [
        "create temp table t (a text default sets('1MB'))",
        "create temp view v as select sets('1MB')",
        "create temp table t (like parent including all)",
        "create policy p on pg_temp.t using (sets('1MB') is null)",
        "alter table pg_temp.t alter a set default sets('1MB')",
        "create temp table t (a int); create temp view v as select sets('1MB')",
    ] {
        assert!(stays(text), "{text}");
    }
    for text in [
        "create temp table t (a timestamptz default now(), b int default 0 check (b >= 0))",
        "create temp view v as select now()",
        "create temp table t as select sets('1MB') as a",
        "create table t (a text default sets('1MB'))",
        "create function f() returns int language sql set search_path = public, pg_temp as 'select sets()'",
    ] {
        assert!(!stays(text), "{text}");
    }
}
