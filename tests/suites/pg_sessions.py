"""How sessions share servers: limits, pins, leavers, waiting, cancel, drain, restarts. On a PostgreSQL of its own, so that every
connection on it is Weir's or this suite's."""

import contextlib
import functools
import signal
import socket
import tempfile
import threading
import time

from weirtest.case import eventually, in_threads, weir
from weirtest.pgwire import (Closed, LoginRefused, ServerError, Wire, bind, cancel_request, describe, execute, fields, message, parse,
                             plain, query, row, FLUSH, SYNC)
from weirtest.private import PrivateServer
from weirtest.weir import PASSWORD, Weir

SERVERS = ["postgres"]

LOST = (Closed, ConnectionError, TimeoutError, OSError)


@functools.cache
def server():
    return PrivateServer("postgres")


def start(mode="transaction", pool_size=4, settings=(), users=(), **kw):
    return Weir.before("postgres", port=server().port, mode=mode, pool_size=pool_size, settings=settings, users=users, **kw)


@contextlib.contextmanager
def admin():
    with Wire(server().superuser()) as wire:
        yield wire


ON_SERVER = "select {} from pg_stat_activity where backend_type = 'client backend' and usename like 'app%' "


def server_connections(wire, more=""):
    return int(wire.ask(ON_SERVER.format("count(*)") + more)[0][0])


def reset_table(name, columns):
    with admin() as a:
        a.ask(f"drop table if exists {name}")
        a.ask(f"create table {name} ({columns})")
        a.ask(f"grant all on {name} to public")


@weir
def pool_limit_is_never_exceeded(_context):
    with start(pool_size=3, settings=["workers=4"]) as w, admin() as a:
        highest, stop = [0], threading.Event()

        def watch():
            while not stop.is_set():
                highest[0] = max(highest[0], server_connections(a))

        watcher = threading.Thread(target=watch)
        watcher.start()
        pids = set()

        def work(i):
            with Wire(w.target()) as wire:
                for turn in range(15):
                    wire.ask("begin")
                    got = wire.ask(f"select pg_backend_pid(), '{i}/{turn}'")[0]
                    assert got[1] == f"{i}/{turn}"
                    pids.add(got[0])
                    wire.ask("commit")

        raised = in_threads(60, work)
        stop.set()
        watcher.join()
        assert not raised, raised[:3]
        assert 0 < highest[0] <= 3, f"{highest[0]} connections at once"
        assert len(pids) <= 3, f"{len(pids)} servers were seen"


@weir
def a_copy_that_is_over_holds_no_server(_context):
    """Its end in one packet with it, behind it, or dropped because the copy had failed; its client stays and says nothing more."""
    reset_table("copied", "a int")
    done, data = message(b"c"), message(b"d", b"1\n")
    with start(pool_size=1, settings=["workers=1"]) as w:
        for first, then in ((query("copy copied from stdin") + data + done, b""), (query("copy copied from stdin"), data + done),
                            (query("copy copied from stdin"), message(b"d", b"x\n") + done),
                            (parse("copy copied from stdin") + bind() + execute() + SYNC, data + done + SYNC)):
            with Wire(w.target()) as one, Wire(w.target()) as other:
                one.send(first)
                if then:
                    one.until("G")
                    one.send(then)
                one.until("Z")
                assert other.ask("select 'served'") == [["served"]]


@weir
def what_a_batch_does_in_front_of_its_copy_is_its_clients(_context):
    """The server ignores the Sync in front of the data: with what goes before, the copy is one request until the next."""
    reset_table("copied", "a int")
    data = message(b"d", b"1\n") + message(b"c")
    copy = parse("copy copied from stdin") + bind() + execute() + SYNC

    def batch(text):
        return parse(text) + bind() + execute() + copy

    with start(pool_size=1, settings=["workers=1"]) as w:
        for first, end, zone in ((batch("reset timezone"), data + SYNC, "Asia/Tokyo"), (batch("set timezone to 'CET'"), data + SYNC, "CET"),
                                 (query("reset timezone; copy copied from stdin"), data, "Asia/Tokyo"),
                                 (query("set timezone to 'CET'; copy copied from stdin"), data, "CET")):
            for ahead in (True, False):
                with Wire(w.target(), {"TimeZone": "Asia/Tokyo"}) as one, Wire(w.target(), {"TimeZone": "Europe/Paris"}) as other:
                    for wire in (one, other):
                        wire.sock.settimeout(20)
                    assert other.ask("show timezone") == [["Europe/Paris"]]
                    one.send(first + end if ahead else first)
                    if not ahead:
                        one.until("G")
                        one.send(end)
                    one.until("Z")
                    assert other.ask("show timezone") == [["Europe/Paris"]], (first, ahead)
                    assert one.ask("show timezone") == [[zone]], (first, ahead)
            with Wire(w.target()) as third:
                assert third.ask("show timezone") not in ([["CET"]], [["Asia/Tokyo"]]), first


@weir
def one_client_needs_one_server(_context):
    """No server is opened for a client that another one is about to serve."""
    with start(pool_size=4, settings=["workers=1"]) as w, admin() as a:
        for _ in range(5):
            with Wire(w.target()) as wire:
                assert wire.ask("select 'served'") == [["served"]]
        connects = w.metric("weir_server_connects", protocol="postgres", outcome="ok")
        assert connects == 1, connects
        assert server_connections(a) == 1


@weir
def transaction_mode_shares(_context):
    """Idle clients hold no server, whatever they did before, as long as it leaves no trace."""
    with start(pool_size=2) as w, admin() as a:
        wires = [Wire(w.target()) for _ in range(40)]
        for wire in wires:
            wire.ask("select 1")
            wire.ask("begin; select 2; commit")
            wire.send(parse("select $1::int", "named") + bind(["3"], "named") + execute() + SYNC)
            wire.until("Z")
        assert server_connections(a) <= 2
        for wire in wires:
            wire.close()
        eventually(lambda: w.metric("weir_client_connections", protocol="postgres") == 0, "the clients have gone")


