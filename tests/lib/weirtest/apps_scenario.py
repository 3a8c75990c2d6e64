"""What an application does with its database, as steps that any framework can play: phase by phase, client by client.

A step is a list: what to do, and with what. Parameters stand as $1, $2 in texts; the runner writes them as the framework has them.
All that a client does differs from what the others do: schema, time zone, role, texts, values. Each phase leaves the session as it
found it, so that any of them can be left out. What a client sees must not depend on what others do at the same time.
"""

ZONES = ["Europe/Berlin", "Asia/Kolkata", "America/New_York", "Asia/Tokyo", "Australia/Adelaide", "America/St_Johns", "Africa/Cairo",
         "Pacific/Auckland", "America/Sao_Paulo", "Asia/Kathmandu"]
STYLES = ["ISO, MDY", "German, DMY", "SQL, DMY", "Postgres, MDY"]
MODES = ["", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT", "STRICT_TRANS_TABLES", "TRADITIONAL", "ANSI", "NO_ZERO_DATE",
         "STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO", "HIGH_NOT_PRECEDENCE"]
CHARSETS = ["utf8mb4", "latin1", "cp1251", "gbk", "utf8mb3"]
JOBS = 100


class Who:
    """One client, by number."""

    def __init__(self, framework, number, kind):
        self.number, self.kind = number, kind
        self.common = f"apps_{framework}"
        self.schema = f"apps_{framework}_{number}"
        self.other = f"apps_{framework}_{number}_b"
        self.role = f"apps_role_{number % 5}"
        self.application = f"app {number}"
        self.zone = ZONES[number % len(ZONES)]
        self.other_zone = f"Etc/GMT{'+' if number % 2 else '-'}{number % 12 + 1}"
        self.style = STYLES[number % len(STYLES)]
        self.offset = f"{'+' if self.number % 2 else '-'}{self.number % 12 + 1:02}:00"
        self.other_offset = f"{'-' if self.number % 2 else '+'}{self.number % 11 + 1:02}:30"
        self.mode = MODES[number % len(MODES)]
        self.charset = CHARSETS[number % len(CHARSETS)]

    def told(self):
        """What an adapter is told."""
        return {"application": self.application, "schema": self.schema, "zone": self.zone, "offset": self.offset,
                "sql_mode": "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"}


def query(sql, *params):
    return ["query", sql, list(params)]


def execute(sql, *params):
    return ["execute", sql, list(params)]


def fails(sql, *params):
    return ["fails", sql, list(params)]


def transaction(*steps, commit=True):
    return ["transaction", list(steps), commit]


def savepoint(*steps, release=True):
    return ["savepoint", list(steps), release]


# ---------------------------------------------------------------------------------------------------------------
# PostgreSQL

PG = {}
MY = {}
# What begins here goes on in the next phase: between the two, nobody may come anew.
GO_ON = {"settings": ("settings_hold", "settings_back"), "settings_hold": ()}


def phase(table):
    def add(function):
        table[function.__name__.removeprefix("pg_").removeprefix("my_")] = function
        return function
    return add


def pg_identity(w):
    return query(f"SELECT {w.number}, current_schema(), current_setting('TimeZone'), current_setting('application_name'), current_user, session_user, "
                 "current_setting('DateStyle'), current_setting('client_encoding'), to_char(timestamptz '2024-06-01 12:00+00', 'HH24:MI')")


@phase(PG)
def pg_connect(w):
    return [["open"], pg_identity(w)]


@phase(PG)
def pg_migrate(w):
    return [
        ["migrate", [
            "CREATE TABLE migrations (version bigint PRIMARY KEY, at timestamptz DEFAULT now())",
            "CREATE TABLE items (id serial PRIMARY KEY, name text NOT NULL UNIQUE, qty int NOT NULL DEFAULT 0 CHECK (qty >= 0), doc jsonb)",
            f"CREATE TABLE lines (id bigserial PRIMARY KEY, item_id int NOT NULL REFERENCES items ON DELETE CASCADE, note text DEFAULT 'of {w.number}')",
            "ALTER TABLE items ADD COLUMN price numeric(10, 2) NOT NULL DEFAULT 1.50",
            "CREATE INDEX items_by_price ON items (price) WHERE qty > 0",
            f"INSERT INTO migrations (version) VALUES (2024{w.number:04})",
        ]],
        transaction(execute("CREATE TABLE gone (id int)"), execute("ALTER TABLE items ADD COLUMN gone int"), commit=False),
        fails("SELECT * FROM gone"),
        query("SELECT version FROM migrations"),
        query("SELECT table_name, column_name, data_type, column_default FROM information_schema.columns WHERE table_schema = current_schema() "
              "ORDER BY table_name, ordinal_position"),
    ]


