"""The mysql client, mysqldump and sysbench's mysql driver."""

import hashlib
import os
import re
import subprocess
import tempfile

from weirtest.case import Skip, both, weir
from weirtest.target import server_env

SERVERS = ["mariadb", "mysql"]


def run(target, argv, stdin=None, ok=(0,), deadline_s=110):
    done = subprocess.run(argv, input=stdin, stdin=subprocess.DEVNULL if stdin is None else None, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={**os.environ, "MYSQL_PWD": target.password, "LC_ALL": "C.UTF-8"},
                          timeout=deadline_s, check=False)
    if done.returncode not in ok:
        raise AssertionError(f"{' '.join(argv)} ended with {done.returncode}: {done.stdout[-1000:]!r} {done.stderr[-3000:].decode(errors='replace')}")
    return done


def where(target):
    # MySQL's own client asks the server for its RSA key only when told that it may; MariaDB's does not know the option.
    key = ["--get-server-public-key"] if target.kind == "mysql" else []
    return ["--no-defaults", "--protocol=TCP", "-h", target.host, "-P", str(target.port), "-u", target.user, *no_tls(target), *key]


def client_commands(target):
    """MySQL 9's client takes its own commands (source, status) from a script only when told to."""
    return ["--commands"] if target.kind == "mysql" else []


def no_tls(target):
    return ["--ssl-mode=DISABLED"] if target.kind == "mysql" else ["--skip-ssl"]


def mysql(target, *argv, stdin=None, ok=(0,)):
    done = run(target, [server_env(target.kind, "CLIENT"), *where(target), *argv], stdin, ok)
    return [done.returncode, done.stdout.decode(), done.stderr.decode()]


@both
def commands(target):
    seen = [mysql(target, "app", "-e", "select 1 as one; select 2, 'b'; select null")]
    seen.append(mysql(target, "app", "-t", "-e", "select 1 as one; show warnings; select database()"))
    seen.append(mysql(target, "app", "-N", "-B", "-e", "select 'tab\\there'"))
    seen.append(mysql(target, "app", "-e", "select * from no_such_table; select 2", ok=(1,)))
    seen.append(mysql(target, "app", "-f", "-e", "select * from no_such_table; select 2", ok=(0, 1)))
    seen.append(mysql(target, "no_such_database", "-e", "select 1", ok=(1,))[0])
    seen.append(mysql(target, "-e", "use app2; select database(); use app; select database()"))
    seen.append(mysql(target, "app", "-vvv", "-e", "do 0; insert into mysql.no_such values (1)", ok=(1,))[0])
    return seen


def packings(kind):
    return [["--compress"]] if kind == "mariadb" else [[f"--compression-algorithms={word}"] for word in ("zlib", "zstd", "zlib,zstd,uncompressed")]


@both
def compressed(target):
    """Results and statements of several megabytes, data of the client's own, errors, and what the session says of it."""
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        data, script = os.path.join(folder, "data.tsv"), os.path.join(folder, "long.sql")
        with open(data, "w", encoding="utf-8") as f:
            f.writelines(f"{n}\tname of {n}\n" for n in range(100_000))
        # Over 16 MB it goes in two packets.
        with open(script, "w", encoding="utf-8") as f:
            f.write(f"select length('{'ab' * 9_000_000}');\nselect 'behind';\n")
        for how in packings(target.kind):
            seen.append(mysql(target, *how, "app", "-N", "-e", "select 1; select repeat('row ', 3); show session status like 'compression%'"))
            rows = mysql(target, *how, "app", "-N", "-B", "-e", "select repeat('some text ', 900000); select 'and behind'")
            seen.append(hashlib.sha256(repr(rows).encode()).hexdigest())
            load = f"create table packed (id int, name varchar(30)); load data local infile '{data}' into table packed; " \
                   "select count(*), sum(id), max(name) from packed; drop table packed; select * from no_such_table; select 2"
            seen.append(mysql(target, *how, "app", "--local-infile=1", "-f", "-e", load, ok=(0, 1)))
            with open(script, "rb") as f:
                seen.append(mysql(target, *how, "app", "--max-allowed-packet=64M", "-N", stdin=f.read()))
    return seen


@both
def wrong_password(target):
    done = mysql(target.login(target.user, "wrong"), "-e", "select 1", ok=(1,))
    return [done[0], "1045" in done[2]]


@both
def script(target):
    text = b"""
drop table if exists cli_script;
create table cli_script (id int primary key auto_increment, v varchar(50));
insert into cli_script (v) values ('one'), ('two;still two'), ("three\\\\four");
delimiter //
drop procedure if exists cli_proc//
create procedure cli_proc() begin select count(*) as n from cli_script; select 'second'; end//
delimiter ;
call cli_proc();
begin; insert into cli_script (v) values ('gone'); rollback;
set @x = 5; select @x;
select * from cli_script order by id;
/*! select 'in an executable comment' */;
-- a comment
# another
select 'end' as `quoted ; name`;
drop procedure cli_proc;
drop table cli_script;
"""
    with tempfile.NamedTemporaryFile("wb", suffix=".sql") as f:
        f.write(text)
        f.flush()
        return [mysql(target, "app", stdin=text), mysql(target, *client_commands(target), "app", "-e", f"source {f.name}")]


