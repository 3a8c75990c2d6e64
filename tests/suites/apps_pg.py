"""Application-shaped programs on PostgreSQL: each framework plays the same scenario with all its clients alive at once."""

from weirtest.apps import Framework, register

SERVERS = ["postgres"]
CI = ("postgres",)

FRAMEWORKS = [
    Framework("psycopg", "python", "pg.Psycopg", "%s", CI),
    Framework("psycopg2", "python", "pg.Psycopg2", "%s"),
    Framework("asyncpg", "python", "pg.Asyncpg", "$", CI),
    Framework("sqlalchemy", "python", "pg.SqlAlchemy", "%s", without=("copy", "listen")),
    Framework("sqlalchemy_psycopg2", "python", "pg.SqlAlchemyPsycopg2", "%s", without=("copy", "listen")),
    Framework("django", "python", "pg.Django", "%s", CI, without=("copy", "listen")),
    Framework("node_postgres", "node", "pg.Pg", "$", CI, without=("cancel",)),
    Framework("knex", "node", "pg.Knex", "?", without=("copy", "listen", "cancel")),
    Framework("drizzle", "node", "pg.Drizzle", "$", without=("copy", "listen", "cancel")),
    Framework("pgx", "go", "pgx", "$", CI),
    Framework("lib_pq", "go", "pq", "$", without=("copy", "listen")),
    Framework("gorm", "go", "gorm_pg", "?", without=("copy", "listen")),
    Framework("hikari", "java", "hikari.pgjdbc", "?", CI),
    Framework("hibernate", "java", "hibernate.pgjdbc", "?", without=("copy", "listen")),
    Framework("laravel", "php", "LaravelPostgres", "?", CI, without=("orm", "cancel")),
    Framework("activerecord", "ruby", "postgresql", "$", CI),
]

register(FRAMEWORKS, SERVERS)
