package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func pgURL() string {
	return fmt.Sprintf("postgres://%s:%s@%s:%s/%s?sslmode=disable", env("T_USER"), env("T_PASSWORD"), env("T_HOST"),
		env("T_PORT"), env("T_DB"))
}

func pgConnect(ctx context.Context, mode pgx.QueryExecMode) *pgx.Conn {
	config, err := pgx.ParseConfig(pgURL())
	must(err)
	config.DefaultQueryExecMode = mode
	conn, err := pgx.ConnectConfig(ctx, config)
	must(err)
	return conn
}

// pgState returns SQLSTATE and text of a server's error.
func pgState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code + " " + pg.Message
	}
	panic(fmt.Sprintf("not an error of the server: %v", err))
}

var execModes = []struct {
	name string
	mode pgx.QueryExecMode
}{
	{"simple", pgx.QueryExecModeSimpleProtocol},
	{"exec", pgx.QueryExecModeExec},
	{"describe", pgx.QueryExecModeDescribeExec},
	{"cache_describe", pgx.QueryExecModeCacheDescribe},
	{"cache_statement", pgx.QueryExecModeCacheStatement},
}

var pgxTests = func() []test {
	tests := []test{
		{"copy_from", pgxCopyFrom},
		{"copy_out", pgxCopyOut},
		{"cancel_by_context", pgxCancel},
		{"listen_notify", pgxListen},
		{"batch_implicit_transaction", pgxBatchImplicit},
		{"pipeline", pgxPipeline},
		{"prepare_close", pgxPrepareClose},
		{"many_clients", pgxManyClients},
	}
	for _, m := range execModes {
		m := m
		with := func(f func(context.Context, *pgx.Conn) (any, error)) func(context.Context) (any, error) {
			return func(ctx context.Context) (any, error) {
				conn := pgConnect(ctx, m.mode)
				defer conn.Close(context.Background())
				return f(ctx, conn)
			}
		}
		tests = append(tests,
			test{"types_" + m.name, with(pgxTypes)},
			test{"transaction_" + m.name, with(pgxTransaction)},
			test{"batch_" + m.name, with(pgxBatch)},
			test{"errors_" + m.name, with(pgxErrors)},
		)
	}
	return tests
}()

func pgxTypes(ctx context.Context, conn *pgx.Conn) (any, error) {
	var seen []any
	for i := 0; i < 3; i++ {
		var n int64
		var f float64
		var s string
		var b []byte
		var at time.Time
		var list []int32
		var none *string
		err := conn.QueryRow(ctx, "select $1::int8 + 1, $2::float8, $3::text, $4::bytea, $5::timestamptz, $6::int4[], null::text",
			int64(41+i), 1.5, "ü'\"\\", []byte{0, 1, 255}, time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC),
			[]int32{1, 2, 3}).Scan(&n, &f, &s, &b, &at, &list, &none)
		if err != nil {
			return nil, err
		}
		check(n == int64(42+i) && s == "ü'\"\\" && bytes.Equal(b, []byte{0, 1, 255}) && none == nil, "wrong values %v %v %v", n, s, b)
		seen = append(seen, []any{n, f, s, b, at.UTC().String(), list})
	}
	rows, err := conn.Query(ctx, "select i, repeat('x', i) from generate_series(1, 300) i where i > $1", 100)
	if err != nil {
		return nil, err
	}
	total := 0
	for rows.Next() {
		var i int
		var s string
		must(rows.Scan(&i, &s))
		check(len(s) == i, "row %d has %d bytes", i, len(s))
		total += i
	}
	return append(seen, total, rows.CommandTag().String()), rows.Err()
}

