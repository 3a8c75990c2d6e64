"""Where sessions of MySQL and MariaDB are played: on either side in schemas of its own, which begin alike."""

import re
import time

from . import my, world_my
from .side import SETTLE_S

DDL = re.compile(r"\b(create|drop|alter|rename|truncate)\b", re.I)
# What each part of the schemas is changed by.
PARTS = [(re.compile(r"\b(d1|d3|vd)\b"), world_my.CHANGING), (re.compile(r"\bd2\b"), world_my.CHANGING_D2),
         (re.compile(r"\bfo\b"), world_my.CHANGING_FO), (re.compile(r"\b(vc|vx)\b"), world_my.CHANGING_VC)]
OTHER_SCHEMA = re.compile(r"%db%[xy]")
# What draws ids from a counter, or sets it.
DRAWS = re.compile(r"insert|replace|call|f_log|v_log|execute|exec |lookalike|" + "|".join({n for names in world_my.LOOKALIKES.values() for n in names}), re.I)


def changed_parts(texts):
    """What must be made anew after a session with these texts."""
    found = []
    if DDL.search(texts):
        found = [part for pattern, part in PARTS if pattern.search(texts)]
        if OTHER_SCHEMA.search(texts):
            found.append(world_my.CHANGING_X)
            if "%db%y" in texts:
                found.append(world_my.CHANGING_Y)
    elif re.search(r"into d1\b", texts, re.I):
        found.append(world_my.ROWS_D1)
    if re.search(r"\(s1|for s1|s1\.|f_next", texts, re.I):
        found.append(world_my.CHANGING_S1)
    if world_my.CHANGING_D2 not in found and re.search(r"into d2\b", texts, re.I):
        found.append(world_my.CHANGING_D2)
    return found



