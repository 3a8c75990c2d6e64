"""The statements of programs in production (texts/my): each is answered the same direct and through Weir with two servers, and pins exactly what its
list says. On a server of its own, as a user who owns one schema and has what monitoring and backups need."""

import functools
import os
import re

import pymysql
from weirtest import texts
from weirtest.mywire import (BASIC, LOCAL_FILES, MULTI_STATEMENTS, QUERY, STMT_EXECUTE, STMT_PREPARE, Wire, execute_payload, plain, status_of,
                             text_row)
from weirtest.private import PrivateServer

SERVERS = ["mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[mariadb").split("[")[1].rstrip("]")
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "texts/my")
DATABASE = "texts"
GLOBAL = "process, reload, replication client, replication slave"
IN_TRANSACTION = 1
# Of a client that keeps its server for another reason, MariaDB's notes do, too.
MOMENTS = ("last_result",)
# By its statistics a server finds an index or none.
NO_GOOD_INDEX, NO_INDEX = 16, 32
# What is another number in the next session, and what changes by itself.
OF_THE_SESSION = re.compile(r"connection_id|processlist|uuid\(|\bstatus\b|data_free|checksum|innodb_|unix_timestamp|show (?:index|keys)", re.IGNORECASE)
UNORDERED = re.compile(r"information_schema", re.IGNORECASE)
TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?")


@functools.cache
def server():
    found = PrivateServer(KIND)
    with pymysql.connect(unix_socket=found.env["SOCKET"], user="root") as root, root.cursor() as c:
        c.execute("revoke all privileges, grant option from app@'%'")
        c.execute(f"grant {GLOBAL} on *.* to app@'%'")
        c.execute(f"grant all on {DATABASE}.* to app@'%'")
    return found


class Client(Wire):
    """Sends a text as a program does: by itself, or prepared with its values."""

    def __init__(self, target):
        super().__init__(target, capabilities=BASIC | MULTI_STATEMENTS | LOCAL_FILES)
        self.named = {}
        self.in_transaction = False

    def begin(self):
        # What a server makes of a login is asked for behind its first statement.
        super().ask("select 1")
        super().ask("begin")
        super().ask("select 1")

    def commit(self):
        super().ask("commit")

    def prepared(self, text):
        number = self.named.get((text.name, text.sql)) if text.name else None
        if number is None:
            self.command(STMT_PREPARE, text.sql)
            got = self.reply(STMT_PREPARE)
            if got[0][0] == "err":
                return got
            number = int.from_bytes(got[0][1][1:5], "little")
        if text.name:
            self.named[text.name, text.sql] = number
        values = [value if value is None else str(value) for value in text.values or []]
        self.command(STMT_EXECUTE, execute_payload(number, values))
        return self.reply(STMT_EXECUTE)

    def simple(self, text):
        self.command(QUERY, text.sql)
        got = self.reply()
        if got[-1][0] == "infile":
            for line in text.data:
                self.send_next((line + "\n").encode())
            self.send_next(b"")
            got = self.reply()
        return got

    def ask(self, text):
        if isinstance(text, str):
            return super().ask(text)
        is_prepared = text.values is not None or text.name is not None
        got = self.prepared(text) if is_prepared else self.simple(text)
        what, last = got[-1]
        if what != "err":
            self.in_transaction = bool(status_of(last) & IN_TRANSACTION)
        if OF_THE_SESSION.search(text.sql):
            return [what for what, _ in got if what != "row"]
        seen = plain(got, self.capabilities)
        for end in seen:
            if end[0] in ("ok", "end"):
                end[-1] = without_indexes(end[-1])
            elif end[0] == "column" and "information_schema" in text.sql.lower():
                end[1] = without_key(end[1])
        if not is_prepared:
            rows = iter([text_row(payload) for what, payload in got if what == "row"])
            seen = [[what[0], [TIME.sub("TIME", v or "") if v is not None else v for v in next(rows)]] if what[0] == "row" else what for what in seen]
        if UNORDERED.search(text.sql):
            seen.sort(key=str)
        return seen


def without_indexes(end):
    """The end of an answer, or its status."""
    if isinstance(end, dict):
        return {**end, "status": without_indexes(end["status"])}
    return end & ~(NO_GOOD_INDEX | NO_INDEX)


def without_key(column):
    """A column's definition. How MySQL reads its own tables, by a key or not, depends on what was read before, and shows in the case of a table's name and in
    PART_KEY_FLAG."""
    payload = bytearray.fromhex(column)
    payload[-4] &= ~0x40
    return bytes(payload).lower().hex()


def anew():
    """The schema of the lists, as it is before each."""
    with Wire(server().superuser()) as root:
        root.ask(f"drop database if exists {DATABASE}")
        root.ask(f"create database {DATABASE} character set utf8mb4")


texts.tests_of(FOLDER, KIND, Client, server, DATABASE, anew, MOMENTS)
