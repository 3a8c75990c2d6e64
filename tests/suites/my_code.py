"""What the database's own code does: procedures, functions, triggers, views. Who runs it keeps what it leaves, nobody else gets it,
and nothing of it runs twice. On a server of its own."""

import contextlib
import functools
import os

from weirtest.case import eventually, in_threads, weir
from weirtest.mywire import QUERY, STMT_EXECUTE, MyError, Wire, execute_payload, text_row
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[mariadb").split("[")[1].rstrip("]")

# Only reads, and takes some tenths of a second: whoever rides behind it is taken back.
SLOW = "select count(*) from big a, big b where a.i + b.i < 0 and a.i < 200"

SCHEMA = [
    "create table app.big (i int primary key)",
    "insert into app.big values " + ",".join(f"({i})" for i in range(1, 20001)),
    "create table app.logs (id int auto_increment primary key, what varchar(80))",
    # A name of PostgreSQL's, and of other versions' built-in functions.
    "create function app.any_of(w varchar(80)) returns int deterministic modifies sql data "
    "begin insert into app.logs (what) values (w); return 1; end",
    "create function app.overlaps(w varchar(80)) returns int deterministic modifies sql data "
    "begin insert into app.logs (what) values (w); return 1; end",
    "create view app.writes as select app.any_of('by a view') as w",
    "create function app.plain(x int) returns int deterministic begin declare y int; set y = x + 1; return y; end",
    "create procedure app.p_mode() begin set sql_mode = 'ANSI_QUOTES'; set time_zone = '+09:00'; end",
    "create procedure app.p_var() begin set @a = 5; end",
    "create procedure app.p_into() begin select 7 into @b; end",
    "create procedure app.p_temp() begin create temporary table app.temp_of_p (a int); end",
    "set sql_mode = 'ANSI'",
    "create procedure app.p_odd(x int) begin set @odd = x; end",
    "set sql_mode = default",
    "create procedure app.p_runs(x int) begin set @q = concat('set @odd = ', x); prepare s from @q; execute s; deallocate prepare s; end",
    "create procedure app.p_fails() begin set @a = 6; signal sqlstate '45000'; end",
    "create procedure app.p_clean() begin declare x int; select count(*) into x from app.logs; end",
    "create function app.f_lock() returns int deterministic begin return get_lock('of_f', 0); end",
    "create function app.f_var() returns int deterministic begin set @f = 8; return 1; end",
    "create view app.v_var as select app.f_var() as v",
    "create table app.marked (id int auto_increment primary key, a int)",
    "create trigger app.marked_trigger before insert on app.marked for each row set @t = new.a",
    "create view app.into_marked as select a from app.marked",
    "create table app.locked (id int auto_increment primary key, a int)",
    "create trigger app.locked_trigger before insert on app.locked for each row set new.a = get_lock('of_t', 0)",
    "create table app.audited (id int auto_increment primary key, a int)",
    "create view app.v_last as select last_insert_id() as id",
    "create function app.f_last() returns bigint not deterministic reads sql data begin return (select last_insert_id()); end",
    "create trigger app.audited_trigger after insert on app.audited for each row insert into app.logs (what) values ('audit')",
]


@functools.cache
def server():
    private = PrivateServer(KIND)
    with Wire(private.superuser()) as wire:
        for statement in SCHEMA:
            wire.ask(statement)
    return private


def start(pool_size=1, settings=(), **kw):
    return Weir.before(KIND, port=server().port, mode="transaction", pool_size=pool_size,
                       settings=["workers=1", *settings], **kw)


@contextlib.contextmanager
def admin():
    with Wire(server().superuser()) as wire:
        yield wire


def pinned(w):
    return w.metric("weir_pinned_servers", protocol="mysql")


def behind_a_slow_one(w, text, prepared=False):
    """Asks while another's slow read is under way, with one server for both."""
    with Wire(w.target()) as slow, Wire(w.target()) as wire:
        if prepared:
            statement = wire.prepare(text)
        slow.command(QUERY, SLOW)
        if prepared:
            wire.command(STMT_EXECUTE, execute_payload(statement))
            wire.reply(STMT_EXECUTE)
        else:
            wire.command(QUERY, text)
            wire.reply(QUERY)
        slow.reply(QUERY)


@weir
def what_writes_under_a_known_name_writes_once(_context):
    """Behind a slow read, and with servers to spare; text and prepared."""
    texts = ["select any_of('{}')", "select `any_of`('{}')", "select app.overlaps('{}')",
             "select any_of(w) from (select '{}' as w) as t"]
    with admin() as a:
        for pool_size in (1, 20):
            with start(pool_size=pool_size) as w:
                for n, text in enumerate(texts):
                    for prepared in (False, True):
                        tag = f"{pool_size}/{n}/{prepared}"
                        behind_a_slow_one(w, text.format(tag), prepared)
                        found = a.ask(f"select count(*) from app.logs where what = '{tag}'")
                        assert found == [["1"]], (tag, text, found)


@weir
def code_that_asks_for_the_last_id_gets_its_clients_own(_context):
    for ask in ("select id from v_last", "select f_last()", "select v.id from v_last v where v.id = f_last()"):
        for prepared in (False, True):
            with start() as w, Wire(w.target()) as one, Wire(w.target()) as other:
                def asked(wire, ask=ask, prepared=prepared):
                    if not prepared:
                        return wire.ask(ask)
                    wire.command(STMT_EXECUTE, execute_payload(wire.prepare(ask)))
                    return [what for what in wire.reply(STMT_EXECUTE) if what[0] == "row"]

                none = asked(other)
                one.ask("insert into audited (a) values (1)")
                own = asked(one)
                assert own != none, (ask, own)
                assert asked(other) == none, (ask, own)
                other.ask("select 1")
                assert asked(one) == own and asked(other) == none, ask


@weir
def a_view_that_writes_writes_once(_context):
    with start() as w, admin() as a:
        for prepared in (False, True):
            before = int(a.ask("select count(*) from app.logs where what = 'by a view'")[0][0])
            behind_a_slow_one(w, "select w from writes", prepared)
            assert a.ask("select count(*) from app.logs where what = 'by a view'") == [[str(before + 1)]]


@weir
def what_code_sets_stays_with_its_client_and_nobody_else_has_it(_context):
    """Procedures, functions, views and triggers; also when the statement fails."""
    cases = [("call p_var()", "select @a", "5"), ("call p_into()", "select @b", "7"),
             ("select f_var()", "select @f", "8"), ("select v from v_var", "select @f", "8"),
             ("insert into marked (a) values (9)", "select @t", "9"), ("insert into into_marked values (9)", "select @t", "9"),
             ("call p_mode()", "select @@time_zone", "+09:00"), ("call p_fails()", "select @a", "6")]
    for code, ask, mine in cases:
        with start(pool_size=2) as w, Wire(w.target()) as one, Wire(w.target()) as other:
            theirs = other.ask(ask)
            assert theirs != [[mine]]
            with contextlib.suppress(MyError):
                one.ask(code)
            for _ in range(2):
                assert other.ask(ask) == theirs, code
            assert one.ask(ask) == [[mine]], code
            # A variable goes along with its client.
            pins = 1 if ask == "select @@time_zone" else 0
            eventually(lambda: pinned(w) == pins, f"{code}: {pins} pins")
            one.close()
            eventually(lambda: pinned(w) == 0, "its server is free")
            with Wire(w.target()) as a, Wire(w.target()) as b:
                a.ask("begin")
                assert a.ask(ask) == b.ask(ask) == theirs, code


@weir
def a_temporary_table_of_a_procedure_is_its_callers(_context):
    with start(pool_size=2) as w, Wire(w.target()) as one, Wire(w.target()) as other:
        one.ask("call p_temp()")
        for _ in range(2):
            try:
                other.ask("select count(*) from temp_of_p")
                raise AssertionError("another's temporary table was seen")
            except MyError as e:
                assert e.code == 1146, e
        assert one.ask("select count(*) from temp_of_p") == [["0"]]


@weir
def a_lock_that_code_takes_has_one_owner(_context):
    for code, name in (("select f_lock()", "of_f"), ("insert into locked (a) values (1)", "of_t"),
                       ("insert into logs (what) select f_lock()", "of_f")):
        with start(pool_size=2) as w, Wire(w.target()) as one, Wire(w.target()) as other, admin() as a:
            one.ask(code)
            for _ in range(2):
                assert other.ask(f"select get_lock('{name}', 0)") == [["0"]], code
            other.close()
            one.close()
            eventually(lambda: a.ask(f"select is_free_lock('{name}')") == [["1"]], f"the lock is free: {code}")


@weir
def code_that_leaves_nothing_ties_nobody_and_pure_code_is_shared(_context):
    with start() as w, Wire(w.target()) as one, Wire(w.target()) as other:
        for wire in (one, other, one, other):
            wire.ask("insert into audited (a) values (1)")
            wire.ask("call p_clean()")
            assert wire.ask("select plain(1)") == [["2"]]
        eventually(lambda: pinned(w) == 0, "no pin")
        before = w.metric("weir_shared_requests", protocol="mysql")

        def work(i):
            with Wire(w.target()) as wire:
                for _ in range(50):
                    assert wire.ask(f"select plain({i})") == [[str(i + 1)]]

        raised = in_threads(20, work)
        assert not raised, raised[:3]
        eventually(lambda: w.metric("weir_shared_requests", protocol="mysql") > before + 100, "weir_shared_requests > before + 100")


# Bodies as programs have them: columns of the row, local variables, cursors, handlers, loops, statements of several kinds.
BODIES = [
    "create trigger app.tb1 before insert on app.body for each row set new.t = upper(new.t)",
    "create trigger app.tb2 before update on app.body for each row begin declare x int; set new.t = upper(new.t), x = 1; "
    "if new.u is null then set new.u = now(); end if; end",
    "create trigger app.tb3 after delete on app.body for each row insert into app.body_log (what, n) values (old.t, row_count())",
    "create function app.b_case(i int) returns varchar(20) deterministic begin declare r varchar(20) default 'x'; "
    "case when i > 1 then set r = 'more'; else set r := 'less'; end case; while i > 0 do set i = i - 1; end while; return r; end",
    "create procedure app.b_cursor(in a int, out n int) begin declare done int default false; declare v int; "
    "declare c cursor for select id from app.body; declare continue handler for not found set done = true; set n = 0; open c; "
    "l: loop fetch c into v; if done then leave l; end if; set n = n + 1; end loop; close c; end",
    "create procedure app.b_tx(in a varchar(20)) begin declare exit handler for sqlexception begin rollback; resignal; end; "
    "start transaction; insert into app.body (t) values (a); commit; end",
]


@weir
def code_as_programs_have_it_pins_nobody(_context):
    """Triggers that set columns of their row, local variables, cursors, handlers, transactions of a procedure's own."""
    with admin() as a:
        a.ask("create table app.body (id int auto_increment primary key, t varchar(20), u datetime)")
        a.ask("create table app.body_log (what varchar(20), n int)")
        for body in BODIES:
            a.ask(body)
        with start(pool_size=2) as w, Wire(w.target()) as wire:
            wire.ask("select 1")
            eventually(lambda: w.metric("weir_catalogue_reads", protocol="mysql") > 0, "the catalogue is read")
            for text in ("insert into body (t) values ('a')", "update body set t = 'b'", "select b_case(2)", "call b_cursor(1, @n)", "select @n",
                         "call b_tx('c')", "delete from body where t = 'C'"):
                wire.command(QUERY, text)
                told = wire.reply(QUERY)
                assert all(what != "err" for what, _ in told), (text, told)
                assert wire.ask("select 1") == [["1"]]
                eventually(lambda: pinned(w) == 0, f"{text}: no pin")


@weir
def code_made_by_anybody_is_known_at_its_first_call(_context):
    """Through Weir at once; behind its back within the interval."""
    with start(pool_size=3) as w, Wire(w.target()) as maker, Wire(w.target()) as one, Wire(w.target()) as other:
        assert other.ask("select @n") == [[None]]
        maker.ask("create trigger newly before insert on audited for each row set @n = 4")
        one.ask("insert into audited (a) values (1)")
        assert other.ask("select @n") == [[None]]
        assert one.ask("select @n") == [["4"]]
        eventually(lambda: pinned(w) == 0, "its variable goes along with it")
        assert other.ask("select @n") == [[None]]
        assert one.ask("select @n") == [["4"]]
        maker.ask("drop trigger newly")
    with start(pool_size=3, settings=["pool.catalogue_check_interval=0"]) as w, admin() as a:
        with Wire(w.target()) as one, Wire(w.target()) as other:
            one.ask("insert into audited (a) values (1)")
            reads = w.metric("weir_catalogue_reads", protocol="mysql")
            a.ask("create trigger app.newly before insert on app.audited for each row set @n = 4")
            eventually(lambda: one.ask("select 1") and w.metric("weir_catalogue_reads", protocol="mysql") > reads, "it is noticed")
            one.ask("insert into audited (a) values (1)")
            assert other.ask("select @n") == [[None]]
            assert one.ask("select @n") == [["4"]]
            a.ask("drop trigger app.newly")


@weir
def what_code_that_was_changed_elsewhere_leaves_is_taken_away(_context):
    """The change is not seen before the function runs; what that leaves goes before another client gets the server."""
    with admin() as a:
        make = "create function app.changes_later() returns int deterministic begin {} return 1; end"
        a.ask("drop function if exists app.changes_later")
        a.ask(make.format(""))
        for pool_size in (1, 2):
            with start(pool_size=pool_size, settings=["pool.catalogue_check_interval=0.1"]) as w, Wire(w.target()) as one, Wire(w.target()) as other:
                one.ask("select app.changes_later()")
                a.ask("drop function app.changes_later")
                a.ask(make.format("declare l int; set l = get_lock('left', 0);"))
                reads = w.metric("weir_catalogue_reads", protocol="mysql")
                assert one.ask("select app.changes_later()") == [["1"]]
                eventually(lambda: one.ask("select 1") and w.metric("weir_catalogue_reads", protocol="mysql") > reads, "it is noticed")
                # All servers of the pool have a client at once; one that is closed gives its locks back a moment later.
                if pool_size == 2:
                    one.ask("begin")
                    one.ask("select 1")
                assert other.ask("select 1") == [["1"]]
                if pool_size == 2:
                    one.ask("commit")
                eventually(lambda: a.ask("select is_free_lock('left')") == [["1"]], "it is taken away")
                a.ask("drop function app.changes_later")
                a.ask(make.format(""))
        a.ask("drop function app.changes_later")


@weir
def a_catalogue_that_stays_as_it_is_is_read_once(_context):
    """What Weir sums up of the rows that it reads is what the server says of the catalogue when it is asked whether that has changed."""
    with start(pool_size=1, settings=["pool.catalogue_check_interval=0"]) as w, admin() as a, Wire(w.target()) as one:
        for change in ("create function app.kept_1() returns int deterministic return 1", "create view app.kept_2 as select 1 as one",
                       "create trigger app.kept_3 before insert on app.audited for each row set @kept = 1"):
            a.ask(change)
            reads = w.metric("weir_catalogue_reads", protocol="mysql")
            eventually(lambda: one.ask("select 1") and w.metric("weir_catalogue_reads", protocol="mysql") > reads, "it is noticed")
        reads = w.metric("weir_catalogue_reads", protocol="mysql")
        asked = lambda: int(a.ask("show global status like 'Com_show_status'")[0][1])
        before = asked()
        # Each look is one of these as well; Weir's question is another.
        looks = 0
        while asked() - before - looks < 5:
            assert one.ask("select 1") == [["1"]]
            looks += 1
        assert w.metric("weir_catalogue_reads", protocol="mysql") == reads
        for change in ("drop trigger app.kept_3", "drop view app.kept_2", "drop function app.kept_1"):
            a.ask(change)


@weir(only="mysql")
def code_is_known_at_its_first_call_while_others_change_theirs(_context):
    """One client drops a procedure that another's transaction has called, and waits (not on MariaDB). Who makes code and calls it meanwhile keeps no
    server."""
    with admin() as a:
        a.ask("drop procedure if exists app.in_use")
        a.ask("create procedure app.in_use() begin declare x int; end")
    with start(pool_size=3) as w, Wire(w.target()) as caller, Wire(w.target()) as dropper, Wire(w.target()) as maker:
        caller.ask("begin")
        caller.ask("call in_use()")
        dropper.command(QUERY, "drop procedure in_use")
        with admin() as a:
            eventually(lambda: any("drop procedure" in str(row[7]) for row in a.ask("show full processlist") if row[7]), "the drop has begun")
        for _ in range(2):
            maker.ask("create procedure meanwhile() begin declare x int; end")
            maker.ask("call meanwhile()")
            maker.ask("drop procedure meanwhile")
        eventually(lambda: pinned(w) == 0, "it is known")
        caller.ask("commit")
        dropper.reply(QUERY)


def is_running(text):
    with admin() as a:
        return any(row[7] and row[7].startswith(text) for row in a.ask("show full processlist"))


@weir
def code_is_known_at_its_first_call_while_others_change_tables(_context):
    """One client alters a table that another's transaction has read, and waits. Who makes code and calls it meanwhile keeps no server."""
    with admin() as a:
        a.ask("drop table if exists app.altered")
        a.ask("create table app.altered (a int)")
    with start(pool_size=3) as w, Wire(w.target()) as reader, Wire(w.target()) as alterer, Wire(w.target()) as maker:
        reader.ask("begin")
        reader.ask("select * from altered")
        alterer.command(QUERY, "alter table altered add b int")
        eventually(lambda: is_running("alter table altered"), "the change has begun")
        for _ in range(2):
            maker.ask("create procedure beside() begin declare x int; end")
            maker.ask("call beside()")
            maker.ask("drop procedure beside")
        assert w.metric("weir_pins_total", protocol="mysql", reason="code") == 0
        eventually(lambda: pinned(w) == 0, "it is known")
        reader.ask("commit")
        alterer.reply(QUERY)


@weir(only="mariadb")
def a_catalogue_that_is_locked_is_not_waited_for(_context):
    """MariaDB's lists of triggers and views open each table, and one that is being filled by its CREATE is locked until that ends."""
    with start(pool_size=1) as w, Wire(w.target()) as one, Wire(server().superuser()) as other:
        one.ask("select 1")
        other.command(QUERY, "create table app.filled as select sleep(600) as x")
        try:
            eventually(lambda: is_running("create table app.filled"), "it has begun")
            one.ask("create procedure beside() begin declare x int; end")
            one.ask("call beside()")
            assert one.ask("select 1") == [["1"]]
            one.ask("drop procedure beside")
        finally:
            with admin() as a:
                for row in a.ask("show full processlist"):
                    if row[7] and row[7].startswith("create table app.filled"):
                        a.ask(f"kill query {row[0]}")
        assert other.reply(QUERY)[-1][0] == "err"
    with admin() as a:
        a.ask("drop table if exists app.filled")


@weir
def what_may_not_be_seen_counts_as_code_that_may_do_anything(_context):
    """A user without the TRIGGER privilege keeps its server when it writes, and nobody else gets what a trigger left."""
    with start(pool_size=2, users=["app_blind"]) as w:
        target = w.target().login("app_blind")
        with Wire(target) as one, Wire(target) as other:
            one.ask("insert into marked (a) values (3)")
            for _ in range(2):
                assert other.ask("select @t") == [[None]]
            assert one.ask("select @t") == [["3"]]


# What the servers call a function and what is none of a client's to call, waits, or asks about the session.
NOT_CALLED = ("internal_", "can_access_", "get_dd_", "is_visible_dd", "is_dd_", "asymmetric_", "create_", "wsrep_", "convert_cpu_", "schemas", "parentheses")


@weir
def functions_that_come_with_the_database_pin_nobody(_context):
    """Every one that the server itself lists, and a name that nobody has heard of."""
    listed = "select lower(name) from mysql.help_topic where help_category_id in (select help_category_id from mysql.help_category " \
        "where name regexp 'function|operator|geo|wk[bt]|mbr|json|point|linestring|polygon')"
    with admin() as a:
        names = {row[0] for row in a.ask(listed)}
        if KIND == "mariadb":
            names |= {row[0] for row in a.ask("select lower(function) from information_schema.sql_functions")}
    names = {name.removesuffix(" function").replace("\\_", "_") for name in names}
    names = sorted(name for name in names if name.replace("_", "a").isalnum() and not name[0].isdigit() and not name.startswith(NOT_CALLED))
    assert len(names) > 200, names
    with start(pool_size=2) as w:
        def pins(name):
            with Wire(w.target()) as wire:
                for call in (f"select {name}('1', 2)", f"select {name}('a')"):
                    with contextlib.suppress(MyError):
                        wire.ask(call)
            return w.metric("weir_pins_total", protocol="mysql", reason="code")

        with Wire(w.target()) as wire:
            for name in names:
                with contextlib.suppress(MyError):
                    wire.ask(f"select {name}('1', 2)")
        if w.metric("weir_pins_total", protocol="mysql", reason="code") != 0:
            count, pinning = pins("abs"), []
            for name in names:
                before, count = count, pins(name)
                if count > before:
                    pinning.append(name)
            raise AssertionError(f"these pin: {pinning}")
        assert pins("nobody_has_heard_of_it") == 0, "it is not there, and nothing ran"


@weir
def what_unknown_code_means_is_the_operators_choice(_context):
    """A procedure that was made in a mode in which texts are read in another way. Clients alive at once, more than servers."""
    # The variables that it names are seen in each reading of it, and are its client's own in any case.
    for policy, procedure, met in (("reset", "p_odd", None), ("reset", "p_runs", None), ("pass", "p_odd", None), ("pass", "p_runs", "7")):
        with start(pool_size=1, settings=[f"pool.unknown_code={policy}"]) as w, contextlib.ExitStack() as stack:
            wires = [stack.enter_context(Wire(w.target())) for _ in range(4)]
            for one, other in zip(wires, wires[1:]):
                one.ask(f"call app.{procedure}(7)")
                assert other.ask("select @odd") == [[met]], (policy, procedure)
                eventually(lambda: pinned(w) == 0, "nobody is pinned")
    with start(pool_size=2) as w, Wire(w.target()) as one, Wire(w.target()) as other:
        one.ask("call app.p_odd(7)")
        eventually(lambda: pinned(w) == 1, "it is pinned")
        assert other.ask("select @odd") == [[None]] and one.ask("select @odd") == [["7"]]