@phase(PG)
def pg_orm(_w):
    return [["orm"]]


@phase(PG)
def pg_transactions(w):
    insert = "INSERT INTO items (name, qty) VALUES ($1, $2)"
    count = query("SELECT count(*), sum(qty) FROM items")
    return [
        transaction(execute(insert, f"kept {w.number}", w.number), count),
        transaction(execute(insert, "gone", 1), count, commit=False),
        count,
        transaction(
            execute(insert, f"outer {w.number}", 1),
            savepoint(execute(insert, "inner, released", 2)),
            savepoint(execute(insert, "inner, rolled back", 3), count, release=False),
            savepoint(fails(insert, f"kept {w.number}", 4), release=False),
            count),
        transaction(execute("SET LOCAL lock_timeout = '7s'"), query("SHOW lock_timeout"), execute("UPDATE items SET qty = qty + 1"),
                    query("SELECT name, qty FROM items ORDER BY id FOR UPDATE")),
        query("SHOW lock_timeout"),
        transaction(commit=True),
        transaction(commit=False),
        transaction(fails("SELECT no_such_column FROM items"), fails("SELECT 1"), commit=False),
        query("SELECT name, qty FROM items ORDER BY name COLLATE \"C\""),
        execute("DELETE FROM items"),
    ]


@phase(PG)
def pg_prepared(w):
    return [["prepared", f"SELECT $1::int + {w.number}, $2::text || current_schema(), {k} FROM generate_series(1, 2)", [[n, f"{n} in "] for n in range(3)]]
            for k in range(6)] + [
        ["prepared", "SELECT $1::text::timestamptz = '2024-06-01 00:00'", [["2024-06-01 00:00"]]],
        ["prepared", "SELECT count(*) FROM items WHERE name = $1", [["nobody"], ["none"]]],
    ]


@phase(PG)
def pg_queue(w):
    take = f"SELECT id FROM {w.common}.jobs WHERE done = 0 ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED"
    own = f"SELECT id FROM {w.common}.own WHERE owner = {w.number} AND done = 0 ORDER BY id LIMIT 3 FOR UPDATE SKIP LOCKED"
    return [
        ["queue", take, f"UPDATE {w.common}.jobs SET done = done + 1 WHERE id = $1"],
        ["queue", own, f"UPDATE {w.common}.own SET done = done + 1 WHERE id = $1"],
        query(f"SELECT count(*), sum(done) FROM {w.common}.own WHERE owner = {w.number}"),
    ]


@phase(PG)
def pg_errors(w):
    return [
        fails("SELEC 1"), fails("SELECT * FROM no_such_table"), fails("SELECT no_such_column"), fails(f"SELECT {w.number} / 0"),
        execute("INSERT INTO items (name) VALUES ($1)", f"once {w.number}"),
        fails("INSERT INTO items (name) VALUES ($1)", f"once {w.number}"),
        fails("INSERT INTO items (name) VALUES (NULL)"),
        fails("INSERT INTO items (name, qty) VALUES ('less', -1)"),
        fails("INSERT INTO lines (item_id) VALUES (0)"),
        fails("SELECT 'x'::int"), fails("CREATE TABLE items ()"),
        execute("DELETE FROM items"),
        pg_identity(w),
    ]


@phase(PG)
def pg_do_block(w):
    return [fails(f"DO $x$ BEGIN RAISE EXCEPTION USING MESSAGE = 'own error of {w.number}', ERRCODE = 'AP0{w.number % 10}1'; END $x$"), query(f"SELECT {w.number}")]


