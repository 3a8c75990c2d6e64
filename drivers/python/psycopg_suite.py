"""psycopg 3: libpq underneath, with its pipeline mode, server cursors, COPY, notices and cancel."""

import contextlib
import threading
import time

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb
from weirtest.case import both

SERVERS = ["postgres"]


def connect(target, **kw):
    options = {"host": target.host, "port": target.port, "user": target.user, "password": target.password,
               "dbname": target.database, "sslmode": "disable", "connect_timeout": 20}
    return psycopg.connect(**{**options, **kw})


def state(error):
    return [error.sqlstate, error.diag.message_primary if error.diag else str(error)]


def failing(conn, query, *args):
    """Runs what must fail and returns SQLSTATE and text."""
    try:
        conn.execute(query, *args)
    except psycopg.Error as e:
        return state(e)
    raise AssertionError(f"no error from {query}")


@both
def login(target):
    with connect(target) as conn:
        info = conn.info
        names = ["server_version", "client_encoding", "TimeZone", "DateStyle", "IntervalStyle", "integer_datetimes",
                 "is_superuser", "session_authorization", "standard_conforming_strings", "server_encoding"]
        return [info.dbname, info.user, info.server_version, info.transaction_status.name,
                {n: info.parameter_status(n) for n in names}]


@both
def wrong_logins(target):
    seen = []
    for change in ({"password": "wrong"}, {"dbname": "no_such_db"}, {"user": "no_such_user"}):
        try:
            connect(target, **change).close()
            raise AssertionError(f"let in with {change}")
        except psycopg.OperationalError as e:
            seen.append([sorted(change), "FATAL" in str(e)])
    return seen


@both
def sslmodes(target):
    """A server without TLS answers SSLRequest with N: prefer goes on, require fails."""
    with connect(target, sslmode="prefer", gssencmode="prefer") as conn:
        assert conn.execute("select 1").fetchone() == (1,)
    return True


@both
def startup_settings(target):
    with connect(target, application_name="my app", options="-c search_path=pg_catalog,public -c work_mem=5555kB "
                 "-c statement_timeout=54321", client_encoding="latin1") as conn:
        conn.autocommit = True
        seen = []
        for _ in range(3):
            for name in ("application_name", "search_path", "work_mem", "statement_timeout", "client_encoding"):
                seen.append(conn.execute(f"show {name}").fetchone()[0])
        return [seen, conn.execute("select 'ä'").fetchone()[0], conn.info.parameter_status("application_name")]


@both
def settings_across_clients(target):
    """Clients with different settings, taking turns on the same servers, each see their own."""
    zones = ["UTC", "Europe/Berlin", "Asia/Tokyo", "America/New_York"]
    conns = [connect(target, options=f"-c TimeZone={z} -c DateStyle=German,DMY", autocommit=True,
                     application_name=f"a{i}") for i, z in enumerate(zones * 5)]
    seen = []
    for _ in range(3):
        for i, conn in enumerate(conns):
            got = conn.execute("select current_setting('TimeZone'), current_setting('application_name'), '2024-02-29'::date::text").fetchone()
            assert got == (zones[i % 4], f"a{i}", "29.02.2024"), got
            seen.append(got)
    for conn in conns:
        conn.close()
    return seen


@both
def types(target):
    with connect(target) as conn:
        values = (1, 1 << 40, 1.5, "ü'\"\\%s", b"\x00\x01\xff", [1, None, 3], Jsonb({"a": [1, 2]}), None, True)
        seen = []
        for binary in (False, True):
            for _ in range(8):  # past the prepare threshold
                cur = conn.cursor(binary=binary)
                cur.execute("select %s::int4, %s::int8, %s::float8, %s::text, %s::bytea, %s::int4[], %s::jsonb, %s::text, %s::bool", values)
                row = cur.fetchone()
                seen.append([*row[:4], row[4].hex(), *row[5:]])
                seen.append([c.name for c in cur.description])
        return seen