class MyPlace:
    kind = ""

    def __init__(self, address, number, weirs, env):
        socket_file = env[f"WEIR_TEST_{self.kind.upper()}_SOCKET"]
        self.address = address
        self.user = f"diff{number}"
        self.schemas = {True: f"diff{number}d", False: f"diff{number}w"}
        self.weirs = weirs
        self.weir_address = None
        self.direct = True
        self.stale = set()
        self.base = 1000
        self.bases = []
        self.at = 0
        # Where ids begin while plays on the database itself are compared with each other.
        self.exact = None
        # Where the ids of each side begin, and whether some have been drawn since.
        self.stands = {True: None, False: None}
        self.own_stands = {True: None, False: None}
        self.admin = my.Client(socket_file, "root", "mysql", "mysql", {"schema": "mysql"}, 30)
        if not self.admin.alive:
            raise RuntimeError(f"no login: {self.admin.greeting}")
        self.make()

    def make(self):
        ask = self.admin.ask
        ask("SET SESSION lock_wait_timeout = 5, SESSION innodb_lock_wait_timeout = 5, SESSION group_concat_max_len = 1000000")
        ask("SET GLOBAL lock_wait_timeout = 1; SET GLOBAL innodb_lock_wait_timeout = 1; SET GLOBAL log_bin_trust_function_creators = 1")
        ask(f"DROP USER IF EXISTS '{self.user}'@'%'")
        ask(f"CREATE USER '{self.user}'@'%' {self.empty_password}")
        # An application's own user, that may read its own code. What all workers' Weirs had to read of each other's took half of MariaDB's time.
        ask(f"GRANT RELOAD, PROCESS ON *.* TO '{self.user}'@'%'")
        for schema in self.schemas.values():
            ask(f"DROP ROLE IF EXISTS {schema}r")
            ask(f"CREATE ROLE {schema}r")
            ask(f"GRANT {schema}r TO '{self.user}'@'%'")
            for name, options in ((schema, ""), (schema + "x", " CHARACTER SET latin1 COLLATE latin1_bin")):
                ask(f"DROP DATABASE IF EXISTS {name}")
                ask(f"CREATE DATABASE {name}{options}")
                ask(f"GRANT ALL ON {name}.* TO '{self.user}'@'%'")
            for text in (*world_my.TABLES.split(";"), *world_my.ROUTINES, *self.more(), *"; ".join(world_my.ALL_CHANGING).split(";")):
                ask(self.on(text, schema))
            ask(self.on("; ".join(world_my.RESTORE.values()), schema))
            self.first = dict(self.rows(schema))

    def more(self):
        yield from (world_my.LOOKALIKE.format(name=name) for name in world_my.LOOKALIKES[self.kind])

    def on(self, text, schema):
        text = re.sub(r"\bCREATE (FUNCTION|PROCEDURE)\b", rf"CREATE DEFINER = '{self.user}'@'%' \1", text)
        return re.sub(r"\bS(?=[xy.\d'])", schema, text)

    # --- Clients ---

    def greet(self, address):
        my.Client(address, self.user, self.schemas[False], self.schemas[True], {}, 30).close()

    def begin(self, script, direct):
        self.direct = direct
        if direct:
            self.bases = []
        else:
            self.weir_address = self.weirs(script.servers)
            if script.servers in self.stale:
                self.stale.discard(script.servers)
                self.tell_of_changes()
        self.at = 0
        self.again(direct)

    def tell_of_changes(self):
        """DDL that changes nothing, so that this Weir reads the catalogue again."""
        client = my.Client(self.weir_address, self.user, self.schemas[False], self.schemas[True], {}, 30)
        if client.alive:
            client.answer(client.ask_for([["Q", "DROP TABLE IF EXISTS not_there"]], self), 30)
        client.close()

    def begin_change(self):
        """A client of this Weir's has a table's change under way until what this returns is called: the catalogue proves nothing meanwhile. It waits for
        somebody who reads that table in a transaction."""
        schema = self.schemas[False]
        reader = my.Client(self.address, self.user, schema, schema, {}, 30)
        for text in ("BEGIN", "SELECT * FROM unsettled"):
            reader.ask(text)
        client = my.Client(self.weir_address, self.user, schema, schema, {}, 30)
        client.ask("SET SESSION lock_wait_timeout = 600")
        owed = client.ask_for([["Q", "ALTER TABLE unsettled COMMENT = 'changed'"]], self)
        self.watch_change(schema)

        def end():
            reader.close(True)
            client.answer(owed, 30)
            client.close(True)
        return end

    def watch_change(self, schema):
        """Until it is under way."""
        for _ in range(2000):
            if any(row[1] == self.user and row[3] == schema and (row[7] or "").startswith("ALTER TABLE unsettled") for row in self.admin.ask("SHOW FULL PROCESSLIST")):
                return
            time.sleep(0.0005)
        raise RuntimeError("the change has not begun")

    def watch(self, texts):
        pass

    def enter(self, params, direct, bound_s):
        client = my.Client(self.address if direct else self.weir_address, self.user, self.schemas[direct], self.schemas[True], params, bound_s)
        if self.kind == "mariadb" and client.alive:
            # MariaDB's FOUND_ROWS() in a new session tells what another session left there.
            client.greeting += client.answer(client.ask_for([["Q", "SELECT 1"]], self), bound_s)
        return client

    def leave(self, client, politely, direct, dirty=True):
        if direct and dirty and client.alive and client.reset():
            # What it held is free before it has gone.
            client.close(politely)
            return
        client.close(politely)
        if not direct or not dirty:
            return
        for _ in range(2000):
            if str(client.thread) not in (row[0] for row in self.connections()):
                break
            time.sleep(0.0005)

    def connections(self):
        """(id, user, ...) of all. Not from information_schema.processlist: MariaDB 10.11 has died of being asked that often."""
        return self.admin.ask("SHOW PROCESSLIST")

    def alone(self, patience_s):
        """After Weir was killed: waits until its servers have gone, with all they held."""
        end = time.monotonic() + patience_s
        while found := [row[0] for row in self.connections() if row[1] == self.user]:
            if time.monotonic() > end:
                for number in found:
                    try:
                        self.admin.ask(f"KILL {number}")
                    except RuntimeError:
                        pass
                end += 1
            time.sleep(0.001)

    # --- The database ---

    def held(self):
        locks = ", ".join(f"IS_USED_LOCK('{self.schemas[self.direct]}{i}') IS NOT NULL" for i in range(1, 6))
        return " ".join(str(i + 1) for i, v in enumerate(self.admin.ask(f"SELECT {locks}")[0]) if v == "1")

    def state(self, script):
        schema = self.schemas[self.direct]
        end = time.monotonic() + SETTLE_S
        while (held := self.held()) and time.monotonic() < end:
            time.sleep(0.003)
        texts = script.texts()
        parts = changed_parts(texts)
        rows = self.rows(schema)
        lines = [f"{name}: {value}" for name, value in rows]
        if parts:
            lines.append("columns: " + " | ".join(" ".join(map(str, row)) for row in self.told(self.on(world_my.CATALOG_STATE, schema))))
            lines += [f"{table}: {self.told(self.on(f'SELECT * FROM S.{table} ORDER BY 1, 2', schema))}" for table in ("d1", "d2", "d3")
                      if re.search(rf"\b{table}\b", texts)]
        if "own_" in texts:
            lines += [f"{name}: {value}" for name, value in self.admin.ask(self.on(world_my.OWN_STATE, schema))]
            self.own_stands[self.direct] = None
        lines.append(f"held: {held or 'nothing'}")
        found = "\n".join(lines).replace(schema, self.schemas[True])
        if DRAWS.search(texts):
            self.stands[self.direct] = None
        try:
            self.restore(schema, parts, rows)
        except RuntimeError as e:
            found += f"\nrestore: {e}"
            self.weirs.close()
            self.alone(0)
            self.restore(schema, world_my.ALL_CHANGING, [(name, None) for name in self.first])
        return found

    def told(self, query):
        """Rows, or what is wrong with asking for them."""
        try:
            return self.admin.ask(query)
        except RuntimeError as e:
            return [str(e)[:60]]

    def rows(self, schema):
        query = " UNION ALL ".join(
            f"SELECT '{name}', (SELECT group_concat(concat_ws(',', {', '.join(f'coalesce({c}, 0x4e554c4c)' for c in columns.split(', '))}) "
            f"ORDER BY {columns} SEPARATOR ' | ') FROM {self.on(name, schema)})" for name, columns in world_my.TABLE_STATE)
        return self.admin.ask(query)

    def restore(self, schema, parts, rows):
        """Makes again what is not as at the beginning."""
        texts = [text for part in parts for text in part.split(";")]
        changed = [world_my.RESTORE[name] for name, held in rows if held != self.first[name]]
        if changed:
            texts.append("BEGIN; " + "; ".join(changed) + "; COMMIT")
        for text in texts:
            self.admin.ask(self.on(text, schema))
        if parts and not self.direct:
            # Tables have changed behind Weir's back, which it sees after seconds only.
            self.stale = set(self.weirs.running)

    def is_lasting(self, _script):
        """Nothing that a session does bears on how Weir treats later ones."""
        return False

    def again(self, direct):
        """Both sides begin with the same ids: the direct side goes on to new ones, Weir's follows."""
        schema = self.schemas[direct]
        if self.exact is not None:
            self.admin.ask(self.on(world_my.ANEW, schema))
            self.admin.ask(self.on(world_my.BASE.format(base=self.exact), schema))
            self.admin.ask(self.on(world_my.OWN_BASE.format(base=self.exact), schema))
            self.exact += 1000
            self.stands[direct] = self.own_stands[direct] = None
            return
        if direct or self.at >= len(self.bases):
            if self.stands[direct] is None or self.own_stands[direct] is None:
                self.base += 1000
                self.stands[direct] = self.own_stands[direct] = None
            self.bases.append(self.base)
        base = self.bases[-1 if direct else self.at]
        self.at += 0 if direct else 1
        if self.base > 2_000_000_000:
            raise RuntimeError("no more ids: start again")
        if self.stands[direct] != base:
            self.admin.ask("BEGIN; " + self.on(world_my.BASE.format(base=base), schema) + "; COMMIT")
            self.stands[direct] = base
        if self.own_stands[direct] != base:
            self.admin.ask(self.on(world_my.OWN_BASE.format(base=base), schema))
            self.own_stands[direct] = base


class MariaDbPlace(MyPlace):
    kind = "mariadb"
    empty_password = "IDENTIFIED VIA mysql_native_password USING ''"

    def more(self):
        yield from super().more()
        yield from world_my.MARIADB_ONLY


class MySqlPlace(MyPlace):
    kind = "mysql"
    empty_password = "IDENTIFIED WITH caching_sha2_password BY ''"


def place(kind):
    return {"mariadb": MariaDbPlace, "mysql": MySqlPlace}[kind]


def weir_config(kind, number, server_port, port, servers):
    return f"""workers = 1
[databases."*"]
url = "mysql://127.0.0.1:{server_port}"
[users.diff{number}]
password = ""
[console]
stats_users = ["diff{number}"]
[mysql]
listen = ["127.0.0.1:{port}"]
auth_type = "trust"
[pool]
default_pool_size = {servers}
share_answers = true
catalogue_check_interval = "{1 if servers == 1 else 10}"
"""
