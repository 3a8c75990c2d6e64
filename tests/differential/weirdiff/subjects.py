"""Sessions about one subject, drawn from lists of statements.

Owns: the lists, and how they are drawn from. `states`: settings that move with their clients, and beside them all that may not run: what fails as it is
prepared anew, what is refused, what is not there. `holds`: transactions, locks, temporary tables, cursors, channels: what a client holds in its server,
how it gives it back, and who sees it. `ids`: what a session knows of the rows it has written: LAST_INSERT_ID(), ROW_COUNT(), FOUND_ROWS(), sequences.

Must not know: how scripts are played.
"""

from .script import Writer

KINDS = ("holds", "ids", "states")

HOLDS_MY = {
    "does": [
        "BEGIN", "BEGIN", "START TRANSACTION READ ONLY", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "COMMIT", "COMMIT", "ROLLBACK", "COMMIT AND CHAIN",
        "ROLLBACK AND CHAIN", "SAVEPOINT x1", "ROLLBACK TO x1", "RELEASE SAVEPOINT x1", "SET autocommit = 0", "SET autocommit = 1", "SET @@autocommit = 1",
        "SET TRANSACTION READ ONLY", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SET SESSION TRANSACTION READ ONLY", "SET SESSION TRANSACTION READ WRITE",
        "SET completion_type = 1", "SET completion_type = DEFAULT", "XA START '%db%'", "XA END '%db%'", "XA ROLLBACK '%db%'", "XA COMMIT '%db%' ONE PHASE",
        "UPDATE t SET n = n + 1 WHERE id = 1", "INSERT INTO w (who, n) VALUES ('h', 1)", "DELETE FROM jobs WHERE id = 2", "CALL p_begin()",
        "INSERT INTO d1 VALUES (9, 'nine')", "ALTER TABLE d1 ADD COLUMN zz int", "CREATE TABLE IF NOT EXISTS d3 (i int)", "DROP TABLE IF EXISTS d3",
        "SELECT GET_LOCK('%db%1', 0)", "SELECT GET_LOCK('%db%1', 0), GET_LOCK('%db%2', 0)", "DO GET_LOCK('%db%2', 0)", "SELECT RELEASE_LOCK('%db%1')",
        "DO RELEASE_LOCK('%db%2')", "SELECT RELEASE_ALL_LOCKS()", "SELECT f_lock('%db%3')", "CALL p_lock('%db%3')", "SELECT RELEASE_LOCK('%db%3')",
        "INSERT INTO tlock VALUES (4)", "SELECT RELEASE_LOCK('%db%4')", "LOCK TABLES w WRITE, t READ", "LOCK TABLES five READ", "UNLOCK TABLES", "UNLOCK TABLES",
        "FLUSH TABLES five WITH READ LOCK", "HANDLER five OPEN", "HANDLER five READ NEXT", "HANDLER five CLOSE", "HANDLER t OPEN AS h1", "HANDLER h1 CLOSE",
        "CREATE TEMPORARY TABLE shadow (id int, v varchar(20))", "CREATE TEMPORARY TABLE IF NOT EXISTS shadow (id int, v varchar(20))",
        "CREATE TEMPORARY TABLE shadow LIKE shadow", "CREATE TEMPORARY TABLE tt AS SELECT id FROM t", "CREATE TEMPORARY TABLE tt ENGINE = MEMORY SELECT 1 AS id",
        "DROP TEMPORARY TABLE IF EXISTS shadow", "DROP TEMPORARY TABLE shadow", "DROP TABLE tt", "DROP TEMPORARY TABLE IF EXISTS tt, shadow",
        "INSERT INTO shadow VALUES (50, 'mine')", "DELETE FROM shadow WHERE id = 99", "ALTER TABLE tt RENAME TO tu", "DROP TABLE tu", "TRUNCATE tt",
        "CALL p_temp()", "CALL p_tempfail()", "SELECT 1/0", "SELECT nosuch", "SIGNAL SQLSTATE '45000'", "PREPARE q1 FROM 'SELECT * FROM shadow ORDER BY id'",
        "EXECUTE q1", "DEALLOCATE PREPARE q1", "USE %db%x", "USE %db%",
    ],
    "asks": [
        "SELECT n FROM t WHERE id = 1", "SELECT count(*) FROM w", "SELECT * FROM shadow ORDER BY id", "SELECT id FROM tt", "SELECT @@autocommit",
        "SELECT IS_FREE_LOCK('%db%1'), IS_FREE_LOCK('%db%2'), IS_FREE_LOCK('%db%3')", "SELECT IS_USED_LOCK('%db%1') = CONNECTION_ID()",
        "SELECT n FROM t WHERE id = 1 FOR UPDATE NOWAIT", "SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED", "SELECT * FROM five ORDER BY 1",
        "SELECT @@in_transaction", "SELECT @@session.tx_isolation, @@session.tx_read_only", "SELECT @@session.transaction_isolation", "SELECT DATABASE()",
        "SELECT 1", "SELECT x FROM item", "SELECT * FROM d1 ORDER BY id",
    ],
    "commands": [["reset"], ["reset"], ["ping"]],
}

