"""A reload (SIGHUP) changes what can change, without a client noticing; a reload of the database's own configuration reaches
clients as it does directly; limits that pools share hold for all threads; and what is logged about clients."""

import contextlib
import functools
import os
import shutil
import signal
import tempfile
import threading

from weirtest.case import Skip, eventually, weir
from weirtest.pgwire import SYNC, LoginRefused, ServerError, Wire, bind, execute, parse
from weirtest.private import PrivateServer
from weirtest.relay import Relay
from weirtest.weir import PASSWORD, Weir

SERVERS = ["postgres"]

ON_SERVER = "select count(*) from pg_stat_activity where backend_type = 'client backend' and usename like 'app%' "


@functools.cache
def server():
    return PrivateServer("postgres")


@contextlib.contextmanager
def admin():
    with Wire(server().superuser()) as wire:
        yield wire


def text(databases=("app",), users=("app_scram", "app_md5"), pool="", more="", database=""):
    """A weir.toml: every database is the server's `app`, and users log in there as themselves."""
    out = more
    for name in databases:
        out += f'[databases.{name}]\nurl = "postgres://127.0.0.1:{server().port}/app"\n{database}\n'
    for user in users:
        out += f'[users.{user}]\npassword = "{PASSWORD}"\n'
    return out + f"[pool]\n{pool}\n"


class Reloading:
    """A Weir whose file can be changed."""

    def __init__(self, content):
        self.w = Weir.configured("postgres", content)
        self.path = self.w.argv[self.w.argv.index("--config") + 1]
        self.reloads = 0

    def reload(self, content, says="the configuration was reloaded"):
        """Returns what was logged about it."""
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(content)
        before = len(self.w.log())
        self.w.signal(signal.SIGHUP)
        eventually(lambda: says in self.w.log()[before:], says)
        return self.w.log()[before:]

    def __enter__(self):
        self.w.__enter__()
        return self

    def __exit__(self, *what):
        return self.w.__exit__(*what)


def waiting(w):
    return w.metric("weir_waiting_clients", protocol="postgres")


@weir
def a_larger_pool_serves_those_who_wait(_context):
    with Reloading(text(pool="default_pool_size = 1")) as r, Wire(r.w.target()) as holder:
        holder.ask("begin")
        holder.ask("select 1")
        with Wire(r.w.target()) as other:
            thread = threading.Thread(target=lambda: seen.append(other.ask("select 'served'")))
            seen = []
            thread.start()
            eventually(lambda: waiting(r.w) == 1, "it waits")
            said = r.reload(text(pool="default_pool_size = 2"))
            assert "default_pool_size 1 -> 2" in said, said
            thread.join()
            assert seen == [[["served"]]]
        assert holder.ask("select 'still in it'") == [["still in it"]]
        holder.ask("commit")


@weir
def a_smaller_pool_shrinks_when_it_can(_context):
    with Reloading(text(pool="default_pool_size = 3")) as r, admin() as a:
        wires = [Wire(r.w.target()) for _ in range(3)]
        for wire in wires:
            wire.ask("begin")
            wire.ask("select 1")
        assert int(a.ask(ON_SERVER)[0][0]) == 3
        r.reload(text(pool="default_pool_size = 1"))
        for wire in wires:
            assert wire.ask("select 'mine'") == [["mine"]], "nobody is cut off"
            wire.ask("commit")
        eventually(lambda: int(a.ask(ON_SERVER)[0][0]) == 1, "the pool has shrunk")
        for wire in wires:
            assert wire.ask("select 1") == [["1"]]
            wire.close()


