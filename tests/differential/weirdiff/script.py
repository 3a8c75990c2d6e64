"""A session as data, and as text that can be read, changed by hand and replayed.

Owns: the form of a script. Must not know: databases, sockets.

    database postgres          which database
    servers 1                  how many servers Weir may open for the pool
    clients-flags 0            MySQL: further capabilities of the clients, see my.py
    A connect {"search_path": "a"}
    B connect {}
    A [["Q", "SELECT pg_sleep(0.03)"]]
    & B [["Q", "SELECT 1"]]                 sent together with the line before; the replies are read afterwards
    & wait 2                                milliseconds before the next line of the same step is sent
    A! [["Q", "SET work_mem = '1MB'"]]      `!`: from here on the client may legitimately keep its server
    A quit                                  B vanish: without a word, by a reset
    restore                                 all clients leave, the tables are as at the beginning; Weir goes on
"""

import json
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Act:
    """What one client does in a step. `what`: connect, quit, vanish, ask, wait, restore."""

    client: str
    what: str
    arg: object = None  # connect: a dict; ask: a list of messages; wait: milliseconds
    keeps: bool = False

    def key(self):
        return json.dumps([self.client, self.what, self.arg, self.keeps])


@dataclass
class Script:
    database: str
    servers: int
    steps: list = field(default_factory=list)  # lists of Act
    options: dict = field(default_factory=dict)

    def with_steps(self, steps):
        return Script(self.database, self.servers, steps, self.options)

    def with_servers(self, servers):
        return Script(self.database, servers, self.steps, self.options)

    def clients(self):
        return sorted({act.client for step in self.steps for act in step if act.client})

    def texts(self):
        """All statements' texts in order, one a line, for predicates."""
        out = []
        for step in self.steps:
            for act in step:
                if act.what == "ask":
                    out += [f"{act.client}: {text}" for text in statements(act.arg)]
                elif act.what == "connect" and act.arg:
                    out.append(f"{act.client}: connect {json.dumps(act.arg, sort_keys=True)}")
        return "\n".join(out)

    def to_text(self):
        lines = [f"database {self.database}", f"servers {self.servers}"]
        lines += [f"option {key} {json.dumps(value)}" for key, value in sorted(self.options.items())]
        for step in self.steps:
            for i, act in enumerate(step):
                lines.append(("& " if i else "") + act_to_text(act))
        return "\n".join(lines) + "\n"


def statements(messages):
    """The SQL texts in a request, and what else it does in a word."""
    out = []
    for message in messages:
        if message[0] == "Q":
            out.append(message[1])
        elif message[0] in ("P", "prep"):
            out.append(f"parse {message[1]}: {message[2]}")
        else:
            out.append(" ".join(str(part) for part in message))
    return out


def act_to_text(act):
    if act.what == "restore":
        return "restore"
    if act.what == "wait":
        return f"wait {act.arg}"
    name = act.client + ("!" if act.keeps else "")
    if act.what == "connect":
        return f"{name} connect {json.dumps(act.arg, sort_keys=True)}"
    if act.what == "ask":
        return f"{name} {json.dumps(act.arg, ensure_ascii=False)}"
    return f"{name} {act.what}"


def parse(text):
    script = Script("", 1)
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        try:
            if word == "database":
                script.database = rest
            elif word == "servers":
                script.servers = int(rest)
            elif word == "option":
                name, _, value = rest.partition(" ")
                script.options[name] = json.loads(value)
            elif word == "&":
                script.steps[-1].append(parse_act(rest))
            else:
                script.steps.append([parse_act(line)])
        except (ValueError, IndexError) as e:
            raise ValueError(f"line {number}: {e}: {line}") from None
    return script


def parse_act(line):
    word, _, rest = line.partition(" ")
    if word == "restore":
        return Act("", "restore")
    if word == "wait":
        return Act("", "wait", float(rest))
    client = word.rstrip("!")
    keeps = word.endswith("!")
    if rest.startswith("["):
        return Act(client, "ask", json.loads(rest), keeps)
    what, _, arg = rest.partition(" ")
    if what == "connect":
        return Act(client, "connect", json.loads(arg or "{}"), keeps)
    if what in ("quit", "vanish"):
        return Act(client, what, None, keeps)
    raise ValueError(f"unknown act {what}")


class Writer:
    """Writes a script, line by line."""

    def __init__(self, kind, servers, *clients):
        self.lines = [f"database {kind}", f"servers {servers}", *(f"{name} connect {{}}" for name in clients)]

    def add(self, client, *messages):
        """Sent in one go by a client that may keep its server behind it."""
        self.lines.append(f"{client}! {json.dumps(messages, ensure_ascii=False)}")

    def ask(self, client, *texts):
        """Each by itself, and none of them keeps a server."""
        self.lines += [f"{client} {json.dumps([['Q', text]], ensure_ascii=False)}" for text in texts]

    def query(self, client, *texts):
        for text in texts:
            self.add(client, ["Q", text])

    def script(self):
        return parse("\n".join(self.lines) + "\n")
