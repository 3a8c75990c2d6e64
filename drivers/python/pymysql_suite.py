"""PyMySQL: text protocol; autocommit, charsets, LOCAL INFILE, multi statements, unbuffered results, packets over 16 MB."""

import tempfile
import threading
import warnings

import pymysql
import pymysql.cursors
from pymysql.constants import CLIENT, COMMAND
from weirtest.case import both, eventually

SERVERS = ["mariadb", "mysql"]
WEIR_USERS = {"mariadb": ["app_other"], "mysql": ["app_other"]}


def connect(target, **kw):
    options = {"host": target.host, "port": target.port, "user": target.user, "password": target.password,
               "database": target.database, "connect_timeout": 20, "read_timeout": 90, "autocommit": True}
    return pymysql.connect(**{**options, **kw})


def rows(conn, query, args=None):
    with conn.cursor() as cur:
        cur.execute(query, args)
        return [list(r) for r in cur.fetchall()]


def one(conn, query, args=None):
    return rows(conn, query, args)[0][0]


def failing(conn, query, args=None):
    try:
        rows(conn, query, args)
    except pymysql.MySQLError as e:
        return list(e.args)
    raise AssertionError(f"no error from {query}")


@both
def login(target):
    with connect(target) as conn:
        return [conn.get_server_info().split("-")[0].split(".")[0], conn.character_set_name(), conn.server_charset,
                one(conn, "select database()"), one(conn, "select current_user()")]


@both
def wrong_logins(target):
    seen = []
    for change in ({"password": "wrong"}, {"user": "no_such_user"}, {"password": ""}):
        try:
            connect(target, **change).close()
            raise AssertionError(f"let in with {change}")
        except pymysql.err.OperationalError as e:
            seen.append([sorted(change), e.args[0]])
    return seen


@both
def without_database(target):
    with connect(target, database=None) as conn:
        seen = [one(conn, "select database()")]
        conn.select_db("app2")
        seen.append(one(conn, "select database()"))
        rows(conn, "use app")
        seen.append(one(conn, "select database()"))
        seen.append(failing(conn, "use no_such_database"))
        seen.append(one(conn, "select database()"))
        return seen


@both
def schemas_across_clients(target):
    """Clients in different schemas, taking turns on the same servers."""
    conns = [connect(target, database=("app", "app2", "bench")[i % 3]) for i in range(18)]
    for _ in range(4):
        for i, conn in enumerate(conns):
            assert one(conn, "select database()") == ("app", "app2", "bench")[i % 3]
    for i, conn in enumerate(conns):
        conn.select_db(("app2", "bench", "app")[i % 3])
    for _ in range(4):
        for i, conn in enumerate(conns):
            assert one(conn, "select database()") == ("app2", "bench", "app")[i % 3]
    for conn in conns:
        conn.close()
    return True


@both
def charsets_across_clients(target):
    names = ["utf8mb4", "latin1", "utf8mb3", "cp1251"]
    conns = [connect(target, charset=names[i % 4]) for i in range(16)]
    seen = []
    for _ in range(3):
        for conn in conns:
            got = rows(conn, "select @@character_set_client, @@character_set_connection, @@character_set_results, @@collation_connection")
            seen.append(got)
    for i, conn in enumerate(conns):
        if names[i % 4] != "cp1251":
            text = "äß"
            assert rows(conn, "select %s, length(%s)", (text, text)) == [[text, 4 if i % 4 != 1 else 2]]
        conn.close()
    return seen


@both
def set_names(target):
    with connect(target) as a, connect(target) as b:
        rows(a, "set names latin1")
        rows(b, "set names utf8mb4 collate utf8mb4_bin")
        seen = []
        for _ in range(3):
            for conn in (a, b):
                seen.append(rows(conn, "select @@character_set_client, @@character_set_results, @@collation_connection"))
        return seen


