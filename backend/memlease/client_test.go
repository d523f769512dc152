package memlease_test

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
)

// client is a driver with what a test needs around it.
type client struct {
	*memlease.Driver
	tb    testing.TB
	store *memlease.Store
	inbox byte
	ids   uint64
}

var life = driver.Life{Hold: 10 * time.Second, Wait: 6 * time.Second}

func newClient(tb testing.TB) *client {
	tb.Helper()
	return (&client{tb: tb}).of(memlease.NewStore(), 1)
}

func (c *client) of(store *memlease.Store, inbox byte) *client {
	return &client{Driver: store.Driver(), tb: c.tb, store: store, inbox: inbox}
}

// another is a second client of the same store.
func (c *client) another() *client { return c.of(c.store, c.inbox+1) }

func (c *client) id() driver.ID {
	c.ids++
	id := driver.ID{c.inbox}
	binary.BigEndian.PutUint64(id[8:], c.ids)
	return id
}

// join is an attempt at a mutex over keys.
func (c *client) join(keys ...string) driver.Join {
	slices.Sort(keys)
	return driver.Join{Claim: driver.Claim{
		Ref: driver.Ref{ID: c.id(), Keys: keys}, Weight: 1, Capacity: 1, Life: life,
	}}
}

func (c *client) must(s driver.Standing, err error) driver.Standing {
	c.tb.Helper()
	if err != nil {
		c.tb.Fatal(err)
	}
	return s
}
