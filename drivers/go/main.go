// The Go drivers against one server, named by the environment (see tests/lib/weirtest/external.py). Prints one JSON
// object a line for each test: name, ok, seen (what the driver saw, to be compared between direct and through Weir),
// error or skip. Builds with Go 1.19.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

type test struct {
	name string
	run  func(ctx context.Context) (any, error)
}

type result struct {
	Name  string `json:"name"`
	Ok    bool   `json:"ok"`
	Seen  any    `json:"seen,omitempty"`
	Error string `json:"error,omitempty"`
}

// deadline bounds a test that hangs; no test is about time.
const deadline = 60 * time.Second

func runOne(t test) (r result) {
	r.Name = t.name
	defer func() {
		if p := recover(); p != nil {
			r.Ok = false
			r.Error = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	seen, err := t.run(ctx)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	r.Ok = true
	r.Seen = seen
	return r
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(ok bool, format string, args ...any) {
	if !ok {
		panic(fmt.Sprintf(format, args...))
	}
}

func env(name string) string {
	value := os.Getenv(name)
	if value == "" && name != "T_PASSWORD" {
		panic(name + " is not set")
	}
	return value
}

func main() {
	suites := map[string][]test{"pgx": pgxTests, "mysql": mysqlTests, "tls": tlsTests()}
	if len(os.Args) != 2 || suites[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: weir-drivers pgx|mysql|tls")
		os.Exit(2)
	}
	out := json.NewEncoder(os.Stdout)
	for _, t := range suites[os.Args[1]] {
		must(out.Encode(runOne(t)))
	}
}
