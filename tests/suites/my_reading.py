"""How the bytes of a client are read on MySQL and MariaDB: strings and names in other character sets and modes, data sent ahead. What is stored
is what the client has sent, and it is stored where the client stands."""

import contextlib
import os
import struct

from weirtest.case import weir
from weirtest.mywire import BASIC, MULTI_STATEMENTS, QUERY, STMT_EXECUTE, STMT_LONG_DATA, Closed, MyError, Wire, execute_payload
from weirtest.target import direct_target
from weirtest.weir import Weir

SERVERS = ["mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[mariadb").split("[")[1].rstrip("]")

SEVERAL = BASIC | MULTI_STATEMENTS


def direct():
    return direct_target(KIND)


def start(pool_size):
    return Weir.before(KIND, port=direct().port, pool_size=pool_size, settings=["workers=1"])


def run(wire, text):
    """All replies to a text: the rows, and the numbers of errors."""
    wire.command(QUERY, text)
    return [MyError(payload).code if what == "err" else payload for what, payload in wire.reply(QUERY) if what in ("row", "err")]


def admin(*statements):
    with Wire(direct()) as wire:
        for text in statements:
            assert not [found for found in run(wire, text) if isinstance(found, int)], text


@weir
def strings_are_stored_as_they_were_sent_whatever_has_changed_how_they_are_read(_context):
    """By a SET that Weir does not follow: among others, in a comment that is executed, in what SQL prepares."""
    admin("drop table if exists app.my_notes", "create table app.my_notes (a text, b text, c text) character set utf8mb4")
    mode, gbk = "sql_mode = 'NO_BACKSLASH_ESCAPES'", "names gbk"
    sets = [
        (mode, f"do 1; set {mode}"), (mode, f"select 1 into @x; set {mode}"), (mode, f"prepare p from 'set {mode.replace(chr(39), chr(39) * 2)}'; execute p"),
        (gbk, f"do 1; set {gbk}"), (gbk, "prepare p from 'set names gbk'; execute p; deallocate prepare p"), (gbk, "begin; set character_set_client = 28; commit"),
        (mode, "set @m = 'set sql_mode = ''NO_BACKSLASH_ESCAPES'''; prepare p from @m; execute p"),
    ]
    if KIND == "mysql":
        sets.append((gbk, "/*!80000 set names gbk */"))
    else:
        sets += [(mode, f"execute immediate 'set {mode.replace(chr(39), chr(39) * 2)}'"), (mode, "execute immediate concat('set sql_', 'mode = ''NO_BACKSLASH_ESCAPES''')")]
    for kind, text in sets:
        # Up to the comma a string to the server, and a call outside of strings to whoever reads by the rules of before.
        for asks in ("connection_id()", "row_count()"):
            if kind is mode:
                insert = f"insert into my_notes values ('C:\\', ' ,{asks}, ', '-- ')".encode()
            else:
                insert = b"insert into my_notes values ('\xbf\x5c', ' ," + asks.encode() + b", ', '-- ')"
            for within in (False, True):
                if within and "execute" in text and KIND == "mariadb" and "immediate" in text:
                    continue
                admin("truncate table app.my_notes")
                with start(2) as w, Wire(w.target(), capabilities=SEVERAL) as one, Wire(w.target(), capabilities=SEVERAL) as other:
                    assert other.ask("select 1") == [["1"]]
                    found = run(one, text.encode() + b"; " + insert) if within else [*run(one, text), *run(other, "select 1"), *run(one, insert)]
                    assert not [one for one in found if isinstance(one, int)], (text, within, found)
                with Wire(direct()) as wire:
                    assert wire.ask("select b from my_notes") == [[f" ,{asks}, "]], (text, within)


@weir
def a_schema_beyond_ascii_is_its_clients_own(_context):
    """Its name is read by the server in the character set of whoever had the server before."""
    names = ("myé", "myÃ©")
    for name in names:
        admin(f"drop database if exists `{name}`", f"create database `{name}`", f"create table `{name}`.w (i varchar(20))",
              f"insert into `{name}`.w values ('{'right' if name == names[0] else 'wrong'}')")
    try:
        for pool_size in (1, 2):
            with start(pool_size) as w, Wire(w.target(database=names[0])) as one, Wire(w.target()) as other:
                for text in ("do 1", "set names latin1", "do 1", "set names utf8mb4"):
                    run(one, text)
                    assert other.ask("select 1") == [["1"]]
                    assert one.ask("select i from w") == [["right"]], text
                    assert other.ask("select database()") == [["app"]]
                    assert one.ask("select database() is null") == [["0"]], text
                # Which name these bytes are in another character set nobody knows.
                for charset in (8, 51, 28):
                    with contextlib.suppress(MyError, Closed):
                        with Wire(w.target(database=names[0]), charset=charset) as stranger:
                            raise AssertionError(f"{charset}: {stranger.ask('select i from w')}")
                with Wire(w.target(database=names[0])) as again:
                    assert again.ask("select i from w") == [["right"]]
    finally:
        admin(*(f"drop database if exists `{name}`" for name in names))


