"""What clients of MySQL and MariaDB may do, drawn by chance.

Owns: the statements, and what is known of each (the letters are those of grammar_pg.py; `a` only MariaDB, `m` only MySQL, `p`
keeps its server once it is prepared, `T` where it stands among others: Weir must know what these do, which it does not beside DDL; `C` holds one until its client has sent
what the server asks for, which it does once those before it in its step are answered).
Invariants: every answer is determined by the order of the steps: nothing here depends on time, connection ids, random numbers or the
order of rows without ORDER BY. Nothing waits for a lock: no statement is drawn that touches what another client's open
transaction has touched.
"""

import re
import struct

from .forms_my import FORMS
from .generate import Draw, Generator

STATEMENTS = [
    (6, "read", "SELECT v FROM t WHERE id = {i}", "r:t"),
    (3, "read", "SELECT count(*) FROM w", "r:w"),
    (3, "read", "SELECT {n} AS x, concat('q', {i})", ""),
    (2, "read", "SELECT id, v FROM v_t ORDER BY id LIMIT {i}", "r:t"),
    (2, "read", "SELECT * FROM item", "r:item"),
    (1, "read", "SELECT * FROM %db%x.item", "r:item"),
    (1, "read", "SELECT DATABASE()", ""),
    (2, "read", "SELECT id, v FROM shadow ORDER BY id", "r:shadow"),
    (2, "read", "SELECT f_pure({i}), f_read({i})", "r:t k"),
    (1, "read", "WITH y AS (SELECT id FROM t WHERE id <= {i}) SELECT count(*) FROM y", "r:t"),
    (1, "read", "SELECT 1/0", "k"),
    (2, "warn", "SELECT CAST(a AS SIGNED) FROM five WHERE a = '1a'", "k"),
    (2, "warn", "SELECT CAST('B-secret-{n}' AS SIGNED)", "k"),
    (1, "warn", "SELECT CAST(a AS SIGNED) FROM five ORDER BY a LIMIT {i}", "k"),
    (3, "warn", "SHOW WARNINGS", "p"),
    (1, "warn", "SHOW WARNINGS LIMIT 1", "p"),
    (1, "warn", "/* c */ SHOW WARNINGS", "p"),
    (1, "warn", "SHOW ERRORS", "p"),
    (1, "warn", "SHOW COUNT(*) WARNINGS", "p"),
    (1, "warn", "SELECT @@warning_count, @@error_count", "p"),
    (1, "warn", "GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT", "k"),
    (1, "warn", "DROP TABLE IF EXISTS not_there", "k"),
    (1, "read", "SELECT nothing FROM t", "r:t k"),
    (1, "read", "SELEC nonsense", "k"),
    (1, "read", "/* only a comment */", ""),
    # Slow ones, to have others ride behind them
    (3, "slow", "SELECT SLEEP(0.03)", ""),
    (2, "slow", "SELECT v, SLEEP(0.03) FROM t WHERE id = {i}", "r:t"),
    (1, "slow", "SELECT f_nap()", "k"),
    # Writes, ids, counts
    (3, "write", "INSERT INTO w (who, n) VALUES ('plain', {n})", "w:w"),
    (2, "write", "INSERT INTO w (who, n) VALUES ('a', {n}), ('b', {n})", "w:w"),
    (1, "write", "INSERT INTO w (id, who, n) VALUES ({i}, 'explicit', {n})", "w:w"),
    (1, "write", "INSERT INTO w (id, who, n) VALUES (-{n}, 'negative', {n})", "w:w"),
    (1, "write", "INSERT INTO w (who, n) SELECT 'copied', id FROM t WHERE id <= {i} ORDER BY id", "w:w w:t"),
    (1, "write", "INSERT INTO %db%x.w (who, n) VALUES ('other', {n})", "w:w"),
    (2, "write", "INSERT INTO u (k, n) VALUES ({i}, 1) ON DUPLICATE KEY UPDATE n = n + 1", "w:u"),
    (1, "write", "INSERT INTO u (k, n) VALUES ({i}, 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), n = n + 1", "w:u k"),
    (1, "write", "INSERT IGNORE INTO u (k, n) VALUES ({i}, 1)", "w:u"),
    (1, "write", "REPLACE INTO u (k, n) VALUES ({i}, {n})", "w:u"),
    (2, "write", "UPDATE t SET n = n + 1 WHERE id <= {i}", "w:t"),
    (1, "write", "UPDATE t SET n = LAST_INSERT_ID(n + 1) WHERE id = {i}", "w:t k"),
    (1, "write", "UPDATE t SET n = LAST_INSERT_ID(77) WHERE id = 99", "w:t k"),
    (1, "write", "DELETE FROM t WHERE id = {i}", "w:t"),
    (1, "write", "DELETE FROM shadow WHERE id = {i}", "w:shadow"),
    (1, "write", "INSERT INTO shadow VALUES (9, 'inserted')", "w:shadow"),
    (1, "write", "INSERT INTO jobs (id, state) VALUES ({i}, 'twice')", "w:jobs"),
    (1, "write", "SELECT id FROM jobs WHERE id = {i} FOR UPDATE", "w:jobs"),
    (1, "write", "WITH x AS (SELECT id FROM jobs WHERE id = {i} FOR UPDATE) SELECT id FROM x", "w:jobs m"),
    (1, "write", "INSERT INTO w (who, n) VALUES ('ret', {n}) RETURNING id", "w:w a"),
    (1, "write", "INSERT INTO w (who, n) VALUES ('r1', {n}), ('r2', {n}) RETURNING id, who", "w:w a"),
    (1, "write", "REPLACE INTO u (k, n) VALUES ({i}, {n}) RETURNING k, n", "w:u a"),
    (1, "write", "DELETE FROM jobs WHERE id = {i} RETURNING id", "w:jobs a"),
    (4, "id", "SELECT LAST_INSERT_ID()", "p"),
    (1, "id", "SELECT LAST_INSERT_ID(42)", "k"),
    (1, "id", "SELECT @@last_insert_id, @@identity", "p"),
    (1, "id", "SET last_insert_id = 55", "k"),
    (1, "id", "SET insert_id = 400", "k"),
    (1, "id", "SELECT f_lid({n})", "k"),
    (1, "id", "CALL p_lid({n})", "k"),
    (1, "id", "SELECT x FROM v_lid", "k"),
    (1, "id", "SELECT id FROM w WHERE id IS NULL", "r:w p"),
    (1, "id", "SET sql_auto_is_null = 1", "k"),
    (4, "count", "SELECT ROW_COUNT()", "p"),
    (1, "count", "SELECT f_rows()", "k"),
    (1, "count", "CALL p_count()", "w:t k"),
    (2, "count", "SELECT SQL_CALC_FOUND_ROWS id FROM t ORDER BY id LIMIT 2", "r:t k"),
    (3, "count", "SELECT FOUND_ROWS()", "p"),
    (1, "count", "SELECT x FROM v_found", "k"),
    (1, "count", "SHOW TABLES LIKE 'item'", "p"),
    (1, "count", "DESC item", "r:item p"),
    (2, "count", "INSERT INTO w (who, n) VALUES ('ef', {n}); SELECT id, n FROM w WHERE ROW_COUNT() = 1 AND id = LAST_INSERT_ID()", "w:w Q p"),
    (1, "count", "UPDATE t SET n = n + 1 WHERE id <= {i}; SELECT ROW_COUNT()", "w:t Q p"),
    (1, "count", "SET AUTOCOMMIT = 1; INSERT INTO w (who, n) VALUES ('ef', {n}); SELECT ROW_COUNT(), LAST_INSERT_ID()", "w:w Q k o"),
    (1, "count", "SELECT SQL_CALC_FOUND_ROWS id FROM t ORDER BY id LIMIT 1; SELECT FOUND_ROWS()", "r:t Q k"),
    (1, "count", "BEGIN NOT ATOMIC UPDATE t SET n = 1 WHERE id <= {i}; SELECT ROW_COUNT(); END", "w:t Q k a"),
    # What code does
    (3, "effect", "SELECT f_log('f{n}')", "w:w k"),
    (2, "effect", "SELECT LOOKALIKE({n})", "w:w k"),
    (2, "effect", "SELECT LOOKALIKE({n}) FROM t WHERE id = {i}", "w:w r:t k"),
    (1, "effect", "SELECT x FROM v_log", "w:w k"),
    (1, "effect", "SELECT x FROM v_var", "k"),
    (1, "effect", "SELECT f_var({n})", "k"),
    (1, "effect", "SELECT f_into()", "r:item k"),
    (1, "effect", "SELECT f_lock('%db%{i}')", "w:lock k"),
    (1, "effect", "CALL p_log('p{n}')", "w:w k"),
    (1, "effect", "CALL p_rows()", "k"),
    (1, "effect", "CALL p_mode()", "k"),
    (1, "effect", "CALL p_zone()", "k"),
    (1, "effect", "CALL p_var({n})", "k"),
    (1, "effect", "CALL p_temp()", "k"),
    (1, "effect", "CALL p_fail()", "k"),
    (1, "effect", "CALL p_tempfail()", "k"),
    (1, "effect", "CALL p_lock('%db%{i}')", "w:lock k"),
    (1, "effect", "CALL p_out(@o)", "k"),
    (1, "effect", "CALL p_begin()", "w:w k t o"),
    (1, "effect", "CALL not_there()", "k"),
    (1, "effect", "INSERT INTO tset VALUES (1, 'v{n}')", "w:tset k"),
    (1, "effect", "INSERT INTO tlog VALUES ({n})", "w:tlog w:w k"),
    (1, "effect", "INSERT INTO tlock VALUES ({i})", "w:tlock w:lock k"),
    (1, "effect", "DO f_var({n})", "k"),
    # Variables and settings
    (3, "var", "SELECT @a", ""),
    (1, "var", "SELECT @o, @m, @l IS NULL", ""),
    (2, "var", "SET @a = {n}", ""),
    (1, "var", "SELECT @a := {n}", ""),
    (1, "var", "SELECT n INTO @a FROM t WHERE id = {i}", "r:t"),
    (1, "var", "SELECT .5INTO @a", "k"),
    (2, "set", "SET time_zone = '+09:00'", "k"),
    (1, "set", "SET time_zone = DEFAULT", "k"),
    (1, "set", "SET sql_mode = 'ANSI_QUOTES'", "k"),
    (1, "set", "SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')", "k"),
    (1, "set", "SET SESSION sql_select_limit = {i}", "k"),
    (1, "set", "SET sql_select_limit = DEFAULT", "k"),
    (1, "set", "SET NAMES latin1", "k"),
    (1, "set", "SET NAMES utf8mb4", "k"),
    (1, "set", "SET CHARACTER SET utf8mb4", "k"),
    (1, "set", "SET group_concat_max_len = {p}00", "k"),
    (1, "set", "SET div_precision_increment = {p}, @b = 1", "k"),
    (1, "set", "SET no_such_setting = 1", "k"),
    (1, "set", "SET @@transaction_isolation = 'SERIALIZABLE'", "k m"),
    (1, "set", "SET @@tx_isolation = 'SERIALIZABLE'", "k a"),
    (1, "set", "SET TRANSACTION READ ONLY", "k o"),
    (1, "set", "SET SESSION TRANSACTION READ ONLY", "k"),
    (1, "set", "SET SESSION TRANSACTION READ WRITE", "k"),
    (1, "set", "SET @@transaction_read_only = 1", "k m o"),
    (1, "set", "SET autocommit = 0", "k"),
    (2, "set", "SET autocommit = 1", "k t"),
    (1, "set", "SET lc_messages = 'de_DE'", "k"),
    (1, "set", "SET STATEMENT sort_buffer_size = 100000 FOR SELECT {n}", "k a"),
    (1, "set", "SELECT /*+ SET_VAR(sort_buffer_size = 100000) */ {n}", "k m"),
    (2, "read", "SELECT @@time_zone, @@sql_mode LIKE '%ANSI_QUOTES%', @@autocommit", ""),
    (1, "read", "SELECT @@group_concat_max_len, @@div_precision_increment, @@sql_select_limit > 100", ""),
    (1, "read", "SELECT @@character_set_client, @@collation_connection", ""),
    (1, "read", "SELECT TIMESTAMP'2024-02-29 12:00:00', FROM_UNIXTIME(1709208000)", ""),
    (1, "read", "SELECT \"id\" FROM t WHERE id = {i}", "r:t"),
    (1, "read", "SELECT 'a\\\\'", ""),
    (1, "read", "SHOW VARIABLES LIKE 'time_zone'", "T"),
    (1, "var", "SET @a := {n}, @b = @a", ""),
    (1, "var", "SET @a = (SELECT count(*) FROM t WHERE id < {i})", "r:t"),
    (1, "var", "SELECT @a := @a + 1", ""),
    (1, "var", "SELECT {n} INTO @a", ""),
    (1, "var", "SELECT @a, @b, @`a`", ""),
    (1, "set", "SET @@session.group_concat_max_len = {p}00", "k"),
    (1, "set", "SET LOCAL group_concat_max_len = DEFAULT", "k"),
    (1, "set", "SET @@group_concat_max_len = @@global.group_concat_max_len", "k"),
    (1, "set", "SET NAMES utf8mb4 COLLATE utf8mb4_bin", "k"),
    (1, "set", "SET CHARACTER SET DEFAULT", "k"),
    (1, "set", "SET sql_select_limit = 0", "k"),
    (1, "set", "SET sql_safe_updates = 1", "k"),
    (1, "set", "SET foreign_key_checks = 0, unique_checks = 0", "k"),
    (1, "set", "SET timestamp = 1709208000", "k"),
    (1, "set", "SET timestamp = 1709208000; SELECT NOW(), UNIX_TIMESTAMP()", "k Q"),
    (1, "set", "SET timestamp = DEFAULT", "k"),
    (1, "set", "SET rand_seed1 = {n}, rand_seed2 = 7; SELECT RAND()", "k Q"),
    (1, "set", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "k"),
    (1, "set", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "k o"),
    (1, "set", "SET autocommit = DEFAULT", "k t"),
    (1, "set", "SET sql_mode = REPLACE(@@sql_mode, 'STRICT_TRANS_TABLES', '')", "k"),
    (1, "set", "SET SESSION sql_mode = DEFAULT", "k"),
    (1, "set", "SET optimizer_switch = 'index_merge=off'", "k"),
    (1, "set", "SET max_statement_time = 5", "k a"),
    (1, "set", "SET SESSION max_execution_time = 5000", "k m"),
    (1, "read", "SELECT @@optimizer_switch LIKE '%index_merge=off%', @@sql_safe_updates, @@foreign_key_checks", ""),
    (1, "read", "SELECT @@session.transaction_isolation, @@transaction_read_only", "m"),
    (1, "read", "SELECT @@session.tx_isolation, @@tx_read_only", "a"),
    (1, "read", "SHOW VARIABLES LIKE 'session_track%'", "T"),
    (1, "warn", "GET DIAGNOSTICS @m = NUMBER, @o = ROW_COUNT", "k"),
    (1, "warn", "SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'said'", "k"),
    (1, "warn", "INSERT INTO tlog VALUES ('3x')", "w:tlog w:w k"),
    (1, "effect", "CALL p_two()", "w:t k"),
    (1, "ddl", "DROP FUNCTION IF EXISTS fo; CREATE FUNCTION fo(i int) RETURNS varchar(20) BEGIN SET @a = i; RETURN 'third'; END", "w:ddl w:fo t Q k e"),
    (1, "ddl", "DROP FUNCTION IF EXISTS fo; CREATE FUNCTION fo(i int) RETURNS varchar(20) BEGIN INSERT INTO w (who, n) VALUES ('fo', i); RETURN 'fourth'; END", "w:ddl w:fo t Q k e"),
    (1, "ddl", "CREATE OR REPLACE VIEW vd AS SELECT f_var(7) AS id, 'effect' AS c", "w:ddl w:d1 t k e"),
    (1, "ddl", "CREATE TRIGGER xd BEFORE INSERT ON d1 FOR EACH ROW SET @a = 77", "w:ddl w:d1 t k e"),
    (1, "write", "INSERT INTO d1 (id) VALUES ({n})", "w:d1 k"),
    (1, "load", "LOAD DATA LOCAL INFILE 'given' INTO TABLE w (who, n)", "w:w 1 C"),
    # Schemas
    (2, "schema", "USE %db%x", "k"),
    (2, "schema", "USE %db%", "k"),
    (1, "schema", "USE not_there", "k"),
    (1, "schema", "CREATE DATABASE %db%y", "w:ddl w:y t"),
    (1, "schema", "USE %db%y", "r:y k"),
    (1, "schema", "DROP DATABASE IF EXISTS %db%y", "w:ddl w:y t"),
    # Locks
    (2, "lock", "SELECT GET_LOCK('%db%{i}', 0)", "w:lock k"),
    (1, "lock", "DO GET_LOCK('%db%{i}', 0)", "w:lock k"),
    (2, "lock", "SELECT RELEASE_LOCK('%db%{i}')", "w:lock k"),
    (1, "lock", "DO RELEASE_LOCK('%db%{i}')", "w:lock k"),
    (1, "lock", "SELECT RELEASE_ALL_LOCKS()", "w:lock k"),
    (2, "lock", "SELECT IS_FREE_LOCK('%db%{i}')", "r:lock"),
    (1, "lock", "SELECT IS_USED_LOCK('%db%{i}') = CONNECTION_ID()", "r:lock"),
    (1, "lock", "INSERT INTO w (who, n) SELECT 'lock', GET_LOCK('%db%{i}', 0)", "w:w w:lock k"),
    (1, "lock", "LOCK TABLES jobs WRITE", "w:jobs w:tables k t o"),
    (1, "lock", "LOCK TABLES item READ", "r:item w:tables k t o"),
    (2, "lock", "UNLOCK TABLES", "k t"),
    # Temporary tables
    (2, "temp", "CREATE TEMPORARY TABLE shadow (id int, v varchar(20))", "k"),
    (1, "temp", "CREATE TEMPORARY TABLE shadow SELECT 99 AS id, 'temporary' AS v", "k"),
    (1, "temp", "CREATE TEMPORARY TABLE IF NOT EXISTS tt (a int)", "k"),
    (1, "temp", "SELECT count(*) FROM tt", ""),
    (1, "temp", "INSERT INTO tt VALUES ({n})", ""),
    (1, "temp", "DROP TEMPORARY TABLE shadow", "k"),
    (1, "temp", "DROP TEMPORARY TABLE IF EXISTS tt", "k"),
    # Transactions
    (8, "begin", "BEGIN", "t"),
    (1, "begin", "START TRANSACTION READ ONLY", "t"),
    (1, "begin", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "t r:t r:w r:u"),
    (8, "end", "COMMIT", "t"),
    (6, "end", "ROLLBACK", "t"),
    (1, "end", "COMMIT AND CHAIN", "t x"),
    (1, "end", "ROLLBACK RELEASE", "t x"),
    (3, "savepoint", "SAVEPOINT sp{s}", "x"),
    (2, "savepoint", "ROLLBACK TO SAVEPOINT sp{s}", "x"),
    (1, "savepoint", "RELEASE SAVEPOINT sp{s}", "x"),
    (1, "savepoint", "XA START '%db%x1'", "t o k"),
    # Statements prepared by SQL
    (2, "prepare", "PREPARE q1 FROM 'SELECT v FROM t WHERE id = {i}'", "k"),
    (1, "prepare", "PREPARE q1 FROM 'SELECT ROW_COUNT(), FOUND_ROWS()'", "k"),
    (1, "prepare", "PREPARE q1 FROM 'SELECT * FROM d1 ORDER BY 1'", "k r:d1"),
    (1, "prepare", "PREPARE q1 FROM 'INSERT INTO w (who, n) VALUES (''pre'', {n})'", "k"),
    (3, "prepare", "EXECUTE q1", "r:t r:d1 w:w k"),
    (1, "prepare", "DEALLOCATE PREPARE q1", "k"),
    (1, "prepare", "EXECUTE IMMEDIATE 'SELECT ROW_COUNT()'", "k a"),
    # DDL
    (1, "ddl", "DROP TABLE d1", "w:ddl w:d1 t"),
    (1, "ddl", "CREATE TABLE d1 (id int, c varchar(20))", "w:ddl w:d1 t"),
    (1, "ddl", "CREATE TABLE d1 (c int, id varchar(20))", "w:ddl w:d1 t"),
    (1, "ddl", "DROP TABLE IF EXISTS d1; CREATE TABLE d1 (c int, id varchar(9)); INSERT INTO d1 VALUES (11, 'eleven')", "w:ddl w:d1 t Q"),
    (1, "ddl", "ALTER TABLE d1 ADD COLUMN e int DEFAULT {n}", "w:ddl w:d1 t"),
    (1, "ddl", "ALTER TABLE d1 DROP COLUMN c", "w:ddl w:d1 t"),
    (1, "ddl", "ALTER TABLE d1 RENAME TO d3", "w:ddl w:d1 w:d3 t"),
    (1, "ddl", "RENAME TABLE d3 TO d1", "w:ddl w:d1 w:d3 t"),
    (1, "ddl", "ALTER TABLE d2 MODIFY at datetime", "w:ddl w:d2 t"),
    (1, "ddl", "DROP FUNCTION fo", "w:ddl w:fo t"),
    (1, "ddl", "CREATE FUNCTION fo(i int) RETURNS varchar(20) DETERMINISTIC NO SQL RETURN concat('second ', i)", "w:ddl w:fo t T"),
    (1, "ddl", "CREATE OR REPLACE VIEW vd AS SELECT id, c FROM d1 WHERE id > 1", "w:ddl w:d1 t"),
    (1, "ddl", "CREATE OR REPLACE VIEW vc AS SELECT CONNECTION_ID() AS x, ROW_COUNT() AS y, FOUND_ROWS() AS z", "w:ddl w:vc t"),
    (1, "ddl", "TRUNCATE TABLE d1", "w:ddl w:d1 t"),
    (1, "ddl", "CREATE TABLE d3 AS SELECT id, v FROM t ORDER BY id", "w:ddl w:d3 w:t t"),
    (1, "ddl", "DROP TABLE IF EXISTS d3", "w:ddl w:d3 t"),
    (3, "read", "SELECT * FROM d1 ORDER BY 1, 2", "r:d1"),
    (2, "read", "SELECT c FROM d1 WHERE id = '{i}'", "r:d1"),
    (1, "read", "SELECT at FROM d2 ORDER BY id", "r:d2"),
    (1, "write", "INSERT INTO d2 (at) VALUES ('2024-01-02 13:14:15')", "w:d2"),
    (1, "read", "SELECT fo({i})", "r:fo w:w k"),
    (1, "read", "SELECT * FROM vd ORDER BY 1", "r:d1 k"),
    (1, "read", "SELECT x = CONNECTION_ID(), y, z FROM vc", "r:vc k"),
    (1, "read", "SELECT view_definition LIKE '%connection_id%' FROM information_schema.views WHERE table_schema = '%db%' AND table_name = 'vc'", "r:vc"),
    # Of a table that only this client writes
    (4, "own", "INSERT INTO own_%c% (n) VALUES ({n})", "w:own_%c%"),
    (2, "own", "INSERT INTO own_%c% (n) VALUES ({n}), ({n})", "w:own_%c%"),
    (1, "own", "INSERT INTO own_%c% (n) VALUES ({n}); SELECT LAST_INSERT_ID(), ROW_COUNT()", "w:own_%c% Q p"),
    (1, "own", "INSERT INTO own_%c% (n) VALUES ({n}) RETURNING id", "w:own_%c% a"),
    (2, "own", "UPDATE own_%c% SET n = n + 1", "w:own_%c%"),
    (1, "own", "UPDATE own_%c% SET n = LAST_INSERT_ID(n + 1) ORDER BY id LIMIT 1", "w:own_%c% k"),
    (2, "own", "SELECT count(*), max(id) FROM own_%c%", "r:own_%c%"),
    (1, "own", "SELECT n FROM own_%c% ORDER BY id DESC LIMIT 1 FOR UPDATE", "w:own_%c%"),
    (3, "own", "SELECT LAST_INSERT_ID()", "p"),
    (2, "own", "SELECT ROW_COUNT()", "p"),
    # Ids of connections
    (1, "conn", "SELECT CONNECTION_ID() = %id% AS x", ""),
    (1, "conn", "SELECT id = %id% AS x FROM information_schema.processlist WHERE id = CONNECTION_ID()", "m"),
    (1, "conn", "SELECT IS_USED_LOCK('%db%{i}') = %id% AS x", "r:lock"),
    (1, "conn", "KILL QUERY 999999999", ""),
    (1, "conn", "KILL %id%", "k 1"),
    (1, "conn", "KILL QUERY %id%", "k 1"),
    (1, "conn", "KILL CONNECTION CONNECTION_ID()", "k 1"),
    (1, "conn", "SELECT 1; KILL QUERY 999999999", "k Q"),
    (1, "conn", "SELECT CONNECTION_ID() = CONNECTION_ID()", ""),
    (1, "conn", "SELECT count(*) FROM information_schema.processlist WHERE id = CONNECTION_ID()", "m"),
    (1, "conn", "KILL QUERY 1", ""),
    # MariaDB's sequences
    (3, "seq", "SELECT NEXTVAL(s1)", "w:s1 a k"),
    (1, "seq", "SELECT NEXT VALUE FOR s1", "w:s1 a k"),
    (3, "seq", "SELECT LASTVAL(s1)", "a"),
    (2, "seq", "SELECT PREVIOUS VALUE FOR s1", "a"),
    (1, "seq", "SELECT SETVAL(s1, {n}00)", "w:s1 a k"),
    (1, "seq", "SELECT NEXTVAL(s1), LASTVAL(s1)", "w:s1 a k"),
    (1, "seq", "INSERT INTO w (who, n) VALUES ('seq', NEXTVAL(s1)); SELECT LASTVAL(s1)", "w:w w:s1 a Q k"),
    (1, "seq", "SET sql_mode = 'ORACLE'", "k a"),
    (1, "seq", "SELECT s1.nextval", "w:s1 a k"),
    (1, "seq", "SELECT s1.currval", "a"),
    (1, "seq", "DO NEXTVAL(s1)", "w:s1 a k"),
    (1, "seq", "SELECT f_next()", "w:s1 k a"),
    (2, "seq", "SELECT NEXTVAL(s1) - NEXTVAL(s1)", "w:s1 a k"),
    (1, "seq", "SELECT LASTVAL(s1) IS NULL", "a"),
    (1, "seq", "SELECT PREVIOUS VALUE FOR s1 IS NULL", "a"),
    (1, "seq", "INSERT INTO w (who, n) VALUES ('seq', NEXTVAL(s1) * 0)", "w:w w:s1 a k"),
    # Cursors
    (1, "handler", "HANDLER t OPEN", "k r:t"),
    (1, "handler", "HANDLER t READ FIRST", "r:t"),
    (1, "handler", "HANDLER t CLOSE", "k"),
    (1, "misc", "FLUSH TABLES", "w:ddl t k"),
    (1, "misc", "SHOW CREATE TABLE item", "r:item"),
    (1, "misc", "SHOW STATUS LIKE 'no_such'", ""),
    (1, "misc", "SELECT @@collation_database, @@character_set_database", ""),
    (1, "misc", "EXPLAIN SELECT 1", ""),
    # Roles: no reset takes them away
    (2, "role", "SET ROLE '%db%r'", "k"),
    (1, "role", "SET ROLE NONE", "k"),
    (1, "role", "SET ROLE not_there", "k"),
    (1, "role", "SET ROLE DEFAULT", "k m"),
    (3, "role", "SELECT CURRENT_ROLE()", ""),
    (1, "role", "SELECT CURRENT_USER() = SUBSTRING_INDEX(USER(), '@', 1)", ""),
    *((1, "form", text, known) for text, known in FORMS),
]

