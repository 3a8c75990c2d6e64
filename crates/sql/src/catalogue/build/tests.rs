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
        builder.system_function(name.as_bytes());
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
fn a_users_function_under_a_known_name_is_what_its_body_says() {
    let c = catalogue(|b| {
        b.function(plpgsql("log", "begin insert into logs values ($1); return 1; end"));
        b.function(plpgsql("match", "begin return $1 = $2; end"));
    });
    is_not_pure(&c, "select log('order created')");
    leaves_nothing(&c, "select log('order created')");
    is_not_pure(&c, "select s.LOG(2)");
    is_not_pure(&c, "select \"log\"(2)");
    is_not_pure(&c, "select * from t order by t.log");
    is_pure(&c, "select match(a, b) from t");
    is_pure(&c, "select lower(a) from t where id = 3");
    is_pure(&catalogue(|_| {}), "select log(10)");
}

#[test]
fn what_a_body_leaves_in_its_session_pins() {
    let c = catalogue(|b| {
        b.function(plpgsql("set_tenant", "begin perform set_config('app.tenant', $1, false); end"));
        b.function(plpgsql("local_tenant", "begin perform set_config('app.tenant', $1, true); end"));
        b.function(plpgsql("locks", "declare x bool; begin select pg_advisory_lock(1) into x; end"));
        b.function(plpgsql("sets", "begin if $1 then set work_mem = '1MB'; end if; end"));
        b.function(plpgsql("sets_local", "begin set local work_mem = '1MB'; update t set role = 1; end"));
        b.function(plpgsql("hears", "begin loop listen x; exit; end loop; end"));
        b.function(plpgsql("temp", "begin create temp table x (a int); end"));
        b.function(plpgsql("runs", "begin execute x; end"));
        b.function(plpgsql("boss", "begin set role boss; end"));
        b.function(plpgsql("calls", "begin return set_tenant('a'); end"));
        b.function(plpgsql("nobody", "begin perform not_there(1); end"));
    });
    pins(&c, "select set_tenant('A')", Pin::Setting);
    pins(&c, "select calls()", Pin::Setting);
    pins(&c, "call calls()", Pin::Setting);
    leaves_nothing(&c, "select local_tenant('A')");
    is_not_pure(&c, "select local_tenant('A')");
    pins(&c, "select locks()", Pin::SessionLock);
    assert!(read(&c, "select locks()").takes.contains(crate::Locks::ADVISORY));
    pins(&c, "select sets(true)", Pin::Setting);
    leaves_nothing(&c, "select sets_local()");
    pins(&c, "select hears()", Pin::Listen);
    pins(&c, "select temp()", Pin::TemporaryTable);
    pins(&c, "select runs()", Pin::Code);
    pins(&c, "select boss()", Pin::Setting);
    assert!(read(&c, "select boss()").uses.contains(crate::Uses::ROLE));
    pins(&c, "select nobody()", Pin::Code);
    pins(&c, "select never_heard_of(1)", Pin::Code);
    leaves_nothing(&c, "create table t (a int)");
    leaves_nothing(&c, "insert into t (a) values (1)");
    is_not_pure(&c, "select pg_switch_wal()");
    leaves_nothing(&c, "select pg_switch_wal()");
}

