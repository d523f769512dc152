package memlease_test

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"
	"testing/synctest"
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

const second = time.Second

var life = driver.Life{Hold: 10 * second, Wait: 6 * second}

func newClient(tb testing.TB) *client {
	tb.Helper()
	store := memlease.NewStore()
	return &client{Driver: store.Driver(), tb: tb, store: store, inbox: 1}
}

// another is a second client of the same store.
func (c *client) another() *client {
	return &client{Driver: c.store.Driver(), tb: c.tb, store: c.store, inbox: c.inbox + 1}
}

func (c *client) id() driver.ID {
	c.ids++
	id := driver.ID{c.inbox}
	binary.BigEndian.PutUint64(id[8:], c.ids)
	return id
}

// claim is an attempt at a mutex over keys.
func (c *client) claim(keys ...string) driver.Join {
	return c.share(1, 1, keys...)
}

// share is an attempt at a part of the capacity of keys.
func (c *client) share(weight, capacity int64, keys ...string) driver.Join {
	slices.Sort(keys)
	return driver.Join{Claim: driver.Claim{
		Ref: driver.Ref{ID: c.id(), Keys: keys}, Weight: weight, Capacity: capacity, Life: life,
	}}
}

// joins has a claim join; the answer must be the state.
func (c *client) joins(j driver.Join, want driver.State) driver.Standing {
	c.tb.Helper()
	s, err := c.Join(c.tb.Context(), j)
	return c.expect(s, err, want)
}

// renews extends a claim.
func (c *client) renews(j driver.Join, want driver.State) driver.Standing {
	c.tb.Helper()
	return c.renewal(driver.Renewal{Ref: j.Ref, Mode: driver.Extend, Life: j.Life}, want)
}

func (c *client) renewal(r driver.Renewal, want driver.State) driver.Standing {
	c.tb.Helper()
	var s driver.Standing
	err := error(nil)
	c.Renew(c.tb.Context(), []driver.Renewal{r}, func(_ int, got driver.Standing, failed error) { s, err = got, failed })
	return c.expect(s, err, want)
}

func (c *client) leaves(j driver.Join, want driver.State) driver.Standing {
	c.tb.Helper()
	s, err := c.Leave(c.tb.Context(), driver.Leaving{Ref: j.Ref})
	return c.expect(s, err, want)
}

func (c *client) expect(s driver.Standing, err error, want driver.State) driver.Standing {
	c.tb.Helper()
	if err != nil || s.State != want {
		c.tb.Fatalf("got %+v, %v, want %v", s, err, want)
	}
	return s
}

func (c *client) line(key string) driver.Line {
	c.tb.Helper()
	page, err := c.Lines(c.tb.Context(), driver.Query{Key: key})
	if err != nil || len(page.Lines) != 1 {
		c.tb.Fatalf("lines: %+v, %v", page, err)
	}
	return page.Lines[0]
}

// listens collects what the client is told; inside a bubble only.
func (c *client) listens() *ear {
	e := &ear{tb: c.tb}
	ctx, cancel := context.WithCancel(c.tb.Context())
	e.stop = cancel
	go func() { e.err = c.Listen(ctx, [6]byte{c.inbox}, e.hear) }()
	c.tb.Cleanup(func() {
		cancel()
		synctest.Wait()
	})
	return e
}

// ear is written by Listen and read after synctest.Wait.
type ear struct {
	tb    testing.TB
	heard []driver.Signal
	err   error
	stop  func()
}

func (e *ear) hear(s driver.Signal) { e.heard = append(e.heard, s) }

// hears checks what has been heard since the last time.
func (e *ear) hears(want ...driver.Signal) {
	e.tb.Helper()
	synctest.Wait()
	if !slices.Equal(e.heard, want) {
		e.tb.Fatalf("heard %v, want %v", e.heard, want)
	}
	e.heard = nil
}
