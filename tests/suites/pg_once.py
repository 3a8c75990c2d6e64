"""The same question, asked once: identical reads that wait at the same moment are sent once, and all who asked get the answer. Who gets
which, who must ask by itself, and what each can do afterwards. On a PostgreSQL of its own."""

import contextlib
import functools
import socket

from weirtest.case import eventually, in_threads, weir
from weirtest.pgwire import SYNC, ServerError, Wire, bind, cancel_request, describe, execute, fields, parse, query
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["postgres"]
MANY = 24


@functools.cache
def server():
    private = PrivateServer("postgres")
    with Wire(private.superuser()) as wire:
        wire.ask("create table once as select i, i * 2 as twice, gen_random_uuid() as id from generate_series(1, 2000) i")
        wire.ask("create unique index on once (i)")
        wire.ask("analyze once")
        wire.ask("create view plain_view as select i, twice from once")
        wire.ask("create view dice as select i, random() as r from once")
        wire.ask("create function roll() returns float8 language sql as 'select random()'")
        wire.ask("create table told (who text)")
        wire.ask("alter table told enable row level security")
        wire.ask("create policy own on told using (who = current_user)")
        wire.ask("insert into told values ('app')")
        wire.ask("grant select on once, plain_view, dice, told to public")
        wire.ask("grant update on once to public")
    return private


def start(settings=(), **kw):
    return Weir.before("postgres", port=server().port, mode="transaction", pool_size=1, settings=["workers=1", "pool.share_answers=true", *settings], **kw)


def given(w):
    return w.metric("weir_shared_answers", protocol="postgres")


def waiting(w):
    return w.metric("weir_waiting_clients", protocol="postgres")


@contextlib.contextmanager
def clients(w, many=MANY, params=None):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Wire(w.target(), params(n) if params else None)) for n in range(many)]


@contextlib.contextmanager
def busy(w):
    """The only server has a transaction, up to the end of this."""
    with Wire(w.target()) as holder:
        holder.ask("begin")
        holder.ask("select 1")
        yield holder
        holder.ask("commit")


def at_once(w, wires, request):
    """All of them send their request while the only server is taken; returns how many answers were given to more than one."""
    before = given(w)
    with busy(w):
        for n, wire in enumerate(wires):
            wire.send(request(n) if callable(request) else request)
        eventually(lambda: waiting(w) == len(wires), "they wait")
    return lambda: given(w) - before


def rows(wire):
    got = wire.until("Z")
    errors = [body for kind, body in got if kind == "E"]
    if errors:
        raise ServerError(fields(errors[0]))
    return [body for kind, body in got if kind == "D"]


EXTENDED = parse("select twice from once where i = $1::int") + bind(["21"]) + describe("P") + execute() + SYNC


@weir
def identical_reads_are_sent_once(_context):
    """Simple and extended, of a table and of a view over it. Afterwards each can do what it could have done."""
    for request in (query("select twice from once where i = 21"), query("select sum(twice) from plain_view where i = 21"), EXTENDED):
        with start() as w, clients(w) as wires:
            shared = at_once(w, wires, request)
            said = [wire.until("Z") for wire in wires]
            assert all(one == said[0] for one in said), said
            assert any(kind == "D" and b"42" in body for kind, body in said[0]), said[0]
            assert shared() == MANY - 1, (request, shared())
            for n, wire in enumerate(wires):
                assert wire.ask(f"select {n}") == [[str(n)]]
                wire.send(parse(f"select {n} + 1", "s") + SYNC + bind([], "s") + execute() + SYNC)
                wire.until("Z")
                assert [body[6:] for body in rows(wire)] == [str(n + 1).encode()]
            # What was parsed without a name is there for the next request, as it would be.
            if request is EXTENDED:
                for wire in wires[:3]:
                    wire.send(EXTENDED)
                    rows(wire)
                    wire.send(bind(["4"]) + execute() + SYNC)
                    assert [body[6:] for body in rows(wire)] == [b"8"]


@weir
def an_answer_is_never_older_than_its_question(_context):
    """Each writes, and then asks the same as all: whoever is given another one's answer finds its own write in it."""
    with start(settings=["pool.pipeline_depth=4"]) as w:
        def work(n):
            with Wire(w.target()) as wire:
                for turn in range(40):
                    wire.ask(f"update once set twice = greatest(twice, {turn}) where i = {1000 + n}")
                    got = wire.ask("select i, twice from once where i between 1000 and 1100 order by i")
                    mine = [row[1] for row in got if row[0] == str(1000 + n)]
                    assert int(mine[0]) >= max(turn, 0), (mine, turn)
        with Wire(server().superuser()) as a:
            a.ask("update once set twice = 0 where i between 1000 and 1100")
        raised = in_threads(24, work)
        assert not raised, raised[:3]
        assert given(w) > 0
        with Wire(server().superuser()) as a:
            a.ask("update once set twice = i * 2")


