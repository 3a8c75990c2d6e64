"""asyncpg: binary, prepared statements by default, Flush inside batches, its own reset query."""

import asyncio
import datetime
import decimal
import io
import uuid

import asyncpg
from weirtest.case import both

SERVERS = ["postgres"]


async def connect(target, **kw):
    options = {"host": target.host, "port": target.port, "user": target.user, "password": target.password,
               "database": target.database, "ssl": False, "timeout": 20}
    return await asyncpg.connect(**{**options, **kw})


async def failing(conn, query, *args):
    try:
        await conn.fetch(query, *args)
    except asyncpg.PostgresError as e:
        return [e.sqlstate, str(e).splitlines()[0]]
    raise AssertionError(f"no error from {query}")


@both
async def login(target):
    conn = await connect(target, server_settings={"application_name": "async app", "search_path": "pg_catalog", "jit": "off"})
    try:
        settings = conn.get_settings()
        return [await conn.fetchval("show application_name"), await conn.fetchval("show search_path"),
                await conn.fetchval("show jit"), settings.application_name, settings.TimeZone, settings.server_version]
    finally:
        await conn.close()


@both
async def types(target):
    conn = await connect(target)
    row = await conn.fetchrow(
        "select $1::int8 a, $2::text b, $3::bytea c, $4::numeric d, $5::timestamptz e, $6::uuid f, $7::int4[] g, $8::interval h, $9::bool i",
        1 << 40, "ü🜲", b"\x00\xff", decimal.Decimal("12345.6789"), datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC),
        uuid.UUID(int=5), [1, None, 3], datetime.timedelta(days=3, seconds=5), None)
    await conn.close()
    return [str(v) for v in row.values()]


@both
async def custom_codec(target):
    """Asks the server about types by introspection queries of its own, and turns jit off and on with set_config."""
    conn = await connect(target)
    await conn.execute("drop type if exists aio_mood cascade")
    await conn.execute("create type aio_mood as enum ('low', 'high')")
    await conn.set_type_codec("json", encoder=str, decoder=lambda v: ["decoded", v], schema="pg_catalog")
    seen = [await conn.fetchval("select '{\"a\": 1}'::json"), await conn.fetchval("select $1::aio_mood", "low"),
            await conn.fetchval("select array['low', 'high']::aio_mood[]")]
    await conn.execute("drop type aio_mood")
    await conn.close()
    return seen


@both
async def statement_cache(target):
    conn = await connect(target, statement_cache_size=5)
    seen = []
    for i in range(60):
        seen.append(await conn.fetchval(f"select $1::int + {i % 9}", i))
    await conn.close()
    return seen


@both
async def prepared(target):
    conn = await connect(target)
    statement = await conn.prepare("select $1::int + 1 as plus, $2::text as t")
    seen = [[a.name for a in statement.get_attributes()], [p.name for p in statement.get_parameters()]]
    for i in range(5):
        seen.append(tuple(await statement.fetchrow(i, "x")))
    seen.append(await failing(conn, "select $1::int / 0", 1))
    seen.append(statement.get_query())
    await conn.close()
    return seen


@both
async def shared_statements(target):
    """Twenty clients, the same cached texts: each server meets statements others prepared."""
    conns = await asyncio.gather(*(connect(target) for _ in range(20)))

    async def work(me, conn):
        for turn in range(20):
            got = await conn.fetchval(f"select $1::text || '/{turn % 4}'", f"{me}")
            assert got == f"{me}/{turn % 4}", (me, turn, got)

    await asyncio.gather(*(work(i, c) for i, c in enumerate(conns)))
    await asyncio.gather(*(c.close() for c in conns))
    return True


@both
async def cursors(target):
    conn = await connect(target)
    seen = []
    async with conn.transaction():
        total = 0
        async for row in conn.cursor("select i from generate_series(1, 500) i where i > $1", 10, prefetch=13):
            total += row["i"]
        seen.append(total)
        cursor = await conn.cursor("select i from generate_series(1, 50) i")
        seen.append([r["i"] for r in await cursor.fetch(5)])
        seen.append(await cursor.forward(10))
        seen.append((await cursor.fetchrow())["i"])
        # Two at once, interleaved.
        a = await conn.cursor("select 'a' || i from generate_series(1, 5) i")
        b = await conn.cursor("select 'b' || i from generate_series(1, 5) i")
        for _ in range(3):
            seen.append([(await a.fetchrow())[0], (await b.fetchrow())[0]])
    await conn.close()
    return seen


