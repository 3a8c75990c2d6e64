"""The same script direct and through Weir: every answer must be the same. Clients are alive at once and act in the order the
script says. Behind Weir each script runs with several numbers of servers, for what goes wrong with one goes right with two.
On a PostgreSQL of its own."""

import functools

from weirtest.case import eventually, weir
from weirtest.pgwire import (SYNC, Closed, LoginRefused, ServerError, Wire, bind, close, describe, execute, function_call, parse, plain, query, row)
from weirtest.private import PrivateServer
from weirtest.target import PASSWORD
from weirtest.weir import Weir

SERVERS = ["postgres"]


@functools.cache
def server():
    return PrivateServer("postgres")


class Sessions:
    """The clients of one script, and what they were told."""

    def __init__(self, target):
        self.target = target
        self.wires = {}
        self.seen = []

    def open(self, name, user=None, **params):
        target = self.target.login(user) if user else self.target
        self.wires[name] = Wire(target, params)
        return Client(self, name)

    def end(self):
        for wire in self.wires.values():
            wire.close()


class Client:
    def __init__(self, sessions, name):
        self.sessions, self.name = sessions, name

    @property
    def wire(self):
        return self.sessions.wires[self.name]

    def send(self, *messages):
        self.wire.send(b"".join(messages))

    def take(self, count=1):
        """Notes what comes up to the `count`th ReadyForQuery."""
        try:
            got = plain(self.wire.until("Z", count))
        except (Closed, ConnectionError):
            got = [["closed"]]
        for one in got:
            if one[0] in "EN":
                # Where in which source file is the server's own business, and so is the line of a statement's text.
                one[1] = {k: v for k, v in one[1].items() if k in "SCM"}
        self.sessions.seen.append((self.name, got))
        return got

    def ask(self, *messages):
        """Sends as one packet; a text is a Query. Notes all that comes."""
        out = [query(m) if isinstance(m, str) else m for m in messages]
        ends = sum(m[:1] in (b"Q", b"S", b"F") for m in out)
        self.send(*out)
        return self.take(ends)

    def prepare(self, sql, name="s", types=()):
        return self.ask(parse(sql, name, types), SYNC)

    def run(self, *params, name="s"):
        return self.ask(bind(params, name), execute(), SYNC)

    def close(self):
        self.wire.close()
        del self.sessions.wires[self.name]


def as_admin(sql):
    with Wire(server().superuser()) as wire:
        for one in [sql] if isinstance(sql, str) else sql:
            wire.ask(one)


def answers(function=None, *, pools=(1, 2, 3), modes=("transaction", "session"), before=(), settings=(), users=()):
    """The script is a function of `Sessions`. `before` is run by the superuser ahead of each run."""
    if function is None:
        return lambda f: answers(f, pools=pools, modes=modes, before=before, settings=settings, users=users)

    def seen_by(target):
        as_admin(["drop schema if exists public cascade", "create schema public", "grant all on schema public to public", *before])
        sessions = Sessions(target)
        try:
            function(sessions)
        finally:
            sessions.end()
        return sessions.seen

    @functools.wraps(function)
    def compared(_context):
        wanted = seen_by(server().direct())
        ways = [(mode, pool) for mode in modes for pool in (pools if mode == "transaction" else (8,))]
        for mode, pool in ways:
            with Weir.before("postgres", port=server().port, mode=mode, pool_size=pool, users=users,
                             settings=["workers=1", "pool.query_wait_timeout=10", *settings]) as w:
                got = seen_by(w.target())
            assert len(got) == len(wanted), (mode, pool, got[len(wanted) - 1:])
            for n, (is_so, should_be) in enumerate(zip(got, wanted, strict=True)):
                assert is_so == should_be, f"{mode}, pool of {pool}, answer {n}\n got    {is_so}\n direct {should_be}"

    return weir(compared)


# --- Statements are as fresh as direct ------------------------------------------------------------------------------------


@answers(before=["create table shadow as select 'permanent' as what", "grant all on shadow to public"])
def a_statement_prepared_beside_a_temporary_table_means_that_table(s):
    # A server that once had temporary tables has a place for them in its search path already.
    x = s.open("x")
    x.ask("create temporary table other (i int)")
    x.ask("discard temp")
    x.close()
    b, a = s.open("b"), s.open("a")
    b.prepare("delete from shadow returning what")
    a.ask("create temporary table shadow as select 'temporary' as what")
    a.ask(parse("delete from shadow returning what", "s"), bind((), "s"), execute(), SYNC)
    a.ask("drop table shadow")
    a.ask("discard all")
    a.ask("create temporary table shadow as select 'temporary' as what")
    a.prepare("delete from shadow returning what")
    a.run()
    a.ask("discard all")
    b.ask("select * from shadow")
    b.run()


@answers(pools=(2, 3), before=["create table shadow as select 'permanent' as what", "grant all on shadow to public"])
def a_statement_prepared_before_a_temporary_table_means_that_table(s):
    # A server that once had temporary tables is not a new session.
    x = s.open("x")
    x.ask("create temporary table other (i int)")
    x.ask("discard all")
    x.close()
    a = s.open("a")
    a.prepare("select what from shadow")
    a.run()
    a.ask("create temporary table shadow as select 'temporary' as what")
    a.run()
    a.ask("drop table shadow")
    a.run()
    a.ask(query("discard all"))
    # In one pipeline.
    a = s.open("again")
    a.prepare("select what from shadow")
    a.ask("create temporary table shadow as select 'temporary' as what", bind((), "s"), execute(), SYNC)


