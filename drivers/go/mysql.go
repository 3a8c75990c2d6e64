package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

func myConfig(options string) *mysql.Config {
	config, err := mysql.ParseDSN(fmt.Sprintf("%s:%s@tcp(%s:%s)/%s?%s", env("T_USER"), env("T_PASSWORD"), env("T_HOST"),
		env("T_PORT"), env("T_DB"), options))
	must(err)
	return config
}

func myOpen(options string) *sql.DB {
	connector, err := mysql.NewConnector(myConfig(options))
	must(err)
	return sql.OpenDB(connector)
}

func myError(err error) string {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return fmt.Sprintf("%d %s %s", my.Number, my.SQLState[:], my.Message)
	}
	panic(fmt.Sprintf("not an error of the server: %v", err))
}

var mysqlTests = func() []test {
	tests := []test{
		{"context_cancel", myCancel},
		{"local_infile_reader", myLocalInfile},
		{"large_packets", myLarge},
		{"multi_statements", myMulti},
		{"reset_session", myReset},
		{"many_clients", myManyClients},
		{"wrong_password", myWrongPassword},
		{"no_such_database", myNoDatabase},
	}
	for _, mode := range []struct{ name, options string }{
		{"text", "interpolateParams=true"},
		{"binary", "interpolateParams=false"},
		{"parse_time", "parseTime=true&loc=UTC"},
	} {
		mode := mode
		with := func(f func(context.Context, *sql.DB, string) (any, error)) func(context.Context) (any, error) {
			return func(ctx context.Context) (any, error) {
				db := myOpen(mode.options)
				defer db.Close()
				return f(ctx, db, "go_"+mode.name)
			}
		}
		tests = append(tests,
			test{"types_" + mode.name, with(myTypes)},
			test{"transaction_" + mode.name, with(myTransaction)},
			test{"prepared_" + mode.name, with(myPrepared)},
			test{"errors_" + mode.name, with(myErrors)},
		)
	}
	return tests
}()

func myTypes(ctx context.Context, db *sql.DB, table string) (any, error) {
	_, err := db.ExecContext(ctx, "drop table if exists "+table)
	must(err)
	_, err = db.ExecContext(ctx, "create table "+table+
		" (id int primary key auto_increment, s varchar(200), b varbinary(50), f double, d decimal(20,5), at datetime(6), n int null)")
	must(err)
	defer db.Exec("drop table " + table)
	at := time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)
	done, err := db.ExecContext(ctx, "insert into "+table+" (s, b, f, d, at, n) values (?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?)",
		"ü'\"\\", []byte{0, 1, 255}, 1.25, "12345.67891", at, nil, "", []byte{}, -0.5, "-1", at, 7)
	must(err)
	id, err := done.LastInsertId()
	must(err)
	affected, err := done.RowsAffected()
	must(err)
	check(id == 1 && affected == 2, "insert said id %d, %d rows", id, affected)
	var seen []any
	seen = append(seen, id, affected)
	rows, err := db.QueryContext(ctx, "select id, s, b, f, d, cast(at as char), n from "+table+" where id > ? order by id", 0)
	must(err)
	defer rows.Close()
	for rows.Next() {
		var id int
		var s, d, at string
		var b []byte
		var f float64
		var n sql.NullInt64
		must(rows.Scan(&id, &s, &b, &f, &d, &at, &n))
		seen = append(seen, []any{id, s, b, f, d, at, n})
	}
	return seen, rows.Err()
}

func myTransaction(ctx context.Context, db *sql.DB, table string) (any, error) {
	table += "_tx"
	_, err := db.ExecContext(ctx, "drop table if exists "+table)
	must(err)
	_, err = db.ExecContext(ctx, "create table "+table+" (id int primary key)")
	must(err)
	defer db.Exec("drop table " + table)
	tx, err := db.BeginTx(ctx, nil)
	must(err)
	_, err = tx.ExecContext(ctx, "insert into "+table+" values (?)", 1)
	must(err)
	must(tx.Rollback())
	tx, err = db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	must(err)
	_, err = tx.ExecContext(ctx, "insert into "+table+" values (?)", 2)
	must(err)
	_, err = tx.ExecContext(ctx, "insert into "+table+" values (?)", 2)
	duplicate := myError(err)
	_, err = tx.ExecContext(ctx, "insert into "+table+" values (?)", 3)
	must(err)
	must(tx.Commit())
	tx, err = db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	must(err)
	_, err = tx.ExecContext(ctx, "insert into "+table+" values (?)", 4)
	readOnly := myError(err)
	must(tx.Rollback())
	var n, sum int
	must(db.QueryRowContext(ctx, "select count(*), sum(id) from "+table).Scan(&n, &sum))
	check(n == 2 && sum == 5, "%d rows, sum %d", n, sum)
	return []any{n, sum, duplicate, readOnly}, nil
}

func myPrepared(ctx context.Context, db *sql.DB, _ string) (any, error) {
	stmt, err := db.PrepareContext(ctx, "select ?, ? + 1, repeat(?, 3)")
	must(err)
	defer stmt.Close()
	var seen []string
	for i := 0; i < 5; i++ {
		var a, c string
		var b float64
		must(stmt.QueryRowContext(ctx, i, i, fmt.Sprint(i)).Scan(&a, &b, &c))
		seen = append(seen, fmt.Sprint(a, b, c))
	}
	_, err = db.PrepareContext(ctx, "select from nothing at all")
	return append(seen, myError(err)), nil
}

