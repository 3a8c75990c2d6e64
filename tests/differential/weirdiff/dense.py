"""Scripts that draw from few statements, or from all of one kind, where the grammars have all classes and so seldom meet the same two twice.

Owns: those scripts. `settings`: each setting of a session that the server has, set in several forms by two clients at once, and taken back.
`statements`: sessions about prepared statements alone: modes, what keeps a server, cursors, tables made anew. `warnings`: what each kind of
statement, executed or prepared, makes of the warnings of the one before it (MySQL, MariaDB). `counts`: the same of FOUND_ROWS() and ROW_COUNT(),
alone and among others in one text. The others: see subjects.py.

Must not know: how scripts are played.
"""

import random

from . import subjects
from .script import Writer

KINDS = ("settings", "statements", "warnings", "counts", *subjects.KINDS)
ADMIN_ONLY = ("debug", "gtid", "sql_log", "binlog", "wsrep", "server_id")


def of(what, kind, ask, seed, count):
    """(name, script) of each. `ask`: rows of a query to the server; `seed` and `count` are for what is drawn."""
    if what == "settings":
        yield from (settings_pg if kind == "postgres" else settings_my)(kind, ask)
    elif what == "statements":
        for number in range(seed, seed + count):
            yield f"statements {number}", (statements_pg if kind == "postgres" else statements_my)(kind, random.Random(number))
    elif what in subjects.KINDS:
        for number in range(seed, seed + count):
            yield f"{what} {number}", subjects.session(what, kind, random.Random(number))
    elif kind != "postgres":
        yield from (warnings if what == "warnings" else counts)(kind)


# --- Settings --------------------------------------------------------------------------------------------------------------------

# Of strings two values are named here; settings without are left out. Those of a transaction have rules of their own, and others would
# end the session, or only the server's operator may set them.
STRINGS_PG = {
    "TimeZone": ("Asia/Tokyo", "UTC"), "DateStyle": ("SQL, DMY", "German"), "search_path": ("a, public", "b"), "application_name": ("x", "y"),
    "client_encoding": ("LATIN1", "UTF8"), "default_text_search_config": ("simple", "pg_catalog.english"), "lc_monetary": ("C", "POSIX"),
    "lc_numeric": ("C", "POSIX"), "lc_time": ("C", "POSIX"),
}
LEFT_OUT_PG = ("transaction_", "seed", "session_authorization", "role", "tcp_", "client_connection", "debug_", "log_", "trace_", "idle_", "is_superuser",
               "statement_timeout", "lock_timeout")
SETTINGS_PG = """SELECT name, vartype, setting, coalesce(min_val, ''), coalesce(max_val, ''), coalesce(array_to_string(enumvals, ','), '')
FROM pg_settings WHERE context = 'user' ORDER BY name"""


