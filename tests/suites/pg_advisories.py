"""What was published as a vulnerability of PgBouncer and its like, tried here: each test is named after what the attacker does.
docs/src/security.md has the table. Whoever does it is refused or closed, Weir stays up, and others notice nothing."""

import base64
import contextlib
import socket
import struct

from weirtest import pgwire
from weirtest.case import weir
from weirtest.harmful import LOST, Server, bystander, start
from weirtest.target import PASSWORD
from weirtest.weir import url

SERVERS = ["postgres"]


def to_the_end(wire):
    """The kinds of messages until the peer closes."""
    kinds = ""
    with contextlib.suppress(*LOST):
        while True:
            kinds += wire.read()[0]
    return kinds


def sasl_first(nonce=b"abcdefghijklmnop"):
    first = b"n,,n=,r=" + nonce
    return pgwire.message(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first)


# --- PostgreSQL: clients ---------------------------------------------------------------------------------------------


@weir
def a_second_startup_during_scram_makes_nobody_of_it(_context):
    """PgBouncer CVE-2026-107350: who knows one password came in as somebody else."""
    with start(url("postgres", "app_md5")) as w, bystander(w):
        for database in ("app", "no_such_db"):
            for other in ("app_md5", "app_scram", "postgres"):
                again = pgwire.startup({"user": other, "database": "app"})
                # Before the first answer, behind it, and behind the second.
                for stage in range(3):
                    wire = pgwire.Wire(w.target(), login=False)
                    wire.send(pgwire.startup({"user": "app_scram", "database": database}))
                    kind, payload = wire.read()
                    assert kind == "R" and payload[:4] == struct.pack("!i", 10), (kind, payload)
                    with contextlib.suppress(*LOST):
                        if stage == 0:
                            wire.send(again)
                        wire.scram_first()
                        if stage == 1:
                            wire.send(again)
                        kind, payload = wire.read()
                        if kind == "R":
                            if stage == 2:
                                wire.send(again)
                            wire.scram_final(payload[4:])
                    said = to_the_end(wire)
                    # K and Z would be a session.
                    assert "K" not in said and "Z" not in said, (database, other, stage, said)
                    wire.close(politely=False)


