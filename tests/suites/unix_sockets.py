"""Unix sockets in front: permissions and group, abstract names, who is at the other end (peer, auth_socket), ident maps, and the fast
set-up of the manual, run as it is written there."""

import grp
import os
import pwd
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

import psycopg
import pymysql

from weirtest.case import eventually, weir
from weirtest.certs import certificates
from weirtest.private import PrivateServer
from weirtest.target import DEFAULT_USER, PASSWORD
from weirtest.weir import ROOT, Weir, binary, url

SERVERS = ["postgres", "mariadb", "mysql"]


class Socket:
    """Weir that also listens on a Unix socket: in a directory of its own, or under an abstract name."""

    def __init__(self, context, *settings, abstract=False, auth=None, text=None, urls=None, users=()):
        self.kind = kind = context.kind
        self.section = "postgres" if kind == "postgres" else "mysql"
        self.directory = tempfile.mkdtemp(prefix="weir-unix-", dir="/tmp")
        os.chmod(self.directory, 0o755)
        name = os.path.basename(self.directory)
        if kind == "postgres":
            self.listen = f"@{name}:6432" if abstract else f"{self.directory}:6432"
            self.host = f"@{name}" if abstract else self.directory
            self.file = os.path.join(self.directory, ".s.PGSQL.6432")
        else:
            self.listen = self.file = f"@{name}" if abstract else os.path.join(self.directory, "my.sock")
        native = ["mysql.auth_type=mysql_native_password"] if kind == "mariadb" else []
        options = [word.replace("DIR", self.directory) for word in urls or [url(kind, database="app")]]
        for setting in (*native, *([f"{self.section}.auth_type={auth}"] if auth else []), *settings):
            options += ["--set", setting.replace("DIR", self.directory)]
        for path, content in (text or {}).items():
            with open(os.path.join(self.directory, path), "w", encoding="utf-8") as f:
                f.write(content)
        self.weir = Weir(kind, options, name="unix", also=[self.listen])

    def login(self, user, password="", as_user=None):
        """What became of it; `as_user`: the account of this machine that comes."""
        program = """
import os, sys
import psycopg, pymysql
kind, user, password, where, account = sys.argv[1:]
if account:
    os.setuid(int(account))
try:
    if kind == "postgres":
        # psycopg itself would look an abstract name up; libpq knows it.
        c = psycopg.pq.PGconn.connect(f"host='{where}' port=6432 user='{user}' password='{password}' dbname=app connect_timeout=20".encode())
        print("in " + c.exec_(b"select 1").get_value(0, 0).decode() if c.status == psycopg.pq.ConnStatus.OK else c.error_message.decode())
    else:
        where = "\\0" + where[1:] if where[0] == "@" else where
        c = pymysql.connect(unix_socket=where, user=user, password=password, database="app")
        cursor = c.cursor(); cursor.execute("select 1"); print("in", cursor.fetchone()[0])
except Exception as e:
    print(e)
"""
        where = self.host if self.kind == "postgres" else self.file
        account = str(pwd.getpwnam(as_user).pw_uid) if as_user else ""
        argv = [sys.executable, "-c", program, self.kind, user, password, where, account]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
        return done.stdout.decode(errors="replace").strip()

    def __enter__(self):
        self.weir.__enter__()
        return self

    def __exit__(self, *what):
        try:
            self.weir.__exit__(*what)
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)


def me():
    return pwd.getpwuid(os.geteuid()).pw_name


@weir
def permissions_and_group(context):
    other = next((g for g in grp.getgrall() if g.gr_gid != os.getegid() and os.geteuid() == 0), None)
    settings = ["socket.unix_socket_mode=0660", *([f"socket.unix_socket_group={other.gr_name}"] if other else [])]
    with Socket(context, *settings) as s:
        found = os.stat(s.file)
        assert stat.S_IMODE(found.st_mode) == 0o660, oct(found.st_mode)
        assert other is None or found.st_gid == other.gr_gid
        assert s.login(DEFAULT_USER[context.kind], PASSWORD) == "in 1"


@weir
def abstract_names(context):
    with Socket(context, abstract=True) as s:
        assert not os.path.exists(s.file)
        said = s.login(DEFAULT_USER[context.kind], PASSWORD)
        assert said == "in 1", said
        assert "in" != s.login(DEFAULT_USER[context.kind], "wrong")[:2]


@weir
def who_is_at_the_other_end(context):
    with Configured(context) as s:
        assert s.login(me()) == "in 1"
        refused = "peer authentication failed" if context.kind == "postgres" else "Access denied"
        assert refused in s.login("other", "x")
        assert refused in s.login("nobody-at-all", "x")
        if os.geteuid() == 0:
            said = s.login(me(), as_user="nobody")
            assert not said.startswith("in"), said
        # By TCP nobody vouches for anybody.
        if context.kind == "postgres":
            try:
                psycopg.connect(host="127.0.0.1", port=s.weir.port, user=me(), password="never asked for", dbname="app", connect_timeout=20)
                raise AssertionError("let in by TCP")
            except psycopg.OperationalError as e:
                assert refused in str(e), e
        else:
            try:
                pymysql.connect(host="127.0.0.1", port=s.weir.port, user=me(), password="never asked for", database="app")
                raise AssertionError("let in by TCP")
            except pymysql.Error as e:
                assert refused in str(e), e


