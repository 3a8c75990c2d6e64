"""PostgreSQL's own programs: psql, pgbench, pg_dump, and sysbench's pgsql driver."""

import hashlib
import os
import re
import subprocess
import tempfile

from weirtest.case import Skip, both, weir
from weirtest.target import server_env, superuser

SERVERS = ["postgres"]
WEIR_USERS = {"postgres": ["app_trust", "app_md5", "app_plain"]}
MODES = ("simple", "extended", "prepared")


def env(target, **more):
    return {**os.environ, "PGHOST": target.host, "PGPORT": str(target.port), "PGUSER": target.user, "PGPASSWORD": target.password,
            "PGDATABASE": target.database, "PGSSLMODE": "disable", "PGGSSENCMODE": "disable", "LC_ALL": "C.UTF-8", **more}


def run(target, argv, stdin=None, ok=(0,), **more):
    program = os.path.join(server_env("postgres", "BIN"), argv[0])
    if os.access(program, os.X_OK):
        argv = [program, *argv[1:]]
    done = subprocess.run(argv, input=stdin, stdin=subprocess.DEVNULL if stdin is None else None, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=env(target, **more), timeout=110, check=False)
    if done.returncode not in ok:
        raise AssertionError(f"{' '.join(argv)} ended with {done.returncode}: {done.stdout[-1000:]!r} {done.stderr[-3000:].decode(errors='replace')}")
    return done


def psql(target, *argv, stdin=None, ok=(0,), **more):
    done = run(target, ["psql", "-X", *argv], stdin, ok, **more)
    return [done.returncode, done.stdout.decode(), done.stderr.decode()]


@both
def psql_commands(target):
    seen = [psql(target, "-c", "select 1 as one", "-c", "select 2; select 3", "-c", "\\echo done")]
    seen.append(psql(target, "-At", "-c", "begin; create temp table t (i int); insert into t values (1); select * from t; commit"))
    seen.append(psql(target, "-c", "select * from no_such_table", ok=(1,)))
    seen.append(psql(target, "-v", "ON_ERROR_STOP=1", "-f", "-", stdin=b"select 1;\nselect 1/0;\nselect 2;\n", ok=(3,)))
    seen.append(psql(target, "-1", "-f", "-", stdin=b"create temp table u (i int);\nselect 1/0;\nselect 2;\n", ok=(0, 3)))
    return seen


@both
def psql_script(target):
    script = b"""
\\set VERBOSITY verbose
\\timing off
\\encoding
\\conninfo
select 'x' as a, null as b \\gset
\\echo :a
\\pset format unaligned
select i, i * i as square from generate_series(1, 5) i;
\\x
select 1 as "wide column";
\\x
create temp table mine (i int, t text);
\\d mine
\\copy mine from stdin
1	one
2	two
\\.
table mine;
\\copy (select * from mine order by i desc) to stdout with csv header
begin;
savepoint s;
select 1/0;
rollback to s;
select 'goes on';
commit;
do $$ begin raise notice 'a notice'; end $$;
prepare p(int) as select $1 * 10 as ten;
execute p(4);
declare c cursor with hold for select i from generate_series(1, 10) i;
fetch 3 from c;
select format('select %s as made', i) from generate_series(1, 2) i \\gexec
\\sf pg_catalog.nothing_of_the_kind
\\errverbose
"""
    code, out, err = psql(target, "-f", "-", stdin=script)
    # \\conninfo is one line until PostgreSQL 17; then a table, with the process and what differs with the way.
    out = re.sub(r"You are connected.*", "connected", out)
    out = re.sub(r"(?s) +Connection Information\n.*?\n\(\d+ rows\)\n", "connected\n", out)
    return [code, re.sub(r"pg_temp_\d+", "pg_temp_N", out), err]


@both
def psql_describe(target):
    return [psql(target, "-c", c) for c in ("\\l app*", "\\dn", "\\du app_trust", "\\dt pg_catalog.pg_cl*", "\\df pg_catalog.pg_sleep*")]


@both
def psql_timing(target):
    code, out, err = psql(target, "-c", "\\timing on", "-c", "select 1")
    return [code, re.sub(r"Time: [\d.]+ ms", "Time: t", out), err]


@both
def psql_big_output(target):
    done = run(target, ["psql", "-X", "-At", "-c", "select repeat('o', 1000), i from generate_series(1, 30000) i"])
    return [len(done.stdout), hashlib.sha256(done.stdout).hexdigest()]


