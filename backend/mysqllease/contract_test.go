package mysqllease_test

import (
	"database/sql"
	"errors"
	"sync"
	"testing"

	"github.com/hasp-dev/hasp/backend/mysqllease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/driver/drivertest"
)

// The suites run side by side, each on a server of its own, and with no other test: their
// times are short, and a busy machine is late.
//
//nolint:paralleltest,tparallel // as it says
func TestContract(t *testing.T) {
	for _, isolation := range []string{"READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"} {
		if testing.Short() && isolation != "REPEATABLE-READ" {
			continue
		}
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			contract(t, isolation)
		})
	}
}

// contract runs the suite with a default isolation level. All cases share one database.
func contract(t *testing.T, isolation string) {
	t.Helper()
	s := startServer(t, "--transaction-isolation="+isolation)
	name := s.database(t)
	admin := s.open(t, name)
	drivertest.Run(t, drivertest.Suite{Width: 4, Open: func() (*drivertest.Store, error) {
		var mu sync.Mutex
		var handles []*sql.DB
		return &drivertest.Store{
			Client: func() (driver.Driver, error) { // with a handle of its own, as if it were a process of its own
				db := s.handle(t, name)
				mu.Lock()
				defer mu.Unlock()
				handles = append(handles, db)
				return mysqllease.New(db, nil), nil
			},
			Wipe: func() error {
				var err error
				for _, table := range []string{"claims", "lines", "sessions"} {
					_, e := admin.ExecContext(t.Context(), "DELETE FROM hasp_"+table)
					err = errors.Join(err, e)
				}
				return err
			},
			Stall: s.pause,
			Close: func() error {
				mu.Lock()
				defer mu.Unlock()
				var err error
				for _, db := range handles {
					err = errors.Join(err, db.Close())
				}
				return err
			},
		}, nil
	}})
}
