package fencing_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/hasp-dev/hasp/backend/mysqllease"
	"github.com/hasp-dev/hasp/backend/pglease"
	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/fence"
	"github.com/hasp-dev/hasp/integration/servers"
)

// database is where the locks and the data are. It travels to other processes.
type database struct {
	Dialect fence.Dialect
	DSN     string
}

func (d database) open() (*sql.DB, error) {
	return sql.Open(map[fence.Dialect]string{fence.SQLite: "sqlite", fence.PostgreSQL: "pgx", fence.MySQL: "mysql"}[d.Dialect], d.DSN)
}

// driver makes a client's way to the locks.
func (d database) driver(db *sql.DB) driver.Driver {
	switch d.Dialect {
	case fence.PostgreSQL:
		return pglease.NewSQL(db, nil)
	case fence.MySQL:
		return mysqllease.New(db, nil)
	case fence.SQLite:
	}
	return sqlitelease.New(db, nil)
}

func (d database) migrate(ctx context.Context, db *sql.DB) error {
	switch d.Dialect {
	case fence.PostgreSQL:
		return migratePostgres(ctx, d.DSN)
	case fence.MySQL:
		return mysqllease.Migrate(ctx, db, nil)
	case fence.SQLite:
	}
	return sqlitelease.Migrate(ctx, db, nil)
}

// counter is the data: a column fences its rows.
func (d database) counter() fence.Column {
	return fence.Column{Dialect: d.Dialect, Table: "counters", Key: []string{"id"}}
}

// fences is the table of tokens.
func (d database) fences() fence.Table { return fence.Table{Dialect: d.Dialect} }

// server is one for all tests, started by the first that asks.
var postgres, mariadb struct {
	once sync.Once
	addr func(database string) string
	stop func() error
	err  error
}

// stopServers ends what was started.
func stopServers() error {
	var err error
	for _, stop := range []func() error{postgres.stop, mariadb.stop} {
		if stop != nil {
			err = errors.Join(err, stop())
		}
	}
	return err
}

func onSQLite(t *testing.T) database {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data.db")
	return prepared(t, database{fence.SQLite, "file:" + path + "?_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)&_txlock=immediate"})
}

func onPostgres(t *testing.T) database {
	t.Helper()
	postgres.once.Do(func() {
		var p *servers.Postgres
		if p, postgres.err = servers.StartPostgres("fsync=off", "max_connections=200"); postgres.err != nil {
			return
		}
		postgres.stop = p.Close
		postgres.addr = func(name string) string { return "postgres://postgres@" + p.Addr + "/" + name + "?sslmode=disable" }
	})
	if postgres.err != nil {
		t.Fatal(postgres.err)
	}
	return prepared(t, database{fence.PostgreSQL, postgres.addr(newDatabase(t, database{fence.PostgreSQL, postgres.addr("postgres")}))})
}

func onMariaDB(t *testing.T) database {
	t.Helper()
	return prepared(t, database{fence.MySQL, mariadbDSN(t)})
}

// onMariaDBMatching counts rows that were found, not those that were changed.
func onMariaDBMatching(t *testing.T) database {
	t.Helper()
	return prepared(t, database{fence.MySQL, mariadbDSN(t) + "?clientFoundRows=true"})
}

func mariadbDSN(t *testing.T) string {
	t.Helper()
	mariadb.once.Do(func() {
		var m *servers.MariaDB
		if m, mariadb.err = servers.StartMariaDB("--innodb-flush-log-at-trx-commit=0", "--max-connections=500"); mariadb.err != nil {
			return
		}
		mariadb.stop, mariadb.addr = m.Close, m.DSN
	})
	if mariadb.err != nil {
		t.Fatal(mariadb.err)
	}
	return mariadb.addr(newDatabase(t, database{fence.MySQL, mariadb.addr("")}))
}

var databases struct {
	sync.Mutex
	n int
}

func newDatabase(t *testing.T, admin database) string {
	t.Helper()
	databases.Lock()
	databases.n++
	name := fmt.Sprintf("test%d", databases.n)
	databases.Unlock()
	must(t, handle(t, admin), "CREATE DATABASE "+name)
	return name
}

// prepared makes the tables of hasp, of fences, and of the data.
func prepared(t *testing.T, d database) database {
	t.Helper()
	db := handle(t, d)
	if err := errors.Join(d.migrate(t.Context(), db), d.fences().Migrate(t.Context(), db)); err != nil {
		t.Fatal(err)
	}
	must(t, db, "CREATE TABLE counters (id BIGINT PRIMARY KEY, n BIGINT NOT NULL, fence BIGINT NULL)")
	must(t, db, "INSERT INTO counters (id, n) VALUES (1, 0)")
	return d
}

// each runs a test on every kind of database.
func each(t *testing.T, test func(t *testing.T, d database)) {
	t.Helper()
	for name, start := range map[string]func(*testing.T) database{
		"SQLite": onSQLite, "PostgreSQL": onPostgres, "MariaDB": onMariaDB, "MariaDB, matched rows": onMariaDBMatching,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// handle opens a database until the test ends.
func handle(t *testing.T, d database) *sql.DB {
	t.Helper()
	db, err := d.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func must(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// number reads one number.
func number(t *testing.T, db *sql.DB, text string) int64 {
	t.Helper()
	var n int64
	if err := db.QueryRowContext(t.Context(), text).Scan(&n); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

// within bounds what should take no time but on a busy machine may.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(stop)
	return ctx
}
