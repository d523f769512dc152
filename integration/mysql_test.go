package integration_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/hasp-dev/hasp/backend/mysqllease"
	"github.com/hasp-dev/hasp/integration/servers"
)

// mysqlDatabase holds the tables on each server of the tests.
const mysqlDatabase = "locks"

func startMySQL(t *testing.T) *store {
	t.Helper()
	return onMySQL(t)
}

// onMySQL starts a MariaDB with hasp's tables. What it has answered outlives its process,
// and need not outlive the machine.
func onMySQL(t *testing.T, args ...string) *store {
	t.Helper()
	m := must(servers.StartMariaDB(append([]string{"--max-connections=500", "--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync", "--innodb-doublewrite=0"}, args...)...))(t)
	t.Cleanup(func() { wantNil(t, m.Close()) })
	mysqlExec(t, m, "", "CREATE DATABASE "+mysqlDatabase)
	db := mysqlHandle(t, m, mysqlDatabase)
	wantNil(t, mysqllease.Migrate(t.Context(), db, nil))
	return &store{
		name: "mysql", addr: "mysql://" + m.Addr + "/" + mysqlDatabase, server: m, host: m.Addr, sql: db, remain: rowsOf(db),
	}
}

func mysqlHandle(t *testing.T, m *servers.MariaDB, database string) *sql.DB {
	t.Helper()
	c := must(mysql.ParseDSN(m.DSN(database)))(t)
	c.Logger = &mysql.NopLogger{}
	db := sql.OpenDB(must(mysql.NewConnector(c))(t))
	t.Cleanup(func() { _ = db.Close() }) // which a connection to a server that was killed makes an error
	return db
}

func mysqlExec(t *testing.T, m *servers.MariaDB, database, statement string) {
	t.Helper()
	_ = must(mysqlHandle(t, m, database).ExecContext(t.Context(), statement))(t)
}

// wipe makes the store forget everything.
func (s *store) wipe(ctx context.Context) error {
	if s.redis != nil {
		return s.redis.Admin().FlushAll(ctx).Err()
	}
	for _, table := range []string{"hasp_claims", "hasp_lines", "hasp_sessions"} {
		if _, err := s.sql.ExecContext(ctx, "DELETE FROM "+table); err != nil {
			return err
		}
	}
	return nil
}

// polled is a bound on a hand-over where the next look comes after 100 ms at the latest.
func (s *store) polled(bound time.Duration) time.Duration {
	if s.sql != nil {
		return 4 * bound
	}
	return bound
}

// unhurried is a TTL for a hundred locks at once: a database's steps are more work.
func (s *store) unhurried(ttl time.Duration) time.Duration {
	if s.sql != nil {
		return 4 * ttl
	}
	return ttl
}

// now is the store's clock, in µs.
func (s *store) now(ctx context.Context) (now int64, err error) {
	if s.redis != nil {
		t, err := s.redis.Admin().Time(ctx).Result()
		return t.UnixMicro(), err
	}
	if s.name == "postgres" {
		err = s.sql.QueryRowContext(ctx, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Scan(&now)
		return now, err
	}
	err = s.sql.QueryRowContext(ctx, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))").Scan(&now)
	return now, err
}

// disconnect ends all connections but the test's own.
func (s *store) disconnect(ctx context.Context) error {
	if s.redis != nil {
		for _, kind := range []string{"normal", "pubsub"} {
			if _, err := s.redis.Command(ctx, "CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"); err != nil {
				return err
			}
		}
		return nil
	}
	if s.name == "postgres" {
		_, err := s.sql.ExecContext(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'test'")
		return err
	}
	rows, err := s.sql.QueryContext(ctx, "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ? AND ID <> CONNECTION_ID()", mysqlDatabase)
	if err != nil {
		return err
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		_, _ = s.sql.ExecContext(ctx, "KILL ?", id) // it may have ended
	}
	return rows.Err()
}

// step is what is in the request that a step with this key sends, and on whose answer its
// outcome hangs.
func (s *store) step(key string) string {
	if s.redis != nil {
		return key
	}
	if s.name == "postgres" {
		return hex.EncodeToString([]byte(key)) // its COMMIT is in the same message
	}
	return "autocommit = 1" // which commits
}

// renewal is what is in a request that renews a lease on this key.
func (s *store) renewal(key string) string {
	if s.redis != nil {
		return key
	}
	return hex.EncodeToString([]byte(key))
}
