"""A PostgreSQL client that does nothing by itself: builds messages, sends bytes, reads messages. For tests that must decide
every byte. Protocol 3.0, chapter 55 of the manual."""

import base64
import hashlib
import hmac
import itertools
import os
import re
import socket
import struct

DEADLINE_S = 30


class Closed(Exception):
    """The other side closed the connection."""


# --- Messages a client sends ---------------------------------------------------------------------------------------


def message(kind, payload=b""):
    return kind + struct.pack("!i", len(payload) + 4) + payload


def text(value):
    return value.encode() + b"\0" if isinstance(value, str) else value + b"\0"


def query(sql):
    return message(b"Q", text(sql))


def parse(sql, name="", types=()):
    return message(b"P", text(name) + text(sql) + struct.pack("!h", len(types)) + b"".join(struct.pack("!I", t) for t in types))


def bind(params=(), statement="", portal="", formats=(), results=()):
    out = text(portal) + text(statement) + struct.pack("!h", len(formats)) + b"".join(struct.pack("!h", f) for f in formats)
    out += struct.pack("!h", len(params))
    for p in params:
        if p is None:
            out += struct.pack("!i", -1)
        else:
            p = p.encode() if isinstance(p, str) else p
            out += struct.pack("!i", len(p)) + p
    return message(b"B", out + struct.pack("!h", len(results)) + b"".join(struct.pack("!h", f) for f in results))


def describe(what, name=""):
    return message(b"D", what.encode() + text(name))


def execute(portal="", limit=0):
    return message(b"E", text(portal) + struct.pack("!i", limit))


def close(what, name=""):
    return message(b"C", what.encode() + text(name))


SYNC = message(b"S")
FLUSH = message(b"H")
TERMINATE = message(b"X")
COPY_DONE = message(b"c")


def copy_data(data):
    return message(b"d", data)


def copy_fail(why):
    return message(b"f", text(why))


def function_call(oid, args, formats=(), result=0):
    out = struct.pack("!Ih", oid, len(formats)) + b"".join(struct.pack("!h", f) for f in formats) + struct.pack("!h", len(args))
    for a in args:
        out += struct.pack("!i", -1) if a is None else struct.pack("!i", len(a)) + a
    return message(b"F", out + struct.pack("!h", result))


def startup(params, version=(3, 0)):
    body = struct.pack("!HH", *version) + b"".join(text(k) + text(v) for k, v in params.items()) + b"\0"
    return struct.pack("!i", len(body) + 4) + body


SSL_REQUEST = struct.pack("!iI", 8, 80877103)
GSSENC_REQUEST = struct.pack("!iI", 8, 80877104)


def cancel_request(pid, secret):
    return struct.pack("!iII", 12 + len(secret), 80877102, pid) + secret


# --- The connection ------------------------------------------------------------------------------------------------


