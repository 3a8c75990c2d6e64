"""What the database's own code does: functions, triggers, views, operators, policies. Who runs it keeps what it leaves, nobody else
gets it, and nothing of it runs twice. On a PostgreSQL of its own."""

import contextlib
import dataclasses
import functools

from weirtest.case import eventually, in_threads, weir
from weirtest.pgwire import SYNC, Wire, bind, execute, parse, query
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["postgres"]

# Only reads, and takes some tenths of a second: whoever rides behind it is taken back.
SLOW = "select count(*) from big a, big b where a.i + b.i < 0 and a.i < 500"

SCHEMA = """
create table big as select i from generate_series(1, 20000) i;
create table logs (id serial, what text);
create function log(what text) returns int language plpgsql as $$ begin insert into logs (what) values (log.what); return 1; end $$;
create view view_that_writes as select log('by a view') as l;
create function plain(i int) returns int language plpgsql as $$ begin return i + 1; end $$;
create table secret (tenant text, word text);
insert into secret values ('A', 'of a'), ('B', 'of b');
alter table secret enable row level security;
create policy mine on secret using (tenant = current_setting('app.tenant', true));
create function set_tenant(t text) returns void language plpgsql as $$ begin perform set_config('app.tenant', t, false); end $$;
create function tenant_of_the_moment(t text) returns void language plpgsql as $$ begin perform set_config('app.tenant', t, true); end $$;
create function by_name(t text) returns void language plpgsql as $$ begin execute 'select set_config(''app.tenant'', $1, false)' using t; end $$;
create function run(t text) returns void language plpgsql as $$ begin execute t; end $$;
create table events (kind text, what text);
create table events_a (like events);
create table events_b (like events);
create function route() returns trigger language plpgsql as $$ begin
  execute format('insert into public.%I values ($1.*)', 'events_' || new.kind) using new; return null; end $$;
create trigger routed before insert on events for each row execute function route();
create function count_of(t text) returns bigint language plpgsql as $$ declare n bigint; begin
  execute 'select count(*) from public.' || quote_ident(t) into n; return n; end $$;
create function count_any(t text) returns bigint language plpgsql as $$ declare n bigint; begin
  execute format('select count(*) from %I', t) into n; return n; end $$;
create table locked_rows (what text);
create function lock_row() returns trigger language plpgsql as $$ begin perform pg_advisory_lock(4712); return new; end $$;
create trigger locked before insert on locked_rows for each row execute function lock_row();
create function fill(t text) returns void language plpgsql as $$ begin
  execute format('insert into %I (what) values (%L)', t, 'x'); end $$;
create table audited (id serial, a int);
create table audit (id serial, a int);
create function audit() returns trigger language plpgsql as $$ begin insert into audit (a) values (new.a); return new; end $$;
create trigger audited before insert on audited for each row execute function audit();
create table marked (id serial, a int);
create function mark() returns trigger language plpgsql as $$ begin perform set_config('app.marked', new.a::text, false); return new; end $$;
create trigger marked before insert on marked for each row execute function mark();
create view into_marked as select a from marked;
create table parent (id int primary key);
create table child (id int references parent on delete cascade);
create trigger child after delete on child for each row execute function mark_delete();
create view locked as select pg_advisory_lock(4711) is null as l;
create type pair as (a int, b int);
create function locks(p pair) returns bool language sql as 'select pg_advisory_lock(p.a) is null';
create function opens(a int, b int) returns bool language sql as 'select pg_advisory_lock(a) is null';
create operator === (leftarg = int, rightarg = int, function = opens);
"""


@functools.cache
def server():
    private = PrivateServer("postgres")
    with Wire(private.superuser()) as wire:
        wire.ask("create function mark_delete() returns trigger language plpgsql as "
                 "$$ begin perform set_config('app.marked', 'deleted', false); return old; end $$")
        for statement in SCHEMA.strip().split(";\n"):
            # The operator concerns every text of its database, so it has one of its own.
            if "===" in statement or "opens" in statement:
                continue
            wire.ask(statement)
        wire.ask("grant all on all tables in schema public to public")
        wire.ask("grant all on all sequences in schema public to public")
        wire.ask("grant create on schema public to public")
    return private


