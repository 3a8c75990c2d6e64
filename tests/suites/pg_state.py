"""What PostgreSQL clients set follows them: many clients that are alive at once on two servers, each with settings of its own, as
frameworks set them at their connect. Nobody waits for a pin, and nobody sees another's setting."""

import contextlib
import random
import threading

import psycopg
from weirtest.case import in_threads, weir
from weirtest.pgwire import ServerError, Wire
from weirtest.target import superuser
from weirtest.weir import Weir

SERVERS = ["postgres"]
CLIENTS = 40
ZONES = ["UTC", "Asia/Tokyo", "America/New_York", "Europe/Paris"]

# What they send at connect; {} is the client's number. Each leaves something that the client asks for later.
CONNECTS = {
    "rails": ["SET client_min_messages TO 'warning'", "SET standard_conforming_strings = on", "SET SESSION timezone TO '{zone}'", "SET statement_timeout TO '{n}s'"],
    "laravel": ["set names 'utf8'", "set search_path to \"s{n}\", public", "set time zone '{zone}'", "set application_name to 'app{n}'"],
    "django": ["SELECT set_config('TimeZone', '{zone}', false)", "SET lock_timeout = '{n}s'"],
    "jdbc": ["SET extra_float_digits = 3", "SET application_name = 'app{n}'", "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
             "SET search_path = s{n}", "SET TimeZone = '{zone}'"],
    "tenants": ["SELECT set_config('app.tenant', 't{n}', false), set_config('TimeZone', '{zone}', false)", "SET work_mem = '{n}MB'"],
    "migrations": ["BEGIN", "SET search_path = s{n}", "SET lock_timeout = '{n}s'", "SAVEPOINT a", "SET search_path = nowhere", "ROLLBACK TO a", "COMMIT",
                   "SELECT pg_advisory_lock({n})", "SELECT pg_advisory_unlock({n})", "CREATE TEMP TABLE tt (a int)", "DROP TABLE tt"],
}
ASK = ("select current_setting('search_path'), current_setting('TimeZone'), current_setting('statement_timeout'), current_setting('lock_timeout'), "
       "current_setting('work_mem'), current_setting('default_transaction_isolation'), "
       "current_setting('client_min_messages'), current_setting('application_name')")
# A name with a dot is '' instead of NULL in a transaction on a server that others have told it: docs/src/pins.md.
ASK_TENANT = ASK + ", current_setting('app.tenant', true)"


def connection(target, **startup):
    return psycopg.connect(host=target.host, port=target.port, user=target.user, password=target.password, dbname="app", autocommit=True,
                           **startup)


def play(target, count=CLIENTS):
    """What each client sees of itself, asked again and again while all are there."""
    there = threading.Barrier(count, timeout=120)
    seen = {}

    def work(i):
        name = sorted(CONNECTS)[i % len(CONNECTS)]
        fill = {"n": i + 2, "zone": ZONES[i % len(ZONES)]}
        with connection(target, application_name="none") as c:
            for text in CONNECTS[name]:
                try:
                    c.execute(text.format(**fill), prepare=False)
                except psycopg.Error as e:
                    there.abort()
                    raise AssertionError(f"{name}: {text}: {e}") from None
            there.wait()
            ask = ASK_TENANT if name == "tenants" else ASK
            mine = set()
            dice = random.Random(i)
            for turn in range(12):
                if dice.random() < 0.3:
                    c.execute("begin")
                    mine.add(c.execute(ask, prepare=False).fetchone())
                    c.execute("set local work_mem = '64kB'")
                    c.execute(dice.choice(["commit", "rollback"]))
                else:
                    mine.add(c.execute(ask, prepare=dice.random() < 0.5).fetchone())
            seen[i] = mine
            there.wait()
            # Back to what it began with.
            c.execute("reset all")
            there.wait()
            seen[-1 - i] = {c.execute(ASK).fetchone()}

    failed = in_threads(count, work)
    assert not failed, failed[:3]
    return seen


@weir
def forty_clients_with_settings_of_their_own_share_two_servers(context):
    direct = play(context.direct())
    with Weir.before("postgres", pool_size=2, settings=["pool.query_wait_timeout=20"]) as w:
        through = play(w.target())
        assert w.metric("weir_server_connections", protocol="postgres") <= 2
        w.reaches("weir_pinned_servers", 0, protocol="postgres")
    different = {i: (direct[i], through[i]) for i in direct if direct[i] != through[i]}
    assert not different, list(different.items())[:2]
    assert len({next(iter(mine)) for i, mine in through.items() if i >= 0}) == CLIENTS