@both
def autocommit_off(target):
    with connect(target, autocommit=False) as conn, connect(target) as other:
        rows(other, "drop table if exists my_auto")
        rows(other, "create table my_auto (id int primary key)")
        rows(conn, "insert into my_auto values (1)")
        seen = [one(other, "select count(*) from my_auto"), one(conn, "select count(*) from my_auto")]
        conn.rollback()
        rows(conn, "insert into my_auto values (2)")
        conn.commit()
        seen += [one(other, "select group_concat(id) from my_auto"), one(conn, "select @@autocommit"), conn.get_autocommit()]
        # A read snapshot stays what it is until the end of the transaction.
        seen.append(one(conn, "select count(*) from my_auto"))
        rows(other, "insert into my_auto values (3)")
        seen.append(one(conn, "select count(*) from my_auto"))
        conn.rollback()
        seen.append(one(conn, "select count(*) from my_auto"))
        conn.autocommit(True)
        rows(conn, "insert into my_auto values (4)")
        seen.append(one(other, "select count(*) from my_auto"))
        rows(other, "drop table my_auto")
        return seen


@both
def autocommit_across_clients(target):
    """Half of them with autocommit off: nobody gets another's setting, and what was not committed is not there."""
    with connect(target) as setup:
        rows(setup, "drop table if exists my_acs")
        rows(setup, "create table my_acs (id int primary key auto_increment, who int)")
        conns = [connect(target, autocommit=i % 2 == 0) for i in range(6)]
        for _ in range(3):
            for i, conn in enumerate(conns):
                assert one(conn, "select @@autocommit") == (i + 1) % 2, i
                rows(conn, "insert into my_acs (who) values (%s)", (i,))
        for conn in conns:
            conn.close()
        seen = rows(setup, "select who, count(*) from my_acs group by who order by who")
        rows(setup, "drop table my_acs")
        return seen


@both
def transactions(target):
    with connect(target) as conn:
        rows(conn, "drop table if exists my_tx")
        rows(conn, "create table my_tx (id int primary key)")
        conn.begin()
        rows(conn, "insert into my_tx values (1)")
        rows(conn, "savepoint s")
        rows(conn, "insert into my_tx values (2)")
        rows(conn, "rollback to s")
        seen = [failing(conn, "insert into my_tx values (1)")]
        conn.commit()
        seen.append(rows(conn, "select * from my_tx"))
        rows(conn, "start transaction read only")
        seen.append(failing(conn, "insert into my_tx values (5)"))
        rows(conn, "rollback")
        rows(conn, "set transaction isolation level serializable")
        conn.begin()
        seen.append(one(conn, "select count(*) from my_tx"))
        conn.rollback()
        rows(conn, "begin")
        rows(conn, "insert into my_tx values (6)")
        rows(conn, "drop table if exists my_tx_other")  # commits
        conn.rollback()
        seen.append(rows(conn, "select * from my_tx order by id"))
        rows(conn, "drop table my_tx")
        return seen


@both
def values(target):
    with connect(target) as conn:
        rows(conn, "drop table if exists my_values")
        rows(conn, "create table my_values (id int primary key auto_increment, s varchar(200) character set utf8mb4, b varbinary(300), "
                   "f double, d decimal(20,5), at datetime(6), t time(6), y year, n int null, bits bit(12), j json)")
        every = bytes(range(256))
        with conn.cursor() as cur:
            seen = [cur.execute("insert into my_values (s, b, f, d, at, t, y, bits, j) values (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
                                ("ü🜲'\"\\\0\n", every, 1.25, "12345.67891", "2024-02-29 23:59:59.123456", "-12:00:01.5", 2024,
                                 0b101010101010, '{"a": [1, null]}'))]
            seen.append(cur.lastrowid)
            cur.execute("select * from my_values")
            row = list(cur.fetchone())
            assert row[2] == every
            seen.append([str(v) for v in row])
            seen.append([d[:2] for d in cur.description])
        rows(conn, "drop table my_values")
        return seen


@both
def last_insert_id(target):
    with connect(target) as a, connect(target) as b:
        rows(a, "drop table if exists my_ids")
        rows(a, "create table my_ids (id int primary key auto_increment, v int)")
        seen = []
        for i in range(5):
            with a.cursor() as cur:
                cur.execute("insert into my_ids (v) values (%s)", (i,))
                seen.append(cur.lastrowid)
            with b.cursor() as cur:
                cur.execute("insert into my_ids (v) values (%s), (%s)", (i, i))
                seen.append([cur.lastrowid, cur.rowcount])
            seen.append([one(a, "select last_insert_id()"), one(b, "select last_insert_id()"), one(a, "SELECT LAST_INSERT_ID() + 0")])
        rows(a, "drop table my_ids")
        return seen


