"""A panic in a thread of Weir, asked for at one place after the other, under load: it costs the clients of one worker their
connections and nothing else. Nothing that was answered is lost, no server is used in the state it was left in, no place and no
waiter is left behind, and what panics again and again ends. In debug builds only."""

import contextlib
import functools
import json
import os
import signal
import socket
import threading
import urllib.error

from weirtest import mywire, pgwire
from weirtest.case import Skip, eventually, weir
from weirtest.private import PrivateServer
from weirtest.relay import Relay
from weirtest.target import PASSWORD
from weirtest.weir import Weir, binary, free_port

SERVERS = ["postgres", "mysql", "mariadb"]
KIND = os.environ.get("WEIR_SUITE", "[postgres").split("[")[1].rstrip("]")
PROTOCOL = "postgres" if KIND == "postgres" else "mysql"
wires = pgwire if KIND == "postgres" else mywire
REFUSED = (ConnectionError, TimeoutError, wires.Closed, pgwire.ServerError, mywire.MyError)

# Where load gets to by itself, in crates/proxy/src/hall.
PLACES = [
    "found", "dispatch", "lease", "done", "end_lease", "settle", "offer", "server_bytes", "deliver", "flush_server",
    "acquire_or_wait", "enter_queue", "abandon", "remove_client", "client_ended", "accepted", "login_input", "logged_in",
    "open", "server_ready", "slot_freed", "drop_server", "refill", "ride", "carried", "mail", "hand_over", "taken_over",
]
CLIENTS, POOL = 16, 2


@functools.cache
def server():
    private = PrivateServer(KIND, max_connections=60)
    with wires.Wire(private.superuser()) as wire:
        table = "counted" if KIND == "postgres" else "app.counted"
        wire.ask(f"create table {table} (i int primary key, n int)")
        wire.ask(f"insert into {table} values {','.join(f'({i}, 0)' for i in range(CLIENTS))}")
        if KIND == "postgres":
            wire.ask("grant all on counted to public")
            wire.ask("create table big as select i from generate_series(1, 20000) i")
            wire.ask("create unique index on big (i)")
            wire.ask("grant select on big to public")
            wire.ask("analyze big")
            # Code for its plan would be made for a tenth of a second: it would always be slow.
            wire.ask("alter system set jit = off")
            wire.ask("select pg_reload_conf()")
        else:
            wire.ask("create table app.big (i int primary key)")
            wire.ask(f"insert into app.big values {','.join(f'({i})' for i in range(1, 20001))}")
    return private


@contextlib.contextmanager
def start(most, settings=(), **kw):
    if "release" in binary():
        raise Skip("a release build cannot be asked to panic")
    w = Weir.before(KIND, port=server().port, pool_size=POOL, settings=["workers=2", *settings],
                    env={"WEIR_TEST_PANICS": str(most)}, **kw)
    try:
        yield w
        w.signal(15)
        assert w.wait() == 0, w.log()[-2000:]
    finally:
        w.kill()


@contextlib.contextmanager
def or_refused():
    """What is refused, lost or closed here is what a panic costs."""
    try:
        yield
    except REFUSED:
        pass
    except AssertionError as e:
        # MySQL's last words to an idle client, which has just begun to ask.
        if "packet number 0 where 1" not in str(e):
            raise


def panics(w):
    return w.metric("weir_panics")


def connections(admin):
    if KIND == "postgres":
        return int(admin.ask("select count(*) from pg_stat_activity where usename like 'app%'")[0][0])
    return int(admin.ask("select count(*) from information_schema.processlist where user = 'app'")[0][0])


def in_transaction(admin):
    if KIND == "postgres":
        return int(admin.ask("select count(*) from pg_stat_activity where state like 'idle in%'")[0][0])
    return int(admin.ask("select count(*) from information_schema.innodb_trx")[0][0])


if KIND == "postgres":
    MARK, UNMARKED, MARKED, MARK_OF = "select current_setting('work_mem')", "4MB", "work_mem = ", "{}kB"
    LOCK, UNLOCK, LOCKED = "select pg_advisory_lock({})", "select pg_advisory_unlock({})", [[""]]
else:
    MARK, UNMARKED, MARKED, MARK_OF = "select coalesce(@mark, '')", "", "@mark = ", "{}"
    LOCK, UNLOCK, LOCKED = "select get_lock('{}', 600)", "select release_lock('{}')", [["1"]]


