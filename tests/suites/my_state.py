"""What a session leaves behind on MySQL and MariaDB, and what has gone stale: the same scripts of several clients that live at once, direct and
through Weir with one server (and more, where that matters), must see the same."""

import functools
import os
import struct
import threading

import pymysql
from weirtest.case import eventually, weir
from weirtest.mywire import (BASIC, INIT_DB, MULTI_STATEMENTS, PING, QUERY, RESET_CONNECTION, STMT_CLOSE, STMT_EXECUTE, STMT_PREPARE, Closed, MyError, Wire,
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
        expected = ["err 1049"]
        assert room.a.ask("select * from t") == expected and room.a.ask("create table t (a int)") == expected
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
            room.play(f"""b {TRACES}
                          b select count(*) from ptmp
                          b select get_lock('fl', 0)""")

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


@weir
def no_kill_reaches_a_server(_context):
    """The numbers a client knows are Weir's; a server would take them for others'."""
    with start() as w:
        room = Room(w.target())
        for text in ("select 1; kill 99999999", "select 1; kill query @ME@", "kill 99999999; select 1"):
            assert room.a.ask(text)[-1] == "err 1235", text
        assert room.a.ask("kill 99999999") == ["err 1094"]
        assert room.a.wire.thread_id >= 1 << 30, "servers, which count, do not come to that"
        assert room.a.ask("select 1") == [["1"]]
        room.close()


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
