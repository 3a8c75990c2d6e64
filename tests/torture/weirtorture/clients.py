"""Clients at work. Each has its own number, rows and ledger, and knows what every answer must be.

Owns: what is asked, and the verdict on each answer. Must not know: which faults there are.
"""

import collections
import random
import threading
import time

from .ledger import ACKNOWLEDGED, REFUSED, UNKNOWN, Ledger
from .words import Lost, Refused, Wrong

PATTERN = "0123456789abcdef"
LARGE = 100_000


class Client(threading.Thread):
    """`run` is told of losses and of what is wrong; `gate` says when to work, to prove oneself, to rest."""

    def __init__(self, number, dialect, port, run, seed):
        super().__init__(name=f"client {number}", daemon=True)
        self.number, self.dialect, self.port, self.game = number, dialect, port, run
        self.draw = random.Random(f"{seed}/{number}")
        self.ledger = Ledger()
        self.session = None
        self.steps = collections.deque(maxlen=40)
        self.done = self.tokens = self.losses = 0
        works = [(self.insert, 20), (self.transaction, 12), (self.text, 8), (self.prepared, 12), (self.count, 8), (self.own_rows, 8),
                 (self.echo, 16), (self.echo_prepared, 8), (self.large, 3), (self.slow, 4), (self.setting, 3), (self.temporary, 1),
                 (self.given_up, 3), (self.leave, 1)]
        self.works, self.weights = zip(*works, strict=True)

    # --- The loop ---

    def run(self):
        while (phase := self.game.gate.next(self)) != "end":
            try:
                if phase == "work":
                    self.one(self.draw.choices(self.works, self.weights)[0])
                else:
                    # Proving oneself: a write, a look at it and a token, by one connection.
                    if all(self.one(work) for work in (self.insert, self.count, self.own_rows, self.echo)):
                        self.game.gate.proved(self)
            except Wrong as e:
                self.step(f"WRONG {e}")
                self.drop()
                self.game.wrong(f"client {self.number}: {e}", self)
            except Exception as e:  # a defect of this program must not look like a quiet client
                self.drop()
                self.game.wrong(f"client {self.number}: {e!r}", self)
                raise
        if self.session:
            self.session.close()

    def one(self, work):
        """Whether it went well."""
        try:
            if self.session is None:
                self.step("logs in")
                self.session = self.dialect.Session(self.port, f"torture-{self.number}")
            self.step(work.__name__)
            work()
            self.done += 1
            return True
        except (Lost, Refused) as e:
            self.step(f"{type(e).__name__} {e}")
            self.losses += 1
            ended = self.after(e)
            self.game.loss(self, e)
            if ended:
                self.game.gate.pause(self.draw.uniform(0.02, 0.2))
            return False

    def after(self, e):
        """Goes on as drivers do: rolls back what is open, or takes a new connection."""
        if self.session is None or isinstance(e, Lost) or e.ended or not e.sure:
            self.drop()
            return True
        try:
            self.session.ask(self.dialect.ROLLBACK)
        except (Lost, Refused) as again:
            self.step(f"ROLLBACK: {again}")
            self.drop()
        return False

    def drop(self):
        if self.session:
            self.session.vanish()
        self.session = None

    def step(self, what):
        self.steps.append((time.monotonic(), what))

    # --- Writes ---

    def into(self, n, what):
        return f"insert into {self.dialect.TABLE} values ({self.number}, {n}, '{what} {self.number}')"

    def settled(self, write, act):
        """Runs what writes at once, and writes down what became of it."""
        self.step(f"  writes {write.numbers}")
        try:
            act()
        except Refused as e:
            if e.sure and not getattr(e, "done", 0):
                write.outcome = REFUSED
            raise
        write.outcome = ACKNOWLEDGED

    def insert(self):
        write = self.ledger.begin()
        self.settled(write, lambda: self.session.ask(self.into(write.numbers[0], "single")))

    def prepared(self):
        write = self.ledger.begin(2 if self.dialect.ATOMIC_TEXT and self.draw.random() < 0.5 else 1)
        self.settled(write, lambda: self.session.insert_prepared(self.number, write.numbers))

    def text(self):
        write = self.ledger.begin(2, atomic=self.dialect.ATOMIC_TEXT)
        self.settled(write, lambda: self.session.ask("; ".join(self.into(n, "text") for n in write.numbers)))

    def transaction(self):
        write = self.ledger.begin(2)
        self.step(f"  writes {write.numbers} in a transaction")
        # Until COMMIT is sent nothing can have been done, however it ends.
        write.outcome = REFUSED
        self.session.begin()
        for n in write.numbers:
            self.session.ask(self.into(n, "transaction"))
            if self.draw.random() < 0.1:
                self.game.gate.pause(self.draw.uniform(0, 0.05))
        write.outcome = UNKNOWN
        self.settled(write, self.session.commit)

    def given_up(self):
        """A transaction that is rolled back, or whose client vanishes."""
        write = self.ledger.begin(2)
        write.outcome = REFUSED
        self.step(f"  writes {write.numbers} and gives them up")
        self.session.begin()
        for n in write.numbers:
            self.session.ask(self.into(n, "given up"))
        if self.draw.random() < 0.5:
            self.session.ask(self.dialect.ROLLBACK)
        else:
            self.drop()

    def count(self):
        outcome = UNKNOWN
        try:
            self.session.ask(f"update {self.dialect.COUNTER} set n = n + 1 where client = {self.number}")
            outcome = ACKNOWLEDGED
        except Refused as e:
            if e.sure:
                outcome = REFUSED
            raise
        finally:
            self.ledger.added(outcome)

    # --- Reads ---

    def own_rows(self):
        limit = 20
        found = self.session.ask(f"select n from {self.dialect.TABLE} where client = {self.number} order by n desc limit {limit}")[0]
        numbers = [int(n) for (n,) in found]
        if complaint := self.ledger.glance(numbers, len(numbers) < limit):
            raise Wrong(f"{complaint} (read {numbers})")

    def token(self):
        self.tokens += 1
        return f"echo-{self.number}-{self.tokens}"

    def same(self, found, wanted):
        if found != wanted:
            raise Wrong(f"not its own answer: {str(found)[:200]}, not {str(wanted)[:200]}")

    def echo(self):
        token = self.token()
        self.same(self.session.ask(f"select '{token}'")[0], [[token]])

    def echo_prepared(self):
        token = self.token()
        self.same(self.session.echo_prepared(token), [[token]])

    def large(self):
        own = f"{self.number:08}{PATTERN}"
        times = LARGE // len(own)
        self.same(self.session.ask(self.dialect.large(own, times))[0], [[own * times]])

    def slow(self):
        token = self.token()
        found = self.session.ask(self.dialect.slow(0.05, token))[0]
        self.same([row[:1] for row in found], [[token]])

    # --- What a session carries ---

    def setting(self):
        self.tokens += 1
        self.session.setting(self.tokens)

    def temporary(self):
        """Its server stays with it, so it leaves."""
        self.tokens += 1
        try:
            self.session.temporary(self.tokens)
        except (Lost, Refused):
            self.drop()
            raise
        self.leave()

    def leave(self):
        self.session.close()
        self.session = None


