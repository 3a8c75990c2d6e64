"""The same packets direct and through Weir give the same answer, packet by packet, for clients of several ages (with and
without DEPRECATE_EOF and SESSION_TRACK)."""

import os
import struct

from weirtest.case import both, eventually, weir
from weirtest.mywire import (BASIC, CHANGE_USER, CREATE_DB, DEBUG, DEPRECATE_EOF, DROP_DB, EXTENDED_METADATA, FIELD_LIST, FOUND_ROWS, INIT_DB, LOCAL_FILES, LONG_PASSWORD,
                             MULTI_STATEMENTS, PING, PLUGIN_AUTH, PROCESS_KILL, QUERY, QUIT, REFRESH, RESET_CONNECTION, SESSION_TRACK,
                             SET_OPTION, STATISTICS, STMT_CLOSE, STMT_EXECUTE, STMT_FETCH, STMT_LONG_DATA, STMT_PREPARE, STMT_RESET, Closed, MyError,
                             Wire, execute_payload, plain, scramble, text)
from weirtest.target import direct_target
from weirtest.weir import Weir

SERVERS = ["mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[mariadb").split("[")[1].rstrip("]")
WEIR_USERS = {"mariadb": ["app_other"], "mysql": ["app_other"]}

AGES = {"old": 0, "eof_gone": DEPRECATE_EOF, "tracking": SESSION_TRACK, "new": DEPRECATE_EOF | SESSION_TRACK}


def q(sql):
    return QUERY, sql


SCRIPTS = {
    "text": [
        q("select 1"), q("select 1, 'b', null, 2.5, cast('2024-02-29' as date), x'00ff'"), q("select 'ü🜲' as `wéird`"), q("selec 1"),
        q("select * from no_such_table"), q("do 0"), q("select 1 where 1 = 0"), q(""), q(";"), q("/* nothing */"), q("select 1;"),
        q("select 1; select 2"), q("select " + ", ".join(f"{i} as c{i}" for i in range(300))),
        q("with recursive n as (select 1 i union all select i + 1 from n where i < 900) select i, repeat('r', 50) from n"),
        q("select repeat('l', 300000)"), q("select '" + "x" * 100000 + "'"), q("show warnings"), q("select @@version_comment limit 0"),
    ],
    "writes": [
        q("create temporary table w (id int primary key auto_increment, v varchar(20), n tinyint)"), q("insert into w (v) values ('a'), ('b'), ('c')"),
        q("insert into w (id, v) values (1, 'again')"), q("insert into w (id, v) values (100, 'x')"), q("insert into w (v) values ('next')"),
        q("update w set v = 'a'"), q("update w set v = 'a'"), q("delete from w where id = 1"), q("select last_insert_id(), row_count()"),
        q("insert ignore into w (n) values (1000)"), q("show warnings"), q("replace into w (id, v) values (100, 'y')"), q("select * from w order by id"),
        q("insert into w (v) select v from w"), q("truncate w"), q("drop table w"),
    ],
    "transactions": [
        q("drop table if exists bytes_tx"), q("create table bytes_tx (id int primary key)"),
        q("begin"), q("insert into bytes_tx values (1)"), q("select * from bytes_tx"), q("commit"), q("start transaction read only"), q("insert into bytes_tx values (2)"),
        q("rollback"), q("set autocommit = 0"), q("select 1"), q("insert into bytes_tx values (3)"), q("rollback"), q("set autocommit = 1"),
        q("begin"), q("savepoint a"), q("insert into bytes_tx values (4)"), q("rollback to a"), q("rollback to nothing"), q("commit and chain"), q("commit"),
        q("set transaction isolation level read committed"), q("begin"), q("select count(*) from bytes_tx"), q("commit"),
        q("begin"), q("insert into bytes_tx values (5)"), q("create temporary table tt (i int)"), q("drop temporary table tt"), q("rollback"),
        q("begin"), q("insert into bytes_tx values (6)"), q("begin"), q("rollback"), q("select * from bytes_tx order by id"), q("drop table bytes_tx"),
    ],
    "commands": [
        (PING, ""), (INIT_DB, "app2"), q("select database()"), (INIT_DB, "no_such_database"), q("select database()"), (INIT_DB, "app"),
        (0x77, "unknown"), (PING, ""), (0x05, "old_create"), (0x06, "old_drop"), (STMT_FETCH, struct.pack("<II", 7777, 1)),
        (STMT_EXECUTE, execute_payload(7777)), (STMT_RESET, struct.pack("<I", 7777)), (STMT_CLOSE, struct.pack("<I", 7777)), (PING, ""),
        (SET_OPTION, b"\0\0"), q("select 1; select 2"), (SET_OPTION, b"\1\0"), q("select 1; select 2"), (SET_OPTION, b"\7\0"), (RESET_CONNECTION, ""), q("select database()"),
    ],
    "field_list": [
        q("create table if not exists bytes_fields (id int, v varchar(10) default 'x', t text)"), (FIELD_LIST, b"bytes_fields\0"), (FIELD_LIST, b"bytes_fields\0v%"),
        (FIELD_LIST, b"no_such_table\0"), q("drop table bytes_fields"),
    ],
    "multi": [
        (SET_OPTION, b"\0\0"), q("select 1; select 2, 'b'; do 0; select 3 where 1 = 0; set @x = 7; select @x"), q("select 1; selec 2; select 3"),
        q("select 1; select * from no_such_table; select 3"), q("begin; select 1; commit"), q("; select 1"), q("select 1;;"),
        q("drop procedure if exists bytes_proc"), q("create procedure bytes_proc() begin select 1; do 0; select 2, 3; end"), q("call bytes_proc()"), q("call bytes_proc(); select 'behind'"),
        q("drop procedure bytes_proc"), q("use app2; select database(); use app"), q("select database()"),
    ],
    "session": [
        q("set @a = 1, @b = 'x'"), q("select @a, @b"), q("set names latin1"), q("select @@character_set_client, @@collation_connection"), q("set names utf8mb4"),
        q("set time_zone = '+02:00'"), q("select @@time_zone"), q("set session sql_mode = 'ANSI_QUOTES'"), q("select \"a\""), q("set sql_mode = default"), q("select \"a\""),
        q("set no_such = 1"), q("set autocommit = 0"), q("set autocommit = 1"), q("use app2"), q("use no_such_database"), q("use app"),
        q("prepare p from 'select ? + 1'"), q("set @n = 4"), q("execute p using @n"), q("deallocate prepare p"), q("execute p using @n"),
        q("select get_lock('bytes lock', 0)"), q("select release_lock('bytes lock')"), q("set @@session.wait_timeout = 999"), q("select @@wait_timeout"),
        q("select 5 into @five"), q("select @five"), q("set transaction read only"), q("select 1"), q("set session transaction read only"), q("set session transaction read write"),
    ],
    "diagnostics": [
        q("select 1/0"), q("show warnings"), q("show count(*) warnings"), q("select @@warning_count, @@error_count"), q("select * from no_such_table"), q("show errors"),
        q("get diagnostics @c = number"), q("signal sqlstate '01000' set message_text = 'own warning'"), q("show warnings"), q("signal sqlstate '45000'"),
        q("select sql_calc_found_rows 1 union select 2 limit 1"), q("select found_rows()"), q("select row_count()"),
    ],
}


