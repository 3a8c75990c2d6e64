"""One Weir before all databases: their processes, and how each is reached.

Owns: starting and ending them. Must not know: what is asked of them, when something fails, and why.
"""

import atexit
import contextlib
import os
import resource
import shutil
import signal
import time

from weirtest import ordeal
from weirtest.case import eventually
from weirtest.private import PrivateServer
from weirtest.weir import ROOT, Weir, free_port
from weirtorture import my, pg
from weirtorture.words import DEADLINE_S, Lost, Refused

PASSWORD = "weir-secret"
DATABASES = ("postgres", "mariadb", "mysql")
POOL = 8


class Database:
    """One server, and the name by which clients of Weir ask for it: each has another, so that one Weir can stand before all."""

    def __init__(self, kind):
        self.kind, self.dialect = kind, pg if kind == "postgres" else my
        self.name = {"postgres": "app", "mariadb": "maria", "mysql": "my"}[kind]
        # Its directory is named after this, and goes when the server has been taken down, which makes it anew.
        ordeal.name_suite("soak", kind)
        atexit.register(shutil.rmtree, os.path.join(ROOT, f"target/servers-soak-{kind}-{os.getpid()}"), ignore_errors=True)
        self.server = PrivateServer(kind, max_connections=100)
        self.process = int(self.server.env["PID"])
        if kind != "postgres":
            with self.asking() as session:
                session.ask(f"create database {self.name}")

    @contextlib.contextmanager
    def asking(self):
        """The database itself; raises Lost and Refused."""
        session = self.dialect.monitor(self.server.port)
        try:
            yield session
        finally:
            session.close()

    def url(self, port=None, more=""):
        """By Weir's port, or the database's own."""
        scheme = "postgres" if self.kind == "postgres" else "mysql"
        return f"{scheme}://{self.dialect.USER}:{PASSWORD}@127.0.0.1:{port or self.server.port}/{self.name}{more}"

    def signal(self, sig):
        ordeal.signal_family(int(self.server.env["PID"]), sig)

    def restart(self, crash):
        """Until it answers again: a server refuses its own old port now and then when it is started at once."""
        self.server.stop(crash)

        def is_back():
            try:
                self.server.start()
                with self.asking() as session:
                    session.ask("select 1")
            except (RuntimeError, Lost, Refused):
                return False
            return True

        eventually(is_back, f"{self.kind} is back", DEADLINE_S, 0.5)


class Ground:
    """`with Ground(kinds) as ground:`. `skipped`: the databases that are not installed."""

    def __init__(self, kinds):
        ordeal.adopt_orphans()
        ordeal.tidy_after_others("soak")
        self.databases, self.skipped = [], []
        for kind in kinds:
            try:
                self.databases.append(Database(kind))
            except RuntimeError as e:
                if "NOT AVAILABLE" not in str(e):
                    raise
                self.skipped.append(kind)
        self.mysql_port = free_port()
        self.toml = os.path.join(ROOT, f"target/suites/soak-{os.getpid()}.toml")
        os.makedirs(os.path.dirname(self.toml), exist_ok=True)
        self.configure(POOL)
        os.environ["WEIR_SUITE"] = "soak"
        self.weir = Weir("postgres", ["--config", self.toml, "--set", f"mysql.listen=127.0.0.1:{self.mysql_port}", "--set",
                                      "tls.server.trust_unverified=true"], name="soak", plain=False)
        self.began = time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for database in self.databases:
            database.signal(signal.SIGCONT)
        self.weir.signal(signal.SIGCONT)
        self.weir.kill()
        for database in self.databases:
            database.server.tool("down")
        os.remove(self.toml)

    def configure(self, pool):
        lines = []
        for d in self.databases:
            scheme = "postgres" if d.kind == "postgres" else "mysql"
            lines += [f"[databases.{d.name}]", f'url = "{scheme}://127.0.0.1:{d.server.port}/{d.name}?sslmode=disable"', f"pool_size = {pool}"]
        for user in sorted({d.dialect.USER for d in self.databases}):
            lines += [f"[users.{user}]", f'password = "{PASSWORD}"']
        with open(self.toml, "w", encoding="utf-8") as f:
            f.write("\n".join([*lines, "[mysql]", 'auth_type = "mysql_native_password"', "[pool]", "server_login_retry = 1", "query_wait_timeout = 600",
                               "cancel_wait_timeout = 2", ""]))

    def reload(self, pool):
        self.configure(pool)
        ordeal.reload(self.weir, DEADLINE_S)

    def port(self, database):
        return self.weir.port if database.kind == "postgres" else self.mysql_port

    def descriptors(self):
        return len(ordeal.descriptors(self.weir))

    def cpu_s(self):
        words = ordeal.status(self.weir.process.pid)
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def more_descriptors():
    """As many as this process may have: it holds silent connections."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20_000) if hard != resource.RLIM_INFINITY else 20_000, hard))
