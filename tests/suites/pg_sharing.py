"""One server for the reads of several clients: whose answer is whose, whose error, whose cancel, and what happens to those who
stand behind somebody slow, somebody who leaves, or on a server that dies. On a PostgreSQL of its own."""

import contextlib
import functools
import signal
import socket

from weirtest.case import eventually, in_threads, weir
from weirtest.pgwire import SYNC, Closed, ServerError, Wire, bind, cancel_request, execute, parse, query, row
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["postgres"]

# Only reads, leaves no trace, and takes minutes unless somebody ends it.
SLOW = "select count(*) from big a, big b, big c where a.i + b.i + c.i < 0 and a.i < 20000"
# The same, but it ends: some tenths of a second.
HEAVY = "select count(*) from big a, big b where a.i + b.i < 0 and a.i < {}"


@functools.cache
def server():
    private = PrivateServer("postgres")
    with Wire(private.superuser()) as wire:
        wire.ask("create table big as select i from generate_series(1, 20000) i")
        wire.ask("create unique index on big (i)")
        wire.ask("analyze big")
        wire.ask("grant select on big to public")
        # Code for the plan of a statement that ends at once would be made for a tenth of a second: it would always be slow.
        wire.ask("alter system set jit = off")
        wire.ask("select pg_reload_conf()")
    return private


def start(pool_size=1, settings=(), **kw):
    """All statements of these tests have been answered before: a new one shares with nobody."""
    w = Weir.before("postgres", port=server().port, mode="transaction", pool_size=pool_size,
                    settings=["workers=1", *settings], **kw)
    with Wire(w.target()) as wire:
        # The first time of anything may take long, and is forgotten when the next ones have been quick.
        for text in (SLOW.replace("20000", "0"), HEAVY.format(0), "select 'known'", "select 1") * 60:
            wire.ask(text)
    return w


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


def running(wire, text):
    return int(wire.ask("select count(*) from pg_stat_activity where state = 'active' and pid <> pg_backend_pid() "
                        f"and query like '{text}%'")[0][0])


def shared(w):
    return w.metric("weir_shared_requests", protocol="postgres")


@weir
def every_answer_is_its_clients_own(_context):
    """Simple, extended and prepared, good and bad, of clients with settings of their own, all on one server."""
    with start() as w, admin() as a:
        def work(i):
            zone = ["UTC", "Asia/Tokyo", "America/New_York"][i % 3]
            with Wire(w.target(), {"TimeZone": zone}) as wire:
                for turn in range(20):
                    tag = f"{i}/{turn}"
                    assert wire.ask(f"select '{tag}', current_setting('TimeZone')") == [[tag, zone]]
                    wire.send(parse("select $1::text", "s") + SYNC if turn == 0 else SYNC)
                    wire.until("Z")
                    wire.send(bind([tag], "s") + execute() + SYNC)
                    assert tag.encode() in b"".join(body for kind, body in wire.until("Z") if kind == "D")
                    if turn % 5 == i % 5:
                        try:
                            wire.ask(f"select 1 / (0 * {turn})")
                            raise AssertionError("no error came")
                        except ServerError as e:
                            assert "22012" in str(e), e
        raised = in_threads(60, work)
        assert not raised, raised[:3]
        assert shared(w) > 0
        count = a.ask("select count(*) from pg_stat_activity where usename like 'app%'")
        assert count == [["1"]], count


@weir
def who_stands_behind_a_slow_one_goes_elsewhere(_context):
    with start(pool_size=2) as w, admin() as a, Wire(w.target()) as slow, Wire(w.target()) as quick:
        slow.send(query(SLOW))
        quick.send(query("select 'not held up'"))
        assert any(b"not held up" in body for kind, body in quick.until("Z") if kind == "D")
        assert running(a, "select count(*) from big a") >= 1
        slow.vanish()


@weir
def nobody_is_sent_behind_a_statement_that_was_slow(_context):
    """Known by its text without the values, or by that of a prepared statement."""
    with start() as w, admin() as a, Wire(w.target()) as slow, Wire(w.target()) as quick:
        prepared = HEAVY.format("$1::int")
        slow.send(parse(prepared, "s") + SYNC + bind(["300"], "s") + execute() + SYNC)
        slow.until("Z")
        slow.until("Z")
        assert slow.ask(HEAVY.format(300)) == [["0"]]
        late = w.metric("weir_late_heads", protocol="postgres")
        for request in (query(HEAVY.format(301)), bind(["302"], "s") + execute() + SYNC):
            slow.send(request)
            eventually(lambda: running(a, "select count(*) from big a") == 1, "the slow one runs")
            # Were it sent behind the slow one, it would be taken back from there after 20 ms.
            assert quick.ask("select 'its turn'") == [["its turn"]]
            assert any(kind == "D" for kind, _ in slow.until("Z"))
        assert w.metric("weir_late_heads", protocol="postgres") == late


