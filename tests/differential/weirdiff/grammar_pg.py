"""What PostgreSQL clients may do, drawn by chance.

Owns: the statements, and what is known of each: what it reads and writes, whether it may keep its server.
Invariants: every answer is determined by the order of the steps. So nothing drawn here depends on time, process ids,
random numbers, the order of rows without ORDER BY, or on who gets a lock first.
"""

import re

from .forms_pg import FORMS
from .generate import Draw, Generator
from .script import statements as texts_of

# weight, class, text, what is known: `r:` and `w:` the objects read and written, `k` may keep its server (a pin, or user code of
# which Weir cannot know), `t` begins or ends a transaction, `x` only inside one, `o` only outside one, `1` alone in its text, `Q` a text of
# several statements, `e` gives effects to what it names, `T` keeps its server where it stands among others, `s` makes transactions see what
# was there at their first statement.
# {i} a number from 1 to 5, {n} a counter that never repeats in a session, {p} a server's setting of memory.
STATEMENTS = [
    # Plain reads and writes
    (6, "read", "SELECT v FROM t WHERE id = {i}", "r:t"),
    (3, "read", "SELECT count(*), max(id) FROM w", "r:w"),
    (3, "read", "SELECT {n} AS x, 'q' || {i}", ""),
    (2, "read", "SELECT id, v FROM v_t ORDER BY id LIMIT {i}", "r:t"),
    (2, "read", "VALUES ({n}, 'a'), ({i}, NULL)", ""),
    (2, "read", "SELECT x FROM item", "r:item"),
    (2, "read", "SELECT * FROM item", "r:item"),
    (2, "read", "SELECT id, v FROM shadow ORDER BY id", "r:shadow"),
    (2, "read", "SELECT pure({i}), stab({i})", "r:t k"),
    (1, "read", "SELECT pure({i})", ""),
    (2, "read", "WITH y AS (SELECT id FROM t WHERE id <= {i}) SELECT count(*) FROM y", "r:t"),
    (1, "read", "SELECT 1/({i} - {i})", ""),
    (1, "read", "SELECT 'x'::int", ""),
    (1, "read", "TABLE item", "r:item"),
    (1, "read", "EXPLAIN (COSTS OFF) SELECT 1", "k"),
    (1, "read", "", ""),
    (1, "read", "/* only a comment */", ""),
    (2, "write", "INSERT INTO w (who, n) VALUES ('plain', {n})", "w:w"),
    (2, "write", "INSERT INTO w (who, n) VALUES ('ret', {n}) RETURNING id", "w:w"),
    (2, "write", "UPDATE t SET n = n + 1 WHERE id = {i} RETURNING n", "w:t"),
    (1, "write", "DELETE FROM t WHERE id = {i}", "w:t"),
    (1, "write", "INSERT INTO t (id, v) VALUES ({i}, 'twice')", "w:t"),
    (1, "write", "INSERT INTO t (id, v) VALUES ({i}, 'up') ON CONFLICT (id) DO UPDATE SET n = t.n + 100 RETURNING id, n", "w:t"),
    (1, "write", "DELETE FROM shadow WHERE id = {i}", "w:shadow"),
    (1, "write", "UPDATE shadow SET v = 'u{n}' WHERE id = {i}", "w:shadow"),
    (2, "write", "WITH x AS (WITH y AS (SELECT {n} AS a) INSERT INTO w (who, n) SELECT 'cte', a FROM y RETURNING id) SELECT id FROM x", "w:w"),
    (2, "write", "WITH x AS (DELETE FROM jobs WHERE id = (SELECT min(id) FROM jobs) RETURNING id) SELECT id FROM x", "w:jobs"),
    (2, "write", "WITH y AS MATERIALIZED (WITH z AS (DELETE FROM jobs WHERE id = {i} RETURNING id) SELECT id FROM z) SELECT id FROM y", "w:jobs"),
    (1, "write", "WITH x AS (SELECT id FROM jobs WHERE id = {i} FOR UPDATE NOWAIT) SELECT id FROM x", "w:jobs"),
    (1, "write", "SELECT id FROM jobs WHERE id = {i} FOR UPDATE NOWAIT", "w:jobs"),
    (1, "write", "SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED", "w:jobs"),
    (1, "write", "SELECT * FROM (SELECT id FROM t WHERE id = {i} FOR SHARE) x", "w:t"),
    (1, "write", "SELECT {n} AS id INTO d3", "w:ddl w:d3"),
    # Slow ones, to have others ride behind them
    (3, "slow", "SELECT pg_sleep(0.03)", ""),
    (2, "slow", "SELECT v, pg_sleep(0.03) FROM t WHERE id = {i}", "r:t"),
    (1, "slow", "SELECT pg_sleep(0.03), v FROM v_t WHERE id = {i}", "r:t"),
    (1, "slow", "SELECT nap(0.03)", "k"),
    # Functions, operators, views and triggers that do something
    (3, "effect", "SELECT log('f{n}')", "w:w k"),
    (2, "effect", "SELECT match('f{n}')", "w:w k"),
    (1, "effect", "SELECT sign('f{n}')", "w:w k"),
    (1, "effect", "SELECT index('f', {n})", "w:w k"),
    (1, "effect", "SELECT lower({n})", "w:w k"),
    (1, "effect", "SELECT broadcast('f{n}') FROM t WHERE id = {i}", "w:w r:t k"),
    (1, "effect", "SELECT count(*) FROM t WHERE log(v) > 0 AND id = {i}", "w:w r:t k"),
    (1, "effect", "SELECT public.log('f{n}')", "w:w k"),
    (1, "ddl", "CREATE OPERATOR public.@@@ (LEFTARG = text, RIGHTARG = text, FUNCTION = op_log)", "w:ddl w:op k"),
    (2, "ddl", "SELECT 'a'::text @@@ 'b{n}'", "w:w r:op k"),
    (2, "effect", "SELECT id FROM v_log", "w:w k"),
    (1, "effect", "SELECT x FROM v_set", "k"),
    (1, "effect", "SELECT x FROM v_lock", "w:lock k"),
    (1, "effect", "INSERT INTO tset (v) VALUES ('{p}MB')", "w:tset k"),
    (1, "effect", "INSERT INTO tlog VALUES ({n}, 'x')", "w:tlog w:w k"),
    (1, "effect", "INSERT INTO tlock VALUES ({i})", "w:tlock w:lock k"),
    (2, "effect", "SELECT set_tenant('A')", "k"),
    (1, "effect", "SELECT set_tenant('B')", "k"),
    (1, "effect", "SELECT set_tenant_locally('A')", "k"),
    (2, "read", "SELECT body FROM docs", "r:docs"),
    (1, "read", "SELECT count(*) FROM docs", "r:docs"),
    (1, "effect", "SELECT set_it('work_mem', '{p}MB')", "k"),
    (1, "effect", "SELECT set_it('search_path', 'b')", "k"),
    (1, "effect", "SELECT role_it('diff_boss')", "k"),
    (2, "effect", "SELECT lock_it({i})", "w:lock k"),
    (1, "effect", "SELECT lock_and_fail({i})", "w:lock k"),
    (1, "effect", "SELECT set_and_fail('{p}MB')", "k"),
    (1, "effect", "SELECT temp_it()", "k r:shadow"),
    (1, "effect", "SELECT prepare_it()", "k"),
    (1, "effect", "SELECT run_add('w', 'run {n}')", "w:w k"),
    (1, "effect", "SELECT run_set('{p}MB')", "k"),
    (1, "read", "SELECT run_count('t', {i})", "r:t k"),
    (1, "effect", "SELECT run_it('SET work_mem = ''{p}MB''')", "k"),
    (1, "effect", "SELECT run_it('INSERT INTO w (who, n) VALUES (''it'', {n})')", "w:w k"),
    (1, "effect", "SELECT deallocate_it()", "k"),
    (1, "effect", "SELECT listen_it()", "w:notify k"),
    (1, "effect", "SELECT next_it()", "w:s1 k"),
    (1, "effect", "CALL p_log('p{n}')", "w:w k"),
    (1, "effect", "CALL p_commit('p{n}')", "w:w k 1"),
    (1, "effect", "CALL p_set('a')", "k"),
    (1, "effect", "DO $$ BEGIN PERFORM set_config('work_mem', '{p}MB', false); END $$", "1"),
    (1, "effect", "DO $$ BEGIN INSERT INTO w (who, n) VALUES ('do', {n}); END $$", "w:w 1"),
    (1, "effect", "DO $$ BEGIN SET LOCAL work_mem = '{p}MB'; INSERT INTO w (who, n) VALUES (current_setting('work_mem'), {n}); END $$", "w:w 1"),
    (1, "effect", "DO $$ BEGIN SET work_mem = '{p}MB'; PERFORM 1/0; EXCEPTION WHEN division_by_zero THEN NULL; END $$", "1"),
    (1, "effect", "DO $$ BEGIN INSERT INTO w (who, n) VALUES ('do', {n}); COMMIT; SET work_mem = '{p}MB'; PERFORM 1/0; END $$", "w:w k o 1"),
    (1, "effect", "DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$", "k 1"),
    (1, "effect", "DO $$ BEGIN RAISE NOTICE 'said {n}'; END $$", "1"),
    (1, "effect", "SELECT count(*) FROM query_to_xml('select pg_try_advisory_lock({i})', true, false, '') x", "w:lock k"),
    (1, "effect", "SELECT count(*) FROM query_to_xml('select log(''xml'')', true, false, '') x", "w:w k"),
    # Settings
    (3, "set", "SET work_mem = '{p}MB'", ""),
    (2, "set", "SET search_path = a", ""),
    (1, "set", "SET search_path = b, public", ""),
    (1, "set", "SET TIME ZONE 'Asia/Tokyo'", ""),
    (1, "set", "SET TIME ZONE LOCAL", "k"),
    (1, "set", "SET DateStyle = 'German'", ""),
    (1, "set", "SET application_name = 'app{n}'", ""),
    (1, "set", "SET standard_conforming_strings = off", ""),
    (1, "set", "SET array_nulls = off", ""),
    (1, "set", "SET default_transaction_read_only = on", ""),
    (1, "set", "SET default_transaction_isolation = 'repeatable read'", "s"),
    (1, "set", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", ""),
    (1, "set", "SET app.x = 'x{n}'", "k"),
    (1, "set", "SELECT set_config('app.tenant', 'A', false)", "k"),
    (1, "set", "SELECT set_config('app.tenant', 'B', true)", ""),
    (1, "set", "SELECT set_config('search_path', NULL, false)", "k"),
    (1, "set", "UPDATE pg_settings SET setting = '4321' WHERE name = 'work_mem'", "k"),
    (1, "set", "SET work_mem TO DEFAULT", "k"),
    (1, "set", "SET search_path TO DEFAULT", "k"),
    (2, "set", "RESET search_path", "k"),
    (1, "set", "RESET work_mem", "k"),
    (1, "set", "RESET ALL", "k"),
    (1, "set", "SET nonsense.thing TO 'x'", "k"),
    (1, "set", "SET no_such_setting = 1", "k"),
    (1, "set", "DISCARD ALL", "k o 1"),
    (1, "set", "DISCARD TEMP", "k"),
    (1, "set", "DISCARD PLANS", "k"),
    (1, "set", "DISCARD SEQUENCES", "k"),
    (2, "read", "SHOW work_mem", ""),
    (2, "read", "SHOW search_path", ""),
    (1, "read", "SHOW TimeZone", ""),
    (1, "read", "SELECT current_schema(), current_user, session_user", ""),
    (1, "read", "SELECT current_setting('work_mem'), current_setting('app.tenant', true)", ""),
    (1, "read", "SELECT current_setting('app.x', true)", ""),
    (1, "read", "SELECT timestamptz '2024-02-29 12:00:00+00'", ""),
    (1, "read", "SELECT date '2024-02-29'", ""),
    (1, "read", "SELECT '{{NULL}}'::text[]", ""),
    (1, "read", "SELECT 'a\\'", ""),
    (1, "read", "SELECT name, setting FROM pg_settings WHERE source = 'session' AND name NOT LIKE 'transaction%' ORDER BY name", ""),
    (2, "local", "SET LOCAL work_mem = '{p}MB'", "x"),
    (2, "local", "SET LOCAL search_path = b", "x"),
    (1, "local", "SET LOCAL search_path TO DEFAULT", "x"),
    (1, "local", "SET LOCAL array_nulls = off", "x"),
    (1, "local", "SET LOCAL app.tenant = 'B'", "x"),
    (1, "local", "SET LOCAL app.x = 'local'", "x"),
    (1, "local", "SET LOCAL ROLE diff_boss", "x"),
    (1, "set", "SET SESSION search_path = a, public", ""),
    (1, "set", "SET bytea_output = 'escape'", ""),
    (1, "local", "SET LOCAL bytea_output = 'escape'", "x"),
    (1, "set", "SET quote_all_identifiers = on", ""),
    (1, "read", "SELECT decode('4142', 'hex')::text, quote_ident('abc')", ""),
    (1, "read", "SELECT folded()", "k"),
    (1, "read", "SELECT denied({i})", "k"),
    (1, "read", "SELECT uses_denied({i})", "k"),
    (1, "write", "ANALYZE t", "w:t"),
    (1, "set", "SET IntervalStyle = 'iso_8601'", ""),
    (1, "set", "SET client_min_messages = 'error'", ""),
    (1, "set", "SET client_encoding = 'LATIN1'", ""),
    (1, "set", "SET session_replication_role = replica", "k"),
    (1, "set", "SET transaction_read_only = on", "k"),
    (1, "local", "SET transaction_isolation = 'repeatable read'", "x s k"),
    (1, "set", "SELECT set_config('work_mem', '{p}MB', false), set_config('DateStyle', 'SQL', true)", "k"),
    (1, "set", "BEGIN; SET work_mem = '{p}MB'; COMMIT", "k o Q"),
    (1, "set", "BEGIN; RESET ALL; ROLLBACK", "k o Q"),
    (1, "set", "BEGIN; SET search_path = b; SAVEPOINT x; RESET ALL; ROLLBACK TO x; COMMIT", "k o Q"),
    (1, "read", "SELECT '\\x41ff'::bytea, interval '1 day 2 hours', {n}", ""),
    (1, "read", "SELECT current_setting('DateStyle'), current_setting('IntervalStyle'), current_setting('client_encoding')", ""),
    (1, "conn", "SELECT pg_backend_pid() = %pid% AS x", ""),
    (1, "lock", "SELECT '\\'', pg_try_advisory_lock({i}) --'", "w:lock k"),
    (1, "lock", "SET statement_timeout = '60ms'; SELECT pg_try_advisory_lock({i}), pg_sleep(0.3)", "w:lock k Q o"),
    (1, "effect", "SELECT shadow.eff FROM shadow WHERE id = {i}", "r:shadow k"),
    (1, "effect", "SELECT ts_rewrite('a & b'::tsquery, 'select ''a''::tsquery, ''c''::tsquery from pg_try_advisory_lock({i})')", "w:lock k"),
    (1, "temp", "CREATE TEMP TABLE tt (a int) ON COMMIT DROP", "k x"),
    (1, "ddl", "CREATE OR REPLACE FUNCTION fo(int) RETURNS text LANGUAGE sql AS $$ SELECT set_config('work_mem', $1 || 'MB', false) $$", "w:ddl w:fo k e"),
    (1, "ddl", "CREATE OR REPLACE FUNCTION fo(int) RETURNS text LANGUAGE sql AS $$ INSERT INTO public.w (who, n) VALUES ('fo', $1) RETURNING 'wrote' $$", "w:ddl w:fo k e"),
    (1, "ddl", "CREATE OR REPLACE VIEW vd AS SELECT id, c FROM d1 WHERE pg_try_advisory_lock(id)", "w:ddl w:d1 k e"),
    (1, "ddl", "CREATE TRIGGER x BEFORE INSERT ON d1 FOR EACH ROW EXECUTE FUNCTION tlock_t()", "w:ddl w:d1 k e"),
    (1, "ddl", "CREATE RULE x AS ON INSERT TO d2 DO ALSO INSERT INTO w (who, n) VALUES ('rule', 1)", "w:ddl w:d2 e T"),
    (1, "read", "SELECT vd FROM vd ORDER BY 1", "r:d1 w:lock k"),
    (1, "write", "INSERT INTO t (id, v) VALUES (DEFAULT, 'x{n}') RETURNING id; SELECT lastval()", "w:t Q k"),
    (1, "id", "INSERT INTO w (who, n) VALUES ('last', {n}); SELECT lastval(), currval('w_id_seq')", "w:w Q k"),
    (1, "id", "SELECT nextval('s1'), currval('s1'), lastval()", "w:s1 k"),
    (1, "id", "ROLLBACK; SELECT lastval()", "k x t Q"),
    (1, "cursor", "DO $$ BEGIN EXECUTE 'DECLARE c2 CURSOR WITH HOLD FOR SELECT id, v FROM t ORDER BY id'; END $$", "k r:t 1"),
    (1, "id", "CREATE TEMP SEQUENCE IF NOT EXISTS ts; SELECT nextval('ts')", "k Q"),
    # Of a table that only this client writes
    (3, "own", "INSERT INTO own_%c% (n) VALUES ({n}) RETURNING id", "w:own_%c%"),
    (2, "own", "INSERT INTO own_%c% (n) VALUES ({n})", "w:own_%c%"),
    (2, "own", "SELECT count(*), max(id) FROM own_%c%", "r:own_%c%"),
    (2, "own", "UPDATE own_%c% SET n = n + 1", "w:own_%c%"),
    (1, "own", "SELECT n FROM own_%c% ORDER BY id DESC LIMIT 1 FOR UPDATE", "w:own_%c%"),
    (1, "own", "SELECT lastval()", "k"),
    # Roles
    (1, "role", "SET role = 'diff_boss'", ""),
    (1, "role", "SET role TO DEFAULT", ""),
    (1, "role", "SET SESSION AUTHORIZATION DEFAULT", "k"),
    (1, "role", "SET session_authorization = 'diff_bob'", ""),
    (1, "role", "SET LOCAL SESSION AUTHORIZATION diff_bob", "x"),
    (1, "role", "BEGIN; SET ROLE diff_boss; ROLLBACK", "o Q"),
    (1, "role", "BEGIN; RESET ROLE; ROLLBACK; RESET ALL", "k o Q"),
    (3, "role", "SET ROLE diff_boss", ""),
    (1, "role", "SET ROLE diff_bob", ""),
    (1, "role", "SET ROLE no_such_role", ""),
    (2, "role", "SELECT current_user, session_user, current_setting('role')", ""),
    (1, "role", "SET ROLE diff_boss; SET work_mem = '{p}MB'", "Q"),
    (1, "role", "SET LOCAL ROLE diff_boss", "x"),
    (1, "role", "DO $$ BEGIN SET ROLE diff_boss; END $$", "1"),
    (1, "role", "SET ROLE NONE", ""),
    (1, "role", "RESET ROLE", ""),
    (1, "role", "SELECT set_config('role', 'diff_boss', false)", ""),
    (1, "role", "SET SESSION AUTHORIZATION diff_bob", ""),
    (1, "role", "RESET SESSION AUTHORIZATION", "k"),
    (2, "read", "SELECT x FROM secret", "r:secret"),
    # Locks
    (2, "lock", "SELECT pg_try_advisory_lock({i})", "w:lock k"),
    (1, "lock", "SELECT pg_try_advisory_lock({i}), 1/0", "w:lock k"),
    (1, "lock", "SELECT pg_try_advisory_lock(1), pg_try_advisory_lock(2), pg_try_advisory_lock_shared(3)", "w:lock k"),
    (2, "lock", "SELECT pg_advisory_unlock({i})", "w:lock k"),
    (1, "lock", "SELECT pg_advisory_unlock_all()", "w:lock k"),
    (1, "lock", "SELECT pg_try_advisory_xact_lock({i})", "w:lock"),
    (1, "lock", "SELECT pg_advisory_lock({i}), pg_advisory_lock(2)", "w:lock k"),
    (1, "lock", "LOCK TABLE shadow IN SHARE MODE NOWAIT", "w:shadow x"),
    (2, "read", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()", ""),
    # Temporary objects
    (2, "temp", "CREATE TEMPORARY TABLE shadow AS SELECT 99 AS id, 'temporary'::text AS v", "k"),
    (1, "temp", "CREATE TEMP TABLE shadow (id int, v text) ON COMMIT DELETE ROWS", "k"),
    (1, "temp", "CREATE TEMP TABLE IF NOT EXISTS tt (a int)", "k"),
    (1, "temp", "SELECT 1 AS a INTO TEMP tt", "k"),
    (1, "temp", "CREATE TEMP VIEW item AS SELECT 'temporary view'::text AS x", "k"),
    (1, "temp", "CREATE TEMP SEQUENCE ts", "k"),
    (1, "temp", "INSERT INTO shadow VALUES (5, 'inserted')", "w:shadow"),
    (1, "temp", "SELECT count(*) FROM tt", ""),
    (1, "temp", "DROP TABLE tt", "k"),
    (1, "temp", "CREATE TABLE pg_temp.item (x text)", "k"),
    # Transactions and savepoints
    (8, "begin", "BEGIN", "t o"),
    (1, "begin", "BEGIN ISOLATION LEVEL REPEATABLE READ", "t o s"),
    (1, "begin", "BEGIN READ ONLY", "t o"),
    (1, "begin", "START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE", "t o s"),
    (8, "end", "COMMIT", "t x"),
    (6, "end", "ROLLBACK", "t x"),
    (1, "end", "COMMIT AND CHAIN", "t x"),
    (1, "end", "COMMIT", "t o"),
    (1, "end", "ROLLBACK", "t o"),
    (3, "savepoint", "SAVEPOINT sp{s}", "x"),
    (2, "savepoint", "ROLLBACK TO SAVEPOINT sp{s}", "x"),
    (1, "savepoint", "RELEASE SAVEPOINT sp{s}", "x"),
    (1, "savepoint", "SET TRANSACTION READ ONLY", "x"),
    # Sequences and ids
    (1, "id", "SELECT nextval('s1')", "w:s1 k"),
    (2, "id", "SELECT currval('s1')", "k"),
    (2, "id", "SELECT lastval()", "k"),
    (1, "id", "SELECT currval('w_id_seq')", "k"),
    (1, "id", "SELECT setval('s1', {n})", "w:s1 k"),
    # Statements prepared by SQL
    (2, "prepare", "PREPARE q1 AS SELECT v FROM t WHERE id = {i}", "r:t k"),
    (1, "prepare", "PREPARE q1 (int) AS SELECT $1 + {n}", "k"),
    (1, "prepare", "PREPARE s1 AS SELECT 'by SQL'", "k"),
    (2, "prepare", "EXECUTE q1", "r:t k"),
    (1, "prepare", "EXECUTE q1 (5)", "r:t k"),
    (1, "prepare", "EXECUTE s1", "k r:t"),
    (1, "prepare", "EXPLAIN (COSTS OFF) EXECUTE s1", "k r:t"),
    (1, "prepare", "DEALLOCATE q1", "k"),
    (1, "prepare", "DEALLOCATE s1", "k"),
    (1, "prepare", "DEALLOCATE ALL", "k"),
    (1, "prepare", "SELECT name, statement, from_sql FROM pg_prepared_statements ORDER BY name", "k"),
    # LISTEN and NOTIFY
    (1, "notify", "LISTEN ch1", "w:notify k"),
    (1, "notify", "UNLISTEN ch1", "w:notify k"),
    (1, "notify", "UNLISTEN *", "w:notify k"),
    (2, "notify", "NOTIFY ch1, 'n{n}'", "w:notify"),
    (1, "notify", "SELECT pg_notify('ch1', 'f{n}')", "w:notify"),
    (1, "notify", "SELECT notify_it('g{n}')", "w:notify k"),
    (1, "notify", "SELECT pg_listening_channels()", ""),
    (1, "notify", "LISTEN \"Ch 2\"", "w:notify k"),
    (1, "notify", "SELECT pg_notify('Ch 2', 'o{n}')", "w:notify"),
    (1, "notify", "SELECT count(*) FROM pg_listening_channels()", ""),
    # Cursors
    (1, "cursor", "DECLARE c1 CURSOR FOR SELECT id FROM t ORDER BY id", "x r:t"),
    (1, "cursor", "DECLARE c2 CURSOR WITH HOLD FOR SELECT id, v FROM t ORDER BY id", "k r:t"),
    (1, "cursor", "FETCH 2 FROM c1", "x"),
    (1, "cursor", "FETCH 2 FROM c2", ""),
    (1, "cursor", "MOVE 1 IN c2", ""),
    (1, "cursor", "CLOSE c1", "x"),
    (1, "cursor", "CLOSE ALL", ""),
    (1, "cursor", "SELECT name, statement FROM pg_cursors WHERE name LIKE 'c%' ORDER BY name", ""),
    # DDL
    (1, "ddl", "DROP TABLE d1 CASCADE", "w:ddl w:d1"),
    (1, "ddl", "CREATE TABLE d1 (id int, c text)", "w:ddl w:d1"),
    (1, "ddl", "CREATE TABLE d1 (c int, id text)", "w:ddl w:d1"),
    (1, "ddl", "DROP TABLE IF EXISTS d1 CASCADE; CREATE TABLE d1 (c int, id text); INSERT INTO d1 VALUES (11, 'eleven')", "w:ddl w:d1 Q"),
    (1, "ddl", "ALTER TABLE d1 ADD COLUMN e int DEFAULT {n}", "w:ddl w:d1"),
    (1, "ddl", "ALTER TABLE d1 ALTER COLUMN c TYPE int USING length(c::text)", "w:ddl w:d1"),
    (1, "ddl", "ALTER TABLE d1 RENAME COLUMN c TO cc", "w:ddl w:d1"),
    (1, "ddl", "ALTER TABLE d1 RENAME TO d3", "w:ddl w:d1 w:d3"),
    (1, "ddl", "ALTER TABLE d2 ALTER COLUMN at TYPE timestamptz", "w:ddl w:d2"),
    (1, "ddl", "DROP TYPE mood CASCADE; CREATE TYPE mood AS ENUM ('glad', 'bad')", "w:ddl w:d2 Q"),
    (1, "ddl", "CREATE OR REPLACE FUNCTION fo(int) RETURNS text LANGUAGE sql AS $$ SELECT 'second ' || $1 $$", "w:ddl w:fo T"),
    (1, "ddl", "CREATE FUNCTION fo(text) RETURNS text LANGUAGE sql AS $$ SELECT 'text ' || $1 $$", "w:ddl w:fo T"),
    (1, "ddl", "DROP FUNCTION fo(int)", "w:ddl w:fo"),
    (1, "ddl", "CREATE TABLE a.t (id int, v text)", "w:ddl w:t"),
    (1, "ddl", "CREATE TABLE a.d1 AS SELECT 5 AS id, 'in a'::text AS c", "w:ddl w:d1"),
    (1, "ddl", "CREATE OR REPLACE VIEW vd AS SELECT id, c FROM d1 WHERE id > 1", "w:ddl w:d1 T"),
    (1, "ddl", "DROP TABLE IF EXISTS d3", "w:ddl w:d3"),
    (1, "ddl", "TRUNCATE d1", "w:d1"),
    (1, "ddl", "CREATE INDEX ON d1 (id)", "w:ddl w:d1"),
    (3, "read", "SELECT * FROM d1 ORDER BY 1, 2", "r:d1"),
    (2, "read", "SELECT c FROM d1 WHERE id = {i}", "r:d1"),
    (1, "read", "SELECT at, m FROM d2 ORDER BY id", "r:d2"),
    (1, "write", "INSERT INTO d2 (at, m) VALUES ('2024-01-02 13:14:15', 'glad')", "w:d2 w:w k"),
    (1, "write", "INSERT INTO d1 VALUES ({n}, {n})", "w:d1 w:lock k"),
    (2, "read", "SELECT fo({i})", "r:fo w:w k"),
    (1, "read", "SELECT fo('{i}')", "r:fo w:w k"),
    (1, "read", "SELECT * FROM vd ORDER BY 1, 2", "r:d1 w:lock k"),
    (1, "read", "SELECT * FROM d3 ORDER BY 1", "r:d3"),
    (1, "read", "SELECT 'glad'::mood", "r:d2"),
    # COPY
    # Of a table in which no row changes its place.
    (1, "copy", "COPY docs TO STDOUT", "r:docs"),
    (1, "copy", "COPY (SELECT id FROM t ORDER BY id) TO STDOUT (FORMAT csv)", "r:t"),
    (1, "copy", "COPY (INSERT INTO w (who, n) VALUES ('copy', {n}) RETURNING id) TO STDOUT", "w:w"),
    (1, "misc", "ANALYZE d1", "w:ddl w:d1"),
    (1, "misc", "EXPLAIN (ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF) INSERT INTO w (who, n) VALUES ('explain', {n})", "w:w k"),
    (1, "misc", "EXPLAIN (ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT log('e{n}')", "w:w k"),
    (1, "misc", "SELEC nonsense", "k"),
    (1, "misc", "SELECT no_such_column FROM t", "r:t"),
    (1, "misc", "COMMENT ON TABLE d2 IS 'x{n}'", "w:ddl w:d2"),
    (1, "misc", "CREATE TABLE d3 AS EXECUTE q1", "w:ddl w:d3 k r:t"),
    *((1, "form", text, known) for text, known in FORMS),
]

# Statements with parameters, for the extended protocol: text, values, what is known.
PARAMETERS = [
    ("SELECT v FROM t WHERE id = $1", ["{i}"], "r:t"),
    ("SELECT $1::text || $2", ["p{n}", "{i}"], ""),
    ("SELECT id FROM v_t WHERE id > $1 ORDER BY id", ["{i}"], "r:t"),
    ("INSERT INTO w (who, n) VALUES ($1, $2) RETURNING id", ["ext", "{n}"], "w:w"),
    ("INSERT INTO d2 (at) VALUES ($1) RETURNING at", ["2024-03-01 10:11:12"], "w:d2 w:w k"),
    ("UPDATE t SET n = $2 WHERE id = $1", ["{i}", "{n}"], "w:t"),
    ("SELECT log($1)", ["ext{n}"], "w:w k"),
    ("SELECT set_config('app.tenant', $1, false)", ["A"], "k"),
    ("SELECT set_tenant($1)", ["B"], "k"),
    ("SELECT pg_try_advisory_lock($1)", ["{i}"], "w:lock k"),
    ("SELECT * FROM d1 WHERE id::text = $1", ["{i}"], "r:d1"),
    ("SELECT $1::mood", ["glad"], "r:d2"),
    ("SELECT $1::int / 0", ["{i}"], ""),
    ("SELECT pg_sleep($1)", ["0.03"], ""),
    ("DELETE FROM shadow WHERE id = $1", ["{i}"], "w:shadow"),
    ("SELECT * FROM shadow WHERE id >= $1 ORDER BY id", ["{i}"], "r:shadow"),
    ("SELECT $1::text[]", ["{{a,NULL}}"], ""),
    # Literals, which are read when it is parsed
    ("SELECT $1::int, date '01/02/2023', timestamptz '2024-02-29 12:00', '{{NULL}}'::text[], interval '1-2'", ["{i}"], ""),
    ("SELECT x, date '03/04/2023' FROM item WHERE $1::int > 0", ["{i}"], "r:item"),
]

CONNECTS = [
    (8, {}), (1, {"search_path": "a"}), (1, {"search_path": "b"}), (1, {"TimeZone": "Asia/Tokyo"}),
    (1, {"application_name": "other"}), (1, {"options": "-c work_mem=5MB"}), (1, {"DateStyle": "German"}), (1, {"user": "postgres"}),
    (1, {"search_path": "pg_temp,public"}), (1, {"options": "-c search_path=b -c IntervalStyle=iso_8601"}), (1, {"client_encoding": "LATIN1"}),
    (1, {"default_transaction_read_only": "on"}), (1, {"options": "-c app.x=5"}), (1, {"options": "-c role=diff_boss"}),
    (1, {"options": "-c standard_conforming_strings=off"}), (1, {"work_mem": "5MB", "extra_float_digits": "1"}),
    # Values that are completed from those the server has
    (0.5, {"DateStyle": "ISO"}), (0.5, {"DateStyle": "SQL"}), (0.5, {"DateStyle": "DMY"}), (0.5, {"options": "-c datestyle=postgres"}),
    (0.3, {"default_transaction_isolation": "serializable"}), (0.3, {"application_name": "ÄÖ%d"}),
]

FUNCTION_CALLS = [
    (["F", 2078, ["app.tenant", "A", "f"]], "k"),
    (["F", 2078, ["work_mem", "6MB", "f"]], "k"),
    (["F", 3091, ["%d"]], "w:lock k"),
    # lastval()
    (["F", 2559, []], "k"),
]


# What goes back to a value that a client may have named at its start, and what tells where values come from.
RESETS = re.compile(r"\bRESET\b|DEFAULT|DISCARD ALL|TIME ZONE LOCAL")
ASKS = re.compile(r"FROM pg_settings|NULL, false")
# DDL that makes nothing in the first schema of the search path.
ONLY_CHANGES = re.compile(r"(ALTER|DROP|TRUNCATE|COMMENT|ANALYZE)\b[^;]*$")


class PostgresGenerator(Generator):
    statements = STATEMENTS
    failure_ends = True
    families = {
        # What a session is about: classes and how often they are drawn.
        "all": {},
        "sharing": {"slow": 6, "read": 4, "effect": 5, "write": 3},
        "settings": {"set": 5, "local": 3, "begin": 2, "end": 2, "role": 2, "effect": 2, "read": 2},
        "locks": {"lock": 8, "effect": 3, "begin": 2, "end": 2, "read": 2},
        "temp": {"temp": 8, "set": 2, "begin": 2, "end": 2, "read": 2, "write": 2},
        "ddl": {"ddl": 6, "read": 3, "write": 2, "begin": 1, "end": 1},
        "ids": {"id": 8, "write": 3, "read": 1, "begin": 1, "end": 1},
        "prepare": {"prepare": 8, "ddl": 2, "temp": 1, "read": 2, "begin": 1, "end": 1},
        "news": {"notify": 8, "read": 3, "write": 2, "begin": 2, "end": 2, "savepoint": 1},
        "quick": {"slow": 2, "read": 6, "effect": 3, "ddl": 3, "own": 4},
        "forms": {"form": 6, "set": 1, "write": 1, "begin": 1, "end": 1},
        "free": {"slow": 3, "own": 3, "read": 5, "write": 4, "ddl": 1, "begin": 2, "end": 3, "savepoint": 2, "local": 2, "id": 1},
    }
    modes = [(8, "simple"), (4, "extended"), (4, "named"), (2, "parameters"), (2, "several"), (3, "pipeline"), (1, "call"), (1, "copyin"),
             (1, "portal"), (0.2, "portals"), (1, "flushed"), (0.5, "parts")]

    def of_client(self, model, draw):
        if "EXECUTE s1" in draw.text and "s1" in model.prepared:
            # It does what was prepared by the protocol under that name.
            old = model.prepared["s1"][0]
            draw = Draw(draw.text, draw.reads | old.reads, draw.writes | old.writes, draw.flags | old.flags, draw.family)
        temporary = "pg_temp" in model.params.get("search_path", "")
        makes = temporary and "ddl" in draw.writes and not ONLY_CHANGES.match(draw.text)
        # Where anybody asks what was drawn from a sequence, all keep their servers behind what may draw.
        draws = self.seldom is None and draw.writes - {"lock"}
        return draw.keeping() if makes or draws else draw

    def fits(self, model, messages, drawn):
        """Docs, pins.md, "A server of its own": a client that is in a transaction, or pinned by something inside one, cannot
        change its server for one with its startup parameters."""
        texts = [*texts_of(messages), drawn.text]
        inside = len(texts) > 2 or any(";" in text for text in texts)
        asks = any(ASKS.search(text) or (inside and RESETS.search(text)) for text in texts)
        # Nothing can go ahead of a later part of a batch.
        parts = sum(message == ["H"] for message in messages) > 0
        bound = model.status != "I" or model.tied or ("t" in drawn.flags and len(messages) > 1) or parts
        return not (model.params and asks and bound)

    def connect_params(self):
        return dict(self.pick(CONNECTS))

    def request(self, model, allowed):
        """A request for one client: (messages, what is known of it), or None when nothing fits."""
        mode = self.pick(self.modes)
        return getattr(self, "ask_" + mode)(model, allowed)

    def ask_simple(self, model, allowed):
        drawn = self.statement(model, allowed)
        return drawn and ([["Q", drawn.text]], drawn)

    def ask_several(self, model, allowed):
        parts = [d for _ in range(self.random.randint(2, 3)) if (d := self.statement(model, allowed, several=True))]
        if len(parts) < 2:
            return None
        drawn = Draw.join(parts)
        # Docs, pins.md: among others DDL pins a client whose new tables are temporary ones, whatever it is.
        is_ddl = "ddl" in drawn.writes or any(d.text.startswith("TRUNCATE") for d in parts)
        keeps = "pg_temp" in model.params.get("search_path", "") and is_ddl
        return [["Q", "; ".join(d.text for d in parts)]], drawn.keeping() if keeps else drawn

    def run_of(self, text, params=(), name="", parse=True, describe=True):
        out = [["P", name, text, []]] if parse else []
        out.append(["B", "", name, list(params), [1] if self.random.random() < 0.1 else []])
        if describe:
            out.append(["D", "P", ""])
        return [*out, ["E", "", 0]]

    def ask_extended(self, model, allowed):
        drawn = self.statement(model, allowed, extended=True)
        return drawn and ([*self.run_of(drawn.text, describe=self.random.random() < 0.7), ["S"]], drawn)

    def parameters(self, model, allowed):
        text, values, known = self.random.choice(PARAMETERS)
        drawn = self.suspect(Draw.of(text, known, "parameters"))
        return (drawn, values) if allowed(drawn) else (None, None)

    def ask_parameters(self, model, allowed):
        drawn, values = self.parameters(model, allowed)
        return drawn and ([*self.run_of(drawn.text, [self.fill(v) for v in values]), ["S"]], drawn)

    def ask_named(self, model, allowed):
        """A statement prepared under a name now, executed now and later; or one prepared before."""
        name = self.random.choices(["s1", "s2", "sä", "s" * 70], [10, 10, 0.5, 0.5])[0]
        known = model.prepared.get(name)
        if known and self.random.random() < 0.65:
            drawn, values = self.suspect(known[0]), known[1]
            if not allowed(drawn):
                return None
            kind = self.random.random()
            if kind < 0.1:
                del model.prepared[name]
                return [["C", "S", name], ["S"]], Draw.of("", "", "named")
            if kind < 0.2:
                return [["D", "S", name], ["S"]], drawn
            return [*self.run_of("", [self.fill(v) for v in values], name, parse=False), ["S"]], drawn
        drawn, values = self.parameters(model, allowed) if self.random.random() < 0.5 else (self.statement(model, allowed, extended=True), [])
        # A statement that executes itself ends PostgreSQL's process: its stack is not bounded there.
        if not drawn or "EXECUTE" in drawn.text:
            return None
        if not name.isascii():
            drawn = drawn.keeping()
            if not allowed(drawn):
                return None
        out = [["C", "S", name]] if known and self.random.random() < 0.8 else []
        model.prepared[name] = (drawn, values)
        if self.random.random() < 0.4:
            return [*out, ["P", name, drawn.text, []], ["D", "S", name], ["S"]], drawn
        return [*out, *self.run_of(drawn.text, [self.fill(v) for v in values], name), ["S"]], drawn

    def ask_pipeline(self, model, allowed):
        """Several in one packet: with one Sync, with several, or queries one behind the other."""
        parts = [d for _ in range(self.random.randint(2, 4)) if (d := self.statement(model, allowed, extended=True, several=True))]
        if len(parts) < 2:
            return None
        out = []
        kind = self.random.random()
        for d in parts:
            if kind < 0.3:
                out.append(["Q", d.text])
            else:
                out += self.run_of(d.text, describe=self.random.random() < 0.5)
                if kind < 0.6:
                    out.append(["S"])
        if kind >= 0.6:
            out.append(["S"])
        return out, Draw.join(parts)

    def ask_call(self, model, allowed):
        message, known = self.random.choice(FUNCTION_CALLS)
        drawn = Draw.of("function call", known, "call")
        if not allowed(drawn) or (message[1] == 2559 and self.seldom is not None):
            return None
        message = [message[0], message[1], [a.replace("%d", str(self.random.randint(1, 5))) for a in message[2]]]
        if message[1] == 3091:
            message[1] = 2882  # pg_try_advisory_lock(bigint)
        return [message], drawn

    def ask_copyin(self, model, allowed):
        drawn = Draw.of("COPY cp FROM STDIN", "w:cp", "copy")
        if not allowed(drawn):
            return None
        ending = ["f", "no more"] if self.random.random() < 0.2 else ["c"]
        line = "wrong\n" if self.random.random() < 0.2 else f"{self.number()}\tcopied\n"
        data = [["d", line], ["d", f"{self.number()}\t\\N\n"], ending]
        if self.random.random() < 0.3:
            # A Sync before the end of the data would be taken for data's.
            return [*self.run_of(drawn.text, describe=False), *data, ["S"]], drawn
        return [["Q", drawn.text], *data], drawn

    def ask_portals(self, model, allowed):
        """More named portals than anybody keeps; one of them is run."""
        drawn = Draw.of("SELECT pg_try_advisory_lock($1)", "w:lock k", "portal")
        if not allowed(drawn):
            return None
        binds = [["B", f"m{n}", "", [str(self.random.randint(1, 5))], []] for n in range(70)]
        return [["P", "", drawn.text, []], *binds, ["E", f"m{self.random.choice([0, 63, 64, 69])}", 0], ["S"]], drawn

    def ask_flushed(self, model, allowed):
        """With a Flush between the parts; a Parse and a Describe of their own, whose statement is used behind others'."""
        drawn = self.statement(model, allowed, extended=True)
        if not drawn or not drawn.text:
            return None
        return [["P", "", drawn.text, []], ["H"], ["B", "", "", [], []], ["D", "P", ""], ["H"], ["E", "", 0], ["H"], ["S"]], drawn

    def ask_parts(self, model, allowed):
        """Several in one batch, with a Flush behind each but the last: nothing can go ahead of a later one."""
        parts = [d for _ in range(self.random.randint(2, 3)) if (d := self.statement(model, allowed, extended=True, several=True)) and d.text]
        # Statements that have names are prepared again amid it, as the client would stay with them: that may fail (pins.md).
        if len(parts) < 2 or (model.prepared and any(d.keeps() for d in parts)):
            return None
        out = []
        for d in parts:
            out += [*self.run_of(d.text, describe=self.random.random() < 0.5), ["H"]]
        return [*out[:-1], ["S"]], Draw.join(parts)

    def ask_portal(self, model, allowed):
        """A portal of some rows at a time, inside a transaction also over several requests."""
        drawn = Draw.of("SELECT id, v FROM t ORDER BY id", "r:t", "portal")
        if not allowed(drawn):
            return None
        if model.status == "T" and self.random.random() < 0.5:
            return [["E", "p1", self.random.randint(1, 3)], ["S"]], drawn
        return [["P", "", drawn.text, []], ["B", "p1", "", []], ["E", "p1", 2], ["E", "p1", 2], ["S"]], drawn