def start(pool_size=1, settings=(), **kw):
    return Weir.before("postgres", port=server().port, mode="transaction", pool_size=pool_size,
                       settings=["workers=1", *settings], **kw)


@contextlib.contextmanager
def admin():
    with Wire(server().superuser()) as wire:
        yield wire


def pinned(w, reason=None):
    """Servers that are pinned; or how often they were for this reason."""
    if reason is None:
        return w.metric("weir_pinned_servers", protocol="postgres")
    return w.metric("weir_pins", protocol="postgres", reason=reason)


def rows(a, table):
    return int(a.ask(f"select count(*) from {table}")[0][0])


def behind_a_slow_one(w, request):
    """What a client gets that asks while another's slow read is under way, with one server for both."""
    with Wire(w.target()) as slow, Wire(w.target()) as wire:
        slow.send(query(SLOW))
        wire.send(request)
        answer = wire.until("Z")
        slow.until("Z")
    return answer


@weir
def what_writes_under_a_known_name_writes_once(_context):
    """Behind a slow read, and with servers to spare."""
    texts = ["select log('{}')", "select public.log('{}')", "select \"log\"('{}')", "select l.* from log('{}') l",
             "select 1 where log('{}') = 1", "select log(what) from (values ('{}')) as v (what)",
             "with x as (select log('{}') as y) select y from x"]
    with admin() as a:
        for pool_size in (1, 20):
            with start(pool_size=pool_size) as w:
                for n, text in enumerate(texts):
                    tag = f"{pool_size}/{n}"
                    behind_a_slow_one(w, query(text.format(tag)))
                    found = a.ask(f"select count(*) from logs where what = '{tag}'")
                    assert found == [["1"]], (tag, text, found)
                    tag += "/p"
                    behind_a_slow_one(w, parse(text.format(tag)) + bind() + execute() + SYNC)
                    found = a.ask(f"select count(*) from logs where what = '{tag}'")
                    assert found == [["1"]], (tag, text, found)


def pins_of(texts):
    """Which of these texts still pins a client of its own once it is answered: {text: reasons}."""
    found = {}
    with start(pool_size=2) as w:
        for text in texts:
            before = pins_so_far(w)
            with Wire(w.target()) as wire:
                wire.send(query(text))
                wire.until("Z")
                assert wire.ask("select 1") == [["1"]]
                with contextlib.suppress(AssertionError):
                    eventually(lambda: pinned(w) == 0, f"{text}: no pin", deadline_s=0.5)
                if pinned(w):
                    found[text] = sorted(reason for reason, count in pins_so_far(w).items() if count > before.get(reason, 0))
            eventually(lambda: pinned(w) == 0, "it has gone")
    return found


def pins_so_far(w):
    """How often servers were pinned, by reason."""
    found = {}
    for reason in ["code", "setting", "sql_prepare", "unrecognised", "temporary_table", "session_lock", "load"]:
        with contextlib.suppress(KeyError):
            found[reason] = pinned(w, reason)
    return found


@weir
def explain_with_options_pins_nobody(_context):
    texts = ["explain (costs off) select 1", "explain (analyze, buffers) select * from logs", "select collation for ('a')"]
    assert pins_of(texts) == {}


@weir
def an_alias_with_columns_and_without_as_pins_nobody(_context):
    """Only where it can be nothing but an alias: what is called is what it was."""
    assert pins_of(["select * from (values (1)) v(a)", "select * from (select 1) s(a) where a = 1", "select * from unnest(array[1]) cols(a)",
                    "select x.a from audited x(a, b)", "select * from generate_series(1, 2) with ordinality t(a, b)",
                    "select * from json_to_recordset('[]') x(a int, b text)",
                    "update audited set a = s.v from (values (1, 2)) s(id, v) where audited.id = s.id",
                    "delete from audited using (values (1)) d(id) where audited.id = d.id",
                    "insert into audited select * from (values (1, 2)) z(id, v)"]) == {}
    calls = ["select * from audited, locks(1, 2)", "select * from (values (1)) v(a) join locks(1, 2) on true",
             "select * from (values (1)) v(a) where locks(1, 2)", "select * from rows from (locks(1, 2)) x(a)"]
    with admin() as a:
        a.ask("create function locks(a int, b int) returns bool language sql as 'select pg_advisory_lock(a) is null'")
        try:
            found = pins_of(calls)
        finally:
            a.ask("drop function locks(int, int)")
    assert found == {call: ["session_lock"] for call in calls}, found


