"""Where PostgreSQL sessions are played: connections to the server and to Weir, the worker's own database."""

import re
import time

from . import pg, world_pg
from .side import SETTLE_S

# What DISCARD ALL does not take back; after these a connection to the database is not used again.
STAYS = re.compile(r"app\.x|nonsense|temp|LOAD|authorization", re.I)


# Behind these a Weir keeps servers for clients of later sessions as well.
LASTING = re.compile(r"lastval|currval")

DDL = re.compile(r"\b(create|drop|alter|truncate|comment|analyze)\b|into d3", re.I)


class Client(pg.Client):
    def ask_for(self, messages, _place):
        self.send([[part.replace("%pid%", f"{self.pid:010}") if isinstance(part, str) and "%pid%" in part else part for part in m] for m in messages])
        return pg.owed(messages)

    def answer(self, owed, bound_s):
        return self.reply(owed, bound_s)


class Place:
    kind = "postgres"

    def __init__(self, address, number, weirs, _env):
        """`weirs`: gives the address of a Weir with so many servers a pool."""
        self.address = address
        self.database = f"diff{number}"
        self.weirs = weirs
        self.parked = {}
        self.reuse = True
        self.exact = None
        self.weir_address = None
        self.sessions = 0
        # How often objects were made again, and how many of these times each Weir knows of.
        self.remade = 0
        self.told = {}
        self.make()

    def make(self):
        admin = pg.Client(self.address, {"user": "postgres", "database": "postgres"}, 30)
        if not admin.ask("SELECT 1 FROM pg_roles WHERE rolname = 'diff_boss'"):
            try:
                admin.ask(world_pg.ROLES)
            except RuntimeError:
                pass  # another worker was faster
        admin.ask(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self.database}'")
        for _ in range(50):
            try:
                admin.ask(f"DROP DATABASE IF EXISTS {self.database}")
                break
            except RuntimeError:
                time.sleep(0.1)
        admin.ask(f"CREATE DATABASE {self.database}")
        for setting in ("lock_timeout = '100ms'", "app.tenant = ''"):
            admin.ask(f"ALTER DATABASE {self.database} SET {setting}")
        admin.close()
        self.admin = pg.Client(self.address, {"user": "postgres", "database": self.database}, 30)
        self.admin.ask("SET lock_timeout = '5s'; SET client_min_messages = error")
        self.admin.ask(world_pg.WORLD)
        self.admin.ask(world_pg.CHANGING)
        self.admin.ask("CALL keeper.restore('{public.t, public.jobs, public.shadow, public.t_id_seq}')")
        self.admin.ask(world_pg.HELD)
        self.first = self.admin.ask("SELECT keeper.state()")[0][0]
        self.learn()

    # --- Clients ---

    def greet(self, address):
        pg.Client(address, {"user": "app_trust", "database": self.database}, 30).close()

    def begin(self, script, direct):
        texts = script.texts()
        self.reuse = not STAYS.search(texts) if script.steps else True
        if not direct:
            self.weir_address = self.weirs(script.servers)
            self.tell_weir()

    def tell_weir(self):
        """What is made again is changed behind Weir's back, which it would find out in a second or ten. Until then it would judge this
        session by what another one has made."""
        if self.weirs.fixed or self.told.get(self.weir_address) == self.remade:
            return
        client = pg.Client(self.weir_address, {"user": "app_trust", "database": self.database}, 30)
        client.ask("DROP FUNCTION IF EXISTS weir_is_to_look()")
        client.close()
        self.told[self.weir_address] = self.remade

    def begin_change(self):
        """A client of this Weir's has a table's change under way until what this returns is called: the catalogue proves nothing meanwhile."""
        client = pg.Client(self.weir_address, {"user": "app_trust", "database": self.database}, 30)
        for text in ("BEGIN", "SELECT pg_advisory_xact_lock(987654321)", "CREATE TABLE unsettled (a int)"):
            client.ask(text)

        def end():
            if client.alive:
                client.ask("ROLLBACK")
            client.close()
        return end

    def is_lasting(self, script):
        """What this session has told Weir bears on others: they get a new one."""
        return LASTING.search(script.texts())

    def again(self, direct):
        """A further session of a script begins; `state` has restored everything."""

    def watch(self, texts):
        """While a session is drawn its texts are not known before."""
        self.reuse = self.reuse and not STAYS.search(texts)

    def enter(self, params, direct, bound_s):
        params = {"user": "app_trust", "database": self.database, **params}
        if not direct:
            return Client(self.weir_address, params, bound_s)
        key = tuple(sorted(params.items()))
        if self.parked.get(key):
            client = self.parked[key].pop()
            client.greeting, client.params = list(client.at_first[0]), dict(client.at_first[1])
            client.notifications, client.stray = [], []
            return client
        client = Client(self.address, params, bound_s)
        client.key = key
        client.at_first = (list(client.greeting), dict(client.params))
        return client

    def leave(self, client, politely, direct, _dirty=True):
        if not client.alive:
            client.close(False)
            return
        if not direct:
            client.close(politely)
            return
        if self.reuse:
            if client.status != "I":
                client.send([["Q", "ROLLBACK"]])
                client.reply(1, 10)
            client.send([["Q", "DISCARD ALL"]])
            client.reply(1, 10)
            if client.alive and client.status == "I":
                self.parked.setdefault(client.key, []).append(client)
                return
        client.close(politely)
        for _ in range(2000):
            if not self.admin.ask(f"SELECT 1 FROM pg_stat_activity WHERE pid = {client.pid}"):
                break
            time.sleep(0.001)

    # --- The database ---

    def alone(self, patience_s):
        """After Weir was killed: waits until its servers have gone, with all they held."""
        mine = ",".join(str(c.pid) for c in [self.admin, *(c for idle in self.parked.values() for c in idle)])
        others = f"FROM pg_stat_activity WHERE datname = '{self.database}' AND pid NOT IN ({mine})"
        end = time.monotonic() + patience_s
        while self.admin.ask(f"SELECT 1 {others}"):
            if time.monotonic() > end:
                self.admin.ask(f"SELECT pg_terminate_backend(pid) {others}")
                end += 1
            time.sleep(0.001)

    def held(self):
        return self.admin.ask("EXECUTE held")[0][0]

    def learn(self):
        """What the catalogue is at a session's beginning, and one query for all that is in its tables."""
        self.catalog = self.admin.ask("SELECT keeper.catalog()")[0][0]
        parts, own = [], []
        for n, line in enumerate(self.first.splitlines()):
            name, _, rows = line.partition(": ")
            relation = name.split(" ")[0]
            quoted = rows.replace("'", "''")
            if relation.startswith("public.own_"):
                # Looked at only after sessions that use them.
                own.append(f"SELECT {n}, '{name}', '{quoted}'")
            if relation in ("functions", "columns", "") or rows == "view":
                parts.append(f"SELECT {n}, '{name}', '{quoted}'")
            elif relation.endswith("_seq") or relation in ("public.s1", "public.sq"):
                parts.append(f"SELECT {n}, '{name}', (SELECT last_value || ' ' || is_called FROM {relation})")
            else:
                parts.append(f"SELECT {n}, '{name}', (SELECT string_agg(x::text, ' ' ORDER BY x::text) FROM {relation} x)")
        few = [next((o for o in own if o.split(",")[0] == part.split(",")[0]), part) for part in parts]
        self.admin.ask(world_pg.LOOK.format(name="look", parts=" UNION ALL ".join(parts)))
        self.admin.ask(world_pg.LOOK.format(name="look_at_few", parts=" UNION ALL ".join(few)))
        for texts in ("", "create own_"):
            assert self.look(texts) == (self.first, False), self.look(texts)

    def look(self, texts):
        """(what is in the tables after a session with these texts, whether the catalogue has changed)"""
        look, wanted = "look" if "own_" in texts else "look_at_few", self.catalog if DDL.search(texts) else ""
        found = self.admin.ask(f"SELECT keeper.{look}('{wanted}')")[0][0]
        return (found, False) if found else (self.admin.ask("SELECT keeper.state()")[0][0], True)

    def state(self, script):
        """What is in the tables once nobody holds anything any more; then all is as it was."""
        end = time.monotonic() + SETTLE_S
        while (held := self.held()) and time.monotonic() < end:
            time.sleep(0.003)
        state, remade = self.look(script.texts())
        found = state + (f"\nheld: {held}" if held else "\nheld: nothing")
        try:
            self.restore(state, remade)
        except RuntimeError as e:
            found += f"\nrestore: {e}"
            self.admin.ask(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self.database}' AND pid <> pg_backend_pid()")
            self.parked = {}
            time.sleep(0.1)
            self.restore("", True)
        return found

    def restore(self, state, remade):
        """Makes again what is not as at the beginning."""
        before, now = ({name.split(" ")[0]: rows for name, _, rows in (line.partition(": ") for line in text.splitlines())}
                       for text in (self.first, state))
        other = [name for name, rows in before.items() if now.get(name) != rows]
        if remade or any(name.startswith(("a.", "b.")) for name in other):
            remade = True
            self.remade += 1
            self.admin.ask(world_pg.CHANGING)
            other = [name for name in other if name.startswith("public.") and name not in world_pg.REMADE and before[name] != "view"]
        if other:
            self.admin.ask(f"CALL keeper.restore('{{{', '.join(other)}}}')")
        if remade:
            self.catalog = self.admin.ask("SELECT keeper.catalog()")[0][0]
        self.sessions += 1
        if self.sessions % 300 == 0:
            self.admin.ask("VACUUM")


def weir_config(_kind, _number, server_port, port, servers):
    return f"""workers = 1
[databases."*"]
url = "postgres://127.0.0.1:{server_port}"
[users.app_trust]
password = ""
[users.postgres]
password = ""
[console]
stats_users = ["app_trust"]
[postgres]
listen = ["127.0.0.1:{port}"]
auth_type = "trust"
[pool]
default_pool_size = {servers}
listen_linger = "0"
share_answers = true
catalogue_check_interval = "{1 if servers == 1 else 10}"
"""
