"""BEGIN waits for the first statement of its transaction: a transaction in which nothing has been asked holds no server. Everything
an application could tell the difference by, direct and through Weir; and what only Weir knows."""

import functools
import socket
import threading

import psycopg
from weirtest.case import both, eventually, in_threads, weir
from weirtest.pgwire import SYNC, ServerError, Wire, bind, cancel_request, columns, describe, execute, fields, parse, query
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["postgres"]
CLIENTS = 40


@functools.cache
def server():
    return PrivateServer("postgres")


def before(pool_size=2, settings=(), **kw):
    return Weir.before("postgres", port=server().port, pool_size=pool_size, settings=["workers=1", *settings], **kw)


def empty(w):
    return w.metric("weir_empty_transactions")


def shown(messages):
    """What a client sees of an answer: of errors the code and the words."""
    out = []
    for kind, payload in messages:
        if kind in "EN":
            said = fields(payload)
            out.append((kind, said.get("C"), said.get("M")))
        elif kind == "S":
            continue
        elif kind == "T":
            # Of a temporary table it has the number.
            out.append((kind, [name for name, *_ in columns(payload)]))
        else:
            out.append((kind, payload))
    return out


def exchange(wire, *requests):
    """Each request by itself, and its answer up to its ReadyForQuery."""
    seen = []
    for request in requests:
        wire.send(query(request) if isinstance(request, str) else request)
        seen.append((request, shown(wire.until("Z"))))
    return seen


def cancel(target, wire):
    """Asks for it, and waits until the other end has dealt with that."""
    with socket.create_connection((target.host, target.port), timeout=60) as s:
        s.sendall(cancel_request(wire.pid, wire.secret))
        while s.recv(1):
            pass


def warm(target):
    """Some server has been there before, as in any pool that is at work."""
    with Wire(target) as wire:
        wire.ask("select 1")


# What is sent one after the other in a session of its own. Every byte of the answers must be as direct.
SCRIPTS = {
    "empty_committed": ["begin", "commit"],
    "empty_rolled_back": ["BEGIN", "ROLLBACK"],
    "in_other_words": ["start transaction", "end", "begin work", "abort", "begin transaction;", "commit work", " begin ; ", "rollback transaction"],
    "with_modes": ["begin isolation level repeatable read, read only", "show transaction_isolation", "show transaction_read_only", "commit",
                   "start transaction isolation level serializable read only deferrable", "show transaction_isolation",
                   "show transaction_deferrable", "commit", "begin read write", "show transaction_read_only", "rollback",
                   "begin isolation level read uncommitted", "show transaction_isolation", "commit"],
    "comments_and_chains": ["/* x */ begin", "commit", "begin", "commit and chain", "select 1", "rollback and chain", "rollback", "begin",
                            "rollback and no chain"],
    "syntax_errors": ["begin read", "begin isolation level", "begin; select 1; commit", "begin, read only", "begin read only, read only",
                      "rollback"],
    "twice": ["begin", "begin", "begin isolation level serializable", "commit", "commit", "rollback"],
    "savepoint_first": ["begin", "savepoint a", "select 1/0", "rollback to a", "select 1", "commit"],
    "rollback_to_first": ["begin", "rollback to a", "select 1", "rollback"],
    "release_first": ["begin", "release a", "commit"],
    "set_local_first": ["begin", "set local work_mem = '1MB'", "show work_mem", "commit", "show work_mem"],
    "set_first": ["begin", "set statement_timeout = '77s'", "rollback", "show statement_timeout"],
    "set_transaction_first": ["begin", "set transaction isolation level serializable", "show transaction_isolation", "select 1",
                              "set transaction isolation level read committed", "commit"],
    "error_first": ["begin", "select 1/0", "select 1", "begin", "commit", "select 1"],
    "syntax_error_first": ["begin", "selec 1", "select 1", "rollback"],
    "empty_query_first": ["begin", "", ";", "commit"],
    "not_in_a_transaction": ["begin", "vacuum", "rollback", "begin", "discard all", "rollback", "begin",
                             "create database x_never", "rollback"],
    "commit_in_one_text": ["begin", "select 1; commit", "begin", "commit; select 2", "begin", "rollback; begin", "commit"],
    "begin_again_in_the_text": ["begin", "begin; select 1", "commit"],
    "two_phases": ["begin", "prepare transaction 'late'", "rollback prepared 'late'", "begin", "commit prepared 'nothing'", "rollback",
                   "begin", "select 1", "prepare transaction 'late'", "rollback prepared 'late'"],
    "temporary": ["begin", "create temp table t (a int) on commit drop", "insert into t values (1)", "select * from t", "commit",
                  "select * from t"],
    "cursor": ["begin", "declare c cursor for select 1", "fetch c", "commit", "fetch c"],
    "copy": ["begin", "copy (select 1) to stdout", "commit"],
    "reading_only": ["begin read only", "create table never (a int)", "select 1", "rollback"],
    "sync_first": ["begin", SYNC, "commit"],
    "extended_begin": [parse("begin") + bind([]) + describe("P") + execute() + SYNC, "select 1", parse("commit") + bind([]) + execute() + SYNC],
    "extended_first": ["begin", parse("select 1/$1::int") + bind(["1"]) + execute() + SYNC, bind(["0"]) + execute() + SYNC, "select 1", "rollback"],
    "prepared_first": [parse("select $1::int", "s") + SYNC, "begin", bind(["7"], "s") + execute() + SYNC, "commit", "begin",
                       "deallocate s", "rollback", bind(["7"], "s") + execute() + SYNC],
    "unnamed_statement_is_gone": [parse("select 1") + SYNC, "begin", bind([]) + execute() + SYNC, "rollback"],
    "portal_over_the_begin": [parse("select 1", "s") + SYNC, "begin", bind([], "s", portal="p") + SYNC, execute("p") + SYNC, "commit",
                              execute("p") + SYNC],
    "prepare_in_it": ["begin", parse("select 3", "q") + SYNC, "commit", bind([], "q") + execute() + SYNC],
    "commit_extended": ["begin", parse("commit") + bind([]) + execute() + SYNC, "select 1"],
    "flushed": ["begin", parse("select 5") + bind([]) + execute() + SYNC, "commit"],
    "in_settings": ["set default_transaction_isolation = 'serializable'", "begin", "show transaction_isolation", "commit",
                    "set default_transaction_read_only = on", "begin", "show transaction_read_only", "commit", "begin read write",
                    "show transaction_read_only", "commit"],
    "with_a_lock": ["select pg_advisory_lock(4711)", "begin", "commit", "begin", "select 1", "commit", "select pg_advisory_unlock(4711)"],
    "pg_is_in_it": ["begin", "select pg_current_xact_id_if_assigned() is null, now() = statement_timestamp() or now() < statement_timestamp()",
                    "select now() = transaction_timestamp()", "commit"],
}


