"""What a client may ask about its own last statement, and whose schema its writes go to, for MySQL and MariaDB: other clients are
alive and use the same servers in between. Whatever is seen direct must be seen through Weir. On a server of its own."""

import contextlib
import functools
import os

from weirtest.case import weir
from weirtest.mywire import PING, QUERY, STMT_EXECUTE, MyError, Wire, execute_payload, text_row
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[mariadb").split("[")[1].rstrip("]")


@functools.cache
def server():
    private = PrivateServer(KIND)
    with Wire(private.superuser()) as wire:
        wire.ask("create table app.five (i int primary key)")
        wire.ask("insert into app.five values (1), (2), (3), (4), (5)")
    return private


def start(pool_size=1, settings=(), **kw):
    return Weir.before(KIND, port=server().port, mode="transaction", pool_size=pool_size,
                       settings=["workers=1", *settings], **kw)


@contextlib.contextmanager
def admin():
    with Wire(server().superuser()) as wire:
        yield wire


@weir
def writes_go_to_the_clients_own_schema(_context):
    """One prepares in a schema and goes to another; the read of somebody in a third one stands behind its execution."""
    with admin() as a:
        for schema in ("app", "app2", "bench"):
            a.ask(f"drop table if exists {schema}.w")
            a.ask(f"create table {schema}.w (i int)")
    with start() as w, Wire(w.target().within("app")) as one, Wire(w.target().within("bench")) as other:
        statement = one.prepare("select count(*) from w")
        one.ask("use app2")
        for i in range(24):
            one.command(STMT_EXECUTE, execute_payload(statement))
            other.command(QUERY, "select 'mine', database()")
            one.reply(STMT_EXECUTE)
            one.ask(f"insert into w values ({i})")
            assert [text_row(p) for what, p in other.reply() if what == "row"] == [["mine", "bench"]]
        with admin() as a:
            seen = {schema: int(a.ask(f"select count(*) from {schema}.w")[0][0]) for schema in ("app", "app2", "bench")}
        assert seen == {"app": 0, "app2": 24, "bench": 0}, seen
        assert w.metric("weir_shared_requests", protocol="mysql") > 0


@weir
def nobody_sees_anothers_warnings(_context):
    """Statements and commands that leave the warnings of the session as they are: on a shared server those are another's."""
    leave = {
        "ping": lambda wire: (wire.command(PING), wire.reply(PING)),
        "select": lambda wire: wire.ask("select 1"),
        "set": lambda wire: wire.ask("set @@sql_notes = 1"),
        "do": lambda wire: wire.ask("do 0"),
        "use": lambda wire: wire.ask("use app"),
        "begin": lambda wire: (wire.ask("begin"), wire.ask("commit")),
        "prepare": lambda wire: wire.prepare("select 1"),
        "nothing": lambda wire: None,
    }
    secrets = ["select cast('secret' as signed) from five", "select secret from five", "select 1 from secret"]
    with start() as w, Wire(w.target()) as one, Wire(w.target()) as other:
        for secret in secrets:
            for name, leaves in leave.items():
                one.ask("select i from five")
                with contextlib.suppress(MyError):
                    other.ask(secret)
                leaves(one)
                for ask in ("show warnings", "show errors", "show warnings limit 5", "select @@warning_count, @@error_count",
                            "show count(*) warnings", "/* mine */ show warnings"):
                    seen = one.ask(ask)
                    assert "secret" not in str(seen), (secret, name, ask, seen)
                    assert seen in ([], [["0"]], [["0", "0"]]), (secret, name, ask, seen)
