"""Pinned clients and the others: servers beyond the pool's size (pinned_pool_size), what the log says, what the operator decides.
On a PostgreSQL of its own, so that every connection on it is Weir's or this suite's."""

import contextlib
import functools
import signal
import threading

from weirtest import pinning
from weirtest.case import eventually, in_threads, weir
from weirtest.pgwire import SYNC, Closed, LoginRefused, ServerError, Wire, bind, describe, execute, fields, parse, query
from weirtest.private import PrivateServer
from weirtest.weir import PASSWORD, Weir

SERVERS = ["postgres"]

LOST = (Closed, ConnectionError, OSError)
LOCK, UNLOCK = "select pg_advisory_lock({})", "select pg_advisory_unlock({})"


@functools.cache
def server():
    return PrivateServer("postgres")


def text(size, pinned, more="", database="", users=("app_scram",)):
    """A weir.toml."""
    out = f'{more}\n[databases.app]\nurl = "postgres://127.0.0.1:{server().port}/app"\n{database}\n'
    for user in users:
        out += f'[users.{user}]\npassword = "{PASSWORD}"\n'
    return out + f"[pool]\ndefault_pool_size = {size}\npinned_pool_size = {pinned}\n"


class Reloading:
    """A Weir whose file can be changed."""

    def __init__(self, content, **kw):
        self.w = Weir.configured("postgres", content, **kw)
        self.path = self.w.argv[self.w.argv.index("--config") + 1]

    def reload(self, content):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(content)
        before = len(self.w.log())
        self.w.signal(signal.SIGHUP)
        eventually(lambda: "the configuration was reloaded" in self.w.log()[before:], "the reload")

    def __enter__(self):
        self.w.__enter__()
        return self

    def __exit__(self, *raised):
        self.w.__exit__(*raised)


def start(size=2, pinned=0, settings=(), **kw):
    settings = [f"pool.pinned_pool_size={pinned}", *settings]
    return Weir.before("postgres", port=server().port, pool_size=size, settings=settings, **kw)


def connections(a):
    return int(a.ask("select count(*) from pg_stat_activity where backend_type = 'client backend' and usename like 'app%'")[0][0])


@contextlib.contextmanager
def admin():
    with Wire(server().superuser()) as wire:
        yield wire


def sampled():
    return pinning.sampled(admin, connections)


def pinned(w):
    return w.metric("weir_pinned_servers", protocol="postgres")


def outside(w):
    return w.metric("weir_pinned_pool_servers", protocol="postgres")


def pin(w, number, how=LOCK):
    wire = Wire(w.target())
    wire.ask(how.format(number))
    return wire


def is_served(w, what="served", within_s=10):
    """A transaction of somebody who came just now."""
    with Wire(w.target()) as wire:
        wire.sock.settimeout(within_s)
        wire.ask("begin")
        assert wire.ask(f"select '{what}', txid_current() > 0")[0][0] == what
        wire.ask("commit")


class Late:
    """A client that comes while all servers are taken, and waits."""

    def __init__(self, w):
        self.raised = []
        self.thread = threading.Thread(target=lambda: self.raised.extend(in_threads(1, lambda _: is_served(w, "late", 60))))
        self.thread.start()
        eventually(lambda: w.metric("weir_waiting_clients", protocol="postgres") == 1, "it waits")

    def is_served(self):
        self.thread.join(30)
        assert not self.thread.is_alive() and not self.raised, self.raised


def others_at_work(w, count=4):
    return pinning.Others(w, Wire, "select {}, txid_current() > 0", "t", count)


@weir
def pinned_clients_starve_nobody(_context):
    """Six clients pin a pool of two, with room for six: the others are served, the database sees eight connections at most, and in the
    end two."""
    for workers, how, free in ((1, LOCK, UNLOCK), (3, LOCK, UNLOCK), (2, "create temp table t{} (i int)", "drop table t{}")):
        with start(2, 6, settings=[f"workers={workers}"]) as w, sampled() as most, admin() as a, others_at_work(w) as others:
            barrier, wires = threading.Barrier(6), [None] * 6

            def work(i, w=w, how=how, barrier=barrier, wires=wires):
                barrier.wait()
                wires[i] = pin(w, i, how)

            assert not in_threads(6, work)
            eventually(lambda w=w: (pinned(w), outside(w)) == (6, 6), "all six are outside")
            others.all_go_on()
            if "lock" in how:
                assert a.ask("select count(*) from pg_locks where locktype = 'advisory' and granted") == [["6"]]
            for i, wire in enumerate(wires):
                wire.ask(free.format(i))
            eventually(lambda w=w: (pinned(w), outside(w)) == (0, 0), "no pin is left")
            others.all_go_on()
            eventually(lambda a=a: connections(a) <= 2, "the pool has its size again")
            for wire in wires:
                assert wire.ask("select 'still here'") == [["still here"]]
                wire.close()
        assert 6 < most[0] <= 8, f"{most[0]} connections at once"


