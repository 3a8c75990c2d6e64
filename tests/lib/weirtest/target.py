"""Where a test connects to, and what is known of the servers behind it."""

import os
from dataclasses import dataclass, replace

PASSWORD = os.environ.get("WEIR_TEST_PASSWORD", "")
DEFAULT_USER = {"postgres": "app_scram", "mariadb": "app", "mysql": "app"}


def server_env(kind, name, default=None):
    """What `servers env` says of one server, e.g. server_env("postgres", "PORT")."""
    key = f"WEIR_TEST_{kind.upper()}_{name}"
    value = os.environ.get(key, default)
    if value is None:
        raise KeyError(f"{key}: is the server up?")
    return value


@dataclass(frozen=True)
class Target:
    """A place that speaks a database's protocol: the server itself or Weir in front of it."""

    kind: str  # postgres, mariadb or mysql
    way: str  # direct, or the pool mode
    host: str
    port: int
    user: str
    password: str
    database: str = "app"
    weir: object = None  # the Weir process, when it is one

    @property
    def direct(self):
        return self.way == "direct"

    def login(self, user, password=None):
        """The same place by another user."""
        return replace(self, user=user, password=PASSWORD if password is None else password)

    def within(self, database):
        """The same place, another database."""
        return replace(self, database=database)

    @property
    def table_prefix(self):
        """Suites run at the same time on one server: each has its own names."""
        return os.environ.get("WEIR_SUITE", "t").split("[")[0]


def direct_target(kind, port=None):
    return Target(kind, "direct", "127.0.0.1", int(port or server_env(kind, "PORT")), DEFAULT_USER[kind], PASSWORD)


def superuser(kind="postgres", port=None, database="app"):
    """Sees everything on the server itself, for counting what Weir does there."""
    user = {"postgres": "postgres", "mariadb": "app_other", "mysql": "app_other"}[kind]
    password = "" if kind == "postgres" else PASSWORD
    return Target(kind, "direct", "127.0.0.1", int(port or server_env(kind, "PORT")), user, password, database)
