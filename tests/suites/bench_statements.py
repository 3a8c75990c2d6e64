"""weir bench sends what sysbench and pgbench send: the same statements in the same proportions, as the server counts them, on
tables that either program may have made."""

import collections
import os
import re
import subprocess

from weirtest.case import Skip, weir
from weirtest.private import PrivateServer
from weirtest.target import PASSWORD, server_env
from weirtest.weir import binary, url

SERVERS = ["postgres", "mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[postgres").split("[")[1].rstrip("]")
EVENTS = 60
TABLES = ["--tables=3", "--table-size=2000"]
WORKLOADS = ["oltp_read_write", "oltp_read_only", "oltp_write_only", "oltp_point_select", "oltp_update_index", "oltp_update_non_index",
             "oltp_insert", "oltp_delete", "select_random_points", "select_random_ranges"]
# Options that change what a transaction is made of.
VARIANTS = [("oltp_read_write", ["--skip-trx=on"]), ("oltp_read_write", ["--point-selects=3", "--sum-ranges=2", "--delete-inserts=2"]),
            ("oltp_read_only", ["--range-selects=off"])]
COUNTERS = ["Com_select", "Com_insert", "Com_update", "Com_delete", "Com_begin", "Com_commit", "Com_rollback", "Com_stmt_execute"]

server = None


def private():
    global server
    if server is None:
        server = PrivateServer(KIND)
    return server


def run(argv, **kw):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100, check=False, **kw)
    assert done.returncode == 0, (argv, done.returncode, done.stdout.decode()[-2000:], done.stderr.decode()[-2000:])
    return done.stdout.decode()


def sysbench(command, workload, mode, *options):
    if not os.path.exists("/usr/bin/sysbench"):
        raise Skip("sysbench is not installed")
    target = private().direct().within("bench")
    driver = "pgsql" if KIND == "postgres" else "mysql"
    where = {"host": target.host, "port": target.port, "user": target.user, "password": target.password, "db": target.database}
    # One thread: neither deadlocks nor the last events of many threads blur what is counted.
    argv = ["sysbench", "--threads=1", f"--events={EVENTS}", "--time=60", "--rand-type=uniform", f"--db-driver={driver}",
            f"--db-ps-mode={mode}", *[f"--{driver}-{name}={value}" for name, value in where.items()], *options, workload, command]
    out = run(argv)
    if command == "run":
        assert int(re.search(r"total number of events:\s+(\d+)", out)[1]) == EVENTS, out


def bench(command, workload, *options):
    address = url(KIND, port=private().port, database="bench")
    return run([binary(), "bench", command, workload, "--url", address, *options])


def bench_run(workload, mode, *options):
    bench("run", workload, "--connections=1", f"--events={EVENTS}", "--time=60", "--report-interval=0", f"--protocol-mode={mode}", *options)


def sql(text, database="bench"):
    if KIND == "postgres":
        done = ["psql", "-h", "127.0.0.1", "-p", str(private().port), "-U", "postgres", "-At", "-c", text, database]
        return run(done)
    argv = [server_env(KIND, "CLIENT"), "--no-defaults", "--protocol=TCP", "-h", "127.0.0.1", "-P", str(private().port), "-u", "app_other",
            "-N", "-B", *(["--ssl-mode=DISABLED", "--get-server-public-key"] if KIND == "mysql" else ["--skip-ssl"]), "-e", text, database]
    return run(argv, env={**os.environ, "MYSQL_PWD": PASSWORD})


def counters():
    rows = sql("show global status like 'Com\\_%'").splitlines()
    found = dict(row.split("\t") for row in rows)
    return {name: int(found[name]) for name in COUNTERS}


def shape(text):
    """A statement without its numbers and texts, tables taken together."""
    text = re.sub(r"\$\d+|'(?:[^'\\]|\\.|'')*'|\?", "?", re.sub(r"\s+", " ", text).strip().rstrip(";"))
    text = re.sub(r"sbtest\d+", "sbtestN", text)
    return re.sub(r"(?<![\w.])-?\d+(?:\.\d+)?", "?", text).replace("( ", "(").replace(" )", ")")


def logged_postgres(act):
    log = private().env["LOG"]
    sql("alter system set log_statement = 'all'; ", "postgres")
    sql("select pg_reload_conf()", "postgres")
    marker = f"begin of {act.__name__} {os.urandom(8).hex()}"
    sql(f"select '{marker}'")
    act()
    sql(f"select 'end of {marker}'")
    with open(log, encoding="utf-8", errors="replace") as f:
        text = f.read()
    text = text[text.rindex(f"'{marker}'"):text.rindex(f"'end of {marker}'")]
    found = re.findall(r"LOG:  (?:statement|execute [^:]*): ((?:.*)(?:\n\t.*)*)", text)
    return collections.Counter(shape(one) for one in found)


def logged_mysql(act):
    sql("set global log_output = 'TABLE'; set global general_log = 0; truncate mysql.general_log; set global general_log = 1")
    before = counters()
    act()
    after = counters()
    sql("set global general_log = 0")
    rows = sql("select argument from mysql.general_log where command_type in ('Query', 'Execute') and user_host not like 'app_other%' order by event_time")
    found = collections.Counter(shape(one.replace("\\n", " ").replace("\\t", " ")) for one in rows.splitlines())
    return found, {name: after[name] - before[name] for name in COUNTERS}


def sent(act):
    """What the server saw, by shape; for MySQL its own counters too."""
    if KIND == "postgres":
        return logged_postgres(act), {}
    return logged_mysql(act)


