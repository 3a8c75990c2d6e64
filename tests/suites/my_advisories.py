"""What was published as a vulnerability of ProxySQL and its like, tried here: each test is named after what the attacker does.
docs/src/security.md has the table. Whoever does it is refused or closed, Weir stays up, and others notice nothing."""

import contextlib
import socket
import struct
import zlib

from weirtest import mywire
from weirtest.case import weir
from weirtest.harmful import KIND, LOST, Server, bystander, start
from weirtest.target import PASSWORD, server_env
from weirtest.weir import Weir

SERVERS = ["mariadb", "mysql"]
COMPRESS = 1 << 5


def response(tail, capabilities=mywire.BASIC):
    body = struct.pack("<IIB23x", capabilities & 0xFFFFFFFF, 1 << 24, 45) + tail
    return struct.pack("<I", len(body))[:3] + b"\x01" + body


def ended(s):
    said = b""
    with contextlib.suppress(ConnectionError):
        while got := s.recv(65536):
            said += got
    return said


def knock(w, data):
    """What is said to one who sends this in place of his login."""
    with socket.create_connection(("127.0.0.1", w.port), timeout=30) as s:
        with contextlib.suppress(ConnectionError):
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
        return ended(s)


@weir
def a_login_cut_off_anywhere(_context):
    """ProxySQL CVE-2026-48773, GHSA-24vm-gh4h-hfr3, GHSA-58ww-865x-grpr: the first packet's fields were read beyond their end."""
    caps = mywire.BASIC | mywire.CONNECT_ATTRS | mywire.PLUGIN_AUTH_LENENC
    tail = b"app\0" + b"\x14" + bytes(20) + b"app\0" + b"mysql_native_password\0" + b"\x0a\x03key\x05value"
    with start() as w, bystander(w):
        for end in range(len(tail)):
            for data in (response(tail[:end], caps), response(tail, caps)[:end + 4]):
                said = knock(w, data)
                # An OK would be the last packet: 00 behind its header.
                assert b"\0\0\0\2\0\0\0" not in said[-7:], (end, said)
        for length in (0xFFFFFF, 1 << 20, 65_536, 40_000):
            knock(w, struct.pack("<I", length)[:3] + b"\x01" + b"\x05\xa6\xff\x01" * 10)
        for lie in (b"\xfb", b"\xfc\xff\xff", b"\xfd\xff\xff\xff", b"\xfe" + b"\xff" * 8, b"\xff"):
            knock(w, response(b"app\0" + lie + b"x" * 20, caps))
            knock(w, response(b"app\0\0app\0mysql_native_password\0" + lie + b"x", caps))


@weir
def a_change_of_user_cut_off_anywhere(_context):
    """ProxySQL GHSA-8mqj-34cf-rj43: the fields of COM_CHANGE_USER were read beyond their end, its proof into a buffer of fixed size."""
    whole = b"app\0\x14" + bytes(20) + b"app\0\x2d\0mysql_native_password\0\x0a\x03key\x05value"
    with start() as w, bystander(w):
        for payload in [whole[:end] for end in range(len(whole))] + [b"app\0\xff" + b"x" * 255 + b"app\0", b"u" * 70_000, b"app\0\xff", b"\0" * 100]:
            wire = mywire.Wire(w.target())
            with contextlib.suppress(mywire.MyError, AssertionError, *LOST):
                wire.command(0x11, payload)
                wire.sock.shutdown(socket.SHUT_WR)
                assert wire.read()[0] != 0, f"let in by {payload[:60]}"
            wire.close(politely=False)