HOLDS_PG = {
    "does": [
        "BEGIN", "BEGIN", "BEGIN READ ONLY", "BEGIN ISOLATION LEVEL SERIALIZABLE", "COMMIT", "COMMIT", "ROLLBACK", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN",
        "SAVEPOINT s", "ROLLBACK TO s", "RELEASE s", "SET TRANSACTION READ ONLY", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SET LOCAL work_mem = '3MB'",
        "SET work_mem = '5MB'", "RESET work_mem", "SET default_transaction_isolation = 'serializable'", "RESET default_transaction_isolation",
        "SELECT 1/0", "SELECT nosuch", "UPDATE t SET n = n + 1 WHERE id = 1", "INSERT INTO w (who, n) VALUES ('h', 1)", "DELETE FROM jobs WHERE id = 2",
        "CALL p_commit('h')", "CALL p_log('h')", "LOCK TABLE w IN SHARE MODE NOWAIT", "SELECT pg_try_advisory_lock(801)",
        "SELECT pg_try_advisory_lock_shared(801)", "SELECT pg_try_advisory_xact_lock(802)", "SELECT pg_advisory_unlock(801)",
        "SELECT pg_advisory_unlock_shared(801)", "SELECT pg_advisory_unlock_all()", "SELECT lock_it(803)", "SELECT lock_and_fail(804)",
        "SELECT pg_advisory_unlock(803), pg_advisory_unlock(804)", "INSERT INTO tlock VALUES (805)", "SELECT * FROM v_lock", "SELECT pg_advisory_unlock(7)",
        "CREATE TEMPORARY TABLE shadow AS SELECT 98 AS id, 'mine'::text AS v", "CREATE TEMPORARY TABLE tt (id int) ON COMMIT DELETE ROWS",
        "CREATE TEMPORARY TABLE shadow (id int, v text) ON COMMIT DROP", "CREATE TEMPORARY VIEW item AS SELECT 'temporary' AS x", "SELECT temp_it()",
        "DROP TABLE IF EXISTS tt", "DISCARD TEMP", "INSERT INTO shadow VALUES (50, 'mine')",
        "INSERT INTO tt VALUES (1), (2)", "CREATE TEMPORARY SEQUENCE ts", "SELECT nextval('ts')", "DROP SEQUENCE IF EXISTS ts",
        "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS 'SELECT 5'", "SELECT pg_temp.f()",
        "DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id", "DECLARE h CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id", "FETCH 2 FROM h", "FETCH 1 FROM c",
        "MOVE 1 IN h", "CLOSE h", "CLOSE ALL", "LISTEN ch1", "UNLISTEN ch1", "UNLISTEN *", "PREPARE q1 AS SELECT * FROM shadow ORDER BY id", "EXECUTE q1",
        "DEALLOCATE q1", "DEALLOCATE ALL", "SELECT prepare_it()", "DISCARD ALL", "DISCARD PLANS", "SET search_path = a, public", "RESET search_path", "RESET ALL",
        "SET ROLE diff_boss", "RESET ROLE", "DO $$ BEGIN PERFORM pg_try_advisory_lock(806); END $$", "SELECT pg_advisory_unlock(806)",
        "ALTER TABLE d1 ADD COLUMN zz int", "CREATE TABLE d3 (i int)", "DROP TABLE IF EXISTS d3", "COPY (SELECT 1) TO STDOUT",
    ],
    "asks": [
        "SELECT n FROM t WHERE id = 1", "SELECT count(*) FROM w", "SELECT * FROM shadow ORDER BY id", "SELECT * FROM item", "SELECT id FROM tt", "SHOW work_mem",
        "SELECT pg_try_advisory_xact_lock(801), pg_try_advisory_xact_lock(803)", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
        "SELECT n FROM t WHERE id = 1 FOR UPDATE NOWAIT", "SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED", "SHOW transaction_isolation",
        "SHOW transaction_read_only", "SELECT 1", "SELECT current_user", "SELECT * FROM d1 ORDER BY id", "SELECT stab(3)", "SELECT name FROM pg_cursors ORDER BY 1",
        "SELECT name FROM pg_prepared_statements ORDER BY 1", "SELECT * FROM pg_listening_channels()", "SELECT to_regclass('pg_temp.shadow') IS NULL",
    ],
    "commands": [],
}

