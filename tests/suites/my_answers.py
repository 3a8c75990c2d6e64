"""What a client may ask about its own last statement, and whose schema its writes go to, for MySQL and MariaDB: other clients are
alive and use the same servers in between. Whatever is seen direct must be seen through Weir. On a server of its own."""

import contextlib
import functools
import os

from weirtest.case import eventually, in_threads, weir
from weirtest.mywire import (BASIC, INIT_DB, MULTI_STATEMENTS, PING, QUERY, STMT_EXECUTE, MyError, Wire, execute_payload, ok_packet,
                             text_row)
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[mariadb").split("[")[1].rstrip("]")


@functools.cache
def server():
    private = PrivateServer(KIND)
    with Wire(private.superuser()) as wire:
        wire.ask("create table app.five (i int primary key)")
        wire.ask("insert into app.five values (1), (2), (3), (4), (5)")
    return private


def start(pool_size=1, settings=(), **kw):
    return Weir.before(KIND, port=server().port, mode="transaction", pool_size=pool_size,
                       settings=["workers=1", *settings], **kw)


@contextlib.contextmanager
def admin():
    with Wire(server().superuser()) as wire:
        yield wire


@weir
def writes_go_to_the_clients_own_schema(_context):
    """One prepares in a schema and goes to another; the read of somebody in a third one stands behind its execution."""
    with admin() as a:
        for schema in ("app", "app2", "bench"):
            a.ask(f"drop table if exists {schema}.w")
            a.ask(f"create table {schema}.w (i int)")
    with start() as w, Wire(w.target().within("app")) as one, Wire(w.target().within("bench")) as other:
        statement = one.prepare("select count(*) from w")
        one.ask("use app2")
        for i in range(24):
            one.command(STMT_EXECUTE, execute_payload(statement))
            other.command(QUERY, "select 'mine', database()")
            one.reply(STMT_EXECUTE)
            one.ask(f"insert into w values ({i})")
            assert [text_row(p) for what, p in other.reply() if what == "row"] == [["mine", "bench"]]
        with admin() as a:
            seen = {schema: int(a.ask(f"select count(*) from {schema}.w")[0][0]) for schema in ("app", "app2", "bench")}
        assert seen == {"app": 0, "app2": 24, "bench": 0}, seen
        eventually(lambda: w.metric("weir_shared_requests", protocol="mysql") > 0, "weir_shared_requests > 0")


@weir
def nobody_sees_anothers_warnings(_context):
    """Statements and commands that leave the warnings of the session as they are: on a shared server those are another's."""
    leave = {
        "ping": lambda wire: (wire.command(PING), wire.reply(PING)),
        "select": lambda wire: wire.ask("select 1"),
        "set": lambda wire: wire.ask("set @@sql_warnings = 0"),
        "do": lambda wire: wire.ask("do 0"),
        "use": lambda wire: wire.ask("use app"),
        "begin": lambda wire: (wire.ask("begin"), wire.ask("commit")),
        "prepare": lambda wire: wire.prepare("select 1"),
        "nothing": lambda wire: None,
    }
    secrets = ["select cast('secret' as signed) from five", "select secret from five", "select 1 from secret"]
    with start() as w, Wire(w.target()) as one, Wire(w.target()) as other:
        for secret in secrets:
            for name, leaves in leave.items():
                one.ask("select i from five")
                with contextlib.suppress(MyError):
                    other.ask(secret)
                leaves(one)
                for ask in ("show warnings", "show errors", "show warnings limit 5", "select @@warning_count, @@error_count",
                            "show count(*) warnings", "/* mine */ show warnings"):
                    seen = one.ask(ask)
                    assert "secret" not in str(seen), (secret, name, ask, seen)
                    assert seen in ([], [["0"]], [["0", "0"]]), (secret, name, ask, seen)


@weir
def a_command_that_fails_shows_nobody_elses_warnings(_context):
    """MySQL adds the error of COM_INIT_DB to the warnings that the session has: on a server of several clients those are another's."""
    with start() as w, Wire(w.target()) as one, Wire(w.target()) as other:
        for ask in ("show warnings", "show errors", "select @@warning_count, @@error_count", "show count(*) warnings"):
            one.ask("select i from five")
            other.ask("select cast('secret' as signed) from five")
            one.command(INIT_DB, "not_there")
            assert [what for what, _ in one.reply(INIT_DB)] == ["err"]
            one.command(PING)
            assert [ok_packet(p, one.capabilities)["warnings"] for _, p in one.reply(PING)] == [1 if KIND == "mysql" else 0]
            seen = one.ask(ask)
            assert "secret" not in str(seen) and seen in ([["Error", "1049", "Unknown database 'not_there'"]], [["1", "1"]], [["1"]]), (ask, seen)


def seen_by(wire, steps):
    """What a client sees of each step: rows of texts, [code] of errors, affected rows and id of an OK."""
    out = []
    for step in steps:
        if step == PING:
            wire.command(PING)
            out.append([what for what, _ in wire.reply(PING)])
            continue
        if step.startswith("P:"):
            try:
                wire.command(STMT_EXECUTE, execute_payload(wire.prepare(step[2:])))
                got = wire.reply(STMT_EXECUTE)
            except MyError as e:
                out.append([e.code])
                continue
        else:
            wire.command(QUERY, step)
            got = wire.reply()
        rows = []
        for what, payload in got:
            if what == "row":
                rows.append(payload.hex() if step.startswith("P:") else text_row(payload))
            elif what == "err":
                rows.append([MyError(payload).code])
            elif what == "ok":
                said = ok_packet(payload, wire.capabilities)
                rows.append((said["affected"], said["insert_id"]))
        out.append(rows)
    return out


TABLES = ("drop table if exists app.made, app.given, app.others; create table app.made (id bigint primary key auto_increment, v int unique); "
          "create table app.given (id bigint primary key, v int); create table app.others (id bigint primary key auto_increment) auto_increment = 90001; "
          "insert into app.made (v) values (1), (2); insert into app.given values (1, 1); update app.five set i = i - 100 where i > 100")


def differences(sequences, pool_size=2):
    """Each sequence direct and through Weir, where another client that is alive the whole time runs statements of all kinds on
    the same servers between any two steps."""
    noise = ["insert into others values ()", "select i from five where i < 3", "select cast('secret' as signed) from five",
             "update five set i = i where i < 4", "select * from secret"]
    many = BASIC | MULTI_STATEMENTS
    found = []
    with start(pool_size) as w, Wire(server().superuser(), many) as a, Wire(w.target()) as other:
        for steps in sequences:
            a.ask(TABLES)
            with Wire(server().direct(), many) as wire:
                direct = seen_by(wire, steps)
            a.ask(TABLES)
            with Wire(w.target(), many) as wire:
                seen = []
                for n, step in enumerate(steps):
                    seen += seen_by(wire, [step])
                    for text in (noise[n % 5], noise[(n + 2) % 5]):
                        with contextlib.suppress(MyError):
                            other.ask(text)
            if seen != direct:
                found.append((steps, direct, seen))
    return found


INSERTS = [
    "insert into made (v) values (10)", "insert into made (id, v) values (500, 11)", "insert into made (id, v) values (-5, 12)",
    "insert into made (v) values (13), (14)", "insert into made (id, v) values (600, 15), (null, 16)",
    "insert into made (v) values (1) on duplicate key update v = 100",
    "insert into made (v) values (2) on duplicate key update id = last_insert_id(id), v = 102",
    "insert ignore into made (v) values (1)", "insert into made (v) values (17), (1)", "replace into made (v) values (2)",
    "replace into made (id, v) values (1, 99)", "insert into given values (7, 7)", "insert into given values (last_insert_id(5), 1)",
    "update given set v = last_insert_id(31)", "update given set v = last_insert_id(31) where id = 0", "do last_insert_id(81)",
    "select last_insert_id(83)", "P:insert into made (v) values (22)", "P:insert into made (id, v) values (501, 23)",
    "call calls_nothing()", "call sets_it()", "call makes_one()", "call makes_one_and_fails()", "selec", "set last_insert_id = 7",
    "/*!80000 select 1 */",
]
RETURNING = ["insert into made (v) values (30) returning v", "insert into made (id, v) values (5001, 31) returning id"]


def routines():
    with admin() as a:
        for name, body in {"calls_nothing": "do 0", "sets_it": "select last_insert_id(79)",
                           "makes_one": "insert into app.made (v) values (777)",
                           "makes_one_and_fails": "begin insert into app.made (v) values (778); select * from app.missing; end"}.items():
            a.ask(f"drop procedure if exists app.{name}")
            a.ask(f"create procedure app.{name}() {body}")


@weir
def last_insert_id_is_the_clients_own(_context):
    routines()
    inserts = INSERTS + (RETURNING if KIND == "mariadb" else [])
    asks = ["select last_insert_id()", "P:select last_insert_id()"]
    sequences = [[insert, asks[n % 2], PING, asks[n % 2]] for n, insert in enumerate(inserts)]
    # An id of its own first: what is given later does not replace it.
    sequences += [["insert into made (v) values (10000)", insert, "select @@identity"] for insert in inserts]
    sequences += [["begin", "insert into made (v) values (10000)", insert, "select last_insert_id()", "commit", "select last_insert_id()"]
                  for insert in inserts[:8]]
    found = differences(sequences)
    assert not found, (len(found), found[:3])


@weir
def what_a_text_asks_about_its_own_statements_is_answered_by_the_server(_context):
    """As Entity Framework saves."""
    check = "select id, v from made where row_count() = 1 and id = last_insert_id()"
    found = differences([
        [f"insert into made (v) values (20); {check}", "select row_count()"],
        [f"insert into made (id, v) values (900, 20); {check}"],
        ["update five set i = i + 100 where i > 2; select row_count()", "select row_count()"],
        ["select i from five; select found_rows()"],
        ["select row_count(); select row_count()"],
        ["update five set i = i + 100 where i > 2", "select row_count(); select row_count()"],
    ])
    assert not found, found


@weir
def settings_at_the_head_of_a_text_move_with_their_client(_context):
    """Entity Framework's `SET AUTOCOMMIT = 1; INSERT ...; SELECT ...`: the other client works on the only server in between."""
    check = "select id, v from made where row_count() = 1 and id = last_insert_id()"
    settings = "select @@autocommit, @@foreign_key_checks, @@time_zone, @@group_concat_max_len"
    found = differences([[f"{head}; insert into made (v) values (21); {check}", settings, settings]
                         for head in ("SET AUTOCOMMIT = 1", "set foreign_key_checks = 0, time_zone = '+03:00'",
                                      "set @@session.group_concat_max_len = 100; set autocommit = 1")], pool_size=1)
    # What is behind them fails, or sets more; what is refused sets nothing.
    found += differences([["set foreign_key_checks = 0; insert into made (v) values (1)", settings],
                          ["set nothing_there = 1; set foreign_key_checks = 0", settings],
                          ["set foreign_key_checks = 0; set nothing_there = 1", settings],
                          ["set foreign_key_checks = 0; set @mine = 5; select 1", settings, "select @mine"],
                          ["set foreign_key_checks = 0; insert into made (v) values (21); set time_zone = '+05:00'", settings],
                          ["set sql_mode = 'ANSI_QUOTES'; select 1", "select \"i\" from five", settings],
                          ["set autocommit = 0; insert into made (v) values (21)", settings, "rollback", settings, "set autocommit = 1"]])
    assert not found, (len(found), found[:3])


SETTINGS = ("select @@time_zone, @@sql_mode, @@group_concat_max_len, @@lc_messages, @@lc_time_names, @@optimizer_switch, @@foreign_key_checks, "
            "@@character_set_client, @@character_set_results, @@collation_connection, @@autocommit, @@sort_buffer_size")


@weir
def settings_that_only_the_server_knows_move_with_their_client(_context):
    """DEFAULT, expressions, SET CHARACTER SET, parts of optimizer_switch; settings of one statement. Nobody keeps the only server."""
    sets = ["set time_zone = default", "set sql_mode = default", "set sql_mode = concat(@@sql_mode, ',ANSI_QUOTES')",
            "set sql_mode = replace(@@sql_mode, 'STRICT_TRANS_TABLES', '')", "set group_concat_max_len = @@global.group_concat_max_len + 5",
            "set optimizer_switch = 'index_merge=off'", "set optimizer_switch = 'mrr=on', lc_messages = 'de_DE'", "set optimizer_switch = default",
            "set lc_time_names = 'de_DE', lc_messages = default", "set character set latin1", "set charset utf8mb4",
            "set foreign_key_checks = if(1, 0, 1)", "P:set time_zone = default"]
    for_one = ["select /*+ SET_VAR(sort_buffer_size = 100000) */ 5"]
    if KIND == "mariadb":
        for_one = ["set statement sort_buffer_size = 100000 for select 5", "set statement time_zone = '+07:00' for insert into made (v) values (5)"]
    found = differences([["set time_zone = '+03:00', foreign_key_checks = 0", one, SETTINGS, sets[n * 5 % len(sets)], SETTINGS]
                         for n, one in enumerate(sets + for_one)], pool_size=1)
    # In a transaction; refused.
    found += differences([["begin", one, SETTINGS, "P:select 1", "rollback", SETTINGS] for one in sets])
    found += differences([[f"{one}, nothing_there = 1", SETTINGS] for one in sets])
    assert not found, (len(found), found[:3])


@weir
def settings_of_any_kind_move_with_their_client(_context):
    """Nobody keeps the only server for one of these."""
    named = ["default_week_format", "max_sort_length", "read_buffer_size", "read_rnd_buffer_size", "bulk_insert_buffer_size", "optimizer_search_depth",
             "optimizer_prune_level", "eq_range_index_dive_limit", "auto_increment_increment", "auto_increment_offset", "max_sp_recursion_depth",
             "max_heap_table_size", "join_buffer_size", "sql_big_selects", "innodb_strict_mode", "innodb_table_locks", "low_priority_updates",
             "max_recursive_iterations" if KIND == "mariadb" else "cte_max_recursion_depth"]
    ask = "select " + ", ".join(f"@@{name}" for name in named)
    found = differences([[f"set session {name} = 1", ask, f"set session {name} = default", ask] for name in named]
                        + [["set " + ", ".join(f"{name} = 1" for name in named), ask, "select week('2024-06-01')"]], pool_size=1)
    assert not found, (len(found), found[:3])


@weir
def a_routine_that_is_not_there_keeps_nobody(_context):
    """The server looks for all routines before it runs anything: nothing has been left, and the other client has the only server."""
    found = differences([[one, "select @kept"] for one in (
        "select no_such_function(1)", "do no_such_function(sleep(0))", "call no_such_procedure(1)",
        "insert into given values (no_such_function(@kept := 5), 1)", "P:select no_such_function(1)")], pool_size=1)
    assert not found, (len(found), found[:3])


@weir
def row_count_is_that_of_the_clients_own_statement(_context):
    acts = ["update five set i = i + 100 where i > 2", "delete from given where id = 77", "insert into given values (7, 7), (8, 8)", "select i from five",
            "selec", "do 0", "begin", PING, "P:update five set i = i + 100 where i > 3", "P:select i from five", "call makes_one()",
            "create table if not exists five (i int)", "use app"]
    asks = ["select row_count()", "P:select row_count()", "insert into given values (row_count() + 1000, 1)"]
    routines()
    found = differences([[act, ask, "select id from given"] for act in acts for ask in asks])
    found += differences([["update five set i = i + 100 where i > 2", PING, "select row_count()"]])
    assert not found, (len(found), found[:3])


@weir(only="mysql")
def what_a_failed_select_leaves_in_store_is_nobody_elses(_context):
    """MySQL gives behind the next INSERT what FOUND_ROWS() was before, which on a shared server is what another client has found."""
    with admin() as a:
        a.ask("create table app.put_by (v int)")
    with start() as w, Wire(w.target()) as other:
        for ask in ("select i from five where i = (select i from five)", "do (select i from five)", "set @a = (select i from five)",
                    "delete from put_by where v = (select i from five)"):
            with Wire(w.target()) as one:
                other.ask("select i from five where i < 4")
                with contextlib.suppress(MyError):
                    one.ask(ask)
                one.ask("insert into put_by (v) values (7)")
                try:
                    seen = one.ask("select found_rows()")
                except MyError as error:
                    seen = error.code
                assert seen in ([["0"]], 1105), (ask, seen)


@weir
def found_rows_is_that_of_the_clients_own_read(_context):
    acts = [["select i from five"], ["select i from five where i > 9"], ["select i from five limit 2"], ["P:select i from five"],
            ["show tables like 'five'"], ["desc five"], ["select sql_calc_found_rows i from five limit 2"],
            ["select sql_calc_found_rows i from five limit 2", "begin", "commit"],
            ["select sql_calc_found_rows i from five limit 2", "set @@sql_notes = 1"],
            ["select sql_calc_found_rows i from five limit 2", "selec"],
            ["select sql_calc_found_rows i from five limit 2", "update given set v = 2"],
            ["select sql_calc_found_rows i from five limit 1, 2", "select found_rows()", "select i from five limit 1, 2"],
            ["select sql_calc_found_rows i from five limit 2; select 1"],
            *([select] for select in (
                "select i from five order by i desc limit 1, 2", "select i from five limit 2 offset 3 /* limit 9 */;", "select i from five limit 9, 2",
                "select 1 union select 2 limit 1", "select i from five union all select 7 order by 1 limit 1, 3", "(select i from five limit 1, 2)",
                "select count(*) from five limit 0, 1", "select (select max(i) from five limit 0, 1) limit 0, 5", "select distinct i % 2 from five limit 1, 1",
                "P:select i from five limit 3, 4"))]
    found = differences([[*act, ask] for act in acts for ask in ("select found_rows()", "P:select found_rows()")])
    assert not found, (len(found), found[:3])


@weir
def warnings_are_answered_in_all_forms(_context):
    acts = ["select cast('mine' as signed) from five", "select mine from five", "select i from five", "P:select cast('mine' as signed) from five",
            "insert into made (v) values ('mine')", "select 'no table'", "create table if not exists five (i int)"]
    asks = ["show warnings", "show errors", "show warnings limit 1", "show warnings limit 1, 2", "/* so */ show warnings",
            "show count(*) warnings", "show count(*) errors", "select @@warning_count", "select @@warning_count, @@error_count"]
    found = differences([[act, ask] for act in acts for ask in asks])
    # On MariaDB these leave them.
    found += differences([[acts[0], between, ask] for between in (PING, "set @@sql_notes = 1", "use app", "begin", "select 1", "do 0", "select i from five")
                          for ask in ("show warnings", "select @@warning_count")])
    found += differences([[act, "get diagnostics @n = number", "select @n"] for act in acts])
    found += differences([[act, "get diagnostics condition 1 @m = message_text, @c = mysql_errno", "select @m, @c"] for act in acts[:2]])
    assert not found, (len(found), found[:3])


@weir
def sessions_that_begin_without_autocommit(_context):
    """With the server's own autocommit off, each read is in a transaction: none is sent behind another client's."""
    with admin() as a:
        a.ask("set global autocommit = 0")
    try:
        with start() as w:
            def work(i):
                with Wire(w.target()) as wire:
                    for n in range(20):
                        assert wire.ask(f"select i + {i} from five where i = 1") == [[str(i + 1)]], n
                        wire.ask("commit")

            raised = in_threads(4, work)
            assert not raised, raised[:3]
    finally:
        with admin() as a:
            a.ask("set global autocommit = 1")
