package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
)

// tlsCase is one login: with which mode (disable, require, verify-ca, verify-full), and who is trusted.
type tlsCase struct {
	Name string `json:"name"`
	Mode string `json:"mode"`
	CA   string `json:"ca"`
}

// tlsTests come from the environment; what each sees is "clear" or "TLS", and an error is a refusal.
func tlsTests() []test {
	var cases []tlsCase
	if text := os.Getenv("T_TLS"); text != "" {
		must(json.Unmarshal([]byte(text), &cases))
	}
	var tests []test
	for _, c := range cases {
		c := c
		tests = append(tests, test{c.Name, func(ctx context.Context) (any, error) {
			if env("T_KIND") == "postgres" {
				return tlsPostgres(ctx, c)
			}
			return tlsMysql(ctx, c)
		}})
	}
	return tests
}

func tlsPostgres(ctx context.Context, c tlsCase) (any, error) {
	url := fmt.Sprintf("postgres://%s:%s@%s:%s/%s?sslmode=%s", env("T_USER"), env("T_PASSWORD"), env("T_HOST"), env("T_PORT"), env("T_DB"), c.Mode)
	if c.Mode == "verify-ca" || c.Mode == "verify-full" {
		url += "&sslrootcert=" + c.CA
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	var one int
	if err := conn.QueryRow(ctx, "select 1").Scan(&one); err != nil {
		return nil, err
	}
	if _, inside := conn.PgConn().Conn().(*tls.Conn); inside {
		return "TLS", nil
	}
	return "clear", nil
}

func tlsMysql(ctx context.Context, c tlsCase) (any, error) {
	options := ""
	if c.Mode != "disable" {
		pem, err := os.ReadFile(c.CA)
		must(err)
		roots := x509.NewCertPool()
		check(roots.AppendCertsFromPEM(pem), "no certificate in %s", c.CA)
		how := &tls.Config{RootCAs: roots, ServerName: env("T_HOST"), InsecureSkipVerify: c.Mode != "verify-full"}
		if c.Mode == "verify-ca" {
			how.VerifyConnection = func(state tls.ConnectionState) error {
				if len(state.PeerCertificates) == 0 {
					return errors.New("no certificate")
				}
				_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots})
				return err
			}
		}
		must(mysql.RegisterTLSConfig(c.Name, how))
		options = "tls=" + c.Name
	}
	db := myOpen(options)
	defer db.Close()
	var name, value string
	if err := db.QueryRowContext(ctx, "show status like 'Ssl_version'").Scan(&name, &value); err != nil {
		return nil, err
	}
	if value == "" {
		return "clear", nil
	}
	return "TLS", nil
}
