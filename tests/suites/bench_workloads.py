"""Every workload of weir bench on real servers: no errors in any protocol mode, and tpcc leaves a consistent database, also
when it goes through Weir."""

import json
import os
import subprocess
import tempfile

from weirtest.case import weir
from weirtest.private import PrivateServer
from weirtest.weir import Weir, binary, url

SERVERS = ["postgres", "mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[postgres").split("[")[1].rstrip("]")
MODES = ["simple", "extended", "prepared"]
OLTP = ["oltp_point_select", "select", "oltp_read_only", "oltp_read_write", "oltp_write_only", "oltp_update_index",
        "oltp_update_non_index", "oltp_insert", "select_random_points", "select_random_ranges", "storm", "idle --busy 3", "oltp_delete"]
SCRIPT = """
\\set from random(1, 100000)
\\set to random_zipfian(1, 100000, 1.1)
\\set amount random(1, 100) * :factor
BEGIN;
SELECT abalance FROM pgbench_accounts WHERE aid = :from \\gset
UPDATE pgbench_accounts SET abalance = abalance - :amount WHERE aid = :from;
UPDATE pgbench_accounts SET abalance = abalance + :amount WHERE aid = :to; -- :not_a_variable
SELECT :abalance;
COMMIT;
"""

server = None


def private():
    global server
    if server is None:
        server = PrivateServer(KIND)
    return server


def bench(command, *arguments, port=None, ok=(0,)):
    address = url(KIND, port=port or private().port, database="bench")
    argv = [binary(), "bench", command, *arguments, "--url", address]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False)
    assert done.returncode in ok, (argv, done.returncode, done.stdout.decode()[-3000:], done.stderr.decode()[-2000:])
    return done.stdout.decode() + done.stderr.decode()


def run(workload, *arguments, events=60, connections=6, port=None):
    with tempfile.NamedTemporaryFile("r", suffix=".json") as found:
        bench("run", *workload.split(), "--connections", str(connections), "--events", str(events), "--time", "120",
              "--report-interval", "0", "--json", found.name, *arguments, port=port)
        return json.load(found)


def clean(result, events):
    assert result["errors"] == 0 and result["events"] == events, result["errors_by_code"]
    assert result["queries"] == result["reads"] + result["writes"] + result["others"] == sum(s["count"] for s in result["statements"])


@weir
def oltp_in_every_mode(_context):
    tables = ["--tables", "2", "--table-size", "3000"]
    bench("prepare", "oltp_read_write", *tables)
    for workload in OLTP:
        of = tables if not workload.startswith("select_random") else ["--tables", "1", "--table-size", "3000"]
        for mode in MODES:
            clean(run(workload, *of, "--protocol-mode", mode, "--rand-type", "special" if mode == "simple" else "uniform"), 60)
    bench("cleanup", "oltp_read_write", *tables)


@weir
def pgbench_and_scripts_in_every_mode(_context):
    bench("prepare", "tpcb-like", "--scale", "1")
    for workload in ("tpcb-like", "simple-update", "select-only"):
        for mode in MODES:
            clean(run(workload, "--protocol-mode", mode), 60)
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(SCRIPT)
        script.flush()
        for mode in MODES:
            clean(run(f"script {script.name}", "-D", "factor=2", "--protocol-mode", mode), 60)
    bench("cleanup", "tpcb-like")


@weir
def tables_that_are_missing_or_there_already_are_told(_context):
    said = bench("run", "oltp_read_write", "--tables", "7", ok=(1,))
    assert "sbtest1" in said, said
    bench("prepare", "select", "--table-size", "10")
    assert "sbtest1" in bench("prepare", "select", "--table-size", "10", ok=(1,))
    said = bench("run", "select", "--table-size", "50", "--events", "20", "--report-interval", "0")
    assert "has no row" in said, said
    bench("cleanup", "select")


@weir
def tpcc_is_consistent_direct_and_through_weir(_context):
    # Foreign keys only where they are made quickly: MySQL copies each table for each of them.
    bench("prepare", "tpcc", "--scale", "1", "--use-fk", "off" if KIND == "mysql" else "on")
    front = Weir.before(KIND, port=private().port, pool_size=4)
    try:
        for mode, port in (("simple", None), ("prepared", None), ("simple", front.port), ("prepared", front.port)):
            result = run("tpcc", "--protocol-mode", mode, events=100, connections=8, port=port)
            clean(result, 100)
            checks = {check["name"]: check["text"] for check in result["checks"] if not check["passed"]}
            assert not checks and len(result["checks"]) == 11, (mode, port, checks)
            assert sum(of["count"] for of in result["transactions"]) == 100, result["transactions"]
    finally:
        front.stop()
    bench("cleanup", "tpcc")