@both
def found_rows_and_row_count(target):
    with connect(target) as conn, connect(target) as other:
        rows(conn, "drop table if exists my_found")
        rows(conn, "create table my_found (id int)")
        seen = []
        rows(conn, "insert into my_found values (1), (2), (3), (4)")
        rows(other, "select 1")
        seen.append(one(conn, "select row_count()"))
        rows(conn, "select sql_calc_found_rows * from my_found limit 2")
        rows(other, "select 1 union select 2")
        seen.append(one(conn, "select found_rows()"))
        rows(conn, "update my_found set id = id where id > 1")
        seen.append(one(conn, "select row_count()"))
        rows(conn, "drop table my_found")
    with connect(target, client_flag=CLIENT.FOUND_ROWS) as found, connect(target) as changed:
        rows(found, "create temporary table my_flag (id int)")
        rows(found, "insert into my_flag values (1)")
        for conn in (found, changed):
            if conn is changed:
                rows(conn, "create temporary table my_flag (id int)")
                rows(conn, "insert into my_flag values (1)")
            with conn.cursor() as cur:
                seen.append(cur.execute("update my_flag set id = 1"))
    return seen


@both
def show_warnings(target):
    with connect(target) as conn, connect(target) as other:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows(conn, "set sql_mode = ''")
            rows(conn, "create temporary table my_warn (n tinyint)")
            seen = []
            for value in (300, 400):
                with conn.cursor() as cur:
                    cur.execute("insert into my_warn values (%s)", (value,))
                rows(other, "select 1")
                seen.append([list(w) for w in conn.show_warnings()])
            rows(conn, "select 1")
            seen.append([list(w) for w in conn.show_warnings()])
            failing(conn, "select * from no_such_table")
            seen.append([list(w) for w in conn.show_warnings()])
            rows(conn, "drop table if exists never_was")
            seen.append(one(conn, "show count(*) warnings"))
            return seen


@both
def user_variables(target):
    with connect(target) as a, connect(target) as b:
        rows(a, "set @mine = 'a', @n := 5")
        rows(b, "set @mine = 'b'")
        seen = []
        for _ in range(3):
            for conn in (a, b):
                seen.append(rows(conn, "select @mine, @n"))
        rows(a, "select @n := @n + 1")
        rows(a, "select 77 into @into")
        seen.append(rows(a, "select @n, @into"))
        seen.append(rows(b, "select @n, @into"))
        return seen


@both
def session_variables(target):
    with connect(target) as a, connect(target) as b:
        seen = []
        rows(a, "set sql_mode = 'ANSI_QUOTES', time_zone = '+05:00'")
        rows(a, "set session group_concat_max_len = 2048")
        rows(b, "set time_zone = '-03:00'")
        for _ in range(3):
            for conn in (a, b):
                seen.append(rows(conn, "select @@sql_mode like '%%ANSI_QUOTES%%', @@time_zone, @@group_concat_max_len = 2048"))
        rows(a, "create temporary table \"my quoted\" (\"id\" int)")
        seen.append(rows(a, 'select count(*) from "my quoted"'))
        seen.append(failing(a, "set no_such_variable = 1"))
        seen.append(failing(a, "set time_zone = 'Nowhere/Land'"))
        rows(a, "set wait_timeout = 1234")
        seen.append(one(a, "select @@wait_timeout"))
        return seen


