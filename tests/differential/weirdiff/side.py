"""Plays a script against one side, the database itself or Weir before it, and says in what two plays differ.

Owns: lock step (all of a step is sent, then all is read), the bound on an answer, what is compared.
Must not know: what a protocol's bytes mean, how sessions are drawn.
"""

import time
from dataclasses import dataclass, field

DIRECT_BOUND_S = 10
WEIR_BOUND_S = 8
# The same while a script is made smaller: what was not answered once within the longer one.
AGAIN_BOUND_S = 2
# How long the traces of a client that has gone may stay.
SETTLE_S = 0.5


class Stuck(Exception):
    """The database itself did not answer: the session is none that can be compared."""


@dataclass
class Play:
    """What was seen: an answer for each act of each step, and what was left at the end."""

    steps: list = field(default_factory=list)
    answers: list = field(default_factory=list)  # for each step a list: one for each act
    statuses: list = field(default_factory=list)  # for each step {client: status or None}
    held: dict = field(default_factory=dict)  # step: what sessions held after someone left
    notifications: dict = field(default_factory=dict)
    told: list = field(default_factory=list)  # for each step {client: how many of them had come}
    states: list = field(default_factory=list)  # what the tables held at each restore and at the end
    slowest_s: float = 0.0
    unanswered: bool = False
    pins: str = ""  # what Weir's metrics said then
    over: bool = False


class Player:
    """`place` opens connections and looks at the database; see place_pg.py."""

    def __init__(self, place, direct, again=False):
        self.place = place
        self.direct = direct
        self.bound_s = DIRECT_BOUND_S if direct else AGAIN_BOUND_S if again else WEIR_BOUND_S

    def play(self, script, steps=None, learn=None, like=None):
        """Plays `steps` (by default the script's). `like`: the play on the database itself, whose pace to keep where the end of
        one session is to be seen by another one. Stops after a step without an answer."""
        play = Play()
        self.clients = {}
        self.marked = set()
        self.script = script
        self.place.begin(script, self.direct)
        try:
            for step in script.steps if steps is None else steps:
                answers = self.step(step, play, like)
                play.steps.append(step)
                play.answers.append(answers)
                statuses = {act.client: self.status(act.client) for act in step if act.client}
                play.statuses.append(statuses)
                if learn:
                    learn(step, statuses)
                if play.unanswered:
                    if self.direct:
                        raise Stuck(repr(step))
                    break
                if play.over:
                    break
            self.end(play, like)
        finally:
            for client in self.clients.values():
                self.place.leave(client, False, self.direct)
            self.clients = {}
        return play

    def status(self, name):
        client = self.clients.get(name)
        return client.status if client and client.alive else None

    def step(self, step, play, like):
        began = time.monotonic()
        pending = []
        answers = []
        left = False
        for at, act in enumerate(step):
            answers.append(None)
            if act.keeps:
                self.marked.add(act.client)
            if act.what == "wait":
                time.sleep(act.arg / 1000)
            elif act.what == "restore":
                self.restore(play, like)
                self.place.again(self.direct)
            elif act.what == "connect":
                answers[at] = self.connect(act)
            else:
                client = self.clients.get(act.client)
                if client is None or not client.alive:
                    answers[at] = ("not there",)
                elif act.what == "ask":
                    pending.append((at, client, client.ask_for(act.arg, self.place)))
                else:
                    dirty = act.client in self.marked or client.status != "I"
                    left = left or dirty or act.what == "vanish"
                    if act.what == "quit" and act.client in self.marked:
                        self.hear_out(act.client, client, play, like)
                    self.marked.discard(act.client)
                    # A connection that is used again is told more when it is cleared.
                    self.remember(play, act.client, client)
                    self.place.leave(client, act.what == "quit", self.direct, dirty)
                    del self.clients[act.client]
        end = time.monotonic() + self.bound_s
        for at, client, owed in pending:
            events = client.answer(owed, max(end - time.monotonic(), 0.05))
            answers[at] = (tuple(events), dict(client.params))
            if events and events[-1] == ("no answer",):
                play.unanswered = True
        if play.unanswered and not self.direct:
            play.pins = self.place.weirs.pins(self.script.servers)
        if left and not play.unanswered:
            self.settle(len(play.steps), play, like)
        self.keep_pace(play, like)
        play.slowest_s = max(play.slowest_s, time.monotonic() - began)
        return answers

    def keep_pace(self, play, like):
        """Notifications come by themselves, to each side in its own time, and whoever begins a transaction next is not told any until
        its end: what had come by now on the database itself is waited for."""
        wanted = like.told[len(play.told)] if like and len(play.told) < len(like.told) else {}
        told = {}
        for name in self.marked & self.clients.keys():
            client = self.clients[name]
            before = len(play.notifications.get(name, []))
            end = time.monotonic() + 0.3
            while client.alive and (client.poll(0) or before + len(client.notifications) < wanted.get(name, 0)) and time.monotonic() < end:
                pass
            told[name] = before + len(client.notifications)
        play.told.append(told)

    def connect(self, act):
        if act.client in self.clients:
            return ("there already",)
        client = self.place.enter(act.arg, self.direct, self.bound_s)
        if client.alive:
            self.clients[act.client] = client
        return (tuple(client.greeting), dict(client.params))

    def settle(self, number, play, like):
        """A session's end takes effect a moment after its client has gone, on either side. Waits until what the database's
        sessions hold is what it was at this point on the database itself."""
        end = time.monotonic() + SETTLE_S
        if like is None:
            # Nobody says what it ought to be: what two looks in turn agree on.
            found = None
            while (before := found) != (found := self.place.held()) and time.monotonic() < end:
                time.sleep(0.003)
            play.held[number] = found
            return
        wanted = like.held.get(number)
        while (found := self.place.held()) != wanted and time.monotonic() < end:
            time.sleep(0.003)
        play.held[number] = found
        # What follows would only show the same again.
        play.over = found != wanted

    def remember(self, play, name, client):
        play.notifications.setdefault(name, []).extend(client.notifications)
        client.notifications = []

    def end(self, play, like):
        """All that was told without being asked for, then what is in the tables."""
        if not play.unanswered:
            for name, client in self.clients.items():
                if client.alive and name in self.marked:
                    self.hear_out(name, client, play, like)
                    if stray := getattr(client, "stray", None):
                        play.answers.append([("unasked", tuple(stray))])
                        play.steps.append([])
                self.remember(play, name, client)
        self.restore(play, like)

    def hear_out(self, name, client, play, like):
        """Takes what has been notified, and waits a little for what was on the database itself."""
        while client.poll(0.002):
            pass
        already = len(play.notifications.get(name, []))
        end = time.monotonic() + 0.3
        while (like and client.alive and already + len(client.notifications) < len(like.notifications.get(name, []))
               and time.monotonic() < end):
            client.poll(0.02)

    def restore(self, play, like):
        for name, client in self.clients.items():
            self.place.leave(client, True, self.direct, name in self.marked or client.status != "I")
        self.clients = {}
        self.marked = set()
        play.states.append(self.place.state(self.script))