def new_reading(s, sql, change, use=lambda c: c.run(), undo=None):
    """A prepares; something changes; a new connection prepares the same text, A's own connection, too, and all use it, on
    this server and on another."""
    a = s.open("a")
    a.prepare(sql)
    a.ask(describe("S", "s"), SYNC)
    use(a)
    holder = s.open("holder")
    holder.ask("begin")
    holder.ask("select 1")
    use(a)  # with two servers: on the other one
    holder.ask("commit")
    as_admin(change)
    b = s.open("b")
    b.prepare(sql)
    b.ask(describe("S", "s"), SYNC)
    use(b)
    holder.ask("begin")
    holder.ask("select 1")
    use(b)
    c = s.open("c")
    c.ask(parse(sql, "s"), describe("S", "s"), SYNC)
    use(c)
    holder.ask("commit")
    c.prepare(sql, "t")
    a.prepare(sql, "t")
    a.ask(describe("S", "t"), SYNC)
    use(b)
    use(c)
    return a, b, c


@answers(pools=(2, 3), before=["create table t (i int, d date)", "grant all on t to public"])
def a_column_of_another_type_is_seen_by_who_prepares_anew(s):
    insert = "insert into t (d) values ($1)"
    a, b, _ = new_reading(s, insert, ["alter table t alter d type timestamptz"], lambda c: c.run("2024-05-06 07:08:09+00"))
    # A's own statement still takes a date, as it was told.
    a.ask(describe("S", "s"), SYNC)
    a.run("2024-05-06 07:08:09+00")
    b.ask("select d at time zone 'UTC', count(*) from t group by d order by 1")


@answers(pools=(2, 3), before=["create table t (i int)", "insert into t values (1)", "grant all on t to public"])
def a_table_with_more_columns_is_refused_to_who_prepared_before(s):
    a, _, _ = new_reading(s, "select * from t", ["alter table t add more text default 'more'"])
    a.run()
    a.ask("begin")
    a.run()
    a.ask("select 1")
    a.ask("rollback")
    a.ask(bind((), "s"), execute(), bind((), "t"), execute(), SYNC)
    a.ask(close("S", "s"), SYNC)
    a.prepare("select * from t")
    a.run()


@answers(pools=(2, 3), before=["create table t (i int, w text)", "insert into t values (1, 'old')", "grant all on t to public"])
def a_table_made_anew_is_seen(s):
    a, _, _ = new_reading(s, "select i, w from t", [
        "drop table t", "create table t (i int, w text)", "insert into t values (2, 'new')", "grant all on t to public"])
    a.run()


@answers(pools=(2, 3), before=["create table public.t as select 'public' as w", "create schema if not exists app_scram",
                               "drop table if exists app_scram.t", "grant all on schema app_scram to public", "grant all on t to public"])
def a_table_earlier_in_the_search_path_is_seen_by_who_prepares_anew(s):
    _, b, c = new_reading(s, "select w from t", [
        "create table app_scram.t as select 'closer' as w", "grant all on app_scram.t to public"], use=lambda c: c.name != "a" and c.run())
    b.run()
    c.run(name="t")


@answers(pools=(2, 3), before=["create function f(x numeric) returns text language sql immutable as $$select 'numeric'$$"])
def a_new_overload_is_seen_by_who_prepares_anew(s):
    new_reading(s, "select f(1)", ["create function f(x int) returns text language sql immutable as $$select 'int'$$"],
                use=lambda c: c.name != "a" and c.run())


@answers(pools=(2, 3), before=["create type mood as enum ('sad')", "create table t (m mood)", "insert into t values ('sad')", "grant all on t to public"])
def a_type_made_anew_is_seen_by_who_prepares_anew(s):
    new_reading(s, "select m from t where m = $1", [
        "drop table t", "drop type mood", "create type mood as enum ('glad', 'sad')", "create table t (m mood)",
        "insert into t values ('sad')", "grant all on t to public"], use=lambda c: c.name != "a" and masked(c))


def masked(client):
    """A type's number differs from run to run; what was described is not what is compared here."""
    client.run("sad")


@answers(before=["create table t (i int)", "insert into t values (1)", "grant all on t to public"])
def a_clients_own_close_and_parse_read_the_text_anew(s):
    a = s.open("a")
    a.prepare("select * from t")
    a.run()
    as_admin("alter table t add more text")
    a.ask(close("S", "s"), parse("select * from t", "s"), describe("S", "s"), bind((), "s"), execute(), SYNC)
    a.run()
    as_admin("drop table t")
    a.run()
    a.ask(close("S", "s"), SYNC)
    a.prepare("select * from t")
    a.run()
    as_admin(["create table t (j int)", "insert into t values (2)", "grant all on t to public"])
    a.prepare("select * from t")
    a.run()


@answers(before=["create schema if not exists b", "drop table if exists b.t", "create table b.t as select 'b' as w",
                 "create table public.lonely as select 'only' as w",
                 "grant all on schema b to public", "grant all on b.t to public", "grant all on lonely to public"])
def a_statement_prepared_under_set_local_is_nobody_elses(s):
    a, b = s.open("a"), s.open("b")
    a.ask("begin")
    a.ask("set local search_path = b")
    a.prepare("select w from t")
    a.run()
    a.ask("commit")
    b.prepare("select w from t")
    b.prepare("select w from lonely")
    b.run()
    a.run()
    a.ask("begin; set local array_nulls = off; select 1")
    a.prepare("select '{null}'::text[], 'NULL' = any('{null}'::text[])", "n")
    a.run(name="n")
    a.ask("commit")
    b.prepare("select '{null}'::text[], 'NULL' = any('{null}'::text[])", "n")
    b.run(name="n")
    a.ask("begin", "select set_config('array_nulls', 'off', true)")
    a.ask(parse("select '{null}'::text[]", "m"), bind((), "m"), execute(), SYNC)
    a.ask("commit")
    b.prepare("select '{null}'::text[]", "m")
    b.run(name="m")
    a.prepare("select '{null}'::text[]", "later")
    a.run(name="later")


