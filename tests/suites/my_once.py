"""The same question, asked once, for MySQL and MariaDB: identical reads that wait at the same moment are sent once, and all who asked get
the answer. Who gets which, who must ask by itself, and what each can ask about it afterwards. On a server of its own."""

import contextlib
import functools
import os

from weirtest.case import eventually, in_threads, weir
from weirtest.mywire import BASIC, DEPRECATE_EOF, QUERY, MyError, Wire, text_row
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[mariadb").split("[")[1].rstrip("]")
MANY = 24


@functools.cache
def server():
    private = PrivateServer(KIND)
    with Wire(private.superuser()) as wire:
        wire.ask("create table app.once (i int primary key, twice int, at timestamp null)")
        wire.ask("insert into app.once values " + ",".join(f"({i},{2 * i},from_unixtime({i}))" for i in range(1, 2001)))
        wire.ask("create view app.dice as select i, rand() as r from app.once")
        wire.ask("create function app.roll() returns double no sql return rand()")
        wire.ask("create database other")
        wire.ask("create table other.once (i int primary key, twice int)")
        wire.ask("insert into other.once values (21, 0)")
        if KIND == "mariadb":
            wire.ask("create table app.made (i int, u char(36) as (uuid()) virtual)")
            wire.ask("insert into app.made (i) values (1)")
        with contextlib.suppress(MyError):
            wire.ask("grant all on other.* to app")
    return private


def start(settings=(), **kw):
    return Weir.before(KIND, port=server().port, mode="transaction", pool_size=1, settings=["workers=1", "pool.share_answers=true", *settings], **kw)


def given(w):
    return w.metric("weir_shared_answers", protocol="mysql")


def waiting(w):
    return w.metric("weir_waiting_clients", protocol="mysql")


@contextlib.contextmanager
def clients(w, many=MANY, **kw):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Wire(w.target(), **kw)) for n in range(many)]


@contextlib.contextmanager
def busy(w):
    """The only server has a transaction, up to the end of this."""
    with Wire(w.target()) as holder:
        holder.ask("begin")
        holder.ask("select i from once where i = 1")
        yield holder
        holder.ask("commit")


def at_once(w, wires, text):
    """All of them send their text while the only server is taken; returns how many answers were given to more than one."""
    before = given(w)
    with busy(w):
        for n, wire in enumerate(wires):
            wire.command(QUERY, text(n) if callable(text) else text)
        eventually(lambda: waiting(w) == len(wires), "they wait")
    return lambda: given(w) - before


def rows(wire):
    got = wire.reply()
    for what, payload in got:
        if what == "err":
            raise MyError(payload)
    return [text_row(payload) for what, payload in got if what == "row"]


@weir
def identical_reads_are_sent_once(_context):
    """Of clients that read old packets and new ones. Afterwards each is told about its last statement what is so."""
    for capabilities in (BASIC, BASIC | DEPRECATE_EOF):
        with start() as w, clients(w, capabilities=capabilities) as wires:
            shared = at_once(w, wires, "select i, twice from once where i between 21 and 23")
            said = [wire.reply() for wire in wires]
            assert all(one == said[0] for one in said), said
            assert [text_row(payload) for what, payload in said[0] if what == "row"] == [["21", "42"], ["22", "44"], ["23", "46"]]
            assert shared() == MANY - 1, shared()
            for n, wire in enumerate(wires):
                assert wire.ask("select found_rows()") == [["3"]]
                assert wire.ask(f"select {n} from once where i = 1") == [[str(n)]]
                assert wire.ask("select row_count()") == [["-1"]]
                assert wire.ask("show warnings") == []
                assert wire.ask("select last_insert_id()") == [["0"]]
                wire.ask(f"update once set twice = twice where i = {n + 100}")


@weir
def an_answer_is_never_older_than_its_question(_context):
    """Each writes, and then asks the same as all: whoever is given another one's answer finds its own write in it."""
    with start(settings=["pool.pipeline_depth=4"]) as w:
        def work(n):
            with Wire(w.target()) as wire:
                for turn in range(40):
                    wire.ask(f"update once set twice = {turn} where i = {1000 + n}")
                    got = wire.ask("select i, twice from once where i between 1000 and 1100 order by i")
                    mine = [row[1] for row in got if row[0] == str(1000 + n)]
                    assert mine == [str(turn)], (mine, turn)
        raised = in_threads(24, work)
        assert not raised, raised[:3]
        assert given(w) > 0