def scripted(name):
    def run(target):
        warm(target)
        with Wire(target) as wire:
            return exchange(wire, *SCRIPTS[name])

    run.__name__ = name
    both(run)


for script in SCRIPTS:
    scripted(script)


@both
def what_is_sent_in_one_packet_is_answered_in_order(target):
    warm(target)
    with Wire(target) as wire:
        wire.send(b"".join(query(text) for text in ("begin", "select 1", "commit", "begin", "commit", "select 2", "begin", "rollback")))
        return shown(wire.until("Z", 8))


@both
def a_snapshot_is_taken_by_the_first_query(target):
    warm(target)
    with Wire(target) as one, Wire(target) as other:
        other.ask("drop table if exists late_snapshot")
        other.ask("create table late_snapshot (a int)")
        one.ask("begin isolation level repeatable read")
        other.ask("insert into late_snapshot values (1)")
        seen = [one.ask("select count(*) from late_snapshot")]
        other.ask("insert into late_snapshot values (2)")
        seen.append(one.ask("select count(*) from late_snapshot"))
        one.ask("commit")
        other.ask("drop table late_snapshot")
        return seen


@both
def notifications_wait_for_the_end_of_a_transaction(target):
    warm(target)
    with Wire(target) as hears, Wire(target) as says:
        hears.ask("listen late_news")
        hears.ask("begin")
        says.ask("notify late_news, 'x'")
        seen = [[kind for kind, *_ in exchange(hears, "select 1")[0][1]]]
        seen.append([kind for kind, *_ in exchange(hears, "commit")[0][1]])
        hears.ask("unlisten late_news")
        return seen


@both
def an_idle_transaction_is_ended_as_its_client_has_asked(target):
    warm(target)
    with Wire(target) as wire:
        wire.ask("set idle_in_transaction_session_timeout = '50ms'")
        wire.ask("begin")
        return shown(wire.closed_by_peer())