@both
async def transactions(target):
    conn = await connect(target)
    await conn.execute("drop table if exists aio_tx; create table aio_tx (id int primary key)")
    seen = []
    try:
        async with conn.transaction():
            await conn.execute("insert into aio_tx values (1)")
            raise KeyError
    except KeyError:
        pass
    async with conn.transaction(isolation="serializable"):
        await conn.execute("insert into aio_tx values (2)")
        try:
            async with conn.transaction():
                await conn.execute("insert into aio_tx values (2)")
        except asyncpg.UniqueViolationError as e:
            seen.append(e.sqlstate)
        await conn.executemany("insert into aio_tx values ($1)", [(i,) for i in range(10, 300)])
    try:
        # executemany is one implicit transaction.
        await conn.executemany("insert into aio_tx values ($1)", [(1000,), (1001,), (2,), (1002,)])
    except asyncpg.UniqueViolationError as e:
        seen.append(e.detail)
    seen.append(tuple(await conn.fetchrow("select count(*), min(id), max(id) from aio_tx")))
    seen.append(conn.is_in_transaction())
    await conn.execute("drop table aio_tx")
    await conn.close()
    return seen


@both
async def copy(target):
    conn = await connect(target)
    await conn.execute("drop table if exists aio_copy; create table aio_copy (id int primary key, v text)")
    seen = [await conn.copy_records_to_table("aio_copy", records=[(i, "v" * (i % 50)) for i in range(10000)])]
    out = io.BytesIO()
    seen.append(await conn.copy_from_table("aio_copy", output=out, format="csv"))
    seen.append(len(out.getvalue()))
    seen.append(await conn.copy_from_query("select * from aio_copy where id < $1", 10, output=io.BytesIO()))
    try:
        await conn.copy_to_table("aio_copy", source=io.BytesIO(b"20000\tnew\n1\tagain\n" * 3), columns=["id", "v"])
    except asyncpg.UniqueViolationError as e:
        seen.append(e.sqlstate)
    seen.append(await conn.fetchval("select count(*) from aio_copy"))
    await conn.execute("drop table aio_copy")
    await conn.close()
    return seen


@both
async def listen(target):
    listener = await connect(target)
    speaker = await connect(target)
    heard = asyncio.Queue()
    await listener.add_listener("aio_channel", lambda _c, _pid, channel, payload: heard.put_nowait([channel, payload]))
    for i in range(3):
        await speaker.execute(f"notify aio_channel, 'message {i}'")
    seen = [await asyncio.wait_for(heard.get(), 20) for _ in range(3)]
    # Still hears while it works itself.
    await speaker.execute("notify aio_channel, 'while working'")
    while heard.empty():
        await listener.fetchval("select 1")
    seen.append(await heard.get())
    await listener.close()
    await speaker.close()
    return seen


@both
async def cancel_by_timeout(target):
    conn = await connect(target)
    seen = []
    for _ in range(3):
        try:
            await conn.fetchval("select pg_sleep(50)", timeout=0.2)
            seen.append("no error")
        except TimeoutError:
            seen.append("timeout")
        seen.append(await conn.fetchval("select 'still there'"))
    await conn.close()
    return seen


@both
async def reset(target):
    """What asyncpg's own pool does between uses: several statements in one Query."""
    async with asyncpg.create_pool(host=target.host, port=target.port, user=target.user, password=target.password,
                                   database=target.database, ssl=False, min_size=1, max_size=3) as pool:
        seen = []
        for i in range(4):
            async with pool.acquire() as conn:
                seen.append(await conn.fetchval("show timezone"))
                await conn.execute("set timezone to 'Asia/Tokyo'")
                await conn.execute("select pg_advisory_lock(815)")
                seen.append(await conn.fetchval("show timezone"))
                seen.append(await conn.fetchval("select $1::int", i))
        return seen


@both
async def notices(target):
    conn = await connect(target)
    seen = []
    conn.add_log_listener(lambda _c, m: seen.append([m.severity, m.message]))
    await conn.execute("do $$ begin raise notice 'hello'; raise warning 'careful'; end $$")
    await conn.close()
    return seen


@both
async def errors(target):
    conn = await connect(target)
    seen = []
    for query in ("select * from no_such_table", "selec", "select 1/0", "select 'x'::int4"):
        seen.append(await failing(conn, query))
        seen.append(await conn.fetchval("select 1"))
    await conn.close()
    return seen


@both
async def crowd(target):
    async def one(me):
        conn = await connect(target)
        for turn in range(10):
            async with conn.transaction():
                a = await conn.fetchval("select pg_backend_pid()")
                text = await conn.fetchval("select $1::text", f"{me}.{turn}")
                b = await conn.fetchval("select pg_backend_pid()")
                assert a == b and text == f"{me}.{turn}", (me, turn, a, b, text)
        await conn.close()

    await asyncio.gather(*(one(i) for i in range(30)))
    return True


@both
async def large(target):
    conn = await connect(target)
    seen = []
    for size in (65536, 1 << 20, 20_000_000):
        got = await conn.fetchval("select $1::bytea", b"\x07" * size)
        seen.append(len(got))
    await conn.close()
    return seen