@weir
def a_setting_is_its_clients_own_when_it_fails_or_is_taken_back(context):
    """One server; what one client does must not show in the other."""
    steps = [
        ("a", "set work_mem = '7MB'; select 1/0"), ("a", "show work_mem"),
        ("a", "set work_mem = '8MB'"), ("b", "show work_mem"),
        ("a", "begin"), ("a", "set work_mem = '9MB'"), ("a", "select 1/0"), ("a", "rollback"), ("b", "show work_mem"), ("a", "show work_mem"),
        ("b", "set work_mem = 'nonsense'"), ("b", "show work_mem"), ("a", "show work_mem"),
        ("a", "reset work_mem"), ("b", "show work_mem"), ("a", "show work_mem"),
        ("a", "set temp_buffers = '2MB'"), ("a", "show temp_buffers"), ("a", "reset all"), ("b", "show temp_buffers"),
    ]

    def run(target):
        clients = {"a": connection(target), "b": connection(target)}
        seen = []
        for who, text in steps:
            try:
                done = clients[who].execute(text, prepare=False)
                seen.append(done.fetchall() if done.description else done.statusmessage)
            except psycopg.Error as e:
                seen.append(e.sqlstate)
        for c in clients.values():
            c.close()
        return seen

    with Weir.before("postgres", pool_size=1, settings=["pool.query_wait_timeout=20"]) as w:
        through, direct = run(w.target()), run(context.direct())
        assert through == direct, [(step, a, b) for step, a, b in zip(steps, direct, through) if a != b]


@weir
def a_reset_right_behind_a_set_goes_back_to_the_startup_value(_context):
    """A RESET that comes while Weir asks the server what the SET before it has set."""
    with Weir.before("postgres", pool_size=1, settings=["pool.query_wait_timeout=20"]) as w:
        for back in ["reset app.z", "set app.z to default", "reset all"]:
            seen = set()
            for _ in range(30):
                with connection(w.target(), options="-c app.z=9") as c:
                    c.execute("set app.z = 1", prepare=False)
                    c.execute(back, prepare=False)
                    seen.add(c.execute("show app.z", prepare=False).fetchone())
            assert seen == {("9",)}, (back, seen)


ROLES = [f"role_{n}" for n in range(8)]
WHO = "select current_user, session_user, current_setting('role'), current_setting('is_superuser')"
MINE = "select string_agg(body, ',' order by body) from rows_of_roles where body <> %s"


@contextlib.contextmanager
def roles():
    """Roles that the user of the tests may take, and a table of which each sees its own rows."""
    made = [
        "drop table if exists rows_of_roles", *(f"drop role if exists {role}" for role in ROLES), *(f"create role {role}" for role in ROLES),
        "create table rows_of_roles (owner text, body text)", *(f"insert into rows_of_roles values ('{role}', 'of {role}')" for role in ROLES),
        "alter table rows_of_roles enable row level security", "create policy own on rows_of_roles using (owner = current_user)",
        f"grant select, insert on rows_of_roles to public; grant {', '.join(ROLES)} to app_scram",
    ]
    with connection(superuser()) as admin:
        for text in made:
            admin.execute(text)
        try:
            yield admin
        finally:
            admin.execute("drop table rows_of_roles")
            for role in ROLES:
                admin.execute(f"drop role if exists {role}")


@weir
def forty_clients_with_roles_of_their_own_share_two_servers(_context):
    """Row level security and current_user are each client's own in every protocol, and none of them keeps a server."""
    there = threading.Barrier(CLIENTS, timeout=120)
    told = []

    def work(i):
        role = ROLES[i % len(ROLES)]
        mine = ("app_scram", "app_scram", "none", "off"), None
        with connection(target, application_name=f"a{i % 3}") as c:
            dice = random.Random(i)
            if i % 5:
                how = [f"set role {role}", f"select set_config('role', '{role}', false)", f"begin; set local role {ROLES[0]}; set role {role}; commit",
                       f"do $$ begin set role {role}; end $$"]
                c.execute(how[i % 4], prepare=False)
                mine = (role, "app_scram", role, "off"), f"of {role}"
            there.wait()
            for turn in range(15):
                if dice.random() < 0.2:
                    c.execute("begin")
                    c.execute("savepoint a")
                    c.execute(f"set role {dice.choice(ROLES)}")
                    c.execute(dice.choice(["rollback to a", "rollback"]))
                    c.execute("rollback")
                who = c.execute(WHO, prepare=dice.random() < 0.5).fetchone()
                rows = c.execute(MINE, ("",), prepare=dice.random() < 0.7, binary=dice.random() < 0.5).fetchone()[0]
                simple = c.execute(MINE.replace("%s", "''"), prepare=False).fetchone()[0]
                told.append((i, turn, (who, rows), (who, simple), mine))
            there.wait()
            c.execute(dice.choice(["reset role", "discard all", "set role none", "reset session authorization"]), prepare=False)
            there.wait()
            told.append((i, "reset", (c.execute(WHO).fetchone(), None), None, (("app_scram", "app_scram", "none", "off"), None)))

    with roles(), Weir.before("postgres", pool_size=2, settings=["pool.query_wait_timeout=20"]) as w:
        target = w.target()
        assert not (failed := in_threads(CLIENTS, work)), failed[:3]
        assert w.metric("weir_server_connections", protocol="postgres") <= 3
        w.reaches("weir_pinned_servers", 0, protocol="postgres")
    wrong = [one for one in told if one[2] != one[4] or (one[3] or one[2]) != one[4]]
    assert not wrong, wrong[:3]


