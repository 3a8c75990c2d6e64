"""What Weir's log says about a client: who it is, in words. And what a client reads when Weir's own login is refused."""

import contextlib
import json
import re
import socket
import threading
import time

import psycopg
import pymysql

from weirtest.case import eventually, weir
from weirtest.target import DEFAULT_USER, PASSWORD, server_env
from weirtest.weir import Weir, free_port, url

SERVERS = ["postgres", "mariadb", "mysql"]

# A type's name with its content, as in Tcp(127.0.0.1:1) or Tcp { host: "x" }.
DEBUG_FORM = re.compile(r"\b[A-Z][a-z]\w*(\([^)]|\s\{ \w+:)|\bSome\(")
LOG = ["log.log_connections=true", "log.log_disconnections=true"]


def login(kind, port, user=None, password=PASSWORD, name="the shop"):
    user = user or DEFAULT_USER[kind]
    if kind == "postgres":
        return psycopg.connect(host="127.0.0.1", port=port, user=user, password=password, dbname="app", application_name=name, autocommit=True,
                               sslmode="disable")
    return pymysql.connect(host="127.0.0.1", port=port, user=user, password=password, database="app", autocommit=True)


def refused(kind, port, user=None, password=PASSWORD):
    """The error of a login that must fail."""
    try:
        login(kind, port, user, password).close()
    except (psycopg.OperationalError, pymysql.err.OperationalError) as error:
        return error
    raise AssertionError(f"{user} was let in")


def lines(w, text):
    return eventually(lambda: [line for line in w.log().splitlines() if text in line], f"a line with: {text}")


def names_client(line, user, kind, application_name="the shop"):
    for field in (f'user="{user}"', 'database="app"', "address=127.0.0.1:"):
        assert field in line, (field, line)
    assert re.search(r"\bclient=\d{10}\b", line), line
    if application_name and kind == "postgres":
        assert f'application_name="{application_name}"' in line, line


def before(kind, *settings, target_port=None, more=()):
    native = ["mysql.auth_type=mysql_native_password"] if kind == "mariadb" else []
    options = [url(kind, database="app", port=target_port), *more]
    for setting in (*native, *LOG, *settings):
        options += ["--set", setting]
    return Weir(kind, options, name="log")


@weir
def each_line_about_a_client_names_it(context):
    kind = context.kind
    user = DEFAULT_USER[kind]
    with before(kind) as w:
        login(kind, w.port).close()
        names_client(lines(w, " login ")[0], user, kind)
        names_client(lines(w, "client has left")[0], user, kind)
        refused(kind, w.port, user="nobody_here")
        names_client(lines(w, "login refused")[0], "nobody_here", kind, application_name=None)
        assert "wrong password, or no such user" in lines(w, "login refused")[0], w.log()
        refused(kind, w.port, password="wrong")
        second = eventually(lambda: [x for x in w.log().splitlines() if "login refused" in x][1:], "the second refusal is said")
        names_client(second[0], user, kind, application_name=None)
        # Its server is lost.
        with login(kind, w.port) as c, c.cursor() as cursor, contextlib.suppress(psycopg.Error, pymysql.Error):
            if kind == "postgres":
                cursor.execute("begin")
                cursor.execute("select pg_terminate_backend(pg_backend_pid())")
            else:
                cursor.execute("begin")
                cursor.execute("select get_lock('weir_log', 0)")
                with login(kind, int(server_env(kind, "PORT"))) as direct, direct.cursor() as killer:
                    killer.execute("select is_used_lock('weir_log')")
                    killer.execute(f"kill {killer.fetchone()[0]}")
                cursor.execute("select 1")
        if kind == "postgres":
            names_client(lines(w, "client closed")[0], user, kind)
        else:
            names_client(lines(w, "server lost while in use by this client")[0], user, kind)
        assert not DEBUG_FORM.search(w.log()), DEBUG_FORM.search(w.log())


@weir
def the_log_names_the_user_who_came_and_not_the_one_for_all(context):
    """Many users, one account on the server."""
    kind = context.kind
    native = '[mysql]\nauth_type = "mysql_native_password"\n' if kind == "mariadb" else ""
    text = (f'{native}[databases.app]\nurl = "{url(kind, database="app")}"\n[users.ann]\npassword = "a"\n[users.bob]\npassword = "b"\n'
            '[log]\nlog_connections = true\nlog_disconnections = true\n')
    with Weir.configured(kind, text) as w:
        with login(kind, w.port, "ann", "a"), login(kind, w.port, "bob", "b"):
            pass
        for what in (" login ", "client has left"):
            found = eventually(lambda what=what: (l := [x for x in w.log().splitlines() if what in x]) and len(l) == 2 and l, f"two lines: {what}")
            assert ['user="ann"' in x for x in found].count(True) == 1 and ['user="bob"' in x for x in found].count(True) == 1, found


