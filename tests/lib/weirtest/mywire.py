"""A MySQL client that does nothing by itself: builds packets, sends bytes, reads packets and knows where a reply ends.
For tests that must decide every byte. Protocol 4.1, handshake v10."""

import hashlib
import re
import socket
import struct

DEADLINE_S = 30
PACKET_MAX = (1 << 24) - 1

# Capabilities.
LONG_PASSWORD, FOUND_ROWS, LONG_FLAG, CONNECT_WITH_DB = 1, 2, 4, 8
LOCAL_FILES, IGNORE_SPACE, PROTOCOL_41, INTERACTIVE, SSL = 1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 11
TRANSACTIONS, SECURE_CONNECTION, MULTI_STATEMENTS, MULTI_RESULTS = 1 << 13, 1 << 15, 1 << 16, 1 << 17
PS_MULTI_RESULTS, PLUGIN_AUTH, CONNECT_ATTRS, PLUGIN_AUTH_LENENC = 1 << 18, 1 << 19, 1 << 20, 1 << 21
SESSION_TRACK, DEPRECATE_EOF = 1 << 23, 1 << 24
# MariaDB's own stand above those of MySQL; a client that has them leaves LONG_PASSWORD out.
EXTENDED_METADATA = 1 << 35

BASIC = (LONG_PASSWORD | LONG_FLAG | PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | MULTI_RESULTS | PS_MULTI_RESULTS | PLUGIN_AUTH
         | CONNECT_WITH_DB)
# Status flags.
MORE_RESULTS, CURSOR_EXISTS, LAST_ROW_SENT = 8, 0x40, 0x80

(QUIT, INIT_DB, QUERY, FIELD_LIST, CREATE_DB, DROP_DB, REFRESH, SHUTDOWN, STATISTICS, PROCESS_INFO, CONNECT, PROCESS_KILL, DEBUG,
 PING) = range(1, 15)
CHANGE_USER, STMT_PREPARE, STMT_EXECUTE, STMT_LONG_DATA, STMT_CLOSE, STMT_RESET, SET_OPTION, STMT_FETCH = 0x11, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x1C
RESET_CONNECTION = 0x1F


class Closed(Exception):
    """The other side closed the connection."""


def lenenc(n):
    if n < 251:
        return bytes([n])
    if n < 1 << 16:
        return b"\xfc" + struct.pack("<H", n)
    if n < 1 << 24:
        return b"\xfd" + struct.pack("<I", n)[:3]
    return b"\xfe" + struct.pack("<Q", n)


def text(data):
    data = data.encode() if isinstance(data, str) else data
    return lenenc(len(data)) + data


def read_lenenc(data, at):
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    if first == 0xFB:
        return None, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1:at + 1 + size], "little"), at + 1 + size


class MyError(Exception):
    def __init__(self, payload):
        self.code = struct.unpack("<H", payload[1:3])[0]
        super().__init__(f"{self.code} {payload[3:].decode(errors='replace')}")


