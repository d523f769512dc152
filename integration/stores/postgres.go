package stores

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/hasp-dev/hasp/backend/pglease"
)

// openPostgres opens a pool. With via=sql the driver has a handle of database/sql on it,
// and polls.
func openPostgres(address string, params url.Values) (*Opened, error) {
	config, err := pgxpool.ParseConfig(address + "?sslmode=disable")
	if err != nil {
		return nil, err
	}
	if user := params.Get("user"); user != "" {
		config.ConnConfig.User, config.ConnConfig.Password = user, params.Get("password")
	}
	if text := params.Get("pool"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("parameter pool: %w", err)
		}
		config.MaxConns = int32(n)
	}
	if params.Get("via") == "sql" {
		db := stdlib.OpenDB(*config.ConnConfig)
		return &Opened{Driver: pglease.NewSQL(db, nil), SQL: db}, nil
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, err
	}
	return &Opened{Driver: pglease.New(pool, nil), Postgres: pool}, nil
}
