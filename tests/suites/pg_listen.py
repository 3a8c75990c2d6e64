"""Clients that only listen hold no server: one connection listens for all of them. What each of them is told, in which order and when,
direct and through Weir; what makes a client come back to a server; and what only Weir knows."""

import functools
import struct
import threading
import time

import psycopg
from weirtest.case import both, eventually, in_threads, weir
from weirtest.pgwire import SYNC, Wire, bind, execute, fields, parse, query
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["postgres"]
CLIENTS = 40


@functools.cache
def server():
    return PrivateServer("postgres")


def before(pool_size=2, settings=(), linger="0", **kw):
    return Weir.before("postgres", port=server().port, pool_size=pool_size,
                       settings=["workers=1", f"pool.listen_linger={linger}", *settings], **kw)


def superuser():
    at = server().superuser()
    return psycopg.connect(host=at.host, port=at.port, user=at.user, password=at.password, dbname=at.database, autocommit=True)


def away(w):
    return w.metric("weir_listening_clients")


def gone(w, clients):
    eventually(lambda: away(w) == clients, f"{clients} clients hold no server, {away(w)} do")


def told(payload):
    """Process, channel, text."""
    pid = struct.unpack("!I", payload[:4])[0]
    channel, text = payload[4:].split(b"\0")[:2]
    return pid, channel.decode(), text.decode()


def news(wire, count):
    """So many notifications, and nothing else in front of them: channel and text."""
    out = []
    while len(out) < count:
        kind, payload = wire.read()
        assert kind == "A", (kind, payload)
        out.append(told(payload)[1:])
    return out


def kinds(wire, *requests):
    """The answers to each request: notifications whole, of the rest the kind."""
    out = []
    for request in requests:
        wire.send(query(request) if isinstance(request, str) else request)
        out.append([told(payload)[1:] if kind == "A" else kind for kind, payload in wire.until("Z")])
    return out


@weir
def forty_clients_that_listen_hold_no_server(_context):
    with before() as w:
        clients = [Wire(w.target()) for _ in range(CLIENTS)]
        for number, wire in enumerate(clients):
            wire.ask(f"listen c{number % 4}")
        gone(w, CLIENTS)
        w.reaches("weir_pinned_servers", 0)
        with Wire(w.target()) as says:
            for number in range(8):
                says.ask(f"notify c{number % 4}, 'n{number}'")
        for number, wire in enumerate(clients):
            channel = number % 4
            assert news(wire, 2) == [(f"c{channel}", f"n{channel}"), (f"c{channel}", f"n{channel + 4}")]

        def asks(number):
            for turn in range(5):
                seen = clients[number].ask(f"select {number} + {turn}")
                assert seen == [[str(number + turn)]], seen

        # They still ask, also all at once.
        raised = in_threads(CLIENTS, asks)
        assert not raised, raised
        assert away(w) == CLIENTS
        with Wire(w.target()) as says:
            says.ask("begin; notify c0, 'a'; notify c1, 'b'; notify c0, 'c'; commit")
        assert news(clients[0], 2) == [("c0", "a"), ("c0", "c")]
        assert news(clients[1], 1) == [("c1", "b")]
        for wire in clients:
            wire.close()
        gone(w, 0)


@weir
def nothing_is_lost_or_told_twice_on_the_way(_context):
    """Somebody notifies all the time while clients come and go between their server and the other connection."""
    rounds, over = 30, threading.Event()
    with before(pool_size=4) as w, superuser() as direct:
        sent = []

        def notifies():
            while not over.is_set():
                direct.execute("select pg_notify('busy', %s)", (str(len(sent)),))
                sent.append(len(sent))

        clients = [Wire(w.target()) for _ in range(4)]
        heard = [[] for _ in clients]
        for wire in clients:
            wire.ask("listen busy")
        first = []
        thread = threading.Thread(target=notifies)
        thread.start()
        try:
            def goes_and_comes(number):
                wire = clients[number]
                for turn in range(rounds):
                    # Writes, and so comes back; then it is gone again.
                    wire.send(query("create temporary table t (a int) on commit drop" if turn % 3 else "listen busy"))
                    heard[number] += [int(told(payload)[2]) for kind, payload in wire.until("Z") if kind == "A"]
                    wire.send(query("select 1"))
                    heard[number] += [int(told(payload)[2]) for kind, payload in wire.until("Z") if kind == "A"]

            raised = in_threads(len(clients), goes_and_comes)
            assert not raised, raised
        finally:
            over.set()
            thread.join()
        for number, wire in enumerate(clients):
            while not heard[number] or heard[number][-1] < sent[-1]:
                kind, payload = wire.read()
                assert kind == "A", kind
                heard[number].append(int(told(payload)[2]))
            first.append(heard[number][0])
            assert heard[number] == list(range(heard[number][0], sent[-1] + 1)), "each once, in order"
            wire.close()
        eventually(lambda: w.metric("weir_requests") > 0, "weir_requests > 0")