@weir
def known_settings_need_no_server(_context):
    """What one worker has learnt of the greeting, all know: a login takes no server when leases fill the pool."""
    with start("session", pool_size=1, settings=["workers=4", "pool.query_wait_timeout=60"]) as w, Wire(w.target()) as holder:
        assert holder.ask("select 'mine'") == [["mine"]]
        wires = [Wire(w.target()) for _ in range(12)]
        w.reaches("weir_waiting_clients", 0, protocol="postgres")
        for wire in wires:
            wire.close()


@weir
def session_mode_keeps(_context):
    with start("session", pool_size=3) as w:
        wires = [Wire(w.target()) for _ in range(3)]
        pids = [wire.ask("select pg_backend_pid()")[0][0] for wire in wires]
        assert len(set(pids)) == 3
        for _ in range(3):
            assert [wire.ask("select pg_backend_pid()")[0][0] for wire in wires] == pids
        wires[0].ask("set work_mem = '5MB'")
        wires[0].ask("create temp table mine (i int)")
        fourth = Wire(w.target())
        fourth.send(query("show work_mem"))  # waits
        wires[0].close()
        assert [row(p) for k, p in fourth.until("Z") if k == "D"] == [["4MB"]], "the next client found the last one's setting"
        for wire in [*wires[1:], fourth]:
            wire.close()


@weir
def session_mode_resets_behind_each_client(_context):
    """Also behind one that has left nothing that Weir saw."""
    with start("session", pool_size=1) as w, admin() as sql:
        def last_of_server():
            return sql.ask(ON_SERVER.format("query"))

        wire = Wire(w.target())
        assert wire.ask("select 'only read'") == [["only read"]]
        assert last_of_server() == [["select 'only read'"]]
        wire.close()
        eventually(lambda: last_of_server() == [["DISCARD ALL"]], "the server is reset")


@weir
def statement_mode_refuses_transactions(_context):
    with start("statement", pool_size=2) as w, Wire(w.target("statement")) as wire:
        assert wire.ask("select 1") == [["1"]]
        for sql in ("begin", "start transaction", "begin; select 1"):
            other = Wire(w.target("statement"))
            other.send(query(sql))
            # Whether BEGIN itself is answered first or not, the session ends with the reason.
            said = [fields(p).get("C") for k, p in other.closed_by_peer() if k == "E"]
            assert said == ["0A000"], f"{sql}: {said}"
            other.close(politely=False)
        assert wire.ask("select 2") == [["2"]]


PINS = {
    "temporary_table": ("create temp table pinned (i int)", "select count(*) from pinned", [["0"]]),
    "session_lock": ("select pg_advisory_lock(42)", "select pg_try_advisory_lock(42)", [["t"]]),
    "listen": ("listen pins", "select pg_listening_channels()", [["pins"]]),
    "sql_prepare": ("prepare pinned as select 7", "execute pinned", [["7"]]),
    "cursor": ("begin; declare pinned scroll cursor with hold for select 8; commit", "fetch absolute 1 from pinned", [["8"]]),
    "setting": ("set geqo_effort = 7", "show geqo_effort", [["7"]]),
    "setting_by_function": ("select set_config('geqo_effort', '6', false)", "show geqo_effort", [["6"]]),
}


@weir
def pins_give_right_answers_and_end(_context):
    """What cannot be moved keeps its server for that client, is counted, and is gone with the client."""
    for name, (cause, check, expected) in PINS.items():
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
                wire.ask(cause)
                for _ in range(20):
                    got = wire.ask(check)
                    assert got == expected, f"{name}: {got}"
                reasons = {k: v for k, v in w.metrics().items() if k.startswith("weir_pins")}
                assert any(v > 0 for v in reasons.values()) or name.startswith("setting"), f"{name}: no pin was counted"
                wire.close()
            finally:
                stop.set()
                for t in others:
                    t.join()
            eventually(lambda w=w: w.metric("weir_pinned_servers", protocol="postgres") == 0, f"{name}: the pin has ended")
            # Whoever gets any of the three servers now finds nothing of it.
            wires = [Wire(w.target()) for _ in range(3)]
            for wire in wires:
                wire.ask("begin")
                wire.ask("select 1")
            for wire in wires:
                with contextlib.suppress(ServerError):
                    got = wire.ask(check)
                    # The lock is free again, so that the first one gets it.
                    assert name == "session_lock" or got != expected, f"{name}: the next client found it"
                wire.ask("rollback")
            for wire in wires:
                wire.close()


def both_are_open(w):
    """Two servers are there and free, so that nobody has to wait for their logins."""
    def open_now():
        # Also the first login may wait too long for its server.
        with contextlib.suppress(ServerError, LoginRefused), Wire(w.target()) as wire:
            wire.ask("select 1")
        return w.metric("weir_server_connections", protocol="postgres", state="idle") == 2

    eventually(open_now, "both servers are open")


@weir
def pinned_clients_fill_the_pool(_context):
    """Who finds no server in time is told so, with the error of query_wait_timeout; the others go on."""
    with start(pool_size=2, settings=["pool.min_pool_size=2", "pool.query_wait_timeout=1"]) as w:
        both_are_open(w)
        holders = [Wire(w.target()) for _ in range(2)]
        for wire in holders:
            wire.ask("begin")
            wire.ask("select 1")
        waiting = Wire(w.target())
        try:
            got = waiting.ask("select 'late'")
        except ServerError as e:
            got = e.code
        assert got == "08006", f"query_wait_timeout gave {got}"
        eventually(lambda: w.metric("weir_faults", kind="query_wait_timeout", protocol="postgres") >= 1, "weir_faults >= 1")
        holders[0].ask("commit")
        # Whether the client that waited in vain may go on or must connect again is Weir's choice; a new one can.
        with Wire(w.target()) as again:
            assert again.ask("select 'served'") == [["served"]]
        assert holders[1].ask("select 'still mine'") == [["still mine"]]
        for wire in [*holders, waiting]:
            wire.close()


