"""PostgreSQL, as a client speaks it and as the database is asked about itself."""

from weirtest import pgwire
from weirtest.target import Target

from .words import DEADLINE_S, Lost, Refused, Wrong

KIND, PROTOCOL = "postgres", "postgres"
USER = "app_scram"
ATOMIC_TEXT = True  # a text of several statements is one transaction
# SQLSTATEs that say that the statement was not done: not connected, no room, starting up, rolled back by the database.
SURE = {"08001", "08004", "53300", "57P03", "53100", "53200", "57014", "40001", "40P01", "25P02", "55P03", "54000"}
# Those behind which nobody knows.
UNSURE = {"08000", "08003", "08006", "57P01", "57P02", "57P05", "53000", "58000", "58030", "58P01"}

SCHEMA = [
    "create table torture_rows (client int, n bigint, said text)", "create index on torture_rows (client, n)",
    "create table torture_lost (client int, n bigint, said text)",
    "create table torture_counter (client int primary key, n bigint)",
    "grant all on torture_rows, torture_lost, torture_counter to public",
    # What was acknowledged must be in the system's memory at least: the process is killed, the system is not.
    "alter system set synchronous_commit = on", "alter system set full_page_writes = on", "alter system set max_wal_size = '192MB'",
    "alter system set log_min_messages = fatal", "select pg_reload_conf()",
]
SERVER_OPTIONS = ()
TABLE = "torture_rows"
COUNTER = "torture_counter"
BEGIN, COMMIT, ROLLBACK = "begin", "commit", "rollback"
SERVERS = "select count(*) from pg_stat_activity where usename = 'app_scram'"
BUSY = "select count(*) from pg_stat_activity where usename = 'app_scram' and state <> 'idle'"
ACTIVITY = "select pid, state, wait_event, xact_start is not null, left(query, 100) from pg_stat_activity where usename = 'app_scram'"
PIDS = "select pid from pg_stat_activity where usename = 'app_scram'"
END_ONE = "select pg_terminate_backend({})"
TIDY = "vacuum torture_rows"


def slow(seconds, token):
    return f"select '{token}' from (select pg_sleep({seconds})) s"


def large(pattern, times):
    return f"select repeat('{pattern}', {times})"


def rows(pattern, times, count):
    """A result of many rows."""
    return f"select repeat('{pattern}', {times}) from generate_series(1, {count})"


class Session:
    """A logged-in client. Every answer is read to its end; Lost, Refused and Wrong say what else can be."""

    def __init__(self, port, name, user=USER, password="weir-secret", database="app"):
        self.name = name
        target = Target(KIND, "weir", "127.0.0.1", port, user, password, database)
        try:
            self.wire = pgwire.Wire(target, login=False)
            self.wire.sock.settimeout(DEADLINE_S)
            self.wire.login({"application_name": name})
        except pgwire.LoginRefused as e:
            self.wire.sock.close()
            raise refused(e.code, str(e), True, True) from None
        except TimeoutError as e:
            raise Wrong(f"no answer to a login within {DEADLINE_S} s") from e
        except (pgwire.Closed, OSError) as e:
            raise Lost(repr(e)) from None
        self.prepared = set()

    def send(self, data):
        try:
            self.wire.send(data)
        except TimeoutError as e:
            raise Wrong(f"nothing is taken within {DEADLINE_S} s") from e
        except OSError as e:
            self.last_words(e)

    def last_words(self, e):
        """What was said before the connection ended; nothing of the request can be sure then."""
        try:
            for kind, payload in self.wire.closed_by_peer():
                if kind == "E":
                    raise refused(pgwire.fields(payload)["C"], pgwire.fields(payload)["M"], False, True)
        except OSError:
            pass
        raise Lost(repr(e))

    def answer(self):
        """(rows, tags) up to ReadyForQuery."""
        rows, tags, error, self.parsed = [], [], None, False
        while True:
            try:
                kind, payload = self.wire.read()
            except TimeoutError as e:
                raise Wrong(f"no answer within {DEADLINE_S} s") from e
            except (pgwire.Closed, OSError) as e:
                if error:
                    raise refused(error["C"], error["M"], error["C"] in SURE and error["S"] != "FATAL", True) from None
                raise Lost(repr(e)) from None
            except AssertionError as e:
                raise Wrong(str(e)) from e
            if kind == "D":
                rows.append(pgwire.row(payload))
            elif kind == "C":
                tags.append(payload[:-1].decode())
            elif kind == "1":
                self.parsed = True
            elif kind == "E":
                error = error or pgwire.fields(payload)
            elif kind == "Z":
                self.status = payload.decode()
                if error:
                    raise refused(error["C"], error["M"], error["C"] in SURE, False)
                return rows, tags
            elif kind not in "TnSN2st":
                raise Wrong(f"an answer holds the message {kind} {payload[:80]!r}")

    def ask(self, sql):
        self.send(pgwire.query(sql))
        return self.answer()

    def begin(self):
        self.ask(BEGIN)
        if self.status != "T":
            raise Wrong(f"after BEGIN the status is {self.status}")

    def commit(self):
        tags = self.ask(COMMIT)[1]
        if tags != ["COMMIT"]:
            raise Refused("25P02", f"COMMIT says {tags}", True, False)

    def insert_prepared(self, client, numbers):
        """All in one batch, which is one transaction."""
        out = b""
        if "ins" not in self.prepared:
            out += pgwire.parse(f"insert into {TABLE} values ($1::int, $2::bigint, $3)", "ins")
        for n in numbers:
            out += pgwire.bind([str(client), str(n), f"prepared {client}"], "ins") + pgwire.execute()
        self.send(out + pgwire.SYNC)
        try:
            self.answer()
        finally:
            # It stays prepared when what follows it fails.
            if self.parsed:
                self.prepared.add("ins")

    def echo_prepared(self, token):
        self.send(pgwire.parse("select $1::text") + pgwire.bind([token]) + pgwire.execute() + pgwire.SYNC)
        return self.answer()[0]

    def setting(self, _number):
        """What follows a client is what it logged in with."""
        found = self.ask("show application_name")[0]
        if found != [[self.name]]:
            raise Wrong(f"application_name is {found}, not {self.name}")

    def temporary(self, number):
        self.ask("create temporary table own (n int)")
        self.ask(f"insert into own values ({number})")
        found = self.ask("select n from own")[0]
        if found != [[str(number)]]:
            raise Wrong(f"the temporary table holds {found}, not {number}")

    def request(self, sql):
        return pgwire.query(sql)

    def close(self):
        self.wire.close()

    def vanish(self):
        self.wire.vanish()


def refused(code, text, sure, ended):
    if code not in SURE and code not in UNSURE:
        raise Wrong(f"an error that no driver owes to this: {code} {text}")
    return Refused(code, text, sure, ended)


def monitor(port):
    """The database itself, by one that Weir does not use."""
    return Session(port, "monitor", "postgres", "")
