"""Python's frameworks on PostgreSQL, as their users run them."""

import asyncio
import io
import threading

from apps import WHERE, Adapter, Rollback

LIBPQ = {"host": WHERE["host"], "port": WHERE["port"], "user": WHERE["user"], "password": WHERE["password"],
         "dbname": WHERE["db"], "sslmode": "disable"}


def options(who):
    return f"-c search_path={who['schema']} -c TimeZone={who['zone']}"


class Psycopg(Adapter):
    """psycopg 3: autocommit, and blocks where a transaction is wanted."""

    def open(self):
        import psycopg
        self.db = psycopg.connect(**LIBPQ, options=options(self.who), application_name=self.who["application"], autocommit=True)

    def close(self):
        self.db.close()

    def describe(self, error):
        return [type(error).__name__, getattr(error, "sqlstate", None), str(error).split("\n")[0]]

    def execute(self, sql, params=()):
        return self.db.execute(sql, params or None).rowcount

    def query(self, sql, params=()):
        return self.db.execute(sql, params or None).fetchall()

    def prepared(self, sql, params):
        return self.db.execute(sql, params, prepare=True).fetchall()

    def transaction(self, body, commit):
        import psycopg
        with self.db.transaction():
            body()
            if not commit:
                raise psycopg.Rollback()

    savepoint = transaction

    def stream(self, sql):
        with self.db.transaction(), self.db.cursor(name="large") as cursor:
            cursor.itersize = 500
            cursor.execute(sql)
            yield from cursor

    def copy_in(self, sql, text):
        with self.db.cursor() as cursor:
            with cursor.copy(sql) as copy:
                copy.write(text)
            return cursor.rowcount

    def copy_out(self, sql):
        with self.db.cursor() as cursor, cursor.copy(sql) as copy:
            return b"".join(bytes(part) for part in copy).decode()

    def listen(self, channel, payload):
        self.db.execute(f"LISTEN {channel}")
        self.db.execute("SELECT pg_notify(%s, %s)", (channel, payload))
        heard = [n.payload for n in self.db.notifies(timeout=30, stop_after=1)]
        self.db.execute(f"UNLISTEN {channel}")
        return heard

    def cancel(self):
        self.db.cancel_safe(timeout=30)


class PsycopgPipeline(Psycopg):
    """psycopg 3 with a pipeline around what it does in a transaction."""

    def transaction(self, body, commit):
        with self.db.pipeline():
            super().transaction(body, commit)


class Psycopg2(Adapter):
    """psycopg 2 as it comes: the first statement opens a transaction, commit() ends it."""

    def open(self):
        import psycopg2
        self.db = psycopg2.connect(**LIBPQ, options=options(self.who), application_name=self.who["application"])
        self.inside = False

    def close(self):
        self.db.close()

    def describe(self, error):
        return [type(error).__name__, getattr(error, "pgcode", None), str(error).split("\n")[0]]

    def run(self, sql, params, take):
        try:
            with self.db.cursor() as cursor:
                cursor.execute(sql, tuple(params) or None)
                taken = take(cursor)
        except Exception:
            if not self.inside:
                self.db.rollback()
            raise
        if not self.inside:
            self.db.commit()
        return taken

    def execute(self, sql, params=()):
        return self.run(sql, params, lambda cursor: cursor.rowcount)

    def query(self, sql, params=()):
        return self.run(sql, params, lambda cursor: cursor.fetchall())

    def transaction(self, body, commit):
        self.inside = True
        try:
            body()
            self.db.commit() if commit else self.db.rollback()
        finally:
            self.inside = False

    def savepoint(self, body, release):
        self.execute("SAVEPOINT apps")
        body()
        self.execute("RELEASE SAVEPOINT apps" if release else "ROLLBACK TO SAVEPOINT apps")

    def stream(self, sql):
        with self.db.cursor(name="large") as cursor:
            cursor.itersize = 500
            cursor.execute(sql)
            yield from cursor
        self.db.commit()

    def copy_in(self, sql, text):
        def take(cursor):
            cursor.copy_expert(sql, io.StringIO(text))
            return cursor.rowcount
        return self.run("SELECT 1", (), take)

    def copy_out(self, sql):
        out = io.StringIO()
        self.run("SELECT 1", (), lambda cursor: cursor.copy_expert(sql, out))
        return out.getvalue()

    def listen(self, channel, payload):
        import select
        self.execute(f"LISTEN {channel}")
        self.execute("SELECT pg_notify(%s, %s)", (channel, payload))
        while not self.db.notifies and select.select([self.db], [], [], 30)[0]:
            self.db.poll()
        heard = [n.payload for n in self.db.notifies]
        self.db.notifies.clear()
        self.execute(f"UNLISTEN {channel}")
        return heard

    def cancel(self):
        self.db.cancel()


