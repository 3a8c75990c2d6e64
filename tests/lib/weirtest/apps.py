"""Plays the application-shaped scenario (apps_scenario.py) in a framework (drivers/apps): direct, through Weir with a server for each of a few clients,
and through Weir with two servers, with all clients alive at once. What each client sees must be the same each time.

A program gets lines of JSON: {"clients": {number: who}} makes clients, {"steps": {number: [step, ...]}} has them do something, all at once. For
each it answers {"client": number, "seen": [...]} when that one is through. The next phase begins when all are: that is the barrier.

Where pins come from is read off Weir's metrics between the phases. A phase after which more clients keep a server than the two that there are
starves the others; tests/apps-starving.txt says which ones do so today. What stands there is left out of the run with two servers, and must
be gone from there as soon as it no longer pins.
"""

import contextlib
import difflib
import fnmatch
import json
import os
import queue
import re
import subprocess
import tempfile
import threading
import time

from . import apps_scenario as scenario
from .case import REGISTRY, Case, Skip
from .mywire import MyError
from .mywire import Wire as MyWire
from .pgwire import Wire as PgWire
from .target import direct_target, superuser
from .weir import ROOT, Weir

CLIENTS = int(os.environ.get("WEIR_APPS_CLIENTS", "50"))
SERVERS = 2
# So many show what pins: more than there are servers.
FEW = 4
# So many looks, half a second apart, find the same before clients count as starved.
STUCK_LOOKS = 6
# What a line of tests/apps-starving.txt says of a phase in which clients see something else than direct.
DIFFERS = frozenset(["differs"])
BASE = ("connect", "migrate")
HOME = os.path.join(ROOT, "drivers/apps")
NOTES = os.environ.get("WEIR_APPS_NOTES")


class Program:
    """A running program and its clients."""

    def __init__(self, framework, target):
        told = {"T_HOST": target.host, "T_PORT": str(target.port), "T_USER": target.user, "T_PASSWORD": target.password, "T_DB": target.database,
                "T_KIND": target.kind, "T_FRAMEWORK": framework.adapter}
        self.errors = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(framework.argv(), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                      encoding="utf-8", env={**os.environ, **told, **framework.env()})
        self.lines = queue.Queue()
        self.unfinished = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            if line.startswith("{"):
                self.lines.put(json.loads(line))
        self.lines.put(None)

    def say(self, what):
        self.child.stdin.write(json.dumps(what) + "\n")
        self.child.stdin.flush()

    def play(self, steps):
        """Has clients do their steps, all at once: {number: what it saw}."""
        self.unfinished = len(steps)
        self.say({"steps": steps})
        seen = {}
        while len(seen) < len(steps):
            line = self.lines.get()
            if line is None:
                self.child.wait()
                self.errors.seek(0)
                raise AssertionError(f"the program ended with {self.child.returncode}: {self.errors.read()[-3000:]}")
            seen[int(line["client"])] = line["seen"]
            self.unfinished -= 1
        return seen

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.child.stdin.close()
        except BrokenPipeError:
            pass
        if kind is not None:
            self.child.kill()
        self.child.wait()
        self.child.stdout.close()
        self.errors.close()