@weir
def with_depth_1_nobody_shares(_context):
    for depth, shares in ((1, False), (64, True)):
        with start(settings=[f"pool.pipeline_depth={depth}"]) as w:
            def work(i):
                with Wire(w.target()) as wire:
                    for turn in range(20):
                        assert wire.ask(f"select {i * 100 + turn}") == [[str(i * 100 + turn)]]
            assert not in_threads(20, work)
            assert (shared(w) > 0) == shares, (depth, shared(w))


@weir
def writes_and_locks_share_with_nobody(_context):
    with admin() as a:
        a.ask("drop table if exists counted")
        a.ask("create table counted (n int)")
        a.ask("insert into counted values (0)")
        a.ask("grant all on counted to public")
    with start() as w:
        def work(_i):
            with Wire(w.target()) as wire:
                for _ in range(20):
                    wire.ask("update counted set n = n + 1")
                    wire.ask("select n from counted for update")
        before = shared(w)
        raised = in_threads(20, work)
        assert not raised, raised[:3]
        assert shared(w) == before, (shared(w), before)

        def reads(_i):
            with Wire(w.target()) as wire:
                for _ in range(20):
                    wire.ask("select n from counted")
        # The same clients share where they only read.
        assert not in_threads(20, reads)
        assert shared(w) > before
        with Wire(w.target()) as wire:
            assert wire.ask("select n from counted") == [["400"]]


def slow_with_others_behind(w):
    """A client at the head of a server, and ten whose requests have been sent behind its own and are asked again elsewhere."""
    slow = Wire(w.target())
    others = [Wire(w.target()) for _ in range(10)]
    with at_once(w):
        slow.send(query(SLOW))
        for i, other in enumerate(others):
            other.send(query(f"select 'other {i}'"))
    eventually(lambda: w.metric("weir_repeated_requests", protocol="postgres") > 0, "some were sent behind the slow one")
    return slow, others


@weir
def a_cancel_hits_only_who_asked(_context):
    """The one at the head is cancelled; the ones that were sent behind it are answered."""
    with start() as w, admin() as a:
        slow, others = slow_with_others_behind(w)
        eventually(lambda: running(a, "select count(*) from big a") >= 1, "the slow one runs")
        # One that only waits is cancelled, too, and at once.
        pid, secret = others[3].pid, others[3].secret
        with socket.create_connection(("127.0.0.1", w.target().port)) as s:
            s.sendall(cancel_request(pid, secret))
            s.recv(1)
        assert "57014" in refusal(others[3])
        pid, secret = slow.pid, slow.secret
        with socket.create_connection(("127.0.0.1", w.target().port)) as s:
            s.sendall(cancel_request(pid, secret))
            s.recv(1)
        assert "57014" in refusal(slow)
        for i, other in enumerate(others):
            if i != 3:
                rows = [body for kind, body in other.until("Z") if kind == "D"]
                assert len(rows) == 1 and f"other {i}".encode() in rows[0], rows
        assert slow.ask("select 'alive'") == others[3].ask("select 'alive'") == [["alive"]]


def refusal(wire):
    return b" ".join(body for kind, body in wire.until("Z") if kind == "E").decode(errors="replace")


@weir
def only_the_head_is_lost_with_its_server(_context):
    with start() as w, admin() as a:
        slow, others = slow_with_others_behind(w)
        eventually(lambda: running(a, "select count(*) from big a") >= 1, "the slow one runs")
        a.ask("select pg_terminate_backend(pid) from pg_stat_activity where usename like 'app%'")
        for i, other in enumerate(others):
            rows = [body for kind, body in other.until("Z") if kind == "D"]
            assert len(rows) == 1 and f"other {i}".encode() in rows[0], rows
        try:
            slow.until("Z")
            raise AssertionError("the lost request was answered")
        except (Closed, ConnectionError):
            pass


@weir
def who_leaves_takes_nobodys_answer(_context):
    with start() as w:
        def work(i):
            for turn in range(10):
                wire = Wire(w.target())
                wire.send(query(f"select repeat('{i}/{turn},', 1000)"))
                if (i + turn) % 3 == 0:
                    wire.vanish()
                    continue
                rows = [body for kind, body in wire.until("Z") if kind == "D"]
                assert len(rows) == 1 and rows[0].count(f"{i}/{turn},".encode()) == 1000
                wire.close()
        raised = in_threads(40, work)
        assert not raised, raised[:3]


@weir
def a_slow_reader_holds_up_nobody(_context):
    with start(pool_size=2) as w:
        slow = Wire(w.target())
        slow.send(query("select repeat('x', 1000) from generate_series(1, 100000)"))
        with Wire(w.target()) as quick:
            for turn in range(100):
                assert quick.ask(f"select {turn}") == [[str(turn)]]
        rows = sum(1 for kind, _ in slow.until("Z") if kind == "D")
        assert rows == 100000, rows
        slow.close()