#[test]
fn a_block_leaves_what_its_body_says() {
    let c = catalogue(|b| {
        b.function(plpgsql("writes", "begin insert into logs values (1); return 1; end"));
        b.function(plpgsql("sets", "begin set work_mem = '1MB'; end"));
        b.function(plpgsql("audit", "begin perform pg_advisory_lock(1); return new; end"));
        b.trigger_of(b"orders", b"audit");
    });
    leaves_nothing(&c, "do $$ begin end $$");
    leaves_nothing(
        &c,
        "do $$ declare n int; begin insert into t values (1); n := writes(); raise notice '%', n; end $$",
    );
    leaves_nothing(
        &c,
        "DO LANGUAGE plpgsql $x$ begin set local work_mem = '1MB'; perform set_config('app.x', $$a$$, true); end $x$;",
    );
    leaves_nothing(&c, "do $$ begin insert into t values (1); commit; insert into t values (2); end $$");
    is_not_pure(&c, "do $$ begin end $$");
    pins(&c, "do $$ begin perform sets(); end $$", Pin::Setting);
    pins(&c, "do $$ begin set work_mem = '2MB'; end $$", Pin::Setting);
    let sets = read(&c, "do $$ begin set work_mem = '2MB'; end $$");
    assert_eq!(sets.touched().unwrap().sets.iter().collect::<Vec<_>>(), ["work_mem"]);
    pins(&c, "do $$ begin insert into orders values (1); end $$", Pin::SessionLock);
    pins(&c, "do $$ begin create temp table x (a int); end $$", Pin::Code);
    leaves_nothing(&c, "do $$ begin create table x (a int); end $$");
    pins(&c, "do $$ begin execute x; end $$", Pin::Code);
    pins(&c, "do $$ begin perform not_there(1); end $$", Pin::Code);
    pins(&c, "do $$ begin set work_mem = '2MB'; commit; perform 1 / 0; end $$", Pin::Code);
    pins(&c, "do $$ begin perform sets(); commit; perform 1 / 0; end $$", Pin::Code);
    pins(&c, "do language plperl $$ 1 $$", Pin::Code);
    pins(&c, "do 'begin end'", Pin::Code);
    leaves_nothing(&c, "do $$ begin end $$; do $$ begin end $$");
    assert!(read(&c, "do $$ begin create table x (a int); end $$").ddl);
    assert!(!read(&c, "do $$ begin end $$").ddl);
}

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
fn compiled_code_is_believed_when_it_says_that_it_does_not_write() {
    let of = |name: &'static str, volatility, extension: &'static str| Function {
        name: name.as_bytes(),
        language: Language::Compiled,
        volatility,
        extension: extension.as_bytes(),
        body: b"x",
    };
    let c = catalogue(|b| {
        b.function(of("similarity", Volatility::Stable, "pg_trgm"));
        b.function(of("set_limit", Volatility::Volatile, "pg_trgm"));
        b.function(of("gen_salt", Volatility::Volatile, "pgcrypto"));
        b.function(of("mystery", Volatility::Volatile, "mine"));
        b.function(of("crosstab", Volatility::Stable, "tablefunc"));
        b.function(of("plain_c", Volatility::Immutable, "mine"));
        b.function(Function { language: Language::Other, ..of("snake", Volatility::Stable, "") });
    });
    is_pure(&c, "select similarity(a, b) from t");
    is_pure(&c, "select gen_salt('bf')");
    pins(&c, "select set_limit(0.1)", Pin::Code);
    pins(&c, "select mystery()", Pin::Code);
    pins(&c, "select snake()", Pin::Code);
    pins(&c, "select * from crosstab('select set_config(1, 2, 3)')", Pin::Code);
    is_pure(&c, "select plain_c(1)");
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
fn bodies_of_sql_and_of_mysql_are_read() {
    let mut b = Builder::new(Dialect::MySql {
        ansi_quotes: false,
        no_backslash_escapes: false,
        mariadb: false,
        encoding: crate::Encoding::Utf8,
    });
    for name in ["sql_mode", "time_zone", "sort_buffer_size"] {
        b.system_variable(name.as_bytes());
    }
    let routine = |name: &'static str, body: &'static str| Function {
        name: name.as_bytes(),
        language: Language::Routine,
        volatility: Volatility::Volatile,
        extension: b"",
        body: body.as_bytes(),
    };
    b.function(routine("p_mode", "BEGIN SET sql_mode = 'ANSI'; END"));
    b.function(routine("p_at", "BEGIN DECLARE x INT DEFAULT 1; IF x THEN SET @a = x; END IF; END"));
    b.function(routine(
        "p_local",
        "BEGIN DECLARE x, y INT; SET x = 1, y = 2; SELECT COUNT(*) INTO x FROM t; END",
    ));
    b.function(routine("p_into", "SELECT 1 INTO @b"));
    b.function(routine("f_lock", "RETURN GET_LOCK('a', 0)"));
    b.function(routine(
        "p_handler",
        "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION SET time_zone = '+09:00'; SELECT 1; END",
    ));
    b.function(routine(
        "p_handler_locks",
        "BEGIN DECLARE EXIT HANDLER FOR SQLSTATE VALUE '45000', NOT FOUND, 1062 FLUSH TABLES t WITH READ LOCK; END",
    ));
    b.function(routine("p_two", "BEGIN DECLARE x, y INT; SET x = 1, y = (@a := 3); END"));
    b.function(routine("f_set_lock", "BEGIN DECLARE x INT; SET x = GET_LOCK('a', 0); RETURN x; END"));
    b.function(routine("f_div", "BEGIN DECLARE x INT; SET x = i DIV @a; RETURN x; END"));
    b.function(routine("f_like", "BEGIN DECLARE x INT; SET x = 'abc' LIKE @p; RETURN x; END"));
    b.function(routine("p_warnings", "SHOW WARNINGS"));
    b.function(routine("p_diag", "BEGIN DECLARE m TEXT; GET DIAGNOSTICS CONDITION 1 m = MESSAGE_TEXT; END"));
    b.function(routine(
        "p_handled",
        "BEGIN DECLARE m TEXT; DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN IF 1 THEN GET DIAGNOSTICS CONDITION 1 m = \
         MESSAGE_TEXT; END IF; GET DIAGNOSTICS m = NUMBER; END; DECLARE CONTINUE HANDLER FOR NOT FOUND GET \
         DIAGNOSTICS m = NUMBER; DELETE FROM t; END",
    ));
    b.function(routine(
        "p_behind",
        "BEGIN DECLARE m TEXT; DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SET m = 1; END; SHOW WARNINGS; END",
    ));
    b.text_of(b"columns", On::Write, Language::Routine, b"SET NEW.c = (@b := 9)");
    b.function(routine("f_pure", "RETURN LOWER(a)"));
    b.function(routine(
        "p_page",
        "BEGIN DECLARE x INT; SELECT a FROM orders; SELECT FOUND_ROWS(), ROW_COUNT(); END",
    ));
    b.function(routine("p_asks", "BEGIN SELECT FOUND_ROWS(); SELECT FOUND_ROWS(); END"));
    b.function(routine("p_may_ask", "BEGIN IF 1 THEN SELECT 1; END IF; SELECT FOUND_ROWS(); END"));
    b.function(routine(
        "p_goes_on",
        "BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; SELECT a FROM orders; SELECT FOUND_ROWS(); END",
    ));
    b.function(routine("p_into_asks", "BEGIN SELECT max(a) INTO x FROM orders; SELECT FOUND_ROWS(); END"));
    b.function(routine("p_raise", "IF 1 THEN SIGNAL SQLSTATE '01234' SET MYSQL_ERRNO = 1365; END IF"));
    b.text_of(b"watched", On::Write, Language::Routine, b"CALL p_raise()");
    b.function(routine("p_temp", "l: BEGIN CREATE TEMPORARY TABLE x (a INT); END"));
    b.text_of(b"orders", On::Write, Language::Routine, b"SET NEW.a = f_lock()");
    b.view(b"some_orders", Language::Routine, b"select `app`.`orders`.`a` AS `a` from `app`.`orders`");
    let c = Arc::new(b.finish());
    let dialect = Dialect::MySql {
        ansi_quotes: false,
        no_backslash_escapes: false,
        mariadb: false,
        encoding: crate::Encoding::Utf8,
    };
    let pins = |text: &str| by(dialect, text, &c).pins;
    assert!(pins("CALL p_mode()").contains(Pin::Setting));
    assert!(pins("CALL p_at()").contains(Pin::UserVariable));
    assert!(pins("CALL p_local()").is_empty(), "{:?}", pins("CALL p_local()"));
    assert!(pins("CALL p_into()").contains(Pin::UserVariable));
    assert!(pins("SELECT f_lock()").contains(Pin::SessionLock));
    assert!(pins("CALL p_handler()").contains(Pin::Setting));
    let raises = |text: &str| by(dialect, text, &c).uses.contains(Uses::RAISES);
    assert!(raises("CALL p_raise()") && raises("INSERT INTO watched VALUES (1)") && raises("SIGNAL a"));
    assert!(!raises("CALL p_local()") && !raises("INSERT INTO orders VALUES (1)"));
    assert!(pins("CALL p_temp()").contains(Pin::TemporaryTable));
    assert!(pins("INSERT INTO orders VALUES (1)").contains(Pin::SessionLock));
    assert!(pins("INSERT INTO some_orders VALUES (1)").contains(Pin::SessionLock));
    assert!(pins("SELECT * FROM orders").is_empty() && pins("SELECT * FROM some_orders").is_empty());
    assert!(by(dialect, "SELECT f_pure('A')", &c).only_reads());
    let asks =
        |text: &str| by(dialect, text, &c).uses.intersects(Uses::CODE_FOUND_ROWS | Uses::CODE_ROW_COUNT);
    assert!(!asks("CALL p_page()"), "it asks of its own");
    assert!(
        asks("CALL p_asks()")
            && asks("CALL p_may_ask()")
            && asks("CALL p_goes_on()")
            && asks("CALL p_into_asks()")
    );
    let variables = |text: &str| {
        let class = by(dialect, text, &c);
        class.user_variables().map(|names| names.iter().map(str::to_owned).collect::<Vec<_>>().join(","))
    };
    assert_eq!(variables("CALL p_at()").as_deref(), Some("a"));
    assert_eq!(variables("CALL p_into()").as_deref(), Some("b"));
    assert_eq!(variables("CALL p_local()"), None);
    // The statement of a handler may be any.
    assert!(pins("CALL p_handler_locks()").contains(Pin::SessionLock));
    // The value of a local variable, or of a row's column, does what it does.
    assert!(pins("CALL p_two()").contains(Pin::UserVariable));
    assert!(!pins("CALL p_two()").contains(Pin::Setting));
    assert!(pins("SELECT f_set_lock()").contains(Pin::SessionLock));
    assert!(pins("INSERT INTO columns VALUES (1)").contains(Pin::UserVariable));
    // Behind an operator that is a word stands no host of an account.
    assert_eq!(variables("SELECT f_div(100)").as_deref(), Some("a"));
    assert_eq!(variables("SELECT f_like(1)").as_deref(), Some("p"));
    let shows = |text: &str| by(dialect, text, &c).uses.contains(Uses::CODE_WARNINGS);
    assert!(shows("CALL p_warnings()") && shows("CALL p_diag()") && !shows("CALL p_local()"));
    assert!(!shows("CALL p_handled()") && shows("CALL p_behind()"));
}

#[test]
fn a_return_of_a_subquery_only_reads() {
    let c = catalogue(|b| {
        b.function(plpgsql("of_many", "begin return (select 1 + count(*) from t where oid = 0); end"));
        b.function(plpgsql("of_one", "begin return (select i from t); end"));
        b.function(plpgsql("of_none", "begin return (select 1); end"));
        b.function(plpgsql("branches", "begin if (f() > 0) then return (1); elsif (true) then return (2); end if; while (false) loop null; end loop; end"));
        b.function(plpgsql("f", "declare x int; begin x := (select 1); return (x); end"));
        b.function(plpgsql("captures", "declare r int; begin select count(*) into r from t; return r; end"));
    });
    for name in ["of_none", "of_one", "of_many", "branches", "captures"] {
        is_pure(&c, &format!("select {name}()"));
    }
    let c = catalogue(|b| {
        b.function(plpgsql("hidden", "begin if (pg_advisory_lock(1) is null) then return (1); end if; end"))
    });
    pins(&c, "select hidden()", Pin::SessionLock);
}

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
fn a_block_that_changes_the_catalogue_for_good_leaves_what_its_code_does() {
    let c = catalogue(|b| {
        b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); return 1; end"));
        b.function(plpgsql("makes", "begin create view w as select 1; end"));
        b.trigger_of(b"orders", b"locks");
    });
    for body in [
        "create type e as enum ('a'); exception when duplicate_object then null",
        "if not exists (select 1 from pg_type where typname = 'e') then create type e as (a int); end if",
        "alter table t add column if not exists k int default 1",
        "alter table t add constraint c foreign key (a) references u (id)",
        "create table if not exists z (i int primary key, v numeric(10, 2) check (v > 0)); insert into z values (1)",
        "create unlogged table z (i int)",
        "create index if not exists i on t (k); create unique index j on t (lower(k))",
        "drop table if exists z; drop function if exists f(int)",
        "truncate t",
        "grant select on t to public; revoke all on t from public; grant execute on function f(int) to a",
        "comment on table t is 'x'",
        "execute 'create table z (i int)'; execute 'alter table ' || quote_ident('ps') || ' add column k int'",
        "create schema s; create sequence q; alter table t rename to u; alter type e add value 'b'",
    ] {
        let text = format!("do $$ begin {body}; end $$");
        leaves_nothing(&c, &text);
        let class = read(&c, &text);
        assert_eq!(class.ddl, !class.only_reads(), "{text}");
        leaves_nothing(&c, &format!("select 1; {text}; select 2"));
    }
    for body in [
        "alter table orders add column k int",
        "create table z (a int default locks())",
        "create index i on t (locks())",
        "alter table t add check (locks() = 1)",
        "create table z (like orders including all)",
        "create table z partition of orders default",
        "execute 'create index i on t (locks())'",
    ] {
        let pins = read(&c, &format!("do $$ begin {body}; end $$")).pins;
        assert_eq!(pins, Pin::SessionLock.into(), "{body}");
    }
    for body in [
        "create view v as select 1",
        "create function f() returns int language sql as 'select 1'",
        "create trigger x before insert on t execute function f()",
        "alter table t enable trigger all",
        "create rule r as on insert to t do also select f()",
        "create domain d as int check (value > 0)",
        "create extension x",
        "create event trigger x on ddl_command_end execute function f()",
        "create type r as range (subtype = int)",
        "create type b (input = f, output = g)",
        "create table z as select f()",
        "import foreign schema s from server x into public",
        "perform makes()",
        "set search_path = pg_temp; create table z (a int)",
        "set local search_path = 'pg_temp', public; create table z (a int)",
        "perform set_config('search_path', x, true); create table z (a int)",
        "create temp table z (a int)",
        "create table pg_temp.z (a int)",
        "execute 'create temp table z (a int)'",
        "create table z (a int); commit",
        "execute 'create view v as select 1'",
        "create operator ### (leftarg = int, function = f)",
    ] {
        pins(&c, &format!("do $$ begin {body}; end $$"), Pin::Code);
    }
    let c = catalogue(|b| {
        b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); end"));
        b.function(plpgsql("alters", "begin alter table t add column k int; end"));
        b.event_trigger(b"locks");
    });
    pins(&c, "do $$ begin create table z (a int); end $$", Pin::SessionLock);
    pins(&c, "select alters()", Pin::SessionLock);
}