class Wire:
    """A connection, logged in unless told otherwise. `seq` is the number of the next packet."""

    def __init__(self, target, capabilities=BASIC, login=True, charset=45, attrs=None):
        self.sock = socket.create_connection((target.host, target.port), timeout=DEADLINE_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.target = target
        self.buffer = bytearray()
        self.seq = 0
        self.capabilities = capabilities
        self.thread_id = None
        if login:
            self.login(charset, attrs)

    # --- Packets ---

    def frame(self, payload, seq):
        out = b""
        while True:
            part, payload = payload[:PACKET_MAX], payload[PACKET_MAX:]
            out += struct.pack("<I", len(part))[:3] + bytes([seq & 0xFF]) + part
            seq += 1
            if len(part) < PACKET_MAX:
                return out, seq

    def packet(self, payload):
        """One command's bytes."""
        return self.frame(payload, 0)[0]

    def send(self, data, piece=None):
        if piece is None:
            self.sock.sendall(data)
        else:
            for i in range(0, len(data), piece):
                self.sock.sendall(data[i:i + piece])

    def send_next(self, payload):
        """A packet that continues an exchange (login, LOCAL INFILE)."""
        data, self.seq = self.frame(payload, self.seq)
        self.sock.sendall(data)

    def command(self, code, payload=b"", piece=None):
        data, self.seq = self.frame(bytes([code]) + (payload.encode() if isinstance(payload, str) else payload), 0)
        self.send(data, piece)

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
        """The next packet's payload, joined if it was split; checks its number."""
        out = b""
        while True:
            head = self.exactly(4)
            length = int.from_bytes(head[:3], "little")
            assert head[3] == self.seq & 0xFF, f"packet number {head[3]} where {self.seq & 0xFF} was due"
            self.seq += 1
            out += self.exactly(length)
            if length < PACKET_MAX:
                return out

    # --- Login ---

    def login(self, charset, attrs):
        t = self.target
        greeting = self.read()
        if greeting[:1] == b"\xff":
            raise MyError(greeting)
        self.greeting = greeting
        end = greeting.index(b"\0", 1)
        self.version = greeting[1:end].decode()
        self.thread_id = struct.unpack("<I", greeting[end + 1:end + 5])[0]
        salt = greeting[end + 5:end + 13] + greeting[end + 32:end + 44]
        self.server_capabilities = struct.unpack("<H", greeting[end + 14:end + 16])[0] | struct.unpack("<H", greeting[end + 19:end + 21])[0] << 16
        self.server_collation = greeting[end + 16]
        if not self.server_capabilities & LONG_PASSWORD:
            self.server_capabilities |= struct.unpack("<I", greeting[end + 28:end + 32])[0] << 32
        plugin = greeting[end + 45:].split(b"\0")[0].decode()
        flags = self.capabilities | (CONNECT_ATTRS if attrs else 0)
        body = struct.pack("<IIB19xI", flags & 0xFFFFFFFF, 1 << 30, charset, flags >> 32)
        answer = scramble(plugin, t.password.encode(), salt)
        body += t.user.encode() + b"\0" + bytes([len(answer)]) + answer
        if self.capabilities & CONNECT_WITH_DB:
            body += t.database.encode() + b"\0"
        if self.capabilities & PLUGIN_AUTH:
            body += plugin.encode() + b"\0"
        if attrs:
            pairs = b"".join(text(k) + text(v) for k, v in attrs.items())
            body += lenenc(len(pairs)) + pairs
        self.send_next(body)
        self.after_login(plugin, salt)

    def after_login(self, plugin, salt):
        """The rest of a login or of COM_CHANGE_USER, to its OK."""
        password = self.target.password.encode()
        while True:
            said = self.read()
            if said[:1] == b"\0":
                self.ok = said
                return
            if said[:1] == b"\xff":
                raise MyError(said)
            if said[:1] == b"\xfe":
                plugin, salt = said[1:].split(b"\0", 1)
                plugin, salt = plugin.decode(), salt.rstrip(b"\0")[:20]
                self.send_next(scramble(plugin, password, salt))
            elif said == b"\x01\x03":
                continue  # the server remembers this password
            elif said == b"\x01\x04":
                self.send_next(b"\x02")
                key = self.read()
                self.send_next(encrypt(password, salt, key[1:]))
            else:
                raise AssertionError(f"in login: {said!r}")

    # --- Replies ---

    def reply(self, code=QUERY):
        """All packets of a reply, as (what, payload)."""
        if code in (STMT_CLOSE, STMT_LONG_DATA, QUIT):
            return []
        if code == STATISTICS:
            return [("text", self.read())]
        if code == STMT_PREPARE:
            return self.prepare_reply()
        if code == FIELD_LIST:
            return self.rows("column")
        if code == STMT_FETCH:
            return self.rows("row")
        out = []
        while True:
            got, more = self.one_result()
            out += got
            if not more:
                return out

    def one_result(self):
        first = self.read()
        if first[:1] == b"\0" or (first[:1] == b"\xfe" and len(first) < 9):
            what = "ok" if first[:1] == b"\0" else "eof"
            return [(what, first)], bool(status_of(first) & MORE_RESULTS)
        if first[:1] == b"\xff":
            return [("err", first)], False
        if first[:1] == b"\xfb":
            return [("infile", first)], False
        count = read_lenenc(first, 0)[0]
        out = [("count", first)] + [("column", self.read()) for _ in range(count)]
        if not self.capabilities & DEPRECATE_EOF:
            out.append(("eof", self.read()))
            if status_of(out[-1][1]) & CURSOR_EXISTS:
                return out, False
        rest = self.rows("row")
        out += rest
        last = rest[-1]
        return out, last[0] != "err" and bool(status_of(last[1]) & MORE_RESULTS)

    def rows(self, what):
        out = []
        while True:
            p = self.read()
            if p[:1] == b"\xff":
                return [*out, ("err", p)]
            if p[:1] == b"\xfe" and len(p) < PACKET_MAX and (self.capabilities & DEPRECATE_EOF or len(p) < 9):
                return [*out, ("end", p)]
            out.append((what, p))

    def prepare_reply(self):
        first = self.read()
        if first[:1] == b"\xff":
            return [("err", first)]
        columns, params = struct.unpack("<HH", first[5:9])
        out = [("prepared", first)]
        for n, what in ((params, "param"), (columns, "column")):
            out += [(what, self.read()) for _ in range(n)]
            if n and not self.capabilities & DEPRECATE_EOF:
                out.append(("eof", self.read()))
        return out

    def ask(self, sql):
        """A text query: rows as lists of text; raises MyError."""
        self.command(QUERY, sql)
        rows = []
        for what, payload in self.reply():
            if what == "err":
                raise MyError(payload)
            if what == "row":
                rows.append(text_row(payload))
        return rows

    def prepare(self, sql):
        """The statement's id; raises MyError."""
        self.command(STMT_PREPARE, sql)
        got = self.reply(STMT_PREPARE)
        if got[0][0] == "err":
            raise MyError(got[0][1])
        return struct.unpack("<I", got[0][1][1:5])[0]

    def closed_by_peer(self):
        """Reads until the end of the stream; the bytes before it."""
        out = bytes(self.buffer)
        try:
            while got := self.sock.recv(1 << 16):
                out += got
        except (ConnectionResetError, BrokenPipeError):
            pass
        return out

    def close(self, politely=True):
        try:
            if politely:
                self.command(QUIT)
        except OSError:
            pass
        self.sock.close()

    def vanish(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# --- Passwords -----------------------------------------------------------------------------------------------------


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b, strict=True))


