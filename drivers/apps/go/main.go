// An application-shaped program in Go: plays the steps that it is told in many clients at once. What apps.py does in Python.
// T_FRAMEWORK names the adapter.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

const cancelAgain = time.Second

// What a program is told of a client.
type who struct {
	Application, Schema, Zone, Offset string
	SqlMode                           string `json:"sql_mode"`
}

// What a framework must be able to do; it knows one client.
type adapter interface {
	open() error
	close()
	execute(sql string, params []any) (any, error)
	query(sql string, params []any) ([][]any, error)
	prepared(sql string, params []any) ([][]any, error)
	transaction(body func(), commit bool) error
	savepoint(body func(), release bool) error
	// A statement that is cancelled when its context is.
	cancelled(ctx context.Context, sql string) error
	describe(err error) []any
}

type ormer interface{ orm() (any, error) }
type copier interface {
	copyIn(sql, text string) (any, error)
	copyOut(sql string) (any, error)
}
type listener interface {
	listen(channel, payload string) (any, error)
}
type loader interface {
	load(sql, file string) (any, error)
}

var errRollback = errors.New("rolled back on purpose")

var frameworks = map[string]func(who) adapter{
	"pgx":     func(w who) adapter { return &pgxClient{who: w} },
	"pq":      func(w who) adapter { return newPq(w) },
	"gorm_pg": func(w who) adapter { return newGormPg(w) },
	"mysql":   func(w who) adapter { return newMysql(w) },
	"gorm_my": func(w who) adapter { return newGormMy(w) },
}

// As JSON has it, and the same each time.
func plain(v any) any {
	switch v := v.(type) {
	case nil, bool, string, int, int32, int64, float64:
		return v
	case []byte:
		return "bytes " + hex.EncodeToString(v)
	case time.Time:
		return "time " + v.Format(time.RFC3339Nano)
	case [][]any:
		out := make([]any, len(v))
		for i, row := range v {
			out[i] = plain(row)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = plain(x)
		}
		return out
	case fmt.Stringer:
		return fmt.Sprintf("%T %s", v, v.String())
	default:
		return fmt.Sprintf("%T %v", v, v)
	}
}

func params(raw any) []any {
	list, _ := raw.([]any)
	out := make([]any, len(list))
	for i, v := range list {
		if f, ok := v.(float64); ok {
			v = int64(f)
		}
		out[i] = v
	}
	return out
}

type client struct{ adapter adapter }

func (c *client) all(steps []any) []any {
	seen := []any{}
	for _, step := range steps {
		got, err := c.one(step.([]any))
		if err != nil {
			got = map[string]any{"error": c.adapter.describe(err)}
		}
		seen = append(seen, got)
	}
	return seen
}

func text(step []any, i int) string { s, _ := step[i].(string); return s }

func (c *client) one(step []any) (any, error) {
	a := c.adapter
	switch what := text(step, 0); what {
	case "open":
		return nil, a.open()
	case "close":
		a.close()
		return nil, nil
	case "reconnect":
		a.close()
		return nil, a.open()
	case "execute":
		return a.execute(text(step, 1), params(step[2]))
	case "query":
		rows, err := a.query(text(step, 1), params(step[2]))
		return plain(rows), err
	case "prepared":
		seen := []any{}
		for _, run := range step[2].([]any) {
			rows, err := a.prepared(text(step, 1), params(run))
			if err != nil {
				return nil, err
			}
			seen = append(seen, plain(rows))
		}
		return seen, nil
	case "fails":
		if _, err := a.query(text(step, 1), params(step[2])); err != nil {
			return a.describe(err), nil
		}
		return "no error", nil
	case "transaction", "savepoint":
		how := a.transaction
		if what == "savepoint" {
			how = a.savepoint
		}
		var seen []any
		err := how(func() { seen = c.all(step[1].([]any)) }, step[2].(bool))
		return seen, err
	case "queue":
		return nil, c.queue(text(step, 1), text(step, 2))
	case "migrate":
		var failed error
		err := a.transaction(func() {
			for _, statement := range step[1].([]any) {
				if _, err := a.execute(statement.(string), nil); err != nil && failed == nil {
					failed = err
				}
			}
		}, true)
		return nil, errors.Join(failed, err)
	case "orm":
		if o, ok := a.(ormer); ok {
			return o.orm()
		}
		return nil, nil
	case "stream":
		rows, err := a.query(text(step, 1), nil)
		total := 0
		for _, row := range rows {
			for _, b := range []byte(fmt.Sprint(plain(row[len(row)-1]))) {
				total = (total*31 + int(b)) % 1_000_003
			}
		}
		return []any{len(rows), total}, err
	case "copy_in":
		return a.(copier).copyIn(text(step, 1), text(step, 2))
	case "copy_out":
		return a.(copier).copyOut(text(step, 1))
	case "listen":
		return a.(listener).listen(text(step, 1), text(step, 2))
	case "load":
		return c.load(text(step, 1), text(step, 2))
	case "cancel":
		ctx, cancel := context.WithCancel(context.Background())
		timer := time.AfterFunc(100*time.Millisecond, cancel)
		defer timer.Stop()
		if err := a.cancelled(ctx, text(step, 1)); err != nil {
			return a.describe(err), nil
		}
		return "no error", nil
	default:
		return nil, fmt.Errorf("no step %q", what)
	}
}

// A worker of a job queue: takes and does jobs until there are none.
func (c *client) queue(take, done string) error {
	for {
		var found [][]any
		var failed error
		err := c.adapter.transaction(func() {
			if found, failed = c.adapter.query(take, nil); failed != nil {
				return
			}
			for _, row := range found {
				if _, failed = c.adapter.execute(done, []any{row[0]}); failed != nil {
					return
				}
			}
		}, true)
		if err := errors.Join(failed, err); err != nil || len(found) == 0 {
			return err
		}
	}
}

func (c *client) load(sql, rows string) (any, error) {
	f, err := os.CreateTemp("", "weir-apps-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	f.WriteString(rows)
	f.Close()
	return c.adapter.(loader).load(strings.Replace(sql, "{file}", f.Name(), 1), f.Name())
}

func main() {
	make := frameworks[os.Getenv("T_FRAMEWORK")]
	clients := map[string]*client{}
	var out sync.Mutex
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var told struct {
			Clients map[string]who
			Steps   map[string][]any
		}
		if err := json.Unmarshal(in.Bytes(), &told); err != nil {
			panic(err)
		}
		for number, w := range told.Clients {
			clients[number] = &client{make(w)}
		}
		for number, steps := range told.Steps {
			go func() {
				line, err := json.Marshal(map[string]any{"client": number, "seen": clients[number].all(steps)})
				if err != nil {
					panic(err)
				}
				out.Lock()
				defer out.Unlock()
				fmt.Println(string(line))
			}()
		}
	}
}