@weir
def nothing_is_outside_by_default(_context):
    with start(2, settings=["pool.query_wait_timeout=1"]) as w, sampled() as most, admin() as a:
        wires = [pin(w, i) for i in range(2)]
        with contextlib.suppress(ServerError, LoginRefused), Wire(w.target()) as late:
            late.ask("select txid_current()")
            raise AssertionError("served by a third connection")
        assert (connections(a), outside(w)) == (2, 0)
        for wire in wires:
            wire.close()
    assert most[0] == 2, most


@weir
def an_allowance_that_is_used_up_leaves_all_as_it_was(_context):
    """Size 2, one outside: the third pin fills the pool; whoever comes waits, and is served as soon as any of them ends."""
    with start(2, 1, settings=["workers=2"]) as w, sampled() as most:
        wires = [pin(w, i) for i in range(3)]
        eventually(lambda: pinned(w) == 3, "all are pinned")
        late = Late(w)
        eventually(lambda: outside(w) == 1, "one is outside")
        # Whichever ends: another one takes the place outside.
        wires.pop(0).ask(UNLOCK.format(0))
        late.is_served()
        eventually(lambda: (pinned(w), outside(w)) == (2, 1), "one is outside, one inside")
        is_served(w)
        for wire in wires:
            wire.close()
    assert most[0] <= 3, most


@weir
def pinned_clients_that_leave_give_their_places_back(_context):
    """By a goodbye, by silence, in a transaction; and whose server is lost."""
    with start(2, 4, settings=["workers=2"]) as w, sampled() as most, admin() as a, others_at_work(w) as others:
        wires = [pin(w, i) for i in range(4)]
        eventually(lambda: outside(w) == 4, "all are outside")
        wires[0].close()
        wires[1].vanish()
        wires[2].ask("begin")
        wires[2].ask("select pg_advisory_lock(77)")
        wires[2].vanish()
        pid = wires[3].ask("select pid from pg_locks where locktype = 'advisory' and objid = 3")[0][0]
        a.ask(f"select pg_terminate_backend({pid})")
        try:
            wires[3].ask("select 1")
            raise AssertionError("the server was lost, and nobody said so")
        except (ServerError, *LOST) as e:
            assert not isinstance(e, ServerError) or e.code in ("57P01", "08006"), e.code
        eventually(lambda: (pinned(w), outside(w)) == (0, 0), "no pin is left")
        assert a.ask("select count(*) from pg_locks where locktype = 'advisory'") == [["0"]]
        others.all_go_on()
        eventually(lambda: connections(a) <= 2, "the pool has its size again")
    assert most[0] <= 6, most


@weir
def a_pin_inside_a_transaction_counts_when_that_ends(_context):
    with start(1, 1) as w, admin() as a:
        wire = Wire(w.target())
        wire.ask("begin")
        wire.ask("create temp table t (i int)")
        late = Late(w)
        assert (pinned(w), connections(a)) == (0, 1)
        wire.ask("commit")
        late.is_served()
        eventually(lambda: (pinned(w), outside(w), connections(a)) == (1, 1, 2), "the table is outside")
        # It is pinned in every later transaction, too.
        wire.ask("begin")
        wire.ask("insert into t values (1)")
        is_served(w)
        wire.ask("rollback")
        wire.ask("drop table t")
        eventually(lambda: (pinned(w), outside(w), connections(a)) == (0, 0, 1), "one server is left")
        wire.close()


