package sqlitelease_test

import (
	"database/sql"
	"testing"

	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/driver/drivertest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	drivertest.Run(t, drivertest.Suite{Open: func() (*drivertest.Store, error) {
		return &drivertest.Store{Client: func() (driver.Driver, error) {
			db, err := sql.Open("sqlite", dsn(path))
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { _ = db.Close() })
			return sqlitelease.New(db, nil), nil
		}}, nil
	}})
}
