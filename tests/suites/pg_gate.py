"""Who may come in: users that only the database knows (auth_query), their passwords as they change there, SCRAM passed through to the
server, HBA files; and the same logins at the real PgBouncer, where it is at hand."""

import contextlib
import functools
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading

import psycopg

from weirtest.case import Skip, eventually, weir
from weirtest.certs import certificates
from weirtest.pgwire import Wire, message, startup, text
from weirtest.private import PrivateServer
from weirtest.target import PASSWORD
from weirtest.weir import Weir, free_port

SERVERS = ["postgres"]

# Users of the database, and what it stores for each.
USERS = {
    "gate_scram": "login password 'right'",
    "gate_md5": "login password 'right'",
    "gate_over": "login password 'right' valid until '2001-01-01'",
    "gate_still": "login password 'right' valid until 'infinity'",
    "gate_none": "login",
    "gate_nologin": "nologin password 'right'",
}
TABLE = [(user, password) for user in (*USERS, "gate_nobody") for password in ("right", "wrong")]


@functools.cache
def server():
    found = PrivateServer("postgres")
    with Wire(found.superuser()) as admin:
        admin.ask(f"create role asker login password '{PASSWORD}'")
        for name, options in USERS.items():
            admin.ask("set password_encryption = " + ("md5" if name.endswith("md5") else "'scram-sha-256'"))
            admin.ask(f"create role {name} {options}")
        lookup = ("create function lookup(name text) returns table (u name, p text, until timestamptz) language sql security definer as "
                  "$$ select rolname, rolpassword, rolvaliduntil from pg_authid where rolname = $1 and rolcanlogin $$;"
                  "revoke execute on function lookup(text) from public; grant execute on function lookup(text) to asker")
        admin.ask(lookup)
        with Wire(found.superuser().within("postgres")) as other:
            other.ask(lookup)
        admin.ask("create function seen() returns bigint language sql as "
                  "$$ select calls::bigint from pg_stat_user_functions where funcname = 'lookup' $$")
        data = admin.ask("show data_directory")[0][0]
    with open(os.path.join(data, "pg_hba.conf"), "r+", encoding="utf-8") as f:
        before = f.read()
        f.seek(0)
        f.write("host all gate_md5 127.0.0.1/32 md5\n")
        f.write(before)
    with Wire(found.superuser()) as admin:
        admin.ask("alter system set track_functions = 'all'")
        admin.ask("select pg_reload_conf()")
    return found


def toml(more="", database="", auth="scram-sha-256", query="select * from lookup($1)"):
    asks = f'auth_query = "{query}"\n' if query else ""
    return (f'[postgres]\nauth_type = "{auth}"\nauth_user = "asker"\n{asks}{more}'
            f'[users.asker]\npassword = "{PASSWORD}"\n'
            f'[databases.app]\nurl = "postgres://127.0.0.1:{server().port}/app"\n{database}')


def came_in(port, user, password, database="app", host="127.0.0.1", **more):
    """What became of a login: "in", or the words of the refusal."""
    try:
        with psycopg.connect(host=host, port=port, user=user, password=password, dbname=database, connect_timeout=20,
                             **{"sslmode": "disable", **more}) as c:
            assert c.execute("select current_user").fetchone()[0]
            return "in"
    except psycopg.OperationalError as e:
        return next((line.split("FATAL:  ")[1] for line in str(e).splitlines() if "FATAL:  " in line), str(e))


def verdicts(port, **more):
    return {case: "in" if came_in(port, *case, **more) == "in" else "refused" for case in TABLE}


@weir
def users_that_only_the_database_knows(_context):
    """As direct, by each method; and Weir logs in to the server with what the client has proved."""
    for auth, who in (("scram-sha-256", ("gate_scram", "gate_still")), ("md5", ("gate_scram", "gate_md5", "gate_still")),
                      ("plain", ("gate_scram", "gate_md5", "gate_still"))):
        with Weir.configured("postgres", toml(auth=auth)) as w:
            seen = verdicts(w.port)
            wanted = {(user, password): "in" if user in who and password == "right" else "refused" for user, password in TABLE}
            assert seen == wanted, (auth, {case: (seen[case], wanted[case]) for case in TABLE if seen[case] != wanted[case]}, w.log()[-3000:])


