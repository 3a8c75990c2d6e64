"""TLS of weir bench, weir doctor and weir advise with real servers: every mode in both families' words, right and wrong
certificates, and that the server itself says what the connections went through."""

import functools
import json
import os
import subprocess
import tempfile

import pymysql

from weirtest.browser import Browser, checked
from weirtest.case import weir
from weirtest.certs import certificates
from weirtest.pgwire import Wire
from weirtest.private import PrivateServer
from weirtest.target import PASSWORD
from weirtest.weir import binary

SERVERS = ["postgres", "mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[postgres").split("[")[1].rstrip("]")
POSTGRES = KIND == "postgres"
REQUIRED = "sslmode=require" if POSTGRES else "ssl-mode=REQUIRED"
CA = "sslrootcert" if POSTGRES else "ssl-ca"
# Whether this session came by TLS.
ASKED = "SELECT CASE WHEN ssl THEN 1 ELSE 0 END AS tls FROM pg_stat_ssl WHERE pid = pg_backend_pid();" if POSTGRES else \
    "SHOW SESSION STATUS LIKE 'Ssl_version';"


@functools.cache
def server():
    own, _ = certificates()
    found = PrivateServer(KIND, tls=own.folder)
    if POSTGRES:
        with Wire(found.superuser()) as admin:
            data = admin.ask("show data_directory")[0][0]
            admin.ask("create role app_inside login; create role app_clear login; create role app_cert login")
        with open(os.path.join(data, "pg_hba.conf"), "r+", encoding="utf-8") as f:
            before = f.read()
            f.seek(0)
            f.write("hostssl all app_inside 127.0.0.1/32 trust\nhostnossl all app_inside 127.0.0.1/32 reject\n"
                    "hostnossl all app_clear 127.0.0.1/32 trust\nhostssl all app_clear 127.0.0.1/32 reject\n"
                    "hostssl all app_cert 127.0.0.1/32 cert\n" + before)
        with Wire(found.superuser()) as admin:
            admin.ask("select pg_reload_conf()")
    else:
        with pymysql.connect(unix_socket=found.env["SOCKET"], user="root") as admin, admin.cursor() as cursor:
            cursor.execute("create user app_inside require ssl")
            cursor.execute("grant all on app.* to app_inside")
    return found


def url(query, host="127.0.0.1", user=None):
    login = user or f"app:{PASSWORD}"
    if POSTGRES and user is None:
        login = f"app_scram:{PASSWORD}"
    return f"{'postgres' if POSTGRES else 'mysql'}://{login}@{host}:{server().port}/app?{query}"


def bench(address, workload="select_one", *more, ok=0):
    with tempfile.NamedTemporaryFile("r", suffix=".json") as found:
        argv = [binary(), "bench", "run", *workload.split(), "--url", address, "--connections", "4", "--events", "40", "--time", "60",
                "--report-interval", "0", "--json", found.name, *more]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
        said = done.stdout.decode()
        assert done.returncode == ok and PASSWORD not in said, (argv, done.returncode, said[-3000:])
        return json.load(found) if ok == 0 else said


def inside(result):
    """How many handshakes there were; the phases are told apart."""
    assert result["errors"] == 0 and result["events"] == 40, result["errors_by_code"]
    assert (result["transport"]["version"] != "") == (result["tls"]["count"] > 0), result["transport"]
    connects, handshakes, logins = (result[phase]["count"] for phase in ("connect", "tls", "login"))
    # At the end of a run some are under way.
    assert connects - 4 <= logins <= connects and (handshakes == 0 or logins <= handshakes <= connects), result
    return handshakes


@weir
def every_mode_in_both_families_words(_context):
    ca = certificates()[0].path("ca.pem")
    for mode, other, secured in (("disable", "DISABLED", 0), ("prefer", "PREFERRED", 4), ("require", "REQUIRED", 4),
                                 ("verify-ca", "VERIFY_CA", 4), ("verify-full", "VERIFY_IDENTITY", 4)):
        for query in (f"sslmode={mode}&sslrootcert={ca}", f"ssl-mode={other}&ssl-ca={ca}"):
            assert inside(bench(url(query, host="localhost"))) == secured, query
    assert inside(bench(url("sslmode=allow"))) == 0
    # Nobody asked for TLS: a load generator does not choose it by itself.
    assert inside(bench(url(""))) == 0


@weir
def every_workload_and_mode_of_the_protocol(_context):
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(ASKED)
        script.flush()
        for mode in ("simple", "extended", "prepared"):
            assert inside(bench(url(REQUIRED), f"script {script.name}", "--protocol-mode", mode)) == 4
    for workload, least in (("connect", 40), ("select_one", 4)):
        assert inside(bench(url(REQUIRED), workload)) >= least, workload
    result = bench(url(REQUIRED), "connect", "--tls-resume")
    # PostgreSQL gives no tickets.
    resumed = result["transport"]["resumed"]
    assert inside(result) >= 40 and (resumed == 0 if POSTGRES else 0 < resumed <= result["tls"]["count"]), result["transport"]
    assert bench(url(REQUIRED), "connect")["transport"]["resumed"] == 0