@both
def prepared(target):
    with connect(target, autocommit=True) as conn:
        conn.prepare_threshold = 0
        conn.prepared_max = 5
        seen = []
        for i in range(40):
            seen.append(conn.execute(f"select %s::int + {i % 12}", (i,), prepare=True).fetchone()[0])
        conn.execute("deallocate all")
        seen.append(conn.execute("select %s::int", (7,)).fetchone()[0])
        return seen


@both
def prepared_by_many(target):
    """More clients than servers, the same texts and different ones: each client's names are its own."""
    conns = [connect(target, autocommit=True, prepare_threshold=0) for _ in range(20)]
    for turn in range(5):
        for i, conn in enumerate(conns):
            assert conn.execute("select %s::int + 1", (i,), prepare=True).fetchone() == (i + 1,)
            assert conn.execute(f"select %s::text || '{i}'", (str(turn),), prepare=True).fetchone() == (f"{turn}{i}",)
    for conn in conns:
        conn.close()
    return True


@both
def schema_change_under_prepared(target):
    with connect(target, autocommit=True) as conn:
        conn.execute("drop table if exists py_change")
        conn.execute("create table py_change (a int)")
        conn.execute("insert into py_change values (1)")
        seen = []
        for _ in range(3):
            seen.append(conn.execute("select * from py_change where a > %s", (0,), prepare=True).fetchall())
        conn.execute("alter table py_change add column b text default 'new'")
        try:
            seen.append(conn.execute("select * from py_change where a > %s", (0,), prepare=True).fetchall())
        except psycopg.Error as e:
            seen.append(state(e))
        conn.execute("drop table py_change")
        return seen


@both
def transactions(target):
    with connect(target, autocommit=True) as conn:
        conn.execute("drop table if exists py_tx")
        conn.execute("create table py_tx (id int primary key)")
        seen = []
        with conn.transaction():
            conn.execute("insert into py_tx values (1)")
            seen.append(conn.info.transaction_status.name)
            try:
                with conn.transaction():
                    conn.execute("insert into py_tx values (1)")
            except psycopg.errors.UniqueViolation as e:
                seen.append(state(e))
            conn.execute("insert into py_tx values (2)")
        try:
            with conn.transaction():
                conn.execute("insert into py_tx values (3)")
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        seen.append(conn.execute("select array_agg(id order by id) from py_tx").fetchone()[0])
        conn.execute("begin")
        seen.append(failing(conn, "select 1/0"))
        seen.append(conn.info.transaction_status.name)
        seen.append(failing(conn, "select 1"))
        conn.execute("rollback")
        seen.append(conn.info.transaction_status.name)
        # A transaction in one Query, and one that begins in the middle.
        conn.execute("insert into py_tx values (10); insert into py_tx values (11)")
        seen.append(failing(conn, "insert into py_tx values (12); insert into py_tx values (12)"))
        conn.execute("insert into py_tx values (13); begin; insert into py_tx values (14)")
        seen.append(conn.info.transaction_status.name)
        conn.execute("rollback")
        seen.append(conn.execute("select array_agg(id order by id) from py_tx").fetchone()[0])
        conn.execute("drop table py_tx")
        return seen


@both
def commit_and_rollback_warnings(target):
    with connect(target, autocommit=True) as conn:
        notices = []
        conn.add_notice_handler(lambda d: notices.append([d.severity, d.sqlstate, d.message_primary]))
        conn.execute("commit")
        conn.execute("begin")
        conn.execute("begin")
        conn.execute("rollback")
        conn.execute("do $$ begin raise notice 'one %', 1; raise warning 'two'; end $$")
        conn.execute("set client_min_messages = debug1")
        conn.execute("do $$ begin raise debug 'three'; end $$")
        return [n for n in notices if n[0] != "DEBUG" or "three" in n[2]]