@weir
def an_operator_with_its_schema_pins_nobody(_context):
    """As psql writes them. Those of users are code."""
    assert pins_of(["select relname from pg_class where relname operator(pg_catalog.~) '^(a)$' collate pg_catalog.default",
                    "select 1 operator(pg_catalog.=) 2"]) == {}
    with admin() as a:
        a.ask("create function opens(a int, b int) returns bool language sql as 'select pg_advisory_lock(a) is null'")
        a.ask("create operator ==== (leftarg = int, rightarg = int, function = opens)")
        try:
            found = pins_of(["select 1 operator(public.====) 2"])
        finally:
            a.ask("drop function opens(int, int) cascade")
    assert found == {"select 1 operator(public.====) 2": ["session_lock"]}, found


@weir
def variables_called_like_statements_pin_nobody(_context):
    """In PL/pgSQL; a function that is called for the value of one counts."""
    names = ["id", "sql", "value", "count", "data", "status", "query", "kill", "handler", "help", "session", "role", "event", "statement", "load"]
    blocks = [f"do $$ declare {name} int; begin {name} := 1; {name} = 2; if {name} = 2 then {name} := 3; end if; end $$" for name in names]
    assert pins_of(blocks) == {}
    locks = ["do $$ declare id text := pg_advisory_lock(1); begin end $$", "do $$ declare id text; begin id := pg_advisory_lock(1); end $$"]
    found = pins_of(locks)
    assert found == {text: ["session_lock"] for text in locks}, found


@weir
def texts_that_only_define_pin_nobody(_context):
    """Several statements in one text, as migrations send them: nothing of it runs what it makes."""
    with admin() as a:
        with start() as w, Wire(w.target()) as wire:
            login = wire.ask("select current_user")[0][0]
        a.ask(f"create table defined (id int); alter table defined owner to {login}")
        try:
            found = pins_of([
                "BEGIN;ALTER TABLE defined DISABLE TRIGGER USER;COMMIT",
                "ALTER TABLE defined ENABLE ROW LEVEL SECURITY; CREATE POLICY po ON defined USING (true)",
                "CREATE VIEW defined_view AS SELECT * FROM defined; GRANT SELECT ON defined_view TO PUBLIC; DROP VIEW defined_view",
                "CREATE OR REPLACE FUNCTION defined_f() RETURNS int LANGUAGE sql AS 'SELECT 1'; COMMENT ON FUNCTION defined_f() IS 'x'"])
            runs = "CREATE OR REPLACE FUNCTION defined_f() RETURNS int LANGUAGE sql AS 'SELECT 2'; SELECT defined_f()"
            still = pins_of([runs])
        finally:
            a.ask("drop table defined cascade")
            a.ask("drop function if exists defined_f()")
    assert found == {}, found
    assert "code" in still[runs], still


@weir
def blocks_that_change_the_catalogue_for_good_pin_nobody(_context):
    """Also beside other statements. What they run counts, and what is temporary."""
    blocks = ["create table if not exists zz (i int)", "alter table zz add column if not exists k int default 1", "create index if not exists zi on zz (k)",
              "create type zt as enum ('a'); exception when duplicate_object then null", "truncate zz", "grant select on zz to public",
              "comment on table zz is 'x'", "execute 'create table zz2 (i int)'", "drop table if exists zz, zz2; drop type zt"]
    assert pins_of([f"do $$ begin {block}; end $$" for block in blocks]) == {}
    assert pins_of(["do $$ begin raise debug 'x'; end $$; select 1", "begin; do $$ begin perform 1; end $$; commit",
                    "do $$ begin perform 1; end $$; do $$ begin perform 2; end $$"]) == {}
    found = pins_of(["do $$ begin create temp table zt (i int); end $$", "do $$ begin create view zv as select 1; drop view zv; end $$",
                     "select 1; do $$ begin perform pg_advisory_lock(1); end $$"])
    assert len(found) == 3, found


