package main

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/go-sql-driver/mysql"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
)

func myDsn(w who) string {
	return fmt.Sprintf("%s:%s@tcp(%s:%s)/%s?charset=utf8mb4&parseTime=true&time_zone=%s&sql_mode=%s&allowAllFiles=true&multiStatements=false",
		env("USER"), env("PASSWORD"), env("HOST"), env("PORT"), w.Schema, url.QueryEscape("'"+w.Offset+"'"), url.QueryEscape("'"+w.SqlMode+"'"))
}

func describeMy(err error) []any {
	var under *mysql.MySQLError
	if errors.As(err, &under) {
		return []any{fmt.Sprintf("%T", under), under.Number, string(under.SQLState[:]), under.Message}
	}
	return []any{fmt.Sprintf("%T", err), nil, err.Error()}
}

type mysqlClient struct{ sqlClient }

func newMysql(w who) adapter {
	return &mysqlClient{sqlClient{who: w, driver: "mysql", dsn: myDsn, describe_: describeMy}}
}

func (c *mysqlClient) load(sql, _ string) (any, error) { return c.execute(sql, nil) }

func newGormMy(w who) adapter {
	return &gormClient{sqlClient: sqlClient{who: w, describe_: describeMy}, dialect: func(w who) gorm.Dialector { return gormmysql.Open(myDsn(w)) }}
}
