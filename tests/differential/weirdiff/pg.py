"""A small PostgreSQL client: sends what it is told, reads what is owed, and gives it back as plain tuples that can be compared.

Owns: the protocol, and the rules by which two answers count as the same. What is left out of an answer, and why:

- process ids and secrets (BackendKeyData; the pid in a notification): differ by nature;
- a table's oid in RowDescription, beyond whether there is one: temporary tables and tables remade have another each time;
- type oids of 16384 and up become `own`: the same;
- file, line and routine of an error: they name the server's source, not the error;
- numbers in `pg_temp_N` and `pg_toast_temp_N`;
- whether the name of a PL/pgSQL function stands in quotes where an error tells what it came from: by quote_all_identifiers when it was compiled,
  and connections to the database itself are used again;
- which of two views of one name, the temporary one or the other, an error names as depending on a column;
- the position of ParameterStatus and notifications in a reply: what the client knows of each parameter is compared after
  every request, and the notifications of a session as a list.
"""

import re
import socket
import struct
import time

NO_ANSWER = ("no answer",)
CLOSED = ("closed",)
UNPACK_I = struct.Struct("!i").unpack_from
# Where a row lies depends on which transactions were open when others were changed.
PLACE = re.compile(r"tuple \(\d+,\d+\)")
QUOTED = re.compile(r'(?<=PL/pgSQL function )"(\w+)"(?=\()')
TEMP = re.compile(r"pg_(toast_)?temp_\d+")
# Of several views over a column, an error names the one that pg_depend has first.
DEPENDS = re.compile(r"(?<=on view )(?:public|pg_temp_N)\.(?=\w+ depends on column)")


def text(value):
    return value.encode() + b"\0"


def frame(kind, payload=b""):
    return kind + struct.pack("!i", len(payload) + 4) + payload


def encode(message):
    """One message of a script as bytes."""
    kind = message[0]
    if kind == "Q":
        return frame(b"Q", text(message[1]))
    if kind == "P":
        types = message[3] if len(message) > 3 else []
        return frame(b"P", text(message[1]) + text(message[2]) + struct.pack(f"!h{len(types)}I", len(types), *types))
    if kind == "B":
        params = message[3] if len(message) > 3 else []
        results = message[4] if len(message) > 4 else []
        out = text(message[1]) + text(message[2]) + b"\0\0" + struct.pack("!h", len(params))
        for p in params:
            out += b"\xff\xff\xff\xff" if p is None else struct.pack("!i", len(p.encode())) + p.encode()
        return frame(b"B", out + struct.pack(f"!h{len(results)}h", len(results), *results))
    if kind in ("D", "C"):
        return frame(kind.encode(), message[1].encode() + text(message[2]))
    if kind == "E":
        return frame(b"E", text(message[1]) + struct.pack("!i", message[2] if len(message) > 2 else 0))
    if kind in ("S", "H", "c"):
        return frame(kind.encode())
    if kind == "d":
        return frame(b"d", message[1].encode())
    if kind == "f":
        return frame(b"f", text(message[1]))
    if kind == "F":
        args = message[2]
        out = struct.pack("!Ihh", message[1], 0, len(args))
        for a in args:
            out += b"\xff\xff\xff\xff" if a is None else struct.pack("!i", len(a.encode())) + a.encode()
        return frame(b"F", out + b"\0\0")
    raise ValueError(f"no message {kind}")


def owed(messages):
    """How many ReadyForQuery a request is answered with."""
    return sum(1 for m in messages if m[0] in ("Q", "S", "F"))


