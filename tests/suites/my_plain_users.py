"""What a client sees whose account has rights on its own schema and none beyond, on a server whose character set is not that of the schema:
sessions that other clients have used, and that were reset since, are as new ones."""

import functools
import os

import pymysql
from weirtest.case import eventually, weir
from weirtest.mywire import BASIC, LOCAL_FILES, MULTI_STATEMENTS, QUERY, MyError, Wire
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[mariadb").split("[")[1].rstrip("]")
MARIADB = KIND == "mariadb"
# Its password is the common one, and its rights end with its schemas.
USER = "app_blind"


@functools.cache
def server():
    found = PrivateServer(KIND, options=("--character-set-server=latin1", "--collation-server=latin1_swedish_ci", "--local-infile=1"))
    for text in (
        "create database own character set utf8mb4 collate utf8mb4_bin",
        "create table own.l (id int, v varchar(20) character set utf8mb4)",
        f"grant all on own.* to {USER}@'%'",
    ):
        as_root(found, text)
    return found


def as_root(at, text):
    with pymysql.connect(unix_socket=at.env["SOCKET"], user="root") as root, root.cursor() as c:
        c.execute(text)


def admin(*texts):
    for text in texts:
        as_root(server(), text)


def start(pool_size=1):
    return Weir.before(KIND, port=server().port, pool_size=pool_size, users=(USER,), settings=["workers=1"])


def client(w, schema="own"):
    return Wire(w.target(user=USER, database=schema), BASIC | MULTI_STATEMENTS | LOCAL_FILES)


def told(wire, text):
    try:
        return wire.ask(text)
    except MyError as e:
        return [f"error {e}"]


def let_be_reset(w):
    """A client leaves with a transaction open: its server is reset."""
    before = w.metric("weir_server_resets_total", protocol="mysql")
    with client(w) as wire:
        wire.ask("begin")
        wire.ask("select * from l")
        wire.ask("create temporary table if not exists x (i int)")
    eventually(lambda: w.metric("weir_server_resets_total", protocol="mysql") > before, "its server was reset")


def clear_inline(b, a):
    """What A asks for is not on the server, where a variable of B's of that name is: Weir resets it in front of A's request."""
    b.ask("set @x = 1")
    b.ask("select @x")
    assert told(a, "select @x") == [[None]]


def load(wire, data):
    """LOAD DATA by the character set of the schema. What it has stored, in hexadecimal."""
    wire.ask("delete from l")
    wire.command(QUERY, "load data local infile 'x' into table l fields terminated by ','")
    got = wire.reply(QUERY)
    assert got[-1][0] == "infile", got
    wire.send_next(data)
    wire.send_next(b"")
    wire.reply(QUERY)
    return wire.ask("select hex(v) from l")


@weir
def a_reset_server_serves_users_that_may_set_nothing_special(_context):
    """Some settings want a privilege on MySQL even of who sets them to what they are."""
    with start() as w, client(w) as a:
        assert told(a, "select 1") == [["1"]]
        let_be_reset(w)
        for text in ("select 1", "begin", "select 1", "rollback"):
            assert not any("error" in str(row) for row in told(a, text)), text
        with client(w) as b:
            clear_inline(b, a)
            assert told(a, "select 1") == told(b, "select 1") == [["1"]]


@weir
def a_reset_server_has_the_character_set_of_its_schema(_context):
    """COM_RESET_CONNECTION keeps the schema and forgets its character set, by which LOAD DATA reads a file."""
    asked = "select @@collation_database, @@character_set_database"
    with start() as w, client(w) as a, client(w) as b:
        for reset in (lambda: None, lambda: let_be_reset(w), lambda: clear_inline(b, a)):
            reset()
            assert told(a, asked) == [["utf8mb4_bin", "utf8mb4"]]
            reset()
            assert load(a, "1,é\n".encode()) == [["C3A9"]]


@weir
def what_init_connect_says_holds_behind_a_reset(_context):
    said = {"set @init = 'hello'": ("@init", "hello"), "set session sql_buffer_result = 1": ("@@sql_buffer_result", "1"),
            "set session long_query_time = 3": ("@@long_query_time", "3.000000")}
    for text, (asked, value) in said.items():
        admin(f'set global init_connect = "{text}"')
        try:
            with start() as w, client(w) as a:
                assert told(a, f"select {asked}") == [[value]], text
                with client(w) as b:
                    b.ask("select get_lock('x', 0)")
                assert told(a, f"select {asked}") == [[value]], text
                with client(w) as b:
                    b.ask("set @x = 1")
                    b.ask("select @x")
                    assert told(a, "select @x") == [[None]]
                assert told(a, f"select {asked}") == [[value]], text
        finally:
            admin("set global init_connect = ''")