def play(target, capabilities, steps, piece=None):
    seen = []
    with Wire(target, capabilities) as wire:
        for code, payload in steps:
            wire.command(code, payload, piece)
            seen.append(plain(wire.reply(code), capabilities))
            if code == PING and seen[-1][0][0] == "ok":
                # It repeats the warnings of the statement before it, which is of no use to anybody.
                seen[-1][0][1]["warnings"] = 0
        seen.append(wire.ask("select 'the end'"))
    return seen


def declare(name, steps):
    for age, flags in AGES.items():
        def script(target, flags=flags):
            return play(target, BASIC | flags, steps)

        script.__name__ = f"{name}_{age}"
        both(script, ways=("transaction", "session") if age in ("old", "new") else ("transaction",))

    def bytewise(target):
        return play(target, BASIC | AGES["new"], [s for s in steps if len(s[1]) < 2000], piece=1 if not target.direct else None)

    bytewise.__name__ = f"{name}_bytewise"
    both(bytewise, ways=("transaction",))


for script_name, script_steps in SCRIPTS.items():
    declare(script_name, script_steps)


def each_age(function):
    """Declares a test once for old and once for new clients."""
    for age in ("old", "new"):
        def test(target, age=age):
            return function(target, BASIC | AGES[age])

        test.__name__ = f"{function.__name__}_{age}"
        both(test)
    return function


class Binary:
    """Prepared statements of one connection; remembers ids, notes what came."""

    def __init__(self, wire):
        self.wire = wire
        self.seen = []

    def prepare(self, sql):
        self.wire.command(STMT_PREPARE, sql)
        got = self.wire.reply(STMT_PREPARE)
        self.seen.append(plain(got, self.wire.capabilities))
        return struct.unpack("<I", got[0][1][1:5])[0] if got[0][0] == "prepared" else None

    def run(self, code, payload):
        self.wire.command(code, payload)
        got = self.wire.reply(code)
        self.seen.append(plain(got, self.wire.capabilities))
        return got

    def execute(self, statement, params=(), **kw):
        return self.run(STMT_EXECUTE, execute_payload(statement, params, **kw))