@weir
def what_the_server_could_not_read_pins_nobody(_context):
    """Whatever stands in it: nothing of it ran. What ran in front of it counts."""
    assert pins_of(["select nope(1)", "select nope(1) from nope_table", "select * from nope(1) as x(a)", "select schema_nope.fn()",
                    "insert into nope select nope()"]) == {}
    text = "select run('prepare x as select 1'); select nope(1)"
    assert pins_of([text]) == {text: ["code", "setting", "sql_prepare"]}


@weir
def a_literal_that_code_runs_in_the_midst_of_a_statement_pins_nobody(_context):
    functions = ["return query execute 'select $1' using 10", "for r in execute 'select 1' loop return next r; end loop",
                 "open c for execute 'select 1'; fetch c into r; close c", "execute 'truncate table public.' || quote_ident('audit') || ' cascade'"]
    with admin() as a:
        for n, body in enumerate(functions):
            a.ask(f"create function literal_{n}() returns setof int language plpgsql as "
                  f"$f$ declare r int; c refcursor; begin {body}; end $f$")
        a.ask("grant truncate on audit to public")
        try:
            found = pins_of([f"select * from literal_{n}()" for n in range(len(functions))])
        finally:
            for n in range(len(functions)):
                a.ask(f"drop function literal_{n}()")
    assert found == {}, found


@weir
def a_view_that_writes_and_a_write_inside_two_withs_write_once(_context):
    nested = "with x as (with y as (select 'nested' a) insert into logs (what) select a from y returning id) select id from x"
    with start() as w, admin() as a:
        for text, what in (("select l from view_that_writes", "by a view"), (nested, "nested")):
            before = a.ask(f"select count(*) from logs where what = '{what}'")[0][0]
            behind_a_slow_one(w, query(text))
            after = a.ask(f"select count(*) from logs where what = '{what}'")[0][0]
            assert int(after) == int(before) + 1, (what, before, after)


@weir
def what_a_function_sets_stays_with_its_client_and_nobody_else_has_it(_context):
    by_string = "select run('select set_config(''app.tenant'', ''A'', false)')"
    for call in ("select set_tenant('A')", "select by_name('A')", by_string, "do $$ begin perform set_tenant('A'); end $$"):
        with start(pool_size=2) as w, Wire(w.target()) as one, Wire(w.target()) as other:
            assert other.ask("select word from secret") == []
            one.ask(call)
            assert other.ask("select word from secret") == [], call
            assert one.ask("select word from secret") == [["of a"]], call
            # What a function sets by a name that its source tells follows its client; of other code nobody knows.
            known = call != by_string
            eventually(lambda: pinned(w) == (0 if known else 1), f"{call}: its pin")
            one.close()
            eventually(lambda: w.metric("weir_pinned_servers", protocol="postgres") == 0, "its server is free")
            with Wire(w.target()) as next_one, Wire(w.target()) as another:
                next_one.send(query("begin"))
                next_one.until("Z")
                for wire in (next_one, another):
                    assert wire.ask("select word from secret") == [], call


@weir
def what_a_trigger_leaves_is_its_clients_own_also_by_way_of_a_foreign_key_or_a_view(_context):
    for into in ("marked (a)", "into_marked"):
        with start(pool_size=2) as w, Wire(w.target()) as one, Wire(w.target()) as other:
            one.ask(f"insert into {into} values (7)")
            for _ in range(2):
                assert other.ask("select current_setting('app.marked', true)") != [["7"]]
                assert one.ask("select current_setting('app.marked', true)") == [["7"]]
            eventually(lambda w=w: pinned(w) == 0, "the value follows, and no server is kept")
    with start(pool_size=2) as w, Wire(w.target()) as one, Wire(w.target()) as other:
        one.ask("insert into parent values (1); insert into child values (1)")
        one.ask("delete from parent")
        for _ in range(2):
            assert other.ask("select current_setting('app.marked', true)") != [["deleted"]]
            assert one.ask("select current_setting('app.marked', true)") == [["deleted"]]