def scramble(plugin, password, salt):
    if not password:
        return b""
    if plugin == "mysql_native_password":
        once = hashlib.sha1(password).digest()
        return xor(once, hashlib.sha1(salt[:20] + hashlib.sha1(once).digest()).digest())
    if plugin in ("caching_sha2_password", "sha256_password"):
        # MySQL asks for the latter only where it knows that nothing will be right: for users that do not exist.
        once = hashlib.sha256(password).digest()
        return xor(once, hashlib.sha256(hashlib.sha256(once).digest() + salt[:20]).digest())
    raise AssertionError(f"the server wants {plugin}")


def encrypt(password, salt, key):
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding

    public = serialization.load_pem_public_key(key)
    mixed = bytes(c ^ salt[i % 20] for i, c in enumerate(password + b"\0"))
    return public.encrypt(mixed, padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None))


# --- Payloads ------------------------------------------------------------------------------------------------------


def status_of(payload):
    if payload[:1] == b"\xfe" and len(payload) < 9:
        return struct.unpack("<H", payload[3:5])[0] if len(payload) >= 5 else 0
    at = read_lenenc(payload, 1)[1]
    at = read_lenenc(payload, at)[1]
    return struct.unpack("<H", payload[at:at + 2])[0]


def text_row(payload):
    at, out = 0, []
    while at < len(payload):
        n, at = read_lenenc(payload, at)
        if n is None:
            out.append(None)
        else:
            out.append(payload[at:at + n].decode("utf-8", "backslashreplace"))
            at += n
    return out