def values_pg(name, kind, now, least, most, names):
    if kind == "bool":
        return ("off", "on") if now == "on" else ("on", "off")
    if kind == "enum":
        others = [value for value in names.split(",") if value != now]
        return (others * 2)[:2] or None
    if kind == "integer":
        return str(min(int(now) + 1, int(most))), str(max(int(now) // 2, int(least)))
    if kind == "real":
        return str(min(float(now) + 1, float(most))), str(max(float(now) / 2, float(least)))
    return STRINGS_PG.get(name)


def settings_pg(kind, ask):
    for name, *about in ask(SETTINGS_PG):
        values = None if name.startswith(LEFT_OUT_PG) else values_pg(name, *about)
        if not values:
            continue
        first, second = (value if about[0] in ("bool", "integer", "real") or name == "search_path" else f"'{value}'" for value in values)
        for form in ("text", "extended"):
            w = Writer(kind, 2, "A", "B")
            asks = f"SELECT current_setting('{name}')"
            if form == "text":
                w.query("A", f"SET {name} = {first}")
            else:
                w.add("A", ["P", "", f"SET {name} = {first}", []], ["B", "", "", [], []], ["E", "", 0], ["S"])
            w.ask("B", asks)
            w.ask("A", asks, "SELECT id FROM t WHERE id = 1")
            w.ask("B", "SELECT id FROM t WHERE id = 1")
            w.query("B", f"SELECT set_config('{name}', '{values[1]}', false)" if form == "text" else f"BEGIN; SET {name} = {second}; COMMIT")
            w.ask("A", asks)
            w.ask("B", asks, "SELECT 1")
            w.ask("A", f"SHOW {name}")
            w.query("A", f"BEGIN; SET LOCAL {name} = {second}; SHOW {name}; ROLLBACK")
            w.ask("A", asks)
            w.ask("B", asks)
            w.query("A", f"SET {name} TO DEFAULT" if form == "text" else f"RESET {name}")
            w.ask("A", asks)
            w.ask("B", asks)
            w.query("A", f"SELECT set_it('{name}', '{values[1]}')")
            w.ask("A", asks)
            w.ask("B", asks)
            w.query("B", "RESET ALL" if form == "text" else "DISCARD ALL")
            w.ask("B", asks)
            w.ask("A", asks)
            w.lines += ["A quit", "C connect {}"]
            w.ask("C", asks)
            w.ask("B", asks)
            yield f"settings {name} {form}", w.script()


LEFT_OUT_MY = (*ADMIN_ONLY, "pseudo", "rand_seed", "timestamp", "insert_id", "last_insert", "proxy", "identity", "error_count", "warning_count",
               "transaction_write", "skip_repl", "skip_parallel", "original", "immediate", "session_track", "resultset", "terminology", "in_transaction",
               "wait_timeout", "net_", "max_allowed", "thread_pool", "statement_id")
SETTINGS_MARIADB = """SELECT lower(variable_name), variable_type, ifnull(session_value, global_value), ifnull(enum_value_list, '')
FROM information_schema.system_variables WHERE variable_scope LIKE 'SESSION%' AND read_only = 'NO' ORDER BY 1"""
SETTINGS_MYSQL = """SELECT lower(variable_name), '', variable_value, '' FROM performance_schema.session_variables ORDER BY 1"""


def values_my(kind, now, names):
    if kind == "BOOLEAN" or now in ("ON", "OFF"):
        return ("0", "1") if now in ("ON", "1") else ("1", "0")
    if kind == "ENUM":
        return ([f"'{value}'" for value in names.split(",") if value.upper() != now.upper()] * 2)[:2]
    if kind in ("SET", "FLAGSET"):
        return f"'{names.split(',')[0]}'", "''"
    if now.replace(".", "", 1).isdigit():
        return str(int(float(now)) + 1), str(max(int(float(now)) // 2, 1))
    return None


def settings_my(kind, ask):
    for name, *about in ask(SETTINGS_MARIADB if kind == "mariadb" else SETTINGS_MYSQL):
        values = None if name.startswith(LEFT_OUT_MY) else values_my(*about)
        if not values:
            continue
        first, second = values
        for form in ("text", "prepared"):
            w = Writer(kind, 2, "A", "B")
            asks = f"SELECT @@session.{name}"
            if form == "text":
                w.query("A", f"SET SESSION {name} = {first}")
            else:
                w.add("A", ["prep", "s1", f"SET {name} = {first}"], ["exec", "s1", [], 0], ["sclose", "s1"])
            w.ask("B", asks)
            w.ask("A", asks, "SELECT id FROM t WHERE id = 1")
            w.ask("B", "SELECT id FROM t WHERE id = 1")
            w.query("B", f"DO 1; SET {name} = {second}" if form == "text" else f"SET @@{name} = {second}, @b = 1")
            w.ask("A", asks)
            w.ask("B", asks, "SELECT 1")
            w.ask("A", asks)
            for back in ("DEFAULT", f"@@global.{name}"):
                w.query("A", f"SET {name} = {back}")
                w.ask("A", asks)
                w.ask("B", asks)
            w.add("B", ["reset"])
            w.ask("B", asks)
            w.ask("A", asks)
            w.query("A", f"SET {name} = {second}")
            w.lines += ["A quit", "C connect {}"]
            w.ask("C", asks)
            w.ask("B", asks)
            yield f"settings {name} {form}", w.script()


# --- Prepared statements ---------------------------------------------------------------------------------------------------------

KEEPS_MY = ["SET @@session.net_read_timeout = 55", "DO 1; SET @@session.net_read_timeout = 55", "CALL p_temp()", "DO 1; CALL p_temp()", "CALL p_mode()",
            "DO f_var(3)", "SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')", "CREATE TEMPORARY TABLE tt (i int)", "SELECT GET_LOCK('%db%1', 0)"]
MODES_MY = ["SET sql_mode = 'ANSI_QUOTES'", "SET sql_mode = ''", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SET sql_mode = DEFAULT", "SET NAMES latin1",
            "SET NAMES utf8mb4", "SET NAMES utf8mb4 COLLATE utf8mb4_bin", "SET sql_mode = 'PIPES_AS_CONCAT'", "SET character_set_connection = latin1",
            "SET collation_connection = utf8mb4_bin", "SET div_precision_increment = 9", "SET time_zone = '+05:00'", "SET sql_select_limit = 2"]
TEXTS_MY = ['SELECT "v", \'q\' FROM t WHERE id = 1', 'SELECT "v" FROM t WHERE id = ?', "SELECT 'a' || id FROM t WHERE id = 1",
            "SELECT 'a\\\\n', 'é' = 'É', 'a' = 'A'", "SELECT ? = 'A', 1/3, ?", "SELECT id / 3 FROM t ORDER BY id", 'INSERT INTO w (who, n) VALUES ("v", 1)']
OTHERS_MY = ["SELECT 1", "BEGIN", "COMMIT", "SET @a = 1", "USE %db%", "SELECT RELEASE_ALL_LOCKS()", "DROP TEMPORARY TABLE IF EXISTS tt"]


def statements_my(kind, r):
    """A client that may keep its server, and one that does not. The first execution has no cursor: MySQL never answers others behind it."""
    w = Writer(kind, r.choice([2, 2, 3]), "A", "B")
    known = {"A": {}, "B": {}}
    for _ in range(r.randint(8, 18)):
        client, chance = r.choice("AAB"), r.random()
        if chance < 0.2:
            w.query("A", r.choice(KEEPS_MY))
        elif chance < 0.4:
            w.query(client, r.choice(MODES_MY))
        elif chance < 0.44:
            w.add(client, ["prep", "s9", r.choice(MODES_MY[:4])], ["exec", "s9", [], 0], ["sclose", "s9"])
        elif chance < 0.6 or not known[client]:
            name, text = f"s{r.randint(1, 3)}", r.choice(TEXTS_MY)
            known[client][name] = text
            w.add(client, ["prep", name, text], ["exec", name, [r.choice(["1", "4", "é"]) for _ in range(text.count("?"))], 0])
        elif chance < 0.88:
            name, text = r.choice(list(known[client].items()))
            cursor = int(r.random() < 0.3 and text.startswith("SELECT"))
            fetch = [["fetch", name, 9]] if cursor else []
            w.add(client, ["exec", name, [r.choice(["1", "4", "A"]) for _ in range(text.count("?"))], cursor], *fetch)
        elif r.random() < 0.2:
            known[client] = {}
            w.add(client, ["reset"])
        else:
            w.query(client, r.choice(OTHERS_MY))
    return w.script()


KEEPS_PG = ["SELECT setseed(0.5)", "SET temp_buffers = 200", "CREATE TEMPORARY TABLE tt (i int)", "SELECT pg_try_advisory_lock(801)", "LISTEN ch9",
            "SELECT set_it('work_mem', '5MB')", "SELECT run_set('6MB')", "DO $$ BEGIN PERFORM set_config('work_mem', '9MB', false); END $$",
            "SELECT set_it('DateStyle', 'SQL, DMY')", "SELECT role_it('diff_boss')", "SELECT temp_it()", "PREPARE q9 AS SELECT '01/02/2024'::date",
            "DECLARE c9 CURSOR WITH HOLD FOR SELECT '01/02/2024'::date, id FROM t ORDER BY id", "SELECT set_tenant('A')"]
MODES_PG = ["SET DateStyle = 'SQL, DMY'", "SET DateStyle = 'ISO, MDY'", "SET TimeZone = 'Asia/Tokyo'", "SET TimeZone = 'UTC'", "RESET ALL",
            "SET search_path = a, public", "SET search_path = b, public", "RESET search_path", "SET standard_conforming_strings = off",
            "SET standard_conforming_strings = on", "SET bytea_output = 'escape'", "SET client_encoding = 'LATIN1'", "SET client_encoding = 'UTF8'",
            "SET ROLE diff_boss", "RESET ROLE", "SET extra_float_digits = 0", "SET plan_cache_mode = force_generic_plan", "SET array_nulls = off",
            "SET IntervalStyle = 'sql_standard'", "SET SESSION AUTHORIZATION diff_bob", "RESET SESSION AUTHORIZATION", "SET LOCAL DateStyle = 'German'",
            "SET app.x = '1'", "RESET app.x", "SET TRANSACTION READ ONLY", "SET default_transaction_read_only = on",
            "SET default_transaction_read_only = off", "SET row_security = off"]
TEXTS_PG = ["SELECT '01/02/2024'::date::text", "SELECT '12:00'::timestamptz::text, '1 day 2 hours'::interval", "SELECT $1::date", "SELECT 'a\\\\n', 'x' || $1",
            "SELECT * FROM shadow ORDER BY id", "SELECT * FROM item", "SELECT current_user, session_user", "SELECT '\\\\x41'::bytea, 1.1::float8 / 3",
            "INSERT INTO w (who, n) VALUES ('01/02/2024'::date::text, 1)", "SELECT '{NULL}'::text[], NULL = NULL", "SELECT stab(2)", "EXECUTE q9",
            "FETCH 1 FROM c9", "UPDATE shadow SET v = v || '!' WHERE id = 1", "SELECT x FROM secret", "SELECT denied(1)", "SELECT c FROM d1 WHERE id = 1"]
OTHERS_PG = ["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "DISCARD ALL", "DISCARD PLANS", "DISCARD TEMP", "DEALLOCATE ALL", "UNLISTEN *",
             "SELECT pg_advisory_unlock_all()", "CLOSE ALL", "DEALLOCATE q9", "ANALYZE t", "ALTER TABLE d1 ADD COLUMN zz int", "SELECT nosuch", "SELECT 1/0",
             "SHOW DateStyle", "SELECT 1"]


def statements_pg(kind, r):
    clients = r.choice(["A", "AB", "AB"])
    w = Writer(kind, r.choice([2, 3]) if len(clients) == 2 else r.choice([1, 2]), *clients)
    known = {client: {} for client in clients}
    for _ in range(r.randint(8, 18)):
        client, chance = r.choice(clients), r.random()
        if chance < 0.17:
            w.query(client, r.choice(KEEPS_PG))
        elif chance < 0.38:
            w.query(client, r.choice(MODES_PG))
        elif chance < 0.42:
            w.add(client, ["P", "", r.choice(MODES_PG), []], ["B", "", "", [], []], ["E", "", 0], ["S"])
        elif chance < 0.6 or not known[client]:
            name, text = f"s{r.randint(1, 4)}", r.choice(TEXTS_PG)
            messages = [["C", "S", name]] if name in known[client] else []
            known[client][name] = text
            messages.append(["P", name, text, []])
            if r.random() < 0.6:
                messages += [["B", "", name, ["01/02/2024"] * text.count("$1"), []], ["D", "P", ""], ["E", "", 0]]
            w.add(client, *messages, ["S"])
        elif chance < 0.84:
            name, text = r.choice(list(known[client].items()))
            run = [["B", "", name, ["03/04/2024"] * text.count("$1"), []], ["E", "", 0]]
            between = [["P", "", r.choice(MODES_PG), []], ["B", "", "", [], []], ["E", "", 0], *run] if r.random() < 0.25 else []
            w.add(client, *run, *between, ["S"])
        else:
            other = r.choice(OTHERS_PG)
            w.query(client, f"{other}; {r.choice(MODES_PG)}" if r.random() < 0.2 and other != "DISCARD ALL" else other)
    return w.script()


# --- Warnings --------------------------------------------------------------------------------------------------------------------

BETWEEN = [
    "SELECT 1", "SELECT 1 FROM t WHERE id = 1", "DO 1", "SET @a = 1", "SET NAMES utf8mb4", "SET sql_mode = ''", "SET autocommit = 1", "BEGIN", "COMMIT",
    "ROLLBACK", "SAVEPOINT x1", "USE %db%", "SHOW TABLES", "SHOW VARIABLES LIKE 'autocommit'", "SHOW CREATE TABLE w", "SHOW COLUMNS FROM w",
    "SHOW INDEX FROM w", "SHOW PROCEDURE STATUS LIKE 'nosuch'", "SHOW ENGINES", "SHOW CHARSET LIKE 'latin1'", "SHOW DATABASES LIKE '%db%'",
    "SHOW CREATE DATABASE %db%", "SHOW EVENTS", "SHOW OPEN TABLES LIKE 'nosuch'", "DESC w", "EXPLAIN SELECT 1", "EXPLAIN SELECT * FROM t",
    "EXPLAIN UPDATE w SET n = 1 WHERE id = 0", "HELP 'nosuch'", "CHECK TABLE w", "ANALYZE TABLE w", "CHECKSUM TABLE w", "OPTIMIZE TABLE w",
    "FLUSH TABLES w", "LOCK TABLES w READ", "UNLOCK TABLES", "CREATE TABLE IF NOT EXISTS d1 (i int)", "CREATE TEMPORARY TABLE tq (i int)",
    "DROP VIEW IF EXISTS vq", "RENAME TABLE nosuch TO nosuch2", "INSERT INTO w (who, n) VALUES ('x', 1)", "INSERT INTO w (who, n) SELECT 'x', 1",
    "UPDATE w SET n = 1 WHERE id = 0", "DELETE FROM w WHERE id = 0", "INSERT INTO w (who, n) VALUES ('x', 1); SELECT 1", "SELECT 1; SELECT 2",
    "SELECT 1; SELECT 2 FROM t WHERE id = 1", "SET @a = 1; SELECT @a", "COMMIT; SELECT 1", "SELECT f_pure(1)", "KILL 999999999", "PREPARE p1 FROM 'SELECT 1'",
    "PREPARE p1 FROM 'SELECT 1 FROM t'", "EXECUTE p1", "DEALLOCATE PREPARE p1", "HANDLER t OPEN", "HANDLER t READ FIRST", "VALUES ROW(1)", "VALUES (1)",
    "TABLE item", "(SELECT 1)", "SELECT 1 UNION SELECT 2", "WITH x AS (SELECT 1) SELECT * FROM x", "SELECT (SELECT count(*) FROM t)",
    "SELECT * FROM (SELECT 1) x", "SELECT EXISTS(SELECT 1)", "SELECT id FROM v_t WHERE id = 1", "SELECT GET_LOCK('%db%1', 0)", "SELECT RELEASE_ALL_LOCKS()",
    "SELECT SLEEP(0)", "SELECT @@version_comment", "SELECT id INTO @b FROM t WHERE id = 1", "SELECT 1 INTO @b", "SET @a = (SELECT count(*) FROM t)",
    "/* only a comment */", "SELECT 1; /* c */", "SHOW WARNINGS; /* c */", "SHOW GLOBAL STATUS LIKE 'nosuch'", "SHOW CREATE VIEW v_t", "ANALYZE SELECT 1",
    "ANALYZE UPDATE w SET n = 1 WHERE id = 0", "EXECUTE IMMEDIATE 'SELECT 1'", "SIGNAL SQLSTATE '01000'", "RESIGNAL", "GET DIAGNOSTICS @m = NUMBER",
    "GET DIAGNOSTICS @m = NUMBER; /* c */", "GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT", "SHOW COUNT(*) WARNINGS", "SHOW ERRORS LIMIT 0",
    "SELECT @@warning_count", "SELECT ROW_COUNT(), FOUND_ROWS()", "ALTER DATABASE %db% CHARACTER SET utf8mb4", "BEGIN NOT ATOMIC SELECT 1; END",
    "SET STATEMENT max_statement_time = 1 FOR SELECT 1", "LOAD DATA INFILE '/nosuch' INTO TABLE w", "DO SLEEP(0)", "DO (SELECT 1)",
    "DO (SELECT count(*) FROM t)",
]
LEAVES = [["Q", "SELECT nosuch"], ["Q", "SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED)"], ["fetch", "s1", 2], ["Q", "DROP TABLE IF EXISTS nosuch"]]
ASKS = ["SHOW WARNINGS", "SHOW COUNT(*) ERRORS", "SELECT @@warning_count, @@error_count", "GET DIAGNOSTICS @m = NUMBER, @o = ROW_COUNT; SELECT @m, @o",
        "SELECT ROW_COUNT()", "SELECT FOUND_ROWS()"]


def warnings(kind):
    for number, between in enumerate((*COUNTED, *BETWEEN)):
        for form in ("text", "prepare", "execute"):
            w = Writer(kind, 2, "A", "B")
            if form == "execute":
                w.add("A", ["prep", "s6", between])
            for turn in range(2 * len(LEAVES)):
                w.add("A", LEAVES[turn // 2])
                if (turn + number) % 3 == 0:
                    w.ask("B", "SELECT 1")
                w.add("A", {"text": ["Q", between], "prepare": ["prep", "s5", between], "execute": ["exec", "s6", [], 0]}[form])
                w.query("A", ASKS[(turn + number) % len(ASKS)])
            w.query("A", "ROLLBACK; UNLOCK TABLES")
            yield f"warnings {form} {between}", w.script()


# --- Counts ----------------------------------------------------------------------------------------------------------------------

# Beyond those of BETWEEN.
COUNTED = [
    "INSERT INTO w (who, n) SELECT v, n FROM t WHERE id < 3", "INSERT INTO w (who, n) SELECT v, n FROM t LIMIT 1", "INSERT INTO jobs TABLE nosuch",
    "REPLACE INTO jobs TABLE jobs", "INSERT IGNORE INTO jobs TABLE jobs", "INSERT INTO w (who, n) VALUES ROW('a', 1), ROW('b', 2)", "SET @b = (TABLE item LIMIT 1)",
    "SET @b = (VALUES ROW(3))", "DELETE FROM jobs WHERE id IN (TABLE tlog)", "DELETE FROM jobs WHERE id IN (VALUES ROW(2), ROW(3))", "CREATE TABLE d3 TABLE t",
    "CREATE TABLE d3 AS VALUES ROW(1), ROW(2)", "UPDATE jobs SET n = (TABLE item LIMIT 1) WHERE id = 0", "DO (TABLE item LIMIT 1)", "REPLACE INTO u (k, n) SELECT id, n FROM t WHERE id < 3", "INSERT INTO own_a (n) VALUES ((SELECT count(*) FROM t))",
    "INSERT INTO u (k, n) VALUES (1, 5) ON DUPLICATE KEY UPDATE n = n + 1", "INSERT INTO w (who, n) VALUES ('x', 1) RETURNING id", "INSERT INTO u (k, n) VALUES (1, 1)",
    "UPDATE t SET n = n + 1 WHERE id < 3", "UPDATE t, u SET t.n = t.n + 1 WHERE t.id = u.k", "UPDATE t JOIN u ON u.k = t.id SET t.n = t.n + 1",
    "UPDATE t SET n = (SELECT max(n) FROM u) WHERE id < 4", "UPDATE t SET n = n ORDER BY id LIMIT 2", "DELETE FROM jobs WHERE id > 2", "DELETE FROM jobs LIMIT 1",
    "DELETE w FROM w JOIN t ON w.n = t.id", "DELETE FROM w USING w, t WHERE w.n = t.id", "DELETE FROM jobs WHERE id IN (SELECT id FROM t)",
    "DELETE FROM jobs WHERE id = 1 RETURNING id", "WITH x AS (SELECT 2 AS i) DELETE FROM jobs WHERE id IN (SELECT i FROM x)", "DELETE FROM v_t WHERE id = 0",
    "SELECT id FROM t WHERE id = 0", "SELECT id FROM t LIMIT 2", "SELECT id FROM t LIMIT 1, 2", "SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1", "SELECT id FROM t WHERE id = 0 INTO @b",
    "SELECT max(id) FROM t WHERE id = 0", "SELECT max(id) INTO @b FROM t WHERE id = 0", "SELECT id FROM t UNION SELECT id FROM u", "SELECT id FROM t UNION ALL SELECT id FROM u LIMIT 2",
    "(SELECT id FROM t LIMIT 2) UNION (SELECT id FROM u)", "(SELECT id FROM t LIMIT 1, 2)", "SELECT 1 WHERE 0", "SELECT DISTINCT n FROM u", "SELECT n FROM u GROUP BY n WITH ROLLUP",
    "SELECT * FROM t WHERE id = 1 FOR UPDATE", "SELECT * FROM t FORCE INDEX (PRIMARY) WHERE id > 2", "SELECT STRAIGHT_JOIN t.id FROM t, u", "TABLE t LIMIT 2", "VALUES ROW(1), ROW(2)",
    "CREATE TEMPORARY TABLE tq AS SELECT id FROM t", "CREATE TABLE d3 SELECT id FROM t", "CREATE TABLE d3 (i int)", "ALTER TABLE d1 ADD COLUMN zz int", "TRUNCATE d1",
    "DROP TABLE IF EXISTS d1", "CREATE OR REPLACE VIEW vx AS SELECT id FROM t", "SET @b = (SELECT count(*) FROM t)", "SET @b = f_pure(1)", "DO f_read(3)", "SELECT f_read(3)", "DO 1, 2",
    "CALL p_rows()", "CALL p_two()", "CALL p_var(1)", "CALL p_log('x')", "CALL nosuch()", "SELECT * FROM v_t", "SELECT f_into()", "HANDLER five OPEN; HANDLER five READ FIRST LIMIT 3",
    "EXPLAIN SELECT * FROM t", "DESC t", "SHOW STATUS LIKE 'Uptime'", "SHOW WARNINGS LIMIT 1", "GET DIAGNOSTICS @m = NUMBER, @o = ROW_COUNT", "SELECT 1 FROM nosuch", "SELECT f_log('x')",
    "INSERT INTO tlog VALUES (3)", "INSERT INTO tset VALUES (1, 'y')", "LOAD INDEX INTO CACHE five", "CACHE INDEX five IN nosuch", "XA RECOVER", "KILL 999999999", "SELECT SLEEP(0)",
    "EXECUTE IMMEDIATE 'SELECT id FROM t'", "PREPARE p1 FROM 'SELECT id FROM t'; EXECUTE p1", "BEGIN NOT ATOMIC SELECT id FROM t; END", "FLUSH TABLES five", "SELECT id FROM t PROCEDURE ANALYSE()",
]
FORMS = {"alone": "{}", "last": "SET @q = 1; {}", "first": "{}; SET @q = 1", "between": "DO 1; {}; COMMIT"}


def counts(kind):
    """Another client's statements come between, and the questions."""
    for text in (*COUNTED, *BETWEEN):
        for name, form in (*FORMS.items(), ("prepared", None)):
            if form and text.rstrip().endswith("*/") and name != "alone":
                continue
            w = Writer(kind, 2, "A", "B")
            run = [["Q", form.format(text)]] if form else [["prep", "s6", text], ["exec", "s6", [], 0], ["sclose", "s6"]]
            for before in ("SELECT id FROM t", "UPDATE t SET n = n + 1 WHERE id = 2", "DO 0"):
                for ask in ("SELECT FOUND_ROWS()", "SELECT ROW_COUNT()", "SELECT ROW_COUNT(), FOUND_ROWS()"):
                    w.query("A", before)
                    w.ask("B", "SELECT v FROM t WHERE id < 3")
                    w.add("A", *run)
                    w.ask("B", "SELECT 1")
                    w.query("A", ask)
            w.query("A", "ROLLBACK; UNLOCK TABLES")
            yield f"counts {name} {text}", w.script()