def of_workload(statements):
    """Without what a program does around its workload: looks at the server, settings."""
    around = re.compile(r"select (end of|\?$)|select version\(\)|set |show |select @@", re.IGNORECASE)
    probe = re.compile(r"SELECT c FROM sbtestN WHERE id=\?$")
    return {text: count for text, count in statements.items() if text and not around.match(text)}, probe


def compare(workload, options, ways):
    for ps_mode, mode in ways:
        theirs, their_counters = sent(lambda: sysbench("run", workload, ps_mode, *TABLES_OF(workload), *options))
        ours, our_counters = sent(lambda: bench_run(workload, mode, *TABLES_OF(workload), *options))
        theirs, _ = of_workload(theirs)
        ours, _ = of_workload(ours)
        # Before a run weir bench looks at eight rows of each table.
        looks = 8 * (1 if workload.startswith("select_random") else 3)
        point = "SELECT c FROM sbtestN WHERE id=?"
        assert ours.get(point, 0) >= looks, (workload, mode, ours)
        ours[point] -= looks
        ours = {text: count for text, count in ours.items() if count}
        assert theirs == ours, f"{workload} {options} {mode}\nsysbench:   {theirs}\nweir bench: {ours}"
        if their_counters:
            # Beside the looks, the question for the version.
            our_counters["Com_select"] -= looks + 1
            assert their_counters == our_counters, f"{workload} {options} {mode}\nsysbench:   {their_counters}\nweir bench: {our_counters}"


def TABLES_OF(workload):
    return ["--tables=1", "--table-size=2000"] if workload.startswith("select_random") else TABLES


WAYS = [("disable", "simple"), ("auto", "prepared")]


@weir
def on_tables_of_sysbench(_context):
    sysbench("prepare", "oltp_read_write", "disable", *TABLES)
    for workload in WORKLOADS:
        compare(workload, [], WAYS if workload in ("oltp_read_write", "select_random_ranges") else WAYS[:1])
    sysbench("cleanup", "oltp_read_write", "disable", *TABLES)


@weir
def on_tables_of_weir_bench(_context):
    bench("prepare", "oltp_read_write", *TABLES)
    for table in (1, 2, 3):
        found = sql(f"select count(*), min(id), max(id), min(length(trim(c))), max(length(trim(c))), min(length(trim(pad))), min(k) >= 1, max(k) <= 2000 from sbtest{table}")
        assert re.split(r"[|\t]", found.strip()) in (["2000", "1", "2000", "119", "119", "59", *ends] for ends in (["t", "t"], ["1", "1"])), found
    for workload, options in [("oltp_read_write", []), ("oltp_insert", []), *VARIANTS]:
        compare(workload, options, WAYS[:1])
    # Neither program's updates are wrong replies to the other.
    bench_run("oltp_point_select", "prepared", *TABLES, "--rand-type=special")
    bench("cleanup", "oltp_read_write", *TABLES)
    assert "sbtest" not in sql("select table_name from information_schema.tables where table_name like 'sbtest%'")


@weir
def transactions_of_pgbench(_context):
    if KIND != "postgres":
        raise Skip("pgbench speaks PostgreSQL only")
    target = private().direct().within("bench")
    login = ["-h", target.host, "-p", str(target.port), "-U", target.user]
    env = {**os.environ, "PGPASSWORD": target.password}

    def pgbench(*argv):
        run(["pgbench", *login, *argv, target.database], env=env)

    for owner in ("pgbench", "weir bench"):
        if owner == "pgbench":
            pgbench("-i", "-q", "-s", "2")
        else:
            bench("cleanup", "tpcb-like")
            bench("prepare", "tpcb-like", "--scale=2")
        for workload in ("tpcb-like", "simple-update", "select-only"):
            for mode in ("simple", "prepared"):
                theirs, _ = sent(lambda w=workload, m=mode: pgbench("-n", "-b", w, "-t", str(EVENTS), "-M", m))
                ours, _ = sent(lambda w=workload, m=mode: bench_run(w, m))
                look = re.compile(r"(?i)select (count|o\.n|version|\?$|end of)|select .*pg_partition|set ")
                theirs = {text: n for text, n in theirs.items() if not look.match(text)}
                ours = {text: n for text, n in ours.items() if not look.match(text)}
                assert theirs == ours, f"{owner} {workload} {mode}\npgbench:    {theirs}\nweir bench: {ours}"
    balances = sql("select (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from pgbench_tellers), "
                   "(select sum(delta) from pgbench_history)").strip().split("|")
    assert balances[0] != "" and balances[0] != "0", balances


@weir
def each_client_sends_first_what_it_is_told_to(_context):
    """With its number, in order, behind the login, once for each connection."""
    bench("prepare", "oltp_point_select", "--tables=1", "--table-size=100")
    sql("create table seen (client int, n int)")
    if KIND == "postgres":
        sql("grant all on seen to public")
    try:
        bench("run", "oltp_point_select", "--connections=5", "--events=50", "--time=60", "--report-interval=0", "--table-size=100",
              "--on-connect=insert into seen values (:client_id, 1)", "--on-connect=insert into seen values (:client_id, 2)")
        rows = sorted(tuple(map(int, re.split(r"[|\t]", row))) for row in sql("select client, n from seen").splitlines())
        assert rows == [(client, n) for client in range(5) for n in (1, 2)], rows
    finally:
        sql("drop table seen")