class Framework:
    """One framework: how its program is run, how it writes parameters, which phases it has no words for."""

    def __init__(self, name, language, adapter, params, ci=(), without=()):
        """`ci`: on which servers it is played in CI; by `make apps` it is on all."""
        self.name, self.language, self.adapter, self.params = name, language, adapter, params
        self.ci, self.without = ci, without

    def argv(self):
        return {
            "python": [os.path.join(ROOT, "target/venv/bin/python"), os.path.join(HOME, "python/apps.py")],
            "node": ["node", os.path.join(HOME, "node/apps.js")],
            "go": [os.path.join(ROOT, "target/apps/go/apps")],
            "java": ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp",
                     f"{ROOT}/target/apps/java/classes:{ROOT}/target/apps/java/lib/*", "Apps"],
            "php": ["php", os.path.join(HOME, "php/apps.php")],
            "ruby": ["ruby", os.path.join(HOME, "ruby/apps.rb")],
        }[self.language]

    def env(self):
        return {"NODE_PATH": os.path.join(ROOT, "target/apps/node/node_modules"), "PYTHONDONTWRITEBYTECODE": "1"}

    def ready(self):
        """Raises Skip when it is not installed: tests/setup says why."""
        missing = os.path.join(ROOT, "target/apps/missing", self.language)
        if os.path.exists(missing):
            with open(missing, encoding="utf-8") as f:
                raise Skip(f"{self.language} cannot be had on this machine: {f.read().strip()}")

    def write(self, step):
        """A step with its parameters as this framework has them."""
        if isinstance(step, list) and step and isinstance(step[0], str):
            words = list(step)
            if words[0] in ("query", "execute", "fails") and words[2]:
                words[1] = self.mark(words[1])
            elif words[0] == "prepared":
                words[1] = self.mark(words[1])
            elif words[0] == "queue":
                words[2] = self.mark(words[2])
            return [self.write(w) if isinstance(w, list) else w for w in words]
        if isinstance(step, list):
            return [self.write(s) for s in step]
        return step

    def mark(self, sql):
        if self.params == "$":
            return sql
        if self.params == "%s":
            return re.sub(r"\$\d", "%s", sql.replace("%", "%%"))
        return re.sub(r"\$\d", "?", sql)


def starving():
    """tests/apps-starving.txt: [(framework, server, phase, reasons)]."""
    rows = []
    with open(os.path.join(ROOT, "tests/apps-starving.txt"), encoding="utf-8") as f:
        for line in f:
            if words := line.split("#")[0].split():
                framework, kind, name, reasons = words
                rows.append((framework, kind, name, frozenset(reasons.split(","))))
    return rows


def concerns(patterns, name):
    """`*,!gorm`: the last pattern that is matched decides."""
    said = [not p.startswith("!") for p in patterns.split(",") if fnmatch.fnmatchcase(name, p.removeprefix("!"))]
    return bool(said and said[-1])


def ask(kind):
    return (PgWire if kind == "postgres" else MyWire)(superuser(kind))


def pins(weir):
    """{reason: times} so far, and how many servers are pinned now."""
    found, kept = {}, 0
    for key, value in weir.metrics().items():
        if key.startswith("weir_pins_total") and value:
            found[re.search(r'reason="(\w+)"', key)[1]] = int(value)
        elif key.startswith("weir_pinned_servers"):
            kept += int(value)
    return found, kept


class Play:
    """The scenario of one framework on one server."""

    def __init__(self, framework, kind):
        self.framework, self.kind = framework, kind
        self.phases = {name: steps for name, steps in (scenario.PG if kind == "postgres" else scenario.MY).items() if name not in framework.without}
        self.wing = "pg" if kind == "postgres" else "my"

    def end_what_runs(self):
        """Statements of this framework's clients whose program has gone: a cross join that was to be cancelled runs on for as long as it likes, and
        takes the machine from whoever comes next. A run that was killed could not end its own."""
        if self.kind == "postgres":
            return  # there it sleeps
        common = f"apps_{self.framework.name}"
        with ask(self.kind) as wire:
            for row in wire.ask("SHOW FULL PROCESSLIST"):
                if row[4] in ("Query", "Execute") and row[3] and row[3].startswith(common) and (row[7] or "").startswith(scenario.MY_LONG):
                    try:
                        wire.ask(f"KILL {row[0]}")
                    except MyError:
                        pass  # it has ended by itself

    def database(self, what):
        with ask(self.kind) as wire:
            for statement in getattr(scenario, f"{self.wing}_{what}")(self.framework.name, CLIENTS, self.kind):
                wire.ask(statement)

    def run(self, target, clients=CLIENTS, skip=(), after=lambda name, program: None, watch=None):
        """{phase: {client: what it saw}}"""
        self.end_what_runs()
        self.database("setup")
        seen = {}
        whos = [scenario.Who(self.framework.name, n, self.kind) for n in range(clients)]
        with contextlib.ExitStack() as ends:
            ends.callback(self.end_what_runs)
            program = ends.enter_context(Program(self.framework, target))
            program.say({"clients": {w.number: w.told() for w in whos}})
            if watch:
                watch.program = program
                watch.start()
            for name in self.phases:
                if name not in skip:
                    if watch:
                        watch.phase = name
                    seen[name] = program.play({w.number: self.framework.write(self.phases[name](w)) for w in whos})
                    after(name, program)
        with ask(self.kind) as wire:
            for question, wanted in getattr(scenario, f"{self.wing}_counted")(self.framework.name):
                got = wire.ask(question)[0]
                assert all(w in (None, g) for g, w in zip(got, wanted)) or "queue" in skip or clients < CLIENTS, f"jobs were not done once each: {question}: {got}"
        return seen

    def weir(self, servers):
        return Weir.before(self.kind, mode="transaction", pool_size=servers)

    def wide(self, clients):
        """With a server for each client: what was seen, and per phase which pins came and how many servers are kept after it."""
        came = {}
        with self.weir(clients + 10) as weir:
            before, usual = [{}, 0], []

            def after(name, program):
                now, kept = pins(weir)
                new = {reason: n - before[0].get(reason, 0) for reason, n in now.items() if n != before[0].get(reason, 0)}
                came[name] = (new, kept, before[1])
                if name == "connect":
                    usual.append(kept)
                elif kept > usual[0] and name not in (*BASE, *scenario.GO_ON):
                    # All come anew, so that the next phase shows its own pins only.
                    program.play({n: [["reconnect"]] for n in range(clients)})
                before[:] = pins(weir)
            seen = self.run(weir.target(), clients, after=after)
        return seen, came

    def narrow(self, skip, wrong):
        """With two servers: what was seen. Raises Starved as soon as a phase cannot come to its end."""
        with self.weir(SERVERS) as weir:
            over = threading.Event()
            watch = Watch(weir, over)

            def after(name, program):
                watch.before = pins(weir)[0]
                if name in wrong:
                    program.play({n: [["reconnect"]] for n in range(CLIENTS)})
            try:
                return self.run(weir.target(), skip=skip, after=after, watch=watch)
            except AssertionError as e:
                if watch.starved:
                    raise Starved(watch.starved) from e
                raise
            finally:
                over.set()
                if watch.is_alive():
                    watch.join()