@dataclass
class Difference:
    kind: str  # answer, no answer, held, notifications, state, end
    where: str
    direct: object
    weir: object
    also: str = ""

    def signature(self):
        """What must stay the same while a script is made smaller."""
        if self.kind == "answer":
            return (self.kind, outline(self.direct), outline(self.weir))
        if self.kind == "state":
            return (self.kind, *(line.split(":")[0] for line in self.direct))
        if self.kind == "parameters":
            return (self.kind, *self.direct)
        return (self.kind,)

    def to_text(self):
        return f"{self.kind} at {self.where}\n    direct: {show(self.direct)}\n    Weir:   {show(self.weir)}" + (
            f"\n    and at the end {self.also}" if self.also else "")


def outline(answer):
    """An answer in a few words: an error's code, or that there was none."""
    if not isinstance(answer, tuple) or not answer or not isinstance(answer[0], tuple):
        return str(answer)[:40]
    words = []
    for event in answer[0]:
        if event[0] == "error":
            words.append("error " + " ".join(str(f) for f in event if str(f)[:1] == "C" or isinstance(f, int)))
        elif event[0] in ("no answer", "closed"):
            words.append(event[0])
    return " ".join(words) or "fine"


MOST_SHOWN = 6000


def show(value):
    text = repr(value)
    return text if len(text) < MOST_SHOWN else text[:MOST_SHOWN] + "..."


def compare(direct, weir):
    """The first difference of two plays of one script, or None."""
    found = first(direct, weir)
    if found and found.kind != "state" and len(direct.states) == len(weir.states):
        changed = [(x, y) for a, b in zip(direct.states, weir.states) for x, y in zip(a.splitlines(), b.splitlines()) if x != y]
        if changed and not weir.unanswered and not weir.over:
            found.also = f"{changed[0][0]} / {changed[0][1]}"[:400]
    return found


def first(direct, weir):
    for number, (one, other) in enumerate(zip(direct.answers, weir.answers)):
        for at, (a, b) in enumerate(zip(one, other)):
            if a != b:
                act = direct.steps[number][at] if at < len(direct.steps[number]) else None
                where = f"step {number + 1}" + (f", client {act.client}" if act else "")
                if isinstance(b, tuple) and b and isinstance(b[0], tuple) and b[0] and b[0][-1] == ("no answer",):
                    return Difference("no answer", where, a[0], b[0])
                if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == 2 and len(b) == 2 and a[0] == b[0] and isinstance(a[1], dict):
                    names = sorted(k for k in a[1].keys() | b[1].keys() if a[1].get(k) != b[1].get(k))
                    return Difference("parameters", where, {k: a[1].get(k) for k in names}, {k: b[1].get(k) for k in names})
                if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == 2 and len(b) == 2 and a[1] == b[1]:
                    a, b = (a[0],), (b[0],)
                return Difference("answer", where, a, b)
    for number, held in direct.held.items():
        if number in weir.held and weir.held[number] != held:
            return Difference("held", f"after step {number + 1}", held, weir.held[number])
    if weir.unanswered or weir.over:
        return None
    if len(direct.answers) != len(weir.answers):
        extra = (direct.answers if len(direct.answers) > len(weir.answers) else weir.answers)[-1]
        return Difference("unasked", "the end", len(direct.answers), (len(weir.answers), extra))
    names = sorted(k for k in direct.notifications.keys() | weir.notifications.keys()
                   if direct.notifications.get(k, []) != weir.notifications.get(k, []))
    if names:
        return Difference("notifications", f"client {names[0]}", direct.notifications.get(names[0]), weir.notifications.get(names[0]))
    for number, (a, b) in enumerate(zip(direct.states, weir.states)):
        if a != b:
            changed = [(x, y) for x, y in zip(a.splitlines(), b.splitlines()) if x != y] or [(a, b)]
            return Difference("state", "the end" if number + 1 == len(direct.states) else f"restore {number + 1}",
                              [x for x, _ in changed], [y for _, y in changed])
    return None