@phase(PG)
def pg_large(w):
    return [
        ["stream", f"SELECT g, repeat(chr(65 + mod(g + {w.number}, 26)), 40) FROM generate_series(1, 3000) g"],
        query(f"SELECT length(v), md5(v) FROM (SELECT repeat('{w.number} ', 300000) v) x"),
        ["stream", f"SELECT g, repeat('wide {w.number}', 20000) FROM generate_series(1, 6) g"],
    ]


@phase(PG)
def pg_copy(w):
    return [
        execute("CREATE TABLE copied (id int, note text)"),
        ["copy_in", "COPY copied (id, note) FROM STDIN", "".join(f"{n}\tnote {n} of {w.number}\n" for n in range(500))],
        ["copy_out", "COPY (SELECT id, note FROM copied WHERE id % 100 = 7 ORDER BY id) TO STDOUT"],
        query("SELECT count(*), sum(id) FROM copied"),
        execute("DROP TABLE copied"),
    ]


@phase(PG)
def pg_transaction_lock(w):
    return [transaction(query(f"SELECT pg_advisory_xact_lock({7000 + w.number % 3})"), query(f"SELECT {w.number}"))]


@phase(PG)
def pg_sequence(w):
    return [
        execute(f"CREATE SEQUENCE drawn START {w.number * 100 + 1}"),
        query("SELECT nextval('drawn')"), query("SELECT nextval('drawn')"), query("SELECT currval('drawn')"),
        query("SELECT setval('drawn', 5000)"), query("SELECT nextval('drawn'), lastval()"),
        execute("DROP SEQUENCE drawn"),
    ]


@phase(PG)
def pg_last_value(w):
    return [
        transaction(execute("INSERT INTO lines (item_id) SELECT id FROM items LIMIT 0"), execute("INSERT INTO items (name) VALUES ($1)", f"drawn {w.number}"),
                    query("SELECT lastval() = currval('items_id_seq'), lastval() = max(id) FROM items")),
        query("INSERT INTO items (name) VALUES ($1) RETURNING name, id > 0", f"returned {w.number}"),
        execute("DELETE FROM items"),
    ]