class Load:
    """Clients that set, lock, write and read without a pause, and come back when they lose their connection."""

    def __init__(self, w):
        self.w = w
        self.stop = threading.Event()
        self.written, self.unknown, self.turns = [0] * CLIENTS, [0] * CLIENTS, [0] * CLIENTS
        self.wrong = []
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(CLIENTS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def run(self, i):
        while not self.stop.is_set():
            try:
                with or_refused(), wires.Wire(self.w.target()) as wire:
                    # What others have set is not here, whatever became of them.
                    self.expect([[UNMARKED]], wire.ask(MARK))
                    wire.ask(f"set {MARKED}{1000 + i}")
                    for turn in range(20):
                        if self.stop.is_set():
                            return
                        self.turn(wire, i, turn)
            except AssertionError as e:
                self.wrong.append(repr(e))

    def turn(self, wire, i, turn):
        tag = f"{i}/{turn}"
        self.expect([[tag]], wire.ask(f"select '{tag}'"))
        self.expect([[MARK_OF.format(1000 + i)]], wire.ask(MARK))
        if turn % 5 == 0:
            # A server that went on with a lock of before would keep this client waiting for good.
            self.expect(LOCKED, wire.ask(LOCK.format(i)))
            wire.ask(UNLOCK.format(i))
        wire.ask("begin")
        wire.ask(f"update counted set n = n + 1 where i = {i}")
        self.unknown[i] += 1
        wire.ask("commit")
        self.unknown[i] -= 1
        self.written[i] += 1
        self.turns[i] += 1

    def expect(self, wanted, got):
        if got != wanted:
            self.wrong.append((wanted, got))


@weir
def a_panic_costs_the_clients_of_one_worker_and_nothing_else(_context):
    # Servers come and go, so that their opening and closing can be asked to panic, too.
    settings = ["pool.server_lifetime=1"]
    with start(most=1_000, settings=settings) as w, wires.Wire(server().superuser()) as admin:
        with Load(w) as load:
            def all_go_on():
                before = list(load.turns)
                eventually(lambda: all(now > then + 2 for now, then in zip(load.turns, before, strict=True)), "all go on", 60)

            all_go_on()
            for place in PLACES:
                before = panics(w)

                def asked(place=place, before=before):
                    # Asked once more if the worker was another's victim, or never gets there by this client.
                    with or_refused(), wires.Wire(w.target()) as wire:
                        wire.ask(f"select 'weir panics at {place}'")
                        wire.close(politely=False)
                    return panics(w) > before

                eventually(asked, f"a panic at {place}", 60)
                assert w.alive() and w.http("/readyz") == "ready\n"
                all_go_on()
        assert not load.wrong, load.wrong[:3]
        rows = admin.ask(f"select i, n from {'counted' if KIND == 'postgres' else 'app.counted'}")
        for i, n in ((int(i), int(n)) for i, n in rows):
            assert load.written[i] <= n <= load.written[i] + load.unknown[i], (i, n, load.written[i], load.unknown[i])
        eventually(lambda: w.metric("weir_client_connections", protocol=PROTOCOL) == 0, "all have left")
        eventually(lambda: in_transaction(admin) == 0, "nothing is left open")
        for name in ("weir_waiting_clients", "weir_pinned_servers", "weir_client_logins_pending"):
            assert w.metric(name, protocol=PROTOCOL) == 0, name
        eventually(lambda: connections(admin) == w.metric("weir_server_connections", protocol=PROTOCOL) <= POOL,
                   "Weir has the servers it says")
        # No place is lost: as many as the pool may have are opened and served.
        clients = [wires.Wire(w.target()) for _ in range(POOL)]
        for client in clients:
            client.ask("begin")
            client.ask("select 1 from counted where i = 1")
        # One that was too old has closed, and the database may still be about to notice.
        eventually(lambda: connections(admin) == POOL, "as many as the pool may have")
        for client in clients:
            client.close()
        eventually(lambda: in_transaction(admin) == 0, "nothing is left open")


# Only reads; some tenths of a second.
HEAVY = "select count(*) from big a, big b where a.i + b.i < 0 and a.i < {}"


def send(wire, sql):
    if KIND == "postgres":
        wire.send(pgwire.query(sql))
    else:
        wire.command(mywire.QUERY, sql)


def answer(wire):
    """The first row, or `None` for a client that has lost its connection before."""
    with or_refused():
        if KIND == "postgres":
            return next((pgwire.row(body)[0] for kind, body in wire.until("Z") if kind == "D"), None)
        return next((mywire.text_row(packet)[0] for what, packet in wire.reply() if what == "row"), None)
    return None


def is_cancelled(w, slow):
    if KIND == "postgres":
        with socket.create_connection(("127.0.0.1", w.target().port)) as s:
            s.sendall(pgwire.cancel_request(slow.pid, slow.secret))
            with contextlib.suppress(ConnectionError):
                s.recv(1)
    else:
        with or_refused(), mywire.Wire(w.target()) as other:
            other.ask(f"kill query {slow.thread_id}")


def they_ask_the_same(w, _admin, first, others, then):
    """While the only server is in another's transaction; the first of them asks for the others as well."""
    with wires.Wire(w.target()) as holder:
        holder.ask("begin")
        holder.ask("select 1 from counted where i = 1")
        for i, wire in enumerate((first, *others)):
            send(wire, "select 'the same'")
            eventually(lambda i=i: w.metric("weir_waiting_clients", protocol=PROTOCOL) == i + 1, "it waits")
        if then:
            then(w, first)
        with or_refused():
            holder.ask("commit")
    return ["the same" for _ in others]


def one_is_slow(w, admin, first, others, then):
    """The others ask behind it, on the same server."""
    # All is there when Weir looks again.
    w.signal(signal.SIGSTOP)
    send(first, HEAVY.format(200))
    for i, other in enumerate(others):
        send(other, f"select 'other {i}'")
    w.signal(signal.SIGCONT)
    if then:
        eventually(lambda: running(admin) >= 1, "the slow one runs")
        then(w, first)
    return [f"other {i}" for i in range(len(others))]


# Places that load does not get to by itself.
SHARED_PLACES = {
    "echo": (they_ask_the_same, None), "part": (they_ask_the_same, lambda _, first: first.vanish()),
    "scatter": (they_ask_the_same, lambda _, first: first.vanish()), "take_back": (one_is_slow, None), "kill": (one_is_slow, is_cancelled),
    "client_timer": (one_is_slow, None),
}


@weir
def a_panic_where_clients_share_gives_nobody_anothers_answer(_context):
    """Of one worker and one server: all are on it, or wait for it, when it happens."""
    settings = ["workers=1", "pool.default_pool_size=1", "pool.share_answers=true", "limits.client_idle_timeout=2"]
    for place, (share, then) in SHARED_PLACES.items():
        with start(most=1_000, settings=settings) as w, wires.Wire(server().superuser()) as admin:
            with wires.Wire(w.target()) as wire:
                # What is new, or has been slow, shares with nobody.
                for sql in (HEAVY.format(0), "select 'known'") * 60:
                    wire.ask(sql)
            first, *others = [wires.Wire(w.target()) for _ in range(8)]
            assert first.ask(f"select 'weir panics at {place}'") == [[f"weir panics at {place}"]]
            wanted = share(w, admin, first, others, then)
            eventually(lambda w=w: panics(w) == 1, f"a panic at {place}")
            got = [answer(other) for other in others]
            assert all(one in (None, due) for one, due in zip(got, wanted, strict=True)), (place, got)
            for i in range(3):
                with wires.Wire(w.target()) as wire:
                    assert wire.ask(f"select 'after {i}'") == [[f"after {i}"]]
            for name in ("weir_waiting_clients", "weir_pinned_servers"):
                assert w.metric(name, protocol=PROTOCOL) == 0, (place, name)
            eventually(lambda a=admin: running(a) == 0 == in_transaction(a), f"{place}: nothing runs for nobody")
            eventually(lambda w=w, a=admin: connections(a) == w.metric("weir_server_connections", protocol=PROTOCOL) <= 1,
                       f"{place}: Weir has the server it says")
            assert panics(w) == 1


def running(admin):
    if KIND == "postgres":
        return int(admin.ask("select count(*) from pg_stat_activity where state = 'active' and query like 'select count(*) from big a%'")[0][0])
    return int(admin.ask("select count(*) from information_schema.processlist where info like 'select count(*) from big a%'")[0][0])


@weir
def who_waits_for_nothing_is_told_that_it_was_no_shutdown(_context):
    with start(most=1_000, settings=["workers=1"]) as w:
        with wires.Wire(w.target()) as idle:
            idle.ask("select 1")
            with contextlib.suppress(*REFUSED), wires.Wire(w.target()) as wire:
                wire.ask("select 'weir panics at done'")
            eventually(lambda: panics(w) == 1, "it is counted")
            with contextlib.suppress(ConnectionError, TimeoutError):
                said = b""
                while got := idle.sock.recv(4096):
                    said += got
            assert b"internal error" in said and b"shut" not in said, said


@weir
def a_panic_that_repeats_ends_the_process(_context):
    with contextlib.suppress(AssertionError), start(most=3) as w:
        for turn in range(3):
            with contextlib.suppress(*REFUSED), wires.Wire(w.target()) as wire:
                wire.ask("select 'weir panics at done'")
            if turn < 2:
                eventually(lambda turn=turn: panics(w) == turn + 1, "it is counted")
        status = w.wait()
    assert status == 1, status
    assert "that has happened too often" in w.log(), w.log()[-2000:]
    with wires.Wire(server().superuser()) as admin:
        eventually(lambda: connections(admin) == 0, "no server is left")


@weir
def a_panic_over_the_sizes_of_the_pools_costs_nobody_anything(_context):
    with start(most=1_000) as w, wires.Wire(w.target()) as wire:
        for turn in (1, 2):
            assert wire.ask("select 'weir panics at sizing'") == [["weir panics at sizing"]]
            eventually(lambda turn=turn: panics(w) == turn, "it is counted, and the thread goes on")
        assert wire.ask("select 1") == [["1"]]
        assert w.http("/readyz") == "ready\n"


@weir
def a_panic_of_the_control_thread_ends_the_process(_context):
    """Nobody else hears signals or answers /readyz: it must not go on without it."""
    with contextlib.suppress(AssertionError), start(most=1_000) as w:
        with wires.Wire(w.target()) as wire:
            assert wire.ask("select 'weir panics at control'") == [["weir panics at control"]]
            status = w.wait()
    assert status == 1, status
    assert "the control thread has panicked" in w.log(), w.log()[-2000:]
    with wires.Wire(server().superuser()) as admin:
        eventually(lambda: connections(admin) == 0, "no server is left")


@weir
def a_panic_over_a_login_costs_that_login(_context):
    """The threads for slow work go on."""
    if KIND != "postgres":
        raise Skip("without TLS no login of these clients has slow work; PostgreSQL's have SCRAM")
    with start(most=1_000) as w, wires.Wire(server().superuser()) as admin:
        with wires.Wire(w.target()) as wire:
            wire.ask("select 'weir panics at crypto'")
            wire.ask("begin")
            wire.ask("select 1")
            # The same password with another salt: the next server's login derives its keys anew.
            admin.ask(f"alter role {w.target().user} password '{PASSWORD}'")
            with contextlib.suppress(*REFUSED), wires.Wire(w.target()) as other:
                other.ask("select 1")
            eventually(lambda: panics(w) == 1, "it is counted")
            assert wire.ask("select 1") == [["1"]]
        with contextlib.suppress(urllib.error.URLError):
            assert w.http("/readyz") == "ready\n"
        with wires.Wire(w.target()) as one, wires.Wire(w.target()) as other:
            one.ask("begin")
            one.ask("select 1")
            assert other.ask("select 1") == [["1"]]
        assert panics(w) == 1


@weir
def a_panic_over_keys_derived_in_advance_costs_nobody_anything(_context):
    """Logins derive what that thread has not."""
    if KIND != "postgres":
        raise Skip("MySQL's logins need no keys")
    with start(most=1_000) as w:
        with wires.Wire(w.target()) as wire:
            wire.ask("select 'weir panics at derive'")
            w.signal(1)
            eventually(lambda: panics(w) == 1, "it is counted")
            assert wire.ask("select 1") == [["1"]]
        with wires.Wire(w.target()) as wire:
            assert wire.ask("select 1") == [["1"]]
        assert "the thread that derives password keys in advance has panicked" in w.log(), w.log()[-2000:]


@weir
def a_thread_that_would_be_missing_ends_the_process(_context):
    """Logins would wait for it; a service manager makes a better start."""
    if KIND != "postgres":
        raise Skip("without TLS no login of these clients has slow work; PostgreSQL's have SCRAM")
    with contextlib.suppress(AssertionError), start(most=1_000) as w, wires.Wire(server().superuser()) as admin:
        with wires.Wire(w.target()) as wire:
            wire.ask("select 'weir panics at crypto_thread'")
            wire.ask("begin")
            wire.ask("select 1")
            # The same password with another salt: the next server's login derives its keys anew.
            admin.ask(f"alter role {w.target().user} password '{PASSWORD}'")
            with contextlib.suppress(*REFUSED), wires.Wire(w.target()) as other:
                other.ask("select 1")
            status = w.wait()
    assert status == 1, status
    assert "has panicked where it cannot go on" in w.log(), w.log()[-2000:]
    with wires.Wire(server().superuser()) as admin:
        eventually(lambda: connections(admin) == 0, "no server is left")


@weir
def a_panic_over_a_servers_greeting_costs_nobody_anything(_context):
    """The thread goes on asking."""
    if KIND == "postgres":
        raise Skip("PostgreSQL's servers do not speak first")
    port = free_port()
    text = (f'[databases.app]\nurl = "mysql://127.0.0.1:{port}/app"\n[users.app]\npassword = "{PASSWORD}"\n[console]\nadmin_users = ["app"]\n')
    with contextlib.ExitStack() as ends:
        w = Weir.configured(KIND, text, env={"WEIR_TEST_PANICS": "1000"})
        ends.callback(w.kill)
        with mywire.Wire(w.target(database="weir")) as wire, contextlib.suppress(mywire.MyError):
            wire.ask("show version -- weir panics at greeting")
        eventually(lambda: panics(w) == 1, "it is counted")
        assert "the thread that reads servers' greetings has panicked" in w.log(), w.log()[-2000:]
        with mywire.Wire(w.target(database="weir")) as wire:
            unknown = wire.version
        with Relay("127.0.0.1", port, server().port):

            def learnt():
                with mywire.Wire(w.target(database="weir")) as wire:
                    return wire.version != unknown

            eventually(learnt, "clients are greeted as the server greets")


@weir
def a_panic_over_a_further_worker_leaves_the_others_and_room_for_servers(_context):
    """There is none from then on: who finds no place is told, and nobody takes the descriptors of servers and of the metrics."""
    with start(most=1_000, settings=["limits.max_client_conn=400"], nofile=300) as w, contextlib.ExitStack() as held:
        first = held.enter_context(wires.Wire(w.target()))
        assert first.ask("select 'weir panics at nursery'") == [["weir panics at nursery"]]
        # The next worker is ordered when three quarters of the first table's room are taken, that is 87.
        came, told = [held.enter_context(wires.Wire(w.target())) for _ in range(90)], []
        eventually(lambda: panics(w) == 1 and "the thread that starts workers has panicked" in w.log(), "it is counted and said")
        for _ in range(300):
            try:
                came.append(held.enter_context(wires.Wire(w.target())))
            except (pgwire.LoginRefused, mywire.MyError) as refused:
                told.append(refused.code)
                break
        assert set(told) == {"53300" if KIND == "postgres" else 1040}, (told, len(came))
        assert len(came) > 95, len(came)
        # Servers are opened now, and were not before.
        for sql in ("begin", "select 1 from counted where i = 1", "commit"):
            for wire in came[:POOL]:
                wire.ask(sql)
        for wire in (first, *came):
            assert wire.ask("select 1") == [["1"]]
        came.pop().close()
        eventually(lambda: is_let_in(w), "the place of one who has left is free")


def is_let_in(w):
    try:
        wires.Wire(w.target()).close()
    except (pgwire.LoginRefused, mywire.MyError):
        return False
    return True


@weir
def a_panic_is_one_object_of_a_log_in_json(_context):
    with start(most=1_000, settings=["log.format=json"]) as w:
        with contextlib.suppress(*REFUSED), wires.Wire(w.target()) as wire:
            wire.ask("select 'weir panics at done'")
        eventually(lambda: panics(w) == 1, "it is counted")
        events = [json.loads(line) for line in w.log().splitlines()]
        said = [event for event in events if "a test asked for a panic at done" in event["message"]]
        assert len(said) == 1 and said[0]["level"] == "ERROR", events
        assert any("has panicked: this is a defect of Weir" in event["message"] for event in events), events