func pgxTransaction(ctx context.Context, conn *pgx.Conn) (any, error) {
	table := "go_tx_" + strings.ReplaceAll(conn.Config().DefaultQueryExecMode.String(), " ", "_")
	_, err := conn.Exec(ctx, "drop table if exists "+table)
	must(err)
	_, err = conn.Exec(ctx, "create table "+table+" (id int primary key, v text)")
	must(err)
	tx, err := conn.Begin(ctx)
	must(err)
	_, err = tx.Exec(ctx, "insert into "+table+" values ($1, $2)", 1, "one")
	must(err)
	must(tx.Rollback(ctx))
	tx, err = conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable})
	must(err)
	_, err = tx.Exec(ctx, "insert into "+table+" values ($1, $2)", 2, "two")
	must(err)
	inner, err := tx.Begin(ctx)
	must(err)
	_, err = inner.Exec(ctx, "insert into "+table+" values ($1, $2)", 2, "again")
	duplicate := pgState(err)
	must(inner.Rollback(ctx))
	_, err = tx.Exec(ctx, "insert into "+table+" values ($1, $2)", 3, "three")
	must(err)
	must(tx.Commit(ctx))
	var ids []int32
	must(conn.QueryRow(ctx, "select array_agg(id order by id) from "+table).Scan(&ids))
	check(fmt.Sprint(ids) == "[2 3]", "rows %v", ids)
	_, err = conn.Exec(ctx, "drop table "+table)
	return []any{ids, duplicate}, err
}

func pgxBatch(ctx context.Context, conn *pgx.Conn) (any, error) {
	batch := &pgx.Batch{}
	for i := 0; i < 50; i++ {
		batch.Queue("select $1::int4 * 2", i)
	}
	results := conn.SendBatch(ctx, batch)
	sum := 0
	for i := 0; i < 50; i++ {
		var n int
		if err := results.QueryRow().Scan(&n); err != nil {
			return nil, err
		}
		check(n == i*2, "answer %d of the batch is %d", i, n)
		sum += n
	}
	return sum, results.Close()
}

func pgxErrors(ctx context.Context, conn *pgx.Conn) (any, error) {
	var seen []string
	for _, sql := range []string{"select * from no_such_table", "select 1/0", "selec 1", "select 'x'::int4"} {
		_, err := conn.Exec(ctx, sql)
		seen = append(seen, pgState(err))
		var one int
		must(conn.QueryRow(ctx, "select 1").Scan(&one))
	}
	_, err := conn.Exec(ctx, "select $1::int4 / $2::int4", 1, 0)
	return append(seen, pgState(err)), nil
}

func pgxBatchImplicit(ctx context.Context) (any, error) {
	conn := pgConnect(ctx, pgx.QueryExecModeCacheStatement)
	defer conn.Close(context.Background())
	_, err := conn.Exec(ctx, "drop table if exists go_implicit; create table go_implicit (id int primary key)")
	must(err)
	batch := &pgx.Batch{}
	batch.Queue("insert into go_implicit values ($1)", 1)
	batch.Queue("insert into go_implicit values ($1)", 2)
	batch.Queue("insert into go_implicit values ($1)", 1)
	batch.Queue("insert into go_implicit values ($1)", 3)
	failure := pgState(conn.SendBatch(ctx, batch).Close())
	var n int
	must(conn.QueryRow(ctx, "select count(*) from go_implicit").Scan(&n))
	check(n == 0, "a failed batch left %d rows", n)
	_, err = conn.Exec(ctx, "drop table go_implicit")
	return failure, err
}

func pgxPipeline(ctx context.Context) (any, error) {
	conn := pgConnect(ctx, pgx.QueryExecModeExec)
	defer conn.Close(context.Background())
	pipe := conn.PgConn().StartPipeline(ctx)
	one := func(sql string) { pipe.SendQueryParams(sql, nil, nil, nil, nil) }
	one("select 'a'")
	one("select 1/0")
	one("select 'skipped'")
	must(pipe.Sync())
	one("select 'b'")
	pipe.SendPrepare("go_pipe", "select $1::text", nil)
	must(pipe.Sync())
	pipe.SendQueryPrepared("go_pipe", [][]byte{[]byte("c")}, nil, nil)
	pipe.SendDeallocate("go_pipe")
	must(pipe.Sync())
	var seen []string
	for i := 0; i < 20; i++ {
		got, err := pipe.GetResults()
		if err != nil {
			seen = append(seen, pgState(err))
			continue
		}
		switch r := got.(type) {
		case *pgconn.ResultReader:
			for r.NextRow() {
				seen = append(seen, string(r.Values()[0]))
			}
			if _, err := r.Close(); err != nil {
				seen = append(seen, pgState(err))
			}
		case nil:
			seen = append(seen, "nothing")
			i = 20
		default:
			seen = append(seen, fmt.Sprintf("%T", r))
		}
	}
	return seen, pipe.Close()
}