@each_age
def prepared(target, capabilities):
    with Wire(target, capabilities) as wire:
        b = Binary(wire)
        one = b.prepare("select ? as a, ? as b, concat(?, '!') as c")
        b.execute(one, ["1", None, "x"])
        b.execute(one, ["22", "two", None])
        b.execute(one, ["33", None, "again"], new_types=False)  # the types of before
        b.prepare("selec")
        b.prepare("select * from no_such_table")
        none = b.prepare("select 5 as five")
        b.execute(none)
        b.execute(none)
        b.run(STMT_CLOSE, struct.pack("<I", none))
        b.execute(none)
        temp = b.prepare("create temporary table bin (id int primary key auto_increment, v varchar(100))")
        b.execute(temp)
        insert = b.prepare("insert into bin (v) values (?), (?)")
        b.execute(insert, ["a", "ü"])
        b.execute(insert, ["b", None], new_types=False)
        select = b.prepare("select * from bin where id >= ? order by id")
        b.execute(select, ["2"])
        b.execute(select, ["1000"])
        b.run(STMT_RESET, struct.pack("<I", select))
        b.execute(select, ["3"])
        many = b.prepare("select " + ", ".join("?" for _ in range(100)))
        b.execute(many, [str(i) if i % 3 else None for i in range(100)])
        return b.seen


@each_age
def prepared_among_others(target, capabilities):
    """Statements of many clients on few servers: each id is its own client's, whichever server it meets."""
    wires = [Wire(target, capabilities) for _ in range(14)]
    ids = [[w.prepare(f"select ?, {i}, {n}") for n in range(4)] for i, w in enumerate(wires)]
    seen = []
    for turn in range(4):
        for w, mine in zip(wires, ids, strict=True):
            for statement in mine:
                w.command(STMT_EXECUTE, execute_payload(statement, [f"t{turn}"], new_types=turn == 0))
                seen.append(plain(w.reply(STMT_EXECUTE), capabilities))
    for w in wires:
        w.close()
    return seen


@each_age
def long_data(target, capabilities):
    with Wire(target, capabilities) as wire:
        b = Binary(wire)
        one = b.prepare("select length(?), sha2(?, 256), ?")
        for _ in range(2):
            for part in (b"part one ", b"x" * 500000, b" the end"):
                b.run(STMT_LONG_DATA, struct.pack("<IH", one, 0) + part)
            b.run(STMT_LONG_DATA, struct.pack("<IH", one, 1) + b"second")
            # Parameters sent as long data are not in the packet again.
            payload = struct.pack("<IBI", one, 0, 1) + b"\0\x01" + b"\xfc\x00\xfc\x00\xfd\x00" + b"\x05third"
            b.run(STMT_EXECUTE, payload)
        b.run(STMT_LONG_DATA, struct.pack("<IH", one, 0) + b"dropped by the reset")
        b.run(STMT_RESET, struct.pack("<I", one))
        b.execute(one, ["a", "b", "c"])
        b.run(STMT_LONG_DATA, struct.pack("<IH", one, 99) + b"no such parameter")
        b.execute(one, ["a", "b", "c"])
        b.execute(one, ["a", "b", "c"])  # the same error: it lasts until the reset
        with Wire(target, capabilities) as other:
            o = Binary(other)
            o.execute(o.prepare("select length(?), sha2(?, 256), ?"), ["not", "the other's", "error"])
            b.seen += o.seen
        b.run(STMT_RESET, struct.pack("<I", one))
        b.execute(one, ["a", "b", "c"])
        b.run(STMT_LONG_DATA, struct.pack("<IH", 4444, 0) + b"no such statement")
        b.execute(one, ["d", "e", "f"])
        return b.seen


def typed(kind, value=b"", flags=0):
    """A parameter as COM_STMT_EXECUTE has it: type, flags, value; None as the value is NULL."""
    return kind, flags, value


INT, DOUBLE, BIG, DECIMAL = 3, 5, 8, 0xF6


def integer(n):
    return typed(BIG, struct.pack("<q", n))


def unsigned(n):
    return typed(BIG, struct.pack("<Q", n), 0x80)


def double(n):
    return typed(DOUBLE, struct.pack("<d", n))


def string(s):
    return typed(0xFD, text(s))


NULL = typed(6, None)
DATE = typed(12, b"\x04\xe8\x07\x02\x1d")