@weir
def a_reload_applies_to_pins_that_are_there(_context):
    with Reloading(text(2, 0)) as r, sampled() as most, admin() as a:
        w = r.w
        wires = [pin(w, i) for i in range(2)]
        eventually(lambda: pinned(w) == 2, "both are pinned")
        late = Late(w)
        r.reload(text(2, 2))
        late.is_served()
        eventually(lambda: outside(w) == 2, "both are outside")
        wires += [pin(w, i) for i in (2, 3)]
        eventually(lambda: (pinned(w), connections(a)) == (4, 4), "four are pinned")
        # Smaller: nobody loses his server, and nobody gets a new one.
        r.reload(text(2, 1))
        for i, wire in enumerate(wires):
            assert wire.ask(f"select pg_try_advisory_lock({i})") == [["t"]]
            wire.ask(UNLOCK.format(i))
        eventually(lambda: outside(w) == 1, "one may be outside")
        for i, wire in enumerate(wires[:3]):
            wire.ask(UNLOCK.format(i))
        eventually(lambda: (pinned(w), connections(a) <= 3) == (1, True), "what is left is in its bounds")
        is_served(w)
        r.reload(text(2, 0))
        wires[3].ask(UNLOCK.format(3))
        eventually(lambda: (pinned(w), outside(w), connections(a) <= 2) == (0, 0, True), "the pool has its size")
        is_served(w)
        # By database and by user, which comes first.
        r.reload(text(1, 0, database="pinned_pool_size = 1"))
        wires[0].ask(LOCK.format(0))
        eventually(lambda: outside(w) == 1, "it is outside by the database's setting")
        is_served(w)
        for wire in wires:
            wire.close()
    assert most[0] <= 4, most


@weir
def limits_of_databases_and_users_hold_for_pinned_servers(_context):
    for limit in ("max_db_connections", "max_user_connections"):
        with start(2, 6, settings=[f"pool.{limit}=3", "pool.query_wait_timeout=1"]) as w, sampled() as most:
            wires = [pin(w, i) for i in range(3)]
            eventually(lambda w=w: pinned(w) == 3, "all are pinned")
            with contextlib.suppress(ServerError, LoginRefused), Wire(w.target()) as late:
                late.ask("select txid_current()")
                raise AssertionError(f"served beyond {limit}")
            wires.pop().close()
            is_served(w)
            for wire in wires:
                wire.close()
        assert most[0] == 3, (limit, most)


@weir
def pools_that_find_their_size_count_pinned_servers_apart(_context):
    settings = ["pool.default_pool_size=auto", "pool.auto_size_min=1", "pool.auto_size_max=2", "workers=2"]
    with start(2, 5, settings=settings) as w, sampled() as most, others_at_work(w) as others:
        wires = [pin(w, i) for i in range(5)]
        eventually(lambda: outside(w) == 5, "all are outside")
        others.all_go_on()
        for wire in wires:
            wire.close()
        eventually(lambda: outside(w) == 0, "none is left")
        others.all_go_on()
    assert 5 < most[0] <= 7, most


@weir
def the_console_shows_how_much_of_it_is_used(_context):
    with start(2, 3, settings=["console.admin_users=app_scram"]) as w:
        wires = [pin(w, i) for i in range(2)]
        eventually(lambda: outside(w) == 2, "both are outside")
        with Wire(w.target(database="weir")) as console:
            limits = {r[0]: (r[4], r[5]) for r in console.ask("show limits")}
            assert limits["pinned_pool_size"] == ("2", "3"), limits
            assert int(limits["pool_size"][0]) <= 2 and limits["pool_size"][1] == "2", limits
            assert [r[-1] for r in console.ask("show pools") if r[2] == "app_scram"] == ["2"]
            assert sorted(r[7] for r in console.ask("show pins")) == ["session_lock"] * 2
        with Wire(w.target(database="pgbouncer")) as console:
            assert len(console.ask("show pools")[0]) == 17, "PgBouncer's columns"
        for wire in wires:
            wire.close()


@weir
def who_pins_while_others_wait_is_in_the_log(_context):
    says = "client keeps its server because of a pin while others wait"
    with start(1, settings=["log.log_pins_after=1", "pool.query_wait_timeout=60"]) as w:
        wire = Wire(w.target(), {"application_name": "reports"})
        wire.ask("select pg_advisory_lock(4711) /* of the job */")
        eventually(lambda: pinned(w) == 1, "it is pinned")
        late = Late(w)
        line = eventually(lambda: next((line for line in w.log().splitlines() if says in line), None), "a line in the log")
        for part in ("WARN", 'user="app_scram"', 'database="app"', "address=127.0.0.1", 'application_name="reports"', 'reasons="session_lock"',
                     "held_s=", 'statement="select pg_advisory_lock(?)"', "client="):
            assert part in line, f"{part} is missing: {line}"
        assert "4711" not in line, line
        wire.ask(UNLOCK.format(4711))
        late.is_served()
        # A pin that keeps nobody waiting is nobody's concern, and each is told once.
        wire.ask(LOCK.format(1))
        eventually(lambda: pinned(w) == 1, "it is pinned again")
        assert w.log().count(says) == 1, w.log()
        wire.close()


REFUSED = {
    "session_lock": "select pg_advisory_lock(99)",
    "temporary_table": "create temp table refused (i int)",
    "listen": "listen refused",
    "sql_prepare": "prepare refused as select 1",
    "cursor": "declare refused cursor with hold for select 1",
}


