"""Draws a session step by step, while it runs on the database itself: what a client is in is known from the answers.

Owns: who acts when, and that a session is fair: nobody waits for a server or a lock that another client rightly keeps.
Must not know: protocols.

The budget. A client holds a server while it is in a transaction, and from a statement that may keep it (`k` in the grammars) until
it leaves. Holders are never more than the servers there are; when they are as many, only they act. So whoever is not answered
is not answered because of Weir. In a step in which several clients act at once nobody reads or writes what another one writes.
"""

import functools
import json
import random
import re
from dataclasses import dataclass, field

from .script import Act


# What DDL may give effects: triggers, rules, functions and views made anew (`e` in the grammars); and what d1 may be renamed to.
EFFECTS_ON = frozenset(["d1", "d2", "d3", "fo"])
# Stands for every table, among what a step reads.
SNAPSHOT = "*"


@dataclass(frozen=True)
class Draw:
    """A statement that was drawn, and what is known of it."""

    text: str
    reads: frozenset
    writes: frozenset
    flags: frozenset
    family: str

    @staticmethod
    @functools.lru_cache(4096)
    def of(text, known, family):
        words = known.split()
        return Draw(text, frozenset(w[2:] for w in words if w[:2] == "r:"), frozenset(w[2:] for w in words if w[:2] == "w:"),
                    frozenset(w for w in words if w[1:2] != ":"), family)

    @staticmethod
    def join(parts):
        return Draw("", frozenset().union(*(d.reads for d in parts)), frozenset().union(*(d.writes for d in parts)),
                    frozenset().union(*(d.flags for d in parts)), "several")

    def of_client(self, name):
        """`%c%`: a table that only this client uses."""
        return Draw(self.text.replace("%c%", name), *(frozenset(x.replace("%c%", name) for x in s) for s in (self.reads, self.writes)),
                    self.flags, self.family)

    def keeping(self):
        return Draw(self.text, self.reads, self.writes, self.flags | {"k"}, self.family)

    def keeps(self):
        return "k" in self.flags

    def touches(self, other_reads, other_writes):
        return bool(self.writes & (other_reads | other_writes) or self.reads & other_writes)


MAKES_CODE = re.compile(r"\b(CREATE|ALTER|RENAME)\b.*\b(FUNCTION|PROCEDURE|TRIGGER|VIEW|RULE|PACKAGE)\b", re.IGNORECASE)


@dataclass
class Model:
    """What the generator knows of a client."""

    name: str
    alive: bool = False
    status: str = "I"
    kept: bool = False
    prepared: dict = field(default_factory=dict)
    params: dict = field(default_factory=dict)  # what it named at its start
    tied: bool = False  # something that may keep it was sent inside a transaction
    reads: set = field(default_factory=set)  # in the open transaction
    writes: set = field(default_factory=set)
    snaps: bool = False  # its transactions may see what was there at their first statement, also where that is not the rule

    def holds(self):
        return self.alive and (self.kept or self.status != "I")


