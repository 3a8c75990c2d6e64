"""One server for the reads of several clients, for MySQL and MariaDB: whose answer is whose, whose error, whose KILL, and what
happens to those who stand behind somebody slow, somebody who leaves, or on a server that dies. On a server of its own."""

import contextlib
import functools
import os
import signal

from weirtest.case import eventually, in_threads, weir
from weirtest.mywire import QUERY, STMT_CLOSE, STMT_EXECUTE, Closed, MyError, Wire, execute_payload, text_row
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[mariadb").split("[")[1].rstrip("]")

# Only reads, leaves no trace, and takes minutes unless somebody ends it.
SLOW = "select count(*) from big a, big b, big c where a.i + b.i + c.i < 0 and a.i < 20000"
# The same, but it ends: some tenths of a second.
HEAVY = "select count(*) from big a, big b where a.i + b.i < 0 and a.i < {}"


VIEW = "create or replace view app.setting as select {} as x"


@functools.cache
def server():
    private = PrivateServer(KIND)
    with Wire(private.superuser()) as wire:
        wire.ask("create table app.big (i int primary key)")
        rows = ",".join(f"({i})" for i in range(1, 20001))
        wire.ask(f"insert into app.big values {rows}")
        wire.ask("create function app.set_x() returns int deterministic begin set @x = 5; return 1; end")
        wire.ask(VIEW.format("1"))
    return private


def start(pool_size=1, settings=(), **kw):
    """All statements of these tests have been answered before: a new one shares with nobody. What an earlier test has left running
    would be taken for this one's."""
    with admin() as a:
        for (number,) in processes(a):
            with contextlib.suppress(MyError):
                a.ask(f"kill {number}")
        eventually(lambda: not processes(a), "what an earlier test left is gone")
    w = Weir.before(KIND, port=server().port, mode="transaction", pool_size=pool_size,
                    settings=["workers=1", *settings], **kw)
    with Wire(w.target()) as wire:
        # The first time of anything may take long, and is forgotten when the next ones have been quick.
        for text in (SLOW.replace("20000", "0"), HEAVY.format(0), "select 'known'", "select 1") * 60:
            wire.ask(text)
    return w


@contextlib.contextmanager
def unforeseen():
    """A Weir that has proof that a view only reads, and a database in which it has become something else since."""
    with admin() as a:
        try:
            with start(settings=["pool.catalogue_check_interval=3600"]) as w:
                a.ask(VIEW.format("app.set_x()"))
                yield w
        finally:
            a.ask(VIEW.format("1"))


@contextlib.contextmanager
def at_once(w):
    """What is sent meanwhile is there, in its order, when Weir looks again."""
    w.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        w.signal(signal.SIGCONT)


@contextlib.contextmanager
def admin():
    with Wire(server().superuser()) as wire:
        yield wire


def processes(wire, more=""):
    return wire.ask(f"select id from information_schema.processlist where user = 'app' {more}")


def running(wire, text):
    return len(processes(wire, f"and info like '{text}%'"))


def at_work(wire, text):
    """How many read their tables. MariaDB lists a text a moment before it begins, and loses a KILL QUERY that comes in that moment,
    also one of a client of its own."""
    return len(processes(wire, f"and info like '{text}%' and state in ('Sending data', 'executing')"))


def shared(w):
    return w.metric("weir_shared_requests", protocol="mysql")


def rows(wire, code=QUERY):
    """The rows of the next reply; raises MyError."""
    got = wire.reply(code)
    for what, payload in got:
        if what == "err":
            raise MyError(payload)
    return [payload for what, payload in got if what == "row"]


@weir
def every_answer_is_its_clients_own(_context):
    """Texts and prepared statements, good and bad, of clients with settings of their own, all on one server."""
    with start() as w, admin() as a:
        def work(i):
            zone = ["+00:00", "+09:00", "-05:00"][i % 3]
            with Wire(w.target()) as wire:
                wire.ask(f"set time_zone = '{zone}'")
                statement = wire.prepare("select ? as v")
                for turn in range(20):
                    tag = f"{i}/{turn}"
                    assert wire.ask(f"select '{tag}', @@time_zone") == [[tag, zone]]
                    wire.command(STMT_EXECUTE, execute_payload(statement, [tag], new_types=turn == 0))
                    got = rows(wire, STMT_EXECUTE)
                    assert len(got) == 1 and got[0].endswith(tag.encode()), got
                    if turn % 5 == i % 5:
                        try:
                            wire.ask(f"select missing_{turn} from big")
                            raise AssertionError("no error came")
                        except MyError as e:
                            assert e.code == 1054 and f"missing_{turn}'" in str(e), e
                wire.command(STMT_CLOSE, statement.to_bytes(4, "little"))
        raised = in_threads(60, work)
        assert not raised, raised[:3]
        assert shared(w) > 0
        assert len(processes(a)) == 1


@weir
def who_stands_behind_a_slow_one_goes_elsewhere(_context):
    with start(pool_size=2) as w, admin() as a, Wire(w.target()) as slow, Wire(w.target()) as quick:
        slow.command(QUERY, SLOW)
        quick.command(QUERY, "select 'not held up'")
        assert [text_row(row) for row in rows(quick)] == [["not held up"]]
        assert running(a, "select count(*) from big a") >= 1
        slow.vanish()


@weir
def nobody_is_sent_behind_a_statement_that_was_slow(_context):
    with start() as w, admin() as a, Wire(w.target()) as slow, Wire(w.target()) as quick:
        assert slow.ask(HEAVY.format(500)) == [["0"]]
        late = w.metric("weir_late_heads", protocol="mysql")
        for value in (501, 502):
            slow.command(QUERY, HEAVY.format(value))
            eventually(lambda: running(a, "select count(*) from big a") == 1, "the slow one runs")
            # Were it sent behind the slow one, it would be taken back from there after 20 ms.
            assert quick.ask("select 'its turn'") == [["its turn"]]
            assert [text_row(row) for row in rows(slow)] == [["0"]]
        assert w.metric("weir_late_heads", protocol="mysql") == late


@weir
def with_depth_1_nobody_shares(_context):
    with start(settings=["pool.pipeline_depth=1"]) as w:
        def work(i):
            with Wire(w.target()) as wire:
                for turn in range(20):
                    assert wire.ask(f"select {i * 100 + turn}") == [[str(i * 100 + turn)]]
        assert not in_threads(20, work)
        assert shared(w) == 0


@weir
def writes_and_locks_share_with_nobody(_context):
    with admin() as a:
        a.ask("drop table if exists app.counted")
        a.ask("create table app.counted (n int)")
        a.ask("insert into app.counted values (0)")
    with start() as w:
        def work(_i):
            with Wire(w.target()) as wire:
                for _ in range(20):
                    wire.ask("update counted set n = n + 1")
                    wire.ask("select n from counted for update")
        assert not in_threads(20, work)
        assert shared(w) == 0
        with Wire(w.target()) as wire:
            assert wire.ask("select n from counted") == [["400"]]


def slow_with_others_behind(w):
    """A client at the head of a server, and ten whose requests have been sent behind its own and are asked again elsewhere."""
    slow = Wire(w.target())
    others = [Wire(w.target()) for _ in range(10)]
    with at_once(w):
        slow.command(QUERY, SLOW)
        for i, other in enumerate(others):
            other.command(QUERY, f"select 'other {i}'")
    eventually(lambda: w.metric("weir_repeated_requests", protocol="mysql") > 0, "some were sent behind the slow one")
    return slow, others


@weir
def a_kill_hits_only_whom_it_names(_context):
    """The one at the head is killed; the ones that were sent behind it are answered."""
    with start() as w, admin() as a, Wire(w.target()) as killer:
        slow, others = slow_with_others_behind(w)
        eventually(lambda: at_work(a, "select count(*) from big a") == 1, "the slow one runs")
        # One that only waits is killed, too, and at once; another with its connection.
        killer.ask(f"kill query {others[3].thread_id}")
        assert refusal(others[3]) == 1317
        killer.ask(f"kill {others[5].thread_id}")
        gone(others[5])
        killer.ask(f"kill query {slow.thread_id}")
        assert refusal(slow) == 1317
        for i, other in enumerate(others):
            if i not in (3, 5):
                assert [text_row(row) for row in rows(other)] == [[f"other {i}"]]
        assert slow.ask("select 'alive'") == others[3].ask("select 'alive'") == [["alive"]]


def refusal(wire):
    try:
        raise AssertionError(f"it was answered: {rows(wire)}")
    except MyError as e:
        return e.code


def gone(wire):
    """The connection is closed, perhaps with an error as its last words."""
    try:
        rows(wire)
    except (Closed, ConnectionError):
        return
    except MyError:
        assert not wire.closed_by_peer()
        return
    raise AssertionError("the lost request was answered")


@weir
def only_the_head_is_lost_with_its_server(_context):
    """Those who stood behind it are answered, each once."""
    with start() as w, admin() as a:
        slow, others = slow_with_others_behind(w)
        eventually(lambda: running(a, "select count(*) from big a") >= 1, "the slow one runs")
        for (number,) in processes(a):
            a.ask(f"kill {number}")
        for i, other in enumerate(others):
            assert [text_row(row) for row in rows(other)] == [[f"other {i}"]]
            assert other.ask("select 'and the next'") == [["and the next"]]
        lost(slow)


def lost(wire):
    """What a client of a killed connection gets: an error of the server's, or the end."""
    try:
        raise AssertionError(f"the lost request was answered: {rows(wire)}")
    except (Closed, ConnectionError, MyError):
        pass


@weir
def who_leaves_takes_nobodys_answer(_context):
    with start() as w:
        def work(i):
            for turn in range(10):
                wire = Wire(w.target())
                wire.command(QUERY, f"select repeat('{i}/{turn},', 1000)")
                if (i + turn) % 3 == 0:
                    wire.vanish()
                    continue
                got = rows(wire)
                assert len(got) == 1 and got[0].count(f"{i}/{turn},".encode()) == 1000
                wire.close()
        raised = in_threads(40, work)
        assert not raised, raised[:3]


@weir
def a_slow_reader_holds_up_nobody(_context):
    with start(pool_size=2) as w:
        slow = Wire(w.target())
        slow.command(QUERY, "select repeat('x', 20000) from big")
        with Wire(w.target()) as quick:
            for turn in range(100):
                assert quick.ask(f"select {turn}") == [[str(turn)]]
        assert len(rows(slow)) == 20000
        slow.close()


def held(w):
    return w.metric("weir_pinned_servers", protocol="mysql")


def waiting(w):
    return w.metric("weir_waiting_clients", protocol="mysql")


@weir
def nobody_shares_with_who_keeps_its_server(_context):
    """A read that could have shared leaves something on its server. That is its client's from then on, and no longer a place for
    others."""
    with unforeseen() as w, Wire(w.target()) as a, Wire(w.target()) as b:
        with Wire(w.target()) as c:
            c.ask("select x from setting")
        eventually(lambda: held(w) == 0, "nobody keeps a server")
        a.ask("select x from setting")
        b.command(QUERY, "select 1")
        eventually(lambda: held(w) == waiting(w) == 1, "one keeps its server, the other one waits")
        assert a.ask("select @x") == [["5"]]
        a.close()
        assert [text_row(row) for row in rows(b)] == [["1"]]
        eventually(lambda: held(w) == 0, "nobody keeps a server")
        assert b.ask("select @x") == [[None]]


@weir
def who_keeps_its_server_after_all_has_it(_context):
    """The same, with requests of others behind it already: they are answered elsewhere."""
    def once(w):
        with Wire(w.target()) as a, Wire(w.target()) as b, Wire(w.target()) as c:
            with Wire(w.target()) as d:
                for _ in range(30):  # Its first time takes long.
                    d.ask("select x from setting")
            eventually(lambda: held(w) == 0, "nobody keeps a server")
            for wire in (b, c, a):
                wire.ask("select 1")
            before = [w.metric(f"weir_{name}_requests", protocol="mysql") for name in ("shared", "repeated")]
            with at_once(w):
                a.command(QUERY, "select x from setting")
                b.command(QUERY, "select 1")
                c.command(QUERY, "select 2")
            assert [text_row(row) for row in rows(a)] == [["1"]]
            assert a.ask("select @x") == [["5"]]
            behind = shared(w) - before[0]
            eventually(lambda: held(w) == 1 and waiting(w) == 2, "one keeps its server, two wait")
            a.close()
            assert [text_row(row) for row in rows(b)] == [["1"]]
            assert [text_row(row) for row in rows(c)] == [["2"]]
            eventually(lambda: held(w) == 0, "nobody keeps a server")
            return behind == w.metric("weir_repeated_requests", protocol="mysql") - before[1] == 2

    with unforeseen() as w:
        # A busy machine may make it look slow, and then nobody stands behind it.
        eventually(lambda: once(w), "two were sent behind it", 60)


@weir
def an_execution_that_fails_in_front_of_others_can_be_asked_about(_context):
    """A prepared read whose column has been dropped, with another client's request behind it that takes its warnings away."""
    def once(w, b, d):
        d.ask("drop table if exists app.losing")
        d.ask("create table app.losing (i int, c int)")
        with Wire(w.target()) as a:
            number = a.prepare("select c from losing where i = ?")
            for i in range(10):
                a.command(STMT_EXECUTE, execute_payload(number, [str(i)]))
                a.reply(STMT_EXECUTE)
            d.ask("alter table app.losing drop column c")
            before = shared(w)
            with at_once(w):
                a.command(STMT_EXECUTE, execute_payload(number, ["1"]))
                b.command(QUERY, "select 1")
            try:
                rows(a, STMT_EXECUTE)
                raise AssertionError("the column is there")
            except MyError as error:
                assert error.code == 1054, error
            assert [text_row(row) for row in rows(b)] == [["1"]]
            behind = shared(w) - before
            assert [row[:2] for row in a.ask("show warnings")] == [["Error", "1054"]]
            return behind == 1

    with start() as w, Wire(w.target()) as b, admin() as d:
        eventually(lambda: once(w, b, d), "another was sent behind it", 60)


@weir
def an_execution_that_warns_in_front_of_others_can_be_asked_about(_context):
    """A prepared read that warns, with another client's request behind it that takes its warnings away."""
    def once(w, a, b, text, value):
        number = a.prepare(text)
        for i in range(10):
            a.command(STMT_EXECUTE, execute_payload(number, [str(i)]))
            a.reply(STMT_EXECUTE)
        before = shared(w)
        with at_once(w):
            a.command(STMT_EXECUTE, execute_payload(number, [value]))
            b.command(QUERY, "select 1")
        rows(a, STMT_EXECUTE)
        assert [text_row(row) for row in rows(b)] == [["1"]]
        behind = shared(w) - before
        [[level, code, message]] = a.ask("show warnings")
        assert (level, code) == ("Warning", "1292") and value in message, (level, code, message)
        return behind == 1

    with start() as w, Wire(w.target()) as a, Wire(w.target()) as b:
        for text in ("select cast(? as signed) /* ? */, '?'", "select 5 -? from (select 1) x"):
            for value in ("5x", "-6 'y"):
                eventually(lambda: once(w, a, b, text, value), "another was sent behind it", 60)


@weir
def an_execution_with_parameters_of_other_types_costs_nobody_a_server(_context):
    """It warns, and from then on its client keeps its server (MySQL); requests of others come just behind it."""
    def once(w, others):
        with Wire(w.target()) as a:
            statement = a.prepare("select v from five where i = ?")
            for i in range(10):
                a.command(STMT_EXECUTE, execute_payload(statement, [str(i % 5)]))
                a.reply(STMT_EXECUTE)
            for wire in others:
                # The server's one copy of a statement is that of another.
                wire.command(STMT_EXECUTE, execute_payload(wire.prepare("select ?"), ["1"]))
                wire.reply(STMT_EXECUTE)
            a.command(STMT_EXECUTE, execute_payload(statement, ["2x"]).replace(b"\xfd\0", b"\xfe\0"))
            with at_once(w):
                for wire in others:
                    wire.command(QUERY, "select 1")
            assert len(rows(a, STMT_EXECUTE)) == 1
            warnings = a.ask("show warnings")
            assert warnings and all(row[:2] == ["Warning", "1292"] and "'2x'" in row[2] for row in warnings), warnings
            a.close()
            for wire in others:
                assert [text_row(row) for row in rows(wire)] == [["1"]]

    with start(settings=["pool.max_prepared_statements=1"]) as w, Wire(w.target()) as b, Wire(w.target()) as c, admin() as d:
        d.ask("create table if not exists app.five (i int primary key, v int)")
        d.ask("replace into app.five values (0, 0), (1, 1), (2, 2), (3, 3), (4, 4)")
        try:
            for _ in range(60):
                once(w, [b, c])
        finally:
            d.ask("drop table app.five")


@weir
def temporary_tables_of_one_leave_the_sharing_of_others(_context):
    """A temporary table is in no catalogue: what is known of the database holds while clients make and drop them, so no server
    is reset between others."""
    with start(settings=["pool.catalogue_check_interval=3600"]) as w, Wire(w.target()) as wire, Wire(w.target()) as other:
        before = [w.metric(name, protocol="mysql") for name in ("weir_server_resets", "weir_catalogue_reads")]
        for _ in range(3):
            wire.ask("create temporary table own (n int)")
            wire.ask("insert into own values (1)")
            assert wire.ask("select n from own") == [["1"]]
            wire.ask("drop temporary table own")
            assert other.ask("select 1") == [["1"]]
        after = [w.metric(name, protocol="mysql") for name in ("weir_server_resets", "weir_catalogue_reads")]
        assert after == before, (before, after)


@weir
def who_asks_about_its_last_statement_shares_with_nobody(_context):
    with start() as w, Wire(w.target()) as a, Wire(w.target()) as b:
        a.ask("select i from big limit 2")
        statement = a.prepare("select found_rows()")
        with at_once(w):
            a.command(QUERY, "select i from big limit 2")
            b.command(QUERY, "select 1")
        assert len(rows(a)) == 2
        a.command(STMT_EXECUTE, execute_payload(statement))
        assert [payload[2:] for payload in rows(a, STMT_EXECUTE)] == [(2).to_bytes(8, "little")]
        a.close()
        assert [text_row(row) for row in rows(b)] == [["1"]]


@weir
def a_new_slow_statement_runs_once_for_each_client(_context):
    def selects(wire):
        return int(wire.ask("show global status like 'Com_select'")[0][1])

    # One answer for all of them would be another way to run it once.
    settings = ["pool.catalogue_check_interval=3600", "pool.share_answers=false"]
    with start(settings=settings) as w, admin() as a:
        clients = [Wire(w.target()) for _ in range(16)]
        before = selects(a)
        with at_once(w):
            for client in clients:
                client.command(QUERY, "select count(*) from big a, big b where a.i + b.i < 0 and b.i < 60 and a.i < 20000")
        for client in clients:
            assert [text_row(row) for row in rows(client)] == [["0"]]
        assert selects(a) - before == 16
        assert w.metric("weir_repeated_requests", protocol="mysql") == 0


@weir
def what_is_asked_again_has_a_server_to_itself(_context):
    """Statements that were always quick take long for all who ask them now: the same one, or each its own."""
    def text(i, value):
        return HEAVY.format(value).replace("(*)", f"(*) as count_{i}")

    for depth, own, most in ((16, 1, 15), (2, 0, 1)):
        with start(settings=[f"pool.pipeline_depth={depth}"]) as w:
            clients = [Wire(w.target()) for _ in range(16)]
            for i, client in enumerate(clients):
                for _ in range(10):  # Its first time takes long.
                    client.ask(text(i * own, 0))
            with at_once(w):
                for i, client in enumerate(clients):
                    client.command(QUERY, text(i * own, 40))
            for client in clients:
                assert [text_row(row) for row in rows(client)] == [["0"]]
            repeated = w.metric("weir_repeated_requests", protocol="mysql")
            assert repeated <= most, f"{repeated} were asked again with {depth} on a server"