@weir
def a_lock_taken_by_a_view_an_attribute_or_a_text_has_one_owner(_context):
    taken = "select count(*) from pg_locks where locktype = 'advisory'"
    for text in ("select l from locked", "select (row(4711, 1)::pair).locks",
                 "select query_to_xml('select pg_advisory_lock(4711)', true, true, '')"):
        with start(pool_size=2) as w, Wire(w.target()) as one, Wire(w.target()) as other, admin() as a:
            one.ask(text)
            for _ in range(2):
                assert other.ask("select pg_try_advisory_lock(4711)") == [["f"]], text
            other.close()
            one.close()
            eventually(lambda: a.ask(taken) == [["0"]], f"the lock is free: {text}")


@weir
def a_users_operator_concerns_every_text_of_its_database(_context):
    with admin() as a:
        a.ask("create database operators")
    with Wire(dataclasses.replace(server().superuser(), database="operators")) as a:
        for statement in SCHEMA.strip().split(";\n"):
            if "===" in statement or "opens" in statement:
                a.ask(statement)
    with start(pool_size=2) as w:
        target = w.target(database="operators")
        with Wire(target) as one, Wire(target) as other:
            one.ask("select 4712 === 1")
            for _ in range(2):
                assert other.ask("select pg_try_advisory_lock(4712)") == [["f"]]


@weir
def a_string_that_code_runs_ties_nobody_where_the_code_shows_what_it_says(_context):
    """Clients that are alive at once, more than servers: partition triggers and the like."""
    with start(pool_size=1) as w, contextlib.ExitStack() as stack, admin() as a:
        a.ask("truncate events_a, events_b")
        wires = [stack.enter_context(Wire(w.target())) for _ in range(6)]
        for i, wire in enumerate(wires):
            wire.ask(f"insert into events values ('{'ab'[i % 2]}', 'of {i}')")
        for wire in wires:
            assert wire.ask("select count_of('events_a')") == [["3"]]
        eventually(lambda: pinned(w) == 0, "no pin")
        assert a.ask("select what from events_b order by 1") == [["of 1"], ["of 3"], ["of 5"]]
    with start(pool_size=2) as w, Wire(w.target()) as one, Wire(w.target()) as other:
        # Any table may be meant, and one of them has a trigger that locks.
        one.ask("select fill('locked_rows')")
        eventually(lambda: pinned(w) == 1, "it is pinned")
        assert other.ask("select pg_try_advisory_lock(4712)") == [["f"]]
    with start(pool_size=2) as w, Wire(w.target()) as one, Wire(w.target()) as other:
        one.ask("prepare mine as select 1")
        assert other.ask("select count_any('pg_prepared_statements')") == [["0"]]
        assert one.ask("select count_any('pg_prepared_statements')") == [["1"]]


@weir
def what_unknown_code_means_is_the_operators_choice(_context):
    """Clients that are alive at once, more than servers."""
    sets = "select run('select set_config(''app.tenant'', ''A'', false)')"
    text = "create function made() returns void language plpgsql as $$ begin end $$; select made(); drop function made()"
    for policy, met in (("reset", []), ("pass", [["of a"]])):
        with start(pool_size=1, settings=[f"pool.unknown_code={policy}"]) as w, contextlib.ExitStack() as stack:
            wires = [stack.enter_context(Wire(w.target())) for _ in range(4)]
            for turn in range(3):
                for wire in wires:
                    wire.ask("select run('select 1')" if turn else text)
                    eventually(lambda: pinned(w) == 0, "nobody is pinned")
                for one, other in zip(wires, wires[1:]):
                    one.ask(sets)
                    assert other.ask("select word from secret") == met, policy
                    wires[0].ask("reset all")
    with start(pool_size=2) as w, Wire(w.target()) as one, Wire(w.target()) as other:
        one.ask(sets)
        eventually(lambda: pinned(w) == 1, "it is pinned")
        assert other.ask("select word from secret") == [] and one.ask("select word from secret") == [["of a"]]