@both
def pipeline(target):
    with connect(target, autocommit=True) as conn:
        conn.execute("drop table if exists py_pipe")
        conn.execute("create table py_pipe (id int primary key)")
        seen = []
        with conn.pipeline() as pipe:
            cursors = [conn.execute("select %s::int * 2", (i,)) for i in range(100)]
            pipe.sync()
            seen.append(sum(c.fetchone()[0] for c in cursors))
        # An error spoils its own batch up to the sync, and nothing behind it.
        with conn.pipeline() as pipe:
            conn.execute("insert into py_pipe values (1)")
            pipe.sync()
            bad = conn.cursor()
            spoilt = conn.cursor()
            try:
                # The error may be noticed at any of these.
                bad.execute("insert into py_pipe values (1)")
                spoilt.execute("insert into py_pipe values (2)")
                pipe.sync()
                seen.append("no error")
            except psycopg.Error as e:
                seen.append(state(e))
            try:
                pipe.sync()
            except psycopg.Error:
                # That the pipeline is aborted may be noticed only here, also direct.
                pass
            good = conn.execute("insert into py_pipe values (3) returning id")
            pipe.sync()
            seen.append(good.fetchone())
        seen.append(conn.execute("select array_agg(id order by id) from py_pipe").fetchone()[0])
        with conn.pipeline(), conn.transaction():
            conn.execute("insert into py_pipe values (4)")
            conn.execute("insert into py_pipe values (5)")
        seen.append(conn.execute("select array_agg(id order by id) from py_pipe").fetchone()[0])
        with conn.pipeline(), conn.cursor() as cur:
            cur.executemany("insert into py_pipe values (%s)", [(i,) for i in range(100, 400)])
        seen.append(conn.execute("select count(*) from py_pipe").fetchone()[0])
        conn.execute("drop table py_pipe")
        return seen


@both
def many_of_which_one_violates_a_constraint(target):
    """They are sent one behind the other without a Sync, and the error comes before the last has been sent."""
    seen = []
    with connect(target, autocommit=True) as conn:
        conn.execute("drop table if exists py_many")
        conn.execute("create table py_many (id int primary key)")

        def insert(values):
            try:
                with conn.cursor() as cur:
                    cur.executemany("insert into py_many values (%s)", [(value,) for value in values])
            except psycopg.errors.UniqueViolation as e:
                return state(e)
            return "no error"

        for values in ([1, 2, 3, 2, 4], [*range(10, 5000), 11, *range(5000, 10000)]):
            seen.append(insert(values))
            seen.append(conn.execute("select count(*) from py_many").fetchone()[0])
            with contextlib.suppress(psycopg.errors.UniqueViolation), conn.transaction():
                conn.execute("insert into py_many values (6)")
                seen.append(insert(values))
                raise psycopg.Rollback
            seen.append(conn.info.transaction_status.name)
            # Where psycopg raises it, and whether as the violation or as a pipeline that is aborted, is a matter of time.
            with contextlib.suppress(psycopg.Error), conn.pipeline():
                insert(values)
            seen.append(conn.info.transaction_status.name)
            seen.append(conn.execute("select count(*) from py_many").fetchone()[0])
        conn.execute("drop table py_many")
    return seen


@both
def server_cursor(target):
    with connect(target) as conn:
        seen = []
        with conn.cursor(name="walk") as cur:
            cur.itersize = 7
            cur.execute("select i, i * i from generate_series(1, 100) i")
            seen.append([cur.fetchone(), cur.fetchmany(5), sum(r[1] for r in cur)])
        with conn.cursor(name="scrolling", scrollable=True) as cur:
            cur.execute("select i from generate_series(1, 50) i")
            cur.scroll(10)
            seen.append(cur.fetchone())
            cur.scroll(0, mode="absolute")
            seen.append(cur.fetchmany(3))
        conn.commit()
        with conn.cursor(name="held", withhold=True) as cur:
            cur.execute("select i from generate_series(1, 20) i")
            cur.fetchmany(3)
            conn.commit()
            seen.append(cur.fetchmany(4))
        return seen


@both
def stream(target):
    with connect(target) as conn:
        total = 0
        for (text,) in conn.cursor().stream("select repeat('s', 1000) || i from generate_series(1, 2000) i"):
            total += len(text)
        return total