PARAMETERS = [
    ("SELECT v FROM t WHERE id = ?", ["{i}"], "r:t"),
    ("SELECT concat(?, ?)", ["p{n}", "{i}"], ""),
    ("SELECT id FROM v_t WHERE id > ? ORDER BY id", ["{i}"], "r:t"),
    ("INSERT INTO w (who, n) VALUES (?, ?)", ["ext", "{n}"], "w:w"),
    ("INSERT INTO w (who, n) VALUES (?, ?), ('more', 1)", ["ext", "{n}"], "w:w"),
    ("INSERT INTO u (k, n) VALUES (?, 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), n = n + 1", ["{i}"], "w:u k"),
    ("UPDATE t SET n = ? WHERE id <= ?", ["{n}", "{i}"], "w:t"),
    ("SELECT CAST(? AS SIGNED)", ["9x{n}"], "k"),
    ("SELECT f_log(?)", ["ext{n}"], "w:w k"),
    ("SELECT f_var(?)", ["{n}"], "k"),
    ("SELECT GET_LOCK(?, 0)", ["%db%{i}"], "w:lock k"),
    ("SELECT LAST_INSERT_ID(), ROW_COUNT()", [], "k"),
    ("SELECT FOUND_ROWS()", [], "k"),
    ("SELECT * FROM d1 WHERE id = ?", ["{i}"], "r:d1"),
    ("SELECT SLEEP(?)", ["0.03"], ""),
    ("SELECT * FROM shadow WHERE id >= ? ORDER BY id", ["{i}"], "r:shadow"),
    ("DELETE FROM shadow WHERE id = ?", ["{i}"], "w:shadow"),
    ("SHOW WARNINGS", [], "k"),
    ("CALL p_var(?)", ["{n}"], "k"),
    ("CALL p_rows()", [], "k"),
    ("SELECT * FROM item", [], "r:item"),
    ("SELECT ?, ? + 1", ["{i}", "{n}"], "k"),
    ("INSERT INTO w (who, n) VALUES (concat('typed ', ?), ? + 1)", ["{i}", "{n}"], "w:w k"),
    ("INSERT INTO d2 (at) VALUES (?)", ["2024-01-0{i}"], "w:d2 k"),
]
# What a parameter may be that is a whole number, and how it is written.
NUMBERS = [
    (3, lambda n: struct.pack("<i", n)), (8, lambda n: struct.pack("<q", n)), (2, lambda n: struct.pack("<h", n)),
    (5, lambda n: struct.pack("<d", n + 0.5)), (5, lambda n: struct.pack("<d", n)), (4, lambda n: struct.pack("<f", n)),
    (246, lambda n: text_of(f"{n}.25")), (253, lambda n: text_of(str(n))), (254, lambda n: text_of(f"{n}x")), (252, lambda n: text_of(str(n))),
    (10, lambda n: bytes([4]) + struct.pack("<HBB", 2024, 2, n % 28 + 1)), (12, lambda n: bytes([7]) + struct.pack("<HBBBBB", 2024, 2, n % 28 + 1, 1, 2, 3)),
    (11, lambda n: bytes([8, 0]) + struct.pack("<IBBB", 0, 1, 2, n % 60)), (6, None),
]