@weir
def a_password_changed_in_the_database_holds_at_once(_context):
    with Weir.configured("postgres", toml()) as w, Wire(server().superuser()) as admin:
        admin.ask("create role gate_change login password 'one'")
        try:
            assert came_in(w.port, "gate_change", "one") == "in"
            with psycopg.connect(host="127.0.0.1", port=w.port, user="gate_change", password="one", dbname="app", sslmode="disable") as stays:
                stays.autocommit = True
                assert stays.execute("select 1").fetchone() == (1,)
                for number in range(3):
                    admin.ask(f"alter role gate_change password 'new{number}'")
                    assert "password authentication failed" in came_in(w.port, "gate_change", "one")
                    assert came_in(w.port, "gate_change", f"new{number}") == "in", w.log()[-2000:]
                admin.ask("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'gate_change'")
                # New servers log in with the newest password.
                eventually(lambda: came_in(w.port, "gate_change", "new2") == "in", "a new server is there")
            admin.ask("alter role gate_change valid until '2001-01-01'")
            assert came_in(w.port, "gate_change", "new2") != "in"
            admin.ask("alter role gate_change valid until 'infinity' nologin")
            assert came_in(w.port, "gate_change", "new2") != "in"
            admin.ask("alter role gate_change login")
            assert came_in(w.port, "gate_change", "new2") == "in"
        finally:
            admin.ask("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'gate_change'")
            admin.ask("drop role gate_change")


