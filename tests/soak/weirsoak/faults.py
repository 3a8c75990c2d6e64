"""What goes wrong meanwhile. Each fault names the databases whose clients may notice it; the process of Weir is never ended: its whole life
is what is looked at."""

import contextlib
import random
import signal
import socket
import threading
import time

from weirtorture.words import Lost, Refused

from .ground import POOL

# Behind a fault connections may still be lost, and be refused, for so long.
AFTER_S = 15.0
SILENT = 300


def database_stopped(ground, database, draw):
    database.signal(signal.SIGSTOP)
    time.sleep(draw.uniform(0.5, 4))
    database.signal(signal.SIGCONT)


def database_restarted(_ground, database, _draw):
    database.restart(crash=False)


def database_crashed(_ground, database, _draw):
    database.restart(crash=True)


def sessions_ended(_ground, database, _draw):
    """All that Weir has on the database."""
    with contextlib.suppress(Lost, Refused), database.asking() as session:
        for (pid,) in session.ask(database.dialect.PIDS)[0]:
            with contextlib.suppress(Refused):
                session.ask(database.dialect.END_ONE.format(pid))


def clients_vanish(ground, database, _draw):
    ground.loads[database.kind].kill()


def weir_reloaded(ground, _database, draw):
    ground.reload(draw.choice([4, POOL, 16]))


def weir_stopped(ground, _database, draw):
    ground.weir.signal(signal.SIGSTOP)
    time.sleep(draw.uniform(0.2, 1.5))
    ground.weir.signal(signal.SIGCONT)


def silent_connections(ground, database, draw):
    """Many that say nothing, and go."""
    silent = []
    with contextlib.ExitStack() as open_ones:
        for _ in range(SILENT):
            with contextlib.suppress(OSError):
                silent.append(open_ones.enter_context(socket.create_connection(("127.0.0.1", ground.port(database)), timeout=5)))
        time.sleep(draw.uniform(0.5, 3))


ROUGH = (database_restarted, database_crashed, sessions_ended)
FAULTS = (*ROUGH, database_stopped, clients_vanish, weir_reloaded, weir_stopped, silent_connections)


class Faults(threading.Thread):
    """One after the other until told to stop, drawn by the seed."""

    def __init__(self, ground, seed, every_s, tell):
        super().__init__(name="faults", daemon=True)
        self.ground, self.every_s, self.tell = ground, every_s, tell
        self.draw, self.stop = random.Random(f"{seed}/faults"), threading.Event()
        self.lock, self.played = threading.Lock(), []

    def run(self):
        while not self.stop.wait(self.draw.uniform(*self.every_s)):
            fault, database = self.draw.choice(FAULTS), self.draw.choice(self.ground.databases)
            entry = [time.monotonic(), None, fault, database]
            with self.lock:
                self.played.append(entry)
            try:
                fault(self.ground, database, random.Random(self.draw.random()))
            except Exception as e:  # a fault that cannot be undone would let all else fail for a wrong reason
                self.tell(f"{fault.__name__} of {database.kind}: {type(e).__name__}: {e}")
                return
            entry[1] = time.monotonic()

    def excused(self, database, began):
        """Whether a request that began then may have been lost: its database's sessions were ended at a time that was not over."""
        with self.lock:
            recent = self.played[-40:]
        return any(fault in ROUGH and where is database and (end is None or end + AFTER_S > began) for _, end, fault, where in recent)
