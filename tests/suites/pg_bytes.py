"""The same bytes direct and through Weir give the same answer, message by message. Each script is a list of steps: bytes to
send, and how far to read then. Sent whole, and a few bytes at a time."""

import struct

from weirtest.case import both, eventually, weir
from weirtest.pgwire import (COPY_DONE, FLUSH, GSSENC_REQUEST, SSL_REQUEST, SYNC, LoginRefused, Wire, bind, close, copy_data, copy_fail,
                             describe, execute, function_call, message, parse, plain, query, startup)

SERVERS = ["postgres"]

# How far to read: a number of ReadyForQuery, or kinds of messages one after the other.
Z = 1
INT4, TEXT = 23, 25

SCRIPTS = {
    "simple": [
        (query("select 1"), Z), (query(""), Z), (query(" ; ;"), Z), (query("-- nothing"), Z), (query("select 1; select 'b', null"), Z),
        (query("select 1; select 1/0; select 3"), Z), (query("selec"), Z), (query("select 1 as a, 2.5 as b, 'ü🜲' as c, null as d"), Z),
        (query("select; select"), Z), (query("values (1), (2), (3)"), Z), (query("show server_version_num"), Z),
        (query("select 1" + " " * 70000), Z), (query("select '" + "x" * 300000 + "'"), Z),
    ],
    "simple_pipelined": [
        (query("select 1") + query("select 2") + query("select 1/0") + query("") + query("select 3; select 4") + query("select 5"), 6),
    ],
    "extended": [
        (parse("select $1::int4 + 1, $2::text") + bind(["41", "x"]) + describe("P") + execute() + SYNC, Z),
        (parse("select $1::int4 + 1", types=[INT4]) + bind([struct.pack("!i", 41)], formats=[1], results=[1]) + execute() + SYNC, Z),
        (parse("select $1::int4, $2::text", "named", [INT4, TEXT]) + describe("S", "named") + SYNC, Z),
        (bind(["1", None], "named") + describe("P") + execute() + bind(["2", "y"], "named", results=[1, 0]) + execute() + SYNC, Z),
        (parse("") + bind() + describe("P") + execute() + SYNC, Z),
        (parse("insert into pg_temp.nothing values (1)") + SYNC, Z),
        (parse("create temp table ext (i int primary key)") + bind() + execute() + SYNC, Z),
        (parse("insert into ext values ($1) returning i") + bind(["5"]) + describe("P") + execute() + SYNC, Z),
        (parse("update ext set i = i + 1") + bind() + describe("P") + execute() + SYNC, Z),
        (parse("select 1; select 2") + bind() + execute() + SYNC, Z),
        (SYNC, Z), (SYNC + SYNC + SYNC, 3), (FLUSH + SYNC, Z),
    ],
    "errors_skip_to_sync": [
        (parse("select 1/0") + bind() + execute() + parse("select 2") + bind() + execute() + SYNC, Z),
        (parse("selec") + bind() + execute() + describe("P") + close("S", "x") + SYNC, Z),
        (bind([], "unknown") + execute() + SYNC, Z), (describe("S", "unknown") + SYNC, Z), (describe("P", "unknown") + SYNC, Z),
        (execute("unknown") + SYNC, Z), (close("S", "unknown") + close("P", "unknown") + SYNC, Z),
        (parse("select $1::int") + bind([]) + execute() + SYNC, Z),
        (parse("select $1::int") + bind(["1", "2"]) + execute() + SYNC, Z),
        (parse("select $1::int") + bind(["x"]) + execute() + SYNC, Z),
        (parse("select $1::int") + bind([b"\x01\x02"], formats=[1]) + execute() + SYNC, Z),
        (parse("select $1::int") + bind(["1"], formats=[7]) + execute() + SYNC, Z),
        (parse("select $1::int") + bind(["1"], results=[9]) + execute() + SYNC, Z),
        (query("select 'still here'"), Z),
    ],
    "query_behind_error_is_skipped": [
        (parse("select 1/0") + bind() + execute() + query("select 'skipped'") + SYNC + query("select 'not skipped'"), 2),
    ],
    "query_inside_batch": [
        (parse("select 'kept', $1::text", "kept") + bind(["a"], "kept") + execute() + query("select 'simple'") + bind(["b"], "kept") + execute() + SYNC, 2),
    ],
    "multi_sync_pipeline": [
        (parse("select $1::int", "m") + bind(["1"], "m") + execute() + SYNC + bind(["x"], "m") + execute() + SYNC
         + bind(["3"], "m") + execute() + SYNC + query("select 4") + bind(["5"], "m") + execute() + SYNC + close("S", "m") + SYNC
         + bind(["6"], "m") + execute() + SYNC, 7),
    ],
    "implicit_transaction": [
        (query("create temp table imp (i int primary key)"), Z),
        (parse("insert into imp values ($1)", "ins") + bind(["1"], "ins") + execute() + bind(["2"], "ins") + execute() + bind(["1"], "ins")
         + execute() + SYNC, Z),
        (query("select count(*) from imp"), Z),
        (bind(["1"], "ins") + execute() + SYNC + bind(["1"], "ins") + execute() + SYNC + bind(["2"], "ins") + execute() + SYNC, 3),
        (query("select count(*) from imp"), Z),
        (query("insert into imp values (3); insert into imp values (3)"), Z),
        (query("insert into imp values (4); begin; insert into imp values (5); commit; insert into imp values (4)"), Z),
        (query("rollback"), Z), (query("table imp"), Z),
    ],
    "transactions": [
        (query("begin"), Z), (query("select 1/0"), Z), (query("select 1"), Z), (query("commit"), Z), (query("commit"), Z),
        (query("begin; select 1/0; commit"), Z), (query("rollback"), Z), (query("begin") + query("select 1") + query("rollback"), 3),
        (parse("begin") + bind() + execute() + SYNC, Z), (parse("select 1") + bind() + execute() + SYNC, Z),
        (parse("select 1/0") + bind() + execute() + SYNC, Z), (parse("select 1") + bind() + execute() + SYNC, Z),
        (parse("rollback") + bind() + execute() + SYNC, Z),
        (query("start transaction isolation level serializable read only"), Z), (query("create table never (i int)"), Z), (query("end"), Z),
        (query("begin; savepoint a; release a; savepoint b; rollback to b"), Z), (query("commit and chain"), Z), (query("rollback"), Z),
        (query("set transaction read only"), Z), (query("begin"), Z), (query("begin"), Z), (query("abort"), Z),
    ],
    "flush": [
        (parse("select $1::int", "f") + describe("S", "f") + FLUSH, "1tT"),
        (bind(["7"], "f") + execute() + FLUSH, "2DC"),
        (bind(["8"], "f") + FLUSH, "2"), (describe("P") + FLUSH, "T"), (execute() + FLUSH, "DC"),
        (bind(["x"], "f") + FLUSH, "E"), (bind(["9"], "f") + execute() + FLUSH + SYNC, Z),
        (bind(["10"], "f") + execute() + SYNC, Z), (FLUSH + FLUSH + close("S", "f") + FLUSH, "3"), (SYNC, Z),
    ],
    # A server works on each message when it comes. What it flushes by itself is an error, a notice, and what is long.
    "without_sync": [
        (query("begin"), Z), (parse("select 1/0") + bind() + execute(), "1E"), (SYNC, Z), (query("rollback"), Z),
        (parse("select 1/0") + bind() + execute(), "1E"), (parse("select 'skipped'") + bind() + execute() + SYNC, Z),
        (parse("selec"), "E"), (SYNC, Z), (bind([], "unknown"), "E"), (FLUSH + SYNC, Z),
        (parse("do $$ begin raise notice 'heard'; end $$") + bind() + execute(), "12N"), (SYNC, Z),
        (query("create temp table early (i int primary key)"), Z), (parse("insert into early values ($1)", "early"), ""),
        (bind(["1"], "early") + execute(), ""), (bind(["2"], "early") + execute(), ""), (bind(["1"], "early") + execute(), "12C2C2E"), (SYNC, Z),
        (query("table early"), Z), (parse("select 'whole'") + bind() + describe("P"), ""), (execute() + SYNC, Z),
    ],
    "portals": [
        (parse("select i from generate_series(1, 10) i", "series") + bind([], "series") + execute(limit=3) + execute(limit=3) + execute() + SYNC, Z),
        (bind([], "series") + execute(limit=3) + FLUSH, "2DDDs"), (execute(limit=2) + FLUSH, "DDs"), (SYNC, Z),
        (execute() + SYNC, Z),
        (query("begin"), Z), (bind([], "series", "p1") + bind([], "series", "p2") + execute("p1", 2) + execute("p2", 3) + SYNC, Z),
        (execute("p1", 2) + execute("p2") + SYNC, Z), (close("P", "p1") + execute("p1") + SYNC, Z), (query("rollback"), Z),
        (query("begin"), Z), (bind([], "series", "p3") + execute("p3", 1) + SYNC, Z), (query("commit"), Z), (execute("p3", 1) + SYNC, Z),
        (query("begin; declare c scroll cursor for select i from generate_series(1, 10) i"), Z), (execute("c", 2) + SYNC, Z),
        (query("fetch backward 1 from c; move 5 in c; fetch 2 from c"), Z), (query("close c; commit"), Z),
        (bind([], "series", "same") + bind([], "series", "same") + SYNC, Z), (close("S", "series") + SYNC, Z),
    ],
    "statements": [
        (parse("select 1", "a") + SYNC, Z), (parse("select 2", "a") + SYNC, Z), (close("S", "a") + parse("select 3", "a") + bind([], "a") + execute() + SYNC, Z),
        (parse("select 'unnamed'") + SYNC, Z), (bind() + execute() + SYNC, Z), (parse("selec") + SYNC, Z), (bind() + execute() + SYNC, Z),
        (parse("select 'unnamed again'") + SYNC, Z), (query("select 'destroys it'"), Z), (bind() + execute() + SYNC, Z),
        (query("prepare sqlname as select $1::int * 2"), Z), (bind(["4"], "sqlname") + describe("P") + execute() + SYNC, Z), (query("execute sqlname(5)"), Z),
        (query("execute a"), Z), (query("select name, statement from pg_prepared_statements where name in ('sqlname')"), Z),
        (query("deallocate sqlname"), Z), (bind(["4"], "sqlname") + execute() + SYNC, Z), (query("deallocate a"), Z), (bind([], "a") + execute() + SYNC, Z),
        (parse("select 'x'", "b") + parse("select 'y'", "c") + SYNC, Z), (query("deallocate all"), Z), (bind([], "b") + execute() + SYNC, Z),
        (parse("select 'x2'", "b") + bind([], "b") + execute() + SYNC, Z), (parse("deallocate all") + bind() + execute() + SYNC, Z),
        (bind([], "b") + execute() + SYNC, Z), (parse("select 'x3'", "b") + SYNC, Z), (query("discard all"), Z), (bind([], "b") + execute() + SYNC, Z),
        (parse("select 'long name'", "n" * 100) + bind([], "n" * 100) + execute() + SYNC, Z),
        (parse("select 1", "weird \"' name") + bind([], "weird \"' name") + execute() + close("S", "weird \"' name") + SYNC, Z),
    ],
    "prepared_in_failed_batch": [
        # What was parsed before the error is there afterwards, what came behind it is not.
        (parse("select 'before'", "before") + parse("selec", "bad") + parse("select 'after'", "after") + SYNC, Z),
        (bind([], "before") + execute() + SYNC, Z), (bind([], "bad") + SYNC, Z), (bind([], "after") + execute() + SYNC, Z),
        (parse("select 'now'", "after") + bind([], "after") + execute() + SYNC, Z),
        (query("begin"), Z), (parse("select 'in transaction'", "intx") + SYNC, Z), (query("rollback"), Z), (bind([], "intx") + execute() + SYNC, Z),
        (query("begin; select 1/0"), Z), (parse("select 'in failed'", "infailed") + SYNC, Z), (query("rollback"), Z), (bind([], "infailed") + SYNC, Z),
    ],
    "plan_change": [
        (query("create temp table pc (a int); insert into pc values (1)"), Z), (parse("select * from pc", "star") + bind([], "star") + execute() + SYNC, Z),
        (query("alter table pc add b text default 'b'"), Z), (bind([], "star") + execute() + SYNC, Z), (bind([], "star") + describe("P") + execute() + SYNC, Z),
        (close("S", "star") + parse("select * from pc", "star") + bind([], "star") + execute() + SYNC, Z),
    ],
    "copy_in": [
        (query("create temp table cp (i int primary key, t text)"), Z),
        (query("copy cp from stdin"), "G"), (copy_data(b"1\tone\n2\ttwo\n") + copy_data(b"3\tthr") + copy_data(b"ee\n") + COPY_DONE, Z),
        (query("copy cp from stdin"), "G"), (copy_data(b"4\tfour\n") + copy_fail("no more"), Z),
        (query("copy cp from stdin"), "G"), (copy_data(b"5\tfive\n1\tagain\n") + COPY_DONE, Z),
        (query("copy cp from stdin"), "G"), (copy_data(b"not a number\tx\n") * 50 + COPY_DONE + query("select 'after'"), 2),
        (query("copy cp from stdin"), "G"), (FLUSH + SYNC + copy_data(b"6\tsix\n") + FLUSH + COPY_DONE, Z),
        (query("copy no_such_table from stdin"), Z), (query("select * from cp order by i"), Z),
        (query("copy cp from stdin") + copy_data(b"7\tseven\n") + COPY_DONE + query("select 'pipelined'"), 2),
        (copy_data(b"stray") + copy_data(b"stray") + COPY_DONE + copy_fail("stray") + query("select 'strays are ignored'"), Z),
        (query("copy cp from stdin; select 'two'; copy cp from stdin"), "G"), (copy_data(b"8\teight\n") + COPY_DONE, "G"), (copy_data(b"9\tnine\n") + COPY_DONE, Z),
        (query("begin"), Z), (query("copy cp from stdin"), "G"), (copy_data(b"x\n") + COPY_DONE, Z), (query("select 1"), Z), (query("rollback"), Z),
        (query("select count(*) from cp"), Z),
    ],
    "copy_in_extended": [
        (query("create temp table ce (i int primary key)"), Z),
        (parse("copy ce from stdin") + bind() + execute() + FLUSH, "12G"), (copy_data(b"1\n2\n") + COPY_DONE + SYNC, Z),
        (parse("copy ce from stdin") + bind() + execute() + FLUSH, "12G"), (copy_data(b"3\n") + copy_fail("stop") + SYNC, Z),
        (parse("copy ce from stdin") + bind() + execute() + FLUSH, "12G"), (copy_data(b"1\n") + COPY_DONE + SYNC, Z),
        (parse("copy ce from stdin") + bind() + execute() + copy_data(b"7\n8\n") + COPY_DONE + parse("select 'behind'") + bind() + execute() + SYNC, Z),
        (parse("copy ce to stdout") + bind() + execute() + SYNC, Z), (query("select count(*) from ce"), Z),
    ],
    "copy_out": [
        (query("copy (select i, 'v' || i from generate_series(1, 5) i) to stdout"), Z), (query("copy (select i from generate_series(1, 3) i) to stdout (format binary)"), Z),
        (query("copy (select 1 / (3 - i) from generate_series(1, 5) i) to stdout"), Z), (query("copy (select 1) to stdout; select 2; copy (select 3) to stdout"), Z),
        (query("copy (select repeat('c', 100000) from generate_series(1, 20)) to stdout"), Z), (query("copy (select 1 where false) to stdout with csv header") + query("select 1"), 2),
    ],
    "function_call": [
        (function_call(177, [b"2", b"3"]), Z), (function_call(177, [struct.pack("!i", 2), struct.pack("!i", 3)], [1], 1), Z),
        (function_call(999999, []), Z), (function_call(177, [b"2"]), Z), (function_call(177, [None, b"1"]), Z), (function_call(177, [b"x", b"3"]), Z),
        (query("begin"), Z), (function_call(177, [b"2", b"3"]) + function_call(154, [b"1", b"0"]) + function_call(177, [b"2", b"3"]), 3), (query("rollback"), Z),
        (function_call(177, [b"2", b"3"]) + query("select 1") + parse("select 2") + bind() + execute() + SYNC, 3),
    ],
    "notices": [
        (query("do $$ begin raise notice 'n %', 1; raise warning 'w'; raise info 'i'; end $$"), Z), (query("drop table if exists never_was"), Z),
        (parse("do $$ begin raise notice 'from a batch'; end $$") + bind() + execute() + SYNC, Z),
        (query("set client_min_messages = error; do $$ begin raise warning 'unheard'; end $$"), Z),
    ],
    "notifications": [
        (query("listen bytes_channel; notify bytes_channel, 'own'"), Z), (query("notify bytes_channel, 'again'") + query("select 1"), 2),
        (query("begin; notify bytes_channel, 'late'"), Z), (query("select 1"), Z), (query("commit"), Z), (query("unlisten *; notify bytes_channel, 'unheard'"), Z),
    ],
    "parameter_status": [
        (query("set application_name = 'renamed'"), Z), (query("set timezone = 'Asia/Tokyo'; set datestyle = 'German'"), Z), (query("set client_encoding = latin1"), Z),
        (query("begin; set local timezone = 'UTC'"), Z), (query("rollback"), Z), (query("show timezone"), Z), (query("reset all"), Z),
        (query("select set_config('intervalstyle', 'iso_8601', false)"), Z), (query("set work_mem = '3MB'"), Z), (query("show work_mem"), Z),
        (query("set session characteristics as transaction read only"), Z), (query("create table never (i int)"), Z), (query("discard all"), Z), (query("show timezone"), Z),
    ],
    "large": [
        (query("select repeat('l', 5000000)"), Z), (parse("select length($1::text), $1::text") + bind(["m" * 3000000]) + execute() + SYNC, Z),
        (query("select " + ", ".join(f"{i} as c{i}" for i in range(1600))), Z), (query("select i, repeat('r', 100) from generate_series(1, 20000) i"), Z),
        (parse("select " + " + ".join(f"${i}::int" for i in range(1, 2001))) + bind(["1"] * 2000) + execute() + SYNC, Z),
        (query("select '" + "q" * 2000000 + "'") + query("select 1"), 2),
    ],
    "many_statements": [
        (b"".join(parse(f"select {i}, $1::text", f"s{i}") for i in range(300)) + SYNC, Z),
        (b"".join(bind([f"v{i}"], f"s{i}") + execute() for i in range(300)) + SYNC, Z),
        (b"".join(bind([f"w{i}"], f"s{i}") + execute() + SYNC for i in range(0, 300, 7)), 43),
        (b"".join(close("S", f"s{i}") for i in range(300)) + SYNC, Z), (bind(["x"], "s5") + SYNC, Z),
    ],
    "names_in_a_pipeline_that_fails": [
        # What a name means depends on the outcome of what was sent before it.
        (query("begin") + query("select 1/0") + close("S", "a") + parse("select 1", "a") + SYNC + close("S", "a") + SYNC + bind([], "a") + SYNC + query("rollback"), 6),
        (bind([], "a") + execute() + SYNC, Z),
        (parse("select 'kept'", "k") + SYNC + query("begin") + query("select 1/0") + query("deallocate all") + query("rollback")
         + bind([], "k") + execute() + SYNC, 6),
        (parse("selec") + close("S", "k") + SYNC + bind([], "k") + execute() + SYNC + close("S", "k") + SYNC + bind([], "k") + execute() + SYNC, 4),
        (parse("selec", "t") + SYNC + parse("select 't'", "t") + SYNC + bind([], "t") + execute() + SYNC + parse("select 'u'", "t") + SYNC, 4),
        (query("discard all") + parse("select 'later'", "l") + SYNC + bind([], "l") + execute() + SYNC + query("deallocate l") + bind([], "l") + SYNC, 5),
        (parse("select 'one'") + SYNC + parse("selec") + SYNC + bind() + execute() + SYNC, 3),
        (parse("select 'two'") + SYNC + bind([], "gone") + parse("select 'three'") + SYNC + bind() + execute() + SYNC, 3),
        (parse("select 'four'") + SYNC + query("select 5") + bind() + execute() + SYNC, 3),
    ],
    "a_reset_that_is_rolled_back": [
        (query("set app.v = 'x'"), Z), (query("begin"), Z), (query("reset app.v"), Z), (query("rollback"), Z), (query("show app.v"), Z),
        (query("reset app.v") + query("set app.v = 'y'") + query("show app.v"), 3), (query("show app.v"), Z),
        (query("discard all"), Z), (query("show app.v"), Z),
    ],
    "long_pipeline": [
        (b"".join(parse(f"select {i}") + bind() + execute() + SYNC for i in range(400)), 400),
        (b"".join(parse("select 1/(%d - 200)" % i) + bind() + execute() for i in range(400)) + SYNC, Z),
    ],
    "locks_and_temp": [
        (query("select pg_advisory_lock(99)"), Z), (query("select pg_advisory_unlock(99)"), Z), (query("select pg_advisory_unlock(99)"), Z),
        (query("create temp table tt (i int) on commit preserve rows"), Z), (query("insert into tt values (1)"), Z), (query("select * from tt"), Z),
        (query("begin"), Z), (query("create temp table gone (i int) on commit drop"), Z), (query("commit"), Z), (query("select * from gone"), Z),
        (query("select nextval('no_such_seq')"), Z), (query("create temp sequence sq"), Z), (query("select nextval('sq'), nextval('sq')"), Z),
        (query("select currval('sq'), lastval()"), Z), (query("discard temp"), Z), (query("select * from tt"), Z), (query("discard sequences; discard plans"), Z),
    ],
}