@both
def the_same_from_the_start(target):
    with Wire(target, {"options": "-c idle_in_transaction_session_timeout=50"}) as wire:
        wire.ask("begin")
        return shown(wire.closed_by_peer())


@both
def a_cancel_between_two_statements_does_nothing(target):
    warm(target)
    with Wire(target) as wire:
        seen = exchange(wire, "begin")
        cancel(target, wire)
        return seen + exchange(wire, "select 1", "commit")


def until_active(wire, mark):
    """Some server runs a statement with this mark."""
    asks = f"select count(*) from pg_stat_activity where state = 'active' and query like '%{mark}' and pid <> pg_backend_pid()"
    eventually(lambda: wire.ask(asks) == [["1"]], f"it runs: {mark}")


@both
def the_first_statement_of_a_transaction_is_cancelled_while_it_runs(target):
    warm(target)
    with Wire(target) as wire, Wire(target) as looks:
        seen = exchange(wire, "begin")
        wire.send(query("select pg_sleep(20) /* first_of_its_transaction */; -- seen"))
        until_active(looks, "first_of_its_transaction */; -- seen")
        cancel(target, wire)
        seen.append(shown(wire.until("Z")))
        return seen + exchange(wire, "select 1", "commit", "select 2")


@weir
def a_statement_that_is_prepared_again_behind_a_lock_is_cancelled(_context):
    """What its client waits for is the lock, also where it is Weir's own Parse that does."""
    with before(pool_size=2) as w, Wire(server().direct()) as holds:
        holds.ask("create table behind_a_lock (a int)")
        with Wire(w.target()) as wire, Wire(w.target()) as first, Wire(w.target()) as second:
            first.ask("begin")
            first.ask("select 1")
            wire.send(parse("select a from behind_a_lock", "s") + describe("S", "s") + bind([], "s") + execute() + SYNC)
            wire.until("Z")
            second.ask("begin")
            second.ask("select 1")
            # It has to go to the other server.
            first.ask("commit")
            holds.ask("begin")
            holds.ask("lock table behind_a_lock in access exclusive mode")
            wire.send(bind([], "s") + execute() + SYNC)
            waits = "select count(*) from pg_locks where relation = 'behind_a_lock'::regclass and not granted"
            eventually(lambda: holds.ask(waits) == [["1"]], "it waits")
            cancel(w.target(), wire)
            (kind, code, _), ready = shown(wire.until("Z"))
            assert (kind, code, ready) == ("E", "57014", ("Z", b"I"))
            second.ask("commit")
        holds.ask("drop table behind_a_lock")
        holds.ask("commit")


@weir
def forty_empty_transactions_hold_no_server(_context):
    with before() as w:
        # Until a server has told whether BEGIN may wait there, the first one goes to it.
        with Wire(w.target()) as wire:
            wire.ask("select 1")
        there = threading.Barrier(CLIENTS + 1, timeout=60)

        def work(i):
            with psycopg.connect(host="127.0.0.1", port=w.port, user=w.target().user, password=w.target().password, dbname="app",
                                 autocommit=True) as c:
                c.execute(["begin", "start transaction", "begin isolation level serializable", "begin read only"][i % 4])
                there.wait()
                there.wait()
                assert c.execute("select %s::int, pg_current_xact_id_if_assigned() is null", (i,)).fetchone() == (i, True)
                assert c.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
                if i % 2:
                    c.execute("savepoint a")
                c.execute("commit")

        seen = []

        def look():
            try:
                there.wait()
                with Wire(w.target()) as wire:
                    assert wire.ask("select 'not held up'") == [["not held up"]]
                eventually(lambda: empty(w) == CLIENTS, f"all are counted, not {empty(w)}")
                there.wait()
            except BaseException as e:
                seen.append(repr(e))
                there.abort()

        watcher = threading.Thread(target=look)
        watcher.start()
        raised = in_threads(CLIENTS, work)
        watcher.join()
        assert not seen and not raised, (seen, raised[:3])
        assert empty(w) == 0
        assert w.metric("weir_server_connections") <= 2


@weir
def an_empty_transaction_survives_the_loss_of_every_server(_context):
    with before() as w, Wire(w.target()) as wire:
        wire.ask("select 1")
        wire.ask("begin")
        server().restart(crash=True)
        assert exchange(wire, "select 'here'")[0][1][-1] == ("Z", b"T")
        assert exchange(wire, "commit")[0][1] == [("C", b"COMMIT\0"), ("Z", b"I")]