# --- What stays on a server ---------------------------------------------------------------------------------------------------


WHO = "select current_user, session_user, current_setting('role'), current_setting('work_mem')"
ROLES = ["drop role if exists bossy", "create role bossy", "grant bossy to app_scram, app_md5"]


@answers(pools=(2, 3), before=ROLES)
def a_role_is_nobody_elses_and_stays_until_discard_all(s):
    for way in [
        ["set role bossy", "reset all"],
        ["select set_config('role', 'bossy', false)", "reset all"],
        ["select set_config('ro' || 'le', 'bossy', false)", "reset all"],
        ["set role bossy; select 1", "reset all"],
        ["set role bossy", "begin", "reset role", "rollback", "reset all"],
        ["set role bossy", "begin; reset role; rollback", "reset all"],
        ["begin", "set role bossy", "commit", "reset work_mem"],
        ["set work_mem = '5MB'", "set session authorization default", "reset role", "reset all"],
        ["reset role"],
        ["set role none"],
    ]:
        a, b = s.open("a"), s.open("b")
        for one in way:
            a.ask(one)
        b.ask(WHO)
        b.ask("set work_mem = '6MB'")
        a.ask(WHO)
        a.ask("discard all")
        b.ask("discard all")
        a.ask(WHO)
        b.ask(WHO)
        a.close()
        b.close()
    s.open("c").ask(WHO)


@answers(pools=(2, 3))
def a_session_authorization_is_nobody_elses_and_stays_until_discard_all(s):
    s.target = s.target.login("app_scram")
    for way in [
        ["set session authorization app_scram", "reset role", "reset all"],
        ["set session authorization app_scram", "begin", "reset session authorization", "rollback", "reset all"],
        ["select set_config('session_authorization', 'app_scram', false)", "reset role", "reset all"],
    ]:
        a, b = s.open("a"), s.open("b")
        for one in way:
            a.ask(one)
        b.ask(WHO)
        a.ask("discard all")
        b.ask("discard all")
        a.close()
        b.close()


LOCKS = "select objid from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() order by 1"


@answers(pools=(3,))
def a_lock_taken_before_the_error_stays(s):
    a, b, holder = s.open("a"), s.open("b"), s.open("holder")
    holder.ask("select pg_advisory_lock(802)")
    late = "begin", "set local lock_timeout = '200ms'"
    for way in [
        [*late, "select pg_advisory_lock(801), pg_advisory_lock(802)", "rollback"],
        [*late, parse("select pg_advisory_lock(801), pg_advisory_lock(802)"), bind(()), execute(), SYNC, "rollback"],
        ["select pg_advisory_lock(801), 1 / (select 0)"],
        [parse("select pg_advisory_lock(801), 1 / (select 0)"), bind(()), execute(), SYNC],
        ["begin; select pg_advisory_lock(801), 1 / (select 0); commit", "rollback"],
        ["begin", "select pg_advisory_lock(801), 1 / (select 0)", "rollback"],
    ]:
        a.ask(*way)
        b.ask("select pg_try_advisory_lock(801)")
        a.ask(LOCKS)
        a.ask("select pg_advisory_unlock_all()")
        b.ask("select pg_try_advisory_lock(801)")
        b.ask("select pg_advisory_unlock_all()")


@answers(pools=(2, 3))
def what_is_cleared_and_rolled_back_in_one_request_is_still_there(s):
    check = "select current_setting('work_mem'), (select count(*) from pg_listening_channels()), to_regclass('pg_temp.mine') is not null"
    for make, clear in [
        ("set work_mem = '5MB'", "reset all"),
        ("set work_mem = '5MB'", "reset work_mem"),
        ("listen here", "unlisten *"),
        ("create temporary table mine (i int)", "discard temp"),
    ]:
        for request in [
            [f"begin; {clear}; rollback"],
            [parse("begin"), bind(()), execute(), parse(clear), bind(()), execute(), parse("rollback"), bind(()), execute(), SYNC],
            ["begin", clear, "rollback"],
        ]:
            a, b = s.open("a"), s.open("b")
            a.ask(make)
            a.ask(*request)
            b.ask(check)
            a.ask(check)
            b.ask("discard all")
            a.ask("discard all")
            a.close()
            b.close()


@answers(pools=(2, 3))
def what_a_function_call_leaves_is_nobody_elses(s):
    a, b = s.open("a"), s.open("b")
    # pg_advisory_lock(int8) and set_config(text, text, bool), by their numbers in pg_proc.dat.
    a.ask(function_call(2880, [(0).to_bytes(4, "big") + (14).to_bytes(4, "big")], formats=[1], result=1))
    b.ask("select pg_try_advisory_lock(14)")
    a.ask("select pg_advisory_unlock(14)")
    a.ask(function_call(2078, [b"work_mem", b"5MB", b"f"], formats=[0]))
    b.ask("show work_mem")
    a.ask("show work_mem")
    a.ask("discard all")
    # Large objects do not keep anything behind their transaction.
    c = s.open("c")
    c.ask("begin")
    c.ask(function_call(715, [(4711).to_bytes(4, "big")], formats=[1], result=1))
    c.ask("rollback")


@answers(pools=(2, 3), before=["create table t (i int)", "insert into t values (1)", "grant all on t to public"])
def a_row_lock_inside_with_is_not_met_by_its_own_ghost(s):
    a, b = s.open("a"), s.open("b")
    locked = "with x as (select i from t for update nowait) select i from x"
    b.send(query("select pg_sleep(0.3)"))
    for _ in range(3):
        a.ask(locked)
        a.ask("with x as (select i from t for no key update nowait) select i from x")
        a.ask("with x as (select i from t for share nowait) select i from x")
    b.take()


# --- Sequences ----------------------------------------------------------------------------------------------------------------