@weir
def waiters_are_served_in_order(_context):
    with start(pool_size=1, settings=["workers=1"]) as w:
        holder = Wire(w.target())
        holder.ask("begin")
        holder.ask("select 1")
        reset_table("turns", "id int generated always as identity, who int")
        waiters = []
        for i in range(12):
            wire = Wire(w.target())
            wire.send(query(f"insert into turns (who) values ({i})"))
            waiters.append(wire)
            eventually(lambda n=i + 1: w.metric("weir_waiting_clients", protocol="postgres") == n, f"client {i} waits")
        holder.ask("commit")
        for wire in waiters:
            wire.until("Z")
        got = [int(r[0]) for r in holder.ask("select who from turns order by id")]
        assert got == list(range(12)), got
        for wire in [holder, *waiters]:
            wire.close()


@weir
def nobody_waits_while_servers_are_idle(_context):
    """Idle servers are asked whether they live before somebody gets one: who comes meanwhile gets another, and not only when a client leaves."""
    for workers in (1, 2):
        settings = ["pool.server_check_delay=0", f"workers={workers}"]
        with start("session", pool_size=12, settings=settings) as w:
            for _ in range(8):
                wires = [Wire(w.target(), login=False) for _ in range(12)]
                assert not in_threads(12, lambda i: wires[i].login({}, (3, 0)))
                assert not in_threads(12, lambda i: wires[i].ask("select 1"))
                for wire in wires:
                    wire.close()
                eventually(lambda: w.metric("weir_client_connections", protocol="postgres") == 0, "all have left")


@weir
def one_server_for_many_workers(_context):
    """A pool of one server serves clients of every worker."""
    with start(pool_size=1, settings=["workers=4"]) as w:
        raised = in_threads(24, lambda i: hundred_queries(w, i))
        assert not raised, raised[:3]
        with admin() as a:
            assert server_connections(a) == 1


def hundred_queries(w, i):
    with Wire(w.target()) as wire:
        for n in range(20):
            assert wire.ask(f"select '{i} {n}'") == [[f"{i} {n}"]]


@weir
def vanished_transaction_is_rolled_back(_context):
    reset_table("vanish", "id int primary key, v int")
    with admin() as a:
        a.ask("insert into vanish values (1, 0)")
    for leave in ("reset", "fin", "terminate"):
        with start(pool_size=1) as w:
            wire = Wire(w.target())
            wire.ask("begin")
            wire.ask("update vanish set v = 99 where id = 1")
            if leave == "reset":
                wire.vanish()
            elif leave == "fin":
                wire.close(politely=False)
            else:
                wire.close()
            # The pool's only server comes free, clean, and the row is not locked.
            with Wire(w.target()) as other:
                other.ask("set statement_timeout = '20s'")
                assert other.ask("select v from vanish where id = 1 for update") == [["0"]]
                assert other.ask("select pg_current_xact_id_if_assigned()") == [[None]]


@weir
def vanished_query_is_cancelled(_context):
    """A client that goes while its query runs does not leave it running, nor its server lost to the pool."""
    with start(pool_size=1) as w, admin() as a:
        wire = Wire(w.target())
        wire.send(query("select pg_sleep(300)"))
        eventually(lambda: server_connections(a, "and state = 'active'") == 1, "the query runs")
        wire.vanish()
        eventually(lambda: server_connections(a, "and state = 'active'") == 0, "the query has been ended", 30)
        with Wire(w.target()) as other:
            assert other.ask("select 'served'") == [["served"]]


