"""Clients that all leave and come back at once, again and again, while the database does not answer: the database sees no more
connections than the pool may have, few are made anew, and when the cause is over everybody is served."""

import functools
import os
import threading

from weirtest import mywire, pgwire
from weirtest.case import eventually, in_threads, weir
from weirtest.private import PrivateServer
from weirtest.weir import Weir

SERVERS = ["postgres", "mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[postgres").split("[")[1].rstrip("]")

CLIENTS, POOL = 300, 3
PROTOCOL = "postgres" if KIND == "postgres" else "mysql"
wires = pgwire if KIND == "postgres" else mywire
TABLE = "stormed" if KIND == "postgres" else "app.stormed"


@functools.cache
def server():
    private = PrivateServer(KIND, max_connections=40)
    with wires.Wire(private.superuser()) as wire:
        wire.ask(f"create table {TABLE} (n int)")
        wire.ask(f"insert into {TABLE} values (42)")
        if KIND == "postgres":
            wire.ask(f"grant select on {TABLE} to public")
    return private


def ask_for(wire, sql):
    if KIND == "postgres":
        wire.send(pgwire.query(sql))
    else:
        wire.command(mywire.QUERY, sql)


def rows(wire):
    if KIND == "postgres":
        got = wire.until("Z")
        assert not any(kind == "E" for kind, _ in got), got
        return sum(1 for kind, _ in got if kind == "D")
    got = wire.reply()
    assert not any(kind == "err" for kind, _ in got), got
    return sum(1 for kind, _ in got if kind == "row")


def connections(admin):
    if KIND == "postgres":
        return int(admin.ask("select count(*) from pg_stat_activity where usename like 'app%'")[0][0])
    return int(admin.ask("select count(*) from information_schema.processlist where user = 'app'")[0][0])


def lock(holder):
    if KIND == "postgres":
        holder.ask("begin")
        holder.ask(f"lock table {TABLE}")
    else:
        holder.ask(f"lock tables {TABLE} write")


def unlock(holder):
    holder.ask("commit" if KIND == "postgres" else "unlock tables")


@weir
def a_storm_of_clients_stays_outside(_context):
    with Weir.before(KIND, port=server().port, pool_size=POOL) as w, wires.Wire(server().superuser()) as admin, \
            wires.Wire(server().superuser()) as holder:
        highest, stop = [0], threading.Event()

        def watch():
            while not stop.is_set():
                highest[0] = max(highest[0], connections(admin))

        with wires.Wire(w.target()) as first:
            assert first.ask("select 1") == [["1"]]
        lock(holder)
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            clients = [None] * CLIENTS

            def come(i):
                clients[i] = wires.Wire(w.target())
                ask_for(clients[i], f"select n from {TABLE}")

            for _ in range(4):
                assert not in_threads(CLIENTS, come)
                waiting = eventually(lambda: w.metric("weir_waiting_clients", protocol=PROTOCOL), "they wait")
                assert waiting <= CLIENTS
                for client in clients:
                    client.vanish()
                eventually(lambda: w.metric("weir_client_connections", protocol=PROTOCOL) == 0, "they have gone")
            assert not in_threads(CLIENTS, come)
            unlock(holder)
            for client in clients:
                assert rows(client) == 1
                client.close()
        finally:
            stop.set()
            watcher.join()
        assert 0 < highest[0] <= POOL, f"{highest[0]} connections at once"
        # What was left behind by those who went could be waited for: hardly any server had to be made anew.
        made = w.metric("weir_server_connects", protocol=PROTOCOL)
        assert made <= 5 * POOL, f"{made} connects"
