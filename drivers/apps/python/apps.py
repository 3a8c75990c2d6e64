"""An application-shaped program in Python: plays the steps that it is told in many clients at once.

Lines of JSON come in (tests/lib/weirtest/apps.py says which), lines of JSON go out. T_FRAMEWORK names the adapter: `pg.Psycopg` is
the class Psycopg of pg.py. Each client has a thread of its own for its whole life, as in a web server with worker threads; an adapter
knows one client. This file owns the steps and their order; what a framework calls things is the adapter's.
"""

import importlib
import json
import os
import queue
import sys
import tempfile
import threading

WHERE = {key: os.environ["T_" + key.upper()] for key in ("host", "port", "user", "password", "db", "kind")}
WHERE["port"] = int(WHERE["port"])
CANCEL_AGAIN_S = 1.0


class Rollback(Exception):
    """Leaves a block whose framework rolls back what raises."""


class Adapter:
    """What a framework must be able to do. `who` says who the client is: application, schema, zone."""

    def __init__(self, who):
        self.who = who
        self.open()

    # open, close, execute(sql, params) -> affected rows or None, query(sql, params) -> rows, and the blocks:
    # transaction(body, commit), savepoint(body, release); both are told what to run inside.

    def prepared(self, sql, params):
        return self.query(sql, params)

    def describe(self, error):
        """[class, SQLSTATE or number, text] of an error."""
        return [type(error).__name__, None, str(error).split("\n")[0]]

    def migrate(self, statements):
        """DDL as the framework writes it; without one of its own, the statements as they stand."""
        def body():
            for statement in statements:
                self.execute(statement)
        self.transaction(body, True)

    def orm(self):
        """A framework's own objects: nothing, where it has none."""
        return None


class Client(threading.Thread):
    """One client: does its steps when it gets them."""

    def __init__(self, number, who, program):
        super().__init__(daemon=True)
        self.number, self.who, self.program = number, who, program
        self.steps = queue.Queue()
        self.adapter = None
        self.start()

    def run(self):
        while (steps := self.steps.get()) is not None:
            seen = self.all_of(steps)
            self.program.say({"client": self.number, "seen": seen})

    def all_of(self, steps):
        return [self.one(*step) for step in steps]

    def one(self, what, *arguments):
        try:
            return getattr(self, "do_" + what)(*arguments)
        except Rollback:
            raise
        except Exception as e:  # whatever it is, the transcript must show it
            return {"error": self.error(e)}

    def error(self, error):
        return self.adapter.describe(error) if self.adapter else [type(error).__name__, None, str(error)]

    def do_open(self):
        self.adapter = self.program.adapter(self.who)

    def do_close(self):
        self.adapter.close()

    def do_reconnect(self):
        self.adapter.close()
        self.adapter.open()

    def do_execute(self, sql, params=()):
        return self.adapter.execute(sql, params)

    def do_query(self, sql, params=()):
        return [[plain(v) for v in row] for row in self.adapter.query(sql, params)]

    def do_prepared(self, sql, runs):
        return [[[plain(v) for v in row] for row in self.adapter.prepared(sql, params)] for params in runs]

    def do_fails(self, sql, params=()):
        try:
            self.adapter.query(sql, params)
        except Exception as e:  # the very thing that is asked for
            return self.error(e)
        return "no error"

    def do_transaction(self, steps, commit):
        return self.block(self.adapter.transaction, steps, commit)

    def do_savepoint(self, steps, release):
        return self.block(self.adapter.savepoint, steps, release)

    def block(self, how, steps, keep):
        seen = []
        how(lambda: seen.extend(self.all_of(steps)), keep)
        return seen

    def do_queue(self, take, done):
        """A worker of a job queue: takes and does jobs until there are none. Which ones it gets is chance; the runner counts them."""
        while True:
            found = []

            def body():
                found.extend(self.adapter.query(take, ()))
                for row in found:
                    self.adapter.execute(done, (row[0],))
            self.adapter.transaction(body, True)
            if not found:
                return None

    def do_migrate(self, statements):
        return self.adapter.migrate(statements)

    def do_orm(self):
        return plain(self.adapter.orm())

    def do_stream(self, sql):
        """Rows and a sum of what is in them, through the framework's way for large results."""
        rows, total = 0, 0
        for row in self.adapter.stream(sql):
            rows += 1
            total = (total * 31 + sum(str(plain(v)).encode())) % 1_000_000_007 if (v := row[-1]) is not None else total
        return [rows, total]

    def do_copy_in(self, sql, text):
        return self.adapter.copy_in(sql, text)

    def do_copy_out(self, sql):
        return self.adapter.copy_out(sql)

    def do_load(self, sql, text):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write(text)
            f.flush()
            return self.adapter.execute(sql.replace("{file}", f.name), ())

    def do_listen(self, channel, payload):
        return self.adapter.listen(channel, payload)

    def do_cancel(self, sql):
        """A statement that would run for minutes, cancelled as the framework does it. A cancel request that comes before the
        statement does is lost on any server, so it is said again."""
        over = threading.Event()

        def nag():
            while not over.wait(CANCEL_AGAIN_S if nag.said else 0.1):
                nag.said = True
                self.adapter.cancel()
        nag.said = False
        nagger = threading.Thread(target=nag)
        nagger.start()
        try:
            return self.do_fails(sql)
        finally:
            over.set()
            nagger.join()


def plain(value):
    """As JSON has it, and the same each time."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    return f"{type(value).__name__} {value}"


class Program:
    def __init__(self):
        module, name = os.environ["T_FRAMEWORK"].split(".")
        module = importlib.import_module(module)
        self.adapter = getattr(module, name)
        self.clients = {}
        self.lock = threading.Lock()
        if hasattr(module, "begin"):
            module.begin(self.adapter)

    def say(self, what):
        with self.lock:
            print(json.dumps(what), flush=True)

    def run(self):
        for line in sys.stdin:
            told = json.loads(line)
            for number, who in told.get("clients", {}).items():
                self.clients[number] = Client(number, who, self)
            for number, steps in told.get("steps", {}).items():
                self.clients[number].steps.put(steps)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.modules["apps"] = sys.modules["__main__"]
    Program().run()
    os._exit(0)  # threads of clients that wait for an answer are not waited for