#[test]
fn a_block_beside_other_statements_leaves_what_its_body_says() {
    let c = catalogue(|b| b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); return 1; end")));
    for text in [
        "do $$ begin raise notice 'x'; end $$; select 1",
        "select 1; do $$ begin raise notice 'x'; end $$",
        "begin; do $$ begin perform 1; end $$; commit",
        "do $$ begin end $$; do language plpgsql $x$ begin end $x$;",
        "/* a */ do $$ begin end $$ -- b",
        "select 1; /* a */ do $$ begin end $$ /* b */; select 'do $$ begin end $$'",
    ] {
        leaves_nothing(&c, text);
    }
    pins(&c, "select 1; do $$ begin perform locks(); end $$", Pin::SessionLock);
    pins(&c, "do $$ begin end $$; do $$ begin perform locks(); end $$; select 1", Pin::SessionLock);
    for text in [
        "select 1; do $$ begin execute x; end $$",
        "do $$ begin end $$; do language plperl $$ x $$",
        "do $$ begin end $$; do ' begin end '",
        "call locks(); do $$ begin execute x; end $$",
        "do $$ begin end $$; do $$ begin execute x; end $$",
    ] {
        pins(&c, text, Pin::Code);
    }
}

#[test]
fn statements_that_only_define_are_known() {
    let c = catalogue(|_| {});
    for text in [
        "BEGIN;ALTER TABLE \"t\" DISABLE TRIGGER USER;COMMIT",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (true)",
        "ALTER TABLE IF EXISTS ONLY s.\"T\" * FORCE ROW LEVEL SECURITY, OWNER TO a; ALTER TABLE t RENAME TO u",
        "CREATE VIEW v AS SELECT f(1) FROM t; GRANT SELECT ON v TO PUBLIC",
        "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; COMMENT ON FUNCTION f() IS 'x'",
        "BEGIN; CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f(); COMMIT",
        "SET lock_timeout = '1s'; DROP VIEW v; CREATE VIEW v AS SELECT 1; RESET lock_timeout",
        "DROP POLICY p ON t; CREATE CONSTRAINT TRIGGER x AFTER INSERT ON t EXECUTE FUNCTION f()",
        "DROP FUNCTION f(); /* x */ CREATE TYPE mood AS ENUM ('glad', 'bad'); CREATE DOMAIN d AS int CHECK (f(value))",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE UNLOGGED TABLE IF NOT EXISTS t \
         (a numeric(3, 2) DEFAULT f(), b int GENERATED ALWAYS AS (a + 1) STORED, CHECK (f(a))) WITH (fillfactor = 10)",
    ] {
        assert!(read(&c, text).only_defines, "{text}");
    }
    for text in [
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; SELECT f()",
        "BEGIN; CREATE OR REPLACE FUNCTION f() RETURNS trigger LANGUAGE sql AS 'SELECT 1'; COMMIT",
        "CREATE TRIGGER x BEFORE INSERT ON t EXECUTE FUNCTION f(); INSERT INTO t VALUES (1)",
        "ALTER TABLE t DISABLE TRIGGER ALL, ADD COLUMN a int; CREATE VIEW v AS SELECT 1",
        "ALTER TABLE t VALIDATE CONSTRAINT c; CREATE VIEW v AS SELECT 1",
        "ALTER TABLE t; CREATE VIEW v AS SELECT 1",
        "CREATE VIEW v AS SELECT 1; SET CONSTRAINTS ALL IMMEDIATE",
        "CREATE MATERIALIZED VIEW v AS SELECT f(); DROP VIEW w",
        "CREATE EVENT TRIGGER x ON ddl_command_end EXECUTE FUNCTION f(); CREATE VIEW v AS SELECT 1",
        "ALTER EVENT TRIGGER x ENABLE; CREATE VIEW v AS SELECT 1",
        "CREATE TABLE t AS SELECT f(); CREATE VIEW v AS SELECT 1",
        "CREATE TEMP TABLE t (a) AS SELECT f(); CREATE VIEW v AS SELECT 1",
        "CREATE TABLE t PARTITION OF u FOR VALUES FROM (f(1)) TO (9); CREATE VIEW v AS SELECT 1",
        "CREATE TABLE t (LIKE u INCLUDING ALL); CREATE VIEW v AS SELECT 1",
        "CREATE TABLE t (a int, EXCLUDE USING gist (f(1) WITH =)); CREATE VIEW v AS SELECT 1",
        "CREATE FOREIGN TABLE t (a int) SERVER s; CREATE VIEW v AS SELECT 1",
        "CREATE INDEX i ON t (f(a)); CREATE VIEW v AS SELECT 1",
        "CREATE VIEW v AS SELECT 1; DO $$ BEGIN END $$",
        "CREATE VIEW v AS SELECT 1; CALL p()",
        "CREATE VIEW v AS SELECT 1; SELECT 1",
        "CREATE EXTENSION x; CREATE VIEW v AS SELECT 1",
        "CREATE OPERATOR ### (leftarg = int, function = f); CREATE VIEW v AS SELECT 1",
        "IMPORT FOREIGN SCHEMA s FROM SERVER x INTO y; CREATE VIEW v AS SELECT 1",
    ] {
        assert!(!read(&c, text).only_defines, "{text}");
    }
    let c = catalogue(|b| {
        b.function(plpgsql("nothing", "begin end"));
        b.event_trigger(b"nothing");
    });
    assert!(!read(&c, "CREATE VIEW v AS SELECT 1; DROP VIEW v").only_defines);
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

#[test]
fn variables_may_be_called_like_statements() {
    let c = catalogue(|b| {
        b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); return 1; end"));
        b.function(plpgsql(
            "f",
            "declare id int; sql text; value int := 1; count bigint = 0; data jsonb; status text; \
             query text; comment text; lock int; session text; statement int; event text; role text; \
             repeat int; load int; do int; copy int[]; help record; handler t.kill%type; kill alias for $1; \
             begin id := 1; sql = 'x'; value:=id + 1; count [1] := 2; help.a := 3; lock . b := 4; \
             if id = 1 then status := 'x'; else comment := 'y'; end if; \
             loop query := 'z'; exit; end loop; declare role text; begin role := 'a'; end; \
             return copy; end",
        ));
        b.function(plpgsql("by_value", "declare id int := locks(); begin return id; end"));
        b.function(plpgsql("by_default", "declare a int; id int default locks(); begin end"));
        b.function(plpgsql("by_assignment", "declare id int; begin id := locks(); end"));
        b.function(plpgsql("by_field", "declare load r; begin load.a = locks(); end"));
        b.function(plpgsql("by_index", "declare id int; begin copy[locks()] := 1; end"));
        b.function(plpgsql("by_cursor", "declare id cursor for select locks(); begin open id; end"));
        b.function(plpgsql("runs", "declare id int; begin load 'x'; end"));
        b.function(plpgsql("selects", "begin select .5 + locks(); end"));
        b.function(plpgsql("locked", "declare lock int; begin discard temp; end"));
        b.function(plpgsql("sets", "declare a int; set int; begin set work_mem = 1; end"));
    });
    leaves_nothing(&c, "select f(1)");
    for name in ["by_value", "by_default", "by_assignment", "by_field", "by_index", "by_cursor", "selects"] {
        pins(&c, &format!("select {name}()"), Pin::SessionLock);
    }
    pins(&c, "select runs()", Pin::Load);
    pins(&c, "select locked()", Pin::Code);
    pins(&c, "select sets()", Pin::Setting);
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
fn unknown_code_pins_unless_the_operator_says_otherwise() {
    let c = catalogue(|b| {
        b.function(plpgsql("runs", "begin execute x; end"));
        b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); execute x; end"));
        b.function(plpgsql("sets", "begin perform set_config(x, y, false); execute x; end"));
    });
    let by = |policy: UnknownCode, text: &str| {
        let proof = crate::catalogue::Proof {
            catalogue: Arc::clone(&c),
            state: 1,
            current: true,
            unknown_code: policy,
            changed: false,
        };
        classify_in(Dialect::POSTGRES, text.as_bytes(), Some(proof)).0
    };
    let texts = [
        "select runs()",
        "select never_heard_of()",
        "do $$ begin execute x; end $$",
        "select query_to_xml('x')",
    ];
    for text in texts {
        let class = by(UnknownCode::Pin, text);
        assert!(class.pins.contains(Pin::Code) && class.unknown_code == UnknownCode::Pin, "{text}");
        for policy in [UnknownCode::Reset, UnknownCode::Pass] {
            let class = by(policy, text);
            assert!(class.pins.is_empty() && class.unknown_code == policy && !class.only_reads(), "{text}");
            assert!(
                !class.uses.contains(crate::Uses::ROLE) && class.touched().is_none(),
                "{text}: {class:?}"
            );
        }
    }
    // What is known besides counts as it is.
    assert_eq!(by(UnknownCode::Pass, "select locks()").pins, Pin::SessionLock.into());
    assert_eq!(by(UnknownCode::Pass, "select sets()").pins, Pin::Setting.into());
    assert_eq!(by(UnknownCode::Reset, "select 1").unknown_code, UnknownCode::Pin);
}