SERIAL = ["create table ids (id serial, w text)", "create table plain (w text)", "create sequence other", "select nextval('other')",
          "grant all on ids, plain, ids_id_seq, other to public"]


@answers(before=SERIAL)
def an_insert_and_lastval_in_one_request_give_the_id(s):
    a, b = s.open("a"), s.open("b")
    b.ask("insert into ids (w) values ('b')")
    a.ask("insert into ids (w) values ('a'); select lastval()")
    b.ask("insert into ids (w) values ('b')")
    a.ask(parse("insert into ids (w) values ('a')"), bind(()), execute(), parse("select lastval(), currval('ids_id_seq')"), bind(()), execute(), SYNC)
    a.ask("insert into ids (w) values ('a')", "select lastval()")
    b.ask("begin")
    b.ask("insert into ids (w) values ('b')")
    b.ask("select lastval()")
    b.ask("commit")
    a.ask("begin; insert into ids (w) values ('a'); select lastval(); commit")
    b.ask("select count(*) from ids")


@answers(before=SERIAL)
def what_others_drew_from_a_sequence_is_not_told(s):
    a, b = s.open("a"), s.open("b")
    a.ask("insert into ids (w) values ('a')")
    b.ask("select lastval()")
    b.ask("select currval('ids_id_seq')")
    b.ask("begin")
    b.ask("select lastval()")
    b.ask("rollback")
    b.ask("begin; select lastval()")
    b.ask("rollback")
    b.ask("insert into plain values ('b'); select lastval()")
    b.ask("set work_mem = '5MB'")
    b.ask("select lastval()")
    b.ask("reset work_mem")


@answers(pools=(1,), modes=("transaction", "session"), before=SERIAL)
def lastval_in_another_request_gives_the_id_where_nobody_came_between(s):
    a = s.open("a")
    for _ in range(3):
        a.ask("insert into ids (w) values ('a')")
        a.ask("select lastval()")
        a.ask("select 1")
        a.ask("select currval('ids_id_seq')")


@answers(modes=("session",), pools=(), before=SERIAL)
def lastval_in_another_request_gives_the_id_in_session_mode(s):
    a, b = s.open("a"), s.open("b")
    for _ in range(2):
        a.ask("insert into ids (w) values ('a')")
        b.ask("insert into ids (w) values ('b')")
        a.ask("select lastval()")
        b.ask("select currval('ids_id_seq')")
        a.ask(parse("select lastval()"), bind(()), execute(), SYNC)


# --- Settings -----------------------------------------------------------------------------------------------------------------


def reload(sql):
    as_admin([sql, "select pg_reload_conf()"])


@answers(before=["alter system reset default_transaction_read_only", "select pg_reload_conf()"])
def a_reload_is_not_taken_for_a_clients_own_set(s):
    a, b = s.open("a"), s.open("b")
    ask = "select current_setting('default_transaction_read_only'), current_setting('IntervalStyle')"
    a.ask(ask)
    b.ask("set IntervalStyle = 'iso_8601'")
    try:
        # The signal is on its way when this returns; each session hears of it with a request to come.
        reload("alter system set default_transaction_read_only = on")
        for client in (a, b):
            settled(client, "on")
    finally:
        reload("alter system reset default_transaction_read_only")
    for client in (a, b):
        settled(client, "off")
        client.ask(ask)
        client.ask("create temporary table w (i int)")
        client.ask("discard all")


def settled(client, wanted):
    """Asks until the server has heard of the reload; how often that takes is chance and not noted."""
    from weirtest.case import eventually

    eventually(lambda: client.wire.ask("show default_transaction_read_only") == [[wanted]], f"read only is {wanted}")


@answers(pools=(2, 3))
def a_text_behind_a_change_of_its_dialect_is_read_as_the_server_reads_it(s):
    lock = "select '\\'', pg_advisory_lock(61) --'"
    for way in [
        ["set standard_conforming_strings = off", lock],
        ["set standard_conforming_strings = off; select 1", lock],
        [parse("set standard_conforming_strings = off"), bind(()), execute(), SYNC, parse(lock), bind(()), execute(), SYNC],
        ["begin", "set local standard_conforming_strings = off", lock, "rollback"],
        ["select set_config('standard_conforming_strings', 'off', false)", lock],
    ]:
        a, b = s.open("a"), s.open("b")
        a.ask(*way)
        b.ask("select pg_try_advisory_lock(61)")
        a.ask(LOCKS)
        a.ask("discard all")
        b.ask("discard all")
        a.close()
        b.close()


@answers(pools=(2, 3))
def what_one_of_many_portals_does_stays_with_its_client(s):
    a, b = s.open("a"), s.open("b")
    listens = [parse("listen somewhere", "l"), *[bind((), "l", portal=f"p{n}") for n in range(70)]]
    locks = [parse("select pg_advisory_lock(18)", "k"), *[bind((), "k", portal=f"q{n}") for n in range(3)]]
    a.ask(*listens, *locks, execute("q0"), SYNC)
    b.ask("select pg_try_advisory_lock(18)")
    a.ask(LOCKS)
    a.ask("select pg_advisory_unlock_all()")
    b.ask("select pg_advisory_unlock_all()")


# --- What a session begins with -------------------------------------------------------------------------------------------

SHOWN = "select current_setting('search_path'), current_setting('work_mem'), current_setting('TimeZone'), current_setting('application_name')"
STARTUP = {"search_path": "a", "TimeZone": "Asia/Tokyo", "application_name": "one", "options": "-c work_mem=7MB"}
RESETTERS = """
create schema if not exists a;
create function reset_all() returns text language plpgsql as $$ begin reset all; return current_setting('search_path'); end $$;
create function reset_path() returns text language sql as $$ select set_config('search_path', null, false) $$;
create function run(text) returns void language plpgsql as $$ begin execute $1; end $$;
"""


