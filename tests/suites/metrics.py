"""What /metrics and /readyz say of databases, waits, transactions and logins."""

import contextlib
import os
import urllib.error

from weirtest import mywire, pgwire
from weirtest.case import eventually, weir
from weirtest.relay import Relay
from weirtest.target import DEFAULT_USER, PASSWORD, server_env
from weirtest.weir import Weir, free_port

SERVERS = ["postgres", "mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[postgres").split("[")[1].rstrip("]")
PROTOCOL = "postgres" if KIND == "postgres" else "mysql"
Wire = pgwire.Wire if KIND == "postgres" else mywire.Wire
LOST = (OSError, pgwire.ServerError, pgwire.LoginRefused, mywire.MyError)


def start(port=None, pool=""):
    native = "" if KIND == "postgres" else '[mysql]\nauth_type = "mysql_native_password"\n'
    return Weir.configured(KIND, f"""{native}
[databases.app]
url = "{PROTOCOL}://127.0.0.1:{port or server_env(KIND, 'PORT')}/app"
[users.{DEFAULT_USER[KIND]}]
password = "{PASSWORD}"
[pool]
server_login_retry = "100ms"
{pool}
""")


def enter(w):
    return Wire(w.target())


def send(wire, sql):
    """A query whose answer is read later."""
    wire.send(pgwire.query(sql)) if KIND == "postgres" else wire.command(mywire.QUERY, sql)


def received(wire):
    wire.until("Z") if KIND == "postgres" else list(wire.reply())


def count(w, name):
    return w.metric(f"{name}_count", protocol=PROTOCOL)


@weir
def transactions_of_several_requests_and_logins_have_histograms(_context):
    with start() as w:
        with enter(w) as wire:
            for _ in range(5):
                wire.ask("select 1")
            w.reaches("weir_request_duration_seconds_count", 5, protocol=PROTOCOL)
            assert count(w, "weir_transaction_duration_seconds") == 0
            for end in ("commit", "rollback"):
                wire.ask("begin")
                wire.ask("select 1")
                wire.ask("select 2")
                wire.ask(end)
            w.reaches("weir_transaction_duration_seconds_count", 2, protocol=PROTOCOL)
            wire.ask("select 1")
        with enter(w) as wire:
            wire.ask("select 1")
        # A login is no request, and PostgreSQL's BEGIN goes with the statement behind it.
        w.reaches("weir_request_duration_seconds_count", 13 if KIND == "postgres" else 15, protocol=PROTOCOL)
        assert count(w, "weir_transaction_duration_seconds") == 2
        assert count(w, "weir_login_duration_seconds") == 2
        assert 0 < w.metric("weir_login_duration_seconds_sum", protocol=PROTOCOL) < 60


@weir
def the_longest_wait_is_that_of_the_client_that_waits_now(_context):
    with start(pool="default_pool_size = 1\npipeline_depth = 1") as w:
        holder = enter(w)
        holder.ask("begin")
        holder.ask("select 1")
        w.reaches("weir_longest_wait_seconds", 0, database="app")
        waiter = enter(w)
        send(waiter, "select 2")
        first = eventually(lambda: w.metric("weir_longest_wait_seconds", database="app"), "it waits")
        eventually(lambda: w.metric("weir_longest_wait_seconds", database="app") > first, "and waits on")
        holder.ask("commit")
        received(waiter)
        w.reaches("weir_longest_wait_seconds", 0, database="app")
        assert w.metric("weir_pool_waits_seconds", database="app") >= first
        assert w.metric("weir_pool_requests_seconds", database="app") > 0
        holder.close()
        waiter.close()


@weir
def what_is_set_ahead_of_requests_is_counted(_context):
    """Only where another client's settings are in the way."""
    setting = "set work_mem = '{}MB'" if KIND == "postgres" else "set sort_buffer_size = {}0000"
    with start(pool="default_pool_size = 1\npipeline_depth = 1") as w, enter(w) as one, enter(w) as other:
        def injected():
            return w.metric("weir_injected_settings", database="app")

        one.ask("select 1")
        other.ask("select 1")
        w.reaches("weir_request_duration_seconds_count", 2, protocol=PROTOCOL)
        before = injected()
        one.ask(setting.format(7))
        for _ in range(5):
            one.ask("select 1")
        assert injected() == before, "it set it itself, and is alone"
        other.ask("select 1")
        one.ask("select 1")
        other.ask("select 1")
        eventually(lambda: injected() >= before + 3, "one's setting goes, comes, and goes")


@weir
def errors_of_the_database_are_counted_by_code(_context):
    failing = {"selec nonsense": ("42601", "1064"), "select * from not_there": ("42P01", "1146")}
    with start() as w, enter(w) as wire:
        def count_of(code):
            return sum(value for key, value in w.metrics().items() if key.startswith("weir_server_errors_total{") and f'code="{code}"' in key)

        for turn in (1, 2):
            for sql, codes in failing.items():
                with contextlib.suppress(pgwire.ServerError, mywire.MyError):
                    wire.ask(sql)
                code = codes[0] if KIND == "postgres" else codes[1]
                # The client has its answer before that is counted.
                eventually(lambda code=code, turn=turn: count_of(code) == turn, sql)
        wire.ask("select 1")
        codes = [key for key in w.metrics() if key.startswith("weir_server_errors_total")]
        assert len(codes) == 2, codes


def readiness(w, path):
    try:
        return 200, w.http(path)
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


@weir
def a_database_that_is_down_is_down_in_metrics_and_readiness_until_it_is_back(_context):
    port = free_port()
    with start(port=port) as w:
        assert readiness(w, "/readyz?database=app") == (200, "ready\n"), "nobody has tried yet"
        with contextlib.suppress(*LOST), enter(w) as wire:
            wire.ask("select 1")
        eventually(lambda: readiness(w, "/readyz?database=app")[0] == 503, "it is down")
        failing = f"{PROTOCOL} database app: the last attempt to open a server connection failed; the log says why\n"
        assert readiness(w, "/readyz?database=app")[1] == failing
        # Other databases may be well.
        assert readiness(w, "/readyz") == (200, "ready\n" + failing)
        assert readiness(w, "/readyz?database=other")[0] == 404
        w.reaches("weir_database_up", 0, database="app")
        with Relay("127.0.0.1", port, int(server_env(KIND, "PORT"))):

            def works():
                with contextlib.suppress(*LOST), enter(w) as wire:
                    wire.ask("select 1")
                    return True
                return False

            eventually(works, "the database is back")
            w.reaches("weir_database_up", 1, database="app")
            assert readiness(w, "/readyz") == (200, "ready\n")
            assert readiness(w, "/readyz?database=app") == (200, "ready\n")