class Generator:
    statements = []
    families = {}
    # Whether statements that would wait for another client's transaction may be drawn: where a lock's wait ends at once.
    waits_end = True
    # Whether a statement that fails ends its transaction, with the locks that this has.
    failure_ends = False
    # A regular expression: statements not to draw.
    avoid = None
    # The same for most sessions.
    seldom = None

    # So many clients on pools of 3, in long sessions, most of them sending together; by default 2 to 6.
    clients = None

    def __init__(self, seed):
        self.random = random.Random(seed)
        r = self.random
        # One session of eight is as long as several: what takes many steps is seen there.
        long = r.random() < 0.125
        count = self.clients or r.choice([2, 2, 3, 3, 4, 5, 6] if long else [2, 2, 2, 3, 3, 4])
        self.models = [Model(name) for name in "ABCDEFGH"[:count]]
        self.servers = r.choice([1, 1, 1, 2, 2, 3]) if r.random() < 0.7 else count
        self.length = r.randint(8, 18) if long else r.randint(3, 8)
        self.counter = 0
        self.effects = False
        self.together = r.choice([0.1, 0.4, 0.7])
        if self.clients:
            self.servers, self.length, self.together = 3, r.randint(40, 120), 0.85
        if r.random() < 0.125:
            self.seldom = None
        self.choose(r.choice(list(self.families)))

    def options(self):
        """What the whole session is played with."""
        return {}

    def choose(self, family):
        """What the session is about."""
        self.family = family
        scale = self.families[family]
        self.table = [(weight * (scale.get(family, 0) or 0.15 if scale else 1), Draw.of(text, known, family))
                      for weight, family, text, known in self.statements]
        self.sums = []
        total = 0.0
        for weight, _ in self.table:
            total += weight
            self.sums.append(total)

    # --- Chance ---

    def pick(self, weighted):
        total = sum(w for w, _ in weighted)
        at = self.random.random() * total
        for w, value in weighted:
            at -= w
            if at < 0:
                return value
        return weighted[-1][1]

    def number(self):
        self.counter += 1
        return self.counter

    def fill(self, text):
        if "{" not in text:
            return text
        r = self.random
        return text.format(i=r.randint(1, 5), n=self.number() if "{n}" in text else 0, p=r.randint(2, 9), s=r.randint(1, 2))

    def statement(self, model, allowed, extended=False, several=False):
        """A statement that fits what the client is in, filled in; None when luck is out."""
        for _ in range(12):
            draw = self.random.choices(self.table, cum_weights=self.sums)[0][1]
            flags = draw.flags
            # Where there are many, few keep what others wait for.
            if self.clients and "k" in flags and not model.holds() and self.random.random() < 0.95:
                continue
            if ("x" in flags and model.status == "I" and self.random.random() < 0.95) or ("o" in flags and model.status != "I" and self.random.random() < 0.9):
                continue
            if (several and ("1" in flags or not draw.text)) or (extended and "Q" in flags):
                continue
            if "%c%" in draw.text:
                draw = draw.of_client(model.name.lower())
            if (extended and "p" in flags) or (several and "T" in flags):
                draw = draw.keeping()
            draw = self.suspect(draw)
            if allowed(draw):
                self.effects = self.effects or "e" in flags
                return Draw(self.fill(draw.text), draw.reads, draw.writes, draw.flags, draw.family)
        return None

    def suspect(self, draw):
        """A definition that does more than it did makes all that names it suspect."""
        if not self.effects or not (draw.reads | draw.writes) & EFFECTS_ON:
            return draw
        return Draw(draw.text, draw.reads, draw.writes | {"w", "lock"}, draw.flags | {"k"}, draw.family)

    def of_client(self, model, draw):
        """What a request is where this client sends it."""
        return draw

    def fits(self, model, messages, drawn):
        """Whether this client may be answered as direct, where that also depends on what it named at its start."""
        return True

    # --- Steps ---

    def steps(self):
        """The steps, one by one; `learn` must be called with the answers of each before the next is asked for."""
        for _ in range(self.length):
            step = self.step()
            if step:
                yield step

    def holders(self):
        return [m for m in self.models if m.holds()]

    def step(self):
        r = self.random
        holders = self.holders()
        full = len(holders) >= self.servers
        able = holders if full else self.models
        if not any(m.alive for m in self.models) or (not full and r.random() < 0.12 and any(not m.alive for m in able)):
            model = r.choice([m for m in able if not m.alive])
            return [Act(model.name, "connect", self.connect_params())]
        awake = [m for m in able if m.alive]
        if len(awake) < min(2, len(able)) and r.random() < 0.8:
            model = r.choice([m for m in able if not m.alive])
            return [Act(model.name, "connect", self.connect_params())]
        leave = 0.15 if full else 0.05
        if self.clients:
            # Most are there, and none keeps a server for long.
            if len(awake) < self.clients - 2 and not full and r.random() < 0.7:
                model = r.choice([m for m in able if not m.alive])
                return [Act(model.name, "connect", self.connect_params())]
            leave = 0.5 if full else 0.2 if holders else 0.01
            awake_holders = [m for m in holders if m.alive]
            if awake_holders and r.random() < leave:
                return [Act(r.choice(awake_holders).name, "vanish" if r.random() < 0.2 else "quit")]
            leave = 0
        if r.random() < leave:
            model = r.choice(holders if full else awake)
            return [Act(model.name, "vanish" if r.random() < 0.2 else "quit")]
        if r.random() < self.together and len(awake) > 1:
            return self.together_step(awake)
        model = r.choice(awake)
        got = self.one(model, len(self.holders()), set(), set())
        return got and [self.act(model, *got)]

    def act(self, model, messages, drawn):
        # What stands behind a change of code, in its text, batch or transaction, may run what nobody has read.
        if MAKES_CODE.search(json.dumps(messages)) and (model.status != "I" or len(messages) > 1 or drawn.family == "several"):
            drawn = drawn.keeping()
            model.tied = True
        self.note(model, drawn)
        # Behind what may have drawn from a sequence it runs where that was, whatever it may reset.
        model.tied = model.tied or (drawn.keeps() and "EXECUTE " in json.dumps(messages))
        return Act(model.name, "ask", messages, drawn.keeps())

    def note(self, model, drawn):
        model.kept = model.kept or drawn.keeps()
        model.tied = model.tied or (drawn.keeps() and (model.status != "I" or "t" in drawn.flags))
        model.reads |= drawn.reads
        model.writes |= drawn.writes
        model.snaps = model.snaps or "s" in drawn.flags

    def one(self, model, holding, reads, writes, calm=False):
        """A request that this client may send beside what others do in the same step and hold in open transactions."""
        others = [m for m in self.models if m is not model and m.alive and m.status != "I"]

        def allowed(draw):
            if (self.avoid and self.avoid.search(draw.text)) or (self.seldom and self.seldom.search(draw.text)):
                return False
            if not model.holds() and ("k" in draw.flags or "t" in draw.flags) and holding + 1 > self.servers:
                return False
            if calm and draw.flags & {"k", "t", "C"} and not model.holds():
                return False
            # What ends a transaction makes all of it seen.
            seen = draw.writes | (frozenset(model.writes) if self.may_end(model, draw) else frozenset())
            if seen & (reads | writes) or draw.reads & writes:
                return False
            if (seen and SNAPSHOT in reads) or (writes and self.takes_snapshot(model, draw)):
                return False
            for other in others:
                if self.conflict(draw, other):
                    return False
            return True

        got = self.request(model, allowed)
        if not got or not self.fits(model, *got):
            return None
        messages, drawn = got
        then = self.of_client(model, drawn)
        return (messages, then) if then is drawn or allowed(then) else None

    def takes_snapshot(self, model, draw):
        """Whether a transaction of this client may see from here on what is there now, of whatever it reads later."""
        if model.status == "I" and "t" not in draw.flags:
            return False
        if self.waits_end:
            return (model.snaps or "s" in draw.flags) and not (model.reads or model.writes)
        return bool(draw.reads) and not model.reads

    def may_end(self, model, draw):
        """Whether an open transaction of this client may be over behind this."""
        return "t" in draw.flags or (self.failure_ends and model.status != "I")

    def conflict(self, draw, other):
        """Whether a statement would wait for what the other client's open transaction holds."""
        if "ddl" in draw.writes:
            return bool(draw.writes & (other.reads | other.writes))
        if "ddl" in other.writes:
            return bool((draw.writes | draw.reads) & other.writes)
        return not self.waits_end and bool(draw.writes & other.writes)

    def together_step(self, awake):
        """Several at once: at most one of them becomes a holder, and only where that leaves a server for the others."""
        r = self.random
        group = r.sample(awake, r.randint(2, min(self.clients or 4, len(awake))))
        reads, writes, step = set(), set(), []
        holding = len(self.holders())
        free = any(not m.holds() for m in group)
        for model in group:
            room = holding + 1 < self.servers or not free
            before = model.holds()
            got = self.one(model, holding, reads, writes, calm=not room)
            if not got:
                continue
            messages, drawn = got
            if self.takes_snapshot(model, drawn):
                reads.add(SNAPSHOT)
            if step and r.random() < 0.4:
                step.append(Act("", "wait", r.choice([0.5, 1, 2, 5, 25])))
            step.append(self.act(model, messages, drawn))
            reads |= drawn.reads
            writes |= drawn.writes | (model.writes if self.may_end(model, drawn) else set())
            if not before and (model.kept or drawn.flags & {"t", "C"}):
                holding += 1
        while step and step[-1].what == "wait":
            step.pop()
        return step

    def learn(self, step, statuses):
        """`statuses`: of each client that acted, what it is in now, or None when it is gone."""
        by_name = {m.name: m for m in self.models}
        for act in step:
            if not act.client:
                continue
            model = by_name[act.client]
            status = statuses.get(act.client)
            if act.what in ("quit", "vanish") or status is None:
                by_name[act.client].__init__(act.client)
                continue
            if act.what == "connect":
                model.__init__(act.client, alive=True, params=act.arg)
            model.status = status
            if status == "I":
                model.reads, model.writes = set(), set()