@answers(before=[RESETTERS])
def resets_go_back_to_what_the_client_began_with(s):
    a, b = s.open("a", **STARTUP), s.open("b")
    changed = "set search_path = public, a; set work_mem = '8MB'; set timezone = 'UTC'"
    for way in [
        ["reset search_path; select current_setting('search_path')"],
        ["set search_path to default; " + SHOWN],
        ["reset all; " + SHOWN],
        ["select set_config('search_path', null, false), set_config('work_mem', null, false)"],
        ["begin; set local search_path to default; " + SHOWN + "; commit"],
        ["set time zone local; show timezone"],
        ["set time zone local", "show timezone"],
        [parse("reset search_path"), bind(()), execute(), parse(SHOWN), bind(()), execute(), SYNC],
        [parse("select set_config($1, $2, false)"), bind((b"search_path", None)), execute(), SYNC],
        ["select public.reset_all()"],
        ["select public.reset_path()"],
        ["do $$ begin reset search_path; perform set_config('app.seen', current_setting('search_path'), false); end $$",
         "select current_setting('app.seen', true)"],
        ["select public.run('reset search_path')"],
    ]:
        c = s.open("c", **STARTUP)
        c.ask(changed)
        c.ask(*way)
        c.ask(SHOWN)
        c.close()
        a.ask(SHOWN)
        b.ask(SHOWN)
        c = s.open("c", **STARTUP)
        c.ask(*way)
        c.ask(SHOWN)
        c.close()
        b.ask(SHOWN)


@answers(before=[RESETTERS])
def resets_by_themselves_go_back_to_what_the_client_began_with(s):
    a, b = s.open("a", **STARTUP), s.open("b")
    for reset in ["reset timezone", "set timezone to default", "set time zone local", "reset search_path", "reset work_mem",
                  "reset all", "discard all"]:
        a.ask("set timezone = 'UTC'")
        a.ask(reset)
        a.ask(SHOWN)
        b.ask(SHOWN)
        a.ask("begin")
        a.ask("set local timezone = 'UTC'")
        a.ask("set local search_path = public")
        a.ask("set local timezone to default")
        a.ask(SHOWN)
        a.ask("set local search_path to default")
        a.ask(SHOWN)
        a.ask("rollback")
        a.ask(SHOWN)


@answers
def where_a_setting_comes_from_is_what_the_client_named(s):
    ask = ("select name, setting, source, reset_val, boot_val from pg_settings where name in "
           "('search_path', 'work_mem', 'TimeZone', 'application_name') order by name")
    a, b = s.open("a", options="-c work_mem=7MB", TimeZone="Asia/Tokyo"), s.open("b")
    a.ask("select 1")
    b.ask(ask)
    a.ask(ask)
    a.ask("set timezone = 'UTC'")
    a.ask(ask)
    a.ask("select count(*) from pg_settings where source = 'client'")
    a.close()
    b.ask(ask)


@answers
def a_server_of_its_own_has_what_its_client_had_set_before(s):
    a = s.open("a", **STARTUP)
    a.prepare("select current_setting('datestyle'), 1 as one")
    a.ask("set datestyle = 'German'")
    a.ask("set application_name = 'other'")
    a.run()
    # PostgreSQL 18 reports search_path, which leaves nothing behind, then.
    a.ask("reset work_mem; select 1")
    a.run()
    a.ask(SHOWN + "; show datestyle")
    a.ask("create temporary table mine (i int)")
    a.ask("reset all; " + SHOWN)
    a.ask("select count(*) from mine")
    a.ask("discard all")
    a.ask(SHOWN + "; show datestyle")
    a.close()
    b = s.open("b")
    b.ask(SHOWN + "; show datestyle")


@answers(before=["create schema if not exists a"])
def a_temporary_table_of_the_search_path_is_nobody_else_s(s):
    # With pg_temp first, CREATE TABLE makes a temporary table.
    def left(who):
        b = s.open("b", user=None)
        b.ask("select relname from pg_class where relname like 'of_%' and pg_table_is_visible(oid)")
        b.ask("select count(*) from of_temp")
        b.close()
        who.close()

    for begin, make, done in [
        ({"search_path": "pg_temp,public"}, "create table of_temp (i int)", "select 1"),
        ({"search_path": "pg_temp,public"}, "select 1 as i into of_temp", "reset all"),
        ({}, "select set_config('search_path', 'pg_temp, public', false); create table of_temp (i int)", "reset all"),
        ({}, "begin; select set_config('search_path', 'pg_temp, public', true); create table of_temp (i int); commit", "select 1"),
        ({}, "set search_path = pg_temp, public; create table of_temp (i int)", "reset search_path"),
    ]:
        a = s.open("a", **begin)
        a.ask(make)
        a.ask(done)
        a.ask("select count(*) from pg_temp.of_temp")
        a.close()
        left(s.open("c"))


@answers(before=["create view public.settings as select * from pg_settings"])
def an_update_of_the_settings_view_sets_for_its_client_only(s):
    for update in [
        "update pg_settings set setting = '7MB' where name = 'work_mem'",
        'update "pg_settings" set setting = \'7MB\' where name = \'work_mem\'',
        'update pg_catalog."pg_settings" as x set setting = \'7MB\' where x.name = \'work_mem\'',
        'update U&"pg\\005fsettings" set setting = \'7MB\' where name = \'work_mem\'',
        "update settings set setting = '7MB' where name = 'work_mem'",
        "with x as (update pg_settings set setting = '7MB' where name = 'work_mem' returning 1) select 1",
        "explain (analyze, buffers off, costs off, timing off, summary off) update pg_settings set setting = '7MB' where name = 'work_mem'",
        "prepare u as update pg_settings set setting = '7MB' where name = 'work_mem'; execute u",
        "explain (analyze, buffers off, costs off, timing off, summary off) select set_config('work_mem', '7MB', false)",
    ]:
        a = s.open("a")
        a.ask(update)
        a.ask("show work_mem")
        a.close()
        b = s.open("b")
        b.ask("show work_mem")
        b.close()