IDS_MY = {
    "does": [
        "INSERT INTO own_a (n) VALUES (1)", "INSERT INTO own_b (n) VALUES (2)", "INSERT INTO own_a (n) VALUES (1), (2), (3)", "INSERT INTO w (who, n) VALUES ('i', 1)",
        "INSERT INTO w (who, n) SELECT v, n FROM t WHERE id < 3", "INSERT INTO w (who, n) SELECT v, n FROM t WHERE id > 1000000000",
        "INSERT INTO u (k, n) VALUES (1, 5) ON DUPLICATE KEY UPDATE n = n + 1", "INSERT INTO u (k, n) VALUES (1, 5) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)",
        "INSERT IGNORE INTO u (k, n) VALUES (1, 1)", "REPLACE INTO u (k, n) VALUES (2, 21)", "INSERT INTO u (k, n) VALUES (1, 1)", "INSERT INTO w (nosuch) VALUES (1)",
        "INSERT INTO own_a SET n = 4", "INSERT INTO own_a () VALUES ()", "INSERT INTO own_a (n) VALUES (1) RETURNING id", "UPDATE t SET n = LAST_INSERT_ID(n + 1) WHERE id = 1",
        "UPDATE t SET n = LAST_INSERT_ID(77) WHERE id = 0", "UPDATE t SET n = n + 1 WHERE id <= 3", "UPDATE t SET n = n WHERE id = 2", "DELETE FROM w WHERE n = 1",
        "SELECT LAST_INSERT_ID(7)", "SELECT LAST_INSERT_ID(id) FROM t WHERE id = 3", "DO LAST_INSERT_ID(8)", "SET LAST_INSERT_ID = 9", "SET @@identity = 10",
        "SET last_insert_id = DEFAULT", "CALL p_lid(11)", "DO f_lid(12)", "SELECT f_lid(13)", "CALL p_log('i')", "SELECT f_log('i')", "INSERT INTO tlog VALUES (1)",
        "CALL p_count()", "CALL p_two()", "CALL p_rows()", "SELECT id FROM t ORDER BY id LIMIT 2", "SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1",
        "SELECT id FROM t WHERE id = 0", "SELECT * FROM five", "SELECT count(*) INTO @b FROM t", "SELECT id FROM t ORDER BY id LIMIT 1, 2",
        "SELECT id FROM t UNION SELECT id + 1 FROM t LIMIT 1", "SHOW TABLES LIKE 'own_a'", "SELECT nosuch", "SELECT 1", "DO 1", "SET @b = 1", "BEGIN", "COMMIT", "ROLLBACK",
        "USE %db%", "CREATE TEMPORARY TABLE tt (id int AUTO_INCREMENT PRIMARY KEY, n int)", "INSERT INTO tt (n) VALUES (1), (2)", "DROP TEMPORARY TABLE IF EXISTS tt",
        "SET @b = LAST_INSERT_ID()", "SET @b = ROW_COUNT()", "SET @b = FOUND_ROWS()", "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'", "SET sql_mode = DEFAULT",
        "INSERT INTO w (who, n) VALUES ('c', LAST_INSERT_ID())", "INSERT INTO own_b (n) VALUES (LAST_INSERT_ID())", "UPDATE own_a SET n = 9 WHERE id = LAST_INSERT_ID()",
        "INSERT INTO own_b (n) SELECT LAST_INSERT_ID()", "INSERT INTO own_b (n) VALUES (ROW_COUNT())", "SELECT GET_LOCK('%db%1', 0)", "SELECT RELEASE_ALL_LOCKS()",
        "SET insert_id = 5", "SELECT NEXTVAL(s1)", "SELECT LASTVAL(s1)", "SELECT f_next()", "ANALYZE TABLE five", "EXPLAIN SELECT 1", "VALUES ROW(1), ROW(2)", "HANDLER five OPEN",
        "SET @@session.net_read_timeout = 55", "SET timestamp = DEFAULT; SELECT nosuch", "CALL p_mode()", "SET NAMES latin1", "SET NAMES utf8mb4",
        "SET group_concat_max_len = 200", "HANDLER five READ FIRST LIMIT 3", "HANDLER five CLOSE", "TRUNCATE own_b", "INSERT INTO v_t (v) VALUES ('through')", "REPLACE INTO own_b (n) VALUES (6), (7)",
    ],
    "asks": [
        "SELECT LAST_INSERT_ID()", "SELECT LAST_INSERT_ID()", "SELECT @@last_insert_id", "SELECT @@identity", "SELECT ROW_COUNT()", "SELECT ROW_COUNT()", "SELECT FOUND_ROWS()",
        "SELECT FOUND_ROWS()", "SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()", "SELECT * FROM v_lid", "SELECT * FROM v_found", "SELECT @b", "SELECT LAST_INSERT_ID() + 0 AS x",
        "SELECT count(*) FROM own_a WHERE id = LAST_INSERT_ID()", "SHOW VARIABLES LIKE 'last_insert_id'", "SELECT n FROM own_b ORDER BY id DESC LIMIT 1",
        "SELECT @x := LAST_INSERT_ID()", "SELECT IF(ROW_COUNT() > 0, 'some', 'none')", "SELECT @@insert_id", "SELECT DATABASE(), LAST_INSERT_ID()",
    ],
    "commands": [["reset"], ["ping"], ["ping"]],
}

