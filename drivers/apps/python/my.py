"""Python's frameworks on MySQL and MariaDB, as their users run them."""

import threading

import pg
from apps import WHERE, Adapter


lock = threading.Lock()
killer = None


def ready_to_kill():
    """Ends statements from a connection that is there already: behind Weir a new one would wait for a server with what it SETs."""
    global killer
    import pymysql
    with lock:
        killer = killer or pymysql.connect(host=WHERE["host"], port=WHERE["port"], user=WHERE["user"], password=WHERE["password"], autocommit=True)


def kill_query(number):
    with lock, killer.cursor() as cursor:
        cursor.execute(f"KILL QUERY {number}")


class DbApi(Adapter):
    """What PyMySQL and mysqlclient have in common; autocommit on, begin() where a transaction is wanted."""

    def close(self):
        self.db.close()

    def describe(self, error):
        return [type(error).__name__, error.args[0] if error.args else None, str(error).split("\n")[0]]

    def run(self, sql, params, take):
        with self.db.cursor() as cursor:
            cursor.execute(sql, tuple(params) or None)
            return take(cursor)

    def execute(self, sql, params=()):
        return self.run(sql, params, lambda cursor: [cursor.rowcount, cursor.lastrowid])

    def query(self, sql, params=()):
        return self.run(sql, params, lambda cursor: list(cursor.fetchall()))

    def transaction(self, body, commit):
        self.db.begin()
        body()
        self.db.commit() if commit else self.db.rollback()

    def savepoint(self, body, release):
        self.execute("SAVEPOINT apps")
        body()
        self.execute("RELEASE SAVEPOINT apps" if release else "ROLLBACK TO SAVEPOINT apps")

    def stream(self, sql):
        with self.db.cursor(self.unbuffered()) as cursor:
            cursor.execute(sql)
            yield from cursor

    def cancel(self):
        kill_query(self.number)


class PyMySql(DbApi):
    """PyMySQL."""

    def open(self):
        import pymysql
        self.db = pymysql.connect(host=WHERE["host"], port=WHERE["port"], user=WHERE["user"], password=WHERE["password"], database=self.who["schema"],
                                  charset="utf8mb4", sql_mode=self.who["sql_mode"], init_command=f"SET time_zone = '{self.who['offset']}'",
                                  local_infile=True, autocommit=True)
        self.number = self.db.thread_id()
        ready_to_kill()

    def unbuffered(self):
        import pymysql
        return pymysql.cursors.SSCursor


class MySqlClient(DbApi):
    """mysqlclient, which is MariaDB's or MySQL's own C library."""

    def open(self):
        import MySQLdb
        self.db = MySQLdb.connect(host=WHERE["host"], port=WHERE["port"], user=WHERE["user"], password=WHERE["password"], database=self.who["schema"],
                                  charset="utf8mb4", sql_mode=self.who["sql_mode"], init_command=f"SET time_zone = '{self.who['offset']}'",
                                  local_infile=1, autocommit=True)
        self.number = self.db.thread_id()
        ready_to_kill()

    def unbuffered(self):
        import MySQLdb.cursors
        return MySQLdb.cursors.SSCursor


class SqlAlchemy(pg.SqlAlchemy):
    """SQLAlchemy over PyMySQL."""

    dialect = "mysql+pymysql"

    def open(self):
        import sqlalchemy
        url = sqlalchemy.URL.create(self.dialect, WHERE["user"], WHERE["password"], WHERE["host"], WHERE["port"], self.who["schema"], {"charset": "utf8mb4"})
        self.engine = sqlalchemy.create_engine(url, pool_size=1, max_overflow=0, pool_pre_ping=True, isolation_level="REPEATABLE READ", connect_args={
            "local_infile": 1, "init_command": f"SET time_zone = '{self.who['offset']}', sql_mode = '{self.who['sql_mode']}'"})
        self.db = None
        self.query("select 1")
        ready_to_kill()

    def describe(self, error):
        under = getattr(error, "orig", None)
        return [f"{type(error).__name__} {type(under).__name__}", *(list(under.args[:2]) if under else [None, str(error)])]

    def execute(self, sql, params=()):
        return self.run(sql, params, lambda result: [result.rowcount, result.lastrowid])

    def running_on(self, raw):
        self.number = raw.thread_id()

    def cancel(self):
        kill_query(self.number)


class SqlAlchemyMySqlClient(SqlAlchemy):
    dialect = "mysql+mysqldb"


class Django(pg.Django):
    """Django over mysqlclient."""

    def open(self):
        super().open()
        self.number = self.db.connection.thread_id()
        ready_to_kill()

    def describe(self, error):
        under = error.__cause__
        return [f"{type(error).__name__} {type(under).__name__}", *error.args[:2]]

    def cancel(self):
        kill_query(self.number)