@weir
def what_differs_from_call_to_call_is_asked_by_each(_context):
    texts = ["select rand() from once where i = 1", "select uuid() from once where i = 1", "select now() from once where i = 1",
             "select r from dice where i = 1", "select roll() from once where i = 1", "select connection_id() from once where i = 1",
             "select current_user from once where i = 1", "select @@time_zone from once where i = 1",
             "select count(*) from information_schema.processlist", "select * from performance_schema.session_status limit 1",
             "select @x from once where i = 1", "select i from once where i = 1 for update", "select i from once limit 3, 2",
             "select database() from once where i = 1", "select utc_timestamp from once where i = 1"]
    if KIND == "mariadb":
        texts += ["select u from made", "select * from made"]
    with start() as w, clients(w, 6) as wires:
        for text in texts:
            shared = at_once(w, wires, text)
            for wire in wires:
                with contextlib.suppress(MyError):
                    rows(wire)
            assert shared() == 0, (text, shared())
    with start() as w, clients(w, 6) as wires:
        shared = at_once(w, wires, "select uuid() from once where i = 1")
        assert len({rows(wire)[0][0] for wire in wires}) == 6
        # And of those nobody got another's.
        shared = at_once(w, wires, lambda n: f"select twice from once where i = {n + 1}")
        assert [rows(wire) for wire in wires] == [[[str(2 * n + 2)]] for n in range(6)]
        assert shared() == 0


@weir
def settings_and_schemas_tell_questions_apart(_context):
    with start() as w, clients(w, 8) as wires:
        for n, wire in enumerate(wires):
            wire.ask(f"set time_zone = '+0{n % 2}:00'")
        shared = at_once(w, wires, "select at from once where i = 1")
        assert [rows(wire) for wire in wires] == [[["1970-01-01 00:00:01"]], [["1970-01-01 01:00:01"]]] * 4
    with start() as w, clients(w, 8) as wires:
        for wire in wires[::2]:
            wire.ask("use other")
        shared = at_once(w, wires, "select twice from once where i = 21")
        assert [rows(wire) for wire in wires] == [[["0"]], [["42"]]] * 4
        assert shared() == 6, shared()


@weir
def errors_warnings_and_large_answers_are_asked_for_by_each(_context):
    with start() as w, clients(w, 6) as wires:
        shared = at_once(w, wires, "select missing from once where i = 5")
        for wire in wires:
            try:
                rows(wire)
                raise AssertionError("no error came")
            except MyError as e:
                assert e.code == 1054, e
        assert shared() == 0
        for wire in wires:
            wire.ask("select i from once where i = 1")
        shared = at_once(w, wires, "select cast('x' as signed) from once where i = 1")
        for wire in wires:
            assert rows(wire) == [["0"]]
        for wire in wires:
            assert wire.ask("show warnings")[0][1] == "1292"
        assert shared() == 0
        for wire in wires:
            wire.ask("select i from once where i = 1")
        shared = at_once(w, wires, "select repeat('x', 1000), i from once where i <= 200")
        assert all(len(rows(wire)) == 200 for wire in wires) and shared() == 0
        shared = at_once(w, wires, "select 'still there' from once where i = 1")
        assert all(rows(wire) == [["still there"]] for wire in wires) and shared() == 5


@weir
def who_leaves_takes_nobody_along(_context):
    """The first one, whose request is to be sent, goes before it is; others do, who wait for its answer."""
    with start() as w, contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(w.target())) for _ in range(8)]
        before = given(w)
        with busy(w):
            for at, wire in enumerate(wires):
                wire.command(QUERY, "select twice from once where i = 33")
                eventually(lambda at=at: waiting(w) == at + 1, "it waits")
            for wire in (wires[0], wires[3], wires[7]):
                wire.vanish()
            eventually(lambda: waiting(w) == 5, "three have gone")
        for wire in (wires[1], wires[2], wires[4], wires[5], wires[6]):
            assert rows(wire) == [["66"]]
        assert given(w) - before == 4, given(w) - before


@weir
def a_setting_switches_it_off(_context):
    with start(settings=["pool.share_answers=false"]) as w, clients(w) as wires:
        shared = at_once(w, wires, "select twice from once where i = 21")
        assert all(rows(wire) == [["42"]] for wire in wires) and shared() == 0