@weir
def a_login_in_a_character_set_that_is_refused_harms_nobody(_context):
    for charset in (54, 35, 60):
        with start(1) as w, Wire(w.target()) as one:
            assert run(one, "set names utf8mb4") == []
            assert one.ask("select 1") == [["1"]]
            with contextlib.suppress(MyError, Closed), Wire(w.target(), charset=charset) as stranger:
                stranger.ask("select 1")
            for text in ("select 1", "begin", "commit", "select 2"):
                assert not [code for code in run(one, text) if isinstance(code, int)], (charset, text)


@weir(only="mariadb")
def a_backslash_that_escapes_nothing_hides_no_table(_context):
    """MariaDB takes warnings away with a statement that uses a table."""
    def seen(target):
        with Wire(target) as one, Wire(target) as other:
            found = []
            run(one, "set sql_mode = 'NO_BACKSLASH_ESCAPES'")
            for text in ("select '\\' as a from app.my_five limit 1", "select count(*), '\\' from app.my_five"):
                for before in ("select * from no_such_table", "select cast('x' as signed)"):
                    run(one, before)
                    other.ask("select 1")
                    run(one, text)
                    other.ask("select 1")
                    found.append(one.ask("show warnings"))
                # What was prepared has been read then, whatever the mode is when it is executed.
                statement = one.prepare(text)
                run(one, "set sql_mode = ''")
                for before in ("select * from no_such_table", "select cast('x' as signed)"):
                    run(one, before)
                    other.ask("select 1")
                    one.command(STMT_EXECUTE, execute_payload(statement))
                    one.reply(STMT_EXECUTE)
                    other.ask("select 1")
                    found.append(one.ask("show warnings"))
                run(one, "set sql_mode = 'NO_BACKSLASH_ESCAPES'")
            return found

    admin("drop table if exists app.my_five", "create table app.my_five (a int)", "insert into app.my_five values (1), (2), (3), (4), (5)")
    wanted = seen(direct())
    assert wanted == [[]] * 8
    for pool_size in (1, 2):
        with start(pool_size) as w:
            assert seen(w.target()) == wanted


@weir
def data_sent_ahead_of_a_statement_that_asks_is_never_lost(_context):
    """It is in another copy than the one that has the answers in it: the client is refused, and nothing is stored."""
    admin("drop table if exists app.my_blobs", "create table app.my_blobs (n bigint, d longblob)")
    for asks in ("row_count()", "found_rows()"):
        for parts in ([b"x" * 70_000], [b"x" * 60_000] * 6, [b"x" * 100, b"x" * 70_000], [b"x" * 100]):
            admin("truncate table app.my_blobs")
            with start(1) as w, Wire(w.target()) as one:
                statement = one.prepare(f"insert into my_blobs values ({asks}, ?)")
                for part in parts:
                    one.command(STMT_LONG_DATA, struct.pack("<IH", statement, 0) + part)
                # Some give a value for such a parameter all the same.
                payload = execute_payload(statement, [""])
                with contextlib.suppress(Closed):
                    one.command(STMT_EXECUTE, payload)
                    one.reply(STMT_EXECUTE)
            with Wire(direct()) as wire:
                found = wire.ask("select length(d) from my_blobs")
            whole = [[str(sum(map(len, parts)))]]
            assert found == whole or (not found and len(parts[-1]) > 100), (asks, found)
    # Without the question it is stored.
    with start(1) as w, Wire(w.target()) as one:
        statement = one.prepare("insert into my_blobs values (7, ?)")
        one.command(STMT_LONG_DATA, struct.pack("<IH", statement, 0) + b"x" * 70_000)
        one.command(STMT_EXECUTE, execute_payload(statement, [""]))
        one.reply(STMT_EXECUTE)
        assert one.ask("select length(d) from my_blobs where n = 7") == [["70000"]]