def execute_typed(statement, params, new_types=True):
    out = struct.pack("<IBI", statement, 0, 1) + bytes([sum(1 << i for i, p in enumerate(params) if p[2] is None), int(new_types)])
    if new_types:
        out += b"".join(bytes([kind, flags]) for kind, flags, _ in params)
    return out + b"".join(value for _, _, value in params if value is not None)


TYPE_CHANGES = {
    "select ? as v": [
        [double(1.5), string("again"), string("12abc"), integer(7), NULL, double(2.5)],
        [integer(7), string("again"), double(2.5), unsigned(2**63 + 5), string("5"), integer(-7)],
        [string("again"), integer(7), double(2.5), string("str"), DATE, string("2024-01-01 10:11:12"), integer(1)],
        [NULL, string("again"), integer(7), NULL, typed(DOUBLE, None), double(2.5)],
        [integer(-7), unsigned(7), integer(-7), typed(1, b"\x05"), typed(INT, struct.pack("<i", 700))],
        [typed(DECIMAL, text("1.25")), integer(700), string("abc"), double(0.5), typed(DECIMAL, text("1.25"))],
        [integer(7), string("1.5"), integer(7)], [DATE, integer(7), string("5"), DATE], [typed(0xFC, text("blob")), string("text")],
    ],
    "select ? + 1 as v": [
        [string("5"), string("-5"), string("5"), string("1.5"), string("5"), integer(7), double(2.5)],
        [string("abc"), string("5x"), string("1e5"), string("5"), string("99999999999999999999")], [string("1.5"), string("5")], [double(1.5), integer(7)],
    ],
    "select ? as v, ? as w, coalesce(?, ?) as x": [
        [(integer(1), integer(2), NULL, integer(3)), (NULL, double(2.5), string("a"), NULL), (string("x"), NULL, integer(1), NULL)],
        [(NULL, NULL, NULL, NULL), (string("1.5"), integer(2), NULL, string("-3")), (integer(1), integer(2), NULL, integer(3))],
    ],
}


@each_age
def parameters_of_changing_types(target, capabilities):
    """One client, statements executed with parameters of other types from time to time: MySQL's answers depend on all that were bound
    before. Each series begins with a statement of its own, of the same text."""
    with Wire(target, capabilities) as wire:
        b = Binary(wire)
        for sql, series in TYPE_CHANGES.items():
            for changes in series:
                one = b.prepare(sql)
                for params in changes:
                    params = params if isinstance(params[0], tuple) else [params]
                    b.run(STMT_EXECUTE, execute_typed(one, params))
                    b.run(STMT_EXECUTE, execute_typed(one, params, new_types=False))
                b.run(STMT_CLOSE, struct.pack("<I", one))
        return b.seen


@weir
def parameters_of_changing_types_from_server_to_server(_context):
    """The same while others come and go, so that the client runs now on this server and now on that one: what a server has settled of a
    statement's parameters goes with the client. These statements read."""
    def play(target, move):
        seen = []
        for sql, series in TYPE_CHANGES.items():
            for changes in series:
                with Wire(target, BASIC | AGES["new"]) as wire:
                    b = Binary(wire)
                    one = b.prepare(sql)
                    for params in changes:
                        params = params if isinstance(params[0], tuple) else [params]
                        move()
                        b.run(STMT_EXECUTE, execute_typed(one, params))
                    seen.append(b.seen)
        return seen

    direct = play(direct_target(KIND), lambda: None)
    with Weir.before(KIND, mode="transaction", pool_size=2, settings=["workers=1"]) as w, Wire(w.target()) as other:
        held = [False]

        def move():
            # The other client takes the server that is free, and gives it back the next time.
            other.ask("commit" if held[0] else "start transaction with consistent snapshot")
            held[0] = not held[0]

        through = play(w.target(), move)
    for d, t in zip(direct, through, strict=True):
        assert d == t, f"\n  direct  {d}\n  through {t}"


@each_age
def parameters_of_types_among_others(target, capabilities):
    """Many clients, each with parameters of its own types for the same texts, in turns: each gets what it would get alone."""
    seen = []
    for sql, series in TYPE_CHANGES.items():
        ways = [changes[0] if isinstance(changes[0][0], tuple) else [changes[0]] for changes in series]
        ways += [params if isinstance(params[0], tuple) else [params] for changes in series for params in changes]
        wires = [Wire(target, capabilities) for _ in ways]
        ids = [wire.prepare(sql) for wire in wires]
        for turn in range(3):
            for wire, one, params in zip(wires, ids, ways, strict=True):
                wire.command(STMT_EXECUTE, execute_typed(one, params, new_types=turn != 1))
                seen.append(plain(wire.reply(STMT_EXECUTE), capabilities))
        for wire in wires:
            wire.close()
    return seen


