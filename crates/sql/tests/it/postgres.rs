//! PostgreSQL.
use weir_sql::{Dialect, Encoding};

use crate::summary::check;

#[test]
fn texts_without_a_statement() {
    check(Dialect::POSTGRES, &[(";", "empty x0"), (" ; -- x", "empty x0"), ("/* */;\n;", "empty x0")]);
}

#[test]
fn names_of_statements_matter_where_they_are_spoken_of() {
    let matter = |text: &str| weir_sql::classify(Dialect::POSTGRES, text.as_bytes()).statement_names;
    for text in [
        "EXPLAIN EXECUTE s",
        "EXPLAIN (ANALYZE, COSTS OFF) EXECUTE s(1)",
        "CREATE TEMP TABLE t AS EXECUTE s",
        "CREATE TABLE t (a, b) WITH (fillfactor = 70) AS EXECUTE s",
        "SELECT 1; EXECUTE s",
        "DEALLOCATE s; EXECUTE q",
        "PREPARE s AS SELECT 1",
        "SELECT * FROM pg_prepared_statements",
        "SELECT * FROM \"pg_catalog\".\"pg_prepared_statements\"",
        "SELECT * FROM pg_prepared_statement()",
        "SELECT * FROM U&\"pg\\005fprepared_statements\"",
        "COPY (SELECT name FROM pg_prepared_statements) TO STDOUT",
    ] {
        assert!(matter(text), "{text}");
    }
    for text in [
        "EXECUTE s",
        "DEALLOCATE s",
        "DEALLOCATE ALL",
        "SELECT 'EXECUTE s', 1 AS \"execute\"",
        "GRANT EXECUTE ON FUNCTION f TO a",
        "REVOKE ALL ON t FROM a",
        "CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW WHEN (new.a > 1) EXECUTE FUNCTION f()",
        "PREPARE TRANSACTION 'x'",
        "COMMIT PREPARED 'x'",
    ] {
        assert!(!matter(text), "{text}");
    }
}

#[test]
fn what_stands_in_quotes_and_comments_is_not_seen() {
    check(
        Dialect::POSTGRES,
        &[
            ("SELECT 'BEGIN; COMMIT'", "select share"),
            ("SELECT $$BEGIN; COMMIT$$", "select share"),
            ("SELECT $a$ $b$ ; $$ $a $a$", "select share"),
            ("SELECT $a$ $b$ ; $$ $a $a$; SELECT 2", "select x2"),
            ("SELECT $a$ $$a$; BEGIN", "select x2 <begin> transaction"),
            ("SELECT $a$ $ab$a$; BEGIN", "select x2 <begin> transaction"),
            ("SELECT $1$a$;BEGIN;$a$", "select share"),
            ("SELECT a$b$c FROM t; SELECT $1", "select x2"),
            ("SELECT \"a;b\"\"c;d\" FROM t", "select share"),
            ("SELECT 'it''s; BEGIN'", "select share"),
            ("SELECT ''';BEGIN'", "select share"),
            ("SELECT '''';BEGIN", "select x2 <begin> transaction"),
            ("SELECT E'it\\'s; BEGIN'", "select share"),
            ("SELECT e'it\\\\'; BEGIN", "select x2 <begin> transaction"),
            ("SELECT 'it\\'; BEGIN; --'", "select x2 <begin> transaction"),
            ("SELECT B'101', X'1F', N'x'", "select share"),
            ("SELECT x'\\'; BEGIN", "select x2 <begin> transaction"),
            ("SELECT U&'d\\0061t\\+000061'; BEGIN", "select x2 <begin> transaction"),
            ("SELECT U&'\\'; BEGIN", "select x2 <begin> transaction"),
            ("SELECT U&\"d\\0061\" FROM t", "select share"),
            ("SELECT u & 'x', u&x, U&'x' UESCAPE '!'", "select share"),
            ("SELECT E'a'\n'b\\'; BEGIN'", "select share"),
            ("SELECT E'a' -- x\n 'b\\'; BEGIN'", "select share"),
            ("SELECT 'a'\n'b\\'; BEGIN; --'", "select x2 <begin> transaction"),
            ("SELECT /* a /* nested ; */ BEGIN */ 1", "select share"),
            ("SELECT /* /* */ ; BEGIN */ 1", "select share"),
            ("SELECT /*/ ; BEGIN */ 1", "select share"),
            ("SELECT /**/ 1; /***/ BEGIN /* **/", "select x2 <begin> transaction"),
            ("SELECT 1 -- ; BEGIN", "select share"),
            ("SELECT 1 --\n; BEGIN", "select x2 <begin> transaction"),
            ("SELECT 1 +--x\n2; BEGIN", "select x2 <begin> transaction"),
            ("SELECT 1 - -1 -1; BEGIN", "select x2 <begin> transaction"),
            ("SELECT 4 / 2 */* ; BEGIN */ 3", "select share"),
            ("SELECT 1 # 2, a @ b, a @> b, a ? b, a ?| b, `c`; BEGIN", "select x2 <begin> transaction"),
        ],
    );
}