DROPPERS = """
create function drop_all() returns void language plpgsql as $$ begin deallocate all; end $$;
create function drop_one(text) returns void language plpgsql as $$ begin execute 'deallocate ' || $1; end $$;
"""


@answers(before=[DROPPERS], pools=(2, 3))
def code_that_drops_prepared_statements_drops_those_of_its_client_only(s):
    for drop in ["do $$ begin deallocate all; end $$", "select public.drop_all()"]:
        a, b = s.open("a"), s.open("b")
        for client in (a, b):
            client.prepare("select 1 as one")
            client.run()
        a.ask(drop)
        b.run()
        a.prepare("select 2 as two", name="t")
        a.run(name="t")
        b.run()
        a.close()
        b.run()
        b.close()


@answers(before=["""
create function op_set(text, text) returns text language sql as $$ select set_config($1, $2, false) $$;
create operator public.### (leftarg = text, rightarg = text, function = op_set);
create operator public.<#> (leftarg = text, rightarg = text, function = op_set);
create view public.by_operator as select 'work_mem'::text operator(public.###) '9MB' as now;
"""], pools=(1,), modes=("transaction",))
def an_operator_that_sets_something_keeps_only_those_who_use_it(s):
    a, b = s.open("a"), s.open("b")
    for harmless in ["select 1", "select 1 = 1, 2 <> 3, 'a' || 'b', 1 # 2", "select -1 + +2", "select '###'", "select 1 /* ### */"]:
        a.ask(harmless)
        b.ask("show work_mem")
    a.close()
    b.close()
    for user in ["select 'work_mem'::text ### '7MB'", "select 'work_mem'::text operator(public.###) '7MB'",
                 "select 'work_mem'###text '7MB'", "select * from by_operator"]:
        a = s.open("a")
        a.ask(user)
        a.ask("show work_mem")
        a.close()
        b = s.open("b")
        b.ask("show work_mem")
        b.close()


@answers(modes=("transaction",))
def a_sequence_of_random_numbers_is_its_client_s(s):
    seeded = "select (random() * 1000000000)::bigint"
    for seed in ["select setseed(0.5)", "set seed = 0.5", "select set_config('seed', '0.5', false)"]:
        a = s.open("a")
        a.ask(seed)
        a.ask(seeded)
        a.ask("discard all")
        a.ask(seeded)
        a.close()
        b = s.open("b")
        b.ask("select (random() * 1000000000)::bigint in (select (x * 1000000000)::bigint from unnest(array["
              "0.9851677175347999, 0.825301858027981, 0.12974610012450416, 0.16356291958601088, 0.6476186144084]) x)")
        b.close()


TENANTS = """
create table rows_of (tenant text, what text);
insert into rows_of values ('A', 'of A'), ('', 'of nobody');
create function tenant() returns text language sql stable as $$ select coalesce(current_setting('app.tenant', true), 'NULL') $$;
create function be(text) returns void language sql as $$ select set_config('app.tenant', $1, true) $$;
create view mine as select current_setting('app.tenant', true) as tenant, what from rows_of;
alter table rows_of enable row level security;
create policy p on rows_of using (current_setting('app.tenant', true) is null or tenant = current_setting('app.tenant', true));
grant all on all tables in schema public to public;
"""


@answers
def a_placeholder_keeps_its_value_where_very_many_are_known(s):
    b = s.open("b")
    b.ask("begin")
    for i in range(80):
        b.ask(f"set local app.name_{i} = 'x'")
    b.ask("commit")
    b.close()
    a = s.open("a")
    for text in ("set app.v = 'x'", "begin", "reset app.v", "rollback", "show app.v", "reset app.v; set app.v = 'y'", "show app.v",
                 "select current_setting('app.v')"):
        a.ask(text)


@answers(before=[TENANTS])
def a_placeholder_that_nobody_named_is_unknown(s):
    asks = ["select current_setting('app.tenant', true)", "select current_setting('app.tenant')", "show app.tenant", "select tenant()",
            "select * from mine order by 2", "select what from rows_of order by 1", "select current_setting('app.' || 'tenant', true)",
            "select current_setting('app.other', true)"]
    for name in [
        ["begin", "set local app.tenant = 'A'", "select what from rows_of", "commit"],
        ["select set_config('app.tenant', 'A', true)"],
        ["reset app.tenant"],
        ["select be('A')"],
        ["set app.tenant = 'A'", "reset all"],
    ]:
        a, b = s.open("a"), s.open("b")
        a.ask("select 1")
        b.ask("select 1")
        for text in name:
            a.ask(text)
        for ask in asks:
            b.ask(ask)
            a.ask(ask)
        b.prepare("select current_setting('app.tenant', true)")
        b.run()
        a.prepare("select current_setting('app.tenant', true)")
        a.run()
        c = s.open("c")
        c.ask("begin; select tenant(); commit")
        c.ask("set local app.tenant = 'A'")
        c.ask(asks[0])
        for client in (a, b, c):
            client.close()


DRAWN = "create table ids (id serial, what text); grant all on ids to public; grant all on all sequences in schema public to public"


@answers(before=[DRAWN], pools=(2, 3))
def what_was_drawn_is_known_where_others_have_not_drawn_since(s):
    a, b, c = s.open("a"), s.open("b"), s.open("c")
    a.ask("insert into ids (what) values ('a')")
    # Others use the same servers, and draw nothing.
    for other in (b, c):
        other.ask("begin")
        other.ask("select 1")
    for other in (b, c)[:1]:
        other.ask("commit")
    a.ask("select lastval()")
    c.ask("commit")