@both
def own_notifications_come_in_front_of_the_end_of_their_request(target):
    with Wire(target) as wire:
        wire.ask("listen own_news")
        pause(target)
        seen = kinds(wire, "notify own_news, '1'", "select pg_notify('own_news', '2')", "begin; notify own_news, '3'", "select 1", "commit",
                     parse("select pg_notify('own_news', $1)") + bind(("4",)) + execute() + SYNC)
        wire.ask("unlisten *")
        return seen + kinds(wire, "notify own_news, '5'")


def pause(target):
    """Through Weir the listener may have gone meanwhile."""
    if not target.direct:
        time.sleep(0.2)


@both
def a_client_hears_itself_by_its_own_number(target):
    with Wire(target) as wire:
        wire.ask("listen by_number")
        pause(target)
        wire.send(query("notify by_number"))
        return [told(payload)[0] == wire.pid for kind, payload in wire.until("Z") if kind == "A"]


@both
def a_trigger_that_notifies_is_heard_by_its_own_client(target):
    with Wire(target) as wire:
        wire.ask("drop table if exists heard_writes")
        wire.ask("create table heard_writes (a int)")
        wire.ask("create or replace function say_it() returns trigger language plpgsql as $$ begin perform pg_notify('writes', new.a::text);"
                 " return new; end $$")
        wire.ask("create trigger says after insert on heard_writes for each row execute function say_it()")
        wire.ask("listen writes")
        pause(target)
        seen = kinds(wire, "insert into heard_writes values (1), (2)", "select count(*) from heard_writes")
        wire.ask("drop table heard_writes; drop function say_it()")
        return seen


@both
def channels_are_the_client_s_own(target):
    """What pg_listening_channels() says, UNLISTEN and DISCARD ALL end, with several channels and with odd names."""
    with Wire(target) as wire, Wire(target) as other:
        for name in ("plain", '"UPPER"', '"with ""quotes"""', '"with space"', '"ünïcode"'):
            wire.ask(f"listen {name}")
        pause(target)
        channels = "select c from pg_listening_channels() c order by 1"
        seen = [wire.ask(channels), other.ask(channels)]
        pause(target)
        seen.append(kinds(other, "notify \"UPPER\", 'u'", "notify \"with \"\"quotes\"\"\", 'q'", "notify \"with space\"", "notify \"ünïcode\", 'é'"))
        seen.append(news(wire, 4))
        wire.ask("unlisten \"UPPER\"")
        pause(target)
        other.ask("notify \"UPPER\", 'again'; notify plain, 'still'")
        seen.append(news(wire, 1))
        seen.append(wire.ask(channels))
        pause(target)
        seen.append(kinds(wire, "begin", "unlisten *", "rollback"))
        pause(target)
        other.ask("notify plain, 'kept'")
        seen.append(news(wire, 1))
        wire.ask("discard all")
        other.ask("notify plain, 'gone'")
        seen.append(kinds(wire, channels, "select 1"))
        return seen


@both
def a_transaction_is_told_at_its_end(target):
    with Wire(target) as hears, Wire(target) as says:
        hears.ask("listen at_the_end")
        pause(target)
        seen = kinds(hears, "begin")
        says.ask("notify at_the_end, '1'")
        pause(target)
        seen += kinds(hears, "commit", "select 1")
        # An empty one, and one that comes back to a server meanwhile.
        flat = [entry for answer in seen for entry in answer if isinstance(entry, tuple)]
        pause(target)
        kinds(hears, "begin")
        says.ask("notify at_the_end, '2'")
        pause(target)
        more = kinds(hears, "select 1")
        says.ask("notify at_the_end, '3'")
        pause(target)
        more += kinds(hears, "select 2", "commit")
        return flat, more