#[test]
fn standard_conforming_strings_off() {
    check(
        Dialect::Postgres { standard_conforming_strings: false, encoding: Encoding::Utf8 },
        &[
            ("SELECT 'it\\'s; BEGIN'", "select share"),
            ("SELECT 'it\\\\'; BEGIN", "select x2 <begin> transaction"),
            ("SELECT N'it\\'s; BEGIN'", "select share"),
            ("SELECT \"it\\\"; BEGIN; --\"", "select x2 <begin> transaction"),
            ("SELECT x'\\'; BEGIN", "select x2 <begin> transaction"),
            ("SELECT $$\\$$; BEGIN", "select x2 <begin> transaction"),
        ],
    );
}

#[test]
fn texts_that_end_too_early_are_doubtful() {
    check(
        Dialect::POSTGRES,
        &[
            ("SELECT 'abc", "select doubtful +unrecognised"),
            ("SELECT 'abc''", "select doubtful +unrecognised"),
            ("SELECT E'abc\\'", "select doubtful +unrecognised"),
            ("SELECT \"abc", "select doubtful +unrecognised"),
            ("SELECT /* abc", "select doubtful +unrecognised"),
            ("SELECT /* abc /* */", "select doubtful +unrecognised"),
            ("SELECT $a$ abc", "select doubtful +unrecognised"),
            ("SELECT $a$ abc $a", "select doubtful +unrecognised"),
            ("SELECT $a", "select doubtful +unrecognised"),
            ("SELECT $$ $", "select doubtful +unrecognised"),
            ("BEGIN; SELECT 'abc", "begin x2 doubtful <begin> +unrecognised transaction"),
            (
                "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1;",
                "create ddl doubtful +unrecognised",
            ),
        ],
    );
}

#[test]
fn texts_two_servers_may_read_differently_are_doubtful() {
    check(
        Dialect::POSTGRES,
        &[
            ("SELECT 1INTO x", "select doubtful +unrecognised"),
            ("SELECT $1FROM t", "select doubtful +unrecognised"),
            ("SELECT 1.FROM t", "select doubtful +unrecognised"),
            ("SELECT 0xFF, 1e5, 1_000, 0b11, 0o17, 1.5e3, .5, 5.", "select share"),
            ("SELECT 1e-5, 1e+5", "select share"),
            ("SELECT \0", "select doubtful +unrecognised"),
            ("SELECT 1 \\gset", "select share"),
        ],
    );
}

#[test]
fn encodings_whose_characters_hide_backslashes() {
    check(
        Dialect::Postgres { standard_conforming_strings: true, encoding: Encoding::AsciiUnsafe },
        &[
            ("SELECT 'é'", "select share"),
            ("SELECT 'é\\'; BEGIN'", "select x2 doubtful <begin> +unrecognised transaction"),
            ("SELECT '\\é'", "select share"),
            ("SELECT 1", "select share"),
        ],
    );
}

