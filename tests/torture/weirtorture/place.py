"""The database, the relay and Weir: what faults are done to, and what is measured.

Owns: their processes and everything that must be undone. Must not know: when and why.
"""

import atexit
import contextlib
import glob
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from weirtest import ordeal
from weirtest.case import eventually
from weirtest.private import PrivateServer
from weirtest.weir import Weir, free_port

from . import my, pg
from .network import Network, Unavailable
from .relay import Relay
from .words import DEADLINE_S, Lost, Refused, Wrong

POOL = 4
DISK_MB, MEMORY_MB = 900, 512
RETRIES_S = 1


class Place:
    """`with Place(kind, clients) as place:`. `skipped` says what cannot be had on this machine, and why."""

    def __init__(self, kind, clients, lie=None):
        self.kind, self.clients = kind, clients
        self.dialect = pg if kind == "postgres" else my
        self.skipped = {}
        self.undo = contextlib.ExitStack()
        atexit.register(self.tidy)
        ordeal.adopt_orphans()
        self.tidy_after_others()
        self.port, self.http_port = free_port(), free_port()
        self.weir = self.directory = self.disk = None
        with contextlib.ExitStack() as on_error:
            on_error.callback(self.undo.close)
            self.disk = self.mount()
            self.database = self.start_database(clients)
            self.network = self.make_network()
            listener = self.network.listener() if self.network else socket.create_server(("127.0.0.1", 0), backlog=128)
            self.relay = Relay(listener, self.database.port, lie)
            self.undo.callback(self.relay.stop)
            self.relay_address = listener.getsockname()
            self.group = self.make_group()
            self.clock = self.make_clock()
            self.toml = tempfile.NamedTemporaryFile("w", suffix=".torture.toml", delete=False).name
            self.undo.callback(os.remove, self.toml)
            self.start_weir()
            on_error.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.go_on()
        if self.weir and self.weir.alive():
            self.weir.kill()
        self.undo.close()

    def tidy(self):
        """At the end of the program, whatever ended it."""
        self.undo.close()
        if self.directory:
            shutil.rmtree(self.directory, ignore_errors=True)
        if self.disk:
            with contextlib.suppress(OSError):
                os.rmdir(self.disk)  # it is not mounted any more

    def tidy_after_others(self):
        """What runs that were killed have left: they could not undo anything."""
        ordeal.tidy_after_others("torture")
        Network.left_behind(ordeal.runs)
        for path in glob.glob(os.path.join(tempfile.gettempdir(), "weir-torture-*")):
            if (mark := path.rsplit("-", 1)[1]).isdigit() and not ordeal.runs(int(mark)):
                subprocess.run(["umount", "-l", path], stderr=subprocess.DEVNULL, check=False)
                shutil.rmtree(path, ignore_errors=True)

    # --- Making it ---

    def mount(self):
        """A disk of the database's own that can be filled."""
        if os.geteuid() != 0:
            self.skipped["disk_full"] = "mounting a small disk needs root"
            return None
        path = os.path.join(tempfile.gettempdir(), f"weir-torture-{os.getpid()}")
        os.mkdir(path, 0o755)
        self.undo.callback(shutil.rmtree, path, ignore_errors=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=755", "weir-torture", path], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            self.skipped["disk_full"] = f"a small disk cannot be mounted: {done.stdout.strip()}"
            return None
        self.undo.callback(subprocess.run, ["umount", "-l", path], check=False)
        return path

    def start_database(self, clients):
        if self.disk:
            os.environ["WEIR_TEST_DATA"] = self.disk
        else:
            os.environ.pop("WEIR_TEST_DATA", None)
        ordeal.name_suite("torture", self.kind)
        private = PrivateServer(self.kind, max_connections=60, options=self.dialect.SERVER_OPTIONS)
        self.directory = private.dir
        self.undo.callback(private.tool, "down")
        with contextlib.closing(self.superuser(private.port)) as session:
            if self.kind != "postgres":
                session.ask("use app")
            for sql in self.dialect.SCHEMA:
                session.ask(sql)
            session.ask(f"insert into {self.dialect.COUNTER} values " + ",".join(f"({n}, 0)" for n in range(clients)))
        return private

    def superuser(self, port):
        return self.dialect.monitor(port)

    def make_network(self):
        try:
            network = Network()
        except Unavailable as e:
            for name in ("packets_lost", "packets_doubled", "unplugged"):
                self.skipped[name] = str(e)
            return None
        self.undo.callback(network.close)
        if not network.has_netem:
            self.skipped["packets_doubled"] = "the kernel has no netem; packets are lost by pulling the cable for moments"
        return network

    def make_group(self):
        """A cgroup with a limit of memory that Weir lives in, version 1 or 2."""
        for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            path = os.path.join(root, f"weir-torture-{os.getpid()}")
            try:
                os.mkdir(path)
            except OSError:
                continue
            self.undo.callback(self.remove_group, path)
            try:
                with open(os.path.join(path, limit), "w", encoding="ascii") as f:
                    f.write(str(MEMORY_MB << 20))
                return path
            except OSError:
                continue
        self.skipped["a limit of memory"] = "no cgroup can be made"
        return None

    def remove_group(self, path):
        def gone():
            try:
                os.rmdir(path)
            except OSError:
                return not os.path.isdir(path)
            return True

        with contextlib.suppress(AssertionError):
            eventually(gone, "the cgroup is empty")

    def make_clock(self):
        """A file that says how far Weir's time of day is from the machine's. The monotonic clock never jumps, so it stays as it is."""
        found = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
        if not found:
            self.skipped["clock_jumps"] = "libfaketime is not installed"
            return None
        with tempfile.NamedTemporaryFile("w", suffix=".torture.clock", delete=False) as f:
            f.write("+0")
        self.undo.callback(os.remove, f.name)
        return {"LD_PRELOAD": found[0], "FAKETIME_TIMESTAMP_FILE": f.name, "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_DONT_RESET": "1"}

    def set_clock(self, ahead_s):
        if self.clock:
            with open(self.clock["FAKETIME_TIMESTAMP_FILE"], "w", encoding="ascii") as f:
                f.write(f"{ahead_s:+d}")

    # --- Weir ---

    def configure(self, pool):
        host, port = self.relay_address[:2]
        scheme = "postgres" if self.kind == "postgres" else "mysql"
        native = '[mysql]\nauth_type = "mysql_native_password"\n' if self.kind == "mariadb" else ""
        with open(self.toml, "w", encoding="utf-8") as f:
            f.write(f'workers = 2\n[databases.app]\nurl = "{scheme}://{host}:{port}/app?sslmode=disable"\npool_size = {pool}\n'
                    f'[users.{self.dialect.USER}]\npassword = "weir-secret"\n{native}'
                    f"[pool]\nserver_login_retry = {RETRIES_S}\ncancel_wait_timeout = 2\nquery_wait_timeout = 600\nserver_connect_timeout = 100\n"
                    f"[limits]\ndrain_timeout = 3\nclient_login_timeout = 600\n")
        self.pool = pool

    def start_weir(self):
        self.configure(POOL)
        self.weir = Weir(self.kind, ["--config", self.toml], name="torture", listen_port=self.port, http_port=self.http_port,
                         env=self.clock)
        self.undo.callback(self.weir.kill)
        self.nofile = resource.prlimit(self.weir.process.pid, resource.RLIMIT_NOFILE)
        if self.group:
            with open(os.path.join(self.group, "cgroup.procs"), "w", encoding="ascii") as f:
                f.write(str(self.weir.process.pid))

    def replace_weir(self, sig):
        """Ends it and starts another in its place."""
        if sig == signal.SIGTERM:
            self.weir.stop()
        else:
            self.weir.kill()
            self.weir.check_log()
        self.complain_of_log(self.weir)
        self.start_weir()

    def reload(self, pool):
        self.configure(pool)
        ordeal.reload(self.weir, DEADLINE_S)

    def complain_of_log(self, weir):
        weir.check_log()
        errors = [line for line in re.sub(r"\x1b\[[0-9;]*m", "", weir.log()).splitlines() if " ERROR " in line]
        if errors:
            raise Wrong(f"Weir's log has errors: {errors[:3]}")

    def sockets(self):
        return sum(name.startswith("socket:") for name in ordeal.descriptors(self.weir))

    # --- The database's processes ---

    def main_process(self):
        return int(self.database.env["PID"])

    def to_database(self, sig):
        ordeal.signal_family(self.main_process(), sig)

    def kill_database(self):
        ordeal.kill_family(self.main_process(), DEADLINE_S)

    def database_up(self):
        """Starts it if it has ended, whatever ended it."""
        if not ordeal.runs(self.main_process()):
            self.database.start()

    @contextlib.contextmanager
    def asking(self):
        """The database itself; raises Lost and Refused."""
        session = self.superuser(self.database.port)
        try:
            if self.kind != "postgres":
                session.ask("use app")
            yield session
        finally:
            session.close()

    def number(self, sql):
        with self.asking() as session:
            return int(session.ask(sql)[0][0][0])

    def tables(self):
        """({client: {n: how often}}, {client: counter}), of the database itself; the rows are then taken out."""
        rows, d = {}, self.dialect
        with self.asking() as session:
            for client, n, count in session.ask(f"select client, n, count(*) from {d.TABLE} group by client, n")[0]:
                rows.setdefault(int(client), {})[int(n)] = int(count)
            counters = {int(c): int(n) for c, n in session.ask(f"select client, n from {d.COUNTER}")[0]}
            session.ask(f"delete from {d.TABLE}")
            session.ask(d.TIDY)
        return rows, counters

    # --- The network ---

    def disturb_network(self, *how):
        """netem's words; without any the cable is pulled."""
        if self.network:
            self.relay.unsure_until = float("inf")
            if how:
                self.network.disturb(*how)
            else:
                self.network.plug(False)

    def calm_network(self):
        if self.network:
            self.network.calm()
            self.relay.unsure_until = time.monotonic() + 5

    # --- Back to calm ---

    def go_on(self):
        """Whatever is stopped goes on."""
        with contextlib.suppress(Exception):
            self.to_database(signal.SIGCONT)
        if self.weir and self.weir.alive():
            self.weir.signal(signal.SIGCONT)

    def heal(self):
        self.go_on()
        self.relay.frozen, self.relay.delay_s, self.relay.piece = False, 0.0, 1 << 16
        self.relay.swallow(False)
        self.calm_network()
        self.set_clock(0)
        self.database_up()
        end = time.monotonic() + DEADLINE_S
        while True:
            try:
                self.number("select 1")
                break
            except (Lost, Refused):
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
        if not self.weir.alive():
            raise Wrong(f"Weir has ended by itself with status {self.weir.process.returncode}: {self.weir.log()[-1500:]}")
        resource.prlimit(self.weir.process.pid, resource.RLIMIT_NOFILE, self.nofile)
        if self.pool != POOL:
            self.reload(POOL)