@each_age
def an_execution_before_any_types_were_told(target, capabilities):
    """Nobody is given the types that another client has told the server: what the server says where there are none is said here too."""
    with Wire(target, capabilities) as wire, Wire(target, capabilities) as other:
        b, c = Binary(wire), Binary(other)
        for sql, typed_by_other, params in (
            ("select ? as v", [string("other")], [string("again")]),
            ("select ? as v", [double(1.5)], [double(2.5)]),
            ("select ? as v, ? as w", [string("other"), NULL], [NULL, NULL]),
            ("select ? as v, ? as w", [integer(7), integer(8)], [string("a"), NULL]),
        ):
            theirs, one = c.prepare(sql), b.prepare(sql)
            c.run(STMT_EXECUTE, execute_typed(theirs, typed_by_other))
            for new_types in (False, False, True, False):
                b.run(STMT_EXECUTE, execute_typed(one, params, new_types=new_types))
                c.run(STMT_EXECUTE, execute_typed(theirs, typed_by_other, new_types=False))
            b.run(STMT_CLOSE, struct.pack("<I", one))
        return b.seen + c.seen


@each_age
def server_cursor(target, capabilities):
    with Wire(target, capabilities) as wire, Wire(target, capabilities) as other:
        b = Binary(wire)
        one = b.prepare("select i, repeat('c', 20) from (select 1 i union select 2 union select 3 union select 4 union select 5) t where i > ? order by i")
        b.execute(one, ["0"], flags=1)
        other.ask("select 1")
        for n in (2, 2, 2, 2):
            b.run(STMT_FETCH, struct.pack("<II", one, n))
        b.execute(one, ["3"], flags=1)
        b.run(STMT_RESET, struct.pack("<I", one))
        b.run(STMT_FETCH, struct.pack("<II", one, 2))
        b.execute(one, ["1"], flags=1)
        b.run(STMT_FETCH, struct.pack("<II", one, 1))
        # MySQL 9.7 answers an execution without a cursor of a statement that had one with columns and an OK where the
        # rows should be, so that is not asked here.
        b.run(STMT_RESET, struct.pack("<I", one))
        b.execute(one, ["4"], flags=1)
        b.run(STMT_FETCH, struct.pack("<II", one, 5))
        b.run(STMT_CLOSE, struct.pack("<I", one))
        b.seen.append(wire.ask("select 'after'"))
        return b.seen


@each_age
def prepared_survive_what_they_must(target, capabilities):
    with Wire(target, capabilities) as wire:
        b = Binary(wire)
        one = b.prepare("select ?, database()")
        b.execute(one, ["1"])
        wire.ask("use app2")
        b.execute(one, ["2"], new_types=False)
        wire.ask("begin")
        b.execute(one, ["3"], new_types=False)
        wire.ask("rollback")
        b.execute(one, ["4"], new_types=False)
        b.run(RESET_CONNECTION, b"")
        b.execute(one, ["5"])  # gone with the reset
        return b.seen


@each_age
def metadata_changes(target, capabilities):
    with Wire(target, capabilities) as wire:
        b = Binary(wire)
        wire.ask("create temporary table meta (a int)")
        wire.ask("insert into meta values (1)")
        one = b.prepare("select * from meta")
        b.execute(one)
        wire.ask("alter table meta add b varchar(5) default 'new'")
        b.execute(one)
        b.execute(one)
        return b.seen


@each_age
def procedures_binary(target, capabilities):
    with Wire(target, capabilities) as wire:
        b = Binary(wire)
        wire.ask("drop procedure if exists bytes_bin")
        wire.ask("create procedure bytes_bin(in a int, out o int) begin select a; set o = a + 1; select 'second'; end")
        one = b.prepare("call bytes_bin(?, @o)")
        b.execute(one, ["4"])
        b.execute(one, ["5"], new_types=False)
        b.seen.append(wire.ask("select @o"))
        wire.ask("drop procedure bytes_bin")
        return b.seen


def infile(wire, sql, parts):
    """LOAD DATA LOCAL: sends `parts` when asked for the file; returns what was said."""
    wire.command(QUERY, sql)
    seen = []
    got = wire.reply()
    while got and got[-1][0] == "infile":
        seen.append(["asked for", got[-1][1][1:].decode()])
        for part in parts:
            wire.send_next(part)
        wire.send_next(b"")
        got = wire.reply()
    return seen + plain(got, wire.capabilities)


