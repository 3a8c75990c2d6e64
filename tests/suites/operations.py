"""Planned work beside clients that run transactions all the time: what the manual says of a database that moves, of a password that
changes and of a Weir that another one takes over from. Not one transaction fails."""

import contextlib
import os
import tempfile
import threading

import psycopg
import pymysql

from weirtest.case import eventually, weir
from weirtest.pgwire import Wire
from weirtest.private import PrivateServer
from weirtest.target import DEFAULT_USER, PASSWORD, Target, server_env
from weirtest.weir import Weir

SERVERS = ["postgres", "mariadb"]

CLIENTS = 6
# After so many transactions a client opens a new connection, as applications' pools do.
TURNS = 20


def port_of(kind):
    return int(server_env(kind, "PORT"))


def configuration(kind, port, user, password):
    scheme = "postgres" if kind == "postgres" else "mysql"
    native = '[mysql]\nauth_type = "mysql_native_password"\n' if kind == "mariadb" else ""
    return f"""
{native}[databases.app]
url = "{scheme}://{user}:{password}@127.0.0.1:{port}/app"
[users.{DEFAULT_USER[kind]}]
password = "{PASSWORD}"
[users.boss]
password = "{PASSWORD}"
[console]
admin_users = ["boss"]
[pool]
default_pool_size = 3
"""


class Planned:
    """A Weir whose file can be changed, and its console."""

    def __init__(self, kind, content, **kw):
        self.kind = kind
        self.w = Weir.configured(kind, content, **kw)
        self.path = self.w.argv[self.w.argv.index("--config") + 1]

    def write(self, content):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(content)

    def say(self, *words):
        with self.connect("boss", "weir") as boss, boss.cursor() as cursor:
            for word in words:
                cursor.execute(word)

    def connect(self, user=None, database="app", host="127.0.0.1", port=None):
        port = port or self.w.port
        if self.kind == "postgres":
            return psycopg.connect(host=host, port=port, user=user or DEFAULT_USER["postgres"], password=PASSWORD, dbname=database,
                                   autocommit=user is not None)
        where = {"unix_socket": host} if host.startswith("/") else {"host": host, "port": port}
        return pymysql.connect(**where, user=user or DEFAULT_USER[self.kind], password=PASSWORD, database=database,
                               autocommit=user is not None)

    def __enter__(self):
        self.w.__enter__()
        return self

    def __exit__(self, *what):
        return self.w.__exit__(*what)


@contextlib.contextmanager
def transactions(connect, asks):
    """Clients that run transactions until the block ends. Gives the answers so far; no client may have failed."""
    answers, failed, over = [], [], threading.Event()

    def work():
        try:
            while not over.is_set():
                with contextlib.closing(connect()) as connection:
                    for _ in range(TURNS):
                        if over.is_set():
                            return
                        with connection.cursor() as cursor:
                            # psycopg does so itself.
                            if isinstance(connection, pymysql.Connection):
                                cursor.execute("begin")
                            cursor.execute(asks)
                            first = cursor.fetchone()
                            cursor.execute(asks)
                            assert cursor.fetchone() == first, "a transaction saw two servers"
                        connection.commit()
                        answers.append(first[0])
        except BaseException as e:  # whatever it is, the test must see it
            failed.append(repr(e))

    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield answers
        goes_on(answers, failed)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not failed, failed


def goes_on(answers, failed=()):
    """Each client ends a transaction, and begins another connection."""
    enough = len(answers) + CLIENTS * TURNS
    eventually(lambda: failed or len(answers) >= enough, "transactions go on", 60)


WHERE = {"postgres": "select inet_server_port()", "mariadb": "select @@port"}