#[test]
fn one_statement_that_leaves_no_trace() {
    check(
        Dialect::POSTGRES,
        &[
            ("SELECT 1", "select share"),
            ("select 1;", "select share"),
            (";;SELECT 1;;", "select share"),
            ("/* x */ SELECT 1 /* y */; -- z", "select share"),
            ("SELECT", "select share"),
            ("TABLE t", "select share"),
            ("VALUES (1,2),(3,4)", "values share"),
            ("(SELECT 1) UNION (SELECT 2)", "select share"),
            ("((SELECT 1))", "select share"),
            ("SELECT * FROM t WHERE id = $1", "select share"),
            ("SELECT * FROM t WHERE a = ANY($1) AND (a, b) IN ((1,2)) AND NOT (c) OR (d)", "select share"),
            ("SELECT * FROM \"begin\" AS \"commit\" WHERE \"set\" = 1", "select share"),
            ("SELECT t.begin, t.commit, t.into, t.set FROM t", "select share"),
            ("SELECT lower(name), count(*) FROM t GROUP BY 1", "select share"),
            ("SELECT lower ('x'), LOWER('x'), pg_catalog.lower('x')", "select share"),
            ("SELECT current_setting('x'), current_database(), version()", "select share"),
            ("SELECT extract(epoch from now()), interval '1 day', x BETWEEN (1) AND (2)", "select share"),
            ("SELECT row_number() OVER (PARTITION BY a ORDER BY b) FROM t", "select share"),
            (
                "SELECT count(*) FILTER (WHERE a > 1), percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t",
                "select share",
            ),
            ("SELECT CASE WHEN (a) THEN (b) ELSE (c) END FROM t", "select share"),
            (
                "SELECT a::numeric(10,2), CAST(x AS varchar(10)), a::timestamp(3) with time zone FROM t",
                "select share",
            ),
            ("SELECT * FROM json_to_recordset('[]') AS t(a int, b text)", "select share"),
            ("SELECT * FROM a JOIN b USING (id) LEFT JOIN LATERAL (SELECT 1) c ON (true)", "select share"),
            ("SELECT * FROM t TABLESAMPLE bernoulli (10) REPEATABLE (1)", "select share"),
            ("SELECT a FROM t GROUP BY GROUPING SETS ((a), ()), ROLLUP (a), CUBE (a)", "select share"),
            ("SELECT * FROM t LIMIT 10 OFFSET (5)", "select share"),
            ("SELECT * FROM t FOR UPDATE", "select share row_lock"),
            ("SELECT * FROM t FOR NO KEY UPDATE SKIP LOCKED", "select share row_lock"),
            ("SELECT * FROM t FOR SHARE OF t NOWAIT", "select share row_lock"),
            ("WITH x AS (SELECT 1) SELECT * FROM x", "select share"),
            ("WITH x AS NOT MATERIALIZED (SELECT 1) SELECT * FROM x", "select share"),
            (
                "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n+1 FROM t WHERE n < 100), u (m) AS (SELECT 1) SELECT sum(n) FROM t",
                "select share",
            ),
            (
                "WITH x AS (INSERT INTO t (a) VALUES (1) RETURNING a) SELECT * FROM x",
                "select share with_writes",
            ),
            (
                "WITH x AS (WITH y AS (SELECT 1 a) INSERT INTO t (a) SELECT a FROM y RETURNING a) SELECT * FROM x",
                "select share with_writes",
            ),
            (
                "WITH x AS (WITH y AS (SELECT 1 a) UPDATE t SET a = y.a FROM y RETURNING t.a) SELECT * FROM x",
                "select share with_writes",
            ),
            (
                "WITH x AS (DELETE FROM t RETURNING *) INSERT INTO u (a) SELECT a FROM x",
                "insert share with_writes",
            ),
            ("INSERT INTO t (a, b) VALUES (1, 'x')", "insert share"),
            ("INSERT INTO t DEFAULT VALUES", "insert share"),
            (
                "INSERT INTO public.t (a, b) VALUES (1, now()) ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING id",
                "insert share",
            ),
            ("INSERT INTO \"T\" (\"a\") VALUES (1)", "insert share"),
            ("INSERT INTO t AS x (a) VALUES (1)", "insert share"),
            ("UPDATE t SET a = 1 WHERE id = 3", "update share"),
            ("UPDATE ONLY (t) SET (a, b) = (1, 2)", "update share"),
            ("DELETE FROM t USING u WHERE t.id = u.id", "delete share"),
            (
                "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = 1 WHEN NOT MATCHED THEN INSERT (a) VALUES (1)",
                "merge share",
            ),
        ],
    );
}

