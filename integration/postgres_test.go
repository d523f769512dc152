package integration_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the tests' own statements

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/pglease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/driver/drivertest"
	"github.com/hasp-dev/hasp/integration/servers"
)

func startPostgres(t *testing.T) *store {
	t.Helper()
	return onPostgres(t)
}

// onPostgres starts a PostgreSQL with hasp's tables. What it has answered outlives its
// processes.
func onPostgres(t *testing.T, settings ...string) *store {
	t.Helper()
	p := must(servers.StartPostgres(append([]string{
		"max_connections=400", "fsync=off", "max_locks_per_transaction=256", "autovacuum_naptime=5s",
	}, settings...)...))(t)
	t.Cleanup(func() { wantNil(t, p.Close()) })
	return postgresStore(t, p)
}

// postgresStore is a server with hasp's tables.
func postgresStore(t *testing.T, p *servers.Postgres) *store {
	t.Helper()
	db := postgresHandle(t, p)
	wantNil(t, pglease.MigrateSQL(t.Context(), db, nil))
	return &store{
		name: "postgres", addr: "postgres://postgres@" + p.Addr + "/postgres", server: p, host: p.Addr, sql: db, remain: rowsOf(db),
	}
}

func postgresHandle(t *testing.T, p *servers.Postgres) *sql.DB {
	t.Helper()
	db := must(sql.Open("pgx", p.URL()+"&application_name=test&default_query_exec_mode=exec"))(t)
	t.Cleanup(func() { wantNil(t, db.Close()) })
	return db
}