IDS_PG = {
    "does": [
        "INSERT INTO own_a (n) VALUES (1)", "INSERT INTO own_b (n) VALUES (2) RETURNING id", "INSERT INTO own_a (n) VALUES (1), (2), (3)",
        "INSERT INTO own_a (id, n) VALUES (DEFAULT, 4)", "INSERT INTO own_a (id, n) VALUES (900, 4)", "INSERT INTO own_b (n) SELECT n FROM t WHERE id > 1000",
        "INSERT INTO own_b (n) SELECT n FROM t WHERE id < 3", "INSERT INTO w (who, n) VALUES ('i', 1)", "INSERT INTO w (nosuch) VALUES (1)", "SELECT log('i')",
        "CALL p_log('i')", "INSERT INTO tlog VALUES (1, 'x')", "SELECT nextval('s1')", "SELECT next_it()", "SELECT setval('s1', 40)", "SELECT setval('s1', 50, false)",
        "SELECT nextval('own_a_id_seq')", "SELECT nextval('own_b_id_seq'), nextval('s1')", "DISCARD SEQUENCES", "DISCARD ALL", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s",
        "ROLLBACK TO s", "SELECT 1/0", "SELECT nosuch", "SELECT 1", "CREATE TEMPORARY SEQUENCE ts", "SELECT nextval('ts')", "DROP SEQUENCE IF EXISTS ts", "CREATE SEQUENCE d_s",
        "DROP SEQUENCE IF EXISTS d_s", "SELECT nextval('d_s')", "ALTER SEQUENCE sq RESTART", "SELECT nextval('sq')", "ALTER SEQUENCE sq INCREMENT 5", "INSERT INTO d2 (at) VALUES ('2024-01-01')",
        "INSERT INTO own_b (n) VALUES (lastval())", "UPDATE own_a SET n = 9 WHERE id = currval('own_a_id_seq')", "INSERT INTO w (who, n) VALUES ('c', currval('s1'))",
        "SET search_path = a, public", "RESET search_path", "SET ROLE diff_boss", "RESET ROLE", "RESET ALL", "TRUNCATE own_b RESTART IDENTITY",
        "DO $$ BEGIN PERFORM nextval('s1'); END $$", "WITH x AS (INSERT INTO own_a (n) VALUES (5) RETURNING id) SELECT id FROM x", "EXECUTE q1",
        "PREPARE q1 AS SELECT nextval('s1')", "DEALLOCATE ALL", "MERGE INTO own_a o USING (SELECT 901 AS i) x ON o.id = x.i WHEN NOT MATCHED THEN INSERT (n) VALUES (1)",
        "CREATE TABLE d3 AS SELECT nextval('s1') AS i", "DROP TABLE IF EXISTS d3",
    ],
    "asks": [
        "SELECT lastval()", "SELECT lastval()", "SELECT currval('own_a_id_seq')", "SELECT currval('own_b_id_seq')", "SELECT currval('s1')", "SELECT currval('s1'), lastval()",
        "SELECT count(*) FROM own_a WHERE id = currval('own_a_id_seq')", "SELECT currval(pg_get_serial_sequence('own_a', 'id'))", "SELECT last_value FROM s1",
        "SELECT pg_sequence_last_value('s1'::regclass)", "SELECT currval('sq')", "SELECT currval('ts')", "SELECT n FROM own_b ORDER BY id DESC LIMIT 1",
    ],
    "commands": [],
}