def text_of(text):
    return bytes([len(text)]) + text.encode()



class MySqlGenerator(Generator):
    waits_end = False
    kind = "mysql"
    lookalikes = ()
    families = {
        "all": {},
        "sharing": {"slow": 5, "read": 4, "effect": 4, "warn": 2, "id": 1, "write": 2},
        "settings": {"set": 5, "var": 3, "effect": 3, "read": 2, "begin": 1, "end": 1},
        "locks": {"lock": 8, "effect": 3, "read": 2, "begin": 1, "end": 1},
        "temp": {"temp": 8, "effect": 2, "read": 2, "write": 1},
        "ddl": {"ddl": 6, "schema": 2, "read": 3, "write": 1},
        "quick": {"slow": 2, "read": 4, "own": 6, "warn": 2, "count": 1, "effect": 1, "id": 1},
        "ids": {"id": 5, "own": 3, "conn": 1, "count": 4, "write": 3, "warn": 2, "seq": 2, "begin": 1, "end": 1, "read": 1},
        "prepare": {"prepare": 6, "ddl": 1, "temp": 1, "read": 2, "count": 1},
        "free": {"slow": 3, "own": 3, "load": 2, "read": 5, "write": 4, "begin": 2, "end": 3, "savepoint": 2, "id": 2, "count": 2, "warn": 2},
        "schemas": {"schema": 8, "write": 3, "read": 2, "slow": 1},
        "forms": {"form": 4, "warn": 2, "count": 2, "id": 2, "var": 1},
        "roles": {"role": 8, "read": 2, "effect": 1, "begin": 1, "end": 1, "own": 1},
    }
    modes = [(9, "simple"), (5, "prepared"), (3, "parameters"), (2, "several"), (1, "pipeline"), (2, "command"), (1, "fetched"), (1, "long")]
    commands = [(4, ["ping"], ""), (2, ["init", "%db%x"], "k"), (2, ["init", "%db%"], "k"), (1, ["init", "not_there"], ""), (2, ["reset"], "w:lock k t"),
                (1, ["change", "%db%"], "w:lock k t"), (1, ["change", "%db%x"], "w:lock k t"), (1, ["option", 1], "k"), (1, ["option", 0], "k"), (1, ["sreset", "s1"], ""),
                (1, ["sclose", "s1"], ""), (1, ["fetch", "s1", 2], "k"), (1, ["exec", "s9", [], 0], "")]

    def __init__(self, seed):
        super().__init__(seed)
        self.flags = self.random.choice(["", "", "eof", "eof", "eof track", "found", "eof found", "track", "local", "eof local", "nops", "eof nops", "noresults nops", "eof ignore"])

    def choose(self, family):
        wrong = "m" if self.kind == "mariadb" else "a"
        self.statements = [(weight, name, text.replace("LOOKALIKE", self.random.choice(self.lookalikes)), known)
                           for weight, name, text, known in STATEMENTS if wrong not in known.split()[-1:] and wrong not in known.split()]
        super().choose(family)

    def connect_params(self):
        r = self.random
        params = {"flags": self.flags} if self.flags else {}
        if r.random() < 0.15:
            params["schema"] = "%db%x"
        if r.random() < 0.05:
            params["charset"] = 8
        return params

    def request(self, model, allowed):
        got = getattr(self, "ask_" + self.pick(self.modes))(model, allowed)
        return got

    def ask_simple(self, model, allowed):
        drawn = self.statement(model, allowed)
        return drawn and ([["Q", drawn.text]], drawn)

    def ask_several(self, model, allowed):
        parts = [d for _ in range(self.random.randint(2, 3)) if (d := self.statement(model, allowed, several=True))]
        if len(parts) < 2:
            return None
        return [["Q", "; ".join(d.text for d in parts)]], Draw.join(parts)

    def ask_pipeline(self, model, allowed):
        """Commands one behind the other, without waiting for the answers."""
        parts = [d for _ in range(2) if (d := self.statement(model, allowed, several=True))]
        if len(parts) < 2:
            return None
        return [["pipeline"], *(["Q", d.text] for d in parts)], Draw.join(parts)

    def parameters(self, model, allowed):
        text, values, known = self.random.choice(PARAMETERS)
        drawn = self.suspect(Draw.of(text, known, "parameters"))
        return (drawn, values) if allowed(drawn) else (None, None)

    def ask_parameters(self, model, allowed):
        drawn, values = self.parameters(model, allowed)
        if not drawn:
            return None
        return [["prep", "s9", drawn.text], ["exec", "s9", [self.fill(v) for v in values], 0], ["sclose", "s9"]], drawn

    def ask_prepared(self, model, allowed):
        name = self.random.choice(["s1", "s2"])
        known = model.prepared.get(name)
        if known and self.random.random() < 0.7:
            drawn, values = self.suspect(known[0]), known[1]
            if not allowed(drawn):
                return None
            if self.random.random() < 0.12:
                del model.prepared[name]
                return [["sclose", name], ["ping"]], Draw.of("", "", "prepared")
            return self.execution(name, drawn, values, allowed)
        drawn, values = self.parameters(model, allowed) if self.random.random() < 0.5 else (self.statement(model, allowed, extended=True), [])
        # A statement's flags at its prepare are those at each of its executions too.
        if not drawn or "t" in drawn.flags:
            return None
        if known:
            # What stands under this name stays there when the new one cannot be prepared.
            old = known[0]
            drawn = Draw(drawn.text, drawn.reads | old.reads, drawn.writes | old.writes, drawn.flags | old.flags, drawn.family)
            if not allowed(drawn):
                return None
        model.prepared[name] = (drawn, values)
        out = [["prep", name, drawn.text]]
        if self.random.random() < 0.7:
            out.append(["exec", name, [self.fill(v) for v in values], 0])
        return out, drawn

    def execution(self, name, drawn, values, allowed):
        """Of a statement that the client has prepared before: with parameters of any types, or a cursor. Both may keep the server."""
        r = self.random
        filled = [self.fill(v) for v in values]
        keeping = drawn.keeping()
        if values and r.random() < 0.25 and allowed(keeping):
            return [["typed", name, [self.typed(v) for v in filled], 0, 1]], keeping
        # MySQL 9.7 has died of an EXPLAIN with a cursor, MariaDB 10.11 of a DELETE ... RETURNING.
        if r.random() < 0.05 and not re.search("EXPLAIN|RETURNING", drawn.text) and allowed(keeping):
            drawn = keeping
            return [["exec", name, filled, 1], *([["fetch", name, 2]] if r.random() < 0.7 else [])], drawn
        return [["exec", name, filled, 0]], drawn

    def typed(self, value):
        """A parameter of a type that drivers send."""
        if not value.isdigit():
            return [self.random.choice([253, 254, 252]), 0, text_of(value).hex()]
        kind, write = self.random.choice(NUMBERS)
        return [kind, int(kind in (2, 3, 8) and self.random.random() < 0.3), write and write(int(value)).hex()]

    def ask_command(self, model, allowed):
        total = sum(w for w, *_ in self.commands)
        at = self.random.random() * total
        for weight, message, known in self.commands:
            at -= weight
            if at < 0:
                break
        drawn = Draw.of(message[0], known, "command")
        if not allowed(drawn):
            return None
        if message[0] in ("reset", "change"):
            model.prepared.clear()
        if message[0] == "sclose":
            return [message, ["ping"]], drawn
        return [list(message)], drawn

    def ask_fetched(self, model, allowed):
        """A cursor of the protocol: some rows at a time."""
        drawn = Draw.of("SELECT id, v FROM t ORDER BY id", "r:t k", "cursor")
        if not allowed(drawn):
            return None
        out = [["prep", "s8", drawn.text], ["exec", "s8", [], 1], ["fetch", "s8", 2]]
        if self.random.random() < 0.6:
            out += [["fetch", "s8", 9], ["sclose", "s8"]]
        return out, drawn

    def ask_long(self, model, allowed):
        """A parameter in parts, before its execution; perhaps taken back."""
        drawn = Draw.of("SELECT concat(?, ?)", "k", "long")
        if not allowed(drawn):
            return None
        parts = [["long", "s7", 0, f"part {self.number()} "] for _ in range(self.random.randint(1, 3))]
        taken = [["sreset", "s7"]] if self.random.random() < 0.3 else []
        values = ["given" if taken else True, str(self.number())]
        return [["prep", "s7", drawn.text], *parts, *taken, ["exec", "s7", values, 0], ["exec", "s7", ["again", "x"], 0], ["sclose", "s7"]], drawn

    def conflict(self, draw, other):
        seen = other.reads | other.writes
        return bool(draw.writes & seen or draw.reads & other.writes or ("ddl" in draw.writes and "ddl" in other.writes)
                    or ("tables" in other.writes and other.holds()))


def generator(kind):
    from .world_my import LOOKALIKES
    return type("Drawn", (MySqlGenerator,), {"kind": kind, "lookalikes": LOOKALIKES[kind]})