class Starved(AssertionError):
    """Clients wait for servers that nobody will give back."""


class Watch(threading.Thread):
    """Looks whether a phase can still end. It cannot when all servers are kept by clients that are through with the phase, and all others wait.
    Then it ends the program: nobody has to wait for a time to be over."""

    def __init__(self, weir, over):
        super().__init__(daemon=True)
        self.weir, self.over = weir, over
        self.program = self.starved = None
        self.phase = ""
        self.before = {}

    def run(self):
        same, last = 0, None
        while not self.over.wait(0.5):
            kept = pins(self.weir)
            waiting = sum(n for key, n in self.weir.metrics().items() if key.startswith("weir_waiting_clients"))
            leases = sum(n for key, n in self.weir.metrics().items() if key.startswith("weir_leases_total"))
            now = (self.phase, self.program.unfinished, waiting, leases)
            stuck = kept[1] >= SERVERS and 0 < self.program.unfinished <= waiting and now == last
            same, last = same + 1 if stuck else 0, now
            if same == STUCK_LOOKS:
                new = {reason: n - self.before.get(reason, 0) for reason, n in kept[0].items() if n != self.before.get(reason, 0)}
                self.starved = f"{self.phase} starves with {SERVERS} servers: {int(waiting)} of {CLIENTS} clients wait; all servers are kept, new pins {new}"
                self.program.child.kill()
                return


def first_difference(direct, through):
    """Text of what differs, client by client; None when nothing does."""
    told = []
    differing = [n for n in through if direct[n] != through[n]]
    for number in differing[:2]:
        lines = [json.dumps(seen, ensure_ascii=False, sort_keys=True) for seen in direct[number]]
        others = [json.dumps(seen, ensure_ascii=False, sort_keys=True) for seen in through[number]]
        told += [f"client {number}:", *(line[:700] for line in difflib.unified_diff(lines, others, "direct", "through Weir", lineterm="", n=1))]
    return f"{len(differing)} of {len(through)} clients\n" + "\n".join(told) if told else None


def unexpected(direct):
    """What a framework could not do even direct: the scenario is wrong, not Weir."""
    found = []
    for name, clients in direct.items():
        text = json.dumps(clients[0], ensure_ascii=False)
        if (name != "strict" and "{\"error\": " in text) or '"no error"' in text:
            found.append(f"{name}, direct: {text[:1500]}")
    return found