class Gate:
    """When clients work, prove themselves, and rest."""

    def __init__(self, clients):
        self.clients = clients
        self.changed = threading.Condition()
        self.phase, self.turn = "rest", 0
        self.resting, self.proofs = set(), {}

    def next(self, client):
        """What to do now; waits while there is to be rest."""
        with self.changed:
            while self.phase == "rest" or (self.phase == "prove" and self.proofs.get(client.number) == self.turn):
                self.resting.add(client.number)
                self.changed.notify_all()
                self.changed.wait()
            self.resting.discard(client.number)
            return self.phase

    def proved(self, client):
        with self.changed:
            self.proofs[client.number] = self.turn

    def open(self, phase):
        with self.changed:
            self.phase = phase
            self.turn += 1
            self.resting.clear()
            self.changed.notify_all()

    def all_rest(self, deadline_s, stop):
        """Those that do not rest at the end of it."""
        end = time.monotonic() + deadline_s
        with self.changed:
            while len(self.resting) < self.clients and time.monotonic() < end and not stop.is_set():
                self.changed.wait(0.1)
            return sorted(set(range(self.clients)) - self.resting)

    def pause(self, seconds):
        """A client's own; not longer than the phase."""
        with self.changed:
            if self.phase == "work":
                self.changed.wait(seconds)
                return
        time.sleep(min(seconds, 0.05))
