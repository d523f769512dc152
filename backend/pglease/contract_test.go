package pglease_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/hasp-dev/hasp/backend/pglease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/driver/drivertest"
)

// suite runs the contract; the clients share a pool, as those of one program would.
func suite(t *testing.T, client func() driver.Driver) {
	t.Helper()
	drivertest.Run(t, drivertest.Suite{Tick: 200 * time.Millisecond, Open: func() (*drivertest.Store, error) {
		return &drivertest.Store{Client: func() (driver.Driver, error) { return client(), nil }}, nil
	}})
}

func TestContract(t *testing.T) { //nolint:paralleltest // the suite fills the machine by itself
	pool, err := pgxpool.New(context.WithoutCancel(t.Context()), newDatabase(t)+"&pool_max_conns=40")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	suite(t, func() driver.Driver { return pglease.New(pool, nil) })
}

// Over database/sql, in poll mode, where the default isolation is SERIALIZABLE.
func TestContractOverDatabaseSQL(t *testing.T) { //nolint:paralleltest // the suite fills the machine by itself
	db, err := sql.Open("pgx", newDatabase(t)+"&default_transaction_isolation=serializable")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(40)
	db.SetMaxIdleConns(40)
	t.Cleanup(func() { _ = db.Close() })
	suite(t, func() driver.Driver { return pglease.NewSQL(db, nil) })
}