@both
def statements_prepared_before_are_there_behind(target):
    with Wire(target) as wire:
        wire.ask("listen with_statements")
        pause(target)
        seen = kinds(wire, parse("select $1::int + 1", "s") + bind(("1",), "s") + execute() + SYNC)
        pause(target)
        return seen + kinds(wire, bind(("2",), "s") + execute() + SYNC, "prepare t as select 1", "execute t", "deallocate t")


@weir
def who_asks_in_another_encoding_keeps_its_server(_context):
    with before() as w, Wire(w.target(), {"client_encoding": "LATIN1"}) as latin, Wire(w.target()) as other:
        latin.ask("listen here")
        other.ask("listen here")
        gone(w, 1)
        w.reaches("weir_pinned_servers", 1)
        with superuser() as direct:
            direct.execute("select pg_notify('here', 'é')")
        kind, payload = latin.read()
        assert kind == "A" and payload[4:] == b"here\0\xe9\0", payload
        assert news(other, 1) == [("here", "é")]


@weir
def who_keeps_something_else_keeps_its_server(_context):
    with before() as w, Wire(w.target()) as wire:
        wire.ask("listen here")
        wire.ask("select pg_advisory_lock(1)")
        wire.ask("select 1")
        eventually(lambda: w.metric("weir_pinned_servers") == 1, "it keeps its server")
        wire.ask("select pg_advisory_unlock(1)")
        gone(w, 1)


@weir
def a_lost_connection_ends_its_clients(_context):
    """As a restart of the server would: a notification may have been missed."""
    with before() as w, superuser() as direct:
        clients = [Wire(w.target()) for _ in range(3)]
        for wire in clients:
            wire.ask("listen here")
        gone(w, 3)
        ends = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'weir-listen'"
        assert direct.execute(ends).rowcount == 1
        for wire in clients:
            said = [fields(payload) for kind, payload in wire.closed_by_peer() if kind == "E"]
            assert [one["S"] for one in said] == ["FATAL"], said
        gone(w, 0)
        # The next ones are listened for again.
        with Wire(w.target()) as wire:
            wire.ask("listen here")
            gone(w, 1)
            direct.execute("notify here, 'again'")
            assert news(wire, 1) == [("here", "again")]


@weir
def the_connection_goes_with_its_last_client(_context):
    with before() as w, superuser() as direct:
        count = "select count(*) from pg_stat_activity where application_name = 'weir-listen'"
        with Wire(w.target()) as wire:
            wire.ask("listen here")
            gone(w, 1)
            assert direct.execute(count).fetchone() == (1,)
        eventually(lambda: direct.execute(count).fetchone() == (0,), "nobody listens any more")


@weir
def a_client_that_does_not_read_has_a_bound(_context):
    with before() as w, superuser() as direct:
        wire = Wire(w.target())
        wire.ask("listen here")
        gone(w, 1)
        wire.ask("begin")
        for _ in range(40):
            direct.execute("select count(pg_notify('here', repeat('x', 7900) || n)) from generate_series(1, 50) n")
        said = [fields(payload).get("C") for kind, payload in wire.closed_by_peer() if kind == "E"]
        assert said == ["53000"], said
        gone(w, 0)


@weir
def switched_off_a_client_keeps_its_server(_context):
    for how in (["pool.shared_listen=false"], ["pool.pool_mode=session"]):
        with before(settings=how) as w, Wire(w.target()) as wire:
            wire.ask("listen here")
            wire.ask("select 1")
            eventually(lambda: w.metric("weir_server_connections", state="active") == 1, "it has a server")
            time.sleep(0.2)
            assert away(w) == 0
            w.reaches("weir_server_connections", 1, state="active")


@weir
def who_comes_back_often_stays(_context):
    """One that listens and writes in turns keeps its server in the end."""
    with before(linger="0.01") as w, Wire(w.target()) as wire:
        wire.ask("listen here")
        for _ in range(6):
            time.sleep(0.2)
            wire.ask("notify there")
        time.sleep(0.2)
        assert away(w) == 0
        w.reaches("weir_pinned_servers", 1)