func pgxPrepareClose(ctx context.Context) (any, error) {
	conn := pgConnect(ctx, pgx.QueryExecModeCacheStatement)
	defer conn.Close(context.Background())
	for i := 0; i < 3; i++ {
		_, err := conn.Prepare(ctx, "go_named", "select $1::int4 + 1")
		must(err)
		var n int
		must(conn.QueryRow(ctx, "go_named", 1).Scan(&n))
		check(n == 2, "prepared statement said %d", n)
		must(conn.Deallocate(ctx, "go_named"))
	}
	must(conn.DeallocateAll(ctx))
	var n int
	return n, conn.QueryRow(ctx, "select $1::int4 + 1", 5).Scan(&n)
}

func pgxCopyFrom(ctx context.Context) (any, error) {
	conn := pgConnect(ctx, pgx.QueryExecModeCacheStatement)
	defer conn.Close(context.Background())
	_, err := conn.Exec(ctx, "drop table if exists go_copy; create table go_copy (id int primary key, v text)")
	must(err)
	rows := make([][]any, 5000)
	for i := range rows {
		rows[i] = []any{i, strings.Repeat("v", i%200)}
	}
	n, err := conn.CopyFrom(ctx, pgx.Identifier{"go_copy"}, []string{"id", "v"}, pgx.CopyFromRows(rows))
	must(err)
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"go_copy"}, []string{"id", "v"}, pgx.CopyFromRows(rows))
	duplicate := pgState(err)
	var count, bytesIn int
	must(conn.QueryRow(ctx, "select count(*), sum(length(v)) from go_copy").Scan(&count, &bytesIn))
	check(count == 5000, "%d rows after the copy", count)
	_, err = conn.Exec(ctx, "drop table go_copy")
	return []any{n, count, bytesIn, duplicate}, err
}

func pgxCopyOut(ctx context.Context) (any, error) {
	conn := pgConnect(ctx, pgx.QueryExecModeCacheStatement)
	defer conn.Close(context.Background())
	var out bytes.Buffer
	tag, err := conn.PgConn().CopyTo(ctx, &out, "copy (select i, repeat('y', 100) from generate_series(1, 20000) i) to stdout")
	must(err)
	_, err = conn.PgConn().CopyTo(ctx, io.Discard, "copy (select 1/(10000-i) from generate_series(1, 20000) i) to stdout")
	return []any{out.Len(), tag.String(), pgState(err)}, nil
}

func pgxCancel(ctx context.Context) (any, error) {
	config, err := pgconn.ParseConfig(pgURL())
	must(err)
	conn, err := pgconn.ConnectConfig(ctx, config)
	must(err)
	defer conn.Close(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Exec(ctx, "select pg_sleep(50)").ReadAll()
		ended <- err
	}()
	// A cancel request may overtake the query, so ask until it ends.
	for {
		must(conn.CancelRequest(ctx))
		select {
		case err := <-ended:
			state := pgState(err)
			check(strings.HasPrefix(state, "57014"), "cancelled with %s", state)
			_, err = conn.Exec(ctx, "select 1").ReadAll()
			return state, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func pgxListen(ctx context.Context) (any, error) {
	listener := pgConnect(ctx, pgx.QueryExecModeCacheStatement)
	defer listener.Close(context.Background())
	speaker := pgConnect(ctx, pgx.QueryExecModeCacheStatement)
	defer speaker.Close(context.Background())
	_, err := listener.Exec(ctx, "listen go_channel")
	must(err)
	for _, text := range []string{"first", "second"} {
		_, err = speaker.Exec(ctx, "select pg_notify('go_channel', $1)", text)
		must(err)
	}
	var seen []string
	for len(seen) < 2 {
		n, err := listener.WaitForNotification(ctx)
		must(err)
		seen = append(seen, n.Channel+" "+n.Payload)
	}
	return seen, nil
}

func pgxManyClients(ctx context.Context) (any, error) {
	failures := make(chan error, 40)
	for c := 0; c < 40; c++ {
		c := c
		go func() {
			conn, err := pgx.Connect(ctx, pgURL())
			if err != nil {
				failures <- err
				return
			}
			defer conn.Close(context.Background())
			for i := 0; i < 25 && err == nil; i++ {
				var got string
				want := fmt.Sprintf("client %d query %d", c, i)
				// As many texts as clients, so that servers meet statements of other clients.
				err = conn.QueryRow(ctx, fmt.Sprintf("select $1::text /* %d */", c%10), want).Scan(&got)
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
