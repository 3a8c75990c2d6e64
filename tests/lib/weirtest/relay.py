"""A second address of a database."""

import contextlib
import socket
import threading


class Relay:
    """Another address of the server: who connects there is taken to it."""

    def __init__(self, host, port, target_port):
        self.listener = socket.create_server((host, port))
        self.port = target_port
        self.open = 0
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self.listener.accept()[0]
                far = socket.create_connection(("127.0.0.1", self.port))
                self.count(1)
                for a, b in ((near, far), (far, near)):
                    threading.Thread(target=self.carry, args=(a, b, a is near), daemon=True).start()

    def carry(self, a, b, counts):
        with contextlib.suppress(OSError):
            while got := a.recv(65536):
                b.sendall(got)
        for s in (a, b):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
        if counts:
            self.count(-1)

    def count(self, by):
        with self.lock:
            self.open += by

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
