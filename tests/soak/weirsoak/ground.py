"""One Weir before all databases: their processes, and how each is reached.

Owns: starting and ending them. Must not know: what is asked of them, when something fails, and why.
"""

import atexit
import contextlib
import ctypes
import glob
import os
import resource
import shutil
import signal
import subprocess
import time

from weirtest.case import eventually
from weirtest.private import TOOL, PrivateServer
from weirtest.weir import ROOT, Weir, free_port
from weirtorture import my, pg
from weirtorture.words import DEADLINE_S, Lost, Refused

PASSWORD = "weir-secret"
DATABASES = ("postgres", "mariadb", "mysql")
POOL = 8
PR_SET_CHILD_SUBREAPER = 36


class Database:
    """One server, and the name by which clients of Weir ask for it: each has another, so that one Weir can stand before all."""

    def __init__(self, kind):
        self.kind, self.dialect = kind, pg if kind == "postgres" else my
        self.name = {"postgres": "app", "mariadb": "maria", "mysql": "my"}[kind]
        # Its directory is named after this, and goes when the server has been taken down, which makes it anew.
        os.environ["WEIR_SUITE"] = f"soak-{kind}-{os.getpid()}"
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

    def pids(self):
        """The server's main process, then its children."""
        main = int(self.server.env["PID"])
        found = [main]
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError, IndexError), open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) == main:
                    found.append(int(entry))
        return found

    def signal(self, sig):
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)

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
        # The databases' processes become children of this one when who has started them ends.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        tidy_after_others()
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
        before = self.weir.log().count("was read again")
        self.weir.signal(signal.SIGHUP)
        eventually(lambda: self.weir.log().count("was read again") > before, "the configuration is read again", DEADLINE_S)

    def port(self, database):
        return self.weir.port if database.kind == "postgres" else self.mysql_port

    def descriptors(self):
        """Distinct ones of all of Weir's threads, which may have tables of their own."""
        found = set()
        root = f"/proc/{self.weir.process.pid}/task"
        for task in os.listdir(root):
            with contextlib.suppress(OSError):
                for fd in os.listdir(f"{root}/{task}/fd"):
                    with contextlib.suppress(OSError):
                        name = os.readlink(f"{root}/{task}/fd/{fd}")
                        # Sockets have a name each; of others, such as an epoll, the number tells.
                        found.add(name if name.startswith("socket:") else f"{fd} {name}")
        return len(found)

    def cpu_s(self):
        with open(f"/proc/{self.weir.process.pid}/stat", encoding="utf-8") as f:
            words = f.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def tidy_after_others():
    """What runs that were killed have left: they could not take it down."""
    for path in glob.glob(os.path.join(ROOT, "target/servers-soak-*-*")):
        if not os.path.exists(f"/proc/{path.rsplit('-', 1)[1]}"):
            subprocess.run([TOOL, "--dir", path, "down"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
            shutil.rmtree(path, ignore_errors=True)


def more_descriptors():
    """As many as this process may have: it holds silent connections."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20_000) if hard != resource.RLIM_INFINITY else 20_000, hard))