@weir
def clients_of_a_removed_user_are_served_as_before(_context):
    """Only new ones are refused."""
    with Reloading(text()) as r, Wire(r.w.target(user="app_md5", password=PASSWORD)) as stays:
        stays.ask("select 1")
        r.reload(text(users=("app_scram",), pool="query_wait_timeout = 5"))
        assert stays.ask("select 'served'") == [["served"]]
        # A server that is opened now logs in as before.
        with admin() as a:
            a.ask("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app_md5'")
        eventually(lambda: r.w.metric("weir_server_connections") == 0, "its server is gone")
        assert stays.ask("select 'again'") == [["again"]]
        try:
            Wire(r.w.target(user="app_md5", password=PASSWORD))
            raise AssertionError("a removed user is let in")
        except LoginRefused:
            pass


@weir
def timeouts_and_modes_change_for_clients_that_are_there(_context):
    with Reloading(text()) as r, Wire(r.w.target()) as idle, Wire(r.w.target()) as other:
        idle.ask("begin")
        idle.ask("select 1")
        r.reload(text(pool='idle_transaction_timeout = "200ms"'))
        try:
            eventually(lambda: r.w.metric("weir_faults", kind="idle_transaction_timeout") == 1, "its time is over")
            idle.ask("select 1")
            raise AssertionError("it was not ended")
        except (ServerError, ConnectionError, OSError) as e:
            assert getattr(e, "code", "25P03") == "25P03", e
        # Session mode from now on: a server stays with its client.
        r.reload(text(pool='default_pool_size = 1\npool_mode = "session"'))
        other.ask("set statement_timeout = 12345")
        with Wire(r.w.target()) as third:
            thread = threading.Thread(target=lambda: third.ask("select 1"))
            thread.start()
            eventually(lambda: waiting(r.w) == 1, "the only server is kept")
            other.close()
            thread.join()


@weir
def a_file_that_is_not_right_changes_nothing(_context):
    with Reloading(text(pool="default_pool_size = 1")) as r, Wire(r.w.target()) as wire:
        wire.ask("select 1")
        said = r.reload(text(pool='default_pool_size = "many"'), says="the old one stays in effect")
        line = text(pool='default_pool_size = "many"').split("\n").index('default_pool_size = "many"') + 1
        assert f"{r.path}:{line}" in said and "default_pool_size" in said, said
        said = r.reload(text(pool="defualt_pool_size = 3"), says="the old one stays in effect")
        assert "defualt_pool_size" in said and "default_pool_size" in said, said
        assert wire.ask("select 'as before'") == [["as before"]]
        with Wire(r.w.target()) as new:
            assert new.ask("select 1") == [["1"]]


@weir
def what_takes_a_restart_is_named_each_time(_context):
    with Reloading(text(more="workers = 2\n")) as r:
        for _ in range(2):
            said = r.reload(text(more="workers = 3\n"), says="this needs a restart")
            assert "workers 2 -> 3" in said, said
        r.reload(text(more="workers = 2\n"))
        with Wire(r.w.target()) as wire:
            assert wire.ask("select 1") == [["1"]]


@weir
def databases_and_users_come_and_go(_context):
    with Reloading(text()) as r, Wire(r.w.target()) as stays:
        stays.ask("select 1")
        said = r.reload(text(databases=["app", "second"], users=["app_scram", "app_md5", "app_trust"]))
        assert "added postgres database second" in said and "added postgres user app_trust" in said, said
        with Wire(r.w.target(database="second").login("app_trust")) as wire:
            assert wire.ask("select current_user") == [["app_trust"]]
        r.reload(text(databases=["second"], users=["app_scram"]))
        for target in (r.w.target(), r.w.target(database="second").login("app_trust")):
            try:
                Wire(target).close()
                raise AssertionError("a new client was let in")
            except (LoginRefused, ServerError):
                pass
        assert stays.ask("select 'served on'") == [["served on"]]


@weir
def another_server_takes_over(_context):
    """The address of a database changes: who is in a transaction ends it where it is, the next one is elsewhere."""
    with Reloading(text()) as r, Wire(r.w.target()) as wire, admin() as a:
        wire.ask("begin")
        before = wire.ask("select pg_backend_pid()")
        r.reload(text().replace("127.0.0.1", "localhost"))
        assert wire.ask("select pg_backend_pid()") == before
        wire.ask("commit")
        assert wire.ask("select pg_backend_pid()") != before
        eventually(lambda: int(a.ask(ON_SERVER)[0][0]) == 1, "the old one has gone")


