package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

func env(name string) string { return os.Getenv("T_" + name) }

// As URLs and DSNs have it.
func pgDsn(w who) string {
	return fmt.Sprintf("host=%s port=%s user=%s password=%s dbname=%s sslmode=disable application_name='%s' search_path=%s TimeZone=%s",
		env("HOST"), env("PORT"), env("USER"), env("PASSWORD"), env("DB"), w.Application, w.Schema, w.Zone)
}

func describePg(err error) []any {
	under := err
	var state any
	var a *pgconn.PgError
	var b *pq.Error
	if errors.As(err, &a) {
		under, state = a, a.Code
	} else if errors.As(err, &b) {
		under, state = b, string(b.Code)
	}
	return []any{fmt.Sprintf("%T", under), state, strings.Split(under.Error(), "\n")[0]}
}

// pgx by itself: statements prepared and cached by the driver.
type pgxClient struct {
	who
	db     *pgx.Conn
	levels []pgx.Tx
}

type pgxRunner interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Begin(ctx context.Context) (pgx.Tx, error)
}

func (c *pgxClient) at() pgxRunner {
	if len(c.levels) > 0 {
		return c.levels[len(c.levels)-1]
	}
	return c.db
}

func (c *pgxClient) open() (err error) {
	c.db, err = pgx.Connect(context.Background(), pgDsn(c.who))
	return err
}
func (c *pgxClient) close()                   { c.db.Close(context.Background()) }
func (c *pgxClient) describe(err error) []any { return describePg(err) }

func (c *pgxClient) execute(sql string, params []any) (any, error) {
	tag, err := c.at().Exec(context.Background(), sql, params...)
	return tag.String(), err
}

func (c *pgxClient) query(sql string, params []any) ([][]any, error) {
	return c.queryWith(context.Background(), sql, params)
}

func (c *pgxClient) queryWith(ctx context.Context, sql string, params []any) ([][]any, error) {
	rows, err := c.at().Query(ctx, sql, params...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
}

func (c *pgxClient) prepared(sql string, params []any) ([][]any, error) {
	name := fmt.Sprintf("s%x", len(sql)*1000+int(sql[len(sql)-1]))
	if _, err := c.db.Prepare(context.Background(), name+sql, sql); err != nil {
		return nil, err
	}
	return c.query(name+sql, params)
}

func (c *pgxClient) transaction(body func(), commit bool) error {
	tx, err := c.at().Begin(context.Background())
	if err != nil {
		return err
	}
	c.levels = append(c.levels, tx)
	body()
	c.levels = c.levels[:len(c.levels)-1]
	if commit {
		return tx.Commit(context.Background())
	}
	return tx.Rollback(context.Background())
}
func (c *pgxClient) savepoint(body func(), release bool) error { return c.transaction(body, release) }

func (c *pgxClient) cancelled(ctx context.Context, sql string) error {
	_, err := c.queryWith(ctx, sql, nil)
	// pgx closes a connection whose context has ended.
	c.close()
	if again := c.open(); again != nil {
		return again
	}
	return err
}

func (c *pgxClient) copyIn(sql, text string) (any, error) {
	tag, err := c.db.PgConn().CopyFrom(context.Background(), strings.NewReader(text), sql)
	return tag.String(), err
}

func (c *pgxClient) copyOut(sql string) (any, error) {
	var out bytes.Buffer
	_, err := c.db.PgConn().CopyTo(context.Background(), &out, sql)
	return out.String(), err
}

func (c *pgxClient) listen(channel, payload string) (any, error) {
	if _, err := c.execute("LISTEN "+channel, nil); err != nil {
		return nil, err
	}
	if _, err := c.execute("SELECT pg_notify($1, $2)", []any{channel, payload}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	said, err := c.db.WaitForNotification(ctx)
	if err != nil {
		return nil, err
	}
	_, err = c.execute("UNLISTEN "+channel, nil)
	return said.Payload, err
}

// database/sql, a pool of one connection: what its drivers have in common.
type sqlClient struct {
	who
	driver    string
	dsn       func(who) string
	begin     func(*sql.DB) error
	describe_ func(error) []any
	db        *sql.DB
	tx        *sql.Tx
}

type sqlRunner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

func (c *sqlClient) at() sqlRunner {
	if c.tx != nil {
		return c.tx
	}
	return c.db
}

func (c *sqlClient) open() (err error) {
	if c.db, err = sql.Open(c.driver, c.dsn(c.who)); err != nil {
		return err
	}
	c.db.SetMaxOpenConns(1)
	return c.db.Ping()
}
func (c *sqlClient) close()                   { c.db.Close() }
func (c *sqlClient) describe(err error) []any { return c.describe_(err) }

func (c *sqlClient) execute(text string, params []any) (any, error) {
	result, err := c.at().ExecContext(context.Background(), text, params...)
	if err != nil {
		return nil, err
	}
	rows, err := result.RowsAffected()
	id, _ := result.LastInsertId()
	return []any{rows, id}, err
}

func collect(rows *sql.Rows, err error) ([][]any, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	out := [][]any{}
	for rows.Next() {
		row, to := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			return nil, err
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = string(b)
			}
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

func (c *sqlClient) query(text string, params []any) ([][]any, error) {
	return collect(c.at().QueryContext(context.Background(), text, params...))
}

func (c *sqlClient) prepared(text string, params []any) ([][]any, error) {
	statement, err := c.at().PrepareContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	defer statement.Close()
	return collect(statement.Query(params...))
}

func (c *sqlClient) transaction(body func(), commit bool) (err error) {
	if c.tx, err = c.db.Begin(); err != nil {
		c.tx = nil
		return err
	}
	tx := c.tx
	body()
	c.tx = nil
	if commit {
		return tx.Commit()
	}
	return tx.Rollback()
}

func (c *sqlClient) savepoint(body func(), release bool) error {
	if _, err := c.execute("SAVEPOINT apps", nil); err != nil {
		return err
	}
	body()
	end := "ROLLBACK TO SAVEPOINT apps"
	if release {
		end = "RELEASE SAVEPOINT apps"
	}
	_, err := c.execute(end, nil)
	return err
}

func (c *sqlClient) cancelled(ctx context.Context, text string) error {
	_, err := collect(c.db.QueryContext(ctx, text))
	return err
}

func newPq(w who) adapter {
	return &sqlClient{who: w, driver: "postgres", dsn: pgDsn, describe_: describePg}
}

// GORM: its own transactions, migrations and objects.
type gormClient struct {
	sqlClient
	dialect func(who) gorm.Dialector
	gorm    *gorm.DB
	levels  []*gorm.DB
}

func newGormPg(w who) adapter {
	return &gormClient{sqlClient: sqlClient{who: w, describe_: describePg}, dialect: func(w who) gorm.Dialector { return postgres.Open(pgDsn(w)) }}
}