// postgresHooks do to a server what the contract's cases ask for.
func postgresHooks(s *store) drivertest.Store {
	ctx := context.Background()
	return drivertest.Store{
		Wipe: func() error { return s.wipe(ctx) },
		Cut: func() error {
			_, err := s.sql.ExecContext(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hasp'")
			return err
		},
		Stall: func() (func(), error) { return func() { _ = s.server.Resume() }, s.server.Pause() },
	}
}

// postgresSuite runs the contract. The clients of all cases share a pool, as there are
// more of them than a server takes connections.
func postgresSuite(t *testing.T, s *store, hooks drivertest.Store) {
	t.Helper()
	pool := must(pgxpool.New(t.Context(), s.addr+"?sslmode=disable&pool_max_conns=40"))(t)
	t.Cleanup(pool.Close)
	hooks.Client = func() (driver.Driver, error) { return pglease.New(pool, nil), nil }
	drivertest.Run(t, drivertest.Suite{Tick: 200 * time.Millisecond, Open: func() (*drivertest.Store, error) {
		store := hooks
		return &store, nil
	}})
}

func TestContractOnPostgres(t *testing.T) {
	s := startPostgres(t)
	postgresSuite(t, s, postgresHooks(s))
}

// TestIS1_ContractOnPostgres: the default isolation level is of no matter.
func TestIS1_ContractOnPostgresInRepeatableRead(t *testing.T) {
	s := onPostgres(t, "default_transaction_isolation=repeatable read")
	postgresSuite(t, s, drivertest.Store{})
}

func TestIS1_ContractOnPostgresInSerializable(t *testing.T) {
	s := onPostgres(t, "default_transaction_isolation=serializable")
	postgresSuite(t, s, drivertest.Store{})
}

// TestPI1_PI2_ContractBehindPgBouncer: in transaction mode, with two server connections.
func TestPI1_PI2_ContractBehindPgBouncer(t *testing.T) {
	s := startPostgres(t)
	postgresSuite(t, s.pooled(t), drivertest.Store{})
}

// pooled puts a pooler before the store's server.
func (s *store) pooled(t *testing.T) *store {
	t.Helper()
	b := must(servers.StartPgBouncer(s.server.(*servers.Postgres), 2))(t)
	t.Cleanup(func() { wantNil(t, b.Close()) })
	other := *s
	other.addr, other.host = "postgres://postgres@"+b.Addr+"/postgres", b.Addr
	return &other
}

// TestPI4_NoAdvisoryLockOutlivesAStep, nor does a transaction.
func TestPI4_NoAdvisoryLockOutlivesAStep(t *testing.T) {
	t.Parallel()
	s := startPostgres(t)
	c := s.client(t)
	lease := must(c.Mutex("a", "b").Lock(t.Context()))(t)
	count := func(what, query string) {
		t.Helper()
		var n int
		wantNil(t, s.sql.QueryRowContext(t.Context(), query).Scan(&n))
		if n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	count("advisory locks", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
	count("open transactions", "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'")
	released(t, lease)
}

// TestIS5_ManyWantANewKeyAtOnce: one wins each, and the server has nothing to complain of.
func TestIS5_ManyWantANewKeyAtOnce(t *testing.T) {
	t.Parallel()
	p := must(servers.StartPostgres("max_connections=400", "fsync=off"))(t)
	t.Cleanup(func() { wantNil(t, p.Close()) })
	s := postgresStore(t, p)
	const many = 20
	clients := make([]*hasp.Client, many)
	for i := range clients {
		clients[i] = s.with("pool=2").client(t)
		wantNil(t, clients[i].Ping(t.Context()))
	}
	for range rounds(30, 100) {
		key := t.Name() + time.Now().String()
		var wg sync.WaitGroup
		won := make(chan *hasp.Lease, many)
		for _, c := range clients {
			wg.Go(func() {
				lease, err := c.Mutex(key).TryLock(t.Context())
				if err == nil {
					won <- lease
					return
				}
				wantClass(t, err, "held")
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("%d won", len(won))
		}
		released(t, <-won)
	}
	if text := p.Errors(); text != "" {
		t.Errorf("the server says: %s", text)
	}
}

// TestSL1_APromotedStandbyMayForgetButNumbersRise: replication does not wait.
func TestSL1_APromotedStandbyMayForgetButNumbersRise(t *testing.T) {
	t.Parallel()
	p := must(servers.StartPostgres("fsync=off", "max_connections=100"))(t)
	t.Cleanup(func() { wantNil(t, p.Close()) })
	s := postgresStore(t, p)
	standby := must(p.StartStandby())(t)
	t.Cleanup(func() { wantNil(t, standby.Close()) })
	next := *s
	next.addr, next.host, next.server = "postgres://postgres@"+standby.Addr+"/postgres", standby.Addr, standby
	_, err := next.client(t).Mutex("k").TryLock(t.Context())
	wantClass(t, err, "refused") // as a standby

	c := s.client(t).With(hasp.LockOptions{TTL: 10 * time.Second})
	known := must(c.Mutex("known").Lock(t.Context()))(t)
	caughtUp(t, s, standby)
	// What is written from here on, the standby does not get.
	replay := postgresHandle(t, standby)
	_, err = replay.ExecContext(t.Context(), "SELECT pg_wal_replay_pause()")
	wantNil(t, err)
	forgotten := must(c.Mutex("forgotten").Lock(t.Context()))(t)
	p.Kill()
	_, err = replay.ExecContext(t.Context(), "SELECT pg_wal_replay_resume()")
	wantNil(t, err)
	wantNil(t, standby.Promote())
	other := next.client(t)
	if _, err := other.Mutex("known").TryLock(t.Context()); err == nil {
		t.Error("a lock that was replicated is free")
	} else {
		wantClass(t, err, "held")
	}
	lease := must(other.Mutex("forgotten").Lock(t.Context()))(t)
	if lease.Token() <= forgotten.Token() {
		t.Errorf("the token %d follows %d", lease.Token(), forgotten.Token())
	}
	released(t, lease)
	lost(t, known, 15*time.Second)
	lost(t, forgotten, 15*time.Second)
}

// caughtUp waits until a standby has replayed what its primary has written.
func caughtUp(t *testing.T, s *store, standby *servers.Postgres) {
	t.Helper()
	var at string
	wantNil(t, s.sql.QueryRowContext(t.Context(), "SELECT pg_current_wal_lsn()::text").Scan(&at))
	db := postgresHandle(t, standby)
	eventually(t, soon, "the standby has replayed", func() bool {
		var yes bool
		err := db.QueryRowContext(t.Context(), "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", at).Scan(&yes)
		return err == nil && yes
	})
}
