"""Runs Weir: starts it, waits until it listens, reads its metrics and its log, and ends it, checking that it ended well."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import urllib.request

from .case import eventually
from .target import DEFAULT_USER, PASSWORD, Target, server_env

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
START_DEADLINE_S = 30
STOP_DEADLINE_S = 60
# What must never be in the log. A panic in a worker is caught nowhere: it is always a bug.
BAD_LOG = re.compile(r"panicked at|assertion .*failed|RUST_BACKTRACE|attempt to .* with overflow|index out of bounds")


def binary():
    path = os.environ.get("WEIR_BIN", os.path.join(ROOT, "target/debug/weir"))
    if not os.access(path, os.X_OK):
        raise RuntimeError(f"{path} is not there; cargo build --bin weir, or set WEIR_BIN")
    return path


def free_port():
    """A port below the kernel's range for outgoing connections, so that nobody takes it meanwhile by accident."""
    start = 11000 + (os.getpid() * 13 + free_port.used * 3) % 9000
    free_port.used += 1
    for port in [*range(start, 20000), *range(11000, start)]:
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise RuntimeError("no free port on loopback")


free_port.used = 0


def url(kind, user=None, password=None, port=None, database=""):
    """A server's URL as `weir serve` takes it; without a database it stands for all of them."""
    scheme = "postgres" if kind == "postgres" else "mysql"
    user = user or DEFAULT_USER[kind]
    login = user if password == "" else f"{user}:{password or PASSWORD}"
    return f"{scheme}://{login}@127.0.0.1:{port or server_env(kind, 'PORT')}" + (f"/{database}" if database else "")