def play(target, steps, piece=None):
    seen = []
    with Wire(target) as wire:
        for send, how_far in steps:
            wire.send(send, piece)
            if isinstance(how_far, int):
                seen.append(plain(wire.until("Z", how_far)))
            else:
                seen.append(plain([m for kind in how_far for m in wire.until(kind)]))
        # Nothing may be left over: the next answer is the next question's.
        wire.send(query("select 'the end'"))
        seen.append(plain(wire.until("Z")))
    return seen


def declare(name, steps):
    def whole(target):
        return play(target, steps)

    whole.__name__ = name
    both(whole)
    if sum(len(s) for s, _ in steps) < 20000:
        def in_pieces(target):
            return play(target, steps, piece=1 if not target.direct else None)

        in_pieces.__name__ = name + "_bytewise"
        both(ways=("transaction",))(in_pieces)

    def in_sevens(target):
        return play(target, steps, piece=7001 if not target.direct else None)

    in_sevens.__name__ = name + "_in_blocks"
    if sum(len(s) for s, _ in steps) >= 20000:
        both(ways=("transaction",))(in_sevens)


for script_name, script_steps in SCRIPTS.items():
    declare(script_name, script_steps)


@both
def greeting(target):
    """Startup in its variants: what is said before the first ReadyForQuery."""
    seen = []
    for params in ({}, {"application_name": "bytes"}, {"TimeZone": "Asia/Tokyo", "DateStyle": "German", "client_encoding": "LATIN1"},
                   {"options": "-c geqo=off -c search_path=pg_catalog"}, {"extra_float_digits": "2", "search_path": "public"},
                   {"options": "-c search_path=\"a\\ b\",c --work_mem=5MB"}, {"replication": "false"}):
        with Wire(target, params) as wire:
            statuses = sorted(p.decode() for k, p in wire.greeting if k == "S")
            rest = [k for k, p in wire.greeting if k not in "SN" and not (k == "R" and p[:4] != b"\0\0\0\0")]
            shown = [wire.ask(f"show {n}") for n in ("timezone", "search_path", "work_mem", "geqo", "extra_float_digits", "application_name")]
            seen.append([statuses, rest, shown])
    return seen