#[test]
fn one_statement_that_must_not_be_shared() {
    check(
        Dialect::POSTGRES,
        &[
            ("SELECT 1; SELECT 2", "select x2"),
            ("SELECT 1)", "select"),
            ("SELECT (1", "select"),
            ("SELECT my_func(1)", "select unknown()"),
            ("SELECT my_func (1)", "select unknown()"),
            ("SELECT public.lower('x')", "select unknown()"),
            ("SELECT a.b.c(1)", "select unknown()"),
            ("SELECT \"lower\"('x')", "select unknown()"),
            ("SELECT \"pg_catalog\".lower('x')", "select share"),
            ("SELECT x::my_type(3)", "select unknown()"),
            ("SELECT OPERATOR(public.+) 1", "select unknown()"),
            ("SELECT * FROM f() AS t(a int, b text)", "select unknown()"),
            (
                "SELECT a_name_of_sixty_five_bytes_or_more_which_the_server_itself_cuts_too(1)",
                "select unknown()",
            ),
            ("SELECT pg_advisory_xact_lock(1)", "select"),
            ("SELECT pg_advisory_unlock(1)", "select"),
            ("SELECT nextval('s')", "select nextval"),
            ("SELECT currval('s'), lastval()", "select currval lastval"),
            ("SELECT setval('s', 1)", "select setval"),
            ("INSERT INTO t (id) VALUES (nextval('s'))", "insert nextval"),
            ("SELECT pg_sleep(1)", "select sleep"),
            ("SELECT pg_notify('a', 'b')", "select"),
            ("SELECT pg_backend_pid()", "select connection_id bare backend_pid[pg_backend_pid()]"),
            ("SELECT pg_backend_pid() AS pid", "select connection_id backend_pid[pg_backend_pid()]"),
            (
                "SELECT a, pg_backend_pid(), b FROM t",
                "select connection_id bare backend_pid[pg_backend_pid()]",
            ),
            (
                "SELECT pg_cancel_backend(pg_backend_pid())",
                "select connection_id backend_pid[pg_backend_pid()]",
            ),
            ("SELECT * FROM pg_stat_activity", "select processlist"),
            ("SELECT * FROM pg_catalog.pg_stat_activity", "select processlist"),
            ("SELECT a INTO b FROM t", "select ddl"),
            ("EXPLAIN SELECT 1", "explain"),
            ("SHOW search_path", "show"),
            ("SHOW ALL", "show"),
            ("EXECUTE p (1)", "execute prepare 'p'"),
            ("COPY t FROM STDIN", "copy copy_in"),
        ],
    );
}

#[test]
fn transactions() {
    check(
        Dialect::POSTGRES,
        &[
            ("BEGIN", "begin <begin> transaction"),
            ("begin;", "begin <begin> transaction"),
            ("BEGIN WORK", "begin <begin> transaction"),
            ("BEGIN TRANSACTION", "begin <begin> transaction"),
            (
                "BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY",
                "begin <begin options> transaction",
            ),
            ("BEGIN READ WRITE", "begin <begin options> transaction"),
            ("BEGIN ISOLATION LEVEL REPEATABLE READ DEFERRABLE", "begin <begin options> transaction"),
            ("START TRANSACTION", "begin <begin> transaction"),
            ("START TRANSACTION READ ONLY", "begin <begin options> transaction"),
            ("/* x */ bEgIn /* y */ -- z", "begin <begin> transaction"),
            ("START_REPLICATION SLOT x", "unrecognised +unrecognised"),
            ("START", "unrecognised +unrecognised"),
            ("COMMIT", "commit <commit> transaction"),
            ("COMMIT WORK", "commit <commit> transaction"),
            ("COMMIT AND CHAIN", "commit <commit chain> transaction"),
            ("COMMIT AND NO CHAIN", "commit <commit> transaction"),
            ("END", "commit <commit> transaction"),
            ("END TRANSACTION AND CHAIN", "commit <commit chain> transaction"),
            ("COMMIT PREPARED 'x'", "twophase ddl <finish_prepared> transaction"),
            ("PREPARE TRANSACTION 'x'", "twophase <prepare_transaction> transaction"),
            ("ROLLBACK", "rollback <rollback> transaction"),
            ("ABORT", "rollback <rollback> transaction"),
            ("ROLLBACK AND CHAIN", "rollback <rollback chain> transaction"),
            ("ROLLBACK TO SAVEPOINT s1", "rollbackto <rollback_to> transaction 's1'"),
            ("ROLLBACK WORK TO \"S1\"", "rollbackto <rollback_to> transaction 'S1'"),
            ("ROLLBACK TO SavePoint", "rollbackto <rollback_to> transaction"),
            ("ROLLBACK PREPARED 'x'", "twophase <finish_prepared> transaction"),
            ("SAVEPOINT S1", "savepoint <savepoint> transaction 's1'"),
            ("RELEASE SAVEPOINT s1", "release <release> transaction 's1'"),
            ("RELEASE s1", "release <release> transaction 's1'"),
            ("COMMIT foo", "unrecognised +unrecognised transaction"),
            ("COMMIT; SELECT 1", "commit x2 <commit> transaction"),
            ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "set <set_transaction> transaction {}"),
            ("SET TRANSACTION SNAPSHOT '000'", "set <set_transaction> transaction {}"),
            ("SET LOCAL TRANSACTION READ ONLY", "set <set_transaction> transaction {}"),
            ("SET CONSTRAINTS ALL DEFERRED", "set {...}"),
            ("BEGIN; SELECT 1; COMMIT", "begin x3 <begin> transaction"),
            ("SELECT 1; COMMIT; BEGIN", "select x3 <commit> transaction"),
            ("SELECT 1;BEGIN", "select x2 <begin> transaction"),
            ("LOCK TABLE t IN EXCLUSIVE MODE", "lock"),
        ],
    );
}

