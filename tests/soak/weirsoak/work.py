"""What is asked of Weir: a mixture by the load generator, one probe for each database, and the torture beside it.

Owns: who asks, and the verdict on each answer. Must not know: which faults there are; `excused` says whether one was at work.
"""

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

from weirtest.weir import ROOT, binary
from weirtorture.words import Lost, Refused, Wrong

from .ground import DATABASES

ROWS = 10_000
PROBE_EVERY_S = 0.05
PIECE_S = (10, 40)
# (workload, connections, more words). Each answer is checked by the load generator.
WORKLOADS = [
    ("oltp_point_select", 100, []), ("oltp_point_select", 300, ["--protocol-mode", "prepared"]), ("oltp_read_write", 16, []),
    ("oltp_read_write", 16, ["--protocol-mode", "extended"]), ("oltp_update_index", 12, ["--protocol-mode", "prepared"]),
    ("select_one", 200, ["--protocol-mode", "extended"]), ("select_random_ranges", 8, []), ("connect", 8, []),
    ("storm", 100, ["--patience", "1"]), ("idle", 500, ["--busy", "10"]),
]
# Of an answer that is no answer to what was asked; all others are faults of somebody, which connections may have.
WRONG = ("wrong-reply", "protocol")


class Load(threading.Thread):
    """One workload after the other on one database, each with connections of its own, in clear or inside TLS."""

    def __init__(self, ground, database, seed, excused, tell):
        super().__init__(name=f"load {database.kind}", daemon=True)
        self.ground, self.database, self.excused, self.tell = ground, database, excused, tell
        self.draw = random.Random(f"{seed}/{database.kind}")
        self.process, self.stop = None, threading.Event()
        self.runs = self.queries = self.errors = self.killed = 0
        self.path = os.path.join(ROOT, f"target/suites/soak-{os.getpid()}-{database.kind}.json")

    def prepare(self):
        subprocess.run([binary(), "bench", "prepare", "oltp_read_write", "--table-size", str(ROWS), "--url", self.database.url()], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def run(self):
        while not self.stop.is_set():
            workload, connections, more = self.draw.choice(WORKLOADS)
            tls = "?sslmode=require" if self.database.kind == "postgres" else "?ssl-mode=REQUIRED"
            url = self.database.url(self.ground.port(self.database), tls if self.draw.random() < 0.3 else "")
            words = [binary(), "bench", "run", workload, "--url", url, "--connections", str(connections), "--time", str(self.draw.randint(*PIECE_S)),
                     "--event-loops", "1", "--report-interval", "0", "--table-size", str(ROWS), "--ignore-errors", "all", "--json", self.path, *more]
            began = time.monotonic()
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            said = self.process.communicate()[0].decode(errors="replace")
            self.runs += 1
            if self.process.returncode == -signal.SIGKILL:
                self.killed += 1
            # One that cannot connect at its beginning gives up.
            elif not self.take(workload) and not self.stop.is_set() and not self.excused(self.database, began):
                self.tell(f"{self.database.kind}: {workload} ended with {self.process.returncode}: {said[-500:]}")

    def take(self, workload):
        """Whether the run told what it has seen."""
        with contextlib.suppress(OSError, ValueError), open(self.path, encoding="utf-8") as f:
            report = json.load(f)
            os.remove(self.path)
            self.queries += report["queries"]
            self.errors += report["errors"]
            for error in report["errors_by_code"]:
                if error["code"] in WRONG:
                    self.tell(f"{self.database.kind}: {workload}: {error['count']} x {error['code']}: {error['first_text']}")
            return True
        return False

    def kill(self):
        """The clients vanish, all at once."""
        if self.process and self.process.poll() is None:
            self.process.kill()

    def end(self):
        self.stop.set()
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)