class Client:
    """One connection. `reply` never raises for what the other side does: it says so in the answer."""

    def __init__(self, address, params, bound_s):
        self.buffer = bytearray()
        self.params = {}
        self.notifications = []
        self.status = "I"
        self.pid = 0
        self.alive = True
        self.sock = socket.create_connection(address, timeout=bound_s)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = b"\0\3\0\0" + b"".join(text(k) + text(v) for k, v in params.items()) + b"\0"
        self.sock.sendall(struct.pack("!i", len(body) + 4) + body)
        self.greeting = self.reply(1, bound_s)

    def send(self, messages):
        try:
            self.sock.sendall(b"".join(map(encode, messages)))
        except OSError:
            self.alive = False

    def reply(self, count, bound_s):
        """What comes up to the `count`th ReadyForQuery, as a list of tuples."""
        out = []
        deadline = time.monotonic() + bound_s
        buffer = self.buffer
        at = 0
        while count:
            if len(buffer) - at < 5 or len(buffer) - at < (size := UNPACK_I(buffer, at + 1)[0] + 1):
                del buffer[:at]
                at = 0
                left = deadline - time.monotonic()
                if left <= 0:
                    out.append(NO_ANSWER)
                    self.alive = False
                    break
                self.sock.settimeout(left)
                try:
                    got = self.sock.recv(65536)
                except TimeoutError:
                    continue
                except OSError:
                    got = b""
                if not got:
                    out.append(CLOSED)
                    self.alive = False
                    break
                buffer += got
                continue
            kind, payload = chr(buffer[at]), bytes(buffer[at + 5:at + size])
            at += size
            event = self.take(kind, payload)
            if event is not None:
                out.append(event)
            count -= kind == "Z"
        del buffer[:at]
        return out

    def poll(self, wait_s):
        """Takes what has come by itself, notifications above all; first of all what came together with the last reply."""
        if self.take_buffered():
            return True
        self.sock.settimeout(max(wait_s, 0.0005))
        try:
            got = self.sock.recv(65536)
        except TimeoutError:
            return False
        except OSError:
            got = b""
        if not got:
            self.alive = False
            return False
        self.buffer += got
        self.take_buffered()
        return True

    def take_buffered(self):
        """Takes what is whole of what has been read. False if nothing is."""
        before = len(self.buffer)
        out = []
        while len(self.buffer) >= 5 and len(self.buffer) >= (size := UNPACK_I(self.buffer, 1)[0] + 1):
            event = self.take(chr(self.buffer[0]), bytes(self.buffer[5:size]))
            del self.buffer[:size]
            if event is not None:
                out.append(event)
        self.stray = [*getattr(self, "stray", ()), *out]
        return len(self.buffer) != before

    def take(self, kind, payload):
        if kind == "D":
            return ("row", *row(payload))
        if kind == "Z":
            self.status = payload.decode()
            return ("ready", self.status)
        if kind == "C":
            return ("done", payload[:-1].decode())
        if kind == "T":
            return ("columns", *columns(payload))
        if kind == "E":
            return ("error", *fields(payload))
        if kind == "N":
            return ("notice", *fields(payload))
        if kind == "S":
            name, value = payload[:-1].decode("utf-8", "backslashreplace").split("\0")
            self.params[name] = value
            return None
        if kind == "A":
            channel, said = payload[4:-1].decode().split("\0")
            self.notifications.append((channel, said))
            return None
        if kind == "K":
            self.pid = UNPACK_I(payload)[0]
            return None
        if kind == "R":
            return ("auth", UNPACK_I(payload)[0])
        if kind == "t":
            return ("parameters", *(mask(o) for o in struct.unpack(f"!{len(payload) // 4}I", payload[2:])))
        return ({"1": "parsed", "2": "bound", "3": "closed it", "n": "no data", "I": "empty", "s": "suspended", "G": "copy in",
                 "H": "copy out", "W": "copy both", "d": "copy data", "c": "copy done", "V": "function"}.get(kind, kind),
                payload.decode("utf-8", "backslashreplace"))

    def close(self, politely=True):
        try:
            if politely:
                self.sock.sendall(b"X\0\0\0\4")
            else:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
        self.sock.close()
        self.alive = False

    def ask(self, sql, bound_s=20):
        """A simple query of the tester itself: rows; raises."""
        self.send([["Q", sql]])
        got = self.reply(1, bound_s)
        for event in got:
            if event[0] in ("error", "closed", "no answer"):
                raise RuntimeError(f"{event} for {sql}")
        return [event[1:] for event in got if event[0] == "row"]


def row(payload):
    count, at, out = struct.unpack_from("!h", payload)[0], 2, []
    for _ in range(count):
        n = UNPACK_I(payload, at)[0]
        at += 4
        if n < 0:
            out.append(None)
        else:
            value = payload[at:at + n].decode("utf-8", "backslashreplace")
            out.append(TEMP.sub(r"pg_\1temp_N", value) if "pg_t" in value else value)
            at += n
    return out


def mask(oid):
    return oid if oid < 16384 else "own"


def columns(payload):
    count, at, out = struct.unpack_from("!h", payload)[0], 2, []
    for _ in range(count):
        end = payload.index(b"\0", at)
        table, number, kind, size, modifier, form = struct.unpack_from("!IhIhih", payload, end + 1)
        out.append((payload[at:end].decode(), table != 0, number, mask(kind), size, modifier, form))
        at = end + 19
    return out


def fields(payload):
    out = []
    # They name the server's source, not the error; but by the routine of this one drivers know that they must prepare again.
    left_out = b"FL" if b"\0C0A000\0" in payload else b"FLR"
    for part in payload.split(b"\0"):
        if part and part[:1] not in left_out:
            said = TEMP.sub(r"pg_\1temp_N", part.decode("utf-8", "backslashreplace"))
            said = QUOTED.sub(r"\1", PLACE.sub("tuple (N,N)", said)) if said[0] == "W" else said
            out.append(DEPENDS.sub("", said) if said[0] == "D" else said)
    if "CXX000" in out:
        # An internal error: PostgreSQL says numbers of its catalogue, and where it has come upon them.
        return [re.sub(r"\d+", "N", said) for said in out if said[0] != "W"]
    return out
