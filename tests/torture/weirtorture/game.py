"""One run on one database: rounds of faults, and pauses in which everything is checked.

Owns: when what happens, what is owed to whom, and the verdict. Invariants: in calm nobody loses anything; in a gentle round only as many
requests as sessions were ended on the database; in a rough one any connection may go, and nothing else.
"""

import collections
import contextlib
import random
import re
import threading
import time

from weirtest.case import eventually

from .clients import Client, Gate
from .faults import COUNTED, FAULTS, GENTLE, ROUGH, Rogues
from .place import POOL
from .rogues import EXPECTED, FIRST
from .words import DEADLINE_S, Lost, Refused, Wrong

CALM = "calm"
ROUND_S, CALM_S = 10.0, 1.5
# What a process may have more than at its start, once all is calm again: measured with faults over many rounds, and rounded up.
MORE_RSS_KB, MORE_SOCKETS = 12_000, 8
# Lasting faults in which others may happen.
AROUND = ("relay_frozen", "relay_slow", "relay_in_pieces", "packets_doubled")


class Game:
    def __init__(self, place, seed, clients, say):
        self.place, self.seed, self.say = place, seed, say
        self.gate = Gate(clients)
        self.clients = [Client(n, place.dialect, place.port, self, seed) for n in range(clients)]
        self.rogues, self.rogue_last = Rogues(), FIRST
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.harm, self.granted, self.spent = ROUGH, 0, 0
        self.faults, self.played = collections.deque(maxlen=40), collections.Counter()
        self.failure, self.began = None, time.monotonic()
        self.rounds = self.checked = self.losses = self.answers = 0
        self.rss = self.sockets = self.uneasy = None

    # --- What the clients tell ---

    def wrong(self, text, client=None):
        """The first failure decides; the run ends."""
        with self.lock:
            if self.failure is None:
                self.failure = (time.monotonic(), f"{text} ({self.harm} round)", list(client.steps) if client else [])
        self.stop.set()

    def loss(self, client, e):
        """A client has lost its connection, or got an error."""
        with self.lock:
            self.losses += 1
            if self.harm == ROUGH:
                return
            self.spent += 1
            if self.spent <= self.granted:
                return
            granted = self.granted
        self.wrong(f"client {client.number} got {type(e).__name__} {e}, which no fault owes it ({granted} sessions were ended)", client)

    def grant(self, count):
        """A session on the database is about to be ended: one request may be lost with it."""
        with self.lock:
            self.granted += count

    def excused(self):
        return self.harm == ROUGH or self.granted > 0 or self.stop.is_set()

    def rogue_number(self):
        with self.lock:
            self.rogue_last += 1
            return self.rogue_last

    def rogue(self, function, seed):
        def work():
            try:
                function(self, seed)
            except Wrong as e:
                self.wrong(f"{function.__name__}: {e}")
            except TimeoutError:
                self.wrong(f"{function.__name__}: nothing comes within {DEADLINE_S} s")
            except EXPECTED as e:
                if isinstance(e, Lost | Refused) and not self.excused():
                    self.wrong(f"{function.__name__} got {type(e).__name__} {e}, which no fault owes it")

        self.rogues.start(function.__name__, work)

    # --- Rounds ---

    def play(self, seconds, short=False):
        """Whether all was well."""
        for client in self.clients:
            client.start()
        try:
            self.check("begins")
            end, draw = time.monotonic() + seconds, random.Random(self.seed)
            while not self.stop.is_set():
                for harm in (GENTLE, ROUGH):
                    self.round(harm, random.Random(draw.random()), short)
                if short or time.monotonic() > end:
                    break
        except Exception as e:
            self.wrong(f"{type(e).__name__}: {e}")
        finally:
            self.gate.open("end")
            self.stop.set()
        return self.failure is None

    def round(self, harm, draw, short):
        if self.stop.is_set():
            return
        self.harm, self.granted, self.spent = harm, 0, 0
        self.gate.open("work")
        names = sorted(n for n, f in FAULTS.items() if n not in self.place.skipped and (f.harm == ROUGH) == (harm == ROUGH))
        if harm == ROUGH and not short:
            names = sorted(n for n in FAULTS if n not in self.place.skipped)
        if short:
            draw.shuffle(names)
        end = time.monotonic() + ROUND_S
        while not self.stop.is_set() and (names if short else time.monotonic() < end):
            name = names.pop() if short else draw.choice(names)
            self.fault(name, random.Random(draw.random()), 0.3 if short else 1.0)
            self.stop.wait(draw.uniform(0.1, 0.3) if short else draw.uniform(0.3, 2.0))
        self.check(harm)

    def fault(self, name, draw, part):
        with self.logged(name), FAULTS[name](self, draw):
            if name in AROUND and draw.random() < 0.5:
                inner = draw.choice(sorted(n for n, f in FAULTS.items() if not f.longest_s and f.harm in (GENTLE, COUNTED, self.harm)))
                with self.logged(f"{name} and {inner}"), FAULTS[inner](self, draw):
                    self.stop.wait(draw.uniform(0.1, 0.3))
            if FAULTS[name].longest_s:
                self.stop.wait(draw.uniform(0.1, FAULTS[name].longest_s * part))

    @contextlib.contextmanager
    def logged(self, name):
        entry = [time.monotonic(), name, None]
        self.faults.append(entry)
        self.played[name] += 1
        yield
        entry[2] = time.monotonic()

    # --- Pauses ---

    def check(self, what):
        """Faults have ended. Everybody succeeds once; then nobody loses anything; then all is counted."""
        ended = time.monotonic()
        self.place.heal()
        self.everybody()
        calm_s = time.monotonic() - ended
        self.harm, self.granted, self.spent = CALM, 0, 0
        self.gate.open("work")
        self.stop.wait(CALM_S)
        self.everybody()
        if left := self.rogues.join(2 * DEADLINE_S):
            raise Wrong(f"clients that behave badly have not ended: {left}")
        if self.stop.is_set():
            return
        eventually(self.calm, "all is calm", DEADLINE_S, 0.1)
        self.count()
        self.measure()
        self.place.complain_of_log(self.place.weir)
        if self.place.relay.trouble:
            raise RuntimeError(f"the relay: {self.place.relay.trouble}")
        self.rounds += 1
        self.answers = sum(c.done for c in self.clients)
        self.say(f"{self.now():7.1f} s {what}: {sum(self.played.values())} faults, {self.checked} writes checked, {self.answers} answers, "
                 f"{self.losses} losses that were owed, everybody well after {calm_s:.1f} s, all counted after {time.monotonic() - ended:.1f}; Weir has {self.place.weir.rss_kb()} kB "
                 f"and {self.place.sockets()} sockets")

    def everybody(self):
        self.gate.open("prove")
        left = self.gate.all_rest(DEADLINE_S, self.stop)
        if left and not self.stop.is_set():
            self.wrong(f"clients {left} do not succeed within {DEADLINE_S} s though all is well", self.clients[left[0]])
            self.uneasy = self.scene()

    def calm(self):
        """What Weir says, what is, and what may be agree; what does not is shown at the end."""
        w, place = self.place.weir, self.place
        on_database, busy = place.number(place.dialect.SERVERS), place.number(place.dialect.BUSY)
        metrics = w.metrics()

        def total(name):
            return int(sum(v for k, v in metrics.items() if k.partition("{")[0] == name))

        said = {n: total(f"weir_{n}") for n in ("client_connections", "client_logins_pending", "waiting_clients", "pinned_servers")}
        servers = total("weir_server_connections")
        self.uneasy = f"Weir says {said}, {servers} servers; the database has {on_database}, {busy} busy"
        return (said == {"client_connections": len(self.clients), "client_logins_pending": 0, "waiting_clients": 0, "pinned_servers": 0}
                and servers == on_database <= POOL and not busy)

    def count(self):
        rows, counters = self.place.tables()
        for client in self.clients:
            found = client.ledger.check(rows.pop(client.number, {}), counters[client.number])
            if found:
                self.wrong(f"client {client.number}: {'; '.join(found[:5])}", client)
        self.checked = sum(c.ledger.checked for c in self.clients)
        for number, found in rows.items():
            for n, count in found.items():
                if number < FIRST or n == 1 or count > 1:
                    self.wrong(f"row {n} of client {number}, which vanished before it was done, is there {count} times")
        if self.place.relay.most > POOL:
            self.wrong(f"Weir had {self.place.relay.most} servers at work, and its pool has {POOL}")

    def measure(self):
        """Memory and sockets, against what the first Weir had before the first fault."""
        rss, sockets = self.place.weir.rss_kb(), self.place.sockets()
        if self.rss is None:
            self.rss, self.sockets = rss, sockets
        if rss > self.rss + MORE_RSS_KB:
            self.wrong(f"Weir has {rss} kB of memory; before the faults it had {self.rss}")
        if sockets > self.sockets + MORE_SOCKETS:
            self.wrong(f"Weir has {sockets} sockets; before the faults it had {self.sockets}")

    # --- The report of a failure ---

    def scene(self):
        """What Weir, the relay and the database say of themselves now."""
        lines = []
        try:
            metrics = self.place.weir.metrics()
            lines += [f"{k} {v:.0f}" for k, v in sorted(metrics.items()) if v and "bucket" not in k and re.search(
                "_connections|_pending|waiting|pinned|pins_total|rollbacks|resets|late|repeated|catalogue|faults", k)]
        except OSError as e:
            lines.append(f"Weir's metrics: {e!r}")
        lines += self.place.relay.scene()
        try:
            with self.place.asking() as session:
                lines += [str(row) for row in session.ask(self.place.dialect.ACTIVITY)[0]]
        except (Lost, Refused, Wrong) as e:
            lines.append(f"the database: {e!r}")
        return "\n    ".join(["the scene:", *lines])

    def now(self):
        return time.monotonic() - self.began

    def report(self):
        at, text, steps = self.failure
        lines = [f"FAILED {text}", f"  at {at - self.began:.3f} s; {self.uneasy or ''}", "  the last faults:"]
        lines += [f"    {a - self.began:8.3f} {name}" + (f" to {b - self.began:.3f}" if b else "") for a, name, b in self.faults]
        if steps:
            lines += ["  the client's last steps:"] + [f"    {t - self.began:8.3f} {step[:300]}" for t, step in steps]
        lines += [f"  Weir's log: {self.place.weir.log_path}"]
        return "\n".join(lines)
