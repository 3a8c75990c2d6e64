"""How sessions share servers, for MySQL and MariaDB: limits, pins, leavers, waiting, KILL, drain, restarts. On a server of its
own, so that every connection on it is Weir's or this suite's."""

import contextlib
import functools
import os
import signal
import struct
import threading

from weirtest.case import eventually, in_threads, weir
from weirtest.mywire import (BASIC, DEPRECATE_EOF, LOCAL_FILES, MULTI_STATEMENTS, PING, QUERY, STMT_CLOSE, STMT_EXECUTE, Closed, MyError, Wire,
                             execute_payload, text_row)
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[mariadb").split("[")[1].rstrip("]")

LOST = (Closed, ConnectionError, TimeoutError, OSError)


@functools.cache
def server():
    return PrivateServer(KIND)


def start(mode="transaction", pool_size=4, settings=(), users=(), **kw):
    return Weir.before(KIND, port=server().port, mode=mode, pool_size=pool_size, settings=settings, users=users, **kw)


@contextlib.contextmanager
def admin():
    with Wire(server().superuser()) as wire:
        yield wire


def server_connections(wire, more=""):
    """Connections of Weir's user: those of this suite itself are another's."""
    return int(wire.ask(f"select count(*) from information_schema.processlist where user = 'app' {more}")[0][0])


def reset_table(name, columns):
    with admin() as a:
        a.ask(f"drop table if exists app.{name}")
        a.ask(f"create table app.{name} ({columns})")


def twenty_queries(w, i):
    with Wire(w.target()) as wire:
        for n in range(20):
            assert wire.ask(f"select '{i} {n}'") == [[f"{i} {n}"]]


@weir
def pool_limit_is_never_exceeded(_context):
    with start(pool_size=3, settings=["workers=4"]) as w, admin() as a:
        highest, stop = [0], threading.Event()

        def watch():
            while not stop.is_set():
                highest[0] = max(highest[0], server_connections(a))

        watcher = threading.Thread(target=watch)
        watcher.start()

        def work(i):
            with Wire(w.target()) as wire:
                for turn in range(10):
                    wire.ask("begin")
                    assert wire.ask(f"select '{i}/{turn}'") == [[f"{i}/{turn}"]]
                    wire.ask("commit")

        raised = in_threads(50, work)
        stop.set()
        watcher.join()
        assert not raised, raised[:3]
        assert 0 < highest[0] <= 3, f"{highest[0]} connections at once"


@weir
def transaction_mode_shares(_context):
    with start(pool_size=2) as w, admin() as a:
        wires = [Wire(w.target()) for _ in range(40)]
        for i, wire in enumerate(wires):
            wire.ask("select 1")
            wire.ask("begin")
            wire.ask("select 2")
            wire.ask("commit")
            one = wire.prepare("select ?")
            wire.command(STMT_EXECUTE, execute_payload(one, [str(i)]))
            assert [w_ for w_, _ in wire.reply(STMT_EXECUTE)].count("row") == 1
        assert server_connections(a) <= 2
        for wire in wires:
            wire.close()
        eventually(lambda: w.metric("weir_client_connections", protocol="mysql") == 0, "the clients have gone")


@weir
def known_settings_need_no_server(_context):
    """What one worker has learnt of the greeting, all know: a login takes no server when leases fill the pool."""
    with start("session", pool_size=1, settings=["workers=4", "pool.query_wait_timeout=60"]) as w, Wire(w.target()) as holder:
        assert holder.ask("select 'mine'") == [["mine"]]
        wires = [Wire(w.target()) for _ in range(12)]
        w.reaches("weir_waiting_clients", 0, protocol="mysql")
        for wire in wires:
            wire.close()


@weir
def session_mode_keeps(_context):
    with start("session", pool_size=2) as w:
        one, two = Wire(w.target()), Wire(w.target())
        one.ask("set @mine = 1")
        two.ask("set @mine = 2")
        for _ in range(3):
            assert one.ask("select @mine") == [["1"]]
            assert two.ask("select @mine") == [["2"]]
        third = Wire(w.target())
        third.command(QUERY, "select @mine")  # waits
        one.close()
        assert [text_row(p) for k, p in third.reply() if k == "row"] == [[None]], "the next client found the last one's variable"
        two.close()
        third.close()


PINS = {
    "temporary_table": (["create temporary table pinned (i int)"], "select count(*) from pinned", [["0"]]),
    "session_lock": (["select get_lock('pinned', 0)"], "select is_used_lock('pinned') is not null", [["1"]]),
    "user_variable": (["set @pinned = 'mine'"], "select @pinned", [["mine"]]),
    "user_variable_in_select": (["select @pinned := 'mine'"], "select @pinned", [["mine"]]),
    "into_variable": (["select 'mine' into @pinned"], "select @pinned", [["mine"]]),
    "sql_prepare": (["prepare pinned from 'select 7'"], "execute pinned", [["7"]]),
    "setting": (["set session group_concat_max_len = 2222"], "select @@group_concat_max_len", [["2222"]]),
    "autocommit": (["set autocommit = 0"], "select @@autocommit", [["0"]]),
    "names": (["set names latin1"], "select @@character_set_client", [["latin1"]]),
    "use": (["use app2"], "select database()", [["app2"]]),
    "last_insert_id": (["insert into ids values ()"], "select last_insert_id() > 0", [["1"]]),
}


@weir
def session_state_gives_right_answers_and_ends(_context):
    reset_table("ids", "id int primary key auto_increment")
    for name, (causes, check, expected) in PINS.items():
        with start(pool_size=3) as w:
            stop = threading.Event()

            def hammer(w=w, stop=stop):
                with Wire(w.target()) as other:
                    while not stop.is_set():
                        other.ask("select 1")

            others = [threading.Thread(target=hammer) for _ in range(4)]
            for t in others:
                t.start()
            try:
                wire = Wire(w.target())
                for cause in causes:
                    wire.ask(cause)
                for _ in range(20):
                    got = wire.ask(check)
                    assert got == expected, f"{name}: {got}"
                wire.close()
            finally:
                stop.set()
                for t in others:
                    t.join()
            eventually(lambda w=w: w.metric("weir_pinned_servers", protocol="mysql") == 0, f"{name}: the pin has ended")
            wires = [Wire(w.target()) for _ in range(3)]
            for wire in wires:
                wire.ask("begin")
                wire.ask("select 1")
            for wire in wires:
                with contextlib.suppress(MyError):
                    got = wire.ask(check)
                    assert got != expected, f"{name}: the next client found it"
                wire.ask("rollback")
            for wire in wires:
                wire.close()


def both_are_open(w):
    """Two servers are there and free, so that nobody has to wait for their logins."""
    def open_now():
        # Also the first login may wait too long for its server.
        with contextlib.suppress(MyError), Wire(w.target()) as wire:
            wire.ask("select 1")
        return w.metric("weir_server_connections", protocol="mysql", state="idle") == 2

    eventually(open_now, "both servers are open")


@weir
def pinned_clients_fill_the_pool(_context):
    with start(pool_size=2, settings=["pool.min_pool_size=2", "pool.query_wait_timeout=1"]) as w:
        both_are_open(w)
        holders = [Wire(w.target()) for _ in range(2)]
        for wire in holders:
            wire.ask("begin")
            wire.ask("select 1")
        waiting = Wire(w.target())
        try:
            got = waiting.ask("select 'late'")
        except MyError as e:
            got = e.code
        assert got == 1040, f"query_wait_timeout gave {got}"
        eventually(lambda: w.metric("weir_faults", kind="query_wait_timeout", protocol="mysql") >= 1, "weir_faults >= 1")
        holders[0].ask("commit")
        with Wire(w.target()) as again:
            assert again.ask("select 'served'") == [["served"]]
        assert holders[1].ask("select 'still mine'") == [["still mine"]]
        for wire in [*holders, waiting]:
            wire.close()


@weir
def waiters_are_served_in_order(_context):
    reset_table("turns", "id int primary key auto_increment, who int")
    with start(pool_size=1, settings=["workers=1"]) as w:
        holder = Wire(w.target())
        holder.ask("begin")
        holder.ask("select 1")
        waiters = []
        for i in range(10):
            wire = Wire(w.target())
            wire.command(QUERY, f"insert into turns (who) values ({i})")
            waiters.append(wire)
            eventually(lambda n=i + 1: w.metric("weir_waiting_clients", protocol="mysql") == n, f"client {i} waits")
        holder.ask("commit")
        for wire in waiters:
            assert wire.reply()[-1][0] == "ok"
        got = [int(r[0]) for r in holder.ask("select who from turns order by id")]
        assert got == list(range(10)), got
        for wire in [holder, *waiters]:
            wire.close()


@weir
def one_server_for_many_workers(_context):
    with start(pool_size=1, settings=["workers=4"]) as w:
        raised = in_threads(20, lambda i: twenty_queries(w, i))
        assert not raised, raised[:3]
        with admin() as a:
            assert server_connections(a) == 1


@weir
def vanished_transaction_is_rolled_back(_context):
    reset_table("vanish", "id int primary key, v int")
    with admin() as a:
        a.ask("insert into app.vanish values (1, 0)")
    for leave in ("reset", "fin", "quit"):
        with start(pool_size=1) as w:
            wire = Wire(w.target())
            wire.ask("begin")
            wire.ask("update vanish set v = 99 where id = 1")
            if leave == "reset":
                wire.vanish()
            else:
                wire.close(politely=leave == "quit")
            with Wire(w.target()) as other:
                assert other.ask("select v from vanish where id = 1 for update") == [["0"]]


@weir
def half_a_file_is_not_loaded(_context):
    """A client that goes in the middle of its LOCAL file leaves no row of it, as without Weir."""
    reset_table("halves", "i int, note varchar(200)")
    with start(pool_size=1) as w:
        # Between two packets, and in the middle of one.
        for begun in (b"", b"\0\x10\0\x03partial"):
            wire = Wire(w.target(), BASIC | LOCAL_FILES)
            wire.command(QUERY, "load data local infile 'any' into table halves")
            assert wire.read()[:1] == b"\xfb"
            wire.send_next(b"1\tone\n2\ttwo\n")
            wire.sock.sendall(begun)
            eventually(lambda: w.metric("weir_server_sent_bytes", protocol="mysql") > 0, "it has begun")
            wire.vanish()
            with Wire(w.target()) as other:
                assert other.ask("select count(*) from halves") == [["0"]]


@weir
def vanished_query_is_ended(_context):
    with start(pool_size=1) as w, admin() as a:
        wire = Wire(w.target())
        wire.command(QUERY, "select sleep(300)")
        running = "and info like '%sleep(300)%'"
        eventually(lambda: server_connections(a, running) == 1, "the query runs")
        wire.vanish()
        eventually(lambda: server_connections(a, running) == 0, "the query has been ended", 30)
        with Wire(w.target()) as other:
            assert other.ask("select 'served'") == [["served"]]


@weir
def vanish_anywhere(_context):
    reset_table("anywhere", "id int primary key, v longtext")
    big = "x" * 200000

    def scripts(wire):
        one = wire.prepare("insert into anywhere values (?, 'y')")
        yield wire.packet(bytes([QUERY]) + b"begin") + wire.packet(bytes([QUERY]) + b"insert into anywhere values (1, 'x')")
        yield wire.packet(bytes([STMT_EXECUTE]) + execute_payload(one, ["2"]))[:-1]
        yield wire.packet(bytes([QUERY]) + f"select '{big}' union all select '{big}'".encode())
        yield wire.packet(bytes([QUERY]) + b"create temporary table left_over (i int)") + wire.packet(bytes([QUERY]) + b"set @left = 1")
        yield wire.packet(bytes([QUERY]) + b"load data local infile 'x' into table anywhere")
        yield wire.packet(bytes([QUERY]) + b"select 1; select sleep(0.2); select 2")

    with start(pool_size=3) as w:
        count = 6
        for which in range(count):
            length = None
            for part in (0.05, 0.3, 0.6, 0.99, 1):
                wire = Wire(w.target(), BASIC | LOCAL_FILES | MULTI_STATEMENTS)
                script = list(scripts(wire))[which]
                length = len(script)
                wire.send(script[:max(1, int(length * part))])
                wire.vanish()
        wires = [Wire(w.target()) for _ in range(3)]
        for wire in wires:
            wire.ask("begin")
            wire.ask("select 1")
        for wire in wires:
            assert wire.ask("select @left, @@autocommit, database()") == [[None, "1", "app"]]
            with contextlib.suppress(MyError):
                wire.ask("select * from left_over")
                raise AssertionError("another client's temporary table")
            wire.ask("rollback")
        assert wires[0].ask("select count(*) from anywhere where id = 1") == [["0"]], "an unfinished transaction was committed"
        for wire in wires:
            wire.close()


@weir
def kill_reaches_its_own_client_only(_context):
    with start(pool_size=3) as w:
        victim = Wire(w.target())
        stop = threading.Event()
        hit = []

        def storm():
            with Wire(w.target()) as killer:
                while not stop.is_set():
                    killer.ask(f"kill query {victim.thread_id}")

        def victims_work():
            while not stop.is_set():
                try:
                    got = victim.ask("select sleep(0.05)")
                    if got == [["1"]]:
                        hit.append(1)
                except MyError as e:
                    assert e.code == 1317, str(e)
                    hit.append(1)

        def bystander(i):
            with Wire(w.target()) as wire:
                for n in range(100):
                    assert wire.ask(f"select '{i}.{n}', sleep(0.002)") == [[f"{i}.{n}", "0"]], "a bystander was hit"

        others = [threading.Thread(target=f) for f in (storm, victims_work)]
        for t in others:
            t.start()
        raised = in_threads(6, bystander)
        eventually(lambda: hit, "the victim was hit")
        stop.set()
        for t in others:
            t.join()
        assert not raised, raised[:3]
        victim.close()


@weir
def warnings_are_those_of_the_clients_own_read(_context):
    """Reads that warn and reads that fail, of many clients on one server that they share: SHOW WARNINGS tells each about its own."""
    with start(pool_size=1) as w:
        def work(i):
            with Wire(w.target()) as wire:
                for n in range(60):
                    own = f"x{i}y{n}"
                    if (i + n) % 2:
                        assert wire.ask(f"select cast('{own}' as signed)") == [["0"]]
                    else:
                        try:
                            wire.ask(f"select {own}")
                            raise AssertionError("no such column")
                        except MyError as e:
                            assert e.code == 1054 and own in str(e), str(e)
                    for _ in range(n % 3):
                        seen = wire.ask("show warnings")
                        assert len(seen) == 1 and own in seen[0][2], (own, seen)
                    # On MariaDB a statement without a table leaves the warnings of the one before it.
                    wire.ask(f"select '{own}' from (select 1) t")
                    assert wire.ask("show warnings") == [], own

        raised = in_threads(12, work)
        assert not raised, raised[:3]
        eventually(lambda: w.metric("weir_shared_requests", protocol="mysql") > 0, "weir_shared_requests > 0")


@weir
def drain_lets_transactions_end(_context):
    reset_table("drained", "id int")
    w = start(pool_size=4)
    idle, busy, running = (Wire(w.target()) for _ in range(3))
    idle.ask("select 1")
    busy.ask("begin")
    busy.ask("insert into drained values (1)")
    running.command(QUERY, "select sleep(1), 'ran to its end'")
    with admin() as a:
        eventually(lambda: server_connections(a, "and info like '%ran to its end%'") == 1, "the query runs")
    w.signal(signal.SIGTERM)
    idle.closed_by_peer()

    def refused():
        try:
            Wire(w.target()).close()
        except (MyError, *LOST):
            return True
        return False

    eventually(refused, "new clients are not let in")
    assert w.alive(), "Weir did not wait for its transactions"
    busy.ask("insert into drained values (2)")
    busy.ask("commit")
    assert [text_row(p)[1] for k, p in running.reply() if k == "row"] == ["ran to its end"]
    busy.closed_by_peer()
    running.closed_by_peer()
    assert w.wait() == 0
    w.ended = True
    w.check_log()
    with admin() as a:
        assert a.ask("select count(*) from app.drained") == [["2"]]


def codes(wire):
    """The errors among the last words of a connection that is closed."""
    data, found = wire.closed_by_peer(), []
    while data:
        length = int.from_bytes(data[:3], "little")
        payload, data = data[4:4 + length], data[4 + length:]
        found += [int.from_bytes(payload[1:3], "little")] if payload[:1] == b"\xff" else []
    return found


# mysqld refuses its own old port now and then when it is started again at once; MariaDB shows what Weir does.
@weir(only="mariadb")
def server_restart(_context):
    """Every session that had something under way is closed. Who comes meanwhile waits, and is answered by the server that is back."""
    for crash in (False, True):
        with start(pool_size=3, settings=["pool.server_login_retry=0.2"]) as w:
            idle, busy, running = (Wire(w.target()) for _ in range(3))
            idle.ask("select 1")
            busy.ask("begin")
            busy.ask("select 1")
            running.command(QUERY, "select sleep(100)")
            with admin() as a:
                eventually(lambda a=a: server_connections(a, "and info like '%sleep(100)%'") == 1, "the query runs")
            server().stop(crash)
            for wire in (running, busy):
                said = codes(wire)
                # Its own words where it had time for them; else the end of the connection, as from the server itself.
                assert said in ([], [1053], [1927]), (crash, said)
            assert w.alive()
            early = Wire(w.target())
            early.command(QUERY, "select 'early'")
            server().start()
            assert [p for k, p in early.reply() if k == "row"] == [b"\x05early"], "who has waited is answered"
            assert idle.ask("select 'idle'") == [["idle"]], "who had nothing under way goes on"
            for wire in (idle, early):
                wire.close()
            for wire in (busy, running):
                wire.close(politely=False)


@weir
def a_kill_that_another_weir_gets_hits_nobody(_context):
    """A load balancer may take it there. Each process draws the numbers of its clients for itself."""
    with start() as one, start() as other, contextlib.ExitStack() as held:
        here = [held.enter_context(Wire(one.target())) for _ in range(8)]
        there = [held.enter_context(Wire(other.target())) for _ in range(8)]
        assert not {wire.thread_id for wire in here} & {wire.thread_id for wire in there}
        for wire in there:
            wire.command(QUERY, "select sleep(1), connection_id()")
        with Wire(other.target()) as killer:
            for wire in here:
                for what in ("kill query", "kill"):
                    try:
                        killer.ask(f"{what} {wire.thread_id}")
                        raise AssertionError(f"{what} has found somebody")
                    except MyError as e:
                        assert e.code == 1094, e
        for wire in there:
            rows = [text_row(payload) for what, payload in wire.reply() if what == "row"]
            assert rows == [["0", str(wire.thread_id)]], rows


@weir
def killed_connections(_context):
    """An operator ends Weir's idle connections on the server: the next clients never notice."""
    with start(pool_size=3) as w, admin() as a:
        assert not in_threads(10, lambda i: twenty_queries(w, i))
        for _ in range(4):
            def all_ended():
                for (number,) in a.ask("select id from information_schema.processlist where user = 'app'"):
                    with contextlib.suppress(MyError):
                        a.ask(f"kill {number}")
                return server_connections(a) == 0 and w.metric("weir_server_connections", protocol="mysql") == 0

            eventually(all_ended, "they have ended")
            with Wire(w.target()) as wire:
                assert wire.ask("select 'fine'") == [["fine"]]


@weir
def prepared_statements_are_bounded(_context):
    with start(pool_size=1, settings=["pool.max_prepared_statements=10"]) as w, Wire(w.target()) as wire, admin() as a:
        before = prepared_count(a)
        ids = [wire.prepare(f"select {i}, ?") for i in range(50)]
        for i in [*range(50), *range(49, -1, -7)]:
            wire.command(STMT_EXECUTE, execute_payload(ids[i], ["x"]))
            got = [p for k, p in wire.reply(STMT_EXECUTE) if k == "row"]
            assert len(got) == 1 and got[0].endswith(b"\x01x"), (i, got)
        assert prepared_count(a) - before <= 11, f"{prepared_count(a) - before} statements are prepared on the server"
        for i in ids:
            wire.command(STMT_CLOSE, struct.pack("<I", i))
        wire.command(PING)
        wire.reply(PING)


def prepared_count(a):
    return int(a.ask("show global status like 'Prepared_stmt_count'")[0][1])


@weir
def a_long_request_waits_for_what_goes_ahead_of_it(_context):
    """A request of 40 MB whose server does not answer yet to what must be set in front of it: it is neither refused nor gathered."""
    with start(pool_size=1, settings=["workers=1"]) as w, Wire(w.target()) as other, Wire(w.target()) as wire:
        wire.ask("set time_zone = '+03:00'")
        other.ask("select 1")
        before = w.rss_kb()
        received = lambda: w.metric("weir_client_received_bytes", protocol="mysql")  # noqa: E731
        os.kill(int(server().env["PID"]), signal.SIGSTOP)
        try:
            sql = f"select @@time_zone, length('{'x' * 40_000_000}')"
            sender = threading.Thread(target=wire.command, args=(QUERY, sql))
            begun, last = received(), [0]
            sender.start()

            def stands_still():
                now, last[0] = last[0], received()
                return now == last[0] > begun

            eventually(stands_still, "Weir reads no more of it", pause_s=0.3)
            grown = w.rss_kb() - before
        finally:
            os.kill(int(server().env["PID"]), signal.SIGCONT)
        got = [text_row(p) for k, p in wire.reply() if k == "row"]
        sender.join()
        assert got == [["+03:00", "40000000"]], got
        assert grown < 4096, f"memory grew by {grown} kB"


@weir
def parameter_types_are_each_clients_own(_context):
    """MySQL settles a statement's types at its first execution: a statement shared by clients must not carry one's types to
    another's answer."""
    with start(pool_size=1) as w:
        numbers, texts = Wire(w.target()), Wire(w.target())
        for _ in range(3):
            a, b = numbers.prepare("select ? as v"), texts.prepare("select ? as v")
            numbers.command(STMT_EXECUTE, struct.pack("<IBI", a, 0, 1) + b"\0\x01\x05\x00" + struct.pack("<d", 1.5))
            got = [p for k, p in numbers.reply(STMT_EXECUTE) if k == "row"]
            assert got == [b"\0\0" + struct.pack("<d", 1.5)], got
            texts.command(STMT_EXECUTE, execute_payload(b, ["again"]))
            got = [p for k, p in texts.reply(STMT_EXECUTE) if k == "row"]
            assert got == [b"\0\0\x05again"], got
            numbers.command(STMT_CLOSE, struct.pack("<I", a))
            texts.command(STMT_CLOSE, struct.pack("<I", b))
        numbers.close()
        texts.close()


@weir
def same_text_in_another_schema(_context):
    with admin() as a:
        for schema in ("app", "app2"):
            a.ask(f"drop table if exists {schema}.same")
            a.ask(f"create table {schema}.same as select '{schema}' as v")
    with start(pool_size=1) as w:
        wires = {s: Wire(w.target().within(s)) for s in ("app", "app2")}
        for _ in range(3):
            for schema, wire in wires.items():
                one = wire.prepare("select v from same")
                wire.command(STMT_EXECUTE, execute_payload(one))
                got = [p for k, p in wire.reply(STMT_EXECUTE) if k == "row"]
                assert got[0].endswith(schema.encode()), (schema, got)
        for wire in wires.values():
            wire.close()


@weir
def too_many_clients(_context):
    with start(pool_size=2, settings=["limits.max_client_conn=20"]) as w:
        wires, refused = [], []
        for _ in range(30):
            try:
                wires.append(Wire(w.target()))
            except MyError as e:
                refused.append(e.code)
            except LOST:
                refused.append("closed")
        assert len(wires) == 20, f"{len(wires)} were let in"
        assert set(refused) == {1040}, refused
        for wire in wires:
            assert wire.ask("select 1") == [["1"]]
            wire.close()
        eventually(lambda: w.metric("weir_client_connections", protocol="mysql") == 0, "they have gone")
        with Wire(w.target()) as wire:
            assert wire.ask("select 1") == [["1"]]


@weir
def timeouts(_context):
    cases = [
        ("limits.client_idle_timeout", ["select 1"]),
        ("pool.idle_transaction_timeout", ["begin", "select 1"]),
        ("pool.transaction_timeout", ["begin", "select 1"]),
    ]
    for setting, statements in cases:
        with start(pool_size=2, settings=[f"{setting}=0.3"]) as w:
            wire = Wire(w.target())
            for sql in statements:
                wire.ask(sql)
            wire.closed_by_peer()
            with Wire(w.target()) as wire:
                assert wire.ask("select 1") == [["1"]]
    with start(pool_size=2, settings=["pool.query_timeout=0.3"]) as w, admin() as a:
        wire = Wire(w.target())
        wire.command(QUERY, "select sleep(100)")
        with contextlib.suppress(*LOST):
            got = wire.reply()
            assert got[-1][0] == "err", got
        eventually(lambda: server_connections(a, "and info like '%sleep(100)%'") == 0, "the query does not run on")


@weir
def what_runs_when_the_transaction_took_too_long_commits_nothing(_context):
    """The COMMIT stands in the same request as what takes too long; the client is told that its transaction is over."""
    with start(pool_size=2, settings=["pool.transaction_timeout=0.5", "pool.cancel_wait_timeout=100"]) as w, admin() as a:
        for name in ("too_long", "held"):
            a.ask(f"drop table if exists app.{name}")
            a.ask(f"create table app.{name} (i int)")
        a.ask("insert into app.held values (1)")
        a.ask("begin")
        a.ask("select i from app.held for update")
        wire = Wire(w.target(), capabilities=BASIC | MULTI_STATEMENTS)
        wire.ask("begin")
        wire.ask("insert into app.too_long values (1)")
        # A sleep that is killed has only slept less.
        wire.command(QUERY, "update app.held set i = 2; commit")
        wire.closed_by_peer()
        eventually(lambda: server_connections(a, "and info like 'update app.held%'") == 0, "it does not run on")
        a.ask("commit")
        eventually(lambda: server_connections(a, "and command <> 'Sleep'") == 0, "nor what stands behind it")
        assert a.ask("select count(*) from app.too_long") == [["0"]]


@weir
def login_timeout(_context):
    with start(settings=["limits.client_login_timeout=0.3"]) as w:
        silent, half = Wire(w.target(), login=False), Wire(w.target(), login=False)
        half.send(b"\x50\0\0\x01\0\0")
        for wire in (silent, half):
            wire.closed_by_peer()
            wire.close(politely=False)
        with Wire(w.target()) as wire:
            assert wire.ask("select 1") == [["1"]]


@weir
def users_have_pools_of_their_own(_context):
    with start(pool_size=2, users=["app_other"]) as w:
        users = ["app", "app_other"]

        def work(i):
            with Wire(w.target().login(users[i % 2])) as wire:
                for _ in range(10):
                    assert wire.ask("select substring_index(current_user(), '@', 1)") == [[users[i % 2]]]

        raised = in_threads(16, work)
        assert not raised, raised[:3]


@weir
def a_flood_of_connects(_context):
    with start(pool_size=4) as w:
        def work(i):
            for _ in range(3):
                with Wire(w.target()) as wire:
                    assert wire.ask(f"select '{i}'") == [[str(i)]]

        raised = in_threads(150, work)
        assert not raised, raised[:3]


@weir
def no_password(_context):
    """An account without a password, by a URL without one: let in without, from this machine, and not with one."""
    with Weir(KIND, [f"mysql://app_nopass@127.0.0.1:{server().port}"]) as w:
        with Wire(w.target(user="app_nopass", password="")) as wire:
            assert wire.ask("select 1") == [["1"]]
        try:
            Wire(w.target(user="app_nopass", password="something")).close()
            raise AssertionError("let in")
        except MyError as e:
            assert e.code == 1045, str(e)


@weir
def old_and_new_clients_share(_context):
    """Clients of different capabilities take turns on one server."""
    with start(pool_size=1) as w:
        wires = [Wire(w.target(), BASIC | flags) for flags in (0, DEPRECATE_EOF, MULTI_STATEMENTS, LOCAL_FILES) * 3]
        for n in range(5):
            for i, wire in enumerate(wires):
                assert wire.ask(f"select '{i}.{n}'") == [[f"{i}.{n}"]]
        for wire in wires:
            wire.close()


@weir
def big_answers_in_little_memory(_context):
    """A result of 150 MB in rows of 15 MB, a row of 60 MB and LOAD DATA LOCAL of 100 MB, with Weir's memory growing by less than 4 MB."""
    reset_table("big_in", "v longtext")
    with start(pool_size=2) as w, Wire(w.target(), BASIC | LOCAL_FILES) as warm:
        warm.ask("select repeat('w', 1000000)")
        before = w.rss_kb()
        highest, stop = [0], threading.Event()

        def watch():
            while not stop.wait(0.02):
                highest[0] = max(highest[0], w.rss_kb())

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for sql, least in (("select repeat('r', 60000000)", 60_000_000),
                               ("with recursive n as (select 1 i union all select i + 1 from n where i < 10) select repeat('s', 15000000) from n", 150_000_000)):
                warm.command(QUERY, sql)
                assert sum(len(p) for _, p in warm.reply()) > least
            warm.command(QUERY, "load data local infile 'big' into table big_in")
            assert warm.reply()[-1][0] == "infile"
            line = b"i" * 99_999 + b"\n"
            for _ in range(100):
                warm.send_next(line * 10)
            warm.send_next(b"")
            assert warm.reply()[-1][0] == "ok"
            assert warm.ask("select count(*), sum(length(v)) from big_in") == [["1000", str(1000 * 99_999)]]
        finally:
            stop.set()
            watcher.join()
        grown = highest[0] - before
        assert grown < 4096, f"memory grew by {grown} kB"