class Weir:
    """One Weir process. `options` go to the command line as they are; `also`: further addresses to listen on; `wrap`: a program that
    ends by executing what it is given."""

    def __init__(self, kind, options, name="weir", env=None, listen_port=None, http_port=None, nofile=None, also=(), wrap=(),
                 plain=True):
        self.kind = kind
        self.port = listen_port or free_port()
        self.http_port = http_port or free_port()
        self.ended = None
        directory = os.path.join(ROOT, "target/suites")
        os.makedirs(directory, exist_ok=True)
        suite = re.sub(r"\W+", ".", os.environ.get("WEIR_SUITE", "suite")).strip(".")
        handle, self.log_path = tempfile.mkstemp(prefix=f"{suite}.{name}.", suffix=".weir.log", dir=directory)
        section = "postgres" if kind == "postgres" else "mysql"
        argv = [*wrap, binary(), "serve", *options, "--set", f"{section}.listen={','.join([f'127.0.0.1:{self.port}', *also])}",
                "--set", f"http.listen=127.0.0.1:{self.http_port}"]
        # The throw-away servers' certificates are signed by nobody. A test of that says so itself.
        if section == "mysql" and not any(option.startswith("tls.server.trust_unverified") for option in options):
            argv += ["--set", "tls.server.trust_unverified=true"]
        # Most drivers would take the TLS that is offered, and most suites are about bytes. Those about TLS say so.
        if plain and "--config" not in options and not any("tls.client." in option for option in options):
            argv += ["--set", "tls.client.sslmode=disable"]
        limit = None
        if nofile is not None:
            import resource

            def limit():
                resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))
        with os.fdopen(handle, "wb") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=limit,
                                            env={**os.environ, "RUST_BACKTRACE": "1", "XDG_STATE_HOME": os.path.join(directory, "state"),
                                                 **(env or {})})
        self.argv = argv
        self.also = also
        try:
            eventually(self._listens, "Weir listens", START_DEADLINE_S)
        except BaseException as e:
            self.kill()
            raise RuntimeError(f"Weir did not start ({e}); {' '.join(argv)}\n{self.log()[-3000:]}") from None

    @classmethod
    def before(cls, kind, port=None, mode="transaction", pool_size=8, users=(), settings=(), **kw):
        """Weir before one server, told by URLs. The further users come in with the common password."""
        options = [url(kind, user, port=port) for user in (DEFAULT_USER[kind], *users)]
        # What the server's own users have: MariaDB's clients know the old way, MySQL's the new one.
        native = ["mysql.auth_type=mysql_native_password"] if kind == "mariadb" else []
        for setting in (f"pool.pool_mode={mode}", f"pool.default_pool_size={pool_size}", *native, *settings):
            options += ["--set", setting]
        return cls(kind, options, name=mode, **kw)

    @classmethod
    def configured(cls, kind, text, suffix=".toml", **kw):
        """Weir by a configuration file. Its listeners are given by --set."""
        directory = os.path.join(ROOT, "target/suites")
        os.makedirs(directory, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", suffix=suffix, dir=directory, delete=False) as f:
            f.write(text)
        return cls(kind, ["--config", f.name], **kw)

    def _listens(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"it ended with status {self.process.returncode}")
        for port in (self.port, self.http_port):
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) != 0:
                    return False
        return all(self._listens_at(address) for address in self.also)

    def _listens_at(self, address):
        """A socket's file is there before it has its mode and takes clients; true for an address of another kind."""
        if address[0] not in "/@":
            return True
        file, _, port = address.partition(":")
        file = f"{file}/.s.PGSQL.{port}" if port else file
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(file if file[0] == "/" else "\0" + file[1:]) == 0

    def target(self, way="transaction", **kw):
        kw.setdefault("user", DEFAULT_USER[self.kind])
        kw.setdefault("password", PASSWORD)
        return Target(self.kind, way, "127.0.0.1", self.port, weir=self, **kw)

    def alive(self):
        return self.process.poll() is None

    def log(self):
        """What is logged so far, without a line that is half written."""
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        return text[:text.rfind("\n") + 1] if self.alive() else text

    def http(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}{path}", timeout=20) as answer:
            return answer.read().decode()

    def metrics(self):
        """Every sample of /metrics: {name{labels}: value}."""
        found = {}
        for line in self.http("/metrics").splitlines():
            if line and not line.startswith("#"):
                name, value = line.split(" # ")[0].rsplit(" ", 1)
                found[name] = float(value)
        return found

    def metric(self, name, **labels):
        """The sum of the samples called `name` (a counter's without its _total) that carry these labels."""
        total = 0.0
        seen = False
        for key, value in self.metrics().items():
            base, _, rest = key.partition("{")
            if base in (name, f"{name}_total") and all(f'{k}="{v}"' in rest for k, v in labels.items()):
                total += value
                seen = True
        if not seen:
            raise KeyError(f"/metrics has no {name} with {labels}")
        return total

    def reaches(self, name, wanted, **labels):
        """Waits for a metric: a client has its answer a moment before that is counted and its server given back."""
        eventually(lambda: self.metric(name, **labels) == wanted, f"{name} {labels} is {wanted}")

    def rss_kb(self):
        """Memory in RAM, without what is shared with files (the binary itself)."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as f:
            for line in f:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1])
        raise RuntimeError("no RssAnon in /proc")

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def signal(self, sig):
        self.process.send_signal(sig)

    def wait(self, deadline_s=STOP_DEADLINE_S):
        """The exit status; raises AssertionError when it does not end."""
        try:
            return self.process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"Weir did not end within {deadline_s} s") from None

    def kill(self):
        if self.alive():
            self.process.kill()
        self.process.wait()
        self.ended = True

    def stop(self):
        """SIGTERM; asserts that it ends by itself, with status 0, and that the log holds nothing it must not."""
        if self.ended:
            return
        self.ended = True
        died = None if self.alive() else self.process.returncode
        if died is None:
            self.signal(signal.SIGTERM)
            try:
                status = self.wait()
            except AssertionError:
                self.process.kill()
                self.process.wait()
                raise
        self.check_log()
        assert died is None, f"Weir had ended by itself with status {died}:\n{self.log()[-2000:]}"
        assert status == 0, f"Weir ended with status {status}:\n{self.log()[-2000:]}"

    def check_log(self):
        bad = BAD_LOG.search(self.log())
        if bad:
            at = max(0, bad.start() - 300)
            raise AssertionError("in Weir's log: " + self.log()[at:bad.end() + 1500])

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.stop()
        else:
            self.kill()