class Probe(threading.Thread):
    """One client that asks all the time, and whose every answer is known: what a program behind Weir notices."""

    def __init__(self, ground, database, excused, tell):
        super().__init__(name=f"probe {database.kind}", daemon=True)
        self.ground, self.database, self.excused, self.tell = ground, database, excused, tell
        self.stop, self.lock = threading.Event(), threading.Lock()
        self.since_last, self.asked, self.losses = [], 0, 0

    def run(self):
        session, name = None, f"soak-{self.database.kind}"
        while not self.stop.wait(PROBE_EVERY_S):
            began = time.monotonic()
            try:
                if session is None:
                    session = self.database.dialect.Session(self.ground.port(self.database), name, password="weir-secret", database=self.database.name)
                self.asked += 1
                token = f"{self.database.kind} {self.asked}"
                # Every tenth one in a transaction: it needs a server to itself.
                if self.asked % 10 == 0:
                    session.begin()
                found = session.ask(f"select '{token}'")[0]
                if self.asked % 10 == 0:
                    session.commit()
                if [list(row) for row in found] != [[token]]:
                    raise Wrong(f"{found} for {token}")
            except (Lost, Refused) as e:
                session = self.lost(session, e, began)
            except Wrong as e:
                self.tell(f"{self.database.kind}: the probe: {e}")
                return
            with self.lock:
                self.since_last.append((time.monotonic() - began) * 1e3)
        if session:
            session.close()

    def lost(self, session, e, began):
        """Goes on with a new connection."""
        self.losses += 1
        if session:
            session.vanish()
        if not self.excused(self.database, began):
            self.tell(f"{self.database.kind}: the probe got {type(e).__name__} {e}, which no fault owes it")

    def take(self):
        with self.lock:
            taken, self.since_last = sorted(self.since_last), []
        return taken


ROUND = re.compile(r"(\w+) +([\d.]+) s (\w+): .* Weir has (\d+) kB and (\d+) sockets")
ENDED = re.compile(r"^ok (\w+): (\d+) s, (\d+) faults, (\d+) writes checked, (\d+) answers, (\d+) losses")


class Torture(threading.Thread):
    """tests/torture beside it, on databases and Weirs of its own, one database after the other, with a new seed each time."""

    def __init__(self, kinds, seed, piece_s, tell):
        super().__init__(name="torture", daemon=True)
        self.kinds, self.draw, self.piece_s, self.tell = kinds, random.Random(f"{seed}/torture"), piece_s, tell
        self.stop, self.process = threading.Event(), None
        self.began = time.monotonic()
        self.rounds, self.sums = [], {kind: [0, 0, 0, 0, 0] for kind in kinds}

    def run(self):
        turn = 0
        while not self.stop.is_set():
            kind = self.kinds[turn % len(self.kinds)]
            turn += 1
            words = [sys.executable, os.path.join(ROOT, "tests/torture/torture"), kind, "--seconds", str(self.piece_s), "--clients", "20",
                     "--seed", str(self.draw.randrange(1 << 32))]
            # In a group of its own: an interrupt of the whole is not for it.
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                            start_new_session=True)
            said = []
            for line in self.process.stdout:
                said.append(line)
                if m := ROUND.search(line):
                    self.rounds.append((time.monotonic() - self.began, kind, int(m[4]) / 1024, int(m[5])))
                if m := ENDED.match(line):
                    self.sums[kind] = [a + b for a, b in zip(self.sums[kind], [1, *map(int, m.groups()[2:])], strict=True)]
            if self.process.wait() != 0 and not self.stop.is_set():
                self.tell(f"torture of {kind}: {''.join(said)[-3000:]}")
                return

    def end(self):
        self.stop.set()
        if self.process and self.process.poll() is None:
            self.process.terminate()


def kinds_of(words):
    unknown = set(words) - set(DATABASES)
    if unknown:
        raise SystemExit(f"unknown database {unknown.pop()}; there are {', '.join(DATABASES)}")
    return words or list(DATABASES)