@both
def copy(target):
    with connect(target, autocommit=True) as conn:
        conn.execute("drop table if exists py_copy")
        conn.execute("create table py_copy (id int primary key, v text)")
        seen = []
        with conn.cursor() as cur:
            with cur.copy("copy py_copy from stdin") as copy:
                for i in range(20000):
                    copy.write_row((i, "v" * (i % 80)))
            seen.append([cur.rowcount, cur.statusmessage])
            with cur.copy("copy py_copy to stdout") as copy:
                seen.append(sum(len(block) for block in copy))
            with cur.copy("copy py_copy to stdout (format binary)") as copy:
                copy.set_types(["int4", "text"])
                seen.append(sum(len(r[1]) for r in copy.rows()))
            # The server refuses in the middle while the client still sends.
            try:
                with cur.copy("copy py_copy from stdin") as copy:
                    copy.write_row((30000, "new"))
                    for i in range(20000):
                        copy.write_row((i, "again" * 20))
                seen.append("no error")
            except psycopg.Error as e:
                seen.append(state(e))
            # The client gives up in the middle.
            try:
                with cur.copy("copy py_copy from stdin") as copy:
                    copy.write_row((40000, "new"))
                    raise KeyError("given up")
            except KeyError:
                seen.append("given up")
            # The client goes away while it reads.
            with connect(target).cursor() as leaving, leaving.copy("copy (select repeat('z', 1000) from generate_series(1, 50000)) to stdout") as copy:
                copy.read()
                leaving.connection.pgconn.finish()
            seen.append(cur.execute("select count(*), max(id) from py_copy").fetchone())
        conn.execute("drop table py_copy")
        return seen


@both
def copy_in_transaction(target):
    with connect(target) as conn:
        conn.execute("create temp table py_temp_copy (id int) on commit drop")
        with conn.cursor() as cur:
            with cur.copy("copy py_temp_copy from stdin") as copy:
                for i in range(100):
                    copy.write_row((i,))
            seen = cur.execute("select sum(id) from py_temp_copy").fetchone()
        conn.rollback()
        return seen


@both
def large_rows(target):
    with connect(target, autocommit=True) as conn:
        seen = []
        for size in (1, 8191, 8192, 65535, 65536, 1 << 20, 33_000_000):
            text = "r" * size
            got = conn.execute("select %s::text || 'x'", (text,)).fetchone()[0]
            assert got == text + "x", f"{size} bytes: {len(got)} came back"
            seen.append(len(got))
        got = conn.cursor(binary=True).execute("select convert_to(repeat('b', 20000000), 'UTF8')").fetchone()[0]
        seen.append(len(got))
        return seen


@both
def large_pipeline_both_ways(target):
    """A large result comes while a large request still goes: neither side may wait for the other to stop."""
    with connect(target, autocommit=True) as conn:
        text = "d" * 2_000_000
        with conn.pipeline():
            cursors = [conn.execute("select %s::text", (text,)) for _ in range(12)]
            conn.pipeline()
        return [len(c.fetchone()[0]) for c in cursors]


@both
def cancel(target):
    with connect(target, autocommit=True) as conn:
        stop = threading.Event()

        def ask_until_it_ends():
            # A cancel request may overtake the query it means, so one alone proves nothing.
            while not stop.wait(0.1):
                conn.cancel_safe(timeout=10)

        asker = threading.Thread(target=ask_until_it_ends)
        asker.start()
        try:
            seen = failing(conn, "select pg_sleep(50)")
        finally:
            stop.set()
            asker.join()
        # A request that was on its way may still have hit something; after it the session is whole.
        while True:
            try:
                return [seen, conn.execute("select 'whole'").fetchone()]
            except psycopg.errors.QueryCanceled:
                continue


