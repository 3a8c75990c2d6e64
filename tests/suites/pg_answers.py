"""The same script direct and through Weir: every answer must be the same. Clients are alive at once and act in the order the
script says. Behind Weir each script runs with several numbers of servers, for what goes wrong with one goes right with two.
On a PostgreSQL of its own."""

import functools

from weirtest.case import weir
from weirtest.pgwire import (SYNC, Closed, ServerError, Wire, bind, close, describe, execute, function_call, parse, plain, query, row)
from weirtest.private import PrivateServer
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
