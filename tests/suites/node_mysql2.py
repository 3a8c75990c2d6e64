"""mysql2 for Node (drivers/node/mysql2.js)."""

from weirtest.case import externals
from weirtest.external import node

SERVERS = ["mariadb", "mysql"]
# COM_CHANGE_USER to another account.
WEIR_USERS = {"mariadb": ["app_other"], "mysql": ["app_other"]}


@externals
def node_mysql2(target):
    return node("mysql2.js", target)
