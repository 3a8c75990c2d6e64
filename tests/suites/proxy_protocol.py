"""Behind a load balancer that says by a PROXY header whose connection it forwards: who is believed, what is refused, and that the
client behind it is the one that is meant, with and without TLS."""

import os
import socket
import ssl
import struct

import psycopg
import pymysql

from weirtest import mywire, pgwire
from weirtest.balancer import Balancer
from weirtest.case import eventually, weir
from weirtest.certs import certificates
from weirtest.mywire import MyError
from weirtest.pgwire import startup
from weirtest.target import PASSWORD, server_env
from weirtest.weir import Weir

SERVERS = ["postgres", "mariadb", "mysql"]

Closed = (pgwire.Closed, mywire.Closed)
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def v1(words="TCP4 192.0.2.77 10.0.0.1 40123 6432"):
    return f"PROXY {words}\r\n".encode()


def v2(command=0x21, family=0x11, body=socket.inet_aton("192.0.2.77") + socket.inet_aton("10.0.0.1") + struct.pack("!HH", 40123, 6432)):
    return SIGNATURE + struct.pack("!BBH", command, family, len(body)) + body


def before(kind, networks="127.0.0.1", *settings):
    section = "postgres" if kind == "postgres" else "mysql"
    return Weir.before(kind, settings=[f"{section}.proxy_protocol_networks={networks}", "log.log_connections=true", *settings])


class Behind:
    """A client whose first bytes are `header`, in pieces of so many bytes."""

    def __init__(self, w, header, piece=None):
        kind = pgwire.Wire if w.kind == "postgres" else mywire.Wire
        self.wire = kind(w.target(), login=False)
        self.wire.send(header, piece)

    def login(self):
        if isinstance(self.wire, pgwire.Wire):
            self.wire.login({}, (3, 0))
        else:
            self.wire.login(45, None)
        assert self.wire.ask("select 1") == [["1"]]
        return self.wire


def says(w, text, times=1):
    eventually(lambda: w.log().count(text) >= times, f"the log says {text}; it is:\n{w.log()[-2000:]}")


@weir
def the_header_says_who_the_client_is(context):
    with before(context.kind) as w:
        seen = 0
        for header, who in (
            (v1(), "192.0.2.77:40123"),
            (v1("TCP6 2001:db8::77 ::1 40123 6432"), "[2001:db8::77]:40123"),
            (v1("UNKNOWN"), "address=unknown"),
            (v2(), "192.0.2.77:40123"),
            (v2(body=socket.inet_aton("192.0.2.78") + bytes(4) + struct.pack("!HH", 7, 8) + b"\x20\0\x05\x01\0\0\0\0" + b"\x04\x01\0" + bytes(256)),
             "192.0.2.78:7"),
            (v2(family=0x21, body=socket.inet_pton(socket.AF_INET6, "2001:db8::77") + bytes(16) + struct.pack("!HH", 40123, 1)),
             "[2001:db8::77]:40123"),
            (v2(family=0x31, body=b"/run/x".ljust(216, b"\0")), "address=unknown"),
            (v2(family=0, body=b"whatever"), "address=unknown"),
            (v2(command=0x20, family=0, body=b""), "127.0.0.1:"),
        ):
            for piece in (None, 1):
                Behind(w, header, piece).login().close()
                seen += 1
                lines = eventually(lambda n=seen: (l := [x for x in w.log().splitlines() if "login" in x and "address=" in x]) and len(l) >= n and l,
                                   "the login is in the log")
                assert who in lines[-1], (header, lines[-1])


@weir(only="postgres")
def header_and_login_may_come_together(context):
    """In one packet, as HAProxy sends them when the client was quick."""
    with before(context.kind) as w:
        wire = pgwire.Wire(w.target(), login=False)
        wire.send(v2() + startup({"user": "app_scram", "database": "app"}))
        kind, payload = wire.read()
        assert kind == "R" and b"SCRAM-SHA-256" in payload, (kind, payload)
        wire.sock.close()


@weir
def a_balancer_without_a_header_is_refused(context):
    protocol = "postgres" if context.kind == "postgres" else "mysql"
    with before(context.kind) as w:
        first = startup({"user": "app_scram", "database": "app"}) if context.kind == "postgres" else b"\x4a\0\0\1"
        bad = (first, b"GET / HTTP/1.0\r\n\r\n", v1("TCP4 192.0.2.77 10.0.0.1 40123"), v1("TCP4 192.0.2.77"), v2(command=0x2F), v2(family=0x12),
               v2(body=b"short"), SIGNATURE + b"\x21\x11\xff\xff", b"PROXY " + b"x" * 200)
        for number, header in enumerate(bad, 1):
            client = Behind(w, header)
            try:
                seen = client.wire.exactly(1 << 16)
            except Closed as e:
                seen = e.args[0]
            assert b"PROXY header" in seen, (header, seen)
            w.reaches("weir_faults", number, protocol=protocol, kind="proxy_header")
            client.wire.sock.close()
        says(w, "proxy_header", len(bad))
        Behind(w, v1()).login().close()


