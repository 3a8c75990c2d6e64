"""What a session leaves behind on MySQL and MariaDB, and what has gone stale: the same scripts of several clients that live at once, direct and
through Weir with one server (and more, where that matters), must see the same."""

import functools
import os
import struct

from weirtest.case import eventually, weir
from weirtest.mywire import (BASIC, INIT_DB, MULTI_STATEMENTS, PING, QUERY, RESET_CONNECTION, STMT_CLOSE, STMT_EXECUTE, STMT_PREPARE, Closed, Wire,
                             execute_payload, read_lenenc, text_row)
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[mariadb").split("[")[1].rstrip("]")
MARIADB = KIND == "mariadb"


@functools.cache
def server():
    return PrivateServer(KIND)


def admin(*statements):
    """Runs each; an error is one of the test."""
    with Wire(server().superuser()) as wire:
        return [wire.ask(sql) for sql in statements]


class Client:
    """One that says what it saw: rows, `ok N` with the rows changed, `err N`, or how its connection ended. Its own id is ME."""

    def __init__(self, target, capabilities=BASIC | MULTI_STATEMENTS):
        self.wire = Wire(target, capabilities=capabilities)
        self.ids = {}

    def see(self, code):
        seen = []
        for what, payload in self.wire.reply(code):
            if what == "err":
                seen.append(f"err {struct.unpack('<H', payload[1:3])[0]}")
            elif what == "row":
                seen.append(self.row(payload) if code == QUERY else payload.hex())
            elif what == "ok":
                seen.append(f"ok {read_lenenc(payload, 1)[0]}")
        return seen

    def row(self, payload):
        me = str(self.wire.thread_id)
        return ["ME" if value == me else value for value in text_row(payload)]

    def ask(self, sql, code=QUERY):
        try:
            self.wire.command(code, sql.replace("@ME@", str(self.wire.thread_id)))
            return self.see(code)
        except (Closed, OSError) as e:
            return [type(e).__name__]

    def prepare(self, name, sql):
        """How many columns it will have."""
        self.wire.command(STMT_PREPARE, sql)
        got = self.wire.reply(STMT_PREPARE)
        if got[0][0] == "err":
            return [f"err {struct.unpack('<H', got[0][1][1:3])[0]}"]
        self.ids[name] = struct.unpack("<I", got[0][1][1:5])[0]
        return ["columns", sum(1 for what, _ in got if what == "column")]

    def run(self, name, *params):
        self.wire.command(STMT_EXECUTE, execute_payload(self.ids[name], params))
        return self.see(STMT_EXECUTE)

    def free(self, name):
        self.wire.command(STMT_CLOSE, struct.pack("<I", self.ids.pop(name)))

    def ping(self):
        return self.ask("", PING)

    def use(self, name):
        return self.ask(name, INIT_DB)

    def reset(self):
        return self.ask("", RESET_CONNECTION)

    def leave(self):
        self.wire.close()


class Room:
    """Where a script's clients meet: direct or behind Weir. `a`, `b`, ... come in when they are first spoken of."""

    def __init__(self, target, weir_=None):
        self.target, self.weir = target, weir_
        self.clients = {}
        self.seen = []

    def __getattr__(self, name):
        if name not in self.clients:
            self.clients[name] = Client(self.target)
        return self.clients[name]

    def note(self, who, sql):
        got = getattr(self, who).ask(sql)
        self.seen.append((who, sql, got))
        return got

    def play(self, text):
        """Lines of `who sql`; what each saw is noted."""
        for line in text.strip().splitlines():
            who, sql = line.strip().split(" ", 1)
            self.note(who, sql)

    def say(self, what, value):
        self.seen.append((what, value))

    def close(self):
        for client in self.clients.values():
            client.leave()


def start(pool_size=1, settings=(), **kw):
    return Weir.before(KIND, port=server().port, pool_size=pool_size, settings=["pool.query_wait_timeout=10", *settings], **kw)


def same(script, before=(), pool_sizes=(1,), settings=()):
    """The script sees the same through Weir as direct. `before`: what the superuser runs first, each time."""
    def played(target, w=None):
        admin(*before)
        room = Room(target, w)
        try:
            script(room)
        finally:
            room.close()
        return room.seen

    direct = played(server().direct())
    for pool_size in pool_sizes:
        with start(pool_size, settings) as w:
            through = played(w.target(), w)
        for d, t in zip(direct, through, strict=True):
            assert d == t, f"pool of {pool_size}:\n  direct  {d}\n  through {t}"
    return direct


# --- What is stored --------------------------------------------------------------------------------------------------

NO_STORED = ["drop view if exists app.sv", "drop table if exists app.st", "drop function if exists app.sf"]


@weir
def a_definition_keeps_the_calls_in_it(_context):
    """A view, a default, a routine that asks for CONNECTION_ID() asks for that of whoever uses it."""
    for define, show in (
        ("create view sv as select connection_id() c", "show create view sv"),
        ("create or replace view sv as select connection_id() c, row_count() r, found_rows() f", "show create view sv"),
        ("create view sv as with q as (select connection_id() c) select * from q", "show create view sv"),
        ("create table st (a int, c bigint default (connection_id()))", "show create table st"),
        ("create function sf() returns bigint return @@pseudo_thread_id", "show create function sf"),
        ("select connection_id(); create view sv as select connection_id() c; select connection_id()", "show create view sv"),
    ):
        same(lambda room, define=define, show=show: room.play(f"a {define}\na {show}"), NO_STORED)

    def more(room):
        room.play("""a create table st (a int)
                     a alter table st add c bigint default (connection_id())
                     a alter table st alter a set default (row_count())
                     a show create table st
                     a create view sv as select 1
                     a alter view sv as select connection_id() c
                     a show create view sv""")
        room.say("prepared", room.a.prepare("v", "create or replace view sv as select connection_id() c, connection_id() d"))
        room.say("prepared", room.a.run("v"))
        room.play("a show create view sv")

    same(more, NO_STORED)


@weir
def a_table_filled_by_a_select_has_its_client_s_id(_context):
    """What runs at once is about the client that runs it."""
    same(lambda room: room.play("""a create table st (x bigint default (connection_id())) select connection_id() c
                                   a select c = connection_id(), c = @ME@ from st
                                   a drop table st
                                   a create table st as with q as (select connection_id() c) select c from q; select connection_id()
                                   a select c = connection_id() from st"""), NO_STORED)


# --- Statements as fresh as direct -------------------------------------------------------------------------------------

TABLE = ["drop view if exists app.pv", "drop table if exists app.pt, app.pt2", "create table app.pt (a int, b varchar(10))",
         "insert into app.pt values (1, 'x')"]


@weir
def a_prepare_is_as_fresh_as_direct(_context):
    """What another client prepared before ALTER, DROP, RENAME or a temporary table does not answer for it."""
    def after(change, text="select * from pt"):
        def script(room):
            room.say("a", room.a.prepare("s", text))
            room.say("a", room.a.run("s"))
            room.play(f"b {change}")
            for who in "cb":
                room.say(who, getattr(room, who).prepare("s", text))
            if "s" in room.c.ids:
                room.say("c", room.c.run("s"))
            room.say("a", room.a.run("s"))
        return script

    for change in ("alter table pt add c int default 7", "alter table pt drop b", "alter table pt modify a varchar(20)", "drop table pt",
                   "rename table pt to pt2", "drop table pt; create table pt (z int)"):
        same(after(change), TABLE, pool_sizes=(1, 3))
    with_view = [*TABLE, "create view app.pv as select a from app.pt"]
    same(after("create or replace view pv as select a, b from pt", "select * from pv"), with_view, pool_sizes=(1, 3))


@weir
def a_temporary_table_stands_in_front_of_a_prepared_text(_context):
    def script(room):
        room.say("a", room.a.prepare("s", "select * from pt"))
        room.say("a", room.a.prepare("d", "delete from pt"))
        room.say("b", room.b.prepare("old", "select * from pt"))
        room.play("""b create temporary table pt (q int, r int, s int)
                     b insert into pt values (1, 2, 3)""")
        room.say("b", room.b.prepare("s", "select * from pt"))
        room.say("b", room.b.run("s"))
        room.say("b", room.b.run("old"))
        room.say("b", room.b.prepare("d", "delete from pt"))
        room.say("b", room.b.run("d"))
        room.play("a select count(*) from pt")
        room.say("a", room.a.run("s"))
        room.play("b drop temporary table pt")
        room.say("b", room.b.run("s"))
        room.say("a", room.a.run("s"))

    same(script, TABLE, pool_sizes=(2, 3))
