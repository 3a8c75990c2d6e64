"""weir doctor and weir advise on real databases: what they read is what the server says, what it refuses is explained, and what
happens on it is seen."""

import contextlib
import json
import os
import subprocess
import threading

from weirtest import mywire, pgwire
from weirtest.case import weir
from weirtest.target import PASSWORD, direct_target, server_env, superuser
from weirtest.weir import binary

SERVERS = ["postgres", "mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[postgres").split("[")[1].rstrip("]")
POSTGRES = KIND == "postgres"
WIRE = pgwire if POSTGRES else mywire
LIMITED = "doctor_limited"
LIMIT = 2


def doctor(*arguments, stdin=None):
    done = subprocess.run([binary(), "doctor", *arguments], input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def url(target):
    scheme = "postgres" if POSTGRES else "mysql"
    # The throw-away servers' certificates are signed by nobody.
    more = "" if POSTGRES else "?get-server-public-key=true"
    return f"{scheme}://{target.user}:{target.password}@{target.host}:{target.port}/{target.database}" + more


def examined(target, *arguments):
    code, out, err = doctor("--connections", "2000", "--json", "--url", url(target), *arguments)
    assert not err, err
    report = json.loads(out)
    assert PASSWORD not in out
    return code, {finding["id"]: finding for finding in report["findings"] if finding["database"]}


def admin(*statements):
    if POSTGRES:
        with WIRE.Wire(superuser()) as wire:
            return [wire.ask(sql) for sql in statements]
    # Who may make users comes in by the socket only.
    done = subprocess.run([server_env(KIND, "CLIENT"), "--no-defaults", f"--socket={server_env(KIND, 'SOCKET')}", "-uroot", "-e",
                           "; ".join(statements)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr
    return None


@contextlib.contextmanager
def limited_user():
    """A user that may connect LIMIT times."""
    if POSTGRES:
        admin(f"DROP ROLE IF EXISTS {LIMITED}", f"CREATE ROLE {LIMITED} LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT {LIMIT}")
    else:
        admin(f"DROP USER IF EXISTS {LIMITED}",
              f"CREATE USER {LIMITED} IDENTIFIED BY '{PASSWORD}' WITH MAX_USER_CONNECTIONS {LIMIT}",
              f"GRANT SELECT ON app.* TO {LIMITED}")
    try:
        yield direct_target(KIND).login(LIMITED)
    finally:
        admin(f"DROP {'ROLE' if POSTGRES else 'USER'} {LIMITED}")


@weir
def it_reads_what_the_server_says(_context):
    target = direct_target(KIND)
    code, found = examined(target)
    assert code == 0, found
    with WIRE.Wire(target) as wire:
        asked = "SHOW max_connections" if POSTGRES else "SELECT @@GLOBAL.max_connections"
        limit = int(wire.ask(asked)[0][0])
    finding = found["pg_max_connections" if POSTGRES else "my_max_connections"]
    assert f"max_connections {limit}" in finding["read"][0]["value"], finding
    # What other suites did to the server may be a warning.
    assert all(finding["state"] in ("ok", "warn") for finding in found.values()), found
    # One more than there are: a blocker, and exit code 3.
    code, found = examined(target, "--servers", str(limit + 1))
    finding = found["pg_max_connections" if POSTGRES else "my_max_connections"]
    assert (code, finding["state"]) == (3, "blocker"), finding


@weir
def a_users_limit_is_found_before_and_explained_after(_context):
    with limited_user() as target:
        code, found = examined(target, "--servers", str(LIMIT + 1))
        finding = found["pg_connection_limits"] if POSTGRES else found["my_user_limits"]
        # An ordinary user of MySQL may not read its own limits: then there is nothing to find before.
        if POSTGRES:
            assert (code, finding["state"], finding["breaks"][0]["connections"]) == (3, "blocker", LIMIT), finding
        with contextlib.ExitStack() as held:
            for _ in range(LIMIT):
                held.enter_context(WIRE.Wire(target))
            try:
                held.enter_context(WIRE.Wire(target))
                raise AssertionError("no limit")
            except (pgwire.ServerError, mywire.MyError) as refusal:
                words = str(refusal)
            code, out, _ = doctor("--json", "--explain", words)
            wanted = "pg_connection_limit" if POSTGRES else "my_user_connections"
            assert (code, json.loads(out)["id"]) == (0, wanted), (words, out)
            # The doctor cannot log in either, and says what that means.
            code, found = examined(target)
            finding = found["database_login"]
            assert (code, finding["state"]) == (3, "blocker"), found
            assert "limit" in finding["breaks"][0]["message"].lower(), finding


@weir
def a_timeout_of_the_role_is_seen(_context):
    with limited_user() as target:
        if POSTGRES:
            version = int(admin("SHOW server_version_num")[0][0][0])
            admin(f"ALTER ROLE {LIMITED} SET statement_timeout = '7s'")
            if version >= 140000:
                admin(f"ALTER ROLE {LIMITED} SET idle_session_timeout = '1min'")
        code, found = examined(target, "--servers", "1")
        if POSTGRES:
            assert found["pg_timeouts"]["summary"] == "statement_timeout 7 s", found
            assert "for the user" in str(found["pg_timeouts"]["read"]), found
            if version >= 140000:
                assert found["pg_idle_session_timeout"]["state"] == "warn", found
        else:
            assert found["my_wait_timeout"]["state"] == "ok", found
        assert code == 0, found


@weir
def a_wrong_password_is_said_and_not_shown(_context):
    code, out, _ = doctor("--json", "--url", url(direct_target(KIND).login(direct_target(KIND).user, "hunter2")))
    assert code == 3 and "hunter2" not in out, out
    finding = next(f for f in json.loads(out)["findings"] if f["id"] == "database_login")
    assert ("28P01" if POSTGRES else "1045") in finding["summary"], finding


class Load:
    """Connections that each run a statement in their turn, until the end of the block."""

    # PostgreSQL counts a transaction when its session has statistics of a table to tell.
    STATEMENT = "SELECT count(*) FROM pg_class WHERE oid = 1" if POSTGRES else "SELECT 1"

    def __init__(self, target, connections):
        self.wires = [WIRE.Wire(target) for _ in range(connections)]
        self.over = threading.Event()
        self.done = 0
        self.thread = threading.Thread(target=self.work)

    def work(self):
        while not self.over.is_set():
            for wire in self.wires:
                wire.ask(self.STATEMENT)
                self.done += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        for wire in self.wires:
            wire.close()


def advised(target, *arguments):
    done = subprocess.run([binary(), "advise", "--url", url(target), "--interval", "200ms", "--json", *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert PASSWORD.encode() not in done.stdout
    return json.loads(done.stdout)


def of_this(advice, user):
    """The pools of one user: other suites may be at work on the same server."""
    return [pool for pool in advice["pools"] if pool["user"] == user]


@weir
def advise_sees_idle_connections_and_their_throughput(_context):
    target = direct_target(KIND)
    watcher = superuser() if POSTGRES else target
    with Load(target, 60) as working:
        before = working.done
        advice = advised(watcher, "--for", "4s", "--cores", "4")
        done = working.done - before
    seen = advice["seen"]
    assert (advice["version"], seen["cores"]["count"], seen["blind"]) == (1, 4, None), advice
    assert seen["connections"]["mean"] >= 60 and seen["slots"] > 300, seen
    pools = of_this(advice, target.user)
    assert sum(pool["connections"] for pool in pools) >= 59, advice["pools"]
    # Statistics come up to a second late, the process took its time to start, and other suites may add some.
    rate = seen["transactions_per_s"] if POSTGRES else seen["statements_per_s"]
    assert rate * seen["seconds"] > done / 3, (done, seen)
    assert advice["pooler"]["helps"] == "yes", advice["pooler"]
    assert advice["mode"]["name"] == "transaction" and 1 <= advice["pool_size"]["servers"] <= 60, advice


@weir
def advise_sees_transactions_that_are_left_open(_context):
    target = direct_target(KIND)
    watcher = superuser() if POSTGRES else target
    with contextlib.ExitStack() as held:
        for _ in range(6):
            wire = held.enter_context(WIRE.Wire(target))
            # InnoDB begins a transaction with the first table that is read, or so.
            wire.ask("BEGIN" if POSTGRES else "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        if POSTGRES:
            for _ in range(3):
                held.enter_context(WIRE.Wire(target)).ask("LISTEN doctor")
        advice = advised(watcher, "--for", "2s")
        seen = advice["seen"]
        # InnoDB repeats its list for 100 ms: the first look may be as old as the last one of another test.
        assert seen["idle_in_transaction"]["p95"] >= 6 and seen["idle_in_transaction"]["mean"] > 5, seen
        assert seen["longest_transaction_s"] > 0, seen
        if POSTGRES:
            assert seen["keeps"]["listen"] >= 3, seen
        assert advice["pool_size"]["servers"] >= 6, advice
    with limited_user() as limited:
        # A user that may not look at others is told so.
        blind = advised(limited, "--for", "200ms")["seen"]["blind"]
        assert ("pg_read_all_stats" if POSTGRES else "GRANT PROCESS") in blind, blind


@weir
def advise_sees_a_connection_for_each_request(_context):
    target = direct_target(KIND)
    argv = [binary(), "bench", "run", "connect", "--url", url(target), "--connections", "2", "--every", "0.05", "--time", "100",
            "--report-interval", "0"]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            watcher = superuser() if POSTGRES else target
            seen = advised(watcher, "--for", "4s")["seen"]
            assert process.poll() is None
        finally:
            process.kill()
    # 40 a second; PostgreSQL counts sessions since 14.
    if not POSTGRES or seen["connects_per_s"] is not None:
        assert seen["connects_per_s"] > 10, seen


@weir
def advise_cannot_watch_what_is_not_there(_context):
    done = subprocess.run([binary(), "advise", "--url", url(direct_target(KIND).login(direct_target(KIND).user, "hunter2")), "--for", "1s"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 1 and b"hunter2" not in done.stderr, done.stderr
    assert (b"28P01" if POSTGRES else b"1045") in done.stderr, done.stderr