@weir
def nobody_else_is_believed(context):
    with before(context.kind, "192.0.2.0/24,unix") as w:
        Behind(w, b"").login().close()
        if context.kind == "postgres":
            # It stands where a startup packet must.
            client = Behind(w, v1())
            kind, payload = client.wire.read()
            assert kind == "E", (kind, payload)
        else:
            client = Behind(w, v1())
            try:
                client.login()
                raise AssertionError("a header of a stranger was taken")
            except (MyError, *Closed, AssertionError, OSError) as e:
                assert "was taken" not in str(e), e


@weir
def a_header_that_does_not_come_ends_with_the_login_timeout(context):
    with before(context.kind, "127.0.0.1", "limits.client_login_timeout=1") as w:
        for begun in (b"", v1()[:20], v2()[:20]):
            client = Behind(w, begun)
            try:
                client.wire.exactly(1 << 16)
            except Closed as e:
                assert len(e.args[0]) > 0, "the client is told why"


@weir(only="postgres")
def who_is_not_named_is_not_let_in_as_local(context):
    """A URL without a password lets its user in from this machine only; a balancer on this machine brings others too."""
    url = f"postgres://app_trust@127.0.0.1:{server_env('postgres', 'PORT')}/app"
    with Weir("postgres", [url, "--set", "postgres.proxy_protocol_networks=127.0.0.1"], name="local") as w:
        for header, method in ((v2(command=0x20, family=0, body=b""), 0), (v1(), 10), (v1("UNKNOWN"), 10), (v2(family=0x31, body=bytes(216)), 10)):
            client = Behind(w, header)
            client.wire.send(startup({"user": "app_trust", "database": "app"}))
            kind, payload = client.wire.read()
            assert kind == "R" and struct.unpack("!i", payload[:4])[0] == method, (header, kind, payload)
            client.wire.sock.close()


def connect(kind, port, tls):
    if kind == "postgres":
        c = psycopg.connect(host="127.0.0.1", port=port, user="app_scram", password=PASSWORD, dbname="app", autocommit=True,
                            sslmode="require" if tls else "disable", channel_binding="require" if tls else "prefer")
        assert bool(c.pgconn.ssl_in_use) == tls
        return c
    how = {"ssl": {"check_hostname": False, "verify_mode": "none"}} if tls else {"ssl_disabled": True}
    c = pymysql.connect(host="127.0.0.1", port=port, user="app", password=PASSWORD, database="app", **how)
    assert isinstance(c._sock, ssl.SSLSocket) == tls
    return c


@weir
def behind_haproxy(context):
    """Both versions, clear and with TLS behind the header; its own checks pass and are told from clients."""
    own = certificates()[0]
    settings = ("tls.client.sslmode=prefer", f"tls.client.cert_file={own.path('server.pem')}", f"tls.client.key_file={own.path('server.key')}")
    with before(context.kind, "127.0.0.1", *settings) as w:
        for send in ("send-proxy", "send-proxy-v2", "send-proxy-v2-ssl-cn"):
            with Balancer(w, send, "check", "inter 100ms") as balancer:
                for tls in (False, True):
                    with connect(context.kind, balancer.port, tls) as c, c.cursor() as cursor:
                        cursor.execute("select 7")
                        assert cursor.fetchone() == (7,)
                        descriptor = c.pgconn.socket if context.kind == "postgres" else c._sock.fileno()
                        with socket.socket(fileno=os.dup(descriptor)) as s:
                            port = s.getsockname()[1]
                        says(w, f"address=127.0.0.1:{port}")


@weir
def a_peer_that_is_not_named_cannot_name_an_address(context):
    """ProxySQL CVE-2026-48772: addresses behind PROXY UNKNOWN were believed; GHSA-7r26-v5rr-ccj5: long ones overflowed a buffer."""
    with before(context.kind) as w:
        for header in (v1("UNKNOWN 192.0.2.99 192.0.2.98 1 2"), v1("UNKNOWN " + "9" * 80)):
            Behind(w, header).login().close()
        for header in (v1("TCP4 " + "1" * 200 + " 10.0.0.1 1 2"), v1("TCP4 1.2.3.4"), v1("x" * 4_000), v1("TCP6 1.2.3.4 ::1 1 2")):
            with socket.create_connection(("127.0.0.1", w.port), timeout=30) as s:
                try:
                    s.sendall(header)
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(65536):
                        pass
                except ConnectionError:
                    pass
        assert "192.0.2.99" not in w.log()
        w.check_log()
