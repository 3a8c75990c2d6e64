"""Clients that vanish, stop reading, say half of something or nonsense. They have no rows that count: what matters is that the others
notice nothing, and that nothing of theirs stays."""

import contextlib
import random
import socket
import struct
import time

from .words import DEADLINE_S, Lost, Refused

ABORT = struct.pack("ii", 1, 0)
# Numbers of clients that are in no ledger; their rows may be there or not, but not twice.
FIRST = 1_000_000


def session(game):
    return game.place.dialect.Session(game.place.port, "rogue")


def raw(game):
    return socket.create_connection(("127.0.0.1", game.place.port), timeout=DEADLINE_S)


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
    sock.close()


def resets_in_request(game, seed):
    """A statement that writes is sent, or half of it, in a transaction or not; then the connection is reset."""
    draw, d = random.Random(seed), game.place.dialect
    s = session(game)
    number = game.rogue_number()
    within = draw.random() < 0.5
    if within:
        s.ask(d.BEGIN)
        s.ask(f"insert into {d.TABLE} values ({number}, 1, 'never')")
    request = s.request(f"insert into {d.TABLE} values ({number}, {1 if within else 2}, 'rogue')")
    cut = draw.choice([len(request), len(request) // 2, 3])
    s.wire.sock.sendall(request[:cut])
    time.sleep(draw.choice([0, 0, 0.01]))
    reset(s.wire.sock)


def resets_in_result(game, seed):
    draw, d = random.Random(seed), game.place.dialect
    s = session(game)
    s.wire.sock.sendall(s.request(d.rows("torture", 1000, draw.choice([100, 3000]))))
    s.wire.sock.recv(draw.choice([1, 1000, 100_000]))
    reset(s.wire.sock)


def half_open(game, seed):
    """Nothing more to say, but all to hear. A request that waits for a server is dropped when its client's stream ends, since that
    client has gone more often than not; one that runs is answered."""
    draw, d = random.Random(seed), game.place.dialect
    s = session(game)
    s.wire.sock.sendall(s.request(d.slow(draw.choice([0, 0.1]), "half-open")))
    s.wire.sock.shutdown(socket.SHUT_WR)
    said = b""
    with contextlib.suppress(ConnectionError):
        while got := s.wire.sock.recv(1 << 16):
            said += got
    s.wire.sock.close()
    if said and b"half-open" not in said and not game.excused():
        game.wrong(f"a client that only ended its own stream got {said[:200]!r}")


def slow_reader(game, seed):
    """A result that fits into no buffer, read late or never."""
    draw, d = random.Random(seed), game.place.dialect
    s = session(game)
    count = 8000
    s.wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    s.wire.sock.sendall(s.request(d.rows("reader", 200, count)))
    time.sleep(draw.uniform(0.1, 1.5))
    if draw.random() < 0.5:
        reset(s.wire.sock)
        return
    size, end = 0, 1200 * count
    while size < end and (got := s.wire.sock.recv(1 << 18)):
        size += len(got)
    reset(s.wire.sock)
    if size < end and not game.excused():
        game.wrong(f"a slow reader got {size} bytes of {end}")


def half_message(game, seed):
    draw = random.Random(seed)
    if draw.random() < 0.5:
        s = session(game)
        sock = s.wire.sock
        sock.sendall(s.request("select 'torture'")[:draw.choice([1, 4, 7])])
    else:
        sock = raw(game)
        sock.sendall(struct.pack("!iI", 80, 196608) + b"user")
    time.sleep(draw.uniform(0, 1))
    (reset if draw.random() < 0.5 else socket.socket.close)(sock)


def garbage(game, seed):
    draw = random.Random(seed)
    sock = session(game).wire.sock if draw.random() < 0.5 else raw(game)
    # A length that is impossible or a tag that is none, so that nobody waits for the rest of it.
    sock.sendall(b"\xff\xff\xff\xff" + draw.randbytes(draw.choice([10, 5000])))
    sock.settimeout(1)
    with contextlib.suppress(TimeoutError, ConnectionError):
        while sock.recv(1 << 16):
            pass
    reset(sock)


def many_that_say_nothing(game, seed):
    draw = random.Random(seed)
    socks = []
    with contextlib.suppress(OSError):
        for _ in range(30):
            socks.append(raw(game))
    time.sleep(draw.uniform(0, 1))
    for sock in socks:
        reset(sock)


EXPECTED = (Lost, Refused, OSError)