@answers(before=[DRAWN], pools=(2, 3))
def where_clients_ask_what_they_have_drawn_they_keep_it_until_they_ask(s):
    a, b = s.open("a"), s.open("b")
    a.ask("insert into ids (what) values ('a')")
    a.ask("select currval('ids_id_seq')")
    for _ in range(3):
        b.ask("insert into ids (what) values ('b')")
        a.ask("insert into ids (what) values ('a')")
        b.ask("select lastval()")
        a.ask("select lastval()")
        a.ask("select 1")
        b.ask("select 1")


@answers(before=["create sequence numbers; grant all on numbers to public"], pools=(2, 3))
def the_first_who_asks_what_its_nextval_has_drawn_is_told_though_others_have_drawn_there(s):
    clients = [s.open(f"c{n}") for n in range(5)]
    # Everywhere somebody has drawn, and nobody has asked yet.
    for c in clients:
        c.ask("begin")
        c.ask("select nextval('numbers') > 0")
        c.ask("commit")
    for c, draws in zip(clients, ("select nextval('numbers') > 0", "select setval('numbers', 700)", "values (nextval('numbers') > 0)")):
        c.ask(draws)
        c.ask("select currval('numbers') = last_value from numbers")


@answers(before=["create sequence numbers; grant all on numbers to public"], pools=(2, 3))
def what_a_prepared_nextval_has_drawn_is_known_behind_its_deallocate(s):
    """As PDO does: Parse, Execute and DEALLOCATE, each in a request of its own."""
    clients = [s.open(f"c{n}") for n in range(5)]
    for n, c in enumerate(clients):
        c.prepare("select nextval('numbers') > 0", f"pdo_stmt_{n}")
        c.run(name=f"pdo_stmt_{n}")
        c.ask(f"deallocate pdo_stmt_{n}")
        for other in clients[:n]:
            other.ask("begin")
            other.ask("select nextval('numbers') > 0")
            other.ask("commit")
        c.prepare("select currval('numbers') > 0", "pdo_stmt_last")
        c.run(name="pdo_stmt_last")
        c.ask("deallocate pdo_stmt_last")


# --- Statements by their clients' names ------------------------------------------------------------------------------------

LISTED = "select name, statement, parameter_types::text, from_sql from pg_prepared_statements order by name"
NAMES = ["create table t as select n from generate_series(1, 3) n", "grant all on t to public", "grant create on schema public to public"]


@answers(before=NAMES, pools=(2, 3))
def names_given_by_the_protocol_are_there_for_sql(s):
    other = s.open("other")
    other.prepare("select 'another client''s' from t", "s")
    other.run()
    for n, wants in enumerate(["explain (costs off) execute s(2)", "create temporary table made as execute s(2)", "select 0; execute s(2)",
                               "execute s(1)", "execute s(2); deallocate s", "prepare s as select 1", "deallocate s; execute q",
                               "do $$ begin execute 'create temporary table made as execute s(3)'; end $$", LISTED,
                               "do $$ begin deallocate s; end $$", 'table "pg_prepared_statements"', "select count(*) from pg_prepared_statement()"]):
        c = s.open(f"c{n}")
        c.prepare("select n from t where n > $1 order by 1", "s")
        c.run("1")
        c.ask(wants.replace("table \"pg_prepared_statements\"", "select name, statement from \"pg_prepared_statements\""))
        c.run("1")
        c.prepare("select 'mine again'", "s")
        c.ask(describe("S", "s"), bind((), "s"), execute(), SYNC)
        c.ask("select to_regclass('made') is null")
        c.ask("discard all")
        c.ask(LISTED)
        c.ask("discard all")
        c.run("1")
        c.close()
    other.run()


@answers(before=NAMES, pools=(2, 3))
def names_asked_for_by_the_protocol_are_its_clients_own(s):
    other = s.open("other")
    other.prepare("select 'another client''s'", "s")
    for n, wants in enumerate(["explain (costs off) execute s(2)", "execute s(2)", LISTED]):
        c = s.open(f"c{n}")
        c.prepare("select n from t where n > $1 order by 1", "s")
        c.ask(parse(wants), describe("S"), bind(), describe("P"), execute(), SYNC)
        c.prepare(wants, "other")
        c.run(name="other")
        c.ask(close("S", "s"), bind((), "other"), execute(), SYNC)
        c.run("1")
        c.close()
    other.run()


@answers(before=NAMES, pools=(2, 3))
def a_name_is_taken_whoever_gave_it(s):
    a, b = s.open("a"), s.open("b")
    a.ask("prepare s as select 'by SQL'")
    b.prepare("select 'by b'", "s")
    a.prepare("select 'by the protocol'", "s")
    a.run()
    b.run()
    a.ask(describe("S", "s"), SYNC)
    a.ask(close("S", "s"), SYNC)
    a.prepare("select n from t where n = $1", "s")
    a.ask("prepare s as select 'by SQL again'")
    a.run("1")
    a.ask("deallocate s")
    a.run("1")
    a.prepare("select 'by the protocol'", "s")
    # In one pipeline, the first of them failing.
    a.ask("prepare q as select 'q'")
    a.ask(parse("select 'not this'", "q"), bind((), "q"), execute(), SYNC, bind((), "q"), execute(), SYNC)
    a.ask("deallocate all", bind((), "s"), execute(), SYNC)
    a.ask(LISTED)
    a.prepare("select 'after all'", "s")
    b.run()
    a.run()


@answers(before=NAMES, pools=(2, 3))
def names_are_asked_for_inside_a_transaction(s):
    a, b = s.open("a"), s.open("b")
    b.prepare("select 'of b'", "s")
    a.prepare("select n from t where n > $1 order by 1", "s")
    a.ask("begin")
    a.ask("insert into t values (4)")
    b.run()
    a.ask("explain (costs off) execute s(1)")
    a.ask(LISTED)
    a.run("2")
    a.ask("deallocate s")
    a.ask("rollback")
    a.run("2")
    a.ask("select count(*) from t")
    b.run()