def execute_payload(statement, params=(), flags=0, new_types=True):
    """COM_STMT_EXECUTE; every parameter a string or NULL. `new_types` False: as a driver that repeats itself sends it."""
    out = struct.pack("<IBI", statement, flags, 1)
    if params:
        nulls = bytearray((len(params) + 7) // 8)
        for i, p in enumerate(params):
            if p is None:
                nulls[i // 8] |= 1 << i % 8
        out += bytes(nulls) + (b"\x01" if new_types else b"\0")
        if new_types:
            out += b"\xfd\x00" * len(params)
        out += b"".join(text(p) for p in params if p is not None)
    return out


# Functions whose value Weir knows better than the server; width, type and flags of such a column are those of that value.
COMPUTED = re.compile(rb"((?:row_count|last_insert_id|found_rows|connection_id)\(\)\0\x0c..).......", re.DOTALL | re.IGNORECASE)

STATE_CHANGED = 0x4000  # SERVER_SESSION_STATE_CHANGED


def plain(packets, capabilities):
    """Packets with what differs by nature masked: statement ids. Long ones become their length and digest."""
    out = []
    for what, payload in packets:
        if what == "err":
            # Statement and connection ids stand in messages in parentheses or as "id: N"; some name a function of the
            # server, which differs from version to version.
            said = re.sub(r"\(\d+\)|id: \d+", "N", payload[3:].decode(errors="replace"))
            said = re.sub(r"given to \w+", "given to F", said).rstrip(".")
            out.append([what, struct.unpack("<H", payload[1:3])[0], said])
            continue
        if what == "prepared":
            payload = payload[:1] + b"\0\0\0\0" + payload[5:]
        elif what == "ok" or (what == "end" and capabilities & DEPRECATE_EOF):
            payload = ok_packet(payload, capabilities)
            out.append([what, payload])
            continue
        elif what == "eof":
            # Between columns and rows. Weir's servers do not send it, so its other flags are of before the statement.
            out.append([what, status_of(payload) & CURSOR_EXISTS])
            continue
        elif what == "end" and payload[:1] == b"\xfe":
            warnings, status = struct.unpack("<HH", payload[1:5])
            out.append([what, warnings, status & ~STATE_CHANGED])
            continue
        elif what in ("column", "param"):
            payload = COMPUTED.sub(lambda m: m[1] + b"masked!", payload)
        out.append([what, payload.hex() if len(payload) < 300 else f"{len(payload)} {hashlib.md5(payload).hexdigest()}"])
    return out


def ok_packet(payload, capabilities):
    """An OK packet taken apart: affected rows, insert id, status, warnings, text, what the session tracker says."""
    affected, at = read_lenenc(payload, 1)
    insert_id, at = read_lenenc(payload, at)
    status, warnings = struct.unpack("<HH", payload[at:at + 4])
    at += 4
    tracked, info = [], b""
    if at < len(payload):
        # For clients without SESSION_TRACK the manual says "to the end of the packet"; both servers and their client
        # libraries put the length first all the same.
        n, at = read_lenenc(payload, at)
        info = payload[at:at + n]
        at += n
        if capabilities & SESSION_TRACK and status & STATE_CHANGED:
            n, at = read_lenenc(payload, at)
            assert at + n == len(payload), "the session tracker's data is not as long as it says"
            tracked = trackers(payload[at:])
        else:
            assert at == len(payload) and len(info) == n, f"the OK packet's text in {payload!r} is not as long as it says"
    if not tracked:
        status &= ~STATE_CHANGED
    return {"affected": affected, "insert_id": insert_id, "status": status, "warnings": warnings, "info": info.decode(errors="replace"),
            "tracked": tracked}


def trackers(data):
    """Without the state change and what is told of transactions: Weir's servers are asked to tell it. By default MariaDB does
    not, and MySQL 9 tells of transactions alone."""
    out, at = [], 0
    while at < len(data):
        kind = data[at]
        n, at = read_lenenc(data, at + 1)
        if kind not in (2, 4, 5):
            out.append([kind, data[at:at + n].hex()])
        at += n
    return out
