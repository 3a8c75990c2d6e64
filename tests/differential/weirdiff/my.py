"""A small MySQL and MariaDB client: sends what it is told, reads what is owed, and gives it back as plain tuples that can be
compared.

Owns: the protocol, and the rules by which two answers count as the same. What is left out of an answer, and why:

- statement ids and connection ids: differ by nature;
- of the status flags those that tell of plans and time (no index used, no good index used, slow, metadata changed), and
  SESSION_STATE_CHANGED unless the client asked for the session tracker: the servers themselves differ with what is cached;
- between columns and rows (the first EOF of a result) all but whether a cursor is open: it is of before the statement;
- the names of the two schemas, which are others on each side: what Weir's side says is turned into the direct side's names.
"""

import re
import socket
import struct
import time

from .pg import CLOSED, NO_ANSWER

PACKET_MAX = (1 << 24) - 1
LONG_PASSWORD, FOUND_ROWS, LONG_FLAG, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS = 1, 2, 4, 8, 1 << 9, 1 << 13
LOCAL_FILES = 128
SECURE, MULTI_STATEMENTS, MULTI_RESULTS, PS_MULTI, PLUGIN_AUTH = 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19
SESSION_TRACK, DEPRECATE_EOF = 1 << 23, 1 << 24
BASIC = (LONG_PASSWORD | LONG_FLAG | CONNECT_WITH_DB | PROTOCOL_41 | TRANSACTIONS | SECURE | MULTI_STATEMENTS | MULTI_RESULTS | PS_MULTI
         | PLUGIN_AUTH)
IN_TRANS, MORE, CURSOR, LAST_ROW, STATE_CHANGED = 1, 8, 0x40, 0x80, 0x4000
STATUS = IN_TRANS | 2 | MORE | CURSOR | LAST_ROW | 0x100 | 0x200 | 0x1000 | 0x2000
CODES = {"Q": 3, "prep": 0x16, "exec": 0x17, "typed": 0x17, "long": 0x18, "longx": 0x18, "sclose": 0x19, "sreset": 0x1A, "fetch": 0x1C, "ping": 14, "init": 2,
         "reset": 0x1F, "change": 0x11, "option": 0x1B, "fields": 4}
SILENT = ("sclose", "long", "longx")
# What a script's `flags` add to the capabilities, and take from them.
ADDED = {"eof": DEPRECATE_EOF, "track": SESSION_TRACK, "found": FOUND_ROWS, "local": LOCAL_FILES, "ignore": 256}
TAKEN = {"one": MULTI_STATEMENTS, "noresults": MULTI_STATEMENTS | MULTI_RESULTS | PS_MULTI, "nops": PS_MULTI}
# MariaDB's id of the statement prepared last.
LAST_PREPARED = "-1"


def lenenc(n):
    if n < 251:
        return bytes([n])
    if n < 1 << 16:
        return b"\xfc" + struct.pack("<H", n)
    return b"\xfd" + struct.pack("<I", n)[:3]


def string(data):
    return lenenc(len(data)) + data


def read_lenenc(data, at):
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    if first == 0xFB:
        return None, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1:at + 1 + size], "little"), at + 1 + size


def read_string(data, at):
    n, at = read_lenenc(data, at)
    return (None, at) if n is None else (data[at:at + n], at + n)


def said(data):
    return None if data is None else data.decode("utf-8", "backslashreplace")


class NoMore(Exception):
    """The other side closed, or did not answer in time."""

    def __init__(self, event):
        self.event = event


