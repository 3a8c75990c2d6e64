"""HAProxy before Weir, as people run it: it says by a PROXY header whose connection it forwards."""

import os
import shutil
import socket
import subprocess
import tempfile

from .case import Skip, eventually
from .weir import ROOT, free_port


class Balancer:
    """Forwards a port of its own to Weir's. `send` is HAProxy's word for the header: send-proxy or send-proxy-v2."""

    def __init__(self, w, send, *more):
        program = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
        if not program:
            raise Skip("haproxy is not installed")
        self.port = free_port()
        self.host = "127.0.0.1"
        with tempfile.NamedTemporaryFile("w", suffix=".haproxy.cfg", dir=os.path.join(ROOT, "target/suites"), delete=False) as f:
            f.write(f"defaults\n mode tcp\n timeout connect 20s\n timeout client 60s\n timeout server 60s\n"
                    f"listen l\n bind 127.0.0.1:{self.port}\n server s 127.0.0.1:{w.port} {send} {' '.join(more)}\n")
        self.process = subprocess.Popen([program, "-db", "-f", f.name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        eventually(self._listens, "HAProxy listens")

    def _listens(self):
        assert self.process.poll() is None, "HAProxy ended"
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
