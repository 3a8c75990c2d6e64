"""MySQL and MariaDB, as a client speaks to them and as the database is asked about itself."""

from weirtest import mywire
from weirtest.target import Target

from .words import DEADLINE_S, Lost, Refused, Wrong

PROTOCOL = "mysql"
USER = "app"
ATOMIC_TEXT = False  # each statement of a text is a transaction
SURE = {1040, 1205, 1213, 1317, 3024, 1290, 1114, 1021, 2003, 1203, 1226}
UNSURE = {1041, 1053, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 2006, 2013, 4031, 3, 1026, 1030}

SCHEMA = [
    "create table app.torture_rows (client int, n bigint, said text, key (client, n))",
    "create table app.torture_lost (client int, n bigint, said text)",
    "create table app.torture_counter (client int primary key, n bigint)",
]
# What was acknowledged must be in the system's memory at least: the process is killed, the system is not. Pages may be torn by that.
SERVER_OPTIONS = ("--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=1")
TABLE = "torture_rows"
COUNTER = "torture_counter"
BEGIN, COMMIT, ROLLBACK = "begin", "commit", "rollback"
SERVERS = "select count(*) from information_schema.processlist where user = 'app'"
BUSY = ("select (select count(*) from information_schema.processlist where user = 'app' and command <> 'Sleep')"
        " + (select count(*) from information_schema.innodb_trx)")
ACTIVITY = "select id, command, time, state, left(info, 100) from information_schema.processlist where user = 'app'"
PIDS = "select id from information_schema.processlist where user = 'app'"
END_ONE = "kill {}"
TIDY = "select 1"


def slow(seconds, token):
    return f"select '{token}', sleep({seconds})"


def large(pattern, times):
    return f"select repeat('{pattern}', {times})"


def rows(pattern, times, count):
    """A result of many rows."""
    return f"select repeat('{pattern}', {times}) from {', '.join(f'{COUNTER} t{i}' for i in range(4))} limit {count}"


class Session:
    """A logged-in client. Every answer is read to its end; Lost, Refused and Wrong say what else can be."""

    def __init__(self, port, name, user=USER, password="weir-secret", database="app"):
        self.name = name
        target = Target("mysql", "weir", "127.0.0.1", port, user, password, database)
        try:
            self.wire = mywire.Wire(target, mywire.BASIC | mywire.MULTI_STATEMENTS, login=False)
            self.wire.sock.settimeout(DEADLINE_S)
            self.wire.login(45, None)
        except mywire.MyError as e:
            self.wire.sock.close()
            raise refused(e.code, str(e), True, True) from None
        except TimeoutError as e:
            raise Wrong(f"no answer to a login within {DEADLINE_S} s") from e
        except (mywire.Closed, OSError) as e:
            raise Lost(repr(e)) from None
        except AssertionError as e:
            # The last words to one that has just begun to log in have been sent before it said anything.
            if "packet number 1 where 2" in str(e):
                raise Lost("last words") from None
            raise Wrong(str(e)) from e
        self.prepared = {}
        self.wanted = None

    def command(self, code, payload):
        """All packets of the answer."""
        try:
            self.wire.command(code, payload)
            got = self.wire.reply(code)
        except TimeoutError as e:
            raise Wrong(f"no answer within {DEADLINE_S} s") from e
        except (mywire.Closed, OSError) as e:
            raise Lost(repr(e)) from None
        except AssertionError as e:
            # The last words to a client that was idle, and has just begun to ask, have the number of an answer to nothing.
            if "packet number 0 where 1" in str(e):
                raise Lost("last words") from None
            raise Wrong(str(e)) from e
        done = sum(what in ("ok", "end") for what, _ in got)
        for what, payload in got:
            if what == "err":
                e = mywire.MyError(payload)
                raised = refused(e.code, str(e), e.code in SURE, False)
                raised.done = done
                raise raised
        return got

    def ask(self, sql):
        got = self.command(mywire.QUERY, sql)
        return [mywire.text_row(p) for what, p in got if what == "row"], [what for what, _ in got if what == "ok"]

    def begin(self):
        self.ask(BEGIN)

    def commit(self):
        self.ask(COMMIT)

    def statement(self, sql):
        if sql not in self.prepared:
            got = self.command(mywire.STMT_PREPARE, sql)
            self.prepared[sql] = int.from_bytes(got[0][1][1:5], "little")
        return self.prepared[sql]

    def insert_prepared(self, client, numbers):
        n = numbers[0]
        assert len(numbers) == 1
        statement = self.statement(f"insert into {TABLE} values (?, ?, ?)")
        self.command(mywire.STMT_EXECUTE, mywire.execute_payload(statement, [str(client), str(n), f"prepared {client}"]))

    def echo_prepared(self, token):
        got = self.command(mywire.STMT_EXECUTE, mywire.execute_payload(self.statement("select ?"), [token]))
        # A binary row: 0, one byte of NULLs, the text with its length.
        return [[p[2 + (1 if len(token) < 251 else 3):].decode()] for what, p in got if what == "row"]

    def setting(self, number):
        """A setting that Weir carries from server to server."""
        if self.wanted is not None:
            found = self.ask("select @@group_concat_max_len")[0]
            if found != [[str(self.wanted)]]:
                raise Wrong(f"group_concat_max_len is {found}, not {self.wanted}")
        wanted, self.wanted = 1024 + number, None
        self.ask(f"set session group_concat_max_len = {wanted}")
        self.wanted = wanted

    def temporary(self, number):
        self.ask("create temporary table own (n int)")
        self.ask(f"insert into own values ({number})")
        found = self.ask("select n from own")[0]
        if found != [[str(number)]]:
            raise Wrong(f"the temporary table holds {found}, not {number}")
        self.ask("drop temporary table own")

    def request(self, sql):
        return self.wire.packet(bytes([mywire.QUERY]) + sql.encode())

    def close(self):
        self.wire.close()

    def vanish(self):
        self.wire.vanish()


def refused(code, text, sure, ended):
    if code not in SURE and code not in UNSURE:
        raise Wrong(f"an error that no driver owes to this: {text}")
    return Refused(code, text, sure, ended)


def monitor(port):
    """The database itself, by one that Weir does not use; without a password, which a restarted MySQL would want in clear."""
    return Session(port, "monitor", "app_nopass", "")