STATES_MY = {
    "does": [
        "SET NAMES utf8mb4 COLLATE utf8mb4_bin", "SET NAMES latin1", "SET NAMES utf8mb4", "SET time_zone = '+05:00'", "SET time_zone = '-03:30'", "SET time_zone = DEFAULT",
        "SET sql_mode = 'ANSI_QUOTES'", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SET sql_mode = ''", "SET sql_mode = DEFAULT", "SET SESSION TRANSACTION READ ONLY",
        "SET SESSION TRANSACTION READ WRITE", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET autocommit = 0", "SET autocommit = 1", "BEGIN", "COMMIT", "ROLLBACK",
        "USE %db%x", "USE %db%", "SET lc_time_names = 'de_DE'", "SET lc_time_names = 'fr_FR', div_precision_increment = 2", "SET group_concat_max_len = 20",
        "SET sql_safe_updates = 1", "SET sql_safe_updates = 0", "SET foreign_key_checks = 0", "SET sql_select_limit = 2", "SET sql_select_limit = DEFAULT",
        "SET time_zone = 'nowhere'", "SET NAMES nosuch", "SET sql_mode = 'nosuch'", "SET time_zone = '+01:00', nosuch = 1", "SET nosuch = 1", "USE nosuch", "SELECT nosuch",
        "SELECT * FROM nosuch", "SELECT 1 FROM", "CALL nosuch()", "SELECT nosuch(1)", "LOAD DATA LOCAL INFILE 'given' INTO TABLE nosuch",
        "LOAD DATA LOCAL INFILE 'given' INTO TABLE w (who, n)", "DELETE FROM shadow WHERE nosuch = 1", "DELETE FROM shadow", "DROP TABLE IF EXISTS d3", "CREATE TABLE IF NOT EXISTS d3 (i int)",
        "DROP TABLE IF EXISTS d3", "INSERT INTO d3 VALUES (1)", "SIGNAL SQLSTATE '45000'", "SHOW WARNINGS", "SET @a = 'x'", "SELECT 1/0",
        "EXPLAIN SELECT * FROM d3", "SELECT GET_LOCK('%db%1', 0)", "SELECT RELEASE_ALL_LOCKS()",
    ],
    "asks": [
        "SELECT @@collation_connection, @@character_set_client, @@character_set_results", "SELECT COLLATION('a'), 'a' = 'A'", "SELECT @@time_zone, CAST(FROM_UNIXTIME(0) AS CHAR)",
        "SELECT CAST(FROM_UNIXTIME(0) AS CHAR)", "SELECT \"x\" FROM item", "SELECT 'a\\nb'", "SELECT @@sql_mode", "SELECT DATABASE()", "SELECT DATE_FORMAT('2024-03-01', '%M'), 7/3",
        "SELECT GROUP_CONCAT(v) FROM t", "SELECT x FROM item", "SELECT id FROM t ORDER BY id", "INSERT INTO w (who, n) VALUES ('s', 1)", "SELECT @@autocommit", "SELECT @a",
    ],
    "later": [
        "DELETE FROM shadow WHERE id = 5", "SELECT * FROM d3", "INSERT INTO d3 VALUES (2)", "SELECT COLLATION('a'), 'a' = 'A'", "SELECT CAST(FROM_UNIXTIME(0) AS CHAR)",
        "SELECT \"x\" FROM item", "SELECT DATABASE()", "SELECT DATE_FORMAT('2024-03-01', '%M'), 7/3", "SELECT x FROM item", "UPDATE w SET n = 2 WHERE id = 1", "SELECT @a", "SELECT 'a\\nb'",
        "SET time_zone = '+05:00'", "SET SESSION TRANSACTION READ ONLY", "USE %db%x", "CALL p_log('s')",
    ],
    "commands": [["reset"], ["ping"], ["init", "%db%x"], ["init", "%db%"], ["init", "nosuch"]],
}