@weir
def code_that_leaves_nothing_ties_nobody_and_pure_code_is_shared(_context):
    with start() as w, Wire(w.target()) as one, Wire(w.target()) as other:
        for wire in (one, other, one, other):
            wire.ask("insert into audited (a) values (1)")
            wire.ask("select log('shared')")
            wire.ask("begin")
            wire.ask("select tenant_of_the_moment('A')")
            assert wire.ask("select word from secret") == [["of a"]]
            wire.ask("commit")
            assert wire.ask("select word from secret") == []
            assert wire.ask("select plain(1)") == [["2"]]
        eventually(lambda: pinned(w) == 0, "no pin")
        before = w.metric("weir_shared_requests", protocol="postgres")

        def work(i):
            with Wire(w.target()) as wire:
                for _ in range(50):
                    assert wire.ask(f"select plain({i})") == [[str(i + 1)]]

        raised = in_threads(20, work)
        assert not raised, raised[:3]
        eventually(lambda: w.metric("weir_shared_requests", protocol="postgres") > before + 100, "weir_shared_requests > before + 100")


@weir
def a_function_made_by_anybody_is_known_at_its_first_call(_context):
    """Through Weir at once; behind its back within the interval."""
    make = ("create or replace function newly() returns void language plpgsql as "
            "$$ begin perform set_config('app.tenant', 'A', false); end $$")
    with start(pool_size=3) as w, Wire(w.target()) as maker, Wire(w.target()) as one, Wire(w.target()) as other:
        assert other.ask("select word from secret") == []
        maker.ask(make)
        one.ask("select newly()")
        assert other.ask("select word from secret") == []
        assert one.ask("select word from secret") == [["of a"]]
        eventually(lambda: pinned(w) == 0, "what it has set goes along, and nothing keeps its server")
        assert other.ask("select word from secret") == []
        assert one.ask("select word from secret") == [["of a"]]
        maker.ask("drop function newly()")
    with start(pool_size=3, settings=["pool.catalogue_check_interval=0"]) as w, admin() as a:
        with Wire(w.target()) as one, Wire(w.target()) as other:
            assert one.ask("select plain(1)") == [["2"]]
            reads = w.metric("weir_catalogue_reads", protocol="postgres")
            a.ask("create or replace function plain(i int) returns int language plpgsql as "
                  "$$ begin perform set_config('app.tenant', 'A', false); return i + 1; end $$")
            eventually(lambda: one.ask("select 1") and w.metric("weir_catalogue_reads", protocol="postgres") > reads, "it is noticed")
            one.ask("select plain(1)")
            assert other.ask("select word from secret") == []
            assert one.ask("select word from secret") == [["of a"]]
            a.ask("create or replace function plain(i int) returns int language plpgsql as "
                  "$$ begin return i + 1; end $$")


@weir
def what_code_that_was_changed_elsewhere_leaves_is_taken_away(_context):
    """The change is not seen before the function runs; what that leaves goes before another client gets the server, and from an idle one."""
    harmless = "create or replace function plain(i int) returns int language plpgsql as $$ begin return i + 1; end $$"
    leaves = ("create or replace function plain(i int) returns int language plpgsql as "
              "$$ begin perform set_config('app.tenant', 'A', false), pg_advisory_lock(4713); return i + 1; end $$")
    locks = "select count(*) from pg_locks where locktype = 'advisory' and objid = 4713"
    with admin() as a:
        try:
            for pool_size in (1, 2):
                with start(pool_size=pool_size, settings=["pool.catalogue_check_interval=0.1"]) as w, Wire(w.target()) as one, Wire(w.target()) as other:
                    # With two servers both are there, and one of them is idle when the other one finds the change.
                    for wire in (one, other)[:pool_size]:
                        wire.ask("begin")
                        wire.ask("select plain(1)")
                    for wire in (one, other)[:pool_size]:
                        wire.ask("commit")
                    reads = w.metric("weir_catalogue_reads", protocol="postgres")
                    a.ask(leaves)
                    if pool_size == 2:
                        other.ask("begin"), other.ask("select 1")
                    one.ask("select plain(1)")
                    if pool_size == 2:
                        other.ask("commit")
                    eventually(lambda: other.ask("select 1") and w.metric("weir_catalogue_reads", protocol="postgres") > reads, "it is noticed")
                    a.ask(harmless)
                    for _ in range(3):
                        for wire in (other, one)[:pool_size]:
                            wire.ask("begin")
                            assert wire.ask("select word from secret") == []
                        for wire in (other, one)[:pool_size]:
                            wire.ask("commit")
                    assert a.ask(locks) == [["0"]]
        finally:
            a.ask(harmless)