@weir(only="postgres")
def a_map_says_who_may_be_whom(context):
    settings = ["postgres.auth_ident_file=DIR/ident.conf", "postgres.auth_ident_map=ops"]
    with Configured(context, *settings, files={"ident.conf": f"ops {me()} other\n"}) as s:
        assert s.login("other") == "in 1"
        assert "peer authentication failed" in s.login(me())
        # A reload reads the map again.
        with open(os.path.join(s.directory, "ident.conf"), "w", encoding="utf-8") as f:
            f.write(f"ops {me()} all\n")
        s.weir.signal(signal.SIGHUP)
        eventually(lambda: s.login(me()) == "in 1", "the new map holds")


class Configured(Socket):
    """By a file: this account and another one are users; nobody is asked for a password."""

    def __init__(self, context, *settings, files=None):
        kind = context.kind
        text = (f'[databases.app]\nurl = "{url(kind, database="app")}"\n[users.{me()}]\npassword = "never asked for"\n'
                '[users.other]\npassword = "x"\n')
        super().__init__(context, *settings, auth="peer" if kind == "postgres" else "auth_socket", text={"weir.toml": text, **(files or {})},
                         urls=["--config", "DIR/weir.toml"])


@weir(only="postgres")
def certificates_by_a_map(context):
    """auth_type = cert: the common name is that of a person, the user that of an application."""
    own = certificates()[0]
    options = [url("postgres", database="app") + "?sslmode=disable"]
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
        f.write("people user nobody\n# the certificate of user.pem\npeople " + common_name(own.path("client.pem")) + " app_scram\n")
        f.flush()
        for setting in ("postgres.auth_type=cert", f"postgres.auth_ident_file={f.name}", "postgres.auth_ident_map=people", "tls.client.sslmode=require",
                        f"tls.client.ca_file={own.path('ca.pem')}"):
            options += ["--set", setting]
        with Weir("postgres", options, name="map") as w:
            def login(name):
                try:
                    with psycopg.connect(host="127.0.0.1", port=w.port, user="app_scram", dbname="app", sslmode="require", connect_timeout=20,
                                         sslcert=own.path(f"{name}.pem"), sslkey=own.path(f"{name}.key")) as c:
                        return c.execute("select 1").fetchone()
                except psycopg.OperationalError as e:
                    return str(e)

            assert login("client") == (1,)
            assert "certificate authentication failed" in login("user"), "the user's own name is not in the map"


def common_name(path):
    out = subprocess.run(["openssl", "x509", "-in", path, "-noout", "-subject", "-nameopt", "multiline"], check=True, capture_output=True, text=True).stdout
    return '"' + re.search(r"commonName\s*= (.*)", out)[1] + '"'


@weir
def the_fast_set_up_as_the_manual_has_it(context):
    """One line: a Unix socket in front, TLS that verifies behind. Only the database's address, the password and the directory are put in."""
    own = certificates()[0]
    kind = context.kind
    with open(os.path.join(ROOT, "docs/src/tls.md"), encoding="utf-8") as f:
        scheme = "postgres" if kind == "postgres" else "mysql"
        line = re.search(rf"^weir serve '{scheme}://.*--listen.*$", f.read(), re.MULTILINE)[0]
    server = PrivateServer(kind, tls=own.folder)
    user = DEFAULT_USER[kind]
    directory = tempfile.mkdtemp(prefix="weir-fast-", dir="/tmp")
    try:
        argv = shlex.split(line.replace("app:${APP_PASSWORD}@db.example.com", f"{user}:${{APP_PASSWORD}}@localhost:{server.port}").replace("/run/weir", directory))
        assert any("verify-full" in word or "VERIFY_IDENTITY" in word for word in argv), argv
        log = open(os.path.join(directory, "log"), "wb")
        process = subprocess.Popen([binary(), *argv[1:]], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   env={**os.environ, "SSL_CERT_FILE": own.path("ca.pem"), "APP_PASSWORD": PASSWORD})
        try:
            def said():
                with open(log.name, encoding="utf-8", errors="replace") as f:
                    return f.read()

            eventually(lambda: "listens on" in said() and directory in said(), "it listens")
            if kind == "postgres":
                with psycopg.connect(host=directory, port=6432, user=user, password=PASSWORD, dbname="app", connect_timeout=20) as c:
                    assert c.execute("select ssl from pg_stat_ssl where pid = pg_backend_pid()").fetchone() == (True,)
            else:
                with pymysql.connect(unix_socket=argv[-1], user=user, password=PASSWORD, database="app") as c, c.cursor() as cursor:
                    cursor.execute("show status where variable_name = concat('Ss', 'l_ciph', 'er')")
                    assert cursor.fetchone()[1]
        finally:
            process.terminate()
            assert process.wait(60) == 0, said()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