#[test]
fn settings() {
    check(
        Dialect::POSTGRES,
        &[
            ("SET search_path = a, b", "set +setting {search_path=a, b}"),
            ("SET search_path TO 'a', \"B\"", "set +setting {search_path='a', \"B\"}"),
            ("SET search_path=a", "set +setting {search_path=a}"),
            ("SET SESSION x.y = 1", "set +setting {x.y=1(on)}"),
            ("SET LOCAL statement_timeout = 100", "set {local statement_timeout=100}"),
            ("SET LOCAL search_path = a", "set {local search_path=a}"),
            ("SET timezone = 'UTC'", "set +setting {timezone='UTC'}"),
            ("SET TIME ZONE 'UTC'", "set +setting {timezone='UTC'}"),
            (
                "SET TIME ZONE INTERVAL '-08:00' HOUR TO MINUTE",
                "set +setting {timezone=INTERVAL '-08:00' HOUR TO MINUTE}",
            ),
            ("SET SESSION TIME ZONE DEFAULT", "set +setting {timezone=DEFAULT}"),
            ("SET NAMES 'utf8'", "set +setting {client_encoding='utf8'}"),
            ("SET client_encoding = 'UTF8'", "set +setting {client_encoding='UTF8'}"),
            ("SET ROLE admin", "set +setting role {role=admin}"),
            ("SET ROLE NONE", "set +setting role {role=NONE}"),
            ("SET role = admin", "set +setting role {role=admin}"),
            ("SET role TO 'admin'", "set +setting role {role='admin'}"),
            ("SET LOCAL ROLE x", "set {local role=x}"),
            ("SET SESSION ROLE x", "set +setting role {role=x}"),
            ("SET SESSION AUTHORIZATION 'bob'", "set +setting role {session_authorization='bob'}"),
            ("SET SESSION AUTHORIZATION DEFAULT", "set +setting role {session_authorization=DEFAULT}"),
            ("SET LOCAL SESSION AUTHORIZATION bob", "set {local session_authorization=bob}"),
            ("SET SESSION SESSION AUTHORIZATION bob", "set +setting role {session_authorization=bob}"),
            (
                "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
                "set +setting {transaction characteristics=AS TRANSACTION READ ONLY}",
            ),
            ("SET SCHEMA 'x'", "set +setting {search_path='x'}"),
            ("SET XML OPTION DOCUMENT", "set +setting {xmloption=DOCUMENT}"),
            ("SET extra_float_digits = 3; SET application_name = 'x'", "set x2 +setting"),
            ("SET application_name = 'a;b'", "set +setting {application_name='a;b'}"),
            ("SET application_name = E'a\\'b'", "set +setting {application_name=E'a\\'b'}"),
            ("SET \"My.Var\" = 1", "set +setting {my.var=1(on)}"),
            ("SET my.\"Var\" = 1", "set +setting {my.var=1(on)}"),
            ("SET x = DEFAULT", "set +setting {x=DEFAULT}"),
            ("SET enable_seqscan = off", "set +setting {enable_seqscan=off(off)}"),
            ("SET x = -1", "set +setting {x=-1}"),
            ("SET x FROM CURRENT", "set +setting +unrecognised role {x=, ...}"),
            ("SET x", "set +setting +unrecognised role {x=, ...}"),
            ("SET x =", "set +setting +unrecognised role {x=, ...}"),
            ("SET", "set +unrecognised role {...}"),
            ("SET = 1", "set +setting +unrecognised role {=, ...}"),
            ("SET x.", "set +setting +unrecognised role {x=, ...}"),
            ("SET session.x = 1", "set +unrecognised role {...}"),
            ("SET U&\"x\" = 1", "set +setting +unrecognised role {=, ...}"),
            (
                "SET a_name_of_sixty_five_bytes_or_more_which_the_server_itself_cuts_too = 1",
                "set +setting +unrecognised role {=, ...}",
            ),
            ("RESET search_path", "reset +setting {search_path=DEFAULT}"),
            ("RESET ALL", "reset !reset_all"),
            ("RESET ROLE", "reset +setting role {role=DEFAULT}"),
            ("RESET SESSION AUTHORIZATION", "reset +setting role {session_authorization=DEFAULT}"),
            ("RESET TIME ZONE", "reset +setting {timezone=DEFAULT}"),
            ("RESET a.b", "reset +setting {a.b=DEFAULT}"),
            ("RESET a b", "reset +setting +unrecognised role {a=, ...}"),
            ("RESET", "reset +unrecognised role {...}"),
            ("SELECT set_config('search_path', 'x', false)", "select +setting"),
            ("SELECT set_config('search_path', 'x', true)", "select"),
            ("SELECT set_config('search_path', 'x', 'true')", "select +setting"),
            ("SELECT set_config('search_path', 'x', is_local => true)", "select +setting"),
            ("SELECT set_config('role', 'x', false)", "select +setting role"),
            ("SELECT set_config(E'ro\\154e', 'x', false)", "select +setting role"),
            ("SELECT set_config('ro' || 'le', 'x', false)", "select +setting role"),
            ("SELECT pg_catalog.set_config('search_path', '', false)", "select +setting"),
            ("SELECT set_config($1, $2, $3)", "select +setting role"),
            ("SELECT set_config('a', lower('X'), true), 1", "select"),
            ("SELECT set_config('a', set_config('b', 'c', true), true)", "select +setting role"),
            ("SELECT * FROM t WHERE set_config('a', 'b', false) = 'c'", "select +setting"),
            ("INSERT INTO t VALUES (set_config('a', 'b', false))", "insert +setting"),
            ("UPDATE pg_settings SET setting = 'x' WHERE name = 'y'", "update +setting role"),
            ("UPDATE pg_catalog.pg_settings SET setting = 'x'", "update +setting role"),
            ("SELECT * FROM pg_settings", "select share"),
            ("SELECT setseed(0.5)", "select +setting role"),
        ],
    );
}

