"""go-sql-driver/mysql (drivers/go/mysql.go)."""

from weirtest.case import externals
from weirtest.external import go

SERVERS = ["mariadb", "mysql"]


@externals
def go_mysql(target):
    return go("mysql", target)