@weir
def absurd_lengths_of_a_sasl_answer(_context):
    """PgBouncer CVE-2026-6664: an overflow in the length of a SCRAM packet ended the process before any proof."""
    first = b"n,,n=,r=abcdefghijklmnop"
    with start() as w, bystander(w):
        for length in (-1, -2**31, 2**31 - 1, 2**31 - 4, len(first) + 1, len(first) - 1, 0, 65536):
            wire = pgwire.Wire(w.target(), login=False)
            wire.send(pgwire.startup({"user": "app_scram", "database": "app"}))
            wire.read()
            wire.send(pgwire.message(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", length) + first))
            # Whoever says so much less or so much more than is there says nothing that can be proven.
            with contextlib.suppress(*LOST):
                kind, payload = wire.read()
                if kind == "R":
                    wire.send(pgwire.message(b"p", b"c=biws,r=x,p=" + b"A" * 44))
            assert "K" not in to_the_end(wire), length
            wire.close(politely=False)


@weir
def lengths_of_messages_above_what_fits(_context):
    """PgBouncer CVE-2026-107348, CVE-2026-6668: a length above 2^31 spun for ever."""
    with start() as w, bystander(w):
        for length in (2**31, 2**31 + 5, 2**32 - 1, 2**31 - 1):
            head = struct.pack("!I", length)
            for bytes_ in (head + struct.pack("!I", 196608) + b"user\0x\0\0", pgwire.startup({"user": "app_scram"}) + b"p" + head + b"x" * 100):
                wire = pgwire.Wire(w.target(), login=False)
                wire.send(bytes_)
                wire.sock.shutdown(socket.SHUT_WR)
                assert "K" not in to_the_end(wire)
                wire.close(politely=False)
            wire = pgwire.Wire(w.target())
            wire.send(b"Q" + head + b"select 1")
            wire.sock.shutdown(socket.SHUT_WR)
            to_the_end(wire)
            wire.close(politely=False)


@weir
def options_without_a_name(_context):
    """PgBouncer CVE-2026-107349: `-c=` spun for ever."""
    with start() as w, bystander(w):
        for options in ("-c=", "-c =", "-c =5", "-c", "-c=5 -c work_mem=5MB", "--=", "--", "-c \\", "-c  ", "-c=\\ "):
            with contextlib.suppress(pgwire.LoginRefused, *LOST), pgwire.Wire(w.target(), {"options": options}) as wire:
                wire.ask("select 1")


@weir
def names_without_end(_context):
    """PgBouncer CVE-2012-4575: a long name of a database ended the process. Where clients may name any database; names of users, too."""
    with start() as w, bystander(w):
        for length in (63, 64, 127, 128, 1_000, 9_000, 70_000, 200_000):
            for who in ({"user": "app_scram", "database": "d" * length}, {"user": "u" * length, "database": "app"},
                        {"user": "app_scram", "database": "app", "o" * length: "x"}, {"user": "app_scram", "database": "app", "application_name": "a" * length}):
                wire = pgwire.Wire(w.target(), login=False)
                with contextlib.suppress(*LOST):
                    wire.send(pgwire.startup(who))
                    # Who proves who he is learns that there is no such database.
                    if wire.read()[0] == "R":
                        wire.scram_first()
                        wire.scram_final(wire.read()[1][4:])
                    wire.sock.shutdown(socket.SHUT_WR)
                    if "application_name" not in who:
                        assert "Z" not in to_the_end(wire), length
                wire.close(politely=False)


@weir
def a_password_before_a_name(_context):
    """PgBouncer CVE-2015-4054: a password message before the startup packet ended the process."""
    with start() as w, bystander(w):
        for bytes_ in (pgwire.message(b"p", b"secret\0"), pgwire.message(b"p", b""), sasl_first()):
            wire = pgwire.Wire(w.target(), login=False)
            wire.send(bytes_)
            wire.sock.shutdown(socket.SHUT_WR)
            assert "K" not in to_the_end(wire)
            wire.close(politely=False)


@weir
def what_stands_behind_the_wish_for_tls_is_never_run(_context):
    """PgBouncer CVE-2021-3935: what an attacker put in clear behind the SSLRequest was taken for the client's own."""
    with start(settings=["tls.client.sslmode=prefer"]) as w, bystander(w) as admin:
        admin.ask("drop table if exists put_in")
        inside = pgwire.startup({"user": "app_scram", "database": "app"}) + pgwire.query("create table put_in ()")
        for wish in (pgwire.SSL_REQUEST, pgwire.GSSENC_REQUEST):
            wire = pgwire.Wire(w.target(), login=False)
            wire.send(wish + inside)
            wire.sock.shutdown(socket.SHUT_WR)
            seen = b""
            with contextlib.suppress(ConnectionError):
                while got := wire.sock.recv(65536):
                    seen += got
            assert b"CREATE TABLE" not in seen and not seen.startswith(b"S"), seen
        assert admin.ask("select to_regclass('put_in')") == [[None]]


@weir
def a_cancel_by_a_guess(_context):
    """PgBouncer CVE-2026-6667 is a KILL that anybody could send. Weir has no such command for PostgreSQL; a cancel needs the secret of the
    very session."""
    with start() as w, bystander(w), pgwire.Wire(w.target()) as victim, pgwire.Wire(w.target()) as neighbour:
        victim.send(pgwire.query("select pg_sleep(0.5), 'slept'"))
        for secret in (bytes(len(victim.secret)), neighbour.secret, victim.secret[:-1], victim.secret + b"\0", b"", victim.secret[::-1]):
            if secret == victim.secret:
                continue
            s = socket.create_connection((w.target().host, w.port))
            s.sendall(pgwire.cancel_request(victim.pid, secret))
            with contextlib.suppress(ConnectionError):
                s.recv(100)
            s.close()
        assert [kind for kind, _ in victim.until("Z")] == ["T", "D", "C", "Z"]


# --- PostgreSQL: servers ---------------------------------------------------------------------------------------------


def R(code, data=b""):
    return pgwire.message(b"R", struct.pack("!i", code) + data)


GREETING = (R(0) + pgwire.message(b"S", b"server_version\x0015.0\0") + pgwire.message(b"S", b"client_encoding\0UTF8\0")
            + pgwire.message(b"K", struct.pack("!ii", 1, 2)) + pgwire.message(b"Z", b"I"))


def scram_that_says(what):
    def play(t):
        t.startup()
        t.send(R(10, b"SCRAM-SHA-256\0\0"))
        _, first = t.message()
        nonce = first.split(b"r=")[-1]
        t.send(R(11, what(nonce)))
        t.message()
        t.send(R(12, b"v=" + base64.b64encode(bytes(32))))
        t.send(GREETING)
        t.exactly(1)
    return play


def greeted_then(*answers):
    def play(t):
        t.startup()
        t.send(GREETING)
        while True:
            kind, _ = t.message()
            if kind in (b"Q", b"S"):
                t.send(b"".join(answers))
    return play


def refuses_with(data):
    def play(t):
        t.startup()
        t.send(data)
        t.exactly(1 << 20)
    return play


def harmed_by(play, w, server):
    """A client of the harmful server gets an error or is closed, and nothing that it could take for an answer."""
    before = server.met
    server.plays(play)
    said = ""
    with contextlib.suppress(pgwire.LoginRefused, *LOST), pgwire.Wire(w.target(user="harm", database="harm")) as wire:
        wire.send(pgwire.query("select 'mine'"))
        while not said.endswith("Z"):
            said += wire.read()[0]
    assert "D" not in said and "C" not in said and (not said or said[0] == "E"), said
    assert server.met > before, "the server was asked"


def before_harm(server):
    return start(f"postgres://harm:{PASSWORD}@127.0.0.1:{server.port}/harm?sslmode=disable",
                 settings=["pool.query_wait_timeout=0.5", "pool.server_connect_timeout=10", "pool.query_timeout=5"])


@weir
def a_server_with_an_endless_nonce_or_salt(_context):
    """PgBouncer CVE-2026-6665: a long nonce in the server's first message overflowed the stack."""
    salt = base64.b64encode(bytes(16))
    with Server(None) as server, before_harm(server) as w, bystander(w):
        for what in (
            lambda nonce: b"r=" + nonce + b"A" * 100_000 + b",s=" + salt + b",i=4096",
            lambda nonce: b"r=" + nonce + b"A" * 1_200 + b",s=" + salt + b",i=4096",
            lambda nonce: b"r=" + nonce + b"x,s=" + base64.b64encode(bytes(200_000)) + b",i=4096",
            lambda nonce: b"r=short,s=" + salt + b",i=4096",
            lambda nonce: b"r=" + nonce + b",s=" + salt + b",i=4096",
            lambda nonce: b"r=" + nonce + b"x,s=,i=4096",
            lambda nonce: b"m=ext,r=" + nonce + b"x,s=" + salt + b",i=4096",
            lambda _: b"", lambda _: b"\0\xff",
        ):
            harmed_by(scram_that_says(what), w, server)


@weir
def a_server_that_asks_for_endless_rounds(_context):
    """PgBouncer CVE-2026-6669: the server's number of rounds held the only thread for as long as it liked."""
    salt = base64.b64encode(bytes(16))
    with Server(None) as server, before_harm(server) as w, bystander(w):
        for rounds in (b"2147483647", b"4294967296", b"99999999999999999999", b"1000001", b"0", b"-1", b"x", b""):
            harmed_by(scram_that_says(lambda nonce, n=rounds: b"r=" + nonce + b"x,s=" + salt + b",i=" + n), w, server)


@weir
def a_server_whose_errors_lack_their_fields(_context):
    """PgBouncer CVE-2026-6666: an error without SQLSTATE ended the process."""
    ready = pgwire.message(b"Z", b"I")
    with Server(None) as server, before_harm(server) as w, bystander(w):
        for body in (b"Mno code\0\0", b"\0", b"", b"C\0\0", b"M", b"C57P01", b"SFATAL\0\0", b"\xff" * 50):
            error = pgwire.message(b"E", body)
            harmed_by(refuses_with(error), w, server)
            harmed_by(greeted_then(error, ready), w, server)


@weir
def a_server_that_breaks_the_protocol(_context):
    with Server(None) as server, before_harm(server) as w, bystander(w):
        for data in (R(99), R(5), R(5, b"ab"), R(10), R(10, b"PLAIN\0\0"), R(10, b"SCRAM-SHA-256"), R(12, b"v=x"), b"R\0\0\0\3", b"R\xff\xff\xff\xff",
                     b"R\x7f\xff\xff\xff", b"\0" * 64, b"HTTP/1.1 400 Bad Request\r\n\r\n", R(0) + b"K\0\0\0\5x", R(0) + pgwire.message(b"S", b"no end")):
            harmed_by(refuses_with(data), w, server)
        for data in (b"Z\0\0\0\4", b"Z\0\0\0\5X", b"T\0\0\0\6\xff\xff", b"D\xff\xff\xff\xff", b"\0\0\0\0\0", b"G\0\0\0\4"):
            harmed_by(greeted_then(data), w, server)