#[test]
fn temporary_tables() {
    check(
        Dialect::POSTGRES,
        &[
            ("CREATE TEMP TABLE t (id int)", "create ddl +temporary_table"),
            ("CREATE TEMPORARY TABLE IF NOT EXISTS t AS SELECT 1", "create ddl +temporary_table"),
            ("CREATE LOCAL TEMPORARY TABLE t (id int) ON COMMIT DROP", "create ddl +temporary_table"),
            ("CREATE GLOBAL TEMP TABLE t (id int)", "create ddl +temporary_table"),
            ("CREATE OR REPLACE TEMP VIEW v AS SELECT 1", "create ddl +temporary_table"),
            ("CREATE TEMP RECURSIVE VIEW v (n) AS SELECT 1", "create ddl +temporary_table"),
            ("CREATE TEMP SEQUENCE s", "create ddl +temporary_table"),
            ("CREATE /* x */ TeMp TABLE t (id int)", "create ddl +temporary_table"),
            ("CREATE TABLE pg_temp.t (id int)", "create ddl +temporary_table"),
            ("CREATE TABLE \"pg_temp\".t (id int)", "create ddl +temporary_table"),
            ("CREATE TABLE pg_temp_3.t (id int)", "create ddl +temporary_table"),
            ("CREATE TABLE U&\"pg\\005ftemp\".t (id int)", "create ddl +temporary_table"),
            (
                "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
                "create ddl +temporary_table",
            ),
            ("CREATE TYPE pg_temp.t AS (a int)", "create ddl +temporary_table"),
            ("SELECT a INTO TEMP b FROM t", "select ddl +temporary_table"),
            ("SELECT a INTO TEMPORARY TABLE b FROM t", "select ddl +temporary_table"),
            ("SELECT a INTO LOCAL TEMPORARY TABLE b FROM t", "select ddl +temporary_table"),
            ("SELECT a INTO pg_temp.b FROM t", "select ddl +temporary_table"),
            ("EXPLAIN ANALYZE CREATE TEMP TABLE t AS SELECT 1", "explain ddl +temporary_table"),
            (
                "SET search_path = pg_temp, public",
                "set +setting +temporary_table {search_path=pg_temp, public}",
            ),
            (
                "SET search_path TO 'x', 'pg_temp'",
                "set +setting +temporary_table {search_path='x', 'pg_temp'}",
            ),
            ("SET SCHEMA 'pg_temp'", "set +setting +temporary_table {search_path='pg_temp'}"),
            ("CREATE TABLE t (temp int)", "create ddl"),
            ("CREATE TABLE temp (id int)", "create ddl"),
            ("SELECT * FROM temp", "select share"),
            (
                "BEGIN; CREATE TEMP TABLE t (id int) ON COMMIT DROP; COMMIT",
                "begin x3 ddl <begin> +temporary_table transaction",
            ),
            ("DISCARD TEMP", "discard -temporary_table !discard_temp"),
        ],
    );
}