@weir
def the_server_says_that_it_is_inside(_context):
    if not POSTGRES:
        # Whoever must come by TLS is refused without.
        assert inside(bench(url(REQUIRED, user="app_inside"))) == 4
        assert "1045" in bench(url("ssl-mode=DISABLED", user="app_inside"), ok=1)
        return
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(ASKED.rstrip(";") + " \\gset is_\nSELECT 1 / :is_tls;")
        script.flush()
        inside(bench(url(REQUIRED), f"script {script.name}"))
        assert "22012" in bench(url("sslmode=disable"), f"script {script.name}", ok=4)


@weir
def tables_are_prepared_through_tls(_context):
    for command in ("prepare", "cleanup"):
        argv = [binary(), "bench", command, "oltp_read_write", "--tables", "1", "--table-size", "2000", "--url", url(REQUIRED)]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
        assert done.returncode == 0, done.stdout
        if command == "prepare":
            assert inside(bench(url(REQUIRED), "oltp_point_select", "--tables", "1", "--table-size", "2000")) == 4
            assert inside(bench(url(REQUIRED), "storm", "--tables", "1", "--table-size", "2000")) >= 4


@weir
def wrong_certificates_are_refused_in_words(_context):
    own, foreign = certificates()
    said = bench(url(f"sslmode=verify-ca&{CA}={foreign.path('ca.pem')}"), ok=1)
    assert "not signed by a CA that is trusted" in said, said
    said = bench(url(f"sslmode=verify-ca&{CA}=/no/such/ca.pem"), ok=2)
    assert "/no/such/ca.pem" in said, said


@weir(only="postgres")
def transports_that_a_server_refuses(_context):
    assert inside(bench(url("sslmode=allow", user="app_inside"))) == 4
    assert inside(bench(url("sslmode=prefer", user="app_clear"))) == 0
    assert "28000" in bench(url("sslmode=disable", user="app_inside"), ok=1)
    assert "28000" in bench(url("sslmode=require", user="app_clear"), ok=1)
    own = certificates()[0]
    own_certificate = f"{REQUIRED}&sslcert={own.path('client.pem')}&sslkey={own.path('client.key')}"
    assert inside(bench(url(own_certificate, user="app_cert"))) == 4
    version = int(Wire(server().superuser()).ask("show server_version_num")[0][0])
    if version >= 170000:
        assert inside(bench(url(f"{REQUIRED}&sslnegotiation=direct"), "connect")) >= 40


@weir
def doctor_and_advise_speak_it_too(_context):
    own, foreign = certificates()
    for query, good in (("", True), (REQUIRED, True), (f"sslmode=verify-ca&{CA}={own.path('ca.pem')}", True),
                        (f"sslmode=verify-ca&{CA}={foreign.path('ca.pem')}", False)):
        done = subprocess.run([binary(), "doctor", "--connections", "10", "--json", "--url", url(query)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
        found = {finding["id"]: finding for finding in json.loads(done.stdout)["findings"] if finding["database"]}
        assert ("database_login" not in found) == good, (query, found)
        assert good or "not signed by a CA" in found["database_login"]["summary"], found
        done = subprocess.run([binary(), "advise", "--url", url(query), "--for", "1s", "--interval", "200ms", "--json"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
        assert (done.returncode == 0) == good, (query, done.stderr)
    if POSTGRES:
        for user in ("app_inside", "app_clear"):
            done = subprocess.run([binary(), "doctor", "--json", "--url", url("", user=user)], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
            assert "database_login" not in done.stdout.decode(), (user, done.stdout)


@weir
def lab_tls_connect_measures_each_way(_context):
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run([binary(), "lab", "tls-connect", "--url", url(""), "--time", "1", "--out", out], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=110, check=False)
        assert done.returncode == 0, (done.stdout.decode()[-2000:], done.stderr.decode()[-2000:])
        with open(os.path.join(out, "tls-connect.json"), encoding="utf-8") as f:
            (found,) = json.load(f)["figures"]
        cells = {cell["way"].split(":")[0]: cell for cell in found["cells"]}
        assert len(cells) == (3 if POSTGRES else 4), cells.keys()
        assert all(cell["errors"] == 0 and cell["per_second"] > 0 for cell in cells.values()), cells
        assert cells["direct, TLS"]["tls_ms"] > 0 and cells["direct, no TLS"]["tls_ms"] == 0, cells
        assert cells["Weir on this host"]["transport"]["version"] == "" and cells["Weir on this host"]["front"] == "Weir", cells
        with Browser() as browser:
            assert len(checked(browser, os.path.join(out, "tls-connect.html"))) == 1
    tables = [binary(), "bench", "run", "oltp_point_select", "--url", url(""), "--events", "1"]
    assert subprocess.run(tables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False).returncode == 1