@weir
def what_differs_from_call_to_call_is_asked_by_each(_context):
    texts = ["select random() from once where i = 1", "select gen_random_uuid()", "select now()", "select clock_timestamp()",
             "select current_timestamp", "select txid_current()", "select r from dice where i = 1", "select roll()",
             "select pg_backend_pid()", "select current_user", "select who from told", "select * from pg_locks",
             "select current_setting('TimeZone')", "select i from once tablesample bernoulli (1)",
             "select count(*) from information_schema.tables", "select i from once where i = 1 for share"]
    with start() as w, clients(w, 6) as wires:
        for text in texts:
            shared = at_once(w, wires, query(text))
            for wire in wires:
                wire.until("Z")
            assert shared() == 0, (text, shared())
        shared = at_once(w, wires, query("select gen_random_uuid()"))
        assert len({rows(wire)[0] for wire in wires}) == 6
        # And of those nobody got another's.
        shared = at_once(w, wires, lambda n: query(f"select twice from once where i = {n + 1}"))
        assert [rows(wire)[0][6:] for wire in wires] == [str(2 * n + 2).encode() for n in range(6)]
        assert shared() == 0


@weir
def settings_parameters_and_formats_tell_questions_apart(_context):
    zone = ["UTC", "Asia/Tokyo"]
    with start() as w, clients(w, 8, lambda n: {"TimeZone": zone[n % 2]}) as wires:
        shared = at_once(w, wires, query("select to_timestamp(i) from once where i = 1"))
        got = [rows(wire)[0][6:] for wire in wires]
        assert got == [b"1970-01-01 00:00:01+00", b"1970-01-01 09:00:01+09"] * 4, got
        assert shared() == 6, shared()
        text = parse("select twice from once where i = $1::int")
        shared = at_once(w, wires, lambda n: text + bind([str(n // 4 + 1)]) + execute() + SYNC)
        assert [rows(wire)[0][6:] for wire in wires] == [b"2"] * 4 + [b"4"] * 4
        shared = at_once(w, wires, lambda n: text + bind(["3"], results=[n // 4]) + execute() + SYNC)
        assert [rows(wire)[0][6:] for wire in wires] == [b"6"] * 4 + [(6).to_bytes(4, "big")] * 4
        # Half of a transaction, and a limit of rows.
        shared = at_once(w, wires, text + bind(["3"]) + execute(limit=1) + SYNC)
        assert all(len(rows(wire)) == 1 for wire in wires) and shared() == 0


@weir
def errors_notices_and_large_answers_are_asked_for_by_each(_context):
    with start() as w, clients(w, 6) as wires:
        shared = at_once(w, wires, query("select 1 / (i - i) from once where i = 5"))
        for wire in wires:
            try:
                rows(wire)
                raise AssertionError("no error came")
            except ServerError as e:
                assert "22012" in str(e), e
        assert shared() == 0
        shared = at_once(w, wires, query("select repeat('x', 1000), i from once where i <= 200"))
        assert all(len(rows(wire)) == 200 for wire in wires) and shared() == 0
        shared = at_once(w, wires, query("select 'still there' from once where i = 1"))
        assert all(rows(wire)[0][6:] == b"still there" for wire in wires) and shared() == 5


@weir
def who_leaves_takes_nobody_along(_context):
    """The first one, whose request is to be sent, goes or is cancelled before it is; others do, who wait for its answer."""
    request = query("select twice from once where i = 33")
    with start() as w:
        for ends in (lambda w, wire: wire.vanish(), lambda w, wire: cancel_request(wire.pid, wire.secret)):
            with contextlib.ExitStack() as stack:
                wires = [stack.enter_context(Wire(w.target())) for _ in range(8)]
                before = given(w)
                with busy(w):
                    for at, wire in enumerate(wires):
                        wire.send(request)
                        eventually(lambda at=at: waiting(w) == at + 1, "it waits")
                    for wire in (wires[0], wires[3], wires[7]):
                        end(w, wire, ends)
                    eventually(lambda: waiting(w) == 5, "three have gone")
                for wire in (wires[1], wires[2], wires[4], wires[5], wires[6]):
                    assert rows(wire)[0][6:] == b"66"
                assert given(w) - before == 4, given(w) - before


def end(w, wire, ends):
    sent = ends(w, wire)
    if sent is None:
        return
    with socket.create_connection(("127.0.0.1", w.target().port)) as line:
        line.sendall(sent)
        line.recv(1)
    try:
        rows(wire)
        raise AssertionError("it was not cancelled")
    except ServerError as e:
        assert "57014" in str(e), e


@weir
def a_setting_switches_it_off(_context):
    with start(settings=["pool.share_answers=false"]) as w, clients(w) as wires:
        shared = at_once(w, wires, query("select twice from once where i = 21"))
        assert all(rows(wire)[0][6:] == b"42" for wire in wires) and shared() == 0