def moved(context, way):
    """The database moves from one server to another."""
    kind = context.kind
    old, new = PrivateServer(kind), port_of(kind)
    before, after = (configuration(kind, port, DEFAULT_USER[kind], PASSWORD) for port in (old.port, new))
    with Planned(kind, before) as planned:
        with transactions(planned.connect, WHERE[kind]) as answers:
            goes_on(answers)
            assert set(answers) == {old.port}, set(answers)
            way(planned, answers, after)
            # Whoever had begun by then has ended meanwhile.
            last = len(answers)
            goes_on(answers)
        assert set(answers[last:]) == {new}, (set(answers[last:]), old.port, new)
    old.tool("down")


@weir
def a_database_moves_behind_a_pause(context):
    def way(planned, answers, after):
        planned.say("PAUSE app")
        asked = len(answers)
        planned.write(after)
        planned.say("RELOAD")
        # The old primary is quiet: who had its answer by then had it from before.
        assert len(answers) - asked <= CLIENTS, "transactions ran meanwhile"
        planned.say("RESUME app")

    moved(context, way)


@weir
def a_database_moves_without_a_pause(context):
    def way(planned, _answers, after):
        planned.write(after)
        planned.say("RELOAD", "WAIT_CLOSE app")

    moved(context, way)


@contextlib.contextmanager
def administrator(kind):
    if kind == "postgres":
        with Wire(Target(kind, "direct", "127.0.0.1", port_of(kind), "postgres", "", "app")) as wire:
            yield wire.ask
    else:
        with pymysql.connect(unix_socket=server_env(kind, "SOCKET"), user="root") as connection, connection.cursor() as cursor:
            yield cursor.execute


# How an account is made, gets another password, and goes.
ACCOUNT = {
    "postgres": ("drop role if exists moving; create role moving login password 'first'", "alter role moving password 'second'", "drop role moving"),
    "mariadb": ("drop user if exists moving@'%'; create user moving@'%' identified by 'first'; grant all on app.* to moving@'%'",
                "alter user moving@'%' identified by 'second'", "drop user moving@'%'"),
}


@weir
def the_password_of_the_pool_s_user_changes(context):
    kind = context.kind
    first, second = (configuration(kind, port_of(kind), "moving", password) for password in ("first", "second"))
    made, altered, gone = ACCOUNT[kind]
    with administrator(kind) as ask, Planned(kind, first) as planned, contextlib.ExitStack() as stack:
        for statement in made.split(";"):
            ask(statement)
        stack.callback(ask, gone)
        with transactions(planned.connect, WHERE[kind]) as answers:
            goes_on(answers)
            ask(altered)
            goes_on(answers)
            planned.write(second)
            planned.say("RELOAD")
            goes_on(answers)
            # Those that were there are closed, and new ones log in by the new password.
            planned.say("RECONNECT app", "WAIT_CLOSE app")
            goes_on(answers)


@weir
def another_weir_takes_over_by_a_link(context):
    """Two Weirs with a Unix socket each, and a link that says which of them is the current one."""
    with tempfile.TemporaryDirectory(prefix="weir-link-", dir="/tmp") as root:
        taken_over(context.kind, root)


def taken_over(kind, root):
    content = configuration(kind, port_of(kind), DEFAULT_USER[kind], PASSWORD)
    for name in "ab":
        os.mkdir(os.path.join(root, name), 0o755)
    address = "{}:6432" if kind == "postgres" else "{}/my.sock"
    current = os.path.join(root, "current")

    def choose(name):
        following = os.path.join(root, "next")
        os.symlink(name, following)
        os.rename(following, current)

    def listens(name):
        return Planned(kind, content, also=[address.format(os.path.join(root, name))])

    choose("a")
    with listens("a") as old, listens("b") as new:
        host = current if kind == "postgres" else os.path.join(current, "my.sock")
        with transactions(lambda: old.connect(host=host, port=6432), WHERE[kind]) as answers:
            goes_on(answers)
            choose("b")
            old.say("SHUTDOWN WAIT_FOR_CLIENTS")
            assert old.w.wait() == 0
            old.w.ended = True
            old.w.check_log()
            goes_on(answers)