@each_age
def local_infile(target, capabilities):
    rows = [b"".join(b"%d\tv%d\n" % (i, i) for i in range(n, n + 500)) for n in range(0, 10000, 500)]
    with Wire(target, capabilities | LOCAL_FILES) as wire:
        wire.ask("create temporary table inf (id int primary key, v varchar(20))")
        seen = [infile(wire, "load data local infile 'any name' into table inf", rows)]
        seen.append(infile(wire, "load data local infile 'empty' into table inf", []))
        seen.append(infile(wire, "load data local infile 'again' into table inf", rows[:1]))  # duplicates
        seen.append(infile(wire, "load data local infile 'x' into table no_such_table", rows[:1]))
        seen.append(infile(wire, "load data local infile 'x' into table inf lines terminated by ';'", [b"20000\ta;", b"2000", b"1\tb;"]))
        seen.append(wire.ask("select count(*), sum(id) from inf"))
    with Wire(target, capabilities) as wire:
        wire.ask("create temporary table inf (id int)")
        # Without LOCAL_FILES the server refuses before it asks.
        seen.append([p[0] for p in infile(wire, "load data local infile 'x' into table inf", [])])
        seen.append(wire.ask("select 'next'"))
    return seen


@both
def found_rows_flag(target):
    seen = []
    for flags in (0, FOUND_ROWS):
        with Wire(target, BASIC | AGES["new"] | flags) as wire:
            wire.ask("create temporary table fr (i int)")
            wire.ask("insert into fr values (1), (2)")
            for _ in range(2):
                wire.command(QUERY, "update fr set i = 5")
                seen.append(plain(wire.reply(), wire.capabilities))
    return seen


@both
def multi_statements_flag(target):
    seen = []
    for flags in (0, MULTI_STATEMENTS):
        with Wire(target, BASIC | AGES["new"] | flags) as wire:
            wire.command(QUERY, "select 1; select 2")
            seen.append(plain(wire.reply(), wire.capabilities))
    return seen


@both
def multi_statements_across_clients(target):
    """Clients with and without the flag, taking turns on the same servers."""
    wires = [Wire(target, BASIC | (MULTI_STATEMENTS if i % 2 else 0)) for i in range(16)]
    seen = []
    for _ in range(2):
        for wire in wires:
            wire.command(QUERY, "select 1; select 2")
            seen.append([p[0] for p in wire.reply()])
    for wire in wires:
        wire.close()
    return seen


@both
def pipelined(target):
    """Commands sent without waiting for the answers are answered in order."""
    with Wire(target, BASIC | AGES["new"]) as wire:
        wire.send(b"".join(wire.packet(bytes([QUERY]) + sql) for sql in
                           (b"select 1", b"select 2, 3", b"selec", b"do 0", b"select repeat('p', 100000)")) + wire.packet(bytes([PING])))
        seen = []
        for code in (QUERY, QUERY, QUERY, QUERY, QUERY, PING):
            wire.seq = 1
            seen.append(plain(wire.reply(code), wire.capabilities))
        return seen


@both
def splits(target):
    """Packets of exactly 16 MB - 1 and around it, in both directions."""
    with Wire(target, BASIC | AGES["new"]) as wire:
        seen = []
        edge = (1 << 24) - 1
        for size in (edge - 1, edge, edge + 1, 2 * edge):
            sql = b"select '" + b"s" * (size - 1 - len("select ''")) + b"'"
            wire.command(QUERY, sql)
            got = wire.reply()
            seen.append([len(p) for _, p in got])
            assert text_of(got) == b"s" * (size - 1 - len("select ''"))
        for size in (edge - 5, edge - 4, edge - 3, 2 * edge - 4):  # the row's own length takes four bytes
            wire.command(QUERY, f"select repeat('t', {size})")
            got = wire.reply()
            assert text_of(got) == b"t" * size, size
            seen.append([len(p) for _, p in got])
        one = wire.prepare("select length(?)")
        wire.command(STMT_EXECUTE, execute_payload(one, ["u" * (edge - 20)]))
        seen.append(plain(wire.reply(STMT_EXECUTE), wire.capabilities)[-2:])
        return seen


def text_of(got):
    row = next(p for w, p in got if w == "row")
    skip = {0xFC: 3, 0xFD: 4, 0xFE: 9}.get(row[0], 1)
    return row[skip:]


@both
def an_error_to_a_split_request(target):
    """It is numbered behind all packets of the request."""
    with Wire(target, BASIC | AGES["new"]) as wire:
        wire.command(QUERY, b"select * from no_such_table where a = '" + b"s" * (1 << 25) + b"'")
        seen = plain(wire.reply(), wire.capabilities)
        return [seen, wire.ask("select 'next'")]


