"""What a session leaves behind on MySQL and MariaDB, and what has gone stale: the same scripts of several clients that live at once, direct and
through Weir with one server (and more, where that matters), must see the same."""

import contextlib
import functools
import os
import struct
import threading

import pymysql
from weirtest.case import eventually, weir
from weirtest.mywire import (BASIC, INIT_DB, MULTI_STATEMENTS, PING, PROCESS_KILL, QUERY, RESET_CONNECTION, STMT_CLOSE, STMT_EXECUTE, STMT_PREPARE, Closed, MyError, Wire,
                             execute_payload, read_lenenc, text_row)
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[mariadb").split("[")[1].rstrip("]")
MARIADB = KIND == "mariadb"


@functools.cache
def server():
    found = PrivateServer(KIND)
    with pymysql.connect(unix_socket=found.env["SOCKET"], user="root") as root, root.cursor() as c:
        c.execute("grant all on *.* to app@'%' with grant option")
    return found


def admin(*statements):
    """Runs each; an error is one of the test."""
    with Wire(server().direct()) as wire:
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
        if name not in self.ids:
            return ["not prepared"]
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
            assert d == t, f"pool of {pool_size}, {direct[0]}:\n  direct  {d}\n  through {t}"
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


# --- Settings of one transaction, of a schema that is gone, of accounts ------------------------------------------------------

IT = ["drop table if exists app.it", "create table app.it (a int)"]


@weir
def a_setting_for_the_next_transaction_ends_with_it(_context):
    """SET @@transaction_isolation without SESSION, as SET TRANSACTION."""
    isolation, read_only = ("tx_isolation", "tx_read_only") if MARIADB else ("transaction_isolation", "transaction_read_only")

    def script(room):
        room.play(f"""a set @@{isolation} = 'SERIALIZABLE'
                      a begin
                      a select count(*) from it
                      a commit
                      b select 1
                      a select @@session.{isolation}
                      a begin
                      a commit
                      b select @@session.{isolation}
                      a set @@{read_only} = 1
                      a begin
                      a insert into it values (1)
                      a commit
                      b select 1
                      a begin
                      a insert into it values (2)
                      a commit
                      a insert into it values (3)
                      a set @@session.{isolation} = 'READ-COMMITTED'
                      b select @@session.{isolation}
                      a select @@session.{isolation}
                      a set @@{read_only} = 1, sql_mode = ''
                      a begin
                      a insert into it values (4)
                      a commit
                      a insert into it values (5)
                      a select @@sql_mode""")

    same(script, IT)


@weir
def a_schema_that_another_client_dropped(_context):
    """Who stands in it goes on as direct; nobody else is touched."""
    before = ["drop database if exists dd1", "create database dd1", "create table dd1.t (a int)", *IT]

    def gone(room):
        room.play("""a use dd1
                     a select 1
                     b select 1
                     b drop database dd1
                     a select 1
                     a select count(*) from app.it
                     b select database()
                     a insert into app.it values (1)
                     c select database()
                     a begin
                     a select 2
                     a commit
                     a use app
                     a select database(), count(*) from it""")

    def back_again(room):
        room.play("""a use dd1
                     b drop database dd1
                     a select 1
                     b create database dd1
                     b create table dd1.t (b int)
                     a select * from t
                     a select database()""")

    def with_more(room):
        room.a.use("dd1")
        room.say("prepared", room.a.prepare("s", "select 1"))
        room.play("b drop database dd1")
        room.say("run", room.a.run("s"))
        room.say("prepared", room.a.prepare("u", "select 2"))
        room.say("run", room.a.run("u"))
        room.play("""a set @x = 1
                     a select @x
                     a create database dd1
                     a create table t (a int)
                     a select @x, database()""")

    for script in (gone, back_again, with_more):
        same(script, before, pool_sizes=(1, 3))
    with start() as w:
        admin(*before)
        room = Room(w.target())
        room.play("a use dd1\nb drop database dd1")
        # As each of the two says to who stands in a schema that is gone.
        assert room.a.ask("select * from t") == (["err 1146"] if MARIADB else ["err 1049"])
        assert room.a.ask("create table t (a int)") == ["err 1049"]
        room.close()


@weir
def global_settings_hold_for_those_who_come_later(_context):
    reset = ["set global sort_buffer_size = 262144", "set global group_concat_max_len = 1024", "set global sql_mode = default"]
    before = [*reset, "set global sql_mode = 'ANSI_QUOTES'"]

    def script(room):
        room.play("""a select @@sort_buffer_size, @@group_concat_max_len
                     b set global sort_buffer_size = 524288
                     b set @@global.group_concat_max_len = 2222
                     a select @@sort_buffer_size, @@group_concat_max_len
                     c select @@sort_buffer_size, @@group_concat_max_len
                     a set group_concat_max_len = 5
                     d select @@group_concat_max_len
                     b select 1; set global sql_mode = 'PIPES_AS_CONCAT'
                     a select @@sql_mode, @@sort_buffer_size, @@group_concat_max_len
                     e select @@sql_mode""")
        for who in "ae":
            room.say(who, getattr(room, who).prepare("s", "select 1 || 2, @@sql_mode"))
            room.say(who, getattr(room, who).run("s"))
        room.say("a", room.a.run("s"))

    try:
        same(script, before, pool_sizes=(1, 2))
    finally:
        admin(*reset)


@weir
def accounts_that_were_changed(_context):
    """What GRANT, REVOKE, ALTER USER and DROP USER say holds for who comes later; who is in goes on."""
    other = "app_late"

    def come(room):
        try:
            Client(room.target.login(other)).leave()
            return "in"
        except Exception as e:
            return type(e).__name__

    def outcome(sql):
        def script(room):
            room.clients["x"] = Client(room.target.login(other))
            room.play(f"""x select 1
                          a {sql}
                          x select 2""")
            room.say("another", come(room) == "in")
            room.say("once more", come(room) == "in")
            room.play("a select 3")
        return script

    # How its password is kept is as that of the others.
    how = "mysql_native_password using password('weir-secret')" if MARIADB else "caching_sha2_password by 'weir-secret'"
    before = [f"drop user if exists {other}@'%'", f"create user {other}@'%' identified {'via' if MARIADB else 'with'} {how}",
              f"grant select on app.* to {other}@'%'"]
    for sql in (f"alter user {other}@'%' account lock", f"drop user {other}@'%'", f"rename user {other}@'%' to app_gone@'%'",
                f"select 1; drop user {other}@'%'"):
        same_users(outcome(sql), [*before, "drop user if exists app_gone@'%'"], other)

    def granted(room):
        room.clients["x"] = Client(room.target.login(other))
        room.play(f"""x insert into it values (1)
                      a grant insert on *.* to {other}@'%'""")
        room.clients["y"] = Client(room.target.login(other))
        room.play(f"""y insert into it values (2)
                      a revoke all privileges, grant option from {other}@'%'""")
        room.say("later", come(room))

    same_users(granted, [*before, *IT], other)


def same_users(script, before, other):
    def played(target):
        admin(*before)
        room = Room(target)
        try:
            script(room)
        finally:
            room.close()
        return room.seen

    direct = played(server().direct())
    with start(2, users=[other]) as w:
        through = played(w.target())
    for d, t in zip(direct, through, strict=True):
        assert d == t, f"\n  direct  {d}\n  through {t}"


# --- What code leaves behind ---------------------------------------------------------------------------------------------

CODE = ["drop table if exists app.it", "create table app.it (a int)",
        *(f"drop procedure if exists app.{p}" for p in ("p_set", "p_into", "p_lock", "p_ftwrl")),
        *(f"drop function if exists app.{f}" for f in ("f_into", "f_lock")),
        """create procedure app.p_set(fail int) begin set time_zone = '+09:00'; set @pv = 5; create temporary table ptmp (a int);
           if fail then signal sqlstate '45000'; end if; end""",
        "create procedure app.p_into() select 9 into @iv",
        "create procedure app.p_lock() select get_lock('fl', 0)",
        "create procedure app.p_ftwrl() flush tables with read lock",
        "create function app.f_into() returns int begin select 9 into @iv; return 1; end",
        "create function app.f_lock() returns int return get_lock('fl', 0)"]
TRACES = "select @@time_zone, @pv, @iv"


@weir
def what_code_leaves_behind_is_its_client_s_own(_context):
    """Procedures, blocks, functions and texts that nobody has read, also those that fail."""
    def leaves(*statements):
        def script(room):
            room.play("\n".join(f"a {sql}" for sql in statements))
            room.play(f"""b {TRACES}
                          b select count(*) from ptmp
                          a {TRACES}""")
        return script

    scripts = [["call p_set(0)"], ["call p_set(1)"], ["call p_into()"], ["select f_into()"], ["select app.f_into()"], ["do f_into()"],
               ["insert into it values (f_into())"], ["update it set a = 1 where a = f_into()", "insert into it values (1)",
                                                      "delete from it where a = f_into()"],
               ["create table ct as select f_into() a", "drop table ct"], ["show variables where f_into() = 5"],
               ["select 1; call p_into()"], ["prepare s from 'select 9 into @iv'", "execute s", "deallocate prepare s"],
               ["set sql_mode = '', @iv = (select 1 union select 2)"]]
    if MARIADB:
        scripts += [["begin not atomic set time_zone = '+01:00'; select 9 into @iv; signal sqlstate '45000'; end"],
                    ["execute immediate 'select 1 into @iv from (select 1 union select 2) x'"]]
    for statements in scripts:
        same(leaves(*statements), CODE, pool_sizes=(2,))

    def prepared(room):
        room.say("a", room.a.prepare("s", "select f_into()"))
        room.say("a", room.a.run("s"))
        room.play(f"b {TRACES}\na {TRACES}")

    same(prepared, CODE, pool_sizes=(2,))


@weir
def who_leaves_after_code_leaves_nothing(_context):
    for statement in ("call p_set(1)", "call p_into()", "select f_into()", "select f_lock()"):
        def script(room, statement=statement):
            room.note("a", statement)
            room.clients.pop("a").leave()
            # A session of the database itself ends a moment after its connection: the lock is waited for.
            room.play(f"""b {TRACES}
                          b select count(*) from ptmp
                          b select get_lock('fl', 8)""")

        same(script, CODE)


@weir
def locks_taken_by_code_have_one_owner(_context):
    for take in ("select f_lock()", "call p_lock()", "do f_lock()", "insert into it select get_lock('fl', 0)"):
        def script(room, take=take):
            room.play(f"""a {take}
                          b select get_lock('fl', 0)
                          a select release_lock('fl')
                          b select get_lock('fl', 0)""")

        same(script, CODE, pool_sizes=(2, 3))

    def blocked(room):
        room.play("""a call p_ftwrl()
                     b select count(*) from it
                     a unlock tables
                     b insert into it values (1)""")

    same(blocked, CODE, pool_sizes=(2, 3))


# --- Texts that are read otherwise than they look ------------------------------------------------------------------------------


@weir
def a_variable_behind_a_number(_context):
    """To both servers the number ends where INTO begins."""
    for text in ("select .5into @f", "select 1e1into @f", "select 1.5e-3into @f", "select 1.into @f", "select 'x'into @f"):
        same(lambda room, text=text: room.play(f"a {text}\nb select @f\na select @f"), pool_sizes=(2,))


@weir
def a_client_finds_its_own_session(_context):
    # Servers show an innodb_trx of up to 0.1 s ago, of before this transaction: the run before may have asked.
    same(lambda room: room.play("""a begin
                                   a insert into it values (1)
                                   a select count(*) from information_schema.processlist where id = connection_id()
                                   a do sleep(0.2)
                                   a select count(*) from information_schema.innodb_trx where trx_mysql_thread_id = connection_id()
                                   a rollback
                                   a select get_lock('ul', 0)
                                   a select is_used_lock('ul') = connection_id()
                                   b select is_used_lock('ul') = connection_id()
                                   b select connection_id() = @ME@"""), IT, pool_sizes=(2,))
    if not MARIADB:
        same(lambda room: room.play("""a select count(*) from performance_schema.threads where processlist_id = connection_id()
                                       a select count(*) from performance_schema.processlist where id = connection_id()"""))


KILLS = ["drop table if exists app.it", "create table app.it (a int, b int)", "insert into app.it values (1, 1)"]


def listed(who, text):
    """The number by which the server calls the connection on which this runs, as this client is shown it."""
    found = []

    def look():
        found[:] = who.ask(f"select id from information_schema.processlist where info like '%{text}%' and info not like '%processlist%'")
        return found

    eventually(look, f"{text} is in the list")
    # Whose the number was when a listing was sent is what counts, and the request may have come only while the first was under way.
    assert look(), text
    return found[0][0]


def told_in_a_thread(client, sql, code=QUERY):
    """Asks at once; the answer comes when the thread is joined."""
    said = []
    thread = threading.Thread(target=lambda: said.append(client.ask(sql, code)))
    thread.start()
    return thread, said


def is_gone(client):
    """Its connection is at its end, perhaps behind a last word."""
    try:
        return client.ask("select 1") != [["1"]]
    except AssertionError:
        return True


SLEEPS = "select sleep(30), '{}'"


@weir
def a_kill_of_a_listed_number_ends_what_was_listed_there(_context):
    """The client that runs there, or only its request; text, prepared, COM_PROCESS_KILL, behind another statement."""
    def kill(room, killer, how, number):
        if how == "text":
            room.say("kill", killer.ask(f"kill query {number}"))
        elif how == "behind":
            room.say("kill", killer.ask(f"update it set b = b + 1 where a = 1; kill query {number}"))
        elif how == "prepared":
            room.say("prepared", killer.prepare("k", "kill query ?"))
            room.say("kill", killer.run("k", number))
        elif how == "connection":
            room.say("kill", killer.ask(f"kill connection {number}"))
        else:
            killer.wire.command(PROCESS_KILL, struct.pack("<I", int(number)))
            room.say("kill", killer.see(PROCESS_KILL))

    def script(room):
        # MySQL 9 neither prepares KILL nor knows the command.
        for how in ("text", "behind", "connection", *(("prepared", "command") if MARIADB else ())):
            victim, bystander = Client(room.target), Client(room.target)
            bystander.ask("select 1")
            thread, said = told_in_a_thread(victim, SLEEPS.format(how))
            other, heard = told_in_a_thread(bystander, f"select sleep(1), 'beside {how}'")
            listed(room.b, f"beside {how}")
            kill(room, room.b, how, listed(room.b, f"''{how}"))
            thread.join()
            other.join()
            ended = how in ("connection", "command")
            # What sleep() makes of it is not the same everywhere; whether it went on is.
            room.say(how, "over" if ended and said[0] in (["Closed"], ["ConnectionResetError"]) or said[0] != [["0", how]] else said[0])
            room.say("bystander", heard[0])
            room.say("victim", is_gone(victim) if ended else victim.ask("select 1"))
            room.say("killer", room.b.ask("select b from it"))
            bystander.leave()

    same(script, KILLS, pool_sizes=(4,))


@weir
def a_kill_never_hits_who_came_later(_context):
    """The number of a server whose client has gone on is of nobody: not of the client that has the server now."""
    with start(2) as w, start(1):
        a, b, c = (Client(w.target()) for _ in range(3))
        c.ask("begin")
        thread, said = told_in_a_thread(a, SLEEPS.format("first"))
        number = listed(c, "''first")
        c.ask(f"kill query {a.wire.thread_id}")
        thread.join()
        assert c.ask("select 1") == [["1"]]
        # Its server is b's now, and c has not looked since.
        thread, said = told_in_a_thread(b, "select sleep(2), 'second'")
        eventually(lambda: admin("select count(*) from information_schema.processlist where info like '%second%' and info not like '%processlist%'")
                   == [[["1"]]], "b runs")
        assert c.ask(f"kill query {number}") == ["ok 0"]
        assert c.ask(f"kill {number}") == ["err 1094"]
        thread.join()
        assert said == [[["0", "second"]]], said
        assert b.ask("select 2") == [["2"]] and a.ask("select 3") == [["3"]]
        for client in (a, b, c):
            client.leave()


@weir
def kill_in_all_its_forms(_context):
    """What stands before it runs, whoever asks for the end of itself is told so and nobody else is hit; unknown numbers."""
    for prepared in (False, True):
        for text in ("kill 99999999", "kill query 99999999", "kill 4294967295", "kill 0", "kill query @ME@", "kill query connection_id()",
                     "kill connection 99999999"):
            def script(room, text=text, prepared=prepared):
                text = text.replace("@ME@", str(room.a.wire.thread_id))
                if prepared:
                    room.say("prepare", room.a.prepare("k", text))
                    room.say("run", room.a.run("k"))
                    room.say("again", room.a.run("k"))
                else:
                    room.say("kill", room.a.ask(text))
                room.play("a select 1\nb select 2")
            same(script, KILLS, pool_sizes=(1, 2), settings=["workers=1"] if prepared else ())
    for text in ("update it set b = 7; kill 99999999", "update it set b = 7; kill query @ME@", "select 5; update it set b = 8; kill query 99999999;",
                 "selec; kill query @ME@", "update nowhere set b = 1; kill query @ME@", "update it set b = 9; kill query connection_id()",
                 "insert into it values (2, 2); select row_count(); kill query @ME@",
                 "kill 99999999; update it set b = 5", "update it set b = 5; kill 99999999; select 1", "kill query @ME@; update it set b = 5",
                 "select 3; kill query (connection_id()); update it set b = 5", "update it set b = 6; kill query 99999999; commit"):
        same(lambda room, text=text: room.play(f"a {text}\na select b from it\nb select 1\na select 2"), KILLS, pool_sizes=(1, 2))

    def of_another(room):
        room.play("a select 1\nb select 2")
        victim = room.b.wire.thread_id
        room.say("kill", room.a.ask(f"update it set b = 3; kill {victim}"))
        room.say("gone", is_gone(room.b))
        room.play("a select b from it\nc select 1")
        room.say("prepare", room.a.prepare("k", "kill ?"))
        for number in (room.c.wire.thread_id, 99999999, None):
            room.say("run", room.a.run("k", None if number is None else str(number)))
        room.say("gone", is_gone(room.c) if "k" in room.a.ids else "not prepared")
        room.play("a select 4")

    same(of_another, KILLS, pool_sizes=(1, 2))


@weir
def what_stands_behind_a_kill_runs_when_that_succeeds(_context):
    """The number of another client, in the midst of a text and at its start: a whole answer, in a transaction or not."""
    for text in ("update it set b = 3; kill {}; select row_count(), b from it; insert into it values (4, 4)", "kill query {}; select row_count(); select b from it",
                 "begin; update it set b = 4; kill {}; select b from it; rollback; select b from it", "kill {}; selec; select 1",
                 "kill {}; show warnings; select found_rows()"):
        def script(room, text=text):
            room.play("a select 1\nb select 2")
            room.say("kill", room.a.ask(text.format(room.b.wire.thread_id)))
            room.say("gone", is_gone(room.b))
            room.play("a select count(*) from it\nc select 1\na select b from it")
        same(script, KILLS, pool_sizes=(1, 2))


@weir
def who_is_killed_is_told_as_by_the_server(_context):
    """The own connection: an error that the server has for it, and then the end; that of another: the end."""
    for prepared in (False, True):
        for text in ("kill connection connection_id()", "kill @ME@", "select 1; kill @ME@; select 2", "begin; kill (connection_id())"):
            if prepared and ";" in text:
                continue

            def script(room, text=text, prepared=prepared):
                text = text.replace("@ME@", str(room.a.wire.thread_id))
                if prepared:
                    room.say("prepare", room.a.prepare("k", text))
                room.say("kill", room.a.run("k") if prepared and "k" in room.a.ids else room.a.ask(text))
                then = room.a.ask("select 3")
                room.say("then", "closed" if then in (["Closed"], ["ConnectionResetError"], ["BrokenPipeError"]) else then)
                room.say("other", room.b.ask("select 4"))
            same(script, KILLS, pool_sizes=(1, 2))

    def of_another(room):
        room.play("a select 1\nb select 2")
        room.say("kill", room.a.ask(f"kill {room.b.wire.thread_id}"))
        room.say("without a word", room.b.wire.closed_by_peer())

    same(of_another, KILLS, pool_sizes=(1, 2))


@weir
def a_kill_that_cannot_be_carried_is_refused_before_anything_runs(_context):
    with start() as w:
        room = Room(w.target())
        admin(*KILLS)
        for text in ("update it set b = 5; kill (select 1)", "kill 1 + 1", "kill user nobody", "update it set b = 5; kill 1 + 1; select 1",
                     "update it set b = 5; select .5into @a; kill 99999998"):
            assert room.a.ask(text) == ["err 1235"], text
        assert room.a.ask("select b from it") == [["1"]]
        assert room.a.wire.thread_id >= 1 << 30, "servers, which count, do not come to that"
        room.close()


@weir(only="mariadb")
def a_query_id_is_the_server_s(_context):
    """MariaDB: KILL QUERY ID stands for one request, whoever runs it."""
    def script(room):
        thread, said = told_in_a_thread(room.a, SLEEPS.format("by its id"))
        found = []
        eventually(lambda: found.extend(room.b.ask("select query_id from information_schema.processlist where info like '%by its id%' "
                                                   "and info not like '%processlist%'")) or found, "it runs")
        room.say("kill", room.b.ask(f"kill query id {found[0][0]}"))
        thread.join()
        room.say("said", said[0] != [["0", "by its id"]])
        room.play("a select 1")

    same(script, KILLS, pool_sizes=(2,))


@weir
def a_statement_that_is_prepared_again_behind_a_lock_is_killed(_context):
    """What its client waits for is the lock, also where it is Weir's own COM_STMT_PREPARE that does."""
    admin("drop table if exists app.locked", "create table app.locked (a int)")
    with start(2) as w, contextlib.ExitStack() as stack:
        first, second, wire, killer = (stack.enter_context(Wire(w.target())) for _ in range(4))
        reads, alters, looks = (stack.enter_context(Wire(server().direct())) for _ in range(3))
        first.ask("begin")
        first.ask("select 1")
        statement = wire.prepare("select a from app.locked")
        second.ask("begin")
        second.ask("select 1")
        # The free server has not prepared it.
        first.ask("commit")
        reads.ask("begin")
        reads.ask("select * from app.locked")
        alters.command(QUERY, "alter table app.locked add column b int")
        waits = "select count(*) from information_schema.processlist where state like '%metadata lock%'"
        eventually(lambda: looks.ask(waits) == [["1"]], "the change waits")
        wire.command(STMT_EXECUTE, execute_payload(statement))
        eventually(lambda: looks.ask(waits) == [["2"]], "and the statement behind it")
        killer.ask(f"kill query {wire.thread_id}")
        assert [MyError(payload).code for what, payload in wire.reply(STMT_EXECUTE) if what == "err"] == [1317]
        reads.ask("commit")
        alters.reply()
        second.ask("commit")
        assert killer.ask("select 7") == [["7"]]


@weir
def no_rows_at_all(_context):
    """sql_select_limit = 0 holds for what Weir asks, too."""
    same(lambda room: room.play("""a set sql_select_limit = 0
                                   a select 1
                                   a insert into it values (1)
                                   a select last_insert_id()
                                   a selec
                                   a show warnings
                                   b select 2
                                   a select 3
                                   a set sql_select_limit = 10
                                   a select last_insert_id()"""),
         ["drop table if exists app.it", "create table app.it (a int, id int auto_increment primary key)",
          "alter table app.it alter a set default 1"])


# --- What one client may cost --------------------------------------------------------------------------------------------------


@weir
def wrong_passwords_are_answered_later_each_time(_context):
    """And nobody else waits for it."""
    with start() as w:
        wrong = w.target(password="not it")
        for _ in range(12):
            try:
                Wire(wrong)
                raise AssertionError("a wrong password is let in")
            except MyError as e:
                assert e.code == 1045, e

        def waits():
            """A wrong login is not answered while a right one is greeted, asks and leaves."""
            late = Wire(wrong, login=False)
            answered = []

            def log_in():
                try:
                    late.login(45, None)
                except (MyError, Closed, OSError):
                    answered.append(1)

            asker = threading.Thread(target=log_in)
            asker.start()
            eventually(lambda: w.metric("weir_client_connections", protocol="mysql") > 0 or answered, "it has come")
            for _ in range(3):
                with Wire(w.target()) as right:
                    assert right.ask("select 1") == [["1"]]
            before = not answered
            asker.join()
            assert answered
            return before

        eventually(waits, "a refusal waits")


@weir
def prepared_texts_are_bounded_by_their_bytes(_context):
    with start(2) as w:
        with Wire(w.target()) as wire:
            before, seen = w.rss_kb(), []
            text = "/*" + "x" * 900_000 + "*/"
            for n in range(150):
                wire.command(STMT_PREPARE, f"select {n} {text}")
                seen.append(wire.reply(STMT_PREPARE)[0][0])
            assert seen[:10] == ["prepared"] * 10 and seen[-1] == "err", seen
            assert w.rss_kb() - before < 60_000, w.rss_kb() - before
            assert wire.ask("select 1") == [["1"]]
        eventually(lambda: w.rss_kb() - before < 30_000, "most of it is given back when it has gone")


# --- Reasons that go -----------------------------------------------------------------------------------------------------------


@weir
def a_pin_goes_with_its_cause(_context):
    """With one server: who keeps it when nothing is left on it keeps it from everybody."""
    for script in (
        """a create temporary table tq (a int)
           a drop temporary table tq
           b select 1
           a select * from tq""",
        """a create temporary table tq (a int)
           a create temporary table tr (a int)
           a drop temporary table tr
           a drop temporary table `tq` ;
           b select 1""",
        """a create temporary table tq (a int)
           a create temporary table if not exists tr (a int)
           a drop table if exists nono, tq
           a drop table app.tr
           b select 1
           a select * from tr""",
        """a select get_lock('weir_pin', 0)
           a select get_lock('weir_pin', 0) as mine
           a select release_lock('weir_pin')
           a select release_lock('weir_pin') from dual
           b select get_lock('weir_pin', 0)
           b select release_lock('weir_pin')
           a select get_lock('weir_pin', 0)
           a select release_all_locks()
           b select is_free_lock('weir_pin')""",
        """a prepare q from 'select 1'
           a deallocate prepare Q
           b select 1
           a execute q""",
        """a set @@session.sql_mode = concat(@@sql_mode, ',STRICT_ALL_TABLES'), sql_auto_is_null = 0
           b select @@sql_mode
           a select @@sql_mode
           a set sql_mode = concat(concat(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO'), ',PIPES_AS_CONCAT')
           b select @@sql_mode, 1 || 2
           a select @@sql_mode, 1 || 2""",
        """a set sql_mode = (select replace(@@sql_mode, 'STRICT_TRANS_TABLES', ''))
           b select @@sql_mode
           a select @@sql_mode""",
    ):
        same(lambda room, script=script: room.play(script))


@weir
def a_temporary_table_that_is_still_there_keeps_its_server(_context):
    for script in ("a alter table tr rename to ts\n a create temporary table tr (a int)\n a drop table tr\n a drop table ts",
                   "a drop temporary table if exists nono", "a drop table pt", "a drop table if exists tr", "a select 1; drop temporary table tr",
                   "a drop temporary table nono"):
        def play(room, script=script):
            room.play(f"""a create temporary table tq (a int)
                          a create temporary table tr (a int)
                          {script}
                          b select count(*) from tq
                          a select count(*) from tq""")

        same(play, TABLE, pool_sizes=(2,))


# --- Sequences (MariaDB) -------------------------------------------------------------------------------------------------

@functools.cache
def sequences():
    admin("create sequence app.q1 nocache", "create sequence app.q2 nocache",
          "create table app.drawn (id bigint default nextval(q1), v int)",
          "create table app.drawn_too (v int, id bigint default (10 + next value for q1))",
          "create view app.drawing as select nextval(q1) n", "create view app.into_drawn as select v from app.drawn",
          "create function app.draw() returns bigint return nextval(q1)",
          "create procedure app.p_draw() begin insert into drawn (v) values (7); end",
          "create table app.fires (a int)",
          "create trigger app.fires_too before insert on app.fires for each row insert into drawn (v) values (8)")
    return ["alter sequence app.q1 restart 1000000", "alter sequence app.q2 restart 5000000"]


DRAWS = ["select nextval(q1)", "select next value for q1", "select NEXT /* a */ VALUE for app.q1", "do nextval(q1)", "set @x = next value for q1",
         "insert into drawn (v) values (1)", "insert into drawn values (default, 1)", "insert into drawn_too (v) values (1)",
         "insert into into_drawn values (3)", "replace into drawn (v) values (1)", "insert into drawn (v) select 1 union select 2",
         "update drawn set id = default, v = v + 1 limit 1", "insert into drawn (id, v) values (nextval(q1), 1)", "select n from drawing", "select draw()",
         "call p_draw()", "insert into fires values (1)", "with x as (select next value for q1 as n) select n from x",
         "execute immediate 'select nextval(q1)'", "select nextval(q1), cast((select 1 union select 2) as int)",
         "select 1; select nextval(q1)", "begin; insert into drawn (v) values (1); rollback", "values (nextval(q1))",
         "select case when nextval(q1) > 0 then 1 end", "select `nextval`(q1)", "create or replace table drawn_here as select nextval(q1) n"]


@weir(only="mariadb")
def a_value_drawn_from_a_sequence_is_known_to_its_client_alone(_context):
    """PREVIOUS VALUE and LASTVAL(): the client's own, NULL for who has drawn none, however it was drawn; also for who gets its server next."""
    before = sequences()

    def drawing(draw, prepared):
        def script(room):
            room.say("draws", (draw, prepared))
            if prepared:
                room.say("drew", [room.a.prepare("draw", draw), room.a.ids and room.a.run("draw")])
            else:
                room.note("a", draw)
            room.play("""b select nextval(q1), nextval(q2)
                         c select lastval(q1), previous value for q2
                         c select 1
                         a select lastval(q1), previous value for q2
                         b select previous value for q1, lastval(q2)
                         c insert into drawn (v) values (2)
                         a select previous value for q1
                         c select lastval(q1)""")
            room.a.leave()
            room.b.leave()
            room.play("d select lastval(q1), lastval(q2)\ne begin\nf select lastval(q1), lastval(q2)\ne select lastval(q1)")
        return script

    for n, draw in enumerate(DRAWS):
        same(drawing(draw, False), before, pool_sizes=(6,))
        if ";" not in draw and n % 3 == 0:
            same(drawing(draw, True), before, pool_sizes=(6,))


@weir(only="mariadb")
def a_sequence_in_oracle_s_words_is_known_to_its_client_alone(_context):
    def script(room):
        for who in "abc":
            room.note(who, "set sql_mode = oracle")
        for draw in ("q1.nextval", "app.q1 . NextVal", "`q1`.`nextval`"):
            room.note("a", f"select {draw}")
            room.play("""b select q1.nextval, q2.nextval
                         c select q1.currval, q2.currval
                         a select q1.currval, q2.currval
                         b select q1.currval""")

    same(script, sequences(), pool_sizes=(3,))


@weir(only="mariadb")
def what_draws_pins_and_says_why(_context):
    """... and nothing else of such a database does; COM_RESET_CONNECTION ends it."""
    sequences()
    with start(2) as w:
        pinned = functools.partial(w.metric, "weir_pinned_servers", protocol="mysql")
        a, b = Client(w.target()), Client(w.target())
        for quiet in ("select setval(q1, 1000)", "select lastval(q1)", "select id from drawn", "select * from q1", "select max(id) from drawn_too"):
            assert not any("err" in seen for seen in a.ask(quiet)), quiet
            assert pinned() == 0, quiet
        a.ask("insert into drawn (v) values (1)")
        eventually(lambda: pinned() == 1 and w.metric("weir_pins_total", protocol="mysql", reason="sequence") == 1, "a pin")
        assert b.ask("select 1") == [["1"]]
        a.reset()
        eventually(lambda: pinned() == 0, "the server is free")
        assert a.ask("select lastval(q1)") == [[None]]
        a.leave()
        b.leave()


# --- What a session shows of itself ----------------------------------------------------------------------------------------

@weir
def the_trackers_a_client_sees_are_its_own(_context):
    """Weir's are not shown; what the client has set is."""
    def script(room):
        for _ in range(2):
            room.play("""a show variables like 'session_track%'
                         b select @@session_track_schema, @@session.session_track_state_change, @@session_track_transaction_info
                         b select 1
                         a show session variables where variable_name = 'session_track_state_change'
                         a create temporary table ttt (a int)
                         a drop temporary table ttt
                         b use app
                         b select database()""")
            room.say("prepared", room.b.prepare("v", "select @@session_track_state_change, @@session_track_transaction_info"))
            room.say("run", room.b.run("v"))
        table = "information_schema.session_variables" if MARIADB else "performance_schema.session_variables"
        room.play(f"""a select variable_value from {table} where variable_name = 'session_track_state_change'
                      a set session_track_state_change = on
                      a show variables like 'session_track%'
                      b show variables like 'session_track%'
                      a set session_track_transaction_info = 'STATE'
                      a select @@session_track_state_change, @@session_track_transaction_info
                      b select @@session_track_state_change, @@session_track_transaction_info
                      a set @x = 1
                      a select @x""")

    same(script, pool_sizes=(2, 3))


@weir
def counters_of_a_session_are_its_own(_context):
    """From FLUSH STATUS or the first look on."""
    def script(room):
        room.play("""a flush status
                     a select count(*) from it
                     b select * from it
                     b insert into it values (1), (2)
                     a show session status like 'handler_read_rnd_next'
                     a select * from it where a = 5
                     b select * from it
                     a show status like 'handler_read_rnd_next'
                     a show status like 'last_query_cost'""")

    same(script, ["drop table if exists app.it", "create table app.it (a int) engine = innodb", "insert into app.it values (1), (2), (3)"], pool_sizes=(2,))


@weir
def profiles_are_of_the_client_s_own_statements(_context):
    def script(room):
        room.play("a set profiling = 1\na select 5\nb select 6\na select 7")
        room.say("profiles", [row[2] for row in room.a.ask("show profiles")])
        room.play("b select @@profiling")

    same(script, pool_sizes=(2,))


@weir
def long_texts_ask_what_short_ones_do(_context):
    """Of 70 kB and 900 kB, behind others that keep the server busy; of 2 MB and 17 MB, what later statements in them ask."""
    def script(room):
        for size in (70_000, 900_000):
            pad = "/* " + "x" * size + " */"
            for text in ("select connection_id() = @ME@, {}1", "select {}connection_id() = @ME@", "{}select row_count(), 'x'",
                         "update it set b = b + 1 {}where a < 3; select row_count(), connection_id() = @ME@",
                         "{}select found_rows()", "insert into it (b) values (1), (2){}; select last_insert_id() > 0, row_count()",
                         "select last_insert_id() > 0 {}", "update it set b = 0 {}; kill query 99999999", "kill {} 99999999", "{}show warnings",
                         "select cast('x' as signed){}", "show warnings {}", "set time_zone = '+03:00' {}", "selec {}"):
                got = room.a.ask(text.format(pad))
                room.say((size, text), got)
                room.play("b insert into it (b) values (5)\nb select * from it where a = 1\na select @@time_zone")
        for size in (2_000_000, 17_000_000):
            pad = "/* " + "x" * size + " */"
            for text in ("insert into it (b) values (1), (2){}; select row_count(), last_insert_id() > 0", "select 1; {}select found_rows()"):
                room.say((size, text), room.a.ask(text.format(pad)))
        room.play("a select 1\nb select 2")

    same(script, ["set global max_allowed_packet = 33554432", "drop table if exists app.it",
                  "create table app.it (a int auto_increment primary key, b int)", "insert into app.it (b) values (1), (1), (1)"], pool_sizes=(1, 2))


@weir
def what_a_long_text_runs_is_seen(_context):
    """A trigger behind a long INSERT leaves its variable to its client alone."""
    before = ["drop table if exists app.fired", "create table app.fired (a int)",
              "create trigger app.fired_too before insert on app.fired for each row set @fired = new.a"]
    admin(*before)

    def script(room):
        for size in (70_000, 2_000_000):
            room.say("insert", room.a.ask("insert into fired values (7)" + " " * size))
            room.play("b select @fired\nb select @fired\na select @fired")
            room.a.leave()
            del room.clients["a"]
            room.play("c begin\nb select @fired\nc select @fired\nc commit")

    same(script, pool_sizes=(2,))


@weir
def a_client_that_says_when_it_leaves_is_closed_then(_context):
    """SET wait_timeout."""
    def script(room):
        room.play("a set wait_timeout = 1\nb select 1")
        eventually(lambda: is_gone_quietly(room.a.wire), "it is closed")
        room.play("b select 2")

    same(script, pool_sizes=(2,))
    # Where Weir has no timeouts of its own, this one counts all the same.
    with Weir.before(KIND, port=server().port) as w, Wire(w.target()) as wire:
        wire.ask("set wait_timeout = 1")
        eventually(lambda: is_gone_quietly(wire), "it is closed")


@weir
def the_last_words_to_an_idle_client_are_numbered_as_direct(_context):
    """MySQL's 4031 opens an exchange of its own. MariaDB closes without a word, which pins.md tells."""
    seen = {}
    with Weir.before(KIND, port=server().port) as w:
        for name, target in (("direct", server().direct()), ("weir", w.target())):
            with Wire(target) as wire:
                wire.ask("set wait_timeout = 1")
                wire.sock.settimeout(20)
                said = bytearray()
                with contextlib.suppress(OSError):
                    while got := wire.sock.recv(4096):
                        said += got
                seen[name] = (said[3], said[4], struct.unpack("<H", said[5:7])[0]) if said else None
    expected = {"direct": None, "weir": (1, 0xFF, 4031)} if MARIADB else dict.fromkeys(seen, (0, 0xFF, 4031))
    assert seen == expected, seen


def is_gone_quietly(wire):
    """The peer has closed, or has said its last."""
    sock = wire.sock
    sock.settimeout(0.05)
    try:
        return sock.recv(4096) is not None
    except TimeoutError:
        return False
    except OSError:
        return True
    finally:
        sock.settimeout(20)


@weir
def a_lock_that_is_not_free_keeps_its_server(_context):
    for taken, freed in (("select get_lock('weir_two', 0)", "select release_lock('weir_other')"),
                         ("select get_lock('weir_two', 0), get_lock('weir_other', 0)", "select release_lock('weir_other')"),
                         ("do get_lock('weir_two', 0)", "select release_lock('weir_other')"),
                         ("select get_lock('weir_two', 0), get_lock('weir_two', 0)", "select release_lock('weir_two')")):
        def play(room, taken=taken, freed=freed):
            room.play(f"""a {taken}
                          a {freed}
                          b select get_lock('weir_two', 0)
                          a select is_used_lock('weir_two') = connection_id()
                          a select release_all_locks()""")

        same(play, pool_sizes=(2,))


# --- User variables ------------------------------------------------------------------------------------------------------

# One of each kind that a variable may have, and of each way to set it.
KINDS = [
    "set @v = 7", "set @v = -9223372036854775808", "set @v = 18446744073709551615", "set @v = cast(3 as unsigned)", "set @v = true",
    "set @v = 1.50", "set @v = 5.", "set @v = 1/3", "set @v = -0.00", "set @v = 12345678901234567890123456789012345.678",
    "set @v = 1.5e0", "set @v = 1/3e0", "set @v = -1.7e308", "set @v = 0e0 * -1", "set @v = cast(0.1 as float)", "set @v = 4.9e-324",
    "set @v = 'plain'", "set @v = ''", "set @v = 'äöü €'", "set @v = _latin1 X'E4F6' collate latin1_german2_ci", "set @v = _binary X'00FF27'", "set @v = 0x4142",
    "set @v = _utf8mb4'x' collate utf8mb4_bin", "set @v = cast('2024-01-02 03:04:05.678' as datetime(3))", "set @v = json_object('a', 1)", "set @v = b'101'",
    "set @v = null", "set @v = 5, @v = null", "set @v = cast(5 as unsigned), @v = null", "set @v = 1.5, @v = null", "set @v = 1e0, @v = null",
    "set @v = _latin1'x' collate latin1_bin, @v = null", "set @v = cast(null as signed)",
    "select @v := 'assigned'", "select @v := 5 from dual where 0", "select 6 into @v", "select 6 into @v from dual where 0", "select no_such, @v := 1",
    "do @v := 4", "set @V = 'another spelling'", "set @`v` = 'quoted'", "set @v = 3; set @v = @v + 1; select @v", "set @v = repeat('x', 2000)",
    "call p_out(@v)", "call p_var(9)", "call p_null()", "select f_var(8)", "insert into tvar values (1, 'by a trigger')",
]
VARIABLE_CODE = [
    "drop procedure if exists app.p_out", "drop procedure if exists app.p_var", "drop procedure if exists app.p_null", "drop function if exists app.f_var",
    "drop table if exists app.tvar", "create procedure app.p_out(out o int) begin set o = 12; end",
    "create procedure app.p_var(i int) begin declare l int default 1; set l = l + i; set @v = l; end", "create procedure app.p_null() begin select null into @v; end",
    "create function app.f_var(i int) returns int no sql begin set @v = i; return i; end", "create table app.tvar (id int, v varchar(20))",
    "create trigger app.tvar_t before insert on app.tvar for each row set @v = new.v"]
SHOW_VARIABLE = "select @v, collation(@v), coercibility(@v), hex(@v), @v + 1, @v is null, @w"


def whole(client, sql):
    """All that the client is told but for the packets that end results: definitions of columns, too."""
    client.wire.command(QUERY, sql)
    return [(what, payload.hex()) for what, payload in client.wire.reply(QUERY) if what in ("column", "row", "err")]


def knows_code(w):
    """Weir has read the code of the database."""
    with Wire(w.target()) as wire:
        eventually(lambda: wire.ask("call app.p_out(@o)") is not None and pinned(w) == 0, "a call that keeps no server")


def pinned(w):
    return w.metric("weir_pinned_servers", protocol="mysql")


@weir
def a_variable_goes_along_as_it_is(_context):
    """With one server: its type, bytes, character set and collation are those of a session of its own, and another client sees nothing of it."""
    def play(room):
        for number, text in enumerate(KINDS):
            a, b = getattr(room, f"a{number}"), getattr(room, f"b{number}")
            room.say(text, whole(a, text))
            room.say(text, whole(b, SHOW_VARIABLE))
            room.say(text, whole(b, "set @v = 'of b', @w = 1"))
            room.say(text, whole(a, SHOW_VARIABLE))
            room.say(text, whole(b, "select @v, @w"))
            room.say(text, whole(a, "set @v = null"))
            room.say(text, whole(a, "select @v"))
            a.leave()
            b.leave()

    same(play, VARIABLE_CODE)


@weir
def variables_of_many_clients_stay_apart(_context):
    """40 clients alive at once on two servers: each has variables of its own, reads them, and leaves no server pinned."""
    def session(client, number):
        seen = []
        for text in (
            f"set @mine = {number}, @text = 'of {number}'", "select @mine + 1, @text", "select @mine := @mine + 10", "select @mine, @nobody",
            f"set @own_{number} = {number}.50", f"select @own_{number}, @own_{(number + 1) % 40}, @mine", "begin", "select @mine := @mine + 1",
            f"select @own_{number}, @own_{(number + 1) % 40}, @mine, @text", "rollback", "select @mine, @text", f"select {number}", f"call p_var({number})", "select @v, @text",
            "set @mine = null, @text = null", "select @mine, @text",
        ):
            seen.append(whole(client, text))
        seen.append(client.prepare("s", "select @mine := ifnull(@mine, 5) + 1"))
        seen += [client.run("s"), client.run("s"), whole(client, "select @mine")]
        client.free("s")
        seen += [client.reset(), whole(client, "select @mine, @text, @v")]
        return seen

    def play(target):
        clients = [Client(target) for _ in range(40)]
        seen = {}

        def run(number):
            try:
                seen[number] = session(clients[number], number)
            except Exception as e:  # noqa: BLE001
                seen[number] = e

        threads = [threading.Thread(target=run, args=(n,)) for n in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return clients, [seen[n] for n in range(40)]

    admin(*VARIABLE_CODE)
    clients, direct = play(server().direct())
    for client in clients:
        client.leave()
    with start(2) as w:
        knows_code(w)
        clients, through = play(w.target())
        for number, (d, t) in enumerate(zip(direct, through, strict=True)):
            assert d == t, f"client {number}:\n  direct  {d}\n  through {t}"
        eventually(lambda: pinned(w) == 0, "no pin")
        for client in clients:
            client.leave()


@weir
def a_variable_that_cannot_be_carried_keeps_its_server(_context):
    """Too long, too many, a name that may be spelt otherwise, a kind that no literal has: the pin `user_variable` stands, and answers are right."""
    many = ", ".join(f"@v{n} = {n}" for n in range(70))
    texts = ["set @v = repeat('x', 5000)", f"set {many}", "set @`ä` = 1"]
    texts += ["set @v = point(1, 2)", "set @`v ` = 1"] if MARIADB else ["set @v = -3.930256719221665e-137 * 1.00000000000000022"]
    for text in texts:
        def play(room, text=text):
            room.say(text, whole(room.a, text))
            room.say(text, whole(room.b, "select @v, @v1, @`ä`"))
            room.say(text, whole(room.a, "select @v, @v1, @`ä`"))

        same(play, pool_sizes=(2,))
        with start(2) as w, Wire(w.target()) as wire:
            wire.ask(text)
            eventually(lambda w=w: pinned(w) == 1, f"{text}: a pin")
            wire.command(RESET_CONNECTION)
            wire.reply(RESET_CONNECTION)
            eventually(lambda w=w: pinned(w) == 0, f"{text}: the pin has ended")


@weir
def a_client_whose_schema_is_gone_loses_nothing_else(_context):
    """Another client drops the schema it is in; an execution of a statement prepared in another one takes its server there, and no
    command leads back. What it has begun, made and set is there still, once it has named a schema; until then it is refused."""
    admin("create table if not exists app.stays (i int)", "create procedure if not exists app.set_zone() set time_zone = '+09:00'")
    for begins in (["begin", "insert into app.stays values (5)"], ["call app.set_zone()", "create temporary table app.shade select 7 as id"]):
        admin("truncate app.stays", "create database leaving")
        with Weir.before(KIND, port=server().port, pool_size=2) as w, Wire(w.target()) as wire, Wire(w.target()) as other:
            number = wire.prepare("select count(*) from stays where i > 5")
            wire.ask("use leaving")
            for text in begins:
                wire.ask(text)
            other.ask("drop database leaving")
            wire.command(STMT_EXECUTE, execute_payload(number))
            wire.reply(STMT_EXECUTE)
            wire.command(PING)
            wire.reply(PING)
            for text in ("insert into app.stays values (6)", "select count(*) from stays"):
                try:
                    wire.ask(text)
                    raise AssertionError(f"{text}: it is in no schema")
                except MyError as error:
                    assert error.code in (1049, 1146), error
            if begins[0] == "begin":
                wire.ask("commit")
                assert other.ask("select i from app.stays") == [["5"]]
            wire.ask("use app")
            if begins[0] != "begin":
                assert wire.ask("select @@time_zone, id from app.shade") == [["+09:00", "7"]]
            assert wire.ask("select count(*) from stays") == [["1" if begins[0] == "begin" else "0"]]


# What programs send that sets things, or looks as if it did: nothing of it ties its client to a server.
OF_PROGRAMS = """
set names utf8mb4
set @x = 1
set @x = 1; select @x
set @x = 1, @y = 2; insert into items values (@x)
set @x = 1; set @y = 2; select @x, @y
set @x = 1; set time_zone = '+01:00'; select @x
set @x = 1, sql_mode = ''; select 1
select @x := 1; select @x
set sql_mode = ''; select 1
set names utf8mb4; select 1
set names utf8mb4; set time_zone = '+01:00'; set sql_mode = 'ANSI'
set autocommit = 1; insert into items values (1)
start transaction; set @x = 1; commit
insert into items values (1); set @x = last_insert_id(); insert into items values (@x)
set session group_concat_max_len = 10000; select group_concat(i) from items
set session transaction isolation level read committed; start transaction; commit
use app; select 1
do (select count(*) from items)
select high_priority (1)
select sql_small_result (i) from items
select i from items where i = 1 for update nowait
select i from items where i = 1 for update skip locked
update items set i = 1 where i = 9; select row_count()
drop table if exists tx; create table tx (i int); drop table tx
""".strip().split("\n")
OF_PROGRAMS += ["select i from items where i = 1 for update nowait; select 1", "select i from items where i = 1 for update wait 1", "alter table items nowait comment 'x'", "truncate table items nowait"] if MARIADB else []


@weir
def texts_of_programs_pin_nobody(_context):
    """Single statements and several in one text, on a pool of two: whoever sets variables and settings with a SET at the head of a text, or asks for
    a row without waiting, keeps no server for it."""
    admin("create table if not exists app.items (i int)")
    with start(2) as w:
        with Wire(w.target()) as wire:
            wire.ask("select i from items")
            eventually(lambda: w.metric("weir_catalogue_reads", protocol="mysql") > 0, "the catalogue is read")
        for text in OF_PROGRAMS:
            with Wire(w.target(), BASIC | MULTI_STATEMENTS) as wire:
                wire.command(QUERY, text)
                told = wire.reply(QUERY)
                assert all(what != "err" for what, _ in told), (text, told)
                wire.command(PING)
                wire.reply(PING)
                eventually(lambda: pinned(w) == 0, f"{text}: no pin")


# A lock that each may take once, whose answer is not seen.
TRIED = """
select if(get_lock('tried', 0), unix_timestamp(), null) as acquired
select get_lock('tried', 0) = 1
select coalesce(get_lock('tried', 0), 0), 1
set @l = get_lock('tried', 0)
select get_lock('tried', 0) into @l
do get_lock('tried', 0)
""".strip().split("\n")


@weir
def a_lock_whose_answer_is_not_seen_is_free_behind_its_release(_context):
    """In these forms a server takes it once: one release frees it, and its client's server."""
    with start(1) as w, Wire(server().direct()) as other:
        for text in TRIED:
            for release in ("select release_lock('tried')", "do release_lock('tried')"):
                with Wire(w.target()) as wire:
                    wire.ask(text)
                    assert other.ask("select is_free_lock('tried')") == [["0"]], f"{text}: it is taken"
                    eventually(lambda: pinned(w) == 1, f"{text}: a pin")
                    wire.ask(release)
                    eventually(lambda: pinned(w) == 0, f"{text}: no pin")
                    assert other.ask("select is_free_lock('tried')") == [["1"]], f"{text}: it is free"
        # One that may be held twice is nobody's but its client's until that goes.
        with Wire(w.target()) as wire:
            wire.ask("do get_lock('tried', 0)")
            wire.ask("do get_lock('tried', 0)")
            wire.ask("select release_lock('tried')")
            wire.ask("select 1")
            assert other.ask("select is_free_lock('tried')") == [["0"]]
            eventually(lambda: pinned(w) == 1, "a pin")


OF_ANOTHER_SCHEMA = """
select elsewhere.f(1)
call elsewhere.p()
select * from elsewhere.v
select * from elsewhere.vv
select * from elsewhere.vi
create or replace view elsewhere.vx as select a from elsewhere.v
show columns from elsewhere.v
show create view elsewhere.v
select user from mysql.user where user = 'root'
show columns from mysql.user
select count(*) > 0 from information_schema.columns
select sum(data_length), table_schema from information_schema.tables group by table_schema
""".strip().split("\n")


@weir
def code_and_views_of_another_schema_pin_nobody(_context):
    """A server enters the schema of code, MariaDB that of a view too, and comes back, and says that its session has changed."""
    admin(
        "drop database if exists elsewhere", "create database elsewhere", "create table elsewhere.t (a int)", "insert into elsewhere.t values (1)",
        "create function elsewhere.f(a int) returns int deterministic return a + 1", "create procedure elsewhere.p() select a from t",
        "create view elsewhere.v as select a from elsewhere.t", "create view elsewhere.vv as select a from elsewhere.v",
        "create sql security invoker view elsewhere.vi as select a from elsewhere.t",
        "create procedure elsewhere.sets() set session group_concat_max_len = 77",
    )
    try:
        with start(2) as w:
            with Wire(w.target()) as wire:
                wire.ask("select 1 from information_schema.tables where table_schema = 'x'")
                eventually(lambda: w.metric("weir_catalogue_reads", protocol="mysql") > 0, "the catalogue is read")
            for text in OF_ANOTHER_SCHEMA:
                with Wire(w.target()) as wire:
                    wire.ask(text)
                    wire.ask("select 1")
                    eventually(lambda: pinned(w) == 0, f"{text}: no pin")
            # What is set there stays with its client, and is nobody else's.
            with Wire(w.target()) as wire, Wire(w.target()) as another:
                wire.ask("call elsewhere.sets()")
                assert another.ask("select @@group_concat_max_len = 77") == [["0"]]
                assert wire.ask("select @@group_concat_max_len") == [["77"]]
    finally:
        admin("drop database elsewhere")


@weir
def a_procedure_that_counts_what_it_leaves_out_pins_nobody(_context):
    """SQL_CALC_FOUND_ROWS in a procedure: its client finds FOUND_ROWS() wherever it asks."""
    admin(
        "create table if not exists app.paged (i int)", "delete from app.paged", "insert into app.paged values (1), (2), (3)",
        "drop procedure if exists app.pages", "create procedure app.pages() begin select sql_calc_found_rows i from app.paged limit 1; end",
    )
    with start(1) as w, Wire(w.target()) as one, Wire(w.target()) as other:
        one.ask("select 1 from app.paged")
        eventually(lambda: w.metric("weir_catalogue_reads", protocol="mysql") > 0, "the catalogue is read")
        one.ask("call app.pages()")
        eventually(lambda: pinned(w) == 0, "no pin")
        assert other.ask("select i from app.paged where i = 2") == [["2"]]
        assert one.ask("select found_rows()") == [["3"]]


@weir
def a_temporary_table_named_in_double_quotes_is_let_go(_context):
    with start(1) as w, Wire(w.target()) as one, Wire(w.target()) as other:
        one.ask("set sql_mode = 'ANSI_QUOTES'")
        one.ask('create temporary table "let_go" (a int)')
        eventually(lambda: pinned(w) == 1, "a pin")
        one.ask("drop temporary table let_go")
        eventually(lambda: pinned(w) == 0, "no pin")
        assert other.ask("select 1") == [["1"]]


# Each statement of a client, separated by `|||`: what PREPARE is given is a literal, or a variable whose value goes along with its client.
KNOWN_DYNAMIC = """
prepare s1 from 'select ?' ||| set @a = 1 ||| execute s1 using @a ||| deallocate prepare s1
set @s = 'select 1' ||| prepare s1 from @s ||| execute s1 ||| deallocate prepare s1
set @s = (select if(count(*) = 0, 'create table if not exists app.dynamic (i int)', 'select 1') from information_schema.columns where table_name = 'no') \
||| prepare s1 from @s ||| execute s1 ||| drop prepare s1
select group_concat(concat('sum(i=', i, ')')) into @s from items ||| set @s = concat('select ', ifnull(@s, '1'), ' from items') \
||| prepare s1 from @s ||| execute s1 ||| deallocate prepare s1
prepare s1 from 'insert into items values (?)' ||| execute s1 using @a ||| execute s1 using @b ||| deallocate prepare s1
""".strip().split("\n")

LEAVING_DYNAMIC = """
prepare s1 from 'set @zz = 1' ||| execute s1 ||| deallocate prepare s1
prepare s1 from 'set time_zone = ''+09:00''' ||| execute s1 ||| deallocate prepare s1
prepare s1 from 'select 1 into @zz' ||| execute s1 ||| deallocate prepare s1
prepare s1 from 'create temporary table dynamic_t (i int)' ||| execute s1 ||| deallocate prepare s1
prepare s1 from 'select get_lock(''dyn'', 0)' ||| execute s1 ||| deallocate prepare s1
set @s = 'select get_lock("dyn", 0)' ||| prepare s1 from @s ||| execute s1 ||| deallocate prepare s1
prepare s1 from 'select 1' ||| prepare s1 from 'set @zz = 2' ||| execute s1 ||| deallocate prepare s1
begin ||| set @s = 'set @zz = 3' ||| prepare s1 from @s ||| execute s1 ||| commit ||| deallocate prepare s1
""".strip().split("\n")


@weir
def sql_of_a_variable_that_is_known_pins_nobody(_context):
    """PREPARE, EXECUTE, DEALLOCATE as programs have them for tables and columns that they do not know when they are written. What such a statement
    leaves stays with its client."""
    admin("create table if not exists app.items (i int)", "drop table if exists app.dynamic")
    with start(2) as w:
        with Wire(w.target()) as wire:
            wire.ask("select i from items")
            eventually(lambda: w.metric("weir_catalogue_reads", protocol="mysql") > 0, "the catalogue is read")
        for text in KNOWN_DYNAMIC:
            with Wire(w.target()) as wire:
                for statement in text.split("|||"):
                    wire.ask(statement.strip())
                eventually(lambda: pinned(w) == 0, f"{text}: no pin")
        probe = "select @zz, @@time_zone, is_free_lock('dyn')"
        for text in LEAVING_DYNAMIC:
            with Wire(w.target()) as wire, Wire(w.target()) as other, Wire(server().direct()) as direct:
                for statement in text.split("|||"):
                    wire.ask(statement.strip())
                    direct.ask(statement.strip().replace("dyn'", "dyn2'").replace('dyn"', 'dyn2"').replace("dynamic_t", "dynamic_t2"))
                assert other.ask("select @zz, @@time_zone <> '+09:00'") == [[None, "1"]], text
                assert wire.ask(probe) == direct.ask(probe.replace("dyn", "dyn2")), text
                eventually(lambda: pinned(w) == 1, f"{text}: a pin")


@weir
def an_execute_of_nothing_pins_nobody(_context):
    with start(1) as w:
        for text in ("execute nothing", "prepare s1 from 'select 1' ||| deallocate prepare s1 ||| execute s1"):
            with Wire(w.target()) as wire:
                *before, last = text.split("|||")
                for statement in before:
                    wire.ask(statement.strip())
                try:
                    wire.ask(last.strip())
                    raise AssertionError(text)
                except MyError as e:
                    assert "1243" in str(e), e
                eventually(lambda: pinned(w) == 0, f"{text}: no pin")


# --- What no reset takes away ---------------------------------------------------------------------------------------------------

ROLES = ["drop role if exists helper", "create role helper", "grant helper to app@'%'", "drop procedure if exists app.p_act",
         "create procedure app.p_act() sql security invoker set role helper"]


@weir
def a_role_ends_with_its_client(_context):
    """COM_RESET_CONNECTION leaves it, and on MariaDB COM_CHANGE_USER does."""
    for take in ("set role helper", "call p_act()", "prepare s from 'set role helper' ||| execute s"):
        def script(room, take=take):
            room.note("c", "select current_role()")
            for statement in take.split("|||"):
                room.note("a", statement.strip())
            room.note("a", "select current_role()")
            room.clients.pop("a").leave()
            room.play("b select current_role()\nb select current_role()\nc select current_role()")

        same(script, ROLES, pool_sizes=(1, 2))


@weir
def a_role_outlives_a_reset_of_its_client(_context):
    def script(room):
        room.play("a set role helper\na select current_role()")
        room.say("a", room.a.reset())
        room.play("b select current_role()\na select current_role()\nb select current_role()")
        room.clients.pop("a").leave()
        room.play("b select current_role()\nd select current_role()")

    same(script, ROLES, pool_sizes=(2,))


@weir
def a_role_of_code_is_nobody_else_s_behind_a_reset(_context):
    def script(room):
        room.play("c select current_role()\na call p_act()")
        room.say("a", room.a.reset())
        room.play("b select current_role()\nc select current_role()\na select current_role()")
        room.clients.pop("a").leave()
        room.play("b select current_role()\nc select current_role()\nb select current_role()")

    same(script, ROLES, pool_sizes=(2,))


@weir
def a_profile_is_shown_to_nobody_else(_context):
    for ends, pool_size in (("leave", 1), ("reset", 2)):
        def script(room, ends=ends):
            room.play("a set profiling = 1\na select 'secret of a'")
            if ends == "leave":
                room.clients.pop("a").leave()
            else:
                room.say("a", room.a.reset())
            room.play("b show profiles\nb select count(*) from information_schema.profiling")

        same(script, pool_sizes=(pool_size,))