#[test]
fn locks_cursors_channels_and_prepared_statements() {
    check(
        Dialect::POSTGRES,
        &[
            ("SELECT pg_advisory_lock(1)", "select +session_lock takes advisory"),
            ("SELECT pg_try_advisory_lock(1, 2)", "select +session_lock takes advisory"),
            ("SELECT PG_ADVISORY_LOCK_SHARED (1)", "select +session_lock takes advisory"),
            ("SELECT \"pg_advisory_lock\"(1)", "select +session_lock takes advisory"),
            ("SELECT pg_catalog.pg_advisory_lock(1)", "select +session_lock takes advisory"),
            ("SELECT pg_catalog.\"pg_advisory_lock\"(1)", "select +session_lock takes advisory"),
            ("SELECT U&\"pg_advisory\\005flock\"(1)", "select +unrecognised unknown()"),
            ("SELECT pg_advisory_lock", "select share"),
            ("UPDATE t SET a = pg_advisory_lock(1)", "update +session_lock takes advisory"),
            ("EXPLAIN ANALYZE SELECT pg_advisory_lock(1)", "explain +session_lock takes advisory"),
            ("SELECT pg_advisory_unlock_all()", "select frees advisory"),
            ("SELECT pg_advisory_unlock_all() WHERE false", "select"),
            ("SELECT (pg_advisory_unlock_all())", "select"),
            (
                "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;",
                "select x4 -cursor -listen !reset_all !unlisten_all !close_all frees advisory cursor",
            ),
            ("SELECT pg_backup_start('x')", "select +session_lock takes pg_backup"),
            ("SELECT dblink_connect('x', 'y')", "select +unrecognised"),
            ("SELECT pg_create_logical_replication_slot('a', 'b', true)", "select +replication"),
            ("DECLARE c CURSOR FOR SELECT 1", "declare cursor 'c'"),
            ("DECLARE c CURSOR WITH HOLD FOR SELECT 1", "declare +cursor cursor with_hold 'c'"),
            ("DECLARE c BINARY INSENSITIVE NO SCROLL CURSOR WITHOUT HOLD FOR SELECT 1", "declare cursor 'c'"),
            ("FETCH 10 FROM c", "fetch cursor"),
            ("MOVE c", "fetch cursor"),
            ("CLOSE c", "close cursor 'c'"),
            ("CLOSE ALL", "close -cursor !close_all cursor"),
            ("LISTEN chan", "listen +listen 'chan'"),
            ("LISTEN \"Chan\"", "listen +listen 'Chan'"),
            ("UNLISTEN chan", "unlisten 'chan'"),
            ("UNLISTEN *", "unlisten -listen !unlisten_all"),
            ("NOTIFY chan, 'x'", "notify 'chan'"),
            ("PREPARE p AS SELECT 1", "prepare +sql_prepare prepare 'p'"),
            ("PREPARE p (int, text) AS SELECT $1", "prepare +sql_prepare prepare 'p'"),
            (
                "PREPARE p AS SELECT pg_advisory_lock(1)",
                "prepare +session_lock +sql_prepare takes advisory prepare 'p'",
            ),
            ("DEALLOCATE p", "deallocate prepare 'p'"),
            ("DEALLOCATE PREPARE P", "deallocate prepare 'p'"),
            ("DEALLOCATE ALL", "deallocate -sql_prepare !deallocate_all prepare"),
            ("DEALLOCATE PREPARE ALL", "deallocate -sql_prepare !deallocate_all prepare"),
            (
                "DISCARD ALL",
                "discard -setting -temporary_table -session_lock -cursor -listen -sql_prepare -last_result !discard_all frees advisory",
            ),
            ("DISCARD PLANS", "discard !discard_plans"),
            ("DISCARD SEQUENCES", "discard !discard_sequences"),
            ("DISCARD", "unrecognised +unrecognised"),
            ("LOAD 'auto_explain'", "load +load"),
        ],
    );
}