@weir
def a_role_that_was_taken_away_runs_nothing(_context):
    """On another server than the one that gave it: refused with the server's own error, and nothing of the request is done."""
    for taken in [f"revoke {ROLES[1]} from app_scram", f"drop role {ROLES[1]}"]:
        with roles() as admin, Weir.before("postgres", pool_size=1) as w:
            target = w.target()
            with connection(target) as a, connection(target) as b:
                a.execute(f"set role {ROLES[1]}")
                assert b.execute(WHO).fetchone()[0] == "app_scram"
                assert a.execute(WHO).fetchone()[0] == ROLES[1]
                assert b.execute(WHO).fetchone()[0] == "app_scram"
                admin.execute(taken)
                for prepare in [False, True]:
                    try:
                        a.execute("insert into rows_of_roles values ('x', 'must not be there')", prepare=prepare)
                    except psycopg.Error as e:
                        assert e.sqlstate in ("42501", "22023"), e
                    else:
                        raise AssertionError("it ran")
                assert b.execute(WHO).fetchone()[0] == "app_scram"
            assert admin.execute("select count(*) from rows_of_roles where owner = 'x'").fetchone()[0] == 0


@weir
def forty_clients_that_draw_from_sequences_share_two_servers(_context):
    """What Hibernate and JPA do for each new row. Who thinks behind a nextval keeps its server from nobody."""
    there = threading.Barrier(CLIENTS, timeout=120)
    with Weir.before("postgres", pool_size=2, settings=["pool.query_wait_timeout=60"]) as w:
        with connection(w.target()) as c:
            c.execute("drop sequence if exists drawn_by_many; create sequence drawn_by_many", prepare=False)

        kept = []

        def work(_):
            with connection(w.target()) as c:
                drawn = [c.execute("select nextval('drawn_by_many')").fetchone()[0]]
                there.wait()
                c.execute("begin")
                drawn.append(c.execute("select nextval('drawn_by_many')").fetchone()[0])
                seen = c.execute("select currval('drawn_by_many')").fetchone()[0]
                assert seen == drawn[1], "in a transaction it is always the client's own"
                c.execute("commit")
                there.wait()
                kept.extend(drawn)

        assert not (raised := in_threads(CLIENTS, work)), raised
        assert sorted(kept) == list(range(1, 2 * CLIENTS + 1)), "each value once"
        with connection(w.target()) as c:
            c.execute("drop sequence drawn_by_many")


CURRVAL = "select currval('one')"


@weir
def who_gets_the_number_of_one_that_has_left_finds_nothing_of_it(_context):
    """Numbers of clients come round again; what a server remembers of one is nobody else's."""
    with Weir.before("postgres", pool_size=1, settings=["workers=1"]) as w:
        with connection(w.target()) as c:
            c.execute("drop sequence if exists one, two; create sequence one; create sequence two; grant all on one, two to public", prepare=False)
        with Wire(w.target()) as c:
            number = c.pid
            c.ask("select nextval('one')")
            c.ask("select 1")
        for _ in range(5_000):
            with Wire(w.target()) as c:
                if c.pid == number:
                    c.ask("select nextval('two')")
                    try:
                        raise AssertionError(f"it was told what another one has drawn: {c.ask(CURRVAL)}")
                    except ServerError as e:
                        assert "55000" in str(e), e
                        break
        else:
            raise AssertionError("no number has come round again")
        with connection(w.target()) as c:
            c.execute("drop sequence one, two", prepare=False)
