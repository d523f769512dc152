package main

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/hasp-dev/hasp/backend/mysqllease"
	"github.com/hasp-dev/hasp/integration/servers"
)

// measureMariaDB: without waits for the disk, whose time would be all that is seen.
func measureMariaDB(ctx context.Context, p plan) ([]row, error) {
	s, err := servers.StartMariaDB("--innodb-flush-log-at-trx-commit=0", "--max-connections=1000", "--innodb-log-file-size=96M")
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := p.cores.bindServer(s.PID()); err != nil {
		return nil, err
	}
	const database = "hasp"
	if p.versions["MariaDB"], err = createTables(ctx, s, database); err != nil {
		return nil, err
	}
	users, end, err := p.pairsOf(ctx, s.DSN(database), nameOnMariaDB, nameGetLock)
	defer end()
	if err != nil {
		return nil, err
	}
	r, err := interleave(ctx, p.rounds, p.pairSides(users, 1)...)
	if err != nil {
		return nil, err
	}
	const what = "lock + release, 1 goroutine, p50: "
	rows := []row{
		compared(what+nameOnMariaDB, micros(r.median(nameOnMariaDB, "p50")), times(r.ratio(nameOnMariaDB, nameGetLock, "p50"), nameGetLock)),
		compared(what+nameGetLock, micros(r.median(nameGetLock, "p50")), ""),
	}
	queues, err := p.queues(ctx, s.DSN(database), nameOnMariaDB, nameGetLock)
	return append(rows, queues...), err
}

// createTables makes hasp's tables in a new database, and answers the server's version.
func createTables(ctx context.Context, s *servers.MariaDB, database string) (version string, err error) {
	db, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		return "", err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+database); err != nil {
		return "", err
	}
	tables, err := sql.Open("mysql", s.DSN(database))
	if err != nil {
		return "", err
	}
	defer tables.Close()
	if err := mysqllease.Migrate(ctx, tables, nil); err != nil {
		return "", fmt.Errorf("migrate: %w", err)
	}
	err = db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version)
	return version, err
}
