"""What the benchmarks share: throw-away servers, Weir and PgBouncer before them, runs of the load generator.

Python's standard library only. Everything lies under target/.
"""

import atexit
import contextlib
import json
import os
import pwd
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = os.path.join(ROOT, "target")
WEIR = os.environ.get("WEIR", os.path.join(TARGET, "release", "weir"))
SERVERS = os.path.join(ROOT, "tests", "servers", "servers")
SERVERS_DIR = os.path.join(TARGET, "bench-servers")
DATABASE, USER = "bench", "app_trust"
START_DEADLINE_S = 30


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def servers(*names, more=(), directory=SERVERS_DIR):
    """Starts these of the test servers in a directory of our own; returns what they say of themselves."""
    subprocess.run([SERVERS, "--dir", directory, "up", *names, *more], check=True, stdout=subprocess.DEVNULL)
    atexit.register(lambda: subprocess.run([SERVERS, "--dir", directory, "down"], check=False, stdout=subprocess.DEVNULL))
    out = subprocess.run([SERVERS, "--dir", directory, "env"], check=True, capture_output=True, text=True).stdout
    return dict(line.split("=", 1) for line in out.split() if "=" in line)


def postgres():
    """(port, pid) of a PostgreSQL whose user and database are USER and DATABASE, by trust."""
    env = servers("postgres")
    return int(env["WEIR_TEST_POSTGRES_PORT"]), int(env["WEIR_TEST_POSTGRES_PID"])


def server(kind, max_connections=600, options=(), directory=SERVERS_DIR):
    """(port, pid, user) of a PostgreSQL, MariaDB or MySQL with the database DATABASE and a user without a password. `options`: further
    ones of mysqld. A second server of a kind needs a directory of its own."""
    more = [f"--mysqld-option={option}" for option in options]
    env = servers(kind, more=("--max-connections", str(max_connections), *more), directory=directory)
    name = f"WEIR_TEST_{kind.upper()}"
    return int(env[f"{name}_PORT"]), int(env[f"{name}_PID"]), USER if kind == "postgres" else "app_nopass"


def url_of(kind, port, user, more=""):
    return f"{'postgres' if kind == 'postgres' else 'mysql'}://{user}@127.0.0.1:{port}/{DATABASE}{more}"


class Proxy:
    """A process that stands before a server."""

    def __init__(self, name, port, command, log, limit=None, user=None, url=None, http_port=None):
        self.name, self.port, self.log, self.http_port = name, port, log, http_port
        self.url = url or url_of("postgres", port, USER)
        # Further processes of the same.
        self.others = []

        def prepare():
            if limit:
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

        extra = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        with open(log, "ab") as out:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=prepare, start_new_session=True, **extra
            )
        atexit.register(self.stop)
        self.await_port()

    def await_port(self):
        deadline = time.monotonic() + START_DEADLINE_S
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        with open(self.log, encoding="utf-8", errors="replace") as f:
            raise SystemExit(f"{self.name} did not start:\n{f.read()[-2000:]}")

    @property
    def pid(self):
        return self.process.pid

    @property
    def pids(self):
        return [self.pid, *(other.pid for other in self.others)]

    def states(self, name):
        """Weir's samples of this name: {name and labels: value}."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}/metrics", timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name}

    def metric(self, name):
        """The sum of Weir's samples of this name."""
        return sum(self.states(name).values())

    def rss_kb(self):
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))

    def stop(self):
        for other in self.others:
            other.stop()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT if self.name == "weir" else signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()


def log_path(name):
    directory = os.path.join(TARGET, "bench-logs")
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, name)
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
    return path


def weir(backend_port, pool_size=8, clients=20_000, limit=None, more=(), kind="postgres", user=USER, log="weir.log", program=WEIR,
         url=None):
    """Weir before one server, without TLS to it: PgBouncer beside it has none either. `url`: the server, in another way. PORT in `more` is
    its own port."""
    if not os.access(program, os.X_OK):
        raise SystemExit(f"{program} is missing: make release")
    port, http_port = free_port(), free_port()
    section = "postgres" if kind == "postgres" else "mysql"
    command = [program, "serve", url or url_of(kind, backend_port, user, "?sslmode=disable"),
               "--pool-size", str(pool_size), "--set", "tls.client.sslmode=disable", "--set", f"{section}.listen=127.0.0.1:{port}", "--set", f"http.listen=127.0.0.1:{http_port}"]
    # What comes last holds.
    command += [word.replace("PORT", str(port)) for word in more]
    return Proxy("weir", port, command, log_path(log), limit=limit, url=url_of(kind, port, user), http_port=http_port)


def pgbouncer_program():
    """PGBOUNCER=program, or the newest one that WEIR_TEST_NEWEST has, or the one that is installed; None: there is none."""
    newest = os.environ.get("WEIR_TEST_NEWEST")
    for program in (os.environ.get("PGBOUNCER"), newest and os.path.join(newest, "root/usr/sbin/pgbouncer")):
        if program:
            return os.path.abspath(program)
    return shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")


def pgbouncer_version():
    """As it says, such as 1.26.1."""
    out = subprocess.run([pgbouncer_program(), "--version"], check=False, capture_output=True, text=True).stdout
    return (re.search(r"[0-9]+(\.[0-9]+)+", out) or ["unknown"])[0]