@both
def greeting_refused(target):
    seen = []
    for params in ({"database": "no_such_db"}, {"no_such_setting": "1"}, {"TimeZone": "Nowhere/Land"}, {"options": "-c work_mem=lots"}):
        try:
            Wire(target, params).close()
            seen.append("let in")
        except LoginRefused as e:
            seen.append(e.code)
    return seen


@both
def ssl_request(target):
    """A server without TLS answers N and the startup goes on."""
    wire = Wire(target, login=False)
    wire.send(SSL_REQUEST)
    seen = [wire.exactly(1).decode()]
    wire.login({})
    seen.append(wire.ask("select 1"))
    wire.close()
    return seen


@weir
def requests_before_startup(context):
    """GSSENCRequest is answered N too (PostgreSQL itself says G), in either order with SSLRequest, once each."""
    target = context.target("transaction")
    for requests in ((GSSENC_REQUEST,), (SSL_REQUEST, GSSENC_REQUEST), (GSSENC_REQUEST, SSL_REQUEST)):
        wire = Wire(target, login=False)
        for r in requests:
            wire.send(r)
            assert wire.exactly(1) == b"N"
        wire.login({})
        assert wire.ask("select 1") == [["1"]]
        wire.close()


@both
def startup_in_pieces(target):
    wire = Wire(target, login=False)
    wire.send(startup({"user": target.user, "database": target.database, "application_name": "slowly"}), 1)
    while True:
        kind, payload = wire.read()
        if kind == "R":
            wire.answer(payload)
        elif kind == "Z":
            break
    seen = wire.ask("show application_name")
    wire.close()
    return seen


