package redislease_test

import (
	"testing"

	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/driver/drivertest"
)

// The suites run one after the other: their times are short, and a busy machine is late.
//
//nolint:paralleltest // as it says
func TestSuite(t *testing.T) {
	s := startServer(t)
	rdb := s.client(t)
	suite(t, s, func() driver.Driver { return redislease.New(rdb, nil) })
}

// The scripts for Redis 6.2 do the same.
//
//nolint:paralleltest // as above
func TestSuiteOfOldScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite runs once in short mode")
	}
	s := startServer(t)
	rdb := s.client(t)
	suite(t, s, func() driver.Driver { return redislease.New(rdb, nil).SpeakOld() })
}

func suite(t *testing.T, s *server, client func() driver.Driver) {
	t.Helper()
	rdb, ctx := s.client(t), t.Context()
	drivertest.Run(t, drivertest.Suite{Width: 8, Open: func() (*drivertest.Store, error) {
		return &drivertest.Store{
			Client: func() (driver.Driver, error) { return client(), nil },
			Wipe:   func() error { return rdb.FlushAll(ctx).Err() },
			Cut:    func() error { return rdb.Do(ctx, "client", "kill", "type", "pubsub").Err() },
			Stall:  s.pause,
		}, nil
	}})
}
