"""The administration console: PgBouncer's commands as PgBouncer 1.26 answers them (a real one is asked beside Weir), Weir's own, by
both protocols, with clients alive under load."""

import contextlib
import os
import pwd
import signal
import socket
import struct
import subprocess
import tempfile
import threading

import psycopg
import pymysql

from weirtest import mywire
from weirtest.case import Skip, eventually, weir
from weirtest.pgwire import (
    Closed,
    LoginRefused,
    ServerError,
    Wire,
    bind,
    columns,
    execute,
    fields,
    message,
    parse,
    query,
    row,
)
from weirtest.private import PrivateServer
from weirtest.target import DEFAULT_USER, PASSWORD, Target, server_env, superuser
from weirtest.weir import Weir, free_port

SERVERS = ["postgres", "mariadb"]

ON_SERVER = "select count(*) from pg_stat_activity where backend_type = 'client backend' and usename like 'app%' "
SHOWS = ["VERSION", "CONFIG", "DATABASES", "POOLS", "CLIENTS", "SERVERS", "SOCKETS", "ACTIVE_SOCKETS", "LISTS", "USERS", "STATS",
         "STATS_TOTALS", "STATS_AVERAGES", "TOTALS", "MEM", "DNS_HOSTS", "DNS_ZONES", "STATE", "PEERS", "PEER_POOLS", "HELP", "FDS",
         "timezone", "bogus", "CLIENTS x"]


def users_file(directory):
    path = os.path.join(directory, "userlist.txt")
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(f'"{user}" "{PASSWORD}"\n' for user in ("boss", "watcher", "app_scram", "app_md5"))
    return path


def ini(directory, port, pool="default_pool_size = 4", more=""):
    """PgBouncer's own file, which both can read."""
    return f"""[databases]
app = host=127.0.0.1 port={port}
app2 = host=127.0.0.1 port={port}
[pgbouncer]
auth_type = scram-sha-256
auth_file = {users_file(directory)}
admin_users = boss, other
stats_users = watcher
pool_mode = transaction
{pool}
{more}
"""


@contextlib.contextmanager
def weir_of_ini(port=None, directory=None, also=(), **kw):
    with tempfile.TemporaryDirectory(prefix="weir-console-", dir="/tmp") as made:
        text = ini(directory or made, port or server_env("postgres", "PORT"), **kw)
        with Weir.configured("postgres", text, suffix=".ini", also=also) as w:
            yield w


def console(w, user="boss", database="pgbouncer"):
    return Wire(w.target(user=user, database=database))


def everything(wire, statement):
    """All messages of an answer; what is a notice or an error as its fields."""
    wire.send(query(statement))
    out = []
    while not out or out[-1][0] != "Z":
        kind, payload = wire.read()
        if kind in "EN":
            found = fields(payload)
            out.append((kind, {key: found.get(key) for key in "SCM"}))
        else:
            out.append((kind, payload))
    return out


def table(wire, statement):
    """Rows as dictionaries."""
    wire.send(query(statement))
    names, rows, error = [], [], None
    while True:
        kind, payload = wire.read()
        if kind == "T":
            names = [column.split(" ")[0] for column in columns(payload)] if struct.unpack("!h", payload[:2])[0] < 40 else []
        elif kind == "D":
            rows.append(dict(zip(names, row(payload), strict=True)))
        elif kind == "E":
            error = ServerError(fields(payload))
        elif kind == "Z":
            if error:
                raise error
            return rows


def refused(wire, statement, words):
    try:
        wire.ask(statement)
    except ServerError as e:
        assert words in str(e) and e.code == "08P01", e
        return
    raise AssertionError(f"{statement} was done")


class Load:
    """Clients that ask one after the other until they are told to stop. An error of any of them is one of the test."""

    def __init__(self, w, clients=8, **kw):
        self.asked = [0] * clients
        self.errors = []
        self.over = threading.Event()
        self.wires = [Wire(w.target(**kw)) for _ in range(clients)]
        self.threads = [threading.Thread(target=self.run, args=(n,)) for n in range(clients)]

    def run(self, n):
        try:
            wire = self.wires[n]
            while not self.over.is_set():
                assert wire.ask(f"select {n}") == [[str(n)]]
                wire.ask("begin")
                assert wire.ask(f"select 'in {n}'") == [[f"in {n}"]]
                wire.ask("commit")
                self.asked[n] += 1
        except Exception as e:
            self.errors.append((n, repr(e)))

    def all_have_asked(self):
        """Each has asked again since now."""
        before = list(self.asked)
        eventually(lambda: self.errors or all(now > then + 1 for now, then in zip(self.asked, before, strict=True)), "all ask")
        assert not self.errors, self.errors

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.all_have_asked()
        return self

    def __exit__(self, kind, *_):
        self.over.set()
        for thread in self.threads:
            thread.join(30)
        for wire in self.wires:
            with contextlib.suppress(OSError):
                wire.close()
        assert kind or not self.errors, self.errors


# --- Beside PgBouncer --------------------------------------------------------------------------------------------------------------