def crossed(play, seen):
    """Marks of other clients in what a client saw (`app 7`, a schema of client 7): whatever else differs, this must never be."""
    found = []
    for name, clients in seen.items():
        for number, said in clients.items():
            others = set(re.findall(rf"apps_{play.framework.name}_(\d+)(?!\d)", json.dumps(said))) - {str(number)}
            if others:
                found.append(f"{name}: client {number} has seen clients {sorted(others)}")
    return found


def note(text):
    if NOTES:
        with open(NOTES, "a", encoding="utf-8") as f:
            f.write(text + "\n")


def test(framework, kind):
    """What the test of one framework does."""
    def run(_context):
        framework.ready()
        rows = [row for row in starving() if concerns(row[0], framework.name) and kind == row[1]]
        play = Play(framework, kind)
        try:
            problems = judge(play, rows)
        finally:
            play.database("cleanup")
        assert not problems, "\n".join(problems)
    return run


def judge(play, rows):
    began = time.monotonic()
    direct = play.run(direct_target(play.kind))
    took = [time.monotonic() - began]
    with open(os.path.join(ROOT, "target/suites", f"apps.{play.framework.name}.{play.kind}.json"), "w", encoding="utf-8") as f:
        json.dump(direct, f, indent=1, ensure_ascii=False)
    if problems := unexpected(direct):
        return problems
    # Where clients starve from the start there is no run with two servers, and all are compared here, when there is time for it.
    hopeless = any(row[2] in BASE for row in rows)
    seen, came = play.wide(CLIENTS if hopeless and everything() else FEW)
    took.append(time.monotonic() - began)
    wrong = {row[2] for row in rows if row[3] == DIFFERS}
    confirmed = set()
    for name in play.phases:
        if difference := first_difference(direct[name], seen[name]):
            confirmed.add(name)
            if name not in wrong:
                problems.append(f"{name}, a server for each client: {difference}")
    problems += crossed(play, seen)
    skip = set()
    for _framework, _kind, name, reasons in rows:
        # Whose clients keep their servers from the start show nothing of what later phases would do.
        if name not in came or reasons == DIFFERS or (hopeless and name not in BASE):
            continue
        skip |= {name, *scenario.GO_ON.get(name, ())}
        new, kept, before = came[name]
        freed = before <= SERVERS and kept <= SERVERS
        sure = {reason for reason in reasons if not reason.endswith("?")}
        if sure and (freed or not sure <= set(new)):
            problems.append(f"{name} no longer starves for {','.join(sorted(reasons))} (pins: {new}, servers kept after it: {kept}): take its line out of tests/apps-starving.txt")
    for name, (new, kept, before) in came.items():
        note(f"| {play.framework.name} | {play.kind} | {name} | {', '.join(f'{k} {v}' for k, v in sorted(new.items())) or '-'} | {before} -> {kept} | "
             f"{'starves' if name in skip else ''} |") if new or kept != before else None
    if skip & set(BASE) or os.environ.get("WEIR_APPS_NARROW") == "0":
        note(f"| {play.framework.name} | {play.kind} | (with 2 servers: not played, {', '.join(sorted(skip & set(BASE)))} starves) | | | {took} |")
        return problems
    try:
        seen = play.narrow(skip, wrong)
    except Starved as e:
        return [*problems, str(e)]
    took.append(time.monotonic() - began)
    for name in play.phases:
        if name not in skip and (difference := first_difference(direct[name], seen[name])):
            confirmed.add(name)
            if name not in wrong:
                problems.append(f"{name}, {SERVERS} servers: {difference}")
    problems += [f"{name} is the same as direct now: take its line out of tests/apps-starving.txt" for name in sorted(wrong - confirmed)]
    problems += crossed(play, seen)
    note(f"| {play.framework.name} | {play.kind} | (with 2 servers: {len(play.phases) - len(skip)} phases, {'equal' if not problems else 'DIFFERENT'}) | | | {[round(t, 1) for t in took]} |")
    return problems


def everything():
    return os.environ.get("WEIR_APPS") == "all"


def register(frameworks, kinds):
    """Each framework as a test of the suite."""
    for framework in frameworks:
        for kind in kinds:
            if everything() or kind in framework.ci:
                REGISTRY.append(Case("weir", test(framework, kind), (), name=framework.name, only=kind))