@weir
def a_new_function_pins_nobody_at_its_first_call(_context):
    """Also while another's transaction has a table's change under way, as a migration has it: names of statements matter to a text whose code
    nobody has read, and the code is read before the text is sent."""
    def asked(wire, name, text):
        wire.send(parse(text, name) + bind(statement=name) + execute() + SYNC)
        kinds = [kind for kind, _ in wire.until("Z")]
        assert "D" in kinds and "E" not in kinds, kinds

    with start(pool_size=3) as w, Wire(w.target()) as maker, Wire(w.target()) as one, Wire(w.target()) as other, Wire(w.target()) as third:
        for under_way in (False, True):
            if under_way:
                maker.ask("begin")
                maker.ask("create table migrated (a int)")
            for wire, call in ((one, lambda wire: wire.ask("select brand_new(1)")), (other, lambda wire: asked(wire, "", "select brand_new(2)")),
                               (third, lambda wire: asked(wire, f"s{under_way}", "select brand_new(3)"))):
                one.ask("create function brand_new(int) returns int language sql as 'select $1'")
                call(wire)
                one.ask("drop function brand_new(int)")
            if under_way:
                maker.ask("rollback")
        assert w.metric("weir_pins_total", protocol="postgres") == 0


@weir
def a_function_in_an_open_transaction_of_its_maker_proves_nothing_to_others(_context):
    with start(pool_size=2) as w, Wire(w.target()) as maker, Wire(w.target()) as one, admin() as a:
        maker.ask("begin")
        maker.ask("create function made_late(t text) returns int language plpgsql as "
                  "$$ begin insert into logs (what) values (t); return 1; end $$")
        maker.ask("commit")
        for n in range(3):
            behind_a_slow_one(w, query(f"select made_late('late {n}')"))
            assert a.ask(f"select count(*) from logs where what = 'late {n}'") == [["1"]]
        one.ask("drop function made_late(text)")


@weir
def a_catalogue_that_cannot_be_read_for_a_moment_keeps_nobody_waiting(_context):
    """The reading meets a lock and gives up, as it would for want of memory or of room on the disk. What was known before goes on to
    count; servers are reset between clients, and nobody keeps one."""

    def log():
        with open(server().env["LOG"], encoding="utf-8", errors="replace") as f:
            return f.read()

    with admin() as a:
        a.ask("alter role app_md5 set lock_timeout = '100ms'")
    with start(users=["app_md5"]) as w:
        target = w.target().login("app_md5")
        with Wire(target) as one, Wire(target) as other, admin() as locker:
            assert one.ask("select plain(1)") == [["2"]]
            locker.ask("begin")
            locker.ask("lock table pg_catalog.pg_policy in access exclusive mode")
            eventually(lambda: one.ask("select 1") and "due to lock timeout" in log(), "a reading has failed")
            for n in range(20):
                # Both are connected all the while, and there is one server.
                assert one.ask(f"select 'one {n}'") == [[f"one {n}"]]
                assert other.ask(f"select 'other {n}'") == [[f"other {n}"]]
            one.ask("select set_tenant('A')")
            for _ in range(2):
                assert other.ask("select current_setting('app.tenant', true)") != [["A"]]
                assert one.ask("select current_setting('app.tenant', true)") == [["A"]]
            eventually(lambda: pinned(w) == 0, "what was known of functions counts")
            one.ask("discard all")
            eventually(lambda: pinned(w) == 0, "nobody keeps the server")
            reads = w.metric("weir_catalogue_reads", protocol="postgres")
            locker.ask("commit")
            locker.ask("create function made_meanwhile() returns int language sql as 'select 1'")
            eventually(lambda: one.ask("select 1") and w.metric("weir_catalogue_reads", protocol="postgres") > reads, "it is read again")
            assert other.ask("select plain(2)") == [["3"]]
            locker.ask("drop function made_meanwhile()")
        with admin() as a:
            a.ask("alter role app_md5 reset lock_timeout")