@weir
def a_new_slow_statement_runs_once_for_each_client(_context):
    with admin() as a:
        a.ask("create table scanned as select i from generate_series(1, 2000) i")
        a.ask("grant select on scanned to public")
    text = "select count(*) from scanned a where (select count(*) from big where i + a.i < 0) > 0 and a.i < 20"
    # One answer for all of them would be another way to run it once.
    with start(settings=["pool.share_answers=false"]) as w:
        clients = [Wire(w.target()) for _ in range(16)]
        with at_once(w):
            for client in clients:
                client.send(query(text))
        for client in clients:
            assert any(kind == "D" for kind, _ in client.until("Z"))
            client.close()
        assert w.metric("weir_repeated_requests", protocol="postgres") == 0
    # The server has told its counts when its last client has left.
    with admin() as a:
        scans = "select seq_scan from pg_stat_user_tables where relname = 'scanned'"
        eventually(lambda: int(a.ask(scans)[0][0]) >= 16, "all have been counted")
        assert a.ask(scans) == [["16"]]
        a.ask("drop table scanned")


@weir
def what_is_asked_again_has_a_server_to_itself(_context):
    """Statements that were always quick take long for all who ask them now: the same one, or each its own."""
    def text(i, value):
        return query(HEAVY.format(value).replace("(*)", f"(*) as count_{i}"))

    for depth, own, most in ((16, 1, 15), (2, 0, 1)):
        with start(settings=[f"pool.pipeline_depth={depth}"]) as w:
            clients = [Wire(w.target()) for _ in range(16)]
            for i, client in enumerate(clients):
                for _ in range(10):  # Its first time takes long.
                    client.send(text(i * own, 0))
                    client.until("Z")
            with at_once(w):
                for i, client in enumerate(clients):
                    client.send(text(i * own, 40))
            for client in clients:
                assert any(kind == "D" for kind, _ in client.until("Z"))
                client.close()
            repeated = w.metric("weir_repeated_requests", protocol="postgres")
            assert repeated <= most, f"{repeated} were asked again with {depth} on a server"


def held(w):
    return w.metric("weir_pinned_servers", protocol="postgres")


def waiting(w):
    return w.metric("weir_waiting_clients", protocol="postgres")


def values(wire, requests):
    """The rows of so many requests."""
    return [row(body) for kind, body in wire.until("Z", requests) if kind == "D"]


KEEPS = "select pg_advisory_lock(5)"
# A read that could have shared, and what keeps its server directly behind it: how it is sent, and of how many requests it consists.
READS_AND_KEEPS = {
    "two requests": (query("select 1") + query(KEEPS), 2),
    "one text": (query(f"select 1; {KEEPS}"), 1),
    "one batch": (b"".join(parse(text) + bind() + execute() for text in ("select 1", KEEPS)) + SYNC, 1),
    "two batches": (b"".join(parse(text) + bind() + execute() + SYNC for text in ("select 1", KEEPS)), 2),
}


@weir
def who_keeps_its_server_behind_a_shared_read_has_it(_context):
    """The others that came with it are answered before it or elsewhere, at the latest when it has left."""
    with start() as w:
        for how, (sent, requests) in READS_AND_KEEPS.items():
            a, b, c = Wire(w.target()), Wire(w.target()), Wire(w.target())
            for wire in (b, c, a):
                wire.ask("select 1")
            with at_once(w):
                a.send(sent)
                b.send(query("select 1"))
                c.send(query("select 'known'"))
            assert values(a, requests) == [["1"], [""]], how
            eventually(lambda: held(w) == 1, f"one keeps its server: {how}")
            locks = "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
            assert a.ask(locks) == [["1"]], how
            with Wire(w.target()) as d:
                d.send(query(locks))
                eventually(lambda: waiting(w) >= 1, f"who comes now waits: {how}")
                a.close()
                assert values(d, 1) == [["0"]], how
            assert values(b, 1) == [["1"]], how
            assert values(c, 1) == [["known"]], how
            eventually(lambda: held(w) == waiting(w) == 0, f"nobody keeps a server: {how}")
            b.close()
            c.close()


@weir
def who_keeps_its_server_shares_it_with_nobody_until_it_lets_go(_context):
    """A lock that is given back, a transaction that ends: from then on the others share that server again."""
    with start() as w, Wire(w.target()) as a, Wire(w.target()) as b, Wire(w.target()) as c:
        for keeps, lets_go in ((KEEPS, "select pg_advisory_unlock(5)"), ("begin", "commit")):
            for text in ("select 1", keeps, "select 1"):
                a.ask(text)
            with at_once(w):
                b.send(query("select 1"))
                c.send(query("select 'known'"))
            if keeps == KEEPS:
                eventually(lambda: waiting(w) == 2, "both wait")
            a.ask(lets_go)
            assert values(b, 1) == [["1"]] and values(c, 1) == [["known"]]
            before = shared(w)
            def all_at_once():
                with at_once(w):
                    for wire in (a, b, c):
                        wire.send(query("select 1"))
                return [values(wire, 1) for wire in (a, b, c)] == [[["1"]]] * 3 and shared(w) > before
            eventually(all_at_once, "they share")
            assert held(w) == waiting(w) == 0
