"""Servers that mean harm, and what a Weir must be when all is over."""

import contextlib
import os
import socket
import struct
import threading

from . import mywire, pgwire
from .case import eventually
from .weir import Weir, url

KIND = os.environ.get("WEIR_SUITE", "[postgres").split("[")[1].rstrip("]")
WIRE = pgwire if KIND == "postgres" else mywire
PROTOCOL = "postgres" if KIND == "postgres" else "mysql"
LOST = (pgwire.Closed, mywire.Closed, ConnectionError, TimeoutError)


def start(*more, settings=()):
    """Weir before the real server; `more`: further URLs."""
    native = ["mysql.auth_type=mysql_native_password"] if KIND == "mariadb" else []
    words = [word for s in (*native, "pool.default_pool_size=3", *settings) for word in ("--set", s)]
    return Weir(KIND, [url(KIND), *more, *words])


@contextlib.contextmanager
def bystander(w):
    """A client that is there all the while, and Weir is what it was afterwards."""
    with WIRE.Wire(w.target()) as wire:
        assert wire.ask("select 'before'") == [["before"]]
        yield wire
        assert wire.ask("select 'after'") == [["after"]]
    assert w.alive()
    eventually(lambda: w.metric("weir_client_connections", protocol=PROTOCOL) == 0, "nobody is left")
    w.check_log()


class Server:
    """A server that means harm: `play` gets each connection, as a [`Talk`]."""

    def __init__(self, play):
        self.play = play
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.met = 0
        self.open = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                s, _ = self.listener.accept()
                self.met += 1
                self.open.append(s)
                threading.Thread(target=self.meet, args=(s,), daemon=True).start()

    def meet(self, s):
        with contextlib.suppress(OSError, struct.error, ValueError), s:
            self.play(Talk(s))

    def plays(self, play):
        """From now on this. Who is still there from before is sent away."""
        self.play, gone, self.open = play, self.open, []
        for s in gone:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


class Talk:
    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""

    def exactly(self, n):
        while len(self.buffer) < n:
            got = self.sock.recv(65536)
            if not got:
                raise OSError("gone")
            self.buffer += got
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def startup(self):
        while True:
            length, code = struct.unpack("!ii", self.exactly(8))
            self.exactly(length - 8)
            if code == 196608 or code >> 16 == 3:
                return
            self.send(b"N")

    def message(self):
        kind, length = struct.unpack("!ci", self.exactly(5))
        return kind, self.exactly(length - 4)

    def send(self, data):
        self.sock.sendall(data)