func myErrors(ctx context.Context, db *sql.DB, _ string) (any, error) {
	var seen []string
	for _, text := range []string{"select * from no_such_table", "selec 1", "insert into no_such_table values (1)"} {
		_, err := db.ExecContext(ctx, text)
		seen = append(seen, myError(err))
		must(db.PingContext(ctx))
	}
	return seen, nil
}

func myCancel(ctx context.Context) (any, error) {
	db := myOpen("")
	defer db.Close()
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err := db.ExecContext(short, "select sleep(50)")
	check(errors.Is(err, context.DeadlineExceeded), "a cancelled query said %v", err)
	var one int
	return one, db.QueryRowContext(ctx, "select 1").Scan(&one)
}

func myLocalInfile(ctx context.Context) (any, error) {
	db := myOpen("")
	defer db.Close()
	_, err := db.ExecContext(ctx, "drop table if exists go_infile")
	must(err)
	_, err = db.ExecContext(ctx, "create table go_infile (id int, s varchar(2000))")
	must(err)
	defer db.Exec("drop table go_infile")
	mysql.RegisterReaderHandler("rows", func() io.Reader {
		var text strings.Builder
		for i := 0; i < 20000; i++ {
			fmt.Fprintf(&text, "%d\t%s\n", i, strings.Repeat("z", i%100))
		}
		return strings.NewReader(text.String())
	})
	done, err := db.ExecContext(ctx, "load data local infile 'Reader::rows' into table go_infile")
	must(err)
	affected, _ := done.RowsAffected()
	var sum int
	must(db.QueryRowContext(ctx, "select sum(length(s)) from go_infile").Scan(&sum))
	check(affected == 20000, "loaded %d rows", affected)
	// A file the client does not allow: the error is the driver's own, and the connection must go on.
	_, err = db.ExecContext(ctx, "load data local infile '/etc/hostname' into table go_infile")
	check(err != nil, "a file that was not allowed was loaded")
	must(db.PingContext(ctx))
	return []any{affected, sum}, nil
}

func myLarge(ctx context.Context) (any, error) {
	db := myOpen("maxAllowedPacket=0&interpolateParams=true")
	defer db.Close()
	var seen []int
	// One below, at and above the size at which a packet splits, and two splits.
	for _, size := range []int{1<<24 - 100, 1<<24 - 1, 1 << 24, 1<<24 + 1, 1<<25 + 7} {
		var length int
		var back string
		text := strings.Repeat("m", size)
		must(db.QueryRowContext(ctx, "select length(?), ?", text, text).Scan(&length, &back))
		check(length == size && back == text, "sent %d bytes, the server saw %d, %d came back", size, length, len(back))
		seen = append(seen, length)
	}
	return seen, nil
}

func myMulti(ctx context.Context) (any, error) {
	db := myOpen("multiStatements=true")
	defer db.Close()
	rows, err := db.QueryContext(ctx, "select 1; select 'two', 2; do 0; select 3 where 1 = 0; select * from no_such_table; select 4")
	must(err)
	defer rows.Close()
	var seen []any
	for {
		columns, err := rows.Columns()
		must(err)
		n := 0
		for rows.Next() {
			n++
		}
		seen = append(seen, []any{columns, n})
		if !rows.NextResultSet() {
			break
		}
	}
	seen = append(seen, myError(rows.Err()))
	must(rows.Close())
	off := myOpen("")
	defer off.Close()
	_, err = off.ExecContext(ctx, "select 1; select 2")
	return append(seen, myError(err)[:4]), nil
}

func myReset(ctx context.Context) (any, error) {
	db := myOpen("time_zone=%27%2B03%3A00%27")
	defer db.Close()
	db.SetMaxOpenConns(1)
	var zone string
	for i := 0; i < 5; i++ {
		conn, err := db.Conn(ctx)
		must(err)
		must(conn.QueryRowContext(ctx, "select @@time_zone").Scan(&zone))
		check(zone == "+03:00", "time zone %s on use %d", zone, i)
		must(conn.Close())
	}
	return zone, nil
}

func myManyClients(ctx context.Context) (any, error) {
	failures := make(chan error, 40)
	for c := 0; c < 40; c++ {
		c := c
		go func() {
			db := myOpen("")
			db.SetMaxOpenConns(1)
			defer db.Close()
			var err error
			for i := 0; i < 25 && err == nil; i++ {
				var got string
				want := fmt.Sprintf("client %d query %d", c, i)
				err = db.QueryRowContext(ctx, fmt.Sprintf("select ? /* %d */", c%10), want).Scan(&got)
				if err == nil && got != want {
					err = fmt.Errorf("asked for %q, got %q", want, got)
				}
			}
			failures <- err
		}()
	}
	for c := 0; c < 40; c++ {
		if err := <-failures; err != nil {
			return nil, err
		}
	}
	return 40, nil
}

func myWrongPassword(ctx context.Context) (any, error) {
	config := myConfig("")
	config.Passwd = "not-the-password"
	connector, err := mysql.NewConnector(config)
	must(err)
	db := sql.OpenDB(connector)
	defer db.Close()
	return myError(db.PingContext(ctx))[:4], nil
}

func myNoDatabase(ctx context.Context) (any, error) {
	db := myOpen("")
	defer db.Close()
	conn, err := db.Conn(ctx)
	must(err)
	defer conn.Close()
	_, err = conn.ExecContext(ctx, "use no_such_database")
	unknown := myError(err)
	_, err = conn.ExecContext(ctx, "use app2")
	must(err)
	var name string
	must(conn.QueryRowContext(ctx, "select database()").Scan(&name))
	check(name == "app2", "in %s after use app2", name)
	return []any{unknown, name}, nil
}
