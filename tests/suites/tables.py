"""Descriptor tables: as many workers as cores whatever the limit of clients is, further ones with tables of their own when more
clients have come than one table holds, and their end when these have gone. Nobody notices."""

import contextlib
import os
import re
import signal
import subprocess
import threading

from weirtest import mywire, pgwire
from weirtest.case import Skip, eventually, weir
from weirtest.target import DEFAULT_USER, server_env
from weirtest.weir import Weir, binary, url

SERVERS = ["postgres", "mariadb"]
KIND = os.environ.get("WEIR_SUITE", "[postgres").split("[")[1].rstrip("]")
WIRE = pgwire if KIND == "postgres" else mywire

# Open files of a table. Of these 200 are for servers and for what each possible worker takes, and some 100 for clients.
FILES = 300


def start(*settings, nofile=FILES, clients=1000):
    settings = (*([] if any("workers=" in s for s in settings) else ["workers=2"]), *([f"limits.max_client_conn={clients}"] if clients else []), *settings)
    return Weir.before(KIND, port=int(server_env(KIND, "PORT")), pool_size=3, settings=settings, nofile=nofile)


def threads(w, name):
    found = []
    for task in os.listdir(f"/proc/{w.process.pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{w.process.pid}/task/{task}/comm", encoding="utf-8") as f:
            comm = f.read().strip()
            if comm.startswith(name):
                found.append(comm)
    return sorted(found)


def workers(w):
    return len(threads(w, "worker-"))


def worker_of(wire):
    """A client's number says which worker it is at."""
    return (wire.pid if KIND == "postgres" else wire.thread_id) & 63


def remain(w, expected):
    """All other workers end; where one does not, what Weir holds is shown."""
    try:
        eventually(lambda: threads(w, "worker-") == expected, f"only {expected} remain", 60)
    except AssertionError as e:
        counted = ("weir_client_connections", "weir_server_connections", "weir_waiting_clients", "weir_catalogue_reads", "weir_server_closes")
        held = {name: value for name, value in w.metrics().items() if value and name.startswith(counted)}
        raise AssertionError(f"{e}: {threads(w, 'worker-')}, {held}, {w.log()[-3000:]}") from e


def come(w, held, count):
    """So many clients more, all of them served."""
    came = [held.enter_context(WIRE.Wire(w.target())) for _ in range(count)]
    for n, wire in enumerate(came):
        assert wire.ask(f"select 'client {n}'") == [[f"client {n}"]]
    return came


class Working:
    """Clients that work all the while, in transactions."""

    def __init__(self, w, count=2):
        self.w, self.stop, self.raised, self.done = w, threading.Event(), [], 0
        self.threads = [threading.Thread(target=self.work, args=(me,)) for me in range(count)]

    def work(self, me):
        try:
            with WIRE.Wire(self.w.target()) as wire:
                while not self.stop.is_set():
                    wire.ask("begin")
                    assert wire.ask(f"select '{me} {self.done}'")[0][0].startswith(f"{me} ")
                    wire.ask("commit")
                    self.done += 1
        except BaseException as e:  # whatever it is, the test must see it
            self.raised.append(repr(e))

    def __enter__(self):
        for t in self.threads:
            t.start()
        eventually(lambda: self.done or self.raised, "they work")
        return self

    def __exit__(self, kind, *_):
        self.stop.set()
        for t in self.threads:
            t.join()
        if kind is None:
            assert not self.raised, self.raised


@weir
def a_limit_alone_starts_no_worker(_context):
    with start(nofile=20_000, clients=200_000) as w:
        with WIRE.Wire(w.target()) as wire:
            assert wire.ask("select 'served'") == [["served"]]
        # A thread gives itself its name when it begins.
        eventually(lambda: threads(w, "crypto-") == ["crypto-0", "crypto-1", "crypto-server"], "they begin")
        assert threads(w, "worker-") == ["worker-0", "worker-1"]
        w.check_log()


@weir
def workers_come_with_the_clients_and_go_with_them(_context):
    """More clients than three tables hold. All are served, also by a server that is another worker's. Then all but one of
    the last leave: its worker stays, with what it has open; and when it has gone too the workers are those of the start."""
    with start() as w, Working(w):
        for _round in range(2):
            with contextlib.ExitStack() as held:
                came = come(w, held, 450)
                grown = workers(w)
                assert 4 <= grown <= 8, threads(w, "worker-")
                assert w.metric("weir_workers") == grown
                at = {worker_of(wire) for wire in came}
                assert max(at) >= 3, at
                last = max(came, key=worker_of)
                number = worker_of(last)
                last.ask("begin")
                last.ask("select 1")
                for wire in came:
                    if wire is not last:
                        assert wire.ask("select 'once more'") == [["once more"]]
                        wire.close()
                remain(w, ["worker-0", "worker-1", f"worker-{number}"])
                assert last.ask("select 'still there'") == [["still there"]]
                last.ask("commit")
                with WIRE.Wire(w.target()) as wire:
                    assert worker_of(wire) < 2, "there is room where the first workers are"
            remain(w, ["worker-0", "worker-1"])
            w.reaches("weir_workers", 2)
        with WIRE.Wire(w.target()) as wire:
            assert wire.ask("select 'fine'") == [["fine"]]
        w.check_log()