@weir
def one_that_waits_for_a_server_is_cancelled_and_has_failed(_context):
    with before(pool_size=1) as w:
        for end in ("rollback", "commit"):
            with Wire(w.target()) as holder, Wire(w.target()) as waits:
                holder.ask("select 1")
                waits.ask("begin")
                holder.ask("begin")
                holder.ask("select 1")
                waits.send(query("select 2"))
                eventually(lambda: w.metric("weir_waiting_clients") == 1, "it waits")
                cancel(w.target(), waits)
                (kind, code, _), ready = shown(waits.until("Z"))
                assert (kind, code, ready) == ("E", "57014", ("Z", b"E"))
                if end == "rollback":
                    holder.ask("commit")
                    # A server says so itself.
                    for text, code in (("select 3", "25P02"), ("selec", "42601")):
                        (kind, said, _), ready = exchange(waits, text)[0][1]
                        assert (kind, said, ready) == ("E", code, ("Z", b"E")), (kind, said, ready)
                assert exchange(waits, end)[0][1] == [("C", b"ROLLBACK\0"), ("Z", b"I")]
                if end == "commit":
                    holder.ask("commit")
                assert waits.ask("select 4") == [["4"]]


@weir
def who_leaves_leaves_nothing(_context):
    with before() as w:
        wires = [Wire(w.target()) for _ in range(6)]
        for wire in wires:
            wire.ask("select 1")
            wire.ask("begin")
        assert empty(w) == 6
        for i, wire in enumerate(wires):
            wire.close() if i % 2 else wire.vanish()
        eventually(lambda: empty(w) == 0, "all have left")


@weir
def what_others_have_named_is_not_known_in_a_transaction(_context):
    with before(pool_size=2) as w, Wire(w.target()) as names, Wire(w.target()) as asks:
        names.ask("set app.late = 'x'")
        names.ask("select 1")
        asks.ask("begin")
        assert asks.ask("select current_setting('app.late', true)") == [[None]]
        asks.ask("commit")


@weir
def where_the_server_ends_idle_transactions_nothing_waits(_context):
    with Wire(server().superuser()) as a:
        user = server().direct().user
        a.ask(f"alter role {user} set idle_in_transaction_session_timeout = '60s'")
        try:
            with before() as w, Wire(w.target()) as wire:
                wire.ask("select 1")
                wire.ask("begin")
                assert empty(w) == 0
                w.reaches("weir_server_connections", 1, state="active")
                wire.ask("commit")
        finally:
            a.ask(f"alter role {user} reset idle_in_transaction_session_timeout")


@weir
def switched_off_it_takes_a_server_at_once(_context):
    for how in (["pool.late_begin=false"], ["pool.pool_mode=session"]):
        with before(settings=how) as w, Wire(w.target()) as wire:
            wire.ask("select 1")
            wire.ask("begin")
            assert empty(w) == 0
            w.reaches("weir_server_connections", 1, state="active")
            wire.ask("commit")


@weir
def its_time_is_bounded_as_that_of_others(_context):
    for setting, code in (("idle_transaction_timeout", "25P03"), ("transaction_timeout", "25P04")):
        with before(settings=[f"pool.{setting}=0.2"]) as w, Wire(w.target()) as wire:
            wire.ask("select 1")
            wire.ask("begin")
            said = [said[1] for said in shown(wire.closed_by_peer()) if said[0] == "E"]
            assert said == [code], said
            assert empty(w) == 0


@weir
def a_server_that_refuses_to_begin_runs_nothing_behind_it(_context):
    """A limit so short that BEGIN itself may be cut off: the statement runs in its transaction or not at all."""
    with before(pool_size=1) as w, Wire(server().superuser()) as a:
        a.ask("drop table if exists late_once")
        a.ask("create table late_once (a int)")
        a.ask("grant all on late_once to public")
        for i in range(60):
            try:
                with Wire(w.target(), {"options": "-c statement_timeout=1"}) as wire:
                    wire.ask("begin")
                    wire.ask(f"insert into late_once values ({i})")
                    wire.ask("rollback")
            except (ServerError, EOFError, ConnectionError, Exception):  # noqa: BLE001 - whatever it was told
                pass
        assert a.ask("select count(*) from late_once") == [["0"]]
        a.ask("drop table late_once")