@both
def listen_notify(target):
    with connect(target, autocommit=True) as listener, connect(target, autocommit=True) as speaker:
        listener.execute("listen py_channel")
        for i in range(5):
            speaker.execute("select pg_notify('py_channel', %s)", (f"message {i}",))
        with speaker.transaction():
            speaker.execute("notify py_channel, 'in a transaction'")
        seen = [(n.channel, n.payload) for n in listener.notifies(timeout=20, stop_after=6)]
        # One that listens to nothing is told nothing, on whatever server it runs.
        other = connect(target, autocommit=True)
        told = []
        other.add_notify_handler(told.append)
        for _ in range(10):
            other.execute("select 1")
            speaker.execute("select pg_notify('py_channel', 'not for you')")
        other.close()
        listener.execute("unlisten *")
        return [seen, [n.payload for n in told]]


@both
def session_state(target):
    """What only a session has must stay right for its client, whatever that costs in sharing."""
    with connect(target, autocommit=True) as one, connect(target, autocommit=True) as two:
        seen = []
        one.execute("set work_mem = '7777kB'")
        one.execute("create temp table py_mine (v text)")
        one.execute("insert into py_mine values ('mine')")
        one.execute("select pg_advisory_lock(4711)")
        one.execute("prepare mine as select 'prepared ' || $1::text")
        for _ in range(3):
            for conn in (two, one):
                seen.append(conn.execute("show work_mem").fetchone()[0])
            seen.append(failing(two, "select * from py_mine"))
            seen.append(one.execute("select * from py_mine").fetchone()[0])
            seen.append(one.execute("execute mine('x')").fetchone()[0])
            seen.append(two.execute("select pg_try_advisory_lock(4711)").fetchone()[0])
        seen.append(one.execute("select pg_advisory_unlock(4711)").fetchone()[0])
        seen.append(two.execute("select pg_try_advisory_lock(4711)").fetchone()[0])
        seen.append(two.execute("select pg_advisory_unlock(4711)").fetchone()[0])
        one.execute("discard all")
        seen.append(one.execute("show work_mem").fetchone()[0])
        seen.append(failing(one, "select * from py_mine"))
        return seen


@both
def set_variants(target):
    with connect(target, autocommit=True) as conn:
        seen = []

        def show(name):
            seen.append(conn.execute(f"show {name}").fetchone()[0])

        conn.execute("set timezone to 'Asia/Tokyo'")
        show("timezone")
        seen.append(conn.info.parameter_status("TimeZone"))
        with conn.transaction():
            conn.execute("set local timezone to 'UTC'")
            show("timezone")
        show("timezone")
        conn.execute("begin")
        conn.execute("set timezone to 'Europe/Berlin'")
        conn.execute("rollback")
        show("timezone")
        conn.execute("select set_config('work_mem', '3333kB', false)")
        show("work_mem")
        conn.execute("set search_path to pg_catalog, \"weird \"\" name\"")
        show("search_path")
        conn.execute("reset all")
        show("timezone")
        show("work_mem")
        show("search_path")
        conn.execute("set role postgres" if target.user == "postgres" else "set role none")
        seen.append(failing(conn, "set no_such_setting = 1"))
        seen.append(failing(conn, "set timezone = 'Nowhere/Land'"))
        return seen


@both
def errors_in_detail(target):
    with connect(target, autocommit=True) as conn:
        seen = []
        for query in ("select * from no_such_table", "selec", "select 1/0", "select 'x'::int", "select no_such_column",
                      "do $$ begin raise exception 'own' using errcode = 'WR001', detail = 'd', hint = 'h'; end $$"):
            try:
                conn.execute(query)
            except psycopg.Error as e:
                d = e.diag
                seen.append([d.severity, d.sqlstate, d.message_primary, d.message_detail, d.message_hint, d.statement_position,
                             d.context, d.schema_name, d.source_function])
        try:
            conn.execute("select %s::int + %s::int", ("x", 1))
        except psycopg.Error as e:
            seen.append(state(e))
        return seen


@both
def several_statements(target):
    with connect(target, autocommit=True) as conn:
        cur = conn.execute("select 1; select 2, 'b'; ; create temp table py_multi(i int); insert into py_multi values (1), (2); select * from py_multi")
        seen = []
        while True:
            seen.append([cur.statusmessage, cur.fetchall() if cur.description else None])
            if not cur.nextset():
                break
        cur.execute("")
        seen.append(cur.statusmessage)
        return seen


