"""A database server of a suite's own, for suites that count its connections, stop it or crash it."""

import atexit
import os
import re
import subprocess

from .target import direct_target, superuser
from .weir import ROOT

TOOL = os.path.join(ROOT, "tests/servers/servers")


class PrivateServer:
    def __init__(self, kind, max_connections=200, tls=None, options=()):
        """`tls`: a folder with ca.pem, server.pem and server.key. `options`: of MariaDB and MySQL."""
        self.kind = kind
        suite = re.sub(r"\W+", "-", os.environ.get("WEIR_SUITE", "suite")).strip("-")
        # tests/run takes down what a killed suite left: it knows them by this name.
        self.dir = os.path.join(ROOT, f"target/servers-{suite}")
        self.tool("down")
        self.tool("up", kind, "--max-connections", str(max_connections), *(["--tls", tls] if tls else []),
                  *(f"--mysqld-option={option}" for option in options))
        atexit.register(self.tool, "down")
        self.read()

    def tool(self, *argv):
        done = subprocess.run([TOOL, "--dir", self.dir, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"servers {' '.join(argv)}: {done.stdout.decode(errors='replace')}")

    def read(self):
        prefix = f"WEIR_TEST_{self.kind.upper()}_"
        with open(os.path.join(self.dir, "env"), encoding="utf-8") as f:
            self.env = {line.split("=", 1)[0].removeprefix(prefix): line.rstrip("\n").split("=", 1)[1] for line in f}
        self.port = int(self.env["PORT"])

    def direct(self):
        return direct_target(self.kind, self.port)

    def superuser(self):
        return superuser(self.kind, self.port)

    def stop(self, crash=False):
        self.tool("stop", self.kind, *(["--immediate"] if crash else []))

    def start(self):
        self.tool("start", self.kind)
        self.read()

    def restart(self, crash=False):
        self.stop(crash)
        self.start()