#[test]
fn other_statements() {
    check(
        Dialect::POSTGRES,
        &[
            ("COPY t FROM STDIN", "copy copy_in"),
            ("COPY t (a, b) TO STDOUT WITH (FORMAT csv)", "copy copy_out"),
            ("COPY (SELECT lower(a) FROM t) TO STDOUT", "copy copy_out"),
            ("COPY t FROM '/tmp/x'", "copy"),
            ("COPY t FROM stdin; COPY u TO stdout", "copy x2 copy_in copy_out"),
            ("DO $$ BEGIN END $$", "do block"),
            ("CALL p(1)", "call block unknown()"),
            ("CREATE TABLE t (id int)", "create ddl"),
            ("CREATE INDEX CONCURRENTLY i ON t (lower(a))", "create ddl"),
            ("CREATE RULE r AS ON INSERT TO t DO ALSO (SELECT 1; SELECT 2)", "create ddl"),
            (
                "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ BEGIN; $$; BEGIN",
                "create x2 ddl <begin> transaction",
            ),
            (
                "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END",
                "create ddl",
            ),
            (
                "CREATE OR REPLACE PROCEDURE f() BEGIN ATOMIC SELECT 1; SELECT t.end AS end FROM t; END; SET x = 1",
                "create x2 ddl +setting",
            ),
            ("CREATE FUNCTION begin() RETURNS int LANGUAGE sql AS 'x'; SET a = 1", "create x2 ddl +setting"),
            ("CREATE TABLE function (begin int, atomic int); SET a = 1", "create x2 ddl +setting"),
            ("ANALYZE t", "maintain"),
            ("VACUUM FULL t", "maintain"),
            ("REINDEX TABLE t", "maintain"),
            ("REFRESH MATERIALIZED VIEW v", "maintain"),
            ("CHECKPOINT", "maintain"),
            ("TRUNCATE t", "truncate ddl"),
            ("DROP TABLE t", "drop ddl"),
            ("ALTER TABLE t ADD COLUMN a int", "alter ddl"),
            ("GRANT SELECT ON t TO u", "catalogue ddl"),
            ("COMMENT ON TABLE t IS 'x'", "catalogue ddl"),
            ("IMPORT FOREIGN SCHEMA x FROM SERVER y INTO z", "catalogue ddl"),
            ("SECURITY LABEL ON TABLE t IS 'x'", "catalogue ddl"),
        ],
    );
}

#[test]
fn what_is_not_recognised_is_pinned() {
    check(
        Dialect::POSTGRES,
        &[
            ("FOO BAR", "unrecognised +unrecognised"),
            ("SELECTED", "unrecognised +unrecognised"),
            ("SELECT_ 1", "unrecognised +unrecognised"),
            ("{call p()}", "unrecognised +unrecognised"),
            ("\"SELECT\" 1", "unrecognised +unrecognised"),
            ("1", "unrecognised +unrecognised"),
            ("$1", "unrecognised +unrecognised"),
            ("(", "unrecognised +unrecognised"),
            ("(INSERT INTO t VALUES (1))", "unrecognised +unrecognised"),
            ("(BEGIN)", "unrecognised +unrecognised"),
            ("SELECT 1; FOO", "select x2 +unrecognised"),
            ("REPLACE INTO t VALUES (1)", "unrecognised +unrecognised"),
            ("USE x", "unrecognised +unrecognised"),
            ("UNLOCK TABLES", "unrecognised +unrecognised"),
            ("sélect 1", "unrecognised +unrecognised"),
        ],
    );
}

#[test]
fn a_row_lock_inside_with_is_a_row_lock() {
    for text in [
        "WITH x AS (SELECT i FROM t FOR UPDATE NOWAIT) SELECT i FROM x",
        "WITH x AS MATERIALIZED (SELECT i FROM t FOR NO KEY UPDATE) SELECT i FROM x",
        "WITH x AS (SELECT 1), y AS (SELECT i FROM t FOR KEY SHARE SKIP LOCKED) SELECT * FROM x, y",
    ] {
        let class = weir_sql::classify(weir_sql::Dialect::POSTGRES, text.as_bytes());
        assert!(!class.only_reads(), "{text}");
    }
}