@answers(before=NAMES, pools=(2, 3))
def a_statement_of_other_columns_is_refused_under_its_own_name_too(s):
    a, b = s.open("a"), s.open("b")
    a.prepare("select * from t where n = $1", "s")
    a.run("1")
    b.ask("select 1")
    as_admin("alter table t add more text default 'more'")
    a.ask("select count(*) from pg_prepared_statements")
    a.run("1")
    a.ask(close("S", "s"), parse("select * from t where n = $1", "s"), bind(("1",), "s"), execute(), SYNC)


@answers(pools=(1, 2), modes=("transaction",))
def a_statement_executed_by_its_name_asks_for_its_clients_own_sequence(s):
    a, b = s.open("a"), s.open("b")
    a.prepare("select lastval()", "s")
    b.ask("create temporary sequence x; select nextval('x')")
    b.ask("discard all")
    a.ask("execute s")
    a.ask("select 0; execute s")


@answers(pools=(2, 3), before=["create view listed as select name, statement from pg_prepared_statements",
                 "create function f() returns bigint language sql as 'select count(*) from listed'", "grant all on listed to public"])
def a_view_of_statements_shows_its_clients_own(s):
    b, a = s.open("b"), s.open("a")
    b.prepare("select 'b has this'", "s")
    b.run()
    a.ask("select * from listed", "select f()")
    a.prepare("select 'a has this'", "s")
    a.ask("select * from listed", "select f()")
    b.ask("select * from listed")


# --- What is changed for new sessions ---------------------------------------------------------------------------------------

ACCOUNTS = [
    "do $$ begin create role acc_user; exception when duplicate_object then end $$", "do $$ begin create role acc_admin; exception when duplicate_object then end $$",
    f"alter role acc_user login password '{PASSWORD}' valid until 'infinity' connection limit -1", f"alter role acc_admin login superuser password '{PASSWORD}'",
    "alter role acc_user reset all", "do $$ begin execute format('alter database %I reset all', current_database()); end $$",
    "do $$ begin execute format('grant connect on database %I to public', current_database()); end $$",
    "do $$ begin execute format('revoke connect on database %I from acc_user', current_database()); end $$",
]

NEW_SESSIONS = [
    ["alter role acc_user set work_mem = '7MB'"],
    ["begin", "alter role acc_user set timezone = 'Asia/Tokyo'", "commit"],
    ["alter database {} set work_mem = '9MB'", "alter role acc_user reset all"],
    ["do $$ begin alter role acc_user set search_path = pg_catalog; end $$"],
    ["alter role acc_user nologin"],
    ["alter user acc_user login"],
    ["alter role acc_user valid until '2001-01-01'"],
    ["alter role acc_user valid until 'infinity'"],
    ["revoke connect on database {} from public"],
    ["grant connect on database {} to acc_user"],
    ["begin", "alter role acc_user nologin", "rollback"],
    ["alter role acc_user rename to acc_other"],
    ["alter role acc_other rename to acc_user", f"alter role acc_user password '{PASSWORD}'"],
    # As it was before, for whoever comes next.
    ["grant connect on database {} to public", "alter database {} reset all"],
]


def begins_with(s, name):
    """What a new session of acc_user finds, or how it is refused."""
    try:
        c = s.open(name, user="acc_user")
    except LoginRefused as refused:
        s.seen.append((name, refused.code))
        return
    c.ask("show work_mem", "show timezone", "show search_path", "select session_user")
    c.close()


@answers(pools=(1, 2), users=("acc_user", "acc_admin"), before=ACCOUNTS)
def a_new_session_obeys_what_was_changed_for_it_through_weir(s):
    begins_with(s, "before")
    admin = s.open("admin", user="acc_admin")
    begins_with(s, "once more")
    for n, step in enumerate(NEW_SESSIONS):
        for one in step:
            admin.ask(one.format(s.target.database))
        begins_with(s, f"after {n}")
        begins_with(s, f"again after {n}")


@weir
def a_new_session_obeys_what_was_changed_for_it_behind_weirs_back(_context):
    """Within the interval at which Weir asks."""

    def seen(target):
        sessions = Sessions(target)
        begins_with(sessions, "new")
        return sessions.seen

    as_admin(ACCOUNTS)
    with Weir.before("postgres", port=server().port, pool_size=2, users=["acc_user"], settings=["workers=1", "pool.catalogue_check_interval=0"]) as w:
        assert seen(w.target()) == seen(server().direct())
        for step in NEW_SESSIONS:
            as_admin([one.format(w.target().database) for one in step])
            wanted = seen(server().direct())
            eventually(lambda wanted=wanted: seen(w.target()) == wanted, f"{step}: {wanted}")


@answers(modes=("transaction",), pools=(1, 2), before=NAMES)
def an_unnamed_statement_of_other_columns_is_refused_wherever_it_is(s):
    a, b = s.open("a"), s.open("b")
    a.ask(parse("select * from t where n = $1"), describe("S"), SYNC)
    b.ask("select 1")
    a.ask(bind(("1",)), execute(), SYNC)
    as_admin("alter table t add more text default 'more'")
    b.ask("select 1")
    for _ in range(2):
        a.ask(bind(("1",)), execute(), SYNC)
        b.ask("select 1")
    a.ask(parse("select * from t where n = $1"), describe("S"), SYNC)
    b.ask("select 1")
    a.ask(bind(("1",)), execute(), SYNC)
    a.ask(parse("select * from t where n = $1"), SYNC)
    b.ask("select 1")
    a.ask(bind(("1",)), describe("P"), execute(), SYNC)