class Wire:
    """A connection, logged in unless told otherwise."""

    def __init__(self, target, params=None, login=True, version=(3, 0)):
        self.sock = socket.create_connection((target.host, target.port), timeout=DEADLINE_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.target = target
        self.buffer = bytearray()
        self.pid = self.secret = None
        self.greeting = []
        if login:
            self.login(params or {}, version)

    def send(self, data, piece=None):
        """`piece`: so many bytes at a time, each in a packet of its own."""
        if piece is None:
            self.sock.sendall(data)
        else:
            for i in range(0, len(data), piece):
                self.sock.sendall(data[i:i + piece])

    def exactly(self, n):
        while len(self.buffer) < n:
            got = self.sock.recv(1 << 18)
            if not got:
                raise Closed(bytes(self.buffer))
            self.buffer += got
        out = bytes(self.buffer[:n])
        del self.buffer[:n]
        return out

    def read(self):
        """The next message: (kind, payload)."""
        head = self.exactly(5)
        length = struct.unpack("!i", head[1:])[0]
        assert length >= 4, f"message {head!r} has an impossible length"
        return head[:1].decode("latin1"), self.exactly(length - 4)

    def until(self, kind, count=1):
        """Messages up to and with the `count`th one of `kind`."""
        out = []
        while count:
            m = self.read()
            out.append(m)
            count -= m[0] == kind
        return out

    def login(self, params, version=(3, 0)):
        t = self.target
        params = {"user": t.user, "database": t.database, **params}
        self.send(startup(params, version))
        while True:
            kind, payload = self.read()
            self.greeting.append((kind, payload))
            if kind == "R":
                self.answer(payload)
            elif kind == "K":
                self.pid, self.secret = struct.unpack("!I", payload[:4])[0], payload[4:]
            elif kind == "E":
                raise LoginRefused(fields(payload))
            elif kind == "Z":
                return

    def answer(self, payload):
        t = self.target
        code = struct.unpack("!i", payload[:4])[0]
        if code == 3:
            self.send(message(b"p", text(t.password)))
        elif code == 5:
            inner = hashlib.md5(t.password.encode() + t.user.encode()).hexdigest()
            self.send(message(b"p", text("md5" + hashlib.md5(inner.encode() + payload[4:8]).hexdigest())))
        elif code == 10:
            self.scram_first()
        elif code == 11:
            self.scram_final(payload[4:])
        elif code == 12:
            assert payload[4:] == b"v=" + base64.b64encode(self.scram_proof), "the server does not know the password"
        else:
            assert code == 0, f"authentication request {code}"

    def scram_first(self):
        self.scram_bare = b"n=,r=" + base64.b64encode(os.urandom(18))
        first = b"n,," + self.scram_bare
        self.send(message(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first))

    def scram_final(self, server_first):
        parts = dict(p.split(b"=", 1) for p in server_first.split(b","))
        salted = hashlib.pbkdf2_hmac("sha256", self.target.password.encode(), base64.b64decode(parts[b"s"]), int(parts[b"i"]))
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        without_proof = b"c=biws,r=" + parts[b"r"]
        signed = self.scram_bare + b"," + server_first + b"," + without_proof
        signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self.scram_proof = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256")
        self.send(message(b"p", without_proof + b",p=" + base64.b64encode(proof)))

    def ask(self, sql):
        """A simple query: rows as lists of text; raises ServerError."""
        self.send(query(sql))
        rows, error, kind = [], None, None
        while kind != "Z":
            try:
                kind, payload = self.read()
            except (Closed, ConnectionError):
                if error is None:
                    raise
                break  # the last words before the end
            if kind == "D":
                rows.append(row(payload))
            elif kind == "E":
                error = error or fields(payload)
        if error:
            raise ServerError(error)
        return rows

    def closed_by_peer(self):
        """Reads until the end of the stream; returns the messages before it."""
        out = []
        try:
            while True:
                out.append(self.read())
        except (Closed, ConnectionResetError, BrokenPipeError):
            return out

    def close(self, politely=True):
        try:
            if politely:
                self.sock.sendall(TERMINATE)
        except OSError:
            pass
        self.sock.close()

    def vanish(self):
        """Closes with a reset, as a crashed or cut-off client does."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class ServerError(Exception):
    def __init__(self, found):
        self.code = found.get("C")
        super().__init__(f"{found.get('S')} {self.code} {found.get('M')}")


class LoginRefused(ServerError):
    pass


# --- What came, as text that can be compared -----------------------------------------------------------------------


def fields(payload):
    return {p[:1].decode(): p[1:].decode(errors="replace") for p in payload.split(b"\0") if p}


def row(payload):
    count, at, out = struct.unpack("!h", payload[:2])[0], 2, []
    for _ in range(count):
        n = struct.unpack("!i", payload[at:at + 4])[0]
        at += 4
        if n < 0:
            out.append(None)
        else:
            out.append(payload[at:at + n].decode("utf-8", "backslashreplace"))
            at += n
    assert at == len(payload), "a DataRow is longer than its columns"
    return out


def columns(payload):
    """A RowDescription; of the table's oid only whether there is one (temporary tables have another in each session)."""
    count, at, out = struct.unpack("!h", payload[:2])[0], 2, []
    for _ in range(count):
        end = payload.index(b"\0", at)
        table, *rest = struct.unpack("!IhIhih", payload[end + 1:end + 19])
        out.append(f"{payload[at:end].decode(errors='replace')} {table != 0} {rest}")
        at = end + 19
    assert at == len(payload), "a RowDescription is longer than its columns"
    return out if count < 40 else [count, hashlib.md5(repr(out).encode()).hexdigest()]


def plain(messages):
    """Messages with what differs by nature masked: process ids, secrets, numbers of temporary schemas. Long rows become
    their length and digest. ParameterStatus messages that follow each other are sorted: from PostgreSQL 16 on, a reset
    of several settings reports them in the order in which they were set."""
    out = []
    for kind, payload in messages:
        if kind in "EN":
            out.append([kind, {k: re.sub(r"pg_temp_\d+", "pg_temp_N", v) for k, v in fields(payload).items()}])
        elif kind == "D":
            cells = [c if c is None or len(c) < 200 else f"{len(c)} {hashlib.md5(c.encode()).hexdigest()}" for c in row(payload)]
            out.append([kind, cells])
        elif kind == "K":
            out.append([kind])
        elif kind == "A":
            out.append([kind, payload[4:].decode(errors="replace")])
        elif kind == "T":
            out.append([kind, columns(payload)])
        else:
            out.append([kind, payload.decode("utf-8", "backslashreplace")])
    return [message for is_status, run in itertools.groupby(out, lambda message: message[0] == "S")
            for message in (sorted(run) if is_status else run)]