@both
def session_state(target):
    with connect(target) as a, connect(target) as b:
        seen = []
        rows(a, "create temporary table my_mine (v varchar(10))")
        rows(a, "insert into my_mine values ('mine')")
        rows(a, "do get_lock(concat('weir', connection_id() * 0), 5)")
        rows(a, "prepare own from 'select concat(?, \"!\")'")
        rows(a, "set @x = 'prepared'")
        for _ in range(3):
            seen.append(one(a, "select v from my_mine"))
            seen.append(failing(b, "select v from my_mine"))
            seen.append(rows(a, "execute own using @x"))
            seen.append(failing(b, "execute own using @x"))
            seen.append(one(b, "select get_lock('weir0', 0)"))
        seen.append(one(a, "select release_lock('weir0')"))
        seen.append(one(b, "select get_lock('weir0', 0)"))
        seen.append(one(b, "select release_lock('weir0')"))
        rows(a, "deallocate prepare own")
        seen.append(failing(a, "execute own using @x"))
        return seen


@both
def lock_tables(target):
    with connect(target) as a, connect(target) as b:
        rows(a, "drop table if exists my_locked")
        rows(a, "create table my_locked (id int)")
        rows(a, "lock tables my_locked write")
        rows(b, "set lock_wait_timeout = 1")
        seen = [failing(b, "select * from my_locked")]
        rows(a, "insert into my_locked values (1)")
        seen.append(failing(a, "select * from app2.other_table"))
        rows(a, "unlock tables")
        seen.append(rows(b, "select * from my_locked"))
        rows(a, "drop table my_locked")
        return seen


@both
def multi_statements(target):
    with connect(target, client_flag=CLIENT.MULTI_STATEMENTS) as conn:
        seen = []
        with conn.cursor() as cur:
            cur.execute("select 1, 'a'; do 0; select 2; set @x = 3; select @x, @y; insert into app.no_such_table values (1); select 4")
            try:
                while True:
                    seen.append([list(r) for r in cur.fetchall()] if cur.description else ["ok", cur.rowcount])
                    if not cur.nextset():
                        break
            except pymysql.MySQLError as e:
                seen.append(list(e.args))
        seen.append(one(conn, "select 'after'"))
        seen.append(rows(conn, "begin; select 5; commit"))
    with connect(target) as conn:
        seen.append(failing(conn, "select 1; select 2"))
        conn._execute_command(COMMAND.COM_SET_OPTION, b"\0\0")
        conn._read_packet()
        seen.append(rows(conn, "select 6; select 7"))
        return seen


@both
def procedures(target):
    with connect(target) as conn:
        rows(conn, "drop procedure if exists my_proc")
        rows(conn, "create procedure my_proc(in a int, out b int) begin select a; set b = a * 2; select a + 1, 'second'; end")
        with conn.cursor() as cur:
            cur.callproc("my_proc", (21, 0))
            seen = []
            while True:
                seen.append([list(r) for r in cur.fetchall()])
                if not cur.nextset():
                    break
        seen.append(rows(conn, "select @_my_proc_1"))
        rows(conn, "drop procedure my_proc")
        return seen


@both
def local_infile(target):
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as f:
        f.writelines(f"{i}\t{'v' * (i % 90)}\n" for i in range(30000))
        f.flush()
        with connect(target, local_infile=True) as conn:
            rows(conn, "drop table if exists my_infile")
            rows(conn, "create table my_infile (id int, v varchar(100))")
            with conn.cursor() as cur:
                seen = [cur.execute(f"load data local infile '{f.name}' into table my_infile")]
            seen.append(rows(conn, "select count(*), sum(length(v)) from my_infile"))
            seen.append(failing(conn, "load data local infile '/no/such/file' into table my_infile")[0])
            seen.append(one(conn, "select 'still there'"))
        # A client that did not allow it is never asked for a file, whatever it or the server says.
        with connect(target) as conn:
            for words in ("local", "concurrent local"):
                # The two families have each a number of their own for it.
                assert failing(conn, f"load data {words} infile '{f.name}' into table my_infile")[0] in (3948, 4166)
        with connect(target) as conn:
            rows(conn, "drop table my_infile")
        return seen


@both
def unbuffered(target):
    with connect(target) as conn:
        seen = []
        with conn.cursor(pymysql.cursors.SSCursor) as cur:
            cur.execute("with recursive n as (select 1 i union all select i + 1 from n where i < 900) select i, repeat('u', 1000) from n")
            seen.append([cur.fetchone()[0], len(cur.fetchmany(10)), sum(r[0] for r in cur)])
        with conn.cursor(pymysql.cursors.SSDictCursor) as cur:
            cur.execute("select 1 as a, 2 as b union all select 3, 4")
            seen.append(list(cur.fetchall_unbuffered()))
        return seen