class Client:
    """One connection. `schema`: the main schema's name on this side; `like`: its name on the direct side."""

    def __init__(self, address, user, schema, like, params, bound_s):
        self.schema, self.like = schema.encode(), like.encode()
        self.user = user
        self.capabilities = BASIC
        for word in params.get("flags", "").split():
            self.capabilities = (self.capabilities | ADDED.get(word, 0)) & ~TAKEN.get(word, 0)
            assert word in ADDED or word in TAKEN, word
        self.buffer = bytearray()
        self.params = {}
        self.notifications = []
        self.statements = {}
        self.status = "I"
        self.warned = False
        self.alive = True
        self.thread = 0
        if isinstance(address, str):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(address)
        else:
            self.sock = socket.create_connection(address, timeout=bound_s)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.deadline = time.monotonic() + bound_s
        self.greeting = []
        try:
            self.login(params)
        except NoMore as e:
            self.greeting.append(e.event)

    # --- Packets ---

    def write(self, payload, seq=0):
        out = b""
        while True:
            part, payload = payload[:PACKET_MAX], payload[PACKET_MAX:]
            out += struct.pack("<I", len(part))[:3] + bytes([seq & 0xFF]) + part
            seq += 1
            if len(part) < PACKET_MAX:
                break
        try:
            self.sock.sendall(out)
        except OSError:
            self.alive = False
        self.seq = seq

    def fill(self, n):
        while len(self.buffer) < n:
            left = self.deadline - time.monotonic()
            if left <= 0:
                self.alive = False
                raise NoMore(NO_ANSWER)
            self.sock.settimeout(left)
            try:
                got = self.sock.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                got = b""
            if not got:
                self.alive = False
                raise NoMore(CLOSED)
            self.buffer += got

    def read(self):
        self.fill(4)
        length = int.from_bytes(self.buffer[:3], "little")
        self.number = self.buffer[3]
        self.fill(4 + length)
        out = bytes(self.buffer[4:4 + length])
        del self.buffer[:4 + length]
        if self.schema != self.like:
            out = out.replace(self.schema, self.like)
        return out

    # --- Login ---

    def login(self, params):
        first = self.read()
        if first[:1] == b"\xff":
            self.greeting.append(self.error(first))
            self.alive = False
            return
        end = first.index(b"\0", 1)
        self.thread = struct.unpack_from("<I", first, end + 1)[0]
        self.greeting.append(("version", first[1:end].decode(), first[end + 16]))
        self.plugin = first[end + 45:].split(b"\0")[0]
        schema = self.named(params.get("schema", "%db%")).encode()
        body = struct.pack("<IIB23x", self.capabilities, 1 << 30, params.get("charset", 45)) + self.user.encode() + b"\0\0" + schema + b"\0"
        self.write(body + self.plugin + b"\0", 1)
        self.greeting.append(self.login_end())
        if self.greeting[-1][0] != "ok":
            self.alive = False

    def login_end(self):
        while True:
            packet = self.read()
            if packet[:1] == b"\xff":
                return self.error(packet)
            if packet[:1] == b"\0":
                *said, tracked = self.ok(packet)
                if any("redirect_url" in str(change) for change in tracked):
                    # MariaDB 11 tells its variables here, and Weir does not (docs/src/pins.md, What is not the client's own).
                    tracked = tuple(change for change in tracked if change[0] != 0)
                return (*said, tracked)
            if packet[:1] == b"\xfe":
                self.write(b"", self.number + 1)
            elif packet != b"\x01\x03":
                return ("login", repr(packet))

    def named(self, text):
        return text.replace("%db%", self.schema.decode()).replace("%id%", str(self.thread))

    # --- Commands ---

    def payload(self, message):
        kind = message[0]
        if kind == "raw":
            return bytes.fromhex(message[1])
        code = bytes([CODES[kind]])
        if kind in ("Q", "init", "fields"):
            return code + self.named(message[1]).encode() + (b"\0" if kind == "fields" else b"")
        if kind == "prep":
            return code + self.named(message[2]).encode()
        if kind in ("sclose", "sreset"):
            return code + struct.pack("<I", self.statement(message[1])[0])
        if kind == "fetch":
            return code + struct.pack("<II", self.statement(message[1])[0], message[2])
        if kind in ("long", "longx"):
            data = message[3].encode() if kind == "long" else bytes.fromhex(message[3])
            return code + struct.pack("<IH", self.statement(message[1])[0], message[2]) + data
        if kind == "exec":
            return code + self.execute(*message[1:])
        if kind == "typed":
            return code + self.execute_typed(*message[1:])
        if kind == "change":
            return code + self.user.encode() + b"\0\0" + self.named(message[1]).encode() + b"\0" + struct.pack("<H", 45) + self.plugin + b"\0"
        if kind == "option":
            return code + struct.pack("<H", message[1])
        return code

    def statement(self, name, parameters=0):
        """Its number, and how many parameters it has."""
        if name == LAST_PREPARED:
            return 0xFFFFFFFF, parameters
        return self.statements.get(name, (9999, parameters))

    def execute_typed(self, name, values, flags=0, types=True):
        """`values`: type, whether it is unsigned, and the bytes in hexadecimal; null, or "long" for what was sent in parts before."""
        number, count = self.statement(name, len(values))
        out = struct.pack("<IBI", number, flags, 1)
        values = [*values, *[[6, 0, None]] * count][:count]
        if count:
            nulls = bytearray((count + 7) // 8)
            for i, (_, _, data) in enumerate(values):
                if data is None:
                    nulls[i // 8] |= 1 << i % 8
            out += bytes(nulls) + bytes([bool(types)])
            if types:
                out += b"".join(bytes([kind, 0x80 if unsigned else 0]) for kind, unsigned, _ in values)
            out += b"".join(bytes.fromhex(data) for _, _, data in values if data not in (None, "long"))
        return out

    def execute(self, name, values=(), flags=0, types=True):
        number, count = self.statement(name, len(values))
        out = struct.pack("<IBI", number, flags, 1)
        values = [*values, *[None] * count][:count]
        if count:
            nulls = bytearray((count + 7) // 8)
            for i, v in enumerate(values):
                if v is None:
                    nulls[i // 8] |= 1 << i % 8
            out += bytes(nulls) + (b"\x01" + b"\xfd\x00" * count if types else b"\0")
            # True: what was sent in parts before.
            out += b"".join(string(self.named(v).encode()) for v in values if v is not None and v is not True)
        return out

    def ask_for(self, messages, _place):
        """Sends the first command, or all of a pipeline; what follows is sent by `answer`."""
        if messages[0][0] == "pipeline":
            rest = messages[1:]
            data = b""
            for message in rest:
                payload = self.payload(message)
                data += struct.pack("<I", len(payload))[:3] + b"\0" + payload
            try:
                self.sock.sendall(data)
            except OSError:
                self.alive = False
            return rest, True
        self.write(self.payload(messages[0]))
        return messages, False

    def answer(self, owed, bound_s):
        messages, sent = owed
        self.deadline = time.monotonic() + bound_s
        out = []
        self.warned = False
        try:
            for i, message in enumerate(messages):
                if i and not sent:
                    self.write(self.payload(message))
                self.warned = False
                self.reply(message, out)
        except NoMore as e:
            out.append(e.event)
        if self.status != "T":
            # What a statement says by SHOW WARNINGS afterwards stays on its server, so this client may keep it.
            self.status = "W" if self.warned else "I"
        return out

    def poll(self, _wait_s):
        return False

    # --- Replies ---

    def reply(self, message, out):
        kind = message[0]
        if kind in SILENT:
            if kind == "sclose":
                self.statements.pop(message[1], None)
            return
        if kind == "prep":
            self.prepared(message[1], out)
        elif kind == "fetch":
            self.rows(out, True, "row")
        elif kind == "fields":
            self.rows(out, False, "column")
        elif kind == "change":
            out.append(self.login_end())
            self.statements = {}
        elif kind == "raw":
            # Its reply: a result as of a text or of an execution, or none.
            while message[2] != "silent" and self.result(out, message[2] == "exec"):
                pass
        elif kind == "option":
            packet = self.read()
            out.append(self.error(packet) if packet[:1] == b"\xff" else ("option set",))
        else:
            while self.result(out, kind in ("exec", "typed")):
                pass
            if kind == "reset":
                self.statements = {}

    def result(self, out, binary):
        first = self.read()
        if first[:1] == b"\0":
            out.append(self.ok(first))
            return out[-1][3] & MORE
        if first[:1] == b"\xff":
            out.append(self.error(first))
            return False
        if first[:1] == b"\xfb":
            out.append(("local infile", said(first[1:])))
            if not self.capabilities & LOCAL_FILES:
                self.write(b"", self.number + 1)
                return True
            self.write(b"given\t1\nagain\t2\n", self.number + 1)
            self.write(b"", self.seq)
            return True
        columns = [self.column(self.read()) for _ in range(read_lenenc(first, 0)[0])]
        out.append(("columns", *columns))
        if not self.capabilities & DEPRECATE_EOF:
            status = struct.unpack_from("<H", self.read(), 3)[0]
            if status & (CURSOR | MORE) == CURSOR:
                out.append(("cursor",))
                return False
        types = [(c[8], c[9]) for c in columns]
        return self.rows(out, binary, "row", types) & MORE

    def rows(self, out, binary, what, types=None):
        """Up to the packet that ends them; its status."""
        while True:
            packet = self.read()
            if packet[:1] == b"\xff":
                out.append(self.error(packet))
                return 0
            if packet[:1] == b"\xfe" and len(packet) < PACKET_MAX and (self.capabilities & DEPRECATE_EOF or len(packet) < 9):
                if self.capabilities & DEPRECATE_EOF:
                    out.append(self.ok(packet, "end"))
                    return out[-1][3]
                warnings, status = struct.unpack_from("<HH", packet, 1)
                self.note(status, warnings)
                out.append(("end", warnings, status & STATUS))
                return status
            if what == "column":
                out.append(("column", *self.column(packet)))
            elif binary:
                out.append(("row", packet.hex()))
            else:
                row, at = [], 0
                while at < len(packet):
                    value, at = read_string(packet, at)
                    row.append(said(value))
                out.append(("row", *row))

    def prepared(self, name, out):
        first = self.read()
        if first[:1] == b"\xff":
            out.append(self.error(first))
            return
        number, columns, params, _, warnings = struct.unpack_from("<IHHBH", first, 1)
        self.statements[name] = (number, params)
        out.append(("prepared", columns, params, warnings))
        for count in (params, columns):
            for _ in range(count):
                out.append(("column", *self.column(self.read())))
            if count and not self.capabilities & DEPRECATE_EOF:
                self.read()

    # --- Payloads ---

    def note(self, status, warnings):
        self.status = "T" if status & IN_TRANS else "I"
        self.warned = self.warned or warnings > 0

    def ok(self, packet, what="ok"):
        affected, at = read_lenenc(packet, 1)
        insert_id, at = read_lenenc(packet, at)
        status, warnings = struct.unpack_from("<HH", packet, at)
        at += 4
        self.note(status, warnings)
        info, tracked = "", ()
        if at < len(packet):
            data, at = read_string(packet, at)
            info = said(data)
            if self.capabilities & SESSION_TRACK and status & STATE_CHANGED and at < len(packet):
                data, at = read_string(packet, at)
                tracked = tuple(self.tracked(data or b""))
        return (what, affected, insert_id, status & STATUS, warnings, info, tracked)

    def tracked(self, data):
        """Without "something changed" and what is told of transactions: Weir has its servers tell it. By default MariaDB does not, and
        MySQL 9 tells of transactions alone."""
        at = 0
        while at < len(data):
            kind = data[at]
            value, at = read_string(data, at + 1)
            if kind not in (2, 4, 5):
                yield kind, said(value)

    def error(self, packet):
        code = struct.unpack_from("<H", packet, 1)[0]
        self.warned = True
        # The number of a statement in front of that of this client, which may be the same: an error may cite a text with it.
        text = re.sub(rf"\b{self.thread}\b", "N", re.sub(r"\(\d+\) (has|given)", r"N \1", said(packet[3:])))
        if code == 1064 and self.thread:
            # Ids of connections have different lengths, and so is what a citation has room for behind them.
            text = re.split(r"\bN\b", re.sub(r"\d+(\.\.\.)?' at.*", "", text))[0]
        # Ids of statements and connections.
        return ("error", code, re.sub(r"\(\d+\)|id: \d+|connection \d+|thread \d+", "N", text))

    def column(self, packet):
        parts, at = [], 0
        for _ in range(6):
            value, at = read_string(packet, at)
            parts.append(said(value))
        charset, length, kind, flags, decimals = struct.unpack_from("<HIBHB", packet, at + 1)
        return (*parts, charset, length, kind, flags, decimals)

    def reset(self):
        """Whether all that the session held is free again."""
        try:
            self.deadline = time.monotonic() + 5
            self.write(bytes([CODES["reset"]]))
            return self.read()[:1] == b"\0"
        except NoMore:
            return False

    def close(self, politely=True):
        try:
            if politely:
                self.write(b"\x01")
            else:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
        self.sock.close()
        self.alive = False

    def ask(self, sql, bound_s=30):
        """A text of the tester itself: rows of its last result; raises."""
        self.write(self.payload(["Q", sql]))
        got = self.answer(([["Q"]], True), bound_s)
        for event in got:
            if event[0] in ("error", "closed", "no answer"):
                raise RuntimeError(f"{event} for {sql[:300]}")
        return [event[1:] for event in got if event[0] == "row"]
