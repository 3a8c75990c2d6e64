"""pgx, the Go driver (drivers/go/pgx.go)."""

from weirtest.case import externals
from weirtest.external import go

SERVERS = ["postgres"]


@externals
def pgx(target):
    return go("pgx", target)
