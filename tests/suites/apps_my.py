"""Application-shaped programs on MySQL and MariaDB: each framework plays the same scenario with all its clients alive at once."""

import pymysql

from weirtest.apps import Framework, register
from weirtest.case import eventually, in_threads, weir
from weirtest.mywire import MyError, Wire
from weirtest.weir import Weir

SERVERS = ["mariadb", "mysql"]

# Connector/J and MariaDB's cancel by a connection that they open for it and that SETs before it KILLs: `a_driver_kills_while_all_servers_work`.
FRAMEWORKS = [
    Framework("pymysql", "python", "my.PyMySql", "%s", ("mysql",)),
    Framework("mysqlclient", "python", "my.MySqlClient", "%s", ("mariadb",)),
    Framework("sqlalchemy", "python", "my.SqlAlchemy", "%s", without=("autocommit",)),
    Framework("sqlalchemy_mysqlclient", "python", "my.SqlAlchemyMySqlClient", "%s", without=("autocommit",)),
    Framework("django", "python", "my.Django", "%s", ("mariadb",)),
    Framework("mysql2", "node", "my.Mysql2", "?", ("mysql",)),
    Framework("knex", "node", "my.Knex", "?", without=("load", "cancel")),
    Framework("drizzle", "node", "my.Drizzle", "?", without=("load", "cancel")),
    Framework("go_sql_driver", "go", "mysql", "?", ("mariadb",)),
    Framework("gorm", "go", "gorm_my", "?", without=("load",)),
    Framework("connector_j", "java", "hikari.connector_j", "?", ("mysql",), without=("cancel",)),
    Framework("mariadb_connector_j", "java", "hikari.mariadb", "?", ("mariadb",), without=("cancel",)),
    Framework("hibernate", "java", "hibernate.connector_j", "?", without=("cancel",)),
    Framework("hibernate_mariadb", "java", "hibernate.mariadb", "?", without=("cancel",)),
    Framework("laravel", "php", "LaravelMySql", "?", ("mysql",), without=("orm", "cancel")),
    Framework("wordpress", "php", "WordPress", "?", ("mariadb",), without=("orm", "cancel", "load")),
    Framework("activerecord", "ruby", "mysql2", "?", ("mariadb",)),
]

register(FRAMEWORKS, SERVERS)


@weir
def a_driver_kills_while_all_servers_work(context):
    """A connection that SETs what drivers SET at connect, and then kills, does not wait for a server that only the KILL would free."""
    with Weir.before(context.kind, pool_size=1, settings=("pool.query_wait_timeout=5",)) as weir:
        target = weir.target()
        with Wire(target) as busy:
            number = int(busy.ask("SELECT CONNECTION_ID()")[0][0])
            # A driver's second connection logs in as its first one did.
            pymysql.connect(host=target.host, port=target.port, user=target.user, password=target.password).close()

            def work(_n):
                try:
                    busy.ask("SELECT count(*) FROM information_schema.columns a, information_schema.columns b WHERE SLEEP(1) < 0")
                except MyError as e:
                    assert "1317" in str(e), e

            def kill(_n):
                eventually(lambda: weir.metric("weir_server_connections", state="active") == 1, "the statement runs")
                try:
                    with pymysql.connect(host=target.host, port=target.port, user=target.user, password=target.password) as db, db.cursor() as cursor:
                        cursor.execute(f"KILL QUERY {number}")
                finally:
                    with Wire(target) as last:
                        last.ask(f"KILL QUERY {number}")
            raised = in_threads(2, lambda n: (work, kill)[n](n))
            assert not raised, raised