@weir
def servers_follow_a_host_that_gets_another_address(_context):
    """Who is in a transaction ends it where it is; idle connections to the old address are closed."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        raise Skip("a file of hosts of its own takes root and unshare")
    with tempfile.NamedTemporaryFile("w", suffix=".hosts") as hosts, Relay("127.0.0.2", server().port, server().port) as old:
        def is_now(address):
            hosts.seek(0)
            hosts.truncate()
            hosts.write(f"{address} weir-moves.test\n")
            hosts.flush()

        is_now("127.0.0.2")
        inside = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', hosts.name]
        at = f"postgres://app_scram:{PASSWORD}@weir-moves.test:{server().port}"
        with Weir("postgres", [at, "--set", "pool.dns_max_ttl=1", "--set", "pool.default_pool_size=3"], wrap=inside) as w:
            stays, goes = Wire(w.target()), Wire(w.target())
            stays.ask("begin")
            before = stays.ask("select pg_backend_pid()")
            goes.ask("select 1")
            eventually(lambda: old.open == 2, "both servers are at the old address")
            is_now("127.0.0.1")
            eventually(lambda: old.open == 1, "the idle one has gone")
            assert goes.ask("select 'moved'") == [["moved"]] and old.open == 1
            assert stays.ask("select pg_backend_pid()") == before
            stays.ask("commit")
            assert stays.ask("select pg_backend_pid()") != before
            eventually(lambda: old.open == 0, "nobody is at the old address")
            stays.close()
            goes.close()


def hammer(w, users, databases, count, rounds):
    raised = []

    def work(i):
        try:
            target = w.target(database=databases[i % len(databases)]).login(users[i // len(databases) % len(users)])
            for _ in range(rounds):
                with Wire(target) as wire:
                    for _ in range(5):
                        assert wire.ask(f"select '{i}', current_user") == [[str(i), target.user]]
        except BaseException as e:  # whatever it is, the test must see it
            raised.append((i, repr(e)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    return threads, raised


def limit_holds(w, a, limit, users, databases):
    threads, raised = hammer(w, users, databases, 16, 4)
    most = 0
    while any(thread.is_alive() for thread in threads):
        count = int(a.ask(ON_SERVER)[0][0])
        # A process whose connection Weir has ended is still seen while it exits.
        for _ in range(300):
            if count <= limit:
                break
            count = int(a.ask(ON_SERVER)[0][0])
        most = max(most, count)
    for thread in threads:
        thread.join()
    assert not raised, raised[:3]
    assert 0 < most <= limit, f"{most} servers, and {limit} are allowed"


@weir
def max_db_connections_is_one_limit_for_all_users_and_threads(_context):
    users = ["app_scram", "app_md5", "app_trust"]
    content = text(users=users, pool="default_pool_size = 5\nmax_db_connections = 2", more="workers = 4\n")
    with Reloading(content) as r, admin() as a:
        limit_holds(r.w, a, 2, users, ["app"])


@weir
def max_user_connections_is_one_limit_for_all_databases_and_threads(_context):
    content = text(databases=["app", "second"], users=["app_scram"], pool="default_pool_size = 5", more="workers = 4\n")
    content = content.replace("[users.app_scram]\n", "[users.app_scram]\nmax_user_connections = 2\n")
    with Reloading(content) as r, admin() as a:
        limit_holds(r.w, a, 2, ["app_scram"], ["app", "second"])


@weir
def an_idle_server_gives_way_to_another_pool(_context):
    content = text(database="max_db_connections = 1", more="workers = 4\n")
    with Reloading(content) as r, Wire(r.w.target()) as one, Wire(r.w.target().login("app_md5")) as two:
        for _ in range(5):
            assert one.ask("select current_user") == [["app_scram"]]
            assert two.ask("select current_user") == [["app_md5"]]


@weir
def logins_and_departures_are_logged_on_request(_context):
    """Off unless asked for; as in PgBouncer they are on in a pgbouncer.ini (see log_connections in its reference)."""
    def visit(w):
        with Wire(w.target()) as wire:
            wire.ask("select 1")

    def refused(w):
        with contextlib.suppress(LoginRefused):
            Wire(w.target().login("nobody_here")).close()

    with Reloading(text()) as r:
        visit(r.w)
        refused(r.w)
        eventually(lambda: "login refused" in r.w.log(), "refusals are logged")
        assert "INFO login protocol" not in r.w.log() and "client has left" not in r.w.log(), r.w.log()
        said = r.reload(text() + '[log]\nlog_connections = true\nlog_disconnections = true\nlog_pooler_errors = false\n')
        visit(r.w)
        eventually(lambda: "client has left" in r.w.log()[-2000:], "departures are logged")
        refused(r.w)
        eventually(lambda: r.w.metric("weir_faults", kind="login_failed", protocol="postgres") == 2, "it was refused")
        said = r.w.log()[r.w.log().index(said):]
        assert "INFO login protocol" in said and 'user="app_scram"' in said and 'database="app"' in said, said
        assert "login refused" not in said, said


@weir
def what_unknown_code_means_changes_at_once_for_statements_prepared_before_too(_context):
    pool = "default_pool_size = 2\nunknown_code = \"{}\""
    call = "select runs('select 1')"
    with admin() as a:
        a.ask("create or replace function runs(t text) returns void language plpgsql as $$ begin execute t; end $$")
    with Reloading(text(pool=pool.format("reset"))) as r, Wire(r.w.target()) as one, Wire(r.w.target()) as other:
        one.send(parse(call, "s") + bind(statement="s") + execute() + SYNC)
        one.until("Z")
        other.ask(call)
        eventually(lambda: r.w.metric("weir_pinned_servers", protocol="postgres") == 0, "nobody is pinned")
        r.reload(text(pool=pool.format("pin")))
        one.send(bind(statement="s") + execute() + SYNC)
        one.until("Z")
        eventually(lambda: r.w.metric("weir_pinned_servers", protocol="postgres") == 1, "whoever executes what was prepared before")
        other.ask(call)
        eventually(lambda: r.w.metric("weir_pinned_servers", protocol="postgres") == 2, "whoever sends the text")


@contextlib.contextmanager
def configured(name, value):
    """The database's own setting, for as long as this lasts."""
    with admin() as a:
        a.ask(f"alter system set {name} = '{value}'")
        a.ask("select pg_reload_conf()")
        try:
            yield
        finally:
            a.ask(f"alter system reset {name}")
            a.ask("select pg_reload_conf()")


def refused(wire, sql, code):
    try:
        wire.ask(sql)
        return False
    except ServerError as e:
        assert e.code == code, e
        return True


@weir
def what_the_database_reloads_reaches_those_who_have_set_nothing(_context):
    """One client has set what the server had by itself; that server keeps it whatever is reloaded."""
    with admin() as a:
        a.ask("drop table if exists reloaded")
        a.ask("create table reloaded (i int)")
        a.ask("grant all on reloaded to public")
    writes = "insert into reloaded values (1)"
    with Reloading(text(pool="default_pool_size = 1")) as r, Wire(r.w.target()) as sets, Wire(r.w.target()) as other:
        assert not refused(other, writes, "25006")
        sets.ask("set default_transaction_read_only = off")
        with configured("default_transaction_read_only", "on"):
            eventually(lambda: refused(other, writes, "25006"), "it cannot write any more")
            with Wire(r.w.target()) as third:
                assert refused(third, writes, "25006")
        eventually(lambda: not refused(other, writes, "25006"), "it can write again")