@weir
def a_storm_of_logins_shares_its_questions(_context):
    with Weir.configured("postgres", toml('auth_query_cache_ttl = 600\n')) as w, Wire(server().superuser()) as admin:
        def asked():
            admin.ask("select pg_stat_clear_snapshot()")
            return int(admin.ask("select coalesce((select seen()), 0)")[0][0])

        assert came_in(w.port, "gate_scram", "right") == "in"
        # The database counts when the session that asked is idle; then nothing more may come.
        eventually(lambda: asked() > 0, "the question was counted")
        results = []
        threads = [threading.Thread(target=lambda: results.append(came_in(w.port, "gate_scram", "right"))) for _ in range(20)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert results == ["in"] * 20, results
        # One wrong password asks again, at the next login.
        before = asked()
        assert came_in(w.port, "gate_scram", "wrong") != "in"
        eventually(lambda: came_in(w.port, "gate_scram", "right") == "in" and asked() > before, "it was asked again")


class Asked(Wire):
    """What a stranger is asked for, up to the verdict."""

    def __init__(self, target, user, database="app"):
        super().__init__(target, login=False)
        self.send(startup({"user": user, "database": database}))
        kind, payload = self.read()
        assert kind == "R", (kind, payload)
        self.method = struct.unpack("!i", payload[:4])[0]
        self.salt = None
        if self.method == 10:
            first = b"n,,n=,r=abcdefghijklmnop"
            self.send(message(b"p", text("SCRAM-SHA-256") + struct.pack("!i", len(first)) + first))
            _, payload = self.read()
            said = dict(part.split(b"=", 1) for part in payload[4:].split(b","))
            self.salt, self.rounds = said[b"s"], said[b"i"]


@weir
def a_name_that_does_not_exist_is_asked_like_one_that_does(_context):
    for auth in ("scram-sha-256", "md5"):
        with Weir.configured("postgres", toml(auth=auth)) as w:
            def of(user, database="app"):
                with Asked(w.target(), user, database) as asked:
                    return asked.method, asked.salt, asked.salt and (len(asked.salt), asked.rounds)

            known = of("gate_scram")
            for user in ("gate_nobody", "gate_none", "gate_over", "gate_nologin"):
                method, salt, form = of(user)
                assert (method, form) == (known[0], known[2]), (auth, user, method, form, known)
                assert of(user)[1] == salt != known[1], (auth, user)
            assert of("gate_nobody", "no_such_database")[0] == known[0]


@weir
def what_a_client_chose_does_not_reach_the_question(_context):
    """CVE-2025-12819: not even a search_path in its startup packet."""
    with Weir.configured("postgres", toml(query="select * from lookup($1)")) as w, Wire(server().superuser()) as admin:
        admin.ask("create schema gate_evil; create function gate_evil.lookup(name text) returns table (u name, p text) language sql as "
                  "$$ select name::name, 'mine' $$; grant usage on schema gate_evil to public")
        try:
            more = {"options": "-c search_path=gate_evil,public"}
            assert came_in(w.port, "gate_scram", "mine", **more) != "in"
            assert came_in(w.port, "gate_scram", "right", **more) == "in"
            for name in ("'; drop role gate_scram; --", "$1", "a\\b", "ü", "x" * 63):
                assert "password authentication failed" in came_in(w.port, name, "right"), name
        finally:
            admin.ask("drop schema gate_evil cascade")


@weir
def where_and_as_whom_it_asks(_context):
    port = server().port
    forced = (f'[databases.forced]\nurl = "postgres://app_scram:{PASSWORD}@127.0.0.1:{port}/app"\n'
              f'[databases.own]\nurl = "postgres://127.0.0.1:{port}/app"\nauth_query = "select $1, \'apple\'"\n'
              f'[databases."*"]\nurl = "postgres://127.0.0.1:{port}"\nauth_dbname = "app"\n')
    with Weir.configured("postgres", toml(database=forced, query="")) as w, Wire(server().superuser()) as admin:
        # The default reads pg_authid itself.
        assert came_in(w.port, "gate_scram", "right") != "in"
        eventually(lambda: "auth_query failed" in w.log() and "permission denied" in w.log(), "the operator is told")
        admin.ask("alter role asker superuser")
        try:
            for database in ("app", "forced", "postgres"):
                assert came_in(w.port, "gate_scram", "right", database) == "in", (database, w.log()[-2000:])
                assert came_in(w.port, "gate_over", "right", database) != "in"
            assert came_in(w.port, "gate_scram", "right", "own") != "in", "this database has its own query"
            with psycopg.connect(host="127.0.0.1", port=w.port, user="gate_scram", password="right", dbname="forced", sslmode="disable") as c:
                assert c.execute("select current_user").fetchone() == ("app_scram",)
            with psycopg.connect(host="127.0.0.1", port=w.port, user="gate_scram", password="right", dbname="app", sslmode="disable") as c:
                assert c.execute("select current_user").fetchone() == ("gate_scram",)
            assert "no database" in came_in(w.port, "gate_scram", "right", "nix") or "does not exist" in came_in(w.port, "gate_scram", "right", "nix")
        finally:
            admin.ask("alter role asker nosuperuser")


@weir
def a_query_that_does_not_fit_is_told_to_the_operator_only(_context):
    for query, words in (("select 1", "must have one parameter"), ("select $1::text", "must return 2 or 3 columns"),
                         ("select $1::text, 'x', 1", "third column must be"), ("selec $1", "syntax error"),
                         ("select $1::text, 'x' from generate_series(1, 2)", "several rows"),
                         ("select $1::text, (1/0)::text", "division by zero")):
        with Weir.configured("postgres", toml(query=query)) as w:
            seen = came_in(w.port, "gate_scram", "right")
            assert seen != "in" and words not in seen, (query, seen)
            eventually(lambda: words in w.log(), f"{words} is in the log")
    with Weir.configured("postgres", toml().replace(PASSWORD, "wrong-one")) as w:
        assert came_in(w.port, "gate_scram", "right") != "in"
        log = eventually(lambda: (log := w.log()) and "auth_query failed" in log and log, "the operator is told")
        assert "wrong-one" not in log


@weir
def a_query_that_answers_for_somebody_else_lets_nobody_in(_context):
    with Weir.configured("postgres", toml(query="select u, p, until from lookup('gate_scram') where $1::text <> ''")) as w:
        for user in ("gate_nobody", "gate_md5", "gate_still"):
            assert "password authentication failed" in came_in(w.port, user, "right"), user
        assert came_in(w.port, "gate_scram", "right") == "in"


@weir
def it_goes_on_when_the_database_is_back(_context):
    private = PrivateServerOfThisTest()
    with Weir.configured("postgres", private.toml()) as w:
        assert came_in(w.port, "gate_late", "right") == "in", w.log()[-2000:]
        private.found.restart()
        with Weir.configured("postgres", private.toml()) as fresh:
            assert came_in(fresh.port, "gate_late", "right") == "in"
        assert came_in(w.port, "gate_late", "right") == "in", w.log()[-2000:]


class PrivateServerOfThisTest:
    """The suite's own: it is there anyway, and nothing else runs now."""

    def __init__(self):
        self.found = server()
        with Wire(self.found.superuser()) as admin:
            admin.ask("drop role if exists gate_late; create role gate_late login password 'right'")

    def toml(self):
        return toml()


# --- HBA files -----------------------------------------------------------------------------------------------------


HBA = """# comment
local   all         all                             md5
host    all         gate_md5    127.0.0.1/32        md5
host    all         gate_scram  127.0.0.1 255.255.255.255  scram-sha-256
host    other,app   asker       127.0.0.1/32        password
host    all         "gate_still" 127.0.0.2/32       trust
host    sameuser    all         127.0.0.1/32        trust
hostssl all         gate_over   0.0.0.0/0           trust
host    all         gate_none   0.0.0.0/0           reject
host    all         all         0.0.0.0/0           scram-sha-256
"""


def hba_cases():
    for user, password in (*TABLE, ("asker", PASSWORD), ("asker", "wrong")):
        for database in ("app", "postgres", "gate_scram"):
            yield user, password, database


def ini(directory, port, hba, listen):
    """One file for both programs."""
    def write(name, content):
        path = os.path.join(directory, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(content)
        return path

    users = write("users.txt", f'"asker" "{PASSWORD}"\n')
    rules = write("hba.conf", hba)
    at = server().port
    return write("pgbouncer.ini", f"""[databases]
app = host=127.0.0.1 port={at} dbname=app
* = host=127.0.0.1 port={at}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = hba
auth_hba_file = {rules}
auth_file = {users}
auth_user = asker
auth_query = select u, case when until < now() then null else p end from lookup($1)
pool_mode = transaction
{listen}
""")


def pgbouncer_program():
    newest = os.environ.get("WEIR_TEST_NEWEST", "")
    for path in (f"{newest}/root/usr/sbin/pgbouncer", "/usr/sbin/pgbouncer"):
        if os.access(path, os.X_OK):
            return path
    raise Skip("pgbouncer is not installed")


@contextlib.contextmanager
def folder():
    directory = tempfile.mkdtemp(prefix="weir-gate-", dir="/tmp")
    os.chmod(directory, 0o777)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def pgbouncer(directory, hba):
    port = free_port()
    path = ini(directory, port, hba, f"logfile = {directory}/pgbouncer.log\npidfile =")
    argv = [pgbouncer_program(), "-u", "nobody", path] if os.geteuid() == 0 else [pgbouncer_program(), path]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def listens():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", port)) == 0

        eventually(listens, "pgbouncer listens")
        yield port
    finally:
        process.kill()
        process.wait()


@weir
def who_comes_in_is_who_comes_in_at_pgbouncer(_context):
    """The same ini, users, HBA file and auth_query before both: users, passwords and databases against each other."""
    with folder() as directory:
        with pgbouncer(directory, HBA) as port:
            theirs = {case: came_in(port, *case) for case in hba_cases()}
        with running(directory, HBA) as w:
            ours = {case: came_in(w.port, *case) for case in hba_cases()}
            log = w.log()
    differ = {case: (theirs[case], ours[case]) for case in theirs if (theirs[case] == "in") != (ours[case] == "in")}
    assert not differ, (differ, log[-4000:])
    assert sum(seen == "in" for seen in ours.values()) >= 8, ours


@contextlib.contextmanager
def running(directory, hba):
    """Weir by the same ini."""
    port = free_port()
    with Weir("postgres", ["--config", ini(directory, port, hba, "")], name="hba") as w:
        yield w


def hba_toml(directory, hba, more=""):
    path = os.path.join(directory, "hba.conf")
    with open(path, "w", encoding="utf-8") as f:
        f.write(hba)
    return toml(more=f'auth_hba_file = "{path}"\n{more}', auth="hba"), path


@weir
def an_hba_line_decides_by_address_and_tls(_context):
    own, _ = certificates()
    tls = (f'[tls.client]\nsslmode = "allow"\nca_file = "{own.path("ca.pem")}"\ncert_file = "{own.path("server.pem")}"\n'
           f'key_file = "{own.path("server.key")}"\n')
    lines = ("hostssl all gate_scram 127.0.0.0/8 scram-sha-256\nhostssl all gate_md5 all md5 clientcert=verify-ca\n"
             "hostnossl all gate_still samehost scram-sha-256\nhost all /^gate_(over|none)$ all reject\n")
    with folder() as directory:
        content, path = hba_toml(directory, lines)
        with Weir.configured("postgres", content + tls) as w:
            shows = {"sslcert": own.path("client.pem"), "sslkey": own.path("client.key")}
            for user, more, wanted in (("gate_scram", {"sslmode": "require"}, "in"), ("gate_scram", {}, "login rejected"),
                                       ("gate_md5", {"sslmode": "require"}, "login rejected"),
                                       ("gate_md5", {"sslmode": "require", **shows}, "in"),
                                       ("gate_still", {}, "in"), ("gate_still", {"sslmode": "require"}, "login rejected"),
                                       ("gate_over", {}, "login rejected"), ("nobody", {}, "login rejected")):
                seen = came_in(w.port, user, "right", **more)
                assert seen == wanted, (user, more, seen, w.log()[-2000:])
            log = eventually(lambda: (log := w.log()) and f"{path}:4" in log and log, "the line is named in the log")
            assert "no line of auth_hba_file fits" in log
            # A reload reads it anew; one that cannot be kept changes nothing.
            with open(path, "w", encoding="utf-8") as f:
                f.write("host all gate_scram all ldap\n")
            w.signal(signal.SIGHUP)
            eventually(lambda: f"{path}:1" in w.log() and "ldap" in w.log(), "the reload is refused by line")
            assert came_in(w.port, "gate_still", "right") == "in"
            with open(path, "w", encoding="utf-8") as f:
                f.write("host all gate_scram all scram-sha-256\n")
            w.signal(signal.SIGHUP)
            eventually(lambda: came_in(w.port, "gate_still", "right") == "login rejected", "the new lines hold")
            assert came_in(w.port, "gate_scram", "right") == "in"


@weir
def local_lines_and_ident_maps(_context):
    """The account of this machine, by the map that a line names: for a user that is listed and for one that only the database knows."""
    account = pwd.getpwuid(os.geteuid()).pw_name
    forced = f'[databases.forced]\nurl = "postgres://app_scram:{PASSWORD}@127.0.0.1:{server().port}/app"\n'
    with folder() as directory:
        idents = os.path.join(directory, "ident.conf")
        with open(idents, "w", encoding="utf-8") as f:
            f.write(f"ops {account} asker\nops {account} gate_scram\nother nobody-here gate_still\n")
        lines = ("local all gate_md5 md5\nlocal all gate_still peer map=other\nlocal forced all peer map=ops\n"
                 "host all all all scram-sha-256\n")
        content, _ = hba_toml(directory, lines, f'auth_ident_file = "{idents}"\n')
        socket_directory = os.path.join(directory, "run")
        os.mkdir(socket_directory)
        with Weir.configured("postgres", content + forced, also=[f"{socket_directory}:6432"]) as w:
            for user, password, database, wanted in (
                    ("asker", "", "forced", "in"), ("gate_scram", "", "forced", "in"),
                    ("gate_over", "", "forced", "peer authentication failed"), ("gate_nobody", "", "forced", "peer authentication failed"),
                    ("gate_still", "right", "forced", "peer authentication failed"), ("gate_md5", "right", "forced", "in"),
                    ("gate_md5", "wrong", "forced", "password authentication failed"), ("asker", "", "app", "login rejected")):
                seen = came_in(6432, user, password, database, host=socket_directory)
                assert seen == wanted, (user, database, seen, w.log()[-2000:])
            assert came_in(w.port, "gate_scram", "right") == "in"


@weir
def a_file_that_cannot_be_kept_does_not_start(_context):
    with folder() as directory:
        content, path = hba_toml(directory, "local all all trust\n\nhost all all all radius\n")
        try:
            with Weir.configured("postgres", content):
                raise AssertionError("it started")
        except RuntimeError as e:
            assert f"{path}:3:1: method `radius`: not supported yet; use scram-sha-256" in str(e), e


@weir
def who_tries_passwords_over_many_connections_waits_in_a_row(_context):
    """And whoever knows his password comes in meanwhile."""
    with Weir.configured("postgres", "workers = 1\n" + toml()) as w:
        refused = []
        threads = [threading.Thread(target=lambda: refused.append(came_in(w.port, "gate_md5", "wrong"))) for _ in range(30)]
        for t in threads:
            t.start()
        eventually(lambda: w.metric("weir_client_refusals_held_total", protocol="postgres") >= 20, "refusals are held back")
        assert came_in(w.port, "gate_scram", "right") == "in"
        assert len(refused) < 30, "all were refused before somebody came in"
        for t in threads:
            t.join()
        assert refused == ["password authentication failed"] * 30, refused