@weir
def reading_the_catalogue_never_makes_a_client_the_victim_of_a_deadlock(_context):
    """A client has a table locked and drops a view of it, while Weir reads the definitions of views: it has locked the view and waits
    for the table. It is Weir that gives way."""

    def waits():
        """How long, in ms, a reading has waited for its lock."""
        found = a.ask("select coalesce(max(extract(epoch from clock_timestamp() - l.waitstart) * 1000)::int, -1) from pg_locks l "
                      "join pg_stat_activity s using (pid) where not l.granted and s.query like 'SELECT ''z''%'")
        return int(found[0][0])

    with admin() as a:
        # Whoever waits longer than this looks for a deadlock, once.
        a.ask("alter database postgres set deadlock_timeout = '200ms'")
        a.ask("create table under (a int)")
        a.ask("create view over as select a from under")
        try:
            with start(pool_size=2) as w, Wire(w.target()) as dropper, Wire(w.target()) as maker:
                user = maker.ask("select current_user")[0][0]
                a.ask(f"alter table under owner to {user}")
                a.ask(f"alter view over owner to {user}")
                dropper.ask("begin")
                dropper.ask("lock table under in access exclusive mode")
                maker.ask("create function fresh_code() returns int language sql as 'select 5'")
                eventually(lambda: waits() >= 0, "a reading meets the lock")
                with contextlib.suppress(AssertionError):
                    eventually(lambda: waits() > 300, "it waits for long", deadline_s=1)
                dropper.ask("drop view over")
                dropper.ask("commit")
                assert maker.ask("select fresh_code()") == [["5"]]
        finally:
            a.ask("alter database postgres reset deadlock_timeout")
            a.ask("drop table under cascade")
            a.ask("drop function if exists fresh_code()")


@weir
def who_comes_behind_a_reading_that_has_met_a_lock_finds_a_clean_server(_context):
    """The reading ends in a failed transaction of Weir's own, and what was known before counts on."""
    def refusals():
        with open(server().env["LOG"], encoding="utf-8", errors="replace") as f:
            return f.read().count("due to lock timeout")

    with admin() as a, admin() as locker, start() as w, Wire(w.target()) as one:
        assert one.ask("select plain(1)") == [["2"]]
        a.ask("create table under_lock (a int)")
        a.ask("create view over_lock as select a from under_lock")
        try:
            before = refusals()
            locker.ask("begin")
            locker.ask("lock table under_lock in access exclusive mode")
            eventually(lambda: one.ask("select plain(1)") == [["2"]] and refusals() > before + 1, "readings meet the lock, and are put off")
            assert one.ask("begin") is not None and one.ask("select plain(2)") == [["3"]]
            one.ask("commit")
            eventually(lambda: pinned(w) == 0, "no pin")
        finally:
            locker.ask("rollback")
            a.ask("drop table under_lock cascade")


@weir
def who_makes_many_tables_does_not_wait_for_a_reading_behind_each(_context):
    """Behind a change of code somebody reads it before anybody goes on."""
    def reads():
        return w.metric("weir_catalogue_reads", protocol="postgres")

    with start() as w, Wire(w.target()) as wire:
        wire.ask("select 1")
        before = reads()
        for i in range(40):
            wire.ask(f"create table many_{i} (i int)")
            wire.ask(f"alter table many_{i} add column j int")
            wire.ask(f"drop table many_{i}")
        assert reads() - before <= 60, f"{reads() - before} readings behind 120 changes of tables"
        before = reads()
        for i in range(10):
            wire.ask(f"create or replace function many() returns int language sql as 'select {i}'")
            assert wire.ask("select many()") == [[str(i)]]
        assert reads() - before >= 10, "a change of code is read"
        wire.ask("drop function many()")