@both
def statistics(target):
    with Wire(target) as wire:
        wire.command(STATISTICS)
        said = wire.reply(STATISTICS)[0][1]
        return [b"Uptime" in said, wire.ask("select 1")]


@both
def quit_is_quiet(target):
    seen = []
    for before in (None, "begin", "select 1"):
        wire = Wire(target)
        if before:
            wire.ask(before)
        wire.command(QUIT)
        seen.append(wire.closed_by_peer().hex())
        wire.close(politely=False)
    return seen


def change_user(wire, target, user, database, charset=45):
    """COM_CHANGE_USER, with a first guess that makes the other side switch."""
    wire.target = target
    plugin = "mysql_native_password"
    guess = scramble(plugin, target.password.encode(), b"\x01" * 20)
    body = user.encode() + b"\0" + bytes([len(guess)]) + guess + database.encode() + b"\0" + struct.pack("<H", charset)
    if wire.capabilities & PLUGIN_AUTH:
        body += plugin.encode() + b"\0"
    wire.command(CHANGE_USER, body)
    wire.after_login(plugin, b"\x01" * 20)


@each_age
def changing_user(target, capabilities):
    with Wire(target, capabilities) as wire:
        wire.ask("set @x = 1, time_zone = '+01:00'")
        wire.ask("create temporary table cu (i int)")
        seen = []
        for user, database in (("app_other", "app2"), ("app", "app"), ("app_other", "")):
            change_user(wire, target, user, database)
            seen.append(wire.ask("select substring_index(user(), '@', 1), database(), @x, @@time_zone, @@character_set_client"))
            try:
                wire.ask("select * from cu")
            except MyError as e:
                seen.append(e.code)
        seen.append(wire.ask("select connection_id()")[0][0] == str(wire.thread_id))
        return seen


def attempt(work, *args):
    try:
        return work(*args)
    except MyError as e:
        return e.code
    except (Closed, ConnectionError):
        return "closed"


@both
def changing_user_fails(target):
    """MariaDB goes on with the session before, and listens to three failures; MySQL closes."""
    asked = "select substring_index(user(), '@', 1), database(), @x, @@time_zone, @@collation_connection"
    seen = []
    for user, password, database in (("no_such_user", "wrong", "app"), ("app_other", "wrong", "app"), ("app_other", None, "no_such_database")):
        wire = Wire(target, BASIC | AGES["new"])
        wire.ask("set @x = 1, time_zone = '+01:00'")
        wire.ask("create temporary table cuf (i int)")
        wire.ask("begin")
        seen.append(attempt(change_user, wire, target.login("x", password), user, database, 224))
        seen.append([attempt(wire.ask, asked), attempt(wire.ask, "select * from cuf")])
        wire.close()
    wire = Wire(target, BASIC | AGES["new"])
    for _ in range(4):
        seen.append(attempt(change_user, wire, target.login("x", "wrong"), "app_other", "app"))
    seen.append(attempt(change_user, wire, target, "app", "app"))
    seen.append(attempt(wire.ask, asked))
    wire.close()
    return seen


@each_age
def changing_user_begins_anew(target, capabilities):
    """What a session had is gone, what the login names is there; whether several statements are allowed stays."""
    table = "bytes_cu"
    with Wire(target, capabilities) as wire:
        b = Binary(wire)
        one = b.prepare("select ?")
        wire.ask(f"drop table if exists {table}")
        wire.ask(f"create table {table} (i int)")
        wire.ask("begin")
        wire.ask(f"insert into {table} values (1)")
        seen = []
        for user, database, charset in (("app", "app", 45), ("app_other", "app2", 224), ("app", "", 8), ("app_other", "app", 999), ("app", "app", 45)):
            change_user(wire, target, user, database, charset)
            seen.append(plain([("ok", wire.ok)], capabilities))
            b.run(QUERY, b"select 'x', @@character_set_client, @@character_set_results, @@collation_connection, database()")
            b.run(QUERY, b"select 1; select 2")
            b.execute(one, ["gone"])
            wire.ask("set @x = 1, time_zone = '+01:00'")
            wire.command(SET_OPTION, b"\0\0" if user == "app" else b"\1\0")
            wire.reply()
            wire.ask("begin")
        wire.ask("rollback")
        b.run(QUERY, f"select * from {table}".encode())
        wire.ask(f"drop table {table}")
        return seen + b.seen