STATES_PG = {
    "does": [
        "SET TimeZone = 'Asia/Tokyo'", "SET TimeZone = 'America/New_York'", "RESET TimeZone", "SET DateStyle = 'SQL, DMY'", "SET DateStyle = 'German'", "RESET DateStyle",
        "SET IntervalStyle = 'iso_8601'", "SET search_path = a, public", "SET search_path = b", "RESET search_path", "SET ROLE diff_boss", "RESET ROLE", "SET ROLE NONE",
        "SET default_transaction_read_only = on", "SET default_transaction_read_only = off", "SET work_mem = '5MB'", "RESET work_mem", "SET client_encoding = 'LATIN1'",
        "SET client_encoding = 'UTF8'", "SET application_name = 'x'", "RESET ALL", "DISCARD ALL", "BEGIN", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s",
        "SET LOCAL TimeZone = 'Europe/Paris'", "SELECT set_config('TimeZone', 'UTC', false)", "SELECT set_config('TimeZone', 'Asia/Kolkata', true)",
        "BEGIN; SET TimeZone = 'Asia/Tokyo'; ROLLBACK", "SET TimeZone = 'nowhere'", "SET nosuch = 1", "SET ROLE nosuch", "SET DateStyle = 'nosuch'", "SET TimeZone = 'UTC'; SELECT nosuch",
        "SELECT nosuch", "SELECT * FROM nosuch", "SELECT 1 FROM", "SELECT nosuch(1)", "SELECT 1/0", "DROP TABLE IF EXISTS d3", "DROP TABLE IF EXISTS d3", "CREATE TABLE IF NOT EXISTS d3 (i int)",
        "INSERT INTO d3 VALUES (1)", "DELETE FROM shadow", "EXECUTE nosuch", "DEALLOCATE nosuch", "FETCH nosuch", "SELECT pg_try_advisory_lock(801)", "SELECT pg_advisory_unlock_all()",
    ],
    "asks": [
        "SELECT current_setting('TimeZone'), timestamptz '2024-02-29 12:00:00+00'", "SHOW DateStyle", "SELECT date '2024-02-03', interval '1 day 2 hours'", "SELECT current_user",
        "SELECT current_schemas(false)", "SELECT x FROM item", "SHOW work_mem", "SHOW default_transaction_read_only", "INSERT INTO w (who, n) VALUES ('s', 1)",
        "SELECT current_setting('application_name'), current_setting('client_encoding')", "SELECT 1",
    ],
    "later": [
        "SELECT * FROM d3", "INSERT INTO d3 VALUES (2)", "DELETE FROM shadow WHERE id = 5", "SELECT timestamptz '2024-02-29 12:00:00+00'", "SELECT x FROM item", "SELECT current_user",
        "SELECT current_setting('TimeZone')", "UPDATE w SET n = 2 WHERE id = 1", "SET TimeZone = 'Asia/Tokyo'", "SELECT set_config('DateStyle', 'SQL, DMY', false)", "SET search_path = b",
        "SELECT log('s')", "SELECT nosuch",
    ],
    "commands": [],
}