@both
def two_phase(target):
    with connect(target) as conn:
        conn.execute("drop table if exists py_two")
        conn.execute("create table py_two (id int)")
        conn.commit()
        xid = conn.xid(1, f"weir-{target.way}", "branch")
        conn.tpc_begin(xid)
        conn.execute("insert into py_two values (1)")
        conn.tpc_prepare()
        conn.tpc_commit()
        seen = conn.execute("select count(*) from py_two").fetchone()
        conn.execute("drop table py_two")
        conn.commit()
        return seen


@both
def large_objects(target):
    """lo_* go by the fast path (FunctionCall), by libpq."""
    with connect(target) as conn:
        pg = conn.execute("select lo_from_bytea(0, %s)", (b"large" * 100_000,)).fetchone()[0]
        size = conn.execute("select length(lo_get(%s))", (pg,)).fetchone()
        conn.execute("select lo_unlink(%s)", (pg,))
        conn.commit()
        return size


@both
def crowd(target):
    """More clients than servers, each with a transaction of its own: nobody sees another's rows or answers."""
    setup = connect(target, autocommit=True)
    setup.execute("drop table if exists py_crowd")
    setup.execute("create table py_crowd (id int primary key, n int)")
    setup.execute("insert into py_crowd select i, 0 from generate_series(0, 29) i")
    wrong = []

    def one(me):
        try:
            with connect(target) as conn:
                for turn in range(10):
                    conn.execute("update py_crowd set n = n + 1 where id = %s", (me,))
                    got = conn.execute("select n, %s::text from py_crowd where id = %s", (f"{me}/{turn}", me)).fetchone()
                    if got != (turn + 1, f"{me}/{turn}"):
                        wrong.append((me, turn, got))
                    conn.commit()
                conn.execute("update py_crowd set n = -1 where id = %s", (me,))
                conn.rollback()
        except psycopg.Error as e:
            wrong.append((me, repr(e)))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(30)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong[:5]
    seen = setup.execute("select count(*), sum(n), min(n) from py_crowd").fetchone()
    setup.execute("drop table py_crowd")
    setup.close()
    return seen


@both
def abandoned_clients(target):
    """Clients that vanish in every state leave nothing behind for the next."""
    for query in ("begin", "begin; create table py_abandoned (i int)", "select 1", "begin; select 1/0", "set timezone = 'Asia/Tokyo'",
                  "create temp table py_left (i int)"):
        conn = connect(target, autocommit=True)
        try:
            conn.execute(query)
        except psycopg.Error:
            pass
        conn.pgconn.finish()
    # One that goes while its query runs.
    conn = connect(target, autocommit=True)
    conn.pgconn.send_query(b"select pg_sleep(1)")
    conn.pgconn.flush()
    conn.pgconn.finish()
    seen = []
    for _ in range(20):
        with connect(target, autocommit=True) as conn:
            seen.append([conn.info.transaction_status.name, conn.execute("show timezone").fetchone()[0],
                         failing(conn, "select * from py_left"), failing(conn, "select * from py_abandoned")])
    return seen


@both
def identifiers(target):
    with connect(target, autocommit=True) as conn:
        name = 'py "odd" täble'
        table = sql.Identifier(name)
        conn.execute(sql.SQL("drop table if exists {}").format(table))
        conn.execute(sql.SQL("create table {} (\"ü\" text)").format(table))
        conn.execute(sql.SQL("insert into {} values (%s)").format(table), ("🜲",))
        seen = conn.execute(sql.SQL("select * from {}").format(table)).fetchall()
        conn.execute(sql.SQL("drop table {}").format(table))
        return seen


@both
def statement_timeout(target):
    with connect(target, autocommit=True) as conn:
        conn.execute("set statement_timeout = 50")
        began = time.monotonic()
        seen = failing(conn, "select pg_sleep(30)")
        assert time.monotonic() - began < 25
        conn.execute("reset statement_timeout")
        return [seen, conn.execute("select 1").fetchone()]
