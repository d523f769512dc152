package sqlitelease_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/driver/drivertest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	suite := drivertest.Suite{Tick: contractTick, Width: contractWidth, Open: openStore}
	if !testing.Short() || !underRace {
		drivertest.Run(t, suite)
		return
	}
	// The whole takes minutes then, so only what the race detector is for.
	concepts := []string{"batches", "idempotence", "signals", "watching", "cancellation", "closing"}
	for _, c := range drivertest.Cases() {
		if !slices.Contains(concepts, c.Concept) {
			continue
		}
		t.Run(c.Concept+"/"+c.Name, func(t *testing.T) {
			t.Parallel()
			if err := suite.Check(t, c); err != nil {
				t.Error(err)
			}
		})
	}
}

// openStore makes a database for one case. Each client has a handle of its own, as if it
// were a process of its own.
func openStore() (*drivertest.Store, error) {
	folder, err := os.MkdirTemp("", "sqlitelease")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "hasp.db")
	var mu sync.Mutex
	var handles []*sql.DB
	open := func() (*sql.DB, error) {
		db, err := sql.Open("sqlite", dsn(path))
		mu.Lock()
		defer mu.Unlock()
		handles = append(handles, db)
		return db, err
	}
	db, err := open()
	if err == nil {
		err = sqlitelease.Migrate(context.Background(), db, nil)
	}
	return &drivertest.Store{
		Client: func() (driver.Driver, error) {
			db, err := open()
			if err != nil {
				return nil, err
			}
			return sqlitelease.New(db, nil), nil
		},
		Wipe: func() error {
			_, err := db.Exec("PRAGMA busy_timeout = 5000; DELETE FROM hasp_claims; DELETE FROM hasp_lines; DELETE FROM hasp_sessions")
			return err
		},
		Close: func() error {
			mu.Lock()
			defer mu.Unlock()
			var err error
			for _, db := range handles {
				err = errors.Join(err, db.Close())
			}
			return errors.Join(err, os.RemoveAll(folder))
		},
	}, err
}