@weir
def a_database_that_cannot_be_reached_is_named_in_words(context):
    kind = context.kind
    port = free_port()
    with socket.socket() as taken:
        # Nobody listens on it.
        taken.bind(("127.0.0.1", port))
        with before(kind, target_port=port) as w:
            error = refused(kind, w.port)
            # What is for drivers to say (2000 to 2999) is "malformed packet" to MariaDB's clients when a server says it.
            assert kind == "postgres" or error.args[0] == 1042, error
            line = lines(w, "no server connection")[0]
            assert f"127.0.0.1:{port}: " in line and "refused" in line, line
            assert not DEBUG_FORM.search(w.log()), w.log()


@weir
def a_refusal_of_weirs_own_login_is_not_taken_for_the_clients(context):
    kind = context.kind
    text = (f'[databases.app]\nurl = "{url(kind, password="not-the-password", database="app")}"\n[users.ann]\npassword = "a"\n')
    if kind == "mariadb":
        text += '[mysql]\nauth_type = "mysql_native_password"\n'
    with Weir.configured(kind, text) as w:
        error = refused(kind, w.port, "ann", "a")
        said = str(error.args)
        assert "Weir" in said and "own login" in said, said
        own = str(refused(kind, w.port, "ann", "b").args)
        assert "Weir" not in own, own


@weir
def a_log_in_json_has_an_object_in_each_line(context):
    """With the fields of the event, so that collectors need no pattern."""
    kind = context.kind
    with before(kind, "log.format=json") as w:
        login(kind, w.port).close()
        refused(kind, w.port, password="wrong")
        lines(w, "login refused")
        events = [json.loads(line) for line in w.log().splitlines()]
        assert all({"timestamp", "level", "message"} <= event.keys() for event in events), events
        ours = [event for event in events if event.get("user") == DEFAULT_USER[kind]]
        assert {event["level"] for event in ours} <= {"INFO", "WARN"} and len(ours) >= 2, events
        for event in ours:
            assert event["protocol"] == ("postgres" if kind == "postgres" else "mysql") and event["address"].startswith("127.0.0.1:"), event
            assert event["database"] == "app", event


def slow_lines(w, statement):
    """(took_ms, waited_ms) of each line about such a slow request."""
    found = re.findall(r'slow request .*took_ms=(\d+) waited_ms=(\d+) statement="(.*?)"', w.log())
    return [(int(took), int(waited)) for took, waited, shown in found if shown == statement]


@weir
def a_slow_request_is_logged_with_its_wait_and_without_its_values(context):
    kind = context.kind
    sleep = "select pg_sleep({}), 'secret'" if kind == "postgres" else "select sleep({}), 'secret'"
    shown = "select pg_sleep(?), ?" if kind == "postgres" else "select sleep(?), ?"
    with before(kind, "log.log_min_duration=1s", "pool.default_pool_size=1") as w, \
            login(kind, w.port) as one, login(kind, w.port) as other, one.cursor() as a, other.cursor() as b:
        a.execute("select 1")
        a.execute(sleep.format(1.2))
        took_ms, _ = eventually(lambda: slow_lines(w, shown), "it is logged")[0]
        assert took_ms >= 1200 and "secret" not in w.log(), w.log()
        names_client(lines(w, f'statement="{shown}"')[0], DEFAULT_USER[kind], kind)
        a.execute("begin")
        a.execute("select 1")
        thread = threading.Thread(target=lambda: b.execute("select 'waits'"))
        thread.start()
        eventually(lambda: w.metric("weir_waiting_clients", protocol="postgres" if kind == "postgres" else "mysql") == 1, "it waits")
        time.sleep(1.1)
        a.execute("commit")
        thread.join()
        assert eventually(lambda: [line for line in slow_lines(w, "select ?") if line[1] >= 1000], "its wait counts")
        if kind == "postgres":
            a.execute("select pg_sleep(%s)", (1.2,), prepare=True)
            assert eventually(lambda: slow_lines(w, "select pg_sleep($1)"), "so is a prepared one")[0][0] >= 1200
        # All at once, so that some stand behind others.
        shared = [login(kind, w.port) for _ in range(8)]
        threads = [threading.Thread(target=lambda c=c, i=i: c.cursor().execute(sleep.format(1.2) + f", {i}")) for i, c in enumerate(shared)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        eventually(lambda: len(slow_lines(w, f"{shown}, ?")) == 8, "each of them is logged")
        for c in shared:
            c.close()


@weir
def slow_requests_are_not_logged_unless_asked_for(context):
    with before(context.kind) as w, login(context.kind, w.port) as c, c.cursor() as cursor:
        cursor.execute("select pg_sleep(0.3)" if context.kind == "postgres" else "select sleep(0.3)")
        assert "slow request" not in w.log()