@both
def changing_user_among_others(target):
    """More clients than servers, each turning from one user to the other again and again."""
    wires = [Wire(target, BASIC | AGES["new"]) for _ in range(20)]
    seen = []
    for turn in range(3):
        for i, wire in enumerate(wires):
            user, database = ("app", "app") if (turn + i) % 2 else ("app_other", "app2")
            change_user(wire, target, user, database)
            wire.ask(f"set @x = {i}")
            seen.append(wire.ask("select substring_index(user(), '@', 1), database(), @x"))
            change_user(wire, target, user, database)
    for wire in wires:
        wire.close()
    return seen


@both
def changing_user_frees_locks(target):
    """Once a client is told that it is another user, nobody finds the locks of its session before any more."""
    table = "bytes_cul"
    seen = []
    with Wire(target, BASIC | AGES["new"]) as wire, Wire(target, BASIC | AGES["new"]) as other:
        other.ask(f"drop table if exists {table}")
        other.ask(f"create table {table} (i int primary key)")
        other.ask(f"insert into {table} values (1)")
        for _ in range(20):
            for taken in ("select get_lock('bytes_cul', 10)", f"lock tables {table} write", f"begin; update {table} set i = 1 + i - i"):
                for statement in taken.split("; "):
                    wire.ask(statement)
                change_user(wire, target, "app", "app")
                seen.append(attempt(other.ask, "select get_lock('bytes_cul', 0)"))
                seen.append(attempt(other.ask, f"select i from {table} for update nowait"))
                other.ask("do release_lock('bytes_cul')")
        other.ask(f"drop table {table}")
    return seen


@both
def old_commands(target):
    """Commands that only some servers still know: the same word from both."""
    seen = []
    with Wire(target) as wire:
        for code, payload in ((DEBUG, b""), (REFRESH, b"\x01"), (CREATE_DB, b"made_by_command"), (DROP_DB, b"made_by_command"), (PROCESS_KILL, struct.pack("<I", 4000000000))):
            wire.command(code, payload)
            seen.append([code, [w for w, _ in wire.reply(code)]])
        wire.command(PING)
        seen.append([w for w, _ in wire.reply(PING)])
    return seen


@both
def kill_by_command(target):
    with Wire(target) as victim, Wire(target) as killer:
        killer.command(PROCESS_KILL, struct.pack("<I", victim.thread_id))
        seen = [[w for w, _ in killer.reply(PROCESS_KILL)]]
        if target.kind == "mysql":
            # MySQL 9 has no such command any more. Weir may know it all the same.
            return killer.ask("select 'goes on'")

        def gone():
            try:
                victim.ask("select 1")
            except Exception:  # an error or a closed connection: both are an end
                return True
            return False

        eventually(gone, "the killed connection is gone")
        seen.append(killer.ask("select 'goes on'"))
        return seen


@both
def greeting(target):
    """What the greeting and the login's OK say. MariaDB does not set the first capability, to say that it is not MySQL."""
    with Wire(target, BASIC | AGES["new"]) as wire:
        with Wire(target, BASIC | AGES["new"], attrs={"program_name": "weir tests", "_pid": "1"}) as other:
            attrs = other.ask("select 1")
        needed = BASIC | AGES["new"] | LOCAL_FILES | FOUND_ROWS | MULTI_STATEMENTS | EXTENDED_METADATA
        return [wire.greeting[0], wire.version, wire.server_collation, hex(needed & wire.server_capabilities), wire.ok[:1].hex(), attrs,
                wire.ask("select @@character_set_client, @@collation_connection, database()")]


@both
def extended_metadata(target):
    """MariaDB says of columns what they are made from, to clients that want it; others take turns with them."""
    seen = []
    for _ in range(2):
        for flags in (0, EXTENDED_METADATA, DEPRECATE_EOF | EXTENDED_METADATA):
            if target.kind == "mysql" and flags & EXTENDED_METADATA:
                continue
            with Wire(target, (BASIC | flags) & ~LONG_PASSWORD) as wire:
                b = Binary(wire)
                wire.ask("create temporary table em (j json, t text, p point)")
                wire.ask("insert into em (j) values ('[1]')")
                b.run(QUERY, b"select * from em")
                b.run(QUERY, b"select 1, 'a'")
                b.execute(b.prepare("select j, ? from em"), ["x"])
                b.run(FIELD_LIST, b"em\0")
                b.run(QUERY, b"select * from no_such_table")
                b.run(QUERY, b"show warnings")
                seen.append(b.seen)
    return seen


@both
def charsets_of_login(target):
    seen = []
    for charset in (8, 33, 45, 63, 224, 255):
        with Wire(target, charset=charset) as wire:
            seen.append([charset, wire.ask("select @@character_set_client, @@character_set_results, @@collation_connection")])
    return seen
