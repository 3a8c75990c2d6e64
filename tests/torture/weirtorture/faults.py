"""The faults. Each is a context: what it does lasts until the context ends, and is undone there.

Owns: what is done. Must not know: what clients make of it, but for whether it may cost one of them a request (`ROUGH`), none (`GENTLE`), or
one at each server that was ended (`COUNTED`).
"""

import contextlib
import os
import resource
import signal
import threading
import time

from . import rogues
from .words import Lost, Refused

ROUGH, GENTLE, COUNTED = "rough", "gentle", "counted"
FAULTS = {}


def fault(harm, longest_s=0.0):
    """Registers one. `longest_s`: it lasts up to so long; 0: it happens and is over."""

    def register(function):
        context = contextlib.contextmanager(function)
        context.harm, context.longest_s = harm, longest_s
        FAULTS[function.__name__] = context
        return context

    return register


# --- The database ---


@fault(ROUGH)
def database_killed(game, draw):
    game.place.kill_database()
    time.sleep(draw.uniform(0, 0.5))
    game.place.database.start()
    yield


@fault(ROUGH)
def database_restarted(game, draw):
    game.place.database.stop()
    time.sleep(draw.uniform(0, 0.3))
    game.place.database.start()
    yield


@fault(COUNTED)
def sessions_ended(game, draw):
    """Some of the sessions Weir has on the database, one after the other."""
    d = game.place.dialect
    with contextlib.suppress(Lost, Refused), game.place.asking() as session:
        pids = [pid for (pid,) in session.ask(d.PIDS)[0]]
        for pid in draw.sample(pids, min(len(pids), draw.randint(1, 2))):
            game.grant(1)
            with contextlib.suppress(Refused):
                session.ask(d.END_ONE.format(pid))
    yield


@fault(GENTLE, 2.0)
def database_stopped(game, _draw):
    game.place.to_database(signal.SIGSTOP)
    try:
        yield
    finally:
        game.place.to_database(signal.SIGCONT)


@fault(ROUGH, 1.0)
def disk_full(game, _draw):
    """Every byte of the database's disk is taken."""
    if not game.place.disk:
        yield
        return
    filler = os.path.join(game.place.disk, "filler")
    with open(filler, "wb") as f, contextlib.suppress(OSError):
        while True:
            f.write(bytes(1 << 20))
    try:
        yield
    finally:
        os.remove(filler)
        game.place.database_up()


# --- Weir ---


@fault(GENTLE, 2.0)
def weir_stopped(game, _draw):
    game.place.weir.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        game.place.weir.signal(signal.SIGCONT)


@fault(ROUGH)
def weir_drained(game, _draw):
    game.place.replace_weir(signal.SIGTERM)
    yield


@fault(ROUGH)
def weir_killed(game, _draw):
    game.place.replace_weir(signal.SIGKILL)
    yield


@fault(GENTLE)
def weir_reloaded(game, draw):
    game.place.reload(draw.randint(2, 4))
    yield


@fault(ROUGH, 1.5)
def descriptors_short(game, _draw):
    """What Weir accepts or opens now fails."""
    pid = game.place.weir.process.pid
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (4, game.place.nofile[1]))
    try:
        game.place.relay.cut()  # so that something has to be opened
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, game.place.nofile)


@fault(GENTLE, 2.0)
def clock_jumps(game, draw):
    """Somebody sets Weir's time of day: by seconds, by an hour, by ten years, to and fro."""
    try:
        for _ in range(draw.randint(1, 3)):
            game.place.set_clock(draw.choice([-1, 1]) * draw.choice([3, 3_600, 315_360_000]))
            time.sleep(draw.uniform(0, 0.2))
        yield
    finally:
        game.place.set_clock(0)


# --- Between the two ---


@fault(GENTLE, 2.0)
def relay_frozen(game, _draw):
    game.place.relay.frozen = True
    try:
        yield
    finally:
        game.place.relay.frozen = False
        game.place.relay.order(lambda: None)


@fault(ROUGH)
def relay_cut(game, _draw):
    game.place.relay.cut()
    yield


@fault(ROUGH, 2.0)
def relay_silent(game, _draw):
    game.place.relay.swallow(True)
    try:
        yield
    finally:
        game.place.relay.swallow(False)


@fault(GENTLE, 2.0)
def relay_slow(game, draw):
    game.place.relay.delay_s = draw.uniform(0.001, 0.05)
    try:
        yield
    finally:
        game.place.relay.delay_s = 0.0


@fault(GENTLE, 1.0)
def relay_in_pieces(game, draw):
    """Messages arrive in small pieces."""
    game.place.relay.piece = draw.choice([1, 3, 7, 100])
    try:
        yield
    finally:
        game.place.relay.piece = 1 << 16


@fault(GENTLE, 2.0)
def packets_doubled(game, draw):
    """Packets are delayed, lost, doubled and reordered, which is TCP's business."""
    game.place.disturb_network("delay", f"{draw.randint(1, 20)}ms", "5ms", "loss", f"{draw.randint(1, 8)}%", "duplicate", "2%")
    try:
        yield
    finally:
        game.place.calm_network()


@fault(GENTLE)
def packets_lost(game, draw):
    """A cable with a loose contact."""
    try:
        for _ in range(draw.randint(3, 8)):
            game.place.disturb_network()
            time.sleep(draw.uniform(0, 0.03))
            game.place.calm_network()
            time.sleep(draw.uniform(0, 0.1))
    finally:
        game.place.calm_network()
    yield


@fault(GENTLE, 1.5)
def unplugged(game, _draw):
    """No packet passes, and nobody is told."""
    game.place.disturb_network()
    try:
        yield
    finally:
        game.place.calm_network()


# --- Clients that behave badly, beside the others ---


def rogue(behaviour):
    def started(game, draw):
        game.rogue(behaviour, draw.random())
        yield

    started.__name__ = behaviour.__name__
    fault(GENTLE)(started)


for behaviour in (rogues.resets_in_request, rogues.resets_in_result, rogues.half_open, rogues.slow_reader, rogues.half_message,
                  rogues.garbage, rogues.many_that_say_nothing):
    rogue(behaviour)


class Rogues:
    """The threads of those clients."""

    def __init__(self):
        self.threads = []

    def start(self, name, function, *args):
        self.threads = [t for t in self.threads if t.is_alive()]
        if len(self.threads) < 8:
            thread = threading.Thread(target=function, args=args, name=name, daemon=True)
            thread.start()
            self.threads.append(thread)

    def join(self, deadline_s):
        end = time.monotonic() + deadline_s
        for thread in self.threads:
            thread.join(max(0.0, end - time.monotonic()))
        left = [t.name for t in self.threads if t.is_alive()]
        self.threads = []
        return left

