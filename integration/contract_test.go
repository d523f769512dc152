package integration_test

import (
	"context"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/driver/drivertest"
	"github.com/hasp-dev/hasp/integration/servers"
	"github.com/hasp-dev/hasp/integration/stores"
)

// suite runs the contract on a store that was started. The suites run one after the
// other, since each fills the machine by itself. Those of the SQL stores are in their own modules.
func suite(t *testing.T, s *store, hooks drivertest.Store) {
	t.Helper()
	hooks.Client = func() (driver.Driver, error) {
		handle, err := stores.Open(s.addr)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = handle.Close() })
		return handle.Driver, nil
	}
	drivertest.Run(t, drivertest.Suite{Tick: 200 * time.Millisecond, Open: func() (*drivertest.Store, error) {
		store := hooks
		return &store, nil
	}})
}

// redisHooks do to one server what the contract's cases ask for.
func redisHooks(r *servers.Redis) drivertest.Store {
	ctx := context.Background()
	return drivertest.Store{
		Wipe: func() error { return r.Admin().FlushAll(ctx).Err() },
		Cut: func() error {
			_, err := r.Command(ctx, "CLIENT", "KILL", "TYPE", "pubsub")
			return err
		},
		Stall: func() (func(), error) { return func() { _ = r.Resume() }, r.Pause() },
	}
}

func TestContractOnRedis(t *testing.T) {
	s := startRedis(t)
	suite(t, s, redisHooks(s.redis))
}

func TestContractOnSentinels(t *testing.T) {
	sentinels := must(servers.StartSentinels())(t)
	t.Cleanup(func() { wantNil(t, sentinels.Close()) })
	suite(t, &store{addr: sentinels.URL()}, drivertest.Store{})
}

func TestContractOnACluster(t *testing.T) {
	cluster := must(servers.StartCluster())(t)
	t.Cleanup(func() { wantNil(t, cluster.Close()) })
	suite(t, &store{addr: cluster.URL()}, drivertest.Store{})
}

func TestContractOnAClusterInOneSlot(t *testing.T) {
	cluster := must(servers.StartCluster())(t)
	t.Cleanup(func() { wantNil(t, cluster.Close()) })
	suite(t, &store{addr: cluster.URL() + "?slot=locks"}, drivertest.Store{})
}