@both
def local_infile(target):
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as f:
        f.writelines(f"{i}\t{'c' * (i % 100)}\n" for i in range(50_000))
        f.flush()
        load = (f"drop table if exists cli_infile; create table cli_infile (id int, v varchar(100)); "
                f"load data local infile '{f.name}' into table cli_infile; select count(*), sum(length(v)) from cli_infile")
        seen = [mysql(target, "--local-infile=1", "app", "-e", load)]
        refused = mysql(target, "--local-infile=0", "app", "-e", load, ok=(1,))
        seen.append(refused[0])
        mysql(target, "app", "-e", "drop table cli_infile")
        return seen


@both
def big_output(target):
    query = "with recursive n as (select 1 i union all select i + 1 from n where i < 1000) select a.i, repeat('o', 500) from n a, n b where b.i < 30"
    done = run(target, [server_env(target.kind, "CLIENT"), *where(target), "app", "--quick", "-N", "-e", query])
    return [len(done.stdout), hashlib.sha256(b"".join(sorted(done.stdout.splitlines(True)))).hexdigest()]


@both
def status(target):
    out = mysql(target, *client_commands(target), "app", "-e", "status")[1]
    keep = [line for line in out.splitlines() if re.match(r"(Current database|Current user|Protocol version|Server characterset|Client characterset|Db +characterset|Connection:)", line)]
    return [re.sub(r"localhost|127.0.0.1", "HOST", line) for line in keep]


@both
def dump(target):
    if target.direct:
        mysql(target, "app", stdin=b"""
drop database if exists dumped; create database dumped; use dumped;
create table a (id int primary key auto_increment, t varchar(100) character set utf8mb4, b varbinary(64), d decimal(20, 5), at datetime(3), key (t));
insert into a (t, b, d, at) with recursive n as (select 1 i union all select i + 1 from n where i < 900) select concat('row \xc3\xbc ', i), unhex(sha2(i, 256)), i / 7, '2024-01-01' + interval i hour from n;
create table b (a_id int, foreign key (a_id) references a (id)); insert into b select id from a;
create view v as select a.t from a join b on a.id = b.a_id;
create trigger tr before insert on a for each row set new.t = upper(new.t);
""")
    program = server_env(target.kind, "DUMP")
    options = ["--set-gtid-purged=OFF", "--no-tablespaces", "--column-statistics=0"] if program.endswith("mysqldump") and target.kind == "mysql" else []
    seen = []
    for more in ((), ("--single-transaction", "--routines", "--hex-blob"), ("--skip-extended-insert", "--lock-tables", "--complete-insert")):
        login = [w for w in where(target)]
        done = run(target, [program, *login, *options, "--skip-dump-date", *more, "dumped"])
        text = re.sub(rb"-- Host: .*", b"-- Host", done.stdout)
        seen.append([len(text), hashlib.sha256(text).hexdigest()])
    restored = f"restored_{target.way}"
    mysql(target, "-e", f"drop database if exists {restored}; create database {restored}")
    mysql(target, restored, stdin=done.stdout)
    seen.append(mysql(target, restored, "-e", "select count(*), sum(d) from a; select count(*) from v")[1])
    mysql(target, "-e", f"drop database {restored}")
    return seen


def sysbench(target, test, *options, threads=20, command="run", events=400):
    argv = ["sysbench", f"--threads={threads}", f"--events={events}", "--time=60", "--tables=2", "--table-size=5000",
            "--rand-type=uniform", "--db-driver=mysql",
            f"--mysql-host={target.host}", f"--mysql-port={target.port}", f"--mysql-user={target.user}",
            f"--mysql-password={target.password}", "--mysql-db=bench", *options, test, command]
    done = run(target, argv)
    out = done.stdout.decode()
    if command == "run":
        found = re.search(r"total number of events:\s+(\d+)", out)
        assert found and int(found[1]) >= events, out
        ignored = re.search(r"ignored errors:\s+(\d+)", out)
        return int(ignored[1]) if "read_write" not in test else "deadlocks may be"
    return done.returncode


@both
def sysbench_oltp(target):
    if not os.path.exists("/usr/bin/sysbench"):
        raise Skip("sysbench is not installed")
    threads = 20 if target.way in ("direct", "session") else 40
    # Its errors 1213, 1020 and 1205 are the deadlocks of its own load; it counts and repeats them.
    seen = [sysbench(target, "oltp_read_write", command="prepare", threads=1)]
    for test in ("oltp_point_select", "oltp_read_write"):
        for mode in ("auto", "disable"):
            seen.append(sysbench(target, test, f"--db-ps-mode={mode}", threads=threads))
    seen.append(sysbench(target, "oltp_read_write", command="cleanup", threads=1))
    return seen


@weir
def sysbench_thousand(context):
    """A thousand threads on eight servers without an error."""
    direct = context.direct()
    # Tables of its own: the other test makes and drops its two.
    options = ["--table-size=1000", "--tables=1"]
    target = context.target("transaction")
    sysbench(direct.within("app2"), "oltp_point_select", *options, "--mysql-db=app2", command="prepare", threads=1)
    for mode in ("auto", "disable"):
        assert sysbench(target, "oltp_point_select", *options, "--mysql-db=app2", f"--db-ps-mode={mode}", threads=1000, events=4000) == 0
    sysbench(direct, "oltp_point_select", *options, "--mysql-db=app2", command="cleanup", threads=1)