#[test]
fn only_what_is_the_same_for_all_is_alike() {
    let function = |name: &'static str, language, volatility, body: &'static str| Function {
        name: name.as_bytes(),
        language,
        volatility,
        extension: b"",
        body: body.as_bytes(),
    };
    let c = catalogue(|b| {
        b.function(function("twice", Language::Sql, Volatility::Immutable, "select $1 * 2"));
        b.function(function("computes", Language::Compiled, Volatility::Immutable, "computes"));
        b.view(b"plain", Language::Sql, b"SELECT t.a, lower(t.b) AS b FROM t;");
        b.view(b"dice", Language::Sql, b"SELECT random() AS r;");
        b.view(b"over_dice", Language::Sql, b"SELECT dice.r FROM dice;");
        b.view(b"today", Language::Sql, b"SELECT CURRENT_DATE AS d;");
        b.text_of(b"guarded", On::Read, Language::Expression, b"(who = CURRENT_USER)");
        b.foreign(b"far");
        b.reads(b"parts", b"far");
        b.varying(b"made");
    });
    for text in [
        "select c from t where id = 1",
        "select count(*), lower(b) from t group by 2 having count(*) > 1 order by 1 limit 3",
        "select * from plain join u using (a) where computes(a) = 1",
        "select 1 as now, uuid from t where random = 'now()' -- random()",
        "values (1, 'x'), (2, 'y')",
        "with x as (select a from t) select * from x",
    ] {
        assert!(read(&c, text).is_alike(), "{text}: {:?}", read(&c, text));
    }
    for text in [
        "select random()",
        "select pg_catalog.random() from t",
        "select \"random\"() from t",
        "select now()",
        "select current_timestamp from t",
        "select localtime",
        "select gen_random_uuid()",
        "select * from t where u = current_user",
        "select user",
        "select * from t tablesample system (1)",
        "select * from pg_class",
        "select * from \"pg_locks\"",
        "select * from information_schema.tables",
        "select twice(1)",
        "select r from dice",
        "select r from over_dice",
        "select d from today",
        "select * from guarded",
        "select * from far",
        "select * from parts",
        "select * from made",
        "select a from t for update",
        "select current_setting('x.y')",
        "select nextval('s')",
        "select txid_current()",
        "select pg_backend_pid()",
        "select unheard_of()",
        "insert into t values (1)",
        "select 1; select 2",
        "show timezone",
        "begin",
    ] {
        assert!(!read(&c, text).is_alike(), "{text}");
    }
    // Without a catalogue nothing is known.
    assert!(!crate::classify(Dialect::POSTGRES, b"select c from t where id = 1").is_alike());
}

