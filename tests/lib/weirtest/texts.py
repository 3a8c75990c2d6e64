"""Lists of the statements that programs send, played direct and through Weir: each must be answered the same, and pin what the list says.

A list is a file of its program's name. Its format:

    -- What a line of the head says, up to the first statement, is for readers.
    -- session
    SELECT 1
    --
    -- pins: session_lock
    SELECT pg_advisory_lock(1)
    --
    -- pins: session_lock
    -- values: ["a", 1, null]
    INSERT INTO t VALUES ($1, $2, $3)

`-- session` begins a session, which is a client of its own: sessions are played one after the other. `--` stands between two statements. Directly above
a statement may stand

- `-- pins: REASON, ...`: what its client is held by once it is answered. Without it, by nothing. Inside a transaction only what is written is checked.
- `-- only: KIND, ...`: the servers that it is sent to.
- `-- values: [...]`: it is sent prepared, with these parameters.
- `-- name: NAME`: it is prepared under this name once in its session, and executed there each time that it is met.
- `-- data: [...]`: the lines that follow it (COPY, LOAD DATA LOCAL).
"""

import functools
import glob
import json
import os
import re
import time
import urllib.request

from . import case
from .weir import Weir

TOKEN = "the-token-of-the-texts"
OPTION = re.compile(r"-- (pins|only|values|name|data): (.*)")
PIN_DEADLINE_S = 3


class Text:
    """One statement: `sql` and what is written above it."""

    def __init__(self, path, line, lines):
        self.where = f"{path.rsplit('/', 1)[-1]}:{line}"
        options = {}
        while lines and (found := OPTION.fullmatch(lines[0])):
            assert found[1] not in options, f"{self.where}: {found[1]} stands twice"
            options[found[1]] = found[2]
            lines = lines[1:]
        self.sql = "\n".join(lines).strip("\n")
        assert self.sql.strip(), f"{self.where}: no statement"
        self.pins = None if "pins" not in options else sorted(words(options["pins"]))
        self.only = words(options.get("only", ""))
        self.values = json.loads(options["values"]) if "values" in options else None
        self.name = options.get("name")
        self.data = json.loads(options.get("data", "[]"))


def words(text):
    return [word.strip() for word in text.split(",") if word.strip()]


def read(path, kind):
    """The sessions of a list, for one kind of server: lists of Text."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    sessions, began = [], None  # the line at which a statement begins; before the first session there is none
    for number, line in enumerate([*lines, "--"]):
        if line not in ("--", "-- session"):
            continue
        if began is not None:
            text = Text(path, began + 1, [*lines[began:number]])
            if not text.only or kind in text.only:
                sessions[-1].append(text)
        if line == "-- session":
            sessions.append([])
        began = number + 1 if sessions else None
    sessions = [session for session in sessions if session]
    assert sessions, f"{path}: no session for {kind}"
    return sessions


def direct(client, target, sessions):
    """What each statement is answered by the server itself. `client(target)` connects; its `ask(text)` returns what can be compared."""
    seen = []
    for session in sessions:
        with client(target) as c:
            seen += [c.ask(text) for text in session]
    return seen


def through(client, w, target, sessions, moments=()):
    """The same through Weir with two servers, and what went wrong with pins: (answers, [lines]). Two clients more see to it that who may go to
    another server does so for every statement. `moments`: reasons that count only where they are written, because whoever waits gets the server."""
    seen, wrong = [], []
    with client(target) as one, client(target) as two:
        stir = Stir(one, two)
        for session in sessions:
            with client(target) as c:
                expected = []
                for text in session:
                    if not c.in_transaction and not expected:
                        stir.change()
                    seen.append(c.ask(text))
                    if c.in_transaction and text.pins is None:
                        continue
                    expected = text.pins or []
                    held = pins_of(w, expected, moments)
                    if held != expected:
                        wrong.append(f"{text.where}: pins {held} where {expected} is written: {text.sql[:200]}")
                        expected = held
            pins_of(w, [], moments)
    return seen, wrong


class Stir:
    """Two clients, one of which is in a transaction: the server that is free was not, a moment ago."""

    def __init__(self, one, two):
        self.busy, self.next = one, two
        self.busy.begin()

    def change(self):
        """Takes the free server, and frees the other one."""
        self.next.begin()
        self.busy.commit()
        self.busy, self.next = self.next, self.busy


def start_settings():
    """What Weir is started with besides its pool of two."""
    return ["workers=1", f"http.token={TOKEN}"]


def pins_of(w, wanted, moments=()):
    """The reasons of all pins, as soon as they are `wanted`, or what they are in the end. None must be seen twice: what holds a client may be found
    out behind its answer."""
    end = time.monotonic() + PIN_DEADLINE_S
    seen = 0
    while True:
        request = urllib.request.Request(f"http://127.0.0.1:{w.http_port}/api/pins", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            rows = json.loads(answer.read())["rows"]
        held = sorted({reason for row in rows for reason in words(row["reasons"]) if reason in wanted or reason not in moments})
        seen = seen + 1 if held == wanted else 0
        if seen > (not wanted) or time.monotonic() > end:
            return held
        time.sleep(0.005)


def differences(sessions, wanted, found):
    """Lines about statements whose answers differ."""
    texts = [text for session in sessions for text in session]
    assert len(texts) == len(wanted) == len(found), (len(texts), len(wanted), len(found))
    return [f"{t.where}: {t.sql[:300]}\n  direct {w}\n  weir   {f}" for t, w, f in zip(texts, wanted, found, strict=True) if w != f]


def played(path, kind, client, server, database, anew, moments):
    """Plays one list direct and through Weir, in a database that `anew` makes."""
    sessions = read(path, kind)
    anew()
    wanted = direct(client, server().direct().within(database), sessions)
    anew()
    with Weir.before(kind, port=server().port, pool_size=2, settings=start_settings()) as w:
        found, wrong = through(client, w, w.target(database=database), sessions, moments)
    wrong += differences(sessions, wanted, found)
    assert not wrong, "\n".join(wrong)


def tests_of(folder, *how):
    """A test for each list in a folder; `how`: the rest of what [played] is told."""
    for each in sorted(glob.glob(f"{folder}/*.sql")):
        test = functools.partial(lambda path, _context: played(path, *how), each)
        test.__name__ = os.path.basename(each).removesuffix(".sql")
        case.weir(test)
