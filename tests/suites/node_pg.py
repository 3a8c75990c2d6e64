"""node-postgres (drivers/node/pg.js)."""

from weirtest.case import externals
from weirtest.external import node

SERVERS = ["postgres"]


@externals
def node_pg(target):
    return node("pg.js", target)
