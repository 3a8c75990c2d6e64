"""What the suites of TLS share: certificates by name, what openssl sees, and reloads under load."""

import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess

from .case import eventually
from .certs import certificates
from .crowd import Crowd


def own(name):
    """A file of the CA that clients and servers trust."""
    return certificates()[0].path(name)


def foreign(name):
    """A file of a CA that nobody trusts."""
    return certificates()[1].path(name)


def shown(name, of=own):
    """Settings of tls.client: Weir shows this certificate."""
    return f"cert_file={of(name + '.pem')}", f"key_file={of(name + '.key')}"


def s_client(w, *argv):
    """What the openssl program says of a connection to this Weir."""
    done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{w.port}", "-CAfile", own("ca.pem"), *argv],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    return done.stdout.decode(errors="replace")


def der(name):
    """A certificate of our own as it goes over the wire."""
    with open(own(f"{name}.pem"), encoding="ascii") as f:
        return ssl.PEM_cert_to_DER_cert(f.read())


def shown_now(w, starttls):
    """The certificate that a new client sees."""
    seen = s_client(w, "-starttls", starttls)
    return ssl.PEM_cert_to_DER_cert(re.search(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", seen, re.DOTALL)[0])


class Changing:
    """A certificate whose file can be replaced by another; `settings` of tls.client show it."""

    def __init__(self, folder, name):
        os.makedirs(own(folder), exist_ok=True)
        self.files = {end: os.path.join(own(folder), f"now.{end}") for end in ("pem", "key")}
        self.put(name)

    @property
    def settings(self):
        return f"cert_file={self.files['pem']}", f"key_file={self.files['key']}"

    def put(self, name):
        for end, file in self.files.items():
            shutil.copyfile(own(f"{name}.{end}"), file)


def reload_under_load(front, url_of, starttls, clients=2000):
    """The certificate changes again and again while all these clients ask; the last one is shown to whoever comes then, and nobody
    is dropped. `front` makes a Weir from settings of tls.client, `url_of` the clients' URL."""
    certificate = Changing("busy", "server")
    with front("sslmode=require", *certificate.settings) as w:
        crowd = Crowd(url_of(w), clients, 10)
        eventually(lambda: w.metric("weir_client_connections") >= clients and not w.metric("weir_client_logins_pending"), "all are in", 60)
        for name in ("elsewhere", "server", "elsewhere", "server", "elsewhere"):
            certificate.put(name)
            lines = w.log().count("was reloaded")
            w.signal(signal.SIGHUP)
            eventually(lambda before=lines: w.log().count("was reloaded") > before, "it is read")
        assert shown_now(w, starttls) == der("elsewhere")
        assert crowd.process.poll() is None, "they are still at work"
        crowd.assert_nobody_was_dropped(clients)


def crypto_turns(w):
    """How often the threads for slow work of clients' logins have gone to sleep, which they do after each piece of work in calm times."""
    total = 0
    for task in os.scandir(f"/proc/{w.process.pid}/task"):
        with open(os.path.join(task.path, "comm"), encoding="ascii") as f:
            if not re.fullmatch("crypto-[0-9]+\n", f.read()):
                continue
        with open(os.path.join(task.path, "status"), encoding="ascii") as f:
            total += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.MULTILINE)[1])
    return total


def client_hello():
    """A whole one."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["postgresql"])
    out = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        return out.read()
    raise AssertionError("a handshake without a peer")


def handshakes_beside_others(w, stay, begin):
    """While many clients are at work, another thread does the costly part of handshakes. Who leaves, breaks or says nonsense in the
    middle of it harms nobody. `stay` logs a client in by TLS and returns a function that asks it something; `begin` returns a
    socket on which a hello is expected."""
    clients = [stay() for _ in range(120)]
    before, ok = crypto_turns(w), w.metric("weir_client_logins", outcome="ok")
    clients += [stay() for _ in range(30)]
    assert crypto_turns(w) - before >= 30, "another thread answers their hello"
    assert w.metric("weir_client_logins", outcome="ok") == ok + 30
    failed = w.metric("weir_faults_total", kind="client_tls")
    abort = struct.pack("ii", 1, 0)
    for leaves in (lambda s: s.close(), lambda s: (s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, abort), s.close()),
                   lambda s: (s.shutdown(socket.SHUT_WR), s.recv(1 << 16), s.close())):
        for size in (1 << 16, 100):
            for _ in range(10):
                sock = begin()
                sock.sendall(client_hello()[:size])
                leaves(sock)
    for _ in range(10):
        sock = begin()
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert sock.recv(100)[:1] == b"\x15", "an alert"
        assert sock.recv(100) == b"", "and the end"
        sock.close()
    assert w.metric("weir_faults_total", kind="client_tls") >= failed + 10
    # A hello in pieces is answered when it is whole.
    sock = begin()
    hello = client_hello()
    for at in range(0, len(hello), 50):
        sock.sendall(hello[at:at + 50])
    assert sock.recv(1)[:1] == b"\x16"
    sock.close()
    eventually(lambda: w.metric("weir_client_connections") == len(clients) and not w.metric("weir_client_logins_pending"), "the others have gone")
    for ask in clients:
        ask()
