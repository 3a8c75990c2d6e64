"""The statements of programs in production (texts/pg): each is answered the same direct and through Weir with two servers, and pins exactly what its
list says. On a PostgreSQL of its own, because each list has a database of its own."""

import functools
import os
import re
import struct

from weirtest import texts
from weirtest.pgwire import COPY_DONE, SYNC, Wire, bind, copy_data, describe, execute, parse, plain, query
from weirtest.private import PrivateServer

SERVERS = ["postgres"]
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "texts/pg")
DATABASE = "texts"
# What is a number of an object in one database is another one in the next.
OID = re.compile(r"(?<!\d)(?:1[6-9]\d{3}|[2-9]\d{4}|\d{6,9})(?!\d)")
ABOUT_OBJECTS = re.compile(r"pg_|oid|information_schema|regclass", re.IGNORECASE)


@functools.cache
def server():
    return PrivateServer("postgres")


class Client(Wire):
    """Sends a text as a program does: simple, or prepared with its values."""

    def __init__(self, target):
        super().__init__(target)
        self.named = {}
        self.in_transaction = False

    def begin(self):
        self.simple("begin; select 1")

    def commit(self):
        self.simple("commit")

    def simple(self, sql):
        self.send(query(sql))
        return self.until("Z")

    def prepared(self, text):
        """As libpq does it: once prepared by itself if it has a name, else all in one batch."""
        head = b""
        if text.name is not None and self.named.get(text.name) != text.sql:
            self.send(parse(text.sql, text.name) + describe("S", text.name) + SYNC)
            self.named[text.name] = text.sql
            refused = self.until("Z")
            if any(kind == "E" for kind, _ in refused):
                return refused
        elif text.name is None:
            head = parse(text.sql)
        values = [value if value is None or isinstance(value, str) else str(value) for value in text.values or []]
        self.send(head + bind(values, text.name or "") + describe("P") + execute() + SYNC)
        return self.until("Z")

    def copied(self, text):
        self.send(query(text.sql))
        got = [self.read()]
        while got[-1][0] not in "GZ":
            got.append(self.read())
        if got[-1][0] == "G":
            self.send(b"".join(copy_data(line.encode()) for line in text.data) + COPY_DONE)
            got += self.until("Z")
        return got

    def ask(self, text):
        if text.data:
            got = self.copied(text)
        elif text.values is not None or text.name is not None:
            got = self.prepared(text)
        else:
            got = self.simple(text.sql)
        self.in_transaction = got[-1][1] != b"I"
        about_objects = ABOUT_OBJECTS.search(text.sql)
        got = [(kind, " ".join(map(str, oids(payload))).encode() if kind == "t" else payload) for kind, payload in got]
        return [masked(each) if about_objects or each[0] in "TENt" else each for each in plain(got)]


def oids(payload):
    """The types of a ParameterDescription."""
    return struct.unpack(f"!{(len(payload) - 2) // 4}I", payload[2:])


def masked(seen):
    """Without the numbers of objects, and without what says how long a row is."""
    if isinstance(seen, str):
        return OID.sub("OID", seen)
    if isinstance(seen, dict):
        return {key: masked(value) for key, value in seen.items()}
    return [masked(value) for value in seen] if isinstance(seen, list) else seen


def anew():
    """The database of the lists, as it is before each."""
    with Wire(server().superuser()) as a:
        a.ask(f"drop database if exists {DATABASE} with (force)")
        a.ask(f"create database {DATABASE} owner {server().direct().user}")
    with Wire(server().superuser().within(DATABASE)) as a:
        for extension in ("pg_trgm", "hstore", "citext", "btree_gin", "pgcrypto"):
            a.ask(f"create extension {extension}")


texts.tests_of(FOLDER, "postgres", Client, server, DATABASE, anew, ("last_result",))
