"""TLS with the drivers of other languages, and asyncpg: every mode against every certificate. libpq, PyMySQL, the mysql programs and
openssl are tried in pg_tls and my_tls."""

import asyncio
import json
import ssl
from dataclasses import replace

from weirtest.case import weir
from weirtest.certs import certificates
from weirtest.external import go, node
from weirtest.target import PASSWORD
from weirtest.weir import Weir, url

SERVERS = ["postgres", "mariadb", "mysql"]

MODES = ("disable", "require", "verify-ca", "verify-full")
REFUSED = "refused"
# What Weir is set to, what it shows, and what each of the modes comes to.
FRONTS = (
    ("disable", "server", ("clear", REFUSED, REFUSED, REFUSED)),
    ("prefer", "server", ("clear", "TLS", "TLS", "TLS")),
    ("prefer", "expired", ("clear", "TLS", REFUSED, REFUSED)),
    ("prefer", "elsewhere", ("clear", "TLS", "TLS", REFUSED)),
    ("prefer", "foreign", ("clear", "TLS", REFUSED, REFUSED)),
    ("require", "server", (REFUSED, "TLS", "TLS", "TLS")),
)


def every_case(context, run):
    own, foreign = certificates()
    for mode, shown, wanted in FRONTS:
        of, name = (foreign, "server") if shown == "foreign" else (own, shown)
        options = [url(context.kind, database="app")]
        for setting in (f"sslmode={mode}", f"cert_file={of.path(name + '.pem')}", f"key_file={of.path(name + '.key')}"):
            options += ["--set", f"tls.client.{setting}"]
        if context.kind == "mariadb":
            options += ["--set", "mysql.auth_type=mysql_native_password"]
        with Weir(context.kind, options, name="tls") as w:
            # Certificates name localhost; "elsewhere" does not.
            target = replace(w.target(), host="localhost")
            seen = run(target, own.path("ca.pem"))
            assert seen == dict(zip(MODES, wanted, strict=True)), (mode, shown, seen)


def of_program(runner, *program):
    def run(target, ca):
        cases = json.dumps([{"name": mode, "mode": mode, "ca": ca} for mode in MODES])
        results = runner(*program, target, {"T_TLS": cases})
        words = {name: seen if error is None else REFUSED for name, seen, error, _skip in results}
        # A program that does not run is no refusal.
        assert set(words) == set(MODES), results
        return words

    return run


@weir
def node_drivers(context):
    every_case(context, of_program(node, "tls.js"))


@weir
def go_drivers(context):
    every_case(context, of_program(go, "tls"))


@weir(only="postgres")
def asyncpg(context):
    import asyncpg as driver

    async def login(target, mode, ca):
        how = mode
        if mode.startswith("verify"):
            how = ssl.create_default_context(cafile=ca)
            how.check_hostname = mode == "verify-full"
        try:
            conn = await driver.connect(host=target.host, port=target.port, user=target.user, password=PASSWORD, database="app", ssl=how, timeout=20)
        except (driver.PostgresError, ssl.SSLError, OSError, driver.InterfaceError):
            return REFUSED
        try:
            assert await conn.fetchval("select 1") == 1
            return "TLS" if conn._transport.get_extra_info("ssl_object") else "clear"
        finally:
            await conn.close()

    def run(target, ca):
        return {mode: asyncio.run(login(target, mode, ca)) for mode in MODES}

    every_case(context, run)
