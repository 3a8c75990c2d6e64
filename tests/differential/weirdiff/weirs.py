"""Weir processes: one for each number of servers a pool may have, started when first asked for.

Owns: their configuration, their ends, their logs.
"""

import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
# How many pairs of ports are tried before one Weir is given up.
PORTS = 20
PANIC = re.compile(r"panicked at.*(?:\n.*){0,3}|assertion .*failed|attempt to .* with overflow|index out of bounds")


def free_port():
    """Below the kernel's range for outgoing connections, so that nobody takes it meanwhile."""
    start = 11000 + (os.getpid() * 37 + free_port.used * 5) % 9000
    free_port.used += 1
    for port in [*range(start, 20000), *range(11000, start)]:
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise RuntimeError("no free port on loopback")


free_port.used = 0


class Weirs:
    """`config`: gives the text of a weir.toml for a port and a number of servers. `fixed`: an address that stands in for Weir,
    to try the tester itself."""

    def __init__(self, config, name, fixed=None, warm=None):
        """`warm`: called with the address of a new Weir; what a first login prepares is prepared then."""
        self.config = config
        self.warm = warm
        self.name = name
        self.fixed = fixed
        self.running = {}
        self.folder = os.path.join(ROOT, "target/differential")
        os.makedirs(self.folder, exist_ok=True)

    def __call__(self, servers):
        if self.fixed:
            return self.fixed
        if servers not in self.running:
            self.running[servers] = self.start(servers)
        return self.running[servers][1]

    def start(self, servers):
        """A Weir that listens. Somebody may take a port between the choice and the start, an outgoing connection too: then others."""
        for _ in range(PORTS):
            if record := self.begin(servers, free_port(), free_port()):
                break
        else:
            raise RuntimeError(f"Weir did not start: {PORTS} times the port it was to listen on was taken")
        if self.warm:
            self.warm(record[1])
        return record

    def begin(self, servers, port, http):
        """A Weir on these ports, or None when one of them is taken."""
        base = os.path.join(self.folder, f"{self.name}.{servers}")
        with open(base + ".toml", "w", encoding="utf-8") as f:
            f.write(self.config(port, servers) + f'\n[http]\nlisten = ["127.0.0.1:{http}"]\n')
        binary = os.environ.get("WEIR_BIN", os.path.join(ROOT, "target/debug/weir"))
        log = tempfile.NamedTemporaryFile("wb", prefix=f"{self.name}.{servers}.", suffix=".log", dir=self.folder, delete=False)
        process = subprocess.Popen([binary, "serve", "--config", base + ".toml"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   env={**os.environ, "RUST_BACKTRACE": "1"})
        log.close()
        record = (process, ("127.0.0.1", port), log.name, http)
        # A machine under full load takes long.
        end = time.monotonic() + 60
        # By its own word, so that nobody else on this port is taken for it.
        while not self.says(log.name, "listens on http"):
            if process.poll() is not None or time.monotonic() > end:
                taken = self.says(log.name, "Address already in use")
                with open(log.name, encoding="utf-8", errors="replace") as f:
                    said = f.read()[-2000:]
                self.end(record)
                if taken:
                    return None
                raise RuntimeError(f"Weir did not start: {said}")
            time.sleep(0.002)
        return record

    @staticmethod
    def says(log, word):
        with open(log, encoding="utf-8", errors="replace") as f:
            return word in f.read()

    def trouble(self, servers):
        """What is wrong with this Weir itself: that it ended, or panicked."""
        if self.fixed or servers not in self.running:
            return None
        process, _, log, _ = self.running[servers]
        if os.path.getsize(log) > 20_000_000 or process.poll() is not None or self.grown(servers):
            with open(log, encoding="utf-8", errors="replace") as f:
                text = f.read()
            if found := PANIC.search(text):
                return found[0]
            if process.poll() is not None:
                return f"ended with {process.returncode}: {text[-500:]}"
        return None

    def last_words(self, servers):
        """The end of this Weir's log: why it has closed a connection."""
        if self.fixed or servers not in self.running:
            return ""
        with open(self.running[servers][2], encoding="utf-8", errors="replace") as f:
            return f.read()[-1500:]

    def grown(self, servers):
        """Whether its log has more lines than before."""
        process, address, log, http = self.running[servers]
        size = os.path.getsize(log)
        seen = getattr(self, "sizes", {})
        self.sizes = seen
        if seen.get(log) == size:
            return False
        seen[log] = size
        return True

    def pins(self, servers):
        """How many servers are pinned and by what, as its metrics tell."""
        if self.fixed or servers not in self.running:
            return ""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.running[servers][3]}/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except OSError as e:
            return str(e)
        gauges = [line for line in text.splitlines() if re.match(r"weir_(pin|waiting|server_connections|client_connections|client_logins_pending)[^#]* [1-9][0-9]*$", line)]
        return " ".join([*gauges, *(self.console(servers, command) for command in ("SHOW PINS", "SHOW CLIENTS", "SHOW SERVERS"))])

    def console(self, servers, command):
        """What this Weir's console says, by the database's own program; nothing where that is not at hand."""
        host, port = self.running[servers][1]
        if self.name.startswith("postgres"):
            argv = ["psql", "-XAt", "-h", host, "-p", str(port), "-U", "app_trust", "-c", command, "weir"]
        else:
            user = re.match(r"[a-z]*([0-9]+)", self.name)[1]
            argv = [os.environ.get("WEIR_TEST_MARIADB_CLIENT", "mariadb"), "-B", "-h", host, "-P", str(port), "-u", f"diff{user}", "-e", command, "weir"]
        try:
            said = subprocess.run(argv, capture_output=True, text=True, timeout=5, check=False)
        except (OSError, subprocess.TimeoutExpired) as e:
            return f"{command}: {e}"
        return f"{command}: " + " / ".join((said.stdout + said.stderr).splitlines())

    def renew(self, servers):
        """A new process in its place."""
        if servers in self.running:
            self.end(self.running.pop(servers))

    def end(self, record):
        process, _, log, _ = record
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        if os.path.exists(log):
            os.remove(log)

    def close(self):
        for servers in list(self.running):
            self.renew(servers)
