//! Code of users: what the bodies of functions, procedures and triggers say.

use super::*;

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
fn a_hint_in_code_that_mysql_does_not_take_back_is_a_setting() {
    let mut b = Builder::new(Dialect::MYSQL);
    for (name, body) in [
        (
            "f_id",
            "BEGIN DECLARE x INT; SELECT /*+ SET_VAR(insert_id=4000) */ COUNT(*) INTO x FROM t; RETURN x; END",
        ),
        ("f_time", "RETURN (SELECT /*+ SET_VAR(max_execution_time=1) */ 1)"),
    ] {
        b.function(Function { language: Language::Routine, ..plpgsql(name, body) });
    }
    let c = Arc::new(b.finish());
    assert_eq!(by(Dialect::MYSQL, "SELECT f_id()", &c).pins, Pin::Setting.into());
    assert!(by(Dialect::MYSQL, "SELECT f_time()", &c).pins.is_empty());
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
fn code_of_another_sql_mode_asks_what_any_reading_of_it_asks() {
    let mut b = Builder::new(Dialect::MARIADB);
    for (name, language, body) in [
        ("counts", Language::Other, "AS BEGIN SELECT SQL%ROWCOUNT; END"),
        ("tells", Language::Other, "AS c INT := 0; BEGIN c := SQLCODE; SELECT c, SQLERRM; END"),
        ("quotes", Language::Other, "BEGIN SELECT \"it's\", @i, 'x'; END"),
        ("calls", Language::Other, "AS BEGIN CALL asks(); END"),
        ("plain", Language::Other, "AS BEGIN SELECT 1; END"),
        ("asks", Language::Routine, "SELECT ROW_COUNT()"),
        ("paths", Language::Routine, "SELECT EXTRACTVALUE(a, '/a/b[$@i]') FROM t"),
    ] {
        b.function(Function { language, ..plpgsql(name, body) });
    }
    let c = Arc::new(b.finish());
    let of = |name: &str| by(Dialect::MARIADB, &format!("CALL {name}()"), &c);
    assert!(of("counts").uses.contains(Uses::CODE_ROW_COUNT));
    assert!(of("tells").uses.contains(Uses::CODE_WARNINGS));
    assert!(of("quotes").uses.contains(Uses::USER_VARIABLE_READ));
    assert!(of("calls").uses.contains(Uses::CODE_ROW_COUNT), "what it calls does");
    assert!(!of("plain").uses.intersects(Uses::CODE_ROW_COUNT | Uses::CODE_WARNINGS));
    assert!(["counts", "plain"].iter().all(|name| of(name).pins.contains(Pin::Code)));
    assert!(
        of("paths").uses.contains(Uses::USER_VARIABLE_READ) && of("paths").user_variables().unwrap().is_any()
    );
}