@phase(PG)
def pg_session_lock(w):
    return [
        query(f"SELECT pg_advisory_lock({9000 + w.number})"),
        query(f"SELECT pg_try_advisory_lock({9000 + w.number})"),
        query(f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = {9000 + w.number}"),
        query(f"SELECT pg_advisory_unlock({9000 + w.number})"), query(f"SELECT pg_advisory_unlock({9000 + w.number})"),
        query(f"SELECT {w.number}"),
    ]


@phase(PG)
def pg_temporary_on_commit(w):
    return [
        transaction(execute("CREATE TEMPORARY TABLE scratch (id int, note text) ON COMMIT DROP"),
                    execute(f"INSERT INTO scratch SELECT g, 'of {w.number}' FROM generate_series(1, {w.number + 1}) g"),
                    query("SELECT count(*), min(note) FROM scratch")),
        fails("SELECT * FROM scratch"),
    ]


@phase(PG)
def pg_temporary(w):
    return [
        execute("CREATE TEMPORARY TABLE scratch (id int, note text)"),
        execute(f"INSERT INTO scratch SELECT g, 'of {w.number}' FROM generate_series(1, {w.number + 1}) g"),
        query("SELECT count(*), min(note) FROM scratch"),
        execute("DROP TABLE scratch"),
        fails("SELECT * FROM scratch"),
    ]


@phase(PG)
def pg_listen(w):
    return [["listen", f"channel_{w.common}_{w.number}", f"said to {w.number}"], query(f"SELECT {w.number}")]


@phase(PG)
def pg_sql_prepare(w):
    return [
        execute(f"PREPARE mine AS SELECT {w.number} + 1, current_schema()"), query("EXECUTE mine"), query("EXECUTE mine"),
        execute("DEALLOCATE mine"), fails("EXECUTE mine"), fails("EXECUTE nobodys"),
    ]


@phase(PG)
def pg_hold(w):
    return [
        transaction(execute(f"DECLARE held CURSOR WITH HOLD FOR SELECT g + {w.number} FROM generate_series(1, 10) g")),
        query("FETCH 3 FROM held"), query("FETCH 2 FROM held"), execute("CLOSE held"), fails("FETCH 1 FROM held"),
    ]


@phase(PG)
def pg_settings(w):
    return [
        execute(f"SET search_path TO {w.other}, public"), execute(f"SET TIME ZONE '{w.other_zone}'"), execute(f"SET DateStyle TO '{w.style}'"),
        query(f"SELECT set_config('statement_timeout', '{60 + w.number}s', false)"), execute(f"SET work_mem TO '{1000 + w.number}kB'"),
        execute("SET client_min_messages TO 'warning'"), execute("SET standard_conforming_strings TO on"), execute("SET extra_float_digits TO 3"),
    ]


@phase(PG)
def pg_settings_hold(w):
    """Asked many times, so that each client is served by whatever server is free."""
    ask = query("SELECT current_schema(), now() IS NOT NULL, timestamptz '2024-06-01 12:00+00' :: text, current_setting('statement_timeout'), "
                "current_setting('work_mem'), current_setting('client_min_messages')")
    own = query("SELECT who FROM whose")
    return [s for k in range(3) for s in (ask, own, ["prepared", f"SELECT who, $1::int + {k} FROM whose", [[w.number]]], transaction(own, query("SHOW TimeZone")))]


@phase(PG)
def pg_settings_back(w):
    return [
        execute(f"SET search_path TO {w.schema}"), execute(f"SET TIME ZONE '{w.zone}'"), execute("RESET DateStyle"), execute("RESET statement_timeout"),
        execute("RESET work_mem"), execute("RESET client_min_messages"), execute("RESET extra_float_digits"), execute("SET standard_conforming_strings TO DEFAULT"),
        query("SELECT current_setting('statement_timeout'), current_setting('work_mem'), current_setting('client_min_messages')"),
        pg_identity(w),
    ]


@phase(PG)
def pg_local_role(w):
    return [transaction(execute(f"SET LOCAL ROLE {w.role}"), query("SELECT current_user"), fails(f"SELECT * FROM {w.common}.secret"), commit=False),
            query("SELECT current_user")]


@phase(PG)
def pg_role(w):
    return [execute(f"SET ROLE {w.role}"), query("SELECT current_user, session_user"), fails(f"SELECT * FROM {w.common}.secret"),
            query(f"SELECT current_user, {w.number}"), execute("RESET ROLE"), query("SELECT current_user")]


@phase(PG)
def pg_custom_setting(w):
    """As row level security has it: who the tenant is, in a setting of the application's own."""
    return [
        transaction(query(f"SELECT set_config('app.tenant', '{w.number}', true)"), query(f"SELECT note FROM {w.common}.tenants ORDER BY note")),
        query(f"SELECT note FROM {w.common}.tenants"),
    ]


@phase(PG)
def pg_isolation(w):
    return [transaction(execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"), query("SHOW transaction_isolation"), query(f"SELECT {w.number}")),
            execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ"),
            transaction(query("SHOW transaction_isolation")),
            execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED"),
            query("SHOW transaction_isolation")]


@phase(PG)
def pg_cancel(w):
    return [["cancel", f"SELECT pg_sleep(100 + {w.number})"], query(f"SELECT {w.number}"), pg_identity(w)]


@phase(PG)
def pg_timeout(w):
    return [transaction(execute("SET LOCAL statement_timeout = '20ms'"), fails("SELECT pg_sleep(100)"), commit=False), query(f"SELECT {w.number}")]


@phase(PG)
def pg_reconnect(w):
    return [["reconnect"], pg_identity(w), query("SELECT count(*) FROM items"), query(f"SELECT {w.number}")]


@phase(PG)
def pg_close(_w):
    return [["close"]]


def pg_setup(framework, count, kind):
    """What the database's owner has made before the application comes; by a superuser, direct."""
    whos = [Who(framework, n, kind) for n in range(count)]
    common = whos[0].common
    out = []
    for role in sorted({w.role for w in whos}):
        out.append(f"DO $$ BEGIN CREATE ROLE {role}; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$")
        out.append(f"DO $$ BEGIN PERFORM pg_advisory_xact_lock(7070); GRANT {role} TO app_scram; END $$")
    for schema in (common, *(s for w in whos for s in (w.schema, w.other))):
        out.append(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        out.append(f"CREATE SCHEMA {schema} AUTHORIZATION app_scram")
    out.append(f"GRANT USAGE ON SCHEMA {common} TO PUBLIC")
    out += [f"CREATE VIEW {w.other}.whose AS SELECT {w.number} AS who; GRANT ALL ON {w.other}.whose TO app_scram" for w in whos]
    out.append(f"""CREATE TABLE {common}.jobs (id serial PRIMARY KEY, done int NOT NULL DEFAULT 0);
        CREATE TABLE {common}.own (id serial PRIMARY KEY, owner int NOT NULL, done int NOT NULL DEFAULT 0);
        CREATE TABLE {common}.secret (); CREATE TABLE {common}.tenants (tenant int, note text);
        INSERT INTO {common}.jobs SELECT FROM generate_series(1, {JOBS});
        INSERT INTO {common}.own (owner) SELECT n FROM generate_series(0, {count - 1}) n, generate_series(1, 5);
        INSERT INTO {common}.tenants SELECT n, 'of ' || n FROM generate_series(0, {count - 1}) n;
        ALTER TABLE {common}.tenants ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON {common}.tenants USING (tenant = NULLIF(current_setting('app.tenant', true), '')::int);
        GRANT ALL ON {common}.jobs, {common}.own, {common}.secret, {common}.tenants TO app_scram""")
    return out


def pg_counted(framework):
    """(question, answer) once all queues are empty: each job was done once."""
    return [(f"SELECT count(*), min(done), max(done) FROM apps_{framework}.{table}", (None, "1", "1")) for table in ("jobs", "own")]


def pg_cleanup(framework, count, kind):
    whos = [Who(framework, n, kind) for n in range(count)]
    return [f"DROP SCHEMA IF EXISTS {s} CASCADE" for s in (whos[0].common, *(s for w in whos for s in (w.schema, w.other)))]


# ---------------------------------------------------------------------------------------------------------------
# MySQL and MariaDB


def my_identity(w):
    return query(f"SELECT {w.number}, DATABASE(), @@time_zone, @@sql_mode, @@character_set_client, @@collation_connection, @@autocommit, "
                 "FROM_UNIXTIME(1717243200), CURRENT_USER()")


@phase(MY)
def my_connect(w):
    return [["open"], my_identity(w)]


@phase(MY)
def my_migrate(w):
    return [
        ["migrate", [
            "CREATE TABLE migrations (version bigint PRIMARY KEY, at timestamp DEFAULT CURRENT_TIMESTAMP)",
            "CREATE TABLE items (id int AUTO_INCREMENT PRIMARY KEY, name varchar(100) NOT NULL UNIQUE, qty int NOT NULL DEFAULT 0, note varchar(10), at timestamp NULL)",
            "CREATE TABLE `lines` (id bigint AUTO_INCREMENT PRIMARY KEY, item_id int NOT NULL, FOREIGN KEY (item_id) REFERENCES items (id) ON DELETE CASCADE)",
            "ALTER TABLE items ADD COLUMN price decimal(10, 2) NOT NULL DEFAULT 1.50",
            "CREATE INDEX items_by_price ON items (price)",
            f"INSERT INTO migrations (version) VALUES (2024{w.number:04})",
        ]],
        fails("SELECT * FROM gone"),
        query("SELECT version FROM migrations"),
        query("SELECT table_name, column_name, column_type FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position"),
    ]


@phase(MY)
def my_orm(_w):
    return [["orm"]]


@phase(MY)
def my_transactions(w):
    insert = "INSERT INTO items (name, qty) VALUES ($1, $2)"
    count = query("SELECT count(*), sum(qty) FROM items")
    return [
        transaction(execute(insert, f"kept {w.number}", w.number), count),
        transaction(execute(insert, "gone", 1), count, commit=False),
        count,
        transaction(
            execute(insert, f"outer {w.number}", 1),
            savepoint(execute(insert, "inner, released", 2)),
            savepoint(execute(insert, "inner, rolled back", 3), count, release=False),
            fails(insert, f"kept {w.number}", 4),
            count),
        transaction(execute("UPDATE items SET qty = qty + 1"), query("SELECT name, qty FROM items ORDER BY id FOR UPDATE")),
        transaction(commit=True),
        transaction(commit=False),
        query("SELECT name, qty FROM items ORDER BY name"),
        execute("DELETE FROM items"),
    ]


@phase(MY)
def my_autocommit(w):
    insert = "INSERT INTO items (name) VALUES ($1)"
    return [
        execute("SET autocommit = 0"), execute(insert, f"kept {w.number}"), execute("COMMIT"), execute(insert, "gone"), query("SELECT count(*) FROM items"),
        execute("ROLLBACK"), query("SELECT count(*) FROM items"), execute("COMMIT"), execute("SET autocommit = 1"), query("SELECT @@autocommit"),
        execute("DELETE FROM items"),
    ]


@phase(MY)
def my_prepared(w):
    return [["prepared", f"SELECT $1 + {w.number}, concat($2, DATABASE()), {k}", [[n, f"{n} in "] for n in range(3)]] for k in range(6)] + [
        ["prepared", "SELECT count(*) FROM items WHERE name = $1", [["nobody"], ["none"]]],
    ]


@phase(MY)
def my_queue(w):
    return [
        ["queue", f"SELECT id FROM {w.common}.jobs WHERE done = 0 ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED",
         f"UPDATE {w.common}.jobs SET done = done + 1 WHERE id = $1"],
        ["queue", f"SELECT id FROM {w.common}.own FORCE INDEX (owners) WHERE owner = {w.number} AND done = 0 LIMIT 3 FOR UPDATE SKIP LOCKED",
         f"UPDATE {w.common}.own SET done = done + 1 WHERE id = $1"],
        query(f"SELECT count(*), sum(done) FROM {w.common}.own WHERE owner = {w.number}"),
    ]


@phase(MY)
def my_errors(w):
    return [
        fails("SELEC 1"), fails("SELECT * FROM no_such_table"), fails("SELECT no_such_column"),
        execute("INSERT INTO items (name) VALUES ($1)", f"once {w.number}"),
        fails("INSERT INTO items (name) VALUES ($1)", f"once {w.number}"),
        fails("INSERT INTO items (name) VALUES (NULL)"),
        fails("INSERT INTO `lines` (item_id) VALUES (0)"), fails("CREATE TABLE items (id int)"),
        execute("DELETE FROM items"),
        my_identity(w),
    ]


@phase(MY)
def my_strict(w):
    """An error or a warning, by the client's own sql_mode."""
    return [["query", f"INSERT INTO items (name, note) VALUES ('long {w.number}', 'longer than ten')", []], query("SHOW WARNINGS"), execute("DELETE FROM items")]


@phase(MY)
def my_unknown_function(w):
    return [fails(f"SELECT no_such_function({w.number})"), query(f"SELECT {w.number}")]


@phase(MY)
def my_signal(w):
    return [fails(f"SIGNAL SQLSTATE '45{w.number % 10}01' SET MESSAGE_TEXT = 'own error of {w.number}'"), query(f"SELECT {w.number}")]


@phase(MY)
def my_warnings(w):
    return [
        query(f"SELECT CAST('{w.number}x' AS SIGNED), 1"), query("SHOW WARNINGS"), query("SHOW COUNT(*) WARNINGS"),
        execute("DROP TABLE IF EXISTS not_there"), query("SHOW WARNINGS"), query("SELECT @@warning_count"),
        fails(f"SELECT * FROM missing_{w.number}"), query("SHOW ERRORS"), query("SELECT 1"), query("SHOW WARNINGS"),
    ]


@phase(MY)
def my_last_insert_id(w):
    insert = "INSERT INTO items (name) VALUES ($1)"
    return [
        execute("ALTER TABLE items AUTO_INCREMENT = %d" % (w.number * 1000 + 1)),
        execute(insert, "one"), query("SELECT LAST_INSERT_ID()"), execute(insert, "two"), query("SELECT LAST_INSERT_ID(), @@identity"),
        transaction(execute(insert, "three"), query("SELECT LAST_INSERT_ID()"), execute("INSERT INTO `lines` (id, item_id) VALUES (7, LAST_INSERT_ID())")),
        query("SELECT item_id FROM `lines`"), execute("UPDATE items SET id = LAST_INSERT_ID(id + 500) WHERE name = 'two'"), query("SELECT LAST_INSERT_ID()"),
        execute("DELETE FROM items"), query("SELECT ROW_COUNT()"),
    ]


@phase(MY)
def my_found_rows(w):
    return [
        query(f"SELECT SQL_CALC_FOUND_ROWS column_name FROM information_schema.columns WHERE table_schema = '{w.schema}' AND table_name = 'items' ORDER BY 1 LIMIT 2"),
        query("SELECT FOUND_ROWS()"),
    ]


@phase(MY)
def my_user_variables(w):
    return [execute(f"SET @mine = {w.number}, @text = 'of {w.number}'"), query("SELECT @mine + 1, @text"), query("SELECT @mine := @mine + 10"), query("SELECT @mine, @nobody"),
            execute("SET @mine = NULL, @text = NULL"), query("SELECT @mine, @text")]


@phase(MY)
def my_temporary(w):
    return [
        execute("CREATE TEMPORARY TABLE scratch (id int, note varchar(20))"),
        execute(f"INSERT INTO scratch VALUES (1, 'of {w.number}'), (2, 'of {w.number}')"), query("SELECT count(*), min(note) FROM scratch"),
        execute("DROP TEMPORARY TABLE scratch"), fails("SELECT * FROM scratch"),
    ]


@phase(MY)
def my_get_lock(w):
    return [query(f"SELECT GET_LOCK('{w.schema}', 10)"), query(f"SELECT IS_FREE_LOCK('{w.schema}')"), query(f"SELECT RELEASE_LOCK('{w.schema}')"),
            query(f"SELECT IS_FREE_LOCK('{w.schema}')")]


@phase(MY)
def my_lock_tables(w):
    return [execute("LOCK TABLES items WRITE"), execute("INSERT INTO items (name) VALUES ($1)", f"locked {w.number}"), query("SELECT count(*) FROM items"),
            fails("SELECT * FROM migrations"), execute("UNLOCK TABLES"), query("SELECT count(*) FROM `lines`"), execute("DELETE FROM items")]


@phase(MY)
def my_load(w):
    return [
        ["load", "LOAD DATA LOCAL INFILE '{file}' INTO TABLE items FIELDS TERMINATED BY ',' (name, qty)", "".join(f"row {n} of {w.number},{n}\n" for n in range(300))],
        query("SELECT count(*), sum(qty), min(name) FROM items"), execute("DELETE FROM items"),
    ]


@phase(MY)
def my_large(w):
    return [
        ["stream", f"WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, concat('row ', i + {w.number}, repeat('x', 200)) FROM n ORDER BY i"],
        query(f"SELECT length(v), crc32(v) FROM (SELECT repeat('{w.number} ', 300000) v) x"),
    ]


@phase(MY)
def my_procedure(w):
    return [
        execute("CREATE PROCEDURE adds(a int) BEGIN INSERT INTO items (name, qty) VALUES (concat('by procedure ', a), a); END"),
        execute(f"CALL adds({w.number})"), query("SELECT name, qty FROM items"), execute("DROP PROCEDURE adds"), execute("DELETE FROM items"),
    ]


@phase(MY)
def my_sql_prepare(w):
    return [execute(f"PREPARE mine FROM 'SELECT {w.number} + 1, DATABASE()'"), query("EXECUTE mine"), query("EXECUTE mine"), execute("DEALLOCATE PREPARE mine"),
            fails("EXECUTE mine")]


@phase(MY)
def my_settings(w):
    return [
        execute(f"SET time_zone = '{w.other_offset}'"), execute(f"SET SESSION sql_mode = '{w.mode}'"), execute(f"SET NAMES {w.charset}"), execute(f"USE {w.other}"),
        execute(f"SET SESSION group_concat_max_len = {2000 + w.number}"), execute("SET SESSION foreign_key_checks = 0"),
        execute(f"SET SESSION lock_wait_timeout = {100 + w.number}, @@session.wait_timeout = {10_000 + w.number}"),
        execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"),
    ]


@phase(MY)
def my_settings_hold(w):
    ask = query("SELECT DATABASE(), @@time_zone, @@sql_mode, @@character_set_client, @@character_set_results, @@group_concat_max_len, @@foreign_key_checks, "
                "@@lock_wait_timeout, @@wait_timeout, FROM_UNIXTIME(1717243200)")
    own = query("SELECT who FROM whose")
    return [s for k in range(3) for s in (ask, own, ["prepared", f"SELECT who, $1 + {k} FROM whose", [[w.number]]], transaction(own, query("SELECT 'a' 'b', hex('ä')")))]


@phase(MY)
def my_settings_back(w):
    return [
        execute("SET NAMES utf8mb4"), execute(f"SET time_zone = '{w.offset}'"), execute("SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'"), execute(f"USE {w.schema}"),
        execute("SET SESSION group_concat_max_len = DEFAULT, foreign_key_checks = DEFAULT, lock_wait_timeout = DEFAULT, wait_timeout = DEFAULT"),
        execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"),
        query(f"SELECT {w.number}, DATABASE(), @@time_zone, @@sql_mode, @@character_set_client, @@group_concat_max_len"),
    ]


@phase(MY)
def my_other_setting(w):
    """One that no list of the usual ones has."""
    return [execute(f"SET SESSION max_heap_table_size = {1_048_576 + 1024 * w.number}"), query("SELECT @@max_heap_table_size"), execute(f"SET SESSION join_buffer_size = {131_072 * (w.number + 1)}"),
            execute(f"SET SESSION default_week_format = {w.number % 8}"), query("SELECT @@default_week_format, WEEK('2024-06-01')"),
            execute("SET SESSION max_heap_table_size = DEFAULT, join_buffer_size = DEFAULT, default_week_format = DEFAULT"), query(f"SELECT {w.number}")]


# Runs until it is cancelled.
MY_LONG = "SELECT count(*) FROM information_schema.columns a, information_schema.columns b, information_schema.columns c WHERE"


@phase(MY)
def my_cancel(w):
    return [["cancel", f"{MY_LONG} SLEEP(0.001) + {w.number} < 0"], query(f"SELECT {w.number}")]


@phase(MY)
def my_reconnect(w):
    return [["reconnect"], my_identity(w), query("SELECT count(*) FROM items"), query("SELECT @mine"), query(f"SELECT {w.number}")]


@phase(MY)
def my_close(_w):
    return [["close"]]


def my_setup(framework, count, kind):
    whos = [Who(framework, n, kind) for n in range(count)]
    common = whos[0].common
    out = []
    for schema in (common, *(s for w in whos for s in (w.schema, w.other))):
        out += [f"DROP DATABASE IF EXISTS {schema}", f"CREATE DATABASE {schema} CHARACTER SET utf8mb4"]
    out += [f"CREATE VIEW {w.other}.whose AS SELECT {w.number} AS who" for w in whos]
    out += [f"CREATE TABLE {common}.jobs (id int AUTO_INCREMENT PRIMARY KEY, done int NOT NULL DEFAULT 0)",
            f"CREATE TABLE {common}.own (id int AUTO_INCREMENT PRIMARY KEY, owner int NOT NULL, done int NOT NULL DEFAULT 0, KEY owners (owner))",
            f"INSERT INTO {common}.jobs (done) VALUES " + ", ".join(["(0)"] * JOBS),
            f"INSERT INTO {common}.own (owner) VALUES " + ", ".join(f"({w.number})" for w in whos for _ in range(5))]
    return out


my_counted = pg_counted


def my_cleanup(framework, count, kind):
    whos = [Who(framework, n, kind) for n in range(count)]
    return [f"DROP DATABASE IF EXISTS {s}" for s in (whos[0].common, *(s for w in whos for s in (w.schema, w.other)))]