@both
def abandoned_result(target):
    """A client leaves in the middle of a large result; its server is not handed on with the rest in it."""
    for _ in range(6):
        conn = connect(target)
        cur = conn.cursor(pymysql.cursors.SSCursor)
        cur.execute("with recursive n as (select 1 i union all select i + 1 from n where i < 900) select i, repeat('u', 20000) from n")
        cur.fetchone()
        conn._force_close()
        with connect(target) as other:
            assert one(other, "select 'mine'") == "mine"
    return True


@both
def large(target):
    with connect(target, max_allowed_packet=1 << 28) as conn:
        seen = []
        limit = (1 << 24) - 1
        for size in (1, 251, 65535, 65536, limit - 10, limit - 1, limit, limit + 1, 2 * limit, 2 * limit + 5, 40_000_000):
            text = "L" * size
            with conn.cursor() as cur:
                cur.execute(f"select length('{text}')")
                assert cur.fetchone() == (size,)
            got = one(conn, f"select repeat('R', {size})")
            assert got == "R" * size, (size, len(got))
            seen.append(len(got))
        # Requests whose packet is exactly as long as a packet can be: an empty one must follow.
        for size in (limit - 1, limit, limit + 1):
            head = "select /*"
            tail = "*/ 1"
            query = head + "x" * (size - 1 - len(head) - len(tail)) + tail  # and one byte for the command
            seen.append(one(conn, query))
        return seen


@both
def wide_and_long(target):
    with connect(target) as conn:
        columns = ", ".join(f"{i} as c{i}" for i in range(900))
        seen = [rows(conn, f"select {columns}")]
        many = rows(conn, "with recursive n as (select 1 i union all select i + 1 from n where i < 1000) select i from n")
        seen.append(len(many))
        seen.append(rows(conn, "select null, '', 0 where 1 = 0"))
        return seen


@both
def connection_ids(target):
    """CONNECTION_ID() is the id of the greeting, on whatever server it is asked, and other clients have others."""
    conns = [connect(target) for _ in range(12)]
    for _ in range(3):
        for conn in conns:
            assert one(conn, "select connection_id()") == conn.thread_id()
            assert one(conn, "SELECT CONNECTION_ID() AS id") == conn.thread_id()
    assert len({c.thread_id() for c in conns}) == len(conns)
    for conn in conns:
        conn.close()
    return True


@both
def kill(target):
    """KILL QUERY and KILL by the id the client knows, reaching that client only."""
    with connect(target) as victim, connect(target) as other, connect(target) as killer:
        result = []

        def run():
            try:
                result.append(rows(victim, "select sleep(50)"))
            except pymysql.MySQLError as e:
                result.append(list(e.args))

        runner = threading.Thread(target=run)
        runner.start()

        def killed():
            rows(killer, f"kill query {victim.thread_id()}")
            runner.join(0.1)
            return not runner.is_alive()

        eventually(killed, "the sleep was cut short")
        seen = []
        # A second KILL may hit the next statement; the session itself must go on.
        seen.append(eventually(lambda: try_one(victim, "select 'victim'"), "the victim's session goes on"))
        seen.append(one(other, "select 'other'"))
        # Cut short, SLEEP() returns 1 or the statement fails with 1317.
        seen.append(result[0] in ([[1]], [1317, "Query execution was interrupted"]))
        seen.append(failing(killer, "kill 4000000000")[0])
        rows(killer, f"kill {victim.thread_id()}")

        def gone():
            try:
                one(victim, "select 1")
            except pymysql.MySQLError as e:
                return e.args[0] in (0, 2006, 2013) or "interrupted" not in str(e)
            return False

        seen.append(eventually(gone, "the killed connection is gone"))
        seen.append(one(other, "select 'other'"))
        victim._force_close()
        return seen


def try_one(conn, query):
    try:
        return one(conn, query)
    except pymysql.MySQLError:
        return None


