"""Pinned clients of MySQL and MariaDB and the others: servers beyond the pool's size (pinned_pool_size), what the log says, what the
operator decides. On a server of its own, so that every connection on it is Weir's or this suite's."""

import contextlib
import functools
import os
import threading

from weirtest import pinning
from weirtest.case import eventually, in_threads, weir
from weirtest.mywire import MULTI_STATEMENTS, BASIC, QUERY, STMT_EXECUTE, Closed, MyError, Wire, execute_payload
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[mariadb").split("[")[1].rstrip("]")

LOST = (Closed, ConnectionError, OSError)
LOCK, UNLOCK = "select get_lock('l{}', 0)", "select release_lock('l{}')"
TABLE, DROP = "create temporary table t{} (i int)", "drop table t{}"


@functools.cache
def server():
    return PrivateServer(KIND)


def start(size=2, pinned=0, settings=(), **kw):
    settings = [f"pool.pinned_pool_size={pinned}", *settings]
    return Weir.before(KIND, port=server().port, pool_size=size, settings=settings, **kw)


@contextlib.contextmanager
def admin():
    with Wire(server().superuser()) as wire:
        yield wire


def connections(a):
    return int(a.ask("select count(*) from information_schema.processlist where user = 'app'")[0][0])


def sampled():
    return pinning.sampled(admin, connections)


def pinned(w):
    return w.metric("weir_pinned_servers", protocol="mysql")


def outside(w):
    return w.metric("weir_pinned_pool_servers", protocol="mysql")


def pin(w, number, how=LOCK):
    wire = Wire(w.target())
    wire.ask(how.format(number))
    return wire


def others_at_work(w, count=4):
    with admin() as a:
        a.ask("create table if not exists app.worked (i int)")
    return pinning.Others(w, Wire, "select {}, count(*) from app.worked for update", "0", count)


@weir
def pinned_clients_starve_nobody(_context):
    """Six clients pin a pool of two, with room for six: the others are served, the database sees eight connections at most, and in the
    end two."""
    for workers, how, free in ((1, LOCK, UNLOCK), (2, TABLE, DROP)):
        with start(2, 6, settings=[f"workers={workers}"]) as w, sampled() as most, admin() as a, others_at_work(w) as others:
            barrier, wires = threading.Barrier(6), [None] * 6

            def work(i, w=w, how=how, barrier=barrier, wires=wires):
                barrier.wait()
                wires[i] = pin(w, i, how)

            assert not in_threads(6, work)
            eventually(lambda w=w: (pinned(w), outside(w)) == (6, 6), "all six are outside")
            others.all_go_on()
            for i, wire in enumerate(wires):
                wire.ask(free.format(i))
            eventually(lambda w=w: (pinned(w), outside(w)) == (0, 0), "no pin is left")
            others.all_go_on()
            eventually(lambda a=a: connections(a) <= 2, "the pool has its size again")
            for wire in wires:
                assert wire.ask("select 'still here'") == [["still here"]]
                wire.close()
        assert 6 < most[0] <= 8, f"{most[0]} connections at once"


@weir
def pinned_clients_that_leave_give_their_places_back(_context):
    """By a goodbye, by silence, in a transaction; and whose server is lost."""
    with start(2, 4, settings=["workers=2"]) as w, sampled() as most, admin() as a, others_at_work(w) as others:
        wires = [pin(w, i) for i in range(4)]
        eventually(lambda: outside(w) == 4, "all are outside")
        wires[0].close()
        wires[1].vanish()
        wires[2].ask("begin")
        wires[2].ask("select count(*) from app.worked")
        wires[2].vanish()
        number = a.ask("select is_used_lock('l3')")[0][0]
        a.ask(f"kill {number}")
        try:
            wires[3].ask("select 1")
            raise AssertionError("the server was lost, and nobody said so")
        except (MyError, *LOST) as e:
            assert not isinstance(e, MyError) or e.code in (1053, 1152, 1158, 1159, 1160, 1161, 1927, 4031), e.code
        eventually(lambda: (pinned(w), outside(w)) == (0, 0), "no pin is left")
        for i in range(4):
            eventually(lambda i=i: a.ask(f"select is_free_lock('l{i}')") == [["1"]], "the lock is free")
        others.all_go_on()
        eventually(lambda: connections(a) <= 2, "the pool has its size again")
    assert most[0] <= 6, most


@weir
def an_allowance_that_is_used_up_leaves_all_as_it_was(_context):
    with start(1, 1, settings=["pool.query_wait_timeout=1"]) as w, sampled() as most:
        wires = [pin(w, i) for i in range(2)]
        eventually(lambda: (pinned(w), outside(w)) == (2, 1), "one is outside, one inside")
        try:
            with Wire(w.target()) as late:
                late.ask("select count(*) from information_schema.tables for update")
            raise AssertionError("served by a third connection")
        except (MyError, *LOST) as e:
            assert not isinstance(e, MyError) or e.code == 1040, e.code
        wires.pop().close()
        with Wire(w.target()) as late:
            assert late.ask("select 'served'") == [["served"]]
        for wire in wires:
            wire.close()
    assert most[0] == 2, most


@weir
def who_pins_while_others_wait_is_in_the_log(_context):
    says = "client keeps its server because of a pin while others wait"
    with start(1, settings=["log.log_pins_after=1", "pool.query_wait_timeout=60"]) as w:
        wire = pin(w, "secret")
        eventually(lambda: pinned(w) == 1, "it is pinned")
        raised = []

        def late():
            def work(_i):
                with Wire(w.target()) as late:
                    assert late.ask("select 'late'") == [["late"]]

            raised.extend(in_threads(1, work))

        waits = threading.Thread(target=late)
        waits.start()
        line = eventually(lambda: next((line for line in w.log().splitlines() if says in line), None), "a line in the log")
        for part in ("WARN", 'user="app"', "address=127.0.0.1", 'reasons="session_lock"', "held_s=", 'statement="select get_lock(?,'):
            assert part in line, f"{part} is missing: {line}"
        assert "secret" not in line, line
        wire.ask(UNLOCK.format("secret"))
        waits.join(30)
        assert not waits.is_alive() and not raised, raised
        wire.close()


REFUSED = {
    "session_lock": ["select get_lock('refused', 0)", "lock tables app.written write"],
    "temporary_table": ["create temporary table refused (i int)"],
    "sql_prepare": ["prepare refused from 'select 1'"],
    "cursor": ["handler app.written open"],
}


def refused(ask):
    try:
        got = ask()
    except MyError as e:
        assert e.code == 1235 and "42000" in str(e), e
        return str(e)
    raise AssertionError(f"it was not refused: {got}")


@weir
def what_would_pin_is_refused_before_the_server_sees_it(_context):
    """As text, alone and in a transaction, which goes on as after any error of a statement; prepared; among other statements."""
    with start(2, settings=[f"pins.{reason}=error" for reason in REFUSED]) as w, admin() as a:
        a.ask("drop table if exists app.written")
        a.ask("create table app.written (i int)")
        with Wire(w.target(), BASIC | MULTI_STATEMENTS) as wire:
            for reason, texts in REFUSED.items():
                for text in texts:
                    said = refused(lambda text=text: wire.ask(text))
                    assert f"pins.{reason} = error" in said, said
                    assert wire.ask("select 'usable'") == [["usable"]]
                    wire.ask("begin")
                    wire.ask("insert into app.written values (2)")
                    refused(lambda text=text: wire.ask(text))
                    assert wire.ask("select i from app.written") == [["2"]], "the transaction goes on"
                    wire.ask("rollback")
                    assert wire.ask("select count(*) from app.written") == [["0"]]
                    wire.command(QUERY, f"insert into app.written values (1); {text}")
                    got = wire.reply()
                    assert [what for what, _ in got] == ["err"], got
                    assert wire.ask("select count(*) from app.written") == [["0"]], "nothing of such a text runs"
            statement = wire.prepare("select get_lock(?, 0)")
            for _ in range(2):
                wire.command(STMT_EXECUTE, execute_payload(statement, ["refused"]))
                (what, payload), = wire.reply(STMT_EXECUTE)
                assert what == "err" and MyError(payload).code == 1235, payload
            assert wire.ask("select 'usable'") == [["usable"]]
            assert pinned(w) == 0, "its client keeps no server"
            counted = [k for k, v in w.metrics().items() if k.startswith("weir_pins_total") and v > 0]
            assert not counted, counted
        assert a.ask("select is_free_lock('refused')") == [["1"]]


@weir
def a_refused_statement_is_not_taken_to_have_brought_its_clients_settings(_context):
    """No server has seen it: the next one of its client finds the server in another client's state, and brings its own."""
    with start(1, settings=["pins.session_lock=error"]) as w, Wire(w.target()) as one, Wire(w.target()) as other:
        one.ask("set time_zone = '+05:00'")
        assert other.ask("select cast(from_unixtime(0) as char) = '1970-01-01 05:00:00'") == [["0"]]
        refused(lambda: one.ask("select get_lock('refused', 0)"))
        assert one.ask("select cast(from_unixtime(0) as char)") == [["1970-01-01 05:00:00"]]
        assert other.ask("select cast(from_unixtime(0) as char) = '1970-01-01 05:00:00'") == [["0"]]


@weir
def what_is_passed_is_told_and_pins(_context):
    """What PgBouncer leaves behind is nothing that users of MySQL know."""
    with start(1, settings=["pins.session_lock=pass"]) as w:
        with pin(w, 5):
            eventually(lambda: pinned(w) == 1, "it pins")
            eventually(lambda: "client is pinned: it keeps its server beyond the transaction" in w.log(), "it is told")