@weir
def lengths_that_lie_inside_an_execution(_context):
    """ProxySQL GHSA-x23w-3v26-vgvj: encoded lengths of parameters were believed."""
    with start() as w, bystander(w):
        for lie in (b"\xfb", b"\xfc\xff", b"\xfc\xff\xff", b"\xfd\xff\xff\xff", b"\xfe" + b"\xff" * 8, b"\xfe\xff", b"\xff", b"\x7f", b""):
            wire = mywire.Wire(w.target())
            with contextlib.suppress(mywire.MyError, *LOST):
                wire.command(0x16, "select ?, ?")
                number = struct.unpack("<I", wire.prepare_reply()[0][1][1:5])[0]
                wire.command(0x17, struct.pack("<IBI", number, 0, 1) + b"\0\1" + struct.pack("<HH", 253, 253) + lie + b"abc")
                wire.sock.shutdown(socket.SHUT_WR)
                wire.reply()
            wire.close(politely=False)


@weir
def an_execution_cut_off_anywhere(_context):
    """ProxySQL's advisories of prepared statements (GHSA-x23w-3v26-vgvj, GHSA-r23x-jg5r-jmcc): an execution, long data or a fetch that ends too early, or
    has more values than its statement, or none of its statement."""
    types = struct.pack("<HHH", 253, 8, 12)
    values = b"\x03abc" + bytes(8) + b"\x0b\xe4\x07\x01\x02\x03\x04\x05\x06\x07\x08\x09"
    with start() as w, bystander(w):
        wire = None
        body = b"\0\1\0\0\0" + b"\0\1" + types + values
        said = [(0x17, body[:end]) for end in range(len(body))]
        said += [(0x17, b"\0\1\0\0\0" + b"\0\1" + types * 2_000 + values), (0x17, b"\0\1\0\0\0\xff\1" + types), (0x17, body + b"x" * 70_000)]
        said += [(0x18, b""), (0x18, b"\0"), (0x18, b"\xff\xff"), (0x18, b"\xff\xff" + b"x" * 70_000), (0x1c, b""), (0x1c, b"\xff"), (0x1a, b""), (0x19, b"")]
        for code, tail in said:
            for known in (True, False):
                wire = wire or mywire.Wire(w.target())
                with contextlib.suppress(mywire.MyError):
                    wire.command(0x16, "select ?, ?, ?")
                    number = wire.prepare_reply()[0][1][1:5] if known else struct.pack("<I", 2**32 - 2)
                try:
                    # Of a number cut off, too; long data and the end of a statement have no answer.
                    wire.command(code, number + tail if tail or code == 0x17 else number[:2])
                    wire.command(0x0e)
                    wire.read()
                except (mywire.MyError, AssertionError, *LOST):
                    pass
                wire.close(politely=False)
                wire = None


@weir
def commands_of_replicas(_context):
    """ProxySQL 3.0.7: COM_BINLOG_DUMP ended the process. These are answered or closed, and harm nobody."""
    bodies = (b"", b"\0", struct.pack("<IHI", 4, 0, 99) + b"binlog.000001", b"\xff" * 100, b"x" * 70_000)
    with start() as w, bystander(w):
        # COM_BINLOG_DUMP, _TABLE_DUMP, _CONNECT_OUT, _REGISTER_SLAVE, _DAEMON, _BINLOG_DUMP_GTID, and one that is none.
        for code in (0x12, 0x13, 0x14, 0x15, 0x1d, 0x1e, 0x7f):
            for body in bodies:
                wire = mywire.Wire(w.target())
                with contextlib.suppress(mywire.MyError, AssertionError, *LOST):
                    wire.command(code, body)
                    wire.sock.shutdown(socket.SHUT_WR)
                    wire.read()
                wire.close(politely=False)


def compressed(plain, announced=None, length=None, seq=0):
    data = zlib.compress(plain)
    announced, length = len(plain) if announced is None else announced, len(data) if length is None else length
    return struct.pack("<I", length)[:3] + bytes([seq]) + struct.pack("<I", announced)[:3] + data