@both
def newer_protocol(target):
    """A client that asks for more than the server speaks is told so exactly once, and served."""
    seen = []
    for version, params in (((3, 9), {}), ((3, 9999), {"_pq_.unknown": "1", "_pq_.other": "x"}), ((3, 0), {"_pq_.unknown": "1"})):
        with Wire(target, params, version=version) as wire:
            told = [p for k, p in wire.greeting if k == "v"]
            assert len(told) == 1, f"{len(told)} NegotiateProtocolVersion"
            options = sorted(o for o in told[0][8:].split(b"\0") if o)
            seen.append([[o.decode() for o in options], wire.ask("select 1")])
    return seen


@both
def old_protocol(target):
    """Refused with a word the old client can read: E and a text that ends with a NUL."""
    wire = Wire(target, login=False)
    wire.send(startup({"user": target.user}, (2, 0)))
    said = b""
    while got := wire.sock.recv(4096):
        said += got
    wire.close()
    return [said[:1].decode(), said[-1:] == b"\0"]


@both
def query_inside_copy(target):
    """Anything but copy messages, Flush and Sync inside COPY is a breach the server ends the connection for."""
    wire = Wire(target)
    wire.send(query("create temp table cq (i int)") + query("copy cq from stdin"))
    wire.until("G")
    wire.send(query("select 'interrupts'"))
    seen = plain(wire.closed_by_peer())
    wire.close(politely=False)
    # Weir may add a word of its own; the server's comes first.
    return seen[:1]