def pgbouncer_program():
    """A PgBouncer 1.26, whose columns are the wanted ones."""
    newest = os.environ.get("WEIR_TEST_NEWEST", "")
    for path in (f"{newest}/root/usr/sbin/pgbouncer", "/usr/sbin/pgbouncer"):
        if os.access(path, os.X_OK):
            said = subprocess.run([path, "-V"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
            if "PgBouncer 1.26." in said:
                return path
    raise Skip("no PgBouncer 1.26 is here")


@contextlib.contextmanager
def pgbouncer(directory):
    program, port = pgbouncer_program(), free_port()
    path = os.path.join(directory, "pgbouncer.ini")
    os.chmod(directory, 0o755)
    with open(path, "w", encoding="utf-8") as f:
        f.write(ini(directory, server_env("postgres", "PORT"),
                    more=f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"))
    # It does not run as root.
    account = {} if os.geteuid() else {"user": pwd.getpwnam("nobody").pw_uid}
    with open(os.path.join(directory, "log"), "wb") as log:
        process = subprocess.Popen([program, path], stdin=subprocess.DEVNULL, stdout=log, stderr=log, **account)
    try:
        def listens():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", port)) == 0
        eventually(listens, "PgBouncer listens")
        yield lambda user, database: Target("postgres", "pgbouncer", "127.0.0.1", port, user, PASSWORD, database=database)
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def both_consoles():
    """Weir and PgBouncer, each as what logs in there, in the same state: one client is in a transaction, one is idle."""
    with tempfile.TemporaryDirectory(prefix="weir-console-", dir="/tmp") as directory, pgbouncer(directory) as theirs, \
            weir_of_ini(directory=directory) as w, contextlib.ExitStack() as stack:
        ours = lambda user, database: w.target(user=user, database=database)
        for login in (theirs, ours):
            stack.enter_context(Wire(login("app_scram", "app"))).ask("select 1")
            busy = stack.enter_context(Wire(login("app_scram", "app")))
            busy.ask("begin")
            busy.ask("select 1")
        yield theirs, ours


@weir(only="postgres")
def every_show_has_pgbouncers_columns(_context):
    with both_consoles() as (theirs, ours), Wire(theirs("boss", "pgbouncer")) as p, Wire(ours("boss", "pgbouncer")) as w:
        for what in SHOWS:
            # SHOW STATS waits for nobody: what was counted is there.
            wanted, found = everything(p, f"SHOW {what}"), everything(w, f"SHOW {what}")
            shape = [[m for m in messages if m[0] != "D"] for messages in (wanted, found)]
            assert shape[0] == shape[1], f"SHOW {what}: {shape}"
        same = {"LISTS": ["list"], "TOTALS": ["name"], "STATE": ["key", "value"], "USERS": ["name", "current_connections", "pool_mode",
                "current_client_connections"], "POOLS": ["database", "user", "cl_active", "cl_waiting", "sv_active", "sv_tested",
                "sv_login", "maxwait", "pool_mode", "load_balance_hosts", "cl_waiting_cancel_req", "sv_used"],
                "DATABASES": ["name", "host", "database", "force_user", "pool_size", "min_pool_size", "reserve_pool_size",
                              "server_lifetime", "pool_mode", "max_connections", "current_client_connections", "paused", "disabled"],
                "CLIENTS": ["type", "user", "database", "replication", "state", "addr", "local_addr", "wait", "close_needed",
                            "remote_pid", "tls", "application_name"],
                "PEERS": ["peer_id"], "PEER_POOLS": ["peer_id"], "DNS_HOSTS": ["hostname"], "DNS_ZONES": ["zonename"]}
        for what, names in same.items():
            wanted, found = ([sorted(repr([r[n] for n in names]) for r in table(wire, f"SHOW {what}")) for wire in (p, w)])
            found = [r for r in found if "'app2'" not in r]
            wanted = [r for r in wanted if "'app2'" not in r]
            assert wanted == found, f"SHOW {what}\n{wanted}\n{found}"
        ours_servers = [r for r in table(w, "SHOW SERVERS") if r["state"] == "active"]
        clients = {r["ptr"]: r for r in table(w, "SHOW CLIENTS")}
        assert len(ours_servers) == 1 and clients[ours_servers[0]["link"]]["link"] == ours_servers[0]["ptr"], ours_servers
        with Wire(superuser("postgres")) as s:
            assert s.ask(f"select usename from pg_stat_activity where pid = {ours_servers[0]['remote_pid']}") == [["app_scram"]]
        assert table(w, "SHOW VERSION")[0]["version"].startswith("PgBouncer 1.26")


@weir(only="postgres")
def errors_and_tags_are_pgbouncers(_context):
    statements = ["select 1", "SELECT version()", "", "; ", "show pools; show lists", "kill_client abc", "kill_client 99999999",
                  "resume", "resume nix", "pause nix", "disable", "disable nix", "enable nix", "resume app", "kill pgbouncer",
                  "shutdown now", "reload x", "SHOW state;  ", 'show "state"', "-- hi\nshow lists", "show lists where x", "suspend",
                  "wait_close nix", "reconnect nix", "reconnect pgbouncer", "pause pgbouncer", "disable pgbouncer", "enable pgbouncer",
                  "wait_close pgbouncer", "set x = 1", "set extra_float_digits = 3", "set server_idle_timeout = 'x'",
                  "set server_idle_timeout = 77", "begin", "show " + "x" * 64, "show_me_everything x", "reload", "wait_close",
                  "reconnect", "reconnect app", "disable app", "enable app", "kill app2", "resume app2", "pause app2", "show databases", "resume app2", "drop table x", "show\tstate", "kill_client", "kill_client 12x"]
    with both_consoles() as (theirs, ours), Wire(theirs("boss", "pgbouncer")) as p, Wire(ours("boss", "pgbouncer")) as w:
        for statement in statements:
            wanted, found = ([m for m in everything(wire, statement) if m[0] not in "DN"] for wire in (p, w))
            assert wanted == found, f"{statement!r}: {wanted} {found}"
        for user, database in (("app_scram", "pgbouncer"), ("nobody_here", "pgbouncer"), ("boss", "nix")):
            said = []
            for login in (theirs, ours):
                try:
                    Wire(login(user, database)).close()
                    said.append(None)
                except LoginRefused as e:
                    said.append("not allowed" in str(e))
            assert said[0] == said[1], (user, said)
        p.ask("disable app")
        w.ask("disable app")
        said = []
        for login in (theirs, ours):
            try:
                Wire(login("app_scram", "app"))
            except LoginRefused as e:
                said.append(str(e))
        assert said[0] == said[1] and len(said) == 2, said
        # What is said to those who are ended.
        for statement in ("kill_client", "kill app"):
            said = []
            for wire, login in ((p, theirs), (w, ours)):
                wire.ask("enable app")
                with Wire(login("app_scram", "app")) as victim:
                    victim.ask("select 1")
                    number = ""
                    if statement == "kill_client":
                        port = str(victim.sock.getsockname()[1])
                        number = " " + next(r["id"] for r in table(wire, "SHOW CLIENTS") if r["port"] == port)
                    wire.ask(statement + number)
                    said.append([fields(m[1]).get("M") for m in victim.closed_by_peer() if m[0] == "E"])
            assert said[0] == said[1] and said[0][0], said


@weir(only="postgres")
def what_a_killed_client_runs_commits_nothing(_context):
    """The COMMIT stands in the same request."""
    with both_consoles() as (_, ours), Wire(ours("boss", "pgbouncer")) as wire:
        for statement in ("kill_client", "kill app"):
            with Wire(ours("app_scram", "app")) as victim:
                victim.ask("drop table if exists killed")
                victim.ask("create table killed (i int)")
                victim.ask("begin")
                victim.ask("insert into killed values (1)")
                victim.send(query("select pg_sleep(2); commit"))
                port = str(victim.sock.getsockname()[1])
                client = next(r for r in table(wire, "SHOW CLIENTS") if r["port"] == port)
                wire.ask(statement + (" " + client["id"] if statement == "kill_client" else ""))
                victim.closed_by_peer()
            if statement == "kill app":
                wire.ask("resume app")
            with Wire(ours("app_scram", "app")) as looks:
                # It waits for whoever still holds rows of it.
                looks.ask("alter table killed add column j int")
                assert looks.ask("select count(*) from killed") == [["0"]], statement
                looks.ask("drop table killed")


@weir(only="postgres")
def the_extended_protocol_is_refused_as_pgbouncer_does(_context):
    with both_consoles() as (theirs, ours):
        said = []
        for login in (theirs, ours):
            with Wire(login("boss", "pgbouncer")) as wire:
                wire.send(parse("show pools") + bind() + execute() + message(b"S"))
                said.append([(kind, fields(payload).get("M")) if kind == "E" else (kind, payload)
                             for kind, payload in wire.closed_by_peer()])
        assert said[0] == said[1], said


# --- Who may come --------------------------------------------------------------------------------------------------------------------


@weir(only="postgres")
def stats_users_look_and_change_nothing(_context):
    with weir_of_ini() as w, console(w, user="watcher") as wire:
        for what in ("POOLS", "CLIENTS", "CONFIG", "STATS", "PINS", "QUEUE", "LIMITS"):
            table(wire, f"SHOW {what}")
        for statement in ("pause", "resume", "kill", "kill app", "kill_client 1", "disable app", "enable app", "reconnect", "wait_close",
                          "reload", "shutdown", "shutdown wait_for_servers", "set pool_mode = session"):
            refused(wire, statement, "admin access needed")
        with Wire(w.target()) as client:
            assert client.ask("select 1") == [["1"]], "nothing has happened"
        for user in ("app_scram", "app_md5"):
            for database in ("pgbouncer", "weir"):
                try:
                    console(w, user=user, database=database)
                    raise AssertionError(f"{user} came in")
                except LoginRefused as e:
                    assert "not allowed" in str(e), e
        # A wrong password is one, whoever is named.
        try:
            Wire(Target("postgres", "x", "127.0.0.1", w.port, "boss", "wrong", database="pgbouncer"))
            raise AssertionError("it came in")
        except LoginRefused as e:
            assert e.code == "28P01", e


@weir(only="postgres")
def whoever_runs_weir_comes_in_without_a_password(_context):
    with tempfile.TemporaryDirectory(prefix="weir-console-", dir="/tmp") as directory:
        os.chmod(directory, 0o755)
        with weir_of_ini(also=[f"{directory}:6432"]):
            came = psycopg.connect(host=directory, port=6432, user="pgbouncer", dbname="pgbouncer", autocommit=True)
            assert came.execute("SHOW STATE").fetchall()[1] == ("paused", "no")
            came.execute("RELOAD")
            came.close()
            if os.geteuid() == 0:
                program = (f"import psycopg; psycopg.connect(host='{directory}', port=6432, user='pgbouncer', dbname='pgbouncer',"
                           " password='x')")
                account = pwd.getpwnam("nobody")
                done = subprocess.run(["python3", "-c", program], user=account.pw_uid, stderr=subprocess.PIPE, check=False)
                assert done.returncode != 0, "another account of this machine came in"


@weir(only="postgres")
def the_console_has_room_when_weir_is_full(_context):
    with weir_of_ini(more="max_client_conn = 3") as w, contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(Wire(w.target())).ask("select 1")
        try:
            Wire(w.target())
            raise AssertionError("it is full")
        except LoginRefused as e:
            assert e.code == "53300", e
        with console(w) as wire:
            limits = {r["name"]: (r["used"], r["most"]) for r in table(wire, "SHOW LIMITS")}
            assert limits["max_client_conn"][1] == "3", limits
            wire.ask("reconnect")


# --- Commands, under load --------------------------------------------------------------------------------------------------------------


@weir(only="postgres")
def pause_and_resume_lose_nobody(_context):
    server = PrivateServer("postgres")
    with weir_of_ini(port=server.port, pool="default_pool_size = 4\nmin_pool_size = 2") as w, console(w) as wire, \
            Wire(server.superuser()) as s, Load(w, 16) as load:
        for turn in range(3):
            wire.ask("pause")
            # The server notices a little later than Weir.
            eventually(lambda: s.ask(ON_SERVER) == [["0"]], "nobody is left on the server")
            assert table(wire, "SHOW STATE")[1]["value"] == "yes"
            waits = lambda: int(table(wire, "SHOW POOLS")[0]["cl_waiting"]) == 16
            eventually(waits, "all wait")
            assert len(table(wire, "SHOW QUEUE")) == 16
            # The server may be another one afterwards.
            if turn == 0:
                server.restart()
                s.close()
                s = Wire(server.superuser())
            refused(wire, "pause", "already paused")
            came = []
            late = threading.Thread(target=lambda: came.append(Wire(w.target(database="app2")).ask("select 'new pool'")))
            late.start()
            eventually(lambda: len(table(wire, "SHOW QUEUE")) == 17 or came, "who comes to a new pool waits, too")
            assert not came and s.ask(ON_SERVER) == [["0"]], "nor is one opened for it, or to be kept"
            wire.ask("resume")
            load.all_have_asked()
            late.join(30)
            assert came == [[["new pool"]]]
        assert "PAUSE command issued" in w.log(), "the words that tools look for"
        wire.ask("pause app")
        assert "PAUSE 'app' command issued" in w.log()
        eventually(lambda: s.ask(ON_SERVER + "and datname = 'app'") == [["0"]], "nobody is left on the server")
        assert {r["name"]: r["paused"] for r in table(wire, "SHOW DATABASES")} == {"app": "1", "app2": "0", "pgbouncer": "0"}
        with Wire(w.target(database="app2")) as other:
            assert other.ask("select 1") == [["1"]], "another database"
        refused(wire, "resume", "pooler is not paused")
        wire.ask("resume app")
        load.all_have_asked()


@weir(only="postgres")
def signals_pause_and_resume(_context):
    with weir_of_ini() as w, console(w) as wire, Load(w, 4) as load:
        w.signal(signal.SIGUSR1)
        eventually(lambda: len(table(wire, "SHOW QUEUE")) == 4, "all wait")
        assert table(wire, "SHOW STATE")[1]["value"] == "yes"
        w.signal(signal.SIGUSR2)
        load.all_have_asked()


@weir(only="postgres")
def pause_waits_for_transactions(_context):
    with weir_of_ini() as w, console(w) as wire, console(w) as second, Wire(w.target()) as client, Wire(w.target()) as late:
        client.ask("begin")
        client.ask("select 1")
        wire.send(query("pause"))
        eventually(lambda: table(second, "SHOW STATE")[1]["value"] == "yes", "it is paused")
        assert client.ask("select 'still mine'") == [["still mine"]]
        late.send(query("select 'late'"))
        eventually(lambda: len(table(second, "SHOW QUEUE")) == 1, "the other one waits")
        # Who logs in now, waits or is greeted, as at PgBouncer.
        wire.sock.settimeout(0.2)
        try:
            wire.read()
            raise AssertionError("PAUSE was answered while a transaction is open")
        except TimeoutError:
            wire.sock.settimeout(30)
        client.ask("commit")
        assert wire.until("Z")[0] == ("C", b"PAUSE\0")
        second.ask("resume")
        assert ("D", b"\0\1\0\0\0\4late") in late.until("Z")
        # Who gives up waiting for it does not want it.
        client.ask("begin")
        client.ask("select 1")
        wire.send(query("pause"))
        eventually(lambda: table(second, "SHOW STATE")[1]["value"] == "yes", "it is paused")
        with socket.create_connection(("127.0.0.1", w.port)) as cancel:
            cancel.sendall(struct.pack("!iII", 12 + len(wire.secret), 80877102, wire.pid) + wire.secret)
            cancel.recv(1)
        said = wire.until("Z")
        assert "canceling" in fields(said[0][1])["M"], said
        assert table(second, "SHOW STATE")[1]["value"] == "no"
        # Nobody waits any more for the answer of a client that has gone; what it ordered stays.
        third = console(w)
        third.send(query("pause"))
        eventually(lambda: table(second, "SHOW STATE")[1]["value"] == "yes", "it is paused")
        third.close()
        client.ask("commit")
        second.ask("resume")
        assert client.ask("select 1") == [["1"]]


@weir(only="postgres")
def reconnect_replaces_servers_and_loses_nobody(_context):
    server = PrivateServer("postgres")
    pids = "select coalesce(string_agg(pid::text, ','), '') from pg_stat_activity where usename like 'app%'"
    with weir_of_ini(port=server.port) as w, console(w) as wire, Wire(server.superuser()) as s, Load(w, 8) as load, \
            Wire(w.target(database="app2")) as other:
        other.ask("begin")
        mine = other.ask("select pg_backend_pid()")
        before = set(s.ask(pids)[0][0].split(","))
        wire.ask("reconnect app")
        load.all_have_asked()
        wire.ask("wait_close app")
        after = set(s.ask(pids)[0][0].split(","))
        assert before & after == {mine[0][0]}, "only the other database's is still there"
        wire.ask("reconnect")
        assert [r["close_needed"] for r in table(wire, "SHOW SERVERS") if r["database"] == "app2"] == ["1"]
        assert other.ask("select pg_backend_pid()") == mine, "not before its transaction ends"
        other.ask("commit")
        wire.ask("wait_close")
        assert other.ask("select pg_backend_pid()") != mine
        load.all_have_asked()


@weir(only="postgres")
def kill_client_hits_one(_context):
    with weir_of_ini() as w, console(w) as wire, Load(w, 4) as load, Wire(w.target()) as idle, Wire(w.target()) as busy:
        idle.ask("select 1")
        busy.ask("begin")
        busy.send(query("select pg_sleep(60)"))
        eventually(lambda: len([r for r in table(wire, "SHOW CLIENTS") if r["state"] == "active"]) >= 1, "it runs")
        for victim in (idle, busy):
            port = str(victim.sock.getsockname()[1])
            number = next(r["id"] for r in table(wire, "SHOW CLIENTS") if r["port"] == port)
            assert number == str(victim.pid), "the number its program was told"
            wire.ask(f"kill_client {number}")
            assert any("admin forced disconnect" in fields(p).get("M", "") for k, p in victim.closed_by_peer() if k == "E")
            refused(wire, f"kill_client {number}", "client not found")
        load.all_have_asked()


@weir(only="postgres")
def kill_ends_all_clients_and_servers_of_a_database(_context):
    server = PrivateServer("postgres")
    with weir_of_ini(port=server.port, more="max_client_conn = 500") as w, console(w) as wire, \
            Wire(server.superuser()) as s, Wire(w.target(database="app2")) as other:
        other.ask("select 1")
        clients = [Wire(w.target()) for _ in range(200)]
        for client in clients:
            client.ask("select 1")
        clients[0].ask("begin")
        clients[0].ask("select 1")
        wire.ask("kill app")
        for client in clients:
            assert [fields(p).get("M") for k, p in client.closed_by_peer() if k == "E"] == ["database removed"]
            client.close(politely=False)
        eventually(lambda: s.ask(ON_SERVER + "and datname = 'app'") == [["0"]], "its servers have gone")
        assert other.ask("select 'unharmed'") == [["unharmed"]]
        late = Wire(w.target())
        late.send(query("select 'late'"))
        eventually(lambda: len(table(wire, "SHOW QUEUE")) == 1, "it waits")
        wire.ask("resume app")
        assert ("D", b"\0\1\0\0\0\4late") in late.until("Z")
        late.close()


@weir(only="postgres")
def a_disabled_database_keeps_its_clients(_context):
    with weir_of_ini() as w, console(w) as wire, Wire(w.target()) as client:
        wire.ask("disable app")
        assert client.ask("select 1") == [["1"]]
        try:
            Wire(w.target())
            raise AssertionError("it came in")
        except LoginRefused as e:
            assert 'database "app" is disabled' in str(e), e
        assert next(r for r in table(wire, "SHOW DATABASES") if r["name"] == "app")["disabled"] == "1"
        wire.ask("enable app")
        with Wire(w.target()) as again:
            assert again.ask("select 1") == [["1"]]


@weir(only="postgres")
def set_and_reload_change_settings(_context):
    value = lambda wire, key: next(r["value"] for r in table(wire, "SHOW CONFIG") if r["key"] == key)
    with weir_of_ini(pool="default_pool_size = 1") as w, console(w) as wire, Load(w, 4) as load:
        path = w.argv[w.argv.index("--config") + 1]
        wire.ask("set default_pool_size = 3")
        assert value(wire, "default_pool_size") == "3"
        eventually(lambda: ("pool_size", "3") in [(r["name"], r["most"]) for r in table(wire, "SHOW LIMITS")], "it holds")
        wire.ask("set server_idle_timeout to '33'")
        assert (value(wire, "default_pool_size"), value(wire, "server_idle_timeout")) == ("3", "33"), "both"
        refused(wire, "set default_pool_size = many", "SET failed")
        refused(wire, "set listen_backlog = 7", "SET failed")
        refused(wire, "set no_such_thing = 7", "SET failed")
        assert value(wire, "default_pool_size") == "3", "what was refused has changed nothing"
        wire.ask("reload")
        assert (value(wire, "default_pool_size"), value(wire, "server_idle_timeout")) == ("1", "600"), "as the file says"
        with open(path, encoding="utf-8") as f:
            text = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace("default_pool_size = 1", "default_pool_size = none"))
        try:
            wire.ask("reload")
            raise AssertionError("it was read")
        except ServerError as e:
            assert "RELOAD failed, see logs" in str(e), e
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace("default_pool_size = 1", "default_pool_size = 2"))
        wire.ask("reload")
        assert value(wire, "default_pool_size") == "2"
        load.all_have_asked()


@weir(only="postgres")
def shutdown_has_three_modes(_context):
    with weir_of_ini() as w, console(w) as wire, Wire(w.target()) as client:
        client.ask("begin")
        client.ask("select 1")
        wire.ask("shutdown wait_for_servers")
        eventually(lambda: "stopping when transactions have ended" in w.log(), "it is about to stop")
        assert client.ask("select 'mine'") == [["mine"]], "its transaction goes on"
        client.ask("commit")
        assert w.wait() == 0
        w.ended = True
    with weir_of_ini() as w:
        client, wire = Wire(w.target()), console(w)
        client.ask("begin")
        client.ask("select 1")
        wire.send(query("shutdown"))
        assert [k for k, _ in wire.closed_by_peer()] in ([], ["E"]), "no answer but the end"
        assert w.wait() == 0
        w.ended = True
    with weir_of_ini() as w, console(w) as wire:
        clients = [Wire(w.target()) for _ in range(3)]
        wire.ask("shutdown wait_for_clients")
        eventually(lambda: "stopping when all clients have disconnected" in w.log(), "it is about to stop")

        def refuses():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", w.port)) != 0
        eventually(refuses, "nobody new comes in")
        for client in clients:
            assert w.alive() and client.ask("select 'still served'") == [["still served"]]
            assert table(wire, "SHOW POOLS")[0]["database"] == "app", "the console serves, too"
            client.close()
        assert w.wait() == 0, "the console is not waited for"
        w.ended = True
    with weir_of_ini() as w, console(w) as wire, Wire(w.target()) as client:
        wire.ask("shutdown wait_for_clients")
        client.ask("begin")
        client.ask("select 1")
        w.signal(signal.SIGTERM)
        eventually(lambda: "stopping when transactions have ended" in w.log(), "it stops sooner")
        assert client.ask("select 'mine'") == [["mine"]]
        client.ask("commit")
        assert w.wait() == 0
        w.ended = True


# --- Weir's own, and MySQL ----------------------------------------------------------------------------------------------------------------


TOML = """
[console]
admin_users = ["boss"]
stats_users = ["watcher"]
[users.boss]
password = "{password}"
[users.watcher]
password = "{password}"
[users.{user}]
password = "{password}"
[databases.app]
url = "{url}/app"
[pool]
default_pool_size = 2
"""


@contextlib.contextmanager
def weir_of_toml(kind, more=""):
    scheme = "postgres" if kind == "postgres" else "mysql"
    text = TOML.format(password=PASSWORD, user=DEFAULT_USER[kind], url=f"{scheme}://127.0.0.1:{server_env(kind, 'PORT')}")
    if kind != "postgres":
        text += '[mysql]\nauth_type = "mysql_native_password"\n[tls.server]\ntrust_unverified = true\n'
    with Weir.configured(kind, text + more) as w:
        yield w


@weir(only="postgres")
def the_statement_that_pins_is_shown_without_its_values(_context):
    with weir_of_toml("postgres") as w, console(w, database="weir") as wire, Wire(w.target()) as pinned:
        pinned.ask("select 'secret'")
        pinned.ask("select pg_advisory_lock(4711), 'secret' /* secret */")
        shown = eventually(lambda: table(wire, "SHOW PINS"), "it is pinned")
        assert shown[0]["statement"] == "select pg_advisory_lock(?), ?", shown
        pinned.ask("create temporary table weir_other (a int)")
        assert table(wire, "SHOW PINS")[0]["statement"] == "select pg_advisory_lock(?), ?"
        pinned.ask("discard all")
        pinned.send(parse("select pg_advisory_lock($1, 5)", "s") + bind([b"7"], "s") + execute() + message(b"S"))
        pinned.until("Z")
        eventually(lambda: [r["statement"] for r in table(wire, "SHOW PINS")] == ["select pg_advisory_lock($1, ?)"], "that of a prepared one")


@weir(only="mariadb")
def the_statement_that_pins_is_shown_by_mysqls_protocol_too(_context):
    with weir_of_toml("mariadb") as w:
        connect = lambda user, database: pymysql.connect(
            host="127.0.0.1", port=w.port, user=user, password=PASSWORD, database=database, cursorclass=pymysql.cursors.DictCursor)
        with connect("boss", "weir") as boss, connect(DEFAULT_USER["mariadb"], "app") as pinned:
            with boss.cursor() as c, pinned.cursor() as p:
                p.execute("select get_lock('weir_console', 0), 'secret' # secret")
                pins = lambda: (c.execute("SHOW PINS"), c.fetchall())[1]
                shown = eventually(pins, "it is pinned")
                assert shown[0]["statement"] == "select get_lock(?, ?), ?", shown


def costs(wire):
    """Calls, errors and rows of each statement that is shown."""
    shown = table(wire, "SHOW STATEMENTS")
    for r in shown:
        assert r["database"] == "app" or r["statement"] == "(others)", r
        times = [int(r[name]) for name in ("p50_us", "p95_us", "p99_us")]
        assert times == sorted(times) and int(r["total_us"]) >= int(r["calls"]) * int(r["mean_us"]), r
    totals = [int(r["total_us"]) for r in shown]
    assert totals == sorted(totals, reverse=True), shown
    return {r["statement"]: (int(r["calls"]), int(r["errors"]), int(r["rows"])) for r in shown}


@weir(only="postgres")
def what_each_statement_costs_is_shown(_context):
    with weir_of_toml("postgres") as w, console(w, database="weir") as wire, Wire(w.target()) as client, Wire(w.target()) as other:
        assert costs(wire) == {}
        for n in range(5):
            client.ask(f"select 'secret {n}' from generate_series(1, {n + 1})")
        for _ in range(2):
            other.ask("select 'other' from generate_series(1, 10)")
        client.ask("create table weir_costs (a int)")
        client.ask("insert into weir_costs values (1), (2), (3)")
        client.ask("begin")
        client.ask("update weir_costs set a = a + 1 where a > 1")
        client.ask("rollback")
        client.send(parse("select a from weir_costs where a > $1 -- secret", "s", [23]) + message(b"S"))
        client.until("Z")
        for at_least in (b"0", b"1", b"7"):
            client.send(bind([at_least], "s") + execute() + message(b"S"))
            client.until("Z")
        client.send(query("select 1 / 0"))
        client.until("Z")
        client.ask("drop table weir_costs")
        # These come before the first is answered: two of them have no row of their own.
        client.send(query("select 'together'") * 3)
        client.until("Z", 3)
        found = eventually(lambda: (found := costs(wire)) and "select ? / ?" in found and found, "they are shown")
        assert found["select ? from generate_series(?, ?)"] == (7, 0, 15 + 20), found
        assert found["insert into weir_costs values (?), (?), (?)"] == (1, 0, 3), found
        assert found["update weir_costs set a = a + ? where a > ?"] == (1, 0, 2), found
        assert found["select a from weir_costs where a > $1"][1:] == (0, 3 + 2), found
        assert found["select ? / ?"] == (1, 1, 0), found
        together = found.get("select ?", (0, 0, 0))
        assert together[0] + found["(others)"][0] == 3 and found["(others)"][0] >= 1, found
        assert not any("secret" in words for words in found)
        # BEGIN waits for the UPDATE, and is no request to a server.
        assert sum(calls for calls, _, _ in found.values()) == 20 and all(calls > 0 for calls, _, _ in found.values()), found
        # Who wants none has none.
        with Wire(w.target(user="boss", database="weir")) as boss:
            boss.ask('set "console.track_statements" = 0')
        client.ask("select 1")
        eventually(lambda: costs(wire) == {}, "they are gone")


@weir(only="mariadb")
def what_each_statement_costs_is_shown_by_mysqls_protocol(_context):
    with weir_of_toml("mariadb") as w:
        connect = lambda user, database: mywire.Wire(Target("mariadb", "x", "127.0.0.1", w.port, user, PASSWORD, database=database))
        with connect("boss", "weir") as boss, connect(DEFAULT_USER["mariadb"], "app") as client:
            for n in range(4):
                client.ask(f"select 'secret {n}' union select 2")
            client.ask("create table weir_costs (a int)")
            client.ask("insert into weir_costs values (1), (2), (3)")
            client.ask("update weir_costs set a = 9 where a > 1")
            statement = client.prepare("select a from weir_costs where a > ?")
            for at_least in (1, 2):
                client.command(mywire.STMT_EXECUTE, mywire.execute_payload(statement, [str(at_least)]))
                assert [what for what, _ in client.reply(mywire.STMT_EXECUTE)].count("row") == 2
            try:
                client.ask("select nothing from weir_costs")
            except mywire.MyError as e:
                assert e.code == 1054, e
            client.ask("drop table weir_costs")
            found = {}

            def shown():
                found.update({r[3]: (int(r[4]), int(r[5]), int(r[6])) for r in boss.ask("SHOW STATEMENTS")})
                return "drop table weir_costs" in found

            eventually(shown, "they are shown")
            assert found["select ? union select ?"] == (4, 0, 8), found
            assert found["insert into weir_costs values (?), (?), (?)"] == (1, 0, 3), found
            assert found["update weir_costs set a = ? where a > ?"] == (1, 0, 2), found
            assert found["select a from weir_costs where a > ?"] in ((2, 0, 4), (3, 0, 4)), found
            assert found["select nothing from weir_costs"] == (1, 1, 0), found
            assert not any("secret" in words for words in found)


@weir(only="postgres")
def pins_and_the_queue_are_shown(_context):
    with weir_of_toml("postgres") as w, console(w, database="weir") as wire, Wire(w.target()) as pinned, Wire(w.target()) as holder, \
            Wire(w.target()) as late:
        assert table(wire, "SHOW PINS") == []
        pinned.ask("create temporary table weir_console_t (a int)")
        shown = eventually(lambda: table(wire, "SHOW PINS"), "it is pinned")
        assert (shown[0]["reasons"], shown[0]["user"], shown[0]["state"]) == ("temporary_table", "app_scram", "idle"), shown
        assert shown[0]["statement"] == "create temporary table weir_console_t (a int)", shown
        assert shown[0]["id"] == str(pinned.pid) and shown[0]["server_pid"] == pinned.ask("select pg_backend_pid()")[0][0]
        holder.ask("begin")
        holder.ask("select 1")
        late.send(query("select 1"))
        queue = eventually(lambda: table(wire, "SHOW QUEUE"), "it waits")
        assert [r["id"] for r in queue] == [str(late.pid)]
        pools = table(wire, "SHOW POOLS")
        assert [(r["protocol"], r["cl_waiting"], r["sv_active"]) for r in pools] == [("postgres", "1", "2")], pools
        limits = {(r["name"], r["database"]): (r["used"], r["most"]) for r in table(wire, "SHOW LIMITS")}
        assert limits[("pool_size", "app")] == ("2", "2"), limits
        holder.ask("commit")
        late.until("Z")
        pinned.ask("discard all")
        eventually(lambda: not table(wire, "SHOW PINS"), "it is no longer pinned")


@weir(only="postgres")
def one_console_over_both_protocols(_context):
    try:
        mariadb = server_env("mariadb", "PORT")
    except KeyError:
        raise Skip("no MariaDB is up") from None
    mysql_port = free_port()
    text = TOML.format(password=PASSWORD, user="app_scram", url=f"postgres://127.0.0.1:{server_env('postgres', 'PORT')}")
    text += (f'[users.app]\npassword = "{PASSWORD}"\n[databases.shop]\nurl = "mysql://127.0.0.1:{mariadb}/app"\n'
             '[tls.server]\ntrust_unverified = true\n'
             f'[mysql]\nauth_type = "mysql_native_password"\nlisten = "127.0.0.1:{mysql_port}"\n')
    with Weir.configured("postgres", text) as w, Wire(w.target()) as pg, \
            mywire.Wire(Target("mariadb", "x", "127.0.0.1", mysql_port, "app", PASSWORD, database="shop")) as my, \
            mywire.Wire(Target("mariadb", "x", "127.0.0.1", mysql_port, "boss", PASSWORD, database="weir")) as boss, \
            console(w, database="weir") as wire:
        assert pg.ask("select 1") == [["1"]] and my.ask("select 1") == [["1"]]
        wanted = [("mysql", "shop"), ("postgres", "app")]
        assert sorted((r["protocol"], r["database"]) for r in table(wire, "SHOW POOLS")) == wanted
        assert sorted((r[0], r[1]) for r in boss.ask("SHOW POOLS")) == wanted
        assert {r["protocol"] for r in table(wire, "SHOW CLIENTS")} == {"mysql", "postgres"}
        with console(w) as theirs:
            assert [r["database"] for r in table(theirs, "SHOW POOLS")] == ["app", "pgbouncer"], "PgBouncer's shows PostgreSQL's"
        wire.ask("pause")
        assert [r[1] for r in boss.ask("SHOW STATE")] == ["no", "yes"]
        pg.send(query("select 'pg'"))
        my.send(my.packet(b"\x03select 'my'"))
        eventually(lambda: len(boss.ask("SHOW QUEUE")) == 2, "both wait")
        boss.ask("RESUME")
        assert ("D", b"\0\1\0\0\0\2pg") in pg.until("Z")
        eventually(lambda: wire.ask("SHOW QUEUE") == [], "nobody waits")


@weir(only="mariadb")
def the_same_console_by_mysqls_protocol(_context):
    connect = lambda w, user="boss", database="weir": pymysql.connect(
        host="127.0.0.1", port=w.port, user=user, password=PASSWORD, database=database, cursorclass=pymysql.cursors.DictCursor)

    def ask(connection, statement):
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    with weir_of_toml("mariadb") as w:
        client, boss, watcher = connect(w, DEFAULT_USER["mariadb"], "app"), connect(w), connect(w, "watcher")
        ask(client, "select 1")
        for what in ("POOLS", "CLIENTS", "SERVERS", "STATS", "LISTS", "CONFIG", "DATABASES", "USERS", "SOCKETS", "TOTALS", "MEM",
                     "STATE", "VERSION", "PINS", "QUEUE", "LIMITS", "HELP", "PEERS", "DNS_HOSTS", "ACTIVE_SOCKETS"):
            rows = ask(watcher, f"SHOW {what}")
            assert rows or what in ("PINS", "QUEUE", "PEERS", "DNS_HOSTS", "ACTIVE_SOCKETS"), what
        pool = ask(boss, "show pools")[0]
        assert (pool["protocol"], pool["database"], pool["cl_active"], pool["sv_idle"]) == ("mysql", "app", 1, 1), pool
        assert type(ask(boss, "show stats")[0]["total_query_count"]).__name__ == "Decimal"
        try:
            ask(watcher, "PAUSE")
            raise AssertionError("it was done")
        except pymysql.err.ProgrammingError as e:
            assert "admin access needed" in str(e), e
        ask(client, "select get_lock('weir_console', 1)")
        pins = eventually(lambda: ask(boss, "SHOW PINS"), "it is pinned")
        assert pins[0]["reasons"] == "session_lock", pins
        ask(client, "select release_lock('weir_console')")
        eventually(lambda: not ask(boss, "SHOW PINS"), "it is free")
        boss.ping(reconnect=False)
        boss.select_db("weir")
        ask(boss, "PAUSE app")
        done = []
        thread = threading.Thread(target=lambda: done.append(ask(client, "select 'late' as a")))
        thread.start()
        eventually(lambda: len(ask(boss, "SHOW QUEUE")) == 1, "it waits")
        ask(boss, "RESUME app")
        thread.join(30)
        assert done == [[{"a": "late"}]], done
        number = next(r["id"] for r in ask(boss, "SHOW CLIENTS") if r["database"] == "app")
        ask(boss, f"KILL_CLIENT {number}")
        try:
            ask(client, "select 1")
            raise AssertionError("it was ended")
        except pymysql.err.OperationalError:
            pass
        try:
            connect(w, DEFAULT_USER["mariadb"], "weir")
            raise AssertionError("it came in")
        except pymysql.err.OperationalError as e:
            assert "not allowed" in str(e), e
        program = server_env("mariadb", "CLIENT")
        said = subprocess.run([program, "-h127.0.0.1", f"-P{w.port}", "-uboss", f"-p{PASSWORD}", "--skip-ssl", "weir", "-e", "SHOW POOLS"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        assert said.returncode == 0 and "cl_active" in said.stdout and "app" in said.stdout, said.stdout
        boss.close()
        watcher.close()


@weir(only="postgres")
def programs_find_what_they_look_for(_context):
    with weir_of_ini() as w, Load(w, 4):
        where = dict(host="127.0.0.1", port=w.port, user="watcher", password=PASSWORD, dbname="pgbouncer")
        with psycopg.connect(**where, autocommit=True, row_factory=psycopg.rows.dict_row) as came:
            stats = came.execute("SHOW STATS").fetchall()
            app = next(r for r in stats if r["database"] == "app")
            assert app["total_query_count"] > 0 and app["total_received"] > 0 and app["avg_query_time"] >= 0, app
            assert {r["list"] for r in came.execute("SHOW LISTS")} > {"databases", "used_clients", "login_clients", "used_servers"}
            assert next(r for r in came.execute("SHOW POOLS;") if r["database"] == "app")["cl_active"] >= 1
            again = next(r for r in came.execute("SHOW STATS_TOTALS") if r["database"] == "app")
            assert again["query_count"] >= app["total_query_count"], "sums grow"
            assert came.info.parameter_status("server_version").endswith("/bouncer")
        said = subprocess.run(["psql", "-XAt", "-h", "127.0.0.1", "-p", str(w.port), "-U", "watcher", "pgbouncer", "-c", "SHOW POOLS"],
                              env={**os.environ, "PGPASSWORD": PASSWORD}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False)
        assert said.returncode == 0 and said.stdout.startswith("app|app_scram|"), said


# --- Nothing harms it ------------------------------------------------------------------------------------------------------------------------


@weir(only="postgres")
def nothing_that_is_said_harms_it(_context):
    with weir_of_ini() as w, Load(w, 2) as load:
        harmful = [b"", b"Q\0\0\0\3", b"Q\xff\xff\xff\xff", b"Q\0\0\0\4", b"\0" * 64, b"Q" + struct.pack("!i", 20_000) + b"x" * 100,
                   message(b"Q", b"show \xff\xfe pools"), message(b"Q", b"pause \"" + b"\"\"" * 400), message(b"Q", b"set " + b"=" * 4000),
                   message(b"Q", b"show\0pools"), message(b"d", b"x"), message(b"z"), message(b"Q", b"x" * 8000 + b"\0"),
                   (message(b"Q", b"show clients\0")) * 200, message(b"S") * 10, message(b"F", b"\0\0\0\1")]
        for data in harmful:
            wire = console(w)
            with contextlib.suppress(OSError):
                wire.send(data)
                wire.sock.shutdown(socket.SHUT_WR)
            wire.closed_by_peer()
            wire.close(politely=False)
        # Byte by byte.
        with console(w) as wire:
            wire.send(query("show state"), piece=1)
            assert wire.until("Z")
        load.all_have_asked()
        # There is an end of places.
        with contextlib.ExitStack() as stack:
            try:
                for _ in range(200):
                    stack.enter_context(console(w))
                raise AssertionError("there is no end")
            except LoginRefused as e:
                assert "no more connections allowed to the console" in str(e), e
        with contextlib.closing(eventually(lambda: retry(lambda: console(w)), "there is room again")) as wire:
            assert table(wire, "SHOW STATE")


def retry(what):
    try:
        return what()
    except LoginRefused:
        return None


@weir(only="postgres")
def a_long_list_comes_whole_and_holds_up_nobody(_context):
    with weir_of_ini(more="max_client_conn = 5000") as w, console(w) as wire:
        crowd = [Wire(w.target(), params={"application_name": f"crowd {n}"}) for n in range(1_500)]
        with Load(w, 2) as load:
            before = w.rss_kb()
            # Who does not read gets no more than any other client.
            deaf = [console(w) for _ in range(8)]
            for other in deaf:
                for _ in range(50):
                    other.send(query("show sockets"))
            for _ in range(3):
                shown = table(wire, "SHOW CLIENTS")
                assert {f"crowd {n}" for n in range(1_500)} <= {r["application_name"] for r in shown}
                load.all_have_asked()
            grown = w.rss_kb() - before
            assert grown < 200_000, f"{grown} kB more"
            for other in deaf:
                other.vanish()
        for client in crowd:
            client.vanish()
        eventually(lambda: len(table(wire, "SHOW CLIENTS")) == 1, "all have gone")


@weir(only="mariadb")
def nothing_that_is_said_by_mysqls_protocol_harms_it(_context):
    with weir_of_toml("mariadb") as w:
        target = Target("mariadb", "x", "127.0.0.1", w.port, "boss", PASSWORD, database="weir")
        for data in (b"", b"\x03", b"\x03\xff\xfe", b"\x03" + b"x" * 9000, b"\x16show pools", b"\x02mysql", b"\x04t\0", b"\x11boss\0",
                     b"\x1b\0\0", b"\x0e", b"\x1f", b"\xff", b"\x19\1\0\0\0", b"\x03show help"):
            wire = mywire.Wire(target)
            with contextlib.suppress(OSError, mywire.Closed, mywire.MyError):
                wire.send(wire.frame(data, 0)[0])
                wire.seq = 1
                wire.sock.shutdown(socket.SHUT_WR)
                while True:
                    wire.read()
            wire.close(politely=False)
        wire = mywire.Wire(target)
        assert wire.ask("show state")
        wire.close()