@weir
def a_compressed_packet_that_lies_about_its_length(_context):
    """ProxySQL GHSA-fvch-fpgq-pwfx: the length of a decompressed packet was trusted. A bomb, too little, too much, and what cannot be unpacked."""
    query = b"\x09\0\0\0\x03select 1" + b"/*" + b" " * 100 + b"*/"
    query = struct.pack("<I", len(query) - 4)[:3] + query[3:]
    bomb = b"\xff\xff\xff\0" + b"\0" * 16_777_215
    lies = [compressed(bomb, announced=10), compressed(query, announced=0xffffff) + compressed(query), compressed(query, announced=len(query) - 1),
            compressed(query, length=5) + compressed(query), b"\x10\0\0\0\x20\0\0" + b"x" * 16, b"\xff\xff\xff\0\xff\xff\xff" + b"\0" * 70_000]
    with start() as w, bystander(w):
        with mywire.Wire(w.target(), mywire.BASIC | COMPRESS) as wire:
            wire.sock.sendall(compressed(query))
            assert b"\x01\x00\x00\x01\x01" in wire.sock.recv(65536), "what is right is answered"
            wire.vanish()
        for lie in lies:
            wire = mywire.Wire(w.target(), mywire.BASIC | COMPRESS)
            # It may be closed before all is sent.
            with contextlib.suppress(OSError):
                wire.sock.sendall(lie)
                wire.sock.shutdown(socket.SHUT_WR)
            said = wire.closed_by_peer()
            assert b"\x01\x31" not in said, said
            wire.close(politely=False)


@weir
def a_kill_of_what_is_not_ones_own(_context):
    """Anybody can send KILL; what it may hit is for the server's privileges to say, and never a number that was meant for somebody else."""
    with start() as w, bystander(w), mywire.Wire(w.target()) as victim, mywire.Wire(w.target()) as other:
        own = {int(wire.ask("select connection_id()")[0][0]) for wire in (victim, other)}
        with contextlib.suppress(mywire.MyError):
            other.ask(f"kill query {max(own) + 64}")
        for number in (0, 1, 2**31, 2**32 - 1, 2**63):
            with contextlib.suppress(mywire.MyError):
                other.ask(f"kill {number}")
        assert victim.ask("select 'alive'") == [["alive"]] and other.ask("select 'too'") == [["too"]]


@weir
def a_server_that_breaks_off_its_greeting(_context):
    """Greetings and answers of a harmful server, cut off anywhere: ProxySQL GHSA-24vm-gh4h-hfr3 towards the other side."""
    with socket.create_connection(("127.0.0.1", int(server_env(KIND, "PORT")))) as real:
        body = real.recv(65536)[4:]

    def play_with(data, answer):
        def play(t):
            t.send(struct.pack("<I", len(data))[:3] + b"\0" + data)
            t.exactly(4)
            t.send(answer)
            t.exactly(1 << 20)
        return play

    lies = [b"\xff" * 3 + b"\2" + b"\xfe" * 64, b"\1\0\0\2\xfe", b"\1\0\0\2\x01", b"\0\0\0\2", b"\1\0\0\2\xff", b"\4\0\0\2\xfex\0y", b"\5\0\0\x09\0\0\0\2\0"]
    cuts = [body[:end] for end in range(0, len(body), 5)] + [b"\x0a" + b"8" * 70_000, b"\xff", b"\xffno", b"\x09old\0", b"\0" * 100]
    with Server(None) as server:
        native = ["--set", "mysql.auth_type=mysql_native_password"] if KIND == "mariadb" else []
        words = ["--set", "pool.query_wait_timeout=20", "--set", "pool.server_connect_timeout=10", *native]
        with Weir(KIND, [f"mysql://harm:{PASSWORD}@127.0.0.1:{server.port}/harm?ssl-mode=DISABLED", *words]) as w:
            for play in [play_with(data, lies[0]) for data in cuts] + [play_with(body, lie) for lie in lies]:
                before = server.met
                server.plays(play)
                with contextlib.suppress(mywire.MyError, *LOST):
                    mywire.Wire(w.target(user="harm")).close()
                    raise AssertionError("it was served")
                assert server.met > before, "the server was asked"
            assert w.alive()
            w.check_log()
