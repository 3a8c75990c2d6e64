"""weir doctor on real databases: what it reads is what the server says, and what the server refuses is what it explains."""

import contextlib
import json
import os
import subprocess

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
    return f"{scheme}://{target.user}:{target.password}@{target.host}:{target.port}/{target.database}"


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