def error_of(ask):
    try:
        got = ask()
    except ServerError as e:
        return e
    raise AssertionError(f"it was not refused: {got}")


@weir
def what_would_pin_is_refused_before_the_server_sees_it(_context):
    """By the simple protocol, alone and in a transaction, which is aborted; the connection stays usable."""
    with start(2, settings=[f"pins.{reason}=error" for reason in REFUSED]) as w, admin() as a:
        a.ask("create table if not exists written (i int)")
        a.ask("grant all on written to public")
        a.ask("truncate written")
        with Wire(w.target()) as wire:
            for reason, text in REFUSED.items():
                wire.send(query(text))
                told = next(fields(p) for kind, p in wire.until("Z") if kind == "E")
                assert (told["S"], told["C"]) == ("ERROR", "0A000"), told
                assert f"({reason})" in told["M"] and f"pins.{reason} = error" in told["H"], told
                assert wire.ask("select 'usable'") == [["usable"]]
                # Nothing of a text of several statements runs.
                assert error_of(lambda text=text: wire.ask(f"insert into written values (1); {text}")).code == "0A000"
                wire.ask("begin")
                wire.ask("insert into written values (2)")
                assert error_of(lambda text=text: wire.ask(text)).code == "0A000"
                assert error_of(lambda: wire.ask("select 1")).code == "25P02", "the transaction is aborted"
                wire.ask("commit")
                assert wire.ask("select count(*) from written") == [["0"]]
                wire.ask("begin")
                wire.ask("savepoint s")
                assert error_of(lambda text=text: wire.ask(text)).code == "0A000"
                wire.ask("rollback to s")
                wire.ask("insert into written values (3)")
                wire.ask("commit")
                assert wire.ask("select i from written") == [["3"]]
                a.ask("truncate written")
            # What ends with the transaction is not refused.
            wire.ask("begin")
            wire.ask("select pg_advisory_xact_lock(99)")
            wire.ask("commit")
            assert a.ask("select count(*) from pg_locks where locktype = 'advisory'") == [["0"]]
        counted = [k for k, v in w.metrics().items() if k.startswith("weir_pins_total") and v > 0]
        assert (pinned(w), counted) == (0, []), counted


@weir
def what_would_pin_is_refused_in_the_extended_protocol(_context):
    with start(2, settings=["pins.session_lock=error"]) as w, admin() as a:
        a.ask("create table if not exists written (i int)")
        a.ask("grant all on written to public")
        a.ask("truncate written")
        with Wire(w.target()) as wire:
            def batch(*messages):
                """Kinds of the answers, and the SQLSTATE of an error in them."""
                wire.send(b"".join(messages) + SYNC)
                got = wire.until("Z")
                return "".join(kind for kind, _ in got if kind in "12EnTDCZ"), [fields(p).get("C") for kind, p in got if kind == "E"]

            lock = "select pg_advisory_lock($1)"
            one = (b"5",)
            assert batch(parse(lock), bind(one), describe("P"), execute()) == ("EZ", ["0A000"])
            # Neither the unnamed statement nor one by that name is there.
            assert batch(bind(one), execute()) == ("EZ", ["26000"])
            assert batch(parse(lock, "s"), describe("S", "s")) == ("EZ", ["0A000"])
            assert batch(bind(one, "s"), execute()) == ("EZ", ["26000"])
            # What stands in front of it in its batch is rolled back.
            insert = parse("insert into written values (1)") + bind() + execute()
            assert batch(insert, parse(lock), bind(one), execute()) == ("12CEZ", ["0A000"])
            assert wire.ask("select count(*) from written") == [["0"]]
            # Sent at once with what follows.
            wire.send(parse(lock) + bind(one) + execute() + SYNC + parse("select 'next'") + bind() + execute() + SYNC + query(lock.replace("$1", "1"))
                      + query("select 'last'"))
            got = "".join(kind for kind, _ in wire.until("Z", 4) if kind in "12EDCZ")
            assert got == "EZ12DCZEZDCZ", got
            wire.ask("begin")
            assert batch(parse(lock), bind(one), execute()) == ("EZ", ["0A000"])
            assert error_of(lambda: wire.ask("select 1")).code == "25P02", "the transaction is aborted"
            wire.ask("rollback")
            assert wire.ask("select 'usable'") == [["usable"]]
        assert a.ask("select count(*) from pg_locks where locktype = 'advisory'") == [["0"]]
        assert pinned(w) == 0