def pgbouncer(backend_port, pool_size=8, clients=19_000, settings=(), users=None, files=(), processes=1):
    """PgBouncer before the same server, in transaction mode, over the same kind of connection. `settings` replace or follow those
    here; DIR in them is a directory that PgBouncer can read and write, with copies of `files`. `users`: by name, the password or what the server
    stores in its place. `processes`: so many on one port (so_reuseport), which share the pool's size."""
    program = pgbouncer_program()
    if program is None:
        raise SystemExit("pgbouncer is missing: tests/setup installs it")
    user = next((pwd.getpwnam(n) for n in ("postgres", "nobody") if n in {p.pw_name for p in pwd.getpwall()}), None)
    user = user if os.geteuid() == 0 else None
    port, log = free_port(), log_path("pgbouncer.log")
    # Not under target/: the unprivileged user must be able to read it, wherever the repository lies.
    directory = tempfile.mkdtemp(prefix="weir-bench-pgbouncer-")
    os.chmod(directory, 0o755)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    ini = os.path.join(directory, "pgbouncer.ini")
    accounts, users = users or {USER: ""}, os.path.join(directory, "users.txt")
    with open(users, "w", encoding="utf-8") as f:
        f.writelines(f'"{name}" "{password}"\n' for name, password in accounts.items())
    for file in files:
        shutil.copy(file, directory)
    if user:
        for path in [directory, *(os.path.join(directory, name) for name in os.listdir(directory))]:
            os.chown(path, user.pw_uid, user.pw_gid)
    settings = "\n".join(settings).replace("DIR", directory)
    with open(ini, "w", encoding="utf-8") as f:
        f.write(f"""
[databases]
{DATABASE} = host=127.0.0.1 port={backend_port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
server_tls_sslmode = disable
auth_file = {users}
pool_mode = transaction
default_pool_size = {pool_size // processes}
max_client_conn = {clients}
so_reuseport = {int(processes > 1)}
{settings}
""")
    proxy = Proxy("pgbouncer", port, [program, ini], log, user=user)
    proxy.directory = directory
    proxy.others = [Proxy("pgbouncer", port, [program, ini], log_path(f"pgbouncer.{n + 2}.log"), user=user) for n in range(processes - 1)]
    return proxy


def haproxy(backend_port, clients=4_000):
    """HAProxy before the same server: it forwards bytes, one connection to the server for each client. None: not installed."""
    program = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if program is None:
        return None
    port, file = free_port(), log_path("haproxy.cfg")
    with open(file, "w", encoding="utf-8") as f:
        f.write(f"global\n maxconn {clients}\ndefaults\n mode tcp\n timeout connect 10s\n timeout client 1h\n timeout server 1h\n"
                f"listen bench\n bind 127.0.0.1:{port}\n server database 127.0.0.1:{backend_port}\n")
    return Proxy("haproxy", port, [program, "-db", "-f", file], log_path("haproxy.log"))


def cycles(clients, seconds, rate=15_000):
    """(warm-up, time) in seconds in which `clients` get several turns each where `rate` queries a second are answered: figures of fewer
    turns say how the run began."""
    return max(1.0, 2 * clients / rate), max(seconds, 2 * clients / rate)


def prepare(url, workload, **options):
    """The tables of a workload, made anew."""
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    for command in ("cleanup", "prepare"):
        subprocess.run([WEIR, "bench", command, workload, "--url", url, *words], check=True, stdout=subprocess.DEVNULL)


def run(url, workload="select_one", pids=None, limit=None, check=True, until=None, **options):
    """One run of the load generator; returns its report. Options are those of `weir bench run`; True: one without a value; a list: one each. `until`: an
    event that ends it before its time."""
    path = os.path.join(TARGET, f"bench-run-{os.getpid()}-{threading.get_ident()}.json")
    command = [WEIR, "bench", "run", workload, "--url", url, "--json", path]
    for name, value in {"report_interval": 0, **options}.items():
        for one in value if isinstance(value, list) else [value]:
            command += [f"--{name.replace('_', '-')}"] + ([] if one is True else [str(one)])
    if pids:
        # Of several processes of one name the report has each.
        each = [(f"{name}.{n}" if n else name, pid) for name, of in pids.items() for n, pid in enumerate(of if isinstance(of, list) else [of])]
        command += ["--pids", ",".join(f"{name}={pid}" for name, pid in each)]

    def prepare():
        if limit:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    quiet = subprocess.DEVNULL if not options.get("report_interval") else None
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, preexec_fn=prepare)
    while until and process.poll() is None:
        if until.wait(0.1):
            process.send_signal(signal.SIGINT)
            break
    if process.wait() not in (0, 4):
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    with open(path, encoding="utf-8") as f:
        report = json.load(f)
    os.remove(path)
    report["cpu"] = {}
    for p in report["processes"]:
        name = p["name"].partition(".")[0]
        report["cpu"][name] = report["cpu"].get(name, 0.0) + (p["cpu_us_per_query"] or 0.0)
    if check and (report["errors"] or report["given_up"]):
        print(f"{report['errors']} errors at {url}:", file=sys.stderr)
        for error in report["errors_by_code"]:
            print(f"  {error['phase']} {error['code']}: {error['count']} x {error['first_text']}", file=sys.stderr)
        raise SystemExit(1)
    return report


def save(name, data):
    path = os.path.join(TARGET, name)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(data, f, indent=1)
    print(f"\nAll figures: {os.path.relpath(path, ROOT)}")