class Asyncpg(Adapter):
    """asyncpg: all clients in one event loop, settings as server_settings, statements prepared and cached by the driver."""

    loop = None

    def wait(self, coroutine):
        self.task = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        return self.task.result()

    def open(self):
        import asyncpg
        self.db = self.wait(asyncpg.connect(
            host=WHERE["host"], port=WHERE["port"], user=WHERE["user"], password=WHERE["password"], database=WHERE["db"], ssl=False,
            timeout=120, server_settings={"search_path": self.who["schema"], "TimeZone": self.who["zone"],
                                          "application_name": self.who["application"]}))

    def close(self):
        self.wait(self.db.close())

    def describe(self, error):
        return [type(error).__name__, getattr(error, "sqlstate", None), str(error).split("\n")[0]]

    def execute(self, sql, params=()):
        return self.wait(self.db.execute(sql, *params))

    def query(self, sql, params=()):
        return [tuple(row) for row in self.wait(self.db.fetch(sql, *params))]

    def prepared(self, sql, params):
        async def run():
            statement = await self.db.prepare(sql)
            return [tuple(row) for row in await statement.fetch(*params)]
        return self.wait(run())

    def transaction(self, body, commit):
        transaction = self.db.transaction()
        self.wait(transaction.start())
        body()
        self.wait(transaction.commit() if commit else transaction.rollback())

    savepoint = transaction

    def stream(self, sql):
        async def run():
            async with self.db.transaction():
                return [tuple(row) async for row in self.db.cursor(sql, prefetch=500)]
        return self.wait(run())

    def copy_in(self, sql, text):
        _, table, *_ = sql.replace("(", " ").split()
        return self.wait(self.db.copy_to_table(table, source=io.BytesIO(text.encode()), columns=["id", "note"]))

    def copy_out(self, sql):
        out = io.BytesIO()
        self.wait(self.db.copy_from_query(sql[sql.index("(") + 1:sql.rindex(")")], output=out))
        return out.getvalue().decode()

    def listen(self, channel, payload):
        async def run():
            heard = asyncio.get_running_loop().create_future()

            def take(_db, _pid, _channel, said):
                if not heard.done():
                    heard.set_result(said)
            await self.db.add_listener(channel, take)
            await self.db.execute("SELECT pg_notify($1, $2)", channel, payload)
            said = await asyncio.wait_for(heard, 30)
            await self.db.remove_listener(channel, take)
            return [said]
        return self.wait(run())

    def cancel(self):
        # asyncpg sends a cancel request when the task that waits is cancelled.
        self.task.cancel()


def begin(adapter):
    """What a framework needs once, before its first client."""
    if adapter is Asyncpg:
        Asyncpg.loop = asyncio.new_event_loop()
        threading.Thread(target=Asyncpg.loop.run_forever, daemon=True).start()