@both
def terminate_anywhere(target):
    """Goodbye in every state is a quiet end, and what was asked before it is done."""
    with Wire(target) as check:
        check.send(query("drop table if exists goodbye; create table goodbye (i serial)"))
        check.until("Z")
        insert = "insert into goodbye default values"
        for before in (b"", query(insert), query("begin; " + insert), parse(insert) + bind() + execute() + SYNC, parse(insert) + bind(),
                       query("copy (select 1) to stdout") + query(insert), query("begin; select 1/0")):
            wire = Wire(target)
            wire.send(before + message(b"X"))
            wire.closed_by_peer()
            wire.close(politely=False)
        eventually(lambda: check.ask("select count(*) from goodbye") == [["3"]], "what was asked is done, and nothing else")
        check.send(query("drop table goodbye"))
        check.until("Z")
    return True


@both
def cancel_by_key(target):
    """The key of the greeting cancels this client's query; a wrong secret and a wrong id do nothing."""
    from weirtest.pgwire import cancel_request

    def ask_to_cancel(pid, secret):
        w = Wire(target, login=False)
        w.send(cancel_request(pid, secret))
        assert w.closed_by_peer() == []
        w.close(politely=False)

    with Wire(target) as wire, Wire(target) as bystander:
        bystander.send(query("select pg_sleep(1), 'undisturbed'"))
        wire.send(query("select pg_sleep(1), 'wrong secret'"))
        ask_to_cancel(wire.pid, bytes(b ^ 1 for b in wire.secret))
        ask_to_cancel(wire.pid ^ 0x1555, wire.secret)
        seen = [plain(wire.until("Z"))]
        wire.send(query("select pg_sleep(50)"))
        wire.sock.settimeout(0.1)

        def cancelled():
            ask_to_cancel(wire.pid, wire.secret)
            try:
                return wire.until("Z")
            except TimeoutError:
                return None

        seen.append([m for m in plain(eventually(cancelled, "the query was cancelled")) if m[0] in "EZ"])
        wire.sock.settimeout(30)
        seen.append(plain(bystander.until("Z")))
        # While idle, a cancel does nothing to the next query.
        ask_to_cancel(bystander.pid, bystander.secret)
        bystander.send(query("select 'next'"))
        seen.append(plain(bystander.until("Z")))
    return seen
