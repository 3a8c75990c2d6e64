"""Who gets servers when there are not enough: shares and reserves of users under max_db_connections, and the end of the queue. On a
server of its own."""

import contextlib
import functools
import os
import threading

from weirtest import mywire, pgwire
from weirtest.case import eventually, weir
from weirtest.private import PrivateServer
from weirtest.target import PASSWORD
from weirtest.weir import Weir

SERVERS = ["postgres", "mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[postgres").split("[")[1].rstrip("]")

if KIND == "postgres":
    PROTOCOL, SETTINGS = "postgres", ""
    ONE, OTHER = "app_scram", "app_md5"
    Wire, Refused, REFUSED = pgwire.Wire, pgwire.ServerError, "53300"
    SLEEP, OWN_ID = "select pg_sleep(0.01)", "pg_backend_pid()"
    CONNECTIONS = "select count(*) from pg_stat_activity where usename = '{}'"
else:
    PROTOCOL, SETTINGS = "mysql", '[mysql]\nauth_type = "mysql_native_password"'
    ONE, OTHER = "app", "app_other"
    Wire, Refused, REFUSED = mywire.Wire, mywire.MyError, 1040
    SLEEP, OWN_ID = "select sleep(0.01)", "connection_id()"
    # The one who counts is app_other, too.
    CONNECTIONS = "select count(*) from information_schema.processlist where user = '{}' and id <> connection_id()"


def send(wire, sql):
    """A query whose answer is read later."""
    wire.send(pgwire.query(sql)) if KIND == "postgres" else wire.command(mywire.QUERY, sql)


def received(wire):
    """The rows of the answer."""
    if KIND == "postgres":
        return [pgwire.row(body) for kind, body in wire.until("Z") if kind == "D"]
    return [mywire.text_row(payload) for what, payload in wire.reply() if what == "row"]


@functools.cache
def server():
    return PrivateServer(KIND)


def start(one="", other="", pool="", max_db_connections=8):
    return Weir.configured(KIND, f"""
[databases.app]
url = "{PROTOCOL}://127.0.0.1:{server().port}/app"
max_db_connections = {max_db_connections}
[users.{ONE}]
password = "{PASSWORD}"
{one}
[users.{OTHER}]
password = "{PASSWORD}"
{other}
[pool]
default_pool_size = 8
{pool}
{SETTINGS}
""")


def target(w, user):
    return w.target(user=user)


def connections(admin, user):
    return int(admin.ask(CONNECTIONS.format(user))[0][0])


@contextlib.contextmanager
def busy(w, user, count):
    """So many clients of a user who want a server of their own nearly all the time."""
    stop, raised = threading.Event(), []

    def work():
        try:
            with Wire(target(w, user)) as wire:
                while not stop.is_set():
                    wire.ask(SLEEP)
        except BaseException as e:  # whatever it is, the test must see it
            raised.append(repr(e))

    threads = [threading.Thread(target=work) for _ in range(count)]
    for t in threads:
        t.start()
    try:
        yield
    finally:
        stop.set()
        for t in threads:
            t.join()
        assert not raised, raised[:3]


@weir
def users_get_servers_by_share(_context):
    with start(one="share = 3", other="share = 1") as w, Wire(server().superuser()) as admin:
        with busy(w, OTHER, 24):
            eventually(lambda: connections(admin, OTHER) == 8, "the one who came first has all")
            with busy(w, ONE, 24):
                eventually(lambda: (connections(admin, ONE), connections(admin, OTHER)) == (6, 2), "three to one")
            eventually(lambda: connections(admin, OTHER) == 8, "what nobody wants goes to who does")


@weir
def a_share_is_reached_although_nobody_waits_for_long(_context):
    """Two servers would do for everybody's turn to come within a tenth of a second."""
    with start(one="share = 3", other="share = 1") as w, Wire(server().superuser()) as admin:
        with busy(w, OTHER, 12), busy(w, ONE, 12):
            eventually(lambda: (connections(admin, ONE), connections(admin, OTHER)) == (6, 2), "three to one")


@weir
def a_reserve_is_there_for_its_user(_context):
    with start(one="reserved_connections = 2") as w, Wire(server().superuser()) as admin:
        with Wire(target(w, ONE)) as wire:
            wire.ask("select 1")
            with busy(w, OTHER, 24):
                eventually(lambda: connections(admin, OTHER) == 7, "the others have the rest")
                wire.ask("begin")
                wire.ask("select 1")
                second = Wire(target(w, ONE))
                second.ask("begin")
                second.ask("select 1")
                assert connections(admin, ONE) == 2
                second.close()
                wire.ask("commit")
                eventually(lambda: connections(admin, OTHER) == 6, "the one that was closed for it has gone")
                # Nobody uses them now, and still nobody takes them.
                for _ in range(20):
                    assert wire.ask("select 2") == [["2"]]
                    assert connections(admin, ONE) == 2 and connections(admin, OTHER) <= 6


@weir
def who_comes_when_too_many_wait_is_told_at_once(_context):
    with start(pool="max_waiting_clients = 5", max_db_connections=1) as w:
        holder = Wire(target(w, ONE))
        holder.ask("begin")
        holder.ask("select 1")
        waiting = [Wire(target(w, ONE)) for _ in range(5)]
        late = Wire(target(w, ONE))
        for i, wire in enumerate(waiting):
            send(wire, f"select {i}, {OWN_ID} > 0")
        eventually(lambda: w.metric("weir_waiting_clients", protocol=PROTOCOL) == 5, "they wait")
        try:
            late.ask("select 'late'")
            raise AssertionError("it was let in")
        except Refused as e:
            assert e.code == REFUSED and "max_waiting_clients" in str(e), e
        # Who is in a transaction goes on.
        assert holder.ask("select 'in a transaction'") == [["in a transaction"]]
        holder.ask("commit")
        for i, wire in enumerate(waiting):
            assert received(wire) == [[str(i), "t" if KIND == "postgres" else "1"]]
            wire.close()
        with Wire(target(w, ONE)) as again:
            assert again.ask("select 'again'") == [["again"]]
        holder.close()