@weir
def clients_that_come_at_once_all_get_in(_context):
    """A storm of connects while no further worker is there yet: who finds no room waits a moment at the door."""
    with start() as w, contextlib.ExitStack() as held:
        lock, came, raised = threading.Lock(), [], []

        def storm(me):
            try:
                for n in range(40):
                    wire = WIRE.Wire(w.target())
                    with lock:
                        came.append(held.enter_context(wire))
                    assert wire.ask(f"select '{me} {n}'") == [[f"{me} {n}"]]
            except BaseException as e:
                raised.append(repr(e))

        storms = [threading.Thread(target=storm, args=(me,)) for me in range(12)]
        for t in storms:
            t.start()
        for t in storms:
            t.join()
        assert not raised, raised[:3]
        assert workers(w) > 3
        for wire in came:
            assert wire.ask("select 'served'") == [["served"]]
        w.check_log()


@weir
def a_client_of_a_further_worker_can_be_cancelled(_context):
    """From the first worker, which hears of it, to the one that has the client."""
    with start() as w, contextlib.ExitStack() as held:
        came = come(w, held, 300)
        last = max(came, key=worker_of)
        assert worker_of(last) >= 2
        seen = []
        sleep = "select pg_sleep(600)" if KIND == "postgres" else "select sleep(600)"

        def runs():
            try:
                seen.append(last.ask(sleep))
            except (pgwire.ServerError, mywire.MyError) as refused:
                seen.append(refused.code)

        t = threading.Thread(target=runs)
        t.start()
        listed = ("select count(*) from pg_stat_activity where state = 'active' and query = 'select pg_sleep(600)'" if KIND == "postgres"
                  else "select count(*) from information_schema.processlist where info = 'select sleep(600)'")
        eventually(lambda: came[0].ask(listed) == [["1"]], "it runs")
        if KIND == "postgres":
            with pgwire.Wire(w.target(), login=False) as canceller:
                canceller.send(pgwire.cancel_request(last.pid, last.secret))
        else:
            came[0].ask(f"kill query {last.thread_id}")
        t.join(60)
        assert seen in (["57014"], [[["1"]]], [1317]), seen
        assert last.ask("select 'goes on'") == [["goes on"]]
        if KIND != "postgres":
            # Of a worker that is not there: nobody has this number.
            try:
                came[0].ask(f"kill query {(1 << 30) + 63}")
            except mywire.MyError as refused:
                assert refused.code == 1094, refused
            else:
                raise AssertionError("somebody was killed")
        w.check_log()


@weir
def weir_ends_in_peace_with_further_workers(_context):
    with start() as w, contextlib.ExitStack() as held:
        came = come(w, held, 300)
        assert workers(w) > 2
        last = max(came, key=worker_of)
        last.ask("begin")
        last.ask("select 1")
        w.signal(signal.SIGTERM)
        eventually(lambda: "stopping when transactions have ended" in w.log(), "it stops")
        assert last.ask("select 'in a transaction'") == [["in a transaction"]]
        last.ask("commit")
        assert w.wait() == 0
        w.ended = True
        w.check_log()


def room(w):
    """How many clients there may be, and why, as the log says."""
    return eventually(lambda: re.search(r"room for (\d+) clients: ([^;]*);", w.log()), "it is said").groups()


@weir
def without_a_limit_there_is_room_for_what_the_machine_holds(_context):
    with start(nofile=20_000, clients=None) as w:
        clients, why = room(w)
        assert int(clients) > 20_000, w.log()
        assert re.fullmatch(r"memory decides: \d+ MB|the limit of 20000 open files decides", why), why
        eventually(lambda: workers(w) == 2, "they begin")
    with start(clients=None) as w, contextlib.ExitStack() as held:
        clients, why = room(w)
        assert why == "the limit of 300 open files decides", why
        assert 400 < int(clients) < 5000, clients
        come(w, held, 200)
        assert workers(w) > 2
        w.check_log()


@weir
def a_file_of_pgbouncer_keeps_its_limit(_context):
    if KIND != "postgres":
        raise Skip("it is about PostgreSQL")
    text = f"[databases]\n* = host=127.0.0.1 port={server_env(KIND, 'PORT')} user={DEFAULT_USER[KIND]}\n[pgbouncer]\nauth_type = any\n"
    with Weir.configured(KIND, text, suffix=".ini") as w:
        eventually(lambda: "room for 100 clients (limits.max_client_conn)" in w.log(), "it is said")


@weir
def what_workers_find_when_they_run_is_counted(_context):
    """Each turn, and what it found; workers let replies gather where requests stand behind one another, and only there."""
    with start("workers=1", "pool.default_pool_size=2", nofile=None, clients=None) as w:
        with WIRE.Wire(w.target()) as wire:
            before = w.metric("weir_worker_turns")
            for _ in range(20):
                wire.ask("select 1")
            turns = w.metric("weir_worker_turns")
            assert turns >= before + 20
            # What has happened since the one was read is in the other.
            found = w.metrics()
            assert found['weir_worker_turn_events_count'] >= turns
            assert found['weir_worker_turn_events_bucket{le="+Inf"}'] == found['weir_worker_turn_events_count']
            assert found['weir_worker_turn_events_sum'] >= 20
            assert (found["weir_workers"], found["weir_workers_gathering"]) == (1, 0)
        # Behind one another: the load generator's clients are 32 for each server.
        load = [binary(), "bench", "run", "select_one", "--connections", "64", "--time", "60", "--url", f"{url(KIND).rsplit(':', 1)[0]}:{w.port}/app"]
        generator = subprocess.Popen(load, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            eventually(lambda: w.metric("weir_workers_gathering") == 1, "it lets them gather", 50)
        finally:
            generator.kill()
            generator.wait()
        with WIRE.Wire(w.target()) as wire:
            eventually(lambda: wire.ask("select 1") and w.metric("weir_workers_gathering") == 0, "and no longer")