#[test]
fn the_same_of_mysql() {
    for mariadb in [false, true] {
        let dialect = Dialect::MySql {
            ansi_quotes: false,
            no_backslash_escapes: false,
            mariadb,
            encoding: crate::Encoding::Utf8,
        };
        let mut builder = Builder::new(dialect);
        builder.view(b"plain", Language::Routine, b"select `t`.`a` AS `a` from `db`.`t`");
        builder.view(b"dice", Language::Routine, b"select rand() AS `r`");
        builder.view(b"lists", Language::Routine, b"select `id` from `information_schema`.`processlist`");
        builder.varying(b"made");
        let c = Arc::new(builder.finish());
        let alike = |text: &str| by(dialect, text, &c).is_alike();
        for text in [
            "select c from t where id = 1",
            "select uuid, user from `t`",
            "select concat(a, lower(b)) from plain",
        ] {
            assert!(alike(text), "{text}: {:?}", by(dialect, text, &c));
        }
        for text in [
            "select rand()",
            "select uuid() from t",
            "select now(6)",
            "select current_timestamp",
            "select utc_date from t",
            "select default(a) from t",
            "select user()",
            "select database()",
            "select @@version",
            "select @a",
            "select last_insert_id()",
            "select connection_id()",
            "select found_rows()",
            "select sql_calc_found_rows a from t",
            "select * from information_schema.tables",
            "select * from `performance_schema`.x",
            "select * from mysql.user",
            "select /*! a */ from t",
            "select sleep(1) from t",
            "select a from t for update",
            "select a from t lock in share mode",
            "select a into outfile 'x' from t",
            "select db.f(1)",
            "select r from dice",
            "select * from `lists`",
            "select * from made",
            "select a from t; select b from t",
        ] {
            assert!(!alike(text), "{text}");
        }
    }
}