@both
def errors(target):
    with connect(target) as conn:
        seen = []
        for query in ("select * from no_such_table", "selec 1", "select no_such_column from (select 1) t", "create table app.x (id int, id int)",
                      "signal sqlstate '45000' set message_text = 'own words', mysql_errno = 5000"):
            seen.append(failing(conn, query))
            seen.append(conn.ping())
        seen.append(one(conn, """ select "it's" ; """))
        try:
            rows(conn, "")
        except pymysql.MySQLError as e:
            seen.append(list(e.args))
        return seen


@both
def simple_commands(target):
    """Commands other than COM_QUERY."""
    with connect(target) as conn:
        seen = []
        conn.ping(reconnect=False)
        conn._execute_command(COMMAND.COM_STATISTICS, b"")
        text = conn._read_packet().get_all_data().decode()
        seen.append("Uptime" in text and "Threads" in text)
        conn._execute_command(COMMAND.COM_DEBUG, b"")
        try:
            conn._read_packet()
            seen.append("debug ok")
        except pymysql.MySQLError as e:
            seen.append(e.args[0])
        conn._execute_command(COMMAND.COM_INIT_DB, b"app2")
        conn._read_packet()
        seen.append(one(conn, "select database()"))
        conn._execute_command(0x1F, b"")  # COM_RESET_CONNECTION
        conn._read_packet()
        seen.append(one(conn, "select database()"))
        conn._execute_command(0x77, b"unknown")
        try:
            conn._read_packet()
            seen.append("taken")
        except pymysql.MySQLError as e:
            seen.append(list(e.args))
        seen.append(one(conn, "select 'after'"))
        return seen


@both
def reset_connection(target):
    with connect(target) as conn:
        rows(conn, "set @x = 5, time_zone = '+04:00'")
        rows(conn, "create temporary table my_reset (id int)")
        conn.begin()
        conn._execute_command(0x1F, b"")
        conn._read_packet()
        return [one(conn, "select @x"), one(conn, "select @@time_zone"), failing(conn, "select * from my_reset"),
                one(conn, "select database()"), rows(conn, "select @@character_set_client")]


@both
def session_ends(target):
    """What a client leaves behind is gone for the next, who may well get its server."""
    for leave in ("set @left = 'over'", "set time_zone = '+09:00'", "create temporary table my_left (id int)", "begin",
                  "do get_lock('left lock', 1)", "set autocommit = 0", "use app2", "set names latin1"):
        conn = connect(target)
        rows(conn, leave)
        conn._force_close()
        quiet = connect(target)
        rows(quiet, leave)
        quiet.close()
    seen = []
    for _ in range(12):
        with connect(target) as conn:
            seen.append(rows(conn, "select @left, @@time_zone, @@autocommit, database(), @@character_set_client"))
            seen.append(failing(conn, "select * from my_left"))
    with connect(target) as conn:
        eventually(lambda: one(conn, "select is_free_lock('left lock')"), "the lock of the gone is free")
    return seen


@both
def crowd(target):
    with connect(target) as setup:
        rows(setup, "drop table if exists my_crowd")
        rows(setup, "create table my_crowd (id int primary key, n int)")
        rows(setup, "insert into my_crowd with recursive i as (select 0 n union all select n + 1 from i where n < 29) select n, 0 from i")
        wrong = []

        def work(me):
            try:
                with connect(target, autocommit=False) as conn:
                    for turn in range(8):
                        rows(conn, "update my_crowd set n = n + 1 where id = %s", (me,))
                        got = rows(conn, "select n, %s from my_crowd where id = %s", (f"{me}/{turn}", me))
                        if got != [[turn + 1, f"{me}/{turn}"]]:
                            wrong.append((me, turn, got))
                        conn.commit()
                    rows(conn, "update my_crowd set n = -1 where id = %s", (me,))
                    conn.rollback()
            except pymysql.MySQLError as e:
                wrong.append((me, repr(e)))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(30)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong, wrong[:5]
        seen = rows(setup, "select count(*), sum(n), min(n) from my_crowd")
        rows(setup, "drop table my_crowd")
        return [[str(v) for v in r] for r in seen]