@both
def psql_fetch_count(target):
    done = run(target, ["psql", "-X", "-At", "-v", "FETCH_COUNT=100", "-c", "select i, repeat('f', 50) from generate_series(1, 5000) i"])
    return [len(done.stdout), hashlib.sha256(done.stdout).hexdigest()]


@both
def psql_copy_files(target):
    with tempfile.TemporaryDirectory() as directory:
        source, copy = os.path.join(directory, "in"), os.path.join(directory, "out")
        with open(source, "w", encoding="utf-8") as f:
            f.writelines(f"{i}\t{'c' * (i % 100)}\n" for i in range(100_000))
        seen = psql(target, "-c", "create temp table f (i int, t text)", "-c", f"\\copy f from '{source}'",
                    "-c", f"\\copy (select * from f order by i) to '{copy}'", "-c", f"\\copy f from '{source}' (format binary)", ok=(0, 1))
        with open(source, "rb") as a, open(copy, "rb") as b:
            assert a.read() == b.read(), "what came back is not what went in"
        return [seen[0], seen[1], seen[2].replace(directory, "DIR")]


@both
def psql_broken_pipe(target):
    """A reader that stops early; the next session is not disturbed."""
    done = subprocess.run(["/bin/sh", "-c", "psql -X -At -c 'select repeat(chr(120), 1000) from generate_series(1, 100000)' | head -n 2 | wc -c"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env(target), timeout=60, check=True)
    return [done.stdout.decode().strip(), psql(target, "-At", "-c", "select 'next'")]


@both
def all_logins(target):
    """Every way to ask for a password the server has. Weir asks in its own way, the users are the same."""
    seen = []
    for user in ("app_trust", "app_md5", "app_scram", "app_plain"):
        seen.append(psql(target.login(user), "-At", "-c", "select current_user, session_user"))
    return seen


def make_bench_tables(target):
    """Once for the whole suite."""
    if not make_bench_tables.done:
        run(target, ["pgbench", "-i", "-q", "-s", "1", "bench"])
        make_bench_tables.done = True


make_bench_tables.done = False


@both
def pgbench_initialise(target):
    done = run(target, ["pgbench", "-i", "-q", "-s", "1", "bench"])
    make_bench_tables.done = True
    text = re.sub(r"[\d.]+ s\b|\([^)]*\)|\d+ of|\d+%|elapsed.*", "#", done.stderr.decode())
    return [done.returncode, "vacuuming..." in text, "creating primary keys..." in text]


def pgbench(target, mode, clients, script=("-S",), transactions=20, jobs=2):
    argv = ["pgbench", "-n", "-M", mode, "-c", str(clients), "-j", str(jobs), "-t", str(transactions), *script, "bench"]
    done = run(target, argv)
    out = done.stdout.decode() + done.stderr.decode()
    found = re.search(r"number of transactions actually processed: (\d+)/(\d+)", out)
    assert found and found[1] == found[2], out
    assert "number of failed transactions: 0 (" in out, out
    return [found[1], found[2]]


@both
def pgbench_select(target):
    make_bench_tables(target)
    return [pgbench(target, mode, 50) for mode in MODES]


@both
def pgbench_tpcb(target):
    make_bench_tables(target)
    return [pgbench(target, mode, 10, script=("-N",), transactions=30) for mode in MODES]


@both
def pgbench_more_clients_than_servers(target):
    """One thread of pgbench has many connections, and waits for each Parse by itself while others of its transactions hold
    all servers."""
    make_bench_tables(target)
    return [pgbench(target, mode, 40, script=("-N",), transactions=10, jobs=1) for mode in MODES]


@both
def pgbench_connect_each(target):
    """-C: a new connection for each transaction."""
    make_bench_tables(target)
    return pgbench(target, "simple", 4, script=("-S", "-C"), transactions=25)


@both
def pgbench_pipeline(target):
    make_bench_tables(target)
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as f:
        f.write("\\startpipeline\nbegin;\nselect 1;\nupdate pgbench_tellers set tbalance = tbalance where tid = 1 + :client_id;\nselect 2;\ncommit;\n\\endpipeline\n")
        f.flush()
        return [pgbench(target, mode, 5, script=("-f", f.name)) for mode in ("extended", "prepared")]


@weir
def pgbench_thousand(context):
    """A thousand clients on eight servers, in each mode, without one error."""
    target = context.target("transaction")
    make_bench_tables(context.direct())
    for mode in MODES:
        pgbench(target, mode, 1000, transactions=5, jobs=4)


@both
def pg_dump_and_restore(target):
    setup = superuser(port=server_env("postgres", "PORT"))
    if target.direct:
        psql(setup, "-q", "-f", "-", stdin=b"""
drop schema if exists dumped cascade; create schema dumped; set search_path = dumped;
create type mood as enum ('low', 'high');
create table a (id serial primary key, t text default 'x', m mood, j jsonb, b bytea, at timestamptz);
insert into a (t, m, j, b, at) select 'row ' || i, 'low', jsonb_build_object('i', i), decode(md5(i::text), 'hex'), '2024-01-01'::timestamptz + i * interval '1 hour'
  from generate_series(1, 3000) i;
create table b (a_id int references a, n numeric(20, 5)); create index on b (n);
insert into b select id, id / 7.0 from a;
create view v as select a.t, b.n from a join b on a.id = b.a_id;
create function f(int) returns int language sql as 'select $1 + 1';
grant usage on schema dumped to public; grant select on all tables in schema dumped to public; grant usage on all sequences in schema dumped to public;
grant select on all sequences in schema dumped to public;
""")
    seen = []
    for options in ((), ("--inserts", "--rows-per-insert=100"), ("-Fc", "-Z0")):
        dump = run(target, ["pg_dump", "-n", "dumped", *options, "app"])
        text = dump.stdout
        if "-Fc" in options:
            # The custom format names the day it was made; its table of contents does as well.
            text = run(target, ["pg_restore", "-f", "-"], stdin=dump.stdout).stdout
        # Newer programs guard their output with a word made by chance.
        text = re.sub(rb"(?m)^\\(un)?restrict .*\n", b"", text)
        seen.append([len(text), hashlib.sha256(text).hexdigest()])
    restored = run(target, ["pg_dump", "-n", "dumped", "app"]).stdout.replace(b"dumped", b"restored_" + target.way.encode())
    restored = re.sub(rb"(?m)^\\(un)?restrict .*\n", b"", restored)
    restored = re.sub(rb"(?m)^ALTER .* OWNER TO .*;$", b"", restored)
    psql(superuser(), "-q", "-c", f"drop schema if exists restored_{target.way} cascade", "-c", "grant create on database app to public")
    psql(target, "-q", "-v", "ON_ERROR_STOP=1", "-f", "-", stdin=restored)
    seen.append(psql(target, "-At", "-c", f"select count(*), sum(n) from restored_{target.way}.v")[1])
    psql(superuser(), "-q", "-c", f"drop schema restored_{target.way} cascade")
    return seen


@both
def pg_isready(target):
    return run(target, ["pg_isready"]).returncode


@both
def vacuum_and_reindex(target):
    """Statements that refuse to run inside a transaction."""
    return [psql(target.within("bench"), "-c", "create table if not exists vacuumed (i int primary key)", "-c", "vacuum vacuumed",
                 "-c", "reindex index concurrently vacuumed_pkey", "-c", "vacuum vacuumed; select 1", "-c", "drop table vacuumed", ok=(0, 1))]


def sysbench(target, test, *options, threads=20, command="run"):
    argv = ["sysbench", f"--threads={threads}", "--events=400", "--time=60", "--tables=2", "--table-size=5000",
            "--rand-type=uniform", "--db-driver=pgsql",
            f"--pgsql-host={target.host}", f"--pgsql-port={target.port}", f"--pgsql-user={target.user}",
            f"--pgsql-password={target.password}", "--pgsql-db=bench", *options, test, command]
    done = run(target, argv)
    out = done.stdout.decode()
    if command == "run":
        ignored = re.search(r"ignored errors:\s+(\d+)", out)
        events = re.search(r"total number of events:\s+(\d+)", out)
        assert events and int(events[1]) >= 400, out
        return int(ignored[1]) if "read_write" not in test else "deadlocks may be"
    return done.returncode


@both
def sysbench_oltp(target):
    if not os.path.exists("/usr/bin/sysbench"):
        raise Skip("sysbench is not installed")
    threads = 20 if target.way in ("direct", "session") else 40
    seen = [sysbench(target, "oltp_read_write", command="prepare", threads=1)]
    for test in ("oltp_point_select", "oltp_read_write"):
        for mode in ("auto", "disable"):
            seen.append(sysbench(target, test, f"--db-ps-mode={mode}", threads=threads))
    seen.append(sysbench(target, "oltp_read_write", command="cleanup", threads=1))
    return seen