#[test]
fn the_functions_of_a_version_are_read_once_for_all_of_its_catalogues() {
    let read = |version: &[u8], known, names: &[&str]| {
        let mut builder = Builder::new(Dialect::POSTGRES);
        builder.of_version(version, known);
        names.iter().for_each(|name| builder.system_function(name.as_bytes()));
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
fn writes_behind_return_query_for_and_open_are_writes() {
    let c = catalogue(|b| {
        b.function(plpgsql("audit", "begin perform pg_advisory_lock(1); return new; end"));
        b.trigger_of(b"orders", b"audit");
        b.function(plpgsql(
            "inserts",
            "begin return query insert into orders (a) values (1) returning a; end",
        ));
        b.function(plpgsql(
            "updates",
            "begin for r in update orders set a = 1 returning a loop null; end loop; end",
        ));
        b.function(plpgsql(
            "opens",
            "begin open c for with d as (delete from orders returning a) select a from d; end",
        ));
        b.function(plpgsql(
            "declares",
            "declare c cursor for delete from orders returning a; begin open c; end",
        ));
        b.function(plpgsql(
            "pops",
            "begin return query with d as (delete from jobs where a = (select min(a) from jobs) returning a) \
             select a from d; end",
        ));
        b.function(plpgsql(
            "reads",
            "begin return query with d as (select a from orders) select a from d; end",
        ));
        b.function(plpgsql("each", "begin for r in select a from orders loop return next r; end loop; end"));
        b.function(plpgsql(
            "locks_rows",
            "begin for r in select a from orders for update loop null; end loop; end",
        ));
        b.function(plpgsql("asks", "begin if tg_op in ('DELETE') then return old.update; end if; end"));
    });
    for name in ["inserts", "updates", "opens", "declares"] {
        pins(&c, &format!("select {name}()"), Pin::SessionLock);
    }
    assert!(!read(&c, "select inserts()").pins.contains(Pin::Code));
    for name in ["pops", "locks_rows"] {
        is_not_pure(&c, &format!("select * from {name}()"));
        leaves_nothing(&c, &format!("select * from {name}()"));
    }
    for name in ["reads", "each", "asks"] {
        is_pure(&c, &format!("select {name}()"));
    }
}

#[test]
fn code_that_notifies_does_more_than_read() {
    let c = catalogue(|b| {
        b.function(plpgsql("tells", "begin notify x, 'y'; return 1; end"));
        b.function(plpgsql("stops", "begin unlisten x; return 1; end"));
    });
    is_not_pure(&c, "select tells()");
    leaves_nothing(&c, "select tells()");
    pins(&c, "select stops()", Pin::Code);
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
fn calls_in_case_expressions_are_calls() {
    let c = catalogue(|b| {
        b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); return 1; end"));
        for (name, body) in [
            ("then_it", "begin return case when $1 > 0 then locks() end; end"),
            ("else_it", "begin x := case when $1 > 0 then false else locks() end; end"),
            (
                "in_query",
                "begin select case when a then set_config('a.b', 'c', false) end into x from t; end",
            ),
            ("nested", "begin return case when a then case b when 1 then 2 end else locks() end; end"),
            ("behind", "begin x := case when a then 1 end; if x then listen y; end if; end"),
            ("between", "begin case case when a then 1 end when 1 then perform locks(); end case; end"),
            ("statement", "begin case when a then perform locks(); else null; end case; end"),
            ("torn", "begin select a as case, 1 end then locks() from t; end"),
        ] {
            b.function(plpgsql(name, body));
        }
        for (name, body) in [
            ("plain", "begin return case when $1 > 0 then true else false end; end"),
            ("plain_query", "begin return query select case a when 1 then 'x' else null end from t; end"),
            ("plain_statement", "begin case a when 1 then return true; else return false; end case; end"),
            ("plain_if", "begin if case when a then true else false end then return 1; end if; end"),
            (
                "returns",
                "begin if (a) then return (b); elsif (c) then perform (d); else return (e); end if; end",
            ),
        ] {
            b.function(plpgsql(name, body));
        }
    });
    for name in ["then_it", "else_it", "nested", "between", "statement", "torn"] {
        pins(&c, &format!("select {name}(1)"), Pin::SessionLock);
    }
    pins(&c, "select in_query()", Pin::Setting);
    pins(&c, "select behind()", Pin::Listen);
    pins(&c, "do $$ declare x int; begin x := case when true then locks() end; end $$", Pin::SessionLock);
    for name in ["plain", "plain_query", "plain_statement", "plain_if", "returns"] {
        let class = read(&c, &format!("select {name}(1)"));
        assert!(class.only_reads() && class.pins.is_empty(), "{name}");
    }
}

#[test]
fn calls_in_case_expressions_of_mysql_are_calls() {
    let dialect = Dialect::MySql {
        ansi_quotes: false,
        no_backslash_escapes: false,
        mariadb: false,
        encoding: crate::Encoding::Utf8,
    };
    let mut b = Builder::new(dialect);
    b.system_variable(b"time_zone");
    for (name, body) in [
        ("f_lock", "RETURN GET_LOCK('a', 0)"),
        ("f_then", "RETURN CASE WHEN a THEN f_lock() ELSE 2 END"),
        ("f_else", "BEGIN SET x = CASE a WHEN 1 THEN 2 ELSE f_lock() END; RETURN x; END"),
        ("f_end", "BEGIN SELECT CASE WHEN start > end THEN f_lock() END INTO x FROM t; RETURN x; END"),
        ("f_plain", "BEGIN DECLARE x INT; SET x = CASE WHEN a THEN TRUE ELSE FALSE END; RETURN x; END"),
        ("p_case", "BEGIN CASE a WHEN 1 THEN SET time_zone = '+09:00'; ELSE BEGIN END; END CASE; END"),
        (
            "p_handler",
            "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION CASE WHEN a THEN SET time_zone = '+09:00'; END CASE; \
             SELECT 1; END",
        ),
    ] {
        b.function(Function { language: Language::Routine, ..plpgsql(name, body) });
    }
    let c = Arc::new(b.finish());
    for name in ["f_then", "f_else", "f_end"] {
        assert_eq!(by(dialect, &format!("SELECT {name}()"), &c).pins, Pin::SessionLock.into(), "{name}");
    }
    assert!(by(dialect, "SELECT f_plain()", &c).pins.is_empty());
    for name in ["p_case", "p_handler"] {
        assert_eq!(by(dialect, &format!("CALL {name}()"), &c).pins, Pin::Setting.into(), "{name}");
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
fn the_defaults_of_a_function_s_arguments_run_with_it() {
    let c = catalogue(|b| {
        b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); return 1; end"));
        b.function(plpgsql("f", "begin return $1; end"));
        b.function_text(b"f", b"locks(), 5");
    });
    pins(&c, "select f()", Pin::SessionLock);
}

#[test]
fn a_built_in_function_that_leaves_something_does_so_as_an_operator_and_a_cast() {
    let c = catalogue(|b| {
        b.system_function(b"pg_try_advisory_lock");
        b.operator(b"####", b"pg_try_advisory_lock");
    });
    pins(&c, "select 5 #### 6", Pin::SessionLock);
    is_pure(&c, "select 5 + 6");
    let c = catalogue(|b| {
        b.system_function(b"pg_try_advisory_lock");
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
fn a_role_in_dollar_quotes_is_set_by_a_block() {
    let text = "do $f$ begin perform set_config($$role$$, 'boss', false); end $f$";
    let class = by(Dialect::POSTGRES, text, &catalogue(|_| {}));
    assert!(class.uses.contains(Uses::ROLE) && class.touched().unwrap().sets.is_any());
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

#[test]
fn code_that_changes_how_literals_are_read_is_told_of() {
    let otherwise = |body: &'static str| {
        let c = catalogue(|b| b.function(plpgsql("f", body)));
        by(Dialect::POSTGRES, "select f()", &c).uses.contains(Uses::CODE_READS_OTHERWISE)
    };
    for body in [
        "begin perform set_config('datestyle', 'ISO, DMY', true); return g(); end",
        "begin set local datestyle = 'ISO, DMY'; return g(); end",
        "begin set local time zone 'Asia/Tokyo'; return g(); end",
        "begin execute 'set local datestyle = ''ISO, DMY'''; return g(); end",
        "begin set intervalstyle = 'iso_8601'; reset intervalstyle; end",
        "begin perform set_config($1, 'x', true); end",
    ] {
        assert!(otherwise(body), "{body}");
    }
    for body in
        ["begin perform set_config('app.tenant', 'a', true); end", "begin set local work_mem = '5MB'; end"]
    {
        assert!(!otherwise(body), "{body}");
    }
}

#[test]
fn a_cursor_that_code_declares_in_sql_stays() {
    let string = plpgsql("f", "begin execute 'declare c cursor with hold for select 1'; end");
    let own = plpgsql("f", "declare c cursor for select 1; begin open c; fetch c into x; close c; end");
    let sql = Function { language: Language::Sql, body: b"declare c cursor with hold for select 1", ..own };
    for (function, stays) in [(string, true), (sql, true), (own, false)] {
        let c = catalogue(|b| b.function(function));
        let pins = by(Dialect::POSTGRES, "select f()", &c).pins;
        assert_eq!(pins.contains(Pin::Cursor), stays, "{}", String::from_utf8_lossy(function.body));
    }
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