@weir
def policies_change_with_a_reload(_context):
    with Reloading(text(2, 0)) as r:
        w = r.w
        with Wire(w.target()) as wire:
            wire.send(parse("select pg_try_advisory_lock(7)", "lock") + SYNC)
            wire.until("Z")
            wire.ask(LOCK.format(1))
            eventually(lambda: pinned(w) == 1, "it pins")
            r.reload(text(2, 0) + "[pins]\nsession_lock = 'error'\n")
            assert error_of(lambda: wire.ask(LOCK.format(2))).code == "0A000"
            # What it has it keeps; what was prepared before pins, as its text does not come again.
            wire.send(bind((), "lock") + execute() + SYNC)
            assert "D" in [kind for kind, _ in wire.until("Z")]
            wire.ask(UNLOCK.format(7))
            wire.ask(UNLOCK.format(1))
            eventually(lambda: pinned(w) == 0, "it has nothing")
            r.reload(text(2, 0) + "[pins]\nsession_lock = 'pin'\n")
            wire.ask(LOCK.format(2))
            eventually(lambda: pinned(w) == 1, "it pins again")


@weir
def a_user_has_other_policies_than_his_database(_context):
    own = text(2, 1, "[pins]\nsession_lock = 'error'\n", "pins = ['temporary_table = error', 'listen = error']", ("app_scram", "app_md5"))
    own = own.replace("[users.app_md5]\n", "[users.app_md5]\npinned_pool_size = 2\npins = ['temporary_table = pin', 'session_lock = pin']\n")
    with Reloading(own) as r:
        with Wire(r.w.target()) as one, Wire(r.w.target(user="app_md5")) as other:
            for statement in (LOCK.format(1), "create temp table t (i int)", "listen x"):
                assert error_of(lambda statement=statement: one.ask(statement)).code == "0A000", statement
            other.ask(LOCK.format(1))
            other.ask("create temp table t (i int)")
            assert error_of(lambda: other.ask("listen x")).code == "0A000", "the database's"
            eventually(lambda: pinned(r.w) == 1, "it is pinned")
            assert other.ask("select count(*) from t") == [["0"]]


@weir
def pins_that_are_to_be_told_are_in_the_log_once(_context):
    says = "client is pinned: it keeps its server beyond the transaction"
    with start(3, settings=["pins.default=warn", "workers=1"]) as w:
        for _ in range(3):
            with Wire(w.target(), {"application_name": "reports"}) as wire:
                wire.ask(LOCK.format(4711))
                eventually(lambda: pinned(w) == 1, "it is pinned")
            eventually(lambda: pinned(w) == 0, "it has gone")
        line = eventually(lambda: next((line for line in w.log().splitlines() if says in line), None), "a line in the log")
        for part in ("WARN", 'user="app_scram"', 'database="app"', 'application_name="reports"', 'reason="session_lock"',
                     'statement="select pg_advisory_lock(?)"'):
            assert part in line, f"{part} is missing: {line}"
        with Wire(w.target()) as wire:
            wire.ask("create temp table told (i int)")
            eventually(lambda: 'reason="temporary_table"' in w.log(), "another reason is told by itself")
        assert w.log().count(says) == 2, w.log()


@weir
def what_is_passed_pins_nobody_and_stays_on_the_server(_context):
    """As behind PgBouncer: the application is trusted. Everything else is answered as ever."""
    with start(1, settings=["pins.session_lock=pass", "pins.temporary_table=pass"]) as w, admin() as a:
        with Wire(w.target()) as one, Wire(w.target()) as other:
            one.ask(LOCK.format(5))
            one.ask("create temp table passed (i int)")
            assert other.ask("select count(*) from passed") == [["0"]], "it has the same server, and what is there"
            for wire in (one, other):
                wire.send(parse("select $1::int + 1", "s") + bind((b"1",), "s") + execute() + SYNC)
                assert "D" in [kind for kind, _ in wire.until("Z")]
            assert other.ask(UNLOCK.format(5)) == [["t"]]
            # What leaves something else pins as ever.
            one.ask("declare c cursor with hold for select 7")
            eventually(lambda: pinned(w) == 1, "the cursor pins")
            assert one.ask("fetch all from c") == [["7"]]
            one.ask("close c")
            eventually(lambda: pinned(w) == 0, "it is gone")
        assert a.ask("select count(*) from pg_locks where locktype = 'advisory'") == [["0"]]


@weir
def in_session_mode_nothing_is_refused(_context):
    with start(2, mode="session", settings=["pins.session_lock=error"]) as w, Wire(w.target()) as wire:
        assert wire.ask("select pg_try_advisory_lock(8)") == [["t"]]