@weir
def vanish_anywhere(_context):
    """Clients are cut off at every place of a conversation; afterwards every server of the pool is clean."""
    reset_table("anywhere", "id int primary key")
    scripts = [
        query("begin") + query("insert into anywhere values (1)") + query("select 1"),
        parse("insert into anywhere values ($1)", "x") + bind(["2"], "x") + execute() + parse("select 1") + bind() + execute(),
        query("copy anywhere from stdin"),
        query("copy (select repeat('x', 1000) from generate_series(1, 5000)) to stdout"),
        query("select repeat('x', 1000) from generate_series(1, 5000)"),
        query("create temp table left_over (i int)") + query("set geqo_effort = 3") + query("select pg_advisory_lock(7)"),
        parse("select 1/0") + bind() + execute() + query("select 2") + SYNC,
        query("begin; select 1/0"),
    ]
    with start(pool_size=3) as w:
        for script in scripts:
            for cut in sorted({1, 5, len(script) // 3, len(script) // 2, len(script) - 1, len(script)}):
                for read_first in (False, True):
                    wire = Wire(w.target())
                    wire.send(script[:cut])
                    if read_first and cut == len(script):
                        with contextlib.suppress(*LOST):
                            wire.sock.settimeout(2)
                            wire.read()
                    wire.vanish()
        wires = [Wire(w.target()) for _ in range(3)]
        for wire in wires:
            wire.ask("begin")
            wire.ask("select 1")
        for wire in wires:
            got = wire.ask("select current_setting('geqo_effort'), (select count(*) from pg_locks where locktype = 'advisory'), "
                           "to_regclass('pg_temp.left_over')")
            assert got == [["5", "0", None]], got
            wire.ask("rollback")
        got = wires[0].ask("select count(*) from anywhere where id = 1")
        assert got == [["0"]], "an unfinished transaction was committed"
        for wire in wires:
            wire.close()


@weir
def cancel_reaches_its_own_client_only(_context):
    """One client's requests are cancelled over and over; those of others on the same servers never are."""
    with start(pool_size=3) as w:
        victim = Wire(w.target())
        stop = threading.Event()
        hit = []

        def storm():
            while not stop.is_set():
                with contextlib.suppress(*LOST):
                    with socket.create_connection((w.target().host, w.port), timeout=20) as s:
                        s.sendall(cancel_request(victim.pid, victim.secret))
                        s.recv(1)

        def victims_work():
            while not stop.is_set():
                try:
                    victim.ask("select pg_sleep(0.01)")
                except ServerError as e:
                    assert e.code == "57014", str(e)
                    hit.append(1)

        def bystander(i):
            with Wire(w.target()) as wire:
                for n in range(150):
                    assert wire.ask(f"select '{i}.{n}', pg_sleep(0.002)")[0][0] == f"{i}.{n}"

        others = [threading.Thread(target=f) for f in (storm, storm, victims_work)]
        for t in others:
            t.start()
        raised = in_threads(6, bystander)
        stop.set()
        for t in others:
            t.join()
        assert not raised, raised[:3]
        assert hit, "the victim was never cancelled"
        victim.close()


@weir
def cancel_of_a_waiting_request(_context):
    """A request that still waits for a server leaves the queue; it never runs."""
    reset_table("never", "id int")
    with start(pool_size=1) as w:
        holder, waiter = Wire(w.target()), Wire(w.target())
        holder.ask("begin")
        holder.ask("select 1")
        waiter.send(query("insert into never values (1)"))
        eventually(lambda: w.metric("weir_waiting_clients", protocol="postgres") == 1, "it waits")
        with Wire(w.target(), login=False) as c:
            c.send(cancel_request(waiter.pid, waiter.secret))
            c.closed_by_peer()
        got = waiter.until("Z")
        assert [fields(p)["C"] for k, p in got if k == "E"] == ["57014"], plain(got)
        holder.ask("commit")
        assert waiter.ask("select count(*) from never") == [["0"]]
        holder.close()
        waiter.close()


@weir
def cancel_of_a_waiting_part_of_a_request(_context):
    """asyncpg prepares with Parse, Describe, Flush, and sends its Sync when it has read the error."""
    with start(pool_size=1) as w:
        holder, waiter = Wire(w.target()), Wire(w.target())
        holder.ask("begin")
        holder.ask("select 1")
        waiter.send(parse("select 'never'", "s1") + describe("S", "s1") + FLUSH)
        eventually(lambda: w.metric("weir_waiting_clients", protocol="postgres") == 1, "it waits")
        with Wire(w.target(), login=False) as c:
            c.send(cancel_request(waiter.pid, waiter.secret))
            c.closed_by_peer()
        (_, error), = waiter.until("E")
        assert (fields(error)["V"], fields(error)["C"]) == ("ERROR", "57014"), plain([("E", error)])
        waiter.send(bind(statement="s1") + execute() + SYNC)
        assert [k for k, _ in waiter.until("Z")] == ["Z"], "what follows is dropped up to the Sync"
        holder.ask("commit")
        waiter.send(parse("select 'again'", "s1") + bind(statement="s1") + execute() + SYNC)
        assert "again" in str(plain(waiter.until("Z")))
        holder.close()
        waiter.close()


@weir
def drain_lets_transactions_end(_context):
    reset_table("drained", "id int")
    w = start(pool_size=4)
    idle, busy, running = (Wire(w.target()) for _ in range(3))
    idle.ask("select 1")
    busy.ask("begin")
    busy.ask("insert into drained values (1)")
    running.send(query("select pg_sleep(1), 'ran to its end'"))
    with admin() as a:
        eventually(lambda: server_connections(a, "and state = 'active'") == 1, "the query runs")
    w.signal(signal.SIGTERM)
    kinds = idle.closed_by_peer()
    assert all(k in "EN" for k, _ in kinds), plain(kinds)

    def refused():
        try:
            Wire(w.target()).close()
        except (LoginRefused, *LOST):
            return True
        return False

    eventually(refused, "new clients are not let in")
    assert w.alive(), "Weir did not wait for its transactions"
    assert busy.ask("select count(*) from drained") == [["1"]]
    busy.ask("insert into drained values (2)")
    busy.ask("commit")
    assert "ran to its end" in str(plain(running.until("Z")))
    busy.closed_by_peer()
    running.closed_by_peer()
    assert w.wait() == 0
    w.stop_is_checked = True
    w.ended = True
    w.check_log()
    with admin() as a:
        assert a.ask("select count(*) from drained") == [["2"]]
        eventually(lambda: server_connections(a) == 0, "no server connection is left")


@weir
def drain_is_bounded(_context):
    """A transaction that does not end is ended after drain_timeout, and a second signal ends everything at once."""
    w = start(pool_size=2, settings=["limits.drain_timeout=0.5"])
    wire = Wire(w.target())
    wire.ask("begin")
    wire.ask("select 1")
    w.signal(signal.SIGTERM)
    wire.closed_by_peer()
    assert w.wait() == 0
    w.ended = True
    w = start(pool_size=2, settings=["limits.drain_timeout=0"])
    wire = Wire(w.target())
    wire.ask("begin")
    wire.ask("select 1")
    w.signal(signal.SIGTERM)
    eventually(lambda: "stops" in w.log(), "the first signal was heard")
    w.signal(signal.SIGTERM)
    wire.closed_by_peer()
    assert w.wait() in (0, 1)
    w.ended = True
    w.check_log()


@weir
def server_restart(_context):
    """Every session that had something under way is told so and closed. Who comes meanwhile waits, and is answered by the server that is
    back."""
    for crash in (False, True):
        with start(pool_size=3, settings=["pool.server_login_retry=0.2"]) as w:
            idle, busy, running = (Wire(w.target()) for _ in range(3))
            idle.ask("select 1")
            busy.ask("begin")
            busy.ask("select 1")
            running.send(query("select pg_sleep(100)"))
            with admin() as a:
                eventually(lambda a=a: server_connections(a, "and state = 'active'") == 1, "the query runs")
            server().stop(crash)
            # The server's own words where it had time for them, as an administrator's end has.
            told = {"57P01"} if not crash else {"57P02", "08006"}
            for wire in (running, busy):
                said = [fields(p).get("C") for k, p in wire.closed_by_peer() if k == "E"]
                assert len(said) == 1 and said[0] in told, (crash, said)
            assert w.alive()
            early = Wire(w.target())
            early.send(query("select 'early'"))
            server().start()
            assert [body[-5:] for kind, body in early.until("Z") if kind == "D"] == [b"early"], "who has waited is answered"
            assert idle.ask("select 'idle'") == [["idle"]], "who had nothing under way goes on"
            for wire in (idle, early):
                wire.close()
            for wire in (busy, running):
                wire.close(politely=False)


@weir
def killed_backends(_context):
    """An operator ends Weir's idle connections on the server: the next clients never notice."""
    with start(pool_size=3) as w, admin() as a:
        assert not in_threads(12, lambda i: hundred_queries(w, i))
        for _ in range(5):
            def all_ended():
                a.ask(ON_SERVER.format("pg_terminate_backend(pid)"))
                # The server forgets a connection a little before it closes it; Weir knows when it is closed.
                return server_connections(a) == 0 and w.metric("weir_server_connections", protocol="postgres") == 0

            eventually(all_ended, "they have ended")
            with Wire(w.target()) as wire:
                assert wire.ask("select 'fine'") == [["fine"]]


def kept_on_server(wire):
    """Statements prepared on the server that answers, whose they may be. (Its `pg_prepared_statements` would be its client's own.)"""
    with admin() as sql:
        sql.ask("grant select on pg_backend_memory_contexts to public")
        sql.ask("grant execute on function pg_get_backend_memory_contexts() to public")
        newer = int(sql.ask("show server_version_num")[0][0]) >= 180000
    # A context names its parent up to PostgreSQL 17, and the path to itself from 18 on.
    parent = ("path[level - 1] = (select path[level] from pg_backend_memory_contexts where name = 'CacheMemoryContext')" if newer
              else "parent = 'CacheMemoryContext'")
    return int(wire.ask(f"select count(*) from pg_backend_memory_contexts where name = 'CachedPlanSource' and {parent}")[0][0])


@weir
def prepared_statements_are_bounded(_context):
    """Many texts, few places on a server: Weir closes old ones and prepares again what is asked for again."""
    with start(pool_size=1, settings=["pool.max_prepared_statements=10"]) as w, Wire(w.target()) as wire:
        for i in range(60):
            wire.send(parse(f"select {i} + $1::int", f"s{i}") + SYNC)
            wire.until("Z")
        for i in [*range(60), *range(59, -1, -7)]:
            wire.send(bind(["1000"], f"s{i}") + execute() + SYNC)
            got = [row(p) for k, p in wire.until("Z") if k == "D"]
            assert got == [[str(1000 + i)]], (i, got)
        count = kept_on_server(wire)
        assert count <= 11, f"{count} statements are prepared on the server"
        # A batch that needs more statements than there are places.
        wire.send(b"".join(bind(["1"], f"s{i}") + execute() for i in range(30)) + SYNC)
        got = [row(p)[0] for k, p in wire.until("Z") if k == "D"]
        assert got == [str(i + 1) for i in range(30)], got


@weir
def the_bytes_of_prepared_statements_are_bounded(_context):
    """Few places would do for many long texts: they are bounded by their bytes, too, on each server."""
    with start(pool_size=1, settings=["pool.max_prepared_statements=10000"]) as w:
        for client in range(3):
            with Wire(w.target()) as wire:
                for i in range(100):
                    wire.send(parse(f"select {i} + $1::int /* {client} {'x' * 60_000} */", f"s{i}") + SYNC)
                    wire.until("Z")
                # 4 MiB of them.
                assert 60 <= kept_on_server(wire) <= 71, kept_on_server(wire)
                for i in (0, 50, 99):
                    wire.send(bind(["1000"], f"s{i}") + execute() + SYNC)
                    assert [row(p) for k, p in wire.until("Z") if k == "D"] == [[str(1000 + i)]]


@weir
def what_the_statements_of_one_client_cost_is_bounded_and_given_back(_context):
    """2,000 of 60 kB, 120 MB in all: they are bounded by their bytes, and go with their client."""
    with start(pool_size=2) as w:
        before = w.rss_kb()
        with Wire(w.target()) as wire:
            for n in range(2000):
                wire.send(parse(f"select {n} /* {'x' * 60_000} */", f"s{n}") + SYNC)
                wire.until("Z")
            assert w.rss_kb() - before < 60_000, w.rss_kb() - before
            assert wire.ask("select 1") == [["1"]]
        eventually(lambda: w.rss_kb() - before < 40_000, "most of it is given back")


@weir
def a_password_changed_through_weir_lets_the_old_one_in_no_more(_context):
    """Of a user that the configuration names with the old one."""
    def comes(target):
        try:
            with Wire(target.login("acc_changed", PASSWORD)) as wire:
                return wire.ask("select 1")
        except LoginRefused:
            return "refused"

    with admin() as a:
        a.ask("drop role if exists acc_changed")
        a.ask(f"create role acc_changed login password '{PASSWORD}'")
        with start(pool_size=2, users=["acc_changed"]) as w:
            assert comes(w.target()) == [["1"]]
            with Wire(w.target().login("acc_changed", PASSWORD)) as own:
                own.ask("alter role acc_changed password 'another'")
            assert comes(server().direct()) == "refused"
            assert comes(w.target()) != [["1"]]
        a.ask("drop role acc_changed")


@weir
def one_text_is_prepared_once(_context):
    """Clients with the same text share one statement on a server."""
    with start(pool_size=1) as w:
        wires = [Wire(w.target()) for _ in range(15)]
        for i, wire in enumerate(wires):
            wire.send(parse("select $1::text", f"name{i}") + bind([str(i)], f"name{i}") + execute() + SYNC)
            assert [row(p) for k, p in wire.until("Z") if k == "D"] == [[str(i)]]
        assert kept_on_server(wires[0]) == 1
        # Other types make another statement, and so does another search path.
        wires[0].send(parse("select $1", "typed", [23]) + bind(["7"], "typed") + execute() + SYNC)
        wires[1].send(parse("select $1", "typed", [25]) + bind(["x"], "typed") + execute() + SYNC)
        assert [row(p) for k, p in wires[0].until("Z") if k == "D"] == [["7"]]
        assert [row(p) for k, p in wires[1].until("Z") if k == "D"] == [["x"]]
        for wire in wires:
            wire.close()


@weir
def statements_prepared_on_a_clients_behalf_are_counted(_context):
    with start(pool_size=2, settings=["workers=1"]) as w, Wire(w.target()) as wire, Wire(w.target()) as other:
        wire.send(parse("select 7", "mine") + SYNC)
        wire.until("Z")
        assert w.metric("weir_injected_prepares", protocol="postgres") == 0, "it is the client's own"
        # The server that has it is taken.
        other.ask("begin")
        other.ask("select 1")
        wire.send(bind(statement="mine") + execute() + SYNC)
        assert [row(p) for k, p in wire.until("Z") if k == "D"] == [["7"]]
        eventually(lambda: w.metric("weir_injected_prepares", protocol="postgres") == 1, "it is counted")
        other.ask("commit")


@weir
def a_known_statement_is_prepared_while_all_servers_are_taken(_context):
    """A program with one thread and two connections prepares on the second while a transaction of the first holds the only
    server: it would wait for itself. (pgbench -M prepared with more clients than servers is such a program.)"""
    with start(pool_size=1) as w, Wire(w.target()) as one, Wire(w.target()) as two:
        one.send(parse("select 7", "s") + SYNC)
        assert [k for k, _ in one.until("Z")] == ["1", "Z"]
        one.ask("begin")
        one.ask("select 1")
        two.send(parse("select 7", "mine") + SYNC)
        assert plain(two.until("Z")) == [["1", ""], ["Z", "I"]], "outside a transaction, whatever the other has"
        two.send(parse("select 8", "other") + SYNC)  # this one no server has seen
        eventually(lambda: w.metric("weir_waiting_clients", protocol="postgres") == 1, "it waits for the server")
        one.ask("commit")
        assert [k for k, _ in two.until("Z")] == ["1", "Z"]
        for name, value in (("mine", "7"), ("other", "8")):
            two.send(bind(statement=name) + execute() + SYNC)
            assert [row(p) for k, p in two.until("Z") if k == "D"] == [[value]]


@weir
def a_statement_whose_table_has_gone_is_not_prepared_by_heart(_context):
    """The DROP came through Weir, and so did ALTER: only a server knows what the text is now."""
    for change, code in (("alter table goes_by_weir drop column j", "42703"), ("drop table goes_by_weir", "42P01")):
        with start(pool_size=1) as w, Wire(w.target()) as one, Wire(w.target()) as two, Wire(w.target()) as owner:
            owner.ask("drop table if exists goes_by_weir")
            owner.ask("create table goes_by_weir (i int, j int)")
            one.send(parse("select i, j from goes_by_weir", "s") + SYNC)
            one.until("Z")
            owner.ask(change)
            one.ask("begin")
            one.ask("select 1")
            two.send(parse("select i, j from goes_by_weir", "s") + SYNC)
            eventually(lambda w=w: w.metric("weir_waiting_clients", protocol="postgres") == 1, "a server is asked")
            one.ask("commit")
            assert [fields(p)["C"] for k, p in two.until("Z") if k == "E"] == [code], "as without Weir"


@weir
def a_statement_with_a_notice_is_not_prepared_by_heart(_context):
    """The server says something of its text to whoever prepares it."""
    text = "select 1 as " + "a" * 80
    with start(pool_size=1) as w, Wire(w.target()) as one, Wire(w.target()) as two:
        one.send(parse(text, "s") + SYNC)
        assert [k for k, _ in one.until("Z")] == ["N", "1", "Z"]
        one.ask("begin")
        one.ask("select 1")
        two.send(parse(text, "s") + SYNC)
        eventually(lambda: w.metric("weir_waiting_clients", protocol="postgres") == 1, "a server is asked")
        one.ask("commit")
        assert [k for k, _ in two.until("Z")] == ["N", "1", "Z"]


@weir
def a_statement_that_fails_now_is_not_prepared_by_heart_again(_context):
    reset_table("goes", "i int")
    with start(pool_size=1) as w, Wire(w.target()) as one, Wire(w.target()) as two, Wire(w.target()) as three, admin() as a:
        one.send(parse("select * from goes", "s") + SYNC)
        one.until("Z")
        a.ask("drop table goes")
        one.ask("begin")
        one.ask("select 1")
        two.send(parse("select * from goes", "s") + SYNC)
        two.until("Z")
        one.ask("commit")
        two.send(bind(statement="s") + execute() + SYNC)
        errors = [fields(p)["C"] for k, p in two.until("Z") if k == "E"]
        assert errors == ["42P01"], f"no such table: {errors}"
        one.ask("begin")
        one.ask("select 1")
        three.send(parse("select * from goes", "s") + SYNC)
        eventually(lambda: w.metric("weir_waiting_clients", protocol="postgres") == 1, "a server is asked")
        one.ask("commit")
        assert [fields(p)["C"] for k, p in three.until("Z") if k == "E"] == ["42P01"], "as without Weir"


@weir
def same_text_in_another_schema(_context):
    """A shared statement must not read the table of the schema it was first prepared in."""
    with admin() as a:
        for schema in ("one", "two"):
            a.ask(f"drop schema if exists {schema} cascade")
            a.ask(f"create schema {schema}")
            a.ask(f"create table {schema}.t as select '{schema}'::text as v")
            a.ask(f"grant usage on schema {schema} to public")
            a.ask(f"grant select on {schema}.t to public")
    with start(pool_size=1) as w:
        wires = {s: Wire(w.target(), {"options": f"-c search_path={s}"}) for s in ("one", "two")}
        for _ in range(3):
            for schema, wire in wires.items():
                wire.send(parse("select v from t") + bind() + execute() + SYNC)
                assert [row(p) for k, p in wire.until("Z") if k == "D"] == [[schema]]
                wire.send(parse("select v from t /* named */", "n") + SYNC)
                wire.until("Z")
                wire.send(bind([], "n") + execute() + SYNC)
                assert [row(p) for k, p in wire.until("Z") if k == "D"] == [[schema]]
                wire.ask("deallocate all")
        for wire in wires.values():
            wire.close()


@weir
def too_many_clients(_context):
    with start(pool_size=2, settings=["limits.max_client_conn=20"]) as w:
        wires, refused = [], []
        for _ in range(30):
            try:
                wires.append(Wire(w.target()))
            except LoginRefused as e:
                refused.append(e.code)
            except LOST:
                refused.append("closed")
        assert len(wires) == 20, f"{len(wires)} were let in"
        assert set(refused) == {"53300"}, refused
        for wire in wires:
            assert wire.ask("select 1") == [["1"]]
            wire.close()
        eventually(lambda: w.metric("weir_client_connections", protocol="postgres") == 0, "they have gone")
        with Wire(w.target()) as wire:
            assert wire.ask("select 1") == [["1"]]


@weir
def timeouts(_context):
    """Each ends what it is for, with its own SQLSTATE, and nothing else."""
    cases = [
        ("limits.client_idle_timeout", ["select 1"], "57P05"),
        ("pool.idle_transaction_timeout", ["begin", "select 1"], "25P03"),
        ("pool.transaction_timeout", ["begin", "select 1"], "25P04"),
    ]
    for setting, statements, code in cases:
        with start(pool_size=2, settings=[f"{setting}=0.3"]) as w, admin() as a:
            wire = Wire(w.target())
            for sql in statements:
                wire.ask(sql)
            said = [fields(p).get("C") for k, p in wire.closed_by_peer() if k == "E"]
            assert said == [code], f"{setting}: {said}"
            eventually(lambda a=a: server_connections(a, "and state <> 'idle'") == 0, f"{setting}: nothing is left open")
            with Wire(w.target()) as wire:
                assert wire.ask("select 1") == [["1"]]
    with start(pool_size=2, settings=["pool.query_timeout=0.3"]) as w, admin() as a:
        wire = Wire(w.target())
        wire.send(query("select pg_sleep(100)"))
        said = []
        with contextlib.suppress(*LOST):
            while True:
                k, p = wire.read()
                if k == "E":
                    said.append(fields(p).get("C"))
                if k == "Z":
                    break
        assert said[:1] == ["57014"], said
        eventually(lambda: server_connections(a, "and state = 'active'") == 0, "the query does not run on")


@weir
def what_runs_when_the_transaction_took_too_long_commits_nothing(_context):
    """The COMMIT stands in the same request as what takes too long; the client is told that its transaction is over."""
    reset_table("too_long", "i int")
    with start(pool_size=2, settings=["pool.transaction_timeout=0.5"]) as w, admin() as a:
        a.ask("grant all on too_long to public")
        with Wire(w.target()) as wire:
            wire.ask("begin")
            wire.ask("insert into too_long values (1)")
            wire.send(query("select pg_sleep(3); commit"))
            assert [fields(p).get("C") for k, p in wire.closed_by_peer() if k == "E"] == ["25P04"]
        eventually(lambda: server_connections(a, "and state <> 'idle'") == 0, "it does not run on")
        assert a.ask("select count(*) from too_long") == [["0"]]


@weir
def idle_servers_are_closed(_context):
    with start(pool_size=3, settings=["pool.server_idle_timeout=0.3"]) as w, admin() as a:
        assert not in_threads(6, lambda i: hundred_queries(w, i))
        eventually(lambda: server_connections(a) == 0, "idle servers are closed")
        hundred_queries(w, 0)
    with start(pool_size=3, settings=["pool.server_lifetime=0.3"]) as w, admin() as a:
        with Wire(w.target()) as wire:
            first = wire.ask("select pg_backend_pid()")
            eventually(lambda: wire.ask("select pg_backend_pid()") != first, "an old server is replaced")


@contextlib.contextmanager
def from_ini(lines):
    """Weir by a pgbouncer.ini."""
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as file:
        file.write(f"[databases]\napp = host=127.0.0.1 port={server().port} user=app_scram password={PASSWORD}\n"
                   f"[pgbouncer]\nauth_type = any\npool_mode = transaction\n{lines}\n")
        file.flush()
        with Weir("postgres", ["--config", file.name]) as w:
            yield w


@weir
def a_server_lifetime_of_0_in_a_pgbouncer_ini_gives_each_transaction_a_new_server(_context):
    with from_ini("server_lifetime = 0\ndefault_pool_size = 2") as w, admin() as a, Wire(w.target()) as wire:
        seen = [wire.ask("select pg_backend_pid()")[0][0] for _ in range(4)]
        assert len(set(seen)) == 4, seen
        wire.ask("begin")
        inside = [wire.ask("select pg_backend_pid()")[0][0] for _ in range(3)]
        wire.ask("commit")
        assert len(set(inside)) == 1 and inside[0] not in seen, (seen, inside)
        eventually(lambda: server_connections(a) == 0, "none stays behind")
        # Ten at once for two places: nobody stands behind another on the same server, all are answered.
        pids = []

        def ask(_):
            with Wire(w.target()) as one:
                pids.extend(one.ask("select pg_backend_pid()")[0][0] for _ in range(3))

        raised = in_threads(10, ask)
        assert not raised, raised[:3]
        assert len(set(pids)) == 30, sorted(pids)


@weir
def a_lifetime_shorter_than_a_login_closes_no_server_before_its_use(_context):
    for lifetime in ("0.001", "0"):
        with start(pool_size=2, settings=[f"pool.server_lifetime={lifetime}"]) as w, Wire(w.target()) as wire:
            for _ in range(5):
                assert wire.ask("select 1") == [["1"]]


@weir
def login_timeout(_context):
    with start(settings=["limits.client_login_timeout=0.3"]) as w:
        silent = Wire(w.target(), login=False)
        half = Wire(w.target(), login=False)
        half.send(b"\0\0\0\x50\0\x03\0\0user\0")
        for wire in (silent, half):
            wire.closed_by_peer()
            wire.close(politely=False)
        with Wire(w.target()) as wire:
            assert wire.ask("select 1") == [["1"]]


@weir
def users_have_pools_of_their_own(_context):
    with start(pool_size=2, users=["app_trust", "app_md5"]) as w, admin() as a:
        users = ["app_scram", "app_trust", "app_md5"]

        def work(i):
            with Wire(w.target().login(users[i % 3])) as wire:
                for _ in range(10):
                    assert wire.ask("select current_user, session_user") == [[users[i % 3]] * 2]

        raised = in_threads(18, work)
        assert not raised, raised[:3]
        per_user = a.ask(ON_SERVER.format("usename, count(*)") + "group by 1")
        assert all(int(n) <= 2 for _, n in per_user), per_user


@weir
def a_flood_of_connects(_context):
    """Hundreds at once, each connect-query-disconnect, on few servers."""
    with start(pool_size=4) as w:
        raised = in_threads(200, lambda i: hundred_queries(w, i) if i % 10 == 0 else one_query(w, i))
        assert not raised, raised[:3]


def one_query(w, i):
    for _ in range(3):
        with Wire(w.target()) as wire:
            assert wire.ask(f"select '{i}'") == [[str(i)]]


@weir
def server_not_there_at_first(_context):
    server().stop()
    try:
        w = start(pool_size=2, settings=["pool.server_login_retry=0.2", "pool.query_wait_timeout=2"])
    except BaseException:
        server().start()
        raise
    with w:
        try:
            with Wire(w.target()) as wire:
                wire.sock.settimeout(10)
                wire.ask("select 1")
            raise AssertionError("an answer without a server")
        except (ServerError, *LOST):
            pass
        finally:
            server().start()

        def works():
            try:
                with Wire(w.target()) as wire:
                    return wire.ask("select 1") == [["1"]]
            except (ServerError, *LOST):
                return False

        eventually(works, "Weir works once the server is there", 40)


@weir
def big_answers_in_little_memory(_context):
    """A row of 100 MB and COPY of 150 MB each way, with Weir's memory growing by less than 4 MB."""
    with start(pool_size=2) as w:
        with Wire(w.target()) as warm:
            warm.ask("select repeat('w', 1000000)")
            warm.ask("create temp table big_in (t text)")
            before = w.rss_kb()
            highest, stop = [0], threading.Event()

            def watch():
                while not stop.wait(0.02):
                    highest[0] = max(highest[0], w.rss_kb())

            watcher = threading.Thread(target=watch)
            watcher.start()
            try:
                warm.send(query("select repeat('r', 100000000)"))
                assert drain(warm) > 100_000_000
                warm.send(query("copy (select repeat('o', 100000) from generate_series(1, 1500)) to stdout"))
                assert drain(warm) > 150_000_000
                warm.send(query("copy big_in from stdin"))
                warm.until("G")
                line = b"i" * 99_999 + b"\n"
                block = b"d" + (len(line) + 4).to_bytes(4, "big") + line
                for _ in range(150):
                    warm.send(block * 10)
                warm.send(b"c\0\0\0\x04")
                warm.until("Z")
                assert warm.ask("select count(*), sum(length(t)) from big_in") == [["1500", str(1500 * 99_999)]]
            finally:
                stop.set()
                watcher.join()
        grown = highest[0] - before
        assert grown < 4096, f"memory grew by {grown} kB"


def drain(wire):
    """Reads to ReadyForQuery without keeping what comes; returns the number of bytes."""
    total = len(wire.buffer)
    tail = bytes(wire.buffer)
    wire.buffer.clear()
    ready = b"Z\0\0\0\x05I"
    while not tail.endswith(ready):
        got = wire.sock.recv(1 << 18)
        if not got:
            raise Closed(tail)
        total += len(got)
        tail = (tail + got)[-16:]
    return total


@weir
def http_endpoints(_context):
    with start() as w:
        hundred_queries(w, 1)
        assert w.http("/healthz")
        assert w.http("/readyz")
        m = w.metrics()
        eventually(lambda: w.metric("weir_requests", protocol="postgres") >= 20, "weir_requests >= 20")
        began = time.monotonic()
        for _ in range(20):
            w.metrics()
        assert time.monotonic() - began < 60