# MySQL has no sequences, and the world of its sessions none to set back.
SEQUENCES_MY = ("(s1)", "f_next")
# What may keep a server.
KEEPS = ("NEXTVAL", "LASTVAL", "f_next", "net_read", "timestamp", "p_mode", "SET LAST_INSERT_ID", "SET @@identity", "SET last_insert_id", "BEGIN",
         "SAVEPOINT", "TEMPORARY", "LOCK", "advisory", "autocommit", "EXECUTE", "HANDLER", "insert_id =", "('ts')", "tt", "PREPARE", "SQL_CALC", "DO $$")
LISTS = {"holds": (HOLDS_PG, HOLDS_MY), "ids": (IDS_PG, IDS_MY), "states": (STATES_PG, STATES_MY)}


def session(what, kind, r):
    """A session of one to three clients, each of which has a server if it needs one."""
    lists = {key: [one for one in some if kind != "mysql" or not any(word in one for word in SEQUENCES_MY)]
             for key, some in LISTS[what][kind != "postgres"].items()}
    clients = "ABC"[:r.choice([1, 2, 2, 2, 3])]
    servers = len(clients) + r.choice([0, 0, 1])
    if what != "holds" and r.random() < 0.5:
        # All on one server, which nobody keeps.
        servers = 1
        lists = {key: [one for one in some if not any(word in one for word in KEEPS)] for key, some in lists.items()}
    w = Writer(kind, servers, *clients)
    # Few statements a session, so that they meet.
    does, asks = r.sample(lists["does"], r.randint(5, 14)), r.sample(lists["asks"], r.randint(3, 6))
    later = lists.get("later", asks)
    prepared = {client: [] for client in clients}
    for number in range(r.randint(10, 24)):
        client, chance = r.choice("A" + clients), r.random()
        if r.random() < 0.25:
            # Prepared now, executed later.
            w.add(client, *prepared_apart(kind, r, prepared[client], r.choice(later)))
            continue
        if chance < 0.03:
            w.lines += [f"{client} {r.choice(['quit', 'vanish'])}", f"{client} connect {{}}"]
            prepared[client].clear()
        elif chance < 0.07 and lists["commands"]:
            command = r.choice(lists["commands"])
            w.add(client, command)
            if command == ["reset"]:
                prepared[client].clear()
        elif chance < 0.12 and servers > 1:
            # Docs, pins.md: a file among other statements is refused to who has not allowed any.
            some = [one for one in does + asks if "LOCAL INFILE" not in one]
            w.query(client, "; ".join(r.choice(some) for _ in range(r.randint(2, 3))))
        else:
            text = r.choice(does if chance < 0.6 else asks)
            run = (prepared_pg if kind == "postgres" else prepared_my) if r.random() < 0.3 else plain
            w.add(client, *run(text, f"s{number}"))
    return w.script()


def plain(text, _name):
    return [["Q", text]]


def prepared_pg(text, name):
    if name.endswith("1"):
        return [["P", name, text, []], ["B", "", name, [], []], ["D", "P", ""], ["E", "", 0], ["S"]]
    return [["P", "", text, []], ["B", "", "", [], []], ["E", "", 0], ["S"]]


def prepared_my(text, name):
    return [["prep", name, text], ["exec", name, [], 0], *([] if name.endswith("1") else [["sclose", name]])]


def prepared_apart(kind, r, known, text):
    """Messages that prepare this, or execute one of those before."""
    if not known or r.random() < 0.35:
        name = f"k{len(known)}"
        # MySQL does not answer an execution without a cursor behind one that had one.
        known.append((name, text, int(r.random() < 0.3 and text.startswith("SELECT"))))
        return [["P", name, text, []], ["S"]] if kind == "postgres" else [["prep", name, text]]
    name, _, cursor = r.choice(known)
    if kind == "postgres":
        return [["B", "", name, [], []], ["E", "", 0], ["S"]]
    return [["exec", name, [], cursor], *([["fetch", name, 9]] if cursor else [])]