class SqlAlchemy(Adapter):
    """SQLAlchemy over psycopg 3: an engine with its pool, connections taken from it and given back (with ROLLBACK) for each piece of work."""

    dialect = "postgresql+psycopg"
    cancel_by = staticmethod(lambda raw: raw.cancel_safe(timeout=30))

    def open(self):
        import sqlalchemy
        url = sqlalchemy.URL.create(self.dialect, WHERE["user"], WHERE["password"], WHERE["host"], WHERE["port"], WHERE["db"])
        self.engine = sqlalchemy.create_engine(url, pool_size=1, max_overflow=0, pool_pre_ping=True, connect_args={
            "options": options(self.who), "application_name": self.who["application"], "sslmode": "disable"})
        self.db = None
        self.raw = None
        self.query("select 1")

    def close(self):
        self.engine.dispose()

    def describe(self, error):
        under = getattr(error, "orig", None)
        state = getattr(under, "sqlstate", None) or getattr(under, "pgcode", None)
        return [f"{type(error).__name__} {type(under).__name__}", state, str(under or error).split("\n")[0]]

    def run(self, sql, params, take):
        if self.db is not None:
            return take(self.db.exec_driver_sql(sql, tuple(params) or None))
        with self.engine.begin() as db:
            self.running_on(db.connection.driver_connection)
            return take(db.exec_driver_sql(sql, tuple(params) or None))

    def running_on(self, raw):
        self.raw = raw

    def execute(self, sql, params=()):
        return self.run(sql, params, lambda result: result.rowcount)

    def query(self, sql, params=()):
        return self.run(sql, params, lambda result: [tuple(row) for row in result])

    def transaction(self, body, commit):
        with self.engine.connect() as db:
            self.db = db
            try:
                transaction = db.begin()
                body()
                transaction.commit() if commit else transaction.rollback()
            finally:
                self.db = None

    def savepoint(self, body, release):
        nested = self.db.begin_nested()
        body()
        nested.commit() if release else nested.rollback()

    def stream(self, sql):
        with self.engine.connect() as db:
            for row in db.execution_options(stream_results=True, yield_per=500).exec_driver_sql(sql):
                yield tuple(row)

    def cancel(self):
        self.cancel_by(self.raw)

    def tables(self):
        import sqlalchemy as sa
        from sqlalchemy import orm

        class Base(orm.DeclarativeBase):
            pass

        class Author(Base):
            __tablename__ = "authors"
            id = sa.Column(sa.Integer, primary_key=True)
            name = sa.Column(sa.String(100), unique=True, nullable=False)
            books = orm.relationship("Book", back_populates="author", cascade="all, delete-orphan", order_by="Book.id")

        class Book(Base):
            __tablename__ = "books"
            id = sa.Column(sa.Integer, primary_key=True)
            author_id = sa.Column(sa.ForeignKey("authors.id"), nullable=False)
            title = sa.Column(sa.String(100), nullable=False)
            price = sa.Column(sa.Numeric(10, 2), default=1)
            author = orm.relationship("Author", back_populates="books")
        return Base, Author, Book

    def orm(self):
        import sqlalchemy as sa
        from sqlalchemy import orm
        Base, Author, Book = self.tables()
        Base.metadata.create_all(self.engine)
        seen = [sorted(sa.inspect(self.engine).get_table_names())]
        name = self.who["application"]
        with orm.Session(self.engine) as session:
            session.add_all([Author(name=f"{name} {n}", books=[Book(title=f"{n}.{k}", price=k) for k in range(3)]) for n in range(3)])
            session.commit()
            first = session.scalars(sa.select(Author).order_by(Author.id).limit(1)).one()
            seen.append([first.id, first.name, [(b.id, b.title, b.price) for b in first.books]])
            first.books[0].title = "changed"
            with session.begin_nested():
                session.add(Author(name="inner"))
            try:
                with session.begin_nested():
                    session.add(Author(name="inner"))
                    session.flush()
            except sa.exc.IntegrityError as e:
                seen.append(self.describe(e))
            session.commit()
            session.delete(session.get(Author, first.id))
            session.rollback()
            seen.append(session.execute(sa.select(Author.name, sa.func.count(Book.id)).outerjoin(Book).group_by(Author.name).order_by(Author.name)).all())
            session.execute(sa.update(Book).where(Book.price >= 1).values(price=Book.price * 2))
            session.commit()
            seen.append(session.scalar(sa.select(sa.func.sum(Book.price))))
        Base.metadata.drop_all(self.engine)
        return [seen[0], [list(map(str, row)) if not isinstance(row, str) else row for row in seen[1:-1]], str(seen[-1])]


class SqlAlchemyPsycopg2(SqlAlchemy):
    dialect = "postgresql+psycopg2"
    cancel_by = staticmethod(lambda raw: raw.cancel())


class Django(Adapter):
    """Django: the connection of its thread, TIME_ZONE of the database, atomic(), models, the schema editor."""

    def open(self):
        from django_app import connection
        self.db = connection(self.who)
        self.db.ensure_connection()

    def close(self):
        self.db.close()

    def describe(self, error):
        under = error.__cause__
        return [f"{type(error).__name__} {type(under).__name__}", getattr(under, "sqlstate", None) or (under.args[0] if under and under.args else None),
                str(error).split("\n")[0]]

    def execute(self, sql, params=()):
        with self.db.cursor() as cursor:
            cursor.execute(sql, tuple(params) or None)
            return cursor.rowcount

    def query(self, sql, params=()):
        with self.db.cursor() as cursor:
            cursor.execute(sql, tuple(params) or None)
            return cursor.fetchall()

    def transaction(self, body, commit):
        from django.db import transaction
        try:
            with transaction.atomic(using=self.db.alias):
                body()
                if not commit:
                    raise Rollback
        except Rollback:
            pass

    savepoint = transaction

    def stream(self, sql):
        with self.db.chunked_cursor() as cursor:
            if self.db.vendor == "postgresql":
                from django.db import transaction
                with transaction.atomic(using=self.db.alias):
                    cursor.execute(sql)
                    yield from cursor
            else:
                cursor.execute(sql)
                yield from cursor

    def cancel(self):
        self.db.connection.cancel_safe(timeout=30)

    def orm(self):
        from django_app import orm
        return orm(self.db, self.who)

