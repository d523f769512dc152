package drivertest_test

import (
	"testing"

	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/driver/drivertest"
)

// memory is the suite of the reference store.
func memory(virtual bool) drivertest.Suite {
	return drivertest.Suite{Virtual: virtual, Open: func() (*drivertest.Store, error) {
		return storeOf(memlease.NewStore(), func(d driver.Driver) driver.Driver { return d }), nil
	}}
}

// storeOf offers a memory store whose drivers are wrapped.
func storeOf(m *memlease.Store, wrap func(driver.Driver) driver.Driver) *drivertest.Store {
	return &drivertest.Store{
		Client: func() (driver.Driver, error) { return wrap(m.Driver()), nil },
		Wipe:   func() error { m.Wipe(); return nil },
		Stall:  func() (func(), error) { return m.Stall(), nil },
	}
}

func TestTheReferenceKeepsTheContractInVirtualTime(t *testing.T) { drivertest.Run(t, memory(true)) }

func TestTheReferenceKeepsTheContractInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds of real time")
	}
	drivertest.Run(t, memory(false))
}
